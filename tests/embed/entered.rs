//! The way up from an interpreter of the embedder's, into the middle of a loop.

use super::support::{Pair, SUM, engine, head, module, states, sum, vm};
use osier::driver::Step;
use osier::interp::Outcome;
use osier::ir::{FrameState, FrameStates, Func, Inst, Opcode, Point, Value};
use osier::jit::{
    Action, Callback, CallbackEnd, Condition, Config, Continuation, DeoptFrame, Embedder, Entered,
    HotLoop, RunError, Slot, Tier, Tiering, Vm,
};
use osier::landing::LandingRow;
use osier::passes::Pipeline;
use osier::speculate::Assumption;
use osier::tiers::{self, Compiled, TableLimits, TableUse, Tiered};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An interpreter of [`SUM`] that requests native code at each visit of the loop header.
struct Loops {
    place: HotLoop,
    /// The values of the base: `%n`, `%k`, `%i` and `%acc`.
    named: [Value; 4],
    asked: usize,
    resumed: Vec<u64>,
}

impl Loops {
    fn new(pair: &Pair) -> Loops {
        let (f, at) = (&pair.base, head(&pair.base));
        let [n, k] = [0, 1].map(|index| f.arguments()[index]);
        let [i, acc] = [0, 1].map(|index| f.block_params(f.inst_block(at.inst()))[index]);
        let place = HotLoop { func: pair.func, at };
        Loops { place, named: [n, k, i, acc], asked: 0, resumed: Vec::new() }
    }

    /// The contents of the values, by [`Loops::named`].
    fn value(&self, contents: [u64; 4], value: Value) -> Option<u64> {
        Some(contents[self.named.iter().position(|named| *named == value)?])
    }

    /// Interprets from a visit of the header on, and requests native code at each visit. Returns
    /// the result.
    fn run(&mut self, vm: &mut Vm, n: u64, k: u64) -> u64 {
        let (mut i, mut acc) = (0, 0);
        loop {
            self.asked += 1;
            let (place, named) = (self.place, self.named);
            let contents = move |value: Value| {
                let at = named.iter().position(|named| *named == value)?;
                Some([n, k, i, acc][at])
            };
            match vm.enter(place, &contents, self).expect("it goes on or not") {
                Entered::NotYet => {}
                Entered::Ended(Outcome::Returned(results)) => return results[0],
                Entered::Ended(other) => panic!("{other}"),
            }
            if i >= n {
                return acc;
            }
            acc = acc.wrapping_add(k.wrapping_mul(i).wrapping_add(k.wrapping_mul(3)));
            i += 1;
        }
    }
}

impl Embedder for Loops {
    /// As the loop does, from the header on.
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        let slot = |value: Value| frame.activations[0].slot(value.as_u32()).expect("live").bits;
        let [n, k, i, acc] = self.named.map(slot);
        self.resumed.push(i);
        let rest = sum(n, k).wrapping_sub(sum(i, k));
        Ok(vec![Slot { ty: osier::ir::Type::I64, bits: acc.wrapping_add(rest) }])
    }
}

/// Has a continuation from the `n`th question on.
struct After(usize, Arc<Continuation>);

impl Tiering for After {
    fn threshold(&self) -> Option<u32> {
        None
    }

    fn hot(&mut self, _: &mut Tier<'_>, _: HotLoop) -> Result<Option<Arc<Continuation>>, RunError> {
        self.0 = self.0.saturating_sub(1);
        Ok((self.0 == 0).then(|| Arc::clone(&self.1)))
    }
}

#[test]
fn a_loop_of_the_embedder_goes_on_natively() {
    let pair = Pair::new(SUM);
    let mut machine = vm(&engine(Config::default()), &pair.module);
    // Nobody makes code.
    let mut loops = Loops::new(&pair);
    assert_eq!((loops.run(&mut machine, 9, 5), loops.asked), (sum(9, 5), 10));
    assert!(machine.transitions().is_empty());
    // The policy makes it at once, optimized.
    machine.set_tiering(Box::new(Tiered::new(1, Pipeline::default())));
    let mut loops = Loops::new(&pair);
    assert_eq!((loops.run(&mut machine, 1_000, 5), loops.asked), (sum(1_000, 5), 1));
    assert_eq!(machine.transitions().len(), 1);
}

