//! Instructions that may trap and are no anchors: neither version may trap alone.
//!
//! Such an instruction is a *site* of its version. Anchors trap in both versions alike, since their
//! operands are equal. A site may have moved: one version may divide above a branch, and the other
//! version below it. Both versions still trap on the same inputs, if each executes an operation of
//! this term, and no effect comes in between.
//!
//! A site of a version is *pending* before an anchor if this version has executed it and the other
//! version may not yet have executed an operation of its term. On some inputs, this version has
//! trapped at this time and the other version has not. The site is *settled* when the other version
//! has executed such an operation, with the same contents of the leaves. If a leaf of its term is
//! bound again first, an operation of the term has other contents, and nothing can settle the site.
//!
//! The analysis is forward over anchors: [`PendingTraps::check`] computes the pending sites before
//! every anchor as a least fixpoint. Then it proves [`Check::TrapOrder`]:
//!
//! - while a site is pending, only branches execute, so no effect comes between the traps of the
//!   versions (`check_order`);
//! - the pending anchors form no cycle, so the other version reaches its trap instead of running
//!   forever (`check_order`);
//! - where a site executes or is pending, memory is the same in both versions, because a trap shows
//!   it (`check_memory`).
//!
//! For entries, [`PendingTraps::skips`] answers whether a landing point is after a trap that the
//! source version may still have ahead.

use super::checks::{Check, Finding, Place};
use super::paths::AnchorPath;
use super::product::{CrossProduct, PathPair};
use fixedbitset::FixedBitSet;
use ir::{Block, Inst, Opcode};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use transition::certificate::{TermId, TermKind};
use transition::{Pair, Side};

/// The largest number of terms that are searched for the leaves of a site. Beyond it, every binding
/// counts as a binding of a leaf of the site. A limit is needed because the search is repeated for
/// each site.
const MAX_TERMS: usize = 1024;

/// The largest number of sites times anchors, which bounds the size of the sets; and the largest
/// number of sites looked at by the fixpoint. Beyond either, the pair is undecided.
const MAX_STATES: usize = 1 << 28;
const MAX_LOOKED_AT: usize = 1 << 26;

/// An effect-free instruction that may trap and is no anchor.
struct TrapSite {
    inst: Inst,
    term: TermId,
    /// By version: the blocks that bind leaves of the term; `None` if the term is too large.
    blocks: Option<Pair<BTreeSet<Block>>>,
}

/// The pending sites, by their index, before an anchor or at the start of the gap before it.
type PendingSites = FixedBitSet;

/// The sites of one version, and the anchors before which they are pending.
pub(crate) struct PendingTraps {
    /// The version with the sites. The *other* version has to settle them.
    side: Side,
    sites: Vec<TrapSite>,
    /// By block of this version: its sites, in order.
    in_block: BTreeMap<Block, Vec<usize>>,
    /// By anchor: the state just before it.
    before: BTreeMap<Inst, PendingSites>,
    /// By anchor: the state at the start of the gap before it, and the sites executed in that gap.
    gap: BTreeMap<Inst, (PendingSites, FixedBitSet)>,
}

impl PendingTraps {
    /// Finds the sites of a version and proves [`Check::TrapOrder`] for them. Cost: linear without
    /// sites. Otherwise, the number of sites times the number of pairs of paths.
    ///
    /// # Errors
    /// [`Check::TrapOrder`], or [`Check::Size`] beyond a limit.
    pub(crate) fn check(
        product: &CrossProduct<'_, '_>,
        side: Side,
        anchors: &FixedBitSet,
    ) -> Result<PendingTraps, Finding> {
        let mut traps = PendingTraps {
            side,
            sites: Vec::new(),
            in_block: BTreeMap::new(),
            before: BTreeMap::new(),
            gap: BTreeMap::new(),
        };
        traps.find_sites(product, anchors);
        if traps.sites.is_empty() {
            return Ok(traps);
        }
        let fits = traps.sites.len().saturating_mul(product.reached.len()) <= MAX_STATES;
        product.terms.require(Check::Size, fits, Place::Whole)?;
        traps.spread(product)?;
        traps.check_order(product)?;
        traps.check_memory(product)?;
        Ok(traps)
    }

