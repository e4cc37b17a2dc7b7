//! The checker: judges every entry of a mapping by its certificate, and trusts nobody.
//!
//! It is given two versions of a function, a certificate, mappings and the facts behind their entries; it
//! does not see the action log, the passes or the search that made the mappings, and shares no analysis with
//! them: graph, dominators, liveness and lines are its own. What it trusts: the verifier of the IR
//! ([`ir::verifier`]), the meaning of operations ([`ir::eval`]), the rules ([`ir::rules`]), which
//! solvers prove, and itself.
//!
//! The steps, each a file: the *term table* is what it says (`terms`); each *version* is what its terms say
//! (`version`, `graph`); both run side by side and leaves agree (`lines`, `product`), also where something may
//! trap (`traps`); then each *entry* starts and lands at corresponding points, computes what the target
//! version has (`entry`) and provides what is live there (`live`). What fails is tried on chosen
//! contents of the leaves (`witness`): [`Verdict::Refuted`] if it computes something else,
//! [`Verdict::Undecided`] if nothing is shown either way. Only [`Verdict::Holds`] is a yes.
//!
//! Total: no recursion, no panic whatever it is given, and each step is linear but where it says otherwise.

mod entry;
mod graph;
mod lines;
mod live;
mod product;
mod terms;
mod traps;
mod verdict;
mod version;
mod witness;

pub use verdict::{Check, Finding, Options, Place, Verdict, Witness};

use crate::state_oracle::Direction;
use entry::{Executed, Judge, executed};
use fixedbitset::FixedBitSet;
use ir::certificate::{Certificate, EntryFacts, MappingFacts};
use ir::mapping::{Entry, Mapping, VersionKey};
use ir::verifier::verify_function;
use ir::{Block, Function, Inst, Module, Point, Value};
use live::{Extra, Liveness};
use product::{Failure, Product};
use std::collections::BTreeMap;
use std::rc::Rc;
use terms::Terms;
use traps::Traps;
use version::Version;
use witness::Witnesses;

/// Two versions proved to correspond: entries between them can be judged.
pub struct Relation<'a, 'c> {
    product: Product<'a, 'c>,
    /// By version: its sites.
    traps: [Traps; 2],
    executed: [Executed; 2],
    options: Options,
}

