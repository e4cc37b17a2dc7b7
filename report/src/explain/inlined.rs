//! Explains one point of a version with inlined code, or of its base.
//!
//! Entries into and out of the version are composed of three steps. A point without an entry
//! reports the reason of its missing step.

use super::words::Told;
use super::{
    NoSuchPoint, SHOWN, Shown, because, computed, kept, point, rejected_text, shown_entry,
    why_absent, why_unmapped, why_unreachable,
};
use crate::blame::History;
use crate::listing::NamedVersion;
use crate::schema::{
    ActivationPlace, ExplainedEntry, ExplainedFrame, ExplainedFrames, FrameValue, FramesPrice,
    InlinedAnswer, PointPlace, PointStatus, Why,
};
use crate::source::{Lines, VersionLines};
use crate::table::shortened;
use check::FrameRefusal;
use derive::driver::{Missing, UNPROVED};
use derive::inlining::{Inlined, InlinedSteps, MappedStep};
use ir::cfg::Cfg;
use ir::edit::ActionLog;
use ir::{Func, Inst, Module, Point, Value};
use osr::{Level, Version, VersionTree};
use transition::copy::InstanceId;
use transition::frames::{FramePlace, Landing};
use transition::mapping::Entry;
use transition::{Refusal, Side};

/// A question about a version with inlined code.
#[derive(Clone, Copy, Debug)]
pub struct InliningQuestion<'a> {
    /// The point, in the notation of [`super::Question::point`].
    pub point: &'a str,
    /// The directions to answer for, in this order: into the version, and out of the version.
    pub headings: &'a [Side],
    /// The lines of the source, if they are known.
    pub lines: Option<&'a dyn Lines>,
}

/// Explains a point of a version with inlined code, or of its base, one answer per direction. Cost:
/// linear in the versions and their logs.
///
/// # Errors
/// If neither the base nor the version has the point. The message suggests points that the text may
/// have meant.
///
/// # Panics
/// If the steps belong to another inlining.
pub fn explain_inlined(
    module: &Module,
    made: &Inlined,
    steps: &InlinedSteps,
    question: InliningQuestion<'_>,
) -> Result<Vec<InlinedAnswer>, NoSuchPoint> {
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
    let teller = InlinedTeller { module, made, steps, told, lines: question.lines };
    let whole = &teller.told[2];
    let found = [&whole.base, &whole.opt].map(|version| point::find(version, question.point));
    if found == [None, None] {
        let near = point::near(&[&whole.base, &whole.opt], question.point);
        return Err(NoSuchPoint { asked: shortened(question.point, SHOWN), near });
    }
    let answer = |heading: &Side| {
        let own = teller.shown(if *heading == Side::Before { "base" } else { "opt" });
        match (found[*heading as usize], found[heading.other() as usize]) {
            (Some(point), _) => teller.answer(*heading, point),
            // As for other versions, an instruction that stands elsewhere counts.
            (None, Some(point)) if has_same(own, question.point, point) => {
                teller.answer(*heading, point)
            }
            (None, elsewhere) => {
                let elsewhere = elsewhere.expect("one version has it");
                teller.absent(*heading, question.point, elsewhere)
            }
        }
    };
    Ok(question.headings.iter().map(answer).collect())
}

/// Whether a version has the instruction that `asked` denotes in the other version. A value does
/// not count.
fn has_same(version: Shown<'_>, asked: &str, point: Point) -> bool {
    !asked.trim_start().starts_with('%') && version.version.version.has_inst(point.inst())
}

/// Whether a version has proved a point unreachable, or an action has removed its block.
fn is_removed(told: &Told<'_>, shown: Shown<'_>, point: Point) -> bool {
    let f = shown.version.version;
    let block = f.inst_block(point.inst());
    !Cfg::new(f).is_reachable(block) || told.history.of_unreachable(block).is_some()
}

