//! Loop canonicalization.
//!
//! *Does*: gives every reducible loop a *preheader* (a block outside whose only successor is the
//! header and whose edge alone enters the loop), one latch edge, and exits of its own (no edge from
//! outside leads to where an exit edge leads), each only where missing. [`LoopCanon::PREHEADERS`]
//! is the form that makes nothing but preheaders, and those only where `licm` has a use for one:
//! each costs a jump on the way in.
//!
//! *Does not*: touch irreducible loops.
//!
//! *Needs on entry*: nothing.
//!
//! *Holds on exit*: as said, for every reducible loop.
//!
//! *Actions emitted*: `split_edge` for one edge, `join_edges` for several.
//!
//! *Effect on mappings*: a new block lies on one edge, or on several of which it is then not known
//! which was taken; its points map to before its jump.
//!
//! *Why correct*: a new block does nothing but hand its parameters on.
//!
//! *Cost*: near linear: loops and their border edges; the analysis is done once for each of the
//! three steps, since a block added for one may belong to the border of another.

use ir::cfg::Cfg;
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
    /// Makes every reducible loop canonical.
    pub const FULL: LoopCanon = LoopCanon { name: "loop_canon", only_useful_preheaders: false };
    /// Makes preheaders where `licm` will hoist something into them.
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
                    return;
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

/// For each reducible loop without a preheader whose header is wanted, the edges to put one on.
fn preheader_groups(function: &Function, is_wanted: impl Fn(Block) -> bool) -> Vec<Vec<Edge>> {
    let forest = LoopForest::new(function, &Cfg::new(function));
    let wanted = forest.loops().filter(|l| forest.is_reducible(*l) && is_wanted(forest.header(*l)));
    let missing = wanted.filter(|l| preheader(function, &forest, *l).is_none());
    missing.map(|l| entering_edges(function, &forest, l)).collect()
}

/// For each reducible loop with several edges back to its header, those edges.
fn latch_groups(function: &Function) -> Vec<Vec<Edge>> {
    let forest = LoopForest::new(function, &Cfg::new(function));
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

/// The exit edges that share the block they lead to with other edges, grouped by that block and the
/// innermost reducible loop they leave. An edge that leaves several loops gets one block for all:
/// nothing else leads there, so it is an exit of its own for each of them.
fn exit_groups(function: &Function) -> Vec<Vec<Edge>> {
    let forest = LoopForest::new(function, &Cfg::new(function));
    let mut grouped: BTreeSet<Edge> = BTreeSet::new();
    let mut groups: BTreeMap<(Block, Loop), Vec<Edge>> = BTreeMap::new();
    // Inner loops come after the loops around them.
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
