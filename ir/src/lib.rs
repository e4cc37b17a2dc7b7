//! The SSA IR of Osier, and everything that gives it meaning.
//!
//! Start at [`Function`] (one version of a function), [`opcode`] (the table of operations),
//! [`edit`] (the only way to change a function, and the log of what changed) and [`mapping`] (what
//! a transition between two versions is).

pub mod access;
mod bag;
pub mod builder;
pub mod certificate;
pub mod cfg;
pub mod decided;
pub mod dom;
pub mod edit;
pub mod entity;
pub mod eval;
pub mod family;
pub mod function;
pub mod inst;
pub mod interp;
mod layout;
pub mod liveness;
pub mod loops;
pub mod mapping;
pub mod memory_ssa;
pub mod module;
mod mutate;
pub mod needed;
pub mod opcode;
pub mod place;
pub mod reference;
pub mod rules;
mod sparse;
pub mod text;
pub mod trap;
pub mod types;
pub mod verifier;

pub use builder::{BuildError, FunctionBuilder, Variable};
pub use entity::{
    Block, Data, Elem, Func, Global, Inst, Memory, OsrPoint, Point, Sig, Table, Value,
};
pub use family::Family;
pub use function::{Function, ValueDef};
pub use inst::{Edge, Imm, InstData, InstSpec, Target};
pub use module::Module;
pub use opcode::{Effects, Opcode, Shape};
pub use trap::TrapKind;
pub use types::{Signature, Type, TypeList};
