//! Prints explanations as text for people, at most [`WIDTH`] columns wide.

use crate::WIDTH;
use crate::listing::LABEL;
use crate::schema::{
    Computed, ExplainedEntry, Explanation, Kept, LEVELS, PassAction, PointAnswer, PointPlace,
    PointStatus, TestedBlame, UnprovedPlace, Why,
};
use crate::table::{shortened, wrapped};

/// The explanation as text. Every line ends with `\n`.
pub fn text(explanation: &Explanation) -> String {
    let mut lines = TextLines::default();
    lines.function(&explanation.function, explanation.source_name.as_deref());
    let pipeline = match explanation.pipeline.is_empty() {
        true => "(no passes)".to_owned(),
        false => explanation.pipeline.join(" "),
    };
    lines.words("pipeline", &pipeline);
    lines.field("level", &explanation.level);
    for (at, g) in explanation.given_up.iter().enumerate() {
        let label = if at == 0 { "given up" } else { "" };
        lines.words(label, &format!("{}/{}, a{} {}", g.pass, g.rule, g.action, g.text));
    }
    for answer in &explanation.answers {
        lines.blank();
        answer_lines(answer, &mut lines);
    }
    lines.text()
}

/// The lines of the text so far.
#[derive(Default)]
pub(super) struct TextLines(Vec<String>);

impl TextLines {
    /// The lines as one text, each ended.
    pub(super) fn text(&self) -> String {
        self.0.iter().flat_map(|line| [line.trim_end(), "\n"]).collect()
    }

    /// Adds a line as it is.
    pub(super) fn heading(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }

    pub(super) fn blank(&mut self) {
        self.0.push(String::new());
    }

    /// Adds a label and a text, which is shortened to fit the line.
    pub(super) fn field(&mut self, label: &str, text: &str) {
        self.0.push(format!("{label:<LABEL$}{}", shortened(text, WIDTH - LABEL)));
    }

    /// Adds the name of the function, and its name in the source if the names differ.
    pub(super) fn function(&mut self, name: &str, in_source: Option<&str>) {
        let in_source = in_source.filter(|in_source| *in_source != name);
        let in_source = in_source
            .map_or(String::new(), |name| format!(", in the source {}", name.escape_debug()));
        self.field("function", &format!("@{name}{in_source}"));
    }

    /// Adds a label and a text, which is wrapped at blanks.
    pub(super) fn words(&mut self, label: &str, text: &str) {
        self.0.extend(wrapped(&format!("{label:<LABEL$}"), text.split(' '), WIDTH));
    }

    /// Adds an indented text without a label.
    fn below(&mut self, text: &str) {
        self.words("", &format!("  {text}"));
    }

    /// Adds code and its meaning: side by side if both fit, else on separate lines.
    pub(super) fn code(&mut self, label: &str, code: &str, meaning: &str) {
        const MEANING: usize = 38;
        let line = format!("{label:<LABEL$}{code:<width$}  ", width = MEANING - LABEL - 2);
        if line.chars().count() <= MEANING && MEANING + meaning.chars().count() <= WIDTH {
            self.0.push(line + meaning);
        } else {
            self.field(label, code);
            self.words("", &format!("    {meaning}"));
        }
    }
}

fn answer_lines(answer: &PointAnswer, lines: &mut TextLines) {
    let (heading, to) = match answer.direction {
        "forward" => ("base to opt", "the optimized version"),
        _ => ("opt to base", "the base"),
    };
    lines.heading(heading);
    if let Some(point) = &answer.point {
        place("from", point, lines);
    }
    if let Some(entry) = &answer.entry {
        entry_lines(entry, lines);
    }
    if let Some(why) = &answer.why {
        why_lines(answer.status, why, to, lines);
    }
    levels(answer, lines);
}

