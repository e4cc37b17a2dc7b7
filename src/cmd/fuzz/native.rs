//! `osier fuzz --engine jit`: cases judged in processes of their own.
//!
//! Wrong native code may do anything. So the command starts itself again for a few cases at a time, with limits; the child writes a line
//! before each case and one with what was found behind it ([`Line`]). A child that ends otherwise than it should has
//! found something in the case it was at, and another goes on with the next case.

use super::Kind;
use crate::cmd::failure::{Failure, tell};
use crate::cmd::output::Output;
use ir::text::{parse_module, print_module};
use jit::process::{Resources, limit};
use osier::fuzz::{
    self, Case, Clock, Drawn, Figures, Finding, NativeFigures, Oracle, PassFigures, Results, Source, World,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Address space of a child: guarded memories take 6 GiB each.
const ADDRESS_SPACE: u64 = 256 << 30;
/// Seconds of processor time of a child, for all its cases.
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
fn counts(native: &mut NativeFigures) -> [&mut u64; 11] {
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
        compiled_functions,
        compile_time: _,
    } = native;
    [transitions, backward, probed, stays, compared, points, fired, runs, trapped, exhausted, compiled_functions]
}

impl Done {
    fn of(judged: &fuzz::Judged) -> Done {
        let figures = &judged.figures;
        let mut native = figures.native;
        let mut numbers: Vec<u64> = counts(&mut native).map(|count| *count).to_vec();
        numbers.push(native.compile_time.as_nanos() as u64);
        let passes = figures.passes.iter().map(|(name, p)| ((*name).to_owned(), [p.programs, p.acted, p.actions]));
        let finding = |f: &Finding| (f.oracle.name().to_owned(), f.versions.0, f.versions.1, f.message.clone());
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
        counts(&mut native).into_iter().zip(&self.native).for_each(|(count, found)| *count = *found);
        native.compile_time = Duration::from_nanos(self.native.last().copied().unwrap_or(0));
        let named = |name: &String| passes::registry::PASSES.iter().map(|p| p.name()).find(|known| known == name);
        let passes = self.passes.iter().filter_map(|(name, [programs, acted, actions])| {
            Some((named(name)?, PassFigures { programs: *programs, acted: *acted, actions: *actions }))
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
        let oracle =
            |name: &str| Oracle::ALL.into_iter().find(|oracle| oracle.name() == name).unwrap_or(Oracle::Native);
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

/// Judges in a thread with a stack of its own, within limits that hold for the whole process from now on.
fn within_limits<T: Send>(cpu_seconds: u64, work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    let resources = Resources { address_space: ADDRESS_SPACE, cpu_seconds };
    limit(&resources).map_err(|error| Failure::input(format!("cannot limit the process: {error}")))?;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("native".to_owned()).stack_size(STACK).spawn_scoped(scope, work);
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
fn again(option: &str, value: &str, input: Stdio) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .args([option, value])
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// Judges cases in children; whether the source ended among them.
pub(super) fn batch(kind: Kind, cases: Range<u64>, stop: &dyn Fn() -> bool) -> (Results, bool) {
    let mut results = Results::default();
    let mut next = cases.start;
    while next < cases.end && !stop() {
        let share = Share { kind, cases: next..cases.end };
        match one_child(&share, &mut results) {
            Ok(Ended::Done) => return (results, false),
            Ok(Ended::Source) => return (results, true),
            Ok(Ended::Died(at, how)) if !stop() => {
                let finding = Finding { oracle: Oracle::Native, versions: (0, 1), message: how };
                results.figures.programs += 1;
                *results.figures.findings.entry(Oracle::Native).or_default() += 1;
                results.failures.push(fuzz::Failure { number: at, findings: vec![finding] });
                next = at + 1;
            }
            Ok(Ended::Died(..)) => {}
            Err(error) => panic!("no process for native code: {error}"),
        }
    }
    (results, false)
}

/// How a child has ended.
enum Ended {
    /// All its cases are done.
    Done,
    /// The source has no more.
    Source,
    /// In this case, so.
    Died(u64, String),
}

fn one_child(share: &Share, results: &mut Results) -> std::io::Result<Ended> {
    let mut child = again("--native-cases", &share.to_string(), Stdio::null())?;
    let errors = drain(&mut child);
    let output = child.stdout.take().expect("it is piped");
    let mut at = share.cases.start;
    let mut ended = false;
    for line in BufReader::new(output).lines() {
        // A line that was not finished is one that the child died in.
        let Ok(line) = serde_json::from_str::<Line>(&line?) else { break };
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
        _ => Ended::Died(at, death(status, &said)),
    })
}

/// Reads what a child says on standard error, beside whoever reads its results: a child that says more than a pipe holds (the backtraces of several
/// panics) would wait for a reader, and its reader for its next line.
fn drain(child: &mut Child) -> JoinHandle<std::io::Result<Vec<u8>>> {
    let mut errors = child.stderr.take().expect("it is piped");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        errors.read_to_end(&mut bytes).map(|_| bytes)
    })
}

fn finish(mut child: Child, errors: JoinHandle<std::io::Result<Vec<u8>>>) -> std::io::Result<(ExitStatus, String)> {
    let said = errors.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))?;
    Ok((child.wait()?, String::from_utf8_lossy(&said).into_owned()))
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
        let names = |passes: &Vec<passes::registry::StaticPass>| passes.iter().map(|p| p.name().to_owned()).collect();
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
        let named = |name: &String| passes::registry::PASSES.iter().copied().find(|pass| pass.name() == name);
        let steps = self.steps.iter().map(|step| step.iter().map(named).collect()).collect::<Option<Vec<_>>>()?;
        let level = osr::Level::from_name(&self.level)?;
        let Sent { arguments, fuel, seed, .. } = self;
        Some(Case { module, entry, arguments, fuel, world: World::Nothing, steps, level, seed, ..like })
    }
}

/// What a child does that judges one case, which it reads: the status says whether something was found.
pub(super) fn child_of_one(like: Case) -> Result<(), Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(Failure::input)?;
    let sent: Sent = serde_json::from_str(&text).map_err(Failure::input)?;
    let case = sent.case(like).ok_or_else(|| Failure::input("not a case"))?;
    let judged = within_limits(REDUCE_CPU_SECONDS, || fuzz::judge_native(&case, &clock()))?;
    write(&Line::Done(Box::new(Done::of(&judged))))
}

/// Judges one case in a child.
pub(super) fn judge_apart(case: &Case) -> Vec<Finding> {
    let judged = (|| -> std::io::Result<Vec<Finding>> {
        let mut child = again("--native-case", "-", Stdio::piped())?;
        let errors = drain(&mut child);
        let mut input = child.stdin.take().expect("it is piped");
        // A child that has died by now says so by its status.
        let _ = input.write_all(serde_json::to_string(&Sent::of(case)).expect("a case has a JSON form").as_bytes());
        drop(input);
        let mut text = String::new();
        child.stdout.take().expect("it is piped").read_to_string(&mut text)?;
        let (status, said) = finish(child, errors)?;
        Ok(match serde_json::from_str(&text) {
            Ok(Line::Done(done)) if status.success() => done.findings(),
            _ => vec![Finding { oracle: Oracle::Native, versions: (0, 1), message: death(status, &said) }],
        })
    })();
    judged.unwrap_or_else(|error| {
        tell(&format!("no process for native code: {error}"));
        Vec::new()
    })
}
