//! Lost exits: why no entry leads back from an assumption, and the values to keep so that an entry
//! does.

use crate::driver::{ProvedMapping, Why, mapping_between};
use ir::{Function, Opcode, Point, Value};
use osr::{EdgeOrigin, Obstacle, Reason, Version, VersionGraph};

impl Why {
    /// The reason why no entry leads along a path of versions from a point: the reason of the first
    /// step without an entry, or else of the steps that do not compose. `proved` are the mappings
    /// of the graph. Cost: logarithmic in the points without entries.
    pub(crate) fn along(
        graph: &VersionGraph<'_>,
        proved: &[ProvedMapping],
        path: &[Version],
        from: Point,
    ) -> Why {
        let mut point = from;
        for ends in path.windows(2) {
            let Some(step) = mapping_between(graph, proved, ends) else {
                return Why::Unproved(None);
            };
            let Some(entry) = step.mapping.entry(point) else {
                return step.missing.at(point).copied().unwrap_or(Why::Unproved(None));
            };
            point = entry.target;
        }
        // Each step has an entry, so two steps do not compose.
        let refused = graph.edges().iter().rev().find_map(|edge| match &edge.origin {
            EdgeOrigin::Composed { path: of, refused } if of == path => Some(refused),
            _ => None,
        });
        let why = refused.and_then(|refused: &Vec<_>| {
            let found = refused.binary_search_by_key(&from, |(point, _)| *point);
            found.ok().map(|found| refused[found].1)
        });
        why.map_or(Why::Unproved(None), Why::Refused)
    }

    /// The values that an assumption has to keep for its exit, as values of the version `before`:
    /// the missing value, or the operands of a write that cannot be replayed. Empty if no value is
    /// missing, or if `before` lacks the missing values.
    pub(crate) fn values_to_keep(&self, before: &Function, assuming: &Function) -> Vec<Value> {
        let Why::Obstacle(Obstacle { reason, value, inst, .. }) = self else { return Vec::new() };
        let write = inst.filter(|inst| *reason == Reason::MemoryBehind && assuming.has_inst(*inst));
        let operands = write.into_iter().flat_map(|inst| assuming.inst(inst).args.to_vec());
        let missing = value.iter().copied().chain(operands);
        missing.filter_map(|value| of_before(value, before, assuming)).collect()
    }
}

/// The value of the version `before` that corresponds to a value of the assuming version: the
/// result of an assumption corresponds to its operand.
fn of_before(mut value: Value, before: &Function, assuming: &Function) -> Option<Value> {
    while !before.has_value(value) && assuming.has_value(value) {
        let data = assuming.inst(assuming.defining_inst(value)?);
        value = *data.args.first().filter(|_| data.opcode == Opcode::Assume)?;
    }
    Some(value).filter(|value| before.has_value(*value))
}
