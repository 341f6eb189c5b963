//! loop.yaml: the declaration of a loop, as written and as resolved.
//!
//! Reading is strict: an unknown key, a float where exactness matters, or a contradiction is a
//! [`Diagnostic`] with a place. What is merely *missing* is not an error here: the machine turns it
//! into EXIT_NEED_INFO, so that the reason is recorded.

mod agent;
mod agents;
mod criteria;
mod dependency;
mod passes;
mod playbook;
mod safety;
mod stop_when;
mod unique;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::de;
use serde::{Deserialize, Deserializer, Serialize};

use super::budget;
use super::call_limits::CallLimits;
use super::certificate::CertificateKind;
use super::criterion::{Criterion, Proof};
use super::decimal::Exact;
use super::diagnose::{self, Diagnostic};
use super::ids::Role;
use super::learnings::SpecVersion;
use super::rung::Rung;

pub use agent::{
    AgentDecl, Auth, BackendName, CacheDecl, Effort, PriceDecl, ProgramProfile, PromptBy, ThinkingDecl, WebDecl,
};
pub use agents::Agents;
pub use criteria::{CheckDecl, CriterionDecl, CriterionFull};
pub use dependency::DependencyDecl;
pub use passes::{Flow, ItemDecl, LOOPS_PER_ITEM, MicroSettings, PrdSettings};
pub use playbook::Playbook;
pub use safety::{NetworkDecl, Otherwise, PermissionsDecl, ReachDecl, SandboxDecl, SandboxMode};
pub use stop_when::{EndTime, StopWhen, TimeOfDay};

/// A declaration larger than this is refused before it is read.
pub const MAX_BYTES: u64 = 1 << 20;
/// Seconds a check may take when it does not say.
pub const DEFAULT_CHECK_SECONDS: u64 = 600;
const MAX_CRITERIA: usize = 200;
/// The key of `northstar.links` that names the metrics which follow the residual. No criterion may be called so.
pub const RESIDUAL_LINK: &str = "residual";

/// R_p when loop.yaml does not declare one (resolution B4).
pub const DEFAULT_R_P: &str = "1e-10";

/// loop.yaml as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopFile {
    /// "2.0" (default) or "1.0" (no Northstar, no GLOW gate).
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub spec: Option<SpecVersion>,
    pub name: Option<String>,
    #[serde(default)]
    pub playbook: Playbook,
    pub goal: Option<String>,
    pub acceptance_criteria: Option<Vec<CriterionDecl>>,
    #[schemars(with = "Option<Vec<String>>")]
    pub halting_certificates: Option<Vec<CertificateName>>,
    /// A decimal string, for example "1e-4".
    #[serde(rename = "R_p")]
    #[schemars(with = "Option<String>")]
    pub r_p: Option<Exact>,
    pub residual: Option<ResidualDecl>,
    #[schemars(with = "Option<u64>")]
    pub rung_target: Option<Rung>,
    #[serde(default)]
    pub profile: budget::Profile,
    #[serde(default)]
    pub budget: budget::Requested,
    pub northstar: Option<NorthstarDecl>,
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, AgentDecl>")]
    pub agents: Agents,
    #[serde(default)]
    pub roles: BTreeMap<Role, String>,
    /// How much one call of a role may use before it goes on in a fresh conversation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<Role, CallLimits>,
    #[serde(default)]
    pub permissions: PermissionsDecl,
    #[serde(default)]
    pub sandbox: SandboxDecl,
    #[serde(default)]
    pub touches: Vec<Surface>,
    pub security: Option<SecurityDecl>,
    pub api_surface: Option<ApiSurfaceDecl>,
    /// What the work needs beside us: where it is not there, the run stops and can be resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backpressure: Vec<DependencyDecl>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<DecisionsDecl>,
    /// When the run leaves off for today; `nightloop resume` goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_when: Option<StopWhen>,
    /// For the value playbook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<super::value::ValueSettings>,
    /// For the prd playbook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prd: Option<PrdSettings>,
    /// For the micro playbook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro: Option<MicroSettings>,
}

