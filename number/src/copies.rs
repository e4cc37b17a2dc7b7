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

    /// Splits parameters of one leaf that receive different classes, on any edge. The largest group
    /// keeps its number. Each other group gets a new number: parts only ever split. Returns whether
    /// there are any. Cost: near linear in the arguments of the edges. A parameter changes its part
    /// only with at most half of the others, so it does so a logarithm of times
    /// (`chains_of_parameters_hold_all_entries`).
    fn split(&mut self, leaves: &LeafGroups<'_>, class: impl Fn(Value) -> TermIndex) -> bool {
        let is_told = leaves.tell_parameters(&class);
        let receivers = if is_told { leaves.receivers() } else { BTreeMap::new() };
        let mut parts = LeafParts::default();
        for (leaf, members) in leaves.groups.values().enumerate() {
            members.iter().for_each(|i| {
                parts.add(*i, LeafPart { leaf, part: self.part.get(leaves.param(*i)) })
            });
        }
        let mut asked: BTreeSet<usize> = parts.part_of.keys().copied().collect();
        let mut changed = false;
        // Two parameters that a loop hands on become different leaves, and so do the parameters
        // that receive them. Another turn would find that too, one link at a time.
        while !asked.is_empty() {
            let part_of = |value: Value| match leaves.f.value_def(value) {
                ValueDef::Param(block, _) if is_told && block == leaves.block => {
                    self.part.get(value)
                }
                _ => NO_TERM,
            };
            let received = |index: usize| -> ReceivedParts {
                leaves.received(index).map(|v| (class(v), part_of(v))).collect()
            };
            let split = parts.split(&asked, received);
            changed |= !split.is_empty();
            asked.clear();
            for (from, moved) in split {
                let part = self.parts;
                self.parts += 1;
                for param in moved.iter().map(|index| leaves.param(*index)) {
                    self.part.set(param, part);
                    asked.extend(receivers.get(&param).into_iter().flatten());
                }
                parts.separate(from, part, &moved);
            }
        }
        changed
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
    fn param(&self, index: usize) -> Value {
        self.f.block_params(self.block)[index]
    }

    /// By value: the grouped parameters that receive it.
    fn receivers(&self) -> BTreeMap<Value, SmallVec<[usize; 2]>> {
        let mut receivers: BTreeMap<Value, SmallVec<[usize; 2]>> = BTreeMap::new();
        for &index in self.groups.values().flatten() {
            self.received(index).for_each(|value| receivers.entry(value).or_default().push(index));
        }
        receivers
    }

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

/// A part of a leaf of a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LeafPart {
    leaf: usize,
    part: u32,
}

/// The parts of the leaves of a block. Parameters are named by their index.
#[derive(Default)]
struct LeafParts {
    part_of: BTreeMap<usize, LeafPart>,
    members: BTreeMap<LeafPart, BTreeSet<usize>>,
}

impl LeafParts {
    fn add(&mut self, index: usize, part: LeafPart) {
        self.part_of.insert(index, part);
        self.members.entry(part).or_default().insert(index);
    }

    /// The groups that leave their parts, since they receive other things than the rest. The
    /// parameters in question may receive other arguments than before; all other parameters of a
    /// part still receive the same arguments. The largest group of each part stays.
    fn split(
        &self,
        asked: &BTreeSet<usize>,
        received: impl Fn(usize) -> ReceivedParts,
    ) -> Vec<(LeafPart, Vec<usize>)> {
        let mut by_part: BTreeMap<LeafPart, Vec<usize>> = BTreeMap::new();
        for &index in asked {
            by_part.entry(self.part_of[&index]).or_default().push(index);
        }
        let mut split = Vec::new();
        for (part, asked) in by_part {
            let all = &self.members[&part];
            let mut groups: BTreeMap<ReceivedParts, Vec<usize>> = BTreeMap::new();
            for &index in &asked {
                groups.entry(received(index)).or_default().push(index);
            }
            let is_other = |index: &&usize| asked.binary_search(index).is_err();
            let (others, first) = (all.len() - asked.len(), all.iter().find(is_other));
            let of_others = first.map(|index| received(*index));
            let size = |(what, group): &(&ReceivedParts, &Vec<usize>)| {
                group.len() + if of_others.as_ref() == Some(what) { others } else { 0 }
            };
            let Some(largest) = groups.iter().max_by_key(size) else { continue };
            let stays = match &of_others {
                Some(what) if others >= size(&largest) => what.clone(),
                _ => largest.0.clone(),
            };
            if let Some(what) = of_others.filter(|what| *what != stays) {
                groups.entry(what).or_default().extend(all.iter().filter(is_other));
            }
            groups.remove(&stays);
            split.extend(groups.into_values().map(|group| (part, group)));
        }
        split
    }

    /// Moves parameters from a part to a new part of its leaf.
    fn separate(&mut self, from: LeafPart, part: u32, moved: &[usize]) {
        for index in moved {
            if let Some(members) = self.members.get_mut(&from) {
                members.remove(index);
            }
            self.add(*index, LeafPart { leaf: from.leaf, part });
        }
    }
}

/// The class that all edges bring to a parameter, if it is the same class.
pub(crate) fn same_class(received: &[TermIndex]) -> Option<TermIndex> {
    let (&class, rest) = received.split_first()?;
    (class != NO_TERM && rest.iter().all(|other| *other == class)).then_some(class)
}
