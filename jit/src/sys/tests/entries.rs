//! Tests of entries: arguments and results, nested entries, helpers that fail or panic, and
//! callee-saved registers.

use std::panic::{self, AssertUnwindSafe};

use cranelift_codegen::ir::types::{F32, F64, I8, I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, TrapCode, Type};
use cranelift_module::FuncId;

use super::harness::{Code, Context, DATA, Helper, call_helper, native, trap_of};
use crate::sys::enter::{HelperStatus, NativeStop, Trampoline, guard};
use crate::sys::maps;

const INNER: TrapCode = TrapCode::unwrap_user(1);
const OUTER: TrapCode = TrapCode::unwrap_user(2);

#[test]
fn arguments_and_results_of_every_type_pass_through_words() {
    let mut code = Code::new();
    // More values than registers, so that some of each kind pass through the stack.
    let types: Vec<Type> = [I8, I16, I32, I64, F32, F64].into_iter().cycle().take(60).collect();
    let signature = native(&types, &types);
    let function = code.function(&signature, |b, _, params| {
        b.ins().return_(&params[1..]);
    });
    let raising = code.function(&signature, |b, _, _| {
        b.ins().trap(OUTER);
    });
    let trampoline = code.trampoline(&signature);
    code.finish();
    let mut context = Context::default();
    let given: Vec<u64> =
        (0..60).map(|i: u64| 0x8877_6655_4433_2211u64.wrapping_mul(2 * i + 1)).collect();
    let expected: Vec<u64> =
        given.iter().zip(&types).map(|(&word, ty)| word & (u64::MAX >> (64 - ty.bits()))).collect();
    let mut values = given.clone();
    assert_eq!(trap_of(code.run(trampoline, raising, &mut context, &mut values)).code, OUTER);
    assert_eq!(values, given, "nothing is written where nothing is returned");
    code.run(trampoline, function, &mut context, &mut values).expect("it returns");
    assert_eq!(values, expected);
}

/// The data with which a helper enters native code. The first data word of the context holds its
/// address.
struct Inside {
    code: *const Code,
    trampoline: FuncId,
    function: FuncId,
    /// Whether the inner entry has a context of its own, or shares the context of the outer entry.
    own_context: bool,
}

/// Enters the function of `Inside`. Writes a code for the kind of its exit to the second data word.
extern "C" fn enter_inside(context: *mut Context) -> HelperStatus {
    guard(|| {
        // SAFETY: `nested` stored the address of a live `Inside` in the context, and both outlive
        // the entry from which native code calls this helper.
        let inside = unsafe { &*((*context).data[0] as *const Inside) };
        // SAFETY: `Inside` holds the address of the `Code` in the frame of `nested`, which waits
        // for the entry to end.
        let code = unsafe { &*inside.code };
        let mut own = Context::default();
        let used = if inside.own_context { &raw mut own } else { context };
        let result = code.run(inside.trampoline, inside.function, used, &mut []);
        let seen = match result {
            Ok(()) => 1,
            Err(NativeStop::Trap(trap)) => 100 + u64::from(trap.code.as_raw().get()),
            Err(NativeStop::Helper) => 2,
            Err(NativeStop::Panic(payload)) => panic::resume_unwind(payload),
        };
        // SAFETY: the context is alive in the frame of `nested`, and the inner entry has ended, so
        // no reference to it is left.
        unsafe { (*context).data[1] = seen };
        HelperStatus::Continue
    })
}

extern "C" fn fail(_: *mut Context) -> HelperStatus {
    guard(|| HelperStatus::Raise)
}

extern "C" fn break_down(_: *mut Context) -> HelperStatus {
    // `panic!` and not `resume_unwind`, so that a backtrace across native frames is taken if the
    // environment asks for one.
    guard(|| panic!("broken"))
}

/// Builds an outer function that calls `enter_inside`, and then traps if `traps_after` is set. The
/// inner function calls `helper`, if there is one, and traps. Runs `test` with a shared context and
/// with separate contexts.
fn nested(
    helper: Option<Helper>,
    traps_after: bool,
    test: impl Fn(&Code, FuncId, FuncId, *mut Context),
) {
    let mut code = Code::new();
    let signature = native(&[], &[]);
    let inner = code.function(&signature, |b, _, params| {
        if let Some(helper) = helper {
            call_helper(b, params[0], helper);
        }
        b.ins().trap(INNER);
    });
    let outer = code.function(&signature, |b, _, params| {
        call_helper(b, params[0], enter_inside);
        let done = b.ins().iconst(I64, 5);
        b.ins().store(MemFlagsData::trusted(), done, params[0], DATA + 16);
        if traps_after {
            b.ins().trap(OUTER);
        } else {
            b.ins().return_(&[]);
        }
    });
    let trampoline = code.trampoline(&signature);
    code.finish();
    for own_context in [false, true] {
        let inside = Inside { code: &code, trampoline, function: inner, own_context };
        let mut context =
            Context { data: [&raw const inside as u64, 0, 0, 0], ..Context::default() };
        test(&code, trampoline, outer, &mut context);
        assert_eq!(context.entry, Default::default());
    }
}

