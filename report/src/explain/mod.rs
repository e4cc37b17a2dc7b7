//! Explains one point of a function, or an assumption and its exit.
//!
//! If the point has an entry, the explanation shows the landing point, the compensation code and
//! the kept values. If not, it shows the reason and the action to blame.
//!
//! All answers about points come from the certified mappings and the log. Nothing is synthesized
//! again.

mod assumption;
mod difference;
mod inlined;
mod point;
mod tested;
mod text;
mod whole;
mod words;

pub use assumption::{AssumptionError, AssumptionQuestion, assumption_text, explain_assumption};
pub use difference::unproved;
pub use inlined::explain_inlined;
pub use point::alike;
pub use tested::test_blame;
pub use text::text;
pub(crate) use text::unproved_text;
pub(crate) use whole::{BlockVisits, FunctionView, ViewSurroundings, view};

use crate::blame::{History, Mentions};
use crate::listing::NamedVersion;
use crate::place;
use crate::schema::{
    ActivationPlace, Computed, ExplainedEntry, ExplainedLanding, ExplainedWhy, InlinedPoint, Kept,
    PassAction, PerLevel, PointAnswer, PointPlace, PointStatus, Replayed, SetValue,
};
use crate::source::Lines;
use crate::table::shortened;
use check::verdict::{Check, Verdict};
use derive::driver::{Derived, Proved};
use derive::driver::{UNPROVED, Why};
use difference::Differences;
use ir::cfg::Cfg;
use ir::{Function, Inst, Module, Opcode, Point, Value, ValueDef};
use osr::{Level, Obstacle};
use std::cell::OnceCell;
use std::fmt;
use transition::frames::FramePlace;
use transition::mapping::{Assign, Entry, Step};
use transition::{Pair, Side};
use words::Told;

/// The most bytes of an instruction that an answer shows.
const INST: usize = 100;

/// The most columns of the question that an error repeats.
const SHOWN: usize = 60;

/// The error for a point that neither version has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoSuchPoint {
    asked: String,
    near: String,
}

impl fmt::Display for NoSuchPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no point {:?} in either version: {}", self.asked, self.near)
    }
}

impl std::error::Error for NoSuchPoint {}

/// The question to answer.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The point, by the names of the source version:
    ///
    /// - `body:4`, a place in a listing,
    /// - `inst9`, an instruction,
    /// - `%x`, the point before the definition of a value,
    /// - `body`, the start of a block,
    /// - `prog.c:41`, the first point that comes from this line, if the lines are known.
    pub point: &'a str,
    /// The directions to answer for, in this order.
    pub headings: &'a [Side],
    /// The level. A point has an entry at a level if the mapping of that level or of a lower one
    /// has it.
    pub level: Level,
    /// The lines of the source, if they are known.
    pub lines: Option<&'a dyn Lines>,
}

/// Explains a point of a function, one answer per direction. `certified` must hold the mappings of
/// these versions at every level up to the level of the question. Cost: linear in the versions and
/// the log.
///
/// # Errors
/// If neither version has the point. The message suggests points that the text may have meant.
///
/// # Panics
/// If `certified` lacks the level or was made from other versions.
pub fn explain(
    module: &Module,
    base: &Function,
    derived: &Derived,
    certified: &Proved,
    question: Question<'_>,
) -> Result<Vec<PointAnswer>, NoSuchPoint> {
    let history = History { base, opt: &derived.function, log: &derived.log };
    let versions = [base, &derived.function];
    let [base, opt] = NamedVersion::pair(module, versions, &derived.log, question.lines);
    let told = Told { base, opt, history };
    let index = AnswerIndex::new(&told, certified, question.level);
    answers(&told, question, |heading, found| {
        let teller = index.teller(heading);
        match found {
            Found::Here(point) => teller.answer(point),
            Found::Elsewhere(point) => {
                absent(&told, [teller.from, teller.to], heading, question.point, point)
            }
        }
    })
}

/// The place of the point of a question.
enum Found {
    /// The source version has the point.
    Here(Point),
    /// Only the target version has it.
    Elsewhere(Point),
}

