//! Cleaning of the control-flow graph.
//!
//! *Does*: removes unreachable blocks; turns a branch whose targets are all equal, arguments
//! included, into a jump; replaces the parameters of a block with a single incoming edge by their
//! arguments; redirects the edges into an empty block to the target of its jump; merges a block
//! with its only successor if that has no other predecessor.
//!
//! *Does not*: fold branches on constants (`sccp` does, with all consequences); redirect an edge
//! past a branch that its arguments decide (`thread` does); turn a branch to one block with
//! different arguments into a `select` (the parameter there equals the `select` on each edge for a
//! different reason, which certificates cannot express).
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: no block with a single predecessor has parameters; no jump is the only edge
//! into its target, but for one in each row of 24; no block consists of a jump alone, with four
//! exceptions: a block whose parameters are used beyond it, one that jumps to itself, one that
//! joins edges before a loop, and an arm of a branch whose other arm is the target of the jump.
//!
//! *Actions emitted*: `remove_unreachable`, `fold_branch`, `replace_all`, `remove_block_param`,
//! `redirect`, `merge_blocks`.
//!
//! *Effect on mappings*: the jump of a merged or an empty block is no longer an anchor, so the
//! points around it belong to one gap. From an empty block a transition takes its jump first.
//!
//! *Why correct*: a block entered by a single edge executes right after it, with exactly its
//! arguments. A block that only jumps has no effect besides the jump. A value it passes on is an
//! argument of the edge, or dominates the block and therefore each of its predecessors.
//!
//! *Long rows stay in parts*: suppose that hundreds of branches in a row fold, and nothing else
//! remains of them. Merged, they leave one block, without an instruction common to both versions.
//! The path through the version before is then too long for mappings. So a merge is left out
//! wherever it would put more than 24 jumps into a row without an instruction that writes, branches
//! or may trap (`rows_of_branches_that_vanish_keep_their_entries`).
//!
//! *Cost*: near linear in blocks, instructions and edges. The pass visits a block again only when a
//! branch or an edge of its own has changed.

use crate::row_paths::RowPaths;
use cranelift_entity::{EntityRef, SecondaryMap};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Editor, Pass};
use ir::{Block, Edge, Function, Opcode, Value};
use std::collections::BTreeSet;

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct CfgClean;

impl Pass for CfgClean {
    fn name(&self) -> &'static str {
        "cfg_clean"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        if remove_unreachable(ed) {
            Work::new(ed.func()).run(ed);
            merge(ed);
        }
    }
}

/// Removes unreachable blocks. Returns `false` if that is refused.
fn remove_unreachable(ed: &mut Editor<'_>) -> bool {
    let cfg = Cfg::new(ed.func());
    let unreachable: Vec<Block> = ed.func().blocks().filter(|b| !cfg.is_reachable(*b)).collect();
    if unreachable.is_empty() {
        return true;
    }
    let planned = ed.plan("unreachable");
    if planned {
        ed.remove_unreachable(&unreachable);
    }
    planned
}

/// The number of edges examined at most to decide whether a block is the only way into a loop, or
/// an arm of a branch. With more edges, the pass assumes that it is the only way in, and that it is
/// no arm.
const MAX_EDGES: usize = 64;

/// Blocks to visit, by their positions in the layout, so that each round visits them in order.
type PendingBlocks = BTreeSet<u32>;

/// The remaining work. Binding parameters may make the arguments of two edges equal. Folding may
/// leave a block with a single incoming edge, or with nothing but a jump. Redirecting edges may do
/// either. Each step records the blocks it affects, so a chain of blocks that enable one another
/// costs no more than as many independent blocks. The test
/// `a_chain_of_folds_is_not_walked_once_for_each` fails otherwise.
struct Work {
    /// The tree of the original function: dominance among the remaining blocks does not change.
    dom: DomTree,
    layout: Vec<Block>,
    place: SecondaryMap<Block, u32>,
    /// The paths through the blocks as they were at first.
    rows: SecondaryMap<Block, RowPaths>,
    bindable: PendingBlocks,
    foldable: PendingBlocks,
    skippable: PendingBlocks,
    /// The blocks with a refused rewrite. No other is planned for them, so the work ends without
    /// fuel too.
    kept: BTreeSet<Block>,
}

impl Work {
    fn new(function: &Function) -> Work {
        let layout: Vec<Block> = function.blocks().collect();
        let mut place: SecondaryMap<Block, u32> = SecondaryMap::new();
        for (at, block) in layout.iter().enumerate() {
            place[*block] = at as u32;
        }
        let all: PendingBlocks = (0..layout.len() as u32).collect();
        let dom = DomTree::new(function, &Cfg::new(function));
        let (bindable, foldable, skippable) = (all.clone(), all.clone(), all);
        let (rows, kept) = (row_paths(function, &layout), BTreeSet::new());
        Work { dom, layout, place, rows, bindable, foldable, skippable, kept }
    }

