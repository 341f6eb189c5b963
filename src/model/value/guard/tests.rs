//! Tests of the guardrails: one row for each rejection, and what no sequence of wishes can break.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::tools::Structured;
use super::*;
use crate::model::purpose::Tool;

fn wish(input: Value) -> ManageTask {
    match Structured::parse(Tool::ManageTask, &input) {
        Some(Ok(Structured::ManageTask(wish))) => wish,
        other => unreachable!("{other:?}"),
    }
}

fn task(id: &str, source: TaskSource, status: TaskStatus, dependencies: &[&str]) -> Task {
    Task {
        id: id.to_owned(),
        status,
        source,
        description: format!("Build the part {id} of it"),
        value: "v".into(),
        acceptance: "a".into(),
        prd_section: None,
        dependencies: dependencies.iter().map(|id| (*id).to_owned()).collect(),
        phase: None,
        epic: None,
        files_expected: Vec::new(),
        check: None,
        blocked_reason: (status == TaskStatus::Blocked).then(|| "HUMAN_ACTION: a key".to_owned()),
        retries: 0,
        files_created: Vec::new(),
        files_modified: Vec::new(),
        notes: String::new(),
        health_checked: false,
        created_in: 0,
        done_in: None,
        broken_by: None,
        dispute: None,
    }
}

/// T1 <- T2, T3 is done, T4 descoped, T5 blocked, T6 at work, U1 unplanned.
fn plan() -> Vec<Task> {
    use TaskSource::{Plan, Vrc};
    vec![
        task("T1", Plan, TaskStatus::Pending, &[]),
        task("T2", Plan, TaskStatus::Pending, &["T1"]),
        task("T3", Plan, TaskStatus::Done, &[]),
        task("T4", Plan, TaskStatus::Descoped, &[]),
        task("T5", Plan, TaskStatus::Blocked, &[]),
        task("T6", Plan, TaskStatus::InProgress, &[]),
        task("U1", Vrc, TaskStatus::Pending, &[]),
    ]
}

fn small() -> ValueSettings {
    ValueSettings {
        max_tasks: 8,
        max_unplanned_tasks: 2,
        max_files_per_task: 2,
        max_task_description_chars: 80,
        ..ValueSettings::default()
    }
}

fn add(id: &str, more: Value) -> ManageTask {
    let mut input = json!({"action": "add", "task_id": id, "description": "Greet whoever comes by name",
        "value": "People feel welcome", "acceptance": "greet Ann prints Hello Ann"});
    for (key, value) in more.as_object().unwrap() {
        input[key] = value.clone();
    }
    wish(input)
}

fn modify(id: &str, more: Value) -> ManageTask {
    let mut input = json!({"action": "modify", "task_id": id});
    for (key, value) in more.as_object().unwrap() {
        input[key] = value.clone();
    }
    wish(input)
}

fn remove(id: &str) -> ManageTask {
    wish(json!({"action": "remove", "task_id": id}))
}

fn judged(source: TaskSource, wish: &ManageTask) -> Result<Mutation, String> {
    judge(&plan(), &small(), source, 9, wish)
}

