//! Finds the first action of a log that concerns a value, an instruction or a block.
//!
//! `osr` itself names the action to blame for each point without an entry. This module finds the
//! action for other subjects: entries that the checker drops, points that only one version has, and
//! values that an entry assigns.

use check::verdict::{Place, Verdict};
use ir::edit::{ActionKind, ActionLog};
use ir::{Block, Function, Inst, Point, Value};
use std::collections::BTreeMap;

/// The two versions of a function and the log that leads from `base` to `opt`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct History<'a> {
    pub(crate) base: &'a Function,
    pub(crate) opt: &'a Function,
    pub(crate) log: &'a ActionLog,
}

/// The first action that mentions each value and each instruction, by its number in the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mentions {
    values: BTreeMap<Value, usize>,
    insts: BTreeMap<Inst, usize>,
}

impl History<'_> {
    /// The first action that mentions each value and each instruction. Cost: near linear in the
    /// log.
    pub(crate) fn mentions(&self) -> Mentions {
        let mut mentions = Mentions::default();
        for (number, action) in self.log.actions().iter().enumerate() {
            for inst in insts_of(action.kind()) {
                mentions.insts.entry(inst).or_insert(number);
            }
            for value in values_of(action.kind()) {
                mentions.values.entry(value).or_insert(number);
            }
        }
        mentions
    }

    /// Like [`History::of_value`], but by look-up in `mentions`.
    pub(crate) fn of_value_in(&self, mentions: &Mentions, value: Value) -> Option<usize> {
        let defining =
            [self.base, self.opt].into_iter().find(|f| f.has_value(value))?.defining_inst(value);
        let of_inst = defining.and_then(|inst| mentions.insts.get(&inst));
        mentions.values.get(&value).into_iter().chain(of_inst).min().copied()
    }

    /// The number in the log of the first action that mentions a value or the instruction that
    /// defines it. `None` if no version has the value, or if no action mentions it. Cost: linear in
    /// the log.
    pub(crate) fn of_value(&self, value: Value) -> Option<usize> {
        let defining =
            [self.base, self.opt].into_iter().find(|f| f.has_value(value))?.defining_inst(value);
        self.first(|kind| {
            mentions_value(kind, value) || defining.is_some_and(|inst| mentions_inst(kind, inst))
        })
    }

    /// The number of the first action that puts one value in the place of another. Cost: linear in
    /// the log.
    pub(crate) fn of_replaced(&self, old: Value, new: Value) -> Option<usize> {
        self.first(|kind| match kind {
            ActionKind::ReplaceAll { before, after }
            | ActionKind::ReplaceOperand { before, after, .. } => (*before, *after) == (old, new),
            _ => false,
        })
    }

    /// The number of the first action that mentions an instruction or removes the block that
    /// contains it. Cost: linear in the log.
    pub(crate) fn of_inst(&self, inst: Inst) -> Option<usize> {
        let block = [self.base, self.opt]
            .into_iter()
            .find(|f| f.has_inst(inst))
            .map(|f| f.inst_block(inst));
        self.first(|kind| {
            mentions_inst(kind, inst) || block.is_some_and(|b| removes_block(kind, b))
        })
    }

    /// The number of the first action that removes a block, merges it into another, or creates it.
    /// Cost: linear in the log.
    pub(crate) fn of_block(&self, block: Block) -> Option<usize> {
        self.first(|kind| {
            removes_block(kind, block)
                || matches!(kind, ActionKind::MergeBlocks { from, .. } if *from == block)
                || matches!(
                    kind,
                    ActionKind::SplitEdge { block: made, .. }
                        | ActionKind::JoinEdges { block: made, .. } if *made == block
                )
        })
    }

    /// The action to blame for an unreachable block: the fold of a branch whose removed edge led to
    /// the block, or to a block removed by the same action. Without such a fold, the action that
    /// removed the block. Cost: linear in the log.
    pub(crate) fn of_unreachable(&self, block: Block) -> Option<usize> {
        let removal = self.first(|kind| removes_block(kind, block));
        let removed: &[Block] = match removal.map(|at| self.log.actions()[at].kind()) {
            Some(ActionKind::RemoveUnreachable { blocks }) => blocks,
            _ => &[],
        };
        let leads_there = |kind: &ActionKind| {
            // Actions list only the edge that a fold keeps. The base lists the removed edges,
            // provided that it has the branch.
            let ActionKind::FoldBranch { inst, keep } = kind else { return false };
            let targets = if self.base.has_inst(*inst) {
                self.base.inst(*inst).targets.as_slice()
            } else {
                &[]
            };
            let mut left = targets.iter().enumerate().filter(|(index, _)| *index as u32 != *keep);
            left.any(|(_, target)| target.block == block || removed.contains(&target.block))
        };
        self.first(leads_there).or(removal).or_else(|| self.of_block(block))
    }

    /// The action to blame for an entry that the checker dropped: the first action about the entity
    /// that the failed check names, or else the first about the instruction of the point. `None`
    /// also for a verdict without a finding. Cost: linear in the log.
    pub(crate) fn of_rejected(&self, point: Point, verdict: &Verdict) -> Option<usize> {
        let of_finding = match verdict.finding()?.at {
            Place::Value(value) => self.of_value(value),
            Place::Inst(inst) | Place::Operand(inst, _) => self.of_inst(inst),
            Place::Block(block) => self.of_block(block),
            Place::Whole | Place::Term(_) | Place::Step(_) => None,
        };
        of_finding.or_else(|| self.of_inst(point.inst()))
    }

    fn first(&self, is_about: impl Fn(&ActionKind) -> bool) -> Option<usize> {
        self.log.actions().iter().position(|action| is_about(action.kind()))
    }
}

