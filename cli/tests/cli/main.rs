//! The `osier` command, as a user runs it.

mod action;
mod explain;
mod findings;
mod fuzz;
mod golden;
mod harness;
mod io;
mod jobs;
mod manual;
mod page;
mod report;
mod report_options;
mod run;
mod source;
mod start;
mod tools;
mod typed;
mod wasi;
