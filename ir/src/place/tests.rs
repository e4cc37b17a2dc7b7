//! Tests of `ir::place`.

use super::*;
use cranelift_entity::EntityRef;

fn at(offset: u64, bytes: u32) -> Place {
    Place::Bytes { memory: Memory::new(0), offset, bytes, address: Type::I32 }
}

fn hosted(offset: u64, bytes: u32) -> Place {
    Place::Bytes { memory: Memory::new(0), offset, bytes, address: Type::I64 }
}

/// Checks the three tests of a place at all addresses at which neither access traps, near both
/// ends of the memory and in the middle.
#[test]
fn claims_hold_wherever_both_accesses_are_in_bounds() {
    let top = 1u64 << 32;
    let addresses: Vec<u64> =
        (0..12).chain((1 << 31)..(1 << 31) + 12).chain(top - 12..top).collect();
    check_claims(at, 1 << 32, &addresses, &[(0, 0), (0, 3), (8, 1), (top - 3, 0), (4, top - 1)]);
}

/// As above, in a host memory: near both ends, in the middle, and at addresses that are alike
/// modulo 2^32.
#[test]
fn claims_hold_wherever_both_accesses_are_in_a_host_memory() {
    let top = u64::MAX;
    let addresses: Vec<u64> = (0..9)
        .chain((1 << 32) - 4..(1 << 32) + 9)
        .chain((1 << 63)..(1 << 63) + 9)
        .chain(top - 11..=top)
        .collect();
    let offsets = [(0, 0), (0, 3), (8, 1), (top - 2, 0), (4, top), (1 << 32, 0)];
    check_claims(hosted, 1 << 64, &addresses, &offsets);
}

/// `top` is the number of addresses.
fn check_claims(
    place: impl Fn(u64, u32) -> Place,
    top: u128,
    addresses: &[u64],
    offsets: &[(u64, u64)],
) {
    let sizes = [1u32, 2, 4, 8];
    let mut claims = [0; 3];
    for (&a, &b) in addresses.iter().flat_map(|a| addresses.iter().map(move |b| (a, b))) {
        for &(x, y) in offsets {
            for (n, m) in sizes.iter().flat_map(|n| sizes.iter().map(move |m| (*n, *m))) {
                let (one, other) = (place(x, n), place(y, m));
                let range = |a: u64, x: u64, n: u32| {
                    let first = u128::from(a) + u128::from(x);
                    first..first + u128::from(n)
                };
                let (from, to) = (range(a, x, n), range(b, y, m));
                if from.end > top || to.end > top {
                    continue;
                }
                let distance = Some(b.wrapping_sub(a));
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
                    let starts_within = top == 1 << 32 || from.start <= to.start;
                    assert!(starts_within && to.end <= from.end, "{one:?}, {other:?} at {b}");
                }
            }
        }
    }
    assert!(claims.iter().all(|n| *n > 300), "{claims:?}");
}

#[test]
fn distances_in_a_host_memory_have_64_bits() {
    let far = Some(1 << 32);
    assert!(at(0, 4).covers(&at(0, 4), far) && !at(0, 4).is_apart_from(&at(0, 4), far));
    assert!(!hosted(0, 4).covers(&hosted(0, 4), far));
    assert!(hosted(0, 4).is_apart_from(&hosted(0, 4), far));
    assert!(hosted(0, 4).is_apart_from(&hosted(1 << 32, 4), Some(0)));
    assert!(!hosted(4, 4).is_apart_from(&hosted(0, 8), Some(0)));
    // One memory has one kind of address; a certificate may name both.
    assert!(!at(0, 4).is_apart_from(&hosted(8, 4), Some(0)));
    assert!(!at(0, 4).covers(&hosted(0, 4), Some(0)) && !at(0, 4).vouches_for(&hosted(0, 4)));
}