/// Counts the rows that assume nothing, and those that assume.
#[derive(Clone, Default)]
struct RowCount(Arc<[AtomicUsize; 2]>);

impl RowCount {
    fn plain_and_assuming(&self) -> [usize; 2] {
        [0, 1].map(|kind| self.0[kind].load(Ordering::Relaxed))
    }
}

impl tiers::Observer for RowCount {
    fn step(&mut self, _: Option<Step>) {}

    fn begin(&mut self) {}

    fn row(&mut self, _: Func, _: Point, made: &LandingRow) {
        let kind = usize::from(!made.exits.is_empty());
        self.0[kind].fetch_add(1, Ordering::Relaxed);
    }

    fn compiled(&mut self, _: Compiled) {}
}

/// No entry leads into the version that assumes `%k` to be 5 before the loop, so the embedder's run
/// enters a row. A run with another `%k` leaves it at the start, for the base.
#[test]
fn a_loop_of_the_embedder_goes_on_in_code_that_assumes() {
    let pair = Pair::new(SUM);
    let mut machine = vm(&engine(Config::default()), &pair.module);
    let start = Point::before(pair.base.first_inst(pair.base.entry()));
    let five = Assumption::is(start, pair.base.arguments()[1], 5);
    let rows = RowCount::default();
    let policy = Tiered::new_observed(1, Pipeline::default(), rows.clone());
    let assume = BTreeMap::from([(pair.func, vec![five])]);
    machine.set_tiering(Box::new(policy.speculating(assume)));
    for k in [5, 5, 6, 6, 6, 5] {
        let mut loops = Loops::new(&pair);
        assert_eq!((loops.run(&mut machine, 1_000, k), loops.asked), (sum(1_000, k), 1), "{k}");
    }
    let [_, made] = rows.plain_and_assuming();
    assert!((1..=3).contains(&made), "{made} rows");
}

/// In the background, the interpreter continues until the code is there.
#[test]
fn code_made_beside_the_run_is_entered_when_it_is_there() {
    let pair = Pair::new(SUM);
    let mut machine = vm(&engine(Config::default()), &pair.module);
    let policy = Tiered::new(1, Pipeline::default()).in_background();
    machine.set_tiering(Box::new(policy));
    let mut loops = Loops::new(&pair);
    // The other thread comes to its turn at last.
    let is_entered = (0..100_000).any(|_| {
        assert_eq!(loops.run(&mut machine, 1_000, 5), sum(1_000, 5));
        std::thread::yield_now();
        !machine.transitions().is_empty()
    });
    assert!(is_entered, "no code after {} questions", loops.asked);
    assert!(loops.asked > 1, "the first question is answered before there is code");
}

/// The code leaves again for the embedder, which had entered it.
#[test]
fn code_that_was_entered_leaves_again() {
    let pair = Pair::new(SUM);
    let engine = engine(Config::default());
    let mut machine = vm(&engine, &pair.module);
    let version = pair.at_head(&engine, true, Condition::Countdown(4));
    let action = Action::Hand(Arc::clone(&pair.backward), states(&pair));
    machine.adopt(&version, vec![action]).expect("it fits");
    let code = engine.continuation(&pair.base, pair.loop_entry(), &version).expect("compiled");
    machine.set_tiering(Box::new(After(3, code)));
    let mut loops = Loops::new(&pair);
    assert_eq!(loops.run(&mut machine, 100, 7), sum(100, 7));
    // It was entered at the third visit, and left at a visit of the header behind that.
    assert_eq!((loops.asked, loops.resumed.len()), (3, 1));
    assert!(loops.resumed[0] > 2, "{:?}", loops.resumed);
}

