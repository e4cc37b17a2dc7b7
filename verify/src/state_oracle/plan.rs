//! The plans of the oracle, made once for each pair of versions: the points to record, and entries
//! whose operands are resolved to indices in these records.
//!
//! A point of the version before is a place in the code that the version after consists of: the
//! instance of an original, and an instruction of it. Without inlined code, the only instance is
//! the function itself.

use super::fault::{Analyses, entry_fault};
use super::report::{Difference, EntryFault};
use super::{DEPTHS, FunctionPair};
use check::Copies;
use cranelift_entity::EntityRef;
use ir::{Func, Function, Inst, Opcode, Point, Value};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use transition::copy::InstanceId;
use transition::frames::FramePlace;
use transition::mapping::{CompensationFault, Entry, Mapping, Operand};
use transition::{Pair, Side};

/// An instance, and an instruction of its original. In the version after, the instance is always 0,
/// and the instruction is one of this version.
type CodePlace = (InstanceId, Inst);

/// By function: the plan of its pair; `None` for functions without a pair.
pub(super) type Plans<'a> = [Option<PairPlan<'a>>];

/// The plan for a pair of versions.
#[derive(Debug)]
pub(super) struct PairPlan<'a> {
    pub(super) sides: Pair<SidePlan<'a>>,
    copies: Option<&'a Copies>,
    /// By instance and call of its original: the instance of the callee.
    pub(super) inlined: BTreeMap<CodePlace, InstanceId>,
}

/// The plan for one instruction of one version.
#[derive(Debug)]
pub(super) struct PointPlan {
    /// The instance whose code it is in. 0 in the version after.
    instance: InstanceId,
    pub(super) point: Point,
    /// The function and the instruction of the original: for a point of the version before, where
    /// it is.
    pub(super) original: (Func, Inst),
    /// The number of activations that the activation of the pair's function stands for here. It is
    /// more than 1 in inlined code.
    pub(super) frames: usize,
    /// Whether the runs wait for each other here.
    pub(super) anchor: bool,
    /// Whether a record is made here, because an entry starts or lands here.
    pub(super) recorded: bool,
    /// The values of the innermost activation to record, ascending.
    pub(super) values: Vec<Value>,
    /// The values of waiting activations to record after these, ascending. An activation is its
    /// number, counted from the innermost, 0, outward.
    pub(super) waiting: Vec<(usize, Value)>,
    /// The entry that starts here, as an index of [`SidePlan::entries`].
    pub(super) entry: Option<u32>,
    /// If an entry starts here and the instruction is an assumption: its operand, and the bits
    /// assumed.
    pub(super) assumption: Option<(Value, u64)>,
}

/// The plan for one version of a pair, with the entries from it.
#[derive(Debug, Default)]
pub(super) struct SidePlan<'a> {
    /// By instance and instruction index: an index of `points` plus 1, or 0 if the instruction has
    /// no plan.
    by_inst: Vec<Vec<u32>>,
    pub(super) points: Vec<PointPlan>,
    pub(super) entries: Vec<EntryPlan<'a>>,
    /// Whether this version makes an assumption that the other version lacks. A failing one makes a
    /// run leave for the other version.
    pub(super) may_leave: bool,
}

/// An entry whose operands are resolved.
#[derive(Debug)]
pub(super) struct EntryPlan<'a> {
    pub(super) entry: &'a Entry,
    /// The point before which the run continues, as an index of the points of the other side.
    pub(super) landing: u32,
    /// For each operand of its code, in the order of [`Entry::run`]: an index in the record of the
    /// source point.
    reads: Vec<u32>,
    /// For each assigned value, in the same order: an index in the record of the landing point.
    pub(super) expected: Vec<u32>,
    pub(super) has_code: bool,
    pub(super) has_replays: bool,
    /// The number of its activations less 1, at most `DEPTHS` less 1.
    pub(super) depth: usize,
    pub(super) in_loop: bool,
    /// Whether the entry starts at an assumption: it is the way out when that fails.
    pub(super) is_exit: bool,
    /// The fault that the entry has regardless of the run. It is reported when the source point is
    /// visited.
    pub(super) fault: Option<EntryFault>,
}

