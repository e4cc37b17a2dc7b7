//! Tests of observers, marks, pauses and transfers.

use super::support::{fib, machine, returned, sum, sum_cost};
use check::Unproved;
use cranelift_entity::EntityRef;
use interp::{
    Control, Limits, Machine, NoHost, NoObserver, Observer, PauseAlways, PauseAtMarks, Run, Scope,
    TransferError, View, is_poison,
};
use ir::{Inst, Module, Point, Value};

/// Applies a function to the view before every instruction, and collects the results.
struct Collect<F> {
    look: F,
    seen: Vec<(u64, Inst)>,
}

impl<F: FnMut(&View<'_>) -> u64> Observer for Collect<F> {
    const SCOPE: Scope = Scope::Everything;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        assert_eq!(view.inst(), inst);
        self.seen.push(((self.look)(view), inst));
        Control::Continue
    }
}

fn collect<F: FnMut(&View<'_>) -> u64>(look: F) -> Collect<F> {
    Collect { look, seen: Vec::new() }
}

#[test]
fn an_observer_is_called_once_before_every_instruction() {
    let sum = sum();
    let mut observer = collect(|view| view.fuel());
    let limits = Limits { fuel: 1000, ..Limits::default() };
    let outcome = machine(&sum.module, limits).invoke(sum.func, &[2], &mut NoHost, &mut observer);
    assert_eq!(outcome, returned(&[1]));
    let function = sum.module.body(sum.func).expect("it is defined");
    let blocks: Vec<Vec<Inst>> =
        function.blocks().map(|b| function.block_insts(b).collect()).collect();
    let path = [0, 1, 2, 1, 2, 1, 3];
    let expected: Vec<Inst> = path.iter().flat_map(|b| blocks[*b].iter().copied()).collect();
    assert_eq!(expected.len() as u64, sum_cost(2));
    let fuel: Vec<u64> = (0..sum_cost(2)).map(|used| 1000 - used).collect();
    assert_eq!(observer.seen, fuel.into_iter().zip(expected).collect::<Vec<_>>());
}

/// An observed run has the same result, fuel and effects as an unobserved one.
#[test]
fn watching_changes_nothing() {
    let (module, fib) = fib();
    let mut plain = machine(&module, Limits::default());
    let mut watched = machine(&module, Limits::default());
    let outcome = plain.invoke(fib, &[12], &mut NoHost, &mut NoObserver);
    assert_eq!(outcome, returned(&[144]));
    assert_eq!(watched.invoke(fib, &[12], &mut NoHost, &mut PauseAlways), outcome);
    assert_eq!(plain.fuel(), watched.fuel());
    assert_eq!(plain.trace(), watched.trace());
}

#[test]
fn values_can_be_read_wherever_they_are_available() {
    let sum = sum();
    let (i, s, i2, n) = (sum.i, sum.s, sum.i2, sum.n);
    let function = sum.module.body(sum.func).expect("it is defined");
    let increment = function.defining_inst(i2).expect("it is an addition");
    let jump = function.next_inst(increment).expect("a jump follows");
    // Before the jump, `i` and `s` are dead, but still readable.
    let mut observer = collect(|view| {
        view.value(n) << 24 | view.value(i) << 16 | view.value(s) << 8 | (view.value(i2) & 0xff)
    });
    machine(&sum.module, Limits::default()).invoke(sum.func, &[4], &mut NoHost, &mut observer);
    let seen: Vec<u64> =
        observer.seen.iter().filter(|(_, at)| *at == jump).map(|(value, _)| *value).collect();
    assert_eq!(seen, [0x0400_0001, 0x0401_0002, 0x0402_0103, 0x0403_0304]);
}

