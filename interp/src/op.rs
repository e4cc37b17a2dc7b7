//! Operations of the exact dispatch loop.
//!
//! The table [`with_value_ops`] lists one operation code for every operation on values at every
//! type it allows. The build script generates it from [`ir::opcode`]. The dispatch loop
//! ([`super::exec`]) and [`value_code`] are expanded from this table. The loop itself implements
//! memory, calls and control flow.

use ir::opcode::Opcode;
use ir::types::Type;

/// One pre-decoded operation. Each [`ExactOpCode`] documents its use of `a`, `b` and `c`.
/// Operations on values hold the slots of the result and of one or two operands, in this order.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExactOp {
    pub(super) code: ExactOpCode,
    /// Whether an observer of scope `Marked` is called before it.
    pub(super) marked: bool,
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) c: u32,
}

impl ExactOp {
    pub(super) fn new(code: ExactOpCode, a: u32, b: u32, c: u32) -> ExactOp {
        ExactOp { code, marked: false, a, b, c }
    }
}

// The macros `with_value_ops` and `with_branch_ops`, which `build.rs` writes from `ir::opcode`.
//
// `with_value_ops!(callback)` expands `callback!` with the table of operations on values. A row has
// a shape (the name of an arm of `value_result`), then its opcodes with their codes. Each code has
// the controlling type and, where it matters, the type of operand 0. `uextend` and `bitcast` are
// missing, because values keep their upper bits clear and both operations are `Copy`.
//
// `with_branch_ops!(callback tokens)` expands `callback!` with these tokens and with two tables for
// the fast tier. The first lists the comparisons that branches execute themselves, grouped by
// shape. The second lists the branches that also execute an addition to one operand. A row has the
// opcode, the plain branch, and the branches with an addition to the first and to the second
// operand.
include!(concat!(env!("OUT_DIR"), "/value_ops.rs"));
pub(super) use with_branch_ops;
pub(super) use with_value_ops;

/// The result of an operation of the table on operands `$x` and `$y`, or its trap; one arm per
/// shape. At every use the operation and the types are constants, so the matches in [`ir::eval`]
/// fold away.
macro_rules! value_result {
    (IntUnary, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::int_unary($op, $ty, $x))
    };
    (IntBinary, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        eval::int_binary($op, $ty, $x, $y)
    };
    (IntTest, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::int_test($op, $ty, $x))
    };
    (IntCompare, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::int_compare($op, $ty, $x, $y))
    };
    (FloatUnary, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::float_unary($op, $ty, $x))
    };
    (FloatBinary, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::float_binary($op, $ty, $x, $y))
    };
    (FloatCompare, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::float_compare($op, $ty, $x, $y))
    };
    (Extend, $op:expr, $ty:expr, $x:expr, $y:expr, $source:expr) => {
        Ok(eval::extend($op, $ty, $source, $x))
    };
    (Wrap, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok($x & $ty.mask())
    };
    (IntToFloat, $op:expr, $ty:expr, $x:expr, $y:expr, $source:expr) => {
        Ok(eval::float_from_int($op, $ty, $source, $x))
    };
    (FloatToInt, $op:expr, $ty:expr, $x:expr, $y:expr, $source:expr) => {
        eval::int_from_float($op, $ty, $source, $x)
    };
    (RefTest, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::ref_is_null($x))
    };
    (RefCompare, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::ref_eq($x, $y))
    };
    (Promote, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::promote($x))
    };
    (Demote, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::demote($x))
    };
}
pub(super) use value_result;

/// The pattern for the type of operand 0 in [`with_value_ops`]; a wildcard where it does not
/// matter.
macro_rules! source_pattern {
    () => {
        _
    };
    ($source:ident) => {
        Type::$source
    };
}
pub(super) use source_pattern;

