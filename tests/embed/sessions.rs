//! Sessions: calls of functions by typed entries.

use super::support::{engine, module, vm};
use osier::interp::{Limits, Options, Outcome, TraceLevel};
use osier::ir::{Func, Memory, Module, TrapKind};
use osier::jit::{
    Callback, CallbackEnd, Config, Embedder, EntryError, Interruption, RunError, Session,
    SessionEnd, TypedEntry, Version, Vm,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const TEXT: &str = "
import func @ask \"env\" \"ask\" (i64) -> i64
memory @mem 1
global @count : mut i64 = 0
func @mixed(%a: i32, %b: f64, %c: f32, %d: i64, %e: i32, %f: f64) -> f64 {
entry:
  %wide = sextend.i64 %a
  %sum = add.i64 %wide, %d
  %left = float_from_sint.f64 %sum
  %more = float_from_sint.f64 %e
  %c64 = fpromote.f64 %c
  %x = fadd.f64 %left, %b
  %y = fadd.f64 %x, %c64
  %z = fadd.f64 %y, %more
  %r = fadd.f64 %z, %f
  return %r
}
func @narrow(%a: i32) -> i32 {
entry:
  %one = const.i32 1
  %r = sub.i32 %a, %one
  return %r
}
func @half(%a: f32) -> f32 {
entry:
  %k = const.f32 0.5
  %r = fmul.f32 %a, %k
  return %r
}
func @step() -> () {
entry:
  %x = global_get.i64 @count
  %one = const.i64 1
  %y = add.i64 %x, %one
  global_set.i64 @count, %y
  return
}
func @div(%a: i64, %b: i64) -> i64 {
entry:
  %r = udiv.i64 %a, %b
  return %r
}
func @peek(%at: i32) -> i64 {
entry:
  %x = load.i64 @mem[%at]
  return %x
}
func @down(%n: i64) -> i64 {
entry:
  %r = call @down(%n)
  %s = add.i64 %r, %n
  return %s
}
func @asks(%n: i64) -> i64 {
entry:
  %r = call @ask(%n)
  %one = const.i64 1
  %s = add.i64 %r, %one
  return %s
}
func @spin(%n: i64) -> i64 {
entry:
  jump head(%n)
head(%left: i64):
  %one = const.i64 1
  %rest = sub.i64 %left, %one
  br_if %rest, head(%rest), done
done:
  return %rest
}
";

/// An embedder whose function is a closure.
pub(super) struct Asked<F>(pub(super) F);

impl<F: FnMut(&mut Callback<'_>, u64) -> Result<u64, CallbackEnd>> Embedder for Asked<F> {
    fn call(
        &mut self,
        back: &mut Callback<'_>,
        _func: Func,
        args: &[u64],
        results: &mut [u64],
    ) -> Result<(), CallbackEnd> {
        results[0] = (self.0)(back, args[0])?;
        Ok(())
    }
}

/// An embedder that nobody asks.
pub(super) struct Nobody;

impl Embedder for Nobody {}

pub(super) fn named(module: &Module, name: &str) -> Func {
    module.func_named(name).expect("the text has it")
}

fn version(vm: &Vm, func: Func) -> Arc<Version> {
    let (engine, module) = (vm.engine(), vm.module());
    let body = module.body(func).expect("it has a body");
    engine.version(module, func, body, &[]).expect("compiled")
}

/// A machine for a text with native code for all functions.
pub(super) fn compiled(config: Config, text: &str) -> Vm {
    let module = module(text);
    let mut vm = vm(&engine(config), &module);
    for (func, _) in module.defined() {
        let version = version(&vm, func);
        vm.install(&version, Vec::new()).expect("it fits");
    }
    vm
}

fn machine() -> Vm {
    compiled(Config::default(), TEXT)
}

pub(super) fn word(vm: &mut Vm, name: &str) -> TypedEntry<(u64,), u64> {
    let func = named(vm.module(), name);
    vm.entry(func).expect("the signature fits")
}

/// The kind of the trap that a call ended in.
fn trapped<T: std::fmt::Debug>(called: Result<T, Box<SessionEnd>>) -> TrapKind {
    match *called.expect_err("it traps") {
        SessionEnd::Outcome(Outcome::Trapped { kind, .. }) => kind,
        other => panic!("{other}"),
    }
}

#[test]
fn arguments_and_results_of_all_types_arrive() {
    let mut vm = machine();
    let module = Arc::clone(vm.module());
    let mixed = vm
        .entry::<(i32, f64, f32, i64, u32, f64), f64>(named(&module, "mixed"))
        .expect("the signature fits");
    let narrow = vm.entry::<(i32,), i32>(named(&module, "narrow")).expect("it fits");
    let unsigned = vm.entry::<(u32,), u32>(named(&module, "narrow")).expect("it fits");
    let half = vm.entry::<(f32,), f32>(named(&module, "half")).expect("it fits");
    let step = vm.entry::<(), ()>(named(&module, "step")).expect("it fits");
    vm.session(&mut Nobody, |session| {
        let sum = session.call(&mixed, (-7, 0.5, 0.25, 1 << 40, u32::MAX, 1000.0));
        assert_eq!(sum.expect("it returns"), -7.0 + 0.75 + (1u64 << 40) as f64 - 1.0 + 1000.0);
        assert_eq!(session.call(&narrow, (0,)), Ok(-1));
        assert_eq!(session.call(&unsigned, (0,)), Ok(u32::MAX));
        assert_eq!(session.call(&half, (3.0,)), Ok(1.5));
        assert_eq!((0..5).try_for_each(|_| session.call(&step, ())), Ok(()));
    })
    .expect("the session ends");
    assert_eq!(vm.machine().globals(), [5], "globals of a session are in the machine afterwards");
}

/// Each end is a value, and the session and the machine remain usable.
#[test]
fn a_session_continues_after_each_end() {
    let mut vm = machine();
    let module = Arc::clone(vm.module());
    let div = vm.entry::<(u64, u64), u64>(named(&module, "div")).expect("it fits");
    let peek = vm.entry::<(u32,), u64>(named(&module, "peek")).expect("it fits");
    let (down, asks) = (word(&mut vm, "down"), word(&mut vm, "asks"));
    let mut embedder = Asked(|_: &mut Callback<'_>, n| match n {
        0 => Err(osier::interp::HostError::Trap(TrapKind::Unreachable).into()),
        n => Ok(n),
    });
    let well = |session: &mut Session<'_>| assert_eq!(session.call(&div, (42, 6)), Ok(7));
    vm.session(&mut embedder, |session| {
        for _ in 0..3 {
            assert_eq!(trapped(session.call(&div, (1, 0))), TrapKind::DivisionByZero);
            well(session);
            assert_eq!(trapped(session.call(&peek, (65_530,))), TrapKind::MemoryOutOfBounds);
            well(session);
            let overflow = session.call(&down, (1,)).expect_err("it has no end");
            let SessionEnd::Outcome(Outcome::StackOverflow(site)) = *overflow else {
                panic!("{overflow}")
            };
            assert_eq!(site.func, down.func());
            well(session);
            let ended = *session.call(&asks, (0,)).expect_err("the embedder traps");
            let SessionEnd::Outcome(Outcome::Trapped { kind: TrapKind::Unreachable, site, .. }) =
                ended
            else {
                panic!("{ended}")
            };
            assert!(site.func == asks.func() && site.inst.is_some(), "{site:?}");
            assert_eq!(session.call(&asks, (5,)), Ok(6));
        }
    })
    .expect("the session ends");
    let outcome = vm.run(div.func(), &[9, 3], &mut Nobody);
    assert_eq!(outcome, Ok(Outcome::Returned(vec![3])));
}

