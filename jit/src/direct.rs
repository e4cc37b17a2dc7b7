//! Functions of the embedder that native code calls directly.
//!
//! Example: a program imports `next: (i64) -> i64`, which the embedder has as
//! `extern "C" fn(&T, u64) -> u64`. The word of `next` in the context leads to a *shim*: a
//! piece of code that passes the arguments on in the registers of the C convention. The call costs
//! no more than two calls. A version that is compiled for the functions of a machine
//! ([`BoundFunctions`]) calls them without the shim.

use crate::abi::{self, POINTER};
use crate::context::offset;
use cranelift_codegen::ir::{self as clif, AbiParam, InstBuilder, MemFlagsData};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use ir::{DeclaredEffect, Func, Function, Imm, Module, Signature, Type};
use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::slice;
use std::sync::Arc;

/// A function of the embedder for [`crate::Vm::bind`].
///
/// It is a function of the C convention. It takes its data first, if it has any, then perhaps the
/// first memory of the program ([`DirectMemory`]), and then the arguments of the import. It cannot
/// fail: a function that may end the run, or that calls the program, belongs in
/// [`crate::Embedder::call`].
///
/// Its effect is an upper bound on its actions. Passes read the declaration of the import
/// ([`ir::module::FuncDecl::effect`]), which has to allow at least this effect. Checked runs test
/// the effect of the function ([`crate::Config::checked`]).
#[derive(Clone, Debug)]
pub struct DirectFunction {
    code: *const (),
    /// `None` for a function without data.
    data: Option<*mut c_void>,
    /// Keeps what `data` points to.
    _keeps: Option<Arc<dyn Any + Send + Sync>>,
    pub(crate) signature: Signature,
    pub(crate) effect: DeclaredEffect,
    pub(crate) takes_memory: bool,
}

// SAFETY: the value holds addresses, which code alone uses. `new` and `with_memory` demand data
// that threads may share, and `from_raw` the promise that each thread may make the calls.
unsafe impl Send for DirectFunction {}
// SAFETY: as for `Send`; nothing in the value changes.
unsafe impl Sync for DirectFunction {}

impl DirectFunction {
    /// A function of Rust without data:
    ///
    /// ```
    /// use ir::DeclaredEffect;
    /// use osier_jit::DirectFunction;
    ///
    /// extern "C" fn mix(a: u64, b: u64) -> u64 {
    ///     a.rotate_left(5) ^ b
    /// }
    ///
    /// DirectFunction::plain(mix as extern "C" fn(u64, u64) -> u64, DeclaredEffect::Pure);
    /// ```
    pub fn plain<S>(code: impl PlainCode<S>, effect: DeclaredEffect) -> Self {
        let (code, signature) = code.parts();
        DirectFunction { code, data: None, _keeps: None, signature, effect, takes_memory: false }
    }

    /// A function of Rust with its data:
    ///
    /// ```
    /// use ir::DeclaredEffect;
    /// use osier_jit::DirectFunction;
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// extern "C" fn count(counter: &AtomicU64, by: u64) -> u64 {
    ///     counter.fetch_add(by, Ordering::Relaxed)
    /// }
    ///
    /// let code = count as extern "C" fn(&AtomicU64, u64) -> u64;
    /// DirectFunction::new(Arc::new(AtomicU64::new(0)), code, DeclaredEffect::Outside);
    /// ```
    pub fn new<T, S>(data: Arc<T>, code: impl DirectCode<T, S>, effect: DeclaredEffect) -> Self
    where
        T: Send + Sync + 'static,
    {
        let (code, signature) = code.parts();
        let at = Arc::as_ptr(&data).cast_mut().cast();
        let _keeps: Option<Arc<dyn Any + Send + Sync>> = Some(data);
        DirectFunction { code, data: Some(at), _keeps, signature, effect, takes_memory: false }
    }

    /// Like [`DirectFunction::new`], for a function that takes the first memory of the program
    /// behind its data, such as `extern "C" fn(&T, DirectMemory<'_>, u64) -> u64`.
    pub fn with_memory<T, S>(
        data: Arc<T>,
        code: impl DirectMemoryCode<T, S>,
        effect: DeclaredEffect,
    ) -> Self
    where
        T: Send + Sync + 'static,
    {
        let (code, signature) = code.parts();
        let at = Arc::as_ptr(&data).cast_mut().cast();
        let _keeps: Option<Arc<dyn Any + Send + Sync>> = Some(data);
        DirectFunction { code, data: Some(at), _keeps, signature, effect, takes_memory: true }
    }

