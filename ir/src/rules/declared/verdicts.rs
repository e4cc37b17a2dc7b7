//! The file of verdicts: the answers of the solvers about each rule of a table.
//!
//! ```text
//! osier-verdicts 1
//! proved 6f0a44e0a9f3c2d1 rule untag(x: i64): ushr.i64(shl.i64(x, 8), 8) => and.i64(x, ...)
//! refuted 01fe5d3c2b1a0987 rule wrong(x: i64): sub.i64(x, 1) => x ; x = 0x0
//! ```
//!
//! The digest of a line covers the verdict and the claim. It reveals that a line was edited; it
//! keeps nobody from writing another one.

use super::trial::difference;
use super::{DeclaredRule, RuleError, RuleFault};
use std::collections::BTreeMap;
use std::fmt;

/// The first line of a file of verdicts.
const HEADER: &str = "osier-verdicts 1";

/// The verdict of the solvers on a rule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RuleVerdict {
    /// The rule holds for all values.
    Proved,
    /// The rule does not hold for some values.
    Refuted,
    /// The solvers have not decided.
    Undecided,
}

impl RuleVerdict {
    const ALL: [RuleVerdict; 3] =
        [RuleVerdict::Proved, RuleVerdict::Refuted, RuleVerdict::Undecided];

    /// The word in the file.
    pub const fn name(self) -> &'static str {
        match self {
            RuleVerdict::Proved => "proved",
            RuleVerdict::Refuted => "refuted",
            RuleVerdict::Undecided => "undecided",
        }
    }
}

impl fmt::Display for RuleVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The first line of a file of verdicts, which the lines of the rules follow.
pub const fn verdict_header() -> &'static str {
    HEADER
}

/// The line of a verdict. `remark`, such as a counterexample, is for people.
pub fn verdict_line(rule: &DeclaredRule, verdict: RuleVerdict, remark: &str) -> String {
    let digest = digest(verdict, rule.text());
    let remark = remark.replace(char::is_control, " ");
    let behind = if remark.is_empty() { String::new() } else { format!(" ; {remark}") };
    format!("{verdict} {digest:016x} {}{behind}", rule.text())
}

/// A digest that is equal in every build (FNV-1a).
fn digest(verdict: RuleVerdict, claim: &str) -> u64 {
    let bytes = verdict.name().bytes().chain([b' ']).chain(claim.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The verdicts of a file: by name of the rule, the claim and its verdict.
pub(super) struct KnownVerdicts(BTreeMap<String, (String, RuleVerdict)>);

/// Reads a file of verdicts.
pub(super) fn read(text: &str) -> Result<KnownVerdicts, RuleError> {
    let mut known = BTreeMap::new();
    let mut lines = text.lines().zip(1u32..);
    let error = |line, name: &str, reason: &str| {
        let fault = RuleFault::Verdicts(reason.to_owned());
        Err(RuleError { line, name: name.to_owned(), fault })
    };
    // Axioms alone need no verdicts.
    if text.trim().is_empty() {
        return Ok(KnownVerdicts(known));
    }
    if lines.next().is_none_or(|(first, _)| first.trim_end() != HEADER) {
        return error(1, "", &format!("the first line is not `{HEADER}`"));
    }
    for (line, number) in lines {
        let line = line.split(" ; ").next().unwrap_or_default().trim_end();
        if line.is_empty() {
            continue;
        }
        let mut parts = line.splitn(3, ' ');
        let verdict =
            parts.next().and_then(|w| RuleVerdict::ALL.into_iter().find(|v| v.name() == w));
        let found = parts.next().and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let (Some(verdict), Some(found), Some(claim)) = (verdict, found, parts.next()) else {
            return error(number, "", "a line is a verdict, a digest and a rule");
        };
        let name = claim.split_once(' ').and_then(|(_, rest)| rest.split_once('(')).map(|c| c.0);
        let Some(name) = name else { return error(number, "", "a claim has no name") };
        if found != digest(verdict, claim) {
            return error(number, name, "the line was edited: its digest differs");
        }
        if known.insert(name.to_owned(), (claim.to_owned(), verdict)).is_some() {
            return error(number, name, "an earlier line is about a rule of this name");
        }
    }
    Ok(KnownVerdicts(known))
}

impl KnownVerdicts {
    /// Why a rule may not be applied, if so.
    pub(super) fn fault(&self, rule: &DeclaredRule) -> Option<RuleError> {
        if rule.is_axiom {
            return None;
        }
        let fault = match self.0.get(&rule.name) {
            None => RuleFault::Unproved,
            Some((claim, _)) if claim != rule.text() => RuleFault::Changed(claim.clone()),
            Some((_, RuleVerdict::Proved)) => RuleFault::False(difference(rule)?),
            Some((_, verdict)) => RuleFault::NotProved(*verdict),
        };
        Some(RuleError { line: rule.line, name: rule.name.clone(), fault })
    }
}
