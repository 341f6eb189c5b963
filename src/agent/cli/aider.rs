//! aider (`aider --message-file /dev/stdin --yes-always …`).
//!
//! Role: its command line, and the few lines of its plain output that mean something. Read from its sources,
//! versions 0.8x.
//! Not its role: sessions (it has none to go on in) and tools (it has none of its own).
//!
//! Shape: text; `Tokens: 1.2k sent, 345 received. Cost: $0.01 message, $0.02 session.` after each answer,
//! `Applied edit to PATH` after each edit, `Main model: NAME with … edit format` at the start. It ends with
//! code 0 even when its model's service refused it.
//!
//! Invariants: a turn is finished only when a whole `Tokens:` line came; its counts are as rounded as it
//! prints them.

use crate::agent::message::Usage;
use crate::agent::program::Task;
use crate::model::act::Act;
use crate::model::decimal::Exact;
use crate::model::loop_file::PromptBy;

use super::argv::{Announce, Ends, Line, with_system};
use super::turn::{Turn, plus};
use super::{Facts, Invocation};

pub(super) static FACTS: Facts = Facts {
    own_folders: &[".aider"],
    key_variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY"],
    takes_tools: false,
    signed_in_files: &[".aider.conf.yml", ".aider/oauth-keys.env"],
    version: &["--version"],
    status: None,
    sign_in: "declare the key of its model in the agent's `env`, for example `env: [ANTHROPIC_API_KEY]`",
};

/// What is kept of its troubles.
const MAX_TROUBLE: usize = 4 * 1024;

pub(super) fn invocation(mut line: Line<'_>, task: &Task) -> Result<Invocation, String> {
    if line.gives(&["--message", "--msg", "-m", "--message-file", "-f"]) && line.place().is_none() {
        return Err("`aider` is given its task by nightloop: leave --message and --message-file out, \
                    or write `--message={prompt}`"
            .into());
    }
    line.flag(&["--yes-always", "--yes"]);
    line.flag(&["--no-auto-commits", "--auto-commits"]);
    line.flag(&["--no-dirty-commits", "--dirty-commits"]);
    line.flag(&["--no-pretty", "--pretty"]);
    line.flag(&["--no-stream", "--stream"]);
    line.flag(&["--no-check-update", "--check-update"]);
    line.flag(&["--no-show-release-notes", "--show-release-notes"]);
    line.flag(&["--no-analytics", "--analytics"]);
    line.flag(&["--no-gitignore", "--gitignore"]);
    line.flag(&["--no-detect-urls", "--detect-urls"]);
    // Its diaries would be changes of the workspace.
    line.option(&["--chat-history-file"], "/dev/null");
    line.option(&["--input-history-file"], "/dev/null");
    if task.read_only {
        line.option(&["--chat-mode", "--edit-format"], "ask");
    }
    if let Some(model) = &task.model {
        line.option(&["--model"], model);
    }
    let ends = Ends {
        default: PromptBy::Stdin,
        before_prompt: &[],
        by_stdin: &["--message-file", "/dev/stdin"],
        by_argument: Announce::Joined("--message"),
    };
    line.build(1, with_system(task, false), ends)
}

/// How it begins the lines about a service that failed.
const TROUBLE: [&str; 2] = ["litellm.", "The API provider"];

#[derive(Default)]
pub(super) struct Stream {
    trouble: String,
}

impl Stream {
    pub fn line(&mut self, line: &str, turn: &mut Turn, on_act: &mut dyn FnMut(Act)) {
        let text = line.trim_end();
        if let Some(tokens) = text.strip_prefix("Tokens: ").and_then(Tokens::read) {
            turn.usage = plus(turn.usage, &tokens.usage);
            // The cost of the session is a sum already.
            turn.cost_usd = tokens.session_cost.or(turn.cost_usd);
            turn.finish_well();
            self.trouble.clear();
            return;
        }
        if let Some(model) = text.strip_prefix("Main model: ").or_else(|| text.strip_prefix("Model: ")) {
            turn.name_model(model.split(" with ").next());
        }
        let full = text.starts_with("Model ") && text.ends_with(" has hit a token limit!");
        if full || TROUBLE.iter().any(|begin| text.starts_with(begin)) {
            // Even after an answer: another one must come, and takes this back.
            turn.finished = false;
            if self.trouble.len() < MAX_TROUBLE {
                self.trouble.push_str(text);
                self.trouble.push('\n');
            }
            turn.trouble(None, &self.trouble);
        }
        turn.keep_words(text);
        turn.keep_words("\n");
        if let Some(path) = text.strip_prefix("Applied edit to ") {
            on_act(Act::Changed { path: path.to_owned(), diff: String::new() }.bounded());
        } else if !text.is_empty() {
            on_act(Act::Said { text: text.to_owned() }.bounded());
        }
    }
}

/// What one `Tokens:` line says.
#[derive(Default)]
struct Tokens {
    usage: Usage,
    session_cost: Option<Exact>,
}

impl Tokens {
    /// `1.2k sent, 3k cache write, 2k cache hit, 345 received. Cost: $0.01 message, $0.02 session.`
    fn read(text: &str) -> Option<Self> {
        let (counts, rest) = text.split_once(" received.")?;
        let mut tokens = Self::default();
        let mut parts = counts.split(", ").collect::<Vec<_>>();
        let usage = &mut tokens.usage;
        usage.output_tokens = rounded(parts.pop()?)?;
        for part in parts {
            let (number, what) = part.split_once(' ')?;
            let place = match what {
                "sent" => &mut usage.input_tokens,
                "cache write" => &mut usage.cache_creation_input_tokens,
                "cache hit" => &mut usage.cache_read_input_tokens,
                _ => continue,
            };
            *place = rounded(number)?;
        }
        // What was read from or written to a cache is part of what was sent.
        let cached = usage.cache_read_input_tokens.saturating_add(usage.cache_creation_input_tokens);
        usage.input_tokens = usage.input_tokens.saturating_sub(cached);
        let cost = rest.rsplit_once(", $").and_then(|(_, cost)| cost.strip_suffix(" session."));
        tokens.session_cost = cost.and_then(|digits| Exact::parse(digits).ok());
        Some(tokens)
    }
}

/// `345`, `1.2k`, `1,234`, `3M`.
fn rounded(number: &str) -> Option<u64> {
    let number = number.trim().replace(',', "");
    let (digits, per): (&str, u64) = match number.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => number.strip_suffix('M').map_or((number.as_str(), 1), |digits| (digits, 1_000_000)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let tenths = match fraction.as_bytes() {
        [] => 0,
        [digit, ..] if digit.is_ascii_digit() => u64::from(digit - b'0'),
        _ => return None,
    };
    whole.parse::<u64>().ok()?.checked_mul(per)?.checked_add(tenths * per / 10)
}
