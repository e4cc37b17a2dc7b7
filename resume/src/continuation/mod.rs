//! Continuations: the code of a version behind a landing point, as a function of its own.
//!
//! The parameters are the values that the entry requires of the source version. The first block
//! runs the steps, replays the stores, and continues at the landing point. Code that is reachable
//! from there is copied; the rest of the version is not. The result is an ordinary function in a
//! family of its own, and can be optimized or instrumented like any other.
//!
//! Example: an entry lands in the middle of a loop and provides `x`, which the upper part of the
//! loop defines. Then `x` has two definitions, and they meet in a block parameter.
//!
//! Cost: near linear in the code that is copied, plus tables as long as the ids of the version.

mod emit;
mod entry;
mod region;

use crate::claim::Draft;
use crate::copy::Origins;
use crate::frames;
use crate::instrument::Instrumented;
use check::{CheckedEntry, ContinuationFault, LandedVersion};
use ir::decided::Decided;
use ir::{FrameState, FrameStates, Function, Inst, Opcode, Point, Type, Value};
use region::{CopiedRegion, DecidedBranches};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use transition::VersionKey;
use transition::copy::ContinuationClaim;
use transition::frames::Frame;
use transition::mapping::{Entry, Mapping};

/// The code behind the landings of an entry. See the module documentation.
#[derive(Clone, Debug)]
pub struct Continuation {
    /// The code. Its parameters are the values that the entry requires, in order; its results are
    /// the results of the target version.
    pub function: Function,
    /// The source instructions and values in the version. Compensation code lacks them, and so does
    /// code behind several landings.
    pub origins: Origins,
    /// For each instruction that is a copy: the landing, by its index, the innermost first, and the
    /// instruction of its version.
    pub copied: BTreeMap<Inst, (usize, Inst)>,
    /// The claim that the function is the code behind the landing point. The checker has accepted
    /// it.
    pub claim: ContinuationClaim,
    /// The originals of the parts of the function.
    pub(crate) draft: Draft,
    /// For each value provided that the code reads, ascending: the value of the entry block that
    /// holds it when the run lands. Empty behind several landings.
    pub provided: Vec<(Value, Value)>,
    /// By point of the function from which runs leave by a mapping of the version
    /// ([`continuation_leaving`]): a state whose slots number the values that the entry there
    /// requires, and have the values of the function that hold them.
    pub taken_out: FrameStates,
}

impl Continuation {
    /// By instruction of the version: its copies in the code. Linear in the code.
    pub fn copies(&self) -> BTreeMap<Inst, Vec<Inst>> {
        let mut copies = BTreeMap::<Inst, Vec<Inst>>::new();
        self.claim.insts.iter().for_each(|(copy, of)| copies.entry(*of).or_default().push(*copy));
        copies
    }

    /// The value that holds a value of `version` before a copied instruction, in code behind one
    /// landing. `None` if none does, or none that the code reads there. Linear in the block.
    pub fn held_before(&self, version: &Function, copy: Inst, value: Value) -> Option<Value> {
        let function = &self.function;
        let block = function.inst_block(copy);
        let above = function.block_insts(block).take_while(|other| *other != copy);
        let defined = above.filter_map(|above| {
            let of = self.claim.insts.get(&above)?;
            let index = version.inst(*of).results.iter().position(|result| *result == value)?;
            function.inst(above).results.get(index).copied()
        });
        let at_start = || match self.claim.blocks.get(&block) {
            Some(block) => block.values.get(&(0, value)).copied(),
            None => self.provided.iter().find(|(of, _)| *of == value).map(|(_, held)| *held),
        };
        defined.last().or_else(at_start)
    }
}

