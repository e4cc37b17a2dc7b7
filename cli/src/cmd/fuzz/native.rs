//! `osier fuzz --engine jit`: cases judged in processes of their own.
//!
//! Wrong native code may do anything. So the command starts itself again for a few cases at a time,
//! with limits; the child writes a line before each case and one with what was found behind it
//! ([`Line`]). A child that ends otherwise than it should has found something in the case it was
//! at, and another goes on with the next case.
//!
//! Processor time is limited for each child. One that runs out of it may have had a machine too
//! slow for all its cases, so another begins again with the case it was at; a case that uses up all
//! of the time alone is told as such ([`is_out_of_time`]).

use super::Kind;
use crate::cmd::failure::Failure;
use crate::cmd::output::Output;
use fuzz::{
    self, Case, Clock, Drawn, Figures, Finding, NativeFigures, Oracle, PassFigures, Results,
    Source, World,
};
use ir::text::{parse_module, print_module};
use jit::process::{Resources, limit};
use serde::{Deserialize, Serialize};
use signal_hook::consts::SIGXCPU;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Address space of a child: guarded memories take 6 GiB each.
const ADDRESS_SPACE: u64 = 256 << 30;
/// Seconds of processor time of a child. A case takes some hundredths of one.
const CPU_SECONDS: u64 = 120;
/// Seconds of processor time for one case that is being made smaller.
const REDUCE_CPU_SECONDS: u64 = 10;
/// Stack of the thread that judges: recursion in native code takes more than in the interpreter.
const STACK: usize = 64 << 20;

/// The cases that a child judges, as its option says it.
#[derive(Clone, Debug)]
pub(super) struct Share {
    pub(super) kind: Kind,
    pub(super) cases: Range<u64>,
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.kind.name(), self.cases.start, self.cases.end)
    }
}

impl std::str::FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Share, String> {
        let wrong = || format!("{text}: not KIND:FIRST:END");
        let mut parts = text.split(':');
        let kind = parts.next().and_then(Kind::from_name).ok_or_else(wrong)?;
        let mut number = || parts.next().and_then(|part| part.parse().ok()).ok_or_else(wrong);
        Ok(Share { kind, cases: number()?..number()? })
    }
}

/// A line that a child writes.
#[derive(Serialize, Deserialize)]
enum Line {
    /// It begins with a case.
    Begin(u64),
    /// It is done with it.
    Done(Box<Done>),
    /// The input with this number is no program.
    Refused(u64),
    /// There is no case with this number, or later ones.
    End,
}

/// What was done with one case.
#[derive(Serialize, Deserialize, Default)]
struct Done {
    unchanged: u64,
    versions: BTreeMap<usize, u64>,
    /// By pass: programs, programs acted on, actions.
    passes: BTreeMap<String, [u64; 3]>,
    pairs: u64,
    points: u64,
    entries: u64,
    composed: u64,
    not_composed: u64,
    armed: u64,
    fired: u64,
    /// As [`counts`] says, and the nanoseconds of compiling.
    native: Vec<u64>,
    /// The oracle, the versions and the message of each finding.
    findings: Vec<(String, usize, usize, String)>,
}

/// The counts of native figures, in an order of their own.
fn counts(native: &mut NativeFigures) -> [&mut u64; 12] {
    let NativeFigures {
        transitions,
        backward,
        probed,
        stays,
        compared,
        points,
        fired,
        runs,
        trapped,
        exhausted,
        unguarded,
        compiled_functions,
        compile_time: _,
    } = native;
    [
        transitions,
        backward,
        probed,
        stays,
        compared,
        points,
        fired,
        runs,
        trapped,
        exhausted,
        unguarded,
        compiled_functions,
    ]
}

impl Done {
    fn of(judged: &fuzz::Judged) -> Done {
        let figures = &judged.figures;
        let mut native = figures.native;
        let mut numbers: Vec<u64> = counts(&mut native).map(|count| *count).to_vec();
        numbers.push(native.compile_time.as_nanos() as u64);
        let passes = figures
            .passes
            .iter()
            .map(|(name, p)| ((*name).to_owned(), [p.programs, p.acted, p.actions]));
        let finding = |f: &Finding| {
            (f.oracle.name().to_owned(), f.versions.0, f.versions.1, f.message.clone())
        };
        Done {
            unchanged: figures.unchanged,
            versions: figures.versions.clone(),
            passes: passes.collect(),
            pairs: figures.pairs,
            points: figures.points,
            entries: figures.entries,
            composed: figures.composed,
            not_composed: figures.not_composed,
            armed: figures.armed,
            fired: figures.fired,
            native: numbers,
            findings: judged.findings.iter().map(finding).collect(),
        }
    }

