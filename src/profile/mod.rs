//! Profiles: the decisions that the runs of a program made.
//!
//! A machine that counts ([`interp::Machine::count`]) keeps counters in both tiers of the
//! interpreter. [`Profile::collect`] makes a profile of them: for each function its calls and
//! arguments, the sides of its branches, the targets of its indirect calls, and the loads that gave
//! one value. [`crate::speculate::suggest`] makes assumptions from it.
//!
//! [`Profile::write`] and [`Profile::read`] are its file format (`docs/profile.md`).

mod file;
mod visits;

pub use file::{FORMAT, MAX_FUNCTIONS, ProfileError};

use interp::{CallTargets, Machine};
use ir::{Func, Function, Inst, Module, Opcode};
use std::collections::BTreeMap;
use visits::visits;

/// The decisions that runs made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Profile {
    /// The functions that were called.
    pub functions: BTreeMap<Func, FunctionProfile>,
}

/// The decisions of the runs of one function, in terms of its base.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FunctionProfile {
    /// The calls.
    pub calls: u64,
    /// For each argument its bits, if they were equal in all calls.
    pub arguments: Vec<Option<u64>>,
    /// For each `br_if` and `switch` that was executed, the visits of its targets. The list of a
    /// `br_if` begins with the target of a true condition.
    pub branches: BTreeMap<Inst, Vec<u64>>,
    /// For each indirect call that was executed, its targets.
    pub targets: BTreeMap<Inst, CallTargets>,
    /// For each load and read of a global that gave one value only, its bits.
    pub values: BTreeMap<Inst, u64>,
}

impl Profile {
    /// The profile of the runs that a machine has counted so far: those of the version that is
    /// current for each function, which must be the base. Empty if the machine does not count.
    /// Cost: linear in the module.
    pub fn collect(module: &Module, machine: &Machine) -> Profile {
        let profile = |(func, base): (Func, &Function)| {
            let profile = FunctionProfile::of(base, machine, func)?;
            (profile != FunctionProfile::default()).then_some((func, profile))
        };
        Profile { functions: module.defined().filter_map(profile).collect() }
    }
}

impl FunctionProfile {
    /// The profile of one function, as [`Profile::collect`] makes it. `None` if the machine does
    /// not count. Cost: linear in the function.
    pub fn of(base: &Function, machine: &Machine, func: Func) -> Option<FunctionProfile> {
        Some(FunctionProfile::collect(base, machine.counts(machine.current(func)?)?))
    }

    fn collect(base: &Function, counts: interp::RunCounts<'_>) -> FunctionProfile {
        let mut profile = FunctionProfile {
            calls: counts.calls(),
            arguments: counts.arguments().to_vec(),
            ..FunctionProfile::default()
        };
        for inst in base.all_insts() {
            if let Some(sides) = counts.sides(inst) {
                if sides.iter().any(|visits| *visits > 0) {
                    profile.branches.insert(inst, sides);
                }
            } else if let Some(targets) = counts.targets(inst) {
                if !targets.targets.is_empty() {
                    profile.targets.insert(inst, targets.clone());
                }
            } else if let Some(bits) = counts.steady_value(inst) {
                profile.values.insert(inst, bits);
            }
        }
        profile
    }

    /// The visits of each block of the base, by index: those of the entry block are the calls,
    /// those of another block the sum over the edges into it. A run that ends inside of a block
    /// counts as if it had gone on along `jump`s. A cycle of `jump`s alone counts its visits from
    /// outside once. Sums saturate. Cost: linear in the blocks and edges.
    pub fn visits(&self, base: &Function) -> Vec<u64> {
        visits(self, base)
    }
}

/// Whether an instruction is a load or reads a global, so that its values are watched.
pub(crate) fn is_watched(opcode: Opcode) -> bool {
    use ir::Shape;
    matches!(opcode.shape(), Shape::Load(_) | Shape::GlobalGet)
}
