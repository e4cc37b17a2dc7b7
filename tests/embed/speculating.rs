//! A tiering policy that speculates: assumptions that hold, fail, and fail again and again. Most
//! tests turn landing tables off, in which runs would go on (`tests/landings/`).

use super::support::{engine, module, vm};
use osier::interp::{Limits, Machine, NoHost, NoObserver, Options};
use osier::ir::{self, FrameState, FrameStates, Func, Point};
use osier::jit::{Config, FailedPoint, TransitionKind, Vm};
use osier::passes::Pipeline;
use osier::speculate::{Assumption, Expected, Pins, SpeculateError, Speculative};
use osier::tiers::{self, Compiled, MAX_FAILURES, MAX_VERSIONS, TableUse, Tiered};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const SCALE: &str = "
func @scale(%x: i32, %k: i32, %m: i32) -> i32 {
entry:
  %a = mul.i32 %x, %k
  %b = mul.i32 %a, %m
  %c = add.i32 %b, %k
  return %c
}";

fn scale(x: u64, k: u64, m: u64) -> u64 {
    x * k * m + k
}

#[derive(Default)]
struct Seen {
    made: Vec<usize>,
    pinned: usize,
    failed: Vec<u64>,
    abandoned: usize,
    refused: Vec<SpeculateError>,
}

struct Watch(Arc<Mutex<Seen>>);

impl tiers::Observer for Watch {
    fn step(&mut self, _: Option<osier::driver::Step>) {}

    fn begin(&mut self) {}

    fn compiled(&mut self, _: Compiled) {}

    fn speculated(&mut self, _: Func, made: &Speculative) {
        let mut seen = self.0.lock().expect("no panic");
        seen.made.push(made.exits.len());
        seen.pinned += made.exits.iter().filter(|exit| !exit.pins.is_empty()).count();
    }

    fn refused(&mut self, _: Func, error: &SpeculateError) {
        self.0.lock().expect("no panic").refused.push(*error);
    }

    fn failed(&mut self, at: FailedPoint<'_>) {
        self.0.lock().expect("no panic").failed.push(at.count);
    }

    fn abandoned(&mut self, _: Func, _: &Assumption) {
        self.0.lock().expect("no panic").abandoned += 1;
    }
}

/// As [`run_assuming`], with `%k` assumed to be 3 and `%m` to be 5.
fn run(calls: impl Iterator<Item = [u64; 3]>) -> (Arc<Mutex<Seen>>, Vm) {
    run_assuming([3, 5], calls)
}

/// Calls the function with these arguments under a policy that assumes `%k` and `%m` to have these
/// bits, and checks the results.
fn run_assuming(bits: [u64; 2], calls: impl Iterator<Item = [u64; 3]>) -> (Arc<Mutex<Seen>>, Vm) {
    run_choosing(|policy| policy, bits, calls)
}

/// As [`run_assuming`], with choices made before the list of assumptions.
fn run_choosing(
    choose: impl FnOnce(Tiered<Watch>) -> Tiered<Watch>,
    [k, m]: [u64; 2],
    calls: impl Iterator<Item = [u64; 3]>,
) -> (Arc<Mutex<Seen>>, Vm) {
    let module = module(SCALE);
    let func = module.func_named("scale").expect("it is there");
    let base = module.body(func).expect("it has a body");
    let at = Point::before(base.first_inst(base.entry()));
    let assume = [(1, k), (2, m)].map(|(index, bits)| Assumption {
        at,
        value: base.arguments()[index],
        expected: Expected::Is(bits),
        reason: index as u32,
    });
    let engine = engine(Config::default());
    let options = Options::traced();
    let mut vm = Vm::new(&engine, &module, Limits::default(), options).expect("it is instantiated");
    let seen = Arc::new(Mutex::new(Seen::default()));
    let policy = Tiered::new_observed(2, Pipeline::default(), Watch(Arc::clone(&seen)));
    let policy = choose(policy.entering(TableUse::Nowhere));
    vm.set_tiering(Box::new(policy.speculating(BTreeMap::from([(func, assume.to_vec())]))));
    for [x, k, m] in calls {
        let outcome = vm.invoke(func, &[x, k, m], &mut NoHost).expect("the run ends");
        assert_eq!(outcome.returned(), Some([scale(x, k, m)].as_slice()), "{x} {k} {m}");
    }
    (seen, vm)
}

#[test]
fn assumptions_that_hold_never_leave() {
    let (seen, _) = run((0..100).map(|x| [x, 3, 5]));
    let seen = seen.lock().expect("no panic");
    assert_eq!((&seen.made[..], &seen.failed[..], seen.abandoned), (&[2][..], &[][..], 0));
}

