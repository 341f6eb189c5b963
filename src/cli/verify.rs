//! `nightloop verify`: may this run be believed, and what exactly is proven?

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tempfile::TempDir;

use crate::engine::aside::Aside;
use crate::engine::error::EngineError;
use crate::engine::genesis;
use crate::engine::host::runtime;
use crate::engine::keys;
use crate::engine::places::StateRoot;
use crate::engine::session::{self, Attendance};
use crate::engine::signer;
use crate::evidence::pack::{self, PackError};
use crate::evidence::verify::{self, Problem, RenderedPlace, Verification, VerifyVerdict};
use crate::journal::{PublicKey, RunDir, Signers};
use crate::machine::run::RunState;
use crate::model::criterion::Proof;
use crate::tool::process::End;
use crate::tool::sandbox::Sandbox;

use super::{Outcome, outcome, select, text};

const MAX_SIGNERS: u64 = 1 << 20;

#[derive(Debug, Args)]
pub struct Options {
    /// A run id, a file that `nightloop export` wrote, or the path of a (copied) run directory; default: the run of
    /// this directory.
    run: Option<String>,
    /// Also run the criteria's checks again, in the workspace.
    #[arg(long)]
    replay: bool,
    /// Accept only keys that this file lists (OpenSSH allowed-signers format).
    #[arg(long, value_name = "FILE")]
    signer: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let signers = options.signer.as_ref().map(|file| read_signers(&here.join(file))).transpose()?;
    let target = match locate(here, options)? {
        Ok(target) => target,
        Err(refusal) => return Ok(refuse(&refusal, options)),
    };
    let mut found = verify::verify(&target.run_dir, target.anchors.as_deref(), &target.place);
    let who = check_signer(&mut found, signers.as_ref().zip(options.signer.as_deref()));
    let checks = found.state.as_ref().map_or(0, checks_of);
    match (options.replay, &target.place) {
        (false, _) => {
            found.not_proven.push(match checks {
                0 => "that its result works now: nothing was run again here".to_owned(),
                _ => format!("that the checks pass now: {checks} not run again here (`--replay` does)"),
            });
        }
        (true, RenderedPlace::Workspace(workspace)) => replay(&mut found, workspace)?,
        (true, RenderedPlace::Packed(_) | RenderedPlace::Nowhere) => {
            let hint = "leave `--replay` out, or verify the run by its id on the machine that has its workspace";
            return Err(EngineError::usage("the checks cannot run again without the workspace", hint));
        }
    }
    if options.json {
        text::json_line(&as_json(&target.run_dir.name(), &found, who.as_ref()));
    } else {
        report(&target, &found, who.as_ref());
    }
    Ok(found.verdict().exit_code())
}

/// What is verified, and where its things are.
struct Target {
    run_dir: RunDir,
    anchors: Option<PathBuf>,
    place: RenderedPlace,
    /// How the run was found when it was not named.
    note: Option<String>,
    /// An unpacked run goes away with it.
    _unpacked: Option<TempDir>,
}

fn locate(here: &Path, options: &Options) -> Result<Result<Target, PackError>, EngineError> {
    let named = options.run.as_ref().map(|name| here.join(name));
    if let Some(path) = named.as_ref().filter(|path| path.join("genesis.json").is_file()) {
        // A copy is verified by itself; the workspace it came from may be gone.
        let run_dir = RunDir::open(path)?;
        let place = RenderedPlace::Nowhere;
        return Ok(Ok(Target { run_dir, anchors: None, place, note: None, _unpacked: None }));
    }
    if let Some(file) = named.filter(|path| path.is_file()) {
        let temp = std::env::temp_dir();
        let made = tempfile::Builder::new().prefix("nightloop-verify-").tempdir_in(&temp);
        let dir = made.map_err(|e| EngineError::io("cannot create a temporary directory", &temp, e))?;
        return match pack::unpack(&file, dir.path()) {
            Err(PackError::Io { path, source }) => Err(EngineError::io("cannot unpack the file", &path, source)),
            Err(refusal) => Ok(Err(refusal)),
            Ok(unpacked) => {
                let place = RenderedPlace::Packed(unpacked.run_dir.path().to_owned());
                let (run_dir, anchors) = (unpacked.run_dir, Some(unpacked.anchors));
                Ok(Ok(Target { run_dir, anchors, place, note: None, _unpacked: Some(dir) }))
            }
        };
    }
    let root = StateRoot::locate()?;
    let selected = select::run(&root, here, options.run.as_deref())?;
    let run_dir = RunDir::open(&root.run(&selected.run))?;
    // An unreadable genesis is the chain's problem to report.
    let place = genesis::workspace_of(&run_dir).map_or(RenderedPlace::Nowhere, RenderedPlace::Workspace);
    Ok(Ok(Target { run_dir, anchors: Some(root.anchors()), place, note: selected.note, _unpacked: None }))
}

