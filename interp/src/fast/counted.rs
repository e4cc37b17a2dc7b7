//! Counting in the fast loop.
//!
//! A run that counts executes a copy of the code. There, each operation has its counter beside it.
//! A branch then counts with one more instruction. With counters apart from the code, found by pc,
//! programs were 31 % slower.

use super::code::Fast;
use super::op::FastOp;
use crate::cells::{Cell, watch};

/// An operation with its counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedOp {
    op: FastOp,
    /// Of a branch: how often the condition was true, and how often false. Of a load: as
    /// [`watch`] leaves it.
    cell: Cell,
}

/// The operations that the loop executes. A loop that counts has them in `counted` alone, and a
/// loop that does not count in `plain` alone; the compiler drops the other field.
pub(super) struct Ops<'a, const COUNTED: bool> {
    plain: &'a [FastOp],
    counted: &'a mut [CountedOp],
}

impl<'a, const COUNTED: bool> Ops<'a, COUNTED> {
    #[inline(always)]
    pub(super) fn new(fast: &'a Fast, counted: &'a mut [Vec<CountedOp>], version: u32) -> Self {
        match COUNTED {
            true => Ops { plain: &[], counted: &mut counted[version as usize] },
            false => Ops { plain: &fast.ops, counted: &mut [] },
        }
    }

    #[inline(always)]
    pub(super) fn get(&self, pc: usize) -> &FastOp {
        if COUNTED { &self.counted[pc].op } else { &self.plain[pc] }
    }

    /// Counts a branch at a pc: side 0 if its condition is true, else side 1.
    #[inline(always)]
    pub(super) fn side(&mut self, pc: usize, side: usize) {
        if COUNTED {
            self.counted[pc].cell[side] += 1;
        }
    }

    /// Notes the result of a load.
    #[inline(always)]
    pub(super) fn watch(&mut self, pc: usize, bits: u64) {
        if COUNTED {
            watch(&mut self.counted[pc].cell, bits);
        }
    }
}

/// The operations of a version, with counters at zero.
pub(crate) fn counted(fast: &Fast) -> Vec<CountedOp> {
    fast.ops.iter().map(|op| CountedOp { op: *op, cell: [0; 2] }).collect()
}

/// The counters of the operations that end with the instruction at a pc. The counters of a branch
/// are in the order of the targets of the instruction.
pub(crate) fn cells(ops: &[CountedOp], pc: usize) -> impl Iterator<Item = Cell> {
    // An operation that ends there and an operation that does not never alternate: the operation
    // before a group joins the group completely or not at all.
    let starts = (0..=pc).rev().map_while(move |start| {
        let counted = ops.get(start)?;
        (start + usize::from(counted.op.length) == pc + 1).then_some(counted)
    });
    starts.map(|CountedOp { op, cell: [first, second] }| match op.flipped {
        true => [*second, *first],
        false => [*first, *second],
    })
}
