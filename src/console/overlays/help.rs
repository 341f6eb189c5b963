//! Every key by place, as it is bound now; searchable.
//!
//! Role: showing the registry through the keymap. Not its role: performing anything.

use crossterm::event::KeyEvent;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::action::{Action, Scope, Weight};
use super::super::keymap::scope_title;
use super::super::theme::Role;
use super::super::widget::{clip, width};
use super::input::{Input, Lines, Typed};
use super::sheet::{Keys, Sheet, cancels, furthest, keys, rows};
use super::text::wrap;
use super::{Overlay, Response, Stage};

/// Columns of the keys and of the action's name.
const KEY_COLUMNS: usize = 22;
const NAME_COLUMNS: usize = 22;
/// From here on the names of the keymap file are shown, too.
const WITH_NAMES: usize = 96;

pub struct Help {
    /// In force where it was opened; these come first.
    near: Vec<Scope>,
    scroll: usize,
    /// Search text; with the keys while `typing`.
    filter: Input,
    typing: bool,
    area: Rect,
}

impl Help {
    /// `scopes`: those in force where it was opened.
    pub fn new(scopes: &[Scope]) -> Self {
        let near = scopes.iter().copied().filter(|scope| !matches!(scope, Scope::Global | Scope::Move)).collect();
        Self { near, scroll: 0, filter: Input::new(Lines::One, 200), typing: false, area: Rect::default() }
    }
}

impl Help {
    fn keys(&self, stage: &Stage<'_>) -> Keys {
        if self.typing {
            return keys(&[("type", "to search"), ("enter", "keep"), ("esc", "show all")]);
        }
        let key = |action| stage.keymap.first_key(action);
        vec![
            (format!("{}/{}", key(Action::Up), key(Action::Down)), "scroll".to_owned()),
            (key(Action::Search), "search".to_owned()),
            ("esc".to_owned(), "close".to_owned()),
        ]
    }

    fn sheet(&self, area: Rect, stage: &Stage<'_>) -> Sheet {
        Sheet::place(area, 120, usize::MAX, &self.keys(stage))
    }

