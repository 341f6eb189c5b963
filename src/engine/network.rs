//! The network by list of a run (`sandbox.network: registries`, or hosts): a proxy for its commands, and its record.
//!
//! Role: what is open at the start, what commands are told of the proxy. What it does in a run is `course`'s, what is
//! allowed is `machine::network`'s. Invariant: with the engine the proxy is gone.

pub(super) mod course;
mod head;
mod proxy;
mod registries;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use crate::model::hosts::{self, Pattern};
use crate::model::loop_file::ReachDecl;

use proxy::Proxy;
use registries::Finder;

/// For tests: `name=address:port` pairs, by commas, in place of looking these names up. No declaration can set it.
pub const RESOLVE_VAR: &str = "NIGHTLOOP_TEST_RESOLVE";

/// Never by way of the proxy: servers of the run.
const DIRECT: &str = "127.0.0.1,localhost,.localhost,::1,0.0.0.0";

/// Where tools are told which authorities sign the certificates that they see: on a machine whose network has one of its
/// own, no registry can be reached without it. A path each, and no secret.
const AUTHORITIES: [&str; 11] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "npm_config_cafile",
    "NPM_CONFIG_CAFILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "DENO_CERT",
];

/// The proxy of a run, if it has one.
#[derive(Default)]
pub(super) struct Network(Option<Proxy>);

impl Network {
    /// What people said counts from now on.
    pub(super) fn follow(&self, patterns: impl FnOnce() -> Vec<Pattern>) {
        if let Some(proxy) = &self.0 {
            proxy.allow_only(patterns());
        }
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
    let authority = |name: &&'static str| Some(((*name).to_owned(), std::env::var(name).ok()?));
    all.extend(AUTHORITIES.iter().filter_map(authority));
    all
}

fn resolved() -> BTreeMap<String, SocketAddr> {
    let text = std::env::var(RESOLVE_VAR).unwrap_or_default();
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.filter_map(|(name, address)| Some((hosts::host(name)?, address.parse().ok()?))).collect()
}
