//! Transitions out of inlined code: entries that land in several activations.
//!
//! Example: `@f` calls `@g` at `i7`, and a version of `@f` has the body of `@g` in the place of the
//! call. A run that leaves this version in the body lands in two *frames*: an activation of `@g`
//! before an instruction, and the activation of `@f` that called it, within `i7`. When `@g`
//! returns, `@f` receives the results of `i7` and continues behind it.
//!
//! A [`FrameEntry`] is an [`Entry`] with one parallel assignment for each frame. It claims: suppose
//! that the source version, started on some input, reaches the source point. Then a run of the
//! versions of the frames, started on the same input, reaches a state with these activations, the
//! innermost last begun, with the same memory and the same outer effects so far. Calls and returns
//! of inlined code are no outer effects. The compensation code agrees with that state on all values
//! that the frames are assigned.
//!
//! Frames are terminal: no entry of the source version's family leads on from them at once.

use crate::VersionKey;
use crate::compose::{ComposedCode, Refusal};
use crate::mapping::{Assign, CompensationFault, Entry, Operand, Replay, Step, Write};
use ir::{Func, Inst, Point, Value};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The place of a frame in its version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FramePlace {
    /// Control is about to execute the instruction of this point.
    Before(Point),
    /// The activation waits for the results of this call.
    Within(Inst),
}

impl FramePlace {
    /// The instruction before or within which the activation is.
    pub fn inst(self) -> Inst {
        match self {
            FramePlace::Before(point) => point.inst(),
            FramePlace::Within(call) => call,
        }
    }
}

impl fmt::Display for FramePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FramePlace::Before(point) => write!(f, "before {}", point.inst()),
            FramePlace::Within(call) => write!(f, "within {call}"),
        }
    }
}

/// One activation that a transition lands in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The function.
    pub func: Func,
    /// Its version.
    pub version: VersionKey,
    /// Where the activation stands.
    pub at: FramePlace,
    /// Its part of the parallel assignment, in ascending order of the assigned values, each once.
    pub assigns: Vec<Assign>,
}

/// A transition from one source point into activations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameEntry {
    /// The activations, the innermost first. The innermost activation stands before an instruction,
    /// and each other activation within the call that began the activation before it.
    pub frames: Vec<Frame>,
    /// The steps, see [`Entry::steps`].
    pub steps: Vec<Step>,
    /// The replays, see [`Entry::replays`].
    pub replays: Vec<Replay>,
    /// The required values, see [`Entry::requires`].
    pub requires: Vec<Value>,
    /// The kept values, see [`Entry::kept`].
    pub kept: Vec<Value>,
}

impl FrameEntry {
    /// The size of the compensation code, as [`Entry::size`], over all frames.
    pub fn size(&self) -> usize {
        let copies = self.frames.iter().flat_map(|frame| &frame.assigns);
        self.steps.len() + self.replays.len() + copies.filter(|a| !a.is_identity()).count()
    }

    /// The values of the source version that the entry reads, as [`Entry::reads`]. Cost: near
    /// linear in the entry.
    pub fn reads(&self) -> Vec<Value> {
        let mut read: Vec<Value> = (self.steps.iter().flat_map(|step| &step.args))
            .chain(self.replays.iter().flat_map(|replay| &replay.args))
            .chain(self.frames.iter().flat_map(|frame| &frame.assigns).map(|assign| &assign.from))
            .filter_map(|operand| match operand {
                Operand::Source(value) => Some(*value),
                Operand::Step(_) => None,
            })
            .collect();
        read.sort_unstable();
        read.dedup();
        read
    }

    /// Runs the compensation code, as [`Entry::run`] does. `assign` gets the index of the frame,
    /// too.
    ///
    /// # Errors
    /// As for [`Entry::run`].
    pub fn run(
        &self,
        mut read: impl FnMut(Value) -> u64,
        mut assign: impl FnMut(usize, Value, u64),
    ) -> Result<SmallVec<[Write; 1]>, CompensationFault> {
        let code = (&self.steps[..], &self.replays[..]);
        let frames = self.frames.iter().enumerate();
        let assigns = frames.flat_map(|(at, frame)| frame.assigns.iter().map(move |to| (at, to)));
        crate::mapping::run_code(code, assigns, &mut read, |(at, to), bits| {
            assign(at, to.value, bits);
        })
    }
}

/// Entries from the points of one version into activations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameMapping {
    source: VersionKey,
    entries: BTreeMap<Point, Arc<FrameEntry>>,
}

impl FrameMapping {
    /// A mapping without entries.
    pub fn new(source: VersionKey) -> FrameMapping {
        FrameMapping { source, entries: BTreeMap::new() }
    }

    /// The version that the transitions leave from.
    pub fn source(&self) -> VersionKey {
        self.source
    }

    /// The entry at a point.
    pub fn entry(&self, point: Point) -> Option<&FrameEntry> {
        self.entries.get(&point).map(Arc::as_ref)
    }

