//! Pruning: the decision which parameters created for variables remain.
//!
//! A set of parameters is *redundant* when it has a single argument besides its own members (Braun
//! et al., section 3.2). All of them then hold that value. Braun et al. find such sets by repeated
//! decomposition into strongly connected components. This module finds the same sets with one
//! dominator tree.
//!
//! Consider the graph of value flow. It has an edge from a root to every value that the client
//! created, and from each argument of a parameter to the parameter. A set P has the single outside
//! argument v exactly when v dominates P: every path from the root into P passes v. A parameter is
//! therefore redundant when its immediate dominator is not the root. It then equals its outermost
//! dominator below the root.
//!
//! The remaining set is minimal, also in irreducible graphs: a set of remaining parameters with one
//! outside argument would have been dominated by that argument. Parameters that no instruction and
//! no used parameter reads are dropped too.

use super::dominators::{AdjacencyLists, Dominators};
use super::place::{Placement, ReadSource};
use super::variables::Variables;
use crate::entity::{Block, Value};
use crate::function::Function;
use crate::types::Type;
use fixedbitset::FixedBitSet;
use std::collections::{BTreeSet, HashMap};

/// The remaining parameters, and the replacements of the removed parameters.
#[derive(Debug)]
pub(super) struct Pruned {
    /// By created parameter: itself, or the source that replaces it.
    stands_for: Vec<ReadSource>,
    /// The created parameters that are used and not redundant.
    pub(super) live: FixedBitSet,
    /// The types for which the entry block must create a zero.
    pub(super) zeros: Vec<Type>,
}

impl Pruned {
    /// Decides which parameters remain. `named` are the values that frame states name. Cost:
    /// near-linear in the number of parameters and their arguments.
    pub(super) fn new(
        function: &Function,
        variables: &Variables,
        named: &BTreeSet<Value>,
        placement: &Placement,
    ) -> Pruned {
        let mut pruned = Pruned {
            stands_for: representatives(function, placement),
            live: FixedBitSet::with_capacity(placement.params.len()),
            zeros: Vec::new(),
        };
        let mut work = Vec::new();
        for read in variables.accesses.iter().filter_map(|a| a.read) {
            let is_used = !function.users(read).is_empty();
            if is_used || named.contains(&read) {
                let source = placement.reads[read].expect("every read is placed");
                // A frame state has a constant for a zero, and needs no instruction.
                if is_used || !matches!(pruned.resolve(source), ReadSource::Zero(_)) {
                    pruned.touch(source, &mut work);
                }
            }
        }
        while let Some(param) = work.pop() {
            for &arg in placement.args_of(function, param) {
                pruned.touch(arg, &mut work);
            }
        }
        pruned.zeros.sort_unstable();
        pruned
    }

    /// The blocks with remaining parameters.
    pub(super) fn blocks(&self, placement: &Placement) -> BTreeSet<Block> {
        self.live.ones().map(|param| placement.params[param].block).collect()
    }

    /// The replacement of a settled source after the redundant parameters are removed.
    pub(super) fn resolve(&self, source: ReadSource) -> ReadSource {
        match source {
            ReadSource::Param(param) => self.stands_for[param as usize],
            other => other,
        }
    }

    /// Marks the replacement of a used source as used.
    fn touch(&mut self, source: ReadSource, work: &mut Vec<u32>) {
        match self.resolve(source) {
            ReadSource::Param(param) => {
                if !self.live.put(param as usize) {
                    work.push(param);
                }
            }
            ReadSource::Zero(ty) => {
                if !self.zeros.contains(&ty) {
                    self.zeros.push(ty);
                }
            }
            ReadSource::Value(_) | ReadSource::LocalZero(_) => {}
        }
    }
}

/// By created parameter: the outermost source through which all its values flow.
fn representatives(function: &Function, placement: &Placement) -> Vec<ReadSource> {
    let count = placement.params.len();
    // Node 0 is the root, nodes 1 to `count` are the parameters, and then come the values that flow
    // into them.
    let mut outside: Vec<ReadSource> = Vec::new();
    let mut node_of: HashMap<ReadSource, u32> = HashMap::new();
    let mut edges: Vec<(u32, u32)> = Vec::new();
    for param in 0..count as u32 {
        for &arg in placement.args_of(function, param) {
            let from = match arg {
                ReadSource::Param(other) => other + 1,
                // Each zero of an unreachable block is a separate value.
                ReadSource::LocalZero(_) => new_node(&mut outside, count, arg),
                known => {
                    *node_of.entry(known).or_insert_with(|| new_node(&mut outside, count, known))
                }
            };
            edges.push((from, param + 1));
        }
    }
    edges.extend((0..outside.len()).map(|i| (0, (count + 1 + i) as u32)));
    let graph = AdjacencyLists::new(count + 1 + outside.len(), edges.iter().copied());
    drop(edges);
    let dominators = Dominators::new(&graph);
    let mut stands_for: Vec<ReadSource> = (0..count as u32).map(ReadSource::Param).collect();
    let source_of =
        |node: u32, stands_for: &[ReadSource]| match (node as usize).checked_sub(count + 1) {
            Some(i) => outside[i],
            None => stands_for[node as usize - 1],
        };
    // A dominator has a smaller number, so its replacement is already final here.
    for (number, &node) in dominators.order.iter().enumerate().skip(1) {
        let above = dominators.idom[number] as usize;
        if above != 0 && node as usize <= count {
            stands_for[node as usize - 1] = source_of(dominators.order[above], &stands_for);
        }
    }
    stands_for
}

fn new_node(outside: &mut Vec<ReadSource>, params: usize, source: ReadSource) -> u32 {
    outside.push(source);
    (params + outside.len()) as u32
}
