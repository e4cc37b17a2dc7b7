//! The events and states of both runs between two events, and their comparison.

use super::watch::{EventPlace, EventStop, StandsFor};
use super::{DEPTHS, FrameEnd, FrameOptions, FrameReport};
use crate::prng::Prng;
use interp::{Control, View};
use ir::{Func, Inst, Point, Value};
use smallvec::SmallVec;
use std::marker::PhantomData;

/// The activations that an entry out of inlined code leads to.
pub(super) struct ComputedFrames {
    pub(super) entry: (Func, Point),
    /// The virtual depth of the innermost.
    pub(super) depth: usize,
    /// The innermost first.
    pub(super) frames: SmallVec<[ComputedFrame; 4]>,
    pub(super) memory: Option<u64>,
    pub(super) outer: u64,
    pub(super) fault: Option<String>,
    /// Whether an assumption stands there, and holds.
    pub(super) holds: Option<bool>,
    /// How often the base run came to them.
    pub(super) met: u32,
    pub(super) wrong: Option<String>,
}

pub(super) struct ComputedFrame {
    pub(super) func: Func,
    pub(super) inst: Inst,
    pub(super) waits: bool,
    pub(super) values: SmallVec<[(Value, u64); 8]>,
}

/// The values that an entry into the version with inlined code computes.
pub(super) struct ComputedValues {
    pub(super) entry: (Func, Point),
    /// Where it lands.
    pub(super) target: Inst,
    /// The depth below its activation.
    pub(super) below: usize,
    pub(super) values: SmallVec<[(Value, u64); 8]>,
    pub(super) memory: Option<u64>,
    pub(super) outer: u64,
    pub(super) fault: Option<String>,
}

/// A point of the version with inlined code at which its run was.
pub(super) struct SeenLanding {
    pub(super) func: Func,
    pub(super) inst: Inst,
    /// The virtual depth below its activation.
    pub(super) below: usize,
    pub(super) values: SmallVec<[(Value, u64); 8]>,
    pub(super) memory: u64,
    pub(super) outer: u64,
}

/// A run that continued behind a transition, and its end.
pub(super) struct ContinuedRun {
    pub(super) entry: (Func, Point),
    pub(super) end: FrameEnd,
}

/// The part of both runs between two events.
pub(super) struct EventGap<H> {
    pub(super) frames: Vec<ComputedFrames>,
    pub(super) computed: Vec<ComputedValues>,
    pub(super) landings: Vec<SeenLanding>,
    pub(super) stop: Option<EventStop>,
    /// Whether the optimized run paused at a visit from which a copy is to continue.
    pub(super) sampled: Option<()>,
    pub(super) went_on: Vec<ContinuedRun>,
    /// The entry over which the optimized run has left.
    pub(super) left: Option<(Func, Point)>,
    /// What the innermost activations stand for: of the bases, and of the versions with inlined
    /// code.
    pub(super) contexts: [StandsFor; 2],
    prng: Prng,
    options: FrameOptions,
    /// The visits of this run from which a copy may still continue, and the transitions that may
    /// still be compared.
    allowed: (u32, u64),
    host: PhantomData<H>,
}

impl<H> EventGap<H> {
    pub(super) fn new(prng: Prng, options: FrameOptions) -> EventGap<H> {
        EventGap {
            frames: Vec::new(),
            computed: Vec::new(),
            landings: Vec::new(),
            stop: None,
            sampled: None,
            went_on: Vec::new(),
            contexts: Default::default(),
            prng,
            options,
            left: None,
            allowed: (options.going_on, options.transitions),
            host: PhantomData,
        }
    }

    pub(super) fn clear(&mut self) {
        self.frames.clear();
        self.computed.clear();
        self.landings.clear();
        (self.stop, self.sampled) = (None, None);
    }

    /// Whether another transition may be compared.
    pub(super) fn may_compare(&self) -> bool {
        self.allowed.1 > 0
    }

    /// Whether a copy is to continue from this visit.
    pub(super) fn samples(&mut self) -> bool {
        let one_in = self.options.going_on_one_in;
        let takes = one_in > 0 && self.allowed.0 > 0 && self.prng.below(one_in) == 0;
        if takes {
            self.allowed.0 -= 1;
            self.sampled = Some(());
        }
        takes
    }

    /// The number of visits of entries up that a continued run passes before it takes one; `None`
    /// for a run that goes up at no visit.
    pub(super) fn visits_before_up(&mut self) -> Option<u32> {
        let goes_up = self.prng.below(2) == 0;
        goes_up.then(|| if self.prng.below(2) == 0 { 0 } else { self.prng.below(6) })
    }

