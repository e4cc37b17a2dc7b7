//! The document that `osier fuzz --format json` prints.

use crate::{Figures, FuzzOracle, PassFigures};
use std::collections::BTreeMap;

/// The document that `osier fuzz --format json` prints.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FuzzReport {
    /// [`osier::schema::SCHEMA`].
    pub schema: u32,
    /// The seed of the first program.
    pub seed: u64,
    /// The other options that affect the cases, in the form that the command accepts.
    pub settings: String,
    /// The number of threads. Other figures except times do not depend on it, unless the time was
    /// the limit.
    pub jobs: u64,
    /// The figures of the WebAssembly programs of the corpus. `null` if none were requested.
    pub corpus: Option<FuzzFigures>,
    /// The figures of random WebAssembly modules. `null` if none were requested.
    pub smith: Option<FuzzFigures>,
    /// The figures of generated programs. `null` if none were requested.
    pub generated: Option<FuzzFigures>,
    /// The sums of these figures.
    pub all: FuzzFigures,
    /// The number of programs in which each oracle found something. `null` for an oracle that did
    /// not run.
    pub oracles: BTreeMap<&'static str, Option<u64>>,
    /// The floors that the figures of generated programs fall below, as sentences. The figures of
    /// native code have no floors.
    pub below_floors: Vec<String>,
    /// The programs with findings.
    pub failures: Vec<FuzzFailure>,
    /// The number of compared transitions.
    pub transitions: u64,
    /// Whether the command was interrupted. The document then covers the cases judged by then.
    pub interrupted: bool,
    /// The duration of the command in seconds. It covers making programs, optimizing, verifying,
    /// mapping, running and comparing.
    pub seconds: f64,
}

/// A program with findings.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FuzzFailure {
    /// The oracle of the findings.
    pub oracle: &'static str,
    /// The description of the findings.
    pub message: String,
    /// The command that reproduces the findings.
    pub reproduce: String,
    /// The program as a test in the format of `tests/oir/`, reduced if possible. `null` for
    /// failures after the first and for programs that are not generated.
    pub test: Option<String>,
}

/// Counts over some programs.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct FuzzFigures {
    /// The number of programs.
    pub programs: u64,
    /// The number of programs that no pass changed.
    pub unchanged: u64,
    /// The number of inputs that are not programs for this compiler.
    pub refused: u64,
    /// The number of programs, by number of versions.
    pub versions: BTreeMap<usize, u64>,
    /// The figures of each pass, by its name.
    pub passes: BTreeMap<&'static str, FuzzPass>,
    /// The number of pairs of versions of a function with mappings.
    pub pairs: u64,
    /// The number of reachable points, of both versions of all pairs.
    pub points: u64,
    /// The number of these points with an entry.
    pub entries: u64,
    /// The number of entries that the state oracle can fire, composed ones included.
    pub entries_armed: u64,
    /// The number of these entries that fired at least once.
    pub entries_fired: u64,
    /// The number of entries that the checker accepts.
    pub certified: u64,
    /// The number of entries at unreachable points.
    pub unreached: u64,
    /// The number of pairs of versions whose certificate the checker refutes, in whole or at an
    /// anchor. The entries that this costs count as dropped.
    pub unrelated: u64,
    /// The number of entries that the checker drops, by name of the failed check.
    pub dropped: BTreeMap<&'static str, u64>,
    /// The number of pairs with dropped entries, whose later version was made again without the
    /// rewrites to blame.
    pub retried: u64,
    /// The number of rewrites given up there.
    pub given_up: u64,
    /// The number of entries of the versions so made that the checker drops.
    pub still_dropped: u64,
    /// The number of points with a composed entry along the whole chain of versions.
    pub composed: u64,
    /// The number of points with an entry in the first mapping of the chain but no composed entry.
    pub not_composed: u64,
    /// The number of comparisons of composed, rebuilt and direct entries that land at the same
    /// point.
    pub same_point: u64,
    /// The number of such entries that land at other points and are not compared.
    pub other_point: u64,
    /// The number of runs of a pair of versions on one input.
    pub runs: u64,
    /// The number of these runs that ended in a trap.
    pub trapped: u64,
    /// The number of these runs that a limit ended. Their ends are not compared.
    pub exhausted: u64,
    /// The number of transitions whose states were compared.
    pub transitions: u64,
    /// The number of these transitions from the version before.
    pub forward: u64,
    /// The number of these transitions from the version after.
    pub backward: u64,
    /// The share of transitions that run compensation code.
    pub with_chi: Option<f64>,
    /// The share of transitions that start in a loop.
    pub in_loops: Option<f64>,
    /// The number of compared values.
    pub compared: u64,
    /// The mean number of compared values per transition.
    pub compared_mean: Option<f64>,
    /// The number of transitions after which the run continued to its end.
    pub going_on: u64,
    /// The number of these runs that a limit ended.
    pub going_on_exhausted: u64,
    /// The number of chains of random transitions.
    pub chains: u64,
    /// The number of these chains with at least four transitions.
    pub full_chains: u64,
    /// The number of transitions in these chains.
    pub hops: u64,
    /// The number of these chains that a limit ended.
    pub chains_exhausted: u64,
    /// The number of runs with transitions of a stress switch.
    pub stressed: u64,
    /// The number of transitions in these runs.
    pub stress_hops: u64,
    /// The number of these runs that a limit ended.
    pub stressed_exhausted: u64,
    /// The number of programs with findings.
    pub divergences: u64,
    /// The figures of speculative versions. `null` if there were none.
    pub speculation: Option<FuzzSpeculation>,
    /// The figures of versions with inlined code. `null` if there were none.
    pub inlining: Option<FuzzInlining>,
    /// The figures of native code (`--engine jit`). `null` if none ran.
    pub native: Option<FuzzNative>,
}

