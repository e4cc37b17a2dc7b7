//! Solvers as child processes.
//!
//! Every query has a separate process with limits on time and memory. A solver that exceeds them
//! ends without a proof. The process starts through `sh`, which sets the limits.

use crate::claim::Claim;
use crate::encoder::SmtTerms;
use crate::goal::SolverGoal;
use crate::meaning::SmtDefinitions;
use easy_smt::{Context, ContextBuilder, Response, SExpr};
use std::fmt;
use std::io;
use std::process::Command;

/// The limits of a query.
#[derive(Clone, Copy, Debug)]
pub struct SolverLimits {
    /// Time, in seconds.
    pub seconds: u32,
    /// Address space, in MiB.
    pub megabytes: u32,
}

impl Default for SolverLimits {
    fn default() -> SolverLimits {
        SolverLimits { seconds: 10, megabytes: 1024 }
    }
}

/// An installed solver, which has reported its version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Solver {
    /// The command.
    pub name: &'static str,
    /// The first line of its version report.
    pub version: String,
}

/// The verdict of a solver on a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SolverVerdict {
    /// It holds for all values.
    Proved,
    /// It does not hold; with a counterexample.
    Refuted(String),
    /// The solver has not decided; with the reason.
    Undecided(String),
}

impl fmt::Display for SolverVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SolverVerdict::Proved => f.write_str("proved"),
            SolverVerdict::Refuted(values) => write!(f, "refuted: {values}"),
            SolverVerdict::Undecided(reason) => write!(f, "undecided: {reason}"),
        }
    }
}

/// The arguments for reading queries from standard input, and for a limit on the time of a query in
/// milliseconds.
type ArgumentsOf = fn(u32) -> Vec<String>;

/// The supported solvers.
const KNOWN: &[(&str, ArgumentsOf)] = &[
    ("z3", |limit| vec!["-smt2".to_owned(), "-in".to_owned(), format!("-t:{limit}")]),
    ("cvc5", |limit| {
        vec!["--quiet".to_owned(), "--lang=smt2".to_owned(), format!("--tlimit-per={limit}")]
    }),
];

/// The names of the supported solvers.
pub fn known() -> Vec<&'static str> {
    KNOWN.iter().map(|(name, _)| *name).collect()
}

/// The solvers installed on this machine.
pub fn solvers() -> Vec<Solver> {
    let version = |name: &'static str| {
        let output = Command::new(name).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.lines().next().unwrap_or_default().to_owned();
        output.status.success().then_some(Solver { name, version })
    };
    known().into_iter().filter_map(version).collect()
}

impl Solver {
    fn start(&self, limits: SolverLimits) -> io::Result<Context> {
        let arguments =
            KNOWN.iter().find(|(name, _)| *name == self.name).map(|(_, arguments)| arguments);
        let arguments = arguments.expect("solvers are made by `solvers`, of the table");
        // The limit on processor time ends a solver that ignores its own limit.
        let script = r#"ulimit -v "$1" && ulimit -t "$2" && shift 2 && exec "$@""#;
        let (memory, time) = (limits.megabytes * 1024, limits.seconds + 2);
        let mut all = vec![
            "-c".to_owned(),
            script.to_owned(),
            "sh".to_owned(),
            memory.to_string(),
            time.to_string(),
        ];
        all.push(self.name.to_owned());
        all.extend(arguments(limits.seconds * 1000));
        ContextBuilder::new().solver("sh").solver_args(all).build()
    }
}

/// Lets a solver prove a claim. If communication fails, the claim is undecided.
pub fn prove(solver: &Solver, claim: &Claim, limits: SolverLimits) -> SolverVerdict {
    let verdict = denied(solver, claim, limits).and_then(|verdict| match verdict {
        SolverVerdict::Proved => holds_of_something(solver, claim, limits),
        other => Ok(other),
    });
    verdict.unwrap_or_else(|error| SolverVerdict::Undecided(format!("the solver ended: {error}")))
}

/// Requests values that satisfy the assumptions of a claim and not its conclusion.
fn denied(solver: &Solver, claim: &Claim, limits: SolverLimits) -> io::Result<SolverVerdict> {
    let mut context = solver.start(limits)?;
    context.set_logic(claim.logic())?;
    let goal = match claim.goal(&mut SmtDefinitions::new(&mut context))? {
        Ok(goal) => goal,
        Err(reason) => return Ok(SolverVerdict::Refuted(reason)),
    };
    let Some(holds) = goal.holds else {
        return Ok(SolverVerdict::Undecided("it claims nothing".to_owned()));
    };
    for given in &goal.given {
        context.assert(*given)?;
    }
    let denial = SmtTerms::new(&context).not(holds);
    context.assert(denial)?;
    Ok(match context.check()? {
        Response::Unsat => SolverVerdict::Proved,
        Response::Sat => SolverVerdict::Refuted(counterexample(&mut context, &goal)?),
        Response::Unknown => {
            SolverVerdict::Undecided("the solver gave up within its limits".to_owned())
        }
    })
}

/// Checks that some values satisfy the assumptions: a claim about no values proves nothing.
fn holds_of_something(
    solver: &Solver,
    claim: &Claim,
    limits: SolverLimits,
) -> io::Result<SolverVerdict> {
    let mut context = solver.start(limits)?;
    context.set_logic(claim.logic())?;
    let given = claim
        .goal(&mut SmtDefinitions::new(&mut context))?
        .map_or_else(|_| Vec::new(), |goal| goal.given);
    if given.is_empty() {
        return Ok(SolverVerdict::Proved);
    }
    for given in given {
        context.assert(given)?;
    }
    Ok(match context.check()? {
        Response::Sat => SolverVerdict::Proved,
        Response::Unsat => SolverVerdict::Undecided("no values satisfy the guard".to_owned()),
        Response::Unknown => {
            SolverVerdict::Undecided("it is not known whether values satisfy the guard".to_owned())
        }
    })
}

/// The values for which a claim fails.
fn counterexample(context: &mut Context, goal: &SolverGoal) -> io::Result<String> {
    let terms: Vec<SExpr> = goal.shown.iter().map(|(_, term)| *term).collect();
    let values = context.get_value(terms)?;
    let shown: Vec<(&str, String)> = goal
        .shown
        .iter()
        .map(|(n, _)| n.as_str())
        .zip(values.iter().map(|(_, v)| number(context, *v)))
        .collect();
    let mut words: Vec<String> = Vec::new();
    for (name, value) in &shown {
        let case =
            value.strip_prefix("0x").and_then(|digits| usize::from_str_radix(digits, 16).ok());
        match case.filter(|_| *name == "case").and_then(|case| goal.cases.get(case)) {
            Some(case) => words.push(case.clone()),
            None => words.push(format!("{name} = {value}")),
        }
    }
    Ok(words.join(", "))
}

/// A value that a solver printed as `#x..` or `#b..`, as `0x..`; any other text unchanged.
fn number(context: &Context, value: SExpr) -> String {
    let text = context.display(value).to_string();
    let (digits, radix) = match (text.strip_prefix("#x"), text.strip_prefix("#b")) {
        (Some(digits), _) => (digits, 16),
        (_, Some(digits)) => (digits, 2),
        _ => return text,
    };
    u64::from_str_radix(digits, radix).map_or(text.clone(), |bits| format!("{bits:#x}"))
}
