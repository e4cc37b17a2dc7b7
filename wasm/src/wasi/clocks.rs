//! Clocks, and waiting for them.

use super::errno::Errno;
use super::memory::{Guest, u32_at, u64_at};
use super::{Answer, Process};
use std::fmt::Debug;
use std::sync::Arc;

/// A clock of WASI preview 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockId {
    /// The time of day, since 1970.
    Realtime,
    /// Time since some start. It never goes back.
    Monotonic,
    /// Processor time of the process.
    ProcessTime,
    /// Processor time of the thread.
    ThreadTime,
}

impl ClockId {
    fn from_number(number: u64) -> Result<ClockId, Errno> {
        Ok(match number {
            0 => ClockId::Realtime,
            1 => ClockId::Monotonic,
            2 => ClockId::ProcessTime,
            3 => ClockId::ThreadTime,
            _ => return Err(Errno::Inval),
        })
    }
}

/// Clocks from outside of the library. The crate `system` has the clocks of the machine.
pub trait Clocks: Debug + Send + Sync {
    /// The time in nanoseconds.
    fn now(&self, clock: ClockId) -> u64;

    /// The resolution in nanoseconds.
    fn resolution(&self, clock: ClockId) -> u64;

    /// Waits this number of nanoseconds.
    fn sleep(&self, nanoseconds: u64);
}

/// The clocks of a process.
#[derive(Clone, Debug)]
pub(super) enum ProcessClocks {
    /// All clocks are one counter of nanoseconds, a step for each reading. Equal programs with
    /// equal input read equal times, and a program that waits for a time by reading gets there.
    Counted(u64),
    /// The embedder's clocks.
    Outside(Arc<dyn Clocks>),
}

/// Nanoseconds by which a reading moves counted clocks.
const STEP: u64 = 1_000_000;

/// The time of day at which counted clocks start: 2020-01-01, in nanoseconds since 1970.
const START: u64 = 1_577_836_800_000_000_000;

impl ProcessClocks {
    /// The time at present. It does not count as a reading.
    fn now(&self, clock: ClockId) -> u64 {
        match self {
            ProcessClocks::Counted(elapsed) if clock == ClockId::Realtime => {
                START.saturating_add(*elapsed)
            }
            ProcessClocks::Counted(elapsed) => *elapsed,
            ProcessClocks::Outside(clocks) => clocks.now(clock),
        }
    }

    fn resolution(&self, clock: ClockId) -> u64 {
        match self {
            ProcessClocks::Counted(_) => STEP,
            ProcessClocks::Outside(clocks) => clocks.resolution(clock),
        }
    }

    /// Waits. Counted clocks move on at once.
    fn sleep(&mut self, nanoseconds: u64) {
        match self {
            ProcessClocks::Counted(elapsed) => *elapsed = elapsed.saturating_add(nanoseconds),
            ProcessClocks::Outside(clocks) => clocks.sleep(nanoseconds),
        }
    }
}

/// A subscription to a clock: the value that names it, and the nanoseconds that are left.
struct Alarm {
    user: u64,
    left: u64,
}

/// An event of `poll_oneoff` in the layout of the program.
type EventBytes = [u8; 32];

/// The size of a subscription in bytes.
const SUBSCRIPTION: u64 = 48;

/// Most subscriptions in one call.
const MAX_SUBSCRIPTIONS: u64 = 1024;

/// The subscription names a point in time and no duration.
const ABSOLUTE: u32 = 1;

fn event(user: u64, kind: u8, answer: Result<u64, Errno>) -> EventBytes {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&user.to_le_bytes());
    bytes[10] = kind;
    match answer {
        Ok(ready) => bytes[16..24].copy_from_slice(&ready.to_le_bytes()),
        Err(errno) => bytes[8..10].copy_from_slice(&(errno as u16).to_le_bytes()),
    }
    bytes
}

impl Process {
    pub(super) fn clock_res_get(&self, memory: &mut Guest<'_>, clock: u64, to: u64) -> Answer {
        memory.write_u64(to, self.clocks.resolution(ClockId::from_number(clock)?))
    }

    pub(super) fn clock_time_get(&mut self, memory: &mut Guest<'_>, clock: u64, to: u64) -> Answer {
        let clock = ClockId::from_number(clock)?;
        if let ProcessClocks::Counted(elapsed) = &mut self.clocks {
            *elapsed = elapsed.saturating_add(STEP);
        }
        memory.write_u64(to, self.clocks.now(clock))
    }

    /// Waits for the first of some events. Descriptors are always ready: a read of a stream waits
    /// itself. So the call sleeps only if all subscriptions are to clocks.
    pub(super) fn poll_oneoff(
        &mut self,
        memory: &mut Guest<'_>,
        [subscriptions, events, count, told]: [u64; 4],
    ) -> Answer {
        if count == 0 || count > MAX_SUBSCRIPTIONS {
            return Err(Errno::Inval);
        }
        // Bad result addresses must not wait.
        memory.read(told, 4)?;
        memory.read(events, count * 32)?;
        let (mut happened, mut alarms) = (Vec::new(), Vec::new());
        for bytes in memory.read(subscriptions, count * SUBSCRIPTION)?.chunks_exact(48) {
            let (user, kind) = (u64_at(bytes, 0), bytes[8]);
            match kind {
                0 => match self.alarm(user, bytes) {
                    Ok(alarm) => alarms.push(alarm),
                    Err(errno) => happened.push(event(user, kind, Err(errno))),
                },
                1 | 2 => {
                    let ready = self.ready(u64::from(u32_at(bytes, 16)));
                    happened.push(event(user, kind, ready));
                }
                _ => return Err(Errno::Inval),
            }
        }
        let first = alarms.iter().map(|alarm| alarm.left).min().unwrap_or(0);
        let waited = if happened.is_empty() { first } else { 0 };
        if waited > 0 {
            self.clocks.sleep(waited);
        }
        let rung = alarms.iter().filter(|alarm| alarm.left <= waited);
        happened.extend(rung.map(|alarm| event(alarm.user, 0, Ok(0))));
        memory.write(events, happened.as_flattened())?;
        memory.write_u32(told, happened.len() as u32) // at most MAX_SUBSCRIPTIONS
    }

    fn alarm(&self, user: u64, bytes: &[u8]) -> Result<Alarm, Errno> {
        let clock = ClockId::from_number(u32_at(bytes, 16).into())?;
        let timeout = u64_at(bytes, 24);
        let is_absolute = u32_at(bytes, 40) & ABSOLUTE != 0;
        let passed = if is_absolute { self.clocks.now(clock) } else { 0 };
        Ok(Alarm { user, left: timeout.saturating_sub(passed) })
    }
}
