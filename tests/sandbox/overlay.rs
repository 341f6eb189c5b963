//! A command that sees an overlay in place of the workspace: what it writes, what it sees, what it still cannot.
//!
//! Each test runs as whoever runs the tests, and once more as a normal user, whose overlay lives in a user namespace.
//! Where this machine lets nobody have one, they are skipped aloud.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nightloop::model::loop_file::{NetworkDecl, SandboxDecl};
use nightloop::tool::process::{Access, CommandSpec, End};
use nightloop::tool::sandbox::{Confinement, Grounds, Layer, Overlay, Placed, Policy, Sandbox, decide, level};
use nightloop::workspace::layer::{self, WrittenKind};

use super::stage::{self, CANARY};

/// Says which test a copy of this program waits in, to be killed.
const WAITS: &str = "NIGHTLOOP_TEST_OVERLAY_WAITS";

/// A workspace and the state directory of a run on it.
struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
    ws: PathBuf,
    sandbox: Sandbox,
}

impl Place {
    /// `None`, said aloud, where no overlay can be had.
    fn new(declared: &SandboxDecl) -> Option<Self> {
        Self::named("ws", declared)
    }

    fn named(name: &str, declared: &SandboxDecl) -> Option<Self> {
        stage::ready();
        let folder = tempfile::Builder::new().prefix("overlay-").tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let ws = root.join(name);
        for path in ["src", "tests/unit", "out"] {
            fs::create_dir_all(ws.join(path)).unwrap();
        }
        fs::create_dir(root.join("state")).unwrap();
        for (path, text) in [
            ("src/code", "code\n"),
            ("tests/one", "one\n"),
            ("tests/unit/two", "two\n"),
            ("out/old", "old\n"),
            ("AGENTS.md", "agents\n"),
        ] {
            fs::write(ws.join(path), text).unwrap();
        }
        fs::write(root.join("state/journal"), CANARY).unwrap();
        let in_force = decide(declared, true).unwrap();
        let run = format!("overlay-{}-{}", std::process::id(), stage::next());
        let sandbox = Sandbox::open(declared, in_force, &ws, &root.join("state"), Vec::new(), &run).unwrap();
        if !level().overlay {
            eprintln!("SKIPPED: this machine gives us no overlay");
            return None;
        }
        assert_eq!(sandbox.no_overlay(), None);
        assert!(sandbox.overlays());
        Some(Self { _folder: folder, root, ws, sandbox })
    }

    fn overlay(&self, name: &str) -> Overlay {
        let path = |part: &str| self.root.join("state").join(name).join(part);
        for part in ["over", "upper", "work"] {
            fs::create_dir_all(path(part)).unwrap();
        }
        Overlay { over: vec![path("over")], upper: path("upper"), work: path("work") }
    }

    fn worn(&self, sealed: &[&str], overlay: &Overlay) -> Arc<Confinement> {
        let sealed: Vec<PathBuf> = sealed.iter().map(PathBuf::from).collect();
        self.sandbox.for_check(&sealed, overlay, None).unwrap().unwrap()
    }

    fn run(&self, worn: &Arc<Confinement>, script: &str) -> (End, String) {
        let mut spec = CommandSpec::new(["sh", "-c", script].map(str::to_owned).to_vec(), &self.ws, "overlay");
        spec.confinement = Some(worn.clone());
        spec.timeout = Duration::from_secs(60);
        let outcome = stage::run(spec);
        let said = [outcome.stdout.bytes, outcome.stderr.bytes].concat();
        (outcome.end, String::from_utf8_lossy(&said).into_owned())
    }

    /// Runs a script that must succeed, in an overlay that seals nothing.
    fn succeed(&self, overlay: &Overlay, script: &str) -> String {
        let (end, said) = self.run(&self.worn(&[], overlay), script);
        assert_eq!(end, End::Exited(0), "{said}");
        said
    }

    fn tree(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        look(&self.ws, &mut found);
        found
    }
}

fn look(path: &Path, found: &mut BTreeMap<PathBuf, String>) {
    let meta = fs::symlink_metadata(path).unwrap();
    let text = if meta.is_file() { fs::read(path).unwrap() } else { Vec::new() };
    let text = String::from_utf8_lossy(&text);
    let facts =
        format!("{:o} {} {} {}.{} {text}", meta.mode(), meta.uid(), meta.ino(), meta.mtime(), meta.mtime_nsec());
    found.insert(path.to_owned(), facts);
    if meta.is_dir() {
        fs::read_dir(path).unwrap().flatten().for_each(|entry| look(&entry.path(), found));
    }
}

