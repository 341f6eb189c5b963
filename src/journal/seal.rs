//! `seal.json`: the halting certificate on disk.
//!
//! Role: write and read an in-toto Statement in one canonical spelling.
//! Not its role: what the predicate says, or whether it is true (see `evidence`).
//! Invariants: the file appears whole or not at all; one statement has one spelling (sorted
//! keys, no spare white space, no fractions), and reading refuses any other.

use std::fs;
use std::io::ErrorKind;

use serde_json::Value;

use super::atomic;
use super::error::JournalError;
use super::names::SEAL;
use super::run_dir::RunDir;
use crate::model::digest::Digest;

const STATEMENT: &str = "https://in-toto.io/Statement/v1";
const PREDICATE: &str = "https://nightloop.dev/halting-certificate/v1";
/// The subject that names the hash of the last event. `verify_chain` looks for it.
pub const HEAD_SUBJECT: &str = "journal/head";
/// Larger whole numbers do not survive every JSON reader.
const MAX_INTEGER: u64 = 1 << 53;

/// The subject that names the tree of the workspace at the end, as a blob.
pub const TREE_SUBJECT: &str = "workspace/tree";
/// The subject that names the commit of the run's own branch.
pub const COMMIT_SUBJECT: &str = "git/commit";

/// What a seal vouches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub name: String,
    pub id: SubjectId,
}

/// What a subject is, in the words of in-toto's digest sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectId {
    Sha256(Digest),
    GitCommit(String),
}

impl Subject {
    pub fn sha256(name: impl Into<String>, digest: Digest) -> Self {
        Self { name: name.into(), id: SubjectId::Sha256(digest) }
    }

    pub fn commit(id: impl Into<String>) -> Self {
        Self { name: COMMIT_SUBJECT.to_owned(), id: SubjectId::GitCommit(id.into()) }
    }

    fn to_json(&self) -> Value {
        let digest = match &self.id {
            SubjectId::Sha256(digest) => serde_json::json!({"sha256": digest.to_string()}),
            SubjectId::GitCommit(id) => serde_json::json!({"gitCommit": id}),
        };
        serde_json::json!({"name": self.name, "digest": digest})
    }
}

/// A seal as read from disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Seal {
    pub subjects: Vec<Subject>,
    pub predicate: Value,
    /// Digest of the file, as noted in an anchor.
    pub digest: Digest,
    /// The file as it is: what a signature signs.
    pub bytes: Vec<u8>,
}

impl Seal {
    /// What it says of a subject.
    pub fn subject(&self, name: &str) -> Option<&SubjectId> {
        self.subjects.iter().find(|subject| subject.name == name).map(|subject| &subject.id)
    }

    /// The journal head it vouches for.
    pub fn head(&self) -> Option<Digest> {
        match self.subject(HEAD_SUBJECT) {
            Some(SubjectId::Sha256(digest)) => Some(*digest),
            Some(SubjectId::GitCommit(_)) | None => None,
        }
    }

    /// The fingerprint of the key that is to sign it. Seals of older versions name none.
    pub fn signer(&self) -> Option<&str> {
        self.predicate.get("signer")?.as_str()
    }
}

/// Seals a run and returns the bytes of the file. Replaces an older seal.
pub fn write_seal(run: &RunDir, subjects: &[Subject], predicate: Value) -> Result<Vec<u8>, JournalError> {
    let subject: Vec<Value> = subjects.iter().map(Subject::to_json).collect();
    let statement = serde_json::json!({
        "_type": STATEMENT,
        "subject": subject,
        "predicateType": PREDICATE,
        "predicate": predicate,
    });
    let bytes = canonical(&statement)?;
    atomic::write(run.path(), SEAL, &bytes)?;
    Ok(bytes)
}

/// The seal of a run, or `None` when it has none.
pub fn read_seal(run: &RunDir) -> Result<Option<Seal>, JournalError> {
    read_canonical(run, SEAL, parse)
}

/// Reads a file of the run that has one spelling only, or `None` when it is not there.
pub(super) fn read_canonical<T>(
    run: &RunDir,
    name: &str,
    parse: impl FnOnce(Value, &[u8]) -> Result<T, String>,
) -> Result<Option<T>, JournalError> {
    let path = run.path().join(name);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(JournalError::io(&path, error)),
    };
    let parsed = spelled(&bytes).and_then(|value| parse(value, &bytes));
    parsed.map(Some).map_err(|detail| JournalError::damaged(&path, detail))
}

/// The value that these bytes are the one spelling of.
pub(super) fn spelled(bytes: &[u8]) -> Result<Value, String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| format!("not JSON: {error}"))?;
    if !canonical(&value).is_ok_and(|again| again == bytes) {
        return Err("not in the spelling nightloop writes, so it was changed".to_owned());
    }
    Ok(value)
}

fn parse(value: Value, bytes: &[u8]) -> Result<Seal, String> {
    let Value::Object(mut fields) = value else { return Err("not a JSON object".to_owned()) };
    let mut take = |name: &str| fields.remove(name).ok_or_else(|| format!("no \"{name}\""));
    for (name, expected) in [("_type", STATEMENT), ("predicateType", PREDICATE)] {
        if take(name)? != expected {
            return Err(format!("\"{name}\" is not {expected}"));
        }
    }
    let predicate = take("predicate")?;
    let Value::Array(subjects) = take("subject")? else { return Err("\"subject\" is not a list".to_owned()) };
    let subjects: Option<Vec<Subject>> = subjects.iter().map(subject).collect();
    let subjects = subjects.ok_or("a subject is not a name with a digest")?;
    match fields.keys().next() {
        Some(name) => Err(format!("unknown field \"{name}\"")),
        None => Ok(Seal { subjects, predicate, digest: Digest::of(bytes), bytes: bytes.to_vec() }),
    }
}