/// The file itself is not as `export` writes it: nothing in it is looked at.
fn refuse(refusal: &PackError, options: &Options) -> u8 {
    let verdict =
        if matches!(refusal, PackError::Cut(_)) { VerifyVerdict::Incomplete } else { VerifyVerdict::Tampered };
    let name = options.run.as_deref().unwrap_or_default();
    if options.json {
        let problem = json!([{"place": name, "what": refusal.to_string()}]);
        let (problems, incomplete) = match verdict {
            VerifyVerdict::Incomplete => (json!([]), json!([refusal.to_string()])),
            VerifyVerdict::Ok | VerifyVerdict::Tampered => (problem, json!([])),
        };
        let report = json!({
            "verdict": word(verdict), "exit": verdict.exit_code(), "run": null, "events": 0, "head": null,
            "sealed": false, "anchored": false, "signer": null, "outcome": null, "proven": [], "not_proven": [],
            "incomplete": incomplete, "problems": problems,
        });
        text::json_line(&report);
    } else {
        let opening = if verdict == VerifyVerdict::Incomplete { "incomplete" } else { "NOT AS WRITTEN" };
        text::line(format!("{}: {opening}: {}", text::safe(name), text::safe(&refusal.to_string())));
    }
    verdict.exit_code()
}

fn read_signers(path: &Path) -> Result<Signers, EngineError> {
    use std::io::Read as _;
    let failed = |e| EngineError::io("cannot read the allowed signers", path, e);
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut text = String::new();
    file.take(MAX_SIGNERS).read_to_string(&mut text).map_err(failed)?;
    Signers::parse(&text).map_err(|why| {
        let hint = "`nightloop keys export` prints a line for it";
        EngineError::usage(format!("{}: {why}", path.display()), hint)
    })
}

/// Whose signature it is.
struct Who {
    key: PublicKey,
    /// As a file of allowed signers calls the owner.
    name: Option<String>,
    this_user: bool,
}

impl Who {
    fn words(&self) -> String {
        let print = self.key.fingerprint();
        match (&self.name, self.this_user) {
            (Some(name), _) => format!("signed by {name} ({print})"),
            (None, true) => format!("signed by {print}, this user's key"),
            (None, false) => format!("signed by {print}, which is not this user's key"),
        }
    }
}

fn check_signer(found: &mut Verification, signers: Option<(&Signers, &Path)>) -> Option<Who> {
    let Some(key) = found.signer else {
        if let Some((_, file)) = signers {
            found.incomplete.push(format!("seal.dsse.json: there is no signature to look up in {}", file.display()));
        }
        return None;
    };
    let mine = StateRoot::locate().ok().and_then(|root| signer::known(&root));
    let name = signers.and_then(|(signers, _)| signers.name(&key)).map(str::to_owned);
    let who = Who { key, name, this_user: mine == Some(key) };
    match signers {
        Some((_, file)) if who.name.is_none() => found.problems.push(Problem {
            place: "seal.dsse.json".to_owned(),
            what: format!("it is signed by {}, which {} does not list", key.fingerprint(), file.display()),
        }),
        Some((_, file)) => found.proven.push(format!("the signer: {}, listed in {}", who.words(), file.display())),
        None => {
            found.proven.push(format!("the seal: {}", who.words()));
            if !who.this_user {
                found.not_proven.push("whose key that is: `--signer FILE` checks it against your list".to_owned());
            }
        }
    }
    Some(who)
}

const fn word(verdict: VerifyVerdict) -> &'static str {
    match verdict {
        VerifyVerdict::Ok => "ok",
        VerifyVerdict::Tampered => "contradiction",
        VerifyVerdict::Incomplete => "incomplete",
    }
}

/// The keys are a promise to programs.
fn as_json(run: &str, found: &Verification, who: Option<&Who>) -> serde_json::Value {
    let signer = who.map(|who| {
        let (key, print) = (who.key.to_string(), who.key.fingerprint());
        json!({"fingerprint": print, "key": key, "name": who.name, "this_user": who.this_user})
    });
    let halted = found.state.as_ref().and_then(|state| state.halt.as_ref());
    let problems: Vec<_> = found.problems.iter().map(|p| json!({"place": p.place, "what": p.what})).collect();
    json!({
        "verdict": word(found.verdict()),
        "exit": found.verdict().exit_code(),
        "run": run,
        "events": found.events,
        "head": found.head,
        "sealed": found.sealed,
        "anchored": found.anchored,
        "signer": signer,
        "outcome": halted.map(|halted| json!({"status": halted.status, "stop_reason": halted.stop_reason})),
        "proven": found.proven,
        "not_proven": found.not_proven,
        "incomplete": found.incomplete,
        "problems": problems,
    })
}

