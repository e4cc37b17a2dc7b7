//! Adds assumptions.
//!
//! *Does*: adds `%y = assume.T %x, LITERAL, REASON` before each place of a list. For a value that is
//! to differ from a literal, it adds `%t = ne.T %x, LITERAL` first, and assumes `%t` to be 1. No
//! use reads the result yet: [`crate::Refine`] does that.
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
//! *Why correct*: a run that makes no false assumption does what it did before. Another run leaves,
//! by an entry to a version without the assumption.
//!
//! *Cost*: linear in the list.

use ir::edit::{Editor, Pass};
use ir::{Imm, InstSpec, Opcode, Point, Type, Value};
use std::fmt;

/// A claim about a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fact {
    /// The value has these bits.
    Is(u64),
    /// The value, of an integer type, has other bits.
    IsNot(u64),
}

impl Fact {
    /// The bits that the fact names.
    pub const fn bits(self) -> u64 {
        match self {
            Fact::Is(bits) | Fact::IsNot(bits) => bits,
        }
    }

    /// Whether it is true of a value with these bits.
    pub const fn holds(self, bits: u64) -> bool {
        match self {
            Fact::Is(expected) => bits == expected,
            Fact::IsNot(excluded) => bits != excluded,
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fact::Is(bits) => write!(f, "is {bits:#x}"),
            Fact::IsNot(bits) => write!(f, "is not {bits:#x}"),
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
    pub fact: Fact,
    /// A number of the embedder's.
    pub reason: u32,
}

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Speculate<'a> {
    /// The assumptions to add. The editor panics if the version lacks a place or a value, or if
    /// the value is not available there.
    pub assumptions: &'a [Assumption],
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

fn add(ed: &mut Editor<'_>, assumption: &Assumption) {
    let Assumption { at, value, fact, reason } = *assumption;
    let (ty, before) = (ed.func().value_type(value), at.inst());
    let (ty, value, bits) = match fact {
        Fact::Is(bits) => (ty, value, bits),
        Fact::IsNot(bits) => {
            let excluded = ed.add_value(InstSpec::constant(ty, bits), before);
            let differs = InstSpec::new(Opcode::Ne, ty, Imm::None, &[value, excluded]);
            (Type::I32, ed.add_value(differs, before), 1)
        }
    };
    ed.add(InstSpec::assume(ty, value, bits, reason), before);
}
