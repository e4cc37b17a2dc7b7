//! Calls that lead to a version of their callee that they alone may enter.

use super::action::LinkError;
use super::state::VmState;
use super::table::CodeTable;
use crate::calls::{CallCell, ContextCode};
use crate::code::MachineCode;
use crate::version::{Beginning, Version};
use check::KnownCall;
use ir::{Func, Inst};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// A call with a cell, in code that this machine may execute.
struct KnownCallSite {
    /// The cells of the calling version, which live as long as its code.
    cells: Weak<[CallCell]>,
    number: usize,
    /// The code that the call leads to; `None` for that of other calls.
    row: Option<Arc<MachineCode>>,
}

/// The sites that call one function.
#[derive(Default)]
struct SitesOfCallee {
    /// By the address of the cells and the number of the call. Weak pointers keep the addresses, so
    /// no two versions share one.
    sites: BTreeMap<(usize, usize), KnownCallSite>,
    /// The sites that were left when those of freed code were forgotten last.
    kept: usize,
}

/// Up to so many sites of a function, those of freed code stay.
const FEW_SITES: usize = 16;

/// The calls with a cell, by the function that they call.
#[derive(Default)]
pub(super) struct KnownCallSites(BTreeMap<Func, SitesOfCallee>);

/// The key of a site.
fn site_of(contexts: &ContextCode, number: usize) -> (usize, usize) {
    (Arc::as_ptr(&contexts.cells).cast::<CallCell>().addr(), number)
}

impl KnownCallSites {
    /// Whether the sites of a version were added. Logarithmic.
    fn has(&self, contexts: &ContextCode) -> bool {
        let Some((_, func)) = contexts.calls.first() else { return false };
        self.0.get(func).is_some_and(|of| of.sites.contains_key(&site_of(contexts, 0)))
    }

    fn add(&mut self, contexts: &ContextCode) {
        for (number, (_, func)) in contexts.calls.iter().enumerate() {
            let cells = Arc::downgrade(&contexts.cells);
            let site = KnownCallSite { cells, number, row: None };
            self.0.entry(*func).or_default().sites.insert(site_of(contexts, number), site);
        }
    }

    /// Whether a function has twice the sites that it had when those of freed code were forgotten
    /// last, so that the walk over them costs a constant for each added one.
    fn is_due(&self, func: Func) -> bool {
        self.0.get(&func).is_some_and(|of| of.sites.len() > 2 * of.kept.max(FEW_SITES))
    }
}

impl CodeTable {
    /// Makes the calls of a function that lead to no row lead to this code. Forgets the calls of
    /// code that is freed.
    pub(super) fn lead_calls(&mut self, func: Func, code: *const u8) {
        let Some(of) = self.known_calls.0.get_mut(&func) else { return };
        let mut gone = Vec::new();
        of.sites.retain(|_, site| match site.cells.upgrade() {
            Some(cells) => {
                if site.row.is_none() {
                    cells[site.number].lead_to(code);
                }
                true
            }
            None => {
                gone.extend(site.row.take());
                false
            }
        });
        of.kept = of.sites.len();
        gone.iter().for_each(|code| self.let_go(code));
    }

    /// Makes a call lead to a row, or with `None` forget its row.
    fn lead_call(&mut self, contexts: &ContextCode, number: usize, row: Option<&Arc<MachineCode>>) {
        let entry = row.map(|code| {
            self.hold(code);
            code.entry()
        });
        let (_, func) = contexts.calls[number];
        let of = self.known_calls.0.get_mut(&func);
        let site = of.and_then(|of| of.sites.get_mut(&site_of(contexts, number)));
        let site = site.expect("jit: the call has a site");
        let replaced = std::mem::replace(&mut site.row, row.cloned());
        entry.into_iter().for_each(|code| contexts.cells[number].lead_to(code));
        replaced.iter().for_each(|code| self.let_go(code));
    }

