//! The effect trace: what the outside could see a program do, in order.
//!
//! Stores and writes of globals are not entries; they are compared as contents of memory. Where
//! memory is tracked, every entry also carries the digest of memory at that moment, so that a store
//! that moved across a call shows.

use super::limits::TraceLevel;
use super::memory::scramble;
use ir::entity::{Func, Memory, Table};
use ir::trap::TrapKind;

/// One visible effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// A function of the module or of the host was called.
    Call {
        /// The function.
        func: Func,
        /// Its arguments.
        args: Vec<u64>,
    },
    /// A function returned: that of the last `Call` that has not returned, or the one invoked.
    Return {
        /// The results.
        results: Vec<u64>,
    },
    /// A memory was asked to grow.
    Grow {
        /// The memory.
        memory: Memory,
        /// The pages asked for.
        pages: u32,
        /// The size before, or -1.
        result: u32,
    },
    /// A table was asked to grow.
    GrowTable {
        /// The table.
        table: Table,
        /// What new entries hold.
        entry: u64,
        /// The entries asked for.
        by: u32,
        /// The size before, or -1.
        result: u32,
    },
    /// The program trapped.
    Trap(TrapKind),
    /// The program exited through the host.
    Exit(i32),
}

/// The effects of a machine so far. See the module documentation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    level: TraceLevel,
    count: u64,
    digest: u64,
    effects: Vec<(Effect, u64)>,
}

impl Trace {
    pub(super) fn new(level: TraceLevel) -> Trace {
        Trace { level, count: 0, digest: 0, effects: Vec::new() }
    }

    /// The number of effects; 0 when none are kept.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// A digest of the effects, their order and, where tracked, of memory at each. Equal traces
    /// have equal digests; different ones differ but for chance (2^-64).
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Every effect with the digest of memory at it (0 where it is not tracked); empty unless the
    /// level is [`TraceLevel::Full`].
    pub fn effects(&self) -> &[(Effect, u64)] {
        &self.effects
    }

    /// Whether nothing is kept.
    pub(super) fn is_off(&self) -> bool {
        self.level == TraceLevel::Off
    }

    pub(super) fn call(&mut self, func: Func, args: &[u64], memory: u64) {
        self.fold(&[1, u64::from(func.as_u32())], args, memory);
        self.keep(memory, || Effect::Call { func, args: args.to_vec() });
    }

    pub(super) fn ret(&mut self, results: &[u64], memory: u64) {
        self.fold(&[2], results, memory);
        self.keep(memory, || Effect::Return { results: results.to_vec() });
    }

    pub(super) fn grow(&mut self, grown: Memory, pages: u32, result: u32, memory: u64) {
        self.fold(&[3, u64::from(grown.as_u32())], &[pages.into(), result.into()], memory);
        self.keep(memory, || Effect::Grow { memory: grown, pages, result });
    }

    pub(super) fn grow_table(
        &mut self,
        table: Table,
        entry: u64,
        by: u32,
        result: u32,
        memory: u64,
    ) {
        self.fold(&[6, u64::from(table.as_u32())], &[entry, by.into(), result.into()], memory);
        self.keep(memory, || Effect::GrowTable { table, entry, by, result });
    }

    pub(super) fn trap(&mut self, kind: TrapKind, memory: u64) {
        let number = match kind {
            TrapKind::Unreachable => 0,
            TrapKind::DivisionByZero => 1,
            TrapKind::IntegerOverflow => 2,
            TrapKind::InvalidConversion => 3,
            TrapKind::MemoryOutOfBounds => 4,
            TrapKind::TableOutOfBounds => 5,
            TrapKind::NullFunction => 6,
            TrapKind::SignatureMismatch => 7,
            TrapKind::User(number) => 8 + u64::from(number),
        };
        self.fold(&[4, number], &[], memory);
        self.keep(memory, || Effect::Trap(kind));
    }

    pub(super) fn exit(&mut self, status: i32, memory: u64) {
        self.fold(&[5, u64::from(status as u32)], &[], memory);
        self.keep(memory, || Effect::Exit(status));
    }

    /// Folds one effect into the digest. Signatures say how many values follow a head, so two
    /// traces of one module cannot be one sequence of words.
    fn fold(&mut self, head: &[u64], values: &[u64], memory: u64) {
        if self.is_off() {
            return;
        }
        self.count += 1;
        let start = scramble(self.digest, memory);
        self.digest = head.iter().chain(values).fold(start, |digest, word| scramble(digest, *word));
    }

    fn keep(&mut self, memory: u64, effect: impl FnOnce() -> Effect) {
        if self.level == TraceLevel::Full {
            self.effects.push((effect(), memory));
        }
    }
}
