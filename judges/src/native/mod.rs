//! The speed of our native code on the corpus, beside that of wasmtime, which has the same
//! Cranelift behind another front end.
//!
//! Both compile every function before the clock starts, protect memory in the same way, and run
//! alternately in fresh instances. The fastest run counts, in processor time. Every run compiles
//! the code again, so that it does not lie at one address only. Differences below a few percent
//! mean nothing.

pub mod calls;
mod peer;

use crate::arguments::NativeArguments;
use crate::engine::{Printed, process};
use crate::speed::{Measured, SpeedSubject, Timed, seconds_of_thread, start, subject, unlike};
use interp::{Limits, Options, Outcome, TraceLevel};
use ir::Module;
use jit::{Bounds, Config, Engine, Nans, Vm};
use osier::driver::{Format, NoObserver as NoDriverObserver, Vigilance, load, optimize};
use osier::native::{Eager, NoObserver};
use std::io::Write;
use std::sync::Arc;

/// Programs with sizes for which a native run takes at least half a second, real programs about two
/// seconds. Kernels first.
const PROGRAMS: &[(&str, &str)] = &[
    ("calls", "12000000"),
    ("divide", "2000000"),
    ("edit", "9500"),
    ("hash", "24000000"),
    ("mandel", "1300"),
    ("matmul", "850"),
    ("mixed", "15000000"),
    ("nbody", "6000000"),
    ("queens", "13"),
    ("scan", "50000000"),
    ("sieve", "60000000"),
    ("sort", "1200000"),
    ("stencil", "90000"),
    ("vm", "400000"),
    ("words", "400000"),
    ("bzip2", "12000000"),
    ("lua", "600"),
    ("sqlite", "120000"),
    ("zlib", "15000000"),
];

/// Bytes of stack of the thread that runs programs. Pages are committed when used.
const STACK: usize = 512 << 20;

/// The best of several runs, in seconds.
#[derive(Clone, Copy, Debug)]
struct Best {
    compile: f64,
    run: f64,
}

impl Best {
    const NONE: Best = Best { compile: f64::INFINITY, run: f64::INFINITY };

    fn take(&mut self, other: Best) {
        self.compile = self.compile.min(other.compile);
        self.run = self.run.min(other.run);
    }
}

/// The measurements of one program: wasmtime, wasmtime again, our base versions, and our versions
/// after the pipeline.
struct NativeRow {
    theirs: Best,
    again: Best,
    base: Best,
    optimized: Best,
}

/// Runs every available program of the corpus and prints a line for each. Returns `false` if
/// outputs differ or a program reports a mistake.
///
/// # Errors
/// If a module cannot be read or run, or if there is no module.
pub fn run(arguments: &NativeArguments, out: &mut (dyn Write + Send)) -> Result<bool, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, || compare(arguments, out));
        let thread = thread.map_err(|error| format!("no thread for the programs: {error}"))?;
        thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    })
}

fn compare(arguments: &NativeArguments, out: &mut dyn Write) -> Result<bool, String> {
    let mut say = |line: String| writeln!(out, "{line}").map_err(|e| e.to_string());
    say(format!(
        "{:<12}{:>10}{:>8}{:>10}{:>8}{:>10}{:>8}{:>14}{:>10}{:>10}",
        "program",
        "theirs, s",
        "again",
        "base, s",
        "ratio",
        &arguments.pipeline,
        "ratio",
        "compile: they",
        "base",
        &arguments.pipeline
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
            let NativeRow { theirs, again, base, optimized } = &row;
            say(format!(
                "{:<12}{:>10.4}{:>8.3}{:>10.4}{:>8.3}{:>10.4}{:>8.3}{:>14.3}{:>10.3}{:>10.3}",
                subject.name,
                theirs.run,
                again.run / theirs.run,
                base.run,
                base.run / theirs.run,
                optimized.run,
                optimized.run / theirs.run,
                theirs.compile,
                base.compile,
                optimized.compile
            ))?;
            rows.push((route, row));
        }
    }
    if rows.is_empty() && alike {
        return Err("there is no program to run".to_owned());
    }
    for route in ["m2r", "o2", ""] {
        let chosen: Vec<&NativeRow> =
            rows.iter().filter(|(r, _)| r.contains(route)).map(|(_, row)| row).collect();
        if !chosen.is_empty() {
            say(summary(
                if route.is_empty() { "both routes" } else { route },
                &chosen,
                &arguments.pipeline,
            ))?;
        }
    }
    Ok(alike)
}

