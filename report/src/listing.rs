//! Prints action logs and mappings as text for people. Values and blocks have the names of the text
//! form.

use crate::source::{Line, Lines, VersionLines};
use cranelift_entity::SecondaryMap;
use derive::driver::{Derived, MissingPoints, Proved, ProvedMapping, Why};
use derive::inlining::Inlined;
use derive::speculate::{Assumption, Expected};
use ir::edit::ActionLog;
use ir::text::{AtName, FunctionText, print_literal};
use ir::{Func, Function, Inst, Module, Opcode, Point, Value};
use osr::{Level, Obstacle, Version, VersionTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use transition::frames::{FramePlace, Landing};
use transition::mapping::{Assign, Entry, Mapping, Operand, Replay, Step};

/// The most bytes of an instruction that a listing shows beside its point.
const INST: usize = 60;

/// The width of the labels in front of the parts of an entry, in columns. Explanations of single
/// points use the same labels and width.
pub(crate) const LABEL: usize = 11;

/// The actions of a log, one per line, under the name of the function.
pub fn actions(name: &str, log: &ActionLog) -> String {
    let plural = if log.len() == 1 { "" } else { "s" };
    let mut out = format!("func {}: {} action{plural}\n", AtName(name), log.len());
    for action in log.actions() {
        writeln!(out, "  {action}").expect("writing to a string cannot fail");
    }
    out
}

/// The place of a point in a function, in the notation of listings, and the instruction that is
/// about to execute there. Cost: linear in the function.
pub fn place(module: &Module, function: &Function, point: Point) -> String {
    let version = NamedVersion::new(module, function);
    format!("{}: {}", version.place(point), version.text.inst_up_to(point.inst(), INST))
}

/// An assumption about a function: its place and the fact. Example: `head:2: %far is 0`. Cost:
/// linear in the function.
pub fn assumption(module: &Module, function: &Function, assumption: &Assumption) -> String {
    let version = NamedVersion::new(module, function);
    let (place, value) = (version.place(assumption.at), version.text.value(assumption.value));
    format!("{place}: {value} {}", fact(function, assumption))
}

/// The fact that an assumption claims. Example: `is 0`.
pub(crate) fn fact(function: &Function, assumption: &Assumption) -> String {
    let literal = print_literal(function.value_type(assumption.value), assumption.expected.bits());
    match assumption.expected {
        Expected::Is(_) => format!("is {literal}"),
        Expected::IsNot(_) => format!("is not {literal}"),
    }
}

/// Lists the mappings in both directions between a base and its derived version: every point with
/// its entry, or with the reason for the missing entry. `lines` are the lines of the source, where
/// they are known.
pub fn mappings(
    module: &Module,
    base: &Function,
    derived: &Derived,
    certified: &Proved,
    lines: Option<&dyn Lines>,
) -> String {
    let log = &derived.log;
    let [base, opt] = NamedVersion::pair(module, [base, &derived.function], log, lines);
    let mut out = String::new();
    for (level, made) in &certified.levels {
        let out = &mut out;
        Listing { source: &base, target: &opt, log, out }.direction(
            "base to opt",
            *level,
            &made.before,
        );
        Listing { source: &opt, target: &base, log, out }.direction(
            "opt to base",
            *level,
            &made.after,
        );
    }
    out
}

/// Lists the entries of a version with inlined code: every reachable point of the base with its
/// entry into the version, and every reachable point of the version with its entry into frames. A
/// point without an entry has the reason. `lines` are as for [`mappings`]. Cost: linear in the
/// entries and in the functions of frames.
pub fn frames(module: &Module, made: &Inlined, lines: Option<&dyn Lines>) -> String {
    let [base, opt] = [VersionTree::BASE, made.optimized]
        .map(|version| NamedVersion::of_inlined(module, made, version, lines));
    let (log, mut out) = (ActionLog::empty_for(base.version), String::new());
    let own = made.copies.instances()[0].func;
    let inner = made.down.entries().flat_map(|(_, entry)| &entry.inner);
    let named = |func| {
        let body = module.body(func).expect("frames land in bases");
        (func, NamedVersion::new(module, body))
    };
    let funcs: BTreeSet<Func> = inner.map(|frame| frame.func).chain([own]).collect();
    let bases = FrameBases { own, by_func: funcs.into_iter().map(named).collect() };
    let mut up = Listing { source: &base, target: &opt, log: &log, out: &mut out };
    up.across("base to opt", &made.points[0], &made.up, &made.missing[0], None);
    let mut down = Listing { source: &opt, target: &base, log: &log, out: &mut out };
    down.across("opt to frames", &made.points[1], &made.down, &made.missing[1], Some(&bases));
    out
}

/// The bases that entries out of inlined code land in.
struct FrameBases<'a> {
    /// The function with the inlined code.
    own: Func,
    by_func: BTreeMap<Func, NamedVersion<'a>>,
}

