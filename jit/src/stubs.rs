//! Small pieces of native code that stand between functions and the library, one for each
//! signature.

use crate::abi::{self, POINTER};
use crate::context::{LAZY_DONE, offset};
use crate::sys::trampoline;
use crate::traps;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, InstBuilder, MemFlagsData, types};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use ir::{Signature, Type};

/// What a stub is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Stub {
    /// Called from Rust: calls a function with arguments from an array and leaves its results
    /// there.
    Enter(Signature),
    /// The same for code that finds what it needs in the buffer.
    Resume(Vec<Type>),
    /// Stands for a function without code: asks for some, or has it interpreted.
    Lazy(Signature),
    /// Stands for the code an OSR point leads to: asks where to go on.
    Leave(Vec<Type>),
    /// Returns what is in the buffer.
    Return(Vec<Type>),
}

impl Stub {
    /// Makes the stub's code.
    pub(crate) fn build(
        &self,
        to: &mut clif::Function,
        scratch: &mut FunctionBuilderContext,
        target: TargetFrontendConfig,
    ) {
        match self {
            Stub::Enter(signature) => {
                return trampoline::build(to, scratch, target, &abi::called(signature));
            }
            Stub::Resume(results) => {
                return trampoline::build(to, scratch, target, &abi::resumed(results));
            }
            Stub::Lazy(signature) => to.signature = abi::called(signature),
            Stub::Leave(results) | Stub::Return(results) => to.signature = abi::resumed(results),
        }
        let mut builder = FunctionBuilder::new(to, scratch);
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        let params = builder.block_params(entry).to_vec();
        match self {
            Stub::Lazy(signature) => lazy(&mut builder, signature, &params),
            Stub::Leave(results) => leave(&mut builder, results, params[0]),
            Stub::Return(results) => return_(&mut builder, results, params[0]),
            Stub::Enter(_) | Stub::Resume(_) => unreachable!("jit: trampolines are made above"),
        }
        builder.seal_all_blocks();
        builder.finalize(target);
    }

    /// What it is called in messages, where a signature would be too long.
    pub(crate) fn name(&self) -> String {
        let (what, signature) = match self {
            Stub::Enter(signature) => ("enter", (signature.params.len(), signature.results.len())),
            Stub::Resume(results) => ("resume", (0, results.len())),
            Stub::Lazy(signature) => ("lazy", (signature.params.len(), signature.results.len())),
            Stub::Leave(results) => ("leave", (0, results.len())),
            Stub::Return(results) => ("return", (0, results.len())),
        };
        format!("stub.{what}.{}.{}", signature.0, signature.1)
    }

    /// Arguments that it passes on.
    pub(crate) fn arguments(&self) -> usize {
        match self {
            Stub::Enter(signature) | Stub::Lazy(signature) => signature.params.len(),
            Stub::Resume(_) | Stub::Leave(_) | Stub::Return(_) => 0,
        }
    }

    /// Words of the buffer it uses.
    pub(crate) fn buffer(&self) -> usize {
        match self {
            Stub::Enter(_) | Stub::Resume(_) => 0,
            Stub::Lazy(signature) => signature.params.len().max(signature.results.len()),
            Stub::Leave(_) => 0,
            Stub::Return(results) => results.len(),
        }
    }
}

fn flags() -> MemFlagsData {
    MemFlagsData::trusted()
}

/// Puts the arguments into the buffer and asks; then the call is done, or goes on in code.
fn lazy(builder: &mut FunctionBuilder<'_>, signature: &Signature, params: &[clif::Value]) {
    let context = params[0];
    let buffer = builder.ins().load(POINTER, flags(), context, offset!(buffer));
    for (at, (value, ty)) in params[1..].iter().zip(&signature.params).enumerate() {
        let word = to_word(builder, *value, *ty);
        builder.ins().store(flags(), word, buffer, 8 * at as i32);
    }
    let code = ask(builder, context, offset!(helpers.call_lazy));
    let [done, compiled] = [builder.create_block(), builder.create_block()];
    let is_done = builder.ins().icmp_imm_u(IntCC::Equal, code, LAZY_DONE as i64);
    builder.ins().brif(is_done, done, &[], compiled, &[]);
    builder.switch_to_block(done);
    return_(builder, &signature.results, context);
    builder.switch_to_block(compiled);
    let sig = builder.import_signature(abi::called(signature));
    builder.ins().return_call_indirect(sig, code, params);
}

fn leave(builder: &mut FunctionBuilder<'_>, results: &[Type], context: clif::Value) {
    let code = ask(builder, context, offset!(helpers.leave));
    let sig = builder.import_signature(abi::resumed(results));
    builder.ins().return_call_indirect(sig, code, &[context]);
}

fn return_(builder: &mut FunctionBuilder<'_>, results: &[Type], context: clif::Value) {
    if !abi::in_registers(results) {
        builder.ins().return_(&[]);
        return;
    }
    let buffer = builder.ins().load(POINTER, flags(), context, offset!(buffer));
    let load = |(at, ty): (usize, &Type)| {
        builder.ins().load(abi::held(*ty), flags(), buffer, 8 * at as i32)
    };
    let values: Vec<clif::Value> = results.iter().enumerate().map(load).collect();
    builder.ins().return_(&values);
}

/// Calls a helper that gives a code address; 0 ends the run.
fn ask(builder: &mut FunctionBuilder<'_>, context: clif::Value, helper: i32) -> clif::Value {
    let helper = builder.ins().load(POINTER, flags(), context, helper);
    let sig = builder.import_signature(abi::helper(0));
    let call = builder.ins().call_indirect(sig, helper, &[context]);
    let code = builder.inst_results(call)[0];
    builder.ins().trapz(code, traps::HELPER);
    code
}

/// The word that stands for a value.
pub(crate) fn to_word(
    builder: &mut FunctionBuilder<'_>,
    value: clif::Value,
    ty: Type,
) -> clif::Value {
    let bits = match ty {
        Type::F32 => builder.ins().bitcast(types::I32, MemFlagsData::new(), value),
        Type::F64 => return builder.ins().bitcast(types::I64, MemFlagsData::new(), value),
        _ => value,
    };
    if ty.bits() == 64 { bits } else { builder.ins().uextend(types::I64, bits) }
}
