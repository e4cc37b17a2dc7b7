//! The results of a campaign as Markdown, for a comment or the summary of a job.

use super::replayed::{ReplayReport, ReplayVerdict};
use super::schema::{FuzzFailure, FuzzReport};
use osier::report::{code_block, code_span};
use std::fmt::Write;

/// The most lines of a message or a test.
const LINES: usize = 60;

/// The results of a campaign as Markdown: a table of figures, and what was found. Texts from
/// programs stand in code, so they cannot form links or mention anybody.
pub fn markdown(report: &FuzzReport, floors: bool) -> String {
    let found = match report.failures.len() {
        0 => "no findings".to_owned(),
        1 => "1 program with findings".to_owned(),
        many => format!("{many} programs with findings"),
    };
    let mut out = format!("### Osier fuzz: {found}\n\n");
    let mut line = |text: String| writeln!(out, "{text}").expect("writing to a string");
    line(format!("| programs | {} |\n|---|--:|", report.all.programs));
    line(format!("| transitions compared | {} |", report.transitions));
    line(format!("| seconds | {:.0} |", report.seconds));
    for (oracle, programs) in &report.oracles {
        if let Some(programs) = programs.filter(|programs| *programs > 0) {
            line(format!(
                "| programs in which the oracle {} found something | {programs} |",
                code_span(oracle)
            ));
        }
    }
    line(String::new());
    if report.interrupted {
        line("The campaign was interrupted.\n".to_owned());
    }
    for command in &report.late {
        line(format!("- took longer than `--case-time`: {}", code_span(command)));
    }
    for below in report.below_floors.iter().filter(|_| floors) {
        line(format!("- {}", code_span(below)));
    }
    report.failures.iter().for_each(|failure| line(finding(failure)));
    out
}

/// A finding that a reader opens.
fn finding(failure: &FuzzFailure) -> String {
    let FuzzFailure { key, message, reproduce, guilty, test, .. } = failure;
    // A key consists of letters, digits, `-` and `_`.
    let mut out = format!("<details><summary><code>{key}</code></summary>\n\n");
    out += &code_block(message, LINES);
    if let Some(guilty) = guilty {
        out += &format!("\nFound no more without {}.\n", code_span(guilty));
    }
    out += &format!("\nReproduce: {}\n", code_span(reproduce));
    if let Some(test) = test {
        out += &format!("\nAs a test:\n\n{}", code_block(test, LINES));
    }
    out + "\n</details>\n"
}

/// Findings that were judged again, as Markdown.
pub fn replay_markdown(report: &ReplayReport) -> String {
    let (Ok(summary) | Err(summary)) = report.summary();
    let mut out = format!("### Osier fuzz: {summary}\n\n| finding | verdict |\n|---|---|\n");
    for finding in &report.findings {
        let verdict = match finding.verdict {
            ReplayVerdict::Passes => finding.verdict.words().to_owned(),
            failing => format!("**{}**", failing.words()),
        };
        writeln!(out, "| {} | {verdict} |", code_span(&finding.key)).expect("writing to a string");
    }
    out
}
