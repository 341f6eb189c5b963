//! Messages change the model and name commands. Pure: the shell around it reads and does.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;

use crate::engine::command::Command;
use crate::machine::event::{Event, OperatorEvent, RunEvent};
use crate::model::safe::Safe;

use super::action::Action;
use super::bars::{Message, Tone};
use super::cmd::{Cmd, Loaded, ReplayMove};
use super::feed::Update;
use super::model::{Model, Screen};
use super::overlays::inbox::Inbox;
use super::overlays::{Budget, Confirm, Help, Next, Overlay, Palette, Prompt, Quit, Response, WhyBox, allowed};
use super::panes::PaneId;
use super::scene::{Link, News};
use super::screens::welcome::Choice;
use super::theme::Theme;
use super::why;
use super::world::Moment;

/// Lines that one turn of the mouse wheel moves.
const WHEEL: usize = 3;

/// What comes into the console.
#[derive(Debug)]
pub enum Msg {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    Resized(u16, u16),
    /// The terminal says whether it is looked at.
    LookedAt(bool),
    Feed(Vec<Update>),
    Loaded(Loaded),
    /// Time went by, and something shown depends on it.
    Tick,
    Themed(Box<Theme>),
    /// Another run is shown from here on.
    Watching {
        link: Link,
        read_only: bool,
    },
    Said(Tone, Safe),
}

/// One message. Sets `dirty` where a frame may have changed.
pub fn update(model: &mut Model, msg: Msg, now_ms: i64) -> Vec<Cmd> {
    model.world.now_ms = now_ms;
    model.dirty = true;
    model.fit();
    let mut cmds = match msg {
        Msg::Key(key) if key.kind == KeyEventKind::Release => {
            model.dirty = false;
            return Vec::new();
        }
        Msg::Key(key) => press(model, key),
        Msg::Mouse(mouse) => point(model, mouse),
        Msg::Paste(text) => {
            if let Some(overlay) = model.overlays.last_mut() {
                overlay.paste(&text);
            }
            Vec::new()
        }
        Msg::Resized(width, height) => {
            model.size = Rect::new(0, 0, width, height);
            Vec::new()
        }
        Msg::LookedAt(looked_at) => {
            model.looked_at = Some(looked_at);
            model.dirty = false;
            return Vec::new();
        }
        Msg::Feed(updates) => updates.iter().flat_map(|update| hear(model, update)).collect(),
        Msg::Loaded(loaded) => take(model, loaded),
        Msg::Tick => Vec::new(),
        Msg::Themed(theme) => {
            model.message = Some(said(Tone::Info, &format!("theme {}", theme.name())));
            model.world.theme = *theme;
            Vec::new()
        }
        Msg::Watching { link, read_only } => {
            forget(model);
            model.world.link = link;
            model.world.read_only = read_only;
            model.screen = Screen::Run;
            model.shown = PaneId::Overview;
            model.overlays.clear();
            Vec::new()
        }
        Msg::Said(tone, text) => {
            model.message = Some(Message { tone, text });
            Vec::new()
        }
    };
    model.fit();
    cmds.extend(model.refresh());
    cmds.extend(retitle(model));
    cmds
}

fn said(tone: Tone, text: &str) -> Message {
    Message { tone, text: Safe::line(text) }
}

fn forget(model: &mut Model) {
    model.world.forget();
    model.panes.learn(News::Reset);
}

/// The title follows the state, and nothing else.
fn retitle(model: &mut Model) -> Option<Cmd> {
    let run = model.world.run.as_ref()?;
    let waiting = run.operator.open().count();
    let waits = if waiting > 0 { format!(" ({waiting} waiting)") } else { String::new() };
    let name = run.loop_file().name.as_deref().unwrap_or("run");
    let title = format!("nightloop {name}: {}{waits}", run.state);
    if title == model.title {
        return None;
    }
    model.title.clone_from(&title);
    Some(Cmd::Title(Safe::line(&title)))
}

// --- keys

fn press(model: &mut Model, key: KeyEvent) -> Vec<Cmd> {
    model.message = None;
    if !model.overlays.is_empty() {
        let response = model.on_stage(|overlays, stage| overlays.last_mut().map(|overlay| overlay.key(key, stage)));
        return response.map(|response| follow(model, response)).unwrap_or_default();
    }
    // The welcome screen writes its own keys beside its choices.
    if let (Screen::Welcome(welcome), KeyCode::Char(letter)) = (&model.screen, key.code)
        && model.shown != PaneId::Runs
        && let Some(choice) = welcome.key(letter)
    {
        return choose(model, choice);
    }
    let scopes = model.scopes();
    model.keymap.action(&scopes, key).map(|action| act(model, action)).unwrap_or_default()
}

