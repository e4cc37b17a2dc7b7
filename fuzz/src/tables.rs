//! The part of the speculation oracle that judges landing tables: rows behind points of bases, and
//! runs that go into rows and out of them.
//!
//! Each function gets tables at places where it assumes something and at starts of blocks. The rows
//! of a table assume what a profile suggests, as other contents than the profile's, or nothing; the
//! last row assumes nothing. A third of the tables is cut to one row. A third of the functions has
//! frame states at random points, which name random values, and its rows leave to these
//! ([`LandingCode::leaving`]). [`verify::tables`] compares the states, and the ends of runs.

use super::case::Case;
use super::figures::TableFigures;
use super::oracle::{FuzzFinding, FuzzOracle, MAX_FINDINGS};
use super::states::none_of;
use super::suggested::suggested;
use check::Checked;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::{FrameState, FrameStates, Func, Function, Inst, Module, Point, Value};
use osier::landing::{LandingCode, LandingError, LandingRow, handover};
use osier::speculate::{Assumption, Expected, Plan};
use passes::{Pipeline, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transition::mapping::Mapping;
use verify::prng::Prng;
use verify::tables::{JudgedRow, PointTable, TableJudge, TableOptions, TestedFact};

/// The most tables of a function.
const TABLES: u32 = 2;

/// The share of tables, in percent, that are cut to one row.
const CUT: u32 = 33;

/// The share of functions, in percent, whose rows leave to frame states.
const STATES: u32 = 33;

/// A frame state stands in front of one instruction in so many, and of each block.
const STATE_ONE_IN: u32 = 8;

/// A frame state names one of so many values that are available there.
const NAMED_ONE_IN: u32 = 4;

/// The samples of this judge differ from the samples of others by this number.
const TAG: u64 = 0x6c61_6e64;

/// The rows behind a point of a function.
struct MadeTable {
    func: Func,
    at: Point,
    states: Option<Arc<FrameStates>>,
    rows: Vec<LandingRow>,
}

/// Judges runs of a case through landing tables.
///
/// # Errors
/// The findings.
pub(super) fn run(case: &Case, figures: &mut TableFigures) -> Result<(), Vec<FuzzFinding>> {
    let made = tables(case, figures).map_err(|message| vec![finding(case, message)])?;
    if made.is_empty() {
        return Ok(());
    }
    let options = TableOptions {
        seed: case.seed,
        chains: case.options.chains,
        limits: case.hop_limits(),
        divergences: MAX_FINDINGS,
        ..TableOptions::default()
    };
    let judged = made.iter().map(|table| judged(&case.module, table)).collect();
    let judge = TableJudge::new(&case.module, judged, options);
    let mut judge = judge.map_err(|error| vec![finding(case, error.to_string())])?;
    for args in &case.arguments {
        judge.run(case.entry, args, &case.world);
    }
    let mut report = judge.report().clone();
    let found = std::mem::take(&mut report.divergences);
    figures.runs.add(&report);
    none_of(found.iter().map(|divergence| finding(case, divergence.to_string())).collect())
}

fn finding(case: &Case, message: String) -> FuzzFinding {
    FuzzFinding { oracle: FuzzOracle::Speculation, versions: [0, case.steps.len()], message }
}

/// The tables of the functions of a case.
///
/// # Errors
/// If no profile can be made, or the checker refuses a step across a landing.
fn tables(case: &Case, figures: &mut TableFigures) -> Result<Vec<MadeTable>, String> {
    let assumptions = suggested(case)?;
    let mut prng = Prng::new(case.seed).fork(TAG);
    let pipeline = match prng.below(2) {
        0 => Pipeline::of(case.steps.concat()),
        _ => parse(prng.pick(&["O1", "O2", "canonical"])).expect("a pipeline of the registry"),
    };
    let mut all = Vec::new();
    for (func, base) in case.module.defined() {
        let Some(assume) = assumptions.get(&func).filter(|assume| !assume.is_empty()) else {
            continue;
        };
        // A generator of its own, so that the other choices of a seed stay.
        let mut own = Prng::new(case.seed).fork(TAG).fork(1 + u64::from(func.as_u32()));
        let landings = landings(base, assume, &mut prng);
        let states = own.chance(STATES).then(|| Arc::new(random_states(base, &mut own)));
        let places = || assume.iter().map(|of| of.at).chain(landings.iter().copied()).collect();
        let out = states.as_ref().map(|states| handover(&case.module, base, states, &places()));
        let out = out.transpose().map_err(|error| format!("@{}: {error}", base.name()))?;
        let out = out.map(Arc::new);
        for at in landings {
            let maker = RowsOfCase { case, base, assume, out: out.as_ref(), pipeline: &pipeline };
            let Some(rows) = maker.rows(at, &mut prng, figures)? else { continue };
            figures.tables += 1;
            figures.rows += rows.len() as u64;
            let exits = || rows.iter().flat_map(|row| &row.exits);
            figures.exits += exits().count() as u64;
            figures.facts += exits().filter(|exit| exit.is_context).count() as u64;
            figures.handing += u64::from(states.is_some());
            all.push(MadeTable { func, at, states: states.clone(), rows });
        }
    }
    Ok(all)
}

/// Where a function gets tables: where it assumes something, so that exits land there, and at
/// starts of blocks.
fn landings(base: &Function, assume: &[Assumption], prng: &mut Prng) -> BTreeSet<Point> {
    let places: Vec<Point> = assume.iter().map(|of| of.at).collect();
    let starts: Vec<Inst> = base.blocks().map(|block| base.first_inst(block)).collect();
    let one = |prng: &mut Prng| match prng.chance(75) {
        true => prng.pick(&places),
        false => Point::before(prng.pick(&starts)),
    };
    (0..TABLES).map(|_| one(prng)).collect()
}

/// Frame states at random points of a function, which name random values. No frame is longer than
/// the values that are available there.
fn random_states(base: &Function, prng: &mut Prng) -> FrameStates {
    let dom = DomTree::new(base, &Cfg::new(base));
    let params = base.blocks().flat_map(|block| base.block_params(block));
    let results = base.all_insts().flat_map(|inst| &base.inst(inst).results);
    let values: Vec<Value> = params.chain(results).copied().collect();
    let mut states = FrameStates::new();
    for inst in base.all_insts() {
        let (at, is_first) = (Point::before(inst), base.prev_inst(inst).is_none());
        if is_first || prng.below(STATE_ONE_IN) == 0 {
            let named = values.iter().filter(|value| dom.available_at(base, **value, at));
            let named: Vec<Value> =
                named.filter(|_| prng.below(NAMED_ONE_IN) == 0).copied().collect();
            states.set(at, FrameState::of_values(0, inst.as_u32(), (0..).zip(named)));
        }
    }
    states
}

/// Makes the rows of a table.
struct RowsOfCase<'m> {
    case: &'m Case,
    base: &'m Function,
    assume: &'m [Assumption],
    /// The ways out of the base to its frame states, if its rows leave to these.
    out: Option<&'m Arc<Checked<Mapping>>>,
    pipeline: &'m Pipeline,
}

