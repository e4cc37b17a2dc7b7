//! Frames: entries out of a version with inlined code, and entries into it, both across the copy
//! that it was optimized from ([`super::copy`]).
//!
//! Let p1 be a version, I a copy of it with inlined code, and q an optimized version of I. The
//! mappings between I and q are accepted as all others. This module adds the step across the copy,
//! in two directions.
//!
//! *Out* ([`leave_copy`]). An accepted entry leads from q to a point y of I and provides values of
//! I there. By the claim of copies, a run of the originals on the same input then has a stack of
//! activations: one for the instance of y, before the instruction that y stands for, and one for
//! each caller, within its call. Every value of an activation has the contents of its name in I.
//! So the entry gives each activation the values whose names it provides. Each frame may continue
//! in another version of its function, by an accepted entry there:
//!
//! - The innermost frame continues by composition ([`super::compose`]).
//! - A waiting frame continues by the entry at its call, if this entry lands before the same call,
//!   without replays, in a version of the same family. Both versions have the call as an anchor
//!   that they execute alike (`AnchorsProved`), so the callee is the same, and the results come
//!   back to either. In another family, the number of the call may be another instruction's.
//!
//! Where the copy lacks objects of its originals ([`super::objects`]), the entry makes them from
//! the fields that it provides. By the claim of copies, the object that a run of the originals has
//! differs from the one made in nothing but the place where it lies, on which nothing depends
//! ([`ir::DeclaredEffect::is_allocator`], axiom 4). All frames share the object.
//! An object that no frame reads is not made.
//!
//! In the end each frame has all values that are live+ at the frame's place. A waiting frame has
//! the values that are live+ behind its call, less the results of the call. An entry at the frame's
//! own point provides them by its acceptance. In all other cases [`LivePoints`] list these values,
//! and a frame that lacks one is refused. It may have further values.
//!
//! *In* ([`enter_copy`]). An accepted entry leads from p to a point x of p1, and provides values of
//! p1. By the claim of copies, I is then at the copy of x, if there is one alone, and the names of
//! these values have their contents. An accepted entry from there to q composes with it.
//!
//! No run enters inlined code this way: an activation of the callee is no part of a run of p.

use super::compose::CheckedComposition;
use super::copy::Copies;
use super::seal::Checked;
use ir::{Func, Function, Inst, Point, Value};
use std::collections::BTreeMap;
use std::fmt;
use transition::copy::InstanceId;
use transition::frames::{Frame, FrameComposer, FramePlace};
use transition::mapping::{Entry, Mapping};
use transition::{NotAChain, Refusal, VersionKey, compose_renamed};

/// The values that are live+ at points of a version, with respect to the mappings that
/// [`super::Relation::live_at`] was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LivePoints {
    pub(super) version: VersionKey,
    /// Ascending.
    pub(super) at: BTreeMap<Point, Box<[Value]>>,
}

impl LivePoints {
    /// The version.
    pub fn version(&self) -> VersionKey {
        self.version
    }

    /// The values at a point, ascending. `None` for a point without computed liveness.
    pub fn live(&self, point: Point) -> Option<&[Value]> {
        self.at.get(&point).map(|values| &values[..])
    }
}

/// Where the frames of an original land.
#[derive(Clone, Copy, Debug)]
pub struct FrameLanding<'a> {
    /// An accepted mapping from the original to the version where they land; `None` if they land in
    /// the original itself.
    pub on: Option<&'a Checked<Mapping>>,
    /// The version where they land.
    pub version: &'a Function,
    /// Its live values.
    pub live: &'a Checked<LivePoints>,
}

/// Why an entry into a copy does not lead on to frames.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FrameRefusal {
    /// The entry lands in code that no run of the copy reaches.
    NoCopy,
    /// Nothing is known of the version where a frame lands, or of another version.
    NoLanding {
        /// The function of the frame.
        func: Func,
    },
    /// The entries of a frame do not compose.
    Composition {
        /// The index of the frame.
        frame: usize,
        /// The reason.
        refusal: Refusal,
    },
    /// The entry at the call of a waiting frame lands elsewhere than before this call, or replays
    /// writes.
    Elsewhere {
        /// The index of the frame.
        frame: usize,
    },
    /// The live values at the landing point of a frame were not computed.
    NotAsked {
        /// The index of the frame.
        frame: usize,
    },
}