/// Surfaces that raise the default rung to 65537.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Surface {
    Security,
    Api,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResidualDecl {
    pub metric: Option<String>,
    pub command: Option<Vec<String>>,
    pub timeout_seconds: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NorthstarDecl {
    pub file: Option<String>,
    /// Criterion id -> the metrics it serves; `residual` -> the metrics that follow the residual [default: the first].
    #[serde(default)]
    pub links: BTreeMap<String, Vec<String>>,
    /// Metric id -> the command that measures its current value.
    #[serde(default)]
    pub measure: BTreeMap<String, Vec<String>>,
    /// Why this loop may succeed without moving a metric (infrastructure work).
    pub neutral_reason: Option<String>,
}

/// Evidence for rung 65537.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecurityDecl {
    pub command: Vec<String>,
    /// Prints the scanner's version, for the record.
    pub version_command: Option<Vec<String>>,
    pub timeout_seconds: Option<u64>,
}

/// Prints the public interface, one item per line; a removed line is a breaking change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiSurfaceDecl {
    pub command: Vec<String>,
    pub timeout_seconds: Option<u64>,
}

/// What happens while a decision waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionsDecl {
    /// `wait` (the default under a console) or `stop` (the default under --headless).
    pub mode: Option<super::decision::Mode>,
    /// Stop after waiting this long; 0 waits on. A time-out never means yes.
    pub timeout_minutes: Option<u64>,
}

/// A certificate name that may be declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct CertificateName(pub CertificateKind);

impl<'de> Deserialize<'de> for CertificateName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let known = CertificateKind::DECLARABLE.into_iter().find(|kind| kind.name() == text);
        known.map(Self).ok_or_else(|| {
            let names = CertificateKind::DECLARABLE.map(CertificateKind::name).join(", ");
            de::Error::custom(format!("unknown certificate `{text}`: use {names}"))
        })
    }
}

/// Reads and checks a declaration. `file` is only a name for messages.
pub fn parse(text: &str, file: &str) -> Result<LoopFile, Diagnostic> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let wrong = |e: serde_yaml::Error| diagnose::from_yaml(file, &e);
    // A first pass refuses duplicate keys everywhere, also in maps.
    serde_yaml::from_str::<unique::Unique>(text).map_err(wrong)?;
    let value: serde_yaml::Value = serde_yaml::from_str(text).map_err(wrong)?;
    let declared: LoopFile =
        if merges(&value) { merged(value, text, file)? } else { serde_yaml::from_str(text).map_err(wrong)? };
    check(&declared, text, file)?;
    Ok(declared)
}

/// Does a map take over another one with `<<`?
fn merges(value: &serde_yaml::Value) -> bool {
    match value {
        serde_yaml::Value::Mapping(map) => map.iter().any(|(key, value)| key.as_str() == Some("<<") || merges(value)),
        serde_yaml::Value::Sequence(items) => items.iter().any(merges),
        serde_yaml::Value::Tagged(tagged) => merges(&tagged.value),
        serde_yaml::Value::Null
        | serde_yaml::Value::Bool(_)
        | serde_yaml::Value::Number(_)
        | serde_yaml::Value::String(_) => false,
    }
}

/// The declaration with its merges made. What is wrong has lost its place by then; the word that is named has a line.
fn merged(mut value: serde_yaml::Value, text: &str, file: &str) -> Result<LoopFile, Diagnostic> {
    value.apply_merge().map_err(|e| diagnose::from_yaml(file, &e))?;
    serde_yaml::from_value(value).map_err(|e| {
        let wrong = diagnose::from_yaml(file, &e);
        let line = wrong.message.split('`').nth(1).and_then(|word| line_of(text, word));
        Diagnostic { line: wrong.line.or(line), ..wrong }
    })
}

/// A message and a hint, and the word to point at.
type Wrong = (String, String, String);

fn wrong(key: &str, message: String, hint: &str) -> Wrong {
    (key.to_owned(), message, hint.to_owned())
}

