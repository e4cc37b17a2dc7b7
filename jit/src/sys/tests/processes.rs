//! Tests that faults outside of native code still kill the process. Each test runs itself again as
//! a child process, which dies.

use std::ffi::{c_int, c_void};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, ptr, thread};

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, TrapCode};
use cranelift_module::FuncId;

use super::harness::{Code, Context, DATA, native, trap_of};
use crate::sys::registry;
use crate::sys::traps::TrapTable;
use crate::sys::{enter, reservation};

const CHILD: &str = "OSIER_SYS_TEST_CHILD";
/// The exit code of a child that came to its end although it should have died.
const SURVIVED: i32 = 77;
const HANDLED: i32 = 42;

/// Runs `body` in a child process. `name` is the test of this module that calls this function.
/// Returns the status of the child to the parent; the child never returns.
fn in_child(name: &str, body: impl FnOnce()) -> Option<ExitStatus> {
    if env::var_os(CHILD).is_some() {
        limit(libc::RLIMIT_CORE, 0);
        body();
        std::process::exit(SURVIVED);
    }
    let (_, module) = module_path!().split_once("::").expect("a module of a crate");
    let mut command = Command::new(env::current_exe().expect("this test has a file"));
    let output = command
        .args([&format!("{module}::{name}"), "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .expect("the child starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("running 1 test"), "{name} names no test: {said}");
    Some(output.status)
}

fn limit(resource: libc::__rlimit_resource_t, value: u64) {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: `limit` is a live structure of the type that the call reads.
    let status = unsafe { libc::setrlimit(resource, &limit) };
    assert_eq!(status, 0);
}

/// Builds a function that traps with code 7, and runs it once to show that the handler is installed
/// and works.
fn trapping() -> (Code, FuncId, FuncId) {
    let mut code = Code::new();
    let signature = native(&[], &[]);
    let function = code.function(&signature, |b, _, _| {
        b.ins().trap(TrapCode::unwrap_user(7));
    });
    let trampoline = code.trampoline(&signature);
    code.finish();
    assert_eq!(
        trap_of(code.run(trampoline, function, &mut Context::default(), &mut [])).code,
        TrapCode::unwrap_user(7)
    );
    (code, trampoline, function)
}

fn read_nothing() {
    // SAFETY: none, on purpose: the read faults, and the test checks that the fault kills the
    // child. The address is never mapped, and `black_box` hides it from the compiler.
    std::hint::black_box(unsafe { ptr::read_volatile(std::hint::black_box(16 as *const u8)) });
}

fn divide_by_nothing() {
    // SAFETY: the block declares all registers that it writes and accesses no memory. The division
    // faults, and the test checks that the fault kills the child.
    unsafe {
        std::arch::asm!("xor ecx, ecx", "xor edx, edx", "mov eax, 1", "div ecx", out("eax") _, out("ecx") _, out("edx") _)
    }
}

#[test]
fn a_fault_of_rust_kills_the_process() {
    let Some(status) = in_child("a_fault_of_rust_kills_the_process", || {
        let _code = trapping();
        read_nothing();
    }) else {
        return;
    };
    assert_eq!(status.signal(), Some(libc::SIGSEGV), "{status}");
}

#[test]
fn a_fault_without_a_handler_before_ours_kills_the_process() {
    let Some(status) = in_child("a_fault_without_a_handler_before_ours_kills_the_process", || {
        let _code = trapping();
        divide_by_nothing();
    }) else {
        return;
    };
    assert_eq!(status.signal(), Some(libc::SIGFPE), "{status}");
}

#[test]
fn a_signal_that_was_sent_kills_the_process() {
    let Some(status) = in_child("a_signal_that_was_sent_kills_the_process", || {
        let _code = trapping();
        // SAFETY: `raise` has no preconditions.
        unsafe { libc::raise(libc::SIGFPE) };
    }) else {
        return;
    };
    assert_eq!(status.signal(), Some(libc::SIGFPE), "{status}");
}

#[test]
fn an_access_that_the_compiler_does_not_list_as_trapping_kills_the_process() {
    let Some(status) =
        in_child("an_access_that_the_compiler_does_not_list_as_trapping_kills_the_process", || {
            let mut code = Code::new();
            let signature = native(&[I64], &[I64]);
            let function = code.function(&signature, |b, _, params| {
                // A trusted load: the compiler records no trap for it.
                let value = b.ins().load(I64, MemFlagsData::trusted(), params[1], 0);
                b.ins().return_(&[value]);
            });
            let trampoline = code.trampoline(&signature);
            code.finish();
            drop(code.run(trampoline, function, &mut Context::default(), &mut [16]));
        })
    else {
        return;
    };
    assert_eq!(status.signal(), Some(libc::SIGSEGV), "{status}");
}

#[test]
fn a_trap_outside_of_an_entry_kills_the_process() {
    let Some(status) = in_child("a_trap_outside_of_an_entry_kills_the_process", || {
        let (code, trampoline, function) = trapping();
        // SAFETY: none, on purpose: the trampoline runs without an activation, and the test checks
        // that the trap kills the child. The leaked context outlives the call, and the code lives
        // in this frame.
        unsafe {
            code.entry(trampoline)(
                (&raw mut *Box::leak(Box::new(Context::default()))).cast(),
                code.address(function),
                ptr::null(),
                ptr::null_mut(),
            )
        };
    }) else {
        return;
    };
    assert_eq!(status.signal(), Some(libc::SIGILL), "{status}");
}

/// An undefined instruction other than `ud2`, at an address that the trap table lists.
///
/// # Safety
/// The caller expects a fault: the function does not return.
#[unsafe(naked)]
unsafe extern "C" fn another_undefined_instruction() {
    std::arch::naked_asm!("ud1 eax, eax", "ret")
}

#[test]
fn an_instruction_that_this_processor_lacks_kills_the_process() {
    let Some(status) =
        in_child("an_instruction_that_this_processor_lacks_kills_the_process", || {
            let mut code = Code::new();
            let trampoline = code.trampoline(&native(&[], &[]));
            code.finish();
            let address = another_undefined_instruction as unsafe extern "C" fn() as *const u8;
            let table = TrapTable::new([(0, TrapCode::unwrap_user(7))]);
            let registered =
                registry::register([(address as usize..address as usize + 1, Arc::new(table))]);
            let _registered = registered.expect("the handlers can be installed");
            // SAFETY: the leaked context and the function outlive the call, and the function takes
            // no words and accesses no memory. It faults, and the test checks that the fault kills
            // the child.
            let left = unsafe {
                enter::enter_in_place(
                    code.entry(trampoline),
                    (&raw mut *Box::leak(Box::new(Context::default()))).cast(),
                    address,
                    &mut [],
                )
            };
            drop(left);
        })
    else {
        return;
    };
    assert_eq!(status.signal(), Some(libc::SIGILL), "{status}");
}

/// Installs a handler, as the embedding program might do before it uses this crate.
fn install(signal: c_int, handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void)) {
    // SAFETY: all-zero is a valid `sigaction`. SA_SIGINFO announces a handler of three arguments,
    // which `handler` is.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        assert_eq!(libc::sigaction(signal, &action, ptr::null_mut()), 0);
    }
}

