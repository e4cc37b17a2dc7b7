//! Uses behind an assumption read its result.
//!
//! *Does*: replaces the operand of an assumption by its result in every use that the assumption
//! dominates. Example: behind `%y = assume.i32 %x, 7, 1`, `add.i32 %x, %k` becomes
//! `add.i32 %y, %k`, and `sccp` knows the operand. If the operand is `ne.i32 %x, 0`, branches
//! behind the assumption that ask for `%x` ask for the result instead.
//!
//! *Does not*: replace the operand in the assumption itself, nor in uses that only some paths reach
//! over the assumption; look at values computed from the operand.
//!
//! *Needs on entry*: the log that it runs in adds the assumptions of its list. In a pair whose
//! versions both make an assumption, its result is the constant and no longer the operand, and the
//! certifier cannot explain the use ([`crate::speculate`]).
//!
//! *Holds on exit*: no assumption of the list dominates a use of its operand by another
//! instruction.
//!
//! *Actions emitted*: `replace_operand`.
//!
//! *Effect on mappings*: none of its own. In the pair whose log adds the assumption, operand and
//! result are one class.
//!
//! *Why correct*: where the result is available, the assumption has held, so that both have the
//! same bits. A branch asks whether its operand is zero, and so does `ne.i32 %x, 0`.
//!
//! *Cost*: that of dominators, and for each assumption, the uses of its operand.

use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Editor, Pass};
use ir::{Function, Inst, InstData, Opcode, Type, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Refine<'a> {
    /// The assumptions whose results uses are to read: those that the log adds, in any order.
    pub added: &'a [Inst],
}

impl Pass for Refine<'_> {
    fn name(&self) -> &'static str {
        "refine"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        for ((user, index), result) in uses_behind(ed.func(), self.added) {
            if ed.plan("use-behind-assumption") {
                ed.replace_operand(user, index, result);
            }
        }
    }
}

/// The operands to replace, each an instruction and an index, with the results to read.
fn uses_behind(f: &Function, added: &[Inst]) -> BTreeMap<(Inst, usize), Value> {
    let cfg = Cfg::new(f);
    let dom = DomTree::new(f, &cfg);
    let added: BTreeSet<Inst> = added.iter().copied().collect();
    let mut found = BTreeMap::new();
    // In reverse postorder: of two assumptions about one value, the one nearest to a use comes
    // last and wins, and itself reads the result of the other.
    let all = cfg.rpo().iter().flat_map(|block| f.block_insts(*block));
    for inst in all.filter(|inst| added.contains(inst)) {
        let data = f.inst(inst);
        let (Opcode::Assume, [operand, ..], Some(result)) =
            (data.opcode, &data.args[..], data.result())
        else {
            continue;
        };
        let mut read = |value: Value, reads: &dyn Fn(&InstData, usize) -> bool| {
            let users: BTreeSet<Inst> = f.users(value).iter().copied().collect();
            for user in users.into_iter().filter(|u| *u != inst && dom.inst_dominates(f, inst, *u))
            {
                let operands = f.inst(user).operands().enumerate();
                let uses = operands.filter(|(index, v)| *v == value && reads(f.inst(user), *index));
                found.extend(uses.map(|(index, _)| ((user, index), result)));
            }
        };
        read(*operand, &|_, _| true);
        if let Some(tested) = tested(f, *operand) {
            // The operands behind the first are arguments of the targets.
            read(tested, &|user, index| user.opcode == Opcode::BrIf && index == 0);
        }
    }
    found
}

/// The operand of `ne.i32 %x, 0`.
fn tested(f: &Function, value: Value) -> Option<Value> {
    let data = f.inst(f.defining_inst(value)?);
    let [x, zero] = &data.args[..] else { return None };
    let is_test = data.opcode == Opcode::Ne && f.constant(*zero) == Some(0);
    (is_test && data.ty == Type::I32).then_some(*x)
}
