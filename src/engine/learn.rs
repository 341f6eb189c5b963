//! Writes AGENTS.md: our block, and nothing else in the file.

use std::path::Path;
use std::sync::atomic::Ordering;

use crate::journal;
use crate::machine::compose;
use crate::machine::event::{BlocksDistilled, Event, GlowScored, LearningsRecorded, MemoryFound, SetAside};
use crate::machine::run::{Learnt, RunState};
use crate::machine::step;
use crate::model::decision::{Answer, Request};
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::learnings::{self, Link};
use crate::model::skill;
use crate::workspace::document;
use crate::workspace::plain::{self, Bits, Durability, FileKind};

use super::context::Context;
use super::error::EngineError;
use super::evidence_files::EvidenceFiles;

/// More names in a folder of skills are none of it.
const MOST_NAMES: usize = 1_000;

pub(super) async fn write(cx: &mut Context<'_>, evidence: &mut EvidenceFiles) -> Result<(), EngineError> {
    let state = cx.state();
    let accumulated = step::accumulate(state)
        .ok_or_else(|| EngineError::Internal("there is no certificate to learn from".to_owned()))?;
    let Learnt { document, compacted_before, shrunk } = state.learnings_with(&accumulated.entry);
    let iteration = state.iteration_number();
    let before = state.learnings_sha256;

    let looked = look(cx)?;
    put_block(cx, &document)?;
    let frame = learnings::frame(&agents_md(cx)?, cx.state().run());
    let frame = keep(cx, &frame)?.filter(|frame| cx.state().frame.is_some_and(|known| known != *frame));
    journal::failpoint("learnings");
    let scored = cx.state().current.as_ref().is_some_and(|iteration| iteration.glow.is_some());
    let mut events = Vec::new();
    if !scored {
        events.push(Event::from(GlowScored { iteration, glow: accumulated.glow }));
    }
    events.push(
        LearningsRecorded {
            iteration,
            entry: Box::new(accumulated.entry),
            review: accumulated.review,
            before,
            after: Digest::of(document.as_bytes()),
            compacted_before,
            compaction: shrunk.compaction,
            shortened: shrunk.shortened,
            frame,
            aside: looked.aside,
        }
        .into(),
    );
    cx.recorder.append(events).await?;
    evidence.write_iteration(cx.workspace(), cx.state(), cx.blobs())
}

/// Replaces our block in the file as it is now; foreign bytes stay as they are.
fn put_block(cx: &Context<'_>, text: &str) -> Result<(), EngineError> {
    let file = agents_md(cx)?;
    let spliced = learnings::splice(&file, cx.state().run(), text).map_err(|e| EngineError::Resumable {
        message: format!("AGENTS.md cannot take this iteration's entry: {e}"),
        hint: "restore the markers of the generated block, then run `nightloop resume`".to_owned(),
    })?;
    if spliced == file {
        return Ok(());
    }
    document::replace(cx.workspace(), learnings::FILE, &spliced, &[]).map_err(unusable)
}

/// AGENTS.md as it is; nothing where there is none. A link to another file of the workspace is followed, as many
/// projects have one; anything that leads out of it or is no file is refused.
pub(super) fn agents_md(cx: &Context<'_>) -> Result<Vec<u8>, EngineError> {
    match document::read(cx.workspace(), learnings::FILE, learnings::MAX_FILE) {
        Ok(file) => Ok(file.unwrap_or_default()),
        Err(why) if document::is_larger(cx.workspace(), learnings::FILE, learnings::MAX_FILE) => {
            Err(EngineError::Resumable {
                message: format!("AGENTS.md cannot be used: {why}"),
                hint: "move what agents need not know out of it until it has at most 16 MiB, and leave the generated \
                       blocks as they are; then run `nightloop resume`"
                    .to_owned(),
            })
        }
        Err(why) => Err(unusable(why)),
    }
}

/// Records what the run can remember, before any agent works.
pub(super) async fn find(cx: &mut Context<'_>) -> Result<(), EngineError> {
    let state = cx.state();
    let file = agents_md(cx)?;
    if state.began_before_replays() || state.halt.is_some() {
        return Ok(());
    }
    if state.found.is_none() {
        let smaller = distilled(state, &file);
        let text = smaller.as_ref().map_or(&file, |smaller| &smaller.file);
        let distilled = match &smaller {
            Some(smaller) => Some(BlocksDistilled {
                before: Digest::of(&file),
                after: Digest::of(&smaller.file),
                found: keep(cx, &file)?,
                log: smaller.log.clone(),
            }),
            None => None,
        };
        let swarm = compose::is_told_skills(state, Role::Scout);
        let (skills, skills_left_out) = if swarm { skills(cx)? } else { Default::default() };
        let found = MemoryFound {
            agents_md: keep(cx, &learnings::frame(text, state.run()))?,
            blocks: learnings::blocks(text, state.run()),
            skills,
            shipped_skills: if swarm { shipped_skills(cx)? } else { Vec::new() },
            skills_left_out,
            link: link(cx)?,
            distilled,
        };
        cx.record(found).await?;
        journal::failpoint("distilled");
    }
    put_distilled(cx, &file)
}

