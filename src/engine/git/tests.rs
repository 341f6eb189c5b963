//! Real repositories, the real git.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::model::loop_file::SandboxDecl;
use crate::model::value::VIEWS;
use crate::tool::sandbox;

use super::*;

const RUN: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const BRANCH: &str = "nightloop/greet-people-q69g5fav";

/// A repository with one commit on `main`, and a run in it.
struct Repo {
    _dir: tempfile::TempDir,
    root: PathBuf,
    /// Git wears what it wears in a run.
    sandbox: Sandbox,
    stop: CancellationToken,
    job: Job,
}

impl Repo {
    fn new() -> Self {
        let mut repo = Self::empty();
        repo.git(&["init", "-q", "-b", "main"]);
        repo.write("a.txt", "a0\n");
        repo.write("sub/b.txt", "b0\n");
        repo.write(".gitignore", "target/\n*.log\n");
        repo.git(&["add", "."]);
        repo.git(&["commit", "-qm", "first"]);
        repo.job.settings.mode = GitMode::Branch;
        repo
    }

    fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap().join("work");
        fs::create_dir(&root).unwrap();
        let job = Job {
            setting: Err(Trouble::Stopped),
            run: RUN.to_owned(),
            name: "Greet: people!".to_owned(),
            settings: GitSettings::default(),
            section: "value",
            kept: ["VISION.md", "./docs//PRD.md"].into_iter().chain(VIEWS).map(paths::plain).collect(),
            known: None,
        };
        let declared = SandboxDecl::default();
        let in_force = sandbox::decide(&declared, false).unwrap();
        let state = dir.path().join("state");
        fs::create_dir(&state).unwrap();
        let run = format!("git-test-{}-{}", std::process::id(), dir.path().file_name().unwrap().to_string_lossy());
        let sandbox = Sandbox::open(&declared, in_force, &root, &state, Vec::new(), &run).unwrap();
        Self { _dir: dir, root, sandbox, stop: CancellationToken::new(), job }
    }

    /// What a user does.
    #[track_caller]
    fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=u", "-c", "user.email=u@x", "-c", "protocol.file.allow=always"]);
        let output = command.args(arguments).current_dir(&self.root).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }

    fn has(&self, path: &str) -> bool {
        self.root.join(path).symlink_metadata().is_ok()
    }

    /// As the driver does before each operation.
    fn look(&mut self) {
        self.job.setting = setting(&self.root, &self.sandbox, RUN, &self.stop);
    }

    async fn perform(&mut self, operation: GitOperation) -> (GitFacts, Option<String>) {
        self.look();
        let (facts, problem) = self.job.perform(&operation).await.unwrap();
        if operation == GitOperation::Prepare && problem.is_none() {
            self.job.known = Some(facts.clone());
        }
        (facts, problem)
    }

    #[track_caller]
    fn well((facts, problem): (GitFacts, Option<String>)) -> GitFacts {
        assert_eq!(problem, None);
        facts
    }

    async fn prepare(&mut self) -> GitFacts {
        Self::well(self.perform(GitOperation::Prepare).await)
    }

    async fn refused(&mut self) -> String {
        let (facts, problem) = self.perform(GitOperation::Prepare).await;
        assert_eq!(facts.branch, None);
        problem.expect("it was not refused")
    }

    async fn commit(&mut self, what: &str) -> GitFacts {
        Self::well(self.perform(GitOperation::Commit { what: what.to_owned() }).await)
    }

    async fn restore(&mut self, commit: &str) -> GitFacts {
        Self::well(self.perform(GitOperation::Restore { commit: commit.to_owned(), why: "worse".to_owned() }).await)
    }

    async fn undo(&mut self, iteration: u32, starts: &[&str]) -> Result<GitFacts, Trouble> {
        let spans: Vec<Span> =
            (0u32..).zip(starts).map(|(iteration, start)| Span { iteration, start: (*start).to_owned() }).collect();
        self.look();
        self.job.change(async |work: Work<'_>| work.undo(iteration, &spans).await).await
    }

    /// The files of a commit.
    fn files_of(&self, commit: &str) -> Vec<String> {
        self.git(&["ls-tree", "-r", "--name-only", commit]).lines().map(str::to_owned).collect()
    }

    fn status(&self) -> String {
        self.git(&["status", "--porcelain"])
    }
}

