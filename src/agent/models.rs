//! What is known about models: how they think, what they hold, what they cost. Data, not code.
//!
//! Role: read `assets/models.yaml` and an operator's own file over it; decide which settings a model gets, or why
//! a declared one cannot be had.
//! Not its role: finding files, asking servers.
//!
//! Invariants: the shipped file parses strictly (a test holds that); a contradiction is refused with the choices
//! there are; a model nobody knows is not guessed at beyond the usual default.

use super::price::{Price, Rates};
use super::request::Thinking;
use crate::model::decimal::Exact;
use crate::model::loop_file::{Effort, ThinkingDecl};
use serde::Deserialize;
use std::collections::BTreeMap;

const SHIPPED: &str = include_str!("../../assets/models.yaml");
/// Largest file of an operator.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;
/// Tokens that a model without adaptive thinking may think per reply, where the reply has room for it.
const THINKING_BUDGET: u32 = 8_192;
/// The API's smallest budget.
const SMALLEST_BUDGET: u32 = 1_024;
/// Tokens a reply may have when nobody says.
pub const DEFAULT_MAX_TOKENS: u32 = 16_384;

/// How a model can think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingKind {
    Adaptive,
    BetweenTools,
    Off,
    /// With a budget: models older than adaptive thinking.
    Enabled,
}

/// What is known about one model. A field that is absent is not known.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Facts {
    /// What it can do; the first is what it gets when nobody says.
    pub thinking: Option<Vec<ThinkingKind>>,
    /// Thinking can be off only up to this effort.
    pub off_up_to: Option<Effort>,
    /// Empty: it takes no effort.
    pub efforts: Option<Vec<Effort>>,
    pub default_effort: Option<Effort>,
    /// Tokens it can read and write in one request.
    pub context: Option<u64>,
    pub max_output: Option<u32>,
    /// A shorter prefix is not cached.
    pub cache_minimum: Option<u64>,
    pub web_search: Option<bool>,
    pub web_fetch: Option<bool>,
    pub price: Option<PriceFacts>,
}

/// A price with where and when it was read.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceFacts {
    pub date: String,
    pub source: String,
    input: Exact,
    output: Exact,
    cache_read: Exact,
    cache_write_5m: Exact,
    cache_write_1h: Exact,
    #[serde(default)]
    above: Option<StepFacts>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepFacts {
    prompt_tokens: u64,
    input: Exact,
    output: Exact,
    cache_read: Exact,
    cache_write_5m: Exact,
    cache_write_1h: Exact,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FactsFile {
    date: Option<String>,
    source: Option<String>,
    /// One search by the server, in US dollars.
    web_search_usd: Option<Exact>,
    models: BTreeMap<String, Facts>,
}

/// All models that are known.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalogue(FactsFile);

/// Why a file of models cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {message}")]
pub struct ModelsError {
    pub name: String,
    pub message: String,
}

/// What a declaration asks of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    pub thinking: Option<ThinkingDecl>,
    pub effort: Option<Effort>,
    pub max_tokens: Option<u32>,
    pub web_search: bool,
    pub web_fetch: bool,
}

/// The settings that a model gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub thinking: Option<Thinking>,
    pub effort: Option<Effort>,
    pub max_tokens: u32,
    /// The most it can write, where that is known.
    pub max_output: Option<u32>,
    pub context: Option<u64>,
}

/// A declaration that a model cannot follow: what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub message: String,
    pub hint: String,
}

impl Catalogue {
    /// What nightloop ships.
    pub fn shipped() -> Result<Self, ModelsError> {
        parse(SHIPPED, "assets/models.yaml").map(Self)
    }

    /// An operator's file over this one: each field that it names wins.
    pub fn with(mut self, yaml: &str, name: &str) -> Result<Self, ModelsError> {
        let theirs = parse(yaml, name)?;
        self.0.web_search_usd = theirs.web_search_usd.or(self.0.web_search_usd);
        self.0.date = theirs.date.or(self.0.date);
        self.0.source = theirs.source.or(self.0.source);
        for (model, facts) in theirs.models {
            let known = self.0.models.entry(model).or_default();
            *known = facts.over(std::mem::take(known));
        }
        Ok(self)
    }

    /// The facts of a model; a dated name (`…-20251001`) is the model of that date.
    pub fn get(&self, model: &str) -> Option<&Facts> {
        self.0.models.get(model).or_else(|| self.0.models.get(undated(model)?))
    }

    /// The price of a model with its searches.
    pub fn price(&self, model: &str) -> Option<Price> {
        let facts = self.get(model)?.price.as_ref()?;
        let rates = |input, output, cache_read, cache_write_5m, cache_write_1h| Rates {
            input,
            output,
            cache_read,
            cache_write_5m,
            cache_write_1h,
        };
        let above = facts.above.as_ref().map(|step| {
            let above = rates(step.input, step.output, step.cache_read, step.cache_write_5m, step.cache_write_1h);
            (step.prompt_tokens, above)
        });
        let rates = rates(facts.input, facts.output, facts.cache_read, facts.cache_write_5m, facts.cache_write_1h);
        Some(Price { rates, above, web_search: self.web_search() })
    }

    pub fn web_search(&self) -> Option<Exact> {
        self.0.web_search_usd
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.models.keys().map(String::as_str)
    }
}

