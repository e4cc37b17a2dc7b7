//! Traps of native code: the table of instructions that may trap, and the reaction to a trap.
//!
//! A trap is a processor fault (an undefined instruction, a division, an access to a guard page) at
//! an instruction that the compiler recorded as trapping. The signal handler looks the program
//! counter up in a process-wide list of registered code. On a hit it records the trap in the
//! activation of the thread, and resumes the thread at the exception edge of its innermost entry
//! trampoline. The handler passes every other fault to the handler that was installed before.
//!
//! # Why the handler may read the list
//!
//! The list is an immutable sorted array behind an atomic pointer. A writer takes a lock, builds a
//! new array and publishes it. The handler takes no lock, so locks held by the interrupted thread
//! or any other thread cannot block it.
//!
//! A writer frees replaced arrays only if it finds the count of reading handlers at zero *after* it
//! has published the new array. All these operations are sequentially consistent. A handler that
//! saw the old array has raised the count before the publication, so a count of zero shows that it
//! has lowered the count since. If the count is not zero, a later writer frees the old array:
//! nobody ever waits.
//!
//! Code may be registered while native code runs: a version compiled in the middle of a run, or by
//! another thread. `register` publishes the code before it returns its [`Registration`], so no
//! thread can know the address earlier. Code that a thread executes stays in the list, since the
//! thread that entered it keeps its [`Registration`] alive.

use std::io;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cranelift_codegen::ir::TrapCode;

use super::activation::{self, EntryState};
use super::host;

/// A trap of native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CaughtTrap {
    /// The address of the instruction that trapped.
    pub(crate) pc: usize,
    /// The return address of the function that trapped. Set for [`crate::traps::HELPER`] alone, the
    /// trap behind a helper that ends the run.
    pub(crate) back: Option<usize>,
    /// The trap code that the compiler gave to the instruction.
    pub(crate) code: TrapCode,
    /// The accessed address, for a faulting access to memory; 0 if the processor does not report it
    /// (the address is not canonical). The code that entered compares it with the reserved memory.
    /// An access elsewhere shows wrong code, not a trap of the program.
    pub(crate) address: Option<usize>,
}

/// The kinds of faults that the processor distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// The instruction `ud2`, which is undefined on purpose.
    Undefined,
    /// A division without a result.
    Arithmetic,
    /// An access to memory that is unmapped or protected.
    Memory,
}

/// A fault as the signal handler sees it: its kind, the program counter, the frame pointer, and the
/// accessed address for [`FaultKind::Memory`].
pub(super) struct CpuFault {
    pub(super) kind: FaultKind,
    pub(super) pc: usize,
    pub(super) frame: usize,
    pub(super) address: Option<usize>,
}

/// The instructions of one piece of code that may trap.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrapTable {
    /// Sorted by offset. One instruction may have several codes: a division with its divisor in
    /// memory has two.
    entries: Box<[(u32, TrapCode)]>,
}

impl TrapTable {
    /// Builds the table from pairs of a byte offset into the code and a trap code, in any order.
    /// Sorts them once.
    ///
    /// The pairs come from `CompiledCode::buffer.traps()`.
    pub(crate) fn new(traps: impl IntoIterator<Item = (u32, TrapCode)>) -> Self {
        let mut entries: Box<[_]> = traps.into_iter().collect();
        entries.sort_by_key(|&(offset, _)| offset);
        TrapTable { entries }
    }

    /// A lower bound on the size of the code in bytes.
    fn bytes(&self) -> usize {
        self.entries.last().map_or(0, |&(offset, _)| offset as usize + 1)
    }

