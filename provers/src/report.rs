//! The results of the proofs, as text and as JSON.

use crate::proofs;
use osier_provers::{Claim, ClaimSubject, Solver, SolverVerdict};
use serde_json::json;
use std::io::{self, Write};

/// The verdict of a solver, with the time it took.
pub(crate) struct SolverAnswer {
    pub(crate) verdict: SolverVerdict,
    pub(crate) seconds: f64,
}

/// A claim with the answers of the solvers, in their order.
pub(crate) struct ClaimRow<'c> {
    pub(crate) claim: &'c Claim,
    pub(crate) answers: Vec<SolverAnswer>,
}

/// All claims, solvers and answers.
pub(crate) struct ProofReport<'c> {
    pub(crate) solvers: Vec<Solver>,
    pub(crate) rows: Vec<ClaimRow<'c>>,
    /// The number of solvers that must prove a claim.
    pub(crate) least: usize,
    /// The total time in seconds.
    pub(crate) seconds: f64,
}

const SUBJECTS: [ClaimSubject; 5] = [
    ClaimSubject::Rule,
    ClaimSubject::Masks,
    ClaimSubject::Commutativity,
    ClaimSubject::Division,
    ClaimSubject::Folding,
];

impl ClaimRow<'_> {
    fn title(&self) -> String {
        format!("{} {} ({})", self.claim.subject, self.claim.name, self.claim.types)
    }

    fn refuted(&self) -> bool {
        self.answers.iter().any(|a| matches!(a.verdict, SolverVerdict::Refuted(_)))
    }

    /// Whether enough solvers proved the claim, and none refuted it.
    fn is_good(&self, least: usize) -> bool {
        !self.refuted() && proofs(&self.answers) >= least
    }
}

impl ProofReport<'_> {
    /// Whether every claim is proved by enough solvers.
    pub(crate) fn is_good(&self) -> bool {
        self.rows.iter().all(|r| r.is_good(self.least))
    }

    /// Prints one line for each rule and operation, or for each claim; then the failures; then the
    /// figures.
    pub(crate) fn print(&self, out: &mut impl Write, all: bool) -> io::Result<()> {
        for solver in &self.solvers {
            writeln!(out, "{:5} {}", solver.name, solver.version)?;
        }
        write!(out, "\n{:14} {:22} {:>6}", "claim", "", "types")?;
        for solver in &self.solvers {
            write!(out, " {:>7} {:>7}", solver.name, "ms")?;
        }
        writeln!(out)?;
        let mut rest = self.rows.as_slice();
        while let [first, ..] = rest {
            let same = |r: &&ClaimRow<'_>| {
                r.claim.name == first.claim.name && r.claim.subject == first.claim.subject
            };
            let count = if all { 1 } else { rest.iter().take_while(same).count() };
            let (group, after) = rest.split_at(count);
            self.print_group(out, group, all)?;
            rest = after;
        }
        self.print_findings(out)?;
        self.print_figures(out)
    }

    /// One line: the number of choices of types that each solver proved, and its slowest time.
    fn print_group(
        &self,
        out: &mut impl Write,
        group: &[ClaimRow<'_>],
        all: bool,
    ) -> io::Result<()> {
        let claim = group[0].claim;
        write!(out, "{:14} {:22} {:>6}", claim.subject.to_string(), claim.name, group.len())?;
        for index in 0..self.solvers.len() {
            let answers = || group.iter().map(|r| &r.answers[index]);
            let proved = answers().filter(|a| a.verdict == SolverVerdict::Proved).count();
            let slowest = answers().map(|a| a.seconds).fold(0.0, f64::max);
            write!(out, " {proved:>7} {:>7.0}", slowest * 1000.0)?;
        }
        writeln!(out, "{}", if all { format!("  {}", claim.types) } else { String::new() })
    }

    /// Prints every claim that some solver did not prove.
    fn print_findings(&self, out: &mut impl Write) -> io::Result<()> {
        for row in &self.rows {
            if proofs(&row.answers) == self.solvers.len() {
                continue;
            }
            let word = if row.is_good(self.least) { "note" } else { "WRONG" };
            writeln!(out, "\n{word}: {}", row.title())?;
            for (solver, answer) in self.solvers.iter().zip(&row.answers) {
                writeln!(
                    out,
                    "    {:5} {} ({:.1} s)",
                    solver.name, answer.verdict, answer.seconds
                )?;
            }
        }
        Ok(())
    }

    fn print_figures(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "\n{:14} {:>7}", "", "claims")?;
        for count in (1..=self.solvers.len()).rev() {
            write!(out, " {:>12}", format!("by {count}"))?;
        }
        writeln!(out, " {:>8} {:>10} {:>10}", "refuted", "undecided", "constants")?;
        for subject in SUBJECTS {
            let rows: Vec<&ClaimRow<'_>> =
                self.rows.iter().filter(|r| r.claim.subject == subject).collect();
            write!(out, "{:14} {:>7}", subject.to_string(), rows.len())?;
            for count in (1..=self.solvers.len()).rev() {
                let proved =
                    rows.iter().filter(|r| !r.refuted() && proofs(&r.answers) == count).count();
                write!(out, " {proved:>12}")?;
            }
            let refuted = rows.iter().filter(|r| r.refuted()).count();
            let undecided = rows.iter().filter(|r| !r.refuted() && proofs(&r.answers) == 0).count();
            let constants: usize =
                rows.iter().filter(|r| r.claim.size() > 1).map(|r| r.claim.size()).sum();
            writeln!(out, " {refuted:>8} {undecided:>10} {constants:>10}")?;
        }
        let bad = self.rows.iter().filter(|r| !r.is_good(self.least)).count();
        let verdict = if bad == 0 { "all proved".to_owned() } else { format!("{bad} NOT PROVED") };
        writeln!(out, "\n{verdict}: {} claims, {:.0} seconds", self.rows.len(), self.seconds)
    }

    /// Every verdict as JSON.
    pub(crate) fn json(&self) -> String {
        let solver = |s: &Solver| json!({ "name": s.name, "version": s.version });
        let answer = |(s, a): (&Solver, &SolverAnswer)| {
            let (verdict, detail) = match &a.verdict {
                SolverVerdict::Proved => ("proved", None),
                SolverVerdict::Refuted(values) => ("refuted", Some(values)),
                SolverVerdict::Undecided(reason) => ("undecided", Some(reason)),
            };
            json!({ "solver": s.name, "verdict": verdict, "detail": detail, "seconds": a.seconds })
        };
        let row = |r: &ClaimRow<'_>| {
            json!({
                "subject": r.claim.subject.to_string(), "name": r.claim.name, "types": r.claim.types,
                "constants": r.claim.size(), "good": r.is_good(self.least),
                "answers": self.solvers.iter().zip(&r.answers).map(answer).collect::<Vec<_>>(),
            })
        };
        let report = json!({
            "solvers": self.solvers.iter().map(solver).collect::<Vec<_>>(),
            "least": self.least, "good": self.is_good(), "seconds": self.seconds,
            "claims": self.rows.iter().map(row).collect::<Vec<_>>(),
        });
        format!("{report:#}\n")
    }
}
