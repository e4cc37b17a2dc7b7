//! Runs through landing tables: a run of a base enters rows at landings, leaves them, and must end
//! like the run that stays in the base.
//!
//! A row is a version of the code behind a point of a base. The caller hands over rows, the entries
//! to their starts and back, the *facts* that a row tests at its start, and *events*: instructions
//! of the row that the base executes in the same order. This module judges in two ways.
//!
//! - *States* (`states`). A run of the base pauses at a landing. One copy of the machine
//!   enters a row, and another stays in the base. At each visit of a point with an entry back, the
//!   judge compares what the entry provides with the base at the landing of the entry, between the
//!   same events: values, effects and memory. Exits count separately for assumptions that hold and
//!   that fail. A row of a function with frame states also has entries that hand the run to an
//!   interpreter of the embedder's own. The judge compares these with the base at the state, and
//!   demands that they provide each value that the state names.
//! - *Chains* (`chain`). A run enters rows, at random among those whose facts hold, leaves them
//!   at random points and where assumptions fail, goes from an exit to another row, and ends like
//!   the base. Where a row hands over, the base goes on from the state: it executes the bytecode
//!   anew, as the embedder's interpreter does. Some entries lead to rows whose facts do not hold.
//!   Such a row must fail at the test of a fact, before any effect.
//!
//! The judge trusts the interpreter and the events. It proves nothing about inputs that it does not
//! run.

mod chain;
mod report;
mod states;

pub use report::{TableDifference, TableDivergence, TableRunReport};

use crate::end::{EffectScope, RunEnd, is_exhausted};
use crate::prng::Prng;
use crate::waiting::Waiting;
use check::Checked;
use interp::{
    Host, InstantiateError, Limits, Machine, NoObserver, Options, Program, TraceLevel, VersionId,
    View,
};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::{Block, FrameStates, Func, Function, Inst, Module, Point, Value};
use states::HandedAt;
use std::collections::{BTreeMap, BTreeSet};
use transition::mapping::{Entry, Mapping};

/// A fact that a row tests at its start, about a value of the base at the landing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TestedFact {
    /// The instruction of the row that tests it.
    pub inst: Inst,
    /// The value of the base.
    pub value: Value,
    /// The bits that it is compared with.
    pub bits: u64,
    /// Whether the fact is that the bits are equal, not that they differ.
    pub is_equal: bool,
}

/// A row of a table.
#[derive(Clone, Debug)]
pub struct JudgedRow<'a> {
    /// The code.
    pub version: &'a Function,
    /// From the landing in the base to the start of the row.
    pub enter: &'a Checked<Mapping>,
    /// From the row to the base.
    pub back: &'a Checked<Mapping>,
    /// From the row to frame states of the base, if its runs leave to an interpreter of the
    /// embedder's own.
    pub hand: Option<&'a Checked<Mapping>>,
    /// The facts that it tests at its start.
    pub facts: Vec<TestedFact>,
    /// By instruction of the row: the instruction of the base that is the same event.
    pub events: &'a BTreeMap<Inst, Inst>,
}

/// The rows behind a point of a base.
#[derive(Clone, Debug)]
pub struct PointTable<'a> {
    /// The function.
    pub func: Func,
    /// Its base, the body in the module.
    pub base: &'a Function,
    /// The point.
    pub at: Point,
    /// The frame states of the base, where rows hand over.
    pub states: Option<&'a FrameStates>,
    /// The rows, in the order in which runs try them.
    pub rows: Vec<JudgedRow<'a>>,
}

/// The settings of a [`TableJudge`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableOptions {
    /// Seed of all random choices.
    pub seed: u64,
    /// The number of chains for each input.
    pub chains: u32,
    /// The most transitions of a chain, but for exits at failing assumptions.
    pub hops: u32,
    /// The visits of landings, for each input, from which states are compared.
    pub visits: u32,
    /// The most events of a row between a landing and the last state that is compared.
    pub events: u32,
    /// The limits of a machine.
    pub limits: Limits,
    /// The largest number of divergences kept. All are counted.
    pub divergences: usize,
}

impl Default for TableOptions {
    /// For each input 1 chain of at most 16 transitions, and 4 visits with 64 events each; 10^7
    /// instructions a run; 16 divergences.
    fn default() -> TableOptions {
        TableOptions {
            seed: 0,
            chains: 1,
            hops: 16,
            visits: 4,
            events: 64,
            limits: Limits { fuel: 10_000_000, ..Limits::default() },
            divergences: 16,
        }
    }
}

/// A call that starts a run.
#[derive(Clone, Copy)]
struct TableInput<'i> {
    func: Func,
    args: &'i [u64],
    /// How often the run visits landings, if it stays in bases.
    visits: u64,
}

/// The index of a table, and of a row there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct RowPlace {
    table: usize,
    row: usize,
}

