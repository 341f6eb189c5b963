//! The evidence pane: reading, verifying, opening and closing.

use std::sync::Arc;

use super::*;
use crate::console::sample::{Sample, scene, screen};
use crate::console::theme::{Glyphs, Theme};
use crate::evidence::render;
use crate::machine::run::RunState;

struct Bench {
    sample: Sample,
    state: RunState,
    pane: EvidencePane,
}

impl Bench {
    fn new() -> Self {
        let sample = Sample::demo();
        let state = sample.ended();
        Self { sample, state, pane: EvidencePane::new() }
    }

    /// Gives what is asked for; returns what was asked.
    fn serve(&mut self) -> Vec<String> {
        let theme = Theme::dark();
        let files = render::everything(&self.state, &self.sample.blobs).unwrap();
        let mut asked = Vec::new();
        for cmd in self.pane.refresh(&scene(&self.state, &theme)) {
            let Cmd::Load(Load::Evidence(path)) = cmd else { panic!("{cmd:?}") };
            let found = files.iter().find(|file| file.path == path).unwrap();
            let bytes: Arc<[u8]> = Arc::from(found.bytes.as_slice());
            self.pane.take(&Loaded::Evidence(path.clone(), Ok(bytes)));
            asked.push(path);
        }
        assert_eq!(self.pane.refresh(&scene(&self.state, &theme)), [], "asked twice");
        asked
    }

    fn press(&mut self, actions: &[Action]) {
        let theme = Theme::dark();
        for action in actions {
            self.pane.act(*action, &scene(&self.state, &theme));
        }
    }

    fn draw(&mut self, theme: &Theme, width: u16, height: u16) -> String {
        self.pane.resize(Rect::new(0, 0, width, height));
        self.serve();
        screen(width, height, |frame| self.pane.view(frame, frame.area(), &scene(&self.state, theme)))
    }

    fn open(&mut self, name: &str) {
        self.pane.search(name, &scene(&self.state, &Theme::dark()));
        self.press(&[Action::Select]);
    }
}

fn verified(verdict: VerifiedAs, problems: Vec<(Safe, Safe)>) -> Loaded {
    Loaded::Verified(Verified { events: 295, files: 61, verdict, problems })
}

#[test]
fn it_reads_well() {
    let mut bench = Bench::new();
    let theme = Theme::dark();
    bench.pane.take(&verified(VerifiedAs::Ok, Vec::new()));
    insta::assert_snapshot!("evidence_80x20", bench.draw(&theme, 80, 20));
    bench.open("iter_3/certificate");
    insta::assert_snapshot!("evidence_certificate", bench.draw(&theme, 80, 20));
    insta::assert_snapshot!("evidence_120x36", bench.draw(&theme, 120, 36));
    bench.press(&[Action::Back]);
    bench.open("review");
    let ascii = Theme::plain().with_glyphs(Glyphs::ASCII);
    insta::assert_snapshot!("evidence_ascii", bench.draw(&ascii, 80, 20));
    bench.press(&[Action::Back]);
    bench.open("halting_report");
    insta::assert_snapshot!("evidence_halting", bench.draw(&theme, 80, 40));
    bench.press(&[Action::Back]);
    bench.open("capsule");
    insta::assert_snapshot!("evidence_capsule", bench.draw(&theme, 80, 16));
}

#[test]
fn verifying_marks_every_file_and_names_the_first_bad_place() {
    let mut bench = Bench::new();
    let theme = Theme::dark();
    assert!(bench.draw(&theme, 80, 20).contains("? not verified yet"));
    let cmds = bench.pane.act(Action::VerifyNow, &scene(&bench.state, &theme));
    assert_eq!(cmds, [Cmd::Load(Load::Verify)]);
    assert_eq!(bench.pane.act(Action::VerifyNow, &scene(&bench.state, &theme)), [], "one at a time");
    assert!(bench.draw(&theme, 80, 20).contains("verifying"));
    bench.pane.take(&verified(VerifiedAs::Ok, Vec::new()));
    let shown = bench.draw(&theme, 80, 20);
    assert!(shown.contains("✓ verified: 295 events, 61 files"), "{shown}");
    let bad = (Safe::line("evidence/loop/exit.json (byte 12)"), Safe::line("differs from what the journal says"));
    bench.pane.take(&verified(VerifiedAs::Tampered, vec![bad]));
    let shown = bench.draw(&theme, 80, 20);
    assert!(shown.contains("✗ TAMPERED: evidence/loop/exit.json (byte 12): differs"), "{shown}");
    assert!(shown.contains("✗ exit.json  differs"), "{shown}");
    assert!(shown.contains("✓ manifest.json"), "{shown}");
    assert!(shown.contains("1 wrong"), "{shown}");
}

#[test]
fn a_narrow_pane_opens_and_closes_files_and_a_wide_one_reads_along() {
    let mut bench = Bench::new();
    let theme = Theme::dark();
    bench.pane.resize(Rect::new(0, 0, 80, 20));
    assert_eq!(bench.serve(), [] as [String; 0], "nothing is read before it is opened");
    bench.press(&[Action::Select]);
    assert_eq!(bench.serve().len(), 1);
    let shown = bench.draw(&theme, 80, 20);
    assert!(!shown.contains("manifest.json"), "{shown}");
    bench.press(&[Action::Down, Action::Back]);
    let shown = bench.draw(&theme, 80, 20);
    assert!(shown.contains("manifest.json"), "{shown}");
    bench.pane.resize(Rect::new(0, 0, 120, 30));
    bench.press(&[Action::Down]);
    assert_eq!(bench.serve().len(), 1, "what the cursor is on is read");
    let cmds = bench.pane.act(Action::OpenEditor, &scene(&bench.state, &theme));
    assert!(matches!(cmds.as_slice(), [Cmd::OpenFile(path)] if path.starts_with("evidence/loop")), "{cmds:?}");
}

#[test]
fn a_file_that_cannot_be_read_says_why() {
    let mut bench = Bench::new();
    let theme = Theme::dark();
    bench.pane.resize(Rect::new(0, 0, 80, 20));
    bench.pane.refresh(&scene(&bench.state, &theme));
    bench.press(&[Action::Select]);
    let cmds = bench.pane.refresh(&scene(&bench.state, &theme));
    let [Cmd::Load(Load::Evidence(path))] = cmds.as_slice() else { panic!("{cmds:?}") };
    bench.pane.take(&Loaded::Evidence(path.clone(), Err(Safe::line("no such file"))));
    assert!(bench.draw(&theme, 80, 20).contains("Cannot be read: no such file"));
}

#[test]
fn any_size_is_survived() {
    let mut bench = Bench::new();
    for width in [1u16, 2, 3, 5, 9, 17, 40, 80, 99, 100, 300] {
        for height in [1u16, 2, 3, 4, 5, 12, 120] {
            bench.draw(&Theme::dark(), width, height);
            bench.press(&[Action::Down, Action::Select, Action::PageDown, Action::Back]);
        }
    }
}
