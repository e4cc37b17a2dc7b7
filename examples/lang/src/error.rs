//! Errors in texts.

use std::fmt;

/// An error in a text, with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The message.
    pub what: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.what)
    }
}

impl std::error::Error for SyntaxError {}

impl SyntaxError {
    /// An error at a byte of a text. Cost: linear in the text.
    pub fn new(text: &str, at: usize, what: impl Into<String>) -> SyntaxError {
        let before = &text.as_bytes()[..at.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() as u32 + 1;
        SyntaxError { line, column, what: what.into() }
    }
}