/// What the judge knows of a row by itself.
#[derive(Debug)]
struct RowPlan<'a> {
    /// The index of its table, and its index there.
    at: RowPlace,
    id: VersionId,
    /// By instruction of the row: the entry back from the point before it.
    entries: Vec<Option<&'a Entry>>,
    /// By instruction of the row: the entry to a frame state from the point before it.
    handed: Vec<Option<(&'a Entry, HandedAt)>>,
    /// Instructions whose entries to a frame state lack a value that the state names.
    lacking: BTreeMap<Inst, Value>,
    /// By instruction of the row: the instruction of the base that is the same event.
    events: Vec<Option<Inst>>,
    /// By instruction of the base: whether it is an event of the row.
    of_base: Vec<bool>,
    /// Whether each loop of the row has an event. Otherwise visits of a point are not told apart.
    is_aligned: bool,
}

/// Judges runs of a module through tables.
#[derive(Debug)]
pub struct TableJudge<'a> {
    tables: Vec<PointTable<'a>>,
    plans: Vec<RowPlan<'a>>,
    /// By version of the machines: the index of its plan.
    of_version: BTreeMap<u32, usize>,
    landings: BTreeMap<(Func, Inst), usize>,
    options: TableOptions,
    /// A machine that has run nothing, with all rows. Landings and the points of rows are marked.
    pristine: Machine,
    /// As `pristine`; events are marked as well, and the landing points of entries in bases.
    watched: Machine,
    report: TableRunReport,
}

impl<'a> TableJudge<'a> {
    /// A judge for a verified module, and verified rows of its functions. Tables of one point are
    /// one table. Cost: near linear in the module, the rows and their entries.
    ///
    /// # Errors
    /// If the module cannot be instantiated.
    ///
    /// # Panics
    /// If the verifier rejects the module or a row, or if two tables have one point.
    pub fn new(
        module: &Module,
        tables: Vec<PointTable<'a>>,
        options: TableOptions,
    ) -> Result<TableJudge<'a>, InstantiateError> {
        let checked = Options { poison: true, track_memory: true, trace: TraceLevel::Digest };
        let mut machine = Machine::with_options(&Program::new(module), options.limits, checked)?;
        machine.stress_collector(true);
        let (mut plans, mut landings) = (Vec::new(), BTreeMap::new());
        let mut in_bases = BTreeMap::<Func, BTreeSet<Inst>>::new();
        for (number, table) in tables.iter().enumerate() {
            let known = landings.insert((table.func, table.at.inst()), number);
            assert!(known.is_none(), "verify: two tables of {} at {}", table.func, table.at.inst());
            let watched = in_bases.entry(table.func).or_default();
            for (index, row) in table.rows.iter().enumerate() {
                let id = machine.add_rest(module, table.func, row.version);
                watched.extend(row.events.values().copied());
                watched.extend(row.back.entries().map(|(_, entry)| entry.target.inst()));
                machine.mark(id, row.back.entries().map(|(point, _)| point.inst()));
                let handed = || row.hand.into_iter().flat_map(|hand| hand.entries());
                watched.extend(handed().map(|(_, entry)| entry.target.inst()));
                machine.mark(id, handed().map(|(point, _)| point.inst()));
                plans.push(RowPlan::new(table, row, RowPlace { table: number, row: index }, id));
            }
        }
        let (mut pristine, mut watched) = (machine.clone(), machine);
        for (func, inst) in landings.keys() {
            let base = pristine.current(*func).expect("a function with a table has a body");
            pristine.mark(base, [*inst]);
            let more = in_bases.remove(func).unwrap_or_default();
            watched.mark(base, more.into_iter().chain([*inst]));
        }
        for plan in &plans {
            let RowPlace { table, row } = plan.at;
            watched.mark(plan.id, tables[table].rows[row].events.keys().copied());
        }
        let of_version = plans.iter().enumerate().map(|(plan, of)| (of.id.as_u32(), plan));
        Ok(TableJudge {
            of_version: of_version.collect(),
            tables,
            plans,
            landings,
            options,
            pristine,
            watched,
            report: TableRunReport::default(),
        })
    }

    /// The comparisons so far, and the divergences found.
    pub fn report(&self) -> &TableRunReport {
        &self.report
    }

    /// Runs the start function of the module, if there is one, then a function: in the base, then
    /// through tables. Every run gets a clone of the host.
    ///
    /// # Panics
    /// If the function is imported or takes another number of arguments.
    pub fn run<H: Host + Clone>(&mut self, func: Func, args: &[u64], host: &H) {
        let prng = Prng::new(self.options.seed).fork(self.report.runs);
        self.report.runs += 1;
        let Some((ready, begun)) = started(&self.pristine, host) else { return };
        let mut visits = Waiting::counting(|_: &View<'_>| true);
        let (mut plain, mut plain_host) = (ready.clone(), begun.clone());
        let outcome = plain.invoke(func, args, &mut plain_host, &mut visits);
        if is_exhausted(&outcome) {
            self.report.exhausted += 1;
            return;
        }
        self.report.trapped += u64::from(outcome.trap().is_some());
        let reference = RunEnd::of(&plain, outcome, EffectScope::All);
        let visits = visits.counted();
        if visits == 0 {
            self.report.without_landings += 1;
            return;
        }
        let input = TableInput { func, args, visits };
        for number in 0..self.options.chains {
            let prng = prng.fork(u64::from(number));
            self.chain(&ready, &begun, input, &reference, prng);
        }
        self.compare_states(host, input, prng.fork(u64::MAX));
    }

    fn plan_at(&self, view: &View<'_>) -> Option<usize> {
        self.of_version.get(&view.version().as_u32()).copied()
    }

    /// The table at which an activation of a base has paused.
    fn table_at(&self, machine: &Machine, view: &View<'_>) -> Option<usize> {
        let is_base = machine.current(view.func()) == Some(view.version());
        self.landings.get(&(view.func(), view.inst())).copied().filter(|_| is_base)
    }

    /// The plan of a row.
    fn plan_of(&self, table: usize, row: usize) -> usize {
        let at = self.plans.iter().position(|plan| plan.at == RowPlace { table, row });
        at.expect("every row has a plan")
    }

    fn diverge(&mut self, input: &[u64], at: Option<usize>, difference: TableDifference) {
        self.report.divergence_count += 1;
        if self.report.divergences.len() >= self.options.divergences {
            return;
        }
        let place = at.map(|plan| {
            let RowPlace { table, row } = self.plans[plan].at;
            let PointTable { func, base, at, .. } = &self.tables[table];
            (format!("{func} @{}", base.name()), *at, row)
        });
        let divergence = TableDivergence { input: input.to_vec(), place, difference };
        self.report.divergences.push(divergence);
    }
}

