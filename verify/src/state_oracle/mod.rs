//! The state oracle: runs two versions side by side, and compares every transition with the state
//! that it claims to reach.
//!
//! Two machines run the same program on the same input. On one machine, every function with a pair
//! is in the version before; on the other machine, in the version after. Both advance to the next
//! *bounding anchor* of their innermost activation. A bounding anchor is an instruction of both
//! versions that no action moved, and that is a terminator, has an effect, or may trap. In the gap
//! before this anchor, each run makes a record at every point where an entry starts or lands. A
//! record holds the values that the entry requires or provides, and digests of memory and of the
//! effects so far.
//!
//! Then the oracle fires every entry whose source point was visited, in both directions. It runs
//! the compensation code on the recorded values, and compares each provided value with the record
//! of the other run at the target point. This is the claim of an entry word for word. So the oracle
//! finds wrong values even if no later computation uses them.
//!
//! No such comparison shows a value that an entry fails to provide. The oracle therefore checks
//! each entry once without a run: it has to provide the values that are live at its target point,
//! by the [`Demand`].
//!
//! A trap may have moved up. Then one run ends while the other run still has anchors before its
//! trap. The other run continues alone and must end in the same trap. An entry whose source point
//! it visits on the way has no state to compare with, and is wrong.
//!
//! Versions may make assumptions. An assumption made by both versions is an anchor: where it fails,
//! both runs end. An assumption of the version after alone is no anchor. At each visit, whether the
//! assumption holds or fails, the entry back to the version before fires and is compared like any
//! other: this entry is the *exit*. Where the assumption fails, the run then leaves by the exit.
//! The run continues in the version before until this activation returns, in step with the other
//! run. So each failing exit is followed to the end of the run, and all later anchors and the end
//! are compared. [`Oracle::assumptions`] lists the assumptions that failed in a run.
//!
//! Memory may differ where an assumption fails, for a store may be deleted on the way to it: the
//! exit replays the store. So memory is compared after replays. A run that an assumption ends first
//! makes the transition to the version before, if there is an entry. Without an entry, memory is
//! not compared.
//!
//! For a sample of visits, the oracle also *continues* behind the transition. A copy of the machine
//! makes the transition, has to be in the activations that the entry computes, and must end like
//! the run without a transition. A transition that finds no room must leave the run as it was.
//!
//! # Inlined code
//!
//! A version after may have inlined code. An activation of it stands for several activations of the
//! versions before: at each instruction, the copy that the version was optimized from lists them
//! ([`check::Copies`]). An entry out of it lands in all of them. So each of these activations has
//! to have the assigned contents, those that wait, too. Without inlined code, an activation stands
//! for itself, and everything is as above. Otherwise:
//!
//! - The runs make different numbers of calls. Depths count the activations that versions stand
//!   for, and effects compare without calls and returns inside the program
//!   ([`Trace::outer_digest`]). An activation is known by its depth.
//! - Anchors are the instructions that both runs execute one for one. In functions without a pair,
//!   these are the terminators.
//! - A gap may contain a loop. A visit is not compared if its partner is not unique, or if the
//!   other run has trapped.
//! - A run that leaves at a failing assumption continues in the versions before to its end.
//! - Half of the copies that leave inlined code go up again before their end.
//! - Hop chains go through versions and activations in turn ([`FrameChains`]).
//!
//! The oracle proves nothing about inputs that it does not run. It trusts the interpreter
//! ([`interp`]), the meaning of operations ([`ir::eval`]), dominators and loops. Its memory is
//! bounded by the size of the functions, for runs of any length, because records last for one gap.
//!
//! [`Trace::outer_digest`]: interp::Trace::outer_digest

mod chains;
mod fault;
mod leave;
mod lockstep;
mod plan;
mod provided;
mod record;
mod report;
mod watch;

pub use chains::FrameChains;
pub(crate) use fault::{Analyses, entry_fault};
pub(crate) use provided::find_missing;
pub use report::{
    Blamed, Counts, DEPTHS, Difference, Divergence, EntryFault, Report, SeenAssumption, StopText,
};

use crate::end::EffectScope;
use crate::prng::Prng;
use check::Copies;
use fixedbitset::FixedBitSet;
use interp::{Host, InstantiateError, Limits, Machine, Options, Program, TraceLevel, VersionId};
use ir::text::print_inst;
use ir::{Func, Function, Inst, Module, Point};
use lockstep::EntryKey;
use plan::{PairPlan, Plans};
use record::{Gate, Recording, Sampler};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use transition::mapping::Mapping;
use transition::{Demand, Pair, Side, VersionKey};

