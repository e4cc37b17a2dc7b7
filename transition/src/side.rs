//! The two versions of a pair, and a value for each.

use std::fmt;
use std::ops::{Index, IndexMut};

/// A side of an action log: the version before the log, or the version after it.
///
/// The name of a mapping comes from the side that it leaves. The forward mapping has its source
/// [`Side::Before`] and its target [`Side::After`]; the backward mapping has the reverse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// The version before the log.
    Before,
    /// The version after the log.
    After,
}

impl Side {
    /// Both sides, [`Side::Before`] first.
    pub const BOTH: [Side; 2] = [Side::Before, Side::After];

    /// The opposite side: the target of a mapping whose source is this side.
    #[must_use]
    pub const fn other(self) -> Side {
        match self {
            Side::Before => Side::After,
            Side::After => Side::Before,
        }
    }

    /// The direction of the mapping that leaves from this side: `forward` or `backward`.
    pub const fn direction(self) -> &'static str {
        match self {
            Side::Before => "forward",
            Side::After => "backward",
        }
    }
}

/// Prints `before` or `after`.
impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Before => "before",
            Side::After => "after",
        })
    }
}

/// One value for each side, indexed by [`Side`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Pair<T> {
    /// The value of [`Side::Before`].
    pub before: T,
    /// The value of [`Side::After`].
    pub after: T,
}

impl<T> Pair<T> {
    /// The pair of two values.
    pub const fn new(before: T, after: T) -> Pair<T> {
        Pair { before, after }
    }

    /// The pair whose values a function computes, [`Side::Before`] first.
    pub fn from_fn(mut of: impl FnMut(Side) -> T) -> Pair<T> {
        let before = of(Side::Before);
        Pair { before, after: of(Side::After) }
    }

    /// The pair of the results of a function, applied to [`Side::Before`] first.
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> Pair<U> {
        let before = f(self.before);
        Pair { before, after: f(self.after) }
    }

    /// The values of both pairs, side by side.
    pub fn zip<U>(self, other: Pair<U>) -> Pair<(T, U)> {
        Pair { before: (self.before, other.before), after: (self.after, other.after) }
    }

    /// References to both values.
    pub const fn as_ref(&self) -> Pair<&T> {
        Pair { before: &self.before, after: &self.after }
    }

    /// Mutable references to both values.
    pub const fn as_mut(&mut self) -> Pair<&mut T> {
        Pair { before: &mut self.before, after: &mut self.after }
    }

    /// Both values, [`Side::Before`] first.
    pub fn iter(&self) -> std::array::IntoIter<&T, 2> {
        [&self.before, &self.after].into_iter()
    }

    /// Both values with their sides, [`Side::Before`] first.
    pub fn sides(&self) -> std::array::IntoIter<(Side, &T), 2> {
        [(Side::Before, &self.before), (Side::After, &self.after)].into_iter()
    }
}

impl<T> Index<Side> for Pair<T> {
    type Output = T;

    fn index(&self, side: Side) -> &T {
        match side {
            Side::Before => &self.before,
            Side::After => &self.after,
        }
    }
}

impl<T> IndexMut<Side> for Pair<T> {
    fn index_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Before => &mut self.before,
            Side::After => &mut self.after,
        }
    }
}

/// [`Side::Before`] first.
impl<T> IntoIterator for Pair<T> {
    type Item = T;
    type IntoIter = std::array::IntoIter<T, 2>;

    fn into_iter(self) -> Self::IntoIter {
        [self.before, self.after].into_iter()
    }
}

/// The first value belongs to [`Side::Before`].
impl<T> From<[T; 2]> for Pair<T> {
    fn from([before, after]: [T; 2]) -> Pair<T> {
        Pair { before, after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_index_pairs() {
        let mut pair = Pair::from_fn(|side| side.to_string());
        assert_eq!(pair[Side::Before], "before");
        assert_eq!(pair[Side::Before.other()], "after");
        pair[Side::After].push('!');
        assert_eq!(pair.as_ref().map(String::len), Pair::new(6, 6));
        assert_eq!(pair.as_ref().zip(Pair::new(1, 2)).after, (&"after!".to_owned(), 2));
        assert_eq!(pair.into_iter().collect::<Vec<_>>(), ["before", "after!"]);
    }
}
