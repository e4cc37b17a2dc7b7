//! Certificates: writes down why the entries of a mapping are right.
//!
//! [`transition::certificate`] defines certificates. This crate finds them by value numbering of
//! both versions in one table of terms (`walk`, with the rounds and rules of [`number`]). It reads
//! the versions themselves; the log only gives hints: the anchors, the parameters of blocks that
//! join edges, and the edges that a pass redirected. So it certifies mappings of any maker. Without
//! a reason for an equality, the two values have different terms or none, and the checker leaves
//! the entry undecided.
//!
//! At first, the versions share every leaf with the same name in both. If the versions bind a
//! shared leaf to different classes, it becomes two leaves (`product`). Then everything is numbered
//! again, until nothing changes.
//!
//! Each phase has data of its own (`version`): the code of a version, the assumptions that last
//! over rounds, the findings of one round. When nothing changes any more, the search hands the
//! `SettledRelation` over, from which the facts of entries are explained.

mod explain;
mod leaves;
mod memory;
mod merges;
mod names;
mod paths;
mod product;
mod ranges;
mod search;
mod terms;
#[cfg(test)]
mod tests;
mod version;
mod walk;

use explain::Explainer;
use ir::{Inst, Point};
use search::{RelationSearch, SettledRelation};
use std::collections::BTreeMap;
use transition::certificate::{Certificate, EntryFacts, MappingFacts};
use transition::mapping::{Mapping, SharedEntry};
use transition::{Correspondence, Pair, Side, VersionKey};

/// The relation between two versions, from which the certificate is made.
#[derive(Debug)]
pub struct Certifier<'a> {
    common: &'a Correspondence<'a>,
    relation: SettledRelation<'a>,
    /// By source version and point: the last entry with steps or replays, and its facts. Mappings
    /// of several levels share entries.
    explained: Pair<BTreeMap<Point, (SharedEntry, EntryFacts)>>,
}

impl<'a> Certifier<'a> {
    /// Finds the relation between the two versions of a pair. Cost: near linear in their size,
    /// times the rounds, one to three in most functions, and the turns of loops
    /// ([`number::NumberingRound::walk`]).
    pub fn new(common: &'a Correspondence<'a>) -> Certifier<'a> {
        let explained = Pair::default();
        Certifier { common, relation: RelationSearch::new(common).run(), explained }
    }

    /// The facts behind the entries of a mapping of this pair; adds terms to the certificate. Facts
    /// of a mapping between other versions name no terms. Cost: linear in the steps of the entries.
    pub fn facts(&mut self, heading: Side, mapping: &Mapping) -> MappingFacts {
        let explained = &mut self.explained[heading];
        Explainer::new(self.common, &mut self.relation, heading).explain(mapping, explained)
    }

    /// The certificate, with the terms of all requested facts.
    pub fn into_certificate(self) -> Certificate {
        let Certifier { common, relation, .. } = self;
        let [before, after] = relation.versions.each_ref().map(|version| &version.found);
        let sides = [before.claims(relation.ranges), after.claims(Vec::new())];
        Certificate {
            versions: [
                VersionKey::of(common.versions.before),
                VersionKey::of(common.versions.after),
            ],
            terms: relation.terms.table.into_terms(),
            sides,
            anchors: common.anchors.ones().map(|i| Inst::from_u32(i as u32)).collect(),
        }
    }

    /// The effort of the search: the rounds of numbering, and the number of names that stand for
    /// different leaves in the two versions.
    pub fn effort(&self) -> (usize, usize) {
        (self.relation.rounds, self.relation.unshared)
    }

    /// The blocks numbered in all rounds, of both versions.
    pub fn numbered(&self) -> usize {
        self.relation.versions.iter().map(|version| version.found.values.numbered).sum()
    }

    /// The writes looked at, in all rounds and for all facts, to find those that a write covers and
    /// an earlier place for a replay.
    pub fn compared(&self) -> usize {
        self.relation.terms.compared.get()
    }
}