/// Two versions of a function, and the mappings between them.
#[derive(Clone, Copy, Debug)]
pub struct FunctionPair<'a> {
    /// The function.
    pub func: Func,
    /// The version before the log.
    pub before: &'a Function,
    /// The version after the log.
    pub after: &'a Function,
    /// The bounding anchors of the two versions. With inlined code: instructions of `after` that
    /// its run and the run of the versions before both execute, in the same order.
    pub anchors: &'a BTreeSet<Inst>,
    /// From `before` to `after`.
    pub forward: &'a Mapping,
    /// From `after` to `before`.
    pub backward: &'a Mapping,
    /// The code that the copy consists of from which `after` was optimized; `None` for a version
    /// without inlined code.
    pub copies: Option<&'a Copies>,
}

impl<'a> FunctionPair<'a> {
    /// The two versions.
    fn versions(&self) -> Pair<&'a Function> {
        Pair::new(self.before, self.after)
    }

    /// The mappings, by the side that they leave from.
    fn mappings(&self) -> Pair<&'a Mapping> {
        Pair::new(self.forward, self.backward)
    }
}

/// The visits that are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// All visits.
    Every,
    /// The first visits of each point, counted over all runs, and a sample of later visits.
    Sampled {
        /// The number of visits of each point that are always compared.
        first: u32,
        /// Of the other gaps between anchors, one in this many is compared; 0 counts as 1.
        one_in: u32,
    },
}

/// The settings of an [`Oracle`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OracleOptions {
    /// The visits that are compared.
    pub policy: Policy,
    /// The values that entries have to provide.
    pub demand: Demand,
    /// The limits of each machine. Each run of a machine has all the fuel.
    pub limits: Limits,
    /// The largest number of transitions compared, over all runs.
    pub transitions: u64,
    /// The most visits in one run and direction from which a copy continues in the other version.
    /// Each costs a copy of the machine and the rest of the run.
    pub going_on: u32,
    /// One visit in this many is chosen for a copy. `None`: many at first, then ever fewer.
    pub going_on_one_in: Option<u32>,
    /// The number of hop chains for each input, where versions have inlined code.
    pub chains: u32,
    /// The largest number of divergences kept. All are counted.
    pub divergences: usize,
    /// Seed of all samples.
    pub seed: u64,
}

impl Default for OracleOptions {
    /// Every visit; needed values; 10^7 instructions a run; 4 continued copies for each run and
    /// direction; 16 divergences.
    fn default() -> OracleOptions {
        OracleOptions {
            policy: Policy::Every,
            demand: Demand::Needed,
            limits: Limits { fuel: 10_000_000, ..Limits::default() },
            transitions: u64::MAX,
            going_on: 4,
            going_on_one_in: None,
            chains: 0,
            divergences: 16,
            seed: 0,
        }
    }
}

impl OracleOptions {
    /// Settings for long runs. They compare the first 8 visits of each point and one gap in 1000.
    /// For each run and direction, 2 copies continue. The limits are the defaults of a machine.
    pub fn for_long_runs() -> OracleOptions {
        OracleOptions {
            policy: Policy::Sampled { first: 8, one_in: 1000 },
            limits: Limits::default(),
            going_on: 2,
            ..OracleOptions::default()
        }
    }

    /// Settings for versions with inlined code. Copies continue from one visit in 50, up to 8 in a
    /// run; a chain for each input.
    pub fn for_inlined_code() -> OracleOptions {
        OracleOptions {
            going_on: 8,
            going_on_one_in: Some(50),
            chains: 1,
            ..OracleOptions::default()
        }
    }
}

/// The reason why an [`Oracle`] cannot be made.
#[derive(Clone, PartialEq, Debug)]
pub enum OracleSetupError {
    /// A mapping has other versions than its pair.
    OtherVersions {
        /// The function's name.
        function: String,
        /// The direction of the mapping.
        direction: Side,
    },
    /// One of the versions lacks an anchor. Versions with inlined code alone may.
    NotAnAnchor {
        /// The function's name.
        function: String,
        /// The instruction.
        inst: Inst,
    },
    /// A function has two pairs.
    TwoPairs {
        /// The function's name.
        function: String,
    },
    /// The module cannot be instantiated.
    Instantiate(InstantiateError),
}

