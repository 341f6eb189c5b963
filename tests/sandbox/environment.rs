//! What a command finds in its environment.

use std::collections::BTreeSet;
use std::process::Command;

use nightloop::tool::process::CommandSpec;
use nightloop::tool::sandbox::{Confinement, Layer};

use super::stage::{self, CANARY, Case, Stage};

const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "TERM",
    "TZ",
    "USER",
    "SHELL",
    "TMPDIR",
    "GIT_TERMINAL_PROMPT",
    "NIGHTLOOP_RUN",
    "NIGHTLOOP_ENGINE",
    "NIGHTLOOP_CALL",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
];

/// Run in a process of its own, whose environment is full: prints what a command of ours sees.
pub fn as_engine() -> String {
    let without = std::env::var_os("TEST_WITHOUT_LIST").map(|_| Layer::Environment);
    let stage = Stage::set();
    let policy = stage.policy(&Case::new("x", ""));
    let confinement = match without {
        Some(layer) => Confinement::without(policy, layer),
        None => Confinement::build(policy),
    };
    let argv = ["/bin/sh", "-c", "env"].map(str::to_owned).to_vec();
    let mut spec = CommandSpec::new(argv, stage.path("ws"), &stage.marker);
    spec.confinement = Some(std::sync::Arc::new(confinement.unwrap()));
    spec.keep_bytes = 1 << 20;
    String::from_utf8_lossy(&stage::run(spec).stdout.bytes).into_owned()
}

/// Names that a program may have in its environment: known ones, and many made up.
fn names() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "XDG_RUNTIME_DIR",
        "LD_PRELOAD_X",
        "PATHX",
        "XPATH",
        "HOMEX",
        "LC",
        "path",
    ]
    .map(str::to_owned)
    .into();
    // Not random on purpose: the same names each time, from a plain generator.
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    while names.len() < 1_000 {
        let mut name = String::from("N");
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        for shift in 0..(1 + seed % 12) {
            let letter = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789lc"[((seed >> (shift * 5)) % 39) as usize];
            name.push(char::from(letter));
        }
        names.insert(name);
    }
    names
}

fn seen(without_list: bool) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", "helper::entry", "do=environment"]);
    command.envs(names().into_iter().map(|name| (name, CANARY)));
    if without_list {
        command.env("TEST_WITHOUT_LIST", "1");
    }
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn a_command_sees_the_allow_list_only() {
    let seen = seen(false);
    assert!(seen.contains("NIGHTLOOP_RUN="), "{seen}");
    assert!(!seen.contains(CANARY), "{seen}");
    let variables = seen.lines().skip_while(|line| !line.contains('=')).filter_map(|line| line.split_once('='));
    for (name, _) in variables {
        assert!(ALLOWED.contains(&name) || name.starts_with("LC_"), "{name} is seen");
    }
}

#[test]
fn without_the_list_everything_is_seen() {
    let seen = seen(true);
    assert!(seen.contains(&format!("ANTHROPIC_API_KEY={CANARY}")), "{seen}");
}