#[test]
fn wrong_places_and_missing_values_are_named() {
    let pair = Pair::new(SUM);
    let mut machine = vm(&engine(Config::default()), &pair.module);
    machine.set_tiering(Box::new(Tiered::new(1, Pipeline::default())));
    let mut loops = Loops::new(&pair);
    let place = loops.place;
    let nowhere = Point::before(osier::ir::Inst::from_u32(999));
    let beyond = Func::from_u32(77);
    for wrong in [HotLoop { at: nowhere, ..place }, HotLoop { func: beyond, ..place }] {
        let found = machine.enter(wrong, &|_| Some(0), &mut loops);
        let error = RunError::NoSuchPlace { func: wrong.func, at: wrong.at.inst() };
        assert_eq!(found, Err(error));
    }
    let n = loops.named[0];
    let partly = |value: Value| (value != n).then_some(0);
    let found = machine.enter(place, &partly, &mut loops);
    assert_eq!(found, Err(RunError::NotGiven { func: pair.func, value: n }));
    let says = found.expect_err("refused").to_string();
    assert!(says.contains(&n.to_string()), "{says}");
    // Bits outside the type are cleared, and the machine still runs.
    let whole = |value| loops.value([3, 1, 0, 0], value);
    let mut embedder = Loops::new(&pair);
    let ended = machine.enter(place, &whole, &mut embedder);
    assert_eq!(ended, Ok(Entered::Ended(Outcome::Returned(vec![sum(3, 1)]))));
}

/// `@main` calls the embedder, which interprets the loop of `@sum` and enters it.
const CALLS: &str = "
import func @host \"env\" \"host\" (i64, i64) -> i64
func @main(%n: i64, %k: i64) -> i64 {
entry:
  %x = call @host(%n, %k)
  %one = const.i64 1
  %y = add.i64 %x, %one
  return %y
}
";

/// Enters the loop within a call of the program.
struct Within(Loops);

impl Embedder for Within {
    fn call(
        &mut self,
        back: &mut Callback<'_>,
        _: Func,
        args: &[u64],
        results: &mut [u64],
    ) -> Result<(), CallbackEnd> {
        let (place, named, args) = (self.0.place, self.0.named, [args[0], args[1], 0, 0]);
        let contents =
            move |value: Value| Some(args[named.iter().position(|named| *named == value)?]);
        let entered = back.enter(self, place, &contents)?;
        results.copy_from_slice(&entered.expect("there is code"));
        Ok(())
    }
}

#[test]
fn a_loop_is_entered_within_a_call_of_the_embedder() {
    let text = format!("{CALLS}{}", SUM);
    let whole = module(&text);
    let sums = whole.func_named("sum").expect("it is there");
    let main = whole.func_named("main").expect("it is there");
    let base = whole.body(sums).expect("a body").clone();
    let at = head(&base);
    let [n, k] = [0, 1].map(|index| base.arguments()[index]);
    let [i, acc] = [0, 1].map(|index| base.block_params(base.inst_block(at.inst()))[index]);
    let loops = Loops {
        place: HotLoop { func: sums, at },
        named: [n, k, i, acc],
        asked: 0,
        resumed: Vec::new(),
    };
    let mut machine = vm(&engine(Config::default()), &whole);
    machine.set_tiering(Box::new(Tiered::new(1, Pipeline::default())));
    let ended = machine.run(main, &[50, 3], &mut Within(loops));
    assert_eq!(ended, Ok(Outcome::Returned(vec![sum(50, 3) + 1])));
    let up = machine.transitions();
    assert_eq!(up.iter().filter(|made| made.func == sums).count(), 1, "{up:?}");
}

