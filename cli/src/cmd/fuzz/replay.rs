//! `osier fuzz --replay`: judges the findings in files again, each in a process of its own, and
//! tells which still fail.
//!
//! A finding may crash its process, run out of memory or not end. The process of a finding is this
//! command with the options of its record.

use super::findings::{self, FindingsFolder};
use super::native::{self, POLL};
use super::{Args, CommandErrors, FuzzFormat};
use crate::cmd::failure::{CommandFailure, tell, tell_progress};
use crate::cmd::format::json;
use crate::cmd::interrupt::CtrlC;
use crate::cmd::output::Output;
use fuzz::{FindingRecord, ReplayReport, ReplayVerdict, ReplayedFinding};
use osier::schema;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// The text of a finding that the command did not come to.
const NOT_COME_TO: &str = "the command was interrupted";

/// Judges findings again, and writes the findings that do not pass to `folder` too. A file without
/// a record counts as a finding that is not judged, so that the other findings keep their verdicts.
///
/// # Errors
/// If a finding still fails or was not judged. Also if a file has no record, no path has a finding,
/// a path names nothing, a finding cannot be written, or the user pressed Ctrl-C.
pub(super) fn replay(args: &Args, folder: Option<&FindingsFolder>) -> Result<(), CommandFailure> {
    let files = findings::records(&args.replay)?;
    if files.is_empty() {
        return Err(CommandFailure::input("--replay: no findings (.json) there"));
    }
    let interrupt = CtrlC::listen();
    let mut saved = Vec::new();
    let mut report = ReplayReport { schema: schema::SCHEMA, findings: Vec::new() };
    let mut without_record = 0;
    for file in &files {
        let (finding, record) = judged(args, file, &interrupt);
        without_record += usize::from(record.is_none());
        let is_told = finding.verdict == ReplayVerdict::NotJudged && finding.message != NOT_COME_TO;
        if is_told {
            tell(&format!("not judged: {}: {}", finding.file, finding.message));
        }
        if let (Some(folder), Some(record)) = (folder, &record)
            && finding.verdict != ReplayVerdict::Passes
        {
            saved.push(folder.tell_saved(record));
        }
        report.findings.push(finding);
    }
    let interrupted = interrupt.is_raised();
    interrupt.end();
    let mut errors = CommandErrors::default();
    errors.note(Output::Stdout.write(&match args.format {
        FuzzFormat::Json => json(&report),
        FuzzFormat::Text => report.to_string(),
        FuzzFormat::Junit => fuzz::replay_junit(&report),
        FuzzFormat::Markdown => fuzz::replay_markdown(&report),
    }));
    match report.summary() {
        Ok(summary) => tell_progress(&summary),
        Err(summary) => errors.note(Err(CommandFailure::Program(summary))),
    }
    if without_record > 0 {
        let files = if without_record == 1 {
            "1 file has"
        } else {
            &format!("{without_record} files have")
        };
        errors
            .note(Err(CommandFailure::input(format!("--replay: {files} no record of a finding"))));
    }
    if interrupted {
        errors.note(Err(CommandFailure::Interrupted));
    }
    saved.into_iter().for_each(|step| errors.note(step));
    errors.end()
}

/// A finding of a file that was judged again, and its record, if the file has one.
fn judged(args: &Args, file: &Path, interrupt: &CtrlC) -> (ReplayedFinding, Option<FindingRecord>) {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let finding = |key: String, verdict, message| ReplayedFinding {
        key,
        file: file.display().to_string(),
        verdict,
        message,
    };
    let record = match findings::read(file) {
        Ok(record) => record,
        Err(error) => {
            let key = stem.unwrap_or_default();
            return (finding(key, ReplayVerdict::NotJudged, words(error)), None);
        }
    };
    let not_come_to = || (ReplayVerdict::NotJudged, NOT_COME_TO.to_owned());
    let (verdict, message) = match interrupt.is_raised() {
        true => not_come_to(),
        false => match again(args, file, &record, interrupt) {
            Ok(judged) => judged.unwrap_or_else(not_come_to),
            Err(error) => (ReplayVerdict::NotJudged, format!("no process: {error}")),
        },
    };
    (finding(record.key.clone(), verdict, message), Some(record))
}

fn words(error: CommandFailure) -> String {
    match error {
        CommandFailure::Input(why) | CommandFailure::Program(why) => why,
        other => format!("{other:?}"),
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
    // A killed command has no time to kill its processes (`a_killed_replay_leaves_no_process`).
    command.args(["--for-replay", &std::process::id().to_string()]);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut out = child.stdout.take().expect("it is piped");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let errors = native::drain(&mut child);
    while child.try_wait()?.is_none() {
        if interrupt.is_raised() {
            // The child may have ended by itself meanwhile.
            let _ = child.kill();
        }
        std::thread::sleep(POLL);
    }
    let (status, said) = native::finish(child, errors)?;
    let text = reader.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))?;
    // Ctrl-C signals the whole process group, so the child may have died of it.
    Ok((!interrupt.is_raised()).then(|| verdict(record, status, &text, &said)))
}

