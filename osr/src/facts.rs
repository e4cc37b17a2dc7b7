//! What the action log says about two versions: what moved, what equals what, what was proved dead.
//!
//! The log is replayed once. A `replace_all(o, n)` is a fact about the version in which it was
//! recorded: a *link*, usable where both ids are available in that version (`mappings.md`, section
//! 4). Instead of keeping every intermediate version, a link is recorded only when n's definition
//! dominated o's (or stood so close behind it that no bounding instruction lies between): then n is
//! available wherever o is, and what is left to ask is whether o still stands where it stood.

use cranelift_entity::SecondaryMap;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{ActionKind, ActionLog, ReplayError, Replayer};
use ir::place::Place;
use ir::{Block, Edge, Function, Inst, InstData, Opcode, Type, Value, ValueDef};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// A `replace_all`, as seen from the replaced value.
#[derive(Clone, Copy, Debug)]
struct Link {
    to: Value,
    /// The index of the action.
    at: u32,
}

/// A move of an instruction.
#[derive(Clone, Copy, Debug)]
struct Move {
    at: u32,
    up: bool,
    down: bool,
}

/// When a value is read: in the version before the log, or in the one after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Era {
    Before,
    After,
}

/// What the log tells. See the module documentation.
#[derive(Debug)]
pub(crate) struct Facts {
    links: SecondaryMap<Value, Option<Link>>,
    moves: BTreeMap<Inst, SmallVec<[Move; 1]>>,
    def: SecondaryMap<Value, Option<Inst>>,
    /// The bits of every value that is a constant instruction's, in any version on the way.
    constants: BTreeMap<Value, (Type, u64)>,
    end: u32,
    /// Blocks that edges were sent past, and their terminators.
    passed_by: BTreeSet<Block>,
    pub(crate) passed_ends: BTreeSet<Inst>,
    /// Those of the terminators that were branches when an edge was sent past them.
    pub(crate) passed_branches: BTreeSet<Inst>,
    /// Blocks that edges were sent past, where they end in a branch, and those the edges lead to
    /// now.
    pub(crate) rerouted: BTreeSet<Block>,
    /// Blocks removed because no edge led to them any more, in the version they are in already.
    pub(crate) removed_blocks: BTreeSet<Block>,
    /// Branches that became jumps, with the indices of the targets they may take: one, or several
    /// that had come to be the same.
    pub(crate) folded: BTreeMap<Inst, SmallVec<[u32; 1]>>,
    /// Instructions that cannot trap, as some version on the way showed: with the operands they had
    /// come to have when they were deleted or moved, or because a constant replaced them.
    harmless: BTreeSet<Inst>,
    /// The first action that adds, deletes or moves an effect: effects do not line up beyond it.
    pub(crate) effect_changed: Option<usize>,
    /// Blocks that joined edges, with the block all of them led to; and their parameters, each with
    /// the one it is handed on to.
    pub(crate) joined_blocks: BTreeMap<Block, Block>,
    pub(crate) joined_params: BTreeMap<Value, Value>,
    first_of_value: SecondaryMap<Value, Option<u32>>,
    first_of_inst: SecondaryMap<Inst, Option<u32>>,
}

impl Facts {
    /// Reads a log.
    ///
    /// # Errors
    /// When the log does not apply to `before`.
    pub(crate) fn new(before: &Function, log: &ActionLog) -> Result<Facts, ReplayError> {
        let mut facts = Facts {
            links: SecondaryMap::new(),
            moves: BTreeMap::new(),
            def: SecondaryMap::new(),
            constants: BTreeMap::new(),
            end: log.len() as u32,
            passed_by: BTreeSet::new(),
            passed_ends: BTreeSet::new(),
            passed_branches: BTreeSet::new(),
            rerouted: BTreeSet::new(),
            removed_blocks: BTreeSet::new(),
            folded: BTreeMap::new(),
            harmless: BTreeSet::new(),
            effect_changed: None,
            joined_blocks: BTreeMap::new(),
            joined_params: BTreeMap::new(),
            first_of_value: SecondaryMap::new(),
            first_of_inst: SecondaryMap::new(),
        };
        for inst in before.all_insts() {
            facts.define(inst, before.inst(inst));
        }
        let mut replayer = Replayer::new(before, log);
        let mut order = Order::default();
        let mut index = 0;
        while let Some(action) = replayer.peek() {
            facts.read(replayer.function(), &mut order, index, action.kind());
            replayer.step()?;
            if changes_control_flow(action.kind()) {
                order.tree = None;
            }
            index += 1;
        }
        Ok(facts)
    }

