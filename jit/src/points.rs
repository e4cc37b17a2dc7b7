//! The OSR points of a version, as native code sees them.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// What makes an OSR point with a test fire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trigger {
    /// Its flag.
    Armed,
    /// So many visits in one activation.
    Countdown,
}

/// What native code reads of one OSR point. All versions and continuations that have the point
/// share it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Cell {
    /// 1: fires at the next visit.
    pub(crate) armed: AtomicU32,
    trigger: u32,
    /// The visit of an activation at which it fires.
    pub(crate) countdown: AtomicU64,
    /// Where control goes on: a continuation, or the stub that asks.
    pub(crate) code: AtomicPtr<u8>,
    /// How often it has fired.
    pub(crate) fired: AtomicU64,
}

impl Cell {
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

    pub(crate) fn lead_to(&self, code: *const u8) {
        self.code.store(code.cast_mut(), Ordering::Release);
    }
}
