//! The tools that find files by name and lines by content.
//!
//! Both walk the workspace the same way (`walk`) and open files through `contain`. Invariants:
//! results are sorted, so the same tree gives the same answer; every count has a bound, and
//! reaching one is said in the answer.

use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use tokio_util::sync::CancellationToken;

use super::call::{ToolContext, ToolOutcome};
use super::inputs::{GlobSearch, GrepSearch, bounded};
use crate::workspace::contain::Root;
use crate::workspace::plain::FileKind;
use crate::workspace::walk;

/// What is shown of one matching line.
const LINE_BYTES: usize = 500;
/// The longest line that is searched.
const HEAP_BYTES: usize = 16 * 1024 * 1024;
const REGEX_BYTES: usize = 10 * 1024 * 1024;
const MAX_CONTEXT: u64 = 20;

pub(super) fn glob(ctx: &ToolContext, input: &GlobSearch) -> Result<ToolOutcome, String> {
    let root = Root::open(&ctx.workspace)?;
    let start = root.relative(input.path.as_deref().unwrap_or("."))?;
    if !root.is_folder(&start)? {
        return Err(format!("{} is a file, not a folder", bounded(&start.to_string_lossy())));
    }
    let matcher = glob_matcher(&input.pattern)?;
    let Some(list) = list(ctx, &root, &start) else {
        return Ok(ToolOutcome::cancelled());
    };
    let from_start = |path: &&PathBuf| path.strip_prefix(&start).is_ok_and(|path| matcher.matches(path));
    let found: Vec<&PathBuf> = list.files.iter().filter(from_start).collect();
    let mut text = String::new();
    for path in found.iter().take(ctx.limits.search_matches) {
        text.push_str(&bounded(&path.to_string_lossy()));
        text.push('\n');
    }
    if found.is_empty() {
        text.push_str("No files match.\n");
    }
    if found.len() > ctx.limits.search_matches {
        text.push_str(&format!("[{} of {} files shown; narrow the pattern]\n", ctx.limits.search_matches, found.len()));
    }
    list.notes(ctx, &mut text);
    Ok(ToolOutcome::long_text(text, &ctx.limits))
}

pub(super) fn grep(ctx: &ToolContext, input: &GrepSearch) -> Result<ToolOutcome, String> {
    let root = Root::open(&ctx.workspace)?;
    let start = root.relative(input.path.as_deref().unwrap_or("."))?;
    let filter = input.glob.as_deref().map(glob_matcher).transpose()?;
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(input.case_insensitive.unwrap_or(false))
        .line_terminator(Some(b'\n'))
        .size_limit(REGEX_BYTES)
        .dfa_size_limit(REGEX_BYTES)
        .build(&input.pattern)
        .map_err(|error| format!("pattern is not a usable regular expression: {error}"))?;
    let list = if root.is_folder(&start)? {
        let Some(list) = list(ctx, &root, &start) else {
            return Ok(ToolOutcome::cancelled());
        };
        list
    } else {
        // A file named outright is searched even if .gitignore excludes it.
        List { files: vec![start.clone()], ..List::default() }
    };
    let around = usize::try_from(input.context.unwrap_or(0).min(MAX_CONTEXT)).unwrap_or(0);
    let mut hunt = Hunt {
        searcher: searcher(around),
        matcher,
        matches: Matches { left: ctx.limits.search_matches, around, ..Matches::default() },
        unread: 0,
    };
    for path in &list.files {
        let name = path.strip_prefix(&start).ok().filter(|rest| !rest.as_os_str().is_empty()).unwrap_or(path);
        if filter.as_ref().is_some_and(|filter| !filter.matches(name)) {
            continue;
        }
        if ctx.cancel.is_cancelled() {
            return Ok(ToolOutcome::cancelled());
        }
        if hunt.matches.left == 0 {
            break;
        }
        hunt.file(ctx, &root, path);
    }
    let mut text = hunt.matches.text;
    if text.is_empty() {
        text.push_str("No matches.\n");
    }
    if hunt.matches.left == 0 {
        text.push_str(&format!("[stopped after {} matches; narrow the search]\n", ctx.limits.search_matches));
    }
    if hunt.unread > 0 {
        text.push_str(&format!("[{} files could not be searched]\n", hunt.unread));
    }
    list.notes(ctx, &mut text);
    Ok(ToolOutcome::long_text(text, &ctx.limits))
}

