//! Lists of words, many of which have parts in common (see [`crate::packed`]).
//!
//! A list is cut into *parts* at places that depend on the words alone, and so is the list of its
//! parts, up to a single one. A list that differs from another list in a few words is made from it
//! ([`Lists::edited`]), and compared with it ([`Lists::differences`]), for about the cost of these
//! words. Parts in both lists are passed by their numbers.
//!
//! Words may come from a file that somebody forged. So the hash of the table has a key that differs
//! from run to run. Numbers do not depend on the key: they count parts in their order of arrival.

use crate::ascending::{behind_common, count_below};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// The fewest words of a part that is not the last of its list. Lists of parts are then shorter
/// than the lists that they are parts of.
const FEWEST: usize = 4;

/// The most words of a part.
const MOST: usize = 96;

/// One in this many words ends a part.
const ENDS: u32 = 16;

/// Lists of words. Equal parts are stored once.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// The words of all nodes, one node after the other. The first word of a node is its level. At
    /// level 0 the others are words of a list, above that numbers of nodes.
    pub(crate) words: Vec<u32>,
    /// By number: the end of the node in `words`.
    ends: Vec<u32>,
    /// A hash table of the numbers, each plus one; 0 for a free slot.
    slots: Vec<u32>,
    keys: RandomState,
}

impl Lists {
    /// The number of a list. `None` if the store is full.
    pub(crate) fn put(&mut self, list: &[u32]) -> Option<u32> {
        self.put_at(list, 0)
    }

    fn put_at(&mut self, list: &[u32], level: u32) -> Option<u32> {
        let mut parts = Vec::new();
        let mut rest = list;
        while parts.is_empty() || !rest.is_empty() {
            let length = full_part(rest).unwrap_or(rest.len());
            let (part, behind) = rest.split_at(length);
            parts.push(self.node(level, part)?);
            rest = behind;
        }
        self.of_parts(&parts, level)
    }

    /// The number of the list with these parts.
    fn of_parts(&mut self, parts: &[u32], level: u32) -> Option<u32> {
        match parts {
            [one] => Some(*one),
            _ => self.put_at(parts, level + 1),
        }
    }

    /// The number of an ascending list, given the number of another ascending list and the words in
    /// exactly one of the two, ascending, with `true` for words of the new list. It is the number
    /// that [`Lists::put`] gives. Cost: the parts in which the two differ, and a fraction of the
    /// others.
    pub(crate) fn edited(&mut self, number: u32, changes: &[(u32, bool)]) -> Option<u32> {
        if changes.is_empty() {
            return Some(number);
        }
        let (mut old, mut parts) = (Vec::new(), Vec::new());
        self.parts(number, &mut old);
        let (mut rest, mut changes) = (&old[..], changes);
        let mut window = Vec::new();
        while let Some((first, _)) = changes.first() {
            // A word goes to the last part that begins below it, or to the first part.
            let below = rest.partition_point(|part| self.first_word(*part) <= Some(*first));
            parts.extend(rest.split_off(..below.saturating_sub(1)).unwrap_or_default());
            // Parts are cut anew until a cut falls on one of the old list again.
            loop {
                let part = rest.split_off_first();
                let next = rest.first().and_then(|part| self.first_word(*part));
                let here = changes.iter().take_while(|(word, _)| next.is_none_or(|n| *word < n));
                let here = changes.split_off(..here.count()).unwrap_or_default();
                let words = part.map_or(&[][..], |part| &self.words_of(*part)[1..]);
                merge(words, here, &mut window);
                let mut cut = 0;
                while let Some(length) = full_part(&window[cut..]) {
                    parts.push(self.node(0, &window[cut..cut + length])?);
                    cut += length;
                }
                window.drain(..cut);
                if rest.is_empty() && !window.is_empty() {
                    parts.push(self.node(0, &window)?);
                    window.clear();
                }
                if window.is_empty() {
                    break;
                }
            }
        }
        parts.extend(rest);
        if parts.is_empty() {
            parts.push(self.node(0, &[])?);
        }
        self.of_parts(&parts, 0)
    }

    /// Appends the numbers of the parts of a list that have words of the list.
    fn parts(&self, number: u32, parts: &mut Vec<u32>) {
        match self.words_of(number) {
            [0, ..] => parts.push(number),
            // The words of a node at level 1 are such numbers.
            [1, words @ ..] => parts.extend_from_slice(words),
            words => words[1..].iter().for_each(|part| self.parts(*part, parts)),
        }
    }

    /// The first word of a part; `None` for the part without words.
    fn first_word(&self, part: u32) -> Option<u32> {
        self.words_of(part).get(1).copied()
    }

    /// Whether an ascending list has a word. Cost: logarithmic in the list.
    pub(crate) fn has(&self, mut number: u32, word: u32) -> bool {
        loop {
            match self.words_of(number) {
                [0, words @ ..] => return words.binary_search(&word).is_ok(),
                parts => {
                    let below = parts[1..].partition_point(|part| self.least(*part) <= Some(word));
                    // The first word of a node is its level.
                    match below {
                        0 => return false,
                        _ => number = parts[below],
                    }
                }
            }
        }
    }

