//! `osier fuzz --engine jit`: judges single cases in child processes, for the reducer. The parent
//! sends the case on standard input.

use super::native::{
    CaseResult, ChildLine, POLL, again, clock, dead, death, drain, finish, lines_of,
    ran_out_of_time, was_killed, within_limits, write,
};
use crate::cmd::failure::CommandFailure;
use fuzz::{CampaignOptions, Case, FuzzFinding, SavedCase};
use std::io::{self, Read, Write};
use std::process::Stdio;
use std::sync::mpsc::RecvTimeoutError;

/// Processor time in seconds for one case that the reducer tries.
const REDUCE_CPU_SECONDS: u64 = 10;

/// The work of a child that judges one case of the reducer: reads the case, judges it, and writes
/// one line.
///
/// # Errors
/// If standard input does not hold a case, or as [`child`].
pub(super) fn child_of_one(options: &CampaignOptions) -> Result<(), CommandFailure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(CommandFailure::input)?;
    let sent: SavedCase = serde_json::from_str(&text).map_err(CommandFailure::input)?;
    let case = sent.case(options).ok_or_else(|| CommandFailure::input("not a case"))?;
    let judged = within_limits(REDUCE_CPU_SECONDS, || fuzz::judge_native(&case, &clock()))?;
    write(&ChildLine::Done(Box::new(CaseResult::of(judged))))
}

/// A case as a child reads it: the text form makes ids dense. `None` for a WASI program.
pub(super) fn as_sent(case: &Case) -> Option<Case> {
    SavedCase::of(case)?.case(&case.options)
}

/// Judges one case in a child. `None` if the child exhausts its time, if others kill it, or if it
/// is not done when `stop` returns true: the reducer discards such a candidate. `None` also for a
/// WASI program, which a child cannot read.
///
/// # Errors
/// If the child cannot be started or its output cannot be read.
pub(super) fn judge_apart(
    case: &Case,
    stop: &dyn Fn() -> bool,
) -> io::Result<Option<Vec<FuzzFinding>>> {
    let Some(sent) = SavedCase::of(case) else { return Ok(None) };
    let mut child = again("--native-case", "-", Stdio::piped())?;
    let errors = drain(&mut child);
    let mut input = child.stdin.take().expect("it is piped");
    // The child may have died already. Its exit status reports that below.
    let _ =
        input.write_all(serde_json::to_string(&sent).expect("a case has a JSON form").as_bytes());
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
