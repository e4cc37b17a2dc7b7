//! Transitions of a paused run to another version.

use super::activations::fill_poison;
use super::fast;
use super::frames::{AssignedValues, LandingFrame};
use super::machine::Machine;
use super::memory::OutOfBounds;
use super::version::VersionId;
use check::{CheckedEntry, Unproved};
use cranelift_entity::EntityRef;
use ir::entity::{Inst, Point, Value};
use std::fmt;
use transition::VersionKey;
use transition::mapping::CompensationFault;

/// Why a transfer failed. The machine is unchanged then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransferError {
    /// No run is paused.
    NotPaused,
    /// The version belongs to another function.
    OtherFunction,
    /// The version lacks the instruction of the point.
    NoSuchPoint(Point),
    /// The version lacks the value.
    NoSuchValue(Value),
    /// A frame would wait within this instruction, and it is no call.
    NotACall(Inst),
    /// The frame of the version exceeds the limits.
    StackOverflow,
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransferError::NotPaused => f.write_str("no run is paused"),
            TransferError::OtherFunction => f.write_str("the version belongs to another function"),
            TransferError::NoSuchPoint(point) => {
                write!(f, "the target version lacks {}", point.inst())
            }
            TransferError::NoSuchValue(value) => write!(f, "the target version lacks {value}"),
            TransferError::NotACall(inst) => {
                write!(f, "no activation can wait within {inst}, which is no call")
            }
            TransferError::StackOverflow => {
                f.write_str("the frame of the target version exceeds the limits")
            }
        }
    }
}

impl std::error::Error for TransferError {}

/// Why an entry cannot be fired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FireError {
    /// No run is paused.
    NotPaused,
    /// The source version of the mapping is not the paused version.
    OtherSource,
    /// The target version of the mapping is not the version requested.
    OtherTarget,
    /// The entry starts at a point other than this point, where the run is paused.
    OtherPoint(Point),
    /// The paused version lacks a value that the entry reads.
    NoSuchValue(Value),
    /// The entry reads a value that the transition into the paused version did not provide: the two
    /// mappings were not accepted together.
    NotProvided(Value),
    /// The entry reads kept values, and the fast tier has executed the activation. This tier keeps
    /// dead values for assumptions that fail, and for no other points. A run that may fire such
    /// entries elsewhere needs an observer from its start.
    NotKept,
    /// The compensation code fails.
    Code(CompensationFault),
    /// The transfer fails.
    Transfer(TransferError),
    /// A store of the transition is out of bounds.
    Store(OutOfBounds),
}

impl fmt::Display for FireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FireError::NotPaused => f.write_str("no run is paused"),
            FireError::OtherSource => {
                f.write_str("the source version of the mapping is not the paused version")
            }
            FireError::OtherTarget => {
                f.write_str("the target version of the mapping is not the requested version")
            }
            FireError::OtherPoint(point) => {
                write!(f, "the run is paused at {}, where the entry does not start", point.inst())
            }
            FireError::NoSuchValue(value) => {
                write!(f, "the entry reads {value}, which the paused version lacks")
            }
            FireError::NotProvided(value) => {
                write!(f, "the entry reads {value}, which the last transition did not provide")
            }
            FireError::NotKept => {
                f.write_str("the entry reads kept values, which the fast tier has not kept")
            }
            FireError::Code(fault) => write!(f, "{fault}"),
            FireError::Transfer(error) => write!(f, "{error}"),
            FireError::Store(error) => write!(f, "a store of the compensation code fails: {error}"),
        }
    }
}

impl std::error::Error for FireError {}

impl Machine {
    /// Makes the innermost activation of a paused run continue at a point of another version of its
    /// function. It has exactly the assigned values; all others are [`super::poison`]. All
    /// assignments happen at once, because they hold contents rather than names of values. Cost:
    /// the frame and the assignments.
    ///
    /// # Errors
    /// See [`TransferError`]; the machine is unchanged then.
    ///
    /// # Panics
    /// When the machine has no such version.
    pub fn transfer(
        &mut self,
        to: VersionId,
        point: Point,
        assign: &[(Value, u64)],
        _: Unproved,
    ) -> Result<(), TransferError> {
        fast::exec::leave(self);
        self.may_become(&[to])?;
        let pc = self.landing(to, point, assign)?;
        self.land_in(&[LandingFrame { version: to, pc, assigned: assign }])
    }

    /// Checks that a run is paused, and that its innermost activation is of the function of the
    /// last of these versions.
    fn may_become(&self, to: &[VersionId]) -> Result<(), TransferError> {
        let from = self.activations.frames.last().filter(|_| self.state.asked);
        let (from, to) = from.zip(to.last()).ok_or(TransferError::NotPaused)?;
        match self.versions[from.version as usize].func == self.versions[to.index()].func {
            true => Ok(()),
            false => Err(TransferError::OtherFunction),
        }
    }

    /// Makes the innermost activation one of another version, without values yet.
    pub(super) fn take_place(&mut self, to: VersionId) -> Result<(), TransferError> {
        let from = self.activations.top();
        let (base, replaced) = (from.base, from.consts);
        let code = &self.versions[to.index()].code;
        // The frame of the target replaces this activation, so its constants do not count.
        self.activations.consts -= replaced as usize;
        if !self.activations.reserve(base, code) {
            self.activations.consts += replaced as usize;
            return Err(TransferError::StackOverflow);
        }
        let consts = code.consts();
        let top = self.activations.top_mut();
        (top.version, top.consts) = (to.as_u32(), consts);
        Ok(())
    }

