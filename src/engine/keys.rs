//! Where an agent's key comes from.
//!
//! Role: read it from the environment, a command or a file, as declared. Not its role: keeping or sending it.
//! Invariants: a key is never journaled and never shown; a key file in the agents' reach, or in that of other
//! users, is refused; a command runs without a shell and not for long.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use crate::agent::error::text;
use crate::model::loop_file::AgentDecl;

use super::error::EngineError;

/// No key is longer.
const MAX_KEY_BYTES: usize = 8 * 1024;
const MAX_STDERR_BYTES: u64 = 4 * 1024;
const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// A key. It can be used, and not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// The key of an agent: `api_key_command`, else `api_key_file`, else the environment. `None`: there is none.
pub async fn find(
    name: &str,
    decl: &AgentDecl,
    default_variable: &str,
    workspace: &Path,
) -> Result<Option<Key>, EngineError> {
    if let Some(argv) = &decl.api_key_command {
        return from_command(name, argv, workspace, COMMAND_LIMIT).await.map(Some);
    }
    if let Some(file) = &decl.api_key_file {
        return from_file(name, &expand(file), workspace).map(Some);
    }
    let variable = decl.api_key_env.as_deref().unwrap_or(default_variable);
    Ok(std::env::var(variable).ok().and_then(|value| first_line(value.as_bytes())))
}

/// The first line, if there is anything in it.
fn first_line(bytes: &[u8]) -> Option<Key> {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = std::str::from_utf8(line).ok()?.trim();
    (!line.is_empty() && line.len() <= MAX_KEY_BYTES).then(|| Key(line.to_owned()))
}

async fn from_command(name: &str, argv: &[String], workspace: &Path, limit: Duration) -> Result<Key, EngineError> {
    let failed = |why: String| {
        EngineError::usage(
            format!("agent `{name}`: api_key_command gave no key: {}", text(&why)),
            "run it by hand: it must print the key on its first line and exit with 0",
        )
    };
    let (program, arguments) = argv.split_first().ok_or_else(|| failed("it is empty".to_owned()))?;
    // An agent could change it, and it runs outside the sandbox.
    let inside = |word: &String| {
        let real = workspace.join(word).canonicalize();
        real.is_ok_and(|real| workspace.canonicalize().is_ok_and(|workspace| real.starts_with(workspace)))
    };
    if let Some(word) = argv.iter().find(|word| !word.is_empty() && inside(word)) {
        return Err(failed(format!("`{word}` is inside the workspace, where agents can change it; keep it elsewhere")));
    }
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|e| failed(format!("`{program}` cannot be started: {e}")))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let ended = async {
        let (mut said, mut complained) = (Vec::new(), Vec::new());
        let read_out = async {
            if let Some(out) = stdout {
                let _ = out.take(MAX_KEY_BYTES as u64 + 1).read_to_end(&mut said).await;
            }
        };
        let read_err = async {
            if let Some(err) = stderr {
                let _ = err.take(MAX_STDERR_BYTES).read_to_end(&mut complained).await;
            }
        };
        tokio::join!(read_out, read_err);
        (child.wait().await, said, complained)
    };
    let (status, said, complained) = tokio::time::timeout(limit, ended)
        .await
        .map_err(|_| failed(format!("it did not end within {} s", limit.as_secs())))?;
    let status = status.map_err(|e| failed(e.to_string()))?;
    if !status.success() {
        return Err(failed(format!("it ended with {status}: {}", String::from_utf8_lossy(&complained).trim())));
    }
    first_line(&said).ok_or_else(|| failed("its first line is empty, too long, or not text".to_owned()))
}

fn from_file(name: &str, path: &Path, workspace: &Path) -> Result<Key, EngineError> {
    let shown = path.display();
    let failed =
        |why: String, hint: String| EngineError::usage(format!("agent `{name}`: api_key_file {shown} {why}"), hint);
    let unreadable = |e: std::io::Error| failed(format!("cannot be read: {e}"), "check the path".to_owned());
    let real = path.canonicalize().map_err(unreadable)?;
    // Both as they really are: either may be named through links, or from where one stands.
    let workspace = workspace.canonicalize().map_err(unreadable)?;
    if real.starts_with(&workspace) {
        let hint = "move it out of the workspace: agents can read everything there".to_owned();
        return Err(failed("is inside the workspace".to_owned(), hint));
    }
    let file = File::open(&real).map_err(unreadable)?;
    // Asked of the open file: the path may name another one by now.
    let facts = file.metadata().map_err(unreadable)?;
    if !facts.is_file() {
        return Err(failed("is not a file".to_owned(), "name a file whose first line is the key".to_owned()));
    }
    if facts.mode() & 0o077 != 0 {
        return Err(failed("can be read by others".to_owned(), format!("chmod 600 {}", real.display())));
    }
    let mut bytes = Vec::new();
    file.take(MAX_KEY_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    first_line(&bytes)
        .ok_or_else(|| failed("holds no key".to_owned(), "put the key alone on its first line".to_owned()))
}

/// `~/` is the home directory.
pub fn expand(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        (Some(_) | None, _) => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn said(result: Result<Key, EngineError>) -> String {
        result.unwrap_err().to_string()
    }

    fn key_file(dir: &Path, content: &str, mode: u32) -> PathBuf {
        let path = dir.join("key");
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    async fn run(argv: &[&str]) -> Result<Key, EngineError> {
        let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
        from_command("a", &argv, Path::new("/"), Duration::from_millis(500)).await
    }

    #[tokio::test]
    async fn a_command_prints_the_key_on_its_first_line() {
        assert_eq!(run(&["printf", " sk-1 \nmore\n"]).await.unwrap().expose(), "sk-1");
        // Without a shell this is one argument, not a list of commands.
        assert_eq!(run(&["echo", "a; echo b"]).await.unwrap().expose(), "a; echo b");
        let why = said(run(&["sh", "-c", "echo 'vault is sealed\u{1b}[2J' >&2; exit 3"]).await);
        assert!(why.contains("vault is sealed") && why.contains('3') && !why.contains('\u{1b}'), "{why}");
        assert!(said(run(&["true"]).await).contains("first line"));
        assert!(said(run(&["sleep", "60"]).await).contains("did not end"));
        assert!(said(run(&["/nonexistent/key-tool"]).await).contains("cannot be started"));
        assert!(said(run(&[]).await).contains("empty"));
    }

    #[test]
    fn a_key_file_is_private_and_out_of_reach() {
        let (home, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let workspace = workspace.path().canonicalize().unwrap();
        let path = key_file(home.path(), "sk-2\n# a note\n", 0o600);
        assert_eq!(from_file("a", &path, &workspace).unwrap().expose(), "sk-2");
        let shared = key_file(home.path(), "sk-2", 0o640);
        assert!(said(from_file("a", &shared, &workspace)).contains("chmod 600"));
        let inside = key_file(&workspace, "sk-2", 0o600);
        assert!(said(from_file("a", &inside, &workspace)).contains("inside the workspace"));
        let link = home.path().join("link");
        std::os::unix::fs::symlink(&inside, &link).unwrap();
        assert!(said(from_file("a", &link, &workspace)).contains("inside the workspace"), "by another name too");
        let empty = key_file(home.path(), "\nsk-2", 0o600);
        assert!(said(from_file("a", &empty, &workspace)).contains("holds no key"));
        assert!(said(from_file("a", Path::new("/nonexistent"), &workspace)).contains("cannot be read"));
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", first_line(b"sk-3").unwrap()), "Key(…)");
    }
}
