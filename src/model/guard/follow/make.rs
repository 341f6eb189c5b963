//! Rules of a Makefile or a justfile: which recipes a target comes to.
//!
//! Not its role: functions and conditions of make. Every branch counts as taken.

use std::collections::{BTreeMap, BTreeSet};

const MAX_RULES: usize = 2_000;
const MAX_EXPANDED: usize = 64 * 1024;

#[derive(Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    /// Files after `include`.
    pub includes: Vec<String>,
    variables: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct Rule {
    targets: Vec<String>,
    needs: Vec<String>,
    recipe: Vec<String>,
}

impl Rules {
    /// Adds what a text says; later texts see the variables of earlier ones.
    pub fn add(&mut self, text: &str) {
        let text = text.replace("\\\n", " ");
        for line in text.lines() {
            if self.rules.len() > MAX_RULES {
                return;
            }
            self.line(line);
        }
    }

    fn line(&mut self, line: &str) {
        if line.starts_with(['\t', ' ']) && !self.rules.is_empty() {
            let recipe = line.trim().trim_start_matches(['@', '-', '+']);
            let recipe = self.expand(recipe);
            self.rules.iter_mut().last().into_iter().for_each(|rule| rule.recipe.push(recipe.clone()));
            return;
        }
        let line = line.split(" #").next().unwrap_or(line).trim();
        let mut words = line.split_whitespace();
        match words.next() {
            None => return,
            Some(word) if word.starts_with('#') => return,
            Some("include" | "-include" | "sinclude" | "import") => {
                let files = self.expand(line.split_once(char::is_whitespace).map_or("", |(_, files)| files));
                self.includes.extend(files.split_whitespace().map(|file| file.trim_matches(['"', '\'']).to_owned()));
                return;
            }
            Some(_) => {}
        }
        if let Some((name, value)) = assignment(line) {
            let value = self.expand(value);
            self.variables.insert(name.to_owned(), value);
        } else if let Some((targets, rest)) = line.split_once(':') {
            let (needs, inline) = rest.split_once(';').unwrap_or((rest, ""));
            let list = |text: &str| self.expand(text).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let rule = Rule {
                targets: list(targets.trim_start_matches('@')),
                needs: list(needs.trim_start_matches(':')),
                recipe: Some(self.expand(inline.trim())).filter(|recipe| !recipe.is_empty()).into_iter().collect(),
            };
            self.rules.push(rule);
        }
    }

    /// Variables by their values, those of make itself by what they mean.
    fn expand(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$').filter(|_| out.len() < MAX_EXPANDED) {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let close = match rest.chars().next() {
                Some('(') => ')',
                Some('{') => '}',
                // `$$x` is the shell's, `$@` is of no interest.
                Some('$') => {
                    out.push('$');
                    rest = &rest[1..];
                    continue;
                }
                Some(_) | None => continue,
            };
            let Some(end) = rest.find(close) else { break };
            let name = &rest[1..end];
            match self.variables.get(name) {
                Some(value) => out.push_str(value),
                None if name == "MAKE" => out.push_str("make"),
                None if matches!(name, "CURDIR" | "PWD") => out.push('.'),
                None => out.push('$'),
            }
            rest = &rest[end + 1..];
        }
        out.push_str(rest);
        out
    }

    /// The first target that make takes when none is named.
    pub fn first(&self) -> Option<&str> {
        let mut targets = self.rules.iter().flat_map(|rule| &rule.targets);
        targets.find(|target| !target.starts_with('.')).map(String::as_str)
    }

    /// Recipes that some targets come to, and all targets on the way.
    pub fn reached(&self, wanted: &[String]) -> (Vec<&str>, BTreeSet<String>) {
        let (mut recipes, mut seen) = (Vec::new(), BTreeSet::new());
        let mut queue: Vec<String> = wanted.to_vec();
        while let Some(target) = queue.pop() {
            if !seen.insert(target.clone()) {
                continue;
            }
            for rule in self.rules.iter().filter(|rule| rule.makes(&target)) {
                recipes.extend(rule.recipe.iter().map(String::as_str));
                queue.extend(rule.needs.iter().cloned());
            }
        }
        let is_made = |target: &String| self.rules.iter().any(|rule| rule.targets.contains(target));
        seen.retain(is_made);
        (recipes, seen)
    }

    /// Targets that are made whatever lies in the folder.
    pub fn phony(&self) -> BTreeSet<&String> {
        let rules = self.rules.iter().filter(|rule| rule.targets.iter().any(|target| target == ".PHONY"));
        rules.flat_map(|rule| &rule.needs).collect()
    }
}

impl Rule {
    fn makes(&self, wanted: &str) -> bool {
        self.targets.iter().any(|target| match target.split_once('%') {
            Some((start, end)) => wanted.starts_with(start) && wanted.ends_with(end),
            None => target == wanted,
        })
    }
}

/// `A = b`, `A := b`, `export A ?= b`
fn assignment(line: &str) -> Option<(&str, &str)> {
    let at = line.find('=')?;
    let name = line[..at].trim_end_matches([':', '?', '+', '!', ' ', '\t']);
    let name = name.strip_prefix("export ").or(name.strip_prefix("override ")).unwrap_or(name).trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    is_name.then(|| (name, line[at + 1..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_comes_to_recipes() {
        let mut rules = Rules::default();
        rules.add("include config.mk\nS := ./scripts\n.PHONY: lint\ncheck: lint build/x ; echo $(MAKE)\n\t-@$(S)/check.sh $$x\nlint:\n\t${UNKNOWN}/x\nbuild/%:\n\tmk $@\nother:\n\tno\n");
        assert_eq!((rules.includes.as_slice(), rules.first()), (["config.mk".to_owned()].as_slice(), Some("check")));
        let (recipes, targets) = rules.reached(&["check".to_owned()]);
        assert_eq!(recipes, ["echo make", "./scripts/check.sh $x", "mk $@".replace("$@", "@").as_str(), "$/x"]);
        assert_eq!(targets, ["check", "lint"].map(str::to_owned).into());
        assert_eq!(rules.phony(), [&"lint".to_owned()].into());
    }
}
