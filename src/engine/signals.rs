//! Stop signals from outside: scratch/STOP, SIGINT, SIGTERM, a full disk. SIGHUP is survived.
//!
//! A signal stays until the run is resumed. A second SIGINT or SIGTERM ends the process at
//! once; the reaper then ends its children.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use notify::Watcher;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::machine::event::Signal;
use crate::machine::run::RunState;
use crate::model::learnings::flatten;
use crate::workspace::plain::{self, Bits, Durability, FileKind};

/// The file whose existence is backpressure, relative to the workspace.
pub const STOP_FILE: &str = "scratch/STOP";
/// A larger one holds no name.
const MAX_STOP: usize = 64 * 1024;
/// The backstop where file events do not arrive.
const POLL: Duration = Duration::from_millis(50);
/// Above this share of used space nothing new is started.
const DISK_FULL_PERCENT: u64 = 90;

/// What must be done even when the process goes at once: giving the terminal back.
static LAST_ACT: OnceLock<fn()> = OnceLock::new();

/// Sets the last act. The first one stays.
pub fn set_last_act(act: fn()) {
    let _ = LAST_ACT.set(act);
}

/// A stop signal with its particulars.
pub type Seen = (Signal, String);

/// Listens for stop signals.
pub struct Signals {
    seen: watch::Receiver<Option<Seen>>,
    sender: watch::Sender<Option<Seen>>,
    workspace: PathBuf,
    tasks: Vec<JoinHandle<()>>,
    _watcher: Option<notify::RecommendedWatcher>,
}

/// Raises signals from a task of its own.
pub struct Raiser(watch::Sender<Option<Seen>>);

impl Raiser {
    pub fn raise(&self, signal: Signal, detail: String) {
        raise(&self.0, signal, detail);
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Signals {
    /// Starts listening. Needs a running tokio runtime.
    pub fn listen(workspace: &Path) -> std::io::Result<Self> {
        let (sender, seen) = watch::channel(None);
        let times = Arc::new(AtomicU32::new(0));
        let mut tasks = vec![
            on_signal(SignalKind::interrupt(), Signal::UserInterrupt, 130, sender.clone(), Arc::clone(&times))?,
            on_signal(SignalKind::terminate(), Signal::Terminated, 143, sender.clone(), times)?,
            survive_hangup()?,
        ];
        let (watcher, task) = watch_stop_file(workspace, sender.clone());
        tasks.push(task);
        Ok(Self { seen, sender, workspace: workspace.to_owned(), tasks, _watcher: watcher })
    }

    /// The signal that was seen, if any.
    pub fn seen(&self) -> Option<Seen> {
        self.seen.borrow().clone()
    }

    /// A signal the engine found itself.
    pub fn raise(&self, signal: Signal, detail: impl Into<String>) {
        raise(&self.sender, signal, detail.into());
    }

    /// For whoever finds one beside the engine's own steps.
    pub fn raiser(&self) -> Raiser {
        Raiser(self.sender.clone())
    }

    /// Forgets a signal whose cause is gone.
    pub fn take_back(&self, signal: Signal) {
        self.sender.send_if_modified(|seen| {
            let stale = seen.as_ref().is_some_and(|(earlier, _)| *earlier == signal);
            if stale {
                *seen = None;
            }
            stale
        });
    }

    /// Waits for a signal.
    pub fn waiter(&self) -> watch::Receiver<Option<Seen>> {
        self.seen.clone()
    }

    /// Looks at what no event tells: the disk, and a STOP file that was there before we listened.
    pub fn poll(&self) {
        if stop_is_there(&self.workspace) {
            self.raise(Signal::StopFile, who_stopped(&self.workspace));
        }
        if let Some(percent) = disk_used_percent(&self.workspace)
            && percent > DISK_FULL_PERCENT
        {
            self.raise(Signal::DiskUsage, format!("{percent} % used"));
        }
    }
}

/// Resolves when a signal is there that `counts`.
pub async fn wait_for(mut receiver: watch::Receiver<Option<Seen>>, counts: impl Fn(Signal) -> bool) {
    let found = receiver.wait_for(|seen| seen.as_ref().is_some_and(|(signal, _)| counts(*signal))).await;
    if found.is_err() {
        // The sender lives as long as the engine.
        std::future::pending::<()>().await;
    }
}

fn raise(sender: &watch::Sender<Option<Seen>>, signal: Signal, detail: String) {
    sender.send_if_modified(|seen| {
        // To be told to go outweighs a stop that may wait for a claim to be settled; what was asked for beforehand may
        // wait for more, and is outweighed by everything.
        let weight = |signal: Signal| match signal {
            Signal::UserInterrupt | Signal::Terminated => 2,
            other => u8::from(!other.is_as_asked()),
        };
        let news = seen.as_ref().is_none_or(|(earlier, _)| weight(signal) > weight(*earlier));
        if news {
            *seen = Some((signal, detail));
        }
        news
    });
}

fn on_signal(
    kind: SignalKind,
    meaning: Signal,
    exit_code: i32,
    sender: watch::Sender<Option<Seen>>,
    times: Arc<AtomicU32>,
) -> std::io::Result<JoinHandle<()>> {
    let mut stream = signal(kind)?;
    Ok(tokio::spawn(async move {
        while stream.recv().await.is_some() {
            if times.fetch_add(1, Ordering::Relaxed) > 0 {
                // Asked twice: go now. The journal is safe, the reaper sweeps the children.
                if let Some(last_act) = LAST_ACT.get() {
                    last_act();
                }
                std::process::exit(exit_code);
            }
            raise(&sender, meaning, String::new());
        }
    }))
}

/// A run outlives its terminal.
fn survive_hangup() -> std::io::Result<JoinHandle<()>> {
    let mut stream = signal(SignalKind::hangup())?;
    Ok(tokio::spawn(async move { while stream.recv().await.is_some() {} }))
}

fn watch_stop_file(
    workspace: &Path,
    sender: watch::Sender<Option<Seen>>,
) -> (Option<notify::RecommendedWatcher>, JoinHandle<()>) {
    let (wake, mut woken) = mpsc::channel::<()>(1);
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Our own looks open the folder, and must not call for the next one.
        if event.is_ok_and(|event| event.kind.is_access()) {
            return;
        }
        // A full channel means a look is already due.
        let _ = wake.try_send(());
    })
    .ok()
    .and_then(|mut watcher| {
        let is_there = plain::kind(workspace, "scratch") == Ok(Some(FileKind::Folder));
        let target = if is_there { workspace.join("scratch") } else { workspace.to_owned() };
        watcher.watch(&target, notify::RecursiveMode::NonRecursive).ok()?;
        Some(watcher)
    });
    let workspace = workspace.to_owned();
    let task = tokio::spawn(async move {
        loop {
            if stop_is_there(&workspace) {
                raise(&sender, Signal::StopFile, who_stopped(&workspace));
                return;
            }
            tokio::select! {
                // Without a watcher the channel is closed, and the poll alone remains.
                Some(()) = woken.recv() => {}
                () = tokio::time::sleep(POLL) => {}
            }
        }
    });
    (watcher, task)
}

