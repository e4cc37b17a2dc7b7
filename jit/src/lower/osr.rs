//! Lowers OSR points: their conditions and their exits.
//!
//! The hot path is as short as possible. A flag costs a load and a branch, a countdown a
//! subtraction and a branch, and a guard a branch on a value of the program. A flag at a place that
//! polls for interrupts anyway costs nothing more: one word of the context covers both, and the
//! shared tail of all exits distinguishes them.
//!
//! Side exits sit in cold blocks. An exit either stores its values to the buffer and jumps, or is a
//! call with a stack map ([`crate::exits`]). Passing the values as arguments would pin them to
//! registers, and the register allocator lets such constraints leak into the hot loop.

use super::ExitShape;
use super::Lowering;
use crate::abi::{self, POINTER};
use crate::config::Exits;
use crate::context::{flag_offset, offset};
use crate::points::{Cell, Trigger};
use crate::traps;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self as clif, BlockArg, BlockCall, ExceptionTableData, ExceptionTableItem, InstBuilder,
    MemFlagsData, types,
};
use ir::{Imm, Inst, InstData, Opcode, Type};
use std::mem::offset_of;

/// The number of the OSR point of an instruction.
fn number(data: &InstData) -> u32 {
    match data.imm {
        Imm::Exit(point) => point.as_u32(),
        _ => unreachable!("jit: {} names an OSR point", data.opcode.name()),
    }
}

impl Lowering<'_, '_> {
    fn cell(&self, number: u32) -> &Cell {
        &self.unit.cells[number as usize]
    }

    /// Whether the point has a cell. A point in the text of the program lacks a cell, and behaves
    /// as the interpreter does.
    fn is_known(&self, number: u32) -> bool {
        (number as usize) < self.unit.cells.len()
    }

    /// The address of the cell of a point, as a constant.
    fn cell_address(&mut self, number: u32) -> clif::Value {
        let address = std::ptr::from_ref(self.cell(number)).addr();
        self.builder.ins().iconst(POINTER, address as i64)
    }

    /// Gives every countdown point a counter. The counter is an ordinary variable, so it lives in a
    /// register.
    pub(super) fn start_counters(&mut self) {
        let function = self.unit.function;
        for inst in
            function.all_insts().filter(|inst| function.inst(*inst).opcode == Opcode::OsrTest)
        {
            let number = number(function.inst(inst));
            let counts = self.is_known(number) && self.cell(number).trigger() == Trigger::Countdown;
            if !counts || self.counters.contains_key(&number) {
                continue;
            }
            let counter = self.builder.declare_var(types::I64);
            let cell = self.cell_address(number);
            let flags = self.context_flags();
            let start = self.builder.ins().load(
                types::I64,
                flags,
                cell,
                offset_of!(Cell, countdown) as i32,
            );
            self.builder.def_var(counter, start);
            self.counters.insert(number, counter);
        }
    }

    /// Whether the instruction is a test of a known point whose only user is the branch right
    /// behind it.
    pub(super) fn is_fused_test(&self, inst: Inst) -> bool {
        let function = self.unit.function;
        let data = function.inst(inst);
        let Some(result) =
            data.result().filter(|_| data.opcode == Opcode::OsrTest && self.is_known(number(data)))
        else {
            return false;
        };
        let terminator = function.terminator(function.inst_block(inst));
        function.inst(terminator).opcode == Opcode::BrIf
            && function.inst(terminator).args[0] == result
            && function.users(result) == [terminator]
            && function.next_inst(inst) == Some(terminator)
    }

    /// Lowers a test whose result is an ordinary value. The test of a point without a cell is
    /// always zero.
    pub(super) fn osr_test(&mut self, data: &InstData) {
        if !self.is_known(number(data)) {
            let never = self.builder.ins().iconst(types::I32, 0);
            return self.define(data, &[never]);
        }
        let truth = match self.cell(number(data)).trigger() {
            Trigger::Countdown => self.count_down(number(data)),
            Trigger::Armed | Trigger::Assumption => {
                let armed = self.load_armed(number(data));
                self.builder.ins().icmp_imm_s(IntCC::NotEqual, armed, 0)
            }
        };
        let result = self.builder.ins().uextend(types::I32, truth);
        self.define(data, &[result]);
    }

    /// Ends the block with a branch to the first target if the point fires.
    pub(super) fn branch_on_test(&mut self, test: Inst) {
        let number = number(self.unit.function.inst(test));
        if self.cell(number).trigger() == Trigger::Countdown {
            let out = self.count_down(number);
            return self.branch(out);
        }
        let armed = self.flag_is_set(test);
        self.branch(armed);
    }

