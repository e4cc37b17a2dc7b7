//! Points without an accepted entry.
//!
//! Two makers leave a point without one: synthesis, which finds no entry, and the checker, which
//! does not accept the entry that was found. Reports, listings, explanations and the search for
//! rewrites to give up read both from one list.

use check::verdict::Verdict;
use ir::Point;
use osr::Unmapped;
use std::fmt;
use std::ops::Deref;

/// A reachable point without an accepted entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Missing {
    /// Synthesis found no entry.
    Unmapped(Unmapped),
    /// The checker did not accept the entry.
    Rejected(Point, Verdict),
}

/// The reason of points whose entry the checker dropped.
pub const UNPROVED: &str = "unproved";

impl Missing {
    /// The point, in the version that the entry would leave.
    pub fn point(&self) -> Point {
        match self {
            Missing::Unmapped(unmapped) => unmapped.point,
            Missing::Rejected(point, _) => *point,
        }
    }

    /// The name of the reason in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Missing::Unmapped(unmapped) => unmapped.reason.name(),
            Missing::Rejected(..) => UNPROVED,
        }
    }

    /// The reason of synthesis.
    pub fn unmapped(&self) -> Option<&Unmapped> {
        match self {
            Missing::Unmapped(unmapped) => Some(unmapped),
            Missing::Rejected(..) => None,
        }
    }

    /// The verdict of the checker.
    pub fn verdict(&self) -> Option<Verdict> {
        match self {
            Missing::Unmapped(_) => None,
            Missing::Rejected(_, verdict) => Some(*verdict),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no entry in front of {}: ", self.point().inst())?;
        match self {
            Missing::Unmapped(unmapped) => {
                write!(f, "{}", unmapped.reason)?;
                unmapped.value.map_or(Ok(()), |value| write!(f, " (%{value})"))
            }
            Missing::Rejected(_, verdict) => write!(f, "{verdict}"),
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

impl MissingPoints {
    /// Joins both lists. Each point is in one of them. Cost: a sort.
    pub fn new(
        unmapped: impl IntoIterator<Item = Unmapped>,
        rejected: impl IntoIterator<Item = (Point, Verdict)>,
    ) -> MissingPoints {
        let mut all: Vec<Missing> = unmapped.into_iter().map(Missing::Unmapped).collect();
        all.extend(rejected.into_iter().map(|(point, verdict)| Missing::Rejected(point, verdict)));
        all.sort_by_key(Missing::point);
        MissingPoints(all)
    }

    /// Why a point has no entry; `None` if it has one or is unreachable. Logarithmic cost.
    pub fn at(&self, point: Point) -> Option<&Missing> {
        self.0.binary_search_by_key(&point, Missing::point).ok().map(|found| &self.0[found])
    }

    /// The points for which synthesis found no entry.
    pub fn unmapped(&self) -> impl Iterator<Item = &Unmapped> {
        self.0.iter().filter_map(Missing::unmapped)
    }

    /// The points whose entry the checker did not accept, with its verdicts.
    pub fn rejected(&self) -> impl Iterator<Item = (Point, Verdict)> + '_ {
        self.0.iter().filter_map(|missing| Some((missing.point(), missing.verdict()?)))
    }
}
