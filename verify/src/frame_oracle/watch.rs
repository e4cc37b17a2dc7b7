//! The watchers of both runs: they pair activations with each other, and compute the entries there.

use super::gap::{ComputedFrame, ComputedFrames, ComputedValues, EventGap, SeenLanding};
use super::plan::{FramePlans, FunctionPlan};
use interp::{Control, FrameView, Observer, Scope, VersionId, View};
use ir::{Func, Inst, Point};
use smallvec::SmallVec;
use transition::copy::InstanceId;
use transition::frames::{FramePlace, Landing};
use transition::mapping::Mapping;

/// The event before which a run stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EventStop {
    pub(super) at: EventPlace,
    /// The digest of outer effects.
    pub(super) outer: u64,
}

/// An activation of an original, and the instruction that it is about to execute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EventPlace {
    /// The virtual depth.
    pub(super) depth: usize,
    pub(super) func: Func,
    pub(super) inst: Inst,
}

/// What the innermost activation stands for. It holds as long as the activation is the innermost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StandsFor {
    /// The number of the activation and the depth; `None` before the first.
    of: Option<(u64, usize)>,
    /// On the optimized machine: the virtual depth below. On the machine of bases: the depth below
    /// the activation of the function that has the code inlined.
    below: usize,
    /// The function that has the code inlined. For a function without inlined code: the function
    /// itself.
    root: Option<Func>,
    instance: InstanceId,
}

/// Looks at the run of the version with inlined code.
pub(super) struct InlinedWatcher<'w, 'a, H> {
    pub(super) plans: &'w FramePlans<'a>,
    pub(super) gap: &'w mut EventGap<H>,
}

impl<H> Observer for InlinedWatcher<'_, '_, H> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        let (func, depth) = (view.func(), view.depth());
        let context = &mut self.gap.contexts[1];
        if context.of != Some((view.activation(), depth)) {
            let waiting = |frame: FrameView<'_>| match self.plans.by_func.get(&frame.func()) {
                Some(plan) => plan.waiting(frame.inst()),
                None => 1,
            };
            let below = view.frames().skip(1).map(waiting).sum();
            let of = Some((view.activation(), depth));
            *context = StandsFor { of, below, root: None, instance: 0 };
        }
        let below = context.below;
        let Some(plan) = self.plans.by_func.get(&func) else {
            return self.gap.stop_if(
                self.plans.is_plain_event(func, inst),
                EventPlace { depth: below + 1, func, inst },
                view,
            );
        };
        let Some(here) = plan.insts.get(&inst) else { return Control::Continue };
        if here.is_landing {
            self.gap.landings.push(SeenLanding {
                func,
                inst,
                below,
                values: here.provided.iter().map(|v| (*v, view.value(*v))).collect(),
                memory: view.memory_digest(),
                outer: view.trace().outer_digest(),
            });
        }
        let mut control = Control::Continue;
        if here.leaves && self.gap.may_compare() {
            let computed = computed_frames(plan, view, inst, below);
            self.gap.frames.push(computed);
            if self.gap.samples() {
                control = Control::Pause;
            }
        }
        if let (true, Some((count, of, at))) = (here.is_event, here.origin) {
            control = self.gap.stop_if(
                true,
                EventPlace { depth: below + count, func: of, inst: at },
                view,
            );
        }
        control
    }
}

/// Pauses at an entry up from a base, behind some others.
pub(super) struct UpWatcher<'a> {
    pub(super) base: VersionId,
    pub(super) up: &'a Mapping,
    /// The visits to pass.
    pub(super) skip: u32,
}

impl Observer for UpWatcher<'_> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        if view.version() != self.base || self.up.entry(Point::before(inst)).is_none() {
            return Control::Continue;
        }
        match self.skip.checked_sub(1) {
            Some(left) => {
                self.skip = left;
                Control::Continue
            }
            None => Control::Pause,
        }
    }
}

