//! Aggressive dead code elimination.
//!
//! *Does*: assumes that every value is dead until an effect, a branch or a possible trap needs it.
//! Removes the values that stay dead: instructions, parameters, and cycles of both that only feed
//! each other around a loop.
//!
//! *Does not*: remove a value that the fuel keeps ([`Editor::kept`]), a branch, a block or a loop.
//! A loop whose results are dead still iterates as often as before, so the points of both versions
//! still correspond. A loop that does not terminate still does not.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: every value is needed by an effect, by control flow or by an instruction that
//! may trap.
//!
//! *Actions emitted*: `delete`, `remove_block_param`, and `remove_dead` for cycles.
//!
//! *Effect on mappings*: a backward transition recomputes the removed values. A removed parameter
//! has no operation to execute again: it can be derived from its incoming values, or not at all.
//!
//! *Why correct*: a removed instruction writes no memory and cannot trap, and no remaining
//! instruction reads its result.
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
        let is_here = |value: &&Value| ed.func().has_value(**value);
        let mut kept: BTreeSet<Value> = ed.kept().iter().filter(is_here).copied().collect();
        loop {
            let dead = Dead::find(ed.func(), &kept);
            let refused = dead.remove_singly(ed).and_then(|()| dead.remove_cycles(ed));
            let Err(refused) = refused else { return };
            // The operands of a value that stays are live again.
            kept.extend(refused);
            if !ed.has_fuel() {
                return;
            }
        }
    }
}

/// Whether an instruction stays even if nothing needs its results.
fn is_root(function: &Function, inst: Inst) -> bool {
    let opcode = function.inst(inst).opcode;
    !opcode.is_effect_free() || function.may_trap(inst)
}

/// The set of live values, by index: the values to keep, and all values that a root or a kept value
/// needs, directly or not. An argument of an edge is live if the parameter that receives it is.
fn live_values(function: &Function, kept: &BTreeSet<Value>) -> FixedBitSet {
    let mut live = FixedBitSet::with_capacity(function.value_bound());
    let roots = function.all_insts().filter(|i| is_root(function, *i));
    let needed = roots.flat_map(|i| function.inst(i).args.iter());
    let mut work: Vec<Value> = needed.chain(kept).copied().collect();
    while let Some(value) = work.pop() {
        if !live.put(value.index()) {
            work.extend(inputs(function, value));
        }
    }
    live
}

/// The inputs of a value: the operands of its instruction, or the arguments for its parameter.
fn inputs(function: &Function, value: Value) -> Vec<Value> {
    match function.value_def(value) {
        ValueDef::Result(inst, _) => function.inst(inst).args.to_vec(),
        ValueDef::Param(block, index) => {
            let edges = function.predecessors(block).iter();
            edges.map(|e| function.target(*e).args[index as usize]).collect()
        }
    }
}

/// The dead values: parameters, and results of removable instructions. Each of these instructions
/// has a single result.
struct Dead {
    /// In layout order.
    values: Vec<Value>,
    /// The same by index.
    set: FixedBitSet,
}

impl Dead {
    fn find(function: &Function, kept: &BTreeSet<Value>) -> Dead {
        let live = live_values(function, kept);
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

    /// Removes unused values, and the values that become unused thereby.
    ///
    /// # Errors
    /// The first value whose removal is refused.
    fn remove_singly(&self, ed: &mut Editor<'_>) -> Result<(), BTreeSet<Value>> {
        // Users mostly follow definitions, so popping the last value first frees the operands
        // early.
        let mut work = self.values.clone();
        while let Some(value) = work.pop() {
            if !ed.func().has_value(value) || !is_unused(ed.func(), value) {
                continue;
            }
            if !ed.plan("unused") {
                return Err(BTreeSet::from([value]));
            }
            let freed = inputs(ed.func(), value);
            match ed.func().value_def(value) {
                ValueDef::Result(inst, _) => ed.delete(inst),
                ValueDef::Param(block, index) => ed.remove_block_param(block, index as usize),
            }
            work.extend(freed.into_iter().filter(|v| self.set.contains(v.index())));
        }
        Ok(())
    }

    /// Removes the remaining dead values, each connected set of them as a whole.
    ///
    /// # Errors
    /// The first set whose removal is refused.
    fn remove_cycles(&self, ed: &mut Editor<'_>) -> Result<(), BTreeSet<Value>> {
        for &value in &self.values {
            if !ed.func().has_value(value) {
                continue;
            }
            let members = self.connected(ed.func(), value);
            if !ed.plan("dead-cycle") {
                return Err(members);
            }
            // The members use one another, so no order of single deletions is valid.
            let (mut params, mut insts) = (Vec::new(), Vec::new());
            for member in members {
                match ed.func().value_def(member) {
                    ValueDef::Result(inst, _) => insts.push(inst),
                    ValueDef::Param(block, _) => params.push((block, member)),
                }
            }
            ed.remove_dead(&params, &insts);
        }
        Ok(())
    }

    /// The dead values that are connected to a dead value by uses in either direction, itself
    /// included.
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

/// Whether a value has no uses, except that a parameter may be its own argument.
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

/// The values computed from a dead value: results of its users, and parameters that receive it.
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
