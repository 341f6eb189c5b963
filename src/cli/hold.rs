//! The holder: what the shell waits for while a console runs a loop.
//!
//! A process cannot give its terminal back and go on as the shell's foreground job. So the loop and its
//! console run in one process in a session of its own, and this small one stands in the foreground for it:
//! it passes signals on, stops and goes on with ctrl-z, runs the editor, and leaves when the console
//! detaches. The loop outlives it.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use futures_util::FutureExt as _;
use rustix::process::{Pid, Signal};
use tokio::signal::unix::{SignalKind, signal};

use crate::console::terminal::LEAVE;
use crate::engine::error::EngineError;
use crate::engine::host::runtime;

use super::text;

/// Names the socket through which the held process speaks to its holder.
const LINK: &str = "NIGHTLOOP_HELD";

/// What the held process is given to draw on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// The terminal.
    Terminal,
    /// Nothing: it starts detached. Errors still reach the operator.
    Nothing,
}

/// The exit code of whoever was ended by SIGTERM.
const TERMINATED: u8 = 143;

/// Runs this program again, held, with the same arguments. Returns when it ends or detaches.
pub fn hold(ground: Ground) -> Result<u8, EngineError> {
    let failed = |e: io::Error| EngineError::Internal(format!("the console cannot be started: {e}"));
    // In a directory that nobody else can enter, and gone as soon as the held process has come.
    let meeting = tempfile::Builder::new().prefix("nightloop-").tempdir().map_err(failed)?;
    let door = meeting.path().join("held");
    let listener = UnixListener::bind(&door).map_err(failed)?;
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(std::env::args_os().skip(1)).env(LINK, &door);
    if ground == Ground::Nothing {
        command.stdin(Stdio::null()).stdout(Stdio::null());
    }
    let found = rustix::termios::tcgetattr(io::stdin()).ok();
    // Before the child: what cannot be watched is not started.
    let runtime = runtime()?;
    let (news, heard) = tokio::sync::mpsc::unbounded_channel();
    let said = news.clone();
    aside("door", move || {
        // A child that never comes ends, and then so do we.
        let Ok((link, _)) = listener.accept() else { return };
        if let Ok(replies) = link.try_clone() {
            let _ = said.send(News::Came(replies));
        }
        for line in BufReader::new(link).lines().map_while(Result::ok) {
            if said.send(News::Said(line)).is_err() {
                return;
            }
        }
    })
    .map_err(failed)?;
    let (give, given) = mpsc::channel::<Child>();
    aside("child", move || {
        if let Some(status) = given.recv().ok().and_then(|mut child| child.wait().ok()) {
            let _ = news.send(News::Ended(status));
        }
    })
    .map_err(failed)?;
    let child = command.spawn().map_err(failed)?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let _ = give.send(child);
    runtime.block_on(stand_by(pid, heard, meeting, found)).map_err(failed)
}

fn aside(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

enum News {
    Came(UnixStream),
    Said(String),
    Ended(ExitStatus),
}

async fn stand_by(
    pid: Option<Pid>,
    mut heard: tokio::sync::mpsc::UnboundedReceiver<News>,
    meeting: tempfile::TempDir,
    found: Option<rustix::termios::Termios>,
) -> io::Result<u8> {
    // Nobody else comes through the door, and it does not stay when nobody came.
    let mut meeting = Some(meeting);
    let mut replies = None;
    let mut resized = signal(SignalKind::window_change())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    let mut quit = signal(SignalKind::quit())?;
    let pass_on = |signal| {
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, signal);
        }
    };
    // Whoever was told to end does not say that all is well, whatever is heard last.
    let mut told = 0;
    loop {
        tokio::select! {
            news = heard.recv() => match news {
                Some(News::Came(link)) => {
                    replies = Some(link);
                    meeting.take();
                }
                Some(News::Said(line)) => {
                    if let Some(code) = obey(&line, replies.as_mut()) {
                        return Ok(code.max(told));
                    }
                    // What was pressed in the editor or the shell was meant for them.
                    while interrupted.recv().now_or_never().flatten().is_some() {}
                    while quit.recv().now_or_never().flatten().is_some() {}
                }
                Some(News::Ended(status)) => {
                    if status.signal().is_some() {
                        restore(found.as_ref());
                    }
                    return Ok(exit_code(status));
                }
                None => return Ok(told),
            },
            _ = resized.recv() => pass_on(Signal::WINCH),
            _ = interrupted.recv() => pass_on(Signal::INT),
            _ = terminated.recv() => {
                told = TERMINATED;
                pass_on(Signal::TERM);
            }
            _ = quit.recv() => pass_on(Signal::TERM),
            _ = hung_up.recv() => {
                pass_on(Signal::HUP);
                return Ok(0);
            }
        }
    }
}

