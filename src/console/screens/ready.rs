//! The screen before the start: everything the loop was declared with, and that nothing has been spent.
//!
//! Not here: reading files, starting. Invariants: nothing happens before the operator says so; warnings stand
//! above what they warn about, so that they are seen without scrolling.

mod work;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::console::action::Action;
use crate::console::charts::pen::Pen;
use crate::console::cmd::Cmd;
use crate::console::prose::wrap;
use crate::console::theme::{Role, Theme};
use crate::console::widget;
use crate::model::criterion::Proof;
use crate::model::decision::{Mode, Patience};
use crate::model::learnings::SpecVersion;
use crate::model::loop_file::{LoopFile, SandboxMode};
use crate::model::project_check::Inferred;
use crate::model::ready_line::Items;
use crate::model::safe::Safe;
use crate::playbook;

/// Rows that do not scroll: the title, and the line that says how to start.
const FIXED_ROWS: u16 = 2;
/// Columns of the names at the left.
const NAMES: usize = 12;

/// The screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Ready {
    pub declared: LoopFile,
    pub workspace: Safe,
    /// The first prompt, line by line.
    pub prompt: Vec<Safe>,
    /// What the operator should know before the start.
    pub notes: Vec<Safe>,
    /// What would be enforced around commands here, if that is known.
    pub sandbox: Safe,
    /// The items of a PRD, or why they cannot be used; `None`: there are none to look at.
    pub items: Option<Items>,
    /// What the project's files suggest as its check: a declared check that is the same was likely inferred.
    pub inferred: Vec<Inferred>,
    offset: usize,
    size: (u16, u16),
}

impl Ready {
    pub fn new(declared: LoopFile, workspace: Safe, prompt: Vec<Safe>, notes: Vec<Safe>) -> Self {
        Self {
            declared,
            workspace,
            prompt,
            notes,
            sandbox: Safe::default(),
            items: None,
            inferred: Vec::new(),
            offset: 0,
            size: (80, 22),
        }
    }

    /// The room it was given, so that pages can be turned.
    pub fn resize(&mut self, area: Rect) {
        self.size = (area.width, area.height);
    }

    pub fn act(&mut self, action: Action) -> Vec<Cmd> {
        let page = usize::from(self.size.1.saturating_sub(FIXED_ROWS)).max(1);
        // The number of rows does not depend on how they look.
        let rows = self.body(&Theme::plain(), usize::from(self.size.0)).len();
        let last = rows.saturating_sub(page);
        match action {
            Action::Start | Action::Select => return vec![Cmd::Start],
            Action::Up => self.offset = self.offset.min(last).saturating_sub(1),
            Action::Down => self.offset = (self.offset + 1).min(last),
            Action::PageUp => self.offset = self.offset.min(last).saturating_sub(page),
            Action::PageDown => self.offset = (self.offset + page).min(last),
            Action::Top => self.offset = 0,
            Action::Bottom => self.offset = last,
            _ => {}
        }
        Vec::new()
    }

    pub fn view(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let mut pen = Pen::new(frame.buffer_mut(), area, theme);
        if pen.height() == 0 {
            return;
        }
        let name = Safe::line(self.declared.name.as_deref().unwrap_or("loop"));
        let title = Line::from(vec![
            Span::styled(format!("{} READY ", theme.glyphs().idle), theme.style(Role::Badge)),
            Span::styled(format!(" {name}"), theme.style(Role::Title)),
            Span::styled(format!("  {}", self.workspace), theme.style(Role::Muted)),
        ]);
        pen.rule(title, "", Role::Border);
        let rows = pen.height().saturating_sub(FIXED_ROWS);
        let body = self.body(theme, usize::from(pen.width()));
        let offset = self.offset.min(body.len().saturating_sub(usize::from(rows)));
        let below = body.len().saturating_sub(offset + usize::from(rows));
        for (y, line) in (1..=rows).zip(body.into_iter().skip(offset)) {
            pen.line(0, y, line);
        }
        if pen.height() > 1 {
            let y = pen.height() - 1;
            pen.row(0, pen.width(), y, theme.glyphs().line_h, Role::Border);
            let mut spans = vec![
                Span::styled(" Nothing has been spent. ", theme.style(Role::Good)),
                Span::styled("Enter", theme.style(Role::Key)),
                Span::styled(" starts.", theme.style(Role::Good)),
            ];
            let room = usize::from(pen.width()) >= 60;
            if room && (below > 0 || offset > 0) {
                let more = format!("  {} {below} more rows ", theme.glyphs().new_below);
                let more = if below > 0 { more } else { "  end ".to_owned() };
                spans.push(Span::styled(more, theme.style(Role::Muted)));
            }
            pen.line(1, y, Line::from(spans));
        }
    }

