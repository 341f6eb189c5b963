//! Simple commands of a shell text, as far as names of files in them can be told without running anything.
//!
//! Not its role: expansion. `$x`, `${x}` and `$(…)` stay in a word as `$`, so that `"$(dirname "$0")/lib.sh"` is
//! `$/lib.sh`; what stands in `$(…)` is a command of its own.
//! Invariant: any text gives an answer, in linear time and of bounded size.

const MAX_COMMANDS: usize = 2_000;
const MAX_NESTED: usize = 4;

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    pub words: Vec<String>,
    /// Files after `<`.
    pub reads: Vec<String>,
    /// Files after `>`.
    pub writes: Vec<String>,
    /// Its output is a value for another command, or goes through a pipe.
    pub is_asked: bool,
}

/// The commands of a text, in their order; those in `$(…)` after the one they stand in.
pub fn commands(text: &str) -> Vec<Command> {
    let mut found = Vec::new();
    let mut texts = vec![(text.to_owned(), 0, false)];
    while let Some((text, depth, is_asked)) = texts.pop() {
        let reader = Reader::read(&text, is_asked);
        found.extend(reader.found);
        if found.len() > MAX_COMMANDS {
            found.truncate(MAX_COMMANDS);
            break;
        }
        if depth < MAX_NESTED {
            texts.extend(reader.nested.into_iter().rev().map(|text| (text, depth + 1, true)));
        }
    }
    found
}

/// Where the next word goes.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    Word,
    Read,
    Write,
    Nothing,
}

struct Reader<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    found: Vec<Command>,
    nested: Vec<String>,
    now: Command,
    word: Option<String>,
    next: Next,
    is_asked: bool,
}

impl<'a> Reader<'a> {
    fn read(text: &'a str, is_asked: bool) -> Self {
        let mut reader = Reader {
            chars: text.chars().peekable(),
            found: Vec::new(),
            nested: Vec::new(),
            now: Command::default(),
            word: None,
            next: Next::Word,
            is_asked,
        };
        while let Some(c) = reader.chars.next() {
            reader.take(c);
            if reader.found.len() > MAX_COMMANDS {
                return reader;
            }
        }
        reader.end_command();
        reader
    }

    fn take(&mut self, c: char) {
        match c {
            '\\' => match self.chars.next() {
                Some('\n') | None => {}
                Some(c) => self.push(c),
            },
            '\'' => {
                self.word.get_or_insert_default();
                while let Some(c) = self.chars.next().filter(|c| *c != '\'') {
                    self.push(c);
                }
            }
            '"' => self.quoted(),
            '$' => self.dollar(),
            '`' => {
                let inner = self.until('`');
                self.nested.push(inner);
                self.push('$');
            }
            '#' if self.word.is_none() => while self.chars.next_if(|c| *c != '\n').is_some() {},
            ' ' | '\t' | '\r' => self.end_word(),
            '|' => {
                self.end_word();
                // `||` is no pipe.
                self.now.is_asked |= self.chars.next_if_eq(&'|').is_none();
                self.end_command();
            }
            ';' | '&' | '\n' | '(' | ')' => self.end_command(),
            '<' | '>' => self.redirect(c),
            c => self.push(c),
        }
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.chars.next() {
            match c {
                '"' => return,
                '\\' => {
                    if let Some(c) = self.chars.next().filter(|c| *c != '\n') {
                        self.push(c);
                    }
                }
                '$' => self.dollar(),
                '`' => {
                    let inner = self.until('`');
                    self.nested.push(inner);
                    self.push('$');
                }
                c => self.push(c),
            }
        }
    }

    /// What follows a `$`: one sign stands for it in the word.
    fn dollar(&mut self) {
        self.push('$');
        match self.chars.peek() {
            Some('(') => {
                self.chars.next();
                let inner = self.balanced();
                self.nested.push(inner);
            }
            Some('{') => {
                self.until('}');
            }
            Some(c) if c.is_ascii_alphanumeric() || matches!(c, '_' | '@' | '*' | '#' | '?') => {
                self.chars.next();
                while self.chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_').is_some() {}
            }
            Some(_) | None => {}
        }
    }

    fn until(&mut self, end: char) -> String {
        let mut text = String::new();
        while let Some(c) = self.chars.next().filter(|c| *c != end) {
            text.push(c);
        }
        text
    }

    /// Up to the bracket that closes, brackets in quotes not counted.
    fn balanced(&mut self) -> String {
        let (mut text, mut open, mut quote) = (String::new(), 1, None);
        for c in self.chars.by_ref() {
            match (quote, c) {
                (None, '\'' | '"') => quote = Some(c),
                (Some(mark), c) if mark == c => quote = None,
                (None, '(') => open += 1,
                (None, ')') => open -= 1,
                _ => {}
            }
            if open == 0 {
                break;
            }
            text.push(c);
        }
        text
    }

    fn redirect(&mut self, c: char) {
        // `2>`: the number is no word.
        if self.word.as_ref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        let repeated = self.chars.next_if_eq(&c).is_some();
        let to_descriptor = self.chars.next_if_eq(&'&').is_some();
        self.next = match c {
            _ if to_descriptor => Next::Nothing,
            '<' if repeated => Next::Nothing,
            '<' => Next::Read,
            _ => Next::Write,
        };
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match std::mem::replace(&mut self.next, Next::Word) {
            Next::Word => self.now.words.push(word),
            Next::Read => self.now.reads.push(word),
            Next::Write => self.now.writes.push(word),
            Next::Nothing => {}
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.next = Next::Word;
        let mut command = std::mem::take(&mut self.now);
        if !(command.words.is_empty() && command.reads.is_empty() && command.writes.is_empty()) {
            command.is_asked |= self.is_asked;
            self.found.push(command);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        commands(text).iter().map(|command| command.words.join(" ")).collect()
    }

    #[test]
    fn commands_are_told_apart() {
        assert_eq!(words("a 'b c' && d | e # f\ng"), ["a b c", "d", "e", "g"]);
        assert_eq!(words(". \"$(dirname \"$0\")/lib.sh\""), [". $/lib.sh", "dirname $"]);
        assert_eq!(words("x=\"${A:-b}\"/c `inner y`"), ["x=$/c $", "inner y"]);
        assert_eq!(words("a \\\n b"), ["a b"]);
        let all = commands("sort < in.txt > out.txt 2>&1 | wc -l <<< x; cat >> log");
        assert_eq!(
            (all[0].reads.join(""), all[0].writes.join(""), all[0].is_asked),
            ("in.txt".into(), "out.txt".into(), true)
        );
        assert_eq!(all[2].writes, ["log"]);
        assert!(commands("[ $(./prog 2) = 5 ]")[1].is_asked);
        assert!(!commands("a || b")[0].is_asked);
    }

    #[test]
    fn any_text_gives_an_answer() {
        for text in ["'", "\"", "$(", "${", "`", "<", "\\", "$", "((((", ")", "a=$(b $(c $(d $(e $(f $(g))))))"] {
            commands(text);
        }
        assert!(commands(&"a;".repeat(10_000)).len() <= MAX_COMMANDS + 1);
    }
}
