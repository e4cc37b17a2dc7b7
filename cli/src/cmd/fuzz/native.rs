//! `osier fuzz --engine jit`: judges cases in child processes.
//!
//! Wrong native code can crash, hang, or corrupt the process that runs it. So the command starts
//! itself again for a few cases at a time, with limits on memory and processor time. The child
//! writes one [`ChildLine`] before each case and one after it with the results. If a child ends
//! abnormally, the case it had begun is a finding, and another child continues with the next case.
//!
//! A child that exhausts its processor time may run on a slow machine. Another child starts again
//! with its last case. Only a case that exhausts the time alone is a finding ([`is_out_of_time`]).
//!
//! Others may kill a child: a machine out of memory does. Its last case gets another child. If that
//! child is killed too, the command ends with an error: no program is to blame. When the campaign
//! is over, the command kills its children itself.

use super::SourceKind;
use crate::cmd::failure::CommandFailure;
use crate::cmd::output::Output;
use fuzz::{
    self, CaseEvent, CaseSource, Clock, Drawn, Figures, FuzzFinding, FuzzOracle, Judged,
    NativeFigures,
};
use jit::process::{Resources, limit};
#[cfg(target_os = "linux")]
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGXCPU};
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Address space of a child in bytes: 256 GiB, since each guarded memory reserves 6 GiB.
const ADDRESS_SPACE: u64 = 256 << 30;
/// Processor time of a child in seconds without `--case-time`. A case takes some hundredths of a
/// second.
pub(super) const CPU_SECONDS: u64 = 120;
/// The wall time of a case of a child, in its seconds of processor time: a busy machine is slow,
/// and a child that waits for itself uses none.
const WALL_FACTOR: u32 = 10;
/// The interval at which the command looks whether the campaign is over.
pub(super) const POLL: Duration = Duration::from_millis(20);
/// Stack of the judging thread in bytes. Recursion in native code takes more stack than in the
/// interpreter.
const STACK: usize = 64 << 20;

/// The cases that a child judges. The text form is the value of the hidden option `--native-cases`.
#[derive(Clone, Debug)]
pub(super) struct CaseRange {
    pub(super) kind: SourceKind,
    pub(super) cases: Range<u64>,
}

impl std::fmt::Display for CaseRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.kind.name(), self.cases.start, self.cases.end)
    }
}

impl std::str::FromStr for CaseRange {
    type Err = String;

    fn from_str(text: &str) -> Result<CaseRange, String> {
        let wrong = || format!("{text}: expected KIND:FIRST:END");
        let mut parts = text.split(':');
        let kind = parts.next().and_then(SourceKind::from_name).ok_or_else(wrong)?;
        let mut number = || parts.next().and_then(|part| part.parse().ok()).ok_or_else(wrong);
        Ok(CaseRange { kind, cases: number()?..number()? })
    }
}

/// A line on the standard output of a child, as JSON.
#[derive(Serialize, Deserialize)]
pub(super) enum ChildLine {
    /// The child begins the case with this number.
    Begin(u64),
    /// The child has judged the case of the last `Begin`.
    Done(Box<CaseResult>),
    /// The input with this number is not a program for this compiler.
    Refused(u64),
    /// The source ends before this number.
    End,
}

/// The results of one case.
#[derive(Serialize, Deserialize)]
pub(super) struct CaseResult {
    /// The figures that do not count findings or native code.
    figures: Figures,
    native: NativeFigures,
    /// [`NativeFigures::unguarded`], which the document leaves out.
    unguarded: u64,
    pub(super) findings: Vec<FuzzFinding>,
}

impl CaseResult {
    pub(super) fn of(judged: Judged) -> CaseResult {
        let Judged { figures, findings } = judged;
        let native = figures.native;
        CaseResult { figures, native, unguarded: native.unguarded, findings }
    }

    fn judged(self) -> Judged {
        let CaseResult { mut figures, native, unguarded, findings } = self;
        figures.native = NativeFigures { unguarded, ..native };
        if let Some(first) = findings.first() {
            figures.count_finding(first.oracle);
        }
        Judged { figures, findings }
    }
}

