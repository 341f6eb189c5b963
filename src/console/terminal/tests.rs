//! What reaches a terminal, seen by terminals: vt100 for what it shows, vte for what it is told.

mod pty;

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use ratatui::layout::Rect;
use ratatui::widgets::Paragraph;
use rustix::io::Errno;

use crate::console::theme::{Role, Theme};
use crate::model::safe::corpus::hostile;
use crate::model::safe::is_forbidden;

use super::*;

#[derive(Debug, Default)]
struct Tape {
    bytes: Vec<u8>,
    writes: usize,
    raw: bool,
    taken: bool,
    fails_with: Option<Errno>,
    size: (u16, u16),
}

/// A terminal that remembers what it was told.
#[derive(Debug, Clone)]
struct Recorder(Arc<Mutex<Tape>>);

impl Recorder {
    fn new(width: u16, height: u16) -> Self {
        Self(Arc::new(Mutex::new(Tape { size: (width, height), ..Tape::default() })))
    }

    fn tape(&self) -> std::sync::MutexGuard<'_, Tape> {
        self.0.lock().unwrap()
    }

    /// What was written since the last call.
    fn rewind(&self) -> Vec<u8> {
        let mut tape = self.tape();
        tape.writes = 0;
        std::mem::take(&mut tape.bytes)
    }
}

impl Device for Recorder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut tape = self.tape();
        if let Some(errno) = tape.fails_with {
            return Err(errno.into());
        }
        tape.bytes.extend(bytes);
        tape.writes += 1;
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        let (width, height) = self.tape().size;
        Ok(Size::new(width, height))
    }

    fn take(&mut self, _leave: &str) -> io::Result<()> {
        let mut tape = self.tape();
        (tape.raw, tape.taken) = (true, true);
        Ok(())
    }

    fn amend(&mut self, _leave: &str) {}

    fn give_back(&mut self) -> io::Result<()> {
        let mut tape = self.tape();
        (tape.raw, tape.taken) = (false, false);
        Ok(())
    }

    fn is_taken(&self) -> bool {
        self.tape().taken
    }
}

fn manners(vars: &[(&str, &str)]) -> Manners {
    Manners::detect(|name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
}

fn options() -> Options {
    Options { mouse: true, manners: manners(&[("TERM", "xterm-256color")]) }
}

fn entered(device: &Recorder) -> Terminal<Recorder> {
    Terminal::enter_on(device.clone(), options()).unwrap()
}

/// Everything a terminal remembers that a program could leave behind.
fn state(parser: &vt100::Parser) -> String {
    let screen = parser.screen();
    format!(
        "{:?} {:?} {} {} {} {} {:?} {:?} {:?}",
        screen.contents(),
        screen.cursor_position(),
        screen.alternate_screen(),
        screen.hide_cursor(),
        screen.bracketed_paste(),
        screen.application_cursor(),
        screen.mouse_protocol_mode(),
        screen.mouse_protocol_encoding(),
        (screen.fgcolor(), screen.bgcolor(), screen.bold(), screen.inverse()),
    )
}

fn used_shell() -> vt100::Parser {
    let mut parser = vt100::Parser::new(24, 80, 0);
    parser.process(b"$ nightloop\r\n");
    parser
}

fn some_frame(frame: &mut Frame<'_>) {
    let style = Theme::dark().style(Role::Badge);
    frame.render_widget(Paragraph::new("night\n日本語 😀 ─┐").style(style), frame.area());
    frame.set_cursor_position((3, 1));
}

/// The first rows, without the blanks behind them.
fn seen(parser: &vt100::Parser) -> Vec<String> {
    parser.screen().rows(0, 80).take(2).map(|row| row.trim_end().to_owned()).collect()
}

/// Modes that were set and not reset, or the other way round, by number.
fn open_modes(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut open = std::collections::BTreeMap::new();
    for part in text.split("\u{1b}[?").skip(1) {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap();
        open.insert(part[..end].to_owned(), &part[end..=end] == "h");
    }
    // The cursor is the one thing that is on in between.
    open.into_iter().filter(|(mode, on)| *on != (mode == "25")).map(|(mode, _)| mode).collect()
}

#[test]
fn the_terminal_is_left_as_it_was_found() {
    let device = Recorder::new(80, 24);
    let mut parser = used_shell();
    let before = state(&parser);
    let mut terminal = entered(&device);
    terminal.set_title(&Safe::line("run")).unwrap();
    terminal.draw(some_frame).unwrap();
    parser.process(&device.tape().bytes);
    let screen = parser.screen();
    assert!(screen.alternate_screen() && screen.bracketed_paste() && device.tape().raw);
    assert_eq!(seen(&parser), ["night", "日本語 😀 ─┐"]);
    assert_eq!(screen.cursor_position(), (1, 3));
    assert_ne!(state(&parser), before);
    let sent = device.tape().bytes.len();
    terminal.leave().unwrap();
    parser.process(&device.tape().bytes[sent..]);
    assert_eq!(state(&parser), before);
    assert!(!device.tape().raw);
    let bytes = device.rewind();
    assert_eq!(open_modes(&bytes), [""; 0]);
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text.matches(words::TITLE_SAVE).count(), 1);
    assert_eq!(text.matches(words::TITLE_RESTORE).count(), 1);
    drop(terminal);
    assert!(device.tape().bytes.is_empty(), "left twice");
}

