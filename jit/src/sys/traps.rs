//! Traps of native code: which machine instructions may trap, and what happens when one does.
//!
//! A trap is a fault of the processor (an undefined instruction, a division, an access to a guard
//! page) at an instruction that the compiler wrote down as trapping. The signal handler looks the
//! program counter up in a process-wide list of registered code, notes the trap in the thread's
//! activation record and resumes the thread at the exception edge of its innermost entry
//! trampoline. Every other fault goes to the handler that was there before.
//!
//! # Why the handler may read the list
//!
//! The list is an immutable sorted array behind an atomic pointer. Writers take a lock, build a new
//! array and publish it; the handler takes no lock, so it does not matter what the interrupted
//! thread, or any other, holds. What was replaced is freed only when a writer, *after* it published
//! the new array, finds the count of handlers that are reading at zero: all these operations are
//! sequentially consistent, so a handler that still saw the old array had raised the count before
//! the publication and has lowered it since. Where the count is not zero the old array is kept
//! until a later writer: nobody ever waits.
//!
//! Code registered while native code runs (a version compiled in the middle of a run, or one of
//! another thread) is seen as soon as its address can be known: `register` publishes before it
//! returns, and the address is passed on after that. Code that a thread executes is in the list,
//! since whoever enters it keeps its [`Registration`] alive.

use std::io;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cranelift_codegen::ir::TrapCode;

use super::activation::{self, EntryState};
use super::host;

/// What happened at a trapping instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trap {
    /// The address of the instruction that trapped.
    pub(crate) pc: usize,
    /// The address behind the call of the function that trapped; of traps behind the call of a
    /// helper, [`crate::traps::HELPER`], alone.
    pub(crate) back: Option<usize>,
    /// The code that the compiler gave to the instruction.
    pub(crate) code: TrapCode,
    /// For a fault of an access to memory, the address; 0 where the processor does not tell it (an
    /// address that is not canonical). The one who entered compares it with the reserved memory: an
    /// access elsewhere is wrong code, not a trap of the program.
    pub(crate) address: Option<usize>,
}

/// The kinds of faults that the processor tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// The instruction that is undefined on purpose.
    Undefined,
    /// A division that has no result.
    Arithmetic,
    /// An access to memory that is not mapped or not allowed.
    Memory,
}

/// A fault as the signal handler sees it.
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    pub(super) pc: usize,
    pub(super) frame: usize,
    pub(super) address: Option<usize>,
}

/// The trapping instructions of one piece of code.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrapTable {
    /// Sorted by offset; one instruction may have several codes (a division whose divisor is in
    /// memory).
    entries: Box<[(u32, TrapCode)]>,
}

impl TrapTable {
    /// The table of the given offsets in bytes from the beginning of the code, in any order.
    ///
    /// The source is `CompiledCode::buffer.traps()`.
    pub(crate) fn new(traps: impl IntoIterator<Item = (u32, TrapCode)>) -> Self {
        let mut entries: Box<[_]> = traps.into_iter().collect();
        entries.sort_by_key(|&(offset, _)| offset);
        TrapTable { entries }
    }

    /// How many bytes of code there are at least.
    fn bytes(&self) -> usize {
        self.entries.last().map_or(0, |&(offset, _)| offset as usize + 1)
    }

    /// The code of the instruction at `offset` that fits a fault of this kind.
    ///
    /// A fault of another kind than the instruction was written down for is no trap of the program,
    /// but wrong code.
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

/// One piece of registered code. The pointer is to the table that a `Registration` (or the list of
/// what is retired) owns.
#[derive(Clone, Copy)]
struct Entry {
    start: usize,
    end: usize,
    table: *const TrapTable,
}

// SAFETY: the table is immutable and `Sync` (`shared` below), and is owned (see `Writer`) for as
// long as an array that names it can be read.
unsafe impl Send for Entry {}

const _: () = {
    const fn shared<T: Sync>() {}
    shared::<TrapTable>();
};

type List = Vec<Entry>;

/// The published array; null before the first registration. Owned: made by `Box::into_raw`.
static LIST: AtomicPtr<List> = AtomicPtr::new(ptr::null_mut());
/// How many signal handlers are between their first and their last access to an array.
pub(super) static READERS: AtomicUsize = AtomicUsize::new(0);
static WRITER: Mutex<Writer> = Mutex::new(Writer { lists: Vec::new(), tables: Vec::new() });

/// What is no longer published, but may still be read by a handler.
struct Writer {
    // Boxed, since a handler may hold the address of the `Vec` itself.
    #[expect(clippy::vec_box)]
    lists: Vec<Box<List>>,
    tables: Vec<Arc<TrapTable>>,
}

impl Writer {
    fn lock() -> MutexGuard<'static, Writer> {
        // A panic with the lock held (ranges that overlap) comes before anything is changed.
        WRITER.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn published(&self) -> List {
        let list = LIST.load(Ordering::SeqCst);
        // SAFETY: null or the array published last; only a writer frees arrays, and the lock is
        // held (`self`).
        unsafe { list.as_ref() }.cloned().unwrap_or_default()
    }

