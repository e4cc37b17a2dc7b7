//! Acceptance: everything that decides whether an entry holds, and nothing else.
//!
//! [`Relation::prove`] shows that two versions correspond (steps 1 to 4 of the proof, see the crate
//! documentation), [`Relation::hold`] judges entries (step 5). `seal`, `compose` and `stay` make
//! the sealed results. A reader has to trust these modules, `transition::compose`, and the parts of
//! `ir` that `tests/tidy/sizes.rs` lists. A failed check is a [`Finding`]. `crate::verdict` puts it
//! into words, and can make no entry hold.

mod accesses;
mod assume;
mod by_point;
mod calls;
pub(crate) mod checks;
mod compose;
mod continuation;
mod copy;
mod declared;
mod entry;
mod frames;
pub(crate) mod graph;
mod known;
mod live;
mod memory;
mod objects;
mod passage;
pub(crate) mod paths;
pub(crate) mod product;
mod ranges;
mod rest;
mod seal;
mod stay;
mod terms;
mod traps;
pub(crate) mod unproved;
mod version;

use assume::Assumes;
use by_point::ByPoint;
use checks::{Check, Finding, Options, Place};
#[cfg(feature = "unproved")]
pub use compose::compose_without;
pub use compose::{CheckedComposition, compose};
pub use continuation::{
    ContinuationFault, CopiedFrames, LandedVersion, WithoutPoints, continuation,
};
pub use copy::{Copies, CopyError, copy, copy_without_objects};
use entry::Judge;
use fixedbitset::FixedBitSet;
pub use frames::{FrameLanding, FrameRefusal, LivePoints, enter_copy, leave_copy};
use ir::verifier::{Rule, verify_function};
use ir::{Block, Function, Inst, Module, Point, Value};
pub use known::{KnownCall, KnownCallFault, known_call};
use live::{Extra, KnownSets, LiveSets, LiveUses, LiveValues};
pub use passage::passage;
use product::CrossProduct;
pub use rest::{RestFault, RestOf, enter_continuation, leave_continuation, places_in_target};
pub(crate) use seal::Sealed;
pub use seal::{Checked, CheckedEntry, Unproved};
pub use stay::{stay, stay_armed};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use terms::TermTable;
use transition::certificate::{Certificate, EntryFacts, MappingFacts, TermId};
use transition::mapping::{Mapping, SharedEntry};
use transition::{Pair, Side, VersionKey};
use traps::PendingTraps;
use version::ProvedVersion;

/// A proof that two versions correspond. It is the basis for judging entries between them.
pub struct Relation<'a, 'c> {
    pub(crate) product: CrossProduct<'a, 'c>,
    /// The instructions that may trap and are no anchors, and where they are pending.
    traps: Pair<PendingTraps>,
    /// The assumptions that are no anchors.
    assumes: Pair<Assumes>,
    options: Options,
    /// By version: its liveness without armed entries, once it is known.
    live: Pair<KnownSets>,
    /// By source version and point: the last entry that passed all checks but
    /// [`Check::LivePlus`], with its facts. Mappings of several levels share entries, and these
    /// checks depend on nothing else.
    fitting: Pair<RefCell<FittingEntries>>,
    /// By source version and point: the last entry found to require live values alone, so that it
    /// adds no use when it is armed.
    unkept: Pair<RefCell<ByPoint<SharedEntry>>>,
}

/// Entries by source point.
type FittingEntries = ByPoint<FittingEntry>;

/// An entry that passed all checks but [`Check::LivePlus`].
struct FittingEntry {
    entry: SharedEntry,
    facts: EntryFacts,
    /// Whether it provides all values that are live at its target point without additional uses.
    /// Liveness without additional uses is the same for the whole relation, so the entry passes
    /// [`Check::LivePlus`] in each mapping whose armed entries add no uses.
    is_complete: bool,
}

