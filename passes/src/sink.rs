//! Sinking of partially dead code.
//!
//! *Does*: moves an operation whose result only one arm of a branch uses into that arm, the
//! innermost one that holds all uses, but into no loop; out of a loop when only what follows it
//! uses the result.
//!
//! *Does not*: move what may trap (on the other arm it would not trap any more), and so no loads;
//! move a read of a global or a size but into an arm right below, with no write between; copy what
//! several arms use; split an edge that alone uses a result as its argument; move an operation that
//! would keep more operands alive than results it keeps from being alive.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: nothing that could move is above the arm that uses it.
//!
//! *Actions emitted*: `sink`.
//!
//! *Effect on mappings*: from the version after, above the arm, the result has to be computed,
//! which its operands allow; they dominate the place it left and are kept where nobody else needs
//! them.
//!
//! *Why correct*: the arm dominates all uses, and the old place dominates the arm, so operands are
//! available there. In strict SSA an operand that dominates the old place is not defined again
//! before the arm without the old place being passed again. What moves cannot trap and reads
//! nothing that is written in between.
//!
//! *Cost*: linear in instructions and operands, times a bound on the arms looked at for each.

use cranelift_entity::{EntityRef, SecondaryMap};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Editor, Pass};
use ir::loops::LoopForest;
use ir::{Block, Effects, Function, Inst, Value};

/// Uses of a result, beyond which it stays where it is.
const MAX_USERS: usize = 32;

/// Arms looked at for one operation, from the innermost outward.
const MAX_ARMS: usize = 16;

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Sink;

impl Pass for Sink {
    fn name(&self) -> &'static str {
        "sink"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        for (inst, arm) in Search::run(ed.func()) {
            if !ed.plan("used-in-one-arm") {
                return;
            }
            // In front of what was moved there before: of that, nothing is an operand of this.
            ed.sink(inst, ed.func().first_inst(arm));
        }
    }
}

struct Search<'f> {
    f: &'f Function,
    dom: DomTree,
    forest: LoopForest,
    /// By block: the nearest arm of a branch that dominates it, perhaps itself.
    arm: SecondaryMap<Block, Option<Block>>,
    /// By instruction index: the arm it moves to.
    moved: Vec<Option<Block>>,
}

impl Search<'_> {
    /// What moves where; users before what they use.
    fn run(f: &Function) -> Vec<(Inst, Block)> {
        let cfg = Cfg::new(f);
        let (dom, forest) = (DomTree::new(f, &cfg), LoopForest::new(f, &cfg));
        let mut search =
            Search { f, dom, forest, arm: SecondaryMap::new(), moved: vec![None; f.inst_bound()] };
        for n in 0..search.dom.preorder().len() {
            let block = search.dom.preorder()[n];
            let above = search.dom.idom(block).and_then(|b| search.arm[b]);
            search.arm[block] = if is_arm(f, block) { Some(block) } else { above };
        }
        let mut moves = Vec::new();
        for &block in cfg.rpo().iter().rev() {
            let insts: Vec<Inst> = f.block_insts(block).collect();
            for &inst in insts.iter().rev() {
                if let Some(arm) = search.destination(inst, block) {
                    search.moved[inst.index()] = Some(arm);
                    moves.push((inst, arm));
                }
            }
        }
        moves
    }

    /// The innermost arm that an instruction can move to.
    fn destination(&self, inst: Inst, home: Block) -> Option<Block> {
        let data = self.f.inst(inst);
        if !data.opcode.is_effect_free() || self.f.may_trap(inst) {
            return None;
        }
        let users = self.f.users(data.result()?);
        let first = *users.first().filter(|_| users.len() <= MAX_USERS)?;
        let arms = std::iter::successors(self.arm[self.place(first)], |arm| {
            self.arm[self.dom.idom(*arm)?]
        });
        let below =
            arms.take(MAX_ARMS).take_while(|arm| *arm != home && self.dom.dominates(home, *arm));
        let mut fitting = below.filter(|arm| {
            let holds_uses =
                || users.iter().all(|user| self.dom.dominates(*arm, self.place(*user)));
            self.is_in_no_other_loop(*arm, home) && holds_uses()
        });
        let arm = fitting.next()?;
        let reads = data.opcode.effects().has(Effects::READS);
        (!(reads && self.may_be_written(inst, arm)) && self.pays(inst)).then_some(arm)
    }

    /// The block an instruction stands in once what was decided has moved.
    fn place(&self, inst: Inst) -> Block {
        self.moved[inst.index()].unwrap_or(self.f.inst_block(inst))
    }

    fn is_in_no_other_loop(&self, arm: Block, home: Block) -> bool {
        let around = self.forest.innermost(arm);
        around.is_none_or(|id| self.forest.contains(id, home))
    }

    /// Whether anything is written between an instruction and an arm, as far as that is looked
    /// into.
    fn may_be_written(&self, inst: Inst, arm: Block) -> bool {
        let home = self.f.inst_block(inst);
        let behind = std::iter::successors(Some(inst), |i| self.f.next_inst(*i));
        let mut writes = behind.map(|i| self.f.inst(i).opcode.effects().has(Effects::WRITES));
        self.dom.idom(arm) != Some(home) || writes.any(|w| w)
    }

    /// Whether at most one operand is alive for longer: one that is used here alone. The result is
    /// for less.
    fn pays(&self, inst: Inst) -> bool {
        let is_last = |v: &&Value| self.f.constant(**v).is_none() && self.f.users(**v).len() == 1;
        self.f.inst(inst).args.iter().filter(is_last).count() <= 1
    }
}

/// Whether a block is entered by one edge alone, out of a branch.
fn is_arm(f: &Function, block: Block) -> bool {
    match f.predecessors(block) {
        [edge] => f.inst(edge.inst).targets.len() > 1,
        _ => false,
    }
}
