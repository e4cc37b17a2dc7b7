//! Activations that an engine takes over, and gives back, in the middle.

use super::{claimed, landing, machine, options, pause_at, twice};
use crate::support::returned;
use interp::{
    FireError, Limits, NoHost, NoObserver, Options, Outcome, PauseAtMarks, Resumed, Run, is_poison,
};
use ir::Point;
use transition::VersionKey;

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

/// Native code takes over an activation without a caller, and its results are the results of the
/// run.
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

/// Native code takes over an activation, executes a round, and then side-exits to the interpreter
/// through a nested run. The outcome and the trace equal the outcome and the trace of a plain run.
#[test]
fn native_code_side_exits_in_the_middle() {
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
        let from = VersionKey::of(sum.module.body(sum.func).expect("it is defined"));
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
            .begin_nested_at(version, claimed(&sum.module, sum.func, &entry), from, point, read)
            .expect("there is room");
        let view = machine.view().expect("it is paused");
        assert_eq!((view.inst(), view.depth(), view.value(sum.i)), (at, 2, 2));
        assert!(is_poison(view.value(sum.i2)));
        machine.mark(version, [at]);
        assert_eq!(machine.run(&mut NoHost, &mut PauseAtMarks), Run::Paused);
        assert_eq!(
            machine.view().expect("it is paused").value(sum.i),
            3,
            "the observer skips the landing point"
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

/// The fast loop executes the caller up to the call, and loses dead values. The machine then
/// rejects an entry with kept values. After the exact loop, it fires the same entry.
#[test]
fn kept_values_are_not_read_after_the_fast_loop() {
    let (sum, twice, _) = twice();
    let function = sum.module.body(twice).expect("it is defined");
    let end = function.terminator(function.blocks().last().expect("it has a block"));
    let point = Point::before(end);
    let off = Options::default();
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
        assert_eq!(fired, if is_fast { Err(FireError::NotKept) } else { Ok(point) });
    }
}
