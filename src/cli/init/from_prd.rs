//! A loop.yaml for a prd.json that is there already.
//!
//! Role: the text of the declaration, from the items and from what the project's files suggest as its check. Pure.
//! Not its role: reading, writing, telling. Invariants: what comes out can be read as a declaration, whatever stands in
//! the PRD; an inferred command says that it is one; nothing is invented where nothing was found.

use crate::model::loop_file::LOOPS_PER_ITEM;
use crate::model::prd::{Counts, Prd};
use crate::model::project_check::Inferred;
use crate::model::safe::Safe;
use crate::model::{budget, loop_file};

/// Iterations beside the attempts at items: a detour or two, and a PRD that grows.
const SPARE_ITERATIONS: u64 = 3;
/// However many items there are, somebody should look at it after a day.
const LONGEST_SECONDS: u64 = 86_400;

/// The declaration. `file` is the PRD's place in the workspace.
pub fn declaration(prd: &Prd, file: &str, checks: &[Inferred], agent: &str) -> String {
    let Counts { all, passing, failing } = prd.counts();
    let name = prd.name().or(prd.branch()).unwrap_or("prd");
    let usual = format!("Every item of {file} passes.");
    let goal = prd.description().or(prd.name()).unwrap_or(&usual);
    let mut text = format!(
        "# nightloop: the items of {place}, one an iteration, each proven by checks and a critic.\n\
         # Written by `nightloop init --from` for {all} items, of which {passing} pass. `nightloop run` starts it.\n\
         spec: \"1.0\"\n\
         name: {name}\n\
         playbook: prd\n\
         goal: {goal}\n",
        place = Safe::line(file),
        name = quoted(name),
        goal = quoted(goal),
    );
    text.push_str(&criteria(checks));
    text.push_str(
        "halting_certificates: [EXACT]               # every item passes, and the checks hold when run again\n",
    );
    text.push_str("prd:\n");
    let is_usual = file == loop_file::PrdSettings::default().file;
    let comment = if is_usual { "# " } else { "" };
    text.push_str(&format!("  {comment}file: {}\n", quoted(file)));
    text.push_str(
        "  park_and_continue: true                   # false: the run waits at the first item that needs a person\n\
         \x20 # items:                                  # what is known of single items, by their ids\n",
    );
    if let Some(item) = prd.next_item(&Default::default()) {
        let id = quoted(&item.id);
        text.push_str(&format!("  #   {id}: {{ check: [\"sh\", \"checks/one.sh\"], files: [\"src/**\"] }}\n"));
    }
    let budget = sized(failing);
    text.push_str(&format!(
        "# {LOOPS_PER_ITEM} attempts for each open item, and {SPARE_ITERATIONS} spare\n\
         budget: {{ max_iterations: {}, max_total_seconds: {}, max_total_tool_calls: {} }}\n\
         agents:\n  builder: {agent}\n\
         # roles: {{ critic: judge }}                  # author, critic, fixer: the first agent unless it says otherwise\n\
         permissions: {{ allow: [], ask: [], deny: [\"shell(git push*)\"] }}\n\
         # Own servers, and through a proxy the package registries of the tools in use. Or: off | loopback | [host] | on\n\
         sandbox: {{ network: registries }}\n",
        budget.max_iterations, budget.max_total_seconds, budget.max_total_tool_calls,
    ));
    text
}

fn criteria(checks: &[Inferred]) -> String {
    if checks.is_empty() {
        return "# No command was found that checks this project. Without one the run ends with NEED_INFO: nothing could show\n\
                # that an item passes. Name yours:\n\
                # acceptance_criteria:\n\
                #   - id: check\n\
                #     text: \"The project's own check exits 0.\"\n\
                #     check: [\"./check.sh\"]               # program and arguments; run after every item\n"
            .to_owned();
    }
    let mut text = "acceptance_criteria:                        # run after every item\n".to_owned();
    for check in checks {
        let argv: Vec<String> = check.argv.iter().map(|word| quoted(word)).collect();
        text.push_str(&format!(
            "  - id: {}\n    text: {}\n    # inferred from {}: is it what shows that the project is sound?\n    check: [{}]\n    timeout_seconds: {}\n",
            check.id,
            quoted(&format!("`{}` exits 0.", check.command())),
            check.from,
            argv.join(", "),
            loop_file::DEFAULT_CHECK_SECONDS,
        ));
    }
    text
}

/// Limits for as many open items, in proportion to the usual ones, and as the gates clamp them.
fn sized(open: u32) -> budget::Limits {
    let base = budget::Limits::BASE;
    let iterations = u64::from(open).saturating_mul(u64::from(LOOPS_PER_ITEM)).saturating_add(SPARE_ITERATIONS);
    let share = |total: u64| total.div_ceil(base.max_iterations).saturating_mul(iterations).max(total);
    let requested = budget::Requested {
        max_iterations: Some(iterations),
        max_total_seconds: Some(share(base.max_total_seconds).min(LONGEST_SECONDS)),
        max_total_tool_calls: Some(share(base.max_total_tool_calls)),
        ..budget::Requested::default()
    };
    budget::effective(&requested, budget::Profile::Strict).limits
}

