//! New objects, arrays, closures and cells: native code takes the next free bytes of the heap, and
//! calls the runtime where too few are left.

use super::emit::Emit;
use super::lower::Lower;
use super::registers::Known;
use super::runtime::Helper;
use crate::bytecode::{Capture, Op, Reg};
use crate::heap::{Heap, at, header};
use crate::value::{NIL, int, tag};
use osier::ir::{Opcode, Type, Value};

impl Lower<'_> {
    /// Instructions that allocate.
    pub(super) fn allocation(&mut self, op: Op) {
        match op {
            Op::NewCell(d, a) => {
                let word = self.word(a);
                let made =
                    self.allocate(tag::CELL, 8, &|e, cell| e.store(cell, 0, word), |lower| {
                        let value = lower.reference(a);
                        lower.helper(Helper::Cell, &[value], &[])
                    });
                self.set_reference(d, made, Known::Tag(tag::CELL));
            }
            Op::Closure(d, number) => {
                let captures = &self.input.program.protos[number as usize].captures;
                let cell = |capture: &Capture| match capture {
                    Capture::Local(register) => self.word(*register),
                    Capture::Up(up) => self.up(*up),
                };
                let cells: Vec<Value> = captures.iter().map(cell).collect();
                let count = cells.len() as u32;
                let fill = |e: &mut Emit, closure| {
                    let numbers = e.word(u64::from(number) | u64::from(count) << 32);
                    e.store(closure, 0, numbers);
                    e.store_all(closure, at::CELLS, &cells);
                };
                let made = self.allocate(tag::CLOSURE, at::CELLS + count * 8, &fill, |lower| {
                    let number = lower.e.fixed(int(number as i32));
                    lower.helper(Helper::Closure, &[number], &cells)
                });
                self.set_reference(d, made, Known::Tag(tag::CLOSURE));
            }
            Op::NewObject(d, shape) => {
                let inside = (self.input.inside)(shape);
                if self.input.calls_new {
                    let made = self.new_object(shape, inside);
                    return self.set_reference(d, made, Known::Shape(shape));
                }
                // The instructions behind set the first slots, and none of them leaves.
                let behind = &self.proto.code[self.pc as usize + 1..];
                let is_set = |op: &&Op| matches!(op, Op::InitSlot(object, ..) if *object == d);
                let set = behind.iter().take_while(is_set).count() as u32;
                let fill = |e: &mut Emit, object| {
                    let (numbers, nil) = (e.word(shape.into()), e.word(NIL));
                    e.store(object, 0, numbers);
                    e.store_all(object, at::SLOTS + set * 8, &vec![nil; (inside - set) as usize]);
                };
                let made = self.allocate(tag::OBJECT, at::SLOTS + inside * 8, &fill, |lower| {
                    let numbers = [shape, inside].map(|number| lower.e.fixed(int(number as i32)));
                    lower.helper(Helper::Object, &numbers, &[])
                });
                self.set_reference(d, made, Known::Shape(shape));
            }
            Op::NewArray(d, from, count) => {
                let items: Vec<Value> =
                    (from..from + count as Reg).map(|register| self.word(register)).collect();
                let (offset, capacity) = (at::FIRST_ELEMENT, Heap::capacity(count));
                let fill = |e: &mut Emit, array| {
                    let numbers = e.word(u64::from(capacity) << 32 | u64::from(count));
                    let behind = e.int(offset as i32);
                    let first = e.op(Opcode::Add, Type::I32, &[array, behind]);
                    let elements = e.op(Opcode::Uextend, Type::I64, &[first]);
                    e.store(array, 0, numbers);
                    e.store(array, at::ELEMENTS, elements);
                    e.store_all(array, offset, &items);
                };
                let made = self.allocate(tag::ARRAY, offset + capacity * 8, &fill, |lower| {
                    lower.helper(Helper::Array, &[], &items)
                });
                self.set_reference(d, made, Known::Tag(tag::ARRAY));
            }
            other => unreachable!("{other:?} is lowered elsewhere"),
        }
    }

    /// An object by a call, which Osier may leave out together with all that follows here.
    fn new_object(&mut self, shape: u32, inside: u32) -> Value {
        let bytes = self.e.int((at::SLOTS + inside * 8) as i32);
        let word = self.e.word(tag::OBJECT << 48);
        let (shape, slots) = (self.e.int(shape as i32), self.e.int(inside as i32));
        let made = self.e.call(self.input.imports.new, &[bytes, word, shape, slots]);
        self.check(made, true);
        let word = self.e.bits(made);
        let address = self.e.op(Opcode::Wrap, Type::I32, &[word]);
        let (none, nil) = (self.e.int(0), self.e.word(NIL));
        self.e.store(address, 0, shape);
        self.e.store(address, at::MORE, none);
        self.e.store_all(address, at::SLOTS, &vec![nil; inside as usize]);
        made
    }

    /// Allocates bytes, a multiple of 8, and fills them; or calls the runtime.
    fn allocate(
        &mut self,
        tag: u64,
        bytes: u32,
        fill: &dyn Fn(&mut Emit, Value),
        runtime: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        let (result, end) = (self.e.b.declare_var(Type::Ref), self.e.b.reserve_block());
        let (base, size) = (self.e.int(0), self.e.int(bytes as i32));
        let next = self.e.load(Type::I32, base, header::NEXT);
        let behind = self.e.op(Opcode::Add, Type::I32, &[next, size]);
        let limit = self.e.load(Type::I32, base, header::LIMIT);
        let fits = self.e.op(Opcode::Ule, Type::I32, &[behind, limit]);
        let (easy, full) = self.e.fork(fits);
        self.e.place(easy);
        self.e.store(base, header::NEXT, behind);
        fill(self.e, next);
        let (wide, tag) = (self.e.op(Opcode::Uextend, Type::I64, &[next]), self.e.word(tag << 48));
        let word = self.e.op(Opcode::Or, Type::I64, &[wide, tag]);
        let made = self.e.reference(word);
        self.e.b.def_var(result, made);
        self.e.b.jump(end, &[]);
        self.e.place(full);
        self.e.b.mark_cold(full);
        let made = runtime(self);
        self.e.b.def_var(result, made);
        self.e.b.jump(end, &[]);
        self.e.place(end);
        self.e.b.use_var(result)
    }
}
