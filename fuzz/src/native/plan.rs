//! Plans the compiled points of a pair of versions, and the condition under which each fires.

use check::{Checked, CheckedEntry};
use cranelift_entity::EntityRef;
use interp::{Machine, VersionId};
use ir::decided::Decided;
use ir::liveness::Liveness;
use ir::{Func, Function, Inst, Opcode, Point};
use jit::{Bounds, Condition, Config, Effort, Exits, Interruption, Nans, PointSpec, Version};
use resume::Truth;
use std::collections::BTreeSet;
use std::sync::Arc;
use transition::mapping::{Entry, Mapping};
use verify::prng::Prng;
use verify::state_oracle::FunctionPair;

/// One plan in this many compiles every mapped point. Points multiply the size of code, so other
/// plans have [`POINTS`] per version.
const WHOLE_ONE_IN: u32 = 12;
/// The most points per version of the other plans.
const POINTS: usize = 10;

/// The configuration of the compiler, drawn from the seed. It mostly has the least effort: the
/// oracle tests our lowering, not the optimizer of the backend.
pub(super) fn config(nans: Nans, prng: &mut Prng) -> Config {
    Config {
        bounds: if prng.chance(70) { Bounds::Guarded } else { Bounds::Checked },
        interruption: match prng.below(8) {
            0 => Interruption::Signal,
            1 => Interruption::Fuel,
            _ => Interruption::Never,
        },
        effort: if prng.chance(90) { Effort::Least } else { Effort::Most },
        exits: if prng.chance(50) { Exits::Stored } else { Exits::Described },
        trace: true,
        checked: prng.chance(2),
        nans,
        ..Config::default()
    }
}

/// One version of a function and its points.
pub(super) struct Half {
    pub(super) function: Function,
    /// The mapping to the other version.
    pub(super) mapping: Checked<Mapping>,
    pub(super) points: Vec<PointSpec>,
    /// Whether each point may fire in both versions: it is an anchor that lands at itself, so the
    /// run executes the anchor after the transition.
    anchors: Vec<bool>,
    /// Whether the flag of each point is set.
    pub(super) armed: Vec<bool>,
    /// Whether each point has fired.
    pub(super) fired: Vec<bool>,
    /// The way out of each point.
    pub(super) ways: Vec<Way>,
    /// By point of an assumption: the number of times that the run left there.
    pub(super) left: Vec<u64>,
    /// The number of each point for `--osr-at-static`.
    pub(super) numbers: Vec<u64>,
    /// The point before each instruction, or [`NONE`].
    by_inst: Vec<u32>,
    /// Whether each instruction is an anchor.
    is_anchor: Vec<bool>,
    /// Whether [`jit::VersionSpec::leaving`] makes the points.
    pub(super) is_of_assumptions: bool,
    /// The compiled version. `None` until it is compiled.
    pub(super) version: Option<Arc<Version>>,
}

const NONE: u32 = u32::MAX;

/// The way by which native code leaves at a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// It requests a continuation, and shows the values of the point.
    Ask,
    /// The interpreter runs the activation to its end in the base.
    Interpret,
    /// It calls the policy's handler of failed assumptions, which names a continuation.
    Enter,
    /// It goes to a continuation without a request.
    Link,
}

impl Half {
    fn new(function: &Function, mapping: &Mapping, all: &BTreeSet<Inst>) -> Half {
        let mut is_anchor = vec![false; function.inst_bound()];
        all.iter().for_each(|inst| is_anchor[inst.index()] = true);
        let entries: Vec<(Point, &Entry)> = mapping.entries().collect();
        let anchor = |(point, entry): &(Point, &Entry)| {
            entry.target == *point && is_anchor[point.inst().index()]
        };
        let anchors = entries.iter().map(anchor).collect();
        let is_assumption = |at: &Point| function.inst(at.inst()).opcode == Opcode::Assume;
        let points = entries.iter().map(|(at, entry)| PointSpec {
            at: *at,
            condition: if is_assumption(at) { Condition::Failing } else { Condition::Flag },
            values: entry.requires.clone(),
        });
        let points: Vec<PointSpec> = points.collect();
        let count = points.len();
        let mut side = Half {
            function: function.clone(),
            mapping: Checked::unproved(mapping.clone()),
            points,
            anchors,
            armed: vec![false; count],
            fired: vec![false; count],
            ways: vec![Way::Ask; count],
            left: vec![0; count],
            is_of_assumptions: false,
            numbers: vec![0; count],
            by_inst: Vec::new(),
            is_anchor,
            version: None,
        };
        side.number();
        side
    }

