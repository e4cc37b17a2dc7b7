//! Judges a file's version with inlined code, by the checker alone.
//!
//! The checker judges the claim about the copy and the entries of the two pairs as always. The
//! entries across the copy have no certificate: the checker composes them again from accepted
//! entries. Each entry of the file must equal the composed entry at its point.

use crate::{
    ACROSS, DIRECTIONS, EntryVerdict, ExportedParts, PAIR_NAMES, Rechecked, RefusedRecord,
};
use check::verdict::Options;
use check::{Accepted, Checked, CheckedComposition, LivePoints, enter_copy, leave_copy, relate};
use derive::driver::{Observer, Step};
use derive::inlining::{CalleeLandings, landing_points, own_landing};
use ir::{Func, Function, Module, Point, Value};
use std::fmt::Display;
use transition::copy::CopyClaim;
use transition::frames::{Frame, Landing};
use transition::mapping::{Assign, Entry, Mapping, Replay, Step as CodeStep};
use transition::{Pair, Side, VersionKey};

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

impl Rechecked {
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
        if self.refused.len() < Rechecked::MOST {
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
) -> Rechecked {
    observer.begin(Some(Step::Check));
    let ExportedCopy { pairs: [first, last], line, claim, into, out } = exported;
    let mut verdicts = Rechecked::default();
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
            compare(0, &into, &entered, differs_into, &mut verdicts);
            let key = left.mapping.target();
            let differs_out = |claimed: &Entry, right: &Entry| {
                differs_out(module, claimed, right, right.landings(func, key))
            };
            compare(1, &out, &left, differs_out, &mut verdicts);
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
    verdicts: &mut Rechecked,
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

/// Compares the entries across a copy, in one direction, with the entries that the checker
/// composes.
fn compare<R: Copy + Display>(
    direction: usize,
    claimed: &[Listed],
    composed: &CheckedComposition<R>,
    differs: impl Fn(&Entry, &Entry) -> DifferingPart,
    verdicts: &mut Rechecked,
) {
    for Listed { line, point, entry } in claimed {
        let found = match composed.mapping.entry(*point) {
            Some(right) => differs(entry, right)
                .or_else(|| differs_code(entry, right))
                .or_else(|| differs_values(entry, right)),
            None => Some((NOT_COMPOSED, none(&composed.refused, *point))),
        };
        verdicts.across(direction, *line, *point, found);
    }
}

/// The reason for all entries across a copy whose claim the checker rejects.
const NO_COPY: &str = "copy";

/// The reason for an entry that the checker does not compose.
const NOT_COMPOSED: &str = "not-composed";

/// Why the checker composes no entry at a point.
fn none<R: Display>(refused: &[(Point, R)], point: Point) -> String {
    match refused.binary_search_by_key(&point, |(at, _)| *at) {
        Ok(index) => format!("none is composed: {}", refused[index].1),
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
    different.next()
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
fn differs_values(claimed: &Entry, right: &Entry) -> DifferingPart {
    let word = |value: &Value| format!("%{value}");
    let (requires, kept) = (&claimed.requires, &claimed.kept);
    differs_list("composed-requires", "required value", requires, &right.requires, word)
        .or_else(|| differs_list("composed-kept", "kept value", kept, &right.kept, word))
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
