//! Tests of `jit::linked`.

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
