//! Accesses of a program: tests against the regions of the run.

use crate::program::{Callable, Op, Program, op};
use crate::translate::Translation;
use osier::ir::{Block, Opcode, Type, Value};
use rbpf::ebpf::{self, Insn};
use std::collections::{BTreeMap, BTreeSet};

/// A region of memory: its address, and by size of an access the number of places for it.
pub(crate) struct Region {
    pub(crate) base: Value,
    pub(crate) places: BTreeMap<u64, Value>,
}

/// The sizes of the accesses of a function.
pub fn sizes(program: &Program, callable: &Callable) -> BTreeSet<u64> {
    let size = |pc: &usize| match op(program.insns[*pc].opc) {
        // The interpreter of the machine checks 8 bytes, whatever it loads.
        Op::Packet(..) => Some(8),
        Op::Load(bytes) | Op::Store(bytes, _) => Some(bytes),
        _ => None,
    };
    callable.body.iter().filter_map(size).collect()
}

impl Translation<'_> {
    /// The places of accesses in each region, and the frame pointer of the program.
    pub(crate) fn begin(&mut self) {
        let mut given = self.bounds.clone().into_iter();
        self.depth = self.program.counts_depth.then(|| given.next()).flatten();
        let given: Vec<Value> = given.collect();
        let sizes = sizes(self.program, self.callable);
        for pair in given.chunks(2) {
            let places = match pair.get(1) {
                Some(length) => {
                    sizes.iter().map(|size| (*size, self.places(*length, *size))).collect()
                }
                None => {
                    let most = |size: u64| (ebpf::STACK_SIZE as u64 - size + 1) as i64;
                    sizes.iter().map(|size| (*size, self.constant(most(*size)))).collect()
                }
            };
            self.regions.push(Region { base: pair[0], places });
        }
        let lengths = given.chunks_exact(2).count();
        let places = self.regions[..lengths].iter().flat_map(|region| region.places.values());
        self.bounds.extend(places.copied().collect::<Vec<Value>>());
        if self.entry == 0 {
            let size = self.constant(ebpf::STACK_SIZE as i64);
            let stack = self.bounds[self.taken - 1];
            let top = self.binary(Opcode::Add, stack, size);
            self.set(10, top);
        }
    }

    /// The number of places for an access in a region of a length: none if it is too short.
    fn places(&mut self, length: Value, size: u64) -> Value {
        let (less, zero) = (self.constant(size as i64 - 1), self.constant(0));
        let fits = self.builder.op(Opcode::Ugt, Type::I64, &[length, less]);
        let places = self.binary(Opcode::Sub, length, less);
        self.builder.op(Opcode::Select, Type::I64, &[fits, places, zero])
    }

    pub(crate) fn packet(&mut self, pc: usize, insn: &Insn, bytes: u64, by: bool) {
        let mut at = self.constant(i64::from(insn.imm as u32));
        if by {
            let index = self.get(insn.src);
            at = self.binary(Opcode::Add, at, index);
        }
        let base = self.regions[0].base;
        let at = self.binary(Opcode::Add, base, at);
        self.check(pc, at, 8, 0);
        let value = self.load(at, bytes);
        self.set(0, value);
    }

    pub(crate) fn load(&mut self, at: Value, bytes: u64) -> Value {
        let opcode = match bytes {
            1 => Opcode::Uload8,
            2 => Opcode::Uload16,
            4 => Opcode::Uload32,
            _ => Opcode::Load,
        };
        self.builder.load(opcode, Type::I64, self.bytes, at, 0)
    }

    /// The address of an access, which is in a region.
    pub(crate) fn place(&mut self, pc: usize, register: u8, offset: i16, bytes: u64) -> Value {
        let base = self.get(register);
        let by = self.constant(offset.into());
        let at = if offset == 0 { base } else { self.binary(Opcode::Add, base, by) };
        // The program's own frame, which no instruction moves.
        let in_frame =
            -(ebpf::STACK_SIZE as i64) <= offset.into() && i64::from(offset) <= -(bytes as i64);
        if register != 10 || self.entry != 0 || !in_frame {
            let stack = self.regions.len() - 1;
            let first = if self.stackish & 1 << register != 0 { stack } else { 0 };
            self.check(pc, at, bytes, first);
        }
        at
    }

    /// Ends the run unless an access is in a region, perhaps the `first` one.
    fn check(&mut self, pc: usize, at: Value, bytes: u64, first: usize) {
        // Where the last test is in a cold block, the error names the address for free. A trap with
        // an operand takes a block, which tests in straight code cannot afford.
        let is_cold = self.in_loop.contains(&pc) || self.made.more.is_some();
        let [on, trap] = [self.builder.reserve_block(), self.trap(pc, is_cold.then_some(at))];
        let mut found = self.is_in(first, at, bytes);
        let others: Vec<usize> =
            (0..self.regions.len()).filter(|region| *region != first).collect();
        // In a loop, one comparison and a branch cost less than all comparisons; elsewhere, a block
        // without branches is optimized better.
        if self.in_loop.contains(&pc) {
            self.aside(found, on);
            found = self.is_in(others[0], at, bytes);
        }
        for region in others {
            let next = self.is_in(region, at, bytes);
            found = self.builder.op(Opcode::Or, Type::I32, &[found, next]);
        }
        if let Some(more) = self.made.more {
            self.aside(found, on);
            let size = self.constant(bytes as i64);
            let allowed = self.builder.call(more, &[at, size], &[Type::I64])[0];
            found = self.builder.op(Opcode::Wrap, Type::I32, &[allowed]);
        }
        self.builder.br_if(found, on, trap);
        self.builder.place_block(on);
        self.builder.switch_to(on);
    }

    /// Goes on in a cold block unless a test holds.
    fn aside(&mut self, holds: Value, on: Block) {
        let other = self.builder.reserve_block();
        self.builder.mark_cold(other);
        self.builder.br_if(holds, on, other);
        self.builder.place_block(other);
        self.builder.switch_to(other);
    }

    fn is_in(&mut self, region: usize, at: Value, bytes: u64) -> Value {
        let Region { base, places } = &self.regions[region];
        let (base, places) = (*base, places[&bytes]);
        let index = self.binary(Opcode::Sub, at, base);
        self.builder.op(Opcode::Ult, Type::I64, &[index, places])
    }
}
