//! Tests of the structured tools: each rule, and that schema and reader agree.

use serde_json::{Value, json};

use super::*;
use crate::model::decimal::Exact;
use crate::model::report::{self, Report};
use crate::model::value::settings::ValueSettings;
use crate::model::value::{GapSeverity, TaskStatus};

/// A whole report for each tool: every field that there is.
fn sample(tool: Tool) -> Value {
    match tool {
        Tool::SubmitScoutReport => json!({"plan": ["look"], "repro_commands": ["make"], "failing_tests_or_errors": [],
            "suspect_files_ranked": ["a.rs"], "missing_assets": [], "sub_goal": {"text": "t", "check": ["true"]}}),
        Tool::SubmitSolverReport => json!({"intent": "i", "actions": ["a"], "files_touched": ["a.rs"],
            "expected_effect": "e", "risk_notes": []}),
        Tool::SubmitSkepticReport => json!({"status": "PASS", "succeeded": [], "failed": [], "judged": [],
            "open_questions": []}),
        Tool::SubmitAuthorReport => json!({"intent": "i", "actions": ["a"], "files_touched": ["a.rs"], "notes": "n",
            "learnings": ["l"], "retry": {"kind": "variable_changed", "what": "w", "from": "f", "to": "t"}}),
        Tool::SubmitCritique => json!({"status": "UNVERIFIED", "can_further_iteration_help": true,
            "recommendation": "LOOP", "reason": "r", "judged": [], "assumptions": [],
            "concerns": [{"severity": "HIGH", "description": "d", "location": "a:1", "recommendation": "r"}]}),
        Tool::ManageService => json!({"action": "put", "reason": "The page is served by it.", "name": "web",
            "service": {"name": "web", "health_type": "tcp", "port": 8080, "start": ["./serve"]}}),
        Tool::ManageTask => json!({"action": "add", "task_id": "T1", "description": "d", "value": "v",
            "acceptance": "a", "prd_section": "2.1", "dependencies": ["T0"], "phase": "core",
            "files_expected": ["src/a.rs"], "check": ["true"], "status": "pending", "blocked_reason": null}),
        Tool::ReportTaskComplete => json!({"task_id": "T1", "files_created": ["a"], "files_modified": ["b/c"],
            "value_verified": "seen", "completion_notes": "none"}),
        Tool::ReportDiscovery => json!({"deliverable_type": "software", "project_type": "cli",
            "codebase_state": "greenfield", "value_proofs": ["it greets"], "tools_required": ["cargo"],
            "env_vars_required": ["KEY"], "services": [{"name": "db", "health_type": "tcp", "port": 5432}],
            "test_frameworks": ["cargo"], "holistic_type": "cli", "unresolved_questions": ["why?"]}),
        Tool::ReportCritique => json!({"verdict": "APPROVE", "reason": "r", "amendments": ["a"],
            "descope_suggestions": ["d"]}),
        Tool::ProposePrd => json!({"text": "# PRD", "note": "n"}),
        Tool::ReportTriage => json!({"root_causes": [{"cause": "c", "affected_tests": ["unit/a"], "priority": 1,
            "fix_suggestion": "f"}]}),
        Tool::RequestHumanAction => json!({"action": "a", "instructions": "i", "blocked_task_id": "",
            "verification_command": ["true"]}),
        Tool::ReportVrc => json!({"value_score": "0.85", "deliverables_total": 3, "deliverables_verified": 2,
            "deliverables_blocked": 1, "recommendation": "CONTINUE", "summary": "s",
            "gaps": [{"id": "g1", "description": "d", "severity": "blocking", "suggested_task": "t"}]}),
        Tool::ReportCourseCorrection => json!({"action": "restructure", "reason": "r",
            "rollback_to_checkpoint": "qc_pass", "tasks_to_restructure": ["T1"]}),
        Tool::ReportEvalFinding => json!({"severity": "critical", "description": "d", "user_impact": "u",
            "suggested_fix": "s", "evidence": "e"}),
        Tool::ReportResearch => json!({"topic": "t", "findings": "f", "sources": ["s"], "alternatives": ["a"],
            "affected_verifications": ["unit/a"]}),
        Tool::ReportVisionPass => json!({"notes": "n"}),
        Tool::ReportVisionValidation => json!({"verdict": "NEEDS_REVISION", "reason": "r", "strengths": ["s"],
            "dimensions": {"outcome_grounded": "STRONG", "adoption_realistic": "WEAK", "causally_sound": "CRITICAL",
                "failure_aware": "ADEQUATE"},
            "issues": [{"id": "V1", "severity": "HARD", "category": "impossible", "description": "d",
                "evidence": "e", "suggested_revision": "s"}],
            "kill_criteria": ["k"]}),
        Tool::ReportStrategyChange => json!({"pattern": "churn", "cause": "c", "evidence": ["e"],
            "action": "STRATEGY_CHANGE", "rationale": "r", "re_evaluate_after": 3,
            "changes": {"fix_approach": "rewrite", "max_fix_attempts": "2"}}),
        Tool::ReportPreflight => json!({"status": "BLOCKED_EXTERNAL", "instructions": "i", "not_needed": ["KEY"]}),
        Tool::ReportEpicDecomposition => json!({"epics": [epic(), epic()], "vision_too_large": false,
            "rationale": "r"}),
        Tool::ReportEpicSummary => json!({"delivered": ["d"], "vision_progress": "p", "adjustments": ["a"],
            "next_epic": "n", "confidence": "HIGH", "confidence_rationale": "r"}),
        Tool::ReportCoherence => json!({"overall": "WARNING", "findings": [{"dimension": "resilience",
            "severity": "WARNING", "description": "d", "suggested_action": "s"}]}),
        Tool::ReportWrongCheck => json!({"check": "unit/a", "reason": "r"}),
    }
}

