//! The text form (`.oir`): printer and parser.
//!
//! The grammar is in `docs/oir.md`. One statement stands on one line; `;` starts a comment that
//! runs to the end of the line. Laws, held by `ir/tests/text/`:
//!
//! - `parse(print(m))` prints as `m` does, for every well-formed module `m`, and keeps its names;
//! - `print(parse(t))` is a fixpoint, for every text `t` that parses;
//! - no text makes the parser panic, recurse, or allocate more than in proportion to its length.
//!
//! The parser checks structure (names, numbers of results, blocks that end); types and the rest are
//! the business of [`crate::verifier`].

mod build;
mod declarations;
mod error;
mod items;
mod lex;
mod literal;
mod names;
mod parse;
mod print;

pub use error::{MAX_ERRORS, ParseError};
pub use literal::{parse_literal, print_literal};
pub use print::{FunctionText, print_function, print_inst, print_module};

use crate::entity::{Func, Inst};
use crate::module::Module;
use cranelift_entity::EntityRef;

/// The text of the module itself. Lines from one on that begins with `;=` are what a test expects
/// to be printed.
fn module_part(text: &str) -> &str {
    match text.find("\n;=") {
        _ if text.strip_prefix('\u{feff}').unwrap_or(text).starts_with(";=") => "",
        Some(end) => &text[..=end],
        None => text,
    }
}

/// Parses a module, which ends before a line that begins with `;=`. At most [`MAX_ERRORS`] errors
/// are reported, in the order of the text. A byte order mark at the start and carriage returns at
/// line ends are ignored.
///
/// # Errors
/// Every error found, each with its place; recovery is at line ends.
///
/// Cost: linear in the text, on average (names are hashed).
pub fn parse_module(text: &str) -> Result<Module, Vec<ParseError>> {
    parse_module_with_lines(text).map(|(module, _)| module)
}

/// As [`parse_module`], with the line of every instruction, so that a finding of the verifier can
/// be shown in the text it is about.
///
/// # Errors
/// As [`parse_module`].
pub fn parse_module_with_lines(text: &str) -> Result<(Module, SourceLines), Vec<ParseError>> {
    let source = error::Source::new(module_part(text));
    let mut faults = error::Faults::new();
    let file = parse::parse_file(&source, &mut faults);
    let (module, lines) = build::build_module(file, &source, &mut faults);
    match faults.into_errors(&source) {
        errors if errors.is_empty() => Ok((module, lines)),
        errors => Err(errors),
    }
}

/// Where the instructions of a parsed module stand in its text.
#[derive(Clone, Debug, Default)]
pub struct SourceLines {
    /// Indexed by function, then by instruction.
    lines: Vec<Vec<u32>>,
}

impl SourceLines {
    /// The 1-based line of an instruction of the module as it was parsed; `None` for others.
    pub fn line(&self, func: Func, inst: Inst) -> Option<u32> {
        self.lines.get(func.index())?.get(inst.index()).copied()
    }
}
