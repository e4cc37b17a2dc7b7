//! The opcode table: the single list of all operations.
//!
//! The table gives each operation its arity, its types, its effects and its name in the text form.
//! The parser, the printer, the verifier, the generator and the manual (`docs/oir.md`) read the
//! table instead of repeating it. The interpreter generates its tables of operations on values from
//! it (`interp/build.rs`). The module [`crate::eval`] defines the results of operations on
//! values alone. The interpreter defines memory, calls and control flow.
//!
//! `CONTRIBUTING.md` lists the places to change for a new opcode. The doc comment of a row is also
//! its text in the manual.

mod types;

/// The effects that an operation may have besides computing its results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effects(u8);

impl Effects {
    /// The operation computes its results from its operands and does nothing else.
    pub const PURE: Effects = Effects(0);
    /// The operation may trap.
    pub const TRAP: Effects = Effects(1);
    /// The operation reads memory, tables, sizes, globals, the words of references that move, or
    /// whether a segment was dropped.
    pub const READS: Effects = Effects(2);
    /// The operation writes memory, tables, sizes or globals, or drops a segment.
    pub const WRITES: Effects = Effects(4);
    /// The order of these operations is observable. Calls and growth appear in the effect trace;
    /// tests of OSR points and assumptions do not.
    pub const TRACED: Effects = Effects(8);
    /// The operation ends a block.
    pub const TERMINATOR: Effects = Effects(16);
    /// The run may leave the version before the operation.
    pub const LEAVES: Effects = Effects(32);

    const fn or(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }

    /// Whether every bit of `other` is set in `self`.
    #[inline]
    pub const fn has(self, other: Effects) -> bool {
        self.0 & other.0 == other.0
    }
}

const PURE: Effects = Effects::PURE;
const TRAP: Effects = Effects::TRAP;
const READ: Effects = Effects::READS;
const LOAD: Effects = Effects::READS.or(Effects::TRAP);
const WRITE: Effects = Effects::WRITES;
const STORE: Effects = Effects::WRITES.or(Effects::TRAP);
const MOVE: Effects = Effects::READS.or(Effects::WRITES).or(Effects::TRAP);
const GROW: Effects = Effects::READS.or(Effects::WRITES).or(Effects::TRACED);
const CALL: Effects = GROW.or(Effects::TRAP);
const OUTSIDE: Effects = Effects::READS.or(Effects::TRACED).or(Effects::TRAP);
const LEAVE: Effects = Effects::TRACED.or(Effects::LEAVES);
const TERM: Effects = Effects::TERMINATOR;
const TERM_TRAP: Effects = Effects::TERMINATOR.or(Effects::TRAP);

