//! The speed of both engines on the corpus.
//!
//! Each engine runs each program several times, alternating with the other engine, in a fresh
//! instance every time. So both engines see the same noise, and their frames and memories lie at
//! many addresses. The fastest run counts, in processor time. Decoding and instantiation are not
//! timed. The address of an engine's own code is the same in all runs of one build and can change
//! the time by a few percent. Differences below 10 % mean nothing.

use crate::arguments::{CorpusArguments, SpeedArguments};
use crate::engine::{Printed, link, process};
use interp::{Limits, Machine, NoObserver, Options, Outcome, Program};
use ir::{Func, Module};
use osier::driver::{NoObserver as NoDriverObserver, Vigilance, optimize};
use osier::{Format, load};
use rustix::time::{ClockId, clock_gettime};
use std::io::Write;
use std::path::Path;
use wasm::wasi::Wasi;
use wasmi::{CompilationMode, Config, Engine, Linker, Store};

/// Programs with sizes for which a run takes some tenths of a second. Kernels first.
const PROGRAMS: &[(&str, &str)] = &[
    ("calls", "600000"),
    ("divide", "60000"),
    ("edit", "900"),
    ("hash", "300000"),
    ("mandel", "180"),
    ("matmul", "160"),
    ("mixed", "150000"),
    ("nbody", "80000"),
    ("queens", "10"),
    ("scan", "800000"),
    ("sieve", "900000"),
    ("sort", "100000"),
    ("stencil", "400"),
    ("vm", "20000"),
    ("words", "1000"),
    ("bzip2", "60000"),
    ("lua", "16"),
    ("sqlite", "2000"),
    ("zlib", "100000"),
];

/// One module to run.
pub(crate) struct SpeedSubject {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) args: Vec<String>,
    pub(crate) stdin: Vec<u8>,
}

/// One run: its seconds and its output.
pub(crate) struct Timed {
    pub(crate) seconds: f64,
    pub(crate) printed: Vec<u8>,
}

/// The measurements of one program.
struct SpeedRow {
    ours: f64,
    theirs: f64,
    instructions: u64,
}

/// The result of running a program several times in each engine.
pub(crate) enum Measured<R> {
    /// All runs printed the same, and the program's own check succeeded.
    Alike(R),
    /// They did not; a description with two different outputs.
    Unlike(String),
}

/// Compares the outputs of two engines with each other, and with the line that ends a correct run.
/// Returns a description of the difference.
pub(crate) fn unlike(mine: &[u8], other: &[u8]) -> Option<String> {
    if mine == other && mine.ends_with(b"OK\n") {
        return None;
    }
    let [mine, other] = [mine, other].map(String::from_utf8_lossy);
    Some(format!("the engines disagree, or the program found a mistake:\n{mine}---\n{other}"))
}

/// Runs every available program of the corpus and prints a line for each. Returns `false` if
/// outputs differ or a program reports a mistake.
///
/// # Errors
/// If a module cannot be read or run, or if there is no module.
pub fn run(arguments: &SpeedArguments, out: &mut dyn Write) -> Result<bool, String> {
    let mut say = |line: String| writeln!(out, "{line}").map_err(|e| e.to_string());
    say(format!(
        "{:<12}{:>10}{:>10}{:>8}{:>16}{:>12}",
        "program", "ours, s", "wasmi, s", "ratio", "instructions", "million/s"
    ))?;
    let (mut rows, mut alike) = (Vec::new(), true);
    for (name, size) in PROGRAMS {
        for route in ["m2r", "o2"] {
            let Some(subject) = subject(&arguments.corpus, name, route, size)? else {
                if arguments.corpus.chosen(name, route) {
                    say(format!("{name}.{route}: not built (tests/corpus/build programs)"))?;
                }
                continue;
            };
            let row =
                match measure(arguments, &subject).map_err(|e| format!("{}: {e}", subject.name))? {
                    Measured::Alike(row) => row,
                    Measured::Unlike(what) => {
                        say(format!("{}: {what}", subject.name))?;
                        alike = false;
                        continue;
                    }
                };
            let (ratio, rate) = (row.ours / row.theirs, row.instructions as f64 / row.ours / 1e6);
            let (ours, theirs, count) = (row.ours, row.theirs, row.instructions);
            say(format!(
                "{:<12}{ours:>10.4}{theirs:>10.4}{ratio:>8.2}{count:>16}{rate:>12.0}",
                subject.name
            ))?;
            rows.push((route, row));
        }
    }
    if rows.is_empty() && alike {
        return Err("there is no program to run".to_owned());
    }
    for route in ["m2r", "o2", ""] {
        let chosen: Vec<&SpeedRow> =
            rows.iter().filter(|(r, _)| r.contains(route)).map(|(_, row)| row).collect();
        if !chosen.is_empty() {
            let ratios = chosen.iter().map(|r| r.ours / r.theirs);
            let worst = ratios.clone().fold(0.0, f64::max);
            let mean = (ratios.map(f64::ln).sum::<f64>() / chosen.len() as f64).exp();
            let label = if route.is_empty() { "both routes" } else { route };
            say(format!(
                "{label}: {} programs, geometric mean of ratios {mean:.2}, highest {worst:.2}",
                chosen.len()
            ))?;
        }
    }
    Ok(alike)
}

