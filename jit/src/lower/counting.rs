//! Lowers the counting of events ([`crate::NativeCounts`]).

use super::Lowering;
use crate::abi::POINTER;
use crate::counters::{CountedEvent, CounterPlace, NativeCounts, TARGET_WORDS};
use crate::stubs::to_word;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, InstBuilder, types};
use interp::MAX_TARGETS;
use ir::{Inst, InstData, Value};

/// The counters of a version, for the lowering of the version or of a continuation into it.
#[derive(Clone, Copy)]
pub(crate) struct Counting<'a> {
    pub(crate) counters: &'a NativeCounts,
    /// Maps each instruction of the function to its original in the version
    /// ([`crate::engine::Request`]).
    pub(crate) origins: Option<&'a [Option<Inst>]>,
}

impl Counting<'_> {
    fn place(&self, inst: Inst) -> Option<CounterPlace> {
        let of = match self.origins {
            Some(origins) => *origins.get(inst.as_u32() as usize)?,
            None => Some(inst),
        };
        self.counters.place(of?)
    }
}

impl Lowering<'_, '_> {
    fn place(&self, inst: Inst) -> Option<CounterPlace> {
        self.unit.counting?.place(inst)
    }

    fn counter_address(&mut self, word: usize) -> Option<clif::Value> {
        let address = self.unit.counting?.counters.address(word);
        Some(self.builder.ins().iconst(POINTER, address as i64))
    }

    /// Adds 1 to the word at an address.
    fn increase(&mut self, address: clif::Value, offset: i32) {
        let flags = self.context_flags();
        let count = self.builder.ins().load(types::I64, flags, address, offset);
        let count = self.builder.ins().iadd_imm_s(count, 1);
        self.builder.ins().store(flags, count, address, offset);
    }

    /// Counts a call of the version.
    pub(super) fn count_call(&mut self) {
        let Some(address) = self.counter_address(0) else { return };
        self.increase(address, 0);
        for (number, argument) in self.unit.function.arguments().iter().enumerate() {
            self.note(NativeCounts::argument(number), *argument);
        }
    }

    /// Counts a visit of the first target of a branch if the condition is not zero, and of the
    /// second otherwise.
    pub(super) fn count_side(&mut self, inst: Inst, condition: clif::Value) {
        let Some(address) = self.side_address(inst, 2) else { return };
        let [first, second] = [0, 8].map(|bytes| self.builder.ins().iconst(POINTER, bytes));
        let offset = self.builder.ins().select(condition, first, second);
        let address = self.builder.ins().iadd(address, offset);
        self.increase(address, 0);
    }

    /// Counts a visit of a target of a `switch`.
    pub(super) fn count_choice(&mut self, inst: Inst, index: clif::Value, targets: usize) {
        let Some(address) = self.side_address(inst, targets) else { return };
        let index = self.builder.ins().uextend(POINTER, index);
        let last = self.builder.ins().iconst(POINTER, targets as i64 - 1);
        let choice = self.builder.ins().umin(index, last);
        let offset = self.builder.ins().ishl_imm_u(choice, 3);
        let address = self.builder.ins().iadd(address, offset);
        self.increase(address, 0);
    }

    fn side_address(&mut self, inst: Inst, targets: usize) -> Option<clif::Value> {
        let CounterPlace { at, event } = self.place(inst)?;
        // A continuation may lack a target of the version's branch.
        let is_alike = event == CountedEvent::Side(targets);
        self.counter_address(at).filter(|_| is_alike)
    }

    /// Records the result of a load or of a read of a global.
    pub(super) fn count_result(&mut self, inst: Inst, data: &InstData) {
        let (Some(place), Some(result)) = (self.place(inst), data.result()) else { return };
        if place.event == CountedEvent::Result {
            self.note(place.at, result);
        }
    }

    /// Records contents in the two words from an index on.
    fn note(&mut self, word: usize, value: Value) {
        let Some(address) = self.counter_address(word) else { return };
        let held = self.observed(value);
        let ty = self.type_of(value);
        let bits = to_word(&mut self.builder, held, ty);
        let flags = self.context_flags();
        let every = self.builder.ins().load(types::I64, flags, address, 0);
        let every = self.builder.ins().band(every, bits);
        self.builder.ins().store(flags, every, address, 0);
        let some = self.builder.ins().load(types::I64, flags, address, 8);
        let some = self.builder.ins().bor(some, bits);
        self.builder.ins().store(flags, some, address, 8);
    }

    /// Counts an indirect call of a function at a table index: looks for the target in its words,
    /// or for the first free ones.
    pub(super) fn count_target(&mut self, inst: Inst, index: clif::Value, func: clif::Value) {
        let Some(place) = self.place(inst).filter(|place| place.event == CountedEvent::Call) else {
            return;
        };
        let Some(first) = self.counter_address(place.at) else { return };
        let high = self.builder.ins().ishl_imm_u(index, 32);
        let low = self.builder.ins().iadd_imm_s(func, 1);
        let key = self.builder.ins().bor(high, low);
        let end = self.builder.ins().iadd_imm_s(first, (8 * TARGET_WORDS * MAX_TARGETS) as i64);
        let [look, other, take, hit, past, on] = [(); 6].map(|()| self.builder.create_block());
        for block in [look, hit] {
            self.builder.append_block_param(block, POINTER);
        }
        let flags = self.context_flags();
        self.builder.ins().jump(look, &[first.into()]);
        self.builder.switch_to_block(look);
        let at = self.builder.block_params(look)[0];
        let known = self.builder.ins().load(types::I64, flags, at, 0);
        let same = self.builder.ins().icmp(IntCC::Equal, known, key);
        self.builder.ins().brif(same, hit, &[at.into()], other, &[]);
        self.builder.switch_to_block(other);
        let next = self.builder.ins().iadd_imm_s(at, 8 * TARGET_WORDS as i64);
        let is_last = self.builder.ins().icmp(IntCC::Equal, next, end);
        let [more, search] = [self.builder.create_block(), self.builder.create_block()];
        self.builder.ins().brif(known, more, &[], take, &[]);
        self.builder.switch_to_block(more);
        self.builder.ins().brif(is_last, past, &[], search, &[]);
        self.builder.switch_to_block(search);
        self.builder.ins().jump(look, &[next.into()]);
        self.builder.switch_to_block(take);
        self.builder.ins().store(flags, key, at, 0);
        self.builder.ins().jump(hit, &[at.into()]);
        self.builder.switch_to_block(hit);
        let found = self.builder.block_params(hit)[0];
        self.increase(found, 8);
        self.builder.ins().jump(on, &[]);
        self.builder.switch_to_block(past);
        self.increase(end, 0);
        self.builder.ins().jump(on, &[]);
        self.builder.switch_to_block(on);
    }
}
