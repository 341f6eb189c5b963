//! The proxy of a run from its first command to its last: begun, asked between two steps what it saw, ended.
//!
//! Not its role: what is allowed (`machine::network`), connections (`proxy`). Invariant: what the proxy saw is recorded
//! between two steps, connections to one host together.

use crate::engine::context::Context;
use crate::engine::error::EngineError;
use crate::machine::event::{NetworkConnected, NetworkOpened};
use crate::machine::network::{self, MAX_HOSTS, OTHERS};
use crate::model::decision::Mode;
use crate::model::hosts::Pattern;
use crate::model::loop_file::ReachDecl;

use super::proxy::{self, Proxy, Seen};
use super::registries::Finder;
use super::{Network, open_at_start, resolved, variables};

const ASKED: &str = "The operator is asked for it, once: try again later, or do without it.";
const NOBODY: &str = "Nobody is there to be asked: do without it.";

/// Starts the proxy, where the run has a network by list. Before any command runs.
pub(in crate::engine) async fn begin(cx: &mut Context<'_>) -> Result<(), EngineError> {
    if !network::is_listed(cx.state()) || !cx.sandbox().in_force().is_confined() {
        return Ok(());
    }
    // Why there is none was said when the sandbox was opened.
    let Ok(place) = cx.sandbox().network().cloned() else { return Ok(()) };
    let listener = place.listen(0).await.map_err(cannot)?;
    let port = listener.local_addr().map_err(cannot)?.port();
    let declared = cx.state().loop_file().sandbox.network.clone();
    let finder = matches!(declared, Some(ReachDecl::Registries)).then(|| Finder::new(cx.workspace()));
    record_opened(cx, open_at_start(declared.as_ref(), cx.workspace())).await?;
    let hint = if cx.state().operator.patience.mode == Mode::Wait { ASKED } else { NOBODY };
    let proxy = Proxy::start(listener, network::patterns(cx.state()), finder, resolved(), hint);
    cx.sandbox().tell_of_proxy(variables(port));
    cx.network = Network(Some(proxy));
    Ok(())
}

/// Records what was seen since the last step, and asks for what is on no list. Between two steps.
pub(in crate::engine) async fn settle(cx: &mut Context<'_>) -> Result<(), EngineError> {
    let Some(proxy) = &cx.network.0 else { return Ok(()) };
    let seen = proxy.take_seen();
    record(cx, seen).await?;
    if let Some(asked) = network::ask(cx.state()) {
        cx.record(asked).await?;
    }
    Ok(())
}

/// Cuts what is still connected, and records it.
pub(in crate::engine) async fn end(cx: &mut Context<'_>) -> Result<(), EngineError> {
    let Some(mut proxy) = cx.network.0.take() else { return Ok(()) };
    proxy.stop().await;
    if cx.state().halt.is_some() {
        return Ok(());
    }
    let seen = proxy.take_seen();
    record(cx, seen).await
}

fn cannot(error: std::io::Error) -> EngineError {
    EngineError::Internal(format!("the proxy of the run cannot listen: {error}"))
}

async fn record_opened(cx: &mut Context<'_>, found: Vec<(Vec<Pattern>, String)>) -> Result<(), EngineError> {
    for (hosts, why) in found {
        let opened = NetworkOpened { hosts, why };
        // A resumed run knows it already.
        if !cx.state().network.opened.contains(&opened) {
            cx.record(opened).await?;
        }
    }
    Ok(())
}

async fn record(cx: &mut Context<'_>, seen: Seen) -> Result<(), EngineError> {
    record_opened(cx, seen.opened).await?;
    for ((host, port, refusal), count) in seen.connections {
        let known = cx.state().network.traffic.contains_key(&host);
        let full = !known && cx.state().network.traffic.len() >= MAX_HOSTS;
        let (refused, unlisted) = refusal.map_or((None, false), |refusal| (Some(refusal.why), refusal.unlisted));
        // A host that is allowed is on a list, which is short: only refused ones can be too many.
        let host = if full && refused.is_some() { OTHERS.to_owned() } else { host };
        let proxy::Count { times, sent, received } = count;
        cx.record(NetworkConnected { host, port, refused, unlisted, times, sent, received }).await?;
    }
    Ok(())
}
