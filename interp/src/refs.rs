//! The references that a collector may move: the roots of a machine.
//!
//! A value of type `ref` is held as its word. A collector, which runs while a call is in progress,
//! replaces the word of each reference that it moves, in every place that holds one. These places
//! are the slots of activations and the globals; arguments and results belong to the callee or to
//! the caller, never to both.
//!
//! A slot is a root where the definition of its value dominates the instruction of its activation.
//! Slots of other values hold garbage of earlier activations, which a collector must not see. A
//! value that is dead counts, too: a transition may still read it. Two cases differ:
//!
//! - Values that share a slot in fast code. At most one of them is live, and the slot holds the
//!   live value; otherwise the slot is garbage.
//! - Values that a transition did not assign, and copies of such values without a reader. They hold
//!   poison, which no collector sees. A later transition that reads one is refused
//!   (`references_that_no_transition_provided_are_not_read`).

use super::activations::{ActivationFrame, Activations};
use super::code::NONE;
use super::fast::data::Fast;
use super::globals::Globals;
use super::limits::is_poison;
use super::machine::Machine;
use super::state::Suspended;
use super::version::MachineVersion;
use cranelift_entity::EntityRef;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::entity::{Point, Value};
use ir::function::Function;
use ir::liveness::Liveness;
use ir::module::Module;
use ir::types::Type;

/// Calls its argument with a word that a collector may change.
pub(super) type RefVisitor<'v> = &'v mut dyn FnMut(&mut u64);

/// The values of type `ref` of one version, and the analyses that tell where they are roots.
#[derive(Clone, Debug)]
pub(super) struct RefSlots {
    function: Function,
    dom: DomTree,
    live: Liveness,
    values: Vec<RefSlot>,
}

/// A value of type `ref` with its slots.
#[derive(Clone, Copy, Debug)]
struct RefSlot {
    value: Value,
    /// The slot in the exact code.
    own: u32,
    /// The slot in the fast code, if the value shares one.
    shared: Option<u16>,
}

impl RefSlots {
    /// The slots of a version; `None` if it has no value of type `ref`. Constants are no roots:
    /// collectors leave them unchanged, and fast code does not write their slots. `slots` gives the
    /// slot of each value id. Cost: linear in the values; for a version with references, also the
    /// analyses.
    pub(super) fn new(
        function: &Function,
        slots: &[u32],
        fast: Option<&Fast>,
    ) -> Option<Box<RefSlots>> {
        let is_root = |value: &Value| {
            function.value_type(*value) == Type::Ref && function.constant(*value).is_none()
        };
        let placed = slots.iter().enumerate().filter_map(|(id, slot)| {
            let value = Value::new(id);
            (*slot != NONE && is_root(&value)).then_some((value, *slot))
        });
        let values: Vec<RefSlot> = placed
            .map(|(value, own)| RefSlot {
                value,
                own,
                shared: fast.and_then(|fast| fast.shared_slot(own)),
            })
            .collect();
        if values.is_empty() {
            return None;
        }
        let cfg = Cfg::new(function);
        let dom = DomTree::new(function, &cfg);
        let live = Liveness::new(function, &cfg);
        Some(Box::new(RefSlots { function: function.clone(), dom, live, values }))
    }

    /// Adds to `found` the slots that are roots of an activation at a point. `is_fast` says that
    /// the values are in the layout of fast code.
    fn roots(&self, frame: &ActivationFrame, at: Point, is_fast: bool, found: &mut Vec<u32>) {
        let live = self.live.live_before(&self.function, at);
        for RefSlot { value, own, shared } in &self.values {
            // Fast code reads and writes the shared slot alone. A copy that a pause made in the own
            // slot is stale (`slots_that_a_pause_has_shown_are_no_roots`). In settled frames, the
            // own slots of all values of the group have the contents of the shared one.
            let is_root = match shared {
                Some(_) if is_fast || frame.settled => live.contains(*value),
                _ => self.dom.available_at(&self.function, *value, at),
            };
            let slot = shared.filter(|_| is_fast).map_or(*own, u32::from);
            found.extend(is_root.then_some(slot));
        }
    }
}

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
                refs.roots(&frame, Point::before(inst), *is_fast, &mut slots);
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

/// The collector of [`Machine::stress_collector`]: it moves every reference with an odd word, at
/// each call of an imported function.
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

    fn next(&mut self) -> StressMove {
        self.calls += 1;
        // An odd multiplier spreads the number of the call over all bits.
        StressMove { key: self.calls.wrapping_mul(0x9e37_79b9_7f4a_7c15) & !1 }
    }
}

/// One collection of [`Machine::stress_collector`].
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
