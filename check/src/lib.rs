//! The checker: judges every entry of a mapping by its certificate, and trusts nobody.
//!
//! It is given two versions of a function, a certificate, mappings and the facts behind their
//! entries; it does not see the action log, the passes or the search that made the mappings, and
//! shares no analysis with them: graph, dominators, liveness and lines are its own. What it trusts:
//! the verifier of the IR ([`ir::verifier`]), the meaning of operations ([`ir::eval`]), the rules
//! ([`ir::rules`]), which solvers prove, and itself.
//!
//! The steps, each a file: the *term table* is what it says (`terms`); each *version* is what its
//! terms say (`version`, `graph`); both run side by side and leaves agree (`lines`, `product`),
//! also where something may trap (`traps`); then each *entry* starts and lands at corresponding
//! points, computes what the target version has (`entry`) and provides what is live there (`live`).
//! What fails is tried on chosen contents of the leaves (`refute`): [`Verdict::Refuted`] if it
//! computes something else, [`Verdict::Undecided`] if nothing is shown either way. Only
//! [`Verdict::Holds`] is a yes.
//!
//! Total: no recursion but of few steps, no panic whatever it is given, and each step is linear but
//! where it says otherwise.

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

/// Two versions proved to correspond: entries between them can be judged.
pub struct Relation<'a, 'c> {
    product: Product<'a, 'c>,
    /// By version: its sites.
    traps: [Traps; 2],
    options: Options,
}

/// Proves two versions to correspond, as their certificate says. Cost: near linear in versions and
/// certificate; where many instructions that may trap are no anchors, their number times the
/// anchors.
///
/// # Errors
/// The verdict on the pair when it is not proved. It is the verdict on every entry.
pub fn relate<'a, 'c>(
    module: &Module,
    versions: [&'a Function; 2],
    certificate: &'c Certificate,
    options: Options,
) -> Result<Relation<'a, 'c>, Verdict> {
    let belongs = versions.map(VersionKey::of) == certificate.versions;
    options.require(Check::Versions, belongs, Place::Whole)?;
    check_form(module, versions, options)?;
    let bound = versions.map(Function::inst_bound);
    let mut anchors = FixedBitSet::with_capacity(bound[0].min(bound[1]));
    for anchor in &certificate.anchors {
        let known = (anchor.as_u32() as usize) < anchors.len();
        options.require(Check::AnchorSame, known, Place::Inst(*anchor))?;
        known.then(|| anchors.insert(anchor.as_u32() as usize));
    }
    let terms = Rc::new(Terms::check(&certificate.terms, options)?);
    let version =
        |side: usize| Version::check(versions[side], &certificate.sides[side], &terms, &anchors);
    let versions = [version(0)?, version(1)?];
    let mut product = Product::new(terms, versions, &anchors, &certificate.passed);
    product.prove(&anchors).map_err(|failure| judge_failure(&product, failure))?;
    let traps = [Traps::check(&product, 0, &anchors)?, Traps::check(&product, 1, &anchors)?];
    Ok(Relation { product, traps, options })
}

/// Both versions are well-formed. Everything else indexes without looking, so that only dominance
/// can be left out.
fn check_form(module: &Module, versions: [&Function; 2], options: Options) -> Result<(), Finding> {
    let mut findings = versions.iter().flat_map(|f| verify_function(module, f));
    let failed = findings.any(|f| f.rule() != Rule::SsaDom1 || options.without != Some(Check::Ssa));
    if failed { Err(Finding { check: Check::Ssa, at: Place::Whole }) } else { Ok(()) }
}

impl<'a> Relation<'a, '_> {
    /// Judges the entries of a mapping between the two versions, in its order. `armed` are the
    /// mappings that leave the version it leads to: what their entries read has to be provided too.
    ///
    /// Cost: near linear in the entries, in the versions, and in what is live where entries start
    /// and land.
    pub fn judge(
        &self,
        side: Side,
        mapping: &Mapping,
        facts: &MappingFacts,
        armed: &[&Mapping],
    ) -> Vec<Verdict> {
        let source = side as usize;
        let keys = [0, 1].map(|side| VersionKey::of(self.product.versions[side].f));
        let belongs = mapping.source() == keys[source]
            && mapping.target() == keys[1 - source]
            && armed.iter().all(|m| m.source() == keys[1 - source]);
        if let Err(finding) = self.options.require(Check::Versions, belongs, Place::Whole) {
            return vec![Verdict::of(finding); mapping.len()];
        }
        let mut verdicts = self.judge_entries(source, mapping, facts);
        // What is listed as kept is what is read that is not live where an entry starts.
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
        // What is live+ where it lands is provided.
        let provided = |_: Inst, entry: &Entry, live: &BTreeSet<Value>| {
            live.iter()
                .find(|v| !entry.provides_value(**v))
                .map(|v| (Check::LivePlus, Place::Value(*v)))
        };
        let extra = armed_uses(self.product.versions[1 - source].f, armed);
        let landing = |_, entry: &Entry| entry.target.inst();
        let provided =
            self.judge_live((1 - source, true), &extra, mapping, &mut verdicts, landing, provided);
        if let Err(finding) = kept.and(provided) {
            verdicts.iter_mut().filter(|v| v.holds()).for_each(|v| *v = Verdict::of(finding));
        }
        verdicts
    }

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
            if verdict.is_refuted() || self.product.passes_branches() {
                return verdict;
            }
            let witness =
                witnesses.refute(&self.product, source, point, entry, &mut judge.bindings);
            witness.map_or(verdict, |w| Verdict::Refuted(finding, Some(w)))
        });
        judged.collect()
    }

    /// Where lines go on past branches, their ends are what the certificate makes of them, and it
    /// knows constants and what leaves hold on some ways alone: nothing is refuted for that.
    fn verdict(&self, finding: Finding) -> Verdict {
        let depends = matches!(finding.check, Check::TargetPoint | Check::LivePlus);
        if depends && self.product.passes_branches() {
            Verdict::Undecided(finding)
        } else {
            Verdict::of(finding)
        }
    }

    /// Asks of every entry that holds so far what fails, given what is live at its place in a
    /// version: in its text, or in its runs.
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
        // By block and instruction: entries, with their places in the mapping.
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

/// What the entries of mappings read, as uses where they start.
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

/// What to say of a product that fails: refuted if contents of leaves tell apart what should be
/// equal. Where branches are passed it is known on some ways alone what leaves hold.
fn judge_failure(product: &Product<'_, '_>, failure: Failure) -> Verdict {
    let classes = failure.classes.filter(|_| !product.passes_branches());
    let witness = classes.and_then(|classes| Witnesses::default().tell_apart(product, classes));
    match witness {
        Some(_) => Verdict::Refuted(failure.finding, witness),
        None => Verdict::of(failure.finding),
    }
}
