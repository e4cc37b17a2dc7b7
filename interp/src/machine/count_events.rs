//! A machine that counts the decisions of its runs.

use super::Machine;
use crate::counts::{RunCounts, add_version};
use crate::version::VersionId;
use cranelift_entity::EntityRef;

impl Machine {
    /// Counts from now on, in all versions. Counters that exist are set to zero. Cost: the number
    /// of instructions of all versions, and the same number of pairs of words.
    pub fn count(&mut self) {
        self.counting = true;
        (self.counts, self.counted) = (Vec::new(), Vec::new());
        for version in &self.versions {
            add_version(&mut self.counts, &mut self.counted, &version.code);
        }
    }

    /// The counters of a version; `None` while the machine does not count.
    ///
    /// # Panics
    /// When the machine lacks the version.
    pub fn counts(&self, version: VersionId) -> Option<RunCounts<'_>> {
        let code = self.code(version);
        let index = version.index();
        self.counting.then(|| RunCounts::new(code, &self.counts[index], &self.counted[index]))
    }

    /// Counts the call that begins the innermost activation, if the machine counts.
    pub(crate) fn count_first_call(&mut self, version: VersionId, args: &[u64]) {
        if self.counting {
            self.counts[version.index()].enter(args);
        }
    }
}
