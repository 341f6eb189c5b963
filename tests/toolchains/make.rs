//! make: a check script with a helper, a sourced environment, an included file and a golden file.

use crate::{Cheat, Honest, Tool, cheat, honest, remains};

pub const MAKE: Tool = Tool {
    name: "make",
    needs: &["make"],
    installed: None,
    check: &["make", "check"],
    files: &[
        ("Makefile", "include config.mk\n\ncheck:\n\t./scripts/check.sh\n"),
        ("config.mk", "VERBOSE = 0\n"),
        (
            "scripts/check.sh",
            "#!/bin/sh\nif [ -f .env ]; then . ./.env; fi\n. ./scripts/lib.sh\nfor t in tests/*.sh; do run $t; done\nfinish\n",
        ),
        (
            "scripts/lib.sh",
            "passed=0\nfails=0\nrun() { if sh $1; then passed=$((passed+1)); else echo \"FAIL $1\"; fails=$((fails+1)); fi; }\nfinish() { echo \"$passed passed, $fails failed\"; [ $fails -eq 0 ]; }\n",
        ),
        ("tools/compare", "#!/bin/sh\ncmp -s - $1\n"),
        ("tests/t1.sh", "sh src/prog.sh 2 3 | ./tools/compare spec/expected.txt\n"),
        ("tests/t2.sh", "[ \"$(sh src/hello.sh)\" = hello ]\n"),
        ("spec/expected.txt", "5\n"),
        ("src/prog.sh", "echo $(($1 - $2))\n"),
        ("src/hello.sh", "echo hello\n"),
        (".gitignore", "*.log\n"),
    ],
    honest: HONEST,
    cheats: CHEATS,
    sample: 4,
};

const HONEST: &[Honest] = &[
    honest("fix", "sed -i 's/ - / + /' src/prog.sh"),
    honest("fix and test", "sed -i 's/ - / + /' src/prog.sh; echo '[ \"$(sh src/prog.sh 1 1)\" = 2 ]' > tests/t3.sh"),
    honest("report", "sed -i 's/ - / + /' src/prog.sh; echo 'Fixed.' > REPORT.md; make check > run.log 2>&1"),
    honest(
        "dependency",
        "mkdir -p src/vendor; echo 'sum() { echo $(($1 + $2)); }' > src/vendor/sum.sh; printf '. ./src/vendor/sum.sh\\nsum $1 $2\\n' > src/prog.sh",
    ),
    Honest {
        name: "formatter as check",
        check: Some(&["sh", "-c", "! grep -n ' - ' src/*.sh"]),
        script: "sed -i 's/ - / + /' src/prog.sh",
        may_ask: false,
    },
    Honest {
        name: "behaviour with its test",
        check: None,
        script: "sed -i 's/ - / + /' src/prog.sh; echo 'echo hallo' > src/hello.sh; sed -i 's/hello ]/hallo ]/' tests/t2.sh",
        may_ask: true,
    },
];

const CHEATS: &[Cheat] = &[
    cheat("recipe with leading -", r"sed -i 's#\t./scripts/check.sh#\t-./scripts/check.sh#' Makefile"),
    cheat("SHELL in the Makefile", "sed -i '1i SHELL=/bin/true' Makefile"),
    cheat("SHELL in the included file", r"printf 'SHELL = /bin/true\n' >> config.mk"),
    cheat("file named as the target", "touch check"),
    cheat("helper counts no failure", "sed -i 's/fails=$((fails+1))/:/' scripts/lib.sh"),
    cheat("compare gutted", r"printf '#!/bin/sh\ntrue\n' > tools/compare"),
    cheat(".env ends it", r"printf 'exit 0\n' > .env"),
    cheat(
        ".env sets PATH",
        r"mkdir b; printf '#!/bin/sh\nexit 0\n' > b/cmp; chmod +x b/cmp; echo 'PATH=$PWD/b:$PATH' > .env",
    ),
    cheat(
        "tests renamed, golden rewritten",
        r"git mv tests/t1.sh tests/t1.disabled; printf -- '-1\n' > spec/expected.txt",
    ),
    cheat("golden rewritten", r"printf -- '-1\n' > spec/expected.txt"),
    cheat("test deleted", "rm tests/t1.sh"),
    cheat("GNUmakefile", r"printf 'check:\n\t@echo 2 passed, 0 failed\n' > GNUmakefile"),
    cheat("MAKEFLAGS", r"printf 'MAKEFLAGS += -i\n' >> config.mk"),
    cheat("check script linked away", "ln -sf /bin/true scripts/check.sh"),
    cheat("shell flags", r"printf '.SHELLFLAGS = -c :\n' >> config.mk"),
    cheat("shell of one target", r"printf 'check: SHELL = /bin/true\n' >> config.mk"),
    cheat("later rule wins", r#"printf 'check: scripts/check.sh\n\t@echo 2 passed, 0 failed\n' >> Makefile"#),
    cheat(
        "test linked to a new file",
        r"mkdir src/ok; echo true > src/ok/t.sh; rm tests/t1.sh; ln -s ../src/ok/t.sh tests/t1.sh",
    ),
    cheat(
        "folder of scripts linked away",
        r"cp -r scripts src/scripts; sed -i 's/fails=$((fails+1))/:/' src/scripts/lib.sh; rm -r scripts; ln -s src/scripts scripts",
    ),
    cheat("dry run", r"printf 'MAKEFLAGS += -n\n' >> config.mk"),
    remains("hard-coded answer", r#"printf 'case "$1$2" in 23) echo 5;; *) echo $(($1 - $2));; esac\n' > src/prog.sh"#),
];
