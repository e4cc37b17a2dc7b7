//! Landing tables natively: a policy enters rows at hot loops, and goes on in rows where
//! assumptions fail.

use super::directed::{SCALED, at_start, behind};
use super::support::{compared, native, policy};
use crate::speculation::support::{first, parsed};
use ir::{Func, Function, Module, Point};
use osier::jit::{Config, Exits, FailedPoint, RunError};
use osier::landing::LandingRow;
use osier::speculate::{Assumption, Expected};
use osier::tiers::{
    Compiled, CompiledKind, MAX_FAILURES, Observer, RowError, TABLE_ROWS, TableLimits, TableUse,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What the policy did.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    /// By landing: the assumptions of its rows.
    pub(super) rows: BTreeMap<(Func, Point), Vec<usize>>,
    /// By row, in the order of making: the bits that it assumes.
    pub(super) expected: Vec<Vec<u64>>,
    /// The exits that lead to rows: the landing and the row.
    pub(super) linked: Vec<(Point, usize)>,
    pub(super) failures: u64,
    /// The bytes of machine code of all rows.
    pub(super) bytes: usize,
    /// The assumptions given up.
    pub(super) abandoned: u64,
    /// The rows that were not made.
    pub(super) without: u64,
}

#[derive(Clone, Default)]
pub(super) struct Watch(Arc<Mutex<Tables>>);

impl Watch {
    /// The events so far.
    pub(super) fn seen(&self) -> Tables {
        self.0.lock().expect("nobody panics").clone()
    }
}

impl Observer for Watch {
    fn step(&mut self, _step: Option<osier::driver::Step>) {}

    fn begin(&mut self) {}

    fn row(&mut self, func: Func, at: Point, made: &LandingRow) {
        let mut tables = self.0.lock().expect("nobody panics");
        tables.rows.entry((func, at)).or_default().push(made.exits.len());
        tables.expected.push(made.exits.iter().map(|exit| exit.of.expected.bits()).collect());
    }

    fn linked(&mut self, _exit: FailedPoint<'_>, at: Point, row: usize) {
        self.0.lock().expect("nobody panics").linked.push((at, row));
    }

    fn without_row(&mut self, _func: Func, _at: Point, error: &RowError) {
        assert!(matches!(error, RowError::Code(_)), "a bug of ours: {error}");
        self.0.lock().expect("nobody panics").without += 1;
    }