impl fmt::Display for OracleSetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OracleSetupError::OtherVersions { function, direction } => {
                write!(f, "@{function}: the {direction} mapping belongs to other versions")
            }
            OracleSetupError::NotAnAnchor { function, inst } => {
                write!(f, "@{function}: {inst} cannot be an anchor, because one version lacks it")
            }
            OracleSetupError::TwoPairs { function } => {
                write!(f, "@{function} has two pairs of versions")
            }
            OracleSetupError::Instantiate(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for OracleSetupError {}

/// By function: the versions before and after, with the same ids in every machine; `None` for
/// functions without a pair. With inlined code: the version of the module, twice.
type Versions = Vec<Option<Pair<VersionId>>>;

/// Compares the transitions between pairs of versions of a module's functions. On both sides,
/// functions without a pair run in the version of the module.
pub struct Oracle<'a> {
    module: &'a Module,
    pairs: Vec<FunctionPair<'a>>,
    options: OracleOptions,
    /// By function: the plans of its pair.
    plans: Box<Plans<'a>>,
    scope: EffectScope,
    /// Fresh machines, one for each side, with all functions in the version of that side.
    pristine: Pair<Machine>,
    versions: Versions,
    recordings: Pair<Recording>,
    gate: Gate,
    /// By function and side of the source version: the entries that fired at least once.
    fired: Vec<Pair<FixedBitSet>>,
    /// The same, for entries that fired at a failing assumption.
    failing: Vec<Pair<FixedBitSet>>,
    /// The entries for which a divergence of a run was kept.
    blamed: BTreeSet<EntryKey>,
    report: Report,
}

impl<'a> Oracle<'a> {
    /// An oracle for a verified module and verified versions. The report starts with the values
    /// that entries fail to provide. Cost: near linear in the module, the versions, the mappings,
    /// and the values live in blocks with target points.
    ///
    /// # Errors
    /// See [`OracleSetupError`].
    ///
    /// # Panics
    /// If the verifier rejects the module or a version.
    pub fn new(
        module: &'a Module,
        pairs: &[FunctionPair<'a>],
        options: OracleOptions,
    ) -> Result<Oracle<'a>, OracleSetupError> {
        let bodies = inlined_bodies(module, pairs);
        let mut plans: Vec<Option<PairPlan<'_>>> = module.funcs.keys().map(|_| None).collect();
        let mut missing = Vec::new();
        for pair in pairs {
            check_pair(pair)?;
            let analyses = [pair.before, pair.after].map(Analyses::new);
            let [before, after] = &analyses;
            let plan = PairPlan::new(pair, Pair::new(before, after), &bodies);
            let edges = [(0, 1, pair.forward), (1, 0, pair.backward)];
            missing.push((pair.func, find_missing(&analyses, &edges, options.demand)));
            if plans[pair.func.as_u32() as usize].replace(plan).is_some() {
                return Err(OracleSetupError::TwoPairs { function: pair.before.name().to_owned() });
            }
        }
        let scope = match pairs.iter().any(|pair| pair.copies.is_some()) {
            true => EffectScope::Outer,
            false => EffectScope::All,
        };
        if scope == EffectScope::Outer {
            for (func, body) in module.defined() {
                plans[func.as_u32() as usize].get_or_insert_with(|| PairPlan::of_body(func, body));
            }
        }
        let program = Program::new(module);
        let (before, versions) =
            instantiate(module, &program, pairs, &plans, &options, Side::Before)?;
        let (after, _) = instantiate(module, &program, pairs, &plans, &options, Side::After)?;
        let prng = Prng::new(options.seed);
        // No run is under way yet, so these samplers take nothing. Each run starts with samplers of
        // its own (`lockstep::run`).
        let sampler = Sampler::new(prng.fork(0), 0, None);
        let recordings = Pair::from_fn(|side| Recording::new(&plans, side, scope, sampler.clone()));
        let mut oracle = Oracle {
            module,
            pairs: pairs.to_vec(),
            options,
            scope,
            pristine: Pair { before, after },
            versions,
            recordings,
            gate: Gate::new(options.policy, prng.fork(1)),
            fired: unfired(&plans),
            failing: unfired(&plans),
            plans: plans.into_boxed_slice(),
            blamed: BTreeSet::new(),
            report: Report::default(),
        };
        missing.iter().for_each(|(func, missing)| oracle.blame_missing(*func, missing));
        Ok(oracle)
    }

