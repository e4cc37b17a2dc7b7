//! Chains of transitions: a run hops from version to version of a function, and must end as it
//! would have without.
//!
//! All versions of a function and the mappings between them form a graph. A *chain* starts in the
//! first version, and at random visits of points that have entries takes one of them: its
//! compensation code is run on the values of the running activation, and execution goes on in the
//! other version with exactly what the entry provides. All else is poison. At the end result,
//! effects and memory are compared with the run that never left the first version.
//!
//! What this adds to the state oracle ([`crate::state_oracle`]), which judges each transition by
//! itself: that what one entry provides is enough for all that may be fired later, whichever
//! version they lead to. An entry that reads a value nobody gave shows at once. And, as there,
//! every entry is checked without a run, when the runner is made: it has to provide what is live
//! where it lands, the values required by the entries of *all* mappings that leave the version
//! counted as used.
//!
//! Proves nothing: it sees the inputs it is given. Trusts the interpreter, the meaning of
//! operations, and dominators.

mod chain;
mod choose;
mod report;

pub use report::{Hop, HopDifference, HopDivergence, HopReport};

use crate::end::{End, is_exhausted};
use crate::prng::Prng;
use crate::state_oracle::{Analyses, entry_fault, find_missing};
use choose::Choices;
use interp::{
    Control, Host, InstantiateError, Limits, Machine, NoObserver, Observer, Options, Program,
    Scope, TraceLevel, VersionId, View,
};
use ir::{Func, Function, Inst, Module, Point};
use smallvec::SmallVec;
use std::fmt;
use transition::Demand;
use transition::VersionKey;
use transition::mapping::{Entry, Mapping};

/// A mapping, on an edge of the graph of versions.
#[derive(Clone, Copy, Debug)]
pub struct Edge<'a> {
    /// The version it leaves, as an index of [`FunctionGraph::versions`].
    pub from: usize,
    /// The version it leads to.
    pub to: usize,
    /// The entries.
    pub mapping: &'a Mapping,
}

/// The versions of a function, and the mappings between them.
#[derive(Clone, Copy, Debug)]
pub struct FunctionGraph<'a> {
    /// The function.
    pub func: Func,
    /// The versions. Activations begin in the first.
    pub versions: &'a [&'a Function],
    /// The mappings; several may leave one point.
    pub edges: &'a [Edge<'a>],
}

/// How much is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HopOptions {
    /// Decides where chains hop.
    pub seed: u64,
    /// Chains for each input.
    pub chains: u32,
    /// The most hops of a chain; runs that are long enough have at least [`FULL_CHAIN`] of them.
    pub hops: u32,
    /// What entries have to provide.
    pub demand: Demand,
    /// What a machine may use; fuel is for one chain.
    pub limits: Limits,
    /// The most divergences kept; all are counted.
    pub divergences: usize,
}

/// Hops that make a chain a full one, in the figures.
pub const FULL_CHAIN: u32 = 4;

impl Default for HopOptions {
    /// 4 chains an input of at most 16 hops, what is needed, 10^7 instructions a run, 16
    /// divergences.
    fn default() -> HopOptions {
        HopOptions {
            seed: 0,
            chains: 4,
            hops: 16,
            demand: Demand::Needed,
            limits: Limits { fuel: 10_000_000, ..Limits::default() },
            divergences: 16,
        }
    }
}

/// Why a runner cannot be made.
#[derive(Clone, PartialEq, Debug)]
pub enum SetupError {
    /// A mapping is not one between the two versions of its edge, or there are no such versions.
    OtherVersions {
        /// The function.
        func: Func,
        /// The index of the edge.
        edge: usize,
    },
    /// A function has two graphs, or one without versions.
    NotOneGraph {
        /// The function.
        func: Func,
    },
    /// The module cannot be instantiated.
    Instantiate(InstantiateError),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupError::OtherVersions { func, edge } => {
                write!(f, "{func}: the mapping of edge {edge} is one between other versions")
            }
            SetupError::NotOneGraph { func } => {
                write!(f, "{func} has two graphs, or one without versions")
            }
            SetupError::Instantiate(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for SetupError {}

/// An entry that may be fired at a point.
#[derive(Clone, Copy, Debug)]
struct Exit<'a> {
    /// An index of the edges of the graph.
    edge: usize,
    entry: &'a Entry,
    to: VersionId,
}

/// What leaves the points of one version.
#[derive(Debug)]
struct Exits<'a> {
    /// An index of the graphs.
    graph: usize,
    /// By instruction: an index of `lists` plus 1, or 0.
    by_inst: Vec<u32>,
    lists: Vec<SmallVec<[Exit<'a>; 2]>>,
}

impl<'a> Exits<'a> {
    fn at(&self, inst: Inst) -> &[Exit<'a>] {
        let number = self.by_inst.get(inst.as_u32() as usize).copied().unwrap_or(0);
        number.checked_sub(1).map_or(&[], |index| &self.lists[index as usize])
    }
}

/// Runs chains through the versions of the functions of a module. Functions without a graph run as
/// they are in the module.
#[derive(Debug)]
pub struct Hopper<'a> {
    graphs: Vec<FunctionGraph<'a>>,
    options: HopOptions,
    /// A machine that has run nothing, with all versions.
    pristine: Machine,
    /// By version of the machine; those of functions without a graph have none.
    exits: Vec<Option<Exits<'a>>>,
    report: HopReport,
}

