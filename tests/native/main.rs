//! Native code against the interpreter: every operation on values at every type, and every path of
//! a float through a function. Also generated programs (compiled at once or when hot), and extreme
//! cases.
//!
//! `OSIER_NATIVE_PROGRAMS=10000 cargo test --release --test native generated` sets the number of
//! generated programs.

#[allow(dead_code, reason = "shared with `tests/oir`, which uses the rest")]
mod both;
mod cold;
mod costs;
mod extremes;
mod floats;
mod operations;
mod overflow;
mod places;
mod programs;
mod tiered;
mod ways;
