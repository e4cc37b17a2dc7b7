//! The results of a campaign in the JUnit format, which services for continuous integration read.
//!
//! Services compare test cases of two runs by their names, so the names do not depend on figures,
//! seeds or times. Test cases are: the end of the campaign (an error if it ended early or judged
//! nothing), its programs that took too long, its floors, each oracle that judged something, and
//! each key of a finding.

use super::replayed::{ReplayReport, ReplayVerdict, ReplayedFinding};
use super::schema::{FuzzFailure, FuzzReport};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The outcome of a test case, but for success: the element, its message and its text.
struct JUnitProblem<'a> {
    element: &'static str,
    message: &'a str,
    text: String,
}

fn failure(message: &str, text: String) -> JUnitProblem<'_> {
    JUnitProblem { element: "failure", message, text }
}

fn error(message: &str, text: String) -> JUnitProblem<'_> {
    JUnitProblem { element: "error", message, text }
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
    suite.add("campaign", "end", end(report, floors));
    suite.add("campaign", "case_time", late(report));
    if floors {
        let text = report.below_floors.join("\n");
        let problem = (!text.is_empty()).then(|| failure("figures are below their floors", text));
        suite.add("campaign", "floors", problem);
    }
    for (oracle, programs) in &report.oracles {
        let Some(programs) = *programs else { continue };
        let keys = report.failures.iter().filter(|one| one.oracle == *oracle).map(|one| &*one.key);
        let keys = keys.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("\n");
        let message = format!("found something in {}", counted(programs));
        suite.add("oracles", oracle, (programs > 0).then(|| failure(&message, keys)));
    }
    let mut findings: BTreeMap<_, Vec<&FuzzFailure>> = BTreeMap::new();
    for failure in &report.failures {
        findings.entry((failure.oracle, &*failure.key)).or_default().push(failure);
    }
    for ((oracle, key), failures) in findings {
        let message = failures[0].message.split_once('\n').map_or("", |(_, rest)| rest);
        let text = failures.iter().map(|one| described(one)).collect::<Vec<_>>().join("\n");
        suite.add(oracle, key, Some(failure(first_line(message), text)));
    }
    suite.document(Some(report.seconds))
}

/// Why the figures are no verdict about all programs that the campaign was to judge.
fn end(report: &FuzzReport, floors: bool) -> Option<JUnitProblem<'static>> {
    let text = report.broken.clone().unwrap_or_default();
    match (report.early_end(), report.verdict(floors)) {
        (Some(message), _) => Some(error(message, text)),
        (None, Err(text)) if report.all.programs == 0 => Some(error("no program was judged", text)),
        (None, _) => None,
    }
}

/// The programs that took too long.
fn late(report: &FuzzReport) -> Option<JUnitProblem<'static>> {
    let text = report.late.join("\n");
    (!text.is_empty()).then(|| error("programs took longer than --case-time", text))
}

/// A failure as the text of its test case.
fn described(failure: &FuzzFailure) -> String {
    let mut text = format!("{}\n\nreproduce: {}\n", failure.message, failure.reproduce);
    if let Some(guilty) = &failure.guilty {
        text += &format!("found no more without {guilty}\n");
    }
    if failure.reproduced == Some(false) {
        text += "a second judgment of this program found nothing\n";
    }
    if let Some(test) = &failure.test {
        text += &format!("as a test:\n{test}");
    }
    text
}

fn counted(programs: u64) -> String {
    format!("{programs} program{}", if programs == 1 { "" } else { "s" })
}

