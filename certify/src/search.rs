//! The search for the relation between two versions: rounds of numbering, until every assumption
//! holds in both.

use super::leaves::Leaves;
use super::merges::{Merges, ReadLabel};
use super::paths::LivePaths;
use super::product::VersionProduct;
use super::terms::CertificateTerms;
use super::version::{Assumptions, NumberedVersion};
use super::walk::VersionWalk;
use ir::Block;
use number::NumberingRound;
use std::collections::BTreeSet;
use transition::certificate::RangeClaim;
use transition::{Correspondence, Side};

/// How often the graph is narrowed to the edges that runs may take.
const MAX_NARROWINGS: usize = 3;

/// The relation between two versions, once nothing changes any more.
#[derive(Debug)]
pub(super) struct SettledRelation<'a> {
    pub(super) versions: [NumberedVersion<'a>; 2],
    pub(super) paths: [LivePaths; 2],
    pub(super) terms: CertificateTerms,
    /// The claims about integers of the version before.
    pub(super) ranges: Vec<RangeClaim>,
    /// The rounds of numbering.
    pub(super) rounds: usize,
    /// The names that stand for different leaves in the two versions.
    pub(super) unshared: usize,
}

/// The assumptions that had failed before a round.
struct RoundStart {
    refuted: BTreeSet<ReadLabel>,
    weakened: usize,
}

/// The search for the relation.
pub(super) struct RelationSearch<'a> {
    common: &'a Correspondence<'a>,
    versions: [NumberedVersion<'a>; 2],
    assumed: [Assumptions; 2],
    terms: CertificateTerms,
    leaves: Leaves,
    merges: Merges,
    unshared: usize,
    ranges: Vec<RangeClaim>,
}

