//! The nodes of a search for values, the ways to compute them, and the expressions found.

use ir::{Inst, Type, Value};
use smallvec::SmallVec;

/// An expression over values of the source version.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    /// A value as it is at the source point.
    Source(Value),
    /// An operation of the target version, or, if `in_source`, one that the path from the source
    /// point has yet to run. Operands are indices of expressions.
    Op { inst: Inst, in_source: bool, args: SmallVec<[u32; 3]> },
    /// A constant. No version needs to have its instruction.
    Constant { ty: Type, bits: u64 },
}

/// A node of the search: something to compute.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum SearchNode {
    /// A value of the target version.
    Wanted(Value),
    /// An operation on the path from the source point, by number.
    Rest(u32),
    /// A value of the source version as it is at the source point.
    Here(Value),
}

/// One of the ways to compute a node. It needs all of its operands.
#[derive(Clone, Debug)]
pub(crate) enum Alternative {
    /// Read a value at the source point.
    Read(Value),
    /// Compute another node instead; both are equal.
    Same(SearchNode),
    /// Make the constant of the value's class.
    Constant { ty: Type, bits: u64 },
    /// Execute an operation.
    Execute { inst: Inst, in_source: bool, args: SmallVec<[SearchNode; 3]> },
}
