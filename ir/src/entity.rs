//! The ids of the IR.
//!
//! Every id is a `u32` newtype. `Inst`, `Value` and `Block` ids come from the allocator of a
//! *family* (all versions of one source function, see [`crate::family`]). The allocator never
//! reuses an id, so an id refers to the same entity in every version that has it. The other ids,
//! except [`OsrPoint`], index the declarations of a [`crate::Module`]. The `Display` form of an id
//! is the text that the printer writes for an entity without a name.

use cranelift_entity::entity_impl;

/// An instruction, terminators included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inst(u32);
entity_impl!(Inst, "inst");

/// An SSA value: the result of an instruction or a block parameter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(u32);
entity_impl!(Value, "v");

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block(u32);
entity_impl!(Block, "block");

/// A function of a module, imported ones included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Func(u32);
entity_impl!(Func, "func");

/// A function signature of a module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sig(u32);
entity_impl!(Sig, "sig");

/// A global variable of a module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Global(u32);
entity_impl!(Global, "global");

/// A linear memory of a module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Memory(u32);
entity_impl!(Memory, "memory");

/// A table of references of a module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Table(u32);
entity_impl!(Table, "table");

/// A data segment of a module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Data(u32);
entity_impl!(Data, "data");

/// An element segment of a module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Elem(u32);
entity_impl!(Elem, "elem");

/// A point at which a run may continue in another version. The number is an index into a table of
/// such points ([`crate::Opcode::OsrTest`], [`crate::Opcode::OsrExit`]). The client that inserted
/// the points keeps that table; to the IR, the id is a plain number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OsrPoint(u32);
entity_impl!(OsrPoint, "osr");

/// A program point: control is about to execute the instruction (terminators included).
///
/// The start of a block is the point before its first instruction, with its parameters bound. A
/// point is meaningful in every version that has the instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Point(Inst);

impl Point {
    /// The point before `inst`.
    pub fn before(inst: Inst) -> Point {
        Point(inst)
    }

    /// The instruction that is about to execute.
    pub fn inst(self) -> Inst {
        self.0
    }
}
