//! Counters of runs: the events from which a profile is made.
//!
//! Both dispatch loops are compiled twice, with and without counting ([`crate::Machine::count`]
//! chooses), so a run that counts nothing pays nothing. A run that counts stays in its tier. The
//! loops keep counters where a run decides something: at branches, at indirect calls, and at
//! function entry. The number of visits of each block follows from these, so straight-line code is
//! not counted.
//!
//! Loads, reads of globals and arguments are *watched*: the first value is kept, and a value that
//! differs ends the watch. A *polymorphic* load, whose values differ, thus costs one test from then
//! on.
//!
//! Counters stick to versions. Native code has its own (`jit::NativeCounts`).

use super::cells::{Cell, joined, steady};
use super::decoded::Decoded;
use super::fast::counted::{self, CountedOp};
use super::op::ExactOpCode;
use ir::entity::{Func, Inst, Point};

/// Targets of one indirect call that are counted apart.
pub const MAX_TARGETS: usize = 4;

/// A target of an indirect call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallTarget {
    /// The index of the entry in the table.
    pub index: u64,
    /// The function that the entry named.
    pub func: Func,
    /// The calls.
    pub calls: u64,
}

/// The targets of an indirect call.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CallTargets {
    /// The first [`MAX_TARGETS`] different targets, in the order of their first calls.
    pub targets: Vec<CallTarget>,
    /// The calls of other targets.
    pub others: u64,
}

/// The counters of one version.
#[derive(Clone, Default, Debug)]
pub(super) struct VersionCounts {
    calls: u64,
    /// The arguments of the first call; `None` where a later call had another argument.
    args: Vec<Option<u64>>,
    /// The number of arguments that have not varied.
    steady: usize,
    /// The counters of the exact loop, by pc of an instruction.
    pub(super) cells: Vec<Cell>,
    cases: Vec<u64>,
    indirect: Vec<CallTargets>,
}

impl VersionCounts {
    pub(super) fn new(code: &Decoded) -> VersionCounts {
        let mut counts =
            VersionCounts { cells: vec![[0; 2]; code.insts.len()], ..VersionCounts::default() };
        for (cell, op) in counts.cells.iter_mut().zip(&code.ops) {
            match op.code {
                ExactOpCode::Switch => {
                    cell[0] = counts.cases.len() as u64;
                    counts.cases.resize(counts.cases.len() + op.c as usize + 1, 0);
                }
                ExactOpCode::CallIndirect => {
                    cell[0] = counts.indirect.len() as u64;
                    counts.indirect.push(CallTargets::default());
                }
                _ => {}
            }
        }
        counts
    }

    /// Counts a call with these arguments.
    #[inline]
    pub(super) fn enter(&mut self, args: &[u64]) {
        if self.calls == 0 {
            self.args = args.iter().copied().map(Some).collect();
            self.steady = args.len();
        } else if self.steady > 0 {
            for (first, arg) in self.args.iter_mut().zip(args) {
                if first.is_some_and(|first| first != *arg) {
                    *first = None;
                    self.steady -= 1;
                }
            }
        }
        self.calls += 1;
    }

    /// Counts a visit of the target `choice` of the `switch` at a pc.
    #[inline]
    pub(super) fn switch(&mut self, pc: usize, choice: usize) {
        self.cases[self.cells[pc][0] as usize + choice] += 1;
    }

    /// Counts an indirect call at a pc.
    #[inline]
    pub(super) fn call(&mut self, pc: usize, index: u64, func: Func) {
        let CallTargets { targets, others } = &mut self.indirect[self.cells[pc][0] as usize];
        let known = targets.iter().position(|known| (known.index, known.func) == (index, func));
        match known {
            Some(known) => targets[known].calls += 1,
            None if targets.len() < MAX_TARGETS => {
                targets.push(CallTarget { index, func, calls: 1 });
            }
            None => *others += 1,
        }
    }
}

/// The counters of a version. See the module documentation of `counts`.
#[derive(Clone, Copy, Debug)]
pub struct RunCounts<'a> {
    code: &'a Decoded,
    counts: &'a VersionCounts,
    /// The counters of the fast loop.
    counted: &'a [CountedOp],
}

impl<'a> RunCounts<'a> {
    /// The counters of the version with this code.
    pub(super) fn new(
        code: &'a Decoded,
        counts: &'a VersionCounts,
        counted: &'a [CountedOp],
    ) -> RunCounts<'a> {
        RunCounts { code, counts, counted }
    }

    /// The calls of the version, without transitions into it.
    pub fn calls(&self) -> u64 {
        self.counts.calls
    }

    /// The arguments: the bits of one that was equal in all calls. Empty if there was no call.
    pub fn arguments(&self) -> &'a [Option<u64>] {
        &self.counts.args
    }

    /// The visits of each target of a `br_if` or `switch`. `None` for another instruction. Cost:
    /// the number of targets.
    pub fn sides(&self, inst: Inst) -> Option<Vec<u64>> {
        let (pc, code, last) = self.at(inst)?;
        let cell = self.counts.cells[pc];
        match code {
            ExactOpCode::BrIf => {
                let sum = |sum: Cell, cell: Cell| [sum[0] + cell[0], sum[1] + cell[1]];
                Some(counted::cells(self.counted, pc).fold(cell, sum).to_vec())
            }
            ExactOpCode::Switch => {
                Some(self.counts.cases[cell[0] as usize..][..=last as usize].to_vec())
            }
            _ => None,
        }
    }

    /// The targets of an indirect call. `None` for another instruction.
    pub fn targets(&self, inst: Inst) -> Option<&'a CallTargets> {
        let (pc, code, _) = self.at(inst)?;
        let position = self.counts.cells[pc][0] as usize;
        (code == ExactOpCode::CallIndirect).then(|| &self.counts.indirect[position])
    }

    /// The bits that a load or read of a global gave whenever it executed. `None` if it has not
    /// executed or gave different values, and for another instruction.
    pub fn steady_value(&self, inst: Inst) -> Option<u64> {
        let (pc, code, _) = self.at(inst)?;
        let cell = counted::cells(self.counted, pc).fold(self.counts.cells[pc], joined);
        steady(cell).filter(|_| is_watched(code))
    }

    /// The pc, the operation and the last operand of an instruction.
    fn at(&self, inst: Inst) -> Option<(usize, ExactOpCode, u32)> {
        let pc = self.code.pc_of(Point::before(inst))? as usize;
        let op = self.code.ops[pc];
        Some((pc, op.code, op.c))
    }
}

/// Whether an operation is a load or a read of a global, whose values are watched.
fn is_watched(code: ExactOpCode) -> bool {
    use ExactOpCode as Op;
    matches!(
        code,
        Op::Load1
            | Op::Load2
            | Op::Load4
            | Op::Load8
            | Op::Load1I16
            | Op::Load1I32
            | Op::Load1I64
            | Op::Load2I32
            | Op::Load2I64
            | Op::Load4I64
            | Op::LoadFar
            | Op::GlobalGet
    )
}

/// Appends the counters of a version.
pub(super) fn add_version(
    counts: &mut Vec<VersionCounts>,
    counted: &mut Vec<Vec<CountedOp>>,
    code: &Decoded,
) {
    counts.push(VersionCounts::new(code));
    counted.push(code.fast.as_ref().map(counted::counted).unwrap_or_default());
}