/// The answers to a question about two versions, one per direction.
///
/// # Errors
/// If neither version has the point.
fn answers(
    told: &Told<'_>,
    question: Question<'_>,
    answer: impl Fn(Side, Found) -> PointAnswer,
) -> Result<Vec<PointAnswer>, NoSuchPoint> {
    let (versions, asked) = ([&told.base, &told.opt], question.point);
    let found = versions.map(|version| point::find(version, asked));
    if found == [None, None] {
        let near = point::near(&versions, asked);
        return Err(NoSuchPoint { asked: shortened(asked, SHOWN), near });
    }
    // The place may lie beyond the end of a block that the passes shortened. The source version may
    // still have the instruction at another place. A name of a value does not count: the
    // instruction may define another value in this version.
    let has_same = |heading: Side, point: Point| {
        let version = versions[heading as usize].version;
        !asked.trim_start().starts_with('%') && version.has_inst(point.inst())
    };
    let place = |heading: Side| match (found[heading as usize], found[heading.other() as usize]) {
        (Some(point), _) => Found::Here(point),
        (None, Some(point)) if has_same(heading, point) => Found::Here(point),
        (None, elsewhere) => Found::Elsewhere(elsewhere.expect("one version has it")),
    };
    Ok(question.headings.iter().map(|heading| answer(*heading, place(*heading))).collect())
}

/// One of the two versions, with its name in answers.
#[derive(Clone, Copy)]
struct Shown<'a> {
    name: &'static str,
    version: &'a NamedVersion<'a>,
}

impl<'a> Shown<'a> {
    fn base(told: &'a Told<'_>) -> Shown<'a> {
        Shown { name: "base", version: &told.base }
    }

    fn opt(told: &'a Told<'_>) -> Shown<'a> {
        Shown { name: "opt", version: &told.opt }
    }

    fn place(&self, point: Point) -> PointPlace {
        PointPlace {
            version: self.name,
            at: self.version.place(point),
            inst: point.inst().to_string(),
            line: self.version.line(point),
            text: self.version.text.inst_up_to(point.inst(), INST),
        }
    }

    /// The definition of a value: an instruction with its place, an argument, or a block parameter.
    fn defined(&self, value: Value) -> String {
        match self.version.version.value_def(value) {
            ValueDef::Result(inst, _) => {
                format!(
                    "{} {}",
                    self.version.place(Point::before(inst)),
                    self.version.text.inst_up_to(inst, INST)
                )
            }
            ValueDef::Param(block, index) if block == self.version.version.entry() => {
                format!("argument {index}")
            }
            ValueDef::Param(block, _) => format!("parameter of {}", self.version.text.block(block)),
        }
    }

    fn values(&self, values: impl IntoIterator<Item = Value>) -> Vec<String> {
        values.into_iter().map(|value| self.version.text.value(value)).collect()
    }
}

/// The tables that all answers about two versions share. Without them, each answer would search
/// the log, the certificate and the points without an entry anew; a function has as many answers
/// as points.
struct AnswerIndex<'a> {
    told: &'a Told<'a>,
    certified: &'a Proved,
    level: Level,
    mentions: OnceCell<Mentions>,
    /// By side: the blocks that edges lead to.
    graphs: Pair<OnceCell<Cfg>>,
    differences: OnceCell<Differences<'a>>,
}

impl<'a> AnswerIndex<'a> {
    fn new(told: &'a Told<'a>, certified: &'a Proved, level: Level) -> AnswerIndex<'a> {
        let (mentions, graphs, differences) = Default::default();
        AnswerIndex { told, certified, level, mentions, graphs, differences }
    }

    fn teller(&self, heading: Side) -> Teller<'_, 'a> {
        let (base, opt) = (Shown::base(self.told), Shown::opt(self.told));
        let (from, to) = match heading {
            Side::Before => (base, opt),
            Side::After => (opt, base),
        };
        Teller { index: self, told: self.told, from, to, heading }
    }

    /// The number in the log of the first action that concerns a value.
    fn since(&self, value: Value) -> Option<usize> {
        let mentions = self.mentions.get_or_init(|| self.told.history.mentions());
        self.told.history.of_value_in(mentions, value)
    }

    fn graph(&self, side: Side) -> &Cfg {
        let version = match side {
            Side::Before => self.told.base.version,
            Side::After => self.told.opt.version,
        };
        self.graphs[side].get_or_init(|| Cfg::new(version))
    }

    fn differences(&self) -> &Differences<'a> {
        self.differences.get_or_init(|| Differences::new(self.told, &self.certified.certificate))
    }
}

/// Answers the question in one direction.
struct Teller<'i, 'a> {
    index: &'i AnswerIndex<'a>,
    told: &'a Told<'a>,
    from: Shown<'a>,
    to: Shown<'a>,
    heading: Side,
}

impl Teller<'_, '_> {
    /// The entry used at a level, and the level of its mapping: the level itself or the nearest
    /// lower level with an entry.
    fn entry(&self, point: Point, level: Level) -> Option<(Level, &Entry)> {
        let levels = self.index.certified.levels.iter().rev().filter(|(of, _)| *of <= level);
        levels.filter_map(|(of, made)| Some((*of, made[self.heading].mapping.entry(point)?))).next()
    }

