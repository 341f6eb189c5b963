//! What `verify` proves and what it does not: anchors, signatures, files that are not ours, runs that travel.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::chain::Chain;
use crate::harness::{contents, files_below, run_id, run_with, single_iteration, small, thorough, tiny, with_script};
use crate::support::{Bench, Ended, copy_tree};

fn ended() -> Bench {
    let bench = tiny();
    bench.nightloop(&["run"]).expect(0);
    bench
}

fn json(found: &Ended) -> Value {
    serde_json::from_str(&found.stdout).unwrap_or_else(|e| panic!("{e}: {}{}", found.stdout, found.stderr))
}

fn has(list: &Value, part: &str) -> bool {
    list.as_array().unwrap().iter().any(|one| one.as_str().unwrap().contains(part))
}

#[test]
fn an_untouched_run_says_what_is_proven_and_what_is_not() {
    let bench = ended();
    let found = bench.nightloop(&["verify"]).expect(0);
    let first = found.stdout.lines().next().unwrap();
    assert!(first.contains(": verified, signed by SHA256:") && first.ends_with(", this user's key"), "{first}");
    let report = json(&bench.nightloop(&["verify", "--json"]).expect(0));
    let head = report["head"].as_str().unwrap();
    assert!(head.len() == 64 && found.stdout.contains(head), "the whole head is printed: {}", found.stdout);
    for part in ["the chain: ", "decisions re-made", "evidence: ", "AGENTS.md", "the workspace: its ", "the end: "] {
        assert!(has(&report["proven"], part), "{part}: {report:#}");
    }
    assert!(has(&report["not_proven"], "that the checks pass now"), "{report:#}");
    let facts = (&report["verdict"], &report["exit"], &report["sealed"], &report["anchored"]);
    assert_eq!(facts, (&"ok".into(), &0.into(), &true.into(), &true.into()));
    assert_eq!(report["signer"]["this_user"], true);
    assert_eq!(report["outcome"]["status"], "EXIT_CONVERGED");
    let replayed = json(&bench.nightloop(&["verify", "--json", "--replay"]).expect(0));
    assert!(has(&replayed["proven"], "replay ") && !has(&replayed["not_proven"], "checks pass now"), "{replayed:#}");
    assert!(has(&replayed["not_proven"], "that the code does more than its checks ask"), "{replayed:#}");
}

#[test]
fn work_of_the_next_morning_is_named_and_is_no_tampering() {
    let bench = ended();
    fs::write(bench.workspace.join("one.txt"), "edited\n").unwrap();
    fs::write(bench.workspace.join("mine.txt"), "new\n").unwrap();
    fs::remove_file(bench.workspace.join("two.txt")).unwrap();
    let report = json(&bench.nightloop(&["verify", "--json"]).expect(0));
    let said = "it is no longer the recorded one (new: mine.txt, changed: one.txt, gone: two.txt)";
    assert!(has(&report["not_proven"], said), "{report:#}");
    // A check that is run again and comes out differently is another matter.
    let replayed = bench.nightloop(&["verify", "--replay"]).expect(1);
    assert!(replayed.stdout.contains("the record differs"), "{}", replayed.stdout);
}

#[test]
fn extra_linked_and_odd_evidence_is_named() {
    let bench = ended();
    let evidence = bench.workspace.join("evidence/loop");
    let named = |what: &str| {
        let report = json(&bench.nightloop(&["verify", "--json"]).expect(2));
        assert!(has(&report["incomplete"], what), "{what}: {report:#}");
    };
    fs::create_dir(evidence.join("iter_7")).unwrap();
    fs::write(evidence.join("iter_7/certificate.json"), "{}").unwrap();
    named("evidence/loop: holds files that are not part of this run: iter_7/certificate.json");
    fs::remove_dir_all(evidence.join("iter_7")).unwrap();

    let (plan, kept) = (evidence.join("plan.json"), bench.dir.path().join("kept.json"));
    fs::rename(&plan, &kept).unwrap();
    symlink(&kept, &plan).unwrap();
    named("evidence/loop/plan.json: is not read through a link");
    fs::remove_file(&plan).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &plan, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    named("evidence/loop/plan.json: is not a file");
    fs::remove_file(&plan).unwrap();
    named("evidence/loop/plan.json: is missing");
    fs::rename(&kept, &plan).unwrap();
    bench.nightloop(&["verify"]).expect(0);

    let elsewhere = bench.dir.path().join("elsewhere");
    fs::rename(&evidence, &elsewhere).unwrap();
    symlink(&elsewhere, &evidence).unwrap();
    named("evidence/loop: is a link");
}