fn epic() -> Value {
    json!({"title": "t", "value_statement": "v", "deliverables": ["d"], "completion_criteria": ["c"]})
}

#[test]
fn schema_and_reader_agree_on_every_field() {
    for tool in Tool::ALL {
        let schema = jsonschema::validator_for(&report::schema(tool)).unwrap();
        let agree = |input: &Value, expected: Option<bool>| {
            let (fits, read) = (schema.is_valid(input), Report::parse(tool, input));
            assert_eq!(fits, read.is_ok(), "{tool}: {input} {read:?}");
            assert!(expected.is_none_or(|expected| expected == fits), "{tool}: {input}");
        };
        let whole = sample(tool);
        agree(&whole, Some(true));
        for key in whole.as_object().unwrap().keys() {
            let mut without = whole.clone();
            without.as_object_mut().unwrap().remove(key);
            // A change without changes, and a service that is put and not given: rules that a schema cannot say.
            if key != "changes" && key != "service" {
                agree(&without, None);
            }
            let mut wrong = whole.clone();
            wrong[key] = json!({"no": "such thing"});
            agree(&wrong, Some(false));
        }
        let mut more = whole.clone();
        more["surprise"] = json!(1);
        agree(&more, Some(false));
        agree(&json!([]), Some(false));
    }
}

#[test]
fn what_is_read_back_from_a_journal_is_the_same() {
    for tool in Tool::ALL {
        let Some(read) = Structured::parse(tool, &sample(tool)) else { continue };
        let read = read.unwrap();
        assert_eq!(read.tool(), tool);
        let written = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<Structured>(&written).unwrap(), read, "{tool}");
    }
}

#[test]
fn a_schema_is_short_enough_to_be_sent_each_time() {
    for tool in Tool::ALL {
        let text = report::schema(tool).to_string();
        assert!(text.len() < 4_000, "{tool}: {} bytes", text.len());
    }
}

/// The sample with some fields changed; `null` keys stay null.
fn with(tool: Tool, changes: Value) -> Value {
    let mut input = sample(tool);
    for (key, value) in changes.as_object().unwrap() {
        input[key] = value.clone();
    }
    input
}

