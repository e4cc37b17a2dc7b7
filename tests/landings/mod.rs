//! Rows of landing tables: versions of the code behind a landing of a base, entered in the middle
//! of a run, and left where assumptions fail.

mod beside;
mod chance;
mod directed;
mod handed;
mod known;
mod misuse;
mod native;
mod random;
mod support;
