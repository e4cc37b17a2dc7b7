//! What native code is handed with every call: where the state of the machine lies.
//!
//! One block of memory: [`Context`], and behind it one code address for each function of the
//! module. Native code knows the offsets; nothing else of its layout is promised to anyone.

use crate::sys::ExitFrame;
use std::mem::offset_of;

/// How many words tell that something is to be looked at; see [`Context::signals`].
pub(crate) const SIGNALS: usize = 64;

/// A linear memory as native code sees it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryView {
    pub(crate) base: *mut u8,
    pub(crate) bytes: u64,
}

/// A table as native code sees it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableView {
    pub(crate) entries: *const u64,
    pub(crate) count: u64,
}

/// The Rust functions that native code calls. Each takes the context first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Helpers {
    /// `(context, instruction) -> status`: an operation on ranges, tables, segments or sizes;
    /// operands and result in the buffer.
    pub(crate) perform: extern "C" fn(*mut Context, *const ir::InstData) -> u64,
    /// `(context, function) -> status`: a call of the host; arguments and results in the buffer.
    pub(crate) call_host: extern "C" fn(*mut Context, u64) -> u64,
    /// `(context) -> code`: the function of [`Context::pending`] is called and has no code;
    /// arguments in the buffer. See [`LAZY_DONE`].
    pub(crate) call_lazy: extern "C" fn(*mut Context) -> u64,
    /// `(context, function) -> status`: notes a call in the trace; arguments in the buffer.
    pub(crate) trace_call: extern "C" fn(*mut Context, u64) -> u64,
    /// `(context, function) -> status`: notes a return in the trace; results in the buffer.
    pub(crate) trace_return: extern "C" fn(*mut Context, u64) -> u64,
    /// `(context) -> number`: an exit that is described; a stub of [`crate::sys`] which hands
    /// [`Helpers::describe`] what registers hold.
    pub(crate) exit: unsafe extern "C" fn(*mut Context) -> i64,
    /// `(context, registers) -> number`: puts what an exit hands over into the buffer; the number
    /// of its OSR point, negative when the run ends.
    pub(crate) describe: extern "C" fn(*mut Context, *const ExitFrame) -> i64,
    /// `(context) -> code`: an OSR point fires whose cell has no code; its values are in the
    /// buffer, the cell in [`Context::pending`].
    pub(crate) leave: extern "C" fn(*mut Context) -> u64,
}

/// What [`Helpers::call_lazy`] gives when the call is done and its results are in the buffer. 0
/// says that the run ends.
pub(crate) const LAZY_DONE: u64 = 1;

/// What native code is handed with every call.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Context {
    /// Where the innermost entry trampoline goes on when the run ends early: stack pointer, frame
    /// pointer, address.
    pub(crate) entry: [u64; 3],
    /// The stack pointer may not fall below this.
    pub(crate) stack_limit: u64,
    /// Where values lie that cross from native code to Rust or to a continuation.
    pub(crate) buffer: *mut u64,
    /// Instructions that may still be executed.
    pub(crate) fuel: i64,
    pub(crate) globals: *mut u64,
    pub(crate) tables: *const TableView,
    pub(crate) memories: *const MemoryView,
    /// For each function, the lowest signature equal to its own.
    pub(crate) signatures: *const u32,
    /// How many functions there are. Code may have been compiled when there were fewer.
    pub(crate) functions: u64,
    /// The number of a `userN` trap, or of the OSR point of a run that ends there.
    pub(crate) trap_number: u64,
    /// The function being called, for the stub of functions without code; or the cell of the OSR
    /// point being left through; or how many values a run has that ends at an OSR point.
    pub(crate) pending: u64,
    /// Who runs this: a `Vm`.
    pub(crate) vm: *mut (),
    pub(crate) helpers: Helpers,
    /// All alike: not 0 when an interrupt was asked for. Each place that looks has a word of its
    /// own as far as there are enough: Cranelift would take the load of an outer loop's word for
    /// that of an inner loop's, which then would never see it change
    /// (`an_inner_loop_sees_what_its_outer_loop_saw_before`).
    pub(crate) signals: [u32; SIGNALS],
}

/// The run is to end.
pub(crate) const SIGNAL_INTERRUPT: u32 = 1;

/// The offset of a field.
macro_rules! offset {
    ($($field:tt)+) => {
        std::mem::offset_of!($crate::context::Context, $($field)+) as i32
    };
}
pub(crate) use offset;

/// Where the code address of a function lies.
pub(crate) fn function_offset(func: ir::Func) -> i32 {
    i32::try_from(size_of::<Context>() + 8 * func.as_u32() as usize)
        .expect("jit: a module has fewer than 2^28 functions")
}

// Native code reads views by these offsets.
const _: () = assert!(offset_of!(MemoryView, base) == 0 && offset_of!(MemoryView, bytes) == 8);
const _: () = assert!(offset_of!(TableView, entries) == 0 && offset_of!(TableView, count) == 8);
const _: () = assert!(size_of::<Context>().is_multiple_of(8) && offset_of!(Context, entry) == 0);