/// The type rule of an operation. `T` is the controlling type of the instruction. The text form
/// writes it as the suffix of the opcode (`add.i32`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// `() -> T`, any type; the immediate holds the bits.
    Const,
    /// `(T) -> T`, integer.
    IntUnary,
    /// `(T, T) -> T`, integer.
    IntBinary,
    /// `(T) -> i32`, integer.
    IntTest,
    /// `(T, T) -> i32`, integer; the result is 0 or 1.
    IntCompare,
    /// `(T) -> T`, float.
    FloatUnary,
    /// `(T, T) -> T`, float.
    FloatBinary,
    /// `(T, T) -> i32`, float.
    FloatCompare,
    /// `(S) -> T`, both integers, `S` narrower than `T`.
    Extend,
    /// `(S) -> T`, both integers, `S` wider than `T`.
    Wrap,
    /// `(S) -> T`, `S` an integer of 32 or 64 bits, `T` a float.
    IntToFloat,
    /// `(S) -> T`, `S` a float, `T` an integer of 32 or 64 bits.
    FloatToInt,
    /// `(f32) -> f64`.
    Promote,
    /// `(f64) -> f32`.
    Demote,
    /// `(S) -> T`, one an integer and one a float of the same width.
    Bitcast,
    /// `(C, T, T) -> T`, `C` any integer type.
    Select,
    /// `(A) -> T`: a load of the given number of bytes, 0 meaning all of `T`. `A` is `i64` in host
    /// memories, and `i32` in others.
    Load(u8),
    /// `(A, T) -> ()`: a store of the given number of bytes, 0 meaning all of `T`.
    Store(u8),
    /// `() -> i32`, of the memory in the immediate.
    MemorySize,
    /// `(i32) -> i32`, of the memory in the immediate.
    MemoryGrow,
    /// `(i32, i32, i32) -> ()`, on the memories in the immediate; operands: destination, source,
    /// number of bytes.
    MemoryCopy,
    /// `(i32, i32, i32) -> ()`, on the memory in the immediate; operands: first address, byte,
    /// number of bytes.
    MemoryFill,
    /// `(i32, i32, i32) -> ()`, on the memory and segment in the immediate; operands: destination,
    /// source, number of bytes.
    MemoryInit,
    /// `() -> ()`, of the data segment in the immediate.
    DataDrop,
    /// `(T) -> i32`, reference.
    RefTest,
    /// `(ref, ref) -> i32`; the result is 0 or 1.
    RefCompare,
    /// `(ref) -> i64`.
    RefBits,
    /// `(i64) -> ref`.
    RefOf,
    /// `(i32) -> T`, where `T` is the type of the table in the immediate.
    TableGet,
    /// `(i32, T) -> ()`, where `T` is the type of the table in the immediate.
    TableSet,
    /// `() -> i32`, of the table in the immediate.
    TableSize,
    /// `(T, i32) -> i32`, where `T` is the type of the table in the immediate.
    TableGrow,
    /// `(i32, T, i32) -> ()`, where `T` is the type of the table in the immediate; operands: first
    /// index, entry, number of entries.
    TableFill,
    /// `(i32, i32, i32) -> ()`, on the tables in the immediate; operands: destination, source,
    /// number of entries.
    TableCopy,
    /// `(i32, i32, i32) -> ()`, on the table and segment in the immediate; operands: destination,
    /// source, number of entries.
    TableInit,
    /// `() -> ()`, of the element segment in the immediate.
    ElemDrop,
    /// `() -> i32`, of the OSR point in the immediate.
    OsrTest,
    /// `() -> T`, where `T` is the type of the global in the immediate.
    GlobalGet,
    /// `(T) -> ()`, where `T` is the type of the global in the immediate.
    GlobalSet,
    /// Operands and results have the types in the signature of the function in the immediate.
    Call,
    /// As [`Shape::Call`], by the signature in the immediate, with one more operand at the end: the
    /// `i32` index into the table in the immediate.
    CallIndirect,
    /// As [`Shape::Call`], with one result: its type is the controlling type.
    CallValue,
    /// No operands, one target.
    Jump,
    /// `(C)`, `C` any integer type. Two targets: the first for a nonzero operand, the second for
    /// zero.
    BrIf,
    /// `(i32)`. At least one target; the last is the default.
    Switch,
    /// The operands have the function's result types; no target.
    Return,
    /// At most one operand, `i32` or `i64`, no target; the immediate holds the trap kind.
    Trap,
    /// Any operands, no target; the immediate holds the OSR point.
    OsrExit,
    /// `(T, ..) -> T`, any types; the immediate holds the bits assumed and the reason. Operands
    /// behind the first are kept for the run that leaves.
    Assume,
}

macro_rules! opcodes {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $shape:expr, $effects:expr;)+) => {
        /// An operation.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Opcode { $($(#[doc = $doc])+ $variant,)+ }

        impl Opcode {
            /// Every opcode, in table order.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$variant,)+];

            /// The name in the text form.
            pub const fn name(self) -> &'static str {
                match self { $(Opcode::$variant => $name,)+ }
            }

            /// The type rule.
            pub const fn shape(self) -> Shape {
                match self { $(Opcode::$variant => $shape,)+ }
            }

            /// The effects that the operation may have with some operands.
            #[inline]
            pub const fn effects(self) -> Effects {
                match self { $(Opcode::$variant => $effects,)+ }
            }

            /// The meaning of the operation in one line, for the manual.
            pub const fn summary(self) -> &'static str {
                match self { $(Opcode::$variant => concat!($($doc,)+),)+ }
            }
        }
    };
}