#[test]
fn activations_are_numbered_and_know_their_depth() {
    let (module, fib) = fib();
    let mut numbers = Vec::new();
    let mut observer = collect(|view| {
        assert_eq!(view.func(), fib);
        let this = (view.activation(), view.depth());
        if numbers.last() != Some(&this) {
            numbers.push(this);
        }
        0
    });
    machine(&module, Limits::default()).invoke(fib, &[3], &mut NoHost, &mut observer);
    // `fib(3)` calls `fib(2)`, which calls `fib(1)` and `fib(0)`; then it calls `fib(1)`.
    assert_eq!(numbers, [(0, 1), (1, 2), (2, 3), (1, 2), (3, 3), (1, 2), (0, 1), (4, 2), (0, 1)]);
}

#[test]
fn marks_choose_where_a_run_pauses() {
    let sum = sum();
    let function = sum.module.body(sum.func).expect("it is defined");
    let mark = function.defining_inst(sum.s2).expect("it is an addition");
    let mut machine = machine(&sum.module, Limits::default());
    let version = machine.current(sum.func).expect("it is not imported");
    let stops = |machine: &mut Machine| {
        machine.start(sum.func, &[4]);
        let mut stops = Vec::new();
        loop {
            match machine.run(&mut NoHost, &mut PauseAtMarks) {
                Run::Called { .. } | Run::Failed { .. } => {
                    panic!("nothing runs elsewhere or fails")
                }
                Run::Paused => {
                    let view = machine.view().expect("it is paused");
                    assert_eq!(view.inst(), mark);
                    stops.push(view.value(sum.i));
                }
                Run::Done(outcome) => {
                    assert_eq!(outcome, returned(&[6]));
                    return stops;
                }
            }
        }
    };
    assert_eq!(stops(&mut machine), [] as [u64; 0]);
    machine.mark(version, [mark]);
    assert_eq!(stops(&mut machine), [0, 1, 2, 3]);
    // Marks belong to one machine, and observers of another scope ignore them.
    let mut other = super::support::machine(&sum.module, Limits::default());
    assert_eq!(stops(&mut other), [] as [u64; 0]);
    assert_eq!(machine.invoke(sum.func, &[4], &mut NoHost, &mut NoObserver), returned(&[6]));
    machine.unmark(version, [mark]);
    assert_eq!(stops(&mut machine), [] as [u64; 0]);
}

/// A paused run may continue unobserved, and starting another run drops it.
#[test]
fn paused_runs_continue_or_are_dropped() {
    let sum = sum();
    let mut machine = machine(&sum.module, Limits::default());
    machine.start(sum.func, &[10]);
    for _ in 0..20 {
        assert_eq!(machine.run(&mut NoHost, &mut PauseAlways), Run::Paused);
    }
    assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Done(returned(&[45])));
    machine.start(sum.func, &[10]);
    assert_eq!(machine.run(&mut NoHost, &mut PauseAlways), Run::Paused);
    assert_eq!(machine.invoke(sum.func, &[3], &mut NoHost, &mut NoObserver), returned(&[3]));
}

/// Pauses before the given visit of an instruction, counted from 0.
fn pause_at(machine: &mut Machine, inst: Inst, visit: usize) {
    let mut visits = 0;
    loop {
        assert_eq!(machine.run(&mut NoHost, &mut PauseAlways), Run::Paused, "the visit is reached");
        if machine.view().expect("it is paused").inst() == inst {
            if visits == visit {
                return;
            }
            visits += 1;
        }
    }
}

#[test]
fn a_transfer_keeps_exactly_the_assigned_values() {
    let sum = sum();
    let function = sum.module.body(sum.func).expect("it is defined");
    let at = function.defining_inst(sum.s2).expect("it is an addition");
    let mut machine = machine(&sum.module, Limits::default());
    let copy = machine.add_version(&sum.module, sum.func, function);
    machine.start(sum.func, &[5]);
    pause_at(&mut machine, at, 2);
    let before = machine.view().expect("it is paused");
    let (activation, fuel) = (before.activation(), before.fuel());
    assert_eq!((before.value(sum.i), before.value(sum.s)), (2, 1));
    machine
        .transfer(
            copy,
            Point::before(at),
            &[(sum.s, 1000), (sum.i, 3), (sum.n, 5)],
            Unproved::claim(),
        )
        .expect("it fits");
    let after = machine.view().expect("it is paused");
    assert_eq!(
        (after.version(), after.inst(), after.activation(), after.fuel()),
        (copy, at, activation, fuel)
    );
    assert_eq!((after.value(sum.i), after.value(sum.s), after.value(sum.n)), (3, 1000, 5));
    assert!(is_poison(after.value(sum.i2)));
    assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Done(returned(&[1007])));
}