impl RowsOfCase<'_> {
    /// `None` if there is no code behind the point.
    fn rows(
        &self,
        at: Point,
        prng: &mut Prng,
        figures: &mut TableFigures,
    ) -> Result<Option<Vec<LandingRow>>, String> {
        let RowsOfCase { case, base, assume, out, pipeline } = self;
        let code = match out {
            Some(out) => LandingCode::leaving(&case.module, base, at, Arc::clone(out)),
            None => LandingCode::new(&case.module, base, at),
        };
        let code = match code {
            Ok(code) => code,
            Err(LandingError::NeverReached(_) | LandingError::NoContinuation(_)) => {
                return Ok(None);
            }
            Err(error) => return Err(format!("@{} at {}: {error}", base.name(), at.inst())),
        };
        let others = self.others(prng);
        let mut lists = vec![assume.to_vec(), others, Vec::new()];
        if prng.chance(CUT) {
            lists = vec![lists.swap_remove(prng.index(lists.len()))];
        }
        let mut rows = Vec::new();
        for list in &lists {
            match code.row(&case.module, base, &Plan::new(list, pipeline)) {
                Ok(row) => rows.push(row),
                // Assumptions with other contents may contradict one another or a constant.
                Err(LandingError::Speculate(_)) => figures.not_made += 1,
                Err(error) => return Err(format!("@{} at {}: {error}", base.name(), at.inst())),
            }
        }
        Ok((!rows.is_empty()).then_some(rows))
    }

    /// Half of the assumptions, some of them about other contents than the profile has.
    fn others(&self, prng: &mut Prng) -> Vec<Assumption> {
        let other = |of: &Assumption, prng: &mut Prng| match of.expected {
            Expected::Is(bits) if self.base.value_type(of.value).is_int() && prng.chance(50) => {
                let mask = self.base.value_type(of.value).mask();
                let bits = (bits ^ u64::from(1 + prng.below(3))) & mask;
                Assumption { expected: Expected::Is(bits), ..*of }
            }
            _ => *of,
        };
        let half = self.assume.iter().step_by(2);
        half.map(|of| other(of, prng)).collect()
    }
}

