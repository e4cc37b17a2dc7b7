//! Finding the texts of a table in the sources, and replacing them.

use crate::table::{Edit, Line, SWITCH, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

/// A text without blanks, line breaks and comments, with the place of each byte in the original.
struct Flat {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

impl Flat {
    fn new(text: &str) -> Flat {
        let mut flat = Flat { bytes: Vec::new(), places: Vec::new() };
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            for (place, byte) in line[..code(line)].bytes().enumerate() {
                if !byte.is_ascii_whitespace() {
                    flat.bytes.push(byte);
                    flat.places.push(start + place);
                }
            }
            start += line.len();
        }
        flat
    }

    /// Where a text occurs as whole words.
    fn occurrences(&self, text: &[u8]) -> Vec<usize> {
        if text.is_empty() || self.bytes.len() < text.len() {
            return Vec::new();
        }
        let last = self.bytes.len() - text.len();
        let fits = |at: &usize| {
            self.bytes[*at..].starts_with(text)
                && !self.is_inside_word(*at)
                && !self.is_inside_word(*at + text.len())
        };
        (0..=last).filter(fits).collect()
    }

    /// Whether the bytes in front of and behind a position belong to one word of the original.
    fn is_inside_word(&self, at: usize) -> bool {
        let is_word =
            |at: usize| self.bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        at > 0 && is_word(at - 1) && is_word(at) && self.places[at - 1] + 1 == self.places[at]
    }
}

/// The length of a line without the comment at its end. A comment starts the line or has a blank in
/// front, which tells it from the `//` of an address in a string.
fn code(line: &str) -> usize {
    let starts = line.match_indices("//").map(|(at, _)| at);
    let is_comment =
        |at: &usize| line[..*at].chars().next_back().is_none_or(|c: char| c.is_whitespace());
    starts.into_iter().find(is_comment).unwrap_or(line.len())
}

/// A part of a source and its replacement.
struct Hunk {
    range: Range<usize>,
    text: String,
}

/// The hunks of an edit whose text occurs at a position of the flat source.
fn hunks(table: &Table, edit: &Edit, source: &Flat, start: usize) -> Vec<Hunk> {
    let mut hunks: Vec<(Range<usize>, String)> = Vec::new();
    let (mut at, mut open) = (start, false);
    for line in &edit.lines {
        if let Line::Stays(text) | Line::Goes(text) = line {
            let end = at + Flat::new(text).bytes.len();
            match line {
                Line::Goes(_) if open => hunks.last_mut().expect("one is open").0.end = end,
                Line::Goes(_) => hunks.push((at..end, String::new())),
                _ => {}
            }
            at = end;
        }
        if let Line::Comes(text) = line {
            if !open {
                // An added line after a removed line belongs to the same hunk.
                hunks.push((at..at, String::new()));
            }
            let text = switched(table, text);
            hunks.last_mut().expect("one is open").1.push_str(&format!("{text}\n"));
        }
        open = !matches!(line, Line::Stays(_));
    }
    let place = |at: usize| source.places[at];
    let range = |flat: Range<usize>| match flat {
        // Directly after the text in front of it: a comment below belongs to the code that follows.
        flat if flat.is_empty() && flat.start > start => {
            place(flat.start - 1) + 1..place(flat.start - 1) + 1
        }
        flat if flat.is_empty() => place(flat.start)..place(flat.start),
        flat => place(flat.start)..place(flat.end - 1) + 1,
    };
    hunks
        .into_iter()
        .map(|(flat, text)| Hunk { range: range(flat), text: format!("\n{text}") })
        .collect()
}

/// A line with its conditions as calls of [`crate::switch::is_on`].
fn switched(table: &Table, line: &str) -> String {
    let mut parts = line.split(SWITCH);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once("\")").unwrap_or((part, ""));
        // `consistency` reports names that no table has.
        let id = table.mutant(name).map_or(0, |m| m.id);
        text.push_str(&format!("::mutants::switch::is_on({id}){rest}"));
    }
    text
}

/// The sources that edits change, by path.
pub type Sources = BTreeMap<String, String>;

/// The sources that a table names, below the root of a workspace. Files that do not exist are
/// missing.
pub fn sources(table: &Table, root: &Path) -> Sources {
    let names: BTreeSet<&str> = table.edits.iter().map(|e| e.file.as_str()).collect();
    let read = |name: &str| std::fs::read_to_string(root.join(name)).ok();
    names.into_iter().filter_map(|name| Some((name.to_owned(), read(name)?))).collect()
}

/// The sources with all edits applied.
///
/// # Errors
/// The findings, each in a paragraph: a text that does not occur exactly once in its file, edits
/// that overlap, mutants without a condition or a summary, conditions of unknown mutants, names and
/// ids that are not unique, areas with fewer than six mutants.
pub fn apply(table: &Table, sources: &Sources) -> Result<Sources, Vec<String>> {
    let mut findings = consistency(table);
    let mut changed = Sources::new();
    for file in table.edits.iter().map(|e| &e.file).collect::<BTreeSet<_>>() {
        let edits: Vec<&Edit> = table.edits.iter().filter(|e| e.file == *file).collect();
        let Some(source) = sources.get(file) else {
            findings.extend(
                edits.iter().map(|e| {
                    format!("{}: {}: there is no file {file}: was it moved?", e.at, e.under)
                }),
            );
            continue;
        };
        match apply_to(table, &edits, source) {
            Ok(text) => _ = changed.insert(file.clone(), text),
            Err(found) => findings.extend(found),
        }
    }
    if findings.is_empty() { Ok(changed) } else { Err(findings) }
}

