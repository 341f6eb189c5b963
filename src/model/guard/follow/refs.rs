//! Files that a script or a settings file names by a relative path.
//!
//! Not its role: whether the named file is there, or may be a guard.

const MAX_REFERENCES: usize = 500;

/// What a settings file says shortly before a file that it loads.
const LOADS: &[&str] = &[
    "setup",
    "global",
    "preset",
    "transform",
    "environment",
    "reporter",
    "resolver",
    "runner",
    "require",
    "extends",
    "plugin",
    "import",
    "sequencer",
    "loader",
    "serializer",
    "file:",
    "config",
];
/// How far a list may stand from its key.
const CONTEXT: usize = 200;

/// Files that JavaScript, JSON or YAML settings load: what is imported, and what stands after a key that loads.
pub fn settings(text: &str) -> Vec<String> {
    let breaks = |c: char| c.is_whitespace() || "'\"`,()[]{};".contains(c);
    let mut found = Vec::new();
    let mut at = 0;
    for token in text.split(breaks) {
        let begin = at;
        at += token.len() + text[at + token.len()..].chars().next().map_or(0, char::len_utf8);
        let token = token.strip_prefix("<rootDir>/").unwrap_or(token);
        let looks_like_path =
            token.len() > 2 && token.contains(['/', '.']) && !token.contains(['*', '<', '>', ':', '=']);
        if looks_like_path && found.len() < MAX_REFERENCES {
            let mut from = begin.saturating_sub(CONTEXT);
            while !text.is_char_boundary(from) {
                from += 1;
            }
            let before = text[from..begin].to_ascii_lowercase();
            if LOADS.iter().any(|word| before.contains(word)) || before.trim_end().ends_with("from") {
                found.push(token.to_owned());
            }
        }
    }
    found
}

/// What a JavaScript file requires or imports by a relative path.
pub fn javascript(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for quote in ['\'', '"', '`'] {
        for (at, _) in text.match_indices(quote) {
            let rest = &text[at + 1..];
            let Some(end) = rest.find(quote).filter(|end| *end < 300) else { continue };
            let before = text[..at].trim_end_matches([' ', '(']);
            let loads = ["require", "import", "from"].iter().any(|word| before.ends_with(word));
            if loads && rest.starts_with('.') && found.len() < MAX_REFERENCES {
                found.push(rest[..end].to_owned());
            }
        }
    }
    found
}

/// Modules that a Python file imports, as paths without their end: `.x` is `./x`, `x.y` is `x/y`.
pub fn python(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines().map(str::trim).take(20_000) {
        if let Some(rest) = line.strip_prefix("from ") {
            let (module, names) = rest.split_once(" import ").unwrap_or((rest, ""));
            let path = python_path(module.trim());
            // `from . import x`, `from checks import x`: the name may be a module.
            for name in names.split(',').filter_map(|name| name.split_whitespace().next()) {
                found.push(format!("{path}/{}", name.trim_matches(['(', ')', ' '])));
            }
            found.push(path);
        } else if let Some(rest) = line.strip_prefix("import ") {
            found.extend(rest.split(',').filter_map(|name| name.split_whitespace().next()).map(python_path));
        } else if let Some((_, plugins)) = line.split_once("pytest_plugins") {
            found.extend(plugins.split(['\'', '"']).skip(1).step_by(2).map(python_path));
        }
        if found.len() > MAX_REFERENCES {
            break;
        }
    }
    found
}

fn python_path(module: &str) -> String {
    let names = module.trim_start_matches('.');
    let up = module.len() - names.len();
    let start = match up {
        0 => String::new(),
        up => format!("./{}", "../".repeat(up - 1)),
    };
    format!("{start}{}", names.replace('.', "/"))
}

/// Does a text judge something: compare, assert, end with a failure?
pub fn asserts(text: &str) -> bool {
    const WORDS: [&str; 16] = [
        "assert", "expect", "exit 1", "exit(1", "exit 2", "fail", "cmp ", "diff ", "[ ", "[[", "test ", "grep",
        "raise ", "return 1", "sh ", "./",
    ];
    WORDS.iter().any(|word| text.contains(word))
}

/// Does code end with a failure when something is not as it should be? Narrower than [`asserts`].
pub fn asserts_something(text: &str) -> bool {
    const WORDS: [&str; 9] =
        ["assert", "expect(", "exit 1", "exit(1", "SystemExit", "AssertionError", "t.Fatal", "t.Error", "RAISE"];
    WORDS.iter().any(|word| text.contains(word))
}

/// Short texts in quotes: names of files that a script opens.
pub fn quoted(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines().take(20_000) {
        for quote in ['\'', '"'] {
            let inside = line.split(quote).skip(1).step_by(2);
            found.extend(inside.filter(|text| (2..300).contains(&text.len())).map(str::to_owned));
        }
        if found.len() > MAX_REFERENCES {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_what_they_load() {
        let jest = "module.exports = { testMatch: ['./a.js'], setupFiles: ['<rootDir>/s.js', \"./t.js\"] };";
        assert_eq!(settings(jest), ["s.js", "./t.js"]);
        assert_eq!(settings("{\"extends\": \"./config/base.json\"}"), ["./config/base.json"]);
        assert_eq!(settings("import x from './y.js'"), ["./y.js"]);
        assert_eq!(settings("require: ./h.js\n"), ["./h.js"]);
        assert_eq!(javascript("const a = require('./x'); import b from \"../y.js\"; f('./no')"), ["./x", "../y.js"]);
    }

    #[test]
    fn python_names_modules() {
        assert_eq!(
            python("from . import a\nfrom .b import c\nimport d.e, f\npytest_plugins = ['g.h']\n"),
            [".//a", "./", "./b/c", "./b", "d/e", "f", "g/h"]
        );
    }
}