/// A version and the names of its values and blocks.
#[derive(Debug)]
pub(crate) struct NamedVersion<'a> {
    pub(crate) version: &'a Function,
    pub(crate) text: FunctionText<'a>,
    /// The index of each instruction in its block.
    places: SecondaryMap<Inst, u32>,
    lines: Option<VersionLines<'a>>,
}

impl<'a> NamedVersion<'a> {
    pub(crate) fn new(module: &'a Module, version: &'a Function) -> NamedVersion<'a> {
        let mut places = SecondaryMap::new();
        for block in version.blocks() {
            version.block_insts(block).zip(0..).for_each(|(inst, place)| places[inst] = place);
        }
        NamedVersion { text: FunctionText::new(module, version), version, places, lines: None }
    }

    /// A base and a version that a log leads to from it, with the lines of their instructions, if
    /// the source is known.
    pub(crate) fn pair(
        module: &'a Module,
        [base, derived]: [&'a Function; 2],
        log: &ActionLog,
        lines: Option<&'a dyn Lines>,
    ) -> [NamedVersion<'a>; 2] {
        let known = lines.zip(module.func_named(base.name()));
        let of_base = known.map(|(lines, func)| VersionLines::of_base(lines, func));
        let of_derived =
            known.map(|(lines, func)| VersionLines::of_derived(lines, func, [base, derived], log));
        [
            NamedVersion::new(module, base).with_lines(of_base),
            NamedVersion::new(module, derived).with_lines(of_derived),
        ]
    }

    /// A version of a function with inlined code, with the lines of its instructions, if the source
    /// is known.
    pub(crate) fn of_inlined(
        module: &'a Module,
        made: &'a Inlined,
        version: Version,
        lines: Option<&'a dyn Lines>,
    ) -> NamedVersion<'a> {
        let func = made.copies.instances()[0].func;
        let lines = lines.map(|lines| VersionLines::of_inlined(lines, func, made, version));
        NamedVersion::new(module, made.tree.function(version)).with_lines(lines)
    }

    /// The version with the lines of its instructions, if the source is known.
    pub(crate) fn with_lines(self, lines: Option<VersionLines<'a>>) -> NamedVersion<'a> {
        NamedVersion { lines, ..self }
    }
}

