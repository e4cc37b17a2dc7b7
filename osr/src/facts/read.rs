//! The phase that reads the log: a replay, with the version before each action at hand.

use super::Facts;
use super::control::ControlFlowReader;
use super::equality::{Equalities, LoggedMove, Moves};
use super::first::FirstActions;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{ActionKind, ActionLog, ReplayError, Replayer};
use ir::{Block, Function, Inst, Opcode, Value, ValueDef};
use std::collections::BTreeSet;

/// Reads a log, action by action, and gathers the facts.
pub(super) struct LogReader<'l> {
    replayer: Replayer<'l>,
    /// The index of the next action.
    index: u32,
    dominance: Dominance,
    equalities: Equalities,
    moves: Moves,
    harmless: BTreeSet<Inst>,
    control: ControlFlowReader,
    first: FirstActions,
}

impl<'l> LogReader<'l> {
    /// A reader before the first action.
    pub(super) fn new(before: &Function, log: &'l ActionLog) -> LogReader<'l> {
        let mut reader = LogReader {
            replayer: Replayer::new(before, log),
            index: 0,
            dominance: Dominance::default(),
            equalities: Equalities::new(log.len() as u32),
            moves: Moves::default(),
            harmless: BTreeSet::new(),
            control: ControlFlowReader::default(),
            first: FirstActions::default(),
        };
        for inst in before.all_insts() {
            reader.equalities.define(before.inst(inst));
            reader.moves.define(inst, &before.inst(inst).results);
        }
        reader
    }

    /// Reads all actions.
    ///
    /// # Errors
    /// When an action does not apply.
    pub(super) fn read_all(mut self) -> Result<Facts, ReplayError> {
        while let Some(action) = self.replayer.peek() {
            // Before the step: a deleted instruction still has its operands then, and a fold still
            // has both targets.
            self.first.record_origin(self.index, action.origin());
            self.read(action.kind());
            self.replayer.step()?;
            // The dominator tree serves while blocks stand; moves of instructions within them do
            // not change it.
            if changes_control_flow(action.kind()) {
                self.dominance.tree = None;
            }
            self.index += 1;
        }
        Ok(Facts {
            equalities: self.equalities,
            moves: self.moves,
            harmless: self.harmless,
            control: self.control.finish(),
            first: self.first,
        })
    }

    fn read(&mut self, action: &ActionKind) {
        let f = self.replayer.function();
        self.first.record(self.index, f, action);
        match action {
            ActionKind::Add { inst, data, .. } => {
                self.equalities.define(data);
                self.moves.define(*inst, &data.results);
                // Where its result is available, the assumption has held, and the result is the
                // operand.
                if let (Opcode::Assume, [operand, ..], Some(result)) =
                    (data.opcode, &data.args[..], data.result())
                {
                    self.equalities.link(result, *operand, self.index);
                }
            }
            ActionKind::Delete { inst, .. } => note_harmless(&mut self.harmless, f, *inst),
            ActionKind::Hoist { inst, to, .. } | ActionKind::Sink { inst, to, .. } => {
                note_harmless(&mut self.harmless, f, *inst);
                let up = self.dominance.precedes(f, *to, *inst);
                let down = self.dominance.precedes(f, *inst, *to);
                // A move between blocks without dominance in either direction counts as both: in
                // either case, values may have become unavailable.
                let (up, down) = if up || down { (up, down) } else { (true, true) };
                self.moves.record(*inst, LoggedMove { at: self.index, up, down });
            }
            ActionKind::ReplaceAll { before, after } => {
                // A pass that replaces the result by a constant has evaluated the operation, and so
                // has shown that it does not trap.
                if f.constant(*after).is_some() {
                    self.harmless.extend(f.defining_inst(*before));
                }
                // The first link wins. Behind it the value has no uses left, so a second
                // replacement says nothing about the code of either version.
                if !self.equalities.has_link(*before) && self.dominance.covers(f, *after, *before) {
                    self.equalities.link(*before, *after, self.index);
                }
            }
            ActionKind::RemoveDead { insts, .. } => {
                insts.iter().for_each(|inst| note_harmless(&mut self.harmless, f, *inst));
            }
            // A parameter without uses is removed without a replacement, yet a frame state may name
            // it (`an_unused_parameter_with_one_incoming_value_is_that_value`).
            ActionKind::RemoveBlockParam { block, param, index } => {
                let incoming = only_incoming(f, *block, *param, *index);
                if let Some(incoming) = incoming.filter(|_| !self.equalities.has_link(*param)) {
                    self.equalities.link(*param, incoming, self.index);
                }
            }
            ActionKind::FoldBranch { inst, keep } => self.control.fold(f, *inst, *keep),
            ActionKind::JoinEdges { edges, block, params, .. } => {
                self.control.join(f, edges, *block, params);
            }
            ActionKind::Redirect { past, .. } => self.control.redirect(f, *past),
            ActionKind::RemoveUnreachable { blocks } => self.control.remove(blocks),
            // Neither equal values nor other paths: the uses of one instruction, a call resolved to
            // the function it called anyway, the code that a call ran, an edge with an unchanged
            // target, two blocks that always ran together, a new parameter.
            ActionKind::ReplaceOperand { .. }
            | ActionKind::ResolveCall { .. }
            | ActionKind::Inline { .. }
            | ActionKind::SplitEdge { .. }
            | ActionKind::MergeBlocks { .. }
            | ActionKind::AddBlockParam { .. } => {}
        }
    }
}

/// The value that a parameter receives on every edge, but for the parameter itself. It dominates
/// the edges, and so the block.
fn only_incoming(f: &Function, block: Block, param: Value, index: u32) -> Option<Value> {
    let args = f.predecessors(block).iter().map(|edge| f.target(*edge).args[index as usize]);
    let mut others = args.filter(|arg| *arg != param);
    let first = others.next()?;
    others.all(|other| other == first).then_some(first)
}

/// Records an instruction that cannot trap in the version before it is deleted or moved.
fn note_harmless(harmless: &mut BTreeSet<Inst>, f: &Function, inst: Inst) {
    if !f.may_trap(inst) {
        harmless.insert(inst);
    }
}

fn changes_control_flow(action: &ActionKind) -> bool {
    use ActionKind::{
        FoldBranch, Inline, JoinEdges, MergeBlocks, Redirect, RemoveUnreachable, SplitEdge,
    };
    matches!(
        action,
        FoldBranch { .. }
            | Inline { .. }
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
struct Dominance {
    tree: Option<DomTree>,
}

impl Dominance {
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
