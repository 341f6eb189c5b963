//! Words of a shell line: quotes, escapes, expansions.
//!
//! A word is kept twice: as it would be written out (`raw`, expansions word for word) and as a shape in which
//! everything the shell puts in is a [`HOLE`]. Invariant: whatever the shell makes of the word, the shape matches it
//! with any text in place of each hole.

use super::{Reader, Unreadable, Until};

/// Stands for what only the shell knows; no argument can hold a zero byte.
pub(in crate::tool::permission) const HOLE: char = '\0';

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::tool::permission) struct Word {
    raw: String,
    shape: String,
    /// A quote or an escape is in it.
    quoted: bool,
    /// `NAME=` or `NAME+=` begins it: the end of the name.
    name_end: Option<usize>,
}

impl Word {
    pub fn known(text: &str) -> Self {
        Self { raw: text.to_owned(), shape: text.to_owned(), ..Self::default() }
    }

    pub fn unknown(raw: &str) -> Self {
        Self { raw: raw.to_owned(), shape: HOLE.to_string(), ..Self::default() }
    }

    /// As written, quotes taken away, expansions left as they are.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    pub fn shape(&self) -> &str {
        &self.shape
    }

    /// The word, if nothing is put in by the shell.
    pub fn literal(&self) -> Option<&str> {
        (!self.shape.contains(HOLE)).then_some(self.raw.as_str())
    }

    pub(super) fn quoted(&self) -> bool {
        self.quoted
    }

    /// Only a bare word can be a keyword.
    pub(super) fn keyword(&self) -> Option<&str> {
        self.literal().filter(|_| !self.quoted)
    }

    /// The name that this word gives a value to.
    pub(super) fn assigned(&self) -> Option<String> {
        self.name_end.and_then(|end| self.raw.get(..end)).map(str::to_owned)
    }

    fn may_be_a_name(&self) -> bool {
        self.name_end.is_none() && !self.quoted && !self.shape.contains(HOLE)
    }

    fn push(&mut self, character: char) {
        self.raw.push(character);
        self.shape.push(character);
    }

    fn hole(&mut self, source: &[char]) {
        self.raw.extend(source);
        if !self.shape.ends_with(HOLE) {
            self.shape.push(HOLE);
        }
    }
}

/// `NAME`, `NAME+`, `NAME[…]`: the end of the name.
fn name_end(text: &str) -> Option<usize> {
    let text = text.strip_suffix('+').unwrap_or(text);
    let name = text.split_once('[').map_or(text, |(name, _)| name);
    let subscript = text.len() == name.len() || text.ends_with(']');
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let all = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (starts && all && subscript).then_some(name.len())
}

/// Brackets and braces that may be expanded make the whole word unknown.
#[derive(Default)]
struct Marks {
    bracket: bool,
    /// 1: one is open; 2: and what is in it makes it an expansion.
    brace: u8,
    whole: bool,
}

impl Marks {
    /// `any`: something of the word stands before it.
    fn see(&mut self, character: char, next: Option<char>, any: bool) {
        match character {
            '[' => self.bracket = true,
            ']' if self.bracket => self.whole |= any,
            '{' => self.brace = self.brace.max(1),
            ',' if self.brace >= 1 => self.brace = 2,
            '.' if self.brace >= 1 && next == Some('.') => self.brace = 2,
            '}' if self.brace == 2 => self.whole = true,
            _ => {}
        }
    }
}

