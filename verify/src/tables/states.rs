//! States: a row and the base run side by side from a landing on.

use super::{RowPlace, RowPlan, TableDifference, TableInput, TableJudge, started};
use crate::end::is_exhausted;
use crate::prng::Prng;
use crate::waiting::Waiting;
use interp::{Control, Host, Machine, Observer, Run, Scope, VersionId, View};
use ir::{Imm, Inst, Opcode, Point, Value};
use transition::mapping::Entry;

/// The state that an entry provides at a visit of its source point.
struct ProvidedState {
    /// The number of events before the visit.
    gap: usize,
    point: Inst,
    target: Inst,
    /// The range of its values.
    values: std::ops::Range<usize>,
    effects: (u64, u64),
    /// `None` if a store that the entry replays traps.
    memory: Option<u64>,
    /// At an assumption: whether it holds.
    holds: Option<bool>,
    /// For an entry that lands at a frame state, for the embedder's interpreter.
    handed: Option<HandedAt>,
}

/// How the frame state at the landing of an entry lies to the instruction of the base where the run
/// is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HandedAt {
    /// That instruction of the base.
    pub(super) place: Inst,
    /// Whether the state is in front of it: the state is that of the last visit there. Otherwise it
    /// is that of the next visit.
    pub(super) is_in_front: bool,
}

/// The most events between a frame state and a place behind it. The embedder's interpreter executes
/// them anew.
const ANEW: usize = 4;

/// Records what the entries of a row provide, until so many events.
struct RowWatch<'p> {
    plan: &'p RowPlan<'p>,
    /// The depth of its activation.
    depth: usize,
    /// By instruction of the row, as far as it is an assumption: the operand, and the bits.
    assumed: &'p dyn Fn(Inst) -> Option<(Value, u64)>,
    most: usize,
    /// The events, as instructions of the base.
    events: Vec<Inst>,
    records: Vec<ProvidedState>,
    values: Vec<(Value, u64)>,
}

impl RowWatch<'_> {
    fn record(&mut self, view: &View<'_>, inst: Inst, entry: &Entry, handed: Option<HandedAt>) {
        let start = self.values.len();
        let values = &mut self.values;
        // Entries from a row to the base land in one activation.
        let writes = entry.run(|v| view.value(v), |_, value, bits| values.push((value, bits)));
        let memory = writes.ok().and_then(|writes| match writes.is_empty() {
            true => Some(view.memory_digest()),
            false => view.memory_digest_after(&writes).ok(),
        });
        let trace = view.trace();
        self.records.push(ProvidedState {
            gap: self.events.len(),
            point: inst,
            target: entry.target.inst(),
            values: start..self.values.len(),
            effects: (trace.count(), trace.digest()),
            memory,
            holds: (self.assumed)(inst).map(|(value, bits)| view.value(value) == bits),
            handed,
        });
    }
}

impl Observer for RowWatch<'_> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        // Calls run bases, so one activation runs the row.
        if view.version() != self.plan.id {
            let is_over = view.depth() < self.depth;
            return if is_over { Control::Pause } else { Control::Continue };
        }
        let index = inst.as_u32() as usize;
        if let Some(entry) = self.plan.entries[index] {
            self.record(view, inst, entry, None);
        }
        if let Some((entry, at)) = self.plan.handed[index] {
            self.record(view, inst, entry, Some(at));
        }
        if let Some(of) = self.plan.events[index] {
            self.events.push(of);
        }
        match self.events.len() >= self.most {
            true => Control::Pause,
            false => Control::Continue,
        }
    }
}

/// Compares the base with the records of a row.
struct BaseWatch<'w> {
    of_base: &'w [bool],
    base: VersionId,
    activation: u64,
    depth: usize,
    /// The events of the row.
    events: &'w [Inst],
    /// The events so far.
    seen: usize,
    records: &'w [ProvidedState],
    values: &'w [(Value, u64)],
    /// By record: whether the base has come to its landing point.
    met: Vec<bool>,
    /// By record: whether the base has come to the place of the record. A frame state that it has
    /// not visited by then is in front of the landing.
    passed: Vec<bool>,
    /// By record of an entry to a frame state in front: the last visit of the state, and how it
    /// differs.
    last: Vec<Option<Option<TableDifference>>>,
    /// The first record of the current gap.
    first: usize,
    difference: Option<TableDifference>,
}