    /// Everything that scrolls.
    fn body(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        let mut body = Body { theme, columns: columns.min(120), lines: Vec::new() };
        for note in &self.notes {
            body.entry("! note", note.as_str(), Role::Warning);
        }
        self.goal(&mut body);
        self.work(&mut body);
        self.limits(&mut body);
        self.who(&mut body);
        self.guards(&mut body);
        self.criteria(&mut body);
        if !self.prompt.is_empty() {
            body.lines.push(Line::default());
            body.entry(
                "first prompt",
                &format!("{} lines, as the first agent will read it", self.prompt.len()),
                Role::Muted,
            );
            for line in &self.prompt {
                for row in wrap_or_blank(line.as_str(), body.columns.saturating_sub(2)) {
                    body.lines.push(widget::styled(format!("  {row}"), theme.style(Role::Code)));
                }
            }
        }
        body.lines
    }

    fn goal(&self, body: &mut Body<'_>) {
        let declared = &self.declared;
        let goal = declared.goal.as_deref().map(Safe::line);
        match &goal {
            Some(goal) => body.entry("goal", goal.as_str(), Role::Emphasis),
            None => body.entry("goal", "missing: the run will ask for it and end with NEED_INFO", Role::Bad),
        }
        let spec = match declared.spec() {
            SpecVersion::V1 => "1.0",
            SpecVersion::V2 => "2.0",
        };
        let roles: Vec<_> = declared.playbook.roles().iter().map(|role| role.name()).collect();
        let roles = roles.join(" → ");
        let roles = if body.theme.glyphs().braille { roles } else { roles.replace('→', ">") };
        body.entry("playbook", &format!("{}: {roles}, spec {spec}", declared.playbook.name()), Role::Text);
        let certificates: Vec<&str> = declared.certificates().into_iter().map(|kind| kind.name()).collect();
        let (r_p, said) = declared.r_p();
        let default = if said { "" } else { " (default)" };
        let halts =
            if certificates.is_empty() { "no certificate declared".to_owned() } else { certificates.join(" or ") };
        body.entry("done when", &format!("{halts}; R_p {r_p}{default}; rung {}", declared.rung_target()), Role::Text);
        let command = declared.residual.as_ref().and_then(|residual| residual.command.as_ref());
        let metric = Safe::line(&declared.residual_metric());
        let residual = match command {
            Some(argv) => format!("{metric}, by {}", Safe::line(&argv.join(" "))),
            None => metric.to_string(),
        };
        body.entry("residual", &residual, Role::Text);
    }

    fn criteria(&self, body: &mut Body<'_>) {
        let declared = &self.declared;
        let criteria = declared.criteria();
        let checked = criteria.iter().any(|criterion| matches!(criterion.proof, Proof::Check { .. }));
        if criteria.is_empty() {
            body.entry("criteria", "none: the run will end with NEED_INFO", Role::Bad);
        } else if playbook::of(declared.playbook).check_note().needed && !checked {
            body.entry(
                "! check",
                "no check: the run will end with NEED_INFO; name one in acceptance_criteria",
                Role::Bad,
            );
        }
        for (index, criterion) in criteria.iter().enumerate() {
            let name = if index == 0 { "criteria" } else { "" };
            let how = match &criterion.proof {
                Proof::Check { argv, timeout_seconds } => {
                    format!(
                        "$ {} (at most {})",
                        argv.join(" "),
                        widget::duration(timeout_seconds.saturating_mul(1_000))
                    )
                }
                Proof::ExitGate => "decided by the exit gate".to_owned(),
                Proof::Items => "decided item by item: checks and critic".to_owned(),
                Proof::Verified => "decided by checks and critic".to_owned(),
                Proof::Judged => "judged by the skeptic, with an artifact as evidence".to_owned(),
            };
            let text = format!("{} {}: {}", body.theme.glyphs().bullet, criterion.id, criterion.text);
            body.entry(name, Safe::line(&text).as_str(), Role::Text);
            body.entry("", &format!("  {}", Safe::line(&how)), Role::Muted);
            if let Proof::Check { argv, .. } = &criterion.proof
                && let Some((when, look)) = self.when_it_runs(argv)
            {
                body.entry("", &format!("  {when}"), look);
            }
        }
    }

