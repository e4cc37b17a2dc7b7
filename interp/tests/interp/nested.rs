//! Tests of external functions, of activations that native code takes over, and of nested runs.

use super::support::{add, define, fib, returned, sum};
use check::CheckedEntry;
use interp::{
    EarlyEnd, Effect, FireError, Limits, Machine, Nested, NoHost, NoObserver, Options, Outcome,
    PauseAlways, PauseAtMarks, Program, Resumed, Run, Site, TraceLevel, TransferError, is_poison,
};
use ir::text::parse_module;
use ir::{Func, Inst, InstSpec, Module, Point, TrapKind, Type, Value};
use transition::VersionKey;
use transition::mapping::{Assign, Entry, Operand};

/// Options for the exact tier with and without poison and digests, and for the fast tier.
fn options() -> [Options; 3] {
    let off = TraceLevel::Off;
    let full = TraceLevel::Full;
    let kept = Options { trace: full, ..Options::default() };
    [Options::checked(), kept, Options { trace: off, ..Options::default() }]
}

fn machine(module: &Module, limits: Limits, options: Options) -> Machine {
    Machine::with_options(&Program::new(module), limits, options).expect("the module instantiates")
}

/// Runs the current run to its end, and answers each call of an external function with a nested run
/// of that function.
fn drive(machine: &mut Machine) -> Outcome {
    let mut below: Vec<Nested> = Vec::new();
    let mut outcome = None;
    loop {
        match outcome.take().unwrap_or_else(|| machine.run(&mut NoHost, &mut NoObserver)) {
            Run::Paused => panic!("nobody pauses it"),
            Run::Called { func, args } => match machine.begin_nested(func, &args) {
                Ok(nested) => below.push(nested),
                Err(error) => {
                    assert_eq!(error, TransferError::StackOverflow);
                    let (called, site) = machine.awaited().expect("it waits");
                    assert_eq!(called, func);
                    outcome = Some(Run::Done(machine.end_in_native(EarlyEnd::StackOverflow, site)));
                }
            },
            Run::Done(Outcome::Returned(mut values)) => loop {
                let Some(nested) = below.pop() else { return Outcome::Returned(values) };
                machine.end_nested(nested);
                match machine.return_from_call(&values) {
                    Resumed::InCaller => break,
                    Resumed::Ended(results) => values = results,
                }
            },
            Run::Done(outcome) => {
                for nested in below.drain(..).rev() {
                    machine.end_nested(nested);
                    machine.abandon();
                }
                return outcome;
            }
        }
    }
}

/// Runs a function interpreted and as an external function, and asserts equal outcomes, fuel and
/// traces. `limits` may restrict fuel and depth but not values, because the trace records an
/// external call before its frame is pushed.
fn both(module: &Module, func: Func, args: &[u64], limits: Limits) -> Outcome {
    let mut outcomes = options().map(|options| {
        let mut plain = machine(module, limits, options);
        let mut external = plain.clone();
        external.set_external(func, true);
        assert!(external.is_external(func) && !plain.is_external(func));
        let outcome = plain.invoke(func, args, &mut NoHost, &mut NoObserver);
        external.start(func, args);
        assert_eq!(drive(&mut external), outcome, "{args:?} {limits:?}");
        assert_eq!(external.fuel(), plain.fuel(), "{args:?} {limits:?}");
        assert_eq!(external.trace(), plain.trace(), "{args:?} {limits:?}");
        assert!(external.view().is_none() && external.awaited().is_none());
        outcome
    });
    outcomes.rotate_left(1);
    let [first, second, third] = outcomes;
    assert_eq!((&first, &second), (&second, &third));
    first
}

