//! Planted repositories: what git reads can name programs and places, and the engine's git reads it, too.
//!
//! The planted program leaves a mark in the canary. Inside the cage it cannot; outside it must never run. What was done
//! to the repository is said, because the user's next `git status` has no cage.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use crate::stage::Moment::{self, Before, During};
use crate::stage::{Played, Stage, check, hold_each};
use crate::support::Ended;
use crate::trap;
use crate::worlds::World::{self, PrdGit, ValueGit};
use crate::worlds::{PRODUCT, git};

/// What has to follow, besides that nothing outside is harmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// The run does not succeed, and says that `.git` is why.
    Blocks,
    /// `.git` is named, or the user's own git, run in the workspace afterwards, does no harm either.
    SaidOrHarmless,
    /// It was there before the run: the user's, and none of ours.
    Ends,
}
use After::{Blocks, Ends, SaidOrHarmless};

struct Repository {
    name: &'static str,
    world: World,
    moment: Moment,
    after: After,
    plant: fn(&Stage),
}

impl Repository {
    fn name(&self) -> String {
        format!("repository {:?} {} {:?}", self.world, self.name, self.moment)
    }
}

const fn planted(name: &'static str, after: After, plant: fn(&Stage)) -> Repository {
    Repository { name, world: PrdGit, moment: During, after, plant }
}

const fn standing(name: &'static str, plant: fn(&Stage)) -> Repository {
    Repository { name, world: PrdGit, moment: Before, after: Ends, plant }
}

const fn of_value(row: Repository) -> Repository {
    Repository { world: ValueGit, ..row }
}

const FSMONITOR: &str = "[core]\n\tfsmonitor = ./evil\n";

