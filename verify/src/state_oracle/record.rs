//! Records of one run: the state at the points of a gap, and the choice of the gaps that are
//! recorded.

use super::Policy;
use super::plan::{Plans, PointPlan, SidePlan};
use super::watch::Innermost;
use crate::end::EffectScope;
use crate::prng::Prng;
use interp::View;
use ir::{Func, Inst};
use std::collections::HashMap;
use transition::Side;
use transition::mapping::Entry;

/// The state of a run at one visit of a point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    pub(super) func: Func,
    /// The point, as an index of the points of the side.
    pub(super) point: u32,
    /// As [`Innermost::activation`].
    pub(super) activation: u64,
    /// The start of its values in [`Recording::values`].
    start: usize,
    /// The number of this visit among the visits of the point in this run, from 1.
    pub(super) number: u64,
    pub(super) memory: u64,
    /// The digest of memory after the stores of the entry that starts here; `None` if one of them
    /// traps.
    pub(super) after_stores: Option<u64>,
    pub(super) effects: EffectDigest,
    /// At an assumption with an exit: whether it holds.
    pub(super) holds: Option<bool>,
}

/// The effects so far, as [`EffectScope::of`] gives them.
pub(super) type EffectDigest = (u64, u64);

/// The state in which a run waits at an anchor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AnchorStop {
    /// The function and the instruction of the original.
    pub(super) func: Func,
    pub(super) inst: Inst,
    /// As [`Innermost::activation`].
    pub(super) activation: u64,
    /// The depth of the activations that the run stands for.
    pub(super) depth: usize,
    pub(super) effects: EffectDigest,
}

impl AnchorStop {
    /// The state of a run that is paused before an anchor.
    pub(super) fn new(
        view: &View<'_>,
        point: &PointPlan,
        innermost: &Innermost,
        scope: EffectScope,
    ) -> AnchorStop {
        AnchorStop {
            func: point.original.0,
            inst: point.original.1,
            activation: innermost.activation,
            depth: innermost.below + point.frames,
            effects: scope.of(view.trace()),
        }
    }
}

/// The latest visit of a point: its gap, its index in the records, the number of visits in its gap,
/// and the number of visits so far.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    gap: u64,
    visit: u32,
    in_gap: u32,
    count: u64,
}

/// The visits of a point by an activation in a gap.
pub(super) enum Partner<'r> {
    None,
    One(&'r Visit),
    Several,
}

/// The records of one run since the last anchor.
///
/// Without inlined code, a point has at most one record in an activation, since a second visit in
/// one gap is an error. A gap has several activations of a function only behind an exit: the
/// version that the run has left for may pass no anchor to its end.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) visits: Vec<Visit>,
    values: Vec<u64>,
    /// By function and point: its latest visit.
    seen: Vec<Vec<Seen>>,
    /// The number of the gap; 0 before the first gap.
    gap: u64,
    scope: EffectScope,
    /// Whether this gap is recorded; `None` until its first watched point.
    pub(super) on: Option<bool>,
    /// A point with two visits in this gap, in one activation, and the number of the first.
    pub(super) ambiguous: Option<(Func, u32, u64)>,
    pub(super) stop: Option<AnchorStop>,
    /// The visit at which the run paused to be copied.
    pub(super) sampled: Option<usize>,
    pub(super) sampler: Sampler,
    /// The activation that was last the innermost, with inlined code.
    pub(super) innermost: Option<Innermost>,
}

impl Recording {
    pub(super) fn new(
        plans: &Plans<'_>,
        side: Side,
        scope: EffectScope,
        sampler: Sampler,
    ) -> Recording {
        let points =
            plans.iter().map(|plan| plan.as_ref().map_or(0, |p| p.sides[side].points.len()));
        Recording {
            visits: Vec::new(),
            values: Vec::new(),
            seen: points.map(|points| vec![Seen::default(); points]).collect(),
            gap: 0,
            scope,
            on: None,
            ambiguous: None,
            stop: None,
            sampled: None,
            sampler,
            innermost: None,
        }
    }

    /// Forgets the previous run.
    pub(super) fn restart(&mut self, sampler: Sampler) {
        self.seen.iter_mut().flatten().for_each(|s| *s = Seen::default());
        self.gap = 0;
        self.sampler = sampler;
        self.innermost = None;
    }

    /// Forgets the previous gap. `on` tells whether the new gap is recorded, if that is decided
    /// already.
    pub(super) fn next_gap(&mut self, on: Option<bool>) {
        self.visits.clear();
        self.values.clear();
        self.gap += 1;
        self.on = on;
        self.ambiguous = None;
        self.stop = None;
        self.sampled = None;
    }