/// The frames that the entry out of inlined code computes at a point.
fn computed_frames(
    plan: &FunctionPlan<'_>,
    view: &View<'_>,
    inst: Inst,
    below: usize,
) -> ComputedFrames {
    let point = Point::before(inst);
    let (down, func) = (plan.pair.down, plan.pair.func);
    let entry = down.entry(point).expect("the plan says so");
    let frame = |of: Landing<'_>| ComputedFrame {
        func: of.func,
        inst: of.at.inst(),
        waits: matches!(of.at, FramePlace::Within(_)),
        values: SmallVec::new(),
    };
    let mut frames: SmallVec<[ComputedFrame; 4]> =
        entry.landings(func, down.target()).map(frame).collect();
    let mut lacks = None;
    let mut unlisted = None;
    let read = |value| {
        if entry.requires.binary_search(&value).is_err() {
            unlisted = Some(value);
        }
        view.try_value(value).unwrap_or_else(|| {
            lacks = Some(value);
            0
        })
    };
    let ran = entry.run(read, |at, value, bits| frames[at].values.push((value, bits)));
    let mut fault = lacks.map(|value| format!("the entry reads {value}, which its version lacks"));
    if let Some(value) = unlisted {
        fault = Some(format!("the entry reads {value}, which it does not require"));
    }
    let memory = match &ran {
        Ok(writes) if writes.is_empty() => Some(view.memory_digest()),
        Ok(writes) => match view.memory_digest_after(writes) {
            Ok(digest) => Some(digest),
            Err(error) => {
                fault = Some(error.to_string());
                None
            }
        },
        Err(error) => {
            fault = Some(error.to_string());
            None
        }
    };
    let depth = below + frames.len();
    let entry = (plan.pair.func, point);
    let outer = view.trace().outer_digest();
    let assumed = plan.insts.get(&inst).and_then(|plan| plan.assumed);
    let holds = assumed.map(|(value, bits)| view.value(value) == bits);
    ComputedFrames { entry, depth, frames, memory, outer, fault, holds, met: 0, wrong: None }
}

/// Looks at the run of the bases.
pub(super) struct BaseWatcher<'w, 'a, H> {
    pub(super) plans: &'w FramePlans<'a>,
    pub(super) gap: &'w mut EventGap<H>,
}

impl<H> Observer for BaseWatcher<'_, '_, H> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        let (func, depth) = (view.func(), view.depth());
        if self.gap.contexts[0].of != Some((view.activation(), depth)) {
            self.gap.contexts[0] = self.context(view);
        }
        let at = EventPlace { depth, func, inst };
        self.gap.meet(view, at);
        let StandsFor { below, root, instance, .. } = self.gap.contexts[0];
        let plan = root.and_then(|root| self.plans.by_func.get(&root));
        let Some(plan) = plan else {
            return self.gap.stop_if(self.plans.is_plain_event(func, inst), at, view);
        };
        if instance == 0 && self.gap.may_compare() {
            self.gap.computed.extend(computed_values(plan, view, inst, below));
        }
        self.gap.stop_if(plan.events.contains(&(instance, inst)), at, view)
    }
}

impl<H> BaseWatcher<'_, '_, H> {
    /// What the innermost activation stands for, from the outermost inward.
    fn context(&self, view: &View<'_>) -> StandsFor {
        let mut frames: SmallVec<[FrameView<'_>; 8]> = view.frames().collect();
        frames.reverse();
        let (mut context, mut call) = (StandsFor::default(), None);
        for (at, frame) in frames.iter().enumerate() {
            let plan = context.root.and_then(|root| self.plans.by_func.get(&root));
            let within = plan
                .zip(call)
                .and_then(|(plan, call)| plan.inlined.get(&(context.instance, call)).copied());
            match within {
                Some(instance) => context.instance = instance,
                None => {
                    let root = Some(frame.func());
                    context = StandsFor { of: None, below: at, root, instance: 0 };
                }
            }
            call = Some(frame.inst());
        }
        StandsFor { of: Some((view.activation(), view.depth())), ..context }
    }
}

/// The values that the entry into the version with inlined code computes at a point of the base.
fn computed_values(
    plan: &FunctionPlan<'_>,
    view: &View<'_>,
    inst: Inst,
    below: usize,
) -> Option<ComputedValues> {
    let point = Point::before(inst);
    let entry = plan.pair.up.entry(point)?;
    let mut values = SmallVec::new();
    let ran = entry.run(|value| view.value(value), |_, value, bits| values.push((value, bits)));
    let (memory, fault) = match ran {
        Ok(writes) if writes.is_empty() => (Some(view.memory_digest()), None),
        Ok(writes) => match view.memory_digest_after(&writes) {
            Ok(digest) => (Some(digest), None),
            Err(error) => (None, Some(error.to_string())),
        },
        Err(error) => (None, Some(error.to_string())),
    };
    let outer = view.trace().outer_digest();
    let (entry, target) = ((plan.pair.func, point), entry.target.inst());
    Some(ComputedValues { entry, target, below, values, memory, outer, fault })
}
