//! `osier fuzz --engine jit`: judges cases in child processes.
//!
//! Wrong native code can crash, hang, or corrupt the process that runs it. So the command starts
//! itself again for a few cases at a time, with limits on memory and processor time. The child
//! writes one [`ChildLine`] before each case and one after it with the results. If a child ends
//! abnormally, the case it had begun is a finding, and another child continues with the next case.
//!
//! A child that exhausts its processor time may run on a slow machine. Another child starts again
//! with its last case. Only a case that exhausts the time alone is a finding ([`is_out_of_time`]).

use super::SourceKind;
use crate::cmd::failure::CommandFailure;
use crate::cmd::output::Output;
use fuzz::{
    self, AddUp, Case, CaseSource, Clock, Drawn, Figures, FuzzFinding, FuzzOracle, Judged,
    NativeFigures, Results, World,
};
use ir::text::{parse_module, print_module};
use jit::process::{Resources, limit};
use serde::{Deserialize, Serialize};
use signal_hook::consts::SIGXCPU;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;
use verify::generate::CountingHost;

/// Address space of a child in bytes: 256 GiB, since each guarded memory reserves 6 GiB.
const ADDRESS_SPACE: u64 = 256 << 30;
/// Processor time of a child in seconds. A case takes some hundredths of a second.
const CPU_SECONDS: u64 = 120;
/// Processor time in seconds for one case that the reducer tries.
const REDUCE_CPU_SECONDS: u64 = 10;
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
enum ChildLine {
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
struct CaseResult {
    /// The figures that do not count findings or native code.
    figures: Figures,
    native: NativeFigures,
    /// [`NativeFigures::unguarded`], which the document leaves out.
    unguarded: u64,
    findings: Vec<FuzzFinding>,
}

impl CaseResult {
    fn of(judged: Judged) -> CaseResult {
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

fn clock() -> Clock {
    let started = Instant::now();
    Arc::new(move || started.elapsed())
}

/// Limits the whole process from now on and runs `work` in a thread with a large stack.
///
/// # Errors
/// If the process cannot be limited or the thread cannot be started.
fn within_limits<T: Send>(
    cpu_seconds: u64,
    work: impl FnOnce() -> T + Send,
) -> Result<T, CommandFailure> {
    let resources = Resources { address_space: ADDRESS_SPACE, cpu_seconds };
    limit(&resources)
        .map_err(|error| CommandFailure::input(format!("cannot limit the process: {error}")))?;
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
pub(super) fn child(source: &dyn CaseSource, cases: Range<u64>) -> Result<(), CommandFailure> {
    let clock = clock();
    within_limits(CPU_SECONDS, || {
        for number in cases {
            let line = match source.case(number) {
                Drawn::End => return write(&ChildLine::End),
                Drawn::Refused => ChildLine::Refused(number),
                Drawn::Case(case) => {
                    write(&ChildLine::Begin(number))?;
                    ChildLine::Done(Box::new(CaseResult::of(fuzz::judge_native(&case, &clock))))
                }
            };
            write(&line)?;
        }
        Ok(())
    })?
}

fn write(line: &ChildLine) -> Result<(), CommandFailure> {
    let text = serde_json::to_string(line).expect("lines have a JSON form") + "\n";
    Output::Stdout.write(&text)
}

/// Starts this executable again with the options of this process and one more. Standard output and
/// standard error of the child are pipes.
fn again(option: &str, value: &str, input: Stdio) -> io::Result<Child> {
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

/// Judges cases in children. Returns the results, whether the source ended within `cases`, and the
/// error that kept the remaining cases from being judged, if any.
pub(super) fn batch(
    kind: SourceKind,
    cases: Range<u64>,
    stop: &dyn Fn() -> bool,
) -> (Results, bool, Option<io::Error>) {
    batch_by(kind, cases, stop, &mut one_child)
}

fn batch_by(
    kind: SourceKind,
    cases: Range<u64>,
    stop: &dyn Fn() -> bool,
    one_child: &mut dyn FnMut(&CaseRange, &mut Results) -> io::Result<ChildEnd>,
) -> (Results, bool, Option<io::Error>) {
    let mut results = Results::default();
    let mut next = cases.start;
    while next < cases.end && !stop() {
        let share = CaseRange { kind, cases: next..cases.end };
        let (at, how) = match one_child(&share, &mut results) {
            Ok(ChildEnd::Done) => return (results, false, None),
            Ok(ChildEnd::Source) => return (results, true, None),
            // Earlier cases of this child may have used most of the time. The case gets a child of
            // its own.
            Ok(ChildEnd::OutOfTime(at)) if at > next => {
                next = at;
                continue;
            }
            Ok(ChildEnd::OutOfTime(at)) => (at, out_of_time()),
            Ok(ChildEnd::Died(at, how)) => (at, how),
            Err(error) => return (results, false, Some(error)),
        };
        // Ctrl-C signals the whole process group, so children die, too. Their deaths are not
        // findings.
        if !stop() {
            let finding =
                FuzzFinding { oracle: FuzzOracle::Native, versions: [0, 1], message: how };
            results.figures.programs += 1;
            results.figures.count_finding(FuzzOracle::Native);
            results.failures.push(fuzz::FailedCase { number: at, findings: vec![finding] });
            next = at + 1;
        }
    }
    (results, false, None)
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
    /// The child exhausted its processor time in this case.
    OutOfTime(u64),
}

fn out_of_time() -> String {
    format!(
        "  the process that ran native code used {CPU_SECONDS} seconds of processor time for this program alone: the code may not terminate, or the machine is very slow"
    )
}

/// Whether a finding is a case that exhausted its processor time. The command does not reduce such
/// a case: the cause is unknown, and every attempt would take as long.
pub(super) fn is_out_of_time(finding: &FuzzFinding) -> bool {
    finding.message == out_of_time()
}

fn one_child(share: &CaseRange, results: &mut Results) -> io::Result<ChildEnd> {
    let mut child = again("--native-cases", &share.to_string(), Stdio::null())?;
    let errors = drain(&mut child);
    let output = child.stdout.take().expect("it is piped");
    let mut at = share.cases.start;
    let mut ended = false;
    for line in BufReader::new(output).split(b'\n') {
        // The child died while writing this line, or stray writes of wrong code corrupted it.
        let Ok(line) = serde_json::from_slice::<ChildLine>(&line?) else { break };
        match line {
            ChildLine::Begin(number) => at = number,
            ChildLine::Refused(number) => {
                results.figures.refused += 1;
                at = number + 1;
            }
            ChildLine::End => ended = true,
            ChildLine::Done(done) => {
                let Judged { figures, findings } = done.judged();
                results.figures.add(&figures);
                if !findings.is_empty() {
                    results.failures.push(fuzz::FailedCase { number: at, findings });
                }
                at += 1;
            }
        }
    }
    let (status, said) = finish(child, errors)?;
    // A child that exits early with success must not pass as done: `at` then lies before the end.
    Ok(match (status.success(), ended || at >= share.cases.end) {
        (true, _) if ended => ChildEnd::Source,
        (true, true) => ChildEnd::Done,
        _ if ran_out_of_time(status) => ChildEnd::OutOfTime(at),
        _ => ChildEnd::Died(at, death(status, &said)),
    })
}

/// Reads the standard error of a child in a thread, concurrently with the reader of the results. A
/// child can write more messages than the pipe holds, such as backtraces of several panics. Without
/// a reader it would block, and its parent would wait for the next line forever.
fn drain(child: &mut Child) -> JoinHandle<io::Result<Vec<u8>>> {
    let mut errors = child.stderr.take().expect("it is piped");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        errors.read_to_end(&mut bytes).map(|_| bytes)
    })
}

fn finish(
    mut child: Child,
    errors: JoinHandle<io::Result<Vec<u8>>>,
) -> io::Result<(ExitStatus, String)> {
    let said = errors.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))?;
    Ok((child.wait()?, String::from_utf8_lossy(&said).into_owned()))
}

/// Whether the limit on processor time ended the process.
fn ran_out_of_time(status: ExitStatus) -> bool {
    status.signal() == Some(SIGXCPU)
}

fn death(status: ExitStatus, said: &str) -> String {
    let last =
        said.lines().last().map(|line| format!("; last message: {line}")).unwrap_or_default();
    format!("  the process that ran native code ended with {status}{last}")
}

/// A case as the parent sends it to a child on standard input.
#[derive(Serialize, Deserialize)]
struct Sent {
    module: String,
    entry: String,
    arguments: Vec<Vec<u64>>,
    fuel: u64,
    steps: Vec<Vec<String>>,
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
        let Sent { arguments, fuel, seed, .. } = self;
        Some(Case {
            module,
            entry,
            arguments,
            fuel,
            world: World::Counting(CountingHost::default()),
            steps,
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

/// Judges one case in a child. A child that exhausts its time yields no findings, so the reducer
/// discards such a candidate.
///
/// # Errors
/// If the child cannot be started or its output cannot be read.
pub(super) fn judge_apart(case: &Case) -> io::Result<Vec<FuzzFinding>> {
    let mut child = again("--native-case", "-", Stdio::piped())?;
    let errors = drain(&mut child);
    let mut input = child.stdin.take().expect("it is piped");
    // The child may have died already. Its exit status reports that below.
    let _ = input.write_all(
        serde_json::to_string(&Sent::of(case)).expect("a case has a JSON form").as_bytes(),
    );
    drop(input);
    let mut text = Vec::new();
    child.stdout.take().expect("it is piped").read_to_end(&mut text)?;
    let (status, said) = finish(child, errors)?;
    Ok(match serde_json::from_slice(&text) {
        Ok(ChildLine::Done(done)) if status.success() => done.findings,
        _ if ran_out_of_time(status) => Vec::new(),
        _ => vec![FuzzFinding {
            oracle: FuzzOracle::Native,
            versions: [0, 1],
            message: death(status, &said),
        }],
    })
}

#[cfg(test)]
mod tests;