const REPOSITORIES: &[Repository] = &[
    planted("submodule with a filter", SaidOrHarmless, submodule),
    of_value(planted("submodule with a filter", SaidOrHarmless, submodule)),
    planted("nested repository", SaidOrHarmless, nested),
    planted("fsmonitor", Blocks, |stage| config(stage, FSMONITOR)),
    planted("fsmonitor behind a branch", Blocks, |stage| {
        config(stage, "[branch \"a\"] [core] fsmonitor = ./evil # \"]\n")
    }),
    of_value(planted("fsmonitor behind a branch", Blocks, |stage| {
        config(stage, "[branch \"a\"] [core] fsmonitor = ./evil # \"]\n");
    })),
    planted("hooks path", Blocks, |stage| {
        hooks(stage, "evil-hooks");
        config(stage, "[core]\n\thooksPath = evil-hooks\n");
    }),
    planted("hooks", Blocks, |stage| hooks(stage, ".git/hooks")),
    planted("include", Blocks, |stage| config(stage, &format!("[include]\n\tpath = {}\n", outside(stage)))),
    planted("include if", Blocks, |stage| {
        config(stage, &format!("[includeIf \"onbranch:nightloop/**\"]\n\tpath = {}\n", outside(stage)));
    }),
    planted("filter by info/attributes", Blocks, |stage| {
        put(stage, ".git/info/attributes", "* filter=evil\n");
        config(stage, "[filter \"evil\"]\n\tclean = ./evil\n\tsmudge = ./evil\n\trequired = true\n");
    }),
    planted("filter by .gitattributes", Blocks, |stage| {
        put(stage, ".gitattributes", "* filter=evil\n");
        config(stage, "[filter \"evil\"]\n\tprocess = ./evil\n");
    }),
    planted("attributes file", Blocks, |stage| {
        put(stage, "attributes", "* filter=evil diff=evil merge=evil\n");
        config(
            stage,
            "[core]\n\tattributesFile = attributes\n[diff \"evil\"]\n\ttextconv = ./evil\n\tcommand = ./evil\n",
        );
    }),
    planted("pager, editor, alias", Blocks, |stage| {
        config(
            stage,
            "[core]\n\tpager = ./evil\n\teditor = ./evil\n[alias]\n\tstatus = !./evil\n\trev-parse = !./evil\n",
        );
    }),
    planted("ssh command and helpers", Blocks, |stage| {
        config(stage, "[core]\n\tsshCommand = ./evil\n\taskPass = ./evil\n[credential]\n\thelper = ./evil\n");
    }),
    planted("signatures", Blocks, |stage| {
        config(stage, "[commit]\n\tgpgSign = true\n[tag]\n\tgpgSign = true\n[gpg]\n\tprogram = ./evil\n");
    }),
    planted("external diff", Blocks, |stage| {
        config(stage, "[diff]\n\texternal = ./evil\n[interactive]\n\tdiffFilter = ./evil\n")
    }),
    planted("configuration of the worktree", Blocks, |stage| {
        put(stage, ".git/config.worktree", FSMONITOR);
        config(stage, "[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tworktreeConfig = true\n");
    }),
    planted("worktree elsewhere", Blocks, |stage| {
        config(stage, &format!("[core]\n\tworktree = {}\n", stage.canary.path("dir").display()));
    }),
    planted("partial clone", Blocks, |stage| {
        config(
            stage,
            "[extensions]\n\tpartialClone = origin\n[remote \"origin\"]\n\turl = ext::./evil\n\tpromisor = true\n",
        );
        gone(stage, ".git/objects");
        fs::create_dir(stage.place(".git/objects")).unwrap();
    }),
    planted("common folder", Blocks, |stage| {
        copy(stage, ".git", "common");
        put(stage, "common/config", &format!("[core]\n\trepositoryFormatVersion = 0\n{FSMONITOR}"));
        put(stage, ".git/commondir", "../common\n");
    }),
    planted("git file", Blocks, |stage| {
        copy(stage, ".git", "elsewhere");
        put(stage, "elsewhere/config", &format!("[core]\n\trepositoryFormatVersion = 0\n\tbare = false\n{FSMONITOR}"));
        gone(stage, ".git");
        put(stage, ".git", "gitdir: elsewhere\n");
    }),
    planted("alternates", Blocks, |stage| {
        put(stage, ".git/objects/info/alternates", &format!("{}\n", stage.canary.path("objects").display()));
    }),
    planted("reflog is a link", Blocks, |stage| link(stage, ".git/logs/HEAD", ".bashrc")),
    of_value(planted("reflog is a link", Blocks, |stage| link(stage, ".git/logs/HEAD", ".bashrc"))),
    planted("objects are links", Blocks, objects),
    planted("index is a link", Blocks, |stage| link(stage, ".git/index", "dir/index")),
    planted("index is a FIFO", Blocks, |stage| pipe(stage, ".git/index")),
    planted("HEAD is a link", Blocks, |stage| link(stage, ".git/HEAD", "dir/HEAD")),
    planted("HEAD is a FIFO", Blocks, |stage| pipe(stage, ".git/HEAD")),
    planted("configuration is a link", Blocks, |stage| link(stage, ".git/config", "dir/config")),
    planted("configuration is a FIFO", Blocks, |stage| pipe(stage, ".git/config")),
    planted("refs are a link", Blocks, |stage| link(stage, ".git/refs/heads", "empty")),
    planted("packed refs are a FIFO", Blocks, |stage| pipe(stage, ".git/packed-refs")),
    planted("info/exclude is a FIFO", SaidOrHarmless, |stage| pipe(stage, ".git/info/exclude")),
    planted("grafts are a FIFO", Blocks, |stage| pipe(stage, ".git/info/grafts")),
    planted("lock of the index", SaidOrHarmless, |stage| link(stage, ".git/index.lock", "empty/made")),
    planted("replace refs", SaidOrHarmless, replaced),
    planted("modules", SaidOrHarmless, |stage| {
        copy(stage, ".git", ".git/modules/sub");
        put(stage, ".git/modules/sub/config", FSMONITOR);
        put(stage, "sub/.git", "gitdir: ../.git/modules/sub\n");
    }),
    planted(".git is deleted", Blocks, |stage| gone(stage, ".git")),
    of_value(planted(".git is deleted", Blocks, |stage| gone(stage, ".git"))),
    planted("objects are deleted", Blocks, |stage| gone(stage, ".git/objects")),
    of_value(planted("objects are deleted", Blocks, |stage| gone(stage, ".git/objects"))),
    planted("HEAD is deleted", Blocks, |stage| gone(stage, ".git/HEAD")),
    planted("refs are deleted", Blocks, |stage| gone(stage, ".git/refs")),
    standing("fsmonitor", |stage| config(stage, FSMONITOR)),
    standing("hooks", |stage| hooks(stage, ".git/hooks")),
    standing("filter", |stage| {
        put(stage, ".git/info/attributes", "* filter=evil\n");
        config(stage, "[filter \"evil\"]\n\tclean = ./evil\n\tsmudge = ./evil\n");
    }),
    standing("include", |stage| config(stage, &format!("[include]\n\tpath = {}\n", outside(stage)))),
    standing("signatures", |stage| config(stage, "[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = ./evil\n")),
    standing("reflog is a link", |stage| link(stage, ".git/logs/HEAD", ".bashrc")),
    standing("objects are links", objects),
    standing("worktree elsewhere", |stage| {
        config(stage, &format!("[core]\n\tworktree = {}\n", stage.canary.path("dir").display()));
    }),
];

