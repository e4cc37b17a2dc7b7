//! Explains one point of a version with inlined code, or of its base.
//!
//! Entries into and out of the version are composed of three steps. A point without an entry
//! reports the reason of its missing step.

use super::words::Told;
use super::{
    Found, InlinedPoint, NoSuchPoint, Question, Shown, absent, answered, answers, because,
    shown_code, shown_entry, shown_landing, why_obstacle, why_unproved, why_unreachable,
};
use crate::blame::History;
use crate::listing::NamedVersion;
use crate::schema::{
    ActivationPlace, ExplainedEntry, ExplainedWhy, PointAnswer, PointPlace, PointStatus,
};
use crate::source::{Lines, VersionLines};
use check::FrameRefusal;
use derive::driver::{ProvedMapping, UNPROVED, Why};
use derive::inlining::Inlined;
use ir::cfg::Cfg;
use ir::edit::ActionLog;
use ir::{Func, Inst, Module, Point, Value};
use osr::{Level, Version, VersionTree};
use transition::copy::InstanceId;
use transition::frames::Landing;
use transition::mapping::Entry;
use transition::{Refusal, Side};

/// Explains a point of a version with inlined code, or of its base, one answer per direction. Cost:
/// linear in the versions and their logs. Its entries are of the level `avail`, the only level of
/// versions with inlined code, whatever the level of the question.
///
/// # Errors
/// If neither the base nor the version has the point. The message suggests points that the text may
/// have meant.
pub fn explain_inlined(
    module: &Module,
    made: &Inlined,
    question: Question<'_>,
) -> Result<Vec<PointAnswer>, NoSuchPoint> {
    let ends = [
        (VersionTree::BASE, made.cleaned),
        (made.copy, made.optimized),
        (VersionTree::BASE, made.optimized),
    ];
    let log = |(from, to): (Version, Version)| made.tree.log(from, to).expect("one path of logs");
    let logs: [ActionLog; 3] = ends.map(log);
    let told = |at: usize| {
        let (from, to) = ends[at];
        let [base, opt] = [from, to].map(|version| made.tree.function(version));
        let history = History { base, opt, log: &logs[at] };
        let named = |version| NamedVersion::of_inlined(module, made, version, question.lines);
        Told { base: named(from), opt: named(to), history }
    };
    let told = [told(0), told(1), told(2)];
    let teller = InlinedTeller { module, made, told, lines: question.lines };
    answers(&teller.told[2], question, |heading, found| match found {
        Found::Here(point) => teller.answer(heading, point),
        Found::Elsewhere(point) => teller.absent(heading, question.point, point),
    })
}

/// Whether a version has proved a point unreachable, or an action has removed its block.
fn is_removed(told: &Told<'_>, shown: Shown<'_>, point: Point) -> bool {
    let f = shown.version.version;
    let block = f.inst_block(point.inst());
    !Cfg::new(f).is_reachable(block) || told.history.of_unreachable(block).is_some()
}