fn point(model: &mut Model, mouse: MouseEvent) -> Vec<Cmd> {
    let action = match mouse.kind {
        MouseEventKind::ScrollUp => Action::Up,
        MouseEventKind::ScrollDown => Action::Down,
        _ => {
            model.dirty = false;
            return Vec::new();
        }
    };
    if !model.overlays.is_empty() {
        return Vec::new();
    }
    (0..WHEEL).flat_map(|_| act(model, action)).collect()
}

/// What an overlay's answer does to the stack.
fn follow(model: &mut Model, response: Response) -> Vec<Cmd> {
    let mut cmds = response.cmds;
    match response.next {
        Next::Stay => {}
        Next::Close => {
            let closed = model.overlays.pop();
            // Choices and notes that were begun are there when it is opened again.
            model.inbox = closed.filter(|overlay| overlay.is_kept()).or(model.inbox.take());
        }
        Next::Push(overlay) => model.overlays.push(overlay),
        Next::Replace(overlay) => {
            model.overlays.pop();
            model.overlays.push(overlay);
        }
        Next::Act(action) => {
            model.overlays.pop();
            cmds.extend(act(model, action));
        }
        Next::Search(text) => {
            model.overlays.pop();
            model.last_search.clone_from(&text);
            if let Some(scene) = model.world.scene(true) {
                model.panes.get_mut(model.shown).search(&text, &scene);
            }
        }
    }
    cmds
}

fn open(model: &mut Model, overlay: impl Overlay + 'static) -> Vec<Cmd> {
    model.overlays.push(Box::new(overlay));
    Vec::new()
}

/// An action of the operator.
fn act(model: &mut Model, action: Action) -> Vec<Cmd> {
    let scopes = model.scopes();
    if let Some(reason) = model.on_stage(|_, stage| allowed::why_not(action, &scopes, stage)) {
        model.message = Some(said(Tone::Info, &format!("{}: {reason}", action.hint())));
        return Vec::new();
    }
    if let Screen::Welcome(welcome) = &mut model.screen
        && model.shown != PaneId::Runs
        && let Some(choice) = welcome.act(action)
    {
        return choose(model, choice);
    }
    match action {
        Action::ShowRuns => show(model, PaneId::Runs),
        Action::ShowOverview => show(model, PaneId::Overview),
        Action::ShowAgent => show(model, PaneId::Agent),
        Action::ShowLearnings => show(model, PaneId::Learnings),
        Action::ShowPlan => show(model, PaneId::Plan),
        Action::ShowEvidence => show(model, PaneId::Evidence),
        Action::ShowTimeline => show(model, PaneId::Timeline),
        Action::ShowChanges => show(model, PaneId::Changes),
        Action::NextPane => step_pane(model, 1),
        Action::PreviousPane => step_pane(model, PaneId::ALL.len() - 1),
        Action::OpenInbox => {
            let mut inbox = model.inbox.take().unwrap_or_else(|| Box::new(Inbox::default()));
            inbox.reopened();
            model.overlays.push(inbox);
            Vec::new()
        }
        Action::Why => tell_why(model),
        Action::Pause => order_pause(model),
        Action::Stop => open(model, Confirm::stop()),
        Action::StopAfterIteration => {
            let scheduled = model.world.run.as_ref().is_some_and(|run| run.operator.stop_after_iteration.is_some());
            vec![Cmd::Order(Command::StopAfterIteration(!scheduled))]
        }
        Action::UndoIteration => {
            let run = model.world.run.as_ref();
            match run.and_then(|run| model.panes.changes.shown_iteration(run)) {
                Some(iteration) => open(model, Confirm::undo(iteration)),
                None => Vec::new(),
            }
        }
        Action::RetryNow => vec![Cmd::Order(Command::RetryNow)],
        Action::Steer => open(model, Prompt::steer()),
        Action::RaiseBudget => open(model, Budget::default()),
        Action::Freeze => freeze(model),
        Action::GoLive => {
            model.world.moment = None;
            Vec::new()
        }
        Action::NextTheme => vec![Cmd::NextTheme],
        Action::ToggleMouse => {
            model.mouse = !model.mouse;
            let text = if model.mouse { "the mouse scrolls; the terminal no longer selects text" } else { "mouse off" };
            model.message = Some(said(Tone::Info, text));
            vec![Cmd::SetMouse(model.mouse)]
        }
        Action::Palette => open(model, Palette::new(&scopes)),
        Action::Help => open(model, Help::new(&scopes)),
        Action::Detach => vec![Cmd::Detach],
        Action::Quit => quit(model),
        Action::Suspend => vec![Cmd::Suspend],
        Action::OpenShell => vec![Cmd::Shell],
        Action::Redraw => vec![Cmd::Redraw],
        Action::Search => open(model, Prompt::search(&model.last_search.clone())),
        Action::PlayPause => vec![Cmd::Replay(ReplayMove::Toggle)],
        Action::StepForward => vec![Cmd::Replay(ReplayMove::Forward)],
        Action::StepBack => vec![Cmd::Replay(ReplayMove::Back)],
        Action::Faster => vec![Cmd::Replay(ReplayMove::Faster)],
        Action::Slower => vec![Cmd::Replay(ReplayMove::Slower)],
        Action::Back if model.world.moment.is_some() && !model.world.frozen() => {
            model.world.moment = None;
            Vec::new()
        }
        other => act_in_pane(model, other),
    }
}

