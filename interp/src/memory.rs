//! Memories, with a digest that every write updates incrementally.
//!
//! The digest is a sum of mixed pairs of place and contents, one for each 8-byte word of a memory,
//! each global and each size. A zero word contributes nothing, so fresh memory costs nothing. A
//! store updates the digest in constant time: it subtracts the contribution of the words it
//! touches, writes, and adds their new contribution. Equal memories have equal digests; unequal
//! memories have equal digests with a chance of 2^-64.

use super::host_memory::{HostMemory, ProvidedMemory};
use super::limits::Limits;
use super::region::{Region, Storage};
use cranelift_entity::EntityRef;
use ir::entity::Memory;
use ir::module::{MemoryDecl, MemoryKind, PAGE_BYTES};
use ir::place::Place;
use std::fmt;
use std::ops::Range;
use transition::mapping::Write;

// Addresses are computed in 64 bits and then used as `usize`.
const _: () = assert!(usize::BITS >= 64, "the interpreter needs 64-bit addresses");

/// Most pages of a memory that declares no maximum.
const MAX_PAGES: u32 = 65_536;

/// A well-mixed function of a place and a word. It is 0 for the word 0.
#[inline]
pub(super) fn mix(place: u64, word: u64) -> u64 {
    if word == 0 { 0 } else { scramble(place, word) }
}

/// A well-mixed function of two words.
#[inline]
pub(super) fn scramble(a: u64, b: u64) -> u64 {
    let mut x = b.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ a.wrapping_add(1).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 29)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^ (x >> 32)
}

/// The place of the size of a memory in the digest. The places of tables and segments have further
/// high bits set.
fn size_place(index: usize) -> u64 {
    (1 << 62) | index as u64
}

/// A range is out of bounds of its memory or table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfBounds;

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the range is out of bounds of its memory or table")
    }
}

impl std::error::Error for OutOfBounds {}

#[derive(Clone, Debug)]
struct OneMemory {
    kind: MemoryKind,
    storage: Storage,
    /// The bytes of a memory of kind [`MemoryKind::Host`], once the embedder has provided them.
    provided: ProvidedMemory,
    max_pages: u32,
}

impl OneMemory {
    /// The index of an address in the storage; `None` where the memory has no storage there.
    #[inline]
    fn index(&self, address: u64) -> Option<u64> {
        match self.kind {
            MemoryKind::Linear => Some(address),
            MemoryKind::HostFrom(first) => address.checked_sub(first),
            MemoryKind::Host => None,
        }
    }
}

/// The number and digest of memories or tables at one moment, by which `cut` removes later memories
/// or tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) count: usize,
    /// The pages or entries that may still be added under the limit.
    pub(super) left: u32,
    pub(super) digest: u64,
}

/// A place in a memory.
#[derive(Clone, Copy)]
pub(super) struct MemoryAddress {
    pub(super) memory: Memory,
    pub(super) address: u64,
}

/// The memories of one machine. A clone copies the contents out of any [`Region`] into allocations
/// of its own. It has no bytes of memories that the embedder provides ([`Memories::provide`]).
#[derive(Clone, Debug)]
pub struct Memories {
    list: Vec<OneMemory>,
    /// Pages by which all memories together may still grow.
    pages_left: u32,
    /// Whether every write updates `digest`.
    tracked: bool,
    digest: u64,
}

impl Memories {
    /// An empty list of memories.
    pub(super) fn new(limits: &Limits, tracked: bool) -> Memories {
        Memories { list: Vec::new(), pages_left: limits.memory_pages, tracked, digest: 0 }
    }

    /// Adds a zeroed memory as declared. Fails when a limit or the region lacks room for the
    /// memory.
    pub(super) fn add(
        &mut self,
        decl: &MemoryDecl,
        region: Option<Box<dyn Region>>,
    ) -> Result<(), OutOfBounds> {
        let max_pages = match decl.kind {
            MemoryKind::Linear => decl.max_pages.unwrap_or(MAX_PAGES).min(MAX_PAGES),
            MemoryKind::HostFrom(_) => decl.min_pages.min(MAX_PAGES),
            MemoryKind::Host => 0,
        };
        if decl.min_pages > self.pages_left || decl.min_pages > max_pages {
            return Err(OutOfBounds);
        }
        let id = Memory::new(self.list.len());
        let (storage, provided) = (Storage::new(region), ProvidedMemory::default());
        self.list.push(OneMemory { kind: decl.kind, storage, provided, max_pages });
        self.grow(id, decl.min_pages).map(|_| ()).ok_or(OutOfBounds)
    }

    /// The extent to which `cut` can return.
    pub(super) fn extent(&self) -> Extent {
        Extent { count: self.list.len(), left: self.pages_left, digest: self.digest }
    }

    /// Removes the memories added since `extent` was taken. They must not have been written.
    pub(super) fn cut(&mut self, extent: Extent) {
        self.list.truncate(extent.count);
        (self.pages_left, self.digest) = (extent.left, extent.digest);
    }

