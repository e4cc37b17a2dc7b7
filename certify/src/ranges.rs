//! Ranges of integers: why no run takes the edges that folded branches have lost.
//!
//! A round of numbering assumes that the log was right to fold a branch. Once the classes are
//! found, the ranges of one version have to decide each such branch ([`RangeAnalysis`]). Otherwise
//! the search returns its edges, and numbers again. Branches may justify one another: each claim is
//! about a run that has taken live edges alone so far.

use super::terms::ReasonedTerms;
use super::version::NumberedVersion;
use ir::eval::is_evaluated;
use ir::ranges::Interval;
use ir::{Block, Edge, Value};
use number::{RangeAnalysis, RangeClasses, RangeOperation};
use transition::certificate::{NO_TERM, RangeClaim, TermId};

/// The classes of one version, for the analysis of ranges.
struct VersionRanges<'r, 'a> {
    version: &'r NumberedVersion<'a>,
    table: &'r ReasonedTerms,
}

impl RangeClasses for VersionRanges<'_, '_> {
    fn class(&self, value: Value) -> TermId {
        self.version.class(self.table, value)
    }

    fn operation(&self, value: Value) -> Option<RangeOperation> {
        self.of_term(self.version.found.values.terms.get(value))
    }

    fn first_operation(&self, class: TermId) -> Option<RangeOperation> {
        self.of_term(class)
    }

    fn always(&self, class: TermId) -> Option<Interval> {
        let ty = self.table.ty(class).filter(|ty| ty.is_int())?;
        let of_mask = || Interval::of_mask(ty, self.table.possible(class));
        let known = self.table.constant(class);
        Some(known.map_or_else(of_mask, |bits| Interval::of_bits(ty, bits)))
    }

    fn is_bound(&self, param: Value) -> bool {
        self.version.found.bound_leaf(param).is_some()
    }
}

impl VersionRanges<'_, '_> {
    fn of_term(&self, term: TermId) -> Option<RangeOperation> {
        let found = self.table.operation(term)?;
        // Reads have a memory among their operands.
        let (opcode, ty) = (found.opcode, found.ty);
        is_evaluated(opcode).then(|| RangeOperation { opcode, ty, args: found.args.into() })
    }
}

impl NumberedVersion<'_> {
    /// Analyzes the ranges of the version, if branches are assumed to be folded rightly. Returns
    /// the blocks of the branches that neither ranges nor classes decide, and the claims about the
    /// others. Cost: near linear in the instructions.
    pub(super) fn justify_folded(&self, table: &ReasonedTerms) -> (Vec<Block>, Vec<RangeClaim>) {
        let f = self.f();
        let condition = |block: Block| f.inst(f.terminator(block)).args[0];
        let is_open = |(block, _): &(&Block, &u32)| {
            let class = self.class(table, condition(**block));
            self.live().has_block(**block) && table.constant(class).is_none()
        };
        let open: Vec<(Block, u32)> =
            self.code.folded.iter().filter(is_open).map(|(block, only)| (*block, *only)).collect();
        if open.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let classes = VersionRanges { version: self, table };
        let is_live = |edge: Edge| self.live().has(f, edge);
        let order: Vec<Block> =
            self.blocks().iter().copied().filter(|b| self.live().has_block(*b)).collect();
        let analysis = RangeAnalysis::new(f, self.dom(), &order, &is_live, &classes);
        let is_decided = |(block, only): &(Block, u32)| {
            analysis.is_zero(*block, condition(*block)) == Some(*only == 1)
        };
        let (right, doubted): (Vec<_>, Vec<_>) = open.into_iter().partition(is_decided);
        let facts = analysis.claims(right.iter().map(|(block, _)| (*block, condition(*block))));
        let claim = |fact: number::RangeFact| RangeClaim {
            block: fact.block,
            term: self.found.values.terms.get(fact.value),
            within: fact.within,
            by: fact.by,
        };
        let claims = facts.into_iter().map(claim).filter(|claim| claim.term != NO_TERM).collect();
        (doubted.into_iter().map(|(block, _)| block).collect(), claims)
    }
}