#[test]
fn every_rule_rejects_and_says_why() {
    use TaskSource::{CourseCorrection, Gate, Plan, PlanHealth};
    let rows: Vec<(TaskSource, ManageTask, &str)> = vec![
        (Plan, add("N 1", json!({})), "is no task id"),
        (Plan, add("../x", json!({})), "is no task id"),
        (Plan, add(&"x".repeat(41), json!({})), "is no task id"),
        (Plan, add("T1", json!({})), "in use (pending)"),
        (Plan, add("T4", json!({})), "in use (descoped)"),
        (Plan, add("N", json!({"description": " "})), "`description` is empty"),
        (Plan, add("N", json!({"value": ""})), "`value` is empty"),
        (Plan, add("N", json!({"acceptance": null})), "`acceptance` is empty"),
        (Plan, add("N", json!({"description": "x y ".repeat(21)})), "the limit is 80"),
        (Plan, add("N", json!({"description": "Build the part T1, of it."})), "nearly the same as T1"),
        (Plan, add("N", json!({"dependencies": ["T9"]})), "`T9`, which does not exist"),
        (Plan, add("N", json!({"dependencies": ["N"]})), "depend on itself"),
        (Plan, add("N", json!({"files_expected": ["a", "b", "c"]})), "the limit is 2"),
        (Plan, add("N", json!({"description": "Run tasks 1.2 to 1.5"})), "\"run tasks 1.2\""),
        (Plan, add("N", json!({"description": "Continue with execution."})), "instruction about the plan"),
        (Plan, add("N", json!({"description": "No new tasks needed"})), "instruction about the plan"),
        (Plan, add("N", json!({"description": "This is already covered by T1"})), "instruction about the plan"),
        (Plan, add("N", json!({"description": "Mark as done"})), "instruction about the plan"),
        (Plan, add("N", json!({"description": "Do all remaining work"})), "too large"),
        (Plan, add("N", json!({"description": "Build the Entire Frontend!"})), "\"entire frontend\""),
        (Plan, add("N", json!({"description": "Write everything for the shop"})), "too large"),
        (Plan, add("N", json!({"status": "done"})), "cannot be set to done"),
        (Plan, add("N", json!({"status": "blocked"})), "needs a `blocked_reason`"),
        (Plan, add("N", json!({"status": "descoped"})), "cannot be descoped"),
        (Plan, modify("T9", json!({"value": "x"})), "there is no task `T9`: the plan has T1, T2"),
        (Plan, modify("T3", json!({"value": "x"})), "T3 is done"),
        (CourseCorrection, modify("T4", json!({"status": "pending"})), "T4 is descoped"),
        (Plan, modify("T1", json!({"check": ["true"]})), "`check` of a task is not changed"),
        (Plan, modify("T1", json!({"prd_section": "2"})), "`prd_section` of a task is not changed"),
        (Plan, modify("T1", json!({})), "changes nothing"),
        (Plan, modify("T1", json!({"value": "v"})), "changes nothing"),
        (Plan, modify("T1", json!({"description": "x y ".repeat(21)})), "the limit is 80"),
        (Plan, modify("T1", json!({"description": "Mark as done"})), "instruction about the plan"),
        (Plan, modify("T1", json!({"dependencies": ["T9"]})), "does not exist"),
        (Plan, modify("T1", json!({"dependencies": ["T1"]})), "depend on itself"),
        (Plan, modify("T1", json!({"dependencies": ["T2"]})), "a circle"),
        (Plan, modify("T1", json!({"files_expected": ["a", "b", "c"]})), "the limit is 2"),
        (Plan, modify("T1", json!({"status": "done"})), "cannot be set to done"),
        (Plan, modify("T1", json!({"status": "in_progress"})), "cannot be set to in progress"),
        (Plan, modify("T1", json!({"status": "blocked"})), "needs a `blocked_reason`"),
        (Plan, modify("T5", json!({"status": "pending", "blocked_reason": "x"})), "give one of the two"),
        (Gate, modify("T1", json!({"status": "descoped"})), "may descope it"),
        (PlanHealth, modify("T1", json!({"status": "descoped"})), "may descope it"),
        (Plan, remove("T9"), "there is no task"),
        (CourseCorrection, remove("T3"), "is done and cannot be removed"),
        (CourseCorrection, remove("T4"), "is descoped and cannot be removed"),
        (CourseCorrection, remove("T6"), "is in progress and cannot be removed"),
        (CourseCorrection, remove("T1"), "T2 depend on T1"),
        (PlanHealth, remove("T5"), "may remove it"),
    ];
    for (source, wish, words) in rows {
        let why = judged(source, &wish).expect_err(&format!("{wish:?}"));
        assert!(why.contains(words), "{wish:?}: {why}");
    }
}

#[test]
fn a_wish_that_no_tool_checked_is_bounded_too() {
    let mut wish = add("N", json!({}));
    wish.value = Some("x".repeat(4_001));
    assert!(judged(TaskSource::Vrc, &wish).unwrap_err().contains("the limit is 4000"));
    let mut wish = add("N", json!({}));
    wish.check = Some(Vec::new());
    assert!(judged(TaskSource::Vrc, &wish).unwrap_err().contains("`check` is empty"));
    let mut wish = add("N", json!({}));
    wish.files_expected = Some(vec!["../x".into()]);
    assert!(judged(TaskSource::Vrc, &wish).unwrap_err().contains("relative to the workspace"));
}

#[test]
fn the_caps_hold() {
    let mut tasks = plan();
    let wish = add("N", json!({}));
    tasks.push(task("U2", TaskSource::ExitGate, TaskStatus::Blocked, &[]));
    let roomy = ValueSettings { max_tasks: 100, ..small() };
    let judge = |tasks: &[Task], settings: &ValueSettings, source| judge(tasks, settings, source, 0, &wish);
    assert!(judge(&tasks, &roomy, TaskSource::Vrc).unwrap_err().contains("2 unfinished tasks were not in the plan"));
    assert!(judge(&tasks, &roomy, TaskSource::Plan).is_ok(), "planning is not capped by what was not planned");
    tasks[7].status = TaskStatus::Done;
    assert!(judge(&tasks, &roomy, TaskSource::Vrc).is_ok(), "only unfinished tasks count");
    assert!(judge(&tasks, &small(), TaskSource::Plan).unwrap_err().contains("the plan has 8 tasks, the limit is 8"));
}

