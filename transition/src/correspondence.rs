//! What two versions have in common, as their log shows it: the hints that a certificate starts
//! from.

use fixedbitset::FixedBitSet;
use ir::{Block, Function, Inst, Value};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

use crate::Pair;

/// The correspondence of two versions, read off the log that leads from one to the other.
///
/// The certifier takes it as a hint: whoever makes it, a wrong one costs proofs, and the checker
/// accepts nothing on its strength. `osr::VersionPair::correspondence` makes it.
#[derive(Debug)]
pub struct Correspondence<'v> {
    /// The two versions.
    pub versions: Pair<&'v Function>,
    /// The bounding anchors, by the index of the instruction.
    pub anchors: FixedBitSet,
    /// Branches that one version passes by on some paths, since the path decides them.
    pub passed: BTreeSet<Inst>,
    /// Blocks whose incoming edges the log sent elsewhere.
    pub rerouted: BTreeSet<Block>,
    /// For each parameter of a block made to join edges: the parameter of the block behind it that
    /// receives it.
    pub joined_params: BTreeMap<Value, Value>,
    /// For each block made to join edges: the block behind it.
    pub joined_blocks: BTreeMap<Block, Block>,
    /// For each parameter that only the version after has: the parameters that only the version
    /// before has and that the log replaced by it.
    pub replaced: BTreeMap<Value, SmallVec<[Value; 2]>>,
    /// Whether a version has a write that the other lacks, or has elsewhere.
    pub has_lone_writes: bool,
}
