//! Ed25519 keys in the forms that OpenSSH has for them.
//!
//! Role: public keys as one line of text, their fingerprints, private keys as files without a
//! passphrase, so that `ssh-keygen` and people know them. Not its role: where a key lies.
//! Invariants: one key has one spelling, and reading refuses any other; a private key is never
//! printed, by `Debug` neither.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

use crate::model::digest::Digest;

const KIND: &str = "ssh-ed25519";
const MAGIC: &[u8] = b"openssh-key-v1\0";
const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";
const COLUMNS: usize = 70;
/// Without a cipher, what is private is padded to this.
const BLOCK: usize = 8;

/// Who signs, as everybody may know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// `SHA256:…`, as `ssh-keygen -l` prints it.
    pub fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(Digest::of(&self.wire()).as_bytes()))
    }

    /// Did this key sign these bytes?
    pub fn has_signed(&self, bytes: &[u8], signature: &[u8; 64]) -> bool {
        // Strict: no weak keys, one spelling of a signature.
        VerifyingKey::from_bytes(&self.0)
            .is_ok_and(|key| key.verify_strict(bytes, &Signature::from_bytes(signature)).is_ok())
    }

    fn wire(&self) -> Vec<u8> {
        let mut wire = Vec::new();
        put(&mut wire, KIND.as_bytes());
        put(&mut wire, &self.0);
        wire
    }

    fn from_wire(mut wire: &[u8]) -> Option<Self> {
        let kind = take(&mut wire)?;
        let key = take(&mut wire)?;
        (kind == KIND.as_bytes() && wire.is_empty()).then_some(())?;
        Some(Self(key.try_into().ok()?))
    }
}

/// `ssh-ed25519 AAAA…`
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{KIND} {}", STANDARD.encode(self.wire()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fingerprint())
    }
}

/// A text that is no Ed25519 key of OpenSSH.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not a `{KIND} …` key")]
pub struct NotAKey;

impl FromStr for PublicKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let wire = text.strip_prefix(KIND).and_then(|rest| rest.strip_prefix(' ')).ok_or(NotAKey)?;
        STANDARD.decode(wire).ok().and_then(|wire| Self::from_wire(&wire)).ok_or(NotAKey)
    }
}

/// Who signs, as nobody else may know.
pub struct SecretKey(SigningKey);

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({})", self.public().fingerprint())
    }
}

impl SecretKey {
    /// The key that these random bytes make.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    pub fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.0.sign(bytes).to_bytes()
    }

    /// The file that `ssh-keygen` would write for it.
    pub fn to_openssh(&self, comment: &str) -> String {
        let public = self.public();
        let mut private = vec![0; 8];
        put(&mut private, KIND.as_bytes());
        put(&mut private, &public.0);
        put(&mut private, &[self.0.to_bytes(), public.0].concat());
        put(&mut private, comment.as_bytes());
        let padding = private.len().next_multiple_of(BLOCK) - private.len();
        private.extend((1u8..).take(padding));
        let mut file = MAGIC.to_vec();
        for part in [&b"none"[..], b"none", b""] {
            put(&mut file, part);
        }
        file.extend(1u32.to_be_bytes());
        put(&mut file, &public.wire());
        put(&mut file, &private);
        let text = STANDARD.encode(file);
        let mut out = format!("{BEGIN}\n");
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (line, later) = rest.split_at(rest.len().min(COLUMNS));
            out.push_str(line);
            out.push('\n');
            rest = later;
        }
        out + END + "\n"
    }

    /// Reads such a file. Says why it cannot be used.
    pub fn from_openssh(text: &str) -> Result<Self, String> {
        let body = text.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
        let body = body.ok_or("it is not an OpenSSH private key")?;
        let body: String = body.split_whitespace().collect();
        let file = STANDARD.decode(body).map_err(|_| "its base64 is damaged")?;
        let mut rest = file.strip_prefix(MAGIC).ok_or("it is not an OpenSSH private key")?;
        let damaged = || "it is damaged".to_owned();
        let cipher = take(&mut rest).ok_or_else(damaged)?;
        if cipher != b"none" {
            return Err("it has a passphrase, and nobody is there to enter it".to_owned());
        }
        let (_, _) = (take(&mut rest).ok_or_else(damaged)?, take(&mut rest).ok_or_else(damaged)?);
        rest = rest.strip_prefix(&1u32.to_be_bytes()).ok_or("it holds more than one key")?;
        let public = take(&mut rest).ok_or_else(damaged)?;
        let mut private = take(&mut rest).ok_or_else(damaged)?.get(8..).ok_or_else(damaged)?;
        if take(&mut private).ok_or_else(damaged)? != KIND.as_bytes() {
            return Err(format!("it is not an {KIND} key; `ssh-keygen -t ed25519` makes one"));
        }
        take(&mut private).ok_or_else(damaged)?;
        let pair = take(&mut private).filter(|pair| pair.len() == 64).ok_or_else(damaged)?;
        let seed: [u8; 32] = pair[..32].try_into().map_err(|_| damaged())?;
        let key = Self::from_seed(&seed);
        if PublicKey::from_wire(public) != Some(key.public()) {
            return Err("its public and private halves do not match".to_owned());
        }
        Ok(key)
    }
}

/// A length, then the bytes.
fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let (bytes, after) = after.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    *rest = after;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_as_they_were() {
        let key = SecretKey::from_seed(&[7; 32]);
        let file = key.to_openssh("nightloop");
        let again = SecretKey::from_openssh(&file).unwrap();
        assert_eq!(again.public(), key.public());
        assert_eq!(again.to_openssh("nightloop"), file);
        let line = key.public().to_string();
        assert_eq!(line.parse::<PublicKey>(), Ok(key.public()));
        for bad in [format!("{line} comment"), line.replace("ed25519", "rsa"), line[..line.len() - 4].to_owned()] {
            assert_eq!(bad.parse::<PublicKey>(), Err(NotAKey), "{bad}");
        }
        assert!(!format!("{key:?}").contains(&line[30..]));
    }

    #[test]
    fn a_key_with_a_passphrase_or_of_another_kind_is_refused_in_words() {
        let file = SecretKey::from_seed(&[7; 32]).to_openssh("");
        let raw = |text: &str| {
            let body: String = text.lines().filter(|line| !line.starts_with('-')).collect();
            STANDARD.decode(body).unwrap()
        };
        let pem = |bytes: &[u8]| format!("{BEGIN}\n{}\n{END}\n", STANDARD.encode(bytes));
        let mut locked = raw(&file);
        locked[MAGIC.len() + 4..MAGIC.len() + 8].copy_from_slice(b"aes2");
        assert!(SecretKey::from_openssh(&pem(&locked)).unwrap_err().contains("passphrase"));
        for at in (0..raw(&file).len()).step_by(3) {
            assert!(SecretKey::from_openssh(&pem(&raw(&file)[..at])).is_err(), "cut at {at}");
        }
        assert!(SecretKey::from_openssh("hello").is_err());
    }

    /// RFC 8032, 7.1, test 2.
    #[test]
    fn signatures_are_those_of_the_standard() {
        let hex = |text: &str| -> Vec<u8> {
            (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
        };
        let seed = hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
        let key = SecretKey::from_seed(&seed.try_into().unwrap());
        let signature = key.sign(&[0x72]);
        let expected = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                        085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
        assert_eq!(signature.to_vec(), hex(expected));
        assert!(key.public().has_signed(&[0x72], &signature));
        assert!(!key.public().has_signed(&[0x73], &signature));
    }
}
