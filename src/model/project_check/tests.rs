//! Shapes of projects, and the commands that they suggest.

use super::*;

type Files<'a> = &'a [(&'a str, &'a str)];

fn clues(files: Files<'_>) -> Clues {
    let mut clues = Clues::default();
    for (path, text) in files {
        let name = path.rsplit('/').next().unwrap_or(path);
        match KEPT_TEXTS.contains(&name) || is_kept_test(path) {
            true => clues.keep(path, (*text).to_owned()),
            false => clues.name(*path),
        }
    }
    clues
}

fn told(files: Files<'_>) -> Vec<String> {
    infer(&clues(files)).iter().map(Inferred::command).collect()
}

#[track_caller]
fn all(shapes: &[(Files<'_>, &[&str])]) {
    for (files, commands) in shapes {
        assert_eq!(told(files), *commands, "{files:?}");
    }
}

const TEST: &str = "def test_a():\n    assert True\n";
const UNITTEST: &str = "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n";

#[test]
fn what_people_wrote_down_comes_first() {
    all(&[
        (&[("Makefile", "check:\n\ttrue\ntest:\n"), ("Cargo.toml", "")], &["make check"]),
        (&[("Makefile", "test:\n\ttrue\n"), ("package.json", "{}")], &["make test"]),
        (&[("Makefile", "all:\n\ttrue\n"), ("Cargo.toml", "[package]\n")], &["cargo test"]),
        (&[("justfile", "default: test\n\ntest *args:\n  cargo test {{args}}\n"), ("Cargo.toml", "")], &["just test"]),
        (&[("justfile", "@check: lint\n  true\n")], &["just check"]),
        (&[("justfile", "test name:\n  pytest -k {{name}}\n"), ("go.mod", "")], &["go test ./..."]),
        (&[("justfile", "test := \"x\"\n"), ("go.mod", "")], &["go test ./..."]),
        (
            &[("Taskfile.yml", "version: '3'\ntasks:\n  test:\n    cmds: [go test ./...]\n"), ("go.mod", "")],
            &["task test"],
        ),
        (
            &[("Taskfile.yml", "version: '3'\ntasks:\n  test: {cmds: [x], watch: true}\n"), ("go.mod", "")],
            &["go test ./..."],
        ),
        // A check of one runner beats a test of another.
        (&[("Makefile", "test:\n"), ("justfile", "check:\n  true\n")], &["just check"]),
    ]);
}

#[test]
fn a_target_is_a_rule_and_nothing_that_looks_like_one() {
    for text in ["check: build\n", "lint check:\n", "check::\n\ttrue\n", "check : x\n", ".PHONY: check\ncheck:\n"] {
        assert_eq!(told(&[("Makefile", text)]), ["make check"], "{text:?}");
    }
    for text in ["check := x\n", "check ::= x\n", ".PHONY: check\n", "# check: x\n", "\tcheck: x\n", "checks:\n", ""] {
        assert_eq!(told(&[("Makefile", text)]), Vec::<String>::new(), "{text:?}");
    }
}

/// Hooks seldom run the tests.
#[test]
fn the_tests_stand_beside_pre_commit() {
    let hooks = (".pre-commit-config.yaml", "");
    all(&[
        (&[hooks], &["pre-commit run --all-files"]),
        (&[hooks, ("Makefile", "test:\n")], &["pre-commit run --all-files", "make test"]),
        (&[hooks, ("go.mod", "")], &["pre-commit run --all-files", "go test ./..."]),
        (
            &[hooks, ("pyproject.toml", "[tool.pytest.ini_options]\n"), ("uv.lock", "")],
            &["pre-commit run --all-files", "uv run pytest"],
        ),
    ]);
}

#[test]
fn scripts_of_node_are_run_by_the_manager_of_the_project() {
    let scripts =
        r#"{"scripts": {"test": "vitest run", "lint": "eslint .", "typecheck": "tsc --noEmit", "dev": "next dev"}}"#;
    let test = r#"{"scripts": {"test": "node --test"}}"#;
    all(&[
        (&[("package.json", scripts)], &["npm run typecheck", "npm run lint", "npm run test"]),
        (
            &[("package.json", scripts), ("pnpm-lock.yaml", "")],
            &["pnpm run typecheck", "pnpm run lint", "pnpm run test"],
        ),
        (&[("package.json", test), ("yarn.lock", "")], &["yarn run test"]),
        (&[("package.json", test), ("bun.lockb", "")], &["bun run test"]),
        (&[("package.json", test), ("package-lock.json", "")], &["npm run test"]),
        (&[("package.json", r#"{"packageManager": "pnpm@9.1.0", "scripts": {"test": "x"}}"#)], &["pnpm run test"]),
        (&[("package.json", r#"{"packageManager":"yarn@4.0.0","scripts":{"test":"x"}}"#)], &["yarn run test"]),
        (&[("package.json", "{}"), ("bun.lock", ""), ("src/a.test.ts", "")], &["bun test"]),
        (
            &[("package.json", r#"{"scripts": {"type-check": "vue-tsc", "test:unit": "vitest run"}}"#)],
            &["npm run type-check", "npm run test:unit"],
        ),
        (
            &[("package.json", r#"{"scripts": {"lint": "eslint --fix .", "lint:check": "eslint ."}}"#)],
            &["npm run lint:check"],
        ),
    ]);
}

#[test]
fn nothing_that_waits_for_changes_is_suggested() {
    let test = |text: &str| told(&[("package.json", &serde_json::json!({"scripts": {"test": text}}).to_string())]);
    for (script, command) in [
        ("vitest", "npx vitest run"),
        ("vitest -w", "npx vitest run"),
        ("vitest watch", "npx vitest run"),
        ("vitest --coverage", "npx vitest run --coverage"),
        ("vitest run", "npm run test"),
        ("vitest --run", "npm run test"),
        ("react-scripts test", "env CI=true npm run test"),
        ("react-scripts test --watchAll=false", "npm run test"),
        ("cross-env NODE_ENV=test jest", "npm run test"),
        ("jest --watchAll=false", "npm run test"),
        ("ng test --watch=false --browsers=ChromeHeadless", "npm run test"),
        ("karma start --single-run", "npm run test"),
        ("prettier -w . && jest", "npm run test"),
        ("tsc && vitest", "env CI=true npm run test"),
    ] {
        assert_eq!(test(script), [command], "{script}");
    }
    for script in [
        "tsc -w",
        "tsc --watch",
        "jest --watch",
        "jest --watchAll",
        "mocha -w",
        "mocha --watch",
        "ng test",
        "karma start",
        "nodemon --exec mocha",
        "tsc -w & jest",
        "playwright test --ui",
        "cypress open",
        "vite",
        "next dev",
        "",
        "echo ok",
        "exit 0",
        "echo \"Error: no test specified\" && exit 1",
        "claude -p 'run the tests'",
        "npx codex exec test",
    ] {
        assert_eq!(test(script), Vec::<String>::new(), "{script}");
    }
}

#[test]
fn scripts_that_name_one_another_are_followed() {
    let package = |scripts: &str| format!("{{\"scripts\": {scripts}}}");
    let none: [&str; 0] = [];
    assert_eq!(told(&[("package.json", &package(r#"{"test": "npm run unit", "unit": "jest --watch"}"#))]), none);
    assert_eq!(told(&[("package.json", &package(r#"{"test": "pnpm unit", "unit": "jest"}"#))]), ["npm run test"]);
    assert_eq!(told(&[("package.json", &package(r#"{"test": "yarn a", "a": "yarn b", "b": "yarn a"}"#))]), none);
    for broken in ["", "{", "[]", "{\"scripts\": []}", "{\"scripts\": {\"test\": null}}"] {
        assert_eq!(told(&[("package.json", broken), ("go.mod", "")]), ["go test ./..."], "{broken}");
    }
}

#[test]
fn packages_of_a_workspace_are_tested_together() {
    let with = |root: &'static str, script: &'static str, lock: &'static str| {
        told(&[("package.json", root), ("packages/a/package.json", script), (lock, "")])
    };
    let (spaces, test) = (r#"{"workspaces": ["packages/*"]}"#, r#"{"scripts": {"test": "jest"}}"#);
    assert_eq!(with(spaces, test, "package-lock.json"), ["npm run test --workspaces --if-present"]);
    assert_eq!(with(spaces, test, "yarn.lock"), ["yarn workspaces foreach --all run test"]);
    let pnpm = told(&[
        ("package.json", "{}"),
        ("pnpm-workspace.yaml", "packages: ['packages/*']\n"),
        ("pnpm-lock.yaml", ""),
        ("packages/a/package.json", test),
    ]);
    assert_eq!(pnpm, ["pnpm --recursive --if-present run test"]);
    assert_eq!(with(spaces, r#"{"scripts": {"test": "jest --watch"}}"#, "x"), Vec::<String>::new());
    assert_eq!(
        with(r#"{"workspaces": ["packages/*"], "scripts": {"test": "turbo run test"}}"#, test, "x"),
        ["npm run test"]
    );
}

#[test]
fn python_is_tested_by_the_runner_it_names() {
    let (project, pytest) =
        (("pyproject.toml", "[project]\nname = \"x\"\n"), ("pyproject.toml", "[tool.pytest.ini_options]\n"));
    let depends = ("pyproject.toml", "[dependency-groups]\ndev = [\"pytest>=8\"]\n");
    all(&[
        // A project file alone tests nothing.
        (&[project], &[]),
        (&[project, ("setup.cfg", "[metadata]\n")], &[]),
        (&[("pyproject.toml", "# pytest\n[project]\ndependencies = [\"pytest-cov-report\"]\n")], &[]),
        (&[pytest], &["python3 -m pytest"]),
        (&[depends], &["python3 -m pytest"]),
        (&[("setup.cfg", "[tool:pytest]\n")], &["python3 -m pytest"]),
        (&[("pytest.ini", "")], &["python3 -m pytest"]),
        (&[("requirements-dev.txt", "pytest==8.0\n")], &["python3 -m pytest"]),
        (&[project, ("tests/conftest.py", "")], &["python3 -m pytest"]),
        (&[project, ("tests/test_a.py", TEST)], &["python3 -m pytest"]),
        (&[("src/x.py", ""), ("tests/test_a.py", UNITTEST)], &["python3 -m unittest discover -s tests"]),
        (&[("tests/__init__.py", ""), ("tests/test_a.py", UNITTEST)], &["python3 -m unittest discover -s tests -t ."]),
        (&[("test_a.py", UNITTEST)], &["python3 -m unittest discover"]),
        (&[("tests/test_a.py", UNITTEST), ("tests/test_b.py", TEST)], &["python3 -m pytest"]),
        (&[("manage.py", ""), ("shop/tests/test_a.py", UNITTEST)], &["python3 manage.py test"]),
        (&[("manage.py", ""), ("pytest.ini", "")], &["python3 -m pytest"]),
        (&[depends, ("uv.lock", "")], &["uv run pytest"]),
        (&[pytest, ("poetry.lock", "")], &["poetry run pytest"]),
        (&[pytest, ("pdm.lock", "")], &["pdm run pytest"]),
        (&[project, ("uv.lock", ""), ("tests/test_a.py", UNITTEST)], &["uv run python -m unittest discover -s tests"]),
        (&[pytest, ("tox.ini", "[tox]\nenvlist = py311\n")], &["tox"]),
        (&[("tox.ini", "[pytest]\n")], &["python3 -m pytest"]),
        (&[pytest, ("noxfile.py", "")], &["nox"]),
        (&[("pyproject.toml", "[tool.hatch.envs.hatch-test]\n")], &["hatch test"]),
        (&[pytest, (".venv/bin/python", "")], &[".venv/bin/python -m pytest"]),
    ]);
}

#[test]
fn each_kind_of_project_has_its_command() {
    all(&[
        (&[("Cargo.toml", "[package]\n")], &["cargo test"]),
        (
            &[("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n"), ("a/Cargo.toml", "[package]\n")],
            &["cargo test --workspace"],
        ),
        (&[("go.mod", "")], &["go test ./..."]),
        (&[("pom.xml", "")], &["mvn -B test"]),
        (&[("pom.xml", ""), ("mvnw", "")], &["./mvnw -B test"]),
        (&[("build.gradle.kts", ""), ("gradlew", "")], &["./gradlew --no-daemon check"]),
        (&[("settings.gradle", "")], &["gradle --no-daemon check"]),
        (&[("Gemfile", ""), (".rspec", "")], &["bundle exec rspec"]),
        (&[("spec/a_spec.rb", "")], &["rspec"]),
        (&[("Gemfile", ""), ("bin/rails", ""), ("test/models/a_test.rb", "")], &["bin/rails test"]),
        (&[("Gemfile", ""), ("Rakefile", "Rake::TestTask.new\n")], &["bundle exec rake test"]),
        (&[("Rakefile", "task default: :spec\n")], &["rake"]),
        (&[("Gemfile", "")], &[]),
        (&[("composer.json", r#"{"scripts": {"test": ["@php artisan test"]}}"#)], &["composer run-script test"]),
        (&[("composer.json", r#"{"require-dev": {"phpunit/phpunit": "^11"}}"#)], &["vendor/bin/phpunit"]),
        (&[("composer.json", r#"{"require-dev": {"pestphp/pest": "^3"}}"#)], &["vendor/bin/pest"]),
        (&[("composer.json", "{}"), ("phpunit.xml.dist", "")], &["vendor/bin/phpunit"]),
        (&[("composer.json", "{}")], &[]),
        (&[("App.sln", ""), ("src/App.csproj", "")], &["dotnet test"]),
        (&[("mix.exs", "")], &["mix test"]),
        (&[("deno.json", r#"{"tasks": {"test": "deno test -A"}}"#)], &["deno task test"]),
        (&[("deno.json", "{}"), ("src/a_test.ts", "")], &["deno test"]),
        (&[("deno.json", r#"{"tasks": {"test": "deno test --watch"}}"#)], &[]),
        (&[("Package.swift", "")], &["swift test"]),
        (&[("pubspec.yaml", "name: x\n"), ("test/a_test.dart", "")], &["dart test"]),
        (&[("build.zig", "const t = b.step(\"test\", \"x\");\n")], &["zig build test"]),
        // Nothing that is known: a person has to say it.
        (&[("README.md", ""), ("src/main.c", "")], &[]),
        (&[], &[]),
    ]);
}

#[test]
fn each_part_is_checked_in_its_folder() {
    let (python, node) = ("[tool.pytest.ini_options]\n", r#"{"scripts": {"lint": "eslint .", "test": "vitest run"}}"#);
    all(&[
        (
            &[("backend/pyproject.toml", python), ("frontend/package.json", node), ("frontend/pnpm-lock.yaml", "")],
            &["cd backend && python3 -m pytest", "cd frontend && pnpm run lint", "cd frontend && pnpm run test"],
        ),
        (
            &[("backend/pyproject.toml", "[project]\n"), ("backend/tests/test_a.py", TEST), ("uv.lock", "")],
            &["cd backend && uv run pytest"],
        ),
        (
            &[("api/go.mod", ""), ("web/package.json", node), ("docs/package.json", node)],
            &["cd api && go test ./...", "cd web && npm run lint", "cd web && npm run test"],
        ),
        (&[("server/Makefile", "check:\n"), ("server/go.mod", "")], &["cd server && make check"]),
        // The manager's lock lies above.
        (
            &[("pnpm-lock.yaml", ""), ("app/package.json", node)],
            &["cd app && pnpm run lint", "cd app && pnpm run test"],
        ),
        // What the root checks, it checks for its parts of the same kind.
        (
            &[("package.json", node), ("app/package.json", node), ("api/go.mod", "")],
            &["npm run lint", "npm run test", "cd api && go test ./..."],
        ),
        (&[("Makefile", "check:\n"), ("api/go.mod", "")], &["make check"]),
        // A folder whose name a shell would read is none of ours.
        (&[("a b/go.mod", ""), ("x;y/go.mod", ""), ("-c/go.mod", "")], &[]),
    ]);
    let parts = infer(&clues(&[("backend/go.mod", ""), ("web/package.json", node)]));
    let ids: Vec<&str> = parts.iter().map(|part| part.id.as_str()).collect();
    assert_eq!(ids, ["backend-test", "web-lint", "web-test"]);
    assert_eq!(parts[0].argv, ["sh", "-c", "cd backend && go test ./..."]);
    assert_eq!(parts[0].from, "backend/go.mod");
}
