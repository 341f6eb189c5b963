//! The services of a run: brought up, looked at, recorded.
//!
//! Role: make true what the folded run says should run: what ended is recorded, what is stale is ended, what does not
//! run is started, and then each is asked whether it is healthy. Not its role: what follows (the playbook), keeping a
//! process (`running`), asking (`health`).
//!
//! Invariants: a start is durable before it is made; a service is healthy only while the process that we started lives;
//! each look starts one service at most [`TRIES`] times and ends within the time that services may take to start.

mod health;
mod log;
mod running;

use std::collections::BTreeMap;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::engine::confine;
use crate::engine::context::{Context, Cutoff, Guarded};
use crate::engine::error::EngineError;
use crate::model::ids::Role;
use crate::model::value::Action;
use crate::model::value::tools::{HealthType, Service};
use crate::playbook::value::event::{ServiceEnded, ServiceHealth, ServiceStarted, ServicesChecked};
use crate::playbook::value::services;
use crate::tool::network::RunNetwork;
use crate::tool::process::{CommandSpec, is_passed_on};

pub(in crate::engine) use running::Running;
use running::{Ended, One};

/// Starts of one service in one look; one, where it may still have to be built.
const TRIES: u32 = 2;
/// Between two questions to a service that is starting.
const PAUSE: Duration = Duration::from_millis(100);
/// Of a log, so much goes to agents.
const LOG_SHOWN: usize = 1_500;
/// No service outlives this; the run ends it long before.
const A_YEAR: Duration = Duration::from_secs(31_536_000);
/// What a service writes goes one way, in the order in which it comes.
const IN_ONE_STREAM: &str = "exec \"$0\" \"$@\" 2>&1";

/// One look: what it tried, and what it knows so far.
#[derive(Default)]
struct Look {
    starts: BTreeMap<String, u32>,
    /// Why a service was not started.
    refused: BTreeMap<String, String>,
    health: BTreeMap<String, ServiceHealth>,
}

impl Look {
    fn is_healthy(&self, name: &str) -> bool {
        self.health.get(name).is_some_and(|one| one.healthy)
    }

    fn may_start(&self, cx: &Context<'_>, name: &str) -> bool {
        let tries = if services::is_to_be_mended(cx.state(), name) { TRIES } else { 1 };
        self.starts.get(name).is_none_or(|starts| *starts < tries) && !self.refused.contains_key(name)
    }
}

/// Did something fall that the agent at work was told is up? It went with the engine; or by itself, where the agent changes
/// no file. What a builder has not finished may well fall, and is started anew once it is there.
pub(super) fn fell(cx: &Context<'_>, writes: bool) -> bool {
    let value = cx.state().value();
    let mends = |action: &Action| matches!(action, Action::ServiceFix { .. });
    if value.step.as_ref().is_none_or(|step| mends(&step.action)) {
        return false;
    }
    let was_up = |name: &str| value.services.iter().any(|one| one.name == name && one.healthy);
    services::started(cx.state()).filter(|one| was_up(&one.name)).any(|one| match cx.services.get(&one.name) {
        Some(running) => !writes && running.is_over(),
        None => !writes || cx.services.last_log(&one.name).is_none(),
    })
}

/// Brings up what should run, and records what is healthy. `false`: a stop came first; it is done again on resume.
pub(super) async fn check(cx: &mut Context<'_>) -> Result<bool, EngineError> {
    record_ended(cx).await?;
    end_obsolete(cx).await?;
    let ours: Vec<Service> = services::started(cx.state()).cloned().collect();
    let mut look = Look::default();
    loop {
        for service in &ours {
            if !runs(cx, &service.name) && look.may_start(cx, &service.name) {
                start(cx, service, &mut look).await?;
            }
        }
        let open: Vec<Service> = ours.iter().filter(|one| !look.is_healthy(&one.name)).cloned().collect();
        if !ask(cx, open, &mut look).await? {
            return Ok(false);
        }
        record_ended(cx).await?;
        end_hung(cx, &ours, &look).await?;
        if !ours.iter().any(|one| !look.is_healthy(&one.name) && is_coming(cx, one, &look)) {
            break;
        }
        let token = CancellationToken::new();
        if let Guarded::Stopped(()) = cx.guarded(&token, Cutoff::Never, tokio::time::sleep(PAUSE)).await? {
            return Ok(false);
        }
    }
    let others: Vec<Service> = services::declared(cx.state()).filter(|one| !one.is_started()).cloned().collect();
    if !ask(cx, others, &mut look).await? {
        return Ok(false);
    }
    let declared: Vec<String> = services::declared(cx.state()).map(|one| health::shown_name(&one.name)).collect();
    let services = declared.into_iter().filter_map(|name| look.health.remove(&name)).collect();
    cx.record(ServicesChecked { services }).await?;
    Ok(true)
}

