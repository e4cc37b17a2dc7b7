//! Names of rewrites and instructions, by which two runs of a pipeline recognize the same ones.
//!
//! Each run draws its own ids for created entities, and numbers its rewrites. Omitting one rewrite
//! shifts both. The name of a rewrite is its pass, its rule and its *subject*. The subject is the
//! replaced value; without a replacement, the instruction moved last; otherwise the entity of the
//! first action. The name of a created entity is the name of its rewrite and the entity's place
//! among the creations of this rewrite. Entities of the base name themselves. So two runs may
//! disagree about all other rewrites and still agree about these names.

use ir::edit::{Action, ActionKind, ActionLog};
use ir::{Block, Inst, Value};
use std::collections::BTreeMap;

/// An entity as names mention it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum RewriteSubject {
    Inst(Inst),
    Value(Value),
    Block(Block),
    /// Created by a rewrite: its number in [`NameTable::created`].
    Created(u32),
}

/// The name of a rewrite.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct RewriteName {
    pass: &'static str,
    rule: &'static str,
    subject: SubjectName,
}

/// The subject of a rewrite, in terms that all runs share, and a detail that tells two rewrites of
/// one subject apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct SubjectName(RewriteSubject, u32);

/// The names of all created entities of all runs, each with a number.
#[derive(Clone, Debug, Default)]
pub(super) struct NameTable {
    created: BTreeMap<(RewriteName, u32), u32>,
}

/// The rewrites and instructions of one run, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct RunNames {
    /// The numbers of the rewrites of this name, ascending.
    rewrites: BTreeMap<RewriteName, Vec<u64>>,
    names: BTreeMap<u64, RewriteName>,
    created: BTreeMap<RewriteSubject, u32>,
    insts: BTreeMap<u32, Inst>,
}

impl RunNames {
    /// Reads the log of a run. Cost: near linear in the log.
    pub(super) fn new(log: &ActionLog, table: &mut NameTable) -> RunNames {
        let mut names = RunNames::default();
        let number = |action: &Action| action.origin().rewrite();
        for rewrite in log.actions().chunk_by(|a, b| number(a) == number(b)) {
            names.take(rewrite, table);
        }
        names
    }

    fn take(&mut self, rewrite: &[Action], table: &mut NameTable) {
        let Some(first) = rewrite.first() else { return };
        let replaced = rewrite.iter().find_map(|action| match action.kind() {
            ActionKind::ReplaceAll { before, .. } => Some((RewriteSubject::Value(*before), 0)),
            _ => None,
        });
        // Constants move up with the first operation that reads them, whichever that is
        // (`a_constant_that_another_operation_takes_along_is_no_part_of_a_name`).
        let moved = rewrite.iter().rev().find_map(|action| match action.kind() {
            ActionKind::Hoist { inst, .. } | ActionKind::Sink { inst, .. } => {
                Some((RewriteSubject::Inst(*inst), 0))
            }
            _ => None,
        });
        let (subject, detail) = replaced.or(moved).unwrap_or_else(|| subject(first.kind()));
        let subject = match self.created.get(&subject) {
            Some(created) => RewriteSubject::Created(*created),
            None => subject,
        };
        let origin = first.origin();
        let (pass, rule) = (origin.pass(), origin.rule());
        let name = RewriteName { pass, rule, subject: SubjectName(subject, detail) };
        self.rewrites.entry(name).or_default().push(origin.rewrite());
        self.names.insert(origin.rewrite(), name);
        let entities = rewrite.iter().flat_map(|action| created(action.kind()));
        for (place, entity) in (0..).zip(entities) {
            let next = table.created.len() as u32;
            let number = *table.created.entry((name, place)).or_insert(next);
            self.created.insert(entity, number);
            if let RewriteSubject::Inst(inst) = entity {
                self.insts.insert(number, inst);
            }
        }
    }

    /// The name of the rewrite with this number.
    pub(super) fn name(&self, rewrite: u64) -> Option<RewriteName> {
        self.names.get(&rewrite).copied()
    }

