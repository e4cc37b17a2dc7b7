//! Explains all points of a function at once, for the page of the report.
//!
//! A [`FunctionView`] has both listings, side by side, and an answer for each point: the answer of
//! [`explain`](super::explain) at the same level. It is data for a script, so each string stands
//! once in a table, and names and places refer to it.

mod align;
mod reasons;
mod strings;

use super::words::Told;
use super::{AnswerIndex, Teller};
use crate::blame::History;
use crate::listing::NamedVersion;
use crate::place;
use crate::schema::{ExplainedWhy, LEVELS, PassAction, PointStatus};
use crate::source::Lines;
use cranelift_entity::SecondaryMap;
use derive::driver::{GivenUp, ProvedMapping, Secured};
use ir::{Block, Function, Inst, Module, Point, Value, ValueDef};
use osr::Level;
use reasons::CertificateClaims;
use std::collections::BTreeMap;
use strings::{Strings, Text};
use transition::certificate::{EntryFacts, TermId};
use transition::mapping::{Assign, Entry, Operand};
use transition::{Pair, Side};

/// The most bytes of an instruction that a listing shows.
const INST: usize = 160;

/// The most values of the other version that a value names as equal.
const ALIKE: usize = 4;

/// The level of a point without an entry at any level.
const NO_LEVEL: u8 = LEVELS.len() as u8;

/// The level of a point in code that is proved never to run.
const UNREACHABLE: u8 = NO_LEVEL + 1;

/// How often the blocks of each version ran.
pub(crate) type BlockVisits = Pair<SecondaryMap<Block, u64>>;

/// The optional facts about a function: its visits and its lines.
#[derive(Clone, Copy, Default)]
pub(crate) struct ViewSurroundings<'a> {
    /// How often its blocks ran.
    pub(crate) visits: Option<&'a BlockVisits>,
    /// The lines of the source.
    pub(crate) lines: Option<&'a dyn Lines>,
}

/// Both listings of a function and the answers for all of their points.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct FunctionView {
    /// The strings that the other parts refer to.
    strings: Vec<String>,
    /// The rows of the two listings: the index of a line of each version, or -1 for a gap.
    rows: Vec<[i64; 2]>,
    /// The base, then the optimized version.
    versions: [VersionView; 2],
    /// The log.
    log: Vec<LoggedAction>,
    /// The rewrites that the version lacks, so that entries hold: pass, rule, failed check, text.
    given_up: Vec<[Text; 4]>,
}

/// One version.
#[derive(Clone, Debug, serde::Serialize)]
struct VersionView {
    lines: Vec<LineView>,
    values: Vec<ValueView>,
}

/// A line of a listing: the head of a block, or a point.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(untagged)]
enum LineView {
    Block { block: Text, head: Text },
    Point(Box<PointView>),
}

/// A point and its answer.
#[derive(Clone, Debug, serde::Serialize)]
struct PointView {
    place: Text,
    inst: Text,
    text: Text,
    /// The index in [`LEVELS`] of the first level with an entry, [`NO_LEVEL`] or [`UNREACHABLE`].
    level: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    visits: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Text>,
    /// The price of the entry at each level, from `level` up to the level of the report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prices: Vec<Price>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<EntryView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<WhyView>,
}

/// What an entry costs: operations, copies, kept values without arguments, kept arguments.
type Price = [usize; 4];

/// An entry, at the level of the report or the nearest lower one.
#[derive(Clone, Debug, serde::Serialize)]
struct EntryView {
    /// The line of the landing point in the other version.
    to: u32,
    /// The index of the level in [`LEVELS`].
    level: u8,
    /// The code and the meaning of each step.
    compute: Vec<[Text; 2]>,
    /// The code of each replayed store, and the place of the store in the other version.
    replay: Vec<[Text; 2]>,
    set: Vec<SetView>,
    /// The values that keep their contents, under the same id.
    same: Vec<Text>,
    /// The kept values, and whether each is an argument.
    kept: Vec<(Text, bool)>,
}

/// An assignment of an entry.
#[derive(Clone, Debug, serde::Serialize)]
struct SetView {
    value: Text,
    from: Text,
    /// The stamp of the first action that concerns the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<u64>,
    /// The reason of the certificate, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<Text>,
}

