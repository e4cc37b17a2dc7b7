//! Lowers branches to blocks that only trap.
//!
//! Example: a front end tests the bounds of each access, and branches to a block with `trap user3`
//! where the test fails. Such a branch becomes a conditional trap, which ends no block of
//! Cranelift. So a function with a thousand tests stays one block, and Cranelift drops a test that
//! an earlier one decides. A branch to a block would be repeated: straight code with one test in
//! three instructions took three times as long (`examples/ebpf`, *straight*).

use super::{Lowering, ways};
use crate::config::Interruption;
use crate::context::offset;
use crate::traps;
use cranelift_codegen::ir::{self as clif, BlockArg, InstBuilder, SourceLoc, types};
use cranelift_entity::EntityRef;
use ir::{Block, Edge, Imm, Inst, InstData, Opcode, Target, TrapKind, Type};

impl Lowering<'_, '_> {
    /// Whether a block consists of a trap alone, so that a branch to it may become a conditional
    /// trap. A block that pays fuel pays before it traps, and one with an operand stores it.
    pub(super) fn only_traps(&self, block: Block) -> bool {
        let function = self.unit.function;
        let first = function.first_inst(block);
        self.unit.config.interruption != Interruption::Fuel
            && function.inst(first).opcode == Opcode::Trap
            && function.inst(first).args.is_empty()
            && block != function.entry()
            && function.block_params(block).is_empty()
    }

    /// The kind of a trap. The code keeps the number of a kind of the embedder, which the place of
    /// the trap then tells (`a_trap_in_place_of_a_branch_has_its_number`).
    pub(super) fn trap_kind(&mut self, inst: Inst, data: &InstData) -> TrapKind {
        let Imm::Trap(kind) = data.imm else { unreachable!("jit: a trap has a kind") };
        if let TrapKind::User(number) = kind {
            self.lowered.numbers.insert(inst, number);
        }
        kind
    }

    /// Ends the block with a trap. The context gets the operand, if there is one.
    pub(super) fn trap(&mut self, inst: Inst, data: &InstData) {
        let kind = self.trap_kind(inst, data);
        let Some(&operand) = data.args.first() else {
            // Cranelift turns a branch to a block that only traps into a conditional trap, and
            // would report the trap at the branch. The fence makes the block nonempty
            // (`tests/oir/traps/of_its_own.oir`).
            self.builder.ins().sequence_point();
            self.builder.ins().trap(traps::code(kind));
            return;
        };
        let value = self.value(operand);
        let word = match self.type_of(operand) {
            Type::I64 => value,
            _ => self.builder.ins().uextend(types::I64, value),
        };
        let flags = self.context_flags();
        self.builder.ins().store(flags, word, self.context, offset!(trap_number));
        self.builder.ins().trap(traps::code_with_operand(kind));
    }

    /// Ends the block with a conditional trap and a jump, if one of the targets of a branch only
    /// traps. Returns whether it does.
    pub(super) fn branch_to_trap(&mut self, condition: clif::Value, targets: &[Target; 2]) -> bool {
        let branch = self.inst.expect("an instruction is being lowered");
        let Some(side) = targets.iter().position(|target| self.only_traps(target.block)) else {
            return false;
        };
        let function = self.unit.function;
        let other = &targets[1 - side];
        let trap = function.first_inst(targets[side].block);
        let code = traps::code(self.trap_kind(trap, function.inst(trap)));
        // The trap has its own place, not that of the branch (`tests/oir/traps/of_its_own.oir`).
        self.builder.set_srcloc(SourceLoc::new(trap.as_u32()));
        match side {
            0 => self.builder.ins().trapnz(condition, code),
            _ => self.builder.ins().trapz(condition, code),
        };
        self.builder.set_srcloc(SourceLoc::new(branch.as_u32()));
        let (to, args) = self.target_of(other);
        if self.goes_on_in(other.block) {
            for (param, arg) in function.block_params(other.block).iter().zip(args) {
                let BlockArg::Value(value) = arg else {
                    unreachable!("jit: branches pass values alone")
                };
                self.values[*param] = value.into();
            }
            self.continues = true;
        } else {
            self.builder.ins().jump(to, &args);
        }
        true
    }

    /// Whether a block may go on in the current block of Cranelift, which leads to it alone. A cold
    /// block needs one of its own. Cost: linear in the edges to the block of the branch.
    fn goes_on_in(&self, block: Block) -> bool {
        let function = self.unit.function;
        let branch = self.inst.expect("an instruction is being lowered");
        self.next.expand() == Some(block)
            && matches!(function.predecessors(block), [edge] if edge.inst == branch)
            && !self.is_passed(function.inst_block(branch))
            && !self.is_in_cold_block(block)
    }

    /// Whether some edge leads past a block, to one that in the IR has no edge from there
    /// (`a_block_behind_a_passed_one_is_a_block_of_its_own`).
    fn is_passed(&self, block: Block) -> bool {
        let function = self.unit.function;
        let passes = |edge: &Edge| ways::way(function, &self.passable, *edge).is_some();
        self.passable.contains(block.index()) && function.predecessors(block).iter().any(passes)
    }
}