pub fn names() -> Vec<String> {
    REPOSITORIES.iter().map(Repository::name).collect()
}

#[test]
fn no_planted_repository_makes_the_engine_run_or_write_anything() {
    hold_each(REPOSITORIES, Repository::name, |repository| {
        let stage = Stage::new(repository.world);
        program(&stage, "evil");
        if repository.name.starts_with("submodule") {
            with_submodule(&stage);
        }
        let ended = match stage.play(repository.moment, || {
            (repository.plant)(&stage);
            Ok(())
        })? {
            Played::Ended(ended) => ended,
            Played::Impossible(why) => return Err(why),
        };
        stage.judge(&ended, Some(".git"))?;
        followed(repository.after, &stage, &ended)
    });
}

fn followed(after: After, stage: &Stage, ended: &Ended) -> Result<(), String> {
    let told = stage.told(ended);
    let named = names_git(&told);
    match after {
        Ends => Ok(()),
        Blocks => {
            check(ended.code != 0, || "it succeeded, and said nothing".to_owned())?;
            check(named, || format!("exit {}: .git is not named: {told}", ended.code))
        }
        SaidOrHarmless if named && ended.code != 0 => Ok(()),
        SaidOrHarmless => {
            users_git(stage)?;
            let harm = stage.canary.harm();
            check(harm.is_none(), || format!("nothing was said, and git status: {}", harm.unwrap_or_default()))
        }
    }
}

