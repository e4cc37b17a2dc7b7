//! Which of the parameters made for variables stay.
//!
//! A set of parameters is *redundant* when it has only one argument besides its own members: all of
//! them then hold that value (Braun et al., section 3.2; they look for such sets by repeated
//! decomposition into strongly connected components). Here the same sets come from one dominator
//! tree. Take the graph in which values flow: from a root to every value the client made, and from
//! the arguments of a parameter to the parameter. A set P has the only outside argument v exactly
//! when every way from the root into P passes v, that is, when v dominates P. So a parameter is
//! redundant when its immediate dominator is not the root, and equals its outermost dominator but
//! the root. What remains is minimal, in irreducible graphs too: a set of remaining parameters with
//! one outside argument would have been dominated by it. Parameters that no instruction and no
//! parameter in use reads are dropped.

use super::dominators::{Dominators, Graph};
use super::place::{Placement, Source};
use super::variables::Variables;
use crate::entity::Block;
use crate::function::Function;
use crate::types::Type;
use fixedbitset::FixedBitSet;
use std::collections::{BTreeSet, HashMap};

/// The parameters that stay, and what the others are.
#[derive(Debug)]
pub(super) struct Pruned {
    /// By made parameter: itself, or what it is redundant with.
    stands_for: Vec<Source>,
    /// The made parameters that are used and not redundant.
    pub(super) live: FixedBitSet,
    /// The types whose zero the entry block must make.
    pub(super) zeros: Vec<Type>,
}

impl Pruned {
    /// Decides which parameters stay. Cost: near-linear in parameters and their arguments.
    pub(super) fn new(function: &Function, variables: &Variables, placement: &Placement) -> Pruned {
        let mut pruned = Pruned {
            stands_for: representatives(function, placement),
            live: FixedBitSet::with_capacity(placement.params.len()),
            zeros: Vec::new(),
        };
        let mut work = Vec::new();
        for read in variables.accesses.iter().filter_map(|a| a.read) {
            if !function.users(read).is_empty() {
                let source = placement.reads[read].expect("every read is placed");
                pruned.touch(source, &mut work);
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

    /// The blocks that parameters stay in.
    pub(super) fn blocks(&self, placement: &Placement) -> BTreeSet<Block> {
        self.live.ones().map(|param| placement.params[param].block).collect()
    }

    /// What a settled source is once redundant parameters are gone.
    pub(super) fn resolve(&self, source: Source) -> Source {
        match source {
            Source::Param(param) => self.stands_for[param as usize],
            other => other,
        }
    }

    /// Marks what a source in use stands for.
    fn touch(&mut self, source: Source, work: &mut Vec<u32>) {
        match self.resolve(source) {
            Source::Param(param) => {
                if !self.live.put(param as usize) {
                    work.push(param);
                }
            }
            Source::Zero(ty) => {
                if !self.zeros.contains(&ty) {
                    self.zeros.push(ty);
                }
            }
            Source::Value(_) | Source::LocalZero(_) => {}
        }
    }
}

/// By made parameter, the outermost thing all its values come through.
fn representatives(function: &Function, placement: &Placement) -> Vec<Source> {
    let count = placement.params.len();
    // Node 0 is the root, 1..=count the parameters, then the values that flow into them.
    let mut outside: Vec<Source> = Vec::new();
    let mut node_of: HashMap<Source, u32> = HashMap::new();
    let mut edges: Vec<(u32, u32)> = Vec::new();
    for param in 0..count as u32 {
        for &arg in placement.args_of(function, param) {
            let from = match arg {
                Source::Param(other) => other + 1,
                // Zeros of unreachable blocks are each a value of their own.
                Source::LocalZero(_) => new_node(&mut outside, count, arg),
                known => {
                    *node_of.entry(known).or_insert_with(|| new_node(&mut outside, count, known))
                }
            };
            edges.push((from, param + 1));
        }
    }
    edges.extend((0..outside.len()).map(|i| (0, (count + 1 + i) as u32)));
    let graph = Graph::new(count + 1 + outside.len(), edges.iter().copied());
    drop(edges);
    let dominators = Dominators::new(&graph);
    let mut stands_for: Vec<Source> = (0..count as u32).map(Source::Param).collect();
    let source_of = |node: u32, stands_for: &[Source]| match (node as usize).checked_sub(count + 1)
    {
        Some(i) => outside[i],
        None => stands_for[node as usize - 1],
    };
    // A dominator's number is smaller, so what a parameter's dominator stands for is known before.
    for (number, &node) in dominators.order.iter().enumerate().skip(1) {
        let above = dominators.idom[number] as usize;
        if above != 0 && node as usize <= count {
            stands_for[node as usize - 1] = source_of(dominators.order[above], &stands_for);
        }
    }
    stands_for
}

fn new_node(outside: &mut Vec<Source>, params: usize, source: Source) -> u32 {
    outside.push(source);
    (params + outside.len()) as u32
}