fn check(declared: &LoopFile, text: &str, file: &str) -> Result<(), Diagnostic> {
    let checked = check_goal(declared)
        .and_then(|()| check_criteria(declared))
        .and_then(|()| check_agents(declared))
        .and_then(|()| check_sections(declared))
        .and_then(|()| check_services(declared))
        .and_then(|()| check_links(declared))
        .and_then(|()| {
            let checked = declared.stop_when.as_ref().map_or(Ok(()), StopWhen::check);
            checked.map_err(|(key, message, hint)| wrong(key, message, hint))
        })
        .and_then(|()| {
            DependencyDecl::check_all(&declared.backpressure).map_err(|(key, message, hint)| wrong(&key, message, hint))
        });
    checked.map_err(|(key, message, hint)| Diagnostic {
        file: file.to_owned(),
        line: line_of(text, &key),
        column: None,
        message,
        hint: (!hint.is_empty()).then_some(hint),
    })
}

fn check_goal(declared: &LoopFile) -> Result<(), Wrong> {
    if declared.r_p.is_some_and(|r_p| r_p.is_zero()) {
        let hint = "a loop that needs residual 0 declares EXACT";
        return Err(wrong("R_p", "R_p must be greater than 0".into(), hint));
    }
    let criteria = declared.acceptance_criteria.as_deref().unwrap_or_default();
    if criteria.len() > MAX_CRITERIA {
        let message = format!("{} criteria: at most {MAX_CRITERIA}", criteria.len());
        return Err(wrong("acceptance_criteria", message, ""));
    }
    Ok(())
}

fn check_criteria(declared: &LoopFile) -> Result<(), Wrong> {
    let mut ids = BTreeSet::new();
    for criterion in declared.criteria() {
        if !ids.insert(criterion.id.clone()) {
            let message = format!("the criterion id `{}` is used twice", criterion.id);
            return Err(wrong(&criterion.id, message, "give each criterion its own id"));
        }
        if criterion.id == RESIDUAL_LINK {
            let message =
                format!("the criterion id `{RESIDUAL_LINK}` is taken: northstar.links uses it for the residual");
            return Err(wrong(&criterion.id, message, "choose another id"));
        }
        let own = declared.playbook.way_out();
        if own.is_some_and(|own| own.id == criterion.id && own.proof != criterion.proof) {
            let playbook = declared.playbook.name();
            let message = format!("the criterion id `{}` is reserved for the {playbook} playbook", criterion.id);
            return Err(wrong(&criterion.id, message, "choose another id"));
        }
        if !is_plain_name(&criterion.id) {
            let message = format!("`{}` is not a valid criterion id", criterion.id);
            return Err(wrong(&criterion.id, message, "use letters, digits, `-` and `_`, at most 64"));
        }
        if let Some(bad) = criterion.protects.iter().find(|glob| globset::Glob::new(glob).is_err()) {
            let message = format!("criterion `{}` protects `{bad}`, which is not a valid glob", criterion.id);
            return Err(wrong("protects", message, "for example [\"tests/**\"]"));
        }
        if let Some(bad) = criterion.writes.iter().find(|glob| globset::Glob::new(glob).is_err()) {
            let message = format!("the check of `{}` writes `{bad}`, which is not a valid glob", criterion.id);
            return Err(wrong("writes", message, "for example [\"coverage/**\"]"));
        }
        if matches!(&criterion.proof, Proof::Check { argv, .. } if argv.is_empty()) {
            let message = format!("criterion `{}` has an empty check", criterion.id);
            return Err(wrong(&criterion.id, message, "give a program and its arguments, e.g. [\"cargo\", \"test\"]"));
        }
    }
    for criterion in declared.acceptance_criteria.as_deref().unwrap_or_default() {
        if let CriterionDecl::Full(CriterionFull { check: Some(_), judge: Some(_), text: wording, .. }) = criterion {
            let message = format!("the criterion `{wording}` has both a check and a judge");
            return Err(wrong("judge", message, "an executable check needs no judge: remove one"));
        }
    }
    Ok(())
}

