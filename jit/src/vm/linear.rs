//! Linear memory in reserved address space.

use crate::sys::reservation::{Reservation, reserve};
use interp::Region;
use ir::module::{MemoryDecl, MemoryKind, PAGE_BYTES};
use std::ops::Range;

/// The number of pages of a memory without a maximum.
const MAX_PAGES: u32 = 65_536;

/// A memory whose base never moves. Every access behind its usable bytes faults.
#[derive(Debug)]
struct Reserved(Reservation);

/// The address ranges of guarded memories.
pub(super) type Addresses = Vec<Range<usize>>;

/// Reserves address space for a memory, and appends its range to `addresses`. Returns `None` if the
/// system rejects the reservation.
pub(super) fn reserved(decl: &MemoryDecl, addresses: &mut Addresses) -> Option<Box<dyn Region>> {
    let pages = match decl.kind {
        MemoryKind::Linear => decl.max_pages.unwrap_or(MAX_PAGES).min(MAX_PAGES),
        MemoryKind::Host | MemoryKind::HostFrom(_) => decl.min_pages.min(MAX_PAGES),
    };
    let made = reserve(pages as usize * PAGE_BYTES as usize).ok()?;
    addresses.push(made.addresses());
    Some(Box::new(Reserved(made)))
}

impl Region for Reserved {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }

    fn grow(&mut self, length: usize) -> bool {
        self.0.grow(length)
    }
}