/// In this recursion every call passes through the engine and returns to the interpreter. It works
/// with any amount of fuel and any depth limit.
#[test]
fn recursion_through_the_engine() {
    let (module, fib) = fib();
    assert_eq!(both(&module, fib, &[15], Limits::default()), returned(&[610]));
    let (mut ends, mut short) = (0, 0);
    for fuel in 0..200 {
        let outcome = both(&module, fib, &[5], Limits { fuel, ..Limits::default() });
        ends += u64::from(outcome == returned(&[5]));
        short += u64::from(matches!(outcome, Outcome::OutOfFuel(_)));
    }
    assert!(ends > 50 && short > 50, "{ends} returned, {short} cut short");
    for call_depth in 0..8 {
        let outcome = both(&module, fib, &[6], Limits { call_depth, ..Limits::default() });
        assert_eq!(outcome == returned(&[8]), call_depth >= 6, "{outcome:?}");
        assert_eq!(matches!(outcome, Outcome::StackOverflow(_)), call_depth < 6, "{outcome:?}");
    }
}

/// The value limit counts the values of suspended runs too.
#[test]
fn values_of_suspended_runs_count() {
    let (module, fib) = fib();
    for options in options() {
        for stack_values in (0..120).step_by(7) {
            let limits = Limits { stack_values, ..Limits::default() };
            let mut plain = machine(&module, limits, options);
            let mut external = plain.clone();
            external.set_external(fib, true);
            let outcome = plain.invoke(fib, &[7], &mut NoHost, &mut NoObserver);
            external.start(fib, &[7]);
            assert_eq!(drive(&mut external), outcome, "{stack_values}");
        }
    }
}

const PAIRS: &str = r"
table @t 1
elem @t 0 [@pair]
func @pair(%a: i32, %b: i32) -> (i32, i32) {
entry:
  %sum = add.i32 %a, %b
  %difference = sub.i32 %a, %b
  return %sum, %difference
}
func @outer(%x: i32) -> (i32, i32) {
entry:
  %zero = const.i32 0
  jump head(%zero, %x)
head(%i: i32, %acc: i32):
  %one = const.i32 1
  %j = add.i32 %i, %one
  %a, %b = call @pair(%acc, %j)
  %c, %d = call_indirect @t (i32, i32) -> (i32, i32) [%zero](%a, %b)
  %next = xor.i32 %c, %d
  %three = const.i32 3
  %more = ult.i32 %j, %three
  br_if %more, head(%j, %next), done
done:
  return %next, %acc
}
func @inner() {
entry:
  trap user3
}
func @middle() {
entry:
  call @inner()
  return
}
";

/// `outer` calls `pair` directly and through a table in a loop of three rounds, and keeps values
/// across the calls. `middle` traps in a callee.
fn pairs() -> (Module, Func, Func) {
    let module = parse_module(PAIRS).unwrap_or_else(|errors| panic!("{errors:?}"));
    let func = |name| module.lookup(name).expect("the text has it");
    let (outer, pair) = (func("outer"), func("pair"));
    (module, outer, pair)
}

/// Direct and indirect calls of an external function with several results, in a loop whose values
/// share slots in fast code.
#[test]
fn external_calls_of_both_kinds() {
    let (module, outer, pair) = pairs();
    for options in options() {
        let mut plain = machine(&module, Limits::default(), options);
        let mut external = plain.clone();
        external.set_external(pair, true);
        let outcome = plain.invoke(outer, &[5], &mut NoHost, &mut NoObserver);
        assert!(outcome.returned().is_some());
        external.start(outer, &[5]);
        assert_eq!(drive(&mut external), outcome);
        assert_eq!((external.trace(), external.fuel()), (plain.trace(), plain.fuel()));
        // A function that is external no longer is called as before. A new current version of an
        // external function stays external.
        external.set_external(pair, false);
        assert_eq!(external.invoke(outer, &[5], &mut NoHost, &mut NoObserver), outcome);
        external.set_external(pair, true);
        let version = external.current(pair).expect("it is not imported");
        external.set_current(pair, version);
        assert!(external.is_external(pair));
        assert_eq!(external.current(pair), Some(version));
    }
}