fn distilled(state: &RunState, file: &[u8]) -> Option<learnings::Distilled> {
    learnings::distil(file, state.run(), learnings::EARLIER_FILE_BYTES)
}

/// Makes earlier blocks as small as is recorded, if that was not done yet.
fn put_distilled(cx: &Context<'_>, file: &[u8]) -> Result<(), EngineError> {
    let recorded = cx.state().found.as_ref().and_then(|found| found.distilled.as_ref());
    let Some(recorded) = recorded.filter(|recorded| recorded.before == Digest::of(file)) else { return Ok(()) };
    match distilled(cx.state(), file) {
        Some(smaller) if Digest::of(&smaller.file) == recorded.after => {
            document::replace(cx.workspace(), learnings::FILE, &smaller.file, &[]).map_err(unusable)
        }
        Some(_) | None => Err(EngineError::Internal("AGENTS.md is not made smaller as it was recorded".to_owned())),
    }
}

/// What AGENTS.md says where it is a link.
fn link(cx: &Context<'_>) -> Result<Option<String>, EngineError> {
    let target = plain::link(cx.workspace(), learnings::FILE).map_err(|fault| unusable(fault.to_string()))?;
    Ok(target.map(|target| target.to_string_lossy().into_owned()))
}

/// Before something runs that an agent has a hand in: AGENTS.md must be there and be one file with one name, or there
/// is nothing that a seal could hold. Where it is a link or has a second name, no seal is believed until the next look.
pub(super) fn hold(cx: &Context<'_>) -> Result<(), EngineError> {
    if !cx.sandbox().seals() || cx.state().found.is_none() {
        return Ok(());
    }
    let fault = |fault: plain::Fault| unusable(fault.to_string());
    match plain::stat(cx.workspace(), learnings::FILE).map_err(fault)? {
        None => plain::put(cx.workspace(), learnings::FILE, b"", Bits::Kept, Durability::Replaceable).map_err(fault)?,
        Some(stat) if plain::is_file(&stat) && stat.st_nlink == 1 => {}
        Some(_) => cx.learnings_exposed.store(true, Ordering::Relaxed),
    }
    Ok(())
}

/// The workspace's own skills, kept as blobs, within their bounds; and the names of those that are left out.
fn skills(cx: &Context<'_>) -> Result<(Vec<Link>, Vec<String>), EngineError> {
    let names = plain::list(cx.workspace(), skill::FOLDER, MOST_NAMES).unwrap_or_default();
    let mut files: Vec<String> = names
        .into_iter()
        .filter(|(name, kind)| name.ends_with(".md") && *kind == FileKind::File)
        .map(|(n, _)| n)
        .collect();
    files.sort();
    let (mut told, mut left_out, mut room) = (Vec::new(), Vec::new(), skill::MOST_OWN_TOTAL);
    for name in files {
        let path = format!("{}/{name}", skill::FOLDER);
        let read = document::read(cx.workspace(), &path, skill::MOST_OWN_BYTES.min(room));
        let text = read.ok().flatten().filter(|_| told.len() < skill::MOST_OWN);
        match text.as_ref().map(|text| keep(cx, text)).transpose()?.flatten() {
            Some(sha256) => {
                room -= text.map_or(0, |text| text.len());
                told.push(Link { path, sha256 });
            }
            None => left_out.push(path),
        }
    }
    Ok((told, left_out))
}

/// The shipped skills, kept as blobs: a later version may say them otherwise.
fn shipped_skills(cx: &Context<'_>) -> Result<Vec<Link>, EngineError> {
    skill::SHIPPED
        .iter()
        .map(|skill| {
            cx.blobs().put(skill.text.as_bytes())?;
            Ok(skill.link())
        })
        .collect()
}

/// Keeps a text as a blob. `None`: it holds something that must not be kept.
fn keep(cx: &Context<'_>, bytes: &[u8]) -> Result<Option<Digest>, EngineError> {
    let text = String::from_utf8_lossy(bytes);
    if cx.secrets().redact_known(&text) != text {
        return Ok(None);
    }
    Ok(Some(cx.blobs().put(bytes)?))
}

