//! The rest of a version from where an entry lands, as a function of its own.
//!
//! Its parameters are the values that the entry requires of the source version. Its first block
//! computes what the entry provides, executes the stores that it replays, and goes on at the
//! landing point; what can be come to from there is copied, and nothing else. It is an ordinary
//! function: verified, in a family of its own, to be optimized or instrumented like any other.
//!
//! A value that is provided, and that a loop leads back above the definition of, has two
//! definitions; they meet where the builder's variables say. Cost: near linear in what is copied,
//! and tables as long as the ids of the version.

mod emit;
mod entry;
mod region;

use crate::copy::Origins;
use crate::instrument::Instrumented;
use check::CheckedEntry;
use ir::decided::Decided;
use ir::{Function, Inst, Opcode, Point, Type, Value};
use region::{Region, Taken};
use std::fmt;
use transition::VersionKey;
use transition::mapping::Entry;

/// What is left of a version behind a landing point. See the module documentation.
#[derive(Clone, Debug)]
pub struct Continuation {
    /// The code.
    pub function: Function,
    /// What its instructions and values are in the version; compensation code is a copy of nothing.
    pub origins: Origins,
    /// For the values provided that are read, ascending, what each is when the run lands: a value
    /// of the entry block.
    pub provided: Vec<(Value, Value)>,
}

/// Why there is no continuation: the entry is not one from the one version to the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContinuationError {
    /// The entry belongs to other versions.
    OtherVersions,
    /// The target version does not have the instruction of the landing point.
    NoSuchPoint(Point),
    /// The source version does not have a value that is required.
    NotInSource(Value),
    /// The target version does not have a value that is provided.
    NotInTarget(Value),
    /// Compensation code reads a value of the source version that the entry does not require.
    NotRequired(Value),
    /// Compensation code reads a step that has not run.
    NoSuchStep {
        /// The index it names.
        index: u32,
    },
    /// A step is no operation on values, or not of operands of these types.
    MalformedStep {
        /// Its index.
        index: usize,
    },
    /// What is replayed is no store, or not of operands of these types.
    MalformedReplay {
        /// The instruction it names.
        inst: Inst,
    },
    /// A value is provided as another type than it has.
    WrongType {
        /// The value.
        value: Value,
        /// Its type.
        ty: Type,
        /// The type it is given.
        given: Type,
    },
    /// The code behind the landing point reads a value that the entry does not provide, on a way
    /// that does not define it.
    NotProvided(Value),
}

impl fmt::Display for ContinuationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContinuationError::OtherVersions => f.write_str("the entry belongs to other versions"),
            ContinuationError::NoSuchPoint(point) => {
                write!(f, "the target version has no {}", point.inst())
            }
            ContinuationError::NotInSource(value) => {
                write!(f, "the source version has no {value}, which is required")
            }
            ContinuationError::NotInTarget(value) => {
                write!(f, "the target version has no {value}, which is provided")
            }
            ContinuationError::NotRequired(value) => write!(f, "{value} is read and not required"),
            ContinuationError::NoSuchStep { index } => {
                write!(f, "step {index} is read and has not run")
            }
            ContinuationError::MalformedStep { index } => {
                write!(f, "step {index} is no operation on its operands")
            }
            ContinuationError::MalformedReplay { inst } => {
                write!(f, "{inst} is replayed and no store of its operands")
            }
            ContinuationError::WrongType { value, ty, given } => {
                write!(f, "{value} is {ty} and provided as {given}")
            }
            ContinuationError::NotProvided(value) => {
                write!(f, "{value} is read behind the landing point and not provided")
            }
        }
    }
}

impl std::error::Error for ContinuationError {}

