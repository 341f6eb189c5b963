//! The playbooks that loop.yaml can name: one row each with what the declaration itself has to know of it.
//!
//! Everything else about a playbook stands in its room (`playbook`), behind [`machine::playbook::Playbook`].
//!
//! [`machine::playbook::Playbook`]: crate::machine::playbook::Playbook

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::criterion::{Criterion, EXIT_GATE, ITEMS, Proof, VERIFIED};
use crate::model::ids::Role;

/// What an iteration does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Playbook {
    #[default]
    Swarm,
    Value,
    Prd,
    Micro,
    #[cfg(test)]
    #[schemars(skip)]
    Toy,
}

/// Id and text of the criterion that a playbook adds by itself, and what proves it.
type WayOut = (&'static str, &'static str, Proof);

struct Row {
    playbook: Playbook,
    /// Also the key of its settings, where it has some.
    name: &'static str,
    /// Who works in it, in the order of the work.
    roles: &'static [Role],
    /// What its residual counts, unless a command measures it.
    residual: &'static str,
    way_out: Option<WayOut>,
    /// Does an iteration consist of several steps, each with its own agents?
    in_steps: bool,
}

const AUTHOR_AND_CRITIC: &[Role] = &[Role::Author, Role::Critic, Role::Fixer];

static ROWS: &[Row] = &[
    Row {
        playbook: Playbook::Swarm,
        name: "swarm",
        roles: &[Role::Scout, Role::Solver, Role::Skeptic],
        residual: "unmet criteria / all criteria",
        way_out: None,
        in_steps: false,
    },
    Row {
        playbook: Playbook::Value,
        name: "value",
        roles: &[
            Role::Reasoner,
            Role::Researcher,
            Role::Builder,
            Role::Qc,
            Role::Classifier,
            Role::Fixer,
            Role::Evaluator,
        ],
        residual: "1 - value score",
        way_out: Some((
            EXIT_GATE,
            "The exit gate is passed: every check passes, the promised value is there.",
            Proof::ExitGate,
        )),
        in_steps: true,
    },
    Row {
        playbook: Playbook::Prd,
        name: "prd",
        roles: AUTHOR_AND_CRITIC,
        residual: "items that do not pass / all items",
        way_out: Some((ITEMS, "Every item of the PRD passes.", Proof::Items)),
        in_steps: false,
    },
    Row {
        playbook: Playbook::Micro,
        name: "micro",
        roles: AUTHOR_AND_CRITIC,
        residual: "failing checks + open concerns",
        way_out: Some((VERIFIED, "The critic finds nothing that matters.", Proof::Verified)),
        in_steps: false,
    },
    #[cfg(test)]
    Row {
        playbook: Playbook::Toy,
        name: "toy",
        roles: &[Role::Solver],
        residual: "coins that are missing",
        way_out: None,
        in_steps: false,
    },
];

impl Playbook {
    fn row(self) -> &'static Row {
        ROWS.iter().find(|row| row.playbook == self).unwrap_or(&ROWS[0])
    }

    /// All of them, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.playbook)
    }

    pub fn name(self) -> &'static str {
        self.row().name
    }

    pub fn roles(self) -> &'static [Role] {
        self.row().roles
    }

    pub fn residual(self) -> &'static str {
        self.row().residual
    }

    /// Does an iteration consist of several steps?
    pub fn works_in_steps(self) -> bool {
        self.row().in_steps
    }

    /// Does it start services? Then its commands share a loopback network, unless the declaration says otherwise.
    pub const fn wants_loopback(self) -> bool {
        matches!(self, Self::Value)
    }

    /// The criterion that it adds by itself: there is no success without it.
    pub fn way_out(self) -> Option<Criterion> {
        let (id, text, proof) = self.row().way_out.clone()?;
        Some(Criterion {
            id: id.to_owned(),
            text: text.to_owned(),
            proof,
            protects: Vec::new(),
            hidden: None,
            writes: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_playbook_has_its_row_and_the_name_that_yaml_has() {
        for playbook in Playbook::all() {
            assert_eq!(playbook.row().playbook, playbook);
            assert_eq!(serde_json::to_value(playbook).unwrap(), playbook.name());
        }
    }
}