fn plain() -> SandboxDecl {
    SandboxDecl::default()
}

const WRITES: &str = "echo x > new && echo x >> src/code && rm tests/one && rm -r out && mkdir out && echo x > out/new \
                      && chmod 700 tests && mv AGENTS.md moved && mkdir -m 000 closed";

mod held {
    use super::*;

    #[test]
    fn what_is_written_stays_in_the_upper_folder() {
        let Some(place) = Place::new(&plain()) else { return };
        let before = place.tree();
        let overlay = place.overlay("a");
        place.succeed(&overlay, WRITES);
        assert_eq!(place.tree(), before);
        // A second command goes on where the first one ended; with a fresh folder nothing of it is seen.
        place.succeed(&overlay, "test ! -e out/old && cat new out/new moved && test ! -e AGENTS.md");
        place.succeed(&place.overlay("b"), "test ! -e new && cat out/old AGENTS.md");

        let found = layer::written(&overlay.upper, 100).unwrap();
        let kind = |path: &str| found.iter().find(|one| one.path == Path::new(path)).map(|one| one.kind);
        assert_eq!(kind("new"), Some(WrittenKind::File));
        assert_eq!(kind("AGENTS.md"), Some(WrittenKind::Removed));
        assert_eq!(kind("tests"), Some(WrittenKind::Folder));
        assert_eq!(kind("out"), Some(WrittenKind::NewFolder));
        assert_eq!(kind("out/new"), Some(WrittenKind::File));
        layer::prune(&overlay.upper, &|path| path == "new").unwrap();
        assert_eq!(layer::written(&overlay.upper, 100).unwrap().len(), 1);
        place.succeed(&overlay, "cat new AGENTS.md out/old");
        drop(place.sandbox);
        for folder in [overlay.upper, overlay.work] {
            layer::remove(&folder).unwrap();
        }
    }

    /// Several commands, one after the other, in one confinement; and not two at once.
    #[test]
    fn one_confinement_serves_commands_in_a_row() {
        let Some(place) = Place::new(&plain()) else { return };
        let overlay = place.overlay("a");
        let worn = place.worn(&["AGENTS.md"], &overlay);
        for round in 0..3 {
            assert_eq!(place.run(&worn, "echo x >> rounds; wc -l < rounds").1.trim(), (round + 1).to_string());
            assert_ne!(place.run(&worn, "echo x > AGENTS.md").0, End::Exited(0));
        }
        let (end, _) = place.run(&place.worn(&[], &overlay), "true");
        assert!(matches!(&end, End::NotStarted(why) if why.contains("the overlay over the workspace")), "{end:?}");
        drop(worn);
        place.succeed(&overlay, "test -e rounds");
    }

    #[test]
    fn a_layer_shows_other_files_and_hides_some() {
        let Some(place) = Place::new(&plain()) else { return };
        let overlay = place.overlay("a");
        let over = &overlay.over[0];
        layer::put(over, "src/code", b"other\n", false).unwrap();
        layer::put(over, "src/run", b"#!/bin/sh\necho ran\n", true).unwrap();
        layer::put(over, "brand/new", b"brand\n", false).unwrap();
        layer::put_link(over, "tests/link", Path::new("unit/two")).unwrap();
        layer::hide(over, "tests/one").unwrap();
        layer::hide(over, "out").unwrap();
        let script = "cat src/code brand/new tests/link && src/run && test ! -e tests/one && test ! -e out && ls";
        let said = place.succeed(&overlay, script);
        assert_eq!(said, "other\nbrand\ntwo\nran\nAGENTS.md\nbrand\nsrc\ntests\n");
        // The topmost of several counts; and a command may write over what a layer shows.
        let mut two = place.overlay("b");
        layer::put(&two.over[0], "src/code", b"top\n", false).unwrap();
        two.over.push(over.clone());
        assert_eq!(place.succeed(&two, "cat src/code brand/new; echo x > src/code; cat src/code"), "top\nbrand\nx\n");
        assert_eq!(fs::read_to_string(over.join("src/code")).unwrap(), "other\n");
        assert_eq!(fs::read_to_string(place.ws.join("src/code")).unwrap(), "code\n");
    }

