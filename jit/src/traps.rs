//! The trap codes of native code and their meanings.

use cranelift_codegen::ir::TrapCode;
use ir::TrapKind;
use std::ops::Range;

const UNREACHABLE: TrapCode = TrapCode::unwrap_user(1);
/// A table index is out of bounds.
pub(crate) const TABLE: TrapCode = TrapCode::unwrap_user(2);
/// A table entry holds no function.
pub(crate) const NULL: TrapCode = TrapCode::unwrap_user(3);
/// The function of a table entry has another signature.
pub(crate) const SIGNATURE: TrapCode = TrapCode::unwrap_user(4);
/// A `userN` trap of the embedder; the code knows N by the place.
const USER: TrapCode = TrapCode::unwrap_user(5);
/// The fuel is used up.
pub(crate) const FUEL: TrapCode = TrapCode::unwrap_user(6);
/// An interrupt was requested.
pub(crate) const INTERRUPT: TrapCode = TrapCode::unwrap_user(7);
/// A helper ends the run; the state holds the reason.
pub(crate) const HELPER: TrapCode = TrapCode::unwrap_user(8);
/// The run exits through an OSR point in the text of the program, which has no cell. Its values are
/// in the buffer; the context holds their count and the number of the point.
pub(crate) const LEFT: TrapCode = TrapCode::unwrap_user(9);
/// An assumption in the text of the program fails and has no exit. The context holds its reason.
pub(crate) const FAILED: TrapCode = TrapCode::unwrap_user(10);
/// The first code of the traps with an operand, which the context holds
/// ([`crate::context::Context::trap_number`]). One code follows for each of [`KINDS`], and one
/// for `userN`.
const FIRST_WITH_OPERAND: u8 = 16;
/// An access to linear memory is out of bounds.
pub(crate) const MEMORY: TrapCode = TrapCode::HEAP_OUT_OF_BOUNDS;
/// The codes of loads out of bounds. Loads take turns, so that the code of an instruction of the
/// processor tells which load it contains ([`crate::code`]).
pub(crate) const LOADS: Range<u8> = 32..250;

/// The trap code of the load that is lowered as the `index`th of its function.
pub(crate) fn load_code(index: usize) -> TrapCode {
    TrapCode::unwrap_user(LOADS.start + (index % LOADS.len()) as u8)
}

/// Whether this is the code of a load.
pub(crate) fn is_of_a_load(code: TrapCode) -> bool {
    LOADS.contains(&code.as_raw().get())
}

/// The meaning of a trap code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// The program traps.
    Trap(TrapKind),
    /// The program traps with an operand.
    TrapWith(TrapKind),
    /// The stack is used up.
    Stack,
    /// The fuel is used up.
    Fuel,
    /// An interrupt was requested.
    Interrupt,
    /// A helper ends the run.
    Helper,
    /// The run exits through an OSR point in the text of the program.
    Left,
    /// An assumption in the text of the program fails.
    Failed,
}

/// The kinds of traps but those of the embedder, in the order of their codes with an operand.
const KINDS: [TrapKind; 8] = [
    TrapKind::Unreachable,
    TrapKind::DivisionByZero,
    TrapKind::IntegerOverflow,
    TrapKind::InvalidConversion,
    TrapKind::MemoryOutOfBounds,
    TrapKind::TableOutOfBounds,
    TrapKind::NullFunction,
    TrapKind::SignatureMismatch,
];

/// The trap code for a kind of trap.
pub(crate) fn code(kind: TrapKind) -> TrapCode {
    match kind {
        TrapKind::Unreachable => UNREACHABLE,
        TrapKind::DivisionByZero => TrapCode::INTEGER_DIVISION_BY_ZERO,
        TrapKind::IntegerOverflow => TrapCode::INTEGER_OVERFLOW,
        TrapKind::InvalidConversion => TrapCode::BAD_CONVERSION_TO_INTEGER,
        TrapKind::MemoryOutOfBounds => MEMORY,
        TrapKind::TableOutOfBounds => TABLE,
        TrapKind::NullFunction => NULL,
        TrapKind::SignatureMismatch => SIGNATURE,
        TrapKind::User(_) => USER,
    }
}

/// The trap code for a kind of trap whose operand the context holds.
pub(crate) fn code_with_operand(kind: TrapKind) -> TrapCode {
    let index = KINDS.iter().position(|known| *known == kind).unwrap_or(KINDS.len());
    TrapCode::unwrap_user(FIRST_WITH_OPERAND + index as u8)
}

/// The meaning of a trap code. `user` is the number of a `userN` trap. Returns `None` for a code
/// that the lowering never emits.
pub(crate) fn cause(number: u8, user: u32) -> Option<Cause> {
    if LOADS.contains(&number) {
        return Some(Cause::Trap(TrapKind::MemoryOutOfBounds));
    }
    let kinds = || KINDS.into_iter().chain([TrapKind::User(user)]);
    let is = |code: TrapCode| code.as_raw().get() == number;
    if let Some(kind) = kinds().find(|kind| is(code(*kind))) {
        return Some(Cause::Trap(kind));
    }
    if let Some(kind) = kinds().find(|kind| is(code_with_operand(*kind))) {
        return Some(Cause::TrapWith(kind));
    }
    let others = [
        (TrapCode::STACK_OVERFLOW, Cause::Stack),
        (FUEL, Cause::Fuel),
        (INTERRUPT, Cause::Interrupt),
        (HELPER, Cause::Helper),
        (LEFT, Cause::Left),
        (FAILED, Cause::Failed),
    ];
    others.into_iter().find(|(code, _)| is(*code)).map(|(_, cause)| cause)
}
