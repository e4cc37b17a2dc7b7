//! Modules in text form.

use crate::budget::ImportLimits;
use crate::error::{ImportError, Location};
use ir::Module;
use wast::Wat;
use wast::parser::{self, ParseBuffer};

/// Turns a module in text form into IR, by way of the binary it encodes to.
///
/// # Errors
/// With line and column when the text is not that of a module; as [`crate::import`], with the offset
/// in the encoded module, when the module is refused.
pub fn import_wat(text: &str, limits: &ImportLimits) -> Result<Module, ImportError> {
    let located = |error: wast::Error| {
        let before = &text[..text.floor_char_boundary(error.span().offset())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        ImportError::invalid(error.message(), Location::LineColumn(line, column))
    };
    let buffer = ParseBuffer::new(text).map_err(located)?;
    let mut wat = parser::parse::<Wat<'_>>(&buffer).map_err(located)?;
    let bytes = wat.encode().map_err(located)?;
    crate::import(&bytes, limits)
}