fn check_agents(declared: &LoopFile) -> Result<(), Wrong> {
    for (role, agent) in &declared.roles {
        if declared.agents.get(agent).is_none() {
            let message = format!("role `{role}` uses the agent `{agent}`, which is not declared");
            let hint = diagnose::nearest(agent, declared.agents.names())
                .map(|name| format!("did you mean `{name}`?"))
                .unwrap_or_default();
            return Err(wrong("roles", message, &hint));
        }
    }
    for (role, limits) in &declared.limits {
        limits.check().map_err(|(key, why)| wrong(key, format!("limits of the {role}: {why}"), ""))?;
    }
    for (name, agent) in declared.agents.iter() {
        agent.check(name).map_err(|(message, hint)| wrong(name, message, hint))?;
    }
    Ok(())
}

/// The playbooks' own sections.
fn check_sections(declared: &LoopFile) -> Result<(), Wrong> {
    let (value, prd, micro) = (&declared.value, &declared.prd, &declared.micro);
    let sections = [
        ("value", value.as_ref().map(super::value::ValueSettings::check)),
        ("prd", prd.as_ref().map(PrdSettings::check)),
        ("micro", micro.as_ref().map(MicroSettings::check)),
    ];
    for (name, checked) in sections {
        let Some(checked) = checked else { continue };
        if declared.playbook.name() != name {
            let message = format!("`{name}` is for the {name} playbook, and this loop does not run it");
            let hint = format!("add `playbook: {name}`, or leave `{name}` out");
            return Err(wrong(&format!("{name}:"), message, &hint));
        }
        checked.map_err(|(key, message, hint)| wrong(key, message, hint))?;
    }
    Ok(())
}

/// A service without a network is reached by nobody.
fn check_services(declared: &LoopFile) -> Result<(), Wrong> {
    let started = declared.value_settings().services.iter().find(|service| service.is_started());
    let Some(service) = started.filter(|_| declared.sandbox.network == Some(NetworkDecl::Off.into())) else {
        return Ok(());
    };
    if declared.sandbox.mode == Some(SandboxMode::Off) {
        return Ok(());
    }
    let message = format!("the service `{}` cannot be reached with `network: off`", service.name);
    Err(wrong("network:", message, "leave `network` out (then it is loopback), or say `network: loopback`"))
}

fn check_links(declared: &LoopFile) -> Result<(), Wrong> {
    let Some(northstar) = &declared.northstar else { return Ok(()) };
    let is_criterion =
        |id: &String| id == RESIDUAL_LINK || declared.criteria().iter().any(|criterion| criterion.id == *id);
    match northstar.links.keys().find(|id| !is_criterion(id)) {
        Some(id) => Err(wrong(id, format!("northstar.links names `{id}`, which is not a criterion id"), "")),
        None => Ok(()),
    }
}

/// The first line that mentions the word as a key or value; good enough to point at.
fn line_of(text: &str, word: &str) -> Option<usize> {
    text.lines().position(|line| line.contains(word)).map(|index| index + 1)
}

fn is_plain_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

impl LoopFile {
    pub fn spec(&self) -> SpecVersion {
        self.spec.unwrap_or(SpecVersion::V2)
    }

    /// The limits of the run: as declared, else by the profile, from what the playbook starts from.
    pub fn budget_in_force(&self) -> budget::Effective {
        let in_steps = self.playbook.works_in_steps();
        let steps = if in_steps { u64::from(self.value_settings().steps_per_iteration) } else { 1 };
        budget::effective_from(&budget::Limits::for_steps(steps), &self.budget, self.profile)
    }

    /// The criteria with ids and proofs filled in.
    pub fn criteria(&self) -> Vec<Criterion> {
        let declared = self.acceptance_criteria.as_deref().unwrap_or_default();
        let declared = declared.iter().enumerate().map(|(index, decl)| criteria::resolve(index, decl));
        declared.chain(self.playbook.way_out()).collect()
    }

