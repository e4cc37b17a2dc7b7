//! The summary of reports as Markdown, for a comment on a change: the result, the shares and their
//! changes, and the functions that lost entries.

use super::TableReport;
use super::rows::{blamed, percent};
use super::section::TextOptions;
use super::summary::{counted, pipeline_name};
use crate::schema::{Change, ComparedCause, Comparison, LEVELS, Report};
use std::fmt::Write;

/// The most functions, and the most causes, that a summary lists.
const MOST: usize = 10;

/// The summary of reports on one program as Markdown. `below` are sentences about shares that are
/// too low. Names stand in code spans, so no name can form a link or mention anybody.
pub fn markdown(reports: &[&Report], below: &[String]) -> String {
    let mut out = String::new();
    let program = reports.first().map_or("", |report| report.program.path.as_str());
    let verdict = match below.len() {
        0 => String::new(),
        1 => ": 1 share is too low".to_owned(),
        many => format!(": {many} shares are too low"),
    };
    line(&mut out, &format!("### Osier report on {}{verdict}\n", code_span(program)));
    for sentence in below {
        line(&mut out, &format!("- {}", code_span(sentence)));
    }
    if !below.is_empty() {
        out.push('\n');
    }
    for report in reports {
        if report.interrupted {
            line(&mut out, "The report was interrupted.\n");
        }
        shares(&mut out, report);
        if let Some(against) = &report.against {
            changes(&mut out, against);
        }
    }
    line(
        &mut out,
        "<sub>A share is the part of the points at which a running call can move to the optimized \
         version (base to opt), or back (opt to base).</sub>",
    );
    out
}

/// The summary of a report that consists of tables: its brief text.
pub fn tables_markdown(tables: &TableReport, below: &[String]) -> String {
    let text = tables.text(TextOptions { verbose: false, colored: false });
    let mut out = format!("### {}\n\n", code_span(&tables.title));
    for sentence in below {
        line(&mut out, &format!("- {}", code_span(sentence)));
    }
    out + "\n" + &code_block(&text, usize::MAX)
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("writing to a string");
}

