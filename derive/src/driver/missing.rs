//! Points without an accepted entry.
//!
//! Each maker of entries leaves points without one: synthesis finds no entry, the checker does not
//! accept the entry, or the entries of two steps do not compose. Reports, listings, explanations
//! and the searches for rewrites to give up and values to keep read all of these from one list.

use check::FrameRefusal;
use check::verdict::{Check, Verdict};
use ir::Point;
use osr::Obstacle;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use transition::Refusal;

/// A reachable point without an accepted entry, in the version that the entry would leave.
pub type Missing = osr::Missing<Why>;

/// Why a point has no accepted entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// Synthesis found no entry.
    Obstacle(Obstacle),
    /// The checker did not accept the entry. `None` without a verdict: the checker drops entries at
    /// points that it proves unreachable.
    Unproved(Option<Verdict>),
    /// Each step of the way has an entry, and the entries of two steps do not compose.
    Refused(Refusal),
    /// The entry leads into inlined code, and not on to frames.
    Frames(FrameRefusal),
}

/// The name of [`Why::Unproved`] in reports.
pub const UNPROVED: &str = "unproved";

impl Why {
    /// The name in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Why::Obstacle(obstacle) => obstacle.reason.name(),
            Why::Unproved(_) => UNPROVED,
            Why::Refused(refusal) => refusal.name(),
            Why::Frames(refusal) => refusal.name(),
        }
    }

    /// The verdict of the checker, if the checker did not accept the entry.
    pub const fn verdict(&self) -> Option<Verdict> {
        match self {
            Why::Unproved(verdict) => *verdict,
            _ => None,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Obstacle(obstacle) => write!(f, "{obstacle}"),
            Why::Unproved(_) => f.write_str("the checker did not accept the entry"),
            Why::Refused(refusal) => write!(f, "{refusal}"),
            Why::Frames(refusal) => write!(f, "{refusal}"),
        }
    }
}

/// The reachable points of a version without an accepted entry, ascending, each once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MissingPoints(Vec<Missing>);

impl Deref for MissingPoints {
    type Target = [Missing];

    fn deref(&self) -> &[Missing] {
        &self.0
    }
}

impl FromIterator<Missing> for MissingPoints {
    /// Cost: a sort. Of several reasons for a point, the first counts.
    fn from_iter<I: IntoIterator<Item = Missing>>(all: I) -> MissingPoints {
        let mut all: Vec<Missing> = all.into_iter().collect();
        all.sort_by_key(|missing| missing.point);
        all.dedup_by_key(|missing| missing.point);
        MissingPoints(all)
    }
}

impl MissingPoints {
    /// Gives these points of the list another reason. Cost: linear in the list.
    pub(crate) fn replace(&mut self, points: &BTreeSet<Point>, why: Why) {
        for missing in self.0.iter_mut().filter(|missing| points.contains(&missing.point)) {
            missing.why = why;
        }
    }

    /// The points for which synthesis found no entry, and the points whose entry the checker did
    /// not accept, with its verdicts. Cost: a sort.
    pub fn new(
        obstacles: impl IntoIterator<Item = osr::Missing<Obstacle>>,
        rejected: impl IntoIterator<Item = (Point, Verdict)>,
    ) -> MissingPoints {
        let obstacles = obstacles.into_iter();
        let obstacles =
            obstacles.map(|osr::Missing { point, why }| Missing { point, why: Why::Obstacle(why) });
        let rejected = rejected.into_iter();
        let rejected =
            rejected.map(|(point, verdict)| Missing { point, why: Why::Unproved(Some(verdict)) });
        obstacles.chain(rejected).collect()
    }

    /// Why a point has no entry; `None` if it has one or is unreachable. Logarithmic cost.
    pub fn at(&self, point: Point) -> Option<&Why> {
        let found = self.0.binary_search_by_key(&point, |missing| missing.point);
        found.ok().map(|found| &self.0[found].why)
    }

    /// The points for which synthesis found no entry.
    pub fn obstacles(&self) -> impl Iterator<Item = osr::Missing<Obstacle>> + '_ {
        self.0.iter().filter_map(|missing| match missing.why {
            Why::Obstacle(why) => Some(osr::Missing { point: missing.point, why }),
            _ => None,
        })
    }

    /// Removes the points at which the certificate shows that no run needs an entry.
    pub(super) fn keep_lost(&mut self) {
        self.0.retain(|missing| missing.why.verdict().is_none_or(|verdict| is_lost(&verdict)));
    }

    /// The points that lost their entry to the checker, with its verdicts.
    pub(crate) fn lost(&self) -> impl Iterator<Item = (Point, Verdict)> + '_ {
        self.rejected().filter(|(_, verdict)| is_lost(verdict))
    }

    /// The points whose entry the checker did not accept, with its verdicts.
    pub fn rejected(&self) -> impl Iterator<Item = (Point, Verdict)> + '_ {
        self.0.iter().filter_map(|missing| Some((missing.point, missing.why.verdict()?)))
    }
}

/// Whether a verdict costs an entry. An entry at an unreachable point is not lost, since no run
/// needs it (`entries_that_no_run_needs_cost_nothing`).
fn is_lost(verdict: &Verdict) -> bool {
    verdict.finding().is_some_and(|finding| finding.check != Check::SourceReached)
}