#[tokio::test]
async fn a_run_works_on_its_own_branch_and_nothing_else_moves() {
    let mut repo = Repo::new();
    repo.git(&["config", "user.name", "Ada"]);
    repo.git(&["config", "user.email", "ada@x"]);
    repo.write("a.txt", "stashed\n");
    repo.git(&["stash"]);
    let (main, stash) = (repo.git(&["rev-parse", "main"]), repo.git(&["stash", "list"]));
    let facts = repo.prepare().await;
    assert_eq!((facts.branch.as_deref(), facts.original.as_deref()), (Some(BRANCH), Some("main")));
    assert_eq!(facts.head.as_ref(), Some(&main));
    assert_eq!(repo.status(), "");
    repo.write("a.txt", "a1\n");
    repo.write("new/c.txt", "c\n");
    fs::remove_file(repo.root.join("sub/b.txt")).unwrap();
    let done = repo.commit("task 1\nwith a second line").await;
    assert_eq!(done.files, ["a.txt", "new/c.txt", "sub/b.txt"]);
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), done.head.clone().unwrap());
    assert_eq!(repo.git(&["log", "-1", "--format=%s|%an"]), "nightloop(Greet: people!): task 1 with a second line|Ada");
    assert_eq!(repo.status(), "", "the user's index follows");
    // Nothing changed: no commit.
    let again = repo.commit("nothing").await;
    assert_eq!((again.head, again.files), (done.head, vec![]));
    assert_eq!(repo.git(&["rev-parse", "main"]), main);
    assert_eq!(repo.git(&["stash", "list"]), stash);
    assert_eq!(repo.git(&["for-each-ref", "--format=%(refname)"]).lines().count(), 3, "main, the run's, the stash");
}

#[tokio::test]
async fn done_twice_it_comes_to_the_same() {
    let mut repo = Repo::new();
    repo.write("mine.txt", "m\n");
    let first = repo.prepare().await;
    // The engine died before it recorded anything: it knows nothing.
    repo.job.known = None;
    assert_eq!(repo.prepare().await, first);
    // Or between the new branch and the switch to it.
    repo.job.known = None;
    repo.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
    assert_eq!(repo.prepare().await, first);
    // Asked again later, what the run made since is not foreign.
    repo.write("made.txt", "x\n");
    assert_eq!(repo.prepare().await.foreign, ["mine.txt"]);
    repo.write("a.txt", "a1\n");
    let done = repo.commit("one").await;
    assert_eq!(repo.commit("one").await.head, done.head);
    // Died between the commit and the index.
    repo.git(&["read-tree", "main"]);
    assert!(!repo.status().is_empty());
    assert_eq!(repo.commit("one").await.head, done.head);
    assert_eq!(repo.status(), "?? mine.txt");
}

#[tokio::test]
async fn what_was_there_before_is_never_committed_nor_touched() {
    let mut repo = Repo::new();
    repo.write("a.txt", "my own change\n");
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("notes.md", "untracked\n");
    repo.write("target/out", "ignored\n");
    repo.write("x.log", "ignored\n");
    let told = repo.refused().await;
    assert!(told.contains("a.txt, staged.txt") && told.contains("allow_dirty"), "{told}");
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    repo.job.settings.allow_dirty = true;
    let facts = repo.prepare().await;
    assert_eq!(facts.foreign, ["a.txt", "notes.md", "staged.txt", "target/", "x.log"]);
    let before = repo.status();
    let staged = repo.git(&["ls-files", "-s"]);
    // The run writes where the user has files, and lifts the rules that hid others.
    repo.write("notes.md", "the run was here\n");
    repo.write("target/out", "the run was here\n");
    repo.write("sub/b.txt", "b1\n");
    repo.write(".gitignore", "");
    let done = repo.commit("work").await;
    assert_eq!(done.files, [".gitignore", "sub/b.txt"]);
    assert_eq!(repo.files_of("HEAD"), [".gitignore", "a.txt", "sub/b.txt"]);
    assert_eq!(repo.git(&["show", "HEAD:a.txt"]), "a0");
    let after: Vec<String> = repo.git(&["ls-files", "-s"]).lines().map(str::to_owned).collect();
    for path in ["a.txt", "staged.txt"] {
        let line = staged.lines().find(|line| line.ends_with(path)).unwrap();
        assert!(after.iter().any(|now| now == line), "the user's index has another {path}");
    }
    // And the way back leaves them alone, too.
    repo.restore(&repo.git(&["rev-parse", "main"])).await;
    assert_eq!(repo.read("a.txt"), "my own change\n");
    assert_eq!(repo.read("notes.md"), "the run was here\n");
    assert_eq!(repo.read("target/out"), "the run was here\n");
    assert_eq!(repo.read("x.log"), "ignored\n");
    assert_eq!(repo.read("sub/b.txt"), "b0\n");
    assert_eq!(repo.status(), before);
}

