//! The kinds of traps.

use std::fmt;

/// The kind of a trap, which ends a program abnormally. Traps are observable: two runs agree only
/// if they end in the same trap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TrapKind {
    /// Control reached code that is marked as unreachable.
    Unreachable,
    /// Integer division or remainder by zero.
    DivisionByZero,
    /// A signed quotient or a converted float does not fit its type.
    IntegerOverflow,
    /// NaN converted to an integer.
    InvalidConversion,
    /// A load or store outside its memory.
    MemoryOutOfBounds,
    /// A table index outside its table.
    TableOutOfBounds,
    /// An indirect call of a null entry.
    NullFunction,
    /// An indirect call of a function with a different signature.
    SignatureMismatch,
    /// A trap that the embedder defines, by number.
    User(u32),
}

impl TrapKind {
    const NAMED: [(TrapKind, &'static str); 8] = [
        (TrapKind::Unreachable, "unreachable"),
        (TrapKind::DivisionByZero, "division_by_zero"),
        (TrapKind::IntegerOverflow, "integer_overflow"),
        (TrapKind::InvalidConversion, "invalid_conversion"),
        (TrapKind::MemoryOutOfBounds, "memory_out_of_bounds"),
        (TrapKind::TableOutOfBounds, "table_out_of_bounds"),
        (TrapKind::NullFunction, "null_function"),
        (TrapKind::SignatureMismatch, "signature_mismatch"),
    ];

    /// The kind with this name in the text form (`user7` for `User(7)`).
    pub fn from_name(name: &str) -> Option<TrapKind> {
        if let Some(number) = name.strip_prefix("user") {
            return number.parse().ok().map(TrapKind::User);
        }
        TrapKind::NAMED.iter().find(|(_, n)| *n == name).map(|(k, _)| *k)
    }
}

impl fmt::Display for TrapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let TrapKind::User(number) = self {
            return write!(f, "user{number}");
        }
        let name = TrapKind::NAMED.iter().find(|(k, _)| k == self).map_or("", |(_, n)| n);
        f.write_str(name)
    }
}
