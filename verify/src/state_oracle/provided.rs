//! Finds the values that entries fail to provide, without a run.
//!
//! If the target version reads a value that no entry provided, it reads poison. A run notices only
//! if it continues after the transition, on an input for which the value matters. So every entry is
//! checked once, when the oracle is made.
//!
//! An entry has to provide the values that are *live+* at its target point. These are the values
//! live there if every entry from the target version uses, at its source point, the values it
//! requires. Without these uses, no second transition could follow the first.
//!
//! A value is not live if only code after excluded edges reads it, which no run takes
//! ([`Liveness::of_run`]). If an edge were excluded by mistake, a run that takes it would read
//! poison and report it.

use super::fault::Analyses;
use ir::liveness::Liveness;
use ir::{Block, Inst, Value};
use std::cell::LazyCell;
use std::collections::BTreeMap;
use transition::Demand;
use transition::mapping::{Entry, Mapping};

/// A mapping on an edge between two versions of a list: the indices of its source and target
/// versions, and the mapping.
pub(crate) type ProvidedEdge<'m> = (usize, usize, &'m Mapping);

/// A value that is live+ at the target point of an entry, and that the entry does not provide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MissingValue {
    /// The index of the mapping in the list of edges.
    pub(crate) edge: usize,
    /// The index of the entry in its mapping.
    pub(crate) entry: u32,
    pub(crate) value: Value,
}

/// All values that entries fail to provide, sorted by edge, entry and value. The values required by
/// entries of every mapping from a version count as used there. Entries whose target point does not
/// exist are left out, because that is a fault of its own; so are entries that land in several
/// activations, which need what is live behind a call.
///
/// Cost: near linear in the versions, the mappings, and the values live in blocks with target
/// points.
pub(crate) fn find_missing(
    versions: &[Analyses<'_>],
    edges: &[ProvidedEdge<'_>],
    demand: Demand,
) -> Vec<MissingValue> {
    let mut missing = Vec::new();
    for (number, target) in versions.iter().enumerate() {
        let mut uses = BTreeMap::new();
        edges.iter().filter(|e| e.0 == number).for_each(|e| add_required(&mut uses, e.2, target));
        let liveness = match demand {
            Demand::Needed => Liveness::of_run(target.function, &target.decided, &uses),
            Demand::Live => Liveness::with_extra_uses(target.function, &target.cfg, &uses),
        };
        // The argument for excluded edges is about runs, and no run visits a target point in
        // unreachable code. There, every read counts. Computed on demand: correct mappings have no
        // such entry.
        let astray = LazyCell::new(|| Liveness::of_needed(target.function, &target.cfg, &uses));
        for (edge, (_, _, mapping)) in edges.iter().enumerate().filter(|(_, e)| e.1 == number) {
            for (block, landing) in landings(mapping, target) {
                let runs = demand == Demand::Live || target.decided.cfg().is_reachable(block);
                let liveness = if runs { &liveness } else { &*astray };
                liveness.for_each_point(target.function, block, |point, live| {
                    for (entry, provider) in landing.get(&point.inst()).into_iter().flatten() {
                        let lacking = live.iter().filter(|v| !provider.provides_value(*v));
                        missing.extend(lacking.map(|value| MissingValue {
                            edge,
                            entry: *entry,
                            value,
                        }));
                    }
                });
            }
        }
    }
    missing.sort_by_key(|m| (m.edge, m.entry, m.value));
    missing
}

/// Adds the values that the entries of a mapping require, as uses at their source points. Adds all
/// required values, not only kept values: a use of a live value adds nothing. A required value that
/// is unavailable at its source point adds nothing: this is a fault of its own entry, and no other
/// entry could provide the value.
fn add_required(uses: &mut BTreeMap<Inst, Vec<Value>>, mapping: &Mapping, source: &Analyses<'_>) {
    for (point, entry) in
        mapping.entries().filter(|(point, _)| source.function.has_inst(point.inst()))
    {
        let values = entry.requires.iter().copied().filter(|v| source.has(*v, point));
        uses.entry(point.inst()).or_default().extend(values);
    }
}

/// The entries with one target point, each with its index in the mapping.
type Landing<'m> = BTreeMap<Inst, Vec<(u32, &'m Entry)>>;

/// The entries of a mapping by the block and the instruction of their target point.
fn landings<'m>(mapping: &'m Mapping, target: &Analyses<'_>) -> BTreeMap<Block, Landing<'m>> {
    let mut landings: BTreeMap<Block, Landing<'m>> = BTreeMap::new();
    for (index, (_, entry)) in (0..).zip(mapping.entries()) {
        let inst = entry.target.inst();
        if entry.inner.is_empty() && target.function.has_inst(inst) {
            let block = landings.entry(target.function.inst_block(inst)).or_default();
            block.entry(inst).or_default().push((index, entry));
        }
    }
    landings
}
