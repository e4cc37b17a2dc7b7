//! The context: the structure that native code takes as its first argument, through which it finds
//! the state of the machine.
//!
//! The context is one block of memory: the words of flags, if the machine has signals; a
//! [`Context`]; and one code address for each function of the module. Native code relies on the
//! offsets. No other property of the layout is promised.

use crate::sys::ExitFrame;
use std::cell::Cell;
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::AtomicU32;

/// The number of words in [`Context::signals`].
pub(crate) const SIGNALS: usize = 64;
/// The number of words that native code tests for the flags of OSR points, one per point, with
/// [`crate::Interruption::Signal`]: 8 KiB of a machine. The loop headers of SQLite, about 2,000,
/// take one word each. Further points test their cells instead.
///
/// The words lie in front of the context, since machines without signals have none. A quiet word is
/// 0. A word has [`SIGNAL_FLAG`] while the flag of its point is set, and [`SIGNAL_INTERRUPT`]
/// together with [`Context::signals`]: one test covers both. A quiet word holds no address, unlike
/// [`Context::signals`]: Cranelift makes no branch of a comparison with memory, and would need the
/// context in a register twice.
pub(crate) const FLAGS: usize = 2048;

/// The number of globals whose bits the context itself holds while native code runs.
///
/// Programs compiled from C keep the stack pointer in their first global, and nearly every function
/// reads and writes it. A pointer to the globals would cost each of these functions a load, and a
/// register or a spill across its calls. Rust copies the words in both directions whenever it takes
/// over, so the number is small.
pub(crate) const NEAR_GLOBALS: usize = 8;

/// A linear memory as native code sees it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryView {
    pub(crate) base: *mut u8,
    pub(crate) bytes: u64,
}

/// A table as native code sees it. An entry is a function number plus one, or zero for null.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableView {
    pub(crate) entries: *const u64,
    pub(crate) count: u64,
}

/// The Rust functions that native code calls. Each takes the context as its first argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Helpers {
    /// `(context, instruction) -> status`: performs an operation on ranges, tables, segments or
    /// sizes. The operands and the result are in the buffer.
    pub(crate) perform: extern "C" fn(*mut Context, *const ir::InstData) -> u64,
    /// `(context, return address) -> code`: finds code for a call of a function without code. The
    /// calling code knows the function of a direct call; [`Context::pending`] holds the function of
    /// an indirect call. The arguments are in the buffer. See [`LAZY_DONE`].
    pub(crate) call_lazy: extern "C" fn(*mut Context, u64) -> u64,
    /// `(context, function) -> status`: records a call in the trace. The arguments are in the
    /// buffer.
    pub(crate) trace_call: extern "C" fn(*mut Context, u64) -> u64,
    /// `(context, function) -> status`: records a return in the trace. The results are in the
    /// buffer.
    pub(crate) trace_return: extern "C" fn(*mut Context, u64) -> u64,
    /// `(context) -> number`: the call of a described exit. This stub of [`crate::sys`] saves the
    /// callee-saved registers and passes them to [`Helpers::describe`].
    pub(crate) exit: unsafe extern "C" fn(*mut Context) -> i64,
    /// `(context, registers) -> number`: copies the values of a described exit into the buffer.
    /// Returns the number of the OSR point, or a negative number if the run ends.
    pub(crate) describe: extern "C" fn(*mut Context, *const ExitFrame) -> i64,
    /// `(context) -> code`: finds the continuation of an OSR point whose cell leads to the stub
    /// [`crate::stubs::Stub::Leave`]. The values are in the buffer; [`Context::pending`] holds the
    /// address of the cell.
    pub(crate) leave: extern "C" fn(*mut Context) -> u64,
}

/// The result of [`Helpers::call_lazy`] after it has run the call and put the results into the
/// buffer. The result 0 ends the run.
pub(crate) const LAZY_DONE: u64 = 1;

