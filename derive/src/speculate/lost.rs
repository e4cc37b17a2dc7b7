//! Lost exits: why no entry leads back from an assumption, and the value to keep so that an entry
//! does.

use check::FrameRefusal;
use ir::edit::ActionLog;
use ir::{Function, Inst, Opcode, Point, Value};
use osr::{Edge, EdgeOrigin, Reason, Unmapped, Version, VersionGraph};
use std::collections::BTreeMap;
use std::fmt;
use transition::Refusal;

/// The logs of edges, by their ends. The tree computes a log anew at each request, and thousands of
/// assumptions may lose their exits on one edge.
pub(crate) type EdgeLogs = BTreeMap<(Version, Version), Option<ActionLog>>;

/// Why an assumption has no exit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// A step of the way back has no entry.
    NoEntry {
        /// The reason.
        reason: Reason,
        /// The value that cannot be provided, if that is the reason.
        value: Option<Value>,
        /// The instruction behind the reason, if there is one ([`Unmapped::inst`]).
        inst: Option<Inst>,
        /// The pass and the rewrite of the first action to blame, if one can be named.
        blame: Option<(&'static str, &'static str)>,
    },
    /// The checker did not accept the entry of a step.
    Unproved,
    /// Two steps do not compose.
    Refused(Refusal),
    /// The frames at the end of the way back cannot be made.
    Frames(FrameRefusal),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lost::NoEntry { reason, value, inst, blame } => {
                write!(f, "{reason}")?;
                if let Some(value) = value {
                    write!(f, " (%{value})")?;
                }
                if let Some(inst) = inst {
                    write!(f, " ({inst})")?;
                }
                match blame {
                    Some((pass, "")) => write!(f, ", since {pass}"),
                    Some((pass, rewrite)) => write!(f, ", since {pass} ({rewrite})"),
                    None => Ok(()),
                }
            }
            Lost::Unproved => f.write_str("the checker did not accept the entry"),
            Lost::Refused(refusal) => write!(f, "{refusal}"),
            Lost::Frames(refusal) => write!(f, "{refusal}"),
        }
    }
}

impl Lost {
    /// The name of the reason in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Lost::NoEntry { reason, .. } => reason.name(),
            Lost::Unproved => "unproved",
            Lost::Refused(refusal) => refusal.name(),
            Lost::Frames(refusal) => refusal.name(),
        }
    }

    /// The reason why no entry leads along a path of versions from the point before an instruction.
    /// `graph` has the accepted entries alone. Cost: logarithmic in the points without entries; the
    /// first call for an edge is linear in its log.
    pub(crate) fn find(
        graph: &VersionGraph<'_>,
        path: &[Version],
        inst: Inst,
        logs: &mut EdgeLogs,
    ) -> Lost {
        let mut point = Point::before(inst);
        for ends in path.windows(2) {
            let Some(edge) = graph.edge(ends[0], ends[1]) else { return Lost::Unproved };
            let Some(entry) = edge.mapping.entry(point) else {
                return of_edge(graph, edge, point, logs);
            };
            point = entry.target;
        }
        // Each step has an entry, so two steps do not compose. The composed edge lists the refusal
        // at the point where the path starts.
        let composed = path.first().zip(path.last()).and_then(|(a, b)| graph.edge(*a, *b));
        match composed.map(|edge| &edge.origin) {
            Some(EdgeOrigin::Composed { refused, .. }) => refused
                .binary_search_by_key(&Point::before(inst), |(at, _)| *at)
                .map_or(Lost::Unproved, |found| Lost::Refused(refused[found].1)),
            _ => Lost::Unproved,
        }
    }

    /// The values that an assumption has to keep for its exit, as values of the version `before`:
    /// the missing value, or the operands of a write that cannot be replayed. Empty if no value is
    /// missing, or if `before` lacks the missing values.
    pub(crate) fn missing(&self, before: &Function, assuming: &Function) -> Vec<Value> {
        let Lost::NoEntry { reason, value, inst, .. } = self else { return Vec::new() };
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

/// Why an edge has no entry at a point.
fn of_edge(graph: &VersionGraph<'_>, edge: &Edge, point: Point, logs: &mut EdgeLogs) -> Lost {
    let EdgeOrigin::Built { unmapped, .. } = &edge.origin else { return Lost::Unproved };
    // Both lists of points ascend. A search of the whole list for each lost exit would be
    // quadratic.
    let Ok(found) = unmapped.binary_search_by_key(&point, |u| u.point) else {
        return Lost::Unproved;
    };
    let found = &unmapped[found];
    let tree = graph.tree();
    let log = || tree.log(edge.to, edge.from).or_else(|| tree.log(edge.from, edge.to));
    let log = logs.entry((edge.from, edge.to)).or_insert_with(log);
    let blame = log.as_ref().and_then(|log| blamed(log, found));
    Lost::NoEntry { reason: found.reason, value: found.value, inst: found.inst, blame }
}

fn blamed(log: &ActionLog, unmapped: &Unmapped) -> Option<(&'static str, &'static str)> {
    let origin = log.actions().get(unmapped.blame?)?.origin();
    Some((origin.pass(), origin.rule()))
}
