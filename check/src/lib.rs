//! The checker: judges every entry of a mapping by its certificate.
//!
//! The checker gets two versions of a function, a certificate, mappings, and the facts for their
//! entries. For each entry it proves the claim of `transition::mapping`: if the source version reaches the
//! source point, then the target version, started on the same input, reaches the target point with
//! the same memory and the same effects so far, and the compensation code gives every provided
//! value the contents it has there.
//!
//! The checker trusts four things: the verifier of the IR ([`ir::verifier`]), the meaning of
//! operations ([`ir::eval`], [`ir::place`]), the rewrite rules ([`ir::rules`]), which solvers
//! prove, and its own code. It sees neither the action log, nor the passes, nor the search that
//! made the mappings. It shares no analysis with them: graph, dominators, liveness and paths are
//! its own. A certificate may be forged. Every claim in it is either checked here or never used.
//!
//! The proof goes in five steps, and each rests on the ones before it:
//!
//! 1. *Terms* (`terms`, `memory`). Every term belongs to its class: all terms of one class are
//!    equal for all contents of the leaves.
//! 2. *Versions* (`version`, `graph`). In each version alone, every value holds the contents that
//!    its term has, given the contents that this version last bound to each leaf.
//! 3. *Product* (`lines`, `product`). Both versions execute the same anchors in the same order.
//!    Before each anchor, a leaf that both versions have holds the same contents in both.
//! 4. *Traps* (`traps`). An instruction that may trap and is no anchor traps in one version only if
//!    the other version traps too, and no effect comes in between.
//! 5. *Entries* (`entry`, `live`). Source point and target point lie in corresponding gaps, the
//!    compensation code computes the contents of the target version, and it provides every value
//!    that is live+ at the target point.
//!
//! An entry that breaks a rule which needs no proof is refuted at once, such as one that requires
//! an unavailable value. Other failures of steps 3 and 5 are tried on chosen contents of the leaves
//! (`refute`). If the two computations then differ, the verdict is [`Verdict::Refuted`], else
//! [`Verdict::Undecided`]. Only entries with [`Verdict::Holds`] are proved.
//!
//! In the code, a *side* is 0 for the version before the log and 1 for the version after it. A
//! *path* is the way of a version from a point to the next anchor (`lines`). [`Check`] names every
//! check, and `verify/tests/checker/wrong` has, for each check, a forgery that this check alone
//! stops.
//!
//! The checker is total: it never panics, for any input of these types, and its recursion is only a
//! few levels deep. Every step is linear, except where its documentation gives another cost.

mod accept;
mod checked;
mod entry;
mod graph;
mod lines;
mod live;
mod memory;
mod product;
mod refute;
mod terms;
#[cfg(test)]
mod tests;
mod traps;
pub mod verdict;
mod version;

use crate::verdict::{Check, Finding, Options, Place, Verdict};
pub use accept::{Accepted, accept, compose};
pub use checked::{Checked, CheckedEntry, Unproved};
use entry::Judge;
use fixedbitset::FixedBitSet;
use ir::verifier::{Rule, verify_function};
use ir::{Block, Function, Inst, Module, Point, Value};
use live::{Extra, Liveness};
use product::{Failure, Product};
use refute::Witnesses;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use terms::Terms;
use transition::Side;
use transition::VersionKey;
use transition::certificate::{Certificate, EntryFacts, MappingFacts};
use transition::mapping::{Entry, Mapping};
use traps::Traps;
use version::Version;

/// A proof that two versions correspond. It is the basis for judging entries between them.
pub struct Relation<'a, 'c> {
    product: Product<'a, 'c>,
    /// Per version: the instructions that may trap and are no anchors, and where they are pending.
    traps: [Traps; 2],
    options: Options,
}

