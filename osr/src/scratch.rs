//! Tables that are cleared in constant time.

/// A map from small indices. Advancing the epoch clears it. A search reuses its tables at every
/// point of a function, and clearing them must not cost the size of the function each time.
#[derive(Debug)]
pub(crate) struct Scratch<T> {
    epoch: u32,
    entries: Vec<(u32, T)>,
}

impl<T: Copy + Default> Default for Scratch<T> {
    fn default() -> Scratch<T> {
        Scratch::new()
    }
}

impl<T: Copy + Default> Scratch<T> {
    pub(crate) fn new() -> Scratch<T> {
        Scratch { epoch: 1, entries: Vec::new() }
    }

    pub(crate) fn clear(&mut self) {
        // The epoch would wrap to numbers that old entries carry, and bring them back.
        if self.epoch == u32::MAX {
            self.entries.clear();
            self.epoch = 0;
        }
        self.epoch += 1;
    }

    pub(crate) fn get(&self, index: usize) -> Option<T> {
        self.entries.get(index).filter(|(epoch, _)| *epoch == self.epoch).map(|(_, value)| *value)
    }

    /// Removes an entry.
    pub(crate) fn unset(&mut self, index: usize) {
        if let Some((epoch, _)) = self.entries.get_mut(index) {
            *epoch = 0;
        }
    }

    pub(crate) fn set(&mut self, index: usize, value: T) {
        if self.entries.len() <= index {
            self.entries.resize(index + 1, (0, T::default()));
        }
        self.entries[index] = (self.epoch, value);
    }
}