    /// Processes all pending blocks.
    fn run(mut self, ed: &mut Editor<'_>) {
        while !(self.bindable.is_empty() && self.foldable.is_empty() && self.skippable.is_empty()) {
            self.bind(ed);
            self.fold(ed);
            self.skip(ed);
        }
    }

    fn take(&self, ed: &Editor<'_>, pending: PendingBlocks) -> Vec<Block> {
        pending
            .into_iter()
            .map(|at| self.layout[at as usize])
            .filter(|b| ed.func().has_block(*b) && !self.kept.contains(b))
            .collect()
    }

    fn bind(&mut self, ed: &mut Editor<'_>) {
        let pending = std::mem::take(&mut self.bindable);
        for block in self.take(ed, pending) {
            let had_params = !ed.func().block_params(block).is_empty();
            let (changed, is_refused) = bind_params(ed, block);
            if is_refused {
                self.kept.insert(block);
            }
            if had_params && ed.func().block_params(block).is_empty() {
                self.skippable.insert(self.place[block]);
            }
            self.foldable.extend(changed.into_iter().map(|b| self.place[b]));
        }
    }

    fn fold(&mut self, ed: &mut Editor<'_>) {
        let pending = std::mem::take(&mut self.foldable);
        for block in self.take(ed, pending) {
            let Some(target) = foldable_to(ed.func(), block) else { continue };
            if ed.plan("equal-targets") {
                ed.fold_branch(ed.func().terminator(block), 0);
                self.bindable.insert(self.place[target]);
                self.skippable.insert(self.place[block]);
            } else {
                self.kept.insert(block);
            }
        }
    }

    fn can_skip(&self, function: &Function, block: Block) -> bool {
        let ways_in = function.predecessors(block);
        is_empty(function, block)
            && !self.joins_before_loop(function, block)
            && !self.begins_row(function, block)
            && !ways_in.iter().any(|e| is_arm(function, *e))
    }

    /// Whether the only way into a block is a jump that an earlier run has left to end a row.
    fn begins_row(&self, function: &Function, block: Block) -> bool {
        let jump = only_edge(function, block)
            .filter(|edge| function.inst(edge.inst).opcode == Opcode::Jump);
        jump.is_some_and(|edge| {
            let before = self.rows[function.inst_block(edge.inst)];
            is_long(before.then(RowPaths::of(1)), self.rows[block])
        })
    }

    /// Whether a block joins edges and is the only way into a loop. `licm` needs such a block as a
    /// preheader. Besides, the parameters of the loop header would be equal to the parameters of
    /// the removed join, and certificates cannot name removed parameters
    /// (`keeps_the_join_before_a_loop`).
    fn joins_before_loop(&self, function: &Function, block: Block) -> bool {
        let (end, target) = (function.terminator(block), function.successors(block)[0].block);
        let leads_back =
            |e: &Edge| e.inst == end || self.dom.dominates(target, function.inst_block(e.inst));
        let others = function.predecessors(target);
        function.predecessors(block).len() > 1 && others.iter().take(MAX_EDGES).all(leads_back)
    }

    /// Redirects edges past empty blocks, and removes the blocks.
    fn skip(&mut self, ed: &mut Editor<'_>) {
        let mut skipped: Vec<Block> = Vec::new();
        self.redirect_past(ed, &mut skipped);
        // Also without fuel: the removal belongs to the rewrites that redirected the edges.
        if !skipped.is_empty() {
            // Until now the jumps of the skipped blocks counted as edges into these targets.
            let targets: Vec<Block> =
                skipped.iter().map(|b| ed.func().successors(*b)[0].block).collect();
            ed.remove_unreachable(&skipped);
            self.bindable.extend(
                targets.into_iter().filter(|b| ed.func().has_block(*b)).map(|b| self.place[b]),
            );
        }
    }

    /// Redirects all edges into empty blocks, and adds these blocks to `skipped`. In a chain of
    /// empty blocks the last is skipped first, so that each edge is redirected once.
    fn redirect_past(&mut self, ed: &mut Editor<'_>, skipped: &mut Vec<Block>) {
        let pending = std::mem::take(&mut self.skippable);
        let mut seen: BTreeSet<Block> = BTreeSet::new();
        for mut block in self.take(ed, pending) {
            let mut row = Vec::new();
            while self.can_skip(ed.func(), block) && seen.insert(block) {
                row.push(block);
                block = ed.func().successors(block)[0].block;
            }
            for block in row.into_iter().rev() {
                // A redirected edge may have turned the block into a jump to itself.
                if self.kept.contains(&block) || !self.can_skip(ed.func(), block) {
                    continue;
                }
                if !ed.plan("empty-block") {
                    self.kept.insert(block);
                    continue;
                }
                for edge in ed.func().predecessors(block).to_vec() {
                    ed.redirect(edge);
                    let from = self.place[ed.func().inst_block(edge.inst)];
                    self.foldable.insert(from);
                    // The predecessor may have failed `can_skip` only because of its former target.
                    self.skippable.insert(from);
                }
                skipped.push(block);
            }
        }
    }
}

