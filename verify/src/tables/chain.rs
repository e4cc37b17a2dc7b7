//! Chains: a run goes into rows and out of them, and ends like the base.

use super::{RowPlace, TableDifference, TableInput, TableJudge};
use crate::end::{EffectScope, RunEnd, is_exhausted};
use crate::prng::Prng;
use crate::waiting::Waiting;
use check::{Checked, compose};
use interp::{Host, Machine, NoObserver, Run, VersionId, View};
use ir::Point;
use transition::mapping::{Entry, Mapping};

/// The share of entries, in percent, that take any row, though its facts may not hold.
const ANY: u32 = 25;

/// The share of exits at failing assumptions, in percent, that lead to a row if one holds.
const ONWARD: u32 = 80;

/// The share of exits at failing assumptions, in percent, that lead to a frame state if one can.
const HANDED: u32 = 50;

/// The share of pauses in a row, in percent, at which the run leaves the row.
const OUT: u32 = 35;

/// A chain under way.
struct TableChain<H> {
    machine: Machine,
    host: H,
    prng: Prng,
    /// The transitions that are left, but for exits at failing assumptions.
    left: u32,
    /// The row that the run entered last.
    last: Option<usize>,
}

/// Why a chain ends early.
type Stopped = TableDifference;

impl TableJudge<'_> {
    /// Runs a chain from a machine that is ready, and compares its end with the run in bases.
    pub(super) fn chain<H: Host + Clone>(
        &mut self,
        ready: &Machine,
        host: &H,
        input: TableInput<'_>,
        reference: &RunEnd,
        mut prng: Prng,
    ) {
        let left = prng.between(1, self.options.hops.max(1));
        let mut chain =
            TableChain { machine: ready.clone(), host: host.clone(), prng, left, last: None };
        chain.machine.start(input.func, input.args);
        self.report.chains += 1;
        let difference = match self.walk(&mut chain, input.visits) {
            Err(difference) => difference,
            Ok(end) if is_exhausted(&end.outcome) => {
                self.report.exhausted += 1;
                return;
            }
            Ok(end) if end.same(reference) => return,
            Ok(end) => TableDifference::End { expected: reference.text(), found: end.text() },
        };
        self.diverge(input.args, chain.last, difference);
    }

    /// Runs a chain to its end.
    fn walk<H: Host>(&mut self, chain: &mut TableChain<H>, visits: u64) -> Result<RunEnd, Stopped> {
        let room = u32::try_from(1 + visits / u64::from(chain.left)).unwrap_or(u32::MAX);
        loop {
            let wait = if chain.prng.chance(25) { 0 } else { chain.prng.below(room) };
            let stop = match chain.left {
                0 => chain.machine.run(&mut chain.host, &mut NoObserver),
                _ => {
                    let mut waiting = Waiting::new(u64::from(wait), |_: &View<'_>| true);
                    chain.machine.run(&mut chain.host, &mut waiting)
                }
            };
            match stop {
                Run::Done(outcome) => {
                    return Ok(RunEnd::of(&chain.machine, outcome, EffectScope::All));
                }
                Run::Failed { .. } => self.leave_failed(chain)?,
                Run::Paused | Run::Called { .. } => {
                    self.hop(chain)?;
                }
            }
        }
    }

    /// Enters a row, or leaves one, where the run has paused.
    fn hop<H: Host>(&mut self, chain: &mut TableChain<H>) -> Result<(), Stopped> {
        let view = chain.machine.view().expect("the run is paused");
        if let Some(plan) = self.plan_at(&view) {
            let point = Point::before(view.inst());
            if !chain.prng.chance(OUT) {
                return Ok(());
            }
            chain.left -= 1;
            self.report.left += 1;
            return self.go_back(chain, plan, point);
        }
        match self.table_at(&chain.machine, &view) {
            Some(table) => self.enter(chain, table),
            None => Ok(()),
        }
    }

    /// The run is at a landing, and enters a row: at random among those whose facts hold, or any.
    fn enter<H: Host>(&mut self, chain: &mut TableChain<H>, table: usize) -> Result<(), Stopped> {
        let view = chain.machine.view().expect("the run is at a landing");
        let (rows, at) = (&self.tables[table].rows, self.tables[table].at);
        // An entry may take a value that a frame state alone names. An activation that came by
        // another transition may lack its contents, and stays in the base.
        let gives = |row: &usize| {
            let entry = rows[*row].enter.entry(at);
            let has_all = |entry: &Entry| !entry.requires.iter().any(|of| view.is_undefined(*of));
            entry.is_some_and(|entry| entry.kept.is_empty() || has_all(entry))
        };
        let all: Vec<usize> = (0..rows.len()).filter(gives).collect();
        let holding: Vec<usize> =
            all.iter().copied().filter(|row| rows[*row].holds(&view)).collect();
        let is_any = chain.prng.chance(ANY);
        let among = if is_any { &all } else { &holding };
        if among.is_empty() {
            return Ok(());
        }
        let row = chain.prng.pick(among);
        chain.left -= 1;
        let plan = self.plan_of(table, row);
        fire(&mut chain.machine, self.plans[plan].id, rows[row].enter, at)?;
        chain.last = Some(plan);
        match holding.contains(&row) {
            true => self.report.entered += 1,
            false => self.require_refusal(chain, plan)?,
        }
        Ok(())
    }

    /// Demands that a row whose facts do not hold fails at a test of a fact, before any effect.
    fn require_refusal<H: Host>(
        &mut self,
        chain: &mut TableChain<H>,
        plan: usize,
    ) -> Result<(), Stopped> {
        let state = |machine: &Machine| {
            let trace = machine.trace();
            (trace.count(), trace.digest(), machine.memory_digest())
        };
        let before = state(&chain.machine);
        let stop = chain.machine.run(&mut chain.host, &mut NoObserver);
        let RowPlace { table, row } = self.plans[plan].at;
        let facts = &self.tables[table].rows[row].facts;
        let at = chain.machine.view().map(|view| (view.inst(), self.plan_at(&view)));
        let is_test = matches!((&stop, at), (Run::Failed { .. }, Some((inst, Some(of))))
            if of == plan && facts.iter().any(|fact| fact.inst == inst));
        if !is_test || state(&chain.machine) != before {
            let found = match at {
                Some((inst, _)) => format!("it is at {inst}"),
                None => "it has ended".to_owned(),
            };
            return Err(TableDifference::EnteredLie { found });
        }
        self.report.lies += 1;
        self.leave_failed(chain)
    }

    /// An assumption of a row has failed: the run goes on in a row of the table where the exit
    /// lands, by one composed entry, or in the base.
    fn leave_failed<H: Host>(&mut self, chain: &mut TableChain<H>) -> Result<(), Stopped> {
        let view = chain.machine.view().expect("a failed run is paused");
        let point = Point::before(view.inst());
        let without_exit = TableDifference::WithoutExit { point };
        let plan = self.plan_at(&view).ok_or(without_exit.clone())?;
        let RowPlace { table, row } = self.plans[plan].at;
        let entry = self.plans[plan].entries[point.inst().as_u32() as usize];
        let entry = entry.ok_or(without_exit)?;
        let func = self.tables[table].func;
        let hand = self.tables[table].rows[row].hand.filter(|hand| hand.has_entry(point));
        if let Some(hand) = hand.filter(|_| chain.prng.chance(HANDED)) {
            self.report.handed += 1;
            let base = chain.machine.current(func).expect("the function has a body");
            return fire(&mut chain.machine, base, hand, point);
        }
        let is_onward = chain.left > 0 && chain.prng.chance(ONWARD);
        let next = self.landings.get(&(func, entry.target.inst())).copied();
        let next = next.filter(|_| is_onward && entry.inner.is_empty());
        let Some(next) = next else {
            self.report.failed += 1;
            return self.go_back(chain, plan, point);
        };
        chain.left -= 1;
        // The facts of rows are about values of the base, which has them once the run is there.
        let mut there = chain.machine.clone();
        let base = there.current(func).expect("the function has a body");
        fire(&mut there, base, self.tables[table].rows[row].back, point)?;
        let view = there.view().expect("the run is at a landing");
        let rows = &self.tables[next].rows;
        let holding: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].holds(&view)).collect();
        if holding.is_empty() {
            self.report.failed += 1;
            chain.machine = there;
            return Ok(());
        }
        let to = chain.prng.pick(&holding);
        let back = self.tables[table].rows[row].back.only_at(&[point]);
        let not_composed = TableDifference::NotComposed { point };
        let way = compose(&back, rows[to].enter).map_err(|_| not_composed.clone())?;
        if !way.mapping.has_entry(point) {
            return Err(not_composed);
        }
        let to = self.plan_of(next, to);
        fire(&mut chain.machine, self.plans[to].id, &way.mapping, point)?;
        chain.last = Some(to);
        self.report.to_rows += 1;
        Ok(())
    }

    /// The run leaves a row at a point for the base.
    fn go_back<H: Host>(
        &mut self,
        chain: &mut TableChain<H>,
        plan: usize,
        point: Point,
    ) -> Result<(), Stopped> {
        let RowPlace { table, row } = self.plans[plan].at;
        let table = &self.tables[table];
        let base = chain.machine.current(table.func).expect("the function has a body");
        fire(&mut chain.machine, base, table.rows[row].back, point)
    }
}

/// Fires the entry of a mapping at a point.
fn fire(
    machine: &mut Machine,
    to: VersionId,
    mapping: &Checked<Mapping>,
    point: Point,
) -> Result<(), Stopped> {
    let refused = |reason: String| TableDifference::Refused { point, reason };
    let entry = mapping.checked_entry(point).ok_or_else(|| refused("no entry".to_owned()))?;
    let view = machine.view().expect("the run is paused");
    let undefined = entry.entry().requires.iter().find(|value| view.is_undefined(**value));
    if let Some(value) = undefined {
        return Err(refused(format!("{value} has no contents")));
    }
    machine.fire(to, entry).map(drop).map_err(|error| refused(error.to_string()))
}
