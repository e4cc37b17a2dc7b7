//! What `osier fuzz --format json` writes.

use crate::{Figures, Oracle, PassFigures};
use std::collections::BTreeMap;

/// What `osier fuzz --format json` writes.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FuzzReport {
    /// [`osier::schema::SCHEMA`].
    pub schema: u32,
    /// The seed of the first program.
    pub seed: u64,
    /// The other options that decide what is judged, as the command takes them.
    pub settings: String,
    /// Threads; no other figure but the time depends on it, unless time was the limit.
    pub jobs: u64,
    /// Programs compiled to WebAssembly; `null` when none were asked for.
    pub corpus: Option<FuzzFigures>,
    /// Random WebAssembly modules; `null` when none were asked for.
    pub smith: Option<FuzzFigures>,
    /// Generated programs; `null` when none were asked for.
    pub generated: Option<FuzzFigures>,
    /// All of them.
    pub all: FuzzFigures,
    /// By oracle, in order: programs in which it found something; `null` when it was not asked.
    pub oracles: BTreeMap<&'static str, Option<u64>>,
    /// Floors that the figures of generated programs fall below, as sentences. What native code
    /// does has no floors.
    pub below_floors: Vec<String>,
    /// What was found.
    pub failures: Vec<FuzzFailure>,
    /// Transitions compared, in all.
    pub transitions: u64,
    /// Whether the command was interrupted: then this is what was done by then.
    pub interrupted: bool,
    /// The time it took: making programs, optimizing, verifying, mapping, running and comparing.
    pub seconds: f64,
}

/// A program in which something was found.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FuzzFailure {
    /// The oracle that found it.
    pub oracle: &'static str,
    /// What is wrong.
    pub message: String,
    /// The command that finds it again.
    pub reproduce: String,
    /// The reduced program as a test in the form of `tests/oir/`; `null` when it was not reduced.
    pub test: Option<String>,
}

/// What was done with some programs.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct FuzzFigures {
    /// Programs.
    pub programs: u64,
    /// Of these, left as they are by every pass.
    pub unchanged: u64,
    /// Inputs that are no program for this compiler.
    pub refused: u64,
    /// Programs by number of versions.
    pub versions: BTreeMap<usize, u64>,
    /// By pass.
    pub passes: BTreeMap<&'static str, FuzzPass>,
    /// Pairs of versions of a function that were mapped.
    pub pairs: u64,
    /// Reachable points of these, of both versions.
    pub points: u64,
    /// Points with an entry.
    pub entries: u64,
    /// Entries under the state oracle, composed ones included.
    pub entries_armed: u64,
    /// Of these, fired at least once.
    pub entries_fired: u64,
    /// Entries whose certificates the checker accepts.
    pub certified: u64,
    /// Entries that start in code proved never to run.
    pub unreached: u64,
    /// Pairs of versions whose certificate the checker refutes; their entries count as dropped.
    pub unrelated: u64,
    /// Entries that it drops, by name of the check that fails.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Points from which mappings compose along the whole chain of versions.
    pub composed: u64,
    /// Points from which the first mapping has an entry and the chain has none.
    pub not_composed: u64,
    /// Comparisons of composed, rebuilt and direct entries that land at the same point.
    pub same_point: u64,
    /// Such entries that do not.
    pub other_point: u64,
    /// Runs of a pair of versions on one input.
    pub runs: u64,
    /// Of these, ended by a trap.
    pub trapped: u64,
    /// Of these, ended by a limit, so that nothing was compared at the end.
    pub exhausted: u64,
    /// Transitions whose state was compared.
    pub transitions: u64,
    /// Of these, from the version before.
    pub forward: u64,
    /// Of these, from the version after.
    pub backward: u64,
    /// The share of transitions that run compensation code.
    pub with_chi: Option<f64>,
    /// The share of transitions that start in a loop.
    pub in_loops: Option<f64>,
    /// Values compared.
    pub compared: u64,
    /// Values compared in a transition.
    pub compared_mean: Option<f64>,
    /// Transitions after which the run went on to its end.
    pub going_on: u64,
    /// Of these, ended by a limit.
    pub going_on_exhausted: u64,
    /// Chains of random transitions.
    pub chains: u64,
    /// Of these, with at least four.
    pub full_chains: u64,
    /// Transitions made in them.
    pub hops: u64,
    /// Chains that a limit ended.
    pub chains_exhausted: u64,
    /// Runs with the transitions of a stress switch.
    pub stressed: u64,
    /// Transitions made in them.
    pub stress_hops: u64,
    /// Such runs that a limit ended.
    pub stressed_exhausted: u64,
    /// Programs in which something was found.
    pub divergences: u64,
    /// What native code did (`--engine jit`); `null` when none was run, or this build has none.
    pub native: Option<FuzzNative>,
}

