//! The effects of the playbooks with items: prd.json, its log and its progress, as they lie in the workspace.
//!
//! Role: read the file, put the believed text back, and write what a judged pass means. Not its role: deciding whether
//! an item passes (`playbook::passes`).
//! Invariants: a text is a blob before it is an event; every effect may be made again after a crash and is then made
//! once; what somebody else wrote meanwhile is kept, or nothing is written and the record says why.

mod archive;
mod beside;
mod brief;
mod ledger;

use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::prd::ReadWhen;
use crate::model::prd::{self, Change, Prd};
use crate::model::secret::Scope;
use crate::playbook::passes::event::{ItemSeen, ItemSettled, PassVerdict, PrdRead};
use crate::playbook::passes::{measure, state as passes};
use crate::workspace::{document, plain};

use super::confine::protected;
use super::context::Context;
use super::error::EngineError;
use super::excerpt;
use super::guards;

use crate::playbook::passes::{ARCHIVE, LAST_ERROR, LAST_PRD, LOG, THEIRS};

/// The longest note that is written for an item.
const MAX_NOTE: usize = 500;

fn cut(text: &str, limit: usize) -> String {
    text[..text.floor_char_boundary(limit)].to_owned()
}

fn prd_path(cx: &Context<'_>) -> String {
    cx.state().loop_file().prd().file.clone()
}

/// What is on disk now; `None`: nothing.
fn prd_bytes(cx: &Context<'_>) -> Result<Option<Vec<u8>>, String> {
    document::read(cx.workspace(), &prd_path(cx), prd::MOST_BYTES)
}

/// The text that is believed.
fn believed_prd(cx: &Context<'_>) -> Result<Prd, EngineError> {
    let known = cx.state().passes().prd.text;
    let digest = known.ok_or_else(|| EngineError::Internal("no PRD was read".to_owned()))?;
    let bytes = cx.blobs().get(&digest)?;
    Prd::read(&bytes).map_err(|e| EngineError::Internal(format!("the kept PRD cannot be read: {e}")))
}

/// Reads the file; the error is for people.
fn usable_prd(cx: &Context<'_>) -> Result<(Prd, Vec<ItemSeen>), String> {
    let file = prd_path(cx);
    let bytes = prd_bytes(cx)?
        .ok_or_else(|| format!("{file} does not exist: write one, or name another file with `prd: {{ file: … }}`"))?;
    if cx.secrets().betrayed_by(&bytes, Scope::Known) {
        return Err("it holds a value that must stay secret: take it out".to_owned());
    }
    let prd = Prd::read(&bytes).map_err(|e| format!("{}:{}: {}", e.line, e.column, e.why))?;
    let items = passes::seen(&prd)?;
    Ok((prd, items))
}

pub(super) async fn read_prd(cx: &mut Context<'_>, when: ReadWhen) -> Result<(), EngineError> {
    let mut read = match when {
        ReadWhen::Start | ReadWhen::Between | ReadWhen::Restored => read_from_people(cx, when)?,
        ReadWhen::AfterWork => read_after_work(cx)?,
    };
    if when == ReadWhen::Start {
        read.archived = archive::keep_last(cx, &read)?;
        read.notes = beside::other_branch(cx, &read).into_iter().collect();
    }
    // What is not there cannot be sealed: an agent would begin it.
    if when == ReadWhen::Between {
        archive::begin(cx)?;
        ledger::begin(cx)?;
    }
    let place = place(cx).filter(|_| when == ReadWhen::Between);
    cx.record(PrdRead { place, ..read }).await
}

/// Which folders the file lies in, by what they are. `None`: it is a link, or has another name besides.
fn place(cx: &Context<'_>) -> Option<String> {
    let path = prd_path(cx);
    let stat = |path: &str| plain::stat(cx.workspace(), path).ok().flatten();
    if stat(&path).is_some_and(|file| !plain::is_file(&file) || file.st_nlink != 1) {
        return None;
    }
    let folders = path.match_indices('/').map(|(end, _)| {
        let folder = stat(&path[..end])?;
        Some(format!("{}:{}", folder.st_dev, folder.st_ino))
    });
    folders.collect::<Option<Vec<_>>>().map(|folders| folders.join("/"))
}

fn read_from_people(cx: &Context<'_>, when: ReadWhen) -> Result<PrdRead, EngineError> {
    match usable_prd(cx) {
        Ok((prd, items)) => as_read(cx, when, &prd, items),
        Err(problem) => Ok(PrdRead { problem: Some(problem), ..unchanged(when) }),
    }
}

fn as_read(cx: &Context<'_>, when: ReadWhen, prd: &Prd, items: Vec<ItemSeen>) -> Result<PrdRead, EngineError> {
    let known = &cx.state().passes().prd;
    let sha256 = cx.blobs().put(prd.text().as_bytes())?;
    let is_new = known.items != items || known.text.is_none();
    Ok(PrdRead {
        sha256: Some(sha256),
        items: is_new.then_some(items),
        name: prd.name().filter(|_| is_new).map(str::to_owned),
        branch: prd.branch().filter(|_| is_new).map(str::to_owned),
        ..unchanged(when)
    })
}

