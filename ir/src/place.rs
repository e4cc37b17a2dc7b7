//! Places: the parts of memory that a read reads or a write writes, and the test whether two places
//! are disjoint.
//!
//! This module is the single statement of the memory facts that passes use, certificates cite and
//! the checker relies on. The facts are cheap to decide: they compare two accesses by opcode,
//! immediate, and the distance of their addresses where it is known. They assume nothing about
//! pointers. Calls, memory growth and operations on ranges have no place, because they may write
//! anything.
//!
//! Addresses have 32 bits in a linear memory and 64 bits in a host memory. An access whose last
//! byte lies at or above 2^32 (2^64 in a host memory) for every address always traps, and has no
//! place (`an_access_above_the_largest_memory_has_no_place`). All other facts are facts about
//! ranges of bytes modulo 2^32 (2^64), so they hold for all addresses. For accesses that did not
//! trap, these ranges are the bytes accessed: the first and the last byte lie below 2^32 (2^64). So
//! addresses that differ by `d` modulo that number differ by `d` or by `d` less that number.
//!
//! A distance is a number of 64 bits. A linear memory takes it modulo 2^32, which divides 2^64.
//! A host memory takes it as it is: addresses that differ by 2^32 differ
//! (`distances_in_a_host_memory_have_64_bits`).

use crate::entity::{Global, Memory};
use crate::inst::Imm;
use crate::opcode::{Opcode, Shape};
use crate::types::Type;

/// The location that an operation reads or writes, without its address operand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// A range of bytes in a memory. It starts at the address operand plus a constant.
    Bytes {
        /// The memory.
        memory: Memory,
        /// The constant added to the address, in bytes.
        offset: u64,
        /// The length of the range in bytes.
        bytes: u32,
        /// The type of the address: `i32` in a linear memory, `i64` in a host memory.
        address: Type,
    },
    /// The size of a memory.
    Size(Memory),
    /// A global.
    Global(Global),
    /// The words of all references of type `ref`. Only calls, which may collect, write this place,
    /// together with everything else.
    Layout,
}

impl Place {
    /// The place that an operation without effect reads. `None` if it reads no place, more than
    /// one, or always traps because its last byte lies above every memory.
    pub fn read(opcode: Opcode, ty: Type, imm: &Imm) -> Option<Place> {
        match (opcode.shape(), imm) {
            (Shape::Load(n), Imm::Address(..) | Imm::HostAddress(..)) => Place::bytes(imm, n, ty),
            (Shape::MemorySize, Imm::Memory(memory)) => Some(Place::Size(*memory)),
            (Shape::GlobalGet, Imm::Global(global)) => Some(Place::Global(*global)),
            (Shape::RefBits | Shape::RefOf, Imm::None) => Some(Place::Layout),
            _ => None,
        }
    }

    /// The place that an operation writes. `None` unless writing one place is its only effect, and
    /// for a store that always traps because its last byte lies above every memory.
    pub fn written(opcode: Opcode, ty: Type, imm: &Imm) -> Option<Place> {
        match (opcode.shape(), imm) {
            (Shape::Store(n), Imm::Address(..) | Imm::HostAddress(..)) => Place::bytes(imm, n, ty),
            (Shape::GlobalSet, Imm::Global(global)) => Some(Place::Global(*global)),
            _ => None,
        }
    }

    fn bytes(imm: &Imm, n: u8, ty: Type) -> Option<Place> {
        let ((memory, offset), address) = imm.address().zip(imm.address_type())?;
        let bytes = if n == 0 { ty.bytes() } else { u32::from(n) };
        let last = offset.checked_add(u64::from(bytes.checked_sub(1)?))?;
        (last <= address.mask()).then_some(Place::Bytes { memory, offset, bytes, address })
    }

    /// The memory that contains the place; `None` for a global and for the words of references.
    pub fn memory(&self) -> Option<Memory> {
        match self {
            Place::Bytes { memory, .. } | Place::Size(memory) => Some(*memory),
            Place::Global(_) | Place::Layout => None,
        }
    }

