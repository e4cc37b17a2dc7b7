//! The judge of landing tables: right tables pass, and each forgery shows.

use super::case::parse;
use check::Checked;
use interp::NoHost;
use ir::{FrameState, FrameStates, Function, Inst, Module, Point, Value};
use osier_verify::tables::{
    JudgedRow, PointTable, TableDifference, TableJudge, TableOptions, TableRunReport, TestedFact,
};
use std::collections::BTreeMap;
use transition::mapping::{Assign, Entry, Mapping, Operand};

/// The base, whose landing is its start.
const BASE: &str = "func @f(%x: i32, %y: i32) -> i32 {
entry:
  %two = const.i32 2
  %m = mul.i32 %x, %two
  %r = add.i32 %m, %y
  return %r
}
";

/// The row assumes that `%x` is 7.
const ROW: &str = "func @f(%x: i32, %y: i32) -> i32 {
entry:
  %k = assume.i32 %x, 7, 3
  %m = const.i32 14
  %r = add.i32 %m, %y
  return %r
}
";

/// A table with one row, and the parts that forgeries change.
struct TableCase {
    base: Module,
    row: Module,
    enter: Mapping,
    back: Mapping,
    hand: Option<Mapping>,
    states: Option<FrameStates>,
    events: BTreeMap<Inst, Inst>,
    facts: Vec<TestedFact>,
}

fn body(module: &Module) -> &Function {
    module.defined().next().expect("it has a function").1
}

/// The instruction of this number in the text.
fn nth(f: &Function, number: usize) -> Inst {
    f.all_insts().nth(number).expect("it has as many")
}

fn named(f: &Function, name: &str) -> Value {
    let all = f.arguments().iter().copied();
    let results = f.all_insts().flat_map(|inst| f.inst(inst).results.to_vec());
    let mut all = all.chain(results);
    all.find(|value| f.value_name(*value) == Some(name)).expect("it has the value")
}

/// An entry that gives values of the target the values of the source with these names.
fn entry(ends: [&Function; 2], target: usize, pairs: &[[&str; 2]]) -> Entry {
    let [source, to] = ends;
    let assign = |[of, from]: &[&str; 2]| Assign {
        value: named(to, of),
        from: Operand::Source(named(source, from)),
    };
    let mut assigns: Vec<Assign> = pairs.iter().map(assign).collect();
    assigns.sort_unstable();
    let mut requires: Vec<Value> = pairs.iter().map(|[_, from]| named(source, from)).collect();
    requires.sort_unstable();
    requires.dedup();
    let (steps, replays, kept, inner) = Default::default();
    let target = Point::before(nth(to, target));
    Entry { target, steps, replays, assigns, requires, kept, inner }
}

impl TableCase {
    fn right() -> TableCase {
        let (base, row) = (parse(BASE), parse(ROW));
        let (f, r) = (body(&base), body(&row));
        let (mut enter, mut back) = (Mapping::new(f, r), Mapping::new(r, f));
        let start = Point::before(nth(f, 0));
        enter.insert(start, entry([f, r], 0, &[["x", "x"], ["y", "y"]]));
        back.insert(Point::before(nth(r, 0)), entry([r, f], 0, &[["x", "x"], ["y", "y"]]));
        back.insert(Point::before(nth(r, 2)), entry([r, f], 2, &[["m", "m"], ["y", "y"]]));
        let events = BTreeMap::from([(nth(r, 3), nth(f, 3))]);
        let value = named(f, "x");
        let facts = vec![TestedFact { inst: nth(r, 0), value, bits: 7, is_equal: true }];
        TableCase { base, row, enter, back, hand: None, states: None, events, facts }
    }

    /// The same, for a row that hands over at the start of the base, where a state names both
    /// arguments. `%x` gets the contents of the argument `of_x`.
    fn handing(of_x: &str) -> TableCase {
        let mut case = TableCase::right();
        let (f, r) = (body(&case.base), body(&case.row));
        let start = Point::before(nth(f, 0));
        let mut hand = Mapping::new(r, f);
        hand.insert(Point::before(nth(r, 0)), entry([r, f], 0, &[["x", of_x], ["y", "y"]]));
        let named = ["x", "y"].map(|name| named(f, name));
        let mut states = FrameStates::new();
        states.set(start, FrameState::of_values(0, 0, (0..).zip(named)));
        (case.hand, case.states) = (Some(hand), Some(states));
        case
    }

    /// Runs with `%x` 7 and 8, often enough for every kind of transition.
    fn judged(&self) -> TableRunReport {
        let [enter, back] = [&self.enter, &self.back].map(|m| Checked::unproved(m.clone()));
        let hand = self.hand.as_ref().map(|hand| Checked::unproved(hand.clone()));
        let (func, base) = self.base.defined().next().expect("it has a function");
        let row = JudgedRow {
            version: body(&self.row),
            enter: &enter,
            back: &back,
            hand: hand.as_ref(),
            facts: self.facts.clone(),
            events: &self.events,
        };
        let at = Point::before(base.first_inst(base.entry()));
        let table = PointTable { func, base, at, states: self.states.as_ref(), rows: vec![row] };
        let options = TableOptions { chains: 8, ..TableOptions::default() };
        let judge = TableJudge::new(&self.base, vec![table], options);
        let mut judge = judge.expect("it is instantiated");
        for input in 0..40 {
            judge.run(func, &[7 + input % 2, input], &NoHost);
        }
        judge.report().clone()
    }