fn summary(route: &str, rows: &[&NativeRow], pipeline: &str) -> String {
    let mean_and_worst = |of: fn(&NativeRow) -> f64| {
        let ratios: Vec<f64> = rows.iter().map(|row| of(row) / row.theirs.run).collect();
        let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp();
        format!("{mean:.3}, highest {:.3}", ratios.iter().copied().fold(0.0, f64::max))
    };
    format!(
        "{route}: {} programs, geometric mean of ratios: base {}; {pipeline} {}; wasmtime with itself {}",
        rows.len(),
        mean_and_worst(|row| row.base.run),
        mean_and_worst(|row| row.optimized.run),
        mean_and_worst(|row| row.again.run),
    )
}

fn measure(
    arguments: &NativeArguments,
    subject: &SpeedSubject,
) -> Result<Measured<NativeRow>, String> {
    let base = load(Format::Wasm, &subject.bytes).map_err(|e| e.in_file(&subject.name))?;
    let pipeline = passes::parse(&arguments.pipeline).map_err(|e| e.to_string())?;
    let optimized =
        Arc::new(optimize(&base, &pipeline, Vigilance::Off, &mut NoDriverObserver).module);
    let base = Arc::new(base);
    let mut row = NativeRow {
        theirs: Best::NONE,
        again: Best::NONE,
        base: Best::NONE,
        optimized: Best::NONE,
    };
    for _ in 0..arguments.corpus.runs {
        let runs = [
            peer::run(subject, arguments)?,
            run_ours(&base, subject, arguments)?,
            peer::run(subject, arguments)?,
            run_ours(&optimized, subject, arguments)?,
        ];
        for (best, (compile, timed)) in
            [&mut row.theirs, &mut row.base, &mut row.again, &mut row.optimized]
                .into_iter()
                .zip(&runs)
        {
            if let Some(what) = unlike(&timed.printed, &runs[0].1.printed) {
                return Ok(Measured::Unlike(what));
            }
            best.take(Best { compile: *compile, run: timed.seconds });
        }
    }
    Ok(Measured::Alike(row))
}

/// Compiles every function and runs the program. Returns the seconds of compilation, and the run.
fn run_ours(
    module: &Arc<Module>,
    subject: &SpeedSubject,
    arguments: &NativeArguments,
) -> Result<(f64, Timed), String> {
    let bounds = if arguments.checked { Bounds::Checked } else { Bounds::Guarded };
    let nans = if arguments.canonical { Nans::Canonical } else { Nans::Platform };
    let config = Config { bounds, nans, ..Config::default() };
    let engine = Engine::new(config).map_err(|e| e.to_string())?;
    let options = Options { poison: false, track_memory: false, trace: TraceLevel::Off };
    let mut vm = Vm::new(&engine, module, Limits::default(), options).map_err(|e| e.to_string())?;
    vm.set_tiering(Box::new(Eager::new(NoObserver)));
    let begun = seconds_of_thread();
    for (func, _) in module.defined() {
        vm.demand(func).map_err(|e| e.to_string())?;
    }
    let compile = seconds_of_thread() - begun;
    let printed = Printed::default();
    let mut wasi = process(&subject.args, &subject.stdin, &printed);
    let entry = start(module)?;
    let begun = seconds_of_thread();
    let outcome = vm.invoke(entry, &[], &mut wasi);
    let seconds = seconds_of_thread() - begun;
    match outcome {
        Ok(Outcome::Returned(_) | Outcome::Exited(0)) => {
            Ok((compile, Timed { seconds, printed: printed.take() }))
        }
        Ok(other) => Err(format!("ours: {other}")),
        Err(error) => Err(format!("ours: {error}")),
    }
}