    fn figures(&self) -> Figures {
        let mut native = NativeFigures::default();
        counts(&mut native)
            .into_iter()
            .zip(&self.native)
            .for_each(|(count, found)| *count = *found);
        native.compile_time = Duration::from_nanos(self.native.last().copied().unwrap_or(0));
        let named = |name: &String| {
            passes::registry::PASSES.iter().map(|p| p.name()).find(|known| known == name)
        };
        let passes = self.passes.iter().filter_map(|(name, [programs, acted, actions])| {
            Some((
                named(name)?,
                PassFigures { programs: *programs, acted: *acted, actions: *actions },
            ))
        });
        let mut figures = Figures {
            programs: 1,
            unchanged: self.unchanged,
            versions: self.versions.clone(),
            passes: passes.collect(),
            pairs: self.pairs,
            points: self.points,
            entries: self.entries,
            composed: self.composed,
            not_composed: self.not_composed,
            armed: self.armed,
            fired: self.fired,
            native,
            ..Figures::default()
        };
        if let Some(first) = self.findings().first() {
            figures.findings.insert(first.oracle, 1);
        }
        figures
    }

    fn findings(&self) -> Vec<Finding> {
        let oracle = |name: &str| {
            Oracle::ALL.into_iter().find(|oracle| oracle.name() == name).unwrap_or(Oracle::Native)
        };
        let finding = |(name, first, last, message): &(String, usize, usize, String)| Finding {
            oracle: oracle(name),
            versions: (*first, *last),
            message: message.clone(),
        };
        self.findings.iter().map(finding).collect()
    }
}

fn clock() -> Clock {
    let started = Instant::now();
    Arc::new(move || started.elapsed())
}

/// Judges in a thread with a stack of its own, within limits that hold for the whole process from
/// now on.
fn within_limits<T: Send>(cpu_seconds: u64, work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    let resources = Resources { address_space: ADDRESS_SPACE, cpu_seconds };
    limit(&resources)
        .map_err(|error| Failure::input(format!("cannot limit the process: {error}")))?;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("native".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, work);
        let thread = thread.map_err(|error| Failure::input(format!("no thread: {error}")))?;
        Ok(thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)))
    })
}

/// What a child does: its share of the cases.
pub(super) fn child(source: &dyn Source, cases: Range<u64>) -> Result<(), Failure> {
    let clock = clock();
    within_limits(CPU_SECONDS, || {
        for number in cases {
            let line = match source.case(number) {
                Drawn::End => return write(&Line::End),
                Drawn::Refused => Line::Refused(number),
                Drawn::Case(case) => {
                    write(&Line::Begin(number))?;
                    Line::Done(Box::new(Done::of(&fuzz::judge_native(&case, &clock))))
                }
            };
            write(&line)?;
        }
        Ok(())
    })?
}

fn write(line: &Line) -> Result<(), Failure> {
    let text = serde_json::to_string(line).expect("lines have a JSON form") + "\n";
    Output::Stdout.write(&text)
}

/// Starts the command again, with its own options and one more.
fn again(option: &str, value: &str, input: Stdio) -> io::Result<Child> {
    let own = std::env::current_exe()?;
    let mut command = Command::new(&own);
    command.args(std::env::args_os().skip(1)).args([option, value]);
    let spawned = command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    spawned.map_err(|error| {
        io::Error::new(error.kind(), format!("cannot start {} again: {error}", own.display()))
    })
}

/// Why native code cannot be judged at all: no program is to blame.
pub(super) fn no_process(error: &io::Error) -> String {
    format!("no process for native code: {error}")
}

