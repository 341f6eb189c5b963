//! Holds the architecture: dependencies point one way, deciding is pure, there is one door and one mouth, and (in
//! `shape`) playbooks are rooms, modules are no knots, functions are short.

#![allow(clippy::expect_used)]

mod shape;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

/// What each module may take from the crate.
const MAY_USE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("machine", &["model"]),
    ("journal", &["model"]),
    ("playbook", &["model", "machine"]),
    ("agent", &["model"]),
    ("workspace", &["model"]),
    ("tool", &["model", "machine", "workspace"]),
    ("evidence", &["model", "machine", "journal", "playbook", "workspace", "tool"]),
    ("engine", &["model", "machine", "journal", "playbook", "agent", "workspace", "tool", "evidence"]),
    ("console", &["model", "machine", "journal", "playbook", "workspace", "evidence", "engine"]),
    (
        "cli",
        &["model", "machine", "journal", "playbook", "agent", "workspace", "tool", "evidence", "engine", "console"],
    ),
];

/// What the deciding modules must not know: tasks, files, clocks, chance.
const PURE: &[&str] = &["model", "machine", "playbook"];
const IMPURE: &[&str] = &[
    "tokio",
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "std::time",
    "std::env",
    "std::thread",
    "jiff",
    "reqwest",
    "rustix",
];

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).expect("src is there") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Every `word::…` path that a module mentions outside comments.
fn code_lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("readable");
    text.lines().filter(|line| !line.trim_start().starts_with("//")).map(str::to_owned).collect()
}

fn module_files() -> Vec<(&'static str, PathBuf)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    MAY_USE
        .iter()
        .flat_map(|(module, _)| rust_files(&src.join(module)).into_iter().map(move |file| (*module, file)))
        .collect()
}

#[test]
fn modules_take_only_from_below() {
    for (module, file) in module_files() {
        let allowed = MAY_USE.iter().find(|(name, _)| *name == module).expect("listed").1;
        for line in code_lines(&file) {
            for (other, _) in MAY_USE.iter().filter(|(other, _)| *other != module && !allowed.contains(other)) {
                let mention = format!("crate::{other}");
                assert!(!line.contains(&mention), "{}: {module} must not use {other}: {line}", file.display());
            }
        }
    }
}

#[test]
fn deciding_modules_do_no_io_and_know_no_clock() {
    for (module, file) in module_files() {
        if !PURE.contains(&module) {
            continue;
        }
        for line in code_lines(&file) {
            let found = IMPURE
                .iter()
                .find(|word| line.contains(&format!("{word}::")) || line.contains(&format!("use {word};")));
            assert!(found.is_none(), "{}: {module} is pure, but: {line}", file.display());
        }
    }
}

#[test]
fn every_module_says_what_it_is() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in rust_files(&src) {
        let text = fs::read_to_string(&file).expect("readable");
        assert!(text.starts_with("//!"), "{} has no header", file.display());
    }
}

#[test]
fn only_the_theme_names_a_colour() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in rust_files(&src).into_iter().filter(|file| !file.starts_with(src.join("console/theme"))) {
        for line in code_lines(&file) {
            let named = ["Color::", "style::Color"].iter().any(|word| line.contains(word));
            assert!(!named, "{}: a role, not a colour: {line}", file.display());
        }
    }
}

/// Ways to a terminal, and who may take them. Everybody else says it through `cli::text`, which makes it harmless.
const MOUTHS: &[(&str, &str)] = &[
    ("cli/text.rs", "the mouth of the commands"),
    ("console/terminal/restore.rs", "the console's frames, which are scrubbed, and the report of a panic"),
    ("console/terminal/device.rs", "asks the terminal for its size and modes"),
    ("cli/headless.rs", "a progress bar; its texts come from `text::printable`"),
    ("cli/mcp.rs", "MCP frames, for a program"),
    ("journal/failpoint.rs", "debug builds name the place of a planned crash"),
];

#[test]
fn only_one_place_speaks_to_the_operator() {
    const WAYS: &[&str] = &[
        "println!(",
        "print!(",
        "dbg!(",
        "stdout()",
        "stderr()",
        "transport::stdio()",
        "ProgressDrawTarget",
        "stdio::",
        "open(\"/dev/tty",
        "open(\"/dev/std",
        "execute!(",
        "queue!(",
    ];
    // Questions and descriptors, no words.
    const SILENT: &[&str] = &["stdout().is_terminal()", "process::Stdio", "stdio::dup2_std", "use_stderr()"];
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in rust_files(&src).into_iter().filter(|file| MOUTHS.iter().all(|(name, _)| *file != src.join(name))) {
        if file.components().any(|part| part.as_os_str() == "tests") || file.to_string_lossy().ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("readable");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let spoken = SILENT.iter().fold(line.to_owned(), |line, silent| line.replace(silent, ""));
            let way = WAYS.iter().find(|way| spoken.contains(**way));
            assert!(way.is_none(), "{}: say it through cli::text: {line}", file.display());
        }
    }
    for (name, why) in MOUTHS {
        assert!(src.join(name).is_file() && !why.is_empty(), "{name} is gone");
    }
}