    fn answer(&self, point: Point) -> PointAnswer {
        let entry =
            self.entry(point, self.index.level).map(|(level, entry)| self.moved(level, entry));
        let answer = answered(self.heading, self.from.place(point), entry, || self.why(point));
        let mut levels = PerLevel::default();
        if answer.status != PointStatus::Unreachable {
            for (level, _) in &self.index.certified.levels {
                levels.set(place(*level), self.entry(point, *level).is_some());
            }
        }
        PointAnswer { levels, ..answer }
    }

    fn moved(&self, level: Level, entry: &Entry) -> ExplainedEntry {
        let since = |value| self.index.since(value).map(|n| self.told.done(n));
        let stands = |inst| self.to.place(Point::before(inst));
        shown_entry([self.from, self.to], level, entry, since, stands)
    }

    /// The status of a point without an entry, and the reason.
    fn why(&self, point: Point) -> (PointStatus, ExplainedWhy) {
        let made = self.index.certified.at(self.index.level);
        let made = made.expect("mappings were made at the level asked about");
        let why = made[self.heading].missing.at(point);
        if let Some(Why::Obstacle(obstacle)) = why {
            return (PointStatus::None, why_obstacle(self.told, [self.from, self.to], obstacle));
        }
        if let Some(verdict) = why.and_then(Why::verdict) {
            let finding = verdict.finding().expect("what is rejected failed a check");
            let unproved = self.index.certified.unproved.iter().find(|u| u.finding == finding);
            let unproved = unproved.map(|unproved| self.index.differences().told(unproved));
            let mut why = why_unproved(self.told, point, &verdict);
            if let Some(unproved) = &unproved {
                why.blame = unproved.blame.clone();
            }
            return (PointStatus::Unproved, ExplainedWhy { unproved, ..why });
        }
        (
            PointStatus::Unreachable,
            why_unreachable(self.told, self.from, point, self.index.graph(self.heading)),
        )
    }
}

/// The answer for a point of the source version. `why` explains a point without an entry.
fn answered(
    heading: Side,
    point: PointPlace,
    entry: Option<ExplainedEntry>,
    why: impl FnOnce() -> (PointStatus, ExplainedWhy),
) -> PointAnswer {
    let (status, why) = match &entry {
        Some(_) => (PointStatus::Entry, None),
        None => {
            let (status, why) = why();
            (status, Some(why))
        }
    };
    let (direction, point, levels) = (heading.direction(), Some(point), PerLevel::default());
    PointAnswer { direction, status, point, entry, why, levels, inlined: None }
}

/// The answer for a point of the target version that the source version lacks.
fn absent(
    told: &Told<'_>,
    versions: [Shown<'_>; 2],
    heading: Side,
    asked: &str,
    elsewhere: Point,
) -> PointAnswer {
    PointAnswer {
        direction: heading.direction(),
        status: PointStatus::Absent,
        point: None,
        entry: None,
        why: Some(why_absent(told, versions, asked, elsewhere)),
        levels: PerLevel::default(),
        inlined: None,
    }
}

fn because(
    told: &Told<'_>,
    reason: &'static str,
    text: String,
    blame: Option<usize>,
) -> ExplainedWhy {
    let blame = blame.map(|number| told.done(number));
    let (value, defined, trap, verdict, unproved, tested) = Default::default();
    ExplainedWhy { reason, text, value, defined, trap, verdict, unproved, blame, tested }
}

/// Why synthesis found no entry.
fn why_obstacle(told: &Told<'_>, [from, to]: [Shown<'_>; 2], obstacle: &Obstacle) -> ExplainedWhy {
    let (name, text) = (obstacle.reason.name(), obstacle.reason.to_string());
    // The blocking instruction may be a store that only the source version has. Show it there
    // (`explanations_of_all_points_match_the_report`).
    let home = |inst: Inst| if to.version.version.has_inst(inst) { to } else { from };
    ExplainedWhy {
        value: obstacle.value.map(|value| to.version.text.value(value)),
        defined: obstacle.value.map(|value| to.defined(value)),
        trap: obstacle.inst.map(|inst| home(inst).place(Point::before(inst))),
        ..because(told, name, text, obstacle.blame.map(|blame| blame.action))
    }
}

/// Why a point has no entry whose entry the checker did not accept.
fn why_unproved(told: &Told<'_>, point: Point, verdict: &Verdict) -> ExplainedWhy {
    let text = verdict.finding().map_or(String::new(), |finding| rejected_text(finding.check));
    let blame = told.history.of_rejected(point, verdict);
    ExplainedWhy { verdict: Some(verdict.to_string()), ..because(told, UNPROVED, text, blame) }
}