#[test]
fn in_a_host_memory_only_bytes_accessed_are_vouched_for() {
    assert!(at(8, 8).vouches_for(&at(0, 8)) && !hosted(8, 8).vouches_for(&hosted(0, 8)));
    assert!(hosted(8, 8).vouches_for(&hosted(12, 4)));
    assert!(!hosted(8, 8).vouches_for(&hosted(12, 8)));
    let last = u64::MAX - 7;
    assert!(hosted(last, 8).vouches_for(&hosted(last + 4, 4)));
    assert!(!hosted(last, 4).vouches_for(&hosted(last, 8)));
}

/// Its last byte lies above every memory, at any address.
#[test]
fn an_access_above_the_largest_memory_has_no_place() {
    let last = (1 << 32) - 4;
    let linear = [(0, true), (last, true), (last + 1, false), (1 << 32, false), (u64::MAX, false)];
    let last = u64::MAX - 3;
    let host = [(0, true), (1 << 32, true), (last, true), (last + 1, false), (u64::MAX, false)];
    let imm = [Imm::Address, Imm::HostAddress].map(|imm| move |o| imm(Memory::new(0), o));
    for (imm, offsets) in imm.iter().zip([linear, host]) {
        for (offset, has_place) in offsets {
            let places = [
                Place::read(Opcode::Load, Type::I32, &imm(offset)),
                Place::written(Opcode::Store, Type::I32, &imm(offset)),
            ];
            assert!(places.iter().all(|place| place.is_some() == has_place), "{offset}");
        }
    }
}

/// At a constant address, the address and the offset count as one number, which does not wrap.
#[test]
fn a_place_at_a_constant_counts_from_0() {
    assert_eq!(at(16, 4).at_constant(64), Some(at(80, 4)));
    assert_eq!(at(0, 4).at_constant(u64::MAX << 32 | 8), Some(at(8, 4)), "32 bits count");
    let top = (1 << 32) - 4;
    assert_eq!(at(0, 4).at_constant(top), Some(at(top, 4)));
    assert_eq!(at(1, 4).at_constant(top), None, "the last byte lies above every memory");
    assert_eq!(at(top, 4).at_constant(top), None, "the sum does not wrap");
    assert_eq!(hosted(16, 4).at_constant(64), None);
    assert_eq!(Place::Global(Global::new(0)).at_constant(0), None);
}

#[test]
fn places_end_within_the_size_of_their_memory() {
    let size = |bytes: u64| move |memory: Memory| if memory.index() == 0 { bytes } else { 0 };
    assert!(at(65532, 4).ends_within(size(65536)) && !at(65533, 4).ends_within(size(65536)));
    assert!(!at(0, 1).ends_within(size(0)));
    let all = 1 << 32;
    assert!(at(all - 8, 8).ends_within(size(all)) && !at(all - 7, 8).ends_within(size(all)));
    let memory = Memory::new(1);
    let other = Place::Bytes { memory, offset: 0, bytes: 4, address: Type::I32 };
    assert!(!other.ends_within(size(65536)), "each memory has its own size");
    assert!(!hosted(0, 4).ends_within(size(65536)));
    assert!(!Place::Size(Memory::new(0)).ends_within(size(65536)));
}

#[test]
fn without_a_distance_only_other_kinds_of_places_are_apart() {
    assert!(!at(0, 4).is_apart_from(&at(8, 4), None));
    assert!(at(0, 4).is_apart_from(&Place::Global(Global::new(0)), None));
    assert!(at(0, 4).is_apart_from(&Place::Size(Memory::new(0)), None));
    assert!(Place::Global(Global::new(1)).is_apart_from(&Place::Global(Global::new(0)), None));
    assert!(!Place::Global(Global::new(0)).is_apart_from(&Place::Global(Global::new(0)), Some(4)));
    let memory = Memory::new(1);
    let other = Place::Bytes { memory, offset: 0, bytes: 4, address: Type::I32 };
    assert!(at(0, 4).is_apart_from(&other, None));
    assert!(!at(0, 4).vouches_for(&other) && !at(0, 4).covers(&other, Some(0)));
}