impl Facts {
    fn over(self, below: Self) -> Self {
        Self {
            thinking: self.thinking.or(below.thinking),
            off_up_to: self.off_up_to.or(below.off_up_to),
            efforts: self.efforts.or(below.efforts),
            default_effort: self.default_effort.or(below.default_effort),
            context: self.context.or(below.context),
            max_output: self.max_output.or(below.max_output),
            cache_minimum: self.cache_minimum.or(below.cache_minimum),
            web_search: self.web_search.or(below.web_search),
            web_fetch: self.web_fetch.or(below.web_fetch),
            price: self.price.or(below.price),
        }
    }

    /// The settings for what is wanted, or why they cannot be had: now, not as a refusal of the server at night.
    pub fn settle(&self, model: &str, wanted: &Wanted) -> Result<Settings, Refused> {
        let effort = self.effort(model, wanted.effort)?;
        let max_tokens = self.max_tokens(model, wanted.max_tokens)?;
        let kind = self.kind(model, wanted.thinking)?;
        if kind == ThinkingKind::Off
            && let (Some(most), Some(asked)) = (self.off_up_to, effort)
            && asked > most
        {
            return Err(Refused {
                message: format!("{model} cannot have thinking off at effort {}", asked.name()),
                hint: format!("use effort {} or less, or leave `thinking` out", most.name()),
            });
        }
        for (asked, there, what) in
            [(wanted.web_search, self.web_search, "search"), (wanted.web_fetch, self.web_fetch, "fetch")]
        {
            if asked && there == Some(false) {
                return Err(Refused {
                    message: format!("{model} has no web {what}"),
                    hint: format!("remove `web.{what}`, or choose another model"),
                });
            }
        }
        let thinking = match kind {
            ThinkingKind::Adaptive => Some(Thinking::summarized()),
            ThinkingKind::BetweenTools => Some(Thinking::BetweenTools),
            ThinkingKind::Off => Some(Thinking::Disabled),
            ThinkingKind::Enabled => budget(max_tokens).map(|budget_tokens| Thinking::Enabled { budget_tokens }),
        };
        Ok(Settings { thinking, effort, max_tokens, max_output: self.max_output, context: self.context })
    }

    fn effort(&self, model: &str, wanted: Option<Effort>) -> Result<Option<Effort>, Refused> {
        let (Some(effort), Some(allowed)) = (wanted, &self.efforts) else { return Ok(wanted) };
        if allowed.contains(&effort) {
            return Ok(wanted);
        }
        let names: Vec<&str> = allowed.iter().map(|effort| effort.name()).collect();
        let hint = match names.as_slice() {
            [] => "remove `effort`: this model takes none".to_owned(),
            names => format!("it takes {}", names.join(", ")),
        };
        Err(Refused { message: format!("{model} has no effort {}", effort.name()), hint })
    }

    fn max_tokens(&self, model: &str, wanted: Option<u32>) -> Result<u32, Refused> {
        match (wanted, self.max_output) {
            (Some(0), _) => {
                Err(Refused { message: "max_tokens is 0".to_owned(), hint: "leave it out, or give it room".to_owned() })
            }
            (Some(wanted), Some(most)) if wanted > most => Err(Refused {
                message: format!("{model} writes at most {most} tokens, and max_tokens is {wanted}"),
                hint: format!("use {most} or less"),
            }),
            (Some(wanted), _) => Ok(wanted),
            (None, most) => Ok(DEFAULT_MAX_TOKENS.min(most.unwrap_or(u32::MAX))),
        }
    }

    fn kind(&self, model: &str, wanted: Option<ThinkingDecl>) -> Result<ThinkingKind, Refused> {
        let known = self.thinking.as_deref();
        let asked = match wanted {
            None => return Ok(known.and_then(<[_]>::first).copied().unwrap_or(ThinkingKind::Adaptive)),
            Some(ThinkingDecl::Adaptive) => ThinkingKind::Adaptive,
            Some(ThinkingDecl::BetweenTools) => ThinkingKind::BetweenTools,
            Some(ThinkingDecl::Off) => ThinkingKind::Off,
        };
        if known.is_none_or(|known| known.contains(&asked)) {
            return Ok(asked);
        }
        let names: Vec<&str> = known.unwrap_or_default().iter().filter_map(|kind| kind.declared()).collect();
        let hint = match names.as_slice() {
            [] => "leave `thinking` out".to_owned(),
            names => format!("it can have {}; or leave `thinking` out", names.join(", ")),
        };
        Err(Refused { message: format!("{model} cannot think `{}`", asked.declared().unwrap_or("so")), hint })
    }
}

impl ThinkingKind {
    /// The word for it in loop.yaml; a budget is not for people to choose.
    const fn declared(self) -> Option<&'static str> {
        match self {
            Self::Adaptive => Some("adaptive"),
            Self::BetweenTools => Some("between_tools"),
            Self::Off => Some("off"),
            Self::Enabled => None,
        }
    }
}

/// What a model with a budget may think, so that half of the reply is left for the answer.
fn budget(max_tokens: u32) -> Option<u32> {
    Some(THINKING_BUDGET.min(max_tokens / 2)).filter(|budget| *budget >= SMALLEST_BUDGET)
}

/// The name without a date at its end.
fn undated(model: &str) -> Option<&str> {
    let (name, date) = model.rsplit_once('-')?;
    (date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit())).then_some(name)
}

fn parse(yaml: &str, name: &str) -> Result<FactsFile, ModelsError> {
    let failed = |message: String| ModelsError { name: name.to_owned(), message };
    if yaml.len() > MAX_FILE_BYTES {
        return Err(failed(format!("the file has {} bytes, the limit is {MAX_FILE_BYTES}", yaml.len())));
    }
    serde_yaml::from_str(yaml).map_err(|e| failed(e.to_string()))
}

#[cfg(test)]
mod tests;
