//! The envelope: what is encoded is read back, and only what is encoded.

use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::line::{self, Malformed, Stamp};
use super::*;

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn encode(seq: u64, iter: Option<u32>, kind: &str, boot: &str, data: Box<RawValue>) -> (Vec<u8>, Record) {
    let mut out = Vec::new();
    let stamp = Stamp { ts: StoppedClock.wall(), mono_ms: seq / 3, boot: boot.to_owned() };
    let draft = Draft { iter, kind: kind.to_owned(), data };
    let record = line::encode(&mut out, seq, stamp, draft, Digest::of(b"prev"));
    (out, record)
}

proptest! {
    #[test]
    fn what_is_encoded_is_read_back(
        seq: u64, iter: Option<u32>, kind: String, boot: String, data in json_value(), pretty: bool,
    ) {
        let text = if pretty { serde_json::to_string_pretty(&data) } else { serde_json::to_string(&data) };
        // Reading text back may round a fraction, so both sides of the comparison are read.
        let raw = RawValue::from_string(text.unwrap()).unwrap();
        let meant: Value = serde_json::from_str(raw.get()).unwrap();
        let (bytes, record) = encode(seq, iter, &kind, &boot, raw);
        let (last, bytes) = bytes.split_last().unwrap();
        prop_assert_eq!(*last, b'\n');
        prop_assert!(!bytes.contains(&b'\n'));
        let line = line::parse(bytes).unwrap();
        prop_assert_eq!(line.hash, line::hash(&line.prev, line.body));
        let read = line.to_record();
        prop_assert_eq!((read.seq, &read.ts, read.mono_ms), (seq, &record.ts, seq / 3));
        prop_assert_eq!((&read.boot, read.iter, &read.kind), (&boot, iter, &kind));
        prop_assert_eq!((read.prev, read.hash), (record.prev, record.hash));
        prop_assert_eq!(read.data.get(), record.data.get());
        let value: Value = serde_json::from_str(read.data.get()).unwrap();
        prop_assert_eq!(value, meant);
        // The envelope is JSON for everyone else, too.
        let envelope: Value = serde_json::from_slice(bytes).unwrap();
        prop_assert_eq!(envelope["type"].as_str(), Some(kind.as_str()));
    }

    #[test]
    fn garbage_never_panics(bytes: Vec<u8>) {
        prop_assert!(line::parse(&bytes).is_err());
    }

    #[test]
    fn one_changed_byte_is_seen(at: prop::sample::Index, byte: u8) {
        let data = RawValue::from_string(r#"{"a":[1,2.50,"x y"]}"#.to_owned()).unwrap();
        let (bytes, _) = encode(41, Some(3), "tool\t\"finished\"", "b", data);
        let mut bytes = bytes[..bytes.len() - 1].to_vec();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != byte);
        bytes[at] = byte;
        let intact = line::parse(&bytes).is_ok_and(|line| line.hash == line::hash(&Digest::of(b"prev"), line.body) && line.prev == Digest::of(b"prev"));
        prop_assert!(!intact);
    }
}

#[test]
fn the_documented_bytes_are_written() {
    let data = RawValue::from_string("{\"ok\":true}".to_owned()).unwrap();
    let (bytes, record) = encode(41, None, "tool.finished", "b00t", data);
    let body = format!(
        "{{\"v\":1,\"seq\":41,\"ts\":\"2026-11-15T23:28:41.123Z\",\"mono\":13,\"boot\":\"b00t\",\"iter\":null,\
         \"type\":\"tool.finished\",\"data\":{{\"ok\":true}},\"prev\":\"{}\"",
        Digest::of(b"prev")
    );
    let domain: &[u8] = b"nightloop.journal.v1\n";
    let hash = Digest::of(&[domain, Digest::of(b"prev").as_bytes(), body.as_bytes()].concat());
    assert_eq!(record.hash, hash);
    assert_eq!(String::from_utf8(bytes).unwrap(), format!("{body},\"h\":\"{hash}\"}}\n"));
}

#[test]
fn other_spellings_are_refused() {
    let data = RawValue::from_string("{\"ok\":true}".to_owned()).unwrap();
    let (bytes, _) = encode(41, Some(7), "a\tb", "b00t", data);
    let good = String::from_utf8(bytes).unwrap();
    let good = good.trim_end();
    assert!(line::parse(good.as_bytes()).is_ok());
    for (from, to) in [
        ("\"seq\":41", "\"seq\":041"),
        ("\"seq\":41", "\"seq\":+41"),
        ("\"seq\":41", "\"seq\": 41"),
        ("\"seq\":41", "\"seq\":99999999999999999999"),
        ("\"iter\":7", "\"iter\":4294967296"),
        ("\"iter\":7", "\"iter\":\"7\""),
        ("a\\tb", "a\\u0009b"),
        ("b00t", "b\\u00300t"),
        ("\"data\":{", "\"data\": {"),
        ("true},", "true} ,"),
        ("{\"ok\":true}", "{\"ok\":true"),
        ("{\"ok\":true}", "{\"ok\":true}}"),
        ("{\"v\":1", "{\"v\":0"),
        ("\"mono\"", "\"Mono\""),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good);
        assert!(matches!(line::parse(bad.as_bytes()), Err(Malformed::Not(_))), "{bad}");
    }
    let newer = good.replacen("{\"v\":1", "{\"v\":2", 1);
    assert!(matches!(line::parse(newer.as_bytes()), Err(Malformed::Newer(2))));
}
