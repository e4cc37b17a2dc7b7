//! The results of a campaign in the JUnit format, which services for continuous integration read.
//!
//! Each oracle that judged something is a test case, and so is each finding, under the name of its
//! key. A program that takes too long is an error, and a figure below its floor a failure.

use super::replayed::{ReplayReport, ReplayVerdict};
use super::schema::FuzzReport;
use std::fmt::Write;

/// The outcome of a test case, but for success: the element, its message and its text.
struct JUnitProblem<'a> {
    element: &'static str,
    message: &'a str,
    text: String,
}

/// A test suite that is written.
#[derive(Default)]
struct JUnitSuite {
    cases: String,
    tests: u64,
    failures: u64,
    errors: u64,
}

impl JUnitSuite {
    fn add(&mut self, class: &str, name: &str, problem: Option<JUnitProblem<'_>>) {
        self.tests += 1;
        let out = &mut self.cases;
        let [class, name] = [class, name].map(escaped);
        let head = format!("  <testcase classname=\"osier.fuzz.{class}\" name=\"{name}\"");
        let written = match problem {
            None => writeln!(out, "{head}/>"),
            Some(JUnitProblem { element, message, text }) => {
                let is_error = element == "error";
                self.errors += u64::from(is_error);
                self.failures += u64::from(!is_error);
                let [message, text] = [message, &text].map(escaped);
                writeln!(
                    out,
                    "{head}>\n    <{element} message=\"{message}\">{text}</{element}>\n  </testcase>"
                )
            }
        };
        written.expect("writing to a string");
    }

    fn document(&self, seconds: Option<f64>) -> String {
        let JUnitSuite { cases, tests, failures, errors } = self;
        let time = seconds.map(|s| format!(" time=\"{s:.3}\"")).unwrap_or_default();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"osier fuzz\" \
             tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"{time}>\n{cases}\
             </testsuite>\n"
        )
    }
}

/// A text as content or attribute of an element. XML 1.0 has no form for most control characters.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

fn first_line(text: &str) -> &str {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim()
}

/// The results of a campaign as a document in the JUnit format. `floors` says whether figures below
/// their floors are failures.
pub fn junit(report: &FuzzReport, floors: bool) -> String {
    let mut suite = JUnitSuite::default();
    for (oracle, programs) in &report.oracles {
        if *programs == Some(0) {
            suite.add("oracles", oracle, None);
        }
    }
    for failure in &report.failures {
        let mut text = format!("{}\n\nreproduce: {}\n", failure.message, failure.reproduce);
        if let Some(guilty) = &failure.guilty {
            text += &format!("found no more without {guilty}\n");
        }
        if let Some(test) = &failure.test {
            text += &format!("as a test:\n{test}");
        }
        let message = first_line(failure.message.split_once('\n').map_or("", |(_, rest)| rest));
        let problem = JUnitProblem { element: "failure", message, text };
        suite.add(failure.oracle, &failure.key, Some(problem));
    }
    for command in &report.late {
        let message = "took longer than --case-time";
        suite.add(
            "late",
            command,
            Some(JUnitProblem { element: "error", message, text: command.clone() }),
        );
    }
    for below in report.below_floors.iter().filter(|_| floors) {
        let problem = JUnitProblem { element: "failure", message: below, text: below.clone() };
        suite.add("floors", below, Some(problem));
    }
    suite.document(Some(report.seconds))
}

/// Findings that were judged again, as a document in the JUnit format.
pub fn replay_junit(report: &ReplayReport) -> String {
    let mut suite = JUnitSuite::default();
    for finding in &report.findings {
        let element = match finding.verdict {
            ReplayVerdict::Passes => None,
            ReplayVerdict::NotJudged => Some("error"),
            ReplayVerdict::Fails | ReplayVerdict::FailsOtherwise => Some("failure"),
        };
        let text = format!("{}\n{}", finding.file, finding.message);
        let message = finding.verdict.words();
        let problem = element.map(|element| JUnitProblem { element, message, text });
        suite.add("replay", &finding.key, problem);
    }
    suite.document(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replayed::ReplayedFinding;

    #[test]
    fn what_is_found_cannot_leave_its_element() {
        assert_eq!(
            escaped("a<b> & \"c\"\u{1b}[0m\n"),
            "a&lt;b&gt; &amp; &quot;c&quot;\u{fffd}[0m\n"
        );
    }

    #[test]
    fn findings_judged_again_are_test_cases() {
        let finding = |key: &str, verdict, message: &str| ReplayedFinding {
            key: key.to_owned(),
            file: format!("f/{key}.json"),
            verdict,
            message: message.to_owned(),
        };
        let report = ReplayReport {
            schema: 1,
            findings: vec![
                finding("one", ReplayVerdict::Passes, ""),
                finding("two", ReplayVerdict::Fails, "a < b"),
                finding("three", ReplayVerdict::NotJudged, "slow"),
            ],
        };
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="osier fuzz" tests="3" failures="1" errors="1">
  <testcase classname="osier.fuzz.replay" name="one"/>
  <testcase classname="osier.fuzz.replay" name="two">
    <failure message="still fails">f/two.json
a &lt; b</failure>
  </testcase>
  <testcase classname="osier.fuzz.replay" name="three">
    <error message="not judged">f/three.json
slow</error>
  </testcase>
</testsuite>
"#;
        assert_eq!(replay_junit(&report), expected);
        assert_eq!(
            report.summary(),
            Err("3 findings judged again: 1 still fails, 1 not judged".to_owned())
        );
    }
}
