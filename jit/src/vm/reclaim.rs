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
//! - *Words of the context and cells of OSR points.* They hold installed code, targets of links,
//!   and stubs. `VmState::point_at_current` and `VmState::link` follow each change; the cells of a
//!   released version lead to a stub. None of these is retired, and stubs are pinned. So are shims
//!   of bound functions ([`super::direct`]), which are exchanged between runs alone.
//! - *Return addresses of native frames.* The walk visits all of them: each entry of the run into
//!   native code has a record here, and the frame pointers lead from the stub that waits to the
//!   trampoline of the entry.
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
//! `tests/mutants/native.mutants` whose names begin with `Freed` break each part of the argument.
//!
//! # Cost
//!
//! A walk is linear in the frames. So a safe point walks a deep stack only after enough code has
//! been retired since the last walk, or after enough requests ([`Pace`]).

use super::state::VmState;
use crate::sys::frames::{NativeFrames, WaitingFrame};
use std::collections::BTreeSet;

/// The number of frames whose visits one retired piece of code, and one request, pay for. A visit
/// takes a few nanoseconds; compiling the piece took some 100,000, and a request takes more than
/// 100.
const FRAMES_OF_PIECE: usize = 1024;
const FRAMES_OF_QUESTION: usize = 16;

/// The entries of a run into native code, the outermost first.
#[derive(Debug, Default)]
pub(super) struct NativeStack {
    /// The frames of each entry while its native code waits for a helper that has recorded them.
    entries: Vec<Option<NativeFrames>>,
    pace: Pace,
}

/// Decides when the frames are walked.
#[derive(Debug, Default)]
struct Pace {
    /// The number of frames that requests have paid for since the last walk.
    paid: usize,
    /// The frames that the last walk has visited.
    visited: usize,
    /// The pieces that the last walk has left retired.
    left: usize,
}

impl Pace {
    /// Records a request while `retired` pieces exist. Returns whether to walk now.
    ///
    /// The stack may have grown since the last walk. The calls that pushed the new frames pay for
    /// visiting them.
    fn ask(&mut self, retired: usize) -> bool {
        let new = retired.saturating_sub(self.left);
        self.paid = self.paid.saturating_add(FRAMES_OF_QUESTION);
        self.paid.saturating_add(new.saturating_mul(FRAMES_OF_PIECE)) >= self.visited
    }

    /// Records a walk.
    fn walked(&mut self, visited: usize, left: usize) {
        *self = Pace { paid: 0, visited, left };
    }
}

impl NativeStack {
    /// Records an entry into native code.
    pub(super) fn enter(&mut self) {
        self.entries.push(None);
    }

    /// Records that the native code of the innermost entry has ended.
    pub(super) fn leave(&mut self) {
        self.entries.pop();
    }

    /// Records that the native code of the innermost entry waits for a helper.
    ///
    /// # Panics
    /// If there is no entry: native code alone calls helpers.
    pub(super) fn wait(&mut self, frames: NativeFrames) {
        *self.innermost() = Some(frames);
    }

    /// Records that the helper returns to native code.
    ///
    /// # Panics
    /// As [`NativeStack::wait`].
    pub(super) fn go_on(&mut self) {
        *self.innermost() = None;
    }

    fn innermost(&mut self) -> &mut Option<NativeFrames> {
        self.entries.last_mut().expect("jit: native code was entered")
    }

    /// Forgets all entries, at the end of a run.
    pub(super) fn clear(&mut self) {
        // The list keeps its room for the next run.
        self.entries.clear();
        self.pace = Pace::default();
    }

    /// Calls `visit` with each frame of native code that waits. Returns `None` if some frames are
    /// not known.
    fn waiting(&self, mut visit: impl FnMut(WaitingFrame)) -> Option<()> {
        for frames in &self.entries {
            (*frames)?.waiting(&mut visit);
        }
        Some(())
    }

    /// Calls `visit` with each address to which native code returns. Returns the number of
    /// addresses, or `None` if some are not known.
    fn return_addresses(&self, mut visit: impl FnMut(usize)) -> Option<usize> {
        let mut count = 0;
        for frames in &self.entries {
            count += (*frames)?.return_addresses(&mut visit);
        }
        Some(count)
    }
}

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

#[cfg(test)]
mod tests {
    use super::{FRAMES_OF_PIECE, FRAMES_OF_QUESTION, Pace};

    /// The number of visited frames stays within a constant factor of the frames paid for. The
    /// number of waiting pieces stays within the depth of the stack divided by [`FRAMES_OF_PIECE`].
    #[test]
    fn walks_are_paid_for() {
        for depth in [0, 1, 5000, 1_000_000] {
            let (mut pace, mut retired, mut visited, mut most) = (Pace::default(), 0, 0, 0);
            pace.walked(depth, 0);
            let questions = 20_000;
            for _ in 0..questions {
                retired += 1;
                if pace.ask(retired) {
                    (visited, retired) = (visited + depth, 0);
                    pace.walked(depth, 0);
                }
                most = most.max(retired);
            }
            assert!(visited <= questions * (FRAMES_OF_PIECE + FRAMES_OF_QUESTION), "{depth}");
            assert!(most <= depth / FRAMES_OF_PIECE + 1, "{depth}: {most} wait");
        }
    }

    /// Once a deep stack is shallow, requests alone free the code that it has kept.
    #[test]
    fn questions_alone_lead_to_a_walk() {
        let mut pace = Pace::default();
        pace.walked(1600, 7);
        let asked = (1..).find(|_| pace.ask(7)).expect("in the end");
        assert_eq!(asked, 1600 / FRAMES_OF_QUESTION);
    }
}
