//! The action to blame: the first in the log that concerns a value or an instruction.

use crate::reason::Blame;
use cranelift_entity::SecondaryMap;
use ir::edit::{ActionKind, Origin};
use ir::place::Place;
use ir::{Function, Inst, InstData, Opcode, Value};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The actions that replaced one value by another, each with the other value.
pub(crate) type Replacements = SmallVec<[(u32, Value); 1]>;

/// Actions that replaced an operand, with the operand before and after.
type ReplacedOperands = SmallVec<[(u32, [Value; 2]); 1]>;

/// For each value and instruction, the first action that mentions it, and the actions that changed
/// it.
#[derive(Debug, Default)]
pub(crate) struct FirstActions {
    of_value: SecondaryMap<Value, Option<u32>>,
    of_inst: SecondaryMap<Inst, Option<u32>>,
    on_effects: Option<usize>,
    /// By value: the actions that replaced all its uses, with the values in its place.
    replaced: BTreeMap<Value, Replacements>,
    /// By value: the actions that put it in the place of another, with the other value.
    standing_in: BTreeMap<Value, Replacements>,
    /// By instruction: the actions that replaced an operand, with the operand before and after.
    operands: BTreeMap<Inst, ReplacedOperands>,
    /// By instruction: the actions that added, moved, folded or removed it.
    placed: BTreeMap<Inst, SmallVec<[u32; 1]>>,
    /// By instruction: the actions that moved it, a part of `placed`.
    moved: BTreeMap<Inst, SmallVec<[u32; 1]>>,
    /// The origins of the actions that have another pass or rule than the action before them, each
    /// with the index of its action. Most actions have both in common with the action before.
    origins: Vec<(usize, Origin)>,
}

impl FirstActions {
    /// The index of the first action that concerns a value.
    ///
    /// Example: `replace_all(o, n)` concerns both o and n.
    pub(crate) fn of_value(&self, value: Value) -> Option<usize> {
        self.of_value[value].map(|i| i as usize)
    }

    /// The index of the first action that concerns an instruction.
    ///
    /// Example: a redirected edge concerns the terminator it belongs to, and the terminator of the
    /// skipped block.
    pub(crate) fn of_inst(&self, inst: Inst) -> Option<usize> {
        self.of_inst[inst].map(|i| i as usize)
    }

    /// The index of the first action that adds, deletes or moves an effect. Effects do not line up
    /// beyond it.
    ///
    /// Example: the deletion of a call is such an action. The deletion of a store is not, since
    /// [`crate::stores`] finds out where memory then differs.
    pub(crate) fn on_effects(&self) -> Option<usize> {
        self.on_effects
    }

    /// The actions that replaced all uses of a value, in order, with the values in its place.
    ///
    /// Example: after `replace_all(o, n)`, that action with n.
    pub(crate) fn replaced(&self, value: Value) -> &[(u32, Value)] {
        self.replaced.get(&value).map_or(&[], SmallVec::as_slice)
    }

    /// The actions that put a value in the place of all uses of another, in order, each with the
    /// other value.
    ///
    /// Example: after `replace_all(o, n)`, of n that action with o.
    pub(crate) fn standing_in(&self, value: Value) -> &[(u32, Value)] {
        self.standing_in.get(&value).map_or(&[], SmallVec::as_slice)
    }

    /// The actions that replaced single operands of an instruction, in order, each with the operand
    /// before and after.
    ///
    /// Example: `replace_operand(add %a, %b; 1, %c)` gives that action with %b and %c.
    pub(crate) fn operands(&self, inst: Inst) -> &[(u32, [Value; 2])] {
        self.operands.get(&inst).map_or(&[], SmallVec::as_slice)
    }

    /// The actions that added, moved, folded, resolved or removed an instruction, in order.
    ///
    /// Example: of an instruction that was hoisted and then deleted, both actions; not the
    /// replacement of an operand.
    pub(crate) fn placed(&self, inst: Inst) -> &[u32] {
        self.placed.get(&inst).map_or(&[], SmallVec::as_slice)
    }

    /// The actions that hoisted or sank an instruction, in order.
    ///
    /// Example: of an instruction that was hoisted and then deleted, the first action alone.
    pub(crate) fn moved(&self, inst: Inst) -> &[u32] {
        self.moved.get(&inst).map_or(&[], SmallVec::as_slice)
    }

    /// An action by its index in the log, with its pass and rule. Cost: logarithmic.
    ///
    /// # Panics
    /// If the log lacks the action.
    pub(crate) fn blame(&self, action: usize) -> Blame {
        let row = self.origins.partition_point(|(first, _)| *first <= action) - 1;
        let (_, origin) = self.origins[row];
        Blame { action, pass: origin.pass(), rule: origin.rule() }
    }

    /// Records the origin of the `index`th action.
    pub(super) fn record_origin(&mut self, index: u32, origin: Origin) {
        let of = |origin: &Origin| (origin.pass(), origin.rule());
        if self.origins.last().is_none_or(|(_, last)| of(last) != of(&origin)) {
            self.origins.push((index as usize, origin));
        }
    }

