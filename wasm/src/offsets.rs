//! The operators that instructions come from, as byte offsets.
//!
//! Debug info names code by its offset in the code section, counted from the first byte of the
//! section's contents. The importer notes offsets only on request ([`crate::import_with_offsets`]),
//! in tables beside the module: functions, their text form and the passes know nothing of them.

use ir::{Block, FinishedIds, Func, Inst};
use std::collections::HashMap;
use std::ops::Range;

/// An instruction without an operator.
const NONE: u32 = u32::MAX;

/// For each function that a module defines: its body, and the operators of its instructions.
///
/// The operator of an instruction is the operator whose translation made the instruction. A jump
/// has the operator that leaves the structure: a branch, `else` or `end`. The zeros of locals that
/// a function never sets have no operator.
#[derive(Clone, Default, Debug)]
pub struct CodeOffsets {
    bodies: Vec<Option<BodyOffsets>>,
}

/// The offsets of one function.
#[derive(Clone, Debug)]
pub(crate) struct BodyOffsets {
    /// From the declarations of locals to the last `end`.
    body: Range<u32>,
    /// By instruction.
    insts: Box<[u32]>,
}

impl CodeOffsets {
    pub(crate) fn insert(&mut self, func: Func, offsets: BodyOffsets) {
        let index = func.as_u32() as usize;
        if self.bodies.len() <= index {
            self.bodies.resize_with(index + 1, || None);
        }
        self.bodies[index] = Some(offsets);
    }

    fn body_offsets(&self, func: Func) -> Option<&BodyOffsets> {
        self.bodies.get(func.as_u32() as usize)?.as_ref()
    }

    /// The offset of the operator that an instruction of the imported function comes from. `None`
    /// for an instruction that the function does not have, for one without an operator, and for a
    /// function without a body. Cost: constant.
    pub fn of(&self, func: Func, inst: Inst) -> Option<u32> {
        let offset = *self.body_offsets(func)?.insts.get(inst.as_u32() as usize)?;
        (offset != NONE).then_some(offset)
    }

    /// The bytes of a function's body: from the declarations of its locals to its last `end`.
    /// `None` for a function without a body. Cost: constant.
    pub fn body(&self, func: Func) -> Option<Range<u32>> {
        Some(self.body_offsets(func)?.body.clone())
    }

    /// The functions that have a body, in the order of their ids.
    pub fn funcs(&self) -> impl Iterator<Item = Func> + '_ {
        let bodies = self.bodies.iter().enumerate();
        bodies.filter(|(_, body)| body.is_some()).map(|(index, _)| Func::from_u32(index as u32))
    }
}

/// Notes offsets while a function is translated.
#[derive(Debug)]
pub(crate) struct OffsetNotes {
    /// The offset in the file at which the contents of the code section start.
    code_start: u64,
    body: Range<u64>,
    /// By instruction of the builder.
    insts: Vec<u32>,
    /// By block that a branch left open: the offset of the branch. The jump follows later, when
    /// another branch needs it.
    left: HashMap<Block, u32>,
}

impl OffsetNotes {
    pub(crate) fn new(code_start: u64, body: Range<u64>) -> OffsetNotes {
        OffsetNotes { code_start, body, insts: Vec::new(), left: HashMap::new() }
    }

    /// The offset in the code section. The length of a section has 32 bits.
    fn relative(&self, offset: u64) -> u32 {
        u32::try_from(offset - self.code_start).unwrap_or(NONE)
    }

    pub(crate) fn inserted(&mut self, inst: Inst, offset: u64) {
        let (index, offset) = (inst.as_u32() as usize, self.relative(offset));
        if self.insts.len() <= index {
            self.insts.resize(index + 1, NONE);
        }
        self.insts[index] = offset;
    }

    /// An operator left this block without a jump.
    pub(crate) fn left_open(&mut self, block: Block, offset: u64) {
        self.left.insert(block, self.relative(offset));
    }

    /// The jump out of a block that was left open.
    pub(crate) fn jumped(&mut self, block: Block, jump: Inst) {
        if let Some(offset) = self.left.get(&block) {
            self.insts[jump.as_u32() as usize] = *offset;
        }
    }

    /// The offsets by the ids of the finished function, which has instructions below `bound`.
    pub(crate) fn finish(self, ids: &FinishedIds, bound: usize) -> BodyOffsets {
        let mut insts = vec![NONE; bound].into_boxed_slice();
        for (index, offset) in self.insts.iter().enumerate() {
            if let Some(inst) = ids.inst(Inst::from_u32(index as u32)) {
                insts[inst.as_u32() as usize] = *offset;
            }
        }
        let body = self.relative(self.body.start)..self.relative(self.body.end);
        BodyOffsets { body, insts }
    }
}