/// Flips every byte of anchors.log: of this run's lines, each is found; of another's, each is named.
#[test]
fn every_byte_of_the_anchors() {
    let bench = ended();
    let first = run_id(&bench);
    fs::remove_file(bench.workspace.join("one.txt")).unwrap();
    bench.nightloop(&["run"]).expect(0);
    let path = bench.state.join("anchors.log");
    let whole = fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), 4, "{}", String::from_utf8_lossy(&whole));
    let run = nightloop::journal::RunDir::open(&bench.state.join("runs").join(&first)).unwrap();
    let place = nightloop::evidence::verify::RenderedPlace::Nowhere;
    let own = lines[0].len() + lines[1].len();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(&path, &changed).unwrap();
        let found = nightloop::evidence::verify::verify(&run, Some(&path), &place);
        let named = |lines: &[String]| lines.iter().any(|line| line.contains("damaged"));
        assert!(named(&found.incomplete) || named(&found.not_proven), "byte {at}");
        let code = found.verdict().exit_code();
        assert_eq!(code, if at < own { 2 } else { 0 }, "byte {at}: {:?} {:?}", found.problems, found.incomplete);
    }
    fs::write(&path, lines[1..].concat()).unwrap();
    bench.nightloop(&["verify", &first]).expect(2);
    fs::remove_file(&path).unwrap();
    let gone = bench.nightloop(&["verify", &first]).expect(2);
    assert!(gone.stdout.contains("incomplete: unanchored"), "{}", gone.stdout);
}

/// The chain is right again, seal and anchors are gone: never simply "verified", and never sealed by the way.
#[test]
fn a_forged_run_is_unsigned_and_unanchored_and_not_sealed_anew() {
    let bench = ended();
    let mut chain = Chain::read(&bench.run_dir());
    let seq = chain.find("probe.finished", 0);
    chain.change(seq, "\"millis\":", "\"millis\":1");
    chain.write();
    bench.unseal();
    let anchors = bench.state.join("anchors.log");
    let noted = fs::read(&anchors).unwrap();
    let before = contents(&bench.run_dir());
    let refused = bench.nightloop(&["resume"]).expect(65);
    assert!(
        refused.stderr.contains("its anchor names") && refused.stderr.contains("--unanchored"),
        "{}",
        refused.stderr
    );

    fs::remove_file(&anchors).unwrap();
    let found = bench.nightloop(&["verify"]).expect(2);
    assert!(found.stdout.contains("incomplete: unsealed, unsigned, unanchored"), "{}", found.stdout);
    assert!(!found.stdout.contains("verified"), "{}", found.stdout);
    let refused = bench.nightloop(&["resume"]).expect(65);
    assert!(refused.stderr.contains("no anchor of this run"), "{}", refused.stderr);
    let unchanged = |path: &PathBuf| !path.ends_with("run.lock");
    let kept = |files: std::collections::BTreeMap<PathBuf, Vec<u8>>| -> Vec<_> {
        files.into_iter().filter(|(path, _)| unchanged(path)).collect()
    };
    assert_eq!(kept(contents(&bench.run_dir())), kept(before), "nothing was sealed");

    // Told to, it seals; and what was not anchored stays so.
    bench.nightloop(&["resume", "--unanchored"]).expect(0);
    let found = bench.nightloop(&["verify"]).expect(2);
    assert!(found.stdout.contains("the run was not anchored before event"), "{}", found.stdout);
    // With the true anchors it is what it is.
    fs::write(&anchors, noted).unwrap();
    bench.nightloop(&["verify"]).expect(1);
}

