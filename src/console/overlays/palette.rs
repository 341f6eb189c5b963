//! Find any action by name or purpose and do it.
//!
//! Role: ranking and choosing. Not its role: performing; the root does that.
//! Invariant: an action that cannot be done now is still found, with the reason.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::action::{Action, Scope};
use super::super::theme::Role;
use super::super::widget::{clip, width};
use super::allowed::why_not;
use super::input::{Input, Lines, Typed};
use super::sheet::{Keys, Sheet, keys, picked, reveal, rows};
use super::{Next, Overlay, Response, Stage};

const NAME_COLUMNS: usize = 21;
const KEY_COLUMNS: usize = 9;
/// From this width on there is room for what an action does.
const WITH_HELP: usize = KEY_COLUMNS + NAME_COLUMNS + 20;

pub struct Palette {
    scopes: Vec<Scope>,
    query: Input,
    cursor: usize,
    /// Why the last choice was refused.
    notice: Option<String>,
    area: Rect,
}

struct Found {
    action: Action,
    why_not: Option<String>,
}

impl Palette {
    /// `scopes`: those in force where it was opened.
    pub fn new(scopes: &[Scope]) -> Self {
        Self {
            scopes: scopes.to_vec(),
            query: Input::new(Lines::One, 200),
            cursor: 0,
            notice: None,
            area: Rect::default(),
        }
    }

    /// What fits the query, best first; what can be done before what cannot.
    fn found(&self, stage: &Stage<'_>) -> Vec<Found> {
        let query = self.query.text();
        let mut found: Vec<(u32, Found)> = Action::ALL
            .iter()
            .filter(|action| action.scope() != Scope::Inbox || self.scopes.contains(&Scope::Inbox))
            .filter_map(|action| {
                let why_not = why_not(*action, &self.scopes, stage);
                score(&query, *action).map(|score| (score, Found { action: *action, why_not }))
            })
            .collect();
        // Stable: equals stay in the order of the registry.
        let blank = query.trim().is_empty();
        found.sort_by_key(|(score, found)| {
            let later = found.why_not.is_some();
            (blank && later, std::cmp::Reverse(*score), later)
        });
        found.into_iter().map(|(_, found)| found).collect()
    }

    fn keys() -> Keys {
        keys(&[("type", "to search"), ("up/down", "choose"), ("enter", "run it"), ("esc", "close")])
    }

    fn sheet(area: Rect) -> Sheet {
        Sheet::place(area, 100, 24, &Self::keys())
    }
}

/// How well an action fits: all words of the query must be found. Higher is better.
fn score(query: &str, action: Action) -> Option<u32> {
    query.split_whitespace().try_fold(0, |sum, word| word_score(&word.to_lowercase(), action).map(|more| sum + more))
}

fn word_score(word: &str, action: Action) -> Option<u32> {
    let name = action.name();
    let parts = || name.split('-');
    if name == word {
        return Some(1_000);
    }
    if name.starts_with(word) {
        return Some(800);
    }
    if parts().any(|part| part.starts_with(word)) {
        return Some(600);
    }
    if name.contains(word) {
        return Some(400);
    }
    let (hint, help) = (action.hint().to_lowercase(), action.help().to_lowercase());
    let begins = |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(|part| part.starts_with(word));
    if begins(&hint) || begins(&help) {
        return Some(200);
    }
    // Letters in order: `sai` finds `stop-after-iteration`. The shorter the name, the surer.
    let initials: String = parts().filter_map(|part| part.chars().next()).collect();
    if initials.starts_with(word) {
        return Some(300);
    }
    let mut letters = name.chars();
    let in_order = word.chars().all(|wanted| letters.any(|letter| letter == wanted));
    in_order.then(|| 100_u32.saturating_sub(u32::try_from(name.len()).unwrap_or(100)).max(1))
}

