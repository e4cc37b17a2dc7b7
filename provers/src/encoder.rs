//! Terms in the language of solvers.
//!
//! A thin layer over `easy-smt`, for the parts of SMT-LIB without a method there.

use easy_smt::{Context, SExpr};
use ir::Type;

/// Builds terms. The SMT-LIB theories `FixedSizeBitVectors` and `FloatingPoint` define their
/// meaning.
#[derive(Clone, Copy)]
pub(crate) struct SmtTerms<'c> {
    context: &'c Context,
}

impl<'c> SmtTerms<'c> {
    pub(crate) fn new(context: &'c Context) -> SmtTerms<'c> {
        SmtTerms { context }
    }

    pub(crate) fn atom(self, name: &str) -> SExpr {
        self.context.atom(name)
    }

    /// An operator applied to arguments.
    pub(crate) fn app(self, operator: &str, arguments: &[SExpr]) -> SExpr {
        self.context.list([&[self.atom(operator)], arguments].concat())
    }

    /// An operator with numbers as indices, applied to arguments.
    pub(crate) fn indexed(self, operator: &str, indices: &[u32], arguments: &[SExpr]) -> SExpr {
        self.context.list([&[self.identifier(operator, indices)], arguments].concat())
    }

    fn identifier(self, operator: &str, indices: &[u32]) -> SExpr {
        let mut items = vec![self.atom("_"), self.atom(operator)];
        items.extend(indices.iter().map(|i| self.atom(&i.to_string())));
        self.context.list(items)
    }

    /// The sort of the bits of a value.
    pub(crate) fn bits_sort(self, ty: Type) -> SExpr {
        self.identifier("BitVec", &[ty.bits()])
    }

    /// The sort of a floating-point number.
    pub(crate) fn float_sort(self, ty: Type) -> SExpr {
        let (exponent, significand) = float_format(ty);
        self.identifier("FloatingPoint", &[exponent, significand])
    }

    /// A constant of `width` bits, a multiple of 4.
    pub(crate) fn constant(self, bits: u64, width: u32) -> SExpr {
        self.atom(&format!("#x{bits:0digits$x}", digits = (width / 4) as usize))
    }

    /// A constant of a type.
    pub(crate) fn of_type(self, bits: u64, ty: Type) -> SExpr {
        self.constant(bits, ty.bits())
    }

    pub(crate) fn equal(self, a: SExpr, b: SExpr) -> SExpr {
        self.app("=", &[a, b])
    }

    pub(crate) fn not(self, a: SExpr) -> SExpr {
        self.app("not", &[a])
    }

    pub(crate) fn ite(self, condition: SExpr, then: SExpr, otherwise: SExpr) -> SExpr {
        self.app("ite", &[condition, then, otherwise])
    }

    /// The conjunction; true if there are no terms.
    pub(crate) fn and(self, all: &[SExpr]) -> SExpr {
        match all {
            [] => self.atom("true"),
            [one] => *one,
            _ => self.app("and", all),
        }
    }

    /// The disjunction; false if there are no terms.
    pub(crate) fn or(self, all: &[SExpr]) -> SExpr {
        match all {
            [] => self.atom("false"),
            [one] => *one,
            _ => self.app("or", all),
        }
    }

    /// Bits `high` down to `low`.
    pub(crate) fn extract(self, high: u32, low: u32, x: SExpr) -> SExpr {
        self.indexed("extract", &[high, low], &[x])
    }

    /// The bits of a value of a type, extended to 64 bits with zeros.
    pub(crate) fn widened(self, x: SExpr, ty: Type) -> SExpr {
        self.indexed("zero_extend", &[64 - ty.bits()], &[x])
    }

    /// The number that the bits of a float represent.
    pub(crate) fn float(self, bits: SExpr, ty: Type) -> SExpr {
        let (exponent, significand) = float_format(ty);
        self.indexed("to_fp", &[exponent, significand], &[bits])
    }

    /// A number rounded to a float type. `operator` names the source: `to_fp`, `to_fp_unsigned`.
    pub(crate) fn rounded(self, operator: &str, ty: Type, x: SExpr) -> SExpr {
        let (exponent, significand) = float_format(ty);
        self.indexed(operator, &[exponent, significand], &[self.atom("RNE"), x])
    }
}

/// The width of the exponent, and the width of the significand including the hidden bit.
fn float_format(ty: Type) -> (u32, u32) {
    if ty == Type::F32 { (8, 24) } else { (11, 53) }
}
