//! Certificates: writes down why the entries of a mapping are right.
//!
//! [`transition::certificate`] defines certificates. This module finds them by value numbering of both
//! versions in one table of terms (`number`). It reads the versions themselves; the log only gives
//! hints: which instructions are anchors, which parameters a pass put where edges join, which edges
//! a pass redirected. So it certifies mappings of any maker. Where it finds no reason for an
//! equality there is no term, and the checker leaves the entry undecided.
//!
//! At first both versions share every leaf that has one name in both. A leaf that the two versions
//! turn out to bind to different things becomes two leaves (`product`). Then everything is numbered
//! again, until nothing changes.

mod explain;
mod leaves;
mod memory;
mod merges;
mod names;
mod number;
mod place;
mod product;
mod rewrite;
mod runs;
mod table;
#[cfg(test)]
mod tests;

use explain::Explainer;
use ir::Inst;
use leaves::Leaves;
use number::Numbering;
use product::Product;
use runs::Runs;
use table::Table;
use transition::Correspondence;
use transition::Side;
use transition::VersionKey;
use transition::certificate::{Certificate, MappingFacts, VersionTerms};
use transition::mapping::Mapping;

/// Rounds of numbering after which the search gives up its assumptions; after twice as many it
/// ends. Each round pins the parameters that the round before showed not to be copies. A chain of
/// loop variables that hand values on needs one round for each link.
const MAX_ROUNDS: usize = 40;

/// Walks over the blocks in one round. A second walk is needed where only back edges lead to code.
const MAX_WALKS: usize = 8;

/// How often the graph is narrowed to the edges that runs may take.
const MAX_NARROWINGS: usize = 3;

/// The relation between two versions, and the certificate made of it.
#[derive(Debug)]
pub struct Certifier<'a> {
    common: &'a Correspondence<'a>,
    versions: [Numbering<'a>; 2],
    runs: [Runs; 2],
    table: Table,
    certificate: Certificate,
    rounds: usize,
    unshared: usize,
}

impl<'a> Certifier<'a> {
    /// Finds the relation between the two versions of a pair. Cost: near linear in their size,
    /// times the rounds: two to four in most functions, at most 80.
    pub fn new(common: &'a Correspondence<'a>) -> Certifier<'a> {
        let versions = Side::BOTH.map(|side| Numbering::new(common, side));
        let mut search = Search {
            common,
            versions,
            table: Table::default(),
            leaves: Leaves::default(),
            unshared: 0,
        };
        let (runs, rounds) = search.run();
        let Search { versions, table, unshared, .. } = search;
        let certificate = Certificate {
            versions: [
                VersionKey::of(common.versions.before),
                VersionKey::of(common.versions.after),
            ],
            terms: Vec::new(),
            sides: [claims(&versions[0]), claims(&versions[1])],
            anchors: common.anchors.ones().map(|i| Inst::from_u32(i as u32)).collect(),
            passed: common.passed.iter().copied().collect(),
        };
        let mut certifier =
            Certifier { common, versions, runs, table, certificate, rounds, unshared };
        // The table numbers terms, the certificate owns them: they move back and forth, so that
        // facts asked for later add terms to the same list.
        std::mem::swap(&mut certifier.certificate.terms, &mut certifier.table.terms);
        certifier
    }

    /// The facts behind the entries of a mapping of this pair; adds terms to the certificate. Facts
    /// of a mapping between other versions name no terms. Cost: linear in the steps of the entries.
    pub fn facts(&mut self, heading: Side, mapping: &Mapping) -> MappingFacts {
        std::mem::swap(&mut self.certificate.terms, &mut self.table.terms);
        let facts =
            Explainer::new(self.common, &mut self.versions, &self.runs, &mut self.table, heading)
                .explain(mapping);
        std::mem::swap(&mut self.certificate.terms, &mut self.table.terms);
        facts
    }

    /// The certificate, with the terms of all facts asked for so far.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The certificate, with the terms of all facts asked for.
    pub fn into_certificate(self) -> Certificate {
        self.certificate
    }

    /// The effort of the search: the rounds of numbering, and the number of names that stand for
    /// different leaves in the two versions.
    pub fn effort(&self) -> (usize, usize) {
        (self.rounds, self.unshared)
    }
}

fn claims(version: &Numbering<'_>) -> VersionTerms {
    VersionTerms {
        values: version.terms.iter().collect(),
        memory: version.at_start.iter().collect(),
        writes: version.writes.iter().collect(),
    }
}

