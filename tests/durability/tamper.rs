//! One changed bit anywhere in what counts as evidence is found, and its place is named.
//!
//! Exempt: `run.lock` (says who is at work), `reserve` (room for the last words) and `shadow/` (contents
//! kept to make diffs). None of them is evidence and no decision rests on them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nightloop::evidence::verify::{Problem, RenderedPlace, Verification, VerifyVerdict, verify};
use nightloop::journal::RunDir;

use crate::harness::{files_below, run_id, thorough, tiny};
use crate::support::{Bench, copy_tree};

/// A sealed run and the places `verify` reads.
struct Sealed {
    bench: Bench,
    run: PathBuf,
    anchors: PathBuf,
    place: RenderedPlace,
}

impl Sealed {
    fn new() -> Self {
        let bench = tiny();
        bench.nightloop(&["run"]).expect(0);
        let (run, anchors) = (bench.run_dir(), bench.state.join("anchors.log"));
        let place = RenderedPlace::Workspace(bench.workspace.clone());
        let sealed = Self { bench, run, anchors, place };
        assert_eq!(sealed.verify().verdict(), VerifyVerdict::Ok, "{:?}", sealed.verify().problems);
        sealed
    }

    fn verify(&self) -> Verification {
        match RunDir::open(&self.run) {
            Ok(run) => verify(&run, Some(&self.anchors), &self.place),
            Err(error) => panic!("the run cannot even be opened: {error}"),
        }
    }

    /// The problems of a run that must have some.
    #[track_caller]
    fn problems(&self, what: &str) -> Vec<Problem> {
        let found = self.verify();
        assert_eq!(found.verdict(), VerifyVerdict::Tampered, "{what} was not noticed");
        assert!(found.problems.iter().all(|p| !p.place.is_empty() && !p.what.is_empty()), "{what}");
        found.problems
    }

    /// Nothing contradicts, but this place is named as missing or not ours.
    #[track_caller]
    fn incomplete(&self, place: &str) {
        let found = self.verify();
        assert_eq!(found.verdict(), VerifyVerdict::Incomplete, "{place}: {:?}", found.problems);
        assert!(found.incomplete.iter().any(|one| one.starts_with(place)), "{place}: {:?}", found.incomplete);
    }
}

/// Another bit at every position.
fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1 << (at % 8);
    bytes
}

/// Positions of a long file: all of them where thoroughness is asked for, else its beginning and a sample of the rest.
fn positions(length: usize) -> impl Iterator<Item = usize> {
    const BEGINNING: usize = 600;
    let step = if thorough() { 1 } else { 31 };
    (0..length.min(BEGINNING)).chain((BEGINNING..length).step_by(step))
}

/// Flips the same position of many files at once: each must be named for itself.
fn flip_together(sealed: &Sealed, files: &[PathBuf], name: impl Fn(&Path, usize) -> String) -> usize {
    let originals: Vec<(PathBuf, Vec<u8>)> = files.iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    let longest = originals.iter().map(|(_, bytes)| bytes.len()).max().unwrap();
    let mut flips = 0;
    for at in positions(longest) {
        let touched: Vec<_> = originals.iter().filter(|(_, bytes)| bytes.len() > at).collect();
        for (path, bytes) in &touched {
            fs::write(path, flipped(bytes, at)).unwrap();
        }
        let problems = sealed.problems(&format!("byte {at}"));
        for (path, bytes) in &touched {
            let wanted = name(path, at);
            assert!(problems.iter().any(|p| p.place == wanted), "{wanted} is not among {problems:?}");
            fs::write(path, bytes).unwrap();
        }
        flips += touched.len();
    }
    flips
}

/// Flips these bytes of one file; `named` looks at the problems.
fn flip_each(sealed: &Sealed, file: &Path, positions: impl Iterator<Item = usize>, named: impl Fn(&[Problem], usize)) {
    let original = fs::read(file).unwrap();
    for at in positions {
        fs::write(file, flipped(&original, at)).unwrap();
        named(&sealed.problems(&format!("{} byte {at}", file.display())), at);
    }
    fs::write(file, original).unwrap();
}

