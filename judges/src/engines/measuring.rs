//! Takes samples: in each round every program, in each program every engine in turn.

use super::contender::{Commands, Contender};
use super::cores::Cores;
use super::programs::{EMPTY, EMPTY_TEXT, FUNCTIONS, KernelFunction, PROGRAMS, Program};
use super::samples::{EngineSample, Key, Measure, Samples};
use crate::arguments::EnginesArguments;
use crate::process::{Ended, run_well};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Seconds after which a process is ended. Interpreters take longer for the longest programs.
const LIMIT: f64 = 10.0;

/// Seconds after which a process of several long calls is ended.
const CALLS_LIMIT: f64 = 60.0;

/// Calls of a function under [`Measure::Iterations`].
const ITERATIONS: u32 = 20;

/// Calls of a function under [`Measure::First`]: the first call, and further calls that show the
/// steady state.
const FIRST: u32 = 3;

/// The subject of a block of samples.
#[derive(Clone, Copy, Debug)]
enum Subject {
    Program(&'static Program),
    Function(&'static KernelFunction, Measure),
}

impl Subject {
    fn label(self) -> String {
        match self {
            Subject::Program(program) => program.label(),
            Subject::Function(function, _) => function.label(),
        }
    }

    fn measure(self) -> Measure {
        match self {
            Subject::Program(_) => Measure::Process,
            Subject::Function(_, measure) => measure,
        }
    }

    fn module(self) -> (&'static str, &'static str) {
        match self {
            Subject::Program(program) => (program.module, program.route),
            Subject::Function(function, _) => (function.module, function.route),
        }
    }
}

/// One program in one round: all engines in turn.
#[derive(Clone, Copy, Debug)]
struct RoundBlock {
    subject: Subject,
    cores: u32,
    round: u32,
}

/// The samples taken, and the number of samples left.
#[derive(Clone, Debug)]
pub(super) struct Campaign {
    /// All samples, including the samples of the file.
    pub(super) samples: Samples,
    /// The blocks that the time did not suffice for.
    pub(super) left: usize,
    /// The differences between outputs of engines.
    pub(super) unlike: Vec<String>,
    /// The modules that are not built.
    pub(super) missing: Vec<String>,
}

/// Takes the samples that are missing, and appends it to the file.
///
/// # Errors
/// If a process cannot be started or fails, or the file cannot be written.
pub(super) fn measure(
    arguments: &EnginesArguments,
    commands: &Commands,
    samples: Samples,
) -> Result<Campaign, String> {
    let begun = Instant::now();
    let empty = empty_module()?;
    let measuring = Measuring { arguments, commands, empty: empty.path().to_owned() };
    let (unlike, missing) = (Vec::new(), measuring.missing());
    let mut measured = Campaign { samples, left: 0, unlike, missing };
    for block in measuring.blocks() {
        let contenders = measuring.contenders(block);
        let key = |contender| block.key(contender);
        if contenders.iter().all(|one| measured.samples.get(&key(*one)).is_some()) {
            continue;
        }
        let lasts = expected(&measured.samples, block, &contenders);
        let until = arguments.seconds.map_or(f64::INFINITY, f64::from);
        if measured.left > 0 || begun.elapsed().as_secs_f64() + lasts > until {
            measured.left += 1;
            continue;
        }
        let made = measuring.block(block, &contenders, &mut measured)?;
        if let Some(file) = &arguments.samples {
            Samples::append(file, &made)?;
        }
        made.into_iter().for_each(|sample| measured.samples.insert(sample));
    }
    Ok(measured)
}

impl RoundBlock {
    fn key(self, contender: Contender) -> Key {
        Key {
            measure: self.subject.measure(),
            program: self.subject.label(),
            cores: self.cores,
            contender,
            round: self.round,
        }
    }
}

/// The module of [`EMPTY`], in a file that goes with the value.
fn empty_module() -> Result<tempfile::NamedTempFile, String> {
    let bytes = wat::parse_str(EMPTY_TEXT).map_err(|error| error.to_string())?;
    let mut file =
        tempfile::Builder::new().suffix(".wasm").tempfile().map_err(|e| e.to_string())?;
    file.write_all(&bytes).map_err(|error| error.to_string())?;
    Ok(file)
}

/// The seconds that a block probably takes: the seconds of earlier rounds, or else a guess.
fn expected(samples: &Samples, block: RoundBlock, contenders: &[Contender]) -> f64 {
    const GUESS: f64 = 3.0;
    let (measure, program) = (block.subject.measure(), block.subject.label());
    let of = |contender: &Contender| {
        let before = samples.of(measure, &program, block.cores, *contender).last();
        before.map_or(GUESS, |sample| if sample.is_over { 0.0 } else { sample.wall })
    };
    contenders.iter().map(of).sum()
}

struct Measuring<'a> {
    arguments: &'a EnginesArguments,
    commands: &'a Commands,
    empty: PathBuf,
}

impl Measuring<'_> {
    /// All subjects of a measure whose names the options choose.
    fn subjects(&self, measure: Measure) -> Vec<Subject> {
        let all: Vec<Subject> = match measure {
            Measure::Process => PROGRAMS.iter().map(Subject::Program).collect(),
            _ => FUNCTIONS.iter().map(|one| Subject::Function(one, measure)).collect(),
        };
        let is_chosen = |subject: &Subject| {
            // Differences need the empty program.
            subject.label().contains(&self.arguments.only) || subject.module().0 == EMPTY.module
        };
        all.into_iter().filter(is_chosen).collect()
    }