/// A glob, and whether it is meant for the file name alone.
struct PathGlob {
    glob: GlobMatcher,
    name_only: bool,
}

impl PathGlob {
    fn matches(&self, path: &Path) -> bool {
        if self.name_only {
            path.file_name().is_some_and(|name| self.glob.is_match(name))
        } else {
            self.glob.is_match(path)
        }
    }
}

fn glob_matcher(pattern: &str) -> Result<PathGlob, String> {
    let trimmed = pattern.trim_start_matches("./");
    let glob = GlobBuilder::new(trimmed)
        .literal_separator(true)
        .build()
        .map_err(|error| format!("not a usable glob: {error}"))?;
    Ok(PathGlob { glob: glob.compile_matcher(), name_only: !trimmed.contains('/') })
}

/// The files under a folder, sorted, within the limits.
#[derive(Default)]
struct List {
    files: Vec<PathBuf>,
    full: bool,
}

impl List {
    fn notes(&self, ctx: &ToolContext, text: &mut String) {
        if self.full {
            text.push_str(&format!("[only the first {} files were looked at]\n", ctx.limits.search_files));
        }
    }
}

/// `None` if cancelled. The walk begins at the workspace, so that its `.gitignore` counts in
/// subfolders too; only the way to `start` and what is under it is visited.
fn list(ctx: &ToolContext, root: &Root, start: &Path) -> Option<List> {
    let mut list = List::default();
    let range = walk::Range {
        enter: &|path| path.starts_with(start) || start.starts_with(path),
        depth: Some(ctx.limits.search_depth.saturating_add(start.components().count())),
        stop: &|| ctx.cancel.is_cancelled(),
        ignored: false,
    };
    let finished = walk::walk(root.path(), &range, &mut |seen| {
        let walk::Seen::Entry(entry) = seen else { return ControlFlow::Continue(()) };
        if entry.kind != FileKind::File || !entry.path.starts_with(start) {
            return ControlFlow::Continue(());
        }
        if list.files.len() >= ctx.limits.search_files {
            list.full = true;
            return ControlFlow::Break(());
        }
        list.files.push(entry.path.to_owned());
        ControlFlow::Continue(())
    });
    list.files.sort();
    finished.unwrap_or(true).then_some(list)
}

fn searcher(around: usize) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .before_context(around)
        .after_context(around)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(HEAP_BYTES))
        .build()
}

/// One search over many files.
struct Hunt {
    searcher: Searcher,
    matcher: RegexMatcher,
    matches: Matches,
    unread: usize,
}

impl Hunt {
    fn file(&mut self, ctx: &ToolContext, root: &Root, path: &Path) {
        let Ok(file) = root.read(path) else {
            self.unread += 1;
            return;
        };
        self.matches.path = bounded(&path.to_string_lossy());
        let reader = Stoppable { file, cancel: &ctx.cancel };
        if self.searcher.search_reader(&self.matcher, reader, &mut self.matches).is_err() {
            self.unread += 1;
        }
    }
}

/// A file that ends when the call is cancelled.
struct Stoppable<'a> {
    file: File,
    cancel: &'a CancellationToken,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() { Ok(0) } else { self.file.read(buffer) }
    }
}

/// What was found so far, as text.
#[derive(Default)]
struct Matches {
    path: String,
    text: String,
    left: usize,
    around: usize,
}

impl Matches {
    fn line(&mut self, mark: char, number: Option<u64>, bytes: &[u8]) {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let shown = String::from_utf8_lossy(&line[..line.len().min(LINE_BYTES)]);
        let cut = if line.len() > LINE_BYTES { "[cut]" } else { "" };
        let number = number.unwrap_or(0);
        self.text.push_str(&format!("{}{mark}{number}{mark}{shown}{cut}\n", self.path));
    }
}

impl Sink for Matches {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.line(':', found.line_number(), found.bytes());
        self.left = self.left.saturating_sub(1);
        Ok(self.left > 0)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.line('-', context.line_number(), context.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.around > 0 {
            self.text.push_str("--\n");
        }
        Ok(true)
    }
}
