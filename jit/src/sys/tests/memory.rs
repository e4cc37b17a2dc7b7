//! Tests of reservations, mappings and stack bounds.

use std::{io, thread};

use crate::sys::{maps, reservation, stack, supported};

#[test]
fn a_reservation_grows_in_place_and_is_zero() {
    let mut memory = reservation::reserve(3 << 16).expect("address space");
    let base = memory.base();
    assert!(memory.bytes().is_empty());
    assert!(memory.grow(1 << 16));
    memory.bytes_mut().fill(7);
    assert!(memory.grow(3 << 16));
    assert_eq!(memory.base(), base);
    assert_eq!(memory.bytes().len(), 3 << 16);
    assert!(memory.bytes()[..1 << 16].iter().all(|&byte| byte == 7));
    assert!(memory.bytes()[1 << 16..].iter().all(|&byte| byte == 0));
    assert!(!memory.grow((3 << 16) + 1), "more than the limit");
    assert!(!memory.grow(1 << 16), "less than now");
    assert_eq!(memory.bytes().len(), 3 << 16, "nothing changed");
    assert!(memory.grow(3 << 16), "as much as now");
}

#[test]
fn lengths_that_are_no_whole_pages_grow_byte_by_byte() {
    let mut memory = reservation::reserve(1 << 16).expect("address space");
    for len in [1, 2, reservation::page_size(), reservation::page_size() + 1, 1 << 16] {
        assert!(memory.grow(len));
        assert_eq!(memory.bytes().len(), len);
        memory.bytes_mut()[len - 1] = 1;
    }
}

#[test]
fn only_the_usable_bytes_can_be_accessed_and_none_executed() {
    let mut memory = reservation::reserve(1 << 32).expect("address space");
    assert!(memory.grow(1 << 16));
    let addresses = memory.addresses();
    let usable = addresses.start..addresses.start + (1 << 16);
    let mut covered = 0;
    for mapping in maps::mappings().expect("the mappings can be read") {
        let inside = mapping.start.max(addresses.start)..mapping.end.min(addresses.end);
        if inside.is_empty() {
            continue;
        }
        covered += inside.len();
        // The system may merge the inaccessible rest with other inaccessible mappings.
        let accessible = mapping.readable || mapping.writable || mapping.executable;
        assert_eq!(accessible, inside == usable, "{mapping:?}");
        assert!(!mapping.executable, "{mapping:?}");
    }
    assert_eq!(covered, addresses.len(), "all of it is mapped");
}

#[test]
fn a_reservation_is_given_back() {
    // Each takes 6 GiB, so all of them together would not fit the 128 TiB of a process.
    for n in 0..25_000 {
        assert!(
            reservation::reserve(1 << 16).is_ok_and(|mut memory| memory.grow(1 << 16)),
            "reservation {n}"
        );
    }
}

#[test]
fn more_than_an_index_reaches_is_refused() {
    let error = reservation::reserve((4 << 30) + 1).expect_err("refused");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn stack_limits_follow_the_thread() {
    supported().expect("this test is of a host that is supported");
    let reserve = 64 << 10;
    let small = thread::Builder::new().stack_size(256 << 10);
    let left = small.spawn(move || {
        let here = 0u8;
        let limit = stack::limit(reserve).expect("the bounds are known");
        let left = stack::remaining().expect("the bounds are known");
        assert!((&raw const here as usize) > limit);
        assert!(((&raw const here as usize) - limit).abs_diff(left - reserve) < 4096);
        left
    });
    let left = left.expect("a thread").join().expect("its limit is its own");
    assert!(left <= 256 << 10, "{left}");
    let huge = stack::limit(usize::MAX).expect("the bounds are known");
    assert!(huge > (&raw const reserve as usize), "no frame fits");
}
