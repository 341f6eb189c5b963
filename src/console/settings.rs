//! How this operator and this terminal want it: themes, keys, manners. Read once; themes again when they change.

use std::path::{Path, PathBuf};

use notify::Watcher as _;
use tokio::sync::mpsc;

use crate::model::diagnose::Diagnostic;
use crate::model::safe::Safe;

use super::keymap::Keymap;
use super::terminal::{Manners, Options};
use super::theme::background::{self, Background};
use super::theme::{Depth, GlyphChoice, Glyphs, Theme, Themes, is_utf8};

/// What is asked for on the command line.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    pub theme: Option<String>,
    pub ascii: bool,
}

/// Everything that is settled before the first frame.
pub struct Settings {
    pub manners: Manners,
    pub keymap: Keymap,
    /// What is wrong with the operator's own files; the console works all the same.
    pub problems: Vec<Safe>,
    themes: Themes,
    theme_dir: Option<PathBuf>,
    name: String,
    depth: Depth,
    glyphs: Glyphs,
    /// The terminal reads UTF-8.
    pub utf8: bool,
    background: Option<Background>,
    watcher: Option<notify::RecommendedWatcher>,
}

impl Settings {
    /// Looks at the environment and at the operator's files. A wrong keymap is an error that names its place.
    pub fn find(config: Option<&Path>, wishes: &Wishes, is_tty: bool) -> Result<Self, Diagnostic> {
        let env = |name: &str| std::env::var(name).ok();
        let theme_dir = config.map(|dir| dir.join("themes"));
        let (themes, problems) = Themes::load(theme_dir.as_deref());
        let mut problems: Vec<Safe> = problems.iter().map(|problem| Safe::line(&problem.to_string())).collect();
        let keymap = match config.map(|dir| dir.join("keymap.yaml")).filter(|path| path.exists()) {
            Some(path) => {
                let file = path.display().to_string();
                let text = std::fs::read_to_string(&path).map_err(|e| Diagnostic {
                    file: file.clone(),
                    line: None,
                    column: None,
                    message: format!("cannot be read: {e}"),
                    hint: None,
                })?;
                Keymap::load(&text, &file)?
            }
            None => Keymap::default(),
        };
        problems.extend(keymap.warnings().iter().map(|warning| Safe::line(&warning.to_string())));
        let wished = wishes.theme.clone().or_else(|| env("NIGHTLOOP_THEME").filter(|name| !name.is_empty()));
        // The terminal is asked only where the answer matters.
        let background = if wished.is_some() { None } else { background::detect(env, is_tty) };
        let name = match wished {
            Some(name) if themes.get(&name).is_some() => name,
            Some(name) => {
                problems
                    .push(Safe::line(&format!("there is no theme `{name}`; available: {}", themes.names().join(", "))));
                "dark".to_owned()
            }
            None => themes.for_terminal(background).map_or("dark", Theme::name).to_owned(),
        };
        let choice = if wishes.ascii { GlyphChoice::Ascii } else { GlyphChoice::Auto };
        Ok(Self {
            manners: Manners::detect(env),
            keymap,
            problems,
            themes,
            theme_dir,
            name,
            depth: Depth::detect(env, is_tty),
            glyphs: Glyphs::detect(env, choice),
            utf8: is_utf8(env),
            background,
            watcher: None,
        })
    }

    /// The theme as this terminal can show it.
    pub fn theme(&self) -> Theme {
        let theme = self.themes.get(&self.name).cloned().unwrap_or_else(Theme::dark);
        theme.with_glyphs(self.glyphs).fitted(self.background).at_depth(self.depth)
    }

    pub fn next_theme(&mut self) -> Theme {
        if let Some(next) = self.themes.after(&self.name) {
            self.name = next.name().to_owned();
        }
        self.theme()
    }

    /// Reads the themes again. The error says what is wrong; the old theme stays.
    pub fn reload(&mut self) -> Result<Theme, Safe> {
        match self.themes.reload().first() {
            Some(problem) => Err(Safe::line(&problem.to_string())),
            None => Ok(self.theme()),
        }
    }

    /// Hears when a theme file changes.
    pub fn watch_themes(&mut self) -> mpsc::Receiver<()> {
        let (sender, changes) = mpsc::channel(1);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading a theme is no change of it.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                let _ = sender.try_send(());
            }
        });
        self.watcher = watcher.ok().and_then(|mut watcher| {
            let dir = self.theme_dir.as_ref().filter(|dir| dir.is_dir())?;
            watcher.watch(dir, notify::RecursiveMode::NonRecursive).ok()?;
            Some(watcher)
        });
        changes
    }

    pub fn terminal_options(&self) -> Options {
        Options { mouse: self.manners.mouse, manners: self.manners }
    }
}
