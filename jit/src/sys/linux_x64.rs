//! x86-64 Linux: mappings, signals, the bounds of a stack, and the jump to the exception edge.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::{io, mem};

use super::Unsupported;
use super::activation::{ENTRY_FP, ENTRY_PC, ENTRY_SP};
use super::traps::{self, Fault, FaultKind};
use crate::context::Context;

pub(super) fn supported() -> Result<(), Unsupported> {
    Ok(())
}

pub(super) fn page_size() -> usize {
    // SAFETY: the call has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("the system has a page size")
}

/// Address space that cannot be accessed and counts for no memory.
pub(super) fn map_reserved(bytes: usize) -> io::Result<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the system's choice touches nothing that exists.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(start.cast()).expect("the system maps nothing at address zero"))
}

/// Makes pages readable and writable.
///
/// # Safety
///
/// The bytes are whole pages of a mapping of the caller's own.
pub(super) unsafe fn allow(start: *mut u8, bytes: usize) -> io::Result<()> {
    // SAFETY: the caller's contract; more access invalidates nothing.
    match unsafe { libc::mprotect(start.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes a mapping away.
///
/// # Safety
///
/// The mapping is the caller's own, whole, and nothing refers to it.
pub(super) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's contract.
    let result = unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
    // Fails only for arguments that are no mapping.
    assert_eq!(result, 0, "unmapping {bytes} bytes at {start:p}: {}", io::Error::last_os_error());
}

/// The stack of this thread; glibc before 2.27 counts the guard page to it.
pub(super) fn stack_bounds() -> io::Result<Range<usize>> {
    let mut attributes = mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the first argument is this thread, which is alive; the second is initialised by the
    // call where it gives 0.
    match unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } {
        0 => {}
        error => return Err(io::Error::from_raw_os_error(error)),
    }
    let mut start: *mut c_void = ptr::null_mut();
    let mut size = 0;
    // SAFETY: the attributes are initialised (above), read, and destroyed once.
    let error = unsafe {
        let error = libc::pthread_attr_getstack(attributes.as_ptr(), &mut start, &mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        error
    };
    match error {
        0 => Ok(start as usize..start as usize + size),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Goes on at the exception edge of the entry trampoline that the context names.
///
/// # Safety
///
/// Called as [`super::enter::raise_address`] says.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn raise(context: *mut u8) -> ! {
    // The edge takes every register but these two as clobbered.
    std::arch::naked_asm!(
        "mov rsp, [rdi + {sp}]",
        "mov rbp, [rdi + {fp}]",
        "jmp qword ptr [rdi + {pc}]",
        sp = const ENTRY_SP,
        fp = const ENTRY_FP,
        pc = const ENTRY_PC,
    )
}

/// What native code calls to leave through an exit that is described: calls
/// [`crate::context::Helpers::describe`] with the registers that calls keep, and returns what that
/// gives.
///
/// # Safety
///
/// Called by native code only, with the context that it was entered with.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn exit(context: *mut Context) -> i64 {
    // In the order of `ExitFrame`, from its end. The helper keeps these registers, so they need not
    // be loaded again. The stack is a multiple of 16 before a call: 7 words and the one of the
    // subtraction.
    std::arch::naked_asm!(
        "push r15",
        "push r14",
        "push r13",
        "push r12",
        "push rbp",
        "push rbx",
        "mov rsi, rsp",
        "sub rsp, 8",
        "call qword ptr [rdi + {describe}]",
        "add rsp, 56",
        "ret",
        describe = const crate::context::offset!(helpers.describe),
    )
}

const SIGNALS: [c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];

/// What was to be done for each of `SIGNALS` before. Leaked, since handlers may read them for as
/// long as the process lives.
static PREVIOUS: [AtomicPtr<libc::sigaction>; 4] = [const { AtomicPtr::new(ptr::null_mut()) }; 4];

/// Installs [`handle`] for the four signals. Called once.
pub(super) fn install_handlers() -> io::Result<()> {
    for (slot, signal) in PREVIOUS.iter().zip(SIGNALS) {
        // The one before is known to the handler before the handler can run: another thread may
        // fault at once.
        let before = set_action(signal, None)?;
        slot.store(Box::into_raw(Box::new(before)), Ordering::Release);
        // SAFETY: all-zero is a value of the C structure: no flags, no signal masked.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction =
            handle as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
        // On the alternate stack, where there is one: the fault may be that the stack is used up.
        // The signal stays unblocked, so that a handler that is chained to may leave by a jump, as
        // it may without us (a_handler_that_was_there_before_gets_the_faults_of_others).
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        let replaced = set_action(signal, Some(&action))?;
        if replaced.sa_sigaction != before.sa_sigaction {
            // Another thread installed one in between. The first box stays leaked: a handler may be
            // reading it.
            slot.store(Box::into_raw(Box::new(replaced)), Ordering::Release);
        }
    }
    Ok(())
}

/// Sets what is done for a signal, if given; what was done before.
fn set_action(signal: c_int, action: Option<&libc::sigaction>) -> io::Result<libc::sigaction> {
    // SAFETY: all-zero is a value of the C structure.
    let mut before: libc::sigaction = unsafe { mem::zeroed() };
    let new = action.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `new` is null or a valid action whose handler is a function of the right type;
    // `before` may be written.
    match unsafe { libc::sigaction(signal, new, &mut before) } {
        0 => Ok(before),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The signal handler: resumes a trap of native code at the exception edge, passes everything else
/// on.
///
/// Runs at any instruction of any thread: it takes no lock and allocates nothing.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // A signal that somebody sent is no fault, whatever instruction it happens to meet.
    // SAFETY: the kernel passes a valid record (SA_SIGINFO).
    let fault = unsafe { (*info).si_code } > 0;
    if fault {
        // SAFETY: the kernel passes the interrupted thread's registers, which are ours to change
        // until the handler returns.
        let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        // SAFETY: a fault, as said.
        if let Some(fault) = unsafe { describe(signal, info, registers) }
            && let Some(edge) = traps::catch(&fault)
        {
            registers[libc::REG_RIP as usize] = edge.pc.cast_signed();
            registers[libc::REG_RSP as usize] = edge.sp.cast_signed();
            registers[libc::REG_RBP as usize] = edge.fp.cast_signed();
            // The two payloads of the edge.
            registers[libc::REG_RAX as usize] = 0;
            registers[libc::REG_RDX as usize] = 0;
            return;
        }
    }
    // SAFETY: the kernel's own arguments, handed on.
    unsafe { chain(signal, info, context, fault) }
}

/// What the fault is, for the portable part; none if it can be none of a trap's.
///
/// # Safety
///
/// The arguments are those that the kernel gave for a fault.
unsafe fn describe(
    signal: c_int,
    info: *const libc::siginfo_t,
    registers: &[libc::greg_t],
) -> Option<Fault> {
    let pc = registers[libc::REG_RIP as usize].cast_unsigned() as usize;
    let (kind, address) = match signal {
        libc::SIGFPE => (FaultKind::Arithmetic, None),
        // SAFETY: for these two signals the record holds an address.
        libc::SIGSEGV | libc::SIGBUS => {
            (FaultKind::Memory, Some(unsafe { (*info).si_addr() } as usize))
        }
        libc::SIGILL => {
            // Another undefined instruction is not one that the compiler wrote to trap (one that
            // this processor lacks, say).
            const UD2: [u8; 2] = [0x0f, 0x0b];
            // SAFETY: the processor has just decoded the instruction there; the bytes are compared
            // in this order, and the second is looked at only where the first says that the
            // instruction has it.
            let ud2 = unsafe { *(pc as *const u8) == UD2[0] && *((pc + 1) as *const u8) == UD2[1] };
            if !ud2 {
                return None;
            }
            (FaultKind::Undefined, None)
        }
        _ => return None,
    };
    let frame = registers[libc::REG_RBP as usize].cast_unsigned() as usize;
    Some(Fault { kind, pc, frame, address })
}

/// Does what was done for the signal before our handler was there.
///
/// # Safety
///
/// The arguments are those that the kernel gave to [`handle`]; `fault` is whether the kernel itself
/// sent the signal.
unsafe fn chain(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void, fault: bool) {
    let slot = SIGNALS.iter().position(|&other| other == signal);
    let previous = slot.map_or(ptr::null_mut(), |slot| PREVIOUS[slot].load(Ordering::Acquire));
    // SAFETY: null, or leaked by `install_handlers`, which stores it before the handler can be
    // called.
    let Some(previous) = (unsafe { previous.as_ref() }) else { std::process::abort() };
    match previous.sa_sigaction {
        libc::SIG_IGN if !fault => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // The instruction faults again on return, and the default happens (for a fault also
            // where it was ignored), with the registers as they are. A signal that was sent does
            // not come again by itself. SAFETY: puts an action back that the system gave; both
            // calls are async-signal-safe.
            unsafe {
                libc::sigaction(signal, previous, ptr::null_mut());
                if !fault {
                    libc::raise(signal);
                }
            }
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the flag says that the address is that of a function of this type.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: without the flag it is a function of this type.
            let handler: extern "C" fn(c_int) = unsafe { mem::transmute(handler) };
            handler(signal);
        }
    }
}

/// Lowers the limits of the process on address space and processor time, and leaves no core file.
pub(crate) fn limit_process(address_space: u64, cpu_seconds: u64) -> std::io::Result<()> {
    let limits =
        [(libc::RLIMIT_AS, address_space), (libc::RLIMIT_CPU, cpu_seconds), (libc::RLIMIT_CORE, 0)];
    for (resource, most) in limits {
        let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the call writes to a structure of its own type, which is ours.
        if unsafe { libc::getrlimit(resource, &raw mut now) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let lowered = libc::rlimit { rlim_cur: most.min(now.rlim_max), rlim_max: now.rlim_max };
        // SAFETY: the call reads a structure of its own type, which is ours.
        if unsafe { libc::setrlimit(resource, &raw const lowered) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(())
}
