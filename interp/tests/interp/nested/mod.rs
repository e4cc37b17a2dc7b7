//! Tests of external functions, of activations that native code takes over, and of nested runs.

mod calls;
mod middle;
mod refused;

use crate::support::{add, define, landing, sum};
use check::CheckedEntry;
use interp::{
    EarlyEnd, Limits, Machine, Nested, NoHost, NoObserver, Options, Outcome, PauseAtMarks, Program,
    Resumed, Run, TraceLevel, TransferError,
};
use ir::text::parse_module;
use ir::{Func, Inst, InstSpec, Module, Type};
use transition::VersionKey;
use transition::mapping::Entry;

/// Options for the exact tier with and without poison and digests, and for the fast tier.
fn options() -> [Options; 3] {
    let off = TraceLevel::Off;
    let full = TraceLevel::Full;
    let kept = Options { trace: full, ..Options::traced() };
    [Options::checked(), kept, Options { trace: off, ..Options::traced() }]
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
            Run::Paused | Run::Failed { .. } => panic!("nobody pauses it, and it assumes nothing"),
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

/// An entry that nobody has proved, claimed to leave from its landing point in the same version.
fn claimed<'m>(module: &Module, func: Func, entry: &'m Entry) -> CheckedEntry<'m> {
    let key = VersionKey::of(module.body(func).expect("it is defined"));
    CheckedEntry::unproved(key, key, entry.target, entry)
}