    /// Finds the sites: effect-free instructions that may trap where they stand and are no anchors.
    fn find_sites(&mut self, product: &CrossProduct<'_, '_>, anchors: &FixedBitSet) {
        let version = &product.versions[self.side];
        for &block in version.live().blocks() {
            for inst in version.f.block_insts(block) {
                let data = version.f.inst(inst);
                let is_site = data.opcode.is_effect_free()
                    && !anchors.contains(inst.as_u32() as usize)
                    && !product.is_harmless(self.side, inst);
                if is_site && let Some(result) = data.result() {
                    self.in_block.entry(block).or_default().push(self.sites.len());
                    let term = version.term(result);
                    let blocks = binding_blocks(product, term);
                    self.sites.push(TrapSite { inst, term, blocks });
                }
            }
        }
    }

    /// Computes the state before every anchor, as a least fixpoint over the pairs of paths.
    fn spread(&mut self, product: &CrossProduct<'_, '_>) -> Result<(), Finding> {
        // At the function entry, nothing is pending.
        if let Some(onward) = product.start()? {
            let f = product.versions[self.side].f;
            let next = [None, Some(f.first_inst(f.entry()))];
            self.advance(product, &PendingSites::default(), next, &onward)?;
        }
        // All reached anchors start in the work list, because each has sites of its own on the
        // paths after it. The states only grow, so the fixpoint is reached from any order. The
        // ordered set makes the number of steps the same in every run, and with it the verdict at
        // the limit.
        let mut work: BTreeSet<Inst> = product.reached.iter().copied().collect();
        let mut looked_at = 0;
        while let Some(anchor) = work.pop_first() {
            product.terms.require(Check::Size, looked_at <= MAX_LOOKED_AT, Place::Whole)?;
            let state = self.before.get(&anchor).cloned().unwrap_or_default();
            let next = product.versions[self.side].f.next_inst(anchor);
            for onward in product.onward(anchor)? {
                let onward = onward?;
                // Counts the cost of `advance`: the pending sites, and the words of the sets.
                looked_at += state.count_ones(..) + self.sites.len() / 64 + 1;
                if self.advance(product, &state, [Some(anchor), next], &onward)? {
                    work.insert(onward.before.anchor);
                }
            }
        }
        Ok(())
    }

    /// Computes the state before the next anchor from that before `anchor`, along one pair of
    /// paths, and adds it to the known state. Returns whether the known state has grown.
    ///
    /// `next` is the instruction of this version after `anchor`, if the path begins in the middle
    /// of a block.
    ///
    /// # Errors
    /// [`Check::TrapOrder`], when a path binds a leaf of a pending site: nothing can settle the
    /// site then, because an operation of its term has other contents
    /// (`a_site_whose_leaf_is_bound_again_is_never_settled`).
    fn advance(
        &mut self,
        product: &CrossProduct<'_, '_>,
        from: &PendingSites,
        [anchor, next]: [Option<Inst>; 2],
        onward: &PathPair<'_>,
    ) -> Result<bool, Finding> {
        let mut state = from.clone();
        state.grow(self.sites.len());
        // Both versions count: the other version may lack the operation, or have other operands
        // now.
        let is_lost =
            |id| Side::BOTH.into_iter().any(|side| self.is_bound_again(id, onward, side, 0));
        let lost = from.ones().find(|id| is_lost(*id));
        let met = onward.before.anchor;
        product.terms.require(Check::TrapOrder, lost.is_none(), Place::Inst(met))?;
        let other = &product.versions[self.side.other()];
        let mut executed = self.executed(product, next, &onward[self.side]);
        // A site is settled from the start if the other version has executed its term before this
        // path. The term has not trapped then, so the site does not trap either. This holds as long
        // as the path binds none of its leaves before the site
        // (`a_trap_executed_before_the_path_is_settled`,
        // `a_division_passed_on_both_paths_bars_no_entry`).
        executed.retain(|&(segment, id)| {
            let mut bound = onward[self.side].crossings().take(segment);
            let is_settled = anchor.is_some_and(|a| other.has_executed(self.sites[id].term, a));
            !is_settled || bound.any(|c| self.depends_on(id, self.side, c.block))
        });
        // Entries land inside the gap, so `skips` needs the state at its start and the sites within
        // it.
        let (entered, passed) = self.gap.entry(met).or_default();
        entered.union_with(&state);
        passed.grow(self.sites.len());
        executed.iter().for_each(|(_, id)| passed.insert(*id));
        for &(segment, id) in &executed {
            // The bindings of the other path need no look: where both paths end, leaves agree, so
            // it binds the leaf alike. `is_kept` tests that the leaf is still there
            // (`a_trap_is_not_settled_by_leaves_that_are_gone`).
            let keeps = !self.is_bound_again(id, onward, self.side, segment)
                && self.is_kept(product, id, met);
            product.terms.require(Check::TrapOrder, keeps, Place::Inst(met))?;
            state.insert(id);
        }
        // Settled before the next anchor: the other version has executed the term on its path.
        let is_settled = |id: usize| other.has_executed(self.sites[id].term, met);
        let settled: Vec<usize> = state.ones().filter(|id| is_settled(*id)).collect();
        settled.into_iter().for_each(|id| state.set(id, false));
        // Union with the known state, as several paths lead to the anchor. This only adds, so the
        // fixpoint ends.
        let known = self.before.entry(met).or_default();
        let old = known.clone();
        known.union_with(&state);
        Ok(*known != old)
    }

