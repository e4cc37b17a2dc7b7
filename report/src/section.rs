//! The sections of reports, and their form as plain or colored text.

use crate::schema::ReportedProgram;
use crate::table::{TableRow, TextTable, shortened, wrapped};
use anstyle::{AnsiColor, Style};

/// The width of the widest line, in columns.
pub const WIDTH: usize = 80;

/// The width of the labels of tables, in columns.
pub(super) const LABEL: usize = 30;

/// The width of terms before their explanations, in columns.
pub(super) const TERM: usize = 11;

/// The most lines of a text that is not verbose.
pub const MOST_LINES: usize = 40;

/// How a report is printed for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TextOptions {
    /// Print all tables, rather than at most [`MOST_LINES`] lines.
    pub verbose: bool,
    /// Print with the escape sequences of a terminal that has colors.
    pub colored: bool,
}

/// A section of the report, independent of the output format.
#[derive(Clone, Debug)]
pub(super) enum Section {
    /// Sentences, each on lines of its own.
    Sentences(Vec<String>),
    /// A table.
    Table(TextTable),
    /// A heading and the words that follow it.
    Words(String, Vec<String>),
    /// Terms, each with its explanation.
    Terms(Vec<Term>),
    /// A note of one or two sentences.
    Note(String),
}

/// A term and its explanation.
pub(super) type Term = (&'static str, String);

impl From<TextTable> for Section {
    fn from(table: TextTable) -> Section {
        Section::Table(table)
    }
}

impl Section {
    /// A legend: terms and their meaning.
    pub(super) fn legend(words: &[(&'static str, &str)]) -> Section {
        Section::Terms(words.iter().map(|(word, meaning)| (*word, (*meaning).to_owned())).collect())
    }

    /// The section of an interrupted report. `None` for a report that is whole.
    pub(super) fn stopped(interrupted: bool) -> Option<Section> {
        interrupted.then(|| Section::Terms(vec![stopped_term()]))
    }

    /// The section as lines of text.
    pub(super) fn lines(&self) -> Vec<String> {
        match self {
            Section::Sentences(sentences) => {
                sentences.iter().flat_map(|text| wrapped("", text.split(' '), WIDTH)).collect()
            }
            Section::Table(table) => table.lines(),
            Section::Words(heading, words) => {
                let words = wrapped("  ", words.iter().map(String::as_str), WIDTH);
                std::iter::once(heading.clone()).chain(words).collect()
            }
            Section::Terms(terms) => {
                let lines = terms
                    .iter()
                    .map(|(term, text)| wrapped(&format!("{term:<TERM$}"), text.split(' '), WIDTH));
                lines.flatten().collect()
            }
            Section::Note(text) => wrapped("* ", text.split(' '), WIDTH),
        }
    }
}

fn stopped_term() -> Term {
    ("stopped", "by an interrupt: covers the functions complete by then".to_owned())
}

/// The terms at the beginning of a report: the program and the passes, `more` terms behind them,
/// and the note of an interrupted report.
pub(super) fn heading(
    program: &ReportedProgram,
    profile: Option<&str>,
    pipeline: &[String],
    more: Vec<Term>,
    interrupted: bool,
) -> Section {
    let shown = |path: &str| shortened(path, WIDTH - TERM);
    let passes = if pipeline.is_empty() { "(no passes)".to_owned() } else { pipeline.join(" ") };
    let mut terms = vec![("program", shown(&program.path))];
    terms.extend(profile.map(|path| ("profile", shown(path))));
    terms.push(("pipeline", passes));
    terms.extend(more);
    terms.extend(interrupted.then(stopped_term));
    Section::Terms(terms)
}

const HEADING: Style = Style::new().bold();
const TERM_STYLE: Style = AnsiColor::Cyan.on_default();
const NOTE: Style = Style::new().dimmed();

/// A text in a style, with the escape sequences around it.
fn painted(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

impl Section {
    /// The section as lines with escape sequences for colors.
    fn colored_lines(&self) -> Vec<String> {
        let lines = self.lines();
        match self {
            Section::Sentences(_) => lines,
            Section::Table(table) => colored_table(table),
            Section::Words(..) => {
                let (first, rest) = lines.split_first().expect("a heading");
                std::iter::once(painted(HEADING, first)).chain(rest.iter().cloned()).collect()
            }
            Section::Terms(_) => lines.iter().map(|line| colored_term(line)).collect(),
            Section::Note(_) => lines.iter().map(|line| painted(NOTE, line)).collect(),
        }
    }
}

/// A line of a list of terms. A continuation line has blanks in place of the term.
fn colored_term(line: &str) -> String {
    match line.char_indices().nth(TERM) {
        Some((at, _)) => painted(TERM_STYLE, &line[..at]) + &line[at..],
        None => painted(TERM_STYLE, line),
    }
}

/// A text of labels and their meaning, such as an explanation or a listing, with escape sequences
/// for colors: a label of at most `TERM` columns behind `indent` blanks is colored, and a line
/// without blanks in front and without a label is a heading. Cost: linear.
pub fn colored_labels(text: &str, indent: usize) -> String {
    let colored = text.lines().map(|line| {
        let bare = line.trim_start_matches(' ');
        let blanks = line.len() - bare.len();
        let label = bare.char_indices().nth(TERM).map(|(at, _)| bare.split_at(at));
        match label {
            Some((label, rest)) if blanks == indent && label.ends_with(' ') => {
                format!("{}{}{rest}", &line[..blanks], painted(TERM_STYLE, label))
            }
            _ if blanks == 0 && !bare.is_empty() => painted(HEADING, line),
            _ => line.to_owned(),
        }
    });
    colored.flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// The lines of a table: headings are bold, and shares have the color of their grade.
fn colored_table(table: &TextTable) -> Vec<String> {
    let mut headings: Option<(&str, &[String])> = None;
    let rows = table.rows().iter().zip(table.lines());
    let each = rows.map(|(row, line)| match (row, headings) {
        (TableRow::Spans(_), _) => painted(HEADING, &line),
        (TableRow::Text(_), _) => line,
        (TableRow::Figures(label, cells), None) => {
            headings = Some((label, cells));
            painted(HEADING, &line)
        }
        (TableRow::Figures(label, cells), Some((title, heads))) => {
            let is_share = |column: usize| {
                title.ends_with('%') || heads.get(column).is_some_and(|head| head.ends_with('%'))
            };
            table.line_with(label, cells, |column, cell, text| match is_share(column) {
                true => grade(cell).map_or_else(|| text.to_owned(), |style| painted(style, text)),
                false => text.to_owned(),
            })
        }
    });
    each.collect()
}

/// The color of a share in percent. `None` if the cell holds no share.
fn grade(cell: &str) -> Option<Style> {
    let share: f64 = cell.parse().ok()?;
    let color = match share {
        _ if share >= 100.0 => AnsiColor::Green,
        _ if share >= 90.0 => return None,
        _ if share >= 50.0 => AnsiColor::Yellow,
        _ => AnsiColor::Red,
    };
    Some(color.on_default())
}

/// Sections as one text, with a blank line between any two. Every line ends with `\n`.
pub(super) fn joined(sections: &[Section], colored: bool) -> String {
    let lines = |section: &Section| match colored {
        true => section.colored_lines(),
        false => section.lines(),
    };
    sections.iter().map(|section| ended(&lines(section))).collect::<Vec<_>>().join("\n")
}

/// Joins lines and ends each with `\n`, without blanks before it.
pub(super) fn ended(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// Shortens sections to [`MOST_LINES`] lines: first the tables of `lists`, in this order, to one
/// row each. If that does not suffice, it drops sections from the end. The last section tells how
/// to see the rest.
pub(super) fn fitted(mut sections: Vec<Section>, lists: &[usize]) -> Vec<Section> {
    sections.push(Section::Sentences(vec![MORE.to_owned()]));
    let over = |sections: &[Section]| {
        let lines: usize = sections.iter().map(|section| section.lines().len()).sum();
        (lines + sections.len() - 1).saturating_sub(MOST_LINES)
    };
    for list in lists {
        let over = over(&sections);
        if let (Some(Section::Table(table)), true) = (sections.get_mut(*list), over > 0) {
            table.shorten(over, 1);
        }
    }
    while over(&sections) > 0 && sections.len() > 2 {
        sections.remove(sections.len() - 2);
    }
    sections
}

const MORE: &str = "More tables, and what the words mean: --verbose.";

#[cfg(test)]
mod tests;
