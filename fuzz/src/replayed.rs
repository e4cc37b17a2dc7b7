//! The document that `osier fuzz --replay` prints.

use std::fmt;

/// The result of judging findings again.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ReplayReport {
    /// [`osier::schema::SCHEMA`].
    pub schema: u32,
    /// The findings, in the order of their files.
    pub findings: Vec<ReplayedFinding>,
}

/// A finding that was judged again.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ReplayedFinding {
    /// The key of the finding.
    pub key: String,
    /// The path of its record.
    pub file: String,
    /// The verdict.
    pub verdict: ReplayVerdict,
    /// The findings of this judgment, or the reason why there is none. Empty if it passes.
    pub message: String,
}

/// The verdict about a finding that was judged again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayVerdict {
    /// The same oracle finds something, or the process of an oracle of the interpreter dies.
    Fails,
    /// Another oracle finds something.
    FailsOtherwise,
    /// No oracle finds anything.
    Passes,
    /// There was no judgment in time, or not under these options.
    NotJudged,
}

impl ReplayVerdict {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            ReplayVerdict::Fails => "still fails",
            ReplayVerdict::FailsOtherwise => "fails otherwise",
            ReplayVerdict::Passes => "passes",
            ReplayVerdict::NotJudged => "not judged",
        }
    }
}

impl fmt::Display for ReplayReport {
    /// Prints a line for each finding.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ReplayedFinding { key, verdict, .. } in &self.findings {
            writeln!(f, "{:<16}{key}", verdict.words())?;
        }
        Ok(())
    }
}

impl ReplayReport {
    /// The number of findings, and how many of them fail or were not judged, in words.
    ///
    /// # Errors
    /// The same words, if some do not pass.
    pub fn summary(&self) -> Result<String, String> {
        let count =
            |verdict| self.findings.iter().filter(|finding| finding.verdict == verdict).count();
        let all = self.findings.len();
        let plural = if all == 1 { "" } else { "s" };
        let words = [ReplayVerdict::Fails, ReplayVerdict::FailsOtherwise, ReplayVerdict::NotJudged]
            .into_iter()
            .filter(|verdict| count(*verdict) > 0)
            .map(|verdict| format!("{} {}", count(verdict), verdict.words()))
            .collect::<Vec<_>>();
        match words.is_empty() {
            true => Ok(format!("{all} finding{plural} judged again: all pass")),
            false => Err(format!("{all} finding{plural} judged again: {}", words.join(", "))),
        }
    }
}
