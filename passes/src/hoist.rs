//! Hoisting of very busy expressions.
//!
//! *Does*: computes an operation once before a branch if every arm of the branch computes it. The
//! pass visits arms before their branches, so an operation moves up as far as all paths compute it.
//!
//! *Does not*: move an operation that may trap or reads; look beyond the direct successors of a
//! branch; move an operation from an arm that has other predecessors; move constants for their own
//! sake: the constants among the operands of a moved operation move along.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: where all successors of a branch have a single predecessor, no operation on
//! equal operands from above is common to all of them.
//!
//! *Actions emitted*: `hoist`, `replace_all`, `delete`.
//!
//! *Effect on mappings*: between the new place and the arm, a forward transition computes the
//! result from its operands, which are available. The results of the other arms are linked with the
//! remaining one.
//!
//! *Why correct*: the operands are available before the branch, and control enters one of the arms
//! next. Every path that computes the operation now computed it before. The operation cannot trap
//! and depends on its operands alone.
//!
//! *Cost*: linear in instructions and operands, with hashing. An operation is examined once for
//! each branch above which it moves, and takes the place of another there.

use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Editor, Pass};
use ir::{Block, Function, Imm, Inst, Opcode, Type, Value};
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap};

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Hoist;

impl Pass for Hoist {
    fn name(&self) -> &'static str {
        "hoist"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let cfg = Cfg::new(ed.func());
        // The pass changes neither blocks nor edges, so dominance stays valid.
        let dom = DomTree::new(ed.func(), &cfg);
        for &block in cfg.rpo().iter().rev() {
            let arms = arms(ed.func(), block);
            if arms.len() > 1 {
                hoist_into(ed, &dom, block, &arms);
            }
        }
    }
}

/// The successors of a branch, if each has it as the only predecessor; otherwise empty.
fn arms(f: &Function, block: Block) -> Vec<Block> {
    let arms: BTreeSet<Block> = f.successors(block).iter().map(|t| t.block).collect();
    let end = f.terminator(block);
    let joins = |arm: &Block| f.predecessors(*arm).iter().any(|e| e.inst != end);
    match arms.iter().any(joins) {
        true => Vec::new(),
        false => arms.into_iter().collect(),
    }
}

/// An operand: a constant, compared by its bits whichever instruction makes it, or a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum BusyOperand {
    Constant(Type, u64),
    Value(Value),
}

/// The fields that determine the result of an operation.
#[derive(Clone, PartialEq, Eq, Hash)]
struct BusyExpression {
    opcode: Opcode,
    ty: Type,
    imm: Imm,
    args: SmallVec<[BusyOperand; 3]>,
}

/// The key of an instruction; `None` if it cannot be computed at the end of `to`.
fn key(f: &Function, dom: &DomTree, inst: Inst, to: Block) -> Option<BusyExpression> {
    let data = f.inst(inst);
    if !data.opcode.is_value_determined() || data.opcode == Opcode::Const || f.may_trap(inst) {
        return None;
    }
    let operand = |v: &Value| match f.constant(*v) {
        Some(bits) => Some(BusyOperand::Constant(f.value_type(*v), bits)),
        None => dom.dominates(f.value_block(*v), to).then_some(BusyOperand::Value(*v)),
    };
    let mut args: SmallVec<[BusyOperand; 3]> =
        data.args.iter().map(operand).collect::<Option<_>>()?;
    if data.opcode.is_commutative() {
        args.sort_unstable();
    }
    Some(BusyExpression { opcode: data.opcode, ty: data.ty, imm: data.imm, args })
}

/// Moves the operations that all arms of a block's branch compute before the branch.
fn hoist_into(ed: &mut Editor<'_>, dom: &DomTree, block: Block, arms: &[Block]) {
    // In order: a moved operation may be an operand of the next, which then can move too.
    let mut others: Vec<HashMap<BusyExpression, Vec<Inst>>> = Vec::new();
    let firsts: Vec<Inst> = ed.func().block_insts(arms[0]).collect();
    for first in firsts {
        let Some(wanted) = key(ed.func(), dom, first, block) else { continue };
        if others.is_empty() {
            others = arms[1..].iter().map(|arm| operations(ed.func(), dom, *arm, block)).collect();
        }
        if !others.iter().all(|known| known.contains_key(&wanted)) {
            continue;
        }
        if !ed.plan("very-busy") {
            continue;
        }
        let equal: Vec<Inst> =
            others.iter_mut().filter_map(|known| known.remove(&wanted)).flatten().collect();
        let result = move_up(ed, dom, first, block);
        let changed = merge(ed, result, &equal);
        // The users of the merged results now have the remaining result as operand: new keys.
        for user in changed {
            let home = ed.func().inst_block(user);
            let arm = arms[1..].iter().position(|arm| *arm == home);
            if let (Some(arm), Some(key)) = (arm, key(ed.func(), dom, user, block)) {
                others[arm].entry(key).or_default().push(user);
            }
        }
    }
}

/// The operations of an arm by key. Only looked up, never iterated.
fn operations(
    f: &Function,
    dom: &DomTree,
    arm: Block,
    to: Block,
) -> HashMap<BusyExpression, Vec<Inst>> {
    let mut known: HashMap<BusyExpression, Vec<Inst>> = HashMap::new();
    for inst in f.block_insts(arm) {
        if let Some(key) = key(f, dom, inst, to) {
            known.entry(key).or_default().push(inst);
        }
    }
    known
}

/// Moves an instruction to the end of a block, after the constants it needs. Returns its result.
fn move_up(ed: &mut Editor<'_>, dom: &DomTree, inst: Inst, to: Block) -> Value {
    let end = ed.func().terminator(to);
    for arg in ed.func().inst(inst).args.clone() {
        let def = ed.func().defining_inst(arg).filter(|_| ed.func().constant(arg).is_some());
        let stays = |i: &Inst| dom.dominates(ed.func().inst_block(*i), to);
        if let Some(constant) = def.filter(|i| !stays(i)) {
            ed.hoist(constant, end);
        }
    }
    ed.hoist(inst, end);
    ed.func().inst(inst).result().expect("a hoisted instruction has one result")
}

/// Replaces equal operations by a result. Returns the remaining users of the replaced operations.
fn merge(ed: &mut Editor<'_>, result: Value, equal: &[Inst]) -> BTreeSet<Inst> {
    let mut changed = BTreeSet::new();
    for &other in equal {
        let before = ed.func().inst(other).result().expect("a merged instruction has one result");
        changed.extend(ed.func().users(before).iter().copied());
        ed.replace_all(before, result);
        ed.delete(other);
    }
    changed.into_iter().filter(|i| ed.func().has_inst(*i)).collect()
}