    /// Extends the values of each point to all values that the rest of a run reads. The run can
    /// then also continue in the same version. Further available values are left out: an entry that
    /// lands above the point does not provide them.
    fn keep_live(&mut self) {
        let uses = self.points.iter().map(|spec| (spec.at.inst(), spec.values.clone())).collect();
        let liveness = Liveness::of_run(&self.function, &Decided::new(&self.function), &uses);
        for block in self.function.blocks() {
            liveness.for_each_point(&self.function, block, |point, live| {
                let at = self.by_inst[point.inst().index()];
                if let Some(spec) = self.points.get_mut(at as usize) {
                    spec.values.extend(live.iter());
                    spec.values.sort_unstable();
                    spec.values.dedup();
                }
            });
        }
    }

    fn number(&mut self) {
        self.by_inst = vec![NONE; self.function.inst_bound()];
        for (number, point) in (0..).zip(&self.points) {
            self.by_inst[point.at.inst().index()] = number;
        }
    }

    /// The point before an instruction, if it has one.
    pub(super) fn point_at(&self, inst: Inst) -> Option<usize> {
        Some(self.by_inst[inst.index()]).filter(|point| *point != NONE).map(|point| point as usize)
    }

    pub(super) fn is_anchor(&self, inst: Inst) -> bool {
        self.is_anchor[inst.index()]
    }

    pub(super) fn entry(&self, point: usize) -> CheckedEntry<'_> {
        self.mapping.checked_entry(self.points[point].at).expect("points are mapped points")
    }

    /// Draws the conditions of the points that may fire. Most wait for their flags; points with
    /// other conditions fire in every run.
    fn draw(&mut self, active: bool, has_always: bool, prng: &mut Prng) {
        // At most one point fires always: every visit makes a transition there, so the code after
        // it never runs in this version.
        let mut always = prng.chance(12) && has_always;
        for point in 0..self.points.len() {
            if self.points[point].condition == Condition::Failing {
                self.ways[point] = match prng.below(8) {
                    0..4 => Way::Interpret,
                    4 => Way::Enter,
                    5 => Way::Link,
                    _ => Way::Ask,
                };
                continue;
            }
            if !active && !self.anchors[point] {
                continue;
            }
            let condition = match prng.below(24) {
                0 if always => {
                    always = false;
                    Condition::Always
                }
                1 => self.guard(point, prng).unwrap_or(Condition::Flag),
                2 => Condition::Countdown(u64::from(prng.between(1, 5))),
                _ => Condition::Flag,
            };
            self.points[point].condition = condition;
        }
    }

    fn guard(&self, point: usize, prng: &mut Prng) -> Option<Condition> {
        let ints =
            self.points[point].values.iter().filter(|v| self.function.value_type(**v).is_int());
        let ints: Vec<_> = ints.copied().collect();
        let when = if prng.chance(50) { Truth::Zero } else { Truth::NonZero };
        (!ints.is_empty()).then(|| Condition::Guard { value: prng.pick(&ints), when })
    }

    /// Chooses the flags to set for one run: about one in `one_in` of the points that wait for a
    /// flag and may fire.
    pub(super) fn wanted(&self, active: bool, one_in: u32, prng: &mut Prng) -> Vec<bool> {
        let may = |point: usize| active || self.anchors[point];
        let flag = |point: usize| self.points[point].condition == Condition::Flag;
        (0..self.points.len())
            .map(|point| flag(point) && may(point) && prng.below(one_in) == 0)
            .collect()
    }

    /// Removes points that land in code which `other` lacks, because a point of `other` that always
    /// fires precedes that code.
    fn drop_astray(&mut self, other: &resume::Instrumented) {
        let kept = (0..self.points.len())
            .map(|p| other.copy_of(self.entry(p).entry().target.inst()).is_some());
        self.retain(&kept.collect::<Vec<bool>>());
    }

    /// Removes random points until at most `most` remain. Keeps the points of assumptions, since
    /// each assumption must have a point.
    fn thin(&mut self, most: usize, prng: &mut Prng) {
        let of_assumption = |spec: &PointSpec| spec.condition == Condition::Failing;
        let others = self.points.iter().filter(|spec| !of_assumption(spec)).count();
        let mut drawn: Vec<bool> = (0..others).map(|at| at < most).collect();
        // Fisher and Yates: every choice of points is equally likely.
        for last in (1..drawn.len()).rev() {
            drawn.swap(last, prng.index(last + 1));
        }
        let mut drawn = drawn.into_iter();
        let mut keep = |spec| of_assumption(spec) || drawn.next().expect("one for each");
        let kept: Vec<bool> = self.points.iter().map(&mut keep).collect();
        self.retain(&kept);
    }

    /// Keeps only the points that [`jit::VersionSpec::leaving`] makes, in their order.
    fn only_assumptions(&mut self) {
        let exits = |inst| Some(&self.mapping.entry(Point::before(inst))?.requires[..]);
        // An assumption without an entry is the compiler's to report.
        let Ok(points) = PointSpec::of_assumptions(&self.function, exits) else { return };
        self.anchors = vec![false; points.len()];
        self.points = points;
        self.is_of_assumptions = true;
        self.resize();
    }

    /// Whether the version makes assumptions.
    pub(super) fn assumes(&self) -> bool {
        self.points.iter().any(|point| point.condition == Condition::Failing)
    }

    fn retain(&mut self, kept: &[bool]) {
        let mut keep = kept.iter();
        self.points.retain(|_| *keep.next().expect("one for each"));
        let mut keep = kept.iter();
        self.anchors.retain(|_| *keep.next().expect("one for each"));
        self.resize();
    }

    fn resize(&mut self) {
        let count = self.points.len();
        (self.armed, self.fired) = (vec![false; count], vec![false; count]);
        (self.ways, self.left) = (vec![Way::Ask; count], vec![0; count]);
        self.number();
    }

    fn has_always(&self) -> bool {
        self.points.iter().any(|point| point.condition == Condition::Always)
    }
}

