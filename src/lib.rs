//! Osier: OSR mappings between any two versions of a function.
pub use ir;