/// The loop loads a word in each round; optimized, it uses the word that was loaded before it. The
/// base no longer reads this value in the loop.
const LOADED: &str = "
memory @m 1
data @m 8 \"\\07\"
func @f(%p: i32, %n: i64) -> i64 {
entry:
  %zero = const.i64 0
  %first = load.i64 @m[%p]
  jump head(%zero, %first)
head(%i: i64, %acc: i64):
  %more = slt.i64 %i, %n
  br_if %more, body, out
body:
  %again = load.i64 @m[%p]
  %next = add.i64 %acc, %again
  %one = const.i64 1
  %up = add.i64 %i, %one
  jump head(%up, %next)
out:
  return %acc
}
";

/// The registers of an interpreter at the third visit of the loop of [`LOADED`], up to ten rounds.
struct Registers {
    place: HotLoop,
    contents: Vec<(Value, u64)>,
    /// The value of `%first`.
    dead: Value,
}

impl Registers {
    fn of(pair: &Pair) -> Registers {
        let (f, at) = (&pair.base, head(&pair.base));
        let params = f.block_params(f.inst_block(at.inst()));
        let loads = |inst: &Inst| f.inst(*inst).opcode == Opcode::Load;
        let first = f.block_insts(f.entry()).find(loads).expect("it loads");
        let dead = f.inst(first).results[0];
        let live = [f.arguments()[0], f.arguments()[1], params[0], params[1]];
        let contents = live.into_iter().chain([dead]).zip([8, 10, 2, 21, 7]).collect();
        Registers { place: HotLoop { func: pair.func, at }, contents, dead }
    }

    fn value(&self, value: Value) -> Option<u64> {
        self.contents.iter().find(|(named, _)| *named == value).map(|(_, bits)| *bits)
    }

    /// A frame state at the loop that names all registers.
    fn states(&self) -> FrameStates {
        let slots: Vec<(u32, Value)> =
            (0..).zip(self.contents.iter().map(|(value, _)| *value)).collect();
        let mut states = FrameStates::new();
        states.set(self.place.at, FrameState::of_values(0, 0, slots));
        states
    }
}

/// An interpreter that names the value enters. An interpreter with live values alone waits.
#[test]
fn a_loop_is_entered_with_a_dead_value_that_the_embedder_names() {
    let pair = Pair::new(LOADED);
    let registers = Registers::of(&pair);
    let mut host =
        Loops { place: registers.place, named: [registers.dead; 4], asked: 0, resumed: vec![] };
    let mut machine = vm(&engine(Config::default()), &pair.module);
    let policy = Tiered::new(1, Pipeline::default()).entering(TableUse::Nowhere);
    machine.set_tiering(Box::new(policy));
    let live = |value| registers.value(value).filter(|_| value != registers.dead);
    let ended = machine.enter(registers.place, &live, &mut host);
    assert_eq!(ended, Ok(Entered::NotYet));
    let all = |value| registers.value(value);
    for _ in 0..2 {
        let ended = machine.enter(registers.place, &all, &mut host);
        assert_eq!(ended, Ok(Entered::Ended(Outcome::Returned(vec![77]))));
    }
    assert_eq!(machine.transitions().len(), 1);
    // There is code now, and the interpreter without the value still stays.
    let ended = machine.enter(registers.place, &live, &mut host);
    assert_eq!(ended, Ok(Entered::NotYet));
}

/// The version of the function keeps a value that is dead at the loop, which the interpreter lacks.
/// So the run enters a row, which assumes nothing.
#[test]
fn a_loop_without_an_entry_is_entered_in_a_row_of_its_own() {
    let pair = Pair::new(LOADED);
    let registers = Registers::of(&pair);
    let mut host =
        Loops { place: registers.place, named: [registers.dead; 4], asked: 0, resumed: vec![] };
    let rows = RowCount::default();
    let mut machine = vm(&engine(Config::default()), &pair.module);
    let policy = Tiered::new_observed(1, Pipeline::default(), rows.clone());
    machine.set_tiering(Box::new(policy));
    let live = |value| registers.value(value).filter(|_| value != registers.dead);
    for _ in 0..2 {
        let ended = machine.enter(registers.place, &live, &mut host);
        assert_eq!(ended, Ok(Entered::Ended(Outcome::Returned(vec![77]))));
    }
    assert_eq!(rows.plain_and_assuming(), [1, 0]);
    // The row reads `%n`, and the interpreter lacks that as well.
    let n = pair.base.arguments()[1];
    let partly = |value| live(value).filter(|_| value != n);
    assert_eq!(machine.enter(registers.place, &partly, &mut host), Ok(Entered::NotYet));
}