/// The two versions of a function.
pub(super) struct Functions {
    pub(super) func: Func,
    pub(super) sides: [Half; 2],
    /// The version in which points other than anchors fire.
    pub(super) active: usize,
    /// The version that calls run.
    pub(super) start: usize,
    pub(super) ids: [VersionId; 2],
}

/// All versions that are compiled with points.
pub(super) struct NativePlan {
    pub(super) functions: Vec<Functions>,
    /// The index of the function and the side, by version of the shadow.
    by_version: Vec<Option<(usize, usize)>>,
    /// Whether every mapped point is compiled.
    pub(super) whole: bool,
}

impl NativePlan {
    /// Draws a plan for pairs of versions. Under a stress switch, the plan has all mapped points,
    /// and every point waits for its flag.
    pub(super) fn new(
        pairs: &[FunctionPair<'_>],
        ids: &[[VersionId; 2]],
        stressed: bool,
        prng: &mut Prng,
    ) -> NativePlan {
        let mut functions = Vec::new();
        let whole = prng.below(WHOLE_ONE_IN) == 0;
        for (pair, ids) in pairs.iter().zip(ids) {
            let sides = [(pair.before, pair.forward), (pair.after, pair.backward)];
            let mut sides =
                sides.map(|(function, mapping)| Half::new(function, mapping, pair.anchors));
            // A run that leaves at a failed assumption lands before code that it has already
            // executed. If points other than anchors led back from there, the run could leave
            // forever.
            let assumes = sides[1].assumes();
            let active = usize::from(prng.chance(50) || assumes);
            if assumes && prng.chance(30) {
                sides[1].only_assumptions();
            }
            if stressed {
                sides.iter_mut().for_each(Half::keep_live);
            } else {
                if !whole {
                    sides.iter_mut().for_each(|half| half.thin(POINTS, prng));
                }
                sides
                    .iter_mut()
                    .enumerate()
                    .for_each(|(side, half)| half.draw(side == active, !assumes, prng));
            }
            // A point that always fires cuts off the code after it. `resume::instrument` computes
            // the remaining code.
            let made = [0, 1].map(|side: usize| {
                let half = &sides[side];
                half.has_always().then(|| {
                    resume::instrument(&half.function, &half.points).expect("points are available")
                })
            });
            for (side, made) in made.iter().enumerate() {
                if let Some(made) = made {
                    sides[1 - side].drop_astray(made);
                }
            }
            functions.push(Functions { func: pair.func, sides, active, start: 0, ids: *ids });
        }
        let mut plan = NativePlan { functions, by_version: Vec::new(), whole };
        plan.index();
        plan
    }

    fn index(&mut self) {
        let mut number = 0;
        for (place, function) in self.functions.iter_mut().enumerate() {
            for (side, id) in function.ids.iter().enumerate() {
                let at = id.as_u32() as usize;
                self.by_version.resize(self.by_version.len().max(at + 1), None);
                self.by_version[at] = Some((place, side));
                let half = &mut function.sides[side];
                half.numbers =
                    (0..half.points.len() as u64).map(|point| number + point + 1).collect();
                number += half.points.len() as u64;
            }
        }
    }

    /// Marks every point and every anchor in the shadow, so that its observer sees them.
    pub(super) fn mark(&self, machine: &mut Machine) {
        for function in &self.functions {
            for (half, id) in function.sides.iter().zip(function.ids) {
                machine.mark(id, half.points.iter().map(|point| point.at.inst()));
                let anchors = (0..).map(Inst::from_u32).zip(&half.is_anchor).filter(|(_, is)| **is);
                machine.mark(id, anchors.map(|(inst, _)| inst));
            }
        }
    }

    /// The functions whose version after makes assumptions.
    pub(super) fn assuming(&self) -> impl Iterator<Item = &Functions> {
        self.functions.iter().filter(|function| function.sides[1].assumes())
    }

    /// The index of a function in the plan.
    pub(super) fn place(&self, func: Func) -> Option<usize> {
        self.functions.iter().position(|function| function.func == func)
    }

    /// The index of the function and the side of a version of the shadow.
    pub(super) fn of(&self, version: VersionId) -> Option<(usize, usize)> {
        self.by_version.get(version.as_u32() as usize).copied().flatten()
    }
}