    fn lines(&self, columns: usize, stage: &Stage<'_>) -> Vec<Line<'static>> {
        let theme = stage.theme;
        let wanted = self.filter.text().to_lowercase();
        let mut out: Vec<Line<'static>> = Vec::new();
        let mut scopes: Vec<Scope> = Action::ALL.iter().map(|action| action.scope()).collect();
        scopes.dedup();
        scopes.sort_by_key(|scope| !self.near.contains(scope));
        if stage.read_only {
            let text = format!("{} marks what read-only mode leaves out.", theme.glyphs().no);
            out.push(Line::from(Span::styled(text, theme.style(Role::Warning))));
        }
        for scope in scopes {
            let shown: Vec<Action> =
                Action::ALL.iter().copied().filter(|a| a.scope() == scope && found(*a, &wanted, stage)).collect();
            if shown.is_empty() {
                continue;
            }
            if !out.is_empty() {
                out.push(Line::default());
            }
            out.push(Line::from(Span::styled(scope_title(scope), theme.style(Role::Heading))));
            out.extend(shown.into_iter().flat_map(|action| row(action, columns, stage)));
        }
        if out.is_empty() {
            out.push(Line::from(Span::styled("No action matches.", theme.style(Role::Muted))));
        }
        out
    }

    fn move_to(&mut self, scroll: usize, stage: &Stage<'_>) {
        let body = self.body(self.sheet(self.area, stage));
        let all = self.lines(usize::from(body.width), stage).len();
        self.scroll = scroll.min(furthest(all, body.height));
    }

    /// The rows below the search line.
    fn body(&self, sheet: Sheet) -> Rect {
        if !self.typing && self.filter.is_blank() {
            return sheet.body;
        }
        Rect { y: sheet.body.y + sheet.body.height.min(1), height: sheet.body.height.saturating_sub(1), ..sheet.body }
    }
}

fn found(action: Action, wanted: &str, stage: &Stage<'_>) -> bool {
    let keys = stage.keymap.keys(action).join(" ");
    let text = format!("{} {} {} {keys}", action.name(), action.hint(), action.help()).to_lowercase();
    wanted.split_whitespace().all(|word| text.contains(word))
}

/// As many rows as the sentence needs.
fn row(action: Action, columns: usize, stage: &Stage<'_>) -> Vec<Line<'static>> {
    let theme = stage.theme;
    let gone = stage.read_only && action.weight() == Weight::Act;
    let mark = if gone { theme.glyphs().no } else { " " };
    let keys = stage.keymap.keys(action).join(" ");
    let keys = if keys.is_empty() { "(no key)".to_owned() } else { keys };
    // A narrow box gives a quarter of itself to the keys: the first one is the one to know.
    let narrow = columns < KEY_COLUMNS * 2;
    let keys = if narrow { keys.split(' ').next().unwrap_or_default().to_owned() } else { keys };
    let key_columns = if narrow { (columns / 4).max(4) } else { KEY_COLUMNS };
    let keys = clip(theme, &keys, key_columns);
    let pad = key_columns.saturating_sub(width(&keys)) + 1;
    let mut lead = vec![
        Span::styled(format!("{mark} "), theme.style(Role::Warning)),
        Span::styled(keys, theme.style(if gone { Role::Muted } else { Role::Key })),
        Span::raw(" ".repeat(pad)),
    ];
    if columns >= WITH_NAMES {
        lead.push(Span::styled(format!("{:<NAME_COLUMNS$} ", action.name()), theme.style(Role::Muted)));
    }
    let indent: usize = lead.iter().map(Span::width).sum();
    let role = if gone { Role::Muted } else { Role::Text };
    wrap(action.help(), columns.saturating_sub(indent))
        .into_iter()
        .enumerate()
        .map(|(index, text)| {
            let text = Span::styled(text, theme.style(role));
            let mut spans = if index == 0 { lead.clone() } else { vec![Span::raw(" ".repeat(indent))] };
            spans.push(text);
            Line::from(spans)
        })
        .collect()
}

impl Overlay for Help {
    fn key(&mut self, key: KeyEvent, stage: &Stage<'_>) -> Response {
        if self.typing {
            match self.filter.key(key) {
                Typed::Text => self.scroll = 0,
                Typed::Send => self.typing = false,
                Typed::Cancel => {
                    self.filter.clear();
                    self.typing = false;
                }
            }
            return Response::stay();
        }
        if cancels(key) {
            if self.filter.is_blank() {
                return Response::close();
            }
            self.filter.clear();
            return Response::stay();
        }
        let page = usize::from(self.body(self.sheet(self.area, stage)).height.saturating_sub(2)).max(1);
        let to = match stage.keymap.action(&[Scope::Move, Scope::Global], key) {
            Some(Action::Up) => self.scroll.saturating_sub(1),
            Some(Action::Down) => self.scroll + 1,
            Some(Action::PageUp) => self.scroll.saturating_sub(page),
            Some(Action::PageDown) => self.scroll + page,
            Some(Action::Top) => 0,
            Some(Action::Bottom) => usize::MAX,
            Some(Action::Search) => {
                self.typing = true;
                self.scroll = 0;
                return Response::stay();
            }
            Some(Action::Help | Action::Quit) => return Response::close(),
            _ => return Response::stay(),
        };
        self.move_to(to, stage);
        Response::stay()
    }

    fn paste(&mut self, text: &str) {
        if self.typing {
            self.filter.paste(text);
        }
    }

    fn resize(&mut self, area: Rect) {
        self.area = area;
    }

    fn view(&self, frame: &mut Frame<'_>, area: Rect, stage: &Stage<'_>) {
        let sheet = self.sheet(area, stage);
        sheet.draw(frame, stage.theme, "Keys", &self.keys(stage));
        let body = self.body(sheet);
        if body.y > sheet.body.y {
            let label = "search: ";
            let columns = u16::try_from(width(label)).unwrap_or(0).min(sheet.body.width);
            let place = Rect { height: 1, ..sheet.body };
            frame.render_widget(Span::styled(label, stage.theme.style(Role::Muted)), place);
            let place = Rect { x: place.x + columns, width: place.width - columns, ..place };
            self.filter.view(frame, place, stage.theme);
        }
        rows(frame, body, stage.theme, self.lines(usize::from(body.width), stage), self.scroll);
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyCode;

    use super::super::Next;
    use super::super::stages::Staged;
    use super::*;

    #[test]
    fn looks() {
        let staged = Staged::running();
        let mut help = Help::new(&[Scope::Agent, Scope::Move, Scope::Global]);
        insta::assert_snapshot!("help_80x20", staged.screen(&mut help, 80, 20));
        insta::assert_snapshot!("help_120x36", staged.screen(&mut help, 120, 36));
        let mut plain = Staged::running().ascii();
        plain.read_only = true;
        insta::assert_snapshot!("help_ascii", plain.screen(&mut help, 80, 20));
        staged.all_sizes(&mut help);
    }

    #[test]
    fn every_action_can_be_reached_and_found() {
        let staged = Staged::running();
        let mut help = Help::new(&[Scope::Agent, Scope::Move, Scope::Global]);
        let everything = staged.screen(&mut help, 140, 120);
        for action in Action::ALL {
            assert!(everything.contains(action.help()), "{action:?}");
        }
        staged.screen(&mut help, 80, 20);
        staged.press(&mut help, KeyCode::Char('G'));
        assert!(staged.screen(&mut help, 80, 20).contains("End the run instead of answering."));
        staged.press(&mut help, KeyCode::Char('/'));
        staged.type_text(&mut help, "STOP run");
        let found = staged.screen(&mut help, 80, 20);
        assert!(found.contains("Stop the run now") && !found.contains("Move up"), "{found}");
        staged.press(&mut help, KeyCode::Esc);
        assert!(staged.screen(&mut help, 80, 20).contains("Follow new text"));
        assert!(matches!(staged.press(&mut help, KeyCode::Esc).next, Next::Close));
    }
}
