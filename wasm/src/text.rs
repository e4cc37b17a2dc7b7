//! Imports modules in text form.

use crate::budget::ImportLimits;
use crate::error::{ImportError, Location};
use crate::module::{self, ImportWishes, Imported};
use ir::Module;
use wast::Wat;
use wast::lexer::{Lexer, TokenKind};
use wast::parser::{self, ParseBuffer};

/// Translates a module in text form into IR, through its binary encoding.
///
/// # Errors
/// When the text is not a module; the error has line and column. As [`crate::import`] when the
/// encoded module is rejected; the error then has an offset in the encoded module.
pub fn import_wat(text: &str, limits: &ImportLimits) -> Result<Module, ImportError> {
    Ok(import(text, limits, ImportWishes::default())?.module)
}

/// As [`import_wat`], with what is wanted.
pub(crate) fn import(
    text: &str,
    limits: &ImportLimits,
    wanted: ImportWishes,
) -> Result<Imported, ImportError> {
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
    module::import(&bytes, limits, None, wanted)
}

/// The line and column of a byte offset.
fn place(text: &str, offset: usize) -> Location {
    let before = &text[..text.floor_char_boundary(offset)];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Location::LineColumn(line, column)
}

/// The offset at which a component starts, if the text is one. The `wast` parser accepts components
/// only if some crate of the build enables that, and reports a syntax error otherwise. This check
/// makes the error independent of the build (test `a_component_is_refused_by_name`).
fn component(text: &str) -> Option<usize> {
    let lexer = Lexer::new(text);
    let blank = [TokenKind::Whitespace, TokenKind::LineComment, TokenKind::BlockComment];
    // Errors of the lexer are ignored here, because the parser reports them.
    let mut tokens =
        lexer.iter(0).map_while(Result::ok).filter(|token| !blank.contains(&token.kind));
    let (open, word) = (tokens.next()?, tokens.next()?);
    (open.kind == TokenKind::LParen && word.src(text) == "component").then_some(open.offset)
}
