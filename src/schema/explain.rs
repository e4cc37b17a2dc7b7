//! What `osier explain --format json` writes.

use super::PerLevel;

/// What `osier explain` tells about one point.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Explanation {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// The path of the program as it was given.
    pub path: String,
    /// The function.
    pub function: String,
    /// The passes, in order.
    pub pipeline: Vec<String>,
    /// The level of the mappings.
    pub level: String,
    /// The point as it was asked for.
    pub asked: String,
    /// One for each direction asked for, forward first.
    pub answers: Vec<Answer>,
}

/// What holds of the point in one direction.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Answer {
    /// `forward`, from the base to the optimized version, or `backward`.
    pub direction: &'static str,
    /// What there is.
    pub status: Status,
    /// The point; `null` when the version left does not have it.
    pub point: Option<Place>,
    /// How execution moves; `null` without an entry.
    pub entry: Option<Move>,
    /// Why it cannot move; `null` with an entry.
    pub why: Option<Why>,
    /// For each level, whether the point has an entry there, by the rule of `osier report`: this
    /// level's, or one of a level before. `null` throughout when the point does not exist or is
    /// never reached.
    pub levels: PerLevel<bool>,
}

/// What there is at a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// An entry, proved.
    Entry,
    /// No entry was found.
    None,
    /// An entry was found and dropped: the checker did not accept it.
    Unproved,
    /// The point lies in code proved never to run.
    Unreachable,
    /// The version left does not have the point; the other version has.
    Absent,
}

/// A point of one version.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Place {
    /// `base` or `opt`.
    pub version: &'static str,
    /// As listings write it: block and index, `body:4`.
    pub at: String,
    /// The instruction about to execute there, by id.
    pub inst: String,
    /// The same as the text form writes it.
    pub text: String,
}

/// How execution moves.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Move {
    /// Where it goes on.
    pub target: Place,
    /// The level whose mapping has the entry: the one asked for, or one before it.
    pub level: String,
    /// What is computed on the way, in order.
    pub compute: Vec<Computed>,
    /// The writes of the version entered that are then executed, since the version left has not
    /// executed them: in order.
    pub replay: Vec<Replayed>,
    /// What is then set, all at once.
    pub set: Vec<SetValue>,
    /// The values that hold in the version entered what they hold in the one left.
    pub same: Vec<String>,
    /// The values of the version left that the entry reads.
    pub reads: Vec<String>,
    /// Those of them that have to be kept for it: nothing else needs them there any more.
    pub kept: Vec<Kept>,
}

/// One step of compensation code.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Computed {
    /// The name later steps and values use: `$0`.
    pub name: String,
    /// The operation, operands by name.
    pub code: String,
    /// What the operation does, in words.
    pub meaning: &'static str,
}

/// A write that is executed on moving over.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Replayed {
    /// The operation and what it reads: values of the version left, or results of steps.
    pub code: String,
    /// Where it stands in the version entered.
    pub stands: Place,
}

/// A value of the version entered, and what it is given.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SetValue {
    /// The value.
    pub value: String,
    /// What it is given: a value of the version left, or the result of a step.
    pub from: String,
    /// Where the version entered has it from.
    pub defined: String,
    /// The first action of the passes that has to do with the value; `null` when there is none.
    pub since: Option<Done>,
}

/// A value that has to be kept.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Kept {
    /// The value.
    pub value: String,
    /// Where the version left has it from.
    pub defined: String,
    /// Whether it is an argument of the function, which callers may keep anyway.
    pub argument: bool,
}

/// Why there is no entry.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Why {
    /// The reason as reports name it: one of `osr::Reason`, `unproved`, `unreachable` or `absent`.
    pub reason: &'static str,
    /// The same in words.
    pub text: String,
    /// The value that cannot be provided, if that is why.
    pub value: Option<String>,
    /// Where the version to be entered has it from.
    pub defined: Option<String>,
    /// The instruction of the version to be entered that may trap and has not been passed, if that
    /// is why.
    pub trap: Option<Place>,
    /// What the checker said, if it dropped the entry.
    pub verdict: Option<String>,
    /// The action to blame; `null` when none can be named.
    pub blame: Option<Done>,
}

/// Something a pass did.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Done {
    /// Its number: 7 of what `osier opt --emit actions` prints as `a7`.
    pub number: u64,
    /// The pass.
    pub pass: &'static str,
    /// The rule the pass named.
    pub rule: &'static str,
    /// The action by ids, as `osier opt --emit actions` prints it.
    pub action: String,
    /// The same in words.
    pub words: String,
}
