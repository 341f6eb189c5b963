//! A run in this process.

use tokio::sync::mpsc;

use crate::console::feed::Update;
use crate::console::scene::Link;
use crate::engine::command::Command;
use crate::engine::host::{Hosted, runtime};
use crate::engine::hub::Heard;

use super::{OrderSink, QUEUE, Source, update};

/// Watches a run that this process hosts.
pub fn local(hosted: &Hosted, name: &str) -> Source {
    let (sender, updates) = mpsc::channel(QUEUE);
    let orders = OrderSink::Local { orders: hosted.orders.clone(), name: name.to_owned(), updates: sender.clone() };
    hosted.orders.send(Command::Attached { may_act: true }, name);
    let (hub, run_dir) = (hosted.hub.clone(), hosted.run_dir.clone());
    let watch = async move {
        let blobs = run_dir.blobs();
        let mut ear = hub.listen(&run_dir);
        let backlog = ear.head().next_seq;
        let mut caught_up = false;
        loop {
            let mut batch = Vec::new();
            match ear.next().await {
                Ok(Heard::Events(records)) => {
                    let head = ear.head().next_seq;
                    for record in &records {
                        match update(record, &blobs, head) {
                            Ok(found) => batch.extend(found),
                            Err(why) => batch.push(Update::Linked(Link::Lost(why))),
                        }
                    }
                    if !caught_up && ear.next_seq() >= backlog {
                        caught_up = true;
                        batch.push(Update::CaughtUp);
                    }
                }
                Ok(Heard::Live(live)) => batch.push(Update::Live(live)),
                Ok(Heard::Ended) => {
                    let _ = sender.send(vec![Update::Ended]).await;
                    return;
                }
                Err(error) => {
                    let _ = sender.send(vec![Update::Linked(Link::Lost(error.to_string()))]).await;
                    return;
                }
            }
            // A console that is gone wants no more.
            if sender.send(batch).await.is_err() {
                return;
            }
        }
    };
    let spawned = std::thread::Builder::new().name("feed".to_owned()).spawn(move || {
        if let Ok(runtime) = runtime() {
            runtime.block_on(watch);
        }
    });
    // Without the thread the channel is closed, and the console says that it lost the run.
    drop(spawned);
    Source {
        run: hosted.run.clone(),
        run_dir: hosted.run_dir.clone(),
        workspace: hosted.workspace.clone(),
        updates,
        orders,
    }
}