/// Why a point has no entry.
#[derive(Clone, Debug, serde::Serialize)]
struct WhyView {
    text: Text,
    /// Headings and texts: the missing value, the blocking place.
    details: Vec<[Text; 2]>,
    /// The stamp of the action to blame.
    #[serde(skip_serializing_if = "Option::is_none")]
    blame: Option<u64>,
}

/// A value and its equals in the other version.
#[derive(Clone, Debug, serde::Serialize)]
struct ValueView {
    name: Text,
    defined: Text,
    /// Equal values of the other version; the value of the same id comes first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    alike: Vec<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    constant: Option<Text>,
    /// The stamp of the first action that concerns the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<u64>,
}

/// An action of the log.
#[derive(Clone, Debug, serde::Serialize)]
struct LoggedAction {
    stamp: u64,
    pass: Text,
    rule: Text,
    words: Text,
}

/// The view of a function. `secured` must have the mappings of the level. Cost: near linear in the
/// versions, their entries and the log.
///
/// # Panics
/// If the mappings were made from another base, or lack the level.
pub(crate) fn view(
    module: &Module,
    base: &Function,
    secured: &Secured,
    level: Level,
    around: ViewSurroundings<'_>,
) -> FunctionView {
    let derived = &secured.derived;
    let versions = [base, &derived.function];
    let [named, opt] = NamedVersion::pair(module, versions, &derived.log, around.lines);
    let history = History { base, opt: &derived.function, log: &derived.log };
    let told = Told { base: named, opt, history };
    let index = AnswerIndex::new(&told, &secured.proved, level);
    let claims = CertificateClaims::new(&told, &secured.proved.certificate);
    let keys = Side::BOTH.map(|side| lines(version(&told, side).version));
    let rows = align::rows(&keys[0], &keys[1]);
    let places = Pair::from_fn(|side| line_of_points(&keys[side as usize]));
    let mut viewer = Viewer { index: &index, claims, places, around, strings: Strings::default() };
    let versions = Side::BOTH.map(|side| viewer.version(side, &keys[side as usize]));
    let log = (0..derived.log.len()).map(|number| viewer.action(&told.done(number))).collect();
    let given_up = secured.retried.given_up.iter().map(|given| viewer.given_up(given)).collect();
    let number = |line: Option<u32>| line.map_or(-1, i64::from);
    FunctionView {
        rows: rows.into_iter().map(|row| row.map(number)).collect(),
        versions,
        log,
        given_up,
        strings: viewer.strings.into_all(),
    }
}

fn version<'a>(told: &'a Told<'_>, side: Side) -> &'a NamedVersion<'a> {
    match side {
        Side::Before => &told.base,
        Side::After => &told.opt,
    }
}

/// A line of a listing, by the ids that both versions share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum ListedLine {
    Block(Block),
    Inst(Inst),
}

fn lines(function: &Function) -> Vec<ListedLine> {
    let of = |block| {
        let insts = function.block_insts(block).map(ListedLine::Inst);
        std::iter::once(ListedLine::Block(block)).chain(insts)
    };
    function.blocks().flat_map(of).collect()
}

fn line_of_points(lines: &[ListedLine]) -> BTreeMap<Point, u32> {
    let numbered = lines.iter().zip(0..);
    numbered
        .filter_map(|(line, number)| match line {
            ListedLine::Inst(inst) => Some((Point::before(*inst), number)),
            ListedLine::Block(_) => None,
        })
        .collect()
}

/// Makes the parts of a view.
struct Viewer<'a> {
    index: &'a AnswerIndex<'a>,
    claims: CertificateClaims<'a>,
    /// By side: the line of each point.
    places: Pair<BTreeMap<Point, u32>>,
    around: ViewSurroundings<'a>,
    strings: Strings,
}