    #[test]
    fn what_is_sealed_is_sealed_in_what_is_seen() {
        let Some(place) = Place::new(&plain()) else { return };
        let overlay = place.overlay("a");
        layer::put(&overlay.over[0], "tests/one", b"other\n", false).unwrap();
        layer::put(&overlay.over[0], "checks/only-here", b"check\n", false).unwrap();
        layer::hide(&overlay.over[0], "out").unwrap();
        let worn = place.worn(&["AGENTS.md", "tests", "checks/only-here", "out/old", "not-there"], &overlay);
        assert_eq!(place.run(&worn, "cat AGENTS.md tests/one checks/only-here").1, "agents\nother\ncheck\n");
        for script in [
            "echo x > AGENTS.md",
            "rm AGENTS.md",
            "mv AGENTS.md x",
            "echo x > tests/one",
            "rm tests/unit/two",
            "touch tests/new",
            "chmod 777 tests/one",
            "echo x > checks/only-here",
            "rm -rf checks",
        ] {
            assert_ne!(place.run(&worn, script).0, End::Exited(0), "{script}");
        }
        assert_eq!(place.run(&worn, "echo x > src/code && echo x > free").0, End::Exited(0));
        drop(worn);
        let open = place.worn(&[], &overlay);
        assert_eq!(place.run(&open, "echo x > AGENTS.md && touch tests/new").0, End::Exited(0));
    }

    /// A link that an earlier command left at a sealed name seals nothing elsewhere, and stops nothing.
    #[test]
    fn a_link_in_the_place_of_a_sealed_file_does_no_harm() {
        let Some(place) = Place::new(&plain()) else { return };
        for target in ["/", "AGENTS.md", "src"] {
            let overlay = place.overlay(&format!("to{}", target.len()));
            place.succeed(&overlay, &format!("rm AGENTS.md && ln -s {target} AGENTS.md"));
            let (end, said) = place.run(&place.worn(&["AGENTS.md"], &overlay), "echo x > src/code");
            assert_eq!(end, End::Exited(0), "{target}: {said}");
        }
    }

    #[test]
    fn the_way_out_is_as_closed_as_without() {
        let Some(place) = Place::new(&plain()) else { return };
        let before = place.tree();
        let overlay = place.overlay("a");
        let worn = place.worn(&[], &overlay);
        let upper = overlay.upper.to_str().unwrap();
        let state = place.root.join("state");
        for script in [
            format!("cat {}/journal", state.display()),
            format!("ls {} | grep .", state.display()),
            format!("ls {upper}"),
            format!("echo x > {upper}/planted"),
            format!("touch {}/outside", place.root.display()),
            "mount --bind /tmp src".to_owned(),
            "umount .".to_owned(),
            format!("umount -l {}", place.ws.display()),
            "unshare -m true".to_owned(),
            "unshare -Ur true".to_owned(),
            "mknod hole c 0 0".to_owned(),
        ] {
            let (end, said) = place.run(&worn, &script);
            assert!(!matches!(end, End::Exited(0) | End::NotStarted(_)), "{script}: {end:?} {said}");
            assert!(!said.contains(CANARY), "{script}: {said}");
        }
        // The list of mounts does not tell where the layers are, and no process in there leads to the workspace below.
        let (_, said) = place.run(&worn, "grep overlay /proc/self/mountinfo; ls /proc/1/root/ /proc/1/fd 2>&1");
        assert!(said.contains(" - overlay ") && !said.contains(upper), "{said}");
        assert_eq!(place.tree(), before);
        assert!(!overlay.upper.join("planted").exists());
    }

    #[test]
    fn what_may_be_written_is_still_as_declared() {
        let declared = SandboxDecl { write: Some(vec!["out".into()]), ..plain() };
        let Some(place) = Place::new(&declared) else { return };
        let before = place.tree();
        let worn = place.worn(&[], &place.overlay("a"));
        assert_eq!(place.run(&worn, "echo x > out/new && rm out/old").0, End::Exited(0));
        for script in ["echo x > new", "echo x > src/code", "rm -rf tests"] {
            assert_ne!(place.run(&worn, script).0, End::Exited(0), "{script}");
        }
        assert_eq!(place.tree(), before);
    }