/// Why there is no continuation. In each case, the entry does not lead from `source` to `target`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContinuationError {
    /// The entry belongs to other versions.
    OtherVersions,
    /// The target version does not have the instruction of the landing point.
    NoSuchPoint(Point),
    /// The entry requires a value that is missing in the source version.
    NotInSource(Value),
    /// The entry provides a value that is missing in the target version.
    NotInTarget(Value),
    /// Compensation code reads a value of the source version that the entry does not require.
    NotRequired(Value),
    /// Compensation code reads a step that has not run.
    NoSuchStep {
        /// The index of the step read.
        index: u32,
    },
    /// A step is not an operation on values, or not one on operands of these types.
    MalformedStep {
        /// The index of the step.
        index: usize,
    },
    /// A step makes an object. A call there may move others, whose words the entry has read, so
    /// the run must leave to an interpreter, which makes the objects of an entry without moving
    /// any.
    MakesObject {
        /// The index of the step.
        index: usize,
    },
    /// A replayed instruction is not a store, or not one of operands of these types.
    MalformedReplay {
        /// The instruction that the replay names.
        inst: Inst,
    },
    /// The entry provides a value as another type than it has.
    WrongType {
        /// The value.
        value: Value,
        /// Its type.
        ty: Type,
        /// The type provided.
        given: Type,
    },
    /// The entry does not provide a value, and the code behind the landing point reads it on a path
    /// without a definition.
    NotProvided(Value),
    /// The checker does not accept the function. A bug of ours, or of the entry.
    Refused(ContinuationFault),
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
            ContinuationError::MakesObject { index } => {
                write!(f, "step {index} makes an object, which only an interpreter can land with")
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
            ContinuationError::Refused(fault) => write!(f, "the function is no copy: {fault}"),
        }
    }
}

impl std::error::Error for ContinuationError {}

/// Makes a function of the code behind the landings of an entry from `source`. `versions` are the
/// versions of the landings, the innermost first: for most entries, the target version alone. The
/// parameters are the values that the entry requires, in that order. The results are the results of
/// the target version. The function omits operations without effect whose results nothing reads.
///
/// An entry provides the values that runs need. It may lack values that are read only behind
/// branches that constants decide ([`Decided`]). If only such values are missing, these branches
/// become jumps. They do not if the version has OSR points, since fewer of its blocks are reachable
/// than in the version that the entry leads to. Use [`continuation_with_points`] there.
///
/// Cost: see the module documentation. Deciding branches costs [`Decided::new`] on the whole
/// version.
///
/// # Errors
/// See [`ContinuationError`]. None for entries that `osr` makes and that lead from `source` to
/// these versions.
pub fn continuation(
    name: &str,
    source: &Function,
    versions: &[&Function],
    entry: CheckedEntry<'_>,
) -> Result<Continuation, ContinuationError> {
    require_between(source, versions, &entry)?;
    match versions {
        [target] => rest_of(name, source, target, entry.entry(), None),
        _ => frames::joined(name, source, versions, entry),
    }
}

/// As [`continuation`](fn@continuation) behind one landing, for runs that leave the code by entries
/// of the mapping `out`, which leads from `target` elsewhere. At the copies of its source points,
/// and at the start if the landing point is one, the function has the values that the entries
/// require ([`Continuation::taken_out`]), though it may read them nowhere.
///
/// Cost and errors: as [`continuation`](fn@continuation).
///
/// # Errors
/// [`ContinuationError::NotProvided`] also if the entry does not provide a value that `out`
/// requires.
pub fn continuation_leaving(
    name: &str,
    source: &Function,
    target: &Function,
    entry: CheckedEntry<'_>,
    out: &Mapping,
) -> Result<Continuation, ContinuationError> {
    require_between(source, &[target], &entry)?;
    rest_of(name, source, target, entry.entry(), Some(out))
}

/// As [`continuation`](fn@continuation), for an entry without a seal.
pub(crate) fn rest_of(
    name: &str,
    source: &Function,
    target: &Function,
    entry: &Entry,
    out: Option<&Mapping>,
) -> Result<Continuation, ContinuationError> {
    let plan = entry::PlannedEntry::new(source, target, entry)?;
    // The whole region first: deciding branches costs an analysis of the whole version, and most
    // entries provide all values that it needs.
    let whole = made(name, &plan, None, out);
    let has_points = || target.all_insts().any(|inst| target.inst(inst).opcode == Opcode::OsrExit);
    let made = match whole {
        Err(ContinuationError::NotProvided(_)) if !has_points() => made(
            name,
            &plan,
            Some(DecidedBranches { decided: &Decided::new(target), origins: None }),
            out,
        ),
        whole => whole,
    }?;
    judged(made, source, &[LandedVersion { version: target, without_points: None }], entry)
}