#[test]
fn a_failed_assumption_goes_on_in_the_interpreter() {
    let (seen, mut vm) = run((0..100).map(|x| [x, 3, if x % 10 == 9 { 6 } else { 5 }]));
    let seen = seen.lock().expect("no panic");
    assert_eq!((&seen.made[..], seen.abandoned), (&[2][..], 0));
    assert_eq!(seen.failed, (1..=seen.failed.len() as u64).collect::<Vec<_>>(), "counts rise");
    assert_eq!(seen.failed.len(), 10);
    let made = vm.transitions();
    assert_eq!(made.iter().map(|made| made.count).sum::<u64>(), 10);
}

/// A storm of exits ends: this assumption is given up, the other assumption stays.
#[test]
fn an_assumption_that_always_fails_is_given_up() {
    let (seen, _) = run((0..1000).map(|x| [x, 3, 6]));
    let seen = seen.lock().expect("no panic");
    assert_eq!((&seen.made[..], seen.abandoned), (&[2, 1][..], 1));
    assert_eq!(seen.failed.len() as u64, MAX_FAILURES);
}

/// The list of assumptions once took them back.
#[test]
fn pins_and_work_chosen_before_the_list_count() {
    let calls = || (0..10).map(|x| [x, 3, 5]);
    let state = |seen: Arc<Mutex<Seen>>| {
        let seen = seen.lock().expect("no panic");
        (seen.made.clone(), seen.pinned)
    };
    let (seen, _) = run_choosing(|policy| policy.pinning(Pins::Live), [3, 5], calls());
    assert_eq!(state(seen), (vec![2], 2));
    let (seen, _) = run_choosing(|policy| policy.searching(1), [3, 5], calls());
    assert_eq!(state(seen), (vec![0], 0));
}

/// When all fail, the last version assumes nothing.
#[test]
fn the_last_version_assumes_nothing() {
    let (seen, _) = run((0..1000).map(|x| [x, 4, 6]));
    let seen = seen.lock().expect("no panic");
    assert_eq!((&seen.made[..], seen.abandoned), (&[2, 1][..], 2));
    assert_eq!(seen.failed.len() as u64, 2 * MAX_FAILURES);
    assert!(seen.made.len() <= MAX_VERSIONS);
}

/// The profile of a run suggests a reference that is not null. Native code cannot test for it, and
/// the run continues without the assumption.
#[test]
fn an_argument_that_native_code_cannot_compare_is_not_assumed() {
    let text = "
func @f(%r: funcref, %x: i32) -> i32 {
entry:
  %n = ref_is_null.funcref %r
  %m = ref_is_null.funcref %r
  %k = ref_is_null.funcref %r
  %a = add.i32 %n, %m
  %b = add.i32 %a, %k
  %c = add.i32 %b, %x
  return %c
}";
    let module = module(text);
    let func = module.func_named("f").expect("it is there");
    let base = module.body(func).expect("it has a body");
    let bits = osier::ir::reference::of_func(Some(func));
    let at = Point::before(base.first_inst(base.entry()));
    let [value, x] = [0, 1].map(|index| base.arguments()[index]);
    let same = Assumption { at, value, expected: Expected::Is(bits), reason: 0 };
    let seven = Assumption { at, value: x, expected: Expected::Is(7), reason: 1 };
    let engine = engine(Config::default());
    for (assume, made) in [(vec![same, seven], vec![1]), (vec![same], vec![])] {
        let options = Options::traced();
        let mut vm = Vm::new(&engine, &module, Limits::default(), options).expect("instantiated");
        let seen = Arc::new(Mutex::new(Seen::default()));
        let policy = Tiered::new_observed(2, Pipeline::default(), Watch(Arc::clone(&seen)));
        vm.set_tiering(Box::new(policy.speculating(BTreeMap::from([(func, assume)]))));
        for _ in 0..10 {
            let outcome = vm.invoke(func, &[bits, 7], &mut NoHost).expect("the run ends");
            assert_eq!(outcome.returned(), Some([7].as_slice()));
        }
        assert_eq!(seen.lock().expect("no panic").made, made);
    }
}

#[test]
fn a_list_that_is_refused_is_told() {
    let (seen, _) = run_assuming([3, 1 << 40], (0..10).map(|x| [x, 3, 5]));
    let seen = seen.lock().expect("no panic");
    let [SpeculateError::DoesNotFit { assumption: 1, .. }] = seen.refused[..] else {
        panic!("{:?}", seen.refused)
    };
    assert!(seen.made.is_empty() && seen.failed.is_empty());
}

/// A loop that runs long after the assumption before it has failed.
const LONG: &str = "
func @long(%n: i32, %k: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  %start = mul.i32 %k, %k
  jump head(%zero, %start)
head(%i: i32, %sum: i32):
  %s = add.i32 %sum, %i
  %j = add.i32 %i, %one
  %more = ult.i32 %j, %n
  br_if %more, head(%j, %s), done
done:
  return %s
}";

