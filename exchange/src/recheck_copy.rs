//! Judges a file's version with inlined code, by the checker alone.
//!
//! The checker judges the claim about the copy and the entries of the two pairs as always. The
//! entries across the copy have no certificate: the checker composes them again from accepted
//! entries. Each entry of the file must equal the composed entry at its point.

use crate::{ACROSS, DIRECTIONS, EntryVerdict, ExportedParts, PAIR_NAMES};
use check::verdict::Options;
use check::{Accepted, Checked, FrameRefusal, LivePoints, enter_copy, leave_copy, relate};
use derive::driver::{CheckCounts, Observer, Step};
use derive::inlining::{CalleeLandings, landing_points, own_landing};
use ir::{Func, Function, Module, Point, Value};
use transition::copy::CopyClaim;
use transition::frames::{Frame, Landing};
use transition::mapping::{Assign, Entry, Mapping, Replay, Step as CodeStep};
use transition::{Pair, Refusal, Side, VersionKey};

/// A version with inlined code, read from a file. Nothing in it is proved.
#[derive(Clone, Debug)]
pub struct ExportedCopy {
    /// The base with the cleaned version, and the copy with the optimized one.
    pub pairs: [ExportedParts; 2],
    /// The line of the file at which the claim begins.
    pub line: usize,
    /// The claim about the copy.
    pub claim: CopyClaim,
    /// From the base to the optimized version, in ascending order of points.
    pub into: Vec<Listed>,
    /// From the optimized version to frames, in ascending order of points. A file lists the
    /// outermost frame as the others, so here it is the last of the inner activations.
    pub out: Vec<Listed>,
}

/// An entry of a file.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The number of its first line.
    pub line: usize,
    /// Its source point.
    pub point: Point,
    /// The entry.
    pub entry: Entry,
}

/// A record of a file that the checker rejects.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RefusedRecord {
    /// The number of the line, from 1.
    pub line: usize,
    /// The record, and the cause.
    pub what: String,
}

/// The verdicts on a version with inlined code.
#[derive(Clone, Debug, Default)]
pub struct InlinedVerdicts {
    /// Counts of the verdicts: on the entries of both pairs, and on the entries across the copy.
    pub counts: CheckCounts,
    /// The verdict on each entry, in the order of the file.
    pub entries: Vec<EntryVerdict>,
    /// The records that the checker rejects, at most [`InlinedVerdicts::MOST`]: the claim about the
    /// copy, and entries across the copy.
    pub refused: Vec<RefusedRecord>,
}

impl InlinedVerdicts {
    /// The most records that are described.
    pub const MOST: usize = 8;

    /// Counts the verdict on an entry across the copy: `None` if the entry holds, or the differing
    /// part and its description.
    fn across(&mut self, direction: usize, line: usize, point: Point, found: DifferingPart) {
        let reason = found.as_ref().map(|(reason, _)| *reason);
        self.entries.push(EntryVerdict::new(None, ACROSS[direction], point, reason));
        let Some((reason, what)) = found else {
            self.counts.held += 1;
            return;
        };
        *self.counts.dropped.entry(reason.to_owned()).or_default() += 1;
        let direction = ACROSS[direction];
        self.tell(line, || format!("entry {direction}, before {}: {what}", point.inst()));
    }

    fn tell(&mut self, line: usize, what: impl FnOnce() -> String) {
        if self.refused.len() < InlinedVerdicts::MOST {
            self.refused.push(RefusedRecord { line, what: what() });
        }
    }
}