#[test]
fn an_accepted_task_is_what_was_wished() {
    let wish = add(
        "INT-1.a",
        json!({"dependencies": ["T1", "T3", "T1"], "files_expected": ["src/a.rs"], "check": ["true"], "phase": "core"}),
    );
    let Ok(Mutation::Add(task)) = judged(TaskSource::CriticalEval, &wish) else { unreachable!() };
    assert_eq!(
        (task.id.as_str(), task.status, task.source),
        ("INT-1.a", TaskStatus::Pending, TaskSource::CriticalEval)
    );
    assert_eq!(task.dependencies, ["T1", "T3"]);
    assert_eq!((task.created_in, task.check.as_deref()), (9, Some(&["true".to_owned()][..])));
    // What is done or descoped may be built again.
    let again = add("N", json!({"description": "Build the part T3 of it"}));
    assert!(judged(TaskSource::Plan, &again).is_ok());
}

#[test]
fn a_reason_blocks_and_a_status_unblocks() {
    let blocked = |wish| match judged(TaskSource::Gate, &wish) {
        Ok(Mutation::Replace(task) | Mutation::Add(task)) => (task.status, task.blocked_reason),
        other => unreachable!("{other:?}"),
    };
    let reason = Some("HUMAN_ACTION: buy it".to_owned());
    let given = json!({"blocked_reason": "HUMAN_ACTION: buy it"});
    assert_eq!(blocked(modify("T1", given.clone())), (TaskStatus::Blocked, reason.clone()));
    assert_eq!(blocked(add("N", given)), (TaskStatus::Blocked, reason));
    assert_eq!(blocked(modify("T5", json!({"status": "pending", "blocked_reason": " "}))), (TaskStatus::Pending, None));
    let kept = Some("HUMAN_ACTION: a key".to_owned());
    assert_eq!(blocked(modify("T5", json!({"value": "more"}))), (TaskStatus::Blocked, kept));
}

#[test]
fn who_corrects_the_course_may_give_up_what_was_planned() {
    for source in [TaskSource::CourseCorrection, TaskSource::ExitGate] {
        let Ok(Mutation::Replace(task)) = judged(source, &modify("T1", json!({"status": "descoped"}))) else {
            unreachable!()
        };
        assert_eq!(task.status, TaskStatus::Descoped);
        assert_eq!(judged(source, &remove("T5")), Ok(Mutation::Remove("T5".into())));
    }
    assert_eq!(judged(TaskSource::Gate, &remove("T5")), Ok(Mutation::Remove("T5".into())));
    assert_eq!(judged(TaskSource::PlanHealth, &remove("U1")), Ok(Mutation::Remove("U1".into())));
}

#[test]
fn similarity_is_three_quarters_of_the_words() {
    assert!(words::similar("a b c d", "A, b. c"), "3 of 4");
    assert!(!words::similar("a b c d e", "a b c x"), "3 of 6");
    assert!(!words::similar("a b c", "a b"), "2 of 3");
    assert!(!words::similar("", "") && !words::similar("...", "!"), "nothing is like nothing");
    assert!(!words::similar("do 1.2", "do 2.1"));
    assert_eq!(words::oversized("Install remaining parts, reinstall remaining ones"), None);
    assert_eq!(words::meta_instruction("Run the task scheduler; complete task lists show 3 rows"), None);
}

/// Wishes over few ids, so that they meet.
fn any_wish() -> impl Strategy<Value = (TaskSource, ManageTask)> {
    let id = || proptest::sample::select(vec!["A", "B", "C", "D", "E", "F"]);
    let source = proptest::sample::select(vec![
        TaskSource::Plan,
        TaskSource::Gate,
        TaskSource::Vrc,
        TaskSource::CourseCorrection,
        TaskSource::PlanHealth,
    ]);
    let action =
        proptest::sample::select(vec![TaskAction::Add, TaskAction::Add, TaskAction::Modify, TaskAction::Remove]);
    let dependencies = proptest::option::of(proptest::collection::vec(id(), 0..4));
    let status = proptest::option::of(proptest::sample::select(vec![
        TaskStatus::Pending,
        TaskStatus::InProgress,
        TaskStatus::Done,
        TaskStatus::Blocked,
        TaskStatus::Descoped,
    ]));
    let word = "[a-z]{1,8}";
    (source, action, id(), dependencies, status, word, proptest::bool::ANY).prop_map(
        |(source, action, id, dependencies, status, word, blocked)| {
            let wish = ManageTask {
                action,
                task_id: id.to_owned(),
                description: Some(word.clone()),
                value: Some(word.clone()),
                acceptance: Some(word),
                prd_section: None,
                dependencies: dependencies.map(|ids| ids.into_iter().map(str::to_owned).collect()),
                phase: None,
                files_expected: None,
                check: None,
                status,
                blocked_reason: blocked.then(|| "HUMAN_ACTION: wait".to_owned()),
                reason: None,
            };
            (source, wish)
        },
    )
}

