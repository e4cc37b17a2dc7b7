//! Mutants: wrong changes of this project's own code, which put its judges on trial (pool P1).
//!
//! Production code knows nothing of them. The files `tests/mutants/*.mutants` hold each mutant as
//! the exact text of a place in the sources and the text that replaces it ([`table`]). For a trial,
//! [`copy`] copies the workspace, applies all edits there and builds the copy once. In the copy,
//! every mutant is a condition that a thread can switch on for the time of a call ([`switch`]).

pub mod apply;
pub mod copy;
pub mod switch;
pub mod table;
