//! Computes the visits of blocks from edge counters, for the base and for versions that passes
//! made.

use super::FunctionProfile;
use cranelift_entity::EntityRef;
use ir::edit::{ActionKind, ActionLog, Replayer};
use ir::{Block, Edge, Function, Opcode};
use std::collections::BTreeMap;

/// See [`FunctionProfile::visits`].
pub(super) fn visits(profile: &FunctionProfile, base: &Function) -> Vec<u64> {
    let mut visits = vec![0u64; base.block_bound()];
    let add = |visits: &mut [u64], block: Block, more: u64| {
        let visits = &mut visits[block.index()];
        *visits = visits.saturating_add(more);
    };
    add(&mut visits, base.entry(), profile.calls);
    // Each block has at most one edge by a `jump`, so these edges form trees that lead to a root or
    // to a cycle. A block passes its visits on after it has received them all.
    let mut awaited = vec![0u32; base.block_bound()];
    for block in base.blocks() {
        let targets = base.successors(block);
        match profile.branches.get(&base.terminator(block)) {
            Some(sides) => {
                for (target, side) in targets.iter().zip(sides) {
                    add(&mut visits, target.block, *side);
                }
            }
            None => {
                if let Some(target) = jump(base, block) {
                    awaited[target.index()] += 1;
                }
            }
        }
    }
    let mut ready: Vec<Block> = base.blocks().filter(|block| awaited[block.index()] == 0).collect();
    while let Some(block) = ready.pop() {
        if let Some(target) = jump(base, block) {
            let more = visits[block.index()];
            add(&mut visits, target, more);
            awaited[target.index()] -= 1;
            if awaited[target.index()] == 0 {
                ready.push(target);
            }
        }
    }
    visits
}

/// The block that a `jump` at the end of a block leads to.
fn jump(base: &Function, block: Block) -> Option<Block> {
    let is_jump = base.inst(base.terminator(block)).opcode == Opcode::Jump;
    is_jump.then(|| base.successors(block)[0].block)
}

/// See [`FunctionProfile::visits_after`].
pub(super) fn visits_after(
    profile: &FunctionProfile,
    base: &Function,
    log: &ActionLog,
) -> Option<Vec<u64>> {
    let mut edges = EdgeVisits::of(profile, base);
    let mut replayer = Replayer::new(base, log);
    while let Some(action) = replayer.peek() {
        edges.follow(replayer.function(), action.kind())?;
        replayer.step().unwrap_or_else(|error| panic!("the log is one of the base: {error}"));
    }
    let version = replayer.function();
    let mut visits = vec![0u64; version.block_bound()];
    for block in version.blocks() {
        let calls = if block == version.entry() { profile.calls } else { 0 };
        visits[block.index()] = edges.sum(version.predecessors(block)).saturating_add(calls);
    }
    Some(visits)
}

/// The visits of the edges of one version. An absent edge has 0 visits.
struct EdgeVisits(BTreeMap<Edge, u64>);

impl EdgeVisits {
    /// The visits of the edges of the base.
    fn of(profile: &FunctionProfile, base: &Function) -> EdgeVisits {
        let visits = visits(profile, base);
        let mut edges = EdgeVisits(BTreeMap::new());
        for block in base.blocks() {
            let inst = base.terminator(block);
            if let Some(sides) = profile.branches.get(&inst) {
                for (side, index) in sides.iter().zip(0..) {
                    edges.0.insert(Edge { inst, index }, *side);
                }
            } else if jump(base, block).is_some() {
                edges.0.insert(Edge { inst, index: 0 }, visits[block.index()]);
            }
        }
        edges
    }

    fn get(&self, edge: Edge) -> u64 {
        self.0.get(&edge).copied().unwrap_or(0)
    }

    fn sum<'a>(&self, edges: impl IntoIterator<Item = &'a Edge>) -> u64 {
        edges.into_iter().fold(0u64, |sum, edge| sum.saturating_add(self.get(*edge)))
    }

    /// Moves the visits of edges according to one action of the log, before the replay performs the
    /// action. `None` if the action makes the visits unknown.
    fn follow(&mut self, before: &Function, action: &ActionKind) -> Option<()> {
        match action {
            // A branch with equal targets may fold, so add the visits of all sides.
            ActionKind::FoldBranch { inst, .. } => {
                let targets = before.inst(*inst).targets.len() as u32;
                let sides: Vec<Edge> =
                    (0..targets).map(|index| Edge { inst: *inst, index }).collect();
                let sum = self.sum(&sides);
                for side in &sides {
                    self.0.remove(side);
                }
                self.0.insert(Edge { inst: *inst, index: 0 }, sum);
            }
            ActionKind::SplitEdge { edge, jump, .. } => {
                let visits = self.get(*edge);
                self.0.insert(Edge { inst: *jump, index: 0 }, visits);
            }
            ActionKind::JoinEdges { edges, jump, .. } => {
                let visits = self.sum(edges);
                self.0.insert(Edge { inst: *jump, index: 0 }, visits);
            }
            // All runs along the edge continued along the jump of the skipped block.
            ActionKind::Redirect { edge, past } => {
                let visits = self.get(*edge);
                let onward = Edge { inst: before.terminator(*past), index: 0 };
                if let Some(rest) = self.0.get_mut(&onward) {
                    *rest = rest.saturating_sub(visits);
                }
            }
            ActionKind::MergeBlocks { jump, .. } => {
                self.0.remove(&Edge { inst: *jump, index: 0 });
            }
            // Profiles of the base have no counts of the inlined code's edges.
            ActionKind::Inline { .. } => return None,
            // Edges of removed blocks lead nowhere, and the others keep the control flow.
            ActionKind::RemoveUnreachable { .. }
            | ActionKind::Add { .. }
            | ActionKind::Delete { .. }
            | ActionKind::Hoist { .. }
            | ActionKind::Sink { .. }
            | ActionKind::ReplaceOperand { .. }
            | ActionKind::ReplaceAll { .. }
            | ActionKind::ResolveCall { .. }
            | ActionKind::AddBlockParam { .. }
            | ActionKind::RemoveBlockParam { .. }
            | ActionKind::RemoveDead { .. } => {}
        }
        Some(())
    }
}
