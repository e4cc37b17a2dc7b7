//! Jump threading.
//!
//! *Does*: sends an edge past a block that ends in a branch, when constants among the edge's
//! arguments decide the branch, straight to where it leads.
//!
//! *Does not*: copy what the block computes for use beyond it; pass by a loop header (the loop
//! would have a second way in), or blocks of many instructions; see constants that only a
//! dominating branch implies. It leaves a block alone of which one way would be left, if the branch
//! hands on what it is given: the parameter would be taken for that by whatever comes next, and
//! nothing in a certificate says why what it is handed on to is the same in both versions.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: no unreachable block.
//!
//! *Actions emitted*: `redirect`, `remove_unreachable`.
//!
//! *Effect on mappings*: the branch is still an anchor for the other ways, and is not met on this
//! one; certificates list it as one that lines go on past. From the block passed by there is no way
//! to the version after, which may not have come there; there is one back. A later pass that takes
//! the parameter of the block left for its only argument can cost a function its entries:
//! certificates compare conditions as classes.
//!
//! *In no named pipeline*: behind `O2` it sends 325 edges of bzip2, zlib, Lua and SQLite on, which
//! removes 4 instructions of Lua and none of the others (62,110 of SQLite's are gone before), only
//! branches executed, and costs up to 0.4 % of their points. Whoever wants it says
//! `--pipeline O2,thread`.
//!
//! *Why correct*: the editor evaluates the block with the constants, and admits only blocks in
//! which nothing is missed.
//!
//! *Cost*: linear in edges, times the length of blocks, which is bounded.

use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Editor, Pass, way_past};
use ir::{Block, Edge, Function, Opcode, Value};

/// Instructions of a block that is looked at.
const MAX_INSTS: usize = 8;

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Thread;

impl Pass for Thread {
    fn name(&self) -> &'static str {
        "thread"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let cfg = Cfg::new(ed.func());
        let dom = DomTree::new(ed.func(), &cfg);
        let blocks: Vec<Block> =
            cfg.rpo().iter().copied().filter(|b| is_candidate(ed.func(), &dom, *b)).collect();
        for block in blocks {
            for (edge, index) in decided(ed.func(), block) {
                if !ed.plan("decided-by-arguments") {
                    return;
                }
                ed.redirect(edge, index);
            }
        }
        let cfg = Cfg::new(ed.func());
        let unreachable: Vec<Block> =
            ed.func().blocks().filter(|b| !cfg.is_reachable(*b)).collect();
        if !unreachable.is_empty() && ed.plan("unreachable") {
            ed.remove_unreachable(&unreachable);
        }
    }
}

/// Whether edges may be sent past a block: a short one that ends in a branch and is no loop header.
fn is_candidate(f: &Function, dom: &DomTree, block: Block) -> bool {
    let ends_in_branch =
        matches!(f.inst(f.terminator(block)).opcode, Opcode::BrIf | Opcode::Switch);
    let leads_back = |e: &Edge| dom.dominates(block, f.inst_block(e.inst));
    ends_in_branch
        && block != f.entry()
        && f.block_insts(block).take(MAX_INSTS + 1).count() <= MAX_INSTS
        && !f.predecessors(block).iter().any(leads_back)
}

/// The edges into a block that its branch is decided on, with the target it goes on at; none if
/// what is left of the block could not be followed after other passes.
fn decided(f: &Function, block: Block) -> Vec<(Edge, u32)> {
    let edges = f.predecessors(block);
    let decided: Vec<(Edge, u32)> =
        edges.iter().filter_map(|e| Some((*e, way_past(f, *e).ok()?))).collect();
    let left: Vec<Edge> =
        edges.iter().copied().filter(|e| decided.iter().all(|(d, _)| d != e)).collect();
    // A parameter that receives one thing on all ways that are left will be taken for that. What it
    // is handed on to was given something else in the version before, and certificates know of no
    // reason why that is equal.
    let targets = &f.inst(f.terminator(block)).targets;
    let is_handed_on = |param: &Value| targets.iter().any(|t| t.args.contains(param));
    let receives_one = |index: usize| {
        let mut given = left.iter().map(|e| f.target(*e).args[index]);
        given.next().is_some_and(|first| given.all(|other| other == first))
    };
    let mut params = f.block_params(block).iter().enumerate();
    if params.any(|(index, param)| is_handed_on(param) && receives_one(index)) {
        Vec::new()
    } else {
        decided
    }
}
