//! Events of the network by list: what may be recorded of it.

use crate::machine::event::NetworkEvent;
use crate::machine::network::{self, MAX_HOSTS, OTHERS};
use crate::machine::run::RunState;
use crate::model::hosts::{MAX_LISTED, MAX_NAME};
use crate::model::loop_file::ReachDecl;

/// Lists that can be opened: the declared one, or one of each tool.
const MAX_OPENED: usize = 100;
const MAX_WHY: usize = 500;

/// May this event follow? The error says why not.
pub(in crate::machine) fn legal(state: &RunState, event: &NetworkEvent) -> Result<(), String> {
    let Some(declared) = state.loop_file().sandbox.network.as_ref().filter(|declared| declared.is_listed()) else {
        return Err("the network of this run is not one by list".to_owned());
    };
    match event {
        NetworkEvent::NetworkOpened(opened) => {
            if state.network.opened.len() >= MAX_OPENED || opened.hosts.len() > MAX_LISTED || opened.why.len() > MAX_WHY
            {
                return Err("too much is opened".to_owned());
            }
            match declared {
                ReachDecl::Hosts(listed) if *listed != opened.hosts => Err("that is not the declared list".to_owned()),
                _ if state.network.opened.contains(opened) => Err("that is open already".to_owned()),
                _ => Ok(()),
            }
        }
        NetworkEvent::NetworkConnected(seen) => {
            if seen.times == 0 || seen.host.len() > MAX_NAME || seen.refused.as_ref().is_some_and(|w| w.len() > MAX_WHY)
            {
                return Err("that is no connection".to_owned());
            }
            let known = seen.host == OTHERS || state.network.traffic.contains_key(&seen.host);
            if !known && state.network.traffic.len() >= MAX_HOSTS {
                return Err(format!("at most {MAX_HOSTS} hosts are told apart"));
            }
            match (&seen.refused, network::allows(&network::patterns(state), &seen.host, seen.port)) {
                (None, Err(_)) => Err(format!("{}:{} is on no list", seen.host, seen.port)),
                (None, Ok(())) if seen.unlisted => Err("what is allowed is on a list".to_owned()),
                (None, Ok(())) | (Some(_), _) => Ok(()),
            }
        }
    }
}

/// Folds an event that was found legal.
pub(in crate::machine) fn apply(state: &mut RunState, event: &NetworkEvent) {
    match event {
        NetworkEvent::NetworkOpened(opened) => state.network.open(opened),
        NetworkEvent::NetworkConnected(seen) => state.network.see(seen),
    }
}
