//! Objects that nothing but their own accesses needs.
//!
//! *Does*: removes calls that make objects ([`ir::DeclaredEffect::is_allocator`]) with constant
//! arguments, the stores into these objects, and the loads from them, whose results are the values
//! stored. An operation about the word of an object that the upper half of the word decides becomes
//! a constant: such as the test of a tag.
//!
//! *Does not*: remove an object whose reference another instruction reads (a call, a store, an
//! edge, a return), or whose fields are loaded where they are unknown: where paths meet that have
//! stored different values, or behind a call that stays and may move objects, unless the field is a
//! constant or a float. Make an object on the paths alone that need it (Stadler and others,
//! *Partial Escape Analysis*, 2014).
//!
//! *Needs on entry*: the module. [`ObjectPlan`] has the points at which runs enter code, and the
//! values that runs take out of it.
//!
//! *Holds on exit*: nothing that later passes rely on.
//!
//! *Actions emitted*: `add` of constants, `replace_all`, `delete`.
//!
//! *Effect on mappings*: the version is no counterpart of the version before as other passes make
//! it, since its runs lack writes for good. It is a copy without objects
//! (`check::copy_without_objects`), and an entry that leaves it makes those that frames need.
//!
//! *Why correct*: nothing else refers to the bytes of the object, by the axioms of the declared
//! effect, and no instruction that stays reads them.
//!
//! *Cost*: linear in the function, for each round in which an object turns out to be needed, and in
//! the objects at each place.

mod analysis;

use analysis::ObjectWalk;
use ir::edit::{Editor, Pass};
use ir::{Block, Function, Imm, Inst, InstSpec, Module, Opcode, Type, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What a value is of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemovedForm {
    /// The reference to it.
    Reference,
    /// The word of the reference.
    Word,
    /// The address of its bytes.
    Address,
}

/// An object at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemovedObject {
    /// The call that made it.
    pub site: Inst,
    /// The values that are forms of it.
    pub forms: BTreeMap<Value, RemovedForm>,
    /// By offset: the value stored there.
    pub fields: BTreeMap<u64, Value>,
    /// Whether bytes were written whose contents are unknown.
    pub is_lost: bool,
}

/// The objects at a place, by the calls that made them.
pub type RemovedObjects = BTreeMap<Inst, RemovedObject>;

/// The objects of a version that are not needed.
#[derive(Clone, Debug, Default)]
pub struct ObjectPlan {
    /// The calls, accesses and computations to remove, in an order in which each definition
    /// precedes its uses.
    pub removed: Vec<Inst>,
    /// The results of removed loads, each with the value stored.
    loaded: Vec<(Value, Value)>,
    /// The results of decided operations: types and bits.
    decided: Vec<(Value, Type, u64)>,
    /// By block: the objects at its start, if there are any.
    pub at_start: BTreeMap<Block, RemovedObjects>,
}

/// Where runs enter and leave a version.
#[derive(Clone, Debug, Default)]
pub struct ObjectPlaces {
    /// The instructions before which runs enter: they have no object that code behind reads.
    pub entered: BTreeSet<Inst>,
    /// By instruction before which runs leave: the values that they take along.
    pub taken: BTreeMap<Inst, BTreeSet<Value>>,
}

impl ObjectPlan {
    /// The objects of a version that are not needed. Cost: see the module documentation.
    pub fn new(module: &Module, f: &Function, places: &ObjectPlaces) -> ObjectPlan {
        let mut sites: BTreeSet<Inst> =
            f.all_insts().filter(|call| is_candidate(module, f, *call)).collect();
        loop {
            if sites.is_empty() {
                return ObjectPlan::default();
            }
            match ObjectWalk::new(f, &sites, places).run() {
                Ok(plan) => return plan,
                // An object less may be one that another is stored in.
                Err(needed) => sites.retain(|site| !needed.contains(site)),
            }
        }
    }

    /// Whether there is nothing to remove.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty()
    }
}

/// Whether an instruction makes an object with constants.
fn is_candidate(module: &Module, f: &Function, call: Inst) -> bool {
    let data = f.inst(call);
    let Imm::Func(func) = data.imm else { return false };
    data.opcode == Opcode::Call
        && module.funcs[func].effect.is_allocator()
        && data.args.iter().all(|arg| f.constant(*arg).is_some())
}

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct RemoveObjects<'p> {
    /// The objects.
    pub plan: &'p ObjectPlan,
}

impl Pass for RemoveObjects<'_> {
    fn name(&self) -> &'static str {
        "remove_objects"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        if self.plan.is_empty() || !ed.plan("objects") {
            return;
        }
        for (result, stored) in &self.plan.loaded {
            ed.replace_all(*result, *stored);
        }
        // In front of the first instruction, so that each use has it.
        let entry = ed.func().entry();
        for (result, ty, bits) in &self.plan.decided {
            let first = ed.func().first_inst(entry);
            let constant = InstSpec::new(Opcode::Const, *ty, Imm::Bits(*bits), &[]);
            let constant = ed.add_value(constant, first);
            ed.replace_all(*result, constant);
        }
        for inst in self.plan.removed.iter().rev() {
            ed.delete(*inst);
        }
    }
}

#[cfg(test)]
mod tests;