pub(super) fn place(label: &str, place: &PointPlace, lines: &mut TextLines) {
    let line = place.line.as_ref().map_or(String::new(), |line| format!(" at {line}"));
    let at = format!("{} {}{line}", place.at, place.inst);
    match LABEL + at.chars().count() + 2 + place.text.chars().count() <= WIDTH {
        true => lines.field(label, &format!("{at}  {}", place.text)),
        false => {
            lines.field(label, &at);
            lines.field("", &format!("  {}", place.text));
        }
    }
}

pub(super) fn entry_lines(entry: &ExplainedEntry, lines: &mut TextLines) {
    place("to", &entry.target, lines);
    steps_lines(&entry.compute, lines);
    for (number, replay) in entry.replay.iter().enumerate() {
        let label = if number == 0 { "replay" } else { "" };
        lines.code(
            label,
            &replay.code,
            &format!("there: {} {}", replay.stands.at, replay.stands.text),
        );
    }
    for (number, set) in entry.set.iter().enumerate() {
        let label = if number == 0 { "set" } else { "" };
        lines.code(
            label,
            &format!("{} = {}", set.value, set.from),
            &format!("there: {}", set.defined),
        );
        if let Some(done) = &set.since {
            lines.below(&format!("  {} {} (a{})", done.pass, done.words, done.number));
        }
    }
    if !entry.same.is_empty() {
        lines.words("unchanged", &entry.same.join(" "));
    }
    kept_lines(&entry.kept, lines);
    lines.words("cost", &cost(entry));
}

pub(super) fn steps_lines(steps: &[Computed], lines: &mut TextLines) {
    for (number, step) in steps.iter().enumerate() {
        let label = if number == 0 { "compute" } else { "" };
        lines.code(label, &format!("{} = {}", step.name, step.code), step.meaning);
    }
}

pub(super) fn kept_lines(kept: &[Kept], lines: &mut TextLines) {
    for (number, kept) in kept.iter().enumerate() {
        let label = if number == 0 { "keep" } else { "" };
        lines.code(label, &kept.value, &format!("here: {}", kept.defined));
    }
}

/// A count and what is counted.
pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The cost of an entry, in words.
fn cost(entry: &ExplainedEntry) -> String {
    let operations = counted(entry.compute.len(), "operation", "operations");
    let copies = counted(entry.set.len(), "copy", "copies");
    let arguments = entry.kept.iter().filter(|kept| kept.argument).count();
    let values = entry.kept.len() - arguments;
    let stores = counted(entry.replay.len(), "write", "writes");
    let run = match (entry.compute.len(), entry.replay.len(), entry.set.len()) {
        (0, 0, 0) => "nothing to run".to_owned(),
        (0, 0, _) => format!("{copies} per transition"),
        (_, 0, _) => format!("{operations} and {copies} per transition"),
        (0, _, _) => format!("{stores} and {copies} per transition"),
        _ => format!("{operations}, {stores} and {copies} per transition"),
    };
    format!("{run}; {}", kept_words(values, arguments))
}

/// The kept values and arguments of an entry, in words.
pub(super) fn kept_words(values: usize, arguments: usize) -> String {
    match (values, arguments) {
        (0, 0) => "no kept values".to_owned(),
        (values, 0) => {
            format!(
                "{} kept until this point for the entry alone",
                counted(values, "value", "values")
            )
        }
        (0, args) => {
            format!(
                "{} of the function kept until this point",
                counted(args, "argument", "arguments")
            )
        }
        (values, args) => format!(
            "{} and {} of the function kept until this point",
            counted(values, "value", "values"),
            counted(args, "argument", "arguments")
        ),
    }
}