/// Tasks can be put in an order in which each comes after what it depends on.
fn is_acyclic(tasks: &[Task]) -> bool {
    let mut left: Vec<&Task> = tasks.iter().collect();
    while !left.is_empty() {
        let waiting: BTreeSet<&str> = left.iter().map(|task| task.id.as_str()).collect();
        let before = left.len();
        left.retain(|task| task.dependencies.iter().any(|id| waiting.contains(id.as_str())));
        if left.len() == before {
            return false;
        }
    }
    true
}

proptest! {
    #[test]
    fn no_sequence_of_wishes_breaks_the_plan(wishes in proptest::collection::vec(any_wish(), 0..40)) {
        let settings = ValueSettings { max_tasks: 5, max_unplanned_tasks: 2, ..ValueSettings::default() };
        let mut tasks: Vec<Task> = Vec::new();
        for (step, (source, wish)) in wishes.iter().enumerate() {
            let was = tasks.clone();
            match judge(&tasks, &settings, *source, step as u32, wish) {
                Ok(Mutation::Add(task)) => tasks.push(*task),
                Ok(Mutation::Replace(task)) => {
                    let known = tasks.iter_mut().find(|known| known.id == task.id).unwrap();
                    *known = *task;
                }
                Ok(Mutation::Remove(id)) => tasks.retain(|task| task.id != id),
                Err(_) => {}
            }
            let ids: BTreeSet<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
            prop_assert_eq!(ids.len(), tasks.len(), "ids are unique");
            prop_assert!(tasks.len() <= 5);
            prop_assert!(tasks.iter().filter(|task| task.is_open() && !task.source.is_planned()).count() <= 2);
            for task in &tasks {
                prop_assert!(task.dependencies.iter().all(|id| ids.contains(id.as_str())), "{:?}", task);
                prop_assert_eq!(task.status == TaskStatus::Blocked, task.blocked_reason.is_some());
            }
            prop_assert!(is_acyclic(&tasks), "{:?}", tasks);
            for settled in was.iter().filter(|task| !task.is_open()) {
                prop_assert!(tasks.contains(settled), "what is settled stays");
            }
        }
    }
}

#[test]
fn a_check_is_changed_by_reviews_and_by_its_author_where_it_is_said_to_be_wrong_and_by_nobody_else() {
    use crate::model::value::Dispute;
    let settings = ValueSettings::default();
    let mut disputed = task("T1", TaskSource::Plan, TaskStatus::Pending, &[]);
    disputed.check = Some(vec!["false".into()]);
    let calm = Task { id: "T2".into(), ..disputed.clone() };
    disputed.dispute = Some(Dispute { step: 1, reason: "r".into(), settled: None });
    let tasks = [disputed, calm];
    let wish = |id: &str| ManageTask { check: Some(vec!["true".into()]), ..ManageTask::modify(id) };
    let judged = |source, wish: &ManageTask| judge(&tasks, &settings, source, 2, wish);
    for source in [TaskSource::Gate, TaskSource::Qc] {
        let Ok(Mutation::Replace(task)) = judged(source, &wish("T1")) else { panic!("{source:?}") };
        assert_eq!(task.check, Some(vec!["true".to_owned()]));
    }
    assert!(judged(TaskSource::Gate, &wish("T2")).is_ok());
    assert!(judged(TaskSource::Qc, &wish("T2")).unwrap_err().contains("nobody says"));
    for source in [TaskSource::CourseCorrection, TaskSource::PlanHealth, TaskSource::Plan] {
        assert!(judged(source, &wish("T1")).unwrap_err().contains("`check` of a task is not changed"), "{source:?}");
    }
    // Its author writes the check, and nothing else.
    let more = ManageTask { acceptance: Some("anything".into()), ..wish("T1") };
    let gone = ManageTask { action: TaskAction::Remove, ..ManageTask::modify("T1") };
    for wish in [more, gone, ManageTask::modify("T1")] {
        assert!(judged(TaskSource::Qc, &wish).is_err(), "{wish:?}");
    }
}