impl<'a> Hopper<'a> {
    /// A runner for a verified module and verified versions. What is wrong with entries whatever
    /// the run is in the report from the start; such entries are not fired, but for those that
    /// provide too little. Cost: near linear in module, versions and mappings, and in what is live
    /// where entries land.
    ///
    /// # Errors
    /// See [`SetupError`].
    ///
    /// # Panics
    /// When the module or a version is not one that the verifier accepts.
    pub fn new(
        module: &Module,
        graphs: &[FunctionGraph<'a>],
        options: HopOptions,
    ) -> Result<Hopper<'a>, SetupError> {
        for (number, graph) in graphs.iter().enumerate() {
            check_graph(graph)?;
            if graph.versions.is_empty() || graphs[..number].iter().any(|g| g.func == graph.func) {
                return Err(SetupError::NotOneGraph { func: graph.func });
            }
        }
        let checked = Options { poison: true, track_memory: true, trace: TraceLevel::Digest };
        let machine = Machine::with_options(&Program::new(module), options.limits, checked);
        let mut hopper = Hopper {
            graphs: graphs.to_vec(),
            options,
            pristine: machine.map_err(SetupError::Instantiate)?,
            exits: Vec::new(),
            report: HopReport::default(),
        };
        (0..graphs.len()).for_each(|graph| hopper.add_graph(module, graph));
        Ok(hopper)
    }

    /// Adds the versions of a graph to the machine, and judges the entries without a run.
    fn add_graph(&mut self, module: &Module, number: usize) {
        let graph = self.graphs[number];
        let analyses: Vec<Analyses<'_>> = graph.versions.iter().map(|v| Analyses::new(v)).collect();
        let ids: Vec<VersionId> = graph
            .versions
            .iter()
            .map(|v| self.pristine.add_version(module, graph.func, v))
            .collect();
        for (from, id) in ids.iter().enumerate() {
            let exits = self.exits_of(number, from, &analyses, &ids);
            let marked = exits.by_inst.iter().zip(0..).filter(|(list, _)| **list != 0);
            self.pristine.mark(*id, marked.map(|(_, inst)| Inst::from_u32(inst)));
            self.exits.resize_with(id.as_u32() as usize, || None);
            self.exits.push(Some(exits));
        }
        self.pristine.set_current(graph.func, ids[0]);
        let edges: Vec<_> = graph.edges.iter().map(|e| (e.from, e.to, e.mapping)).collect();
        let mut last = None;
        for m in find_missing(&analyses, &edges, self.options.demand) {
            let is_new = last.replace((m.edge, m.entry)) != Some((m.edge, m.entry));
            let (point, entry) =
                edges[m.edge].2.entries().nth(m.entry as usize).expect("an entry that was judged");
            let difference = HopDifference::NotProvided { value: m.value };
            self.blame(is_new, || {
                (Vec::new(), vec![graph.hop(m.edge, 0, point, entry)], difference)
            });
        }
    }

    fn exits_of(
        &mut self,
        number: usize,
        from: usize,
        analyses: &[Analyses<'_>],
        ids: &[VersionId],
    ) -> Exits<'a> {
        let graph = self.graphs[number];
        let bound = graph.versions[from].inst_bound();
        let mut exits = Exits { graph: number, by_inst: vec![0; bound], lists: Vec::new() };
        for (edge, Edge { to, mapping, .. }) in
            graph.edges.iter().enumerate().filter(|(_, e)| e.from == from)
        {
            for (point, entry) in mapping.entries() {
                if let Some(fault) = entry_fault(point, entry, &analyses[from], &analyses[*to]) {
                    let hops = || vec![graph.hop(edge, 0, point, entry)];
                    self.blame(true, || (Vec::new(), hops(), HopDifference::Entry(fault)));
                    continue;
                }
                let list = &mut exits.by_inst[point.inst().as_u32() as usize];
                if *list == 0 {
                    exits.lists.push(SmallVec::new());
                    *list = exits.lists.len() as u32;
                }
                exits.lists[*list as usize - 1].push(Exit { edge, entry, to: ids[*to] });
            }
        }
        exits
    }

