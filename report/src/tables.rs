//! A report that is the same tables in every form: brief text has some of them, verbose text and
//! pages have all, between a heading and a legend.

use crate::rows::NO_FIGURE;
use crate::schema::Spread;
use crate::section::{Section, TextOptions, fitted, joined};
use crate::table::{TextTable, grouped};

/// The tables of a report, for text ([`TableReport::text`]) and for a page
/// ([`tables_page`](crate::tables_page)).
#[derive(Clone, Debug)]
pub struct TableReport {
    /// The title of a page.
    pub(crate) title: String,
    /// Two sentences for readers who know none of the terms: the question, and the result.
    pub(crate) summary: [String; 2],
    pub(crate) heading: Section,
    pub(crate) interrupted: bool,
    /// The tables, in order, and whether brief text has each. It shortens the last one. Empty if
    /// there is nothing to report on.
    pub(crate) tables: Vec<(TextTable, bool)>,
    /// The sections behind the tables.
    pub(crate) rest: Vec<Section>,
}

impl TableReport {
    /// The report as text, with the two sentences before its tables. Every line ends with `\n`.
    pub fn text(&self, options: TextOptions) -> String {
        let mut all = vec![Section::Sentences(self.summary.clone().into())];
        if options.verbose || self.tables.is_empty() {
            all.extend(self.sections());
            return joined(&all, options.colored);
        }
        all.extend(Section::stopped(self.interrupted));
        let tables = self.tables.iter().filter(|(_, is_brief)| *is_brief);
        all.extend(tables.map(|(table, _)| Section::Table(table.clone())));
        let list = all.len() - 1;
        joined(&fitted(all, &[list]), options.colored)
    }

    /// All sections, in order.
    pub(crate) fn sections(&self) -> Vec<Section> {
        let tables = self.tables.iter().map(|(table, _)| Section::Table(table.clone()));
        let rest = if self.tables.is_empty() { &[][..] } else { &self.rest };
        std::iter::once(self.heading.clone()).chain(tables).chain(rest.iter().cloned()).collect()
    }
}

/// The mean with two decimals, and the maximum.
pub(crate) fn mean_and_most(spread: &Spread) -> [String; 2] {
    let mean = spread.mean().map(|mean| format!("{mean:.2}"));
    [mean, spread.max().map(grouped)].map(|figure| figure.unwrap_or_else(|| NO_FIGURE.to_owned()))
}
