//! The process-wide list of code whose traps the signal handler catches.
//!
//! # Cost
//!
//! Engines register each function separately, and programs have many thousands of functions. So the
//! list consists of *batches*: sorted arrays, each at least twice as long as the next one. New code
//! begins a batch of its own, and a batch that is too long for its place is merged with the one
//! before it. Code that is dropped leaves its place in the batch, without a table; a batch that has
//! lost more than half of its code is copied without these places. So for n pieces of code, each
//! piece is copied at most log n times, and the handler searches at most log n batches
//! (`code_is_in_few_batches_and_copied_few_times`).
//!
//! # Why the handler may read the list
//!
//! The list of batches is immutable, and so are the batches, but for the pointers to tables. The
//! list is behind an atomic pointer. A writer takes a lock, builds a new list and publishes it, or
//! it takes the pointers to the tables of dropped code out of the published batches. The handler
//! takes no lock, so locks held by the interrupted thread or any other thread cannot block it.
//!
//! A writer frees replaced lists, and tables of dropped code, only if it finds the count of reading
//! handlers at zero *after* it has published the new list and taken out the pointers. All these
//! operations are sequentially consistent. A handler that saw the old list or pointer has raised
//! the count before that change, so a count of zero shows that it has lowered the count since. If
//! the count is not zero, a later writer frees: nobody ever waits. A replaced list may still name
//! the table of code that is dropped later. A handler that reads it has raised the count before the
//! list was replaced, so the table stays as well.
//!
//! Code may be registered while native code runs: a version compiled in the middle of a run, or by
//! another thread. `register` publishes the code before it returns its [`Registration`], so no
//! thread can know the address earlier. Code that a thread executes stays in the list, since the
//! thread that entered it keeps its [`Registration`] alive.

use std::io;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cranelift_codegen::ir::TrapCode;
use smallvec::SmallVec;

use super::traps::{FaultKind, TrapTable, install};

/// One piece of code. A [`Registration`] or the writer's list of retired tables owns the table.
pub(super) struct RegisteredCode {
    pub(super) start: usize,
    end: usize,
    /// Null once the code is dropped.
    table: AtomicPtr<TrapTable>,
}

// Every thread reads tables, through the pointers in the list.
const _: () = {
    const fn shared<T: Sync>() {}
    shared::<TrapTable>();
};

impl RegisteredCode {
    pub(super) fn new(range: &Range<usize>, table: &Arc<TrapTable>) -> RegisteredCode {
        let table = AtomicPtr::new(Arc::as_ptr(table).cast_mut());
        RegisteredCode { start: range.start, end: range.end, table }
    }

    fn is_live(&self) -> bool {
        !self.table.load(Ordering::SeqCst).is_null()
    }

    fn copied(&self) -> RegisteredCode {
        let table = AtomicPtr::new(self.table.load(Ordering::SeqCst));
        RegisteredCode { start: self.start, end: self.end, table }
    }
}

/// Pieces of code by address. No two pieces overlap, dropped ones included.
pub(super) struct Batch {
    pub(super) code: Box<[RegisteredCode]>,
    /// The pieces that are not dropped. Writers alone access it, under their lock.
    live: AtomicUsize,
}

impl Batch {
    pub(super) fn new(mut code: Vec<RegisteredCode>) -> Arc<Batch> {
        // The stable sort joins the two sorted halves of a merge in one pass.
        code.sort_by_key(|piece| piece.start);
        Arc::new(Batch { live: AtomicUsize::new(code.len()), code: code.into() })
    }

    /// One batch with all live code of several batches.
    fn merged(parts: &[&Batch]) -> Arc<Batch> {
        let live = parts.iter().flat_map(|batch| &batch.code).filter(|piece| piece.is_live());
        Batch::new(live.map(RegisteredCode::copied).collect())
    }

    pub(super) fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// The last piece that begins at `pc` or before.
    fn before(&self, pc: usize) -> Option<&RegisteredCode> {
        self.code.get(self.code.partition_point(|piece| piece.start <= pc).checked_sub(1)?)
    }

    /// The start of registered code that has an address in this range.
    fn overlapping(&self, range: &Range<usize>) -> Option<usize> {
        let first = self.code.partition_point(|piece| piece.end <= range.start);
        let within = self.code[first..].iter().take_while(|piece| piece.start < range.end);
        within.filter(|piece| piece.is_live()).map(|piece| piece.start).next()
    }

    /// Takes the table of the code at `start` out. Returns whether this batch had it.
    pub(super) fn take_out(&self, start: usize) -> bool {
        let Some(piece) = self.before(start).filter(|p| p.start == start && p.is_live()) else {
            return false;
        };
        piece.table.store(ptr::null_mut(), Ordering::SeqCst);
        self.live.fetch_sub(1, Ordering::Relaxed);
        true
    }

    pub(super) fn is_sparse(&self) -> bool {
        2 * self.live() < self.code.len()
    }
}

/// The batches, the longest first.
pub(super) type List = Vec<Arc<Batch>>;

/// Merges batches until each has at least twice as much code as the next one.
pub(super) fn settled(batches: impl IntoIterator<Item = Arc<Batch>>) -> List {
    let mut list = List::new();
    for mut batch in batches {
        if batch.is_sparse() {
            batch = Batch::merged(&[&*batch]);
        }
        while let Some(before) = list.pop_if(|before| before.live() < 2 * batch.live()) {
            batch = Batch::merged(&[&*before, &*batch]);
        }
        if batch.live() > 0 {
            list.push(batch);
        }
    }
    list
}

