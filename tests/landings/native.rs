//! Landing tables natively: a policy enters rows at hot loops, and goes on in rows where
//! assumptions fail.

use super::directed::{at_start, behind, scaled};
use crate::speculation::support::{first, parsed};
use interp::{Limits, Machine, NoHost, NoObserver, Options, Outcome};
use ir::{Func, Function, Module, Point};
use osier::jit::{Config, Engine, FailedPoint, Vm};
use osier::landing::LandingRow;
use osier::speculate::Assumption;
use osier::tiers::{Compiled, CompiledKind, Observer, TABLE_BYTES, TABLE_ROWS, Tiered};
use passes::parse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What the policy did.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    /// By landing: the assumptions of its rows.
    pub(super) rows: BTreeMap<(Func, Point), Vec<usize>>,
    /// The exits that lead to rows: the landing and the row.
    pub(super) linked: Vec<(Point, usize)>,
    pub(super) failures: u64,
    /// The bytes of machine code of all rows.
    pub(super) bytes: usize,
}

#[derive(Clone, Default)]
struct Watch(Arc<Mutex<Tables>>);

impl Observer for Watch {
    fn step(&mut self, _step: Option<osier::driver::Step>) {}

    fn begin(&mut self) {}

    fn row(&mut self, func: Func, at: Point, made: &LandingRow) {
        let mut tables = self.0.lock().expect("nobody panics");
        tables.rows.entry((func, at)).or_default().push(made.exits.len());
    }

    fn linked(&mut self, _exit: FailedPoint<'_>, at: Point, row: usize) {
        self.0.lock().expect("nobody panics").linked.push((at, row));
    }

    fn failed(&mut self, _at: FailedPoint<'_>) {
        self.0.lock().expect("nobody panics").failures += 1;
    }

    fn compiled(&mut self, made: Compiled) {
        if made.kind == CompiledKind::Row {
            self.0.lock().expect("nobody panics").bytes += made.bytes;
        }
    }
}

/// Runs a function with a list of assumptions in a tiered machine, as often as there are arguments,
/// and compares each end with that of the interpreter.
pub(super) fn tiered(
    module: &Module,
    assume: impl Fn(&Function) -> Vec<Assumption>,
    arguments: &[&[u64]],
) -> Tables {
    let (func, base) = first(module);
    let assume = BTreeMap::from([(func, assume(base))]);
    let engine = Engine::new(Config::default()).expect("the tests run where native code does");
    let shared = Arc::new(module.clone());
    let limits = Limits::default();
    let mut vm = Vm::new(&engine, &shared, limits, Options::default()).expect("it is instantiated");
    let watch = Watch::default();
    let pipeline = parse("O2").expect("it is a pipeline");
    let policy = Tiered::new_observed(10, pipeline, watch.clone()).speculating(assume);
    vm.set_tiering(Box::new(policy));
    let mut plain = Machine::new(module, Limits::default()).expect("it is instantiated");
    for args in arguments {
        let wanted = plain.invoke(func, args, &mut NoHost, &mut NoObserver);
        assert!(matches!(wanted, Outcome::Returned(_)), "{wanted}");
        let found = vm.invoke(func, args, &mut NoHost).expect("the run ends");
        assert_eq!(found, wanted, "{args:?}");
        let memories = [vm.machine(), &plain].map(|m| m.computed_memory_digest());
        assert_eq!(memories[0], memories[1], "{args:?}");
    }
    watch.0.lock().expect("nobody panics").clone()
}

/// All time is in one call, whose loop assumes: the run enters a row, and leaves it where the tag
/// of one element differs.
#[test]
fn a_hot_loop_enters_code_that_assumes() {
    let assume = |base: &Function| vec![at_start(base, "scale", 3), behind(base, "tag", 0)];
    let made = tiered(&parsed(&scaled()), assume, &[&[1000, 3, 5000]]);
    assert_eq!(made.rows.values().collect::<Vec<_>>(), [&vec![2]]);
    assert_eq!((made.failures, made.linked.len()), (0, 0));
    let made = tiered(&parsed(&scaled()), assume, &[&[1000, 3, 500]]);
    assert_eq!((made.rows.len(), made.failures), (1, 1), "one exit, and back into the row");
}