#[tokio::test]
async fn names_of_secrets_and_the_engines_own_files_stay_out() {
    let mut repo = Repo::new();
    repo.prepare().await;
    for path in
        [".env", "conf/.env.local", "key.PEM", "my_secrets/x", "AGENTS.md", "evidence/e", "scratch/STOP", "ok.rs"]
    {
        repo.write(path, "x\n");
    }
    repo.write(".loop_state.json", "{}\n");
    let done = repo.commit("work").await;
    assert_eq!(done.files, ["ok.rs"]);
    assert_eq!(done.sensitive, [".env", "conf/.env.local", "key.PEM", "my_secrets/x"]);
    repo.restore(&repo.git(&["rev-parse", "main"])).await;
    assert!(repo.has(".env") && repo.has("AGENTS.md") && repo.has("evidence/e") && !repo.has("ok.rs"));
}

#[tokio::test]
async fn nothing_of_the_repository_is_run() {
    let mut repo = Repo::new();
    let script = |name: &str| {
        let path = repo.root.join(".git").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\ntouch {}/ran-{}\ncat\n", repo.root.display(), name.replace('/', "-")))
            .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    };
    for hook in
        ["pre-commit", "post-commit", "post-checkout", "post-index-change", "reference-transaction", "commit-msg"]
    {
        script(&format!("hooks/{hook}"));
    }
    let evil = script("evil");
    for key in ["filter.odd=name.clean", "filter.odd=name.smudge", "filter.odd=name.process"] {
        repo.git(&["config", key, &evil]);
    }
    repo.git(&["config", "core.fsmonitor", &evil]);
    repo.git(&["config", "commit.gpgsign", "true"]);
    repo.git(&["config", "gpg.program", &evil]);
    repo.git(&["config", "core.editor", &evil]);
    fs::write(repo.root.join(".git/info/attributes"), "*.txt filter=odd=name\n").unwrap();
    repo.prepare().await;
    repo.write("a.txt", "a1\n");
    repo.write("c.rs", "c\n");
    let done = repo.commit("work").await;
    assert_eq!(done.files, ["c.rs"]);
    assert_eq!(done.notes, ["a.txt: a filter of git stands before it"]);
    let main = repo.git(&["rev-parse", "--verify", "main"]);
    repo.restore(&main).await;
    assert!(!repo.has("c.rs"));
    assert_eq!(repo.read("a.txt"), "a1\n");
    let ran: Vec<_> = fs::read_dir(&repo.root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!ran.iter().any(|name| name.to_string_lossy().starts_with("ran-")), "{ran:?}");
}

