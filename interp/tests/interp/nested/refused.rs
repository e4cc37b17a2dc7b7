//! Nested runs that cannot begin, and wrong orders of calls.

use super::{claimed, landing, machine, pairs, twice};
use interp::{
    FireError, Limits, Machine, NoHost, NoObserver, Options, Resumed, Run, TransferError,
};
use ir::{Inst, Point, Value};
use transition::VersionKey;

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
            .begin_nested_at(version, claimed(&sum.module, sum.func, &entry), key, point, |_| 1)
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
    let nested = machine.begin_nested_at(version, others, others.source(), point, |_| 1);
    assert_eq!(nested.map(|nested| machine.end_nested(nested)), Err(FireError::OtherTarget));
    // The engine leaves another version, or another point, than the entry starts at.
    let own = claimed(&sum.module, sum.func, &entry);
    let nested = machine.begin_nested_at(version, own, others.source(), point, |_| 1);
    assert_eq!(nested.map(|nested| machine.end_nested(nested)), Err(FireError::OtherSource));
    let nested = machine.begin_nested_at(version, own, key, nowhere, |_| 1);
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

#[test]
#[should_panic(expected = "the run waits for the results of func0")]
fn a_waiting_run_does_not_continue() {
    let (module, outer, pair) = pairs();
    let mut machine = machine(&module, Limits::default(), Options::traced());
    machine.set_external(pair, true);
    machine.start(outer, &[5]);
    assert!(matches!(machine.run(&mut NoHost, &mut NoObserver), Run::Called { .. }));
    assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Paused, "not reached");
}

#[test]
#[should_panic(expected = "a run to its end cannot run func0")]
fn invoke_cannot_run_external_functions() {
    let (module, outer, pair) = pairs();
    let mut machine = machine(&module, Limits::default(), Options::traced());
    machine.set_external(pair, true);
    machine.invoke(outer, &[5], &mut NoHost, &mut NoObserver);
}

#[test]
#[should_panic(expected = "only the innermost nested run can end")]
fn nested_runs_end_in_order() {
    let (module, outer, _) = pairs();
    let mut machine = machine(&module, Limits::default(), Options::traced());
    let first = machine.begin_nested(outer, &[5]).expect("there is room");
    let second = machine.begin_nested(outer, &[5]).expect("there is room");
    machine.end_nested(first);
    machine.end_nested(second);
}

#[test]
#[should_panic(expected = "no run waits for the results of a call")]
fn results_without_a_waiting_run() {
    let (module, outer, _) = pairs();
    let mut machine = machine(&module, Limits::default(), Options::traced());
    machine.start(outer, &[5]);
    assert_eq!(machine.return_from_call(&[1, 2]), Resumed::InCaller, "not reached");
}
