//! The one writer of a run: a thread that owns the journal's end, and a handle to it.
//!
//! Role: gather what many tasks append, commit it together, answer each.
//! Not its role: what a commit does (see `commit`).
//!
//! Invariants:
//! * An append that returned `Ok` is durable; one that returned an error left nothing behind,
//!   except after a failed sync ([`JournalError::Poisoned`]), where nobody can know.
//! * The events of one append stand together, in order, in one segment.
//! * At most `QUEUE` appends wait; further ones wait to be let in.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{JoinHandle, Thread};

use tokio::sync::{mpsc, oneshot};

use super::clock::Clock;
use super::commit::{self, Committer, Tail, WriterOptions};
use super::error::{JournalError, at};
use super::failpoint::CrashPlan;
use super::record::{Draft, Record};
use super::reserve;
use super::run_dir::RunDir;
use super::storage::{Files, Storage};
use crate::model::digest::Digest;

/// How many appends may wait.
const QUEUE: usize = 1024;
/// A commit stops growing here, so that one write stays small beside the reserve.
const BATCH_BYTES: usize = 2 * 1024 * 1024;

type Answer = Result<Vec<Record>, JournalError>;

struct Request {
    drafts: Vec<Draft>,
    answer: oneshot::Sender<Answer>,
}

enum Message {
    Append(Request),
    Close,
}

/// A handle to the writer thread. Clones speak to the same thread; it ends with the last one.
#[derive(Clone)]
pub struct Writer {
    sender: mpsc::Sender<Message>,
    shared: Arc<Shared>,
}

struct Shared {
    head: Mutex<(u64, Digest)>,
    thread: Mutex<Option<JoinHandle<Result<(), JournalError>>>>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("head", &self.head()).finish()
    }
}

impl Writer {
    /// Starts the writer thread at `tail`: [`Tail::fresh`] for a new run, else what
    /// [`recover`](super::recover) found. The caller holds the [`RunLock`](super::RunLock).
    pub fn start(
        run: &RunDir,
        tail: Tail,
        clock: Box<dyn Clock>,
        options: WriterOptions,
    ) -> Result<Self, JournalError> {
        if !run.reserve_path().exists() {
            // Best effort: a disk too full for the reserve may still take the events.
            let _ = reserve::allocate(&run.reserve_path());
        }
        let files = Files::of(run);
        #[cfg(debug_assertions)]
        if let Some(plan) = super::fault::Plan::from_env() {
            let faulty = Box::new(super::fault::Faulty::new(files, plan));
            return Self::start_on(faulty, run, tail, clock, options);
        }
        Self::start_on(Box::new(files), run, tail, clock, options)
    }

    pub(super) fn start_on(
        storage: Box<dyn Storage>,
        run: &RunDir,
        tail: Tail,
        clock: Box<dyn Clock>,
        options: WriterOptions,
    ) -> Result<Self, JournalError> {
        let dir = run.journal_dir();
        let crash = CrashPlan::from_env();
        let committer = Committer::start(storage, dir.clone(), tail, clock, options, crash)?;
        let (sender, receiver) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared { head: Mutex::new((tail.next_seq, tail.head)), thread: Mutex::new(None) });
        // The thread must not keep a sender, or it would never see the last handle go.
        let seen = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || Loop { committer, receiver, shared: seen }.run())
            .map_err(at(&dir))?;
        *lock(&shared.thread) = Some(thread);
        Ok(Self { sender, shared })
    }

    /// Appends events together. They are durable when it returns `Ok`.
    ///
    /// Dropping the future after the first poll does not take the events back.
    pub async fn append(&self, drafts: Vec<Draft>) -> Result<Vec<Record>, JournalError> {
        if drafts.is_empty() {
            return Ok(Vec::new());
        }
        drafts.iter().try_for_each(commit::check)?;
        let (answer, waiting) = oneshot::channel();
        let request = Message::Append(Request { drafts, answer });
        self.sender.send(request).await.map_err(|_| JournalError::Closed)?;
        waiting.await.map_err(|_| JournalError::Closed)?
    }

    /// [`append`](Self::append) for a thread that may wait.
    pub fn append_blocking(&self, drafts: Vec<Draft>) -> Result<Vec<Record>, JournalError> {
        // Unconstrained: inside a runtime's task tokio would otherwise ask us to yield, which
        // a blocked thread cannot do.
        block_on(tokio::task::unconstrained(self.append(drafts)))
    }

    /// The number the next event will get, and the hash of the last durable one.
    pub fn head(&self) -> (u64, Digest) {
        *lock(&self.shared.head)
    }

    /// Lets what was queued before finish, then ends the thread. Reports a poisoned journal.
    pub fn close(self) -> Result<(), JournalError> {
        // A failed send means the thread has ended; the join below tells how.
        let _ = block_on(tokio::task::unconstrained(self.sender.send(Message::Close)));
        let thread = lock(&self.shared.thread).take();
        match thread {
            None => Ok(()),
            Some(thread) => thread.join().unwrap_or(Err(JournalError::Closed)),
        }
    }
}