impl Viewer<'_> {
    fn version(&mut self, side: Side, lines: &[ListedLine]) -> VersionView {
        let teller = self.index.teller(side);
        let facts = facts(&teller);
        let lines = lines.iter().map(|line| match line {
            ListedLine::Block(block) => self.block(&teller, *block),
            ListedLine::Inst(inst) => {
                let point = self.point(&teller, &facts, Point::before(*inst));
                LineView::Point(Box::new(point))
            }
        });
        let lines = lines.collect();
        let function = teller.from.version.version;
        let values = function.blocks().flat_map(|block| {
            let results = function.block_insts(block).flat_map(|i| &function.inst(i).results);
            function.block_params(block).iter().chain(results).copied()
        });
        VersionView { lines, values: values.map(|value| self.value(&teller, value)).collect() }
    }

    fn block(&mut self, teller: &Teller<'_, '_>, block: Block) -> LineView {
        let version = teller.from.version;
        let name = version.text.block(block);
        let params = version.version.block_params(block).iter();
        let params: Vec<String> = params
            .map(|v| format!("{}: {}", version.text.value(*v), version.version.value_type(*v)))
            .collect();
        let head = match params.is_empty() {
            true => format!("{name}:"),
            false => format!("{name}({}):", params.join(", ")),
        };
        LineView::Block { block: self.strings.id(name), head: self.strings.id(head) }
    }

    fn point(&mut self, teller: &Teller<'_, '_>, facts: &Facts<'_>, point: Point) -> PointView {
        let version = teller.from.version;
        let block = version.version.inst_block(point.inst());
        let entry = teller.entry(point, self.index.level);
        let (level, why) = match entry {
            Some(_) => (first_level(teller, point), None),
            None => match teller.why(point) {
                (PointStatus::Unreachable, why) => (UNREACHABLE, Some(why)),
                (_, why) => (NO_LEVEL, Some(why)),
            },
        };
        PointView {
            place: self.strings.id(version.place(point)),
            inst: self.strings.id(point.inst().to_string()),
            text: self.strings.id(version.text.inst_up_to(point.inst(), INST)),
            level,
            visits: self.around.visits.map(|visits| visits[teller.heading][block]),
            source: version.line(point).map(|line| self.strings.id(line.to_string())),
            prices: prices(teller, point),
            entry: entry.map(|(level, entry)| {
                self.entry(teller, level, entry, facts.get(&(level, point)).copied())
            }),
            why: why.map(|why| self.why(&why)),
        }
    }

    fn entry(
        &mut self,
        teller: &Teller<'_, '_>,
        level: Level,
        entry: &Entry,
        facts: Option<&EntryFacts>,
    ) -> EntryView {
        let (from, to) = (teller.from, teller.to);
        let compute = super::computed(from, &entry.steps);
        let arguments = from.version.version.arguments();
        let changed = entry.assigns.iter().filter(|a| !a.is_identity());
        let same = entry.assigns.iter().filter(|a| a.is_identity());
        let replays = entry.replays.iter().map(|replay| {
            // The store of a composed entry may belong to an intermediate version.
            let stands = match to.version.version.has_inst(replay.inst) {
                true => to.version.place(Point::before(replay.inst)),
                false => replay.inst.to_string(),
            };
            [self.strings.id(from.version.replay(replay)), self.strings.id(stands)]
        });
        EntryView {
            replay: replays.collect(),
            to: self.places[teller.heading.other()][&entry.target],
            level: place(level) as u8,
            compute: compute
                .into_iter()
                .map(|step| {
                    let code = format!("{} = {}", step.name, step.code);
                    [self.strings.id(code), self.strings.id(step.meaning)]
                })
                .collect(),
            set: changed.map(|assign| self.set(teller, *assign, facts)).collect(),
            same: same.map(|a| self.strings.id(to.version.text.value(a.value))).collect(),
            kept: entry
                .kept
                .iter()
                .map(|v| (self.strings.id(from.version.text.value(*v)), arguments.contains(v)))
                .collect(),
        }
    }

    fn set(
        &mut self,
        teller: &Teller<'_, '_>,
        assign: Assign,
        facts: Option<&EntryFacts>,
    ) -> SetView {
        let Assign { value, from } = assign;
        // The justification of a step may be about the next anchor.
        let step = |terms: &[TermId], step: u32| terms.get(step as usize).copied();
        let sources = match (from, facts) {
            (Operand::Source(source), _) => [Some(self.claims.term(teller.heading, source)), None],
            (Operand::Step(n), Some(facts)) => [step(&facts.here, n), step(&facts.far, n)],
            (Operand::Step(_), None) => [None, None],
        };
        let target = self.claims.term(teller.heading.other(), value);
        let because = sources.into_iter().flatten().find_map(|term| self.claims.why(term, target));
        SetView {
            value: self.strings.id(teller.to.version.text.value(value)),
            from: self.strings.id(teller.from.version.operand(from)),
            since: self.stamp(self.index.since(value)),
            because: because.map(|text| self.strings.id(text)),
        }
    }

    fn why(&mut self, why: &ExplainedWhy) -> WhyView {
        let mut details: Vec<(&str, String)> = Vec::new();
        if let (Some(value), Some(defined)) = (&why.value, &why.defined) {
            details.push(("wanted", format!("{value}, there {defined}")));
        }
        if let Some(trap) = &why.trap {
            details.push(("blocked by", format!("{} {}  {}", trap.at, trap.inst, trap.text)));
        }
        if let Some(verdict) = &why.verdict {
            details.push(("verdict", verdict.clone()));
        }
        if let Some(unproved) = &why.unproved {
            details.push(("anchor", unproved.anchor.clone()));
            details.push(("at", unproved.at.clone()));
            let terms = [("base", &unproved.base_term), ("opt", &unproved.opt_term)];
            let terms = terms.into_iter().filter_map(|(name, t)| Some((name, t.clone()?)));
            details.extend(terms);
        }
        WhyView {
            text: self.strings.id(why.text.as_str()),
            details: details
                .into_iter()
                .map(|(name, text)| [self.strings.id(name), self.strings.id(text)])
                .collect(),
            blame: why.blame.as_ref().map(|action| action.number),
        }
    }

    fn value(&mut self, teller: &Teller<'_, '_>, value: Value) -> ValueView {
        let side = teller.heading;
        let alike = self.claims.alike(side, value, ALIKE);
        let because = alike.first().and_then(|other| {
            self.claims.why(self.claims.term(side, value), self.claims.term(side.other(), *other))
        });
        let constant = self.claims.constant(side, value);
        let version = teller.from.version;
        let defined = match version.version.value_def(value) {
            ValueDef::Result(inst, _) => version.place(Point::before(inst)),
            ValueDef::Param(..) => teller.from.defined(value),
        };
        ValueView {
            name: self.strings.id(version.text.value(value)),
            defined: self.strings.id(defined),
            alike: alike
                .iter()
                .map(|other| self.strings.id(teller.to.version.text.value(*other)))
                .collect(),
            because: because.map(|text| self.strings.id(text)),
            constant: constant.map(|text| self.strings.id(text)),
            since: self.stamp(self.index.since(value)),
        }
    }

    fn action(&mut self, action: &PassAction) -> LoggedAction {
        LoggedAction {
            stamp: action.number,
            pass: self.strings.id(action.pass),
            rule: self.strings.id(action.rule),
            words: self.strings.id(action.words.as_str()),
        }
    }

    fn given_up(&mut self, given: &GivenUp) -> [Text; 4] {
        [given.pass, given.rule, given.check, given.text.as_str()].map(|text| self.strings.id(text))
    }

    /// The stamp of the action with a number in the log.
    fn stamp(&self, number: Option<usize>) -> Option<u64> {
        number.map(|number| self.index.told.history.log.actions()[number].stamp())
    }
}

