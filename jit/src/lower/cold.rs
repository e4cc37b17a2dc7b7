//! Cold blocks, and the calls in them.
//!
//! A block is cold if it is marked ([`ir::FunctionBuilder::mark_cold`]), or if all ways from it end
//! in a trap or an exit. Cranelift puts cold blocks behind the others.
//!
//! Example: a load tests whether its address is in the usual region, and a cold block asks a
//! function otherwise. The call clobbers registers. All values that live across it would be spilled
//! at their definitions, in hot code, because the register allocator does not know which blocks are
//! cold. So a call in a marked block goes through a stub that saves all registers
//! ([`crate::stubs::Stub::Cold`]): it clobbers none.

use super::Lowering;
use crate::abi::{self, POINTER};
use cranelift_codegen::ir::{self as clif, InstBuilder, types};
use fixedbitset::FixedBitSet;
use ir::cfg::Cfg;
use ir::{Block, Func, Function, Imm, Inst, Module, Opcode, Signature};

/// The largest number of arguments of a call through a stub. A stub with a frame of five pages or
/// more would clobber a register: Cranelift probes the pages of such a frame in a loop, which
/// counts in `r11`, before the prologue saves the registers. With this number, the arguments take
/// half a page, and as much again if the register allocator spills all of them. Calls with more
/// arguments are ordinary calls (`a_call_with_very_many_arguments_keeps_all_values`).
const MOST_COLD_ARGUMENTS: usize = 256;

/// The cold blocks of a function, by index. Linear in the function.
pub(super) fn cold_blocks(function: &Function, cfg: &Cfg) -> FixedBitSet {
    let mut cold = FixedBitSet::with_capacity(function.block_bound());
    // Successors come first; a block that leads back to one of its own loop is not cold.
    for &block in cfg.rpo().iter().rev() {
        let end = function.inst(function.terminator(block));
        let ends = match end.opcode {
            Opcode::Trap | Opcode::OsrExit => true,
            Opcode::Return => false,
            _ => end.targets.iter().all(|to| cold.contains(to.block.as_u32() as usize)),
        };
        if block != function.entry() && (ends || function.is_cold(block)) {
            cold.insert(block.as_u32() as usize);
        }
    }
    cold
}

/// The signatures with which a function calls from marked blocks through stubs.
pub(crate) fn cold_calls<'a>(
    module: &'a Module,
    function: &'a Function,
) -> impl Iterator<Item = &'a Signature> {
    let insts = function.all_insts().filter(|inst| function.is_cold(function.inst_block(*inst)));
    let called = insts.filter_map(|inst| match function.inst(inst).imm {
        Imm::Func(func) => Some(module.signature(func)),
        _ => None,
    });
    called.filter(|signature| signature.params.len() <= MOST_COLD_ARGUMENTS)
}

impl Lowering<'_, '_> {
    pub(super) fn is_in_cold_block(&self, block: Block) -> bool {
        self.cold.contains(block.as_u32() as usize)
    }

    /// The address of the stub for a call, if its block is marked and the call goes through a stub.
    pub(super) fn cold_stub(&self, inst: Inst, signature: &Signature) -> Option<usize> {
        let function = self.unit.function;
        let is_cold = function.is_cold(function.inst_block(inst));
        let mut stubs = self.unit.cold.iter().filter(|_| is_cold);
        stubs.find(|(of, _)| of == signature).map(|(_, code)| code.entry().addr())
    }

    /// Calls a function from a marked block, and returns its results. Arguments and results cross
    /// in the buffer: in registers, they would tie values of hot code to these registers.
    pub(super) fn cold_call(
        &mut self,
        stub: usize,
        func: Func,
        signature: &Signature,
        args: &[clif::Value],
    ) -> Vec<clif::Value> {
        self.store_buffer(&signature.params, args);
        self.reserve_buffer(signature.results.len());
        let code = self.builder.ins().iconst(POINTER, stub as i64);
        let number = self.builder.ins().iconst(types::I64, i64::from(func.as_u32()));
        let sig = self.builder.import_signature(abi::cold());
        self.builder.ins().call_indirect(sig, code, &[self.context, number]);
        self.load_buffer(&signature.results)
    }
}
