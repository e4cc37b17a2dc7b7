//! A harness that compiles and enters small functions.

use std::mem;
use std::sync::Arc;

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    AbiParam, ArgumentPurpose, Function, GlobalValueData, InstBuilder, MemFlagsData, Signature,
    Type, Value,
};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Module, default_libcall_names};

use crate::sys::enter::{self, EntryState, HelperStatus, NativeStop, Trampoline};
use crate::sys::registry::{self, Registration};
use crate::sys::trampoline;
use crate::sys::traps::{self, TrapTable};

/// The context of the tests' native code.
#[repr(C)]
#[derive(Default)]
pub(super) struct Context {
    pub(super) entry: EntryState,
    pub(super) stack_limit: u64,
    /// Words that a test and its helpers share.
    pub(super) data: [u64; 4],
}

pub(super) const STACK_LIMIT: i32 = mem::offset_of!(Context, stack_limit) as i32;
pub(super) const DATA: i32 = mem::offset_of!(Context, data) as i32;

/// A signature of native code. The context comes first: Cranelift finds the stack limit through it.
pub(super) fn native(params: &[Type], results: &[Type]) -> Signature {
    let mut signature = Signature::new(CallConv::Tail);
    signature.params.push(AbiParam::special(I64, ArgumentPurpose::VMContext));
    signature.params.extend(params.iter().map(|&ty| AbiParam::new(ty)));
    signature.returns.extend(results.iter().map(|&ty| AbiParam::new(ty)));
    signature
}

/// A module under construction, and after `finish` code that can be entered.
pub(super) struct Code {
    // Empty in `drop` alone.
    module: Option<JITModule>,
    builder_context: FunctionBuilderContext,
    compiled: Vec<(FuncId, usize, Arc<TrapTable>)>,
    registration: Option<Registration>,
}

impl Code {
    pub(super) fn new() -> Self {
        let mut flags = settings::builder();
        for (name, value) in [
            ("opt_level", "speed"),
            ("is_pic", "false"),
            ("enable_verifier", "true"),
            ("preserve_frame_pointers", "true"),
            ("enable_multi_ret_implicit_sret", "true"),
        ] {
            flags.set(name, value).expect("a setting of Cranelift");
        }
        let isa = cranelift_native::builder()
            .expect("this host is supported")
            .finish(settings::Flags::new(flags))
            .expect("flags that fit");
        let module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
        Code {
            module: Some(module),
            builder_context: FunctionBuilderContext::new(),
            compiled: Vec::new(),
            registration: None,
        }
    }

    fn module(&mut self) -> &mut JITModule {
        self.module.as_mut().expect("there until it is dropped")
    }

    pub(super) fn declare(&mut self, signature: &Signature) -> FuncId {
        self.module().declare_anonymous_function(signature).expect("a function can be declared")
    }

    fn compile(
        &mut self,
        id: FuncId,
        write: impl FnOnce(&mut Function, &mut FunctionBuilderContext, &mut JITModule),
    ) -> TrapTable {
        let module = self.module.as_mut().expect("there until it is dropped");
        let mut context = module.make_context();
        write(&mut context.func, &mut self.builder_context, module);
        module.define_function(id, &mut context).expect("the function compiles");
        let compiled = context.compiled_code().expect("compiled just now");
        let table =
            TrapTable::new(compiled.buffer.traps().iter().map(|trap| (trap.offset, trap.code)));
        self.compiled.push((id, compiled.buffer.data().len(), Arc::new(table.clone())));
        table
    }

