//! Light colours for code: keywords, strings, comments and numbers, one line at a time.
//!
//! Not here: grammar. A line is looked at alone, so text that spans lines is coloured as code; good enough to
//! find one's way in a diff. Invariants: pieces are in order, do not overlap and begin and end at character
//! boundaries.

use std::path::Path;

use super::paint::Piece;
use super::theme::Role;

/// What is to be known of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lang {
    keywords: &'static [&'static str],
    comments: &'static [&'static str],
    quotes: &'static [char],
    /// A text followed by a colon is a key.
    keyed: bool,
}

const BOTH: &[char] = &['"', '\''];

const RUST: Lang = Lang {
    keywords: &[
        "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false", "fn",
        "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self",
        "Self", "static", "struct", "super", "trait", "true", "type", "unsafe", "use", "where", "while",
    ],
    comments: &["//"],
    // A single quote is a lifetime more often than a text.
    quotes: &['"'],
    keyed: false,
};
const PYTHON: Lang = Lang {
    keywords: &[
        "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
        "False", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "None", "nonlocal", "not",
        "or", "pass", "raise", "return", "True", "try", "while", "with", "yield",
    ],
    comments: &["#"],
    quotes: BOTH,
    keyed: false,
};
const SHELL: Lang = Lang {
    keywords: &[
        "case", "do", "done", "elif", "else", "esac", "exit", "export", "fi", "for", "function", "if", "in", "local",
        "return", "set", "shift", "then", "trap", "until", "while",
    ],
    comments: &["#"],
    quotes: BOTH,
    keyed: false,
};
const SCRIPT: Lang = Lang {
    keywords: &[
        "async",
        "await",
        "break",
        "case",
        "catch",
        "class",
        "const",
        "continue",
        "default",
        "delete",
        "else",
        "export",
        "extends",
        "false",
        "finally",
        "for",
        "from",
        "function",
        "if",
        "import",
        "in",
        "instanceof",
        "interface",
        "let",
        "new",
        "null",
        "of",
        "return",
        "static",
        "super",
        "switch",
        "this",
        "throw",
        "true",
        "try",
        "type",
        "typeof",
        "undefined",
        "var",
        "void",
        "while",
        "yield",
    ],
    comments: &["//"],
    quotes: &['"', '\'', '`'],
    keyed: false,
};
const GO: Lang = Lang {
    keywords: &[
        "break",
        "case",
        "chan",
        "const",
        "continue",
        "default",
        "defer",
        "else",
        "fallthrough",
        "false",
        "for",
        "func",
        "go",
        "goto",
        "if",
        "import",
        "interface",
        "map",
        "nil",
        "package",
        "range",
        "return",
        "select",
        "struct",
        "switch",
        "true",
        "type",
        "var",
    ],
    comments: &["//"],
    quotes: &['"', '\'', '`'],
    keyed: false,
};
const CURLY: Lang = Lang {
    keywords: &[
        "abstract",
        "auto",
        "bool",
        "break",
        "case",
        "catch",
        "char",
        "class",
        "const",
        "continue",
        "default",
        "delete",
        "do",
        "double",
        "else",
        "enum",
        "extends",
        "extern",
        "false",
        "final",
        "finally",
        "float",
        "for",
        "fun",
        "func",
        "guard",
        "if",
        "implements",
        "import",
        "inline",
        "int",
        "interface",
        "let",
        "long",
        "namespace",
        "new",
        "nil",
        "null",
        "nullptr",
        "override",
        "package",
        "private",
        "protected",
        "public",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "super",
        "switch",
        "template",
        "this",
        "throw",
        "throws",
        "true",
        "try",
        "typedef",
        "typename",
        "union",
        "unsigned",
        "using",
        "val",
        "var",
        "virtual",
        "void",
        "volatile",
        "when",
        "while",
    ],
    comments: &["//", "/*"],
    quotes: BOTH,
    keyed: false,
};
const RUBY: Lang = Lang {
    keywords: &[
        "and", "begin", "break", "case", "class", "def", "do", "else", "elsif", "end", "ensure", "false", "for", "if",
        "in", "module", "next", "nil", "not", "or", "raise", "rescue", "return", "self", "then", "true", "unless",
        "until", "when", "while", "yield",
    ],
    comments: &["#"],
    quotes: BOTH,
    keyed: false,
};
const SQL: Lang = Lang {
    keywords: &[
        "AND", "AS", "BY", "CREATE", "DELETE", "DROP", "FROM", "GROUP", "INDEX", "INSERT", "INTO", "JOIN", "KEY",
        "LEFT", "NOT", "NULL", "ON", "OR", "ORDER", "PRIMARY", "SELECT", "SET", "TABLE", "UPDATE", "VALUES", "WHERE",
    ],
    comments: &["--"],
    quotes: &['\''],
    keyed: false,
};
pub const JSON: Lang = Lang { keywords: &["true", "false", "null"], comments: &[], quotes: &['"'], keyed: true };
const YAML: Lang =
    Lang { keywords: &["true", "false", "null", "yes", "no"], comments: &["#"], quotes: BOTH, keyed: true };
