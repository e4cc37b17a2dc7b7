//! Landing tables: versions of the code behind a point of a base, in the order in which runs try
//! them.
//!
//! A table has a *key*, a point of a base: a loop header, or the landing of an exit. Each *row* is
//! a version of the code behind that point ([`derive::landing`]). The facts that a row tests at its
//! start are its *context*. A run enters the first row. If a fact of a context does not hold, the
//! exit of this fact leads to the next row. The last row assumes nothing, so it takes every run.
//!
//! All exits that land at one point share its table, whatever version they leave: N exits and M
//! rows are N passages and M pieces of code ([`jit::Engine::continuation`]).
//!
//! *Progress.* A run that goes from exit to exit does not stay at one point of the base. The exits
//! of contexts lead from row to row, in one direction. Each other exit lands at the place of its
//! assumption itself ([`LandingExit::place`]), so the base would have executed instructions since
//! the last landing: a row tests at its start what it assumes about its landing, and comes to the
//! same place again only in a later round. Exits that land elsewhere lead to the interpreter.
//! `a_run_that_alternates_between_two_facts_ends`
//!
//! Source: contextual dispatch and deoptless (Flückiger, *Just-in-time compilation for dynamic
//! languages*, chapters 3 and 4), there at calls, with one frame, and inside of the compiler.

use super::contexts::calls_in_context;
use super::facts::{Known, LatestFacts, LostExits, observed, related};
use super::handing::HandedWays;
use super::limits::TableLimits;
use super::plain::PlainRows;
use super::speculating::is_testable;
use super::{Compiled, CompiledKind, Observer};
use check::{Checked, compose};
use derive::landing::{LandingCode, LandingError, LandingRow};
use derive::speculate::{Assumption, Plan};
use interp::View;
use ir::{Func, Function, Inst, Point, Value};
use jit::{
    Action, CompileError, Continuation, ContinueError, FailedPoint, LinkError, Onward, RunError,
    Tier, Version, VersionSpec,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use transition::VersionKey;
use transition::mapping::Mapping;

/// An exit leads to the interpreter until it has been taken so many times. Then a row takes over.
pub const ROW_AFTER: u64 = 2;

/// The point of a base whose table it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct TableKey {
    pub(super) func: Func,
    pub(super) at: Point,
}

impl TableKey {
    /// A key in front of all keys of a function.
    pub(super) fn first(func: Func) -> TableKey {
        TableKey { func, at: Point::before(Inst::from_u32(0)) }
    }
}

/// Why a row, or the way to it, was not made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowError {
    /// No row can be made of the code behind the point.
    Landing(LandingError),
    /// The code cannot be compiled or linked.
    Code(RunError),
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowError::Landing(error) => error.fmt(f),
            RowError::Code(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RowError {}

/// A row, compiled.
struct CompiledRow {
    made: LandingRow,
    version: Arc<Version>,
    /// The continuation from the interpreter.
    enter: Arc<Continuation>,
    /// The exits that lead to it.
    linked: Vec<LinkedExit>,
    /// Whether one of its assumptions has failed too often. No exit leads to it any more.
    is_given_up: bool,
}

/// An exit that leads to a row.
struct LinkedExit {
    version: Arc<Version>,
    number: usize,
    /// The action of the exit without the row.
    without: Action,
}

/// The rows of a point.
struct LandingTable {
    code: LandingCode,
    rows: Vec<CompiledRow>,
    bytes: usize,
    /// Whether it gets no more rows.
    is_full: bool,
    /// Whether hot loops make no more rows: these rows would assume nothing.
    is_idle: bool,
}

impl LandingTable {
    fn new(code: LandingCode) -> LandingTable {
        let (is_full, is_idle) = (false, false);
        LandingTable { code, rows: Vec::new(), bytes: 0, is_full, is_idle }
    }
}

/// The landing tables of all functions.
#[derive(Default)]
pub(super) struct LandingTables {
    /// `None` for a point behind which is no code that a row could be made of.
    tables: BTreeMap<TableKey, Option<LandingTable>>,
    /// By the address of a version that a table holds: its table, and its row.
    rows: BTreeMap<usize, (TableKey, usize)>,
    /// The exits that lead to no row, by the version and the number of the point.
    hopeless: BTreeSet<(VersionKey, usize)>,
    latest: LatestFacts,
    pub(super) limits: TableLimits,
    pub(super) lost: LostExits,
    /// The bytes of machine code of all rows and passages.
    pub(super) bytes: usize,
    /// Whether the engine has had no room for code.
    pub(super) is_out_of_memory: bool,
    /// Whether calls with constant arguments may lead to rows of their callees.
    pub(super) dispatches: bool,
    /// The rows at loops without another entry.
    pub(super) plain: PlainRows,
    /// The rows whose calls were not linked yet.
    pub(super) fresh: Vec<Arc<Version>>,
}

impl std::fmt::Debug for LandingTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LandingTables").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}

/// An exit that a run takes, in terms of the base.
pub(super) struct LandingExit<'a> {
    /// From the version that the run leaves to the base.
    back: &'a Checked<Mapping>,
    /// The assumption that has failed.
    of: Assumption,
    /// Where the base makes it.
    place: Point,
    /// The row that the run leaves, if it does so at the start.
    row: Option<usize>,
}

