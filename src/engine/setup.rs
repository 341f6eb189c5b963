//! How an agent is asked: everything that its requests depend on besides the conversation.

use crate::agent::{CacheTtl, Price, Thinking, Usage};
use crate::model::decimal::Exact;
use crate::model::ids::Role;
use crate::model::loop_file::{Effort, WebDecl};

/// How an agent is asked. Everything that its requests depend on besides the conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Setup {
    pub max_tokens: u32,
    /// The most its model can write, where that is known.
    pub max_output: Option<u32>,
    /// What its model can hold, where that is known.
    pub context: Option<u64>,
    pub thinking: Option<Thinking>,
    pub effort: Option<Effort>,
    pub cache: Option<CacheTtl>,
    pub web: Option<WebDecl>,
    pub price: Option<Price>,
}

impl Setup {
    /// What a reply cost; `None` when no price is known: unknown is not zero.
    pub fn cost(&self, usage: &Usage) -> Option<Exact> {
        self.price.as_ref()?.cost(usage, self.cache)
    }

    /// The web tools of a role: only who looks things up gets them.
    pub fn web_for(&self, role: Role) -> Option<&WebDecl> {
        self.web.as_ref().filter(|_| matches!(role, Role::Scout | Role::Researcher))
    }
}