    /// The code of the instruction at `offset` that fits a fault of this kind.
    ///
    /// `None` if the instruction has only codes of other kinds: such a fault shows wrong code, not
    /// a trap of the program.
    pub(super) fn code_at(&self, offset: u32, kind: FaultKind) -> Option<TrapCode> {
        let first = self.entries.partition_point(|&(other, _)| other < offset);
        let here = self.entries.get(first..)?.iter().take_while(|&&(other, _)| other == offset);
        here.map(|&(_, code)| code).find(|&code| {
            let arithmetic =
                code == TrapCode::INTEGER_DIVISION_BY_ZERO || code == TrapCode::INTEGER_OVERFLOW;
            match kind {
                FaultKind::Undefined => true,
                FaultKind::Arithmetic => arithmetic,
                FaultKind::Memory => !arithmetic,
            }
        })
    }
}

/// One piece of registered code. A [`Registration`] or the writer's list of retired tables owns the
/// table.
#[derive(Clone, Copy)]
struct RegisteredCode {
    start: usize,
    end: usize,
    table: *const TrapTable,
}

// SAFETY: an entry is read by every thread, through the pointer to its table. `TrapTable` is
// immutable and `Sync` (`shared` below checks it). Its owner, a `Registration` or
// `RegistryWriter::tables`, keeps the table until no array that names it can be read.
unsafe impl Send for RegisteredCode {}

const _: () = {
    const fn shared<T: Sync>() {}
    shared::<TrapTable>();
};

type List = Vec<RegisteredCode>;

/// The published array; null before the first registration. The pointer owns the array and comes
/// from `Box::into_raw`.
static LIST: AtomicPtr<List> = AtomicPtr::new(ptr::null_mut());
/// The number of signal handlers between their first and last access to an array.
pub(super) static READERS: AtomicUsize = AtomicUsize::new(0);
static WRITER: Mutex<RegistryWriter> =
    Mutex::new(RegistryWriter { lists: Vec::new(), tables: Vec::new() });

/// The retired arrays and tables: no longer published, but a handler may still read them.
struct RegistryWriter {
    // Boxed, since a handler may hold the address of the `Vec` itself.
    #[expect(clippy::vec_box)]
    lists: Vec<Box<List>>,
    tables: Vec<Arc<TrapTable>>,
}

impl RegistryWriter {
    fn lock() -> MutexGuard<'static, RegistryWriter> {
        // A poisoned lock is harmless: the only panics under it (overlapping ranges, say) come
        // before any change.
        WRITER.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn published(&self) -> List {
        let list = LIST.load(Ordering::SeqCst);
        // SAFETY: the pointer is null or the array published last. Writers alone free arrays, and
        // `self` shows that this thread holds the writers' lock.
        unsafe { list.as_ref() }.cloned().unwrap_or_default()
    }

    fn publish(&mut self, list: List) {
        let old = LIST.swap(Box::into_raw(Box::new(list)), Ordering::SeqCst);
        if !old.is_null() {
            // SAFETY: `old` came from `Box::into_raw` in an earlier call, and the swap removed it
            // from `LIST`, so this is its only owner. A handler may still read it; the box is not
            // changed before the `clear` below.
            self.lists.push(unsafe { Box::from_raw(old) });
        }
        // The load must come after the swap: the argument in the module header rests on this order.
        if READERS.load(Ordering::SeqCst) == 0 {
            self.lists.clear();
            self.tables.clear();
        }
    }
}

/// The registration of code whose traps the handler catches. It lasts as long as this value.
///
/// Drop it before the memory of the code is freed, and not while a thread executes the code.
#[must_use = "dropping it takes the code out of the list"]
pub(crate) struct Registration {
    starts: Box<[usize]>,
    tables: Vec<Arc<TrapTable>>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut writer = RegistryWriter::lock();
        let mut list = writer.published();
        list.retain(|entry| self.starts.binary_search(&entry.start).is_err());
        writer.tables.append(&mut self.tables);
        writer.publish(list);
    }
}

