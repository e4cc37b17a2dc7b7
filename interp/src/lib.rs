//! The interpreter: the reference meaning.
//!
//! A [`Program`] is a module pre-decoded ([`Code`]); a [`Machine`] is an instance of it with
//! memories, any number of versions per function, and at most one run under way. [`Machine::start`]
//! and [`Machine::run`] step through a run, pausing wherever an [`Observer`] asks; a paused run can
//! go on in another version ([`Machine::transfer`]), which is what a transition is here. Calls do
//! not recurse natively, and everything a program may use up has a limit ([`Limits`]).
//!
//! Engines that run native code on the state of a machine, in the middle of its runs, find what
//! they need in `engine` (raw access, operations handed back, traces, ends), `nested` (calls that
//! leave the interpreter and come back to it) and `region` (memories on bytes of the engine's).
//!
//! What operations on values compute is in [`ir::eval`]; memory, calls and control flow are in
//! the loop (`exec`); runs that nobody watches take a faster one (`fast`) wherever it knows the
//! instructions.

mod activations;
mod bulk;
mod calls;
mod code;
mod engine;
mod exec;
mod fast;
mod fire;
mod host;
mod instantiate;
mod limits;
mod machine;
mod memory;
mod moves;
mod nested;
mod op;
mod outcome;
mod program;
mod region;
mod tables;
mod trace;
mod view;

pub use code::Code;
pub use fire::{FireError, TransferError};
pub use host::{Host, HostError, NoHost};
pub use instantiate::InstantiateError;
pub use limits::{Limits, Options, TraceLevel, is_poison, poison};
pub use machine::{Machine, Run, VersionId};
pub use memory::{Memories, OutOfBounds};
pub use nested::{Nested, Resumed};
pub use outcome::{EarlyEnd, Outcome, Site};
pub use program::Program;
pub use region::Region;
pub use trace::{Effect, Trace};
pub use view::{Control, NoObserver, Observer, PauseAlways, PauseAtMarks, Scope, View};

use ir::module::Module;

/// Runs a function of a module, found as [`Module::lookup`] does, in a new machine with default
/// limits and no host, after the start function. When that does not return, its outcome is the
/// result.
///
/// # Errors
/// When the module cannot be instantiated.
///
/// # Panics
/// When there is no such function, or it takes another number of arguments.
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
