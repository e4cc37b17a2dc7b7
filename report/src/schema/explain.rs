//! The document that `osier explain --format json` prints.

use super::PerLevel;
use crate::source::Line;
use derive::driver::GivenUp;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// The explanation of one point.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Explanation {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// The path of the program in the form in which the user gave it.
    pub path: String,
    /// The name of the function.
    pub function: String,
    /// The name that the function has in the source. `null` if it is not known.
    pub source_name: Option<String>,
    /// The passes, in order.
    pub pipeline: Vec<String>,
    /// The level of the mappings.
    pub level: String,
    /// The point, as the user wrote it.
    pub asked: String,
    /// The rewrites that the optimized version lacks, so that entries hold. JSON has no such key
    /// for a version with inlined code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_up: Option<Vec<GivenUp>>,
    /// The number of calls that inlined code replaces. JSON has this key only for a version with
    /// inlined code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// The answers, one per requested direction, forward first.
    pub answers: Vec<PointAnswer>,
}

/// The answer for one direction.
///
/// About a version with inlined code, JSON also has the keys of [`InlinedPoint`] and no `levels`.
/// There the entry out of the version stands under the key `frames`, and `entry` is `null`.
#[derive(Clone, Debug)]
pub struct PointAnswer {
    /// `forward`, from the base to the optimized version, or `backward`.
    pub direction: &'static str,
    /// The status of the point.
    pub status: PointStatus,
    /// The point. `null` if the source version lacks it.
    pub point: Option<PointPlace>,
    /// The entry of the point, or `null`.
    pub entry: Option<ExplainedEntry>,
    /// The reason why the point has no entry. `null` if it has one.
    pub why: Option<ExplainedWhy>,
    /// Whether the point has an entry at each level. An entry of a lower level counts, as for
    /// `osier report`. All are `null` if the source version lacks the point or the point is
    /// unreachable.
    pub levels: PerLevel<bool>,
    /// What an answer about a version with inlined code adds.
    pub inlined: Option<InlinedPoint>,
}

impl Serialize for PointAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let PointAnswer { direction, status, point, entry, why, levels, inlined } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("direction", direction)?;
        map.serialize_entry("status", status)?;
        map.serialize_entry("point", point)?;
        if let Some(InlinedPoint { code_of, step }) = inlined {
            map.serialize_entry("code_of", code_of)?;
            let under = |leaves| entry.as_ref().filter(|entry| entry.level.is_none() == leaves);
            map.serialize_entry("entry", &under(false))?;
            map.serialize_entry("frames", &under(true))?;
            map.serialize_entry("why", why)?;
            map.serialize_entry("step", step)?;
        } else {
            map.serialize_entry("entry", entry)?;
            map.serialize_entry("why", why)?;
            map.serialize_entry("levels", levels)?;
        }
        map.end()
    }
}

/// What an answer about a version with inlined code adds.
#[derive(Clone, Debug, Default)]
pub struct InlinedPoint {
    /// The activations that the point stands for: the inlined function before an instruction, then
    /// its callers within their calls, outermost last. Empty for a point of the base, and if no
    /// code of the copy follows in the block of the point.
    pub code_of: Vec<ActivationPlace>,
    /// The versions between which the transition is lost: `base to cleaned`, `cleaned to base`,
    /// `copy to opt`, `opt to copy`, or `cleaned to copy` and `copy to frames` for the steps across
    /// the copy. `null` if the point has an entry or the source version lacks it.
    pub step: Option<&'static str>,
}

/// The status of a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PointStatus {
    /// The point has an entry that the checker accepted.
    Entry,
    /// Synthesis found no entry.
    None,
    /// Synthesis found an entry, and the driver dropped it because the checker did not accept it.
    Unproved,
    /// The point is in code that is proved never to run.
    Unreachable,
    /// The source version lacks the point, but the target version has it.
    Absent,
}

/// A place in the base of a function.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ActivationPlace {
    /// The name of the function.
    pub function: String,
    /// Whether the activation waits within the instruction, a call. Otherwise the activation is
    /// about to execute the instruction.
    pub waits: bool,
    /// The place in the base. In `code_of`, also a place of the function's own cleaned version, at
    /// an instruction that the passes before the inlining have added.
    pub place: PointPlace,
}

