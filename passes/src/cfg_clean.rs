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
//! *Cost*: near linear in blocks, instructions and edges: a block is looked at again only when a branch
//! or an edge of its own has changed.

use cranelift_entity::SecondaryMap;
use ir::cfg::Cfg;
use ir::edit::{Editor, Pass};
use ir::seeded::{Bug, seeded};
use ir::{Block, Edge, Function, Opcode, Target};
use std::collections::BTreeSet;

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct CfgClean;

impl Pass for CfgClean {
    fn name(&self) -> &'static str {
        "cfg_clean"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let _ = remove_unreachable(ed) && bind_and_fold(ed) && merge(ed);
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

/// Blocks to look at, by their places in the layout, so that rounds go through it in order.
type Pending = BTreeSet<u32>;

/// Binding may make the arguments of two edges equal, and folding may leave a block one way in; each says
/// where, so a chain of branches that enable one another costs no more than as many that do not: the
/// test `a_chain_of_folds_is_not_walked_once_for_each` breaks otherwise.
fn bind_and_fold(ed: &mut Editor<'_>) -> bool {
    let layout: Vec<Block> = ed.func().blocks().collect();
    let mut place: SecondaryMap<Block, u32> = SecondaryMap::new();
    for (at, block) in layout.iter().enumerate() {
        place[*block] = at as u32;
    }
    let mut bindable: Pending = (0..layout.len() as u32).collect();
    let mut foldable = bindable.clone();
    while !bindable.is_empty() {
        for at in std::mem::take(&mut bindable) {
            let Some(changed) = bind_params(ed, layout[at as usize]) else { return false };
            foldable.extend(changed.into_iter().map(|b| place[b]));
        }
        for at in std::mem::take(&mut foldable) {
            let Some(target) = fold_branch(ed, layout[at as usize]) else { return false };
            bindable.extend(target.map(|b| place[b]));
        }
    }
    true
}

/// The block that lost ways in, if the branch was folded; `None` when the fuel is out.
fn fold_branch(ed: &mut Editor<'_>, block: Block) -> Option<Option<Block>> {
    let inst = ed.func().terminator(block);
    let data = ed.func().inst(inst);
    let is_branch = matches!(data.opcode, Opcode::BrIf | Opcode::Switch);
    let differs = |t: &Target| match seeded(Bug::CfgFoldsOtherArguments) {
        true => t.block != data.targets[0].block,
        false => *t != data.targets[0],
    };
    let count = data.targets.len() - usize::from(data.targets.len() > 2 && seeded(Bug::CfgFoldsAllButLast));
    if !is_branch || data.targets[..count].iter().any(differs) {
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
    let first = |f: &Function| f.predecessors(block).first().copied().filter(|_| seeded(Bug::CfgBindsFirstEdge));
    let edge = only_edge(ed.func(), block).or_else(|| first(ed.func()).filter(|_| block != ed.func().entry()));
    let Some(edge) = edge else { return Some(changed) };
    while let Some(&param) = ed.func().block_params(block).last() {
        if !ed.plan("one-way-in") {
            return None;
        }
        let args = &ed.func().target(edge).args;
        let arg = if seeded(Bug::CfgBindsFirstArgument) { args.first() } else { args.last() };
        let arg = *arg.expect("an edge has an argument for each parameter");
        let users = ed.func().users(param);
        if !users.is_empty() && !seeded(Bug::CfgForgetsUses) {
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
        && (only_edge(function, data.targets[0].block).is_some() || seeded(Bug::CfgMergesJoins))
}
