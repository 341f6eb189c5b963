//! A theme, ready to draw with: a style for every role, as far as the terminal goes.

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use super::background::Background;
use super::colour;
use super::depth::Depth;
use super::file::RoleLook;
use super::shelf::Themes;
use super::{Glyphs, Role};

/// What a role looks like before it is known what the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Look {
    style: Style,
    fg16: Option<Color>,
    bg16: Option<Color>,
}

impl Look {
    pub fn of(written: &RoleLook) -> Self {
        let weights = written.modifiers.iter().fold(Modifier::empty(), |all, weight| all | weight.modifier());
        let mut style = Style::new().add_modifier(weights);
        style.fg = written.fg.map(|paint| paint.0);
        style.bg = written.bg.map(|paint| paint.0);
        Self { style, fg16: written.fg16.map(|paint| paint.0), bg16: written.bg16.map(|paint| paint.0) }
    }

    fn at(self, depth: Depth) -> Style {
        let mut style = colour::adapt(self.style, depth);
        if depth == Depth::Sixteen {
            style.fg = self.fg16.or(style.fg);
            style.bg = self.bg16.or(style.bg);
        }
        style
    }
}

/// What a theme stands on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Ground {
    pub appearance: Option<Background>,
    pub background: Option<Color>,
    pub background16: Option<Color>,
    pub paint: bool,
}

/// Styles by role, with the signs to draw them with.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    name: String,
    glyphs: Glyphs,
    ground: Ground,
    looks: Arc<[Look]>,
    depth: Depth,
    styles: Arc<[Style]>,
    painted: bool,
}

impl Theme {
    pub(super) fn new(name: String, ground: Ground, looks: Arc<[Look]>) -> Self {
        let styles = looks.iter().map(|look| look.at(Depth::True)).collect();
        Self { name, glyphs: Glyphs::UNICODE, ground, looks, depth: Depth::True, styles, painted: ground.paint }
    }

    /// The shipped dark theme.
    pub fn dark() -> Self {
        Self::shipped("dark")
    }

    /// No colours at all.
    pub fn plain() -> Self {
        Self::shipped("mono")
    }

    fn shipped(name: &str) -> Self {
        let bare = || Self::new(name.to_owned(), Ground::default(), Arc::from(vec![Look::default(); Role::ALL.len()]));
        Themes::shipped().get(name).cloned().unwrap_or_else(bare)
    }

    #[must_use]
    pub fn with_glyphs(self, glyphs: Glyphs) -> Self {
        Self { glyphs, ..self }
    }

    /// The same theme on a terminal that shows this many colours. Without colours, weights tell what colours
    /// told before.
    #[must_use]
    pub fn at_depth(self, depth: Depth) -> Self {
        let styles = match depth {
            Depth::Mono => Arc::clone(&Self::plain().styles),
            depth => self.looks.iter().map(|look| look.at(depth)).collect(),
        };
        Self { styles, depth, ..self }
    }

