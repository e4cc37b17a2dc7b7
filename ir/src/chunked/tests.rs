//! Tests of `ir::chunked`.

use super::{CHUNK, ChunkedMap};
use crate::entity::Func;
use cranelift_entity::EntityRef;
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Two clones that change apart are two lists.
    #[test]
    fn clones_that_change_apart_are_lists(
        begins in 0..3 * CHUNK,
        steps in vec((any::<bool>(), 0..4 * CHUNK, any::<bool>(), any::<u32>()), 0..20),
    ) {
        let mut maps: [ChunkedMap<Func, u32>; 2] = Default::default();
        maps[0] = (0..begins as u32).collect();
        maps[1] = maps[0].clone();
        let list: Vec<u32> = (0..begins as u32).collect();
        let mut lists = [list.clone(), list];
        for (which, at, pushes, value) in steps {
            let (map, list) = (&mut maps[usize::from(which)], &mut lists[usize::from(which)]);
            if pushes {
                prop_assert_eq!(map.push(value).index(), list.len());
                list.push(value);
            } else {
                let entry = map.get_mut(Func::new(at));
                prop_assert_eq!(entry.as_deref(), list.get(at));
                if let (Some(entry), Some(listed)) = (entry, list.get_mut(at)) {
                    (*entry, *listed) = (value, value);
                }
            }
        }
        for (map, list) in maps.iter().zip(&lists) {
            prop_assert!(map.values().eq(list));
            prop_assert_eq!(map.len(), list.len());
            prop_assert!(map.keys().all(|key| map[key] == list[key.index()]));
            for first in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, list.len()] {
                let from = map.iter_from(first).map(|(key, value)| (key.index(), *value));
                let listed = list.iter().copied().enumerate().skip(first);
                prop_assert!(from.eq(listed));
            }
        }
        let shared = maps[0].shared_with(&maps[1]);
        prop_assert!(lists[0][..shared] == lists[1][..shared]);
        prop_assert_eq!(maps[0] == maps[1], lists[0] == lists[1]);
    }
}

/// Growth by one entry copies one chunk, whatever the length.
#[test]
fn a_clone_that_grows_shares_all_other_chunks() {
    let map: ChunkedMap<Func, u32> = (0..10_000).collect();
    let mut larger = map.clone();
    larger.push(7);
    assert_eq!(map.shared_with(&larger), 10_000 / CHUNK * CHUNK);
    assert_eq!((map.len(), larger.len()), (10_000, 10_001));
}
