//! Places: the parts of memory that a read reads or a write writes, and the test whether two places
//! are disjoint.
//!
//! This module is the single statement of the memory facts that passes use, certificates cite and
//! the checker relies on. The facts are cheap to decide: they compare two accesses by opcode,
//! immediate, and the distance of their addresses where it is known. They assume nothing about
//! pointers. Calls, memory growth and operations on ranges have no place, because they may write
//! anything.
//!
//! An access whose last byte lies at or above 2^32 for every address always traps, and has no place
//! (`an_access_above_the_largest_memory_has_no_place`). All other facts are facts about ranges of
//! bytes modulo 2^32, so they hold for all addresses. For accesses that did not trap, these ranges
//! are the bytes accessed: the first and the last byte lie below 2^32, so addresses that differ by
//! `d` modulo 2^32 differ by `d` or by `d - 2^32`.

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
    },
    /// The size of a memory.
    Size(Memory),
    /// A global.
    Global(Global),
    /// The words of all references of type `ref`. No operation writes this place alone; calls,
    /// which may collect, write it with everything else.
    Layout,
}

impl Place {
    /// The place that an operation without effect reads. `None` if it reads no place, more than
    /// one, or always traps because its last byte lies above every memory.
    pub fn read(opcode: Opcode, ty: Type, imm: &Imm) -> Option<Place> {
        match (opcode.shape(), imm) {
            (Shape::Load(n), Imm::Address(memory, offset)) => Place::bytes(*memory, *offset, n, ty),
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
            (Shape::Store(n), Imm::Address(memory, offset)) => {
                Place::bytes(*memory, *offset, n, ty)
            }
            (Shape::GlobalSet, Imm::Global(global)) => Some(Place::Global(*global)),
            _ => None,
        }
    }

    fn bytes(memory: Memory, offset: u64, n: u8, ty: Type) -> Option<Place> {
        let bytes = if n == 0 { ty.bytes() } else { u32::from(n) };
        let is_below = offset.checked_add(u64::from(bytes)).is_some_and(|end| end <= 1 << 32);
        is_below.then_some(Place::Bytes { memory, offset, bytes })
    }

    /// The memory that contains the place; `None` for a global and for the words of references.
    pub fn memory(&self) -> Option<Memory> {
        match self {
            Place::Bytes { memory, .. } | Place::Size(memory) => Some(*memory),
            Place::Global(_) | Place::Layout => None,
        }
    }

    /// Whether two places are disjoint. `distance` is the address operand of `other` minus the
    /// address operand of this place, modulo 2^32, if it is known.
    pub fn is_apart_from(&self, other: &Place, distance: Option<u32>) -> bool {
        match (self, other) {
            (
                Place::Bytes { memory, offset, bytes },
                Place::Bytes { memory: m, offset: o, bytes: b },
            ) => {
                let from_here = |distance| between(*offset, *o, distance);
                // `other` begins after the last byte of this place, and its end does not wrap
                // around to the first byte.
                let is_clear = |ahead: u32| ahead >= *bytes && ahead <= b.wrapping_neg();
                memory != m || distance.is_some_and(|d| is_clear(from_here(d)))
            }
            _ => self != other,
        }
    }

    /// Whether a write of this place overwrites every byte of `other`. `distance` is as in
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

    /// Whether an access of `other` at the same address cannot trap after an access of this place
    /// did not trap. This holds because memories never shrink.
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

/// The first byte of the place at `other` minus the first byte of the place at `offset`, modulo
/// 2^32.
fn between(offset: u64, other: u64, distance: u32) -> u32 {
    (other.wrapping_sub(offset) as u32).wrapping_add(distance)
}

/// Whether a read returns exactly the operand of a preceding write to the same place.
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

    /// Checks the three tests of a place at all addresses at which neither access traps, near both
    /// ends of the memory and in the middle.
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

    /// Its last byte lies above every memory, at any address.
    #[test]
    fn an_access_above_the_largest_memory_has_no_place() {
        let imm = |offset: u64| Imm::Address(Memory::new(0), offset);
        let last = (1 << 32) - 4;
        for (offset, has_place) in
            [(0, true), (last, true), (last + 1, false), (1 << 32, false), (u64::MAX, false)]
        {
            let places = [
                Place::read(Opcode::Load, Type::I32, &imm(offset)),
                Place::written(Opcode::Store, Type::I32, &imm(offset)),
            ];
            assert!(places.iter().all(|place| place.is_some() == has_place), "{offset}");
        }
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
