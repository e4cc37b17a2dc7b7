//! Judges one module in all engines.

use super::module::{Sample, sample};
use super::ours;
use super::state::{CallEnd, difference};
use super::theirs::{TheirModule, Theirs, translate};
use interp::{Machine, Program, TraceLevel};
use ir::reference::NULL;
use ir::{Func, Module, TrapKind, Type};
use osier::driver::{NoObserver, Vigilance, optimize};
use osier::jit::{Engine, Vm};
use osier::{Format, load};
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;
use verify::generate::arguments;
use wasmparser::ExternalKind;

/// The number of calls of each function.
const CALLS: usize = 6;

/// The statistics of a campaign.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SmithCounts {
    /// Modules that all engines accepted.
    pub modules: u64,
    /// Seeds whose random bytes do not give a module.
    pub none: u64,
    /// Modules that no engine can instantiate.
    pub hopeless: u64,
    /// Calls of functions.
    pub calls: u64,
    /// Calls that returned.
    pub returned: u64,
    /// Calls that returned at least one value.
    pub valued: u64,
    /// Calls that trapped, by kind. Exceeding the limit on rounds is `unreachable`.
    pub traps: BTreeMap<TrapKind, u64>,
    /// Calls that ended at a limit of an engine, and were not compared; and calls that all engines
    /// rejected.
    pub unfinished: u64,
    /// Instructions of the modules as imported.
    pub instructions: u64,
    /// Instructions after optimization.
    pub optimized: u64,
}

impl AddAssign for SmithCounts {
    fn add_assign(&mut self, other: SmithCounts) {
        self.modules += other.modules;
        self.none += other.none;
        self.hopeless += other.hopeless;
        self.calls += other.calls;
        self.returned += other.returned;
        self.valued += other.valued;
        for (kind, count) in other.traps {
            *self.traps.entry(kind).or_default() += count;
        }
        self.unfinished += other.unfinished;
        self.instructions += other.instructions;
        self.optimized += other.optimized;
    }
}

/// The instances of one module: unoptimized in both tiers of the interpreter, optimized, native,
/// and in wasmi.
struct Instances {
    ours: [Machine; 3],
    /// Unoptimized and optimized; empty if native code is left out.
    native: Vec<Vm>,
    theirs: Theirs,
}

impl Instances {
    /// All machines of ours with their names.
    fn machines(&self) -> impl Iterator<Item = (&'static str, &Machine)> {
        let native = self.native.iter().map(Vm::machine);
        NAMES.into_iter().zip(self.ours.iter().chain(native))
    }
}

/// The names of our machines.
const NAMES: [&str; 5] = ["base", "base, exactly", "O1", "base, natively", "O1, natively"];

/// A module in our representation, unoptimized and optimized.
struct JudgedPrograms {
    modules: [Arc<Module>; 2],
    decoded: [Program; 2],
}

impl JudgedPrograms {
    fn new(base: Module, optimized: Module) -> JudgedPrograms {
        let modules = [base, optimized].map(Arc::new);
        let decoded = modules.each_ref().map(|module| Program::new(module));
        JudgedPrograms { modules, decoded }
    }
}

/// Runs the module of a seed in all engines.
///
/// # Errors
/// As [`judge_sample`].
pub(super) fn judge(seed: u64, native: Option<&Engine>) -> Result<SmithCounts, String> {
    match sample(seed) {
        Some(sample) => judge_sample(&sample, seed, native),
        None => Ok(SmithCounts { none: 1, ..SmithCounts::default() }),
    }
}

/// Runs a module in all engines, with arguments from a seed.
///
/// # Errors
/// With the first difference.
///
/// # Panics
/// If a part of ours panics, which is a bug that the caller reports.
pub(super) fn judge_sample(
    sample: &Sample,
    seed: u64,
    native: Option<&Engine>,
) -> Result<SmithCounts, String> {
    let theirs = translate(sample).map_err(|e| format!("wasmi rejects the module: {e}"))?;
    let base = match load(Format::Wasm, &sample.bytes) {
        Ok(base) => base,
        Err(error) => {
            let message = error.in_file("module");
            // The importer rejects a module whose every instantiation would fail.
            let trap = theirs.instance().err();
            let said = message.contains("cannot be instantiated")
                && trap.as_ref().is_some_and(segment_outside);
            let counts = SmithCounts { hopeless: 1, ..SmithCounts::default() };
            let trap = trap.map_or_else(|| "accepts it".to_owned(), |end| end.to_string());
            return if said {
                Ok(counts)
            } else {
                Err(format!("the importer rejects it: {message}; wasmi: {trap}"))
            };
        }
    };
    let pipeline = passes::parse("O1").map_err(|e| e.to_string())?;
    let optimized = optimize(&base, &pipeline, Vigilance::On, &mut NoObserver);
    let size = |module: &Module| module.defined().map(|(_, f)| f.inst_count() as u64).sum();
    let mut counts = SmithCounts {
        modules: 1,
        instructions: size(&base),
        optimized: size(&optimized),
        ..SmithCounts::default()
    };
    let programs = JudgedPrograms::new(base, optimized);
    let base = &programs.modules[0];
    let funcs: Vec<(&str, Func)> = (sample.exports.iter())
        .filter(|(_, kind, _)| *kind == ExternalKind::Func)
        .map(|(name, _, index)| (name.as_str(), Func::from_u32(*index)))
        .collect();
    let mut instances = fresh(sample, &programs, &theirs, native)?;
    for round in 0..CALLS {
        for (name, func) in &funcs {
            let Some(running) = &mut instances else { return Ok(counts) };
            let params = &base.signature(*func).params;
            let mut args =
                arguments(seed ^ u64::from(func.as_u32()), params, CALLS).swap_remove(round);
            // References are null, since engines reject each other's references.
            let references = args
                .iter_mut()
                .zip(params)
                .filter(|(_, ty)| matches!(ty, Type::FuncRef | Type::ExternRef));
            references.for_each(|(bits, _)| *bits = NULL);
            let what = || format!("call {round} of {name} with {args:x?}");
            let end = call(running, sample, *func, name, &args)
                .map_err(|e| format!("{}: {e}", what()))?;
            count(&mut counts, &end);
            // The module may have used up its rounds, which gives this kind of trap. After a limit
            // of an engine, its state is unknown. Both cases need fresh instances.
            if matches!(end, CallEnd::Unfinished | CallEnd::Trapped(TrapKind::Unreachable)) {
                instances = fresh(sample, &programs, &theirs, native)?;
            }
        }
    }
    Ok(counts)
}

