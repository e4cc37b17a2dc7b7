//! Faults that entries have regardless of the run.

use super::report::EntryFault;
use ir::cfg::Cfg;
use ir::decided::Decided;
use ir::dom::DomTree;
use ir::loops::LoopForest;
use ir::place::Place;
use ir::{Function, Point, Type, Value};
use smallvec::SmallVec;
use transition::mapping::{Entry, Operand, Step};

/// A version with the analyses that plans need.
pub(crate) struct Analyses<'a> {
    pub(crate) function: &'a Function,
    pub(crate) cfg: Cfg,
    pub(crate) decided: Decided,
    dom: DomTree,
    pub(super) loops: LoopForest,
}

impl<'a> Analyses<'a> {
    pub(crate) fn new(function: &'a Function) -> Analyses<'a> {
        let cfg = Cfg::new(function);
        let (dom, loops) = (DomTree::new(function, &cfg), LoopForest::new(function, &cfg));
        Analyses { function, decided: Decided::new(function), dom, loops, cfg }
    }

    /// Whether a value is available at a point; `false` if the version lacks either of them.
    pub(crate) fn has(&self, value: Value, point: Point) -> bool {
        self.dom.available_at(self.function, value, point)
    }
}

/// The fault of an entry that needs no run to show, if any. `landings` are the versions of the
/// activations that the entry lands in, the innermost first.
pub(crate) fn entry_fault(
    point: Point,
    entry: &Entry,
    source: &Analyses<'_>,
    landings: &[&Analyses<'_>],
) -> Option<EntryFault> {
    let places = || entry.places().map(|place| Point::before(place.inst())).zip(landings);
    // Points first: availability at an instruction that the version lacks has no meaning.
    if !source.function.has_inst(point.inst()) {
        return Some(EntryFault::NoSuchPoint { point });
    }
    let lacks = |(at, version): &(Point, &&Analyses<'_>)| !version.function.has_inst(at.inst());
    if let Some((point, _)) = places().find(lacks) {
        return Some(EntryFault::NoSuchPoint { point });
    }
    if let Some(value) = entry.requires.iter().find(|v| !source.has(**v, point)) {
        return Some(EntryFault::RequiredUnavailable { value: *value });
    }
    if let Some(fault) = code_fault(entry, source.function) {
        return Some(fault);
    }
    for ((at, version), assigns) in places().zip(entry.assign_lists()) {
        for assign in assigns {
            if let Some(fault) = operand_fault(assign.from, entry.steps.len(), entry) {
                return Some(fault);
            }
            if !version.has(assign.value, at) {
                return Some(EntryFault::ProvidedUnavailable { value: assign.value });
            }
        }
    }
    None
}

/// The fault of the steps and replays of an entry.
fn code_fault(entry: &Entry, source: &Function) -> Option<EntryFault> {
    for (index, step) in entry.steps.iter().enumerate() {
        if let Some(fault) = step.args.iter().find_map(|arg| operand_fault(*arg, index, entry)) {
            return Some(fault);
        }
        let operands: SmallVec<[Type; 3]> = step
            .args
            .iter()
            .filter_map(|arg| match arg {
                Operand::Source(value) => Some(source.value_type(*value)),
                Operand::Step(index) => {
                    let Step { opcode, ty, .. } = entry.steps[*index as usize];
                    opcode.result_type(ty)
                }
            })
            .collect();
        if !step.accepts(&operands) {
            return Some(EntryFault::MalformedStep { step: index });
        }
    }
    for (index, replay) in entry.replays.iter().enumerate() {
        let place = Place::written(replay.opcode, replay.ty, &replay.imm);
        let count = place.map(|p| if matches!(p, Place::Bytes { .. }) { 2 } else { 1 });
        if count != Some(replay.args.len()) {
            return Some(EntryFault::MalformedReplay { replay: index });
        }
        let fault = |arg: &Operand| operand_fault(*arg, entry.steps.len(), entry);
        if let Some(fault) = replay.args.iter().find_map(fault) {
            return Some(fault);
        }
    }
    None
}

/// The fault of an operand of the step with index `step`, which may read earlier steps only.
fn operand_fault(operand: Operand, step: usize, entry: &Entry) -> Option<EntryFault> {
    match operand {
        Operand::Source(value) if !entry.requires.contains(&value) => {
            Some(EntryFault::NotRequired { value })
        }
        Operand::Step(index) if index as usize >= step => {
            Some(EntryFault::NoSuchStep { step: index as usize })
        }
        _ => None,
    }
}