    /// Runs the start function of the module, if there is one, then a function, in both versions,
    /// and compares them; with inlined code, in hop chains, too. Every machine gets a clone of the
    /// host, so the program sees the same answers in each.
    ///
    /// Cost: both runs, and for each transition the values that it requires and provides.
    ///
    /// # Panics
    /// If the function is imported or takes another number of arguments.
    pub fn run<H: Host + Clone>(&mut self, func: Func, args: &[u64], host: &H) {
        lockstep::run(self, func, args, host);
        self.chains(func, args, host);
    }

    /// Whether a version has inlined code.
    fn has_inlined(&self) -> bool {
        self.scope == EffectScope::Outer
    }

    /// Counts the values that entries fail to provide, and keeps the first of each entry. A
    /// divergence of the same entry in a run is kept as well, because it may have another cause. So
    /// this function does not fill `blamed`.
    fn blame_missing(&mut self, func: Func, missing: &[provided::MissingValue]) {
        self.report.divergence_count += missing.len() as u64;
        let mut last = None;
        for m in missing {
            // `new` lists the mappings of a pair in the order of their sides.
            let key = EntryKey { func, side: Side::BOTH[m.edge], index: m.entry };
            if last.replace(key) != Some(key)
                && self.report.divergences.len() < self.options.divergences
            {
                let entry = Some(self.blamed(key, None));
                let difference = Difference::NotProvided { value: m.value };
                self.report.divergences.push(Divergence { input: Vec::new(), entry, difference });
            }
        }
    }

    /// Describes an entry for reports.
    fn blamed(&self, entry: EntryKey, visit: Option<u64>) -> Blamed {
        let EntryKey { func, side, index } = entry;
        let pair = self.pair(func);
        let (point, entry) =
            pair.mappings()[side].entries().nth(index as usize).expect("plans follow the mapping");
        let text = |version: Option<&Function>, point: Point| match version {
            Some(version) if version.has_inst(point.inst()) => {
                print_inst(self.module, version, point.inst())
            }
            _ => String::new(),
        };
        let versions = pair.versions();
        let (target, version) = match entry.inner.first() {
            Some(frame) => (Point::before(frame.at.inst()), self.module.body(frame.func)),
            None => (entry.target, Some(versions[side.other()])),
        };
        Blamed {
            function: pair.before.name().to_owned(),
            direction: side,
            point,
            point_text: text(Some(versions[side]), point),
            target,
            target_text: text(version, target),
            visit,
        }
    }

    /// Counts a divergence. Keeps it if it is the first of its entry and there is room.
    fn diverge(
        &mut self,
        input: &[u64],
        entry: Option<(EntryKey, Option<u64>)>,
        difference: Difference,
    ) {
        self.report.divergence_count += 1;
        let is_new = entry.is_none_or(|(key, _)| self.blamed.insert(key));
        if is_new && self.report.divergences.len() < self.options.divergences {
            let entry = entry.map(|(key, visit)| self.blamed(key, visit));
            self.report.divergences.push(Divergence { input: input.to_vec(), entry, difference });
        }
    }

    /// The comparisons so far, and the divergences found.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The number of entries that fired at least once, and of all entries, in both directions.
    pub fn coverage(&self) -> (usize, usize) {
        let all = self.pairs.iter().map(|p| p.forward.len() + p.backward.len()).sum();
        let fired =
            self.fired.iter().flat_map(Pair::iter).map(|entries| entries.count_ones(..)).sum();
        (fired, all)
    }

    /// The assumptions with an exit, by function and direction, and by point. Cost: linear in the
    /// entries.
    pub fn assumptions(&self) -> Vec<SeenAssumption> {
        let mut all = Vec::new();
        for pair in &self.pairs {
            let number = pair.func.as_u32() as usize;
            for (side, mapping) in pair.mappings().sides() {
                let plan = self.plans[number].as_ref().expect("every pair was planned");
                let plan = &plan.sides[side];
                let exits = mapping.entries().zip(&plan.entries).enumerate();
                all.extend(exits.filter(|(_, (_, entry))| entry.is_exit).map(
                    |(index, ((point, _), _))| SeenAssumption {
                        func: pair.func,
                        point,
                        visited: self.fired[number][side].contains(index),
                        failing: self.failing[number][side].contains(index),
                    },
                ));
            }
        }
        all
    }
}

