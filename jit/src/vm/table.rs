//! The code that a machine may execute, and the calls and OSR points that lead to it.
//!
//! Each piece of code has a number of *uses*: the function that it is installed for, and the links
//! from it and to it. Code without a use is *retired*. It stays in the table until it is freed,
//! since a frame may return to it ([`super::reclaim`]). Every change costs a logarithm of the
//! pieces (`osr_cost code` measures it), so no operation visits all pieces.

use super::action::PointLink;
use super::bound::Direct;
use super::known_calls::KnownCallSites;
use super::ranges::RangeTable;
use crate::code::MachineCode;
use crate::version::{Continuation, Version};
use cranelift_entity::EntityRef;
use ir::{Func, Signature};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A piece of code.
struct KeptCode {
    code: Arc<MachineCode>,
    uses: usize,
}

/// All code that a machine may execute: installed versions, targets of OSR points, and stubs.
#[derive(Default)]
pub(super) struct CodeTable {
    /// The installed version of each function. The list ends at the last function that ever had a
    /// version.
    installed: Vec<Option<Arc<Version>>>,
    /// The shims of bound functions.
    direct: BTreeMap<Func, Direct>,
    /// The links of all OSR points, by the address of the point's cell.
    links: BTreeMap<usize, PointLink>,
    /// The calls with cells.
    pub(super) known_calls: KnownCallSites,
    /// All code that may be executed, by its addresses.
    codes: RangeTable<KeptCode>,
    /// The callee of the last call that asked, by the address behind the call: a loop asks for one
    /// again and again. Nothing, once code is freed, whose addresses other code may get
    /// (`code_at_the_address_of_freed_code_calls_its_own_functions`).
    last_callee: Cell<Option<(usize, Func)>>,
    /// The most words of the buffer that a piece of code has ever needed.
    buffer_words: usize,
    /// The retired code, by its first addresses.
    retired: BTreeSet<usize>,
    /// The stubs of functions without code, for each signature of a call in the code above.
    lazy: BTreeMap<Signature, Arc<MachineCode>>,
    /// The signatures whose stubs were added since the last [`CodeTable::take_fresh`].
    fresh: Vec<Signature>,
}

impl CodeTable {
    /// The installed version of a function.
    pub(super) fn installed(&self, func: Func) -> Option<&Arc<Version>> {
        self.installed.get(func.index())?.as_ref()
    }

    /// The functions with an installed version.
    pub(super) fn functions(&self) -> impl Iterator<Item = Func> {
        let installed = self.installed.iter().enumerate();
        installed.filter(|(_, version)| version.is_some()).map(|(index, _)| Func::new(index))
    }

    /// Makes a version the installed one of its function.
    pub(super) fn install(&mut self, version: &Arc<Version>) {
        self.hold(&version.code);
        let index = version.func.index();
        self.installed.resize(self.installed.len().max(index + 1), None);
        if let Some(replaced) = self.installed[index].replace(Arc::clone(version)) {
            self.let_go(&replaced.code);
        }
    }

    /// Removes the installed version of a function. Returns whether there was one.
    pub(super) fn uninstall(&mut self, func: Func) -> bool {
        let removed = self.installed.get_mut(func.index()).and_then(Option::take);
        if let Some(version) = &removed {
            self.let_go(&version.code);
        }
        removed.is_some()
    }

    /// The shim of an imported function that is bound.
    pub(super) fn direct(&self, func: Func) -> Option<&Direct> {
        self.direct.get(&func)
    }

    /// All bound functions.
    pub(super) fn bound(&self) -> impl Iterator<Item = (Func, &Direct)> {
        self.direct.iter().map(|(func, direct)| (*func, direct))
    }

    /// Whether some code calls the function for an import at its address. Linear in the pieces of
    /// code.
    pub(super) fn calls_directly(&self, func: Func) -> bool {
        self.codes.values().any(|kept| kept.code.bound.0.contains_key(&func))
    }

    /// Whether any function is bound.
    pub(super) fn has_direct(&self) -> bool {
        !self.direct.is_empty()
    }

    /// Replaces the shim of an imported function.
    pub(super) fn bind(&mut self, func: Func, direct: Option<Direct>) {
        if let Some(direct) = &direct {
            self.hold(&direct.code);
        }
        let replaced = match direct {
            Some(direct) => self.direct.insert(func, direct),
            None => self.direct.remove(&func),
        };
        if let Some(replaced) = replaced {
            self.let_go(&replaced.code);
        }
    }

    /// The stub of functions with a signature, which asks for code. `None` if neither code nor a
    /// typed entry calls with the signature.
    pub(super) fn stub(&self, signature: &Signature) -> Option<&Arc<MachineCode>> {
        self.lazy.get(signature)
    }