    /// The `value:` part, or its defaults.
    pub fn value_settings(&self) -> &super::value::ValueSettings {
        static DEFAULTS: std::sync::LazyLock<super::value::ValueSettings> =
            std::sync::LazyLock::new(super::value::ValueSettings::default);
        self.value.as_ref().unwrap_or(&DEFAULTS)
    }

    /// The `prd:` part, or its defaults.
    pub fn prd(&self) -> &PrdSettings {
        static DEFAULTS: std::sync::LazyLock<PrdSettings> = std::sync::LazyLock::new(PrdSettings::default);
        self.prd.as_ref().unwrap_or(&DEFAULTS)
    }

    /// Passes of an author at one thing between two words of a person.
    pub fn pass_limit(&self) -> u32 {
        self.micro.as_ref().map_or(LOOPS_PER_ITEM, MicroSettings::limit)
    }

    /// Known fixes, of whichever playbook has them.
    pub fn detours(&self) -> &[super::detour::DetourDecl] {
        let of_micro = self.micro.as_ref().map(|micro| &micro.detours);
        of_micro.or(self.prd.as_ref().map(|prd| &prd.detours)).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn certificates(&self) -> Vec<CertificateKind> {
        self.halting_certificates.as_deref().unwrap_or_default().iter().map(|name| name.0).collect()
    }

    /// The declared R_p, or the default; the flag says which.
    pub fn r_p(&self) -> (Exact, bool) {
        match self.r_p {
            Some(r_p) => (r_p, true),
            // The constant is a valid decimal; a test holds it.
            None => (Exact::parse(DEFAULT_R_P).unwrap_or(Exact::ZERO), false),
        }
    }

    /// The stricter of what is declared and what the touched surfaces demand.
    pub fn rung_target(&self) -> Rung {
        let demanded = if self.touches.is_empty() { Rung::Local } else { Rung::Promoted };
        self.rung_target.unwrap_or(Rung::Stable).max(demanded)
    }

    /// How it was once: what is declared, however much it undercuts.
    pub fn rung_target_before_replays(&self) -> Rung {
        self.rung_target.unwrap_or(if self.touches.is_empty() { Rung::Stable } else { Rung::Promoted })
    }

    pub fn residual_metric(&self) -> String {
        let named = self.residual.as_ref().and_then(|r| r.metric.clone());
        named.unwrap_or_else(|| self.playbook.residual().to_owned())
    }

    pub fn northstar_file(&self) -> &str {
        self.northstar.as_ref().and_then(|n| n.file.as_deref()).unwrap_or("NORTHSTAR.md")
    }

    /// The agent that runs a role: the named one, else the first declared.
    pub fn agent_for(&self, role: Role) -> Option<(&str, &AgentDecl)> {
        let named = self.roles.iter().find(|(name, _)| **name == role).map(|(_, agent)| agent);
        match named {
            Some(name) => self.agents.get(name),
            None => self.agents.iter().next(),
        }
    }
}

/// The JSON schema that editors use to complete loop.yaml.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(LoopFile).to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text, "loop.yaml").unwrap_err().to_string()
    }

    #[test]
    fn the_default_r_p_is_a_decimal() {
        assert!(!parse("goal: x", "loop.yaml").unwrap().r_p().0.is_zero());
    }

    #[test]
    fn unknown_keys_name_place_and_neighbour() {
        let text = error("goal: x\nbuget:\n  max_iterations: 3\n");
        assert!(text.starts_with("loop.yaml:2:1:") && text.contains("`buget`") && text.contains("`budget`"), "{text}");
        let text = error("goal: x\nacceptance_criteria:\n  - text: a\n    chek: [x]\n");
        assert!(text.contains("loop.yaml:") && text.contains("`chek`") && text.contains("`check`"), "{text}");
    }

    #[test]
    fn floats_are_refused_for_r_p() {
        let text = error("goal: x\nR_p: 0.0001\n");
        assert!(text.starts_with("loop.yaml:2") && text.contains("quoted decimal string"), "{text}");
    }

    #[test]
    fn contradictions_have_a_line() {
        for (text, expected) in [
            ("acceptance_criteria:\n  - {id: a, text: x}\n  - {id: a, text: y}\n", "used twice"),
            ("halting_certificates: [EXACTLY]\n", "unknown certificate `EXACTLY`"),
            ("halting_certificates: [NONE]\n", "unknown certificate `NONE`"),
            ("acceptance_criteria:\n  - {id: a, text: x, check: []}\n", "empty check"),
            ("acceptance_criteria:\n  - {id: a, text: x, check: [b], judge: skeptic}\n", "both a check and a judge"),
            ("roles: {scout: bulder}\nagents:\n  builder: {backend: anthropic, model: m}\n", "did you mean `builder`"),
            ("agents:\n  r: {backend: rehearsal}\n", "without a script"),
            ("agents:\n  a: {backend: anthropic, model: m}\n  a: {backend: anthropic, model: n}\n", "duplicate"),
            ("acceptance_criteria:\n  - {id: a, text: x, protects: [\"a[\"]}\n", "which is not a valid glob"),
            ("R_p: \"0\"\n", "greater than 0"),
            ("R_p: \"1e-40\"\n", "exactly"),
            ("rung_target: 65536\n", "rung 65536 is unknown"),
            ("northstar: {links: {tests: [vc-1]}}\n", "not a criterion id"),
        ] {
            let error = error(text);
            assert!(error.starts_with("loop.yaml:") && error.contains(expected), "{expected}: {error}");
        }
    }

    #[test]
    fn a_duplicate_key_has_its_own_place() {
        for (text, place) in [
            ("goal: x\nname: a\ngoal: y\n", "3:1"),
            ("\u{feff}goal: x\r\nname: a\r\ngoal: y\r\n", "3:1"),
            ("budget: {max_iterations: 3, max_iterations: 4}\n", "1:29"),
            ("budget: {\n  max_iterations: 3,\n  \"max_iterations\": 4 }\n", "3:3"),
            ("agents:\n  a: {backend: anthropic, model: m}\n  a: {backend: anthropic, model: n}\n", "3:3"),
        ] {
            let error = error(text);
            assert!(error.starts_with(&format!("loop.yaml:{place}: ")) && error.contains("duplicate key"), "{error}");
        }
    }

    #[test]
    fn marks_line_ends_and_merges_are_read() {
        let plain = parse("goal: x\nname: y\n", "loop.yaml").unwrap();
        assert_eq!(parse("\u{feff}goal: x\r\nname: y\r\n", "loop.yaml").unwrap(), plain);
        let text = "agents:\n  a: &a {backend: anthropic, model: m}\n  b:\n    <<: *a\n    effort: high\n";
        let file = parse(text, "loop.yaml").unwrap();
        assert_eq!(file.agents.get("b").unwrap().1.model, file.agents.get("a").unwrap().1.model);
        let wrong = error(&format!("{text}buget: {{}}\n"));
        assert!(wrong.starts_with("loop.yaml:6: unknown key `buget`"), "{wrong}");
    }

    #[test]
    fn plain_text_criteria_are_judged() {
        let file = parse("acceptance_criteria: [It reads well.]\n", "loop.yaml").unwrap();
        let criteria = file.criteria();
        assert_eq!((criteria[0].id.as_str(), criteria[0].is_judged()), ("c1", true));
    }

    #[test]
    fn a_declared_surface_raises_the_rung() {
        assert_eq!(parse("touches: [api]\n", "loop.yaml").unwrap().rung_target(), Rung::Promoted);
        assert_eq!(parse("{}\n", "loop.yaml").unwrap().rung_target(), Rung::Stable);
        let undercut = parse("touches: [security, api]\nrung_target: 641\n", "loop.yaml").unwrap();
        assert_eq!(undercut.rung_target(), Rung::Promoted, "a declared rung does not undercut what is touched");
        assert_eq!(parse("rung_target: 641\n", "loop.yaml").unwrap().rung_target(), Rung::Local);
    }
}
