//! Kinds of projects that one command checks.

use super::node::json;
use super::scripts::{Script, usable};
use super::{Clues, Inferred};

fn one(id: &str, argv: &[&str], from: &str) -> Vec<Inferred> {
    vec![Inferred::new(id, argv, from)]
}

pub fn rust(clues: &Clues) -> Vec<Inferred> {
    let Some(text) = clues.text("Cargo.toml") else { return Vec::new() };
    let many = text.lines().any(|line| line.trim() == "[workspace]");
    one("test", if many { &["cargo", "test", "--workspace"] } else { &["cargo", "test"] }, "Cargo.toml")
}

pub fn go(clues: &Clues) -> Vec<Inferred> {
    if clues.has("go.mod") { one("test", &["go", "test", "./..."], "go.mod") } else { Vec::new() }
}

/// Through the wrapper that the project brings, if it does.
pub fn jvm(clues: &Clues) -> Vec<Inferred> {
    let by = |wrapper: &'static str, program: &'static str| {
        if clues.has(wrapper) { ["./", wrapper].concat() } else { program.to_owned() }
    };
    if clues.has("pom.xml") {
        return one("test", &[&by("mvnw", "mvn"), "-B", "test"], "pom.xml");
    }
    let built = clues.first(&["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"]);
    built.map_or_else(Vec::new, |from| one("check", &[&by("gradlew", "gradle"), "--no-daemon", "check"], from))
}

pub fn ruby(clues: &Clues) -> Vec<Inferred> {
    let through: &[&str] = if clues.has("Gemfile") { &["bundle", "exec"] } else { &[] };
    let run = |words: &[&str], from: &str| one("test", &[through, words].concat(), from);
    let specs = clues.any(|path| path.starts_with("spec/") && path.ends_with("_spec.rb"));
    if clues.has(".rspec") || specs {
        return run(&["rspec"], if clues.has(".rspec") { ".rspec" } else { "spec" });
    }
    let tests = clues.any(|path| path.starts_with("test/") && path.ends_with("_test.rb"));
    if clues.has("bin/rails") && tests {
        return one("test", &["bin/rails", "test"], "bin/rails");
    }
    match clues.text("Rakefile") {
        Some(text) if text.contains("TestTask") || text.contains("task :test") || text.contains("task test") => {
            run(&["rake", "test"], "Rakefile")
        }
        Some(text) if text.contains("task :default") || text.contains("task default") => run(&["rake"], "Rakefile"),
        _ => Vec::new(),
    }
}

pub fn php(clues: &Clues) -> Vec<Inferred> {
    let composer = json(clues, "composer.json").unwrap_or_default();
    for name in ["check", "test"] {
        let script = match &composer["scripts"][name] {
            serde_json::Value::Array(lines) => {
                lines.iter().filter_map(|line| line.as_str()).collect::<Vec<_>>().join("; ")
            }
            text => text.as_str().unwrap_or_default().to_owned(),
        };
        if usable(&serde_json::json!({ name: script }), name) == Some(Script::AsIs) {
            return one(name, &["composer", "run-script", name], "composer.json");
        }
    }
    let needs = |package: &str| !composer["require-dev"][package].is_null();
    if needs("pestphp/pest") {
        return one("test", &["vendor/bin/pest"], "composer.json");
    }
    let settings = clues.first(&["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"]);
    let from = settings.or_else(|| needs("phpunit/phpunit").then_some("composer.json"));
    from.map_or_else(Vec::new, |from| one("test", &["vendor/bin/phpunit"], from))
}

pub fn dotnet(clues: &Clues) -> Vec<Inferred> {
    let here = |path: &str| {
        !path.contains('/') && [".sln", ".slnx", ".csproj", ".fsproj", ".vbproj"].iter().any(|end| path.ends_with(end))
    };
    if clues.any(here) { one("test", &["dotnet", "test"], "the .NET project") } else { Vec::new() }
}

pub fn elixir(clues: &Clues) -> Vec<Inferred> {
    if clues.has("mix.exs") { one("test", &["mix", "test"], "mix.exs") } else { Vec::new() }
}

pub fn swift(clues: &Clues) -> Vec<Inferred> {
    if clues.has("Package.swift") { one("test", &["swift", "test"], "Package.swift") } else { Vec::new() }
}

pub fn dart(clues: &Clues) -> Vec<Inferred> {
    let Some(text) = clues.text("pubspec.yaml") else { return Vec::new() };
    let tests = clues.any(|path| path.starts_with("test/") && path.ends_with("_test.dart"));
    let program = if text.contains("sdk: flutter") { "flutter" } else { "dart" };
    if tests { one("test", &[program, "test"], "pubspec.yaml") } else { Vec::new() }
}

pub fn zig(clues: &Clues) -> Vec<Inferred> {
    let steps = clues.text("build.zig").is_some_and(|text| text.contains("\"test\""));
    if steps { one("test", &["zig", "build", "test"], "build.zig") } else { Vec::new() }
}