/// The data words that the helper and the outer function have written.
fn words(context: *mut Context) -> (u64, u64) {
    // SAFETY: `nested` passes the address of a context in its frame, and no native code runs any
    // more.
    unsafe { ((*context).data[1], (*context).data[2]) }
}

#[test]
fn an_inner_entry_traps_and_the_outer_goes_on() {
    nested(None, false, |code, trampoline, outer, context| {
        code.run(trampoline, outer, context, &mut []).expect("the outer function returns");
        assert_eq!(words(context), (101, 5));
    });
}

#[test]
fn the_outer_entry_traps_by_itself_after_the_inner() {
    nested(None, true, |code, trampoline, outer, context| {
        assert_eq!(trap_of(code.run(trampoline, outer, context, &mut [])).code, OUTER);
        assert_eq!(words(context), (101, 5));
    });
}

#[test]
fn a_helper_that_fails_raises_to_the_innermost_entry() {
    nested(Some(fail), true, |code, trampoline, outer, context| {
        assert_eq!(trap_of(code.run(trampoline, outer, context, &mut [])).code, OUTER);
        assert_eq!(words(context), (2, 5));
    });
}

#[test]
fn a_panic_of_a_helper_passes_through_both_entries() {
    nested(Some(break_down), false, |code, trampoline, outer, context| {
        let Err(NativeStop::Panic(payload)) = code.run(trampoline, outer, context, &mut []) else {
            panic!("no panic arrived")
        };
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"broken"));
        assert_eq!(words(context), (0, 0), "the outer function did not go on");
    });
}

#[test]
fn without_native_code_around_it_a_guard_lets_panics_pass() {
    let caught =
        panic::catch_unwind(AssertUnwindSafe(|| guard(|| panic::resume_unwind(Box::new(3u8)))));
    assert_eq!(caught.expect_err("it passes").downcast_ref::<u8>(), Some(&3));
}

extern "C" fn look_at_mappings(context: *mut Context) -> HelperStatus {
    guard(|| {
        let found = maps::writable_and_executable().expect("the mappings can be read");
        // SAFETY: native code passes the context that it was entered with. It is alive in the
        // test's frame, and the test holds no reference during the run.
        unsafe { (*context).data[0] += 1 + 100 * found.len() as u64 };
        HelperStatus::Continue
    })
}

#[test]
fn no_memory_is_writable_and_executable_before_during_and_after() {
    assert_eq!(maps::writable_and_executable().expect("the mappings can be read"), []);
    let mut code = Code::new();
    let signature = native(&[], &[]);
    let function = code.function(&signature, |b, _, params| {
        call_helper(b, params[0], look_at_mappings);
        b.ins().return_(&[]);
    });
    let trampoline = code.trampoline(&signature);
    assert_eq!(maps::writable_and_executable().expect("the mappings can be read"), []);
    code.finish();
    let address = code.address(function) as usize;
    let mappings = maps::mappings().expect("the mappings can be read");
    let own = mappings
        .iter()
        .find(|mapping| (mapping.start..mapping.end).contains(&address))
        .expect("the code is mapped");
    assert!(own.readable && own.executable && !own.writable, "{own:?}");
    let mut context = Context::default();
    code.run(trampoline, function, &mut context, &mut []).expect("it returns");
    assert_eq!(context.data[0], 1, "the helper ran once and found nothing");
    drop(code);
    assert_eq!(maps::writable_and_executable().expect("the mappings can be read"), []);
}

