//! Frees code while a run is in progress.
//!
//! Example: an endless loop replaces the version of a function a thousand times. Each time, the
//! previous version is *retired* ([`super::table`]): no call and no OSR point leads to it any more.
//! But an activation of the function may still run in it, further out on the stack. The next *safe
//! point* frees the retired code that no native frame returns to.
//!
//! A safe point is a request to the [`super::Tiering`], before the policy answers. Native code
//! makes requests through two stubs alone, which record their frame. If the interpreter makes the
//! request, all native code waits for it.
//!
//! # Why no freed code is executed
//!
//! An address of retired code, from which control could reach it, can lie in these places:
//!
//! - *Words of the context, cells of OSR points and cells of calls.* They hold installed code,
//!   targets of links, rows for known calls, and stubs. `VmState::point_at_current`,
//!   `VmState::link` and `VmState::link_call` follow each change; the cells of a released version
//!   lead to a stub. None of these is retired, and stubs are pinned. So are shims
//!   of bound functions ([`super::direct`]), which are exchanged between runs alone.
//! - *Return addresses of native frames.* The walk visits all of them: each entry of the run into
//!   native code has a record here, and the frame pointers lead from the stub that waits to the
//!   trampoline of the entry.
//! - *Typed entries.* They have the address of a trampoline, which they keep by a reference, and
//!   which is pinned. The trampoline takes the code of the function from the context at each call.
//! - *Code itself.* Addresses in it are those of pinned stubs, and of functions of the embedder.
//!   These stay: a machine adopts such code only with the functions bound, and neither replaces nor
//!   unbinds one that code of its table calls (`VmState::not_bound`, `VmState::require_unused`).
//! - *Registers and other words of native frames.* The lowering loads the address of code right
//!   before it jumps there, and no safe point comes in between. A frame that waits in a stub has
//!   already used the address of the stub. It loads addresses anew afterwards, because calls write
//!   the alias region of the context.
//! - *Rust frames of this run.* A frame that needs code behind a safe point holds a reference to
//!   it; all others get an address from the table after the last safe point before the jump. The
//!   jump then follows [`super::table::CodeTable::keep`], and retired code that was entered stays
//!   as long as a frame is in it.
//!
//! Handles of the embedder, and tables of other machines that run the same version, hold
//! references. The memory of code is freed with the last one.
//!
//! If some frames are unknown, a safe point frees nothing: a helper that records no frame (growth
//! of a memory, for example) leaves the record of its entry empty. The helpers that call the
//! embedder record their frames, since [`VmState::visit_roots`] needs all frames.
//!
//! `tests/embed/churn.rs` and the judge `fuzz::native::churn` run programs that replace their code
//! all the time. Freed pages are unmapped, so a jump there ends the process. The mutants of
//! `tests/mutants/native.mutants` whose names begin with `Freed` break the parts of the argument
//! about entries, frames and links. `tests/embed/addresses.rs` and `tests/embed/sessions.rs` test
//! the parts about addresses in code and typed entries.
//!
//! # Cost
//!
//! A walk is linear in the frames. So a safe point walks a deep stack only after enough code has
//! been retired since the last walk, or after enough requests ([`super::native_stack::Pace`]).

use super::state::VmState;
use std::collections::BTreeSet;

impl VmState {
    /// Frees retired code to which no frame returns. Called where the run asks the tiering.
    pub(super) fn safe_point(&mut self) {
        let retired = self.table.retired();
        if self.run.is_none() || retired == 0 || !self.native.pace.ask(retired) {
            return;
        }
        let (table, mut held) = (&self.table, BTreeSet::new());
        // The call is the instruction before the return address, and it may be the last one of its
        // code.
        let visited = self.native.return_addresses(|pc| held.extend(table.retired_at(pc - 1)));
        let Some(visited) = visited else { return };
        self.table.free_retired(&held);
        self.native.pace.walked(visited, held.len());
    }
}

impl VmState {
    /// Calls `visit` with the word of each reference of the run that a collector may move, in
    /// frames of native code, in activations of the interpreter and in globals. Zero words are not
    /// visited.
    ///
    /// The embedder calls this while native code waits for a helper that has noted its frames, or
    /// between runs. Linear in the frames and in the references.
    ///
    /// # Panics
    /// If native code waits whose frames are not known.
    pub(super) fn visit_roots(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        let table = &self.table;
        let visited = self.native.waiting(|frame| {
            // The call is the instruction before the return address, and it may be the last one of
            // its code. Stubs and trampolines hold no references across their calls.
            let Some(code) = table.code_at(frame.returns_to - 1) else { return };
            for below in code.roots_at(frame.returns_to) {
                let mut skip_zero = |word: &mut u64| match *word {
                    0 => {}
                    _ => visit(word),
                };
                // SAFETY: the frame waits as long as `self` is borrowed, since native code cannot
                // run meanwhile. `code` contains the call, so `roots_at` has its words. The
                // reference lives for the call of `visit`, which gets no other into the frame.
                unsafe { frame.visit_word(*below, &mut skip_zero) };
            }
        });
        visited.expect("jit: the frames of native code that waits are known");
        self.machine.visit_refs(visit);
    }
}