/// Is there anything at the stop file's name? It need not be a file: what is there says stop.
pub fn stop_is_there(workspace: &Path) -> bool {
    plain::kind(workspace, STOP_FILE).is_ok_and(|kind| kind.is_some())
}

/// Asks for a stop, in the name of somebody.
pub fn write_stop(workspace: &Path, by: &str) -> std::io::Result<()> {
    let put = || plain::put(workspace, STOP_FILE, format!("{by}\n").as_bytes(), Bits::Kept, Durability::Replaceable);
    let put = match put() {
        // Something else stands where our folder should be; a stop does not wait for it.
        Err(fault) if fault.is_odd() && fault.place != STOP_FILE => {
            plain::set_aside(workspace, &fault.place).and_then(|_| put())
        }
        // A folder of that name says stop as well.
        Err(fault) if fault.is_odd() => Ok(()),
        other => other,
    };
    put.map_err(plain::Fault::into_io)
}

/// The first line of the stop file says who wants it, if anything.
fn who_stopped(workspace: &Path) -> String {
    let file = plain::read(workspace, STOP_FILE, MAX_STOP).ok().flatten();
    let bytes = file.map(|file| file.bytes).unwrap_or_default();
    let start = &bytes[..bytes.len().min(200)];
    flatten(String::from_utf8_lossy(start).lines().next().unwrap_or_default())
}

/// Whoever resumes a run takes back the stop that ended it, if that was an operator's order: such a file
/// holds a name, and the run remembers it. A file of anyone else stays. `true`: it is gone.
pub fn take_away_stop(workspace: &Path, state: &RunState) -> bool {
    let name = who_stopped(workspace);
    let ordered = state.halt.as_ref().is_some_and(|halted| {
        halted.signal == Some(Signal::StopFile) && !name.is_empty() && halted.detail.ends_with(&name)
    });
    ordered && plain::remove(workspace, STOP_FILE).is_ok()
}

/// Used space of the workspace's file system, in whole percent rounded up.
fn disk_used_percent(workspace: &Path) -> Option<u64> {
    // Tests must not depend on the disk of the machine they run on.
    #[cfg(debug_assertions)]
    if let Ok(text) = std::env::var("NIGHTLOOP_TEST_DISK_PERCENT") {
        return text.parse().ok();
    }
    let stat = rustix::fs::statvfs(workspace).ok()?;
    let used = stat.f_blocks.saturating_sub(stat.f_bfree);
    // As `df` counts: what is reserved for root is neither used nor free for us.
    let visible = used.saturating_add(stat.f_bavail);
    if visible == 0 { None } else { Some((used * 100).div_ceil(visible)) }
}
