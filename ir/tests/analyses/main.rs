//! The analyses against naive definitions, on every control-flow graph of up to four blocks and on
//! random larger ones.

extern crate osier_ir as ir;

mod cfg_dom;
mod decided;
mod graphs;
mod liveness;
mod loops;
mod memory_ssa;
