//! The slots of one version that hold references, and the points at which they are roots.
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

use super::fast::code::Fast;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::entity::{Point, Value};
use ir::function::Function;
use ir::liveness::Liveness;
use ir::types::Type;

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
    /// collectors leave them unchanged, and fast code does not write their slots. `values` has the
    /// value of each slot. Cost: linear in the values; for a version with references, also the
    /// analyses.
    pub(super) fn new(
        function: &Function,
        values: &[Value],
        fast: Option<&Fast>,
    ) -> Option<Box<RefSlots>> {
        let is_root = |value: &Value| {
            function.value_type(*value) == Type::Ref && function.constant(*value).is_none()
        };
        let placed = (0..).zip(values).filter(|(_, value)| is_root(value));
        let values: Vec<RefSlot> = placed
            .map(|(own, value)| RefSlot {
                value: *value,
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
    /// the values are in the layout of fast code, and `settled` that they were
    /// ([`ActivationFrame::settled`](super::activations::ActivationFrame::settled)).
    pub(super) fn roots(&self, at: Point, is_fast: bool, settled: bool, found: &mut Vec<u32>) {
        let live = self.live.live_before(&self.function, at);
        for RefSlot { value, own, shared } in &self.values {
            // Fast code reads and writes the shared slot alone. A copy that a pause made in the own
            // slot is stale (`slots_that_a_pause_has_shown_are_no_roots`). In settled frames, the
            // own slots of all values of the group have the contents of the shared one.
            let is_root = match shared {
                Some(_) if is_fast || settled => live.contains(*value),
                _ => self.dom.available_at(&self.function, *value, at),
            };
            let slot = shared.filter(|_| is_fast).map_or(*own, u32::from);
            found.extend(is_root.then_some(slot));
        }
    }
}
