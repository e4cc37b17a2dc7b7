//! Hoisting of very busy expressions.
//!
//! *Does*: where every arm of a branch computes the same operation, computes it once before the
//! branch. Arms first, so that an operation climbs as far as all ways compute it.
//!
//! *Does not*: move what may trap, or reads; look beyond the blocks a branch leads to; move an
//! operation that an arm shares with what joins it from elsewhere; move constants for their own
//! sake: those that what moves needs move along.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: no branch leads only to blocks that nothing else leads to and that have an
//! operation on equal operands from above in common.
//!
//! *Actions emitted*: `hoist`, `replace_all`, `delete`.
//!
//! *Effect on mappings*: between its new place and the arm the version before has to compute the
//! result, which its operands allow; that of the other arms is linked with the one that stays.
//!
//! *Why correct*: operands are available before the branch, and one of the arms is executed next,
//! so nothing is computed that would not have been. It cannot trap and depends on its operands
//! alone.
//!
//! *Cost*: linear in instructions and operands, with hashing; an operation that climbs is looked at
//! once for each branch it climbs above, and there takes the place of another.

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
        // Blocks stay what they are, and so does what dominates what.
        let dom = DomTree::new(ed.func(), &cfg);
        for &block in cfg.rpo().iter().rev() {
            let arms = arms(ed.func(), block);
            if arms.len() > 1 && !hoist_into(ed, &dom, block, &arms) {
                return;
            }
        }
    }
}

/// The blocks a branch leads to, if nothing else leads to any of them.
fn arms(f: &Function, block: Block) -> Vec<Block> {
    let arms: BTreeSet<Block> = f.successors(block).iter().map(|t| t.block).collect();
    let end = f.terminator(block);
    let joins = |arm: &Block| f.predecessors(*arm).iter().any(|e| e.inst != end);
    match arms.iter().any(joins) {
        true => Vec::new(),
        false => arms.into_iter().collect(),
    }
}

/// An operand: a constant whatever its instruction, or a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Operand {
    Constant(Type, u64),
    Value(Value),
}

/// What decides the result of an operation.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    opcode: Opcode,
    ty: Type,
    imm: Imm,
    args: SmallVec<[Operand; 3]>,
}

/// What an instruction computes, if it could be computed at the end of `to`.
fn key(f: &Function, dom: &DomTree, inst: Inst, to: Block) -> Option<Key> {
    let data = f.inst(inst);
    if !data.opcode.is_value_determined() || data.opcode == Opcode::Const || f.may_trap(inst) {
        return None;
    }
    let operand = |v: &Value| match f.constant(*v) {
        Some(bits) => Some(Operand::Constant(f.value_type(*v), bits)),
        None => dom.dominates(f.value_block(*v), to).then_some(Operand::Value(*v)),
    };
    let mut args: SmallVec<[Operand; 3]> = data.args.iter().map(operand).collect::<Option<_>>()?;
    if data.opcode.is_commutative() {
        args.sort_unstable();
    }
    Some(Key { opcode: data.opcode, ty: data.ty, imm: data.imm, args })
}

/// Computes before the branch at the end of a block what all its arms compute. Whether there was
/// fuel for it.
fn hoist_into(ed: &mut Editor<'_>, dom: &DomTree, block: Block, arms: &[Block]) -> bool {
    // One moved operation may be an operand of the next: the first arm is gone through in order.
    let mut others: Vec<HashMap<Key, Vec<Inst>>> = Vec::new();
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
            return false;
        }
        let equal: Vec<Inst> =
            others.iter_mut().filter_map(|known| known.remove(&wanted)).flatten().collect();
        let result = move_up(ed, dom, first, block);
        let changed = merge(ed, result, &equal);
        // What used the others is now an operation on this one.
        for user in changed {
            let home = ed.func().inst_block(user);
            let arm = arms[1..].iter().position(|arm| *arm == home);
            if let (Some(arm), Some(key)) = (arm, key(ed.func(), dom, user, block)) {
                others[arm].entry(key).or_default().push(user);
            }
        }
    }
    true
}

/// The operations of an arm by what they compute. Asked, never iterated.
fn operations(f: &Function, dom: &DomTree, arm: Block, to: Block) -> HashMap<Key, Vec<Inst>> {
    let mut known: HashMap<Key, Vec<Inst>> = HashMap::new();
    for inst in f.block_insts(arm) {
        if let Some(key) = key(f, dom, inst, to) {
            known.entry(key).or_default().push(inst);
        }
    }
    known
}

/// Moves an instruction to the end of a block, after the constants it needs.
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
    ed.func().inst(inst).result().expect("what is hoisted has one result")
}

/// Replaces equal operations; returns those that used them.
fn merge(ed: &mut Editor<'_>, result: Value, equal: &[Inst]) -> BTreeSet<Inst> {
    let mut changed = BTreeSet::new();
    for &other in equal {
        let before = ed.func().inst(other).result().expect("what is merged has one result");
        changed.extend(ed.func().users(before).iter().copied());
        ed.replace_all(before, result);
        ed.delete(other);
    }
    changed.into_iter().filter(|i| ed.func().has_inst(*i)).collect()
}
