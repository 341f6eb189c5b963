//! Events of the network by list: what was opened, and who was connected to.

use serde::{Deserialize, Serialize};

use crate::machine::words::{Place, Told, Topic::Agent, counted};
use crate::model::hosts::Pattern;

use super::family::family;

family! {
    /// What commands reached, and what they did not.
    NetworkEvent {
        NetworkOpened = "network.opened", Fact;
        NetworkConnected = "network.connected", Fact;
    }
}

impl NetworkEvent {
    pub fn told(&self, _at: &Place) -> Told {
        match self {
            Self::NetworkOpened(opened) => {
                let hosts: Vec<&str> = opened.hosts.iter().map(Pattern::as_str).collect();
                Told::new(Agent, format!("commands may reach {} ({})", hosts.join(", "), opened.why))
            }
            Self::NetworkConnected(seen) => {
                let NetworkConnected { host, port, times, sent, received, .. } = seen;
                let times = counted(usize::try_from(*times).unwrap_or(usize::MAX), "connection", "connections");
                match &seen.refused {
                    None => Told::quiet(Agent, format!("{host}:{port}: {times}, {sent} B out, {received} B in")),
                    Some(why) => Told::judged(Agent, false, format!("{host}:{port} refused ({times}): {why}")),
                }
            }
        }
    }
}

/// From here on commands may reach these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkOpened {
    pub hosts: Vec<Pattern>,
    /// The tool and the file that shows that the workspace uses it, or the declaration.
    pub why: String,
}

/// Connections to one host that came to an end, or to nothing, since the step before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkConnected {
    pub host: String,
    pub port: u16,
    /// Why not; `None`: it was allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// It is on no list: a person can be asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlisted: bool,
    pub times: u64,
    /// Bytes from the commands, and to them.
    pub sent: u64,
    pub received: u64,
}
