//! The scripts of the QC role: finding them, putting them back, how they are run.
//!
//! Role: files under `.loop/verifications` as verifications, and verifications as files. Not its role: when they run
//! (`probes`) and what a result means (`playbook::value`).
//! Invariants: the whole set is bounded; no symlink is followed; what is run is what was recorded, byte for byte; a
//! check that was found once stays: nobody gets past it by deleting its script.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::journal::{Blobs, JournalError};
use crate::model::digest::Digest;
use crate::model::learnings::flatten;
use crate::model::secret::{Scope, Secrets};
use crate::model::value::verification::DIRECTORY;
use crate::model::value::{Verification, VerificationStatus};
use crate::playbook::value::event::VerificationsFound;
use crate::workspace::plain::{self, Bits, Durability, FileKind, PlainFile};

/// The largest script.
const MAX_SCRIPT: usize = 256 * 1024;
/// Scripts of one run.
const MAX_SCRIPTS: usize = 50;
/// Entries looked at in one folder.
const MAX_ENTRIES: usize = 1_000;
/// Names of what was passed over.
const MAX_PASSED_OVER: usize = 50;
const MAX_NAME: usize = 100;
/// The header with the required categories is in one of these lines.
const HEADER_LINES: usize = 5;
const MAX_REQUIRED: usize = 10;
/// Categories that a flat name may begin with.
const PREFIXES: [&str; 3] = ["unit", "integration", "value"];
/// What helps scripts and is none.
const WRAPPERS: [&str; 6] = ["run_all", "setup", "teardown", "helper", "fixture", "conftest"];

/// A script as it lies there.
#[derive(Debug, PartialEq, Eq)]
struct Script {
    id: String,
    category: String,
    path: String,
    file: PlainFile,
}

/// Everything found, with what is known about those that are unchanged. Whoever writes scripts adds some and rewrites
/// those that do not pass; one that is known is never taken away, and one that passes stays as it is.
pub(super) fn find(
    workspace: &Path,
    known: &BTreeMap<String, Verification>,
    blobs: &Blobs,
    secrets: &Secrets,
) -> Result<VerificationsFound, JournalError> {
    let (scripts, mut passed_over) = scan(workspace, secrets);
    let mut kept = Vec::new();
    for script in limited(scripts, known, &mut passed_over) {
        let digest = blobs.put(&script.file.bytes)?;
        kept.push((script, digest));
    }
    let verifications = merge(kept, known, &mut passed_over);
    let more = passed_over.len().saturating_sub(MAX_PASSED_OVER);
    if more > 0 {
        passed_over.truncate(MAX_PASSED_OVER);
        passed_over.push(format!("and {more} more"));
    }
    Ok(VerificationsFound { verifications, passed_over })
}

/// As many new scripts as there is room for beside those that are known.
fn limited(scripts: Vec<Script>, known: &BTreeMap<String, Verification>, passed_over: &mut Vec<String>) -> Vec<Script> {
    let (mut kept, mut new): (Vec<Script>, Vec<Script>) =
        scripts.into_iter().partition(|script| known.contains_key(&script.id));
    let too_many = new.split_off(new.len().min(MAX_SCRIPTS.saturating_sub(known.len())));
    passed_over.extend(too_many.iter().map(|script| format!("{}: more than {MAX_SCRIPTS} scripts", script.path)));
    kept.append(&mut new);
    kept
}

/// What is known, each as it is from now on, and what is new.
fn merge(
    scripts: Vec<(Script, Digest)>,
    known: &BTreeMap<String, Verification>,
    passed_over: &mut Vec<String>,
) -> Vec<Verification> {
    let mut merged = known.clone();
    let mut gone: BTreeSet<&String> = known.keys().collect();
    for (script, digest) in scripts {
        gone.remove(&script.id);
        let path = script.path.clone();
        match known.get(&script.id) {
            Some(one) if one.status == VerificationStatus::Passed => {
                if one.script != digest || one.path != path {
                    passed_over.push(format!("{path}: the script passes and stays as it was"));
                }
            }
            one => {
                let record = record(script, digest, one);
                merged.insert(record.id.clone(), record);
            }
        }
    }
    passed_over.extend(gone.into_iter().map(|id| format!("{id}: its script is gone, and will be put back")));
    merged.into_values().collect()
}

