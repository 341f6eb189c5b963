//! Which files the evidence of a run consists of, and the tree of them.
//!
//! Not here: contents, drawing. Invariants: the list is that of the manifest, in the order an operator asks
//! for it: the run first, then its iterations, newest first.

use std::collections::BTreeMap;

use crate::evidence::render;
use crate::machine::document::check_output_path;
use crate::machine::document::{EVIDENCE_ROOT, iteration_dir, report_path};
use crate::machine::event::{Phase, Probe};
use crate::machine::iteration::Iteration;
use crate::machine::run::RunState;
use crate::model::learnings::SpecVersion;

/// One file of the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Relative to the workspace.
    pub path: String,
    pub iteration: Option<u32>,
}

impl File {
    /// The path within its group.
    pub fn name(&self) -> &str {
        let root = match self.iteration {
            Some(number) => iteration_dir(number),
            None => EVIDENCE_ROOT.to_owned(),
        };
        let rest = self.path.strip_prefix(&root).unwrap_or(&self.path);
        rest.trim_start_matches('/')
    }
}

/// What the list follows from; cheap to compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basis {
    iterations: usize,
    current: Option<(u32, [usize; 6])>,
    halted: bool,
    planned: bool,
}

impl Basis {
    pub fn of(state: &RunState) -> Self {
        let facts = |iteration: &Iteration| {
            [
                iteration.reports.len(),
                iteration.probes.len(),
                usize::from(iteration.artifacts.is_some()) + usize::from(iteration.certificate.is_some()),
                usize::from(iteration.glow.is_some()) + usize::from(iteration.entry.is_some()),
                iteration.review.len(),
                usize::from(iteration.gate.is_some()) + usize::from(iteration.partial.is_some()),
            ]
        };
        Self {
            iterations: state.done.len(),
            current: state.current.as_ref().map(|iteration| (iteration.number(), facts(iteration))),
            halted: state.halt.is_some(),
            planned: state.plan.is_some(),
        }
    }
}

/// All files that belong to this state of the run.
pub fn files(state: &RunState) -> Vec<File> {
    let file = |path: String, iteration| File { path, iteration };
    let mut files: Vec<File> = render::paths_of_run(state).into_iter().map(|path| file(path, None)).collect();
    files.push(file(format!("{EVIDENCE_ROOT}/manifest.json"), None));
    for iteration in state.iterations().rev() {
        files.extend(of_iteration(state, iteration));
    }
    files
}

fn of_iteration(state: &RunState, iteration: &Iteration) -> Vec<File> {
    let number = iteration.number();
    let dir = iteration_dir(number);
    let mut files = Vec::new();
    let mut add = |path: String| files.push(File { path, iteration: Some(number) });
    // The verdict first, then what it was made from.
    if iteration.certificate.is_some() {
        add(format!("{dir}/certificate.json"));
    }
    if !iteration.review.is_empty() {
        add(format!("{dir}/review.json"));
    }
    if iteration.gate.is_some() {
        add(format!("{dir}/gate.json"));
    }
    if iteration.glow.is_some() && state.spec() == SpecVersion::V2 {
        add(format!("{dir}/glow.json"));
    }
    add(format!("{dir}/cnf_capsule.json"));
    for call in iteration.reports.keys() {
        add(report_path(number, call));
    }
    if iteration.artifacts.is_some() {
        add(format!("{dir}/diff.patch"));
        add(format!("{dir}/artifacts.json"));
    }
    for (phase, probe) in iteration.probes.keys() {
        if let (Phase::Iteration, Probe::Criterion(id)) = (phase, probe) {
            add(check_output_path(number, id));
        }
    }
    if iteration.entry.is_some() {
        add(format!("{dir}/agents_md_entry.md"));
    }
    if let Some(partial) = &iteration.partial {
        if partial.diff.is_some() {
            add(format!("{dir}/partial.patch"));
        }
        add(format!("{dir}/partial_artifacts.json"));
    }
    for (name, _) in render::promoted(state, iteration) {
        add(format!("{EVIDENCE_ROOT}/{name}"));
    }
    files
}

