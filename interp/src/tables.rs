//! Tables, and the set of dropped segments.
//!
//! An entry holds the bits of a reference ([`ir::reference`]). Like memories, tables have a
//! digest: a sum of mixed pairs of place and contents over entries, sizes and dropped segments. It
//! is updated incrementally where memories are tracked.

use super::memory::{Extent, OutOfBounds, mix, within};
use cranelift_entity::EntityRef;
use ir::entity::Table;
use ir::module::TableDecl;
use std::ops::Range;

/// The place of an entry in the digest. See `global_place` and `size_place` for other places.
fn entry_place(table: usize, index: usize) -> u64 {
    (3 << 62) | (table as u64) << 32 | index as u64
}

/// The place of the size of a table in the digest.
fn table_size_place(table: usize) -> u64 {
    (1 << 62) | (1 << 61) | table as u64
}

/// The place of a segment in the digest. Its contents are 1 when the segment was dropped.
fn segment_place(kind: SegmentKind, index: usize) -> u64 {
    (1 << 62) | (1 << 60) | (kind as u64) << 59 | index as u64
}

/// The two kinds of segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SegmentKind {
    /// A data segment, of bytes.
    Data,
    /// An element segment, of references.
    Elem,
}

#[derive(Clone, Debug)]
struct OneTable {
    entries: Vec<u64>,
    max: u32,
}

/// A place in a table.
#[derive(Clone, Copy)]
pub(super) struct TableSlot {
    pub(super) table: Table,
    pub(super) index: u64,
}

/// The tables and segments of one machine.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    list: Vec<OneTable>,
    /// For each kind and index, whether the segment was dropped.
    dropped: [Vec<bool>; 2],
    /// Entries by which all tables together may still grow.
    entries_left: u32,
    /// Whether every change updates `digest`.
    tracked: bool,
    digest: u64,
}

impl Tables {
    pub(super) fn new(entries: u32, tracked: bool) -> Tables {
        Tables {
            list: Vec::new(),
            dropped: [Vec::new(), Vec::new()],
            entries_left: entries,
            tracked,
            digest: 0,
        }
    }

    /// Adds a table of null entries as declared. Fails when the limit has no room for it.
    pub(super) fn add(&mut self, decl: &TableDecl) -> Result<(), OutOfBounds> {
        if decl.size > self.entries_left {
            return Err(OutOfBounds);
        }
        let table = Table::new(self.list.len());
        self.list.push(OneTable { entries: Vec::new(), max: decl.max_size.unwrap_or(u32::MAX) });
        self.grow(table, ir::reference::NULL, decl.size).map(|_| ()).ok_or(OutOfBounds)
    }

    /// The extent to which `cut` can return.
    pub(super) fn extent(&self) -> Extent {
        Extent { count: self.list.len(), left: self.entries_left, digest: self.digest }
    }

    /// Removes the tables added since `extent` was taken. They must not have been written.
    pub(super) fn cut(&mut self, extent: Extent) {
        self.list.truncate(extent.count);
        (self.entries_left, self.digest) = (extent.left, extent.digest);
    }

    /// Entries by which all tables together may still grow.
    pub(super) fn entries_left(&self) -> u32 {
        self.entries_left
    }

    /// The number of tables.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// Adds segments of a kind until there are `count` of them.
    pub(super) fn add_segments(&mut self, kind: SegmentKind, count: usize) {
        self.dropped[kind as usize].resize(count, false);
    }

    /// The number of segments of a kind.
    pub(super) fn segments(&self, kind: SegmentKind) -> usize {
        self.dropped[kind as usize].len()
    }

