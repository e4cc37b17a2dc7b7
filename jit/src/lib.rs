//! Native code for Osier: lowers functions to Cranelift and runs transitions between versions as
//! compiled code.
//!
//! An [`Engine`] compiles versions of functions with their OSR points ([`Version`]), and
//! transitions into such versions ([`Continuation`]). A [`Vm`] runs a program on these versions and
//! on the interpreter; both share one state. An [`Action`] gives the target of each OSR point. The
//! run asks a [`Tiering`] which function, loop or continuation to compile, and when.
//!
//! A transition is an ordinary function of the IR. [`osr::continuation()`] builds a function whose
//! entry block runs the compensation code and jumps to the landing point. Lowering treats this
//! function like any other.
//!
//! All unsafe code of the project is in this crate. Each unsafe block states the invariant that
//! makes it right. Users of the crate write no unsafe code.

mod abi;
mod code;
mod config;
mod context;
mod engine;
mod error;
mod exits;
mod lower;
mod points;
mod probe;
pub mod process;
mod stubs;
mod sys;
mod traps;
mod version;
mod vm;

pub use code::{Code, live_code};
pub use config::{Bounds, Config, Effort, Exits, Interruption};
pub use engine::Engine;
pub use error::{CompileError, ContinueError};
pub use resume::{Condition, PointSpec};
pub use sys::Unsupported;
pub use version::{Continuation, Version};
pub use vm::{
    Action, DeoptFrame, Handler, HandlerEnd, HotLoop, Interrupt, LinkError, OpenPoint, Quiet,
    RunError, Slot, SlotLayout, Tier, Tiering, Transition, TransitionKind, Vm, VmError,
};
