//! The seal: mappings and entries that the checker has accepted.
//!
//! Code that fires a transition takes a [`Checked`] mapping or a [`CheckedEntry`] of one, in the
//! interpreter and natively alike. The folder `accept` alone makes them: by judging
//! ([`Relation::seal`]), by composing accepted mappings ([`crate::compose`]), between a version and
//! itself ([`crate::stay`]), and by dropping entries. The feature `unproved` opens a door for
//! oracles and tests, which fire wrong entries on purpose; libraries that embedders
//! link do not enable it.

use super::Relation;
use super::checks::Finding;
use ir::{Func, Function, Point, Value};
use std::ops::Deref;
use transition::certificate::MappingFacts;
use transition::frames::Landing;
use transition::mapping::{Entry, Mapping};
use transition::{Pair, Side, VersionKey};

/// The permission to continue with unproved code or values. Only code built with the feature
/// `unproved` can make one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unproved(());

impl Unproved {
    /// The permission. For oracles and tests.
    #[cfg(feature = "unproved")]
    pub const fn claim() -> Unproved {
        Unproved(())
    }
}

/// Data that the checker has accepted. It can be read and made smaller, and not changed otherwise.
///
/// # The claim of a sealed mapping
///
/// Let the mapping lead from the version p to the version q. Each of its entries makes the claim of
/// [`transition::mapping`]: suppose that p, started on some input, reaches the source point. Then
/// q, started on the same input, reaches the landing point with the same memory and the same
/// effects so far. Where the entry has inner activations, a run of q and of their versions reaches
/// them ([`transition::frames`]). There is one exception: q may have trapped, if p traps later,
/// before any further effect. The kinds of the two traps may differ. The compensation code does not
/// trap, and gives every provided value the contents that q has. The entry provides every value
/// that is live+ at its landing point: the values that q needs from there on, and the values that
/// later entries of the *armed* mappings require. The armed mappings are the mappings that the
/// mapping was accepted with. In [`crate::accept`] this is the mapping of the other direction; in
/// [`crate::accept_armed`], the given mappings; in [`crate::compose`] and [`crate::enter_copy`],
/// the armed mappings of the second mapping; in [`crate::leave_copy`], the armed mappings of each
/// landing; in [`crate::stay`], no mapping; in [`crate::stay_armed`], the given mappings.
///
/// # Duties of the user
///
/// - After a transition, a run may fire entries of the mappings armed for it, and of no others.
///   Another accepted mapping from q may require a dead value without an assignment in this entry.
///   Its compensation code would read arbitrary contents. Two directions accepted apart do not arm
///   each other. Neither do the mappings of two levels accepted with [`crate::accept`]. To use
///   several mappings from q, accept the mappings into q together with all these mappings.
/// - Accept a mapping with all mappings that will be armed, or with more. Dropping entries of an
///   armed mapping later is safe, since an entry that is gone requires nothing.
/// - An entry fires at its source point, before the instruction there. The run of p must have begun
///   with a call or with an accepted transition. The engine has to execute all replays of the
///   entry.
/// - Versions are named by [`VersionKey`], a digest of 64 bits. Code that fires an entry must
///   compare the keys. They distinguish versions that were not made to collide.
/// - The claim does not cover the module that a version runs in. The verifier has to accept the
///   version there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked<T>(T);

impl<T> Checked<T> {
    /// Seals data. In this folder alone, after a proof.
    pub(super) fn accepted(data: T) -> Checked<T> {
        Checked(data)
    }

    /// Seals data without a proof. For oracles, which look for wrong entries by firing them, and
    /// for tests.
    #[cfg(feature = "unproved")]
    pub fn unproved(claimed: T) -> Checked<T> {
        Checked(claimed)
    }

    /// The data without its seal.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Checked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl Checked<Mapping> {
    /// The mapping without entries, which claims nothing.
    pub fn empty(source: &Function, target: &Function) -> Checked<Mapping> {
        Checked::nothing(VersionKey::of(source), VersionKey::of(target))
    }

    /// The mapping without entries between the versions with these keys, which claims nothing.
    pub fn nothing(source: VersionKey, target: VersionKey) -> Checked<Mapping> {
        Checked(Mapping::between(source, target))
    }

