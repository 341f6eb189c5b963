//! Reaching out.

use super::stage::{self, Case};
use nightloop::model::loop_file::NetworkDecl;

/// Kinds of sockets: name, family, type, protocol.
const SOCKETS: &[(&str, &str)] = &[
    ("tcp4", "2:1:0"),
    ("tcp6", "10:1:0"),
    ("udp4", "2:2:0"),
    ("udp6", "10:2:0"),
    ("ping4", "2:2:1"),
    ("ping6", "10:2:58"),
    ("raw4", "2:3:1"),
    ("raw6", "10:3:58"),
    ("sctp", "2:1:132"),
    ("mptcp", "2:1:262"),
    ("netlink route", "16:3:0"),
    ("netlink audit", "16:3:9"),
    ("netlink generic", "16:3:16"),
    ("packet", "17:3:768"),
    ("packet datagram", "17:2:768"),
    ("bluetooth", "31:3:1"),
    ("can", "29:3:1"),
    ("tipc", "30:1:0"),
    ("kernel crypto", "38:5:0"),
    ("virtual machine", "40:1:0"),
    ("express data path", "44:3:0"),
    ("ppp over ethernet", "24:1:0"),
    ("appletalk", "5:2:0"),
    ("x25", "9:5:0"),
    ("no family", "0:1:0"),
    ("family with high bits", "0x100000002:1:0"),
];

pub fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = SOCKETS
        .iter()
        .map(|(name, numbers)| Case::new(format!("socket: {name}"), format!("@HELPER@ do=socket:{numbers}")))
        .collect();
    for (name, script) in [
        ("tcp4", "@HELPER@ do=tcp:127.0.0.1:@TCP4@:@TOKEN@"),
        ("udp4", "@HELPER@ do=udp:127.0.0.1:@UDP4@:@TOKEN@"),
        ("listen4", "@HELPER@ do=listen:127.0.0.1:0"),
        ("listen everywhere", "@HELPER@ do=listen:0.0.0.0:0"),
        ("abstract socket", "@HELPER@ do=abstract:@ABSTRACT@:@TOKEN@"),
        ("bash tcp", "echo @TOKEN@ > /dev/tcp/127.0.0.1/@TCP4@ && echo GOT-THROUGH"),
        ("bash udp", "echo @TOKEN@ > /dev/udp/127.0.0.1/@UDP4@ && echo GOT-THROUGH"),
        ("curl", "curl -sm 2 http://127.0.0.1:@TCP4@/@TOKEN@ && echo GOT-THROUGH"),
        ("wget", "wget -qT 2 -t 1 -O - http://127.0.0.1:@TCP4@/@TOKEN@ && echo GOT-THROUGH"),
        ("name lookup", "getent ahosts example.com && echo GOT-THROUGH"),
        ("perl", "perl -MIO::Socket::INET -e 'print {IO::Socket::INET->new(\"127.0.0.1:@TCP4@\") or die} \"@TOKEN@\"'"),
        ("git", "GIT_TRACE=0 timeout 3 git ls-remote git://127.0.0.1:@TCP4@/@TOKEN@ && echo GOT-THROUGH"),
    ] {
        cases.push(Case::new(format!("network: {name}"), script));
    }
    for (name, script) in [
        ("tcp4", "@HELPER@ do=tcp:127.0.0.1:@TCP4@:@TOKEN@"),
        ("udp to the world", "@HELPER@ do=udp:192.0.2.1:9:@TOKEN@"),
        ("packet socket", "@HELPER@ do=socket:17:3:768"),
        ("raw socket", "@HELPER@ do=socket:2:3:1"),
        ("abstract socket", "@HELPER@ do=abstract:@ABSTRACT@:@TOKEN@"),
        ("write outside", "echo x > @OUTSIDE@/victim"),
        ("read a secret", "cat @HOME@/.ssh/id_ed25519"),
        ("kill the bystander", "kill -9 @BYSTANDER@"),
        ("umount", "@HELPER@ do=call:166"),
    ] {
        cases.push(Case::new(format!("loopback: {name}"), script).network(NetworkDecl::Loopback));
    }
    for (name, script) in [
        ("packet socket", "@HELPER@ do=socket:17:3:768"),
        ("raw socket", "@HELPER@ do=socket:2:3:1"),
        ("kernel crypto", "@HELPER@ do=socket:38:5:0"),
        ("write outside", "echo x > @OUTSIDE@/victim"),
    ] {
        cases.push(Case::new(format!("network on: {name}"), script).network(NetworkDecl::On));
    }
    cases
}

fn said(case: &Case) -> String {
    let stage = stage::Stage::set();
    let outcome = stage.perform(case, None);
    String::from_utf8_lossy(&outcome.stdout.bytes).into_owned()
}

#[test]
fn loopback_serves_itself() {
    let case = Case::new("server", "@HELPER@ do=own-server").network(NetworkDecl::Loopback);
    let said = said(&case);
    assert!(said.contains("served") && !said.contains("not served"), "{said}");
}

#[test]
fn network_on_is_on() {
    let case = Case::new("tcp", "@HELPER@ do=tcp:127.0.0.1:@TCP4@:hello").network(NetworkDecl::On);
    let said = said(&case);
    assert!(said.contains(stage::THROUGH), "{said}");
}

#[test]
fn pairs_of_sockets_work_without_network() {
    let case = Case::new("pair", "perl -MSocket -e 'socketpair(A,B,AF_UNIX,SOCK_STREAM,PF_UNSPEC) and print \"pair\"'");
    assert!(said(&case).contains("pair"));
}

/// Sockets of servers in closed folders (key agents, our own control socket) are out of sight.
#[test]
fn named_sockets_in_closed_places_are_out_of_reach() {
    let stage = stage::Stage::set();
    for name in ["home/.gnupg/S.agent", "home/.ssh/agent", "state/runs/R/control.sock"] {
        let _listener = std::os::unix::net::UnixListener::bind(stage.path(name)).unwrap();
        let case = Case::new("connect", format!("@HELPER@ do=connect:{}", stage.path(name).display()));
        let outcome = stage.perform(&case, None);
        let said = String::from_utf8_lossy(&outcome.stdout.bytes).into_owned();
        assert!(said.contains("refused"), "{name}: {said}");
    }
}