/// What native code did. Each transition is compared, where it leaves, with that of the
/// interpreter.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct FuzzNative {
    /// Transitions from version to version that compiled code made.
    pub transitions: u64,
    /// Of these, from the version before.
    pub forward: u64,
    /// Of these, from the version after.
    pub backward: u64,
    /// Of these, compared where they landed too.
    pub probed: u64,
    /// Points that fired where a stress switch made no transition.
    pub stays: u64,
    /// Values compared.
    pub compared: u64,
    /// OSR points compiled in.
    pub points: u64,
    /// Of these, fired at least once.
    pub points_fired: u64,
    /// Runs of native code.
    pub runs: u64,
    /// Of these, ended by a trap.
    pub trapped: u64,
    /// Runs that a limit ended.
    pub exhausted: u64,
    /// Pieces of code compiled: versions, probes and continuations.
    pub compiled_functions: u64,
    /// The time that took, of all processes.
    pub compile_seconds: f64,
    /// Programs in which the native oracle found something.
    pub findings: u64,
}

fn native(figures: &Figures) -> Option<FuzzNative> {
    let native = &figures.native;
    (native.runs > 0).then(|| FuzzNative {
        transitions: native.transitions,
        forward: native.transitions - native.backward,
        backward: native.backward,
        probed: native.probed,
        stays: native.stays,
        compared: native.compared,
        points: native.points,
        points_fired: native.fired,
        runs: native.runs,
        trapped: native.trapped,
        exhausted: native.exhausted,
        compiled_functions: native.compiled_functions,
        compile_seconds: native.compile_time.as_secs_f64(),
        findings: figures.findings.get(&Oracle::Native).copied().unwrap_or(0),
    })
}

/// What a pass did.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct FuzzPass {
    /// Programs it was run on.
    pub programs: u64,
    /// Of these, programs in which it did something.
    pub acted: u64,
    /// Actions it logged.
    pub actions: u64,
}

impl From<&PassFigures> for FuzzPass {
    fn from(pass: &PassFigures) -> FuzzPass {
        FuzzPass { programs: pass.programs, acted: pass.acted, actions: pass.actions }
    }
}

impl From<&Figures> for FuzzFigures {
    fn from(figures: &Figures) -> FuzzFigures {
        let total = figures.state.total();
        let share =
            |part: u64| (total.transitions > 0).then(|| part as f64 / total.transitions as f64);
        FuzzFigures {
            programs: figures.programs,
            unchanged: figures.unchanged,
            refused: figures.refused,
            versions: figures.versions.clone(),
            passes: figures.passes.iter().map(|(name, pass)| (*name, pass.into())).collect(),
            pairs: figures.pairs,
            points: figures.points,
            entries: figures.entries,
            entries_armed: figures.armed,
            entries_fired: figures.fired,
            certified: figures.certified,
            unrelated: figures.unrelated,
            unreached: figures.unreached,
            dropped: figures.dropped.clone(),
            composed: figures.composed,
            not_composed: figures.not_composed,
            same_point: figures.same_point,
            other_point: figures.other_point,
            runs: figures.state.runs,
            trapped: figures.state.trapped,
            exhausted: figures.state.exhausted,
            transitions: total.transitions,
            forward: figures.state.forward.transitions,
            backward: figures.state.backward.transitions,
            with_chi: share(total.with_code),
            in_loops: share(total.in_loops),
            compared: total.compared,
            compared_mean: share(total.compared),
            going_on: total.going_on,
            going_on_exhausted: total.going_on_exhausted,
            chains: figures.hops.chains,
            full_chains: figures.hops.full_chains,
            hops: figures.hops.hops,
            chains_exhausted: figures.hops.exhausted,
            stressed: figures.stressed,
            stress_hops: figures.stress_hops,
            stressed_exhausted: figures.stressed_exhausted,
            divergences: figures.divergences(),
            native: native(figures),
        }
    }
}

/// The programs that each oracle found something in; `None` for one that was not asked.
pub fn by_oracle(figures: &Figures) -> BTreeMap<&'static str, Option<u64>> {
    let found = |oracle: &Oracle| figures.findings.get(oracle).copied().unwrap_or(0);
    Oracle::ALL.iter().map(|o| (o.name(), figures.asked(*o).then(|| found(o)))).collect()
}
