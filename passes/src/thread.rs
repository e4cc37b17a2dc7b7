//! Jump threading.
//!
//! *Does*: where constants among the arguments of an edge decide the branch at the end of its
//! target, redirects the edge past that block, directly to the target that the branch takes.
//!
//! *Does not*: copy operations of the block for uses beyond it; redirect past a loop header (the
//! loop would get a second entry), or past a block of many instructions; use constants that only a
//! dominating branch implies. The pass leaves a block alone if its parameter would keep a single
//! incoming value and the branch passes that parameter on. A later pass would replace such a
//! parameter, and certificates have no argument why the receiver is the same in both versions.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: no unreachable block.
//!
//! *Actions emitted*: `redirect`, `remove_unreachable`.
//!
//! *Effect on mappings*: the branch remains an anchor on the other paths and is absent from the
//! redirected one. Certificates list it as a branch that paths continue past. A skipped block has
//! backward entries, but no forward ones: on that path, the target version does not reach the
//! block. Run `thread` last: a later pass may replace the parameter of a block with a single
//! remaining predecessor. The function may then lose entries, since certificates compare conditions
//! as classes.
//!
//! *In no named pipeline*: after `O2` it redirects 325 edges of bzip2, zlib, Lua and SQLite. This
//! removes 4 instructions of Lua and none of the other three programs. The only gain is fewer
//! executed branches, and up to 0.4 % of the points lose their entries. To use it, run `--pipeline
//! O2,thread`.
//!
//! *Why correct*: the editor evaluates the block with the constants. It admits only blocks whose
//! instructions have no effect, cannot trap, and have no use elsewhere.
//!
//! *Cost*: linear in edges, times the length of blocks, which is bounded.

use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Editor, Pass, way_past};
use ir::{Block, Edge, Function, Opcode, Value};

/// The most instructions that a skipped block may have: a bound on cost.
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
                if ed.plan("decided-by-arguments") {
                    ed.redirect(edge, index);
                }
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

/// Whether edges may be redirected past a block: a short one that ends in a branch and is no loop
/// header.
fn is_candidate(f: &Function, dom: &DomTree, block: Block) -> bool {
    let ends_in_branch =
        matches!(f.inst(f.terminator(block)).opcode, Opcode::BrIf | Opcode::Switch);
    let leads_back = |e: &Edge| dom.dominates(block, f.inst_block(e.inst));
    ends_in_branch
        && block != f.entry()
        && f.block_insts(block).take(MAX_INSTS + 1).count() <= MAX_INSTS
        && !f.predecessors(block).iter().any(leads_back)
}

/// The edges into a block whose arguments decide its branch, each with the index of the target
/// taken. Empty if a later pass could make the rest of the block impossible to certify.
fn decided(f: &Function, block: Block) -> Vec<(Edge, u32)> {
    let edges = f.predecessors(block);
    let decided: Vec<(Edge, u32)> =
        edges.iter().filter_map(|e| Some((*e, way_past(f, *e).ok()?))).collect();
    let left: Vec<Edge> =
        edges.iter().copied().filter(|e| decided.iter().all(|(d, _)| d != e)).collect();
    // A later pass replaces a parameter that receives one value on all remaining edges. The
    // receiver of that parameter had another argument in the version before, and certificates have
    // no argument why the two are equal.
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