    /// Whether a version binds a leaf of a site on its path, after the given number of crossings.
    fn is_bound_again(&self, id: usize, onward: &PathPair<'_>, side: Side, behind: usize) -> bool {
        onward[side].crossings().skip(behind).any(|c| self.depends_on(id, side, c.block))
    }

    /// Whether this version has all leaves of a site before an anchor.
    fn is_kept(&self, product: &CrossProduct<'_, '_>, id: usize, anchor: Inst) -> bool {
        let version = &product.versions[self.side];
        let home = version.f.inst_block(anchor);
        let blocks = self.sites[id].blocks.as_ref().map(|blocks| &blocks[self.side]);
        blocks.is_some_and(|blocks| blocks.iter().all(|b| version.live().dominates(*b, home)))
    }

    /// Whether a block binds a leaf of a site; `true` if the term was too large to tell.
    fn depends_on(&self, id: usize, side: Side, block: Block) -> bool {
        self.sites[id].blocks.as_ref().is_none_or(|blocks| blocks[side].contains(&block))
    }

    /// The sites that this version executes on a path, each with the number of crossings before it.
    /// The path starts before `from`, or with its first crossing if that is `None`.
    fn executed(
        &self,
        product: &CrossProduct<'_, '_>,
        from: Option<Inst>,
        path: &AnchorPath<'_>,
    ) -> Vec<(usize, usize)> {
        let f = product.versions[self.side].f;
        let starts =
            std::iter::once(from).chain(path.crossings().map(|c| Some(f.first_inst(c.block))));
        let mut found = Vec::new();
        for (segment, start) in starts.enumerate() {
            let Some(start) = start else { continue };
            for &id in self.in_block.get(&f.inst_block(start)).into_iter().flatten() {
                let inst = self.sites[id].inst;
                // In the last block of the path, the anchor ends it; in the first, `from` starts
                // it. In between, whole blocks execute.
                let is_last = segment == path.crossings().count();
                if !f.stands_before(inst, start) && (!is_last || f.stands_before(inst, path.anchor))
                {
                    found.push((segment, id));
                }
            }
        }
        found
    }

    /// Proves two parts of [`Check::TrapOrder`]: no effect executes while a site is pending, and no
    /// cycle of anchors has pending sites throughout. Without the first part, a version could trap
    /// after an effect which the other version never makes. Without the second, one version could
    /// trap while the other runs forever (`a_trap_does_not_end_a_loop_that_has_no_end`).
    fn check_order(&self, product: &CrossProduct<'_, '_>) -> Result<(), Finding> {
        let f = product.versions[self.side].f;
        let is_pending = |anchor: &Inst| self.before.get(anchor).is_some_and(|s| !s.is_clear());
        let pending: BTreeSet<Inst> = product.reached.iter().copied().filter(is_pending).collect();
        // By pending anchor: the number of pairs of paths that come from other pending anchors.
        let mut ways: BTreeMap<Inst, usize> = pending.iter().map(|a| (*a, 0)).collect();
        for &anchor in &pending {
            let only_control =
                matches!(f.inst(anchor).opcode, Opcode::Jump | Opcode::BrIf | Opcode::Switch);
            product.terms.require(Check::TrapOrder, only_control, Place::Inst(anchor))?;
            for onward in product.onward(anchor)? {
                ways.entry(onward?.before.anchor).and_modify(|count| *count += 1);
            }
        }
        // Topological order (Kahn, "Topological sorting of large networks", CACM 1962): anchors on
        // a cycle are never taken, so `seen` stays too small.
        let mut work: Vec<Inst> = ways.iter().filter(|(_, n)| **n == 0).map(|(a, _)| *a).collect();
        let mut seen = 0;
        while let Some(anchor) = work.pop() {
            seen += 1;
            for onward in product.onward(anchor)? {
                let next = onward?.before.anchor;
                if let Some(count) = ways.get_mut(&next) {
                    *count -= 1;
                    if *count == 0 {
                        work.push(next);
                    }
                }
            }
        }
        product.terms.require(Check::TrapOrder, seen == ways.len(), Place::Whole)
    }