/// While a run waits, a clone may replace it, and an observer may start or stop watching it. No
/// value is lost.
#[test]
fn waiting_runs_change_tiers() {
    let (module, outer, pair) = pairs();
    let answer = |args: &[u64]| -> [u64; 2] {
        let [a, b] = [args[0] as u32, args[1] as u32];
        [a.wrapping_add(b).into(), a.wrapping_sub(b).into()]
    };
    for options in options() {
        let expected = machine(&module, Limits::default(), options).invoke(
            outer,
            &[5],
            &mut NoHost,
            &mut NoObserver,
        );
        // Bit `n` tells whether the run is observed after `n` calls.
        for watched in 0..128u32 {
            let mut machine = machine(&module, Limits::default(), options);
            machine.set_external(pair, true);
            machine.start(outer, &[5]);
            let mut calls = 0;
            let outcome = loop {
                let run = match watched >> calls & 1 {
                    0 => machine.run(&mut NoHost, &mut NoObserver),
                    _ => machine.run(&mut NoHost, &mut PauseAlways),
                };
                match run {
                    Run::Paused => assert!(machine.view().is_some()),
                    Run::Called { func, args } => {
                        assert_eq!(func, pair);
                        calls += 1;
                        assert!(machine.view().is_none(), "it is not paused");
                        machine = machine.clone();
                        // The machine clears bits outside the types.
                        let results = answer(&args).map(|bits| bits | 1 << 50);
                        assert_eq!(machine.return_from_call(&results), Resumed::InCaller);
                    }
                    Run::Done(outcome) => break outcome,
                }
            };
            assert_eq!((outcome, calls), (expected.clone(), 6), "{watched:b}");
        }
    }
}

/// A run that starts with an external function is a call without a caller. Its trace is that of the
/// interpreted function.
#[test]
fn runs_that_start_with_an_external_function() {
    let sum = sum();
    for options in options() {
        let mut machine = machine(&sum.module, Limits::default(), options);
        machine.set_external(sum.func, true);
        machine.start(sum.func, &[4 | 1 << 40]);
        assert_eq!(
            machine.run(&mut NoHost, &mut NoObserver),
            Run::Called { func: sum.func, args: vec![4] }
        );
        let site = machine.site(sum.func, None);
        assert_eq!(machine.awaited(), Some((sum.func, site)));
        assert_eq!(machine.return_from_call(&[6]), Resumed::Ended(vec![6]));
        let effects: Vec<Effect> =
            machine.trace().effects().iter().map(|(effect, _)| effect.clone()).collect();
        let expected = if machine.is_tracing() {
            vec![Effect::Return { results: vec![6] }]
        } else {
            Vec::new()
        };
        assert_eq!(effects, expected);
    }
}

/// A trap in native code ends the run at its site and enters the trace. The machine is usable
/// afterwards.
#[test]
fn a_trap_in_native_code_ends_the_run() {
    let (module, outer, pair) = pairs();
    for options in options() {
        let mut machine = machine(&module, Limits::default(), options);
        machine.set_external(pair, true);
        machine.start(outer, &[5]);
        assert!(matches!(machine.run(&mut NoHost, &mut NoObserver), Run::Called { .. }));
        let site = Site { func: pair, function: "pair".to_owned(), inst: None };
        let end = EarlyEnd::Trap(TrapKind::Unreachable);
        let outcome = machine.end_in_native(end, site.clone());
        assert_eq!(outcome, Outcome::Trapped { kind: TrapKind::Unreachable, site });
        assert!(machine.view().is_none() && machine.awaited().is_none());
        let last = machine.trace().effects().last().map(|(effect, _)| effect.clone());
        assert_eq!(last, machine.is_tracing().then_some(Effect::Trap(TrapKind::Unreachable)));
        machine.start(outer, &[5]);
        assert!(matches!(drive(&mut machine), Outcome::Returned(_)));
    }
}

/// Runs with an observer to the given visit of an instruction, counted from 1.
fn pause_at(machine: &mut Machine, func: Func, inst: Inst, visit: usize) {
    let version = machine.current(func).expect("it is not imported");
    machine.mark(version, [inst]);
    for _ in 0..visit {
        assert_eq!(machine.run(&mut NoHost, &mut PauseAtMarks), Run::Paused);
    }
    machine.unmark(version, [inst]);
}