/// After an agent worked. Where the file is sealed only people can have changed it: what they say holds, verdicts too.
/// Where it is not, nothing of it is believed.
fn read_after_work(cx: &Context<'_>) -> Result<PrdRead, EngineError> {
    let when = ReadWhen::AfterWork;
    let known = &cx.state().passes().prd;
    let now = prd_bytes(cx);
    if matches!(&now, Ok(Some(bytes)) if Some(Digest::of(bytes)) == known.text) {
        return Ok(unchanged(when));
    }
    let usable = usable_prd(cx);
    let sealed = cx.sandbox().seals() && known.place.is_some() && known.place == place(cx);
    if sealed {
        return match usable {
            Ok((prd, items)) => Ok(PrdRead { by_hand: true, ..as_read(cx, when, &prd, items)? }),
            Err(problem) => Ok(PrdRead { problem: Some(problem), ..unchanged(when) }),
        };
    }
    let theirs = Some(keep(cx, &now.ok().flatten().unwrap_or_default())?);
    let believed = believed_prd(cx)?;
    let touched =
        usable.as_ref().map_or_else(|_| vec!["the file itself".to_owned()], |(prd, _)| touched(&believed, prd));
    let items = passes::seen(&believed).map_err(EngineError::Internal)?;
    let touched = if touched.is_empty() { vec!["its words".to_owned()] } else { touched };
    Ok(PrdRead { theirs, touched, ..as_read(cx, when, &believed, items)? })
}

/// Keeps what was found, without what must stay secret.
fn keep(cx: &Context<'_>, bytes: &[u8]) -> Result<Digest, EngineError> {
    Ok(cx.blobs().put(&cx.secrets().redact_bytes(bytes))?)
}

pub(super) async fn restore_prd(cx: &mut Context<'_>) -> Result<(), EngineError> {
    let believed = believed_prd(cx)?;
    if let Some(theirs) = cx.state().passes().prd.theirs {
        let theirs = cx.blobs().get(&theirs)?;
        ledger::replace(cx, THEIRS, &String::from_utf8_lossy(&theirs))?;
    }
    let path = prd_path(cx);
    document::replace(cx.workspace(), &path, believed.text().as_bytes(), &protected())
        .map_err(|why| EngineError::usage(format!("{path} cannot be restored: {why}"), "fix it, then resume"))?;
    cx.record(unchanged(ReadWhen::Restored)).await
}

/// Writes what the judged pass of this iteration means for its item.
pub(super) async fn settle_item(cx: &mut Context<'_>) -> Result<(), EngineError> {
    let state = cx.state();
    let missing = || EngineError::Internal("no judged pass is to be settled".to_owned());
    let iteration = state.current.as_ref().ok_or_else(missing)?;
    let judged = state.passes().judged_in(iteration.number()).ok_or_else(missing)?.clone();
    let item = judged.subject.clone().ok_or_else(missing)?;
    let mut settled = ItemSettled {
        iteration: judged.iteration,
        item: item.clone(),
        passes: false,
        sha256: None,
        items: None,
        problem: None,
    };
    if judged.verdict == PassVerdict::Verified {
        let note = iteration
            .author()
            .map(|report| if report.notes.trim().is_empty() { report.intent.clone() } else { report.notes.clone() });
        let note = cx.secrets().redact(&cut(note.unwrap_or_default().trim(), MAX_NOTE)).into_owned();
        match flip(cx, &item, &note)? {
            Ok((sha256, items)) => {
                settled.passes = true;
                settled.sha256 = Some(sha256);
                let expected = passes::flipped(&cx.state().passes().prd.items, &item);
                settled.items = Some(items).filter(|items| *items != expected);
            }
            Err(problem) => settled.problem = Some(problem),
        }
    }
    crate::journal::failpoint("item");
    ledger::write(cx, &judged, &settled)?;
    if settled.passes {
        guards::trust(cx)?;
    }
    cx.record(settled).await
}