impl BaseWatch<'_> {
    fn compare(&mut self, view: &View<'_>, inst: Inst) {
        let near = |one: &&ProvidedState| one.gap <= self.seen + ANEW;
        let here = self.records[self.first..].iter().take_while(near).count();
        for index in self.first..self.first + here {
            let one = &self.records[index];
            let is_in_front = one.handed.is_some_and(|at| at.is_in_front);
            if is_in_front && one.target == inst && !self.passed[index] {
                self.last[index] = Some(self.differs(view, one));
            }
            // A state in front belongs to the place behind it.
            let place = one.handed.filter(|at| at.is_in_front).map_or(one.target, |at| at.place);
            let is_here = one.gap == self.seen && place == inst;
            if !is_here || std::mem::replace(&mut self.passed[index], true) {
                continue;
            }
            let found = match is_in_front {
                false => Some(self.differs(view, one)),
                true => self.last[index].take(),
            };
            self.met[index] = found.is_some();
            self.difference = self.difference.take().or(found.flatten());
        }
    }

    /// How a state differs from the base.
    fn differs(&self, view: &View<'_>, one: &ProvidedState) -> Option<TableDifference> {
        let point = Point::before(one.point);
        let provided = &self.values[one.values.clone()];
        let wrong = provided.iter().find(|(value, found)| view.value(*value) != *found);
        let trace = view.trace();
        if let Some((value, found)) = wrong {
            let (value, expected, found) = (*value, view.value(*value), *found);
            return Some(TableDifference::Value { point, value, expected, found });
        }
        if one.effects != (trace.count(), trace.digest()) {
            return Some(TableDifference::Effects { point });
        }
        (one.memory != Some(view.memory_digest())).then_some(TableDifference::Memory { point })
    }

    /// Notes an event of the base. Returns whether the row has no more.
    fn pass(&mut self, inst: Inst) -> bool {
        let Some(expected) = self.events.get(self.seen) else { return true };
        if *expected != inst {
            let events = TableDifference::Events { after: self.seen };
            self.difference = self.difference.take().or(Some(events));
            return true;
        }
        self.seen += 1;
        let gone = self.records[self.first..].iter().take_while(|one| one.gap < self.seen);
        self.first += gone.count();
        self.seen >= self.events.len() && self.first >= self.records.len()
    }
}

impl Observer for BaseWatch<'_> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        if view.version() != self.base || view.activation() != self.activation {
            let is_over = view.depth() < self.depth;
            return if is_over { Control::Pause } else { Control::Continue };
        }
        self.compare(view, inst);
        let is_event = self.of_base[inst.as_u32() as usize];
        let is_over = self.difference.is_some() || (is_event && self.pass(inst));
        if is_over { Control::Pause } else { Control::Continue }
    }
}

