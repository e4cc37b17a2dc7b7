//! The test of blame in the document of `osier report`.

/// The counts of a test of blame: of a sample of the points without an entry, at the level of the
/// report, whether they have one without the rewrite that the report blames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct BlameCheck {
    /// The points of the sample.
    pub points: u64,
    /// Those of them that have an entry in a version made without the rewrite to blame, and those
    /// that this version lacks or never reaches.
    pub right: u64,
    /// Those of them for which the report names no action.
    pub unnamed: u64,
}

impl BlameCheck {
    /// Adds the counts of another sample.
    pub fn merge(&mut self, other: &BlameCheck) {
        self.points += other.points;
        self.right += other.right;
        self.unnamed += other.unnamed;
    }
}