pub(super) fn why_lines(status: PointStatus, why: &Why, to: &str, lines: &mut TextLines) {
    match status {
        PointStatus::None | PointStatus::Unproved => {
            lines.words("to", &format!("no entry: {}", why.text))
        }
        PointStatus::Unreachable => lines.words("to", &format!("no entry needed: {}", why.text)),
        PointStatus::Absent | PointStatus::Entry => {
            lines.words("from", &format!("no such point: {}", why.text))
        }
    }
    if let Some(verdict) = &why.verdict {
        lines.words("verdict", verdict);
    }
    if let Some(unproved) = &why.unproved {
        unproved_lines(unproved, lines);
    }
    if let (Some(value), Some(defined)) = (&why.value, &why.defined) {
        lines.words("missing", &format!("{value}; its definition in {to}: {defined}"));
    }
    if let Some(trap) = &why.trap {
        place("blocked by", trap, lines);
    }
    let label = if matches!(status, PointStatus::None | PointStatus::Unproved) {
        "blame"
    } else {
        "because"
    };
    match &why.blame {
        Some(done) => blame(label, done, lines),
        None if status == PointStatus::Unreachable => {}
        None => lines.words(label, "no single action can be named"),
    }
    if let Some(tested) = &why.tested {
        tested_lines(tested, lines);
    }
}

/// The most further rewrites to blame that a text names.
const ALSO: usize = 2;

fn tested_lines(tested: &TestedBlame, lines: &mut TextLines) {
    let TestedBlame { mends, also, bound, .. } = tested;
    also.iter().take(ALSO).for_each(|done| blame("and", done, lines));
    if also.len() > ALSO {
        lines.words("and", &counted(also.len() - ALSO, "more rewrite", "more rewrites"));
    }
    let text = match (mends, also.len()) {
        (false, _) => format!(
            "no set of rewrites was found without which the point has an entry; the search \
             ended at its bound `{}`",
            bound.unwrap_or_default()
        ),
        (true, 0) => "the point has an entry without this rewrite".to_owned(),
        (true, others) => {
            format!("the point has an entry without these {} rewrites together", others + 1)
        }
    };
    lines.words("tested", &text);
}

fn unproved_lines(unproved: &UnprovedPlace, lines: &mut TextLines) {
    lines.words("at", &unproved.anchor);
    let sides =
        [("base", &unproved.base, &unproved.base_term), ("opt", &unproved.opt, &unproved.opt_term)];
    for (label, value, term) in sides {
        let parts = value.iter().chain(term).map(String::as_str);
        let parts: Vec<&str> = parts.collect();
        if !parts.is_empty() {
            lines.words(label, &parts.join(" is "));
        }
    }
}

/// A place at which the versions are not proved alike, as text: the anchor, the two operands with
/// their terms, and the action to blame. The lines are indented.
pub(crate) fn unproved_text(unproved: &UnprovedPlace) -> Vec<String> {
    let mut lines = TextLines::default();
    lines.words("not proved", &format!("{} at {}", unproved.check, unproved.at));
    unproved_lines(unproved, &mut lines);
    match &unproved.blame {
        Some(done) => blame("blame", done, &mut lines),
        None => lines.words("blame", "no single action can be named"),
    }
    lines.0.iter().map(|line| format!("  {}", line.trim_end())).collect()
}

fn blame(label: &str, done: &PassAction, lines: &mut TextLines) {
    lines.words(label, &format!("{}, rule {}: it {}", done.pass, done.rule, done.words));
    lines.words("", &done.action);
}

/// Adds the levels with an entry and the levels without an entry.
fn levels(answer: &PointAnswer, lines: &mut TextLines) {
    let with = |wanted: bool| -> Vec<&str> {
        answer
            .levels
            .iter()
            .filter(|(_, has)| **has == wanted)
            .map(|(level, _)| LEVELS[level])
            .collect()
    };
    match (with(true).as_slice(), with(false).as_slice()) {
        ([], []) => {}
        (all, []) => lines.words("levels", &format!("an entry at every level: {}", all.join(" "))),
        ([], _) => lines.words("levels", "no entry at any level"),
        (some, others) => {
            lines.words(
                "levels",
                &format!("an entry at {}; none at {}", some.join(" "), others.join(" ")),
            );
        }
    }
}
