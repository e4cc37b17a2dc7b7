//! The interpreter, which defines the reference meaning of the IR.
//!
//! A [`Program`] is a pre-decoded module ([`Code`]). A [`Machine`] is an instance of a program: it
//! has memories, any number of versions per function, and one current run. [`Machine::start`] and
//! [`Machine::run`] execute a run, and an [`Observer`] can pause it before any instruction.
//! [`Machine::fire`] makes a paused run continue in another version, along an entry that the
//! checker has accepted. Calls do not recurse on the native stack, and every resource of a program
//! has a limit ([`Limits`]).
//!
//! Engines that run native code on the state of a machine use three modules:
//!
//! - `engine` gives raw access to the state, performs operations that native code hands back, and
//!   records its effects;
//! - `nested` lets a run call functions that the engine executes, and lets native code call back
//!   into the interpreter;
//! - `region` places memories in bytes of the engine.
//!
//! [`Machine::count`] makes a machine count the decisions of its runs, in both loops.
//!
//! [`ir::eval`] defines the operations on values. The exact loop (`exec`) implements memory,
//! calls and control flow. Unobserved runs use a faster loop (`fast`), which hands the instructions
//! it does not know back to the exact loop.

mod activations;
mod bulk;
mod calls;
mod cells;
mod code;
mod counts;
mod decode;
mod decoded;
mod engine;
mod exec;
mod fast;
mod fire;
mod frames;
mod globals;
mod host;
mod host_memory;
mod instantiate;
mod limits;
mod machine;
mod memory;
mod moves;
mod nested;
mod objects;
mod op;
mod outcome;
mod program;
mod ref_roots;
mod ref_slots;
mod region;
mod run;
mod state;
mod tables;
mod trace;
mod version;
mod view;
mod visits;

pub use code::Code;
pub use counts::{CallTarget, CallTargets, MAX_TARGETS, RunCounts};
pub use fire::{FireError, TransferError};
pub use host::{Host, HostError, HostFailure, NoHost};
pub use host_memory::HostMemory;
pub use instantiate::InstantiateError;
pub use limits::{Limits, Options, TraceLevel, is_poison, poison};
pub use machine::Machine;
pub use memory::{Memories, OutOfBounds};
pub use nested::{Nested, Resumed};
pub use objects::Allocator;
pub use outcome::{EarlyEnd, Outcome, Site};
pub use program::Program;
pub use ref_roots::StressMove;
pub use region::Region;
pub use run::Run;
pub use trace::{Effect, Trace};
pub use version::VersionId;
pub use view::{Control, FrameView, NoObserver, Observer, PauseAlways, PauseAtMarks, Scope, View};
pub use visits::Attention;

use ir::module::Module;

/// Runs a function of a module, found by [`Module::lookup`], in a new machine with default limits
/// and without a host. Runs the start function first; if that does not return, its outcome is the
/// result.
///
/// # Errors
/// When the module cannot be instantiated.
///
/// # Panics
/// When the function is missing, or takes another number of arguments.
pub fn run(module: &Module, name: &str, args: &[u64]) -> Result<Outcome, InstantiateError> {
    let func = module.lookup(name).unwrap_or_else(|| panic!("interp: no function {name}"));
    let mut machine = Machine::new(module, Limits::default())?;
    if let Some(start) = machine.start_function() {
        let outcome = machine.invoke(start, &[], &mut NoHost, &mut NoObserver);
        if outcome.returned().is_none() {
            return Ok(outcome);
        }
    }
    Ok(machine.invoke(func, args, &mut NoHost, &mut NoObserver))
}
