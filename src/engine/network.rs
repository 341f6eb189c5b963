//! The network by list of a run (`sandbox.network: registries`, or hosts): a proxy for its commands, and its record.
//!
//! Role: start the proxy in the run's network, tell commands where it is, record what was opened and who was connected to,
//! ask people for what is on no list. What is allowed is `machine::network`'s; what `proxy` saw is recorded between two
//! steps, connections to one host together. Invariant: with the engine the proxy is gone.

mod head;
mod proxy;
mod registries;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use crate::machine::event::{NetworkConnected, NetworkOpened};
use crate::machine::network::{self, MAX_HOSTS, OTHERS};
use crate::model::decision::Mode;
use crate::model::hosts::{self, Pattern};
use crate::model::loop_file::ReachDecl;

use super::context::Context;
use super::error::EngineError;
use proxy::{Proxy, Seen};
use registries::Finder;

/// For tests: `name=address:port` pairs, by commas, in place of looking these names up. No declaration can set it.
pub const RESOLVE_VAR: &str = "NIGHTLOOP_TEST_RESOLVE";

const ASKED: &str = "The operator is asked for it, once: try again later, or do without it.";
const NOBODY: &str = "Nobody is there to be asked: do without it.";
/// Never by way of the proxy: servers of the run.
const DIRECT: &str = "127.0.0.1,localhost,.localhost,::1,0.0.0.0";

/// The proxy of a run, if it has one.
#[derive(Default)]
pub(super) struct Network(Option<Proxy>);

impl Network {
    /// Starts the proxy, where the run has a network by list. Before any command runs.
    pub(super) async fn begin(cx: &mut Context<'_>) -> Result<(), EngineError> {
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
        cx.network = Self(Some(proxy));
        Ok(())
    }

    /// What people said counts from now on.
    pub(super) fn follow(&self, patterns: impl FnOnce() -> Vec<Pattern>) {
        if let Some(proxy) = &self.0 {
            proxy.allow_only(patterns());
        }
    }

    /// Records what was seen since the last step, and asks for what is on no list. Between two steps.
    pub(super) async fn settle(cx: &mut Context<'_>) -> Result<(), EngineError> {
        let Some(proxy) = &cx.network.0 else { return Ok(()) };
        let seen = proxy.take_seen();
        record(cx, seen).await?;
        if let Some(asked) = network::ask(cx.state()) {
            cx.record(asked).await?;
        }
        Ok(())
    }

    /// Cuts what is still connected, and records it.
    pub(super) async fn end(cx: &mut Context<'_>) -> Result<(), EngineError> {
        let Some(mut proxy) = cx.network.0.take() else { return Ok(()) };
        proxy.stop().await;
        if cx.state().halt.is_some() {
            return Ok(());
        }
        let seen = proxy.take_seen();
        record(cx, seen).await
    }
}

/// What a run over this workspace opens when it starts, each with its reason.
pub fn open_at_start(declared: Option<&ReachDecl>, workspace: &Path) -> Vec<(Vec<Pattern>, String)> {
    match declared {
        Some(ReachDecl::Hosts(hosts)) => vec![(hosts.clone(), "as loop.yaml says".to_owned())],
        Some(ReachDecl::Registries) => Finder::new(workspace).all(),
        Some(ReachDecl::Kind(_)) | None => Vec::new(),
    }
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

/// As tools read them. Java's build tools do not know the usual ones.
fn variables(port: u16) -> Vec<(String, String)> {
    let url = format!("http://127.0.0.1:{port}");
    let java =
        ["http", "https"].map(|kind| format!("-D{kind}.proxyHost=127.0.0.1 -D{kind}.proxyPort={port}")).join(" ");
    let proxies =
        ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "npm_config_proxy", "npm_config_https_proxy"];
    let yarn = ["YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"];
    let direct = ["NO_PROXY", "no_proxy", "npm_config_noproxy"];
    let mut all: Vec<(String, String)> =
        proxies.iter().chain(&yarn).map(|name| ((*name).to_owned(), url.clone())).collect();
    all.extend(direct.iter().map(|name| ((*name).to_owned(), DIRECT.to_owned())));
    all.extend(["MAVEN_OPTS", "GRADLE_OPTS"].map(|name| (name.to_owned(), java.clone())));
    all.push(("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned()));
    all
}

fn resolved() -> BTreeMap<String, SocketAddr> {
    let text = std::env::var(RESOLVE_VAR).unwrap_or_default();
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.filter_map(|(name, address)| Some((hosts::host(name)?, address.parse().ok()?))).collect()
}
