//! What the numbers at trapping instructions mean.

use cranelift_codegen::ir::TrapCode;
use ir::TrapKind;

const UNREACHABLE: TrapCode = TrapCode::unwrap_user(1);
/// A table index outside its table.
pub(crate) const TABLE: TrapCode = TrapCode::unwrap_user(2);
/// A table entry that holds no function.
pub(crate) const NULL: TrapCode = TrapCode::unwrap_user(3);
/// A function with another signature.
pub(crate) const SIGNATURE: TrapCode = TrapCode::unwrap_user(4);
/// A trap of the embedder's own, whose number is in the context.
const USER: TrapCode = TrapCode::unwrap_user(5);
/// No fuel is left.
pub(crate) const FUEL: TrapCode = TrapCode::unwrap_user(6);
/// An interrupt was asked for.
pub(crate) const INTERRUPT: TrapCode = TrapCode::unwrap_user(7);
/// A helper has said that the run ends; it has left word of how.
pub(crate) const HELPER: TrapCode = TrapCode::unwrap_user(8);
/// An OSR point that the engine knows nothing of: the values are in the buffer, their number and
/// that of the point in the context.
pub(crate) const LEFT: TrapCode = TrapCode::unwrap_user(9);
/// A byte outside a memory.
pub(crate) const MEMORY: TrapCode = TrapCode::HEAP_OUT_OF_BOUNDS;

/// What a trapping instruction says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// The program traps.
    Trap(TrapKind),
    /// The stack is used up.
    Stack,
    /// The fuel is used up.
    Fuel,
    /// An interrupt was asked for.
    Interrupt,
    /// A helper has left word.
    Helper,
    /// The run leaves through an OSR point of the program's own text.
    Left,
}

/// The number for a kind of trap.
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

/// What a number means; `user` is the number of a trap of the embedder's own. `None` for one that
/// no code of ours carries.
pub(crate) fn cause(number: u8, user: u16) -> Option<Cause> {
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
    let is = |code: TrapCode| code.as_raw().get() == number;
    if let Some(kind) = KINDS.into_iter().find(|kind| is(code(*kind))) {
        return Some(Cause::Trap(kind));
    }
    let others = [
        (USER, Cause::Trap(TrapKind::User(user))),
        (TrapCode::STACK_OVERFLOW, Cause::Stack),
        (FUEL, Cause::Fuel),
        (INTERRUPT, Cause::Interrupt),
        (HELPER, Cause::Helper),
        (LEFT, Cause::Left),
    ];
    others.into_iter().find(|(code, _)| is(*code)).map(|(_, cause)| cause)
}
