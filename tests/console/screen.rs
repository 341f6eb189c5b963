//! One program behind a pseudo terminal.
//!
//! Role: keys in, the screen as a terminal would show it out, the raw bytes, the end of the process.
//! Not its role: what a run does (see `stage`). Invariant: nothing waits without a limit, and whatever was
//! waited for in vain is shown together with the screen.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal};

/// Nothing takes this long; a test that waits longer has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Every pane by its key.
pub const PANES: [(&str, &str); 8] = [
    ("2", "Agent"),
    ("3", "Learnings"),
    ("4", "Plan"),
    ("5", "Evidence"),
    ("6", "Timeline"),
    ("7", "Changes"),
    ("0", "Runs"),
    ("1", "Overview"),
];

/// Processes are started one at a time: a terminal that is just being opened must not be inherited by another
/// test's program, which would keep it open for ever.
static STARTING: Mutex<()> = Mutex::new(());

pub fn starting() -> MutexGuard<'static, ()> {
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a terminal does besides showing cells.
#[derive(Debug, Clone, Default)]
pub struct Told {
    pub titles: Vec<String>,
    pub bells: usize,
    /// What was put into the clipboard, as it was sent.
    pub copied: Vec<String>,
    pub asked_to_paste: usize,
}

impl vt100::Callbacks for Told {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.bells += 1;
    }

    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.titles.push(String::from_utf8_lossy(title).into_owned());
    }

    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], data: &[u8]) {
        self.copied.push(String::from_utf8_lossy(data).into_owned());
    }

    fn paste_from_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.asked_to_paste += 1;
    }
}

struct State {
    parser: vt100::Parser<Told>,
    raw: Vec<u8>,
    /// Somebody may still write.
    open: bool,
}

impl State {
    /// The terminal's part: bytes in, cells out. The emulator falls over wide signs on a one-column screen,
    /// which says nothing about the program that wrote them.
    fn take(&mut self, bytes: &[u8]) {
        self.raw.extend_from_slice(bytes);
        let (_, columns) = self.parser.screen().size();
        if columns > 1 {
            self.parser.process(bytes);
        }
    }
}

/// The screen at one moment.
pub struct View {
    pub text: String,
    pub alternate: bool,
    pub cursor_hidden: bool,
    pub mouse: bool,
    pub pasting: bool,
    pub title: String,
    pub open: bool,
}

impl View {
    pub fn has(&self, text: &str) -> bool {
        self.text.contains(text)
    }

    /// Nothing of ours is left on the terminal.
    pub fn restored(&self) -> bool {
        !self.alternate && !self.cursor_hidden && !self.mouse && !self.pasting
    }
}

type Shared = Arc<(Mutex<State>, Condvar)>;

pub struct Screen {
    shared: Shared,
    master: Option<Box<dyn MasterPty + Send>>,
    writer: Option<Box<dyn Write + Send>>,
    child: Box<dyn Child + Send + Sync>,
    closing: Arc<AtomicBool>,
    ended: Option<u32>,
    /// The terminal's mode before anybody changed it.
    mode: String,
}