/// Where the run's commands meet.
fn network(cx: &Context<'_>) -> Option<RunNetwork> {
    cx.sandbox().network().ok().cloned()
}

fn runs(cx: &Context<'_>, name: &str) -> bool {
    cx.services.get(name).is_some()
}

/// May it still become healthy in this look?
fn is_coming(cx: &Context<'_>, service: &Service, look: &Look) -> bool {
    match cx.services.get(&service.name) {
        Some(one) => one.age() < Duration::from_secs(service.start_seconds()),
        None => look.may_start(cx, &service.name),
    }
}

/// Asks these; `false`: a stop came first.
async fn ask(cx: &mut Context<'_>, services: Vec<Service>, look: &mut Look) -> Result<bool, EngineError> {
    let (ours, asked): (Vec<_>, Vec<_>) =
        services.into_iter().partition(|one| one.is_started() && !runs(cx, &one.name));
    for service in ours {
        let detail = why_down(cx, &service.name, look);
        let log = cx.state().value().services.iter().find(|one| one.name == service.name).map(|one| one.log.clone());
        let log = cx.services.last_log(&service.name).map(|log| shown(&log)).or(log).unwrap_or_default();
        let health = ServiceHealth { name: service.name.clone(), healthy: false, detail, log };
        look.health.insert(service.name, health);
    }
    let checks = health::checks(cx, asked)?;
    let token = CancellationToken::new();
    let network = network(cx);
    let asked = health::all(network.as_ref(), checks, &token);
    let outcome = match cx.guarded(&token, Cutoff::Never, asked).await? {
        Guarded::Done(outcome) | Guarded::Cut(outcome) => outcome,
        Guarded::Stopped(_) => return Ok(false),
    };
    for health in outcome {
        let mut health = health::clean(health, cx.secrets());
        if let Some(one) = cx.services.get(&health.name) {
            // What answers while our process is gone is somebody else.
            if one.is_over() {
                health.healthy = false;
            }
            if !health.healthy {
                health.log = shown(&one.log());
            }
        }
        look.health.insert(health.name.clone(), health);
    }
    Ok(true)
}

fn why_down(cx: &Context<'_>, name: &str, look: &Look) -> String {
    if let Some(why) = look.refused.get(name) {
        return why.clone();
    }
    let end = cx.state().value().lives.get(name).and_then(|life| life.last_end.clone());
    end.map_or_else(|| "it does not run".to_owned(), |end| format!("it does not run: {end}"))
}

/// The end of a log, within what agents are shown.
fn shown(log: &str) -> String {
    let from = log.ceil_char_boundary(log.len().saturating_sub(LOG_SHOWN));
    log.get(from..).unwrap_or_default().to_owned()
}

/// Records what ended by itself.
async fn record_ended(cx: &mut Context<'_>) -> Result<(), EngineError> {
    for ended in cx.services.take_ended().await {
        record_end(cx, ended, false).await?;
    }
    Ok(())
}

async fn record_end(cx: &mut Context<'_>, ended: Ended, asked: bool) -> Result<(), EngineError> {
    let log = if ended.log.is_empty() { None } else { Some(cx.blobs().put(ended.log.as_bytes())?) };
    cx.record(ServiceEnded { name: ended.name, how: ended.how, asked, log }).await
}

/// Ends what is not declared any more, or not like this, or was started before files changed.
async fn end_obsolete(cx: &mut Context<'_>) -> Result<(), EngineError> {
    let current = |name: &String| {
        services::started(cx.state()).any(|one| one.name == *name && services::is_current(cx.state(), one))
    };
    let obsolete: Vec<String> = cx.services.names().filter(|name| !current(name)).collect();
    end(cx, obsolete).await
}

