//! The effect trace: the observable actions of a program, in order.
//!
//! Stores and global writes are not entries; they are compared as contents of memory. Where memory
//! is tracked, every entry carries the digest of memory at that moment. A store that moved across a
//! call therefore changes the trace. Calls of functions that are declared `reads` or `pure`
//! ([`ir::DeclaredEffect`]) are no entries: versions may differ in their number and order.

use super::limits::TraceLevel;
use super::memory::scramble;
use ir::entity::{Func, Memory, Table};
use ir::trap::TrapKind;

/// One observable effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// A call of a function, imported or not.
    Call {
        /// The function.
        func: Func,
        /// Its arguments.
        args: Vec<u64>,
    },
    /// A return of a function: of the last `Call` that has not returned, or of the function
    /// invoked.
    Return {
        /// The results.
        results: Vec<u64>,
    },
    /// An attempt to grow a memory.
    Grow {
        /// The memory.
        memory: Memory,
        /// The number of pages requested.
        pages: u32,
        /// The previous size in pages, or -1.
        result: u32,
    },
    /// An attempt to grow a table.
    GrowTable {
        /// The table.
        table: Table,
        /// The contents of the new entries.
        entry: u64,
        /// The number of entries requested.
        by: u32,
        /// The previous size in entries, or -1.
        result: u32,
    },
    /// The program trapped, perhaps with an operand.
    Trap(TrapKind, Option<u64>),
    /// The program exited through the host.
    Exit(i32),
}

/// The effects of a machine so far. The module documentation lists which effects are entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    level: TraceLevel,
    count: u64,
    digest: u64,
    outer: u64,
    effects: Vec<(Effect, u64)>,
}

impl Trace {
    pub(super) fn new(level: TraceLevel) -> Trace {
        Trace { level, count: 0, digest: 0, outer: 0, effects: Vec::new() }
    }

    /// The number of effects; 0 when the level is [`TraceLevel::Off`].
    pub fn count(&self) -> u64 {
        self.count
    }

    /// A digest of the effects and their order. Where memory is tracked, it covers memory at each
    /// effect too. Equal traces have equal digests; unequal traces have equal digests with a chance
    /// of 2^-64.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// As [`Trace::digest`], of *outer* effects alone: all but calls and returns of functions with
    /// a body. A version with inlined code has the outer effects of its base, and fewer calls.
    pub fn outer_digest(&self) -> u64 {
        self.outer
    }

    /// Every effect with the digest of memory at that moment, or 0 where memory is not tracked.
    /// Empty unless the level is [`TraceLevel::Full`].
    pub fn effects(&self) -> &[(Effect, u64)] {
        &self.effects
    }

    /// Whether the trace records nothing.
    pub(super) fn is_off(&self) -> bool {
        self.level == TraceLevel::Off
    }

    /// A call of an imported function.
    pub(super) fn call_host(&mut self, func: Func, args: &[u64], memory: u64) {
        self.fold_outer(&[1, u64::from(func.as_u32())], args, memory);
        self.keep(memory, || Effect::Call { func, args: args.to_vec() });
    }

    /// A return of an imported function.
    pub(super) fn ret_host(&mut self, results: &[u64], memory: u64) {
        self.fold_outer(&[2], results, memory);
        self.keep(memory, || Effect::Return { results: results.to_vec() });
    }

    /// A call of a function with a body.
    pub(super) fn call(&mut self, func: Func, args: &[u64], memory: u64) {
        self.fold(&[1, u64::from(func.as_u32())], args, memory);
        self.keep(memory, || Effect::Call { func, args: args.to_vec() });
    }

    pub(super) fn ret(&mut self, results: &[u64], memory: u64) {
        self.fold(&[2], results, memory);
        self.keep(memory, || Effect::Return { results: results.to_vec() });
    }

    pub(super) fn grow(&mut self, grown: Memory, pages: u32, result: u32, memory: u64) {
        self.fold_outer(&[3, u64::from(grown.as_u32())], &[pages.into(), result.into()], memory);
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
        self.fold_outer(
            &[6, u64::from(table.as_u32())],
            &[entry, by.into(), result.into()],
            memory,
        );
        self.keep(memory, || Effect::GrowTable { table, entry, by, result });
    }

    pub(super) fn trap(&mut self, kind: TrapKind, operand: Option<u64>, memory: u64) {
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
        self.fold_outer(&[4, number], operand.as_slice(), memory);
        self.keep(memory, || Effect::Trap(kind, operand));
    }

    pub(super) fn exit(&mut self, status: i32, memory: u64) {
        self.fold_outer(&[5, u64::from(status as u32)], &[], memory);
        self.keep(memory, || Effect::Exit(status));
    }

    /// Folds an outer effect into both digests.
    fn fold_outer(&mut self, head: &[u64], values: &[u64], memory: u64) {
        if self.is_off() {
            return;
        }
        let start = scramble(self.outer, memory);
        self.outer = head.iter().chain(values).fold(start, |digest, word| scramble(digest, *word));
        self.fold(head, values, memory);
    }

    /// Folds one effect into the digest. The head of an effect and the signature of its function
    /// determine the number of values. So two different traces of one module never fold the same
    /// words.
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
