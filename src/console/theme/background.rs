//! Is the terminal dark or light? Asked once, before the screen is taken, because the answer comes in by the
//! keyboard's way.

use std::time::Duration;

use terminal_colorsaurus::{QueryOptions, ThemeMode, theme_mode};

/// What a terminal or a theme looks like as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Background {
    Dark,
    Light,
}

/// A terminal on this machine answers within a few milliseconds.
const PATIENCE: Duration = Duration::from_millis(100);

/// COLORFGBG if it is set; else the terminal is asked, if there is one and it is near. `None`: unknown.
pub fn detect(env: impl Fn(&str) -> Option<String>, is_tty: bool) -> Option<Background> {
    if let Some(told) = env("COLORFGBG").as_deref().and_then(of_colorfgbg) {
        return Some(told);
    }
    // An answer that comes late would be read as keys.
    let far = ["SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"].into_iter().any(|name| env(name).is_some());
    if !is_tty || far || matches!(env("TERM").as_deref(), None | Some("" | "dumb" | "linux")) {
        return None;
    }
    let mut options = QueryOptions::default();
    options.timeout = PATIENCE;
    match theme_mode(options) {
        Ok(ThemeMode::Dark) => Some(Background::Dark),
        Ok(ThemeMode::Light) => Some(Background::Light),
        Err(_) => None,
    }
}

/// `fg;bg` or `fg;other;bg`, as numbers of the sixteen colours.
fn of_colorfgbg(value: &str) -> Option<Background> {
    match value.rsplit(';').next()?.trim().parse().ok()? {
        0_u8..=6 | 8 => Some(Background::Dark),
        7 | 9..=15 => Some(Background::Light),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_believed_first() {
        for (value, expected) in [
            ("15;0", Some(Background::Dark)),
            ("0;15", Some(Background::Light)),
            ("0;default;15", Some(Background::Light)),
            ("12;8", Some(Background::Dark)),
            ("7;default", None),
            ("", None),
            ("15;99", None),
        ] {
            assert_eq!(of_colorfgbg(value), expected, "{value}");
            let env = |name: &str| (name == "COLORFGBG").then(|| value.to_owned());
            assert_eq!(detect(env, false), expected, "{value}");
        }
    }

    #[test]
    fn a_far_terminal_is_not_asked() {
        let env = |name: &str| match name {
            "TERM" => Some("xterm-256color".to_owned()),
            "SSH_TTY" => Some("/dev/pts/0".to_owned()),
            _ => None,
        };
        assert_eq!(detect(env, true), None);
    }
}
