//! SSA construction from variables, against programs run with the variables as they are.

extern crate osier_ir as ir; // the name dependents use, so that the wasm crate can share `laws`

mod laws;
mod programs;
mod shapes;