impl NamedVersion<'_> {
    /// The place of a point: block and index.
    pub(crate) fn place(&self, point: Point) -> String {
        let block = self.version.inst_block(point.inst());
        format!("{}:{}", self.text.block(block), self.places[point.inst()])
    }

    /// Whether the lines of the source are known.
    pub(crate) fn has_lines(&self) -> bool {
        self.lines.is_some()
    }

    /// The line of the source that the instruction behind a point comes from, if it is known.
    pub(crate) fn line(&self, point: Point) -> Option<Line> {
        self.lines.as_ref()?.of(point.inst())
    }

    /// The place of a point and the id of the instruction that is about to execute there.
    fn point(&self, point: Point) -> String {
        format!("{} {}", self.place(point), point.inst())
    }

    /// The place of a frame, as in `@f body:2 inst7`, or `@f within body:2 inst7`.
    fn frame(&self, at: FramePlace) -> String {
        let within = if matches!(at, FramePlace::Within(_)) { "within " } else { "" };
        let name = AtName(self.version.name());
        format!("{name} {within}{}", self.point(Point::before(at.inst())))
    }

    /// The instruction that is about to execute at a point, and its line in the source, as a
    /// comment.
    fn comment(&self, point: Point) -> String {
        let line = self.line(point).map_or(String::new(), |line| format!("  at {line}"));
        format!("  ; {}{line}", self.text.inst_up_to(point.inst(), INST))
    }

    /// A step of compensation code. The values that it reads have the names of this version.
    pub(crate) fn step(&self, step: &Step) -> String {
        if step.opcode == Opcode::Const {
            return format!("const.{} {}", step.ty, print_literal(step.ty, step.bits));
        }
        let args: Vec<String> = step.args.iter().map(|arg| self.operand(*arg)).collect();
        format!("{}.{} {}", step.opcode.name(), step.ty, args.join(", "))
    }

    /// A replayed store. The values that it reads have the names of this version.
    pub(crate) fn replay(&self, replay: &Replay) -> String {
        let args: Vec<String> = replay.args.iter().map(|arg| self.operand(*arg)).collect();
        format!("{}.{} of {}", replay.opcode.name(), replay.ty, args.join(", "))
    }

    /// An operand of a step, a replay or an assignment.
    pub(crate) fn operand(&self, operand: Operand) -> String {
        match operand {
            Operand::Source(value) => self.text.value(value),
            step => step.to_string(),
        }
    }

    fn values(&self, values: impl IntoIterator<Item = Value>) -> String {
        let values = values.into_iter().map(|value| self.text.value(value));
        values.collect::<Vec<_>>().join(" ")
    }
}

/// The printer of one direction.
struct Listing<'a> {
    source: &'a NamedVersion<'a>,
    target: &'a NamedVersion<'a>,
    log: &'a ActionLog,
    out: &'a mut String,
}

