//! Instructions that may trap and are no anchors: each version executes its own.
//!
//! Seen from a transition into a version, such a *site* of it is *pending* where that version has
//! executed it and the other may not yet have executed one that computes the same term: on some
//! inputs the version has trapped there and the other has not. Nothing may be landed behind a
//! pending site, and no effect may follow one: then one version traps and the other does not. A
//! site is settled when the other version has passed an instruction with its term, nothing the term
//! depends on having been bound again in between.

use super::lines::Line;
use super::product::{Onward, Product};
use crate::verdict::{Check, Finding, Place};
use fixedbitset::FixedBitSet;
use ir::{Block, Inst, Opcode};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use transition::certificate::{TermId, TermKind};

/// Terms looked at to find what a site depends on; beyond, any binding may matter.
const MAX_TERMS: usize = 1024;

/// Sites times anchors, and sites looked at on ways between anchors, beyond which a pair is not
/// decided.
const MAX_STATES: usize = 1 << 28;
const MAX_LOOKED_AT: usize = 1 << 26;

struct Site {
    inst: Inst,
    term: TermId,
    /// By version: the blocks that bind what the term depends on; `None` when that is too much to
    /// tell.
    blocks: Option<[BTreeSet<Block>; 2]>,
}

/// Sites by number, before an anchor or in the gap before it.
#[derive(Clone, Default, PartialEq, Eq)]
struct State {
    /// Pending, and can be settled.
    pending: FixedBitSet,
    /// Pending, and cannot be settled any more.
    stuck: FixedBitSet,
}

/// The sites of one version, and where they are pending.
pub(super) struct Traps {
    /// The version that has them.
    side: usize,
    sites: Vec<Site>,
    /// By block of that version: its sites, in order.
    in_block: BTreeMap<Block, Vec<usize>>,
    /// By anchor: pending just before it.
    before: BTreeMap<Inst, State>,
    /// By anchor: pending when the gap before it is entered; and executed in that gap.
    gap: BTreeMap<Inst, (State, FixedBitSet)>,
}

