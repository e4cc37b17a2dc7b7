//! The part of an OSR point that native code reads and writes at run time.

use crate::context::FLAGS;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What makes an OSR point fire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trigger {
    /// The point fires while its flag is set.
    Armed,
    /// The point fires at a given visit within one activation.
    Countdown,
    /// The point has no test of its own: a branch of the code leads to its exit where an
    /// assumption fails.
    Assumption,
}

/// The cell of one OSR point, as native code sees it. The version and all continuations into it
/// share the cell.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Cell {
    /// The flag: the point fires at a visit while it is 1.
    pub(crate) armed: AtomicU32,
    trigger: u32,
    /// The number of the visit at which the point fires, counted in each activation.
    pub(crate) countdown: AtomicU64,
    /// The code that the exit jumps to: a continuation, or the stub that asks the machine for one.
    pub(crate) code: AtomicPtr<u8>,
    /// How often the point has fired since the machine last read the count.
    pub(crate) fired: AtomicU64,
    /// The word of the context that native code tests in place of `armed`. `None` for points
    /// without a flag, in code without polls, and after all words are taken.
    word: Option<FlagWord>,
}

impl Cell {
    /// A cell that is disarmed and leads nowhere. `countdown` is read for [`Trigger::Countdown`]
    /// alone.
    pub(crate) fn new(trigger: Trigger, countdown: u64) -> Cell {
        Cell {
            armed: AtomicU32::new(0),
            trigger: trigger as u32,
            countdown: AtomicU64::new(countdown),
            code: AtomicPtr::new(std::ptr::null_mut()),
            fired: AtomicU64::new(0),
            word: None,
        }
    }

    /// A cell whose flag is tested in a word of the context, if one is left.
    pub(crate) fn with_flag(words: &Arc<FlagWords>) -> Cell {
        Cell { word: FlagWords::take(words), ..Cell::new(Trigger::Armed, 0) }
    }

    /// The index of the word in front of the context that shows the flag.
    pub(crate) fn word(&self) -> Option<usize> {
        self.word.as_ref().map(|word| word.index)
    }

    pub(crate) fn trigger(&self) -> Trigger {
        match self.trigger {
            of if of == Trigger::Countdown as u32 => Trigger::Countdown,
            of if of == Trigger::Assumption as u32 => Trigger::Assumption,
            _ => Trigger::Armed,
        }
    }

    /// Makes the exit of the point jump to `code` from its next firing on. The caller keeps that
    /// code alive for as long as the cell leads to it.
    pub(crate) fn lead_to(&self, code: *const u8) {
        self.code.store(code.cast_mut(), Ordering::Release);
    }
}

/// The words in front of contexts (`ContextBlock::flags`) that are free: no point of an engine's
/// versions has them. Code is compiled before a machine adopts it, so a word belongs to one point
/// of the whole engine.
#[derive(Debug, Default)]
pub(crate) struct FlagWords(Mutex<FreeWords>);

#[derive(Debug, Default)]
struct FreeWords {
    /// Words from this one on were never taken.
    next: usize,
    /// Words before `next` that were given back.
    returned: Vec<usize>,
}

impl FlagWords {
    /// Takes a word, if one is left. Constant cost.
    fn take(words: &Arc<FlagWords>) -> Option<FlagWord> {
        let mut free = words.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = free.returned.pop().or_else(|| {
            let next = free.next;
            free.next += usize::from(next < FLAGS);
            (next < FLAGS).then_some(next)
        })?;
        Some(FlagWord { index, words: Arc::clone(words) })
    }
}

/// A word that belongs to one point. The cell returns the word when it is dropped; it lives as long
/// as the code that tests the word.
#[derive(Debug)]
struct FlagWord {
    index: usize,
    words: Arc<FlagWords>,
}

impl Drop for FlagWord {
    fn drop(&mut self) {
        let mut free = self.words.0.lock().unwrap_or_else(PoisonError::into_inner);
        free.returned.push(self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, FlagWords};
    use crate::context::FLAGS;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    /// No two cells share a word, cells beyond the last word lack a word, and a dropped cell
    /// returns its word.
    #[test]
    fn words_belong_to_one_cell() {
        let words = Arc::new(FlagWords::default());
        let mut cells: Vec<Cell> = (0..FLAGS + 2).map(|_| Cell::with_flag(&words)).collect();
        let taken: BTreeSet<usize> = cells.iter().filter_map(Cell::word).collect();
        assert_eq!(taken, (0..FLAGS).collect());
        assert_eq!(cells[FLAGS].word(), None);
        cells.swap_remove(5);
        assert_eq!(Cell::with_flag(&words).word(), Some(5));
    }
}
