//! Native code for Osier: functions lowered to Cranelift, and transitions between versions that run
//! as compiled code.
//!
//! An [`Engine`] compiles versions of functions ([`Version`]) with OSR points in them, and
//! transitions into them ([`Continuation`]); a [`Vm`] runs a program on them and on the
//! interpreter, which share one state. What leads where is said by [`Action`]; what is compiled,
//! and when, by a [`Tiering`] that the run asks.
//!
//! Transitions are ordinary functions of the IR: [`resume::continuation()`] builds one whose entry
//! block runs the compensation code and jumps to the landing point, and nothing below knows it from
//! another function.
//!
//! All unsafe code of the project is in this crate; each block says the invariant that makes it
//! right. Users write none.

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
