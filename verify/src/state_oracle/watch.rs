//! The observer of both runs, and the pairing of their activations.

use super::plan::{PairPlan, Plans};
use super::record::{AnchorStop, Gate, Recording};
use super::{Oracle, Versions};
use crate::end::EffectScope;
use interp::{Control, FrameView, Observer, Scope, View};
use ir::{Func, Inst};
use smallvec::SmallVec;
use transition::Side;
use transition::copy::InstanceId;

/// The innermost activation, as a part of an activation of a function with a pair: the *root*.
/// Without inlined code, it is the root itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Innermost {
    pub(super) root: Func,
    /// The instance of the root's copy whose code it executes. 0 in the version after.
    pub(super) instance: InstanceId,
    /// The number of activations below the root, where a version with inlined code counts as all
    /// activations that it stands for.
    pub(super) below: usize,
    /// An activation of the root that is equal in both runs: its number, or `below` if versions
    /// have inlined code, which makes fewer activations.
    pub(super) activation: u64,
    /// The number of the activation, and the depth.
    of: (u64, usize),
}

impl Innermost {
    /// The innermost activation of a run without inlined code.
    #[inline]
    pub(super) fn plain(view: &View<'_>) -> Innermost {
        let (activation, depth) = (view.activation(), view.depth());
        let (root, of) = (view.func(), (activation, depth));
        Innermost { root, instance: 0, below: depth - 1, activation, of }
    }

    /// The same of a run that stays in the version after, or in bases.
    fn inlined(view: &View<'_>, plans: &Plans<'_>, versions: &Versions) -> Innermost {
        let frames: SmallVec<[FrameView<'_>; 8]> = view.frames().collect();
        let mut innermost = Innermost { below: 0, ..Innermost::plain(view) };
        let (mut depth, mut within) = (0, None);
        // From the outermost inward. `within` is the plan of the root, and the call that waits.
        for frame in frames.iter().rev() {
            let called = within.and_then(|(plan, call): (&PairPlan<'_>, Inst)| {
                plan.inlined.get(&(innermost.instance, call))
            });
            match called {
                Some(instance) => innermost.instance = *instance,
                None => {
                    (innermost.root, innermost.instance, innermost.below) = (frame.func(), 0, depth)
                }
            }
            let plan = plans[innermost.root.as_u32() as usize].as_ref();
            let is_after = is_after(versions, frame);
            depth += plan.filter(|_| is_after).map_or(1, |plan| plan.frames_at(frame.inst()));
            within = plan.filter(|_| !is_after).map(|plan| (plan, frame.inst()));
        }
        Innermost { activation: innermost.below as u64, ..innermost }
    }
}

/// Whether an activation is of the version after of a pair.
fn is_after(versions: &Versions, frame: &FrameView<'_>) -> bool {
    let ids = versions[frame.func().as_u32() as usize];
    ids.is_some_and(|ids| ids.after == frame.version() && ids.before != ids.after)
}

impl Oracle<'_> {
    /// The activations that an activation stands for.
    pub(super) fn stands_for(&self, frame: &FrameView<'_>) -> usize {
        let plan = self.plans[frame.func().as_u32() as usize].as_ref();
        let plan = plan.filter(|_| is_after(&self.versions, frame));
        plan.map_or(1, |plan| plan.frames_at(frame.inst()))
    }
}

/// Observes one run until its next anchor.
pub(super) struct GapWatcher<'w, 'a> {
    pub(super) plans: &'w Plans<'a>,
    pub(super) versions: &'w Versions,
    pub(super) scope: EffectScope,
    pub(super) side: Side,
    pub(super) recording: &'w mut Recording,
    pub(super) gate: &'w mut Gate,
    /// The anchor at which both runs last stopped.
    pub(super) before: Option<(Func, Inst)>,
}

impl GapWatcher<'_, '_> {
    #[inline]
    fn innermost(&mut self, view: &View<'_>) -> Innermost {
        if self.scope == EffectScope::All {
            return Innermost::plain(view);
        }
        let of = (view.activation(), view.depth());
        match self.recording.innermost.filter(|innermost| innermost.of == of) {
            Some(innermost) => innermost,
            None => {
                let innermost = Innermost::inlined(view, self.plans, self.versions);
                *self.recording.innermost.insert(innermost)
            }
        }
    }
}

impl Observer for GapWatcher<'_, '_> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        let innermost = self.innermost(view);
        let number = innermost.root.as_u32() as usize;
        let (Some(plan), Some(ids)) = (&self.plans[number], &self.versions[number]) else {
            return Control::Continue;
        };
        // An activation that left at a failing assumption is in the version of the other run. Its
        // points belong to the other side and have no records here; both runs wait at its anchors.
        if innermost.instance == 0 && view.version() != ids[self.side] {
            let plan = &plan.sides[self.side.other()];
            let stop = plan.point_at(0, inst).map(|point| &plan.points[point as usize]);
            let stop = stop.filter(|point| point.anchor);
            let stop = stop.map(|point| AnchorStop::new(view, point, &innermost, self.scope));
            self.recording.stop = stop;
            return if stop.is_some() { Control::Pause } else { Control::Continue };
        }
        let plan = &plan.sides[self.side];
        let Some(index) = plan.point_at(innermost.instance, inst) else {
            return Control::Continue;
        };
        let point = &plan.points[index as usize];
        if self.recording.on.is_none() {
            self.recording.on = Some(self.gate.decide(self.before, innermost.root, inst));
        }
        // An anchor may be a recorded point as well: the record comes before the stop.
        let sampled = point.recorded && self.recording.record(view, &innermost, index, plan);
        if point.anchor {
            self.recording.stop = Some(AnchorStop::new(view, point, &innermost, self.scope));
        }
        if sampled || point.anchor { Control::Pause } else { Control::Continue }
    }
}