    fn found(&self) -> Vec<TableDifference> {
        self.judged().divergences.into_iter().map(|one| one.difference).collect()
    }
}

#[test]
fn a_right_table_is_entered_refused_and_left() {
    let report = TableCase::right().judged();
    assert_eq!(report.divergences, []);
    assert!(report.entered > 20 && report.lies > 5 && report.left > 5, "{report:?}");
    assert!(report.holding > 10 && report.failing > 10 && report.states >= 60, "{report:?}");
}

/// The entry lands behind the test, so the row runs although its fact does not hold.
#[test]
fn a_row_that_is_entered_behind_its_test_is_found() {
    let mut case = TableCase::right();
    let (f, r) = (body(&case.base), body(&case.row));
    let start = Point::before(nth(f, 0));
    let behind = entry([f, r], 1, &[["y", "y"]]);
    let mut enter = Mapping::new(f, r);
    enter.insert(start, behind);
    case.enter = enter;
    let found = case.found();
    assert!(found.iter().any(|d| matches!(d, TableDifference::EnteredLie { .. })), "{found:?}");
}

/// The row claims a fact that it does not test.
#[test]
fn a_fact_without_a_test_is_found() {
    let mut case = TableCase::right();
    case.facts[0].bits = 8;
    let found = case.found();
    assert!(found.iter().any(|d| matches!(d, TableDifference::EnteredLie { .. })), "{found:?}");
}

#[test]
fn an_exit_with_another_value_is_found() {
    let mut case = TableCase::right();
    let (f, r) = (body(&case.base), body(&case.row));
    case.back.insert(Point::before(nth(r, 2)), entry([r, f], 2, &[["m", "y"], ["y", "y"]]));
    let found = case.found();
    assert!(found.iter().any(|d| matches!(d, TableDifference::Value { .. })), "{found:?}");
    assert!(found.iter().any(|d| matches!(d, TableDifference::End { .. })), "{found:?}");
}

#[test]
fn an_assumption_without_an_exit_is_found() {
    let mut case = TableCase::right();
    let (f, r) = (body(&case.base), body(&case.row));
    case.back = Mapping::new(r, f);
    let found = case.found();
    assert!(found.iter().any(|d| matches!(d, TableDifference::WithoutExit { .. })), "{found:?}");
}

/// The entry at the return of the row lands in front of it in the base, behind which the base comes
/// to its landing point no more before the next event.
#[test]
fn a_landing_that_the_base_does_not_come_to_is_found() {
    let text = BASE.replace("  return %r", "  jump out\nout:\n  return %r");
    let mut case = TableCase::right();
    case.base = parse(&text);
    let (f, r) = (body(&case.base), body(&case.row));
    let start = Point::before(nth(f, 0));
    let (mut enter, mut back) = (Mapping::new(f, r), Mapping::new(r, f));
    enter.insert(start, entry([f, r], 0, &[["x", "x"], ["y", "y"]]));
    back.insert(Point::before(nth(r, 0)), entry([r, f], 0, &[["x", "x"], ["y", "y"]]));
    // Behind the event of the row, the base is at its return.
    back.insert(Point::before(nth(r, 3)), entry([r, f], 3, &[["r", "r"]]));
    case.events = BTreeMap::from([(nth(r, 2), nth(f, 3))]);
    (case.enter, case.back) = (enter, back);
    case.facts[0].value = named(f, "x");
    let found = case.found();
    assert!(found.iter().any(|d| matches!(d, TableDifference::NoPartner { .. })), "{found:?}");
}

/// The other run passes other instructions.
#[test]
fn other_events_are_found() {
    let mut case = TableCase::right();
    let (f, r) = (body(&case.base), body(&case.row));
    case.events = BTreeMap::from([(nth(r, 2), nth(f, 2)), (nth(r, 3), nth(f, 1))]);
    let found = case.found();
    assert!(found.iter().any(|d| matches!(d, TableDifference::Events { .. })), "{found:?}");
}

#[test]
fn a_right_hand_over_is_compared() {
    let report = TableCase::handing("x").judged();
    assert_eq!(report.divergences, []);
    assert!(report.handed > 5 && report.handed_states > 20, "{report:?}");
}

/// The entry to the frame state gives `%x` the contents of `%y`.
#[test]
fn a_hand_over_with_another_value_is_found() {
    let found = TableCase::handing("y").found();
    assert!(found.iter().any(|d| matches!(d, TableDifference::Value { .. })), "{found:?}");
    assert!(found.iter().any(|d| matches!(d, TableDifference::End { .. })), "{found:?}");
}

/// The entry leaves out `%y`, which the state names.
#[test]
fn a_hand_over_without_a_named_value_is_found() {
    let mut case = TableCase::handing("x");
    let (f, r) = (body(&case.base), body(&case.row));
    let mut hand = Mapping::new(r, f);
    hand.insert(Point::before(nth(r, 0)), entry([r, f], 0, &[["x", "x"]]));
    case.hand = Some(hand);
    let found = case.found();
    let is_y = |d: &TableDifference| matches!(d, TableDifference::NotNamed { value, .. } if *value == named(f, "y"));
    assert!(found.iter().any(is_y), "{found:?}");
}
