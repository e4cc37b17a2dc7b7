//! Tests of instructions that trap: the code of the trap arrives, and the thread continues.

use std::thread;

use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, TrapCode};
use cranelift_module::{FuncId, Module};

use super::harness::{Code, Context, native, trap_of};
use crate::sys::{reservation, stack};

const OWN: TrapCode = TrapCode::unwrap_user(7);

/// Compiles `f(x) = if x == 0 { trap } else { x + 1 }`. Returns the trampoline and the function.
fn conditional(code: &mut Code) -> (FuncId, FuncId) {
    let signature = native(&[I64], &[I64]);
    let function = code.function(&signature, |b, _, params| {
        b.ins().trapz(params[1], OWN);
        let more = b.ins().iadd_imm_s(params[1], 1);
        b.ins().return_(&[more]);
    });
    (code.trampoline(&signature), function)
}

#[test]
fn a_trap_instruction_raises_and_the_thread_goes_on() {
    let mut code = Code::new();
    let (trampoline, function) = conditional(&mut code);
    code.finish();
    let mut context = Context::default();
    for _ in 0..100 {
        let mut values = [0];
        let trap = trap_of(code.run(trampoline, function, &mut context, &mut values));
        assert_eq!((trap.code, trap.address, values), (OWN, None, [0]));
        values = [41];
        code.run(trampoline, function, &mut context, &mut values).expect("41 is not zero");
        assert_eq!(values, [42]);
        assert_eq!(
            context.entry,
            Default::default(),
            "what was there before the entry is there again"
        );
    }
}

#[test]
fn divisions_trap_with_their_own_codes() {
    let mut code = Code::new();
    let signature = native(&[I32, I32], &[I32]);
    let unsigned = code.function(&signature, |b, _, params| {
        let quotient = b.ins().udiv(params[1], params[2]);
        b.ins().return_(&[quotient]);
    });
    let signed = code.function(&signature, |b, _, params| {
        let quotient = b.ins().sdiv(params[1], params[2]);
        b.ins().return_(&[quotient]);
    });
    let trampoline = code.trampoline(&signature);
    code.finish();
    let mut context = Context::default();
    let mut run = |function, a: i32, b: i32| {
        let mut values = [u64::from(a.cast_unsigned()), u64::from(b.cast_unsigned())];
        code.run(trampoline, function, &mut context, &mut values).map(|()| values[0])
    };
    // No check precedes the unsigned division: the processor itself faults (SIGFPE).
    assert_eq!(trap_of(run(unsigned, 5, 0).map(drop)).code, TrapCode::INTEGER_DIVISION_BY_ZERO);
    assert_eq!(trap_of(run(signed, 5, 0).map(drop)).code, TrapCode::INTEGER_DIVISION_BY_ZERO);
    assert_eq!(trap_of(run(signed, i32::MIN, -1).map(drop)).code, TrapCode::INTEGER_OVERFLOW);
    assert_eq!(run(unsigned, 42, 6).expect("no trap"), 7);
    assert_eq!(
        run(signed, -42, 6).expect("no trap"),
        u64::from((-7i32).cast_unsigned()),
        "a result fills its word with zeros"
    );
}

#[test]
fn an_access_behind_the_usable_bytes_traps_with_its_address() {
    let mut code = Code::new();
    let signature = native(&[I64, I32], &[I64]);
    let function = code.function(&signature, |b, _, params| {
        let index = b.ins().uextend(I64, params[2]);
        let address = b.ins().iadd(params[1], index);
        let flags = MemFlagsData::new().with_trap_code(Some(TrapCode::HEAP_OUT_OF_BOUNDS));
        let value = b.ins().load(I64, flags, address, 8);
        b.ins().return_(&[value]);
    });
    let trampoline = code.trampoline(&signature);
    code.finish();
    let mut memory = reservation::reserve(1 << 20).expect("address space");
    assert!(memory.grow(1 << 16));
    memory.bytes_mut()[8..16].copy_from_slice(&77u64.to_le_bytes());
    let base = memory.base() as usize;
    let mut context = Context::default();
    let mut run = |index: u32| {
        let mut values = [base as u64, u64::from(index)];
        code.run(trampoline, function, &mut context, &mut values).map(|()| values[0])
    };
    assert_eq!(run(0).expect("inside"), 77);
    assert_eq!(run((1 << 16) - 16).expect("the last word inside"), 0);
    for index in [(1 << 16) - 8, 1 << 16, 1 << 20, u32::MAX - 7, u32::MAX] {
        let trap = trap_of(run(index).map(drop));
        let address = trap.address.expect("an access to memory");
        assert_eq!((trap.code, address), (TrapCode::HEAP_OUT_OF_BOUNDS, base + index as usize + 8));
        assert!(memory.addresses().contains(&address));
    }
    // For an access across the end, the processor reports the first inaccessible byte.
    let trap = trap_of(run((1 << 16) - 15).map(drop));
    assert_eq!(trap.address, Some(base + (1 << 16)));
    assert!(memory.grow(1 << 17));
    assert_eq!(run(1 << 16).expect("inside now"), 0);
}

