//! Whose key is it? The allowed-signers file of OpenSSH, as far as a run needs it.
//!
//! Role: find the name that a file gives to a key. Not its role: checking signatures.
//! Invariant: what is not understood is refused, never passed over: a line that limits a key must
//! not be read as one that does not.

use super::ssh::PublicKey;

/// What signatures of runs are for; a line may limit its key to it.
pub const NAMESPACE: &str = "nightloop";
const MAX_LINES: usize = 10_000;

/// People and their keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signers(Vec<(String, PublicKey)>);

impl Signers {
    /// Reads `PRINCIPALS [namespaces="…"] ssh-ed25519 KEY [comment]`, one a line. Says which line is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut signers = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if number > MAX_LINES {
                return Err(format!("more than {MAX_LINES} lines"));
            }
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                let signer = signer(line).map_err(|why| format!("line {number}: {why}"))?;
                signers.extend(signer);
            }
        }
        if signers.is_empty() {
            return Err(format!("it lists no Ed25519 key for {NAMESPACE}"));
        }
        Ok(Self(signers))
    }

    /// The name of a key's owner.
    pub fn name(&self, key: &PublicKey) -> Option<&str> {
        self.0.iter().find(|(_, known)| known == key).map(|(name, _)| name.as_str())
    }
}

/// `None` for a key that cannot have signed a run: of another kind, or for another purpose.
fn signer(line: &str) -> Result<Option<(String, PublicKey)>, String> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default().to_owned();
    let mut word = words.next().ok_or("a key is missing")?;
    let mut for_runs = true;
    if !is_kind(word) {
        let list = word.strip_prefix("namespaces=\"").and_then(|rest| rest.strip_suffix('"'));
        let hint = "a line with a key, or with namespaces=\"nightloop\" before it, is";
        let list = list.ok_or_else(|| format!("`{word}` is not understood here; {hint}"))?;
        for_runs = list.split(',').any(|one| one == NAMESPACE);
        word = words.next().ok_or("a key is missing")?;
    }
    if !is_kind(word) {
        return Err(format!("`{word}` is not a known key type"));
    }
    if word != "ssh-ed25519" || !for_runs {
        return Ok(None);
    }
    let key = format!("{word} {}", words.next().unwrap_or_default()).parse::<PublicKey>();
    key.map(|key| Some((name, key))).map_err(|error| error.to_string())
}

fn is_kind(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-"].iter().any(|start| word.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::ssh::SecretKey;

    #[test]
    fn a_key_is_found_by_its_line() {
        let key = |seed| SecretKey::from_seed(&[seed; 32]).public();
        let (ada, bob, eve) = (key(1), key(2), key(3));
        let text = format!(
            "# people\n\nada@example.org {ada} her laptop\nbob namespaces=\"git,nightloop\" {bob}\n\
             eve namespaces=\"git\" {eve}\ncarl ssh-rsa AAAA\n"
        );
        let signers = Signers::parse(&text).unwrap();
        assert_eq!((signers.name(&ada), signers.name(&bob)), (Some("ada@example.org"), Some("bob")));
        assert_eq!(signers.name(&eve), None);
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line() {
        let key = SecretKey::from_seed(&[1; 32]).public();
        for (text, why) in [
            (format!("ada {key}\nbob cert-authority {key}"), "line 2: `cert-authority` is not understood"),
            (format!("ada valid-before=\"20200101\" {key}"), "line 1: `valid-before"),
            ("ada".to_owned(), "line 1: a key is missing"),
            ("ada ssh-ed25519 AAAA".to_owned(), "line 1: it is no"),
            ("ada bob carl".to_owned(), "line 1: `bob`"),
            ("# nobody\n".to_owned(), "it lists no Ed25519 key"),
        ] {
            let found = Signers::parse(&text).unwrap_err();
            assert!(found.starts_with(why), "{found}");
        }
    }
}