impl FrameRefusal {
    /// The name in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            FrameRefusal::NoCopy => "no_copy",
            FrameRefusal::NoLanding { .. } => "no_landing_version",
            FrameRefusal::Composition { refusal, .. } => refusal.name(),
            FrameRefusal::Elsewhere { .. } => "lands_elsewhere",
            FrameRefusal::NotAsked { .. } => "not_asked",
        }
    }
}

impl fmt::Display for FrameRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameRefusal::NoCopy => f.write_str("the entry lands in code that no run reaches"),
            FrameRefusal::NoLanding { func } => {
                write!(f, "no version is known in which frames of {func} land")
            }
            FrameRefusal::Composition { frame, refusal } => write!(f, "frame {frame}: {refusal}"),
            FrameRefusal::Elsewhere { frame } => {
                write!(f, "frame {frame}: the entry at its call does not land before the call")
            }
            FrameRefusal::NotAsked { frame } => {
                write!(f, "frame {frame}: the live values where it lands are not known")
            }
        }
    }
}

/// Carries the entries of a mapping into a copy on to the activations that the copy stands for.
/// `landing` gives the version in which frames of an original land. Cost: near linear in the
/// entries and the frames.
///
/// # Errors
/// When the mapping leads to another version than the copy.
pub fn leave_copy<'a>(
    first: &Checked<Mapping>,
    copies: &Checked<Copies>,
    landing: impl Fn(Func, VersionKey) -> Option<FrameLanding<'a>>,
) -> Result<CheckedComposition<FrameRefusal>, NotAChain> {
    if first.target() != copies.version() {
        return Err(NotAChain { target: first.target(), source: copies.version() });
    }
    let instances = copies.instances();
    let landings: Vec<Option<FrameLanding<'a>>> =
        instances.iter().map(|one| landing(one.func, one.version)).collect();
    // The outermost frame of each entry is of the first instance.
    let own = landings.first().copied().flatten().map(|own| VersionKey::of(own.version));
    let target = own.unwrap_or(instances[0].version);
    let leaving = CopyExit { copies, landings };
    Ok(CheckedComposition::of_each(first, target, |entry| leaving.entry(entry)))
}

struct CopyExit<'a> {
    copies: &'a Copies,
    /// By instance.
    landings: Vec<Option<FrameLanding<'a>>>,
}

impl CopyExit<'_> {
    fn entry(&self, first: &Entry) -> Result<Entry, FrameRefusal> {
        let (id, at) = self.copies.origin(first.target.inst()).ok_or(FrameRefusal::NoCopy)?;
        let stack: Vec<(InstanceId, Inst)> = self.copies.stack(id, at).collect();
        let frames = stack.iter().zip(0..).map(|((id, inst), index)| self.frame(*id, *inst, index));
        // An instance is on the stack once at most.
        let frame = |id: InstanceId| stack.iter().position(|(other, _)| *other == id);
        let named = |value| {
            let of = self.copies.named(value);
            of.filter_map(move |(id, of)| Some((frame(id)?, of)))
        };
        let refused = |frame| move |refusal| FrameRefusal::Composition { frame, refusal };
        let composer = FrameComposer::new(first, frames.collect(), named);
        let mut composer = composer.map_err(refused(0))?;
        composer.make(&self.copies.to_make(first.target.inst(), frame));
        for (index, (id, _)) in stack.iter().enumerate() {
            self.land(&mut composer, index, *id)?;
        }
        composer.finish().map_err(refused(0))
    }

    /// A frame of an original, without values.
    fn frame(&self, id: InstanceId, inst: Inst, index: usize) -> Frame {
        let instance = &self.copies.instances()[id];
        let at = match index {
            0 => FramePlace::Before(Point::before(inst)),
            _ => FramePlace::Within(inst),
        };
        Frame { func: instance.func, version: instance.version, at, assigns: Vec::new() }
    }

    /// Makes a frame of an original land in its version.
    fn land(
        &self,
        composer: &mut FrameComposer<'_>,
        index: usize,
        id: InstanceId,
    ) -> Result<(), FrameRefusal> {
        let Frame { func, version, at, .. } = composer.frames()[index];
        let landing = self.landings[id].ok_or(FrameRefusal::NoLanding { func })?;
        let to = VersionKey::of(landing.version);
        let leads = match landing.on {
            Some(on) => (on.source(), on.target()) == (version, to),
            None => version == to,
        };
        if !leads || landing.live.version() != to {
            return Err(FrameRefusal::NoLanding { func });
        }
        let refused = |refusal| FrameRefusal::Composition { frame: index, refusal };
        let Some(on) = landing.on else {
            return require(composer, index, &landing);
        };
        let second = on.entry(Point::before(at.inst()));
        let second = second.ok_or(refused(Refusal::NoSecondEntry))?;
        if let FramePlace::Before(_) = at {
            // An accepted entry provides live+ where it lands.
            let place = FramePlace::Before(second.target);
            return composer.go_on(index, second, to, place).map_err(refused);
        }
        let is_of_family = landing.version.family() == self.copies.family(id);
        let place = waiting(at, second).filter(|_| is_of_family);
        let place = place.ok_or(FrameRefusal::Elsewhere { frame: index })?;
        composer.go_on_partly(index, second, to, place).map_err(refused)?;
        require(composer, index, &landing)
    }
}

