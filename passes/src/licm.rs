//! Loop-invariant code motion.
//!
//! *Does*: moves an operation whose operands are defined outside a loop to the loop's preheader,
//! and on through the outer loops as far as the same holds. An operation that may trap or reads
//! memory moves only from the header, and only if no instruction that stays before it there has an
//! effect or may trap. A read moves only out of a loop that writes nothing; a read that cannot trap
//! (of a global or a size) moves from any block of such a loop.
//!
//! *Does not*: create preheaders (`preheaders` and `loop_canon` do); move constants for their own
//! sake. A code generator materializes a constant at its use for less than the cost of a register
//! across a loop. The same holds for the sum, difference or bitwise operation of a value and a
//! constant. Both move along with an operation that needs them.
//!
//! *Needs on entry*: a preheader for each loop out of which operations should move.
//!
//! *Holds on exit*: a loop with a preheader contains no operation that the pass could move, except
//! the cheap operations that a code generator computes at each use.
//!
//! *Actions emitted*: `hoist`.
//!
//! *Effect on mappings*: a forward transition into the loop computes a hoisted value at the landing
//! point from its operands, which are available. A hoisted operation that may trap opens a window
//! before its old place.
//!
//! *Why correct*: a preheader dominates its loop, so definitions still dominate uses. An operation
//! that moves from any block cannot trap and depends on its operands alone. An operation that moves
//! from the header was the first there to trap or to observe memory, and the preheader has no other
//! successor.
//!
//! *Cost*: linear in instructions and operands, times the depth of loops.

use crate::loop_canon::preheader;
use cranelift_entity::EntityRef;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Editor, Pass};
use ir::loops::{Loop, LoopForest};
use ir::{Block, Effects, Function, Inst, Opcode, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Licm;

impl Pass for Licm {
    fn name(&self) -> &'static str {
        "licm"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let mut kept = BTreeSet::new();
        while let Some(refused) = move_out(ed, &kept) {
            if !(ed.has_fuel() && kept.insert(refused)) {
                return;
            }
        }
    }
}

/// Moves all operations except the operations to keep. Stops at the first refused move and returns
/// its operation: the later moves may rely on it, so the caller plans them anew.
fn move_out(ed: &mut Editor<'_>, kept: &BTreeSet<Inst>) -> Option<Inst> {
    for hoist in plan(ed.func(), kept) {
        if !ed.plan(hoist.rule) {
            return Some(hoist.inst);
        }
        for constant in hoist.constants {
            ed.hoist(constant.0, ed.func().terminator(constant.1));
        }
        ed.hoist(hoist.inst, ed.func().terminator(hoist.to));
    }
    None
}

/// One instruction to move, after the constants it needs.
struct InvariantMove {
    rule: &'static str,
    constants: Vec<(Inst, Block)>,
    inst: Inst,
    to: Block,
}

fn plan(function: &Function, kept: &BTreeSet<Inst>) -> Vec<InvariantMove> {
    let cfg = Cfg::new(function);
    let forest = LoopForest::new(function, &cfg);
    let preheaders: BTreeMap<Loop, Block> =
        forest.loops().filter_map(|l| preheader(function, &forest, l).map(|p| (l, p))).collect();
    let place =
        |l: Loop| preheaders.get(&l).map_or(HoistTarget::None, |p| HoistTarget::Preheader(*p));
    let moves = InvariantSearch::new(function, &forest, &place, kept).run(&cfg);
    let mut constants =
        Constants { function, dom: DomTree::new(function, &cfg), moved: BTreeMap::new() };
    let hoist = |(inst, l, rule): (Inst, Loop, &'static str)| {
        let to = preheaders[&l];
        InvariantMove { rule, constants: constants.needed(inst, to), inst, to }
    };
    moves.into_iter().map(hoist).collect()
}

/// The headers of the loops out of which operations would move if every loop had a preheader.
pub(crate) fn wanted_preheaders(function: &Function) -> BTreeSet<Block> {
    let cfg = Cfg::new(function);
    let forest = LoopForest::new(function, &cfg);
    let place = |l: Loop| match preheader(function, &forest, l) {
        Some(block) => HoistTarget::Preheader(block),
        None if forest.is_reducible(l) => HoistTarget::NewBlock,
        None => HoistTarget::None,
    };
    let moves = InvariantSearch::new(function, &forest, &place, &BTreeSet::new()).run(&cfg);
    moves.into_iter().map(|(_, l, _)| forest.header(l)).collect()
}

