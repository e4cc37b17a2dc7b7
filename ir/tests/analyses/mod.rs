//! The analyses, compared with naive definitions on every control-flow graph of up to four blocks,
//! and on larger random graphs.

mod cfg_dom;
mod decided;
mod graphs;
mod liveness;
mod loops;
mod memory_ssa;
