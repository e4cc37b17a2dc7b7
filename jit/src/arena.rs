//! The memory of native code: pieces of any size, packed into shared pages.
//!
//! Each piece begins at a line of the instruction cache. If every piece had pages of its own and
//! began at the beginning of one, all pieces would share a few lines of the cache and of the branch
//! predictor: calls of 64 small functions in turn took 2.4 times as long (`osier-judges calls`).
//!
//! An arena reserves *windows* of address space, so its code is close together, and makes *chunks*
//! of them executable as it grows. Best fit finds room for a piece; a freed piece is joined with
//! its free neighbours. A chunk without a piece goes back to the system. Each step costs a
//! logarithm of the free ranges, and a constant number of system calls.
//!
//! # No page is writable and executable
//!
//! A page that several pieces share stays executable while a piece is written to it, since another
//! thread may execute the other pieces. So the kernel writes, through `/proc/self/mem`, and no
//! mapping of the page is ever writable. The memory is private: a forked process has its own copy
//! of all code, and breakpoints of debuggers work. Where the system forbids such writes, each piece
//! gets pages of its own, which are writable first and executable afterwards.

use crate::free_ranges::FreeRanges;
use crate::sys::reservation::page_size;
use crate::sys::window::Window;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The bytes of a line of the instruction cache. Code begins at such a line.
pub(crate) const LINE: usize = 64;
/// The bytes of a chunk, unless a piece needs a larger one. A single live piece may keep a whole
/// chunk from the system.
const CHUNK: usize = 256 << 10;
/// The bytes of a window: a relative call reaches each piece from every other. Windows are as small
/// as their first chunk where address space is limited.
const WINDOW: usize = 2 << 30;
/// The instruction `int3`, which fills freed memory: a return to freed code ends the process.
const TRAP: u8 = 0xcc;

/// The memory of an engine's code. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct CodeArena(Arc<Mutex<Chunks>>);

/// The memory of one piece of code. Dropping it leaks the memory until the arena is gone.
#[derive(Debug)]
pub(crate) struct CodeSpace {
    arena: CodeArena,
    /// The code.
    range: Range<usize>,
    /// The bytes that the piece takes, the rest of its last line or page included.
    taken: usize,
}

/// The state of an arena.
#[derive(Debug)]
struct Chunks {
    /// Whether pieces may share pages.
    packs: bool,
    /// By the first address.
    windows: BTreeMap<usize, Window>,
    /// Address space of windows that is no chunk.
    unused: FreeRanges,
    /// The ends of chunks, by start.
    chunks: BTreeMap<usize, usize>,
    /// Free memory of chunks, readable and executable.
    free: FreeRanges,
}

impl CodeArena {
    /// An arena without memory.
    pub(crate) fn new() -> CodeArena {
        CodeArena::with_packing(true)
    }

