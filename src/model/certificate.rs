//! Halting certificates: what the engine is willing to say about an iteration.
//!
//! [`certify`] is the only place where EXACT or CONVERGED is decided. It sees facts, never claims.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::criterion::Finding;
use super::decimal::Exact;
use super::lane::Lane;

/// The certificate types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CertificateKind {
    None,
    Exact,
    Converged,
    Timeout,
    Backpressure,
    Diverged,
}

impl CertificateKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Exact => "EXACT",
            Self::Converged => "CONVERGED",
            Self::Timeout => "TIMEOUT",
            Self::Backpressure => "BACKPRESSURE",
            Self::Diverged => "DIVERGED",
        }
    }

    pub const fn is_success(self) -> bool {
        matches!(self, Self::Exact | Self::Converged)
    }

    pub const fn lane(self) -> Option<Lane> {
        match self {
            Self::None => None,
            Self::Exact | Self::Backpressure | Self::Diverged => Some(Lane::A),
            Self::Converged => Some(Lane::B),
            Self::Timeout => Some(Lane::C),
        }
    }

    /// The names a loop may declare: `NONE` is a finding, not a goal.
    pub const DECLARABLE: [Self; 5] = [Self::Exact, Self::Converged, Self::Timeout, Self::Backpressure, Self::Diverged];
}

impl fmt::Display for CertificateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A measured residual. `value` is exact text; a non-terminating ratio is rounded up and says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residual {
    pub value: Exact,
    /// Present when the residual is unmet criteria / all criteria.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet_of: Option<(u32, u32)>,
}

/// What the engine certifies for one iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    #[serde(rename = "type")]
    pub kind: CertificateKind,
    pub lane: Option<Lane>,
    pub residual: Option<Exact>,
    #[serde(rename = "R_p")]
    pub r_p: Exact,
    pub acceptance_criteria_checklist: Vec<Finding>,
    /// Executed verifiers that exited 0.
    pub verifiers_passed: u32,
    pub why: String,
}

/// The facts a success certificate rests on.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub declared: &'a [CertificateKind],
    pub findings: &'a [Finding],
    pub residual: Option<Exact>,
    pub r_p: Exact,
    pub verifiers_passed: u32,
    /// What CONVERGED cannot be had over; `None` for runs that began when it could.
    pub against: Option<&'a Against>,
}

/// What speaks against CONVERGED, however small the residual is: ids of criteria.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Against {
    /// Unmet by a check that can be run.
    pub unmet_checks: Vec<String>,
    /// Met earlier in this run, and not any more.
    pub broken: Vec<String>,
}

/// Decides between EXACT, CONVERGED and NONE. Null is never zero; an empty checklist certifies nothing.
pub fn certify(facts: Facts<'_>) -> Certificate {
    let (kind, why) = decide(facts);
    Certificate {
        kind,
        lane: kind.lane(),
        residual: facts.residual,
        r_p: facts.r_p,
        acceptance_criteria_checklist: facts.findings.to_vec(),
        verifiers_passed: facts.verifiers_passed,
        why,
    }
}

fn decide(facts: Facts<'_>) -> (CertificateKind, String) {
    let none = |why: &str| (CertificateKind::None, why.to_owned());
    if facts.findings.is_empty() {
        return none("there is no acceptance criterion to certify");
    }
    let Some(residual) = facts.residual else {
        return none("the residual is null: it was not measured, and null is not zero");
    };
    let unmet = facts.findings.iter().filter(|f| !f.met || f.evidence_link.is_none()).count();
    let exact_declared = facts.declared.contains(&CertificateKind::Exact);
    let converged_declared = facts.declared.contains(&CertificateKind::Converged);

    if exact_declared && residual.is_zero() && unmet == 0 {
        if facts.verifiers_passed > 0 {
            return (CertificateKind::Exact, "residual 0, every criterion met with evidence".to_owned());
        }
        if !converged_declared {
            return none("every criterion is met, but no executed verifier exited 0");
        }
    }
    if converged_declared && residual < facts.r_p && facts.verifiers_passed > 0 {
        let below = format!("residual {residual} < R_p {}", facts.r_p);
        return match facts.against {
            None => (CertificateKind::Converged, below),
            Some(against) => converged(&below, facts.findings, against),
        };
    }
    if residual.is_zero() && unmet > 0 {
        return none(&format!("the residual is 0 but {unmet} criteria are unmet: the metric is inconsistent"));
    }
    if unmet > 0 {
        return none(&format!("{unmet} of {} criteria are unmet", facts.findings.len()));
    }
    none(&format!("every criterion is met, but residual {residual} is not below what was declared"))
}

/// A residual below R_p counts only where no check says otherwise, nothing broke, and something is met.
fn converged(below: &str, findings: &[Finding], against: &Against) -> (CertificateKind, String) {
    let unmet: Vec<&str> = findings.iter().filter(|finding| !finding.met).map(|finding| finding.id.as_str()).collect();
    let but = if !against.broken.is_empty() {
        format!("was met earlier in this run and is not any more: {}", against.broken.join(", "))
    } else if !against.unmet_checks.is_empty() {
        format!("unmet by its check: {}", against.unmet_checks.join(", "))
    } else if unmet.len() == findings.len() {
        "no criterion is met".to_owned()
    } else if unmet.is_empty() {
        return (CertificateKind::Converged, format!("{below}, every criterion met"));
    } else {
        return (
            CertificateKind::Converged,
            format!("{below}, every check passes; judged unmet: {}", unmet.join(", ")),
        );
    };
    (CertificateKind::None, format!("{below}, but {but}"))
}