fn removes_block(kind: &ActionKind, block: Block) -> bool {
    matches!(kind, ActionKind::RemoveUnreachable { blocks } if blocks.contains(&block))
}

fn mentions_inst(kind: &ActionKind, inst: Inst) -> bool {
    insts_of(kind).contains(&inst)
}

fn mentions_value(kind: &ActionKind, value: Value) -> bool {
    values_of(kind).contains(&value)
}

/// The instructions that an action mentions.
fn insts_of(kind: &ActionKind) -> Vec<Inst> {
    match kind {
        ActionKind::Add { inst, .. }
        | ActionKind::Delete { inst, .. }
        | ActionKind::Hoist { inst, .. }
        | ActionKind::Sink { inst, .. }
        | ActionKind::ReplaceOperand { inst, .. }
        | ActionKind::FoldBranch { inst, .. }
        | ActionKind::ResolveCall { inst, .. }
        | ActionKind::MergeBlocks { jump: inst, .. } => vec![*inst],
        ActionKind::Inline { call, body } => {
            let copies = body.insts.iter().map(|(_, copy)| *copy);
            [*call, body.jump].into_iter().chain(copies).collect()
        }
        ActionKind::SplitEdge { edge, jump, .. } => vec![edge.inst, *jump],
        ActionKind::JoinEdges { edges, jump, .. } => {
            edges.iter().map(|edge| edge.inst).chain([*jump]).collect()
        }
        ActionKind::Redirect { edge, .. } => vec![edge.inst],
        ActionKind::RemoveDead { insts, .. } => insts.to_vec(),
        ActionKind::ReplaceAll { .. }
        | ActionKind::RemoveUnreachable { .. }
        | ActionKind::AddBlockParam { .. }
        | ActionKind::RemoveBlockParam { .. } => Vec::new(),
    }
}

/// The values that an action mentions.
fn values_of(kind: &ActionKind) -> Vec<Value> {
    match kind {
        ActionKind::Add { data, .. } => data.results.to_vec(),
        ActionKind::ReplaceOperand { before, after, .. }
        | ActionKind::ReplaceAll { before, after } => vec![*before, *after],
        ActionKind::JoinEdges { params, .. } => params.to_vec(),
        ActionKind::AddBlockParam { param, .. } | ActionKind::RemoveBlockParam { param, .. } => {
            vec![*param]
        }
        ActionKind::Inline { body, .. } => body.values.iter().map(|(_, copy)| *copy).collect(),
        ActionKind::RemoveDead { params, .. } => params.iter().map(|(_, param)| *param).collect(),
        ActionKind::Delete { .. }
        | ActionKind::Hoist { .. }
        | ActionKind::Sink { .. }
        | ActionKind::FoldBranch { .. }
        | ActionKind::ResolveCall { .. }
        | ActionKind::SplitEdge { .. }
        | ActionKind::Redirect { .. }
        | ActionKind::MergeBlocks { .. }
        | ActionKind::RemoveUnreachable { .. } => Vec::new(),
    }
}
