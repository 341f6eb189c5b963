//! The shape of the house: a playbook is a room, no knots, no long functions, events stand with their families.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{self, Source, block_end};

/// Who may name a playbook: the table of names, the one place that chooses, and each room its own.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("model/loop_file/playbook.rs", &["Swarm", "Value", "Prd", "Micro"]),
    ("playbook/mod.rs", &["Swarm", "Value", "Prd", "Micro"]),
    ("playbook/swarm.rs", &["Swarm"]),
    ("playbook/value.rs", &["Value"]),
    ("playbook/passes.rs", &["Prd", "Micro"]),
];

#[test]
fn one_place_chooses_a_playbook() {
    for source in source::all() {
        let allowed = MAY_NAME.iter().find(|(name, _)| *name == source.name).map_or(&[][..], |(_, names)| names);
        for name in ["Swarm", "Value", "Prd", "Micro"] {
            let mentions = words_after(&source.code, "Playbook::").filter(|word| *word == name).count();
            let most = match source.name.as_str() {
                // Variant by variant in the table; nothing else is a branch.
                "model/loop_file/playbook.rs" => 1,
                _ => usize::from(allowed.contains(&name)),
            };
            assert!(mentions <= most, "{}: {mentions} times Playbook::{name}: ask the playbook instead", source.name);
        }
    }
}

/// A fifth playbook is its room, a row in the table of names and a line in the place that chooses.
#[test]
fn a_playbook_costs_its_room_and_two_files() {
    let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mentions = |file: &std::path::PathBuf| {
        let text = std::fs::read_to_string(file).expect("readable").to_lowercase();
        text.split(|c: char| !c.is_alphanumeric()).any(|word| word == "toy")
    };
    let names = crate::rust_files(&src).into_iter().filter(mentions);
    let names: Vec<String> = names.map(|file| file.strip_prefix(&src).expect("below").display().to_string()).collect();
    let (room, outside): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.starts_with("playbook/toy"));
    assert!(!room.is_empty() && room.len() + outside.len() <= 10, "{room:?}");
    assert_eq!(
        BTreeSet::from_iter(outside),
        ["model/loop_file/playbook.rs", "playbook/mod.rs"].map(String::from).into()
    );
}

/// Identifiers that follow a prefix directly.
fn words_after<'a>(code: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    let end = |rest: &str| rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    code.split(prefix).skip(1).map(move |rest| &rest[..end(rest)])
}

/// Files that lean on each other in a circle, at most so many.
const LARGEST_KNOT: usize = 4;

#[test]
fn no_module_is_a_knot() {
    let sources = source::all();
    let modules: BTreeSet<&str> = sources.iter().map(|source| source.module.as_str()).collect();
    let uses: BTreeMap<&str, BTreeSet<&str>> =
        sources.iter().map(|source| (source.module.as_str(), used_by(source, &modules))).collect();
    for knot in knots(&uses) {
        assert!(knot.len() <= LARGEST_KNOT, "{} files in a knot: {}", knot.len(), knot.join(" "));
    }
}

/// Modules of the same top module that a file leans on. Handing on (`pub use`) is no leaning.
fn used_by<'a>(source: &'a Source, modules: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let top = source.module.split("::").next();
    let mut paths = Vec::new();
    let mut body = String::new();
    let mut lines = source.code.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        let is_reexport = trimmed.starts_with("pub") && trimmed.contains(" use ");
        if !trimmed.starts_with("use ") && !is_reexport {
            body.push_str(line);
            body.push('\n');
            continue;
        }
        let mut statement = trimmed.to_owned();
        while !statement.contains(';') {
            let Some(more) = lines.next() else { break };
            statement.push_str(more.trim());
        }
        if !is_reexport {
            let path = statement.trim_start_matches("use ").split(';').next().unwrap_or_default();
            paths.extend(expanded(path).into_iter().filter_map(|path| resolved(&source.module, &path, modules, true)));
        }
    }
    for path in absolute_paths(&body) {
        paths.extend(resolved(&source.module, path, modules, false));
    }
    paths.into_iter().filter(|path| *path != source.module && path.split("::").next() == top).collect()
}

/// `a::{b, c::{d, e}}` as one path each.
fn expanded(path: &str) -> Vec<String> {
    let Some((prefix, rest)) = path.split_once('{') else { return vec![path.trim().to_owned()] };
    let body = rest.trim_end().strip_suffix('}').unwrap_or(rest);
    let (mut parts, mut depth) = (vec![String::new()], 0usize);
    for c in body.chars() {
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            _ => {
                depth = if c == '{' { depth + 1 } else { depth - usize::from(c == '}') };
                parts.last_mut().expect("never empty").push(c);
            }
        }
    }
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    parts.flat_map(|part| expanded(&format!("{}{part}", prefix.trim()))).collect()
}

/// Paths in the body that begin with `crate`, `super` or `self`.
fn absolute_paths(body: &str) -> impl Iterator<Item = &str> {
    let words = body.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    words.filter(|word| ["crate::", "super::", "self::"].iter().any(|root| word.starts_with(root)))
}

/// The module that a path leads into, as far as there are files.
fn resolved<'a>(from: &str, path: &str, modules: &BTreeSet<&'a str>, in_use: bool) -> Option<&'a str> {
    let path = path.split(" as ").next().unwrap_or_default();
    let mut rest: Vec<&str> = path.split("::").map(str::trim).collect();
    let mut at: Vec<&str> = from.split("::").collect();
    match rest.first().copied()? {
        "crate" => at.clear(),
        "super" => {
            while rest.first() == Some(&"super") {
                rest.remove(0);
                at.pop();
            }
            rest.insert(0, "");
        }
        "self" => {}
        child if in_use && modules.contains(format!("{from}::{child}").as_str()) => rest.insert(0, ""),
        _ => return None,
    }
    at.extend(&rest[1..]);
    while !at.is_empty() {
        if let Some(found) = modules.get(at.join("::").as_str()) {
            return Some(found);
        }
        at.pop();
    }
    None
}