opcodes! {
    /// The constant in the immediate.
    Const "const" Shape::Const, PURE;
    /// Sum, modulo 2^bits.
    Add "add" Shape::IntBinary, PURE;
    /// Difference, modulo 2^bits.
    Sub "sub" Shape::IntBinary, PURE;
    /// Product, modulo 2^bits.
    Mul "mul" Shape::IntBinary, PURE;
    /// Signed quotient, rounded toward zero; traps when the divisor is zero or the quotient
    /// overflows.
    Sdiv "sdiv" Shape::IntBinary, TRAP;
    /// Unsigned quotient; traps when the divisor is zero.
    Udiv "udiv" Shape::IntBinary, TRAP;
    /// Signed remainder with the sign of the dividend; traps when the divisor is zero; the
    /// remainder of the minimum by -1 is 0.
    Srem "srem" Shape::IntBinary, TRAP;
    /// Unsigned remainder; traps when the divisor is zero.
    Urem "urem" Shape::IntBinary, TRAP;
    /// Bitwise and.
    And "and" Shape::IntBinary, PURE;
    /// Bitwise or.
    Or "or" Shape::IntBinary, PURE;
    /// Bitwise exclusive or.
    Xor "xor" Shape::IntBinary, PURE;
    /// Shift left; the amount is taken modulo the width.
    Shl "shl" Shape::IntBinary, PURE;
    /// Arithmetic shift right; the amount is taken modulo the width.
    Sshr "sshr" Shape::IntBinary, PURE;
    /// Logical shift right; the amount is taken modulo the width.
    Ushr "ushr" Shape::IntBinary, PURE;
    /// Rotate left; the amount is taken modulo the width.
    Rotl "rotl" Shape::IntBinary, PURE;
    /// Rotate right; the amount is taken modulo the width.
    Rotr "rotr" Shape::IntBinary, PURE;
    /// Number of leading zero bits.
    Clz "clz" Shape::IntUnary, PURE;
    /// Number of trailing zero bits.
    Ctz "ctz" Shape::IntUnary, PURE;
    /// Number of one bits.
    Popcnt "popcnt" Shape::IntUnary, PURE;
    /// The bytes in reverse order.
    Bswap "bswap" Shape::IntUnary, PURE;
    /// Sign extension of the low 8 bits to the whole width.
    Sext8 "sext8" Shape::IntUnary, PURE;
    /// Sign extension of the low 16 bits to the whole width.
    Sext16 "sext16" Shape::IntUnary, PURE;
    /// Sign extension of the low 32 bits to the whole width.
    Sext32 "sext32" Shape::IntUnary, PURE;
    /// 1 if the operand is zero, else 0.
    Eqz "eqz" Shape::IntTest, PURE;
    /// 1 if equal, else 0.
    Eq "eq" Shape::IntCompare, PURE;
    /// 1 if not equal, else 0.
    Ne "ne" Shape::IntCompare, PURE;
    /// 1 if less, signed, else 0.
    Slt "slt" Shape::IntCompare, PURE;
    /// 1 if less or equal, signed, else 0.
    Sle "sle" Shape::IntCompare, PURE;
    /// 1 if greater, signed, else 0.
    Sgt "sgt" Shape::IntCompare, PURE;
    /// 1 if greater or equal, signed, else 0.
    Sge "sge" Shape::IntCompare, PURE;
    /// 1 if less, unsigned, else 0.
    Ult "ult" Shape::IntCompare, PURE;
    /// 1 if less or equal, unsigned, else 0.
    Ule "ule" Shape::IntCompare, PURE;
    /// 1 if greater, unsigned, else 0.
    Ugt "ugt" Shape::IntCompare, PURE;
    /// 1 if greater or equal, unsigned, else 0.
    Uge "uge" Shape::IntCompare, PURE;
    /// 1 if the signed sum does not fit the type, so that `add` wraps around, else 0.
    SaddOverflows "sadd_overflows" Shape::IntCompare, PURE;
    /// 1 if the signed difference does not fit the type, so that `sub` wraps around, else 0.
    SsubOverflows "ssub_overflows" Shape::IntCompare, PURE;
    /// 1 if the signed product does not fit the type, so that `mul` wraps around, else 0.
    SmulOverflows "smul_overflows" Shape::IntCompare, PURE;
    /// IEEE 754 sum.
    Fadd "fadd" Shape::FloatBinary, PURE;
    /// IEEE 754 difference.
    Fsub "fsub" Shape::FloatBinary, PURE;
    /// IEEE 754 product.
    Fmul "fmul" Shape::FloatBinary, PURE;
    /// IEEE 754 quotient.
    Fdiv "fdiv" Shape::FloatBinary, PURE;
    /// Minimum; NaN if either operand is; -0 is less than +0.
    Fmin "fmin" Shape::FloatBinary, PURE;
    /// Maximum; NaN if either operand is; -0 is less than +0.
    Fmax "fmax" Shape::FloatBinary, PURE;
    /// The first operand with the sign of the second, bit by bit.
    Fcopysign "fcopysign" Shape::FloatBinary, PURE;
    /// The operand with its sign bit cleared.
    Fabs "fabs" Shape::FloatUnary, PURE;
    /// The operand with its sign bit flipped.
    Fneg "fneg" Shape::FloatUnary, PURE;
    /// Round toward plus infinity.
    Fceil "fceil" Shape::FloatUnary, PURE;
    /// Round toward minus infinity.
    Ffloor "ffloor" Shape::FloatUnary, PURE;
    /// Round toward zero.
    Ftrunc "ftrunc" Shape::FloatUnary, PURE;
    /// Round to nearest, ties to even.
    Fnearest "fnearest" Shape::FloatUnary, PURE;
    /// IEEE 754 square root.
    Fsqrt "fsqrt" Shape::FloatUnary, PURE;
    /// 1 if ordered and equal, else 0.
    Feq "feq" Shape::FloatCompare, PURE;
    /// 1 if unordered or not equal, else 0.
    Fne "fne" Shape::FloatCompare, PURE;
    /// 1 if ordered and less, else 0.
    Flt "flt" Shape::FloatCompare, PURE;
    /// 1 if ordered and less or equal, else 0.
    Fle "fle" Shape::FloatCompare, PURE;
    /// 1 if ordered and greater, else 0.
    Fgt "fgt" Shape::FloatCompare, PURE;
    /// 1 if ordered and greater or equal, else 0.
    Fge "fge" Shape::FloatCompare, PURE;
    /// Sign extension to a wider integer.
    Sextend "sextend" Shape::Extend, PURE;
    /// Zero extension to a wider integer.
    Uextend "uextend" Shape::Extend, PURE;
    /// The low bits, as a narrower integer.
    Wrap "wrap" Shape::Wrap, PURE;
    /// The nearest float of a signed integer, ties to even.
    FloatFromSint "float_from_sint" Shape::IntToFloat, PURE;
    /// The nearest float of an unsigned integer, ties to even.
    FloatFromUint "float_from_uint" Shape::IntToFloat, PURE;
    /// The signed integer, rounded toward zero; traps on NaN and when it does not fit.
    SintFromFloat "sint_from_float" Shape::FloatToInt, TRAP;
    /// The unsigned integer, rounded toward zero; traps on NaN and when it does not fit.
    UintFromFloat "uint_from_float" Shape::FloatToInt, TRAP;
    /// The signed integer, rounded toward zero; NaN gives 0, and a value out of range gives the
    /// nearest bound.
    SintFromFloatSat "sint_from_float_sat" Shape::FloatToInt, PURE;
    /// The unsigned integer, rounded toward zero; NaN gives 0, and a value out of range gives the
    /// nearest bound.
    UintFromFloatSat "uint_from_float_sat" Shape::FloatToInt, PURE;
    /// The f64 of an f32.
    Fpromote "fpromote" Shape::Promote, PURE;
    /// The nearest f32 of an f64, ties to even.
    Fdemote "fdemote" Shape::Demote, PURE;
    /// The same bits as another type.
    Bitcast "bitcast" Shape::Bitcast, PURE;
    /// The second operand if the first is not zero, else the third.
    Select "select" Shape::Select, PURE;
    /// The value at an address; traps when out of bounds.
    Load "load" Shape::Load(0), LOAD;
    /// One byte at an address, zero-extended; traps when out of bounds.
    Uload8 "uload8" Shape::Load(1), LOAD;
    /// One byte at an address, sign-extended; traps when out of bounds.
    Sload8 "sload8" Shape::Load(1), LOAD;
    /// Two bytes at an address, zero-extended; traps when out of bounds.
    Uload16 "uload16" Shape::Load(2), LOAD;
    /// Two bytes at an address, sign-extended; traps when out of bounds.
    Sload16 "sload16" Shape::Load(2), LOAD;
    /// Four bytes at an address, zero-extended; traps when out of bounds.
    Uload32 "uload32" Shape::Load(4), LOAD;
    /// Four bytes at an address, sign-extended; traps when out of bounds.
    Sload32 "sload32" Shape::Load(4), LOAD;
    /// Writes a value at an address; traps when out of bounds, without writing.
    Store "store" Shape::Store(0), STORE;
    /// Writes the low byte at an address; traps when out of bounds, without writing.
    Store8 "store8" Shape::Store(1), STORE;
    /// Writes the low two bytes at an address; traps when out of bounds, without writing.
    Store16 "store16" Shape::Store(2), STORE;
    /// Writes the low four bytes at an address; traps when out of bounds, without writing.
    Store32 "store32" Shape::Store(4), STORE;
    /// The size of a memory in pages of 64 KiB.
    MemorySize "memory_size" Shape::MemorySize, READ;
    /// Grows a memory by a number of pages; returns the previous size, or -1 without growth.
    MemoryGrow "memory_grow" Shape::MemoryGrow, GROW;
    /// Copies bytes from one memory to another or the same, as if all were read first; traps when
    /// out of bounds, without writing.
    MemoryCopy "memory_copy" Shape::MemoryCopy, MOVE;
    /// Writes the low byte of the second operand to a range of bytes; traps when out of bounds,
    /// without writing.
    MemoryFill "memory_fill" Shape::MemoryFill, STORE;
    /// Copies bytes from a data segment; traps when out of bounds of either, without writing.
    MemoryInit "memory_init" Shape::MemoryInit, MOVE;
    /// Makes a data segment empty.
    DataDrop "data_drop" Shape::DataDrop, WRITE;
    /// 1 if the reference is null, else 0.
    RefIsNull "ref_is_null" Shape::RefTest, PURE;
    /// 1 if both are the same reference, else 0.
    RefEq "ref_eq" Shape::RefCompare, PURE;
    /// The word of a reference now; a call may change it.
    RefBits "ref_bits" Shape::RefBits, READ;
    /// The reference that has this word now.
    RefOf "ref_of" Shape::RefOf, READ;
    /// The entry of a table at an index; traps when out of bounds.
    TableGet "table_get" Shape::TableGet, LOAD;
    /// Sets the entry of a table at an index; traps when out of bounds.
    TableSet "table_set" Shape::TableSet, STORE;
    /// The number of entries of a table.
    TableSize "table_size" Shape::TableSize, READ;
    /// Grows a table by a number of entries, all the same; returns the previous size, or -1 without
    /// growth.
    TableGrow "table_grow" Shape::TableGrow, GROW;
    /// Sets a range of entries of a table to one reference; traps when out of bounds, without
    /// writing.
    TableFill "table_fill" Shape::TableFill, STORE;
    /// Copies entries from one table to another or the same, as if all were read first; traps when
    /// out of bounds, without writing.
    TableCopy "table_copy" Shape::TableCopy, MOVE;
    /// Copies entries from an element segment; traps when out of bounds of either, without writing.
    TableInit "table_init" Shape::TableInit, MOVE;
    /// Makes an element segment empty.
    ElemDrop "elem_drop" Shape::ElemDrop, WRITE;
    /// The value of a global.
    GlobalGet "global_get" Shape::GlobalGet, READ;
    /// Sets a global.
    GlobalSet "global_set" Shape::GlobalSet, WRITE;
    /// Calls a function of the module or of the host.
    Call "call" Shape::Call, CALL;
    /// Calls the function at a table index; traps on an index out of bounds, a null entry and a
    /// wrong signature.
    CallIndirect "call_indirect" Shape::CallIndirect, CALL;
    /// Calls an imported function that is declared `pure`: the result depends on the operands
    /// alone.
    CallPure "call_pure" Shape::CallValue, PURE;
    /// Calls an imported function that is declared `pure` or `reads`: the result depends on the
    /// operands and on the state of the module.
    CallReads "call_reads" Shape::CallValue, READ;
    /// Calls an imported function with a declared effect: the call leaves the state of the module
    /// as it is.
    CallOutside "call_outside" Shape::Call, OUTSIDE;
    /// 1 if the engine wants the run to leave the version at the point, else 0; always 0 without an
    /// engine.
    OsrTest "osr_test" Shape::OsrTest, GROW;
    /// The operand, which has these bits; if it has others, the run leaves the version before this
    /// operation.
    Assume "assume" Shape::Assume, LEAVE;
    /// Continues at the target.
    Jump "jump" Shape::Jump, TERM;
    /// Continues at the first target if the operand is not zero, else at the second.
    BrIf "br_if" Shape::BrIf, TERM;
    /// Continues at the target that the unsigned operand selects, or at the last target when it is
    /// too large.
    Switch "switch" Shape::Switch, TERM;
    /// Returns from the function.
    Return "return" Shape::Return, TERM;
    /// Ends the program with a trap, which reports the operand.
    Trap "trap" Shape::Trap, TERM_TRAP;
    /// Leaves the version at the point with these values; without an engine to continue it, the run
    /// ends.
    OsrExit "osr_exit" Shape::OsrExit, TERM;
}