/// `twice(n)` is `sum(n) + sum(n)`, by two calls of `sum`. Also returns the addition in the loop of
/// `sum`.
fn twice() -> (super::support::Sum, Func, Inst) {
    let mut sum = sum();
    let callee = sum.func;
    let twice = define(&mut sum.module, "twice", &[Type::I32], &[Type::I32], |b, args| {
        let x = b.insert_value(InstSpec::call(callee, args, &[Type::I32]));
        let y = b.insert_value(InstSpec::call(callee, args, &[Type::I32]));
        let both = add(b, x, y);
        b.ret(&[both]);
    });
    let at = sum
        .module
        .body(sum.func)
        .expect("it is defined")
        .defining_inst(sum.s2)
        .expect("it is an addition");
    (sum, twice, at)
}

/// Native code takes over the innermost activation in the middle of its loop, and the caller
/// receives the result of native code.
#[test]
fn activations_are_left_in_the_middle() {
    let (sum, twice, at) = twice();
    for options in options() {
        let mut plain = machine(&sum.module, Limits::default(), options);
        let outcome = plain.invoke(twice, &[5], &mut NoHost, &mut NoObserver);
        assert_eq!(outcome, returned(&[20]));
        for native_for_the_rest in [false, true] {
            let mut machine = machine(&sum.module, Limits::default(), options);
            assert_eq!(machine.leave_activation(), None, "no run is under way");
            machine.start(twice, &[5]);
            assert_eq!(machine.leave_activation(), None, "it is not paused");
            pause_at(&mut machine, sum.func, at, 3);
            let view = machine.view().expect("it is paused");
            let (i, s, n) = (view.value(sum.i), view.value(sum.s), view.value(sum.n));
            assert_eq!((view.func(), view.depth(), i, s), (sum.func, 2, 2, 1));
            assert_eq!(machine.leave_activation(), Some(sum.func));
            let (func, site) = machine.awaited().expect("it waits");
            assert_eq!((func, site.func), (sum.func, twice));
            assert_eq!(machine.return_from_call(&[s + (i..n).sum::<u64>()]), Resumed::InCaller);
            if native_for_the_rest {
                pause_at(&mut machine, sum.func, at, 1);
                assert_eq!(machine.leave_activation(), Some(sum.func));
                assert_eq!(machine.return_from_call(&[10]), Resumed::InCaller);
            }
            assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Done(outcome.clone()));
            assert_eq!(machine.trace(), plain.trace());
        }
    }
}

/// Native code takes over an activation without a caller, and its results are those of the run.
#[test]
fn the_outermost_activation_is_left() {
    let (sum, _, at) = twice();
    for options in options() {
        let mut plain = machine(&sum.module, Limits::default(), options);
        plain.invoke(sum.func, &[5], &mut NoHost, &mut NoObserver);
        let mut machine = machine(&sum.module, Limits::default(), options);
        machine.start(sum.func, &[5]);
        pause_at(&mut machine, sum.func, at, 2);
        assert_eq!(machine.leave_activation(), Some(sum.func));
        assert_eq!(machine.return_from_call(&[10]), Resumed::Ended(vec![10]));
        assert_eq!(machine.trace(), plain.trace());
        assert!(machine.view().is_none());
    }
}

/// An entry without steps that lands at a point with its own contents in each of these values.
fn landing(target: Point, values: &[Value]) -> Entry {
    let assigns = values.iter().map(|v| Assign { value: *v, from: Operand::Source(*v) }).collect();
    let (steps, replays, requires, kept) = (Vec::new(), Vec::new(), values.to_vec(), Vec::new());
    Entry { target, steps, replays, assigns, requires, kept }
}

/// An entry that nobody has proved, claimed to leave from its landing point in the same version.
fn claimed<'m>(module: &Module, func: Func, entry: &'m Entry) -> CheckedEntry<'m> {
    let key = VersionKey::of(module.body(func).expect("it is defined"));
    CheckedEntry::unproved((key, key), entry.target, entry)
}

