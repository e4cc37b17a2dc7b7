//! The command `rules`: proves a table of declared rules, and writes the file of verdicts.

use crate::report::SolverAnswer;
use crate::{answers, proofs};
use ir::rules::declared::{DeclaredRule, RuleTable, RuleVerdict, verdict_header, verdict_line};
use osier_provers::{Claim, Solver, SolverLimits, SolverVerdict, declared_claim};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// Proves the rules of a table. The exit status is 1 if a rule is not proved; the file of verdicts
/// says so, too.
///
/// # Errors
/// If the table cannot be read or a line of it is wrong. The file of verdicts stays as it is then.
pub(crate) fn prove_table(
    table: &Path,
    file: &Path,
    solvers: &[Solver],
    limits: SolverLimits,
    least: usize,
) -> io::Result<ExitCode> {
    let named = |path: &Path, error: io::Error| {
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    };
    let text = std::fs::read_to_string(table).map_err(|error| named(table, error))?;
    let read = RuleTable::read(&text).map_err(|errors| {
        let errors: Vec<String> =
            errors.iter().map(|error| format!("{}: {error}", table.display())).collect();
        io::Error::other(errors.join("\n"))
    })?;
    let rules: Vec<&DeclaredRule> = read.rules().iter().filter(|rule| !rule.is_axiom).collect();
    let claims: Vec<Claim> = rules.iter().map(|rule| declared_claim(rule)).collect();
    let (mut lines, mut is_good) = (vec![verdict_header().to_owned()], true);
    let mut out = io::stdout().lock();
    for (rule, answers) in rules.iter().zip(answers(solvers, &claims, limits)) {
        let (verdict, remark) = together(solvers, &answers, least);
        is_good &= verdict == RuleVerdict::Proved;
        writeln!(out, "{verdict}: {}: {remark}", rule.name)?;
        lines.push(verdict_line(rule, verdict, &remark));
    }
    for axiom in read.rules().iter().filter(|rule| rule.is_axiom) {
        writeln!(out, "axiom: {}: the embedder answers for it", axiom.name)?;
    }
    lines.push(String::new());
    replace(file, &lines.join("\n")).map_err(|error| named(file, error))?;
    Ok(ExitCode::from(u8::from(!is_good)))
}

/// The verdict of all solvers together: one refutation refutes.
fn together(solvers: &[Solver], answers: &[SolverAnswer], least: usize) -> (RuleVerdict, String) {
    let said: Vec<String> = solvers
        .iter()
        .zip(answers)
        .map(|(solver, answer)| format!("{}: {}", solver.name, answer.verdict))
        .collect();
    let is_refuted = |a: &SolverAnswer| matches!(a.verdict, SolverVerdict::Refuted(_));
    let verdict = match answers.iter().any(is_refuted) {
        true => RuleVerdict::Refuted,
        false if proofs(answers) >= least => RuleVerdict::Proved,
        false => RuleVerdict::Undecided,
    };
    (verdict, said.join(", "))
}

/// Replaces a file as a whole.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let mut beside: OsString = file.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, file)
}
