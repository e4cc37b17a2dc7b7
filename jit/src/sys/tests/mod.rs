//! Tests of native code that traps, raises, panics and enters itself, and of processes that must
//! die.

mod entries;
mod harness;
mod memory;
mod processes;
mod protocol;
mod registry;
mod trapping;
