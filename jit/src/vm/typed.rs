//! Typed entries: handles by which Rust calls functions of a program like C functions.

use super::state::VmState;
use crate::code::MachineCode;
use crate::direct::{DirectResult, DirectValue};
use crate::error::CompileError;
use crate::stubs::Stub;
use ir::{Func, Signature};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A handle to call a function of a machine with arguments of Rust types, in a
/// [`super::Session`]. `P` is the tuple of the arguments, `R` the type of the result, or `()`.
///
/// A call runs the version that is installed at that time, also after the function got another
/// version or lost its version. The handle stays valid as long as its machine exists; another
/// machine rejects it.
pub struct TypedEntry<P, R> {
    /// The identity of the machine.
    pub(super) owner: Arc<()>,
    pub(super) func: Func,
    pub(super) trampoline: ErasedTrampoline,
    /// Keeps the trampoline.
    _code: Arc<MachineCode>,
    types: PhantomData<fn(P) -> R>,
}

/// A typed trampoline of a signature that its owner knows.
pub(super) type ErasedTrampoline = unsafe extern "C" fn();

impl<P, R> TypedEntry<P, R> {
    /// The function.
    pub fn func(&self) -> Func {
        self.func
    }
}

impl<P, R> Clone for TypedEntry<P, R> {
    fn clone(&self) -> Self {
        TypedEntry {
            owner: Arc::clone(&self.owner),
            func: self.func,
            trampoline: self.trampoline,
            _code: Arc::clone(&self._code),
            types: PhantomData,
        }
    }
}

impl<P, R> fmt::Debug for TypedEntry<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TypedEntry({})", self.func)
    }
}

/// The reason why a function has no typed entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EntryError {
    /// The machine has no function of this number, or the function is imported.
    NotDefined(Func),
    /// The function has this signature, which is not that of the Rust types.
    Signature(Func, Signature),
    /// The trampoline cannot be compiled.
    Compile(CompileError),
}

impl fmt::Display for EntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryError::NotDefined(func) => write!(f, "{func} is no function of the program"),
            EntryError::Signature(func, signature) => {
                write!(f, "the types differ from the signature of {func}, {signature}")
            }
            EntryError::Compile(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for EntryError {}

/// The arguments of a typed entry: a tuple of at most six integers and floats of 32 and 64 bits.
pub trait EntryArgs: sealed::Args {}

/// The result of a typed entry: an integer or a float of 32 or 64 bits, or `()`.
pub trait EntryResult: DirectResult + sealed::Result {}

pub(super) mod sealed {
    use ir::Type;

    /// The arguments of a typed trampoline.
    pub trait Args {
        /// The types in the IR.
        const TYPES: &'static [Type];

        /// The type of typed trampolines for these arguments and the result `R`. Whoever makes a
        /// value of it promises that a call is right.
        type Code<R: Result>: Copy;

        /// Calls a trampoline with these arguments.
        fn apply<R: Result>(
            self,
            code: Self::Code<R>,
            context: *mut u8,
            function: u64,
        ) -> R::Returned;
    }

    /// A result, with its status.
    pub trait Result: Sized {
        /// The C structure that a typed trampoline returns.
        type Returned;

        /// The status, and the result.
        fn split(returned: Self::Returned) -> (u64, Self);

        /// The words of the result.
        fn words(&self) -> Vec<u64>;
    }
}

/// The return value of a typed trampoline with a result: the two registers of C structures of this
/// size.
#[repr(C)]
#[doc(hidden)]
#[derive(Debug)]
pub struct Returned<R> {
    status: u64,
    result: R,
}

macro_rules! results {
    ($($rust:ty: |$value:ident| $word:expr),+) => {$(
        impl sealed::Result for $rust {
            type Returned = Returned<$rust>;

            fn split(returned: Returned<$rust>) -> (u64, $rust) {
                (returned.status, returned.result)
            }

            fn words(&self) -> Vec<u64> {
                let $value = *self;
                vec![$word]
            }
        }
        impl EntryResult for $rust {}
    )+};
}
results! {
    u32: |value| u64::from(value),
    i32: |value| u64::from(value.cast_unsigned()),
    u64: |value| value,
    i64: |value| value.cast_unsigned(),
    f32: |value| u64::from(value.to_bits()),
    f64: |value| value.to_bits()
}

impl sealed::Result for () {
    type Returned = u64;

    fn split(status: u64) -> (u64, ()) {
        (status, ())
    }

    fn words(&self) -> Vec<u64> {
        Vec::new()
    }
}
impl EntryResult for () {}

macro_rules! arguments {
    ($(($($arg:ident)*))+) => {$(
        impl<$($arg: DirectValue),*> sealed::Args for ($($arg,)*) {
            const TYPES: &'static [ir::Type] = &[$($arg::TYPE),*];

            type Code<R: sealed::Result> =
                extern "C" fn(*mut u8, u64, $($arg),*) -> R::Returned;

            #[inline]
            #[allow(non_snake_case, reason = "the arguments have the names of their types")]
            fn apply<R: sealed::Result>(
                self,
                code: Self::Code<R>,
                context: *mut u8,
                function: u64,
            ) -> R::Returned {
                let ($($arg,)*) = self;
                code(context, function, $($arg),*)
            }
        }
        impl<$($arg: DirectValue),*> EntryArgs for ($($arg,)*) {}
    )+};
}
arguments! {
    ()
    (A0)
    (A0 A1)
    (A0 A1 A2)
    (A0 A1 A2 A3)
    (A0 A1 A2 A3 A4)
    (A0 A1 A2 A3 A4 A5)
}

impl VmState {
    /// Makes a typed entry (see [`super::Vm::entry`]).
    pub(super) fn typed_entry<P: EntryArgs, R: EntryResult>(
        &mut self,
        func: Func,
    ) -> Result<TypedEntry<P, R>, EntryError> {
        let module = &self.modules.current;
        let decl = module.funcs.get(func).filter(|decl| decl.import.is_none());
        if decl.is_none() {
            return Err(EntryError::NotDefined(func));
        }
        let signature = module.signature(func);
        if signature.params[..] != *P::TYPES || signature.results[..] != *R::TYPES {
            return Err(EntryError::Signature(func, signature.clone()));
        }
        let signature = signature.clone();
        let engine = self.modules.engine.clone();
        // The word of a function without code leads to this stub
        // (`an_entry_without_code_is_interpreted`).
        let lazy = engine.stub(Stub::Lazy(signature.clone())).map_err(EntryError::Compile)?;
        self.table.provide_stub(&signature, &lazy);
        let code = engine.stub(Stub::Typed(signature)).map_err(EntryError::Compile)?;
        let address = self.table.pin(&code);
        // SAFETY: the address is that of code, which is not null. Nobody calls it by this type.
        let trampoline = unsafe { std::mem::transmute::<*const u8, ErasedTrampoline>(address) };
        let owner = Arc::clone(&self.identity);
        Ok(TypedEntry { owner, func, trampoline, _code: code, types: PhantomData })
    }
}
