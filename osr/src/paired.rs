//! Writes that both versions execute and that bound no path, because they cover a lone write.
//!
//! Of `store a, x; load b; store a, y`, a pass deletes the first store. Between the two stores, the
//! version before has executed a write that the version after lacks. A run cannot take it back. But
//! it can continue *behind* the second store of the version after: compensation code executes this
//! store itself, and nothing is left of the first store. As long as the second store bounds paths,
//! no gap reaches from one side of it to the other.
//!
//! So the second store is no bounding anchor, although it stands in both versions. It counts as a
//! lone write of each version, whose window ends at the next anchor: there both versions have
//! executed it. The checker holds it to the rules of any lone write. Other writes of one place that
//! stand before it in its gap, and that a run in the window may have ahead, are paired in the same
//! way.
//!
//! A pairing must not cost the pair of versions an entry. It therefore demands three things:
//!
//! - the write cannot trap in either version (check `lone-write`): an access that dominates it, at
//!   the same address, reaches as far (`a_covering_store_that_may_trap_stays_an_anchor.oir`);
//! - nothing else in its gap may trap without being an anchor (check `trap-order`;
//!   `a_trap_behind_the_covering_store_keeps_the_anchor.oir`);
//! - the next anchor stands in its block, and no edge was redirected past it. So one path leads
//!   from the write to this anchor, and entries that replay the write cross no jump.

use crate::accesses::accessed;
use crate::facts::Facts;
use crate::pair::analyzed::Analyzed;
use crate::stores::{MAX_WINDOW, Writes, written};
use fixedbitset::FixedBitSet;
use ir::{Inst, Point};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use transition::Pair;

/// Paired writes in a row, without an anchor between them. An entry replays at most this number of
/// them, and each point of their gap lists the paired writes before it.
const MAX_ROW: usize = 16;

/// The paired writes of two versions.
#[derive(Debug, Default)]
pub(crate) struct PairedWrites {
    writes: FixedBitSet,
    /// By lone write of the version before: the paired write that covers it.
    covers: BTreeMap<Inst, Inst>,
}

impl PairedWrites {
    /// Finds the writes to pair. Cost: linear in the version before, plus a bounded search for each
    /// of its lone writes.
    pub(crate) fn new(
        versions: &Pair<Analyzed<'_>>,
        facts: &Facts,
        anchors: &FixedBitSet,
    ) -> PairedWrites {
        let mut paired = PairedWrites {
            writes: FixedBitSet::with_capacity(anchors.len()),
            covers: BTreeMap::new(),
        };
        let (asked, pairable) = (paired.writes.clone(), paired.writes.clone());
        let mut search = PairSearch { versions, facts, anchors, asked, pairable };
        let Pair { before, after } = versions.as_ref().map(|version| version.f);
        for &block in versions.before.cfg.rpo() {
            if facts.control.is_removed(block) {
                continue;
            }
            let is_deleted = |i: &Inst| !after.has_inst(*i) && written(before, *i).is_some();
            for write in before.block_insts(block).filter(is_deleted) {
                if let Some(found) = search.covering(write) {
                    paired.writes.extend(found.iter().map(|i| i.as_u32() as usize));
                    paired.covers.extend(found.last().map(|cover| (write, *cover)));
                }
            }
            paired.shorten_rows(before.block_insts(block), anchors);
        }
        paired
    }

    pub(crate) fn writes(&self) -> &FixedBitSet {
        &self.writes
    }

    pub(crate) fn has(&self, inst: Inst) -> bool {
        self.writes.contains(inst.as_u32() as usize)
    }

    /// The paired write that covers a lone write of the version before.
    pub(crate) fn cover(&self, write: Inst) -> Option<Inst> {
        self.covers.get(&write).copied().filter(|cover| self.has(*cover))
    }