/// What only the shown part knows.
fn act_in_pane(model: &mut Model, action: Action) -> Vec<Cmd> {
    if let Screen::Ready(ready) = &mut model.screen
        && model.shown != PaneId::Runs
    {
        return ready.act(action);
    }
    if !model.shows_pane() {
        return Vec::new();
    }
    if action == Action::Back && !matches!(model.screen, Screen::Run) {
        model.shown = PaneId::Overview;
        return Vec::new();
    }
    match model.world.scene(true) {
        Some(scene) => model.panes.get_mut(model.shown).act(action, &scene),
        None if model.shown == PaneId::Runs => model.panes.runs.choose(action),
        None => Vec::new(),
    }
}

fn show(model: &mut Model, pane: PaneId) -> Vec<Cmd> {
    model.shown = pane;
    // The list of runs grows stale while one looks elsewhere.
    if pane == PaneId::Runs { vec![Cmd::Load(super::cmd::Load::Runs)] } else { Vec::new() }
}

fn step_pane(model: &mut Model, by: usize) -> Vec<Cmd> {
    let at = PaneId::ALL.iter().position(|pane| *pane == model.shown).unwrap_or(0);
    let next = PaneId::ALL[(at + by) % PaneId::ALL.len()];
    show(model, next)
}

fn choose(model: &mut Model, choice: Choice) -> Vec<Cmd> {
    match choice {
        Choice::Runs => show(model, PaneId::Runs),
        Choice::Help => {
            let scopes = model.scopes();
            open(model, Help::new(&scopes))
        }
        Choice::Demo | Choice::Init | Choice::Quit => vec![Cmd::Choose(choice)],
    }
}

fn order_pause(model: &mut Model) -> Vec<Cmd> {
    let paused = model.world.run.as_ref().is_some_and(|run| run.operator.pause.is_some());
    vec![Cmd::Order(if paused { Command::Resume } else { Command::Pause })]
}

/// Holds the view still, or lets it go on.
fn freeze(model: &mut Model) -> Vec<Cmd> {
    model.world.moment = match (model.world.moment.take(), &model.world.run) {
        (Some(_), _) => None,
        (None, Some(run)) => Some(Moment { run: run.clone(), frozen: true }),
        (None, None) => None,
    };
    Vec::new()
}

fn tell_why(model: &mut Model) -> Vec<Cmd> {
    let Some(scene) = model.world.scene(true) else { return Vec::new() };
    let key = |action| model.keymap.first_key(action);
    let why = why::why_with(&scene, model.panes.overview.recent(), &key);
    let evidence = why.evidence.iter().map(|line| Safe::line(line)).collect();
    let act = run_action(model);
    let title = Safe::line("Why is it not moving?");
    open(model, WhyBox::new(title, Safe::line(&why.sentence), evidence, Safe::line(&why.next), act))
}

/// The one thing an operator can do about a run that stands still.
fn run_action(model: &Model) -> Option<Action> {
    let run = model.world.run.as_ref()?;
    if run.operator.open().next().is_some() {
        return Some(Action::OpenInbox);
    }
    if run.operator.pause.is_some() {
        return Some(Action::Pause);
    }
    (run.time.waiting_ms > 0).then_some(Action::RetryNow)
}

/// Nothing that goes on needs no question.
fn quit(model: &mut Model) -> Vec<Cmd> {
    let over = model.world.ended || model.world.run.as_ref().is_none_or(|run| run.halt.is_some());
    let plain = !matches!(model.screen, Screen::Run) || matches!(model.world.link, Link::Replay { .. } | Link::Lost(_));
    if plain || over {
        return vec![Cmd::Leave];
    }
    open(model, Quit)
}

// --- news

