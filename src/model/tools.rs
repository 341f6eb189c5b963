//! What is known of the tools that check: what their words say, how they mend what they find, how they are installed.
//!
//! Role: the class of a failed check by its command and its output, the fix that the tool itself has, the program that
//! was not there. Not its role: running anything, deciding what follows.
//! Invariants: the rules are data (`assets/check-tools.yaml`); nothing that an output says becomes a command: a fix is a
//! command of the table, or the declared check with words of the table; the work is bounded by the text it gets.

mod absent;
mod command;
mod fixer;
mod table;

pub use absent::{Missing, missing};
pub use fixer::{Fix, fix};

use super::signature::Class;

/// The class of a failure, by the command that failed and by its output without colours.
pub fn class_of(argv: &[String], output: &str) -> Class {
    let table = table::table();
    let text = said(output);
    let told = table.classes.first(&text);
    // A tool that is not there has found nothing.
    told.or_else(|| by_command(argv).filter(|_| !absent::is_told(output))).unwrap_or(Class::Unknown)
}

/// The class of a concern, in its words.
pub fn class_of_words(words: &str) -> Class {
    table::table().words.first(&words.to_lowercase()).unwrap_or(Class::Unknown)
}

/// A check that is nothing but such a tool fails as it does, whatever it prints.
fn by_command(argv: &[String]) -> Option<Class> {
    let commands = command::simple(argv);
    let [only] = commands.as_slice() else { return None };
    let words = only.tool();
    let fits =
        |names: &[String]| words.len() >= names.len() && names.iter().zip(&words).all(|(name, word)| name == word);
    table::table().commands.iter().find(|(_, tools)| tools.iter().any(|names| fits(names))).map(|(class, _)| *class)
}

/// The output without the lines that only repeat a command.
fn said(output: &str) -> String {
    let echoes = &table::table().echoes;
    output.lines().map(str::trim_end).filter(|line| !echoes.is_match(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
