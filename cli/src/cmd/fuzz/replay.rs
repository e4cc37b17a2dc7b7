//! `osier fuzz --replay`: judges the findings in files again, each in a process of its own, and
//! tells which still fail.
//!
//! A finding may crash its process, run out of memory or not end. The process of a finding is this
//! command with the options of its record.

use super::findings::{self, FindingsFolder};
use super::native::POLL;
use super::{Args, FuzzFormat};
use crate::cmd::failure::{CommandFailure, tell};
use crate::cmd::format::json;
use crate::cmd::interrupt::CtrlC;
use crate::cmd::output::Output;
use fuzz::{FindingRecord, ReplayReport, ReplayVerdict, ReplayedFinding};
use osier::schema;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Judges findings again. A finding that still fails is written to `folder` too.
///
/// # Errors
/// If a finding still fails, was not judged, or cannot be read. Also if there is no finding, or the
/// user pressed Ctrl-C.
pub(super) fn replay(args: &Args, folder: Option<&FindingsFolder>) -> Result<(), CommandFailure> {
    let files = findings::records(&args.replay)?;
    if files.is_empty() {
        return Err(CommandFailure::input("--replay: no findings (.json) there"));
    }
    // Read all files before the work: an error in the last one should not come after an hour.
    let records = files.iter().map(|file| Ok((file, findings::read(file)?)));
    let records = records.collect::<Result<Vec<_>, CommandFailure>>()?;
    let interrupt = CtrlC::listen();
    let mut report = ReplayReport { schema: schema::SCHEMA, findings: Vec::new() };
    for (file, record) in &records {
        let judged = again(args, file, record, &interrupt);
        let judged = judged.map_err(|e| CommandFailure::input(format!("cannot judge: {e}")))?;
        let Some((verdict, message)) = judged else { break };
        if let (Some(folder), ReplayVerdict::Fails) = (folder, verdict) {
            folder.tell_saved(record)?;
        }
        report.findings.push(ReplayedFinding {
            key: record.key.clone(),
            file: file.display().to_string(),
            verdict,
            message,
        });
    }
    let interrupted = interrupt.is_raised();
    interrupt.end();
    Output::Stdout.write(&match args.format {
        FuzzFormat::Json => json(&report),
        FuzzFormat::Text => report.to_string(),
        FuzzFormat::Junit => fuzz::replay_junit(&report),
        FuzzFormat::Markdown => fuzz::replay_markdown(&report),
    })?;
    if interrupted {
        return Err(CommandFailure::Interrupted);
    }
    match report.summary() {
        Ok(summary) => {
            tell(&summary);
            Ok(())
        }
        Err(summary) => Err(CommandFailure::Program(summary)),
    }
}

/// The verdict about a finding, and the reason. `None` after Ctrl-C.
fn again(
    args: &Args,
    file: &Path,
    record: &FindingRecord,
    interrupt: &CtrlC,
) -> io::Result<Option<(ReplayVerdict, String)>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("fuzz").args(&record.options);
    if record.case.is_some() {
        command.arg("--case").arg(file);
    }
    if let Some(seconds) = args.case_time.or(record.case_time) {
        command.args(["--case-time", &seconds.to_string()]);
    }
    command.args(["--format", "json", "--jobs", "1", "--no-reduce", "--reduce-time", "0"]);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut out = child.stdout.take().expect("it is piped");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let errors = super::native::drain(&mut child);
    while child.try_wait()?.is_none() {
        if interrupt.is_raised() {
            // The child may have ended by itself meanwhile.
            let _ = child.kill();
        }
        std::thread::sleep(POLL);
    }
    let (status, said) = super::native::finish(child, errors)?;
    let text = reader.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))?;
    // Ctrl-C signals the whole process group, so the child may have died of it.
    Ok((!interrupt.is_raised()).then(|| verdict(record, status, &text, &said)))
}

/// The verdict that the document of a process tells.
fn verdict(
    record: &FindingRecord,
    status: ExitStatus,
    text: &str,
    said: &str,
) -> (ReplayVerdict, String) {
    let document: Option<serde_json::Value> = serde_json::from_str(text).ok();
    let Some(document) = document.filter(|_| status.code() != Some(2)) else {
        let verdict = match super::native::was_killed(status) || status.code() == Some(2) {
            true => ReplayVerdict::NotJudged,
            // The interpreter's oracles have no other process to die in.
            false => ReplayVerdict::Fails,
        };
        return (verdict, super::native::death(status, said).trim().to_owned());
    };
    let failure = &document["failures"][0];
    let message = failure["message"].as_str().unwrap_or_default().to_owned();
    let late = document["late"].as_array().is_some_and(|late| !late.is_empty());
    match failure["oracle"].as_str() {
        Some(oracle) if oracle == record.oracle => (ReplayVerdict::Fails, message),
        Some(_) => (ReplayVerdict::FailsOtherwise, message),
        None if late => (ReplayVerdict::NotJudged, "it took longer than --case-time".to_owned()),
        None => (ReplayVerdict::Passes, String::new()),
    }
}
