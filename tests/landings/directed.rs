//! Rows of one loop.

use super::support::{Rows, run};
use crate::speculation::support::{end, first, inst, machine, parsed, value};
use interp::{NoHost, NoObserver, Outcome, Program};
use ir::{Function, Opcode, Point};
use osier::landing::{LandingCode, LandingRow};
use osier::speculate::{Assumption, Expected, Plan};
use passes::parse;
use verify::prng::Prng;

/// A sum in which `%scale` multiplies each element, and a slow path stores where the tag of an
/// element is not 0.
pub(super) const SCALED: &str = "
memory @mem 1
export \"main\" @f
func @f(%n: i32, %scale: i32, %odd: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %zero)
head(%i: i32, %sum: i32):
  %more = ult.i32 %i, %n
  br_if %more, body, done
body:
  %tag = eq.i32 %i, %odd
  br_if %tag, slow, fast
slow:
  store.i32 @mem[%zero + 8], %i
  %j = mul.i32 %i, %sum
  jump next(%j)
fast:
  %m = mul.i32 %i, %scale
  jump next(%m)
next(%x: i32):
  %s = add.i32 %sum, %x
  %k = add.i32 %i, %one
  jump head(%k, %s)
done:
  return %sum
}";

pub(super) fn head(base: &Function) -> Point {
    let head = base.inst_block(inst(base, "more"));
    Point::before(base.first_inst(head))
}

pub(super) fn behind(base: &Function, name: &str, bits: u64) -> Assumption {
    let next = base.next_inst(inst(base, name)).expect("a terminator follows");
    Assumption::is(Point::before(next), value(base, name), bits)
}

pub(super) fn at_start(base: &Function, name: &str, bits: u64) -> Assumption {
    let start = Point::before(base.first_inst(base.entry()));
    Assumption::is(start, value(base, name), bits)
}

fn row(text: &str, assume: impl Fn(&Function) -> Vec<Assumption>) -> (ir::Module, Rows) {
    let module = parsed(text);
    let (func, base) = first(&module);
    let code = LandingCode::new(&module, base, head(base)).expect("a loop header is a landing");
    let pipeline = parse("O2").expect("it is a pipeline");
    let plan = assume(base);
    let made = code.row(&module, base, &Plan::new(&plan, &pipeline)).expect("it is legal");
    let rows = vec![made];
    (module, Rows { func, code, rows })
}

fn multiplications(row: &LandingRow) -> usize {
    let f = &row.function;
    f.all_insts().filter(|inst| f.inst(*inst).opcode == Opcode::Mul).count()
}

/// Ends a run of the base, and one that enters the row at the first visit.
fn both(module: &ir::Module, rows: Rows, args: &[u64]) -> (u64, u64) {
    let program = Program::new(module);
    let mut plain = machine(&program);
    let wanted = plain.invoke(rows.func, args, &mut NoHost, &mut NoObserver);
    let func = rows.func;
    let (found, after, hops) = run(module, &program, &[rows], func, args, Prng::new(1), 1);
    assert!(matches!(wanted, Outcome::Returned(_)), "{wanted}");
    assert_eq!(end(&after, &found), end(&plain, &wanted), "{args:?}");
    (hops.entered, hops.left)
}

/// `%scale` is known before the loop, and each round assumes that `%tag` is 0. The whole function
/// has no entry behind these assumptions; the row makes them itself.
#[test]
fn a_loop_is_entered_in_the_middle_by_code_that_assumes() {
    let assume = |base: &Function| vec![at_start(base, "scale", 3), behind(base, "tag", 0)];
    let (module, rows) = row(SCALED, assume);
    let [made] = &rows.rows[..] else { panic!("one row") };
    assert_eq!(made.left_out, []);
    let contexts: Vec<bool> = made.exits.iter().map(|exit| exit.is_context).collect();
    assert_eq!(contexts.iter().filter(|is_context| **is_context).count(), 1, "{contexts:?}");
    assert_eq!(multiplications(made), 1, "the slow path is gone");
    assert_eq!(both(&module, rows, &[50, 3, 100]), (1, 0));
}

/// An assumption of the row fails: the run leaves to the base, enters the row at the next visit of
/// the landing, and leaves no more.
#[test]
fn a_run_that_leaves_a_row_enters_it_again() {
    let assume = |base: &Function| vec![at_start(base, "scale", 3), behind(base, "tag", 0)];
    let (module, rows) = row(SCALED, assume);
    assert_eq!(both(&module, rows, &[50, 3, 20]), (2, 1));
}

/// The context of the row does not hold: each entry leaves at once, and the base goes on.
#[test]
fn a_context_that_does_not_hold_is_left_at_the_start() {
    let (module, rows) = row(SCALED, |base| vec![at_start(base, "scale", 3)]);
    let (entered, left) = both(&module, rows, &[50, 4, 20]);
    assert_eq!((entered, left), (51, 51));
}

/// `%i` is live at the header, and the loop defines it anew: an assumption about it is made at the
/// start of the row, and in each round.
#[test]
fn an_assumption_about_a_value_that_the_loop_defines_belongs_to_each_round() {
    let assume = |base: &Function| {
        let at = Point::before(inst(base, "more"));
        let of = value(base, "i");
        vec![Assumption { at, value: of, expected: Expected::IsNot(7), reason: 2 }]
    };
    let (module, rows) = row(SCALED, assume);
    let contexts: Vec<bool> = rows.rows[0].exits.iter().map(|exit| exit.is_context).collect();
    assert_eq!(contexts.len(), 2, "one in front of the loop, one in it");
    assert!(contexts.contains(&true) && contexts.contains(&false));
    assert_eq!(both(&module, rows, &[20, 4, 2]), (2, 1));
}

/// A row without assumptions is the optimized code behind the landing.
#[test]
fn a_row_that_assumes_nothing_is_never_left() {
    let (module, rows) = row(SCALED, |_| Vec::new());
    assert_eq!(both(&module, rows, &[50, 4, 20]), (1, 0));
}