/// Native code takes over an activation, executes a round, and then side-exits to the interpreter
/// through a nested run. The outcome and the trace are those of a plain run.
#[test]
fn native_code_goes_back_in_the_middle() {
    let (sum, twice, at) = twice();
    let point = Point::before(at);
    for options in options() {
        let mut plain = machine(&sum.module, Limits::default(), options);
        let outcome = plain.invoke(twice, &[5], &mut NoHost, &mut NoObserver);
        let mut machine = machine(&sum.module, Limits::default(), options);
        let version = machine.current(sum.func).expect("it is not imported");
        machine.start(twice, &[5]);
        pause_at(&mut machine, sum.func, at, 2);
        assert_eq!(machine.leave_activation(), Some(sum.func));
        let from = (VersionKey::of(sum.module.body(sum.func).expect("it is defined")), point);
        // Native code took over with i = 1 and s = 0. After one round, i is 2 and s is 1.
        let entry = landing(point, &[sum.n, sum.i, sum.s]);
        let read = |value| {
            [(sum.n, 5), (sum.i, 2), (sum.s, 1)]
                .iter()
                .find(|v| v.0 == value)
                .expect("it is asked for")
                .1
        };
        let nested = machine
            .begin_nested_at(version, claimed(&sum.module, sum.func, &entry), from, read)
            .expect("there is room");
        let view = machine.view().expect("it is paused");
        assert_eq!((view.inst(), view.depth(), view.value(sum.i)), (at, 2, 2));
        assert!(is_poison(view.value(sum.i2)));
        machine.mark(version, [at]);
        assert_eq!(machine.run(&mut NoHost, &mut PauseAtMarks), Run::Paused);
        assert_eq!(
            machine.view().expect("it is paused").value(sum.i),
            3,
            "the landing point is not asked about"
        );
        let Run::Done(Outcome::Returned(values)) = machine.run(&mut NoHost, &mut NoObserver) else {
            panic!("it returns")
        };
        assert_eq!(values, [10]);
        machine.end_nested(nested);
        assert_eq!(machine.return_from_call(&values), Resumed::InCaller);
        assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Done(outcome));
        assert_eq!(machine.trace(), plain.trace());
    }
}

/// The fast loop executes the caller up to the call, and loses dead values. An entry with kept
/// values is then refused.
#[test]
fn kept_values_are_not_read_behind_the_fast_loop() {
    let (sum, twice, _) = twice();
    let function = sum.module.body(twice).expect("it is defined");
    let end = function.terminator(function.blocks().last().expect("it has a block"));
    let point = Point::before(end);
    let off = Options { trace: TraceLevel::Off, ..Options::default() };
    for (options, is_fast) in [(off, true), (Options::checked(), false)] {
        let mut machine = machine(&sum.module, Limits::default(), options);
        let version = machine.current(twice).expect("it is not imported");
        machine.set_external(sum.func, true);
        machine.start(twice, &[5]);
        assert!(matches!(machine.run(&mut NoHost, &mut NoObserver), Run::Called { .. }));
        assert_eq!(machine.return_from_call(&[10]), Resumed::InCaller);
        machine.mark(version, [end]);
        while machine.run(&mut NoHost, &mut PauseAtMarks) != Run::Paused {
            assert_eq!(machine.return_from_call(&[10]), Resumed::InCaller);
        }
        let kept = function.arguments()[0];
        let mut entry = landing(point, &[kept]);
        entry.kept = vec![kept];
        let fired = machine.fire(version, claimed(&sum.module, twice, &entry));
        assert_eq!(fired == Err(FireError::NotKept), is_fast, "{fired:?}");
    }
}

