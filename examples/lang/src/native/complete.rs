//! Complete bases: they need no exits of their own, since a guard that fails calls the interpreter.
//! So the policy of landing tables may run them in any version, and assume what it likes.

use super::emit::Emit;
use super::lower::Lower;
use super::operations::Operand;
use super::registers::{Known, Rep, has};
use crate::bytecode::{Arith, Reg};
use crate::heap::OPERANDS;
use crate::profile::kind;
use crate::value::{FIRST_TAGGED, NIL, tag};
use osier::ir::{Block, Opcode, Point, Type, Value, Variable};

/// A branch of a complete base that asks whether both operands are int32, or whether a value is a
/// function that was called here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dispatch {
    /// The point of the branch.
    pub(super) at: Point,
    /// Its condition.
    pub(super) holds: Value,
}

impl Lower<'_> {
    /// Calls the interpreter, which continues in front of the instruction, and returns its result.
    pub(super) fn go_on(&mut self) {
        let base = self.e.int(0);
        for register in 0..self.proto.registers as Reg {
            let index = usize::from(register);
            if !has(&self.live[self.pc as usize], register) {
                continue;
            }
            let word = match self.before[index] {
                Rep::Dead => self.e.word(NIL),
                Rep::Int => {
                    let int = self.e.b.use_var(self.ints[index]);
                    self.e.boxed(int)
                }
                Rep::Double => {
                    let double = self.e.b.use_var(self.doubles[index]);
                    self.e.op(Opcode::Bitcast, Type::I64, &[double])
                }
                Rep::Word(_) => {
                    let word = self.e.b.use_var(self.words[index]);
                    self.e.bits(word)
                }
            };
            self.e.store(base, OPERANDS + u32::from(register) * 8, word);
        }
        let (closure, depth) = (self.e.b.use_var(self.closure), self.e.b.use_var(self.depth));
        let place = [self.input.number, self.pc].map(|number| self.e.int(number as i32));
        let args = [closure, depth, place[0], place[1]];
        let result = self.e.call(self.input.imports.go_on, &args);
        self.e.b.ret(&[result]);
    }

    /// Whether a complete base tells int32 from doubles: both kinds of numbers were seen, and no
    /// result of two int32 was a double.
    pub(super) fn is_mixed(&self, arith: Arith, a: Operand, b: Operand) -> bool {
        let is_fit = !arith.is_on_bits() && arith != Arith::Div;
        let both = [self.numeric(a), self.numeric(b)];
        self.input.is_complete
            && is_fit
            && self.kinds()[0] & kind::OVERFLOW == 0
            && both.iter().all(|seen| seen & kind::INT != 0)
            && both[0] | both[1] == kind::NUMBER
    }

    /// Computes with int32 if both operands are, and with doubles otherwise.
    pub(super) fn dispatched(&mut self, arith: Arith, d: Reg, a: Operand, b: Operand) {
        self.note_state();
        let are_ints = self.are_both(&[a, b], |e, word| e.has_tag(word, tag::INT));
        let are_ints = are_ints.expect("an operand may be a double");
        self.asked.push(are_ints);
        let (result, end) = (self.e.b.declare_var(Type::I64), self.e.b.reserve_block());
        let (ints, doubles) = self.e.fork(are_ints);
        let saved = self.state.clone();
        self.e.place(ints);
        let [x, y] = [a, b].map(|operand| self.known_int(operand));
        let int = self.int_arith(arith, x, y);
        let word = self.e.boxed(int);
        self.e.b.def_var(result, word);
        self.e.b.jump(end, &[]);
        self.state.clone_from(&saved);
        self.e.place(doubles);
        if let Some(are_doubles) = self.are_both(&[a, b], |e, word| {
            let first = e.word(FIRST_TAGGED);
            e.op(Opcode::Ult, Type::I64, &[word, first])
        }) {
            let (both, other) = self.e.fork(are_doubles);
            self.e.place(both);
            let [x, y] = [a, b].map(|operand| self.known_double(operand));
            self.computed(arith, [x, y], result, end);
            self.e.place(other);
        }
        let (x, y) = (self.as_double(a), self.as_double(b));
        self.computed(arith, [x, y], result, end);
        self.state = saved;
        self.e.place(end);
        let word = self.e.b.use_var(result);
        self.set_word(d, word, Known::Nothing);
    }

    /// Whether a test holds for all operands that are words. `None` if none is.
    fn are_both(
        &mut self,
        operands: &[Operand],
        test: impl Fn(&mut Emit, Value) -> Value,
    ) -> Option<Value> {
        let mut tests = Vec::new();
        for operand in operands {
            if let Operand::Register(register, _) = *operand
                && let Rep::Word(_) = self.rep(register)
            {
                let word = self.word(register);
                tests.push(test(self.e, word));
            }
        }
        tests.into_iter().reduce(|x, y| self.e.op(Opcode::And, Type::I32, &[x, y]))
    }

    /// Computes with doubles, and continues at the end of a dispatch with the word.
    fn computed(&mut self, arith: Arith, [x, y]: [Value; 2], result: Variable, end: Block) {
        let double = self.double_arith(arith, x, y);
        let word = self.e.op(Opcode::Bitcast, Type::I64, &[double]);
        self.e.b.def_var(result, word);
        self.e.b.jump(end, &[]);
    }

    /// An operand that is known to be a double if it is a word, as a double.
    fn known_double(&mut self, operand: Operand) -> Value {
        match operand {
            Operand::Register(register, _) if matches!(self.rep(register), Rep::Word(_)) => {
                let word = self.word(register);
                self.e.op(Opcode::Bitcast, Type::F64, &[word])
            }
            other => self.as_double(other),
        }
    }

    /// An operand that is known to be an int32.
    fn known_int(&mut self, operand: Operand) -> Value {
        match operand {
            Operand::Register(register, _) => match self.rep(register) {
                Rep::Int => self.kept(register),
                _ => {
                    let word = self.word(register);
                    self.e.op(Opcode::Wrap, Type::I32, &[word])
                }
            },
            Operand::Small(n) => self.e.int(n),
        }
    }
}
