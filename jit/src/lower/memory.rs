//! Lowers accesses to memories and globals.

use super::Lowering;
use crate::abi::{self, POINTER};
use crate::context::{NEAR_GLOBALS, offset};
use crate::sys::reservation::GUARD;
use crate::traps;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, InstBuilder, MemFlagsData, TrapCode, types};
use ir::module::{MemoryDecl, MemoryKind, PAGE_BYTES};
use ir::{Imm, InstData, Memory, Opcode, Shape};

/// The bytes behind a memory of 4 GiB that fault. An access whose offset and size add up to at most
/// this number needs no check.
const GUARD_BYTES: u64 = 2 << 30;

// Unchecked accesses reach up to `GUARD_BYTES` beyond 4 GiB, and each reservation must catch them.
const _: () = assert!(GUARD_BYTES <= GUARD as u64);
// An access has at least one byte, so the offset of an unchecked one is less than `GUARD_BYTES` and
// fits the 32 bits of the instruction, which are signed.
const _: () = assert!(GUARD_BYTES <= 1 << 31);

pub(super) fn is_access(opcode: Opcode) -> bool {
    matches!(opcode.shape(), Shape::Load(_) | Shape::Store(_))
}

/// The operands with which an access to a host memory of the machine does not trap.
struct OperandRange {
    /// The lowest one.
    low: u64,
    /// The highest one, minus the lowest.
    length: u64,
    /// The index in the memory of the first byte that the lowest operand accesses.
    ahead: u64,
}

impl OperandRange {
    /// `None` if every access traps. The sum of operand and offset does not wrap, so an operand
    /// that reaches the memory only around 2^64 is outside of the range
    /// (`host_memories_of_the_machine`).
    fn of(decl: &MemoryDecl, offset: u64, bytes: u32) -> Option<OperandRange> {
        let MemoryKind::HostFrom(first) = decl.kind else { return None };
        let size = u64::from(decl.min_pages) * PAGE_BYTES;
        let spare = size.checked_sub(bytes.into())?;
        // The first byte of an access that fits: from `first` to `last`, which is below 2^64.
        let last = first + spare;
        let high = last.checked_sub(offset)?;
        let low = first.saturating_sub(offset);
        Some(OperandRange { low, length: high - low, ahead: low + offset - first })
    }
}

impl Lowering<'_, '_> {
    /// Lowers a load or store.
    pub(super) fn access(&mut self, data: &InstData) {
        let Some((memory, offset)) = data.imm.address() else {
            unreachable!("jit: an access has an address")
        };
        let bytes = match data.opcode.shape() {
            Shape::Load(0) | Shape::Store(0) => data.ty.bytes(),
            Shape::Load(bytes) | Shape::Store(bytes) => bytes.into(),
            shape => unreachable!("jit: {shape:?} is no access"),
        };
        let kind = self.unit.module.memories[memory].kind;
        let (at, offset) = match kind {
            MemoryKind::Linear => self.address(memory, data.args[0], offset, bytes),
            MemoryKind::HostFrom(_) => self.own_host_address(memory, data.args[0], offset, bytes),
            MemoryKind::Host => self.host_address(data.args[0], offset),
        };
        let region = match kind {
            MemoryKind::Linear | MemoryKind::HostFrom(_) => self.regions.heap,
            MemoryKind::Host => self.regions.host,
        };
        let code = self.access_code(data);
        let flags = MemFlagsData::new().with_trap_code(Some(code)).with_alias_region(Some(region));
        let ty = abi::held(data.ty);
        let ins = self.builder.ins();
        let loaded = match data.opcode {
            Opcode::Load => ins.load(ty, flags, at, offset),
            Opcode::Uload8 => ins.uload8(ty, flags, at, offset),
            Opcode::Sload8 => ins.sload8(ty, flags, at, offset),
            Opcode::Uload16 => ins.uload16(ty, flags, at, offset),
            Opcode::Sload16 => ins.sload16(ty, flags, at, offset),
            Opcode::Uload32 => ins.uload32(flags, at, offset),
            Opcode::Sload32 => ins.sload32(flags, at, offset),
            _ => {
                let value = self.observed(data.args[1]);
                let ins = self.builder.ins();
                match data.opcode {
                    Opcode::Store8 => ins.istore8(flags, value, at, offset),
                    Opcode::Store16 => ins.istore16(flags, value, at, offset),
                    Opcode::Store32 => ins.istore32(flags, value, at, offset),
                    _ => ins.store(flags, value, at, offset),
                };
                return;
            }
        };
        self.define(data, &[loaded]);
    }

    /// The trap code of an access. A store behind a load of the same bytes never traps by itself,
    /// and Cranelift may make one instruction of both, with the code of the store: it gets the code
    /// of the load (`a_load_inside_another_instruction_has_its_place`).
    fn access_code(&mut self, data: &InstData) -> TrapCode {
        let inst = self.inst.expect("an instruction is being lowered");
        if matches!(data.opcode.shape(), Shape::Load(_)) {
            self.lowered.loads.push(inst);
            return traps::load_code(self.lowered.loads.len() - 1);
        }
        let function = self.unit.function;
        let made = |value| function.defining_inst(value);
        let operands = made(data.args[1]).map_or(&[][..], |stored| &function.inst(stored).args);
        let load = operands.iter().find_map(|&operand| {
            made(operand).filter(|&load| {
                let load = function.inst(load);
                let stored = function.value_type(data.args[1]);
                load.opcode == Opcode::Load
                    && load.args[0] == data.args[0]
                    && load.imm == data.imm
                    && load.ty.bytes() == stored.bytes()
            })
        });
        let mut last = self.lowered.loads.iter().enumerate().rev().take(traps::LOADS.len());
        let index = last.find(|(_, known)| load == Some(**known));
        index.map_or(traps::MEMORY, |(index, _)| traps::load_code(index))
    }

