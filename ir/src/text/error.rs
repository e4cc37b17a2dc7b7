//! Errors of the parser, with their locations.

use std::fmt;

/// The most errors that a parse reports.
pub const MAX_ERRORS: usize = 20;

/// The number of characters of the offending line shown before and after the caret.
const EXCERPT: usize = 60;

/// An error at a location in a text. Its `Display` form shows the offending line with a caret below
/// the location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    line: u32,
    column: u32,
    message: String,
    excerpt: String,
    /// The number of characters of the excerpt before the location.
    caret: usize,
}

impl ParseError {
    /// The line, counted from 1.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The column in characters, counted from 1.
    pub fn column(&self) -> u32 {
        self.column
    }

    /// The message: one sentence, without the location.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gutter = self.line.to_string();
        writeln!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        writeln!(f, "{gutter} | {}", self.excerpt)?;
        write!(f, "{:width$} | {:caret$}^", "", "", width = gutter.len(), caret = self.caret)
    }
}

impl std::error::Error for ParseError {}

/// A text, split into lines.
pub(super) struct SourceText<'a> {
    text: &'a str,
    /// The byte offset of the start of every line.
    starts: Vec<usize>,
}

impl<'a> SourceText<'a> {
    /// Splits a text into lines. Skips a byte order mark at its start.
    pub(super) fn new(text: &'a str) -> SourceText<'a> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let newlines = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        SourceText { text, starts: std::iter::once(0).chain(newlines).collect() }
    }

    /// Every line without its line end, and its byte offset.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &'a str)> + '_ {
        (0..self.starts.len()).map(|i| (self.starts[i], self.line_text(i)))
    }

    /// The 1-based line of a byte offset.
    pub(super) fn line_of(&self, at: usize) -> u32 {
        self.starts.partition_point(|s| *s <= at) as u32
    }

    /// The length of the text in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    fn line_text(&self, index: usize) -> &'a str {
        let end = self.starts.get(index + 1).map_or(self.text.len(), |next| next - 1);
        let line = &self.text[self.starts[index]..end];
        line.strip_suffix('\r').unwrap_or(line)
    }

    fn error(&self, fault: TextFault) -> ParseError {
        let line = self.line_of(fault.at);
        let index = line as usize - 1;
        let text = self.line_text(index);
        let offset = (fault.at - self.starts[index]).min(text.len());
        let before = text.get(..offset).unwrap_or(text);
        let column = before.chars().count();
        let skipped = column.saturating_sub(EXCERPT);
        let shown = text.chars().skip(skipped).take(2 * EXCERPT);
        // A tab or an escape sequence would displace the caret, or control the terminal.
        let excerpt = shown.map(|c| if c.is_control() { ' ' } else { c }).collect();
        ParseError {
            line,
            column: column as u32 + 1,
            message: fault.message,
            excerpt,
            caret: column - skipped,
        }
    }
}

/// An error at a byte offset.
#[derive(Debug)]
pub(super) struct TextFault {
    pub(super) at: usize,
    pub(super) message: String,
}

impl TextFault {
    pub(super) fn new(at: usize, message: impl Into<String>) -> TextFault {
        TextFault { at, message: message.into() }
    }
}

/// The faults found so far.
#[derive(Debug)]
pub(super) struct Faults {
    found: Vec<TextFault>,
}

impl Faults {
    pub(super) fn new() -> Faults {
        Faults { found: Vec::new() }
    }

    pub(super) fn push(&mut self, fault: TextFault) {
        if !self.is_full() {
            self.found.push(fault);
        }
    }

    /// Whether the reported errors have reached the maximum, so that further search is useless.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= MAX_ERRORS
    }

    pub(super) fn into_errors(mut self, source: &SourceText<'_>) -> Vec<ParseError> {
        self.found.sort_by_key(|f| f.at);
        self.found.into_iter().map(|f| source.error(f)).collect()
    }
}
