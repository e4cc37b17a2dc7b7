//! The changes of control flow in the log: folded branches, joined edges, redirected edges, removed
//! blocks.

use ir::{Block, Edge, Function, Inst, Value};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// The facts about control flow. [`ControlFlowReader`] makes them.
#[derive(Debug, Default)]
pub(crate) struct ControlFlow {
    folded: BTreeMap<Inst, SmallVec<[u32; 1]>>,
    removed: BTreeSet<Block>,
    joined_blocks: BTreeMap<Block, Block>,
    joined_params: BTreeMap<Value, Value>,
    /// The blocks that edges were redirected past, by the jump that each had at that time.
    skipped: BTreeMap<Inst, Block>,
    /// The instructions of the skipped blocks, as the blocks were at that time.
    passed_over: BTreeSet<Inst>,
}

impl ControlFlow {
    /// The indices of the targets that a branch may take which the log folded to a jump, ascending;
    /// `None` for one that it did not fold.
    ///
    /// Example: `br_if %c, a, b` folded to `a` takes target 0. If both targets were one block, the
    /// list names both indices: the log does not record the index that a run takes.
    pub(crate) fn taken_targets(&self, branch: Inst) -> Option<&[u32]> {
        self.folded.get(&branch).map(SmallVec::as_slice)
    }

    /// The branches that the log folded, each with what [`ControlFlow::taken_targets`] says of it.
    pub(crate) fn folded(&self) -> &BTreeMap<Inst, SmallVec<[u32; 1]>> {
        &self.folded
    }

    /// Whether the log removed a block as unreachable. No run of the version before reaches it
    /// either.
    ///
    /// Example: the arm that a fold cuts off. A block that became unreachable because edges were
    /// redirected past it does not count: runs of the version before reach it.
    pub(crate) fn is_removed(&self, block: Block) -> bool {
        self.removed.contains(&block)
    }

    /// Blocks that hand their parameters on, made by `JoinEdges` or skipped by `Redirect`, each
    /// with the receiving block.
    ///
    /// Example: in `pre(%p): jump head(%p)`, made for the edges that enter a loop, `pre` hands on
    /// to `head`.
    pub(crate) fn joined_blocks(&self) -> &BTreeMap<Block, Block> {
        &self.joined_blocks
    }

    /// The parameters of [`ControlFlow::joined_blocks`] that are handed on, each with the receiving
    /// one.
    ///
    /// Example: in `pre(%p): jump head(%p)`, `%p` with the parameter of `head`.
    pub(crate) fn joined_params(&self) -> &BTreeMap<Value, Value> {
        &self.joined_params
    }

    /// Whether an edge was redirected past a block that ended in this terminator. The version after
    /// executes it less often.
    ///
    /// Example: with `a: jump b` and `b: jump c`, sending the edge of `a` to `c` skips the jump of
    /// `b`.
    pub(crate) fn is_skipped(&self, end: Inst) -> bool {
        self.skipped.contains_key(&end)
    }

    /// Whether an edge was redirected past a block that had this instruction at that time. The
    /// version after executes it less often. The terminator of its block tells less: the block may
    /// have been merged with others before the redirection, and after it
    /// (`a_skipped_instruction_is_no_anchor`).
    pub(crate) fn is_passed_over(&self, inst: Inst) -> bool {
        self.passed_over.contains(&inst)
    }
}

/// The facts about control flow while the log is being read.
#[derive(Debug, Default)]
pub(super) struct ControlFlowReader {
    found: ControlFlow,
}

impl ControlFlowReader {
    /// Records the fold of a branch. `f` is the version before the fold, which still has all
    /// targets.
    pub(super) fn fold(&mut self, f: &Function, inst: Inst, keep: u32) {
        // Several targets may have been equal when the branch was folded. The log then does not
        // show which of them a run takes.
        let targets = &f.inst(inst).targets;
        let same =
            (0..targets.len() as u32).filter(|i| targets[*i as usize] == targets[keep as usize]);
        self.found.folded.insert(inst, same.collect());
    }

    /// Records that a new block, with these parameters, joins edges. `f` is the version before.
    pub(super) fn join(&mut self, f: &Function, edges: &[Edge], block: Block, params: &[Value]) {
        if let Some(edge) = edges.first() {
            let target = f.target(*edge).block;
            self.found.joined_blocks.insert(block, target);
            let received = f.block_params(target).iter().copied();
            self.found.joined_params.extend(params.iter().copied().zip(received));
        }
    }

    /// Records that an edge was redirected past a block. `f` is the version before.
    pub(super) fn redirect(&mut self, f: &Function, skipped: Block) {
        let jump = f.terminator(skipped);
        // Many edges may skip one block alike. One edge stands for all, so that the queries stay
        // cheap.
        if self.found.skipped.insert(jump, skipped) != Some(skipped) {
            self.found.passed_over.extend(f.block_insts(skipped));
        }
        let target = f.target(Edge { inst: jump, index: 0 });
        self.found.joined_blocks.insert(skipped, target.block);
        let own = f.block_params(skipped);
        let handed = target.args.iter().zip(f.block_params(target.block));
        let handed = handed.filter(|(arg, _)| own.contains(arg));
        self.found.joined_params.extend(handed.map(|(arg, param)| (*arg, *param)));
    }

    pub(super) fn remove(&mut self, blocks: &[Block]) {
        self.found.removed.extend(blocks);
    }

    /// Ends the reading.
    pub(super) fn finish(mut self) -> ControlFlow {
        // Blocks that edges were redirected past become unreachable, but ran before. Entries from
        // them would be lost if they counted as unreachable.
        for skipped in self.found.skipped.values() {
            self.found.removed.remove(skipped);
        }
        self.found
    }
}
