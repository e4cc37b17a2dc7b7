//! Aligned text: tables of figures, wrapped lists, and shortened names.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A table. Its first column holds labels, the others hold figures aligned to the right.
#[derive(Clone, Debug)]
pub(crate) struct TextTable {
    label: usize,
    columns: Vec<usize>,
    rows: Vec<TableRow>,
    /// The number of dropped rows, which a line at the end reports.
    dropped: usize,
    /// The option of the command that shows all rows, for that line.
    whole: &'static str,
}

/// A row of a table. Each level of nesting indents the label by two blanks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TableRow {
    /// A label and figures.
    Figures(String, Vec<String>),
    /// Headings, each with the number of columns that it spans.
    Spans(Vec<(usize, String)>),
    /// A text across all columns.
    Text(String),
}

impl TextTable {
    /// An empty table with the widths of its label and columns.
    pub(crate) fn new(label: usize, columns: &[usize]) -> TextTable {
        TextTable {
            label,
            columns: columns.to_vec(),
            rows: Vec::new(),
            dropped: 0,
            whole: "--verbose",
        }
    }

    /// Adds a row of figures. A missing figure leaves its column blank.
    pub(crate) fn row<C: AsRef<str>>(&mut self, label: &str, figures: impl IntoIterator<Item = C>) {
        let figures = figures.into_iter().map(|figure| figure.as_ref().to_owned()).collect();
        self.rows.push(TableRow::Figures(label.to_owned(), figures));
    }

    /// Adds a row of headings, each with the number of columns that it spans.
    pub(crate) fn spans(&mut self, headings: &[(usize, &str)]) {
        self.rows.push(TableRow::Spans(
            headings.iter().map(|(columns, text)| (*columns, (*text).to_owned())).collect(),
        ));
    }

    /// Adds a text across all columns.
    pub(crate) fn line(&mut self, text: &str) {
        self.rows.push(TableRow::Text(text.to_owned()));
    }

    /// The same table, whose rows another option shows than `--verbose`.
    pub(crate) fn whole_with(mut self, option: &'static str) -> TextTable {
        self.whole = option;
        self
    }

    /// Adds a text about the rows left out, if a table of `all` rows shows the first `most`.
    pub(crate) fn and_more(&mut self, all: usize, most: usize) {
        if all > most {
            self.whole = "--format json";
            self.drop_rows(all - most);
        }
    }

    /// The same table with a text about `count` rows left out, if there are some, which an option
    /// shows.
    pub(crate) fn cut(self, option: &'static str, count: usize) -> TextTable {
        let mut table = self.whole_with(option);
        if count > 0 {
            table.drop_rows(count);
        }
        table
    }

    /// Adds to the number of dropped rows, and the line that reports it.
    fn drop_rows(&mut self, count: usize) {
        self.dropped += count;
        let more = grouped(self.dropped as u64);
        self.line(&format!("  and {more} more: see {}", self.whole));
    }

    /// The rows, in order.
    pub(crate) fn rows(&self) -> &[TableRow] {
        &self.rows
    }

    /// The table as lines of text. A label that is too wide is shortened.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.rows.iter().map(|row| self.text(row)).collect()
    }

    fn text(&self, row: &TableRow) -> String {
        match row {
            TableRow::Text(text) => text.clone(),
            TableRow::Spans(headings) => self.headings(headings),
            TableRow::Figures(label, figures) => {
                self.line_with(label, figures, |_, _, text| text.to_owned())
            }
        }
    }

    /// A row of figures as a line. `paint` gets the column, the figure, and the figure as it is
    /// aligned, and returns the text for the line.
    pub(crate) fn line_with(
        &self,
        label: &str,
        figures: &[String],
        paint: impl Fn(usize, &str, &str) -> String,
    ) -> String {
        let mut line = padded(&shortened(label, self.label), self.label);
        for (column, (figure, width)) in figures.iter().zip(&self.columns).enumerate() {
            line.push_str(&paint(column, figure, &format!("{figure:>width$}")));
        }
        line
    }

    /// Drops rows at the end, until the table has `over` lines less or no more than `least` rows
    /// below its headings. A last line tells the number of rows dropped so far.
    pub(crate) fn shorten(&mut self, over: usize, least: usize) {
        // Drop one more row, to make room for the line with the number of dropped rows. If rows are
        // dropped already, the line is there, and is one of the rows.
        let kept = self.rows.len().saturating_sub(over + 1).max(self.heads() + least);
        self.truncate(kept);
    }

    /// Drops the rows behind the first `most` below the headings, as [`TextTable::shorten`] does.
    pub(crate) fn keep(&mut self, most: usize) {
        self.truncate(self.heads() + most);
    }

    fn heads(&self) -> usize {
        1 + self.rows.iter().take_while(|row| matches!(row, TableRow::Spans(_))).count()
    }

    fn truncate(&mut self, kept: usize) {
        let shown = self.rows.len() - usize::from(self.dropped > 0);
        if kept < shown {
            self.rows.truncate(kept);
            self.drop_rows(shown - kept);
        }
    }

    fn headings(&self, headings: &[(usize, String)]) -> String {
        let mut line = padded("", self.label);
        let mut columns = self.columns.iter();
        for (count, text) in headings {
            let width: usize = columns.by_ref().take(*count).sum();
            line.push_str(&format!("{text:>width$}"));
        }
        line
    }
}

/// A text padded with blanks to this width.
fn padded(text: &str, width: usize) -> String {
    let blanks = width.saturating_sub(text.width());
    format!("{text}{:blanks$}", "")
}

/// A number in groups of three digits, separated by blanks.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A name of at most this width. A longer name loses its middle. Control characters become `?`, and
/// so do marks of writing direction: names come from the input, and a terminal would obey them.
pub(crate) fn shortened(name: &str, width: usize) -> String {
    let is_mark = |c| {
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}')
            || ('\u{202a}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
    };
    let shown = |c: char| if c.is_control() || is_mark(c) { '?' } else { c };
    let name: String = name.chars().map(shown).collect();
    if name.width() <= width {
        return name;
    }
    let room = width.saturating_sub(1);
    let head = taken(name.chars(), room.div_ceil(2));
    let tail = taken(name.chars().rev(), room / 2);
    format!("{head}…{}", tail.chars().rev().collect::<String>())
}

/// The longest prefix of the characters that fits this width.
fn taken(chars: impl Iterator<Item = char>, width: usize) -> String {
    let mut left = width;
    let fits = |c: &char| {
        let wide = c.width().unwrap_or(0);
        let fits = wide <= left;
        left = left.saturating_sub(wide);
        fits
    };
    chars.take_while(fits).collect()
}

/// Wraps a text at blanks into lines of at most this width. The first line starts with `label`, and
/// the others are indented as far. A word wider than a line is shortened.
pub(crate) fn wrapped<'a>(
    label: &str,
    words: impl IntoIterator<Item = &'a str>,
    width: usize,
) -> Vec<String> {
    let indent = label.width();
    let mut lines = vec![label.to_owned()];
    for word in words {
        let word = shortened(word, width - indent);
        let line = lines.last_mut().expect("there is a first line");
        let blank = usize::from(line.width() > indent);
        if line.width() + blank + word.width() <= width {
            line.push_str(&" "[..blank]);
            line.push_str(&word);
        } else {
            lines.push(format!("{:indent$}{word}", ""));
        }
    }
    lines
}

#[cfg(test)]
mod tests;