    /// A function at an address, `extern "C" fn(data, arguments..) -> result`, or without data
    /// `extern "C" fn(arguments..) -> result`. Another compiler may have made it. It takes one
    /// argument for each parameter of `signature`: an integer of 32 or 64 bits, a reference as an
    /// integer of 64 bits, or a float. It returns the result likewise, or nothing.
    ///
    /// # Safety
    /// For as long as a machine has the function ([`crate::Vm::bind`], [`crate::Vm::unbind`]):
    ///
    /// - `code` is the address of a function with exactly this signature in the C convention;
    /// - calls from each thread that runs the machine are right, also at once, with any arguments
    ///   of the signature, and `data`, if given, points to the data that the function expects;
    /// - it returns, and unwinds nothing;
    /// - the function neither runs nor accesses the calling machine, and accesses no memory of the
    ///   program;
    /// - it needs at most 256 KiB of stack.
    pub unsafe fn from_raw(
        code: *const (),
        data: Option<*mut c_void>,
        signature: Signature,
        effect: DeclaredEffect,
    ) -> DirectFunction {
        DirectFunction { code, data, _keeps: None, signature, effect, takes_memory: false }
    }

    /// The first type that a direct function cannot take or return. The C convention leaves the
    /// upper bits of a narrow integer to the compiler of the caller.
    pub(crate) fn other_type(&self) -> Option<Type> {
        let types = self.signature.params.iter().chain(&self.signature.results);
        types.copied().find(|ty| matches!(ty, Type::I8 | Type::I16))
    }

    /// Builds the code that calls the function into `to`.
    pub(crate) fn build(
        &self,
        to: &mut clif::Function,
        scratch: &mut FunctionBuilderContext,
        target: TargetFrontendConfig,
    ) {
        to.signature = abi::called(&self.signature);
        let mut builder = FunctionBuilder::new(to, scratch);
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        let params = builder.block_params(entry).to_vec();
        let (context, args) = params.split_first().expect("jit: code takes the context");
        let results = self.call(&mut builder, *context, args);
        builder.ins().return_(&results);
        builder.seal_all_blocks();
        builder.finalize(target);
    }

    /// Emits the call of the function itself. Returns its results.
    pub(crate) fn call(
        &self,
        builder: &mut FunctionBuilder<'_>,
        context: clif::Value,
        args: &[clif::Value],
    ) -> Vec<clif::Value> {
        let data = self.data.map(|data| data.expose_provenance() as i64);
        let data = data.map(|data| builder.ins().iconst(POINTER, data));
        let mut given: Vec<clif::Value> = data.into_iter().collect();
        if self.takes_memory {
            let flags = MemFlagsData::trusted();
            // A view has its address first, and then its size (asserted in `crate::context`).
            let at = [offset!(memory), offset!(memory) + 8];
            given.extend(at.map(|at| builder.ins().load(POINTER, flags, context, at)));
        }
        given.extend_from_slice(args);
        let code = builder.ins().iconst(POINTER, self.code.expose_provenance() as i64);
        let sig = builder.import_signature(self.in_c());
        let call = builder.ins().call_indirect(sig, code, &given);
        builder.inst_results(call).to_vec()
    }

    /// Whether both are the same function with the same data.
    pub(crate) fn is(&self, other: &DirectFunction) -> bool {
        let of = |function: &DirectFunction| (function.code, function.data, function.takes_memory);
        of(self) == of(other) && self.signature == other.signature && self.effect == other.effect
    }

    /// The signature of the function itself.
    fn in_c(&self) -> clif::Signature {
        let mut made = clif::Signature::new(CallConv::SystemV);
        let before = usize::from(self.data.is_some()) + if self.takes_memory { 2 } else { 0 };
        made.params.extend((0..before).map(|_| AbiParam::new(POINTER)));
        let held = |types: &[Type]| -> Vec<AbiParam> {
            types.iter().map(|ty| AbiParam::new(abi::held(*ty))).collect()
        };
        made.params.extend(held(&self.signature.params));
        made.returns.extend(held(&self.signature.results));
        made
    }
}

/// The functions that a machine has bound, for versions that call them without a shim
/// ([`crate::VersionSpec::calling`]). Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct BoundFunctions(pub(crate) Arc<BTreeMap<Func, DirectFunction>>);

