//! The speculation oracle: versions that assume what a run has shown, and their exits.
//!
//! The first list of arguments is the profile: a run of the program on it shows the contents of
//! random values at random places. Assumed are contents that the first visits have in common, one
//! to three of them by seed, so that many assumptions fail in later visits and on other arguments
//! ([`verify::generate::Weights::with_facts`]). [`speculate()`] makes a version of each function
//! under these assumptions.
//!
//! The state oracle compares every entry between base and optimized version, and so every exit at
//! every visit of its assumption, holding and failing. Chains of random transitions leave where
//! assumptions fail, and must end like runs of the base.

use super::case::Case;
use super::judge::{MAX_FINDINGS, hop_limits};
use super::oracle::{FuzzFinding, FuzzOracle};
use interp::{Control, Limits, Machine, NoObserver, Observer, Scope, View};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::{Func, Function, Inst, Point, Value};
use osier::speculate::{Assumption, Speculative, speculate};
use osr::{VersionPair, VersionTree};
use passes::{Pipeline, parse};
use std::collections::{BTreeMap, BTreeSet};
use verify::hops::{self, FunctionGraph, HopOptions, HopReport, Hopper};
use verify::prng::Prng;
use verify::state_oracle::{FunctionPair, Oracle, OracleOptions, Report};

/// Counts of the speculation oracle.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SpeculationFigures {
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
    /// The number of assumptions made that a run came to.
    pub visited: u64,
    /// The number of assumptions made that failed in a run.
    pub failing: u64,
    /// The figures of the state oracle, without its findings.
    pub state: Report,
    /// The figures of chains of random transitions, without their findings.
    pub hops: HopReport,
}

impl SpeculationFigures {
    /// Exits fired and compared at visits of assumptions that hold, and of assumptions that fail.
    pub fn exits(&self) -> (u64, u64) {
        let total = self.state.total();
        (total.holding, total.failing)
    }

    /// Adds other figures.
    pub fn add(&mut self, other: &SpeculationFigures) {
        self.versions += other.versions;
        self.wanted += other.wanted;
        self.made += other.made;
        self.settled += other.settled;
        self.dropped += other.dropped;
        self.visited += other.visited;
        self.failing += other.failing;
        self.state.add(&other.state);
        self.hops.add(&other.hops);
    }
}

/// The places at which contents are recorded, for each assumption wanted.
const PLACES: u32 = 3;

/// A speculative version of a function, with the bounding anchors that it shares with the base.
struct Speculated {
    func: Func,
    made: Speculative,
    anchors: BTreeSet<Inst>,
}

/// Judges speculative versions of the functions of a case.
///
/// # Errors
/// A transition to a wrong state, or a run with transitions that ends otherwise than the base.
pub(super) fn run(case: &Case, figures: &mut SpeculationFigures) -> Result<(), Vec<FuzzFinding>> {
    let prng = Prng::new(case.seed).fork(0x61_73_73_75);
    let assumptions = chosen(case, prng.fork(0)).map_err(|e| vec![finding(case, e)])?;
    let pipeline = pipeline(case, &mut prng.fork(1));
    let mut all = Vec::new();
    for (func, base) in case.module.defined() {
        let Some(assumptions) = assumptions.get(&func) else { continue };
        let made = speculate(&case.module, base, assumptions, &pipeline)
            .map_err(|e| vec![finding(case, format!("@{}: {e}", base.name()))])?;
        figures.wanted += assumptions.len() as u64;
        figures.made += made.exits.len() as u64;
        figures.settled += made.settled.len() as u64;
        figures.dropped += made.dropped.len() as u64;
        if !made.exits.is_empty() {
            let anchors = anchors(&made.tree);
            all.push(Speculated { func, made, anchors });
        }
    }
    figures.versions += all.len() as u64;
    if all.is_empty() {
        return Ok(());
    }
    compare_states(case, &all, figures)?;
    run_chains(case, &all, figures)
}

fn finding(case: &Case, message: String) -> FuzzFinding {
    FuzzFinding { oracle: FuzzOracle::Speculation, versions: (0, case.steps.len()), message }
}

/// The passes behind the assumptions: those of the case, or a usual pipeline.
fn pipeline(case: &Case, prng: &mut Prng) -> Pipeline {
    match prng.below(2) {
        0 => Pipeline::of(case.steps.concat()),
        _ => parse(prng.pick(&["O1", "O2", "canonical"])).expect("a pipeline of the registry"),
    }
}

