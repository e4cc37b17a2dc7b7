//! Programs for the NaNs of the processor.
//!
//! With [`Nans::Platform`], arithmetic gives other NaNs than the interpreter, and states agree
//! modulo the bits of NaNs until a program observes these bits (`docs/native.md`). Where a
//! generated program would observe them, this module inserts an instruction that makes the float
//! canonical: at stores, calls, returns, moves to integers, and reads of a sign. So memories,
//! globals, effects, results and integers are equal byte by byte again. Floats inside functions,
//! also in transitions, still have the NaNs of the processor.

use crate::case::Case;
use ir::edit::{Editor, Fuel, Pass, apply_without_log};
use ir::eval::{canonical_nan, is_nan};
use ir::{Imm, InstData, InstSpec, Opcode, Shape, Type, Value};
use jit::Nans;
use std::borrow::Cow;

/// The most times that a program with canonical floats executes as many instructions as before:
/// each operand of a call costs three.
const LONGER: u64 = 4;

/// The float operands whose bits an instruction observes.
fn observed(inst: &InstData) -> &[Value] {
    match inst.opcode.shape() {
        Shape::Store(_)
        | Shape::GlobalSet
        | Shape::Call
        | Shape::CallIndirect
        | Shape::CallValue
        | Shape::Return
        | Shape::Bitcast => &inst.args,
        _ if inst.opcode == Opcode::Fcopysign => &inst.args[1..],
        _ => &[],
    }
}

/// Makes floats canonical where their bits are observed.
struct SettleNans;

impl Pass for SettleNans {
    fn name(&self) -> &'static str {
        "settle_nans"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        let all: Vec<ir::Inst> = editor.func().all_insts().collect();
        for inst in all {
            let data = editor.func().inst(inst).clone();
            let watched = observed(&data);
            let first = data.args.len() - watched.len().min(data.args.len());
            for (index, value) in (first..).zip(watched) {
                let ty = editor.func().value_type(*value);
                if !ty.is_float() || !editor.plan("observed") {
                    continue;
                }
                let nan = editor.add_value(InstSpec::constant(ty, canonical_nan(ty)), inst);
                let equal = InstSpec::new(Opcode::Feq, ty, Imm::None, &[*value, *value]);
                let equal = editor.add_value(equal, inst);
                let settled = InstSpec::new(Opcode::Select, ty, Imm::None, &[equal, *value, nan]);
                let settled = editor.add_value(settled, inst);
                editor.replace_operand(inst, index, settled);
            }
        }
    }
}

/// The case. If its native code has the NaNs of the processor, the program is changed so that it
/// observes no NaN from arithmetic.
pub(super) fn settled(case: &Case) -> Cow<'_, Case> {
    if case.options.nans == Nans::Canonical {
        return Cow::Borrowed(case);
    }
    let mut case = case.clone();
    let funcs: Vec<ir::Func> = case.module.defined().map(|(func, _)| func).collect();
    for func in funcs {
        let body = case.module.body(func).expect("it is defined");
        let made = apply_without_log(body, &SettleNans, &mut Fuel::UNLIMITED.clone());
        case.module.define(func, made);
    }
    case.fuel = case.fuel.saturating_mul(LONGER);
    Cow::Owned(case)
}

/// Whether the bits of a value of native code and of the interpreter agree: equal, or modulo the
/// bits of NaNs.
pub(super) fn agree(nans: Nans, ty: Type, [one, other]: [u64; 2]) -> bool {
    one == other || nans == Nans::Platform && is_nan(ty, one) && is_nan(ty, other)
}

#[cfg(test)]
mod tests;
