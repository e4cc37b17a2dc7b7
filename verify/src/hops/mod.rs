//! Chains of transitions: a run hops between the versions of a function, and must end like a run
//! without hops.
//!
//! All versions of a function and the mappings between them form a graph. A *chain* starts in the
//! first version. At random visits of points with entries, it fires an entry. The machine runs the
//! compensation code on the values of the current activation and continues in the target version,
//! with the provided values alone. All other values are poison. At the end, result, effects and
//! memory are compared with the run that never left the first version.
//!
//! The state oracle ([`crate::state_oracle`]) judges each transition alone. Chains add the question
//! whether one entry provides enough for all entries that fire later, on any edge of the graph. If
//! an entry reads a value that nobody provided, the chain reports it at once. Every entry is also
//! checked without a run, when the [`Hopper`] is made. It has to provide the values live at its
//! target point. The values that entries of *all* mappings from that version require count as used.
//!
//! Chains prove nothing about inputs that they do not run. They trust the interpreter, the meaning
//! of operations, and dominators.

mod chain;
mod choose;
mod report;

pub use report::{Hop, HopDifference, HopDivergence, HopReport};

use crate::end::{EffectScope, RunEnd, is_exhausted};
use crate::prng::Prng;
use crate::state_oracle::{Analyses, entry_fault, find_missing};
use crate::waiting::Waiting;
use choose::Choices;
use interp::{
    Host, InstantiateError, Limits, Machine, NoObserver, Options, Program, TraceLevel, VersionId,
    View,
};
use ir::{Func, Function, Inst, Module, Point};
use smallvec::SmallVec;
use std::fmt;
use transition::Demand;
use transition::VersionKey;
use transition::mapping::{Entry, Mapping};

/// One edge of the graph of versions: a mapping.
#[derive(Clone, Copy, Debug)]
pub struct Edge<'a> {
    /// The source version, as an index of [`FunctionGraph::versions`].
    pub from: usize,
    /// The target version, as another index of [`FunctionGraph::versions`].
    pub to: usize,
    /// The mapping.
    pub mapping: &'a Mapping,
}

/// The versions of a function, and the mappings between them.
#[derive(Clone, Copy, Debug)]
pub struct FunctionGraph<'a> {
    /// The function.
    pub func: Func,
    /// The versions. Activations start in the first.
    pub versions: &'a [&'a Function],
    /// The mappings. Several mappings may have entries at one point.
    pub edges: &'a [Edge<'a>],
}

/// The settings of a [`Hopper`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HopOptions {
    /// Seed of the random choices of all chains.
    pub seed: u64,
    /// The number of chains for each input.
    pub chains: u32,
    /// The largest number of hops in a chain. Runs that are long enough have at least
    /// [`FULL_CHAIN`] hops.
    pub hops: u32,
    /// The values that entries have to provide.
    pub demand: Demand,
    /// The limits of a machine. Each chain has all the fuel.
    pub limits: Limits,
    /// The largest number of divergences kept. All are counted.
    pub divergences: usize,
}

/// The number of hops from which on reports count a chain as full.
pub const FULL_CHAIN: u32 = 4;

impl Default for HopOptions {
    /// For each input 4 chains of at most 16 hops; needed values; 10^7 instructions a run; 16
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

/// The reason why a [`Hopper`] cannot be made.
#[derive(Clone, PartialEq, Debug)]
pub enum HopSetupError {
    /// The mapping of an edge has other versions than the edge, or the graph lacks these versions.
    OtherVersions {
        /// The function.
        func: Func,
        /// The index of the edge.
        edge: usize,
    },
    /// A function has two graphs, or a graph without versions.
    NotOneGraph {
        /// The function.
        func: Func,
    },
    /// The module cannot be instantiated.
    Instantiate(InstantiateError),
}

impl fmt::Display for HopSetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HopSetupError::OtherVersions { func, edge } => {
                write!(f, "{func}: the mapping of edge {edge} belongs to other versions")
            }
            HopSetupError::NotOneGraph { func } => {
                write!(f, "{func} has two graphs, or a graph without versions")
            }
            HopSetupError::Instantiate(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for HopSetupError {}

/// An entry that may fire at a point.
#[derive(Clone, Copy, Debug)]
struct HopExit<'a> {
    /// The index of its edge in the graph.
    edge: usize,
    entry: &'a Entry,
    to: VersionId,
}

/// The entries at the points of one version.
#[derive(Debug)]
struct HopExits<'a> {
    /// The index of the graph.
    graph: usize,
    /// By instruction: the index of its entries in `lists` plus 1, or 0 for an instruction without
    /// entries.
    by_inst: Vec<u32>,
    lists: Vec<SmallVec<[HopExit<'a>; 2]>>,
}

impl<'a> HopExits<'a> {
    /// The entries at the point before an instruction.
    fn at(&self, inst: Inst) -> &[HopExit<'a>] {
        let number = self.by_inst.get(inst.as_u32() as usize).copied().unwrap_or(0);
        number.checked_sub(1).map_or(&[], |index| &self.lists[index as usize])
    }
}

/// Runs chains through the versions of the functions of a module. Functions without a graph run in
/// the version of the module.
#[derive(Debug)]
pub struct Hopper<'a> {
    graphs: Vec<FunctionGraph<'a>>,
    options: HopOptions,
    /// A machine that has run nothing, and has all versions.
    pristine: Machine,
    /// By version of the machine; `None` for versions of functions without a graph.
    exits: Vec<Option<HopExits<'a>>>,
    report: HopReport,
}