impl<'a> RelationSearch<'a> {
    /// A search that assumes all it can.
    pub(super) fn new(common: &'a Correspondence<'a>) -> RelationSearch<'a> {
        let versions = Side::BOTH.map(|side| NumberedVersion::new(common, side));
        let assumed = versions.each_ref().map(|version| Assumptions::new(version.f(), common));
        RelationSearch {
            common,
            versions,
            assumed,
            terms: CertificateTerms::new(common.versions.before.rules()),
            leaves: Leaves::default(),
            merges: Merges::default(),
            unshared: 0,
            ranges: Vec::new(),
        }
    }

    /// Numbers both versions until everything holds together.
    ///
    /// Three loops are nested: the innermost weakens assumptions, the next narrows the graph to the
    /// live edges, the outermost splits shared leaves. A change in an outer loop restarts the inner
    /// ones. Most assumptions are weakened within one numbering already, loop by loop
    /// ([`NumberingRound::walk`]). Further rounds serve assumptions that concern both versions, and
    /// code behind a loop. Each round has fewer assumptions than the round before, so the rounds
    /// end.
    pub(super) fn run(mut self) -> SettledRelation<'a> {
        let mut narrowings = 0;
        let mut rounds = 0;
        let mut failed = 0;
        loop {
            rounds += 1;
            let start = self.begin_round();
            let is_weaker = self.number();
            let is_contradicted = self.revise(&start);
            let before = std::mem::replace(&mut failed, self.failed());
            // A block takes the name that it hands on to the next block, unless the next block
            // turns out to be the start of a leaf, perhaps later in the same walk.
            let is_named_early = is_weaker && self.hands_other_names();
            if (is_contradicted || is_named_early) && failed != before {
                continue;
            }
            // Before the graph is narrowed: a branch whose edges return makes classes weaker.
            if self.unfold() {
                failed = 0;
                continue;
            }
            // Only when no assumption changed: an edge found dead under a wrong assumption may be
            // live in the next round.
            if narrowings < MAX_NARROWINGS {
                narrowings += 1;
                if self.narrow() {
                    failed = 0;
                    continue;
                }
            }
            // Last, since paths read the final classes and live edges. A leaf made two changes the
            // numbers of everything above it, hence another round.
            let paths =
                self.versions.each_ref().map(|version| LivePaths::new(version, self.common));
            if self.unshare(&paths) {
                continue;
            }
            let RelationSearch { versions, terms, unshared, ranges, .. } = self;
            return SettledRelation { versions, paths, terms, rounds, unshared, ranges };
        }
    }

    /// The number of assumptions that have failed since the graph was narrowed.
    fn failed(&self) -> usize {
        self.weakened() + self.merges.failed()
    }

    /// The number of failed assumptions, without assumptions about reads.
    fn weakened(&self) -> usize {
        self.assumed.iter().map(Assumptions::failed).sum()
    }

    /// The state before a round.
    fn begin_round(&self) -> RoundStart {
        RoundStart { refuted: self.merges.refuted(), weakened: self.weakened() }
    }

    /// Whether a block of either version wanted the name of a parameter or block further on that is
    /// no longer handed on to it.
    fn hands_other_names(&mut self) -> bool {
        [0, 1].into_iter().any(|side| self.walk(side).hands_other_names())
    }

    fn walk(&mut self, side: usize) -> VersionWalk<'_, 'a> {
        let [before, after] = &mut self.versions;
        let (version, numbered) = match side {
            0 => (before, None),
            _ => (after, Some(&before.found)),
        };
        VersionWalk {
            version,
            numbered,
            assumed: &mut self.assumed[side],
            terms: &mut self.terms,
            leaves: &mut self.leaves,
            merges: &mut self.merges,
        }
    }

    /// Numbers both versions once. Returns whether an assumption failed on the way.
    fn number(&mut self) -> bool {
        self.terms.clear();
        self.leaves.clear();
        self.merges.clear();
        let mut is_weaker = false;
        for side in [0, 1] {
            let mut walk = self.walk(side);
            walk.version.begin_round();
            walk.assumed.doubted.clear();
            is_weaker |= walk.walk();
        }
        is_weaker
    }

    /// Weakens the assumptions that this round contradicts. Returns whether there are any.
    fn revise(&mut self, start: &RoundStart) -> bool {
        // Every revision runs in every round (no `||`, which would stop at the first): each pins
        // all that it can. A round saved is a numbering of both versions saved.
        let mut is_apart = self.versions.iter().any(|version| version.found.names.clash());
        is_apart |= self.give_up_alike();
        if self.common.has_lone_writes {
            for (version, assumed) in self.versions.iter().zip(&mut self.assumed) {
                is_apart |= assumed.note_hidden(&version.found.writes, &self.terms);
            }
        }
        // The versions had different leaves for one thing, so a read of both had two classes. The
        // next round may give it one (`reads_refuted_under_other_names_are_tried_again.oir`).
        if is_apart && self.weakened() > start.weakened {
            self.merges.restore(&start.refuted);
            self.assumed.iter_mut().for_each(|assumed| assumed.doubted.clear());
            return true;
        }
        let is_refuted = self.revise_merges();
        let mut changed = is_apart | is_refuted;
        for assumed in &mut self.assumed {
            changed |= assumed.pin_doubted(is_refuted);
        }
        changed
    }

    /// Gives up in both versions the blocks that a limit has given up in one. The leaves of such a
    /// block would lack partners in the other version, and no entry would hold
    /// (`a_deep_nest_gives_up_the_same_loops_in_both_versions`). Returns whether there are any.
    fn give_up_alike(&mut self) -> bool {
        let mut changed = false;
        for (side, version) in self.versions.iter().enumerate() {
            let [own, other] = [side, 1 - side].map(|of| &self.assumed[of].opaque);
            let blocks = other.difference(own).map(|index| Block::from_u32(index as u32));
            let blocks: Vec<Block> = blocks.filter(|block| version.f().has_block(*block)).collect();
            changed |= !blocks.is_empty();
            for block in blocks {
                self.assumed[side].give_up(&version.code, block);
            }
        }
        changed
    }

    /// Checks in both versions that reads give the same on all edges, as assumed. Returns whether
    /// some reads differ.
    fn revise_merges(&mut self) -> bool {
        let mut changed = false;
        let mut asked = [0; 2];
        // A check may read through further blocks, and so add assumptions. The loop ends when both
        // versions have checked every assumption.
        while asked.iter().any(|n| !self.merges.are_asked(*n)) {
            for side in [0, 1] {
                let (is_wrong, count) = self.walk(side).revise_merges(asked[side]);
                (changed, asked[side]) = (changed | is_wrong, count);
            }
        }
        changed
    }

    /// Narrows the graphs of both versions to the live edges. Returns whether there were others.
    fn narrow(&mut self) -> bool {
        let mut is_narrower = false;
        for version in &mut self.versions {
            is_narrower |= version.narrow();
        }
        if is_narrower {
            // With fewer edges more dominates, and assumptions that dead edges spoiled may hold.
            // They are spoiled in the other version too, through shared leaves, so both start over
            // (`assumptions_spoiled_by_dead_edges_are_tried_again`).
            self.forgive();
        }
        is_narrower
    }

    fn forgive(&mut self) {
        for (version, assumed) in self.versions.iter().zip(&mut self.assumed) {
            assumed.forgive(version.f());
        }
        self.merges.forgive();
    }

    /// Returns the edges of folded branches that neither ranges nor classes decide. Keeps the
    /// claims about the others. Returns whether there were edges to return.
    fn unfold(&mut self) -> bool {
        let [before, _] = &mut self.versions;
        let (doubted, claims) = before.justify_folded(&self.terms.table);
        self.ranges = claims;
        if doubted.is_empty() {
            return false;
        }
        before.code.unfold(&doubted);
        self.forgive();
        true
    }

    /// Makes two leaves of each shared leaf on which the versions disagree. Returns whether there
    /// are any.
    fn unshare(&mut self, paths: &[LivePaths; 2]) -> bool {
        let RelationSearch { common, versions, terms, leaves, unshared, .. } = self;
        let product = VersionProduct {
            table: &terms.table,
            versions,
            paths,
            leaves,
            has_lone_writes: common.has_lone_writes,
        };
        let names = product.disagreeing(common.anchors.len());
        *unshared += names.len();
        names.iter().for_each(|name| leaves.unshare(*name));
        !names.is_empty()
    }
}