    pub(super) fn stop_if(&mut self, is_event: bool, at: EventPlace, view: &View<'_>) -> Control {
        if !is_event {
            return Control::Continue;
        }
        self.stop = Some(EventStop { at, outer: view.trace().outer_digest() });
        Control::Pause
    }

    /// Compares the frames that lead here with the activations of the base run.
    pub(super) fn meet(&mut self, view: &View<'_>, at: EventPlace) {
        for computed in &mut self.frames {
            let Some(first) = computed.frames.first() else { continue };
            let lands = EventPlace { depth: computed.depth, func: first.func, inst: first.inst };
            if lands == at {
                computed.met += 1;
                computed.wrong = difference(computed, view);
            }
        }
    }

    /// Compares the entries of the gap. Returns the differing entries.
    pub(super) fn compare(
        &mut self,
        [base_trapped, inlined_trapped]: [bool; 2],
        report: &mut FrameReport,
    ) -> Vec<((Func, Point), String)> {
        let mut wrong = Vec::new();
        for computed in self.frames.drain(..) {
            let why = match computed.met {
                _ if computed.fault.is_some() => computed.fault,
                0 if base_trapped => continue,
                0 => Some("the base run does not come to the activations".to_owned()),
                1 => computed.wrong,
                _ => {
                    report.ambiguous += 1;
                    continue;
                }
            };
            report.down[(computed.frames.len() - 1).min(DEPTHS - 1)] += 1;
            if let Some(holds) = computed.holds {
                report.at_assumptions[usize::from(!holds)] += 1;
            }
            report.values += computed.frames.iter().map(|one| one.values.len() as u64).sum::<u64>();
            self.allowed.1 = self.allowed.1.saturating_sub(1);
            wrong.extend(why.map(|why| (computed.entry, why)));
        }
        for computed in std::mem::take(&mut self.computed) {
            let is_it = |seen: &&SeenLanding| {
                (seen.func, seen.inst, seen.below)
                    == (computed.entry.0, computed.target, computed.below)
            };
            let mut seen = self.landings.iter().filter(is_it);
            let (first, second) = (seen.next(), seen.next());
            if second.is_some() {
                report.ambiguous += 1;
                continue;
            }
            // The optimized version may trap early.
            let Some(landing) = first else {
                if !inlined_trapped {
                    let why = "the optimized run does not come to the landing point".to_owned();
                    wrong.push((computed.entry, why));
                }
                continue;
            };
            report.up += 1;
            report.values += computed.values.len() as u64;
            self.allowed.1 = self.allowed.1.saturating_sub(1);
            wrong.extend(value_difference(&computed, landing).map(|why| (computed.entry, why)));
        }
        wrong
    }
}

/// How the activations of a run differ from the computed activations.
pub(super) fn difference(computed: &ComputedFrames, view: &View<'_>) -> Option<String> {
    let mut frames = view.frames();
    for (at, frame) in computed.frames.iter().enumerate() {
        let Some(real) = frames.next() else {
            return Some(format!("frame {at}: the run has no such activation"));
        };
        if (frame.func, frame.inst) != (real.func(), real.inst()) || frame.waits != (at > 0) {
            return Some(format!(
                "frame {at} is in {} at {}, the activation in {} at {}",
                frame.func,
                frame.inst,
                real.func(),
                real.inst()
            ));
        }
        for (value, bits) in &frame.values {
            let expected = real.try_value(*value);
            if expected != Some(*bits) {
                let expected = expected.unwrap_or_default();
                return Some(format!("frame {at}: {value} is {expected:#x}, not {bits:#x}"));
            }
        }
    }
    if computed.outer != view.trace().outer_digest() {
        return Some("the outer effects differ".to_owned());
    }
    (computed.memory != Some(view.memory_digest())).then(|| "memory differs".to_owned())
}

/// How the optimized run differs from computed values where they land.
fn value_difference(computed: &ComputedValues, landing: &SeenLanding) -> Option<String> {
    if computed.fault.is_some() {
        return computed.fault.clone();
    }
    for (value, bits) in &computed.values {
        let seen = landing.values.iter().find(|(other, _)| other == value);
        if seen.map(|(_, bits)| bits) != Some(bits) {
            let seen = seen.map(|(_, bits)| *bits).unwrap_or_default();
            return Some(format!("{value} is {seen:#x}, not {bits:#x}"));
        }
    }
    if computed.outer != landing.outer {
        return Some("the outer effects differ".to_owned());
    }
    (computed.memory != Some(landing.memory)).then(|| "memory differs".to_owned())
}
