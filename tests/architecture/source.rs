//! The source of the crate as the tests of its shape read it: code alone, without comments, texts and tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// One file of `src`.
pub struct Source {
    /// Below `src`: `machine/event/run.rs`.
    pub name: String,
    /// `machine::event::run`.
    pub module: String,
    /// Comments, texts and what is only for tests are blank; every line stays where it is.
    pub code: String,
}

/// All files that are not only for tests.
pub fn all() -> &'static [Source] {
    static ALL: LazyLock<Vec<Source>> = LazyLock::new(read);
    &ALL
}

fn read() -> Vec<Source> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files: Vec<(PathBuf, String)> = crate::rust_files(&src)
        .into_iter()
        .map(|path| (path.clone(), fs::read_to_string(&path).expect("readable")))
        .collect();
    let tests: BTreeSet<PathBuf> = files.iter().flat_map(|(path, text)| test_files(path, text)).collect();
    let is_test =
        |path: &Path| tests.contains(path) || path.ancestors().any(|dir| tests.contains(&dir.with_extension("rs")));
    let sources = files.into_iter().filter(|(path, _)| !is_test(path)).map(|(path, text)| {
        let name = path.strip_prefix(&src).expect("below src").to_string_lossy().into_owned();
        let module = name.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
        Source { name, module, code: without_tests(&code_of(&text)) }
    });
    sources.collect()
}

/// The files of modules that a file declares for tests alone.
fn test_files(path: &Path, text: &str) -> Vec<PathBuf> {
    let dir = match path.file_stem().and_then(|stem| stem.to_str()) {
        Some("mod" | "lib" | "main") => path.with_file_name(""),
        _ => path.with_extension(""),
    };
    let mut found = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line != "#[cfg(test)]" {
            continue;
        }
        let mut named = None;
        for line in lines.by_ref() {
            if let Some(file) = line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]")) {
                named = Some(path.with_file_name(file));
            } else if !line.starts_with("#[") {
                let module = line.strip_suffix(';').and_then(|line| line.split_once("mod ")).map(|(_, name)| name);
                let usual = module.map(|name| dir.join(format!("{name}.rs")));
                found.extend(named.filter(|_| module.is_some()).or(usual));
                break;
            }
        }
    }
    found
}

/// Comments and texts become spaces.
fn code_of(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = token_end(&chars, at);
        let keep = end == at + 1;
        code.extend(chars[at..end].iter().map(|c| if keep || *c == '\n' { *c } else { ' ' }));
        at = end;
    }
    code
}

/// The end of the comment or text that begins here, else the next character.
fn token_end(chars: &[char], at: usize) -> usize {
    let rest = &chars[at..];
    let starts = |what: &str| rest.iter().zip(what.chars()).filter(|(a, b)| **a == *b).count() == what.len();
    if starts("//") {
        return at + rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
    }
    if starts("/*") {
        let close = rest.windows(2).position(|pair| pair == ['*', '/']);
        return at + close.map_or(rest.len(), |close| close + 2);
    }
    let in_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    if !in_word && (rest[0] == 'r' || starts("br")) {
        let hashes_at = if rest[0] == 'b' { 2 } else { 1 };
        let hashes = rest[hashes_at.min(rest.len())..].iter().take_while(|c| **c == '#').count();
        if rest.get(hashes_at + hashes) == Some(&'"') {
            let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let body = hashes_at + hashes + 1;
            let length = rest[body..].windows(close.len()).position(|end| end == close);
            return at + length.map_or(rest.len(), |length| body + length + close.len());
        }
    }
    match rest[0] {
        '"' => at + quoted(rest, '"'),
        // A lifetime has no closing quote after one character.
        '\'' if rest.get(1) == Some(&'\\') || rest.get(2) == Some(&'\'') => at + quoted(rest, '\''),
        _ => at + 1,
    }
}

fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// What `#[cfg(test)]` stands before becomes spaces.
fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut code = code.to_owned();
    while let Some(start) = code.find(MARK) {
        let end = start + MARK.len() + item_end(&code[start + MARK.len()..]);
        let blank: String = code[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        code.replace_range(start..end, &blank);
    }
    code
}

/// The end of an item, of a variant or of an arm.
fn item_end(code: &str) -> usize {
    let mut rest = code.trim_start();
    while let Some(attribute) = rest.strip_prefix("#[") {
        rest = attribute.split_once("]\n").map_or("", |(_, rest)| rest).trim_start();
    }
    let start = code.len() - rest.len();
    let is_item = ["pub", "mod ", "fn ", "use ", "impl", "const ", "static ", "struct ", "enum ", "trait ", "type "]
        .iter()
        .any(|word| rest.starts_with(word));
    let mut depth = 0usize;
    for (at, c) in rest.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '{' if depth == 0 => return start + at + block_end(&rest[at..]),
            ';' if depth == 0 => return start + at + 1,
            ',' if depth == 0 && !is_item => return start + at + 1,
            _ => {}
        }
    }
    code.len()
}

/// The length of the block that begins here.
pub fn block_end(code: &str) -> usize {
    let mut depth = 0usize;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

#[test]
fn comments_texts_and_tests_are_no_code() {
    let code = |text: &str| without_tests(&code_of(text)).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code("let a = \"x // {\"; // b\nc /* d */ e"), "let a = ; c e");
    assert_eq!(code("f(r#\"a\"b\"#, '{', '\\'', 'x); for r in b"), "f( , , , 'x); for r in b");
    assert_eq!(code("fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { 1 }\n}\nfn c() {}"), "fn a() {} fn c() {}");
    assert_eq!(
        code("A,\n#[cfg(test)]\n#[x]\nB,\nC => 1,\n#[cfg(test)]\nD::E { f } => g(1, 2),"),
        "A, C => 1, => g(1, 2),"
    );
    assert_eq!(
        test_files(
            Path::new("src/a/b.rs"),
            "#[cfg(test)]\npub mod c;\n#[cfg(test)]\n#[path = \"d.rs\"]\nmod e;\nmod f;"
        ),
        [Path::new("src/a/b/c.rs"), Path::new("src/a/d.rs")]
    );
}
