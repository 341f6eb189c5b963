//! Reads a shell command line: which simple commands would run, with which words and which redirections.
//!
//! It runs and expands nothing. A word is known where it is literal, and has a hole where the shell would put
//! something in (a variable, a glob, a substitution). Commands inside substitutions are read as commands of their
//! own. The grammar is loose where a shell would refuse (a stray `done`): what a shell refuses it does not run.
//!
//! Invariants: never panics and always ends, whatever the text (size, depth, steps and commands are bounded);
//! what a shell would run as a command is among the commands, or the text "cannot be read".

mod word;

pub(super) use word::{HOLE, Word};

/// The longest command line that is read.
pub(super) const MAX_BYTES: usize = 64 * 1024;
/// Substitutions, groups and quotes inside each other.
const MAX_DEPTH: usize = 40;
const MAX_COMMANDS: usize = 1_000;
/// Characters looked at, as a multiple of the text's length: going back is bounded, too.
const MAX_STEPS: usize = 40;

/// Why a text cannot be read.
pub(super) type Unreadable = &'static str;

/// A file that a command reads or writes by redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirect {
    pub writes: bool,
    pub target: Word,
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Command {
    /// `NAME=value` in front of it, or alone.
    pub assignments: Vec<(String, Word)>,
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
    /// A here-document or here-string: what it reads.
    pub input: Option<Word>,
}

/// The commands of a text, in the order in which they are written.
pub(super) fn read(text: &str) -> Result<Vec<Command>, Unreadable> {
    if text.len() > MAX_BYTES {
        return Err("it is too long");
    }
    if text.contains('\0') {
        return Err("it holds a zero byte");
    }
    let mut commands = Vec::new();
    let characters: Vec<char> = text.chars().collect();
    let mut steps = characters.len().saturating_add(100).saturating_mul(MAX_STEPS);
    let mut reader = Reader::new(&characters, &mut commands, &mut steps, 0);
    reader.list(Until::End)?;
    commands.retain(|command| *command != Command::default());
    Ok(commands)
}

/// Where a list of commands ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    End,
    /// `)`
    Closed,
    /// `;;` or `esac`
    Case,
}

/// What a first word turned out to be.
enum First {
    /// A keyword that a command may follow.
    Again,
    /// `esac`.
    Esac,
    Done,
}

/// A here-document whose text comes after the line.
#[derive(Clone)]
struct Pending {
    command: usize,
    delimiter: String,
    quoted: bool,
    strip_tabs: bool,
}