impl<'a> Hopper<'a> {
    /// A runner for a verified module and verified versions.
    ///
    /// The report starts with the faults that entries have regardless of the run. Such entries
    /// never fire, except entries whose only fault is that they provide too little: the chains are
    /// to show the consequence.
    ///
    /// Cost: near linear in the module, the versions, the mappings, and the values live at target
    /// points.
    ///
    /// # Errors
    /// See [`HopSetupError`].
    ///
    /// # Panics
    /// If the verifier rejects the module or a version.
    pub fn new(
        module: &Module,
        graphs: &[FunctionGraph<'a>],
        options: HopOptions,
    ) -> Result<Hopper<'a>, HopSetupError> {
        for (number, graph) in graphs.iter().enumerate() {
            check_graph(graph)?;
            if graph.versions.is_empty() || graphs[..number].iter().any(|g| g.func == graph.func) {
                return Err(HopSetupError::NotOneGraph { func: graph.func });
            }
        }
        // Poison marks the values that no entry provides; the digests of memory and trace are
        // compared at the end.
        let checked = Options { poison: true, track_memory: true, trace: TraceLevel::Digest };
        let machine = Machine::with_options(&Program::new(module), options.limits, checked);
        let mut pristine = machine.map_err(HopSetupError::Instantiate)?;
        pristine.stress_collector(true);
        let mut hopper = Hopper {
            graphs: graphs.to_vec(),
            options,
            pristine,
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
            // Versions of functions without a graph take numbers, too.
            self.exits.resize_with(id.as_u32() as usize, || None);
            self.exits.push(Some(exits));
        }
        // Activations start in the first version of the graph.
        self.pristine.set_current(graph.func, ids[0]);
        let edges: Vec<_> = graph.edges.iter().map(|e| (e.from, e.to, e.mapping)).collect();
        // One entry may lack several values. All are counted, and the first is kept. They are
        // sorted by entry.
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

    /// The entries at the points of one version that may fire. Counts the faults of all other
    /// entries.
    fn exits_of(
        &mut self,
        number: usize,
        from: usize,
        analyses: &[Analyses<'_>],
        ids: &[VersionId],
    ) -> HopExits<'a> {
        let graph = self.graphs[number];
        let bound = graph.versions[from].inst_bound();
        let mut exits = HopExits { graph: number, by_inst: vec![0; bound], lists: Vec::new() };
        for (edge, Edge { to, mapping, .. }) in
            graph.edges.iter().enumerate().filter(|(_, e)| e.from == from)
        {
            for (point, entry) in mapping.entries() {
                let landing = [&analyses[*to]];
                if let Some(fault) = entry_fault(point, entry, &analyses[from], &landing) {
                    let hops = || vec![graph.hop(edge, 0, point, entry)];
                    self.blame(true, || (Vec::new(), hops(), HopDifference::Entry(fault)));
                    continue;
                }
                let list = &mut exits.by_inst[point.inst().as_u32() as usize];
                if *list == 0 {
                    exits.lists.push(SmallVec::new());
                    *list = exits.lists.len() as u32;
                }
                exits.lists[*list as usize - 1].push(HopExit { edge, entry, to: ids[*to] });
            }
        }
        exits
    }

    /// Runs the start function of the module, if there is one, then a function: first without hops,
    /// then in chains, each compared with the first run. Every run gets a clone of the host.
    ///
    /// Cost: the runs, and a copy of the machine for each.
    ///
    /// # Panics
    /// If the function is imported or takes another number of arguments.
    pub fn run<H: Host + Clone>(&mut self, func: Func, args: &[u64], host: &H) {
        // The seed depends on the number of the run, so that each input gets other chains, and the
        // same chains if it is run again.
        let prng = Prng::new(self.options.seed).fork(self.report.runs);
        self.report.runs += 1;
        let Some((ready, host)) = self.started(host) else { return };
        let Some((visits, reference)) = self.reference(&ready, func, args, &host) else { return };
        self.report.trapped += u64::from(reference.outcome.trap().is_some());
        // No chain could hop in such a run.
        if visits == 0 {
            self.report.without_entries += 1;
            return;
        }
        for number in 0..self.options.chains {
            let choices = Choices::random(prng.fork(u64::from(number)), visits, self.options.hops);
            let chain = self.chain(&ready, func, args, &host, choices);
            self.count(args, &reference, chain);
        }
    }

    /// Runs one chain again. Each hop waits for its number of visits of points with entries, then
    /// takes its edge. The chain ends where that edge has no entry. Returns the difference to the
    /// run without hops, if there is one. Counts nothing.
    ///
    /// # Panics
    /// As [`Hopper::run`].
    pub fn replay<H: Host + Clone>(
        &self,
        func: Func,
        args: &[u64],
        host: &H,
        hops: &[Hop],
    ) -> Option<HopDifference> {
        let (ready, host) = self.started(host)?;
        let (_, reference) = self.reference(&ready, func, args, &host)?;
        let chain = self.chain(&ready, func, args, &host, Choices::script(hops));
        chain.difference(&reference)
    }

    /// A machine that has run the start function; `None` if the start function does not return.
    fn started<H: Host + Clone>(&self, host: &H) -> Option<(Machine, H)> {
        let (mut machine, mut host) = (self.pristine.clone(), host.clone());
        if let Some(start) = machine.start_function() {
            machine.invoke(start, &[], &mut host, &mut NoObserver).returned()?;
        }
        Some((machine, host))
    }

    /// Runs without hops. Returns the number of visits of points with entries, and the end; `None`
    /// if a limit ends the run.
    fn reference<H: Host + Clone>(
        &self,
        ready: &Machine,
        func: Func,
        args: &[u64],
        host: &H,
    ) -> Option<(u64, RunEnd)> {
        let (mut machine, mut host) = (ready.clone(), host.clone());
        let mut visits = Waiting::counting(|_: &View<'_>| true);
        let outcome = machine.invoke(func, args, &mut host, &mut visits);
        (!is_exhausted(&outcome))
            .then(|| (visits.counted(), RunEnd::of(&machine, outcome, EffectScope::All)))
    }

    fn count(&mut self, args: &[u64], reference: &RunEnd, chain: chain::Chain) {
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

    /// Counts a divergence. Keeps it if it is new and there is room.
    fn blame(&mut self, is_new: bool, what: impl FnOnce() -> (Vec<u64>, Vec<Hop>, HopDifference)) {
        self.report.divergence_count += 1;
        if is_new && self.report.divergences.len() < self.options.divergences {
            let (input, hops, difference) = what();
            self.report.divergences.push(HopDivergence { input, hops, difference });
        }
    }

    /// The chains so far, and the divergences found.
    pub fn report(&self) -> &HopReport {
        &self.report
    }
}

impl FunctionGraph<'_> {
    /// Describes a hop for reports.
    fn hop(&self, edge: usize, wait: u64, point: Point, entry: &Entry) -> Hop {
        let Edge { from, to, .. } = self.edges[edge];
        Hop { func: self.func, edge, wait, from, to, point, target: entry.target }
    }
}

fn check_graph(graph: &FunctionGraph<'_>) -> Result<(), HopSetupError> {
    for (number, Edge { from, to, mapping }) in graph.edges.iter().enumerate() {
        let keys = [*from, *to].map(|v| graph.versions.get(v).map(|f| VersionKey::of(f)));
        if keys != [Some(mapping.source()), Some(mapping.target())] {
            return Err(HopSetupError::OtherVersions { func: graph.func, edge: number });
        }
    }
    Ok(())
}
