//! Tests of `jit::sys::reservation`.

use super::{GUARD, INDEXED, added_pages};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    /// After any series of growths, exactly the pages with a usable byte are accessible, and
    /// each became so once.
    #[test]
    fn growth_covers_the_usable_bytes(
        page in prop_oneof![Just(16usize), Just(64)],
        max in 0..600usize,
        lengths in vec(0..700usize, 0..12),
    ) {
        let (mut now, mut accessible) = (0, [false; 700]);
        for wanted in lengths {
            let Some(pages) = added_pages(now, wanted, max, page) else {
                prop_assert!(wanted < now || wanted > max, "{} to {}", now, wanted);
                continue;
            };
            prop_assert!(wanted >= now && wanted <= max);
            prop_assert!(pages.start.is_multiple_of(page) && pages.end.is_multiple_of(page));
            for byte in pages {
                prop_assert!(!std::mem::replace(&mut accessible[byte], true), "{} twice", byte);
            }
            now = wanted;
            for (byte, is_accessible) in accessible.iter().enumerate() {
                prop_assert_eq!(*is_accessible, byte < now.next_multiple_of(page));
            }
        }
    }
}

/// The pages of the longest memory end before the guard.
#[test]
fn the_longest_memory_has_a_guard() {
    for page in [4096, 65_536] {
        assert_eq!(added_pages(0, INDEXED, INDEXED, page), Some(0..INDEXED));
    }
    assert!(GUARD.is_multiple_of(65_536));
}