#[test]
fn a_call_without_stack_is_refused() {
    let mut vm = machine();
    let div = {
        let func = named(vm.module(), "div");
        vm.entry::<(u64, u64), u64>(func).expect("it fits")
    };
    /// Calls at each depth, until the stack has no room; returns the depth.
    fn deeper(session: &mut Session<'_>, div: &TypedEntry<(u64, u64), u64>, depth: u64) -> u64 {
        let room = std::hint::black_box([depth; 64]);
        match session.call(div, (room[7], 1)) {
            Ok(same) => {
                assert_eq!(same, depth);
                deeper(session, div, depth + 1)
            }
            Err(end) => {
                assert!(
                    matches!(&*end, SessionEnd::Outcome(Outcome::StackOverflow(site))
                        if site.func == div.func()),
                    "{end}"
                );
                depth
            }
        }
    }
    let depth = vm.session(&mut Nobody, |session| deeper(session, &div, 0));
    assert!(depth.expect("the session ends") > 100);
}

/// A handle enters the version that is installed, whatever was installed when it was made.
#[test]
fn an_entry_runs_the_newest_version() {
    let of = |k: u64| {
        format!("func @f(%x: i64) -> i64 {{\nentry:\n  %k = const.i64 {k}\n  return %k\n}}\n")
    };
    let module = module(&of(1));
    let mut vm = vm(&engine(Config::default()), &module);
    let entry = word(&mut vm, "f");
    let called = |vm: &mut Vm| {
        vm.session(&mut Nobody, |session| session.call(&entry, (0,))).expect("it ends")
    };
    assert_eq!(called(&mut vm), Ok(1), "the interpreter runs it");
    for k in [2, 3] {
        let other = self::module(&of(k));
        let body = other.body(entry.func()).expect("it has a body");
        let version = vm.engine().version(&module, entry.func(), body, &[]).expect("compiled");
        vm.install(&version, Vec::new()).expect("it fits");
        assert_eq!(called(&mut vm), Ok(k));
    }
    vm.uninstall(entry.func());
    assert_eq!(called(&mut vm), Ok(1), "the interpreter again");
}

