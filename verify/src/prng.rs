//! The source of all random choices: a small generator with a fixed algorithm.
//!
//! A seed in a bug report has to make the same program for as long as the project lives. Streams of
//! random crates change between versions, so the algorithm is written here: SplitMix64 (Steele,
//! Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).

/// A deterministic stream of random choices. Not for secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prng {
    state: u64,
}

impl Prng {
    /// The stream of a seed. Any seed is good, and neighboring seeds give unrelated streams.
    pub fn new(seed: u64) -> Prng {
        Prng { state: seed }
    }

    /// A second stream, named by `tag`. It is independent of numbers drawn later from this stream.
    /// So if one part of a program draws more numbers, the other parts are unchanged.
    pub fn fork(&self, tag: u64) -> Prng {
        let mut child = Prng::new(self.state ^ tag.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Prng::new(child.next_u64())
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A random number below `bound`; 0 if `bound` is 0. Its bias is below `bound` / 2^32.
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.next_u64() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// A random index of a list of this length; 0 if the list is empty.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(u32::try_from(len).unwrap_or(u32::MAX)) as usize
    }

    /// A random number from `low` to `high`, both included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// `true` in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// A random item of a list.
    ///
    /// # Panics
    /// If the list is empty.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        assert!(!list.is_empty(), "a choice needs at least one alternative");
        list[self.index(list.len())]
    }

    /// A random index, with a probability in proportion to its weight; `None` if all weights are
    /// zero.
    pub fn weighted(&mut self, weights: &[u32]) -> Option<usize> {
        let total: u64 = weights.iter().map(|w| u64::from(*w)).sum();
        let mut left = u64::from(self.below(u32::try_from(total).unwrap_or(u32::MAX)));
        for (index, weight) in weights.iter().enumerate() {
            if left < u64::from(*weight) {
                return Some(index);
            }
            left -= u64::from(*weight);
        }
        None
    }
}