#[test]
fn dropping_is_leaving() {
    let device = Recorder::new(80, 24);
    let mut parser = used_shell();
    let before = state(&parser);
    let mut terminal = entered(&device);
    terminal.draw(some_frame).unwrap();
    drop(terminal);
    parser.process(&device.tape().bytes);
    assert_eq!(state(&parser), before);
    assert_eq!(open_modes(&device.tape().bytes), [""; 0]);
    assert!(!device.tape().raw);
}

#[test]
fn an_editor_gets_the_terminal_and_the_whole_screen_comes_back() {
    let device = Recorder::new(80, 24);
    let mut parser = used_shell();
    let before = state(&parser);
    let mut terminal = entered(&device);
    terminal.set_title(&Safe::line("run")).unwrap();
    terminal.draw(some_frame).unwrap();
    terminal.suspend().unwrap();
    parser.process(&device.rewind());
    assert_eq!(state(&parser), before);
    assert!(!device.tape().raw);
    terminal.draw(some_frame).unwrap();
    terminal.notify("a", "b").unwrap();
    assert!(device.rewind().is_empty(), "spoke to a terminal that is lent");
    parser.process(b"\x1b[2Jan editor was here");
    terminal.resume().unwrap();
    terminal.draw(some_frame).unwrap();
    parser.process(&device.rewind());
    assert_eq!(seen(&parser), ["night", "日本語 😀 ─┐"]);
    assert!(device.tape().raw);
}

#[test]
fn a_frame_is_one_bracketed_write_and_no_change_is_no_byte() {
    let device = Recorder::new(80, 24);
    let mut terminal = entered(&device);
    device.rewind();
    terminal.draw(some_frame).unwrap();
    assert_eq!(device.tape().writes, 1);
    let frame = String::from_utf8(device.rewind()).unwrap();
    assert!(frame.starts_with(words::FRAME_BEGIN) && frame.ends_with(words::FRAME_END));
    assert_eq!(frame.matches("?2026").count(), 2);
    let stats = terminal.stats();
    for _ in 0..10 {
        terminal.draw(some_frame).unwrap();
        terminal.set_title(&Safe::default()).unwrap();
    }
    let bytes = device.rewind();
    assert_eq!(String::from_utf8(bytes).unwrap(), format!("{}\u{1b}]2;\u{7}", words::TITLE_SAVE));
    assert_eq!(terminal.stats().frames, stats.frames);
    terminal.draw(|frame| frame.render_widget("x", Rect::new(5, 5, 1, 1))).unwrap();
    assert_eq!(terminal.stats().frames, stats.frames + 1);
}

#[test]
fn what_is_drawn_is_what_is_seen() {
    let device = Recorder::new(40, 6);
    let mut parser = vt100::Parser::new(6, 40, 0);
    let mut terminal = entered(&device);
    let texts = ["plain", "日本語 wide", "─│╭ ⠿⣿ ● ✓ … é", "", "a long line that reaches the edge.......", "x"];
    for turn in 0..texts.len() {
        let shown: Vec<_> = texts.iter().cycle().skip(turn).take(6).copied().collect();
        terminal.draw(|frame| frame.render_widget(Paragraph::new(shown.join("\n")), frame.area())).unwrap();
        parser.process(&device.rewind());
        let seen: Vec<_> = parser.screen().rows(0, 40).map(|row| row.trim_end().to_owned()).collect();
        assert_eq!(seen, shown, "turn {turn}");
    }
}

