//! An engine from outside, the interpreter `wasmi`, beside Osier's own interpreter.
//!
//! [`smith`] runs random modules in both and compares all that can be seen; [`speed`] runs the corpus in both and
//! compares times. Nothing depends on this package.

mod arguments;
mod engine;
pub mod smith;
pub mod speed;

pub use arguments::{Arguments, Command, SmithArguments, SpeedArguments};
