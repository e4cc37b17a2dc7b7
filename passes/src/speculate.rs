//! Adds assumptions.
//!
//! *Does*: adds `%y = assume.T %x, LITERAL, REASON` before each place of a list. No use reads the
//! result yet: [`crate::Refine`] does that.
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
use ir::{InstSpec, Point, Value};

/// An assumption about a value at a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Assumption {
    /// The place, in the version to be speculated on.
    pub at: Point,
    /// The value, which must be available there.
    pub value: Value,
    /// The bits that it has, as [`ir::Type::mask`] says.
    pub bits: u64,
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
            let Assumption { at, value, bits, reason } = *assumption;
            if ed.plan("assumption") {
                let ty = ed.func().value_type(value);
                ed.add(InstSpec::assume(ty, value, bits, reason), at.inst());
            }
        }
    }
}