/// The rest of `target` from where an entry from `source` lands. Its parameters are the values that
/// the entry requires, in that order; its results are those of `target`. Operations without effect
/// that nothing reads are left out.
///
/// An entry provides what runs need, which leaves out what only code behind branches that constants
/// decide reads ([`Decided`]). Where that is all that is missing, these branches become jumps; but
/// not if `target` has OSR points: a run of it that leaves comes to less than one of the version
/// that the entry is into ([`continuation_with_points`]).
///
/// Cost: see the module documentation; where a branch has to be decided, that of [`Decided::new`]
/// on the whole version.
///
/// # Errors
/// See [`ContinuationError`]; of entries that `osr` makes, and that are of these versions, none.
pub fn continuation(
    name: &str,
    source: &Function,
    target: &Function,
    entry: CheckedEntry<'_>,
) -> Result<Continuation, ContinuationError> {
    let entry = entry_between(source, target, entry)?;
    let plan = entry::Plan::new(source, target, entry)?;
    let whole = made(name, &plan, None);
    let has_points = || target.all_insts().any(|inst| target.inst(inst).opcode == Opcode::OsrExit);
    match whole {
        Err(ContinuationError::NotProvided(_)) if !has_points() => {
            made(name, &plan, Some(Taken { decided: &Decided::new(target), origins: None }))
        }
        whole => whole,
    }
}

/// The entry, if it was accepted for these two versions.
fn entry_between<'m>(
    source: &Function,
    target: &Function,
    entry: CheckedEntry<'m>,
) -> Result<&'m Entry, ContinuationError> {
    let versions = (VersionKey::of(source), VersionKey::of(target));
    if versions == (entry.source(), entry.target()) {
        Ok(entry.entry())
    } else {
        Err(ContinuationError::OtherVersions)
    }
}

/// As [`continuation`], but with the points that were put into the version: `entry` leads into
/// `version`, and what is copied is the rest of `instrumented`, that version with points. These
/// keep their numbers; the points before the instruction landed at are not asked at once. The
/// origins are the instructions and values of `instrumented.function`.
///
/// # Errors
/// As [`continuation`], values those of `version`; [`ContinuationError::NoSuchPoint`] too where the
/// instruction landed at was left out because a point before it always leaves; and
/// [`ContinuationError::NotProvided`] where a point hands over what the entry does not provide.
pub fn continuation_with_points(
    name: &str,
    source: &Function,
    version: &Function,
    instrumented: &Instrumented,
    entry: CheckedEntry<'_>,
) -> Result<Continuation, ContinuationError> {
    let entry = entry_between(source, version, entry)?;
    let moved = instrumented.entry(entry).ok_or(ContinuationError::NoSuchPoint(entry.target))?;
    let origins = &instrumented.origins;
    let named = |value: Value| origins.value(value).unwrap_or(value);
    let result =
        entry::Plan::new(source, &instrumented.function, &moved).and_then(|plan| {
            match made(name, &plan, None) {
                Err(ContinuationError::NotProvided(_)) => made(
                    name,
                    &plan,
                    Some(Taken { decided: &Decided::new(version), origins: Some(origins) }),
                ),
                whole => whole,
            }
        });
    result.map_err(|error| match error {
        ContinuationError::NotProvided(value) => ContinuationError::NotProvided(named(value)),
        ContinuationError::WrongType { value, ty, given } => {
            ContinuationError::WrongType { value: named(value), ty, given }
        }
        error => error,
    })
}

/// Makes the function of a region; a second time when steps compute what is defined again before it
/// is read, which shows once it is made.
fn made(
    name: &str,
    plan: &entry::Plan<'_>,
    taken: Option<Taken<'_>>,
) -> Result<Continuation, ContinuationError> {
    let mut region = Region::new(plan.target, plan.entry, taken)?;
    let continuation = emit::emit(name, plan, &region)?;
    let function = &continuation.function;
    let is_dead =
        |copy: Value| function.users(copy).is_empty() && function.defining_inst(copy).is_some();
    let dead: Vec<Value> = continuation
        .provided
        .iter()
        .filter(|(_, copy)| is_dead(*copy))
        .map(|(of, _)| *of)
        .collect();
    if dead.is_empty() {
        return Ok(continuation);
    }
    dead.into_iter().for_each(|value| region.forget(value));
    emit::emit(name, plan, &region)
}