    /// The first word of a list; `None` for the list without words.
    fn least(&self, mut number: u32) -> Option<u32> {
        loop {
            match self.words_of(number) {
                [0, words @ ..] => return words.first().copied(),
                parts => number = *parts.get(1)?,
            }
        }
    }

    /// Calls `only` for the words in exactly one of two ascending lists, ascending, with `true` for
    /// words of the second list. Cost: the parts in which the two differ, and a fraction of the
    /// others.
    pub(crate) fn differences(&self, [first, second]: [u32; 2], mut only: impl FnMut(u32, bool)) {
        if first == second {
            return;
        }
        let (mut parts_a, mut parts_b) = (Vec::new(), Vec::new());
        self.parts(first, &mut parts_a);
        self.parts(second, &mut parts_b);
        let (mut parts_a, mut parts_b) = (&parts_a[..], &parts_b[..]);
        let (mut a, mut b): (&[u32], &[u32]) = (&[], &[]);
        loop {
            if a.is_empty() && b.is_empty() {
                (parts_a, parts_b) = behind_common(parts_a, parts_b);
            }
            let words_of = |part: &u32| &self.words_of(*part)[1..];
            if a.is_empty() {
                a = parts_a.split_off_first().map_or(&[], words_of);
            }
            if b.is_empty() {
                b = parts_b.split_off_first().map_or(&[], words_of);
            }
            (a, b) = behind_common(a, b);
            match (a.first(), b.first()) {
                (Some(x), Some(y)) => {
                    let is_second = y < x;
                    only(*x.min(y), is_second);
                    if is_second { b = &b[1..] } else { a = &a[1..] }
                }
                (Some(x), None) if parts_b.is_empty() => {
                    only(*x, false);
                    a = &a[1..];
                }
                (None, Some(y)) if parts_a.is_empty() => {
                    only(*y, true);
                    b = &b[1..];
                }
                (None, None) if parts_a.is_empty() && parts_b.is_empty() => return,
                _ => {}
            }
        }
    }

    /// The words of a list that is expected to have `count` words.
    pub(crate) fn get(&self, number: u32, count: usize) -> Vec<u32> {
        let mut list = Vec::with_capacity(count);
        self.read(number, &mut list);
        list
    }

    /// Appends the words of a list. Levels are few: each has at most a quarter of the nodes below.
    fn read(&self, number: u32, list: &mut Vec<u32>) {
        match self.words_of(number) {
            [0, words @ ..] => list.extend_from_slice(words),
            [_, parts @ ..] => parts.iter().for_each(|part| self.read(*part, list)),
            [] => unreachable!("the first word is the level"),
        }
    }

    pub(crate) fn words_of(&self, number: u32) -> &[u32] {
        let end_of = |number: usize| self.ends[number] as usize;
        let start = (number as usize).checked_sub(1).map_or(0, end_of);
        &self.words[start..end_of(number as usize)]
    }

    /// The number of a node with these words.
    pub(crate) fn node(&mut self, level: u32, part: &[u32]) -> Option<u32> {
        if self.ends.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let mut slot = self.first_slot(self.hash(level, part));
        while self.slots[slot] != 0 {
            let number = self.slots[slot] - 1;
            if let [known, words @ ..] = self.words_of(number)
                && (*known, words) == (level, part)
            {
                return Some(number);
            }
            slot = (slot + 1) % self.slots.len();
        }
        let end = u32::try_from(self.words.len() + 1 + part.len()).ok()?;
        self.words.push(level);
        self.words.extend_from_slice(part);
        self.ends.push(end);
        self.slots[slot] = self.ends.len() as u32;
        Some(self.ends.len() as u32 - 1)
    }

    fn hash(&self, level: u32, words: &[u32]) -> u64 {
        self.keys.hash_one((level, words))
    }

    fn first_slot(&self, hash: u64) -> usize {
        // The number of slots is a power of two.
        hash as usize % self.slots.len()
    }

    fn grow(&mut self) {
        self.slots = vec![0; (self.slots.len() * 2).max(64)];
        for number in 0..self.ends.len() as u32 {
            let [level, words @ ..] = self.words_of(number) else { continue };
            let mut slot = self.first_slot(self.hash(*level, words));
            while self.slots[slot] != 0 {
                slot = (slot + 1) % self.slots.len();
            }
            self.slots[slot] = number + 1;
        }
    }
}

/// Spreads the bits of a word.
const SPREAD: u32 = 0x9e37_79b1;

/// The length of the first part of a list, if it is independent of a continuation of the list.
fn full_part(list: &[u32]) -> Option<usize> {
    let ends = |word: u32| word.wrapping_mul(SPREAD) < u32::MAX / ENDS;
    (FEWEST..=list.len().min(MOST)).find(|at| *at == MOST || ends(list[at - 1]))
}

/// Appends ascending words, without the words of `changes` with `false`, and with the words of
/// `changes` with `true`.
fn merge(mut words: &[u32], changes: &[(u32, bool)], list: &mut Vec<u32>) {
    for (word, comes) in changes {
        let below = count_below(words, *word);
        list.extend(words.split_off(..below).unwrap_or_default());
        list.extend(comes.then_some(*word));
        if words.first() == Some(word) {
            words = &words[1..];
        }
    }
    list.extend(words);
}

#[cfg(test)]
mod tests;
