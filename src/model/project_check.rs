//! The commands that show whether a project is sound, told from the files that lie in it.
//!
//! Role: which commands a project's own files suggest. Not its role: reading them, running them, deciding that they are
//! right: that is for a person, so every command says where it comes from.
//! Invariants: what people wrote down as the check (a target of make, just or task) comes before what is told from the
//! kind of project; nothing that starts an agent or waits for changes is ever suggested; a file that cannot be read as
//! what it claims to be suggests nothing.

mod clues;
mod node;
mod others;
mod python;
mod runners;
mod scripts;

pub use clues::{Clues, KEPT_TEXTS, is_kept_test};

/// Parts of a project that get checks of their own, at most.
const MOST_PARTS: usize = 6;
/// Folders with projects in them that are no part of this one.
const NO_PARTS: [&str; 18] = [
    "docs",
    "doc",
    "examples",
    "example",
    "samples",
    "fixtures",
    "tests",
    "test",
    "spec",
    "scripts",
    "tools",
    "e2e",
    "bench",
    "benches",
    "benchmarks",
    "vendor",
    "third_party",
    "website",
];

/// A command that was not declared but told from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inferred {
    /// For the criterion.
    pub id: String,
    pub argv: Vec<String>,
    /// The file it comes from.
    pub from: String,
}

impl Inferred {
    fn new(id: &str, argv: &[&str], from: &str) -> Self {
        Self { id: id.to_owned(), argv: argv.iter().map(|word| (*word).to_owned()).collect(), from: from.to_owned() }
    }

    /// The command in one line.
    pub fn command(&self) -> String {
        match self.argv.as_slice() {
            [sh, option, text] if sh == "sh" && option == "-c" => text.clone(),
            argv => argv.join(" "),
        }
    }

    pub fn is(&self, argv: &[String]) -> bool {
        self.argv == argv
    }

    /// The same in a folder of the project.
    fn within(self, folder: &str) -> Self {
        let text = format!("cd {folder} && {}", self.argv.join(" "));
        Self {
            id: format!("{}-{}", folder.replace(['/', '.'], "-"), self.id),
            argv: vec!["sh".to_owned(), "-c".to_owned(), text],
            from: format!("{folder}/{}", self.from),
        }
    }
}

/// The commands that the clues suggest; none where they suggest nothing.
pub fn infer(clues: &Clues) -> Vec<Inferred> {
    let pre_commit = clues
        .has(".pre-commit-config.yaml")
        .then(|| Inferred::new("pre-commit", &["pre-commit", "run", "--all-files"], ".pre-commit-config.yaml"));
    // What it runs seldom are the tests, so they are looked for beside it.
    pre_commit.into_iter().chain(tests(clues)).collect()
}

fn tests(clues: &Clues) -> Vec<Inferred> {
    if let Some(written) = runners::target(clues) {
        return vec![written];
    }
    let here = of_kind(clues);
    let kinds: Vec<Kind> = here.iter().map(|(kind, _)| *kind).collect();
    let mut found: Vec<Inferred> = here.into_iter().flat_map(|(_, checks)| checks).collect();
    for folder in parts(clues) {
        let inside = clues.within(&folder);
        let checks: Vec<Inferred> = match runners::target(&inside) {
            Some(written) if kinds.is_empty() => vec![written],
            // What the project itself checks covers its parts of the same kind.
            _ => of_kind(&inside).into_iter().filter(|(kind, _)| !kinds.contains(kind)).flat_map(|(_, c)| c).collect(),
        };
        found.extend(checks.into_iter().map(|check| check.within(&folder)));
    }
    found
}

/// A kind of project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rust,
    Node,
    Deno,
    Python,
    Go,
    Jvm,
    Ruby,
    Php,
    Dotnet,
    Elixir,
    Swift,
    Dart,
    Zig,
}

/// What each kind of project that this folder is suggests.
fn of_kind(clues: &Clues) -> Vec<(Kind, Vec<Inferred>)> {
    type Infer = fn(&Clues) -> Vec<Inferred>;
    let of: [(Kind, Infer); 13] = [
        (Kind::Rust, others::rust),
        (Kind::Node, node::checks),
        (Kind::Deno, node::deno),
        (Kind::Python, python::checks),
        (Kind::Go, others::go),
        (Kind::Jvm, others::jvm),
        (Kind::Ruby, others::ruby),
        (Kind::Php, others::php),
        (Kind::Dotnet, others::dotnet),
        (Kind::Elixir, others::elixir),
        (Kind::Swift, others::swift),
        (Kind::Dart, others::dart),
        (Kind::Zig, others::zig),
    ];
    of.into_iter().map(|(kind, of)| (kind, of(clues))).filter(|(_, checks)| !checks.is_empty()).collect()
}

/// Folders that hold a project of their own.
fn parts(clues: &Clues) -> Vec<String> {
    let plain = |name: &str| {
        name.len() <= 40
            && !name.starts_with(['.', '-', '_'])
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    let is_part = |folder: &&str| plain(folder) && !NO_PARTS.contains(folder);
    clues.folders().into_iter().filter(is_part).map(str::to_owned).take(MOST_PARTS).collect()
}

#[cfg(test)]
mod tests;
