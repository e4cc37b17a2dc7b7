//! The state oracle: two versions run side by side, and every transition is compared with the state
//! it claims to lead to.
//!
//! Two machines run the same program on the same input, all functions of one in the version before,
//! of the other in the version after. Both advance to the next *bounding anchor* of their innermost
//! activation: an instruction that both versions have, that moved nowhere between them, and that is
//! a terminator, an effect or may trap. In the gap up to it each run records, at every point where
//! an entry starts or lands, the values that entry requires or provides, and digests of memory and
//! of the effects so far. Then every entry whose source point was visited is fired, in both
//! directions: its compensation code is run on the recorded values and each value provided is
//! compared with what the other run recorded at the target point. This is the claim of an entry
//! word for word, and so it sees wrong values that no later computation happens to use.
//!
//! What an entry does not provide shows in no such comparison. So each entry is also checked
//! without a run, once, when the oracle is made: it has to provide what is live where it lands, by
//! the [`Demand`].
//!
//! A trap may have moved up: then one run ends while the other still has anchors before it. That
//! one goes on alone and must end in the same trap; an entry that starts on the way has no state to
//! land in.
//!
//! For a sample of visits the run also *goes on*: a copy of the machine makes the transition, with
//! only the provided values, and must end as the run without one.
//!
//! Proves nothing: it sees the inputs it is given. Trusts the interpreter ([`interp`]), the
//! meaning of operations ([`ir::eval`]), dominators and loops.
//!
//! Memory is bounded by the size of the functions, whatever the length of the run: records live for
//! one gap.

mod lockstep;
mod plan;
mod provided;
mod record;
mod report;

pub(crate) use plan::{Analyses, entry_fault};
pub(crate) use provided::find_missing;
pub use report::{Blamed, Counts, Difference, Divergence, Fault, Report, Stop};

use crate::prng::Prng;
use fixedbitset::FixedBitSet;
use interp::{Host, InstantiateError, Limits, Machine, Options, Program, TraceLevel, VersionId};
use ir::text::print_inst;
use ir::{Func, Function, Inst, Module, Point};
use record::{Gate, Plans, Recording, Sampler};
use std::collections::BTreeSet;
use std::fmt;
use transition::mapping::Mapping;
use transition::{Demand, Side, VersionKey};

/// Two versions of a function and the mappings between them.
#[derive(Clone, Copy, Debug)]
pub struct FunctionPair<'a> {
    /// The function.
    pub func: Func,
    /// One version.
    pub before: &'a Function,
    /// The other.
    pub after: &'a Function,
    /// The bounding anchors of the two.
    pub anchors: &'a BTreeSet<Inst>,
    /// From `before` to `after`.
    pub forward: &'a Mapping,
    /// From `after` to `before`.
    pub backward: &'a Mapping,
}

/// Which visits are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// All.
    Every,
    /// The first visits of each point, over all runs, and a sample of the others.
    Sampled {
        /// How many visits of each point are compared in any case.
        first: u32,
        /// Of the others, one in this many; 0 counts as 1.
        one_in: u32,
    },
}

/// How much the oracle does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OracleOptions {
    /// Which visits are compared.
    pub policy: Policy,
    /// What entries have to provide.
    pub demand: Demand,
    /// What each machine may use; fuel is for one run of one machine.
    pub limits: Limits,
    /// The most transitions, over all runs, that are compared.
    pub transitions: u64,
    /// The most visits of one run from which it goes on in the other version, in each direction.
    /// Each costs a copy of the machine and the rest of the run.
    pub going_on: u32,
    /// The most divergences kept; all are counted.
    pub divergences: usize,
    /// Decides what is sampled.
    pub seed: u64,
}

impl Default for OracleOptions {
    /// Every visit, what is needed, 10^7 instructions a run, 4 goings-on a run and direction, 16
    /// divergences.
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
    /// What suits long runs: the first 8 visits of each point and one gap in 1000, 2 goings-on a
    /// run and direction, and the limits of a machine as they are.
    pub fn for_long_runs() -> OracleOptions {
        OracleOptions {
            policy: Policy::Sampled { first: 8, one_in: 1000 },
            limits: Limits::default(),
            going_on: 2,
            ..OracleOptions::default()
        }
    }
}