impl Screen {
    /// Starts a program on a terminal of this many columns and rows.
    pub fn start(command: CommandBuilder, (columns, rows): (u16, u16)) -> Self {
        let guard = starting();
        let pty = native_pty_system().openpty(size(columns, rows)).unwrap();
        let mode = format!("{:?}", pty.master.get_termios().unwrap());
        let child = pty.slave.spawn_command(command).unwrap();
        drop(pty.slave);
        let reader = pty.master.try_clone_reader().unwrap();
        let writer = pty.master.take_writer().unwrap();
        drop(guard);
        let parser = vt100::Parser::new_with_callbacks(rows, columns, 0, Told::default());
        let shared: Shared = Arc::new((Mutex::new(State { parser, raw: Vec::new(), open: true }), Condvar::new()));
        let closing = Arc::new(AtomicBool::new(false));
        std::thread::spawn({
            let (shared, closing) = (Arc::clone(&shared), Arc::clone(&closing));
            move || read(reader, &shared, &closing)
        });
        Self { shared, master: Some(pty.master), writer: Some(writer), child, closing, ended: None, mode }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn view(&self) -> View {
        view(&self.state())
    }

    pub fn text(&self) -> String {
        self.view().text
    }

    pub fn told(&self) -> Told {
        self.state().parser.callbacks().clone()
    }

    /// Everything that was written so far.
    pub fn raw(&self) -> Vec<u8> {
        self.state().raw.clone()
    }

    pub fn bytes_written(&self) -> usize {
        self.state().raw.len()
    }

    /// Waits until the screen is as described.
    #[track_caller]
    pub fn wait_for(&self, what: &str, condition: impl Fn(&View) -> bool) -> View {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.state();
        loop {
            let view = view(&state);
            if condition(&view) {
                return view;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let title = &view.title;
                panic!("waited in vain for {what}; title {title:?}, open {}; the screen:\n{}", view.open, view.text);
            }
            let waited = self.shared.1.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
        }
    }

    /// Waits for a text on the screen.
    #[track_caller]
    pub fn sees(&self, text: &str) -> View {
        self.wait_for(&format!("`{text}`"), |view| view.has(text))
    }

    /// Waits until the header says that the run has ended so.
    #[track_caller]
    pub fn sees_end(&self, status: &str) -> View {
        self.wait_for(&format!("the run to end: {status}"), |view| {
            view.alternate && view.text.lines().next().is_some_and(|header| header.contains(&format!(" {status} ")))
        })
    }

    /// Goes to a pane by its key, and waits until its frame bears its name.
    #[track_caller]
    pub fn show_pane(&mut self, key: &str) -> View {
        let (_, title) = PANES.iter().find(|(known, _)| *known == key).unwrap();
        self.press(key);
        self.wait_for(&format!("the pane {title}"), |view| {
            view.text.lines().nth(2).is_some_and(|frame| frame.contains(title))
        })
    }

    /// Presses keys, one after the other: a name, or the letters themselves.
    pub fn press(&mut self, keys: &str) {
        for key in keys.split_whitespace() {
            let bytes: &[u8] = match key {
                "enter" => b"\r",
                // Unambiguous: a lone escape followed by a letter in one go would be another key.
                "esc" => b"\x1b[27u",
                "lone-esc" => b"\x1b",
                "space" => b" ",
                "tab" => b"\t",
                "up" => b"\x1b[A",
                "down" => b"\x1b[B",
                "ctrl-c" => b"\x03",
                "ctrl-l" => b"\x0c",
                "ctrl-z" => b"\x1a",
                "f12" => b"\x1b[24~",
                other => other.as_bytes(),
            };
            self.write(bytes);
        }
    }

    /// Writes a text as it is.
    pub fn enter_text(&mut self, text: &str) {
        self.write(text.as_bytes());
    }

    fn write(&mut self, bytes: &[u8]) {
        let writer = self.writer.as_mut().unwrap();
        writer.write_all(bytes).unwrap();
        writer.flush().unwrap();
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        // The emulator first: what is drawn for the new size must not meet the old one.
        self.state().parser.screen_mut().set_size(rows, columns);
        self.master.as_ref().unwrap().resize(size(columns, rows)).unwrap();
    }

    pub fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// To the whole job, as a shell would.
    pub fn kill(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap();
        // It may just have ended.
        let _ = rustix::process::kill_process_group(pid, signal);
    }

    /// Is the terminal's mode as it was found?
    pub fn has_old_mode(&self) -> bool {
        let master = self.master.as_ref().unwrap();
        master.get_termios().is_some_and(|mode| format!("{mode:?}") == self.mode)
    }

    /// Waits for the end of the process, and for everything that it wrote.
    #[track_caller]
    pub fn exit_code(&mut self) -> u32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(code) = self.ended {
                return code;
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                self.ended = Some(status.exit_code());
                continue;
            }
            assert!(Instant::now() < deadline, "it does not end; the screen:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end; nobody may hold the terminal afterwards. The last screen comes with it.
    #[track_caller]
    pub fn ends_with(&mut self, code: u32) -> View {
        let ended = self.exit_code();
        let view = self.wait_for("the terminal to be let go", |view| !view.open);
        assert_eq!(ended, code, "the screen:\n{}", view.text);
        view
    }

    /// Closes the terminal's own end, as a lost line does.
    pub fn hang_up(&mut self) {
        self.closing.store(true, Ordering::SeqCst);
        // The reader holds the last end and waits for bytes: a new size makes the console write some.
        let master = self.master.take().unwrap();
        let before = master.get_size().unwrap();
        master.resize(size(before.cols + 1, before.rows)).unwrap();
        drop(master);
        self.writer = None;
        self.wait_for("the reader to close the terminal", |view| !view.open);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn read(mut reader: Box<dyn Read + Send>, shared: &Shared, closing: &AtomicBool) {
    let mut buffer = [0; 16 << 10];
    loop {
        let got = match reader.read(&mut buffer) {
            // The end of a pseudo terminal is an error on some systems.
            Ok(0) => break,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
            Ok(got) => got,
        };
        let mut state = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.take(&buffer[..got]);
        shared.1.notify_all();
        drop(state);
        if closing.load(Ordering::SeqCst) {
            break;
        }
    }
    // Closed before it is told.
    drop(reader);
    shared.0.lock().unwrap_or_else(PoisonError::into_inner).open = false;
    shared.1.notify_all();
}

fn view(state: &State) -> View {
    let screen = state.parser.screen();
    View {
        text: screen.contents(),
        alternate: screen.alternate_screen(),
        cursor_hidden: screen.hide_cursor(),
        mouse: screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None,
        pasting: screen.bracketed_paste(),
        title: state.parser.callbacks().titles.last().cloned().unwrap_or_default(),
        open: state.open,
    }
}