    /// Every entry, in ascending order of its source point.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (Point, &FrameEntry)> {
        self.entries.iter().map(|(point, entry)| (*point, entry.as_ref()))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the mapping has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Inserts an entry at a point. Replaces an entry that the point already has.
    pub fn insert(&mut self, point: Point, entry: FrameEntry) {
        self.entries.insert(point, Arc::new(entry));
    }

    /// Removes the entry at a point.
    pub fn remove(&mut self, point: Point) {
        self.entries.remove(&point);
    }
}

/// A frame entry under construction: an entry into a copy, and the frames that the copy stands for
/// where it lands.
pub struct FrameComposer<'e> {
    first: &'e Entry,
    code: ComposedCode,
    frames: Vec<Frame>,
}

impl<'e> FrameComposer<'e> {
    /// Begins with an entry into a copy. `frames` have no assigns yet. `named` gives, for a value
    /// of the copy, each frame by index and each of its values that has this name.
    ///
    /// # Errors
    /// [`Refusal::Malformed`].
    pub fn new<I: IntoIterator<Item = (usize, Value)>>(
        first: &'e Entry,
        mut frames: Vec<Frame>,
        named: impl Fn(Value) -> I,
    ) -> Result<FrameComposer<'e>, Refusal> {
        let mut code = ComposedCode::default();
        let assigns = code.append_first(first)?;
        for Assign { value, from } in assigns {
            for (index, value) in named(value) {
                frames[index].assigns.push(Assign { value, from });
            }
        }
        for frame in &mut frames {
            frame.assigns.sort_unstable();
            frame.assigns.dedup_by_key(|assign| assign.value);
        }
        Ok(FrameComposer { first, code, frames })
    }

    /// The frames so far, the innermost first.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Appends the code of an entry of a frame's version, as [`crate::compose`] does. The frame is
    /// then in the version `to`, at the place that the caller says.
    ///
    /// # Errors
    /// As for [`crate::compose`].
    pub fn go_on(
        &mut self,
        index: usize,
        second: &Entry,
        (to, at): (VersionKey, FramePlace),
    ) -> Result<(), Refusal> {
        let assigns = self.code.append_second(second, &self.frames[index].assigns)?;
        let frame = &mut self.frames[index];
        (frame.version, frame.at, frame.assigns) = (to, at, assigns);
        Ok(())
    }

    /// As [`FrameComposer::go_on`], with the assignments of the entry whose operands the frame has.
    /// Behind a call its operands may be dead, and the source version may lack them.
    ///
    /// # Errors
    /// [`Refusal::Malformed`].
    pub fn go_on_partly(
        &mut self,
        index: usize,
        second: &Entry,
        to: (VersionKey, FramePlace),
    ) -> Result<(), Refusal> {
        let given = &self.frames[index].assigns;
        let has = |steps: &[bool], operand: &Operand| match operand {
            Operand::Source(value) => given.binary_search_by_key(value, |a| a.value).is_ok(),
            Operand::Step(step) => steps.get(*step as usize) == Some(&true),
        };
        let mut steps = Vec::with_capacity(second.steps.len());
        for step in &second.steps {
            let is_had = step.args.iter().all(|arg| has(&steps, arg));
            steps.push(is_had);
        }
        let had = second.assigns.iter().filter(|assign| has(&steps, &assign.from));
        let had: Vec<Value> = had.map(|assign| assign.value).collect();
        let second = second.only(&had).ok_or(Refusal::Malformed)?;
        self.go_on(index, &second, to)
    }

    /// Takes values away from a frame: the results of the call that it waits for.
    pub fn forget(&mut self, index: usize, values: &[Value]) {
        self.frames[index].assigns.retain(|assign| !values.contains(&assign.value));
    }

    /// Checks that a frame has these values.
    ///
    /// # Errors
    /// [`Refusal::NotProvided`], if it lacks one.
    pub fn require(&self, index: usize, values: &[Value]) -> Result<(), Refusal> {
        let assigns = &self.frames[index].assigns;
        let has = |value: &&Value| assigns.binary_search_by_key(*value, |a| a.value).is_ok();
        match values.iter().find(|value| !has(value)) {
            Some(value) => Err(Refusal::NotProvided { value: *value }),
            None => Ok(()),
        }
    }

    /// The entry. Steps that nothing reads are left out.
    pub fn finish(self) -> FrameEntry {
        let FrameComposer { first, code, mut frames } = self;
        let lists = frames.iter_mut().map(|frame| &mut frame.assigns[..]).collect();
        let (steps, replays) = code.needed_for(lists);
        let (requires, kept) = (Vec::new(), Vec::new());
        let mut entry = FrameEntry { frames, steps, replays, requires, kept };
        entry.requires = entry.reads();
        // Only the first entry knows which values are not live at the source point.
        let is_kept = |value: &Value| first.kept.binary_search(value).is_ok();
        entry.kept = entry.requires.iter().copied().filter(is_kept).collect();
        entry
    }
}
