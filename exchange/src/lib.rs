//! Writes mappings with their certificates as text, for other processes and programs. Reads such
//! files, and judges their mappings.
//!
//! `docs/certificates.md` describes the format: one record per line, the first word names its kind,
//! and numbers are decimal. [`write()`] writes one function, and [`write_copy`] a function with
//! inlined code; [`read`] reads a file. A reader derives the versions again and compares them with
//! the file line by line.

mod read;
mod read_copy;
mod recheck;
mod recheck_copy;
mod verdicts;
mod words;
mod write;
mod write_copy;

pub use read::{Exported, ExportedFunction, ExportedParts, ReadError, read};
pub use recheck::{Rechecked, RefusedRecord, recheck};
pub use recheck_copy::{ExportedCopy, Listed, recheck_copy};
pub use verdicts::EntryVerdict;
pub use write::{escaped, header, landing, landings_header, least_sizes, write};
pub use write_copy::{WrittenCopy, write_copy};

/// The first line of a file. Its number is the version of the format.
pub const MAGIC: &str = "osier-mapping 3";

/// The words for the two versions.
const SIDES: [&str; 2] = ["before", "after"];

/// The words for the two directions.
const DIRECTIONS: [&str; 2] = ["forward", "backward"];

/// The words for the versions of a function with inlined code, each derived from the one before.
const VERSIONS: [&str; 4] = ["base", "cleaned", "copy", "optimized"];

/// The two pairs of these versions that have certificates.
const PAIRS: [&str; 2] = ["base cleaned", "copy optimized"];

/// The names of these pairs in verdicts.
const PAIR_NAMES: [&str; 2] = ["base-cleaned", "copy-optimized"];

/// The words for the directions of entries across the copy.
const ACROSS: [&str; 2] = ["into", "out"];

/// The words for the places of frames.
const PLACES: [&str; 2] = ["before", "within"];
