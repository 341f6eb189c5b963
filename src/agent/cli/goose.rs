//! goose (`goose run --instructions - --output-format stream-json`).
//!
//! Role: its command line and its stream. Read from its sources of 2026 (1.2x to 1.53).
//! Not its role: recipes and schedules.
//!
//! Shape: `message` lines are pieces of a conversation; pieces of one message share an id; content is text,
//! thinking, `toolRequest` or `toolResponse`; `notification` is a tool's log; `error` ends badly; `complete`
//! ends well and has the tokens. It names no session in its stream. When its model's service fails it says so
//! as the assistant ("Ran into this error: …") and completes all the same.
//!
//! Invariant: only `complete` finishes a turn, and not after such words.

use serde_json::Value;

use crate::agent::message::Usage;
use crate::agent::program::{Offer, Task};
use crate::model::act::Act;
use crate::model::loop_file::PromptBy;

use super::acts::tell;
use super::argv::{self, Announce, Ends, Line};
use super::turn::{Turn, blocks_text, count, string, text_of};
use super::{Facts, Invocation};

pub(super) static FACTS: Facts = Facts {
    own_folders: &[".config/goose", ".local/share/goose", ".local/state/goose"],
    key_variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY"],
    takes_tools: true,
    signed_in_files: &[".config/goose/config.yaml"],
    version: &["--version"],
    status: None,
    sign_in: "set up its provider once with `goose configure`, or declare the provider's key in the agent's `env`",
};

/// What it says, as the assistant, when its model's service failed.
const FAILED: &str = "Ran into this error:";
/// Pieces are shown together up to this size.
const SHOWN_AT: usize = 2 * 1024;

pub(super) fn invocation(mut line: Line<'_>, task: &Task) -> Result<Invocation, String> {
    let run = line.find(&["run"]);
    if run.is_none() {
        line.add(&["run"]);
    }
    if line.gives(&["--recipe", "--instructions", "-i", "--text", "-t"]) && line.place().is_none() {
        return Err("`goose` is given its task by nightloop: leave --recipe, --instructions and --text out, \
                    or put {prompt} as the value of --text"
            .into());
    }
    line.format(&["--output-format"], "stream-json")?;
    line.flag(&["--quiet", "-q"]);
    if let Some(model) = &task.model {
        line.option(&["--model"], model);
    }
    let goes_on = line.gives(&["--resume", "-r", "--name", "-n", "--session-id", "--no-session"]);
    if let Some(session) = task.session.as_deref().filter(|_| !goes_on) {
        line.add(&["--resume", "--session-id", session]);
    }
    if let Some(offer) = &task.offer {
        line.add(&["--with-extension", &extension(offer)?]);
    }
    let system = task.system.trim();
    let by_flag = !system.is_empty() && line.option(&["--system"], system);
    let prompt = if by_flag { task.prompt.clone() } else { argv::with_system(task, false) };
    let ends = Ends {
        default: PromptBy::Stdin,
        before_prompt: &[],
        by_stdin: &["--instructions", "-"],
        by_argument: Announce::Joined("--text"),
    };
    let mut invocation = line.build(run.map_or(1, |at| at + 1), prompt, ends)?;
    // It has no mode that reads files and changes none ("chat" has no tools at all): the sandbox holds.
    invocation.env.push(("GOOSE_MODE".into(), "auto".into()));
    Ok(invocation)
}

/// `NAME=value program argument …` in one word, as it splits it again: at blanks, quotes kept together.
fn extension(offer: &Offer) -> Result<String, String> {
    let (command, args) = argv::command_of(offer)?;
    let variables = offer.env.iter().map(|(name, value)| format!("{name}={value}"));
    let words = variables.chain(std::iter::once(command.clone())).chain(args.iter().cloned());
    let quoted = words.map(|word| match word {
        word if word.contains(['"', '\'']) => Err(format!("goose cannot be given `{}`", word.escape_debug())),
        word if word.is_empty() || word.contains(char::is_whitespace) => Ok(format!("\"{word}\"")),
        word => Ok(word),
    });
    if command.contains('=') {
        return Err(format!("goose would take `{command}` for a variable"));
    }
    Ok(quoted.collect::<Result<Vec<_>, _>>()?.join(" "))
}

