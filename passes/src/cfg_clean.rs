//! Cleaning of the control-flow graph.
//!
//! *Does*: removes unreachable blocks; turns a branch whose targets are all the same, arguments included,
//! into a jump; binds the parameters of a block with one way in to their arguments; merges a block with
//! its only successor when that has no other way in.
//!
//! *Does not*: remove an empty block on an edge between a branch and a join: the edge would have to be
//! redirected, and the jump in it is a point of its own.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: no block with one predecessor has parameters; no jump leads to a block that only it
//! leads to.
//!
//! *Actions emitted*: `remove_unreachable`, `fold_branch`, `replace_all`, `remove_block_param`,
//! `merge_blocks`.
//!
//! *Effect on mappings*: the jump of a merged block is no anchor any more; the points around it fall into
//! one gap.
//!
//! *Why correct*: a block entered by one edge alone executes right after it, with exactly its arguments.
//!
//! *Cost*: linear in blocks, instructions and edges, times the length of chains of branches that become
//! foldable one after the other.

use ir::cfg::Cfg;
use ir::edit::{Editor, Pass};
use ir::{Block, Edge, Function, Opcode};

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct CfgClean;

impl Pass for CfgClean {
    fn name(&self) -> &'static str {
        "cfg_clean"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let mut go_on = remove_unreachable(ed);
        let blocks: Vec<Block> = ed.func().blocks().collect();
        // Binding may make the arguments of two edges equal, and folding may leave a block one way in.
        let mut seen = ed.action_count() + 1;
        while go_on && seen != ed.action_count() {
            seen = ed.action_count();
            go_on = bind_params(ed, &blocks) && fold_branches(ed, &blocks);
        }
        let _ = go_on && merge(ed, &blocks);
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

fn fold_branches(ed: &mut Editor<'_>, blocks: &[Block]) -> bool {
    for &block in blocks {
        let inst = ed.func().terminator(block);
        let data = ed.func().inst(inst);
        let is_branch = matches!(data.opcode, Opcode::BrIf | Opcode::Switch);
        if is_branch && data.targets.iter().all(|t| *t == data.targets[0]) {
            if !ed.plan("equal-targets") {
                return false;
            }
            ed.fold_branch(inst, 0);
        }
    }
    true
}

/// The edge that alone leads to a block.
fn only_edge(function: &Function, block: Block) -> Option<Edge> {
    match function.predecessors(block) {
        [edge] => Some(*edge),
        _ => None,
    }
}

fn bind_params(ed: &mut Editor<'_>, blocks: &[Block]) -> bool {
    for &block in blocks {
        let Some(edge) = only_edge(ed.func(), block) else { continue };
        while let Some(&param) = ed.func().block_params(block).last() {
            if !ed.plan("one-way-in") {
                return false;
            }
            let args = &ed.func().target(edge).args;
            let arg = *args.last().expect("an edge has an argument for each parameter");
            if !ed.func().users(param).is_empty() {
                ed.replace_all(param, arg);
            }
            let index = ed.func().block_params(block).len() - 1;
            ed.remove_block_param(block, index);
        }
    }
    true
}

fn merge(ed: &mut Editor<'_>, blocks: &[Block]) -> bool {
    for &block in blocks {
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
