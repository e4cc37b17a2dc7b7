//! The formats of results.

use clap::ValueEnum;
use serde::Serialize;

/// Format of a result
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum OutputFormat {
    /// For people
    Text,
    /// For programs, with documented keys
    Json,
}

/// Returns the JSON form of a document, with a line break at its end.
pub(super) fn json(document: &impl Serialize) -> String {
    serde_json::to_string_pretty(document).expect("documents have a JSON form") + "\n"
}