impl Reader<'_> {
    fn single_quoted(&mut self, word: &mut Word) -> Result<(), Unreadable> {
        self.skip(1)?;
        loop {
            match self.step()? {
                Some('\'') => return Ok(()),
                Some(inner) => word.push(inner),
                None => return Err("a quote is not closed"),
            }
        }
    }

    /// `~`, `~name`, `~+`.
    fn home(&mut self) -> Result<(), Unreadable> {
        while self.peek().is_some_and(|c| c == '~' || c.is_alphanumeric() || matches!(c, '-' | '_' | '+')) {
            self.skip(1)?;
        }
        Ok(())
    }

    fn dollar_quoted(&mut self) -> Result<(), Unreadable> {
        self.skip(2)?;
        loop {
            match self.step()? {
                Some('\'') => return Ok(()),
                Some('\\') => self.skip(1)?,
                Some(_) => {}
                None => return Err("a quote is not closed"),
            }
        }
    }

    /// The word here; `None` where an operator stands.
    pub(super) fn word(&mut self) -> Result<Option<Word>, Unreadable> {
        let begin = self.at;
        let mut word = Word::default();
        let mut any = false;
        let mut marks = Marks::default();
        while let Some(character) = self.peek() {
            let from = self.at;
            match character {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' => break,
                '<' | '>' if self.peek_at(1) == Some('(') => {
                    self.skip(2)?;
                    self.substitution()?;
                    self.hole_from(&mut word, from);
                }
                '<' | '>' => break,
                '(' if word.name_end.is_some() && word.raw.ends_with('=') => {
                    self.array()?;
                    self.hole_from(&mut word, from);
                }
                '(' => break,
                '\\' => {
                    self.skip(1)?;
                    word.quoted = true;
                    match self.step()? {
                        Some('\n') => {
                            // A joined line is no character; alone it is no word either.
                            continue;
                        }
                        Some(escaped) => word.push(escaped),
                        None => word.push('\\'),
                    }
                }
                '\'' => {
                    word.quoted = true;
                    self.single_quoted(&mut word)?;
                }
                '"' => {
                    word.quoted = true;
                    self.skip(1)?;
                    self.double_quoted(&mut word)?;
                }
                '$' if self.peek_at(1) == Some('\'') => {
                    word.quoted = true;
                    self.dollar_quoted()?;
                    self.hole_from(&mut word, from);
                }
                '$' if self.peek_at(1) == Some('"') => self.skip(1)?,
                '$' | '`' => self.expansion(&mut word, false)?,
                '~' if word.raw.is_empty() && !word.quoted => {
                    self.home()?;
                    self.hole_from(&mut word, from);
                }
                '~' if word.raw.ends_with(['=', ':']) => {
                    self.skip(1)?;
                    marks.whole = true;
                    word.push('~');
                }
                '*' | '?' => {
                    self.skip(1)?;
                    word.hole(&[character]);
                }
                _ => {
                    self.skip(1)?;
                    marks.see(character, self.peek(), any);
                    if character == '=' && word.may_be_a_name() {
                        word.name_end = name_end(&word.raw);
                    }
                    word.push(character);
                }
            }
            any = true;
        }
        if self.at == begin || (!any && word.raw.is_empty()) {
            return Ok(None);
        }
        if marks.whole {
            word.shape = HOLE.to_string();
        }
        Ok(Some(word))
    }

    /// The commands of `$(`, `<(` or `>(`, up to the parenthesis. Here-documents stay on their side of it.
    fn substitution(&mut self) -> Result<(), Unreadable> {
        self.nested(|reader| {
            let outer = std::mem::take(&mut reader.pending);
            reader.list(Until::Closed)?;
            let open = !reader.pending.is_empty();
            reader.pending = outer;
            if open { Err("a here-document is not closed") } else { Ok(()) }
        })
    }

    fn hole_from(&self, word: &mut Word, from: usize) {
        word.hole(self.text.get(from..self.at).unwrap_or_default());
    }

    /// `( … )` after `NAME=`.
    fn array(&mut self) -> Result<(), Unreadable> {
        self.skip(1)?;
        self.nested(|reader| {
            loop {
                reader.blanks(true)?;
                if reader.word()?.is_none() {
                    return match reader.step()? {
                        Some(')') => Ok(()),
                        _ => Err("an array is not closed"),
                    };
                }
            }
        })
    }

    /// Up to the closing quote.
    fn double_quoted(&mut self, word: &mut Word) -> Result<(), Unreadable> {
        loop {
            match self.peek() {
                None => return Err("a quote is not closed"),
                Some('"') => return self.skip(1),
                Some('$' | '`') => self.expansion(word, true)?,
                Some('\\') => self.escape_in_quotes(word, true)?,
                Some(character) => {
                    self.skip(1)?;
                    word.push(character);
                }
            }
        }
    }

    /// The text of a here-document: like a quoted text in which quotes mean nothing.
    pub(super) fn body(&mut self, body: &[char]) -> Result<Word, Unreadable> {
        if self.depth >= super::MAX_DEPTH {
            return Err("it is nested too deeply");
        }
        let mut reader = Reader::new(body, self.commands, self.steps, self.depth + 1);
        let mut word = Word::default();
        while let Some(character) = reader.peek() {
            match character {
                '$' | '`' => reader.expansion(&mut word, true)?,
                '\\' => reader.escape_in_quotes(&mut word, false)?,
                other => {
                    reader.skip(1)?;
                    word.push(other);
                }
            }
        }
        Ok(word)
    }

    /// A backslash between double quotes protects a few characters only.
    fn escape_in_quotes(&mut self, word: &mut Word, quotes: bool) -> Result<(), Unreadable> {
        self.skip(1)?;
        match self.peek() {
            Some('\n') => self.skip(1),
            Some(protected @ ('$' | '`' | '\\')) => {
                word.push(protected);
                self.skip(1)
            }
            Some('"') if quotes => {
                word.push('"');
                self.skip(1)
            }
            _ => {
                word.push('\\');
                Ok(())
            }
        }
    }

    /// At `$` or a backtick.
    fn expansion(&mut self, word: &mut Word, quoted: bool) -> Result<(), Unreadable> {
        let from = self.at;
        if self.peek() == Some('`') {
            self.backticks()?;
            self.hole_from(word, from);
            return Ok(());
        }
        match self.peek_at(1) {
            Some('(') => {
                if self.peek_at(2) != Some('(') || !self.arithmetic(2)? {
                    self.skip(2)?;
                    self.substitution()?;
                }
            }
            Some('{') => {
                self.skip(2)?;
                self.nested(|reader| reader.braces(quoted))?;
            }
            // An old spelling of arithmetic; nobody writes it, and a disguise may.
            Some('[') => return Err("`$[` is no longer in use"),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                self.skip(1)?;
                while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.skip(1)?;
                }
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => self.skip(2)?,
            _ => {
                self.skip(1)?;
                word.push('$');
                return Ok(());
            }
        }
        self.hole_from(word, from);
        Ok(())
    }

    /// The rest of `${ … }`.
    fn braces(&mut self, quoted: bool) -> Result<(), Unreadable> {
        let mut aside = Word::default();
        loop {
            match self.peek() {
                None => return Err("a `${` is not closed"),
                Some('}') => return self.skip(1),
                Some('\\') => self.skip(2)?,
                // Whether it quotes depends on the operator; no need to know.
                Some('\'') if quoted => return Err("a quote stands inside a quoted `${`"),
                Some('\'') => {
                    self.skip(1)?;
                    while self.step()?.ok_or("a quote is not closed")? != '\'' {}
                }
                Some('"') => {
                    self.skip(1)?;
                    self.nested(|reader| reader.double_quoted(&mut Word::default()))?;
                }
                Some('$' | '`') => self.nested(|reader| reader.expansion(&mut aside, quoted))?,
                Some('<' | '>') if self.peek_at(1) == Some('(') => return Err("a command stands inside a `${`"),
                Some(_) => self.skip(1)?,
            }
        }
    }

    /// `(( … ))`, of which `open` characters stand before the second parenthesis. `false`, and nothing is read, if
    /// it is a group within a group instead: a shell decides by the same count.
    pub(super) fn arithmetic(&mut self, open: usize) -> Result<bool, Unreadable> {
        let (back, known, pending) = (self.at, self.commands.len(), self.pending.clone());
        self.skip(open + 1)?;
        let closed = self.nested(|reader| {
            let mut aside = Word::default();
            let mut depth = 0usize;
            // The name that was just read: `((PATH=1))` steers what follows, as an assignment does.
            let mut name = String::new();
            loop {
                match reader.peek() {
                    Some(c) if c.is_ascii_alphanumeric() || c == '_' => {
                        name.push(c);
                        reader.skip(1)?;
                        continue;
                    }
                    Some(' ' | '\t') => {
                        reader.skip(1)?;
                        continue;
                    }
                    _ => {}
                }
                let assigns =
                    matches!(reader.peek(), Some('=' | '+' | '-' | '*' | '/' | '%' | '&' | '|' | '^' | '<' | '>'));
                if assigns && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                    let assignments = vec![(name.clone(), Word::default())];
                    reader.commands.push(super::Command { assignments, ..super::Command::default() });
                }
                name.clear();
                match reader.peek() {
                    None => return Ok(false),
                    Some(')') if depth == 0 => {
                        let closed = reader.peek_at(1) == Some(')');
                        reader.skip(2)?;
                        return Ok(closed);
                    }
                    Some(')') => depth -= 1,
                    Some('(') => depth += 1,
                    Some('\'' | '"' | '\\') => return Ok(false),
                    Some('$' | '`') => {
                        reader.expansion(&mut aside, true)?;
                        continue;
                    }
                    Some(_) => {}
                }
                reader.skip(1)?;
            }
        });
        if closed? {
            return Ok(true);
        }
        self.at = back;
        self.commands.truncate(known);
        self.pending = pending;
        Ok(false)
    }

    /// The old form of a substitution: its text is unescaped once, then read.
    fn backticks(&mut self) -> Result<(), Unreadable> {
        self.skip(1)?;
        let mut inner: Vec<char> = Vec::new();
        loop {
            match self.step()? {
                None => return Err("a backtick is not closed"),
                Some('`') => break,
                Some('\\') => match self.peek() {
                    Some(escaped @ ('`' | '\\' | '$')) => {
                        self.skip(1)?;
                        inner.push(escaped);
                    }
                    _ => inner.push('\\'),
                },
                Some(character) => inner.push(character),
            }
        }
        self.nested(|reader| {
            let depth = reader.depth;
            Reader::new(&inner, reader.commands, reader.steps, depth).list(Until::End)
        })
    }
}