/// The current places of constants while operations move.
struct Constants<'f> {
    function: &'f Function,
    dom: DomTree,
    moved: BTreeMap<Inst, Block>,
}

impl Constants<'_> {
    /// The constants that must move so that `inst` can be computed at the end of `to`, with their
    /// new places. A new place is the nearest block that dominates both `to` and the old place.
    fn needed(&mut self, inst: Inst, to: Block) -> Vec<(Inst, Block)> {
        let mut moves = Vec::new();
        for arg in &self.function.inst(inst).args {
            let Some(constant) = self
                .function
                .defining_inst(*arg)
                .filter(|_| self.function.constant(*arg).is_some())
            else {
                continue;
            };
            let at =
                self.moved.get(&constant).copied().unwrap_or(self.function.inst_block(constant));
            if !self.dom.dominates(at, to) {
                let place = self.dom.common_dominator(at, to).expect("loops are reachable");
                self.moved.insert(constant, place);
                moves.push((constant, place));
            }
        }
        moves
    }
}

/// The destination for operations that move out of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HoistTarget {
    None,
    Preheader(Block),
    /// The preheader that `preheaders` would create for the loop.
    NewBlock,
}

/// Whether a code generator computes the operation again at each use: its operands are one value
/// and one constant, which becomes a part of the machine instruction.
fn is_cheap(function: &Function, inst: Inst) -> bool {
    let data = function.inst(inst);
    let folds =
        matches!(data.opcode, Opcode::Add | Opcode::Sub | Opcode::And | Opcode::Or | Opcode::Xor);
    folds && data.args.iter().any(|arg| function.constant(*arg).is_some())
}

/// Decides which operations move out of which loops.
struct InvariantSearch<'a> {
    function: &'a Function,
    forest: &'a LoopForest,
    place: &'a dyn Fn(Loop) -> HoistTarget,
    /// The operations that stay where they are.
    kept: &'a BTreeSet<Inst>,
    /// By loop: whether an instruction in it writes memory, a global or a size.
    writes: Vec<bool>,
    /// By moved value: the innermost loop around its new place.
    moved: BTreeMap<Value, Option<Loop>>,
    /// The headers without an instruction that has an effect or may trap, after the moves decided
    /// so far.
    harmless: BTreeSet<Block>,
}