fn apply_to(table: &Table, edits: &[&Edit], source: &str) -> Result<String, Vec<String>> {
    let flat = Flat::new(source);
    let mut findings = Vec::new();
    let mut all: Vec<(Hunk, &Edit)> = Vec::new();
    for edit in edits {
        let before: Vec<&str> = edit.before().collect();
        let text = Flat::new(&before.join("\n")).bytes;
        match flat.occurrences(&text).as_slice() {
            [at] => {
                all.extend(hunks(table, edit, &flat, *at).into_iter().map(|hunk| (hunk, *edit)));
            }
            [] => findings.push(missing(edit, &before, source)),
            several => {
                let lines: Vec<String> = several
                    .iter()
                    .map(|at| line_of(source, flat.places[*at]).to_string())
                    .collect();
                findings.push(format!(
                    "{}: {}: {} has this text {} times, in lines {}; add a line in front or behind:\n{}",
                    edit.at,
                    edit.under,
                    edit.file,
                    several.len(),
                    lines.join(", "),
                    indented(&before)
                ));
            }
        }
    }
    all.sort_by_key(|(hunk, _)| (hunk.range.start, hunk.range.end));
    for pair in all.windows(2) {
        let [(first, a), (second, b)] = pair else { unreachable!("windows of two") };
        if second.range.start < first.range.end || second.range == first.range {
            findings.push(format!(
                "{} and {}: {} and {} change the same place, {}:{}; make them one edit",
                a.at,
                b.at,
                a.under,
                b.under,
                a.file,
                line_of(source, second.range.start)
            ));
        }
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    let mut text = source.to_owned();
    for (hunk, _) in all.iter().rev() {
        text.replace_range(hunk.range.clone(), &hunk.text);
    }
    Ok(text)
}

/// How many mutants an area has at least: fewer say little about the judges.
const AREA_LEAST: usize = 6;

/// The findings about a table by itself.
fn consistency(table: &Table) -> Vec<String> {
    let mut findings = Vec::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut once = |what: String| {
        if !seen.insert(what.clone()) {
            findings.push(format!("{what} stands twice in the tables"));
        }
    };
    for mutant in &table.mutants {
        once(format!("id {}", mutant.id));
        once(format!("mutant {}", mutant.name));
    }
    table.areas.iter().for_each(|area| once(format!("area {}", area.name)));
    let asked: BTreeSet<&str> = table.edits.iter().flat_map(Edit::switches).collect();
    for mutant in table.mutants.iter().filter(|m| !asked.contains(m.name.as_str())) {
        findings.push(format!("no edit asks for {SWITCH}{}\")", mutant.name));
    }
    for name in asked.iter().filter(|name| table.mutant(name).is_none()) {
        findings.push(format!("an edit asks for {SWITCH}{name}\"), which no table has"));
    }
    for mutant in table.mutants.iter().filter(|m| m.summary.is_empty()) {
        findings.push(format!("{} has no summary", mutant.name));
    }
    for area in &table.areas {
        let count = table.mutants.iter().filter(|m| m.area == area.name).count();
        if count < AREA_LEAST {
            findings.push(format!("area {} has {count} mutants, {AREA_LEAST} at least", area.name));
        }
    }
    findings
}

/// The finding about a text that its file does not have, with the most similar lines.
fn missing(edit: &Edit, before: &[&str], source: &str) -> String {
    let mut message = format!(
        "{}: {}: {} does not have this text:\n{}",
        edit.at,
        edit.under,
        edit.file,
        indented(before)
    );
    if let Some((line, lines)) = nearest(before, source) {
        message.push_str(&format!("the most alike is {}:{line}:\n{}", edit.file, indented(&lines)));
    }
    message
}

/// The lines of a source that are most similar to a text, as many lines as the text has, and the
/// number of the first.
fn nearest<'s>(text: &[&str], source: &'s str) -> Option<(usize, Vec<&'s str>)> {
    let wanted = words(&text.join("\n"));
    let lines: Vec<&str> = source.lines().collect();
    let alike = |window: &[&str]| {
        let found = words(&window.join("\n"));
        let both: usize =
            wanted.iter().map(|(word, n)| (*n).min(found.get(word).copied().unwrap_or(0))).sum();
        2000 * both / (wanted.values().sum::<usize>() + found.values().sum::<usize>()).max(1)
    };
    let windows = lines.windows(text.len().clamp(1, lines.len().max(1))).enumerate();
    // Of several that are as alike the first.
    let best = windows
        .map(|(at, window)| (alike(window), at, window))
        .max_by(|a, b| (a.0, std::cmp::Reverse(a.1)).cmp(&(b.0, std::cmp::Reverse(b.1))));
    best.filter(|(alike, ..)| *alike > 0).map(|(_, at, window)| (at + 1, window.to_vec()))
}

/// The words and marks of a text, each with how often it occurs.
fn words(text: &str) -> BTreeMap<String, usize> {
    let mut words: BTreeMap<String, usize> = BTreeMap::new();
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        for word in [std::mem::take(&mut word), c.to_string()] {
            if !word.trim().is_empty() {
                *words.entry(word).or_default() += 1;
            }
        }
    }
    words
}

fn line_of(source: &str, place: usize) -> usize {
    source[..place].matches('\n').count() + 1
}

fn indented(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("    {line}\n")).collect()
}
