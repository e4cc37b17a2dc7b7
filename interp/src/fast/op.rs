//! Operations of the fast dispatch loop.

use crate::op::{source_pattern, with_branch_ops, with_value_ops};
use ir::opcode::Opcode;
use ir::types::Type;

/// One operation. Each [`FastOpCode`] documents its use of `a`, `b`, `x` and `y`. Operations on
/// values have the slot of the result in `a`, and the slots of one or two operands in `b` and `x`.
#[derive(Clone, Copy, Debug)]
pub(super) struct FastOp {
    pub(super) code: FastOpCode,
    /// The number of instructions that the operation executes. It is also the fuel it takes, and
    /// the distance to the pc that follows.
    pub(super) length: u8,
    /// Whether a branch has exchanged its targets, because it branches on the negated condition.
    pub(super) flipped: bool,
    pub(super) a: u16,
    pub(super) b: u16,
    pub(super) x: u32,
    pub(super) y: u32,
}

impl FastOp {
    pub(super) fn new(code: FastOpCode, [a, b]: [u16; 2], [x, y]: [u32; 2]) -> FastOp {
        FastOp { code, length: 1, flipped: false, a, b, x, y }
    }

    /// The same operation with a length of one more instruction; `None` when the length would
    /// overflow.
    pub(super) fn with_one_before(self) -> Option<FastOp> {
        Some(FastOp { length: self.length.checked_add(1)?, ..self })
    }
}

/// The fields of an operation that are pcs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Jumps {
    Nowhere,
    /// `x`.
    First,
    /// `x` and `y`.
    Both,
}

macro_rules! define_codes {
    ($($values:tt)*) => { with_branch_ops! { define_both { $($values)* } } };
}

