//! The guard on a real terminal: this test binary runs itself behind a pseudo terminal and ends in every way.

use std::io::Read;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

use super::*;

const CASE: &str = "NIGHTLOOP_TEST_TERMINAL_END";

/// What the one behind the terminal does.
#[test]
#[ignore = "runs only behind a pseudo terminal, started by the tests below"]
fn behind_the_terminal() {
    let Ok(case) = std::env::var(CASE) else { return };
    let mut terminal = Terminal::enter(options()).unwrap();
    assert!(crossterm::terminal::is_raw_mode_enabled().unwrap());
    terminal.set_title(&Safe::line("a run")).unwrap();
    terminal.draw(some_frame).unwrap();
    match case.as_str() {
        "leave" => terminal.leave().unwrap(),
        "drop" => drop(terminal),
        "panic" => terminal.draw(|_| panic!("quoted: \u{1b}]2;owned\u{7}\u{202e}")).unwrap(),
        "signal" => {
            let restored = std::thread::spawn(restore_now).join().unwrap();
            assert!(restored && !restore_now());
            assert!(matches!(terminal.draw(some_frame), Err(TerminalError::Restored)));
            // As a process that is told to go does: nothing is dropped.
            std::process::exit(0);
        }
        "lend" => {
            terminal.suspend().unwrap();
            assert!(!crossterm::terminal::is_raw_mode_enabled().unwrap());
            terminal.resume().unwrap();
            assert!(crossterm::terminal::is_raw_mode_enabled().unwrap());
            terminal.draw(some_frame).unwrap();
        }
        other => panic!("no case {other}"),
    }
}

struct Ended {
    output: Vec<u8>,
    modes: [String; 2],
    success: bool,
}

fn ends(case: &str) -> Ended {
    let pty = native_pty_system().openpty(PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 }).unwrap();
    let modes = |pty: &portable_pty::PtyPair| format!("{:?}", pty.master.get_termios().unwrap());
    let before = modes(&pty);
    let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
    let module = module_path!().split_once("::").unwrap().1;
    command.args([&format!("{module}::behind_the_terminal"), "--exact", "--ignored", "--nocapture"]);
    command.env(CASE, case);
    command.env("RUST_BACKTRACE", "0");
    let mut reader = pty.master.try_clone_reader().unwrap();
    let mut child = pty.slave.spawn_command(command).unwrap();
    // Read beside it, or it waits for room.
    let reading = std::thread::spawn(move || {
        let mut output = Vec::new();
        // The end of a pseudo terminal is an error on some systems.
        let _ = reader.read_to_end(&mut output);
        output
    });
    let success = child.wait().unwrap().success();
    let after = modes(&pty);
    drop(pty);
    Ended { output: reading.join().unwrap(), modes: [before, after], success }
}

fn check_end(case: &str) -> String {
    let ended = ends(case);
    let text = String::from_utf8_lossy(&ended.output).into_owned();
    assert_eq!(ended.success, case != "panic", "{case}: {text:?}");
    assert!(text.contains("\u{1b}[?1049h") && text.contains("night"), "{case} never drew: {text:?}");
    assert_eq!(open_modes(&ended.output), [""; 0], "{case}");
    assert_eq!(ended.modes[0], ended.modes[1], "{case} left another mode");
    let mut parser = vt100::Parser::new(24, 80, 0);
    parser.process(&ended.output);
    assert!(!parser.screen().alternate_screen() && !parser.screen().hide_cursor(), "{case}");
    assert_eq!(text.matches(words::TITLE_SAVE).count(), text.matches(words::TITLE_RESTORE).count(), "{case}");
    parser.screen().contents()
}

#[test]
fn every_way_to_end_gives_the_terminal_back() {
    for case in ["leave", "drop", "signal", "lend"] {
        check_end(case);
    }
}

#[test]
fn a_panic_gives_the_terminal_back_and_then_tells() {
    let seen = check_end("panic");
    assert!(seen.contains("nightloop: internal error at"), "{seen}");
    assert!(seen.contains("quoted: ⟨U+202E⟩"), "{seen}");
}
