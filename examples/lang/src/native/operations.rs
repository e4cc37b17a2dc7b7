//! Operations on numbers, fields and elements: the guards, and the native code behind them.

use super::lower::Lower;
use super::registers::{Known, Rep};
use super::runtime::Helper;
use crate::bytecode::{Arith, Compare, Op, Reg};
use crate::heap::{Place, at};
use crate::profile::kind;
use crate::value::{FIRST_TAGGED, TRUE, int, reference, tag};
use osier::ir::{Block, Opcode, Type, Value};

/// An operand of arithmetic.
#[derive(Clone, Copy)]
pub(super) enum Operand {
    Register(Reg, u16),
    Small(i32),
}

impl Lower<'_> {
    /// A register as an `i32`, guarded to be an int32.
    pub(super) fn int(&mut self, register: Reg) -> Value {
        let kept = self.kept(register);
        match self.rep(register) {
            Rep::Int => kept,
            Rep::Double => self.whole(kept),
            Rep::Word(_) | Rep::Dead => {
                let word = self.word(register);
                let is = self.e.has_tag(word, tag::INT);
                self.guard(is);
                let int = self.e.op(Opcode::Wrap, Type::I32, &[word]);
                self.set_int(register, int);
                int
            }
        }
    }

    /// The int32 that a double is equal to, guarded.
    fn whole(&mut self, double: Value) -> Value {
        let int = self.e.op(Opcode::SintFromFloatSat, Type::I32, &[double]);
        let back = self.e.op(Opcode::FloatFromSint, Type::F64, &[int]);
        let is = self.e.op(Opcode::Feq, Type::F64, &[back, double]);
        self.guard(is);
        int
    }

    /// A register as an `f64`, guarded to be one of the kinds of numbers that were seen.
    pub(super) fn double(&mut self, register: Reg, seen: u16) -> Value {
        let kept = self.kept(register);
        match self.rep(register) {
            Rep::Double => return kept,
            Rep::Int => return self.e.op(Opcode::FloatFromSint, Type::F64, &[kept]),
            _ => {}
        }
        if seen & kind::NUMBER == kind::INT {
            let int = self.int(register);
            return self.e.op(Opcode::FloatFromSint, Type::F64, &[int]);
        }
        let word = self.word(register);
        let first = self.e.word(FIRST_TAGGED);
        let is = self.e.op(Opcode::Ult, Type::I64, &[word, first]);
        if seen & kind::NUMBER == kind::DOUBLE {
            self.guard(is);
            let double = self.e.op(Opcode::Bitcast, Type::F64, &[word]);
            self.set_double(register, double);
            return double;
        }
        let (result, end) = (self.e.b.declare_var(Type::F64), self.e.b.reserve_block());
        let (double, other) = self.e.fork(is);
        self.e.place(double);
        let value = self.e.op(Opcode::Bitcast, Type::F64, &[word]);
        self.e.b.def_var(result, value);
        self.e.b.jump(end, &[]);
        self.e.place(other);
        let is = self.e.has_tag(word, tag::INT);
        self.guard(is);
        let int = self.e.op(Opcode::Wrap, Type::I32, &[word]);
        let value = self.e.op(Opcode::FloatFromSint, Type::F64, &[int]);
        self.e.b.def_var(result, value);
        self.e.b.jump(end, &[]);
        self.e.place(end);
        let double = self.e.b.use_var(result);
        self.set_double(register, double);
        double
    }

    /// The kinds of numbers that an operand may be; 0 if it may be something else.
    pub(super) fn numeric(&self, operand: Operand) -> u16 {
        let Operand::Register(register, seen) = operand else { return kind::INT };
        match self.rep(register) {
            Rep::Int => kind::INT,
            Rep::Double => kind::DOUBLE,
            Rep::Word(Known::Nothing) => {
                let seen = seen & !kind::OVERFLOW;
                if seen & !kind::NUMBER == 0 { seen } else { 0 }
            }
            Rep::Word(_) | Rep::Dead => 0,
        }
    }

    pub(super) fn as_int(&mut self, operand: Operand) -> Value {
        match operand {
            Operand::Register(register, _) => self.int(register),
            Operand::Small(n) => self.e.int(n),
        }
    }

    pub(super) fn as_double(&mut self, operand: Operand) -> Value {
        match operand {
            Operand::Register(register, seen) => self.double(register, seen),
            Operand::Small(n) => self.e.double(n.into()),
        }
    }

    fn as_reference(&mut self, operand: Operand) -> Value {
        match operand {
            Operand::Register(register, _) => self.reference(register),
            Operand::Small(n) => self.e.fixed(int(n)),
        }
    }

    /// Whether both operands were strings, and nothing else.
    fn are_strings(&self, a: Operand, b: Operand) -> bool {
        let is = |operand: Operand| match operand {
            Operand::Register(register, seen) => match self.rep(register) {
                Rep::Word(Known::Nothing) => seen & !kind::OVERFLOW == kind::STRING,
                rep => rep.tag() == Some(tag::STRING),
            },
            Operand::Small(_) => false,
        };
        is(a) && is(b)
    }

    /// An operand as a word, guarded to be a string.
    fn as_string(&mut self, operand: Operand) -> Value {
        if let Operand::Register(register, _) = operand {
            self.address(register, tag::STRING);
        }
        self.as_reference(operand)
    }

    /// Instructions that compute numbers.
    pub(super) fn numbers(&mut self, op: Op) {
        let [of_a, of_b] = self.kinds();
        let first = |a: Reg| Operand::Register(a, of_a);
        let second = |b: Reg| Operand::Register(b, of_b);
        match op {
            Op::Add(d, a, b) => self.arith(Arith::Add, d, first(a), second(b)),
            Op::Sub(d, a, b) => self.arith(Arith::Sub, d, first(a), second(b)),
            Op::Mul(d, a, b) => self.arith(Arith::Mul, d, first(a), second(b)),
            Op::AddInt(d, a, n) => self.arith(Arith::Add, d, first(a), Operand::Small(n)),
            Op::Arith(arith, d, a, b) => self.arith(arith, d, first(a), second(b)),
            Op::Negate(d, a) => self.negate(d, first(a)),
            Op::ForNext(counter, end, to) => {
                // Guards come before the counter changes: the frame that leaves has it as it was.
                let (now, bound) = (first(counter), second(end));
                let is_int = self.is_int(now, bound);
                if is_int && self.numeric(bound) == kind::INT {
                    let (now, bound) = (self.as_int(now), self.as_int(bound));
                    let one = self.e.int(1);
                    let next = self.add_int(Opcode::Add, Opcode::SaddOverflows, now, one);
                    self.set_int(counter, next);
                    let less = self.e.op(Opcode::Slt, Type::I32, &[next, bound]);
                    return self.branch(less, to, true);
                }
                let (now, bound) = (self.as_double(now), self.as_double(bound));
                let one = self.e.double(1.0);
                let next = self.e.op(Opcode::Fadd, Type::F64, &[now, one]);
                self.set_double(counter, next);
                let less = self.e.op(Opcode::Flt, Type::F64, &[next, bound]);
                self.branch(less, to, true);
            }
            other => unreachable!("{other:?} is lowered elsewhere"),
        }
    }

    /// Whether both operands are int32, and the result always was.
    fn is_int(&self, a: Operand, b: Operand) -> bool {
        self.kinds()[0] & kind::OVERFLOW == 0
            && self.numeric(a) == kind::INT
            && self.numeric(b) == kind::INT
    }

    /// Adds, subtracts or multiplies, guarded against overflow.
    fn add_int(&mut self, op: Opcode, overflows: Opcode, a: Value, b: Value) -> Value {
        // In this order, native code computes both with one addition and branches on its flag.
        let result = self.e.op(op, Type::I32, &[a, b]);
        let overflows = self.e.op(overflows, Type::I32, &[a, b]);
        self.guard_not(overflows);
        result
    }

    fn arith(&mut self, arith: Arith, d: Reg, a: Operand, b: Operand) {
        let is_numeric = self.numeric(a) != 0 && self.numeric(b) != 0;
        let on_bits = arith.is_on_bits();
        // The flag of overflow says nothing of operations on bits.
        let is_int = match on_bits {
            true => self.numeric(a) == kind::INT && self.numeric(b) == kind::INT,
            false => self.is_int(a, b) && arith != Arith::Div,
        };
        if is_int {
            let (x, y) = (self.as_int(a), self.as_int(b));
            let result = self.int_arith(arith, x, y);
            self.set_int(d, result);
        } else if self.is_mixed(arith, a, b) {
            self.dispatched(arith, d, a, b);
        } else if is_numeric && !on_bits {
            let (x, y) = (self.as_double(a), self.as_double(b));
            let result = self.double_arith(arith, x, y);
            self.set_double(d, result);
        } else if arith == Arith::Add && self.are_strings(a, b) {
            let (x, y) = (self.as_string(a), self.as_string(b));
            let word = self.helper(Helper::Concat, &[x, y], &[]);
            self.set_reference(d, word, Known::Tag(tag::STRING));
        } else {
            let number = self.e.fixed(int(arith as i32));
            let (x, y) = (self.as_reference(a), self.as_reference(b));
            let word = self.helper(Helper::Arith, &[number, x, y], &[]);
            self.set_reference(d, word, Known::Nothing);
        }
    }

    pub(super) fn int_arith(&mut self, arith: Arith, a: Value, b: Value) -> Value {
        let n = Type::I32;
        match arith {
            Arith::Add => self.add_int(Opcode::Add, Opcode::SaddOverflows, a, b),
            Arith::Sub => self.add_int(Opcode::Sub, Opcode::SsubOverflows, a, b),
            Arith::Mul => {
                let product = self.add_int(Opcode::Mul, Opcode::SmulOverflows, a, b);
                // A product of 0 is `-0` if a factor is negative.
                let (zero, either) = (self.e.int(0), self.e.op(Opcode::Or, n, &[a, b]));
                let is_negative = self.e.op(Opcode::Slt, n, &[either, zero]);
                let is_zero = self.e.op(Opcode::Eqz, n, &[product]);
                let is_wrong = self.e.op(Opcode::And, n, &[is_negative, is_zero]);
                let fits = self.e.op(Opcode::Eqz, n, &[is_wrong]);
                self.guard(fits);
                product
            }
            Arith::FloorDiv | Arith::Mod => {
                let (zero, one) = (self.e.int(0), self.e.int(1));
                let is_positive = self.e.op(Opcode::Sgt, n, &[b, zero]);
                self.guard(is_positive);
                let rest = self.e.op(Opcode::Srem, n, &[a, b]);
                let is_below = self.e.op(Opcode::Slt, n, &[rest, zero]);
                if arith == Arith::Mod {
                    let above = self.e.op(Opcode::Add, n, &[rest, b]);
                    return self.e.op(Opcode::Select, n, &[is_below, above, rest]);
                }
                let quotient = self.e.op(Opcode::Sdiv, n, &[a, b]);
                let lower = self.e.op(Opcode::Sub, n, &[quotient, one]);
                self.e.op(Opcode::Select, n, &[is_below, lower, quotient])
            }
            Arith::And => self.e.op(Opcode::And, n, &[a, b]),
            Arith::Or => self.e.op(Opcode::Or, n, &[a, b]),
            Arith::Xor => self.e.op(Opcode::Xor, n, &[a, b]),
            Arith::Shl => self.e.op(Opcode::Shl, n, &[a, b]),
            Arith::Shr => self.e.op(Opcode::Sshr, n, &[a, b]),
            Arith::Div => unreachable!("a quotient is a double"),
        }
    }

    pub(super) fn double_arith(&mut self, arith: Arith, a: Value, b: Value) -> Value {
        let f = Type::F64;
        match arith {
            Arith::Add => self.e.op(Opcode::Fadd, f, &[a, b]),
            Arith::Sub => self.e.op(Opcode::Fsub, f, &[a, b]),
            Arith::Mul => self.e.op(Opcode::Fmul, f, &[a, b]),
            Arith::Div => self.e.op(Opcode::Fdiv, f, &[a, b]),
            _ => {
                let quotient = self.e.op(Opcode::Fdiv, f, &[a, b]);
                let floor = self.e.op(Opcode::Ffloor, f, &[quotient]);
                if arith == Arith::FloorDiv {
                    return floor;
                }
                let whole = self.e.op(Opcode::Fmul, f, &[floor, b]);
                self.e.op(Opcode::Fsub, f, &[a, whole])
            }
        }
    }

    fn negate(&mut self, d: Reg, a: Operand) {
        if self.is_int(a, Operand::Small(0)) {
            let (int, zero, rest) = (self.as_int(a), self.e.int(0), self.e.int(i32::MAX));
            // `-0` is no int32, and the negation of the least int32 is no int32.
            let bits = self.e.op(Opcode::And, Type::I32, &[int, rest]);
            let fits = self.e.op(Opcode::Ne, Type::I32, &[bits, zero]);
            self.guard(fits);
            let result = self.e.op(Opcode::Sub, Type::I32, &[zero, int]);
            self.set_int(d, result);
        } else if self.numeric(a) != 0 {
            let double = self.as_double(a);
            let result = self.e.op(Opcode::Fneg, Type::F64, &[double]);
            self.set_double(d, result);
        } else {
            // It throws, in the interpreter.
            let never = self.e.int(0);
            self.guard(never);
            let zero = self.e.int(0);
            self.set_int(d, zero);
        }
    }

    /// Whether two registers compare so.
    pub(super) fn compare(&mut self, kind: Compare, a: Reg, b: Reg) -> Value {
        let [of_a, of_b] = self.kinds();
        let (x, y) = (Operand::Register(a, of_a), Operand::Register(b, of_b));
        let (in_x, in_y) = (self.numeric(x), self.numeric(y));
        if in_x == kind::INT && in_y == kind::INT {
            let op = match kind {
                Compare::Eq => Opcode::Eq,
                Compare::Lt => Opcode::Slt,
                Compare::Le => Opcode::Sle,
            };
            let operands = [self.as_int(x), self.as_int(y)];
            return self.e.op(op, Type::I32, &operands);
        }
        if in_x != 0 && in_y != 0 {
            let op = match kind {
                Compare::Eq => Opcode::Feq,
                Compare::Lt => Opcode::Flt,
                Compare::Le => Opcode::Fle,
            };
            let operands = [self.as_double(x), self.as_double(y)];
            return self.e.op(op, Type::F64, &operands);
        }
        // Values other than numbers and strings are equal if their words are.
        let by_word = |rep: Rep| rep.tag().is_some_and(|tag| tag != tag::STRING);
        let is_known = by_word(self.rep(a)) || by_word(self.rep(b));
        let others = kind::NUMBER | kind::STRING;
        if kind == Compare::Eq
            && (is_known
                || self.lacks(&[(a, of_a)], others)
                || self.lacks(&[(b, of_b)], others)
                || self.lacks(&[(a, of_a), (b, of_b)], others & !kind::INT))
        {
            let words = [self.word(a), self.word(b)];
            return self.e.op(Opcode::Eq, Type::I64, &words);
        }
        let number = self.e.fixed(int(kind as i32));
        let operands = [number, self.reference(a), self.reference(b)];
        let result = self.helper(Helper::Compare, &operands, &[]);
        let (word, yes) = (self.e.bits(result), self.e.word(TRUE));
        self.e.op(Opcode::Eq, Type::I64, &[word, yes])
    }

    /// Guards that registers hold no double, no string and, if `kinds` says so, no int32. Returns
    /// false, without a guard, where such a value was seen, or nothing.
    fn lacks(&mut self, registers: &[(Reg, u16)], kinds: u16) -> bool {
        let has_some = |(register, seen): &(Reg, u16)| {
            // The number may come from another function, whose comparison never saw it.
            let kept = match self.rep(*register) {
                Rep::Int => kind::INT,
                Rep::Double => kind::DOUBLE,
                Rep::Word(_) | Rep::Dead => 0,
            };
            let seen = seen & !kind::OVERFLOW | kept;
            seen == 0 || seen & kinds != 0
        };
        if registers.iter().any(has_some) {
            return false;
        }
        let least = if kinds & kind::INT == 0 { FIRST_TAGGED } else { reference(tag::OBJECT, 0) };
        for (register, _) in registers {
            if self.rep(*register) != Rep::Int {
                let (word, least) = (self.word(*register), self.e.word(least));
                let is_string = self.e.has_tag(word, tag::STRING);
                let is_below = self.e.op(Opcode::Ult, Type::I64, &[word, least]);
                let fails = self.e.op(Opcode::Or, Type::I32, &[is_string, is_below]);
                self.guard_not(fails);
            }
        }
        true
    }

    /// Fields and elements.
    pub(super) fn access(&mut self, op: Op) {
        match op {
            Op::GetField(d, of, site) => match self.fields(of, site) {
                None => {
                    let (object, name) = (self.reference(of), self.name(site));
                    let result = self.helper(Helper::GetField, &[object, name], &[]);
                    self.set_reference(d, result, Known::Nothing);
                }
                Some(cases) => {
                    let result = self.e.b.declare_var(Type::I64);
                    self.each_case(of, &cases, &mut |lower, slots, offset| {
                        let word = lower.e.load(Type::I64, slots, offset);
                        lower.e.b.def_var(result, word);
                    });
                    let word = self.e.b.use_var(result);
                    self.set_word(d, word, Known::Nothing);
                }
            },
            Op::SetField(of, a, site) => match self.fields(of, site) {
                None => {
                    let operands = [self.reference(of), self.name(site), self.reference(a)];
                    self.helper(Helper::SetField, &operands, &[]);
                    self.forget_shapes();
                }
                Some(cases) => {
                    let value = self.word(a);
                    self.each_case(of, &cases, &mut |lower, slots, offset| {
                        lower.e.store(slots, offset, value);
                    });
                }
            },
            Op::GetIndex(d, array, index) => {
                let (header, index) = self.array_and_index(array, index);
                let length = self.e.load(Type::I32, header, 0);
                let is_in = self.e.op(Opcode::Ult, Type::I32, &[index, length]);
                self.guard(is_in);
                let element = self.element(header, index);
                let word = self.e.load(Type::I64, element, 0);
                self.set_word(d, word, Known::Nothing);
            }
            Op::SetIndex(array, index, a) => {
                let value = self.word(a);
                let (header, at) = self.array_and_index(array, index);
                let length = self.e.load(Type::I32, header, 0);
                let is_in = self.e.op(Opcode::Ult, Type::I32, &[at, length]);
                if self.kinds()[0] & kind::APPENDED == 0 {
                    self.guard(is_in);
                    let element = self.element(header, at);
                    return self.e.store(element, 0, value);
                }
                let (inside, outside) = self.e.fork(is_in);
                let end = self.e.b.reserve_block();
                self.e.place(inside);
                let element = self.element(header, at);
                self.e.store(element, 0, value);
                self.e.b.jump(end, &[]);
                self.e.place(outside);
                let slow = self.append(header, at, length, value, end);
                self.e.place(slow);
                let operands = [array, index, a].map(|operand| self.reference(operand));
                self.helper(Helper::SetIndex, &operands, &[]);
                self.e.b.jump(end, &[]);
                self.e.place(end);
            }
            other => unreachable!("{other:?} is lowered elsewhere"),
        }
    }

    fn name(&mut self, site: u32) -> Value {
        self.e.fixed(int(self.proto.sites[site as usize] as i32))
    }

    /// The shapes that an access site has seen, if they are few.
    fn fields(&self, of: Reg, site: u32) -> Option<Vec<(u32, Place)>> {
        let cases = &self.profile().sites[site as usize];
        let is_object = self.rep(of).tag().is_none_or(|tag| tag == tag::OBJECT);
        (is_object && !cases.is_many && !cases.seen.is_empty()).then(|| cases.seen.clone())
    }

    /// Guards that an object has one of the given shapes, and emits code for each shape, with the
    /// address of the slots and the offset.
    fn each_case(
        &mut self,
        of: Reg,
        cases: &[(u32, Place)],
        body: &mut dyn FnMut(&mut Self, Value, u32),
    ) {
        let object = self.address(of, tag::OBJECT);
        let mut at_place = |lower: &mut Self, place: Place| match place {
            Place::Inside(offset) => body(lower, object, offset),
            Place::More(offset) => {
                let more = lower.e.load(Type::I32, object, at::MORE);
                body(lower, more, offset);
            }
        };
        if let Rep::Word(Known::Shape(known)) = self.rep(of)
            && let Some((_, place)) = cases.iter().find(|(shape, _)| *shape == known)
        {
            return at_place(self, *place);
        }
        let (shape, end) = (self.e.load(Type::I32, object, 0), self.e.b.reserve_block());
        for (index, (case, place)) in cases.iter().enumerate() {
            let wanted = self.e.int(*case as i32);
            let is_it = self.e.op(Opcode::Eq, Type::I32, &[shape, wanted]);
            if index + 1 == cases.len() {
                self.guard(is_it);
                at_place(self, *place);
                self.e.b.jump(end, &[]);
            } else {
                let (it, next) = self.e.fork(is_it);
                self.e.place(it);
                at_place(self, *place);
                self.e.b.jump(end, &[]);
                self.e.place(next);
            }
        }
        self.e.place(end);
        if let ([(shape, _)], Rep::Word(_)) = (cases, self.rep(of)) {
            self.state[usize::from(of)] = Rep::Word(Known::Shape(*shape));
        }
    }

    /// The address of an array, and an index as an `i32`.
    fn array_and_index(&mut self, array: Reg, index: Reg) -> (Value, Value) {
        let header = self.address(array, tag::ARRAY);
        let [_, seen] = self.kinds();
        let index = match (self.rep(index), seen & kind::DOUBLE) {
            (Rep::Int | Rep::Double, _) | (_, 0) => self.int(index),
            _ => {
                let double = self.double(index, seen);
                self.whole(double)
            }
        };
        (header, index)
    }

    /// Appends a value to an array with space and continues at `end`, if the index is its length.
    /// Returns the block for all other cases, which is yet to be placed.
    pub(super) fn append(
        &mut self,
        header: Value,
        index: Value,
        length: Value,
        value: Value,
        end: Block,
    ) -> Block {
        let capacity = self.e.load(Type::I32, header, at::CAPACITY);
        let has_space = self.e.op(Opcode::Ult, Type::I32, &[length, capacity]);
        let is_next = self.e.op(Opcode::Eq, Type::I32, &[index, length]);
        let is_easy = self.e.op(Opcode::And, Type::I32, &[is_next, has_space]);
        let (easy, slow) = self.e.fork(is_easy);
        self.e.place(easy);
        let (element, one) = (self.element(header, length), self.e.int(1));
        self.e.store(element, 0, value);
        let longer = self.e.op(Opcode::Add, Type::I32, &[length, one]);
        self.e.store(header, 0, longer);
        self.e.b.jump(end, &[]);
        slow
    }

    pub(super) fn element(&mut self, header: Value, index: Value) -> Value {
        let elements = self.e.load(Type::I32, header, at::ELEMENTS);
        let three = self.e.int(3);
        let offset = self.e.op(Opcode::Shl, Type::I32, &[index, three]);
        self.e.op(Opcode::Add, Type::I32, &[elements, offset])
    }
}
