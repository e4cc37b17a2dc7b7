//! Cleaning of the control-flow graph.
//!
//! *Does*: removes unreachable blocks; turns a branch whose targets are all the same, arguments
//! included, into a jump; binds the parameters of a block with one way in to their arguments; sends
//! the edges to an empty block on to where it jumps; merges a block with its only successor when
//! that has no other way in.
//!
//! *Does not*: fold branches on constants (`sccp` does, with all that follows from it); send an
//! edge past a branch that its arguments decide (the editor can, certificates have no line past
//! it); make a `select` of a branch to one block with different arguments: what arrives there would
//! be equal to the `select` on each edge for a reason of its own, which certificates cannot say.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: no block with one predecessor has parameters; no jump leads to a block that
//! only it leads to; no block consists of a jump, but one whose parameters are used beyond it, one
//! to itself, one where edges meet before a loop, and an arm of a branch the other arm of which is
//! where it jumps.
//!
//! *Actions emitted*: `remove_unreachable`, `fold_branch`, `replace_all`, `remove_block_param`,
//! `redirect`, `merge_blocks`.
//!
//! *Effect on mappings*: the jump of a merged or an empty block is no anchor any more; the points
//! around it fall into one gap. From an empty block a transition takes its jump first.
//!
//! *Why correct*: a block entered by one edge alone executes right after it, with exactly its
//! arguments. Of a block that only jumps nothing but its jump is missed; what it hands on is an
//! argument of the edge, or dominates the block and so what leads there.
//!
//! *Cost*: near linear in blocks, instructions and edges: a block is looked at again only when a
//! branch or an edge of its own has changed.

use cranelift_entity::SecondaryMap;
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
        let _ = remove_unreachable(ed) && Work::new(ed.func()).run(ed) && merge(ed);
    }
}

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

/// Edges looked at to see whether a block is the only way into a loop, which with more it is taken
/// to be, or an arm of a branch, which with more it is taken not to be.
const MAX_EDGES: usize = 64;

/// Blocks to look at, by their places in the layout, so that rounds go through it in order.
type Pending = BTreeSet<u32>;

/// What is still to be looked at. Binding may make the arguments of two edges equal, folding may
/// leave a block one way in or nothing but a jump, and sending edges on may do either; each says
/// where, so a chain of blocks that enable one another costs no more than as many that do not: the
/// test `a_chain_of_folds_is_not_walked_once_for_each` breaks otherwise.
struct Work {
    /// Of the function as it was: what dominates what does not change for the blocks that stay.
    dom: DomTree,
    layout: Vec<Block>,
    place: SecondaryMap<Block, u32>,
    bindable: Pending,
    foldable: Pending,
    skippable: Pending,
}

impl Work {
    fn new(function: &Function) -> Work {
        let layout: Vec<Block> = function.blocks().collect();
        let mut place: SecondaryMap<Block, u32> = SecondaryMap::new();
        for (at, block) in layout.iter().enumerate() {
            place[*block] = at as u32;
        }
        let all: Pending = (0..layout.len() as u32).collect();
        let dom = DomTree::new(function, &Cfg::new(function));
        Work { dom, layout, place, bindable: all.clone(), foldable: all.clone(), skippable: all }
    }

    /// Whether there was fuel for all of it.
    fn run(mut self, ed: &mut Editor<'_>) -> bool {
        while !(self.bindable.is_empty() && self.foldable.is_empty() && self.skippable.is_empty()) {
            if !(self.bind(ed) && self.fold(ed) && self.skip(ed)) {
                return false;
            }
        }
        true
    }

    fn take(&self, ed: &Editor<'_>, pending: Pending) -> Vec<Block> {
        pending
            .into_iter()
            .map(|at| self.layout[at as usize])
            .filter(|b| ed.func().has_block(*b))
            .collect()
    }

    fn bind(&mut self, ed: &mut Editor<'_>) -> bool {
        let pending = std::mem::take(&mut self.bindable);
        for block in self.take(ed, pending) {
            let had_params = !ed.func().block_params(block).is_empty();
            let Some(changed) = bind_params(ed, block) else { return false };
            if had_params && ed.func().block_params(block).is_empty() {
                self.skippable.insert(self.place[block]);
            }
            self.foldable.extend(changed.into_iter().map(|b| self.place[b]));
        }
        true
    }

    fn fold(&mut self, ed: &mut Editor<'_>) -> bool {
        let pending = std::mem::take(&mut self.foldable);
        for block in self.take(ed, pending) {
            let Some(target) = fold_branch(ed, block) else { return false };
            if let Some(target) = target {
                self.bindable.insert(self.place[target]);
                self.skippable.insert(self.place[block]);
            }
        }
        true
    }

    fn can_skip(&self, function: &Function, block: Block) -> bool {
        let ways_in = function.predecessors(block);
        is_empty(function, block)
            && !self.joins_before_loop(function, block)
            && !ways_in.iter().any(|e| is_arm(function, *e))
    }

