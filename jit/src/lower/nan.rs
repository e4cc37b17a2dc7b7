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
use ir::eval::{is_nan, makes_nans};
use ir::{Function, Opcode, Shape, Value, ValueDef};

/// The *raw* floats, whose NaN may differ from the interpreter's. Three kinds are raw: results of
/// arithmetic; parameters and selections whose inputs are all raw or never a NaN, where the
/// interpreter has the canonical NaN; and values whose bits no instruction observes. Example: a sum
/// over an array starts with the first element, an input from memory. No instruction observes its
/// bits, so the loop makes no intermediate sum canonical. Linear in the function and the arguments
/// of its joins.
pub(super) fn raw_floats(function: &Function) -> FixedBitSet {
    let mut raw = FixedBitSet::with_capacity(function.value_bound());
    let mut joins = Vec::new();
    let seen = seen_floats(function);
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
            if makes_nans(data.opcode) {
                raw.insert(result.as_u32() as usize);
            } else if data.opcode == Opcode::Select {
                raw.insert(result.as_u32() as usize);
                joins.push(result);
            }
        }
    }
    // A greatest fixpoint. All joins start raw. A join with an exact input becomes exact, and then
    // its users are checked again. An exact value holds the interpreter's bits, so its NaN must not
    // be replaced.
    let mut exact: Vec<Value> =
        joins.iter().copied().filter(|join| reached_by_exact(function, *join, &raw)).collect();
    while let Some(value) = exact.pop() {
        let index = value.as_u32() as usize;
        if raw.contains(index) && seen.contains(index) {
            raw.remove(index);
            exact.extend(joins_fed_by(function, value));
        }
    }
    raw
}

/// The floats whose bits an instruction observes, directly or through joins. Every use observes the
/// bits, except arithmetic, comparisons, conversions, and joins whose own bits no instruction
/// observes.
fn seen_floats(function: &Function) -> FixedBitSet {
    let mut seen = FixedBitSet::with_capacity(function.value_bound());
    let mut work: Vec<Value> = Vec::new();
    for inst in function.all_insts() {
        let data = function.inst(inst);
        let joins = data.opcode == Opcode::Select;
        let blind = makes_nans(data.opcode)
            || matches!(data.opcode.shape(), Shape::FloatCompare | Shape::FloatToInt);
        if !joins && !blind {
            work.extend(data.args.iter().filter(|arg| function.value_type(**arg).is_float()));
        }
    }
    while let Some(value) = work.pop() {
        if seen.put(value.as_u32() as usize) {
            continue;
        }
        match function.value_def(value) {
            ValueDef::Result(inst, _) if function.inst(inst).opcode == Opcode::Select => {
                work.extend(&function.inst(inst).args[1..]);
            }
            ValueDef::Result(..) => {}
            ValueDef::Param(block, index) => {
                let edges = function.predecessors(block).iter();
                work.extend(edges.map(|edge| function.target(*edge).args[index as usize]));
            }
        }
    }
    seen
}

/// Whether the value may feed a raw join: it is raw in the current approximation, or never a NaN.
fn is_fine(function: &Function, value: Value, raw: &FixedBitSet) -> bool {
    if raw.contains(value.as_u32() as usize) {
        return true;
    }
    let Some(inst) = function.defining_inst(value) else { return false };
    let data = function.inst(inst);
    match (data.opcode, data.constant()) {
        (_, Some(bits)) => !is_nan(data.ty, bits),
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
