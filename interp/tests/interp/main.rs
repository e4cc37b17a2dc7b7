//! Tests of the interpreter on whole programs.

extern crate osier_interp as interp; // the name dependents use

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