/// Values that a transfer does not assign are poison, even if the old frame held values in their
/// slots.
#[test]
fn values_left_out_of_a_transfer_are_poison() {
    let sum = sum();
    let function = sum.module.body(sum.func).expect("it is defined");
    let at = function.defining_inst(sum.s2).expect("it is an addition");
    let mut machine = machine(&sum.module, Limits::default());
    let version = machine.current(sum.func).expect("it is not imported");
    machine.start(sum.func, &[5]);
    pause_at(&mut machine, at, 2);
    machine
        .transfer(version, Point::before(at), &[(sum.i, 3)], Unproved::claim())
        .expect("it fits");
    let view = machine.view().expect("it is paused");
    assert!(is_poison(view.value(sum.s)) && is_poison(view.value(sum.n)));
    assert_ne!(view.value(sum.s), view.value(sum.n), "poison is tagged with the slot");
}

/// After a transfer, the observer is not called at the landing point, but at the next instruction.
#[test]
fn the_observer_skips_the_landing_point() {
    let sum = sum();
    let function = sum.module.body(sum.func).expect("it is defined");
    let at = function.defining_inst(sum.s2).expect("it is an addition");
    let mut machine = machine(&sum.module, Limits::default());
    let version = machine.current(sum.func).expect("it is not imported");
    machine.start(sum.func, &[1]);
    pause_at(&mut machine, at, 0);
    for _ in 0..3 {
        machine
            .transfer(
                version,
                Point::before(at),
                &[(sum.s, 7), (sum.i, 0), (sum.n, 1)],
                Unproved::claim(),
            )
            .expect("it fits");
    }
    assert_eq!(machine.run(&mut NoHost, &mut PauseAlways), Run::Paused);
    assert_eq!(Some(machine.view().expect("it is paused").inst()), function.next_inst(at));
    assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Done(returned(&[7])));
}

/// A transfer in an inner activation does not affect its callers.
#[test]
fn transfers_of_inner_activations() {
    let (module, fib) = fib();
    let function = module.body(fib).expect("it is defined");
    let first = function.first_inst(function.entry());
    let n = function.arguments()[0];
    let mut machine = machine(&module, Limits::default());
    let copy = machine.add_version(&module, fib, function);
    machine.start(fib, &[10]);
    let mut transfers = 0;
    loop {
        match machine.run(&mut NoHost, &mut PauseAlways) {
            Run::Called { .. } | Run::Failed { .. } => panic!("nothing runs elsewhere or fails"),
            Run::Paused => {
                let view = machine.view().expect("it is paused");
                if view.inst() == first && view.version() != copy {
                    let value = view.value(n);
                    machine
                        .transfer(copy, Point::before(first), &[(n, value)], Unproved::claim())
                        .expect("it fits");
                    transfers += 1;
                }
            }
            Run::Done(outcome) => {
                assert_eq!(outcome, returned(&[55]));
                break;
            }
        }
    }
    assert_eq!(transfers, 177, "one for each activation of fib(10)");
}

