//! Proves every claim with every solver of the machine, and prints the results. The command `rules`
//! does so for the rules of an embedder.
//!
//! The exit status is 0 if enough solvers prove every claim; 1 if a claim is refuted or lacks
//! proofs; 2 if fewer solvers than `--least` are installed, or on any other error.

mod report;
mod rules;

use clap::{Parser, Subcommand};
use osier_provers::{Claim, Solver, SolverLimits, SolverVerdict, claims, known, prove, solvers};
use report::{ClaimRow, ProofReport, SolverAnswer};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// Proves the rewrite rules, the masks behind them, commutativity and constant folding by SMT
/// solvers.
#[derive(Parser, Debug)]
#[command(name = "osier-provers")]
struct ProverArguments {
    #[command(subcommand)]
    command: Option<ProverCommand>,
    /// Use only this solver; may be given several times
    #[arg(long = "solver", value_name = "NAME", global = true)]
    solvers: Vec<String>,
    /// How many solvers must prove a claim
    #[arg(long, global = true, value_name = "COUNT", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..))]
    least: u8,
    /// Only claims with this in their name
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Time for one query
    #[arg(long, global = true, default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Memory for one query, in MiB
    #[arg(long, global = true, default_value_t = 1024)]
    #[arg(value_parser = clap::value_parser!(u32).range(64..=1_000_000))]
    megabytes: u32,
    /// Decides the random constants
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Random constants for each operation, besides the special ones
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    random: u32,
    /// Print every choice of types, not one line for each rule
    #[arg(long)]
    all: bool,
    /// Also write every verdict to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
enum ProverCommand {
    /// Proves the rules of an embedder's table, and writes the verdicts that the engine verifies
    Rules {
        /// The table of rules
        table: PathBuf,
        /// The file to write the verdicts to
        #[arg(long, value_name = "FILE")]
        verdicts: PathBuf,
    },
}

fn main() -> ExitCode {
    let arguments = ProverArguments::parse();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(2),
        Err(error) => {
            let _ = writeln!(io::stderr(), "osier-provers: error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &ProverArguments) -> io::Result<ExitCode> {
    let found = chosen(&arguments.solvers)?;
    if found.len() < usize::from(arguments.least) {
        return nothing_to_prove_with(arguments, &found);
    }
    let limits = SolverLimits { seconds: arguments.seconds, megabytes: arguments.megabytes };
    if let Some(ProverCommand::Rules { table, verdicts }) = &arguments.command {
        let least = usize::from(arguments.least);
        return rules::prove_table(table, verdicts, &found, limits, least);
    }
    let mut claims = claims(arguments.seed, arguments.random as usize);
    claims.retain(|c| c.name.contains(&arguments.only));
    if claims.is_empty() {
        return Err(io::Error::other(format!("no claim has `{}` in its name", arguments.only)));
    }
    let begun = Instant::now();
    let answers = answers(&found, &claims, limits);
    let rows =
        claims.iter().zip(answers).map(|(claim, answers)| ClaimRow { claim, answers }).collect();
    let report = ProofReport {
        solvers: found,
        rows,
        least: usize::from(arguments.least),
        seconds: begun.elapsed().as_secs_f64(),
    };
    report.print(&mut io::stdout().lock(), arguments.all)?;
    if let Some(path) = &arguments.json {
        std::fs::write(path, report.json())?;
    }
    Ok(ExitCode::from(u8::from(!report.is_good())))
}

/// The installed solvers of these names, or all.
fn chosen(names: &[String]) -> io::Result<Vec<Solver>> {
    if let Some(unknown) = names.iter().find(|n| !known().contains(&n.as_str())) {
        return Err(io::Error::other(format!(
            "unknown solver `{unknown}`; solvers: {}",
            known().join(", ")
        )));
    }
    Ok(solvers()
        .into_iter()
        .filter(|s| names.is_empty() || names.iter().any(|n| n == s.name))
        .collect())
}

fn nothing_to_prove_with(arguments: &ProverArguments, found: &[Solver]) -> io::Result<ExitCode> {
    let line = "=".repeat(78);
    let names: Vec<&str> = found.iter().map(|s| s.name).collect();
    let found = if names.is_empty() {
        "none was found".to_owned()
    } else {
        format!("found only {}", names.join(", "))
    };
    let mut out = io::stderr().lock();
    writeln!(
        out,
        "{line}\nNOTHING WAS PROVED: {} of the solvers {} are needed, {found}.",
        arguments.least,
        known().join(", ")
    )?;
    writeln!(out, "On Debian, provers/install installs them.\n{line}")?;
    Ok(ExitCode::from(2))
}

/// The answers of all solvers on all claims: by claim, then by solver. Threads share one list of
/// questions.
fn answers(solvers: &[Solver], claims: &[Claim], limits: SolverLimits) -> Vec<Vec<SolverAnswer>> {
    let count = claims.len() * solvers.len();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let question = next.fetch_add(1, Ordering::Relaxed);
            if question >= count {
                return done;
            }
            let begun = Instant::now();
            let verdict = prove(
                &solvers[question % solvers.len()],
                &claims[question / solvers.len()],
                limits,
            );
            done.push((question, SolverAnswer { verdict, seconds: begun.elapsed().as_secs_f64() }));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<(usize, SolverAnswer)> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running
            .into_iter()
            .flat_map(|t| t.join().expect("asking a solver does not panic"))
            .collect()
    });
    all.sort_by_key(|(question, _)| *question);
    let mut all = all.into_iter().map(|(_, answer)| answer);
    claims.iter().map(|_| all.by_ref().take(solvers.len()).collect()).collect()
}

/// The number of solvers that proved a claim.
fn proofs(answers: &[SolverAnswer]) -> usize {
    answers.iter().filter(|a| a.verdict == SolverVerdict::Proved).count()
}