/// The published list; null before the first registration. The pointer owns the list and comes from
/// `Box::into_raw`.
static LIST: AtomicPtr<List> = AtomicPtr::new(ptr::null_mut());
/// The number of signal handlers between their first and last access to a list.
pub(super) static READERS: AtomicUsize = AtomicUsize::new(0);
static WRITER: Mutex<RegistryWriter> =
    Mutex::new(RegistryWriter { lists: Vec::new(), tables: Vec::new() });

/// The retired lists and tables: they are no longer published, but a handler may still read them.
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

    fn published(&self) -> &[Arc<Batch>] {
        let list = LIST.load(Ordering::SeqCst);
        // SAFETY: the pointer is null or the list published last. Writers alone free lists, after
        // they have replaced them in `publish`, which needs `&mut self`. The borrow of `self`
        // shows that this thread holds the writers' lock as long as the list is read.
        unsafe { list.as_ref() }.map_or(&[], Vec::as_slice)
    }

    fn publish(&mut self, list: List) {
        let old = LIST.swap(Box::into_raw(Box::new(list)), Ordering::SeqCst);
        if !old.is_null() {
            // SAFETY: `old` came from `Box::into_raw` in an earlier call, and the swap removed it
            // from `LIST`, so this is its only owner. A handler may still read it; the box is not
            // changed before `free` clears it away.
            self.lists.push(unsafe { Box::from_raw(old) });
        }
    }

    /// Frees all retired lists and tables, unless a handler may read them. Called after the change:
    /// the argument in the module header rests on this order.
    fn free(&mut self) {
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
    /// The first address of each piece, with its table.
    code: SmallVec<[(usize, Arc<TrapTable>); 1]>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut writer = RegistryWriter::lock();
        let list = writer.published();
        for (start, _) in &self.code {
            // Live code is in one batch alone (`register` refuses code that overlaps).
            list.iter().any(|batch| batch.take_out(*start));
        }
        if list.iter().any(|batch| batch.is_sparse()) {
            let list = settled(list.iter().cloned());
            writer.publish(list);
        }
        writer.tables.extend(self.code.drain(..).map(|(_, table)| table));
        writer.free();
    }
}

/// Registers pieces of code, each an address range and its trap table. The first call in the
/// process installs the signal handlers.
///
/// Cost: in proportion to the pieces, times a logarithm of the number registered, on average over
/// many calls.
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
    let mut code: Vec<(Range<usize>, Arc<TrapTable>)> = code.into_iter().collect();
    code.sort_by_key(|(range, _)| range.start);
    for (range, table) in &code {
        assert!(!range.is_empty(), "registered code at {:#x} is empty", range.start);
        assert!(
            table.bytes() <= range.len(),
            "the trap table of the code at {:#x} reaches beyond the code",
            range.start
        );
    }
    let mut writer = RegistryWriter::lock();
    let list = writer.published();
    for (index, (range, _)) in code.iter().enumerate() {
        let next = code.get(index + 1).map(|(next, _)| next.start).filter(|s| *s < range.end);
        let other = next.or_else(|| list.iter().find_map(|batch| batch.overlapping(range)));
        if let Some(other) = other {
            panic!("registered code at {:#x} overlaps that at {other:#x}", range.start);
        }
    }
    let batch =
        Batch::new(code.iter().map(|(range, table)| RegisteredCode::new(range, table)).collect());
    let list = settled(list.iter().cloned().chain([batch]));
    writer.publish(list);
    writer.free();
    drop(writer);
    let code = code.into_iter().map(|(range, table)| (range.start, table)).collect();
    Ok(Registration { code })
}

/// The trap code at `pc`, if registered code contains `pc` and expects a fault of this kind there.
/// Async-signal-safe.
pub(super) fn look_up(pc: usize, kind: FaultKind) -> Option<TrapCode> {
    READERS.fetch_add(1, Ordering::SeqCst);
    let list = LIST.load(Ordering::SeqCst);
    // SAFETY: the pointer is null or a list published by a writer. No writer frees that list until
    // this handler lowers `READERS`, which it raised before the load (see the module header).
    let list = unsafe { list.as_ref() }.map_or(&[][..], Vec::as_slice);
    let found = list.iter().find_map(|batch| {
        // The piece may end before `pc`. `register` checked that its table has no offset beyond the
        // code, so the look-up then finds nothing. Another batch may have code there: the piece
        // may be dropped, and others registered in its place.
        let piece = batch.before(pc)?;
        let offset = u32::try_from(pc - piece.start).ok()?;
        let table = piece.table.load(Ordering::SeqCst);
        // SAFETY: the pointer is null or points to a table. A `Registration` owns the table until a
        // writer has taken the pointer out of the published list; afterwards
        // `RegistryWriter::tables` owns it. The count in `READERS`, raised before the loads of list
        // and pointer, keeps it until the `fetch_sub` below (see the module header).
        unsafe { table.as_ref() }?.code_at(offset, kind)
    });
    READERS.fetch_sub(1, Ordering::SeqCst);
    found
}
