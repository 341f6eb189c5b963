//! A finished run of the value playbook is changed afterwards; `verify` must say so.
//!
//! The forger can hash: the chain is right again, seal and anchors are gone, so only the story gives him away.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::case::Case;
use crate::chain::Chain;
use crate::harness::files_below;
use crate::support::Bench;

/// A finished run that can be forged again and again.
struct Forged {
    bench: Bench,
    original: Vec<u8>,
}

impl Forged {
    fn new() -> Self {
        let bench = Case::new().run().expect(0).verified().bench;
        let original = fs::read(Self::journal(&bench)).unwrap();
        bench.unseal();
        fs::remove_file(bench.state.join("anchors.log")).unwrap();
        let forged = Self { bench, original };
        // Only the end is missing: the forger's tools are right.
        Chain::read(&forged.bench.run_dir()).write();
        assert_eq!(fs::read(Self::journal(&forged.bench)).unwrap(), forged.original);
        forged.bench.nightloop(&["verify"]).expect(2);
        forged
    }

    fn journal(bench: &Bench) -> PathBuf {
        bench.run_dir().join("journal/00000001.jsonl")
    }

    /// Forges; `verify` must name the event.
    #[track_caller]
    fn is_seen(&self, what: &str, forge: impl FnOnce(&mut Chain) -> String) {
        fs::write(Self::journal(&self.bench), &self.original).unwrap();
        let mut chain = Chain::read(&self.bench.run_dir());
        let place = forge(&mut chain);
        chain.write();
        let found = self.bench.nightloop(&["verify"]);
        assert_eq!(found.code, 1, "{what} was not noticed: {}", found.stdout);
        assert!(found.stdout.contains(&place), "{what}: {place} is not named in {}", found.stdout);
    }
}

/// The number of the first event of a kind whose data say this.
#[track_caller]
fn that_says(chain: &Chain, kind: &str, words: &str) -> usize {
    let count = chain.events.iter().filter(|event| event.contains(&format!("\"type\":\"{kind}\""))).count();
    let mut found = (0..count).map(|nth| chain.find(kind, nth)).filter(|seq| chain.data(*seq).contains(words));
    found.next().unwrap_or_else(|| panic!("no {kind} says {words}"))
}

#[test]
fn a_changed_decision_does_not_follow() {
    let forged = Forged::new();
    let cases = [
        ("task.put", "\"status\":\"done\"", "\"status\":\"done\"", "\"status\":\"descoped\""),
        ("task.put", "\"status\":\"in_progress\"", "\"status\":\"in_progress\"", "\"status\":\"done\""),
        ("vrc.taken", "\"value_score\":\"1\"", "\"value_score\":\"1\"", "\"value_score\":\"0.99\""),
        ("vrc.taken", "\"value_score\":\"0\"", "\"value_score\":\"0\"", "\"value_score\":\"0.7\""),
        ("verification.put", "\"status\":\"passed\"", "\"status\":\"passed\"", "\"status\":\"pending\""),
        ("verification.put", "\"runs\":1", "\"runs\":1", "\"runs\":7"),
        ("step.finished", "\"passed\"", "\"outcome\":\"passed\"", "\"outcome\":\"failed\""),
        ("step.finished", "\"progress\"", "\"outcome\":\"progress\"", "\"outcome\":\"neutral\""),
        ("step.began", "\"exit_gate\"", "\"exit_gate\"", "\"critical_eval\""),
        ("round.closed", "\"vision\"", "\"consensus\":true", "\"consensus\":false"),
    ];
    for (kind, says, from, to) in cases {
        forged.is_seen(&format!("{kind} {from}"), |chain| {
            let seq = that_says(chain, kind, says);
            chain.change(seq, from, to);
            format!("event {seq} ({kind})")
        });
    }
}

#[test]
fn an_exit_gate_that_never_passed_does_not_follow() {
    // A run whose judge keeps the gate shut: the forger opens it.
    let gap = serde_json::json!([{"id": "g", "description": "Not good enough.", "severity": "degraded"}]);
    let shut = crate::case::vrc("0.9", "SHIP_READY", gap);
    let ran = Case::new().on("exit_gate", crate::case::turns(&[&[shut]])).run().expect(2).verified();
    let run = ran.bench.run_dir();
    ran.bench.unseal();
    fs::remove_file(ran.bench.state.join("anchors.log")).unwrap();
    let mut chain = Chain::read(&run);
    let began = that_says(&chain, "step.began", "exit_gate");
    let step = serde_json::from_str::<Value>(&format!("{{\"d\":{}}}", chain.data(began))).unwrap()["d"]["step"].clone();
    let seq = that_says(&chain, "step.finished", &format!("\"step\":{step},"));
    chain.change(seq, "\"outcome\":\"failed\"", "\"outcome\":\"passed\"");
    chain.write();
    let found = ran.bench.nightloop(&["verify"]).expect(1);
    assert!(found.stdout.contains(&format!("event {seq} (step.finished)")), "{}", found.stdout);
}