pub(super) fn clock() -> Clock {
    let started = Instant::now();
    Arc::new(move || started.elapsed())
}

/// Ends this process when its parent ends, even if the parent is killed. The signal comes when the
/// thread that started this process ends; that thread waits for this process.
///
/// # Errors
/// If the system refuses.
#[cfg(target_os = "linux")]
pub(super) fn end_with_parent() -> Result<(), CommandFailure> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|e| CommandFailure::input(format!("cannot limit the process: {e}")))
}

/// Limits the whole process from now on, and runs `work` in a thread with a large stack. The end of
/// the parent ends the process, even if the parent is killed (`a_killed_fuzzer_leaves_no_child`).
///
/// # Errors
/// If the process cannot be limited or the thread cannot be started.
pub(super) fn within_limits<T: Send>(
    cpu_seconds: u64,
    work: impl FnOnce() -> T + Send,
) -> Result<T, CommandFailure> {
    let resources = Resources { address_space: ADDRESS_SPACE, cpu_seconds };
    let cannot =
        |error: io::Error| CommandFailure::input(format!("cannot limit the process: {error}"));
    limit(&resources).map_err(cannot)?;
    #[cfg(target_os = "linux")]
    end_with_parent()?;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("native".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, work);
        let thread =
            thread.map_err(|error| CommandFailure::input(format!("no thread: {error}")))?;
        Ok(thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)))
    })
}

/// The work of a child: judges its share of the cases and writes lines.
///
/// # Errors
/// If the process cannot be limited, a thread cannot be started, or standard output is closed.
pub(super) fn child(
    source: &dyn CaseSource,
    cases: Range<u64>,
    cpu_seconds: u64,
) -> Result<(), CommandFailure> {
    let clock = clock();
    within_limits(cpu_seconds, || {
        for number in cases {
            // Drawing a case may loop or crash, too.
            write(&ChildLine::Begin(number))?;
            let line = match source.case(number) {
                Drawn::End => return write(&ChildLine::End),
                Drawn::Refused => ChildLine::Refused(number),
                Drawn::Case(case) => {
                    ChildLine::Done(Box::new(CaseResult::of(fuzz::judge_native(&case, &clock))))
                }
            };
            write(&line)?;
        }
        Ok(())
    })?
}

pub(super) fn write(line: &ChildLine) -> Result<(), CommandFailure> {
    let text = serde_json::to_string(line).expect("lines have a JSON form") + "\n";
    Output::Stdout.write(&text)
}

/// Starts this executable again with the options of this process and one more. Standard output and
/// standard error of the child are pipes.
pub(super) fn again(option: &str, value: &str, input: Stdio) -> io::Result<Child> {
    let own = std::env::current_exe()?;
    let mut command = Command::new(&own);
    command.args(std::env::args_os().skip(1)).args([option, value]);
    let spawned = command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    spawned.map_err(|error| {
        io::Error::new(error.kind(), format!("cannot start {} again: {error}", own.display()))
    })
}

/// The message for an error that keeps native code from being judged at all. No program is to
/// blame.
pub(super) fn no_process(error: &io::Error) -> String {
    format!("cannot judge native code: {error}")
}

/// What the judge of cases in children tells.
pub(super) trait ChildWatch {
    /// Whether the campaign is over.
    fn is_over(&self) -> bool;
    /// Tells an event. Returns whether to go on.
    fn tell(&self, event: CaseEvent) -> bool;
    /// Tells that others killed a child.
    fn killed(&self);
}

/// Judges cases in children, each for at most so many seconds of processor time. Returns whether
/// the source ended within `cases`.
///
/// # Errors
/// If no child can be started or read, or others killed two children in the same case.
pub(super) fn batch(
    kind: SourceKind,
    cases: Range<u64>,
    case_seconds: u64,
    watch: &dyn ChildWatch,
) -> io::Result<bool> {
    let most = Duration::from_secs(case_seconds) * WALL_FACTOR;
    batch_by(kind, cases, watch, &mut |share| one_child(share, most, watch))
}

