//! `seal.dsse.json`: the seal in a DSSE envelope, signed.
//!
//! Role: sign the bytes of a seal, read the envelope back, say whether the signature holds.
//! Not its role: whose key it is, and whether that is somebody to trust (see `signers`).
//! Invariants: what is signed is the seal file byte for byte, with its type (PAE of DSSE 1.0);
//! the envelope has one spelling, so that no byte of it can be changed unseen. Its `keyid` is the
//! public key itself: a stranger can check the signature, and decide whether he knows the key.

use std::fs;
use std::io::ErrorKind;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::atomic;
use super::error::JournalError;
use super::names::SIGNATURE;
use super::run_dir::RunDir;
use super::seal::{canonical, read_canonical};
use super::ssh::{PublicKey, SecretKey};

const TYPE: &str = "application/vnd.in-toto+json";

/// A signed seal, as read from disk. Not yet checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub payload: Vec<u8>,
    pub key: PublicKey,
    signature: [u8; 64],
}

impl Envelope {
    /// Does it hold this seal, signed by its key?
    pub fn check(&self, seal: &[u8]) -> Result<(), String> {
        if self.payload != seal {
            return Err("it holds another statement than seal.json".to_owned());
        }
        if !self.key.has_signed(&pae(TYPE, &self.payload), &self.signature) {
            return Err(format!("the signature does not hold: {} has not signed this", self.key.fingerprint()));
        }
        Ok(())
    }
}

/// The pre-authentication encoding: type and body with their lengths, so that neither can pass for part of the other.
fn pae(kind: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {kind} {} ", kind.len(), body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Signs the seal of a run, given as its bytes.
pub fn sign_seal(run: &RunDir, seal: &[u8], key: &SecretKey) -> Result<(), JournalError> {
    let signature = STANDARD.encode(key.sign(&pae(TYPE, seal)));
    let envelope = json!({
        "payload": STANDARD.encode(seal),
        "payloadType": TYPE,
        "signatures": [{"keyid": key.public().to_string(), "sig": signature}],
    });
    atomic::write(run.path(), SIGNATURE, &canonical(&envelope)?)
}

/// Takes away a signature that an earlier seal had.
pub fn unsign(run: &RunDir) -> Result<(), JournalError> {
    let path = run.path().join(SIGNATURE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(JournalError::io(&path, error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The signed seal of a run, or `None` when it was not signed.
pub fn read_envelope(run: &RunDir) -> Result<Option<Envelope>, JournalError> {
    read_canonical(run, SIGNATURE, parse)
}

fn parse(value: Value, _: &[u8]) -> Result<Envelope, String> {
    let text = |value: &Value, name: &str, fields: usize| {
        let object = value.as_object().filter(|object| object.len() == fields);
        object.and_then(|object| object.get(name)?.as_str()).map(str::to_owned).ok_or(format!("no \"{name}\""))
    };
    let decoded = |text: String| STANDARD.decode(text).map_err(|error| format!("its base64 is damaged: {error}"));
    if text(&value, "payloadType", 3)? != TYPE {
        return Err(format!("\"payloadType\" is not {TYPE}"));
    }
    let payload = decoded(text(&value, "payload", 3)?)?;
    let Some([signature]) = value.get("signatures").and_then(Value::as_array).map(Vec::as_slice) else {
        return Err("it has not exactly one signature".to_owned());
    };
    let key = text(signature, "keyid", 2)?.parse().map_err(|error| format!("its key cannot be read: {error}"))?;
    let signature = decoded(text(signature, "sig", 2)?)?.try_into();
    Ok(Envelope { payload, key, signature: signature.map_err(|_| "its signature has not 64 bytes")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::seal::spelled;

    #[test]
    fn every_changed_bit_of_an_envelope_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::create(&dir.path().join("R"), b"{}").unwrap();
        assert_eq!(read_envelope(&run).unwrap(), None);
        let key = SecretKey::from_seed(&[3; 32]);
        let seal = br#"{"a":1}"#;
        sign_seal(&run, seal, &key).unwrap();
        let envelope = read_envelope(&run).unwrap().unwrap();
        assert_eq!((envelope.check(seal), envelope.key), (Ok(()), key.public()));
        assert!(envelope.check(br#"{"a":2}"#).is_err());
        let path = run.path().join(SIGNATURE);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[at / 8] ^= 1 << (at % 8);
            let holds = spelled(&changed)
                .and_then(|value| parse(value, &changed))
                .is_ok_and(|envelope| envelope.check(seal).is_ok());
            assert!(!holds, "bit {at}: {}", String::from_utf8_lossy(&changed));
        }
        unsign(&run).unwrap();
        unsign(&run).unwrap();
        assert_eq!(read_envelope(&run).unwrap(), None);
    }

    /// The example of the DSSE specification.
    #[test]
    fn type_and_body_are_bound_together() {
        let encoded = pae("http://example.com/HelloWorld", b"hello world");
        assert_eq!(encoded, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }
}
