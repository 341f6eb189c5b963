//! What a terminal can show: colours and signs. Decided from the environment, which the caller hands in.

use super::Glyphs;

/// How many colours there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Depth {
    Mono,
    Sixteen,
    Indexed,
    True,
}

/// Terminals that show every colour and may not say so in COLORTERM, over SSH for one.
const TRUE_TERMS: &[&str] =
    &["kitty", "ghostty", "alacritty", "wezterm", "foot", "contour", "iterm2", "rio", "-direct"];
const TRUE_PROGRAMS: &[&str] = &["iTerm.app", "WezTerm", "ghostty", "vscode", "Hyper", "rio", "WarpTerminal"];
const MONO_TERMS: &[&str] = &["", "dumb", "unknown", "vt52", "vt100", "vt102", "vt220", "xterm-mono"];

impl Depth {
    /// `env` looks up a variable of the environment.
    pub fn detect(env: impl Fn(&str) -> Option<String>, is_tty: bool) -> Self {
        let set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
        let forced = env("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
        let term = env("TERM").unwrap_or_default();
        if set("NO_COLOR") || MONO_TERMS.contains(&term.as_str()) || !(is_tty || forced) {
            return Self::Mono;
        }
        // Some multiplexers pass on the wish of the terminal outside, but not its colours.
        let gnu_screen = term.starts_with("screen") && !set("TMUX");
        let claims = matches!(env("COLORTERM").as_deref(), Some("truecolor" | "24bit"));
        let program = env("TERM_PROGRAM").unwrap_or_default();
        let known = TRUE_TERMS.iter().any(|known| term.contains(known))
            || TRUE_PROGRAMS.contains(&program.as_str())
            || set("WT_SESSION");
        match () {
            () if term == "linux" => Self::Sixteen,
            () if (claims || known) && !gnu_screen => Self::True,
            () if term.contains("256") || program == "Apple_Terminal" => Self::Indexed,
            () => Self::Sixteen,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Mono => "no colours",
            Self::Sixteen => "16 colours",
            Self::Indexed => "256 colours",
            Self::True => "all colours",
        }
    }
}

/// What the operator asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GlyphChoice {
    #[default]
    Auto,
    Unicode,
    Ascii,
}

impl Glyphs {
    /// ASCII where the locale is not UTF-8 or the terminal has no other signs, and on request.
    pub fn detect(env: impl Fn(&str) -> Option<String>, choice: GlyphChoice) -> Self {
        match choice {
            GlyphChoice::Unicode => Self::UNICODE,
            GlyphChoice::Ascii => Self::ASCII,
            GlyphChoice::Auto => {
                let plain_term = matches!(env("TERM").as_deref(), None | Some("" | "dumb" | "linux"));
                if is_utf8(&env) && !plain_term { Self::UNICODE } else { Self::ASCII }
            }
        }
    }
}

/// Does the locale say that text is UTF-8? Where not, anything beyond ASCII would arrive as something else.
pub fn is_utf8(env: impl Fn(&str) -> Option<String>) -> bool {
    // The first one that is set decides, as in the C library.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| env(name).filter(|value| !value.is_empty()))
        .unwrap_or_default()
        .to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env<'a>(vars: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn colours_follow_the_environment() {
        for (vars, expected) in [
            (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")][..], Depth::True),
            (&[("TERM", "xterm-256color"), ("COLORTERM", "24bit")], Depth::True),
            (&[("TERM", "xterm-kitty")], Depth::True),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")], Depth::True),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "Apple_Terminal")], Depth::Indexed),
            (&[("TERM", "xterm-256color")], Depth::Indexed),
            (&[("TERM", "screen-256color"), ("COLORTERM", "truecolor")], Depth::Indexed),
            (&[("TERM", "screen-256color"), ("COLORTERM", "truecolor"), ("TMUX", "/tmp/x,1,0")], Depth::True),
            (&[("TERM", "xterm")], Depth::Sixteen),
            (&[("TERM", "linux"), ("COLORTERM", "truecolor")], Depth::Sixteen),
            (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("NO_COLOR", "1")], Depth::Mono),
            (&[("TERM", "xterm-256color"), ("NO_COLOR", "")], Depth::Indexed),
            (&[("TERM", "dumb"), ("COLORTERM", "truecolor")], Depth::Mono),
            (&[("TERM", "vt100")], Depth::Mono),
            (&[], Depth::Mono),
        ] {
            assert_eq!(Depth::detect(env(vars), true), expected, "{vars:?}");
        }
    }

    #[test]
    fn a_pipe_gets_colours_only_when_asked_for() {
        let vars = [("TERM", "xterm-256color")];
        assert_eq!(Depth::detect(env(&vars), false), Depth::Mono);
        let forced = [("TERM", "xterm-256color"), ("CLICOLOR_FORCE", "1")];
        assert_eq!(Depth::detect(env(&forced), false), Depth::Indexed);
    }

    #[test]
    fn signs_follow_the_locale() {
        for (vars, unicode) in [
            (&[("TERM", "xterm"), ("LANG", "de_DE.UTF-8")][..], true),
            (&[("TERM", "xterm"), ("LANG", "C.utf8")], true),
            (&[("TERM", "xterm"), ("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")], false),
            (&[("TERM", "xterm"), ("LC_ALL", ""), ("LC_CTYPE", "en_US.UTF-8"), ("LANG", "C")], true),
            (&[("TERM", "xterm")], false),
            (&[("TERM", "linux"), ("LANG", "en_US.UTF-8")], false),
            (&[("TERM", "dumb"), ("LANG", "en_US.UTF-8")], false),
        ] {
            let expected = if unicode { Glyphs::UNICODE } else { Glyphs::ASCII };
            assert_eq!(Glyphs::detect(env(vars), GlyphChoice::Auto), expected, "{vars:?}");
            assert_eq!(Glyphs::detect(env(vars), GlyphChoice::Ascii), Glyphs::ASCII);
            assert_eq!(Glyphs::detect(env(vars), GlyphChoice::Unicode), Glyphs::UNICODE);
        }
    }
}
