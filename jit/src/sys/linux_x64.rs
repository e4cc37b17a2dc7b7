//! The host x86-64 Linux: mappings, signals, stack bounds, and the jump to the exception edge.

use std::arch::global_asm;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::{io, mem};

use super::activation::{ENTRY_FP, ENTRY_PC, ENTRY_SP};
use super::debugger::DebuggerList;
use super::traps::{self, CpuFault, FaultKind};
use super::{PageAccess, Unsupported};
use crate::context::Context;

pub(super) fn supported() -> Result<(), Unsupported> {
    Ok(())
}

pub(super) fn page_size() -> usize {
    // SAFETY: `sysconf` reads a system constant and has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("the system has a page size")
}

/// Reserves address space without access rights. It counts toward no memory limit except
/// `RLIMIT_AS`.
pub(super) fn map_reserved(bytes: usize) -> io::Result<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the address is null, so the system chooses an unused range and the call replaces no
    // existing mapping.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(start.cast()).expect("the system maps nothing at address zero"))
}

/// Makes pages readable, and either writable or executable.
///
/// # Safety
///
/// The bytes are whole pages of one mapping that the caller owns. No thread executes them, unless
/// they stay executable.
pub(super) unsafe fn allow(start: *mut u8, bytes: usize, access: PageAccess) -> io::Result<()> {
    let access = match access {
        PageAccess::Write => libc::PROT_READ | libc::PROT_WRITE,
        PageAccess::Execute => libc::PROT_READ | libc::PROT_EXEC,
    };
    // SAFETY: the caller guarantees whole pages of its own mapping, and that no thread needs a
    // right that they lose. No existing pointer becomes invalid.
    match unsafe { libc::mprotect(start.cast(), bytes, access) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Replaces pages by address space without access rights, and gives their memory back.
///
/// # Safety
///
/// The bytes are whole pages of one mapping that the caller owns. No reference into them is alive,
/// and no thread executes them.
pub(super) unsafe fn hide(start: *mut u8, bytes: usize) -> io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: the call replaces the pages that the caller guarantees to own, which nobody uses.
    let at = unsafe { libc::mmap(start.cast(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Writes bytes of this process through the kernel, whatever their access rights.
///
/// This function opens the file anew each time. After a fork, a kept descriptor would refer to the
/// memory of the parent; and if other code closes a kept descriptor, its number may refer to
/// another file.
///
/// # Safety
///
/// The bytes belong to a mapping that the caller owns. No reference to them is alive, and no thread
/// executes them.
pub(super) unsafe fn write_through(start: usize, bytes: &[u8]) -> io::Result<()> {
    File::options().write(true).open("/proc/self/mem")?.write_all_at(bytes, start as u64)
}

/// Whether the address space of this process has a limit.
pub(super) fn limits_address_space() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a live structure of the type that the call writes.
    let status = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) };
    status != 0 || limit.rlim_cur != libc::RLIM_INFINITY
}

/// Removes a mapping.
///
/// # Safety
///
/// `start` and `bytes` describe one whole mapping that the caller owns, and no reference into it is
/// alive.
pub(super) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller guarantees that the range is a whole mapping of its own and that no
    // reference into it is left.
    let result = unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
    // `munmap` fails only for a range that is no mapping, which the contract excludes.
    assert_eq!(result, 0, "unmapping {bytes} bytes at {start:p}: {}", io::Error::last_os_error());
}

/// Maps the first page of a file, readable and executable.
pub(super) fn map_file(file: &File) -> io::Result<NonNull<u8>> {
    let (access, fd) = (libc::PROT_READ | libc::PROT_EXEC, file.as_raw_fd());
    // SAFETY: the address is null, so the system chooses a free range and no mapping goes away. The
    // descriptor is open as long as `file` is borrowed.
    let start =
        unsafe { libc::mmap(ptr::null_mut(), page_size(), access, libc::MAP_PRIVATE, fd, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(start.cast()).expect("the system maps nothing at zero"))
}

/// The address range of this thread's stack. glibc before 2.27 includes the guard page.
pub(super) fn stack_bounds() -> io::Result<Range<usize>> {
    let mut attributes = mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: `pthread_self` names the calling thread, which is alive. `attributes` is valid for
    // writes, and the call initializes it when it returns 0.
    match unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } {
        0 => {}
        error => return Err(io::Error::from_raw_os_error(error)),
    }
    let mut start: *mut c_void = ptr::null_mut();
    let mut size = 0;
    // SAFETY: `pthread_getattr_np` returned 0 above and so initialized the attributes. This block
    // reads and destroys the attributes, once; no code uses them afterwards.
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

/// The frame pointer of the caller and the return address, given the frame pointer of a native
/// function.
///
/// # Safety
///
/// The function waits for a call, and has the frame that `preserve_frame_pointers` gives it.
pub(super) unsafe fn linkage(frame: usize) -> [usize; 2] {
    // SAFETY: the caller guarantees the frame, whose prologue has pushed the frame pointer below
    // the return address, at an address that is a multiple of 16.
    unsafe { *std::ptr::with_exposed_provenance::<[usize; 2]>(frame) }
}

// The symbols that debuggers look for. The function does nothing, and the list begins empty, with
// version 1 of the interface.
global_asm!(
    ".pushsection .text.__jit_debug_register_code, \"ax\", @progbits",
    ".weak __jit_debug_register_code",
    ".type __jit_debug_register_code, @function",
    "__jit_debug_register_code:",
    "ret",
    ".size __jit_debug_register_code, . - __jit_debug_register_code",
    ".popsection",
    ".pushsection .data.__jit_debug_descriptor, \"aw\", @progbits",
    ".balign 8",
    ".weak __jit_debug_descriptor",
    ".type __jit_debug_descriptor, @object",
    "__jit_debug_descriptor:",
    ".long 1, 0",
    ".quad 0, 0",
    ".size __jit_debug_descriptor, . - __jit_debug_descriptor",
    ".popsection",
);

// SAFETY: the assembly above defines both symbols with these types, and so does every other program
// that defines them, since debuggers rely on the interface.
unsafe extern "C" {
    #[link_name = "__jit_debug_descriptor"]
    static mut DEBUGGER_LIST: DebuggerList;
    #[link_name = "__jit_debug_register_code"]
    pub(super) fn debugger_stops_here();
}

/// The list that a debugger reads.
pub(super) fn debugger_list() -> *mut DebuggerList {
    &raw mut DEBUGGER_LIST
}

/// Jumps to the exception edge of the entry trampoline that the context names.
///
/// # Safety
///
/// Native code calls it, with the context that it was entered with. All frames between the caller
/// and the trampoline are native frames (see [`super::enter::raise_address`]).
#[unsafe(naked)]
pub(super) unsafe extern "C" fn raise(context: *mut u8) -> ! {
    // The edge treats every register as clobbered except the stack and frame pointers, so only
    // these two are restored.
    std::arch::naked_asm!(
        "mov rsp, [rdi + {sp}]",
        "mov rbp, [rdi + {fp}]",
        "jmp qword ptr [rdi + {pc}]",
        sp = const ENTRY_SP,
        fp = const ENTRY_FP,
        pc = const ENTRY_PC,
    )
}

/// The helper that a described exit calls. It saves the callee-saved registers in a
/// [`super::ExitFrame`], passes that to [`crate::context::Helpers::describe`], and returns the
/// result.
///
/// # Safety
///
/// Native code calls it, with the context that it was entered with.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn exit(context: *mut Context) -> i64 {
    // Pushes the registers in reverse order of `ExitFrame`, whose last word is the return address
    // of this call. `describe` preserves callee-saved registers, so the epilogue need not reload
    // them. The ABI wants the stack pointer to be a multiple of 16 at a call: the return address,
    // six registers and the subtracted word are 64 bytes.
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

/// The action that was installed for each of `SIGNALS` before ours. The boxes are leaked, since a
/// handler may read them for as long as the process lives.
static PREVIOUS: [AtomicPtr<libc::sigaction>; 4] = [const { AtomicPtr::new(ptr::null_mut()) }; 4];

/// Installs [`handle`] for the four signals. [`super::traps`] calls it once for the process.
pub(super) fn install_handlers() -> io::Result<()> {
    for (slot, signal) in PREVIOUS.iter().zip(SIGNALS) {
        // Publish the previous action before `handle` is installed: another thread may fault at
        // once, and `handle` then needs it.
        let before = set_action(signal, None)?;
        slot.store(Box::into_raw(Box::new(before)), Ordering::Release);
        // SAFETY: `sigaction` is a plain C structure. All-zero is a valid value: no flags, an empty
        // mask and a null handler.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction =
            handle as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
        // SA_ONSTACK: the fault may be a stack overflow, so run on the alternate stack where there
        // is one. SA_NODEFER keeps the signal unblocked. A chained handler may then escape by a
        // jump, as it may without our handler
        // (`a_handler_installed_earlier_gets_the_faults_of_other_code`).
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        let replaced = set_action(signal, Some(&action))?;
        if replaced.sa_sigaction != before.sa_sigaction {
            // Another thread installed a handler between the two calls. The first box stays leaked,
            // since a handler may be reading it.
            slot.store(Box::into_raw(Box::new(replaced)), Ordering::Release);
        }
    }
    Ok(())
}

/// Sets the action for a signal if `action` is given. Returns the previous action.
fn set_action(signal: c_int, action: Option<&libc::sigaction>) -> io::Result<libc::sigaction> {
    // SAFETY: `sigaction` is a plain C structure for which all-zero is a valid value. The call
    // below overwrites it.
    let mut before: libc::sigaction = unsafe { mem::zeroed() };
    let new = action.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `new` is null or points to a live action whose handler has the type that its flags
    // announce. `before` is valid for writes.
    match unsafe { libc::sigaction(signal, new, &mut before) } {
        0 => Ok(before),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The signal handler. It resumes a trap of native code at the exception edge and passes every
/// other signal to the previous handler.
///
/// The handler may interrupt any instruction of any thread, so it takes no lock and allocates no
/// memory.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // A signal sent by a process or thread is no fault, even if it interrupts an instruction that
    // may trap. The kernel gives such signals a code of at most 0.
    // SAFETY: the handler is installed with SA_SIGINFO, so the kernel passes a valid record, which
    // lives until the handler returns.
    let fault = unsafe { (*info).si_code } > 0;
    if fault {
        // SAFETY: the kernel passes the saved context of the interrupted thread, which lives until
        // the handler returns. No other reference to it exists, and changing it sets the registers
        // on return.
        let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        // SAFETY: `info` and `registers` belong to this signal, and its positive code shows that
        // the kernel raised it for a fault.
        if let Some(fault) = unsafe { describe(signal, info, registers) }
            && let Some(edge) = traps::catch(&fault)
        {
            registers[libc::REG_RIP as usize] = edge.pc.cast_signed();
            registers[libc::REG_RSP as usize] = edge.sp.cast_signed();
            registers[libc::REG_RBP as usize] = edge.fp.cast_signed();
            // The exception edge expects two payloads in these registers.
            registers[libc::REG_RAX as usize] = 0;
            registers[libc::REG_RDX as usize] = 0;
            return;
        }
    }
    // SAFETY: these are the arguments that the kernel passed to this handler, and `fault` was
    // computed from them.
    unsafe { chain(signal, info, context, fault) }
}

/// Describes the fault for the portable part. Returns `None` if the fault cannot be a trap of
/// native code.
///
/// # Safety
///
/// The kernel passed the arguments for a fault.
unsafe fn describe(
    signal: c_int,
    info: *const libc::siginfo_t,
    registers: &[libc::greg_t],
) -> Option<CpuFault> {
    let pc = registers[libc::REG_RIP as usize].cast_unsigned() as usize;
    let (kind, address) = match signal {
        libc::SIGFPE => (FaultKind::Arithmetic, None),
        libc::SIGSEGV | libc::SIGBUS => {
            // SAFETY: the caller guarantees the record of a fault. The kernel fills the address
            // field for these two signals.
            let address = unsafe { (*info).si_addr() } as usize;
            (FaultKind::Memory, Some(address))
        }
        libc::SIGILL => {
            // The compiler emits `ud2` alone to trap. Any other undefined instruction (for example
            // an instruction that this processor lacks) is no trap of native code.
            const UD2: [u8; 2] = [0x0f, 0x0b];
            // SAFETY: the processor has just decoded an instruction at `pc`, so its first byte is
            // readable. The second byte is read only if the first is 0x0f, which begins an opcode
            // of at least two bytes.
            let ud2 = unsafe { *(pc as *const u8) == UD2[0] && *((pc + 1) as *const u8) == UD2[1] };
            if !ud2 {
                return None;
            }
            (FaultKind::Undefined, None)
        }
        _ => return None,
    };
    let frame = registers[libc::REG_RBP as usize].cast_unsigned() as usize;
    Some(CpuFault { kind, pc, frame, address })
}

/// Does what the previous handler of the signal would have done.
///
/// # Safety
///
/// The kernel passed the first three arguments to [`handle`]. `fault` says whether the kernel
/// raised the signal for a fault.
unsafe fn chain(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void, fault: bool) {
    let slot = SIGNALS.iter().position(|&other| other == signal);
    let previous = slot.map_or(ptr::null_mut(), |slot| PREVIOUS[slot].load(Ordering::Acquire));
    // SAFETY: the pointer is null or a box that `install_handlers` leaked and never changes. It
    // stores the box before it installs `handle`.
    let Some(previous) = (unsafe { previous.as_ref() }) else { std::process::abort() };
    match previous.sa_sigaction {
        libc::SIG_IGN if !fault => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // After a fault, the instruction faults again on return, with the same registers, and
            // the default action happens. This holds for a fault that the program ignored, too. A
            // signal that was sent does not recur, so raise it again.
            // SAFETY: `previous` is an action that the system returned for this signal, and null is
            // allowed as the place of the old one. Both calls are async-signal-safe.
            unsafe {
                libc::sigaction(signal, previous, ptr::null_mut());
                if !fault {
                    libc::raise(signal);
                }
            }
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: SA_SIGINFO is set in this action, so its handler is a function of three
            // arguments of these types.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: the handler is neither SIG_DFL nor SIG_IGN, and SA_SIGINFO is not set, so it
            // is a function of one integer.
            let handler: extern "C" fn(c_int) = unsafe { mem::transmute(handler) };
            handler(signal);
        }
    }
}

/// Lowers the soft limits of the process on address space (bytes) and processor time (seconds), and
/// disables core files.
pub(crate) fn limit_process(address_space: u64, cpu_seconds: u64) -> std::io::Result<()> {
    let limits =
        [(libc::RLIMIT_AS, address_space), (libc::RLIMIT_CPU, cpu_seconds), (libc::RLIMIT_CORE, 0)];
    for (resource, most) in limits {
        let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `now` is a live structure of the type that the call writes.
        if unsafe { libc::getrlimit(resource, &raw mut now) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let lowered = libc::rlimit { rlim_cur: most.min(now.rlim_cur), rlim_max: now.rlim_max };
        // SAFETY: `lowered` is a live structure of the type that the call reads.
        if unsafe { libc::setrlimit(resource, &raw const lowered) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(())
}
