//! Which functions have one call alone.

use super::callee;
use ir::{Func, Function, Module, Type, reference};
use std::collections::{BTreeMap, BTreeSet};

/// A module, the functions in it that are called at one place alone, and those whose calls stay.
#[derive(Clone, Debug)]
pub struct Callers<'m> {
    module: &'m Module,
    single: BTreeSet<Func>,
    /// The functions that no pass inlines.
    kept: BTreeSet<Func>,
}

impl<'m> Callers<'m> {
    /// The callers in a module. Cost: linear in the module.
    pub fn new(module: &'m Module) -> Callers<'m> {
        // By callee: the function of its first call, and the number of its calls.
        let mut calls: BTreeMap<Func, (Func, usize)> = BTreeMap::new();
        for (func, body) in module.defined() {
            for callee in body.all_insts().filter_map(|call| callee(body, call)) {
                calls.entry(callee).or_insert((func, 0)).1 += 1;
            }
        }
        let exposed = exposed(module);
        // A function that calls itself alone is never called.
        let is_single = |(callee, (caller, count)): &(Func, (Func, usize))| {
            *count == 1 && caller != callee && !exposed.contains(callee)
        };
        // A body that comes later, or is left out, may call any function.
        if module.funcs.keys().any(|func| module.awaits_body(func)) {
            calls.clear();
        }
        let single = calls.into_iter().filter(is_single).map(|(callee, _)| callee);
        Callers { module, single: single.collect(), kept: BTreeSet::new() }
    }

    /// The same, with functions whose calls stay: no pass inlines them. The set replaces that of
    /// before.
    pub fn keeping(self, kept: BTreeSet<Func>) -> Callers<'m> {
        Callers { kept, ..self }
    }

    /// The module.
    pub fn module(&self) -> &'m Module {
        self.module
    }

    /// Whether a function is called at one place alone: by one direct call of another function. It
    /// is neither exported nor the start function, and the module has no reference to it. Cost:
    /// logarithmic.
    pub fn is_single(&self, func: Func) -> bool {
        self.single.contains(&func)
    }

    /// The body of a function that may be inlined: its base, unless its calls stay, as those that
    /// make objects do. Cost: logarithmic.
    pub(super) fn inlinable(&self, func: Func) -> Option<&'m Function> {
        let stays = self.kept.contains(&func) || self.module.funcs[func].effect.is_allocator();
        self.module.body(func).filter(|_| !stays)
    }
}

/// The functions that a run may call other than by a direct call: exported functions, the start
/// function, and functions that the module makes references to.
fn exposed(module: &Module) -> BTreeSet<Func> {
    let mut exposed: BTreeSet<Func> = module.exports.iter().filter_map(|e| e.func()).collect();
    exposed.extend(module.start);
    let entries = module.elements.iter().flat_map(|segment| segment.entries.iter().copied());
    let globals = module.globals.values().filter(|global| global.ty == Type::FuncRef);
    let initial = globals.filter_map(|global| global.init.known());
    exposed.extend(entries.chain(initial).filter_map(reference::func));
    for (_, body) in module.defined() {
        for inst in body.all_insts().map(|inst| body.inst(inst)) {
            let bits = inst.constant().filter(|_| inst.ty == Type::FuncRef);
            exposed.extend(bits.and_then(reference::func));
        }
    }
    exposed
}
