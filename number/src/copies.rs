//! Assumptions about block parameters: that they are copies, or equal to others of their block.
//!
//! A *pinned* parameter is a leaf. Any other parameter is assumed to be a copy of the value that it
//! receives. Pinned parameters of one block that receive the same classes are assumed to be equal,
//! unless they are in different *parts*. Assumptions only grow weaker, until every live edge
//! confirms them.

use crate::{Dense, NO_TERM, TermIndex};
use fixedbitset::FixedBitSet;
use ir::{Block, Edge, Function, Value, ValueDef};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// The classes that edges bring to one parameter.
pub type IncomingClasses = SmallVec<[TermIndex; 4]>;

/// The classes that edges bring to one parameter, each with its part if a parameter of the same
/// block brings it.
type ReceivedParts = SmallVec<[(TermIndex, u32); 4]>;

/// The assumptions about the parameters of a function.
#[derive(Debug, Default)]
pub struct CopyAssumptions {
    pinned: FixedBitSet,
    /// Parameters of one block with different numbers have been found to receive different classes.
    part: Dense<Value>,
    parts: u32,
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
    }

    /// Assumes nothing about these parameters of a block from now on: each is a leaf of its own.
    pub fn give_up(&mut self, params: impl Iterator<Item = Value>) {
        for param in params {
            self.pin(param);
            self.part.set(param, self.parts);
            self.parts += 1;
        }
    }

    /// The number of pinned parameters.
    pub fn count(&self) -> usize {
        self.pinned.count_ones(..)
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
        // Without live edges there is nothing to group by.
        if incoming.is_empty() { param.as_u32() } else { self.part.get(param) }
    }

    /// Pins each parameter of a block to which some live edge does not bring the assumed class.
    /// Separates parameters that were assumed to be equal and receive different classes. `class`
    /// gives the class of each value in this turn. Returns whether an assumption changed, so that
    /// another turn is needed. Cost: linear in the arguments of the edges.
    pub fn revise(
        &mut self,
        f: &Function,
        block: Block,
        edges: &[Edge],
        class: impl Fn(Value) -> TermIndex,
    ) -> bool {
        let params = f.block_params(block);
        let received = |index: usize| edges.iter().map(move |e| f.target(*e).args[index]);
        let mut groups: BTreeMap<TermIndex, SmallVec<[usize; 2]>> = BTreeMap::new();
        let mut failed: Vec<Value> = Vec::new();
        for (index, &param) in params.iter().enumerate() {
            let own = class(param);
            if self.is_pinned(param) {
                groups.entry(own).or_default().push(index);
            } else if received(index).any(|value| class(value) != own) {
                self.pin(param);
                failed.push(param);
            }
        }
        let is_copy_wrong = !failed.is_empty();
        self.pin_receivers(f, block, edges, failed);
        let groups = groups.into_iter().filter(|(_, members)| members.len() > 1).collect();
        self.split(&LeafGroups { f, block, edges, groups }, class) || is_copy_wrong
    }

    /// Splits parameters of one leaf that receive different classes, on any edge. The first group
    /// keeps its number. Each other group gets a new one: parts only ever split. Returns whether
    /// there are any.
    fn split(&mut self, leaves: &LeafGroups<'_>, class: impl Fn(Value) -> TermIndex) -> bool {
        let params = leaves.f.block_params(leaves.block);
        let is_told = leaves.tell_parameters(&class);
        let mut changed = false;
        loop {
            let before: Vec<u32> = params.iter().map(|param| self.part.get(*param)).collect();
            let part_of = |value: Value| match leaves.f.value_def(value) {
                ValueDef::Param(block, index) if is_told && block == leaves.block => {
                    before[index as usize]
                }
                _ => NO_TERM,
            };
            let mut is_split = false;
            for members in leaves.groups.values() {
                let mut seen: BTreeMap<(u32, ReceivedParts), u32> = BTreeMap::new();
                let mut kept: BTreeSet<u32> = BTreeSet::new();
                for &index in members {
                    let old = before[index];
                    let received = leaves.received(index).map(|v| (class(v), part_of(v)));
                    let new = if kept.insert(old) { old } else { self.parts };
                    let part = *seen.entry((old, received.collect())).or_insert(new);
                    // The number is spent only if a group has taken it.
                    self.parts += u32::from(part == self.parts);
                    is_split |= old != part;
                    self.part.set(params[index], part);
                }
            }
            changed |= is_split;
            // Two parameters that a loop hands on become different leaves, and so do those that
            // receive them. Another turn would find that too, one link at a time.
            if !is_split || !is_told {
                return changed;
            }
        }
    }

    /// Pins the parameters of a block that receive one of its pinned parameters over an edge. A
    /// copy has its leaves above the block, and a pinned parameter is a leaf of the block itself.
    /// One turn then settles parameters that a loop hands on from one to the next
    /// (`long_chains_end_in_leaves_of_their_own`).
    fn pin_receivers(&mut self, f: &Function, block: Block, edges: &[Edge], pinned: Vec<Value>) {
        if pinned.is_empty() || self.is_all_pinned(f, block) {
            return;
        }
        let mut receivers: BTreeMap<Value, SmallVec<[Value; 2]>> = BTreeMap::new();
        for edge in edges {
            for (&param, &arg) in f.block_params(block).iter().zip(&f.target(*edge).args) {
                if !self.is_pinned(param) {
                    receivers.entry(arg).or_default().push(param);
                }
            }
        }
        let mut work = pinned;
        while let Some(param) = work.pop() {
            for receiver in receivers.remove(&param).into_iter().flatten() {
                if !self.is_pinned(receiver) {
                    self.pin(receiver);
                    work.push(receiver);
                }
            }
        }
    }

    fn is_all_pinned(&self, f: &Function, block: Block) -> bool {
        f.block_params(block).iter().all(|param| self.is_pinned(*param))
    }
}

/// The pinned parameters of a block that share a leaf with another, by leaf.
struct LeafGroups<'f> {
    f: &'f Function,
    block: Block,
    edges: &'f [Edge],
    groups: BTreeMap<TermIndex, SmallVec<[usize; 2]>>,
}

impl LeafGroups<'_> {
    /// The values that the edges bring to a parameter.
    fn received(&self, index: usize) -> impl Iterator<Item = Value> + '_ {
        self.edges.iter().map(move |e| self.f.target(*e).args[index])
    }

    /// Whether each value received that is one of the leaves is a parameter of the block itself.
    /// A copy of a parameter does not tell which parameter of its leaf it is a copy of.
    fn tell_parameters(&self, class: &impl Fn(Value) -> TermIndex) -> bool {
        let is_param = |value: Value| match self.f.value_def(value) {
            ValueDef::Param(block, _) => block == self.block,
            ValueDef::Result(..) => false,
        };
        let mut received = self.groups.values().flatten().flat_map(|index| self.received(*index));
        received.all(|value| !self.groups.contains_key(&class(value)) || is_param(value))
    }
}

/// The one class that all edges bring to a parameter, if they bring one.
pub(crate) fn same_class(received: &[TermIndex]) -> Option<TermIndex> {
    let (&class, rest) = received.split_first()?;
    (class != NO_TERM && rest.iter().all(|other| *other == class)).then_some(class)
}