    fn read(&mut self, f: &Function, order: &mut Order, index: u32, action: &ActionKind) {
        match action {
            ActionKind::Add { inst, data, .. } => {
                self.define(*inst, data);
                self.mention(index, &[*inst], &data.results);
                self.note_effect(index, data);
            }
            ActionKind::Delete { inst, .. } => {
                self.mention(index, &[*inst], &f.inst(*inst).results);
                self.note_effect(index, f.inst(*inst));
                self.note_harmless(f, *inst);
            }
            ActionKind::Hoist { inst, to, .. } | ActionKind::Sink { inst, to, .. } => {
                self.mention(index, &[*inst], &f.inst(*inst).results);
                self.note_effect(index, f.inst(*inst));
                self.note_harmless(f, *inst);
                let up = order.precedes(f, *to, *inst);
                let down = order.precedes(f, *inst, *to);
                // A move that is neither counts as both: it may have left either way.
                let (up, down) = if up || down { (up, down) } else { (true, true) };
                self.moves.entry(*inst).or_default().push(Move { at: index, up, down });
            }
            ActionKind::ReplaceOperand { inst, before, after, .. } => {
                self.mention(index, &[*inst], &[*before, *after])
            }
            ActionKind::ReplaceAll { before, after } => {
                self.mention(index, &[], &[*before, *after]);
                if f.constant(*after).is_some() {
                    self.harmless.extend(f.defining_inst(*before));
                }
                if self.links[*before].is_none() && order.covers(f, *after, *before) {
                    self.links[*before] = Some(Link { to: *after, at: index });
                }
            }
            ActionKind::FoldBranch { inst, keep } => {
                self.mention(index, &[*inst], &[]);
                // Targets that were equal when the branch was folded say nothing about which one it
                // takes.
                let targets = &f.inst(*inst).targets;
                let same = (0..targets.len() as u32)
                    .filter(|i| targets[*i as usize] == targets[*keep as usize]);
                self.folded.insert(*inst, same.collect());
            }
            ActionKind::SplitEdge { edge, jump, .. } => {
                self.mention(index, &[edge.inst, *jump], &[])
            }
            ActionKind::JoinEdges { edges, block, params, jump } => {
                self.mention(index, &[*jump], params);
                if let Some(edge) = edges.first() {
                    let target = f.target(*edge).block;
                    self.joined_blocks.insert(*block, target);
                    self.joined_params
                        .extend(params.iter().copied().zip(f.block_params(target).iter().copied()));
                }
                edges.iter().for_each(|e| self.mention(index, &[e.inst], &[]));
            }
            ActionKind::Redirect { edge, past, index: taken } => {
                let end = f.terminator(*past);
                self.mention(index, &[edge.inst, end], f.block_params(*past));
                self.passed_by.insert(*past);
                self.passed_ends.insert(end);
                let onward = Edge { inst: end, index: *taken };
                // Past a branch, the block passed by has fewer ways in afterwards, and the block
                // behind it more.
                match f.inst(end).opcode {
                    Opcode::Jump => self.join(f, *past, onward),
                    _ => {
                        self.passed_branches.insert(end);
                        self.rerouted.extend([*past, f.target(onward).block]);
                    }
                }
            }
            ActionKind::MergeBlocks { jump, .. } => self.mention(index, &[*jump], &[]),
            ActionKind::RemoveUnreachable { blocks } => {
                // Edges were sent past the others: they ran before.
                self.removed_blocks.extend(blocks.iter().filter(|b| !self.passed_by.contains(b)));
                for block in blocks {
                    self.mention(index, &[], f.block_params(*block));
                    f.block_insts(*block)
                        .for_each(|i| self.mention(index, &[i], &f.inst(i).results));
                }
            }
            ActionKind::RemoveDead { params, insts } => {
                params.iter().for_each(|(_, param)| self.mention(index, &[], &[*param]));
                for inst in insts {
                    self.mention(index, &[*inst], &f.inst(*inst).results);
                    self.note_effect(index, f.inst(*inst));
                    self.note_harmless(f, *inst);
                }
            }
            ActionKind::AddBlockParam { param, .. }
            | ActionKind::RemoveBlockParam { param, .. } => {
                self.mention(index, &[], &[*param]);
            }
        }
    }

    /// Notes that a block hands its parameters on to those of the block that an edge of its leads
    /// to.
    fn join(&mut self, f: &Function, block: Block, edge: Edge) {
        let target = f.target(edge);
        self.joined_blocks.insert(block, target.block);
        let own = f.block_params(block);
        let handed = target.args.iter().zip(f.block_params(target.block));
        self.joined_params
            .extend(handed.filter(|(arg, _)| own.contains(arg)).map(|(arg, param)| (*arg, *param)));
    }

    fn define(&mut self, inst: Inst, data: &InstData) {
        for value in &data.results {
            self.def[*value] = Some(inst);
            self.constants.extend(data.constant().map(|bits| (*value, (data.ty, bits))));
        }
    }

    fn mention(&mut self, index: u32, insts: &[Inst], values: &[Value]) {
        for inst in insts {
            self.first_of_inst[*inst].get_or_insert(index);
        }
        for value in values {
            self.first_of_value[*value].get_or_insert(index);
        }
    }

    /// Writes of one place may change: what that takes is found later (`stores`).
    fn note_effect(&mut self, index: u32, data: &InstData) {
        if !data.opcode.is_effect_free()
            && Place::written(data.opcode, data.ty, &data.imm).is_none()
        {
            self.effect_changed.get_or_insert(index as usize);
        }
    }