    /// Makes every write behind [`MAX_ROW`] paired writes in a row an anchor again.
    fn shorten_rows(&mut self, block: impl Iterator<Item = Inst>, anchors: &FixedBitSet) {
        let mut row = 0;
        for inst in block.filter(|i| anchors.contains(i.as_u32() as usize)) {
            row = if self.has(inst) { row + 1 } else { 0 };
            if row > MAX_ROW {
                self.writes.set(inst.as_u32() as usize, false);
                row = 0;
            }
        }
    }
}

/// The search for the writes that have to be paired for a lone write.
struct PairSearch<'a, 'v> {
    versions: &'a Pair<Analyzed<'v>>,
    facts: &'a Facts,
    anchors: &'a FixedBitSet,
    /// The anchors already tested for pairing, since many windows may hold an anchor; and the
    /// pairable anchors among them.
    asked: FixedBitSet,
    pairable: FixedBitSet,
}

impl PairSearch<'_, '_> {
    /// The write that covers a lone write of the version before, as the last of the writes to pair
    /// for it: the others stand before it in its gap.
    fn covering(&mut self, write: Inst) -> Option<SmallVec<[Inst; MAX_ROW]>> {
        let f = self.versions.before.f;
        let place = written(f, write)?;
        let writes = Writes::of(&self.versions.before, self.facts, self.anchors);
        let mut row: SmallVec<[Inst; MAX_ROW]> = SmallVec::new();
        let following = std::iter::successors(f.next_inst(write), |i| f.next_inst(*i));
        for inst in following.take(MAX_WINDOW) {
            if !self.is_anchor(inst) {
                continue;
            }
            // An anchor that stays one: the gap of the covering write begins behind it.
            if !self.may_pair(inst) {
                row.clear();
                continue;
            }
            if row.len() == MAX_ROW {
                row.remove(0);
            }
            row.push(inst);
            if writes.covers(inst, write, &place) {
                return self.is_quiet(&row).then_some(row);
            }
        }
        None
    }

    fn is_anchor(&self, inst: Inst) -> bool {
        self.anchors.contains(inst.as_u32() as usize)
    }

    /// Whether an anchor is a write of one place that cannot trap in either version.
    fn may_pair(&mut self, inst: Inst) -> bool {
        let at = inst.as_u32() as usize;
        if !self.asked.put(at) {
            let fits = |v: &Analyzed<'_>| written(v.f, inst).is_some() && self.is_harmless(v, inst);
            self.pairable.set(at, self.versions.iter().all(fits));
        }
        self.pairable.contains(at)
    }

    /// Whether an access of a version cannot trap because another access vouches for it. An
    /// instruction that does not access memory bytes, such as a write of a global, never traps.
    fn is_harmless(&self, version: &Analyzed<'_>, inst: Inst) -> bool {
        accessed(version, self.facts, inst, |v| v).map_or(!version.f.may_trap(inst), |access| {
            version.vouches_early(&access, Point::before(inst))
        })
    }

    /// Whether both versions run from the first write of a row to one anchor behind the last, in
    /// one block each, and meet nothing that may trap on the way.
    fn is_quiet(&self, row: &[Inst]) -> bool {
        let [Some(first), Some(last)] = [row.first(), row.last()] else { return false };
        let ends = self.versions.as_ref().map(|version| {
            let f = version.f;
            let mut rest =
                std::iter::successors(Some(*first), |i| f.next_inst(*i)).take(MAX_WINDOW);
            // The walk ends at the block's end if the writes stand in two blocks.
            rest.by_ref()
                .take_while(|i| i != last)
                .chain([*last])
                .all(|i| self.is_anchor(i) || self.cannot_trap(version, i))
                .then(|| rest.find(|i| self.is_anchor(*i) || !self.cannot_trap(version, *i)))
                .flatten()
        });
        ends.before == ends.after && ends.before.is_some_and(|end| self.is_anchor(end))
    }

    fn cannot_trap(&self, version: &Analyzed<'_>, inst: Inst) -> bool {
        !version.f.may_trap(inst) || self.is_harmless(version, inst)
    }
}