#[test]
fn a_new_size_is_followed_and_any_size_is_drawn() {
    let device = Recorder::new(80, 24);
    let mut terminal = entered(&device);
    for (width, height) in [(1, 1), (40, 12), (300, 120), (0, 0), (2, 100), (u16::MAX, u16::MAX), (80, 24)] {
        device.tape().size = (width, height);
        terminal.draw(some_frame).unwrap();
    }
    let mut parser = vt100::Parser::new(24, 80, 0);
    parser.process(&device.rewind());
    assert_eq!(seen(&parser), ["night", "日本語 😀 ─┐"]);
}

#[test]
fn a_lost_terminal_is_an_answer_and_then_silence() {
    for errno in [Errno::IO, Errno::PIPE, Errno::NXIO] {
        let device = Recorder::new(80, 24);
        let mut terminal = entered(&device);
        device.tape().fails_with = Some(errno);
        assert!(matches!(terminal.draw(some_frame), Err(TerminalError::Lost(_))));
        device.tape().fails_with = None;
        device.rewind();
        assert!(matches!(terminal.draw(some_frame), Err(TerminalError::Lost(_))));
        assert!(matches!(terminal.notify("a", "b"), Err(TerminalError::Lost(_))));
        assert!(matches!(terminal.resume(), Err(TerminalError::Lost(_))));
        drop(terminal);
        assert!(device.rewind().is_empty());
        assert!(!device.tape().raw);
    }
    let device = Recorder::new(80, 24);
    let mut terminal = entered(&device);
    device.tape().fails_with = Some(Errno::NOSPC);
    assert!(matches!(terminal.draw(some_frame), Err(TerminalError::Io(_))));
}

#[test]
fn after_somebody_gave_it_back_nothing_is_written() {
    let device = Recorder::new(80, 24);
    let mut terminal = entered(&device);
    device.tape().taken = false;
    device.rewind();
    assert!(matches!(terminal.draw(some_frame), Err(TerminalError::Restored)));
    assert!(matches!(terminal.set_title(&Safe::line("x")), Err(TerminalError::Restored)));
    drop(terminal);
    assert!(device.rewind().is_empty());
}

#[test]
fn the_mouse_is_taken_only_when_wanted() {
    let device = Recorder::new(80, 24);
    let mut terminal = Terminal::enter_on(device.clone(), Options { mouse: false, ..options() }).unwrap();
    assert!(!String::from_utf8(device.rewind()).unwrap().contains("?1000h"));
    terminal.set_mouse(true).unwrap();
    terminal.set_mouse(true).unwrap();
    assert_eq!(device.rewind(), words::MOUSE_ON.as_bytes());
    terminal.set_mouse(false).unwrap();
    assert_eq!(device.rewind(), words::MOUSE_OFF.as_bytes());
}

#[test]
fn large_texts_do_not_go_to_the_clipboard() {
    let device = Recorder::new(80, 24);
    let mut terminal = entered(&device);
    device.rewind();
    let large = "x".repeat(LARGEST_COPY + 1);
    assert_eq!(terminal.copy(&large).unwrap(), Copied::TooLarge { bytes: large.len() });
    assert!(device.rewind().is_empty());
    assert_eq!(terminal.copy("hi").unwrap(), Copied::Sent);
    assert_eq!(device.rewind(), b"\x1b]52;c;aGk=\x07");
}

/// Reads what a terminal was told, and objects to everything that the console never says.
#[derive(Default)]
struct Listener {
    objections: Vec<String>,
}

impl vte::Perform for Listener {
    fn print(&mut self, c: char) {
        if is_forbidden(c) {
            self.objections.push(format!("prints {c:?}"));
        }
    }

    fn execute(&mut self, byte: u8) {
        if byte != 7 {
            self.objections.push(format!("executes {byte:#x}"));
        }
    }

    fn hook(&mut self, _params: &vte::Params, _intermediates: &[u8], _ignore: bool, action: char) {
        self.objections.push(format!("DCS {action:?}"));
    }

    fn osc_dispatch(&mut self, params: &[&[u8]], _bell: bool) {
        let known = matches!(params.first(), Some(&(b"2" | b"9" | b"52" | b"777")));
        let whole = match params.first() {
            Some(&b"52") => params.len() == 3,
            Some(&b"777") => params.len() == 4,
            Some(&b"9") => params.len() == 2,
            // A title goes on behind a semicolon.
            _ => true,
        };
        let clean = params.iter().all(|param| String::from_utf8_lossy(param).chars().all(|c| !is_forbidden(c)));
        if !known || !clean || !whole {
            self.objections.push(format!("OSC {params:?}"));
        }
    }

