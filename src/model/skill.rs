//! The skills that every swarm has: what they are called, what they say, and to whom.
//!
//! Role: the shipped texts (`prompts/skills/`), the part of each that concerns a role, and the bounds of a workspace's own
//! `skills/`; those stand beside these and take no one's place. Not its role: files; what a run recorded of them.
//! Invariant: a capsule links what its role was told and nothing else, each with the digest of its text, which is in the
//! evidence: it can be seen which words an agent worked under.

use super::digest::Digest;
use super::ids::Role;
use super::learnings::Link;

/// The folder in a workspace whose Markdown files are added.
pub const FOLDER: &str = "skills";
/// How many of those are told.
pub const MOST_OWN: usize = 12;
/// A larger one is not told.
pub const MOST_OWN_BYTES: usize = 8 * 1024;
/// Nor is one that would make all of them together larger than this.
pub const MOST_OWN_TOTAL: usize = 16 * 1024;
/// Where the texts that a run's agents were told stand in the evidence.
const KEPT: &str = "evidence/loop/skills";

/// Where the text of a workspace's own skill is kept, whatever becomes of the file.
pub fn kept_own(path: &str) -> String {
    format!("{KEPT}/own/{}", path.rsplit('/').next().unwrap_or(path))
}

/// Do skills speak to this role? To those of a swarm alone.
pub const fn is_told(role: Role) -> bool {
    matches!(role, Role::Scout | Role::Solver | Role::Skeptic)
}

/// A skill as it is shipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skill {
    pub name: &'static str,
    pub text: &'static str,
}

/// In the order in which they count: safety first.
pub const SHIPPED: [Skill; 4] = [
    Skill { name: "prime-safety", text: include_str!("../../prompts/skills/prime-safety.md") },
    Skill { name: "prime-coder", text: include_str!("../../prompts/skills/prime-coder.md") },
    Skill { name: "phuc-swarms", text: include_str!("../../prompts/skills/phuc-swarms.md") },
    Skill { name: "phuc-loop", text: include_str!("../../prompts/skills/phuc-loop.md") },
];

impl Skill {
    /// Its text in the evidence, as a capsule links it.
    pub fn link(&self) -> Link {
        Link { path: format!("{KEPT}/{}.md", self.name), sha256: Digest::of(self.text.as_bytes()) }
    }

    /// Does it say something to this role?
    pub fn concerns(&self, role: Role) -> bool {
        is_told(role) && self.lines_for(role).next().is_some()
    }

    /// The lines for everybody and those for this role.
    fn lines_for(&self, role: Role) -> impl Iterator<Item = &'static str> {
        let mut concerned = false;
        self.text.lines().filter(move |line| {
            if let Some(whose) = line.strip_prefix("## ") {
                concerned = whose == "all" || whose == role.name();
                return false;
            }
            concerned && !line.trim().is_empty()
        })
    }
}

/// What the skills say to a role; empty for roles that no skill speaks to.
pub fn told(role: Role) -> String {
    if !is_told(role) {
        return String::new();
    }
    let lines: Vec<&str> = SHIPPED.iter().flat_map(|skill| skill.lines_for(role)).collect();
    format!("\n\nSkills:\n{}\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_skill_is_short_and_says_something_to_somebody() {
        for skill in SHIPPED {
            assert!(skill.text.len() <= 1_536, "{}: {} bytes", skill.name, skill.text.len());
            let roles = [Role::Scout, Role::Solver, Role::Skeptic];
            assert!(roles.into_iter().any(|role| skill.lines_for(role).next().is_some()), "{}", skill.name);
            assert_eq!(skill.link().path, format!("evidence/loop/skills/{}.md", skill.name));
        }
    }

    #[test]
    fn a_role_hears_what_concerns_it() {
        let (scout, solver) = (told(Role::Scout), told(Role::Solver));
        assert!(scout.contains("no network") && solver.contains("no network"));
        assert!(scout.contains("no patches") && !solver.contains("no patches"));
        assert_eq!(told(Role::Critic), "");
        for role in [Role::Author, Role::Critic, Role::Builder] {
            assert!(SHIPPED.iter().all(|skill| !skill.concerns(role)), "{role}");
        }
        let loops = SHIPPED.iter().find(|skill| skill.name == "phuc-loop").unwrap();
        assert!(loops.concerns(Role::Scout) && !loops.concerns(Role::Solver));
    }
}