/// Why a point has no entry: its status, the reason and the step that is missing.
type ToldWhy = (PointStatus, ExplainedWhy, Option<&'static str>);

struct InlinedTeller<'a> {
    module: &'a Module,
    made: &'a Inlined,
    /// The base with the cleaned version, the copy with the optimized one, and the base with the
    /// optimized one.
    told: [Told<'a>; 3],
    lines: Option<&'a dyn Lines>,
}

impl InlinedTeller<'_> {
    /// One of the four versions by its name in answers.
    fn shown(&self, name: &'static str) -> Shown<'_> {
        let [first, last, _] = &self.told;
        let version = match name {
            "base" => &first.base,
            "cleaned" => &first.opt,
            "copy" => &last.base,
            _ => &last.opt,
        };
        Shown { name, version }
    }

    /// The place of an instruction in the last version that has the instruction.
    fn stands(&self, inst: Inst) -> PointPlace {
        let names = ["opt", "copy", "cleaned", "base"];
        let versions = names.map(|name| self.shown(name));
        let found = versions.into_iter().find(|shown| shown.version.version.has_inst(inst));
        found.expect("a version has it").place(Point::before(inst))
    }

    fn answer(&self, heading: Side, point: Point) -> PointAnswer {
        let (entry, code_of) = match heading {
            Side::Before => (self.made.up.entry(point).map(|entry| self.up(entry)), Vec::new()),
            Side::After => {
                (self.made.down.entry(point).map(|entry| self.down(entry)), self.code_of(point))
            }
        };
        let from = self.shown(if heading == Side::Before { "base" } else { "opt" });
        let mut step = None;
        let answer = answered(heading, from.place(point), entry, || {
            let (status, why, missing) = self.why(heading, point);
            step = missing;
            (status, why)
        });
        PointAnswer { inlined: Some(InlinedPoint { code_of, step }), ..answer }
    }

    fn absent(&self, heading: Side, asked: &str, elsewhere: Point) -> PointAnswer {
        // The point of the version may be in inlined code.
        let (names, code_of) = match heading {
            Side::Before => (["base", "opt"], self.code_of(elsewhere)),
            Side::After => (["opt", "base"], Vec::new()),
        };
        let versions = names.map(|name| self.shown(name));
        let inlined = Some(InlinedPoint { code_of, step: None });
        PointAnswer { inlined, ..absent(&self.told[2], versions, heading, asked, elsewhere) }
    }

    /// The activations of originals that a point of the optimized version stands for.
    fn code_of(&self, point: Point) -> Vec<ActivationPlace> {
        let Some((id, at)) = self.made.origin(point) else { return Vec::new() };
        let stack = self.made.copies.stack(id, at).enumerate();
        let place = |(index, (id, inst)): (usize, (InstanceId, Inst))| {
            let func = self.made.copies.instances()[id].func;
            // The passes before the inlining may have added an instruction of the function itself.
            let has_it = self.module.body(func).is_some_and(|base| base.has_inst(inst));
            let place = match has_it {
                true => self.in_base(func, inst),
                false => self.shown("cleaned").place(Point::before(inst)),
            };
            ActivationPlace { function: self.name(func), waits: index > 0, place }
        };
        stack.map(place).collect()
    }

    fn name(&self, func: Func) -> String {
        self.module.body(func).expect("it is inlined").name().to_owned()
    }

    fn in_base(&self, func: Func, inst: Inst) -> PointPlace {
        let version = self.base_of(func);
        Shown { name: "base", version: &version }.place(Point::before(inst))
    }

    /// The base of a function that is inlined, or that an entry lands in.
    fn base_of(&self, func: Func) -> NamedVersion<'_> {
        let base = self.module.body(func).expect("it is inlined");
        let lines = self.lines.map(|lines| VersionLines::of_base(lines, func));
        NamedVersion::new(self.module, base).with_lines(lines)
    }

    /// An entry into the optimized version.
    fn up(&self, entry: &Entry) -> ExplainedEntry {
        // An action behind the inlining says more about the value than the inlining itself.
        let since = |value| {
            let mut told = [&self.told[1], &self.told[2]].into_iter();
            told.find_map(|told| told.history.of_value(value).map(|number| told.done(number)))
        };
        let versions = ["base", "opt"].map(|name| self.shown(name));
        shown_entry(versions, Level::Avail, entry, since, |inst| self.stands(inst))
    }

    /// An entry out of the optimized version.
    fn down(&self, entry: &Entry) -> ExplainedEntry {
        let (opt, func) = (self.shown("opt"), self.made.copies.instances()[0].func);
        let landing = |Landing { func, at, assigns, .. }: Landing<'_>| {
            let version = self.base_of(func);
            shown_landing([opt, Shown { name: "base", version: &version }], at, assigns)
        };
        let landings = entry.landings(func, self.made.down.target()).map(landing);
        shown_code(opt, entry, landings.collect())
    }

    /// The status of a point without an entry, and the reason.
    fn why(&self, heading: Side, point: Point) -> ToldWhy {
        let pairs = &self.made.pairs;
        let refused = match heading {
            Side::Before => self
                .missing(point, &pairs[0].before, 0, ["base", "cleaned"])
                .or_else(|| self.not_entered(point)),
            Side::After => self
                .missing(point, &pairs[1].after, 1, ["opt", "copy"])
                .or_else(|| self.not_left(point)),
        };
        refused.unwrap_or_else(|| {
            let (at, from) = if heading == Side::Before { (0, "base") } else { (1, "opt") };
            let (told, from) = (&self.told[at], self.shown(from));
            let is_dead = self.made.unreachable[at].contains(&point);
            match is_dead || is_removed(told, from, point) {
                true => (
                    PointStatus::Unreachable,
                    why_unreachable(told, from, point, &Cfg::new(from.version.version)),
                    None,
                ),
                false => {
                    let text = "no entry is proved at the point".to_owned();
                    (PointStatus::Unproved, because(told, UNPROVED, text, None), None)
                }
            }
        })
    }

    /// The reason why a step of a pair is missing at a point. `None` if the point has the step.
    fn missing(
        &self,
        point: Point,
        made: &ProvedMapping,
        at: usize,
        names: [&'static str; 2],
    ) -> Option<ToldWhy> {
        let told = &self.told[at];
        let ends = [(VersionTree::BASE, self.made.cleaned), (self.made.copy, self.made.optimized)];
        // A plan that assumes composes the step, and its obstacles are about a version in between.
        if self.made.tree.parent(ends[at].1) != Some(ends[at].0) {
            return None;
        }
        let step = match names {
            ["base", _] => "base to cleaned",
            ["cleaned", _] => "cleaned to base",
            ["copy", _] => "copy to opt",
            _ => "opt to copy",
        };
        let verdict = match made.missing.at(point)? {
            Why::Obstacle(obstacle) => {
                let why = why_obstacle(told, names.map(|name| self.shown(name)), obstacle);
                return Some((PointStatus::None, why, Some(step)));
            }
            Why::Unproved(verdict) => (*verdict)?,
            Why::Refused(_) | Why::Frames(_) => return None,
        };
        let why = why_unproved(told, point, &verdict);
        Some((PointStatus::Unproved, why, Some(step)))
    }

    /// The reason why an entry into the cleaned version cannot be extended into the copy or the
    /// optimized version.
    fn not_entered(&self, point: Point) -> Option<ToldWhy> {
        let Why::Refused(refusal) = self.made.missing[0].at(point)? else { return None };
        let landing = self.made.pairs[0].before.mapping.entry(point)?.target.inst();
        let Some(place) = self.made.copies.place(landing).map(Point::before) else {
            return Some(self.no_place(landing, *refusal));
        };
        let ahead = &self.made.pairs[1].before;
        if let Some(why) = self.missing(place, ahead, 1, ["copy", "opt"]) {
            return Some(why);
        }
        let told = &self.told[1];
        let why = match refusal {
            Refusal::NotProvided { value } => self.not_provided(*refusal, *value, "copy", told),
            Refusal::NoSecondEntry if is_removed(told, self.shown("copy"), place) => {
                let copy = self.shown("copy");
                let why = why_unreachable(told, copy, place, &Cfg::new(copy.version.version));
                ExplainedWhy { reason: refusal.name(), ..why }
            }
            _ => because(told, refusal.name(), refusal.to_string(), None),
        };
        Some((PointStatus::None, why, Some("copy to opt")))
    }

    /// The reason why an instruction of the cleaned version has no unique place in the copy: a
    /// preceding inlined call does not return, or the instruction has several copies.
    fn no_place(&self, inst: Inst, refusal: Refusal) -> ToldWhy {
        let (copy, cleaned) = (self.shown("copy"), self.shown("cleaned").version.version);
        let copies = &self.made.copies;
        let is_there = |of: Inst| copies.origin(of) == Some((0, inst));
        if copy.version.version.all_insts().any(is_there) {
            let why = because(&self.told[2], refusal.name(), refusal.to_string(), None);
            return (PointStatus::None, why, Some("cleaned to copy"));
        }
        let before = std::iter::successors(Some(inst), |inst| cleaned.prev_inst(*inst));
        let calls: Vec<Option<(InstanceId, Inst)>> =
            copies.instances().iter().map(|one| one.caller).collect();
        let call = before.into_iter().find(|call| calls.contains(&Some((0, *call))));
        let text = "no run of the version with inlined code gets there: an inlined call before it \
                    does not return";
        let told = &self.told[2];
        let blame = call.and_then(|call| told.history.of_inst(call));
        let why = because(told, refusal.name(), text.to_owned(), blame);
        (PointStatus::None, why, Some("cleaned to copy"))
    }

    /// The reason why an entry into the copy cannot be extended to frames.
    fn not_left(&self, point: Point) -> Option<ToldWhy> {
        let Why::Frames(refusal) = self.made.missing[1].at(point)? else { return None };
        let landing = self.made.pairs[1].after.mapping.entry(point)?.target.inst();
        let stack: Vec<(InstanceId, Inst)> = self
            .made
            .copies
            .origin(landing)
            .map_or(Vec::new(), |(id, at)| self.made.copies.stack(id, at).collect());
        let told = &self.told[0];
        let why = match refusal {
            FrameRefusal::Composition { frame, refusal } => {
                let (id, inst) = *stack.get(*frame)?;
                let behind = &self.made.pairs[0].after;
                if *refusal == Refusal::NoSecondEntry
                    && id == 0
                    && let Some(why) =
                        self.missing(Point::before(inst), behind, 0, ["cleaned", "base"])
                {
                    return Some(why);
                }
                match refusal {
                    Refusal::NotProvided { value } if id == 0 => {
                        self.not_provided(*refusal, *value, "base", told)
                    }
                    _ => because(told, refusal.name(), refusal.to_string(), None),
                }
            }
            FrameRefusal::Elsewhere { frame } => {
                let (_, call) = *stack.get(*frame)?;
                let text = format!(
                    "no entry leads from within {call} to the base at the same call: {refusal}"
                );
                because(told, refusal.name(), text, told.history.of_inst(call))
            }
            other => because(told, other.name(), other.to_string(), None),
        };
        Some((PointStatus::None, why, Some("copy to frames")))
    }

    /// The reason for a value of a version that the previous step does not provide.
    fn not_provided(
        &self,
        refusal: Refusal,
        value: Value,
        version: &'static str,
        told: &Told<'_>,
    ) -> ExplainedWhy {
        let shown = self.shown(version);
        let has_it = shown.version.version.has_value(value);
        let why = because(told, refusal.name(), refusal.to_string(), told.history.of_value(value));
        ExplainedWhy {
            value: has_it.then(|| shown.version.text.value(value)),
            defined: has_it.then(|| shown.defined(value)),
            ..why
        }
    }
}
