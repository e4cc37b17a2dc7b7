//! Native code that traps, raises, panics and is entered from itself; and processes that must die.

mod entries;
mod harness;
mod memory;
mod processes;
mod registry;
mod trapping;
