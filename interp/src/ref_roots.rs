//! The references that a collector may move: the roots of a machine.
//!
//! A value of type `ref` is held as its word. A collector, which runs while a call is in progress,
//! replaces the word of each reference that it moves, in every place that holds one. These places
//! are the slots of activations and the globals; arguments and results belong to the callee or to
//! the caller, never to both.
//!
//! [`RefSlots`](super::ref_slots::RefSlots) tells which slots are roots.

use super::activations::Activations;
use super::globals::Globals;
use super::limits::is_poison;
use super::state::Suspended;
use super::version::MachineVersion;
use cranelift_entity::EntityRef;
use ir::entity::Point;
use ir::module::Module;
use ir::types::Type;

/// Calls its argument with a word that a collector may change.
pub(super) type RefVisitor<'v> = &'v mut dyn FnMut(&mut u64);

/// The parts of a machine that hold references.
pub(super) struct RefRoots<'m> {
    pub(super) activations: &'m mut Activations,
    pub(super) versions: &'m [MachineVersion],
    pub(super) suspended: &'m [Suspended],
    /// Whether the current run is in the layout of fast code.
    pub(super) is_fast: bool,
    pub(super) globals: &'m mut Globals,
    pub(super) declarations: &'m Module,
}

impl RefRoots<'_> {
    /// Calls `visit` with each root but zero words, each once. Linear in the activations, in the
    /// references of their versions and in the instructions of the blocks that they wait in.
    pub(super) fn visit(self, visit: RefVisitor<'_>) {
        let runs = self.suspended.iter().map(|run| (run.floor, run.state.fast));
        let runs: Vec<(usize, bool)> =
            runs.chain([(self.activations.floor(), self.is_fast)]).collect();
        let mut slots = Vec::new();
        for (run, (floor, is_fast)) in runs.iter().enumerate() {
            let end = runs.get(run + 1).map_or(self.activations.frames.len(), |(next, _)| *next);
            for index in *floor..end {
                let frame = self.activations.frames[index];
                let code = self.versions[frame.version as usize].code.decoded();
                let Some(refs) = &code.refs else { continue };
                let inst = code.inst_at(frame.pc).expect("interp: a frame waits at an instruction");
                slots.clear();
                refs.roots(Point::before(inst), *is_fast, frame.settled, &mut slots);
                // Values that share a slot may both be live: they are equal then.
                slots.sort_unstable();
                slots.dedup();
                for slot in &slots {
                    let word = &mut self.activations.stack[frame.base + *slot as usize];
                    if !(frame.landed && is_poison(*word)) {
                        visit_word(word, visit);
                    }
                }
            }
        }
        for (global, decl) in self.declarations.globals.iter() {
            if decl.ty == Type::Ref {
                let mut word = self.globals.get(global.index());
                visit_word(&mut word, visit);
                self.globals.set(global.index(), word);
            }
        }
    }
}

fn visit_word(word: &mut u64, visit: RefVisitor<'_>) {
    if *word != 0 {
        visit(word);
    }
}

/// The collector of [`crate::Machine::stress_collector`]: it moves every reference with an odd
/// word, at each call of an imported function.
///
/// Words with bit 0 clear stand for immediates, which never move. Two versions of a program make
/// the same calls, so their references have the same words at corresponding points.
#[derive(Clone, Debug, Default)]
pub(super) struct StressCollector {
    calls: u64,
}

impl StressCollector {
    /// Moves all references. Cost: as [`RefRoots::visit`].
    pub(super) fn collect(&mut self, roots: RefRoots<'_>) {
        let moved = self.next();
        roots.visit(&mut |word| moved.apply(word));
    }

    /// The next collection.
    pub(super) fn next(&mut self) -> StressMove {
        self.calls += 1;
        // An odd multiplier spreads the number of the call over all bits.
        StressMove { key: self.calls.wrapping_mul(0x9e37_79b9_7f4a_7c15) & !1 }
    }
}

/// One collection of [`crate::Machine::stress_collector`].
#[derive(Clone, Copy, Debug)]
pub struct StressMove {
    key: u64,
}

impl StressMove {
    /// Moves the reference with this word.
    pub fn apply(self, word: &mut u64) {
        if *word & 1 == 1 {
            *word ^= self.key;
        }
    }
}
