//! The tools of a forger who can hash: he changes events and makes the chain right again.

use std::fs;
use std::path::{Path, PathBuf};

use nightloop::model::digest::Digest;

/// The events of a journal without their hashes.
pub struct Chain {
    run: PathBuf,
    /// Lines up to and without `,"prev":`.
    pub events: Vec<String>,
}

impl Chain {
    pub fn read(run: &Path) -> Self {
        let text = fs::read_to_string(run.join("journal/00000001.jsonl")).unwrap();
        let events = text.lines().map(|line| line[..line.rfind(",\"prev\":\"").unwrap()].to_owned()).collect();
        Self { run: run.to_owned(), events }
    }

    pub fn append(&mut self, kind: &str, data: &str) {
        let last = self.events.last().unwrap();
        let stamp = &last[last.find("\"ts\":").unwrap()..last.find(",\"iter\":").unwrap()];
        let seq = self.events.len();
        self.events.push(format!("{{\"v\":1,\"seq\":{seq},{stamp},\"iter\":null,\"type\":\"{kind}\",\"data\":{data}"));
    }

    /// The number of the n-th event of a kind.
    pub fn find(&self, kind: &str, nth: usize) -> usize {
        let kind = format!("\"type\":\"{kind}\"");
        let mut found = self.events.iter().enumerate().filter(|(_, event)| event.contains(&kind));
        found.nth(nth).unwrap_or_else(|| panic!("no {kind}")).0
    }

    pub fn data(&self, seq: usize) -> String {
        let event = &self.events[seq];
        event[event.find("\"data\":").unwrap() + 7..].to_owned()
    }

    #[track_caller]
    pub fn change(&mut self, seq: usize, from: &str, to: &str) {
        let changed = self.events[seq].replacen(from, to, 1);
        assert_ne!(changed, self.events[seq], "`{from}` is not in the event");
        self.events[seq] = changed;
    }

    pub fn remove(&mut self, seq: usize) {
        self.events.remove(seq);
        for (number, event) in self.events.iter_mut().enumerate().skip(seq) {
            let rest = event[event.find(",\"ts\":").unwrap()..].to_owned();
            *event = format!("{{\"v\":1,\"seq\":{number}{rest}");
        }
    }

    /// Hashes everything anew, as docs and `journal_verify.py` say.
    pub fn write(&self) {
        let mut prev = Digest::of(&fs::read(self.run.join("genesis.json")).unwrap());
        let mut text = String::new();
        for event in &self.events {
            let body = format!("{event},\"prev\":\"{prev}\"");
            prev = Digest::of_parts(&[b"nightloop.journal.v1\n", prev.as_bytes(), body.as_bytes()]);
            text.push_str(&format!("{body},\"h\":\"{prev}\"}}\n"));
        }
        fs::write(self.run.join("journal/00000001.jsonl"), text).unwrap();
    }
}
