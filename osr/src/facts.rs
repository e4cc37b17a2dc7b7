//! Facts from the action log about two versions: which instructions moved, which values are equal,
//! which code was proved dead.
//!
//! [`Facts::new`] replays the log once. A `replace_all(o, n)` states a fact about the version in
//! which it was recorded: a *link*, usable where both ids are available in that version
//! (`docs/osr.md`, *Values*). Keeping every intermediate version to look that up would cost too
//! much. Instead, the replay records a link only if n's definition dominated o's, or stood so close
//! behind it that no bounding instruction lies between. Then n is available wherever o is, and one
//! question remains: whether o still stands where it stood.
//!
//! Example: a pass replaces o by n and deletes o. A backward entry then copies n to o, without
//! computing o again.

use cranelift_entity::SecondaryMap;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{ActionKind, ActionLog, ReplayError, Replayer};
use ir::place::Place;
use ir::{Block, Edge, Function, Inst, InstData, Opcode, Type, Value, ValueDef};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use transition::Side;

/// A `replace_all`, seen from the replaced value.
#[derive(Clone, Copy, Debug)]
struct Link {
    to: Value,
    /// The index of the action.
    at: u32,
}

/// A move of an instruction by action `at`. A move that is neither up nor down along dominance
/// counts as both.
#[derive(Clone, Copy, Debug)]
struct Move {
    at: u32,
    up: bool,
    down: bool,
}

/// The facts of one log. See the module documentation.
#[derive(Debug)]
pub(crate) struct Facts {
    links: SecondaryMap<Value, Option<Link>>,
    moves: BTreeMap<Inst, SmallVec<[Move; 1]>>,
    def: SecondaryMap<Value, Option<Inst>>,
    /// The bits of every value that a constant instruction defines, in any version of the log.
    constants: BTreeMap<Value, (Type, u64)>,
    end: u32,
    /// Blocks that a `Redirect` action sent an edge past, and their terminators.
    passed_by: BTreeSet<Block>,
    pub(crate) passed_ends: BTreeSet<Inst>,
    /// The terminators among `passed_ends` that were branches at that time.
    pub(crate) passed_branches: BTreeSet<Inst>,
    /// The blocks of `passed_by` that ended in a branch, and the blocks that redirected edges lead
    /// to instead.
    pub(crate) rerouted: BTreeSet<Block>,
    /// Blocks that the log removed as unreachable. No run of the version before reaches them
    /// either.
    pub(crate) removed_blocks: BTreeSet<Block>,
    /// Branches that the log folded to jumps, each with the indices of the targets it may take:
    /// one, or several that had become the same.
    pub(crate) folded: BTreeMap<Inst, SmallVec<[u32; 1]>>,
    /// Instructions that some version of the log shows cannot trap: with the operands they had when
    /// they were deleted or moved, or because a constant replaced their result.
    harmless: BTreeSet<Inst>,
    /// The first action that adds, deletes or moves an effect. Effects do not line up beyond it.
    pub(crate) effect_changed: Option<usize>,
    /// Blocks that hand their parameters on, made by `JoinEdges` or skipped by `Redirect`, each
    /// with the receiving block; and their parameters, each with the receiving one.
    pub(crate) joined_blocks: BTreeMap<Block, Block>,
    pub(crate) joined_params: BTreeMap<Value, Value>,
    first_of_value: SecondaryMap<Value, Option<u32>>,
    first_of_inst: SecondaryMap<Inst, Option<u32>>,
}

