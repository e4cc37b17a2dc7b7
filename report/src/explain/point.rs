//! Parses points in the notation of people.
//!
//! `body:4` is a place as listings show it, and `inst9` is an instruction. `%x` is the point before
//! the definition of a value, or the start of the block whose parameter it is. `body` is the start
//! of a block. A point copied from a listing, `body:4 inst9`, is also accepted. If the lines of the
//! source are known, `prog.c:41` is the first point of the version that comes from this line.

use crate::listing::NamedVersion;
use ir::{Inst, Point, Value, ValueDef};
use std::path::Path;

/// Names longer than this are not compared with the text: nobody types them.
const MAX_COMPARED: usize = 64;

/// The number of suggestions.
const SHOWN: usize = 5;

/// The least similarity of two names, between 0 and 1, for a suggestion.
const ALIKE: f64 = 0.75;

/// The point of a version that a text denotes. `None` if the version has no such point. Cost:
/// linear in the version.
pub(super) fn find(version: &NamedVersion<'_>, text: &str) -> Option<Point> {
    let text = text.trim();
    find_exactly(version, text).or_else(|| {
        let (place, inst) = text.rsplit_once(char::is_whitespace)?;
        let point = instruction(version, inst)?;
        (find_exactly(version, place.trim_end()) == Some(point)).then_some(point)
    })
}

fn find_exactly(version: &NamedVersion<'_>, text: &str) -> Option<Point> {
    if text.starts_with('%') {
        return values(version)
            .find(|v| version.text.value(*v) == text)
            .map(|value| defined(version, value));
    }
    // An instruction wins over a block of the same name. `inst9:0` denotes the start of that block.
    if let Some(point) = instruction(version, text) {
        return Some(point);
    }
    if let Some((block, index)) = text.rsplit_once(':')
        && let Ok(index) = index.parse::<usize>()
    {
        let named = version.version.blocks().find(|b| version.text.block(*b) == block);
        return match named {
            Some(named) => version.version.block_insts(named).nth(index).map(Point::before),
            None => at_line(version, block, index),
        };
    }
    let block = version.version.blocks().find(|b| version.text.block(*b) == text)?;
    Some(Point::before(version.version.first_inst(block)))
}

/// The first point that comes from a line of a file of the source. The file may lack its folders.
fn at_line(version: &NamedVersion<'_>, file: &str, line: usize) -> Option<Point> {
    let f = version.version;
    let mut points = f.blocks().flat_map(|block| f.block_insts(block)).map(Point::before);
    points.find(|point| comes_from(version, *point, file, line))
}

/// Whether a text denotes the line that a point comes from, if the lines are known.
pub(super) fn is_at_line(version: &NamedVersion<'_>, text: &str, point: Point) -> bool {
    let place = text.trim().rsplit_once(':');
    let place = place.and_then(|(file, line)| Some((file, line.parse().ok()?)));
    place.is_some_and(|(file, line)| comes_from(version, point, file, line))
}

fn comes_from(version: &NamedVersion<'_>, point: Point, file: &str, line: usize) -> bool {
    !file.is_empty()
        && version.line(point).is_some_and(|known| {
            known.line as usize == line && Path::new(&known.file).ends_with(file)
        })
}

/// The point before the instruction that a text such as `inst9` denotes, if the version has it.
fn instruction(version: &NamedVersion<'_>, text: &str) -> Option<Point> {
    let number = number(text)?;
    let inst = Inst::from_u32(number);
    version.version.has_inst(inst).then(|| Point::before(inst))
}

/// The number in a text such as `inst9`. Leading zeros and signs are rejected.
fn number(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("inst")?;
    // `u32::MAX` is not an id: the packed option reserves it.
    digits.parse().ok().filter(|n: &u32| n.to_string() == digits && *n < u32::MAX)
}

fn defined(version: &NamedVersion<'_>, value: Value) -> Point {
    Point::before(match version.version.value_def(value) {
        ValueDef::Result(inst, _) => inst,
        ValueDef::Param(block, _) => version.version.first_inst(block),
    })
}

/// All values of a version, in layout order.
fn values<'v>(version: &'v NamedVersion<'_>) -> impl Iterator<Item = Value> + 'v {
    let f = version.version;
    f.blocks().flat_map(move |b| {
        let results = f.block_insts(b).flat_map(move |i| f.inst(i).results.iter().copied());
        f.block_params(b).iter().copied().chain(results)
    })
}

/// A sentence with suggestions for a point that no version has. Cost: linear in the versions.
pub(super) fn near(versions: &[&NamedVersion<'_>], text: &str) -> String {
    let text = text.trim();
    if let Some((name, _)) = text.rsplit_once(':')
        && let Some(said) = versions.iter().find_map(|v| block_length(v, name))
    {
        return said;
    }
    if let Some(number) = number(text) {
        return near_instructions(versions, number);
    }
    let mut names: Vec<String> = Vec::new();
    for version in versions {
        match text.strip_prefix('%') {
            Some(_) => names.extend(values(version).map(|v| version.text.value(v))),
            None => names.extend(version.version.blocks().map(|b| version.text.block(b))),
        }
        // The user may have forgotten the `%`.
        names.extend(
            values(version).map(|v| version.text.value(v)).filter(|name| name[1..] == *text),
        );
    }
    match alike(names, text).as_slice() {
        [] => {
            let has_lines = versions.iter().any(|version| version.has_lines());
            let line = if has_lines { ", or `file.c:line`" } else { "; lines are not known" };
            format!(
                "write a point as `block:index`, `block`, `inst9` or `%value`{line}; `osier opt \
                 --emit listing` shows all"
            )
        }
        names => format!("did you mean {}?", names.join(", ")),
    }
}

/// A sentence about the range of points of a block, if the version has the block.
fn block_length(version: &NamedVersion<'_>, name: &str) -> Option<String> {
    let block = version.version.blocks().find(|b| version.text.block(*b) == name)?;
    let last = version.version.block_insts(block).count() - 1;
    Some(format!("{name} has the points {name}:0 to {name}:{last}"))
}

/// A sentence that lists the instructions with the nearest numbers.
fn near_instructions(versions: &[&NamedVersion<'_>], number: u32) -> String {
    let mut numbers: Vec<u32> =
        versions.iter().flat_map(|v| v.version.all_insts()).map(Inst::as_u32).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.sort_by_key(|n| n.abs_diff(number));
    numbers.truncate(SHOWN);
    numbers.sort_unstable();
    let names: Vec<String> = numbers.iter().map(|n| format!("inst{n}")).collect();
    format!("the nearest are {}", names.join(", "))
}

/// The names most similar to a text, at most five, best first. Cost: linear in the names.
pub fn alike(names: Vec<String>, text: &str) -> Vec<String> {
    let bare = |name: &str| name.trim_start_matches('%').to_lowercase();
    let wanted: String = bare(text).chars().take(MAX_COMPARED).collect();
    let mut scored: Vec<(f64, String)> = names
        .into_iter()
        .filter(|name| name.len() <= MAX_COMPARED)
        .map(|name| (strsim::jaro_winkler(&bare(&name), &wanted), name))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(SHOWN).map(|(_, name)| name).collect()
}
