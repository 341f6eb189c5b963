//! All themes: the shipped ones and the operator's own.
//!
//! Not here: watching files. Invariants: the shipped themes are always there; a broken file is a problem to
//! tell, never a reason not to start, and what it said before goes on to hold.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::model::diagnose::nearest;

use super::background::Background;
use super::file::{self, Problem, ThemeFile};
use super::look::{Ground, Look, Theme};
use super::{Role, kebab};

/// In the order in which they come up.
const SHIPPED: &[(&str, &str)] = &[
    ("dark", include_str!("../../../themes/dark.yaml")),
    ("light", include_str!("../../../themes/light.yaml")),
    ("high-contrast", include_str!("../../../themes/high-contrast.yaml")),
    ("colour-blind", include_str!("../../../themes/colour-blind.yaml")),
    ("solarized", include_str!("../../../themes/solarized.yaml")),
    ("mono", include_str!("../../../themes/mono.yaml")),
];

const LARGEST_FILE: u64 = 64 << 10;
const MOST_FILES: usize = 100;

/// One file, read or not.
#[derive(Debug, Clone, PartialEq)]
struct Source {
    file: String,
    text: String,
    theme: ThemeFile,
}

/// The themes by name.
#[derive(Debug, Clone, Default)]
pub struct Themes {
    dir: Option<PathBuf>,
    own: BTreeMap<String, Source>,
    /// Shipped ones first, then the operator's by name.
    themes: Vec<Theme>,
}

impl Themes {
    /// The shipped themes and those of a directory.
    pub fn load(user_dir: Option<&Path>) -> (Self, Vec<Problem>) {
        let mut themes = Self { dir: user_dir.map(Path::to_owned), ..Self::default() };
        let problems = themes.reload();
        (themes, problems)
    }

    /// Reads the directory again. A file that is broken now keeps what it said before.
    pub fn reload(&mut self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let files = self.dir.as_deref().map(|dir| read_dir(dir, &mut problems)).unwrap_or_default();
        self.replace(files, &mut problems);
        problems
    }

    /// Only what is shipped.
    pub fn shipped() -> &'static Self {
        static SHIPPED_THEMES: OnceLock<Themes> = OnceLock::new();
        SHIPPED_THEMES.get_or_init(|| Self::load(None).0)
    }

    pub fn all(&self) -> &[Theme] {
        &self.themes
    }

    pub fn names(&self) -> Vec<&str> {
        self.themes.iter().map(Theme::name).collect()
    }

    pub fn get(&self, name: &str) -> Option<&Theme> {
        self.themes.iter().find(|theme| theme.name() == name)
    }

    /// The one that comes after, round and round.
    pub fn after(&self, name: &str) -> Option<&Theme> {
        let at = self.themes.iter().position(|theme| theme.name() == name);
        at.and_then(|at| self.themes.get(at + 1)).or(self.themes.first())
    }

    /// What to begin with on such a terminal.
    pub fn for_terminal(&self, background: Option<Background>) -> Option<&Theme> {
        let name = if background == Some(Background::Light) { "light" } else { "dark" };
        self.get(name).or(self.themes.first())
    }

    fn replace(&mut self, files: Vec<(String, String, String)>, problems: &mut Vec<Problem>) {
        let mut own = BTreeMap::new();
        for (name, file, text) in files {
            match file::parse(&file, &text) {
                Ok(theme) => {
                    own.insert(name, Source { file, text, theme });
                }
                Err(problem) => {
                    problems.push(problem);
                    if let Some(before) = self.own.remove(&name) {
                        own.insert(name, before);
                    }
                }
            }
        }
        let mut sources = BTreeMap::new();
        let mut order: Vec<String> = Vec::new();
        for (name, text) in SHIPPED {
            let file = format!("themes/{name}.yaml");
            match file::parse(&file, text) {
                Ok(theme) => {
                    sources.insert((*name).to_owned(), Source { file, text: (*text).to_owned(), theme });
                    order.push((*name).to_owned());
                }
                Err(problem) => problems.push(problem),
            }
        }
        order.extend(own.keys().filter(|name| !sources.contains_key(*name)).cloned());
        let shipped = sources.clone();
        sources.extend(own.clone());
        self.own = own;
        self.themes.clear();
        for name in order {
            match resolve(&name, &sources, &shipped) {
                Ok(theme) => self.themes.push(theme),
                Err(problem) => {
                    problems.push(problem);
                    // A shipped name always means something.
                    self.themes.extend(resolve(&name, &shipped, &shipped));
                }
            }
        }
    }
}

