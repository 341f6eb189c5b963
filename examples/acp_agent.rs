//! The tests' ACP agent as a program of its own: `acp_agent [WORDS…]`, or words in ACP_AGENT. See tests/acp/agent.rs.

#![allow(clippy::unwrap_used)]

#[path = "../tests/acp/agent.rs"]
mod agent;
#[path = "../tests/acp/mcp_client.rs"]
mod mcp_client;

fn main() {
    let mut words = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    if words.is_empty() {
        words = std::env::var("ACP_AGENT").unwrap_or_default();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ended = runtime.block_on(agent::serve(tokio::io::stdin(), tokio::io::stdout(), &words));
    // A read of standard input may still wait; a crash does not.
    runtime.shutdown_background();
    if let Err(error) = ended {
        eprintln!("acp_agent: {error}");
        std::process::exit(1);
    }
}