#[test]
fn each_rule_rejects_in_words() {
    use Tool::*;
    let long = "x".repeat(4_001);
    let many = vec!["x"; 51];
    for (tool, changes, words) in [
        (ManageTask, json!({"value": long}), "`value` has 4001 characters, the limit is 4000"),
        (ManageTask, json!({"check": []}), "`check` is empty"),
        (ManageTask, json!({"files_expected": ["/etc/passwd"]}), "relative to the workspace"),
        (ManageTask, json!({"dependencies": many}), "51 items, the limit is 50"),
        (ManageTask, json!({"action": "burn"}), "unknown variant"),
        (ReportTaskComplete, json!({"files_created": ["a/../../b"]}), "without `..`"),
        (ReportTaskComplete, json!({"files_modified": many}), "51 items"),
        (ReportTaskComplete, json!({"task_id": " "}), "`task_id` is empty"),
        (RequestHumanAction, json!({"verification_command": "curl x"}), "[\"sh\", \"-c\", \"...\"]"),
        (RequestHumanAction, json!({"verification_command": []}), "`verification_command` is empty"),
        (RequestHumanAction, json!({"verification_command": ["a\u{0}"]}), "NUL"),
        (RequestHumanAction, json!({"instructions": ""}), "`instructions` is empty"),
        (ReportDiscovery, json!({"services": [{"name": "a", "health_type": "tcp"}]}), "needs `port`"),
        (ReportDiscovery, json!({"services": [{"name": "a", "health_type": "http"}]}), "needs `health_url`"),
        (ReportDiscovery, json!({"services": [{"name": "a", "health_type": "process"}]}), "needs `process`"),
        (ReportDiscovery, json!({"services": [{"name": "a", "health_type": "command"}]}), "needs `command`"),
        (
            ReportDiscovery,
            json!({"services": [{"name": "a", "health_type": "http", "health_url": "file:///x"}]}),
            "begin with http://",
        ),
        (ReportDiscovery, json!({"holistic_type": "smell"}), "use browser, cli"),
        (ReportCritique, json!({"verdict": "AMEND", "amendments": []}), "AMEND needs `amendments`"),
        (ReportCritique, json!({"verdict": "DESCOPE", "descope_suggestions": []}), "DESCOPE needs"),
        (ProposePrd, json!({"text": " "}), "`text` is empty"),
        (ProposePrd, json!({"text": "é".repeat(MAX_DOCUMENT / 2 + 1)}), "the limit is 262144"),
        (ReportTriage, json!({"root_causes": []}), "`root_causes` is empty"),
        (ReportVisionPass, json!({"notes": "x".repeat(8_001)}), "the limit is 8000"),
        (ReportResearch, json!({"findings": "x".repeat(8_001)}), "the limit is 8000"),
        (ReportCourseCorrection, json!({"action": "rollback", "rollback_to_checkpoint": null}), "rollback needs"),
        (ReportEvalFinding, json!({"user_impact": ""}), "`user_impact` is empty"),
        (ReportPreflight, json!({"instructions": ""}), "`instructions` is empty"),
        (
            ReportCoherence,
            json!({"findings": [{"dimension": "taste", "severity": "WARNING", "description": "d"}]}),
            "use structural_integrity",
        ),
        (ReportEpicDecomposition, json!({"epics": [epic()]}), "1 epics: give 2 to 5"),
        (ReportEpicDecomposition, json!({"epics": vec![epic(); 6]}), "6 epics: give 2 to 5"),
        (ReportEpicDecomposition, json!({"epics": vec![epic(); 6], "vision_too_large": true}), "6 epics"),
        (ReportStrategyChange, json!({"pattern": "boredom"}), "use plateau, churn"),
        (ReportStrategyChange, json!({"re_evaluate_after": 2}), "at least 3"),
        (ReportStrategyChange, json!({"changes": {"mood": "good"}}), "use test_approach"),
        (ReportStrategyChange, json!({"changes": {"fix_approach": "luck"}}), "use targeted, refactor"),
        (ReportStrategyChange, json!({"changes": {"max_fix_attempts": "11"}}), "`max_fix_attempts` is `11`"),
        (ReportStrategyChange, json!({"changes": {}}), "needs `changes`"),
        (ReportStrategyChange, json!({"action": "CONTINUE"}), "go with STRATEGY_CHANGE only"),
        (
            ReportStrategyChange,
            json!({"changes": {"fix_approach": "rewrite", "scope_per_task": "mvp", "error_triage": "grouped"}}),
            "at most 2",
        ),
    ] {
        let why = Report::parse(tool, &with(tool, changes.clone())).unwrap_err();
        assert!(why.contains(words), "{tool} {changes}: {why}");
    }
}

