//! The speed of our native code on the corpus, beside wasmtime, which has the same Cranelift behind
//! another front end.
//!
//! Both compile every function before the clock starts, protect memory in the same way, and run
//! alternately in fresh instances. Times are of the processor, and ratios of one round. Every run
//! compiles the code again, so that its address varies.

pub mod calls;
pub(crate) mod peer;

use crate::arguments::{NativeArguments, TableFormat};
use crate::engine::{Printed, process};
use crate::figures::table::{FigureTable, FigureUnit};
use crate::figures::{Series, ratios};
use crate::speed::{Measured, SpeedSubject, Timed, seconds_of_thread, start, subject, unlike};
use interp::{Limits, Options, Outcome};
use ir::Module;
use jit::{Bounds, Config, Engine, Nans, Vm};
use osier::driver::{NoObserver as NoDriverObserver, Vigilance, optimize};
use osier::tiers::{Eager, NoObserver};
use osier::{Format, load};
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

/// The seconds of one engine, by round.
#[derive(Clone, Default, Debug)]
struct Times {
    compile: Series,
    run: Series,
}

/// The measurements of one program: wasmtime, our base versions, wasmtime again, and our versions
/// after the pipeline, in the order of a round.
#[derive(Clone, Default, Debug)]
struct NativeRow([Times; 4]);

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
    let (mut rows, mut alike) = (Vec::new(), true);
    for (name, size) in PROGRAMS {
        for route in ["m2r", "o2"] {
            let Some(subject) = subject(&arguments.corpus, name, route, size)? else {
                if arguments.corpus.chosen(name, route) {
                    say(format!("{name}.{route}: not built (tests/corpus/build programs)"))?;
                }
                continue;
            };
            match measure(arguments, &subject).map_err(|e| format!("{}: {e}", subject.name))? {
                Measured::Alike(row) => rows.push((subject.name, row)),
                Measured::Unlike(what) => {
                    say(format!("{}: {what}", subject.name))?;
                    alike = false;
                }
            }
        }
    }
    if rows.is_empty() && alike {
        return Err("there is no program to run".to_owned());
    }
    let tables = [runs(&rows, &arguments.pipeline), compilation(&rows, &arguments.pipeline)];
    match arguments.format {
        TableFormat::Text => tables.iter().try_for_each(|table| say(table.to_string()))?,
        TableFormat::Json => {
            say(serde_json::to_string_pretty(&tables).map_err(|error| error.to_string())?)?
        }
    }
    Ok(alike)
}

/// The table of steady state: ratios to wasmtime, and of the optimized versions to the base.
fn runs(rows: &[(String, NativeRow)], pipeline: &str) -> FigureTable {
    let ratio = |name: &str| (name.to_owned(), FigureUnit::Ratio);
    let versions = format!("{pipeline}/base");
    let columns = [ratio("again"), ratio("base"), ratio(pipeline), ratio(&versions)];
    let columns = std::iter::once(("wasmtime".to_owned(), FigureUnit::Seconds)).chain(columns);
    let title =
        "Steady state: processor time by that of wasmtime, with wasmtime again as the noise";
    let mut table = FigureTable::new(title, columns.collect());
    for (name, NativeRow([theirs, base, again, optimized])) in rows {
        let [theirs, base, again, optimized] = [theirs, base, again, optimized].map(|t| &t.run);
        let by_theirs = [again, base, optimized].map(|ours| ratios(ours, theirs));
        let figures = std::iter::once(theirs.clone()).chain(by_theirs);
        table.push(name, figures.chain([ratios(optimized, base)]).collect());
    }
    table.mean("geometric mean", |_| true);
    for route in ["m2r", "o2"] {
        table.mean(&format!("  of {route}"), |name| name.ends_with(route));
    }
    table.worst(1.0, |_| true);
    table
}

fn compilation(rows: &[(String, NativeRow)], pipeline: &str) -> FigureTable {
    let columns = ["wasmtime", "base", pipeline].map(|name| (name.to_owned(), FigureUnit::Seconds));
    let mut table = FigureTable::new("Compilation of all functions", columns.into());
    for (name, NativeRow([theirs, base, _, optimized])) in rows {
        let figures = [theirs, base, optimized].map(|times| times.compile.clone());
        table.push(name, figures.into());
    }
    table
}

fn measure(
    arguments: &NativeArguments,
    subject: &SpeedSubject,
) -> Result<Measured<NativeRow>, String> {
    let base = load(Format::Wasm, &subject.bytes).map_err(|e| e.in_file(&subject.name))?;
    let pipeline = passes::parse(&arguments.pipeline).map_err(|e| e.to_string())?;
    let optimized = Arc::new(optimize(&base, &pipeline, Vigilance::Off, &mut NoDriverObserver));
    let base = Arc::new(base);
    let mut row = NativeRow::default();
    for round in 0..arguments.corpus.runs {
        let runs = [
            peer::run(subject, arguments)?,
            run_ours(&base, subject, arguments)?,
            peer::run(subject, arguments)?,
            run_ours(&optimized, subject, arguments)?,
        ];
        for (times, (compile, timed)) in row.0.iter_mut().zip(&runs) {
            if let Some(what) = unlike(&timed.printed, &runs[0].1.printed) {
                return Ok(Measured::Unlike(what));
            }
            times.compile.insert(round, *compile);
            times.run.insert(round, timed.seconds);
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
    let options = Options::default();
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