    fn file(&self, subject: Subject) -> PathBuf {
        let (module, route) = subject.module();
        match module == EMPTY.module {
            true => self.empty.clone(),
            false => self.arguments.corpus().module(module, route),
        }
    }

    /// The chosen modules that are not built.
    fn missing(&self) -> Vec<String> {
        let subjects = self.arguments.measures.iter().flat_map(|one| self.subjects(*one));
        let missing = subjects.filter(|subject| !self.file(*subject).exists());
        let mut names: Vec<String> = missing
            .map(|subject| subject.module())
            .map(|(module, route)| format!("{module}.{route}"))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// The blocks in the order of measuring. Rounds are outermost, so that they spread over the
    /// whole time.
    fn blocks(&self) -> Vec<RoundBlock> {
        let mut blocks = Vec::new();
        for round in 0..self.arguments.rounds {
            for cores in &self.arguments.cores {
                for measure in &self.arguments.measures {
                    let subjects = self.subjects(*measure).into_iter();
                    let built = subjects.filter(|subject| self.file(*subject).exists());
                    blocks.extend(built.map(|subject| RoundBlock {
                        subject,
                        cores: *cores,
                        round,
                    }));
                }
            }
        }
        blocks
    }

    /// The chosen engines of a block, starting with a different engine in each round.
    fn contenders(&self, block: RoundBlock) -> Vec<Contender> {
        let takes_part = |one: &Contender| match (block.subject, one) {
            // With a second core, code is made beside the run.
            (_, Contender::Spot) => block.cores == 1,
            (Subject::Function(..), one) => matches!(one, Contender::Tiered | Contender::Node),
            _ => true,
        };
        let chosen = |one: &Contender| self.arguments.engines.contains(one);
        let mut contenders: Vec<Contender> =
            Contender::ALL.into_iter().filter(|one| takes_part(one) && chosen(one)).collect();
        if !contenders.is_empty() {
            let first = block.round as usize % contenders.len();
            contenders.rotate_left(first);
        }
        contenders
    }

    fn block(
        &self,
        block: RoundBlock,
        contenders: &[Contender],
        measured: &mut Campaign,
    ) -> Result<Vec<EngineSample>, String> {
        let _cores = Cores::restrict(block.cores)?;
        let mut samples: Vec<EngineSample> = Vec::new();
        let mut printed: Option<(Contender, Vec<u8>)> = None;
        for contender in contenders {
            let key = block.key(*contender);
            // A process over the limit is over it in each round.
            let earlier = measured.samples.of(key.measure, &key.program, key.cores, *contender);
            if let Some(over) = earlier.filter(|sample| sample.is_over).last() {
                samples.push(EngineSample { key, ..over.clone() });
                continue;
            }
            let ended = self.process(block, *contender)?;
            let is_over = ended.status.is_none();
            let (calls, output) = match block.subject {
                Subject::Function(..) if !is_over => calls(&ended.output)?,
                _ => (Vec::new(), ended.output),
            };
            if !is_over {
                match &printed {
                    Some((other, theirs)) if *theirs != output => {
                        measured.unlike.push(difference(&key, *other, theirs, &output));
                    }
                    Some(_) => {}
                    None => printed = Some((*contender, output)),
                }
            }
            samples.push(EngineSample {
                key,
                wall: ended.wall,
                processor: ended.processor,
                is_over,
                calls,
            });
        }
        Ok(samples)
    }

    fn process(&self, block: RoundBlock, contender: Contender) -> Result<Ended, String> {
        let file = self.file(block.subject);
        let (command, limit) = match block.subject {
            Subject::Program(program) => (self.commands.run(contender, program, &file), LIMIT),
            Subject::Function(function, measure) => {
                let (argument, calls) = match measure {
                    Measure::Iterations => (function.short, ITERATIONS),
                    _ => (function.long, FIRST),
                };
                let command = self.commands.call(contender, function, argument, calls, &file);
                (command, CALLS_LIMIT)
            }
        };
        let (module, _) = block.subject.module();
        let input = self.arguments.corpus().input(module).map(File::open).transpose();
        let input = input.map_err(|error| format!("input of {module}: {error}"))?;
        run_well(command, input.as_ref(), limit)
    }
}

/// The seconds of the calls that a process printed, and their results.
fn calls(output: &[u8]) -> Result<(Vec<f64>, Vec<u8>), String> {
    let (mut seconds, mut results) = (Vec::new(), Vec::new());
    for line in String::from_utf8_lossy(output).lines() {
        let parsed =
            line.rsplit_once(' ').and_then(|(result, time)| Some((result, time.parse().ok()?)));
        let (result, time) = parsed.ok_or_else(|| format!("no result and seconds: {line:?}"))?;
        seconds.push(time);
        results.extend_from_slice(result.as_bytes());
        results.push(b'\n');
    }
    Ok((seconds, results))
}

fn difference(key: &Key, other: Contender, theirs: &[u8], ours: &[u8]) -> String {
    let [theirs, ours] = [theirs, ours].map(String::from_utf8_lossy);
    format!(
        "{}: {} and {} disagree:\n{theirs}---\n{ours}",
        key.program,
        other.name(),
        key.contender.name()
    )
}
