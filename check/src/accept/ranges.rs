//! Ranges: claims about integers at the ends of blocks, and the edges that no run takes as a
//! result.
//!
//! A claim says that a class has contents in an interval whenever control is before the terminator
//! of a block of live code. Such a claim concerns one version and one block. The checker keeps it
//! out of the table of terms, whose facts are true for all contents of the leaves. The claims hold
//! together, by induction over the blocks that a run enters. Suppose that a run is at the end of a
//! block, that all claims held at the end of each block before, and that the run has taken live
//! edges alone. Take the claims about this block in the order of the certificate:
//!
//! - *Above*. The block of the other claim dominates this block strictly, so the run has passed the
//!   end of that block. The leaves of the class are bound at or above that block. The run has bound
//!   no leaf again since then: a path from a binding to this block would avoid the dominator
//!   otherwise.
//! - *Edges*. The run has come over one of the live edges. If the block binds the class, the class
//!   has the contents of the argument; otherwise its leaves are bound strictly above, and the edge
//!   leaves them as they were. The claims about the block that the edge leaves held then, and the
//!   branch there took this edge, which narrows the contents ([`ir::ranges::behind`]).
//! - *Operation*. The term is one operation on classes, for all contents of the leaves. The claims
//!   about the operands come earlier in the order, so no claim rests on itself.
//! - *Compared*. The run has come over the only live edge into a block that dominates this block.
//!   The branch there compared the same two classes, and their leaves are bound at or above it.
//!
//! A claim that a condition is zero, or never is, then decides the branch, so the run leaves over a
//! live edge again. A certificate may claim anything about blocks that no run enters.

use super::checks::{Check, Finding, Place};
use super::version::ProvedVersion;
use ir::ranges::{Interval, RangeBy, behind, implied, of_operation};
use ir::{Block, Edge, Opcode, Type};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use transition::certificate::{By, RangeClaim, TermId, TermKind};

/// The tests in front of a comparison that are looked through: `eqz`, and `ne` and `eq` with 0.
const MAX_TESTS: usize = 3;

/// The claims about one version.
#[derive(Default)]
pub(crate) struct ClaimedRanges {
    claims: Vec<RangeClaim>,
    /// By block and class: the place of the claim.
    places: BTreeMap<(Block, TermId), usize>,
}

/// A class that is zero or not, and the term that may compute it.
struct KnownTest {
    class: TermId,
    term: TermId,
    holds: bool,
}

impl ClaimedRanges {
    pub(super) fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// The claimed contents of a class at the end of a block.
    pub(super) fn claimed(&self, block: Block, class: TermId) -> Option<Interval> {
        self.places.get(&(block, class)).map(|place| self.claims[*place].within)
    }
}

impl ProvedVersion<'_, '_> {
    /// Reads claims: each is about integers of a block of the version, and the only one about its
    /// block and class.
    pub(super) fn read_ranges(&mut self, claims: &[RangeClaim]) -> Result<(), Finding> {
        for claim in claims {
            let all = self.table.ty(claim.term).and_then(Interval::of_type);
            let is_proper = claim.within.low <= claim.within.high
                && all.is_some_and(|all| claim.within.is_within(all))
                && self.f.has_block(claim.block);
            let key = (claim.block, self.table.class(claim.term));
            let is_new = self.ranges.places.insert(key, self.ranges.claims.len()).is_none();
            self.table.require(Check::Range, is_proper && is_new, Place::Term(claim.term))?;
            self.ranges.claims.push(*claim);
        }
        Ok(())
    }

    /// Proves [`Check::Range`]: every claim about a block of live code follows from others, or from
    /// the branches on the way. Without it, a version could drop a test that some run needs.
    ///
    /// Cost: linear in the claims, and in the edges into the blocks of claims by edges.
    pub(super) fn check_ranges(&self) -> Result<(), Finding> {
        for (place, claim) in self.ranges.claims.iter().enumerate() {
            if self.live().has(claim.block) {
                let follows = self.follows(place, claim);
                self.table.require(Check::Range, follows, Place::Term(claim.term))?;
            }
        }
        Ok(())
    }

    fn follows(&self, place: usize, claim: &RangeClaim) -> bool {
        let (block, class) = (claim.block, self.table.class(claim.term));
        if !self.is_supported_at(class, block) {
            return false;
        }
        let is_within = |found: Option<Interval>| found.is_some_and(|x| x.is_within(claim.within));
        match claim.by {
            RangeBy::Above(above) => {
                let dominates = above != block && self.live().dominates(above, block);
                dominates
                    && self.is_supported_at(class, above)
                    && is_within(self.contents(above, class))
            }
            // The entry has no edges, and a claim about its arguments would hold for want of them.
            RangeBy::Edges if block == self.f.entry() => false,
            RangeBy::Edges => self.live_into(block).all(|edge| {
                let brought = self.brought(edge, block, class);
                is_within(brought.and_then(|class| self.over(edge, class)))
            }),
            RangeBy::Operation => is_within(self.computed(place, block, claim.term)),
            RangeBy::Compared(behind) => {
                let result = self.compared(place, behind, block, claim.term);
                is_within(result.map(|holds| Interval::exactly(holds.into())))
            }
        }
    }

