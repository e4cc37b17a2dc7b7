//! Profiles: the decisions that the runs of a program made.
//!
//! A machine that counts ([`interp::Machine::count`]) keeps counters in both tiers of the
//! interpreter, and native code that counts (`jit::VersionSpec::counting`) keeps its own.
//! [`Profile::collect`] and `osier::tiers::native_profile` make a profile of them: for each
//! function its calls and arguments, the sides of its branches, the targets of its indirect calls,
//! and the loads that gave one value. `osier::speculate::suggest` makes assumptions from it.
//!
//! [`OwnCounts`] makes a profile of what an interpreter of the embedder's counts.
//!
//! `Profile::write` and `Profile::read` are its file format (`docs/profile.md`).

#[cfg(feature = "files")]
mod file;
mod own;
mod visits;

#[cfg(feature = "files")]
pub use file::{FORMAT, MAX_FUNCTIONS, ProfileError};

pub use own::OwnCounts;

use cranelift_entity::EntityRef;
use interp::{CallTarget, CallTargets, MAX_TARGETS, Machine, RunCounts};
use ir::edit::ActionLog;
use ir::{Func, Function, Imm, Inst, Module, Opcode};
use passes::CallCounts;
use std::collections::BTreeMap;
use visits::{visits, visits_after};

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
    /// By argument: the bits, if all calls passed the same bits.
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
    /// The profile of the runs that a machine has counted so far. The current version of each
    /// function must be its base. Empty if the machine does not count. Cost: linear in the module.
    pub fn collect(module: &Module, machine: &Machine) -> Profile {
        Profile::of_counts(module, |func, _| machine.counts(machine.current(func)?))
    }

    /// The profile of the versions whose counters `counts` gives, function by function. Without
    /// counters, a function has no profile. Cost: linear in the module.
    pub fn of_counts<C: Counted>(
        module: &Module,
        counts: impl Fn(Func, &Function) -> Option<C>,
    ) -> Profile {
        let profile = |(func, base): (Func, &Function)| {
            let profile = FunctionProfile::of_counts(base, &counts(func, base)?);
            (profile != FunctionProfile::default()).then_some((func, profile))
        };
        Profile { functions: module.defined().filter_map(profile).collect() }
    }

    /// How often calls were executed, for [`passes::Inline`]. An indirect call counts for each of
    /// its known targets. Cost: linear in the functions of the profile.
    ///
    /// # Panics
    /// If the module lacks the body of a function of the profile.
    pub fn call_counts(&self, module: &Module) -> CallCounts {
        let mut counts = CallCounts::default();
        for (func, profile) in &self.functions {
            let base = module.body(*func).expect("the profile is one of the module");
            counts.set_function(*func, profile.calls);
            let visits = profile.visits(base);
            for call in base.all_insts() {
                let count = visits[base.inst_block(call).index()];
                let data = base.inst(call);
                let callees = match (data.opcode, data.imm) {
                    (Opcode::Call, Imm::Func(callee)) => vec![(callee, count)],
                    (Opcode::CallIndirect, _) => {
                        let targets = profile.targets.get(&call).into_iter();
                        targets.flat_map(|t| &t.targets).map(|t| (t.func, t.calls)).collect()
                    }
                    _ => continue,
                };
                counts.set_call(*func, call, count, &callees);
            }
        }
        counts
    }

    /// Adds the profile of other runs of the same module. The result is the profile of all runs,
    /// with three exceptions. If a function ran in both profiles, a load is kept only if both name
    /// it: a profile does not say whether a missing load varied or was not executed. A fifth target
    /// of an indirect call counts among `others`. Runs that enter a function by transitions alone
    /// may leave no trace in the profile. Sums saturate. Cost: linear in both profiles.
    pub fn add(&mut self, other: &Profile) {
        for (func, profile) in &other.functions {
            self.functions.entry(*func).or_default().add(profile);
        }
    }
}

/// The counters of one version whose function is the base: of the interpreter, of native code
/// (`osier::tiers::native_profile`), or of an engine of the embedder's own.
pub trait Counted {
    /// The calls of the function.
    fn calls(&self) -> u64;
    /// By argument: the bits, if all calls passed the same bits.
    fn arguments(&self) -> Vec<Option<u64>>;
    /// The visits of the targets of a `br_if` or `switch`, the target of a true condition first.
    /// `None` for another instruction.
    fn sides(&self, inst: Inst) -> Option<Vec<u64>>;
    /// The targets of an indirect call. `None` for another instruction.
    fn targets(&self, inst: Inst) -> Option<CallTargets>;
    /// The bits that a load or the read of a global gave, if it gave one value only.
    fn steady_value(&self, inst: Inst) -> Option<u64>;
}