fn batch_by(
    kind: SourceKind,
    cases: Range<u64>,
    watch: &dyn ChildWatch,
    one_child: &mut dyn FnMut(&CaseRange) -> io::Result<ChildEnd>,
) -> io::Result<bool> {
    let mut next = cases.start;
    // The case in which others have killed a child.
    let mut killed = None;
    while next < cases.end && !watch.is_over() {
        let end = one_child(&CaseRange { kind, cases: next..cases.end })?;
        // Ctrl-C signals the whole process group, so children die, too. Their deaths are not
        // findings.
        if matches!(end, ChildEnd::Stopped) || watch.is_over() {
            watch.tell(CaseEvent::Unfinished);
            return Ok(matches!(end, ChildEnd::Source));
        }
        let (number, how) = match end {
            ChildEnd::Done | ChildEnd::Stopped => return Ok(false),
            ChildEnd::Source => return Ok(true),
            // Earlier cases of this child may have used most of the time. The case gets a child of
            // its own.
            ChildEnd::OutOfTime(at) if at > next => {
                next = at;
                continue;
            }
            ChildEnd::OutOfTime(at) => (at, out_of_time()),
            ChildEnd::Killed(at, how) if killed == Some(at) => {
                return Err(killed_twice(kind, at, &how));
            }
            ChildEnd::Killed(at, _) => {
                watch.killed();
                killed = Some(at);
                next = at;
                continue;
            }
            ChildEnd::Died(at, how) => (at, how),
        };
        watch.tell(CaseEvent::Judged { number, judged: Box::new(dead(how)) });
        next = number + 1;
    }
    Ok(false)
}

/// The judgment of a case whose child died.
pub(super) fn dead(message: String) -> Judged {
    let mut figures = Figures { programs: 1, ..Figures::default() };
    figures.count_finding(FuzzOracle::Native);
    let finding = FuzzFinding { oracle: FuzzOracle::Native, versions: [0, 1], message };
    Judged { figures, findings: vec![finding] }
}

/// The error of a case in which others killed the child and the next child. It is no finding.
fn killed_twice(kind: SourceKind, number: u64, how: &str) -> io::Error {
    io::Error::other(format!(
        "two processes were killed in the same program, perhaps for lack of memory: number \
         {number} of {} programs\n{how}",
        kind.name()
    ))
}

/// The end of a child.
#[derive(Debug)]
enum ChildEnd {
    /// The child judged all its cases.
    Done,
    /// The source has no more cases.
    Source,
    /// The child died in this case, for this reason.
    Died(u64, String),
    /// Others killed the child in this case.
    Killed(u64, String),
    /// The child exhausted its processor time in this case.
    OutOfTime(u64),
    /// The campaign was over in the midst of a case, and the command killed the child.
    Stopped,
}

/// Signals by which others end a process: a system out of memory, an administrator, a terminal.
const FROM_OUTSIDE: [i32; 4] = [SIGKILL, SIGTERM, SIGINT, SIGHUP];

fn out_of_time() -> String {
    "  the process that ran native code used up --case-time for this program alone: the code may \
     not terminate, or the machine is very slow"
        .to_owned()
}

/// Whether a finding is a case that exhausted its processor time. The command does not reduce such
/// a case: the cause is unknown, and every attempt would take as long.
pub(super) fn is_out_of_time(finding: &FuzzFinding) -> bool {
    finding.message == out_of_time()
}

