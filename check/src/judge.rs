//! Judging in words: the results of `accept`, with a verdict for each failed check.

use crate::accept::checks::{Check, Finding, Options};
use crate::accept::paths::Bindings;
use crate::accept::product::CrossProduct;
use crate::accept::unproved::UnprovedAnchor;
use crate::accept::{Checked, Relation, Sealed, Unrelated};
use crate::verdict::Verdict;
use crate::verdict::refute::Witnesses;
use ir::{Function, Inst, Module, Point};
use std::collections::BTreeMap;
use transition::certificate::{Certificate, MappingFacts, TermId};
use transition::mapping::{Entry, Mapping};
use transition::{Pair, Side};

/// Proves that two versions correspond, from their certificate: steps 1 to 4 of the proof.
///
/// Cost: near linear in the versions and the certificate. Where many instructions that may trap are
/// no anchors, add their number times the number of anchors.
///
/// # Errors
/// The verdict on the pair, if the certificate does not prove the pair. The same verdict then
/// applies to every entry of the pair.
pub fn relate<'a, 'c>(
    module: &Module,
    versions: Pair<&'a Function>,
    certificate: &'c Certificate,
    options: Options,
) -> Result<Relation<'a, 'c>, Verdict> {
    Relation::prove(module, versions, certificate, options).map_err(|failed| unrelated(&failed))
}

/// The verdict on a pair that is not proved.
fn unrelated(failed: &Unrelated<'_, '_>) -> Verdict {
    match &failed.classes {
        Some((product, classes)) => {
            Witnesses::default().verdict(product, failed.finding, Some(*classes))
        }
        None => Verdict::of(failed.finding),
    }
}

impl Witnesses {
    /// The verdict on versions that fail a check of the product.
    ///
    /// If the check compared two classes and some contents of the leaves tell them apart, it is
    /// refuted.
    fn verdict(
        &mut self,
        product: &CrossProduct<'_, '_>,
        finding: Finding,
        classes: Option<Pair<TermId>>,
    ) -> Verdict {
        match classes.and_then(|classes| self.tell_apart(product, classes)) {
            None => Verdict::of(finding),
            witness => Verdict::Refuted(finding, witness),
        }
    }
}

impl Relation<'_, '_> {
    /// The anchors at which the versions are not proved alike, in the order in which the proof met
    /// them. An entry does not hold if a run through its source point may execute one of them. Its
    /// verdict then names the check of this anchor.
    pub fn unproved(&self) -> &[UnprovedAnchor] {
        self.product.unproved.all()
    }

    /// Whether no run of a version reaches a point, because it lies in code that constant
    /// conditions of one of the versions exclude. `false` for a point that the version lacks. Cost:
    /// linear in the blocks on the way to the next anchor.
    ///
    /// A condition that is constant in one version alone shows in the proof of the pair. It follows
    /// each edge that a run may take from an anchor, in both versions, to the next anchor. So a run
    /// executes no anchor that the proof has not met, and reaches no point from which the only way
    /// leads to such an anchor. An unproved anchor ends this argument: the proof stops at it
    /// (`a_point_that_the_other_version_excludes_is_unreachable`).
    pub fn is_unreachable(&self, side: Side, point: Point) -> bool {
        let version = &self.product.versions[side];
        let inst = point.inst();
        if !version.f.has_inst(inst) {
            return false;
        }
        let block = version.f.inst_block(inst);
        !version.live().has(block) || self.leads_to_nothing_met(side, inst)
    }

    fn leads_to_nothing_met(&self, side: Side, inst: Inst) -> bool {
        let product = &self.product;
        if !product.unproved.all().is_empty() {
            return false;
        }
        let path = product.paths[side].from(&product.versions[side], inst);
        path.is_some_and(|path| !product.is_reached.contains(path.anchor.as_u32() as usize))
    }

    /// Judges all entries of one mapping between the two versions; returns one verdict per entry,
    /// in the order of the mapping.
    ///
    /// `side` is the side that the mapping leaves from. `armed` lists all mappings from the target
    /// version. An entry has to provide the values that their entries require, so that the run can
    /// take another transition later (live+).
    ///
    /// Cost: near linear in the entries, the versions, and the number of live values at source and
    /// target points.
    pub fn judge(
        &self,
        side: Side,
        mapping: &Mapping,
        facts: &MappingFacts,
        armed: &[&Mapping],
    ) -> Vec<Verdict> {
        let results = self.hold(side, mapping, facts, armed);
        let mut words = Words::new(self, side);
        let entries = mapping.shared_entries().zip(results);
        let judged = entries.map(|((point, entry), result)| match result {
            Ok(()) => Verdict::Holds,
            Err(finding) => words.verdict(point, &entry.get(), finding),
        });
        judged.collect()
    }
}