#[test]
fn recursion_without_end_traps_at_the_stack_limit() {
    const RESERVE: usize = 256 << 10;
    let mut code = Code::new();
    let signature = native(&[I64], &[I64]);
    let function = code.declare(&signature);
    code.define(function, &signature, |b, module, params| {
        let itself = module.declare_func_in_func(function, b.func);
        let more = b.ins().iadd_imm_s(params[1], 1);
        let call = b.ins().call(itself, &[params[0], more]);
        let result = b.inst_results(call)[0];
        let sum = b.ins().iadd(result, params[1]);
        b.ins().return_(&[sum]);
    });
    let trampoline = code.trampoline(&signature);
    code.finish();
    let limit = stack::limit(RESERVE).expect("the bounds of the stack are known");
    let mut context = Context { stack_limit: limit as u64, ..Context::default() };
    for _ in 0..3 {
        let trap = trap_of(code.run(trampoline, function, &mut context, &mut [0]));
        assert_eq!((trap.code, trap.address), (TrapCode::STACK_OVERFLOW, None));
    }
    // With a reserve larger than the stack, even the first frame does not fit.
    context.stack_limit =
        stack::limit(usize::MAX).expect("the bounds of the stack are known") as u64;
    let trap = trap_of(code.run(trampoline, function, &mut context, &mut [0]));
    assert_eq!(trap.code, TrapCode::STACK_OVERFLOW);
    let left = stack::remaining().expect("the bounds of the stack are known");
    assert!(left > RESERVE, "a test has {left} bytes of stack");
}

#[test]
fn two_threads_trap_at_the_same_time() {
    let mut code = Code::new();
    let (trampoline, function) = conditional(&mut code);
    code.finish();
    let (entry, address) = (code.entry(trampoline), code.address(function) as usize);
    let work = move || {
        let mut context = Context::default();
        for round in 0..20_000u64 {
            let mut values = [round % 2];
            // SAFETY: the context and the word live in this frame, and one word serves the one
            // parameter and the one result. The test keeps the code mapped and registered until it
            // has joined the threads.
            let result = unsafe {
                crate::sys::enter::enter_in_place(
                    entry,
                    (&raw mut context).cast(),
                    address as *const u8,
                    &mut values,
                )
            };
            if round % 2 == 0 {
                assert_eq!(trap_of(result).code, OWN);
            } else {
                result.expect("1 is not zero");
                assert_eq!(values, [2]);
            }
        }
    };
    let threads = [thread::spawn(work), thread::spawn(work)];
    for thread in threads {
        thread.join().expect("each round ends as it should");
    }
}

/// Sets the alternate signal stack of this thread, and returns the previous one.
fn alternate_stack(stack: &libc::stack_t) -> libc::stack_t {
    let mut before = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: 0, ss_size: 0 };
    // SAFETY: both structures are valid for the call. The caller keeps the memory of the stack
    // until it has set another stack.
    let status = unsafe { libc::sigaltstack(stack, &mut before) };
    assert_eq!(status, 0);
    before
}

#[test]
fn the_handler_needs_little_of_a_signal_stack_and_can_do_without() {
    let mut code = Code::new();
    let (trampoline, function) = conditional(&mut code);
    code.finish();
    let mut context = Context::default();
    let mut trap =
        || assert_eq!(trap_of(code.run(trampoline, function, &mut context, &mut [0])).code, OWN);

    const PAINT: u8 = 0xa5;
    let mut memory = vec![PAINT; 1 << 16];
    let own =
        libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
    let before = alternate_stack(&own);
    trap();
    let none =
        libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    alternate_stack(&none);
    trap();
    alternate_stack(&before);
    let used = memory.len()
        - memory.iter().position(|&byte| byte != PAINT).expect("the handler ran there");
    // SAFETY: `getauxval` has no preconditions.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
    // The size of the kernel's frame depends on the processor. Threads of Rust have 8 KiB of signal
    // stack.
    assert!(
        used < frame + 4096,
        "{used} bytes used, of which the kernel's frame has at most {frame}"
    );
}
