//! Files of others: cut, changed, or made to lead somewhere else.

use super::*;
use crate::journal::{Anchor, SystemClock, Tail, Writer, WriterOptions};

struct Scratch {
    dir: tempfile::TempDir,
    run: RunDir,
    anchors: Anchors,
}

const RUN: &str = "01KA9Q3W7XG5N8Z2T4V6B8D0F1";

fn scratch() -> Scratch {
    let dir = tempfile::tempdir().unwrap();
    let genesis = format!("{{\"run\":\"{RUN}\"}}");
    let anchors = Anchors::in_root(dir.path());
    anchors.begin(RUN, Digest::of(genesis.as_bytes())).unwrap();
    let run = RunDir::create(&dir.path().join(RUN), genesis.as_bytes()).unwrap();
    run.blobs().put(b"a blob").unwrap();
    let tail = Tail::fresh(run.genesis_digest());
    let writer = Writer::start(&run, tail, Box::new(SystemClock), WriterOptions::default()).unwrap();
    let draft = crate::journal::Draft::new(None, "x", &serde_json::json!({"a": 1})).unwrap();
    writer.append_blocking(vec![draft]).unwrap();
    let (next, head) = writer.head();
    writer.close().unwrap();
    anchors.append(RUN, &Anchor { seq: next - 1, head, seal: None }).unwrap();
    Scratch { dir, run, anchors }
}

fn rendered(path: &str) -> Rendered {
    Rendered { path: path.to_owned(), bytes: b"{}\n".to_vec(), role: "log", iteration: None }
}

fn packed(scratch: &Scratch) -> Vec<u8> {
    let out = scratch.dir.path().join("run.nlrun");
    let evidence = vec![rendered("evidence/loop/plan.json"), rendered("evidence/loop/iter_0/glow.json")];
    pack(&scratch.run, &scratch.anchors, evidence, &out).unwrap();
    fs::read(out).unwrap()
}

fn take(bytes: &[u8]) -> Result<(tempfile::TempDir, Unpacked), PackError> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, bytes).unwrap();
    unpack(&file, dir.path()).map(|unpacked| (dir, unpacked))
}

#[test]
fn a_run_comes_back_as_it_was() {
    let scratch = scratch();
    let bytes = packed(&scratch);
    assert_eq!(bytes.len() % tar::BLOCK, 0);
    let (dir, unpacked) = take(&bytes).unwrap();
    assert_eq!(unpacked.run_dir.name(), RUN);
    for (name, path) in scratch.run.parts().unwrap() {
        assert_eq!(fs::read(unpacked.run_dir.path().join(&name)).unwrap(), fs::read(path).unwrap(), "{name}");
    }
    assert_eq!(fs::read(unpacked.run_dir.path().join("evidence/loop/iter_0/glow.json")).unwrap(), b"{}\n");
    let there = Anchors::at(&unpacked.anchors).of_run(RUN).unwrap();
    assert_eq!(there, scratch.anchors.of_run(RUN).unwrap());
    drop(dir);
    // Nothing is overwritten.
    let again = pack(&scratch.run, &scratch.anchors, Vec::new(), &scratch.dir.path().join("run.nlrun"));
    assert!(matches!(again, Err(PackError::Io { .. })));
}

#[test]
fn every_changed_byte_is_refused() {
    let scratch = scratch();
    let out = scratch.dir.path().join("small.nlrun");
    pack(&scratch.run, &scratch.anchors, Vec::new(), &out).unwrap();
    let bytes = fs::read(out).unwrap();
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let dir = made.unwrap();
    let into = dir.path().join("run");
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(read_all(&mut changed.as_slice(), &into).is_err(), "byte {at}");
        let _ = fs::remove_dir_all(&into);
    }
    read_all(&mut bytes.as_slice(), &into).unwrap();
}

#[test]
fn a_file_that_was_cut_is_said_to_be_so() {
    let bytes = packed(&scratch());
    for length in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
        let error = take(&bytes[..length]).unwrap_err();
        assert!(matches!(error, PackError::Cut(_)), "{length}: {error}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(matches!(take(&longer), Err(PackError::Refused(_))));
}

/// One entry with a header of an enemy's making.
fn hostile(change: impl Fn(&mut [u8; tar::BLOCK])) -> Vec<u8> {
    let mut header = tar::header("genesis.json", 3).unwrap();
    change(&mut header);
    header[148..156].copy_from_slice(b"        ");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    [&header[..], b"{}\n", &[0; 509], &[0; 1024]].concat()
}

#[test]
fn names_that_lead_elsewhere_and_odd_kinds_are_refused() {
    let named = |name: &'static str| {
        move |header: &mut [u8; tar::BLOCK]| {
            header[..100].fill(0);
            header[..name.len()].copy_from_slice(name.as_bytes());
        }
    };
    for name in [
        "../genesis.json",
        "/etc/passwd",
        "evidence/../../x",
        "evidence/loop/../../../x",
        "journal//x",
        "./genesis.json",
        "run.lock",
        "signing_key",
        "evidence/loop",
        "journal/",
    ] {
        let error = take(&hostile(named(name))).unwrap_err();
        assert!(matches!(error, PackError::Refused(_)), "{name}: {error}");
    }
    // Links, devices, pipes, folders, long names, sparse files, extended headers.
    for kind in b"1234567LKSgxV\0" {
        let error = take(&hostile(|header| header[156] = *kind)).unwrap_err();
        assert!(matches!(error, PackError::Refused(_)), "{kind}: {error}");
    }
    let owner = take(&hostile(|header| header[100..108].copy_from_slice(b"0004755\0"))).unwrap_err();
    assert!(matches!(owner, PackError::Refused(_)), "setuid: {owner}");
}

#[test]
fn too_large_twice_and_out_of_order_are_refused() {
    let mut bomb = tar::header("genesis.json", MAX_ENTRY + 1).unwrap().to_vec();
    bomb.extend([0; 1024]);
    assert!(matches!(take(&bomb), Err(PackError::Refused(_))));
    let entry = |name: &str| [&tar::header(name, 3).unwrap()[..], b"{}\n", &[0; 509]].concat();
    for names in [["genesis.json", "genesis.json"], ["seal.json", "genesis.json"]] {
        let bytes = names.map(entry).concat();
        let error = take(&bytes).unwrap_err();
        assert!(error.to_string().contains("not in its place"), "{error}");
    }
    assert!(matches!(take(b""), Err(PackError::Cut(_))));
    assert!(matches!(take(&[0; 4096]), Err(PackError::Refused(_))));
}
