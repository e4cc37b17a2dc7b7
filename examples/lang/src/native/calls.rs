//! Calls of functions, of the runtime and of the library; exceptions; variables in the heap.

use super::lower::Lower;
use super::registers::Known;
use super::runtime::COMPARE;
use crate::bytecode::{Capture, Compare, Op, Reg};
use crate::heap::{Builtin, EXCEPTION, GLOBALS, OPERANDS, THROWN, THROWN_AT, at};
use crate::interp::MOST_FRAMES;
use crate::value::{TRUE, tag};
use osier::ir::{Func, Opcode, Type, Value};

impl Lower<'_> {
    /// Instructions on variables and new objects.
    pub(super) fn variables(&mut self, op: Op) {
        let imports = *self.input.imports;
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
            Op::NewCell(d, a) => {
                let word = self.word(a);
                let cell = self.helper(imports.cell, &[word]);
                self.set_word(d, cell, Known::Tag(tag::CELL));
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
            Op::Closure(d, number) => {
                let captures = &self.input.program.protos[number as usize].captures;
                let cells: Vec<Value> = captures
                    .iter()
                    .map(|capture| match capture {
                        Capture::Local(register) => self.word(*register),
                        Capture::Up(up) => self.up(*up),
                    })
                    .collect();
                let count = self.give(&cells);
                let number = self.e.int(number as i32);
                let closure = self.helper(imports.closure, &[number, count]);
                self.set_word(d, closure, Known::Tag(tag::CLOSURE));
            }
            Op::NewObject(d, shape) => {
                let slots = self.e.int((self.input.inside)(shape) as i32);
                let number = self.e.int(shape as i32);
                let object = self.helper(imports.object, &[number, slots]);
                self.set_word(d, object, Known::Shape(shape));
            }
            Op::InitSlot(object, a, slot) => {
                let (object, word) = (self.wrapped(object), self.word(a));
                self.e.store(object, at::SLOTS + slot * 8, word);
            }
            Op::NewArray(d, from, count) => {
                let items: Vec<Value> =
                    (from..from + count as Reg).map(|register| self.word(register)).collect();
                let count = self.give(&items);
                let array = self.helper(imports.array, &[count]);
                self.set_word(d, array, Known::Tag(tag::ARRAY));
            }
            other => unreachable!("{other:?} is lowered elsewhere"),
        }
    }

    fn wrapped(&mut self, register: Reg) -> Value {
        let word = self.word(register);
        self.e.op(Opcode::Wrap, Type::I32, &[word])
    }

    /// A cell of the closure.
    fn up(&mut self, up: u32) -> Value {
        let closure = self.e.b.use_var(self.closure);
        let closure = self.e.op(Opcode::Wrap, Type::I32, &[closure]);
        self.e.load(Type::I64, closure, at::CELLS + up * 8)
    }

    /// Puts operands where functions of the runtime find them. Returns their number.
    pub(super) fn give(&mut self, operands: &[Value]) -> Value {
        let base = self.e.int(0);
        for (index, operand) in (0..).zip(operands) {
            self.e.store(base, OPERANDS + index * 8, *operand);
        }
        self.e.int(operands.len() as i32)
    }

    /// Calls a function of the runtime, which may throw at this instruction.
    pub(super) fn helper(&mut self, func: Func, args: &[Value]) -> Value {
        let result = self.e.call(func, args);
        self.check(result, true);
        result
    }

    /// Goes on unless a call has thrown.
    fn check(&mut self, result: Value, is_here: bool) {
        let thrown = self.e.word(THROWN);
        let is_result = self.e.op(Opcode::Ne, Type::I64, &[result, thrown]);
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

    /// Goes on at the handler, or throws to the caller. The exception is in memory.
    pub(super) fn throw_on(&mut self) {
        let Some(handler) = self.proto.handler(self.pc).copied() else {
            let thrown = self.e.word(THROWN);
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

    pub(super) fn call(&mut self, d: Reg, callee: Reg, args: u8) {
        let cases = self.input.profile.calls[self.pc as usize].clone();
        let fits = |number: &&u32| self.input.program.protos[**number as usize].params == args;
        let seen: Vec<u32> = cases.seen.iter().filter(fits).copied().collect();
        if seen.is_empty() && !cases.is_many {
            return self.leave();
        }
        let address = self.address(callee, tag::CLOSURE);
        let number = self.e.load(Type::I32, address, 0);
        let (depth, one) = (self.e.b.use_var(self.depth), self.e.int(1));
        let depth = self.e.op(Opcode::Add, Type::I32, &[depth, one]);
        let most = self.e.int(MOST_FRAMES as i32);
        let is_shallow = self.e.op(Opcode::Ult, Type::I32, &[depth, most]);
        self.guard(is_shallow);
        let closure = self.word(callee);
        let words: Vec<Value> =
            (callee + 1..callee + 1 + args).map(|register| self.word(register)).collect();
        let (result, end) = (self.e.b.declare_var(Type::I64), self.e.b.reserve_block());
        for (index, case) in seen.iter().enumerate() {
            let wanted = self.e.int(*case as i32);
            let is_it = self.e.op(Opcode::Eq, Type::I32, &[number, wanted]);
            let is_last = index + 1 == seen.len() && !cases.is_many;
            let next = match is_last {
                true => {
                    self.guard(is_it);
                    None
                }
                false => {
                    let (it, next) = self.e.fork(is_it);
                    self.e.place(it);
                    Some(next)
                }
            };
            self.callees.insert(*case);
            let mut given = vec![closure, depth];
            given.extend(&words);
            let word = self.e.call(self.input.funcs[*case as usize], &given);
            self.e.b.def_var(result, word);
            self.e.b.jump(end, &[]);
            next.into_iter().for_each(|next| self.e.place(next));
        }
        if cases.is_many {
            self.note_place();
            let count = self.give(&words);
            let word = self.e.call(self.input.imports.call, &[closure, depth, count]);
            self.e.b.def_var(result, word);
            self.e.b.jump(end, &[]);
        }
        self.e.place(end);
        self.forget_shapes();
        let word = self.e.b.use_var(result);
        self.check(word, false);
        self.set_word(d, word, Known::Nothing);
    }

    pub(super) fn builtin(&mut self, which: Builtin, d: Reg, from: Reg, count: u8) {
        if self.inline_builtin(which, d, from) {
            return;
        }
        let operands: Vec<Value> =
            (from..from + count).map(|register| self.word(register)).collect();
        let count = self.give(&operands);
        let number = Builtin::ALL.iter().position(|known| known.1 == which).unwrap_or_default();
        let number = self.e.int(number as i32);
        let word = self.helper(self.input.imports.builtin, &[number, count]);
        self.set_word(d, word, Known::Nothing);
    }

    /// A comparison by the runtime.
    pub(super) fn compare_any(&mut self, kind: Compare, a: Value, b: Value) -> Value {
        let number = COMPARE.iter().position(|known| *known == kind).unwrap_or_default();
        let number = self.e.int(number as i32);
        let word = self.helper(self.input.imports.compare, &[number, a, b]);
        let yes = self.e.word(TRUE);
        self.e.op(Opcode::Eq, Type::I64, &[word, yes])
    }
}