/// What rows are made with.
pub(super) struct RowMaker<'a, O> {
    /// The assumptions of the function, in terms of the base.
    pub(super) assume: &'a [Assumption],
    pub(super) plan: Plan<'a>,
    /// The ways to an interpreter of the embedder's own, if exits of the function lead there.
    pub(super) ways: Option<HandedWays>,
    pub(super) observer: &'a mut O,
}

/// The row in which a run continues.
pub(super) struct RowTaken {
    pub(super) onward: Onward,
    /// Whether the table has become full, and its last row assumes nothing: the value of the failed
    /// assumption has many contents.
    pub(super) is_last: bool,
}

fn address(version: &Arc<Version>) -> usize {
    Arc::as_ptr(version).addr()
}

/// The exit of a failed assumption: the key of its version, since addresses are used again.
fn exit_of(at: FailedPoint<'_>) -> (VersionKey, usize) {
    (at.version.key(), at.number)
}

impl LandingTables {
    /// The continuation from a loop header of a base into the first row of its table that is not
    /// given up. Without one, the table gets a row. `None` if no row there would assume anything.
    /// Cost: as [`LandingCode::row`] for a row, else logarithmic.
    pub(super) fn enter_loop<O: Observer>(
        &mut self,
        tier: &mut Tier<'_>,
        key: TableKey,
        maker: &mut RowMaker<'_, O>,
    ) -> Option<Arc<Continuation>> {
        let module = Arc::clone(tier.module());
        let base = module.body(key.func)?;
        // A few rare failures do not count here, long after the last of them
        // (`a_row_of_a_loop_assumes_what_the_list_says`).
        let (is_crowded, listed) = (self.is_crowded(key), maker.assume);
        let table = self.table(tier, base, key, maker)?;
        // `a_row_is_entered_with_all_values_or_not_at_all`
        let stay = table.code.stay().entry();
        if !stay.kept.is_empty() && !tier.gives(key.func, &stay.requires) {
            return None;
        }
        let has_row = table.rows.iter().any(|row| !row.is_given_up);
        if !has_row && !table.is_full && !table.is_idle {
            let known = paused(tier, base, key, table);
            let assume = consistent(base, table, listed, &known, None);
            // Without an assumption, the code of the base or the optimized version does as well.
            table.is_idle = is_crowded || assume.is_empty();
            let plan = Plan { assume: &assume, ..maker.plan };
            match (!table.is_idle).then(|| table.code.row(&module, base, &plan)) {
                Some(Ok(row)) if !row.exits.is_empty() => {
                    self.add(tier, base, key, row, maker);
                }
                Some(Err(error)) => {
                    table.is_full = true;
                    maker.observer.without_row(key.func, key.at, &RowError::Landing(error));
                }
                Some(Ok(_)) | None => table.is_idle = true,
            }
        }
        let table = self.tables.get(&key).and_then(Option::as_ref)?;
        let row = table.rows.iter().find(|row| !row.is_given_up)?;
        Some(Arc::clone(&row.enter))
    }