fn report(target: &Target, found: &Verification, who: Option<&Who>) {
    if let Some(note) = &target.note {
        text::line(note);
    }
    text::line(format!("run {}: {}", text::safe(&target.run_dir.name()), headline(found, who)));
    for problem in &found.problems {
        text::line(format!("  {}: {}", text::safe(&problem.place), text::safe(&problem.what)));
    }
    for reason in &found.incomplete {
        text::line(format!("  {}", text::safe(reason)));
    }
    text::line(format!("  {} events, head {}", found.events, found.head));
    if let Some(halted) = found.state.as_ref().and_then(|state| state.halt.as_ref()) {
        text::line(format!("  {} ({})", halted.status, halted.stop_reason));
    }
    if let Some(state) = found.state.as_ref().filter(|state| state.halt.is_some()) {
        outcome::judges(state).into_iter().for_each(|line| text::line(format!("  {line}")));
    }
    for (title, lines) in [("Proven", &found.proven), ("Not proven", &found.not_proven)] {
        if !lines.is_empty() {
            text::line(title);
            lines.iter().for_each(|line| text::line(format!("  {}", text::safe(line))));
        }
    }
}

/// One line for people. Only what is signed and anchored is called verified without an "although".
fn headline(found: &Verification, who: Option<&Who>) -> String {
    let lacks: Vec<&str> = [(found.sealed, "unsealed"), (who.is_some(), "unsigned"), (found.anchored, "unanchored")]
        .into_iter()
        .filter_map(|(there, lack)| (!there).then_some(lack))
        .collect();
    match (found.verdict(), who) {
        (VerifyVerdict::Tampered, _) => "NOT AS WRITTEN".to_owned(),
        (VerifyVerdict::Incomplete, _) if lacks.is_empty() => "incomplete".to_owned(),
        (VerifyVerdict::Incomplete, _) => format!("incomplete: {}", lacks.join(", ")),
        (VerifyVerdict::Ok, Some(who)) if lacks.is_empty() => format!("verified, {}", text::safe(&who.words())),
        (VerifyVerdict::Ok, _) => format!("consistent, but {}", lacks.join(" and ")),
    }
}

fn checks_of(state: &RunState) -> usize {
    state.criteria.iter().filter(|criterion| matches!(criterion.proof, Proof::Check { .. })).count()
}

/// Runs the checks on the workspace as it is now.
fn replay(found: &mut Verification, workspace: &Path) -> Result<(), EngineError> {
    let Some(state) = found.state.take() else { return Ok(()) };
    let runtime = runtime()?;
    let declared = state.loop_file();
    let in_force = Attendance::Watched.sandbox(declared)?;
    let marker = format!("verify-{}", std::process::id());
    let root = StateRoot::locate()?;
    let sandbox =
        Sandbox::open(&declared.sandbox, in_force, workspace, root.path(), session::key_places(declared), &marker)
            .map_err(|e| EngineError::io("cannot create a temporary directory", &std::env::temp_dir(), e))?;
    let aside = Aside::open(&root, workspace, &sandbox, &marker)?;
    let recorded = state.iterations().rev().find_map(|iteration| iteration.certificate.as_ref());
    for criterion in &state.criteria {
        let Proof::Check { argv, timeout_seconds } = &criterion.proof else { continue };
        // Files that are gone, or that cannot be shown here: then it would be another check.
        let hidden = criterion.hidden.as_deref().filter(|path| keys::expand(path).is_dir());
        let ran = match (&criterion.hidden, hidden) {
            (Some(_), None) => None,
            (_, hidden) => runtime.block_on(aside.run(argv, *timeout_seconds, hidden))?,
        };
        let Some(outcome) = ran else {
            found.not_proven.push(format!("replay {}: its files are held back, and not here", criterion.id));
            continue;
        };
        let met = outcome.end == End::Exited(0);
        let was = recorded.and_then(|certificate| {
            certificate.acceptance_criteria_checklist.iter().find(|f| f.id == criterion.id).map(|f| f.met)
        });
        let word = if met { "met" } else { "not met" };
        if was == Some(met) {
            found.proven.push(format!("replay {}: {word}, as recorded", criterion.id));
        } else {
            let what = format!("run again, it is {word}; the record differs");
            found.problems.push(Problem { place: format!("replay {}", criterion.id), what });
        }
    }
    found.state = Some(state);
    Ok(())
}
