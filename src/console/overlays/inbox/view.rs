//! How the inbox is drawn: the list above or beside the decision, the answer below, the keys last.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::super::action::Action;
use super::super::super::theme::Role;
use super::super::super::widget::{clip, clip_line};
use super::super::Stage;
use super::super::allowed::barred;
use super::super::sheet::{Keys, Sheet, keys, reveal, rows};
use super::super::text::wrap;
use super::detail::{Detail, Sources, detail};
use super::offer::{choices, offers};
use super::{Inbox, Input, Mode, list};
use crate::machine::operator::DecisionStatus;

/// From so many columns on the list stands beside the decision.
const BESIDE: u16 = 110;
/// Rows of a text that is being written, its label included.
const WRITING: u16 = 5;
/// Rows that a notice may take.
const NOTICE: usize = 2;

struct Layout {
    sheet: Sheet,
    list: Rect,
    rule: Rect,
    detail: Rect,
    notice: Rect,
    writing: Rect,
}

impl Inbox {
    /// The rows of the selected decision and how many of them can be seen.
    pub(super) fn rows(&self, stage: &Stage<'_>) -> (Detail, u16) {
        let layout = self.layout(self.area, stage);
        (self.detail(stage, layout.detail.width), layout.detail.height)
    }

    fn detail(&self, stage: &Stage<'_>, columns: u16) -> Detail {
        let (Some(scene), Some(decision)) = (stage.scene, self.decision(stage)) else {
            let text = [
                "Nothing is waiting for you.",
                "",
                "Questions, permissions, tasks only a person can do, and proposed texts appear here. Waiting for an \
                 answer spends nothing.",
            ];
            let lines = text.iter().flat_map(|text| wrap(text, usize::from(columns)));
            let style = stage.theme.style(Role::Muted);
            return Detail {
                lines: lines.map(|row| Line::from(Span::styled(row, style))).collect(),
                cursor: None,
                to_read: 0,
            };
        };
        detail(&Sources {
            decision,
            scene,
            theme: stage.theme,
            blobs: &self.blobs,
            draft: self.draft(),
            columns: usize::from(columns),
        })
    }

    fn keys(&self, stage: &Stage<'_>) -> Keys {
        match &self.mode {
            Mode::Write(_) => return keys(&[("enter", "send"), ("alt-enter", "new line"), ("esc", "back")]),
            Mode::Note(_) => return keys(&[("enter", "keep the note"), ("alt-enter", "new line"), ("esc", "back")]),
            Mode::Editing => return keys(&[("esc", "do not wait for $EDITOR")]),
            Mode::Interrupted => return keys(&[("esc", "continue: someone else answered while you were writing")]),
            Mode::Browse => {}
        }
        let mut keys = Keys::new();
        let decision = self.decision(stage);
        let review = self.draft().and_then(|draft| draft.review.as_ref());
        if let Some(decision) = decision.filter(|d| d.status == DecisionStatus::Open && barred(stage).is_none()) {
            let count = choices(&decision.request).len().min(9);
            if count > 0 {
                let range = if count == 1 { "1".to_owned() } else { format!("1-{count}") };
                keys.push((range, "choose".to_owned()));
            }
            keys.extend(
                offers(decision, review).into_iter().map(|offer| (stage.keymap.first_key(offer.action), offer.label)),
            );
        }
        if let Some(decision) = decision {
            let changes = review.is_some_and(|review| !review.previewing()) && decision.status == DecisionStatus::Open;
            keys.push(("up/down".to_owned(), if changes { "change" } else { "scroll" }.to_owned()));
        }
        if stage.scene.is_some_and(|scene| scene.run.operator.decisions.len() > 1) {
            let pair = format!("{}/{}", stage.keymap.first_key(Action::Left), stage.keymap.first_key(Action::Right));
            keys.push((pair, "other decision".to_owned()));
        }
        keys.push(("esc".to_owned(), "close".to_owned()));
        keys
    }

