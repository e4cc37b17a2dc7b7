//! The part of an OSR point that native code reads and writes at run time.

use crate::context::FLAGS;
use crate::sys::low::LowWords;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The trigger of an OSR point with a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trigger {
    /// The point fires while its flag is set.
    Armed,
    /// The point fires at a given visit within one activation.
    Countdown,
}

/// The cell of one OSR point, as native code sees it. The version and all continuations into it
/// share the cell.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Cell {
    /// The flag: the point fires at a visit while it is 1. Unused if the flag is a low word.
    armed: AtomicU32,
    trigger: u32,
    /// The number of the visit at which the point fires, counted in each activation.
    pub(crate) countdown: AtomicU64,
    /// The code that the exit jumps to: a continuation, or the stub that asks.
    pub(crate) code: AtomicPtr<u8>,
    /// How often the point has fired since the machine last read the count.
    pub(crate) fired: AtomicU64,
    /// The word that native code tests. `None` for points without a flag, and for flags for which
    /// no word was left: these are tested in `armed`.
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

    /// A cell with a flag, which is tested in a word elsewhere, if one is left.
    pub(crate) fn with_flag(words: &Arc<FlagWords>, place: FlagPlace) -> Cell {
        Cell { word: FlagWords::take(words, place), ..Cell::new(Trigger::Armed, 0) }
    }

    /// The index of the word in [`crate::context::Context::flags`] that native code tests in the
    /// place of the flag.
    pub(crate) fn word(&self) -> Option<usize> {
        let word = self.word.as_ref().filter(|word| word.place == FlagPlace::Context);
        word.map(|word| word.index)
    }

    /// The flag: 1 if set.
    pub(crate) fn flag(&self) -> &AtomicU32 {
        self.word.as_ref().and_then(FlagWord::low).unwrap_or(&self.armed)
    }

    pub(crate) fn trigger(&self) -> Trigger {
        if self.trigger == Trigger::Countdown as u32 { Trigger::Countdown } else { Trigger::Armed }
    }

    /// Makes the exit of the point jump to `code` from its next firing on. The caller keeps that
    /// code alive for as long as the cell leads to it.
    pub(crate) fn lead_to(&self, code: *const u8) {
        self.code.store(code.cast_mut(), Ordering::Release);
    }
}

/// The place of the word in which native code tests a flag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlagPlace {
    /// The context of the machine, where the word tells of interrupts, too.
    Context,
    /// Memory below 2 GiB. Its address is a constant of four bytes, so the test needs neither the
    /// context in a register nor ten bytes of code for the address.
    Low,
}

/// The words for flags that no point of an engine's versions has. Code is compiled before a machine
/// adopts it, so a word belongs to one point of the whole engine.
#[derive(Debug, Default)]
pub(crate) struct FlagWords {
    free: Mutex<FreeWords>,
    /// Mapped for the first flag with a low word. `None` if the system has no such memory.
    low: OnceLock<Option<LowWords>>,
}

#[derive(Debug, Default)]
struct FreeWords {
    /// Words from this one on were never taken.
    next: usize,
    /// Words before `next` that were given back.
    returned: Vec<usize>,
}

impl FlagWords {
    /// Takes a word, if one is left. Constant cost.
    fn take(words: &Arc<FlagWords>, place: FlagPlace) -> Option<FlagWord> {
        let mut free = words.free.lock().unwrap_or_else(PoisonError::into_inner);
        let index = free.returned.pop().or_else(|| {
            let next = free.next;
            free.next += usize::from(next < FLAGS);
            (next < FLAGS).then_some(next)
        })?;
        drop(free);
        if place == FlagPlace::Low {
            words.low.get_or_init(|| LowWords::new(FLAGS).ok());
        }
        let word = FlagWord { index, place, words: Arc::clone(words) };
        if let Some(low) = word.low() {
            // The point that had the word before may have left it set.
            low.store(0, Ordering::SeqCst);
        }
        Some(word)
    }
}

/// A word that one point has. The word is given back with the cell, which lives as long as the code
/// that tests the word.
#[derive(Debug)]
struct FlagWord {
    index: usize,
    place: FlagPlace,
    words: Arc<FlagWords>,
}

impl FlagWord {
    /// The word, if it is a low one.
    fn low(&self) -> Option<&AtomicU32> {
        let low = self.words.low.get().filter(|_| self.place == FlagPlace::Low)?;
        low.as_ref().map(|low| &low.words()[self.index])
    }
}

impl Drop for FlagWord {
    fn drop(&mut self) {
        let mut free = self.words.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.returned.push(self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, FlagPlace, FlagWords};
    use crate::context::FLAGS;
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    /// No two cells share a word, cells beyond the last word have none, and a dropped cell gives
    /// its word back.
    #[test]
    fn words_belong_to_one_cell() {
        let words = Arc::new(FlagWords::default());
        let take = || Cell::with_flag(&words, FlagPlace::Context);
        let mut cells: Vec<Cell> = (0..FLAGS + 2).map(|_| take()).collect();
        let taken: BTreeSet<usize> = cells.iter().filter_map(Cell::word).collect();
        assert_eq!(taken, (0..FLAGS).collect());
        assert_eq!(cells[FLAGS].word(), None);
        cells.swap_remove(5);
        assert_eq!(take().word(), Some(5));
    }

    /// A low word has an address of four bytes, and is clear for each cell that takes it.
    #[test]
    fn low_words_are_low_and_clear() {
        let words = Arc::new(FlagWords::default());
        let mut addresses = BTreeSet::new();
        for _ in 0..2 {
            let cell = Cell::with_flag(&words, FlagPlace::Low);
            assert_eq!(cell.word(), None);
            assert_eq!(cell.flag().swap(1, Ordering::SeqCst), 0);
            addresses.insert(std::ptr::from_ref(cell.flag()).addr());
        }
        assert!(addresses.len() == 1 && addresses.iter().all(|address| *address < 1 << 31));
    }
}