/// A mutex here guards plain values that are whole at any time, so a panic elsewhere is no
/// reason to stop.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the writer thread runs.
struct Loop {
    committer: Committer,
    receiver: mpsc::Receiver<Message>,
    shared: Arc<Shared>,
}

impl Loop {
    fn run(mut self) -> Result<(), JournalError> {
        let mut waiting = VecDeque::new();
        let mut closing = false;
        while !closing {
            match self.receiver.blocking_recv() {
                None => break,
                Some(message) => closing = enqueue(message, &mut waiting),
            }
            closing = closing || self.gather(&mut waiting);
            while !waiting.is_empty() {
                self.commit_some(&mut waiting);
            }
        }
        self.committer.poisoned()
    }

    /// Takes what is queued without waiting. Returns whether a close was among it.
    fn gather(&mut self, waiting: &mut VecDeque<Request>) -> bool {
        // Bounded, so that steady arrivals cannot put the commit off.
        while waiting.len() < QUEUE {
            let Ok(message) = self.receiver.try_recv() else { break };
            if enqueue(message, waiting) {
                return true;
            }
        }
        false
    }

    fn commit_some(&mut self, waiting: &mut VecDeque<Request>) {
        let (groups, answers) = take_batch(waiting, self.committer.room());
        match self.committer.commit(groups) {
            Ok(records) => {
                self.publish_head();
                for (answer, records) in answers.into_iter().zip(records) {
                    // Nobody listens when the append was dropped; the events stand all the same.
                    let _ = answer.send(Ok(records));
                }
            }
            Err(error) => {
                // A roll may have moved the head before the batch failed.
                self.publish_head();
                for answer in answers {
                    let _ = answer.send(Err(error.clone()));
                }
                if matches!(error, JournalError::DiskFull { .. }) {
                    // The freed reserve is for what the engine says next, not for what was
                    // already on its way.
                    for request in waiting.drain(..) {
                        let _ = request.answer.send(Err(error.clone()));
                    }
                }
            }
        }
    }

    fn publish_head(&self) {
        let tail = self.committer.tail();
        *lock(&self.shared.head) = (tail.next_seq, tail.head);
    }
}

/// Returns whether the message asks to close.
fn enqueue(message: Message, waiting: &mut VecDeque<Request>) -> bool {
    match message {
        Message::Append(request) => {
            waiting.push_back(request);
            false
        }
        Message::Close => true,
    }
}

/// As many whole appends as fit in one write and in `room` events, and at least one.
fn take_batch(waiting: &mut VecDeque<Request>, room: u64) -> (Vec<Vec<Draft>>, Vec<oneshot::Sender<Answer>>) {
    let (mut groups, mut answers) = (Vec::new(), Vec::new());
    let (mut events, mut bytes) = (0, 0);
    while let Some(request) = waiting.pop_front() {
        events += request.drafts.len() as u64;
        bytes += request.drafts.iter().map(|draft| draft.data.get().len()).sum::<usize>();
        groups.push(request.drafts);
        answers.push(request.answer);
        if events >= room || bytes >= BATCH_BYTES {
            break;
        }
    }
    (groups, answers)
}

/// Runs a future on this thread, asleep while there is nothing to do. Unlike the channel's own
/// blocking calls it does not panic inside a runtime.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
