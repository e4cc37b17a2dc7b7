//! The part of an OSR point that native code reads and writes at run time.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

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
    /// The flag: the point fires at a visit while it is 1.
    pub(crate) armed: AtomicU32,
    trigger: u32,
    /// The number of the visit at which the point fires, counted in each activation.
    pub(crate) countdown: AtomicU64,
    /// The code that the exit jumps to: a continuation, or the stub that asks.
    pub(crate) code: AtomicPtr<u8>,
    /// How often the point has fired since the machine last read the count.
    pub(crate) fired: AtomicU64,
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
        }
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
