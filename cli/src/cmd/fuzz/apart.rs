//! `osier fuzz --engine jit`: judges single cases in child processes, for the reducer. The parent
//! sends the case on standard input.

use super::native::{
    CaseResult, ChildLine, POLL, again, clock, dead, death, drain, finish, lines_of,
    ran_out_of_time, was_killed, within_limits, write,
};
use crate::cmd::failure::CommandFailure;
use fuzz::{Case, FuzzFinding, World};
use ir::text::{parse_module, print_module};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::process::Stdio;
use std::sync::mpsc::RecvTimeoutError;
use verify::generate::CountingHost;

/// Processor time in seconds for one case that the reducer tries.
const REDUCE_CPU_SECONDS: u64 = 10;

/// A case as the parent sends it to a child on standard input.
#[derive(Serialize, Deserialize)]
struct Sent {
    module: String,
    entry: String,
    arguments: Vec<Vec<u64>>,
    fuel: u64,
    steps: Vec<Vec<String>>,
    rewrites: u64,
    level: String,
    seed: u64,
}

impl Sent {
    fn of(case: &Case) -> Sent {
        let names = |passes: &Vec<passes::registry::StaticPass>| {
            passes.iter().map(|p| p.name().to_owned()).collect()
        };
        Sent {
            module: print_module(&case.module).to_string(),
            entry: case.module.funcs[case.entry].name.clone(),
            arguments: case.arguments.clone(),
            fuel: case.fuel,
            steps: case.steps.iter().map(names).collect(),
            rewrites: case.rewrites,
            level: case.level.name().to_owned(),
            seed: case.seed,
        }
    }

    fn case(self, like: Case) -> Option<Case> {
        let module = parse_module(&self.module).ok()?;
        let entry = module.func_named(&self.entry)?;
        let named = |name: &String| {
            passes::registry::PASSES.iter().copied().find(|pass| pass.name() == name)
        };
        let steps = self
            .steps
            .iter()
            .map(|step| step.iter().map(named).collect())
            .collect::<Option<Vec<_>>>()?;
        let level = osr::Level::from_name(&self.level)?;
        let Sent { arguments, fuel, rewrites, seed, .. } = self;
        Some(Case {
            module,
            entry,
            arguments,
            fuel,
            world: World::Counting(CountingHost::default()),
            steps,
            rewrites,
            level,
            seed,
            ..like
        })
    }
}

/// The work of a child that judges one case of the reducer: reads the case, judges it, and writes
/// one line.
///
/// # Errors
/// If standard input does not hold a case, or as [`child`].
pub(super) fn child_of_one(like: Case) -> Result<(), CommandFailure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(CommandFailure::input)?;
    let sent: Sent = serde_json::from_str(&text).map_err(CommandFailure::input)?;
    let case = sent.case(like).ok_or_else(|| CommandFailure::input("not a case"))?;
    let judged = within_limits(REDUCE_CPU_SECONDS, || fuzz::judge_native(&case, &clock()))?;
    write(&ChildLine::Done(Box::new(CaseResult::of(judged))))
}

/// A case as a child reads it: the text form makes ids dense.
pub(super) fn as_sent(case: &Case) -> Option<Case> {
    Sent::of(case).case(case.clone())
}

/// Judges one case in a child. `None` if the child exhausts its time, if others kill it, or if it
/// is not done when `stop` returns true: the reducer discards such a candidate.
///
/// # Errors
/// If the child cannot be started or its output cannot be read.
pub(super) fn judge_apart(
    case: &Case,
    stop: &dyn Fn() -> bool,
) -> io::Result<Option<Vec<FuzzFinding>>> {
    let mut child = again("--native-case", "-", Stdio::piped())?;
    let errors = drain(&mut child);
    let mut input = child.stdin.take().expect("it is piped");
    // The child may have died already. Its exit status reports that below.
    let _ = input.write_all(
        serde_json::to_string(&Sent::of(case)).expect("a case has a JSON form").as_bytes(),
    );
    drop(input);
    let lines = lines_of(&mut child);
    let line = loop {
        match lines.recv_timeout(POLL) {
            Ok(line) => break line?,
            Err(RecvTimeoutError::Disconnected) => break Vec::new(),
            Err(RecvTimeoutError::Timeout) if stop() => {
                // The child may have ended by itself meanwhile.
                let _ = child.kill();
                finish(child, errors)?;
                return Ok(None);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    };
    let (status, said) = finish(child, errors)?;
    Ok(match serde_json::from_slice(&line) {
        Ok(ChildLine::Done(done)) if status.success() => Some(done.findings),
        _ if was_killed(status) || ran_out_of_time(status) => None,
        _ => Some(dead(death(status, &said)).findings),
    })
}
