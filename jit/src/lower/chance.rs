//! Exits that a run takes by chance, although the assumption holds
//! ([`Config::fails_one_in`](crate::Config::fails_one_in)).
//!
//! A word of the context counts the tests down, whatever code makes them. The common exit block
//! draws the next gap from a linear congruential generator (Knuth's MMIX constants), so the hot
//! path has a decrement and a branch.

use super::Lowering;
use crate::context::offset;
use crate::points::Trigger;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, types};
use ir::{Block, Imm, InstData, Opcode};

/// The multiplier and the increment of the generator.
const STEP: [u64; 2] = [6_364_136_223_846_793_005, 1_442_695_040_888_963_407];

impl Lowering<'_, '_> {
    /// In front of the test of an assumption: leaves to the same exit if the test is the next one
    /// that fails by chance. No code without the option, and in front of other branches.
    pub(super) fn fail_by_chance(&mut self, data: &InstData) {
        if self.unit.config.fails_one_in.is_none() {
            return;
        }
        let mut targets = data.targets.iter().map(|target| target.block);
        let Some(exit) = targets.find(|block| self.leaves_assumption(*block)) else { return };
        let exit = self.blocks[exit].expect("a target of reachable code is reachable");
        let (flags, at) = (self.context_flags(), offset!(until_failure));
        let left = self.builder.ins().load(types::I64, flags, self.context, at);
        let left = self.builder.ins().iadd_imm_s(left, -1);
        self.builder.ins().store(flags, left, self.context, at);
        let fails = self.builder.ins().icmp_imm_s(IntCC::Equal, left, 0);
        let on = self.builder.create_block();
        self.builder.ins().brif(fails, exit, &[], on, &[]);
        self.builder.switch_to_block(on);
    }

    /// Whether a block is the exit of an assumption.
    fn leaves_assumption(&self, block: Block) -> bool {
        let function = self.unit.function;
        let last = function.inst(function.terminator(block));
        let Imm::Exit(point) = last.imm else { return false };
        let cell = self.unit.cells.get(point.as_u32() as usize);
        last.opcode == Opcode::OsrExit
            && function.block_params(block).is_empty()
            && cell.is_some_and(|cell| cell.trigger() == Trigger::Assumption)
    }

    /// Behind an exit: draws the gap to the next failure by chance, if this exit was one.
    pub(super) fn draw_next_failure(&mut self) {
        let Some(mean) = self.unit.config.fails_one_in else { return };
        let (flags, [multiplier, increment]) = (self.context_flags(), STEP.map(|of| of as i64));
        let ins = |lowering: &mut Self, at| {
            lowering.builder.ins().load(types::I64, flags, lowering.context, at)
        };
        let left = ins(self, offset!(until_failure));
        let is_due = self.builder.ins().icmp_imm_s(IntCC::Equal, left, 0);
        let state = ins(self, offset!(gaps));
        let multiplier = self.builder.ins().iconst(types::I64, multiplier);
        let increment = self.builder.ins().iconst(types::I64, increment);
        let drawn = self.builder.ins().imul(state, multiplier);
        let drawn = self.builder.ins().iadd(drawn, increment);
        // The 31 high bits, since the low ones of such a generator have short periods, as a
        // fraction of the greatest gap, which has 33 bits at most.
        let high = self.builder.ins().ushr_imm_u(drawn, 33);
        let gaps = self.builder.ins().iconst(types::I64, 2 * i64::from(mean.get()) - 1);
        let scaled = self.builder.ins().imul(high, gaps);
        let gap = self.builder.ins().ushr_imm_u(scaled, 31);
        let gap = self.builder.ins().iadd_imm_s(gap, 1);
        let next = self.builder.ins().select(is_due, gap, left);
        let state = self.builder.ins().select(is_due, drawn, state);
        self.builder.ins().store(flags, next, self.context, offset!(until_failure));
        self.builder.ins().store(flags, state, self.context, offset!(gaps));
    }
}