    /// The place of the view of a memory: an address and an offset. The first view lies in the
    /// context.
    fn view(&mut self, memory: Memory) -> (clif::Value, i32) {
        match memory.as_u32() {
            0 => (self.context, offset!(memory)),
            index => (self.fixed(offset!(memories)), 16 * index as i32),
        }
    }

    /// Computes the base address and the constant offset of an access. Either emits a bounds check,
    /// or relies on the guard to fault.
    fn address(
        &mut self,
        memory: Memory,
        index: ir::Value,
        offset: u64,
        bytes: u32,
    ) -> (clif::Value, i32) {
        let index = self.value(index);
        let index = self.builder.ins().uextend(POINTER, index);
        let (views, view) = self.view(memory);
        let end = offset.saturating_add(bytes.into());
        if self.guards() && end <= GUARD_BYTES {
            let flags = self.fixed_flags();
            let base = self.builder.ins().load(POINTER, flags, views, view);
            let at = self.builder.ins().iadd(base, index);
            return (at, i32::try_from(offset).expect("jit: an unchecked offset is below 2^31"));
        }
        let flags = self.context_flags();
        let size = self.builder.ins().load(types::I64, flags, views, view + 8);
        // No memory has more than 2^32 bytes, so a larger end is out of bounds for every index.
        // Clamping it keeps the addition below from wrapping.
        let end = self.builder.ins().iconst(types::I64, end.min(1 << 33) as i64);
        let last = self.builder.ins().iadd(index, end);
        let outside = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, last, size);
        self.builder.ins().trapnz(outside, traps::MEMORY);
        let base = self.builder.ins().load(POINTER, flags, views, view);
        let at = self.builder.ins().iadd(base, index);
        match i32::try_from(offset) {
            Ok(offset) => (at, offset),
            Err(_) => (self.builder.ins().iadd_imm_u(at, offset.min(1 << 33) as i64), 0),
        }
    }

    /// The process address of an access to a host memory of the embedder. Emits no check: the
    /// embedder promises that the bytes exist ([`crate::Vm::with_host_memory`]).
    fn host_address(&mut self, address: ir::Value, offset: u64) -> (clif::Value, i32) {
        let at = self.value(address);
        match i32::try_from(offset) {
            Ok(offset) => (at, offset),
            Err(_) => (self.builder.ins().iadd_imm_s(at, offset as i64), 0),
        }
    }

    /// The address of an access to a host memory whose bytes the machine has. Always emits a check:
    /// addresses of the program are not process addresses.
    fn own_host_address(
        &mut self,
        memory: Memory,
        address: ir::Value,
        offset: u64,
        bytes: u32,
    ) -> (clif::Value, i32) {
        let address = self.value(address);
        let (views, view) = self.view(memory);
        // An exchanged machine may have fewer bytes, so read their number from the view.
        let flags = self.context_flags();
        let base = self.builder.ins().load(POINTER, flags, views, view);
        match OperandRange::of(&self.unit.module.memories[memory], offset, bytes) {
            Some(OperandRange { low, length, ahead }) => {
                let low = self.builder.ins().iconst(types::I64, low as i64);
                let index = self.builder.ins().isub(address, low);
                let length = self.builder.ins().iconst(types::I64, length as i64);
                let outside = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, index, length);
                self.builder.ins().trapnz(outside, traps::MEMORY);
                let at = self.builder.ins().iadd(base, index);
                (self.builder.ins().iadd_imm_s(at, ahead as i64), 0)
            }
            None => {
                let always = self.builder.ins().iconst(types::I32, 1);
                self.builder.ins().trapnz(always, traps::MEMORY);
                (base, 0)
            }
        }
    }

    /// Lowers the size of a memory in pages.
    pub(super) fn memory_size(&mut self, data: &InstData) {
        let Imm::Memory(memory) = data.imm else { unreachable!("jit: a memory is named") };
        let (views, view) = self.view(memory);
        let flags = self.context_flags();
        let bytes = self.builder.ins().load(types::I64, flags, views, view + 8);
        let pages = self.builder.ins().ushr_imm_u(bytes, i64::from(PAGE_BYTES.trailing_zeros()));
        let pages = self.builder.ins().ireduce(types::I32, pages);
        self.define(data, &[pages]);
    }

    /// The place of a global: an address and an offset. The first globals lie in the context.
    fn global_place(&mut self, global: ir::Global) -> (clif::Value, i32) {
        let at =
            8 * i32::try_from(global.as_u32()).expect("jit: a module has fewer than 2^28 globals");
        match (global.as_u32() as usize) < NEAR_GLOBALS {
            true => (self.context, offset!(near) + at),
            false => (self.fixed(offset!(globals)), at),
        }
    }

    /// Lowers a read or write of a global. A global is a word whose upper bits are zero.
    pub(super) fn global(&mut self, data: &InstData) {
        let Imm::Global(global) = data.imm else { unreachable!("jit: a global is named") };
        let (words, at) = self.global_place(global);
        let flags = MemFlagsData::trusted().with_alias_region(Some(self.regions.globals));
        if data.opcode == Opcode::GlobalGet {
            let value = self.builder.ins().load(abi::held(data.ty), flags, words, at);
            return self.define(data, &[value]);
        }
        let value = self.observed(data.args[0]);
        // The store is as narrow as the type, and the upper bits stay zero. The next read has the
        // same width, and waits less for this store than for a store of the whole word.
        self.builder.ins().store(flags, value, words, at);
    }
}

#[cfg(test)]
mod tests;