/// Views are pure: what they draw comes from the model alone.
#[test]
fn views_know_no_clock_and_no_files() {
    let console = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console");
    let pure = ["panes", "overlays", "charts", "screens", "transcript", "keymap"].map(|dir| console.join(dir));
    let alone = ["bars", "view", "update", "world", "model", "why", "pulse", "scroll", "hunks"];
    let alone = alone.map(|name| console.join(format!("{name}.rs")));
    let files = pure.iter().flat_map(|dir| rust_files(dir)).chain(alone);
    for file in files {
        let text = fs::read_to_string(&file).expect("readable");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in
            ["std::fs", "Instant", "SystemTime", "std::env", "std::process", "Timestamp::now", "tokio", "std::thread"]
        {
            assert!(!code.contains(word), "{}: a view knows no {word}", file.display());
        }
    }
}

#[test]
fn the_shipped_schema_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/loop.schema.json");
    let generated = serde_json::to_string_pretty(&nightloop::model::loop_file::schema()).expect("serialisable") + "\n";
    if std::env::var_os("NIGHTLOOP_WRITE_SCHEMA").is_some() {
        fs::write(&path, &generated).expect("writable");
    }
    let shipped = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        shipped == generated,
        "run `NIGHTLOOP_WRITE_SCHEMA=1 cargo test --test architecture` and commit the change"
    );
}

/// Who may touch the file system beside the door, and why.
const MAY_TOUCH_FILES: &[(&str, &str)] = &[
    ("workspace/", "the door itself"),
    ("journal/", "the state directory"),
    ("tool/sandbox", "places of the machine, and the private temporary folder"),
    ("tool/", "processes: /proc, programs on the path, files of the agents' own tools through the door"),
    ("agent/", "cassettes that the operator names"),
    ("console/settings.rs", "the operator's settings"),
    ("console/theme/", "the operator's themes"),
    ("console/app.rs", "drafts in a temporary folder of our own"),
    ("evidence/verify", "the state directory"),
    ("evidence/pack.rs", "the state directory, and the one file of a packed run"),
    ("engine/places.rs", "the state directory and the operator's settings"),
    ("engine/session.rs", "the state directory; the workspace as a whole"),
    ("engine/claim.rs", "the state directory"),
    ("engine/remembered.rs", "the state directory"),
    ("engine/unaccepted.rs", "the state directory"),
    ("engine/start_files.rs", "copies in the run's own folder"),
    ("engine/programs_at_start.rs", "the run's own folder; times of programs outside of every workspace"),
    ("engine/already.rs", "the state directory"),
    ("engine/aside.rs", "layers in the state directory"),
    ("engine/checks.rs", "layers in the run's own folder"),
    ("engine/control.rs", "the socket in the state directory"),
    ("engine/rate.rs", "the state directory"),
    ("engine/offline.rs", "the state directory"),
    ("engine/orders.rs", "blobs in the state directory"),
    ("engine/offer.rs", "a socket in the private temporary folder"),
    ("engine/diff.rs", "copies in the state directory"),
    ("engine/keys.rs", "files with keys, which must lie outside of every workspace"),
    ("engine/secrecy.rs", "files with keys"),
    ("engine/signer.rs", "the operator's key"),
    ("engine/backends.rs", "files with keys, catalogues of models"),
    ("engine/program/", "folders of agent programs in the home folder"),
    ("engine/genesis.rs", "the workspace as a whole"),
    ("engine/declaration.rs", "the folder of loop.yaml as a whole"),
    ("engine/seal.rs", "the run's own folder"),
    ("engine/git/index.rs", "a private index in the temporary folder"),
    ("engine/git/place.rs", "a repository outside of the workspace that names it"),
    ("engine/resources.rs", "/proc"),
    ("engine/ends.rs", "a clock of the tests, in debug builds alone"),
    ("engine/probes.rs", "a folder for a check's data in the private temporary folder"),
    ("engine/value/services/", "/proc; logs in the run's own folder"),
    ("cli/", "what the operator names, outside of workspaces"),
];
/// What touches the file system by a path.
const TOUCHES: &[&str] = &[
    "fs::read",
    "fs::write",
    "fs::copy",
    "fs::rename",
    "fs::remove",
    "fs::create",
    "fs::metadata",
    "fs::symlink",
    "fs::hard_link",
    "fs::set_permissions",
    "fs::canonicalize",
    "File::open",
    "File::create",
    "File::options",
    "OpenOptions",
    ".exists()",
    ".is_file()",
    ".is_dir()",
    ".canonicalize()",
    "read_dir(",
    "symlink_metadata(",
    "read_to_string(",
    "tempfile_in(",
    "tempdir_in(",
];

fn code_without_tests(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("readable");
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).map(str::to_owned).collect()
}

/// Everything that we read or write in a workspace goes through one module. What other modules touch is named above, with
/// the reason; and none of them joins a name to a workspace's path to touch it.
#[test]
fn the_workspace_has_one_door() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in rust_files(&src) {
        let name = file.strip_prefix(&src).expect("below").to_string_lossy().into_owned();
        let is_test = name.contains("tests");
        if name.starts_with("workspace/") || is_test {
            continue;
        }
        let allowed = MAY_TOUCH_FILES.iter().any(|(place, _)| name.starts_with(place));
        for line in code_without_tests(&file) {
            let touches = TOUCHES.iter().any(|word| line.contains(word)) && !line.contains("rustix::fs::OFlags");
            assert!(!touches || allowed, "{name} touches the file system: {line}");
            let joins = ["workspace.join(", "workspace().join(", "here.join("].iter().any(|join| line.contains(join));
            // To ask what a path resolves to opens nothing.
            let only_asks = line.contains(".canonicalize()");
            assert!(!(touches && joins) || only_asks, "{name} goes around the door: {line}");
        }
    }
}