/// The sum over elements of two kinds, in phases of 2^`%shift` elements.
pub(super) const PHASES: &str = "
memory @mem 1
export \"main\" @f
func @f(%n: i32, %shift: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %zero)
head(%i: i32, %sum: i32):
  %more = ult.i32 %i, %n
  br_if %more, body, done
body:
  %kind = ushr.i32 %i, %shift
  %tag = and.i32 %kind, %one
  %heavy = eq.i32 %tag, %one
  br_if %heavy, slow, fast
slow:
  store.i32 @mem[%zero + 8], %i
  %j = mul.i32 %i, %sum
  jump next(%j)
fast:
  %m = add.i32 %i, %sum
  jump next(%m)
next(%x: i32):
  %k = add.i32 %i, %one
  jump head(%k, %x)
done:
  return %sum
}";

/// The kinds alternate in each round: each of two rows leaves for the other, and the table stays
/// as it is. Every exit is linked, so the policy hears of few failures.
#[test]
fn a_run_that_alternates_between_two_facts_ends() {
    let assume = |base: &Function| vec![behind(base, "tag", 0)];
    for shift in [0, 1, 5] {
        let made = tiered(&parsed(PHASES), assume, &[&[3_000, shift], &[3_000, shift]]);
        let rows: usize = made.rows.values().map(Vec::len).sum();
        assert!((2..=6).contains(&rows), "shift {shift}: {made:?}");
        assert!(made.failures < 16, "shift {shift}: {made:?}");
        assert!(!made.linked.is_empty(), "shift {shift}: {made:?}");
    }
}

/// Calls in phases: the version of the whole function stays, and its exits lead to rows.
#[test]
fn phases_of_calls_keep_the_first_version() {
    let assume = |base: &Function| vec![behind(base, "tag", 0)];
    // With a shift of 31, all elements are of kind 0; each call with 0 alternates.
    let calm: &[u64] = &[64, 31];
    let wild: &[u64] = &[64, 0];
    let phases: Vec<&[u64]> = [calm, wild, calm, wild].iter().flat_map(|p| [*p; 40]).collect();
    let made = tiered(&parsed(PHASES), assume, &phases);
    assert!(made.failures < 16, "{made:?}");
}

/// A function of `%x` and `%k` with so many instructions behind the places where `%k` is used.
fn long(count: usize) -> String {
    let mut text = "export \"main\" @f\nfunc @f(%x: i32, %k: i32) -> i32 {\nentry:\n".to_owned();
    text += "  %v0 = mul.i32 %x, %k\n";
    for at in 0..count {
        let (opcode, with) = if at % 2 == 0 { ("xor", "%x") } else { ("mul", "%k") };
        text += &format!("  %v{} = {opcode}.i32 %v{at}, {with}\n", at + 1);
    }
    text + &format!("  return %v{count}\n}}\n")
}

/// Calls with 40 contents of an argument, each often enough for a row of its own.
fn megamorphic(count: usize) -> Tables {
    let assume = |base: &Function| vec![at_start(base, "k", 1)];
    let all: Vec<[u64; 2]> = (0..40 * 6).map(|at| [at, 1 + at / 6]).collect();
    let arguments: Vec<&[u64]> = all.iter().map(|args| &args[..]).collect();
    tiered(&parsed(&long(count)), assume, &[&[&[1, 1][..]; 20][..], &arguments[..]].concat())
}

#[test]
fn a_table_ends_with_a_row_that_assumes_nothing() {
    let made = megamorphic(4);
    let rows: Vec<&Vec<usize>> = made.rows.values().collect();
    let [rows] = rows[..] else { panic!("one table: {made:?}") };
    assert_eq!((rows.len(), rows.last()), (TABLE_ROWS, Some(&0)), "{made:?}");
    assert!(rows[..TABLE_ROWS - 1].iter().all(|exits| *exits == 1), "{made:?}");
    assert!(made.failures < 2 * TABLE_ROWS as u64 + 2, "{made:?}");
}

#[test]
fn a_table_of_large_rows_ends_earlier() {
    let made = megamorphic(6_000);
    let rows: Vec<&Vec<usize>> = made.rows.values().collect();
    let [rows] = rows[..] else { panic!("one table: {made:?}") };
    assert!((2..TABLE_ROWS).contains(&rows.len()) && rows.last() == Some(&0), "{made:?}");
    assert!(made.bytes >= TABLE_BYTES, "{made:?}");
}
