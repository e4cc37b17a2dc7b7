//! The bytes of compiled code, with the addresses of the functions that the code names.
//!
//! Code of ours names no other code: calls go through the context, and through words beside the
//! code. Cranelift names library functions where the processor lacks an instruction. Their
//! addresses are absolute, so the bytes fit every place.

use crate::arena::LINE;
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir::{ExternalName, LibCall};
use cranelift_codegen::{CompiledCode, FinalizedMachReloc, FinalizedRelocTarget};

/// The code with all relocations applied. Linear in the code.
///
/// # Errors
/// A message that names a relocation of another kind, or an alignment above
/// [`LINE`](crate::arena::LINE).
pub(crate) fn linked(compiled: &CompiledCode) -> Result<Vec<u8>, String> {
    let buffer = &compiled.buffer;
    if buffer.alignment as usize > LINE {
        return Err(format!("the code must begin at a multiple of {} bytes", buffer.alignment));
    }
    let mut bytes = buffer.data().to_vec();
    for reloc in buffer.relocs() {
        let address = address(reloc)?;
        let at = reloc.offset as usize;
        let word = bytes.get_mut(at..at + 8);
        let word =
            word.ok_or_else(|| format!("the relocation at {at:#x} is outside of the code"))?;
        word.copy_from_slice(&address.to_le_bytes());
    }
    Ok(bytes)
}

/// The address that a relocation refers to.
fn address(reloc: &FinalizedMachReloc) -> Result<u64, String> {
    let function = match (&reloc.target, reloc.kind) {
        (FinalizedRelocTarget::ExternalName(ExternalName::LibCall(call)), Reloc::Abs8) => {
            function(*call)
        }
        _ => None,
    };
    let found = function.and_then(|function| function.checked_add_signed(reloc.addend));
    found.ok_or_else(|| {
        let (kind, target) = (reloc.kind, reloc.target.display(None));
        format!("the code has a relocation {kind} of {target}, which this crate does not know")
    })
}

/// The address of a library function.
fn function(call: LibCall) -> Option<u64> {
    extern "C" fn ceil_f32(x: f32) -> f32 {
        x.ceil()
    }
    extern "C" fn ceil_f64(x: f64) -> f64 {
        x.ceil()
    }
    extern "C" fn floor_f32(x: f32) -> f32 {
        x.floor()
    }
    extern "C" fn floor_f64(x: f64) -> f64 {
        x.floor()
    }
    extern "C" fn trunc_f32(x: f32) -> f32 {
        x.trunc()
    }
    extern "C" fn trunc_f64(x: f64) -> f64 {
        x.trunc()
    }
    extern "C" fn nearest_f32(x: f32) -> f32 {
        x.round_ties_even()
    }
    extern "C" fn nearest_f64(x: f64) -> f64 {
        x.round_ties_even()
    }
    let single: extern "C" fn(f32) -> f32 = match call {
        LibCall::CeilF32 => ceil_f32,
        LibCall::FloorF32 => floor_f32,
        LibCall::TruncF32 => trunc_f32,
        LibCall::NearestF32 => nearest_f32,
        _ => {
            let double: extern "C" fn(f64) -> f64 = match call {
                LibCall::CeilF64 => ceil_f64,
                LibCall::FloorF64 => floor_f64,
                LibCall::TruncF64 => trunc_f64,
                LibCall::NearestF64 => nearest_f64,
                _ => return None,
            };
            return Some(double as usize as u64);
        }
    };
    Some(single as usize as u64)
}

#[cfg(test)]
mod tests {
    use super::linked;
    use crate::arena::CodeArena;
    use cranelift_codegen::control::ControlPlane;
    use cranelift_codegen::ir::types::F64;
    use cranelift_codegen::ir::{
        AbiParam, ExtFuncData, ExternalName, InstBuilder, Signature, UserExternalName, Value,
    };
    use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
    use cranelift_codegen::settings::{self, Configurable};
    use cranelift_codegen::{Context, isa};
    use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

    /// The oldest processor that Cranelift knows.
    fn oldest() -> OwnedTargetIsa {
        let mut flags = settings::builder();
        flags.set("is_pic", "false").expect("a setting");
        flags.set("use_colocated_libcalls", "false").expect("a setting");
        let host = cranelift_native::builder().expect("this host is supported");
        let oldest = isa::lookup(host.triple().clone()).expect("this host is supported");
        oldest.finish(settings::Flags::new(flags)).expect("flags that fit")
    }

    /// Compiles a function from floats to floats.
    fn compiled(build: impl FnOnce(&mut FunctionBuilder<'_>, Value) -> Value) -> Context {
        let mut context = Context::new();
        let mut signature = Signature::new(CallConv::SystemV);
        signature.params.push(AbiParam::new(F64));
        signature.returns.push(AbiParam::new(F64));
        context.func.signature = signature;
        let mut scratch = FunctionBuilderContext::new();
        let mut builder = FunctionBuilder::new(&mut context.func, &mut scratch);
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        let x = builder.block_params(entry)[0];
        let result = build(&mut builder, x);
        builder.ins().return_(&[result]);
        builder.seal_all_blocks();
        let isa = oldest();
        builder.finalize(isa.frontend_config());
        context.compile(&*isa, &mut ControlPlane::default()).expect("it compiles");
        context
    }

    /// On processors without an instruction for it, code calls a library function.
    #[test]
    fn processors_without_rounding_call_functions() {
        type Rounding = (fn(&mut FunctionBuilder<'_>, Value) -> Value, fn(f64) -> f64);
        let all: [Rounding; 4] = [
            (|b, x| b.ins().ceil(x), f64::ceil),
            (|b, x| b.ins().floor(x), f64::floor),
            (|b, x| b.ins().trunc(x), f64::trunc),
            (|b, x| b.ins().nearest(x), f64::round_ties_even),
        ];
        for (build, meaning) in all {
            let context = compiled(build);
            let code = context.compiled_code().expect("compiled");
            assert_eq!(code.buffer.relocs().len(), 1);
            let space = CodeArena::new().place(&linked(code).expect("known")).expect("memory");
            let address = std::ptr::with_exposed_provenance::<u8>(space.range().start);
            // SAFETY: the code has this signature, and `space` keeps its memory.
            let function: extern "C" fn(f64) -> f64 = unsafe { std::mem::transmute(address) };
            for x in [-2.5, -0.5, 0.0, 0.5, 1.5, 1e300, f64::INFINITY] {
                assert_eq!(function(x).to_bits(), meaning(x).to_bits(), "{x}");
            }
        }
    }

    #[test]
    fn another_relocation_is_named() {
        let context = compiled(|b, x| {
            let name = UserExternalName::new(0, 7);
            let name = ExternalName::user(b.func.declare_imported_user_function(name));
            let signature = b.func.signature.clone();
            let signature = b.import_signature(signature);
            let data = ExtFuncData { name, signature, colocated: true, patchable: false };
            let callee = b.import_function(data);
            let call = b.ins().call(callee, &[x]);
            b.inst_results(call)[0]
        });
        let error = linked(context.compiled_code().expect("compiled")).expect_err("unknown");
        assert!(error.contains("CallPCRel4") && error.contains("relocation"), "{error}");
    }
}