#[test]
fn impossible_transfers_are_refused() {
    let sum = sum();
    let function = sum.module.body(sum.func).expect("it is defined");
    let at = function.defining_inst(sum.s2).expect("it is an addition");
    let mut module: Module = sum.module.clone();
    let other = super::support::define(&mut module, "other", &[], &[], |b, _| {
        b.ret(&[]);
    });
    let limits = Limits { stack_values: u64::from(u32::MAX), ..Limits::default() };
    let mut machine = machine(&module, limits);
    let version = machine.current(sum.func).expect("it is not imported");
    let others = machine.current(other).expect("it is not imported");
    let point = Point::before(at);
    assert_eq!(
        machine.transfer(version, point, &[], Unproved::claim()),
        Err(TransferError::NotPaused)
    );
    machine.start(sum.func, &[5]);
    assert_eq!(
        machine.transfer(version, point, &[], Unproved::claim()),
        Err(TransferError::NotPaused),
        "it has not run yet"
    );
    pause_at(&mut machine, at, 1);
    assert_eq!(
        machine.transfer(others, point, &[], Unproved::claim()),
        Err(TransferError::OtherFunction)
    );
    let nowhere = Point::before(Inst::new(1000));
    assert_eq!(
        machine.transfer(version, nowhere, &[], Unproved::claim()),
        Err(TransferError::NoSuchPoint(nowhere))
    );
    let nothing = Value::new(1000);
    assert_eq!(
        machine.transfer(version, point, &[(nothing, 1)], Unproved::claim()),
        Err(TransferError::NoSuchValue(nothing))
    );
    assert_eq!(
        machine.run(&mut NoHost, &mut NoObserver),
        Run::Done(returned(&[10])),
        "nothing was changed"
    );
    assert_eq!(
        machine.transfer(version, point, &[], Unproved::claim()),
        Err(TransferError::NotPaused),
        "it has ended"
    );
}

#[test]
fn a_transfer_to_a_frame_too_large_is_refused() {
    let sum = sum();
    let mut module = Module::new();
    super::support::define(&mut module, "sum", &[ir::Type::I32], &[ir::Type::I32], |b, args| {
        for number in 0..100 {
            super::support::i32_const(b, number);
        }
        b.ret(args);
    });
    let large = module.body(sum.func).expect("it is defined");
    let mut machine = machine(&sum.module, Limits { stack_values: 50, ..Limits::default() });
    let version = machine.add_version(&module, sum.func, large);
    machine.start(sum.func, &[3]);
    assert_eq!(machine.run(&mut NoHost, &mut PauseAlways), Run::Paused);
    let point = Point::before(large.first_inst(large.entry()));
    assert_eq!(
        machine.transfer(version, point, &[], Unproved::claim()),
        Err(TransferError::StackOverflow)
    );
    assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Done(returned(&[3])));
}

/// The maps between slots and values, and between points and pcs, are inverse to each other.
#[test]
fn code_maps_both_ways() {
    let sum = sum();
    let function = sum.module.body(sum.func).expect("it is defined");
    let code = interp::Code::new(&sum.module, function);
    for (pc, inst) in (0..).zip(function.all_insts()) {
        assert_eq!(code.pc_of(Point::before(inst)), Some(pc));
        assert_eq!(code.inst_at(pc), Some(inst));
        for value in &function.inst(inst).results {
            let slot = code.slot_of(*value).expect("it has a slot");
            assert_eq!(code.value_at(slot), Some(*value));
        }
    }
    assert_eq!(code.inst_at(function.inst_count() as u32), None);
    assert_eq!(code.slot_of(sum.n), Some(0), "arguments come first");
    assert_eq!(code.value_at(code.frame_size() - 1), None);
    assert_eq!(code.slot_of(Value::new(1000)), None);
    assert_eq!(code.pc_of(Point::before(Inst::new(1000))), None);
}

/// A value that was never assigned reads as poison in a checked run.
#[test]
fn new_activations_are_poisoned() {
    let sum = sum();
    let mut machine = machine(&sum.module, Limits::default());
    machine.start(sum.func, &[5]);
    assert_eq!(machine.run(&mut NoHost, &mut PauseAlways), Run::Paused);
    let view = machine.view().expect("it is paused");
    assert_eq!(view.value(sum.n), 5);
    assert!(is_poison(view.value(sum.i)));
    assert_eq!(view.try_value(Value::new(1000)), None);
}
