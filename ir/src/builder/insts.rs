//! Calls of the builder for instructions with an immediate.

use super::FunctionBuilder;
use crate::entity::{Func, Inst, Memory, Value};
use crate::inst::{Imm, InstSpec};
use crate::opcode::{Opcode, Shape};
use crate::trap::TrapKind;
use crate::types::Type;

impl FunctionBuilder {
    /// Appends a load of a value of type `ty`. The access begins `offset` bytes behind the address,
    /// which is an `i32` in a memory of the module, and an `i64` in a host memory.
    /// [`Opcode::Load`] reads all bytes of the type; others, such as [`Opcode::Uload8`], read fewer
    /// bytes and extend them.
    ///
    /// # Panics
    /// As [`FunctionBuilder::insert`]; when the opcode is no load; when the address is neither.
    pub fn load(
        &mut self,
        opcode: Opcode,
        ty: Type,
        memory: Memory,
        address: Value,
        offset: u64,
    ) -> Value {
        assert!(matches!(opcode.shape(), Shape::Load(_)), "{} is no load", opcode.name());
        let imm = self.address(memory, address, offset);
        self.insert_value(InstSpec::new(opcode, ty, imm, &[address]))
    }

    /// Appends a store of a value. The access begins `offset` bytes behind the address, which is an
    /// `i32` in a memory of the module, and an `i64` in a host memory. [`Opcode::Store`] writes all
    /// bytes of the value; others, such as [`Opcode::Store8`], write its low bytes.
    ///
    /// # Panics
    /// As [`FunctionBuilder::insert`]; when the opcode is no store; when the address is neither.
    pub fn store(
        &mut self,
        opcode: Opcode,
        memory: Memory,
        address: Value,
        offset: u64,
        value: Value,
    ) -> Inst {
        assert!(matches!(opcode.shape(), Shape::Store(_)), "{} is no store", opcode.name());
        let (ty, imm) = (self.function.value_type(value), self.address(memory, address, offset));
        self.insert(InstSpec::new(opcode, ty, imm, &[address, value]))
    }

    fn address(&self, memory: Memory, address: Value, offset: u64) -> Imm {
        match self.function.value_type(address) {
            Type::I32 => Imm::Address(memory, offset),
            Type::I64 => Imm::HostAddress(memory, offset),
            ty => panic!("an address is an i32 or an i64, and {address} is of type {ty}"),
        }
    }

    /// Appends a call of a function whose signature has these results, and returns them in order.
    ///
    /// # Panics
    /// As [`FunctionBuilder::insert`].
    pub fn call(&mut self, callee: Func, args: &[Value], results: &[Type]) -> &[Value] {
        let inst = self.insert(InstSpec::call(callee, args, results));
        &self.function.inst(inst).results
    }

    /// Ends the current block with a trap. `Machine` and `Vm` report the kind, and a frame state in
    /// front of the trap can make it a way out to the embedder.
    ///
    /// # Panics
    /// As [`FunctionBuilder::insert`].
    pub fn trap(&mut self, kind: TrapKind) -> Inst {
        self.insert(InstSpec::trap(kind, None))
    }

    /// As [`FunctionBuilder::trap`], with an operand that the outcome reports: the address or the
    /// value that an error names. It is an `i32` or an `i64`.
    ///
    /// # Panics
    /// As [`FunctionBuilder::insert`].
    pub fn trap_with(&mut self, kind: TrapKind, operand: Value) -> Inst {
        self.insert(InstSpec::trap(kind, Some(operand)))
    }
}
