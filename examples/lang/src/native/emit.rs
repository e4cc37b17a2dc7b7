//! Instructions of the IR, a function each.

use super::heap_memory;
use crate::heap::header::CHAOS;
use crate::value::{FIRST_TAGGED, Word};
use osier::ir::{
    Block, Func, FunctionBuilder, Imm, InstSpec, Opcode, Target, TrapKind, Type, Value,
};

/// The number of the trap behind a frame state. A run leaves in front of this trap.
pub(super) const LEAVE: TrapKind = TrapKind::User(0);

/// The type of operations without a type of their own.
pub(super) const UNTYPED: Type = Type::I32;

/// Appends instructions to a function.
pub(super) struct Emit {
    pub(super) b: FunctionBuilder,
    pub(super) is_chaotic: bool,
}

impl Emit {
    pub(super) fn op(&mut self, opcode: Opcode, ty: Type, args: &[Value]) -> Value {
        self.b.op(opcode, ty, args)
    }

    pub(super) fn int(&mut self, value: i32) -> Value {
        self.b.constant(Type::I32, u64::from(value as u32))
    }

    pub(super) fn word(&mut self, bits: u64) -> Value {
        self.b.constant(Type::I64, bits)
    }

    /// A reference that no collection changes: a number, `nil`, or a string of the program.
    pub(super) fn fixed(&mut self, word: Word) -> Value {
        self.b.constant(Type::Ref, word)
    }

    /// The word of a reference until the next call.
    pub(super) fn bits(&mut self, reference: Value) -> Value {
        self.op(Opcode::RefBits, UNTYPED, &[reference])
    }

    /// The reference of a word.
    pub(super) fn reference(&mut self, word: Value) -> Value {
        self.op(Opcode::RefOf, UNTYPED, &[word])
    }

    pub(super) fn double(&mut self, value: f64) -> Value {
        self.b.constant(Type::F64, value.to_bits())
    }

    pub(super) fn load(&mut self, ty: Type, address: Value, offset: u32) -> Value {
        let imm = Imm::Address(heap_memory(), offset.into());
        self.b.insert_value(InstSpec::new(Opcode::Load, ty, imm, &[address]))
    }

    /// The byte at an address.
    pub(super) fn byte(&mut self, address: Value, offset: u32) -> Value {
        let imm = Imm::Address(heap_memory(), offset.into());
        let ty = Type::I32;
        self.b.insert_value(InstSpec::new(Opcode::Uload8, ty, imm, &[address]))
    }

    pub(super) fn store(&mut self, address: Value, offset: u32, value: Value) {
        let (imm, ty) =
            (Imm::Address(heap_memory(), offset.into()), self.b.function().value_type(value));
        self.b.insert(InstSpec::new(Opcode::Store, ty, imm, &[address, value]));
    }

    /// Stores successive values of 8 bytes.
    pub(super) fn store_all(&mut self, address: Value, offset: u32, values: &[Value]) {
        for (index, value) in (0..).zip(values) {
            self.store(address, offset + index * 8, *value);
        }
    }

    pub(super) fn call(&mut self, func: Func, args: &[Value]) -> Value {
        self.b.insert_value(InstSpec::call(func, args, &[Type::Ref]))
    }

    pub(super) fn trap(&mut self) {
        self.b.insert(InstSpec::new(Opcode::Trap, UNTYPED, Imm::Trap(LEAVE), &[]));
    }

    /// Begins a block.
    pub(super) fn place(&mut self, block: Block) {
        self.b.place_block(block);
        self.b.switch_to(block);
    }

    /// Branches to two new blocks: one for a true condition and one for a false condition.
    pub(super) fn fork(&mut self, holds: Value) -> (Block, Block) {
        let (yes, no) = (self.b.reserve_block(), self.b.reserve_block());
        self.b.br_if(holds, Target::new(yes, &[]), Target::new(no, &[]));
        (yes, no)
    }

    /// Continues if a condition holds, and jumps to a block otherwise.
    pub(super) fn branch_to(&mut self, holds: Value, otherwise: Block) {
        let good = self.b.reserve_block();
        self.b.br_if(holds, Target::new(good, &[]), Target::new(otherwise, &[]));
        self.place(good);
    }

    /// The word of an int32.
    pub(super) fn boxed(&mut self, int: Value) -> Value {
        let wide = self.op(Opcode::Uextend, Type::I64, &[int]);
        let tag = self.word(FIRST_TAGGED);
        self.op(Opcode::Or, Type::I64, &[wide, tag])
    }

    /// Whether a word has a tag.
    pub(super) fn has_tag(&mut self, word: Value, tag: u64) -> Value {
        let (bits, wanted) = (self.word(48), self.word(tag));
        let of = self.op(Opcode::Ushr, Type::I64, &[word, bits]);
        self.op(Opcode::Eq, Type::I64, &[of, wanted])
    }

    /// A condition that, in a chaotic program, fails at random, too: where the number in memory has
    /// been counted down to 0.
    pub(super) fn failing(&mut self, holds: Value) -> Value {
        if !self.is_chaotic {
            return holds;
        }
        let (at, zero, one) = (self.int(CHAOS as i32), self.int(0), self.int(1));
        let left = self.load(Type::I32, at, 0);
        let left = self.op(Opcode::Sub, Type::I32, &[left, one]);
        self.store(at, 0, left);
        let is_lucky = self.op(Opcode::Ne, Type::I32, &[left, zero]);
        self.op(Opcode::And, Type::I32, &[holds, is_lucky])
    }
}
