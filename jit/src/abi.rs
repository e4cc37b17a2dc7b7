//! How native functions are called.
//!
//! Every function takes the context first and has the calling convention `Tail`, whose calls in
//! tail position use no stack: a run may so go from version to version any number of times.

use cranelift_codegen::ir::{AbiParam, ArgumentPurpose, Signature as ClifSignature, types};
use cranelift_codegen::isa::CallConv;
use ir::{Signature, Type};

/// The type of addresses. `sys::supported` refuses hosts where it is another.
pub(crate) const POINTER: types::Type = types::I64;

/// How a value of a type is held. References are words.
pub(crate) fn held(ty: Type) -> types::Type {
    match ty {
        Type::I8 => types::I8,
        Type::I16 => types::I16,
        Type::I32 => types::I32,
        Type::I64 | Type::FuncRef | Type::ExternRef => types::I64,
        Type::F32 => types::F32,
        Type::F64 => types::F64,
    }
}

/// Results that are returned in registers; a function with more leaves all of them in the buffer.
const REGISTERS: usize = 4;

/// Arguments that a call can have. A function takes those on the stack away when it returns, by an
/// instruction that has 16 bits for them: Cranelift panics beyond 8,191
/// (`more_values_than_native_code_passes_are_refused`). The WebAssembly of browsers has 1,000.
pub(crate) const MOST_ARGUMENTS: usize = 4096;

/// Whether results are returned in registers; otherwise they are in the buffer when the function
/// has returned.
pub(crate) fn in_registers(results: &[Type]) -> bool {
    results.len() <= REGISTERS
}

/// A function called with its arguments.
pub(crate) fn called(signature: &Signature) -> ClifSignature {
    let mut made = resumed(&signature.results);
    made.params.extend(signature.params.iter().map(|ty| AbiParam::new(held(*ty))));
    made
}

/// Code that finds what it needs in the buffer: a continuation, or a stub that an OSR point leaves
/// through.
pub(crate) fn resumed(results: &[Type]) -> ClifSignature {
    let mut made = ClifSignature::new(CallConv::Tail);
    made.params.push(AbiParam::special(POINTER, ArgumentPurpose::VMContext));
    if in_registers(results) {
        made.returns.extend(results.iter().map(|ty| AbiParam::new(held(*ty))));
    }
    made
}

/// A Rust function: the context and so many words, to one word.
pub(crate) fn helper(words: usize) -> ClifSignature {
    let mut made = ClifSignature::new(CallConv::SystemV);
    made.params.extend((0..=words).map(|_| AbiParam::new(POINTER)));
    made.returns.push(AbiParam::new(POINTER));
    made
}