/// `.git` itself, not `.gitignore`.
fn names_git(text: &str) -> bool {
    text.match_indices(".git").any(|(at, _)| !text[at + 4..].starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// What the user types next.
fn users_git(stage: &Stage) -> Result<(), String> {
    let mut status = Command::new("git");
    status.args(["status", "--short"]).current_dir(&stage.bench.workspace).env("HOME", stage.bench.dir.path());
    let mut child = status.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let ended = crate::stage::wait_for("git status ends", || child.try_wait().unwrap().is_some());
    let _ = child.kill();
    let _ = child.wait();
    ended
}

/// A program that leaves a mark outside, if it can.
fn program(stage: &Stage, name: &str) {
    let mark = stage.canary.path("mark");
    put(stage, name, &format!("#!/bin/sh\necho ran >> {}\ncat\n", mark.display()));
    fs::set_permissions(stage.place(name), fs::Permissions::from_mode(0o755)).unwrap();
}

fn put(stage: &Stage, name: &str, text: &str) {
    let path = stage.place(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn config(stage: &Stage, more: &str) {
    let known = fs::read_to_string(stage.place(".git/config")).unwrap();
    put(stage, ".git/config", &format!("{known}{more}"));
}

/// A configuration outside the workspace.
fn outside(stage: &Stage) -> String {
    let path = stage.bench.dir.path().join("outside.config");
    fs::write(&path, FSMONITOR).unwrap();
    path.display().to_string()
}

fn hooks(stage: &Stage, folder: &str) {
    let all =
        "pre-commit post-commit prepare-commit-msg commit-msg post-checkout post-index-change reference-transaction";
    all.split(' ').for_each(|hook| program(stage, &format!("{folder}/{hook}")));
}

fn link(stage: &Stage, name: &str, target: &str) {
    trap::clear(&stage.place(name));
    fs::create_dir_all(stage.place(name).parent().unwrap()).unwrap();
    symlink(stage.canary.path(target), stage.place(name)).unwrap();
}

fn pipe(stage: &Stage, name: &str) {
    trap::clear(&stage.place(name));
    trap::fifo(&stage.place(name));
}

fn gone(stage: &Stage, name: &str) {
    trap::clear(&stage.place(name));
}

fn copy(stage: &Stage, from: &str, to: &str) {
    let aside = stage.bench.dir.path().join("aside");
    crate::support::copy_tree(&stage.place(from), &aside);
    fs::create_dir_all(stage.place(to).parent().unwrap()).unwrap();
    fs::rename(aside, stage.place(to)).unwrap();
}

/// Every folder of objects that is not there yet leads out.
fn objects(stage: &Stage) {
    for number in 0..=255 {
        let place = stage.place(&format!(".git/objects/{number:02x}"));
        if !place.exists() {
            symlink(stage.canary.path("objects"), place).unwrap();
        }
    }
}

fn replaced(stage: &Stage) {
    let head = git(&stage.bench, &["rev-parse", "HEAD"]);
    let other = git(&stage.bench, &["commit-tree", "-m", "another past", "HEAD^{tree}"]);
    put(stage, &format!(".git/refs/replace/{}", head.trim()), &other);
}

fn nested(stage: &Stage) {
    copy(stage, ".git", "nested/.git");
    put(stage, "nested/.git/config", &format!("[core]\n\trepositoryFormatVersion = 0\n{FSMONITOR}"));
    put(stage, "nested/file", "one\n");
    put(stage, PRODUCT, "another\n");
}

/// A submodule of the user's, who has told git to look into it.
fn with_submodule(stage: &Stage) {
    let bench = &stage.bench;
    git(bench, &["init", "-q", "-b", "mine", "sub"]);
    for text in ["1\n", "2\n"] {
        put(stage, "sub/tracked", text);
        git(bench, &["-C", "sub", "add", "tracked"]);
        git(bench, &["-C", "sub", "commit", "-q", "-m", "sub"]);
    }
    put(stage, ".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n");
    git(bench, &["-c", "advice.addEmbeddedRepo=false", "add", ".gitmodules", "sub"]);
    git(bench, &["commit", "-q", "-m", "with a submodule"]);
    git(bench, &["config", "submodule.recurse", "true"]);
    git(bench, &["config", "submodule.sub.active", "true"]);
}

/// It stands at another commit than the last one, and a file in it has to be compared by content: by the filter.
fn submodule(stage: &Stage) {
    let bench = &stage.bench;
    let old = git(bench, &["-C", "sub", "rev-parse", "HEAD~"]);
    git(bench, &["update-index", "--cacheinfo", &format!("160000,{},sub", old.trim())]);
    git(bench, &["-C", "sub", "reset", "-q", "--hard", "HEAD~"]);
    git(bench, &["-C", "sub", "update-index", "--assume-unchanged", "tracked"]);
    // An index that is older than the files in it says nothing about them.
    let index = fs::File::options().write(true).open(stage.place("sub/.git/index")).unwrap();
    index.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3600)).unwrap();
    let known = fs::read_to_string(stage.place("sub/.git/config")).unwrap();
    let evil = stage.place("evil");
    put(stage, "sub/.git/config", &format!("{known}[filter \"evil\"]\n\tclean = {}\n", evil.display()));
    put(stage, "sub/.git/info/attributes", "* filter=evil\n");
}