impl EntryPlan<'_> {
    /// Runs the code of the entry on the record of its source point, as [`Entry::run`] does.
    ///
    /// # Errors
    /// When a step traps.
    #[inline]
    pub(super) fn run(
        &self,
        recorded: &[u64],
        assign: impl FnMut(usize, Value, u64),
    ) -> Result<(), Difference> {
        let mut reads = self.reads.iter();
        let read = |_| recorded[*reads.next().expect("each operand is resolved") as usize];
        match self.entry.run(read, assign) {
            Ok(_) => Ok(()),
            Err(CompensationFault::Trap { step, kind }) => Err(Difference::Trap { step, kind }),
            Err(CompensationFault::NoObject { func }) => {
                Err(Difference::Entry(EntryFault::NoObject { func }))
            }
            Err(CompensationFault::NoSuchStep { index: step }) => {
                Err(Difference::Entry(EntryFault::NoSuchStep { step }))
            }
        }
    }
}

impl SidePlan<'_> {
    /// The plan of an instruction, as an index of `points`; `None` for an instruction without a
    /// plan. Cost: constant.
    #[inline]
    pub(super) fn point_at(&self, instance: InstanceId, inst: Inst) -> Option<u32> {
        self.by_inst.get(instance)?.get(inst.index())?.checked_sub(1)
    }

    /// The instructions at which the runs wait for each other.
    pub(super) fn anchors(&self) -> impl Iterator<Item = Inst> + '_ {
        self.points.iter().filter(|p| p.anchor).map(|p| p.point.inst())
    }
}

/// The values to record, by place: the activation and the value.
type WantedValues = BTreeMap<CodePlace, BTreeSet<(usize, Value)>>;

/// What an entry needs to be resolved: the point where it lands, or its fault.
type Landings = Vec<Result<CodePlace, EntryFault>>;

