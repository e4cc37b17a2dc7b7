//! Entries between a version and itself: a run in one engine continues in another engine, in the
//! same code.
//!
//! For example, an interpreter executes a loop of a base, and native code of the base is to take
//! over at the loop header. The entry lands where it leaves, and every live value keeps its
//! contents.
//!
//! *Why these entries hold.* Source and target are one function. Suppose that the source version,
//! started on some input, reaches the point. Then the target version, started on the same input,
//! has executed the same instructions at that point: it has the same memory, the same effects and
//! the same contents of every value. The entry executes nothing but constants, so no compensation
//! code can trap or write. A value that is live at a point of strict SSA code has been defined
//! there, so each assignment reads a value that the run has, or computes the constant that the
//! value is: a constant instruction has the same result in each run. The entry assigns all values
//! that the text of the version still reads for needed results, so live+ without armed mappings is
//! provided ([`super::live`] argues that this is enough). Every required value is live at the
//! source point, so an engine keeps no value. No certificate and no claim takes part.
//!
//! *Armed mappings* ([`stay_armed`]). Example: an embedder's interpreter names a register at a loop
//! header, and no instruction behind the header reads it. An accepted mapping out of the version
//! requires it all the same, so that runs can leave for that interpreter. The entry then provides
//! every value that the version or one of these mappings reads behind the point: live+. A value
//! that is live for a mapping alone is dead in the text, so the entry lists it as kept. A mapping
//! under seal may require a value that is not available where it requires it
//! ([`Checked::handing`]). No run need have defined such a value at the point, so a point with one
//! among the values live there has no entry.

use super::Checked;
use super::graph::BlockGraph;
use super::live::{Extra, LiveSets};
use ir::verifier::verify_function;
use ir::{Block, Function, Imm, Module, Opcode, Point, Value};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use transition::VersionKey;
use transition::mapping::{Assign, Entry, Mapping, Operand, Step};

/// The entries of a version to itself at points. Each lands at its own point. A point that the
/// version lacks and a point that no edge leads to have no entry. A version that the verifier
/// refuses has no entries.
///
/// Cost: linear in the version; for each block with a point, a search of the blocks reachable from
/// it.
pub fn stay(module: &Module, version: &Function, points: &BTreeSet<Point>) -> Checked<Mapping> {
    stay_armed(module, version, points, &[])
}

/// As [`stay`], with mappings that leave from the version armed: a run may take their entries
/// later. An entry provides the values that they require, and keeps those that are dead in the
/// version. A mapping of another version arms nothing. A point has no entry if a value that a
/// mapping requires may be undefined there.
///
/// Cost: as [`stay`], and linear in the armed entries.
pub fn stay_armed(
    module: &Module,
    version: &Function,
    points: &BTreeSet<Point>,
    armed: &[&Checked<Mapping>],
) -> Checked<Mapping> {
    let key = VersionKey::of(version);
    let mut mapping = Mapping::between(key, key);
    // Liveness indexes tables by ids, and needs definitions that dominate their uses
    // (`a_version_that_the_verifier_refuses_does_not_stay`).
    if !verify_function(module, version).is_empty() {
        return Checked::accepted(mapping);
    }
    let graph = BlockGraph::new(version, |_| true);
    let mut asked: BTreeMap<Block, BTreeSet<Point>> = BTreeMap::new();
    for point in points.iter().filter(|point| version.has_inst(point.inst())) {
        asked.entry(version.inst_block(point.inst())).or_default().insert(*point);
    }
    asked.retain(|block, _| graph.has(*block));
    let text = live_at(version, &graph, &asked, &Extra::new());
    let mut extra = Extra::new();
    let of_version = armed.iter().filter(|mapping| mapping.source() == key);
    for (point, entry) in of_version.flat_map(|mapping| mapping.entries()) {
        let values = entry.requires.iter().filter(|value| version.has_value(**value));
        extra.entry(point.inst()).or_default().extend(values);
    }
    let all = match extra.is_empty() {
        true => text.clone(),
        false => live_at(version, &graph, &asked, &extra),
    };
    for (point, values) in all {
        if values.iter().all(|value| graph.available(version, *value, point.inst())) {
            mapping.insert(point, unchanged(version, point, values, &text[&point]));
        }
    }
    Checked::accepted(mapping)
}

/// The values that are live at points, which are asked for by block, with additional uses.
fn live_at(
    version: &Function,
    graph: &BlockGraph,
    asked: &BTreeMap<Block, BTreeSet<Point>>,
    extra: &Extra,
) -> BTreeMap<Point, BTreeSet<Value>> {
    let blocks: Vec<Block> = asked.keys().copied().collect();
    let liveness = LiveSets::of_text(version, graph, extra, &blocks);
    let (mut live, mut found) = (liveness.none(), BTreeMap::new());
    for (block, points) in asked {
        liveness.walk(*block, extra, &mut live, |inst, live| {
            let point = Point::before(inst);
            if points.contains(&point) {
                found.insert(point, live.iter().collect());
            }
        });
    }
    found
}

/// The entry that lands at its own source point, and leaves these values unchanged. It computes
/// constants instead of reading them, so the code behind the landing knows them. `live` are the
/// values that the text of the version reads behind the point.
fn unchanged(
    version: &Function,
    target: Point,
    values: BTreeSet<Value>,
    live: &BTreeSet<Value>,
) -> Entry {
    let (mut steps, mut assigns, mut requires) = (Vec::new(), Vec::new(), Vec::new());
    for value in values {
        let from = match literal(version, value) {
            Some(step) => {
                steps.push(step);
                Operand::Step(steps.len() as u32 - 1)
            }
            None => {
                requires.push(value);
                Operand::Source(value)
            }
        };
        assigns.push(Assign { value, from });
    }
    let is_kept = |value: &&Value| !live.contains(value);
    let kept = requires.iter().filter(is_kept).copied().collect();
    let (replays, inner) = Default::default();
    Entry { target, steps, replays, assigns, requires, kept, inner }
}

/// The step that computes a value that is the result of a constant instruction.
fn literal(version: &Function, value: Value) -> Option<Step> {
    let data = version.inst(version.defining_inst(value)?);
    let bits = match data.imm {
        Imm::Bits(bits) if data.opcode == Opcode::Const => bits,
        _ => return None,
    };
    let (opcode, ty, args) = (Opcode::Const, data.ty, SmallVec::new());
    Some(Step { opcode, ty, operand_ty: ty, bits, args })
}