/// Whether a branch has one edge to an empty block, and another edge to the target of that block's
/// jump. Redirecting the first edge would give two edges to one block with different arguments. A
/// code generator would still need a block for their moves. If a later pass makes the arguments
/// equal or dead, the branch disappears. Certificates have a path past such a branch only if its
/// edges led to one block from the start (`an_arm_that_holds_nothing_stays`).
fn is_arm(function: &Function, edge: Edge) -> bool {
    let onward = function.successors(function.target(edge).block)[0].block;
    function.inst(edge.inst).targets.iter().take(MAX_EDGES).any(|to| to.block == onward)
}

/// Whether a block does nothing but jump elsewhere, and no instruction beyond it uses its
/// parameters.
fn is_empty(function: &Function, block: Block) -> bool {
    let end = function.terminator(block);
    let data = function.inst(end);
    if data.opcode != Opcode::Jump
        || function.first_inst(block) != end
        || block == function.entry()
        || data.targets[0].block == block
    {
        return false;
    }
    let only_here = |param: &Value| function.users(*param).iter().all(|user| *user == end);
    function.block_params(block).iter().all(only_here)
}

/// The only target of a branch that has several equal targets.
fn foldable_to(function: &Function, block: Block) -> Option<Block> {
    let data = function.inst(function.terminator(block));
    let is_branch = matches!(data.opcode, Opcode::BrIf | Opcode::Switch);
    let is_foldable = is_branch && data.targets.iter().all(|t| *t == data.targets[0]);
    is_foldable.then(|| data.targets[0].block)
}

/// The only edge into a block; `None` for a block with no edge or several.
fn only_edge(function: &Function, block: Block) -> Option<Edge> {
    match function.predecessors(block) {
        [edge] => Some(*edge),
        _ => None,
    }
}

/// Replaces the parameters of a block with a single incoming edge, from the last to the first that
/// is refused. Returns the blocks that used them, and whether one was refused.
fn bind_params(ed: &mut Editor<'_>, block: Block) -> (BTreeSet<Block>, bool) {
    let mut changed = BTreeSet::new();
    let Some(edge) = only_edge(ed.func(), block) else { return (changed, false) };
    // From the last parameter, so that each removal leaves the indices of the earlier parameters
    // valid.
    while let Some(&param) = ed.func().block_params(block).last() {
        if !ed.plan("one-way-in") {
            return (changed, true);
        }
        let args = &ed.func().target(edge).args;
        let arg = *args.last().expect("an edge has an argument for each parameter");
        let users = ed.func().users(param);
        if !users.is_empty() {
            changed.extend(users.iter().map(|u| ed.func().inst_block(*u)));
            ed.replace_all(param, arg);
        }
        let index = ed.func().block_params(block).len() - 1;
        ed.remove_block_param(block, index);
    }
    (changed, false)
}

/// The most jumps of a row that are merged. A path of mappings has 64 at most. Two rows may meet in
/// a block that an earlier run has merged up to this limit, and a part of one remains between.
const MAX_ROW: usize = 24;

fn merge(ed: &mut Editor<'_>) {
    let blocks: Vec<Block> = ed.func().blocks().collect();
    let mut rows = row_paths(ed.func(), &blocks);
    for block in blocks {
        // The merged block may itself end in a jump that can be merged.
        while ed.func().has_block(block) && can_merge(ed.func(), block) {
            let next = ed.func().successors(block)[0].block;
            let before = rows[block].then(RowPaths::of(1));
            if is_long(before, rows[next]) || !ed.plan("straight-line") {
                break;
            }
            rows[block] = before.then(rows[next]);
            ed.merge_blocks(block);
        }
    }
}

/// Whether the row that ends one path and begins the next path is too long.
fn is_long(before: RowPaths, next: RowPaths) -> bool {
    before.last.saturating_add(next.first) > MAX_ROW
}

/// The paths through each block. Where nothing ends a path in a block, the blocks whose ids are
/// missing behind it count as merged into it: an earlier run may have ended a row there. If this
/// run continued the row, each run would make rows longer.
fn row_paths(function: &Function, blocks: &[Block]) -> SecondaryMap<Block, RowPaths> {
    let mut rows = SecondaryMap::new();
    for (at, &block) in blocks.iter().enumerate() {
        let end = function.terminator(block);
        let ends = |inst| {
            let opcode = function.inst(inst).opcode;
            !opcode.is_effect_free() || function.may_trap(inst)
        };
        let missing = || {
            let next = blocks.get(at + 1).map_or(function.block_bound(), |next| next.index());
            next.saturating_sub(block.index() + 1)
        };
        let is_ended = function.block_insts(block).any(|inst| inst != end && ends(inst));
        rows[block] = if is_ended { RowPaths::END } else { RowPaths::of(missing()) };
    }
    rows
}

/// Whether a block ends in a jump that is the only edge into its target.
fn can_merge(function: &Function, block: Block) -> bool {
    let data = function.inst(function.terminator(block));
    data.opcode == Opcode::Jump
        && data.targets[0].block != block
        && data.targets[0].block != function.entry()
        && data.targets[0].args.is_empty()
        && only_edge(function, data.targets[0].block).is_some()
}