    fn abandoned(&mut self, _func: Func, _assumption: &Assumption) {
        self.0.lock().expect("nobody panics").abandoned += 1;
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
    tiered_as(module, assume, arguments, Config::default(), TableUse::Everywhere)
}

/// As [`tiered`], with tables that end early.
fn tiered_within(
    module: &Module,
    assume: impl Fn(&Function) -> Vec<Assumption>,
    arguments: &[&[u64]],
    limits: TableLimits,
) -> Tables {
    let ended = tried(module, assume, arguments, Config::default(), limits, TableUse::Everywhere);
    ended.unwrap_or_else(|error| panic!("the run ends: {error}"))
}

/// As [`tiered`], for a configuration, and for tables at these places.
pub(super) fn tiered_as(
    module: &Module,
    assume: impl Fn(&Function) -> Vec<Assumption>,
    arguments: &[&[u64]],
    config: Config,
    places: TableUse,
) -> Tables {
    let ended = tried(module, assume, arguments, config, TableLimits::default(), places);
    ended.unwrap_or_else(|error| panic!("the run ends: {error}"))
}

/// As [`tiered_as`], for runs that may end for lack of room for code.
fn tried(
    module: &Module,
    assume: impl Fn(&Function) -> Vec<Assumption>,
    arguments: &[&[u64]],
    config: Config,
    limits: TableLimits,
    places: TableUse,
) -> Result<Tables, RunError> {
    let (func, base) = first(module);
    let assume = BTreeMap::from([(func, assume(base))]);
    let mut vm = native(&Arc::new(module.clone()), config);
    let watch = Watch::default();
    let policy = policy(watch.clone()).speculating(assume);
    vm.set_tiering(Box::new(policy.table_limits(limits).entering(places)));
    compared(&mut vm, func, arguments)?;
    Ok(watch.seen())
}

/// All time is in one call, whose loop assumes: the run enters a row, and leaves it where the tag
/// of one element differs.
#[test]
fn a_hot_loop_enters_code_that_assumes() {
    let assume = |base: &Function| vec![at_start(base, "scale", 3), behind(base, "tag", 0)];
    let made = tiered(&parsed(SCALED), assume, &[&[1000, 3, 5000]]);
    assert_eq!(made.rows.values().collect::<Vec<_>>(), [&vec![2]]);
    assert_eq!((made.failures, made.linked.len()), (0, 0));
    let made = tiered(&parsed(SCALED), assume, &[&[1000, 3, 500]]);
    assert_eq!((made.rows.len(), made.failures), (1, 1), "one exit, and back into the row");
}

/// The context of the row of the loop does not hold in later calls, and no row takes over: the row
/// is given up, and so is the assumption.
#[test]
fn a_loop_gives_up_a_row_whose_context_fails() {
    let assume = |base: &Function| vec![at_start(base, "scale", 3), behind(base, "tag", 0)];
    let module = parsed(SCALED);
    let calls: Vec<[u64; 3]> = (0..60).map(|at| [40, if at < 5 { 3 } else { 4 }, 5000]).collect();
    let calls: Vec<&[u64]> = calls.iter().map(|args| &args[..]).collect();
    let made = tiered_as(&module, assume, &calls, Config::default(), TableUse::AtLoops);
    assert!(made.linked.is_empty() && made.abandoned > 0, "{made:?}");
    assert!(made.failures <= 4 * MAX_FAILURES, "{made:?}");
}

/// `%rare` is 1 in one round of later calls, and the row for that assumes `%mode2` to be 0, which
/// it is not there. No row takes over, so the row is given up: the exit leads to another, which
/// makes no such assumption.
#[test]
fn a_row_that_is_given_up_is_entered_by_no_exit() {
    let text = "
memory @mem 1
export \"main\" @work
func @work(%c: i32, %late: i32) -> i64 {
entry:
  %zero = const.i32 0
  %z = const.i64 0
  jump head(%zero, %z, %zero)
head(%i: i32, %s: i64, %mode: i32):
  %twelve = const.i32 12
  %is_last = eq.i32 %i, %twelve
  %rare = and.i32 %is_last, %late
  br_if %rare, slow, join(%s, %mode)
slow:
  %one1 = const.i64 1
  %s1 = add.i64 %s, %one1
  %k = const.i32 1
  store.i32 @mem[%zero + 8], %i
  jump join(%s1, %k)
join(%s2: i64, %mode2: i32):
  switch %mode2, [a, b], default d
a:
  %x = uextend.i64 %i
  %sa = add.i64 %s2, %x
  jump next(%sa)
b:
  %y = const.i64 3
  %sb = mul.i64 %s2, %y
  jump next(%sb)
d:
  jump next(%s2)
next(%s3: i64):
  %one = const.i32 1
  %j = add.i32 %i, %one
  %m = const.i32 16
  %more = slt.i32 %j, %m
  br_if %more, head(%j, %s3, %zero), done
done:
  return %s3
}";
    let assume = |base: &Function| {
        let join = base.blocks().find(|block| base.block_name(*block) == Some("join"));
        let join = join.expect("it has the block");
        let at = Point::before(base.first_inst(join));
        let mode = Assumption::is(at, base.block_params(join)[1], 0);
        vec![behind(base, "rare", 0), mode]
    };
    let calls: Vec<[u64; 2]> = (0..600).map(|at| [at, u64::from(at >= 100)]).collect();
    let calls: Vec<&[u64]> = calls.iter().map(|args| &args[..]).collect();
    let made = tiered(&parsed(text), assume, &calls);
    assert!(!made.linked.is_empty() && made.failures <= 4 * MAX_FAILURES, "{made:?}");
}

/// The engine has room for the version and not for rows: runs go on in the interpreter.
#[test]
fn without_room_for_rows_the_interpreter_goes_on() {
    let assume = |base: &Function| vec![behind(base, "tag", 0)];
    let module = parsed(&phases());
    let calls: Vec<&[u64]> = [&[300, 3, 3][..]; 20].to_vec();
    let full = tiered(&module, assume, &calls);
    assert!(full.without == 0 && !full.linked.is_empty(), "{full:?}");
    let mut refused = 0;
    for code_bytes in (0..40).map(|at| 256 * at) {
        let config = || Config { code_bytes, ..Config::default() };
        // Where the engine has no room for the ways into native code, each run ends.
        if tried(&module, assume, &calls, config(), TableLimits::default(), TableUse::Nowhere)
            .is_ok()
        {
            let made = tiered_as(&module, assume, &calls, config(), TableUse::Everywhere);
            refused += made.without;
        }
    }
    assert!(refused > 0, "some limit lets in the version and no row");
}

/// Exits that are calls with stack maps lead to rows as well.
#[test]
fn described_exits_lead_to_rows() {
    let assume = |base: &Function| vec![behind(base, "tag", 0)];
    let config = Config { exits: Exits::Described, ..Config::default() };
    let calls: Vec<&[u64]> = [&[300, 3, 3][..]; 20].to_vec();
    let made = tiered_as(&parsed(&phases()), assume, &calls, config, TableUse::Everywhere);
    assert!(made.linked.len() > 1, "{made:?}");
}

/// The fast loop of the interpreter shares places among values. The policy sees what they hold: the
/// inner loop gets a row that assumes `%far` to be 1, which it is there.
#[test]
fn a_row_is_made_for_the_values_of_the_fast_loop() {
    let text = "
export \"main\" @f
func @f(%n: i32, %m: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump outer(%zero, %zero)
outer(%i: i32, %s: i32):
  %far = ult.i32 %i, %n
  br_if %far, inner(%zero, %s), done
inner(%j: i32, %t: i32):
  %u = add.i32 %t, %j
  %w = select.i32 %far, %u, %t
  %k = add.i32 %j, %one
  %more = ult.i32 %k, %m
  br_if %more, inner(%k, %w), next
next:
  %h = add.i32 %i, %one
  jump outer(%h, %w)
done:
  return %s
}";
    let assume = |base: &Function| vec![behind(base, "far", 1)];
    let made = tiered(&parsed(text), assume, &[&[3, 2_000]]);
    assert!(made.rows.values().any(|rows| rows.first() == Some(&1)), "{made:?}");
    assert!(made.failures <= 1, "the last round of the outer loop leaves: {made:?}");
}

/// The sum over elements of two kinds, in phases of 2^`%odd` elements.
fn phases() -> String {
    let tag = "  %tag = eq.i32 %i, %odd\n";
    assert!(SCALED.contains(tag), "the test of the tag");
    let kind = "  %kind = ushr.i32 %i, %odd\n  %tag = and.i32 %kind, %one\n";
    SCALED.replace(tag, kind)
}

/// The kinds alternate in each round: each of two rows leaves for the other, and the table stays
/// as it is. Every exit is linked, so the policy hears of few failures.
#[test]
fn a_run_that_alternates_between_two_facts_ends() {
    let assume = |base: &Function| vec![behind(base, "tag", 0)];
    for shift in [0, 1, 5] {
        let made = tiered(&parsed(&phases()), assume, &[&[3_000, 3, shift], &[3_000, 3, shift]]);
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
    let calm: &[u64] = &[64, 3, 31];
    let wild: &[u64] = &[64, 3, 0];
    let calls: Vec<&[u64]> = [calm, wild, calm, wild].iter().flat_map(|p| [*p; 40]).collect();
    let made = tiered(&parsed(&phases()), assume, &calls);
    assert!(made.failures < 16, "{made:?}");
}

/// The version of the function and the row of its loop assume the same of `%scale`. Later calls
/// refute it, and 16 failures of both together give the assumption up.
#[test]
fn a_version_and_a_row_give_up_one_assumption_together() {
    let assume = |base: &Function| vec![at_start(base, "scale", 3)];
    let calls: Vec<[u64; 3]> = (0..60).map(|at| [60, if at < 20 { 3 } else { 4 }, 5000]).collect();
    let calls: Vec<&[u64]> = calls.iter().map(|args| &args[..]).collect();
    let module = parsed(SCALED);
    let made = tiered_as(&module, assume, &calls, Config::default(), TableUse::AtLoops);
    assert_eq!(made.rows.len(), 1, "{made:?}");
    assert!(made.abandoned > 0 && made.failures <= MAX_FAILURES + 2, "{made:?}");
}

/// One element in 200 is of the rare kind, and leaves the row for the interpreter. There, the loop
/// turns hot after as many visits each time, so few rounds are interpreted.
#[test]
fn a_loop_turns_hot_as_soon_after_each_exit() {
    let rare = "  %many = const.i32 200\n  %r = urem.i32 %i, %many\n  %tag = eq.i32 %r, %one\n";
    let module = Arc::new(parsed(&SCALED.replace("  %tag = eq.i32 %i, %odd\n", rare)));
    let (func, base) = first(&module);
    let assume = BTreeMap::from([(func, vec![behind(base, "tag", 0)])]);
    let mut vm = native(&module, Config::default());
    let watch = Watch::default();
    let policy = policy(watch.clone()).speculating(assume).entering(TableUse::AtLoops);
    vm.set_tiering(Box::new(policy));
    compared(&mut vm, func, &[&[2_800, 3, 0]]).expect("it runs");
    let visits: u64 = vm.visits().iter().map(|place| place.visits).sum();
    assert_eq!(watch.seen().failures, 13, "the first rare element comes before the row");
    assert!(visits < 300, "{visits} visits in the interpreter");
}

/// Each inner loop counts down to 0, where the assumption that the counter differs from 0 fails:
/// one row for the 0, and one for all others. No row assumes a single other count.
#[test]
fn a_row_assumes_what_the_list_says_where_it_holds() {
    let text = "
export \"main\" @f
func @f(%n: i32, %m: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump outer(%zero, %zero)
outer(%i: i32, %s: i32):
  %more = ult.i32 %i, %n
  br_if %more, inner(%m, %s), done
inner(%j: i32, %t: i32):
  %u = add.i32 %t, %j
  %left = sub.i32 %j, %one
  br_if %left, inner(%left, %u), next
next:
  %h = add.i32 %i, %one
  jump outer(%h, %u)
done:
  return %s
}";
    let assume = |base: &Function| {
        let is_more = Assumption { expected: Expected::IsNot(0), ..behind(base, "left", 0) };
        vec![is_more]
    };
    let made = tiered(&parsed(text), assume, &[&[100, 50], &[100, 50]]);
    assert!(!made.linked.is_empty() && made.abandoned == 0, "{made:?}");
    assert!(made.expected.iter().flatten().all(|bits| *bits == 0), "{made:?}");
    let most = made.rows.values().map(Vec::len).max();
    assert!(most <= Some(2), "{made:?}");
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
fn megamorphic(count: usize, limits: TableLimits) -> Tables {
    let assume = |base: &Function| vec![at_start(base, "k", 1)];
    let all: Vec<[u64; 2]> = (0..40 * 6).map(|at| [at, 1 + at / 6]).collect();
    let arguments: Vec<&[u64]> = all.iter().map(|args| &args[..]).collect();
    let arguments = [&[&[1, 1][..]; 20][..], &arguments[..]].concat();
    tiered_within(&parsed(&long(count)), assume, &arguments, limits)
}

#[test]
fn a_table_ends_with_a_row_that_assumes_nothing() {
    let made = megamorphic(4, TableLimits::default());
    let rows: Vec<&Vec<usize>> = made.rows.values().collect();
    let [rows] = rows[..] else { panic!("one table: {made:?}") };
    assert_eq!((rows.len(), rows.last()), (TABLE_ROWS, Some(&0)), "{made:?}");
    assert!(rows[..TABLE_ROWS - 1].iter().all(|exits| *exits == 1), "{made:?}");
    assert!(made.failures < 2 * TABLE_ROWS as u64 + 2, "{made:?}");
}

/// The row takes all runs that leave the version.
#[test]
fn a_table_of_one_row_assumes_nothing() {
    let made = megamorphic(4, TableLimits { rows: 1, ..TableLimits::default() });
    let rows: Vec<&Vec<usize>> = made.rows.values().collect();
    assert_eq!(rows, [&vec![0]], "{made:?}");
}

#[test]
fn a_table_of_large_rows_ends_earlier() {
    let limits = TableLimits { table_bytes: 2 << 10, ..TableLimits::default() };
    let made = megamorphic(200, limits);
    let rows: Vec<&Vec<usize>> = made.rows.values().collect();
    let [rows] = rows[..] else { panic!("one table: {made:?}") };
    assert!((2..TABLE_ROWS).contains(&rows.len()) && rows.last() == Some(&0), "{made:?}");
    assert!(made.bytes >= limits.table_bytes, "{made:?}");
}

/// Six arguments, each assumed in front of its own 60 instructions, with 4 contents one after
/// the other. No table is full by itself, and the last one ends early.
#[test]
fn a_function_with_many_tables_ends_them() {
    const PARTS: usize = 6;
    let params: String = (0..PARTS).map(|part| format!(", %k{part}: i32")).collect();
    let mut text =
        format!("memory @m 1\nexport \"main\" @f\nfunc @f(%x: i32{params}) -> i32 {{\nentry:\n");
    text += "  %zero = const.i32 0\n  %v0 = mul.i32 %x, %x\n";
    let mut at = 0;
    for part in 0..PARTS {
        text += &format!("  store.i32 @m[%zero + {}], %v{at}\n", 4 * part);
        text += &format!("  %s{part} = add.i32 %v{at}, %k{part}\n");
        for _ in 0..60 {
            let opcode = if at % 2 == 0 { "xor" } else { "mul" };
            text += &format!("  %v{} = {opcode}.i32 %v{at}, %k{part}\n", at + 1);
            at += 1;
        }
    }
    text += &format!("  return %v{at}\n}}\n");
    let assume = |base: &Function| -> Vec<Assumption> {
        let of = |part: usize| {
            let inst = crate::speculation::support::inst(base, &format!("s{part}"));
            let value = crate::speculation::support::value(base, &format!("k{part}"));
            Assumption::is(Point::before(inst), value, 1)
        };
        (0..PARTS).map(of).collect()
    };
    let mut calls = vec![vec![1_u64; PARTS + 1]; 20];
    for part in (0..PARTS).rev() {
        for bits in 2..6 {
            let mut args = vec![1; PARTS + 1];
            args[part + 1] = bits;
            calls.extend(vec![args; 4]);
        }
    }
    let calls: Vec<&[u64]> = calls.iter().map(|args| &args[..]).collect();
    let limits = TableLimits { function_bytes: 4 << 10, ..TableLimits::default() };
    let made = tiered_within(&parsed(&text), assume, &calls, limits);
    let is_ended = |rows: &&Vec<usize>| rows.last() == Some(&0);
    let (ended, others): (Vec<_>, Vec<_>) = made.rows.values().partition(is_ended);
    assert!(!ended.is_empty() && others.iter().any(|rows| rows.len() == 4), "{made:?}");
    assert!(made.bytes < 2 * limits.function_bytes, "{made:?}");
}

/// Two branches of the loop ask for the kind of an element, which comes in phases. Both are assumed
/// to be 0. Where the first fails, so does the second, and the next row assumes neither: it would
/// leave in each round.
#[test]
fn a_row_assumes_what_other_places_have_shown_last() {
    let text = "
memory @mem 1
export \"main\" @f
func @f(%n: i32, %shift: i32, %other: i32) -> i32 {
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
  br_if %tag, slow, fast
slow:
  %j = mul.i32 %i, %sum
  jump both(%j)
fast:
  %m = add.i32 %sum, %i
  jump both(%m)
both(%x: i32):
  store.i32 @mem[%zero + 8], %x
  %again = ushr.i32 %i, %other
  %odd = and.i32 %again, %one
  br_if %odd, rare, next(%x)
rare:
  %y = mul.i32 %x, %n
  jump next(%y)
next(%z: i32):
  %k = add.i32 %i, %one
  jump head(%k, %z)
done:
  return %sum
}";
    let assume = |base: &Function| vec![behind(base, "tag", 0), behind(base, "odd", 0)];
    // Phases of 1,024 elements in one call: the policy hears of the exits that are not linked.
    let args: &[u64] = &[10_000, 10, 10];
    let made = tiered(&parsed(text), assume, &[args; 3]);
    let all: usize = made.rows.values().map(Vec::len).sum();
    let assumes_both = |row: &Vec<u64>| row.len() > 1 && row.iter().all(|bits| *bits == 1);
    assert!(made.expected.iter().any(assumes_both), "{made:?}");
    assert!(made.failures < 20 && all <= 10, "{made:?}");
}

/// One element of each inner loop is of the rare kind, and two exits lead to a row for it. Later
/// the outer loop becomes hot by itself: most elements are of the usual kind.
#[test]
fn a_row_of_a_loop_assumes_what_the_list_says() {
    let text = "
memory @mem 1
export \"main\" @f
func @f(%n: i32, %m: i32, %odd: i32, %is_deep: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump outer(%zero, %zero)
outer(%o: i32, %t: i32):
  %again = ult.i32 %o, %m
  br_if %again, choose, done
choose:
  br_if %is_deep, head(%zero, %t), out(%o)
head(%i: i32, %sum: i32):
  %more = ult.i32 %i, %n
  br_if %more, body, out(%sum)
body:
  %tag = eq.i32 %i, %odd
  br_if %tag, slow, fast
slow:
  store.i32 @mem[%zero + 8], %i
  %j = mul.i32 %i, %sum
  jump next(%j)
fast:
  %l = mul.i32 %i, %o
  jump next(%l)
next(%x: i32):
  %s = add.i32 %sum, %x
  %k = add.i32 %i, %one
  jump head(%k, %s)
out(%u: i32):
  %p = add.i32 %o, %one
  jump outer(%p, %u)
done:
  return %t
}";
    // Behind the assumption about `%n`, no loop is entered but by rows. The second call leaves the
    // version there, for the interpreter.
    let assume = |base: &Function| vec![at_start(base, "n", 100), behind(base, "tag", 0)];
    let made = tiered(&parsed(text), assume, &[&[100, 4, 50, 1], &[99, 50, 5000, 0]]);
    assert!(!made.linked.is_empty(), "the failures lead to a row: {made:?}");
    let outer = Point::before(crate::speculation::support::inst(first(&parsed(text)).1, "again"));
    assert!(made.rows.keys().any(|(_, at)| *at == outer), "{made:?}");
    assert_eq!(made.expected.last(), Some(&vec![0]), "the row of the outer loop: {made:?}");
}