    /// The entry at a point of the source version, under seal. Cost: logarithmic.
    pub fn checked_entry(&self, point: Point) -> Option<CheckedEntry<'_>> {
        let entry = self.0.entry(point)?;
        Some(CheckedEntry { source: self.source(), target: self.target(), point, entry })
    }

    /// The mapping with the entry at this point alone, which requires these values of the source
    /// version, too. An OSR point hands over a list of values, and may lead to a transition that
    /// reads fewer: an entry that requires more reads and provides the same, so its claim stays.
    /// The further values count as kept, since they need not be live. Empty without an entry, and
    /// if the source version is another or lacks a value. Cost: near linear in the entry.
    pub fn handing(&self, point: Point, source: &Function, values: &[Value]) -> Checked<Mapping> {
        let mut alone = Mapping::between(self.source(), self.target());
        let is_of = self.source() == VersionKey::of(source)
            && values.iter().all(|value| source.has_value(*value));
        if let Some(entry) = self.0.entry(point).filter(|_| is_of) {
            let has = |value: &&Value| entry.requires.binary_search(value).is_ok();
            let more: Vec<Value> = values.iter().filter(|value| !has(value)).copied().collect();
            let joined = |list: &[Value]| {
                let mut all = [list, &more].concat();
                all.sort_unstable();
                all.dedup();
                all
            };
            let (requires, kept) = (joined(&entry.requires), joined(&entry.kept));
            alone.insert(point, Entry { requires, kept, ..entry.clone() });
        }
        Checked(alone)
    }

    /// A mapping with the entries at some points alone, as [`Checked::retain`] would leave. Points
    /// without an entry have none in the result. Cost: logarithmic for each point; the entries are
    /// shared.
    #[must_use]
    pub fn only_at(&self, points: &[Point]) -> Checked<Mapping> {
        let mut few = Mapping::between(self.source(), self.target());
        let entries = points.iter().filter_map(|at| Some((*at, self.0.shared(*at)?)));
        entries.for_each(|(at, entry)| few.insert_shared(at, entry.clone()));
        Checked(few)
    }

    /// Drops the entries for which `keep` is false. Cost: near linear in the entries.
    pub fn retain(&mut self, mut keep: impl FnMut(Point, &Entry) -> bool) {
        let dropped: Vec<Point> = self
            .0
            .shared_entries()
            .filter(|(point, entry)| !keep(*point, &entry.get()))
            .map(|(p, _)| p)
            .collect();
        for point in dropped {
            self.0.remove(point);
        }
    }
}

/// A mapping after judging: the entries that hold, under seal, and the others.
pub(crate) struct Sealed {
    pub(crate) mapping: Checked<Mapping>,
    /// The facts of the entries that hold, in their order.
    pub(crate) facts: MappingFacts,
    /// The failed entries, in order of their points, each with its failed check.
    pub(crate) dropped: Vec<(Point, Entry, Finding)>,
}

impl Relation<'_, '_> {
    /// Judges the mappings in both directions, each armed while the opposite mapping is used, and
    /// seals them.
    pub(crate) fn seal_pair(
        &self,
        mappings: Pair<Mapping>,
        facts: Pair<MappingFacts>,
    ) -> Pair<Sealed> {
        // Both are judged before either is made smaller: an entry has to provide the values that
        // entries of the other mapping require, including dropped entries. That is more than
        // needed, and safe.
        let results = Pair::from_fn(|side: Side| {
            self.hold(side, &mappings[side], &facts[side], &[&mappings[side.other()]])
        });
        Pair {
            before: drop_failed(mappings.before, facts.before, &results.before),
            after: drop_failed(mappings.after, facts.after, &results.after),
        }
    }

    /// Judges a mapping that leaves from `side`, with the mappings armed in its target version, and
    /// seals it.
    pub(crate) fn seal(
        &self,
        side: Side,
        mapping: Mapping,
        facts: MappingFacts,
        armed: &[&Mapping],
    ) -> Sealed {
        let results = self.hold(side, &mapping, &facts, armed);
        drop_failed(mapping, facts, &results)
    }
}

/// Keeps the entries that hold. `results` come from [`Relation::hold`] for this mapping.
fn drop_failed(
    mut mapping: Mapping,
    facts: MappingFacts,
    results: &[Result<(), Finding>],
) -> Sealed {
    let points: Vec<Point> = mapping.points().collect();
    let mut dropped = Vec::new();
    for (point, result) in points.into_iter().zip(results) {
        if let Err(finding) = result {
            let entry = mapping.remove(point);
            dropped.extend(entry.map(|entry| (point, entry, *finding)));
        }
    }
    let facts = facts.into_iter().zip(results).filter(|(_, r)| r.is_ok()).map(|(f, _)| f);
    Sealed { mapping: Checked(mapping), facts: facts.collect(), dropped }
}

/// An entry of an accepted mapping, with the versions and the source point that it was accepted
/// for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckedEntry<'m> {
    source: VersionKey,
    target: VersionKey,
    point: Point,
    entry: &'m Entry,
}

impl<'m> CheckedEntry<'m> {
    /// An entry that nobody has proved, claimed to lead from a point of `source` to `target`. See
    /// [`Checked::unproved`].
    #[cfg(feature = "unproved")]
    pub fn unproved(
        source: VersionKey,
        target: VersionKey,
        point: Point,
        entry: &'m Entry,
    ) -> CheckedEntry<'m> {
        CheckedEntry { source, target, point, entry }
    }

    /// The version that the transition leaves from.
    pub fn source(&self) -> VersionKey {
        self.source
    }

    /// The version that the transition leads to.
    pub fn target(&self) -> VersionKey {
        self.target
    }

    /// The point of the source version at which the entry may be fired.
    pub fn point(&self) -> Point {
        self.point
    }

    /// The entry itself.
    pub fn entry(&self) -> &'m Entry {
        self.entry
    }

    /// The activations that the entry lands in, the innermost first. `func` is the function of the
    /// source version.
    pub fn landings(&self, func: Func) -> impl DoubleEndedIterator<Item = Landing<'m>> + use<'m> {
        self.entry.landings(func, self.target)
    }
}