    #[test]
    fn programs_find_the_workspace_where_it_was() {
        let Some(place) = Place::new(&plain()) else { return };
        let tool = place.ws.join("venv/bin/tool");
        fs::create_dir_all(tool.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("/bin/sh", place.ws.join("venv/bin/interpreter")).unwrap();
        fs::write(&tool, format!("#!{}/venv/bin/interpreter\necho tool; pwd\n", place.ws.display())).unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        let said = place.succeed(&place.overlay("a"), "venv/bin/tool");
        assert_eq!(said, format!("tool\n{}\n", place.ws.display()));
    }

    #[test]
    fn git_works_in_what_is_seen() {
        let Some(place) = Place::new(&plain()) else { return };
        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
            let done = Command::new("git").args(identity).args(arguments).current_dir(&place.ws).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        git(&["init", "-q"]);
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", "start"]);
        let before = place.tree();
        let overlay = place.overlay("a");
        layer::put(&overlay.over[0], "src/code", b"other\n", false).unwrap();
        layer::hide(&overlay.over[0], "tests/one").unwrap();
        let worn = place.worn(&[".git/config", ".git/hooks"], &overlay);
        let (end, said) =
            place.run(&worn, "git status --porcelain && echo x > new && git add new && git status -s new");
        assert_eq!((end, said.as_str()), (End::Exited(0), " M src/code\n D tests/one\nA  new\n"));
        assert_ne!(place.run(&worn, "git config a.b c").0, End::Exited(0));
        assert_eq!(place.tree(), before);
    }

    #[test]
    fn several_at_once_do_not_meet() {
        let Some(place) = Place::new(&plain()) else { return };
        let before = place.tree();
        std::thread::scope(|scope| {
            let place = &place;
            let running: Vec<_> = (0..4)
                .map(|number| {
                    scope.spawn(move || {
                        let overlay = place.overlay(&number.to_string());
                        layer::put(&overlay.over[0], "which", number.to_string().as_bytes(), false).unwrap();
                        // Each waits until all of them run, which no other way than its own clock tells.
                        let script = format!("echo {number} > src/code; sleep 0.5; cat which; cat src/code");
                        place.succeed(&overlay, &script)
                    })
                })
                .collect();
            for (number, one) in running.into_iter().enumerate() {
                assert_eq!(one.join().unwrap(), format!("{number}{number}\n"));
            }
        });
        assert_eq!(place.tree(), before);
    }

    #[test]
    fn no_character_of_a_path_means_anything() {
        let Some(place) = Place::named("a:b,c\\d e\\:f=g\"'#", &plain()) else { return };
        let overlay = place.overlay("x:y,z\\ w");
        layer::put(&overlay.over[0], "src/code", b"other\n", false).unwrap();
        let before = place.tree();
        assert_eq!(place.succeed(&overlay, "cat src/code; echo x > new"), "other\n");
        assert!(overlay.upper.join("new").exists());
        assert_eq!(place.tree(), before);
    }

    #[test]
    fn what_cannot_be_had_is_said() {
        let Some(place) = Place::new(&plain()) else { return };
        let mut seen = place.overlay("a");
        seen.upper = place.root.join("upper");
        fs::create_dir(&seen.upper).unwrap();
        let why = place.sandbox.for_check(&[], &seen, None).unwrap_err();
        assert!(why.contains("is not out of the command's sight"), "{why}");
        let mut missing = place.overlay("b");
        missing.work = missing.work.join("none");
        assert!(place.sandbox.for_check(&[], &missing, None).is_err());
    }

    /// An engine that is killed leaves neither a process nor a mount.
    #[test]
    fn a_killed_engine_leaves_nothing() {
        if let Some(told) = std::env::var_os(WAITS) {
            let Some(place) = Place::new(&plain()) else { return };
            let overlay = place.overlay("a");
            let told = PathBuf::from(told);
            fs::write(&told, overlay.upper.to_str().unwrap()).unwrap();
            place.succeed(&overlay, "touch there; setsid sleep 600 & sleep 600");
            return;
        }
        if Place::new(&plain()).is_none() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("told");
        let mut engine = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "overlay::held::a_killed_engine_leaves_nothing"])
            .env(WAITS, &told)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for("the command", || {
            assert!(engine.try_wait().unwrap().is_none(), "it ended by itself");
            fs::read_to_string(&told).is_ok_and(|upper| Path::new(&upper).join("there").exists())
        });
        let upper = PathBuf::from(fs::read_to_string(&told).unwrap());
        let root = upper.ancestors().nth(3).unwrap().to_owned();
        let ws = root.join("ws");
        wait_for("processes in it", || in_workspace(&ws) >= 2);
        assert!(!mounted(&ws), "the mount is seen outside");
        engine.kill().unwrap();
        engine.wait().unwrap();
        wait_for("their end", || in_workspace(&ws) == 0);
        assert!(!mounted(&ws));
        layer::remove(&root).unwrap();
        let left = format!("nightloop-overlay-{}-", engine.id());
        let entries = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&left)) {
            fs::remove_dir_all(entry.path()).unwrap();
        }
    }
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Processes that stand in this folder, by its name.
fn in_workspace(ws: &Path) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == ws)).count()
}