/// The fixed part of the context.
///
/// Native code reads and writes the fields while Rust holds a shared reference to the structure, so
/// every field that changes is a cell. Other threads access the signals alone.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Context {
    /// The exception edge of the innermost entry trampoline: stack pointer, frame pointer, address.
    pub(crate) entry: Cell<[u64; 3]>,
    /// The lowest stack pointer that a prologue allows.
    pub(crate) stack_limit: Cell<u64>,
    /// The words through which values cross from native code to Rust or to a continuation.
    pub(crate) buffer: Cell<*mut u64>,
    /// The number of instructions that may still be executed.
    pub(crate) fuel: Cell<i64>,
    /// The bits of all globals. While native code runs, the words of the globals in
    /// [`Context::near`] are out of date.
    pub(crate) globals: Cell<*mut u64>,
    pub(crate) tables: Cell<*const TableView>,
    pub(crate) memories: Cell<*const MemoryView>,
    /// The first memory, which native code need not look up in `memories`.
    pub(crate) memory: Cell<MemoryView>,
    /// One of three numbers: the function being called through a table, for the stub of functions
    /// without code; the cell of the OSR point that fires; or the count of values of a run that
    /// ends at an OSR point.
    pub(crate) pending: Cell<u64>,
    /// The bits of the first globals. They and all fields above have short addresses in code.
    pub(crate) near: [Cell<u64>; NEAR_GLOBALS],
    /// The bytes between the lowest allowed stack pointer and the highest address of the stack.
    pub(crate) stack_room: Cell<u64>,
    /// For each function, the lowest number of a signature equal to its own.
    pub(crate) signatures: Cell<*const u32>,
    /// The number of functions. Code may have been compiled when the module had fewer.
    pub(crate) functions: Cell<u64>,
    /// The number of the OSR point at which a run ends, or of an assumption that has failed; or the
    /// bits of the operand of a trap.
    pub(crate) trap_number: Cell<u64>,
    /// The return address of the innermost call in a cold block that has not returned
    /// ([`crate::stubs::Stub::Cold`]): the place of a host function that the stub called. 0 without
    /// such a call.
    pub(crate) cold_caller: Cell<u64>,
    /// The number of the test of an assumption at which its exit is taken by chance, counted from
    /// here ([`crate::Config::fails_one_in`]).
    pub(crate) until_failure: Cell<u64>,
    /// The state of the generator of the gaps between such exits.
    pub(crate) gaps: Cell<u64>,
    /// The frame pointer of the waiting stub. The stub stores it before it calls
    /// [`Helpers::call_lazy`] or [`Helpers::leave`].
    pub(crate) frame: Cell<u64>,
    /// The state of the `Vm` whose run executes this code; null between runs.
    pub(crate) vm: Cell<*mut ()>,
    pub(crate) helpers: Helpers,
    /// The word that the interpreter tests: zero, or [`SIGNAL_INTERRUPT`].
    pub(crate) attention: AtomicU32,
    /// The words that native code polls for an interrupt. A *quiet* word holds the lower half of
    /// the context's own address, whose lowest four bits are zero. Native code compares it with the
    /// address in one instruction, without another register. [`SIGNAL_INTERRUPT`] is set in all of
    /// them together.
    ///
    /// Each poll reads a word of its own, until the words are used up. Cranelift would otherwise
    /// replace the load of an inner loop by the earlier load of its outer loop, and the inner loop
    /// would never see a change (`an_inner_loop_reads_the_signals_anew`).
    pub(crate) signals: [AtomicU32; SIGNALS],
}

impl Context {
    /// A context of a machine that does not run.
    pub(crate) fn new(helpers: Helpers) -> Context {
        Context {
            entry: Cell::new([0; 3]),
            stack_limit: Cell::new(0),
            buffer: Cell::new(ptr::null_mut()),
            fuel: Cell::new(0),
            globals: Cell::new(ptr::null_mut()),
            tables: Cell::new(ptr::null()),
            memories: Cell::new(ptr::null()),
            memory: Cell::new(MemoryView { base: ptr::null_mut(), bytes: 0 }),
            near: [const { Cell::new(0) }; NEAR_GLOBALS],
            stack_room: Cell::new(0),
            signatures: Cell::new(ptr::null()),
            functions: Cell::new(0),
            trap_number: Cell::new(0),
            cold_caller: Cell::new(0),
            until_failure: Cell::new(1),
            gaps: Cell::new(0),
            pending: Cell::new(0),
            frame: Cell::new(0),
            vm: Cell::new(ptr::null_mut()),
            helpers,
            attention: AtomicU32::new(0),
            signals: [const { AtomicU32::new(0) }; SIGNALS],
        }
    }
}

/// The bit of a signal word that ends the run.
pub(crate) const SIGNAL_INTERRUPT: u32 = 1;
/// The bit of a flag's word that makes its point fire.
pub(crate) const SIGNAL_FLAG: u32 = 2;
/// The bits of a word that do not belong to the address.
pub(crate) const SIGNAL_BITS: u32 = SIGNAL_INTERRUPT | SIGNAL_FLAG;

/// The offset of a field of [`Context`] in bytes.
macro_rules! offset {
    ($($field:tt)+) => {
        std::mem::offset_of!($crate::context::Context, $($field)+) as i32
    };
}
pub(crate) use offset;

/// The offset in bytes from the context to a word for flags.
pub(crate) fn flag_offset(word: usize) -> i32 {
    assert!(word < FLAGS, "jit: flag {word} of {FLAGS}");
    -((size_of::<u32>() * (FLAGS - word)) as i32)
}

/// The offset in bytes from the context to the code address of a function.
pub(crate) fn function_offset(func: ir::Func) -> i32 {
    i32::try_from(size_of::<Context>() + 8 * func.as_u32() as usize)
        .expect("jit: a module has fewer than 2^28 functions")
}

// The lowering uses these offsets as literals: a view has 16 bytes, and its size lies at offset 8.
// The trampoline writes the entry state to offset 0.
const _: () = assert!(offset_of!(MemoryView, base) == 0 && offset_of!(MemoryView, bytes) == 8);
const _: () = assert!(offset_of!(TableView, entries) == 0 && offset_of!(TableView, count) == 8);
const _: () = assert!(size_of::<Context>().is_multiple_of(8) && offset_of!(Context, entry) == 0);
