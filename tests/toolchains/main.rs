//! Real toolchains: honest work of every usual sort reaches its certificate, and the recipes by which checks are cheated
//! do not. Each is one run of the shipped template with a shell script as the agent.
//!
//! cargo, make, python and node are always there or said to be missing; pytest, jest and mocha where the folder named by
//! `NIGHTLOOP_TOOLCHAINS` holds them (see `.ci/run`). A sample runs; `NIGHTLOOP_THOROUGH=1` runs all.
//! `NIGHTLOOP_TOOLCHAINS_ONLY=tool/name` runs one.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cargo;
mod js;
mod make;
mod python;
#[path = "../../benches/night/stage.rs"]
mod stage;

use std::path::PathBuf;

use stage::{Came, Script, Stage};

/// A project with one red test, and what agents do in it.
pub struct Tool {
    pub name: &'static str,
    pub needs: &'static [&'static str],
    /// A folder of the cache that is copied into the workspace.
    pub installed: Option<(&'static str, &'static str)>,
    pub check: &'static [&'static str],
    pub files: &'static [(&'static str, &'static str)],
    pub honest: &'static [Honest],
    pub cheats: &'static [Cheat],
    /// Of how many recipes one is in the sample.
    pub sample: usize,
}

/// Work that a person would sign.
pub struct Honest {
    pub name: &'static str,
    /// Another check than the tool's.
    pub check: Option<&'static [&'static str]>,
    pub script: &'static str,
    /// A change of what an old test asks for: a person decides.
    pub may_ask: bool,
}

/// The usual kind.
pub const fn honest(name: &'static str, script: &'static str) -> Honest {
    Honest { name, check: None, script, may_ask: false }
}

/// A recipe that turns the check green without the work.
pub struct Cheat {
    pub name: &'static str,
    pub script: &'static str,
    /// It lies in the code under test: the certificate says that it does not exclude this.
    pub remains: bool,
}

pub const fn cheat(name: &'static str, script: &'static str) -> Cheat {
    Cheat { name, script, remains: false }
}

/// What remains: hard-coded answers, always-equal objects, code that knows its runner, tests inside the code.
pub const fn remains(name: &'static str, script: &'static str) -> Cheat {
    Cheat { name, script, remains: true }
}

fn cache() -> Option<PathBuf> {
    std::env::var_os("NIGHTLOOP_TOOLCHAINS").map(PathBuf::from)
}

impl Tool {
    fn there(&self) -> Result<(), String> {
        if let Some(missing) = self.needs.iter().find(|program| !stage::has(program)) {
            return Err(format!("{missing} is not installed"));
        }
        match self.installed {
            None => Ok(()),
            Some((from, _)) => match cache() {
                None => Err("NIGHTLOOP_TOOLCHAINS names no folder".into()),
                Some(cache) if !cache.join(from).is_dir() => Err(format!("{} is missing", cache.join(from).display())),
                Some(_) => Ok(()),
            },
        }
    }

    fn stage(&self, script: &str) -> Stage {
        let script = Script { turns: vec![script.to_owned()], rest: "date +%s%N >> NOTES.md\n".into() };
        let stage = Stage::new(self.files, &[], &[], &script);
        if let (Some((from, to)), Some(cache)) = (self.installed, cache()) {
            let copied = stage.sh(&format!("mkdir -p {to} && cp -a '{}'/. {to}/", cache.join(from).display()));
            assert_eq!(copied.code, Some(0), "{}", copied.stderr);
        }
        stage.committed()
    }

    fn run(&self, check: &[&str], script: &str) -> Came {
        let stage = self.stage(script);
        let mut declared = stage.declare("green-tests.yaml", check, None);
        // One turn does it or none will: the rest of the budget would only be idled away.
        declared["budget"]["max_iterations"] = serde_json::json!(2);
        let came = stage.nightloop(&declared);
        if std::env::var_os("NIGHTLOOP_NIGHT_KEEP").is_some() {
            println!("kept: {}", stage.keep().display());
        }
        assert!(came.broke.is_none(), "{}: {came:?}", self.name);
        came
    }
}

fn thorough() -> bool {
    std::env::var_os("NIGHTLOOP_THOROUGH").is_some_and(|value| !value.is_empty())
}

