//! Judges of OSR mappings, and the programs on which they judge.
//!
//! The crate `check` proves entries from certificates, without running anything. [`state_oracle`]
//! runs two versions side by side and compares every transition with the state that it claims to
//! reach, with inlined code or without. [`hops`] runs chains of transitions through all versions of
//! a function and compares how the runs end. [`tables`] does both for rows of landing tables.
//! [`agreement`] compares mappings with one another.
//! [`generate`] makes random programs, and [`damage`] makes wrong mappings to try the judges on.
//!
//! This crate makes no mappings, and depends on no crate of the makers. It sees the versions, the
//! mappings, and the meaning of the IR.

pub mod agreement;
pub mod damage;
mod end;
pub mod generate;
pub mod hops;
pub mod prng;
pub mod state_oracle;
pub mod tables;
mod waiting;