/// Finds the verdicts for failed entries of one mapping. Tables are kept between entries.
struct Words<'r, 'a, 'c> {
    relation: &'r Relation<'a, 'c>,
    side: Side,
    witnesses: Witnesses,
    bindings: Bindings,
    /// The verdicts of unproved anchors, by their findings. Each serves many entries.
    unproved: BTreeMap<Finding, Verdict>,
}

impl<'r, 'a, 'c> Words<'r, 'a, 'c> {
    fn new(relation: &'r Relation<'a, 'c>, side: Side) -> Words<'r, 'a, 'c> {
        let bindings = Bindings::new(relation.product.terms.len());
        let (witnesses, unproved) = (Witnesses::default(), BTreeMap::new());
        Words { relation, side, witnesses, bindings, unproved }
    }

    /// The verdict for an entry that fails a check.
    fn verdict(&mut self, point: Point, entry: &Entry, finding: Finding) -> Verdict {
        let product = &self.relation.product;
        if let Some(unproved) = product.unproved.with(finding) {
            let verdict = || self.witnesses.verdict(product, finding, unproved.classes);
            return *self.unproved.entry(finding).or_insert_with(verdict);
        }
        // Of inner activations the relation says nothing, so nothing here shows them wrong
        // (`an_entry_with_inner_activations_is_not_refuted`).
        if !entry.inner.is_empty() {
            return Verdict::Undecided(finding);
        }
        let verdict = Verdict::of(finding);
        // A limit that was exceeded says nothing about the entry.
        if verdict.is_refuted() || finding.check == Check::Size {
            return verdict;
        }
        let witness = self.witnesses.refute(product, self.side, point, entry, &mut self.bindings);
        witness.map_or(verdict, |w| Verdict::Refuted(finding, Some(w)))
    }
}

/// A mapping after it was judged.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The entries that hold.
    pub mapping: Checked<Mapping>,
    /// The facts behind them, in their order.
    pub facts: MappingFacts,
    /// The source points of the other entries, ascending, each with its verdict.
    pub rejected: Vec<(Point, Verdict)>,
}

/// Judges the mappings between two versions in both directions, each armed while the opposite
/// mapping is used, and keeps the entries that hold. If the versions were not proved to correspond,
/// that verdict applies to every entry, and nothing is kept. Cost: one [`Relation::judge`].
pub fn accept(
    relation: &Result<Relation<'_, '_>, Verdict>,
    mappings: Pair<Mapping>,
    facts: Pair<MappingFacts>,
) -> Pair<Accepted> {
    match relation {
        Ok(relation) => {
            let Pair { before, after } = relation.seal_pair(mappings, facts);
            Pair {
                before: worded(relation, Side::Before, before),
                after: worded(relation, Side::After, after),
            }
        }
        Err(verdict) => mappings.map(|mapping| nothing(&mapping, *verdict)),
    }
}

/// Judges a mapping that leaves from `side`, and keeps the entries that hold. `armed` are all
/// mappings that may be armed in its target version. [`accept`] does the same for two mappings that
/// arm each other. Cost: one [`Relation::judge`].
pub fn accept_armed(
    relation: &Result<Relation<'_, '_>, Verdict>,
    side: Side,
    mapping: Mapping,
    facts: MappingFacts,
    armed: &[&Mapping],
) -> Accepted {
    match relation {
        Ok(relation) => worded(relation, side, relation.seal(side, mapping, facts, armed)),
        Err(verdict) => nothing(&mapping, *verdict),
    }
}

/// A sealed mapping, with verdicts on the entries that were dropped from it.
fn worded(relation: &Relation<'_, '_>, side: Side, sealed: Sealed) -> Accepted {
    let Sealed { mapping, facts, dropped } = sealed;
    let mut words = Words::new(relation, side);
    let verdict = |(point, entry, finding): (Point, Entry, Finding)| {
        (point, words.verdict(point, &entry, finding))
    };
    let rejected = dropped.into_iter().map(verdict).collect();
    Accepted { mapping, facts, rejected }
}

/// The result of judging a mapping without entries that hold.
fn nothing(mapping: &Mapping, verdict: Verdict) -> Accepted {
    Accepted {
        mapping: Checked::nothing(mapping.source(), mapping.target()),
        facts: MappingFacts::new(),
        rejected: mapping.points().map(|point| (point, verdict)).collect(),
    }
}
