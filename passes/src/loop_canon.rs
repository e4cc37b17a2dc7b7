//! Loop canonicalization.
//!
//! *Does*: gives every reducible loop three properties, each only where missing. A *preheader* is a
//! block outside the loop whose only successor is the header, and whose edge is the only edge into
//! the loop. There is a single latch edge. Exits are dedicated: the target of an exit edge has no
//! predecessor outside the loop. [`LoopCanon::PREHEADERS`] is the form that only creates preheaders
//! into which `licm` would move an operation: each preheader costs a jump on the way in.
//!
//! *Does not*: touch irreducible loops.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: the three properties above, for every reducible loop.
//!
//! *Actions emitted*: `split_edge` for one edge, `join_edges` for several.
//!
//! *Effect on mappings*: a new block lies on one edge or on several. With several edges, a
//! transition cannot know which edge the run took. Points of the new block map to the point before
//! its jump.
//!
//! *Why correct*: a new block only passes its parameters on.
//!
//! *Cost*: near linear in loops and their border edges. The pass repeats the loop analysis for each
//! of the three steps, since a block added in one step may belong to the border of another loop.

use ir::edit::{Editor, Pass};
use ir::loops::{Loop, LoopForest};
use ir::{Block, Edge, Function};
use std::collections::{BTreeMap, BTreeSet};

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct LoopCanon {
    name: &'static str,
    only_useful_preheaders: bool,
}

impl LoopCanon {
    /// Gives every reducible loop a preheader, a single latch and dedicated exits.
    pub const FULL: LoopCanon = LoopCanon { name: "loop_canon", only_useful_preheaders: false };
    /// Creates the preheaders into which `licm` will hoist.
    pub const PREHEADERS: LoopCanon =
        LoopCanon { name: "preheaders", only_useful_preheaders: true };
}

impl Pass for LoopCanon {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(&self, ed: &mut Editor<'_>) {
        type Step = (&'static str, fn(&Function) -> Vec<Vec<Edge>>);
        const USEFUL: &[Step] = &[("useful-preheader", useful_preheader_groups)];
        const FULL: &[Step] = &[
            ("preheader", all_preheader_groups),
            ("one-latch", latch_groups),
            ("own-exit", exit_groups),
        ];
        for (rule, groups) in if self.only_useful_preheaders { USEFUL } else { FULL } {
            for edges in groups(ed.func()) {
                if !ed.plan(rule) {
                    continue;
                }
                match edges.as_slice() {
                    [edge] => ed.split_edge(*edge),
                    edges => ed.join_edges(edges),
                };
            }
        }
    }
}

/// The edges that enter a loop from outside, in id order.
pub(crate) fn entering_edges(function: &Function, forest: &LoopForest, id: Loop) -> Vec<Edge> {
    let edges = function.predecessors(forest.header(id)).iter().copied();
    let mut edges: Vec<Edge> =
        edges.filter(|e| !forest.contains(id, function.inst_block(e.inst))).collect();
    edges.sort_unstable();
    edges
}

/// The preheader of a reducible loop, if it has one.
pub(crate) fn preheader(function: &Function, forest: &LoopForest, id: Loop) -> Option<Block> {
    if !forest.is_reducible(id) {
        return None;
    }
    match entering_edges(function, forest, id).as_slice() {
        [edge] if function.inst(edge.inst).targets.len() == 1 => {
            Some(function.inst_block(edge.inst))
        }
        _ => None,
    }
}

fn all_preheader_groups(function: &Function) -> Vec<Vec<Edge>> {
    preheader_groups(function, |_| true)
}

fn useful_preheader_groups(function: &Function) -> Vec<Vec<Edge>> {
    let wanted = crate::licm::wanted_preheaders(function);
    preheader_groups(function, |header| wanted.contains(&header))
}

/// For each reducible loop that lacks a preheader and whose header is wanted, the entering edges.
fn preheader_groups(function: &Function, is_wanted: impl Fn(Block) -> bool) -> Vec<Vec<Edge>> {
    let forest = LoopForest::of(function);
    let wanted = forest.loops().filter(|l| forest.is_reducible(*l) && is_wanted(forest.header(*l)));
    let missing = wanted.filter(|l| preheader(function, &forest, *l).is_none());
    missing.map(|l| entering_edges(function, &forest, l)).collect()
}

/// For each reducible loop with several back edges, these back edges.
fn latch_groups(function: &Function) -> Vec<Vec<Edge>> {
    let forest = LoopForest::of(function);
    let mut groups = Vec::new();
    for id in forest.loops().filter(|l| forest.is_reducible(*l)) {
        let edges = function.predecessors(forest.header(id)).iter().copied();
        let mut edges: Vec<Edge> =
            edges.filter(|e| forest.contains(id, function.inst_block(e.inst))).collect();
        edges.sort_unstable();
        if edges.len() > 1 {
            groups.push(edges);
        }
    }
    groups
}

/// The exit edges whose target has other predecessors, grouped by target and by the innermost
/// reducible loop that they leave. An edge that leaves several loops gets a single block for all
/// these loops. All predecessors of that block are in the loops, so it is a dedicated exit of each.
fn exit_groups(function: &Function) -> Vec<Vec<Edge>> {
    let forest = LoopForest::of(function);
    let mut grouped: BTreeSet<Edge> = BTreeSet::new();
    let mut groups: BTreeMap<(Block, Loop), Vec<Edge>> = BTreeMap::new();
    // Outer loops come before inner ones, so the reverse order assigns an edge to its innermost
    // loop.
    for id in forest.loops().rev().filter(|l| forest.is_reducible(*l)) {
        for &edge in forest.exits(id) {
            if grouped.insert(edge) {
                groups.entry((function.target(edge).block, id)).or_default().push(edge);
            }
        }
    }
    groups.retain(|(block, _), edges| edges.len() < function.predecessors(*block).len());
    groups.into_values().collect()
}