/// Proves two versions to correspond, as their certificate says. Cost: near linear in versions and
/// certificate; where many instructions that may trap are no anchors, their number times the anchors.
///
/// # Errors
/// The verdict on the pair when it is not proved. It is the verdict on every entry.
pub fn relate<'a, 'c>(
    module: &Module,
    versions: [&'a Function; 2],
    certificate: &'c Certificate,
    options: Options,
) -> Result<Relation<'a, 'c>, Verdict> {
    let keys = versions.map(VersionKey::of);
    let belongs = keys == certificate.versions;
    options.require(Check::Versions, belongs, Place::Whole).map_err(judge_finding)?;
    let sound = versions.iter().all(|f| verify_function(module, f).is_empty());
    options.require(Check::Ssa, sound, Place::Whole).map_err(judge_finding)?;
    if !sound {
        return Err(Verdict::Refuted(Finding { check: Check::Ssa, at: Place::Whole }, None));
    }
    let bound = versions.iter().map(|f| f.inst_bound()).max().unwrap_or(0);
    let mut anchors = FixedBitSet::with_capacity(bound);
    for anchor in &certificate.anchors {
        let known = (anchor.as_u32() as usize) < bound;
        options.require(Check::AnchorSame, known, Place::Inst(*anchor)).map_err(judge_finding)?;
        if known {
            anchors.insert(anchor.as_u32() as usize);
        }
    }
    let terms = Rc::new(Terms::check(&certificate.terms, options).map_err(judge_finding)?);
    let version = |side: usize| Version::check(versions[side], &certificate.sides[side], &terms, &anchors);
    let versions = [version(0).map_err(judge_finding)?, version(1).map_err(judge_finding)?];
    let mut product = Product::new(terms, versions, &anchors);
    if let Err(failure) = product.prove(&anchors) {
        return Err(judge_failure(&product, failure));
    }
    let traps = |side: usize| Traps::check(&product, side, &anchors).map_err(judge_finding);
    let traps = [traps(0)?, traps(1)?];
    let executed = [executed(&product.versions[0]), executed(&product.versions[1])];
    Ok(Relation { product, traps, executed, options })
}

impl<'a> Relation<'a, '_> {
    /// Judges the entries of a mapping between the two versions, in its order. `armed` are the mappings that
    /// leave the version it leads to: what their entries read has to be provided too.
    ///
    /// Cost: near linear in the entries, in the versions, and in what is live where entries start and land.
    pub fn judge(
        &self,
        direction: Direction,
        mapping: &Mapping,
        facts: &MappingFacts,
        armed: &[&Mapping],
    ) -> Vec<Verdict> {
        let source = direction.side();
        let keys = [0, 1].map(|side| VersionKey::of(self.product.versions[side].f));
        let belongs = mapping.source() == keys[source]
            && mapping.target() == keys[1 - source]
            && armed.iter().all(|m| m.source() == keys[1 - source]);
        if let Err(finding) = self.options.require(Check::Versions, belongs, Place::Whole) {
            return vec![judge_finding(finding); mapping.len()];
        }
        let mut verdicts = self.judge_entries(source, mapping, facts);
        let kept = self.judge_kept(source, mapping, &mut verdicts);
        let provided = self.judge_provided(1 - source, mapping, armed, &mut verdicts);
        if let Err(finding) = kept.and(provided) {
            verdicts.iter_mut().filter(|v| v.holds()).for_each(|v| *v = judge_finding(finding));
        }
        verdicts
    }

    fn judge_entries(&self, source: usize, mapping: &Mapping, facts: &MappingFacts) -> Vec<Verdict> {
        let traps = &self.traps[1 - source];
        let mut judge = Judge::new(&self.product, traps, &self.executed, source);
        let mut witnesses = Witnesses::default();
        let none = EntryFacts::default();
        let judged = mapping.entries().enumerate().map(|(index, (point, entry))| {
            match judge.check(point, entry, facts.get(index).unwrap_or(&none)) {
                Ok(()) => Verdict::Holds,
                Err(finding) => match judge_finding(finding) {
                    Verdict::Undecided(_) => {
                        let witness = witnesses.refute(&self.product, source, point, entry, &mut judge.bindings);
                        witness.map_or(Verdict::Undecided(finding), |w| Verdict::Refuted(finding, Some(w)))
                    }
                    verdict => verdict,
                },
            }
        });
        judged.collect()
    }

    /// What entries list as kept is what they read that is not live where they start.
    fn judge_kept(&self, source: usize, mapping: &Mapping, verdicts: &mut [Verdict]) -> Result<(), Finding> {
        let version = &self.product.versions[source];
        let extra = Extra::new();
        let liveness = Liveness::new(version.f, &version.full, &extra, &self.options)?;
        let points = grouped(version.f, mapping, verdicts, |point, _| point.inst());
        for (block, entries) in points {
            liveness.walk(block, &extra, |inst, live| {
                for &(index, entry) in entries.get(&inst).into_iter().flatten() {
                    let kept = entry.requires.iter().filter(|v| !live.contains(v.as_u32() as usize));
                    if !kept.eq(entry.kept.iter()) {
                        self.fail(Check::Kept, Place::Inst(inst), &mut verdicts[index]);
                    }
                }
            });
        }
        Ok(())
    }

    /// Entries provide what is live+ where they land.
    fn judge_provided(
        &self,
        target: usize,
        mapping: &Mapping,
        armed: &[&Mapping],
        verdicts: &mut [Verdict],
    ) -> Result<(), Finding> {
        let version = &self.product.versions[target];
        let extra = armed_uses(version.f, armed);
        let liveness = Liveness::new(version.f, &version.full, &extra, &self.options)?;
        let landings = grouped(version.f, mapping, verdicts, |_, entry| entry.target.inst());
        for (block, entries) in landings {
            liveness.walk(block, &extra, |inst, live| {
                for &(index, entry) in entries.get(&inst).into_iter().flatten() {
                    let missing = live.ones().map(|v| Value::from_u32(v as u32)).find(|v| !entry.provides_value(*v));
                    if let Some(missing) = missing {
                        self.fail(Check::LivePlus, Place::Value(missing), &mut verdicts[index]);
                    }
                }
            });
        }
        Ok(())
    }

    fn fail(&self, check: Check, at: Place, verdict: &mut Verdict) {
        if let Err(finding) = self.options.require(check, false, at)
            && verdict.holds()
        {
            *verdict = judge_finding(finding);
        }
    }
}

/// What the entries of mappings read, as uses where they start.
fn armed_uses(f: &Function, armed: &[&Mapping]) -> Extra {
    let mut extra = Extra::new();
    for (point, entry) in armed.iter().flat_map(|m| m.entries()).filter(|(p, _)| f.has_inst(p.inst())) {
        let uses = extra.entry(point.inst()).or_default();
        uses.extend(entry.requires.iter().filter(|v| f.has_value(**v)));
    }
    extra
}

/// By block and instruction: entries, with their places in the mapping.
type Grouped<'m> = BTreeMap<Block, BTreeMap<Inst, Vec<(usize, &'m Entry)>>>;

/// The entries that hold so far, by where they start or land.
fn grouped<'m>(
    f: &Function,
    mapping: &'m Mapping,
    verdicts: &[Verdict],
    place: impl Fn(Point, &Entry) -> Inst,
) -> Grouped<'m> {
    let mut grouped = Grouped::new();
    for ((index, (point, entry)), verdict) in mapping.entries().enumerate().zip(verdicts) {
        let inst = place(point, entry);
        if verdict.holds() && f.has_inst(inst) {
            let block = grouped.entry(f.inst_block(inst)).or_default();
            block.entry(inst).or_default().push((index, entry));
        }
    }
    grouped
}

/// What to say of a product that fails: refuted if contents of leaves tell apart what should be equal.
fn judge_failure(product: &Product<'_, '_>, failure: Failure) -> Verdict {
    let witness = failure.classes.and_then(|classes| Witnesses::default().tell_apart(product, classes));
    match witness {
        Some(_) => Verdict::Refuted(failure.finding, witness),
        None => judge_finding(failure.finding),
    }
}

/// What to say of a check that failed, when no contents of leaves show anything.
fn judge_finding(finding: Finding) -> Verdict {
    match finding.check {
        Check::Versions
        | Check::Ssa
        | Check::SourcePoint
        | Check::TargetPoint
        | Check::TrapPassed
        | Check::Requires
        | Check::Kept
        | Check::StepOrder
        | Check::StepShape
        | Check::AssignShape
        | Check::LivePlus => Verdict::Refuted(finding, None),
        _ => Verdict::Undecided(finding),
    }
}
