//! What things look like. Only this module names a colour; everything else names a [`Role`].
//!
//! Here: the words, roles and glyphs. Beside: themes from files ([`Themes`]), what a terminal can show
//! ([`Depth`]), whether it is dark ([`background`]), how a style is written ([`sgr`]). Invariant: every role
//! has a style in every theme at every depth, and meaning never hangs on colour alone.

pub mod background;
mod colour;
mod depth;
mod file;
mod look;
mod preview;
pub mod sgr;
mod shelf;

use ratatui::symbols::border;

pub use background::Background;
pub use depth::{Depth, GlyphChoice, is_utf8};
pub use file::Problem;
pub use look::Theme;
pub use preview::{preview, write_lines};
pub use shelf::Themes;

macro_rules! roles {
    ($($(#[$doc:meta])* $role:ident,)+) => {
        /// The meaning of a piece of text or line. State is always told by glyph and word as well.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Role {
            $($(#[$doc])* $role,)+
        }

        impl Role {
            pub const ALL: &[Self] = &[$(Self::$role,)+];

            /// Its name in theme files: `border-focused`.
            pub fn name(self) -> String {
                let word = match self { $(Self::$role => stringify!($role),)+ };
                kebab(word)
            }
        }
    };
}

roles! {
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

fn kebab(word: &str) -> String {
    let mut out = String::new();
    for c in word.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
