//! Writes and reads mappings with their certificates as text, for other processes and programs.
//!
//! `docs/certificates.md` describes the format: one record per line, the first word names its kind,
//! and numbers are decimal. [`write()`] writes one function; [`read`] reads a file. A reader
//! derives the versions again and compares them line by line with those in the file.

mod read;
mod write;

pub use read::{Exported, ExportedFunction, ExportedParts, ReadError, read};
pub use write::{escaped, header, write};

/// The first line of a file. Its number is the version of the format.
pub const MAGIC: &str = "osier-mapping 2";

/// The words for the two versions.
const SIDES: [&str; 2] = ["before", "after"];

/// The words for the two directions.
const DIRECTIONS: [&str; 2] = ["forward", "backward"];
