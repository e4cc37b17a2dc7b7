//! Whether entries provide enough, found without a run.
//!
//! A value that the target version goes on to read and no entry provides is poison there. A run
//! notices only when it goes on after the transition, on an input on which the value matters; so
//! every entry is checked once, when the oracle is made. What has to be provided is *live+*: what
//! is live at the target point when each entry that leaves the target version uses, at its source
//! point, the values it requires. Without the latter, no second transition could follow the first.
//! What only code behind edges that constants keep from being taken would read is not live: see
//! [`Liveness::of_run`]. Should that be wrong of some edge, a run that takes it reads poison, and
//! says so.

use super::plan::Analyses;
use ir::liveness::Liveness;
use ir::{Block, Inst, Value};
use std::cell::LazyCell;
use std::collections::BTreeMap;
use transition::Demand;
use transition::mapping::{Entry, Mapping};

/// A mapping between two of a list of versions: the places of its source and target, and the
/// mapping.
pub(crate) type Edge<'m> = (usize, usize, &'m Mapping);

/// A value that is live+ where an entry lands and that the entry does not provide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Missing {
    /// The place of the mapping in the list of edges.
    pub(crate) edge: usize,
    /// The place of the entry in its mapping.
    pub(crate) entry: u32,
    pub(crate) value: Value,
}

/// All that entries fail to provide, by edge, entry and value. What entries of every mapping that
/// leaves a version require there counts as used. Entries that land at no point of their target
/// version are left out: that is a fault of its own.
///
/// Cost: near linear in versions and mappings, and in what is live at the points of the blocks
/// landed in.
pub(crate) fn find_missing(
    versions: &[Analyses<'_>],
    edges: &[Edge<'_>],
    demand: Demand,
) -> Vec<Missing> {
    let mut missing = Vec::new();
    for (number, target) in versions.iter().enumerate() {
        let mut uses = BTreeMap::new();
        edges.iter().filter(|e| e.0 == number).for_each(|e| add_required(&mut uses, e.2, target));
        let liveness = match demand {
            Demand::Needed => Liveness::of_run(target.function, &target.decided, &uses),
            Demand::Live => Liveness::with_extra_uses(target.function, &target.cfg, &uses),
        };
        // No run comes to such a landing, so that nothing above holds there: all that is read there
        // counts.
        let astray = LazyCell::new(|| Liveness::of_needed(target.function, &target.cfg, &uses));
        for (edge, (_, _, mapping)) in edges.iter().enumerate().filter(|(_, e)| e.1 == number) {
            for (block, landing) in landings(mapping, target) {
                let runs = demand == Demand::Live || target.decided.cfg().is_reachable(block);
                let liveness = if runs { &liveness } else { &*astray };
                liveness.for_each_point(target.function, block, |point, live| {
                    for (entry, provider) in landing.get(&point.inst()).into_iter().flatten() {
                        let lacking = live.iter().filter(|v| !provider.provides_value(*v));
                        missing.extend(lacking.map(|value| Missing { edge, entry: *entry, value }));
                    }
                });
            }
        }
    }
    missing.sort_by_key(|m| (m.edge, m.entry, m.value));
    missing
}

/// Adds what the entries of a mapping require, as uses at their source points. All of it, not only
/// what they declare as kept: what is live in any case adds nothing. What is not available there is
/// a fault of the entry, and no entry could provide it.
fn add_required(uses: &mut BTreeMap<Inst, Vec<Value>>, mapping: &Mapping, source: &Analyses<'_>) {
    for (point, entry) in
        mapping.entries().filter(|(point, _)| source.function.has_inst(point.inst()))
    {
        let values = entry.requires.iter().copied().filter(|v| source.has(*v, point));
        uses.entry(point.inst()).or_default().extend(values);
    }
}

/// The entries that land at an instruction, each with its place in the mapping.
type Landing<'m> = BTreeMap<Inst, Vec<(u32, &'m Entry)>>;

/// The entries of a mapping by the block and the instruction they land at.
fn landings<'m>(mapping: &'m Mapping, target: &Analyses<'_>) -> BTreeMap<Block, Landing<'m>> {
    let mut landings: BTreeMap<Block, Landing<'m>> = BTreeMap::new();
    for (index, (_, entry)) in (0..).zip(mapping.entries()) {
        let inst = entry.target.inst();
        if target.function.has_inst(inst) {
            let block = landings.entry(target.function.inst_block(inst)).or_default();
            block.entry(inst).or_default().push((index, entry));
        }
    }
    landings
}