impl BoundFunctions {
    /// Those that the code of a function calls at their addresses: outside of blocks marked cold.
    /// Linear in the function.
    pub(crate) fn called(&self, module: &Module, function: &Function) -> BoundFunctions {
        let hot = function.all_insts().filter(|i| !function.is_cold(function.inst_block(*i)));
        let called = hot.map(|inst| function.inst(inst));
        let called = called.filter(|data| data.opcode.is_call());
        let bound = called.filter_map(|data| {
            let Imm::Func(func) = data.imm else { return None };
            let direct = self.0.get(&func)?;
            // The functions may be those of a machine with another module.
            let decl = module.funcs.get(func).filter(|decl| decl.import.is_some())?;
            (module.sigs[decl.sig] == direct.signature).then(|| (func, direct.clone()))
        });
        BoundFunctions(Arc::new(bound.collect()))
    }
}

/// The first memory of a program during the call of a function.
#[derive(Debug)]
#[repr(C)]
pub struct DirectMemory<'a> {
    base: *mut u8,
    bytes: u64,
    borrow: PhantomData<&'a mut [u8]>,
}

impl DirectMemory<'_> {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: shims, and code that calls the function at its address, alone make this value, of
        // the view in the context (`DirectFunction::call`). The view describes a live memory:
        // helpers and entries write the view anew (`NativeView::share`). Nobody else accesses the
        // memory during the call, since native code and all Rust frames of the run wait for it;
        // writing needs `&mut self`, and the value cannot be copied.
        unsafe { slice::from_raw_parts(self.base, self.bytes as usize) }
    }

    /// The bytes, for a function with [`DeclaredEffect::Any`].
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the argument of `bytes` holds. `&mut self` excludes every other reference to the
        // memory.
        unsafe { slice::from_raw_parts_mut(self.base, self.bytes as usize) }
    }
}

mod sealed {
    /// Keeps the traits of this module from other types.
    pub trait PassedInC {}
}
use sealed::PassedInC;

/// A type of arguments and results: integers and floats of 32 and 64 bits.
pub trait DirectValue: PassedInC {
    /// The type in the IR.
    const TYPE: Type;
}

/// A result: a [`DirectValue`], or `()`.
pub trait DirectResult: PassedInC {
    /// The types of the results in the IR.
    const TYPES: &'static [Type];
}

macro_rules! values {
    ($($rust:ty: $ty:ident),+) => {$(
        impl PassedInC for $rust {}
        impl DirectValue for $rust {
            const TYPE: Type = Type::$ty;
        }
        impl DirectResult for $rust {
            const TYPES: &'static [Type] = &[Type::$ty];
        }
    )+};
}
values!(u32: I32, i32: I32, u64: I64, i64: I64, f32: F32, f64: F64);

impl PassedInC for () {}
impl DirectResult for () {
    const TYPES: &'static [Type] = &[];
}

/// A function `extern "C" fn(&T, arguments..) -> result` with at most six arguments. `S` is the
/// tuple of their types and the result's.
pub trait DirectCode<T, S> {
    /// Address and signature.
    #[doc(hidden)]
    fn parts(self) -> (*const (), Signature);
}

/// A function `extern "C" fn(arguments..) -> result`, likewise.
pub trait PlainCode<S> {
    /// Address and signature.
    #[doc(hidden)]
    fn parts(self) -> (*const (), Signature);
}

/// A function `extern "C" fn(&T, DirectMemory<'_>, arguments..) -> result`, likewise.
pub trait DirectMemoryCode<T, S> {
    /// Address and signature.
    #[doc(hidden)]
    fn parts(self) -> (*const (), Signature);
}

macro_rules! functions {
    ($(($($arg:ident)*))+) => {$(
        impl<R: DirectResult, $($arg: DirectValue),*> PlainCode<($($arg,)* R,)>
            for extern "C" fn($($arg),*) -> R
        {
            fn parts(self) -> (*const (), Signature) {
                (self as *const (), Signature::new(&[$($arg::TYPE),*], R::TYPES))
            }
        }
        impl<T, R: DirectResult, $($arg: DirectValue),*> DirectCode<T, ($($arg,)* R,)>
            for extern "C" fn(&T, $($arg),*) -> R
        {
            fn parts(self) -> (*const (), Signature) {
                (self as *const (), Signature::new(&[$($arg::TYPE),*], R::TYPES))
            }
        }
        impl<T, R: DirectResult, $($arg: DirectValue),*> DirectMemoryCode<T, ($($arg,)* R,)>
            for extern "C" fn(&T, DirectMemory<'_>, $($arg),*) -> R
        {
            fn parts(self) -> (*const (), Signature) {
                (self as *const (), Signature::new(&[$($arg::TYPE),*], R::TYPES))
            }
        }
    )+};
}
functions! {
    ()
    (A0)
    (A0 A1)
    (A0 A1 A2)
    (A0 A1 A2 A3)
    (A0 A1 A2 A3 A4)
    (A0 A1 A2 A3 A4 A5)
}
