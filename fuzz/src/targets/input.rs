//! InputBytes from the bytes of an input.

/// The bytes of an input, taken from the front. Behind the end there are zeros.
pub(super) struct InputBytes<'a>(&'a [u8]);

impl<'a> InputBytes<'a> {
    pub(super) fn new(data: &'a [u8]) -> InputBytes<'a> {
        InputBytes(data)
    }

    /// The next byte.
    pub(super) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// The next two bytes, the low one first.
    pub(super) fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// The next bytes, at most so many.
    pub(super) fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