    /// The visits of a point by an activation in this gap. Without inlined code, the first visit.
    #[inline]
    pub(super) fn visit_of(&self, func: Func, point: u32, activation: u64) -> Partner<'_> {
        let seen = &self.seen[func.as_u32() as usize][point as usize];
        if seen.gap != self.gap {
            return Partner::None;
        }
        if seen.in_gap > 1 {
            return self.search(func, point, activation);
        }
        let visit = &self.visits[seen.visit as usize];
        if visit.activation == activation { Partner::One(visit) } else { Partner::None }
    }

    #[cold]
    fn search(&self, func: Func, point: u32, activation: u64) -> Partner<'_> {
        let is_same = |v: &&Visit| (v.func, v.point, v.activation) == (func, point, activation);
        let mut same = self.visits.iter().filter(is_same);
        match (same.next(), same.next()) {
            (None, _) => Partner::None,
            (Some(_), Some(_)) if self.scope == EffectScope::Outer => Partner::Several,
            (Some(first), _) => Partner::One(first),
        }
    }

    /// The values recorded at a visit, followed by the values of later visits.
    #[inline]
    pub(super) fn values_from(&self, visit: &Visit) -> &[u64] {
        &self.values[visit.start..]
    }

    /// Records a point. Returns whether the machine is to be copied here.
    pub(super) fn record(
        &mut self,
        view: &View<'_>,
        innermost: &Innermost,
        index: u32,
        plan: &SidePlan<'_>,
    ) -> bool {
        let point = &plan.points[index as usize];
        let Innermost { root: func, activation, .. } = *innermost;
        let seen = &mut self.seen[func.as_u32() as usize][index as usize];
        // Visits count even in gaps that are not recorded, so that their numbers do not depend on
        // samples.
        seen.count += 1;
        if self.on == Some(false) {
            return false;
        }
        // `gap` is the number of the gap, so no table has to be cleared between gaps.
        let is_first = seen.gap != self.gap;
        if !is_first && self.scope == EffectScope::All {
            let latest = &self.visits[seen.visit as usize];
            if latest.activation == activation {
                self.ambiguous.get_or_insert((func, index, latest.number));
                return false;
            }
        }
        seen.in_gap = if is_first { 1 } else { seen.in_gap + 1 };
        (seen.gap, seen.visit) = (self.gap, self.visits.len() as u32);
        let entry = point.entry.map(|entry| &plan.entries[entry as usize]);
        let visit = Visit {
            func,
            point: index,
            activation,
            start: self.values.len(),
            number: seen.count,
            memory: view.memory_digest(),
            after_stores: match entry.filter(|entry| entry.has_replays && entry.fault.is_none()) {
                Some(entry) => after_stores(view, entry.entry),
                None => Some(view.memory_digest()),
            },
            effects: self.scope.of(view.trace()),
            holds: point.assumption.map(|(operand, bits)| view.value(operand) == bits),
        };
        self.visits.push(visit);
        self.values.extend(point.values.iter().map(|v| view.value(*v)));
        if !point.waiting.is_empty() {
            self.record_waiting(view, point);
        }
        // Only a point with an entry has a transition from which a copy could continue.
        let sample = point.entry.is_some() && self.sampler.takes();
        self.sampled = sample.then(|| self.visits.len() - 1);
        sample
    }

    /// Records the values of activations that wait.
    fn record_waiting(&mut self, view: &View<'_>, point: &PointPlan) {
        let mut frames = view.frames().enumerate();
        let mut current = frames.next();
        for (frame, value) in &point.waiting {
            while current.is_some_and(|(number, _)| number < *frame) {
                current = frames.next();
            }
            let (_, activation) = current.expect("the innermost activation is in inlined code");
            let bits = activation.try_value(*value);
            self.values.push(bits.expect("the base has the values of entries without fault"));
        }
    }
}

/// The digest of memory after the stores of an entry. Cost: linear in the size of the memories.
fn after_stores(view: &View<'_>, entry: &Entry) -> Option<u64> {
    let writes = entry.run(|v| view.value(v), |_, _, _| ()).ok()?;
    view.memory_digest_after(&writes).ok()
}

/// The start of a gap: the anchor before it, if there is one, and its first watched point.
type GapEdge = (Option<(Func, Inst)>, (Func, Inst));

/// Decides which gaps are recorded, for both runs together.
#[derive(Debug)]
pub(super) struct Gate {
    policy: Policy,
    prng: Prng,
    /// How often each start of a gap was seen. A run has no choice within a gap, so this counts the
    /// visits of every point in it. Never iterated, since its order is random.
    taken: HashMap<GapEdge, u32>,
}

impl Gate {
    pub(super) fn new(policy: Policy, prng: Prng) -> Gate {
        Gate { policy, prng, taken: HashMap::new() }
    }

    /// Whether to record the gap that starts here.
    pub(super) fn decide(&mut self, before: Option<(Func, Inst)>, func: Func, inst: Inst) -> bool {
        let Policy::Sampled { first: always, one_in } = self.policy else { return true };
        let taken = self.taken.entry((before, (func, inst))).or_default();
        *taken = taken.saturating_add(1);
        *taken <= always || self.prng.below(one_in) == 0
    }
}

/// Chooses the visits from which a copy continues.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    prng: Prng,
    /// The number of visits that may still be chosen.
    left: u32,
    /// As [`super::OracleOptions::going_on_one_in`].
    one_in: Option<u32>,
    /// The number of visits that pass before the next choice.
    wait: u32,
    /// The wait is random below this number, which doubles with each choice. So the number of
    /// choices grows with the logarithm of the length of the run.
    interval: u32,
}

impl Sampler {
    pub(super) fn new(mut prng: Prng, limit: u32, one_in: Option<u32>) -> Sampler {
        let interval = 4;
        let wait = if one_in.is_none() { prng.below(interval) } else { 0 };
        Sampler { prng, left: limit, one_in, wait, interval }
    }

    fn takes(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        if let Some(one_in) = self.one_in {
            let takes = self.prng.below(one_in) == 0;
            self.left -= u32::from(takes);
            return takes;
        }
        if self.wait > 0 {
            self.wait -= 1;
            return false;
        }
        self.left -= 1;
        self.interval = self.interval.saturating_mul(2);
        self.wait = self.prng.below(self.interval);
        true
    }

    /// The visits of entries up that a run passes before it takes one; `None` for a run that takes
    /// none.
    pub(super) fn visits_before_up(&mut self) -> Option<u32> {
        let goes_up = self.prng.below(2) == 0;
        goes_up.then(|| if self.prng.below(2) == 0 { 0 } else { self.prng.below(6) })
    }
}
