//! Certificates: writing down why the entries of a mapping are right.
//!
//! [`ir::certificate`] says what a certificate is. Here it is found, by value numbering of both
//! versions in one table (`number`), from the versions themselves: the log is asked for hints
//! alone, for which instructions are anchors and which parameters were put where edges join. So a
//! certificate can be made for any mapping between two versions, whoever made the mapping; where
//! there is no reason to be found, there is no term, and the checker will not follow.
//!
//! Both versions start out sharing every leaf that has one name in both. Leaves that turn out to be
//! bound to different things are made two (`product`), and everything is numbered again, until
//! nothing changes.

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

use crate::pair::{Heading, VersionPair};
use explain::Explainer;
use ir::certificate::{Certificate, MappingFacts, VersionTerms};
use ir::mapping::{Mapping, VersionKey};
use leaves::Leaves;
use number::Numbering;
use product::Product;
use runs::Runs;
use table::Table;

/// Rounds of numbering before the search assumes nothing any more, which ends it. Each round pins
/// what the one before showed to be no copy; chains of loop variables that hand values on need one
/// for each link.
const MAX_ROUNDS: usize = 40;

/// Walks over the blocks in one round; more than one where edges back lead to code that no other
/// edge leads to.
const MAX_WALKS: usize = 8;

/// How often the graph is narrowed to the edges that may be taken.
const MAX_NARROWINGS: usize = 3;

/// Everything a certificate for two versions needs, computed once.
#[derive(Debug)]
pub struct Certifier<'a, 'v> {
    pair: &'a VersionPair<'v>,
    versions: [Numbering<'a>; 2],
    runs: [Runs; 2],
    table: Table,
    certificate: Certificate,
    rounds: usize,
    unshared: usize,
}

impl<'a, 'v> Certifier<'a, 'v> {
    /// Finds the relation between the two versions of a pair. Cost: near linear in their size,
    /// times the rounds (at most 40; two to four in most functions).
    pub fn new(pair: &'a VersionPair<'v>) -> Certifier<'a, 'v> {
        let [a, b] = [pair.sides[0].f, pair.sides[1].f];
        let versions = [Numbering::new(pair, 0), Numbering::new(pair, 1)];
        let mut search = Search {
            pair,
            versions,
            table: Table::default(),
            leaves: Leaves::default(),
            unshared: 0,
        };
        let (runs, rounds) = search.run();
        let Search { versions, table, unshared, .. } = search;
        let certificate = Certificate {
            versions: [VersionKey::of(a), VersionKey::of(b)],
            terms: Vec::new(),
            sides: [claims(&versions[0]), claims(&versions[1])],
            anchors: pair.bounding_anchors().collect(),
            passed: pair.passed_branches().collect(),
        };
        let mut certifier =
            Certifier { pair, versions, runs, table, certificate, rounds, unshared };
        std::mem::swap(&mut certifier.certificate.terms, &mut certifier.table.terms);
        certifier
    }

    /// The facts behind the entries of a mapping of this pair; adds terms to the certificate. The
    /// facts of a mapping between other versions name no terms. Cost: linear in the steps of the
    /// entries.
    pub fn facts(&mut self, heading: Heading, mapping: &Mapping) -> MappingFacts {
        std::mem::swap(&mut self.certificate.terms, &mut self.table.terms);
        let facts =
            Explainer::new(self.pair, &mut self.versions, &self.runs, &mut self.table, heading)
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

    /// How many times everything was numbered, and how many names stand for different leaves in the
    /// two versions: what the search took.
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

/// The relation being looked for.
struct Search<'a, 'v> {
    pair: &'a VersionPair<'v>,
    versions: [Numbering<'a>; 2],
    table: Table,
    leaves: Leaves,
    unshared: usize,
}

impl Search<'_, '_> {
    /// Numbers until everything holds together; returns the number of rounds.
    fn run(&mut self) -> ([Runs; 2], usize) {
        let mut narrowings = 0;
        let mut rounds = 0;
        loop {
            rounds += 1;
            if rounds == MAX_ROUNDS {
                self.versions.iter_mut().for_each(Numbering::make_plain);
            }
            if rounds == 2 * MAX_ROUNDS {
                self.leaves.unshare_all();
            }
            let is_complete = self.number();
            let mut changed = false;
            for version in &mut self.versions {
                changed |= version.revise(&self.table);
            }
            let [a, b] = &mut self.versions;
            changed |= a.pin_alike(b);
            changed |= self.revise_merges();
            if self.pair.has_lone_writes() {
                let [a, b] = &mut self.versions;
                changed |= a.note_hidden(&self.table) | b.note_hidden(&self.table);
            }
            let is_last = rounds >= 2 * MAX_ROUNDS;
            if (changed || !is_complete) && !is_last {
                continue;
            }
            if narrowings < MAX_NARROWINGS && !is_last {
                narrowings += 1;
                let [a, b] = &mut self.versions;
                if a.narrow() | b.narrow() {
                    // What one version found too early shows in the other
                    // (`what_dead_edges_of_one_version_spoil_is_tried_again`).
                    a.unpin();
                    b.unpin();
                    self.table.merges.forgive();
                    continue;
                }
            }
            let runs = [0, 1].map(|side| Runs::new(&self.versions[side], self.pair));
            if self.unshare(&runs) && !is_last {
                continue;
            }
            return (runs, rounds);
        }
    }

    /// Numbers both versions once. Whether all blocks were walked to.
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

    /// Asks both versions whether reads give the same on all edges, as was assumed. Whether some do
    /// not.
    fn revise_merges(&mut self) -> bool {
        let Search { versions, table, leaves, .. } = self;
        let mut changed = false;
        let mut asked = [0; 2];
        while asked.iter().any(|n| !table.merges.are_asked(*n)) {
            for (version, next) in versions.iter_mut().zip(&mut asked) {
                let (is_wrong, count) = version.revise_merges(table, leaves, *next);
                (changed, *next) = (changed | is_wrong, count);
            }
        }
        changed
    }

    /// Makes leaves two that do not agree. Whether there are any.
    fn unshare(&mut self, runs: &[Runs; 2]) -> bool {
        let Search { pair, versions, table, leaves, unshared } = self;
        let bound = pair.anchors.len();
        let names =
            Product { table, versions, runs, leaves, has_lone_writes: pair.has_lone_writes() }
                .disagreeing(bound);
        *unshared += names.len();
        names.iter().for_each(|name| leaves.unshare(*name));
        !names.is_empty()
    }
}