fn hear(model: &mut Model, update: &Update) -> Vec<Cmd> {
    match update {
        Update::Event { stamped, body } => {
            if let Err(why) = model.world.follow(update) {
                model.world.link = Link::Lost(why);
                return Vec::new();
            }
            let Some(state) = &model.world.run else { return Vec::new() };
            model.panes.learn(News::Event { stamped, state, body: body.as_deref() });
            notice(model, &stamped.event)
        }
        Update::Live(live) => {
            model.panes.learn(News::Live(live));
            Vec::new()
        }
        Update::CaughtUp => {
            model.world.caught_up = true;
            Vec::new()
        }
        Update::Receipt(receipt) => {
            model.message = match receipt {
                Ok(text) if text.is_empty() => None,
                Ok(text) => Some(said(Tone::Good, text)),
                Err(text) => Some(said(Tone::Bad, text)),
            };
            match receipt {
                // The box that sent it shows it, too.
                Err(text) => hand_over(model, &Loaded::Failed(Safe::line(text))),
                Ok(_) => Vec::new(),
            }
        }
        Update::Reset => {
            forget(model);
            Vec::new()
        }
        // A run that is over has nobody to keep the line open.
        Update::Linked(Link::Lost(_)) if model.world.ended => Vec::new(),
        Update::Linked(link) => {
            model.world.link = link.clone();
            Vec::new()
        }
        Update::Ended => {
            model.world.ended = true;
            if model.world.run.as_ref().is_some_and(|run| run.halt.is_none()) {
                model.world.link =
                    Link::Lost("the run's process has ended; `nightloop resume` continues the run".to_owned());
            }
            Vec::new()
        }
    }
}

/// Tells an operator who may look elsewhere.
fn notice(model: &mut Model, event: &Event) -> Vec<Cmd> {
    let live = model.world.caught_up && matches!(model.world.link, Link::InProcess | Link::Attached);
    if !live {
        return Vec::new();
    }
    let (title, body, tone) = match event {
        Event::Operator(OperatorEvent::DecisionAsked(asked)) => {
            let key = model.keymap.first_key(Action::OpenInbox);
            let gist = Safe::line(&asked.request.gist());
            let title = format!("{} waits for you ({}); {key} opens the inbox", asked.id, asked.request.name());
            (title, gist, Tone::Info)
        }
        Event::Operator(OperatorEvent::DecisionAnswered(answered)) => {
            // What no longer waits is not said to wait.
            let waits = format!("{} waits", answered.id);
            if model.message.as_ref().is_some_and(|message| message.text.as_str().starts_with(&waits)) {
                model.message = None;
            }
            return Vec::new();
        }
        Event::Run(RunEvent::RunHalted(halted)) => {
            (format!("{} ({})", halted.status, halted.stop_reason), Safe::line(&halted.detail), Tone::Info)
        }
        _ => return Vec::new(),
    };
    model.message = Some(Message { tone, text: Safe::line(&title) });
    if model.looked_at == Some(true) {
        return Vec::new();
    }
    vec![Cmd::Notify { title: Safe::line(&title), body }]
}

fn take(model: &mut Model, loaded: Loaded) -> Vec<Cmd> {
    match loaded {
        Loaded::Moment(_, run) => {
            model.world.moment = Some(Moment { run, frozen: false });
            let key = model.keymap.first_key(Action::GoLive);
            model.message = Some(said(Tone::Info, &format!("an earlier moment; {key} returns to now")));
            Vec::new()
        }
        Loaded::Failed(text) => {
            model.message = Some(Message { tone: Tone::Bad, text: text.clone() });
            hand_over(model, &Loaded::Failed(text))
        }
        Loaded::Done(text) => {
            model.message = Some(Message { tone: Tone::Good, text });
            Vec::new()
        }
        other => {
            model.panes.take(&other);
            hand_over(model, &other)
        }
    }
}

/// To what lies on top. A text is for whoever asked for it, also where something was opened over it meanwhile, or
/// where it was closed: nobody asks twice.
fn hand_over(model: &mut Model, loaded: &Loaded) -> Vec<Cmd> {
    if let Loaded::Blob(..) = loaded {
        let mut closed = model.inbox.take();
        let cmds = model.on_stage(|overlays, stage| {
            let all = overlays.iter_mut().chain(&mut closed);
            all.flat_map(|overlay| overlay.take(loaded, stage).cmds).collect()
        });
        model.inbox = closed;
        return cmds;
    }
    let response = model.on_stage(|overlays, stage| overlays.last_mut().map(|overlay| overlay.take(loaded, stage)));
    response.map(|response| follow(model, response)).unwrap_or_default()
}
