//! Lowers terminators: branches, switches and their targets.

use super::{Lowering, ways};
use cranelift_codegen::ir::{self as clif, BlockArg, InstBuilder, JumpTableData};
use ir::{Edge, Inst, InstData, Opcode, Target};

impl Lowering<'_, '_> {
    pub(super) fn terminator(&mut self, inst: Inst, data: &InstData) {
        match data.opcode {
            Opcode::Jump => {
                let (to, args) = self.target(0);
                self.builder.ins().jump(to, &args);
            }
            Opcode::BrIf => {
                let condition = self.value(data.args[0]);
                self.count_side(inst, condition);
                self.fail_by_chance(data);
                self.branch(condition);
            }
            Opcode::Switch => self.switch(inst, data),
            Opcode::Return => self.return_(data),
            Opcode::Trap => self.trap(inst, data),
            opcode => unreachable!("jit: {} is no terminator", opcode.name()),
        }
    }

    /// Ends the block with a branch to the two targets of an instruction.
    pub(super) fn branch(&mut self, condition: clif::Value) {
        let inst = self.inst.expect("an instruction is being lowered");
        let targets = [0, 1].map(|index| self.onward(Edge { inst, index }));
        if self.branch_to_trap(condition, &targets) {
            return;
        }
        let [(then, then_args), (otherwise, other_args)] =
            targets.each_ref().map(|target| self.target_of(target));
        self.builder.ins().brif(condition, then, &then_args, otherwise, &other_args);
    }

    fn switch(&mut self, inst: Inst, data: &InstData) {
        let index = self.value(data.args[0]);
        self.count_choice(inst, index, data.targets.len());
        let mut calls = Vec::with_capacity(data.targets.len());
        for at in 0..data.targets.len() {
            let (to, args) = self.target(at);
            calls.push(self.builder.func.dfg.block_call(to, &args));
        }
        let default = calls.pop().expect("a switch has a default target");
        let table = self.builder.create_jump_table(JumpTableData::new(default, &calls));
        self.builder.ins().br_table(index, table);
    }

    /// Translates a target of the current instruction with its arguments, past the target if
    /// possible. An argument becomes canonical if its parameter may hold only canonical NaNs.
    fn target(&mut self, at: usize) -> (clif::Block, Vec<BlockArg>) {
        let inst = self.inst.expect("an instruction is being lowered");
        self.target_of(&self.onward(Edge { inst, index: at as u32 }))
    }

    /// Translates a target of the current instruction, which was followed past blocks.
    pub(super) fn target_of(&mut self, target: &Target) -> (clif::Block, Vec<BlockArg>) {
        if self.only_traps(target.block) {
            self.trapping.insert(target.block);
        }
        let params = self.unit.function.block_params(target.block);
        let mut args = Vec::with_capacity(params.len());
        for (arg, param) in target.args.iter().zip(params) {
            let value = if self.is_raw(*param) { self.value(*arg) } else { self.observed(*arg) };
            args.push(value.into());
        }
        (self.blocks[target.block].expect("a target of reachable code is reachable"), args)
    }

    /// The target of an edge, or a later one that the edge may lead to directly.
    fn onward(&self, edge: Edge) -> Target {
        let past = ways::way(self.unit.function, &self.passable, edge);
        past.unwrap_or_else(|| self.unit.function.target(edge).clone())
    }
}
