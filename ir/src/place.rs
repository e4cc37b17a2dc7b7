//! Places in memory: what a read reads and a write writes, and what tells two places apart.
//!
//! The facts about memory that passes use, certificates name and the checker believes, stated once.
//! They are cheap: two accesses are compared by their opcodes, immediates and the distance of their
//! addresses, where that is known; nothing is said of pointers as such. Calls, growth of a memory
//! and operations on ranges have no place: they may write anything.
//!
//! Everything here is about accesses that have not trapped: then the first and the last byte of
//! both lie below 2^32, and addresses that differ by `d` modulo 2^32 differ by `d` or by
//! `d - 2^32`.

use crate::entity::{Global, Memory};
use crate::inst::Imm;
use crate::opcode::{Opcode, Shape};
use crate::types::Type;

/// What an operation reads or writes, apart from its address operand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// So many bytes of a memory, from the address operand plus a constant on.
    Bytes {
        /// The memory.
        memory: Memory,
        /// Added to the address, in bytes.
        offset: u64,
        /// How many bytes.
        bytes: u32,
    },
    /// The size of a memory.
    Size(Memory),
    /// A global.
    Global(Global),
}

impl Place {
    /// What an operation without effect reads; `None` if it reads nothing, or more than one place.
    pub fn read(opcode: Opcode, ty: Type, imm: &Imm) -> Option<Place> {
        match (opcode.shape(), imm) {
            (Shape::Load(n), Imm::Address(memory, offset)) => {
                Some(Place::bytes(*memory, *offset, n, ty))
            }
            (Shape::MemorySize, Imm::Memory(memory)) => Some(Place::Size(*memory)),
            (Shape::GlobalGet, Imm::Global(global)) => Some(Place::Global(*global)),
            _ => None,
        }
    }

    /// What an operation writes, if that is one place and all it does.
    pub fn written(opcode: Opcode, ty: Type, imm: &Imm) -> Option<Place> {
        match (opcode.shape(), imm) {
            (Shape::Store(n), Imm::Address(memory, offset)) => {
                Some(Place::bytes(*memory, *offset, n, ty))
            }
            (Shape::GlobalSet, Imm::Global(global)) => Some(Place::Global(*global)),
            _ => None,
        }
    }

    fn bytes(memory: Memory, offset: u64, n: u8, ty: Type) -> Place {
        let bytes = if n == 0 { ty.bytes() } else { u32::from(n) };
        Place::Bytes { memory, offset, bytes }
    }

    /// The memory it is of; `None` of a global.
    pub fn memory(&self) -> Option<Memory> {
        match self {
            Place::Bytes { memory, .. } | Place::Size(memory) => Some(*memory),
            Place::Global(_) => None,
        }
    }

    /// Whether two places have nothing in common. `distance` is the address operand of `other`
    /// minus that of this one, modulo 2^32, where it is known.
    pub fn is_apart_from(&self, other: &Place, distance: Option<u32>) -> bool {
        match (self, other) {
            (
                Place::Bytes { memory, offset, bytes },
                Place::Bytes { memory: m, offset: o, bytes: b },
            ) => {
                let from_here = |distance| between(*offset, *o, distance);
                // `other` begins behind this place, and does not reach around to its first byte.
                let is_clear = |ahead: u32| ahead >= *bytes && ahead <= b.wrapping_neg();
                memory != m || distance.is_some_and(|d| is_clear(from_here(d)))
            }
            _ => self != other,
        }
    }

    /// Whether writing this place leaves nothing of what was written to `other`. `distance` as for
    /// [`Place::is_apart_from`].
    pub fn covers(&self, other: &Place, distance: Option<u32>) -> bool {
        match (self, other) {
            (
                Place::Bytes { memory, offset, bytes },
                Place::Bytes { memory: m, offset: o, bytes: b },
            ) => {
                let is_inside = |ahead: u32| ahead.checked_add(*b).is_some_and(|end| end <= *bytes);
                memory == m && distance.is_some_and(|d| is_inside(between(*offset, *o, d)))
            }
            _ => self == other,
        }
    }

