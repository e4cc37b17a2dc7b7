//! The test of blame in the document of `osier report`.

/// The counts of a test of blame, over a sample of the points without an entry at the report's
/// level. The test omits rewrites and asks which points then have an entry. The last five counts
/// add up to `points`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct BlameCheck {
    /// The points of the sample.
    pub points: u64,
    /// The sampled points whose suggested rewrite is to blame: in a version without this rewrite,
    /// they have an entry, are unreachable or do not exist.
    pub right: u64,
    /// The sampled points for which the log suggests no action.
    pub unnamed: u64,
    /// The sampled points that gain an entry if the pipeline omits a single rewrite, suggested or
    /// not.
    pub one: u64,
    /// The sampled points that gain an entry if the pipeline omits two or three rewrites together.
    pub few: u64,
    /// The sampled points that gain an entry if the pipeline omits four or more rewrites together.
    pub many: u64,
    /// The sampled points for which the search found no set of rewrites. Also the points that have
    /// an entry when mapped alone: then a limit of the whole mapping is to blame, not a rewrite.
    pub not_found: u64,
    /// The sampled points whose search ended at its bound on work.
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

    /// Counts points that gain an entry if the pipeline omits this number of rewrites.
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