/// Findings that were judged again, as a document in the JUnit format. Records with equal keys, of
/// several folders, are one test case, which passes if all pass.
pub fn replay_junit(report: &ReplayReport) -> String {
    let mut suite = JUnitSuite::default();
    let mut keys: BTreeMap<&str, Vec<&ReplayedFinding>> = BTreeMap::new();
    for finding in &report.findings {
        keys.entry(&finding.key).or_default().push(finding);
    }
    for (key, findings) in keys {
        let bad = findings.iter().filter(|one| one.verdict != ReplayVerdict::Passes);
        let text = |one: &&ReplayedFinding| format!("{}\n{}", one.file, one.message);
        let text = bad.clone().map(text).collect::<Vec<_>>().join("\n");
        let is_judged = |one: &&&ReplayedFinding| one.verdict != ReplayVerdict::NotJudged;
        // A finding that fails tells more than one that nobody judged.
        let worst = bad.clone().find(is_judged).or_else(|| bad.clone().next());
        let problem = worst.map(|worst| match worst.verdict {
            ReplayVerdict::NotJudged => error(worst.verdict.words(), text),
            _ => failure(worst.verdict.words(), text),
        });
        suite.add("replay", key, problem);
    }
    suite.document(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::tests::{failing, report};

    /// Whether a document has a test case with this name, and the element within.
    fn case(document: &str, class: &str, name: &str) -> Option<String> {
        let head = format!("<testcase classname=\"osier.fuzz.{class}\" name=\"{name}\"");
        let (before, rest) = document.split_once(&head)?;
        assert!(!before.contains(&head) && !rest.contains(&head), "{head} twice: {document}");
        let inside = rest.strip_prefix(">\n    <").map_or("", |rest| rest);
        Some(inside.split_once("message=\"").map_or("", |(start, _)| start).trim().to_owned())
    }

    #[test]
    fn a_campaign_that_judged_nothing_passes_no_test_case() {
        let nothing = junit(&report(0), false);
        assert_eq!(case(&nothing, "campaign", "end").as_deref(), Some("error"), "{nothing}");
        assert!(nothing.contains("tests=\"2\" failures=\"0\" errors=\"1\""), "{nothing}");
        let some = junit(&report(3), false);
        assert_eq!(case(&some, "campaign", "end").as_deref(), Some(""), "{some}");
        assert_eq!(case(&some, "oracles", "panic").as_deref(), Some(""), "{some}");
    }

    #[test]
    fn a_campaign_that_ends_early_is_an_error() {
        let interrupted = FuzzReport { interrupted: true, ..report(3) };
        let broken = FuzzReport { broken: Some("no <memory>".to_owned()), ..report(3) };
        for (report, message) in [(interrupted, "interrupted"), (broken, "ended by an error")] {
            let document = junit(&report, false);
            assert_eq!(case(&document, "campaign", "end").as_deref(), Some("error"));
            assert!(document.contains(&format!("message=\"{message}\"")), "{document}");
        }
    }

    #[test]
    fn findings_with_one_key_are_one_test_case_and_fail_their_oracle() {
        let document = junit(&failing(&["state-any-1", "state-any-2", "state-any-1"]), false);
        for key in ["state-any-1", "state-any-2"] {
            assert_eq!(case(&document, "state", key).as_deref(), Some("failure"), "{document}");
        }
        assert_eq!(case(&document, "oracles", "state").as_deref(), Some("failure"));
        assert_eq!(case(&document, "oracles", "ssa").as_deref(), Some(""));
        assert!(document.contains("found something in 3 programs"), "{document}");
    }

    #[test]
    fn names_of_test_cases_have_no_figures() {
        let below = vec!["hops 3.1 is below 4".to_owned()];
        let late = vec!["osier fuzz --seed 7".to_owned()];
        let document = junit(&FuzzReport { below_floors: below, late, ..report(3) }, true);
        assert_eq!(case(&document, "campaign", "floors").as_deref(), Some("failure"));
        assert_eq!(case(&document, "campaign", "case_time").as_deref(), Some("error"));
    }

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
                finding("two", ReplayVerdict::NotJudged, "slow"),
            ],
        };
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="osier fuzz" tests="3" failures="1" errors="1">
  <testcase classname="osier.fuzz.replay" name="one"/>
  <testcase classname="osier.fuzz.replay" name="three">
    <error message="not judged">f/three.json
slow</error>
  </testcase>
  <testcase classname="osier.fuzz.replay" name="two">
    <failure message="still fails">f/two.json
a &lt; b
f/two.json
slow</failure>
  </testcase>
</testsuite>
"#;
        assert_eq!(replay_junit(&report), expected);
        assert_eq!(
            report.summary(),
            Err("4 findings judged again: 1 still fails, 2 not judged".to_owned())
        );
    }
}
