//! Calls of the runtime; exceptions; variables in the heap.

use super::lower::Lower;
use super::registers::Known;
use super::runtime::{Helper, number};
use crate::bytecode::{Op, Reg};
use crate::heap::header::THROWN_AT;
use crate::heap::{EXCEPTION, GLOBALS, OPERANDS, THROWN, at};
use crate::value::NIL;
use osier::ir::{Opcode, Type, Value};

impl Lower<'_> {
    /// Instructions on variables and slots of new objects.
    pub(super) fn variables(&mut self, op: Op) {
        match op {
            Op::GetGlobal(d, global) => {
                let base = self.e.int(0);
                let word = self.e.load(Type::I64, base, GLOBALS + global * 8);
                self.set_word(d, word, Known::Nothing);
            }
            Op::SetGlobal(a, global) => {
                let (base, word) = (self.e.int(0), self.word(a));
                self.e.store(base, GLOBALS + global * 8, word);
            }
            Op::GetCell(d, a) => {
                let cell = self.wrapped(a);
                let word = self.e.load(Type::I64, cell, 0);
                self.set_word(d, word, Known::Nothing);
            }
            Op::SetCell(cell, a) => {
                let (cell, word) = (self.wrapped(cell), self.word(a));
                self.e.store(cell, 0, word);
            }
            Op::GetUp(d, up) => {
                let cell = self.up(up);
                let cell = self.e.op(Opcode::Wrap, Type::I32, &[cell]);
                let word = self.e.load(Type::I64, cell, 0);
                self.set_word(d, word, Known::Nothing);
            }
            Op::SetUp(a, up) => {
                let cell = self.up(up);
                let cell = self.e.op(Opcode::Wrap, Type::I32, &[cell]);
                let word = self.word(a);
                self.e.store(cell, 0, word);
            }
            Op::InitSlot(object, a, slot) => {
                let (object, word) = (self.wrapped(object), self.word(a));
                self.e.store(object, at::SLOTS + slot * 8, word);
            }
            other => unreachable!("{other:?} is lowered elsewhere"),
        }
    }

    fn wrapped(&mut self, register: Reg) -> Value {
        let word = self.word(register);
        self.e.op(Opcode::Wrap, Type::I32, &[word])
    }

    /// A cell of the closure.
    pub(super) fn up(&mut self, up: u32) -> Value {
        let closure = self.e.b.use_var(self.closure);
        let closure = self.e.bits(closure);
        let closure = self.e.op(Opcode::Wrap, Type::I32, &[closure]);
        self.e.load(Type::I64, closure, at::CELLS + up * 8)
    }

    /// Puts words where functions of the runtime find them.
    pub(super) fn give(&mut self, words: &[Value]) {
        let base = self.e.int(0);
        self.e.store_all(base, OPERANDS, words);
    }

    /// Calls a function of the runtime with references, and words that it finds in memory. It may
    /// throw at this instruction, and collect.
    pub(super) fn helper(&mut self, helper: Helper, given: &[Value], words: &[Value]) -> Value {
        if self.within.is_some() && self.input.is_complete {
            self.needs_runtime = true;
            return self.e.fixed(NIL);
        }
        self.give(words);
        let mut args = vec![self.e.int(number(helper, words.len()) as i32)];
        args.extend(given);
        while args.len() < 4 {
            args.push(self.e.fixed(NIL));
        }
        let result = self.e.call(self.input.imports.runtime, &args);
        self.check(result, true);
        result
    }

    /// Continues unless a call has thrown.
    pub(super) fn check(&mut self, result: Value, is_here: bool) {
        let (word, thrown) = (self.e.bits(result), self.e.word(THROWN));
        let is_result = self.e.op(Opcode::Ne, Type::I64, &[word, thrown]);
        let (good, bad) = self.e.fork(is_result);
        self.e.place(bad);
        if is_here {
            self.note_place();
        }
        self.throw_on();
        self.e.place(good);
        self.is_open = true;
    }

    /// Notes where the exception is thrown.
    pub(super) fn note_place(&mut self) {
        let (base, place) = (self.e.int(0), self.proto.places[self.pc as usize]);
        let place = self.e.int(place as i32);
        self.e.store(base, THROWN_AT, place);
    }

    /// Continues at the handler, or throws to the caller. The exception is in memory.
    pub(super) fn throw_on(&mut self) {
        if let Some(call) = self.within {
            let throws = *call.throws.get_or_init(|| self.e.b.reserve_block());
            self.e.b.jump(throws, &[]);
            return;
        }
        let Some(handler) = self.proto.handler(self.pc).copied() else {
            let thrown = self.e.fixed(THROWN);
            self.e.b.ret(&[thrown]);
            return;
        };
        let saved = self.state.clone();
        let base = self.e.int(0);
        let exception = self.e.load(Type::I64, base, EXCEPTION);
        self.forget_shapes();
        self.set_word(handler.register, exception, Known::Nothing);
        self.edge(handler.target);
        self.state = saved;
    }
}
