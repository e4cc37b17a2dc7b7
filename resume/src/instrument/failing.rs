//! Points that fire when an assumption fails.
//!
//! Example: `%y = assume.i32 %x, 7, 1` becomes
//!
//! ```text
//!   %seven = const.i32 7
//!   %differs = ne.i32 %x, %seven
//!   br_if %differs, exit, rest
//! rest:
//!   %y = const.i32 7
//! ```
//!
//! An entry that lands at the assumption lands before the test: the run has not passed it. So the
//! copy of the assumption is the first instruction of the test
//! (`an_entry_that_lands_at_an_assumption_is_tested`).

use super::{Copier, InstrumentError};
use cranelift_entity::EntityRef;
use ir::rules::{self, Operand};
use ir::{Function, Imm, Inst, InstSpec, Opcode, Target, Type, Value, reference};

/// The integer type as wide as a float type.
const fn twin(ty: Type) -> Option<Type> {
    match ty {
        Type::F32 => Some(Type::I32),
        Type::F64 => Some(Type::I64),
        _ => None,
    }
}

/// Checks that the point stands before an assumption that can be tested.
pub(super) fn check(version: &Function, point: usize, inst: Inst) -> Result<(), InstrumentError> {
    let Some((value, bits)) = version.inst(inst).assumed() else {
        return Err(InstrumentError::NotAnAssumption { point, inst });
    };
    if version.value_type(value).is_ref() && bits != reference::NULL {
        return Err(InstrumentError::NotComparable { point, value });
    }
    Ok(())
}

impl Copier<'_> {
    /// Emits the test of an assumption: leaves if it fails.
    pub(super) fn test(&mut self, inst: Inst, leave: Target, stay: Target) {
        let (value, bits) =
            self.version.inst(inst).assumed().expect("`check` has seen the assumption");
        let ty = self.version.value_type(value);
        let copy = self.values[value.index()].expect("the operand is available");
        // A truth value decides by itself. Cranelift then joins the comparison with the branch.
        let (first, tested, leaves_on_zero) = match bits {
            0 if ty.is_int() => (None, copy, false),
            1 if ty.is_int() && self.is_truth(value) => (None, copy, true),
            bits => {
                let (first, differs) = self.differs(ty, copy, bits);
                (Some(first), differs, false)
            }
        };
        let (then, otherwise) = if leaves_on_zero { (stay, leave) } else { (leave, stay) };
        let branch = self.builder.br_if(tested, then, otherwise);
        let first = first.unwrap_or(branch);
        self.insts[inst.index()] = first.into();
        self.origins.set_inst(first, inst);
    }

    /// Emits the comparison of a value with bits. Returns its first instruction, and a value that
    /// is zero if and only if they are equal.
    fn differs(&mut self, ty: Type, value: Value, bits: u64) -> (Inst, Value) {
        let emit = |copier: &mut Self, spec: InstSpec| {
            let inst = copier.builder.insert(spec);
            (inst, copier.builder.function().inst(inst).results[0])
        };
        if ty.is_ref() {
            let (first, is_null) =
                emit(self, InstSpec::new(Opcode::RefIsNull, ty, Imm::None, &[value]));
            let (_, is_other) =
                emit(self, InstSpec::new(Opcode::Eqz, Type::I32, Imm::None, &[is_null]));
            return (first, is_other);
        }
        if ty == Type::Ref {
            let (first, expected) = emit(self, InstSpec::constant(ty, bits));
            let spec = InstSpec::new(Opcode::RefEq, Type::I32, Imm::None, &[value, expected]);
            let (_, same) = emit(self, spec);
            let (_, is_other) =
                emit(self, InstSpec::new(Opcode::Eqz, Type::I32, Imm::None, &[same]));
            return (first, is_other);
        }
        // Floats are compared by their bits: -0 is not +0, and a NaN is equal to itself.
        let (word, value, cast) = match twin(ty) {
            None => (ty, value, None),
            Some(word) => {
                let (cast, moved) =
                    emit(self, InstSpec::new(Opcode::Bitcast, word, Imm::None, &[value]));
                (word, moved, Some(cast))
            }
        };
        let (constant, expected) = emit(self, InstSpec::constant(word, bits));
        let compare = InstSpec::new(Opcode::Ne, word, Imm::None, &[value, expected]);
        let (_, differs) = emit(self, compare);
        (cast.unwrap_or(constant), differs)
    }

    /// Whether a value of the version is 0 or 1.
    fn is_truth(&self, value: Value) -> bool {
        let Some(inst) = self.version.defining_inst(value) else { return false };
        let data = self.version.inst(inst);
        let operand = |arg: &Value| {
            let constant = self.version.constant(*arg);
            Operand { possible: constant.unwrap_or(u64::MAX), constant }
        };
        let operands: Vec<Operand> = data.args.iter().map(operand).collect();
        let ty = self.version.value_type(value);
        rules::possible_bits(data.opcode, data.ty, ty, &operands) <= 1
    }

    /// Emits the result of an assumption whose test the run has passed.
    pub(super) fn assumed(&mut self, inst: Inst) {
        let (_, bits) = self.version.inst(inst).assumed().expect("`check` has seen the assumption");
        let data = self.version.inst(inst);
        let copy = self.builder.insert(InstSpec::constant(data.ty, bits));
        self.origins.set_inst(copy, inst);
        let result = self.builder.function().inst(copy).results[0];
        data.results.iter().for_each(|of| self.set_value(result, *of));
    }
}