/// Why the checker did not accept an entry, in words.
fn rejected_text(check: Check) -> String {
    match check {
        Check::SourceReached => {
            "the certificate shows that the point is unreachable, so it has no entry".to_owned()
        }
        check => format!(
            "the checker did not accept the entry that was found; failed check: {}",
            check.summary().trim()
        ),
    }
}

fn why_unreachable(told: &Told<'_>, from: Shown<'_>, point: Point, graph: &Cfg) -> ExplainedWhy {
    let function = from.version.version;
    let block = function.inst_block(point.inst());
    let name = from.version.text.block(block);
    let text = match graph.is_reachable(block) {
        false => format!("{name} is unreachable: no reachable block leads to it"),
        true => format!("{name} is unreachable: the passes proved it"),
    };
    because(told, "unreachable", text, told.history.of_unreachable(block))
}

/// Why the source version lacks a point that the target version has.
fn why_absent(
    told: &Told<'_>,
    [from, to]: [Shown<'_>; 2],
    asked: &str,
    elsewhere: Point,
) -> ExplainedWhy {
    let place = to.place(elsewhere);
    let (name, asked) = (asked.trim(), shortened(asked.trim(), SHOWN));
    let text =
        format!("{} lacks {asked}; in {} it is at {} {}", from.name, to.name, place.at, place.inst);
    let f = to.version.version;
    let block = f.inst_block(elsewhere.inst());
    let param = f.block_params(block).iter().copied().find(|v| to.version.text.value(*v) == name);
    let history = &told.history;
    let blame = match param {
        Some(param) => history.of_value(param),
        None => history.of_inst(elsewhere.inst()).or_else(|| history.of_block(block)),
    };
    because(told, "absent", text, blame)
}

/// An entry from one version of a function to another. `since` finds the first action on a value,
/// and `stands` the place of a replayed store.
fn shown_entry(
    [from, to]: [Shown<'_>; 2],
    level: Level,
    entry: &Entry,
    since: impl Fn(Value) -> Option<PassAction>,
    stands: impl Fn(Inst) -> PointPlace,
) -> ExplainedEntry {
    let mut landing = shown_landing([from, to], FramePlace::Before(entry.target), &entry.assigns);
    for (set, assign) in landing.set.iter_mut().zip(&entry.assigns).filter(|(set, _)| !set.same) {
        set.since = since(assign.value);
    }
    let mut shown = shown_code(from, entry, vec![landing]);
    for (shown, replay) in shown.replay.iter_mut().zip(&entry.replays) {
        shown.stands = Some(stands(replay.inst));
    }
    ExplainedEntry { level: Some(level.name().to_owned()), ..shown }
}

/// The code of an entry, and its landings.
fn shown_code(from: Shown<'_>, entry: &Entry, landings: Vec<ExplainedLanding>) -> ExplainedEntry {
    let replay = entry.replays.iter().map(|replay| from.version.replay(replay));
    ExplainedEntry {
        level: None,
        landings,
        compute: computed(from, &entry.steps),
        replay: replay.map(|code| Replayed { code, stands: None }).collect(),
        reads: from.values(entry.requires.iter().copied()),
        kept: kept(from, &entry.kept),
    }
}

/// An activation that an entry lands in.
fn shown_landing(
    [from, to]: [Shown<'_>; 2],
    at: FramePlace,
    assigns: &[Assign],
) -> ExplainedLanding {
    let set = assigns.iter().map(|assign| SetValue {
        value: to.version.text.value(assign.value),
        from: from.version.operand(assign.from),
        defined: to.defined(assign.value),
        same: assign.is_identity(),
        since: None,
    });
    let function = to.version.version;
    let awaits: &[Value] = match at {
        FramePlace::Before(_) => &[],
        FramePlace::Within(call) => &function.inst(call).results,
    };
    let waits = matches!(at, FramePlace::Within(_));
    let place = to.place(Point::before(at.inst()));
    ExplainedLanding {
        at: ActivationPlace { function: function.name().to_owned(), waits, place },
        set: set.collect(),
        awaits: to.values(awaits.iter().copied()),
    }
}

/// Steps over values of a version.
fn computed(from: Shown<'_>, steps: &[Step]) -> Vec<Computed> {
    let step = |(index, step): (usize, &Step)| Computed {
        name: format!("${index}"),
        code: from.version.step(step),
        meaning: match step.opcode {
            Opcode::Const => "A constant.",
            opcode => opcode.summary().trim(),
        },
    };
    steps.iter().enumerate().map(step).collect()
}

/// Kept values of a version.
fn kept(from: Shown<'_>, values: &[Value]) -> Vec<Kept> {
    let arguments = from.version.version.arguments();
    let one = |value: &Value| Kept {
        value: from.version.text.value(*value),
        defined: from.defined(*value),
        argument: arguments.contains(value),
    };
    values.iter().map(one).collect()
}