/// Judges a version with inlined code, given the base, the cleaned version, the copy and the
/// optimized version. `landings` are the landings that the file proves. Malformed parts lower the
/// count of accepted entries and never cause a panic. Cost: as the checks of two pairs, and near
/// linear in the rest of the file.
pub fn recheck_copy(
    module: &Module,
    func: Func,
    [base, cleaned, copy, optimized]: [&Function; 4],
    exported: ExportedCopy,
    landings: &CalleeLandings<'_>,
    observer: &mut dyn Observer,
) -> InlinedVerdicts {
    observer.begin(Some(Step::Check));
    let ExportedCopy { pairs: [first, last], line, claim, into, out } = exported;
    let mut verdicts = InlinedVerdicts::default();
    // A claim may name the key of the cleaned version beside another function.
    let is_cleaned = |of, key| of == func && VersionKey::of(cleaned) == key;
    let original = |of, key| if is_cleaned(of, key) { Some(cleaned) } else { module.body(of) };
    let copies = check::copy(copy, func, original, claim);
    let instances = copies.as_ref().map_or(&[][..], |copies| copies.instances());
    let landed = landing_points(base, instances);
    let (first, live) = judged(module, [base, cleaned], first, landed, 0, &mut verdicts);
    let (last, _) = judged(module, [copy, optimized], last, [], 1, &mut verdicts);
    verdicts.counts.points += (base.inst_count() + optimized.inst_count()) as u64;
    let landing = |of, key| match of == func {
        true => own_landing(base, live.as_ref()?, &first.after, key),
        false => landings.of(of, key),
    };
    let composed = copies.map_err(|error| error.to_string()).and_then(|copies| {
        let entered = enter_copy(&first.before, &copies, &last.before);
        let left = leave_copy(&last.after, &copies, landing);
        // A claim about another original than the cleaned version forms no chain with the pairs.
        Ok((entered.map_err(|e| e.to_string())?, left.map_err(|e| e.to_string())?))
    });
    match composed {
        Ok((entered, left)) => {
            compare_into(&into, &entered.mapping, &entered.refused, &mut verdicts);
            compare_out(module, func, &out, &left.mapping, &left.refused, &mut verdicts);
        }
        Err(error) => {
            verdicts.tell(line, || format!("the copy: {error}"));
            let into = into.iter().map(|listed| (ACROSS[0], listed.point));
            let out = out.iter().map(|listed| (ACROSS[1], listed.point));
            for (direction, point) in into.chain(out) {
                *verdicts.counts.dropped.entry(NO_COPY.to_owned()).or_default() += 1;
                verdicts.entries.push(EntryVerdict::new(None, direction, point, Some(NO_COPY)));
            }
        }
    }
    observer.begin(None);
    verdicts
}

/// The accepted entries of a pair, and the values live+ at points of the version before.
fn judged(
    module: &Module,
    [before, after]: [&Function; 2],
    parts: ExportedParts,
    points: impl IntoIterator<Item = Point>,
    pair: usize,
    verdicts: &mut InlinedVerdicts,
) -> (Pair<Checked<Mapping>>, Option<Checked<LivePoints>>) {
    let ExportedParts { certificate, mappings, facts } = parts;
    let relation = relate(module, Pair::new(before, after), &certificate, Options::default());
    let live = relation.as_ref().ok();
    // All entries of the file count as uses, dropped ones included: that is more than needed, and
    // safe.
    let live = live.and_then(|r| r.live_at(Side::Before, points, &[&mappings.before]).ok());
    let mut directions = DIRECTIONS.into_iter();
    let accepted = check::accept(&relation, mappings, facts).map(|made| {
        let Accepted { mapping, rejected, .. } = made;
        verdicts.counts.held += mapping.len() as u64;
        rejected.iter().for_each(|(_, verdict)| verdicts.counts.count(verdict));
        let direction = directions.next().expect("a pair has two mappings");
        let pair = Some(PAIR_NAMES[pair]);
        let entries = EntryVerdict::of_mapping(pair, direction, &mapping, rejected);
        verdicts.entries.extend(entries);
        mapping
    });
    verdicts.counts.points += (before.inst_count() + after.inst_count()) as u64;
    (accepted, live)
}

/// Compares the entries into a copy with the entries that the checker composes.
fn compare_into(
    claimed: &[Listed],
    composed: &Mapping,
    refused: &[(Point, Refusal)],
    verdicts: &mut InlinedVerdicts,
) {
    for Listed { line, point, entry } in claimed {
        let found = match composed.entry(*point) {
            Some(right) => differs_into(entry, right),
            None => Some((NOT_COMPOSED, none(refused, *point, |refusal| refusal.to_string()))),
        };
        verdicts.across(0, *line, *point, found);
    }
}

/// Compares the entries out of a copy with the entries that the checker composes.
fn compare_out(
    module: &Module,
    func: Func,
    claimed: &[Listed],
    composed: &Mapping,
    refused: &[(Point, FrameRefusal)],
    verdicts: &mut InlinedVerdicts,
) {
    for Listed { line, point, entry } in claimed {
        let found = match composed.entry(*point) {
            Some(right) => {
                differs_out(module, entry, right, right.landings(func, composed.target()))
            }
            None => Some((NOT_COMPOSED, none(refused, *point, |refusal| refusal.to_string()))),
        };
        verdicts.across(1, *line, *point, found);
    }
}

