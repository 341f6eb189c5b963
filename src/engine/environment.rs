//! What an agent is told of the place where it works: network, what it may write, what is left of the budget, services,
//! a browser or none.
//!
//! Role: true sentences, from what is in force and what was recorded. Not its role: what the call is about (the brief),
//! what it has to do (the prompt). Invariant: a few hundred bytes; nothing an agent said stands in it unbounded.

use crate::machine::network;
use crate::machine::run::RunState;
use crate::model::hosts::Pattern;
use crate::model::loop_file::NetworkDecl;
use crate::model::purpose::Purpose;
use crate::model::value::tools::Discovery;

use super::confine;
use super::context::Context;

/// Names that are listed.
const MAX_NAMES: usize = 12;
/// Programs that show pages. Discovery names them where the work needs one, and preflight found them.
const BROWSERS: [&str; 8] = [
    "chromedriver",
    "chromium",
    "chromium-browser",
    "firefox",
    "geckodriver",
    "google-chrome",
    "playwright",
    "puppeteer",
];

/// The section for a call.
pub(super) fn section(cx: &Context<'_>, purpose: Purpose) -> String {
    let place = Place {
        writes: purpose.role().may_write(),
        held: cx.sandbox().holds_read_only(),
        confined: cx.sandbox().in_force().is_confined(),
        network: cx.sandbox().in_force().network,
        shared: cx.sandbox().network().is_ok(),
        reached: network::is_listed(cx.state()).then(|| network::patterns(cx.state())),
        sealed: confine::protected_from(cx, purpose.role()).iter().map(|path| path.display().to_string()).collect(),
    };
    let lines = [files(&place), reach(&place), budget(cx.state()), product(cx.state())];
    format!("\n=== ENVIRONMENT ===\n{}\n", lines.join("\n"))
}

/// Where the commands of a call run.
struct Place {
    writes: bool,
    held: bool,
    confined: bool,
    network: NetworkDecl,
    /// Do all commands of the run meet in it?
    shared: bool,
    /// Where the network is one by list: what is on it.
    reached: Option<Vec<Pattern>>,
    sealed: Vec<String>,
}

fn files(place: &Place) -> String {
    if place.writes {
        let more = if place.sealed.len() > MAX_NAMES { ", ..." } else { "" };
        let names: Vec<&str> = place.sealed.iter().take(MAX_NAMES).map(String::as_str).collect();
        return format!("Files: you may write in the workspace, but not {}{more}.", names.join(", "));
    }
    if place.held {
        return "Files: the workspace is read-only for you. What writes where it stands (a build, a server with data, a \
                test cache) fails here for that reason alone: copy what it needs to \"$TMPDIR\" and run it there."
            .to_owned();
    }
    "Files: read-only for you; there is no shell here, since nothing would keep a command from writing.".to_owned()
}

fn reach(place: &Place) -> String {
    if !place.confined {
        return "Network: as this machine has it; nothing is held back.".to_owned();
    }
    let whose = if place.shared { "shared by all commands and services of this run" } else { "new for each command" };
    let words = match (place.network, &place.reached) {
        (NetworkDecl::Off, _) => {
            "none. No download and no socket, not even to this machine: what listens or connects fails \
                                  for that reason alone"
                .to_owned()
        }
        (NetworkDecl::Loopback, None) => format!("127.0.0.1 only, {whose}. No download"),
        (NetworkDecl::Loopback, Some(hosts)) => {
            let more = if hosts.len() > MAX_NAMES { ", ..." } else { "" };
            let names: Vec<&str> = hosts.iter().take(MAX_NAMES).map(Pattern::as_str).collect();
            let names = if names.is_empty() { "nothing yet".to_owned() } else { names.join(", ") };
            format!("127.0.0.1, {whose}; beyond it, by the proxy that the environment names: {names}{more}")
        }
        (NetworkDecl::On, _) => "open".to_owned(),
    };
    format!("Network: {words}. What a command starts ends with the command.")
}

fn budget(state: &RunState) -> String {
    let (limits, spent) = (&state.limits, &state.spent);
    let iteration = limits.max_tool_calls_per_iteration.saturating_sub(spent.iteration_tool_calls);
    let left = iteration.min(limits.max_total_tool_calls.saturating_sub(spent.tool_calls));
    format!("Budget: {left} tool calls are left for this iteration, which has several steps like yours.")
}

fn product(state: &RunState) -> String {
    let context = state.value().context.as_ref();
    let services = match context.map(|context| context.services.len()) {
        None | Some(0) => "Services: none are declared.",
        Some(_) => "Services: those in SERVICES; the engine runs them.",
    };
    format!("{services} {}", browser(context))
}

fn browser(context: Option<&Discovery>) -> String {
    let tools = context.map(|context| context.tools_required.as_slice()).unwrap_or_default();
    let found: Vec<&str> = BROWSERS.into_iter().filter(|name| tools.iter().any(|tool| tool == name)).collect();
    if found.is_empty() {
        return "Browser: none. Try a page by HTTP requests and by what it serves, never by clicking.".to_owned();
    }
    format!("Browser: {}, without a screen.", found.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judge_is_told_where_it_may_write_and_a_builder_where_not() {
        let mut place = Place {
            writes: false,
            held: true,
            confined: true,
            network: NetworkDecl::Off,
            shared: false,
            reached: None,
            sealed: (0..20).map(|n| format!("file{n}")).collect(),
        };
        assert!(files(&place).contains("copy what it needs to \"$TMPDIR\""), "{}", files(&place));
        assert!(reach(&place).contains("not even to this machine"), "{}", reach(&place));
        place.writes = true;
        assert!(files(&place).contains("but not file0, ") && files(&place).ends_with("file11, ...."));
        place.confined = false;
        assert!(reach(&place).contains("nothing is held back"));
    }

    #[test]
    fn there_is_a_browser_only_where_discovery_names_one() {
        assert!(browser(None).starts_with("Browser: none."));
        let found = serde_json::json!({"deliverable_type": "software", "project_type": "p", "codebase_state": "greenfield",
            "value_proofs": ["v"], "tools_required": ["node", "chromium"]});
        let found: Discovery = serde_json::from_value(found).unwrap();
        assert_eq!(browser(Some(&found)), "Browser: chromium, without a screen.");
    }
}