fn row(found: &Found, chosen: bool, columns: usize, stage: &Stage<'_>) -> Line<'static> {
    let theme = stage.theme;
    let key = clip(theme, &stage.keymap.first_key(found.action), KEY_COLUMNS);
    let pad = KEY_COLUMNS.saturating_sub(width(&key)) + 1;
    let (name_role, text) = match &found.why_not {
        None => (Role::Text, Span::styled(found.action.help(), theme.style(Role::Muted))),
        Some(why) => {
            let text = format!("{} {why}", theme.glyphs().no);
            (Role::Muted, Span::styled(text, theme.style(Role::Warning)))
        }
    };
    let mut spans = vec![
        Span::styled(key, theme.style(Role::Key)),
        Span::raw(" ".repeat(pad)),
        Span::styled(format!("{:<NAME_COLUMNS$} ", found.action.name()), theme.style(name_role)),
    ];
    // A letter or two of a sentence say nothing; that something cannot be done is said all the same.
    if columns >= WITH_HELP {
        spans.push(text);
    } else if found.why_not.is_some() {
        spans.push(Span::styled(theme.glyphs().no, theme.style(Role::Warning)));
    }
    let line = Line::from(spans);
    let line = super::super::widget::clip_line(theme, line, columns.saturating_sub(2));
    picked(theme, line, chosen)
}

impl Overlay for Palette {
    fn key(&mut self, key: KeyEvent, stage: &Stage<'_>) -> Response {
        self.notice = None;
        let found = self.found(stage);
        let last = found.len().saturating_sub(1);
        let control = key.modifiers == KeyModifiers::CONTROL;
        let page = usize::from(Self::sheet(self.area).body.height).saturating_sub(2).max(1);
        match key.code {
            KeyCode::Up | KeyCode::BackTab => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => self.cursor = (self.cursor + 1).min(last),
            KeyCode::Char('p') if control => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Char('n') if control => self.cursor = (self.cursor + 1).min(last),
            KeyCode::PageUp => self.cursor = self.cursor.saturating_sub(page),
            KeyCode::PageDown => self.cursor = (self.cursor + page).min(last),
            _ => match self.query.key(key) {
                Typed::Text => self.cursor = 0,
                Typed::Cancel => return Response::close(),
                Typed::Send => match found.get(self.cursor) {
                    Some(Found { action, why_not: None }) => return Response::then(Next::Act(*action)),
                    Some(Found { action, why_not: Some(why) }) => {
                        self.notice = Some(format!("{} is not possible: {why}", action.name()));
                    }
                    None => {}
                },
            },
        }
        Response::stay()
    }

    fn paste(&mut self, text: &str) {
        self.query.paste(text);
        self.cursor = 0;
    }

    fn resize(&mut self, area: Rect) {
        self.area = area;
    }

    fn view(&self, frame: &mut Frame<'_>, area: Rect, stage: &Stage<'_>) {
        let theme = stage.theme;
        let sheet = Self::sheet(area);
        sheet.draw(frame, theme, "Do what?", &Self::keys());
        let body = sheet.body;
        if body.is_empty() {
            return;
        }
        frame.render_widget(Span::styled(": ", theme.style(Role::Key)), Rect { height: 1, ..body });
        let shift = 2.min(body.width);
        self.query.view(frame, Rect { x: body.x + shift, width: body.width - shift, height: 1, ..body }, theme);
        let below = Rect { y: body.y + 1, height: body.height - 1, ..body };
        let (list, last) = match &self.notice {
            Some(_) if below.height > 1 => {
                (Rect { height: below.height - 1, ..below }, Rect { y: below.bottom() - 1, height: 1, ..below })
            }
            _ => (below, Rect::default()),
        };
        let columns = usize::from(list.width);
        let found = self.found(stage);
        let cursor = self.cursor.min(found.len().saturating_sub(1));
        let scroll = reveal(0, cursor, found.len(), list.height);
        let mut lines: Vec<Line<'_>> =
            found.iter().enumerate().map(|(index, found)| row(found, index == cursor, columns, stage)).collect();
        if lines.is_empty() {
            lines.push(Line::from(Span::styled("No action matches.", theme.style(Role::Muted))));
        }
        rows(frame, list, theme, lines, scroll);
        if let Some(notice) = &self.notice {
            let notice = clip(theme, notice, usize::from(last.width));
            frame.render_widget(Span::styled(notice, theme.style(Role::Warning)), last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stages::Staged;
    use super::*;

    const SCOPES: [Scope; 3] = [Scope::Agent, Scope::Move, Scope::Global];

    fn best(query: &str) -> &'static str {
        let staged = Staged::running();
        let mut palette = Palette::new(&SCOPES);
        staged.type_text(&mut palette, query);
        staged.with(|stage| palette.found(stage).first().map_or("", |found| found.action.name()))
    }

    #[test]
    fn the_best_comes_first() {
        assert_eq!(best("stop"), "stop");
        assert_eq!(best("sai"), "stop-after-iteration");
        assert_eq!(best("budget"), "raise-budget");
        assert_eq!(best("after it"), "stop-after-iteration");
        assert_eq!(best("clip"), "");
        assert_eq!(best("keys"), "help");
        assert_eq!(best("thm"), "next-theme");
        assert_eq!(best("$EDITOR"), "");
    }

    #[test]
    fn looks() {
        let staged = Staged::running();
        insta::assert_snapshot!("palette_80x20", staged.screen(&mut Palette::new(&SCOPES), 80, 20));
        let mut palette = Palette::new(&SCOPES);
        staged.type_text(&mut palette, "re");
        insta::assert_snapshot!("palette_120x36", staged.screen(&mut palette, 120, 36));
        let mut plain = Staged::running().ascii();
        plain.read_only = true;
        insta::assert_snapshot!("palette_ascii", plain.screen(&mut palette, 80, 20));
        staged.all_sizes(&mut palette);
    }

    #[test]
    fn enter_does_what_can_be_done_and_says_why_not() {
        let mut staged = Staged::running();
        let mut palette = Palette::new(&SCOPES);
        staged.type_text(&mut palette, "steer");
        assert!(matches!(staged.press(&mut palette, KeyCode::Enter).next, Next::Act(Action::Steer)));
        staged.read_only = true;
        assert!(matches!(staged.press(&mut palette, KeyCode::Enter).next, Next::Stay));
        assert!(staged.screen(&mut palette, 80, 20).contains("steer is not possible: this console is read-only"));
        assert!(matches!(staged.press(&mut palette, KeyCode::Esc).next, Next::Close));
    }

    #[test]
    fn the_cursor_stays_on_the_list() {
        let staged = Staged::running();
        let mut palette = Palette::new(&SCOPES);
        staged.press(&mut palette, KeyCode::Up);
        for _ in 0..500 {
            staged.press(&mut palette, KeyCode::Down);
        }
        let screen = staged.screen(&mut palette, 80, 20);
        assert!(screen.contains('▸'), "{screen}");
        staged.type_text(&mut palette, "x");
        assert_eq!(palette.cursor, 0);
    }
}
