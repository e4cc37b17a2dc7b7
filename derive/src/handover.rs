//! The way out of a base to the frames of an embedder's interpreter.
//!
//! A frame state stands in front of each bytecode, and an assumption may stand within one, such as
//! before the branch that asks for the type of an operand. A run that fails there has executed a
//! part of the bytecode, and no effect of it. So an entry leads from the place of the assumption to
//! the frame state in front, in the same base, and the interpreter executes the bytecode anew.
//!
//! The mapping of these entries is armed wherever runs enter code behind a landing of the base
//! ([`super::landing`]): that code keeps the values that the entries require.

use crate::driver::{NoObserver, prove_graph};
use check::Checked;
use ir::edit::ActionLog;
use ir::{FrameStateError, FrameStates, Function, Module, Point};
use osr::{Level, VersionGraph, VersionTree};
use std::collections::BTreeSet;
use transition::mapping::Mapping;
use transition::{Demand, VersionKey};

/// The entries of a base to itself that leave at `places` and land at points with a frame state,
/// whose values they provide. A place from which no run gets to a state by pure code has no entry.
/// Cost: the proof of one pair of versions.
///
/// # Errors
/// The first state that does not fit the base.
pub fn handover(
    module: &Module,
    base: &Function,
    states: &FrameStates,
    places: &BTreeSet<Point>,
) -> Result<Checked<Mapping>, FrameStateError> {
    let mut tree = VersionTree::new(base.clone());
    tree.set_module(module);
    tree.arm_states(VersionTree::BASE, states)?;
    // A place with a state is the landing point of its own entry.
    tree.land_in_place(VersionTree::BASE);
    let log = ActionLog::empty_for(base);
    let twin = tree.add_replayed(VersionTree::BASE, base.clone(), log);
    tree.leave_at(VersionTree::BASE, BTreeSet::new());
    tree.leave_at(twin, places.clone());
    let pairs = [(VersionTree::BASE, twin)];
    let graph = VersionGraph::build(&tree, &pairs, Level::Avail, Demand::default());
    let mut graph = graph.expect("the empty log leads from the base to its twin");
    let proved = prove_graph(module, &mut graph, &mut NoObserver);
    let to_base = graph.edges().iter().position(|edge| edge.to == VersionTree::BASE);
    let mapping = to_base.and_then(|edge| proved.mappings.into_iter().nth(edge));
    let key = VersionKey::of(base);
    Ok(mapping.map_or_else(|| Checked::nothing(key, key), |made| made.mapping))
}