impl<'a> RowPlan<'a> {
    fn new(
        table: &PointTable<'a>,
        row: &JudgedRow<'a>,
        at: RowPlace,
        id: VersionId,
    ) -> RowPlan<'a> {
        let mut entries = vec![None; row.version.inst_bound()];
        let back: &'a Mapping = row.back;
        for (point, entry) in back.entries() {
            entries[point.inst().as_u32() as usize] = Some(entry);
        }
        let mut handed = vec![None; row.version.inst_bound()];
        let mut lacking = BTreeMap::new();
        let hand: Option<&'a Mapping> = row.hand.map(|hand| &**hand);
        let dom = DomTree::new(table.base, &Cfg::new(table.base));
        for (point, entry) in hand.into_iter().flat_map(Mapping::entries) {
            let index = point.inst().as_u32() as usize;
            let place = entries[index].map_or(entry.target, |back| back.target).inst();
            let is_in_front = dom.inst_dominates(table.base, entry.target.inst(), place);
            handed[index] = Some((entry, HandedAt { place, is_in_front }));
            lacking.extend(lacks(table, entry).map(|value| (point.inst(), value)));
        }
        let mut events = vec![None; row.version.inst_bound()];
        let mut of_base = vec![false; table.base.inst_bound()];
        for (inst, of) in row.events {
            events[inst.as_u32() as usize] = Some(*of);
            of_base[of.as_u32() as usize] = true;
        }
        let is_aligned = !has_loop_without(row.version, row.events);
        RowPlan { at, id, entries, handed, lacking, events, of_base, is_aligned }
    }
}

/// The first value that the frame state at the landing of an entry names, and that the entry does
/// not provide. The embedder's interpreter needs no constants from it.
fn lacks(table: &PointTable<'_>, entry: &Entry) -> Option<Value> {
    let state = table.states?.get(entry.target)?;
    let is_provided = |value: &Value| entry.provides().any(|given| given == *value);
    let mut named = state.values().filter(|value| table.base.constant(*value).is_none());
    named.find(|value| !is_provided(value))
}

/// Whether a run may go around a loop without an event. At most the square of the blocks.
fn has_loop_without(f: &Function, events: &BTreeMap<Inst, Inst>) -> bool {
    let is_cut = |block: Block| f.block_insts(block).any(|inst| events.contains_key(&inst));
    let mut uncut: BTreeSet<Block> = f.blocks().filter(|block| !is_cut(*block)).collect();
    // Blocks without a successor among the rest go, until none is left or the rest has a cycle.
    loop {
        let leads_out = |block: &Block| {
            !f.successors(*block).iter().any(|target| uncut.contains(&target.block))
        };
        let ended: Vec<Block> = uncut.iter().copied().filter(leads_out).collect();
        if ended.is_empty() {
            return !uncut.is_empty();
        }
        ended.iter().for_each(|block| {
            uncut.remove(block);
        });
    }
}

/// A copy of a machine that has run the start function; `None` if that does not return.
fn started<H: Host + Clone>(pristine: &Machine, host: &H) -> Option<(Machine, H)> {
    let (mut machine, mut host) = (pristine.clone(), host.clone());
    if let Some(start) = machine.start_function() {
        machine.invoke(start, &[], &mut host, &mut NoObserver).returned()?;
    }
    Some((machine, host))
}

impl JudgedRow<'_> {
    /// Whether the facts hold in the activation that is at the landing.
    fn holds(&self, view: &View<'_>) -> bool {
        self.facts.iter().all(|fact| (view.value(fact.value) == fact.bits) == fact.is_equal)
    }
}