    /// The pc of a point of a version, if the version has the point and all the values.
    pub(super) fn landing(
        &self,
        to: VersionId,
        point: Point,
        assign: &[(Value, u64)],
    ) -> Result<u32, TransferError> {
        let code = &self.versions[to.index()].code;
        let pc = code.pc_of(point).ok_or(TransferError::NoSuchPoint(point))?;
        match assign.iter().find(|(value, _)| code.slot_of(*value).is_none()) {
            Some((value, _)) => Err(TransferError::NoSuchValue(*value)),
            None => Ok(pc),
        }
    }

    /// Moves the innermost activation, which has the version of a landing, to the pc of the landing
    /// and gives it exactly the assigned values, which [`Machine::landing`] has checked. From then
    /// on the exact loop executes the run.
    pub(super) fn land(&mut self, landing: &LandingFrame<'_>) {
        let code = &self.versions[landing.version.index()].code;
        let base = self.activations.top().base;
        let frame = &mut self.activations.stack[base..][..code.frame_size as usize];
        fill_poison(frame);
        for (value, bits) in landing.assigned {
            let slot = code.slot_of(*value).expect("interp: the values were checked");
            frame[slot as usize] = *bits;
        }
        let top = self.activations.top_mut();
        (top.pc, top.landed, top.settled) = (landing.pc, true, false);
        self.state.exact = true;
    }

    /// Fires an entry where the run is paused. Runs its compensation code on the activation, makes
    /// the activation one of the target version, begins the inner activations of the entry, if it
    /// has any ([`transition::frames`]), and executes the stores that belong to the transition.
    /// Later, returns of inner activations go to the outer ones. Returns the point before which the
    /// run continues.
    ///
    /// `to` is the target version, or the version of each activation, the innermost first. The
    /// entry records the versions and the source point that the checker accepted it for. Its source
    /// must be the paused version, and its target and inner activations must be of the versions
    /// `to`. Its source point must be before the instruction at which the run is paused
    /// ([`super::View::inst`]). The machine rejects any other entry. Cost: that of the compensation
    /// code and of the frames.
    ///
    /// # Errors
    /// See [`FireError`]. [`TransferError::StackOverflow`] also says that the frames are more
    /// activations than the limit permits: inlined code needs none. The machine is unchanged then,
    /// unless a store failed: the transfer has then happened, and so have the stores before it.
    ///
    /// # Panics
    /// When the machine has no such version.
    pub fn fire(
        &mut self,
        to: impl AsRef<[VersionId]>,
        entry: CheckedEntry<'_>,
    ) -> Result<Point, FireError> {
        let to = to.as_ref();
        fast::exec::leave(self);
        self.leaves(entry.source(), entry.point(), !entry.entry().kept.is_empty())?;
        self.require_versions(to, &entry)?;
        let entry = entry.entry();
        let mut assigned = AssignedValues::new();
        let assign = |_, value, bits| assigned.push((value, bits));
        let objects = self.objects_of(entry).map_err(FireError::Code)?;
        let writes = self.compensated(|read| entry.run_with(&objects, read, assign))?;
        // The transfer precedes the stores, because a failed transfer must leave memory unchanged.
        self.may_become(to).map_err(FireError::Transfer)?;
        let landings = self.landings(to, entry, &assigned).map_err(FireError::Transfer)?;
        self.land_in(&landings).map_err(FireError::Transfer)?;
        writes.iter().try_for_each(|write| self.write(write)).map_err(FireError::Store)?;
        Ok(entry.inner.first().map_or(entry.target, |frame| Point::before(frame.at.inst())))
    }

    /// Checks that the paused run may fire an entry that leaves a version at a point.
    ///
    /// # Errors
    /// See [`FireError`].
    pub(super) fn leaves(
        &self,
        source: VersionKey,
        from: Point,
        keeps: bool,
    ) -> Result<(), FireError> {
        let view = self.view().filter(|_| self.state.asked).ok_or(FireError::NotPaused)?;
        if source != self.code(view.version()).key() {
            return Err(FireError::OtherSource);
        }
        let point = Point::before(view.inst());
        if from != point {
            return Err(FireError::OtherPoint(point));
        }
        if view.is_settled() && !view.is_at_assumption() && keeps {
            return Err(FireError::NotKept);
        }
        Ok(())
    }

    /// Runs compensation code on the paused activation: `run` gets a function that reads its
    /// values.
    ///
    /// # Errors
    /// See [`FireError`].
    pub(super) fn compensated<T>(
        &self,
        run: impl FnOnce(&mut dyn FnMut(Value) -> u64) -> Result<T, CompensationFault>,
    ) -> Result<T, FireError> {
        let view = self.view().ok_or(FireError::NotPaused)?;
        let (mut missing, mut undefined) = (None, None);
        let ran = run(&mut |value| {
            let Some(bits) = view.try_value(value) else {
                missing = Some(value);
                return 0;
            };
            if view.is_undefined(value) {
                undefined = Some(value);
            }
            bits
        });
        // Test this first: compensation code that read a missing value as 0 may fail for that
        // reason.
        if let Some(value) = missing {
            return Err(FireError::NoSuchValue(value));
        }
        if let Some(value) = undefined {
            return Err(FireError::NotProvided(value));
        }
        ran.map_err(FireError::Code)
    }
}
