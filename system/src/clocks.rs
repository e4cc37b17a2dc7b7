//! The clocks of the machine.

use rustix::time::{ClockId as Id, Timespec, clock_getres, clock_gettime};
use std::thread;
use std::time::Duration;
use wasm::wasi::{ClockId, Clocks};

/// The clocks of this machine. Sleeping blocks the thread.
#[derive(Clone, Copy, Default, Debug)]
pub struct MachineClocks;

impl MachineClocks {
    /// The clocks.
    pub fn new() -> MachineClocks {
        MachineClocks
    }
}

fn id(clock: ClockId) -> Id {
    match clock {
        ClockId::Realtime => Id::Realtime,
        ClockId::Monotonic => Id::Monotonic,
        ClockId::ProcessTime => Id::ProcessCPUTime,
        ClockId::ThreadTime => Id::ThreadCPUTime,
    }
}

/// Nanoseconds; 0 before 1970.
fn nanoseconds(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

impl Clocks for MachineClocks {
    fn now(&self, clock: ClockId) -> u64 {
        nanoseconds(clock_gettime(id(clock)))
    }

    fn resolution(&self, clock: ClockId) -> u64 {
        nanoseconds(clock_getres(id(clock)))
    }

    fn sleep(&self, nanoseconds: u64) {
        thread::sleep(Duration::from_nanos(nanoseconds));
    }
}
