//! What a service writes: bounded files in the run's directory, and their end in memory.
//!
//! Role: read a pipe to its end, whatever the service does. Not its role: showing it.
//! Invariants: two files of [`MAX_FILE`] bytes at most for each service; a line loses what must stay secret before it is
//! kept; what cannot be written is not waited for: the log is no truth.

use std::fs::{self, File, OpenOptions};
use std::io::{PipeReader, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::model::secret::Secrets;

const MAX_FILE: u64 = 1 << 20;
/// Kept in memory, and as a blob at the end.
const MAX_END: usize = 64 * 1024;
/// A longer line is kept in pieces.
const MAX_LINE: usize = 8 * 1024;
/// For what is still in the pipe when the service is over.
const DRAIN: Duration = Duration::from_secs(2);

/// Where the log of one start goes.
#[derive(Debug)]
pub(super) struct Place {
    folder: PathBuf,
    name: String,
    start: u32,
}

impl Place {
    pub(super) fn new(folder: PathBuf, name: &str, start: u32) -> Self {
        Self { folder, name: name.to_owned(), start }
    }
}

/// A log in the making.
#[derive(Debug, Default)]
pub(super) struct Log {
    end: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Log {
    pub(super) fn begin(pipe: PipeReader, place: Place, secrets: Arc<Secrets>) -> std::io::Result<Self> {
        let end = Arc::new(Mutex::new(String::new()));
        let keeper = Keeper { end: end.clone(), file: Kept::open(&place), secrets };
        let reader = std::thread::Builder::new().name("service-log".to_owned()).spawn(move || keeper.read(pipe))?;
        Ok(Self { end, reader: Some(reader) })
    }

    /// The end of what was written so far.
    pub(super) fn end(&self) -> String {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same once the service is over. Somebody may hold the pipe open; nobody waits for that.
    pub(super) async fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            let joined = tokio::task::spawn_blocking(move || {
                let _ = reader.join();
            });
            let _ = tokio::time::timeout(DRAIN, joined).await;
        }
        self.end()
    }
}

struct Keeper {
    end: Arc<Mutex<String>>,
    file: Option<Kept>,
    secrets: Arc<Secrets>,
}

impl Keeper {
    fn read(mut self, mut pipe: PipeReader) {
        let mut buffer = [0; MAX_LINE];
        let mut line = Vec::new();
        loop {
            let count = match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            line.extend_from_slice(&buffer[..count]);
            let whole = line.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
            if let Some(whole) = whole.or((line.len() > MAX_LINE).then_some(line.len())) {
                let rest = line.split_off(whole);
                self.keep(&line);
                line = rest;
            }
        }
        self.keep(&line);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let text = self.secrets.redact(&text);
        if let Some(file) = &mut self.file {
            file.write(text.as_bytes());
        }
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.push_str(&text);
        let from = end.ceil_char_boundary(end.len().saturating_sub(MAX_END));
        end.drain(..from);
    }
}

/// The file, and the one before it.
struct Kept {
    place: PathBuf,
    file: File,
    bytes: u64,
}

impl Kept {
    fn open(place: &Place) -> Option<Self> {
        fs::create_dir_all(&place.folder).ok()?;
        let path = place.folder.join(format!("{}.log", place.name));
        let file = OpenOptions::new().append(true).create(true).open(&path).ok()?;
        let bytes = file.metadata().ok()?.len();
        let mut kept = Self { place: path, file, bytes };
        kept.write(format!("--- start {} ---\n", place.start).as_bytes());
        Some(kept)
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.bytes.saturating_add(bytes.len() as u64) > MAX_FILE {
            let _ = fs::rename(&self.place, self.place.with_extension("old.log"));
            let Ok(file) = OpenOptions::new().write(true).create(true).truncate(true).open(&self.place) else { return };
            (self.file, self.bytes) = (file, 0);
        }
        if self.file.write_all(bytes).is_ok() {
            self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_log_is_bounded_and_keeps_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let (reader, mut writer) = std::io::pipe().unwrap();
        let place = Place::new(dir.path().to_owned(), "web", 0);
        let mut log = Log::begin(reader, place, Arc::default()).unwrap();
        let line = format!("{}\n", "x".repeat(1_000));
        let wrote = std::thread::spawn(move || {
            (0..4_000).for_each(|_| writer.write_all(line.as_bytes()).unwrap());
            writer.write_all("the last: ä, and no end of line".as_bytes()).unwrap();
        });
        wrote.join().unwrap();
        let end = log.whole().await;
        assert!(end.ends_with("the last: ä, and no end of line") && end.len() <= MAX_END, "{}", end.len());
        let mut sizes: Vec<(String, u64)> = Vec::new();
        for entry in fs::read_dir(dir.path()).unwrap().flatten() {
            sizes.push((entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()));
        }
        sizes.sort();
        assert_eq!(sizes.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["web.log", "web.old.log"]);
        assert!(sizes.iter().all(|(_, bytes)| *bytes <= MAX_FILE), "{sizes:?}");
    }

    #[tokio::test]
    async fn what_is_secret_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut secrets = Secrets::default();
        secrets.add("TOKEN", "tr0ub4dor-and-3-more");
        let place = Place::new(dir.path().to_owned(), "web", 0);
        let mut log = Log::begin(reader, place, Arc::new(secrets)).unwrap();
        writer.write_all(b"token tr0ub4dor-and-3-more\n").unwrap();
        drop(writer);
        assert!(!log.whole().await.contains("tr0ub4dor"));
        assert!(!fs::read_to_string(dir.path().join("web.log")).unwrap().contains("tr0ub4dor"));
    }
}