    fn limits(&self, body: &mut Body<'_>) {
        let effective = self.declared.budget_in_force();
        let limits = &effective.limits;
        let tokens = limits
            .max_total_tokens
            .map_or_else(|| "tokens not limited".to_owned(), |n| format!("{} tokens", widget::count(n)));
        let money = limits.max_cost_usd.map_or_else(|| "money not limited".to_owned(), |limit| format!("${limit}"));
        body.entry(
            "budget",
            &format!(
                "at most {} iterations, {}, {} tool calls, {tokens}, {money}",
                limits.max_iterations,
                widget::duration(limits.max_total_seconds.saturating_mul(1_000)),
                widget::count(limits.max_total_tool_calls),
            ),
            Role::Text,
        );
        body.entry(
            "",
            &format!(
                "per iteration {} and {} tool calls; profile {}",
                widget::duration(limits.max_seconds_per_iteration.saturating_mul(1_000)),
                limits.max_tool_calls_per_iteration,
                effective.profile.name()
            ),
            Role::Muted,
        );
        for clamp in &effective.clamps {
            let text = format!("{}: {} requested, {} used", clamp.limit, clamp.requested, clamp.used);
            body.entry("", &text, Role::Warning);
        }
    }

    fn who(&self, body: &mut Body<'_>) {
        let mut agents: Vec<(Vec<&str>, String, Role)> = Vec::new();
        for role in self.declared.playbook.roles() {
            let (text, look) = match self.declared.agent_for(*role) {
                Some((agent, decl)) => {
                    let program = decl.command.as_ref().and_then(|argv| argv.first());
                    let program = program.map(|path| path.rsplit('/').next().unwrap_or(path));
                    let model = decl.model.as_deref().or(decl.script.as_deref()).or(program).unwrap_or("-");
                    let effort = decl.effort.map(|effort| format!(", effort {}", effort.name())).unwrap_or_default();
                    (format!("{agent} ({} {model}{effort})", decl.backend.name()), Role::Text)
                }
                None => ("no agent is declared".to_owned(), Role::Bad),
            };
            // Roles of the same agent share a row.
            match agents.iter_mut().find(|(_, known, _)| *known == text) {
                Some((roles, _, _)) => roles.push(role.name()),
                None => agents.push((vec![role.name()], text, look)),
            }
        }
        for (index, (roles, text, look)) in agents.into_iter().enumerate() {
            let name = if index == 0 { "agents" } else { "" };
            body.entry(name, Safe::line(&format!("{}: {text}", roles.join(", "))).as_str(), look);
        }
    }

    fn guards(&self, body: &mut Body<'_>) {
        let permissions = &self.declared.permissions;
        let lists = [("allow", &permissions.allow), ("ask", &permissions.ask), ("deny", &permissions.deny)];
        let mut name = "permissions";
        for (what, rules) in lists.into_iter().filter(|(_, rules)| !rules.is_empty()) {
            body.entry(name, Safe::line(&format!("{what}: {}", rules.join(", "))).as_str(), Role::Text);
            name = "";
        }
        if name == "permissions" {
            body.entry(name, "no rules of your own", Role::Muted);
        }
        match self.declared.sandbox.mode {
            Some(SandboxMode::Required) => {
                body.entry("sandbox", "required: the run will not start without it", Role::Text)
            }
            Some(SandboxMode::Preferred) | None => {
                body.entry("sandbox", "as strong as this machine allows", Role::Text);
            }
            Some(SandboxMode::Off) => {
                body.entry("sandbox", "off: agents and checks run with your rights", Role::Warning)
            }
        }
        if !self.sandbox.as_str().is_empty() && self.declared.sandbox.mode != Some(SandboxMode::Off) {
            body.entry("", self.sandbox.as_str(), Role::Muted);
        }
        let decl = self.declared.decisions.as_ref();
        let patience = Patience {
            mode: decl.and_then(|decl| decl.mode).unwrap_or(Mode::Wait),
            timeout_minutes: decl.and_then(|decl| decl.timeout_minutes).unwrap_or(0),
        };
        body.entry("decisions", &format!("without an answer {}", patience.describe()), Role::Text);
    }
}