macro_rules! define_codes {
    ($($shape:ident { $($opcode:ident: $($name:ident($ty:ident $($source:ident)?))+;)+ })+) => {
        /// The codes of operations. Letters name the fields of [`ExactOp`]. A "slot" is an index
        /// into the frame. A "pool" index is one into the pool of the code. A "pc" is the index of
        /// an operation.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u16)]
        pub(super) enum ExactOpCode {
            $($($(#[doc = concat!("`", stringify!($opcode), "` of ", stringify!($ty))] $name,)+)+)+
            /// The bits `b | c << 32` to slot `a`.
            Const,
            /// Slot `b` to slot `a`.
            Copy,
            /// Selects into slot `a`. The pool at `b` lists the slots of the condition and of the
            /// two choices.
            Select,
            /// The byte of memory 0 at slot `b` plus `c`, zero-extended, to slot `a`.
            Load1,
            /// As `Load1`, two bytes.
            Load2,
            /// As `Load1`, four bytes.
            Load4,
            /// As `Load1`, eight bytes.
            Load8,
            /// As `Load1`, sign-extended to 16 bits.
            Load1I16,
            /// As `Load1`, sign-extended to 32 bits.
            Load1I32,
            /// As `Load1`, sign-extended to 64 bits.
            Load1I64,
            /// As `Load2`, sign-extended to 32 bits.
            Load2I32,
            /// As `Load2`, sign-extended to 64 bits.
            Load2I64,
            /// As `Load4`, sign-extended to 64 bits.
            Load4I64,
            /// The low byte of slot `b` to memory 0 at slot `a` plus `c`.
            Store1,
            /// As `Store1`, two bytes.
            Store2,
            /// As `Store1`, four bytes.
            Store4,
            /// As `Store1`, eight bytes.
            Store8,
            /// A load of any memory, at any offset from slot `b`, to slot `a`; `c` is the index of
            /// its `FarAccess`.
            LoadFar,
            /// A store of slot `b` at an offset from slot `a`; `c` is the index of its `FarAccess`.
            StoreFar,
            /// The pages of memory `b` to slot `a`.
            MemorySize,
            /// Grows memory `b` by slot `c`; the result to slot `a`.
            MemoryGrow,
            /// An operation on a range, a table or a segment; `a` is the index of its `BulkOp`.
            Bulk,
            /// Global `b` to slot `a`.
            GlobalGet,
            /// Slot `a` to global `b`.
            GlobalSet,
            /// Calls function `a`. The pool at `b` lists the slots of its `c` arguments, then the
            /// slots of its results.
            Call,
            /// As `Call`, of an imported function.
            CallHost,
            /// Calls indirectly with signature `a`. The pool at `b` lists the table and the slot of
            /// the index, then the same slots as for `Call`.
            CallIndirect,
            /// Returns the `b` slots at pool `a`.
            Return,
            /// Goes to pc `c`.
            Jump,
            /// Slot `b` to slot `a`, then goes to pc `c`.
            Jump1,
            /// `b` moves at pool `a`, each a slot and the slot it is read from, in order; then goes
            /// to pc `c`.
            JumpN,
            /// As `Jump1`, on the edge of a branch: no instruction of its own.
            Edge1,
            /// As `JumpN`, on the edge of a branch: no instruction of its own.
            EdgeN,
            /// Goes to pc `b` if slot `a` is not zero, else to pc `c`.
            BrIf,
            /// Goes to the pc at pool `b` plus the smaller of slot `a` and `c`.
            Switch,
            /// Slot `b` to slot `a`, if it has the bits of assumption `c`; else the run is paused.
            Assume,
            /// Traps; `a` is the index of the trap kind.
            Trap,
            /// Traps with the operand in slot `b`; `a` is the index of the trap kind.
            TrapWith,
            /// Ends the run at OSR point `a` with the values of the `c` slots at pool `b`.
            Leave,
        }

        /// The code of an operation on values at these types, if it has one. Cost: constant.
        pub(super) fn value_code(opcode: Opcode, ty: Type, source: Type) -> Option<ExactOpCode> {
            match (opcode, ty, source) {
                $($($(
                    (Opcode::$opcode, Type::$ty, source_pattern!($($source)?)) => {
                        Some(ExactOpCode::$name)
                    }
                )+)+)+
                _ => None,
            }
        }
    };
}
with_value_ops!(define_codes);