/// Proves that two versions correspond, from their certificate: steps 1 to 4 of the proof.
///
/// Cost: near linear in the versions and the certificate. Where many instructions that may trap are
/// no anchors, add their number times the number of anchors.
///
/// # Errors
/// The verdict on the pair, when the certificate does not prove it. The same verdict then goes for
/// every entry of the pair.
pub fn relate<'a, 'c>(
    module: &Module,
    versions: [&'a Function; 2],
    certificate: &'c Certificate,
    options: Options,
) -> Result<Relation<'a, 'c>, Verdict> {
    // A certificate of another pair must not be used: its ids would name other instructions here.
    let belongs = versions.map(VersionKey::of) == certificate.versions;
    options.require(Check::Versions, belongs, Place::Whole)?;
    check_form(module, versions, options)?;
    // An anchor is an instruction of both versions, so its id is below the smaller bound. `insert`
    // panics on an id beyond it, which a forged certificate may list.
    let bound = versions.map(Function::inst_bound);
    let mut anchors = FixedBitSet::with_capacity(bound[0].min(bound[1]));
    for anchor in &certificate.anchors {
        let known = (anchor.as_u32() as usize) < anchors.len();
        options.require(Check::AnchorSame, known, Place::Inst(*anchor))?;
        known.then(|| anchors.insert(anchor.as_u32() as usize));
    }
    // The order of these steps matters. The versions look up classes that the table has proved, and
    // the product relies on versions that satisfy their terms.
    let terms = Rc::new(Terms::check(&certificate.terms, options)?);
    let version =
        |side: usize| Version::check(versions[side], &certificate.sides[side], &terms, &anchors);
    let versions = [version(0)?, version(1)?];
    let mut product = Product::new(terms, versions, &anchors, &certificate.passed);
    product.prove(&anchors).map_err(|failure| judge_failure(&product, failure))?;
    // Each version has instructions of its own that may trap, so each is judged against the other
    // one.
    let traps = [Traps::check(&product, 0, &anchors)?, Traps::check(&product, 1, &anchors)?];
    Ok(Relation { product, traps, options })
}

/// Proves [`Check::Ssa`]: both versions are well-formed.
///
/// The rest of the checker indexes tables by ids from the versions without further tests. That is
/// why an experiment that leaves this check out ([`Options::without`]) can drop the rule on
/// dominance alone.
fn check_form(module: &Module, versions: [&Function; 2], options: Options) -> Result<(), Finding> {
    let mut findings = versions.iter().flat_map(|f| verify_function(module, f));
    let failed = findings.any(|f| f.rule() != Rule::SsaDom1 || options.without != Some(Check::Ssa));
    if failed { Err(Finding { check: Check::Ssa, at: Place::Whole }) } else { Ok(()) }
}

impl<'a> Relation<'a, '_> {
    /// Judges all entries of one mapping between the two versions; returns one verdict per entry,
    /// in the order of the mapping.
    ///
    /// `armed` lists all mappings from the target version. An entry has to provide the values that
    /// their entries require, so that the run can take another transition later (live+).
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
        let source = side as usize;
        let keys = [0, 1].map(|side| VersionKey::of(self.product.versions[side].f));
        // All entries are refuted if one of the mappings is about other versions: the values that
        // its entries require would be counted in the wrong function.
        let belongs = mapping.source() == keys[source]
            && mapping.target() == keys[1 - source]
            && armed.iter().all(|m| m.source() == keys[1 - source]);
        if let Err(finding) = self.options.require(Check::Versions, belongs, Place::Whole) {
            return vec![Verdict::of(finding); mapping.len()];
        }
        let mut verdicts = self.judge_entries(source, mapping, facts);
        // [`Check::Kept`]: the kept values are exactly the required values that are not live at the
        // source point. An engine that arms the entry keeps exactly the listed values alive, so a
        // missing one would be read after its register was reused. All edges count at the source
        // (`in_run` is false), because register allocation goes by the text of the version.
        let kept = |inst: Inst, entry: &Entry, live: &BTreeSet<Value>| {
            let kept = entry.requires.iter().filter(|v| !live.contains(v));
            (!kept.eq(entry.kept.iter())).then_some((Check::Kept, Place::Inst(inst)))
        };
        let kept = self.judge_live(
            (source, false),
            &Extra::new(),
            mapping,
            &mut verdicts,
            |point, _| point.inst(),
            kept,
        );
        // [`Check::LivePlus`]: the entry provides every value that is live+ at the target point.
        // Without this check, the target version could read a value that nobody assigned.
        let provided = |_: Inst, entry: &Entry, live: &BTreeSet<Value>| {
            live.iter()
                .find(|v| !entry.provides_value(**v))
                .map(|v| (Check::LivePlus, Place::Value(*v)))
        };
        let extra = armed_uses(self.product.versions[1 - source].f, armed);
        let landing = |_, entry: &Entry| entry.target.inst();
        let provided =
            self.judge_live((1 - source, true), &extra, mapping, &mut verdicts, landing, provided);
        // A version with too many live values has no liveness ([`Options::live_limit`]), so no
        // entry that held so far is proved.
        if let Err(finding) = kept.and(provided) {
            verdicts.iter_mut().filter(|v| v.holds()).for_each(|v| *v = Verdict::of(finding));
        }
        verdicts
    }

    /// Judges everything about the entries that needs no liveness: `entry`, then `refute` for the
    /// entries that are not proved.
    fn judge_entries(
        &self,
        source: usize,
        mapping: &Mapping,
        facts: &MappingFacts,
    ) -> Vec<Verdict> {
        let traps = &self.traps[1 - source];
        let mut judge = Judge::new(&self.product, traps, source);
        let mut witnesses = Witnesses::default();
        let none = EntryFacts::default();
        let judged = mapping.entries().enumerate().map(|(index, (point, entry))| {
            let Err(finding) = judge.check(point, entry, facts.get(index).unwrap_or(&none)) else {
                return Verdict::Holds;
            };
            let verdict = self.verdict(finding);
            // A witness is the contents of leaves at one point. After a passed branch, only some
            // of these contents occur: the condition is a constant there, and the terms do not say
            // so. A witness would then refute correct entries
            // (`no_value_is_refuted_for_what_a_passed_branch_has_decided`).
            if verdict.is_refuted() || self.product.passes_branches() {
                return verdict;
            }
            let witness =
                witnesses.refute(&self.product, source, point, entry, &mut judge.bindings);
            witness.map_or(verdict, |w| Verdict::Refuted(finding, Some(w)))
        });
        judged.collect()
    }

    /// The verdict for an entry whose check failed without a witness.
    ///
    /// Where paths continue past decided branches, the end of a path and the live values depend on
    /// constants that hold on some paths alone. The failure of a check on them then proves nothing,
    /// so the verdict is undecided instead of refuted
    /// (`no_landing_is_refuted_where_a_passed_branch_decides`).
    fn verdict(&self, finding: Finding) -> Verdict {
        let depends = matches!(finding.check, Check::TargetPoint | Check::LivePlus);
        if depends && self.product.passes_branches() {
            Verdict::Undecided(finding)
        } else {
            Verdict::of(finding)
        }
    }

    /// Applies the check `fails` to every entry that holds so far, with the set of values that are
    /// live at `place` of this entry in the version `side`. `in_run` tells whether edges that no
    /// run takes are left out. `extra` are additional uses, as in [`Liveness::new`].
    ///
    /// # Errors
    /// [`Check::Size`], when the version has too many live values.
    fn judge_live(
        &self,
        (side, in_run): (usize, bool),
        extra: &Extra,
        mapping: &Mapping,
        verdicts: &mut [Verdict],
        place: impl Fn(Point, &Entry) -> Inst,
        fails: impl Fn(Inst, &Entry, &BTreeSet<Value>) -> Option<(Check, Place)>,
    ) -> Result<(), Finding> {
        let version = &self.product.versions[side];
        let liveness = Liveness::new(version, in_run, extra, &self.options)?;
        // Entries by block and instruction, each with its index in the mapping. Each block is
        // walked once for all its entries: a walk per entry would be quadratic in long blocks.
        let mut grouped = BTreeMap::<Block, BTreeMap<Inst, Vec<_>>>::new();
        for (index, (point, entry)) in
            mapping.entries().enumerate().filter(|(index, _)| verdicts[*index].holds())
        {
            let inst = place(point, entry);
            if version.f.has_inst(inst) {
                let block = grouped.entry(version.f.inst_block(inst)).or_default();
                block.entry(inst).or_default().push((index, entry));
            }
        }
        for (block, entries) in grouped {
            liveness.walk(block, extra, |inst, live| {
                for &(index, entry) in entries.get(&inst).into_iter().flatten() {
                    let failed = fails(inst, entry, live);
                    // The verdict stays if the check passed, or if the options leave this check
                    // out.
                    let failed =
                        failed.and_then(|(check, at)| self.options.require(check, false, at).err());
                    verdicts[index] =
                        failed.map_or(verdicts[index], |finding| self.verdict(finding));
                }
            });
        }
        Ok(())
    }
}

/// The values that entries of these mappings require, by the instruction they start before: the
/// extra uses that turn liveness into live+.
fn armed_uses(f: &Function, armed: &[&Mapping]) -> Extra {
    let mut extra = Extra::new();
    for (point, entry) in
        armed.iter().flat_map(|m| m.entries()).filter(|(p, _)| f.has_inst(p.inst()))
    {
        let uses = extra.entry(point.inst()).or_default();
        uses.extend(entry.requires.iter().filter(|v| f.has_value(**v)));
    }
    extra
}

/// The verdict on a pair for which the product fails.
///
/// If the check compared two classes and some contents of the leaves tell them apart, the pair is
/// refuted. Where paths continue past decided branches, leaves hold only some contents on these
/// paths, and the witness would prove nothing
/// (`no_pair_is_refuted_for_what_a_passed_branch_has_decided`).
fn judge_failure(product: &Product<'_, '_>, failure: Failure) -> Verdict {
    let classes = failure.classes.filter(|_| !product.passes_branches());
    let witness = classes.and_then(|classes| Witnesses::default().tell_apart(product, classes));
    match witness {
        Some(_) => Verdict::Refuted(failure.finding, witness),
        None => Verdict::of(failure.finding),
    }
}