/// Two versions that were not proved to correspond.
pub(crate) struct Unrelated<'a, 'c> {
    pub(crate) finding: Finding,
    /// The classes that should have been equal, if the check compared classes, and the product
    /// whose leaves they are about.
    pub(crate) classes: Option<(Box<CrossProduct<'a, 'c>>, Pair<TermId>)>,
}

impl From<Finding> for Unrelated<'_, '_> {
    fn from(finding: Finding) -> Self {
        Unrelated { finding, classes: None }
    }
}

impl<'a, 'c> Relation<'a, 'c> {
    /// Proves that two versions correspond: steps 1 to 4 of the proof. Cost: see [`crate::relate`].
    ///
    /// # Errors
    /// The first check that fails.
    pub(crate) fn prove(
        module: &Module,
        versions: Pair<&'a Function>,
        certificate: &'c Certificate,
        options: Options,
    ) -> Result<Relation<'a, 'c>, Unrelated<'a, 'c>> {
        // A certificate of another pair must not be used: its ids would name other instructions
        // here.
        let belongs = versions.map(VersionKey::of) == Pair::from(certificate.versions);
        options.require(Check::Versions, belongs, Place::Whole)?;
        // A term serves both versions. So do the rules, which must hold where the versions run.
        let declared = versions.map(Function::rules);
        let rules_fit = declared.before == declared.after
            && declared.before.is_none_or(|rules| rules.fits(module).is_ok());
        options.require(Check::Versions, rules_fit, Place::Whole)?;
        check_form(module, versions, options)?;
        // An anchor is an instruction of both versions, so its id is below the smaller bound.
        // `insert` panics on an id beyond it, which a forged certificate may list.
        let bound = versions.map(Function::inst_bound);
        let mut anchors = FixedBitSet::with_capacity(bound.before.min(bound.after));
        for anchor in &certificate.anchors {
            let known = (anchor.as_u32() as usize) < anchors.len();
            options.require(Check::AnchorSame, known, Place::Inst(*anchor))?;
            known.then(|| anchors.insert(anchor.as_u32() as usize));
        }
        // The order of these steps matters. The versions look up classes that the table has proved,
        // and the product relies on versions that satisfy their terms.
        let terms =
            Rc::new(TermTable::check(&certificate.terms, declared.before.cloned(), options)?);
        let [before, after] = &certificate.sides;
        let least = module.memories.keys().map(|memory| module.least_bytes(memory)).collect();
        let versions = Pair::new(
            ProvedVersion::check(versions.before, before, &terms, &anchors, &least)?,
            ProvedVersion::check(versions.after, after, &terms, &anchors, &least)?,
        );
        let mut product = CrossProduct::new(terms, versions, &anchors);
        if let Err(failure) = product.prove(module, &anchors) {
            let classes = failure.classes.map(|classes| (Box::new(product), classes));
            return Err(Unrelated { finding: failure.finding, classes });
        }
        // Each version has its own instructions that may trap, so each version is judged against
        // the opposite version.
        let before = PendingTraps::check(&product, Side::Before, &anchors)?;
        let after = PendingTraps::check(&product, Side::After, &anchors)?;
        let traps = Pair { before, after };
        let assumes = product.versions.as_ref().map(|version| Assumes::new(version, &anchors));
        let live = Pair::default();
        let versions = product.versions.as_ref().map(|version| version.f);
        let fitting = versions.map(|f| RefCell::new(ByPoint::new(f)));
        let unkept = versions.map(|f| RefCell::new(ByPoint::new(f)));
        Ok(Relation { product, traps, assumes, options, live, fitting, unkept })
    }