impl Listing<'_> {
    fn line(&mut self, indent: usize, text: &str) {
        writeln!(self.out, "{:indent$}{text}", "").expect("writing to a string cannot fail");
    }

    fn direction(&mut self, heading: &str, level: Level, made: &ProvedMapping) {
        let (name, entries) = (AtName(self.source.version.name()), made.mapping.len());
        let points =
            format!("{entries} of {} points, {} unreachable", made.points, made.unreachable);
        self.line(0, &format!("func {name}, {heading}, {level}: {points}"));
        for inst in self.source.version.all_insts() {
            let point = Point::before(inst);
            if let Some(entry) = made.mapping.entry(point) {
                self.entry(point, entry, None);
                continue;
            }
            match made.missing.at(point) {
                Some(Why::Obstacle(obstacle)) => self.obstacle(point, obstacle),
                Some(why) => {
                    self.no_entry(point, "it is not proved");
                    self.parts("verdict", why.verdict().map(|verdict| verdict.to_string()));
                }
                None => {
                    let (place, comment) = (self.source.point(point), self.source.comment(point));
                    self.line(2, &format!("{place}: unreachable{comment}"));
                }
            }
        }
    }

    /// The entries of a mapping into or out of inlined code, composed of several steps. `bases` are
    /// those of a mapping into frames.
    fn across(
        &mut self,
        heading: &str,
        points: &[Point],
        mapping: &Mapping,
        missing: &MissingPoints,
        bases: Option<&FrameBases<'_>>,
    ) {
        let (name, count) = (AtName(self.source.version.name()), points.len());
        let entries = count - missing.len();
        self.line(0, &format!("func {name}, {heading}, avail: {entries} of {count} points"));
        for point in points {
            let Some(entry) = mapping.entry(*point) else {
                let reason = missing.at(*point).map_or("unknown", Why::name);
                self.no_entry(*point, &reason.replace('_', " "));
                continue;
            };
            let frames = bases.map(|bases| {
                let landings = entry.landings(bases.own, mapping.target());
                landings.map(|landing| (&bases.by_func[&landing.func], landing)).collect()
            });
            self.entry(*point, entry, frames);
        }
    }

    /// One part of an entry, behind its label.
    fn part(&mut self, label: &str, text: &str) {
        self.line(4, &format!("{label:<LABEL$}{text}"));
    }

    /// A list of parts of one kind. Only the first has the label.
    fn parts(&mut self, label: &str, texts: impl IntoIterator<Item = String>) {
        for (number, text) in texts.into_iter().enumerate() {
            self.part(if number == 0 { label } else { "" }, &text);
        }
    }

    /// The line of a point without an entry.
    fn no_entry(&mut self, point: Point, why: &str) {
        let (place, comment) = (self.source.point(point), self.source.comment(point));
        self.line(2, &format!("{place}: no entry: {why}{comment}"));
    }

    /// An entry: to the target version, or into frames, each with the base it lands in.
    fn entry(
        &mut self,
        point: Point,
        entry: &Entry,
        frames: Option<Vec<(&NamedVersion<'_>, Landing<'_>)>>,
    ) {
        let (source, target) = (self.source, self.target);
        let to = match &frames {
            None => target.point(entry.target),
            Some(frames) => {
                let places = frames.iter().map(|(base, frame)| base.frame(frame.at));
                places.collect::<Vec<_>>().join(" in ")
            }
        };
        self.line(2, &format!("{} -> {to}{}", source.point(point), source.comment(point)));
        self.compute(&entry.steps);
        let replayed = |replay| match frames {
            None => self.replay(replay),
            Some(_) => source.replay(replay),
        };
        let replays: Vec<String> = entry.replays.iter().map(replayed).collect();
        self.parts("replay", replays);
        for (base, frame) in frames.iter().flatten() {
            self.part("frame", &AtName(base.version.name()).to_string());
            self.set(base, frame.assigns);
        }
        if frames.is_none() {
            let is_same = |assign: &&Assign| assign.is_identity();
            self.set(target, entry.assigns.iter().filter(|assign| !is_same(assign)));
            let mut same = entry.assigns.iter().filter(is_same).map(|a| a.value).peekable();
            if same.peek().is_some() {
                self.part("unchanged", &target.values(same));
            }
        }
        self.kept(&entry.kept);
    }

    /// Assignments to values of a version.
    fn set<'s>(&mut self, to: &NamedVersion<'_>, assigns: impl IntoIterator<Item = &'s Assign>) {
        let source = self.source;
        let set = assigns.into_iter().map(|Assign { value, from }| {
            format!("{} = {}", to.text.value(*value), source.operand(*from))
        });
        self.parts("set", set);
    }

    /// A replayed store, and the place where it stands in the target version.
    fn replay(&self, replay: &Replay) -> String {
        let (code, stands) = (self.source.replay(replay), Point::before(replay.inst));
        // The store of a composed entry may belong to an intermediate version.
        if !self.target.version.has_inst(replay.inst) {
            return code;
        }
        let (place, comment) = (self.target.point(stands), self.target.comment(stands));
        format!("{code}, as at {place}{comment}")
    }

    /// The steps of an entry.
    fn compute(&mut self, steps: &[Step]) {
        let source = self.source;
        let steps = steps.iter().enumerate();
        self.parts(
            "compute",
            steps.map(|(index, step)| format!("${index} = {}", source.step(step))),
        );
    }

    /// The kept values of an entry.
    fn kept(&mut self, kept: &[Value]) {
        if !kept.is_empty() {
            self.part("keep", &self.source.values(kept.iter().copied()));
        }
    }

    fn obstacle(&mut self, point: Point, obstacle: &Obstacle) {
        self.no_entry(point, &obstacle.reason.to_string());
        if let Some(value) = obstacle.value {
            self.part("missing", &self.target.text.value(value));
        }
        if let Some(blame) = obstacle.blame {
            self.part("blame", &self.log.actions()[blame.action].to_string());
        }
    }
}