    fn with_packing(packs: bool) -> CodeArena {
        CodeArena(Arc::new(Mutex::new(Chunks {
            packs,
            windows: BTreeMap::new(),
            unused: FreeRanges::default(),
            chunks: BTreeMap::new(),
            free: FreeRanges::default(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Chunks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory with this code, executable. Costs three system calls; a further one in a new chunk.
    ///
    /// # Errors
    /// The error of the system, which has no memory or forbids executable memory.
    pub(crate) fn place(&self, code: &[u8]) -> io::Result<CodeSpace> {
        let mut chunks = self.lock();
        let (start, taken) = chunks.place(code)?;
        Ok(CodeSpace { arena: self.clone(), range: start..start + code.len(), taken })
    }
}

impl CodeSpace {
    /// The addresses of the code.
    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Frees the memory. Costs three system calls.
    ///
    /// # Safety
    /// No thread executes or reads the code, now or later.
    pub(crate) unsafe fn free(self) {
        let start = self.range.start;
        let mut chunks = self.arena.lock();
        // SAFETY: the caller guarantees that no thread executes or reads the code. The range
        // belongs to a piece, whose pages no other piece shares if pieces are not packed.
        unsafe { chunks.free(start..start + self.taken) }
    }
}

impl Chunks {
    /// Finds room for code and writes it. Returns its address and the bytes that it takes.
    fn place(&mut self, code: &[u8]) -> io::Result<(usize, usize)> {
        if self.packs {
            let placed = self.place_at(code, LINE)?;
            // SAFETY: `place_at` took the range from the free ones, so no piece has it.
            if unsafe { self.window_of(placed.0).write(placed.0, code) }.is_ok() {
                return Ok(placed);
            }
            // The system forbids the write, or has no `/proc`, or no further open file. Pages of
            // their own may still work; if not, this function returns their error.
            self.give(placed.0..placed.0 + placed.1);
        }
        let placed = self.place_at(code, page_size())?;
        // SAFETY: `place_at` took the range from the free ones, and it consists of whole pages, so
        // no piece has a part of them. After an error their access rights are unknown, so they are
        // not given back.
        unsafe { self.window_of(placed.0).write_pages(placed.0, code) }?;
        Ok(placed)
    }

    /// Takes room for code from a chunk.
    fn place_at(&mut self, code: &[u8], unit: usize) -> io::Result<(usize, usize)> {
        let taken = code.len().max(1).next_multiple_of(unit);
        let start = match self.free.take(taken, unit, LINE) {
            Some(start) => start,
            None => {
                self.add_chunk(taken)?;
                self.free.take(taken, unit, LINE).expect("jit: the new chunk has room")
            }
        };
        Ok((start, taken))
    }

    /// Makes a chunk of at least so many bytes executable.
    fn add_chunk(&mut self, bytes: usize) -> io::Result<()> {
        let bytes = bytes.next_multiple_of(CHUNK);
        let page = page_size();
        let start = match self.unused.take(bytes, page, page) {
            Some(start) => start,
            None => {
                let window = Window::reserve(bytes, WINDOW)?;
                let addresses = window.addresses();
                self.unused.give(addresses.clone(), &addresses);
                self.windows.insert(addresses.start, window);
                self.unused.take(bytes, page, page).expect("jit: the new window has room")
            }
        };
        let chunk = start..start + bytes;
        let window = self.window_of(start);
        if let Err(error) = window.make_executable(chunk.clone()) {
            let addresses = window.addresses();
            self.unused.give(chunk, &addresses);
            return Err(error);
        }
        self.chunks.insert(start, chunk.end);
        self.free.give(chunk.clone(), &chunk);
        Ok(())
    }

    /// Frees the range of a piece, and fills it with traps.
    ///
    /// # Safety
    /// No thread executes or reads the range, and no other piece overlaps the range.
    unsafe fn free(&mut self, range: Range<usize>) {
        let traps = vec![TRAP; range.len()];
        let window = self.window_of(range.start);
        // SAFETY: the caller guarantees that nobody uses the range.
        let filled = self.packs && unsafe { window.write(range.start, &traps) }.is_ok();
        let is_pages = [range.start, range.end].iter().all(|at| at.is_multiple_of(page_size()));
        if !filled && is_pages {
            // SAFETY: the caller guarantees that nobody uses the range. The range consists of whole
            // pages that no other piece overlaps.
            if unsafe { window.write_pages(range.start, &traps) }.is_err() {
                // The access rights of the pages are unknown: no later piece gets them.
                return;
            }
        }
        // The range is free without the traps as well: traps only show bugs of ours. They are
        // missing where a piece shared a page and the system by now forbids such writes.
        self.give(range);
    }

    /// Gives a range back, and its chunk if that is empty now.
    fn give(&mut self, range: Range<usize>) {
        let (start, end) = self.chunks.range(..=range.start).next_back().expect("jit: in a chunk");
        let chunk = *start..*end;
        if self.free.give(range, &chunk) != chunk {
            return;
        }
        let window = self.window_of(chunk.start);
        let addresses = window.addresses();
        // SAFETY: all of the chunk is free, so no piece overlaps the chunk.
        if unsafe { window.make_inaccessible(chunk.clone()) }.is_ok() {
            self.free.remove(chunk.start);
            self.chunks.remove(&chunk.start);
            self.unused.give(chunk, &addresses);
        }
    }

    /// The window with an address.
    fn window_of(&self, address: usize) -> &Window {
        let found = self.windows.range(..=address).next_back();
        found.expect("jit: a range of a window").1
    }
}

#[cfg(test)]
mod tests;