/// Says in the file that the item passes. The inner error is a reason for people; then nothing was written.
#[allow(clippy::type_complexity)]
fn flip(cx: &Context<'_>, id: &str, note: &str) -> Result<Result<(Digest, Vec<ItemSeen>), String>, EngineError> {
    let base = believed_prd(cx)?;
    let chosen_from = cx.state().passes().prd.chosen_from;
    let before = chosen_from.map(|digest| cx.blobs().get(&digest)).transpose()?;
    let before = before.and_then(|bytes| Prd::read(&bytes).ok());
    let asked = before.as_ref().and_then(|prd| prd.item(id));
    if asked.zip(base.item(id)).is_none_or(|(asked, now)| !now.asks_the_same(asked)) {
        return Ok(Err(format!("what {id} asks for was changed while it was worked on")));
    }
    let run = cx.state().run().as_str();
    let proof = format!(
        "nightloop {}, iteration {}: its checks pass and the critic agrees",
        &run[run.len().saturating_sub(8)..],
        cx.state().iteration_number()
    );
    let change = Change::passes(true).with_note(note).with_proof(proof);
    let theirs = match prd_bytes(cx) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(Err(format!("{} is gone", prd_path(cx)))),
        Err(why) => return Ok(Err(why)),
    };
    // It says so already: a person wrote it, or this engine before it died.
    let is_said = |prd: &Prd| {
        let (now, was) = (prd.item(id), base.item(id));
        now.zip(was).is_some_and(|(now, was)| now.passes && now.asks_the_same(was))
    };
    let said = Prd::read(&theirs).ok().filter(is_said).map(|prd| prd.text().to_owned());
    let merged = match said {
        Some(text) => Ok(prd::Merged { text, asks_differently: false }),
        None => prd::merge(&base, id, &change, &theirs),
    };
    let merged = match merged {
        Ok(merged) if merged.asks_differently => {
            return Ok(Err(format!("what {id} asks for was changed while it was worked on")));
        }
        Ok(merged) => merged.text,
        Err(why) => return Ok(Err(why.to_string())),
    };
    if cx.secrets().betrayed_by(merged.as_bytes(), Scope::Known) {
        return Ok(Err("the file holds a value that must stay secret: take it out".to_owned()));
    }
    if theirs != merged.as_bytes() {
        let path = prd_path(cx);
        let written = document::replace(cx.workspace(), &path, merged.as_bytes(), &protected());
        if let Err(why) = written {
            return Ok(Err(why));
        }
    }
    let sha256 = cx.blobs().put(merged.as_bytes())?;
    let items = match Prd::read(merged.as_bytes()).map_err(|e| e.to_string()).and_then(|prd| passes::seen(&prd)) {
        Ok(items) => items,
        Err(why) => return Ok(Err(why)),
    };
    // What somebody else flipped meanwhile is heard between the iterations, not here.
    let known = &cx.state().passes().prd;
    let items = items.into_iter().map(|item| {
        let passes = item.id == id || known.item(&item.id).is_some_and(|known| known.passes);
        ItemSeen { passes: item.passes && passes, ..item }
    });
    Ok(Ok((sha256, items.collect())))
}

/// What an author or a critic of a pass is told beside the capsule and the diff.
pub(super) fn pass_brief(cx: &Context<'_>, role: Role) -> Result<String, EngineError> {
    let state = cx.state();
    let Some(iteration) = &state.current else { return Ok(String::new()) };
    let chosen = state.passes().chosen_in(iteration.number());
    let subject = chosen.map(|chosen| chosen.item.as_str());
    let mut text = String::new();
    if let Some(chosen) = chosen {
        let prd = believed_prd(cx)?;
        if let Some(item) = prd.item(&chosen.item) {
            text.push_str("\nITEM\n");
            text.push_str(&brief::item(&prd, item, chosen.pass));
            text.push_str(&brief::own_check(state, &item.id));
            if role != Role::Critic {
                text.push_str(&brief::around(&prd, item, &prd_path(cx)));
                text.push_str(&brief::beside(cx)?);
            }
        }
    }
    let last = state.passes().of(subject).rfind(|judged| judged.iteration < iteration.number());
    if let (true, Some(last)) = (role != Role::Critic, last) {
        text.push_str("\nLAST_PASS\n");
        text.push_str(&ledger::last_pass(last));
        let earlier = state.done.iter().find(|done| done.number() == last.iteration);
        for (name, result) in earlier.iter().flat_map(|done| measure::failed_checks(state, done)) {
            text.push_str(&format!("\nOUTPUT OF {name}\n"));
            text.push_str(&excerpt::of_blob(cx.blobs(), result.map(|result| result.output), ledger::MAX_OUTPUT)?);
        }
    }
    if let (true, Some(hint)) = (role != Role::Critic, passes::hint(state, subject)) {
        text.push_str("\nHINT OF THE OPERATOR\n");
        text.push_str(hint);
        text.push('\n');
    }
    Ok(text)
}

fn unchanged(when: ReadWhen) -> PrdRead {
    PrdRead {
        when,
        sha256: None,
        items: None,
        name: None,
        branch: None,
        problem: None,
        touched: Vec::new(),
        notes: Vec::new(),
        archived: None,
        theirs: None,
        by_hand: false,
        place: None,
    }
}

/// Items of which something was said that is not for an agent to say: verdicts, what is asked for, which items there are.
fn touched(believed: &Prd, now: &Prd) -> Vec<String> {
    let changed = now.items().iter().filter(|item| match believed.item(&item.id) {
        Some(known) => known.passes != item.passes || !known.asks_the_same(item),
        None => true,
    });
    let gone = believed.items().iter().filter(|item| now.item(&item.id).is_none());
    changed.chain(gone).map(|item| item.id.clone()).collect()
}