impl Counted for RunCounts<'_> {
    fn calls(&self) -> u64 {
        RunCounts::calls(self)
    }

    fn arguments(&self) -> Vec<Option<u64>> {
        RunCounts::arguments(self).to_vec()
    }

    fn sides(&self, inst: Inst) -> Option<Vec<u64>> {
        RunCounts::sides(self, inst)
    }

    fn targets(&self, inst: Inst) -> Option<CallTargets> {
        RunCounts::targets(self, inst).cloned()
    }

    fn steady_value(&self, inst: Inst) -> Option<u64> {
        RunCounts::steady_value(self, inst)
    }
}

impl FunctionProfile {
    /// The profile of one function, as [`Profile::collect`] makes it. `None` if the machine does
    /// not count. Cost: linear in the function.
    pub fn of(base: &Function, machine: &Machine, func: Func) -> Option<FunctionProfile> {
        Some(FunctionProfile::of_counts(base, &machine.counts(machine.current(func)?)?))
    }

    /// The profile of one function, by the counters of its base. Cost: linear in the function.
    pub fn of_counts(base: &Function, counts: &impl Counted) -> FunctionProfile {
        let mut profile = FunctionProfile {
            calls: counts.calls(),
            arguments: counts.arguments(),
            ..FunctionProfile::default()
        };
        for inst in base.all_insts() {
            if let Some(sides) = counts.sides(inst) {
                if sides.iter().any(|visits| *visits > 0) {
                    profile.branches.insert(inst, sides);
                }
            } else if let Some(targets) = counts.targets(inst) {
                if !targets.targets.is_empty() {
                    profile.targets.insert(inst, targets);
                }
            } else if let Some(bits) = counts.steady_value(inst) {
                profile.values.insert(inst, bits);
            }
        }
        profile
    }

    fn add(&mut self, other: &FunctionProfile) {
        if self.calls == 0 {
            self.arguments.clone_from(&other.arguments);
        } else if other.calls > 0 {
            for (known, bits) in self.arguments.iter_mut().zip(&other.arguments) {
                *known = known.filter(|known| *bits == Some(*known));
            }
        }
        self.add_values(other);
        self.calls = self.calls.saturating_add(other.calls);
        for (inst, sides) in &other.branches {
            let mine = self.branches.entry(*inst).or_insert_with(|| vec![0; sides.len()]);
            for (sum, visits) in mine.iter_mut().zip(sides) {
                *sum = sum.saturating_add(*visits);
            }
        }
        for (inst, targets) in &other.targets {
            add_targets(self.targets.entry(*inst).or_default(), targets);
        }
    }

    /// Keeps the values that both profiles name: a missing value may have varied in the runs of
    /// that profile. If only one profile has runs of the function, takes its values.
    fn add_values(&mut self, other: &FunctionProfile) {
        let (ran, other_ran) = (self.has_run(), other.has_run());
        if !ran {
            self.values.clone_from(&other.values);
        } else if other_ran {
            self.values.retain(|inst, bits| other.values.get(inst) == Some(bits));
        }
    }

    fn has_run(&self) -> bool {
        self.calls > 0
            || !(self.branches.is_empty() && self.targets.is_empty() && self.values.is_empty())
    }

    /// The visits of each block of the base, by index: the calls for the entry block, and the sum
    /// over the incoming edges for any other. A run that ends inside a block counts as if it had
    /// continued along `jump`s. A cycle that consists of `jump`s counts its visits from outside
    /// once. Sums saturate. Cost: linear in the blocks and edges.
    pub fn visits(&self, base: &Function) -> Vec<u64> {
        visits(self, base)
    }

    /// The visits of each block of the version that a log makes of the base, by index, as if the
    /// profiled runs had executed that version. Example: if `thread` redirects an edge past a
    /// block, the visits of the edge no longer count for the block and for the taken edge of its
    /// branch.
    ///
    /// The visits are exact for runs that return: every action on control flow says which edges the
    /// visits of an edge move to. [`FunctionProfile::visits`] defines the visits of a run that ends
    /// inside a block, so a trap that a pass moved counts where the base trapped. `None` if the log
    /// inlines: the profile does not distinguish the calls of one site from others. Sums saturate.
    /// Cost: a replay of the log.
    ///
    /// # Panics
    /// If the log belongs to another base.
    pub fn visits_after(&self, base: &Function, log: &ActionLog) -> Option<Vec<u64>> {
        visits_after(self, base, log)
    }
}

fn add_targets(mine: &mut CallTargets, other: &CallTargets) {
    mine.others = mine.others.saturating_add(other.others);
    for target in &other.targets {
        let is_same =
            |known: &&mut CallTarget| (known.index, known.func) == (target.index, target.func);
        if let Some(known) = mine.targets.iter_mut().find(is_same) {
            known.calls = known.calls.saturating_add(target.calls);
        } else if mine.targets.len() < MAX_TARGETS {
            mine.targets.push(*target);
        } else {
            mine.others = mine.others.saturating_add(target.calls);
        }
    }
}