#[test]
fn a_score_is_a_decimal_from_0_to_1_and_never_rescaled() {
    let score = |value: Value| match Structured::parse(
        Tool::ReportVrc,
        &with(Tool::ReportVrc, json!({"value_score": value})),
    ) {
        Some(Ok(Structured::ReportVrc(vrc))) => Ok(vrc.value_score),
        Some(Err(why)) => Err(why),
        other => unreachable!("{other:?}"),
    };
    let exact = |text| Ok(Exact::parse(text).unwrap());
    assert_eq!(score(json!("0.85")), exact("0.85"));
    assert_eq!(score(json!(0.1)), exact("0.1"));
    assert_eq!(score(json!(1)), exact("1"));
    assert_eq!(score(json!(0)), exact("0"));
    for wrong in [json!("85"), json!(1.01), json!(10), json!("-0.5"), json!(-1), json!("NaN"), json!(null), json!([1])]
    {
        assert!(score(wrong.clone()).unwrap_err().contains("a decimal from 0 to 1"), "{wrong}");
    }
}

#[test]
fn deliverables_add_up() {
    let parse = |total: u32, verified: u32, blocked: u32| {
        let counts = json!({"deliverables_total": total, "deliverables_verified": verified,
            "deliverables_blocked": blocked});
        Report::parse(Tool::ReportVrc, &with(Tool::ReportVrc, counts))
    };
    assert!(parse(3, 2, 1).is_ok() && parse(0, 0, 0).is_ok());
    for (total, verified, blocked) in [(2, 3, 0), (2, 2, 1), (u32::MAX, u32::MAX, 1)] {
        assert!(parse(total, verified, blocked).unwrap_err().contains("in all"));
    }
}

#[test]
fn gaps_have_plain_ids_of_their_own() {
    let given = json!([
        "no greeting", {"description": "d", "severity": "polish"}, {"id": "a b/c", "description": "d", "severity": "critical"},
        {"id": "x", "description": "d", "severity": "polish"}, {"id": "x", "description": "d", "severity": "polish"},
        {"id": "gap-7", "description": "d", "severity": "polish"}, "again", {"id": "y".repeat(60), "description": "d", "severity": "polish"},
        {"id": "y".repeat(61), "description": "d", "severity": "polish"},
    ]);
    let input = with(Tool::ReportVrc, json!({"gaps": given}));
    let Some(Ok(read @ Structured::ReportVrc(_))) = Structured::parse(Tool::ReportVrc, &input) else { unreachable!() };
    let Structured::ReportVrc(vrc) = &read else { unreachable!() };
    let ids: Vec<&str> = vrc.gaps.iter().map(|gap| gap.id.as_str()).collect();
    let (y, y2) = ("y".repeat(24), format!("{}-2", "y".repeat(20)));
    assert_eq!(ids, ["gap-1", "gap-2", "a-b-c", "x", "x-2", "gap-7", "gap-7-2", y.as_str(), y2.as_str()]);
    assert_eq!((vrc.gaps[0].severity, vrc.gaps[0].description.as_str()), (GapSeverity::Degraded, "no greeting"));
    assert!(ids.iter().all(|id| crate::model::value::guard::is_plain_id(id)));
    let written = serde_json::to_string(&read).unwrap();
    assert_eq!(serde_json::from_str::<Structured>(&written).unwrap(), read, "reading again changes no id");
    let wrong = with(Tool::ReportVrc, json!({"gaps": [{"description": "d", "severity": "odd"}]}));
    assert!(Report::parse(Tool::ReportVrc, &wrong).unwrap_err().contains("gaps[0]"));
}

