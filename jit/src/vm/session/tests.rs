//! Calls of a session on other stacks.

use super::*;
use crate::{Callback, CallbackEnd, Config, Engine};
use interp::{Limits, Options};
use std::ffi::c_void;

const TEXT: &str = "import func @ask \"env\" \"ask\" (i64) -> i64
func @next(%x: i64) -> i64 {
entry:
  %one = const.i64 1
  %y = add.i64 %x, %one
  return %y
}
func @asks(%x: i64) -> i64 {
entry:
  %y = call @ask(%x)
  return %y
}
";

/// Calls `body(data)` with the stack pointer `top`, a multiple of 16.
///
/// # Safety
/// The stack below `top` is writable and large enough for `body`, which does not unwind.
#[unsafe(naked)]
unsafe extern "C" fn switched(
    data: *mut c_void,
    body: unsafe extern "C" fn(*mut c_void),
    top: *mut u8,
) {
    std::arch::naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "mov rsp, rdx",
        "call rsi",
        "mov rsp, rbp",
        "pop rbp",
        "ret",
    )
}

/// Runs a closure on a stack of its own, in the heap.
fn on_another_stack(body: &mut dyn FnMut()) {
    /// # Safety
    /// `data` is the address of the `body` below, which nobody else uses meanwhile.
    unsafe extern "C" fn call(data: *mut c_void) {
        // SAFETY: `on_another_stack` passes that address to `switched` alone, and waits.
        let body = unsafe { &mut *data.cast::<&mut dyn FnMut()>() };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_ok());
    }
    let mut stack = vec![0u128; 1 << 16];
    let mut body = body;
    // SAFETY: one MiB is enough for the tests below, and a u128 is aligned to 16 bytes. `call`
    // catches panics.
    unsafe { switched((&raw mut body).cast(), call, stack.as_mut_ptr_range().end.cast()) };
}

fn machine() -> Vm {
    let module = Arc::new(ir::text::parse_module(TEXT).expect("well-formed"));
    let engine = Engine::new(Config::default()).expect("the tests run where native code does");
    let mut vm =
        Vm::new(&engine, &module, Limits::default(), Options::default()).expect("instantiated");
    for (func, body) in module.defined() {
        let version = engine.version(&module, func, body, &[]).expect("compiled");
        vm.install(&version, Vec::new()).expect("it fits");
    }
    vm
}

fn entry(vm: &mut Vm, name: &str) -> TypedEntry<(u64,), u64> {
    let func = vm.module().func_named(name).expect("the text has it");
    vm.entry(func).expect("the signature fits")
}

fn has_no_stack<T: fmt::Debug>(called: Result<T, Box<SessionEnd>>) -> bool {
    match *called.expect_err("no check of the stack fits") {
        SessionEnd::Failed(RunError::NoStack { .. }) => true,
        other => panic!("{other}"),
    }
}

struct Nobody;

impl Embedder for Nobody {}

/// Calls `@next` on another stack.
struct Switches(Func);

impl Embedder for Switches {
    fn call(
        &mut self,
        back: &mut Callback<'_>,
        _func: Func,
        args: &[u64],
        results: &mut [u64],
    ) -> Result<(), CallbackEnd> {
        let mut called = Ok(Vec::new());
        on_another_stack(&mut || called = back.call(&mut Nobody, self.0, args));
        results.copy_from_slice(&called?);
        Ok(())
    }
}

/// The limit of the thread's stack says nothing about another stack. The session continues on its
/// own.
#[test]
fn a_call_on_a_foreign_stack_is_refused() {
    let mut vm = machine();
    let next = entry(&mut vm, "next");
    vm.session(&mut Nobody, |session| {
        for x in 0..3 {
            on_another_stack(&mut || assert!(has_no_stack(session.call(&next, (x,)))));
            assert_eq!(session.call(&next, (x,)), Ok(x + 1));
        }
    })
    .expect("the session ends");
}

#[test]
fn a_nested_run_on_a_foreign_stack_is_refused() {
    let mut vm = machine();
    let (next, asks) = (entry(&mut vm, "next"), entry(&mut vm, "asks"));
    vm.session(&mut Switches(next.func()), |session| {
        assert!(has_no_stack(session.call(&asks, (1,))));
        assert_eq!(session.call(&next, (1,)), Ok(2));
    })
    .expect("the session ends");
}
