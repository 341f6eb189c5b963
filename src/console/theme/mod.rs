//! What things look like. Only this module names a colour; everything else names a [`Role`].

use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;

/// The meaning of a piece of text or line. State is always told by glyph and word as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Text,
    Muted,
    Title,
    Border,
    BorderFocused,
    /// A key that can be pressed.
    Key,
    /// The header and the footer.
    Bar,
    /// A number in the header that wants attention.
    Badge,
    Selection,
    Match,
    Good,
    Warning,
    Bad,
    Info,
    StateCurrent,
    StateVisited,
    StateIdle,
    EdgeTaken,
    EdgeLast,
    LaneA,
    LaneB,
    LaneC,
    GlowG,
    GlowL,
    GlowO,
    GlowW,
    Residual,
    Threshold,
    Baseline,
    GaugeFull,
    GaugeEmpty,
    Thinking,
    Speech,
    Tool,
    Operator,
    DiffAdded,
    DiffRemoved,
    DiffHunk,
    Keyword,
    Literal,
    Comment,
    Heading,
    Emphasis,
    Code,
    Link,
    SpanWork,
    SpanCheck,
    SpanLimit,
    SpanHuman,
    SpanStalled,
    SpanDown,
}

/// The signs that are drawn, in Unicode or in ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyphs {
    pub border: border::Set<'static>,
    pub cut: &'static str,
    pub yes: &'static str,
    pub no: &'static str,
    pub unknown: &'static str,
    pub current: &'static str,
    pub visited: &'static str,
    pub idle: &'static str,
    pub arrow_right: &'static str,
    pub arrow_down: &'static str,
    pub arrow_up: &'static str,
    pub arrow_left: &'static str,
    pub line_h: &'static str,
    pub line_v: &'static str,
    pub corner_tl: &'static str,
    pub corner_tr: &'static str,
    pub corner_bl: &'static str,
    pub corner_br: &'static str,
    pub dot: &'static str,
    pub bullet: &'static str,
    pub folded: &'static str,
    pub unfolded: &'static str,
    pub gap: &'static str,
    /// From empty to full, for bars: nine signs, the first a blank.
    pub levels: [&'static str; 9],
    /// Texture of the four GLOW parts, so that they differ without colour.
    pub glow: [&'static str; 4],
    pub gauge_full: &'static str,
    pub gauge_empty: &'static str,
    pub new_below: &'static str,
    /// May a chart use braille dots?
    pub braille: bool,
}

impl Glyphs {
    pub const UNICODE: Self = Self {
        border: border::ROUNDED,
        cut: "…",
        yes: "✓",
        no: "✗",
        unknown: "?",
        current: "●",
        visited: "○",
        idle: "·",
        arrow_right: "→",
        arrow_down: "↓",
        arrow_up: "↑",
        arrow_left: "←",
        line_h: "─",
        line_v: "│",
        corner_tl: "╭",
        corner_tr: "╮",
        corner_bl: "╰",
        corner_br: "╯",
        dot: "•",
        bullet: "•",
        folded: "▸",
        unfolded: "▾",
        gap: "╎",
        levels: [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
        glow: ["█", "▓", "▒", "░"],
        gauge_full: "━",
        gauge_empty: "─",
        new_below: "▼",
        braille: true,
    };

    pub const ASCII: Self = Self {
        border: border::Set {
            top_left: "+",
            top_right: "+",
            bottom_left: "+",
            bottom_right: "+",
            vertical_left: "|",
            vertical_right: "|",
            horizontal_top: "-",
            horizontal_bottom: "-",
        },
        cut: "~",
        yes: "+",
        no: "x",
        unknown: "?",
        current: "@",
        visited: "o",
        idle: ".",
        arrow_right: ">",
        arrow_down: "v",
        arrow_up: "^",
        arrow_left: "<",
        line_h: "-",
        line_v: "|",
        corner_tl: "+",
        corner_tr: "+",
        corner_bl: "+",
        corner_br: "+",
        dot: "*",
        bullet: "*",
        folded: ">",
        unfolded: "v",
        gap: ":",
        levels: [" ", ".", ".", ":", ":", "|", "|", "#", "#"],
        glow: ["G", "L", "O", "W"],
        gauge_full: "#",
        gauge_empty: ".",
        new_below: "v",
        braille: false,
    };
}

/// Styles by role, with the signs to draw them with.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    name: String,
    glyphs: Glyphs,
    colours: bool,
}

impl Theme {
    /// Dark, with colours: the default of views and tests until a file is read.
    pub fn dark() -> Self {
        Self { name: "dark".to_owned(), glyphs: Glyphs::UNICODE, colours: true }
    }

    /// No colours at all.
    pub fn plain() -> Self {
        Self { name: "mono".to_owned(), glyphs: Glyphs::UNICODE, colours: false }
    }

    #[must_use]
    pub fn with_glyphs(self, glyphs: Glyphs) -> Self {
        Self { glyphs, ..self }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn glyphs(&self) -> &Glyphs {
        &self.glyphs
    }

    pub fn style(&self, role: Role) -> Style {
        let strong = matches!(
            role,
            Role::Title | Role::StateCurrent | Role::Key | Role::Badge | Role::Bad | Role::Heading | Role::EdgeLast
        );
        let style = if strong { Style::default().add_modifier(Modifier::BOLD) } else { Style::default() };
        let style = match role {
            Role::Selection | Role::StateCurrent | Role::Badge => style.add_modifier(Modifier::REVERSED),
            _ => style,
        };
        if self.colours && matches!(role, Role::Good) { style.fg(Color::Green) } else { style }
    }
}
