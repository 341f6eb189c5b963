//! Each layer taken away in turn: a named case must then get through, or it proves nothing with the layer in place.
//!
//! Only cases that can do no harm are run like this: their targets are on the stage.

use nightloop::tool::process;
use nightloop::tool::sandbox::Layer;

use super::stage::{self, Case};

fn gets_through(name: &str, layer: Layer) {
    process::become_subreaper();
    let case = super::corpus().into_iter().find(|case| case.name == name);
    let mut case: Case = case.unwrap_or_else(|| panic!("there is no case {name}"));
    // What it leaves behind must not be swept by another command's end.
    case.alone = true;
    stage::attempt(&case, None).unwrap_or_else(|why| panic!("{name} is not held with all layers: {why}"));
    let outcome = stage::attempt(&case, Some(layer));
    assert!(outcome.is_err(), "{name} is held without {layer:?}: it proves nothing about it");
}

#[test]
fn files() {
    gets_through("secret .netrc: proc root", Layer::Files);
    gets_through("secret .npmrc: cd first", Layer::Files);
}

#[test]
fn scopes() {
    gets_through("kill: bystander", Layer::Scopes);
    gets_through("kill: bystander by handle", Layer::Scopes);
    gets_through("network: abstract socket", Layer::Scopes);
}

#[test]
fn network() {
    gets_through("network: tcp4", Layer::Network);
    gets_through("network: udp4", Layer::Network);
    gets_through("socket: netlink route", Layer::Network);
}

#[test]
fn calls() {
    gets_through("call: userfaultfd", Layer::Calls);
    gets_through("call: io_uring_setup", Layer::Calls);
    gets_through("limit: hiding from the sweep", Layer::Calls);
    gets_through("raised: chmod", Layer::Calls);
    gets_through("raised: call: openat", Layer::Calls);
    gets_through("raised: call: nameless, then linked", Layer::Calls);
    gets_through("run otherwise: parameters, by call", Layer::Calls);
    gets_through("run otherwise: scheduler, by call", Layer::Calls);
}

#[test]
fn mounts() {
    gets_through("outside: chmod open", Layer::Mounts);
    gets_through("outside: touch date", Layer::Mounts);
}

#[test]
fn limits() {
    gets_through("limit: giant file", Layer::Limits);
    gets_through("limit: giant file by seeking", Layer::Limits);
}

#[test]
fn privileges() {
    // Nobody but the superuser has any to lose.
    if rustix::process::geteuid().is_root() {
        gets_through("rights: capabilities", Layer::Privileges);
        gets_through("network on: raw socket", Layer::Privileges);
    }
}

#[test]
fn sweep() {
    gets_through("left behind: own session", Layer::Sweep);
    gets_through("left behind: double fork", Layer::Sweep);
    gets_through("left behind: daemon without a trace", Layer::Sweep);
}
