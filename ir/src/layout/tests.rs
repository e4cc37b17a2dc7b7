//! Tests of `ir::layout`.

use super::Layout;
use crate::entity::Block;
use proptest::prelude::*;

proptest! {
    /// Compares the layout with a plain list, under random edits.
    #[test]
    fn the_layout_behaves_like_a_list(
        edits in proptest::collection::vec((0..3u8, any::<u16>()), 0..60),
    ) {
        let (mut layout, mut list) = (Layout::default(), Vec::new());
        for (id, (kind, place)) in edits.iter().enumerate() {
            let (block, at) = (Block::from_u32(id as u32), *place as usize % list.len().max(1));
            match kind {
                0 if !list.is_empty() => layout.remove(list.remove(at)),
                1 if !list.is_empty() => {
                    layout.insert_before(block, list[at]);
                    list.insert(at, block);
                }
                _ => {
                    layout.push(block);
                    list.push(block);
                }
            }
        }
        prop_assert_eq!(layout.first(), list.first().copied());
        prop_assert_eq!(layout.iter().len(), list.len());
        prop_assert!(layout.iter().eq(list.iter().copied()));
        prop_assert!(layout.iter().rev().eq(list.iter().rev().copied()));
        let mut ends = layout.iter();
        while let (Some(a), b) = (ends.next(), ends.next_back()) {
            prop_assert!(b.is_some() || ends.next().is_none(), "{a}");
        }
    }
}