    /// The words of the buffer that the code of this machine needs.
    #[inline]
    pub(super) fn buffer_words(&self) -> usize {
        self.buffer_words
    }

    /// Whether [`CodeTable::take_fresh`] would return any signature.
    pub(super) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// The signatures whose stubs were added since the last call.
    pub(super) fn take_fresh(&mut self) -> Vec<Signature> {
        std::mem::take(&mut self.fresh)
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
        // The new link counts first, so code that both links need is never retired.
        link.codes().for_each(|code| self.hold(code));
        if let Some(replaced) = self.links.insert(cell, link) {
            replaced.codes().for_each(|code| self.let_go(code));
        }
    }

    /// Removes a link. Returns whether there was one.
    pub(super) fn unlink(&mut self, cell: usize) -> bool {
        let removed = self.links.remove(&cell);
        if let Some(link) = &removed {
            link.codes().for_each(|code| self.let_go(code));
        }
        removed.is_some()
    }

    /// Whether the points of the target version of a continuation are linked here.
    pub(super) fn has_linked(&self, continuation: &Continuation) -> bool {
        let first = continuation.target.cells.first();
        first.is_none_or(|cell| self.links.contains_key(&std::ptr::from_ref(cell).addr()))
    }

    /// The piece of code that contains an address.
    pub(super) fn code_at(&self, pc: usize) -> Option<&Arc<MachineCode>> {
        self.codes.at(pc).map(|kept| &kept.code)
    }

    /// The function that the call in front of an address calls. `None` if no code contains the
    /// call, or if the call is indirect. Logarithmic.
    pub(super) fn callee_before(&self, returns_to: usize) -> Option<Func> {
        if let Some((known, func)) = self.last_callee.get()
            && known == returns_to
        {
            return Some(func);
        }
        // The return address may lie behind the code, so look up the last byte of the call.
        let call = returns_to - 1;
        let func = self.code_at(call)?.callee_at(call)?;
        self.last_callee.set(Some((returns_to, func)));
        Some(func)
    }

    /// Keeps code that is entered now, and returns its address. Without a use, the code is retired
    /// at once: it stays as long as a frame is in it.
    pub(super) fn keep(&mut self, code: &Arc<MachineCode>) -> *const u8 {
        let start = code.range().start;
        self.buffer_words = self.buffer_words.max(code.buffer);
        if self.codes.insert(code.range(), KeptCode { code: Arc::clone(code), uses: 0 }) {
            self.retired.insert(start);
            code.lazy.iter().for_each(|(signature, stub)| self.provide_stub(signature, stub));
        }
        code.entry()
    }

    /// Provides the stub of functions without code for a signature with which code calls.
    pub(super) fn provide_stub(&mut self, signature: &Signature, stub: &Arc<MachineCode>) {
        if !self.lazy.contains_key(signature) {
            self.pin(stub);
            self.lazy.insert(signature.clone(), Arc::clone(stub));
            self.fresh.push(signature.clone());
        }
    }

    /// Keeps a stub for good, as its engine does, and returns its address. There is one stub for
    /// each kind and signature.
    pub(super) fn pin(&mut self, stub: &Arc<MachineCode>) -> *const u8 {
        self.buffer_words = self.buffer_words.max(stub.buffer);
        self.codes.insert(stub.range(), KeptCode { code: Arc::clone(stub), uses: 1 });
        stub.entry()
    }

    /// Counts a use of code.
    pub(super) fn hold(&mut self, code: &Arc<MachineCode>) {
        self.keep(code);
        let start = code.range().start;
        let kept = self.codes.get_mut(start).expect("jit: code that was just kept");
        kept.uses += 1;
        if kept.uses == 1 {
            self.retired.remove(&start);
        }
    }

    /// Ends a use of code.
    pub(super) fn let_go(&mut self, code: &MachineCode) {
        let start = code.range().start;
        let kept = self.codes.get_mut(start).expect("jit: code in use is kept");
        kept.uses -= 1;
        if kept.uses == 0 {
            self.retired.insert(start);
        }
    }

    /// The number of retired pieces of code.
    pub(super) fn retired(&self) -> usize {
        self.retired.len()
    }

    /// The first address of the retired code that contains an address. Logarithmic.
    pub(super) fn retired_at(&self, pc: usize) -> Option<usize> {
        let start = *self.retired.range(..=pc).next_back()?;
        self.code_at(pc).filter(|code| code.range().start == start).map(|_| start)
    }

    /// Frees the retired code, except the pieces with these first addresses. Linear in the retired
    /// pieces.
    pub(super) fn free_retired(&mut self, except: &BTreeSet<usize>) {
        self.last_callee.set(None);
        let (codes, retired) = (&mut self.codes, &mut self.retired);
        retired.retain(|start| {
            let stays = except.contains(start);
            if !stays {
                codes.remove(*start);
            }
            stays
        });
    }
}
