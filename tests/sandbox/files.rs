//! Writing where nothing may be written, in every way we could think of.

use super::stage::{Case, SYSTEM};

/// Ways to change the file or folder outside. The stage sees the change; success need not be said.
const WAYS: &[(&str, &str)] = &[
    ("redirect", "echo x > @OUTSIDE@/victim"),
    ("append", "echo x >> @OUTSIDE@/victim"),
    ("empty", ": > @OUTSIDE@/victim"),
    ("new file", "echo x > @OUTSIDE@/new"),
    ("cp over", "cp mine @OUTSIDE@/victim"),
    ("cp new", "cp mine @OUTSIDE@/new"),
    ("cp folder", "cp -r sub @OUTSIDE@/newdir"),
    ("mv over", "mv mine @OUTSIDE@/victim"),
    ("mv new", "mv mine @OUTSIDE@/new"),
    ("mv folder", "mv sub @OUTSIDE@/dir2"),
    ("mv away", "mv @OUTSIDE@/victim ./taken"),
    ("mv folder away", "mv @OUTSIDE@/dir ./taken"),
    ("mv within", "mv @OUTSIDE@/victim @OUTSIDE@/renamed"),
    ("tee", "echo x | tee @OUTSIDE@/victim"),
    ("tee append", "echo x | tee -a @OUTSIDE@/victim"),
    ("dd", "dd if=mine of=@OUTSIDE@/victim"),
    ("dd in place", "dd if=mine of=@OUTSIDE@/victim conv=notrunc"),
    ("sed in place", "sed -i s/victim/x/ @OUTSIDE@/victim"),
    ("perl in place", "perl -pi -e s/victim/x/ @OUTSIDE@/victim"),
    ("truncate", "truncate -s 0 @OUTSIDE@/victim"),
    ("truncate longer", "truncate -s 1M @OUTSIDE@/victim"),
    ("fallocate", "fallocate -l 1M @OUTSIDE@/victim"),
    ("read and write", "exec 3<>@OUTSIDE@/victim; echo x >&3"),
    ("symlink to file", "ln -s @OUTSIDE@/victim l; echo x > l"),
    ("symlink to folder", "ln -s @OUTSIDE@ d; echo x > d/new"),
    ("symlink chain", "ln -s @OUTSIDE@ a; ln -s a b; ln -s b/victim c; echo x > c"),
    ("symlink to nothing", "ln -s @OUTSIDE@/new l; echo x > l"),
    ("hard link in", "ln @OUTSIDE@/victim h && echo x > h"),
    ("hard link out", "ln mine @OUTSIDE@/h"),
    ("link by handle", "exec 3<@OUTSIDE@/victim; ln -L /proc/self/fd/3 h && echo x > h"),
    ("reopen by handle", "exec 3<@OUTSIDE@/victim; echo x > /proc/self/fd/3"),
    ("symlink out", "ln -s mine @OUTSIDE@/l"),
    ("rm", "rm -f @OUTSIDE@/victim"),
    ("rm -r", "rm -rf @OUTSIDE@/dir"),
    ("rmdir", "rm -f @OUTSIDE@/dir/inner; rmdir @OUTSIDE@/dir"),
    ("unlink", "unlink @OUTSIDE@/victim"),
    ("find -delete", "find @OUTSIDE@ -delete"),
    ("mkdir", "mkdir @OUTSIDE@/new"),
    ("mkfifo", "mkfifo @OUTSIDE@/p"),
    ("mknod", "mknod @OUTSIDE@/n c 1 3"),
    ("touch new", "touch @OUTSIDE@/new"),
    ("touch old", "touch @OUTSIDE@/victim"),
    ("touch date", "touch -d 2001-01-01 @OUTSIDE@/victim"),
    ("touch folder", "touch -d 2001-01-01 @OUTSIDE@/dir"),
    ("chmod open", "chmod 777 @OUTSIDE@/victim"),
    ("chmod shut", "chmod 000 @OUTSIDE@/victim"),
    ("chmod folder", "chmod 777 @OUTSIDE@"),
    ("chmod by handle", "exec 3<@OUTSIDE@/victim; chmod 777 /proc/self/fd/3"),
    ("chmod by link", "ln -s @OUTSIDE@/victim l; chmod 777 l"),
    ("chmod by cwd", "cd @OUTSIDE@ && chmod 777 victim"),
    ("chown", "chown 1:1 @OUTSIDE@/victim"),
    ("chgrp", "chgrp 1 @OUTSIDE@/victim"),
    ("chattr", "chattr +i @OUTSIDE@/victim"),
    ("install", "install -m 755 mine @OUTSIDE@/new"),
    ("tar", "tar cf t.tar mine; tar xf t.tar -C @OUTSIDE@"),
    ("tar absolute", "tar cPf t.tar --transform s,mine,@OUTSIDE@/new, mine; tar xPf t.tar"),
    ("cpio", "echo mine | cpio -p @OUTSIDE@"),
    ("git init", "git init @OUTSIDE@"),
    ("git clone", "git init -q r; git clone -q r @OUTSIDE@/r"),
    ("sqlite", "sqlite3 @OUTSIDE@/db 'create table t(x)'"),
    ("sort -o", "sort mine -o @OUTSIDE@/victim"),
    ("patch", "printf -- '--- a\\n+++ b\\n@@ -1 +1 @@\\n-victim\\n+x\\n' | patch @OUTSIDE@/victim"),
    ("dotdot", "echo x > ../outside/victim"),
    ("dotdot from cwd", "cd sub; echo x > ../../outside/victim"),
    ("through proc cwd", "echo x > /proc/self/cwd/../outside/victim"),
    ("through proc root", "echo x > /proc/self/root@OUTSIDE@/victim"),
    ("through task root", "echo x > /proc/thread-self/root@OUTSIDE@/victim"),
    ("through parent's cwd", "echo x > /proc/$PPID/cwd/x; echo x > /proc/$PPID/root@OUTSIDE@/victim"),
    ("cd first", "cd @OUTSIDE@; echo x > victim; rm victim; touch new"),
    ("exchange", "@HELPER@ do=exchange:@WS@/mine:@OUTSIDE@/victim"),
    ("background", "(sleep 0.05; echo x > @OUTSIDE@/victim) & wait"),
    ("heredoc", "cat > @OUTSIDE@/victim <<E\nx\nE"),
    ("awk", "awk 'BEGIN{print \"x\" > \"@OUTSIDE@/victim\"}'"),
    ("own shell", "sh -c 'sh -c \"echo x > @OUTSIDE@/victim\"'"),
    ("script of its own", "echo '#!/bin/sh\necho x > @OUTSIDE@/victim' > s; chmod +x s; ./s"),
    ("noclobber", "set +C; echo x >| @OUTSIDE@/victim"),
    ("folder of another name", "ln -s @OUTSIDE@ sub/d; cd sub/d && echo x > victim"),
    ("bind mount", "mkdir m; mount --bind @OUTSIDE@ m && echo x > m/victim"),
    ("user namespace", "unshare -rm sh -c 'mount --bind @OUTSIDE@ sub && echo x > sub/victim'"),
    ("chroot", "chroot @OUTSIDE@ /bin/true; unshare -r chroot / sh -c 'echo x > @OUTSIDE@/victim'"),
    ("remount", "mount -o remount,rw /; echo x > @OUTSIDE@/victim"),
];

