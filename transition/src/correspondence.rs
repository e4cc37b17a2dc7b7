//! The facts that relate two versions, as their log shows them: the hints from which a certificate
//! starts.

use fixedbitset::FixedBitSet;
use ir::decided::Decided;
use ir::{Block, Function, Inst, Value};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Pair;

/// The correspondence of two versions, read off the log that leads from one to the other.
///
/// The certifier takes it as a hint. A wrong correspondence loses proofs, but no acceptance by the
/// checker relies on it. `osr::VersionPair::correspondence` computes it.
#[derive(Debug)]
pub struct Correspondence<'v> {
    /// The two versions.
    pub versions: Pair<&'v Function>,
    /// The branches of the two versions that constants decide.
    pub decided: Pair<Arc<Decided>>,
    /// The bounding anchors, by the index of the instruction.
    pub anchors: FixedBitSet,
    /// Writes of one place that both versions execute between the same two bounding anchors,
    /// without being bounding anchors. By the index of the instruction.
    pub paired: FixedBitSet,
    /// For each parameter of a block created to join edges: the parameter of its successor that
    /// receives it.
    pub joined_params: BTreeMap<Value, Value>,
    /// For each block created to join edges: its successor.
    pub joined_blocks: BTreeMap<Block, Block>,
    /// For each parameter that only the version after has: the parameters that only the version
    /// before has and that the log replaced by it.
    pub replaced: BTreeMap<Value, SmallVec<[Value; 2]>>,
    /// The branches of the version before that the log made jumps, each with the indices of the
    /// targets that the jump may stand for.
    pub folded: BTreeMap<Inst, SmallVec<[u32; 1]>>,
    /// Whether a version has a write that is missing or elsewhere in the other version.
    pub has_lone_writes: bool,
}
