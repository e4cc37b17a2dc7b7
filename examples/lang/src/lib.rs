//! Wicker: a small dynamic language with an interpreter, and native code through Osier.
//!
//! The stages, each a module: [`syntax`] makes a tree of the text, [`compile`] makes register
//! bytecode of the tree ([`bytecode`]), and [`interp`] runs it on words ([`value`]) and a heap
//! ([`heap`]). [`native`] makes code of hot functions.
//!
//! ```
//! let mut machine = wicker::Machine::new("print(1 + 2);").expect("it compiles");
//! machine.run().expect("it ends without an exception");
//! assert_eq!(machine.take_output(), b"3\n");
//! ```

pub mod bytecode;
pub mod compile;
mod error;
pub mod heap;
pub mod interp;
pub mod library;
mod mentions;
pub mod native;
mod ops;
pub mod profile;
pub mod syntax;
pub mod value;

pub use interp::{Machine, Uncaught};
