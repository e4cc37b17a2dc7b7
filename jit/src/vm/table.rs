//! The code that a machine may execute, and the calls and OSR points that lead to it.

use super::link::PointLink;
use super::ranges::RangeTable;
use crate::code::MachineCode;
use crate::version::{Continuation, Version};
use ir::Func;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// All code that a machine may execute: installed versions, targets of OSR points, and stubs.
#[derive(Default)]
pub(super) struct CodeTable {
    /// The installed version of each function.
    installed: BTreeMap<Func, Arc<Version>>,
    /// The links of all OSR points, by the address of the point's cell.
    links: BTreeMap<usize, PointLink>,
    /// All code that may be executed, by its addresses.
    codes: RangeTable<Arc<MachineCode>>,
    /// Whether `codes` may contain code that is not needed any more.
    is_stale: bool,
    /// The stubs of functions without code, by number of the function.
    lazy: Vec<Arc<MachineCode>>,
}

impl CodeTable {
    /// The installed version of a function.
    pub(super) fn installed(&self, func: Func) -> Option<&Arc<Version>> {
        self.installed.get(&func)
    }

    /// The functions with an installed version.
    pub(super) fn functions(&self) -> impl Iterator<Item = Func> {
        self.installed.keys().copied()
    }

    /// Makes a version the installed one of its function.
    pub(super) fn install(&mut self, version: &Arc<Version>) {
        self.installed.insert(version.func, Arc::clone(version));
    }

    /// Removes the installed version of a function. Returns whether there was one.
    pub(super) fn uninstall(&mut self, func: Func) -> bool {
        let removed = self.installed.remove(&func).is_some();
        self.is_stale |= removed;
        removed
    }

    /// The number of functions that have a stub.
    pub(super) fn stubs(&self) -> usize {
        self.lazy.len()
    }

    /// The stub of a function, which asks for code.
    pub(super) fn stub(&self, func: Func) -> &Arc<MachineCode> {
        &self.lazy[func.as_u32() as usize]
    }

    /// Adds the stub of the next function.
    pub(super) fn add_stub(&mut self, stub: Arc<MachineCode>) {
        self.codes.insert(stub.range(), Arc::clone(&stub));
        self.lazy.push(stub);
    }

    /// The link of the OSR point with a cell at this address.
    pub(super) fn link(&self, cell: usize) -> Option<&PointLink> {
        self.links.get(&cell)
    }

    /// All links.
    pub(super) fn links(&self) -> impl Iterator<Item = &PointLink> {
        self.links.values()
    }

    /// Sets the link of the OSR point with a cell at this address.
    pub(super) fn set_link(&mut self, cell: usize, link: PointLink) {
        self.links.insert(cell, link);
        self.is_stale = true;
    }

    /// Removes a link. Returns whether there was one.
    pub(super) fn unlink(&mut self, cell: usize) -> bool {
        self.is_stale = true;
        self.links.remove(&cell).is_some()
    }

    /// Whether the points of the target version of a continuation are linked here.
    pub(super) fn has_linked(&self, continuation: &Continuation) -> bool {
        let first = continuation.target.cells.first();
        first.is_none_or(|cell| self.links.contains_key(&std::ptr::from_ref(cell).addr()))
    }

    /// The piece of code that contains an address.
    pub(super) fn code_at(&self, pc: usize) -> Option<&Arc<MachineCode>> {
        self.codes.at(pc)
    }

    /// Keeps code as long as it may be executed, and returns its address.
    pub(super) fn keep(&mut self, code: &Arc<MachineCode>) -> *const u8 {
        self.is_stale |= self.codes.insert(code.range(), Arc::clone(code));
        code.entry()
    }

    /// Notes that code may not be needed any more.
    pub(super) fn outdate(&mut self) {
        self.is_stale = true;
    }

    /// Releases code that no call and no OSR point leads to any more. Linear in functions and
    /// points if a link or version has changed. No run may be in progress: it may have frames in
    /// such code.
    pub(super) fn sweep(&mut self) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        let installed = self.installed.values().map(|version| &version.code);
        let linked = self.links.values().flat_map(PointLink::codes);
        let needed: HashSet<usize> = self
            .lazy
            .iter()
            .chain(installed)
            .chain(linked)
            .map(|code| code.range().start)
            .collect();
        self.codes.retain(|start| needed.contains(&start));
    }
}
