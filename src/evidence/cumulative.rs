//! Lists that grow with the run: what it changed in the workspace, how the Northstar moved, which scores may be compared.
//!
//! Not here: the other files (`render`), the reports (`report`). Pure. Runs from before have none of these.

use serde_json::{Value, json};

use crate::machine::event::{ArtifactsCollected, ChangeKind};
use crate::machine::iteration::Iteration;
use crate::machine::run::RunState;
use crate::model::budget::Profile;
use crate::model::fraction::Fraction;
use crate::model::learnings::SpecVersion;
use crate::model::northstar::{self, Metric};

/// Files of the workspace that a manifest lists, the newest first. The others are in iter_N/artifacts.json.
pub const MAX_LISTED: usize = 1_000;
/// Digits of a distance that does not terminate.
const PLACES: u32 = 12;

/// What the run changed in the workspace, the newest iteration first, with the number of all.
pub fn workspace_files(state: &RunState) -> Option<Value> {
    if state.began_before_replays() {
        return None;
    }
    let changes = |iteration: &Iteration| iteration.artifacts.as_ref().map_or(0, ArtifactsCollected::changed_in_all);
    let total: usize = state.iterations().map(changes).sum();
    let listed: Vec<Value> = state
        .iterations()
        .rev()
        .filter_map(|iteration| Some((iteration.number(), iteration.artifacts.as_ref()?)))
        .flat_map(|(number, artifacts)| artifacts.changes.iter().map(move |change| (number, change)))
        .take(MAX_LISTED)
        .map(|(number, change)| {
            let role = if change.kind == ChangeKind::Deleted { "log" } else { "artifact" };
            json!({"iteration": number, "file_path": change.path, "sha256": change.sha256, "role": role, "change": change.kind})
        })
        .collect();
    Some(json!({"total": total, "listed": listed.len(), "files": listed}))
}

/// northstar_delta.json: how far each iteration moved every metric, and the distance of all. Null is not measured.
pub fn northstar_delta(state: &RunState) -> Option<Value> {
    if state.began_before_replays() || state.spec() == SpecVersion::V1 || state.recorded().next().is_none() {
        return None;
    }
    let mut before = state.metrics_at_baseline();
    let rows: Vec<Value> = state
        .recorded()
        .map(|iteration| {
            let after = state.metrics_at(iteration);
            let (from, to) = (northstar::distance(&before).total, northstar::distance(&after).total);
            let glow = iteration.glow.as_ref();
            let row = json!({
                "iteration": iteration.number(),
                "distance_before": text(from),
                "distance_after": text(to),
                "distance_delta": text(from.zip(to).and_then(|(from, to)| to.checked_sub(from))),
                "metrics": moved(&before, &after),
                "W": glow.map(|glow| glow.w),
                "northstar_metric_advanced": glow.map(|glow| &glow.northstar_metric_advanced),
            });
            before = after;
            row
        })
        .collect();
    Some(json!({"iterations": rows}))
}

fn text(distance: Option<Fraction>) -> Option<String> {
    distance.map(|distance| distance.to_decimal_text(PLACES))
}

fn moved(before: &[Metric], after: &[Metric]) -> Vec<Value> {
    let earlier = |id: &str| before.iter().find(|metric| metric.id == id).map(|metric| &metric.current);
    let row = |metric: &Metric| json!({"id": metric.id, "before": earlier(&metric.id), "after": metric.current, "target": metric.target});
    after.iter().map(row).collect()
}

/// A budget adapted to a benchmark gives scores of a kind of their own: `must_separate_scores`. They are named as such
/// wherever scores are reported, and no score of such a run may stand beside one of another profile.
pub fn separate_scores(state: &RunState) -> Option<Value> {
    let profile = state.budget().profile;
    (profile == Profile::BenchmarkAdapt && !state.began_before_replays()).then(|| {
        json!({
            "must_separate_scores": true,
            "scores_of": profile,
            "comparable_with": [profile],
        })
    })
}