    fn notice_lines(&self, stage: &Stage<'_>, columns: u16) -> Vec<Line<'static>> {
        let theme = stage.theme;
        let columns = usize::from(columns);
        let open = self.decision(stage).is_some_and(|decision| decision.status == DecisionStatus::Open);
        let refusal = self.decision(stage).filter(|_| open).and_then(|decision| Self::refusal(decision, stage));
        let (text, role) = match (&self.notice, refusal) {
            (Some(notice), _) => (notice.text.clone(), notice.role),
            (None, Some(why)) => (format!("{} Cannot be answered here: {why}.", theme.glyphs().no), Role::Warning),
            (None, None) => return Vec::new(),
        };
        let mut rows = wrap(&text, columns);
        if rows.len() > NOTICE {
            let rest = rows.split_off(NOTICE - 1).join(" ");
            rows.push(clip(theme, &rest, columns));
        }
        rows.into_iter().map(|row| Line::from(Span::styled(row, theme.style(role)))).collect()
    }

    fn layout(&self, area: Rect, stage: &Stage<'_>) -> Layout {
        let sheet = Sheet::place(area, usize::MAX, usize::MAX, &self.keys(stage));
        let body = sheet.body;
        let count = stage.scene.map_or(0, |scene| scene.run.operator.decisions.len());
        let lines = u16::try_from(self.notice_lines(stage, body.width).len()).unwrap_or(0);
        let notice_rows = lines.min(body.height.saturating_sub(2));
        let writing_rows = match &self.mode {
            Mode::Write(_) | Mode::Note(_) => WRITING.min(body.height.saturating_sub(notice_rows) / 2),
            Mode::Browse | Mode::Editing | Mode::Interrupted => 0,
        };
        let upper = body.height - notice_rows - writing_rows;
        let writing = Rect { y: body.y + upper, height: writing_rows, ..body };
        let notice = Rect { y: writing.bottom(), height: notice_rows, ..body };
        let upper = Rect { height: upper, ..body };
        if count < 2 || upper.height < 9 {
            let nothing = Rect { height: 0, ..upper };
            return Layout { sheet, list: nothing, rule: nothing, detail: upper, notice, writing };
        }
        if body.width >= BESIDE && count > 1 {
            let wide = (body.width / 3).min(60);
            let list = Rect { width: wide, ..upper };
            let rule = Rect { x: upper.x + wide + 1, width: 1, ..upper };
            let detail = Rect { x: rule.x + 2, width: upper.width - wide - 3, ..upper };
            return Layout { sheet, list, rule, detail, notice, writing };
        }
        let most = (upper.height / 5).max(1);
        let shown = u16::try_from(count).unwrap_or(u16::MAX).min(most.max(2));
        let list = Rect { height: shown, ..upper };
        let rule = Rect { y: list.bottom(), height: 1, ..upper };
        let detail = Rect { y: rule.bottom(), height: upper.height - shown - 1, ..upper };
        Layout { sheet, list, rule, detail, notice, writing }
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, stage: &Stage<'_>) {
        let theme = stage.theme;
        let layout = self.layout(area, stage);
        let waiting = stage.scene.map_or(0, |scene| scene.run.operator.open().count());
        let title = match waiting {
            0 => "Inbox: nothing waiting".to_owned(),
            1 => "Inbox: 1 decision waiting".to_owned(),
            count => format!("Inbox: {count} decisions waiting"),
        };
        layout.sheet.draw(frame, theme, &title, &self.keys(stage));
        self.draw_list(frame, &layout, stage);
        let detail = self.detail(stage, layout.detail.width);
        let scroll = self.offset(&detail, layout.detail.height);
        rows(frame, layout.detail, theme, detail.lines, scroll);
        frame.render_widget(Paragraph::new(self.notice_lines(stage, layout.notice.width)), layout.notice);
        match &self.mode {
            Mode::Write(input) => self.draw_input(frame, layout.writing, "Your answer:", input, stage),
            Mode::Note(input) => self.draw_input(frame, layout.writing, "A note for your answer:", input, stage),
            Mode::Browse | Mode::Editing | Mode::Interrupted => {}
        }
    }

    fn draw_list(&self, frame: &mut Frame<'_>, layout: &Layout, stage: &Stage<'_>) {
        let Some(scene) = stage.scene.filter(|_| !layout.list.is_empty()) else { return };
        let (theme, area) = (stage.theme, layout.list);
        let lines = list::rows(scene, theme, self.selected, usize::from(area.width));
        let order = list::order(&scene.run.operator);
        let at = order.iter().position(|decision| Some(decision.id) == self.selected).unwrap_or(0);
        let scroll = reveal(0, at, lines.len(), area.height);
        // Two rows have no room for a word about the rest: the rule below says it.
        let short = area.height <= 3 && lines.len() > usize::from(area.height);
        if short {
            let from = (at + 1).saturating_sub(usize::from(area.height));
            let hidden = lines.len() - usize::from(area.height);
            let visible: Vec<Line<'_>> = lines.into_iter().skip(from).take(usize::from(area.height)).collect();
            frame.render_widget(Paragraph::new(visible), area);
            self.draw_rule(frame, layout.rule, &format!(" {hidden} more "), stage);
        } else {
            rows(frame, area, theme, lines, scroll);
            self.draw_rule(frame, layout.rule, "", stage);
        }
    }

    fn draw_rule(&self, frame: &mut Frame<'_>, area: Rect, text: &str, stage: &Stage<'_>) {
        let (theme, glyphs) = (stage.theme, stage.theme.glyphs());
        let style = theme.style(Role::Border);
        let lines: Vec<Line<'_>> = if area.width == 1 {
            (0..area.height).map(|_| Line::from(Span::styled(glyphs.line_v, style))).collect()
        } else {
            let mut spans = vec![Span::styled(glyphs.line_h.repeat(2), style)];
            spans.push(Span::styled(text.to_owned(), theme.style(Role::Muted)));
            spans.push(Span::styled(glyphs.line_h.repeat(usize::from(area.width)), style));
            let mut line = Line::from(spans);
            // The rule ends with its row; there is nothing to mark as cut.
            line.style = style;
            vec![line]
        };
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn draw_input(&self, frame: &mut Frame<'_>, area: Rect, label: &str, input: &Input, stage: &Stage<'_>) {
        if area.is_empty() {
            return;
        }
        let label = Line::from(Span::styled(label.to_owned(), stage.theme.style(Role::Heading)));
        let label = clip_line(stage.theme, label, usize::from(area.width));
        frame.render_widget(label, Rect { height: 1, ..area });
        input.view(frame, Rect { y: area.y + 1, height: area.height - 1, ..area }, stage.theme);
    }
}