/// Why a point has no entry: its status, the reason and the step that is missing.
type Lost = (PointStatus, Why, Option<&'static str>);

struct InlinedTeller<'a> {
    module: &'a Module,
    made: &'a Inlined,
    steps: &'a InlinedSteps,
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

    fn answer(&self, heading: Side, point: Point) -> InlinedAnswer {
        let (mut entry, mut frames, mut code_of) = (None, None, Vec::new());
        match heading {
            Side::Before => entry = self.made.up.entry(point).map(|entry| self.entry(entry)),
            Side::After => {
                frames = self.made.down.entry(point).map(|entry| self.frames(entry));
                code_of = self.code_of(point);
            }
        }
        let (status, why, step) = match (&entry, &frames) {
            (None, None) => {
                let (status, why, step) = self.lost(heading, point);
                (status, Some(why), step)
            }
            _ => (PointStatus::Entry, None, None),
        };
        let from = self.shown(if heading == Side::Before { "base" } else { "opt" });
        let (direction, point) = (heading.direction(), Some(from.place(point)));
        InlinedAnswer { direction, status, point, code_of, entry, frames, why, step }
    }

    fn absent(&self, heading: Side, asked: &str, elsewhere: Point) -> InlinedAnswer {
        let (from, to) = match heading {
            Side::Before => ("base", "opt"),
            Side::After => ("opt", "base"),
        };
        let versions = [from, to].map(|name| self.shown(name));
        let why = why_absent(&self.told[2], versions, asked, elsewhere);
        // The point of the version may be in inlined code.
        let code_of = if to == "opt" { self.code_of(elsewhere) } else { Vec::new() };
        InlinedAnswer {
            direction: heading.direction(),
            status: PointStatus::Absent,
            point: None,
            code_of,
            entry: None,
            frames: None,
            why: Some(why),
            step: None,
        }
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
        let base = self.module.body(func).expect("it is inlined");
        let lines = self.lines.map(|lines| VersionLines::of_base(lines, func));
        let version = NamedVersion::new(self.module, base).with_lines(lines);
        Shown { name: "base", version: &version }.place(Point::before(inst))
    }

    fn entry(&self, entry: &Entry) -> ExplainedEntry {
        // An action behind the inlining says more about the value than the inlining itself.
        let since = |value| {
            let mut told = [&self.told[1], &self.told[2]].into_iter();
            told.find_map(|told| told.history.of_value(value).map(|number| told.done(number)))
        };
        let versions = ["base", "opt"].map(|name| self.shown(name));
        shown_entry(versions, Level::Avail, entry, since, |inst| self.stands(inst))
    }

    fn frames(&self, entry: &Entry) -> ExplainedFrames {
        let func = self.made.copies.instances()[0].func;
        let frames = entry.landings(func, self.made.down.target());
        let opt = self.shown("opt");
        let kept = kept(opt, &entry.kept);
        let arguments = kept.iter().filter(|kept| kept.argument).count() as u64;
        let values: usize = entry.assign_lists().map(<[_]>::len).sum();
        let price = FramesPrice {
            activations: entry.activations() as u64,
            operations: entry.steps.len() as u64,
            writes: entry.replays.len() as u64,
            values: values as u64,
            kept: kept.len() as u64 - arguments,
            kept_args: arguments,
        };
        ExplainedFrames {
            frames: frames.map(|frame| self.frame(frame)).collect(),
            compute: computed(opt, &entry.steps),
            replay: entry.replays.iter().map(|replay| opt.version.replay(replay)).collect(),
            reads: opt.values(entry.requires.iter().copied()),
            kept,
            price,
        }
    }

    fn frame(&self, frame: Landing<'_>) -> ExplainedFrame {
        let base = self.module.body(frame.func).expect("frames land in bases");
        let lines = self.lines.map(|lines| VersionLines::of_base(lines, frame.func));
        let version = NamedVersion::new(self.module, base).with_lines(lines);
        let (shown, opt) = (Shown { name: "base", version: &version }, self.shown("opt"));
        let set = frame.assigns.iter().map(|assign| FrameValue {
            value: version.text.value(assign.value),
            from: opt.version.operand(assign.from),
            defined: shown.defined(assign.value),
        });
        let (waits, inst) = match frame.at {
            FramePlace::Before(point) => (false, point.inst()),
            FramePlace::Within(call) => (true, call),
        };
        let results: &[Value] = if waits { &base.inst(inst).results } else { &[] };
        let place = shown.place(Point::before(inst));
        ExplainedFrame {
            at: ActivationPlace { function: base.name().to_owned(), waits, place },
            set: set.collect(),
            awaits: shown.values(results.iter().copied()),
        }
    }

    /// The status of a point without an entry, and the reason.
    fn lost(&self, heading: Side, point: Point) -> Lost {
        let pairs = &self.steps.pairs;
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
            let is_dead = self.steps.unreachable[at].contains(&point);
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
        made: &MappedStep,
        at: usize,
        names: [&'static str; 2],
    ) -> Option<Lost> {
        let told = &self.told[at];
        let step = match names {
            ["base", _] => "base to cleaned",
            ["cleaned", _] => "cleaned to base",
            ["copy", _] => "copy to opt",
            _ => "opt to copy",
        };
        let verdict = match made.missing.at(point)? {
            Missing::Unmapped(unmapped) => {
                let why = why_unmapped(told, names.map(|name| self.shown(name)), unmapped);
                return Some((PointStatus::None, why, Some(step)));
            }
            Missing::Rejected(_, verdict) => verdict,
        };
        let blame = told.history.of_rejected(point, verdict);
        let text = verdict.finding().map_or(String::new(), |finding| rejected_text(finding.check));
        let why = because(told, UNPROVED, text, blame);
        let why = Why { verdict: Some(verdict.to_string()), ..why };
        Some((PointStatus::Unproved, why, Some(step)))
    }

    /// The reason why an entry into the cleaned version cannot be extended into the copy or the
    /// optimized version.
    fn not_entered(&self, point: Point) -> Option<Lost> {
        let (_, refusal) = self.steps.refused.into.iter().find(|(refused, _)| *refused == point)?;
        let landing = self.steps.pairs[0].before.mapping.entry(point)?.target.inst();
        let Some(place) = self.made.copies.place(landing).map(Point::before) else {
            return Some(self.no_place(landing, *refusal));
        };
        let ahead = &self.steps.pairs[1].before;
        if let Some(lost) = self.missing(place, ahead, 1, ["copy", "opt"]) {
            return Some(lost);
        }
        let told = &self.told[1];
        let why = match refusal {
            Refusal::NotProvided { value } => self.not_provided(*refusal, *value, "copy", told),
            Refusal::NoSecondEntry if is_removed(told, self.shown("copy"), place) => {
                let copy = self.shown("copy");
                let why = why_unreachable(told, copy, place, &Cfg::new(copy.version.version));
                Why { reason: refusal.name(), ..why }
            }
            _ => because(told, refusal.name(), refusal.to_string(), None),
        };
        Some((PointStatus::None, why, Some("copy to opt")))
    }

    /// The reason why an instruction of the cleaned version has no unique place in the copy: a
    /// preceding inlined call does not return, or the instruction has several copies.
    fn no_place(&self, inst: Inst, refusal: Refusal) -> Lost {
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
    fn not_left(&self, point: Point) -> Option<Lost> {
        let (_, refusal) = self.steps.refused.out.iter().find(|(refused, _)| *refused == point)?;
        let landing = self.steps.pairs[1].after.mapping.entry(point)?.target.inst();
        let stack: Vec<(InstanceId, Inst)> = self
            .made
            .copies
            .origin(landing)
            .map_or(Vec::new(), |(id, at)| self.made.copies.stack(id, at).collect());
        let told = &self.told[0];
        let why = match refusal {
            FrameRefusal::Composition { frame, refusal } => {
                let (id, inst) = *stack.get(*frame)?;
                let behind = &self.steps.pairs[0].after;
                if *refusal == Refusal::NoSecondEntry
                    && id == 0
                    && let Some(lost) =
                        self.missing(Point::before(inst), behind, 0, ["cleaned", "base"])
                {
                    return Some(lost);
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
    ) -> Why {
        let shown = self.shown(version);
        let has_it = shown.version.version.has_value(value);
        let why = because(told, refusal.name(), refusal.to_string(), told.history.of_value(value));
        Why {
            value: has_it.then(|| shown.version.text.value(value)),
            defined: has_it.then(|| shown.defined(value)),
            ..why
        }
    }
}
