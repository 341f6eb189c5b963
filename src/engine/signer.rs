//! The key that seals are signed with.
//!
//! Role: find it, or make it at its first use. Not its role: what is signed, and whom to believe.
//! Invariants: it lies in the state directory, which no sandbox shows to an agent, for its owner alone; it is
//! written whole or not at all and never replaced; it gets into no environment, journal or message. That there is
//! no key is no reason to fail: the run ends unsigned, and says so.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::journal::{PublicKey, SecretKey};

use super::places::{self, StateRoot};

const MAX_KEY_FILE: u64 = 64 * 1024;
const COMMENT: &str = "nightloop";

/// Where the key of this user is: `signing: { key: FILE }` of config.yaml, else `signing_key` in the state directory.
pub fn place(root: &StateRoot) -> PathBuf {
    places::signing_key().unwrap_or_else(|| own(root))
}

fn own(root: &StateRoot) -> PathBuf {
    root.path().join("signing_key")
}

/// The key of this user, made now if there is none. Else why there is none.
pub fn key(root: &StateRoot) -> Result<SecretKey, String> {
    let path = place(root);
    match read(&path)? {
        Some(key) => Ok(key),
        None if path == own(root) => make(&path),
        None => Err(format!("{} does not exist; config.yaml names it as the signing key", path.display())),
    }
}

/// The public part of the key of this user, where there is one. Makes none.
pub fn known(root: &StateRoot) -> Option<PublicKey> {
    read(&place(root)).ok().flatten().map(|key| key.public())
}

fn read(path: &Path) -> Result<Option<SecretKey>, String> {
    let wrong = |why: String| format!("{}: {why}", path.display());
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut file = match OpenOptions::new().read(true).custom_flags(nonblocking).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let meta = file.metadata().map_err(|e| wrong(e.to_string()))?;
    if !meta.is_file() || meta.len() > MAX_KEY_FILE {
        return Err(wrong("it is not a key file".to_owned()));
    }
    if meta.permissions().mode() & 0o077 != 0 {
        return Err(wrong("other users can read it, so it proves nothing; run `chmod 600` on it".to_owned()));
    }
    let mut text = String::new();
    (&mut file).take(MAX_KEY_FILE).read_to_string(&mut text).map_err(|e| wrong(e.to_string()))?;
    SecretKey::from_openssh(&text).map(Some).map_err(wrong)
}

/// Makes a key. Whoever is first wins; the other takes his.
fn make(path: &Path) -> Result<SecretKey, String> {
    let mut seed = [0u8; 32];
    getrandom::fill(&mut seed).map_err(|e| format!("the system returned no random bytes: {e}"))?;
    let key = SecretKey::from_seed(&seed);
    match write_new(path, key.to_openssh(COMMENT).as_bytes()) {
        Ok(()) => Ok(key),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            read(path)?.ok_or_else(|| format!("{} appeared and disappeared", path.display()))
        }
        Err(error) => Err(format!("{} cannot be written: {error}", path.display())),
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir)?;
    // For the owner alone from the first byte on.
    let mut temporary = tempfile::Builder::new().prefix(".tmp-").permissions(mode(0o600)).tempfile_in(dir)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist_noclobber(path).map_err(|e| e.error)?;
    File::open(dir)?.sync_all()
}

fn mode(mode: u32) -> std::fs::Permissions {
    std::fs::Permissions::from_mode(mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_key_is_made_once_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/signing_key");
        assert!(read(&path).unwrap().is_none());
        let made = make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let bytes = fs::read(&path).unwrap();
        assert_eq!(make(&path).unwrap().public(), made.public(), "the second one takes the first one's");
        assert_eq!((read(&path).unwrap().unwrap().public(), fs::read(&path).unwrap()), (made.public(), bytes));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn many_at_once_agree_on_one_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("signing_key");
        let keys: Vec<PublicKey> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| make(&path).unwrap().public())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
    }

    #[test]
    fn a_key_that_cannot_be_used_is_named_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("signing_key");
        make(&path).unwrap();
        fs::set_permissions(&path, mode(0o640)).unwrap();
        assert!(read(&path).unwrap_err().contains("chmod 600"));
        fs::set_permissions(&path, mode(0o600)).unwrap();
        fs::write(&path, "nonsense").unwrap();
        assert!(read(&path).unwrap_err().contains("signing_key: it is not an OpenSSH private key"));
        assert!(read(dir.path()).is_err());
        assert!(make(&dir.path().join("nonsense/x")).is_ok(), "the folder is made");
    }
}