fn subject(value: &Value) -> Option<Subject> {
    let fields = value.as_object().filter(|fields| fields.len() == 2)?;
    let digests = fields.get("digest")?.as_object().filter(|digests| digests.len() == 1)?;
    let (kind, id) = digests.iter().next()?;
    let id = match kind.as_str() {
        "sha256" => SubjectId::Sha256(id.as_str()?.parse().ok()?),
        "gitCommit" => SubjectId::GitCommit(id.as_str().filter(|id| is_commit(id))?.to_owned()),
        _ => return None,
    };
    Some(Subject { name: fields.get("name")?.as_str()?.to_owned(), id })
}

/// Forty or sixty-four digits, as git's two kinds of names have.
fn is_commit(id: &str) -> bool {
    [40, 64].contains(&id.len()) && id.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// The one spelling of a value: RFC 8785 for what we allow in it.
pub(super) fn canonical(value: &Value) -> Result<Vec<u8>, JournalError> {
    let mut out = Vec::new();
    spell(value, &mut out)?;
    Ok(out)
}

fn spell(value: &Value, out: &mut Vec<u8>) -> Result<(), JournalError> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::String(text) => quote(text, out),
        Value::Number(number) => {
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            if size.is_none_or(|size| size > MAX_INTEGER) {
                // Readers round fractions and large numbers in their own ways.
                return Err(JournalError::invalid(format!(
                    "a seal holds whole numbers up to 2^53 and strings, not {number}; write it as a string"
                )));
            }
            out.extend_from_slice(number.to_string().as_bytes());
        }
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                separate(index, out);
                spell(item, out)?;
            }
            out.push(b']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            // RFC 8785 orders by UTF-16 units, which differs from bytes beyond the basic plane.
            fields.sort_by(|(one, _), (two, _)| one.encode_utf16().cmp(two.encode_utf16()));
            out.push(b'{');
            for (index, (name, item)) in fields.into_iter().enumerate() {
                separate(index, out);
                quote(name, out);
                out.push(b':');
                spell(item, out)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

fn separate(index: usize, out: &mut Vec<u8>) {
    if index > 0 {
        out.push(b',');
    }
}

fn quote(text: &str, out: &mut Vec<u8>) {
    // Strings always turn into JSON, and writing to a Vec cannot fail.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run() -> (tempfile::TempDir, RunDir) {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::create(&dir.path().join("R"), b"{}").unwrap();
        (dir, run)
    }

    #[test]
    fn a_seal_round_trips_in_canonical_form() {
        let (_dir, run) = run();
        assert_eq!(read_seal(&run).unwrap(), None);
        let head = Digest::of(b"head");
        let predicate = json!({"b": 1, "a": ["x", null, true, -5], "é\u{1f600}": "\u{7}\"\\"});
        let bytes = write_seal(
            &run,
            &[Subject::sha256(HEAD_SUBJECT, head), Subject::commit("ab".repeat(20))],
            predicate.clone(),
        )
        .unwrap();
        let digest = Digest::of(&bytes);
        let seal = read_seal(&run).unwrap().unwrap();
        assert_eq!((seal.head(), &seal.predicate, seal.digest), (Some(head), &predicate, digest));
        let text = fs::read_to_string(run.path().join(SEAL)).unwrap();
        let start = r#"{"_type":"https://in-toto.io/Statement/v1","predicate":{"a":["x",null,true,-5],"b":1,"#;
        assert!(text.starts_with(start), "{text}");
        assert_eq!(digest, Digest::of(text.as_bytes()));
    }

    #[test]
    fn keys_sort_by_utf16_units() {
        let spelled = canonical(&json!({"\u{fb33}": 1, "\u{1f600}": 2, "a": 3})).unwrap();
        assert_eq!(String::from_utf8(spelled).unwrap(), "{\"a\":3,\"\u{1f600}\":2,\"\u{fb33}\":1}");
    }

    #[test]
    fn numbers_that_readers_round_are_refused() {
        let (_dir, run) = run();
        for number in [json!(0.5), json!(1e300), json!((1u64 << 53) + 1)] {
            assert!(matches!(write_seal(&run, &[], json!({"n": number})), Err(JournalError::Invalid { .. })));
        }
        assert!(!run.path().join(SEAL).exists());
    }

    #[test]
    fn any_other_spelling_is_refused() {
        let (_dir, run) = run();
        write_seal(&run, &[], json!({"n": 1})).unwrap();
        let path = run.path().join(SEAL);
        let good = fs::read_to_string(&path).unwrap();
        for bad in [
            format!("{good}\n"),
            good.replace(":1", ": 1"),
            good.replace("\"n\"", "\"\\u006e\""),
            good.replace("\"subject\":[]", "\"subject\":[],\"subjects\":[]"),
            good.replace("\"n\":1", "\"n\":1,\"n\":1"),
            good.replace("Statement/v1", "Statement/v2"),
        ] {
            assert_ne!(bad, good);
            fs::write(&path, &bad).unwrap();
            assert!(matches!(read_seal(&run), Err(JournalError::Corrupt { .. })), "{bad}");
        }
    }
}
