//! The decoded form of one version of a function: its exact code, with its fast code.
//!
//! Each instruction is exactly one operation, and operations are in layout order. So the pc of
//! `Before(inst)` is the number of instructions before `inst` in the layout. The pc of a block is
//! the pc of its first instruction. The moves on branch edges that pass arguments follow after the
//! last instruction.
//!
//! Every value has its own slot in the frame. A value is therefore readable wherever its definition
//! dominates, live or not. The arguments of the function have the first slots.

use super::bulk::BulkOp;
use super::fast::code::Fast;
use super::op::{ExactOp, ExactOpCode};
use super::ref_slots::RefSlots;
use cranelift_entity::EntityRef;
use ir::entity::{Inst, Memory, Point, Value};
use ir::trap::TrapKind;
use ir::types::Type;

/// Table entry for an id that the version does not have.
pub(super) const NONE: u32 = u32::MAX;

/// A load or store that does not fit an [`ExactOp`]: it accesses a memory other than memory 0 or a
/// host memory, or its offset has more than 32 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct FarAccess {
    pub(super) memory: Memory,
    pub(super) is_host: bool,
    pub(super) offset: u64,
    /// Bytes accessed, at most 8.
    pub(super) bytes: u32,
    /// Whether the loaded value is sign-extended to `ty`.
    pub(super) signed: bool,
    pub(super) ty: Type,
}

/// The bits that an assumption expects, and its reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedBits {
    pub(super) bits: u64,
    pub(super) reason: u32,
}

/// A length or index as a 32-bit field of an [`ExactOp`].
pub(super) fn narrow(length: usize) -> u32 {
    u32::try_from(length).expect("interp: a function has fewer than 2^32 operands")
}

/// The decoded form of a version. See the module documentation.
#[derive(Clone, Debug)]
pub struct Decoded {
    pub(super) ops: Vec<ExactOp>,
    pub(super) pool: Vec<u32>,
    pub(super) far: Vec<FarAccess>,
    pub(super) bulk: Vec<BulkOp>,
    pub(super) traps: Vec<TrapKind>,
    pub(super) assumptions: Vec<ExpectedBits>,
    /// Slots of a frame: one per value, and a last slot that breaks cycles of moves. The constants
    /// of `fast` follow after them.
    pub(super) frame_size: u32,
    /// The code for the fast loop, which executes unobserved runs. `None` when the frame is too
    /// large for it.
    pub(super) fast: Option<Fast>,
    /// The slots of references that a collector may move. `None` in versions without.
    pub(super) refs: Option<Box<RefSlots>>,
    /// Number of slots that the constants of `fast` take.
    pub(super) consts: u32,
    /// The instruction at each pc. Shorter than `ops`, which also has the moves on edges.
    pub(super) insts: Vec<Inst>,
    /// The pc of each instruction id.
    pub(super) pcs: Vec<u32>,
    /// The slot of each value id.
    pub(super) slots: Vec<u32>,
    /// The value of each slot.
    pub(super) values: Vec<Value>,
}

impl Decoded {
    /// The pc of a point, or `None` if the version lacks the instruction. Cost: constant.
    pub fn pc_of(&self, point: Point) -> Option<u32> {
        self.pcs.get(point.inst().index()).copied().filter(|pc| *pc != NONE)
    }

    /// The instruction at a pc; `None` at moves on an edge. Cost: constant.
    #[inline]
    pub fn inst_at(&self, pc: u32) -> Option<Inst> {
        self.insts.get(pc as usize).copied()
    }

    /// The slot of a value, or `None` if the version lacks the value. Cost: constant.
    pub fn slot_of(&self, value: Value) -> Option<u32> {
        self.slots.get(value.index()).copied().filter(|slot| *slot != NONE)
    }

    /// The value in a slot; `None` for the slot that breaks cycles of moves. Cost: constant.
    pub fn value_at(&self, slot: u32) -> Option<Value> {
        self.values.get(slot as usize).copied()
    }

    /// The number of slots of a frame, without the constants of fast code.
    pub fn frame_size(&self) -> u32 {
        self.frame_size
    }

    /// The instruction at a pc. At moves on an edge, this is the first instruction of the target
    /// block.
    pub(super) fn inst_near(&self, pc: u32) -> Option<Inst> {
        self.inst_at(pc).or_else(|| self.inst_at(self.ops[pc as usize].c))
    }

    /// Number of constant slots that follow the frame.
    #[inline]
    pub(super) fn consts(&self) -> u32 {
        self.consts
    }

    /// The slots that `const` instructions write, with the bits they write. Cost: linear in the
    /// code.
    pub(super) fn constants(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let constant = |op: &&ExactOp| op.code == ExactOpCode::Const;
        self.ops.iter().filter(constant).map(|op| (op.a, u64::from(op.b) | u64::from(op.c) << 32))
    }

    /// Whether the operation at a pc calls a function with a body, so that an activation may wait
    /// there.
    pub(super) fn is_call(&self, pc: u32) -> bool {
        matches!(self.ops[pc as usize].code, ExactOpCode::Call | ExactOpCode::CallIndirect)
    }

    /// Index into the pool at which the slots of the results of the call at `pc` are listed.
    pub(super) fn results_at(&self, pc: u32) -> u32 {
        let op = self.ops[pc as usize];
        match op.code {
            ExactOpCode::CallIndirect => op.b + 2 + op.c,
            _ => op.b + op.c,
        }
    }

    /// Sets or clears the mark of every instruction of `insts`. Instructions the version lacks are
    /// skipped.
    pub(super) fn set_marks(&mut self, insts: impl IntoIterator<Item = Inst>, marked: bool) {
        for inst in insts {
            if let Some(pc) = self.pc_of(Point::before(inst)) {
                self.ops[pc as usize].marked = marked;
            }
        }
    }
}