/// Judges cases in children; whether the source ended among them. With it the error that kept the
/// others from being judged, if there was one.
pub(super) fn batch(
    kind: Kind,
    cases: Range<u64>,
    stop: &dyn Fn() -> bool,
) -> (Results, bool, Option<io::Error>) {
    batch_by(kind, cases, stop, &mut one_child)
}

fn batch_by(
    kind: Kind,
    cases: Range<u64>,
    stop: &dyn Fn() -> bool,
    one_child: &mut dyn FnMut(&Share, &mut Results) -> io::Result<Ended>,
) -> (Results, bool, Option<io::Error>) {
    let mut results = Results::default();
    let mut next = cases.start;
    while next < cases.end && !stop() {
        let share = Share { kind, cases: next..cases.end };
        let (at, how) = match one_child(&share, &mut results) {
            Ok(Ended::Done) => return (results, false, None),
            Ok(Ended::Source) => return (results, true, None),
            // The cases before it have used up most of the time, perhaps.
            Ok(Ended::OutOfTime(at)) if at > next => {
                next = at;
                continue;
            }
            Ok(Ended::OutOfTime(at)) => (at, out_of_time()),
            Ok(Ended::Died(at, how)) => (at, how),
            Err(error) => return (results, false, Some(error)),
        };
        // Ctrl-C reaches children too, and they die of it.
        if !stop() {
            let finding = Finding { oracle: Oracle::Native, versions: (0, 1), message: how };
            results.figures.programs += 1;
            *results.figures.findings.entry(Oracle::Native).or_default() += 1;
            results.failures.push(fuzz::Failure { number: at, findings: vec![finding] });
            next = at + 1;
        }
    }
    (results, false, None)
}

/// How a child has ended.
#[derive(Debug)]
enum Ended {
    /// All its cases are done.
    Done,
    /// The source has no more.
    Source,
    /// In this case, so.
    Died(u64, String),
    /// In this case, when its processor time was used up.
    OutOfTime(u64),
}

fn out_of_time() -> String {
    format!(
        "  the process that ran native code used up {CPU_SECONDS} seconds of processor time in this program alone: code without end, or a \
         machine that is very slow"
    )
}

/// Whether a finding is a case that used up its processor time. Nothing is known of what is wrong
/// with it, if anything is; and making it smaller would take as much time for each attempt.
pub(super) fn is_out_of_time(finding: &Finding) -> bool {
    finding.message == out_of_time()
}

fn one_child(share: &Share, results: &mut Results) -> io::Result<Ended> {
    let mut child = again("--native-cases", &share.to_string(), Stdio::null())?;
    let errors = drain(&mut child);
    let output = child.stdout.take().expect("it is piped");
    let mut at = share.cases.start;
    let mut ended = false;
    for line in BufReader::new(output).split(b'\n') {
        // A line that was not finished is one that the child died in; wild code may have written
        // anything.
        let Ok(line) = serde_json::from_slice::<Line>(&line?) else { break };
        match line {
            Line::Begin(number) => at = number,
            Line::Refused(number) => {
                results.figures.refused += 1;
                at = number + 1;
            }
            Line::End => ended = true,
            Line::Done(done) => {
                results.figures.add(&done.figures());
                let findings = done.findings();
                if !findings.is_empty() {
                    results.failures.push(fuzz::Failure { number: at, findings });
                }
                at += 1;
            }
        }
    }
    let (status, said) = finish(child, errors)?;
    Ok(match (status.success(), ended || at >= share.cases.end) {
        (true, _) if ended => Ended::Source,
        (true, true) => Ended::Done,
        _ if ran_out_of_time(status) => Ended::OutOfTime(at),
        _ => Ended::Died(at, death(status, &said)),
    })
}

/// Reads what a child says on standard error, beside whoever reads its results: a child that says
/// more than a pipe holds (the backtraces of several panics) would wait for a reader, and its
/// reader for its next line.
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

/// Whether the limit of processor time has ended a process.
fn ran_out_of_time(status: ExitStatus) -> bool {
    status.signal() == Some(SIGXCPU)
}

fn death(status: ExitStatus, said: &str) -> String {
    let last = said.lines().last().map(|line| format!("; it said: {line}")).unwrap_or_default();
    format!("  the process that ran native code ended with {status}{last}")
}

/// A case as it is sent to a child.
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
            world: World::Nothing,
            steps,
            level,
            seed,
            ..like
        })
    }
}

