//! The places of code within pages.
//!
//! Each piece of code has pages of its own, so that they can be made executable and freed
//! separately. If every piece began at the beginning of a page, all pieces would share a few lines
//! of the instruction cache and of the branch predictor: calls of 64 small functions in turn took
//! 2.4 times as long (`osier-judges calls`). A piece therefore begins where the last one ended
//! within its page, if it takes no further page there.

use crate::sys::region::page_size;
use cranelift_jit::{BranchProtection, JITMemoryKind, JITMemoryProvider, SystemMemoryProvider};
use cranelift_module::ModuleResult;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes of a line of the instruction cache. Code begins at such a line.
const LINE: usize = 64;

/// The place within a page behind the code that an engine has made last. Threads that compile at
/// the same time share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodePlaces(Arc<AtomicUsize>);

impl CodePlaces {
    /// The offset at which code of this size begins in its first page. The code takes no more pages
    /// than at offset 0.
    fn take(&self, size: usize) -> usize {
        let lines = size.div_ceil(LINE) * LINE;
        let next = self.0.fetch_add(lines, Ordering::Relaxed);
        offset(next, size, page_size())
    }

    /// Memory for one piece of code.
    pub(crate) fn memory(&self) -> Box<dyn JITMemoryProvider + Send> {
        Box::new(PlacedMemory { places: self.clone(), pages: SystemMemoryProvider::new() })
    }
}

/// The offset for code of this size that follows `next` bytes of code. Within the room that the
/// code leaves in its pages, offsets repeat.
fn offset(next: usize, size: usize, page: usize) -> usize {
    let room = size.next_multiple_of(page) - size;
    let wanted = next % page;
    if wanted <= room { wanted } else { wanted % (room / LINE * LINE + LINE) }
}

/// Cranelift's memory, in which executable memory begins at the next place.
struct PlacedMemory {
    places: CodePlaces,
    pages: SystemMemoryProvider,
}

impl JITMemoryProvider for PlacedMemory {
    fn allocate(&mut self, size: usize, align: u64, kind: JITMemoryKind) -> io::Result<*mut u8> {
        if !matches!(kind, JITMemoryKind::Executable) || align > LINE as u64 {
            return self.pages.allocate(size, align, kind);
        }
        let offset = self.places.take(size);
        // The pointer stays within the allocation, which has `offset` bytes more.
        Ok(self.pages.allocate(offset + size, LINE as u64, kind)?.wrapping_add(offset))
    }

    /// Frees all memory.
    ///
    /// # Safety
    /// No thread executes code in the memory, now or later.
    unsafe fn free_memory(&mut self) {
        // SAFETY: the caller guarantees that no thread executes code in the memory. The memory of
        // Cranelift, which this value wraps, needs no more.
        unsafe { self.pages.free_memory() }
    }

    fn finalize(&mut self, protection: BranchProtection) -> ModuleResult<()> {
        self.pages.finalize(protection)
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE, offset};

    /// Code takes no further page for the sake of its place, and begins at a line.
    #[test]
    fn places_cost_no_pages() {
        for next in (0..3 * 4096).step_by(LINE) {
            for size in [0, 1, 63, 64, 65, 2000, 4032, 4033, 4095, 4096, 4097, 9000, 12_288] {
                let at = offset(next, size, 4096);
                assert_eq!(at % LINE, 0, "{next} {size}");
                assert_eq!((at + size).div_ceil(4096), size.div_ceil(4096), "{next} {size}");
            }
        }
    }

    /// Small functions follow one another, so they use all lines of the cache alike.
    #[test]
    fn small_code_follows_the_last() {
        let places: Vec<usize> = (0..64).map(|at| offset(at * LINE, 40, 4096)).collect();
        assert_eq!(places, (0..64).map(|at| at * LINE).collect::<Vec<_>>());
    }
}