/// A code span of Markdown with this text, which stays on one line. In a table a bar in it would
/// end the cell: see [`code_cell`].
pub fn code_span(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    // Two backticks with nothing between them are no code span.
    let text = if text.is_empty() { " ".to_owned() } else { text };
    let ticks = "`".repeat(1 + longest_run(&text));
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// A [`code_span`] that stays inside a cell of a table: GitHub splits a row at each bar that has no
/// backslash, in code spans too. Outside of a table the backslash would be visible.
pub fn code_cell(text: &str) -> String {
    code_span(text).replace('|', "\\|")
}

/// A block of Markdown with the first lines of a text as they are, at most so many, and below it
/// the number of the others.
pub fn code_block(text: &str, most: usize) -> String {
    // A fence that the text does not contain.
    let fence = "`".repeat(3.max(1 + longest_run(text)));
    let mut out = format!("{fence}text\n");
    text.lines().take(most).for_each(|text| line(&mut out, text));
    let rest = text.lines().count().saturating_sub(most);
    line(&mut out, &fence);
    if rest > 0 {
        line(&mut out, &format!("\nand {}", counted(rest as u64, "more line", "more lines")));
    }
    out
}

/// The length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// The table of shares by level, each with its change since the older report.
fn shares(out: &mut String, report: &Report) {
    let name = pipeline_name(&report.pipeline);
    let levels = super::rows::levels(report);
    if levels.is_empty() {
        let name = code_span(&name);
        line(out, &format!("The pipeline {name} changed no function: no share was measured.\n"));
        return;
    }
    let heading: Vec<&str> = levels.iter().map(|level| LEVELS[*level]).collect();
    line(out, &format!("| {}: points with an entry | {} |", code_cell(&name), heading.join(" | ")));
    line(out, &format!("|---|{}", "--:|".repeat(levels.len())));
    let against = report.against.as_ref();
    let old = [against.map(|a| &a.forward), against.map(|a| &a.backward)];
    for ((name, direction), old) in super::rows::directions(report).into_iter().zip(old) {
        let cells = levels.iter().map(|level| {
            let share = old.and_then(|old| old.levels.get(*level)).map(|level| level.share);
            let now = direction.sum.share(*level);
            match share {
                Some(change) => format!("{}{}", percent(change.new), difference(change)),
                None => percent(now),
            }
        });
        line(out, &format!("| {name}, % | {} |", cells.collect::<Vec<_>>().join(" | ")));
    }
    out.push('\n');
}

/// The change of a share in percentage points; empty if it rounds to nothing.
fn difference(share: Change<Option<f64>>) -> String {
    let Change { old: Some(old), new: Some(new) } = share else { return String::new() };
    match new - old {
        change if change.abs() < 0.05 => String::new(),
        change => format!(" ({change:+.1})"),
    }
}

/// What changed since the older report.
fn changes(out: &mut String, against: &Comparison) {
    let lost: u64 = against.functions.iter().map(|function| function.lost).sum();
    let gained: u64 = against.functions.iter().map(|function| function.gained).sum();
    let level = &against.level.new;
    let words = match (lost, gained) {
        (0, 0) => "No point lost or gained an entry".to_owned(),
        (0, _) => format!("{} gained an entry, and none lost one", points(gained)),
        _ => format!("**{} lost an entry**, and {} gained one", points(lost), points(gained)),
    };
    line(
        out,
        &format!(
            "{words}, at the level {} since {}.\n",
            code_span(level),
            code_span(&against.path)
        ),
    );
    let changed = against.functions.iter().filter(|function| function.lost > 0);
    let count = changed.clone().count();
    if count > 0 {
        line(out, "| function | lost | base to opt, % | opt to base, % |");
        line(out, "|---|--:|--:|--:|");
        for function in changed.take(MOST) {
            let shares = [function.forward, function.backward]
                .map(|share| format!("{} to {}", percent(share.old), percent(share.new)));
            let cells = [code_cell(&function.name), function.lost.to_string()];
            line(out, &format!("| {} | {} |", cells.join(" | "), shares.join(" | ")));
        }
        more(out, count);
        out.push('\n');
    }
    causes(out, against);
}

fn points(count: u64) -> String {
    counted(count, "point", "points")
}

fn more(out: &mut String, count: usize) {
    if count > MOST {
        line(out, &format!("\nand {} more", count - MOST));
    }
}

/// The causes that more points have than before, by direction: both may have the same cause.
fn causes(out: &mut String, against: &Comparison) {
    let mut grown: Vec<(&str, &ComparedCause)> = Vec::new();
    for (direction, side) in [("base to opt", &against.forward), ("opt to base", &against.backward)]
    {
        let causes = side.causes.iter().flatten();
        let causes = causes.filter(|cause| cause.points.new > cause.points.old);
        grown.extend(causes.map(|cause| (direction, cause)));
    }
    grown.sort_by_key(|(_, cause)| cause.points.old.wrapping_sub(cause.points.new) as i64);
    for (direction, cause) in grown.iter().take(MOST) {
        let ComparedCause { reason, pass, points: Change { old, new } } = cause;
        let cause = format!("{}: {}", blamed(pass), reason.replace('_', " "));
        line(out, &format!("- {}, {direction}: {old} to {new}", code_span(&cause)));
    }
    if !grown.is_empty() {
        more(out, grown.len());
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_code_span() {
        assert_eq!(code_span("main"), "`main`");
        assert_eq!(code_span("a`b"), "``a`b``");
        assert_eq!(code_span("`"), "`` ` ``");
        assert_eq!(code_span("a|b\n# c"), "`a|b # c`");
        assert_eq!(code_cell("a|b"), "`a\\|b`");
        assert_eq!(code_span(""), "` `", "two backticks alone are no code span");
        let block = "`````text\na\n````\n`````\n\nand 1 more line\n";
        assert_eq!(code_block("a\n````\nb\n", 2), block);
    }

    #[test]
    fn a_difference_that_rounds_to_nothing_is_not_told() {
        let told = |old, new| difference(Change { old: Some(old), new: Some(new) });
        assert_eq!(told(99.0, 98.5), " (-0.5)");
        assert_eq!(told(98.0, 98.04), "");
        assert_eq!(told(98.0, 100.0), " (+2.0)");
        assert_eq!(difference(Change { old: None, new: Some(1.0) }), "");
    }
}
