//! The journal's disk fails at the n-th write or sync, once or for good.

use crate::harness::{check, difference, for_each_case, outcome, run_with, small, thorough};
use crate::support::Bench;

/// An error has to say what to do.
fn is_clear(stderr: &str) -> bool {
    let advice = ["resume the run", "check the disk"].iter().any(|words| stderr.contains(words));
    stderr.starts_with("nightloop: ") && advice && !stderr.contains("panicked")
}

#[test]
fn a_failing_disk_halts_clearly_and_the_run_goes_on_later() {
    let undisturbed = small();
    undisturbed.nightloop(&["run"]).expect(0);
    let expected = outcome(&undisturbed);
    let mut plans = Vec::new();
    let step = if thorough() { 1 } else { 23 };
    for nth in [2, 3, 4].into_iter().chain((5..180).step_by(step)) {
        for operation in ["write", "sync"] {
            for error in ["EIO", "ENOSPC"] {
                for from_then_on in ["", "+"] {
                    plans.push(format!("{operation}:{nth}{from_then_on}:{error}"));
                }
            }
        }
    }
    // From the last certificate on: a full disk must not decide what only the replays can.
    plans.extend((130..150).map(|nth| format!("write:{nth}:ENOSPC")));
    // One plan again and again, for a failure that comes seldom.
    if let Ok(plan) = std::env::var("NIGHTLOOP_FAULT") {
        plans = vec![plan; 200];
    }
    for_each_case(&plans, |plan| {
        let bench = small();
        let failed = run_with(&bench, &["run"], &[("NIGHTLOOP_FAIL", plan)]);
        check([0, 74, 75].contains(&failed.code), || format!("{plan}: exit {}\n{}", failed.code, failed.stderr))?;
        check(failed.code == 0 || is_clear(&failed.stderr), || format!("{plan}: {}", failed.stderr))?;
        check(!plan.starts_with("write") || !plan.ends_with("ENOSPC") || failed.code != 74, || {
            format!("{plan}: a full disk is resumable, not {}", failed.code)
        })?;
        let verified = bench.nightloop(&["verify"]);
        check([0, 2].contains(&verified.code), || format!("{plan}: verify {}\n{}", verified.code, verified.stdout))?;
        let resumed = bench.nightloop(&["resume"]);
        check(resumed.code == 0, || format!("{plan}: resume {}\n{}{}", resumed.code, resumed.stdout, resumed.stderr))?;
        if let Some(difference) = difference(&expected, &outcome(&bench)) {
            return Err(format!("{plan}: {difference}"));
        }
        let verified = bench.nightloop(&["verify"]);
        check(verified.code == 0, || format!("{plan}: at last {}\n{}", verified.code, verified.stdout))
    });
}

#[test]
fn a_disk_that_fails_at_once_leaves_a_run_that_never_started() {
    for plan in ["write:1:EIO", "write:1+:ENOSPC", "sync:1:EIO", "sync:1+:ENOSPC"] {
        let bench = small();
        let failed = run_with(&bench, &["run"], &[("NIGHTLOOP_FAIL", plan)]);
        assert!([74, 75].contains(&failed.code), "{plan}: {} {}", failed.code, failed.stderr);
        assert!(!bench.workspace.join("evidence").exists() && !bench.workspace.join("AGENTS.md").exists(), "{plan}");
        start_again(&bench);
    }
}

fn start_again(bench: &Bench) {
    bench.nightloop(&["run"]).expect(0);
    bench.nightloop(&["verify"]).expect(0);
}
