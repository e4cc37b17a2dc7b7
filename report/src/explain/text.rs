//! Prints explanations as text for people, at most [`WIDTH`] columns wide.

use crate::WIDTH;
use crate::listing::LABEL;
use crate::schema::{
    ActivationPlace, EntryPrice, ExplainedEntry, ExplainedLanding, ExplainedWhy, Explanation,
    LEVELS, PassAction, PointAnswer, PointPlace, PointStatus, SetValue, TestedBlame, UnprovedPlace,
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
    for (at, g) in explanation.given_up.iter().flatten().enumerate() {
        let label = if at == 0 { "given up" } else { "" };
        lines.words(label, &format!("{}/{}, a{} {}", g.pass, g.rule, g.action, g.text));
    }
    if let Some(calls) = explanation.calls {
        lines.field("inlined", &counted(calls as usize, "call", "calls"));
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
    let (heading, to) = match (answer.direction, &answer.inlined) {
        ("forward", _) => ("base to opt", "the optimized version"),
        (_, None) => ("opt to base", "the base"),
        (_, Some(_)) => ("opt to frames", "the base"),
    };
    let (code_of, step) = match &answer.inlined {
        Some(inlined) => (inlined.code_of.as_slice(), inlined.step),
        None => (&[][..], None),
    };
    let is_absent = answer.status == PointStatus::Absent;
    lines.heading(heading);
    if let Some(point) = &answer.point {
        place("from", point, lines);
    }
    if !is_absent {
        code_lines(code_of, lines);
    }
    if let Some(entry) = &answer.entry {
        entry_lines(entry, lines);
    }
    if let Some(why) = &answer.why {
        // The missing value belongs to the version that the step leads to.
        let to = match step {
            Some("base to cleaned") => "the cleaned version",
            Some("cleaned to copy" | "opt to copy") => "the copy",
            Some("copy to opt") => "the optimized version",
            _ => to,
        };
        why_lines(answer.status, why, to, lines);
    }
    if is_absent {
        code_lines(code_of, lines);
    }
    if let Some(step) = step {
        let ends = step.split(" to ").map(|name| match name {
            "opt" => "the optimized version",
            "cleaned" => "the cleaned version",
            "copy" => "the copy with inlined code",
            "frames" => "the frames",
            _ => "the base",
        });
        let ends: Vec<&str> = ends.collect();
        lines.words("lost", &format!("between {}", ends.join(" and ")));
    }
    levels(answer, lines);
}

/// The activations that a point stands for: its code, and the calls that contain it. A single
/// activation is the function itself, and is not printed.
fn code_lines(activations: &[ActivationPlace], lines: &mut TextLines) {
    let inlined = if activations.len() > 1 { activations } else { &[] };
    for (number, activation) in inlined.iter().enumerate() {
        activation_line(if number == 0 { "code of" } else { "called at" }, activation, lines);
    }
}

/// An activation and its current instruction, on one line if both fit.
fn activation_line(label: &str, activation: &ActivationPlace, lines: &mut TextLines) {
    let at = &activation.place;
    let name = shortened(&activation.function, WIDTH / 2);
    place(label, &PointPlace { at: format!("@{name} {}", at.at), ..at.clone() }, lines);
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
    let first = |number: usize, label| if number == 0 { label } else { "" };
    if let Some(target) = entry.target() {
        place("to", &target.at.place, lines);
    }
    for (number, step) in entry.compute.iter().enumerate() {
        let code = format!("{} = {}", step.name, step.code);
        lines.code(first(number, "compute"), &code, step.meaning);
    }
    for (number, replay) in entry.replay.iter().enumerate() {
        let label = first(number, "replay");
        match &replay.stands {
            Some(place) => {
                lines.code(label, &replay.code, &format!("there: {} {}", place.at, place.text));
            }
            None => lines.field(label, &replay.code),
        }
    }
    let mut price = entry.price();
    match entry.target() {
        Some(target) => {
            let (same, set): (Vec<_>, Vec<_>) = target.set.iter().partition(|set| set.same);
            set_lines("set", &set, lines);
            if !same.is_empty() {
                lines.words("unchanged", &names(&same));
            }
            price.values = set.len() as u64;
        }
        None => {
            for (number, landing) in entry.landings.iter().enumerate() {
                activation_line(if number == 0 { "to" } else { "within" }, &landing.at, lines);
                landing_lines(landing, lines);
            }
        }
    }
    for (number, kept) in entry.kept.iter().enumerate() {
        lines.code(first(number, "keep"), &kept.value, &format!("here: {}", kept.defined));
    }
    lines.words("cost", &cost(price, entry.target().is_some()));
}

fn names(set: &[&SetValue]) -> String {
    set.iter().map(|set| set.value.as_str()).collect::<Vec<_>>().join(" ")
}

fn set_lines(label: &str, set: &[&SetValue], lines: &mut TextLines) {
    for (number, set) in set.iter().enumerate() {
        let label = if number == 0 { label } else { "" };
        let code = format!("{} = {}", set.value, set.from);
        lines.code(label, &code, &format!("there: {}", set.defined));
        if let Some(done) = &set.since {
            lines.below(&format!("  {} {} (a{})", done.pass, done.words, done.number));
        }
    }
}

/// The values that an activation gets. Values of the same name are listed together.
fn landing_lines(landing: &ExplainedLanding, lines: &mut TextLines) {
    let (same, others): (Vec<_>, Vec<_>) =
        landing.set.iter().partition(|set| set.value == set.from);
    set_lines("  gets", &others, lines);
    if !same.is_empty() {
        let label = if others.is_empty() { "  gets" } else { "" };
        lines.words(label, &format!("{}, of the same names", names(&same)));
    }
    if landing.set.is_empty() {
        lines.words("  gets", "no values");
    }
    if !landing.awaits.is_empty() {
        lines.words("  awaits", &landing.awaits.join(" "));
    }
}

/// A count and what is counted.
fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The price of a transition, in words. Values are copies if the entry has a single landing.
fn cost(price: EntryPrice, single: bool) -> String {
    let EntryPrice { activations, operations, writes, values, kept, kept_args } = price;
    let copies = single && operations + writes + values > 0;
    let parts = [
        (operations, operations > 0, ["operation", "operations"]),
        (writes, writes > 0, ["write", "writes"]),
        (
            values,
            values > 0 || copies,
            if single { ["copy", "copies"] } else { ["value", "values"] },
        ),
    ];
    let parts = parts.into_iter().filter(|(_, shown, _)| *shown);
    let parts: Vec<String> =
        parts.map(|(count, _, [one, many])| counted(count as usize, one, many)).collect();
    let run = match parts.split_last() {
        None => "nothing to run".to_owned(),
        Some((last, [])) => format!("{last} per transition"),
        Some((last, rest)) => format!("{} and {last} per transition", rest.join(", ")),
    };
    let kept = kept_words(kept as usize, kept_args as usize);
    match single {
        true => format!("{run}; {kept}"),
        false => {
            let activations = counted(activations as usize, "activation", "activations");
            format!("{activations}, {run}; {kept}")
        }
    }
}

/// The kept values and arguments of an entry, in words.
fn kept_words(values: usize, arguments: usize) -> String {
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

fn why_lines(status: PointStatus, why: &ExplainedWhy, to: &str, lines: &mut TextLines) {
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