    /// The contents of a segment; empty when it was dropped.
    pub(super) fn contents<'s, T>(
        &self,
        kind: SegmentKind,
        index: usize,
        contents: &'s [T],
    ) -> &'s [T] {
        if self.dropped[kind as usize][index] { &[] } else { contents }
    }

    /// Drops a segment. Dropping it again has no effect.
    pub(super) fn drop_segment(&mut self, kind: SegmentKind, index: usize) {
        let dropped = &mut self.dropped[kind as usize][index];
        if !std::mem::replace(dropped, true) && self.tracked {
            self.digest = self.digest.wrapping_add(mix(segment_place(kind, index), 1));
        }
    }

    /// The entry at an index; `None` when the index is out of bounds.
    #[inline]
    pub(super) fn get(&self, table: Table, index: u64) -> Option<u64> {
        self.list[table.index()].entries.get(usize::try_from(index).ok()?).copied()
    }

    /// The number of entries.
    pub(super) fn size(&self, table: Table) -> u32 {
        // `grow` keeps sizes below 2^32.
        self.list[table.index()].entries.len() as u32
    }

    /// The entries.
    pub(super) fn entries(&self, table: Table) -> &[u64] {
        &self.list[table.index()].entries
    }

    /// The entries, to be written without updating the digest. [`Tables::refresh`] repairs it.
    pub(super) fn entries_raw(&mut self, table: Table) -> &mut [u64] {
        &mut self.list[table.index()].entries
    }

    /// Recomputes the digest, where it is tracked. Cost: the size of the tables.
    pub(super) fn refresh(&mut self) {
        if self.tracked {
            self.digest = self.computed_digest();
        }
    }

    /// Grows a table and returns its previous size. Returns `None`, and changes nothing, when the
    /// new size exceeds its maximum or the machine's limit.
    pub(super) fn grow(&mut self, table: Table, entry: u64, by: u32) -> Option<u32> {
        let before = self.size(table);
        let after = before.checked_add(by)?;
        if after > self.list[table.index()].max || by > self.entries_left {
            return None;
        }
        self.entries_left -= by;
        self.list[table.index()].entries.resize(after as usize, entry);
        if self.tracked {
            let place = table_size_place(table.index());
            self.digest = self
                .digest
                .wrapping_sub(mix(place, before.into()))
                .wrapping_add(mix(place, after.into()));
            self.digest =
                self.digest.wrapping_add(self.sum(table, before as usize..after as usize));
        }
        Some(before)
    }

    /// Copies `count` entries of a list into a table.
    pub(super) fn write(
        &mut self,
        table: Table,
        to: u64,
        from: u64,
        count: u64,
        list: &[u64],
    ) -> Result<(), OutOfBounds> {
        let from = within(list.len(), from, count)?;
        self.change(table, to, count, |entries| entries.copy_from_slice(&list[from]))
    }

    /// Sets `count` entries to one value.
    pub(super) fn fill(
        &mut self,
        table: Table,
        at: u64,
        entry: u64,
        count: u64,
    ) -> Result<(), OutOfBounds> {
        self.change(table, at, count, |entries| entries.fill(entry))
    }

    /// Copies entries between two tables, or within one. The ranges may overlap.
    pub(super) fn copy(
        &mut self,
        to: TableSlot,
        from: TableSlot,
        count: u64,
    ) -> Result<(), OutOfBounds> {
        let source = within(self.entries(from.table).len(), from.index, count)?;
        let target = within(self.entries(to.table).len(), to.index, count)?;
        if to.table == from.table {
            self.untrack(to.table, target.clone());
            self.list[to.table.index()].entries.copy_within(source, target.start);
            self.track(to.table, target);
            return Ok(());
        }
        let entries = std::mem::take(&mut self.list[from.table.index()].entries);
        let result = self
            .change(to.table, to.index, count, |target| target.copy_from_slice(&entries[source]));
        self.list[from.table.index()].entries = entries;
        result
    }

    /// Changes a range of entries and updates the digest. Changes nothing when it is out of bounds.
    fn change(
        &mut self,
        table: Table,
        at: u64,
        count: u64,
        change: impl FnOnce(&mut [u64]),
    ) -> Result<(), OutOfBounds> {
        let range = within(self.entries(table).len(), at, count)?;
        self.untrack(table, range.clone());
        change(&mut self.list[table.index()].entries[range.clone()]);
        self.track(table, range);
        Ok(())
    }

    fn untrack(&mut self, table: Table, range: Range<usize>) {
        if self.tracked {
            self.digest = self.digest.wrapping_sub(self.sum(table, range));
        }
    }

    fn track(&mut self, table: Table, range: Range<usize>) {
        if self.tracked {
            self.digest = self.digest.wrapping_add(self.sum(table, range));
        }
    }

    /// The contribution of a range of entries to the digest.
    fn sum(&self, table: Table, range: Range<usize>) -> u64 {
        let entries = self.list[table.index()].entries[range.clone()].iter().zip(range);
        entries.fold(0, |sum, (bits, index)| {
            sum.wrapping_add(mix(entry_place(table.index(), index), *bits))
        })
    }

    /// The digest where memory is tracked, else 0.
    #[inline]
    pub(super) fn tracked_digest(&self) -> u64 {
        self.digest
    }

    /// The digest. Cost: constant where memory is tracked, else the size of the tables.
    pub(super) fn digest(&self) -> u64 {
        if self.tracked { self.digest } else { self.computed_digest() }
    }

    /// The digest computed from the contents. Cost: the size of the tables.
    pub(super) fn computed_digest(&self) -> u64 {
        let mut digest = 0u64;
        for (index, one) in self.list.iter().enumerate() {
            let size = mix(table_size_place(index), one.entries.len() as u64);
            digest = digest
                .wrapping_add(size)
                .wrapping_add(self.sum(Table::new(index), 0..one.entries.len()));
        }
        for kind in [SegmentKind::Data, SegmentKind::Elem] {
            let dropped =
                self.dropped[kind as usize].iter().enumerate().filter(|(_, dropped)| **dropped);
            let places = dropped.map(|(index, _)| mix(segment_place(kind, index), 1));
            digest = places.fold(digest, u64::wrapping_add);
        }
        digest
    }
}

/// Tables are equal when they have equal contents and the same segments were dropped. Cost: the
/// size of the tables.
impl PartialEq for Tables {
    fn eq(&self, other: &Tables) -> bool {
        self.list.len() == other.list.len()
            && self.list.iter().zip(&other.list).all(|(a, b)| a.entries == b.entries)
            && self.dropped == other.dropped
    }
}
