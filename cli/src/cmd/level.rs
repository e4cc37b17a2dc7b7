//! Reconstruction levels on the command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use osr::Level;

/// The level commands use unless told otherwise.
pub(super) const DEFAULT: &str = "avail";

/// Accepts the names of the levels there are.
pub(super) fn parser() -> impl TypedValueParser<Value = Level> {
    let names = Level::ALL.map(|level| level.name());
    PossibleValuesParser::new(names).map(|name| {
        Level::ALL
            .into_iter()
            .find(|level| level.name() == name)
            .expect("one of the possible values")
    })
}
