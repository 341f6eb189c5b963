//! `nightloop themes`: lists the themes and shows what they look like here.

use std::io::IsTerminal as _;

use clap::Args;

use crate::console::theme::{Depth, GlyphChoice, Glyphs, Themes, preview};
use crate::engine::error::EngineError;
use crate::engine::places;

use super::{Outcome, text};

#[derive(Debug, Args)]
pub struct Options {
    /// Show this one only.
    name: Option<String>,
    /// Print the names alone.
    #[arg(long)]
    names: bool,
}

pub fn main(options: &Options) -> Outcome {
    let user = places::config_dir().map(|dir| dir.join("themes"));
    let (themes, problems) = Themes::load(user.as_deref());
    for problem in &problems {
        text::line(text::safe(&problem.to_string()));
    }
    if options.names {
        themes.names().into_iter().for_each(text::line);
        return Ok(0);
    }
    let wanted: Vec<&str> = match &options.name {
        Some(name) => vec![name.as_str()],
        None => themes.names(),
    };
    let env = |name: &str| std::env::var(name).ok();
    let is_tty = std::io::stdout().is_terminal();
    let depth = is_tty.then(|| Depth::detect(env, is_tty));
    for name in wanted {
        let theme = themes.get(name).ok_or_else(|| {
            EngineError::usage(
                format!("there is no theme `{name}`"),
                format!("available: {}", themes.names().join(", ")),
            )
        })?;
        let theme = theme.clone().with_glyphs(Glyphs::detect(env, GlyphChoice::Auto));
        let lines = preview(&theme);
        text::styled(&lines, depth);
        text::line("");
    }
    Ok(0)
}
