//! Calls that may lead to another version than the installed one, since the caller knows arguments.
//!
//! Example: a version calls `f(x, 3)`. A *row* of `f` is a version under the assumption that the
//! second argument is 3. The checker has compared the literal of the call with the assumption
//! ([`check::KnownCall`]), so the code of the row lacks the test, and the call jumps there. Each
//! such call has a cell with the address of its target; without a row, the cell leads to the code
//! that other calls of the function run.

use ir::{Func, Function, Imm, Inst, Opcode};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The target of a call, as native code sees it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CallCell {
    /// The code to call.
    pub(crate) code: AtomicPtr<u8>,
    /// How often the call was executed. One thread at a time runs the code.
    pub(crate) count: AtomicU64,
}

impl CallCell {
    /// Makes the call lead to this code from now on. The caller keeps that code alive for as long
    /// as the cell leads to it.
    pub(crate) fn lead_to(&self, code: *const u8) {
        self.code.store(code.cast_mut(), Ordering::Release);
    }
}

/// The calls of a version that have cells, and the assumptions that its code does not test.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContextCode {
    /// The calls, in the order of the list.
    pub(crate) calls: Arc<[(Inst, Func)]>,
    /// By call: its cell. The code holds their addresses.
    pub(crate) cells: Arc<[CallCell]>,
    numbers: Arc<BTreeMap<Inst, usize>>,
    /// The assumptions without a test. Whoever enters the code answers for them.
    pub(crate) untested: Arc<BTreeSet<Inst>>,
}

impl ContextCode {
    /// The calls of these instructions, as far as they name a function, and these assumptions.
    pub(crate) fn new(
        function: &Function,
        calls: &BTreeSet<Inst>,
        untested: BTreeSet<Inst>,
    ) -> ContextCode {
        let named = calls.iter().filter(|inst| function.has_inst(**inst)).filter_map(|inst| {
            let data = function.inst(*inst);
            match data.imm {
                Imm::Func(func) if data.opcode == Opcode::Call => Some((*inst, func)),
                _ => None,
            }
        });
        let calls: Arc<[(Inst, Func)]> = named.collect();
        let cell =
            |_: &(Inst, Func)| CallCell { code: AtomicPtr::default(), count: AtomicU64::new(0) };
        let cells = calls.iter().map(cell).collect();
        let numbers = calls.iter().enumerate().map(|(number, (inst, _))| (*inst, number));
        let numbers = Arc::new(numbers.collect());
        ContextCode { calls, cells, numbers, untested: Arc::new(untested) }
    }

    /// The number of a call.
    pub(crate) fn number(&self, call: Inst) -> Option<usize> {
        self.numbers.get(&call).copied()
    }

    /// The cell of a call, by the instruction of the version.
    pub(crate) fn cell(&self, call: Inst) -> Option<&CallCell> {
        self.number(call).map(|number| &self.cells[number])
    }
}
