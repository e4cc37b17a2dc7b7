//! Functions of the library: some in native code, others by a call of the runtime.

use super::lower::Lower;
use super::operations::Operand;
use super::registers::{Known, Rep};
use super::runtime::Helper;
use crate::bytecode::Reg;
use crate::heap::{CHARS, at};
use crate::library::Builtin;
use crate::profile::kind;
use crate::value::{NIL, int, reference, tag};
use osier::ir::{Opcode, Type, Value};

impl Lower<'_> {
    pub(super) fn builtin(&mut self, which: Builtin, d: Reg, from: Reg, count: u8) {
        if self.inline_builtin(which, d, from) {
            return;
        }
        let words: Vec<Value> = (from..from + count).map(|register| self.word(register)).collect();
        let number = self.e.fixed(int(which as i32));
        let word = self.helper(Helper::Builtin, &[number], &words);
        self.set_reference(d, word, Known::Nothing);
    }

    /// Functions of the library without a call. Returns false for others.
    fn inline_builtin(&mut self, which: Builtin, d: Reg, from: Reg) -> bool {
        let [of_a, of_b] = self.kinds();
        let (a, b) = (Operand::Register(from, of_a), Operand::Register(from + 1, of_b));
        let tag_a = match self.rep(from) {
            Rep::Word(Known::Nothing) if of_a.is_power_of_two() => {
                Some(u64::from(of_a.trailing_zeros()) + tag::INT - 1)
            }
            rep => rep.tag(),
        };
        match (which, tag_a) {
            (Builtin::Sqrt | Builtin::Floor, _) if self.numeric(a) != 0 => {
                let double = self.as_double(a);
                let op = if which == Builtin::Sqrt { Opcode::Fsqrt } else { Opcode::Ffloor };
                let result = self.e.op(op, Type::F64, &[double]);
                self.set_double(d, result);
            }
            (Builtin::Len, Some(of @ (tag::ARRAY | tag::STRING))) => {
                let address = self.address(from, of);
                let length = self.e.load(Type::I32, address, 0);
                self.set_int(d, length);
            }
            (Builtin::Byte, Some(tag::STRING)) if self.numeric(b) == kind::INT => {
                let (string, index) = (self.address(from, tag::STRING), self.as_int(b));
                let length = self.e.load(Type::I32, string, 0);
                let is_in = self.e.op(Opcode::Ult, Type::I32, &[index, length]);
                self.guard(is_in);
                let at = self.e.op(Opcode::Add, Type::I32, &[string, index]);
                let byte = self.e.byte(at, at::BYTES);
                self.set_int(d, byte);
            }
            (Builtin::Char, _) if self.numeric(a) == kind::INT => {
                let (byte, most, four) = (self.as_int(a), self.e.int(256), self.e.int(4));
                let is_byte = self.e.op(Opcode::Ult, Type::I32, &[byte, most]);
                self.guard(is_byte);
                let offset = self.e.op(Opcode::Shl, Type::I32, &[byte, four]);
                let wide = self.e.op(Opcode::Uextend, Type::I64, &[offset]);
                let first = self.e.word(reference(tag::STRING, CHARS));
                let word = self.e.op(Opcode::Add, Type::I64, &[first, wide]);
                self.set_word(d, word, Known::Tag(tag::STRING));
            }
            (Builtin::Push, Some(tag::ARRAY)) => {
                let (array, value) = (self.address(from, tag::ARRAY), self.word(from + 1));
                let (length, end) = (self.e.load(Type::I32, array, 0), self.e.b.reserve_block());
                let slow = self.append(array, length, length, value, end);
                self.e.place(slow);
                let index = self.e.boxed(length);
                let index = self.e.reference(index);
                let operands = [self.reference(from), index, self.reference(from + 1)];
                self.helper(Helper::SetIndex, &operands, &[]);
                self.e.b.jump(end, &[]);
                self.e.place(end);
                let nil = self.e.fixed(NIL);
                self.set_reference(d, nil, Known::Tag(tag::SPECIAL));
            }
            (Builtin::Pop, Some(tag::ARRAY)) => {
                let (array, one) = (self.address(from, tag::ARRAY), self.e.int(1));
                let length = self.e.load(Type::I32, array, 0);
                // The interpreter returns `nil` of an empty array.
                let is_empty = self.e.op(Opcode::Eqz, Type::I32, &[length]);
                self.guard_not(is_empty);
                let last = self.e.op(Opcode::Sub, Type::I32, &[length, one]);
                self.e.store(array, 0, last);
                let element = self.element(array, last);
                let word = self.e.load(Type::I64, element, 0);
                self.set_word(d, word, Known::Nothing);
            }
            _ => return false,
        }
        true
    }
}