/// The reason for all entries across a copy whose claim the checker rejects.
const NO_COPY: &str = "copy";

/// The reason for an entry that the checker does not compose.
const NOT_COMPOSED: &str = "not-composed";

/// Why the checker composes no entry at a point.
fn none<R>(refused: &[(Point, R)], point: Point, words: impl Fn(&R) -> String) -> String {
    match refused.binary_search_by_key(&point, |(at, _)| *at) {
        Ok(index) => format!("none is composed: {}", words(&refused[index].1)),
        Err(_) => "none is composed: the version has no accepted entry there".to_owned(),
    }
}

/// The name of a part in which an entry differs, and the difference in words.
type DifferingPart = Option<(&'static str, String)>;

fn differs_into(claimed: &Entry, right: &Entry) -> DifferingPart {
    if claimed.target != right.target {
        let what = format!(
            "it lands before {}; composed is {}",
            claimed.target.inst(),
            right.target.inst()
        );
        return Some(("composed-target", what));
    }
    differs_list("composed-assigns", "assignment", &claimed.assigns, &right.assigns, shown_assign)
        .or_else(|| differs_code(claimed, right))
        .or_else(|| {
            differs_values([&claimed.requires, &claimed.kept], [&right.requires, &right.kept])
        })
}

fn differs_out<'e>(
    module: &Module,
    claimed: &Entry,
    right: &Entry,
    landings: impl Iterator<Item = Landing<'e>>,
) -> DifferingPart {
    let (many, composed) = (claimed.inner.len(), right.activations());
    if many != composed {
        return Some(("frame-count", format!("it has {many} frames; composed are {composed}")));
    }
    let frames = claimed.inner.iter().map(Frame::landing).zip(landings).enumerate();
    let mut different = frames.filter_map(|(at, (one, right))| {
        let (reason, what) = differs_frame(module, one, right)?;
        Some((reason, format!("frame {at}: {what}")))
    });
    different.next().or_else(|| differs_code(claimed, right)).or_else(|| {
        differs_values([&claimed.requires, &claimed.kept], [&right.requires, &right.kept])
    })
}

fn differs_frame(module: &Module, claimed: Landing<'_>, right: Landing<'_>) -> DifferingPart {
    let name = |func: Func| module.body(func).map_or("?", Function::name).to_owned();
    if claimed.func != right.func {
        let (is, composed) = (name(claimed.func), name(right.func));
        return Some(("frame-function", format!("it is of @{is}; composed is one of @{composed}")));
    }
    if claimed.version != right.version {
        let what = format!("it is of another version of @{} than composed", name(right.func));
        return Some(("frame-version", what));
    }
    if claimed.at != right.at {
        return Some(("frame-place", format!("it is {}; composed is {}", claimed.at, right.at)));
    }
    differs_list("frame-assigns", "assignment", claimed.assigns, right.assigns, shown_assign)
}

fn shown_assign(assign: &Assign) -> String {
    format!("%{} = {}", assign.value, assign.from)
}

fn differs_code(claimed: &Entry, right: &Entry) -> DifferingPart {
    differs_list("composed-steps", "step", &claimed.steps, &right.steps, CodeStep::to_string)
        .or_else(|| {
            let (replays, composed) = (&claimed.replays, &right.replays);
            differs_list("composed-replays", "replay", replays, composed, Replay::to_string)
        })
}

/// Compares required and kept values.
fn differs_values(claimed: [&Vec<Value>; 2], right: [&Vec<Value>; 2]) -> DifferingPart {
    const NAMES: [(&str, &str); 2] =
        [("composed-requires", "required value"), ("composed-kept", "kept value")];
    let lists = NAMES.iter().zip(claimed.into_iter().zip(right));
    let mut different = lists.filter_map(|((reason, one), (claimed, right))| {
        differs_list(reason, one, claimed, right, |value| format!("%{value}"))
    });
    different.next()
}

/// The first place at which two lists differ.
fn differs_list<T: PartialEq>(
    reason: &'static str,
    one: &str,
    claimed: &[T],
    right: &[T],
    words: impl Fn(&T) -> String,
) -> DifferingPart {
    let at = (0..claimed.len().max(right.len())).find(|at| claimed.get(*at) != right.get(*at))?;
    let word = |list: &[T]| list.get(at).map_or_else(|| "none".to_owned(), &words);
    let (is, composed) = (word(claimed), word(right));
    Some((reason, format!("{one} {at} is `{is}`; composed is `{composed}`")))
}