/// The anchors that a base, the version that assumes, and the optimized version share.
fn anchors(tree: &VersionTree) -> BTreeSet<Inst> {
    let versions: Vec<osr::Version> = tree.versions().collect();
    let mut shared: Option<BTreeSet<Inst>> = None;
    for ends in versions.windows(2) {
        let log = tree.log(ends[0], ends[1]).expect("each version is derived from the one before");
        let pair = VersionPair::new(tree.function(ends[0]), tree.function(ends[1]), &log)
            .expect("the log of a tree was replayed");
        let common: BTreeSet<Inst> = pair.common_anchors().collect();
        shared = Some(match shared {
            Some(shared) => shared.intersection(&common).copied().collect(),
            None => common,
        });
    }
    shared.unwrap_or_default()
}

/// Compares the states at all transitions between bases and optimized versions.
fn compare_states(
    case: &Case,
    all: &[Speculated],
    figures: &mut SpeculationFigures,
) -> Result<(), Vec<FuzzFinding>> {
    let pairs: Vec<FunctionPair<'_>> = all.iter().map(Speculated::pair).collect();
    let options = OracleOptions {
        policy: case.policy,
        // A run that leaves executes the code between landing point and assumption again.
        limits: hop_limits(case),
        going_on: case.going_on,
        divergences: MAX_FINDINGS,
        seed: case.seed,
        ..OracleOptions::default()
    };
    let mut oracle = Oracle::new(&case.module, &pairs, options)
        .map_err(|e| vec![finding(case, e.to_string())])?;
    for args in &case.arguments {
        oracle.run(case.entry, args, &case.world);
    }
    let coverage = oracle.assumptions();
    figures.visited += coverage.visited;
    figures.failing += coverage.failing;
    let mut report = oracle.report().clone();
    let found = std::mem::take(&mut report.divergences);
    figures.state.add(&report);
    match found.is_empty() {
        true => Ok(()),
        false => Err(found.iter().map(|d| finding(case, d.to_string())).collect()),
    }
}

/// Runs random chains of transitions between bases and optimized versions.
fn run_chains(
    case: &Case,
    all: &[Speculated],
    figures: &mut SpeculationFigures,
) -> Result<(), Vec<FuzzFinding>> {
    if case.chains == 0 {
        return Ok(());
    }
    let parts: Vec<_> = all
        .iter()
        .map(|one| {
            let edge = |from, to, mapping| hops::Edge { from, to, mapping };
            let pair = one.pair();
            ([pair.before, pair.after], [edge(0, 1, pair.forward), edge(1, 0, pair.backward)])
        })
        .collect();
    let graphs: Vec<FunctionGraph<'_>> = all
        .iter()
        .zip(&parts)
        .map(|(one, (versions, edges))| FunctionGraph { func: one.func, versions, edges })
        .collect();
    let options = HopOptions {
        seed: case.seed,
        chains: case.chains,
        limits: hop_limits(case),
        divergences: MAX_FINDINGS,
        ..HopOptions::default()
    };
    let mut hopper = Hopper::new(&case.module, &graphs, options)
        .map_err(|e| vec![finding(case, e.to_string())])?;
    for args in &case.arguments {
        hopper.run(case.entry, args, &case.world);
    }
    let mut report = hopper.report().clone();
    let found = std::mem::take(&mut report.divergences);
    figures.hops.add(&report);
    match found.is_empty() {
        true => Ok(()),
        false => Err(found.iter().map(|d| finding(case, d.to_string())).collect()),
    }
}

impl Speculated {
    fn pair(&self) -> FunctionPair<'_> {
        FunctionPair {
            func: self.func,
            before: self.made.tree.function(VersionTree::BASE),
            after: self.made.function(),
            anchors: &self.anchors,
            forward: &self.made.forward,
            backward: &self.made.backward,
        }
    }
}

/// The places of a function at which contents are recorded, each with its value.
type Places = BTreeMap<(Func, Inst), Value>;

