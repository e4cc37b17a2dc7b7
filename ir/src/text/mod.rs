//! The text form (`.oir`): printer and parser.
//!
//! `docs/oir.md` has the grammar. One statement stands on one line; `;` starts a comment that runs
//! to the end of the line. The tests in `ir/tests/text/` check three laws:
//!
//! - `parse(print(m))` prints as `m` does, for every well-formed module `m`, and keeps its names;
//! - `print(parse(t))` is a fixpoint, for every text `t` that parses;
//! - no text makes the parser panic, recurse, or allocate more than in proportion to its length.
//!
//! The parser checks structure: names, the number of results, and a terminator for each block.
//! [`crate::verifier`] checks types and all other rules.

mod build;
mod declarations;
mod error;
mod init;
mod items;
mod lex;
mod literal;
mod mentions;
mod names;
mod parse;
mod print;
mod read;

pub use build::SourceLines;
pub use error::{MAX_ERRORS, ParseError};
pub use literal::{parse_argument, parse_literal, print_literal};
pub use names::AtName;
pub use print::{FunctionText, print_function, print_inst, print_module};

use crate::module::Module;

/// The part of a text that is the module. The first line that begins with `;=` starts the output
/// that a test expects.
fn module_part(text: &str) -> &str {
    match text.find("\n;=") {
        _ if text.strip_prefix('\u{feff}').unwrap_or(text).starts_with(";=") => "",
        Some(end) => &text[..=end],
        None => text,
    }
}

/// Parses a module. A line that begins with `;=` ends it. The parser ignores a byte order mark at
/// the start and carriage returns at line ends.
///
/// # Errors
/// All errors found, up to [`MAX_ERRORS`], each with its location, in the order of the text. After
/// an error the parser continues at the next line.
///
/// Cost: linear in the length of the text, on average (names are hashed).
pub fn parse_module(text: &str) -> Result<Module, Vec<ParseError>> {
    parse_module_with_lines(text).map(|(module, _)| module)
}

/// Parses a module as [`parse_module`] does, and returns the line of every instruction. A client
/// can use the lines to show a finding of the verifier in the text.
///
/// # Errors
/// As [`parse_module`].
pub fn parse_module_with_lines(text: &str) -> Result<(Module, SourceLines), Vec<ParseError>> {
    let source = error::SourceText::new(module_part(text));
    let mut faults = error::Faults::new();
    let file = parse::parse_file(&source, &mut faults);
    let (module, lines) = build::build_module(file, &source, &mut faults);
    match faults.into_errors(&source) {
        errors if errors.is_empty() => Ok((module, lines)),
        errors => Err(errors),
    }
}
