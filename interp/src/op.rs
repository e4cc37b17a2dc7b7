//! Operations of the exact dispatch loop.
//!
//! The table [`with_value_ops`] lists one operation code for every operation on values at every
//! type it allows. The dispatch loop ([`super::exec`]) and [`value_code`] are expanded from this
//! table. The loop itself implements memory, calls and control flow.

use ir::opcode::Opcode;
use ir::types::Type;

/// One pre-decoded operation. Each [`Code`] documents its use of `a`, `b` and `c`. Operations on
/// values hold the slots of the result and of one or two operands, in this order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) code: Code,
    /// Whether an observer of scope `Marked` is called before it.
    pub(super) marked: bool,
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) c: u32,
}

impl Op {
    pub(super) fn new(code: Code, a: u32, b: u32, c: u32) -> Op {
        Op { code, marked: false, a, b, c }
    }
}

/// Expands `$callback!` with the table of operations on values. A row has a shape (the name of an
/// arm of `value_result`), then its opcodes with their codes. Each code has the controlling type
/// and, where it matters, the type of operand 0. `uextend` and `bitcast` are missing, because
/// values keep their upper bits clear and both operations are `Copy`.
macro_rules! with_value_ops {
    ($callback:ident) => {
        $callback! {
            int_unary {
                Clz: ClzI8(I8) ClzI16(I16) ClzI32(I32) ClzI64(I64);
                Ctz: CtzI8(I8) CtzI16(I16) CtzI32(I32) CtzI64(I64);
                Popcnt: PopcntI8(I8) PopcntI16(I16) PopcntI32(I32) PopcntI64(I64);
                Sext8: Sext8I16(I16) Sext8I32(I32) Sext8I64(I64);
                Sext16: Sext16I32(I32) Sext16I64(I64);
                Sext32: Sext32I64(I64);
            }
            int_binary {
                Add: AddI8(I8) AddI16(I16) AddI32(I32) AddI64(I64);
                Sub: SubI8(I8) SubI16(I16) SubI32(I32) SubI64(I64);
                Mul: MulI8(I8) MulI16(I16) MulI32(I32) MulI64(I64);
                Sdiv: SdivI8(I8) SdivI16(I16) SdivI32(I32) SdivI64(I64);
                Udiv: UdivI8(I8) UdivI16(I16) UdivI32(I32) UdivI64(I64);
                Srem: SremI8(I8) SremI16(I16) SremI32(I32) SremI64(I64);
                Urem: UremI8(I8) UremI16(I16) UremI32(I32) UremI64(I64);
                And: AndI8(I8) AndI16(I16) AndI32(I32) AndI64(I64);
                Or: OrI8(I8) OrI16(I16) OrI32(I32) OrI64(I64);
                Xor: XorI8(I8) XorI16(I16) XorI32(I32) XorI64(I64);
                Shl: ShlI8(I8) ShlI16(I16) ShlI32(I32) ShlI64(I64);
                Sshr: SshrI8(I8) SshrI16(I16) SshrI32(I32) SshrI64(I64);
                Ushr: UshrI8(I8) UshrI16(I16) UshrI32(I32) UshrI64(I64);
                Rotl: RotlI8(I8) RotlI16(I16) RotlI32(I32) RotlI64(I64);
                Rotr: RotrI8(I8) RotrI16(I16) RotrI32(I32) RotrI64(I64);
            }
            int_test {
                Eqz: EqzI8(I8) EqzI16(I16) EqzI32(I32) EqzI64(I64);
            }
            int_compare {
                Eq: EqI8(I8) EqI16(I16) EqI32(I32) EqI64(I64);
                Ne: NeI8(I8) NeI16(I16) NeI32(I32) NeI64(I64);
                Slt: SltI8(I8) SltI16(I16) SltI32(I32) SltI64(I64);
                Sle: SleI8(I8) SleI16(I16) SleI32(I32) SleI64(I64);
                Sgt: SgtI8(I8) SgtI16(I16) SgtI32(I32) SgtI64(I64);
                Sge: SgeI8(I8) SgeI16(I16) SgeI32(I32) SgeI64(I64);
                Ult: UltI8(I8) UltI16(I16) UltI32(I32) UltI64(I64);
                Ule: UleI8(I8) UleI16(I16) UleI32(I32) UleI64(I64);
                Ugt: UgtI8(I8) UgtI16(I16) UgtI32(I32) UgtI64(I64);
                Uge: UgeI8(I8) UgeI16(I16) UgeI32(I32) UgeI64(I64);
            }
            float_unary {
                Fabs: FabsF32(F32) FabsF64(F64);
                Fneg: FnegF32(F32) FnegF64(F64);
                Fceil: FceilF32(F32) FceilF64(F64);
                Ffloor: FfloorF32(F32) FfloorF64(F64);
                Ftrunc: FtruncF32(F32) FtruncF64(F64);
                Fnearest: FnearestF32(F32) FnearestF64(F64);
                Fsqrt: FsqrtF32(F32) FsqrtF64(F64);
            }
            float_binary {
                Fadd: FaddF32(F32) FaddF64(F64);
                Fsub: FsubF32(F32) FsubF64(F64);
                Fmul: FmulF32(F32) FmulF64(F64);
                Fdiv: FdivF32(F32) FdivF64(F64);
                Fmin: FminF32(F32) FminF64(F64);
                Fmax: FmaxF32(F32) FmaxF64(F64);
                Fcopysign: FcopysignF32(F32) FcopysignF64(F64);
            }
            float_compare {
                Feq: FeqF32(F32) FeqF64(F64);
                Fne: FneF32(F32) FneF64(F64);
                Flt: FltF32(F32) FltF64(F64);
                Fle: FleF32(F32) FleF64(F64);
                Fgt: FgtF32(F32) FgtF64(F64);
                Fge: FgeF32(F32) FgeF64(F64);
            }
            extend {
                Sextend: SextendI16I8(I16 I8) SextendI32I8(I32 I8) SextendI32I16(I32 I16)
                    SextendI64I8(I64 I8) SextendI64I16(I64 I16) SextendI64I32(I64 I32);
            }
            wrap {
                Wrap: WrapI8(I8) WrapI16(I16) WrapI32(I32);
            }
            float_from_int {
                FloatFromSint: F32FromSintI32(F32 I32) F32FromSintI64(F32 I64)
                    F64FromSintI32(F64 I32) F64FromSintI64(F64 I64);
                FloatFromUint: F32FromUintI32(F32 I32) F32FromUintI64(F32 I64)
                    F64FromUintI32(F64 I32) F64FromUintI64(F64 I64);
            }
            int_from_float {
                SintFromFloat: SintI32FromF32(I32 F32) SintI32FromF64(I32 F64)
                    SintI64FromF32(I64 F32) SintI64FromF64(I64 F64);
                UintFromFloat: UintI32FromF32(I32 F32) UintI32FromF64(I32 F64)
                    UintI64FromF32(I64 F32) UintI64FromF64(I64 F64);
                SintFromFloatSat: SatSintI32FromF32(I32 F32) SatSintI32FromF64(I32 F64)
                    SatSintI64FromF32(I64 F32) SatSintI64FromF64(I64 F64);
                UintFromFloatSat: SatUintI32FromF32(I32 F32) SatUintI32FromF64(I32 F64)
                    SatUintI64FromF32(I64 F32) SatUintI64FromF64(I64 F64);
            }
            ref_test {
                RefIsNull: RefIsNullFunc(FuncRef) RefIsNullExtern(ExternRef);
            }
            promote {
                Fpromote: Promote(F64);
            }
            demote {
                Fdemote: Demote(F32);
            }
        }
    };
}
pub(super) use with_value_ops;

