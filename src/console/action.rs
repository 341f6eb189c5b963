//! The one registry of what an operator can do. Keymap, help, palette, footer hints and documentation are
//! derived from it.

/// Where an action makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Everywhere.
    Global,
    /// Wherever something can be moved through: lists, texts, charts.
    Move,
    Overview,
    Agent,
    Learnings,
    Plan,
    Evidence,
    Timeline,
    Changes,
    Runs,
    /// Before a run is started.
    Ready,
    /// While a replay is shown.
    Replay,
    /// In the inbox, on a decision.
    Inbox,
}

/// How an action is treated when the console may only look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Changes the view only.
    Look,
    /// Changes the run: absent in read-only mode.
    Act,
}

macro_rules! actions {
    ($($variant:ident = ($name:literal, $scope:ident, $weight:ident, $keys:literal, $hint:literal, $help:literal)),+ $(,)?) => {
        /// Something an operator can do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Action {
            $($variant,)+
        }

        impl Action {
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Its name in the keymap file.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            pub const fn scope(self) -> Scope {
                match self { $(Self::$variant => Scope::$scope,)+ }
            }

            pub const fn weight(self) -> Weight {
                match self { $(Self::$variant => Weight::$weight,)+ }
            }

            /// Default keys, separated by blanks.
            pub const fn default_keys(self) -> &'static str {
                match self { $(Self::$variant => $keys,)+ }
            }

            /// A word or two for the footer.
            pub const fn hint(self) -> &'static str {
                match self { $(Self::$variant => $hint,)+ }
            }

            /// One sentence for help and palette.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)+ }
            }
        }
    };
}

