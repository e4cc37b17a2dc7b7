//! Profiles: the decisions that the runs of a program made.
//!
//! A machine that counts ([`interp::Machine::count`]) keeps counters in both tiers of the
//! interpreter, and native code that counts (`jit::Engine::counting`) keeps its own.
//! [`Profile::collect`] and `Profile::collect_native` make a profile of them: for each function its
//! calls and arguments, the sides of its branches, the targets of its indirect calls, and the loads
//! that gave one value. `osier::speculate::suggest` makes assumptions from it.
//!
//! `Profile::write` and `Profile::read` are its file format (`docs/profile.md`).

#[cfg(feature = "files")]
mod file;
mod visits;

#[cfg(feature = "files")]
pub use file::{FORMAT, MAX_FUNCTIONS, ProfileError};

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

    /// The profile of the native code that a machine has run: of the version installed for each
    /// function, if it counts and is the base. Empty without such versions. Cost: linear in the
    /// module.
    #[cfg(feature = "native")]
    pub fn collect_native(module: &Module, vm: &jit::Vm) -> Profile {
        let profile = |(func, base): (Func, &Function)| {
            let version = vm.installed(func)?;
            let counters = version.counters()?;
            let is_base = version.key() == transition::VersionKey::of(base);
            let profile = is_base.then(|| FunctionProfile::collect(base, counters))?;
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
    /// with three exceptions. A load of a function that ran in both is kept if both name it: a
    /// profile does not say whether another load varied, or was not executed. A target of an
    /// indirect call counts among the others if four are known without it. Runs that enter a
    /// function by transitions alone may leave no trace in it. Sums saturate. Cost: linear in both.
    pub fn add(&mut self, other: &Profile) {
        for (func, profile) in &other.functions {
            self.functions.entry(*func).or_default().add(profile);
        }
    }
}

/// The counters of one version, of the interpreter or of native code.
trait Counted {
    fn calls(&self) -> u64;
    fn arguments(&self) -> Vec<Option<u64>>;
    fn sides(&self, inst: Inst) -> Option<Vec<u64>>;
    fn targets(&self, inst: Inst) -> Option<CallTargets>;
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

#[cfg(feature = "native")]
impl Counted for jit::NativeCounts {
    fn calls(&self) -> u64 {
        jit::NativeCounts::calls(self)
    }

    fn arguments(&self) -> Vec<Option<u64>> {
        jit::NativeCounts::arguments(self)
    }

    fn sides(&self, inst: Inst) -> Option<Vec<u64>> {
        jit::NativeCounts::sides(self, inst)
    }

    fn targets(&self, inst: Inst) -> Option<CallTargets> {
        jit::NativeCounts::targets(self, inst)
    }

    fn steady_value(&self, inst: Inst) -> Option<u64> {
        jit::NativeCounts::steady_value(self, inst)
    }
}

impl FunctionProfile {
    /// The profile of one function, as [`Profile::collect`] makes it. `None` if the machine does
    /// not count. Cost: linear in the function.
    pub fn of(base: &Function, machine: &Machine, func: Func) -> Option<FunctionProfile> {
        Some(FunctionProfile::collect(base, &machine.counts(machine.current(func)?)?))
    }

    fn collect(base: &Function, counts: &impl Counted) -> FunctionProfile {
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

    /// Keeps the values that both runs gave. Another value may have varied in the run that does
    /// not name it. A function without any trace of a run has no such values.
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

    /// The visits of each block of the base, by index: those of the entry block are the calls,
    /// those of another block the sum over the edges into it. A run that ends inside of a block
    /// counts as if it had gone on along `jump`s. A cycle of `jump`s alone counts its visits from
    /// outside once. Sums saturate. Cost: linear in the blocks and edges.
    pub fn visits(&self, base: &Function) -> Vec<u64> {
        visits(self, base)
    }

    /// The visits of each block of the version that a log makes of the base, by index, if the runs
    /// of the profile had executed that version. For example, an edge that `thread` redirects past
    /// a block takes its visits from that block and from the side of its branch that they took.
    ///
    /// The visits are exact for runs that return: every action on control flow says which edges the
    /// visits of an edge move to. A run that ends inside of a block counts as in
    /// [`FunctionProfile::visits`], so a trap that a pass moved counts where the base trapped.
    /// `None` if the log inlines: the profile does not tell the calls of one site from others. Sums
    /// saturate. Cost: a replay of the log.
    ///
    /// # Panics
    /// If the log is not one of the base.
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
