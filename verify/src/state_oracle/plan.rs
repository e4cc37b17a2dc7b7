//! The plans of the oracle, made once for each pair of versions: the points to record, and entries
//! whose operands are resolved to indices in these records.

use super::report::EntryFault;
use cranelift_entity::EntityRef;
use ir::cfg::Cfg;
use ir::decided::Decided;
use ir::dom::DomTree;
use ir::loops::LoopForest;
use ir::{Function, Inst, Opcode, Point, Shape, Type, Value, eval};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use transition::mapping::{Entry, Mapping, Operand, Step};
use transition::{Pair, Side};

/// The plan for one instruction of one version.
#[derive(Debug)]
pub(super) struct PointPlan {
    pub(super) point: Point,
    /// Whether the runs wait for each other here.
    pub(super) anchor: bool,
    /// Whether a record is made here, because an entry starts or lands here.
    pub(super) recorded: bool,
    /// The values to record, ascending.
    pub(super) values: Vec<Value>,
    /// The entry that starts here, as an index of [`SidePlan::entries`].
    pub(super) entry: Option<u32>,
    /// If an entry starts here and the instruction is an assumption: its operand, and the bits
    /// assumed.
    pub(super) assumption: Option<(Value, u64)>,
}

/// The plan for one version of a pair, with the entries from it.
#[derive(Debug)]
pub(super) struct SidePlan {
    /// By instruction index: an index of `points` plus 1, or 0 if the instruction has no plan.
    by_inst: Vec<u32>,
    pub(super) points: Vec<PointPlan>,
    pub(super) entries: Vec<EntryPlan>,
    /// Whether this version makes an assumption that the other version lacks. A failing one makes a
    /// run leave for the other version.
    pub(super) may_leave: bool,
}

/// An entry whose operands are resolved.
#[derive(Debug)]
pub(super) struct EntryPlan {
    /// The target point, as an index of the points of the other side.
    pub(super) target: u32,
    pub(super) steps: Vec<StepPlan>,
    pub(super) assigns: Vec<AssignPlan>,
    pub(super) has_code: bool,
    /// The entry itself, if it replays stores.
    pub(super) stores: Option<Entry>,
    pub(super) in_loop: bool,
    /// Whether the entry starts at an assumption: it is the way out when that fails.
    pub(super) is_exit: bool,
    /// The fault that the entry has regardless of the run. It is reported when the source point is
    /// visited.
    pub(super) fault: Option<EntryFault>,
}

/// A step whose operands are resolved.
#[derive(Debug)]
pub(super) struct StepPlan {
    pub(super) opcode: Opcode,
    pub(super) ty: Type,
    pub(super) operand_ty: Type,
    pub(super) bits: u64,
    pub(super) args: SmallVec<[OperandPlace; 3]>,
}

/// The place of an operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum OperandPlace {
    /// An index in the record of the source point.
    Recorded(u32),
    /// The result of the step with this index.
    Step(u32),
}

/// A provided value, with the place of its contents and its index in the record of the target
/// point.
#[derive(Debug)]
pub(super) struct AssignPlan {
    pub(super) value: Value,
    pub(super) from: OperandPlace,
    /// An index in the record of the target point.
    pub(super) expected: u32,
}

impl SidePlan {
    /// The plan of an instruction, as an index of `points`; `None` for an instruction without a
    /// plan. Cost: constant.
    #[inline]
    pub(super) fn point_at(&self, inst: Inst) -> Option<u32> {
        self.by_inst.get(inst.index()).copied().filter(|p| *p != 0).map(|p| p - 1)
    }

    /// The instructions at which the machine calls the watcher.
    pub(super) fn watched(&self) -> impl Iterator<Item = Inst> + '_ {
        self.points.iter().map(|p| p.point.inst())
    }

    /// The instructions at which the runs wait for each other.
    pub(super) fn anchors(&self) -> impl Iterator<Item = Inst> + '_ {
        self.points.iter().filter(|p| p.anchor).map(|p| p.point.inst())
    }
}

/// The values to record, by instruction.
type WantedValues = BTreeMap<Inst, BTreeSet<Value>>;

/// The plans of both versions of a pair.
///
/// Cost: near linear in the versions and mappings.
pub(super) fn plan_pair(
    analyses: Pair<&Analyses<'_>>,
    anchors: &BTreeSet<Inst>,
    mappings: Pair<&Mapping>,
) -> Pair<SidePlan> {
    // The order matters: faulty entries have no operands to record, the points follow from the
    // recorded values, and the entries are resolved by the points.
    let faults: Pair<Vec<Option<EntryFault>>> = Pair::from_fn(|side: Side| {
        find_faults(mappings[side], analyses[side], analyses[side.other()])
    });
    let points = Pair::from_fn(|side: Side| {
        let wanted = wanted_at(side, &mappings, &faults);
        plan_points(&wanted, anchors, mappings[side], analyses[side].function)
    });
    let by_inst = Pair::from_fn(|side: Side| index_points(analyses[side].function, &points[side]));
    let entries = Pair::from_fn(|side: Side| -> Vec<EntryPlan> {
        let resolver = Resolver {
            source: (&by_inst[side], &points[side]),
            target: (&by_inst[side.other()], &points[side.other()]),
            analyses: analyses[side],
        };
        let with_faults = mappings[side].entries().zip(&faults[side]);
        with_faults.map(|((point, entry), fault)| resolver.entry(point, entry, fault)).collect()
    });
    let may_leave = analyses.map(|version| has_own_assumption(version.function, anchors));
    by_inst.zip(points).zip(entries).zip(may_leave).map(
        |(((by_inst, points), entries), may_leave)| SidePlan {
            by_inst,
            points,
            entries,
            may_leave,
        },
    )
}