    /// The number of the last rewrite.
    pub(super) fn last(&self) -> Option<u64> {
        self.names.keys().next_back().copied()
    }

    /// The first rewrite of this name whose number is at least `from`.
    pub(super) fn rewrite(&self, name: &RewriteName, from: u64) -> Option<u64> {
        self.rewrites.get(name)?.iter().copied().find(|number| *number >= from)
    }

    /// The instruction of this run that corresponds to `inst` of another run. A created instruction
    /// is found by its name; an instruction of the base is the same in all runs.
    pub(super) fn same_inst(&self, other: &RunNames, inst: Inst) -> Option<Inst> {
        match other.created.get(&RewriteSubject::Inst(inst)) {
            Some(name) => self.insts.get(name).copied(),
            None => Some(inst),
        }
    }
}

/// The entity that an action is about.
fn subject(kind: &ActionKind) -> (RewriteSubject, u32) {
    match kind {
        ActionKind::Add { before, .. } => (RewriteSubject::Inst(*before), 0),
        ActionKind::Delete { inst, .. }
        | ActionKind::Hoist { inst, .. }
        | ActionKind::Sink { inst, .. }
        | ActionKind::ResolveCall { inst, .. } => (RewriteSubject::Inst(*inst), 0),
        ActionKind::ReplaceOperand { inst, index, .. } => (RewriteSubject::Inst(*inst), *index),
        ActionKind::FoldBranch { inst, keep } => (RewriteSubject::Inst(*inst), *keep),
        ActionKind::ReplaceAll { before, .. } => (RewriteSubject::Value(*before), 0),
        ActionKind::Inline { call, .. } => (RewriteSubject::Inst(*call), 0),
        ActionKind::SplitEdge { edge, .. } => (RewriteSubject::Inst(edge.inst), edge.index),
        ActionKind::JoinEdges { edges, jump, .. } => edges
            .first()
            .map_or((RewriteSubject::Inst(*jump), 0), |e| (RewriteSubject::Inst(e.inst), e.index)),
        ActionKind::Redirect { edge, .. } => (RewriteSubject::Inst(edge.inst), edge.index),
        ActionKind::MergeBlocks { jump, .. } => (RewriteSubject::Inst(*jump), 0),
        ActionKind::RemoveUnreachable { blocks } => (
            blocks.first().map_or(RewriteSubject::Created(u32::MAX), |b| RewriteSubject::Block(*b)),
            0,
        ),
        ActionKind::AddBlockParam { block, .. } => (RewriteSubject::Block(*block), 0),
        ActionKind::RemoveBlockParam { param, .. } => (RewriteSubject::Value(*param), 0),
        ActionKind::RemoveDead { params, insts } => {
            let param = params.first().map(|(_, param)| RewriteSubject::Value(*param));
            let inst = insts.first().map(|inst| RewriteSubject::Inst(*inst));
            (param.or(inst).unwrap_or(RewriteSubject::Created(u32::MAX)), 0)
        }
    }
}

/// The entities that an action creates.
fn created(kind: &ActionKind) -> Vec<RewriteSubject> {
    match kind {
        ActionKind::Add { inst, data, .. } => {
            let results = data.results.iter().map(|value| RewriteSubject::Value(*value));
            std::iter::once(RewriteSubject::Inst(*inst)).chain(results).collect()
        }
        ActionKind::SplitEdge { block, jump, .. } => {
            vec![RewriteSubject::Block(*block), RewriteSubject::Inst(*jump)]
        }
        ActionKind::JoinEdges { block, params, jump, .. } => {
            let params = params.iter().map(|param| RewriteSubject::Value(*param));
            [RewriteSubject::Block(*block), RewriteSubject::Inst(*jump)]
                .into_iter()
                .chain(params)
                .collect()
        }
        ActionKind::AddBlockParam { param, .. } => vec![RewriteSubject::Value(*param)],
        ActionKind::Inline { body, .. } => {
            let insts = body.insts.iter().map(|(_, copy)| RewriteSubject::Inst(*copy));
            std::iter::once(RewriteSubject::Inst(body.jump)).chain(insts).collect()
        }
        _ => Vec::new(),
    }
}
