//! Assumptions about block parameters: that they are copies, or equal to others of their block.
//!
//! A *pinned* parameter is a leaf. Any other parameter is assumed to be a copy of the value that it
//! receives. Pinned parameters of one block that receive the same classes are assumed to be equal,
//! unless they are in different *parts*. Assumptions only grow weaker, until every live edge
//! confirms them.

use crate::{Dense, NO_TERM, TermIndex};
use fixedbitset::FixedBitSet;
use ir::{Block, Edge, Function, Value};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The classes that edges bring to one parameter.
pub type IncomingClasses = SmallVec<[TermIndex; 4]>;

/// The assumptions about the parameters of a function.
#[derive(Debug, Default)]
pub struct CopyAssumptions {
    pinned: FixedBitSet,
    /// Parameters of one block with different numbers have been found to receive different classes.
    part: Dense<Value>,
    parts: u32,
    is_plain: bool,
}

impl CopyAssumptions {
    /// The strongest assumptions about a function.
    pub fn new(f: &Function) -> CopyAssumptions {
        let mut assumptions = CopyAssumptions::default();
        assumptions.reset(f);
        assumptions
    }

    /// Returns to the strongest assumptions.
    pub fn reset(&mut self, f: &Function) {
        self.pinned = FixedBitSet::with_capacity(f.value_bound());
        self.part.reset(f.value_bound());
        self.parts = 0;
        self.is_plain = false;
    }

    /// Assumes nothing from now on: every parameter is a leaf of its own, and every edge is live.
    /// One round then numbers everything.
    pub fn make_plain(&mut self) {
        self.is_plain = true;
        self.pinned.insert_range(..);
    }

    /// Whether nothing is assumed any more.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Whether a parameter is a leaf.
    pub fn is_pinned(&self, param: Value) -> bool {
        self.pinned.contains(param.as_u32() as usize)
    }

    /// Makes a parameter a leaf from now on.
    pub fn pin(&mut self, param: Value) {
        self.pinned.insert(param.as_u32() as usize);
    }

    /// The number that keeps a pinned parameter apart from others of its block that receive the
    /// same classes from `incoming`.
    pub(crate) fn part(&self, param: Value, incoming: &[TermIndex]) -> u32 {
        // Without assumptions each parameter is a leaf of its own, and without live edges there is
        // nothing to group by.
        let is_alone = self.is_plain || incoming.is_empty();
        if is_alone { param.as_u32() } else { self.part.get(param) }
    }

    /// Pins each parameter of a block to which some live edge does not bring the assumed class.
    /// Separates parameters that were assumed to be equal and receive different classes. `class`
    /// gives the class of each value in this round. Returns whether an assumption changed, so that
    /// another round is needed. Cost: linear in the arguments of the edges.
    pub fn revise(
        &mut self,
        f: &Function,
        block: Block,
        edges: &[Edge],
        class: impl Fn(Value) -> TermIndex,
    ) -> bool {
        let mut changed = false;
        let params = f.block_params(block);
        let received = |index: usize| edges.iter().map(move |e| f.target(*e).args[index]);
        let mut groups: BTreeMap<TermIndex, SmallVec<[usize; 2]>> = BTreeMap::new();
        for (index, &param) in params.iter().enumerate() {
            let own = class(param);
            if self.is_pinned(param) {
                groups.entry(own).or_default().push(index);
            } else if received(index).any(|value| class(value) != own) {
                self.pin(param);
                changed = true;
            }
        }
        // Parameters of one leaf must receive equal classes on every edge, back edges included. The
        // first group keeps its number and each other group gets a new one, so that parts only ever
        // split.
        for members in groups.values().filter(|m| m.len() > 1) {
            let mut seen: BTreeMap<IncomingClasses, u32> = BTreeMap::new();
            for &index in members {
                let classes: IncomingClasses = received(index).map(&class).collect();
                let old = self.part.get(params[index]);
                let new = if seen.is_empty() { old } else { self.parts };
                let part = *seen.entry(classes).or_insert(new);
                // The number is spent only if a group has taken it.
                self.parts += u32::from(part == self.parts);
                changed |= old != part;
                self.part.set(params[index], part);
            }
        }
        changed
    }
}

/// The one class that all edges bring to a parameter, if they bring one.
pub(crate) fn same_class(received: &[TermIndex]) -> Option<TermIndex> {
    let (&class, rest) = received.split_first()?;
    (class != NO_TERM && rest.iter().all(|other| *other == class)).then_some(class)
}
