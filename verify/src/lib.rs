//! Judges of OSR mappings, and the programs they judge on.
//!
//! [`generate`] makes random programs. Nothing here makes mappings, and nothing this crate depends on
//! was written to make them: it sees the two versions, the mapping, and the meaning of the IR.

pub mod generate;
pub mod prng;
