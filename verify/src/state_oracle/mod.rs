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
//! makes the transition, with the provided values alone, and must end like the run without a
//! transition.
//!
//! The oracle proves nothing about inputs that it does not run. It trusts the interpreter
//! ([`interp`]), the meaning of operations ([`ir::eval`]), dominators and loops. Its memory is
//! bounded by the size of the functions, for runs of any length, because records last for one gap.

mod leave;
mod lockstep;
mod plan;
mod provided;
mod record;
mod report;

pub(crate) use plan::{Analyses, entry_fault};
pub(crate) use provided::find_missing;
pub use report::{
    Blamed, Counts, Difference, Divergence, EntryFault, Report, SeenAssumption, StopText,
};

use crate::prng::Prng;
use fixedbitset::FixedBitSet;
use interp::{Host, InstantiateError, Limits, Machine, Options, Program, TraceLevel, VersionId};
use ir::text::print_inst;
use ir::{Func, Function, Inst, Module, Point};
use lockstep::EntryKey;
use record::{Gate, Plans, Recording, Sampler};
use std::collections::BTreeSet;
use std::fmt;
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
    /// The bounding anchors of the two versions.
    pub anchors: &'a BTreeSet<Inst>,
    /// From `before` to `after`.
    pub forward: &'a Mapping,
    /// From `after` to `before`.
    pub backward: &'a Mapping,
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
    /// One of the versions lacks an anchor.
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
/// functions without a pair.
type Versions = Vec<Option<Pair<VersionId>>>;

/// Compares the transitions between pairs of versions of a module's functions. On both sides,
/// functions without a pair run in the version of the module.
pub struct Oracle<'a> {
    module: &'a Module,
    pairs: Vec<FunctionPair<'a>>,
    options: OracleOptions,
    /// By function: the plans of its pair.
    plans: Box<Plans>,
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
        let mut plans: Vec<Option<Pair<plan::SidePlan>>> =
            module.funcs.keys().map(|_| None).collect();
        let mut missing = Vec::new();
        for pair in pairs {
            check_pair(pair)?;
            let analyses = [pair.before, pair.after].map(plan::Analyses::new);
            let [before, after] = &analyses;
            let plan = plan::plan_pair(Pair::new(before, after), pair.anchors, pair.mappings());
            let edges = [(0, 1, pair.forward), (1, 0, pair.backward)];
            missing.push((pair.func, provided::find_missing(&analyses, &edges, options.demand)));
            if plans[pair.func.as_u32() as usize].replace(plan).is_some() {
                return Err(OracleSetupError::TwoPairs { function: pair.before.name().to_owned() });
            }
        }
        let program = Program::new(module);
        let (before, versions) =
            instantiate(module, &program, pairs, &plans, &options, Side::Before)?;
        let (after, _) = instantiate(module, &program, pairs, &plans, &options, Side::After)?;
        let prng = Prng::new(options.seed);
        // No run is under way yet, so these samplers take nothing. Each run starts with samplers of
        // its own (`lockstep::run`).
        let recordings =
            Pair::from_fn(|side| Recording::new(&plans, side, Sampler::new(prng.fork(0), 0)));
        let mut oracle = Oracle {
            module,
            pairs: pairs.to_vec(),
            options,
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
    /// and compares them. Every machine gets a clone of the host, so the program sees the same
    /// answers in each.
    ///
    /// Cost: both runs, and for each transition the values that it requires and provides.
    ///
    /// # Panics
    /// If the function is imported or takes another number of arguments.
    pub fn run<H: Host + Clone>(&mut self, func: Func, args: &[u64], host: &H) {
        lockstep::run(self, func, args, host);
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
        let pair =
            self.pairs.iter().find(|p| p.func == func).expect("a planned function has a pair");
        let (versions, mappings) = (pair.versions(), pair.mappings());
        let (point, entry) =
            mappings[side].entries().nth(index as usize).expect("plans follow the mapping");
        let text = |version: &Function, point: Point| match version.has_inst(point.inst()) {
            true => print_inst(self.module, version, point.inst()),
            false => String::new(),
        };
        Blamed {
            function: pair.before.name().to_owned(),
            direction: side,
            point,
            point_text: text(versions[side], point),
            target: entry.target,
            target_text: text(versions[side.other()], entry.target),
            visit,
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
                let plan = &self.plans[number].as_ref().expect("every pair was planned")[side];
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

/// One bit for each entry, all unset.
fn unfired(plans: &Plans) -> Vec<Pair<FixedBitSet>> {
    let entries = |plan: &Option<Pair<plan::SidePlan>>, side: Side| {
        plan.as_ref().map_or(0, |p| p[side].entries.len())
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
    plans: &Plans,
    options: &OracleOptions,
    side: Side,
) -> Result<(Machine, Versions), OracleSetupError> {
    let checked = Options { poison: true, track_memory: true, trace: TraceLevel::Digest };
    let machine = Machine::with_options(program, options.limits, checked);
    let mut machine = machine.map_err(OracleSetupError::Instantiate)?;
    // A version that keeps words of references across a call shows it.
    machine.stress_collector(true);
    let mut versions = vec![None; plans.len()];
    for pair in pairs {
        // Both versions go into each machine, in one order: a transition then names the same
        // version in all of them.
        let ids = pair.versions().map(|v| machine.add_version(module, pair.func, v));
        let index = pair.func.as_u32() as usize;
        let plan = plans[index].as_ref().expect("every pair was planned");
        machine.mark(ids[side], plan[side].watched());
        // A run that leaves at a failing assumption continues in the other version, and waits at
        // its anchors.
        if side == Side::After && plan[side].may_leave {
            machine.mark(ids[side.other()], plan[side.other()].anchors());
        }
        machine.set_current(pair.func, ids[side]);
        versions[index] = Some(ids);
    }
    Ok((machine, versions))
}