/// The justification of each entry of one direction, by level and source point.
type Facts<'a> = BTreeMap<(Level, Point), &'a EntryFacts>;

fn facts<'a>(teller: &Teller<'_, 'a>) -> Facts<'a> {
    let of = |(level, made): (Level, &'a ProvedMapping)| {
        made.mapping.points().zip(&made.facts).map(move |(point, f)| ((level, point), f))
    };
    let levels = teller.index.certified.levels.iter();
    levels.map(|(level, made)| (*level, &made[teller.heading])).flat_map(of).collect()
}

/// The index in [`LEVELS`] of the first level at which a point has an entry. The point must have an
/// entry at some level.
fn first_level(teller: &Teller<'_, '_>, point: Point) -> u8 {
    let mut levels = teller.index.certified.levels.iter();
    let first = levels.find(|(_, made)| made[teller.heading].mapping.has_entry(point));
    place(first.expect("an entry has a level").0) as u8
}

/// The price of the entry of a point at each level at which it has one, lowest first.
fn prices(teller: &Teller<'_, '_>, point: Point) -> Vec<Price> {
    let arguments = teller.from.version.version.arguments();
    let price = |entry: &Entry| {
        let copies = entry.assigns.iter().filter(|assign| !assign.is_identity()).count();
        let kept = entry.kept.iter().filter(|value| arguments.contains(value)).count();
        [entry.steps.len() + entry.replays.len(), copies, entry.kept.len() - kept, kept]
    };
    let levels = teller.index.certified.levels.iter().map(|(level, _)| *level);
    let levels = levels.filter(|level| *level <= teller.index.level);
    levels.filter_map(|level| Some(price(teller.entry(point, level)?.1))).collect()
}