#[test]
fn a_journal_that_was_cut_behind_its_anchor_is_not_continued() {
    let bench = ended();
    let journal = bench.run_dir().join("journal/00000001.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let cut: String = text.lines().take(20).flat_map(|line| [line, "\n"]).collect();
    fs::write(&journal, &cut).unwrap();
    bench.unseal();
    let refused = bench.nightloop(&["resume"]).expect(65);
    assert!(refused.stderr.contains("its end is missing"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(&journal).unwrap(), cut);
}

#[test]
fn a_run_that_died_before_any_seal_goes_on_and_one_without_its_first_anchor_does_not() {
    for seq in [0, 20] {
        let bench = small();
        assert_eq!(run_with(&bench, &["run"], &[("NIGHTLOOP_CRASH", &format!("after_sync:{seq}"))]).code, -1);
        let anchors = bench.state.join("anchors.log");
        let noted = fs::read(&anchors).unwrap();
        assert_eq!(noted.iter().filter(|byte| **byte == b'\n').count(), 1, "it was anchored before it began");
        fs::remove_file(&anchors).unwrap();
        bench.nightloop(&["resume"]).expect(65);
        fs::write(&anchors, noted).unwrap();
        bench.nightloop(&["resume"]).expect(0);
        bench.nightloop(&["verify"]).expect(0);
    }
}

// Signatures.

fn key_of(bench: &Bench) -> PathBuf {
    bench.state.join("signing_key")
}

#[test]
fn keys_are_made_once_shown_and_exported() {
    let bench = tiny();
    let shown = bench.nightloop(&["keys"]).expect(0);
    assert!(shown.stdout.contains("ssh-ed25519 AAAA") && shown.stdout.contains("SHA256:"), "{}", shown.stdout);
    let bytes = fs::read(key_of(&bench)).unwrap();
    assert_eq!(fs::metadata(key_of(&bench)).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(bench.nightloop(&["keys"]).expect(0).stdout, shown.stdout);
    assert_eq!(fs::read(key_of(&bench)).unwrap(), bytes);
    let line = bench.nightloop(&["keys", "export", "--as", "ada@example.org"]).expect(0).stdout;
    assert!(line.starts_with("ada@example.org namespaces=\"nightloop\" ssh-ed25519 AAAA"), "{line}");
    bench.nightloop(&["keys", "export", "--as", "a b"]).expect(64);
    // OpenSSH reads it, where there is one.
    let keygen = std::process::Command::new("ssh-keygen").args(["-y", "-f"]).arg(key_of(&bench)).output();
    match keygen {
        Ok(output) => {
            let public = String::from_utf8_lossy(&output.stdout).into_owned();
            let key = line.split(' ').nth(3).unwrap().trim();
            assert!(public.contains(key), "{public}{}", String::from_utf8_lossy(&output.stderr));
        }
        Err(_) => println!("skipped: there is no ssh-keygen here"),
    }
}

#[test]
fn a_signature_is_by_somebody_who_is_listed_or_that_is_said() {
    let bench = ended();
    let list = |name: &str, lines: &str| {
        let path = bench.dir.path().join(name);
        fs::write(&path, lines).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let ours = bench.nightloop(&["keys", "export", "--as", "ada"]).expect(0).stdout;
    let good = list("good", &format!("# us\n{ours}"));
    let found = bench.nightloop(&["verify", "--signer", &good]).expect(0);
    assert!(found.stdout.lines().next().unwrap().contains("verified, signed by ada (SHA256:"), "{}", found.stdout);
    let other = tiny();
    let theirs = other.nightloop(&["keys", "export", "--as", "eve"]).expect(0).stdout;
    let strangers = list("strangers", &theirs);
    let found = bench.nightloop(&["verify", "--signer", &strangers]).expect(1);
    assert!(found.stdout.contains("does not list"), "{}", found.stdout);
    let wrong = bench.nightloop(&["verify", "--signer", &list("wrong", "ada valid-before=\"x\" y z")]).expect(64);
    assert!(wrong.stderr.contains("line 1"), "{}", wrong.stderr);
    // Another key than this user's holds, and is called so.
    fs::copy(key_of(&other), key_of(&bench)).unwrap();
    let found = bench.nightloop(&["verify"]).expect(0);
    assert!(found.stdout.lines().next().unwrap().contains("which is not this user's key"), "{}", found.stdout);
    // The signature of another run is none of this one.
    fs::write(other.workspace.join("extra"), "x").unwrap();
    other.nightloop(&["run"]).expect(0);
    let envelope = bench.run_dir().join("seal.dsse.json");
    let kept = fs::read(&envelope).unwrap();
    fs::copy(other.run_dir().join("seal.dsse.json"), &envelope).unwrap();
    let found = bench.nightloop(&["verify"]).expect(1);
    assert!(found.stdout.contains("seal.dsse.json: it holds another statement"), "{}", found.stdout);
    // The seal says that it was to be signed.
    fs::remove_file(&envelope).unwrap();
    let found = bench.nightloop(&["verify"]).expect(2);
    assert!(found.stdout.contains("seal.dsse.json: it is missing"), "{}", found.stdout);
    // As after a crash between seal and signature: resume makes up for it.
    bench.nightloop(&["resume"]).expect(0);
    bench.nightloop(&["verify"]).expect(0);
    assert_ne!(fs::read(&envelope).unwrap(), kept, "it is signed by the key that is there now");
}

#[test]
fn without_a_key_a_run_ends_unsigned_with_a_warning() {
    let bench = tiny();
    fs::create_dir_all(key_of(&bench)).unwrap();
    let ran = bench.nightloop(&["run"]).expect(0);
    assert!(ran.stderr.contains("the run is unsigned"), "{}", ran.stderr);
    let found = bench.nightloop(&["verify"]).expect(0);
    assert!(found.stdout.contains("consistent, but unsigned"), "{}", found.stdout);
    let asked = bench.nightloop(&["verify", "--signer", "/dev/null"]);
    assert_eq!(asked.code, 64, "an empty list: {}", asked.stderr);
}

#[test]
fn a_key_of_the_users_own_is_used_where_the_configuration_names_it() {
    let (bench, other) = (tiny(), tiny());
    other.nightloop(&["keys"]).expect(0);
    let key = bench.dir.path().join("id_ed25519");
    fs::copy(key_of(&other), &key).unwrap();
    let config = bench.dir.path().join(".config/nightloop");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.yaml"), "signing: { key: ~/id_ed25519 }\n").unwrap();
    bench.nightloop(&["run"]).expect(0);
    assert!(!key_of(&bench).exists(), "no second key is made");
    let theirs = other.nightloop(&["keys", "export"]).expect(0).stdout;
    let path = bench.dir.path().join("signers");
    fs::write(&path, theirs).unwrap();
    bench.nightloop(&["verify", "--signer", path.to_str().unwrap()]).expect(0);
}

/// An agent looks for the key in every way it can think of; nothing of it gets anywhere.
#[test]
fn the_key_is_hidden_from_agents_and_from_every_record() {
    let script = "for f in \"$HOME\"/state/signing_key @STATE@/signing_key /proc/$PPID/root@STATE@/signing_key \
                  /proc/self/root@STATE@/signing_key; do cat \"$f\"; cp \"$f\" stolen; ln \"$f\" stolen2; ln -s \"$f\" \
                  stolen3; done; cat stolen3; ls -la @STATE@; env; grep -rs 'OPENSSH' @STATE@ /proc/$PPID/environ; \
                  tar cf all.tar @STATE@; true";
    let bench = tiny();
    let state = bench.state.to_str().unwrap().to_owned();
    fs::write(bench.workspace.join("rehearsal.yaml"), single_iteration(&script.replace("@STATE@", &state))).unwrap();
    bench.nightloop(&["keys"]).expect(0);
    let key = fs::read_to_string(key_of(&bench)).unwrap();
    let ran = bench.nightloop(&["run"]);
    let secret: Vec<&str> = key.lines().filter(|line| !line.starts_with('-')).collect();
    let holds = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        text.contains("BEGIN OPENSSH") || secret.iter().any(|line| text.contains(line))
    };
    assert!(holds(key.as_bytes()));
    for path in files_below(&bench.workspace).into_iter().chain(files_below(&bench.run_dir())) {
        // A link to the key is an agent's to make; what counts is what it reads.
        if fs::symlink_metadata(&path).unwrap().is_file() {
            assert!(!holds(&fs::read(&path).unwrap()), "{} holds the key", path.display());
        }
    }
    assert!(!ran.stdout.contains(secret[0]) && !ran.stderr.contains(secret[0]));
    assert_eq!(fs::read_to_string(key_of(&bench)).unwrap(), key);
}

// Runs that travel.

/// Packs the run of a bench; returns the file.
fn exported(bench: &Bench) -> PathBuf {
    let file = bench.dir.path().join("run.nlrun");
    bench.nightloop(&["export", &run_id(bench), file.to_str().unwrap()]).expect(0);
    file
}

/// A machine that has nothing but the file.
fn elsewhere(file: &Path, arguments: &[&str]) -> Ended {
    let bench = Bench::new();
    let mut all = vec!["verify", file.to_str().unwrap()];
    all.extend(arguments);
    bench.nightloop(&all)
}

#[test]
fn a_run_travels_and_is_verified_with_nothing_else() {
    let bench = ended();
    let file = exported(&bench);
    let signers = bench.dir.path().join("signers");
    fs::write(&signers, bench.nightloop(&["keys", "export", "--as", "ada"]).expect(0).stdout).unwrap();
    let signers = signers.to_str().unwrap();
    let report = json(&elsewhere(&file, &["--signer", signers, "--json"]).expect(0));
    assert_eq!((&report["verdict"], &report["run"]), (&"ok".into(), &run_id(&bench).into()));
    assert_eq!((&report["signer"]["name"], &report["anchored"]), (&"ada".into(), &true.into()));
    assert!(has(&report["proven"], "evidence: "), "{report:#}");
    let here = json(&bench.nightloop(&["verify", "--json"]).expect(0));
    assert_eq!((&report["head"], &report["events"]), (&here["head"], &here["events"]));
    let line = elsewhere(&file, &[]).expect(0).stdout;
    assert!(line.lines().next().unwrap().contains("which is not this user's key"), "{line}");
    elsewhere(&file, &["--replay"]).expect(64);
    // It is a plain tar, and nothing is overwritten.
    if let Ok(listed) = std::process::Command::new("tar").arg("tf").arg(&file).output() {
        let names = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(names.contains("genesis.json\n") && names.contains("evidence/loop/manifest.json\n"), "{names}");
    }
    bench.nightloop(&["export", &run_id(&bench), file.to_str().unwrap()]).expect(64);
    // The workspace may be gone, and the damage in it is not what travels.
    fs::remove_dir_all(bench.workspace.join("evidence")).unwrap();
    let again = bench.dir.path().join("again.nlrun");
    bench.nightloop(&["export", &run_id(&bench), again.to_str().unwrap()]).expect(0);
    assert_eq!(fs::read(&file).unwrap(), fs::read(&again).unwrap(), "one run, one file");
}

#[test]
fn a_file_that_was_changed_or_cut_is_not_believed() {
    let bench = ended();
    let file = exported(&bench);
    let whole = fs::read(&file).unwrap();
    let changed = bench.dir.path().join("changed.nlrun");
    let step = if thorough() { 97 } else { whole.len() / 40 };
    for at in (0..whole.len()).step_by(step) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&changed, &bytes).unwrap();
        let found = elsewhere(&changed, &[]);
        assert_eq!(found.code, 1, "byte {at}: {}{}", found.stdout, found.stderr);
    }
    for length in [0, 1, 511, 512, 5_000, whole.len() / 2, whole.len() - 1_024, whole.len() - 1] {
        fs::write(&changed, &whole[..length]).unwrap();
        let found = elsewhere(&changed, &["--json"]).expect(2);
        assert_eq!(json(&found)["verdict"], "incomplete", "cut to {length}");
    }
    fs::write(&changed, "no archive at all, but long enough to hold a header".repeat(20)).unwrap();
    elsewhere(&changed, &[]).expect(1);
}

/// A forger packs his own run again: it agrees with itself, and is not signed by anybody who is listed.
#[test]
fn a_forged_run_that_travels_is_told_by_its_signature() {
    let forger = ended();
    let victim = ended();
    let signers = victim.dir.path().join("signers");
    fs::write(&signers, victim.nightloop(&["keys", "export"]).expect(0).stdout).unwrap();
    let found = elsewhere(&exported(&forger), &["--signer", signers.to_str().unwrap()]).expect(1);
    assert!(found.stdout.contains("does not list"), "{}", found.stdout);
}

#[test]
fn a_copied_run_directory_is_called_unanchored() {
    let bench = ended();
    let copy = bench.dir.path().join("copy");
    copy_tree(&bench.run_dir(), &copy);
    let found = bench.nightloop(&["verify", copy.to_str().unwrap()]).expect(0);
    assert!(found.stdout.contains("but unanchored"), "{}", found.stdout);
    assert!(found.stdout.contains("there are no anchors to compare it with"), "{}", found.stdout);
    // An unsigned copy is nobody's.
    let bench = with_script(&single_iteration("true"));
    fs::create_dir_all(key_of(&bench)).unwrap();
    bench.nightloop(&["run"]).expect(0);
    let found = bench.nightloop(&["verify", bench.run_dir().to_str().unwrap()]).expect(0);
    assert!(found.stdout.contains("consistent, but unsigned and unanchored"), "{}", found.stdout);
}
