//! Stubs: small pieces of native code between functions and the library, one for each signature.

use crate::abi::{self, POINTER};
use crate::context::{Context, LAZY_DONE, function_offset, offset};
use crate::sys::trampoline::{self, TypedOffsets};
use crate::traps;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, InstBuilder, MemFlagsData, types};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use ir::{Func, Signature, Type};

/// The kinds of stubs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Stub {
    /// A trampoline that Rust calls: calls a function with the arguments of an array, and stores
    /// its results there.
    Enter(Signature),
    /// A trampoline for callers that know the signature: takes the arguments as a C function does,
    /// and returns a status beside the result.
    Typed(Signature),
    /// A trampoline that Rust calls for code that reads its inputs from the buffer. Holds the
    /// result types.
    Resume(Vec<Type>),
    /// The stand-in for a function without code: asks for code to jump to, or has the function
    /// interpreted.
    Lazy(Signature),
    /// The code behind an OSR point without a resolved target: asks where control continues. Holds
    /// the result types of the function.
    Leave(Vec<Type>),
    /// Returns the results that lie in the buffer. Holds their types.
    Return(Vec<Type>),
    /// Calls a function for a cold block, with arguments and results in the buffer, and saves all
    /// registers.
    Cold(Signature),
}

impl Stub {
    /// Builds the code of the stub into `to`.
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
            Stub::Typed(signature) => {
                let callee = abi::called(signature);
                return trampoline::build_typed(to, scratch, target, &callee, TYPED);
            }
            Stub::Resume(results) => {
                return trampoline::build(to, scratch, target, &abi::resumed(results));
            }
            Stub::Lazy(signature) => to.signature = abi::called(signature),
            Stub::Leave(results) | Stub::Return(results) => to.signature = abi::resumed(results),
            Stub::Cold(_) => to.signature = abi::cold(),
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
            Stub::Cold(signature) => cold(&mut builder, signature, &params),
            Stub::Enter(_) | Stub::Typed(_) | Stub::Resume(_) => {
                unreachable!("jit: trampolines are made above")
            }
        }
        builder.seal_all_blocks();
        builder.finalize(target);
    }

    /// The name of the stub in messages. It has the numbers of parameters and results in place of
    /// the signature, which would be too long.
    pub(crate) fn name(&self) -> String {
        let (what, signature) = match self {
            Stub::Enter(signature) => ("enter", (signature.params.len(), signature.results.len())),
            Stub::Typed(signature) => ("typed", (signature.params.len(), signature.results.len())),
            Stub::Resume(results) => ("resume", (0, results.len())),
            Stub::Lazy(signature) => ("lazy", (signature.params.len(), signature.results.len())),
            Stub::Leave(results) => ("leave", (0, results.len())),
            Stub::Return(results) => ("return", (0, results.len())),
            Stub::Cold(signature) => ("cold", (signature.params.len(), signature.results.len())),
        };
        format!("stub.{what}.{}.{}", signature.0, signature.1)
    }

    /// The number of arguments that the stub passes on.
    pub(crate) fn arguments(&self) -> usize {
        match self {
            Stub::Enter(signature)
            | Stub::Typed(signature)
            | Stub::Lazy(signature)
            | Stub::Cold(signature) => signature.params.len(),
            Stub::Resume(_) | Stub::Leave(_) | Stub::Return(_) => 0,
        }
    }

    /// The number of words of the buffer that the stub uses.
    pub(crate) fn buffer(&self) -> usize {
        match self {
            Stub::Enter(_) | Stub::Typed(_) | Stub::Resume(_) => 0,
            Stub::Lazy(signature) | Stub::Cold(signature) => {
                signature.params.len().max(signature.results.len())
            }
            Stub::Leave(_) => 0,
            Stub::Return(results) => results.len(),
        }
    }
}

/// The parts of the context that typed trampolines use.
const TYPED: TypedOffsets = TypedOffsets {
    stack_limit: offset!(stack_limit),
    stack_room: offset!(stack_room),
    pending: offset!(pending),
    functions: size_of::<Context>() as i32,
};

fn flags() -> MemFlagsData {
    MemFlagsData::trusted()
}

