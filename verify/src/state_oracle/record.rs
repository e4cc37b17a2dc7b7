//! Records of one run: the state at the points of a gap, and the choice of the gaps that are
//! recorded.

use super::plan::SidePlan;
use super::{Policy, Versions};
use crate::prng::Prng;
use interp::{Control, Observer, Scope, View};
use ir::{Func, Inst};
use std::collections::HashMap;
use transition::mapping::Entry;
use transition::{Pair, Side};

/// The plans of a function, one for each side; `None` for functions without a pair.
pub(super) type Plans = [Option<Pair<SidePlan>>];

/// The state of a run at one visit of a point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    pub(super) func: Func,
    /// The point, as an index of the points of the side.
    pub(super) point: u32,
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

/// The effects so far: their number and digest.
pub(super) type EffectDigest = (u64, u64);

/// The state in which a run waits at an anchor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AnchorStop {
    pub(super) func: Func,
    pub(super) inst: Inst,
    pub(super) activation: u64,
    pub(super) depth: usize,
    pub(super) effects: EffectDigest,
}

impl AnchorStop {
    /// The state of a run that is paused before an anchor.
    pub(super) fn of(view: &View<'_>) -> AnchorStop {
        AnchorStop {
            func: view.func(),
            inst: view.inst(),
            activation: view.activation(),
            depth: view.depth(),
            effects: effects(view),
        }
    }
}

/// The latest visit of a point: its gap, its index in the records, and the number of visits so far.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    gap: u64,
    visit: u32,
    count: u64,
}

/// The records of one run since the last anchor. A point has at most one record in an activation,
/// since a second visit in one gap is an error. A gap has several activations of a function only
/// behind an exit: the version that the run has left for may pass no anchor to its end.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) visits: Vec<Visit>,
    values: Vec<u64>,
    /// By function and point: its latest visit.
    seen: Vec<Vec<Seen>>,
    /// The number of the gap; 0 before the first gap.
    gap: u64,
    /// Whether this gap is recorded; `None` until its first watched point.
    pub(super) on: Option<bool>,
    /// A point with two visits in this gap, in one activation, and the number of the first.
    pub(super) ambiguous: Option<(Func, u32, u64)>,
    pub(super) stop: Option<AnchorStop>,
    /// The visit at which the run paused to be copied.
    pub(super) sampled: Option<usize>,
    pub(super) sampler: Sampler,
}

impl Recording {
    pub(super) fn new(plans: &Plans, side: Side, sampler: Sampler) -> Recording {
        let points =
            |plan: &Option<Pair<SidePlan>>| plan.as_ref().map_or(0, |p| p[side].points.len());
        Recording {
            visits: Vec::new(),
            values: Vec::new(),
            seen: plans.iter().map(|plan| vec![Seen::default(); points(plan)]).collect(),
            gap: 0,
            on: None,
            ambiguous: None,
            stop: None,
            sampled: None,
            sampler,
        }
    }