impl Opcode {
    /// The opcode with this name in the text form. Cost: linear in the table; the parser keeps a
    /// map instead.
    pub fn from_name(name: &str) -> Option<Opcode> {
        Opcode::ALL.iter().copied().find(|op| op.name() == name)
    }

    /// Whether the operation ends a block.
    pub const fn is_terminator(self) -> bool {
        self.effects().has(Effects::TERMINATOR)
    }

    /// Whether the operation computes its results from its operands alone and cannot trap.
    #[inline]
    pub const fn is_pure(self) -> bool {
        self.effects().0 == 0
    }

    /// Whether the operation is *effect-free*: it changes no state that another instruction could
    /// observe. It may still trap, and it may read state that other instructions change.
    #[inline]
    pub const fn is_effect_free(self) -> bool {
        self.effects().0 & (Effects::WRITES.0 | Effects::TRACED.0 | Effects::TERMINATOR.0) == 0
    }

    /// Whether the operation is a call: of a function of the module or of the embedder.
    #[inline]
    pub const fn is_call(self) -> bool {
        matches!(self.shape(), Shape::Call | Shape::CallIndirect | Shape::CallValue)
    }

    /// Whether the operation may move objects: a call whose function may reach a collector.
    #[inline]
    pub const fn may_move_objects(self) -> bool {
        let is_declared =
            matches!(self, Opcode::CallPure | Opcode::CallReads | Opcode::CallOutside);
        self.is_call() && !is_declared
    }

    /// Whether the result depends on the operands alone. The operation may still trap.
    #[inline]
    pub const fn is_value_determined(self) -> bool {
        self.is_effect_free() && !self.effects().has(Effects::READS)
    }

    /// Whether compensation code may execute the operation: the result depends on the operands
    /// alone, and no function of the embedder computes it. The operation may still trap.
    #[inline]
    pub const fn is_step(self) -> bool {
        self.is_value_determined() && !matches!(self, Opcode::CallPure)
    }

    /// Whether the operation traps on some operands.
    #[inline]
    pub const fn can_trap(self) -> bool {
        self.effects().has(Effects::TRAP)
    }

    /// Whether swapping the two operands leaves the result unchanged.
    pub const fn is_commutative(self) -> bool {
        matches!(
            self,
            Opcode::Add
                | Opcode::Mul
                | Opcode::And
                | Opcode::Or
                | Opcode::Xor
                | Opcode::Eq
                | Opcode::Ne
                | Opcode::SaddOverflows
                | Opcode::SmulOverflows
                | Opcode::Feq
                | Opcode::Fne
                | Opcode::RefEq
        )
    }
}
