//! A machine whose references a collector moves.

use super::Machine;
use crate::ref_roots::{RefRoots, StressCollector, StressMove};

impl Machine {
    /// Makes the machine move every reference with an odd word at each call of an imported function
    /// that it makes itself, as a collector might. Runs that it applies to leave the fast tier. Off
    /// in a new machine.
    pub fn stress_collector(&mut self, moves: bool) {
        self.collector = moves.then(StressCollector::default);
    }

    /// Whether the machine moves references.
    pub fn has_stress_collector(&self) -> bool {
        self.collector.is_some()
    }

    /// The next collection, for an engine that has called an imported function itself: it must
    /// apply the move to all references of the run. `None` in a machine that does not move
    /// references.
    pub fn next_stress(&mut self) -> Option<StressMove> {
        self.collector.as_mut().map(StressCollector::next)
    }

    /// Calls `visit` with the word of each reference that the machine holds, in activations of all
    /// runs and in globals of type `ref`. `visit` may change the word. Zero words are not visited.
    /// Each place is visited once. The caller must own all other references of the program:
    /// references of native code, and references that the caller got as arguments.
    ///
    /// Cost: linear in the activations, in the references of their versions, and in the
    /// instructions of the blocks that they wait in.
    pub fn visit_refs(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        RefRoots {
            activations: &mut self.activations,
            versions: &self.versions,
            suspended: &self.suspended,
            is_fast: self.state.fast,
            globals: &mut self.globals,
            declarations: self.program.declarations(),
        }
        .visit(visit);
    }
}