#[test]
fn nested_runs_that_cannot_begin() {
    let (sum, twice, at) = twice();
    let limits = Limits { call_depth: 1, ..Limits::default() };
    let mut machine = machine(&sum.module, limits, Options::checked());
    let version = machine.current(sum.func).expect("it is not imported");
    machine.set_external(sum.func, true);
    machine.start(sum.func, &[3]);
    assert!(matches!(machine.run(&mut NoHost, &mut NoObserver), Run::Called { .. }));
    let key = VersionKey::of(sum.module.body(sum.func).expect("it is defined"));
    let begin = |machine: &mut Machine, point, values: &[Value]| {
        let entry = landing(point, values);
        machine
            .begin_nested_at(version, claimed(&sum.module, sum.func, &entry), (key, point), |_| 1)
            .map(|nested| machine.end_nested(nested))
    };
    let refused = FireError::Transfer;
    let nowhere = Point::before(Inst::from_u32(1000));
    let no_point = refused(TransferError::NoSuchPoint(nowhere));
    assert_eq!(begin(&mut machine, nowhere, &[]), Err(no_point));
    let nothing = Value::from_u32(1000);
    let no_value = refused(TransferError::NoSuchValue(nothing));
    assert_eq!(begin(&mut machine, Point::before(at), &[nothing]), Err(no_value));
    // The entry leads to another function.
    let entry = landing(Point::before(at), &[]);
    let others = claimed(&sum.module, twice, &entry);
    let point = Point::before(at);
    let nested = machine.begin_nested_at(version, others, (others.source(), point), |_| 1);
    assert_eq!(nested.map(|nested| machine.end_nested(nested)), Err(FireError::OtherTarget));
    // The engine leaves another version, or another point, than the entry starts at.
    let own = claimed(&sum.module, sum.func, &entry);
    let nested = machine.begin_nested_at(version, own, (others.source(), point), |_| 1);
    assert_eq!(nested.map(|nested| machine.end_nested(nested)), Err(FireError::OtherSource));
    let nested = machine.begin_nested_at(version, own, (key, nowhere), |_| 1);
    let elsewhere = Err(FireError::OtherPoint(nowhere));
    assert_eq!(nested.map(|nested| machine.end_nested(nested)), elsewhere);
    // The limit allows one activation and no nested one.
    let nested = machine.begin_nested(twice, &[3]).expect("there is room for one");
    let overflow = refused(TransferError::StackOverflow);
    assert_eq!(begin(&mut machine, Point::before(at), &[]), Err(overflow));
    let inner = machine.begin_nested(twice, &[3]);
    assert_eq!(inner.map(|nested| machine.end_nested(nested)), Err(TransferError::StackOverflow));
    machine.end_nested(nested);
    assert_eq!(begin(&mut machine, Point::before(at), &[]), Ok(()));
    assert_eq!(machine.return_from_call(&[3]), Resumed::Ended(vec![3]));
}

/// A trap in a nested run drops only the activations of that run, and enters the trace once. The
/// run below may be dropped or may continue.
#[test]
fn a_trap_in_a_nested_run() {
    let (module, outer, pair) = pairs();
    let middle = module.lookup("middle").expect("the text has it");
    for options in options() {
        let mut machine = machine(&module, Limits::default(), options);
        let expected = machine.invoke(outer, &[5], &mut NoHost, &mut NoObserver);
        machine.set_external(pair, true);
        machine.start(outer, &[5]);
        assert!(matches!(machine.run(&mut NoHost, &mut NoObserver), Run::Called { .. }));
        let before = machine.trace().count();
        let nested = machine.begin_nested(middle, &[]).expect("there is room");
        let Run::Done(outcome) = machine.run(&mut NoHost, &mut NoObserver) else {
            panic!("it traps")
        };
        assert_eq!(outcome.trap(), Some(TrapKind::User(3)));
        // The two entries are the call of the inner function and the trap.
        assert_eq!(machine.trace().count() - before, if machine.is_tracing() { 2 } else { 0 });
        machine.end_nested(nested);
        let count = machine.trace().count();
        let mut other = machine.clone();
        other.abandon();
        assert!(other.view().is_none() && other.awaited().is_none());
        assert_eq!(other.trace().count(), count);
        // Native code may also continue after the trap.
        assert_eq!(machine.awaited().map(|(func, _)| func), Some(pair));
        assert_eq!(machine.return_from_call(&[6, 4]), Resumed::InCaller);
        assert_eq!(drive(&mut machine), expected);
    }
}