/// The verdict that the document of a process tells. A finding passes only if the document says so:
/// one program was judged to its end, by the oracle of the finding too, and no oracle found
/// anything.
fn verdict(
    record: &FindingRecord,
    status: ExitStatus,
    text: &str,
    said: &str,
) -> (ReplayVerdict, String) {
    let document: Option<serde_json::Value> = serde_json::from_str(text).ok();
    let Some(document) = document.filter(|_| status.code() != Some(2)) else {
        // The interpreter's oracles have no other process to die in. The other statuses are those
        // of a command that ends by itself.
        let has_died = !native::was_killed(status) && !matches!(status.code(), Some(0..=2 | 130));
        return match has_died {
            true => (ReplayVerdict::Fails, native::death(status, said).trim().to_owned()),
            false => (ReplayVerdict::NotJudged, ended(status, said)),
        };
    };
    let failure = &document["failures"][0];
    let message = failure["message"].as_str().unwrap_or_default().to_owned();
    let late = document["late"].as_array().is_some_and(|late| !late.is_empty());
    let is_judged = status.success()
        && document["interrupted"] == false
        && document["all"]["programs"] == 1
        && document["failures"].as_array().is_some_and(Vec::is_empty);
    let has_run = document["all"]["ran"][&record.oracle] == 1;
    match failure["oracle"].as_str() {
        Some(oracle) if oracle == record.oracle => (ReplayVerdict::Fails, message),
        Some(_) => (ReplayVerdict::FailsOtherwise, message),
        None if late => (ReplayVerdict::NotJudged, "it took longer than --case-time".to_owned()),
        None if is_judged && has_run => (ReplayVerdict::Passes, String::new()),
        None if is_judged => {
            let why = format!(
                "under the options of its record, the oracle {} does not run",
                record.oracle
            );
            (ReplayVerdict::NotJudged, why)
        }
        None => (ReplayVerdict::NotJudged, ended(status, said)),
    }
}

/// The end of a process that did not judge, in words.
fn ended(status: ExitStatus, said: &str) -> String {
    let last = said.lines().last().map(|line| format!(": {line}")).unwrap_or_default();
    format!("the process ended with {status}{last}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::fuzz::findings::tests::record;
    use serde_json::{Value, json};
    use std::os::unix::process::ExitStatusExt;

    fn verdict_of(status: i32, document: &Value) -> ReplayVerdict {
        let record = record(1, None);
        let text = match document {
            Value::Null => String::new(),
            document => document.to_string(),
        };
        verdict(&record, ExitStatus::from_raw(status), &text, "").0
    }

    /// The document of a process in which the state oracle ran.
    fn document(programs: u64, interrupted: bool, oracles: &[&str]) -> Value {
        let failures = oracles.iter().map(|oracle| json!({"oracle": oracle, "message": ""}));
        let failures = failures.collect::<Vec<_>>();
        json!({
            "all": {"programs": programs, "ran": {"state": programs}}, "interrupted": interrupted,
            "failures": failures, "late": [],
        })
    }

    /// A process that alone got a signal wrote a document without failures, and its finding passed.
    #[test]
    fn a_finding_passes_only_if_one_program_was_judged_to_its_end() {
        let exited = |code: i32| code << 8;
        assert_eq!(verdict_of(exited(0), &document(1, false, &[])), ReplayVerdict::Passes);
        let mut without_state = document(1, false, &[]);
        without_state["all"]["ran"] = json!({"ssa": 1, "native": 1});
        for (status, document) in [
            (exited(130), document(0, true, &[])),
            (exited(130), document(1, true, &[])),
            (exited(0), document(1, true, &[])),
            (exited(0), document(0, false, &[])),
            (exited(0), document(2, false, &[])),
            (exited(1), document(1, false, &[])),
            (exited(2), document(1, false, &[])),
            (exited(0), json!({"all": {"programs": 1}, "interrupted": false})),
            (exited(0), without_state),
            (exited(0), Value::Null),
            (exited(130), Value::Null),
            (exited(1), Value::Null),
            (exited(2), Value::Null),
            (15, Value::Null),
            (9, Value::Null),
        ] {
            let verdict = verdict_of(status, &document);
            assert_eq!(verdict, ReplayVerdict::NotJudged, "{status} {document}");
        }
    }

    #[test]
    fn a_finding_fails_by_its_oracle_or_by_the_death_of_its_process() {
        let found = |oracle| verdict_of(1 << 8, &document(1, false, &[oracle]));
        assert_eq!(found("state"), ReplayVerdict::Fails);
        assert_eq!(found("ssa"), ReplayVerdict::FailsOtherwise);
        assert_eq!(verdict_of(11, &Value::Null), ReplayVerdict::Fails, "a wrong access");
        assert_eq!(verdict_of(101 << 8, &Value::Null), ReplayVerdict::Fails, "a panic");
    }
}