/// The last `window` residuals strictly increase; a null breaks the row.
pub fn diverges(history: &[Option<Exact>], window: usize) -> bool {
    if window < 2 || history.len() < window {
        return false;
    }
    let tail = &history[history.len() - window..];
    tail.windows(2).all(|pair| match pair {
        [Some(earlier), Some(later)] => earlier < later,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::digest::Digest;
    use crate::model::learnings::Link;

    fn finding(met: bool) -> Finding {
        Finding {
            id: "c".into(),
            criterion: "text".into(),
            met,
            evidence_link: Some(Link { path: "e".into(), sha256: Digest::of(b"") }),
            why: String::new(),
        }
    }

    fn decimal(text: &str) -> Exact {
        Exact::parse(text).unwrap()
    }

    fn kind(
        declared: &[CertificateKind],
        findings: &[Finding],
        residual: Option<&str>,
        verifiers_passed: u32,
    ) -> CertificateKind {
        let residual = residual.map(decimal);
        let against = Some(&Against::default());
        certify(Facts { declared, findings, residual, r_p: decimal("1e-4"), verifiers_passed, against }).kind
    }

    #[test]
    fn exact_needs_all_of_its_parts() {
        use CertificateKind::{Converged, Exact, None};
        let met = [finding(true)];
        assert_eq!(kind(&[Exact], &met, Some("0"), 1), Exact);
        assert_eq!(kind(&[Converged], &met, Some("0"), 1), Converged, "EXACT was not declared");
        assert_eq!(kind(&[Exact], &met, Some("0"), 0), None, "no verifier ran");
        assert_eq!(kind(&[Exact], &met, Some("0.00001"), 1), None, "residual above zero");
        assert_eq!(kind(&[Exact], &[finding(false)], Some("0"), 1), None, "unmet criterion");
        let unproven = [Finding { evidence_link: Option::None, ..finding(true) }];
        assert_eq!(kind(&[Exact], &unproven, Some("0"), 1), None, "no evidence link");
    }

    #[test]
    fn null_and_empty_certify_nothing() {
        use CertificateKind::{Converged, Exact, None};
        assert_eq!(kind(&[Exact, Converged], &[finding(true)], Option::None, 1), None);
        assert_eq!(kind(&[Exact, Converged], &[], Some("0"), 1), None);
    }

    #[test]
    fn converged_is_strictly_below_r_p() {
        use CertificateKind::{Converged, Exact, None};
        let one_judged_unmet = [finding(true), finding(false)];
        assert_eq!(kind(&[Exact, Converged], &one_judged_unmet, Some("0.00009"), 1), Converged);
        assert_eq!(kind(&[Exact, Converged], &one_judged_unmet, Some("0.0001"), 1), None);
        assert_eq!(kind(&[Exact, Converged], &[finding(false)], Some("0"), 1), None, "nothing is met");
        assert_eq!(kind(&[Converged], &[finding(true)], Some("0"), 0), None, "an agent's word alone");
    }

    /// The residual is one measurement; a check that is red, or was green before, is another.
    #[test]
    fn converged_needs_every_check_and_breaks_nothing() {
        let findings = [finding(true), Finding { id: "tests".into(), ..finding(false) }];
        let issued = |against: Against| {
            certify(Facts {
                declared: &[CertificateKind::Converged],
                findings: &findings,
                residual: Some(Exact::ZERO),
                r_p: decimal("1e-4"),
                verifiers_passed: 1,
                against: Some(&against),
            })
        };
        let ids = vec!["tests".to_owned()];
        let unmet = issued(Against { unmet_checks: ids.clone(), ..Against::default() });
        assert_eq!(
            (unmet.kind, unmet.why.as_str()),
            (CertificateKind::None, "residual 0 < R_p 0.0001, but unmet by its check: tests",)
        );
        let broken = issued(Against { broken: ids, ..Against::default() });
        assert_eq!(broken.kind, CertificateKind::None);
        assert!(broken.why.contains("is not any more: tests"), "{}", broken.why);
        let judged = issued(Against::default());
        assert_eq!(judged.kind, CertificateKind::Converged);
        assert!(judged.why.ends_with("judged unmet: tests"), "{}", judged.why);
    }

    #[test]
    fn divergence_is_a_strict_row_without_nulls() {
        let row = |values: &[&str]| values.iter().map(|v| Exact::parse(v).ok()).collect::<Vec<_>>();
        assert!(diverges(&row(&["1", "2", "3"]), 3));
        assert!(diverges(&row(&["9", "1", "1.1", "1.2"]), 3));
        assert!(!diverges(&row(&["1", "2", "2"]), 3));
        assert!(!diverges(&row(&["1", "2"]), 3));
        assert!(!diverges(&row(&["1", "null", "3", "4"]), 3), "a null breaks the row");
    }
}
