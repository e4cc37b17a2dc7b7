//! Transitions of a paused run into another version.

use super::activations::fill_poison;
use super::machine::{Machine, VersionId};
use super::memory::OutOfBounds;
use check::{CheckedEntry, Unproved};
use cranelift_entity::EntityRef;
use ir::entity::{Point, Value};
use smallvec::SmallVec;
use std::fmt;
use transition::mapping::CompensationFault;

/// Why a transfer is refused. The machine is unchanged then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransferError {
    /// No run is paused.
    NotPaused,
    /// The version is one of another function.
    OtherFunction,
    /// The version does not have the instruction of the point.
    NoSuchPoint(Point),
    /// The version does not have the value.
    NoSuchValue(Value),
    /// The frame of the version is larger than the limits allow.
    StackOverflow,
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransferError::NotPaused => f.write_str("no run is paused"),
            TransferError::OtherFunction => f.write_str("the version is one of another function"),
            TransferError::NoSuchPoint(point) => {
                write!(f, "the version does not have {}", point.inst())
            }
            TransferError::NoSuchValue(value) => write!(f, "the version does not have {value}"),
            TransferError::StackOverflow => {
                f.write_str("the frame is larger than the limits allow")
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
    /// The mapping leaves from another version than the paused one.
    OtherSource,
    /// The mapping leads to another version than the one to go on in.
    OtherTarget,
    /// The run is paused at this point, and the entry belongs to another.
    OtherPoint(Point),
    /// The paused version does not have a value that the entry reads.
    NoSuchValue(Value),
    /// The compensation code fails.
    Code(CompensationFault),
    /// The transfer is refused.
    Transfer(TransferError),
    /// A store that belongs to the transition does not lie within its memory.
    Store(OutOfBounds),
}

impl fmt::Display for FireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FireError::NotPaused => f.write_str("no run is paused"),
            FireError::OtherSource => {
                f.write_str("the mapping leaves from another version than the paused one")
            }
            FireError::OtherTarget => {
                f.write_str("the mapping leads to another version than the one to go on in")
            }
            FireError::OtherPoint(point) => {
                write!(f, "the run is paused at {}, where the entry does not start", point.inst())
            }
            FireError::NoSuchValue(value) => {
                write!(f, "the paused version does not have {value}, which the entry reads")
            }
            FireError::Code(fault) => write!(f, "{fault}"),
            FireError::Transfer(error) => write!(f, "{error}"),
            FireError::Store(error) => write!(f, "a store of the compensation code fails: {error}"),
        }
    }
}

impl std::error::Error for FireError {}

impl Machine {
    /// Lets the innermost activation of a paused run go on in another version of its function, at a
    /// point, with exactly the assigned values; all others are [`super::poison`]. The values are
    /// given, so all assignments happen at once. Nobody has proved that they are right, hence the
    /// last argument. Cost: the frame and the assignments.
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
        self.go_on(to, point, assign)
    }

    fn go_on(
        &mut self,
        to: VersionId,
        point: Point,
        assign: &[(Value, u64)],
    ) -> Result<(), TransferError> {
        let from = self
            .activations
            .frames
            .last()
            .filter(|_| self.state.asked)
            .ok_or(TransferError::NotPaused)?;
        if self.versions[from.version as usize].func != self.versions[to.index()].func {
            return Err(TransferError::OtherFunction);
        }
        let (base, replaced) = (from.base, from.consts);
        let pc = self.landing(to, point, assign)?;
        let code = &self.versions[to.index()].code;
        // The activation that is replaced does not count.
        self.activations.consts -= replaced as usize;
        if !self.activations.reserve(base, code) {
            self.activations.consts += replaced as usize;
            return Err(TransferError::StackOverflow);
        }
        let consts = code.consts();
        let top = self.activations.top_mut();
        (top.version, top.consts) = (to.as_u32(), consts);
        self.land(to, pc, assign);
        Ok(())
    }

    /// The pc of a point of a version that has all these values.
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

    /// Makes the innermost activation, of this version, stand at a pc with exactly these values,
    /// checked by [`Machine::landing`]. The run goes on exactly.
    pub(super) fn land(&mut self, to: VersionId, pc: u32, assign: &[(Value, u64)]) {
        let code = &self.versions[to.index()].code;
        let base = self.activations.top().base;
        let frame = &mut self.activations.stack[base..][..code.frame_size as usize];
        fill_poison(frame);
        for (value, bits) in assign {
            let slot = code.slot_of(*value).expect("interp: the values were checked");
            frame[slot as usize] = *bits;
        }
        self.activations.top_mut().pc = pc;
        self.state.exact = true;
    }

    /// Makes a transition from the point where the run is paused: runs the entry's compensation code
    /// on the innermost activation, goes on at the landing point in version `to`, and executes the
    /// stores that the entry replays. Returns the landing point. Cost: that of the code, and of a
    /// frame.
    ///
    /// # Errors
    /// When the entry belongs to other versions or to another point, and as [`FireError`] says. The
    /// machine is unchanged then, unless a store failed.
    ///
    /// # Panics
    /// When the machine has no such version.
    pub fn fire(&mut self, to: VersionId, entry: CheckedEntry<'_>) -> Result<Point, FireError> {
        let view = self.view().filter(|_| self.state.asked).ok_or(FireError::NotPaused)?;
        if entry.source() != self.code(view.version()).key() {
            return Err(FireError::OtherSource);
        }
        if entry.target() != self.code(to).key() {
            return Err(FireError::OtherTarget);
        }
        let point = Point::before(view.inst());
        if entry.point() != point {
            return Err(FireError::OtherPoint(point));
        }
        let entry = entry.entry();
        let mut missing = None;
        let read = |value| {
            view.try_value(value).unwrap_or_else(|| {
                missing = Some(value);
                0
            })
        };
        let mut assigned: SmallVec<[(Value, u64); 16]> = SmallVec::new();
        let ran = entry.run(read, |value, bits| assigned.push((value, bits)));
        // First: code that read nothing may well have failed for that.
        if let Some(value) = missing {
            return Err(FireError::NoSuchValue(value));
        }
        let writes = ran.map_err(FireError::Code)?;
        self.go_on(to, entry.target, &assigned).map_err(FireError::Transfer)?;
        writes.iter().try_for_each(|write| self.write(write)).map_err(FireError::Store)?;
        Ok(entry.target)
    }
}
