//! Leaving the console: what goes on, what stops, how to come back.
//!
//! Invariant: nothing that leaves is done by the key that opened this box while a run of ours is going on.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::cmd::Cmd;
use super::super::scene::Link;
use super::super::theme::Role;
use super::allowed::barred;
use super::sheet::{Keys, Sheet, cancels, keys, rows};
use super::text::wrap;
use super::{Overlay, Response, Stage};
use crate::engine::command::Command;

const COLUMNS: usize = 60;

#[derive(Debug, Default)]
pub struct Quit;

/// What leaving would mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Situation {
    /// The engine is in this process and works.
    Ours {
        may_stop: bool,
    },
    /// The engine is elsewhere.
    Elsewhere,
    Replay,
    Lost,
    Ended,
    NoRun,
}

impl Situation {
    fn of(stage: &Stage<'_>) -> Self {
        let Some(scene) = stage.scene else { return Self::NoRun };
        match scene.link {
            Link::Replay { .. } => Self::Replay,
            _ if scene.live && scene.run.halt.is_some() => Self::Ended,
            Link::Attached => Self::Elsewhere,
            Link::Lost(_) => Self::Lost,
            Link::InProcess => Self::Ours { may_stop: barred(stage).is_none() },
        }
    }

    fn keys(self) -> Keys {
        match self {
            Self::Ours { may_stop: true } => keys(&[("d", "detach"), ("s", "stop the run"), ("esc", "stay")]),
            Self::Ours { may_stop: false } => keys(&[("d", "detach"), ("esc", "stay")]),
            Self::Elsewhere | Self::Replay | Self::Lost | Self::Ended | Self::NoRun => {
                keys(&[("q/enter", "leave"), ("esc", "stay")])
            }
        }
    }
}

fn lines(columns: usize, stage: &Stage<'_>) -> Vec<Line<'static>> {
    let theme = stage.theme;
    let situation = Situation::of(stage);
    let (title, text): (String, Vec<&str>) = match situation {
        Situation::Ours { may_stop } => {
            let mut text = vec!["Detach: the run continues without a screen; `nightloop attach` returns to it."];
            if may_stop {
                text.push("Stop: the call in flight is cancelled; `nightloop resume` continues later.");
            }
            ("The run is still running.".to_owned(), text)
        }
        Situation::Elsewhere => {
            ("The run continues without this console.".to_owned(), vec!["`nightloop attach` returns to it."])
        }
        Situation::Replay => ("This is a replay: nothing is running.".to_owned(), Vec::new()),
        Situation::Lost => (
            "The run cannot be reached.".to_owned(),
            vec!["It may still be running: `nightloop status` tells; `nightloop resume` continues it if not."],
        ),
        Situation::Ended => {
            let halt = stage.scene.and_then(|scene| scene.run.halt.as_ref());
            let status = halt.map_or("", |halt| halt.status.name());
            (
                format!("The run has ended: {status}."),
                vec!["Its journal and evidence stay: `nightloop replay` shows it again."],
            )
        }
        Situation::NoRun => ("Nothing has been started.".to_owned(), Vec::new()),
    };
    let mut lines: Vec<Line<'static>> =
        wrap(&title, columns).into_iter().map(|row| Line::from(Span::styled(row, theme.style(Role::Title)))).collect();
    for text in text {
        lines.extend(wrap(text, columns).into_iter().map(Line::from));
    }
    lines.push(Line::default());
    lines
}

impl Overlay for Quit {
    fn key(&mut self, key: KeyEvent, stage: &Stage<'_>) -> Response {
        if cancels(key) {
            return Response::close();
        }
        match (Situation::of(stage), key.code) {
            (Situation::Ours { .. }, KeyCode::Char('d')) => Response::cmd(Cmd::Detach).and_close(),
            (Situation::Ours { may_stop: true }, KeyCode::Char('s')) => {
                Response::cmd(Cmd::Order(Command::Stop)).and_close()
            }
            (Situation::Ours { .. }, _) => Response::stay(),
            (_, KeyCode::Char('q') | KeyCode::Enter) => Response::cmd(Cmd::Leave).and_close(),
            _ => Response::stay(),
        }
    }

    fn view(&self, frame: &mut Frame<'_>, area: Rect, stage: &Stage<'_>) {
        let keys = Situation::of(stage).keys();
        let sheet = Sheet::place(area, COLUMNS, lines(COLUMNS, stage).len(), &keys);
        sheet.draw(frame, stage.theme, "Quit", &keys);
        rows(frame, sheet.body, stage.theme, lines(usize::from(sheet.body.width), stage), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Next;
    use super::super::stages::Staged;
    use super::*;

    #[test]
    fn looks() {
        let staged = Staged::running();
        insta::assert_snapshot!("quit_80x20", staged.screen(&mut Quit, 80, 20));
        insta::assert_snapshot!("quit_ended_120x36", Staged::ended().screen(&mut Quit, 120, 36));
        insta::assert_snapshot!("quit_ascii", Staged::running().ascii().screen(&mut Quit, 40, 12));
        staged.all_sizes(&mut Quit);
    }

    fn commands(staged: &Staged, code: KeyCode) -> Vec<Cmd> {
        staged.press(&mut Quit, code).cmds
    }

    #[test]
    fn a_run_of_ours_is_detached_or_stopped_but_never_dropped() {
        let staged = Staged::running();
        assert_eq!(commands(&staged, KeyCode::Char('d')), [Cmd::Detach]);
        assert_eq!(commands(&staged, KeyCode::Char('s')), [Cmd::Order(Command::Stop)]);
        for code in [KeyCode::Char('q'), KeyCode::Enter, KeyCode::Char('y')] {
            assert!(commands(&staged, code).is_empty(), "{code}");
        }
        assert!(matches!(staged.press(&mut Quit, KeyCode::Esc).next, Next::Close));
        let looking = Staged { read_only: true, ..Staged::running() };
        assert!(commands(&looking, KeyCode::Char('s')).is_empty());
        assert_eq!(commands(&looking, KeyCode::Char('d')), [Cmd::Detach]);
    }

    #[test]
    fn other_consoles_just_leave() {
        let replay = Link::Replay { playing: true, speed: 1, at: 1, of: 2 };
        for link in [Link::Attached, replay, Link::Lost("gone".to_owned())] {
            let staged = Staged { link, ..Staged::running() };
            assert_eq!(commands(&staged, KeyCode::Char('q')), [Cmd::Leave], "{:?}", staged.link);
            assert!(commands(&staged, KeyCode::Char('s')).is_empty());
        }
        assert_eq!(commands(&Staged::ended(), KeyCode::Enter), [Cmd::Leave]);
    }
}