    /// Judges all entries of one mapping between the two versions, in the order of the mapping.
    /// `Ok` says that the entry holds. Arguments and cost: see [`Relation::judge`].
    pub(crate) fn hold(
        &self,
        side: Side,
        mapping: &Mapping,
        facts: &MappingFacts,
        armed: &[&Mapping],
    ) -> Vec<Result<(), Finding>> {
        let keys = self.product.versions.as_ref().map(|version| VersionKey::of(version.f));
        // No entry holds if one of the mappings is about other versions: the values that its
        // entries require would be counted in the wrong function.
        let belongs = mapping.source() == keys[side]
            && mapping.target() == keys[side.other()]
            && armed.iter().all(|m| m.source() == keys[side.other()]);
        if let Err(finding) = self.options.require(Check::Versions, belongs, Place::Whole) {
            return vec![Err(finding); mapping.len()];
        }
        // Everything that needs no liveness.
        let to = side.other();
        let mut judge = Judge::new(&self.product, &self.traps[to], &self.assumes[to], side);
        let none = EntryFacts::default();
        let of = |index: usize| facts.get(index).unwrap_or(&none);
        let mut fitting = self.fitting[side].borrow_mut();
        let mut is_new = vec![true; mapping.len()];
        let mut results: Vec<Result<(), Finding>> = Vec::with_capacity(mapping.len());
        for (index, (point, entry)) in mapping.shared_entries().enumerate() {
            // An entry that is shared cannot change, so the same one passes again.
            let same = |known: &FittingEntry| known.entry.is(entry) && known.facts == *of(index);
            is_new[index] = !fitting.get(point).is_some_and(same);
            results.push(match is_new[index] {
                true => judge.check(point, entry, of(index)),
                false => Ok(()),
            });
        }
        // [`Check::Kept`]: the kept values are exactly the required values that are not live at the
        // source point. An engine that arms the entry keeps exactly the listed values alive, so a
        // missing one would be read after its register was reused. All edges count at the source
        // (`in_run` is false), because register allocation goes by the text of the version.
        let leaving = |point: Point, _: &SharedEntry| point.inst();
        let asked = |index: usize| is_new[index] && results[index].is_ok();
        let mut failed = Vec::new();
        let text = LiveUses { in_run: false, extra: &Extra::new() };
        let kept = self.each_live(side, text, mapping, asked, leaving, |index, at, entry, live| {
            if !live.leaves(&entry.requires(), &entry.kept()) {
                failed.push((index, Place::Inst(at)));
            }
        });
        for (index, at) in failed.drain(..) {
            results[index] = self.options.require(Check::Kept, false, at);
        }
        if kept.is_ok() {
            let new = mapping.shared_entries().enumerate();
            let new = new.filter(|(index, _)| is_new[*index] && results[*index].is_ok());
            let fits = |(index, (point, entry)): (usize, (Point, &SharedEntry))| {
                let (entry, facts) = (entry.clone(), of(index).clone());
                (point, FittingEntry { entry, facts, is_complete: false })
            };
            new.map(fits).for_each(|(point, known)| fitting.insert(point, known));
        }
        // [`Check::LivePlus`]: the entry provides every value that is live+ at the target point.
        // Without this check, the target version could read a value that nobody assigned.
        let landing = |_, entry: &SharedEntry| entry.target().inst();
        let provided = self.armed_uses(side.other(), armed).and_then(|extra| {
            let run = LiveUses { in_run: true, extra: &extra };
            let same_uses = extra.is_empty();
            let points = mapping.shared_entries().map(|(point, _)| point);
            // The last condition of `is_new`: the entry at the point equals the entry of `fitting`.
            let is_known = |(index, point): (usize, Point)| {
                same_uses && !is_new[index] && fitting.get(point).is_some_and(|e| e.is_complete)
            };
            let known: Vec<bool> = points.enumerate().map(is_known).collect();
            let asked = |index: usize| results[index].is_ok() && !known[index];
            self.each_live(side.other(), run, mapping, asked, landing, |index, _, entry, live| {
                let provided = entry.provides();
                // The provided values ascend ([`Check::AssignShape`]), so no value counts twice.
                if live.count_in(&provided) == live.len() {
                    return;
                }
                let missing = live.iter().filter(|v| !provided.has(*v)).min();
                failed.extend(missing.map(|v| (index, Place::Value(v))));
            })?;
            Ok(same_uses)
        });
        if let Ok(true) = provided {
            let incomplete: BTreeSet<usize> = failed.iter().map(|(index, _)| *index).collect();
            let fits = |index: usize| results[index].is_ok() && !incomplete.contains(&index);
            note_complete(&mut fitting, mapping, fits);
        }
        for (index, at) in failed {
            results[index] = self.options.require(Check::LivePlus, false, at);
        }
        // A version with too many live values has no liveness ([`Options::live_limit`]), so no
        // entry that held so far is proved.
        if let Err(finding) = kept.and(provided.map(|_| ())) {
            results.iter_mut().filter(|r| r.is_ok()).for_each(|r| *r = Err(finding));
        }
        results
    }