    fn publish(&mut self, list: List) {
        let old = LIST.swap(Box::into_raw(Box::new(list)), Ordering::SeqCst);
        if !old.is_null() {
            // SAFETY: `old` came from `Box::into_raw` above and is taken out of `LIST` once; a
            // handler may still read it, but nothing writes to it until it is freed below.
            self.lists.push(unsafe { Box::from_raw(old) });
        }
        // Comes after the swap: the order that the module's documentation argues with.
        if READERS.load(Ordering::SeqCst) == 0 {
            self.lists.clear();
            self.tables.clear();
        }
    }
}

/// Code whose traps are known to the process, for as long as this value lives.
///
/// Must be dropped before the memory of the code is given back, and not while a thread executes the
/// code.
#[must_use = "dropping it takes the code out of the list"]
pub(crate) struct Registration {
    starts: Box<[usize]>,
    tables: Vec<Arc<TrapTable>>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut writer = Writer::lock();
        let mut list = writer.published();
        list.retain(|entry| self.starts.binary_search(&entry.start).is_err());
        writer.tables.append(&mut self.tables);
        writer.publish(list);
    }
}

/// Makes the traps of pieces of code known: address ranges and their tables. Installs the signal
/// handlers first, once for the process.
///
/// Costs a copy of the process-wide list (24 bytes for each piece): register the functions of a
/// module in one call.
///
/// # Errors
///
/// The handlers cannot be installed, or the host is not supported.
///
/// # Panics
///
/// A range is empty, overlaps another one that is registered, or ends before the last instruction
/// of its table.
pub(crate) fn register(
    code: impl IntoIterator<Item = (Range<usize>, Arc<TrapTable>)>,
) -> io::Result<Registration> {
    install()?;
    let code: Vec<(Range<usize>, Arc<TrapTable>)> = code.into_iter().collect();
    let mut writer = Writer::lock();
    let mut list = writer.published();
    for (range, table) in &code {
        assert!(!range.is_empty(), "registered code at {:#x} is empty", range.start);
        assert!(
            table.bytes() <= range.len(),
            "registered code at {:#x} has the table of other code",
            range.start
        );
        list.push(Entry { start: range.start, end: range.end, table: Arc::as_ptr(table) });
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

/// Installs the signal handlers, once for the process.
fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), (io::ErrorKind, String)>> = OnceLock::new();
    let done = INSTALLED.get_or_init(|| {
        host::install_handlers().map_err(|error| (error.kind(), error.to_string()))
    });
    done.clone().map_err(|(kind, message)| io::Error::new(kind, message))
}

/// The code of the trap at `pc`, if it is in registered code and a fault of this kind was expected
/// there. Async-signal-safe.
fn look_up(pc: usize, kind: FaultKind) -> Option<TrapCode> {
    READERS.fetch_add(1, Ordering::SeqCst);
    let list = LIST.load(Ordering::SeqCst);
    // SAFETY: null or an array that is not freed while `READERS` counts this handler (see the
    // module's documentation).
    let found = unsafe { list.as_ref() }.and_then(|list| {
        let after = list.partition_point(|entry| entry.start <= pc);
        // Behind the end of the code the table has no entry (`register`).
        let entry = list.get(after.checked_sub(1)?)?;
        let offset = u32::try_from(pc - entry.start).ok()?;
        // SAFETY: the table is owned by a `Registration` or by the retired, which are freed
        // together with the arrays.
        unsafe { &*entry.table }.code_at(offset, kind)
    });
    READERS.fetch_sub(1, Ordering::SeqCst);
    found
}

/// Where the thread goes on after this fault if it is a trap of native code, which is then noted in
/// the innermost activation; none if the fault is none of ours. Async-signal-safe: neither locks
/// nor allocates.
pub(super) fn catch(fault: &Fault) -> Option<EntryState> {
    activation::with_current(|activation| {
        let code = look_up(fault.pc, fault.kind)?;
        // SAFETY: native code keeps frame pointers, and what has called a helper has a frame, at
        // which stand the frame pointer of the caller and the address to return to.
        let back = (code == crate::traps::HELPER)
            .then(|| unsafe { *(fault.frame as *const usize).add(1) });
        activation.trap.set(Some(Trap { pc: fault.pc, back, code, address: fault.address }));
        // SAFETY: the context is valid while native code runs with it (contract of `enter`), and
        // native code runs: the fault is at one of its instructions.
        Some(unsafe { *activation.entry })
    })?
}