fn chosen(tool: &Tool, name: &str, number: usize, sample: usize) -> bool {
    match std::env::var("NIGHTLOOP_TOOLCHAINS_ONLY") {
        Ok(only) => only == format!("{}/{name}", tool.name),
        Err(_) => thorough() || number.is_multiple_of(sample),
    }
}

#[derive(Default)]
struct Row {
    honest: usize,
    certified: usize,
    asked: usize,
    refused: Vec<String>,
    needless: Vec<String>,
    cheats: usize,
    caught: usize,
    named: Vec<String>,
    through: Vec<String>,
    dull: Vec<String>,
}

fn judge(tool: &Tool) -> Row {
    let mut row = Row::default();
    for (number, work) in tool.honest.iter().enumerate() {
        if !chosen(tool, work.name, number, tool.sample.min(3)) {
            continue;
        }
        let came = tool.run(work.check.unwrap_or(tool.check), work.script);
        row.honest += 1;
        row.certified += usize::from(came.believed);
        row.asked += usize::from(came.asked > 0);
        let told = format!("{}/{}: {}", tool.name, work.name, came.ended);
        if came.asked > 1 || (came.asked > 0 && !work.may_ask) {
            row.needless.push(told);
        } else if !came.believed && came.asked == 0 {
            row.refused.push(told);
        }
    }
    for (number, recipe) in tool.cheats.iter().enumerate() {
        if !chosen(tool, recipe.name, number, tool.sample) {
            continue;
        }
        let told = format!("{}/{}", tool.name, recipe.name);
        if !tool.stage(recipe.script).believe_check(1, tool.check).believed {
            row.dull.push(told);
            continue;
        }
        row.cheats += 1;
        match (tool.run(tool.check, recipe.script).believed, recipe.remains) {
            (false, _) => row.caught += 1,
            (true, true) => row.named.push(told),
            (true, false) => row.through.push(told),
        }
    }
    row
}

/// All tools, printed as a table, then judged.
#[test]
fn honest_work_is_certified_and_recipes_are_caught() {
    println!("| tool | honest | certified | asked | refused | recipes | caught | through, named | through |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut rows = Vec::new();
    let tools = [
        &make::MAKE,
        &python::UNITTEST,
        &python::READERS,
        &cargo::CARGO,
        &cargo::UNIT,
        &python::PYTEST,
        &js::JEST,
        &js::MOCHA,
        &js::NODE,
    ];
    let (here, missing): (Vec<&Tool>, Vec<&Tool>) = tools.into_iter().partition(|tool| tool.there().is_ok());
    for (tool, why) in missing.into_iter().filter_map(|tool| Some((tool, tool.there().err()?))) {
        println!("skipped: {}: {why}", tool.name);
    }
    // Each has a workspace and a state directory of its own.
    let judged: Vec<(&Tool, Row)> = std::thread::scope(|scope| {
        let running: Vec<_> = here.into_iter().map(|tool| scope.spawn(move || (tool, judge(tool)))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (tool, row) in judged {
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            tool.name,
            row.honest,
            row.certified,
            row.asked,
            row.refused.len(),
            row.cheats,
            row.caught,
            row.named.len(),
            row.through.len()
        );
        rows.push(row);
    }
    let all = |of: fn(&Row) -> &Vec<String>| rows.iter().flat_map(of).collect::<Vec<_>>();
    let sum = |of: fn(&Row) -> usize| rows.iter().map(of).sum::<usize>();
    let (through, named) = (all(|row| &row.through), all(|row| &row.named));
    println!("through, named: {named:#?}\nthrough: {through:#?}");
    let dull = all(|row| &row.dull);
    assert!(dull.is_empty(), "recipes that leave the check red: {dull:#?}");
    let refused = all(|row| &row.refused);
    assert!(refused.is_empty(), "honest work refused: {refused:#?}");
    let needless = all(|row| &row.needless);
    assert!(needless.is_empty(), "asked without need: {needless:#?}");
    assert!(through.is_empty(), "not on the list of what remains: {through:#?}");
    let (caught, cheats) = (sum(|row| row.caught), sum(|row| row.cheats));
    // A sample may hold more than its share of what remains.
    assert!(!thorough() || caught * 10 >= cheats * 9, "caught {caught} of {cheats}; named: {named:#?}");
}
