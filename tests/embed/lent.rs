//! The machine in the hands of its owner during a session: changed, exchanged, and after a panic.

use super::sessions::{Asked, Nobody, compiled, named, word};
use super::support::Calls;
use osier::interp::{Limits, Machine, NoHost, NoObserver, Options};
use osier::ir::{Memory, Module};
use osier::jit::{Bounds, Callback, Config, RunError, Session, SessionEnd, TypedEntry, Vm};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const TEXT: &str = "
import func @ask \"env\" \"ask\" (i64) -> i64
memory @mem 1
global @count : mut i64 = 0
func @step(%by: i64) -> i64 {
entry:
  %x = global_get.i64 @count
  %y = add.i64 %x, %by
  global_set.i64 @count, %y
  return %y
}
func @peek(%at: i32) -> i64 {
entry:
  %x = load.i64 @mem[%at]
  return %x
}
func @more(%pages: i32) -> i32 {
entry:
  %before = memory_grow @mem, %pages
  return %before
}
func @asks(%n: i64) -> i64 {
entry:
  %r = call @ask(%n)
  return %r
}
";

/// Machines whose accesses to memory read the size in the context. Another machine of the program
/// fits them, since no guards are needed.
fn checked() -> Config {
    Config { bounds: Bounds::Checked, ..Config::default() }
}

fn peek(vm: &mut Vm) -> TypedEntry<(u32,), u64> {
    let func = named(vm.module(), "peek");
    vm.entry(func).expect("the signature fits")
}

/// A machine of the same program whose memory begins with a word.
fn twin(vm: &Vm, word: u64) -> Machine {
    let program = vm.machine().program();
    let mut twin = Machine::with_options(program, Limits::default(), Options::default())
        .expect("instantiated");
    let bytes = twin.memories_mut().bytes_mut(Memory::from_u32(0)).expect("it is there");
    bytes[..8].copy_from_slice(&word.to_le_bytes());
    twin
}

fn more(machine: &mut Machine, module: &Module, pages: u64) {
    let outcome = machine.invoke(named(module, "more"), &[pages], &mut NoHost, &mut NoObserver);
    assert!(outcome.returned().is_some(), "{outcome}");
}

/// Changes the machine in a closure that panics afterwards.
fn change_and_panic(session: &mut Session<'_>, change: impl FnOnce(&mut Machine)) {
    let panics = AssertUnwindSafe(|| {
        session.with_machine(|machine| {
            change(machine);
            panic!("the owner gives up");
        })
    });
    let payload = catch_unwind(panics).expect_err("the panic passes");
    assert_eq!(payload.downcast_ref(), Some(&"the owner gives up"));
}

#[test]
fn a_machine_changed_before_a_panic_is_used() {
    let mut vm = compiled(checked(), TEXT);
    let module = Arc::clone(vm.module());
    vm.uninstall(named(&module, "more"));
    let (peek, step, twin) = (peek(&mut vm), word(&mut vm, "step"), twin(&vm, 77));
    vm.session(&mut Nobody, |session| {
        assert!(session.call(&peek, (65_536,)).is_err(), "the memory has one page");
        change_and_panic(session, |machine| more(machine, &module, 1));
        assert_eq!(session.call(&peek, (65_536,)), Ok(0), "now it has two");

        assert_eq!((session.call(&step, (5,)), session.call(&peek, (0,))), (Ok(5), Ok(0)));
        change_and_panic(session, |machine| drop(std::mem::replace(machine, twin)));
        assert_eq!((session.call(&step, (2,)), session.call(&peek, (0,))), (Ok(2), Ok(77)));
        assert!(session.call(&peek, (65_536,)).is_err(), "the other memory has one page");
    })
    .expect("the session ends");
    assert_eq!(vm.machine().globals(), [2]);
}

/// Guarded memories cannot be exchanged: no call enters native code until the machine is back.
#[test]
fn a_machine_exchanged_before_a_panic_is_refused() {
    let mut vm = compiled(Config::default(), TEXT);
    let (step, mut twin) = (word(&mut vm, "step"), twin(&vm, 77));
    vm.session(&mut Nobody, |session| {
        change_and_panic(session, |machine| std::mem::swap(machine, &mut twin));
        let refused = Err(Box::new(SessionEnd::Failed(RunError::Exchanged)));
        assert_eq!(session.call(&step, (1,)), refused);
        session.with_machine(|machine| std::mem::swap(machine, &mut twin));
        assert_eq!(session.call(&step, (1,)), Ok(1), "the machine is back");
    })
    .expect("the session ends");
}

/// Runs on the machine itself call their host. The session's own calls ask the embedder again.
#[test]
fn the_machine_of_a_session_calls_its_host() {
    let mut vm = compiled(checked(), TEXT);
    let module = Arc::clone(vm.module());
    let asks = word(&mut vm, "asks");
    vm.uninstall(asks.func());
    let hosted = |machine: &mut Machine| {
        let mut host = Calls(|| Ok(7));
        let outcome = machine.invoke(named(&module, "asks"), &[1], &mut host, &mut NoObserver);
        assert_eq!(outcome.returned(), Some(&[7][..]), "{outcome}");
    };
    let mut other = twin(&vm, 0);
    vm.session(&mut Asked(|_: &mut Callback<'_>, n| Ok(2 * n)), |session| {
        for _ in 0..2 {
            assert_eq!(session.call(&asks, (10,)), Ok(20), "the interpreter stops at the import");
            session.with_machine(|machine| {
                hosted(machine);
                std::mem::swap(machine, &mut other);
            });
            hosted(&mut other);
        }
    })
    .expect("the session ends");
    hosted(&mut other);
    hosted(vm.machine_mut());
}

/// The globals of a session stay in its machine, and those of a machine in its place stay there.
#[test]
fn an_exchanged_machine_keeps_its_globals() {
    for lent_again in [false, true] {
        let mut vm = compiled(Config::default(), TEXT);
        let (step, mut twin) = (word(&mut vm, "step"), twin(&vm, 0));
        twin.globals_mut()[0] = 40;
        vm.session(&mut Nobody, |session| {
            assert_eq!(session.call(&step, (3,)), Ok(3));
            session.with_machine(|machine| std::mem::swap(machine, &mut twin));
            assert!(session.call(&step, (3,)).is_err(), "its memory has other guards");
            if lent_again {
                assert_eq!(session.with_machine(|machine| machine.globals()[0]), 40);
            }
        })
        .expect("the session ends");
        assert_eq!((vm.machine().globals(), twin.globals()), (&[40][..], &[3][..]));
    }
}