    /// The exit of a row that a run takes. `None` if the version is no row.
    pub(super) fn exit(&self, at: FailedPoint<'_>) -> Option<LandingExit<'_>> {
        let (key, index) = self.rows.get(&address(at.version))?;
        let row = &self.tables.get(key)?.as_ref()?.rows[*index];
        let exit = row.made.exit(at.version.points()[at.number].at.inst())?;
        let (place, row_left) = match exit.is_context {
            true => (key.at, Some(*index)),
            false => (exit.of.at, None),
        };
        Some(LandingExit { back: &row.made.back, of: exit.of, place, row: row_left })
    }

    /// Whether rows may take over at an exit, as far as is known.
    pub(super) fn may_land(&self, at: FailedPoint<'_>) -> bool {
        at.count >= ROW_AFTER && !self.hopeless.contains(&exit_of(at))
    }

    /// Notes that an exit leads to no row.
    pub(super) fn give_up_exit(&mut self, at: FailedPoint<'_>) {
        self.hopeless.insert(exit_of(at));
    }

    /// Gives up a row whose assumption has failed so often, though no row takes over: loops no
    /// longer enter it, and exits that led to it look for another row. Returns the assumption,
    /// once. `None` if the version is no row. Linear in these exits.
    /// `a_row_that_is_given_up_is_entered_by_no_exit`
    ///
    /// # Errors
    /// If an exit cannot lead back to the interpreter. A bug of ours.
    pub(super) fn give_up_row(
        &mut self,
        tier: &mut Tier<'_>,
        at: FailedPoint<'_>,
    ) -> Result<Option<Assumption>, RunError> {
        let found = self.rows.get(&address(at.version)).copied();
        let row =
            found.and_then(|(key, index)| self.tables.get_mut(&key)?.as_mut()?.rows.get_mut(index));
        let inst = at.version.points()[at.number].at.inst();
        let Some(row) = row.filter(|row| !row.is_given_up) else { return Ok(None) };
        row.is_given_up = true;
        for LinkedExit { version, number, without } in std::mem::take(&mut row.linked) {
            self.hopeless.remove(&(version.key(), number));
            match tier.relink(&version, number, without) {
                // The version was released meanwhile, and has no link to change.
                Ok(()) | Err(LinkError::NotAdopted) => {}
                Err(error) => return Err(RunError::Link(error)),
            }
        }
        Ok(row.made.exit(inst).map(|exit| exit.of))
    }

    /// A run whose assumption has failed continues in a row of the table where the exit lands.
    /// Makes the row if the table lacks it, and links the exit to it. `None` if the interpreter
    /// continues: no row can be made, or there is no room for code. Cost: as [`LandingCode::row`]
    /// for a new row, and a passage.
    pub(super) fn land<O: Observer>(
        &mut self,
        tier: &mut Tier<'_>,
        at: FailedPoint<'_>,
        landing: ExitLanding,
        maker: &mut RowMaker<'_, O>,
    ) -> Option<RowTaken> {
        let (module, key) =
            (Arc::clone(tier.module()), TableKey { func: at.version.func(), at: landing.target });
        let base = module.body(key.func)?;
        if let Some(bits) = landing.known.get(&landing.of.value) {
            self.latest.note(key.func, &landing.of, *bits);
        }
        let first = landing.row.map_or(0, |left| left + 1);
        let rows = &self.table(tier, base, key, maker)?.rows;
        let next = (first..rows.len()).find(|index| !rows[*index].is_given_up);
        let (is_new, next) = (next.is_none(), next.unwrap_or(rows.len()));
        if is_new {
            self.append(tier, base, key, &landing, maker)?;
        }
        let to = self.tables.get_mut(&key)?.as_mut()?.rows.get_mut(next)?;
        let is_last = is_new && to.made.exits.is_empty() && next + 1 >= self.limits.rows;
        let way = compose(&landing.back, &to.made.enter).ok()?.mapping;
        let exit = &at.version.points()[at.number];
        let way = way.handing(exit.at, at.version.function(), &exit.values);
        let entry = way.checked_entry(exit.at)?;
        let made = tier.engine().continuation(at.version.function(), entry, &to.version);
        let made = made.map_err(RunError::Continue);
        let linked = made.and_then(|made| {
            let linked = tier.relink(at.version, at.number, Action::Continue(Arc::clone(&made)));
            linked.map_err(RunError::Link).map(|()| made)
        });
        match linked {
            Ok(made) => {
                let (version, number) = (Arc::clone(at.version), at.number);
                let without = match &maker.ways {
                    Some(ways) => ways.action(&landing.back),
                    None => Action::Interpret(Arc::new(landing.back)),
                };
                to.linked.push(LinkedExit { version, number, without });
                self.bytes += made.code_size();
                maker.observer.linked(at, key.at, next);
                Some(RowTaken { onward: Onward::Enter(made), is_last })
            }
            Err(error) => {
                self.is_out_of_memory |= is_out_of_memory(&error);
                maker.observer.without_row(key.func, key.at, &RowError::Code(error));
                None
            }
        }
    }

    /// Appends a row to the table where an exit lands. `None` if it gets no more rows.
    fn append<O: Observer>(
        &mut self,
        tier: &mut Tier<'_>,
        base: &Function,
        key: TableKey,
        landing: &ExitLanding,
        maker: &mut RowMaker<'_, O>,
    ) -> Option<()> {
        let module = Arc::clone(tier.module());
        let is_last = self.is_crowded(key);
        // Contents that failures have shown may be such that native code cannot compare them.
        let latest = maker.assume.iter().map(|of| self.latest.of(key.func, of));
        let listed: Vec<Assumption> = latest.filter(|of| is_testable(tier, base, of)).collect();
        let table = self.table(tier, base, key, maker);
        let table = table.filter(|table| !table.is_full)?;
        let mut assume = Vec::new();
        if !is_last {
            let ExitLanding { of, known, .. } = landing;
            assume = consistent(base, table, &listed, known, Some(of));
            let seen = observed(of, known, &assume);
            assume.extend(seen.filter(|seen| is_testable(tier, base, seen)));
        }
        match table.code.row(&module, base, &Plan { assume: &assume, ..maker.plan }) {
            Ok(row) => {
                table.is_full = row.exits.is_empty();
                self.add(tier, base, key, row, maker);
                Some(())
            }
            Err(error) => {
                table.is_full = true;
                maker.observer.without_row(key.func, key.at, &RowError::Landing(error));
                None
            }
        }
    }

    /// Whether the next row of a table is its last: a limit on rows or bytes is reached.
    fn is_crowded(&self, key: TableKey) -> bool {
        let table = self.tables.get(&key).and_then(Option::as_ref);
        let TableLimits { rows, table_bytes, .. } = self.limits;
        let (made, bytes) = table.map_or((0, 0), |table| (table.rows.len(), table.bytes));
        self.is_full(key.func) || bytes >= table_bytes || made + 1 >= rows
    }

    /// Whether the rows of a function have reached their limit on bytes.
    /// `rows_that_assume_nothing_keep_to_the_bytes_of_a_function`
    pub(super) fn is_full(&self, func: Func) -> bool {
        let of = self.tables.range(TableKey::first(func)..).take_while(|(key, _)| key.func == func);
        let bytes: usize =
            of.filter_map(|(_, table)| table.as_ref()).map(|table| table.bytes).sum();
        bytes + self.plain.bytes_of(func) >= self.limits.function_bytes
    }

    /// The table of a point, with the code behind the point.
    fn table<O: Observer>(
        &mut self,
        tier: &Tier<'_>,
        base: &Function,
        key: TableKey,
        maker: &mut RowMaker<'_, O>,
    ) -> Option<&mut LandingTable> {
        let RowMaker { ways, observer, .. } = maker;
        let made = self.tables.entry(key).or_insert_with(|| {
            let code = match ways {
                Some(ways) => {
                    LandingCode::leaving(tier.module(), base, key.at, Arc::clone(&ways.out))
                }
                None => LandingCode::new(tier.module(), base, key.at),
            };
            match code {
                Ok(code) => Some(LandingTable::new(code)),
                Err(error) => {
                    observer.without_row(key.func, key.at, &RowError::Landing(error));
                    None
                }
            }
        });
        made.as_mut()
    }

    /// Compiles a row, and appends it to the table of a point. If the row cannot be compiled, the
    /// table gets no more rows, and runs continue in the interpreter.
    fn add<O: Observer>(
        &mut self,
        tier: &mut Tier<'_>,
        base: &Function,
        key: TableKey,
        made: LandingRow,
        maker: &mut RowMaker<'_, O>,
    ) {
        let calls = match self.dispatches {
            true => calls_in_context(tier.module(), &made.function),
            false => BTreeSet::new(),
        };
        let compiled = compile(tier, base, key, &made, calls, maker);
        let observer = &mut maker.observer;
        let Some(table) = self.tables.get_mut(&key).and_then(Option::as_mut) else { return };
        match compiled {
            Ok((version, enter)) => {
                observer.row(key.func, key.at, &made);
                table.bytes += version.code_size();
                self.bytes += version.code_size() + enter.code_size();
                self.fresh.push(Arc::clone(&version));
                self.rows.insert(address(&version), (key, table.rows.len()));
                let linked = Vec::new();
                table.rows.push(CompiledRow { made, version, enter, linked, is_given_up: false });
            }
            Err(error) => {
                table.is_full = true;
                self.is_out_of_memory |= is_out_of_memory(&error);
                observer.without_row(key.func, key.at, &RowError::Code(error));
            }
        }
    }
}

/// Compiles a row and adopts it. Returns it with the continuation from the interpreter.
///
/// # Errors
/// If the engine makes no code of it.
pub(super) fn compile<O: Observer>(
    tier: &mut Tier<'_>,
    base: &Function,
    TableKey { func, at }: TableKey,
    made: &LandingRow,
    calls: BTreeSet<Inst>,
    RowMaker { ways, observer, .. }: &mut RowMaker<'_, O>,
) -> Result<(Arc<Version>, Arc<Continuation>), RunError> {
    let module = Arc::clone(tier.module());
    let back = Arc::new(made.back.clone());
    observer.begin();
    let spec = VersionSpec::leaving(&made.function, |_| Some(&**back));
    let spec = spec.map(|spec| spec.behind_landing().with_sites(Arc::new(made.sites(func))));
    let spec = spec.map(|spec| spec.dispatching(calls));
    let version = spec.and_then(|spec| tier.engine().version(&module, func, &made.function, spec));
    let version = version.map_err(RunError::Compile)?;
    let entry = made.enter.checked_entry(at).expect("a row is entered at its landing");
    let enter = tier.engine().continuation(base, entry, &version);
    let enter = enter.map_err(RunError::Continue)?;
    let (instructions, bytes) = (made.function.inst_count(), version.code_size());
    let (kind, of) = (CompiledKind::Row, version.key());
    observer.compiled(Compiled { func, version: of, kind, instructions, bytes });
    let action = match ways {
        Some(ways) => ways.action(&back),
        None => Action::Interpret(back),
    };
    let actions = vec![action; version.points().len()];
    tier.adopt(&version, actions).map_err(RunError::Link)?;
    Ok((version, enter))
}

/// Whether the engine has no room for the code.
pub(super) fn is_out_of_memory(error: &RunError) -> bool {
    let of_entry = ContinueError::Compile(CompileError::OutOfMemory);
    *error == RunError::Compile(CompileError::OutOfMemory) || *error == RunError::Continue(of_entry)
}

/// Where an exit lands.
pub(super) struct ExitLanding {
    /// The exit's entry to the base, alone.
    back: Checked<Mapping>,
    of: Assumption,
    target: Point,
    row: Option<usize>,
    /// The contents of the values of the base there.
    known: Known,
}

impl ExitLanding {
    /// The assumption that has failed, in terms of the base.
    pub(super) fn assumption(&self) -> Assumption {
        self.of
    }
}

impl LandingExit<'_> {
    /// The assumption that has failed, in terms of the base.
    pub(super) fn assumption(&self) -> Assumption {
        self.of
    }