    /// Runs the start function of the module, if it has one, and then a function: once without a
    /// hop, and then in chains that are compared with that. The host is cloned for every run.
    ///
    /// Cost: the runs, and a copy of the machine for each.
    ///
    /// # Panics
    /// When the function is imported or takes another number of arguments.
    pub fn run<H: Host + Clone>(&mut self, func: Func, args: &[u64], host: &H) {
        let prng = Prng::new(self.options.seed).fork(self.report.runs);
        self.report.runs += 1;
        let Some((ready, host)) = self.started(host) else { return };
        let Some((visits, reference)) = self.reference(&ready, func, args, &host) else { return };
        self.report.trapped += u64::from(reference.outcome.trap().is_some());
        if visits == 0 {
            self.report.without_entries += 1;
            return;
        }
        for number in 0..self.options.chains {
            let choices = Choices::random(prng.fork(u64::from(number)), visits, self.options.hops);
            let chain = self.chain(&ready, (func, args), &host, choices);
            self.count(args, &reference, chain);
        }
    }

    /// Runs one chain again: each hop leaves by its edge, after as many visits of points with
    /// entries as it says. Where that edge has no entry, the chain ends. What differs at the end,
    /// if anything does; nothing is counted.
    ///
    /// # Panics
    /// As [`Hopper::run`].
    pub fn replay<H: Host + Clone>(
        &self,
        (func, args): (Func, &[u64]),
        host: &H,
        hops: &[Hop],
    ) -> Option<HopDifference> {
        let (ready, host) = self.started(host)?;
        let (_, reference) = self.reference(&ready, func, args, &host)?;
        let chain = self.chain(&ready, (func, args), &host, Choices::script(hops));
        chain.difference(&reference)
    }

    /// A machine that has run the start function; `None` when that does not return.
    fn started<H: Host + Clone>(&self, host: &H) -> Option<(Machine, H)> {
        let (mut machine, mut host) = (self.pristine.clone(), host.clone());
        if let Some(start) = machine.start_function() {
            machine.invoke(start, &[], &mut host, &mut NoObserver).returned()?;
        }
        Some((machine, host))
    }

    /// The run without a hop: how often it visits a point with entries, and how it ends. `None`
    /// when a limit ends it.
    fn reference<H: Host + Clone>(
        &self,
        ready: &Machine,
        func: Func,
        args: &[u64],
        host: &H,
    ) -> Option<(u64, End)> {
        let (mut machine, mut host) = (ready.clone(), host.clone());
        let mut visits = Visits(0);
        let outcome = machine.invoke(func, args, &mut host, &mut visits);
        (!is_exhausted(&outcome)).then(|| (visits.0, End::of(&machine, outcome)))
    }

    fn count(&mut self, args: &[u64], reference: &End, chain: chain::Chain) {
        self.report.chains += 1;
        self.report.hops += chain.hops.len() as u64;
        self.report.full_chains += u64::from(chain.hops.len() as u32 >= FULL_CHAIN);
        self.report.longest = self.report.longest.max(chain.hops.len() as u64);
        if chain.is_exhausted() {
            self.report.exhausted += 1;
        }
        if let Some(difference) = chain.difference(reference) {
            self.blame(true, || (args.to_vec(), chain.hops, difference));
        }
    }

    /// Counts a divergence, and keeps it while there is room if it is a new one.
    fn blame(&mut self, is_new: bool, what: impl FnOnce() -> (Vec<u64>, Vec<Hop>, HopDifference)) {
        self.report.divergence_count += 1;
        if is_new && self.report.divergences.len() < self.options.divergences {
            let (input, hops, difference) = what();
            self.report.divergences.push(HopDivergence { input, hops, difference });
        }
    }

    /// What was done and found so far.
    pub fn report(&self) -> &HopReport {
        &self.report
    }
}

impl FunctionGraph<'_> {
    /// Names a hop for people.
    fn hop(&self, edge: usize, wait: u64, point: Point, entry: &Entry) -> Hop {
        let Edge { from, to, .. } = self.edges[edge];
        Hop { func: self.func, edge, wait, from, to, point, target: entry.target }
    }
}

fn check_graph(graph: &FunctionGraph<'_>) -> Result<(), SetupError> {
    for (number, Edge { from, to, mapping }) in graph.edges.iter().enumerate() {
        let keys = [*from, *to].map(|v| graph.versions.get(v).map(|f| VersionKey::of(f)));
        if keys != [Some(mapping.source()), Some(mapping.target())] {
            return Err(SetupError::OtherVersions { func: graph.func, edge: number });
        }
    }
    Ok(())
}

/// Counts the visits of marked points.
struct Visits(u64);

impl Observer for Visits {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, _view: &View<'_>, _inst: Inst) -> Control {
        self.0 += 1;
        Control::Continue
    }
}
