//! Native code against the interpreter: every operation on values at every type, every way of a
//! float through a function, generated programs, at once or where they turn hot, and what is
//! extreme.
//!
//! `OSIER_NATIVE_PROGRAMS=10000 cargo test --release --test native generated` compares so many
//! generated programs.

#[allow(dead_code, reason = "shared with `tests/oir`, which uses the rest")]
mod both;
mod extremes;
mod floats;
mod operations;
mod programs;
mod tiered;