#[test]
fn other_words_become_those_of_the_schema() {
    let read = |tool, input: Value| Structured::parse(tool, &input).unwrap();
    let Ok(Structured::ManageTask(wish)) =
        read(Tool::ManageTask, json!({"action": "block", "task_id": "T1", "reason": "HUMAN_ACTION: pay"}))
    else {
        unreachable!()
    };
    assert_eq!((wish.action, wish.blocked_reason.as_deref()), (TaskAction::Modify, Some("HUMAN_ACTION: pay")));
    let Ok(Structured::ManageTask(wish)) =
        read(Tool::ManageTask, json!({"action": "update", "task_id": "T1", "value": "v"}))
    else {
        unreachable!()
    };
    assert_eq!(wish.action, TaskAction::Modify);
    let Ok(Structured::ManageTask(wish)) =
        read(Tool::ManageTask, json!({"action": "unblock", "task_id": "T1", "reason": "It is there."}))
    else {
        unreachable!()
    };
    assert_eq!((wish.action, wish.status), (TaskAction::Modify, Some(TaskStatus::Pending)));
    assert_eq!(wish.reason.as_deref(), Some("It is there."));
    let one_piece = read(Tool::ReportEpicDecomposition, json!({"epics": [], "rationale": "It is one thing."}));
    assert!(one_piece.is_ok(), "{one_piece:?}");
    let why = read(Tool::ManageTask, json!({"action": "block", "task_id": "T1"})).unwrap_err();
    assert!(why.contains("`blocked_reason`"), "{why}");
    let Ok(Structured::ReportTaskComplete(complete)) = read(
        Tool::ReportTaskComplete,
        json!({"task_id": "T1", "files_created": [], "files_modified": [], "notes": "n"}),
    ) else {
        unreachable!()
    };
    assert_eq!(complete.completion_notes.as_deref(), Some("n"));
    let Ok(Structured::RequestHumanAction(request)) = read(
        Tool::RequestHumanAction,
        json!({"action": "a", "instructions": "i", "blocked_task_id": "T1", "verification": ["true"]}),
    ) else {
        unreachable!()
    };
    assert_eq!(request.verification_command, Some(vec!["true".to_owned()]));
    let soft = json!({"issues": [{"id": "a", "severity": "soft", "category": "weak_evidence", "description": "d",
        "evidence": "e"}]});
    assert!(read(Tool::ReportVisionValidation, with(Tool::ReportVisionValidation, soft)).is_ok());
}

#[test]
fn the_vision_is_judged_by_the_rule() {
    let issue = |id: &str, severity: &str, category: &str| json!({"id": id, "severity": severity, "category": category, "description": "d", "evidence": "e"});
    let dimensions = |weakest: &str| {
        json!({"outcome_grounded": "STRONG", "adoption_realistic": "ADEQUATE", "causally_sound": weakest,
            "failure_aware": "STRONG"})
    };
    let parse = |verdict: &str, weakest: &str, issues: Value| {
        let changes = json!({"verdict": verdict, "dimensions": dimensions(weakest), "issues": issues});
        Report::parse(Tool::ReportVisionValidation, &with(Tool::ReportVisionValidation, changes))
    };
    let soft = issue("a", "SOFT", "adoption_risk");
    assert!(parse("PASS", "ADEQUATE", json!([soft])).is_ok());
    assert!(parse("NEEDS_REVISION", "WEAK", json!([issue("a", "HARD", "no_mechanism")])).is_ok());
    for (verdict, weakest, issues, words) in [
        ("PASS", "WEAK", json!([]), "every dimension is ADEQUATE or STRONG"),
        ("PASS", "STRONG", json!([issue("a", "HARD", "impossible")]), "no issue is HARD"),
        ("NEEDS_REVISION", "WEAK", json!([issue("a", "HARD", "weak_evidence")]), "HARD goes with"),
        ("NEEDS_REVISION", "WEAK", json!([issue("a", "SOFT", "impossible")]), "HARD goes with"),
        ("NEEDS_REVISION", "WEAK", json!([soft, soft]), "used twice"),
        ("NEEDS_REVISION", "WEAK", json!([issue("a b", "SOFT", "adoption_risk")]), "is no id"),
    ] {
        let why = parse(verdict, weakest, issues).unwrap_err();
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn a_strategy_raises_no_limit() {
    let change = |attempts: Value| {
        let input = with(Tool::ReportStrategyChange, json!({"changes": {"max_fix_attempts": attempts}}));
        match Structured::parse(Tool::ReportStrategyChange, &input) {
            Some(Ok(Structured::ReportStrategyChange(change))) => change,
            other => unreachable!("{other:?}"),
        }
    };
    let settings = ValueSettings::default();
    assert!(change(json!("5")).within(&settings).is_ok());
    assert!(change(json!(3)).within(&settings).is_ok(), "a number is read through its text");
    assert!(change(json!(6)).within(&settings).unwrap_err().contains("may only be lowered"));
}
