//! The one source of choice: a small generator with a fixed algorithm.
//!
//! A seed in a bug report must make the same program for as long as the project lives, so the
//! algorithm is written here and not taken from a crate, whose streams change between versions:
//! SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).

/// A deterministic stream of choices. Not for secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prng {
    state: u64,
}

impl Prng {
    /// The stream of a seed. Every seed is good, neighboring ones too.
    pub fn new(seed: u64) -> Prng {
        Prng { state: seed }
    }

    /// A stream that is independent of what this one yields from here on, and named by `tag`:
    /// taking more choices in one part of a program does not change the others.
    pub fn fork(&self, tag: u64) -> Prng {
        let mut child = Prng::new(self.state ^ tag.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Prng::new(child.next_u64())
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, and 0 when `bound` is 0. The bias is below `bound` / 2^32.
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.next_u64() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// An index of a list of this length, and 0 when it is empty.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(u32::try_from(len).unwrap_or(u32::MAX)) as usize
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// One of a list.
    ///
    /// # Panics
    /// When the list is empty.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        assert!(!list.is_empty(), "a choice needs at least one alternative");
        list[self.index(list.len())]
    }

    /// The index of one of the weights, in proportion to them; `None` when all are zero.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        let mut prng = Prng::new(1234567);
        let expected = [
            6457827717110365317,
            3203168211198807973,
            9817491932198370423,
            4593380528125082431,
            16408922859458223821,
        ];
        assert_eq!(expected.map(|_| prng.next_u64()), expected);
    }

    #[test]
    fn weights_of_zero_are_never_chosen() {
        let mut prng = Prng::new(1);
        let mut seen = [0u32; 4];
        for _ in 0..1000 {
            seen[prng.weighted(&[0, 1, 0, 3]).expect("some weight is positive")] += 1;
        }
        assert_eq!((seen[0], seen[2]), (0, 0));
        assert!(seen[1] > 150 && seen[3] > 600, "{seen:?}");
        assert_eq!(prng.weighted(&[0, 0]), None);
        assert_eq!(prng.weighted(&[]), None);
    }

    #[test]
    fn a_fork_does_not_depend_on_later_draws() {
        let parent = Prng::new(7);
        let mut drawn = parent.clone();
        let fork = parent.fork(3);
        drawn.next_u64();
        assert_eq!(parent.fork(3), fork);
        assert_ne!(parent.fork(4), fork);
        assert_ne!(drawn.fork(3), fork);
    }
}
