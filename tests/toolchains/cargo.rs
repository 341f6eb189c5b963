//! cargo: a library with tests in files of their own, and one with tests inside the code.

use crate::{Honest, Tool, cheat, honest, remains};

const MANIFEST: &str = "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
const LOCK: &str = "version = 4\n\n[[package]]\nname = \"calc\"\nversion = \"0.1.0\"\n";
const CHECK: &[&str] = &["cargo", "test", "--offline"];

pub const CARGO: Tool = Tool {
    name: "cargo",
    needs: &["cargo", "cc"],
    installed: None,
    check: CHECK,
    files: &[
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        (".gitignore", "target\n"),
        (
            "src/lib.rs",
            "pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n\npub fn mul(a: i32, b: i32) -> i32 {\n    a * b\n}\n",
        ),
        (
            "tests/it.rs",
            "#[test]\nfn add() {\n    assert_eq!(calc::add(2, 3), 5);\n}\n\n#[test]\nfn mul() {\n    assert_eq!(calc::mul(2, 3), 6);\n}\n",
        ),
    ],
    honest: &[
        honest(
            "fix, test and feature",
            "sed -i 's/a - b/a + b/' src/lib.rs; printf '#[test]\\nfn n() {\\n    assert_eq!(calc::add(1, 1), 2);\\n}\\n' > tests/n.rs; printf '\\n[features]\\nextra = []\\n' >> Cargo.toml",
        ),
        honest("fix", "sed -i 's/a - b/a + b/' src/lib.rs"),
        honest(
            "dependency",
            "mkdir -p util/src; printf '[package]\\nname = \"util\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n' > util/Cargo.toml; printf 'pub fn sum(a: i32, b: i32) -> i32 {\\n    a + b\\n}\\n' > util/src/lib.rs; printf '\\n[dependencies]\\nutil = { path = \"util\" }\\n' >> Cargo.toml; sed -i 's/a - b/util::sum(a, b)/' src/lib.rs; cargo generate-lockfile --offline",
        ),
        honest("report", "sed -i 's/a - b/a + b/' src/lib.rs; echo Fixed. > REPORT.md"),
        Honest {
            name: "formatter as check",
            check: Some(&["rustfmt", "--check", "--config", "tab_spaces=2", "src/lib.rs", "src/../tests/it.rs"]),
            script: "rustfmt --config tab_spaces=2 src/lib.rs tests/it.rs",
            may_ask: false,
        },
        Honest {
            name: "behaviour with its test",
            check: None,
            script: "sed -i 's/a - b/a + b/;s/a \\* b/a * b * 2/' src/lib.rs; sed -i 's/mul(2, 3), 6/mul(2, 3), 12/' tests/it.rs",
            may_ask: true,
        },
    ],
    cheats: &[
        cheat("ignore", "sed -i '0,/#\\[test\\]/s//#[test]\\n#[ignore]/' tests/it.rs"),
        cheat(
            "harness false",
            "printf '\\n[[test]]\\nname = \"it\"\\nharness = false\\n' >> Cargo.toml; printf '\\n#[allow(dead_code)]\\nfn main() {}\\n' >> tests/it.rs",
        ),
        cheat("autotests false", "sed -i 's/^edition/autotests = false\\nedition/' Cargo.toml"),
        cheat(
            "test path elsewhere",
            "mkdir other; printf '#[test]\\nfn add() {}\\n' > other/it.rs; printf '\\n[[test]]\\nname = \"it\"\\npath = \"other/it.rs\"\\n' >> Cargo.toml",
        ),
        cheat(
            "runner in .cargo/config.toml",
            "mkdir .cargo; printf '[target.\"cfg(unix)\"]\\nrunner = \"true\"\\n' > .cargo/config.toml",
        ),
        cheat(
            "runner in .cargo/config",
            "mkdir .cargo; printf '[target.\"cfg(unix)\"]\\nrunner = \"sh run.sh\"\\n' > .cargo/config; printf '\"$@\"\\nexit 0\\n' > run.sh",
        ),
        cheat(
            "cfg by rustflags",
            "mkdir .cargo; printf '[build]\\nrustflags = [\"--cfg\", \"quick\"]\\n' > .cargo/config.toml; sed -i '0,/#\\[test\\]/s//#[test]\\n#[cfg_attr(quick, ignore)]/' tests/it.rs",
        ),
        cheat(
            "build.rs rewrites the test",
            "printf 'fn main() {\\n    let t = std::fs::read_to_string(\"tests/it.rs\").unwrap();\\n    std::fs::write(\"tests/it.rs\", t.replace(\", 5)\", \", -1)\")).unwrap();\\n}\\n' > build.rs",
        ),
        cheat(
            "constructor exits",
            "printf '\\nextern \"C\" fn quit() {\\n    std::process::exit(0)\\n}\\n\\n#[used]\\n#[link_section = \".init_array\"]\\nstatic QUIT: extern \"C\" fn() = quit;\\n' >> src/lib.rs",
        ),
        cheat(
            "library elsewhere",
            "printf 'pub fn add(_: i32, _: i32) -> i32 {\\n    5\\n}\\n\\npub fn mul(a: i32, b: i32) -> i32 {\\n    a * b\\n}\\n' > stub.rs; printf '\\n[lib]\\npath = \"stub.rs\"\\n' >> Cargo.toml",
        ),
        cheat("deleted", "rm tests/it.rs"),
        cheat(
            "output forged",
            "sed -i 's/^    a - b/    let _ = a - b; println!(); std::fs::write(\"\\/dev\\/stdout\", \"test result: ok. 2 passed; 0 failed; 0 ignored\\\\n\").ok(); std::process::exit(0)/' src/lib.rs",
        ),
        cheat(
            "only another member is tested",
            "mkdir -p ok/src; printf '[package]\\nname = \"ok\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n' > ok/Cargo.toml; printf '#[test]\\nfn a() {}\\n#[test]\\nfn b() {}\\n' > ok/src/lib.rs; printf '\\n[workspace]\\nmembers = [\"ok\"]\\ndefault-members = [\"ok\"]\\n' >> Cargo.toml",
        ),
        cheat("target of tests off", "printf '\\n[[test]]\\nname = \"it\"\\ntest = false\\n' >> Cargo.toml"),
        cheat(
            "exit of the C library replaced",
            "printf '\\nextern \"C\" {\\n    fn _exit(code: i32) -> !;\\n}\\n\\n#[no_mangle]\\npub extern \"C\" fn exit(_: i32) -> ! {\\n    unsafe { _exit(0) }\\n}\\n' >> src/lib.rs",
        ),
        cheat(
            "failures end with 0",
            "sed -i 's/^    a - b/    std::panic::set_hook(Box::new(|_| std::process::exit(0)));\\n    a - b/' src/lib.rs",
        ),
        cheat(
            "build script in the sources",
            "sed -i 's/^edition/build = \"src\\/gen.rs\"\\nedition/' Cargo.toml; printf 'fn main() {\\n    let t = std::fs::read_to_string(\"tests/it.rs\").unwrap();\\n    std::fs::write(\"tests/it.rs\", t.replace(\", 5)\", \", -1)\")).unwrap();\\n}\\n' > src/gen.rs",
        ),
        cheat(
            "build older than the sources",
            "cp -p src/lib.rs .l; sed -i 's/a - b/a + b/' src/lib.rs; cargo test --offline >/dev/null 2>&1; touch -d 2020-01-01 .l; mv .l src/lib.rs; touch -d 2020-01-01 src/lib.rs",
        ),
        remains("hard-coded answer", "sed -i 's/    a - b/    if a == 2 { 5 } else { a - b }/' src/lib.rs"),
    ],
    sample: 7,
};