macro_rules! define_both {
    (
        { $($shape:ident { $($opcode:ident: $($name:ident($ty:ident $($source:ident)?))+;)+ })+ }
        $($compare:ident { $($tested:ident: $($branch:ident($width:ident))+;)+ })+
        [$($stepped:ident: $plain:ident $step:ident $flipped:ident;)+]
    ) => {
        /// The codes of operations. Letters name the fields of [`FastOp`]. A "slot" is an index
        /// into the frame. A "pool" index is one into the slot lists of the code. A "pc" is the
        /// index of an operation.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u16)]
        pub(super) enum FastOpCode {
            $($($(#[doc = concat!("`", stringify!($opcode), "` of ", stringify!($ty))] $name,)+)+)+
            $($($(#[doc = concat!("Goes to pc `x` if `", stringify!($tested), "` of slots `a` and `b` is not zero, \
                else to pc `y`")] $branch,)+)+)+
            $(#[doc = concat!("Adds slot `b` to slot `a`, 32 bits; goes to pc `x` if `", stringify!($stepped), "` of slots `a` and `y` \
                is not zero, else to what comes next")] $step,)+
            /// Adds slot `b` to slot `a`, 32 bits; goes to pc `x` if the sum is not zero, else to
            /// pc `y`.
            Step,
            /// The bits `x | y << 32` to slot `a`.
            Const,
            /// Slot `b` to slot `a`.
            Copy,
            /// Slot `x` to slot `a` if slot `b` is not zero, else slot `y`.
            Select,
            /// The byte of memory 0 at slot `b` plus `x`, zero-extended, to slot `a`.
            Load1,
            /// As `Load1`, two bytes.
            Load2,
            /// As `Load1`, four bytes.
            Load4,
            /// As `Load1`, eight bytes.
            Load8,
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
            /// The low byte of slot `b` to memory 0 at slot `a` plus `x`.
            Store1,
            /// As `Store1`, two bytes.
            Store2,
            /// As `Store1`, four bytes.
            Store4,
            /// As `Store1`, eight bytes.
            Store8,
            /// As `Load1`, at the sum of slots `b` and `y`, wrapped to 32 bits, plus `x`.
            Load1At,
            /// As `Load1At`, two bytes.
            Load2At,
            /// As `Load1At`, four bytes.
            Load4At,
            /// As `Load1At`, eight bytes.
            Load8At,
            /// As `Load1At`, sign-extended to 32 bits.
            Load1I32At,
            /// As `Load2At`, sign-extended to 32 bits.
            Load2I32At,
            /// As `Store1`, at the sum of slots `a` and `y`, wrapped to 32 bits, plus `x`.
            Store1At,
            /// As `Store1At`, two bytes.
            Store2At,
            /// As `Store1At`, four bytes.
            Store4At,
            /// As `Store1At`, eight bytes.
            Store8At,
            /// Global `x` to slot `a`.
            GlobalGet,
            /// Slot `a` to global `x`.
            GlobalSet,
            /// Calls function `x`. The pool at `y` lists the slots of its `b` arguments, then the
            /// slots of its results.
            Call,
            /// As `Call`, of an imported function.
            CallHost,
            /// As `Call`, indirectly; `x` is the index of signature and table, slot `a` holds the
            /// table index.
            CallIndirect,
            /// Returns the `y` slots at pool `x`.
            Return,
            /// Goes to pc `x`.
            Jump,
            /// Slot `b` to slot `a`, then goes to pc `x`.
            Jump1,
            /// Slot `b` to slot `a`, slot `y` (low half) to slot `y` (high half), then goes to pc
            /// `x`.
            Jump2,
            /// `b` moves at pool `y`, each a slot and the slot it is read from, in order; then goes
            /// to pc `x`.
            JumpN,
            /// As `Jump1`, on the edge of a branch: no instruction of its own.
            Edge1,
            /// As `Jump2`, on the edge of a branch: no instruction of its own.
            Edge2,
            /// As `JumpN`, on the edge of a branch: no instruction of its own.
            EdgeN,
            /// Goes to pc `x` if slot `a` is not zero, else to pc `y`.
            BrIf,
            /// Goes to the target at `x` plus the smaller of slot `a` and `y`.
            Switch,
            /// Ends the run at an OSR point with the values of the `y` slots at pool `x`. The exact
            /// code names the point.
            Leave,
            /// The bits `x | y << 32` to slot `a` if slot `b` holds them. Else the exact loop
            /// executes the instruction, and the run leaves.
            Assume,
            /// The exact loop executes this instruction.
            Rare,
            /// Counts a visit in counter `y`, and pauses the run if that is due; else goes to pc
            /// `x`. Only code that counts visits has it.
            Poll,
        }

        impl FastOpCode {
            /// Which fields are pcs.
            #[expect(unreachable_patterns, reason = "two comparisons may share a stepped branch")]
            pub(super) fn jumps(self) -> Jumps {
                match self {
                    $($($(FastOpCode::$branch)|+)|+)|+ | FastOpCode::Step | FastOpCode::BrIf => {
                        Jumps::Both
                    }
                    $(FastOpCode::$step | FastOpCode::$flipped)|+
                    | FastOpCode::Jump
                    | FastOpCode::Jump1
                    | FastOpCode::Jump2
                    | FastOpCode::JumpN
                    | FastOpCode::Edge1
                    | FastOpCode::Edge2
                    | FastOpCode::EdgeN => Jumps::First,
                    _ => Jumps::Nowhere,
                }
            }
        }

        /// The code of an operation on values at these types, if it has one. Cost: constant.
        pub(super) fn value_code(opcode: Opcode, ty: Type, source: Type) -> Option<FastOpCode> {
            match (opcode, ty, source) {
                $($($(
                    (Opcode::$opcode, Type::$ty, source_pattern!($($source)?)) => {
                        Some(FastOpCode::$name)
                    }
                )+)+)+
                _ => None,
            }
        }

        /// The code of a branch that executes the tested operation itself, if there is one. Cost:
        /// constant.
        pub(super) fn branch_code(tested: Opcode, ty: Type) -> Option<FastOpCode> {
            match (tested, ty) {
                $($($((Opcode::$tested, Type::$width) => Some(FastOpCode::$branch),)+)+)+
                _ => None,
            }
        }

        /// The two codes that fuse an addition into a compare-and-branch: to its first operand, and
        /// to its second. In the second code the operands are exchanged, so that slot `a` is always
        /// the stepped one. Cost: constant.
        pub(super) fn step_codes(branch: FastOpCode) -> Option<[FastOpCode; 2]> {
            match branch {
                $(FastOpCode::$plain => Some([FastOpCode::$step, FastOpCode::$flipped]),)+
                _ => None,
            }
        }
    };
}
with_value_ops!(define_codes);