    /// Whether two places are disjoint. `distance` is the address operand of `other` minus the
    /// address operand of this place, if it is known: modulo 2^32 in a linear memory, modulo 2^64
    /// in a host memory.
    pub fn is_apart_from(&self, other: &Place, distance: Option<u64>) -> bool {
        match (self, other) {
            (Place::Bytes { memory, bytes, .. }, Place::Bytes { memory: m, bytes: b, .. }) => {
                // `other` begins after the last byte of this place, and its end does not wrap
                // around to the first byte.
                let is_clear = |(ahead, mask): (u64, u64)| {
                    ahead >= u64::from(*bytes) && ahead <= u64::from(*b).wrapping_neg() & mask
                };
                memory != m || self.ahead(other, distance).is_some_and(is_clear)
            }
            _ => self != other,
        }
    }

    /// Whether a write of this place overwrites every byte of `other`. `distance` is described at
    /// [`Place::is_apart_from`].
    pub fn covers(&self, other: &Place, distance: Option<u64>) -> bool {
        match (self, other) {
            (Place::Bytes { memory, bytes, .. }, Place::Bytes { memory: m, bytes: b, .. }) => {
                let is_inside = |(ahead, _): (u64, u64)| {
                    ahead.checked_add(u64::from(*b)).is_some_and(|end| end <= u64::from(*bytes))
                };
                memory == m && self.ahead(other, distance).is_some_and(is_inside)
            }
            _ => self == other,
        }
    }

    /// Whether an access of `other` at the same address cannot trap after an access of this place
    /// did not trap.
    ///
    /// In a linear memory, the second access has to end no later than the first one. This holds
    /// because memories begin at 0 and never shrink. In a host memory, it has to lie within the
    /// first access: the byte below may belong to nobody
    /// (`in_a_host_memory_only_bytes_accessed_are_vouched_for`). This holds because a byte that a
    /// run has accessed stays accessible while the run lasts.
    pub fn vouches_for(&self, other: &Place) -> bool {
        match (self, other) {
            (
                Place::Bytes { memory, offset, bytes, address },
                Place::Bytes { memory: m, offset: o, bytes: b, address: a },
            ) => {
                let end = |offset: u64, bytes: u32| u128::from(offset) + u128::from(bytes);
                let starts_within = *address == Type::I32 || o >= offset;
                memory == m && address == a && starts_within && end(*o, *b) <= end(*offset, *bytes)
            }
            _ => false,
        }
    }

    /// The same bytes as a place that counts from 0, for an access at a constant address of a
    /// linear memory. `None` for other places, and if the last byte lies above every memory: the
    /// access always traps.
    ///
    /// In a host memory, accesses at different constants are not compared: a byte says nothing
    /// about the bytes between it and another.
    pub fn at_constant(&self, constant: u64) -> Option<Place> {
        let Place::Bytes { memory, offset, bytes, address: address @ Type::I32 } = *self else {
            return None;
        };
        let offset = offset.checked_add(constant & address.mask())?;
        let last = offset.checked_add(u64::from(bytes.checked_sub(1)?))?;
        (last <= address.mask()).then_some(Place::Bytes { memory, offset, bytes, address })
    }

    /// Whether a place that counts from 0 ends within the first `size` bytes of its memory. `false`
    /// for other places than bytes of a linear memory.
    ///
    /// With [`Module::least_bytes`](crate::Module::least_bytes), an access there never traps.
    pub fn ends_within(&self, size: impl Fn(Memory) -> u64) -> bool {
        match *self {
            Place::Bytes { memory, offset, bytes, address: Type::I32 } => {
                offset.checked_add(u64::from(bytes)).is_some_and(|end| end <= size(memory))
            }
            _ => false,
        }
    }

    /// The first byte of `other` minus the first byte of this place, and the mask of addresses:
    /// the difference is taken modulo one more than the mask. `None` unless both places are bytes,
    /// of memories with one kind of address.
    fn ahead(&self, other: &Place, distance: Option<u64>) -> Option<(u64, u64)> {
        match (self, other) {
            (Place::Bytes { offset, address, .. }, Place::Bytes { offset: o, address: a, .. })
                if address == a =>
            {
                let mask = address.mask();
                Some((o.wrapping_sub(*offset).wrapping_add(distance?) & mask, mask))
            }
            _ => None,
        }
    }
}

/// Whether a read of type `read_as` returns exactly the operand, of type `written`, of a preceding
/// write to the same place.
pub fn gives_back(write: Opcode, written: Type, read: Opcode, read_as: Type) -> bool {
    match (write.shape(), read.shape()) {
        (Shape::Store(0), Shape::Load(0)) | (Shape::GlobalSet, Shape::GlobalGet) => {
            written == read_as
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
