//! Canonical NaNs: decides where native code must replace a NaN by the canonical one.
//!
//! Arithmetic of the IR returns the canonical NaN; arithmetic of the processor returns any NaN. An
//! operation that computes with, compares or converts a NaN treats all NaNs alike. The lowering
//! therefore replaces a NaN only where its bits can be observed. A sum in a loop, for instance,
//! becomes canonical when the program stores it.

use cranelift_codegen::ir::{
    self as clif, InstBuilder, condcodes::FloatCC, immediates::Ieee32, immediates::Ieee64, types,
};
use cranelift_frontend::FunctionBuilder;
use fixedbitset::FixedBitSet;
use ir::{Function, Opcode, Shape, Type, Value, ValueDef};

/// Whether an operation returns the canonical NaN for every NaN operand.
pub(super) fn is_arithmetic(opcode: Opcode) -> bool {
    match opcode {
        Opcode::Fcopysign | Opcode::Fabs | Opcode::Fneg => false,
        _ => matches!(
            opcode.shape(),
            Shape::FloatUnary | Shape::FloatBinary | Shape::Promote | Shape::Demote
        ),
    }
}

/// The *raw* floats: values that may hold any NaN where the interpreter has the canonical one. They
/// are the results of arithmetic, and the parameters and selections whose inputs are all raw or
/// never a NaN. Linear in the function and the arguments of its joins.
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
    // A greatest fixpoint. All joins start raw; a join that some exact value reaches becomes exact,
    // and then the joins that it feeds are checked again. An exact value holds the interpreter's
    // bits, so its NaN must not be replaced.
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

/// Whether the value may feed a raw join: it is raw in the current approximation, or never a NaN.
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

/// The parameters and selections that a value feeds.
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

/// Replaces a NaN by the canonical one. A branch to a cold block is cheaper than a `select`, since
/// the constant is computed in the cold block alone.
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
