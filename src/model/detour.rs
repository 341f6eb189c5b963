//! Detours: what is tried when an author fails twice in the same way.
//!
//! Role: which known fix fits which class of failure. Not its role: running it, or deciding that it is time.
//! Invariant: a detour is a command of the declaration or of our table, or an agent with a prompt of ours; never an
//! agent's own idea.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::signature::Class;
use super::tools::Fix;

/// Declared detours of one loop, at most.
pub const MAX_DETOURS: usize = 20;

/// A known fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DetourDecl {
    /// Its name; by default the one that the catalogue has for this class.
    pub name: Option<String>,
    /// The class of failure it helps with.
    #[serde(rename = "for")]
    pub class: Class,
    /// A command that fixes it, e.g. ["cargo", "fmt"]; without one an agent is called.
    pub command: Option<Vec<String>>,
    pub timeout_seconds: Option<u64>,
}

/// What a detour does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detour {
    pub name: String,
    /// `None`: an agent.
    pub command: Option<Vec<String>>,
    pub timeout_seconds: Option<u64>,
}

/// The known fix for a class: a declared one, else what the failing tool itself has for it, else the catalogue's, which
/// is an agent.
pub fn known(declared: &[DetourDecl], class: Class, of_tool: Option<&Fix>) -> Option<Detour> {
    if let Some(decl) = declared.iter().find(|decl| decl.class == class) {
        let name = decl.name.clone().or_else(|| catalogue(class).map(str::to_owned));
        return Some(Detour {
            name: name.unwrap_or_else(|| class.name().replace('_', "-")),
            command: decl.command.clone(),
            timeout_seconds: decl.timeout_seconds,
        });
    }
    if let Some(Fix { name, command }) = of_tool.filter(|_| class == Class::LintErrors) {
        return Some(Detour { name: name.clone(), command: Some(command.clone()), timeout_seconds: None });
    }
    catalogue(class).map(|name| Detour { name: name.to_owned(), command: None, timeout_seconds: None })
}

/// The ready ones. A diverged upstream is a person's affair, and what is unknown has no known fix.
const fn catalogue(class: Class) -> Option<&'static str> {
    match class {
        Class::LintErrors => Some("auto-linter"),
        Class::MissingImport => Some("import-fixer"),
        Class::TypeMismatch => Some("type-annotator"),
        Class::TestFixtureMissing => Some("test-setup"),
        Class::UpstreamDiverged | Class::Unknown => None,
    }
}

/// What is wrong with declared detours: what, and what to do.
pub fn check(declared: &[DetourDecl]) -> Result<(), (String, &'static str)> {
    if declared.len() > MAX_DETOURS {
        return Err((format!("{} detours: at most {MAX_DETOURS}", declared.len()), ""));
    }
    for (index, decl) in declared.iter().enumerate() {
        let class = decl.class.name();
        if declared[..index].iter().any(|other| other.class == decl.class) {
            return Err((format!("two detours are for {class}"), "keep one for each class"));
        }
        if decl.command.as_ref().is_some_and(Vec::is_empty) {
            return Err((format!("the detour for {class} has an empty command"), "e.g. [\"cargo\", \"fmt\"]"));
        }
        let plain = |name: &String| {
            !name.is_empty() && name.len() <= 40 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        if decl.name.as_ref().is_some_and(|name| !plain(name)) {
            return Err((format!("the detour for {class} has no valid name"), "use letters, digits and `-`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(class: Class, command: Option<&[&str]>) -> DetourDecl {
        let command = command.map(|argv| argv.iter().map(|word| (*word).to_owned()).collect());
        DetourDecl { name: None, class, command, timeout_seconds: None }
    }

    #[test]
    fn a_declared_detour_comes_before_the_tools_own_and_the_catalogue() {
        let ruff = Fix { name: "ruff-fix".into(), command: vec!["ruff".into()] };
        let tool = known(&[], Class::LintErrors, Some(&ruff)).unwrap();
        assert_eq!((tool.name.as_str(), tool.command), ("ruff-fix", Some(vec!["ruff".to_owned()])));
        let fmt = declared(Class::LintErrors, Some(&["cargo", "fmt"]));
        let found = known(std::slice::from_ref(&fmt), Class::LintErrors, Some(&ruff)).unwrap();
        assert_eq!((found.name.as_str(), found.command.is_some()), ("auto-linter", true));
        let found = known(&[fmt], Class::MissingImport, Some(&ruff)).unwrap();
        assert_eq!((found.name.as_str(), found.command), ("import-fixer", None));
        assert_eq!(known(&[], Class::Unknown, Some(&ruff)), None);
        assert_eq!(known(&[], Class::UpstreamDiverged, None), None);
        let own = known(&[declared(Class::Unknown, Some(&["./mend"]))], Class::Unknown, None).unwrap();
        assert_eq!(own.name, "unknown");
    }

    #[test]
    fn one_detour_for_a_class_with_a_plain_name() {
        let one = declared(Class::LintErrors, Some(&["x"]));
        assert!(check(&[one.clone(), one.clone()]).unwrap_err().0.contains("two detours"));
        assert!(check(&[declared(Class::Unknown, Some(&[]))]).unwrap_err().0.contains("empty command"));
        assert!(check(&[DetourDecl { name: Some("a b".into()), ..one.clone() }]).is_err());
        assert!(check(&[one]).is_ok());
    }
}