    /// Whether an access of `other` at the same address cannot trap once this one has not. Memories
    /// never shrink.
    pub fn vouches_for(&self, other: &Place) -> bool {
        match (self, other) {
            (
                Place::Bytes { memory, offset, bytes },
                Place::Bytes { memory: m, offset: o, bytes: b },
            ) => {
                memory == m
                    && o.saturating_add(u64::from(*b)) <= offset.saturating_add(u64::from(*bytes))
            }
            _ => false,
        }
    }
}

/// The first byte of the other place minus the first byte of the one, modulo 2^32.
fn between(offset: u64, other: u64, distance: u32) -> u32 {
    (other.wrapping_sub(offset) as u32).wrapping_add(distance)
}

/// Whether a read gives exactly the operand that a write to the very place it reads was given.
pub fn gives_back(write: (Opcode, Type), read: (Opcode, Type)) -> bool {
    match (write.0.shape(), read.0.shape()) {
        (Shape::Store(0), Shape::Load(0)) | (Shape::GlobalSet, Shape::GlobalGet) => {
            write.1 == read.1
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;

    fn at(offset: u64, bytes: u32) -> Place {
        Place::Bytes { memory: Memory::new(0), offset, bytes }
    }

    /// What the rules claim holds of all addresses at which neither access traps, near both ends
    /// and in the middle.
    #[test]
    fn claims_hold_wherever_both_accesses_are_in_bounds() {
        let top = 1u64 << 32;
        let addresses: Vec<u64> =
            (0..12).chain((1 << 31)..(1 << 31) + 12).chain(top - 12..top).collect();
        let sizes = [1u32, 2, 4, 8];
        let mut claims = [0; 3];
        for (&a, &b) in addresses.iter().flat_map(|a| addresses.iter().map(move |b| (a, b))) {
            for (x, y) in [(0, 0), (0, 3), (8, 1), (top - 3, 0), (4, top - 1)] {
                for (n, m) in sizes.iter().flat_map(|n| sizes.iter().map(move |m| (*n, *m))) {
                    let (one, other) = (at(x, n), at(y, m));
                    let (from, to) =
                        ((a + x)..(a + x + u64::from(n)), (b + y)..(b + y + u64::from(m)));
                    if from.end > top || to.end > top {
                        continue;
                    }
                    let distance = Some((b as u32).wrapping_sub(a as u32));
                    if one.is_apart_from(&other, distance) {
                        claims[0] += 1;
                        assert!(
                            from.end <= to.start || to.end <= from.start,
                            "{one:?} at {a}, {other:?} at {b}"
                        );
                    }
                    if one.covers(&other, distance) {
                        claims[1] += 1;
                        assert!(
                            from.start <= to.start && to.end <= from.end,
                            "{one:?} at {a}, {other:?} at {b}"
                        );
                    }
                    if a == b && one.vouches_for(&other) {
                        claims[2] += 1;
                        assert!(to.end <= from.end, "{one:?}, {other:?} at {b}");
                    }
                }
            }
        }
        assert!(claims.iter().all(|n| *n > 500), "{claims:?}");
    }

    #[test]
    fn without_a_distance_only_other_kinds_of_places_are_apart() {
        assert!(!at(0, 4).is_apart_from(&at(8, 4), None));
        assert!(at(0, 4).is_apart_from(&Place::Global(Global::new(0)), None));
        assert!(at(0, 4).is_apart_from(&Place::Size(Memory::new(0)), None));
        assert!(Place::Global(Global::new(1)).is_apart_from(&Place::Global(Global::new(0)), None));
        assert!(
            !Place::Global(Global::new(0)).is_apart_from(&Place::Global(Global::new(0)), Some(4))
        );
        let other = Place::Bytes { memory: Memory::new(1), offset: 0, bytes: 4 };
        assert!(at(0, 4).is_apart_from(&other, None));
        assert!(!at(0, 4).vouches_for(&other) && !at(0, 4).covers(&other, Some(0)));
    }
}