/// The search for the relation.
struct Search<'a> {
    common: &'a Correspondence<'a>,
    versions: [Numbering<'a>; 2],
    table: Table,
    leaves: Leaves,
    unshared: usize,
}

impl Search<'_> {
    /// Numbers both versions until everything holds together. Returns the paths of the versions and
    /// the number of rounds.
    ///
    /// Three loops are nested, each restarted by the ones behind it: assumptions about copies and
    /// reads, the graph of live edges, and shared leaves.
    fn run(&mut self) -> ([Runs; 2], usize) {
        let mut narrowings = 0;
        let mut rounds = 0;
        loop {
            rounds += 1;
            // From here on parameters are leaves of their own and every edge is live. Only names,
            // hidden writes and shared leaves can cause further rounds.
            if rounds == MAX_ROUNDS {
                self.versions.iter_mut().for_each(Numbering::make_plain);
            }
            // Without shared leaves there is nothing to disagree on either. This round is the last
            // in any case: the certificate proves little, but the search ends.
            if rounds == 2 * MAX_ROUNDS {
                self.leaves.unshare_all();
            }
            let is_complete = self.number();
            // Every revision runs in every round (no `||`, which would stop at the first): each
            // pins all that it can, and a round less is a numbering of both versions less.
            let mut changed = false;
            for version in &mut self.versions {
                changed |= version.revise(&self.table);
            }
            let [a, b] = &mut self.versions;
            changed |= a.pin_alike(b);
            changed |= self.revise_merges();
            if self.common.has_lone_writes {
                let [a, b] = &mut self.versions;
                changed |= a.note_hidden(&self.table) | b.note_hidden(&self.table);
            }
            let is_last = rounds >= 2 * MAX_ROUNDS;
            if (changed || !is_complete) && !is_last {
                continue;
            }
            // Only when no assumption changed: an edge found dead under a wrong assumption may be
            // live in the next round.
            if narrowings < MAX_NARROWINGS && !is_last {
                narrowings += 1;
                let [a, b] = &mut self.versions;
                if a.narrow() | b.narrow() {
                    // With fewer edges more dominates, and assumptions that dead edges spoiled may
                    // hold. They are spoiled in the other version too, through shared leaves, so
                    // both start over (`what_dead_edges_of_one_version_spoil_is_tried_again`).
                    a.unpin();
                    b.unpin();
                    self.table.merges.forgive();
                    continue;
                }
            }
            // Last, since paths read the final classes and live edges. A leaf made two changes the
            // numbers of everything above it, hence another round.
            let runs = [0, 1].map(|side| Runs::new(&self.versions[side], self.common));
            if self.unshare(&runs) && !is_last {
                continue;
            }
            return (runs, rounds);
        }
    }

    /// Numbers both versions once. Returns whether the walks reached all blocks.
    fn number(&mut self) -> bool {
        self.table.clear();
        self.leaves.clear();
        let mut is_complete = true;
        for version in &mut self.versions {
            let mut walks =
                (0..MAX_WALKS).map(|n| version.walk(&mut self.table, &mut self.leaves, n == 0));
            is_complete &= walks.any(|is_complete| is_complete);
        }
        is_complete
    }

    /// Checks in both versions that reads give the same on all edges, as assumed. Returns whether
    /// some do not.
    fn revise_merges(&mut self) -> bool {
        let Search { versions, table, leaves, .. } = self;
        let mut changed = false;
        let mut asked = [0; 2];
        // A check may read through further blocks and so assume more, in either version's list. The
        // loop ends when both versions have checked every assumption.
        while asked.iter().any(|n| !table.merges.are_asked(*n)) {
            for (version, next) in versions.iter_mut().zip(&mut asked) {
                let (is_wrong, count) = version.revise_merges(table, leaves, *next);
                (changed, *next) = (changed | is_wrong, count);
            }
        }
        changed
    }

    /// Makes two leaves of each shared leaf on which the versions disagree. Returns whether there
    /// are any.
    fn unshare(&mut self, runs: &[Runs; 2]) -> bool {
        let Search { common, versions, table, leaves, unshared } = self;
        let bound = common.anchors.len();
        let names =
            Product { table, versions, runs, leaves, has_lone_writes: common.has_lone_writes }
                .disagreeing(bound);
        *unshared += names.len();
        names.iter().for_each(|name| leaves.unshare(*name));
        !names.is_empty()
    }
}
