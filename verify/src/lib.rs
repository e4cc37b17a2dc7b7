//! Judges of OSR mappings, and the programs they judge on.
//!
//! [`generate`] makes random programs; [`state_oracle`] runs two versions side by side and compares
//! every transition with the state it claims to lead to; [`hops`] runs chains of transitions
//! through all versions of a function and compares how they end; [`agreement`] compares mappings
//! with one another. Nothing here makes mappings, and nothing this crate depends on was written to
//! make them: it sees the versions, the mapping, and the meaning of the IR.

pub mod agreement;
pub mod damage;
mod end;
pub mod generate;
pub mod hops;
pub mod prng;
pub mod state_oracle;