fn mounted(ws: &Path) -> bool {
    fs::read_to_string("/proc/self/mountinfo").unwrap().contains(ws.to_str().unwrap())
}

/// All of the above once more, where a user namespace is needed.
#[test]
fn the_same_for_a_normal_user() {
    stage::as_a_normal_user("overlay::held::");
}

/// Without mounts the same script reaches the workspace: the tests above can fail.
#[test]
fn without_mounts_the_workspace_is_written() {
    let Some(place) = Place::new(&plain()) else { return };
    let grounds = Grounds {
        workspace: place.ws.clone(),
        home: None,
        state: place.root.join("state"),
        scratch: place.sandbox.shared_folder().unwrap().parent().unwrap().to_owned(),
        secrets: Vec::new(),
    };
    let mut policy = Policy::for_tool(&plain(), NetworkDecl::Off, &grounds, Access::ReadWrite);
    policy.overlay = Some(Placed { at: place.ws.clone(), overlay: place.overlay("a") });
    let before = place.tree();
    // Nobody else than a launcher puts one up, and nothing weaker is put in its place.
    assert!(Confinement::without(policy.clone(), Layer::Launcher).is_err());
    let worn = Arc::new(Confinement::build(policy.clone()).unwrap());
    assert_eq!(place.run(&worn, WRITES).0, End::Exited(0));
    assert_eq!(place.tree(), before);
    let worn = Arc::new(Confinement::without(policy, Layer::Mounts).unwrap());
    assert_eq!(place.run(&worn, WRITES).0, End::Exited(0));
    fs::set_permissions(place.ws.join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_ne!(place.tree(), before);
}

/// A file system in the workspace would be lost from sight.
#[test]
fn another_file_system_in_the_workspace_is_told() {
    stage::ready();
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only the superuser can mount");
        return;
    }
    let Some(place) = Place::new(&plain()) else { return };
    let (inside, outside) = (place.ws.join("out"), place.root.join("outside"));
    fs::create_dir(&outside).unwrap();
    rustix::mount::mount_bind(&outside, &inside).unwrap();
    let why = place.sandbox.no_overlay();
    let refused = place.sandbox.for_check(&[], &place.overlay("a"), None);
    rustix::mount::unmount(&inside, rustix::mount::UnmountFlags::empty()).unwrap();
    let why = why.unwrap();
    assert!(why.contains("another file system is mounted at") && why.contains("/out"), "{why}");
    assert_eq!(refused.unwrap_err(), why);
    assert!(place.sandbox.overlays(), "what was in the way is gone");
}

/// `cargo test --test sandbox overlay::how_long -- --ignored --nocapture`: figures for people, no judgement.
#[test]
#[ignore = "a measurement"]
fn how_long_a_fresh_overlay_takes() {
    for files in [5, 20_000] {
        let Some(place) = Place::new(&plain()) else { return };
        for number in 0..files {
            let folder = place.ws.join(format!("many/{}", number / 200));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(number.to_string()), "x").unwrap();
        }
        let median = |mut time: Box<dyn FnMut(usize) -> Duration + '_>| {
            let mut times: Vec<Duration> = (0..50).map(&mut time).collect();
            times.sort();
            times[25]
        };
        let run = |worn: &Arc<Confinement>| {
            let mut spec = CommandSpec::new(vec!["/bin/true".to_owned()], &place.ws, "overlay");
            spec.confinement = Some(worn.clone());
            assert_eq!(stage::run(spec).end, End::Exited(0));
        };
        let fresh = median(Box::new(|number| {
            let overlay = place.overlay(&number.to_string());
            let started = Instant::now();
            run(&place.worn(&["AGENTS.md"], &overlay));
            started.elapsed()
        }));
        let worn = place.worn(&["AGENTS.md"], &place.overlay("again"));
        let again = median(Box::new(|_| {
            let started = Instant::now();
            run(&worn);
            started.elapsed()
        }));
        let walk = |worn: &Arc<Confinement>| {
            let started = Instant::now();
            assert_eq!(place.run(worn, "find . -type f | wc -l").0, End::Exited(0));
            started.elapsed()
        };
        let bare = place.sandbox.for_tool(Access::ReadWrite).unwrap().unwrap();
        let walks = (walk(&worn), walk(&worn), walk(&bare), walk(&bare));
        println!("{files} files: fresh {fresh:?}, again {again:?}; walks (overlay twice, plain twice) {walks:?}");
    }
}