/// The continuation, if the checker accepts it.
pub(crate) fn judged(
    made: Continuation,
    source: &Function,
    versions: &[LandedVersion<'_>],
    entry: &Entry,
) -> Result<Continuation, ContinuationError> {
    match check::continuation(&made.function, source, versions, entry, &made.claim) {
        Ok(copied) => Ok(Continuation { copied: copied.into_inner().into_origins(), ..made }),
        Err(fault) => Err(ContinuationError::Refused(fault)),
    }
}

/// Checks that an entry was accepted for these versions.
fn require_between(
    source: &Function,
    versions: &[&Function],
    entry: &CheckedEntry<'_>,
) -> Result<(), ContinuationError> {
    let inner = &entry.entry().inner;
    let is_of = |(frame, version): (&Frame, &&Function)| frame.version == VersionKey::of(version);
    let leads = versions.split_last().is_some_and(|(target, begun)| {
        (entry.source(), entry.target()) == (VersionKey::of(source), VersionKey::of(target))
            && begun.len() == inner.len()
            && inner.iter().zip(begun).all(is_of)
    });
    if leads { Ok(()) } else { Err(ContinuationError::OtherVersions) }
}

/// As [`continuation`](fn@continuation), with the points of an instrumented version. `entry` leads
/// to `version`; the code is copied from `instrumented`, which is `version` with points. The points
/// keep their numbers. The run does not visit the points before the landing instruction when it
/// lands. Origins are instructions and values of `instrumented.function`.
///
/// # Errors
/// As [`continuation`](fn@continuation), with values of `version`, and:
///
/// - [`ContinuationError::OtherVersions`] if `instrumented` is not `version` with points;
/// - [`ContinuationError::NoSuchPoint`] if the landing instruction was left out, because a point
///   before it always exits;
/// - [`ContinuationError::NotProvided`] if a point hands over a value that the entry does not
///   provide.
pub fn continuation_with_points(
    name: &str,
    source: &Function,
    version: &Function,
    instrumented: &Instrumented,
    entry: CheckedEntry<'_>,
) -> Result<Continuation, ContinuationError> {
    require_between(source, &[version], &entry)?;
    let entry = entry.entry();
    if instrumented.of != VersionKey::of(version) {
        return Err(ContinuationError::OtherVersions);
    }
    let moved = instrumented.entry(entry).ok_or(ContinuationError::NoSuchPoint(entry.target))?;
    let origins = &instrumented.origins;
    let named = |value: Value| origins.value(value).unwrap_or(value);
    // Constants decide branches like in the version *without* points. In the instrumented one, code
    // behind a point that always exits is unreachable. Constants would decide too much there for a
    // run that lands in it (`points_do_not_decide_branches`).
    let result = entry::PlannedEntry::new(source, &instrumented.function, &moved).and_then(
        |plan| match made(name, &plan, None, None) {
            Err(ContinuationError::NotProvided(_)) => made(
                name,
                &plan,
                Some(DecidedBranches { decided: &Decided::new(version), origins: Some(origins) }),
                None,
            ),
            whole => whole,
        },
    );
    let of = |inst| origins.inst(inst);
    let (version, without_points) = (&instrumented.function, Some((version, &of as _)));
    let landed = [LandedVersion { version, without_points }];
    let result = result.and_then(|made| judged(made, source, &landed, &moved));
    result.map_err(|error| match error {
        ContinuationError::NotProvided(value) => ContinuationError::NotProvided(named(value)),
        ContinuationError::WrongType { value, ty, given } => {
            ContinuationError::WrongType { value: named(value), ty, given }
        }
        error => error,
    })
}

/// Makes the function of a region. If it defines a provided value again before every read, the step
/// for that value is dead, which shows only in the finished function. The function is then made a
/// second time without it.
fn made(
    name: &str,
    plan: &entry::PlannedEntry<'_>,
    taken: Option<DecidedBranches<'_>>,
    out: Option<&Mapping>,
) -> Result<Continuation, ContinuationError> {
    let mut region = CopiedRegion::new(plan.target, plan.entry, taken, out)?;
    let continuation = emit::emit(name, plan, &region)?;
    let Continuation { function, taken_out, .. } = &continuation;
    let states = taken_out.iter().map(|(_, state)| state);
    let named: BTreeSet<Value> = states.flat_map(FrameState::values).collect();
    // A parameter without users stays: the signature follows the entry.
    let is_dead = |copy: Value| {
        let is_read = !function.users(copy).is_empty() || named.contains(&copy);
        !is_read && function.defining_inst(copy).is_some()
    };
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