/// Whether instantiation failed because a segment does not fit its memory or table.
fn segment_outside(end: &CallEnd) -> bool {
    matches!(
        end,
        CallEnd::Trapped(TrapKind::MemoryOutOfBounds | TrapKind::TableOutOfBounds)
            | CallEnd::Refused(_)
    )
}

fn count(counts: &mut SmithCounts, end: &CallEnd) {
    counts.calls += 1;
    match end {
        CallEnd::Returned(results) => {
            counts.returned += 1;
            counts.valued += u64::from(!results.is_empty());
        }
        CallEnd::Trapped(kind) => *counts.traps.entry(*kind).or_default() += 1,
        CallEnd::Unfinished | CallEnd::Refused(_) => counts.unfinished += 1,
    }
}

/// Fresh instances; `None` if all engines fail alike to make one, or one of them reaches a limit.
///
/// # Errors
/// If only some engines make an instance, or the states of the fresh instances differ.
fn fresh(
    sample: &Sample,
    programs: &JudgedPrograms,
    theirs: &TheirModule,
    native: Option<&Engine>,
) -> Result<Option<Instances>, String> {
    let [base, optimized] = &programs.decoded;
    let made = [(base, TraceLevel::Off), (base, TraceLevel::Digest), (optimized, TraceLevel::Off)];
    let (ours, theirs) =
        (made.map(|(program, trace)| ours::instance(program, trace)), theirs.instance());
    let modules =
        programs.modules.iter().filter_map(|module| Some(ours::native_instance(native?, module)));
    let (vms, native_ends): (Vec<_>, Vec<_>) = modules.partition(Result::is_ok);
    let native_ends: Vec<Option<CallEnd>> = native_ends.into_iter().map(Result::err).collect();
    match (ours, theirs) {
        ([Ok(fast), Ok(exact), Ok(optimized)], Ok(theirs)) if native_ends.is_empty() => {
            let native = vms.into_iter().filter_map(Result::ok).collect();
            let instances = Instances { ours: [fast, exact, optimized], native, theirs };
            compare_states(&instances, sample).map_err(|e| format!("fresh instances: {e}"))?;
            Ok(Some(instances))
        }
        (ours, theirs) => {
            let mut ends: Vec<Option<CallEnd>> =
                ours.into_iter().map(Result::err).chain([theirs.err()]).collect();
            ends.extend(vms.iter().map(|_| None).chain(native_ends));
            let all = |holds: &dyn Fn(&CallEnd) -> bool| {
                ends.iter().all(|end| end.as_ref().is_some_and(holds))
            };
            if ends.contains(&Some(CallEnd::Unfinished))
                || all(&segment_outside)
                || ends.iter().all(|end| *end == ends[0])
            {
                return Ok(None);
            }
            let text =
                |end: &Option<CallEnd>| end.as_ref().map_or("made".to_owned(), CallEnd::to_string);
            let text: Vec<String> = NAMES[..3]
                .iter()
                .chain(&["wasmi", "natively", "natively"])
                .zip(&ends)
                .map(|(v, e)| format!("{v}: {}", text(e)))
                .collect();
            Err(format!("instances: {}", text.join("; ")))
        }
    }
}

/// Calls a function in all instances, and compares results and states.
fn call(
    instances: &mut Instances,
    sample: &Sample,
    func: Func,
    name: &str,
    args: &[u64],
) -> Result<CallEnd, String> {
    let theirs = instances.theirs.call(name, args);
    let ours = instances.ours.each_mut().map(|machine| ours::call(machine, func, args));
    let native: Vec<CallEnd> =
        instances.native.iter_mut().map(|vm| ours::native_call(vm, func, args)).collect();
    let ours: Vec<CallEnd> = ours.into_iter().chain(native).collect();
    if theirs == CallEnd::Unfinished || ours.contains(&CallEnd::Unfinished) {
        return Ok(CallEnd::Unfinished);
    }
    for (version, end) in NAMES.iter().zip(&ours) {
        if *end != theirs {
            return Err(format!("{version}: {end}; wasmi: {theirs}"));
        }
    }
    compare_states(instances, sample)?;
    Ok(theirs)
}

fn compare_states(instances: &Instances, sample: &Sample) -> Result<(), String> {
    let theirs = instances.theirs.state(sample);
    for (version, machine) in instances.machines() {
        if let Some(difference) = difference(&ours::state(machine, sample), &theirs) {
            return Err(format!("{version} and wasmi: {difference}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
