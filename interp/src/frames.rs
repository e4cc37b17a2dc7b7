//! Transitions into several activations: a run leaves inlined code.
//!
//! The outermost frame takes the place of the activation that runs the inlined code. Each other
//! frame begins in its waiting frame, like its call would have begun it.

use super::fire::{FireError, TransferError};
use super::machine::Machine;
use super::version::VersionId;
use check::CheckedFrameEntry;
use ir::entity::{Point, Value};
use smallvec::SmallVec;
use transition::frames::{FrameEntry, FramePlace};

/// Values with their contents.
pub(super) type AssignedValues = SmallVec<[(Value, u64); 16]>;

/// The assigned values of one frame, with its version and pc.
pub(super) struct LandingFrame {
    version: VersionId,
    pc: u32,
    assigned: AssignedValues,
}

impl Machine {
    /// Fires an entry into frames where the run is paused, as [`Machine::fire`] fires others. `to`
    /// has the version of each frame, the innermost first. Later, returns of the inner frames go to
    /// the outer frames. Cost: the compensation code, plus the frames.
    ///
    /// # Errors
    /// See [`FireError`]. [`TransferError::StackOverflow`] also says that the frames are more
    /// activations than the limit permits: inlined code does not need activations. The machine is
    /// unchanged then, unless a store failed.
    ///
    /// # Panics
    /// When the machine has no such version.
    pub fn fire_frames(
        &mut self,
        to: &[VersionId],
        entry: CheckedFrameEntry<'_>,
    ) -> Result<(), FireError> {
        self.leaves(entry.source(), entry.point(), !entry.entry().kept.is_empty())?;
        let entry = entry.entry();
        let top = self.view().ok_or(FireError::NotPaused)?.func();
        if entry.frames.last().is_none_or(|frame| frame.func != top) {
            return Err(FireError::Transfer(TransferError::OtherFunction));
        }
        let mut assigned = self.empty_frames(to, entry)?;
        let writes = self.compensated(|read| {
            entry.run(read, |frame, value, bits| assigned[frame].push((value, bits)))
        })?;
        let refused = FireError::Transfer;
        let landings = self.landing_frames(to, entry, assigned).map_err(refused)?;
        self.go_on_in(landings).map_err(refused)?;
        writes.iter().try_for_each(|write| self.write(write)).map_err(FireError::Store)
    }

    /// Room for the values of each frame, if these are its versions.
    pub(super) fn empty_frames(
        &self,
        to: &[VersionId],
        entry: &FrameEntry,
    ) -> Result<Vec<AssignedValues>, FireError> {
        let is_of = |(version, frame): (&VersionId, &transition::frames::Frame)| {
            let of = &self.versions[version.as_u32() as usize];
            of.func == frame.func && of.code.key() == frame.version
        };
        let are_of = to.len() == entry.frames.len() && to.iter().zip(&entry.frames).all(is_of);
        are_of.then(|| vec![SmallVec::new(); to.len()]).ok_or(FireError::OtherTarget)
    }

    /// The frames with their pcs, if the versions have the places and the values.
    pub(super) fn landing_frames(
        &self,
        to: &[VersionId],
        entry: &FrameEntry,
        assigned: Vec<AssignedValues>,
    ) -> Result<Vec<LandingFrame>, TransferError> {
        let mut landings = Vec::with_capacity(to.len());
        for (index, (frame, assigned)) in entry.frames.iter().zip(assigned).enumerate() {
            let at = Point::before(frame.at.inst());
            let pc = self.landing(to[index], at, &assigned)?;
            let is_innermost = matches!(frame.at, FramePlace::Before(_));
            // Only a call lists slots for results.
            let waits = self.code(to[index]).is_call(pc);
            if is_innermost != (index == 0) || !(is_innermost || waits) {
                return Err(TransferError::NotACall(at.inst()));
            }
            landings.push(LandingFrame { version: to[index], pc, assigned });
        }
        Ok(landings)
    }

    /// Replaces the innermost activation by frames, given the innermost first.
    pub(super) fn go_on_in(
        &mut self,
        mut landings: Vec<LandingFrame>,
    ) -> Result<(), TransferError> {
        let codes = landings.iter().map(|frame| self.code(frame.version).decoded());
        // Before any change: a run without room continues where it is.
        if !self.activations.have_room_for(codes) {
            return Err(TransferError::StackOverflow);
        }
        let outermost = landings.pop().ok_or(TransferError::NotPaused)?;
        self.take_place(outermost.version)?;
        self.land(outermost.version, outermost.pc, &outermost.assigned);
        let mut caller = outermost;
        while let Some(inner) = landings.pop() {
            let results_at = self.code(caller.version).results_at(caller.pc);
            let code = &self.versions[inner.version.as_u32() as usize].code;
            let pushed = self.activations.push(inner.version.as_u32(), code, results_at);
            pushed.ok_or(TransferError::StackOverflow)?;
            self.land(inner.version, inner.pc, &inner.assigned);
            caller = inner;
        }
        Ok(())
    }
}
