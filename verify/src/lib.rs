//! Judges of OSR mappings, and the programs they judge on.
//!
//! [`generate`] makes random programs; [`state_oracle`] runs two versions side by side and compares every
//! transition with the state it claims to lead to. Nothing here makes mappings, and nothing this crate
//! depends on was written to make them: it sees the two versions, the mapping, and the meaning of the IR.

pub mod checker;
pub mod generate;
pub mod prng;
pub mod state_oracle;