/// Why an oracle cannot be made.
#[derive(Clone, PartialEq, Debug)]
pub enum SetupError {
    /// A mapping is not one between the two versions of its pair.
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

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupError::OtherVersions { function, direction } => {
                write!(f, "@{function}: the {direction} mapping is one between other versions")
            }
            SetupError::NotAnAnchor { function, inst } => {
                write!(f, "@{function}: {inst} is not in both versions and cannot be an anchor")
            }
            SetupError::TwoPairs { function } => write!(f, "@{function} has two pairs of versions"),
            SetupError::Instantiate(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for SetupError {}

/// By function: the versions before and after, with the same ids in every machine; `None` without a
/// pair.
type Versions = Vec<Option<[VersionId; 2]>>;

/// Compares the transitions between pairs of versions of a module's functions. Functions without a
/// pair run as they are in the module, on both sides.
pub struct Oracle<'a> {
    module: &'a Module,
    pairs: Vec<FunctionPair<'a>>,
    options: OracleOptions,
    /// By function.
    plans: Box<Plans>,
    /// Machines that have run nothing: all functions in the version before, and after.
    pristine: [Machine; 2],
    versions: Versions,
    recordings: [Recording; 2],
    gate: Gate,
    /// By function and side of the source: the entries that fired at least once.
    fired: Vec<[FixedBitSet; 2]>,
    /// The entries that a divergence was kept for.
    blamed: BTreeSet<(Func, usize, u32)>,
    report: Report,
}

impl<'a> Oracle<'a> {
    /// An oracle for a verified module and verified versions. What entries fail to provide is in
    /// the report from the start. Cost: near linear in module, versions and mappings, and in what
    /// is live at the points of the blocks that entries land in.
    ///
    /// # Errors
    /// See [`SetupError`].
    ///
    /// # Panics
    /// When the module or a version is not one that the verifier accepts.
    pub fn new(
        module: &'a Module,
        pairs: &[FunctionPair<'a>],
        options: OracleOptions,
    ) -> Result<Oracle<'a>, SetupError> {
        let mut plans: Vec<Option<[plan::SidePlan; 2]>> =
            module.funcs.keys().map(|_| None).collect();
        let mut missing = Vec::new();
        for pair in pairs {
            check_pair(pair)?;
            let analyses = [pair.before, pair.after].map(plan::Analyses::new);
            let mappings = [pair.forward, pair.backward];
            let plan = plan::plan_pair(&analyses, pair.anchors, mappings);
            let edges = [(0, 1, pair.forward), (1, 0, pair.backward)];
            missing.push((pair.func, provided::find_missing(&analyses, &edges, options.demand)));
            if plans[pair.func.as_u32() as usize].replace(plan).is_some() {
                return Err(SetupError::TwoPairs { function: pair.before.name().to_owned() });
            }
        }
        let program = Program::new(module);
        let (before, versions) = instantiate(module, &program, pairs, &plans, &options, 0)?;
        let (after, _) = instantiate(module, &program, pairs, &plans, &options, 1)?;
        let prng = Prng::new(options.seed);
        let recordings =
            [0, 1].map(|side| Recording::new(&plans, side, Sampler::new(prng.fork(0), 0)));
        let mut oracle = Oracle {
            module,
            pairs: pairs.to_vec(),
            options,
            pristine: [before, after],
            versions,
            recordings,
            gate: Gate::new(options.policy, prng.fork(1)),
            fired: unfired(&plans),
            plans: plans.into_boxed_slice(),
            blamed: BTreeSet::new(),
            report: Report::default(),
        };
        missing.iter().for_each(|(func, missing)| oracle.blame_missing(*func, missing));
        Ok(oracle)
    }

    /// Runs the start function of the module, if it has one, and then a function, in both versions,
    /// and compares. The host is cloned for every machine, so a program sees the same answers in
    /// each.
    ///
    /// Cost: both runs; per transition, the values required and provided.
    ///
    /// # Panics
    /// When the function is imported or takes another number of arguments.
    pub fn run<H: Host + Clone>(&mut self, func: Func, args: &[u64], host: &H) {
        lockstep::run(self, func, args, host);
    }

