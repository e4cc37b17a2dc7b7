//! An unordered list with cheap removal of any item.

use smallvec::SmallVec;
use std::collections::BTreeSet;

/// The length of the end of the list that a removal searches linearly. Most lists are never longer,
/// so they need no index.
const NEAR: usize = 32;

/// A multiset of items. The insertions and removals alone determine the order of its items.
///
/// An insertion or removal costs at most the logarithm of the length, amortized, in any order of
/// calls. Front-to-back removal must be cheap too. A pass that replaces the users of a value in
/// order removes them from the far end of the list.
#[derive(Debug)]
pub(crate) struct Bag<T> {
    /// Four fit inline: most values have at most four uses, and most blocks at most four edges.
    items: SmallVec<[T; 4]>,
    /// Every (item, position) pair. The first removal far from the end builds this index, so the
    /// many short lists do without it.
    #[expect(
        clippy::box_collection,
        reason = "one word for the many lists without an index, not four"
    )]
    places: Option<Box<BTreeSet<(T, u32)>>>,
}

impl<T: Copy + Ord> Bag<T> {
    pub(crate) fn as_slice(&self) -> &[T] {
        &self.items
    }

    pub(crate) fn push(&mut self, item: T) {
        if let Some(places) = &mut self.places {
            places.insert((item, self.items.len() as u32));
        }
        self.items.push(item);
    }

    /// Removes the last occurrence of an item. The last item of the list takes its position.
    /// Returns whether the item occurred.
    pub(crate) fn remove(&mut self, item: T) -> bool {
        let Some(at) = self.last_place(item) else { return false };
        self.items.swap_remove(at);
        let last = self.items.len();
        // All removals from a list this short search it linearly, so the index is no longer needed.
        if last <= NEAR {
            self.places = None;
        } else if let Some(places) = &mut self.places {
            places.remove(&(item, at as u32));
            if let Some(moved) = self.items.get(at) {
                places.remove(&(*moved, last as u32));
                places.insert((*moved, at as u32));
            }
        }
        true
    }

    /// The position of the last occurrence of an item. The answer must be the same with and without
    /// the index: a replay starts without an index and must end with equal lists. The test
    /// `the_index_changes_nothing` fails otherwise.
    fn last_place(&mut self, item: T) -> Option<usize> {
        let far = self.items.len().saturating_sub(NEAR);
        let near = self.items[far..].iter().rposition(|i| *i == item);
        if near.is_some() || far == 0 {
            return near.map(|at| far + at);
        }
        let items = &self.items;
        let places = self.places.get_or_insert_with(|| {
            Box::new(items.iter().enumerate().map(|(n, i)| (*i, n as u32)).collect())
        });
        places.range((item, 0)..=(item, u32::MAX)).next_back().map(|(_, at)| *at as usize)
    }
}

impl<T> Default for Bag<T> {
    fn default() -> Self {
        Bag { items: SmallVec::new(), places: None }
    }
}

/// The clone has no index yet; it builds one on demand.
impl<T: Copy> Clone for Bag<T> {
    fn clone(&self) -> Self {
        Bag { items: SmallVec::from_slice(&self.items), places: None }
    }
}

impl<T> Bag<T> {
    /// An empty list. The first `count` insertions allocate nothing more.
    pub(crate) fn with_capacity(count: usize) -> Bag<T> {
        Bag { items: SmallVec::with_capacity(count), places: None }
    }
}

impl<T> From<Vec<T>> for Bag<T> {
    fn from(items: Vec<T>) -> Self {
        Bag { items: items.into(), places: None }
    }
}

impl<T: Copy + Ord> Extend<T> for Bag<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T> IntoIterator for Bag<T> {
    type Item = T;
    type IntoIter = smallvec::IntoIter<[T; 4]>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

#[cfg(test)]
mod tests;
