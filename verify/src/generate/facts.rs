//! Facts that hold at first and then break.
//!
//! A profile of the first rounds, or of the first calls, takes such a fact for a constant. A
//! version that assumes the fact is right until the fact breaks: in a later round, after a store,
//! or in a later call. Speculation that fails is tested by no other programs.

use super::body::{Callee, GeneratedBody, LoopFrame};
use super::feature::Feature;
use ir::{Imm, InstSpec, Opcode, Target, Type, Value, reference};

/// The first rounds of a loop in which a fact holds, at most.
const MOST_ROUNDS: u32 = 3;

/// Pairs of contents that are alike: the two zeros, two NaNs, two numbers with the same lower half.
const INTS: &[(u64, u64)] = &[(0, 1), (1, 0), (7, 8), (0, 0x8000_0000), (0xff, 0xffff)];
const WIDE: &[(u64, u64)] = &[(5, 5 | 1 << 32), (0, 1 << 63), (u64::MAX, u32::MAX as u64), (1, 2)];
const NARROW: &[(u64, u64)] = &[(0, 0x80), (1, 0xff), (0, 1), (0x7f, 0x80)];
const SINGLES: &[(u64, u64)] = &[
    (0, 0x8000_0000),
    (0x8000_0000, 0),
    (0x7fc0_0000, 0x7fc0_0001),
    (0x7fa0_0001, 0x7fe0_0001),
    (0x3f80_0000, 0x4000_0000),
];
const DOUBLES: &[(u64, u64)] = &[
    (0, 1 << 63),
    (1 << 63, 0),
    (0x7ff8_0000_0000_0000, 0x7ff8_0000_0000_0001),
    (0x7ff4_0000_0000_0001, 0x7ffc_0000_0000_0001),
    (0x3ff0_0000_0000_0000, 0x4000_0000_0000_0000),
];

