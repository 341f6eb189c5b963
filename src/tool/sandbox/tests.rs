//! Which mode applies, what is refused, and what the level in force is called.

use super::*;

const FULL: Level =
    Level { landlock: 7, seccomp: true, mounts: true, loopback: true, user: true, pids: true, overlay: true };

fn declared(mode: Option<SandboxMode>, network: Option<NetworkDecl>) -> SandboxDecl {
    SandboxDecl { mode, network: network.map(Into::into), ..SandboxDecl::default() }
}

#[test]
fn nobody_watching_means_required() {
    let weak = Level::default();
    let plain = SandboxDecl::default();
    let refusal = decide_at(&plain, true, weak).unwrap_err();
    assert!(refusal.message.contains("Landlock is not available"), "{refusal:?}");
    assert!(refusal.hint.contains("mode: off"));
    let watched = decide_at(&plain, false, weak).unwrap();
    assert_eq!((watched.level.name.as_str(), watched.is_confined()), ("none", false));
    assert!(watched.warnings[0].contains("weaker than it should be"));
}

#[test]
fn the_name_says_what_is_in_force() {
    let plain = decide_at(&SandboxDecl::default(), true, FULL).unwrap();
    assert_eq!(plain.level.name, "landlock 7 + seccomp + mounts + pids, network off");
    let off = decide_at(&declared(Some(SandboxMode::Off), None), true, FULL).unwrap();
    assert_eq!((off.level.name.as_str(), off.is_confined()), ("off", false));
}

#[test]
fn loopback_without_namespaces() {
    let level = Level { loopback: false, ..FULL };
    let required = declared(Some(SandboxMode::Required), Some(NetworkDecl::Loopback));
    assert!(decide_at(&required, false, level).unwrap_err().message.contains("network namespace"));
    let preferred = declared(Some(SandboxMode::Preferred), Some(NetworkDecl::Loopback));
    let in_force = decide_at(&preferred, false, level).unwrap();
    assert_eq!(in_force.network, NetworkDecl::Off);
    assert!(in_force.warnings[0].contains("no network at all"));
    assert_eq!(decide_at(&required, false, FULL).unwrap().network, NetworkDecl::Loopback);
}

#[test]
fn one_confinement_serves_until_the_world_changes() {
    let (workspace, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plain = SandboxDecl::default();
    let in_force = decide(&plain, true).unwrap();
    let run = format!("test-{}", crate::tool::environment::new_call_id());
    let sandbox = Sandbox::open(&plain, in_force, workspace.path(), state.path(), Vec::new(), &run).unwrap();
    let first = sandbox.for_tool(Access::ReadOnly).unwrap().unwrap();
    assert!(first.is_read_only() && sandbox.holds_read_only());
    assert!(!sandbox.for_tool(Access::ReadWrite).unwrap().unwrap().is_read_only());
    let off = decide(&declared(Some(SandboxMode::Off), None), true).unwrap();
    let open = Sandbox::open(&plain, off, workspace.path(), state.path(), Vec::new(), &run).unwrap();
    assert!(open.for_tool(Access::ReadOnly).unwrap().is_none() && !open.holds_read_only());
}

#[tokio::test]
async fn what_is_sealed_stays_as_it_is_and_the_rest_may_be_written() {
    use crate::tool::process::{self, CommandSpec, End};
    if !level().mounts {
        return;
    }
    let (workspace, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let ws = workspace.path();
    std::fs::create_dir_all(ws.join("checks")).unwrap();
    std::fs::write(ws.join("checks/a.sh"), "exit 1").unwrap();
    std::fs::write(ws.join("PRD.md"), "all of it").unwrap();
    let declared = SandboxDecl::default();
    let in_force = decide(&declared, false).unwrap();
    let name = format!("test-{}", crate::tool::environment::new_call_id());
    let sandbox = Sandbox::open(&declared, in_force, ws, state.path(), Vec::new(), &name).unwrap();
    let sealed = ["checks", "PRD.md", "not-there"].map(PathBuf::from);
    let run = async |sealed: &[PathBuf], script: &str| {
        let mut spec = CommandSpec::new(["sh", "-c", script].map(str::to_owned).to_vec(), ws, "test");
        spec.confinement = sandbox.for_tool_sealing(Access::ReadWrite, sealed).unwrap();
        process::run(spec, &tokio_util::sync::CancellationToken::new()).await.end
    };
    assert_eq!(run(&sealed, "cat checks/a.sh PRD.md && echo x > product").await, End::Exited(0));
    for script in ["echo exit 0 > checks/a.sh", "rm checks/a.sh", "touch checks/b.sh", "echo > PRD.md", "rm -f PRD.md"]
    {
        assert_ne!(run(&sealed, script).await, End::Exited(0), "{script}");
    }
    assert_eq!(std::fs::read_to_string(ws.join("checks/a.sh")).unwrap(), "exit 1");
    assert_eq!(std::fs::read_to_string(ws.join("PRD.md")).unwrap(), "all of it");
    assert_eq!(run(&[], "echo exit 0 > checks/a.sh").await, End::Exited(0));
}

/// In a process of its own: it cannot be taken back.
#[cfg(target_os = "linux")]
#[test]
fn the_engine_closes_itself_to_others() {
    const HELPER: &str = "NIGHTLOOP_TEST_HARDEN";
    if std::env::var_os(HELPER).is_some() {
        use rustix::process::{DumpableBehavior, Resource, dumpable_behavior, getrlimit};
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::Dumpable, "nothing would be shown otherwise");
        harden_ourselves();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        let core = getrlimit(Resource::Core);
        assert_eq!((core.current, core.maximum), (Some(0), Some(0)));
        println!("hardened");
        return;
    }
    let name = "tool::sandbox::tests::the_engine_closes_itself_to_others";
    let helper = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(HELPER, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&helper.stdout);
    assert!(helper.status.success() && said.contains("hardened"), "{said}{}", String::from_utf8_lossy(&helper.stderr));
}
