//! How words were told apart before the tools were known: by phrases anywhere. Runs that began then are judged so to
//! their end.

use super::Class;

/// The first that fits.
const PHRASES: [(Class, &[&str]); 5] = [
    (
        Class::LintErrors,
        &[
            "lint error",
            "linting failed",
            "eslint",
            "flake8",
            "pylint",
            "ruff check",
            "clippy::",
            "shellcheck",
            "rustfmt",
            "would reformat",
            "prettier --check",
            "code style issues",
        ],
    ),
    (
        Class::MissingImport,
        &[
            "modulenotfounderror",
            "importerror",
            "no module named",
            "cannot find module",
            "module not found",
            "unresolved import",
            "could not resolve \"",
            "err_module_not_found",
            "cannot find package",
            "can't find crate",
            "use of undeclared crate",
            "no such module",
        ],
    ),
    (
        Class::TypeMismatch,
        &[
            "mismatched types",
            "type mismatch",
            "typeerror",
            "incompatible type",
            "is not assignable to type",
            "cannot be assigned to",
            "error[e0308]",
            "cannot use type",
            "has no attribute",
        ],
    ),
    (
        Class::TestFixtureMissing,
        &["fixture '", "fixture not found", "missing fixture", "no such fixture", "fixtures/", "test data not found"],
    ),
    (
        Class::UpstreamDiverged,
        &[
            "have diverged",
            "non-fast-forward",
            "merge conflict",
            "automatic merge failed",
            "unmerged paths",
            "updates were rejected",
            "need to specify how to reconcile divergent branches",
        ],
    ),
];

pub fn class_of(lower: &str) -> Class {
    let fits = |phrases: &&[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
    PHRASES.iter().find(|(_, phrases)| fits(phrases)).map_or(Class::Unknown, |(class, _)| *class)
}
