//! Lists of words of which many have parts in common (see [`crate::packed`]).

/// The fewest words of a part that is not the last of its list. Lists of parts are then shorter
/// than the lists that they are parts of.
const FEWEST: usize = 4;

/// The most words of a part.
const MOST: usize = 96;

/// One in so many words ends a part.
const ENDS: u32 = 16;

/// Lists of words. Equal parts are stored once.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// The words of all nodes, one node after the other. The first word of a node is its level. At
    /// level 0 the others are words of a list, above that numbers of nodes.
    pub(crate) words: Vec<u32>,
    /// By number: the end of the node in `words`.
    ends: Vec<u32>,
    /// A hash table of the numbers, each plus one; 0 for none.
    slots: Vec<u32>,
}

impl Lists {
    /// The number of a list. `None` if the store is full.
    pub(crate) fn put(&mut self, list: &[u32], level: u32) -> Option<u32> {
        let mut parts = Vec::new();
        let mut rest = list;
        while parts.is_empty() || !rest.is_empty() {
            let (part, behind) = rest.split_at(part_length(rest));
            parts.push(self.node(level, part)?);
            rest = behind;
        }
        match parts[..] {
            [one] => Some(one),
            _ => self.put(&parts, level + 1),
        }
    }

    /// The words of a list that is expected to have so many.
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
        let mut slot = self.first_slot(hash(level, part));
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

    fn first_slot(&self, hash: u64) -> usize {
        // The high bits depend on all words. The number of slots is a power of two.
        (hash >> 20) as usize % self.slots.len()
    }

    fn grow(&mut self) {
        self.slots = vec![0; (self.slots.len() * 2).max(64)];
        for number in 0..self.ends.len() as u32 {
            let [level, words @ ..] = self.words_of(number) else { continue };
            let mut slot = self.first_slot(hash(*level, words));
            while self.slots[slot] != 0 {
                slot = (slot + 1) % self.slots.len();
            }
            self.slots[slot] = number + 1;
        }
    }
}

/// Spreads the bits of a word.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

fn hash(level: u32, words: &[u32]) -> u64 {
    let mix =
        |hash: u64, word: &u32| (hash.rotate_left(23) ^ u64::from(*word)).wrapping_mul(SPREAD);
    words.iter().fold(mix(0, &level), mix)
}

/// The length of the first part of a list.
fn part_length(list: &[u32]) -> usize {
    let ends = |word: &u32| word.wrapping_mul(SPREAD as u32) < u32::MAX / ENDS;
    let most = list.len().min(MOST);
    let end = (FEWEST..most).find(|at| ends(&list[at - 1]));
    end.unwrap_or(most)
}
