//! `nightloop keys`: the key that this user's runs are signed with. The public part only.

use clap::{Args, Subcommand};

use crate::engine::error::EngineError;
use crate::engine::places::StateRoot;
use crate::engine::signer;
use crate::journal::PublicKey;
use crate::journal::signers::NAMESPACE;

use super::{Outcome, text};

#[derive(Debug, Args)]
pub struct Options {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print a line for a file of allowed signers, which `verify --signer` reads.
    Export {
        /// What the file calls you; default: your user name.
        #[arg(long = "as", value_name = "NAME")]
        name: Option<String>,
    },
}

pub fn main(options: &Options) -> Outcome {
    let root = StateRoot::locate()?;
    let key = signer::key(&root).map_err(|why| {
        let hint = "without one, runs end unsigned; `signing: { key: FILE }` in config.yaml names another";
        EngineError::usage(format!("there is no signing key: {why}"), hint)
    })?;
    match &options.what {
        None => show(&root, &key.public()),
        Some(What::Export { name }) => {
            let name = name.clone().or_else(|| std::env::var("USER").ok().filter(|name| !name.is_empty()));
            let name = name.unwrap_or_else(|| "nightloop".to_owned());
            if !name.chars().all(|sign| sign.is_ascii_alphanumeric() || "@._+-".contains(sign)) || name.is_empty() {
                let hint = "use letters, digits and @ . _ + - only: `--as ada@example.org`";
                return Err(EngineError::usage(format!("`{}` is not a valid signer name", text::safe(&name)), hint));
            }
            text::line(format!("{name} namespaces=\"{NAMESPACE}\" {}", key.public()));
        }
    }
    Ok(0)
}

fn show(root: &StateRoot, key: &PublicKey) {
    text::line(format!("key          {key}"));
    text::line(format!("fingerprint  {}", key.fingerprint()));
    text::line(format!("file         {} (keep it to yourself)", text::safe(&signer::place(root).to_string_lossy())));
    text::line("\n`nightloop keys export` prints a line for those who verify your runs.");
}