    /// Defines a native function. `body` gets its parameters, the context first.
    pub(super) fn define(
        &mut self,
        id: FuncId,
        signature: &Signature,
        body: impl FnOnce(&mut FunctionBuilder<'_>, &mut JITModule, &[Value]),
    ) {
        self.compile(id, |func, builder_context, module| {
            func.signature = signature.clone();
            let flags = func.dfg.mem_flags.insert_unchecked(MemFlagsData::trusted());
            let base = func.create_global_value(GlobalValueData::VMContext);
            let limit =
                GlobalValueData::Load { base, offset: STACK_LIMIT.into(), global_type: I64, flags };
            func.stack_limit = Some(func.create_global_value(limit));
            let mut b = FunctionBuilder::new(func, builder_context);
            let entry = b.create_block();
            b.append_block_params_for_function_params(entry);
            b.switch_to_block(entry);
            let params = b.block_params(entry).to_vec();
            body(&mut b, module, &params);
            b.seal_all_blocks();
            b.finalize(module.isa().frontend_config());
        });
    }

    /// Declares and defines a native function.
    pub(super) fn function(
        &mut self,
        signature: &Signature,
        body: impl FnOnce(&mut FunctionBuilder<'_>, &mut JITModule, &[Value]),
    ) -> FuncId {
        let id = self.declare(signature);
        self.define(id, signature, body);
        id
    }

    /// Builds the trampoline for functions of a signature. A trampoline has no trapping instruction
    /// and is not registered, so a fault in it is a bug.
    pub(super) fn trampoline(&mut self, callee: &Signature) -> FuncId {
        let id = self.declare(&trampoline::signature());
        let table = self.compile(id, |func, builder_context, module| {
            trampoline::build(func, builder_context, module.isa().frontend_config(), callee);
        });
        self.compiled.pop();
        assert_eq!(format!("{table:?}"), format!("{:?}", TrapTable::default()));
        id
    }

    /// Makes all definitions executable, and registers their traps.
    pub(super) fn finish(&mut self) {
        self.module().finalize_definitions().expect("memory can be made executable");
        let ranges: Vec<_> = self
            .compiled
            .iter()
            .map(|(id, len, table)| {
                let start = self.address(*id) as usize;
                (start..start + len, Arc::clone(table))
            })
            .collect();
        self.registration =
            Some(registry::register(ranges).expect("the handlers can be installed"));
    }

    pub(super) fn address(&self, id: FuncId) -> *const u8 {
        self.module.as_ref().expect("there until it is dropped").get_finalized_function(id)
    }

    pub(super) fn entry(&self, trampoline: FuncId) -> Trampoline {
        // SAFETY: `trampoline` compiled the function with `trampoline::signature`, which is the
        // signature of this type.
        unsafe { mem::transmute(self.address(trampoline)) }
    }

    /// Enters a function with the trampoline's signature.
    pub(super) fn run(
        &self,
        trampoline: FuncId,
        function: FuncId,
        context: *mut Context,
        values: &mut [u64],
    ) -> Result<(), NativeStop> {
        assert!(self.registration.is_some(), "the code is finished");
        // SAFETY: each test passes a live context, a function of the trampoline's signature, and as
        // many words as it has parameters and results. The test functions access only their context
        // and reserved memory. `self` keeps the code mapped and registered during the call.
        unsafe {
            enter::enter_in_place(
                self.entry(trampoline),
                context.cast(),
                self.address(function),
                values,
            )
        }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        self.registration = None;
        if let Some(module) = self.module.take() {
            // SAFETY: running the code needs a reference to this value, so no code runs. The
            // registration was dropped above, so no handler looks into the code.
            unsafe { module.free_memory() }
        }
    }
}

/// A Rust function that native code calls.
pub(super) type Helper = extern "C" fn(*mut Context) -> HelperStatus;

/// Emits a call of a helper, and a raise if its status asks for one.
pub(super) fn call_helper(b: &mut FunctionBuilder<'_>, context: Value, helper: Helper) {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.push(AbiParam::new(I64));
    let raising = b.import_signature(signature.clone());
    signature.returns.push(AbiParam::new(I64));
    let asking = b.import_signature(signature);
    let helper = b.ins().iconst(I64, helper as usize as i64);
    let call = b.ins().call_indirect(asking, helper, &[context]);
    let status = b.inst_results(call)[0];
    let (failed, rest) = (b.create_block(), b.create_block());
    b.ins().brif(status, failed, &[], rest, &[]);
    b.switch_to_block(failed);
    let raise = b.ins().iconst(I64, enter::raise_address() as i64);
    b.ins().call_indirect(raising, raise, &[context]);
    b.ins().trap(cranelift_codegen::ir::TrapCode::unwrap_user(99));
    b.switch_to_block(rest);
}

/// The trap with which an entry ended.
///
/// # Panics
/// If it ended otherwise.
pub(super) fn trap_of(result: Result<(), NativeStop>) -> traps::CaughtTrap {
    match result {
        Err(NativeStop::Trap(trap)) => trap,
        other => panic!("not a trap: {other:?}"),
    }
}
