//! Transitions out of inlined code: entries that land in several activations.
//!
//! Example: `@f` calls `@g` at `i7`, and a version of `@f` has the body of `@g` in the place of the
//! call. A run that leaves this version in the body lands in two *frames*: an activation of `@g`
//! before an instruction, and the activation of `@f` that called it, within `i7`. When `@g`
//! returns, `@f` receives the results of `i7` and continues behind it.
//!
//! Both activations are landings of one [`Entry`]. A plain entry has one landing: the activation
//! that it leaves continues in the target version of the mapping. In every other entry, that
//! activation is the outermost landing, in the same target version. So the mapping names the
//! version, and the entry has the place and the assignments, as a plain entry does. The activations
//! begun within it are a list ([`Entry::inner`]), which is empty in plain entries: plain entries
//! stay small, and code for them reads no list of landings. Other code gets all landings in one
//! form ([`Entry::landings`]).
//!
//! An entry with inner activations makes this claim. Suppose that the source version, started on
//! some input, reaches the source point. Then a run of the versions of the landings, started on the
//! same input, reaches a state with these activations, the innermost last begun, with the same
//! memory and the same outer effects so far. Calls and returns of inlined code are no outer
//! effects. The compensation code agrees with that state on all values that the activations are
//! assigned.
//!
//! Such an entry is terminal: no entry leads on from its landings at once, since the run is before
//! no point of the target version ([`Refusal::NoSecondEntry`]).

use crate::VersionKey;
use crate::compose::{ComposedCode, Refusal};
use crate::mapping::{Assign, Entry, Operand};
use crate::objects::MadeObject;
use ir::{Func, Inst, Point, Value};
use std::fmt;

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

/// An inner activation that an entry lands in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The function.
    pub func: Func,
    /// Its version.
    pub version: VersionKey,
    /// Where the activation stands: the innermost before an instruction, and each other one within
    /// the call that began the one before it.
    pub at: FramePlace,
    /// Its part of the parallel assignment, in ascending order of the assigned values, each once.
    pub assigns: Vec<Assign>,
}

impl Frame {
    /// The activation as a landing.
    pub fn landing(&self) -> Landing<'_> {
        let Frame { func, version, at, ref assigns } = *self;
        Landing { func, version, at, assigns }
    }
}

/// An activation that an entry lands in, inner or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Landing<'e> {
    /// The function.
    pub func: Func,
    /// Its version.
    pub version: VersionKey,
    /// Where the activation stands.
    pub at: FramePlace,
    /// Its part of the parallel assignment.
    pub assigns: &'e [Assign],
}

/// An entry out of inlined code under construction: an entry into a copy, and the frames that the
/// copy stands for where it lands.
pub struct FrameComposer<'e> {
    first: &'e Entry,
    code: ComposedCode,
    /// The values of the copy that the first entry provides, ascending.
    given: Vec<Assign>,
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
        for &Assign { value, from } in &assigns {
            for (index, value) in named(value) {
                frames[index].assigns.push(Assign { value, from });
            }
        }
        for frame in &mut frames {
            frame.assigns.sort_unstable();
            frame.assigns.dedup_by_key(|assign| assign.value);
        }
        Ok(FrameComposer { first, code, given: assigns, frames })
    }

    /// Makes objects that the frames have where the first entry lands, and the copy lacks. An
    /// object is left out if the first entry does not provide all its fields.
    pub fn make(&mut self, objects: &[MadeObject]) {
        for (frame, assign) in self.code.make_objects(objects, &self.given) {
            self.frames[frame].assigns.push(assign);
        }
        for frame in &mut self.frames {
            frame.assigns.sort_unstable();
            frame.assigns.dedup_by_key(|assign| assign.value);
        }
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
        to: VersionKey,
        at: FramePlace,
    ) -> Result<(), Refusal> {
        let (assigns, inner) = self.code.append_second(second, &self.frames[index].assigns)?;
        if !inner.is_empty() {
            return Err(Refusal::NoSecondEntry);
        }
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
        to: VersionKey,
        at: FramePlace,
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
        self.go_on(index, &second, to, at)
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

    /// The entry, with the outermost frame as the activation of its target version. Steps that
    /// nothing reads are left out.
    ///
    /// # Errors
    /// [`Refusal::Malformed`], if there is no frame.
    pub fn finish(self) -> Result<Entry, Refusal> {
        let FrameComposer { first, code, mut frames, .. } = self;
        let Frame { at, assigns, .. } = frames.pop().ok_or(Refusal::Malformed)?;
        Ok(code.finish(Point::before(at.inst()), assigns, frames.into(), &first.kept))
    }
}