    /// Counts what entries fail to provide, and keeps the first of each. What a run shows of the
    /// same entry is kept too: it may be another mistake.
    fn blame_missing(&mut self, func: Func, missing: &[provided::Missing]) {
        self.report.divergence_count += missing.len() as u64;
        let mut last = None;
        for m in missing {
            let key = (func, m.edge, m.entry);
            if last.replace(key) != Some(key)
                && self.report.divergences.len() < self.options.divergences
            {
                let entry = Some(self.blamed(key, None));
                let difference = Difference::NotProvided { value: m.value };
                self.report.divergences.push(Divergence { input: Vec::new(), entry, difference });
            }
        }
    }

    /// Names an entry for people.
    fn blamed(&self, (func, side, index): (Func, usize, u32), visit: Option<u64>) -> Blamed {
        let pair =
            self.pairs.iter().find(|p| p.func == func).expect("a planned function has a pair");
        let (versions, mappings) = ([pair.before, pair.after], [pair.forward, pair.backward]);
        let (point, entry) =
            mappings[side].entries().nth(index as usize).expect("plans follow the mapping");
        let text = |version: &Function, point: Point| match version.has_inst(point.inst()) {
            true => print_inst(self.module, version, point.inst()),
            false => String::new(),
        };
        Blamed {
            function: pair.before.name().to_owned(),
            direction: Side::BOTH[side],
            point,
            point_text: text(versions[side], point),
            target: entry.target,
            target_text: text(versions[1 - side], entry.target),
            visit,
        }
    }

    /// What was done and found so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The entries that fired at least once, and all entries, of both directions.
    pub fn coverage(&self) -> (usize, usize) {
        let all = self.pairs.iter().map(|p| p.forward.len() + p.backward.len()).sum();
        let fired = self.fired.iter().flatten().map(|entries| entries.count_ones(..)).sum();
        (fired, all)
    }
}

/// A bit for every entry, none of which has fired.
fn unfired(plans: &Plans) -> Vec<[FixedBitSet; 2]> {
    let entries = |plan: &Option<[plan::SidePlan; 2]>, side: usize| {
        plan.as_ref().map_or(0, |p| p[side].entries.len())
    };
    plans
        .iter()
        .map(|plan| [0, 1].map(|side| FixedBitSet::with_capacity(entries(plan, side))))
        .collect()
}

fn check_pair(pair: &FunctionPair<'_>) -> Result<(), SetupError> {
    let function = || pair.before.name().to_owned();
    let keys = [VersionKey::of(pair.before), VersionKey::of(pair.after)];
    for (direction, mapping, [source, target]) in
        [(Side::Before, pair.forward, keys), (Side::After, pair.backward, [keys[1], keys[0]])]
    {
        if mapping.source() != source || mapping.target() != target {
            return Err(SetupError::OtherVersions { function: function(), direction });
        }
    }
    let in_both = |inst: &&Inst| pair.before.has_inst(**inst) && pair.after.has_inst(**inst);
    match pair.anchors.iter().find(|i| !in_both(i)) {
        Some(inst) => Err(SetupError::NotAnAnchor { function: function(), inst: *inst }),
        None => Ok(()),
    }
}

/// A machine with both versions of every pair, that runs those of one side and is watched there.
fn instantiate(
    module: &Module,
    program: &Program,
    pairs: &[FunctionPair<'_>],
    plans: &Plans,
    options: &OracleOptions,
    side: usize,
) -> Result<(Machine, Versions), SetupError> {
    let checked = Options { poison: true, track_memory: true, trace: TraceLevel::Digest };
    let machine = Machine::with_options(program, options.limits, checked);
    let mut machine = machine.map_err(SetupError::Instantiate)?;
    let mut versions = vec![None; plans.len()];
    for pair in pairs {
        let ids = [pair.before, pair.after].map(|v| machine.add_version(module, pair.func, v));
        let index = pair.func.as_u32() as usize;
        let plan = plans[index].as_ref().expect("every pair was planned");
        machine.mark(ids[side], plan[side].watched());
        machine.set_current(pair.func, ids[side]);
        versions[index] = Some(ids);
    }
    Ok((machine, versions))
}