struct Reader<'a> {
    text: &'a [char],
    at: usize,
    depth: usize,
    commands: &'a mut Vec<Command>,
    steps: &'a mut usize,
    pending: Vec<Pending>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a [char], commands: &'a mut Vec<Command>, steps: &'a mut usize, depth: usize) -> Self {
        Self { text, at: 0, depth, commands, steps, pending: Vec::new() }
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn peek_at(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn looks_at(&self, token: &str) -> bool {
        token.chars().enumerate().all(|(ahead, character)| self.peek_at(ahead) == Some(character))
    }

    /// Goes on by one character. Everything that repeats comes through here.
    fn step(&mut self) -> Result<Option<char>, Unreadable> {
        *self.steps = self.steps.checked_sub(1).ok_or("it is too involved")?;
        let character = self.peek();
        self.at += usize::from(character.is_some());
        Ok(character)
    }

    fn skip(&mut self, count: usize) -> Result<(), Unreadable> {
        for _ in 0..count {
            self.step()?;
        }
        Ok(())
    }

    /// Reads something that stands inside something else.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Unreadable>) -> Result<T, Unreadable> {
        if self.depth >= MAX_DEPTH {
            return Err("it is nested too deeply");
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Blanks, joined lines and comments; newlines too, if asked. A newline brings the here-documents.
    fn blanks(&mut self, newlines: bool) -> Result<(), Unreadable> {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.skip(1)?,
                Some('\\') if self.peek_at(1) == Some('\n') => self.skip(2)?,
                Some('#') if self.starts_a_word() => {
                    while self.peek().is_some_and(|character| character != '\n') {
                        self.skip(1)?;
                    }
                }
                Some('\n') if newlines => {
                    self.skip(1)?;
                    self.here_documents()?;
                }
                _ => return Ok(()),
            }
        }
    }

    /// A `#` in the middle of a word is no comment.
    fn starts_a_word(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.text.get(at));
        before.is_none_or(|character| matches!(character, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')'))
    }

    fn list(&mut self, until: Until) -> Result<(), Unreadable> {
        loop {
            self.blanks(true)?;
            match self.peek() {
                None if until == Until::End => return Ok(()),
                None => return Err("a group or a substitution is not closed"),
                Some(')') if until == Until::Closed => return self.skip(1),
                Some(')') => return Err("a `)` closes nothing"),
                Some(';') if self.peek_at(1) == Some(';') => {
                    if until != Until::Case {
                        return Err("`;;` stands outside of `case`");
                    }
                    return self.skip(if self.peek_at(2) == Some('&') { 3 } else { 2 });
                }
                Some(';') if self.peek_at(1) == Some('&') && until == Until::Case => return self.skip(2),
                Some(';' | '|') => self.skip(1)?,
                Some('&') if self.peek_at(1) != Some('>') => self.skip(1)?,
                Some('(') => self.group()?,
                Some(_) => match self.simple()? {
                    First::Again | First::Done => {}
                    First::Esac if until == Until::Case => {
                        // Seen by whoever reads the case: it looks at the word again.
                        self.at -= 4;
                        return Ok(());
                    }
                    First::Esac => return Err("`esac` stands outside of `case`"),
                },
            }
        }
    }

    /// `( … )`, or `(( … ))`, then redirections.
    fn group(&mut self) -> Result<(), Unreadable> {
        if self.peek_at(1) == Some('(') && self.arithmetic(1)? {
            return self.after_compound();
        }
        self.skip(1)?;
        self.nested(|reader| reader.list(Until::Closed))?;
        self.after_compound()
    }

    /// What may follow `)`, `}`, `fi`, `done`: redirections.
    fn after_compound(&mut self) -> Result<(), Unreadable> {
        let index = self.new_command()?;
        let mut command = Command::default();
        loop {
            self.blanks(false)?;
            if !self.redirect(index, &mut command)? {
                self.put(index, command);
                return Ok(());
            }
        }
    }

    fn new_command(&mut self) -> Result<usize, Unreadable> {
        if self.commands.len() >= MAX_COMMANDS {
            return Err("it has too many commands");
        }
        self.commands.push(Command::default());
        Ok(self.commands.len() - 1)
    }

    /// Keeps what a here-document may have brought already.
    fn put(&mut self, index: usize, mut command: Command) {
        if let Some(place) = self.commands.get_mut(index) {
            command.input = command.input.or_else(|| place.input.take());
            *place = command;
        }
    }

    fn simple(&mut self) -> Result<First, Unreadable> {
        let index = self.new_command()?;
        let mut command = Command::default();
        loop {
            self.blanks(false)?;
            if self.redirect(index, &mut command)? {
                continue;
            }
            let Some(word) = self.word()? else { break };
            let bare = command.words.is_empty() && command.assignments.is_empty();
            if bare && command.redirects.is_empty() {
                if let Some(first) = self.keyword(&word)? {
                    return Ok(first);
                }
                if self.is_function(&word)? {
                    return Ok(First::Again);
                }
            }
            match word.assigned().filter(|_| command.words.is_empty()) {
                Some(name) => command.assignments.push((name, word)),
                None => command.words.push(word),
            }
        }
        if self.peek() == Some('(') {
            return Err("a `(` stands where no group can begin");
        }
        // The caller would look at the same character for ever.
        if command == Command::default() && self.peek().is_some() {
            return Err("an operator stands where a command should");
        }
        self.put(index, command);
        Ok(First::Done)
    }

    /// `name ()`: what follows is its body.
    fn is_function(&mut self, word: &Word) -> Result<bool, Unreadable> {
        let back = self.at;
        self.blanks(false)?;
        if self.peek() == Some('(') && word.literal().is_some() {
            self.skip(1)?;
            self.blanks(false)?;
            if self.peek() == Some(')') {
                self.skip(1)?;
                return Ok(true);
            }
        }
        self.at = back;
        Ok(false)
    }

    fn keyword(&mut self, word: &Word) -> Result<Option<First>, Unreadable> {
        let Some(keyword) = word.keyword() else { return Ok(None) };
        Ok(Some(match keyword {
            "if" | "then" | "elif" | "else" | "while" | "until" | "do" | "!" | "{" | "coproc" => First::Again,
            "time" => {
                self.blanks(false)?;
                if self.looks_at("-p ") {
                    self.skip(2)?;
                }
                First::Again
            }
            "fi" | "done" | "}" => {
                self.after_compound()?;
                First::Done
            }
            "esac" => First::Esac,
            "for" | "select" => {
                self.for_words()?;
                First::Done
            }
            "case" => {
                self.nested(Self::case)?;
                First::Done
            }
            "function" => {
                self.blanks(false)?;
                if let Some(name) = self.word()? {
                    self.is_function(&name)?;
                }
                First::Again
            }
            "[[" => {
                self.condition()?;
                First::Done
            }
            _ => return Ok(None),
        }))
    }

    /// `for x in a b c`, `for ((…))`: the words run nothing, but may hold substitutions.
    fn for_words(&mut self) -> Result<(), Unreadable> {
        self.blanks(false)?;
        if self.looks_at("((") {
            return if self.arithmetic(1)? { Ok(()) } else { Err("a `for ((` is not closed") };
        }
        let named = self.word()?;
        let Some(variable) = named else { return Err("a `for` names no variable") };
        // It is an assignment like any other: `for PATH in …` steers what follows.
        let name = variable.literal().unwrap_or_default().to_owned();
        self.commands.push(Command { assignments: vec![(name, variable)], ..Command::default() });
        self.blanks(true)?;
        let back = self.at;
        match self.word()? {
            Some(word) if word.keyword() == Some("in") => {}
            _ => {
                self.at = back;
                return Ok(());
            }
        }
        loop {
            self.blanks(false)?;
            if self.word()?.is_none() {
                return match self.peek() {
                    Some(';' | '\n' | '&') | None => Ok(()),
                    Some(_) => Err("a `for` lists something that is no word"),
                };
            }
        }
    }

    fn case(&mut self) -> Result<(), Unreadable> {
        self.blanks(false)?;
        self.word()?.ok_or("a `case` names no word")?;
        self.blanks(true)?;
        if self.word()?.and_then(|word| word.keyword().map(|keyword| keyword == "in")) != Some(true) {
            return Err("a `case` has no `in`");
        }
        loop {
            self.blanks(true)?;
            if self.peek() == Some('(') {
                self.skip(1)?;
                self.blanks(false)?;
            } else if self.esac()? {
                return self.after_compound();
            }
            loop {
                self.word()?.ok_or("a `case` has no pattern")?;
                self.blanks(false)?;
                match self.step()? {
                    Some('|') => self.blanks(false)?,
                    Some(')') => break,
                    _ => return Err("a pattern of `case` is not closed"),
                }
            }
            self.list(Until::Case)?;
        }
    }

    /// The word `esac`, and nothing else.
    fn esac(&mut self) -> Result<bool, Unreadable> {
        let back = self.at;
        if self.peek() == Some('e') && self.word()?.is_some_and(|word| word.keyword() == Some("esac")) {
            return Ok(true);
        }
        self.at = back;
        Ok(false)
    }

    /// `[[ … ]]` is one command, whatever operators stand in it.
    fn condition(&mut self) -> Result<(), Unreadable> {
        let index = self.new_command()?;
        let mut command = Command { words: vec![Word::known("[[")], ..Command::default() };
        loop {
            self.blanks(true)?;
            match self.word()? {
                Some(word) => {
                    let ends = word.keyword() == Some("]]");
                    command.words.push(word);
                    if ends {
                        break;
                    }
                }
                None => match self.step()? {
                    Some(operator) => command.words.push(Word::known(&operator.to_string())),
                    None => return Err("a `[[` is not closed"),
                },
            }
        }
        self.put(index, command);
        self.after_compound()
    }

    /// One redirection, if there is one here.
    fn redirect(&mut self, index: usize, command: &mut Command) -> Result<bool, Unreadable> {
        let digits = (0..).take_while(|ahead| self.peek_at(*ahead).is_some_and(|c| c.is_ascii_digit())).count();
        let (first, second) = (self.peek_at(digits), self.peek_at(digits + 1));
        let both = digits == 0 && first == Some('&') && second == Some('>');
        if !both && (!matches!(first, Some('<' | '>')) || second == Some('(')) {
            return Ok(false);
        }
        self.skip(digits)?;
        const OPERATORS: [(&str, bool); 12] = [
            ("<<<", false),
            ("<<-", false),
            ("<<", false),
            ("<&", false),
            ("<>", true),
            ("<", false),
            ("&>>", true),
            ("&>", true),
            (">>", true),
            (">|", true),
            (">&", true),
            (">", true),
        ];
        let found = OPERATORS.iter().find(|(operator, _)| self.looks_at(operator));
        let (operator, writes) = found.copied().ok_or("a redirection cannot be read")?;
        self.skip(operator.len())?;
        self.blanks(false)?;
        let target = self.word()?.ok_or("a redirection has no target")?;
        match operator {
            "<<<" => command.input = Some(target),
            "<<" | "<<-" => self.pending.push(Pending {
                command: index,
                quoted: target.quoted(),
                delimiter: target.raw().to_owned(),
                strip_tabs: operator == "<<-",
            }),
            // A copied or closed handle is no file.
            "<&" | ">&" if target.literal().is_some_and(is_handle) => {}
            _ => command.redirects.push(Redirect { writes, target }),
        }
        if both {
            // To a plain sh this is `&` and then `>`: what follows would be a command of its own.
            self.blanks(false)?;
            if !matches!(self.peek(), None | Some(';' | '&' | '|' | ')' | '\n')) {
                return Err("shells do not agree on what follows `&>`");
            }
        }
        Ok(true)
    }

    /// The texts of the here-documents of the line that just ended.
    fn here_documents(&mut self) -> Result<(), Unreadable> {
        for pending in std::mem::take(&mut self.pending) {
            let mut body: Vec<char> = Vec::new();
            while self.peek().is_some() {
                let start = self.at;
                while self.step()?.is_some_and(|character| character != '\n') {}
                let line = self.text.get(start..self.at).unwrap_or_default();
                let line = match line.iter().position(|c| *c != '\t').filter(|_| pending.strip_tabs) {
                    Some(first) => line.get(first..).unwrap_or_default(),
                    None => line,
                };
                let bare = line.strip_suffix(&['\n']).unwrap_or(line);
                if bare.iter().copied().eq(pending.delimiter.chars()) {
                    break;
                }
                body.extend(line);
            }
            let word = if pending.quoted { Word::known(&body.iter().collect::<String>()) } else { self.body(&body)? };
            if let Some(command) = self.commands.get_mut(pending.command) {
                command.input = Some(word);
            }
        }
        Ok(())
    }
}

/// `1`, `-`, `1-`.
fn is_handle(target: &str) -> bool {
    let digits = target.strip_suffix('-').unwrap_or(target);
    digits.chars().all(|character| character.is_ascii_digit())
}

#[cfg(test)]
mod tests;
