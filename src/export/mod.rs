//! Mappings with their certificates as text, for another process or another program.
//!
//! The form is described in `docs/certificates.md`: one record a line, the first word naming its
//! kind, numbers in decimal. [`write()`] writes one function; [`read`] reads a file back. Reading
//! needs the versions: they are made again and must be, line for line, those the file was written
//! for.

mod read;
mod write;

pub use read::{Exported, ExportedFunction, Parts, ReadError, read};
pub use write::{escaped, header, write};

/// The first line of a file, and the version of the form.
pub const MAGIC: &str = "osier-mapping 1";

/// The names of the two versions, before and after.
const SIDES: [&str; 2] = ["before", "after"];

/// The names of the two directions.
const DIRECTIONS: [&str; 2] = ["forward", "backward"];
