//! The search for the relation between two versions: rounds of numbering, until every assumption
//! holds in both.

use super::leaves::Leaves;
use super::merges::Merges;
use super::paths::LivePaths;
use super::product::VersionProduct;
use super::terms::CertificateTerms;
use super::version::{Assumptions, NumberedVersion};
use super::walk::VersionWalk;
use number::{MAX_ROUNDS, MAX_WALKS, NumberingRound};
use transition::{Correspondence, Side};

/// How often the graph is narrowed to the edges that runs may take.
const MAX_NARROWINGS: usize = 3;

/// The relation between two versions, once nothing changes any more.
#[derive(Debug)]
pub(super) struct SettledRelation<'a> {
    pub(super) versions: [NumberedVersion<'a>; 2],
    pub(super) paths: [LivePaths; 2],
    pub(super) terms: CertificateTerms,
    /// The rounds of numbering.
    pub(super) rounds: usize,
    /// The names that stand for different leaves in the two versions.
    pub(super) unshared: usize,
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
}

impl<'a> RelationSearch<'a> {
    /// A search that assumes all it can.
    pub(super) fn new(common: &'a Correspondence<'a>) -> RelationSearch<'a> {
        let versions = Side::BOTH.map(|side| NumberedVersion::new(common, side));
        let assumed =
            versions.each_ref().map(|version| Assumptions::new(version.f(), &common.anchors));
        RelationSearch {
            common,
            versions,
            assumed,
            terms: CertificateTerms::default(),
            leaves: Leaves::default(),
            merges: Merges::default(),
            unshared: 0,
        }
    }

    /// Numbers both versions until everything holds together.
    ///
    /// Three loops are nested: the innermost weakens assumptions about copies and reads, the next
    /// narrows the graph to the live edges, the outermost splits shared leaves. A change in an
    /// outer loop restarts the inner ones.
    pub(super) fn run(mut self) -> SettledRelation<'a> {
        let mut narrowings = 0;
        let mut rounds = 0;
        loop {
            rounds += 1;
            // From here on parameters are leaves of their own and every edge is live. Only names,
            // hidden writes and shared leaves can cause further rounds.
            if rounds == MAX_ROUNDS {
                for (version, assumed) in self.versions.iter_mut().zip(&mut self.assumed) {
                    assumed.make_plain();
                    version.code.widen();
                }
            }
            // Without shared leaves the versions cannot disagree on one. This round is the last in
            // any case: the certificate proves little, but the search ends.
            if rounds == 2 * MAX_ROUNDS {
                self.leaves.unshare_all();
            }
            let is_complete = self.number();
            let changed = self.revise();
            let is_last = rounds >= 2 * MAX_ROUNDS;
            if (changed || !is_complete) && !is_last {
                continue;
            }
            // Only when no assumption changed: an edge found dead under a wrong assumption may be
            // live in the next round.
            if narrowings < MAX_NARROWINGS && !is_last {
                narrowings += 1;
                if self.narrow() {
                    continue;
                }
            }
            // Last, since paths read the final classes and live edges. A leaf made two changes the
            // numbers of everything above it, hence another round.
            let paths =
                self.versions.each_ref().map(|version| LivePaths::new(version, self.common));
            if self.unshare(&paths) && !is_last {
                continue;
            }
            let RelationSearch { versions, terms, unshared, .. } = self;
            return SettledRelation { versions, paths, terms, rounds, unshared };
        }
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

    /// Numbers both versions once. Returns whether the walks reached all blocks.
    fn number(&mut self) -> bool {
        self.terms.clear();
        self.leaves.clear();
        self.merges.clear();
        let mut is_complete = true;
        for side in [0, 1] {
            let mut walk = self.walk(side);
            // A second walk keeps the classes of the first: they are the ones that the back edge
            // brings.
            walk.version.begin_round();
            is_complete &= (0..MAX_WALKS).any(|_| {
                walk.version.begin_walk();
                walk.assumed.doubted.clear();
                walk.walk()
            });
        }
        is_complete
    }

    /// Weakens the assumptions that this round contradicts. Returns whether there are any.
    fn revise(&mut self) -> bool {
        // Every revision runs in every round (no `||`, which would stop at the first): each pins
        // all that it can. A round saved is a numbering of both versions saved.
        let mut changed = false;
        for (version, assumed) in self.versions.iter().zip(&mut self.assumed) {
            changed |= assumed.revise(version, &self.terms.table);
        }
        let functions = self.versions.each_ref().map(NumberedVersion::f);
        let [a, b] = &mut self.assumed;
        changed |= a.pin_alike(b, self.common, functions);
        let is_refuted = self.revise_merges();
        changed |= is_refuted;
        for assumed in &mut self.assumed {
            changed |= assumed.pin_doubted(is_refuted);
        }
        if self.common.has_lone_writes {
            for (version, assumed) in self.versions.iter().zip(&mut self.assumed) {
                changed |= assumed.note_hidden(&version.found.writes, &self.terms);
            }
        }
        changed
    }

    /// Checks in both versions that reads give the same on all edges, as assumed. Returns whether
    /// some do not.
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
        for (version, assumed) in self.versions.iter_mut().zip(&self.assumed) {
            is_narrower |= !assumed.copies.is_plain() && version.narrow();
        }
        if is_narrower {
            // With fewer edges more dominates, and assumptions that dead edges spoiled may hold.
            // They are spoiled in the other version too, through shared leaves, so both start over
            // (`assumptions_spoiled_by_dead_edges_are_tried_again`).
            for (version, assumed) in self.versions.iter().zip(&mut self.assumed) {
                assumed.forgive(version.f());
            }
            self.merges.forgive();
        }
        is_narrower
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