/// Whether a version makes an assumption that the other version lacks: an assumption that is no
/// anchor.
fn has_own_assumption(f: &Function, anchors: &BTreeSet<Inst>) -> bool {
    f.all_insts().any(|i| f.inst(i).opcode == Opcode::Assume && !anchors.contains(&i))
}

/// A version with the analyses that plans need.
pub(crate) struct Analyses<'a> {
    pub(crate) function: &'a Function,
    pub(crate) cfg: Cfg,
    pub(crate) decided: Decided,
    dom: DomTree,
    loops: LoopForest,
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

/// The fault of each entry of a mapping.
fn find_faults(
    mapping: &Mapping,
    source: &Analyses<'_>,
    target: &Analyses<'_>,
) -> Vec<Option<EntryFault>> {
    mapping.entries().map(|(point, entry)| entry_fault(point, entry, source, target)).collect()
}

/// The fault of an entry that needs no run to show, if any.
pub(crate) fn entry_fault(
    point: Point,
    entry: &Entry,
    source: &Analyses<'_>,
    target: &Analyses<'_>,
) -> Option<EntryFault> {
    // Points first: availability at an instruction that the version lacks has no meaning.
    if !source.function.has_inst(point.inst()) {
        return Some(EntryFault::NoSuchPoint { point });
    }
    if !target.function.has_inst(entry.target.inst()) {
        return Some(EntryFault::NoSuchPoint { point: entry.target });
    }
    if let Some(value) = entry.requires.iter().find(|v| !source.has(**v, point)) {
        return Some(EntryFault::RequiredUnavailable { value: *value });
    }
    for (index, step) in entry.steps.iter().enumerate() {
        if !is_well_formed(step) {
            return Some(EntryFault::MalformedStep { step: index });
        }
        if let Some(fault) = step.args.iter().find_map(|arg| operand_fault(*arg, index, entry)) {
            return Some(fault);
        }
    }
    for (index, replay) in entry.replays.iter().enumerate() {
        let place = ir::place::Place::written(replay.opcode, replay.ty, &replay.imm);
        let count = place.map(|p| if matches!(p, ir::place::Place::Bytes { .. }) { 2 } else { 1 });
        if count != Some(replay.args.len()) {
            return Some(EntryFault::MalformedReplay { replay: index });
        }
        if let Some(fault) =
            replay.args.iter().find_map(|arg| operand_fault(*arg, entry.steps.len(), entry))
        {
            return Some(fault);
        }
    }
    for assign in &entry.assigns {
        if let Some(fault) = operand_fault(assign.from, entry.steps.len(), entry) {
            return Some(fault);
        }
        if !target.has(assign.value, entry.target) {
            return Some(EntryFault::ProvidedUnavailable { value: assign.value });
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

/// Whether `eval` has a meaning for a step: its operation is one on values, and operands and types
/// fit.
fn is_well_formed(step: &Step) -> bool {
    if step.opcode == Opcode::Const {
        return step.args.is_empty();
    }
    if !eval::is_evaluated(step.opcode) || !step.opcode.allows_type(step.ty) {
        return false;
    }
    let (arity, source_fits) = match step.opcode.shape() {
        Shape::IntUnary | Shape::IntTest | Shape::FloatUnary => (1, true),
        Shape::IntBinary | Shape::IntCompare | Shape::FloatBinary | Shape::FloatCompare => {
            (2, true)
        }
        Shape::Extend => (1, step.operand_ty.is_int() && step.operand_ty.bits() < step.ty.bits()),
        Shape::Wrap => (1, step.operand_ty.is_int() && step.operand_ty.bits() > step.ty.bits()),
        Shape::IntToFloat => (1, matches!(step.operand_ty, Type::I32 | Type::I64)),
        Shape::FloatToInt => (1, step.operand_ty.is_float()),
        Shape::Promote => (1, step.operand_ty == Type::F32),
        Shape::Demote => (1, step.operand_ty == Type::F64),
        Shape::Bitcast => (1, step.operand_ty.bits() == step.ty.bits()),
        Shape::Select => (3, step.operand_ty.is_int()),
        Shape::RefTest => (1, step.operand_ty.is_ref()),
        Shape::RefCompare => (2, step.operand_ty == Type::Ref),
        _ => return false,
    };
    step.args.len() == arity && source_fits
}

/// The values to record at the points of a side: values that its own entries require at source
/// points, and values that entries of the other side provide at target points. Faulty entries need
/// a record without values at their source point, because the fault is reported when that point is
/// visited.
fn wanted_at(
    side: Side,
    mappings: &Pair<&Mapping>,
    faults: &Pair<Vec<Option<EntryFault>>>,
) -> WantedValues {
    let mut wanted = WantedValues::new();
    for ((point, entry), fault) in mappings[side].entries().zip(&faults[side]) {
        match fault {
            None => wanted.entry(point.inst()).or_default().extend(&entry.requires),
            // No run visits a missing source point. Such a fault is never reported by a run.
            Some(EntryFault::NoSuchPoint { point: missing }) if *missing == point => {}
            Some(_) => {
                wanted.entry(point.inst()).or_default();
            }
        }
    }
    let other = side.other();
    for ((_, entry), fault) in mappings[other].entries().zip(&faults[other]) {
        if fault.is_none() {
            wanted.entry(entry.target.inst()).or_default().extend(entry.provides());
        }
    }
    wanted
}

fn plan_points(
    wanted: &WantedValues,
    anchors: &BTreeSet<Inst>,
    mapping: &Mapping,
    version: &Function,
) -> Vec<PointPlan> {
    let entries: BTreeMap<Inst, u32> =
        mapping.entries().zip(0..).map(|((p, _), index)| (p.inst(), index)).collect();
    let insts: BTreeSet<Inst> = wanted.keys().chain(anchors).copied().collect();
    let plan = |inst: Inst| PointPlan {
        point: Point::before(inst),
        anchor: anchors.contains(&inst),
        recorded: wanted.contains_key(&inst),
        values: wanted.get(&inst).map(|v| v.iter().copied().collect()).unwrap_or_default(),
        entry: entries.get(&inst).copied(),
        assumption: entries.get(&inst).and_then(|_| assumption(version, inst)),
    };
    insts.into_iter().map(plan).collect()
}

/// The operand of an assumption and the bits assumed; `None` for another instruction, and for one
/// that the version lacks.
fn assumption(version: &Function, inst: Inst) -> Option<(Value, u64)> {
    version.has_inst(inst).then(|| version.inst(inst).assumed())?
}

fn index_points(version: &Function, points: &[PointPlan]) -> Vec<u32> {
    let mut by_inst = vec![0; version.inst_bound()];
    for (plan, number) in points.iter().zip(1..) {
        by_inst[plan.point.inst().index()] = number;
    }
    by_inst
}

/// Resolves the operands of the entries of one direction.
struct Resolver<'a> {
    source: (&'a [u32], &'a [PointPlan]),
    target: (&'a [u32], &'a [PointPlan]),
    analyses: &'a Analyses<'a>,
}

impl Resolver<'_> {
    fn entry(&self, point: Point, entry: &Entry, fault: &Option<EntryFault>) -> EntryPlan {
        let source = self.source.0.get(point.inst().index()).map_or(0, |p| p.saturating_sub(1));
        let in_loop = self.analyses.function.has_inst(point.inst())
            && self
                .analyses
                .loops
                .innermost(self.analyses.function.inst_block(point.inst()))
                .is_some();
        let mut plan = EntryPlan {
            target: 0,
            steps: Vec::new(),
            assigns: Vec::new(),
            has_code: !entry.is_empty(),
            stores: None,
            in_loop,
            is_exit: assumption(self.analyses.function, point.inst()).is_some(),
            fault: fault.clone(),
        };
        if fault.is_none() {
            plan.target = self.target.0[entry.target.inst().index()] - 1;
            plan.stores = (!entry.replays.is_empty()).then(|| entry.clone());
            plan.steps = entry.steps.iter().map(|s| self.step(source, s)).collect();
            plan.assigns = self.assigns(source, plan.target, entry);
        }
        plan
    }

    fn place(&self, source: u32, operand: Operand) -> OperandPlace {
        match operand {
            Operand::Source(value) => {
                OperandPlace::Recorded(position(&self.source.1[source as usize], value))
            }
            Operand::Step(index) => OperandPlace::Step(index),
        }
    }

    fn step(&self, source: u32, step: &Step) -> StepPlan {
        StepPlan {
            opcode: step.opcode,
            ty: step.ty,
            operand_ty: step.operand_ty,
            bits: step.bits & step.ty.mask(),
            args: step.args.iter().map(|a| self.place(source, *a)).collect(),
        }
    }

    fn assigns(&self, source: u32, target: u32, entry: &Entry) -> Vec<AssignPlan> {
        let resolve = |assign: &transition::mapping::Assign| AssignPlan {
            value: assign.value,
            from: self.place(source, assign.from),
            expected: position(&self.target.1[target as usize], assign.value),
        };
        entry.assigns.iter().map(resolve).collect()
    }
}

/// The index of a value in the record of a point.
fn position(plan: &PointPlan, value: Value) -> u32 {
    let index = plan
        .values
        .binary_search(&value)
        .expect("the operands of entries without fault are recorded");
    index as u32
}
