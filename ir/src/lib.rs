//! The SSA intermediate representation (IR) of Osier: its text form, its verifier, its editor and
//! its analyses.
//!
//! Start at three places:
//!
//! - [`Function`] is one version of a function.
//! - [`opcode`] is the table of operations.
//! - [`edit`] is the only way to change a function; it also records the log of the changes.

pub mod access;
mod bag;
mod bodies;
pub mod builder;
pub mod cfg;
mod chunked;
pub mod decided;
pub mod dom;
pub mod edit;
pub mod effect;
pub mod entity;
pub mod eval;
pub mod family;
pub mod frame_states;
pub mod function;
pub mod init;
pub mod inst;
mod layout;
pub mod liveness;
pub mod loops;
pub mod memory_ssa;
pub mod module;
mod mutate;
pub mod needed;
pub mod opcode;
pub mod place;
pub mod ranges;
pub mod reference;
pub mod rules;
mod sparse;
pub mod text;
pub mod trap;
pub mod types;
pub mod verifier;

pub use bodies::SupplyError;
pub use builder::{BuildError, FinishedFunction, FinishedIds, FunctionBuilder, Variable};
pub use chunked::ChunkedMap;
pub use effect::DeclaredEffect;
pub use entity::{
    Block, Data, Elem, Func, Global, Inst, Memory, OsrPoint, Point, Sig, Table, Value,
};
pub use family::Family;
pub use frame_states::{FrameState, FrameStateError, FrameStates, Local, LocalContent};
pub use function::{Function, ValueDef};
pub use inst::{Edge, Imm, InstData, InstSpec, Target};
pub use module::Module;
pub use opcode::{Effects, Opcode, Shape};
pub use trap::TrapKind;
pub use types::{Signature, Type, TypeList};
