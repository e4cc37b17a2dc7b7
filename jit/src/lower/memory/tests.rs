//! Tests of `jit::lower::memory`.

use super::OperandRange;
use ir::module::{MemoryDecl, MemoryKind, PAGE_BYTES};

/// Operands near all bounds, against the definition of an access in 128 bits.
#[test]
fn host_memories_of_the_machine() {
    let top = u64::MAX - PAGE_BYTES + 1;
    for (first, pages) in [(0, 1), (PAGE_BYTES, 2), (1 << 32, 1), (top, 1), (1 << 63, 0)] {
        let kind = MemoryKind::HostFrom(first);
        let name = "h".to_owned();
        let decl = MemoryDecl { name, min_pages: pages, max_pages: None, import: None, kind };
        let size = u64::from(pages) * PAGE_BYTES;
        let edges = [0, first, first.wrapping_add(size), u64::MAX, 1 << 32];
        let near = |edge: u64| (0..12).map(move |n: u64| edge.wrapping_add(n).wrapping_sub(6));
        let all = edges.iter().flat_map(|edge| near(*edge)).collect::<Vec<u64>>();
        for (offset, bytes) in all.iter().flat_map(|o| [1, 2, 4, 8].map(|n| (*o, n))) {
            let range = OperandRange::of(&decl, offset, bytes);
            for operand in all.iter().copied() {
                let at = u128::from(operand) + u128::from(offset);
                let end = u128::from(first) + u128::from(size);
                let fits = at >= u128::from(first) && at + u128::from(bytes) <= end;
                let found = range.as_ref().and_then(|range| {
                    let index = operand.wrapping_sub(range.low);
                    (index <= range.length).then(|| index + range.ahead)
                });
                let wanted = fits.then(|| (at - u128::from(first)) as u64);
                assert_eq!(found, wanted, "{first:#x}: {operand:#x} + {offset:#x}, {bytes}");
            }
        }
    }
}
