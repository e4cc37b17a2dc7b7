//! Tables of estimates, as text and as data.

use super::Series;
use super::statistics::{Estimate, geometric_mean};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The unit of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureUnit {
    /// Seconds, shown as milliseconds.
    Seconds,
    /// A ratio of two times, shown with its interval.
    Ratio,
}

/// A table: figures of programs, and a summary of them.
#[derive(Clone, Debug, Serialize)]
pub struct FigureTable {
    /// The title of the table. Times are in milliseconds as text, and in seconds as data.
    pub title: String,
    /// The columns behind the name.
    pub columns: Vec<(String, FigureUnit)>,
    /// The figures of each program, by round.
    #[serde(skip)]
    pub series: Vec<(String, Vec<Series>)>,
    /// The estimates of these figures.
    pub rows: Vec<Row>,
    /// Estimates over several programs.
    pub summary: Vec<Row>,
    /// The programs that are behind, for each column of ratios, from the worst on.
    pub behind: Vec<(String, Vec<String>)>,
}

/// A row of a table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The program, or the kind of mean.
    pub name: String,
    /// The estimates; none where nothing was measured.
    pub cells: Vec<Option<Estimate>>,
}

impl FigureTable {
    /// An empty table.
    pub fn new(title: &str, columns: Vec<(String, FigureUnit)>) -> FigureTable {
        let title = title.to_owned();
        let (rows, summary, behind) = (Vec::new(), Vec::new(), Vec::new());
        FigureTable { title, columns, series: Vec::new(), rows, summary, behind }
    }

    /// Adds a program, if it has any figure.
    pub fn push(&mut self, name: &str, figures: Vec<Series>) {
        if figures.iter().all(Series::is_empty) {
            return;
        }
        let cells = figures.iter().map(|series| Estimate::of(series.values().copied())).collect();
        self.rows.push(Row { name: name.to_owned(), cells });
        self.series.push((name.to_owned(), figures));
    }

    /// Adds the geometric mean over the programs that a condition chooses, for columns of ratios.
    /// The estimate is made from the means of the single rounds.
    pub fn mean(&mut self, name: &str, is_chosen: impl Fn(&str) -> bool) {
        let rows: Vec<&Vec<Series>> = self
            .series
            .iter()
            .filter(|(program, _)| is_chosen(program))
            .map(|(_, figures)| figures)
            .collect();
        let cells = self.columns.iter().enumerate().map(|(at, (_, unit))| {
            let column = rows.iter().map(|figures| &figures[at]);
            (*unit == FigureUnit::Ratio).then(|| mean_of_rounds(column)).flatten()
        });
        let cells: Vec<_> = cells.collect();
        if cells.iter().any(Option::is_some) {
            self.summary.push(Row { name: name.to_owned(), cells });
        }
    }

    /// Adds the highest ratio of each column, and the programs whose ratio lies above a bound.
    pub fn worst(&mut self, bound: f64, is_chosen: impl Fn(&str) -> bool) {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| is_chosen(&row.name)).collect();
        let (mut cells, mut behind) = (Vec::new(), Vec::new());
        for (at, (column, unit)) in self.columns.iter().enumerate() {
            let mut found: Vec<(&str, Estimate)> =
                rows.iter().filter_map(|row| Some((&*row.name, row.cells[at]?))).collect();
            found.sort_by(|(_, a), (_, b)| b.median.total_cmp(&a.median));
            let is_ratio = *unit == FigureUnit::Ratio;
            cells.push(found.first().filter(|_| is_ratio).map(|(_, worst)| *worst));
            if is_ratio && !found.is_empty() {
                let above = found.iter().filter(|(_, ratio)| ratio.is_above(bound));
                let named = above.map(|(name, ratio)| format!("{name} ({:.2})", ratio.median));
                behind.push((column.clone(), named.collect()));
            }
        }
        if cells.iter().any(Option::is_some) {
            self.summary.push(Row { name: "worst".to_owned(), cells });
            self.behind = behind;
        }
    }

    fn row(&self, row: &Row) -> String {
        let mut line = format!("{:<NAME$}", row.name);
        for (cell, (_, unit)) in row.cells.iter().zip(&self.columns) {
            line += &match (cell, unit) {
                (None, FigureUnit::Seconds) => format!("{:>SECONDS$}", "-"),
                (None, FigureUnit::Ratio) => format!("{:>RATIO$}", "-"),
                (Some(estimate), FigureUnit::Seconds) => {
                    format!("{:>SECONDS$.1}", estimate.median * 1e3)
                }
                (Some(estimate), FigureUnit::Ratio) => format!("{:>RATIO$}", ratio(estimate)),
            };
        }
        line.trim_end().to_owned()
    }
}

/// The columns of a name, of seconds and of a ratio: 100 with four ratios.
const NAME: usize = 19;
const SECONDS: usize = 9;
const RATIO: usize = 18;

/// A ratio with its interval; `~` where the rounds are too few for one.
fn ratio(estimate: &Estimate) -> String {
    let digits = if estimate.median < 10.0 { 2 } else { 1 };
    let median = format!("{:.digits$}", estimate.median);
    match estimate.interval {
        Some([low, high]) => format!("{median} {low:.digits$}-{high:.digits$}"),
        None => format!("~{median}"),
    }
}

/// The geometric means over the programs, of the rounds that all of them have. Without such a
/// round, the geometric mean of their medians.
fn mean_of_rounds<'a>(programs: impl Iterator<Item = &'a Series>) -> Option<Estimate> {
    let programs: Vec<&Series> = programs.filter(|series| !series.is_empty()).collect();
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for series in &programs {
        for (round, value) in *series {
            rounds.entry(*round).or_default().push(*value);
        }
    }
    let whole = rounds.into_values().filter(|values| values.len() == programs.len());
    Estimate::of(whole.filter_map(geometric_mean)).or_else(|| {
        let medians = programs.iter().filter_map(|series| Estimate::of(series.values().copied()));
        let median = geometric_mean(medians.map(|estimate| estimate.median))?;
        Some(Estimate { median, interval: None })
    })
}

impl fmt::Display for FigureTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        let mut head = format!("{:<NAME$}", "");
        for (column, unit) in &self.columns {
            let width = if *unit == FigureUnit::Seconds { SECONDS } else { RATIO };
            head += &format!("{column:>width$}");
        }
        writeln!(f, "{}", head.trim_end())?;
        self.rows.iter().try_for_each(|row| writeln!(f, "{}", self.row(row)))?;
        writeln!(f)?;
        self.summary.iter().try_for_each(|row| writeln!(f, "{}", self.row(row)))?;
        for (column, programs) in &self.behind {
            let named = if programs.is_empty() { "none".to_owned() } else { programs.join(", ") };
            writeln!(f, "{}", wrapped(&format!("behind in {column}: {named}")))?;
        }
        Ok(())
    }
}

/// A text in lines of at most 100 columns.
fn wrapped(text: &str) -> String {
    let (mut lines, mut width) = (String::new(), 0);
    for word in text.split(' ') {
        if width > 0 && width + 1 + word.len() > 100 {
            lines += "\n  ";
            width = 2;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines += word;
        width += word.len();
    }
    lines
}

#[cfg(test)]
mod tests;
