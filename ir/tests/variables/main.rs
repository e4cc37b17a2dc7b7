//! SSA construction from variables, compared with direct execution of the programs.

extern crate osier_ir as ir; // the name dependents use, so that the wasm crate can share `laws`

mod laws;
mod programs;
mod shapes;
