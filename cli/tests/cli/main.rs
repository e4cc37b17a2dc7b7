//! The `osier` command, as a user runs it.

mod explain;
mod fuzz;
mod golden;
mod harness;
mod io;
mod jobs;
mod manual;
mod report;
mod run;
mod source;
mod tools;
mod wasi;
