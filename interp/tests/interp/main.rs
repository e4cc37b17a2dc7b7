//! Tests of the interpreter on whole programs. They are a test of the root package, which compiles
//! them in a quarter of the time: this crate's level of optimization is for its loops.

mod control;
mod declared;
mod demand;
mod effects;
mod engine;
mod host_memory;
mod limits;
mod memory;
mod nested;
mod observe;
mod refs;
mod regions;
mod support;
mod transition;
mod values;