/// Follows the inheritance of a theme and lays the looks over each other.
fn resolve(
    name: &str,
    sources: &BTreeMap<String, Source>,
    shipped: &BTreeMap<String, Source>,
) -> Result<Theme, Problem> {
    let mut chain: Vec<(&str, &Source)> = Vec::new();
    let mut next = Some(name);
    while let Some(current) = next {
        // A file may stand in for the shipped theme of its own name and still build on it.
        let again = chain.iter().any(|(seen, _)| *seen == current);
        let standing_in = again
            && chain.last().is_some_and(|(child, _)| *child == current)
            && chain.iter().filter(|(seen, _)| *seen == current).count() == 1
            && shipped.get(current).is_some_and(|base| chain.last().is_some_and(|(_, child)| *child != base));
        let source = if standing_in { shipped.get(current) } else { sources.get(current) };
        let child = chain.last().map(|(_, source)| *source);
        let told = |what: String| {
            let child = child.or(source);
            Problem {
                file: child.map(|source| source.file.clone()).unwrap_or_default(),
                line: child.and_then(|source| file::line_of_key(&source.text, "inherits")),
                what,
            }
        };
        if again && !standing_in {
            let round: Vec<_> = chain.iter().map(|(seen, _)| *seen).chain([current]).collect();
            return Err(told(format!("inherits in a circle: {}", round.join(" → "))));
        }
        let Some(source) = source else {
            let hint = nearest(current, sources.keys().map(String::as_str));
            let hint = hint.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(told(format!("inherits from `{current}`, which does not exist{hint}")));
        };
        chain.push((current, source));
        next = source.theme.inherits.as_deref().or_else(|| root_of(source, shipped));
    }
    let mut ground = Ground::default();
    let mut looks = vec![Look::default(); Role::ALL.len()];
    for (_, source) in chain.iter().rev() {
        let written = &source.theme;
        ground.appearance = written.appearance.or(ground.appearance);
        ground.background = written.background.map(|paint| paint.0).or(ground.background);
        ground.background16 = written.background16.map(|paint| paint.0).or(ground.background16);
        ground.paint = written.paint.unwrap_or(ground.paint);
        for (role, look) in &written.roles.0 {
            if let Some(place) = looks.get_mut(*role as usize) {
                *place = Look::of(look);
            }
        }
    }
    Ok(Theme::new(name.to_owned(), ground, looks.into()))
}

/// An own theme that inherits from nothing still needs every role: those of the shipped one of its kind.
fn root_of(source: &Source, shipped: &BTreeMap<String, Source>) -> Option<&'static str> {
    if shipped.values().any(|base| base == source) {
        return None;
    }
    match source.theme.appearance {
        Some(Background::Light) => Some("light"),
        Some(Background::Dark) => Some("dark"),
        None => Some("mono"),
    }
}

/// Name, file and text of each theme in a directory. A directory that is not there holds none.
fn read_dir(dir: &Path, problems: &mut Vec<Problem>) -> Vec<(String, String, String)> {
    let mut problem = |path: &Path, what: String| {
        problems.push(Problem { file: path.to_string_lossy().into_owned(), line: None, what });
    };
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            problem(dir, format!("cannot be read: {error}"));
            return Vec::new();
        }
    };
    let is_theme = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(is_theme).collect();
    paths.sort();
    if paths.len() > MOST_FILES {
        problem(dir, format!("holds {} themes; only the first {MOST_FILES} are read", paths.len()));
        paths.truncate(MOST_FILES);
    }
    let mut files = Vec::new();
    for path in paths {
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        if !is_name(&name) {
            problem(&path, "name it with lower-case letters, digits and `-` only".to_owned());
            continue;
        }
        match read_file(&path) {
            Ok(text) => files.push((name, path.to_string_lossy().into_owned(), text)),
            Err(error) => problem(&path, format!("cannot be read: {error}")),
        }
    }
    files
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=40).contains(&name.len()) && name.chars().all(plain) && kebab(name) == name
}

fn read_file(path: &Path) -> std::io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    fs::File::open(path)?.take(LARGEST_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST_FILE {
        return Err(std::io::Error::other(format!("it is larger than {} KiB", LARGEST_FILE >> 10)));
    }
    Ok(text)
}

/// Files as they would be read, for tests and previews.
impl Themes {
    #[cfg(test)]
    fn of(files: &[(&str, &str)]) -> (Self, Vec<String>) {
        let mut themes = Self::default();
        let problems = themes.put(files);
        (themes, problems)
    }

