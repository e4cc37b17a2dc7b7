//! `osier report --min`: shares that a report must reach.

use crate::cmd::failure::{CommandFailure, print, tell};
use crate::cmd::level;
use osier::report::pipeline_name;
use osier::schema::{DirectionFigures, InliningFigures, InliningReport, LEVELS, Report};
use osr::Level;

/// The lowest shares that pass, by level.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Minima {
    /// The index of each level in [`LEVELS`], and its lowest share in percent.
    shares: Vec<(usize, f64)>,
    /// Whether the shares count each point as often as it ran.
    dynamic: bool,
}

impl Minima {
    /// Reads a list as `avail=99,live_e=80,dynamic`.
    ///
    /// # Errors
    /// A message about the first part that is wrong, or about a list without a share.
    pub(super) fn parse(text: &str) -> Result<Minima, String> {
        let mut minima = Minima::default();
        for part in text.split(',') {
            if part == "dynamic" {
                minima.dynamic = true;
                continue;
            }
            let (name, share) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` is neither LEVEL=PERCENT nor `dynamic`"))?;
            let level = place(name)?;
            let percent = share.parse().ok().filter(|share| (0.0..=100.0).contains(share));
            let percent =
                percent.ok_or_else(|| format!("`{share}` is no percentage from 0 to 100"))?;
            if minima.shares.iter().any(|(known, _)| *known == level) {
                return Err(format!("the level {name} occurs twice"));
            }
            minima.shares.push((level, percent));
        }
        match minima.shares.is_empty() {
            true => Err("it names no level, as in avail=99".to_owned()),
            false => Ok(minima),
        }
    }

    pub(super) fn is_dynamic(&self) -> bool {
        self.dynamic
    }

    /// Checks that a report on inlined code, with its single level and without a profile, has these
    /// shares.
    ///
    /// # Errors
    /// If the report lacks a share.
    pub(super) fn check_inlined(&self) -> Result<(), CommandFailure> {
        let other = self.shares.iter().find(|(level, _)| LEVELS[*level] != level::DEFAULT);
        let refused = |what: &str| {
            Err(CommandFailure::input(format!("--min {what}: no pipeline with inline, as yet")))
        };
        match other {
            Some((level, _)) => refused(LEVELS[*level]),
            None if self.dynamic => refused("dynamic"),
            None => Ok(()),
        }
    }
}

/// The index of a level that mappings have.
fn place(name: &str) -> Result<usize, String> {
    let known = Level::ALL.map(|level| level.name());
    let is_known = known.contains(&name);
    let found = LEVELS.iter().position(|level| *level == name).filter(|_| is_known);
    found.ok_or_else(|| format!("unknown level `{name}`; levels: {}", known.join(", ")))
}

/// The shares of a report that minima apply to.
pub(super) struct MeasuredShares<'r> {
    pipeline: &'r [String],
    interrupted: bool,
    directions: Vec<Direction<'r>>,
}

/// The points under one minimum, and their share in percent at a level: of points, or of visits.
/// `None` if no point ran.
struct Direction<'r> {
    name: &'static str,
    share: Box<dyn Fn(usize, bool) -> Option<f64> + 'r>,
}

impl<'r> MeasuredShares<'r> {
    pub(super) fn of(report: &'r Report) -> MeasuredShares<'r> {
        let totals = &report.totals;
        let sides = [("base to opt", &totals.forward.sum), ("opt to base", &totals.backward.sum)];
        // A pipeline that changes nothing loses no point.
        let sides = sides.into_iter().filter(|_| totals.functions.changed > 0);
        let directions = sides.map(|(name, sum)| Direction {
            name,
            share: Box::new(|level, dynamic| share(sum, level, dynamic)),
        });
        MeasuredShares {
            pipeline: &report.pipeline,
            interrupted: report.interrupted,
            directions: directions.collect(),
        }
    }

    /// The shares of a report on inlined code, which has one level and no profile.
    pub(super) fn of_inlining(report: &'r InliningReport) -> MeasuredShares<'r> {
        let InliningFigures { up, own, inlined, .. } = &report.totals;
        let sides =
            [("up", up), ("down outside inlined code", own), ("down in inlined code", inlined)];
        let directions = sides.map(|(name, counts)| Direction {
            name,
            share: Box::new(|_, _| Some(counts.share().unwrap_or(100.0))),
        });
        MeasuredShares {
            pipeline: &report.pipeline,
            interrupted: report.interrupted,
            directions: directions.into(),
        }
    }
}

/// The result of comparing reports with minima.
pub(super) struct ShareShortfalls {
    /// A sentence for each share that is too low.
    pub(super) lines: Vec<String>,
    /// Whether minima were given and a report was interrupted.
    interrupted: bool,
    /// The pipelines that changed no function, for which minima were given.
    unmeasured: Vec<String>,
}

/// Compares the shares of all points with the lowest that pass.
pub(super) fn compare<'r>(
    minima: &[Minima],
    reports: impl IntoIterator<Item = MeasuredShares<'r>>,
) -> ShareShortfalls {
    let mut below =
        ShareShortfalls { lines: Vec::new(), interrupted: false, unmeasured: Vec::new() };
    for report in reports.into_iter().filter(|_| !minima.is_empty()) {
        below.interrupted |= report.interrupted;
        if report.directions.is_empty() {
            below.unmeasured.push(pipeline_name(report.pipeline));
        }
        below.lines.extend(minima.iter().flat_map(|minima| shortfalls(minima, &report)));
    }
    below
}

impl ShareShortfalls {
    /// Lists the shares that are too low on standard error, and the pipelines without a share.
    ///
    /// # Errors
    /// If a share is too low, or the command was interrupted.
    pub(super) fn verdict(self) -> Result<(), CommandFailure> {
        self.lines.iter().for_each(|line| print(&format!("osier: {line}")));
        for name in &self.unmeasured {
            tell(&format!("note: --min measured nothing: {name} changed no function"));
        }
        let failure = |message: String| Err(CommandFailure::Program(message));
        match self.lines.len() {
            _ if self.interrupted => {
                failure("--min: an interrupted report never passes".to_owned())
            }
            0 => Ok(()),
            1 => failure("--min: 1 share is too low".to_owned()),
            below => failure(format!("--min: {below} shares are too low")),
        }
    }
}

/// A line for each share of a report that is below.
fn shortfalls(minima: &Minima, report: &MeasuredShares<'_>) -> Vec<String> {
    let name = pipeline_name(report.pipeline);
    let mut lines = Vec::new();
    for (level, least) in &minima.shares {
        for direction in &report.directions {
            let place = format!("{name}, {}, {}", direction.name, LEVELS[*level]);
            let what = if minima.dynamic { "the visits" } else { "the points" };
            match (direction.share)(*level, minima.dynamic) {
                Some(share) if share >= *least => {}
                Some(share) => {
                    let [share, lack] = shown(share, *least);
                    let words = format!("{share} % of {what} have an entry");
                    lines.push(format!("{place}: {words}, {lack} below {least} %"));
                }
                // A check without a figure has not passed.
                None => lines.push(format!("{place}: no point ran, so {what} have no share")),
            }
        }
    }
    lines
}

/// A share of points. Without points, no point lacks an entry.
fn share(sum: &DirectionFigures, level: usize, dynamic: bool) -> Option<f64> {
    match dynamic {
        true => sum.dynamic_share(level),
        false if sum.reachable() == 0 => Some(100.0),
        false => sum.share(level),
    }
}

/// A share and its shortfall, with as many digits as show that it is below.
fn shown(share: f64, least: f64) -> [String; 2] {
    let digits = (1..12).find(|digits| {
        let unit = 10f64.powi(-digits);
        least - share >= unit
    });
    let digits = digits.unwrap_or(12) as usize;
    [format!("{share:.digits$}"), format!("{:.digits$}", least - share)]
}

#[cfg(test)]
mod tests;