/// Short ways, tried on everything that matters. `@T@` is the file.
const SHORT: &[(&str, &str)] = &[
    ("write", "echo x > @T@"),
    ("append", "echo x >> @T@"),
    ("remove", "rm -f @T@"),
    ("replace", "mv mine @T@"),
    ("by symlink", "ln -s @T@ l; echo x > l"),
    ("mode", "chmod 666 @T@"),
];

const PRECIOUS: &[(&str, &str)] = &[
    (".bashrc", "@HOME@/.bashrc"),
    (".profile", "@HOME@/.profile"),
    (".zshrc", "@HOME@/.zshrc"),
    (".gitconfig", "@HOME@/.gitconfig"),
    ("a plain file at home", "@HOME@/plain/file"),
    ("an authorised key", "@HOME@/.ssh/authorized_keys"),
    ("the journal", "@STATE@/runs/R/journal/0.jsonl"),
    ("the genesis", "@STATE@/runs/R/genesis.json"),
    ("another repository's config", "@OTHER@/.git/config"),
    ("another repository's hook", "@OTHER@/.git/hooks/pre-commit"),
    ("another repository's head", "@OTHER@/.git/HEAD"),
];

pub fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> =
        WAYS.iter().map(|(name, script)| Case::new(format!("outside: {name}"), *script)).collect();
    for (what, target) in PRECIOUS {
        for (way, script) in SHORT {
            cases.push(Case::new(format!("{way}: {what}"), script.replace("@T@", target)));
        }
    }
    for place in SYSTEM {
        let script = format!("echo x > {place}/nightloop-test-@TOKEN@; mkdir -p {place}/nightloop-test-@TOKEN@");
        cases.push(Case::new(format!("system: {place}"), script));
    }
    let through = "&& echo GOT-THROUGH";
    for (name, script) in [
        ("write", "echo x > mine"),
        ("new file", "echo x > new"),
        ("remove", "rm -f mine"),
        ("mkdir", "mkdir new"),
        ("mode", "chmod 777 mine"),
        ("time", "touch -d 2001-01-01 mine"),
        ("by symlink", "ln -s @WS@/mine $TMPDIR/l && echo x > $TMPDIR/l"),
        ("rename", "mv mine mine2"),
        ("hard link", "ln mine $TMPDIR/h && echo x > $TMPDIR/h"),
        ("git", "git init -q ."),
    ] {
        let script = format!("{script} {through}");
        cases.push(Case::new(format!("read-only workspace: {name}"), script).read_only());
    }
    cases.push(Case::new(
        "symlink race",
        "(for i in $(seq 400); do ln -sfn @OUTSIDE@ r; ln -sfn @WS@/sub r; done) & \
         for i in $(seq 400); do echo x > r/victim; done 2>/dev/null; wait",
    ));
    cases.push(Case::new(
        "folder race",
        "(for i in $(seq 300); do mkdir q; rmdir q; ln -s @OUTSIDE@ q; rm q; done) 2>/dev/null & \
         for i in $(seq 300); do echo x > q/victim; done 2>/dev/null; wait",
    ));
    cases
}
