//! Figures as they stand in tables, and rows and tables that several texts have.

use super::UNBLAMED;
use super::section::LABEL;
use crate::schema::{
    Causes, DirectionFigures, DirectionTotals, FunctionReport, LEVELS, Report, Spread,
};
use crate::table::{TextTable, grouped};

/// The text in place of a missing figure.
pub(super) const NO_FIGURE: &str = "-";

/// The change from one size to another, in percent.
pub(super) fn change(before: u64, after: u64) -> String {
    match before {
        0 => NO_FIGURE.to_owned(),
        _ => format!("{:+.1} %", 100.0 * (after as f64 - before as f64) / before as f64),
    }
}

/// Both directions, with their names.
pub(super) fn directions(report: &Report) -> [(&'static str, &DirectionTotals); 2] {
    [("base to opt", &report.totals.forward), ("opt to base", &report.totals.backward)]
}

/// The indices of the levels for which the report has figures.
pub(super) fn levels(report: &Report) -> Vec<usize> {
    report.totals.forward.sum.feasible.iter().map(|(level, _)| level).collect()
}

/// A table with one column per level.
pub(super) fn level_table(heading: &str, levels: &[usize]) -> TextTable {
    let mut table = TextTable::new(LABEL, &vec![9; levels.len()]);
    table.row(heading, levels.iter().map(|level| LEVELS[*level]));
    table
}

/// The row of shares in which each point counts as often as it ran.
pub(super) const AS_OFTEN: &str = "    as often as they ran";

/// The pass to blame, in words.
pub(super) fn blamed(pass: &str) -> &str {
    if pass == UNBLAMED { "no action named" } else { pass }
}

/// A table with the points of both directions, and their visits where there is a profile.
pub(super) struct GapTable<'a> {
    pub(super) table: TextTable,
    /// The counts of each column, and whether they are visits.
    columns: Vec<(&'a Causes, bool)>,
}

impl<'a> GapTable<'a> {
    pub(super) fn new(sums: [&'a DirectionFigures; 2]) -> GapTable<'a> {
        let mut columns = Vec::new();
        for sum in sums {
            columns.push((&sum.causes, false));
            columns.extend(sum.dynamic.as_ref().map(|dynamic| (&dynamic.causes, true)));
        }
        let widths = if columns.len() > 2 { [9, 16].repeat(2) } else { vec![14, 14] };
        GapTable { table: TextTable::new(LABEL, &widths), columns }
    }

    /// The table of points without an entry at `live`, in a report of another level.
    pub(super) fn at_live(sums: [&'a DirectionFigures; 2]) -> GapTable<'a> {
        let columns = sums.map(|sum| (&sum.live_causes, false)).to_vec();
        GapTable { table: TextTable::new(LABEL, &[14, 14]), columns }
    }

    pub(super) fn headings(&mut self, title: &str) {
        if self.columns.len() > 2 {
            self.table.spans(&[(2, "base to opt"), (2, "opt to base")]);
            self.table.row(title, ["points", "visits"].repeat(2));
        } else {
            self.table.row(title, ["base to opt", "opt to base"]);
        }
    }

    pub(super) fn row(&mut self, label: &str, of: impl Fn(&Causes) -> u64) {
        let cells = self.columns.iter().map(|(counts, are_visits)| match are_visits {
            true => visits(of(counts)),
            false => grouped(of(counts)),
        });
        self.table.row(label, cells.collect::<Vec<_>>());
    }
}

/// A number of visits. A large one is rounded, so that it fits its column.
pub(super) fn visits(number: u64) -> String {
    match number {
        0..1_000_000_000 => grouped(number),
        _ => format!("{:.2e}", number as f64),
    }
}

/// The level of a report, as an index.
pub(super) fn level(report: &Report) -> usize {
    LEVELS.iter().position(|name| *name == report.level).expect("the level of a report is one")
}

/// A table of functions: sizes, shares, shares of visits where there is a profile, and steps, at a
/// level.
pub(super) fn function_table(
    report: &Report,
    level: usize,
    title: &str,
    functions: &[&FunctionReport],
) -> TextTable {
    let title = format!("{title}, {}", LEVELS[level]);
    let dynamic = report.profile.is_some();
    let mut table = if dynamic {
        let mut table = TextTable::new(LABEL - 4, &[7, 7, 7, 7, 6, 7, 7, 6]);
        table.spans(&[(2, ""), (3, "base to opt"), (3, "opt to base")]);
        table.row(&title, ["base", "opt", "%", "run, %", "steps", "%", "run, %", "steps"]);
        table
    } else {
        let mut table = TextTable::new(LABEL, &[8; 6]);
        table.spans(&[(2, ""), (2, "base to opt"), (2, "opt to base")]);
        table.row(&title, ["base", "opt", "%", "steps", "%", "steps"]);
        table
    };
    for function in functions {
        let mut figures =
            [function.base, function.opt].map(|size| grouped(size.instructions)).to_vec();
        for side in [&function.forward, &function.backward] {
            figures.push(percent(side.share(level)));
            if dynamic {
                figures.push(percent(side.dynamic_share(level)));
            }
            figures.push(decimal(side.chi.get(level).and_then(Spread::mean)));
        }
        table.row(&format!("  {}", function.name), figures);
    }
    table
}

/// A share in percent. Rounding must not hide a point: only a share of all points prints as 100.0,
/// and only a share of none as 0.0.
pub(super) fn percent(share: Option<f64>) -> String {
    decimal(share.map(|s| if s > 0.0 && s < 100.0 { s.clamp(0.1, 99.9) } else { s }))
}

pub(super) fn decimal(figure: Option<f64>) -> String {
    figure.map_or(NO_FIGURE.to_owned(), |f| format!("{f:.1}"))
}

pub(super) fn whole(figure: Option<u64>) -> String {
    figure.map_or(NO_FIGURE.to_owned(), grouped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_all_but_one_is_not_all() {
        let shares = [0.0, 0.001, 50.04, 99.96, 100.0].map(|s| percent(Some(s)));
        assert_eq!(shares, ["0.0", "0.1", "50.0", "99.9", "100.0"]);
        assert_eq!(percent(None), NO_FIGURE);
    }
}
