//! The tests of mappings on versions made by hand, in one binary.

mod common;
mod compose;
mod directed;
mod graph;