#[tokio::test]
async fn the_way_back_deletes_only_what_the_run_made() {
    let mut repo = Repo::new();
    repo.write("dir/mine.txt", "m\n");
    repo.prepare().await;
    repo.write("a.txt", "a1\n");
    repo.write("keep.rs", "k\n");
    let (checkpoint, problem) = repo.perform(GitOperation::Checkpoint { label: "green".to_owned() }).await;
    assert_eq!(problem, None);
    let head = checkpoint.head.unwrap();
    repo.write("a.txt", "a2\n");
    repo.write("dir/made.txt", "x\n");
    repo.write("deep/er/made.txt", "x\n");
    repo.write("debug.log", "ignored\n");
    fs::remove_file(repo.root.join("keep.rs")).unwrap();
    fs::remove_dir_all(repo.root.join("sub")).unwrap();
    repo.write("sub", "a file in place of a folder\n");
    repo.commit("worse").await;
    repo.write("uncommitted.rs", "u\n");
    let done = repo.restore(&head).await;
    let expected = ["a.txt", "deep/er/made.txt", "dir/made.txt", "keep.rs", "sub", "sub/b.txt", "uncommitted.rs"];
    assert_eq!(done.files, expected);
    assert_eq!(
        (repo.read("a.txt"), repo.read("keep.rs"), repo.read("sub/b.txt")),
        ("a1\n".into(), "k\n".into(), "b0\n".into())
    );
    assert!(!repo.has("dir/made.txt") && !repo.has("deep") && !repo.has("uncommitted.rs"));
    assert_eq!((repo.read("dir/mine.txt"), repo.read("debug.log")), ("m\n".into(), "ignored\n".into()));
    assert_eq!(repo.git(&["diff", "--name-only", &head, "HEAD"]), "", "the tree is that of the checkpoint");
    assert_eq!(repo.git(&["show", "HEAD~1:uncommitted.rs"]), "u", "what was replaced is on the branch");
    assert_eq!(repo.status(), "?? dir/");
    // Interrupted after everything was done, or half-way: it comes to the same.
    let tip = repo.git(&["rev-parse", "HEAD"]);
    assert_eq!(repo.restore(&head).await.head.unwrap(), tip);
    repo.write("a.txt", "a2\n");
    repo.restore(&head).await;
    assert_eq!(repo.read("a.txt"), "a1\n");
}

#[tokio::test]
async fn the_way_back_takes_no_folder_and_follows_no_link() {
    let mut repo = Repo::new();
    repo.prepare().await;
    let main = repo.git(&["rev-parse", "main"]);
    // A folder with ignored files where a file was: git itself would clear it.
    fs::remove_file(repo.root.join("a.txt")).unwrap();
    repo.write("a.txt/data.log", "precious\n");
    let (_, problem) = repo.perform(GitOperation::Restore { commit: main.clone(), why: "w".to_owned() }).await;
    assert!(problem.as_ref().is_some_and(|why| why.contains("a.txt cannot be put back")), "{problem:?}");
    assert_eq!(repo.read("a.txt/data.log"), "precious\n");
    fs::remove_dir_all(repo.root.join("a.txt")).unwrap();
    // A link out of the workspace where a folder was.
    let outside = repo.root.parent().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("b.txt"), "outside\n").unwrap();
    fs::remove_dir_all(repo.root.join("sub")).unwrap();
    std::os::unix::fs::symlink(&outside, repo.root.join("sub")).unwrap();
    repo.restore(&main).await;
    assert_eq!(fs::read_to_string(outside.join("b.txt")).unwrap(), "outside\n");
    assert_eq!(repo.read("sub/b.txt"), "b0\n");
    let odd = repo.perform(GitOperation::Restore { commit: "--help".to_owned(), why: "w".to_owned() }).await;
    assert!(odd.1.is_some_and(|why| why.contains("no commit of the run's branch")));
}

#[tokio::test]
async fn a_workspace_that_is_elsewhere_is_left_alone() {
    let mut repo = Repo::new();
    repo.prepare().await;
    repo.git(&["switch", "-q", "main"]);
    repo.write("a.txt", "a1\n");
    let main = repo.git(&["rev-parse", "main"]);
    for operation in
        [GitOperation::Commit { what: "w".into() }, GitOperation::Restore { commit: main.clone(), why: "w".into() }]
    {
        let (_, problem) = repo.perform(operation).await;
        assert!(problem.as_ref().is_some_and(|why| why.contains("on branch main")), "{problem:?}");
    }
    assert_eq!((repo.git(&["rev-parse", "main"]), repo.read("a.txt")), (main, "a1\n".to_owned()));
    // A protected pattern that takes in the run's own branch wins.
    repo.git(&["checkout", "-q", "a.txt"]);
    repo.git(&["switch", "-q", BRANCH]);
    repo.job.settings.protected.push("nightloop/*".to_owned());
    let (_, problem) = repo.perform(GitOperation::Commit { what: "w".into() }).await;
    assert!(problem.is_some_and(|why| why.contains("protected")));
}

