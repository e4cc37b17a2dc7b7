//! Random bytes from a seed, so that runs can be repeated. They do not suit secrets.

/// A generator (SplitMix64). Its period is 2^64 words.
#[derive(Clone, Debug)]
pub(super) struct RandomBytes(u64);

impl RandomBytes {
    pub(super) fn new(seed: u64) -> RandomBytes {
        RandomBytes(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Fills a piece of memory. A call takes whole words, so the bytes depend on the lengths of
    /// the calls before.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        for piece in bytes.chunks_mut(8) {
            piece.copy_from_slice(&self.next().to_le_bytes()[..piece.len()]);
        }
    }
}
