//! Prints explanations of versions with inlined code as text for people.

use super::text::{
    TextLines, counted, entry_lines, kept_lines, kept_words, place, steps_lines, why_lines,
};
use crate::WIDTH;
use crate::schema::{
    ActivationPlace, ExplainedFrame, ExplainedFrames, FramesPrice, InlinedAnswer,
    InliningExplanation, PointStatus,
};
use crate::table::shortened;

/// The explanation as text, at most [`WIDTH`] columns wide. Every line ends with `\n`.
pub fn inlined_text(explanation: &InliningExplanation) -> String {
    let mut lines = TextLines::default();
    lines.function(&explanation.function, explanation.source_name.as_deref());
    lines.words("pipeline", &explanation.pipeline.join(" "));
    lines.field("level", &explanation.level);
    lines.field("inlined", &counted(explanation.calls as usize, "call", "calls"));
    for answer in &explanation.answers {
        lines.blank();
        answer_lines(answer, &mut lines);
    }
    lines.text()
}

fn answer_lines(answer: &InlinedAnswer, lines: &mut TextLines) {
    let (heading, to) = match answer.direction {
        "forward" => ("base to opt", "the optimized version"),
        _ => ("opt to frames", "the base"),
    };
    lines.heading(heading);
    if let Some(point) = &answer.point {
        place("from", point, lines);
    }
    if answer.status != PointStatus::Absent {
        code_of(&answer.code_of, lines);
    }
    if let Some(entry) = &answer.entry {
        entry_lines(entry, lines);
    }
    if let Some(frames) = &answer.frames {
        frames_lines(frames, lines);
    }
    if let Some(why) = &answer.why {
        // The missing value belongs to the version that the step leads to.
        let to = match answer.step {
            Some("base to cleaned") => "the cleaned version",
            Some("cleaned to copy" | "opt to copy") => "the copy",
            Some("copy to opt") => "the optimized version",
            _ => to,
        };
        why_lines(answer.status, why, to, lines);
    }
    if answer.status == PointStatus::Absent {
        code_of(&answer.code_of, lines);
    }
    if let Some(step) = answer.step {
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
}

/// The activations that a point stands for: its code, and the calls that contain it. A single
/// activation is the function itself, and is not printed.
fn code_of(activations: &[ActivationPlace], lines: &mut TextLines) {
    let inlined = if activations.len() > 1 { activations } else { &[] };
    for (number, activation) in inlined.iter().enumerate() {
        let label = if number == 0 { "code of" } else { "called at" };
        activation_line(label, activation, lines);
    }
}

/// An activation and its current instruction, on one line if both fit.
fn activation_line(label: &str, activation: &ActivationPlace, lines: &mut TextLines) {
    let at = &activation.place;
    let name = shortened(&activation.function, WIDTH / 2);
    place(
        label,
        &crate::schema::PointPlace { at: format!("@{name} {}", at.at), ..at.clone() },
        lines,
    );
}

fn frames_lines(entry: &ExplainedFrames, lines: &mut TextLines) {
    steps_lines(&entry.compute, lines);
    for (number, replay) in entry.replay.iter().enumerate() {
        lines.field(if number == 0 { "replay" } else { "" }, replay);
    }
    for (number, frame) in entry.frames.iter().enumerate() {
        let label = if number == 0 { "to" } else { "within" };
        activation_line(label, &frame.at, lines);
        frame_lines(frame, lines);
    }
    kept_lines(&entry.kept, lines);
    lines.words("cost", &cost(&entry.price));
}

/// The values that an activation gets. Values of the same name are listed together.
fn frame_lines(frame: &ExplainedFrame, lines: &mut TextLines) {
    let (same, others): (Vec<_>, Vec<_>) = frame.set.iter().partition(|set| set.value == set.from);
    for (number, set) in others.iter().enumerate() {
        let label = if number == 0 { "  gets" } else { "" };
        lines.code(
            label,
            &format!("{} = {}", set.value, set.from),
            &format!("there: {}", set.defined),
        );
    }
    if !same.is_empty() {
        let names: Vec<&str> = same.iter().map(|set| set.value.as_str()).collect();
        let label = if others.is_empty() { "  gets" } else { "" };
        lines.words(label, &format!("{}, of the same names", names.join(" ")));
    }
    if frame.set.is_empty() {
        lines.words("  gets", "no values");
    }
    if !frame.awaits.is_empty() {
        lines.words("  awaits", &frame.awaits.join(" "));
    }
}

/// The price of a transition, in words.
fn cost(price: &FramesPrice) -> String {
    let FramesPrice { activations, operations, writes, values, kept, kept_args } = *price;
    let parts = [
        (operations, "operation", "operations"),
        (writes, "write", "writes"),
        (values, "value", "values"),
    ];
    let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
    let parts: Vec<String> =
        parts.map(|(count, one, many)| counted(count as usize, one, many)).collect();
    let run = match parts.split_last() {
        None => "nothing to run".to_owned(),
        Some((last, [])) => format!("{last} per transition"),
        Some((last, rest)) => format!("{} and {last} per transition", rest.join(", ")),
    };
    let activations = counted(activations as usize, "activation", "activations");
    format!("{activations}, {run}; {}", kept_words(kept as usize, kept_args as usize))
}