/// The embedder replaces the code of a function below a call of that function.
#[test]
fn code_replaced_in_a_session_is_entered_from_the_next_call_on() {
    let mut vm = machine();
    let asks = word(&mut vm, "asks");
    let text = TEXT.replace("%s = add.i64 %r, %one", "%s = sub.i64 %r, %one");
    let other = module(&text);
    let body = other.body(asks.func()).expect("it has a body");
    let next = vm.engine().version(vm.module(), asks.func(), body, &[]).expect("compiled");
    let mut embedder = Asked(|back: &mut Callback<'_>, n| {
        back.tier().install(&next, Vec::new()).expect("it fits");
        Ok(n)
    });
    vm.session(&mut embedder, |session| {
        assert_eq!(session.call(&asks, (10,)), Ok(11), "the frame of the first version returns");
        assert_eq!(session.call(&asks, (10,)), Ok(9));
    })
    .expect("the session ends");
}

/// Functions without code, also those that await their bodies, run in the interpreter.
#[test]
fn an_entry_without_code_is_interpreted() {
    let module = module(TEXT);
    let mut vm = vm(&engine(Config::default()), &module);
    let asks = word(&mut vm, "asks");
    let div = vm.entry::<(u64, u64), u64>(named(&module, "div")).expect("it fits");
    let mut embedder = Asked(|_: &mut Callback<'_>, n| Ok(2 * n));
    vm.session(&mut embedder, |session| {
        assert_eq!(session.call(&asks, (10,)), Ok(21));
        let ended = *session.call(&div, (1, 0)).expect_err("it traps");
        let SessionEnd::Outcome(Outcome::Trapped { site, .. }) = ended else { panic!("{ended}") };
        assert!(site.func == div.func() && site.inst.is_some(), "{site:?}");
        assert_eq!(session.call(&div, (6, 3)), Ok(2));
    })
    .expect("the session ends");

    let mut later = Module::clone(&module);
    later.define_later(asks.func());
    let mut vm = self::vm(&engine(Config::default()), &Arc::new(later));
    let asks = word(&mut vm, "asks");
    let ended = vm.session(&mut Nobody, |session| session.call(&asks, (1,))).expect("it ends");
    let SessionEnd::Outcome(Outcome::HostFailed { site, .. }) = *ended.expect_err("no body") else {
        panic!("the embedder has no body")
    };
    assert_eq!((site.func, site.inst), (asks.func(), None));
}

#[test]
fn wrong_entries_are_refused() {
    let mut vm = machine();
    let module = Arc::clone(vm.module());
    let (ask, div) = (named(&module, "ask"), named(&module, "div"));
    let beyond = Func::from_u32(99);
    assert_eq!(vm.entry::<(u64,), u64>(ask).err(), Some(EntryError::NotDefined(ask)));
    assert_eq!(vm.entry::<(u64,), u64>(beyond).err(), Some(EntryError::NotDefined(beyond)));
    let differs = EntryError::Signature(div, module.signature(div).clone());
    let text = differs.to_string();
    assert!(text.contains("(i64, i64) -> i64"), "{text}");
    let other = Some(differs);
    assert_eq!(vm.entry::<(u64,), u64>(div).err(), other);
    assert_eq!(vm.entry::<(u64, u32), u64>(div).err(), other);
    assert_eq!(vm.entry::<(u64, u64), f64>(div).err(), other);
    assert_eq!(vm.entry::<(u64, u64), ()>(div).err(), other);

    let foreign = word(&mut machine(), "asks");
    let called = vm.session(&mut Nobody, |session| session.call(&foreign, (1,)));
    assert_eq!(called, Ok(Err(Box::new(SessionEnd::OtherMachine))));
}

/// A session of one machine within that of another, called in turn: each trap reaches its call.
#[test]
fn sessions_of_two_machines_take_turns() {
    let (mut first, mut second) = (machine(), machine());
    let entries = [&mut first, &mut second].map(|vm| {
        let func = named(vm.module(), "div");
        vm.entry::<(u64, u64), u64>(func).expect("it fits")
    });
    let [outer_div, inner_div] = &entries;
    first
        .session(&mut Nobody, |outer| {
            second
                .session(&mut Nobody, |inner| {
                    for _ in 0..3 {
                        assert_eq!(
                            trapped(outer.call(outer_div, (1, 0))),
                            TrapKind::DivisionByZero
                        );
                        assert_eq!(inner.call(inner_div, (8, 2)), Ok(4));
                        assert_eq!(
                            trapped(inner.call(inner_div, (1, 0))),
                            TrapKind::DivisionByZero
                        );
                        assert_eq!(outer.call(outer_div, (8, 4)), Ok(2));
                    }
                })
                .expect("the inner session ends");
            assert_eq!(trapped(outer.call(outer_div, (1, 0))), TrapKind::DivisionByZero);
        })
        .expect("the outer session ends");
}

/// A panic of the embedder passes through the call. It ends neither the session nor the machine.
#[test]
fn a_panic_of_the_embedder_passes() {
    let mut vm = machine();
    let (asks, spin) = (word(&mut vm, "asks"), word(&mut vm, "spin"));
    let div = named(vm.module(), "div");
    let mut embedder = Asked(|back: &mut Callback<'_>, n| match n {
        0 => panic!("asked for nothing"),
        // The end of the nested run is gone with the call that panics.
        1 => {
            back.call(&mut Nobody, div, &[1, 0]).expect_err("it divides by zero");
            panic!("asked for nothing")
        }
        n => Ok(n),
    });
    vm.session(&mut embedder, |session| {
        for n in [0, 1] {
            let call = AssertUnwindSafe(|| session.call(&asks, (n,)));
            let payload = catch_unwind(call).expect_err("the panic passes");
            assert_eq!(payload.downcast_ref(), Some(&"asked for nothing"));
            assert_eq!(session.call(&asks, (2,)), Ok(3));
        }
    })
    .expect("the session ends");
    let whole = AssertUnwindSafe(|| vm.session(&mut embedder, |s| s.call(&asks, (0,))));
    catch_unwind(whole).expect_err("the panic passes");
    let after = vm.session(&mut Nobody, |session| session.call(&spin, (3,)));
    assert_eq!(after, Ok(Ok(0)));
}