    /// Calls `visit` for the entries of a mapping that are asked for by their index, with the
    /// values that are live at `place` of the entry in the version `side`.
    ///
    /// # Errors
    /// [`Check::Size`], when the version has too many live values.
    fn each_live(
        &self,
        side: Side,
        uses: LiveUses<'_>,
        mapping: &Mapping,
        asked: impl Fn(usize) -> bool,
        place: impl Fn(Point, &SharedEntry) -> Inst,
        mut visit: impl FnMut(usize, Inst, &SharedEntry, &mut LiveValues),
    ) -> Result<(), Finding> {
        let version = &self.product.versions[side];
        // Entries by block and instruction, each with its index in the mapping. Each block is
        // walked once for all its entries: a walk per entry would be quadratic in long blocks.
        let mut placed: Vec<(Block, Inst, usize, &SharedEntry)> = Vec::with_capacity(mapping.len());
        for (index, (point, entry)) in mapping.shared_entries().enumerate().filter(|e| asked(e.0)) {
            let inst = place(point, entry);
            if version.f.has_inst(inst) {
                placed.push((version.f.inst_block(inst), inst, index, entry));
            }
        }
        placed.sort_unstable_by_key(|(block, inst, index, _)| (*block, *inst, *index));
        let by_block = || placed.chunk_by(|a, b| a.0 == b.0);
        let blocks: Vec<Block> = by_block().map(|entries| entries[0].0).collect();
        let (options, known) = (&self.options, &self.live[side]);
        let liveness = LiveSets::new(version, uses, options, known, &blocks)?;
        let mut live = liveness.none();
        for (block, entries) in blocks.iter().zip(by_block()) {
            liveness.walk(*block, uses.extra, &mut live, |inst, live| {
                let here = &entries[entries.partition_point(|e| e.1 < inst)..];
                for (_, _, index, entry) in here.iter().take_while(|e| e.1 == inst) {
                    visit(*index, inst, entry, live);
                }
            });
        }
        Ok(())
    }

    /// The extra uses that turn liveness into live+: values that entries of these mappings require,
    /// by the instruction they start before. A value that is live there anyway is left out, since
    /// another use of it changes nothing. Unavailable values do not count, because such an entry
    /// never holds ([`Check::Requires`]). `side` is the version that the entries leave from.
    ///
    /// # Errors
    /// As [`Relation::each_live`].
    fn armed_uses(&self, side: Side, armed: &[&Mapping]) -> Result<Extra, Finding> {
        let (version, mut extra) = (&self.product.versions[side], Extra::new());
        for mapping in armed {
            let leaving = |point: Point, _: &SharedEntry| point.inst();
            let run = LiveUses { in_run: true, extra: &Extra::new() };
            // An entry that is shared cannot change, and this liveness is one for the relation.
            let mut unkept = self.unkept[side].borrow_mut();
            let entries = mapping.shared_entries();
            let mut adds: Vec<bool> = entries
                .map(|(point, e)| !unkept.get(point).is_some_and(|known| known.is(e)))
                .collect();
            let asked = adds.clone();
            adds.fill(false);
            let is_asked = |index: usize| asked[index];
            self.each_live(side, run, mapping, is_asked, leaving, |index, inst, entry, live| {
                let requires = entry.requires();
                if live.count_in(&requires) == requires.len() {
                    return;
                }
                // Mostly these are the kept values, which are few.
                let kept = entry.kept();
                let requires = match live.leaves(&requires, &kept) {
                    true => kept,
                    false => Cow::Owned(requires.values().into_owned()),
                };
                let exists = |v: &Value| !live.has(*v) && version.f.has_value(*v);
                let unlive = requires.iter().copied().filter(exists);
                let mut unlive =
                    unlive.filter(|v| version.full.available(version.f, *v, inst)).peekable();
                if unlive.peek().is_some() {
                    extra.entry(inst).or_default().extend(unlive);
                    adds[index] = true;
                }
            })?;
            let entries = mapping.shared_entries().enumerate();
            let new = entries.filter(|(index, _)| asked[*index] && !adds[*index]);
            new.for_each(|(_, (point, entry))| unkept.insert(point, entry.clone()));
        }
        Ok(extra)
    }