    fn csi_dispatch(&mut self, params: &vte::Params, intermediates: &[u8], _ignore: bool, action: char) {
        let numbers: Vec<u16> = params.iter().flatten().copied().collect();
        let known = match (intermediates, action) {
            (b"", 'H' | 'J' | 'm') => true,
            (b"", 't') => matches!(numbers.as_slice(), [22 | 23, 2]),
            (b"?", 'h' | 'l') => {
                numbers.iter().all(|mode| [25, 1000, 1002, 1004, 1006, 1049, 2004, 2026].contains(mode))
            }
            _ => false,
        };
        if !known {
            self.objections.push(format!("CSI {intermediates:?} {numbers:?} {action}"));
        }
    }

    fn esc_dispatch(&mut self, _intermediates: &[u8], _ignore: bool, byte: u8) {
        self.objections.push(format!("ESC {:?}", char::from(byte)));
    }
}

fn objections(bytes: &[u8]) -> Vec<String> {
    let mut listener = Listener::default();
    vte::Parser::new().advance(&mut listener, bytes);
    listener.objections
}

#[test]
fn nothing_hostile_reaches_a_terminal_by_any_way() {
    assert_eq!(objections(b"\x1b]0;x\x07").len(), 1, "the listener hears");
    let device = Recorder::new(40, 6);
    let mut terminal = entered(&device);
    for text in hostile() {
        let foreign = String::from_utf8_lossy(&text).into_owned();
        terminal
            .draw(|frame| {
                frame.render_widget(Paragraph::new(foreign.as_str()), frame.area());
                // The way that no widget guards.
                for cell in frame.buffer_mut().content.iter_mut().take(3) {
                    cell.set_symbol(&foreign);
                }
            })
            .unwrap();
        terminal.set_title(&Safe::line(&foreign)).unwrap();
        terminal.notify(&foreign, &foreign).unwrap();
        terminal.copy(&foreign).unwrap();
        assert_eq!(objections(&device.rewind()), [""; 0], "{:?}", foreign.chars().take(80).collect::<String>());
    }
}

/// What a buffer shows, row by row, as a terminal would tell it.
fn rows_of(buffer: &ratatui::buffer::Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    let row = |cells: &[ratatui::buffer::Cell]| {
        let mut text = String::new();
        let mut covered = 0;
        for cell in cells {
            if covered > 0 {
                covered -= 1;
                continue;
            }
            text.push_str(cell.symbol());
            covered = unicode_width::UnicodeWidthStr::width(cell.symbol()).saturating_sub(1);
        }
        text.trim_end().to_owned()
    };
    buffer.content.chunks(width).map(row).collect()
}

fn a_frame() -> impl Strategy<Value = Vec<String>> {
    let sign = prop::sample::select(vec!["a", "b", " ", "  ", "─", "█", "⣿", "●", "…", "é", "日", "😀", "e\u{301}"]);
    let line = prop::collection::vec(sign, 0..14).prop_map(|signs| signs.concat());
    prop::collection::vec(line, 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_frames_in_a_row_are_seen_as_drawn(frames in prop::collection::vec((a_frame(), 0..3_usize), 1..6)) {
        let device = Recorder::new(12, 4);
        let mut parser = vt100::Parser::new(4, 12, 0);
        let mut terminal = entered(&device);
        for (lines, role) in frames {
            let style = Theme::dark().style([Role::Text, Role::Bad, Role::Selection][role]);
            let mut expected = Vec::new();
            terminal.draw(|frame| {
                frame.render_widget(Paragraph::new(lines.join("\n")).style(style), frame.area());
                expected = rows_of(frame.buffer_mut());
            }).unwrap();
            parser.process(&device.rewind());
            let seen: Vec<_> = parser.screen().rows(0, 12).map(|row| row.trim_end().to_owned()).collect();
            prop_assert_eq!(seen, expected);
        }
    }

    #[test]
    fn no_symbol_a_view_sets_can_act(symbols in prop::collection::vec(any::<String>(), 24)) {
        let device = Recorder::new(12, 2);
        let mut terminal = entered(&device);
        terminal.draw(|frame| {
            for (cell, symbol) in frame.buffer_mut().content.iter_mut().zip(&symbols) {
                cell.set_symbol(symbol);
            }
        }).unwrap();
        prop_assert_eq!(objections(&device.rewind()), [""; 0]);
    }
}
