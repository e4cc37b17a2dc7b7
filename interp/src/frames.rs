//! The frames that a transition lands in: one for each activation of an entry.
//!
//! The outermost frame takes the place of the activation that the run leaves. Each other one is
//! begun in the frame that waits for it, as its call would have begun it: so a run leaves inlined
//! code.

use super::fire::{FireError, TransferError};
use super::machine::Machine;
use super::version::VersionId;
use check::CheckedEntry;
use cranelift_entity::EntityRef;
use ir::entity::{Point, Value};
use smallvec::SmallVec;
use transition::frames::FramePlace;
use transition::mapping::Entry;

/// Values with their contents.
pub(super) type AssignedValues = SmallVec<[(Value, u64); 16]>;

/// The assigned values of one frame, with its version and pc.
#[derive(Clone, Copy)]
pub(super) struct LandingFrame<'a> {
    pub(super) version: VersionId,
    pub(super) pc: u32,
    pub(super) assigned: &'a [(Value, u64)],
}

impl Machine {
    /// Checks that an entry leads to these versions, the innermost first.
    pub(super) fn require_versions(
        &self,
        to: &[VersionId],
        entry: &CheckedEntry<'_>,
    ) -> Result<(), FireError> {
        let inner = &entry.entry().inner;
        let (target, begun) = to.split_last().ok_or(FireError::OtherTarget)?;
        let are_begun = begun.iter().zip(inner).all(|(version, frame)| {
            let of = &self.versions[version.index()];
            of.func == frame.func && of.code.key() == frame.version
        });
        let are_of =
            begun.len() == inner.len() && are_begun && entry.target() == self.code(*target).key();
        if are_of { Ok(()) } else { Err(FireError::OtherTarget) }
    }

    /// The frames with their pcs, if the versions have the places and the values. `assigned` has
    /// the values of each frame, the innermost first.
    pub(super) fn landings<'a>(
        &self,
        to: &[VersionId],
        entry: &Entry,
        mut assigned: &'a [(Value, u64)],
    ) -> Result<SmallVec<[LandingFrame<'a>; 1]>, TransferError> {
        let mut landings = SmallVec::new();
        for ((version, at), assigns) in to.iter().zip(entry.places()).zip(entry.assign_lists()) {
            let (own, rest) = assigned.split_at(assigns.len());
            assigned = rest;
            let pc = self.landing(*version, Point::before(at.inst()), own)?;
            // Only a call lists slots for results.
            let stands = match at {
                FramePlace::Before(_) => landings.is_empty(),
                FramePlace::Within(_) => !landings.is_empty() && self.code(*version).is_call(pc),
            };
            if !stands {
                return Err(TransferError::NotACall(at.inst()));
            }
            landings.push(LandingFrame { version: *version, pc, assigned: own });
        }
        Ok(landings)
    }

    /// Replaces the innermost activation by frames, given the innermost first. From then on the
    /// exact loop executes the run.
    pub(super) fn land_in(&mut self, landings: &[LandingFrame<'_>]) -> Result<(), TransferError> {
        let (outermost, inner) = landings.split_last().ok_or(TransferError::NotPaused)?;
        let codes = landings.iter().map(|frame| self.code(frame.version).decoded());
        // Before anything changes: a run that finds no room goes on where it is.
        if !inner.is_empty() && !self.activations.have_room_for(codes) {
            return Err(TransferError::StackOverflow);
        }
        self.take_place(outermost.version)?;
        self.land(outermost);
        let mut caller = *outermost;
        for frame in inner.iter().rev().copied() {
            let results_at = self.code(caller.version).results_at(caller.pc);
            let code = &self.versions[frame.version.index()].code;
            let pushed = self.activations.push(frame.version.as_u32(), code, results_at);
            pushed.ok_or(TransferError::StackOverflow)?;
            self.land(&frame);
            caller = frame;
        }
        Ok(())
    }
}