/// Stores the arguments to the buffer and asks. Then either the call is done and its results are in
/// the buffer, or the stub calls the code in tail position with the same arguments.
fn lazy(builder: &mut FunctionBuilder<'_>, signature: &Signature, params: &[clif::Value]) {
    let context = params[0];
    let buffer = builder.ins().load(POINTER, flags(), context, offset!(buffer));
    for (at, (value, ty)) in params[1..].iter().zip(&signature.params).enumerate() {
        let word = to_word(builder, *value, *ty);
        builder.ins().store(flags(), word, buffer, 8 * at as i32);
    }
    let caller = builder.ins().get_return_address(POINTER);
    let code = ask(builder, &[context, caller], offset!(helpers.call_lazy));
    let [done, compiled] = [builder.create_block(), builder.create_block()];
    let is_done = builder.ins().icmp_imm_u(IntCC::Equal, code, LAZY_DONE as i64);
    builder.ins().brif(is_done, done, &[], compiled, &[]);
    builder.switch_to_block(done);
    return_(builder, &signature.results, context);
    builder.switch_to_block(compiled);
    let sig = builder.import_signature(abi::called(signature));
    builder.ins().return_call_indirect(sig, code, params);
}

/// Calls the code of a function. The stub of a function without code finds the function in
/// [`crate::context::Context::pending`], because no call of the program lies at its return address.
fn cold(builder: &mut FunctionBuilder<'_>, signature: &Signature, params: &[clif::Value]) {
    let (context, func) = (params[0], params[1]);
    builder.ins().store(flags(), func, context, offset!(pending));
    // The callee may be a host function, whose embedder runs more code of the program with calls
    // in cold blocks before it answers (`a_cold_call_below_the_embedder_moves_no_site`).
    let outer = builder.ins().load(POINTER, flags(), context, offset!(cold_caller));
    let caller = builder.ins().get_return_address(POINTER);
    builder.ins().store(flags(), caller, context, offset!(cold_caller));
    let load = |builder: &mut FunctionBuilder<'_>, buffer, at: usize, ty: Type| {
        builder.ins().load(abi::held(ty), flags(), buffer, 8 * at as i32)
    };
    let buffer = builder.ins().load(POINTER, flags(), context, offset!(buffer));
    let mut given = vec![context];
    for (at, ty) in signature.params.iter().enumerate() {
        given.push(load(builder, buffer, at, *ty));
    }
    let place = builder.ins().ishl_imm_u(func, 3);
    let place = builder.ins().iadd(context, place);
    let code = builder.ins().load(POINTER, flags(), place, function_offset(Func::from_u32(0)));
    let sig = builder.import_signature(abi::called(signature));
    let call = builder.ins().call_indirect(sig, code, &given);
    let results = builder.inst_results(call).to_vec();
    if !results.is_empty() {
        let buffer = builder.ins().load(POINTER, flags(), context, offset!(buffer));
        for (at, (value, ty)) in results.into_iter().zip(&signature.results).enumerate() {
            let word = to_word(builder, value, *ty);
            builder.ins().store(flags(), word, buffer, 8 * at as i32);
        }
    }
    builder.ins().store(flags(), outer, context, offset!(cold_caller));
    builder.ins().return_(&[]);
}

/// Asks where control continues, and goes there in tail position. The values stay in the buffer.
fn leave(builder: &mut FunctionBuilder<'_>, results: &[Type], context: clif::Value) {
    let code = ask(builder, &[context], offset!(helpers.leave));
    let sig = builder.import_signature(abi::resumed(results));
    builder.ins().return_call_indirect(sig, code, &[context]);
}

/// Returns the results in the buffer: loads them if they belong in registers, and leaves them
/// otherwise.
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

/// Calls a helper that returns a code address, with the context and further words. A result of 0
/// ends the run. The helper may free code, so it gets the frame at which the native frames begin
/// ([`crate::sys::frames`]).
fn ask(builder: &mut FunctionBuilder<'_>, words: &[clif::Value], helper: i32) -> clif::Value {
    let context = words[0];
    let frame = builder.ins().get_frame_pointer(POINTER);
    builder.ins().store(flags(), frame, context, offset!(frame));
    let helper = builder.ins().load(POINTER, flags(), context, helper);
    let sig = builder.import_signature(abi::helper(words.len() - 1));
    let call = builder.ins().call_indirect(sig, helper, words);
    let code = builder.inst_results(call)[0];
    builder.ins().trapz(code, traps::HELPER);
    code
}

/// The 64-bit word for a value: integers zero-extended, floats as their bits.
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
