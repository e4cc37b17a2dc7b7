//! Value types and signatures.

use smallvec::SmallVec;
use std::fmt;

/// The type of a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Type {
    /// 8-bit integer; signedness belongs to operations, not to types.
    I8,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// A reference to a function, or null; see [`crate::reference`].
    FuncRef,
    /// A reference to an entity of the host, or null.
    ExternRef,
    /// A reference into the embedder's heap, which a collector may move; see [`crate::reference`].
    Ref,
}

impl Type {
    /// Every type: integers from narrow to wide, then floats, then references.
    pub const ALL: [Type; 9] = [
        Type::I8,
        Type::I16,
        Type::I32,
        Type::I64,
        Type::F32,
        Type::F64,
        Type::FuncRef,
        Type::ExternRef,
        Type::Ref,
    ];

    /// Every type except references.
    pub const NUMBERS: [Type; 6] =
        [Type::I8, Type::I16, Type::I32, Type::I64, Type::F32, Type::F64];

    /// The width in bits. For a reference, the width of its representation (see
    /// [`crate::reference`]).
    pub const fn bits(self) -> u32 {
        match self {
            Type::I8 => 8,
            Type::I16 => 16,
            Type::I32 | Type::F32 => 32,
            Type::I64 | Type::F64 | Type::FuncRef | Type::ExternRef | Type::Ref => 64,
        }
    }

    /// The width in bytes.
    pub const fn bytes(self) -> u32 {
        self.bits() / 8
    }

    /// Whether this is an integer type.
    pub const fn is_int(self) -> bool {
        matches!(self, Type::I8 | Type::I16 | Type::I32 | Type::I64)
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::F64)
    }

    /// Whether this is an integer or a floating-point type.
    pub const fn is_number(self) -> bool {
        self.is_int() || self.is_float()
    }

    /// Whether this is a type of references that never move: `funcref` or `externref`.
    pub const fn is_ref(self) -> bool {
        matches!(self, Type::FuncRef | Type::ExternRef)
    }

    /// The bits that a value of this type may have set. A `u64` holds the value, and its other bits
    /// are zero.
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Type::I8 => "i8",
            Type::I16 => "i16",
            Type::I32 => "i32",
            Type::I64 => "i64",
            Type::F32 => "f32",
            Type::F64 => "f64",
            Type::FuncRef => "funcref",
            Type::ExternRef => "externref",
            Type::Ref => "ref",
        }
    }

    /// The type with this name in the text form.
    pub fn from_name(name: &str) -> Option<Type> {
        Type::ALL.into_iter().find(|t| t.name() == name)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A short list of types.
pub type TypeList = SmallVec<[Type; 4]>;

/// The parameter and result types of a function.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Signature {
    /// Parameter types, in order.
    pub params: TypeList,
    /// Result types, in order.
    pub results: TypeList,
}

impl Signature {
    /// A signature from slices of types.
    pub fn new(params: &[Type], results: &[Type]) -> Signature {
        Signature { params: params.into(), results: results.into() }
    }
}

impl fmt::Display for Signature {
    /// Writes the signature in the text form: `(i32, i32) -> i64`, `() -> ()`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, types: &[Type]| {
            f.write_str("(")?;
            for (i, t) in types.iter().enumerate() {
                write!(f, "{}{t}", if i == 0 { "" } else { ", " })?;
            }
            f.write_str(")")
        };
        list(f, &self.params)?;
        f.write_str(" -> ")?;
        match self.results.as_slice() {
            [one] => write!(f, "{one}"),
            many => list(f, many),
        }
    }
}