/// The originals of inlined code.
fn inlined_bodies<'a>(
    module: &'a Module,
    pairs: &[FunctionPair<'a>],
) -> BTreeMap<Func, Analyses<'a>> {
    let instances = pairs.iter().filter_map(|pair| pair.copies).flat_map(Copies::instances);
    let funcs: BTreeSet<Func> = instances.map(|instance| instance.func).collect();
    let body = |func| Some((func, Analyses::new(module.body(func)?)));
    funcs.into_iter().filter_map(body).collect()
}

/// One bit for each entry, all unset.
fn unfired(plans: &Plans<'_>) -> Vec<Pair<FixedBitSet>> {
    let entries = |plan: &Option<PairPlan<'_>>, side: Side| {
        plan.as_ref().map_or(0, |p| p.sides[side].entries.len())
    };
    let bits = |plan| Pair::from_fn(|side| FixedBitSet::with_capacity(entries(plan, side)));
    plans.iter().map(bits).collect()
}

/// Checks that mappings and anchors belong to the versions of a pair.
fn check_pair(pair: &FunctionPair<'_>) -> Result<(), OracleSetupError> {
    let function = || pair.before.name().to_owned();
    let keys = pair.versions().map(VersionKey::of);
    for (direction, mapping) in pair.mappings().sides() {
        if (mapping.source(), mapping.target()) != (keys[direction], keys[direction.other()]) {
            return Err(OracleSetupError::OtherVersions { function: function(), direction });
        }
    }
    if pair.copies.is_some() {
        return Ok(());
    }
    let in_both = |inst: &&Inst| pair.before.has_inst(**inst) && pair.after.has_inst(**inst);
    match pair.anchors.iter().find(|i| !in_both(i)) {
        Some(inst) => Err(OracleSetupError::NotAnAnchor { function: function(), inst: *inst }),
        None => Ok(()),
    }
}

/// A machine with both versions of every pair. Functions run in the version of `side`, and its
/// points are watched.
fn instantiate(
    module: &Module,
    program: &Program,
    pairs: &[FunctionPair<'_>],
    plans: &Plans<'_>,
    options: &OracleOptions,
    side: Side,
) -> Result<(Machine, Versions), OracleSetupError> {
    let checked = Options { poison: true, track_memory: true, trace: TraceLevel::Digest };
    let machine = Machine::with_options(program, options.limits, checked);
    let mut machine = machine.map_err(OracleSetupError::Instantiate)?;
    // A version that keeps words of references across a call shows it.
    machine.stress_collector(true);
    let mut versions: Versions = vec![None; plans.len()];
    for pair in pairs {
        // Both versions go into each machine, in one order: a transition then names the same
        // version in all of them.
        let ids = pair.versions().map(|v| machine.add_version(module, pair.func, v));
        machine.set_current(pair.func, ids[side]);
        if let Some(copies) = pair.copies {
            machine.set_sites(ids.after, Arc::new(copies.sites()));
        }
        versions[pair.func.as_u32() as usize] = Some(ids);
    }
    for ((func, plan), ids) in module.funcs.keys().zip(plans).zip(&mut versions) {
        if plan.is_some() && ids.is_none() {
            *ids = machine.current(func).map(|id| Pair::new(id, id));
        }
    }
    for ((plan, ids), func) in plans.iter().zip(&versions).zip(module.funcs.keys()) {
        let Some((plan, ids)) = plan.as_ref().zip(*ids) else { continue };
        for point in &plan.sides[side].points {
            let of = if side == Side::Before { point.original.0 } else { func };
            if let Some(ids) = versions[of.as_u32() as usize] {
                machine.mark(ids[side], [point.point.inst()]);
            }
        }
        // A run that leaves at a failing assumption continues in the other version, and waits at
        // its anchors.
        if side == Side::After && plan.sides[side].may_leave {
            machine.mark(ids[side.other()], plan.sides[side.other()].anchors());
        }
    }
    // Runs that have left inlined code go up from here.
    for pair in pairs.iter().filter(|pair| side == Side::After && pair.copies.is_some()) {
        let ids = versions[pair.func.as_u32() as usize].expect("it was added");
        machine.mark(ids.before, pair.forward.points().map(|point| point.inst()));
    }
    Ok((machine, versions))
}
