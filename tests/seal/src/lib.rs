//! Attempts to change a function without the editor, to forge a log, or to fire an unproved
//! transition. None of them compiles.
//!
//! Each file of `tests/compile-fail` is one attempt, an example of this crate. `tests/seal/run`
//! checks them all, and compares the compiler's messages with `tests/seal/expected`. The attempts
//! are a crate of their own because the tests of other crates enable the oracles' door, the feature
//! `unproved` of `check`. Here it stays shut, as it does for embedders.
