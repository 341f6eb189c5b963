//! The network by list, as folded: which hosts are open, what was reached, and who is to be asked for.
//!
//! Pure. The proxy asks the same rule (`allows`) before it connects; `legal` asks it again for what is recorded.

use std::collections::BTreeMap;

use crate::model::decision::{Answer, MAX_DECISIONS, Mode, NETWORK_RULE, Request};
use crate::model::hosts::{self, Pattern};
use crate::model::loop_file::ReachDecl;

use super::event::{DecisionAsked, NetworkConnected, NetworkOpened};
use super::run::RunState;

/// Hosts that are told apart; all further ones are one.
pub const MAX_HOSTS: usize = 500;
/// Stands for them.
pub const OTHERS: &str = "(others)";
/// Hosts that a run asks for.
pub const MAX_ASKED: usize = 10;

/// What went over the network to one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    pub connections: u64,
    pub refused: u64,
    pub sent: u64,
    pub received: u64,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Network {
    /// As recorded, in this order.
    pub opened: Vec<NetworkOpened>,
    pub traffic: BTreeMap<String, Traffic>,
    /// Hosts on no list that a command wanted, in the order in which they came, each with its port.
    pub unlisted: Vec<(String, u16)>,
}

impl Network {
    pub(super) fn open(&mut self, opened: &NetworkOpened) {
        self.opened.push(opened.clone());
    }

    pub(super) fn see(&mut self, seen: &NetworkConnected) {
        let traffic = self.traffic.entry(seen.host.clone()).or_default();
        let count = if seen.refused.is_some() { &mut traffic.refused } else { &mut traffic.connections };
        *count = count.saturating_add(seen.times);
        traffic.sent = traffic.sent.saturating_add(seen.sent);
        traffic.received = traffic.received.saturating_add(seen.received);
        if seen.unlisted && self.unlisted.len() < MAX_ASKED && !self.unlisted.iter().any(|(host, _)| *host == seen.host)
        {
            self.unlisted.push((seen.host.clone(), seen.port));
        }
    }
}

/// Is the network of this run one by list?
pub fn is_listed(state: &RunState) -> bool {
    state.loop_file().sandbox.network.as_ref().is_some_and(ReachDecl::is_listed)
}

/// Everything that commands may reach now: what was opened, and what people allowed.
pub fn patterns(state: &RunState) -> Vec<Pattern> {
    let opened = state.network.opened.iter().flat_map(|opened| opened.hosts.iter().cloned());
    let allowed = state.operator.decisions.iter().filter(|decision| {
        decision.asked_by.is_none() && matches!(decision.closed_with(), Some(Answer::Allow | Answer::AllowAlways))
    });
    let allowed = allowed.filter_map(|decision| Pattern::parse(decision.request.host()?).ok());
    opened.chain(allowed).collect()
}