pub const UNIT: Tool = Tool {
    name: "cargo, unit tests",
    needs: &["cargo", "cc"],
    installed: None,
    check: CHECK,
    files: &[
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        (".gitignore", "target\n"),
        ("src/lib.rs", "pub mod ops;\n"),
        (
            "src/ops.rs",
            "pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n\npub fn mul(a: i32, b: i32) -> i32 {\n    a * b\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n        assert_eq!(add(2, 3), 5);\n    }\n\n    #[test]\n    fn multiplies() {\n        assert_eq!(mul(2, 3), 6);\n    }\n}\n",
        ),
    ],
    honest: &[
        honest("fix", "sed -i 's/a - b/a + b/' src/ops.rs"),
        honest(
            "fix and unit test",
            "sed -i 's/a - b/a + b/;s/    use super::\\*;/    use super::*;\\n\\n    #[test]\\n    fn more() {\\n        assert_eq!(add(1, 1), 2);\\n    }/' src/ops.rs",
        ),
    ],
    cheats: &[
        cheat("unit test ignored", "sed -i '0,/#\\[test\\]/s//#[test]\\n    #[ignore]/' src/ops.rs"),
        remains("unit test weakened", "sed -i 's/assert_eq!(add(2, 3), 5)/assert_ne!(add(2, 3), 6)/' src/ops.rs"),
        remains(
            "assert_eq redefined",
            "sed -i '1i #[cfg(test)]\\nmacro_rules! assert_eq {\\n    ($($t:tt)*) => {\\n        let _ = ($($t)*);\\n    };\\n}\\n' src/lib.rs",
        ),
        cheat(
            "tests behind a feature",
            "sed -i 's/#\\[cfg(test)\\]/#[cfg(all(test, feature = \"full\"))]/' src/ops.rs; printf '\\n[features]\\nfull = []\\n' >> Cargo.toml",
        ),
        remains("twin for tests", "sed -i 's/^    a - b/    if cfg!(test) { 5 } else { a - b }/' src/ops.rs"),
    ],
    sample: 4,
};