extern "C" fn leave(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes the record of a fault, which is valid until the handler returns.
    // All-zero is a valid `sigset_t`. All calls are async-signal-safe.
    unsafe {
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut blocked);
        // The signal must not be blocked: a handler may escape by a jump, and must then get the
        // next fault.
        let free = libc::sigismember(&blocked, signal) == 0;
        let as_expected = signal == libc::SIGSEGV && (*info).si_addr() as usize == 16;
        libc::_exit(if free && as_expected { HANDLED } else { 1 });
    }
}

#[test]
fn a_handler_installed_earlier_gets_the_faults_of_other_code() {
    let Some(status) =
        in_child("a_handler_installed_earlier_gets_the_faults_of_other_code", || {
            install(libc::SIGSEGV, leave);
            let _code = trapping();
            read_nothing();
        })
    else {
        return;
    };
    assert_eq!(status.code(), Some(HANDLED), "{status}");
}

static SENT: AtomicU64 = AtomicU64::new(0);

extern "C" fn note(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    SENT.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn a_signal_that_was_sent_is_no_trap_at_an_instruction_that_may_trap() {
    let Some(status) =
        in_child("a_signal_that_was_sent_is_no_trap_at_an_instruction_that_may_trap", || {
            install(libc::SIGSEGV, note);
            let mut code = Code::new();
            let signature = native(&[], &[]);
            // Loops at a load that may trap until a word of the context is set.
            let function = code.function(&signature, |b, _, params| {
                let (header, exit) = (b.create_block(), b.create_block());
                b.ins().jump(header, &[]);
                b.switch_to_block(header);
                let flags = MemFlagsData::new().with_trap_code(Some(TrapCode::HEAP_OUT_OF_BOUNDS));
                let word = b.ins().iadd_imm_s(params[0], i64::from(DATA));
                let stop = b.ins().atomic_load(I64, flags, word);
                b.ins().brif(stop, exit, &[], header, &[]);
                b.switch_to_block(exit);
                b.ins().return_(&[]);
            });
            let trampoline = code.trampoline(&signature);
            code.finish();
            // SAFETY: `pthread_self` has no preconditions.
            let target = unsafe { libc::pthread_self() };
            let mut context = Context::default();
            let stop = (&raw mut context) as usize + DATA as usize;
            let sender = thread::spawn(move || {
                for sent in 0..2000 {
                    // SAFETY: the target is the test's thread, which joins this one before it ends.
                    let status = unsafe { libc::pthread_kill(target, libc::SIGSEGV) };
                    assert_eq!(status, 0);
                    while SENT.load(Ordering::SeqCst) <= sent {
                        thread::yield_now();
                    }
                }
                // SAFETY: the context is in the frame of the test's thread, which joins this one.
                // The word is aligned, and during the run both sides access it atomically.
                unsafe { std::sync::atomic::AtomicU64::from_ptr(stop as *mut u64) }
                    .store(1, Ordering::SeqCst);
            });
            code.run(trampoline, function, &mut context, &mut []).expect("nothing trapped");
            sender.join().expect("all signals were sent");
            std::process::exit(HANDLED);
        })
    else {
        return;
    };
    assert_eq!(status.code(), Some(HANDLED), "{status}");
}

#[test]
fn address_space_that_is_refused_is_an_error_value() {
    let Some(status) = in_child("address_space_that_is_refused_is_an_error_value", || {
        limit(libc::RLIMIT_AS, 2 << 30);
        let error = reservation::reserve(1 << 16).expect_err("6 GiB are not there");
        assert_eq!(error.raw_os_error(), Some(libc::ENOMEM));
        std::process::exit(HANDLED);
    }) else {
        return;
    };
    assert_eq!(status.code(), Some(HANDLED), "{status}");
}