    /// The contents of a class at the end of a block: as claimed, or else as the table knows them
    /// for all contents of the leaves.
    fn contents(&self, block: Block, class: TermId) -> Option<Interval> {
        self.ranges.claimed(block, class).or_else(|| self.table.interval(class))
    }

    /// As [`ProvedVersion::contents`], by the claims before a place alone.
    fn contents_before(&self, place: usize, block: Block, class: TermId) -> Option<Interval> {
        let known = self.ranges.places.get(&(block, class)).filter(|other| **other < place);
        known.map(|at| self.ranges.claims[*at].within).or_else(|| self.table.interval(class))
    }

    /// The class whose contents an edge makes those of a class at its target. `None` if that is no
    /// single class.
    fn brought(&self, edge: Edge, block: Block, class: TermId) -> Option<TermId> {
        if !self.is_leaf_of(class, block) {
            // A class over a leaf that the block binds has other contents than before the edge.
            let from = self.f.inst_block(edge.inst);
            let is_kept = !self.is_bound_in(class, block) && self.is_supported_at(class, from);
            return is_kept.then_some(class);
        }
        let params = self.f.block_params(block).iter();
        let index = params.copied().position(|param| self.class(param) == class)?;
        self.f.target(edge).args.get(index).map(|arg| self.class(*arg))
    }

    /// The contents of a class at the end of the block that an edge leaves, in runs that take it.
    fn over(&self, edge: Edge, class: TermId) -> Option<Interval> {
        let from = self.f.inst_block(edge.inst);
        let mut own = self.contents(from, class)?;
        for test in self.tests(edge) {
            if test.class == class {
                own = if test.holds { own.without(0) } else { own.and(Interval::exactly(0)) };
            }
            let Some((opcode, ty, &[a, b])) = self.operation(test.term) else { continue };
            if a == class
                && let Some(other) = self.contents(from, b)
            {
                own = behind(opcode, ty.bits(), test.holds, [own, other], 0);
            }
            if b == class
                && let Some(other) = self.contents(from, a)
            {
                own = behind(opcode, ty.bits(), test.holds, [other, own], 1);
            }
        }
        Some(own)
    }

    /// The classes that a branch tests, if a run takes this edge.
    fn tests(&self, edge: Edge) -> SmallVec<[KnownTest; 2]> {
        let mut tests: SmallVec<[KnownTest; 2]> = SmallVec::new();
        let data = self.f.inst(edge.inst);
        let Some(&condition) = data.args.first().filter(|_| data.opcode == Opcode::BrIf) else {
            return tests;
        };
        // Both edges of the branch may lead to one block; each is an edge of its own.
        let (mut term, mut holds) = (self.term(condition), edge.index == 0);
        for _ in 0..MAX_TESTS {
            tests.push(KnownTest { class: self.table.class(term), term, holds });
            let zero = |id: &TermId| self.table.constant(*id) == Some(0);
            (term, holds) = match self.operation(term) {
                Some((Opcode::Eqz, _, &[x])) => (x, !holds),
                Some((Opcode::Ne, _, [x, y] | [y, x])) if zero(y) => (*x, holds),
                Some((Opcode::Eq, _, [x, y] | [y, x])) if zero(y) => (*x, !holds),
                _ => break,
            };
        }
        tests
    }

    /// An operation on integers alone. A read past writes may be confirmed by the other version
    /// alone, and says nothing here.
    fn operation(&self, term: TermId) -> Option<(Opcode, Type, &[TermId])> {
        let found = self.table.get(term)?;
        match (&found.kind, &found.by) {
            (_, By::Merged { .. } | By::Apart { .. }) => None,
            (TermKind::Op { opcode, ty, args, .. }, _) => Some((*opcode, *ty, args)),
            _ => None,
        }
    }

    fn computed(&self, place: usize, block: Block, term: TermId) -> Option<Interval> {
        let (opcode, ty, args) = self.operation(term)?;
        let operands = args.iter().map(|class| self.contents_before(place, block, *class));
        let operands: SmallVec<[Interval; 3]> = operands.collect::<Option<_>>()?;
        of_operation(opcode, ty.bits(), &operands)
    }

    fn compared(&self, place: usize, behind: Block, block: Block, term: TermId) -> Option<bool> {
        let (asked, ty, &[x, y]) = self.operation(term)? else { return None };
        // The claim may name a block that does not exist. It dominates nothing.
        if !self.live().dominates(behind, block) {
            return None;
        }
        let mut edges = self.live_into(behind);
        let edge = edges.next().filter(|_| edges.next().is_none())?;
        let from = self.f.inst_block(edge.inst);
        let is_kept = |class: TermId| self.is_supported_at(class, from);
        if !(is_kept(x) && is_kept(y)) {
            return None;
        }
        let contents = |class: TermId| self.contents_before(place, block, class);
        let operands = [contents(x)?, contents(y)?];
        self.tests(edge).iter().find_map(|test| {
            let (known, of, order) = self.operation(test.term)?;
            let is_swapped = match order {
                _ if of != ty => return None,
                [a, b] if (*a, *b) == (x, y) => false,
                [a, b] if (*a, *b) == (y, x) => true,
                _ => return None,
            };
            implied(known, test.holds, is_swapped, asked, operands)
        })
    }
}