#[test]
fn a_decision_left_out_or_put_in_is_named() {
    let forged = Forged::new();
    for kind in
        ["verification.put", "vrc.taken", "task.put", "step.finished", "step.began", "round.closed", "round.kept"]
    {
        forged.is_seen(&format!("{kind} left out"), |chain| {
            let seq = chain.find(kind, 0);
            chain.remove(seq);
            // A fact may come next; then the first decision after it gives it away.
            if matches!(kind, "task.put" | "verification.put" | "tool.intended") {
                "event ".to_owned()
            } else {
                format!("event {seq} (")
            }
        });
    }
    // The same decision twice: from the facts after it something else follows.
    for kind in ["vrc.taken", "task.put", "verification.put", "step.finished"] {
        forged.is_seen(&format!("{kind} twice"), |chain| {
            let seq = chain.find(kind, 0);
            let copy = chain.events[seq].clone();
            chain.events.insert(seq + 1, copy);
            // Numbers it anew; what is removed is the copy of the copy.
            chain.events.insert(seq + 1, String::new());
            chain.remove(seq + 1);
            format!("event {} ({kind})", seq + 1)
        });
    }
}

#[test]
fn a_report_or_a_result_that_nobody_gave_is_named() {
    let forged = Forged::new();
    // A judge that was never asked, a script that was never begun, an operation that was never announced.
    for kind in ["agent.started", "probe.started", "tool.intended", "git.intended"] {
        forged.is_seen(&format!("{kind} left out"), |chain| {
            let seq = chain.find(kind, 0);
            chain.remove(seq);
            // A fact may come next; then the first decision after it gives it away.
            if matches!(kind, "task.put" | "verification.put" | "tool.intended") {
                "event ".to_owned()
            } else {
                format!("event {seq} (")
            }
        });
    }
    // What a script showed is a fact; what follows from it is not.
    forged.is_seen("a script that failed", |chain| {
        let seq = that_says(chain, "probe.finished", "\"exited\":0");
        chain.change(seq, "\"exited\":0", "\"exited\":1");
        "event ".to_owned()
    });
    // The words of a judge are covered by their digest.
    forged.is_seen("a judge's score", |chain| {
        let seq = that_says(chain, "report.accepted", "report_vrc");
        chain.change(seq, "\"value_score\":\"", "\"value_score\":\"0.5");
        format!("event {seq} (report.accepted)")
    });
}

#[test]
fn changed_scripts_and_views_are_seen() {
    let bench = Case::new().run().expect(0).verified().bench;
    let run = bench.run_dir();
    let journal = fs::read_to_string(run.join("journal/00000001.jsonl")).unwrap();
    let found = journal.lines().find(|line| line.contains("\"type\":\"verifications.found\"")).unwrap();
    let script = &found.split("\"script\":\"").nth(1).unwrap()[..64];
    let blob = files_below(&run.join("blobs")).into_iter().find(|path| {
        let name: String = path.strip_prefix(run.join("blobs")).unwrap().display().to_string();
        script.ends_with(path.file_name().unwrap().to_str().unwrap()) || name.replace('/', "").contains(script)
    });
    let mut files = vec![blob.expect("the script is a blob")];
    files.extend(files_below(&bench.workspace.join("evidence/loop/value")));
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let original = fs::read(&file).unwrap();
        for at in [0, original.len() / 2, original.len() - 1] {
            let mut changed = original.clone();
            changed[at] ^= 1;
            fs::write(&file, changed).unwrap();
            let found = bench.nightloop(&["verify"]);
            assert_eq!(found.code, 1, "{} byte {at}: {}", file.display(), found.stdout);
        }
        fs::remove_file(&file).unwrap();
        // A blob is what the journal stands on; a view is only missing.
        let code = if file.starts_with(&run) { 1 } else { 2 };
        assert_eq!(bench.nightloop(&["verify"]).code, code, "{} is gone", file.display());
        fs::write(&file, original).unwrap();
    }
    bench.nightloop(&["verify"]).expect(0);
}