/// The parts of the price of a transition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct EntryPrice {
    /// The activations.
    pub activations: u64,
    /// The steps.
    pub operations: u64,
    /// The replayed stores.
    pub writes: u64,
    /// The values given to all activations.
    pub values: u64,
    /// The values kept for the entry alone, without arguments.
    pub kept: u64,
    /// The arguments of the function that are kept.
    pub kept_args: u64,
}

/// One activation that an entry leads to, and the values that it gets.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ExplainedLanding {
    /// The activation.
    #[serde(flatten)]
    pub at: ActivationPlace,
    /// The values that it gets, all at once.
    pub set: Vec<SetValue>,
    /// The values that the activation will get from the call within which it waits.
    pub awaits: Vec<String>,
}

/// A point of one version.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct PointPlace {
    /// `base` or `opt`; where code is inlined also `cleaned` or `copy`, the versions between.
    pub version: &'static str,
    /// The place in the notation of listings: block and index, `body:4`.
    pub at: String,
    /// The id of the instruction that is about to execute there.
    pub inst: String,
    /// The line of the source that the instruction comes from. `null` if it is not known.
    pub line: Option<Line>,
    /// The instruction in the text form, shortened if it is long.
    pub text: String,
}

/// An entry. JSON shows the landing of an entry between two versions of a function as the keys
/// `target`, `set` and `same`. An entry out of a version with inlined code has the keys `frames`
/// (its landings) and `price` instead, and no `level`.
#[derive(Clone, Debug)]
pub struct ExplainedEntry {
    /// The level whose mapping has the entry: the requested level or a lower one. `None` for an
    /// entry out of a version with inlined code.
    pub level: Option<String>,
    /// The activations that the entry leads to, the innermost first.
    pub landings: Vec<ExplainedLanding>,
    /// The steps of the compensation code, in order.
    pub compute: Vec<Computed>,
    /// The replayed stores, in order: stores that the source version has not executed. They follow
    /// the steps.
    pub replay: Vec<Replayed>,
    /// The values of the source version that the entry requires.
    pub reads: Vec<String>,
    /// The kept values: required values that are not live at the point.
    pub kept: Vec<Kept>,
}

impl ExplainedEntry {
    /// The landing of an entry between two versions of a function. `None` for an entry out of a
    /// version with inlined code.
    pub fn target(&self) -> Option<&ExplainedLanding> {
        self.landings.first().filter(|_| self.level.is_some())
    }

    /// The price of the transition.
    pub fn price(&self) -> EntryPrice {
        let kept_args = self.kept.iter().filter(|kept| kept.argument).count();
        EntryPrice {
            activations: self.landings.len() as u64,
            operations: self.compute.len() as u64,
            writes: self.replay.len() as u64,
            values: self.landings.iter().map(|landing| landing.set.len() as u64).sum(),
            kept: (self.kept.len() - kept_args) as u64,
            kept_args: kept_args as u64,
        }
    }
}

impl Serialize for ExplainedEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(ExplainedLanding { at, set, .. }) = self.target() {
            let others = set.iter().filter(|set| !set.same);
            let others = others.map(|set| SetSince { set, since: set.since.as_ref() });
            let same = set.iter().filter(|set| set.same).map(|set| set.value.as_str());
            map.serialize_entry("target", &at.place)?;
            map.serialize_entry("level", &self.level)?;
            map.serialize_entry("compute", &self.compute)?;
            map.serialize_entry("replay", &self.replay)?;
            map.serialize_entry("set", &others.collect::<Vec<_>>())?;
            map.serialize_entry("same", &same.collect::<Vec<_>>())?;
            map.serialize_entry("reads", &self.reads)?;
            map.serialize_entry("kept", &self.kept)?;
        } else {
            let replay: Vec<&str> = self.replay.iter().map(|replay| replay.code.as_str()).collect();
            map.serialize_entry("frames", &self.landings)?;
            map.serialize_entry("compute", &self.compute)?;
            map.serialize_entry("replay", &replay)?;
            map.serialize_entry("reads", &self.reads)?;
            map.serialize_entry("kept", &self.kept)?;
            map.serialize_entry("price", &self.price())?;
        }
        map.end()
    }
}

/// An assignment of an entry between two versions of a function.
#[derive(serde::Serialize)]
struct SetSince<'a> {
    #[serde(flatten)]
    set: &'a SetValue,
    since: Option<&'a PassAction>,
}