/// May this host be reached at this port? The error says why not.
pub fn allows(patterns: &[Pattern], host: &str, port: u16) -> Result<(), Denied> {
    if !patterns.iter().any(|pattern| pattern.matches(host)) {
        return Err(Denied::Unlisted);
    }
    if hosts::PORTS.contains(&port) { Ok(()) } else { Err(Denied::Port) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    Unlisted,
    Port,
}

/// The next question about a host, where somebody can be asked now.
pub fn ask(state: &RunState) -> Option<DecisionAsked> {
    let operator = &state.operator;
    if !is_listed(state)
        || state.halt.is_some()
        || operator.patience.mode != Mode::Wait
        || operator.decisions.len() >= MAX_DECISIONS
        || operator.waits()
    {
        return None;
    }
    let (host, port) = state.network.unlisted.iter().find(|(host, _)| !was_asked(state, host))?;
    Some(DecisionAsked {
        id: operator.next_id(),
        request: Request::Permission {
            tool: "network".to_owned(),
            command: host.clone(),
            directory: ".".to_owned(),
            rule: NETWORK_RULE.to_owned(),
        },
        why: format!("a command wanted to reach {host}:{port}, which is on no list"),
        asked_by: None,
    })
}

fn was_asked(state: &RunState, host: &str) -> bool {
    state.operator.decisions.iter().any(|decision| decision.request.host() == Some(host))
}

/// May this be asked? Only what was refused for want of a place on the list, once.
pub(super) fn legal_ask(state: &RunState, host: &str) -> Result<(), String> {
    let unlisted = state.network.unlisted.iter().any(|(unlisted, _)| unlisted == host);
    if unlisted && !was_asked(state, host) { Ok(()) } else { Err(format!("nobody waits for {host}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::event::{DecisionAnswered, Event};
    use crate::machine::legal::legal;
    use crate::machine::testing::Sim;
    use crate::model::decision::Patience;

    #[test]
    fn only_listed_names_at_sensible_ports() {
        let patterns = [Pattern::parse("*.example.org").unwrap()];
        assert_eq!(allows(&patterns, "a.example.org", 443), Ok(()));
        assert_eq!(allows(&patterns, "a.example.org", 22), Err(Denied::Port));
        assert_eq!(allows(&patterns, "example.net", 443), Err(Denied::Unlisted));
        assert_eq!(allows(&[], "example.net", 443), Err(Denied::Unlisted));
    }

    #[test]
    fn a_journal_cannot_say_more_than_the_list() {
        let patterns = |names: &[&str]| names.iter().map(|name| Pattern::parse(name).unwrap()).collect::<Vec<_>>();
        let seen = |host: &str, port: u16, refused: Option<&str>| -> Event {
            let refused = refused.map(str::to_owned);
            let unlisted = refused.is_some();
            NetworkConnected { host: host.into(), port, refused, unlisted, times: 1, sent: 0, received: 0 }.into()
        };
        let opened = |names: &[&str]| Event::from(NetworkOpened { hosts: patterns(names), why: "declared".into() });
        let mut sim = Sim::plain("sandbox: { network: [a.org] }");
        assert!(legal(&sim.run, &seen("a.org", 443, None)).is_err(), "it is not open yet");
        assert!(legal(&sim.run, &opened(&["a.org", "b.org"])).is_err(), "that is not the list");
        sim.record(opened(&["a.org"]));
        assert!(legal(&sim.run, &opened(&["a.org"])).is_err(), "twice");
        assert!(legal(&sim.run, &seen("a.org", 22, None)).is_err());
        assert!(legal(&sim.run, &seen("b.org", 443, None)).is_err());
        assert_eq!(legal(&sim.run, &seen("a.org", 443, None)), Ok(()));
        // Nobody is asked for what nobody wanted; then once, and what is allowed is open.
        assert_eq!(ask(&sim.run), None);
        sim.record(seen("b.org", 443, Some("no")));
        let asked = ask(&sim.run).unwrap();
        let mut other = asked.clone();
        if let Request::Permission { command, .. } = &mut other.request {
            *command = "c.org".to_owned();
        }
        assert!(legal(&sim.run, &Event::from(other)).is_err());
        sim.record(asked.clone());
        assert_eq!(ask(&sim.run), None);
        assert!(!sim.run.operator.waits(), "the run goes on meanwhile");
        let (id, answer) = (asked.id, Answer::Allow);
        sim.record(DecisionAnswered { id, answer, note: None, by: "me".into() });
        assert_eq!(legal(&sim.run, &seen("b.org", 443, None)), Ok(()));
        let closed = Sim::plain("sandbox: { network: loopback }");
        assert!(legal(&closed.run, &opened(&["a.org"])).is_err());
        let mut unattended = Sim::patient("sandbox: { network: [a.org] }", Patience::STOP);
        unattended.record(seen("b.org", 443, Some("no")));
        assert_eq!(ask(&unattended.run), None);
    }

    #[test]
    fn traffic_adds_up_and_few_hosts_are_asked_for() {
        let mut network = Network::default();
        let seen = |host: String, refused: Option<&str>| NetworkConnected {
            host,
            port: 443,
            refused: refused.map(str::to_owned),
            unlisted: refused.is_some(),
            times: 2,
            sent: 3,
            received: 4,
        };
        network.see(&seen("a.org".into(), None));
        network.see(&seen("a.org".into(), None));
        assert_eq!(network.traffic["a.org"], Traffic { connections: 4, refused: 0, sent: 6, received: 8 });
        for number in 0..30 {
            network.see(&seen(format!("h{number}.org"), Some("no")));
        }
        assert_eq!(network.unlisted.len(), MAX_ASKED);
    }
}
