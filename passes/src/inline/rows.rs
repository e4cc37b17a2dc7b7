//! Rows of calls whose code may vanish.
//!
//! Example: `@id` returns its argument, and `@f` calls it 600 times in a row. Inlined, each call
//! leaves two jumps and nothing else, and `cfg_clean` merges them. The copy then runs from the
//! first call to the last without an instruction that the optimized version has, too. Mappings
//! follow such a *path* through 64 jumps only, and `@f` would lose its entries. One call in each
//! such row therefore stays: it ends the path.
//!
//! Whether code vanishes shows behind the inlining alone. Every callee counts that writes nothing,
//! branches nowhere and cannot trap.

use super::callee;
use ir::{Func, Function, Inst, Module, Opcode};
use std::collections::{BTreeMap, BTreeSet};

/// The most jumps that inlined calls in a row leave. Three quarters of the 64 leave room for the
/// jumps around them.
const MAX_JUMPS: usize = 48;

/// The lengths of callees, in jumps.
#[derive(Debug)]
pub(super) struct Rows<'m> {
    module: &'m Module,
    /// The most calls one inside the other.
    depth: usize,
    /// By callee and the calls that may be inlined inside it: the jumps that it leaves. `None` if
    /// it has an instruction that ends a path.
    known: BTreeMap<(Func, usize), Option<usize>>,
}

impl<'m> Rows<'m> {
    pub(super) fn new(module: &'m Module, depth: usize) -> Rows<'m> {
        Rows { module, depth, known: BTreeMap::new() }
    }

    /// The calls of a function that stay, to end a path each. Cost: linear in the function, and for
    /// each callee in its code up to the first instruction that ends a path.
    pub(super) fn staying(&mut self, f: &Function) -> BTreeSet<Inst> {
        let mut staying = BTreeSet::new();
        let mut jumps = 0;
        // In the order of the layout, which is that of control within a row.
        for inst in f.all_insts() {
            let more = match f.inst(inst).opcode {
                Opcode::Return => None,
                _ => self.jumps_of(f, inst, self.depth),
            };
            jumps = more.map_or(0, |more| jumps + more);
            if jumps > MAX_JUMPS && callee(f, inst).is_some() {
                staying.insert(inst);
                jumps = 0;
            }
        }
        staying
    }

    /// The jumps that an instruction leaves, calls being inlined; `None` if it ends a path.
    fn jumps_of(&mut self, f: &Function, inst: Inst, depth: usize) -> Option<usize> {
        match f.inst(inst).opcode {
            Opcode::Jump | Opcode::Return => Some(1),
            Opcode::Call => self.length(callee(f, inst)?, depth),
            opcode => (opcode.is_effect_free() && !f.may_trap(inst)).then_some(0),
        }
    }

    /// The jumps that a call of a function leaves. Those of calls inside count up to this depth; a
    /// call below it stays.
    fn length(&mut self, func: Func, depth: usize) -> Option<usize> {
        let inside = depth.checked_sub(1)?;
        if let Some(known) = self.known.get(&(func, inside)) {
            return *known;
        }
        let body = self.module.body(func)?;
        let insts = body.all_insts().map(|inst| self.jumps_of(body, inst, inside));
        // Stops at the first instruction that ends a path.
        let length = insts.sum::<Option<usize>>().map(|jumps| 1 + jumps);
        self.known.insert((func, inside), length);
        length
    }
}