    /// Where the exit lands, for a run with these values. `None` if rows cannot take over: the exit
    /// lands in several activations, has writes to replay, or lands elsewhere than where the
    /// assumption was made (see *Progress*).
    pub(super) fn landed(&self, at: FailedPoint<'_>) -> Option<ExitLanding> {
        let point = at.version.points()[at.number].at;
        let entry = self.back.entry(point)?;
        let is_there = entry.inner.is_empty() && entry.target == self.place;
        if !is_there || !entry.replays.is_empty() {
            return None;
        }
        let values = &at.version.points()[at.number].values;
        let held: BTreeMap<Value, u64> =
            values.iter().copied().zip(at.values.iter().copied()).collect();
        if !entry.requires.iter().all(|value| held.contains_key(value)) {
            return None;
        }
        let mut known = Known::new();
        let read = |value: Value| held[&value];
        let mut note = |value, bits| {
            known.insert(value, bits);
        };
        entry.run(read, |_, value, bits| note(value, bits)).ok()?;
        let back = self.back.only_at(&[point]);
        Some(ExitLanding { back, of: self.of, target: entry.target, row: self.row, known })
    }

    /// The exit of a version of a whole function.
    pub(super) fn of_version(back: &Checked<Mapping>, of: Assumption) -> LandingExit<'_> {
        LandingExit { back, of, place: of.at, row: None }
    }
}

