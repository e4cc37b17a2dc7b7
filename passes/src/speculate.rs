//! Adds assumptions.
//!
//! *Does*: adds `%y = assume.T %x, LITERAL, REASON` before each place of a list. For a value that
//! is to differ from a literal, it adds `%t = ne.T %x, LITERAL` first, and assumes `%t` to be 1.
//! Values to keep become further operands. No use reads the result yet: [`crate::Refine`] does
//! that.
//!
//! *Does not*: choose the assumptions; check that their values are available, which is the matter
//! of [the caller](crate::speculate::Assumption).
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: the version makes the assumptions.
//!
//! *Actions emitted*: `add`.
//!
//! *Effect on mappings*: no entry from the version without an assumption lands behind it.
//!
//! *Why correct*: a run without a false assumption behaves as before. Another run leaves, by an
//! entry to a version without the assumption.
//!
//! *Cost*: linear in the list.

use ir::edit::{Editor, Pass};
use ir::{Imm, InstSpec, Opcode, Point, Type, Value};
use std::fmt;

/// A claim about a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Expected {
    /// The value has these bits.
    Is(u64),
    /// The value, of an integer type, has other bits.
    IsNot(u64),
}

impl Expected {
    /// The bits that it names.
    pub const fn bits(self) -> u64 {
        match self {
            Expected::Is(bits) | Expected::IsNot(bits) => bits,
        }
    }

    /// Whether it is true of a value with these bits.
    pub const fn holds(self, bits: u64) -> bool {
        match self {
            Expected::Is(expected) => bits == expected,
            Expected::IsNot(excluded) => bits != excluded,
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Is(bits) => write!(f, "is {bits:#x}"),
            Expected::IsNot(bits) => write!(f, "is not {bits:#x}"),
        }
    }
}

/// An assumption about a value at a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Assumption {
    /// The place, in the version to be speculated on.
    pub at: Point,
    /// The value, which must be available there.
    pub value: Value,
    /// The claim. Its bits fit the type, as [`ir::Type::mask`] says.
    pub expected: Expected,
    /// A number of the embedder's.
    pub reason: u32,
}

impl Assumption {
    /// The assumption that a value has these bits, with reason 0.
    pub const fn is(at: Point, value: Value, bits: u64) -> Assumption {
        Assumption { at, value, expected: Expected::Is(bits), reason: 0 }
    }
}

/// An assumption with the values that it keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PinnedAssumption {
    /// The assumption.
    pub assumption: Assumption,
    /// Values that become operands of the assumption. Passes thus keep them up to there, for the
    /// run that leaves.
    pub pins: Vec<Value>,
}

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Speculate<'a> {
    /// The assumptions to add. The editor panics if the version lacks a place or a value, or if
    /// a value is not available there.
    pub assumptions: &'a [PinnedAssumption],
}

impl Pass for Speculate<'_> {
    fn name(&self) -> &'static str {
        "speculate"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        for assumption in self.assumptions {
            if ed.plan("assumption") {
                add(ed, assumption);
            }
        }
    }
}

fn add(ed: &mut Editor<'_>, PinnedAssumption { assumption, pins }: &PinnedAssumption) {
    let Assumption { at, value, expected, reason } = *assumption;
    let (ty, before) = (ed.func().value_type(value), at.inst());
    let (ty, value, bits) = match expected {
        Expected::Is(bits) => (ty, value, bits),
        Expected::IsNot(bits) => {
            let excluded = ed.add_value(InstSpec::constant(ty, bits), before);
            let differs = InstSpec::new(Opcode::Ne, ty, Imm::None, &[value, excluded]);
            (Type::I32, ed.add_value(differs, before), 1)
        }
    };
    let mut spec = InstSpec::assume(ty, value, bits, reason);
    spec.args.extend_from_slice(pins);
    ed.add(spec, before);
}