fn one_child(share: &CaseRange, most: Duration, watch: &dyn ChildWatch) -> io::Result<ChildEnd> {
    let mut child = again("--native-cases", &share.to_string(), Stdio::null())?;
    let errors = drain(&mut child);
    let lines = lines_of(&mut child);
    let mut at = share.cases.start;
    let mut ended = false;
    let mut heard = Instant::now();
    let cut = loop {
        let line = match lines.recv_timeout(POLL) {
            Ok(Ok(line)) => line,
            Ok(Err(error)) => {
                // The child may have ended by itself meanwhile.
                let _ = child.kill();
                finish(child, errors)?;
                return Err(error);
            }
            Err(RecvTimeoutError::Timeout) if watch.is_over() => break Some(ChildEnd::Stopped),
            // A child that waits for itself uses no processor time.
            Err(RecvTimeoutError::Timeout) if heard.elapsed() > most => {
                break Some(ChildEnd::OutOfTime(at));
            }
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break None,
        };
        heard = Instant::now();
        // The child died while writing this line, or stray writes of wrong code corrupted it.
        let Ok(line) = serde_json::from_slice::<ChildLine>(&line) else {
            break child.try_wait()?.is_none().then(|| ChildEnd::Died(at, unreadable()));
        };
        let goes_on = match line {
            ChildLine::Begin(number) => {
                at = number;
                watch.tell(CaseEvent::Begun(number))
            }
            ChildLine::Refused(number) => {
                at = number + 1;
                watch.tell(CaseEvent::Refused)
            }
            ChildLine::End => {
                ended = true;
                watch.tell(CaseEvent::Dropped)
            }
            ChildLine::Done(done) => {
                let (number, judged) = (at, Box::new(done.judged()));
                at += 1;
                watch.tell(CaseEvent::Judged { number, judged })
            }
        };
        if !goes_on {
            break Some(ChildEnd::Stopped);
        }
    };
    if let Some(end) = cut {
        // The child may have ended by itself meanwhile.
        let _ = child.kill();
        finish(child, errors)?;
        return Ok(end);
    }
    let (status, said) = finish(child, errors)?;
    // A child that exits early with success must not pass as done: `at` then lies before the end.
    Ok(match (status.success(), ended || at >= share.cases.end) {
        (true, _) if ended => ChildEnd::Source,
        (true, true) => ChildEnd::Done,
        _ if ran_out_of_time(status) => ChildEnd::OutOfTime(at),
        _ if was_killed(status) => ChildEnd::Killed(at, death(status, &said)),
        _ => ChildEnd::Died(at, death(status, &said)),
    })
}

fn unreadable() -> String {
    "  the process that ran native code wrote a line that nobody can read".to_owned()
}

/// Reads the lines of a child in a thread, so that the command can look at its limits meanwhile.
pub(super) fn lines_of(child: &mut Child) -> Receiver<io::Result<Vec<u8>>> {
    let output = child.stdout.take().expect("it is piped");
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n') {
            // After the end of the campaign nobody receives any more.
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// Reads the standard error of a child in a thread, concurrently with the reader of the results. A
/// child can write more messages than the pipe holds, such as backtraces of several panics. Without
/// a reader it would block, and its parent would wait for the next line forever.
pub(super) fn drain(child: &mut Child) -> JoinHandle<io::Result<Vec<u8>>> {
    let mut errors = child.stderr.take().expect("it is piped");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        errors.read_to_end(&mut bytes).map(|_| bytes)
    })
}

pub(super) fn finish(
    mut child: Child,
    errors: JoinHandle<io::Result<Vec<u8>>>,
) -> io::Result<(ExitStatus, String)> {
    let said = errors.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))?;
    Ok((child.wait()?, String::from_utf8_lossy(&said).into_owned()))
}

/// Whether others killed the process.
pub(super) fn was_killed(status: ExitStatus) -> bool {
    status.signal().is_some_and(|signal| FROM_OUTSIDE.contains(&signal))
}

/// Whether the limit on processor time ended the process.
pub(super) fn ran_out_of_time(status: ExitStatus) -> bool {
    status.signal() == Some(SIGXCPU)
}

pub(super) fn death(status: ExitStatus, said: &str) -> String {
    let last =
        said.lines().last().map(|line| format!("; last message: {line}")).unwrap_or_default();
    format!("  the process that ran native code ended with {status}{last}")
}

#[cfg(test)]
mod tests;