    /// Forgets a row to which calls of a function lead. Returns whether there was one.
    fn forget_row(&mut self, func: Func, code: &Arc<MachineCode>) -> bool {
        let of = self.known_calls.0.get_mut(&func).into_iter();
        let sites = of.flat_map(|of| of.sites.values_mut());
        let leads =
            sites.filter(|site| site.row.as_ref().is_some_and(|row| Arc::ptr_eq(row, code)));
        let gone: Vec<Arc<MachineCode>> = leads.filter_map(|site| site.row.take()).collect();
        gone.iter().for_each(|code| self.let_go(code));
        !gone.is_empty()
    }
}

impl VmState {
    /// Whether this machine has adopted the calls of a version.
    pub(super) fn has_calls(&self, version: &Version) -> bool {
        self.table.known_calls.has(&version.contexts)
    }

    /// Takes up the calls of a version that is adopted, and points them alone to code. Amortized:
    /// logarithmic for each call.
    pub(super) fn adopt_calls(&mut self, version: &Version) {
        if version.contexts.calls.is_empty() || self.has_calls(version) {
            return;
        }
        self.table.known_calls.add(&version.contexts);
        for (cell, (_, func)) in version.contexts.cells.iter().zip(version.calls()) {
            cell.lead_to(self.current_code(*func));
        }
        let called: BTreeSet<Func> = version.calls().iter().map(|(_, func)| *func).collect();
        for func in called {
            if self.table.known_calls.is_due(func) {
                self.point_at_current(func);
            }
        }
    }

    /// Makes a call lead to a row. See [`super::Vm::link_call`].
    pub(super) fn link_call(
        &mut self,
        version: &Arc<Version>,
        call: &KnownCall,
        row: &Arc<Version>,
    ) -> Result<(), LinkError> {
        let number = self.call_number(version, call.call())?;
        let (inst, callee) = version.contexts.calls[number];
        let is_right = (call.caller(), call.callee()) == (version.key, row.key)
            && row.func == callee
            && row.contexts.untested.is_subset(call.holds());
        if !is_right || !matches!(row.begins, Beginning::Calls | Beginning::KnownCalls) {
            return Err(LinkError::OtherCall(inst));
        }
        let first = row.cells.first();
        let is_linked =
            first.is_none_or(|cell| self.table.link(std::ptr::from_ref(cell).addr()).is_some());
        let has_calls = row.contexts.calls.is_empty() || self.has_calls(row);
        if !self.modules.fits(row) || !is_linked || !has_calls {
            return Err(LinkError::NotAdopted);
        }
        if let Some(func) = self.not_bound(row) {
            return Err(LinkError::NotBound(func));
        }
        self.table.lead_call(&version.contexts, number, Some(&row.code));
        Ok(())
    }

    /// Makes a call lead to the code that other calls of its function run.
    pub(super) fn unlink_call(
        &mut self,
        version: &Arc<Version>,
        call: Inst,
    ) -> Result<(), LinkError> {
        let number = self.call_number(version, call)?;
        self.table.lead_call(&version.contexts, number, None);
        let code = self.current_code(version.contexts.calls[number].1);
        version.contexts.cells[number].lead_to(code);
        self.sweep();
        Ok(())
    }

    /// Makes calls that lead to a row lead to the code of other calls.
    pub(super) fn release_row(&mut self, row: &Version) {
        if self.table.forget_row(row.func, &row.code) {
            self.point_at_current(row.func);
        }
    }

    fn call_number(&self, version: &Version, call: Inst) -> Result<usize, LinkError> {
        let number = version.contexts.number(call).ok_or(LinkError::NoSuchCall(call))?;
        if self.has_calls(version) { Ok(number) } else { Err(LinkError::NotAdopted) }
    }
}

impl Version {
    /// How often its calls with a cell were executed so far, by number, in this version and in
    /// continuations into it.
    pub fn call_counts(&self) -> Vec<u64> {
        self.contexts.cells.iter().map(|cell| cell.count.load(Ordering::Relaxed)).collect()
    }

    /// The same of one call, by its number in [`Version::calls`].
    pub fn call_count(&self, number: usize) -> Option<u64> {
        self.contexts.cells.get(number).map(|cell| cell.count.load(Ordering::Relaxed))
    }
}