/// The verification that a script is from now on.
fn record(script: Script, digest: Digest, known: Option<&Verification>) -> Verification {
    let requires = required(&script.file.bytes, &script.category);
    let fresh = Verification {
        id: script.id,
        category: script.category,
        path: script.path,
        script: digest,
        executable: script.file.executable,
        requires,
        status: VerificationStatus::Pending,
        runs: 0,
        fix_attempts: 0,
        researched: false,
        corrected: false,
        failures: Vec::new(),
        first_passed_in: None,
        flaky: None,
        broken_by: None,
        dispute: None,
    };
    match known {
        None => fresh,
        // The same bytes: whatever was found out about them stands.
        Some(known) if known.script == digest => Verification {
            path: fresh.path,
            executable: fresh.executable,
            requires: fresh.requires,
            category: fresh.category,
            ..known.clone()
        },
        // What was tried for it is not forgotten, but it has to show itself anew.
        Some(known) => Verification {
            runs: known.runs,
            researched: known.researched,
            corrected: known.corrected,
            failures: known.failures.clone(),
            dispute: known.dispute.clone(),
            ..fresh
        },
    }
}

/// The scripts by id, and what was passed over with the reason.
fn scan(workspace: &Path, secrets: &Secrets) -> (Vec<Script>, Vec<String>) {
    let mut passed_over = Vec::new();
    let mut places: Vec<(String, String)> = Vec::new();
    for (name, kind) in names(workspace, DIRECTORY, &mut passed_over) {
        let path = format!("{DIRECTORY}/{name}");
        match kind {
            FileKind::Link | FileKind::Other => passed_over.push(format!("{}: a symlink, or no file", shown(&path))),
            FileKind::Folder if is_wrapper(&name) => passed_over.push(format!("{path}: helps scripts and is none")),
            FileKind::Folder if is_name(&name) => {
                for (below, kind) in names(workspace, &path, &mut passed_over) {
                    let path = format!("{path}/{below}");
                    if kind == FileKind::File {
                        places.push((name.clone(), path));
                    } else {
                        passed_over.push(format!("{}: not a file", shown(&path)));
                    }
                }
            }
            FileKind::Folder => passed_over.push(format!("{}: not a name for a category", shown(&path))),
            FileKind::File => match PREFIXES.iter().find(|prefix| name.starts_with(&format!("{prefix}_"))) {
                Some(prefix) => places.push(((*prefix).to_owned(), path)),
                None => passed_over.push(format!(
                    "{}: begins with none of unit_, integration_, value_, and lies in no folder of a category",
                    shown(&path)
                )),
            },
        }
    }
    let mut scripts: BTreeMap<String, Script> = BTreeMap::new();
    for (category, path) in places {
        match script(workspace, &category, &path, secrets) {
            Err(why) => passed_over.push(format!("{}: {why}", shown(&path))),
            Ok(script) => match scripts.get(&script.id) {
                Some(other) => passed_over.push(format!("{path}: {} has the same id", other.path)),
                None => {
                    scripts.insert(script.id.clone(), script);
                }
            },
        }
    }
    (scripts.into_values().collect(), passed_over)
}

fn names(workspace: &Path, path: &str, passed_over: &mut Vec<String>) -> Vec<(String, FileKind)> {
    plain::list(workspace, path, MAX_ENTRIES).unwrap_or_else(|why| {
        passed_over.push(shown(&why.to_string()));
        Vec::new()
    })
}

/// Reads one; the error says why it is no verification.
fn script(workspace: &Path, category: &str, path: &str, secrets: &Secrets) -> Result<Script, String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    if !is_name(name) {
        return Err("a name has letters, digits, `.`, `_` and `-` only, and not too many".to_owned());
    }
    if is_wrapper(name) {
        return Err("helps scripts and is none".to_owned());
    }
    let stem = name.rsplit_once('.').filter(|(_, suffix)| interpreter(suffix).is_some()).map(|(stem, _)| stem);
    let stem = stem.filter(|stem| !stem.is_empty()).ok_or("ends with none of .sh, .py, .js")?;
    let file = plain::read(workspace, path, MAX_SCRIPT)?.ok_or("gone")?;
    if std::str::from_utf8(&file.bytes).is_err() {
        return Err("not UTF-8".to_owned());
    }
    // Kept as it is, so it must not hold what may not be kept.
    if secrets.betrayed_by(&file.bytes, Scope::Known) {
        return Err("holds a value that must stay secret".to_owned());
    }
    Ok(Script { id: format!("{category}/{stem}"), category: category.to_owned(), path: path.to_owned(), file })
}

fn is_wrapper(name: &str) -> bool {
    let name = name.to_lowercase();
    WRAPPERS.iter().any(|wrapper| name.starts_with(wrapper)) || name.contains(".config")
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.len() <= MAX_NAME && name.chars().all(plain) && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

fn shown(text: &str) -> String {
    flatten(text).chars().take(2 * MAX_NAME).collect()
}

/// The categories of a header such as `# requires: unit, integration`.
fn required(bytes: &[u8], own: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let header = text.lines().take(HEADER_LINES).find_map(|line| {
        let line = line.trim();
        let comment = line.strip_prefix("//").or_else(|| line.strip_prefix('#'))?;
        comment.trim().strip_prefix("requires:")
    });
    let names = header.into_iter().flat_map(|list| list.split(',')).map(str::trim);
    let mut names: Vec<String> = names.filter(|name| is_name(name) && *name != own).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names.truncate(MAX_REQUIRED);
    names
}

fn interpreter(suffix: &str) -> Option<&'static str> {
    match suffix {
        "sh" => Some("sh"),
        "py" => Some("python3"),
        "js" => Some("node"),
        _ => None,
    }
}