/// Foreign text as a YAML scalar: one harmless line between double quotes. What JSON escapes, YAML reads alike.
fn quoted(text: &str) -> String {
    serde_json::Value::from(Safe::line(text).as_str()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::init::agent::USUAL;
    use crate::model::criterion::Proof;
    use crate::model::learnings::SpecVersion;
    use crate::model::project_check::{Clues, infer};

    fn prd(items: usize, head: &str) -> Prd {
        let items: Vec<String> =
            (0..items).map(|n| format!(r#"{{"id": "US-{n}", "title": "t", "passes": {}}}"#, n % 4 == 3)).collect();
        Prd::read(format!("{{{head} \"userStories\": [{}]}}", items.join(",")).as_bytes()).unwrap()
    }

    fn parsed(text: &str) -> loop_file::LoopFile {
        loop_file::parse(text, "loop.yaml").unwrap_or_else(|e| panic!("{e}\n{text}"))
    }

    #[test]
    fn a_prd_becomes_a_loop() {
        let make = infer(&Clues { makefile: Some("check:\n".to_owned()), ..Clues::default() });
        let prd = prd(8, r#""project": "shop", "description": "Sells things.","#);
        let text = declaration(&prd, "prd.json", &make, USUAL);
        let file = parsed(&text);
        assert_eq!((file.playbook, file.spec()), (loop_file::Playbook::Prd, SpecVersion::V1));
        assert_eq!((file.name.as_deref(), file.goal.as_deref()), (Some("shop"), Some("Sells things.")));
        assert_eq!(file.prd().file, "prd.json");
        // Six of eight are open.
        let limits = budget::effective(&file.budget, file.profile);
        assert_eq!((limits.limits.max_iterations, limits.limits.max_total_tool_calls), (21, 1_050));
        assert!(limits.clamps.is_empty());
        let Proof::Check { argv, .. } = &file.criteria()[0].proof else { panic!("{text}") };
        assert_eq!(argv, &["make", "check"]);
        assert!(text.contains("# inferred from Makefile"), "{text}");
    }

    #[test]
    fn another_file_is_named_and_a_goal_is_never_missing() {
        let file = parsed(&declaration(&prd(1, ""), "plans/a b.json", &[], USUAL));
        assert_eq!(file.prd().file, "plans/a b.json");
        assert_eq!(file.goal.as_deref(), Some("Every item of plans/a b.json passes."));
        assert!(!file.criteria().iter().any(|criterion| matches!(criterion.proof, Proof::Check { .. })));
    }

    /// The placeholder is right once it is uncommented.
    #[test]
    fn without_a_check_there_is_a_place_for_one() {
        let text = declaration(&prd(1, ""), "prd.json", &[], USUAL);
        let filled: String = text
            .lines()
            .map(|line| {
                match line.strip_prefix("# ").filter(|rest| rest.starts_with("acceptance") || rest.starts_with("  ")) {
                    Some(rest) => format!("{rest}\n"),
                    None => format!("{line}\n"),
                }
            })
            .collect();
        let Proof::Check { argv, .. } = &parsed(&filled).criteria()[0].proof else { panic!("{filled}") };
        assert_eq!(argv, &["./check.sh"]);
    }

    #[test]
    fn limits_grow_with_the_items_and_end_somewhere() {
        assert_eq!(sized(0).max_iterations, 3);
        assert_eq!((sized(1).max_iterations, sized(1).max_total_seconds), (6, 14_400));
        assert_eq!((sized(17).max_iterations, sized(17).max_total_seconds), (54, 54 * 1_440));
        assert_eq!((sized(10_000).max_iterations, sized(10_000).max_total_seconds), (30_003, 86_400));
    }

    /// Whatever stands in a PRD, the declaration can be read and says the same.
    #[test]
    fn hostile_names_stay_names() {
        for text in [
            "a: b # c",
            "\"quoted\" \\ {x}",
            "- *ref &anchor !tag",
            "\u{7}\u{1b}[31m\u{85}\u{2028}bell",
            "é\tü\n---\nz",
            "${HOME} %TAG",
            "null",
            "\u{feff}x\u{7f}",
        ] {
            let head = format!("\"project\": {0}, \"description\": {0}, ", serde_json::Value::from(text));
            let file = parsed(&declaration(&prd(1, &head), "prd.json", &[], USUAL));
            assert_eq!(file.goal.as_deref(), Some(Safe::line(text.trim()).as_str()), "{text:?}");
            let id = serde_json::Value::from(text);
            let odd = format!(r#"{{"items": [{{"id": {id}, "title": "t", "passes": false}}]}}"#);
            parsed(&declaration(&Prd::read(odd.as_bytes()).unwrap(), "prd.json", &[], USUAL));
        }
    }
}