    /// The number of memories.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Provides the bytes of a host memory that has no pages. Without them, every access of the
    /// memory traps. They are the embedder's state: digests and comparisons of memories leave them
    /// out, and a clone of the memories does not have them.
    ///
    /// # Panics
    /// When the module does not declare the memory, or the memory is of another kind.
    pub fn provide(&mut self, memory: Memory, bytes: Box<dyn HostMemory>) {
        let target = &mut self.list[memory.index()];
        assert_eq!(target.kind, MemoryKind::Host, "interp: {memory} has its own bytes");
        target.provided = ProvidedMemory(Some(bytes));
    }

    /// The contents of a memory; empty for a host memory that the embedder provides.
    ///
    /// # Panics
    /// When the module declares no such memory.
    pub fn bytes(&self, memory: Memory) -> &[u8] {
        self.list[memory.index()].storage.bytes()
    }

    /// The contents of a memory, to change them at the cost of a plain store, as the interpreter of
    /// an embedder does. `None` if every write counts in the digest (`Options::track_memory`);
    /// [`Memories::write`] keeps it up to date. Constant cost.
    ///
    /// # Panics
    /// When the module declares no such memory.
    pub fn bytes_mut(&mut self, memory: Memory) -> Option<&mut [u8]> {
        match self.tracked {
            true => None,
            false => Some(self.list[memory.index()].storage.bytes_mut()),
        }
    }

    /// The size of a memory in pages of 64 KiB.
    ///
    /// # Panics
    /// When the module declares no such memory.
    pub fn pages(&self, memory: Memory) -> u32 {
        // At most MAX_PAGES.
        (self.bytes(memory).len() as u64 / PAGE_BYTES) as u32
    }

    /// A range of a memory, or `None` when it is out of bounds. A host memory that the embedder
    /// provides has no ranges: see [`Memories::read_into`].
    ///
    /// # Panics
    /// When the module declares no such memory.
    pub fn read(&self, memory: Memory, address: u64, length: u64) -> Option<&[u8]> {
        let index = self.list[memory.index()].index(address)?;
        self.bytes(memory).get(range(index, length)?)
    }

    /// Reads bytes of any memory. Cost: their number.
    ///
    /// # Errors
    /// When the range is out of bounds; the contents of `into` are then unspecified.
    ///
    /// # Panics
    /// When the module declares no such memory.
    pub fn read_into(
        &self,
        memory: Memory,
        address: u64,
        into: &mut [u8],
    ) -> Result<(), OutOfBounds> {
        let from = &self.list[memory.index()];
        if from.kind == MemoryKind::Host {
            return if from.provided.read(address, into) { Ok(()) } else { Err(OutOfBounds) };
        }
        into.copy_from_slice(self.read(memory, address, into.len() as u64).ok_or(OutOfBounds)?);
        Ok(())
    }

    /// Writes bytes. Cost: their number.
    ///
    /// # Errors
    /// When the range is out of bounds; nothing is written then.
    ///
    /// # Panics
    /// When the module declares no such memory.
    pub fn write(&mut self, memory: Memory, address: u64, bytes: &[u8]) -> Result<(), OutOfBounds> {
        let target = &mut self.list[memory.index()];
        if target.kind == MemoryKind::Host {
            let written = target.provided.write(address, bytes);
            return if written { Ok(()) } else { Err(OutOfBounds) };
        }
        let index = target.index(address).ok_or(OutOfBounds)?;
        self.change(memory, index, bytes.len() as u64, |target| target.copy_from_slice(bytes))
    }

    /// Sets `count` bytes to one value.
    pub(super) fn fill(
        &mut self,
        memory: Memory,
        address: u64,
        byte: u8,
        count: u64,
    ) -> Result<(), OutOfBounds> {
        self.change(memory, address, count, |bytes| bytes.fill(byte))
    }

    /// Copies bytes between two memories, or within one. The ranges may overlap.
    pub(super) fn copy(
        &mut self,
        to: MemoryAddress,
        from: MemoryAddress,
        count: u64,
    ) -> Result<(), OutOfBounds> {
        let source = within(self.bytes(from.memory).len(), from.address, count)?;
        if to.memory == from.memory {
            let target = within(self.bytes(to.memory).len(), to.address, count)?;
            let start = target.start;
            self.untrack(to.memory, target.clone());
            self.list[to.memory.index()].storage.bytes_mut().copy_within(source, start);
            self.track(to.memory, target);
            return Ok(());
        }
        // Takes the source out of the list, because `change` borrows the whole list.
        let storage = std::mem::take(&mut self.list[from.memory.index()].storage);
        let result = self.change(to.memory, to.address, count, |target| {
            target.copy_from_slice(&storage.bytes()[source])
        });
        self.list[from.memory.index()].storage = storage;
        result
    }

    /// Changes a range of a memory and updates the digest. Changes nothing when it is out of
    /// bounds.
    fn change(
        &mut self,
        memory: Memory,
        address: u64,
        count: u64,
        change: impl FnOnce(&mut [u8]),
    ) -> Result<(), OutOfBounds> {
        let at = within(self.bytes(memory).len(), address, count)?;
        self.untrack(memory, at.clone());
        change(&mut self.list[memory.index()].storage.bytes_mut()[at.clone()]);
        self.track(memory, at);
        Ok(())
    }

