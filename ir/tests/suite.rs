//! The tests of the IR in one binary.

extern crate osier_ir as ir; // the name dependents use, so that the wasm crate can share `laws`

mod analyses;
mod declared_rules;
mod eval;
mod proved;
mod text;
mod text_manual;
mod variables;