/// The assumptions of each function, from the profile of the first list of arguments.
///
/// # Errors
/// If the module cannot be instantiated.
fn chosen(case: &Case, mut prng: Prng) -> Result<BTreeMap<Func, Vec<Assumption>>, String> {
    let mut places = Places::new();
    for (func, f) in case.module.defined() {
        let count = case.assumptions.saturating_mul(PLACES);
        places.extend(random_places(f, &mut prng, count).map(|(i, v)| ((func, i), v)));
    }
    let seen = profile(case, &places)?;
    let held = [1, 1, 2, 3][prng.index(4)];
    let mut chosen: BTreeMap<Func, [Vec<Assumption>; 2]> = BTreeMap::new();
    for ((func, inst), seen) in seen.iter().filter(|(_, seen)| seen.held >= held) {
        let at = Point::before(*inst);
        let value = places[&(*func, *inst)];
        let assumption = Assumption { at, value, bits: seen.bits, reason: inst.as_u32() };
        chosen.entry(*func).or_default()[usize::from(seen.broken)].push(assumption);
    }
    // Three in four of them break later in the same run, as far as there are such: a profile that
    // ended earlier would have chosen them.
    let most = case.assumptions as usize;
    let some = |[held, mut broken]: [Vec<Assumption>; 2]| {
        broken.truncate(most.saturating_mul(3).div_ceil(4));
        let rest = most - broken.len();
        broken.extend(held.into_iter().take(rest));
        broken.sort_unstable();
        broken
    };
    Ok(chosen.into_iter().map(|(func, all)| (func, some(all))).collect())
}

/// Random places of a function, each with a value that is available there: mostly an operand of the
/// instruction, sometimes any. All places if there are no more than `count`, so that the reducer
/// finds a failing one again in a smaller program.
fn random_places(f: &Function, prng: &mut Prng, count: u32) -> impl Iterator<Item = (Inst, Value)> {
    let cfg = Cfg::new(f);
    let dom = DomTree::new(f, &cfg);
    let reached: Vec<Inst> = cfg.rpo().iter().flat_map(|b| f.block_insts(*b)).collect();
    let params = cfg.rpo().iter().flat_map(|b| f.block_params(*b).to_vec());
    let results = reached.iter().flat_map(|i| f.inst(*i).results.to_vec());
    let is_variable = |v: &Value| f.constant(*v).is_none();
    let values: Vec<Value> = params.chain(results).filter(is_variable).collect();
    let mut places = Vec::new();
    for inst in reached {
        let operands: Vec<Value> = f.inst(inst).operands().filter(is_variable).collect();
        let any = (!values.is_empty()).then(|| prng.pick(&values));
        let value = match operands.is_empty() || prng.chance(30) {
            true => any.filter(|v| dom.available_at(f, *v, Point::before(inst))),
            false => Some(prng.pick(&operands)),
        };
        places.extend(value.map(|value| (inst, value)));
    }
    while places.len() > count as usize {
        places.swap_remove(prng.index(places.len()));
    }
    places.into_iter()
}

/// The contents of a value in the first visits of a place.
struct Contents {
    bits: u64,
    /// The number of visits up to the first with other contents.
    held: u64,
    broken: bool,
}

/// Records the contents at places.
struct Recorder<'p> {
    places: &'p Places,
    seen: BTreeMap<(Func, Inst), Contents>,
}

impl Observer for Recorder<'_> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        let place = (view.func(), inst);
        let Some(value) = self.places.get(&place) else { return Control::Continue };
        let bits = view.value(*value);
        let seen = self.seen.entry(place).or_insert(Contents { bits, held: 0, broken: false });
        seen.broken |= seen.bits != bits;
        seen.held += u64::from(!seen.broken);
        Control::Continue
    }
}

/// Runs the case on its first list of arguments. Returns the contents at the places it comes to.
///
/// # Errors
/// If the module cannot be instantiated.
fn profile(case: &Case, places: &Places) -> Result<BTreeMap<(Func, Inst), Contents>, String> {
    let limits = Limits { fuel: case.fuel, ..Limits::default() };
    let mut machine = Machine::new(&case.module, limits).map_err(|e| e.to_string())?;
    for (func, inst) in places.keys() {
        let version = machine.current(*func).expect("a function with places is defined");
        machine.mark(version, [*inst]);
    }
    let mut recorder = Recorder { places, seen: BTreeMap::new() };
    let mut world = case.world.clone();
    let started = machine.start_function().is_none_or(|start| {
        machine.invoke(start, &[], &mut world, &mut NoObserver).returned().is_some()
    });
    if let Some(args) = case.arguments.first().filter(|_| started) {
        machine.invoke(case.entry, args, &mut world, &mut recorder);
    }
    Ok(recorder.seen)
}