/// A step of compensation code.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Computed {
    /// The name by which later steps and assignments refer to the result: `$0`.
    pub name: String,
    /// The operation and the names of its operands.
    pub code: String,
    /// The meaning of the operation, in words.
    pub meaning: &'static str,
}

/// A replayed store.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Replayed {
    /// The operation and its operands: values of the source version or results of steps.
    pub code: String,
    /// The place of the store in the target version. `None` out of a version with inlined code.
    pub stands: Option<PointPlace>,
}

/// A value of an activation and its assignment.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SetValue {
    /// The name of the value, in its function.
    pub value: String,
    /// The assigned operand: a value of the source version or the result of a step.
    pub from: String,
    /// The definition of the value in its function.
    pub defined: String,
    /// Whether the operand is the value of the same id.
    #[serde(skip)]
    pub same: bool,
    /// The first action that concerns the value, or `null`.
    #[serde(skip)]
    pub since: Option<PassAction>,
}

/// A kept value.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Kept {
    /// The name of the value.
    pub value: String,
    /// The definition of the value in the source version.
    pub defined: String,
    /// Whether the value is an argument of the function. Callers may keep arguments anyway.
    pub argument: bool,
}

/// The reason why a point has no entry.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ExplainedWhy {
    /// The name of the reason in reports: one of `osr::Reason`, `unproved`, `unreachable` or
    /// `absent`.
    pub reason: &'static str,
    /// The reason in words.
    pub text: String,
    /// The value that cannot be provided, if that is the reason.
    pub value: Option<String>,
    /// The definition of that value in the target version.
    pub defined: Option<String>,
    /// The instruction that blocks the transition, if that is the reason: for example a possible
    /// trap that the source version has not passed, or a store that only one version has executed.
    pub trap: Option<PointPlace>,
    /// The verdict of the checker, if it did not accept the entry.
    pub verdict: Option<String>,
    /// The anchor at which the versions are not proved alike, if that is the reason.
    pub unproved: Option<UnprovedPlace>,
    /// The action to blame. `null` if none can be named.
    pub blame: Option<PassAction>,
    /// Whether the point gains an entry if the pipeline omits the blamed rewrites. `null` if that
    /// was not tested.
    pub tested: Option<TestedBlame>,
}

/// A test of blame: the pipeline ran again without the blamed rewrites.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct TestedBlame {
    /// Whether the point gains an entry if the pipeline omits the rewrites of `blame` and `also`,
    /// and no smaller set of them suffices. If false, `blame` is the suggestion of the log alone.
    pub mends: bool,
    /// The further actions to blame, one for each rewrite. The pipeline makes some of these
    /// rewrites only if an earlier one is omitted.
    pub also: Vec<PassAction>,
    /// The number of versions that the test made.
    pub runs: u64,
    /// The bound at which the test ended without an answer: `work`, `set`, `repeats` or
    /// `suspects` ([`derive::driver::counterfactual::SearchBound`]). `null` if `mends`.
    pub bound: Option<&'static str>,
}

/// A place at which the checker does not prove the two versions alike. The checker drops the
/// entries at all points from which, or to which, a run passes this place.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct UnprovedPlace {
    /// The name of the check that fails.
    pub check: &'static str,
    /// The anchor: an instruction of both versions.
    pub anchor: String,
    /// The part of the anchor or of the certificate at which the check fails.
    pub at: String,
    /// The operand in the base, if the check compares operands or block parameters.
    pub base: Option<String>,
    /// The operand in the optimized version.
    pub opt: Option<String>,
    /// The term that describes the contents in the base, if the check compares contents.
    pub base_term: Option<String>,
    /// The term that describes the contents in the optimized version.
    pub opt_term: Option<String>,
    /// The action that made the versions differ; `null` if none can be named.
    pub blame: Option<PassAction>,
}

/// An action of a pass.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct PassAction {
    /// The number of the action: 7 for the action that `osier opt --emit actions` prints as `a7`.
    pub number: u64,
    /// The name of the pass.
    pub pass: &'static str,
    /// The rule that the pass named.
    pub rule: &'static str,
    /// The action with ids, as `osier opt --emit actions` prints it.
    pub action: String,
    /// The action in words.
    pub words: String,
}
