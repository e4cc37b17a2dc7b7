//! Rewinding: returns a table and its homes to an earlier state.

use crate::homes::{Home, Homes};
use crate::table::{ClassTable, TermForm};
use crate::{NO_TERM, TermIndex};

impl<F: TermForm> ClassTable<F> {
    /// Forgets the terms from number `count` on. Cost: linear in these.
    pub fn rewind(&mut self, count: usize) {
        if self.terms.len() == count {
            return;
        }
        // The last first: a class is a list, to which each of these terms was added at the end.
        while self.terms.len() > count {
            self.forget_last();
        }
        for slot in &mut self.recent {
            *slot = slot.filter(|(_, _, term)| (*term as usize) < count);
        }
    }

    fn forget_last(&mut self) {
        let Some(term) = self.terms.last() else { return };
        let (id, class) = ((self.terms.len() - 1) as TermIndex, F::class(term));
        let hash = self.hash_of_key(F::key(term));
        // Not every term is in the index (`ClassTable::another`).
        if let Ok(entry) = self.index.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
        let link = self.links[id as usize];
        if self.sums.get(&link.sum) == Some(&id) {
            self.sums.remove(&link.sum);
        }
        self.terms.pop();
        self.links.pop();
        if class != id {
            let first = &mut self.links[class as usize];
            (first.last, first.possible) = (link.last, link.possible);
            self.links[link.last as usize].next = NO_TERM;
        }
    }
}

/// A state of [`Homes`] to return to.
#[derive(Clone, Copy, Debug)]
pub struct HomesMark {
    terms: usize,
    changes: usize,
}

impl Homes {
    /// Marks the state, with a table of this many terms.
    pub fn mark(&mut self, terms: usize) -> HomesMark {
        self.marked = self.marked.max(terms);
        HomesMark { terms, changes: self.changes.len() }
    }

    /// Returns to a marked state.
    pub fn rewind(&mut self, mark: HomesMark) {
        // The last first: a home may have changed more than once.
        while self.changes.len() > mark.changes
            && let Some((term, home)) = self.changes.pop()
        {
            self.known[term as usize] = home;
        }
        self.known.truncate(mark.terms);
    }

    /// Records a home. Changes of terms that a mark may return to are noted.
    pub(crate) fn record(&mut self, term: TermIndex, home: Home) {
        let known = &mut self.known[term as usize];
        if (term as usize) < self.marked {
            self.changes.push((term, *known));
        }
        *known = Some(home);
    }
}
