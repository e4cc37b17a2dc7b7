//! Native code for Osier: lowers functions to Cranelift and runs transitions between versions as
//! compiled code.
//!
//! An [`Engine`] compiles versions of functions with their OSR points ([`Version`]), and
//! transitions into such versions ([`Continuation`]). A [`Vm`] runs a program on these versions and
//! on the interpreter; both share one state. An [`Action`] gives the target of each OSR point. The
//! run asks a [`Tiering`] which function, loop or continuation to compile, and when.
//!
//! A transition is an ordinary function of the IR. [`resume::continuation()`] builds a function
//! whose entry block runs the compensation code and jumps to the landing point. Lowering treats
//! this function like any other.
//!
//! # Unsafe code
//! Of the crates that embedders link, this one alone has unsafe code. Users of the crate write
//! none, unless they lend memory or native functions of their own. `jit/UNSAFE.md` lists every
//! unsafe block with the invariant that makes it right, and a test keeps the list up to date.
//!
//! Miri is not part of the pinned toolchain, and cannot execute native code. Instead, tests compare
//! the logic around pointers with naive models, on random inputs:
//!
//! - the table of code by address, against a list (`vm::ranges`);
//! - the process-wide list of trapping code that signal handlers read, its pointers included,
//!   against the registrations that are held (`sys::tests::registry`);
//! - the protocol by which handlers and writers share that list, over all interleavings of a few
//!   steps (`sys::tests::protocol`);
//! - the stack maps of described exits, including the reads of registers and frame words, against
//!   the bytes of a stack (`exits`);
//! - the growth of reserved memory, against the set of accessible pages (`sys::reservation`).
//!
//! These parts have only end-to-end tests, which run native code: the entry trampoline and the jump
//! to its exception edge, the decoding of a fault from the signal frame, the chain to an earlier
//! handler, the helpers' access to the state of a run, and the layout of the context.

mod abi;
mod arena;
mod calls;
mod code;
mod config;
mod context;
mod counters;
mod direct;
mod engine;
mod error;
mod exits;
mod free_ranges;
pub mod gdb;
mod linked;
mod lone;
mod lower;
mod observe;
pub mod perf;
mod points;
mod probe;
pub mod process;
mod region;
mod roots;
mod spec;
mod start;
mod stubs;
mod sys;
mod traps;
mod version;
mod vm;

pub use code::{MachineCode, live_code};
pub use config::{Bounds, Config, Effort, Exits, Interruption, Nans};
pub use counters::NativeCounts;
pub use direct::{
    BoundFunctions, DirectCode, DirectFunction, DirectMemory, DirectMemoryCode, DirectResult,
    DirectValue, PlainCode,
};
pub use engine::Engine;
pub use error::{CompileError, ContinueError};
pub use observe::{CodeObserver, CodeSource, Piece, PieceKind, PiecePart, SourcePlace};
pub use region::RegionExits;
pub use resume::{Condition, PointSpec};
pub use spec::VersionSpec;
pub use sys::Unsupported;
pub use version::{Continuation, Version};
pub use vm::{
    Action, BindError, Callback, CallbackEnd, CallsFrom, Contents, CountedPlace, DeoptFrame,
    Embedder, Entered, EntryArgs, EntryError, EntryResult, FailedPoint, HandedActivation,
    HandedContent, HandedLocal, HotLoop, Interrupt, LinkError, Onward, OpenPoint, Quiet, RunError,
    Session, SessionEnd, Slot, Tier, Tiering, Transition, TransitionKind, TypedEntry, VisitedPlace,
    Vm, VmError, Wake,
};