#[tokio::test]
async fn what_cannot_be_worked_on_is_refused() {
    // No repository.
    let mut repo = Repo::empty();
    let facts = repo.prepare().await;
    assert!(facts.branch.is_none() && facts.notes[0].contains("git init"), "{facts:?}");
    assert_eq!(repo.commit("w").await, GitFacts::default(), "nothing to do");
    repo.job.known = None;
    repo.job.settings.mode = GitMode::Branch;
    assert!(repo.refused().await.contains("git init"));
    // No commit yet.
    repo.git(&["init", "-q", "-b", "main"]);
    assert!(repo.refused().await.contains("no commit yet"));
    repo.job.settings.mode = GitMode::Auto;
    assert_eq!(repo.prepare().await.branch, None);
    repo.job.settings.mode = GitMode::Off;
    assert_eq!(repo.prepare().await, GitFacts::default());
    // A folder of a repository.
    let mut repo = Repo::new();
    repo.root = repo.root.join("sub");
    assert!(repo.refused().await.contains("not at the workspace"));
    // Bare.
    let mut bare = Repo::empty();
    bare.git(&["init", "-q", "--bare"]);
    assert!(bare.refused().await.contains("bare"));
    // Detached.
    let mut repo = Repo::new();
    repo.git(&["checkout", "-q", "--detach"]);
    assert!(repo.refused().await.contains("detached"));
    // In the middle of a merge.
    let mut repo = Repo::new();
    repo.git(&["switch", "-qc", "other"]);
    repo.write("a.txt", "other\n");
    repo.git(&["commit", "-qam", "other"]);
    repo.git(&["switch", "-q", "main"]);
    repo.write("c.txt", "c\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "c"]);
    repo.git(&["merge", "-q", "--no-commit", "other"]);
    repo.job.settings.allow_dirty = true;
    assert!(repo.refused().await.contains("a merge is in progress"));
    // A tree that is somewhere else: files there are not the run's.
    let mut repo = Repo::new();
    let elsewhere = repo.root.parent().unwrap().to_owned();
    repo.git(&["config", "core.worktree", elsewhere.to_str().unwrap()]);
    assert!(repo.refused().await.contains("not at the workspace"));
}

#[tokio::test]
async fn odd_names_and_other_repositories() {
    let mut repo = Repo::new();
    let inner = Repo::new();
    repo.git(&["submodule", "add", "-q", inner.root.to_str().unwrap(), "module"]);
    repo.git(&["commit", "-qm", "module"]);
    repo.prepare().await;
    let odd: Vec<&[u8]> = vec![b"with space.txt", b"new\nline.txt", b"\xff\xfe.txt", b"-rf", b"*", b"tab\there"];
    for name in &odd {
        fs::write(repo.root.join(OsStr::from_bytes(name)), "odd\n").unwrap();
    }
    repo.write("module/a.txt", "changed inside\n");
    fs::create_dir(repo.root.join("nested")).unwrap();
    let nested = Command::new("git").args(["init", "-q"]).current_dir(repo.root.join("nested")).status().unwrap();
    assert!(nested.success());
    repo.write("nested/x", "x\n");
    let done = repo.commit("odd").await;
    assert_eq!(done.files, ["*", "-rf", "new\nline.txt", "tab\there", "with space.txt", "\\xff\\xfe.txt"]);
    assert_eq!(done.notes, ["nested/: a repository of its own"]);
    let back = repo.restore(&repo.git(&["rev-parse", "HEAD~1"])).await;
    assert_eq!(back.files.len(), odd.len());
    assert!(odd.iter().all(|name| !repo.root.join(paths::path(name)).exists()));
    assert_eq!((repo.read("module/a.txt"), repo.read("nested/x")), ("changed inside\n".into(), "x\n".into()));
}

#[tokio::test]
async fn an_iteration_is_taken_back_where_nothing_was_built_on_it() {
    let mut repo = Repo::new();
    let s0 = repo.prepare().await.head.unwrap();
    repo.write("a.txt", "a1\n");
    repo.write("zero.rs", "0\n");
    let s1 = repo.commit("before iteration 1").await.head.unwrap();
    repo.write("a.txt", "a2\n");
    repo.write("one.rs", "1\n");
    let s2 = repo.commit("before iteration 2").await.head.unwrap();
    repo.write("two.rs", "2\n");
    let why = repo.undo(0, &[&s0, &s1, &s2]).await;
    assert_eq!(why, Err(Trouble::refused("a.txt was changed again in iteration 1: take that back first")));
    assert!(repo.has("zero.rs"));
    let done = repo.undo(1, &[&s0, &s1, &s2]).await.unwrap();
    assert_eq!(done.files, ["a.txt", "one.rs"]);
    assert_eq!(repo.read("a.txt"), "a1\n");
    assert!(!repo.has("one.rs") && repo.has("two.rs"));
    // Interrupted and done again.
    repo.write("one.rs", "1\n");
    assert_eq!(repo.undo(1, &[&s0, &s1, &s2]).await.unwrap().files, ["a.txt", "one.rs"]);
    assert!(!repo.has("one.rs"));
    // Now the one before it.
    assert_eq!(repo.undo(0, &[&s0, &s1, &s2]).await.unwrap().files, ["a.txt", "zero.rs"]);
    assert_eq!(repo.read("a.txt"), "a0\n");
    // What the present iteration works on is not taken from under it.
    repo.write("three.rs", "3\n");
    let s3 = repo.commit("before iteration 3").await.head.unwrap();
    repo.write("three.rs", "3 again\n");
    let why = repo.undo(2, &[&s0, &s1, &s2, &s3]).await;
    assert_eq!(why, Err(Trouble::refused("three.rs was changed again in iteration 3, which is not over yet")));
    assert!(matches!(repo.undo(3, &[&s0, &s1, &s2, &s3]).await, Err(Trouble::Refused(_))), "it is not over");
}

#[tokio::test]
async fn a_stop_leaves_it_for_later() {
    let mut repo = Repo::new();
    repo.prepare().await;
    repo.stop.cancel();
    repo.look();
    assert_eq!(repo.job.perform(&GitOperation::Commit { what: "w".into() }).await, Err(Trouble::Stopped));
}

#[test]
fn the_branch_has_a_name_that_git_takes() {
    assert_eq!(repository::branch_name("Greet: people!", RUN), BRANCH);
    assert_eq!(repository::branch_name("..//@{ ä", "short"), "nightloop/run-short");
    let long = repository::branch_name(&"x".repeat(500), RUN);
    assert!(long.len() < 70, "{long}");
    assert!(Path::new(&long).components().count() == 2);
}

#[tokio::test]
async fn going_back_leaves_what_people_want_as_they_wrote_it() {
    let mut repo = Repo::new();
    repo.write("docs/PRD.md", "R1\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "documents"]);
    let first = repo.prepare().await.head.unwrap();
    repo.write("a.txt", "a1\n");
    repo.write("docs/PRD.md", "R1, R2\n");
    repo.write("VISION.md", "more\n");
    let second = repo.commit("work").await.head.unwrap();
    assert_eq!(repo.restore(&first).await.files, ["a.txt"]);
    let read = |repo: &Repo| (repo.read("a.txt"), repo.read("docs/PRD.md"), repo.read("VISION.md"));
    let expected = ("a0\n".to_owned(), "R1, R2\n".to_owned(), "more\n".to_owned());
    assert_eq!(read(&repo), expected);
    let undone = repo.undo(0, &[&first, &second]).await.unwrap();
    assert_eq!((read(&repo), undone.files), (expected, vec!["a.txt".to_owned()]));
}

#[tokio::test]
async fn what_is_rendered_stands_in_the_way_of_no_undo() {
    let mut repo = Repo::new();
    let s0 = repo.prepare().await.head.unwrap();
    let mut starts = vec![s0];
    // Each iteration makes a file of its own, and every view changes with it.
    for (iteration, file) in ["zero.rs", "one.rs", "two.rs"].into_iter().enumerate() {
        repo.write(file, "work\n");
        for view in VIEWS {
            repo.write(view, &format!("as of iteration {iteration}\n"));
        }
        starts.push(repo.commit(&format!("before iteration {}", iteration + 1)).await.head.unwrap());
    }
    let starts: Vec<&str> = starts.iter().map(String::as_str).collect();
    assert_eq!(repo.undo(0, &starts).await.unwrap().files, ["zero.rs"]);
    assert!(!repo.has("zero.rs") && repo.has("one.rs"));
    assert_eq!(repo.read("VALUE_CHECKLIST.md"), "as of iteration 2\n");
    assert_eq!(repo.restore(starts[1]).await.files, ["one.rs", "two.rs", "zero.rs"]);
    assert_eq!(repo.read("IMPLEMENTATION_PLAN.md"), "as of iteration 2\n", "it shows the run as it is");
}

/// A folder outside of everything, and a program that leaves a mark there when it is run.
struct Trap {
    mark: PathBuf,
    program: PathBuf,
}

impl Trap {
    fn in_the(repo: &Repo) -> Self {
        let (mark, program) = (repo._dir.path().join("mark"), repo.root.join("trap.sh"));
        fs::write(&program, format!("#!/bin/sh\necho ran >> {}\necho ran >> ran-inside\ncat\n", mark.display()))
            .unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { mark, program }
    }

    #[track_caller]
    fn never_ran(&self, repo: &Repo, what: &str) {
        assert!(!self.mark.exists(), "{what}: it ran outside the sandbox");
        let inside = Command::new("find").arg(&repo.root).args(["-name", "ran-inside"]).output().unwrap();
        assert!(inside.stdout.is_empty(), "{what}: it ran in the sandbox");
    }
}

/// A submodule with a configuration of its own, which git would enter if it were left to itself.
#[tokio::test]
async fn a_planted_submodule_is_not_entered() {
    let mut repo = Repo::new();
    repo.prepare().await;
    let trap = Trap::in_the(&repo);
    let sub = repo.root.join("sub2");
    fs::create_dir(&sub).unwrap();
    let inner = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=u", "-c", "user.email=u@x"]).args(arguments).current_dir(&sub);
        assert!(git.status().unwrap().success(), "{arguments:?}");
    };
    inner(&["init", "-q", "-b", "main"]);
    fs::write(sub.join("f.txt"), "one\n").unwrap();
    fs::write(sub.join(".gitattributes"), "*.txt filter=evil\n").unwrap();
    inner(&["add", "."]);
    inner(&["commit", "-qm", "inner"]);
    inner(&["config", "filter.evil.clean", trap.program.to_str().unwrap()]);
    repo.write(".gitmodules", "[submodule \"sub2\"]\n\tpath = sub2\n\turl = ./sub2\n");
    repo.git(&["config", "submodule.recurse", "true"]);
    repo.git(&["config", "submodule.sub2.active", "true"]);
    repo.git(&["add", "sub2", ".gitmodules"]);
    repo.git(&["commit", "-qm", "gitlink"]);
    // Racy: as young as its index.
    fs::write(sub.join("f.txt"), "two\n").unwrap();
    repo.write("a.txt", "a1\n");
    let first = repo.commit("work").await;
    repo.restore(&repo.git(&["rev-parse", "HEAD~1"])).await;
    assert!(first.files.contains(&"a.txt".to_owned()), "{first:?}");
    trap.never_ran(&repo, "submodule");
}

/// What a repository can name as a program, and what leads git elsewhere.
#[tokio::test]
async fn planted_settings_run_nothing() {
    type Plant = fn(&Repo, &str);
    let kinds: &[(&str, Plant)] = &[
        ("fsmonitor", |repo, program| {
            repo.git(&["config", "core.fsmonitor", program]);
        }),
        ("a header in a header", |repo, program| {
            let text = fs::read_to_string(repo.root.join(".git/config")).unwrap();
            repo.write(".git/config", &format!("{text}[branch \"a\"] [core] fsmonitor = {program} # \"]\n"));
        }),
        ("hooksPath", |repo, program| {
            for hook in ["pre-commit", "post-index-change", "reference-transaction", "post-checkout"] {
                repo.write(&format!("h/{hook}"), "");
                fs::copy(program, repo.root.join("h").join(hook)).unwrap();
            }
            repo.git(&["config", "core.hooksPath", "h"]);
        }),
        ("an include", |repo, program| {
            repo.write("shared.cfg", &format!("[core]\n\tfsmonitor = {program}\n"));
            repo.git(&["config", "include.path", "../shared.cfg"]);
        }),
        ("attributes of the repository", |repo, program| {
            repo.write(".git/info/attributes", "* filter=evil\n");
            repo.git(&["config", "filter.evil.clean", program]);
            repo.git(&["config", "filter.evil.process", program]);
        }),
        ("signatures", |repo, program| {
            repo.git(&["config", "commit.gpgSign", "true"]);
            repo.git(&["config", "gpg.program", program]);
        }),
        ("a configuration of the work tree", |repo, program| {
            repo.git(&["config", "extensions.worktreeConfig", "true"]);
            repo.write(".git/config.worktree", &format!("[core]\n\tfsmonitor = {program}\n"));
        }),
        ("a lazy remote", |repo, program| {
            repo.git(&["config", "remote.origin.url", &format!("ext::{program}")]);
            repo.git(&["config", "remote.origin.promisor", "true"]);
            repo.git(&["config", "extensions.partialClone", "origin"]);
        }),
        ("alternates", |repo, program| {
            repo.write(".git/objects/info/alternates", "/nowhere\n");
            repo.git(&["config", "core.alternateRefsCommand", program]);
        }),
        ("editors and pagers", |repo, program| {
            for key in
                ["core.editor", "core.pager", "sequence.editor", "core.askPass", "core.sshCommand", "alias.diff-files"]
            {
                repo.git(&["config", key, program]);
            }
        }),
    ];
    for (what, plant) in kinds {
        let mut repo = Repo::new();
        repo.prepare().await;
        let trap = Trap::in_the(&repo);
        plant(&repo, trap.program.to_str().unwrap());
        repo.write("a.txt", "a1\n");
        let (done, problem) = repo.perform(GitOperation::Commit { what: "w".into() }).await;
        let filtered = done.notes.iter().any(|note| note.contains("filter"));
        assert!(problem.is_some() || filtered || done.files.contains(&"a.txt".to_owned()), "{what}: {done:?}");
        trap.never_ran(&repo, what);
    }
}

/// Links in the places that git writes: refused before the first command, and nothing outside is touched.
#[tokio::test]
async fn links_inside_the_repository_are_refused() {
    for name in ["logs/HEAD", "index", "HEAD", "config", "packed-refs", "refs/heads/x", "objects/ab", "objects/info"] {
        let mut repo = Repo::new();
        repo.prepare().await;
        let outside = repo._dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "mine\n").unwrap();
        let at = repo.root.join(".git").join(name);
        let target = if name.starts_with("objects") { outside.clone() } else { outside.join("file") };
        if at.is_dir() {
            fs::remove_dir_all(&at).unwrap();
        } else {
            let _ = fs::remove_file(&at);
        }
        std::os::unix::fs::symlink(&target, &at).unwrap();
        repo.write("a.txt", "a1\n");
        let (_, problem) = repo.perform(GitOperation::Commit { what: "w".into() }).await;
        assert!(problem.is_some_and(|why| why.contains(name)), "{name}");
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "mine\n", "{name}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "{name}");
    }
}