#[derive(Default)]
pub(super) struct Stream {
    /// The message whose pieces are coming; some have no id.
    message: Option<String>,
    /// The next words begin anew: something else came in between.
    anew: bool,
    unshown: String,
}

impl Stream {
    pub fn event(&mut self, event: &Value, turn: &mut Turn, on_act: &mut dyn FnMut(Act)) {
        match string(event, "type").unwrap_or_default() {
            "message" => {
                if let Some(message) = event.get("message") {
                    self.message(message, turn, on_act);
                }
            }
            "model_change" => turn.name_model(string(event, "model")),
            "error" => {
                self.show(on_act);
                turn.trouble(None, string(event, "error").unwrap_or_default());
            }
            "complete" => {
                self.show(on_act);
                turn.usage = usage(event);
                turn.finished = true;
                if turn.words().trim_start().starts_with(FAILED) {
                    let words = turn.words().to_owned();
                    turn.trouble(None, words.trim_start().trim_start_matches(FAILED));
                }
            }
            _ => (),
        }
    }

    fn message(&mut self, message: &Value, turn: &mut Turn, on_act: &mut dyn FnMut(Act)) {
        let assistant = string(message, "role") == Some("assistant");
        let hidden = message.pointer("/metadata/userVisible").and_then(Value::as_bool) == Some(false);
        let id = string(message, "id").map(str::to_owned);
        if !assistant || hidden || id != self.message {
            self.show(on_act);
            self.anew = true;
        }
        self.message = id;
        for block in message.get("content").and_then(Value::as_array).into_iter().flatten() {
            match string(block, "type").unwrap_or_default() {
                "text" if assistant && !hidden => {
                    if std::mem::take(&mut self.anew) {
                        turn.forget_words();
                    }
                    let text = string(block, "text").unwrap_or_default();
                    turn.keep_words(text);
                    self.unshown.push_str(text);
                    if self.unshown.len() > SHOWN_AT {
                        self.show(on_act);
                    }
                }
                "thinking" => tell(string(block, "thinking"), |text| Act::Thought { text }, on_act),
                "toolRequest" => {
                    self.show(on_act);
                    self.anew = true;
                    called(block, on_act);
                }
                "toolResponse" => {
                    self.show(on_act);
                    returned(block, on_act);
                }
                _ => (),
            }
        }
    }

    fn show(&mut self, on_act: &mut dyn FnMut(Act)) {
        let text = std::mem::take(&mut self.unshown);
        tell(Some(&text), |text| Act::Said { text }, on_act);
    }
}

fn called(block: &Value, on_act: &mut dyn FnMut(Act)) {
    let call = block.get("toolCall").unwrap_or(&Value::Null);
    let call = call.get("value").unwrap_or(call);
    let act = Act::Called {
        id: string(block, "id").unwrap_or_default().to_owned(),
        tool: string(call, "name").unwrap_or_default().to_owned(),
        input: call.get("arguments").map(text_of).unwrap_or_default(),
    };
    on_act(act.bounded());
}

fn returned(block: &Value, on_act: &mut dyn FnMut(Act)) {
    let result = block.get("toolResult").unwrap_or(&Value::Null);
    let value = result.get("value").unwrap_or(&Value::Null);
    let failed = string(result, "status") == Some("error");
    let is_error = failed || value.get("isError").and_then(Value::as_bool).unwrap_or_default();
    let text = if failed {
        result.get("error").map(text_of).unwrap_or_default()
    } else {
        blocks_text(value.get("content").unwrap_or(value))
    };
    on_act(Act::Returned { id: string(block, "id").unwrap_or_default().to_owned(), is_error, text }.bounded());
}

/// Older versions give the total only: it is counted as input, so that a limit still holds.
fn usage(event: &Value) -> Usage {
    let output = count(event, "output_tokens");
    let input = count(event, "input_tokens").max(count(event, "total_tokens").saturating_sub(output));
    Usage { input_tokens: input, output_tokens: output, ..Usage::default() }
}