    /// Forgets the previous run.
    pub(super) fn restart(&mut self, sampler: Sampler) {
        self.seen.iter_mut().flatten().for_each(|s| *s = Seen::default());
        self.gap = 0;
        self.sampler = sampler;
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

    /// The first visit of a point by an activation in this gap; `None` without a visit.
    #[inline]
    pub(super) fn visit_of(&self, func: Func, point: u32, activation: u64) -> Option<&Visit> {
        let seen = &self.seen[func.as_u32() as usize][point as usize];
        if seen.gap != self.gap {
            return None;
        }
        let latest = &self.visits[seen.visit as usize];
        if latest.activation == activation {
            return Some(latest);
        }
        let is_same = |v: &&Visit| (v.func, v.point, v.activation) == (func, point, activation);
        self.visits.iter().find(is_same)
    }

    /// The values recorded at a visit, followed by the values of later visits.
    #[inline]
    pub(super) fn values_from(&self, visit: &Visit) -> &[u64] {
        &self.values[visit.start..]
    }

    /// Records a point. Returns whether the machine is to be copied here.
    fn record(&mut self, view: &View<'_>, func: Func, index: u32, plan: &SidePlan) -> bool {
        let point = &plan.points[index as usize];
        let seen = &mut self.seen[func.as_u32() as usize][index as usize];
        // Visits count even in gaps that are not recorded, so that their numbers do not depend on
        // samples.
        seen.count += 1;
        if self.on == Some(false) {
            return false;
        }
        // `gap` is the number of the gap, so no table has to be cleared between gaps.
        let activation = view.activation();
        if seen.gap == self.gap {
            let latest = &self.visits[seen.visit as usize];
            if latest.activation == activation {
                self.ambiguous.get_or_insert((func, index, latest.number));
                return false;
            }
        }
        (seen.gap, seen.visit) = (self.gap, self.visits.len() as u32);
        let visit = Visit {
            func,
            point: index,
            activation,
            start: self.values.len(),
            number: seen.count,
            memory: view.memory_digest(),
            after_stores: match point
                .entry
                .and_then(|entry| plan.entries[entry as usize].stores.as_ref())
            {
                Some(entry) => after_stores(view, entry),
                None => Some(view.memory_digest()),
            },
            effects: effects(view),
            holds: point.assumption.map(|(operand, bits)| view.value(operand) == bits),
        };
        self.visits.push(visit);
        self.values.extend(point.values.iter().map(|v| view.value(*v)));
        // Only a point with an entry has a transition from which a copy could continue.
        let sample = point.entry.is_some() && self.sampler.takes();
        self.sampled = sample.then(|| self.visits.len() - 1);
        sample
    }
}

/// The digest of memory after the stores of an entry. Cost: linear in the size of the memories.
fn after_stores(view: &View<'_>, entry: &Entry) -> Option<u64> {
    let writes = entry.run(|v| view.value(v), |_, _, _| ()).ok()?;
    view.memory_digest_after(&writes).ok()
}

pub(super) fn effects(view: &View<'_>) -> EffectDigest {
    (view.trace().count(), view.trace().digest())
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
    fn decide(&mut self, before: Option<(Func, Inst)>, func: Func, inst: Inst) -> bool {
        let Policy::Sampled { first: always, one_in } = self.policy else { return true };
        let taken = self.taken.entry((before, (func, inst))).or_default();
        *taken = taken.saturating_add(1);
        *taken <= always || self.prng.below(one_in) == 0
    }
}

/// Chooses the visits from which a copy continues: many at first, then ever fewer. Their number
/// grows with the logarithm of the length of the run.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    prng: Prng,
    /// The number of visits that may still be chosen.
    left: u32,
    /// The number of visits that pass before the next choice.
    wait: u32,
    /// The wait is random below this number, which doubles with each choice.
    interval: u32,
}

impl Sampler {
    pub(super) fn new(mut prng: Prng, limit: u32) -> Sampler {
        let interval = 4;
        Sampler { wait: prng.below(interval), prng, left: limit, interval }
    }

    fn takes(&mut self) -> bool {
        if self.left == 0 {
            return false;
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
}

/// Observes one run until its next anchor.
pub(super) struct GapWatcher<'a> {
    pub(super) plans: &'a Plans,
    pub(super) versions: &'a Versions,
    pub(super) side: Side,
    pub(super) recording: &'a mut Recording,
    pub(super) gate: &'a mut Gate,
    /// The anchor at which both runs last stopped.
    pub(super) before: Option<(Func, Inst)>,
}

impl Observer for GapWatcher<'_> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        let func = view.func();
        let number = func.as_u32() as usize;
        let (Some(pair), Some(ids)) = (&self.plans[number], &self.versions[number]) else {
            return Control::Continue;
        };
        // An activation that left at a failing assumption is in the version of the other run. Its
        // points belong to the other side and have no records here; both runs wait at its anchors.
        if view.version() != ids[self.side] {
            let plan = &pair[self.side.other()];
            let stop = plan.point_at(inst).filter(|point| plan.points[*point as usize].anchor);
            self.recording.stop = stop.map(|_| AnchorStop::of(view));
            return if stop.is_some() { Control::Pause } else { Control::Continue };
        }
        let plan = &pair[self.side];
        let Some(index) = plan.point_at(inst) else { return Control::Continue };
        let point = &plan.points[index as usize];
        if self.recording.on.is_none() {
            self.recording.on = Some(self.gate.decide(self.before, func, inst));
        }
        // An anchor may be a recorded point as well: the record comes before the stop.
        let sampled = point.recorded && self.recording.record(view, func, index, plan);
        if point.anchor {
            self.recording.stop = Some(AnchorStop::of(view));
        }
        if sampled || point.anchor { Control::Pause } else { Control::Continue }
    }
}
