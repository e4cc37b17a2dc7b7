//! Entries into a continuation, and out of it: both across the landing point of the entry that the
//! continuation is the code behind ([`super::continuation`]).
//!
//! Let e be an accepted entry that lands in the version p, and C the continuation of e: a function
//! of its own, of which versions are made as of any function. This module adds the steps across the
//! landing point, in two directions.
//!
//! Example: a run of p is at the header of a hot loop. C is the loop, and what follows it, with the
//! values live there as parameters. Versions of C may assume at their first instruction, in front
//! of the loop. So the run enters a version of C at its start, where nothing was assumed before.
//! If an assumption fails, the run leaves to p, at the place in p where it has come to.
//!
//! *In* ([`enter_continuation`]). The run of the source of e is at the source point of e. By the
//! claim of continuations, C then does what the target of e does behind the landing point, if its
//! parameters hold the values that e requires. The entry gives a version of C these parameters and
//! lands before its first instruction. Nothing is executed there, so the memory and the effects
//! are those of C. All parameters are provided, and nothing else is available there.
//!
//! *Out* ([`leave_continuation`]). An accepted entry leads from a version of C to a point x of C,
//! and provides values of C. The walk over C has found that p is at the place of x, and which
//! values of p the values of C hold ([`super::continuation`]). Memory and effects are equal there.
//! So an accepted entry of p at this place goes on, with the values of p under their own names, as
//! in [`super::compose`]. For the place itself, [`super::stay`] makes such an entry: it requires
//! what p reads from there on, so the composition fails if C lacks one of these values.
//!
//! The entry block of C executes the compensation code of e first. Steps change no memory, so p is
//! at the landing point of e before each of them. Replays do: if e has any, entries that land in
//! front of them lead nowhere, since p has no point there.

use super::compose::CheckedComposition;
use super::continuation::{ContinuationFault, LandedVersion, VersionStates, walked};
use super::seal::{Checked, CheckedEntry};
use ir::{Function, Inst, Point, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use transition::copy::ContinuationClaim;
use transition::mapping::{Assign, Entry, Mapping, Operand};
use transition::{Refusal, VersionKey, compose_renamed};

/// A continuation: the function, and the claim that it is the code behind the landing of an entry.
#[derive(Clone, Copy, Debug)]
pub struct RestOf<'a> {
    /// The continuation.
    pub function: &'a Function,
    /// The source version of the entry.
    pub source: &'a Function,
    /// The version that the entry lands in.
    pub target: &'a Function,
    /// The entry, which lands in one activation.
    pub entry: CheckedEntry<'a>,
    /// The claim.
    pub claim: &'a ContinuationClaim,
}

/// Why there are no entries across the landing point of a continuation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RestFault {
    /// The function is no continuation as claimed.
    Claim(ContinuationFault),
    /// The entry, or one of the mappings, belongs to other versions.
    OtherVersions,
    /// The version to enter is none of the continuation.
    OtherFamily,
}

impl fmt::Display for RestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestFault::Claim(fault) => write!(f, "the function is no continuation: {fault}"),
            RestFault::OtherVersions => f.write_str("the entry or a mapping is of other versions"),
            RestFault::OtherFamily => f.write_str("the function is no version of the continuation"),
        }
    }
}

impl std::error::Error for RestFault {}

impl RestOf<'_> {
    /// Checks the claim, and finds the states of the target before these instructions.
    fn states(&self, asked: BTreeSet<Inst>) -> Result<VersionStates, RestFault> {
        let (source, target) = (VersionKey::of(self.source), VersionKey::of(self.target));
        if (self.entry.source(), self.entry.target()) != (source, target) {
            return Err(RestFault::OtherVersions);
        }
        let landed = LandedVersion { version: self.target, without_points: None };
        let entry = self.entry.entry();
        if entry.activations() != 1 {
            return Err(RestFault::Claim(ContinuationFault::Signature));
        }
        let walk = walked(self.function, self.source, &[landed], entry, self.claim, asked);
        walk.map(|walk| walk.states).map_err(RestFault::Claim)
    }
}

/// The entry from the source version of a continuation's entry to the start of a version of the
/// continuation, which may be the continuation itself. Cost: linear in the continuation.
///
/// # Errors
/// [`RestFault`].
pub fn enter_continuation(
    rest: &RestOf<'_>,
    version: &Function,
) -> Result<Checked<Mapping>, RestFault> {
    rest.states(BTreeSet::new())?;
    // Versions of one family share their parameters, in which a run of each begins alike.
    if version.family() != rest.function.family() {
        return Err(RestFault::OtherFamily);
    }
    let start = version.entry();
    let of = rest.entry.entry();
    let params = version.block_params(start).iter().zip(&of.requires);
    let given =
        |(param, of): (&Value, &Value)| Assign { value: *param, from: Operand::Source(*of) };
    let mut assigns: Vec<Assign> = params.map(given).collect();
    assigns.sort_unstable();
    let entry = Entry {
        target: Point::before(version.first_inst(start)),
        steps: Vec::new(),
        replays: Vec::new(),
        assigns,
        requires: of.requires.clone(),
        kept: of.kept.clone(),
        inner: Box::default(),
    };
    let mut mapping = Mapping::between(rest.entry.source(), VersionKey::of(version));
    mapping.insert(rest.entry.point(), entry);
    Ok(Checked::accepted(mapping))
}

/// Carries the entries of a mapping into a continuation on by entries of its target version. Also
/// returns the points at which the first mapping has an entry and the composition lacks one. Cost:
/// linear in the continuation, and near linear in the entries and the values in them.
///
/// # Errors
/// [`RestFault`], also when the first mapping does not lead to the continuation, or the second does
/// not leave from its target.
pub fn leave_continuation(
    first: &Checked<Mapping>,
    rest: &RestOf<'_>,
    second: &Checked<Mapping>,
) -> Result<CheckedComposition, RestFault> {
    let is_chain = first.target() == VersionKey::of(rest.function)
        && second.source() == VersionKey::of(rest.target);
    if !is_chain {
        return Err(RestFault::OtherVersions);
    }
    let asked = first.entries().map(|(_, entry)| entry.target.inst()).collect();
    let states = rest.states(asked)?;
    let composed = |entry: &Entry| left(entry, &states, second);
    Ok(CheckedComposition::of_each(first, second.target(), composed))
}

fn left(first: &Entry, states: &VersionStates, second: &Mapping) -> Result<Entry, Refusal> {
    let state = states.get(&first.target.inst()).ok_or(Refusal::NoSecondEntry)?;
    let (at, held): &(Inst, BTreeMap<Value, Vec<Value>>) = state;
    let next = second.entry(Point::before(*at)).ok_or(Refusal::NoSecondEntry)?;
    let names = |value: Value| held.get(&value).into_iter().flatten().copied();
    compose_renamed(first, names, next)
}

/// The points of the target version where a run is when it is at these points of a continuation,
/// ascending. [`leave_continuation`] goes on by entries there. Cost: linear in the continuation.
///
/// # Errors
/// [`RestFault`].
pub fn places_in_target(
    rest: &RestOf<'_>,
    points: impl IntoIterator<Item = Point>,
) -> Result<BTreeSet<Point>, RestFault> {
    let states = rest.states(points.into_iter().map(Point::inst).collect())?;
    Ok(states.into_values().map(|(at, _)| Point::before(at)).collect())
}
