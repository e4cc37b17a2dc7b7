//! Canonical NaNs where somebody looks.
//!
//! Arithmetic of the IR gives the canonical NaN, that of the processor any. To what computes on,
//! compares or converts it, one NaN is as good as another; so the result of arithmetic is made
//! canonical where its bits can be seen, and not where it is computed: a sum around a loop is made
//! canonical when it is stored.

use cranelift_codegen::ir::{
    self as clif, InstBuilder, condcodes::FloatCC, immediates::Ieee32, immediates::Ieee64, types,
};
use cranelift_frontend::FunctionBuilder;
use fixedbitset::FixedBitSet;
use ir::{Function, Opcode, Shape, Type, Value, ValueDef};

/// Whether an operation gives the canonical NaN, whatever NaN it is given.
pub(super) fn is_arithmetic(opcode: Opcode) -> bool {
    match opcode {
        Opcode::Fcopysign | Opcode::Fabs | Opcode::Fneg => false,
        _ => matches!(
            opcode.shape(),
            Shape::FloatUnary | Shape::FloatBinary | Shape::Promote | Shape::Demote
        ),
    }
}

/// The values that may hold another NaN than the interpreter's, and then hold some NaN where that
/// has the canonical one: results of arithmetic, and parameters and selections that only such
/// values and numbers reach. Cost: linear in the function and its joins' arguments.
pub(super) fn raw_floats(function: &Function) -> FixedBitSet {
    let mut raw = FixedBitSet::with_capacity(function.value_bound());
    let mut joins = Vec::new();
    for block in function.blocks() {
        for &param in function.block_params(block) {
            if function.value_type(param).is_float() && block != function.entry() {
                raw.insert(param.as_u32() as usize);
                joins.push(param);
            }
        }
        for inst in function.block_insts(block) {
            let data = function.inst(inst);
            let Some(result) = data.result().filter(|r| function.value_type(*r).is_float()) else {
                continue;
            };
            if is_arithmetic(data.opcode) {
                raw.insert(result.as_u32() as usize);
            } else if data.opcode == Opcode::Select {
                raw.insert(result.as_u32() as usize);
                joins.push(result);
            }
        }
    }
    // Optimistic: a join is exact when something exact reaches it.
    let mut exact: Vec<Value> =
        joins.iter().copied().filter(|join| reached_by_exact(function, *join, &raw)).collect();
    while let Some(value) = exact.pop() {
        if raw.contains(value.as_u32() as usize) {
            raw.remove(value.as_u32() as usize);
            exact.extend(joins_fed_by(function, value));
        }
    }
    raw
}

/// Whether the value is a number or a raw float, for all that is known.
fn is_fine(function: &Function, value: Value, raw: &FixedBitSet) -> bool {
    if raw.contains(value.as_u32() as usize) {
        return true;
    }
    let Some(inst) = function.defining_inst(value) else { return false };
    let data = function.inst(inst);
    match (data.opcode, data.constant()) {
        (_, Some(bits)) if data.ty == Type::F32 => !f32::from_bits(bits as u32).is_nan(),
        (_, Some(bits)) => !f64::from_bits(bits).is_nan(),
        (Opcode::FloatFromSint | Opcode::FloatFromUint, None) => true,
        _ => false,
    }
}

fn reached_by_exact(function: &Function, join: Value, raw: &FixedBitSet) -> bool {
    match function.value_def(join) {
        ValueDef::Param(block, index) => function
            .predecessors(block)
            .iter()
            .any(|edge| !is_fine(function, function.target(*edge).args[index as usize], raw)),
        ValueDef::Result(inst, _) => {
            function.inst(inst).args[1..].iter().any(|arg| !is_fine(function, *arg, raw))
        }
    }
}

/// The parameters and selections that a value reaches.
fn joins_fed_by(function: &Function, value: Value) -> Vec<Value> {
    let mut fed = Vec::new();
    for user in function.users(value) {
        let data = function.inst(*user);
        if data.opcode == Opcode::Select {
            fed.extend(data.result());
        }
        for target in &data.targets {
            let params = function.block_params(target.block);
            fed.extend(
                target
                    .args
                    .iter()
                    .zip(params)
                    .filter(|(arg, _)| **arg == value)
                    .map(|(_, param)| *param),
            );
        }
    }
    fed
}

/// The value, or the canonical NaN if it is one. A branch to a cold block costs less than a
/// selection: the constant is made there only.
pub(super) fn canonical(builder: &mut FunctionBuilder<'_>, value: clif::Value) -> clif::Value {
    let ty = builder.func.dfg.value_type(value);
    let [made, rest] = [builder.create_block(), builder.create_block()];
    builder.set_cold_block(made);
    let result = builder.append_block_param(rest, ty);
    let unordered = builder.ins().fcmp(FloatCC::Unordered, value, value);
    builder.ins().brif(unordered, made, &[], rest, &[value.into()]);
    builder.switch_to_block(made);
    let nan = match ty {
        types::F32 => builder.ins().f32const(Ieee32::with_bits(0x7fc0_0000)),
        _ => builder.ins().f64const(Ieee64::with_bits(0x7ff8_0000_0000_0000)),
    };
    builder.ins().jump(rest, &[nan.into()]);
    builder.switch_to_block(rest);
    result
}