impl<'a> PairPlan<'a> {
    /// The plans of both versions of a pair. `bodies` has the originals of inlined code.
    ///
    /// Cost: near linear in the versions and mappings.
    pub(super) fn new(
        pair: &FunctionPair<'a>,
        analyses: Pair<&Analyses<'_>>,
        bodies: &BTreeMap<Func, Analyses<'_>>,
    ) -> PairPlan<'a> {
        let instances = pair.copies.iter().flat_map(|c| c.instances().iter().enumerate());
        let inlined = instances.filter_map(|(id, one)| Some((one.caller?, id))).collect();
        let none = Pair::from_fn(|_| SidePlan::default());
        let mut plan = PairPlan { sides: none, copies: pair.copies, inlined };
        // The order matters: faulty entries have no operands to record, the points follow from the
        // recorded values, and the entries are resolved by the points.
        let mappings = pair.mappings();
        let landings: Pair<Landings> = Pair::from_fn(|side: Side| {
            let judge = |(point, entry)| plan.landing(side, point, entry, analyses, bodies);
            mappings[side].entries().map(judge).collect()
        });
        let wanted = Pair::from_fn(|side| wanted_at(side, &mappings, &landings));
        for side in Side::BOTH {
            let anchors: BTreeSet<CodePlace> = match side {
                Side::Before => pair.anchors.iter().filter_map(|i| plan.anchor(pair, *i)).collect(),
                Side::After => {
                    let is_one = |inst: &&Inst| plan.anchor(pair, **inst).is_some();
                    pair.anchors.iter().filter(is_one).map(|inst| (0, *inst)).collect()
                }
            };
            let points = plan.points(pair, side, &wanted[side], &anchors);
            plan.sides[side].may_leave = has_own_assumption(analyses[side].function, pair.anchors);
            plan.sides[side].by_inst = index_points(&points);
            plan.sides[side].points = points;
        }
        for side in Side::BOTH {
            let all = mappings[side].entries().zip(&landings[side]);
            let entries = all
                .map(|((at, entry), landing)| plan.entry(side, at, entry, landing, analyses[side]));
            plan.sides[side].entries = entries.collect();
        }
        plan
    }

    /// The plan of a function that both runs have in one version. They wait for each other at its
    /// terminators.
    pub(super) fn of_body(func: Func, body: &Function) -> PairPlan<'a> {
        let ends = body.blocks().map(|block| body.terminator(block));
        let ends: BTreeSet<Inst> = ends.collect();
        let plan = |inst: &Inst| PointPlan::new(0, *inst, func, *inst, 1, true);
        let sides = Pair::from_fn(|_| {
            let points: Vec<PointPlan> = ends.iter().map(plan).collect();
            SidePlan { by_inst: index_points(&points), points, ..SidePlan::default() }
        });
        PairPlan { sides, copies: None, inlined: BTreeMap::new() }
    }

    /// The activations that an activation of the version after stands for at an instruction.
    pub(super) fn frames_at(&self, inst: Inst) -> usize {
        let origin = self.copies.and_then(|copies| Some((copies, copies.origin(inst)?)));
        origin.map_or(1, |(copies, (id, at))| copies.stack(id, at).count())
    }

    /// The place in the originals of an anchor of the version after.
    fn anchor(&self, pair: &FunctionPair<'_>, inst: Inst) -> Option<CodePlace> {
        let place = match self.copies {
            Some(copies) => copies.origin(inst)?,
            None => (0, inst),
        };
        (place.0 != 0 || pair.before.has_inst(place.1)).then_some(place)
    }

    /// Where an entry lands.
    ///
    /// # Errors
    /// The fault of the entry.
    fn landing(
        &self,
        side: Side,
        point: Point,
        entry: &Entry,
        analyses: Pair<&Analyses<'_>>,
        bodies: &BTreeMap<Func, Analyses<'_>>,
    ) -> Result<CodePlace, EntryFault> {
        let target = side.other();
        let mut place = (0, entry.target.inst());
        let mut versions: SmallVec<[&Analyses<'_>; 4]> = SmallVec::from_slice(&[analyses[target]]);
        // From the outermost activation inward.
        for frame in entry.inner.iter().rev() {
            let id = self.inlined.get(&place).filter(|id| {
                let copies = self.copies.filter(|_| target == Side::Before);
                copies.is_some_and(|copies| copies.instances()[**id].func == frame.func)
            });
            let id = id.ok_or(EntryFault::NotInlined { call: place.1 })?;
            place = (*id, frame.at.inst());
            versions.insert(0, &bodies[&frame.func]);
        }
        if let Some(at) = entry.places().enumerate().position(|(frame, at)| is_misplaced(frame, at))
        {
            return Err(EntryFault::Misplaced { frame: at });
        }
        match entry_fault(point, entry, analyses[side], &versions) {
            Some(fault) => Err(fault),
            None => Ok(place),
        }
    }

    /// The points of a side.
    fn points(
        &self,
        pair: &FunctionPair<'_>,
        side: Side,
        wanted: &WantedValues,
        anchors: &BTreeSet<CodePlace>,
    ) -> Vec<PointPlan> {
        let mapping = pair.mappings()[side];
        let entries: BTreeMap<CodePlace, u32> =
            mapping.entries().zip(0..).map(|((p, _), index)| ((0, p.inst()), index)).collect();
        let places: BTreeSet<CodePlace> = wanted.keys().chain(anchors).copied().collect();
        let plan = |place: CodePlace| {
            let (id, inst) = place;
            let (original, frames) = match (self.copies, side) {
                (Some(copies), Side::Before) => {
                    ((copies.instances()[id].func, inst), copies.stack(id, inst).count())
                }
                (Some(copies), Side::After) => {
                    let of = |(id, at): CodePlace| (copies.instances()[id].func, at);
                    let original = copies.origin(inst).map_or((pair.func, inst), of);
                    (original, self.frames_at(inst))
                }
                (None, _) => ((pair.func, inst), 1),
            };
            let mut point = PointPlan::new(
                place.0,
                place.1,
                original.0,
                original.1,
                frames,
                anchors.contains(&place),
            );
            point.recorded = wanted.contains_key(&place);
            for (frame, value) in wanted.get(&place).into_iter().flatten() {
                match frame {
                    0 => point.values.push(*value),
                    _ => point.waiting.push((*frame, *value)),
                }
            }
            point.entry = entries.get(&place).copied();
            let version = pair.versions()[side];
            point.assumption = point.entry.and_then(|_| assumption(version, inst));
            point
        };
        places.into_iter().map(plan).collect()
    }

    /// Resolves an entry.
    fn entry(
        &self,
        side: Side,
        point: Point,
        entry: &'a Entry,
        landing: &Result<CodePlace, EntryFault>,
        version: &Analyses<'_>,
    ) -> EntryPlan<'a> {
        let (f, inst) = (version.function, point.inst());
        let in_loop = f.has_inst(inst) && version.loops.innermost(f.inst_block(inst)).is_some();
        let mut plan = EntryPlan {
            entry,
            landing: 0,
            reads: Vec::new(),
            expected: Vec::new(),
            has_code: !entry.is_empty(),
            has_replays: !entry.replays.is_empty(),
            depth: entry.inner.len().min(DEPTHS - 1),
            in_loop,
            is_exit: assumption(f, inst).is_some(),
            fault: landing.clone().err(),
        };
        let Ok((instance, place)) = *landing else { return plan };
        let (own, other) = (&self.sides[side], &self.sides[side.other()]);
        let source = own.point_at(0, inst).expect("the source of an entry has a plan");
        plan.landing = other.point_at(instance, place).expect("so has its landing");
        let steps = entry.steps.iter().flat_map(|step| &step.args);
        let replays = entry.replays.iter().flat_map(|replay| &replay.args);
        let assigns = entry.assign_lists().flatten().map(|assign| &assign.from);
        for operand in steps.chain(replays).chain(assigns) {
            if let Operand::Source(value) = operand {
                plan.reads.push(own.points[source as usize].position(0, *value));
            }
        }
        let landing = &other.points[plan.landing as usize];
        for (frame, assigns) in entry.assign_lists().enumerate() {
            plan.expected.extend(assigns.iter().map(|one| landing.position(frame, one.value)));
        }
        plan
    }
}

