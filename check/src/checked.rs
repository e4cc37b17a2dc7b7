//! The seal: mappings and entries that the checker has accepted.
//!
//! Code that fires a transition takes a [`Checked`] mapping or a [`CheckedEntry`] of one, in the
//! interpreter and natively alike. This crate alone makes them: by judging
//! ([`Relation::accept`](crate::Relation::accept)), by composing accepted mappings
//! ([`crate::compose`]), and by dropping entries. The feature `unproved` opens a door for oracles and
//! tests, which fire wrong entries on purpose; libraries that embedders link do not enable it.

use ir::{Function, Point};
use std::ops::Deref;
use transition::VersionKey;
use transition::mapping::{Entry, Mapping};

/// The permission to go on with code or values that nobody has proved. Only code built with the
/// feature `unproved` can make one.
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked<T>(T);

impl<T> Checked<T> {
    pub(crate) fn new(accepted: T) -> Checked<T> {
        Checked(accepted)
    }

    /// Takes what nobody has proved for accepted. For oracles, which look for wrong entries by firing
    /// them, and for tests.
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
        Checked(Mapping::new(source, target))
    }

    /// The entry at a point of the source version, under seal. Cost: logarithmic.
    pub fn checked_entry(&self, point: Point) -> Option<CheckedEntry<'_>> {
        let entry = self.0.entry(point)?;
        Some(CheckedEntry { source: self.source(), target: self.target(), point, entry })
    }

    /// Drops the entries for which `keep` is false.
    pub fn retain(&mut self, mut keep: impl FnMut(Point, &Entry) -> bool) {
        let dropped: Vec<Point> = self
            .0
            .entries()
            .filter(|(point, entry)| !keep(*point, entry))
            .map(|(p, _)| p)
            .collect();
        for point in dropped {
            self.0.remove(point);
        }
    }
}

/// An entry of an accepted mapping, with the versions and the source point that it was accepted for.
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
        (source, target): (VersionKey, VersionKey),
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
}