    /// Brings its background along where the terminal's own one is another, or unknown.
    #[must_use]
    pub fn fitted(self, terminal: Option<Background>) -> Self {
        let fits = self.ground.appearance.is_none() || terminal == self.ground.appearance;
        Self { painted: self.ground.paint || !fits, ..self }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn glyphs(&self) -> &Glyphs {
        &self.glyphs
    }

    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// Is it made for dark or for light terminals? `None`: for both.
    pub fn appearance(&self) -> Option<Background> {
        self.ground.appearance
    }

    pub fn style(&self, role: Role) -> Style {
        self.styles.get(role as usize).copied().unwrap_or_default()
    }

    /// What a whole screen has where nothing else is said: foreground, and background if it is painted.
    pub fn base(&self) -> Style {
        let Some(bg) = self.painted_background() else { return self.style(Role::Text) };
        let fg = match (self.style(Role::Text).fg, self.ground.appearance) {
            (Some(fg), _) if fg != Color::Reset => fg,
            // The terminal's own foreground was chosen for another background.
            (_, Some(Background::Light)) => Color::Black,
            _ => Color::White,
        };
        Style::new().fg(fg).bg(bg)
    }

    /// Gives every cell that was left to the terminal the colours of the theme. The last step of a frame:
    /// whatever cleared a part of it before is covered too. Does nothing unless the background is painted.
    pub fn paint(&self, buffer: &mut Buffer) {
        if self.painted_background().is_none() {
            return;
        }
        let base = self.base();
        let (fg, bg) = (base.fg.unwrap_or(Color::Reset), base.bg.unwrap_or(Color::Reset));
        for cell in &mut buffer.content {
            if cell.fg == Color::Reset {
                cell.fg = fg;
            }
            if cell.bg == Color::Reset {
                cell.bg = bg;
            }
        }
    }

    fn painted_background(&self) -> Option<Color> {
        if !self.painted {
            return None;
        }
        match self.depth {
            Depth::Mono => None,
            Depth::Sixteen => self.ground.background16,
            depth => self.ground.background.and_then(|colour| colour::nearest(colour, depth)),
        }
    }

    /// What its colours are meant to stand on.
    #[cfg(test)]
    pub(super) fn background(&self) -> Option<Color> {
        self.ground.background
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::super::colour::measure::{contrast, luminance};
    use super::*;

    /// Lines and fillings: seen, not read.
    const NOT_TEXT: &[Role] = &[Role::Border, Role::GaugeEmpty];

    /// What a role is read on.
    fn ratio(theme: &Theme, role: Role) -> f64 {
        let style = theme.style(role);
        let bg = style.bg.or(theme.background()).unwrap();
        contrast(style.fg.unwrap(), bg)
    }

    #[test]
    fn every_text_can_be_read() {
        for name in ["dark", "light", "colour-blind", "solarized", "high-contrast"] {
            let theme = Themes::shipped().get(name).unwrap();
            let least = if name == "high-contrast" { 7.0 } else { 4.5 };
            for &role in Role::ALL {
                let ratio = ratio(theme, role);
                let least = if NOT_TEXT.contains(&role) { 1.5 } else { least };
                assert!(ratio >= least, "{name}: {} has {ratio:.2}", role.name());
            }
            // The bars carry keys and muted words too.
            let bar = theme.style(Role::Bar).bg.unwrap();
            for role in [Role::Muted, Role::Key, Role::Text, Role::Good, Role::Bad, Role::Warning, Role::Info] {
                let ratio = contrast(theme.style(role).fg.unwrap(), bar);
                assert!(ratio >= least, "{name}: {} on the bar has {ratio:.2}", role.name());
            }
        }
    }

    #[test]
    fn without_colour_vision_good_and_bad_differ_in_brightness() {
        let theme = Themes::shipped().get("colour-blind").unwrap();
        let of = |role| theme.style(role).fg.unwrap();
        for (one, other) in [(Role::Good, Role::Bad), (Role::Good, Role::Warning), (Role::Warning, Role::Bad)] {
            let ratio = contrast(of(one), of(other));
            assert!(ratio >= 1.4, "{one:?} and {other:?} differ by {ratio:.2} only");
        }
        assert!(luminance(of(Role::Warning)) > luminance(of(Role::Good)));
        // The ordinary theme would not pass: the test can fail.
        let dark = Theme::dark();
        let of = |role| dark.style(role).fg.unwrap();
        assert!(contrast(of(Role::Good), of(Role::Warning)) < 1.4);
    }

    #[test]
    fn fewer_colours_mean_fewer_colours() {
        for theme in Themes::shipped().all() {
            for &role in Role::ALL {
                let style = |depth| theme.clone().at_depth(depth).style(role);
                let colours = |style: Style| [style.fg, style.bg].into_iter().flatten().collect::<Vec<_>>();
                assert!(colours(style(Depth::Mono)).is_empty());
                for colour in colours(style(Depth::Sixteen)) {
                    assert!(!matches!(colour, Color::Rgb(..) | Color::Indexed(16..)), "{role:?} {colour:?}");
                }
                for colour in colours(style(Depth::Indexed)) {
                    assert!(!matches!(colour, Color::Rgb(..)), "{role:?} {colour:?}");
                }
            }
        }
    }

    #[test]
    fn what_matters_most_survives_without_colour() {
        let mono = Theme::dark().at_depth(Depth::Mono);
        for role in [Role::Selection, Role::Badge, Role::StateCurrent, Role::Bar] {
            assert!(mono.style(role).add_modifier.contains(Modifier::REVERSED), "{role:?}");
        }
        assert_ne!(mono.style(Role::Bad), mono.style(Role::Good));
        assert_ne!(mono.style(Role::BorderFocused), mono.style(Role::Border));
        assert_eq!(mono.name(), "dark");
        assert_eq!(mono.at_depth(Depth::True), Theme::dark());
    }

    #[test]
    fn in_sixteen_colours_no_text_vanishes_in_its_background() {
        for theme in Themes::shipped().all() {
            let theme = theme.clone().at_depth(Depth::Sixteen).fitted(None);
            for &role in Role::ALL {
                let style = theme.style(role);
                let bg = style.bg.or(theme.base().bg);
                assert!(style.fg.is_none() || style.fg != bg, "{}: {role:?}", theme.name());
            }
            for role in [Role::Muted, Role::Key, Role::Text] {
                let bar = theme.style(Role::Bar);
                assert!(bar.bg.is_none() || theme.style(role).fg != bar.bg, "{}: {role:?} on the bar", theme.name());
            }
        }
    }

    #[test]
    fn a_background_is_brought_only_where_it_is_needed() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 2, 1));
        let untouched = buffer.clone();
        let dark = Theme::dark();
        dark.clone().fitted(Some(Background::Dark)).paint(&mut buffer);
        assert_eq!(buffer, untouched);
        Theme::plain().fitted(None).paint(&mut buffer);
        assert_eq!(buffer, untouched);
        for terminal in [None, Some(Background::Light)] {
            let mut buffer = untouched.clone();
            dark.clone().fitted(terminal).paint(&mut buffer);
            assert!(buffer.content.iter().all(|cell| Some(cell.bg) == dark.background()));
            assert!(buffer.content.iter().all(|cell| cell.fg != Color::Reset));
        }
        let sixteen = Themes::shipped().get("light").unwrap().clone().at_depth(Depth::Sixteen).fitted(None);
        assert_eq!(sixteen.base(), Style::new().fg(Color::Black).bg(Color::White));
    }
}
