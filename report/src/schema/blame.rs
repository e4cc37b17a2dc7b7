//! The test of blame in the document of `osier report`.

/// The counts of a test of blame, of a sample of the points without an entry at the level of the
/// report: whether they have one without the rewrite that the log suggests, and without how many
/// rewrites they have one. The last five add up to `points`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct BlameCheck {
    /// The points of the sample.
    pub points: u64,
    /// Those of them that have an entry in a version made without the rewrite that the log
    /// suggests, and those that this version lacks or never reaches.
    pub right: u64,
    /// Those of them for which the log suggests no action.
    pub unnamed: u64,
    /// Those of them that have an entry without one rewrite, be it this one or another.
    pub one: u64,
    /// Those of them that have an entry without two or three rewrites together.
    pub few: u64,
    /// Those of them that have an entry without a set of more rewrites.
    pub many: u64,
    /// Those of them for which the search found no set, or that have an entry when they are mapped
    /// without the other points: then a limit of the whole mapping is to blame, and no rewrite.
    pub not_found: u64,
    /// Those of them whose search ended at its bound on work.
    pub over_work: u64,
}

impl BlameCheck {
    /// Adds the counts of another sample.
    pub fn merge(&mut self, other: &BlameCheck) {
        let BlameCheck { points, right, unnamed, one, few, many, not_found, over_work } = other;
        self.points += points;
        self.right += right;
        self.unnamed += unnamed;
        self.one += one;
        self.few += few;
        self.many += many;
        self.not_found += not_found;
        self.over_work += over_work;
    }

    /// Counts points with one answer: without so many rewrites they have an entry.
    pub(crate) fn add_found(&mut self, rewrites: usize, points: u64) {
        let count = match rewrites {
            0 => &mut self.not_found,
            1 => &mut self.one,
            2 | 3 => &mut self.few,
            _ => &mut self.many,
        };
        *count += points;
    }
}

#[cfg(test)]
mod tests {
    use super::BlameCheck;

    #[test]
    fn no_rewrite_is_to_blame_where_none_is_left_out() {
        let mut check = BlameCheck { points: 15, ..BlameCheck::default() };
        for (rewrites, points) in [(0, 1), (1, 2), (3, 4), (4, 8)] {
            check.add_found(rewrites, points);
        }
        assert_eq!([check.not_found, check.one, check.few, check.many], [1, 2, 4, 8]);
    }
}