    /// Executes a write whose opcode is a store.
    pub(super) fn store(&mut self, write: &Write) -> Result<(), OutOfBounds> {
        let (Some(Place::Bytes { memory, offset, bytes, address: ty }), [address, value]) =
            (Place::written(write.opcode, write.ty, &write.imm), write.args.as_slice())
        else {
            return Err(OutOfBounds);
        };
        if memory.index() >= self.list.len() {
            return Err(OutOfBounds);
        }
        let address = (*address & ty.mask()).checked_add(offset).ok_or(OutOfBounds)?;
        self.write(memory, address, &value.to_le_bytes()[..bytes as usize])
    }

    fn untrack(&mut self, memory: Memory, range: Range<usize>) {
        if self.tracked {
            self.digest = self.digest.wrapping_sub(self.sum(memory, range));
        }
    }

    fn track(&mut self, memory: Memory, range: Range<usize>) {
        if self.tracked {
            self.digest = self.digest.wrapping_add(self.sum(memory, range));
        }
    }

    /// Whether every write updates the digest.
    #[inline]
    pub(super) fn tracked(&self) -> bool {
        self.tracked
    }

    /// The contents of memory 0; empty without a memory. Where memories are tracked, the caller
    /// must not write through this slice, because that breaks the digest: use [`Memories::write`].
    #[inline]
    pub(super) fn first_mut(&mut self) -> &mut [u8] {
        self.list.first_mut().map_or(&mut [], |m| m.storage.bytes_mut())
    }

    /// The contents of a memory, to be written without updating the digest. [`Memories::refresh`]
    /// repairs it.
    pub(super) fn bytes_raw(&mut self, memory: Memory) -> &mut [u8] {
        self.list[memory.index()].storage.bytes_mut()
    }

    /// Recomputes the digest, where it is tracked. Cost: the size of the memories.
    pub(super) fn refresh(&mut self) {
        if self.tracked {
            self.digest = self.computed_digest();
        }
    }

    /// Grows a memory and returns its previous size in pages. Returns `None`, and changes nothing,
    /// when the new size exceeds its maximum, the machine's limit, or the capacity of its region.
    pub(super) fn grow(&mut self, memory: Memory, pages: u32) -> Option<u32> {
        let before = self.pages(memory);
        let after = before.checked_add(pages)?;
        let target = &mut self.list[memory.index()];
        if after > target.max_pages || pages > self.pages_left {
            return None;
        }
        if pages > 0 && !target.storage.grow(after as usize * PAGE_BYTES as usize) {
            return None;
        }
        self.pages_left -= pages;
        if self.tracked {
            let place = size_place(memory.index());
            self.digest = self
                .digest
                .wrapping_sub(mix(place, before.into()))
                .wrapping_add(mix(place, after.into()));
        }
        Some(before)
    }

    /// The digest. Cost: constant where memory is tracked, else the size of the memories.
    pub fn digest(&self) -> u64 {
        if self.tracked { self.digest } else { self.computed_digest() }
    }

    /// The digest where memory is tracked, else 0.
    #[inline]
    pub(super) fn tracked_digest(&self) -> u64 {
        self.digest
    }

    /// The digest computed from the contents. Cost: the size of the memories.
    pub fn computed_digest(&self) -> u64 {
        let memories = (0..self.list.len()).map(Memory::new);
        memories.fold(0u64, |digest, memory| {
            let size = mix(size_place(memory.index()), self.pages(memory).into());
            digest.wrapping_add(size).wrapping_add(self.sum(memory, 0..self.bytes(memory).len()))
        })
    }

    /// The contribution to the digest of all words that overlap a range within the memory.
    fn sum(&self, memory: Memory, range: Range<usize>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        // Memory sizes are multiples of 8, so the rounded range lies within the memory.
        let (first, end) = (range.start / 8, range.end.div_ceil(8));
        let (words, _) = self.bytes(memory)[first * 8..end * 8].as_chunks::<8>();
        let base = (memory.index() as u64) << 32;
        words.iter().zip(first..end).fold(0u64, |sum, (word, index)| {
            sum.wrapping_add(mix(base | index as u64, u64::from_le_bytes(*word)))
        })
    }
}

/// Memories are equal when their sizes and contents are. Cost: the size of the memories.
impl PartialEq for Memories {
    fn eq(&self, other: &Memories) -> bool {
        self.list.len() == other.list.len()
            && self
                .list
                .iter()
                .zip(&other.list)
                .all(|(a, b)| a.storage.bytes() == b.storage.bytes())
    }
}

impl Eq for Memories {}

fn range(address: u64, length: u64) -> Option<Range<usize>> {
    Some(address as usize..address.checked_add(length)? as usize)
}

/// The range of `count` items from `at`, if it lies within `length` items.
pub(super) fn within(length: usize, at: u64, count: u64) -> Result<Range<usize>, OutOfBounds> {
    match at.checked_add(count) {
        Some(end) if end <= length as u64 => Ok(at as usize..end as usize),
        _ => Err(OutOfBounds),
    }
}