impl GeneratedBody<'_> {
    /// A fact about the rounds of the innermost loop.
    pub(super) fn breaking_fact(&mut self) {
        let Some(frame) = self.loops.last().cloned() else { return };
        self.plant(Feature::Fact);
        let holds = self.first_rounds(&frame);
        match self.prng.below(8) {
            0 | 1 => self.rare_branch(holds),
            2 | 3 => self.breaking_memory(holds),
            4 => self.breaking_reference(holds),
            5 => self.breaking_argument(holds),
            _ => {
                let ty = self.fact_type();
                self.breaking_value(ty, holds);
            }
        }
    }

    /// Calls of one function, the last with another argument.
    pub(super) fn breaking_calls(&mut self) {
        let Some(callee) = self.callee_with_params() else { return };
        self.plant(Feature::Fact);
        let mut args: Vec<Value> =
            callee.signature.params.iter().map(|ty| self.edge_constant(*ty)).collect();
        for _ in 0..self.prng.between(1, 3) {
            self.call_with(&callee, &args);
        }
        let index = self.prng.index(args.len());
        args[index] = self.pick(callee.signature.params[index]);
        self.call_with(&callee, &args);
    }

    /// A condition that is 1 in the first rounds of a loop, and 0 later.
    fn first_rounds(&mut self, frame: &LoopFrame) -> Value {
        let rounds = self.prng.between(1, MOST_ROUNDS);
        let bound = self.constant(frame.counter_ty, u64::from(rounds));
        let round = if frame.counts_down {
            self.op(Opcode::Sub, frame.counter_ty, &[frame.limit, frame.counter])
        } else {
            frame.counter
        };
        self.op(Opcode::Ult, frame.counter_ty, &[round, bound])
    }

    fn fact_type(&mut self) -> Type {
        self.prng.pick(&[
            Type::I32,
            Type::I32,
            Type::I64,
            Type::I8,
            Type::I16,
            Type::F32,
            Type::F64,
        ])
    }

    /// Two contents of a number type: the usual contents and the deviating contents.
    fn alike(&mut self, ty: Type) -> [Value; 2] {
        let (usual, other) = match ty {
            Type::I8 | Type::I16 => self.prng.pick(NARROW),
            Type::I64 => self.prng.pick(WIDE),
            Type::F32 => self.prng.pick(SINGLES),
            Type::F64 => self.prng.pick(DOUBLES),
            Type::I32 | Type::FuncRef | Type::ExternRef | Type::Ref => self.prng.pick(INTS),
        };
        [usual, other].map(|bits| self.constant(ty, bits & ty.mask()))
    }

    /// A value that is one constant while a condition holds, with an operation on it.
    fn breaking_value(&mut self, ty: Type, holds: Value) -> Value {
        let [usual, other] = self.alike(ty);
        let value = self.op(Opcode::Select, ty, &[holds, usual, other]);
        let other = self.pick(ty);
        let opcode = if ty.is_int() {
            self.prng.pick(&[Opcode::Add, Opcode::And, Opcode::Eq, Opcode::Mul])
        } else {
            self.prng.pick(&[Opcode::Fadd, Opcode::Feq, Opcode::Fmin, Opcode::Fcopysign])
        };
        self.op(opcode, ty, &[value, other]);
        value
    }

    /// A branch to an arm that runs once the condition does not hold.
    fn rare_branch(&mut self, holds: Value) {
        let (mark, slow, join) = (self.scope.mark(), self.builder.create_block(), self.new_join());
        let around = self.join_target(&join);
        self.br_if(holds, around, Target::new(slow, &[]));
        self.enter_arm(slow, mark);
        let count = self.prng.between(1, 3);
        self.straight(count);
        if self.prng.chance(50) {
            let (address, imm) = self.address();
            let value = self.pick(Type::I32);
            self.insert(InstSpec::new(Opcode::Store, Type::I32, imm, &[address, value]));
        }
        self.jump_to_join(&join);
        self.enter_join(&join, mark);
    }

    /// A cell that is read in each round, and written with other contents in a later one.
    fn breaking_memory(&mut self, holds: Value) {
        let ty = self.fact_type();
        let (address, imm) = self.address();
        let read = self.value(InstSpec::new(Opcode::Load, ty, imm, &[address]));
        let [_, other] = self.alike(ty);
        let written = self.op(Opcode::Select, ty, &[holds, read, other]);
        let count = self.prng.below(3);
        self.straight(count);
        self.insert(InstSpec::new(Opcode::Store, ty, imm, &[address, written]));
    }

    /// The same with an entry of a table, and a reference.
    fn breaking_reference(&mut self, holds: Value) {
        let (ty, table) = (Type::FuncRef, Imm::Table(self.around.references));
        let func = self.around.callees.first().map(|callee| callee.func);
        let index = self.constant(Type::I32, 0);
        let read = self.hidden(InstSpec::new(Opcode::TableGet, ty, table, &[index]));
        let other = self.constant(ty, reference::of_func(func));
        let written =
            self.hidden(InstSpec::new(Opcode::Select, ty, Imm::None, &[holds, read, other]));
        self.value(InstSpec::new(Opcode::RefIsNull, ty, Imm::None, &[written]));
        self.insert(InstSpec::new(Opcode::TableSet, ty, table, &[index, written]));
    }

    /// A call whose argument changes in a later round.
    fn breaking_argument(&mut self, holds: Value) {
        let Some(callee) = self.callee_with_params() else { return };
        let params = callee.signature.params.clone();
        let changes = self.prng.index(params.len());
        let mut args = Vec::new();
        for (index, ty) in params.into_iter().enumerate() {
            args.push(match index == changes {
                true => self.breaking_value(ty, holds),
                false => self.edge_constant(ty),
            });
        }
        self.call_with(&callee, &args);
    }

    fn call_with(&mut self, callee: &Callee, args: &[Value]) {
        let spec = InstSpec::call(callee.func, args, &callee.signature.results);
        self.finish_call(spec, callee.steps);
    }

    /// A function that may be called here and takes arguments; `None` without calls.
    fn callee_with_params(&mut self) -> Option<Callee> {
        if self.weight(Feature::Call) == 0 {
            return None;
        }
        let callees: Vec<Callee> = self
            .affordable()
            .into_iter()
            .map(|index| self.around.callees[index].clone())
            .filter(|callee| !callee.signature.params.is_empty())
            .collect();
        (!callees.is_empty()).then(|| callees[self.prng.index(callees.len())].clone())
    }
}