/// What a look at AGENTS.md came to.
pub(super) struct Looked {
    /// Are the generated blocks, ours and those of earlier runs, what they were?
    pub intact: bool,
    /// What people made of the text around them.
    pub frame: Option<Digest>,
    /// What was put back.
    pub aside: Option<SetAside>,
}

/// Compares AGENTS.md with what it was, after somebody worked. Where it was sealed only people can have changed the text
/// around the blocks, and their words hold; where it was not, the text is put back and its owner is asked. A changed
/// block is put back in any case.
pub(super) fn look(cx: &Context<'_>) -> Result<Looked, EngineError> {
    let exposed = cx.learnings_exposed.swap(false, Ordering::Relaxed);
    let state = cx.state();
    let untouched = |intact| Looked { intact, frame: None, aside: None };
    let (Some(known), Some(found)) = (state.frame, &state.found) else { return Ok(untouched(is_intact(cx))) };
    let Ok(file) = agents_md(cx) else { return Ok(untouched(false)) };
    let frame = cx.blobs().get(&known)?;
    let before = match state.recorded().next() {
        Some(_) => learnings::splice(&frame, state.run(), &state.learnings_document()),
        None => Ok(frame),
    };
    let before = before.map_err(|e| EngineError::Internal(format!("AGENTS.md as it was: {e}")))?;
    let sealed = cx.sandbox().seals() && found.link.is_none() && !exposed;
    let moved = !sealed && link(cx)? != found.link;
    if file == before {
        if moved {
            put_back(cx, found, &before, moved)?;
        }
        return Ok(untouched(true));
    }
    let intact = is_intact(cx) && learnings::blocks(&file, state.run()) == found.blocks;
    if intact && (sealed || is_approved(state, &file)) {
        let frame = keep(cx, &learnings::frame(&file, state.run()))?;
        return Ok(Looked { intact, frame, aside: None });
    }
    let aside = match (keep(cx, &file)?, keep(cx, &before)?) {
        (Some(found), Some(put_back)) => Some(SetAside { found, put_back }),
        _ => None,
    };
    put_back(cx, found, &before, moved)?;
    Ok(Looked { intact, frame: None, aside })
}

/// Puts AGENTS.md back. Where another thing has its name (`moved`) the name is taken from it first: writing through a
/// link that an agent made would change a file of its choice.
fn put_back(cx: &Context<'_>, found: &MemoryFound, text: &[u8], moved: bool) -> Result<(), EngineError> {
    let fault = |fault: plain::Fault| unusable(fault.to_string());
    let workspace = cx.workspace();
    match &found.link {
        None if moved => {
            return plain::put(workspace, learnings::FILE, text, Bits::Kept, Durability::Synced).map_err(fault);
        }
        Some(target) if moved => {
            plain::remove(workspace, learnings::FILE).map_err(fault)?;
            plain::put_link(workspace, learnings::FILE, Path::new(target)).map_err(fault)?;
        }
        None | Some(_) => {}
    }
    document::replace(workspace, learnings::FILE, text, &[]).map_err(unusable)
}

/// Did the owner approve this very text?
fn is_approved(state: &RunState, file: &[u8]) -> bool {
    let sha256 = Digest::of(file);
    state.operator.decisions.iter().any(|decision| match (&decision.request, decision.closed_with()) {
        (Request::Refinement { path, .. }, Some(Answer::Approve { result })) => {
            path == learnings::FILE && *result == sha256
        }
        _ => false,
    })
}

/// Our block in AGENTS.md must be what we wrote last, or not there before we wrote any.
fn is_intact(cx: &Context<'_>) -> bool {
    let state = cx.state();
    let Ok(file) = agents_md(cx) else { return false };
    let expected = state.recorded().next().is_some().then(|| state.learnings_document());
    match (learnings::extract(&file, state.run()), expected) {
        (Ok(None), None) => true,
        (Ok(Some(block)), Some(expected)) => block == expected.as_bytes(),
        _ => false,
    }
}

/// AGENTS.md as text; bytes that are no UTF-8 are shown as such.
pub(super) fn agents_md_text(cx: &Context<'_>) -> Result<String, EngineError> {
    let bytes = agents_md(cx)?;
    Ok(cx.secrets().redact_known(&String::from_utf8_lossy(&bytes)).into_owned())
}

fn unusable(why: String) -> EngineError {
    EngineError::Resumable {
        message: format!("AGENTS.md cannot be used: {why}"),
        hint: "put a regular file there, then run `nightloop resume`".to_owned(),
    }
}