    fn note_harmless(&mut self, f: &Function, inst: Inst) {
        if !f.may_trap(inst) {
            self.harmless.insert(inst);
        }
    }

    /// Whether an instruction of a version may trap, as far as that version and the log tell.
    pub(crate) fn may_trap(&self, f: &Function, inst: Inst) -> bool {
        f.may_trap(inst) && !self.harmless.contains(&inst)
    }

    /// Whether the log moved an instruction.
    pub(crate) fn is_moved(&self, inst: Inst) -> bool {
        self.moves.contains_key(&inst)
    }

    /// The first action that has to do with a value.
    pub(crate) fn first_of_value(&self, value: Value) -> Option<usize> {
        self.first_of_value[value].map(|i| i as usize)
    }

    /// The first action that has to do with an instruction.
    pub(crate) fn first_of_inst(&self, inst: Inst) -> Option<usize> {
        self.first_of_inst[inst].map(|i| i as usize)
    }

    /// The values that equal `value` wherever it is available in the version of `era`, nearest
    /// first, `value` itself not among them. Each was available there in the version its link was
    /// recorded in; whether it is available where it is wanted is for the caller to see.
    pub(crate) fn chain(&self, value: Value, era: Era) -> SmallVec<[Value; 2]> {
        let mut chain = SmallVec::new();
        let (mut value, mut time) = (value, if era == Era::Before { 0 } else { self.end });
        while let Some(link) = self.links[value] {
            // The second condition ends the walk should links ever form a cycle.
            if !self.stands_still(value, time, link.at) || chain.contains(&link.to) {
                break;
            }
            (value, time) = (link.to, link.at);
            chain.push(value);
        }
        chain
    }

    /// The constant that equals `value` wherever it is available in the version of `era`, with its
    /// type. The constant's own instruction may be long gone.
    pub(crate) fn constant(&self, value: Value, era: Era) -> Option<(Type, u64)> {
        self.chain(value, era).iter().find_map(|id| self.constants.get(id).copied())
    }

    /// Whether a value available somewhere at time `from` was available there at time `to`: going
    /// forward its definition must not have been moved down, going back not up.
    fn stands_still(&self, value: Value, from: u32, to: u32) -> bool {
        let Some(moves) = self.def[value].and_then(|inst| self.moves.get(&inst)) else {
            return true;
        };
        let mut between = moves.iter().filter(|m| (from.min(to)..from.max(to)).contains(&m.at));
        between.all(|m| if from <= to { !m.down } else { !m.up })
    }
}

fn changes_control_flow(action: &ActionKind) -> bool {
    use ActionKind::{FoldBranch, JoinEdges, MergeBlocks, Redirect, RemoveUnreachable, SplitEdge};
    matches!(
        action,
        FoldBranch { .. }
            | SplitEdge { .. }
            | JoinEdges { .. }
            | Redirect { .. }
            | MergeBlocks { .. }
            | RemoveUnreachable { .. }
    )
}

/// Dominance in the version being replayed, computed again only after control flow changed.
#[derive(Default)]
struct Order {
    tree: Option<DomTree>,
}

impl Order {
    /// Whether `first` stands where it is executed before `second` on every path there.
    fn precedes(&mut self, f: &Function, first: Inst, second: Inst) -> bool {
        if f.inst_block(first) == f.inst_block(second) {
            return f.stands_before(first, second);
        }
        self.block_dominates(f, f.inst_block(first), f.inst_block(second))
    }

    /// Whether `after` is available wherever `before` is, at points before bounding instructions.
    fn covers(&mut self, f: &Function, after: Value, before: Value) -> bool {
        let (home, place) = (f.value_block(after), f.value_block(before));
        if home == place {
            return match (f.defining_inst(after), f.defining_inst(before)) {
                (None, _) => true,
                (Some(a), Some(b)) => f.stands_before(a, b) || no_bound_between(f, Some(b), a),
                (Some(a), None) => no_bound_between(f, None, a),
            };
        }
        // A parameter that receives the same value on every edge: that value dominates all of them,
        // and so the block. Spares the tree when blocks are merged one after the other.
        if let ValueDef::Param(block, index) = f.value_def(before) {
            let edges = f.predecessors(block);
            let mut incoming = edges.iter().map(|e| f.target(*e).args[index as usize]);
            if !edges.is_empty() && incoming.all(|v| v == after || v == before) {
                return true;
            }
        }
        self.block_dominates(f, home, place)
    }

    fn block_dominates(&mut self, f: &Function, a: Block, b: Block) -> bool {
        self.tree.get_or_insert_with(|| DomTree::new(f, &Cfg::new(f))).dominates(a, b)
    }
}

/// Whether no instruction that bounds a gap stands from just behind `from` (from the start of the
/// block when `None`) up to `to`.
fn no_bound_between(f: &Function, from: Option<Inst>, to: Inst) -> bool {
    let mut inst = f.prev_inst(to);
    while let Some(here) = inst.filter(|i| Some(*i) != from) {
        let opcode = f.inst(here).opcode;
        if !opcode.is_effect_free() || opcode.can_trap() {
            return false;
        }
        inst = f.prev_inst(here);
    }
    inst == from
}