/// A row of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// The run (`None`) or an iteration.
    Group { iteration: Option<u32>, files: usize, open: bool },
    /// The number of a file.
    File(usize),
}

/// The files with what is folded away.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    files: Vec<File>,
    rows: Vec<Row>,
    /// What the operator opened or closed.
    chosen: BTreeMap<Option<u32>, bool>,
}

impl Tree {
    pub fn files(&self) -> &[File] {
        &self.files
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub fn file_at(&self, row: usize) -> Option<&File> {
        match self.rows.get(row)? {
            Row::File(index) => self.files.get(*index),
            Row::Group { .. } => None,
        }
    }

    pub fn row_of(&self, path: &str) -> Option<usize> {
        self.rows.iter().position(|row| match row {
            Row::File(index) => self.files.get(*index).is_some_and(|file| file.path == path),
            Row::Group { .. } => false,
        })
    }

    pub fn set(&mut self, files: Vec<File>) {
        self.files = files;
        self.lay_out();
    }

    pub fn toggle(&mut self, group: Option<u32>) {
        let open = self.is_open(group);
        self.chosen.insert(group, !open);
        self.lay_out();
    }

    /// The run and the newest iteration are open unless somebody closed them.
    fn is_open(&self, group: Option<u32>) -> bool {
        let newest = self.files.iter().find_map(|file| file.iteration);
        self.chosen.get(&group).copied().unwrap_or(group.is_none() || group == newest)
    }

    fn lay_out(&mut self) {
        let mut rows = Vec::new();
        let mut at = 0;
        while let Some(first) = self.files.get(at) {
            let group = first.iteration;
            let same = self.files.iter().skip(at).take_while(|file| file.iteration == group).count();
            let open = self.is_open(group);
            rows.push(Row::Group { iteration: group, files: same, open });
            if open {
                rows.extend((at..at + same).map(Row::File));
            }
            at += same;
        }
        self.rows = rows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::sample::Sample;

    /// Whatever the moment, the list is what the engine renders.
    #[test]
    fn the_list_is_that_of_the_engine() {
        let sample = Sample::demo();
        for count in (1..=sample.events.len()).step_by(7).chain([sample.events.len()]) {
            let state = sample.after(count);
            let mut mine: Vec<String> = files(&state).into_iter().map(|file| file.path).collect();
            let everything = render::everything(&state, &sample.blobs).unwrap();
            let mut theirs: Vec<String> = everything.into_iter().map(|file| file.path).collect();
            mine.sort();
            theirs.sort();
            assert_eq!(mine, theirs, "after {count} events");
        }
    }

    #[test]
    fn a_new_file_changes_the_basis() {
        let sample = Sample::demo();
        let mut last: Option<(Basis, Vec<File>)> = None;
        for count in 1..=sample.events.len() {
            let state = sample.after(count);
            let now = (Basis::of(&state), files(&state));
            if let Some(last) = &last {
                assert!(last.0 != now.0 || last.1 == now.1, "after {count} events");
            }
            last = Some(now);
        }
    }

    #[test]
    fn groups_open_and_close() {
        let mut tree = Tree::default();
        tree.set(files(&Sample::demo().ended()));
        let groups = tree.rows().iter().filter(|row| matches!(row, Row::Group { .. })).count();
        assert_eq!(groups, 5);
        let before = tree.rows().len();
        tree.toggle(Some(0));
        assert!(tree.rows().len() > before);
        tree.toggle(Some(0));
        assert_eq!(tree.rows().len(), before);
        assert!(tree.row_of("evidence/loop/iter_3/certificate.json").is_some());
        assert!(tree.row_of("evidence/loop/iter_0/certificate.json").is_none());
    }
}