    /// Emits a test whether the flag of a fused test is set or an interrupt requested.
    fn flag_is_set(&mut self, test: Inst) -> clif::Value {
        let number = number(self.unit.function.inst(test));
        let Some(word) = self.tested_word(test) else { return self.load_armed(number) };
        // The common exit block finds out whether an interrupt was requested. A block between this
        // test and the exit would lead back into the loop. It could leave the loop and would
        // dominate the rest of the loop, and Cranelift hoists nothing out of a loop from below such
        // a block.
        self.polling = true;
        let flags = self.context_flags();
        self.builder.ins().load(types::I32, flags, self.context, word)
    }

    /// For a flag test that is fused with its branch: the word of the context that shows the flag.
    /// `None` if code has to test the cell, because no word was left or the branch does not lead to
    /// an exit of its own. The word also shows interrupts, and only such an exit distinguishes the
    /// two.
    pub(super) fn tested_word(&self, test: Inst) -> Option<i32> {
        let function = self.unit.function;
        let data = function.inst(test);
        if !self.is_fused_test(test) {
            return None;
        }
        let word = self.flag_word(number(data))?;
        let branch = function.inst(function.terminator(function.inst_block(test)));
        let exit = branch.targets[0].block;
        let last = function.inst(function.terminator(exit));
        let is_own = last.opcode == Opcode::OsrExit && last.imm == data.imm;
        (is_own && function.predecessors(exit).len() == 1).then_some(word)
    }

    /// The offset of the word of the context that shows a flag.
    fn flag_word(&self, number: u32) -> Option<i32> {
        let cell = self.cell(number);
        cell.word().map(flag_offset)
    }

    /// Counts one visit. Returns whether the point fires at it.
    fn count_down(&mut self, number: u32) -> clif::Value {
        let counter = self.counters[&number];
        let left = self.builder.use_var(counter);
        let left = self.builder.ins().iadd_imm_s(left, -1);
        self.builder.def_var(counter, left);
        self.builder.ins().icmp_imm_s(IntCC::Equal, left, 0)
    }

    fn load_armed(&mut self, number: u32) -> clif::Value {
        let cell = self.cell_address(number);
        let flags = self.context_flags();
        self.builder.ins().load(types::I32, flags, cell, offset_of!(Cell, armed) as i32)
    }

    /// Marks the current block as cold, so that Cranelift places it behind the hot code.
    fn make_cold(&mut self) {
        // Cranelift rejects a cold entry block (`tests/oir/passes/dse/an_exit_sees_memory.oir`).
        let entry = self.builder.func.layout.entry_block();
        if let Some(block) = self.builder.current_block().filter(|block| entry != Some(*block)) {
            self.builder.set_cold_block(block);
        }
    }

    /// Lowers the exit of an OSR point.
    pub(super) fn osr_exit(&mut self, inst: Inst, data: &InstData) {
        self.make_cold();
        let values: Vec<clif::Value> = data.args.iter().map(|arg| self.observed(*arg)).collect();
        // Replacing NaNs has split the block, and the current block is a new one.
        self.make_cold();
        let handed: Vec<(Type, Option<u64>)> = data
            .args
            .iter()
            .map(|arg| (self.type_of(*arg), self.unit.function.constant(*arg)))
            .collect();
        if !self.is_known(number(data)) {
            return self.end_at_exit(number(data), &handed, &values);
        }
        let number = number(data);
        match self.unit.config.exits {
            Exits::Stored => self.stored_exit(number, &values),
            Exits::Described => {
                self.described_exit(inst, ExitShape { number, values: handed }, &values)
            }
        }
    }

    /// Lowers an assumption without an exit, whose failure ends the run; one that calls make true
    /// has no test. The result is the literal,
    /// which costs nothing at its uses.
    pub(super) fn assume(&mut self, inst: Inst, data: &InstData) {
        let Imm::Assumed(bits, reason) = data.imm else {
            unreachable!("jit: {} names the bits it expects", data.opcode.name())
        };
        if self.unit.is_untested(inst) {
            let literal = self.literal(data.ty, bits);
            return self.define(data, &[literal]);
        }
        // Bits are compared, so a NaN must be the canonical one, and -0 is not +0.
        let value = self.observed(data.args[0]);
        let word = match data.ty {
            Type::F32 => self.builder.ins().bitcast(types::I32, MemFlagsData::new(), value),
            Type::F64 => self.builder.ins().bitcast(types::I64, MemFlagsData::new(), value),
            _ => value,
        };
        let differs = self.builder.ins().icmp_imm_u(IntCC::NotEqual, word, bits as i64);
        let [failed, on] = [self.builder.create_block(), self.builder.create_block()];
        self.builder.set_cold_block(failed);
        self.builder.ins().brif(differs, failed, &[], on, &[]);
        self.builder.switch_to_block(failed);
        let flags = self.context_flags();
        let number = self.builder.ins().iconst(types::I64, i64::from(reason));
        self.builder.ins().store(flags, number, self.context, offset!(trap_number));
        self.builder.ins().trap(traps::FAILED);
        self.builder.switch_to_block(on);
        let literal = self.literal(data.ty, bits);
        self.define(data, &[literal]);
    }