impl TableJudge<'_> {
    /// Compares the states of rows from random visits of landings on.
    pub(super) fn compare_states<H: Host + Clone>(
        &mut self,
        host: &H,
        input: TableInput<'_>,
        mut prng: Prng,
    ) {
        let TableInput { func, args, visits } = input;
        let Some((mut machine, mut host)) = started(&self.watched, host) else { return };
        machine.start(func, args);
        let room = u32::try_from(visits / u64::from(self.options.visits.max(1)));
        let room = 1 + room.unwrap_or(u32::MAX - 1);
        for number in 0..self.options.visits {
            let is_landing = {
                let landings = &self.landings;
                let bases: Vec<_> =
                    landings.keys().map(|(func, _)| machine.current(*func)).collect();
                move |view: &View<'_>| {
                    bases.contains(&Some(view.version()))
                        && landings.contains_key(&(view.func(), view.inst()))
                }
            };
            // The first visit behind a pause is the next one: the machine does not pause at the
            // point where it stands.
            let wait = prng.below(room) / if number == 0 { 2 } else { 1 };
            let mut waiting = Waiting::new(u64::from(wait), is_landing);
            match machine.run(&mut host, &mut waiting) {
                Run::Paused => {}
                _ => return,
            }
            let view = machine.view().expect("the run is paused");
            let Some(table) = self.table_at(&machine, &view) else { continue };
            let row = prng.index(self.tables[table].rows.len());
            let plan = self.plan_of(table, row);
            if let Some(difference) = self.compare_from(&machine, &host, plan) {
                self.diverge(args, Some(plan), difference);
            }
        }
    }

    /// Runs a row and the base from the landing where a machine has paused.
    fn compare_from<H: Host + Clone>(
        &mut self,
        at: &Machine,
        host: &H,
        plan: usize,
    ) -> Option<TableDifference> {
        let RowPlace { table, row } = self.plans[plan].at;
        if !self.plans[plan].is_aligned {
            self.report.not_aligned += 1;
            return None;
        }
        let version = self.tables[table].rows[row].version;
        let assumed = |inst: Inst| {
            let data = version.inst(inst);
            let Imm::Assumed(bits, _) = data.imm else { return None };
            (data.opcode == Opcode::Assume).then(|| (data.args[0], bits))
        };
        let view = at.view().expect("the run is paused");
        let mut watch = RowWatch {
            plan: &self.plans[plan],
            depth: view.depth(),
            assumed: &assumed,
            most: self.options.events as usize,
            events: Vec::new(),
            records: Vec::new(),
            values: Vec::new(),
        };
        let (mut machine, mut own) = (at.clone(), host.clone());
        let entry = self.tables[table].rows[row].enter.checked_entry(self.tables[table].at)?;
        if let Err(error) = machine.fire(self.plans[plan].id, entry) {
            let point = self.tables[table].at;
            return Some(TableDifference::Refused { point, reason: error.to_string() });
        }
        // The first instruction of the row has a point, too, at which the machine stands.
        let start = machine.view().expect("a run that was entered");
        let inst = start.inst();
        let _ = watch.before(&start, inst);
        let stop = machine.run(&mut own, &mut watch);
        let is_short = matches!(&stop, Run::Done(outcome) if is_exhausted(outcome));
        let RowWatch { events, records, values, .. } = watch;
        self.report.compared_visits += 1;
        let mut watch = BaseWatch {
            of_base: &self.plans[plan].of_base,
            base: view.version(),
            activation: view.activation(),
            depth: view.depth(),
            events: &events,
            seen: 0,
            met: vec![false; records.len()],
            passed: vec![false; records.len()],
            last: vec![None; records.len()],
            records: &records,
            values: &values,
            first: 0,
            difference: None,
        };
        let lacking = &self.plans[plan].lacking;
        let lack = records.iter().filter(|one| one.handed.is_some()).find_map(|one| {
            let point = Point::before(one.point);
            let value = *lacking.get(&one.point)?;
            Some(TableDifference::NotNamed { point, value })
        });
        let (mut machine, mut own) = (at.clone(), host.clone());
        let is_paused = matches!(watch.before(&view, view.inst()), Control::Pause);
        let stop = (!is_paused).then(|| machine.run(&mut own, &mut watch));
        let is_limited = matches!(&stop, Some(Run::Done(outcome)) if is_exhausted(outcome));
        let BaseWatch { met, difference, .. } = watch;
        for (one, _) in records.iter().zip(&met).filter(|(_, is_met)| **is_met) {
            self.report.states += 1;
            self.report.values += one.values.len() as u64;
            self.report.holding += u64::from(one.holds == Some(true));
            self.report.failing += u64::from(one.holds == Some(false));
            self.report.handed_states += u64::from(one.handed.is_some());
        }
        // A frame state may stand in front of the landing, where the base was before both runs
        // began. Chains hand over there.
        let is_missed = |(one, is_met): &(&ProvidedState, &bool)| !**is_met && one.handed.is_none();
        let missed = records.iter().zip(&met).find(is_missed).map(|(one, _)| one);
        let unmet =
            records.iter().zip(&met).filter(|(one, is_met)| one.handed.is_some() && !**is_met);
        self.report.handed_unmet += unmet.count() as u64;
        let missed = missed.filter(|_| !is_short && !is_limited).map(|one| {
            let (point, target) = (Point::before(one.point), Point::before(one.target));
            TableDifference::NoPartner { point, target }
        });
        lack.or(difference).or(missed)
    }
}