fn wrap_or_blank(text: &str, columns: usize) -> Vec<String> {
    let rows = wrap(text, columns);
    if rows.is_empty() { vec![String::new()] } else { rows }
}

/// The rows that scroll.
struct Body<'a> {
    theme: &'a Theme,
    columns: usize,
    lines: Vec<Line<'static>>,
}

impl Body<'_> {
    /// A name at the left, a text beside it.
    fn entry(&mut self, name: &str, text: &str, role: Role) {
        let indent = text.chars().take_while(|c| *c == ' ').count();
        // What follows a bullet hangs under its text.
        let hang = if text.starts_with(self.theme.glyphs().bullet) { 2 } else { 0 };
        let room = self.columns.saturating_sub(NAMES + 1 + indent + hang);
        for (index, row) in wrap_or_blank(text, room).into_iter().enumerate() {
            let (name, indent) = if index == 0 { (name, indent) } else { ("", indent + hang) };
            self.lines.push(Line::from(vec![
                Span::styled(format!("{name:>NAMES$} "), self.theme.style(Role::Muted)),
                Span::styled(format!("{}{row}", " ".repeat(indent)), self.theme.style(role)),
            ]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::moment::sizes;
    use crate::console::sample::{Sample, screen};
    use crate::console::theme::Glyphs;
    use crate::machine::event::{CallEvent, Event};

    fn ready() -> Ready {
        let sample = Sample::demo();
        let declared = sample.ended().loop_file().clone();
        let system = sample.events.iter().find_map(|stamped| match &stamped.event {
            Event::Call(CallEvent::AgentStarted(started)) => Some(started.system),
            _ => None,
        });
        let mut prompt = Safe::lines_of(&sample.blobs.get(&system.unwrap()).unwrap());
        prompt.push(Safe::line("\u{1b}[31mred"));
        let notes = vec![Safe::line("the sandbox is not enforced")];
        Ready::new(declared, Safe::line("~/work/slug"), prompt, notes)
    }

    fn drawn(ready: &Ready, width: u16, height: u16, theme: &Theme) -> String {
        screen(width, height, |frame| ready.view(frame, frame.area(), theme))
    }

    #[test]
    fn screens() {
        insta::assert_snapshot!(drawn(&ready(), 80, 22, &Theme::dark()));
        insta::assert_snapshot!(drawn(&ready(), 120, 36, &Theme::dark()));
        insta::assert_snapshot!(drawn(&ready(), 40, 12, &Theme::plain().with_glyphs(Glyphs::ASCII)));
    }

    #[test]
    fn enter_starts_and_nothing_else_does() {
        let mut ready = ready();
        for action in Action::ALL {
            let starts = matches!(action, Action::Start | Action::Select);
            assert_eq!(ready.act(*action) == vec![Cmd::Start], starts, "{action:?}");
        }
    }

    #[test]
    fn everything_can_be_reached_and_says_that_nothing_is_spent() {
        let mut ready = ready();
        ready.resize(Rect::new(0, 0, 80, 12));
        let top = drawn(&ready, 80, 12, &Theme::plain());
        assert!(top.contains("Nothing has been spent. Enter starts.") && top.contains("the sandbox is not enforced"));
        ready.act(Action::Bottom);
        let bottom = drawn(&ready, 80, 12, &Theme::plain());
        assert!(bottom.contains("red") && !bottom.contains('\u{1b}'), "{bottom}");
        ready.act(Action::PageUp);
        assert_ne!(drawn(&ready, 80, 12, &Theme::plain()), bottom);
        ready.act(Action::Top);
        assert_eq!(drawn(&ready, 80, 12, &Theme::plain()), top);
    }

    #[test]
    fn a_loop_without_anything_says_what_is_missing() {
        let empty = crate::model::loop_file::parse("name: x\n", "loop.yaml").unwrap();
        let text = drawn(&Ready::new(empty, Safe::default(), Vec::new(), Vec::new()), 100, 30, &Theme::plain());
        for part in ["goal missing", "criteria none", "no agent is declared", "no certificate declared"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn no_size_is_too_small() {
        let ready = ready();
        for (width, height) in sizes() {
            drawn(&ready, width, height, &Theme::dark());
        }
    }
}