/// The module of a program by a route; `None` if it is not selected or not built.
pub(crate) fn subject(
    corpus: &CorpusArguments,
    name: &str,
    route: &str,
    size: &str,
) -> Result<Option<SpeedSubject>, String> {
    let label = format!("{name}.{route}");
    if !corpus.chosen(name, route) {
        return Ok(None);
    }
    let file = corpus.module(name, route);
    if !file.exists() {
        return Ok(None);
    }
    let bytes = read(&file)?;
    let stdin = corpus.input(name).map(|file| read(&file)).transpose()?.unwrap_or_default();
    Ok(Some(SpeedSubject {
        name: label,
        bytes,
        args: vec![name.to_owned(), size.to_owned()],
        stdin,
    }))
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))
}

fn measure(
    arguments: &SpeedArguments,
    subject: &SpeedSubject,
) -> Result<Measured<SpeedRow>, String> {
    let mut module = load(Format::Wasm, &subject.bytes).map_err(|e| e.in_file(&subject.name))?;
    if let Some(name) = &arguments.pipeline {
        let pipeline = passes::parse(name).map_err(|e| e.to_string())?;
        module = optimize(&module, &pipeline, Vigilance::Off, &mut NoDriverObserver);
    }
    let program = Program::new(&module);
    let entry = start(&module)?;
    let mut config = Config::default();
    config.compilation_mode(CompilationMode::Eager);
    let engine = Engine::new(&config);
    let theirs = wasmi::Module::new(&engine, &subject.bytes).map_err(|e| e.to_string())?;
    let mut row = SpeedRow { ours: f64::INFINITY, theirs: f64::INFINITY, instructions: 0 };
    for _ in 0..arguments.corpus.runs {
        let (mine, instructions) = run_ours(&program, entry, subject)?;
        let other = run_theirs(&engine, &theirs, subject)?;
        if let Some(what) = unlike(&mine.printed, &other.printed) {
            return Ok(Measured::Unlike(what));
        }
        row.ours = row.ours.min(mine.seconds);
        row.theirs = row.theirs.min(other.seconds);
        row.instructions = instructions;
    }
    Ok(Measured::Alike(row))
}

/// The function `_start` of a module.
///
/// # Errors
/// If the module does not export one.
pub(crate) fn start(module: &Module) -> Result<Func, String> {
    let func =
        module.exports.iter().filter(|e| e.name == "_start").find_map(ir::module::Export::func);
    func.ok_or_else(|| "it exports no _start".to_owned())
}

/// Processor time of this thread in seconds, which excludes other programs of the machine.
pub(crate) fn seconds_of_thread() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn run_ours(
    program: &Program,
    entry: Func,
    subject: &SpeedSubject,
) -> Result<(Timed, u64), String> {
    let limits = Limits { fuel: u64::MAX, ..Limits::default() };
    let options = Options::default();
    let mut machine = Machine::with_options(program, limits, options).map_err(|e| e.to_string())?;
    let printed = Printed::default();
    let mut wasi = process(&subject.args, &subject.stdin, &printed);
    let begun = seconds_of_thread();
    let outcome = machine.invoke(entry, &[], &mut wasi, &mut NoObserver);
    let seconds = seconds_of_thread() - begun;
    match outcome {
        Outcome::Returned(_) | Outcome::Exited(0) => {
            Ok((Timed { seconds, printed: printed.take() }, u64::MAX - machine.fuel()))
        }
        other => Err(format!("ours: {other}")),
    }
}

fn run_theirs(
    engine: &Engine,
    module: &wasmi::Module,
    subject: &SpeedSubject,
) -> Result<Timed, String> {
    let printed = Printed::default();
    let mut linker: Linker<Wasi<'static>> = Linker::new(engine);
    link(&mut linker, module)?;
    let mut store = Store::new(engine, process(&subject.args, &subject.stdin, &printed));
    let instance = linker.instantiate_and_start(&mut store, module).map_err(|e| e.to_string())?;
    let entry = instance.get_func(&store, "_start").ok_or("it exports no _start")?;
    let begun = seconds_of_thread();
    let outcome = entry.call(&mut store, &[], &mut []);
    let seconds = seconds_of_thread() - begun;
    match outcome {
        Err(error) if error.i32_exit_status() != Some(0) => Err(format!("wasmi: {error}")),
        _ => Ok(Timed { seconds, printed: printed.take() }),
    }
}