/// A process that was killed could not give the terminal back; we can.
fn restore(found: Option<&rustix::termios::Termios>) {
    let Some(found) = found else { return };
    text::own(LEAVE.as_bytes());
    let _ = rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, found);
    text::line("the run's process was killed; `nightloop resume` continues the run");
}

/// Does what the held process asks; a code means that we are no longer needed.
fn obey(line: &str, replies: Option<&mut UnixStream>) -> Option<u8> {
    let reply = |text: &str| {
        if let Some(link) = replies {
            let _ = writeln!(link, "{text}");
        }
    };
    match line.split_once(' ').unwrap_or((line, "")) {
        ("detached", _) => return Some(0),
        ("suspend", _) => {
            // The whole job: whoever started us by a pipeline stops with us, as usual.
            // Where no shell could bring us back, the kernel lets this pass.
            let _ = rustix::process::kill_current_process_group(Signal::TSTP);
            reply("resumed");
        }
        ("edit", path) => {
            let code = edit(path).unwrap_or(127);
            reply(&format!("edited {code}"));
        }
        ("shell", directory) => {
            shell(directory);
            reply("shell ended");
        }
        ("started", rest) => {
            let (run, workspace) = rest.split_once(' ').unwrap_or((rest, ""));
            text::line(format!("run {run} is running in {workspace} without a screen"));
            text::line("  watch it: nightloop attach · decisions: nightloop inbox · end it: nightloop stop");
        }
        _ => {}
    }
    None
}

/// Runs the operator's shell in a directory and waits for it.
pub fn shell(directory: &str) {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into());
    text::line(format!("a shell in {directory}; `exit` goes back to the console"));
    let _ = Command::new(shell).current_dir(directory).env_remove(LINK).status();
}

/// Runs the operator's editor on a file and waits for it.
pub fn edit(path: &str) -> Option<i32> {
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|text| !text.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let mut words = editor.split_whitespace();
    let status = Command::new(words.next()?).args(words).arg(path).status().ok()?;
    status.code()
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(70);
    u8::try_from(code).unwrap_or(70)
}

/// The held end: how a console reaches the process that stands in the foreground for it.
pub struct Held {
    replies: mpsc::Receiver<String>,
    link: UnixStream,
}

impl Held {
    /// Are we held? Then we get a session of our own, and hear of the holder's end.
    pub fn take() -> Option<Self> {
        let link = UnixStream::connect(std::env::var_os(LINK)?).ok()?;
        let _ = rustix::process::setsid();
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::HUP));
        let ear = link.try_clone().ok()?;
        let (sender, replies) = mpsc::channel();
        thread::Builder::new()
            .name("holder".to_owned())
            .spawn(move || {
                for line in BufReader::new(ear).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            })
            .ok()?;
        Some(Self { replies, link })
    }

    /// Lets the holder go: the shell has its prompt back.
    pub fn detach(&self) {
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_parent_process_death_signal(None);
        let _ = writeln!(&self.link, "detached");
        let _ = self.link.shutdown(std::net::Shutdown::Both);
    }

    /// Suspends the shell's job; returns when it goes on.
    pub fn suspend(&self) {
        self.ask("suspend");
    }

    /// Tells the holder something that needs no answer.
    pub fn say(&self, what: &str) {
        let _ = self.send(what);
    }

    /// Runs a shell in the foreground.
    pub fn shell(&self, directory: &str) {
        self.ask(&format!("shell {directory}"));
    }

    /// Runs the editor in the foreground.
    pub fn edit(&self, path: &str) -> Option<i32> {
        self.ask(&format!("edit {path}"))?.strip_prefix("edited ")?.parse().ok()
    }

    fn ask(&self, what: &str) -> Option<String> {
        self.send(what)?;
        self.replies.recv().ok()
    }

    /// One line is one request: a folder named after another request must not become one.
    fn send(&self, what: &str) -> Option<()> {
        if what.contains(char::is_control) {
            return None;
        }
        writeln!(&self.link, "{what}").ok()
    }
}

/// Is this process held by another?
pub fn is_held() -> bool {
    std::env::var_os(LINK).is_some()
}

/// No terminal from here on: what is printed goes nowhere, and nothing ever comes to be read.
pub fn go_dark() {
    // Not even an end: a reader of keys that is caught in the lost terminal would find it over and over.
    if let Ok((silence, voice)) = std::io::pipe() {
        let _ = rustix::stdio::dup2_stdin(&silence);
        std::mem::forget(voice);
    }
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}