/// The result of an operation of the table on operands `$x` and `$y`, or its trap; one arm per
/// shape. At every use the operation and the types are constants, so the matches in [`ir::eval`]
/// fold away.
macro_rules! value_result {
    (int_unary, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::int_unary($op, $ty, $x))
    };
    (int_binary, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        eval::int_binary($op, $ty, $x, $y)
    };
    (int_test, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::int_test($op, $ty, $x))
    };
    (int_compare, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::int_compare($op, $ty, $x, $y))
    };
    (float_unary, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::float_unary($op, $ty, $x))
    };
    (float_binary, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::float_binary($op, $ty, $x, $y))
    };
    (float_compare, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::float_compare($op, $ty, $x, $y))
    };
    (extend, $op:expr, $ty:expr, $x:expr, $y:expr, $source:expr) => {
        Ok(eval::extend($op, $ty, $source, $x))
    };
    (wrap, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok($x & $ty.mask())
    };
    (float_from_int, $op:expr, $ty:expr, $x:expr, $y:expr, $source:expr) => {
        Ok(eval::float_from_int($op, $ty, $source, $x))
    };
    (int_from_float, $op:expr, $ty:expr, $x:expr, $y:expr, $source:expr) => {
        eval::int_from_float($op, $ty, $source, $x)
    };
    (ref_test, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::ref_is_null($x))
    };
    (promote, $op:expr, $ty:expr, $x:expr, $y:expr) => {
        Ok(eval::promote($x))
    };
    (demote, $op:expr, $ty:expr, $x:expr, $y:expr) => {
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
        /// The codes of operations. Letters name the fields of [`Op`]. A "slot" is an index into
        /// the frame, a "pool" index one into the pool of the code, and a "pc" the index of an
        /// operation.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u16)]
        pub(super) enum Code {
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
            /// Calls function `a`. The pool at `b` lists the slots of its `c` arguments, then those
            /// of its results.
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
            /// Traps; `a` is the index of the trap kind.
            Trap,
            /// Ends the run at OSR point `a` with the values of the `c` slots at pool `b`.
            Leave,
        }

        /// The code of an operation on values at these types, if it has one. Cost: constant.
        pub(super) fn value_code(opcode: Opcode, ty: Type, source: Type) -> Option<Code> {
            match (opcode, ty, source) {
                $($($((Opcode::$opcode, Type::$ty, source_pattern!($($source)?)) => Some(Code::$name),)+)+)+
                _ => None,
            }
        }
    };
}
with_value_ops!(define_codes);