/// How a script is run: by itself where it can, else by what its suffix names.
pub(in crate::engine) fn argv(verification: &Verification, script: &[u8]) -> Vec<String> {
    let suffix = verification.path.rsplit('.').next().unwrap_or_default();
    let direct = verification.executable && script.starts_with(b"#!");
    match interpreter(suffix).filter(|_| !direct) {
        Some(program) => vec![program.to_owned(), verification.path.clone()],
        None => vec![format!("./{}", verification.path)],
    }
}

/// Sees that the file is what was recorded, and puts it back where it is not; `true`: it had to be put back.
pub(in crate::engine) fn restore(workspace: &Path, verification: &Verification, script: &[u8]) -> Result<bool, String> {
    let there = plain::read(workspace, &verification.path, MAX_SCRIPT);
    let same = |file: &PlainFile| file.bytes == script && file.executable == verification.executable;
    if there.is_ok_and(|file| file.as_ref().is_some_and(same)) {
        return Ok(false);
    }
    let bits = Bits::Executable(verification.executable);
    plain::put(workspace, &verification.path, script, bits, Durability::Synced)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn put(workspace: &Path, name: &str, text: &str) {
        plain::put(
            workspace,
            format!("{DIRECTORY}/{name}"),
            text.as_bytes(),
            Bits::Executable(false),
            Durability::Replaceable,
        )
        .unwrap();
    }

    fn ids(scripts: &[Script]) -> Vec<&str> {
        scripts.iter().map(|script| script.id.as_str()).collect()
    }

    #[test]
    fn scripts_are_found_flat_and_by_category() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["value_greets.sh", "unit_a.py", "loose.sh", "ui/b.js", "ui/c.txt", "ui/deep/d.sh"] {
            put(dir.path(), name, "exit 0");
        }
        for name in ["unit/setup_db.sh", "unit/helpers.py", "unit/jest.config.js", "unit/run_all.sh", "fixtures/x.sh"] {
            put(dir.path(), name, "exit 0");
        }
        put(dir.path(), "unit/odd name.sh", "exit 0");
        symlink("value_greets.sh", dir.path().join(DIRECTORY).join("unit_link.sh")).unwrap();
        let (scripts, passed_over) = scan(dir.path(), &Secrets::default());
        assert_eq!(ids(&scripts), ["ui/b", "unit/unit_a", "value/value_greets"]);
        assert_eq!(passed_over.len(), 10, "{passed_over:#?}");
        let (none, nothing) = scan(tempfile::tempdir().unwrap().path(), &Secrets::default());
        assert!(none.is_empty() && nothing.is_empty());
    }

    #[test]
    fn the_set_is_bounded_and_the_rest_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..MAX_SCRIPTS + 2 {
            put(dir.path(), &format!("unit/t{number:03}.sh"), "exit 0");
        }
        put(dir.path(), "unit/a.sh", &"x".repeat(MAX_SCRIPT + 1));
        let (scripts, mut passed_over) = scan(dir.path(), &Secrets::default());
        assert_eq!(limited(scripts, &BTreeMap::new(), &mut passed_over).len(), MAX_SCRIPTS);
        assert_eq!(passed_over.len(), 3, "{passed_over:#?}");
        assert!(passed_over[0].contains("more than 262144 bytes") && passed_over[1].contains("t050"));
    }

    #[test]
    fn a_script_with_a_secret_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "unit_a.sh", "curl -H abcdef0123456789");
        let mut secrets = Secrets::default();
        secrets.add("TOKEN", "abcdef0123456789");
        let (scripts, passed_over) = scan(dir.path(), &secrets);
        assert!(scripts.is_empty() && passed_over[0].contains("must stay secret"));
    }

    #[test]
    fn the_header_names_the_categories_before() {
        assert_eq!(required(b"#!/bin/sh\n#  requires: unit , value, unit\n", "value"), ["unit"]);
        assert_eq!(required(b"// requires: unit", "ui"), ["unit"]);
        assert_eq!(required(b"\n\n\n\n\n# requires: unit", "ui"), Vec::<String>::new());
    }

    fn found(dir: &Path, known: &BTreeMap<String, Verification>) -> BTreeMap<String, Verification> {
        let (scripts, mut passed_over) = scan(dir, &Secrets::default());
        let scripts = limited(scripts, known, &mut passed_over).into_iter().map(|script| {
            let digest = Digest::of(&script.file.bytes);
            (script, digest)
        });
        let merged = merge(scripts.collect(), known, &mut passed_over);
        merged.into_iter().map(|one| (one.id.clone(), one)).collect()
    }

    #[test]
    fn a_check_is_neither_deleted_nor_crowded_out_nor_weakened_once_it_passes() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["unit_gone.sh", "unit_green.sh", "unit_red.sh"] {
            put(dir.path(), name, "exit 1");
        }
        let mut known = found(dir.path(), &BTreeMap::new());
        known.get_mut("unit/unit_green").unwrap().status = VerificationStatus::Passed;
        known.get_mut("unit/unit_gone").unwrap().status = VerificationStatus::Blocked;
        std::fs::remove_file(dir.path().join(DIRECTORY).join("unit_gone.sh")).unwrap();
        put(dir.path(), "unit_green.sh", "exit 0");
        put(dir.path(), "unit_red.sh", "exit 0");
        for number in 0..MAX_SCRIPTS {
            put(dir.path(), &format!("unit/a{number:03}.sh"), "exit 0");
        }
        let now = found(dir.path(), &known);
        assert_eq!(now.len(), MAX_SCRIPTS);
        assert_eq!(now["unit/unit_gone"], known["unit/unit_gone"], "given up, and still there");
        assert_eq!(now["unit/unit_green"], known["unit/unit_green"]);
        assert_ne!(now["unit/unit_red"].script, known["unit/unit_red"].script, "what fails may be written anew");
    }

    #[test]
    fn an_unchanged_script_keeps_its_record_and_a_changed_one_starts_anew() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "unit_a.sh", "exit 0");
        put(dir.path(), "unit_b.sh", "exit 0");
        let mut known = found(dir.path(), &BTreeMap::new());
        let failure = crate::model::value::Failure {
            step: 1,
            end: "exit 1".into(),
            excerpt: String::new(),
            output: Digest::of(b""),
            signature: String::new(),
        };
        for one in known.values_mut() {
            one.status = VerificationStatus::Failed;
            one.runs = 3;
            one.fix_attempts = 2;
            one.first_passed_in = Some(4);
            one.failures = vec![failure.clone()];
        }
        put(dir.path(), "unit_b.sh", "exit 1");
        let now = found(dir.path(), &known);
        assert_eq!(now["unit/unit_a"], known["unit/unit_a"]);
        let changed = &now["unit/unit_b"];
        assert_eq!((changed.status, changed.fix_attempts, changed.runs), (VerificationStatus::Pending, 0, 3));
        assert_eq!((changed.failures.len(), changed.first_passed_in), (1, None));
    }

    #[test]
    fn a_changed_a_missing_and_a_linked_script_are_put_back() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "unit_a.sh", "exit 1");
        let verification = found(dir.path(), &BTreeMap::new()).remove("unit/unit_a").unwrap();
        let path = dir.path().join(&verification.path);
        let restored = || restore(dir.path(), &verification, b"exit 1").unwrap();
        assert!(!restored());
        std::fs::write(&path, "exit 0").unwrap();
        assert!(restored() && !restored());
        std::fs::remove_dir_all(dir.path().join(".loop")).unwrap();
        assert!(restored() && !restored());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(restored() && !restored());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(dir.path().join("product"), "exit 0").unwrap();
        symlink("../../product", &path).unwrap();
        assert!(restored() && !restored());
        assert_eq!(std::fs::read(dir.path().join("product")).unwrap(), b"exit 0");
        assert_eq!(std::fs::read(&path).unwrap(), b"exit 1");
        std::fs::rename(dir.path().join(DIRECTORY), dir.path().join("away")).unwrap();
        symlink("../away", dir.path().join(DIRECTORY)).unwrap();
        assert!(restore(dir.path(), &verification, b"exit 1").is_err());
    }

    #[test]
    fn what_runs_a_script_follows_its_name_and_mode() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["unit_a.sh", "unit_b.py", "unit_c.js"] {
            put(dir.path(), name, "");
        }
        let mut found = found(dir.path(), &BTreeMap::new());
        let of = |one: &Verification, text: &[u8]| argv(one, text)[0].clone();
        assert_eq!(of(&found["unit/unit_a"], b"#!/bin/sh"), "sh");
        assert_eq!(of(&found["unit/unit_b"], b""), "python3");
        assert_eq!(of(&found["unit/unit_c"], b""), "node");
        let script = found.get_mut("unit/unit_a").unwrap();
        script.executable = true;
        assert_eq!(of(script, b"#!/bin/sh"), "./.loop/verifications/unit_a.sh");
        assert_eq!(of(script, b"exit 0"), "sh");
    }
}