/// A pipe where git looks for rules: git would wait for it, so it is named first.
#[tokio::test]
async fn a_pipe_is_named_before_git_could_wait_for_it() {
    for name in [".gitignore", ".gitattributes", ".gitmodules"] {
        let mut repo = Repo::new();
        repo.prepare().await;
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let pipe = repo.root.join("sub").join(name);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        repo.write("sub/new.txt", "n\n");
        let (_, problem) = repo.perform(GitOperation::Commit { what: "w".into() }).await;
        assert!(problem.is_some_and(|why| why.contains(&format!("sub/{name}"))), "{name}");
    }
}

/// A stop that comes while git works ends git, and what was announced is done again later.
#[tokio::test]
async fn a_stop_in_the_middle_leaves_no_lock() {
    let mut repo = Repo::new();
    repo.prepare().await;
    repo.write("a.txt", "a1\n");
    repo.look();
    let stop = repo.stop.clone();
    let operation = GitOperation::Commit { what: "w".into() };
    let (result, ()) = tokio::join!(repo.job.perform(&operation), async {
        tokio::task::yield_now().await;
        stop.cancel();
    });
    assert_eq!(result, Err(Trouble::Stopped));
    assert!(!repo.has(".git/index.lock"));
    repo.stop = CancellationToken::new();
    assert_eq!(repo.commit("w").await.files, ["a.txt"]);
}

/// A linked work tree: git has to write outside the workspace, and may.
#[tokio::test]
async fn a_linked_work_tree_is_committed_to() {
    let mut repo = Repo::new();
    let tree = repo._dir.path().canonicalize().unwrap().join("tree");
    repo.git(&["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    repo.root = tree;
    repo.prepare().await;
    repo.write("a.txt", "a1\n");
    assert_eq!(repo.commit("w").await.files, ["a.txt"]);
}
