//! Osier: an OSR-aware optimizing compiler middle-end.
//!
//! Authors of JITs depend on this library. It re-exports the crates of the project under one name
//! each, and the types that most programs name in [`prelude`]. `ARCHITECTURE.md` has the
//! contents of each crate. There are three jobs.
//!
//! The package contains the manuals (`docs/`) and examples. The crates of the project are released
//! together, and each needs the others at exactly its own version. They need Rust 1.95, as their
//! version of Cranelift does.
//!
//! # Run a program in tiers
//!
//! A run starts in the interpreter. A policy compiles hot functions and loops, and the run enters
//! the code in the middle of a loop. `examples/tiers.rs` runs whole programs this way;
//! `docs/native.md` is the manual.
//!
//! ```
//! use osier::prelude::*;
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = br#"(module (func (export "twice") (param i32) (result i32)
//!     (i32.add (local.get 0) (local.get 0))))"#;
//! let module = Arc::new(load(Format::Wat, text)?);
//! let twice = module.lookup("twice").ok_or("the module exports it")?;
//! let engine = Engine::new(Config::default())?;
//! let mut vm = Vm::new(&engine, &module, Default::default(), Default::default())?;
//! vm.set_tiering(Box::new(Tiered::by_costs(Costs::MEASURED, Pipeline::default())));
//! assert_eq!(vm.invoke(twice, &[21], &mut NoHost)?, Outcome::Returned(vec![42]));
//! # Ok(())
//! # }
//! ```
//!
//! # Derive a version, prove the ways to it, and fire one
//!
//! [`driver`] runs passes over a function and makes mappings in both directions, which the checker
//! proves. [`interp::Machine::fire`] moves a paused run along an entry. `examples/embed.rs` moves a
//! run up in the middle of a loop, and down again; `docs/osr.md` is the manual.
//!
//! ```
//! use osier::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = b"func @f(%a: i32) -> i32 {
//! entry:
//!   %zero = const.i32 0
//!   %same = add.i32 %a, %zero
//!   %square = mul.i32 %same, %same
//!   return %square
//! }";
//! let module = load(Format::Oir, text)?;
//! let (func, base) = module.defined().next().ok_or("the module defines no function")?;
//! let (pipeline, levels) = (Pipeline::default(), [Level::Avail]);
//! let recipe = Recipe::new(&pipeline, &levels);
//! let made = derive_proved(&module, base, &recipe, &mut osier::driver::NoObserver);
//! let up: &Checked<Mapping> = &made.proved.highest().before.mapping;
//!
//! // Pause a run of the base before the multiplication, and continue it in the other version.
//! let mut machine = Machine::new(&module, Default::default())?;
//! let slow = machine.current(func).ok_or("the function has a body")?;
//! let fast = machine.add_version(&module, func, &made.derived.function);
//! let square = base.all_insts().nth(2).ok_or("the third instruction")?;
//! machine.mark(slow, [square]);
//! machine.start(func, &[3]);
//! assert!(matches!(machine.run(&mut NoHost, &mut PauseAtMarks), Run::Paused));
//! let entry = up.checked_entry(Point::before(square)).ok_or("an entry at this point")?;
//! machine.fire(fast, entry)?;
//! let ended = machine.run(&mut NoHost, &mut PauseAtMarks);
//! assert!(matches!(ended, Run::Done(Outcome::Returned(values)) if values == [9]));
//! # Ok(())
//! # }
//! ```
//!
//! # Native code above an interpreter of one's own
//!
//! A front end builds functions of the IR and notes frame states: where its interpreter would
//! continue, with which registers. Native code that leaves in the middle calls
//! `jit::Embedder::resume` with these contents. `examples/bytecode.rs` is a whole program, and
//! `docs/embedding.md` explains it step by step.
//!
//! ```
//! use osier::jit::{CallbackEnd, DeoptFrame, Embedder, Slot};
//! use osier::prelude::*;
//!
//! struct Interpreter;
//!
//! impl Embedder for Interpreter {
//!     fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
//!         let activation = &frame.activations[0];
//!         // This bytecode would return register 0 from `activation.pc` on.
//!         Ok(activation.slot(0).into_iter().collect())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let signature = osier::ir::Signature::new(&[Type::I64], &[Type::I64]);
//! let mut builder = FunctionBuilder::new("twice", signature);
//! let entry = builder.create_block();
//! builder.switch_to(entry);
//! let x = builder.append_param(entry, Type::I64);
//! // Function 0, program counter 0, and `x` in slot 0.
//! builder.frame_state(osier::ir::FrameState::of_values(0, 0, [(0, x)]));
//! let sum = builder.op(osier::ir::Opcode::Add, Type::I64, &[x, x]);
//! builder.ret(&[sum]);
//! let finished = builder.finish()?;
//! assert_eq!(finished.states.iter().count(), 1);
//! # let _ = (finished.function, Interpreter);
//! # Ok(())
//! # }
//! ```

pub use certify;
pub use check;
pub use derive::{driver, inlining, landing, speculate, tables};
pub use exchange;
pub use interp;
pub use ir;
#[cfg(feature = "native")]
pub use jit;
pub use osr;
pub use passes;
pub use profile;
#[cfg(feature = "report")]
pub use report;
#[cfg(feature = "report")]
pub use report::{dot, explain, listing, schema, source};
#[cfg(feature = "native")]
pub use resume;
#[cfg(feature = "native")]
pub use tiers;
pub use transition;
#[cfg(feature = "wasm")]
pub use wasm;
#[cfg(feature = "source")]
pub use wasm::load_with_source;
#[cfg(feature = "wasm")]
pub use wasm::{
    ExceededLimit, Format, Limits, LoadError, SupportedParts, UnsupportedBody, load, load_parts,
    load_within,
};

/// The types and functions that most programs name.
pub mod prelude {
    pub use crate::check::{Checked, CheckedEntry};
    pub use crate::driver::{Recipe, derive_proved};
    pub use crate::interp::{Host, Machine, NoHost, Outcome, PauseAtMarks, Run, VersionId};
    pub use crate::ir::{Func, Function, FunctionBuilder, Module, Point, Type, Value};
    #[cfg(feature = "native")]
    pub use crate::jit::{Config, Engine, Vm};
    pub use crate::osr::Level;
    pub use crate::passes::Pipeline;
    #[cfg(feature = "native")]
    pub use crate::tiers::{Costs, Tiered};
    pub use crate::transition::mapping::{Entry, Mapping};
    #[cfg(feature = "wasm")]
    pub use crate::{Format, load};
}