#[test]
fn every_byte_of_the_journal() {
    let sealed = Sealed::new();
    // The chain must notice by itself; without blobs and files there is nothing else that could.
    fs::remove_dir_all(sealed.run.join("blobs")).unwrap();
    fs::remove_dir_all(sealed.bench.workspace.join("evidence")).unwrap();
    let path = sealed.run.join("journal/00000001.jsonl");
    let original = fs::read(&path).unwrap();
    let positions = journal_positions(&original);
    println!("{} flips in {} bytes of journal", positions.len(), original.len());
    flip_each(&sealed, &path, positions.into_iter(), |problems, at| {
        let line = original[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        let wanted = format!("journal/00000001.jsonl line {line} ");
        // A wrong `prev` in the first line may as well be a wrong genesis.
        let named = problems[0].place.starts_with(&wanted) || (line == 1 && problems[0].place == "genesis.json");
        assert!(named, "byte {at} in line {line}: {problems:?}");
    });
}

/// Every byte of the first event of each kind (later ones differ in their data alone), every 7th of the rest.
fn journal_positions(journal: &[u8]) -> Vec<usize> {
    let (mut positions, mut kinds, mut start) = (Vec::new(), BTreeSet::new(), 0);
    for line in journal.split_inclusive(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(line);
        let kind = text.split("\"type\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        let step = if thorough() || kinds.insert(kind.to_owned()) { 1 } else { 29 };
        positions.extend((start..start + line.len()).step_by(step));
        // The newline holds two events apart.
        positions.push(start + line.len() - 1);
        start += line.len();
    }
    positions
}

#[test]
fn every_byte_of_genesis_seal_and_signature() {
    let sealed = Sealed::new();
    let length = |path: &Path| usize::try_from(fs::metadata(path).unwrap().len()).unwrap();
    let (genesis, seal) = (sealed.run.join("genesis.json"), sealed.run.join("seal.json"));
    let envelope = sealed.run.join("seal.dsse.json");
    // Every bit of a small one is flipped in the unit tests of the signature.
    flip_each(&sealed, &envelope, positions(length(&envelope)), |problems, at| {
        assert_eq!(problems[0].place, "seal.dsse.json", "byte {at}");
    });
    flip_each(&sealed, &genesis, 0..length(&genesis), |problems, at| {
        assert_eq!(problems[0].place, "genesis.json", "byte {at}");
    });
    flip_each(&sealed, &seal, 0..length(&seal), |problems, at| {
        assert_eq!(problems[0].place, "seal.json", "byte {at}");
    });
    assert_eq!(sealed.verify().verdict(), VerifyVerdict::Ok);
}

#[test]
fn every_byte_of_every_blob() {
    let sealed = Sealed::new();
    let files = files_below(&sealed.run.join("blobs"));
    for file in &files {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let run = sealed.run.clone();
    let flips = flip_together(&sealed, &files, |path, _| path.strip_prefix(&run).unwrap().display().to_string());
    println!("{flips} flips in {} blobs", files.len());
    assert_eq!(sealed.verify().verdict(), VerifyVerdict::Ok);
}

#[test]
fn every_byte_of_every_evidence_file() {
    let sealed = Sealed::new();
    let workspace = sealed.bench.workspace.clone();
    let relative = |path: &Path| path.strip_prefix(&workspace).unwrap().display().to_string();
    let mut files = files_below(&workspace.join("evidence/loop"));
    files.retain(|path| fs::metadata(path).unwrap().len() > 0);
    // The manifest says whose evidence this is, so it is taken by itself.
    let manifest = workspace.join("evidence/loop/manifest.json");
    files.retain(|path| *path != manifest);
    let flips = flip_together(&sealed, &files, |path, at| format!("{} (byte {at})", relative(path)));
    println!("{flips} flips in {} files", files.len());
    let bytes = fs::read(&manifest).unwrap();
    let owner = String::from_utf8_lossy(&bytes).find(&run_id(&sealed.bench)).unwrap();
    for at in positions(bytes.len()) {
        fs::write(&manifest, flipped(&bytes, at)).unwrap();
        // Another run's evidence, by its name: then this run's is missing.
        if (owner..owner + run_id(&sealed.bench).len()).contains(&at) {
            assert_ne!(sealed.verify().verdict(), VerifyVerdict::Ok, "byte {at}");
        } else {
            let problems = sealed.problems(&format!("byte {at} of the manifest"));
            assert!(problems[0].place.contains("evidence/loop/manifest.json"), "byte {at}: {problems:?}");
        }
    }
    fs::write(&manifest, &bytes).unwrap();
    assert_eq!(sealed.verify().verdict(), VerifyVerdict::Ok);
}

/// The binary says the same as the library, with exit code 1 and the place.
#[test]
fn the_binary_reports_a_sample() {
    let sealed = Sealed::new();
    let run = sealed.run.clone();
    let blob = files_below(&run.join("blobs")).pop().unwrap();
    let evidence = sealed.bench.workspace.join("evidence/loop");
    let sample = [
        (run.join("journal/00000001.jsonl"), "journal/00000001.jsonl line"),
        (run.join("genesis.json"), "genesis.json"),
        (run.join("seal.json"), "seal.json"),
        (blob, "blobs/"),
        (evidence.join("plan.json"), "evidence/loop/plan.json (byte"),
        (evidence.join("iter_0/certificate.json"), "evidence/loop/iter_0/certificate.json (byte"),
    ];
    for (path, place) in sample {
        let original = fs::read(&path).unwrap();
        for at in [0, original.len() / 2, original.len() - 1] {
            fs::write(&path, flipped(&original, at)).unwrap();
            let found = sealed.bench.nightloop(&["verify"]);
            assert_eq!(found.code, 1, "{place} byte {at}: {}{}", found.stdout, found.stderr);
            assert!(found.stdout.contains(place), "{place} byte {at}: {}", found.stdout);
        }
        fs::write(&path, original).unwrap();
    }
    sealed.bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn lines_removed_repeated_or_swapped() {
    let sealed = Sealed::new();
    let path = sealed.run.join("journal/00000001.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let write = |lines: &[&str]| fs::write(&path, format!("{}\n", lines.join("\n"))).unwrap();
    for at in 0..lines.len() {
        let mut removed = lines.clone();
        removed.remove(at);
        write(&removed);
        sealed.problems(&format!("line {at} removed"));
        let mut repeated = lines.clone();
        repeated.insert(at, lines[at]);
        write(&repeated);
        sealed.problems(&format!("line {at} repeated"));
        if at + 1 < lines.len() {
            let mut swapped = lines.clone();
            swapped.swap(at, at + 1);
            write(&swapped);
            sealed.problems(&format!("lines {at} and {} swapped", at + 1));
        }
    }
}

#[test]
fn a_cut_tail_needs_an_anchor_or_a_seal_to_be_seen() {
    let sealed = Sealed::new();
    let path = sealed.run.join("journal/00000001.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let seals = ["seal.json", "seal.dsse.json"].map(|name| sealed.run.join(name));
    let kept = seals.clone().map(|seal| fs::read(seal).unwrap());
    let run = RunDir::open(&sealed.run).unwrap();
    let count = text.lines().count();
    for keep in (1..count).step_by(5) {
        let cut: String = text.lines().take(keep).flat_map(|line| [line, "\n"]).collect();
        fs::write(&path, cut).unwrap();
        sealed.problems(&format!("cut to {keep} events"));
        let by_seal = verify(&run, None, &RenderedPlace::Nowhere);
        assert_eq!(by_seal.problems[0].place, "seal.json", "cut to {keep} events");
        sealed.bench.unseal();
        let by_anchor = verify(&run, Some(&sealed.anchors), &RenderedPlace::Nowhere);
        assert_eq!(by_anchor.problems[0].place, "journal", "cut to {keep} events");
        // With neither, a shorter run is just a run that was killed earlier.
        let alone = verify(&run, None, &RenderedPlace::Nowhere);
        assert_eq!(alone.verdict(), VerifyVerdict::Incomplete, "cut to {keep} events: {:?}", alone.problems);
        seals.iter().zip(&kept).for_each(|(seal, bytes)| fs::write(seal, bytes).unwrap());
    }
}

#[test]
fn blobs_missing_or_swapped() {
    let sealed = Sealed::new();
    let files = files_below(&sealed.run.join("blobs"));
    for file in &files {
        let bytes = fs::read(file).unwrap();
        fs::remove_file(file).unwrap();
        sealed.problems(&format!("{} is gone", file.display()));
        fs::write(file, bytes).unwrap();
    }
    for pair in files.windows(2) {
        let (one, two) = (fs::read(&pair[0]).unwrap(), fs::read(&pair[1]).unwrap());
        fs::remove_file(&pair[0]).unwrap();
        fs::remove_file(&pair[1]).unwrap();
        fs::write(&pair[0], &two).unwrap();
        fs::write(&pair[1], &one).unwrap();
        let problems = sealed.problems("two blobs are swapped");
        assert!(problems.len() >= 2, "{problems:?}");
        fs::write(&pair[0], &one).unwrap();
        fs::write(&pair[1], &two).unwrap();
    }
    assert_eq!(sealed.verify().verdict(), VerifyVerdict::Ok);
}

#[test]
fn evidence_files_removed_or_emptied() {
    let sealed = Sealed::new();
    for file in files_below(&sealed.bench.workspace.join("evidence/loop")) {
        let bytes = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        sealed.incomplete(&file.strip_prefix(&sealed.bench.workspace).unwrap().display().to_string());
        fs::write(&file, [&bytes[..], b"\n"].concat()).unwrap();
        sealed.problems(&format!("{} is longer", file.display()));
        fs::write(&file, bytes).unwrap();
    }
    assert_eq!(sealed.verify().verdict(), VerifyVerdict::Ok);
    fs::remove_dir_all(sealed.bench.workspace.join("evidence")).unwrap();
    sealed.incomplete("evidence/loop");
}

#[test]
fn the_block_in_agents_md_changed_or_removed() {
    let sealed = Sealed::new();
    let path = sealed.bench.workspace.join("AGENTS.md");
    let text = fs::read_to_string(&path).unwrap();
    let run = run_id(&sealed.bench);
    let changes = [
        text.replacen("Both are there.", "Both are here.", 1),
        text.replace(&format!("<!-- nightloop:end {run} -->\n"), ""),
        text.replace(&format!("<!-- nightloop:begin {run} -->\n"), ""),
        format!("{text}{text}"),
        String::new(),
    ];
    for changed in changes {
        assert_ne!(changed, text);
        fs::write(&path, changed).unwrap();
        let problems = sealed.problems("AGENTS.md");
        assert_eq!(problems[0].place, "AGENTS.md");
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(sealed.problems("no AGENTS.md")[0].place, "AGENTS.md");
    // What the user writes around it is no business of ours.
    fs::write(&path, format!("# Mine\n{text}more\n")).unwrap();
    assert_eq!(sealed.verify().verdict(), VerifyVerdict::Ok);
}

/// A copy elsewhere is verified by itself.
#[test]
fn a_copied_run_is_verified_by_its_path() {
    let sealed = Sealed::new();
    let copy = sealed.bench.dir.path().join("copy");
    copy_tree(&sealed.run, &copy);
    let path = copy.to_str().unwrap();
    sealed.bench.nightloop(&["verify", path]).expect(0);
    let seal = copy.join("seal.json");
    fs::write(&seal, flipped(&fs::read(&seal).unwrap(), 40)).unwrap();
    sealed.bench.nightloop(&["verify", path]).expect(1);
}