#[test]
fn rows_that_assume_nothing_keep_to_the_bytes_of_a_function() {
    let pair = Pair::new(LOADED);
    let registers = Registers::of(&pair);
    let live = |value| registers.value(value).filter(|_| value != registers.dead);
    for (function_bytes, is_entered) in [(0, false), (1, true)] {
        let mut host =
            Loops { place: registers.place, named: [registers.dead; 4], asked: 0, resumed: vec![] };
        let mut machine = vm(&engine(Config::default()), &pair.module);
        let limits = TableLimits { function_bytes, ..TableLimits::default() };
        let policy = Tiered::new(1, Pipeline::default()).table_limits(limits);
        machine.set_tiering(Box::new(policy));
        // The row that is there is entered again, though it has filled the bytes.
        for _ in 0..2 {
            let ended = machine.enter(registers.place, &live, &mut host);
            assert_eq!(ended.expect("it goes on or not") != Entered::NotYet, is_entered);
        }
    }
}

/// In the background nobody can be asked for values: the frame state at the loop names them.
#[test]
fn code_made_beside_the_run_takes_dead_values_that_frame_states_name() {
    let pair = Pair::new(LOADED);
    let registers = Registers::of(&pair);
    let mut host =
        Loops { place: registers.place, named: [registers.dead; 4], asked: 0, resumed: vec![] };
    let states = BTreeMap::from([(pair.func, Arc::new(registers.states()))]);
    let mut machine = vm(&engine(Config::default()), &pair.module);
    let policy = Tiered::new(1, Pipeline::default()).handing(states).in_background();
    machine.set_tiering(Box::new(policy));
    let all = |value| registers.value(value);
    let is_entered = (0..100_000).any(|_| {
        std::thread::yield_now();
        let ended = machine.enter(registers.place, &all, &mut host).expect("it goes on or not");
        ended == Entered::Ended(Outcome::Returned(vec![77]))
    });
    assert!(is_entered, "no code");
}

/// The row takes the dead value, as the frame state at the loop names it. An interpreter that lacks
/// a live value does not enter the row, and gets no error.
#[test]
fn a_row_is_entered_with_all_values_or_not_at_all() {
    let pair = Pair::new(LOADED);
    let registers = Registers::of(&pair);
    let mut host =
        Loops { place: registers.place, named: [registers.dead; 4], asked: 0, resumed: vec![] };
    let start = Point::before(pair.base.first_inst(pair.base.entry()));
    let [p, n] = [0, 1].map(|index| pair.base.arguments()[index]);
    let assume = BTreeMap::from([(pair.func, vec![Assumption::is(start, p, 8)])]);
    let mut states = registers.states();
    states.set(start, FrameState::of_values(0, 1, [(0, p), (1, n)]));
    let states = BTreeMap::from([(pair.func, Arc::new(states))]);
    let rows = RowCount::default();
    let policy = Tiered::new_observed(1, Pipeline::default(), rows.clone());
    let mut machine = vm(&engine(Config::default()), &pair.module);
    machine.set_tiering(Box::new(policy.speculating(assume).handing(states)));
    let all = |value| registers.value(value);
    let partly = |value| registers.value(value).filter(|_| value != n);
    for _ in 0..2 {
        let ended = machine.enter(registers.place, &partly, &mut host);
        assert_eq!(ended, Ok(Entered::NotYet));
        let ended = machine.enter(registers.place, &all, &mut host);
        assert_eq!(ended, Ok(Entered::Ended(Outcome::Returned(vec![77]))));
    }
    assert_eq!(rows.plain_and_assuming(), [0, 1]);
}