/// After an exit the run is in the interpreter, and its loops may turn hot again. The first call
/// has made them hot before.
#[test]
fn a_loop_is_entered_again_after_an_exit() {
    let module = module(LONG);
    let func = module.func_named("long").expect("it is there");
    let base = module.body(func).expect("it has a body");
    let at = Point::before(base.first_inst(base.entry()));
    let (value, expected) = (base.arguments()[1], Expected::Is(3));
    let three = Assumption { at, value, expected, reason: 0 };
    let engine = engine(Config::default());
    let options = Options::traced();
    let mut vm = Vm::new(&engine, &module, Limits::default(), options).expect("it is instantiated");
    let policy = Tiered::new(2, Pipeline::default()).entering(TableUse::AtLoops);
    vm.set_tiering(Box::new(policy.speculating(BTreeMap::from([(func, vec![three])]))));
    for k in [3, 3, 3, 4, 4] {
        let outcome = vm.invoke(func, &[100, k], &mut NoHost).expect("the run ends");
        let expected = k * k + 99 * 100 / 2;
        assert_eq!(outcome.returned(), Some([expected].as_slice()), "{k}");
    }
    let made = vm.transitions();
    let count =
        |kind| -> u64 { made.iter().filter(|made| made.kind == kind).map(|made| made.count).sum() };
    // The loop of the first call, and the loops of the two failing calls.
    assert_eq!((count(TransitionKind::Down), count(TransitionKind::Up)), (2, 3));
}

/// The slow side repeats a load from above the loop. A version without the slow side has no use of
/// the value above. A version with both sides reuses it.
const LOADS_AGAIN: &str = "memory @m 1
func @f(%n: i32, %p: i32, %most: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  %l = load.i32 @m[%p]
  %s0 = add.i32 %l, %one
  jump head(%zero, %s0)
head(%i: i32, %s: i32):
  %c = ult.i32 %i, %most
  br_if %c, fast, slow
slow:
  %l2 = load.i32 @m[%p]
  %s2 = add.i32 %s, %l2
  jump next(%s2)
fast:
  %s3 = xor.i32 %s, %i
  jump next(%s3)
next(%t: i32):
  %j = add.i32 %i, %one
  %d = ult.i32 %j, %n
  br_if %d, head(%j, %t), done
done:
  return %t
}";

/// An exit omits values that the continuation of the loop reads: the two were accepted apart. The
/// loop stays in the interpreter, and later calls are native.
#[test]
fn a_loop_that_lacks_a_value_stays() {
    let module = module(LOADS_AGAIN);
    let func = module.func_named("f").expect("it is there");
    let base = module.body(func).expect("it has a body");
    let is_branch = |inst: &ir::Inst| base.inst(*inst).opcode == ir::Opcode::BrIf;
    let branch = base.all_insts().find(is_branch).expect("it has one");
    let value = base.inst(branch).args[0];
    let (at, expected) = (Point::before(branch), Expected::Is(1));
    let assume = vec![Assumption { at, value, expected, reason: 1 }];
    let mut vm = vm(&engine(Config::default()), &module);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let policy = Tiered::new_observed(20, Pipeline::default(), Watch(Arc::clone(&seen)));
    vm.set_tiering(Box::new(policy.speculating(BTreeMap::from([(func, assume)]))));
    let mut plain = Machine::new(&module, Limits::default()).expect("it is instantiated");
    for n in std::iter::repeat_n(10, 40).chain([200; 40]) {
        let args = [n, 8, 60];
        let expected = plain.invoke(func, &args, &mut NoHost, &mut NoObserver);
        assert_eq!(vm.invoke(func, &args, &mut NoHost), Ok(expected), "{n} rounds");
    }
    let seen = seen.lock().expect("no panic");
    assert!(!seen.failed.is_empty() && seen.made.contains(&1), "the assumption has failed");
}

/// The state names a value that is not computed yet.
#[test]
fn states_that_do_not_fit_are_refused_once() {
    let module = module(SCALE);
    let (func, base) = module.defined().next().expect("it is there");
    let start = base.first_inst(base.entry());
    let early = base.inst(start).results[0];
    let mut states = FrameStates::new();
    states.set(Point::before(start), FrameState::of_values(0, 0, [(0, early)]));
    let states = BTreeMap::from([(func, Arc::new(states))]);
    let handing = |policy: Tiered<Watch>| policy.handing(states).entering(TableUse::Everywhere);
    let (seen, _) = run_choosing(handing, [3, 5], (0..100).map(|x| [x, 3, 6]));
    let seen = seen.lock().expect("no panic");
    assert!(matches!(seen.refused[..], [SpeculateError::States(_)]), "{:?}", seen.refused);
    assert!(seen.made.is_empty() && seen.failed.is_empty());
}