/// Ends all for a trial without the work that they serve; they come up again for the next checks.
pub(in crate::engine) async fn end_for_trial(cx: &mut Context<'_>) -> Result<(), EngineError> {
    record_ended(cx).await?;
    let all = cx.services.names().collect();
    end(cx, all).await
}

/// A service that had its time to start and answers nothing is started anew, within the bound of a look.
async fn end_hung(cx: &mut Context<'_>, ours: &[Service], look: &Look) -> Result<(), EngineError> {
    let hung = |one: &&Service| {
        let out_of_time =
            cx.services.get(&one.name).is_some_and(|had| had.age() >= Duration::from_secs(one.start_seconds()));
        out_of_time && !look.is_healthy(&one.name) && look.starts.get(&one.name).is_none_or(|starts| *starts == 0)
    };
    let hung: Vec<String> = ours.iter().filter(hung).map(|one| one.name.clone()).collect();
    end(cx, hung).await
}

async fn end(cx: &mut Context<'_>, names: Vec<String>) -> Result<(), EngineError> {
    for ended in cx.services.end(&names, true).await {
        record_end(cx, ended, true).await?;
    }
    Ok(())
}

async fn start(cx: &mut Context<'_>, service: &Service, look: &mut Look) -> Result<(), EngineError> {
    let number = cx.state().value().lives.get(&service.name).map_or(0, |life| life.starts);
    let spec = match spec(cx, service, service.start.as_deref().unwrap_or_default())? {
        Ok(_) if number >= services::MAX_STARTS => Err(format!("it was started {number} times, and no more")),
        Ok(_) if health::is_taken(network(cx).as_ref(), service).await => {
            Err(format!("port {} is taken by something that this run did not start", service.listens().unwrap_or(0)))
        }
        other => other,
    };
    let spec = match spec {
        Ok(spec) => spec,
        Err(why) => {
            look.refused.insert(service.name.clone(), why);
            return Ok(());
        }
    };
    let tries = look.starts.entry(service.name.clone()).or_default();
    *tries += 1;
    let why = match (number, *tries) {
        (0, _) => "for the first time".to_owned(),
        (_, 1) => {
            cx.state().value().lives.get(&service.name).and_then(|life| life.last_end.clone()).unwrap_or_default()
        }
        (_, tries) => format!("attempt {tries} of {TRIES}"),
    };
    cx.record(ServiceStarted { service: Box::new(service.clone()), start: number, why }).await?;
    let stop = match &service.stop {
        Some(argv) => self::spec(cx, service, argv)?.ok(),
        None => None,
    };
    let place = cx.run_dir().path().join("services");
    let secrets = cx.secrets().clone();
    cx.services.begin(&service.name, One::start(spec, stop, log::Place::new(place, &service.name, number), secrets));
    Ok(())
}

/// The command of a service, as a builder's command would run. The inner error: why it may not, or cannot.
fn spec(cx: &Context<'_>, service: &Service, argv: &[String]) -> Result<Result<CommandSpec, String>, EngineError> {
    let by_person = cx.state().value_settings().services.iter().any(|one| one.name == service.name);
    if let Err(why) = confine::permitted(&cx.rules, argv)
        && !by_person
    {
        return Ok(Err(why));
    }
    if let Some(why) = services::no_network(cx.state()).filter(|_| service.health_type != HealthType::Process) {
        return Ok(Err(why.to_owned()));
    }
    let words = ["sh", "-c", IN_ONE_STREAM].into_iter().map(str::to_owned);
    let folder = service.cwd.as_ref().map_or_else(|| cx.workspace().to_owned(), |cwd| cx.workspace().join(cwd));
    let mut spec = CommandSpec::new(words.chain(argv.iter().cloned()).collect(), folder, cx.state().run().as_str());
    spec.timeout = A_YEAR;
    spec.stop_signal = service.stop_signal.unwrap_or_default();
    spec.confinement = confine::of_role(cx, Role::Builder)?;
    spec.env.extend(service.listens().map(|port| ("PORT".to_owned(), port.to_string())));
    // A variable that tools do not get goes to a service only on a person's word.
    for name in service.env.iter().filter(|name| by_person && !is_passed_on(name)) {
        spec.env.extend(std::env::var(name).ok().map(|value| (name.clone(), value)));
    }
    Ok(Ok(spec))
}
