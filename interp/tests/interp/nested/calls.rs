//! Calls between the interpreter and an engine, in both directions.

use super::{both, drive, machine, options, pairs, twice};
use crate::support::{fib, returned, sum};
use interp::{
    EarlyEnd, Effect, Limits, NoHost, NoObserver, Options, Outcome, PauseAlways, Resumed, Run, Site,
};
use ir::TrapKind;

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
                    Run::Failed { .. } => panic!("it assumes nothing"),
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

/// A run that starts with an external function is a call without a caller. Its trace equals the
/// trace of the interpreted function.
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
        let (kind, operand) = (TrapKind::Unreachable, Some(3));
        let end = EarlyEnd::Trap { kind, operand };
        let outcome = machine.end_in_native(end, site.clone());
        assert_eq!(outcome, Outcome::Trapped { kind, operand, site });
        assert!(machine.view().is_none() && machine.awaited().is_none());
        let last = machine.trace().effects().last().map(|(effect, _)| effect.clone());
        assert_eq!(last, machine.is_tracing().then_some(Effect::Trap(kind, operand)));
        machine.start(outer, &[5]);
        assert!(matches!(drive(&mut machine), Outcome::Returned(_)));
    }
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
    crate::support::add_memory(&mut module, "memory", 1, None);
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
