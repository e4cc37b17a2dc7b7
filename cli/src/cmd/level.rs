//! Parses reconstruction levels on the command line.

use super::failure::CommandFailure;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use osr::Level;

/// The default level of commands.
pub(super) const DEFAULT: &str = "avail";

/// A parser that accepts the names of all levels.
pub(super) fn parser() -> impl TypedValueParser<Value = Level> {
    let names = Level::ALL.map(|level| level.name());
    PossibleValuesParser::new(names).map(|name| {
        Level::ALL
            .into_iter()
            .find(|level| level.name() == name)
            .expect("one of the possible values")
    })
}

/// Checks that versions with inlined code have mappings at a level.
///
/// # Errors
/// If they lack mappings at the level.
pub(super) fn of_inlined(level: Level) -> Result<(), CommandFailure> {
    match level {
        Level::Avail => Ok(()),
        other => Err(CommandFailure::input(format!(
            "--level {}: a pipeline with inline has mappings at {DEFAULT} alone",
            other.name()
        ))),
    }
}