impl<'a> InvariantSearch<'a> {
    fn new(
        function: &'a Function,
        forest: &'a LoopForest,
        place: &'a dyn Fn(Loop) -> HoistTarget,
        kept: &'a BTreeSet<Inst>,
    ) -> InvariantSearch<'a> {
        let mut writes = vec![false; forest.loops().len()];
        for inst in
            function.all_insts().filter(|i| function.inst(*i).opcode.effects().has(Effects::WRITES))
        {
            let mut around = forest.innermost(function.inst_block(inst));
            while let Some(id) = around.filter(|id| !writes[id.index()]) {
                writes[id.index()] = true;
                around = forest.parent(id);
            }
        }
        InvariantSearch {
            function,
            forest,
            place,
            kept,
            writes,
            moved: BTreeMap::new(),
            harmless: BTreeSet::new(),
        }
    }

    /// The instructions to move, the loops they move out of, and the rules; operands before users.
    fn run(mut self, cfg: &Cfg) -> Vec<(Inst, Loop, &'static str)> {
        let mut moves = Vec::new();
        for &block in cfg.rpo() {
            let Some(innermost) = self.forest.innermost(block) else { continue };
            // Whether every instruction of this header so far that stays is free of effects and
            // traps.
            let mut comes_first = self.forest.header(innermost) == block;
            for inst in self.function.block_insts(block) {
                if let Some((id, rule)) = self.destination(inst, innermost, comes_first) {
                    moves.push((inst, id, rule));
                    let result = self
                        .function
                        .inst(inst)
                        .result()
                        .expect("a moved instruction has one result");
                    self.moved.insert(result, self.forest.parent(id));
                    if let (true, HoistTarget::Preheader(to)) =
                        (self.function.may_trap(inst), (self.place)(id))
                    {
                        // The preheader may be the header of an outer loop. A later operation must
                        // not move past this one (`trap_behind_a_moved_trap.oir`).
                        self.harmless.remove(&to);
                    }
                } else {
                    let opcode = self.function.inst(inst).opcode;
                    let harmless = opcode.is_effect_free() && !self.function.may_trap(inst);
                    comes_first &= harmless || opcode.is_terminator();
                }
            }
            if comes_first {
                self.harmless.insert(block);
            }
        }
        self.without_cheap(moves)
    }

    /// The moves without cheap operations, which a code generator computes again at each use,
    /// unless another moved operation needs their result. Without this, loops get preheaders and
    /// values that are live across them for nothing (`an_offset_stays.oir`).
    fn without_cheap(
        &self,
        moves: Vec<(Inst, Loop, &'static str)>,
    ) -> Vec<(Inst, Loop, &'static str)> {
        let function = self.function;
        let mut needed = BTreeSet::new();
        let mut kept: Vec<_> = moves
            .into_iter()
            .rev()
            .filter(|(inst, ..)| {
                let data = function.inst(*inst);
                let result = data.result().expect("a moved instruction has one result");
                let moves = !is_cheap(function, *inst) || needed.contains(&result);
                if moves {
                    needed.extend(data.args.iter().copied());
                }
                moves
            })
            .collect();
        kept.reverse();
        kept
    }

    /// The outermost loop that an instruction can move out of, and the rule.
    fn destination(
        &self,
        inst: Inst,
        innermost: Loop,
        comes_first: bool,
    ) -> Option<(Loop, &'static str)> {
        let data = self.function.inst(inst);
        let is_fixed = !data.opcode.is_effect_free() || data.opcode == Opcode::Const;
        if is_fixed || self.kept.contains(&inst) {
            return None;
        }
        let traps = self.function.may_trap(inst);
        let reads = data.opcode.effects().has(Effects::READS);
        let rule = if reads { "unchanged-read" } else { "invariant" };
        let writes = |id: Loop| self.writes[id.index()];
        let leaves = |id: Loop| self.is_invariant(inst, id) && !(reads && writes(id));
        if traps {
            // Every entry into the loop executes its header. From another block, the operation
            // would also trap on paths that do not execute it (`division_behind_a_test.oir`).
            let id = Some(innermost).filter(|id| {
                comes_first && leaves(*id) && (self.place)(*id) != HoistTarget::None
            })?;
            return Some((self.last_header(id, leaves), rule));
        }
        let mut found = None;
        let mut around = Some(innermost);
        while let Some(id) = around.filter(|id| leaves(*id)) {
            if (self.place)(id) != HoistTarget::None {
                found = Some((id, rule));
            }
            around = self.forest.parent(id);
        }
        found
    }

    /// Follows an operation that may trap outward from the preheader of a loop. It continues while
    /// that block is the header of the next outer loop and contains no effect or possible trap.
    fn last_header(&self, mut id: Loop, leaves: impl Fn(Loop) -> bool) -> Loop {
        while let HoistTarget::Preheader(block) = (self.place)(id)
            && let Some(outer) = self.forest.parent(id)
            && self.forest.header(outer) == block
            && self.harmless.contains(&block)
            && leaves(outer)
            && (self.place)(outer) != HoistTarget::None
        {
            id = outer;
        }
        id
    }

    /// Whether every operand is a constant or is outside the loop after the moves decided so far.
    fn is_invariant(&self, inst: Inst, id: Loop) -> bool {
        let is_outside = |arg: &Value| {
            let home = match self.moved.get(arg) {
                Some(home) => *home,
                None => self.forest.innermost(self.function.value_block(*arg)),
            };
            self.function.constant(*arg).is_some()
                || !home.is_some_and(|home| self.is_within(home, id))
        };
        self.function.inst(inst).args.iter().all(is_outside)
    }

    fn is_within(&self, inner: Loop, outer: Loop) -> bool {
        self.forest.contains(outer, self.forest.header(inner))
    }
}