/// Groups whose members all reach each other.
fn knots<'a>(uses: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<Vec<&'a str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = uses.keys().map(|start| (*start, reached(start, uses))).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for module in uses.keys() {
        let mutual = |other: &&str| reach[module].contains(*other) && reach[other].contains(*module);
        let knot: Vec<&str> = uses.keys().copied().filter(mutual).collect();
        if knot.len() > 1 && seen.insert(knot.clone()) {
            found.push(knot);
        }
    }
    found
}

fn reached<'a>(start: &'a str, uses: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(next) = open.pop() {
        open.extend(uses[next].iter().copied().filter(|used| seen.insert(*used)));
    }
    seen
}

#[test]
fn paths_are_read_as_the_compiler_reads_them() {
    assert_eq!(
        expanded("super::a::{self, b::{C, d}, E}"),
        ["super::a::self", "super::a::b::C", "super::a::b::d", "super::a::E"]
    );
    let modules: BTreeSet<&str> = ["m", "m::a", "m::a::b", "m::c"].into();
    assert_eq!(resolved("m::a::b", "super::super::c::X", &modules, true), Some("m::c"));
    assert_eq!(resolved("m::c", "crate::m::a::b::f", &modules, false), Some("m::a::b"));
    assert_eq!(resolved("m::a", "b::F as G", &modules, true), Some("m::a::b"));
    assert_eq!(resolved("m::a", "std::fs", &modules, true), None);
    let uses = [("a", ["b"].into()), ("b", ["c"].into()), ("c", ["a"].into()), ("d", ["a"].into())].into();
    assert_eq!(knots(&uses), [["a", "b", "c"]]);
}

const LONGEST_FUNCTION: usize = 80;
/// Longer functions, how long they may be, and why.
const LONG_FUNCTIONS: &[(&str, &str, usize, &str)] =
    &[("machine/forbidden.rs", "violation", 105, "a table: one detector per forbidden state")];

#[test]
fn functions_fit_a_screen() {
    let mut too_long = Vec::new();
    for source in source::all() {
        for (name, lines) in functions(&source.code) {
            let listed = LONG_FUNCTIONS.iter().find(|(file, function, ..)| *file == source.name && *function == name);
            if lines > listed.map_or(LONGEST_FUNCTION, |(_, _, most, _)| *most) {
                too_long.push(format!("{}: `{name}` has {lines} lines", source.name));
            }
        }
    }
    assert!(too_long.is_empty(), "{}", too_long.join("\n"));
}

/// Names and lengths.
fn functions(code: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let name = &code[at + 3..];
        let name = &name[..name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len())];
        let mut depth = 0usize;
        let body = code[at..].char_indices().find(|(_, c)| {
            match c {
                '(' | '[' => depth += 1,
                ')' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && matches!(c, '{' | ';')
        });
        if let Some((body, '{')) = body.filter(|_| !name.is_empty()) {
            let end = at + body + block_end(&code[at + body..]);
            found.push((name, code[at..end].matches('\n').count() + 1));
        }
    }
    found
}

#[test]
fn lengths_of_functions_are_counted() {
    let code = "fn a(x: [u8; 2]) -> u8 {\n 1\n}\nfn b();\nlet f: fn(u8) = c;\npub fn d() {}\n";
    assert_eq!(functions(code), [("a", 3), ("d", 1)]);
}

/// An event is known to its family and to whoever needs this one. Who names most of a family has listed it, and has to
/// be visited whenever an event is added: beyond the family's own files at most two do.
#[test]
fn events_are_listed_in_two_places_at_most() {
    const FAMILIES: &[&str] =
        &["RunEvent", "IterationEvent", "CallEvent", "OperatorEvent", "GitEvent", "ValueEvent", "PassEvent"];
    // With the family: its table, its fold and legality, its rooms, and the state of a call, which is folded by itself.
    const AT_HOME: &[&str] =
        &["machine/event/", "machine/family/", "machine/call.rs", "playbook/value", "playbook/passes"];
    let sources = source::all();
    for family in FAMILIES {
        let prefix = format!("{family}::");
        let home = sources.iter().find(|source| source.code.contains(&format!("    {family} {{\n")));
        let home = home.unwrap_or_else(|| panic!("{family} has no table"));
        let table = home.code.split(&format!("    {family} {{\n")).nth(1).unwrap_or_default();
        let rows = table.lines().take_while(|line| line.trim() != "}");
        let variants: BTreeSet<&str> =
            rows.filter_map(|row| row.split_once(" = ")).map(|(name, _)| name.trim()).collect();
        assert!(variants.len() > 2, "the table of {family} was not found");
        let lists = |source: &&Source| {
            let named = words_after(&source.code, &prefix).filter(|word| variants.contains(word));
            named.collect::<BTreeSet<_>>().len() > variants.len().div_ceil(2)
        };
        let foreign = sources.iter().filter(|source| !AT_HOME.iter().any(|place| source.name.starts_with(place)));
        let lists: Vec<&str> = foreign.filter(lists).map(|source| source.name.as_str()).collect();
        assert!(lists.len() <= 2, "most events of {family} are listed in {}", lists.join(", "));
    }
}