    /// Whether edges meet in a block that is the only way into a loop. Whoever moves something out
    /// of the loop wants it. And what the loop carries would be equal to what meets there, which
    /// would be gone: certificates do not name it (`keeps_the_join_before_a_loop`).
    fn joins_before_loop(&self, function: &Function, block: Block) -> bool {
        let (end, target) = (function.terminator(block), function.successors(block)[0].block);
        let leads_back =
            |e: &Edge| e.inst == end || self.dom.dominates(target, function.inst_block(e.inst));
        let others = function.predecessors(target);
        function.predecessors(block).len() > 1 && others.iter().take(MAX_EDGES).all(leads_back)
    }

    /// Sends edges on past empty blocks, and removes these. In a row of such blocks the last comes
    /// first, so that each edge is sent on once.
    fn skip(&mut self, ed: &mut Editor<'_>) -> bool {
        let pending = std::mem::take(&mut self.skippable);
        let mut skipped: Vec<Block> = Vec::new();
        let mut seen: BTreeSet<Block> = BTreeSet::new();
        for mut block in self.take(ed, pending) {
            let mut row = Vec::new();
            while self.can_skip(ed.func(), block) && seen.insert(block) {
                row.push(block);
                block = ed.func().successors(block)[0].block;
            }
            for block in row.into_iter().rev() {
                // What was sent on may have come to lead to itself.
                if !self.can_skip(ed.func(), block) {
                    continue;
                }
                if !ed.plan("empty-block") {
                    return false;
                }
                for edge in ed.func().predecessors(block).to_vec() {
                    ed.redirect(edge, 0);
                    let from = self.place[ed.func().inst_block(edge.inst)];
                    self.foldable.insert(from);
                    // It may not have been empty only because of where it led.
                    self.skippable.insert(from);
                }
                skipped.push(block);
            }
        }
        if skipped.is_empty() {
            return true;
        }
        // Their jumps led there until now.
        let targets: Vec<Block> =
            skipped.iter().map(|b| ed.func().successors(*b)[0].block).collect();
        let planned = ed.plan("empty-block");
        if planned {
            ed.remove_unreachable(&skipped);
            self.bindable.extend(
                targets.into_iter().filter(|b| ed.func().has_block(*b)).map(|b| self.place[b]),
            );
        }
        planned
    }
}

/// Whether a branch has one edge to an empty block, and another to where that jumps. Sent on, the
/// first would be an edge to the same block with other arguments, which have to be moved somewhere
/// anyway. And when these become equal, or nobody needs them any more, the branch goes;
/// certificates have a line past it only if its edges led to one block to begin with
/// (`an_arm_that_holds_nothing_stays`).
fn is_arm(function: &Function, edge: Edge) -> bool {
    let onward = function.successors(function.target(edge).block)[0].block;
    function.inst(edge.inst).targets.iter().take(MAX_EDGES).any(|to| to.block == onward)
}

/// Whether a block does nothing but jump elsewhere, and nothing beyond it uses its parameters.
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

/// The block that lost ways in, if the branch was folded; `None` when the fuel is out.
fn fold_branch(ed: &mut Editor<'_>, block: Block) -> Option<Option<Block>> {
    let inst = ed.func().terminator(block);
    let data = ed.func().inst(inst);
    let is_branch = matches!(data.opcode, Opcode::BrIf | Opcode::Switch);
    if !is_branch || data.targets.iter().any(|t| *t != data.targets[0]) {
        return Some(None);
    }
    let target = data.targets[0].block;
    if !ed.plan("equal-targets") {
        return None;
    }
    ed.fold_branch(inst, 0);
    Some(Some(target))
}

/// The edge that alone leads to a block.
fn only_edge(function: &Function, block: Block) -> Option<Edge> {
    match function.predecessors(block) {
        [edge] => Some(*edge),
        _ => None,
    }
}

/// The blocks where a parameter that was bound was used; `None` when the fuel is out.
fn bind_params(ed: &mut Editor<'_>, block: Block) -> Option<BTreeSet<Block>> {
    let mut changed = BTreeSet::new();
    let Some(edge) = only_edge(ed.func(), block) else { return Some(changed) };
    while let Some(&param) = ed.func().block_params(block).last() {
        if !ed.plan("one-way-in") {
            return None;
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
    Some(changed)
}

fn merge(ed: &mut Editor<'_>) -> bool {
    let blocks: Vec<Block> = ed.func().blocks().collect();
    for block in blocks {
        // Whatever is merged into the block may end in a jump that can be merged as well.
        while ed.func().has_block(block) && can_merge(ed.func(), block) {
            if !ed.plan("straight-line") {
                return false;
            }
            ed.merge_blocks(block);
        }
    }
    true
}

/// Whether a block ends in a jump to another that nothing else leads to.
fn can_merge(function: &Function, block: Block) -> bool {
    let data = function.inst(function.terminator(block));
    data.opcode == Opcode::Jump
        && data.targets[0].block != block
        && data.targets[0].block != function.entry()
        && data.targets[0].args.is_empty()
        && only_edge(function, data.targets[0].block).is_some()
}
