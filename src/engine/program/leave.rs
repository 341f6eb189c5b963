//! May a program do what it asks for? Rules first.
//!
//! Role: what the rules say about deeds of an agent program. Not its role: asking people (`serve`), reading what a
//! program says (`agent::acp`). Invariants: one denied deed denies all, one that is asked about is asked for all; what is
//! not understood is asked about; our own tools are always allowed, they decide for themselves.

use serde_json::json;

use crate::agent::program::Deed;
use crate::engine::context::Context;
use crate::engine::offer;
use crate::tool::permission::{Rules, Ruling};

/// What the rules say. Where nothing is said, our sandbox decides as it does for our own tools; without one a person does.
pub(super) fn by_rules(cx: &Context<'_>, deeds: &[Deed]) -> Ruling {
    decide(&cx.rules, deeds, cx.sandbox().holds_read_only())
}

fn decide(rules: &Rules, deeds: &[Deed], caged: bool) -> Ruling {
    let asks = || Ruling::Ask { rule: "the program asks".to_owned() };
    let mut verdict: Option<Ruling> = None;
    for deed in deeds {
        let one = match of(rules, deed) {
            Ruling::Allowed { rule } if rule == "default" && !caged => asks(),
            one => one,
        };
        verdict = Some(match (verdict, one) {
            (_, denied @ Ruling::Denied { .. }) => return denied,
            (Some(asked @ Ruling::Ask { .. }), _) => asked,
            (_, one) => one,
        });
    }
    verdict.unwrap_or_else(asks)
}

fn of(rules: &Rules, deed: &Deed) -> Ruling {
    match deed {
        Deed::Mcp { server, .. } if server == offer::SERVER_NAME => Ruling::Allowed { rule: "our own tool".to_owned() },
        Deed::Mcp { server, tool } => {
            // Somebody else's server is outside of our sandbox's reach.
            match rules.decide("mcp", &json!({"path": format!("{server}/{tool}")})) {
                Ruling::Allowed { rule } if rule == "default" => Ruling::Ask { rule: "the program asks".to_owned() },
                ruling => ruling,
            }
        }
        Deed::Shell(command) => rules.decide("bash", &json!({"command": command})),
        Deed::Read(path) => rules.decide("read_file", &json!({"path": path})),
        Deed::Write(path) => rules.decide("write_file", &json!({"path": path})),
    }
}

/// Rules that would allow these deeds, as loop.yaml has them.
pub(super) fn allowing(deeds: &[Deed]) -> Option<String> {
    let rules: Vec<String> = deeds
        .iter()
        .map(|deed| match deed {
            Deed::Shell(command) => format!("shell({command})"),
            Deed::Read(path) => format!("read({path})"),
            Deed::Write(path) => format!("write({path})"),
            Deed::Mcp { server, tool } => format!("mcp({server}/{tool})"),
        })
        .collect();
    (!rules.is_empty()).then(|| rules.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::loop_file::PermissionsDecl;

    fn rules(yaml: &str) -> Rules {
        let declared: PermissionsDecl = serde_yaml::from_str(yaml).unwrap();
        Rules::of(&declared, &[]).unwrap()
    }

    fn allowed(ruling: &Ruling) -> bool {
        matches!(ruling, Ruling::Allowed { .. })
    }

    #[test]
    fn the_strictest_deed_decides() {
        let rules = rules("{ allow: ['write(src/*)'], deny: ['write(secrets/*)'] }");
        let write = |path: &str| Deed::Write(path.to_owned());
        assert!(allowed(&decide(&rules, &[write("src/a")], false)));
        let denied = decide(&rules, &[write("src/a"), write("docs/b"), write("secrets/c")], true);
        assert_eq!(denied, Ruling::Denied { rule: "write(secrets/*)".to_owned() });
        let asked = decide(&rules, &[write("docs/b"), write("src/a")], true);
        assert!(matches!(asked, Ruling::Ask { .. }), "{asked:?}");
    }

    #[test]
    fn where_nothing_is_said_the_sandbox_or_a_person_decides() {
        let none = rules("{}");
        let run = [Deed::Shell("ls -l".to_owned())];
        assert!(allowed(&decide(&none, &run, true)));
        assert!(matches!(decide(&none, &run, false), Ruling::Ask { .. }));
        assert!(matches!(decide(&none, &[], true), Ruling::Ask { .. }), "what is not understood");
        let critical = [Deed::Shell("git push --force".to_owned())];
        assert!(matches!(decide(&none, &critical, true), Ruling::Ask { .. }));
    }

    #[test]
    fn our_own_tools_are_allowed_and_those_of_others_asked_about() {
        let of = |server: &str| [Deed::Mcp { server: server.to_owned(), tool: "t".to_owned() }];
        let none = rules("{ otherwise: deny }");
        assert!(allowed(&decide(&none, &of(offer::SERVER_NAME), false)));
        assert!(matches!(decide(&none, &of("other"), true), Ruling::Denied { .. }));
        assert!(matches!(decide(&rules("{}"), &of("other"), true), Ruling::Ask { .. }));
        assert!(allowed(&decide(&rules("{ allow: ['mcp(other/*)'] }"), &of("other"), true)));
    }
}