/// Registers pieces of code, each an address range and its trap table. The first call in the
/// process installs the signal handlers.
///
/// Copies the process-wide list (24 bytes for each piece), so register the functions of a module in
/// one call.
///
/// # Errors
///
/// The host is not supported, or the system rejects the handlers.
///
/// # Panics
///
/// If a range is empty, overlaps a registered range, or ends before the last instruction of its
/// table.
pub(crate) fn register(
    code: impl IntoIterator<Item = (Range<usize>, Arc<TrapTable>)>,
) -> io::Result<Registration> {
    install()?;
    let code: Vec<(Range<usize>, Arc<TrapTable>)> = code.into_iter().collect();
    let mut writer = RegistryWriter::lock();
    let mut list = writer.published();
    for (range, table) in &code {
        assert!(!range.is_empty(), "registered code at {:#x} is empty", range.start);
        assert!(
            table.bytes() <= range.len(),
            "the trap table of the code at {:#x} reaches beyond the code",
            range.start
        );
        list.push(RegisteredCode { start: range.start, end: range.end, table: Arc::as_ptr(table) });
    }
    list.sort_by_key(|entry| entry.start);
    for pair in list.windows(2) {
        assert!(
            pair[0].end <= pair[1].start,
            "registered code at {:#x} overlaps that at {:#x}",
            pair[0].start,
            pair[1].start
        );
    }
    writer.publish(list);
    drop(writer);
    let mut starts: Box<[usize]> = code.iter().map(|(range, _)| range.start).collect();
    starts.sort_unstable();
    Ok(Registration { starts, tables: code.into_iter().map(|(_, table)| table).collect() })
}

/// Installs the signal handlers, once for the process. Later calls return the first result.
fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), (io::ErrorKind, String)>> = OnceLock::new();
    let done = INSTALLED.get_or_init(|| {
        host::install_handlers().map_err(|error| (error.kind(), error.to_string()))
    });
    done.clone().map_err(|(kind, message)| io::Error::new(kind, message))
}

/// The trap code at `pc`, if registered code contains `pc` and expects a fault of this kind there.
/// Async-signal-safe.
pub(super) fn look_up(pc: usize, kind: FaultKind) -> Option<TrapCode> {
    READERS.fetch_add(1, Ordering::SeqCst);
    let list = LIST.load(Ordering::SeqCst);
    // SAFETY: the pointer is null or an array published by a writer. No writer frees that array
    // until this handler lowers `READERS`, which it raised before the load (see the module header).
    let found = unsafe { list.as_ref() }.and_then(|list| {
        let after = list.partition_point(|entry| entry.start <= pc);
        // An entry may end before `pc`. `register` checked that its table has no offset beyond the
        // code, so the look-up then finds nothing.
        let entry = list.get(after.checked_sub(1)?)?;
        let offset = u32::try_from(pc - entry.start).ok()?;
        // SAFETY: a `Registration` owns the table while the entry is published; afterwards
        // `RegistryWriter::tables` owns it until the array is freed. The count in `READERS` keeps
        // the array, and so the table, until the `fetch_sub` below.
        unsafe { &*entry.table }.code_at(offset, kind)
    });
    READERS.fetch_sub(1, Ordering::SeqCst);
    found
}

/// Checks whether a fault is a trap of native code. If so, records it in the innermost activation
/// and returns the exception edge at which the thread must resume. Returns `None` for other faults.
/// Async-signal-safe: takes no lock and allocates nothing.
pub(super) fn catch(fault: &CpuFault) -> Option<EntryState> {
    activation::with_current(|activation| {
        let code = look_up(fault.pc, fault.kind)?;
        // SAFETY: the trap HELPER stands behind the call of a helper, so its function has a frame,
        // and `preserve_frame_pointers` (`engine::isa`) makes the frame pointer address it. The
        // word above holds the return address. The frame lives until the thread resumes at the
        // edge.
        let back = (code == crate::traps::HELPER)
            .then(|| unsafe { *(fault.frame as *const usize).add(1) });
        activation.trap.set(Some(CaughtTrap { pc: fault.pc, back, code, address: fault.address }));
        // SAFETY: the fault is at an instruction of registered native code, so native code runs in
        // the innermost activation. The contract of `enter` keeps the context of that activation
        // valid and free of references until `enter` returns.
        Some(unsafe { *activation.entry })
    })?
}
