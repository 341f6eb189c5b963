//! One turn on in-process pipes: who plays the agent, who answers its questions, and what was seen.

use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nightloop::agent::program::{Allowed, Ask, Finished, Task};
use nightloop::agent::{CallError, ProgramFault, acp};
use nightloop::model::act::Act;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::agent;

/// Nothing here takes this long; a test that waits longer has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Seen {
    pub result: Result<Finished, CallError>,
    pub acts: Vec<Act>,
    /// What it wanted to do, as it was put to us.
    pub asked: Vec<(String, String)>,
}

impl Seen {
    pub fn finished(&self) -> &Finished {
        self.result.as_ref().unwrap_or_else(|e| panic!("not finished: {e}; {:?}", self.acts))
    }

    pub fn fault(&self) -> (ProgramFault, String) {
        match &self.result {
            Err(CallError::Program { fault, message, .. }) => (*fault, message.clone()),
            other => panic!("no fault of the program: {other:?}"),
        }
    }

    pub fn notes(&self) -> Vec<&str> {
        self.acts
            .iter()
            .filter_map(|act| if let Act::Noted { text } = act { Some(text.as_str()) } else { None })
            .collect()
    }
}

pub fn task(workspace: &Path, prompt: &str) -> Task {
    Task {
        system: "You are the Solver of one iteration.".into(),
        prompt: prompt.into(),
        session: None,
        model: None,
        workspace: workspace.into(),
        read_only: false,
        caged: false,
        offer: None,
    }
}

/// How a turn is attended.
pub struct Stage {
    pub cancel: CancellationToken,
    /// Cancels when this act is seen.
    pub cancel_at: Option<fn(&Act) -> bool>,
    /// The answer to every question; `None` lets the question fall.
    pub answer: Option<Allowed>,
    /// Cancels when a question comes, and leaves it open.
    pub cancel_at_ask: bool,
}

impl Default for Stage {
    fn default() -> Self {
        Self { cancel: CancellationToken::new(), cancel_at: None, answer: Some(Allowed::Once), cancel_at_ask: false }
    }
}

impl Stage {
    /// With the agent of [`agent`], which does what the words say.
    pub async fn play(self, task: &Task, words: &'static str) -> Seen {
        self.with(task, async move |reader, writer| {
            let _ = agent::serve(reader, writer, words).await;
        })
        .await
    }

    pub async fn with<A, F>(self, task: &Task, agent: A) -> Seen
    where
        A: FnOnce(DuplexStream, DuplexStream) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        let (to_agent, from_us) = tokio::io::duplex(64 * 1024);
        let (to_us, from_agent) = tokio::io::duplex(64 * 1024);
        let agent = tokio::spawn(agent(from_us, to_us));
        let (asks, mut asked) = mpsc::channel::<Ask>(4);
        let acts = Arc::new(Mutex::new(Vec::new()));
        let (seen, cancel, cancel_at) = (acts.clone(), self.cancel.clone(), self.cancel_at);
        let mut on_act = move |act: Act| {
            if cancel_at.is_some_and(|at| at(&act)) {
                cancel.cancel();
            }
            seen.lock().unwrap().push(act);
        };
        let mut questions = Vec::new();
        let mut open = Vec::new();
        let turn = acp::run(from_agent, to_agent, task, &mut on_act, asks, &self.cancel);
        let answering = async {
            while let Some(Ask { tool, what, reply, .. }) = asked.recv().await {
                questions.push((tool, what));
                match self.answer {
                    _ if self.cancel_at_ask => {
                        self.cancel.cancel();
                        open.push(reply);
                    }
                    Some(allowed) => drop(reply.send(allowed)),
                    None => drop(reply),
                }
            }
            std::future::pending::<()>().await;
        };
        let result = tokio::select! {
            result = turn => result,
            () = answering => unreachable!(),
            () = tokio::time::sleep(PATIENCE) => panic!("the turn never ended; so far {:?}", acts.lock().unwrap()),
        };
        agent.abort();
        let acts = std::mem::take(&mut *acts.lock().unwrap());
        Seen { result, acts, asked: questions }
    }
}