/// A table in the form that the judge takes.
fn judged<'a>(module: &'a Module, table: &'a MadeTable) -> PointTable<'a> {
    let MadeTable { func, at, states, rows } = table;
    let base = module.body(*func).expect("a function with a table has a body");
    let rows = rows.iter().map(|row| JudgedRow {
        version: &row.function,
        enter: &row.enter,
        back: &row.back,
        hand: row.hand.as_ref(),
        facts: facts(row),
        events: &row.events,
    });
    PointTable { func: *func, base, at: *at, states: states.as_deref(), rows: rows.collect() }
}

/// The facts of a row. Two assumptions about one value and its bits are one fact.
fn facts(row: &LandingRow) -> Vec<TestedFact> {
    let context = row.exits.iter().filter(|exit| exit.is_context);
    let fact = |exit: &osier::landing::RowExit| {
        let (bits, is_equal) = match exit.of.expected {
            Expected::Is(bits) => (bits, true),
            Expected::IsNot(bits) => (bits, false),
        };
        TestedFact { inst: exit.inst, value: exit.of.value, bits, is_equal }
    };
    let all: BTreeMap<Inst, TestedFact> = context.map(|exit| (exit.inst, fact(exit))).collect();
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::run;
    use crate::CampaignOptions;
    use crate::figures::TableFigures;

    /// Runs enter rows, leave them at failing assumptions, and enter other rows there; rows whose
    /// facts do not hold are left at the test.
    #[test]
    fn runs_go_through_tables_in_every_way() {
        let options =
            CampaignOptions { only_speculation: true, size: 60, inputs: 4, ..Default::default() };
        let mut figures = TableFigures::default();
        for seed in 0..80 {
            if let Err(found) = run(&options.generated(seed), &mut figures) {
                panic!("seed {seed}: {}", found[0].message);
            }
        }
        let TableFigures { tables, rows, runs, .. } = &figures;
        assert!(*tables > 60 && *rows > *tables && figures.facts > 40, "{figures:?}");
        assert!(runs.entered > 200 && runs.lies > 20 && runs.left > 100, "{figures:?}");
        assert!(runs.to_rows > 20 && runs.failed > 20, "{figures:?}");
        assert!(runs.states > 5000 && runs.failing > 50, "{figures:?}");
        assert!(figures.handing > 40 && runs.handed > 5, "{figures:?}");
        assert!(runs.handed_states > 100, "{figures:?}");
        assert!(4 * runs.not_aligned < runs.compared_visits, "{figures:?}");
    }
}