/// Fuel is used up across calls, and given in between. An interrupt ends one call.
#[test]
fn fuel_and_interrupts_end_calls() {
    let fuel = Config { interruption: Interruption::Fuel, ..Config::default() };
    let mut vm = compiled(fuel, TEXT);
    let spin = word(&mut vm, "spin");
    vm.machine_mut().set_fuel(1000);
    vm.session(&mut Nobody, |session| {
        assert_eq!(session.call(&spin, (10,)), Ok(0));
        let out = *session.call(&spin, (100_000,)).expect_err("it needs more");
        assert!(matches!(out, SessionEnd::Outcome(Outcome::OutOfFuel(_))), "{out}");
        session.with_machine(|machine| machine.set_fuel(50));
        assert_eq!(session.call(&spin, (10,)), Ok(0));
        assert_eq!(session.with_machine(|machine| machine.fuel()), 50 - 2 - 3 * 10);
    })
    .expect("the session ends");

    let signal = Config { interruption: Interruption::Signal, ..Config::default() };
    let mut vm = compiled(signal, TEXT);
    let spin = word(&mut vm, "spin");
    let interrupt = vm.interrupt();
    vm.session(&mut Nobody, |session| {
        interrupt.ask();
        let ended = session.call(&spin, (10,)).expect_err("the interrupt ends it");
        assert_eq!(*ended, SessionEnd::Failed(RunError::Interrupted));
        assert_eq!(session.call(&spin, (10,)), Ok(0));
    })
    .expect("the session ends");
}

