//! Rows of calls whose code may vanish.
//!
//! Example: `@id` returns its argument, and `@f` calls it 600 times in a row. Inlined, each call
//! leaves two jumps and nothing else, and `cfg_clean` merges them. The copy then runs from the
//! first call to the last without an instruction that the optimized version has, too. Mappings
//! follow such a *path* through 64 jumps only, and `@f` would lose its entries. One call in each
//! such row therefore stays and ends the path.
//!
//! Whether code vanishes shows behind the inlining alone. Every instruction without a write, a
//! branch or a possible trap counts as vanishing, also in callees.

use super::callee;
use crate::row_paths::RowPaths;
use ir::{Func, Function, Inst, Module, Opcode};
use std::collections::{BTreeMap, BTreeSet};

/// The most jumps that inlined calls in a row leave. Three quarters of the 64 leave room for the
/// jumps around them.
const MAX_JUMPS: usize = 48;

/// The paths through callees.
#[derive(Debug)]
pub(super) struct Rows<'m> {
    module: &'m Module,
    /// The largest depth of inlined calls.
    depth: usize,
    /// By callee and the calls that may be inlined inside it.
    known: BTreeMap<(Func, usize), RowPaths>,
}

impl<'m> Rows<'m> {
    pub(super) fn new(module: &'m Module, depth: usize) -> Rows<'m> {
        // Each level adds a jump, so more levels than the limit change nothing
        // (`a_policy_without_a_depth_ends`).
        Rows { module, depth: depth.min(MAX_JUMPS + 1), known: BTreeMap::new() }
    }

    /// The calls of a function that stay, to end a path each. A callee whose own row is too long
    /// stays, too. Cost: linear in the function, and in each callee for each depth.
    pub(super) fn staying(&mut self, f: &Function) -> BTreeSet<Inst> {
        let mut staying = BTreeSet::new();
        let mut so_far = RowPaths::default();
        // In layout order, which is control order within a row.
        for inst in f.all_insts() {
            let here = match f.inst(inst).opcode {
                Opcode::Return => RowPaths::END,
                _ => self.paths_of(f, inst, self.depth),
            };
            let with = RowPaths { most: 0, ..so_far }.then(here);
            so_far = with;
            if with.most > MAX_JUMPS && callee(f, inst).is_some() {
                staying.insert(inst);
                so_far = RowPaths::END;
            }
        }
        staying
    }

    /// The paths through an instruction.
    fn paths_of(&mut self, f: &Function, inst: Inst, depth: usize) -> RowPaths {
        match f.inst(inst).opcode {
            Opcode::Jump | Opcode::Return => RowPaths::of(1),
            Opcode::Call => callee(f, inst).map_or(RowPaths::END, |func| self.paths(func, depth)),
            opcode if opcode.is_effect_free() && !f.may_trap(inst) => RowPaths::of(0),
            _ => RowPaths::END,
        }
    }

    /// The paths through a call of a function. Calls inside count up to this depth; a call below it
    /// stays.
    fn paths(&mut self, func: Func, depth: usize) -> RowPaths {
        let (Some(inside), Some(body)) = (depth.checked_sub(1), self.module.body(func)) else {
            return RowPaths::END;
        };
        if let Some(known) = self.known.get(&(func, inside)) {
            return *known;
        }
        let mut paths = RowPaths::of(1);
        for inst in body.all_insts() {
            paths = paths.then(self.paths_of(body, inst, inside));
        }
        self.known.insert((func, inside), paths);
        paths
    }
}