/// Checks that a frame has all live values at its place, without the results of its waiting call.
fn require(
    composer: &mut FrameComposer<'_>,
    index: usize,
    landing: &FrameLanding<'_>,
) -> Result<(), FrameRefusal> {
    let (f, at) = (landing.version, composer.frames()[index].at);
    let live = |inst: Option<Inst>| landing.live.live(Point::before(inst?));
    let missing = FrameRefusal::NotAsked { frame: index };
    let refused = |refusal| FrameRefusal::Composition { frame: index, refusal };
    match at {
        FramePlace::Before(point) => {
            composer.require(index, live(Some(point.inst())).ok_or(missing)?).map_err(refused)
        }
        FramePlace::Within(call) => {
            let behind = f.has_inst(call).then(|| f.next_inst(call)).flatten();
            let live = live(behind).ok_or(missing)?;
            let results = &f.inst(call).results;
            composer.forget(index, results);
            let live = live.iter().copied().filter(|value| !results.contains(value));
            composer.require(index, &live.collect::<Vec<Value>>()).map_err(refused)
        }
    }
}

/// The place of a waiting frame that continues by the entry at its call, if the entry lands there.
/// Both versions have a call there, without a test here. The original has one by the claim of
/// copies. An accepted entry at a call has found the same anchor in both versions, if both are of
/// one family. Across a copy, a number of the original may be another instruction of the version
/// (`WaitInAnotherFamily` of `tests/inlining/wrong`).
fn waiting(at: FramePlace, second: &Entry) -> Option<FramePlace> {
    let stays = second.target.inst() == at.inst() && second.replays.is_empty();
    stays.then_some(at)
}

/// Composes a mapping into the original of a copy with one that leaves the copy, outside inlined
/// code. Also returns the points at which the first mapping has an entry and the composition lacks
/// one. Cost: near linear in the entries.
///
/// # Errors
/// When the first mapping leads to another version than the original, or the second leaves from
/// another than the copy.
pub fn enter_copy(
    first: &Checked<Mapping>,
    copies: &Checked<Copies>,
    second: &Checked<Mapping>,
) -> Result<CheckedComposition, NotAChain> {
    let original = copies.instances()[0].version;
    if first.target() != original {
        return Err(NotAChain { target: first.target(), source: original });
    }
    if copies.version() != second.source() {
        return Err(NotAChain { target: copies.version(), source: second.source() });
    }
    let composed = |entry: &Entry| entered(entry, copies, second);
    Ok(CheckedComposition::of_each(first, second.target(), composed))
}

fn entered(first: &Entry, copies: &Copies, second: &Mapping) -> Result<Entry, Refusal> {
    let place = copies.place(first.target.inst()).map(Point::before);
    let next = place.and_then(|place| second.entry(place)).ok_or(Refusal::NoSecondEntry)?;
    compose_renamed(first, |value| copies.entered_name(value), next)
}
