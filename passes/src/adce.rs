//! Aggressive dead code elimination.
//!
//! *Does*: assumes every value dead until something that must happen needs it, and removes what
//! stays dead: instructions, parameters, and whole cycles of both that only feed each other around
//! a loop.
//!
//! *Does not*: remove a branch, a block or a loop. A loop whose results are dead still runs as
//! often as before, so the points of both versions keep pairing, and what did not terminate still
//! does not.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: every value is needed by an effect, by control flow or by something that may
//! trap.
//!
//! *Actions emitted*: `delete`, `remove_block_param`, and `remove_dead` for cycles.
//!
//! *Effect on mappings*: leaving the optimized version for the base, a removed value must be
//! recomputed; a removed parameter can only be found by other means (its incoming values), or not
//! at all.
//!
//! *Why correct*: what is removed changes no memory, cannot trap, and nothing that stays reads it.
//!
//! *Cost*: linear in instructions and operands.

use cranelift_entity::EntityRef;
use fixedbitset::FixedBitSet;
use ir::edit::{Editor, Pass};
use ir::{Function, Inst, Value, ValueDef};
use std::collections::BTreeSet;

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Adce;

impl Pass for Adce {
    fn name(&self) -> &'static str {
        "adce"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let dead = Dead::find(ed.func());
        let _ = dead.remove_singly(ed) && dead.remove_cycles(ed);
    }
}

/// Whether an instruction stays whether its results are needed or not.
fn is_root(function: &Function, inst: Inst) -> bool {
    let opcode = function.inst(inst).opcode;
    !opcode.is_effect_free() || function.may_trap(inst)
}

/// The values that something that must happen needs, by index. The argument of an edge is needed
/// where the parameter it goes to is.
fn live_values(function: &Function) -> FixedBitSet {
    let mut live = FixedBitSet::with_capacity(function.value_bound());
    let roots = function.all_insts().filter(|i| is_root(function, *i));
    let mut work: Vec<Value> = roots.flat_map(|i| function.inst(i).args.iter().copied()).collect();
    while let Some(value) = work.pop() {
        if !live.put(value.index()) {
            work.extend(inputs(function, value));
        }
    }
    live
}

/// What a value is made of: the operands of its instruction, or the arguments for its parameter.
fn inputs(function: &Function, value: Value) -> Vec<Value> {
    match function.value_def(value) {
        ValueDef::Result(inst, _) => function.inst(inst).args.to_vec(),
        ValueDef::Param(block, index) => {
            let edges = function.predecessors(block).iter();
            edges.map(|e| function.target(*e).args[index as usize]).collect()
        }
    }
}

/// What nothing that must happen needs: parameters, and the results of instructions that may go.
/// Each of those has exactly one result.
struct Dead {
    /// In layout order.
    values: Vec<Value>,
    /// The same by index.
    set: FixedBitSet,
}

impl Dead {
    fn find(function: &Function) -> Dead {
        let live = live_values(function);
        let mut dead =
            Dead { values: Vec::new(), set: FixedBitSet::with_capacity(function.value_bound()) };
        for block in function.blocks() {
            let params =
                function.block_params(block).iter().copied().filter(|_| block != function.entry());
            let insts = function.block_insts(block).filter(|i| !is_root(function, *i));
            let results = insts.filter_map(|i| function.inst(i).result());
            dead.values.extend(params.chain(results).filter(|v| !live.contains(v.index())));
        }
        dead.values.iter().for_each(|v| dead.set.insert(v.index()));
        dead
    }

    /// Removes what nothing uses until there is no more. Whether there was fuel for all of it.
    fn remove_singly(&self, ed: &mut Editor<'_>) -> bool {
        // Users mostly come after what they use, so the last value is asked first.
        let mut work = self.values.clone();
        while let Some(value) = work.pop() {
            if !ed.func().has_value(value) || !is_unused(ed.func(), value) {
                continue;
            }
            if !ed.plan("unused") {
                return false;
            }
            let freed = inputs(ed.func(), value);
            match ed.func().value_def(value) {
                ValueDef::Result(inst, _) => ed.delete(inst),
                ValueDef::Param(block, index) => ed.remove_block_param(block, index as usize),
            }
            work.extend(freed.into_iter().filter(|v| self.set.contains(v.index())));
        }
        true
    }

    /// Removes the dead values that are left, each set of those that use each other as a whole.
    /// Whether there was fuel for all of it.
    fn remove_cycles(&self, ed: &mut Editor<'_>) -> bool {
        for &value in &self.values {
            if !ed.func().has_value(value) {
                continue;
            }
            if !ed.plan("dead-cycle") {
                return false;
            }
            let (mut params, mut insts) = (Vec::new(), Vec::new());
            for member in self.connected(ed.func(), value) {
                match ed.func().value_def(member) {
                    ValueDef::Result(inst, _) => insts.push(inst),
                    ValueDef::Param(block, _) => params.push((block, member)),
                }
            }
            ed.remove_dead(&params, &insts);
        }
        true
    }

    /// The dead values that a dead value uses or is used by, directly or not, itself among them.
    fn connected(&self, function: &Function, value: Value) -> BTreeSet<Value> {
        let mut members = BTreeSet::new();
        let mut work = vec![value];
        while let Some(value) = work.pop() {
            if self.set.contains(value.index()) && members.insert(value) {
                work.extend(inputs(function, value));
                work.extend(outputs(function, value));
            }
        }
        members
    }
}

/// Whether nothing uses a value, but perhaps a parameter itself as its own argument.
fn is_unused(function: &Function, value: Value) -> bool {
    let uses = function.users(value).len();
    match function.value_def(value) {
        ValueDef::Result(..) => uses == 0,
        ValueDef::Param(block, _) if uses <= function.predecessors(block).len() => {
            inputs(function, value).iter().filter(|v| **v == value).count() == uses
        }
        ValueDef::Param(..) => false,
    }
}

/// The values made of a dead value: results of its users, and the parameters it is an argument for.
fn outputs(function: &Function, value: Value) -> Vec<Value> {
    let mut outputs = Vec::new();
    for &user in function.users(value) {
        let data = function.inst(user);
        outputs.extend(&data.results);
        for target in &data.targets {
            let received = target.args.iter().zip(function.block_params(target.block));
            outputs.extend(received.filter(|(arg, _)| **arg == value).map(|(_, param)| *param));
        }
    }
    outputs
}