/// The contents of the values live at the point where the interpreter has paused, or that one of
/// the embedder's own gives ([`jit::Vm::enter`]). None in another version than the base.
fn paused(tier: &Tier<'_>, base: &Function, key: TableKey, table: &LandingTable) -> Known {
    if tier.is_of_embedder() {
        let live = table.code.stay().entry().requires.iter();
        let given = |of: &Value| Some((*of, tier.given(*of)? & base.value_type(*of).mask()));
        return live.filter_map(given).collect();
    }
    let view = tier.machine().view();
    let is_there = |view: &View<'_>| {
        let is_base = || tier.machine().code(view.version()).key() == VersionKey::of(base);
        view.func() == key.func && view.inst() == key.at.inst() && is_base()
    };
    let Some(view) = view.filter(is_there) else { return Known::new() };
    let live = table.code.stay().entry().requires.iter().copied();
    live.filter(|value| !view.is_undefined(*value)).map(|v| (v, view.value(v))).collect()
}

/// The assumptions that a row at a landing makes, of a list about the base: the contents there
/// refute none of them. Where an assumption has failed, its value is known to be otherwise. So may
/// be what is computed from it, and what it is computed from, unless the contents there are known.
fn consistent(
    base: &Function,
    table: &LandingTable,
    assume: &[Assumption],
    known: &Known,
    failed: Option<&Assumption>,
) -> Vec<Assumption> {
    // An exit may be taken although its assumption holds ([`jit::Config::fails_one_in`]).
    let fails =
        |of: &&Assumption| known.get(&of.value).is_none_or(|bits| !of.expected.holds(*bits));
    let failed = failed.filter(fails);
    let stale = failed.map(|failed| related(base, failed.value)).unwrap_or_default();
    let holds = |of: &&Assumption| match known.get(&of.value) {
        Some(bits) if table.code.is_about_landing(of) => of.expected.holds(*bits),
        _ => !stale.contains(&of.value),
    };
    assume.iter().filter(holds).copied().collect()
}