impl Traps {
    /// Finds the sites of a version and where they are pending. Cost: linear without sites; else
    /// their number times the ways between anchors.
    pub(super) fn check(
        product: &Product<'_, '_>,
        side: usize,
        anchors: &FixedBitSet,
    ) -> Result<Traps, Finding> {
        let mut traps = Traps {
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

    fn find_sites(&mut self, product: &Product<'_, '_>, anchors: &FixedBitSet) {
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
                    self.sites.push(Site { inst, term, blocks });
                }
            }
        }
    }

    /// Spreads what is pending along the ways between anchors, until nothing changes.
    fn spread(&mut self, product: &Product<'_, '_>) -> Result<(), Finding> {
        if let Some(onward) = product.start()? {
            let f = product.versions[self.side].f;
            self.advance(
                product,
                &State::default(),
                [None, Some(f.first_inst(f.entry()))],
                &onward,
            );
        }
        let mut work: BTreeSet<Inst> = product.reached.iter().copied().collect();
        let mut looked_at = 0;
        while let Some(anchor) = work.pop_first() {
            product.terms.require(Check::Size, looked_at <= MAX_LOOKED_AT, Place::Whole)?;
            let state = self.before.get(&anchor).cloned().unwrap_or_default();
            let next = product.versions[self.side].f.next_inst(anchor);
            for onward in product.onward(anchor)? {
                looked_at += state.pending.count_ones(..) + self.sites.len() / 64 + 1;
                if self.advance(product, &state, [Some(anchor), next], &onward) {
                    work.insert(onward.lines[0].anchor);
                }
            }
        }
        Ok(())
    }

    /// What is pending one anchor further on, `next` being what this version executes first, if
    /// that is in the same block; whether that is more than was known.
    fn advance(
        &mut self,
        product: &Product<'_, '_>,
        from: &State,
        [anchor, next]: [Option<Inst>; 2],
        onward: &Onward<'_>,
    ) -> bool {
        let mut state = from.clone();
        state.pending.grow(self.sites.len());
        state.stuck.grow(self.sites.len());
        for id in from.pending.ones() {
            if (0..2).any(|side| self.is_bound_again(id, onward, side, 0)) {
                state.stuck.insert(id);
                state.pending.set(id, false);
            }
        }
        let met = onward.lines[0].anchor;
        let other = &product.versions[1 - self.side];
        let mut executed = self.executed(product, next, &onward.lines[self.side]);
        // What the other version had executed before the line, as long as nothing was bound on the
        // way to the site, has not trapped there (`a_trap_executed_before_the_line_is_settled`,
        // `a_division_that_both_ways_have_passed_is_no_obstacle`).
        executed.retain(|&(segment, id)| {
            let mut bound = onward.lines[self.side].crossings().take(segment);
            let is_settled = anchor.is_some_and(|a| other.has_executed(self.sites[id].term, a));
            !is_settled || bound.any(|c| self.depends_on(id, self.side, c.block))
        });
        let (entered, passed) = self.gap.entry(met).or_default();
        entered.pending.union_with(&state.pending);
        entered.stuck.union_with(&state.stuck);
        passed.grow(self.sites.len());
        executed.iter().for_each(|(_, id)| passed.insert(*id));
        for &(segment, id) in &executed {
            // What the other version binds on this way it binds as this one does: leaves agree
            // where it ends, if they are still there.
            let stuck = self.is_bound_again(id, onward, self.side, segment)
                || !self.is_kept(product, id, met);
            let set = if stuck { &mut state.stuck } else { &mut state.pending };
            set.insert(id);
        }
        let is_settled = |id: usize| other.has_executed(self.sites[id].term, met);
        let settled: Vec<usize> = state.pending.ones().filter(|id| is_settled(*id)).collect();
        settled.into_iter().for_each(|id| state.pending.set(id, false));
        let known = self.before.entry(met).or_default();
        let old = known.clone();
        known.pending.union_with(&state.pending);
        known.stuck.union_with(&state.stuck);
        *known != old
    }

    /// Whether what a site depends on is bound by a version on a way, behind the given number of
    /// crossings.
    fn is_bound_again(&self, id: usize, onward: &Onward<'_>, side: usize, behind: usize) -> bool {
        onward.lines[side].crossings().skip(behind).any(|c| self.depends_on(id, side, c.block))
    }

    /// Whether all that a site depends on is still available in its version before an anchor.
    fn is_kept(&self, product: &Product<'_, '_>, id: usize, anchor: Inst) -> bool {
        let version = &product.versions[self.side];
        let home = version.f.inst_block(anchor);
        let blocks = self.sites[id].blocks.as_ref().map(|blocks| &blocks[self.side]);
        blocks.is_some_and(|blocks| blocks.iter().all(|b| version.live().dominates(*b, home)))
    }

    fn depends_on(&self, id: usize, side: usize, block: Block) -> bool {
        self.sites[id].blocks.as_ref().is_none_or(|blocks| blocks[side].contains(&block))
    }

    /// The sites on a line, each with the number of crossings before it; from an instruction on, or
    /// from the first crossing.
    fn executed(
        &self,
        product: &Product<'_, '_>,
        from: Option<Inst>,
        line: &Line<'_>,
    ) -> Vec<(usize, usize)> {
        let f = product.versions[self.side].f;
        let starts =
            std::iter::once(from).chain(line.crossings().map(|c| Some(f.first_inst(c.block))));
        let mut found = Vec::new();
        for (segment, start) in starts.enumerate() {
            let Some(start) = start else { continue };
            for &id in self.in_block.get(&f.inst_block(start)).into_iter().flatten() {
                let inst = self.sites[id].inst;
                let is_last = segment == line.crossings().count();
                if !f.stands_before(inst, start) && (!is_last || f.stands_before(inst, line.anchor))
                {
                    found.push((segment, id));
                }
            }
        }
        found
    }

    /// No effect follows a pending site, and control cannot go around for ever while one is.
    fn check_order(&self, product: &Product<'_, '_>) -> Result<(), Finding> {
        let f = product.versions[self.side].f;
        let is_pending = |anchor: &Inst| {
            self.before.get(anchor).is_some_and(|s| !s.pending.is_clear() || !s.stuck.is_clear())
        };
        let pending: BTreeSet<Inst> = product.reached.iter().copied().filter(is_pending).collect();
        let mut ways: BTreeMap<Inst, usize> = pending.iter().map(|a| (*a, 0)).collect();
        for &anchor in &pending {
            let only_control =
                matches!(f.inst(anchor).opcode, Opcode::Jump | Opcode::BrIf | Opcode::Switch);
            product.terms.require(Check::TrapOrder, only_control, Place::Inst(anchor))?;
            for onward in product.onward(anchor)? {
                ways.entry(onward.lines[0].anchor).and_modify(|count| *count += 1);
            }
        }
        let mut work: Vec<Inst> = ways.iter().filter(|(_, n)| **n == 0).map(|(a, _)| *a).collect();
        let mut seen = 0;
        while let Some(anchor) = work.pop() {
            seen += 1;
            for onward in product.onward(anchor)? {
                let next = onward.lines[0].anchor;
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

    /// A trap would show what memory differs in: on the way to an anchor where a site is executed
    /// or pending, no version writes alone, and both come to the anchor with the same memory.
    fn check_memory(&self, product: &Product<'_, '_>) -> Result<(), Finding> {
        let written = product.behind_lone_writes();
        for (anchor, (entered, passed)) in &self.gap {
            let is_quiet =
                [&entered.pending, &entered.stuck, passed].iter().all(|sites| sites.is_clear());
            let same = is_quiet || (!written.contains(anchor) && product.has_same_memory(*anchor));
            product.terms.require(Check::TrapOrder, same, Place::Inst(*anchor))?;
        }
        Ok(())
    }

    /// Whether a landing before `target` skips a site that the other version, before `source`, has
    /// not passed; both on their lines to one anchor.
    pub(super) fn skips(
        &self,
        product: &Product<'_, '_>,
        [source, target]: [Inst; 2],
        lines: [&Line<'_>; 2],
    ) -> bool {
        let Some((entered, passed)) = self.gap.get(&lines[0].anchor) else { return false };
        let mut behind = passed.clone();
        self.executed(product, Some(target), lines[1])
            .iter()
            .for_each(|(_, id)| behind.set(*id, false));
        behind.union_with(&entered.pending);
        let other = &product.versions[1 - self.side];
        let is_settled = |id: usize| {
            let kept = self.is_kept(product, id, lines[0].anchor)
                && !lines[0].crossings().any(|c| self.depends_on(id, 1 - self.side, c.block));
            kept && other.has_executed(self.sites[id].term, source)
        };
        !entered.stuck.is_clear() || !behind.ones().all(is_settled)
    }
}

/// By version: the blocks that bind the leaves of a term.
fn binding_blocks(product: &Product<'_, '_>, term: TermId) -> Option<[BTreeSet<Block>; 2]> {
    let mut blocks = [BTreeSet::new(), BTreeSet::new()];
    let mut seen = BTreeSet::from([term]);
    let mut work: SmallVec<[TermId; 8]> = SmallVec::from_iter([term]);
    while let Some(id) = work.pop() {
        match product.terms.kind(id) {
            Some(TermKind::Op { args, .. }) => {
                work.extend(args.iter().copied().filter(|a| seen.insert(*a)))
            }
            // Bound where they stand, not where a block is entered; the site stands behind them.
            Some(TermKind::Result(inst, _) | TermKind::MemoryAfter(inst)) => {
                for (side, version) in product.versions.iter().enumerate() {
                    if version.f.has_inst(*inst) {
                        blocks[side].insert(version.f.inst_block(*inst));
                    }
                }
            }
            _ => {
                for (side, version) in product.versions.iter().enumerate() {
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