    /// The values that are live+ at points of a version, when these mappings from it are armed. A
    /// point that the version lacks is left out. Cost: near linear in the version, the mappings and
    /// the answer.
    ///
    /// # Errors
    /// [`Check::Versions`], when a mapping leaves from another version, and [`Check::Size`], when
    /// too many values are live.
    pub fn live_at(
        &self,
        side: Side,
        points: impl IntoIterator<Item = Point>,
        armed: &[&Mapping],
    ) -> Result<Checked<LivePoints>, Finding> {
        let version = &self.product.versions[side];
        let key = VersionKey::of(version.f);
        let belongs = armed.iter().all(|mapping| mapping.source() == key);
        self.options.require(Check::Versions, belongs, Place::Whole)?;
        let exists = |point: &Point| version.f.has_inst(point.inst());
        let insts: BTreeSet<Inst> =
            points.into_iter().filter(exists).map(|point| point.inst()).collect();
        let blocks: BTreeSet<Block> =
            insts.iter().map(|inst| version.f.inst_block(*inst)).collect();
        let blocks: Vec<Block> = blocks.into_iter().collect();
        let extra = self.armed_uses(side, armed)?;
        let (options, known) = (&self.options, &self.live[side]);
        let run = LiveUses { in_run: true, extra: &extra };
        let liveness = LiveSets::new(version, run, options, known, &blocks)?;
        let (mut at, mut live) = (BTreeMap::new(), liveness.none());
        for block in blocks {
            liveness.walk(block, &extra, &mut live, |inst, live| {
                if insts.contains(&inst) {
                    let mut values: Vec<Value> = live.iter().collect();
                    values.sort_unstable();
                    values.dedup();
                    at.insert(Point::before(inst), values.into());
                }
            });
        }
        Ok(Checked::accepted(LivePoints { version: key, at }))
    }
}

/// Notes the entries that provide all values that are live at their target points without
/// additional uses.
fn note_complete(fitting: &mut FittingEntries, mapping: &Mapping, fits: impl Fn(usize) -> bool) {
    for (index, (point, entry)) in mapping.shared_entries().enumerate() {
        if let Some(known) = fitting.get_mut(point).filter(|_| fits(index)) {
            known.is_complete |= known.entry.is(entry);
        }
    }
}

/// Proves [`Check::Ssa`]: both versions are well-formed.
///
/// The rest of the checker indexes tables by ids from the versions without further tests. That is
/// why an experiment that leaves this check out ([`Options::without`]) can drop the rule on
/// dominance alone.
fn check_form(module: &Module, versions: Pair<&Function>, options: Options) -> Result<(), Finding> {
    let mut findings = versions.into_iter().flat_map(|f| verify_function(module, f));
    let failed = findings.any(|f| f.rule() != Rule::SsaDom1 || options.without != Some(Check::Ssa));
    if failed { Err(Finding { check: Check::Ssa, at: Place::Whole }) } else { Ok(()) }
}