    /// Ends the run at a point in the text of the program. The context gets the point and the
    /// number of values; the buffer gets the values.
    fn end_at_exit(&mut self, number: u32, handed: &[(Type, Option<u64>)], values: &[clif::Value]) {
        let types: Vec<Type> = handed.iter().map(|(ty, _)| *ty).collect();
        self.store_buffer(&types, values);
        let flags = self.context_flags();
        let point = self.builder.ins().iconst(types::I64, i64::from(number));
        self.builder.ins().store(flags, point, self.context, offset!(trap_number));
        let count = self.builder.ins().iconst(types::I64, values.len() as i64);
        self.builder.ins().store(flags, count, self.context, offset!(pending));
        self.builder.ins().trap(traps::LEFT);
    }

    /// Stores the values to the buffer, and jumps to the common exit block.
    fn stored_exit(&mut self, number: u32, values: &[clif::Value]) {
        self.store_narrow(values);
        let offset = i64::from(number) * size_of::<Cell>() as i64;
        let offset = self.builder.ins().iconst(types::I64, offset);
        let way_out = self.way_out();
        self.builder.ins().jump(way_out, &[offset.into()]);
    }

    /// Calls `Helpers::exit`, which finds the values through the stack map and returns the number
    /// of the point. The values are context operands of the call, which the register allocator may
    /// leave in any callee-saved register or in the frame.
    fn described_exit(&mut self, inst: Inst, shape: ExitShape, values: &[clif::Value]) {
        self.reserve_buffer(shape.values.len());
        let flags = self.fixed_flags();
        let exit = self.builder.ins().load(POINTER, flags, self.context, offset!(helpers.exit));
        let sig = self.builder.import_signature(abi::helper(0));
        let way_out = self.way_out();
        let held = values.iter().zip(&shape.values).filter(|(_, (_, constant))| constant.is_none());
        // A root cannot be a context operand, so the exit hands over a copy of its word.
        let held: Vec<clif::Value> = held
            .map(|(value, (ty, _))| match ty {
                Type::Ref => self.unshared(*value),
                _ => *value,
            })
            .collect();
        let items: Vec<_> = held.into_iter().map(ExceptionTableItem::Context).collect();
        let lists = &mut self.builder.func.dfg.value_lists;
        let normal = BlockCall::new(way_out, [BlockArg::TryCallRet(0)], lists);
        let table = ExceptionTableData::new(sig, normal, items);
        let table = self.builder.func.dfg.exception_tables.push(table);
        self.builder.ins().try_call_indirect(exit, &[self.context], table);
        self.lowered.exits.insert(inst, shape);
    }

    /// The block that all exits jump to. Its parameter is the offset of the point's cell among the
    /// cells, in bytes; with [`Exits::Described`], the number of the point.
    fn way_out(&mut self) -> clif::Block {
        if let Some(block) = self.way_out.expand() {
            return block;
        }
        let block = self.builder.create_block();
        self.builder.set_cold_block(block);
        self.builder.append_block_param(block, types::I64);
        self.way_out = block.into();
        block
    }

    /// Fills the block of [`Self::way_out`], after all exits exist: counts the firing, and jumps to
    /// the code in the cell of the point.
    pub(super) fn finish_way_out(&mut self) {
        let Some(block) = self.way_out.expand() else { return };
        self.builder.switch_to_block(block);
        self.builder.set_srcloc(clif::SourceLoc::default());
        let mut offset = self.builder.block_params(block)[0];
        if self.unit.config.exits == Exits::Described {
            // A negative number shows that `describe` failed.
            let failed = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, offset, 0);
            self.builder.ins().trapnz(failed, traps::HELPER);
            offset = self.builder.ins().imul_imm_s(offset, size_of::<Cell>() as i64);
        }
        // An interrupt wins over a flag. Without this test, a run without a set flag would leave
        // (`an_interrupt_fires_no_flag`).
        if self.polling {
            self.heed();
        }
        let first = self.cell_address(0);
        let cell = self.builder.ins().iadd(first, offset);
        let flags = self.context_flags();
        self.builder.ins().store(flags, cell, self.context, offset!(pending));
        let fired =
            self.builder.ins().load(types::I64, flags, cell, offset_of!(Cell, fired) as i32);
        // No atomic addition is needed: one machine claims the version, and one thread at a time
        // runs it.
        let fired = self.builder.ins().iadd_imm_s(fired, 1);
        self.builder.ins().store(flags, fired, cell, offset_of!(Cell, fired) as i32);
        self.draw_next_failure();
        let code = self.builder.ins().load(POINTER, flags, cell, offset_of!(Cell, code) as i32);
        let sig =
            self.builder.import_signature(abi::resumed(&self.unit.function.signature().results));
        self.builder.ins().return_call_indirect(sig, code, &[self.context]);
    }
}
