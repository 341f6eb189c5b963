//! The shipped facts against the table they come from, and what is refused.

use super::*;
use crate::agent::{PrefixMismatch, ThinkingDisplay};

fn shipped() -> Catalogue {
    Catalogue::shipped().unwrap()
}

fn settle(model: &str, wanted: Wanted) -> Result<Settings, Refused> {
    shipped().get(model).unwrap().settle(model, &wanted)
}

#[test]
fn every_listed_model_is_complete() {
    let listed = [
        "claude-fable-5-2",
        "claude-fable-5-1",
        "claude-fable-5",
        "claude-opus-5-5",
        "claude-sonnet-5-5",
        "claude-haiku-5-5",
        "claude-opus-5",
        "claude-sonnet-5",
        "claude-opus-4-8",
        "claude-opus-4-7",
        "claude-opus-4-6",
        "claude-sonnet-4-6",
        "claude-opus-4-5",
        "claude-sonnet-4-5",
        "claude-haiku-4-5",
    ];
    let catalogue = shipped();
    for model in listed {
        let facts = catalogue.get(model).unwrap_or_else(|| panic!("{model} is missing"));
        assert!(facts.thinking.as_ref().is_some_and(|kinds| !kinds.is_empty()), "{model}");
        assert!(facts.context.is_some() && facts.max_output.is_some() && facts.cache_minimum.is_some(), "{model}");
        let efforts = facts.efforts.as_ref().unwrap();
        assert_eq!(facts.default_effort.is_none(), efforts.is_empty(), "{model}");
        assert!(facts.default_effort.is_none_or(|effort| efforts.contains(&effort)), "{model}");
        if let Some(price) = &facts.price {
            assert!(price.source.starts_with("https://") && price.date.len() == 10, "{model}");
        }
    }
    assert_eq!(catalogue.names().count(), listed.len(), "a model without a row in the table");
    assert!(catalogue.price("claude-fable-5-2").is_none(), "nobody verified that price");
    assert_eq!(catalogue.price("claude-haiku-5-5").unwrap().above.unwrap().0, 100_000);
}

#[test]
fn a_dated_name_is_its_model() {
    assert!(shipped().get("claude-haiku-4-5-20251001").is_some());
    assert!(shipped().get("claude-haiku-4-5-2025").is_none());
    assert!(shipped().get("gpt-9").is_none());
}

#[test]
fn each_model_thinks_as_it_can() {
    let adaptive = Thinking::Adaptive { display: ThinkingDisplay::Summarized, on_mismatch: PrefixMismatch::Fail };
    assert_eq!(settle("claude-opus-5-5", Wanted::default()).unwrap().thinking, Some(adaptive));
    let old = settle("claude-haiku-4-5", Wanted::default()).unwrap();
    assert_eq!(old.thinking, Some(Thinking::Enabled { budget_tokens: 8_192 }));
    let small = settle("claude-haiku-4-5", Wanted { max_tokens: Some(2_000), ..Wanted::default() }).unwrap();
    assert_eq!(small.thinking, None, "a budget must be at least 1,024 and leave room for the answer");
    let between = Wanted { thinking: Some(ThinkingDecl::BetweenTools), ..Wanted::default() };
    assert_eq!(settle("claude-sonnet-5-5", between).unwrap().thinking, Some(Thinking::BetweenTools));
    let off = Wanted { thinking: Some(ThinkingDecl::Off), ..Wanted::default() };
    assert_eq!(settle("claude-sonnet-5", off).unwrap().thinking, Some(Thinking::Disabled));
    assert_eq!(Facts::default().settle("unknown", &Wanted::default()).unwrap().thinking, Some(adaptive));
}

#[test]
fn contradictions_name_the_choices() {
    let off = Wanted { thinking: Some(ThinkingDecl::Off), ..Wanted::default() };
    for model in ["claude-fable-5-2", "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"] {
        assert!(settle(model, off).unwrap_err().hint.contains("adaptive"), "{model}");
    }
    let adaptive = Wanted { thinking: Some(ThinkingDecl::Adaptive), ..Wanted::default() };
    assert!(settle("claude-sonnet-4-5", adaptive).is_err());
    let effort = |effort| Wanted { effort: Some(effort), ..Wanted::default() };
    let refused = settle("claude-opus-4-6", effort(Effort::Xhigh)).unwrap_err();
    assert_eq!(refused.hint, "it takes low, medium, high, max");
    assert!(settle("claude-haiku-4-5", effort(Effort::Low)).unwrap_err().hint.contains("takes none"));
    assert!(settle("claude-opus-4-6", effort(Effort::Max)).is_ok());
    let both = Wanted { effort: Some(Effort::Max), ..off };
    assert!(settle("claude-opus-5", both).unwrap_err().hint.contains("effort high or less"));
    assert!(settle("claude-opus-5", Wanted { effort: Some(Effort::High), ..off }).is_ok());
    let long = Wanted { max_tokens: Some(100_000), ..Wanted::default() };
    assert!(settle("claude-haiku-4-5", long).unwrap_err().message.contains("64000"));
    assert!(settle("claude-opus-5", Wanted { web_fetch: true, ..Wanted::default() }).is_err());
    assert!(settle("claude-opus-5", Wanted { max_tokens: Some(0), ..Wanted::default() }).is_err());
}

#[test]
fn an_operators_file_wins_field_by_field_and_is_read_strictly() {
    let theirs = "web_search_usd: \"0.02\"\nmodels:\n  claude-opus-5:\n    web_fetch: true\n  house-model:\n    max_output: 4096\n";
    let merged = shipped().with(theirs, "models.yaml").unwrap();
    let opus = merged.get("claude-opus-5").unwrap();
    assert_eq!((opus.web_fetch, opus.max_output), (Some(true), Some(128_000)));
    assert_eq!(merged.price("claude-opus-5").unwrap().web_search, Exact::parse("0.02").ok());
    assert_eq!(merged.get("house-model").unwrap().max_output, Some(4_096));
    for bad in ["models: { m: { contxt: 5 } }", "models: { m: { price: { input: 5 } } }", "colour: red", "- a"] {
        let error = shipped().with(bad, "models.yaml").unwrap_err();
        assert!(error.to_string().starts_with("models.yaml: "), "{error}");
    }
}
