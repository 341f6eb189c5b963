//! How to behave towards a terminal: how often to draw, and which words it understands. Decided from the
//! environment, which the caller hands in.

/// What suits the terminal at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manners {
    /// Frames a second at most.
    pub fps: u32,
    /// Take the mouse, unless the operator says otherwise.
    pub mouse: bool,
    pub over_ssh: bool,
    pub tmux: bool,
    /// GNU screen.
    pub screen: bool,
    /// Does it know titles, notifications and the clipboard?
    pub extras: bool,
    pub notices: Notices,
}

/// How a terminal is told to show a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notices {
    Osc9,
    Osc777,
    /// Not known which: each one ignores what it does not know.
    Both,
}

impl Manners {
    /// `env` looks up a variable of the environment.
    pub fn detect(env: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
        let term = env("TERM").unwrap_or_default();
        let program = env("TERM_PROGRAM").unwrap_or_default();
        let over_ssh = ["SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"].into_iter().any(set);
        let tmux = set("TMUX");
        let notices = match () {
            () if program == "iTerm.app" || term.contains("kitty") || set("WT_SESSION") => Notices::Osc9,
            () if set("VTE_VERSION") || ["foot", "rxvt", "ghostty"].iter().any(|known| term.contains(known)) => {
                Notices::Osc777
            }
            () if program == "WezTerm" || program == "ghostty" => Notices::Osc777,
            () => Notices::Both,
        };
        Self {
            fps: if over_ssh { 10 } else { 30 },
            mouse: !over_ssh,
            over_ssh,
            tmux,
            screen: !tmux && (set("STY") || term.starts_with("screen")),
            extras: !matches!(term.as_str(), "" | "dumb" | "linux"),
            notices,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manners(vars: &[(&str, &str)]) -> Manners {
        Manners::detect(|name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn a_far_terminal_is_left_in_peace() {
        let near = manners(&[("TERM", "xterm-256color")]);
        assert_eq!((near.fps, near.mouse, near.over_ssh), (30, true, false));
        for name in ["SSH_CONNECTION", "SSH_TTY"] {
            let far = manners(&[("TERM", "xterm-256color"), (name, "x")]);
            assert_eq!((far.fps, far.mouse, far.over_ssh), (10, false, true));
        }
    }

    #[test]
    fn multiplexers_are_told_apart() {
        let tmux = manners(&[("TERM", "screen-256color"), ("TMUX", "/tmp/t,1,0")]);
        assert!(tmux.tmux && !tmux.screen);
        assert!(manners(&[("TERM", "screen")]).screen);
        assert!(!manners(&[("TERM", "linux")]).extras);
        assert!(!manners(&[]).extras);
        assert_eq!(manners(&[("TERM", "xterm-kitty")]).notices, Notices::Osc9);
        assert_eq!(manners(&[("TERM", "xterm-256color"), ("VTE_VERSION", "7600")]).notices, Notices::Osc777);
    }
}