actions! {
    ShowRuns = ("show-runs", Global, Look, "0", "runs", "Show all runs on this machine."),
    ShowOverview = ("show-overview", Global, Look, "1", "overview", "Show state machine, charts and budgets."),
    ShowAgent = ("show-agent", Global, Look, "2", "agent", "Show what the agents say and do."),
    ShowLearnings = ("show-learnings", Global, Look, "3", "learnings", "Show AGENTS.md."),
    ShowPlan = ("show-plan", Global, Look, "4", "plan", "Show the criteria and their proof."),
    ShowEvidence = ("show-evidence", Global, Look, "5", "evidence", "Show the evidence files and verify them."),
    ShowTimeline = ("show-timeline", Global, Look, "6", "timeline", "Show the run over time, and go back in it."),
    ShowChanges = ("show-changes", Global, Look, "7", "changes", "Show what each iteration changed."),
    NextPane = ("next-pane", Global, Look, "tab", "next", "Go to the next pane."),
    PreviousPane = ("previous-pane", Global, Look, "backtab", "previous", "Go to the previous pane."),
    OpenInbox = ("open-inbox", Global, Look, "i", "inbox", "Show the decisions waiting for you."),
    Why = ("why", Global, Look, "w", "why?", "Say in one sentence why the run is not moving, and what to do."),
    Pause = ("pause", Global, Act, "p", "pause", "Pause after this step, or continue."),
    Stop = ("stop", Global, Act, "S", "STOP", "Stop the run now (asks first; writes scratch/STOP)."),
    StopAfterIteration = ("stop-after-iteration", Global, Act, "A", "stop after", "Stop after this iteration, or cancel that."),
    RetryNow = ("retry-now", Global, Act, "r", "retry now", "Retry the model server now instead of waiting."),
    Steer = ("steer", Global, Act, "s", "steer", "Send a message to the next agent call."),
    RaiseBudget = ("raise-budget", Global, Act, "b", "budget", "Raise a limit (recorded as your override)."),
    Copy = ("copy", Global, Look, "y", "copy", "Copy what is selected, and save it to a file."),
    OpenEditor = ("open-editor", Global, Look, "e", "editor", "Open what is selected in $EDITOR."),
    OpenShell = ("open-shell", Global, Act, "!", "shell", "Open a shell in the workspace; the run keeps going."),
    Freeze = ("freeze", Global, Look, "z", "freeze", "Freeze the view, or follow the run again."),
    GoLive = ("go-live", Global, Look, "L", "live", "Return from an earlier moment to now."),
    NextTheme = ("next-theme", Global, Look, "t", "theme", "Use the next theme."),
    ToggleMouse = ("toggle-mouse", Global, Look, "M", "mouse", "Turn the mouse on or off."),
    Palette = ("palette", Global, Look, ": ctrl-p", "palette", "Find any action by name."),
    Help = ("help", Global, Look, "? f1", "help", "Show the keys."),
    Detach = ("detach", Global, Look, "d", "detach", "Return to the shell; the run keeps going."),
    Quit = ("quit", Global, Look, "q ctrl-c", "quit", "Detach, stop or stay."),
    Suspend = ("suspend", Global, Look, "ctrl-z", "suspend", "Suspend the console; the run keeps going."),
    Redraw = ("redraw", Global, Look, "ctrl-l", "redraw", "Redraw the screen."),

    Up = ("up", Move, Look, "up k", "up", "Move up."),
    Down = ("down", Move, Look, "down j", "down", "Move down."),
    Left = ("left", Move, Look, "left h", "left", "Move left."),
    Right = ("right", Move, Look, "right l", "right", "Move right."),
    PageUp = ("page-up", Move, Look, "pageup ctrl-u", "page up", "Move up one page."),
    PageDown = ("page-down", Move, Look, "pagedown ctrl-d space", "page down", "Move down one page."),
    Top = ("top", Move, Look, "home g", "top", "Go to the beginning."),
    Bottom = ("bottom", Move, Look, "end G", "bottom", "Go to the end."),
    Select = ("select", Move, Look, "enter", "open", "Open what the cursor is on."),
    Back = ("back", Move, Look, "esc", "back", "Close, or go back one step."),
    Search = ("search", Move, Look, "/", "search", "Search in this pane."),
    NextMatch = ("next-match", Move, Look, "n", "next match", "Go to the next match."),
    PreviousMatch = ("previous-match", Move, Look, "N", "previous match", "Go to the previous match."),
    NextIteration = ("next-iteration", Move, Look, "]", "next iteration", "Go to the next iteration."),
    PreviousIteration = ("previous-iteration", Move, Look, "[", "previous iteration", "Go to the previous iteration."),

    ToggleScale = ("toggle-scale", Overview, Look, "v", "lin/log", "Switch the residual chart between linear and logarithmic."),
    ToggleFold = ("toggle-fold", Agent, Look, "o", "fold", "Fold or unfold the tool call under the cursor."),
    ToggleAllFolds = ("toggle-all-folds", Agent, Look, "O", "fold all", "Fold or unfold all tool calls."),
    Follow = ("follow", Agent, Look, "f", "follow", "Follow new text at the end."),
    NextRole = ("next-role", Agent, Look, "x", "role", "Show one role only, or all."),
    FilterLane = ("filter-lane", Learnings, Look, "f", "lane", "Show one lane only, or all."),
    VerifyNow = ("verify-now", Evidence, Look, "v", "verify", "Check every file against the journal now."),
    FilterEvents = ("filter-events", Timeline, Look, "f", "filter", "Show one kind of event only, or all."),
    Scrub = ("scrub", Timeline, Look, "enter", "go to moment", "Show every pane as it was at this event."),
    UndoIteration = ("undo-iteration", Changes, Act, "u", "undo", "Undo what this iteration changed (asks first)."),
    AttachRun = ("attach-run", Runs, Look, "enter", "attach", "Watch the run under the cursor."),

    Start = ("start", Ready, Act, "enter", "start", "Start the loop. Nothing is spent until then."),

    PlayPause = ("play-pause", Replay, Look, "space", "play/pause", "Play or pause the replay."),
    StepForward = ("step-forward", Replay, Look, ".", "step", "Go one event forward."),
    StepBack = ("step-back", Replay, Look, ",", "step back", "Go one event back."),
    Faster = ("faster", Replay, Look, "+", "faster", "Replay faster."),
    Slower = ("slower", Replay, Look, "-", "slower", "Replay slower."),

    Approve = ("approve", Inbox, Act, "a", "approve", "Approve, allow, accept, acknowledge or say that it is done."),
    Always = ("always", Inbox, Act, "A", "always", "Allow this now, and the same call in later runs here."),
    Reject = ("reject", Inbox, Act, "r", "reject", "Reject, deny or refuse."),
    ToggleHunk = ("toggle-hunk", Inbox, Act, "space", "hunk", "Accept or skip the hunk under the cursor."),
    EditAnswer = ("edit-answer", Inbox, Act, "e", "edit", "Edit the text in $EDITOR."),
    WriteAnswer = ("write-answer", Inbox, Act, "enter", "answer", "Write an answer."),
    AddNote = ("add-note", Inbox, Act, "n", "note", "Add a note to the answer."),
    QuitRun = ("quit-run", Inbox, Act, "Q", "end the run", "End the run instead of answering."),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_action_explains_itself() {
        let mut names: Vec<_> = Action::ALL.iter().map(|action| action.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Action::ALL.len());
        for action in Action::ALL {
            assert!(action.help().ends_with('.'), "{action:?}");
            assert!(!action.default_keys().is_empty(), "{action:?} has no key");
        }
    }
}
