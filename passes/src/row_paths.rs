//! Rows of jumps without an instruction between them that ends a path of mappings.
//!
//! `osr` follows the way of a version from one instruction that both versions execute to the next,
//! through 64 jumps of one version alone. Instructions that write, branch or may trap end such a
//! path. A later pass may remove the other instructions, so these do not count. Passes that remove
//! the jumps of a long row keep a jump now and then: it ends a path, too, and costs nothing in
//! native code.

/// The paths through code, in jumps.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct RowPaths {
    /// Whether an instruction ends a path.
    pub(crate) ends: bool,
    /// From the start to the first such instruction, or through all of the code.
    pub(crate) first: usize,
    /// From the last such instruction to the end, or through all of the code.
    pub(crate) last: usize,
    /// The longest.
    pub(crate) most: usize,
}

impl RowPaths {
    /// An instruction that ends a path.
    pub(crate) const END: RowPaths = RowPaths { ends: true, first: 0, last: 0, most: 0 };

    pub(crate) fn of(jumps: usize) -> RowPaths {
        RowPaths { ends: false, first: jumps, last: jumps, most: jumps }
    }

    /// The paths through this code and other code behind it.
    pub(crate) fn then(self, next: RowPaths) -> RowPaths {
        let through = self.last.saturating_add(next.first);
        RowPaths {
            ends: self.ends || next.ends,
            first: if self.ends { self.first } else { through },
            last: if next.ends { next.last } else { through },
            most: self.most.max(next.most).max(through),
        }
    }
}