    /// Records an action, the `index`th. `f` is the version before it: a deleted instruction still
    /// has its results there.
    pub(super) fn record(&mut self, index: u32, f: &Function, action: &ActionKind) {
        self.record_change(index, f, action);
        match action {
            ActionKind::Add { inst, data, .. } => self.mention_whole(index, *inst, data),
            ActionKind::Delete { inst, .. }
            | ActionKind::Hoist { inst, .. }
            | ActionKind::Sink { inst, .. } => self.mention_whole(index, *inst, f.inst(*inst)),
            ActionKind::ReplaceOperand { inst, before, after, .. } => {
                self.mention(index, &[*inst], &[*before, *after]);
            }
            ActionKind::ReplaceAll { before, after } => {
                self.mention(index, &[], &[*before, *after]);
            }
            ActionKind::FoldBranch { inst, .. } | ActionKind::ResolveCall { inst, .. } => {
                self.mention(index, &[*inst], &[])
            }
            // The effects of the callee take the place of the call.
            ActionKind::Inline { call, .. } => self.mention_whole(index, *call, f.inst(*call)),
            ActionKind::SplitEdge { edge, jump, .. } => {
                self.mention(index, &[edge.inst, *jump], &[]);
            }
            ActionKind::JoinEdges { edges, params, jump, .. } => {
                self.mention(index, &[*jump], params);
                edges.iter().for_each(|e| self.mention(index, &[e.inst], &[]));
            }
            ActionKind::Redirect { edge, past, .. } => {
                self.mention(index, &[edge.inst, f.terminator(*past)], f.block_params(*past));
            }
            ActionKind::MergeBlocks { jump, .. } => self.mention(index, &[*jump], &[]),
            ActionKind::RemoveUnreachable { blocks } => {
                for block in blocks {
                    self.mention(index, &[], f.block_params(*block));
                    // Without their effects: no run executes them, in either version.
                    f.block_insts(*block)
                        .for_each(|i| self.mention(index, &[i], &f.inst(i).results));
                }
            }
            ActionKind::RemoveDead { params, insts } => {
                params.iter().for_each(|(_, param)| self.mention(index, &[], &[*param]));
                insts.iter().for_each(|inst| self.mention_whole(index, *inst, f.inst(*inst)));
            }
            ActionKind::AddBlockParam { param, .. }
            | ActionKind::RemoveBlockParam { param, .. } => self.mention(index, &[], &[*param]),
        }
    }

    /// Records the values and instructions that an action changes.
    fn record_change(&mut self, index: u32, f: &Function, action: &ActionKind) {
        if let ActionKind::Hoist { inst, .. } | ActionKind::Sink { inst, .. } = action {
            self.moved.entry(*inst).or_default().push(index);
        }
        let mut place = |inst: Inst| self.placed.entry(inst).or_default().push(index);
        match action {
            ActionKind::Add { inst, .. }
            | ActionKind::Delete { inst, .. }
            | ActionKind::Hoist { inst, .. }
            | ActionKind::Sink { inst, .. }
            | ActionKind::FoldBranch { inst, .. }
            | ActionKind::ResolveCall { inst, .. } => place(*inst),
            ActionKind::Inline { call, body } => {
                place(*call);
                body.insts.iter().for_each(|(_, copy)| place(*copy));
            }
            ActionKind::RemoveDead { insts, .. } => insts.iter().copied().for_each(place),
            ActionKind::RemoveUnreachable { blocks } => {
                blocks.iter().flat_map(|block| f.block_insts(*block)).for_each(place);
            }
            ActionKind::ReplaceOperand { inst, before, after, .. } => {
                self.operands.entry(*inst).or_default().push((index, [*before, *after]));
            }
            ActionKind::ReplaceAll { before, after } => {
                self.replaced.entry(*before).or_default().push((index, *after));
                self.standing_in.entry(*after).or_default().push((index, *before));
            }
            ActionKind::SplitEdge { jump, .. }
            | ActionKind::JoinEdges { jump, .. }
            | ActionKind::MergeBlocks { jump, .. } => place(*jump),
            ActionKind::Redirect { edge, .. } => place(edge.inst),
            ActionKind::AddBlockParam { .. } | ActionKind::RemoveBlockParam { .. } => {}
        }
    }

    fn mention(&mut self, index: u32, insts: &[Inst], values: &[Value]) {
        for inst in insts {
            self.of_inst[*inst].get_or_insert(index);
        }
        for value in values {
            self.of_value[*value].get_or_insert(index);
        }
    }

    /// Mentions an instruction with its results, and its effect. Writes of one place may change.
    fn mention_whole(&mut self, index: u32, inst: Inst, data: &InstData) {
        self.mention(index, &[inst], &data.results);
        // `stores` finds out later where memory differs by a write of one place. Other effects name
        // no such place: all code behind them in either version may differ.
        let is_write_of_one_place = Place::written(data.opcode, data.ty, &data.imm).is_some();
        // An assumption of a single version bars only the landing points behind it.
        let is_assumption = data.opcode == Opcode::Assume;
        if !data.opcode.is_effect_free() && !is_write_of_one_place && !is_assumption {
            self.on_effects.get_or_insert(index as usize);
        }
    }
}
