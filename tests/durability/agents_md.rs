//! AGENTS.md belongs to the user; the engine owns its block and nothing else.

use std::fs;

use crate::harness::{run_dirs, tiny};
use crate::support::Bench;

/// The file without the blocks of these runs: whole lines from begin marker to end marker.
fn outside(file: &[u8], runs: &[String]) -> Vec<u8> {
    let mut rest = file.to_vec();
    for run in runs {
        let find = |bytes: &[u8], text: &str| bytes.windows(text.len()).position(|window| window == text.as_bytes());
        let (begin, end) = (format!("<!-- nightloop:begin {run} -->"), format!("<!-- nightloop:end {run} -->\n"));
        let from = find(&rest, &begin).unwrap_or_else(|| panic!("no block of {run}"));
        let to = find(&rest, &end).unwrap_or_else(|| panic!("no end of {run}")) + end.len();
        assert!(from < to);
        rest.drain(from..to);
    }
    rest
}

fn runs(bench: &Bench) -> Vec<String> {
    run_dirs(bench).iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

/// The foreign bytes must stand in front, followed by nothing but blank lines of ours.
#[track_caller]
fn assert_kept(file: &[u8], foreign: &[u8], runs: &[String], what: &str) {
    let rest = outside(file, runs);
    assert!(rest.starts_with(foreign), "{what}: foreign bytes changed");
    let gap = &rest[foreign.len()..];
    assert!(gap.iter().all(|byte| *byte == b'\n') && gap.len() <= 2 * runs.len(), "{what}: {gap:?} was added");
}

fn cases() -> Vec<(&'static str, Vec<u8>)> {
    let markers = b"# Mine\n<!-- nightloop:begin 01AAAAAAAAAAAAAAAAAAAAAAAA -->\ntheirs\n\
        <!-- nightloop:end 01AAAAAAAAAAAAAAAAAAAAAAAA -->\n<!-- nightloop:begin -->\n\
        <!-- nightloop:end 01BBBBBBBBBBBBBBBBBBBBBBBB -->\nlast\n";
    vec![
        ("CRLF", b"# Rules\r\n\r\n- keep\r\n- these\r\n".to_vec()),
        ("no final newline", b"# Rules\n- last line".to_vec()),
        ("200 KB", "A line of the user that says nothing much.\n".repeat(4_800).into_bytes()),
        ("invalid UTF-8", b"# Rules\n\xff\xfe\x00 bytes \xc3\x28\n\n\n".to_vec()),
        ("empty", Vec::new()),
        ("markers of other runs", markers.to_vec()),
        ("a fenced block with markers inside a line", b"`<!-- nightloop:begin X -->` and\n```\n---\n```\n".to_vec()),
    ]
}

#[test]
fn foreign_text_is_kept_byte_for_byte() {
    for (what, foreign) in cases() {
        let bench = tiny().file("AGENTS.md", &foreign);
        let path = bench.workspace.join("AGENTS.md");
        bench.nightloop(&["run"]).expect(0);
        let first = fs::read(&path).unwrap();
        assert_kept(&first, &foreign, &runs(&bench), what);
        fs::remove_file(bench.workspace.join("one.txt")).unwrap();
        bench.nightloop(&["run"]).expect(0);
        let second = fs::read(&path).unwrap();
        assert_eq!(runs(&bench).len(), 2);
        assert_kept(&second, &foreign, &runs(&bench), what);
        assert!(second.starts_with(&first), "{what}: the first run's block changed");
        for run in runs(&bench) {
            bench.nightloop(&["verify", &run]).expect(0);
        }
    }
}

#[test]
fn a_symlink_stays_one_and_its_target_is_written() {
    let bench = tiny().file("docs/rules.md", "# Rules\n");
    let path = bench.workspace.join("AGENTS.md");
    std::os::unix::fs::symlink("docs/rules.md", &path).unwrap();
    bench.nightloop(&["run"]).expect(0);
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    let written = fs::read(bench.workspace.join("docs/rules.md")).unwrap();
    assert_kept(&written, b"# Rules\n", &runs(&bench), "symlink");
    let verified = bench.nightloop(&["verify"]).expect(0);
    assert!(verified.stdout.contains("AGENTS.md: the block of this run is the recorded one"), "{}", verified.stdout);
}

#[test]
fn permissions_of_the_file_are_kept() {
    use std::os::unix::fs::PermissionsExt;
    let bench = tiny().file("AGENTS.md", "mine\n");
    let path = bench.workspace.join("AGENTS.md");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    bench.nightloop(&["run"]).expect(0);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}