/// What a child does that judges one case, which it reads: the status says whether something was
/// found.
pub(super) fn child_of_one(like: Case) -> Result<(), Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(Failure::input)?;
    let sent: Sent = serde_json::from_str(&text).map_err(Failure::input)?;
    let case = sent.case(like).ok_or_else(|| Failure::input("not a case"))?;
    let judged = within_limits(REDUCE_CPU_SECONDS, || fuzz::judge_native(&case, &clock()))?;
    write(&Line::Done(Box::new(Done::of(&judged))))
}

/// Judges one case in a child. One that runs out of time shows nothing.
///
/// # Errors
/// When there is no child.
pub(super) fn judge_apart(case: &Case) -> io::Result<Vec<Finding>> {
    let mut child = again("--native-case", "-", Stdio::piped())?;
    let errors = drain(&mut child);
    let mut input = child.stdin.take().expect("it is piped");
    // A child that has died by now says so by its status.
    let _ = input.write_all(
        serde_json::to_string(&Sent::of(case)).expect("a case has a JSON form").as_bytes(),
    );
    drop(input);
    let mut text = Vec::new();
    child.stdout.take().expect("it is piped").read_to_end(&mut text)?;
    let (status, said) = finish(child, errors)?;
    Ok(match serde_json::from_slice(&text) {
        Ok(Line::Done(done)) if status.success() => done.findings(),
        _ if ran_out_of_time(status) => Vec::new(),
        _ => vec![Finding {
            oracle: Oracle::Native,
            versions: (0, 1),
            message: death(status, &said),
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Judges eight cases in children that end so, one after the other; the shares that they were
    /// given.
    fn judged(ends: Vec<io::Result<Ended>>) -> (Vec<Range<u64>>, Results, bool, Option<io::Error>) {
        let (mut ends, mut shares) = (ends.into_iter(), Vec::new());
        let mut child = |share: &Share, _: &mut Results| {
            shares.push(share.cases.clone());
            ends.next().expect("no child more than that")
        };
        let (results, last, error) = batch_by(Kind::Generated, 8..16, &|| false, &mut child);
        assert!(ends.next().is_none(), "a child for every end");
        (shares, results, last, error)
    }

    #[test]
    fn a_child_that_dies_is_a_finding_in_its_case_and_another_goes_on_behind() {
        let (shares, results, last, error) =
            judged(vec![Ok(Ended::Died(10, "so".to_owned())), Ok(Ended::Source)]);
        assert_eq!(shares, [8..16, 11..16]);
        assert!(last && error.is_none());
        assert_eq!(results.failures.iter().map(|f| f.number).collect::<Vec<_>>(), [10]);
        assert!(!is_out_of_time(&results.failures[0].findings[0]));
    }

    #[test]
    fn time_that_a_batch_uses_up_is_no_finding_and_that_of_one_case_is_told_as_such() {
        let ends = vec![
            Ok(Ended::OutOfTime(10)),
            Ok(Ended::OutOfTime(10)),
            Ok(Ended::OutOfTime(15)),
            Ok(Ended::Done),
        ];
        let (shares, results, _, error) = judged(ends);
        assert_eq!(shares, [8..16, 10..16, 11..16, 15..16]);
        assert!(error.is_none());
        assert_eq!(results.failures.iter().map(|f| f.number).collect::<Vec<_>>(), [10]);
        assert!(is_out_of_time(&results.failures[0].findings[0]));
        // Raw statuses are those of `wait`: the signal that ended the process.
        assert!(
            ran_out_of_time(ExitStatus::from_raw(SIGXCPU))
                && !ran_out_of_time(ExitStatus::from_raw(11))
        );
    }

    #[test]
    fn where_no_process_can_be_started_nothing_is_found() {
        let refused = io::Error::from(io::ErrorKind::NotFound);
        let (shares, results, last, error) =
            judged(vec![Ok(Ended::Died(8, "so".to_owned())), Err(refused)]);
        assert_eq!(shares, [8..16, 9..16]);
        assert!(!last && error.is_some_and(|e| e.kind() == io::ErrorKind::NotFound));
        assert_eq!(results.failures.len(), 1);
    }
}