    #[cfg(test)]
    fn put(&mut self, files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), format!("{name}.yaml"), (*text).to_owned()));
        let mut problems = Vec::new();
        self.replace(files.collect(), &mut problems);
        problems.iter().map(Problem::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::Color;

    use super::*;

    #[test]
    fn everything_shipped_is_sound_and_complete() {
        let (themes, problems) = Themes::load(None);
        assert_eq!(problems, []);
        let names: Vec<_> = SHIPPED.iter().map(|(name, _)| *name).collect();
        assert_eq!(themes.names(), names);
        let on_disk = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("themes")).unwrap().count();
        assert_eq!(on_disk, SHIPPED.len(), "a theme lies in themes/ that is not shipped");
        for (name, text) in SHIPPED {
            let written = file::parse(name, text).unwrap();
            if written.inherits.is_none() {
                for role in Role::ALL {
                    assert!(written.roles.0.contains_key(role), "{name} says nothing about {}", role.name());
                }
            }
        }
    }

    #[test]
    fn own_themes_build_on_others() {
        let (themes, problems) = Themes::of(&[
            ("night", "inherits: dusk\nroles:\n  good: { fg: 46 }\n"),
            ("dusk", "inherits: dark\nroles:\n  good: { fg: 1 }\n  bad: { fg: 2 }\n"),
        ]);
        assert_eq!(problems, [""; 0]);
        let night = themes.get("night").unwrap();
        assert_eq!(night.style(Role::Good).fg, Some(Color::Indexed(46)));
        assert_eq!(night.style(Role::Bad).fg, Some(Color::Indexed(2)));
        assert_eq!(night.style(Role::Title), Theme::dark().style(Role::Title));
        assert_eq!(night.appearance(), Some(Background::Dark));
    }

    #[test]
    fn an_own_theme_without_parent_has_every_role() {
        let (themes, problems) = Themes::of(&[("paper", "appearance: light\nroles: {}\n")]);
        assert_eq!(problems, [""; 0]);
        let light = themes.get("light").unwrap();
        let paper = themes.get("paper").unwrap();
        assert!(Role::ALL.iter().all(|role| paper.style(*role) == light.style(*role)));
    }

    #[test]
    fn an_own_file_may_replace_a_shipped_theme_and_build_on_it() {
        let (themes, problems) = Themes::of(&[("dark", "inherits: dark\nroles:\n  good: { fg: 46 }\n")]);
        assert_eq!(problems, [""; 0]);
        assert_eq!(themes.get("dark").unwrap().style(Role::Good).fg, Some(Color::Indexed(46)));
        assert_eq!(themes.get("dark").unwrap().style(Role::Bad), Theme::dark().style(Role::Bad));
        assert_eq!(themes.get("colour-blind").unwrap().style(Role::Muted), Theme::dark().style(Role::Muted));
    }

    #[test]
    fn circles_and_strangers_are_problems() {
        let (themes, problems) = Themes::of(&[
            ("one", "roles: {}\ninherits: two\n"),
            ("two", "inherits: one\n"),
            ("lost", "inherits: drak\n"),
        ]);
        assert_eq!(
            problems,
            [
                "lost.yaml:1: inherits from `drak`, which does not exist; did you mean `dark`?",
                "two.yaml:1: inherits in a circle: one → two → one",
                "one.yaml:2: inherits in a circle: two → one → two",
            ]
        );
        assert_eq!(themes.names().len(), SHIPPED.len());
    }

    #[test]
    fn a_broken_file_keeps_what_it_said_before() {
        let (mut themes, _) = Themes::of(&[("mine", "inherits: dark\nroles:\n  good: { fg: 46 }\n")]);
        let problems = themes.put(&[("mine", "inherits: dark\nroles:\n  goood: { fg: 47 }\n")]);
        assert_eq!(problems, ["mine.yaml:3: roles: unknown role `goood`; did you mean `good`?"]);
        assert_eq!(themes.get("mine").unwrap().style(Role::Good).fg, Some(Color::Indexed(46)));
        assert!(themes.put(&[]).is_empty());
        assert!(themes.get("mine").is_none());
    }

    #[test]
    fn cycling_comes_round() {
        let (themes, _) = Themes::load(None);
        let mut name = "dark".to_owned();
        let mut seen = Vec::new();
        for _ in 0..SHIPPED.len() {
            seen.push(name.clone());
            name = themes.after(&name).unwrap().name().to_owned();
        }
        assert_eq!(name, "dark");
        assert_eq!(seen, themes.names());
        assert_eq!(themes.after("gone").unwrap().name(), "dark");
    }

    #[test]
    fn a_directory_is_read_with_care() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &[u8]| fs::write(dir.path().join(name), text).unwrap();
        write("good.yaml", b"inherits: dark\n");
        write("bad.yml", b"roles:\n  text: { fg: nocolour }\n");
        write("huge.yaml", &vec![b'#'; 100 << 10]);
        write("bytes.yaml", b"\xff\xfe");
        write("Bad\x1b[2JName.yaml", b"");
        write("notes.txt", b"nothing");
        fs::create_dir(dir.path().join("folder.yaml")).unwrap();
        let (mut themes, problems) = Themes::load(Some(dir.path()));
        assert_eq!(problems.len(), 5, "{problems:?}");
        assert!(problems.iter().all(|problem| problem.to_string().chars().all(|c| !c.is_control())));
        assert!(themes.get("good").is_some());
        write("new.yaml", b"inherits: good\n");
        assert_eq!(themes.reload().len(), 5);
        assert!(themes.get("new").is_some());
        assert_eq!(Themes::load(Some(&dir.path().join("missing"))).1, []);
    }
}