    /// Proves the third part of [`Check::TrapOrder`]. A trap ends the run and shows memory. So
    /// wherever a site executes or is pending, the path to the anchor has no lone write, in either
    /// version, and memory is the same before the anchor
    /// (`a_trap_on_the_path_shows_a_write_of_one_version`).
    fn check_memory(&self, product: &CrossProduct<'_, '_>) -> Result<(), Finding> {
        let written = product.behind_lone_writes();
        for (anchor, (entered, passed)) in &self.gap {
            let is_quiet = entered.is_clear() && passed.is_clear();
            let same = is_quiet || (!written.contains(anchor) && product.has_same_memory(*anchor));
            product.terms.require(Check::TrapOrder, same, Place::Inst(*anchor))?;
        }
        Ok(())
    }

    /// Whether an entry lands after a site that the source version may not have passed. `source`
    /// and `target` are the instructions of the two points; `paths` are their paths, which end
    /// before one anchor. Such an entry is wrong on inputs on which the target version has trapped.
    pub(crate) fn skips(
        &self,
        product: &CrossProduct<'_, '_>,
        source: Inst,
        from: &AnchorPath<'_>,
        target: Inst,
        to: &AnchorPath<'_>,
    ) -> bool {
        let Some((entered, passed)) = self.gap.get(&from.anchor) else { return false };
        // The sites that have executed at the target point: all sites of this gap, except sites
        // between the target point and the anchor, and the pending sites from before.
        let mut behind = passed.clone();
        self.executed(product, Some(target), to).iter().for_each(|(_, id)| behind.set(*id, false));
        behind.union_with(entered);
        let other = &product.versions[self.side.other()];
        // The source version has executed the term of the site, with the leaves that the other
        // version still has: the site did not trap.
        let is_settled = |id: usize| {
            let kept = self.is_kept(product, id, from.anchor)
                && !from.crossings().any(|c| self.depends_on(id, self.side.other(), c.block));
            kept && other.has_executed(self.sites[id].term, source)
        };
        !behind.ones().all(is_settled)
    }
}

/// By version: the blocks that bind leaves of a term. `None` beyond [`MAX_TERMS`].
fn binding_blocks(product: &CrossProduct<'_, '_>, term: TermId) -> Option<Pair<BTreeSet<Block>>> {
    let mut blocks = Pair::<BTreeSet<Block>>::default();
    let mut seen = BTreeSet::from([term]);
    let mut work: SmallVec<[TermId; 8]> = SmallVec::from_iter([term]);
    while let Some(id) = work.pop() {
        match product.terms.kind(id) {
            Some(TermKind::Op { args, .. }) => {
                work.extend(args.iter().copied().filter(|a| seen.insert(*a)))
            }
            // An anchor binds its results where it stands, not where its block is entered. The site
            // stands after it, so executing the anchor again means entering its block again, which
            // is found.
            Some(TermKind::Result(inst, _) | TermKind::MemoryAfter(inst)) => {
                for (side, version) in product.versions.sides() {
                    if version.f.has_inst(*inst) {
                        blocks[side].insert(version.f.inst_block(*inst));
                    }
                }
            }
            _ => {
                for (side, version) in product.versions.sides() {
                    blocks[side].extend(version.binders.get(id as usize).copied().flatten());
                }
            }
        }
        if seen.len() > MAX_TERMS {
            return None;
        }
    }
    Some(blocks)
}
