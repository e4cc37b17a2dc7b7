//! Straight-line code.

use super::body::GeneratedBody;
use super::feature::Feature;
use super::scope::ScopeMark;
use ir::{Imm, InstSpec, Opcode, Shape, Type, Value};

/// The weight of plain arithmetic, beside the weights of the features.
const ARITHMETIC: u32 = 12;

/// The operations that tell overflow. Generated programs do not use them
/// (`tests/native/overflow.rs`).
const TELLS_OVERFLOW: [Opcode; 3] =
    [Opcode::SaddOverflows, Opcode::SsubOverflows, Opcode::SmulOverflows];

/// The features that are one or a few instructions in a row.
const LINEAR: [Feature; 20] = [
    Feature::Repeat,
    Feature::Dead,
    Feature::Load,
    Feature::Store,
    Feature::Alias,
    Feature::Traffic,
    Feature::Division,
    Feature::Hazard,
    Feature::EdgeConstant,
    Feature::Convert,
    Feature::Select,
    Feature::Call,
    Feature::IndirectCall,
    Feature::Global,
    Feature::MemorySize,
    Feature::MemoryGrow,
    Feature::Range,
    Feature::Table,
    Feature::Float,
    Feature::HostCall,
];

impl GeneratedBody<'_> {
    /// Adds up to `count` features or operations.
    pub(super) fn straight(&mut self, count: u32) {
        for _ in 0..count {
            let references = self.weights.references();
            if references > 0 && self.prng.chance(references) {
                self.moved_reference();
                continue;
            }
            let declared = self.weights.declared();
            if declared > 0 && self.prng.chance(declared) {
                self.declared_call();
                continue;
            }
            let mut weights = [0; LINEAR.len() + 1];
            weights[0] = ARITHMETIC;
            for (weight, feature) in weights[1..].iter_mut().zip(LINEAR) {
                *weight = self.weight(feature);
            }
            match self.prng.weighted(&weights) {
                None | Some(0) => self.arithmetic(),
                Some(choice) => self.linear(LINEAR[choice - 1]),
            }
        }
    }

    fn linear(&mut self, feature: Feature) {
        match feature {
            Feature::Repeat => {
                if !self.repeat() {
                    self.arithmetic();
                }
            }
            Feature::Dead => self.dead(),
            Feature::Load => {
                self.load();
            }
            Feature::Store => self.store(),
            Feature::Alias => self.alias(),
            Feature::Traffic => self.traffic(),
            Feature::Division => {
                self.division(None);
            }
            Feature::Hazard => self.hazard(),
            Feature::EdgeConstant => self.edge_operation(),
            Feature::Convert => self.convert(),
            Feature::Select => self.select(),
            Feature::Call => self.call(),
            Feature::IndirectCall => self.call_indirect(),
            Feature::Global => self.global(),
            Feature::MemorySize | Feature::MemoryGrow => self.memory_size(feature),
            Feature::Range => self.range(),
            Feature::Table => self.table(),
            Feature::HostCall => self.host_call(),
            _ => self.float_arithmetic(),
        }
    }

    /// An operation on values of one type that cannot trap.
    pub(super) fn arithmetic(&mut self) {
        let ty = self.any_type();
        let common = [
            Opcode::Add,
            Opcode::Sub,
            Opcode::Xor,
            Opcode::Mul,
            Opcode::And,
            Opcode::Slt,
            Opcode::Eq,
        ];
        let opcode = if ty.is_int() && self.prng.chance(60) {
            self.prng.pick(&common)
        } else {
            self.any_operation(ty)
        };
        self.operation(opcode, ty);
    }

    fn float_arithmetic(&mut self) {
        let ty = self.prng.pick(&[Type::F32, Type::F64]);
        let opcode = self.any_operation(ty);
        self.operation(opcode, ty);
        self.plant(Feature::Float);
    }

    /// An opcode that is pure, allows this type, and takes operands of this type alone.
    fn any_operation(&mut self, ty: Type) -> Opcode {
        let is_usual = |op: &Opcode| op.is_pure() && !TELLS_OVERFLOW.contains(op);
        let suits =
            |op: &Opcode| is_usual(op) && op.allows_type(ty) && uniform_arity(*op).is_some();
        let rows: Vec<Opcode> = Opcode::ALL.iter().copied().filter(suits).collect();
        self.prng.pick(&rows)
    }

    fn operation(&mut self, opcode: Opcode, ty: Type) -> Value {
        let arity = uniform_arity(opcode).expect("the caller chose an operation on one type");
        let args: Vec<Value> = (0..arity).map(|_| self.pick(ty)).collect();
        self.op(opcode, ty, &args)
    }

    /// A value without a use.
    fn dead(&mut self) {
        let ty = self.int_type();
        let (a, b) = (self.pick(ty), self.pick(ty));
        self.hidden(InstSpec::new(Opcode::Mul, ty, Imm::None, &[a, b]));
        self.plant(Feature::Dead);
    }

    /// A shift, an addition or a comparison whose second operand is a special constant.
    fn edge_operation(&mut self) {
        let ty = self.int_type();
        let ops = [
            Opcode::Shl,
            Opcode::Sshr,
            Opcode::Ushr,
            Opcode::Rotl,
            Opcode::Add,
            Opcode::Sub,
            Opcode::Mul,
            Opcode::Slt,
            Opcode::Uge,
        ];
        let opcode = self.prng.pick(&ops);
        let (a, b) = (self.pick(ty), self.edge_constant(ty));
        self.op(opcode, ty, &[a, b]);
    }

    pub(super) fn load(&mut self) -> Value {
        let (address, imm) = self.address();
        let ty = self.any_type();
        self.plant(Feature::Load);
        self.load_at(ty, address, imm)
    }

    fn load_at(&mut self, ty: Type, address: Value, imm: Imm) -> Value {
        let is_load = |op: &Opcode| matches!(op.shape(), Shape::Load(_)) && op.allows_type(ty);
        let rows: Vec<Opcode> = Opcode::ALL.iter().copied().filter(is_load).collect();
        let opcode = if self.prng.chance(60) { Opcode::Load } else { self.prng.pick(&rows) };
        self.value(InstSpec::new(opcode, ty, imm, &[address]))
    }

    fn store(&mut self) {
        let (address, imm) = self.address();
        self.store_at(address, imm);
        self.plant(Feature::Store);
    }

    fn store_at(&mut self, address: Value, imm: Imm) {
        let ty = self.any_type();
        let is_store = |op: &Opcode| matches!(op.shape(), Shape::Store(_)) && op.allows_type(ty);
        let rows: Vec<Opcode> = Opcode::ALL.iter().copied().filter(is_store).collect();
        let opcode = if self.prng.chance(60) { Opcode::Store } else { self.prng.pick(&rows) };
        let value = self.pick(ty);
        self.insert(InstSpec::new(opcode, ty, imm, &[address, value]));
    }

    /// Accesses of one place in a row, with accesses of another place in between: a load that can
    /// be forwarded, a store that is dead, a load that a store may have changed.
    fn alias(&mut self) {
        let (place, imm) = self.address();
        let (other, other_imm) = self.address();
        let ty = self.any_type();
        for _ in 0..self.prng.between(2, 4) {
            match self.prng.below(6) {
                0 | 1 => {
                    self.load_at(ty, place, imm);
                }
                2 | 3 => self.store_at(place, imm),
                4 => self.store_at(other, other_imm),
                _ => {
                    self.load_at(ty, other, other_imm);
                }
            }
        }
        self.plant(Feature::Alias);
    }

    /// A division that does not trap, because its divisor is odd or a positive constant. With a
    /// mark, its operands were in scope there.
    pub(super) fn division(&mut self, mark: Option<ScopeMark>) -> Value {
        let ty = self.int_type();
        let opcode =
            self.prng.pick(&[Opcode::Udiv, Opcode::Urem, Opcode::Srem, Opcode::Udiv, Opcode::Sdiv]);
        let operand = |body: &mut Self| match mark {
            Some(mark) => body.pick_at(ty, mark),
            None => body.pick(ty),
        };
        let (dividend, raw) = (operand(self), operand(self));
        let divisor = if opcode == Opcode::Sdiv || self.prng.chance(30) {
            // The minimum divided by -1 traps, too. So a signed division takes a positive constant.
            let bits = u64::from(self.prng.pick(&[1u32, 2, 3, 7, 100]));
            self.constant(ty, bits)
        } else {
            let one = self.constant(ty, 1);
            self.op(Opcode::Or, ty, &[raw, one])
        };
        self.plant(Feature::Division);
        self.op(opcode, ty, &[dividend, divisor])
    }

    pub(super) fn hazard(&mut self) {
        self.plant(Feature::Hazard);
        if self.prng.chance(25) {
            let (from, to) =
                (self.prng.pick(&[Type::F32, Type::F64]), self.prng.pick(&[Type::I32, Type::I64]));
            let opcode = self.prng.pick(&[Opcode::SintFromFloat, Opcode::UintFromFloat]);
            let operand = self.pick(from);
            self.op(opcode, to, &[operand]);
            return;
        }
        let ty = self.int_type();
        let opcode = self.prng.pick(&[Opcode::Sdiv, Opcode::Udiv, Opcode::Srem, Opcode::Urem]);
        let (dividend, divisor) = (self.pick(ty), self.pick(ty));
        self.op(opcode, ty, &[dividend, divisor]);
    }

    /// An operation whose operand has another type than its result.
    fn convert(&mut self) {
        self.plant(Feature::Convert);
        let (to, from) = (self.any_type(), self.any_type());
        let suits =
            |op: &Opcode| op.is_pure() && op.allows_type(to) && converts(op.shape(), from, to);
        let rows: Vec<Opcode> = Opcode::ALL.iter().copied().filter(suits).collect();
        if rows.is_empty() {
            self.arithmetic();
            return;
        }
        let opcode = self.prng.pick(&rows);
        let operand = self.pick(from);
        self.op(opcode, to, &[operand]);
    }

    fn select(&mut self) {
        let (condition_ty, ty) = (self.int_type(), self.any_type());
        let args = [self.pick(condition_ty), self.pick(ty), self.pick(ty)];
        self.op(Opcode::Select, ty, &args);
        self.plant(Feature::Select);
    }

    /// An `i32` that is the result of a comparison.
    pub(super) fn comparison(&mut self) -> Value {
        let ty = self.any_type();
        let suits = |op: &Opcode| {
            matches!(op.shape(), Shape::IntCompare | Shape::FloatCompare | Shape::IntTest)
                && op.allows_type(ty)
                && !TELLS_OVERFLOW.contains(op)
        };
        let rows: Vec<Opcode> = Opcode::ALL.iter().copied().filter(suits).collect();
        let opcode = self.prng.pick(&rows);
        self.operation(opcode, ty)
    }

    /// Calls most of the earlier functions once each.
    pub(super) fn call_helpers(&mut self) {
        for callee in self.affordable() {
            if self.prng.chance(75) {
                self.straight(1);
                self.call_one(callee);
            }
        }
    }

    fn call(&mut self) {
        let affordable = self.affordable();
        if affordable.is_empty() {
            self.arithmetic();
            return;
        }
        let callee = self.prng.pick(&affordable);
        self.call_one(callee);
    }

    pub(super) fn call_one(&mut self, callee: usize) {
        let callee = self.around.callees[callee].clone();
        let args: Vec<Value> = callee.signature.params.iter().map(|ty| self.pick(*ty)).collect();
        self.finish_call(
            InstSpec::call(callee.func, &args, &callee.signature.results),
            callee.steps,
        );
        self.plant(Feature::Call);
    }

    fn call_indirect(&mut self) {
        let affordable = self.affordable();
        let fits = |entry: &Option<usize>| entry.is_none_or(|c| affordable.contains(&c));
        let entries = &self.around.entries;
        let filled: Vec<usize> = (0..entries.len()).filter(|e| entries[*e].is_some()).collect();
        if !self.around.may_call_indirect || filled.is_empty() || !entries.iter().all(fits) {
            self.arithmetic();
            return;
        }
        let entry = self.prng.pick(&filled);
        let callee = entries[entry].expect("the list holds filled entries");
        let callee = self.around.callees[callee].clone();
        let mut args: Vec<Value> =
            callee.signature.params.iter().map(|ty| self.pick(*ty)).collect();
        let index = if self.wants(Feature::Hazard) {
            self.pick(Type::I32)
        } else {
            self.constant(Type::I32, entry as u64)
        };
        args.push(index);
        let steps = self.around.callees.iter().map(|c| c.steps).max().unwrap_or(0);
        let spec = InstSpec::call_indirect(
            callee.sig,
            self.around.table,
            &args,
            &callee.signature.results,
        );
        self.finish_call(spec, steps);
        self.plant(Feature::IndirectCall);
    }

    pub(super) fn finish_call(&mut self, spec: InstSpec, steps: u64) {
        self.steps += self.rounds * steps;
        let call = self.insert(spec);
        let results = self.builder.function().inst(call).results.clone();
        for result in results {
            let ty = self.builder.function().value_type(result);
            self.scope.push(result, ty);
        }
    }

    /// An operation on references that a collector may move. Words are contents like others, so a
    /// reference may be made of any word, also of a word from before a collection.
    fn moved_reference(&mut self) {
        let seen = self.scope.of(Type::Ref).to_vec();
        if seen.is_empty() || self.prng.chance(25) {
            let word = self.pick(Type::I64);
            // Odd words move.
            let one = self.constant(Type::I64, 1);
            let odd = self.op(Opcode::Or, Type::I64, &[word, one]);
            self.value(InstSpec::new(Opcode::RefOf, Type::I32, Imm::None, &[odd]));
            return;
        }
        let (a, b) = (self.prng.pick(&seen), self.prng.pick(&seen));
        match self.prng.below(10) {
            0..=5 => {
                self.value(InstSpec::new(Opcode::RefBits, Type::I32, Imm::None, &[a]));
            }
            6..=7 => {
                self.value(InstSpec::new(Opcode::RefEq, Type::I32, Imm::None, &[a, b]));
            }
            8 => {
                let condition = self.pick(Type::I32);
                self.op(Opcode::Select, Type::Ref, &[condition, a, b]);
            }
            _ => {
                self.constant(Type::Ref, 8);
            }
        }
    }

    fn global(&mut self) {
        let (global, ty, mutable) = self.prng.pick(&self.around.globals);
        if mutable && self.prng.chance(45) {
            let value = self.pick(ty);
            self.insert(InstSpec::new(Opcode::GlobalSet, ty, Imm::Global(global), &[value]));
        } else {
            self.value(InstSpec::new(Opcode::GlobalGet, ty, Imm::Global(global), &[]));
        }
        self.plant(Feature::Global);
    }

    fn memory_size(&mut self, feature: Feature) {
        let imm = Imm::Memory(self.around.memory);
        if feature == Feature::MemorySize {
            self.value(InstSpec::new(Opcode::MemorySize, Type::I32, imm, &[]));
        } else {
            // By nothing, by one page, or by more than the maximum.
            let bits = u64::from(self.prng.pick(&[0u32, 1, 1, 100]));
            let delta = self.constant(Type::I32, bits);
            let size = self.hidden(InstSpec::new(Opcode::MemoryGrow, Type::I32, imm, &[delta]));
            self.scope.push(size, Type::I32);
        }
        self.plant(feature);
    }
}

/// The number of operands of an operation, if all have its controlling type.
fn uniform_arity(opcode: Opcode) -> Option<usize> {
    match opcode.shape() {
        Shape::IntUnary | Shape::FloatUnary | Shape::IntTest => Some(1),
        Shape::IntBinary | Shape::FloatBinary | Shape::IntCompare | Shape::FloatCompare => Some(2),
        _ => None,
    }
}

/// Whether an operation of this shape converts one operand of type `from` to a result of type `to`.
fn converts(shape: Shape, from: Type, to: Type) -> bool {
    match shape {
        Shape::Extend => from.is_int() && to.is_int() && from.bits() < to.bits(),
        Shape::Wrap => from.is_int() && to.is_int() && from.bits() > to.bits(),
        Shape::IntToFloat => from.is_int() && from.bits() >= 32 && to.is_float(),
        Shape::FloatToInt => from.is_float() && to.is_int() && to.bits() >= 32,
        Shape::Promote => (from, to) == (Type::F32, Type::F64),
        Shape::Demote => (from, to) == (Type::F64, Type::F32),
        Shape::Bitcast => from.is_int() != to.is_int() && from.bits() == to.bits(),
        _ => false,
    }
}