/// A nested run records neither the call nor the return of its first activation. The caller of
/// `begin_nested` does.
#[test]
fn nested_runs_leave_their_call_to_native_code() {
    let (sum, twice, _) = twice();
    let mut machine = machine(&sum.module, Limits::default(), Options::checked());
    machine.trace_call(twice, &[3]);
    let nested = machine.begin_nested(twice, &[3]).expect("there is room");
    assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Done(returned(&[6])));
    machine.end_nested(nested);
    machine.trace_return(&[6]);
    let effects: Vec<Effect> =
        machine.trace().effects().iter().map(|(effect, _)| effect.clone()).collect();
    let call = |func, arg| Effect::Call { func, args: vec![arg] };
    let back = |result| Effect::Return { results: vec![result] };
    let expected =
        [call(twice, 3), call(sum.func, 3), back(3), call(sum.func, 3), back(3), back(6)];
    assert_eq!(effects, expected);
}

/// Digests in the trace cover the writes of native code while a run waits.
#[test]
fn writes_while_a_run_waits_are_in_the_digests() {
    let (mut module, outer, pair) = pairs();
    super::support::add_memory(&mut module, "memory", 1, None);
    let mut machine = machine(&module, Limits::default(), Options::checked());
    machine.set_external(pair, true);
    machine.start(outer, &[5]);
    assert!(matches!(machine.run(&mut NoHost, &mut NoObserver), Run::Called { .. }));
    machine.memory_bytes_mut(ir::Memory::from_u32(0))[7] = 1;
    machine.return_from_call(&[6, 4]);
    assert_eq!(
        machine.trace().effects().last().map(|(_, digest)| *digest),
        Some(machine.computed_memory_digest())
    );
    machine.memory_bytes_mut(ir::Memory::from_u32(0))[7] = 2;
    let nested = machine.begin_nested(outer, &[5]).expect("there is room");
    assert!(matches!(machine.run(&mut NoHost, &mut NoObserver), Run::Called { .. }));
    assert_eq!(
        machine.trace().effects().last().map(|(_, digest)| *digest),
        Some(machine.computed_memory_digest())
    );
    machine.end_nested(nested);
}

#[test]
#[should_panic(expected = "the run waits for the results of func0")]
fn a_waiting_run_does_not_go_on() {
    let (module, outer, pair) = pairs();
    let mut machine = machine(&module, Limits::default(), Options::default());
    machine.set_external(pair, true);
    machine.start(outer, &[5]);
    assert!(matches!(machine.run(&mut NoHost, &mut NoObserver), Run::Called { .. }));
    assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Paused, "not reached");
}

#[test]
#[should_panic(expected = "`invoke` cannot run func0")]
fn invoke_cannot_run_external_functions() {
    let (module, outer, pair) = pairs();
    let mut machine = machine(&module, Limits::default(), Options::default());
    machine.set_external(pair, true);
    machine.invoke(outer, &[5], &mut NoHost, &mut NoObserver);
}

#[test]
#[should_panic(expected = "only the innermost nested run can end")]
fn nested_runs_end_in_order() {
    let (module, outer, _) = pairs();
    let mut machine = machine(&module, Limits::default(), Options::default());
    let first = machine.begin_nested(outer, &[5]).expect("there is room");
    let second = machine.begin_nested(outer, &[5]).expect("there is room");
    machine.end_nested(first);
    machine.end_nested(second);
}

#[test]
#[should_panic(expected = "no run waits for the results of a call")]
fn results_without_a_waiting_run() {
    let (module, outer, _) = pairs();
    let mut machine = machine(&module, Limits::default(), Options::default());
    machine.start(outer, &[5]);
    assert_eq!(machine.return_from_call(&[1, 2]), Resumed::InCaller, "not reached");
}
