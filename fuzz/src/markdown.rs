//! The results of a campaign as Markdown, for a comment or the summary of a job.

use super::replayed::{ReplayReport, ReplayVerdict};
use super::schema::{FuzzFailure, FuzzReport};
use osier::report::{code_block, code_cell, code_span};
use std::fmt::Write;

/// The most lines of a message or a test.
const LINES: usize = 60;

/// The results of a campaign as Markdown: a table of figures, and what was found. Texts from
/// programs stand in code, so they cannot form links or mention anybody.
pub fn markdown(report: &FuzzReport, floors: bool) -> String {
    let found = report.verdict(floors).err().unwrap_or_else(|| "no findings".to_owned());
    let early = report.early_end().map(|words| format!(", {words}")).unwrap_or_default();
    let mut out = format!("### Osier fuzz: {found}{early}\n\n");
    let mut line = |text: String| writeln!(out, "{text}").expect("writing to a string");
    line(format!("| programs | {} |\n|---|--:|", report.all.programs));
    line(format!("| transitions compared | {} |", report.transitions));
    line(format!("| seconds | {:.0} |", report.seconds));
    for (oracle, programs) in &report.oracles {
        if let Some(programs) = programs.filter(|programs| *programs > 0) {
            line(format!(
                "| programs in which the oracle {} found something | {programs} |",
                code_cell(oracle)
            ));
        }
    }
    line(String::new());
    if let Some(error) = &report.broken {
        line(code_block(error, LINES));
    }
    for command in &report.unfinished {
        line(format!("- unfinished: {}", code_span(command)));
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
    let FuzzFailure { key, message, reproduce, reproduced, guilty, test, .. } = failure;
    // A key consists of letters, digits, `-` and `_`.
    let mut out = format!("<details><summary><code>{key}</code></summary>\n\n");
    out += &code_block(message, LINES);
    if let Some(guilty) = guilty {
        out += &format!("\nFound no more without {}.\n", code_span(guilty));
    }
    if *reproduced == Some(false) {
        out += "\nA second judgment of this program found nothing.\n";
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
        writeln!(out, "| {} | {verdict} |", code_cell(&finding.key)).expect("writing to a string");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::tests::{failing, report};

    fn heading(report: &FuzzReport, floors: bool) -> String {
        let text = markdown(report, floors);
        let line = text.lines().next().and_then(|line| line.strip_prefix("### Osier fuzz: "));
        line.expect("a heading").to_owned()
    }

    #[test]
    fn the_heading_is_the_verdict() {
        assert_eq!(heading(&report(1), true), "no findings");
        assert_eq!(heading(&report(0), false), "no program was judged");
        let below = FuzzReport { below_floors: vec!["hops 3 < 4".to_owned()], ..report(1) };
        assert_eq!(heading(&below, true), "hops 3 < 4");
        assert_eq!(heading(&below, false), "no findings");
        let broken = FuzzReport { broken: Some("no memory".to_owned()), ..failing(&["a", "b"]) };
        assert_eq!(heading(&broken, false), "2 programs with findings, ended by an error");
        assert!(markdown(&broken, false).contains("```text\nno memory\n```\n"));
        let interrupted = FuzzReport { interrupted: true, ..report(1) };
        assert_eq!(heading(&interrupted, false), "no findings, interrupted");
    }

    /// A backslash in front of the bar would be part of the command.
    #[test]
    fn a_command_with_a_bar_is_as_it_is() {
        let text = markdown(&failing(&["a"]), false);
        let command = "Reproduce: `osier fuzz --seed 3 --pipeline 'licm|x'`\n";
        assert!(text.contains(command), "{text}");
    }
}
