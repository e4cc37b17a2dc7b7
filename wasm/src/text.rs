//! Modules in text form.

use crate::budget::ImportLimits;
use crate::error::{ImportError, Location};
use ir::Module;
use wast::Wat;
use wast::lexer::{Lexer, TokenKind};
use wast::parser::{self, ParseBuffer};

/// Turns a module in text form into IR, by way of the binary it encodes to.
///
/// # Errors
/// With line and column when the text is not that of a module; as [`crate::import`], with the
/// offset in the encoded module, when the module is refused.
pub fn import_wat(text: &str, limits: &ImportLimits) -> Result<Module, ImportError> {
    if let Some(at) = component(text) {
        let what = "this module uses the component model, which is not supported";
        return Err(ImportError::unsupported_at(what, place(text, at)));
    }
    let located = |error: wast::Error| {
        ImportError::invalid(error.message(), place(text, error.span().offset()))
    };
    let buffer = ParseBuffer::new(text).map_err(located)?;
    let mut wat = parser::parse::<Wat<'_>>(&buffer).map_err(located)?;
    let bytes = wat.encode().map_err(located)?;
    crate::import(&bytes, limits)
}

/// Line and column of an offset.
fn place(text: &str, offset: usize) -> Location {
    let before = &text[..text.floor_char_boundary(offset)];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Location::LineColumn(line, column)
}

/// Where a component begins, if the text is that of one. The parser reads components where some
/// other crate of the program has it do so, and calls them wrong where none does
/// (`a_component_is_refused_by_name`).
fn component(text: &str) -> Option<usize> {
    let lexer = Lexer::new(text);
    let blank = [TokenKind::Whitespace, TokenKind::LineComment, TokenKind::BlockComment];
    // Where the text is not one of tokens, the parser says so.
    let mut tokens =
        lexer.iter(0).map_while(Result::ok).filter(|token| !blank.contains(&token.kind));
    let (open, word) = (tokens.next()?, tokens.next()?);
    (open.kind == TokenKind::LParen && word.src(text) == "component").then_some(open.offset)
}