/// Figures of versions that make assumptions. Each has exits to the version that makes none.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct FuzzSpeculation {
    /// The number of versions that make assumptions.
    pub versions: u64,
    /// The number of assumptions chosen from profiles.
    pub wanted: u64,
    /// The number of those that optimized versions make, each with an exit.
    pub made: u64,
    /// The number of those that a pass proved or removed.
    pub settled: u64,
    /// The number of those that were left out, for lack of an exit.
    pub dropped: u64,
    /// The number of assumptions that keep values for their exits.
    pub pinned: u64,
    /// The number of assumptions made that a run came to.
    pub visited: u64,
    /// The number of assumptions made that failed in a run.
    pub failing: u64,
    /// The number of exits fired and compared where the assumption holds.
    pub exits_holding: u64,
    /// The number of exits fired and compared where the assumption fails. If the run could leave
    /// there, it did.
    pub exits_failing: u64,
    /// The number of transitions whose states were compared, exits included.
    pub transitions: u64,
    /// The number of transitions in chains of random transitions.
    pub hops: u64,
    /// The number of programs in which the speculation oracle found something.
    pub findings: u64,
}

fn speculation(figures: &Figures) -> Option<FuzzSpeculation> {
    let all = &figures.speculation;
    let (exits_holding, exits_failing) = all.exits();
    let findings = figures.findings.get(&FuzzOracle::Speculation).copied().unwrap_or(0);
    (all.wanted > 0 || findings > 0).then(|| FuzzSpeculation {
        versions: all.versions,
        wanted: all.wanted,
        made: all.made,
        settled: all.settled,
        dropped: all.dropped,
        pinned: all.pinned,
        visited: all.visited,
        failing: all.failing,
        exits_holding,
        exits_failing,
        transitions: all.state.total().transitions,
        hops: all.hops.hops,
        findings,
    })
}

/// Figures of versions with inlined code. Transitions out of them lead to one or more activations.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct FuzzInlining {
    /// The number of versions with inlined code.
    pub versions: u64,
    /// The number of calls inlined.
    pub calls: u64,
    /// The number of points: of bases, of versions.
    pub points: [u64; 2],
    /// The number of those without an entry: up, down.
    pub lost: [u64; 2],
    /// The number of transitions out of versions, by their activations: 1, 2, 3, 4 and more.
    pub down: [u64; 5],
    /// The number of transitions into versions.
    pub up: u64,
    /// The number of values compared.
    pub values: u64,
    /// The number of runs that went on behind a transition.
    pub going_on: u64,
    /// The number of assumptions that versions make, each with an exit.
    pub assumptions: u64,
    /// The number of assumptions left out.
    pub dropped: u64,
    /// The number of transitions at assumptions that held.
    pub exits_holding: u64,
    /// The number of transitions at assumptions that failed.
    pub exits_failing: u64,
    /// The number of transitions that found no room for their activations.
    pub without_room: u64,
    /// The number of visits that the oracle could not tell apart.
    pub ambiguous: u64,
    /// The number of hop chains through versions and frames.
    pub chains: u64,
    /// The number of transitions in these chains: into versions, out of them into one activation,
    /// and out of them into several.
    pub chain_hops: [u64; 3],
    /// The number of chains with two transitions into several activations or more.
    pub chains_several: u64,
    /// The number of these transitions whose state a run of the bases came to.
    pub chain_states: u64,
    /// The number of ways in that chains did not take, because they need a value of entries
    /// accepted apart.
    pub chain_apart: u64,
    /// The number of chains that a limit ended.
    pub chains_exhausted: u64,
    /// The number of programs in which the inlining oracle found something.
    pub findings: u64,
}

