//! Sinking of partially dead code.
//!
//! *Does*: moves an operation whose result only one arm of a branch uses into that arm. It picks
//! the innermost arm that holds all uses and is in no further loop. An operation moves out of a
//! loop if only code after the loop uses the result.
//!
//! *Does not*: move an operation that may trap (it would no longer trap on the other arm), and so
//! no loads; move a read of a global or a size, except into an arm directly below, with no write
//! between; duplicate an operation that several arms use; split an edge that alone passes a result
//! as an argument; move an operation that would keep more operands alive than results it frees.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: no operation that the pass could move is above the arm that uses it.
//!
//! *Actions emitted*: `sink`.
//!
//! *Effect on mappings*: above the arm, a backward transition computes the result from its
//! operands. The operands dominate the old place, and become kept values where they are not live.
//!
//! *Why correct*: the arm dominates all uses, and the old place dominates the arm, so the operands
//! are available there. In strict SSA, an operand that dominates the old place is not defined again
//! before the arm unless control passes the old place again. A moved operation cannot trap and
//! reads nothing that is written in between.
//!
//! *Cost*: linear in instructions and operands, times a bound on the arms examined for each.

use cranelift_entity::{EntityRef, SecondaryMap};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Editor, Pass};
use ir::loops::LoopForest;
use ir::{Block, Effects, Function, Inst, Value};
use std::collections::BTreeSet;

/// Uses of a result beyond which it stays: a bound on cost.
const MAX_USERS: usize = 32;

/// Arms examined for one operation, from the innermost outward: a bound on cost.
const MAX_ARMS: usize = 16;

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Sink;

impl Pass for Sink {
    fn name(&self) -> &'static str {
        "sink"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let mut kept = BTreeSet::new();
        while let Some(refused) = move_down(ed, &kept) {
            if !(ed.has_fuel() && kept.insert(refused)) {
                return;
            }
        }
    }
}

/// Moves all operations except the operations to keep. Stops at the first refused move and returns
/// its operation: its operands have a use above now, so the caller plans the other moves anew.
fn move_down(ed: &mut Editor<'_>, kept: &BTreeSet<Inst>) -> Option<Inst> {
    for (inst, arm) in SinkSearch::run(ed.func(), kept) {
        if !ed.plan("used-in-one-arm") {
            return Some(inst);
        }
        // Users move before their operands, so an operation goes in front of the operations moved
        // before.
        ed.sink(inst, ed.func().first_inst(arm));
    }
    None
}

struct SinkSearch<'f> {
    f: &'f Function,
    dom: DomTree,
    forest: LoopForest,
    /// By block: the nearest arm of a branch that dominates it, possibly itself.
    arm: SecondaryMap<Block, Option<Block>>,
    /// By instruction index: the arm it moves to.
    moved: Vec<Option<Block>>,
}

impl SinkSearch<'_> {
    /// The instructions to move with their arms; users before their operands.
    fn run(f: &Function, kept: &BTreeSet<Inst>) -> Vec<(Inst, Block)> {
        let cfg = Cfg::new(f);
        let (dom, forest) = (DomTree::new(f, &cfg), LoopForest::new(f, &cfg));
        let mut search = SinkSearch {
            f,
            dom,
            forest,
            arm: SecondaryMap::new(),
            moved: vec![None; f.inst_bound()],
        };
        for n in 0..search.dom.preorder().len() {
            let block = search.dom.preorder()[n];
            let above = search.dom.idom(block).and_then(|b| search.arm[b]);
            search.arm[block] = if is_arm(f, block) { Some(block) } else { above };
        }
        let mut moves = Vec::new();
        for &block in cfg.rpo().iter().rev() {
            let insts: Vec<Inst> = f.block_insts(block).collect();
            for &inst in insts.iter().rev().filter(|i| !kept.contains(i)) {
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
        // From the innermost arm outward. In a further loop the operation would be repeated
        // (`not_into_a_loop.oir`).
        let mut fitting = below.filter(|arm| {
            let holds_uses =
                || users.iter().all(|user| self.dom.dominates(*arm, self.place(*user)));
            self.is_in_no_other_loop(*arm, home) && holds_uses()
        });
        let arm = fitting.next()?;
        let reads = data.opcode.effects().has(Effects::READS);
        (!(reads && self.may_be_written(inst, arm)) && self.pays(inst)).then_some(arm)
    }

    /// The block of an instruction after the moves decided so far.
    fn place(&self, inst: Inst) -> Block {
        self.moved[inst.index()].unwrap_or(self.f.inst_block(inst))
    }

    fn is_in_no_other_loop(&self, arm: Block, home: Block) -> bool {
        let around = self.forest.innermost(arm);
        around.is_none_or(|id| self.forest.contains(id, home))
    }

    /// Whether an instruction between `inst` and an arm may write. The search covers only an arm
    /// directly below the block of the instruction; for any other arm the answer is `true`.
    fn may_be_written(&self, inst: Inst, arm: Block) -> bool {
        let home = self.f.inst_block(inst);
        let behind = std::iter::successors(Some(inst), |i| self.f.next_inst(*i));
        let mut writes = behind.map(|i| self.f.inst(i).opcode.effects().has(Effects::WRITES));
        self.dom.idom(arm) != Some(home) || writes.any(|w| w)
    }

    /// Whether the move lengthens the live range of at most one operand, which is one that only
    /// this instruction uses. The live range of the result shrinks.
    fn pays(&self, inst: Inst) -> bool {
        let is_last = |v: &&Value| self.f.constant(**v).is_none() && self.f.users(**v).len() == 1;
        self.f.inst(inst).args.iter().filter(is_last).count() <= 1
    }
}

/// Whether a block has a single incoming edge, and that edge comes from a branch.
fn is_arm(f: &Function, block: Block) -> bool {
    match f.predecessors(block) {
        [edge] => f.inst(edge.inst).targets.len() > 1,
        _ => false,
    }
}
