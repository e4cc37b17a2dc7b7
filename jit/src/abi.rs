//! The calling convention of native functions.
//!
//! Every function takes the context as its first argument and uses `CallConv::Tail`, so a call in
//! tail position needs no stack. A run may therefore go from version to version any number of times
//! within one stack frame.

use cranelift_codegen::ir::{AbiParam, ArgumentPurpose, Signature as ClifSignature, types};
use cranelift_codegen::isa::CallConv;
use ir::{Signature, Type};

/// The type of addresses. `sys::supported` rejects hosts with addresses of another size.
pub(crate) const POINTER: types::Type = types::I64;

/// The Cranelift type that holds values of a type. References are 64-bit words.
pub(crate) fn held(ty: Type) -> types::Type {
    match ty {
        Type::I8 => types::I8,
        Type::I16 => types::I16,
        Type::I32 => types::I32,
        Type::I64 | Type::FuncRef | Type::ExternRef | Type::Ref => types::I64,
        Type::F32 => types::F32,
        Type::F64 => types::F64,
    }
}

/// The largest number of integers, and likewise of floats, that a function returns in registers:
/// `CallConv::Tail` has no more. A function with more results stores all results to the buffer.
const REGISTERS: usize = 8;

/// The largest number of arguments of a call. A callee pops the arguments on the stack with an
/// instruction that has a 16-bit immediate, so Cranelift panics beyond 8,191 arguments
/// (`more_values_than_native_code_passes_are_refused`). Browsers limit WebAssembly functions to
/// 1,000.
pub(crate) const MOST_ARGUMENTS: usize = 4096;

/// Whether results of these types are returned in registers. Otherwise the function leaves them in
/// the buffer when it returns.
pub(crate) fn in_registers(results: &[Type]) -> bool {
    let floats = results.iter().filter(|ty| ty.is_float()).count();
    floats <= REGISTERS && results.len() - floats <= REGISTERS
}

/// The signature of a function that takes its arguments in registers and on the stack.
pub(crate) fn called(signature: &Signature) -> ClifSignature {
    let mut made = resumed(&signature.results);
    made.params.extend(signature.params.iter().map(|ty| AbiParam::new(held(*ty))));
    made
}

/// The signature of code that reads its inputs from the buffer: a continuation, or a stub that an
/// OSR point leads to.
pub(crate) fn resumed(results: &[Type]) -> ClifSignature {
    let mut made = ClifSignature::new(CallConv::Tail);
    made.params.push(AbiParam::special(POINTER, ArgumentPurpose::VMContext));
    if in_registers(results) {
        made.returns.extend(results.iter().map(|ty| AbiParam::new(held(*ty))));
    }
    made
}

/// The signature of [`crate::stubs::Stub::Cold`], which clobbers no register: it takes the context
/// and the number of a function. Arguments and results are in the buffer.
pub(crate) fn cold() -> ClifSignature {
    let mut made = ClifSignature::new(CallConv::PreserveAll);
    made.params.push(AbiParam::special(POINTER, ArgumentPurpose::VMContext));
    made.params.push(AbiParam::new(types::I64));
    made
}

/// The signature of a Rust helper: it takes the context and `words` further words, and returns one
/// word.
pub(crate) fn helper(words: usize) -> ClifSignature {
    let mut made = ClifSignature::new(CallConv::SystemV);
    made.params.extend((0..=words).map(|_| AbiParam::new(POINTER)));
    made.returns.push(AbiParam::new(POINTER));
    made
}