#[test]
fn memory_is_shared_between_calls() {
    let mut vm = machine();
    let peek = {
        let func = named(vm.module(), "peek");
        vm.entry::<(u32,), u64>(func).expect("it fits")
    };
    vm.session(&mut Nobody, |session| {
        for x in [7u64, 8, 9] {
            session.with_machine(|machine| {
                let memory = Memory::from_u32(0);
                let bytes = machine.memories_mut().bytes_mut(memory).expect("it is there");
                bytes[16..24].copy_from_slice(&x.to_le_bytes());
            });
            assert_eq!(session.call(&peek, (16,)), Ok(x));
        }
    })
    .expect("the session ends");
}

/// The trace of a session is that of as many runs.
#[test]
fn a_session_is_traced_like_runs() {
    let traced = |in_session: bool| {
        let module = module(TEXT);
        let options = Options { trace: TraceLevel::Full, ..Options::traced() };
        let engine = engine(Config { trace: true, ..Config::default() });
        let mut vm = Vm::new(&engine, &module, Limits::default(), options).expect("instantiated");
        for (func, _) in module.defined() {
            let version = version(&vm, func);
            vm.install(&version, Vec::new()).expect("it fits");
        }
        let asks = word(&mut vm, "asks");
        let step = vm.entry::<(), ()>(named(&module, "step")).expect("it fits");
        let mut embedder = Asked(|_: &mut Callback<'_>, n| match n {
            2 => Err(osier::interp::HostError::Trap(TrapKind::Unreachable).into()),
            n => Ok(n),
        });
        if in_session {
            vm.session(&mut embedder, |session| {
                for n in 0..4 {
                    session.call(&step, ()).expect("it returns");
                    assert_eq!(session.call(&asks, (n,)).is_ok(), n != 2);
                }
            })
            .expect("the session ends");
        } else {
            for n in 0..4 {
                vm.run(step.func(), &[], &mut embedder).expect("it returns");
                vm.run(asks.func(), &[n], &mut embedder).expect("it ends");
            }
        }
        format!("{:?}", vm.machine().trace())
    };
    let runs = traced(false);
    assert!(runs.len() > 100, "{runs}");
    assert_eq!(traced(true), runs);
}