/// Calls the trampoline with a known value in each callee-saved register. Returns the number of
/// registers that changed, plus 256 times the result of the trampoline. The caller's own values are
/// on the stack meanwhile.
///
/// # Safety
/// The arguments fulfill the contract of [`crate::sys::enter::enter`].
#[unsafe(naked)]
unsafe extern "C" fn with_values_in_saved_registers(
    context: *mut u8,
    code: *const u8,
    args: *const u64,
    results: *mut u64,
    entry: Trampoline,
) -> u64 {
    std::arch::naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "mov rbp, 0x1111",
        "mov rbx, 0x2222",
        "mov r12, 0x3333",
        "mov r13, 0x4444",
        "mov r14, 0x5555",
        "mov r15, 0x6666",
        "mov [rsp], rsp",
        "call r8",
        "shl rax, 8",
        "cmp [rsp], rsp",
        "je 2f",
        "inc rax",
        "2:",
        "cmp rbp, 0x1111",
        "je 2f",
        "inc rax",
        "2:",
        "cmp rbx, 0x2222",
        "je 2f",
        "inc rax",
        "2:",
        "cmp r12, 0x3333",
        "je 2f",
        "inc rax",
        "2:",
        "cmp r13, 0x4444",
        "je 2f",
        "inc rax",
        "2:",
        "cmp r14, 0x5555",
        "je 2f",
        "inc rax",
        "2:",
        "cmp r15, 0x6666",
        "je 2f",
        "inc rax",
        "2:",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

#[test]
fn registers_that_a_callee_saves_survive_a_raise() {
    let mut code = Code::new();
    // So many values are live over the call that every register is used. Some parameters are on the
    // stack, and the callee pops them.
    let signature = native(&[I64; 20], &[I64]);
    let body = |raises: bool| {
        move |b: &mut cranelift_frontend::FunctionBuilder<'_>,
              _: &mut cranelift_jit::JITModule,
              params: &[cranelift_codegen::ir::Value]| {
            let products: Vec<_> =
                params[1..].iter().map(|&value| b.ins().imul(value, params[1])).collect();
            call_helper(b, params[0], count);
            let sum = products
                .into_iter()
                .reduce(|a, c| b.ins().bxor(a, c))
                .expect("there are parameters");
            let old = b.ins().load(I64, MemFlagsData::trusted(), params[0], DATA + 8);
            let stop = b.ins().iadd(old, sum);
            b.ins().store(MemFlagsData::trusted(), stop, params[0], DATA + 8);
            if raises {
                b.ins().trap(OUTER);
            } else {
                b.ins().return_(&[stop]);
            }
        }
    };
    let raising = code.function(&signature, body(true));
    let returning = code.function(&signature, body(false));
    let trampoline = code.trampoline(&signature);
    code.finish();
    // A trap needs an activation, so `probe` takes the place of the trampoline in `enter`, and
    // calls it.
    static ENTRY: std::sync::OnceLock<Trampoline> = std::sync::OnceLock::new();
    assert!(ENTRY.set(code.entry(trampoline)).is_ok());
    /// # Safety
    /// `enter` calls it, with the arguments for the trampoline in `ENTRY`.
    unsafe extern "C" fn probe(
        context: *mut u8,
        code: *const u8,
        args: *const u64,
        results: *mut u64,
    ) -> u64 {
        let entry = *ENTRY.get().expect("set above");
        // SAFETY: `enter` calls `probe` with the arguments of a trampoline, and `entry` is the
        // trampoline for the signature of `code`.
        let seen = unsafe { with_values_in_saved_registers(context, code, args, results, entry) };
        // SAFETY: this test enters with a `Context` in its own frame, and no native code runs any
        // more.
        unsafe { (*context.cast::<Context>()).data[3] = seen };
        seen >> 8
    }
    let mut context = Context::default();
    for (function, expected) in [(raising, 1 << 8), (returning, 0), (raising, 1 << 8)] {
        context.data[3] = u64::MAX;
        // SAFETY: the context, the code and 20 words for 20 parameters and one result live in this
        // frame until the call returns. `code.finish` has registered the code, and its only helper,
        // `count`, does not unwind.
        let result = unsafe {
            crate::sys::enter::enter_in_place(
                probe,
                (&raw mut context).cast(),
                code.address(function),
                &mut [3; 20],
            )
        };
        assert_eq!(context.data[3], expected, "registers changed, or the wrong edge");
        assert_eq!(result.is_err(), expected != 0);
    }
    assert_eq!(context.data[0], 3);
}

extern "C" fn count(context: *mut Context) -> HelperStatus {
    // SAFETY: `registers_that_a_callee_saves_survive_a_raise` has the context in its frame, and
    // makes no reference to it while native code runs, which passes it on.
    guard(|| unsafe {
        (*context).data[0] += 1;
        HelperStatus::Continue
    })
}