const TOML: Lang = Lang { keywords: &["true", "false"], comments: &["#"], quotes: BOTH, keyed: false };

impl Lang {
    /// By the name of a file. `None`: shown without colours.
    pub fn of_path(path: &str) -> Option<Self> {
        let path = Path::new(path);
        let name = path.file_name()?.to_str()?;
        if matches!(name, "Makefile" | "Dockerfile" | ".gitignore" | ".bashrc" | ".profile") {
            return Some(SHELL);
        }
        Some(match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "rs" => RUST,
            "py" | "pyi" => PYTHON,
            "sh" | "bash" | "zsh" | "fish" | "mk" => SHELL,
            "js" | "mjs" | "cjs" | "jsx" | "ts" | "tsx" | "vue" | "svelte" => SCRIPT,
            "go" => GO,
            "c" | "h" | "cc" | "cpp" | "hpp" | "cxx" | "java" | "kt" | "cs" | "swift" | "php" | "scala" | "dart" => {
                CURLY
            }
            "rb" => RUBY,
            "sql" => SQL,
            "json" | "jsonl" => JSON,
            "yaml" | "yml" => YAML,
            "toml" | "ini" | "cfg" | "conf" => TOML,
            _ => return None,
        })
    }
}

/// The coloured pieces of a line; the rest is plain.
pub fn lex(lang: Lang, line: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = 0;
    let mut in_word = false;
    while let Some(rest) = line.get(at..) {
        let Some(c) = rest.chars().next() else { break };
        // `#` opens a comment only where a word could begin: not in `$#` or `a#b`.
        if !in_word && lang.comments.iter().any(|mark| rest.starts_with(mark)) {
            pieces.push((at..line.len(), Role::Comment));
            break;
        }
        let (len, role) = if lang.quotes.contains(&c) {
            let len = quoted(rest, c);
            let key = lang.keyed && rest.get(len..).is_some_and(|after| after.trim_start().starts_with(':'));
            (len, Some(if key { Role::Keyword } else { Role::Literal }))
        } else if c.is_ascii_digit() && !in_word {
            let len =
                rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "._".contains(c)).len();
            (len, Some(Role::Literal))
        } else if c.is_alphabetic() || c == '_' {
            let len = rest.len() - rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').len();
            let word = rest.get(..len).unwrap_or_default();
            let key = lang.keyed && pieces.is_empty() && rest.get(len..).is_some_and(|after| after.starts_with(':'));
            let known =
                lang.keywords.contains(&word) || (lang == SQL && lang.keywords.contains(&&*word.to_uppercase()));
            (len, (known || key).then_some(Role::Keyword))
        } else {
            (c.len_utf8(), None)
        };
        in_word = !c.is_whitespace() && !"([{;,=".contains(c) && role.is_none();
        if let Some(role) = role {
            pieces.push((at..at + len, role));
        }
        at += len.max(1);
    }
    pieces
}

/// Bytes of a quoted text with its quotes; without an end, all there is.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return at + c.len_utf8();
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn roles(path: &str, line: &'static str) -> Vec<(&'static str, Role)> {
        lex(Lang::of_path(path).unwrap(), line).into_iter().map(|(range, role)| (&line[range], role)).collect()
    }

    #[test]
    fn languages_are_told_apart() {
        assert_eq!(
            roles("a.rs", "let x = \"a \\\" b\"; // 12"),
            [("let", Role::Keyword), ("\"a \\\" b\"", Role::Literal), ("// 12", Role::Comment)]
        );
        assert_eq!(roles("a.rs", "fn f<'a>(x1: u8)"), [("fn", Role::Keyword)]);
        assert_eq!(
            roles("x/run.sh", "if [ $# -ne 2 ]; then exit 1 # why"),
            [
                ("if", Role::Keyword),
                ("2", Role::Literal),
                ("then", Role::Keyword),
                ("exit", Role::Keyword),
                ("1", Role::Literal),
                ("# why", Role::Comment)
            ]
        );
        assert_eq!(
            roles("a.json", "  \"key\": \"value\", \"n\": 3"),
            [("\"key\"", Role::Keyword), ("\"value\"", Role::Literal), ("\"n\"", Role::Keyword), ("3", Role::Literal)]
        );
        assert_eq!(roles("a.yaml", "goal: true # x")[0], ("goal", Role::Keyword));
        assert!(Lang::of_path("README").is_none());
    }

    proptest! {
        #[test]
        fn pieces_never_overlap(line in "[ -~é日]{0,80}") {
            for path in ["a.rs", "a.py", "a.sh", "a.ts", "a.json", "a.yaml", "a.sql", "a.c"] {
                let mut end = 0;
                for (range, _) in lex(Lang::of_path(path).unwrap(), &line) {
                    prop_assert!(range.start >= end && range.end > range.start);
                    prop_assert!(line.get(range.clone()).is_some());
                    end = range.end;
                }
            }
        }
    }
}
