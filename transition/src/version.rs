//! Keys that distinguish versions, also versions of different families.

use ir::Function;

/// The identity of a version: its family, and its place in the history of that family.
///
/// Two versions have equal keys when their bases have equal text, ids included, and the same
/// actions lead from the bases to them. A mapping for one of them is then a mapping for the other.
/// Keys are digests of 64 bits, meaningful within one build of the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VersionKey {
    stamp: u64,
    history: u64,
}

impl VersionKey {
    /// The key of a version. Cost: constant.
    pub fn of(version: &Function) -> VersionKey {
        VersionKey { stamp: version.stamp(), history: version.history() }
    }
}