impl PointPlan {
    /// A point without a record: an instruction of an instance, which is `original` of `func`.
    fn new(
        instance: InstanceId,
        inst: Inst,
        func: Func,
        original: Inst,
        frames: usize,
        anchor: bool,
    ) -> PointPlan {
        PointPlan {
            instance,
            point: Point::before(inst),
            original: (func, original),
            frames,
            anchor,
            recorded: false,
            values: Vec::new(),
            waiting: Vec::new(),
            entry: None,
            assumption: None,
        }
    }

    /// The index of a value in the record of the point.
    fn position(&self, frame: usize, value: Value) -> u32 {
        let index = match frame {
            0 => self.values.binary_search(&value),
            _ => self.waiting.binary_search(&(frame, value)).map(|at| self.values.len() + at),
        };
        index.expect("the operands of entries without fault are recorded") as u32
    }
}

/// Whether an activation that an entry lands in is where it cannot be: each but the innermost
/// waits.
fn is_misplaced(frame: usize, at: FramePlace) -> bool {
    matches!(at, FramePlace::Within(_)) != (frame > 0)
}

/// Whether a version makes an assumption that the other version lacks: an assumption that is no
/// anchor.
fn has_own_assumption(f: &Function, anchors: &BTreeSet<Inst>) -> bool {
    f.all_insts().any(|i| f.inst(i).opcode == Opcode::Assume && !anchors.contains(&i))
}

/// The values to record at the points of a side: values that its own entries require at source
/// points, and values that entries of the other side provide where they land. Faulty entries need
/// a record without values at their source point, because the fault is reported when that point is
/// visited.
fn wanted_at(side: Side, mappings: &Pair<&Mapping>, landings: &Pair<Landings>) -> WantedValues {
    let mut wanted = WantedValues::new();
    for ((point, entry), landing) in mappings[side].entries().zip(&landings[side]) {
        // No run visits a missing source point. Such a fault is never reported by a run.
        if *landing == Err(EntryFault::NoSuchPoint { point }) {
            continue;
        }
        let values = wanted.entry((0, point.inst())).or_default();
        if landing.is_ok() {
            values.extend(entry.requires.iter().map(|value| (0, *value)));
        }
    }
    let other = side.other();
    for ((_, entry), landing) in mappings[other].entries().zip(&landings[other]) {
        let Ok(place) = landing else { continue };
        let values = wanted.entry(*place).or_default();
        for (frame, assigns) in entry.assign_lists().enumerate() {
            values.extend(assigns.iter().map(|assign| (frame, assign.value)));
        }
    }
    wanted
}

/// The operand of an assumption and the bits assumed; `None` for another instruction, and for one
/// that the version lacks.
fn assumption(version: &Function, inst: Inst) -> Option<(Value, u64)> {
    version.has_inst(inst).then(|| version.inst(inst).assumed())?
}

/// The points, which ascend by place, by instance and instruction.
fn index_points(points: &[PointPlan]) -> Vec<Vec<u32>> {
    let mut by_inst: Vec<Vec<u32>> = Vec::new();
    for (PointPlan { instance, point, .. }, number) in points.iter().zip(1..) {
        let inst = point.inst();
        if by_inst.len() <= *instance {
            by_inst.resize_with(instance + 1, Vec::new);
        }
        let numbers = &mut by_inst[*instance];
        if numbers.len() <= inst.index() {
            numbers.resize(inst.index() + 1, 0);
        }
        numbers[inst.index()] = number;
    }
    by_inst
}
