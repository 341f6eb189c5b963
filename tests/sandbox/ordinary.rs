//! What honest work needs goes on.

use nightloop::tool::process::{Access, End};

use super::stage::{Case, Stage};

fn works(case: &Case) {
    let stage = Stage::set();
    let outcome = stage.perform(case, None);
    let said = String::from_utf8_lossy(&outcome.stdout.bytes).into_owned();
    let complained = String::from_utf8_lossy(&outcome.stderr.bytes).into_owned();
    assert_eq!(outcome.end, End::Exited(0), "{}: {said}{complained}", case.name);
}

#[test]
fn daily_work() {
    for (name, script) in [
        (
            "files",
            "mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && cp -r a e && ln a/d a/hard && ln -s d a/soft && rm -r e",
        ),
        ("modes", "chmod 755 mine && touch -d 2001-01-01 mine && test -x mine"),
        ("odd names", "touch $'new\\nline' ' space ' $'\\x01' -- '-dash' && ls -A >/dev/null && rm -r -- *"),
        (
            "temporary files",
            "f=$(mktemp) && echo x > $f && case $f in $TMPDIR/*) ;; *) exit 1;; esac && d=$(mktemp -d) && mkdir $d/e",
        ),
        (
            "here documents and pipes",
            "cat <<E | sort | uniq -c > out\nb\na\nE\ntest -s out && exec 3<>/dev/null && echo x >&3",
        ),
        ("processes", "(exit 3); test $? = 3; sleep 0.01 & wait $! && kill -0 $$ && sh -c 'kill -9 $$'; test $? = 137"),
        ("own process group", "set -m; sleep 30 & kill %1; wait; true"),
        (
            "git",
            "git init -q . && git add -A && git commit -qm first && git log --oneline | grep first && git status -s",
        ),
        (
            "reading the system",
            "cat /etc/passwd /proc/self/status /proc/cpuinfo /proc/meminfo >/dev/null && ls /usr/bin >/dev/null",
        ),
        ("reading at home", "cat $HOME/plain/file $HOME/.gitconfig && test -r $HOME/.bashrc"),
        (
            "devices",
            "head -c 8 /dev/urandom >/dev/null && head -c 8 /dev/zero >/dev/null && echo x > /dev/null && echo x >/dev/stderr",
        ),
        ("archives", "tar czf a.tgz mine && mkdir x && tar xzf a.tgz -C x && cmp mine x/mine"),
        ("many processes", "for i in $(seq 200); do (sleep 0.3) & done; wait"),
        ("locks", "command -v flock >/dev/null || exit 0; flock lock true"),
        ("fifos", "mkfifo p; (echo x > p) & read l < p; test $l = x"),
    ] {
        works(&Case::new(name, script));
    }
}

#[test]
fn programs_run() {
    for (name, program, script) in [
        ("perl", "perl", "perl -e 'open F,\">f\"; print F 1; close F; exit !(-s \"f\")'"),
        (
            "python",
            "python3",
            "python3 -c 'import tempfile,subprocess,multiprocessing as m;m.Lock();tempfile.TemporaryFile();subprocess.check_call([\"true\"])'",
        ),
        ("compiler", "cc", "echo 'int main(){return 0;}' > m.c && cc -o m m.c && ./m"),
        ("sqlite", "sqlite3", "sqlite3 db 'create table t(x); insert into t values(1)'"),
        ("make", "make", "printf 'all:\\n\\ttouch made\\n' > Makefile && make -s && test -f made"),
        ("bash job in a pipe", "bash", "bash -c 'cat <(echo x) > y; test -s y'"),
    ] {
        works(&Case::new(name, format!("command -v {program} >/dev/null || exit 0; {script}")));
    }
}

#[test]
fn a_reader_can_read_and_use_its_temporary_folder() {
    let case = Case::new("reader", "cat mine && grep -r mine . >/dev/null && echo x > $TMPDIR/x && cat $TMPDIR/x");
    works(&Case { access: Access::ReadOnly, ..case });
}

#[test]
fn caches_are_written() {
    let stage = Stage::set();
    std::fs::create_dir_all(stage.path("home/.npm/_cacache")).unwrap();
    let outcome = stage.perform(&Case::new("cache", "echo x > $HOME/.npm/_cacache/x"), None);
    assert_eq!(outcome.end, End::Exited(0));
    assert!(stage.folder().join("home/.npm/_cacache/x").exists());
}

/// The tool itself, as an agent calls it.
#[test]
fn the_bash_tool_is_confined() {
    use nightloop::tool::registry::{self, Limits, ToolContext};
    use nightloop::tool::sandbox::Confinement;
    let stage = Stage::set();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for access in [Access::ReadOnly, Access::ReadWrite] {
        let policy = stage.policy(&Case { access, ..Case::new("bash", "") });
        let mut context = ToolContext {
            workspace: stage.path("ws"),
            access,
            limits: Limits::default(),
            run_marker: stage.marker.clone(),
            cancel: tokio_util::sync::CancellationToken::new(),
            protected: Vec::new(),
            within: None,
            confinement: Some(std::sync::Arc::new(Confinement::build(policy).unwrap())),
            outputs: std::collections::BTreeMap::new(),
        };
        let victim = stage.path("outside/victim");
        let outside = serde_json::json!({"command": format!("echo x > {}", victim.display())});
        let outcome = runtime.block_on(registry::run(&context, "bash", &outside));
        assert!(outcome.is_error && outcome.text.contains("victim"), "{}", outcome.text);
        let inside = serde_json::json!({"command": "echo x > inside"});
        let outcome = runtime.block_on(registry::run(&context, "bash", &inside));
        assert_eq!(outcome.exit_code == Some(0), access == Access::ReadWrite, "{}", outcome.text);
        context.confinement = None;
        let outcome = runtime.block_on(registry::run(&context, "bash", &inside));
        let there = !outcome.text.contains("not found");
        assert_eq!(there, access == Access::ReadWrite, "a reader has a shell that nobody holds: {}", outcome.text);
    }
    assert_eq!(std::fs::read_to_string(stage.path("outside/victim")).unwrap(), "victim\n");
}