fn inlining(figures: &Figures) -> Option<FuzzInlining> {
    let (all, frames) = (&figures.inlining, &figures.inlining.frames);
    let chains = &frames.chains;
    let findings = figures.findings.get(&FuzzOracle::Inlining).copied().unwrap_or(0);
    (all.versions > 0 || findings > 0).then_some(FuzzInlining {
        versions: all.versions,
        calls: all.calls,
        points: all.points,
        lost: all.lost,
        down: frames.down,
        up: frames.up,
        values: frames.values,
        going_on: frames.going_on,
        assumptions: all.assumptions,
        dropped: all.dropped,
        exits_holding: frames.at_assumptions[0],
        exits_failing: frames.at_assumptions[1],
        without_room: frames.without_room,
        ambiguous: frames.ambiguous,
        chains: chains.chains,
        chain_hops: [chains.into, chains.out[0], chains.out[1]],
        chains_several: chains.several,
        chain_states: chains.states,
        chain_apart: chains.apart,
        chains_exhausted: chains.exhausted,
        findings,
    })
}

/// Figures of native code. Each transition is compared with that of the interpreter at its source
/// point.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct FuzzNative {
    /// The number of transitions between versions that compiled code made.
    pub transitions: u64,
    /// The number of these transitions from the version before.
    pub forward: u64,
    /// The number of these transitions from the version after.
    pub backward: u64,
    /// The number of these transitions that are also compared at their landing point.
    pub probed: u64,
    /// The number of fired points at which a stress switch demanded no transition.
    pub stays: u64,
    /// The number of compared values.
    pub compared: u64,
    /// The number of OSR points in compiled code.
    pub points: u64,
    /// The number of these points that fired at least once.
    pub points_fired: u64,
    /// The number of runs of native code.
    pub runs: u64,
    /// The number of these runs that ended in a trap.
    pub trapped: u64,
    /// The number of runs that a limit ended.
    pub exhausted: u64,
    /// The number of compiled versions that make assumptions.
    pub speculative: u64,
    /// The number of assumptions in compiled code, each with an exit.
    pub assumptions: u64,
    /// The number of these that failed at least once.
    pub assumptions_failing: u64,
    /// The number of visits of these assumptions that held.
    pub held: u64,
    /// The number of visits of these assumptions that failed, each of which left the version.
    pub exits: u64,
    /// The number of these exits that continued in the interpreter.
    pub exits_interpreted: u64,
    /// The number of these exits that continued in native code without a question.
    pub exits_linked: u64,
    /// The number of exits out of versions with inlined code.
    pub left_inlined: u64,
    /// The number of these exits that led to several activations.
    pub framed: u64,
    /// The number of these exits at assumptions that failed.
    pub failed_inlined: u64,
    /// The number of times that a policy which counts took a run with inlined code from the
    /// interpreter back to native code.
    pub resumed_inlined: u64,
    /// The number of versions that were released while a run went on.
    pub released: u64,
    /// The number of programs that ran while other threads compiled and set flags.
    pub tiered: u64,
    /// The number of pieces of code there that came late, by a delay of the seed.
    pub late: u64,
    /// The visits by which they came late, in total.
    pub delays: u64,
    /// The number of times that such a run entered native code in a loop.
    pub entered: u64,
    /// The number of times that it left native code at a flag that another thread had set.
    pub flagged: u64,
    /// The number of compared values that agree but for the bits of NaNs.
    pub nans: u64,
    /// The number of compiled pieces of code: versions, probes and continuations.
    pub compiled_functions: u64,
    /// The time of compiling them in seconds, summed over all processes.
    pub compile_seconds: f64,
    /// The number of programs in which the native oracle found something.
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
        speculative: native.speculative,
        assumptions: native.assumptions,
        assumptions_failing: native.failing,
        held: native.held,
        exits: native.exits,
        exits_interpreted: native.interpreted,
        exits_linked: native.linked,
        left_inlined: native.left_inlined,
        framed: native.framed,
        failed_inlined: native.failed_inlined,
        resumed_inlined: native.resumed,
        released: native.released,
        tiered: native.tiered,
        late: native.late,
        delays: native.delays,
        entered: native.entered,
        flagged: native.flagged,
        nans: native.nans,
        compiled_functions: native.compiled_functions,
        compile_seconds: native.compile_time.as_secs_f64(),
        findings: figures.findings.get(&FuzzOracle::Native).copied().unwrap_or(0),
    })
}

/// Counts for one pass.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct FuzzPass {
    /// The number of programs that the pass ran on.
    pub programs: u64,
    /// The number of these programs in which the pass logged an action.
    pub acted: u64,
    /// The number of actions that the pass logged.
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
            retried: figures.retried,
            given_up: figures.given_up,
            still_dropped: figures.still_dropped,
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
            speculation: speculation(figures),
            inlining: inlining(figures),
            native: native(figures),
        }
    }
}

/// The number of programs in which each oracle found something. `None` for an oracle that did not
/// run.
pub fn by_oracle(figures: &Figures) -> BTreeMap<&'static str, Option<u64>> {
    let found = |oracle: &FuzzOracle| figures.findings.get(oracle).copied().unwrap_or(0);
    FuzzOracle::ALL.iter().map(|o| (o.name(), figures.asked(*o).then(|| found(o)))).collect()
}