impl Facts {
    /// Reads a log. Cost: near linear in the function and the log, and one dominator tree for each
    /// action that changes control flow and is followed by a question.
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
            // Before the step: a deleted instruction still has its operands then, and a fold still
            // has both targets.
            facts.read(replayer.function(), &mut order, index, action.kind());
            replayer.step()?;
            // `Order` keeps the tree while blocks stand; moves of instructions within them do not
            // change it.
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
                // A move between blocks of which neither dominates the other counts as both: either
                // way, values may have become unavailable.
                let (up, down) = if up || down { (up, down) } else { (true, true) };
                self.moves.entry(*inst).or_default().push(Move { at: index, up, down });
            }
            ActionKind::ReplaceOperand { inst, before, after, .. } => {
                self.mention(index, &[*inst], &[*before, *after])
            }
            ActionKind::ReplaceAll { before, after } => {
                self.mention(index, &[], &[*before, *after]);
                // A pass that replaces the result by a constant has evaluated the operation, and so
                // has shown that it does not trap.
                if f.constant(*after).is_some() {
                    self.harmless.extend(f.defining_inst(*before));
                }
                // The first link wins. Behind it the value has no uses left, so a second
                // replacement says nothing about the code of either version.
                if self.links[*before].is_none() && order.covers(f, *after, *before) {
                    self.links[*before] = Some(Link { to: *after, at: index });
                }
            }
            ActionKind::FoldBranch { inst, keep } => {
                self.mention(index, &[*inst], &[]);
                // Several targets may have been equal when the branch was folded. The log then does
                // not tell which of them a run takes.
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
                // The skipped block has fewer predecessors afterwards, and the block behind it
                // more. Numbering must not take a parameter of either for a copy in one version
                // alone.
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
                // Blocks that edges were redirected past become unreachable, but ran before.
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

    /// Records that a block hands its parameters on to those of the block that `edge` leads to.
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

    /// Records an effect that changed. Writes of one place may change: [`crate::stores`] finds out
    /// later where memory then differs.
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

    /// The first action that concerns a value.
    pub(crate) fn first_of_value(&self, value: Value) -> Option<usize> {
        self.first_of_value[value].map(|i| i as usize)
    }

    /// The first action that concerns an instruction.
    pub(crate) fn first_of_inst(&self, inst: Inst) -> Option<usize> {
        self.first_of_inst[inst].map(|i| i as usize)
    }

    /// The values that equal `value` wherever it is available in the version of `era`, nearest
    /// first, without `value` itself. Each was available in the version that recorded its link; the
    /// caller checks whether it is available where it is read.
    pub(crate) fn chain(&self, value: Value, era: Side) -> SmallVec<[Value; 2]> {
        let mut chain = SmallVec::new();
        let (mut value, mut time) = (value, if era == Side::Before { 0 } else { self.end });
        while let Some(link) = self.links[value] {
            // A link recorded after the value moved out of reach is unusable, and so are all links
            // behind it. The second condition ends the walk should links ever form a cycle.
            if !self.stands_still(value, time, link.at) || chain.contains(&link.to) {
                break;
            }
            (value, time) = (link.to, link.at);
            chain.push(value);
        }
        chain
    }

    /// The constant that equals `value` wherever it is available in the version of `era`, with its
    /// type. No version needs to have the constant's instruction any more.
    pub(crate) fn constant(&self, value: Value, era: Side) -> Option<(Type, u64)> {
        self.chain(value, era).iter().find_map(|id| self.constants.get(id).copied())
    }

    /// Whether a value available at some place at time `from` was available there at time `to`.
    /// Forward in time its definition must not have moved down, backward not up. Without this
    /// check, a value sunk below a branch and then replaced would equal its replacement above the
    /// branch too (`a_link_is_not_used_where_the_replaced_value_had_left`).
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

/// Dominance in the version being replayed. The tree is computed on demand, and again after control
/// flow changed.
#[derive(Default)]
struct Order {
    tree: Option<DomTree>,
}

impl Order {
    /// Whether every path to `second` executes `first` before it.
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
            // Behind `before`, but within its gap, is close enough: entries read values at the
            // anchor that ends the gap, and `after` is available there too.
            return match (f.defining_inst(after), f.defining_inst(before)) {
                (None, _) => true,
                (Some(a), Some(b)) => f.stands_before(a, b) || no_bound_between(f, Some(b), a),
                (Some(a), None) => no_bound_between(f, None, a),
            };
        }
        // A parameter that receives the same value on every edge: that value dominates all of the
        // edges, and so the block. The case spares a dominator tree for each action when a pass
        // merges a chain of blocks.
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

/// Whether no instruction that bounds a gap stands between `from` (the start of the block if
/// `None`) and `to`.
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
