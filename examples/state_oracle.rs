//! Puts mappings to the state oracle: runs programs in two versions side by side, fires entries of both
//! directions, and compares every value provided with the target version's own.
//!
//!     cargo run --release --example state_oracle -- --generated 1000 --wasm 'tests/corpus/sort.wasm 500'
//!
//! Prints figures as JSON, divergences on standard error, and ends with status 1 if there are any.

use clap::Parser;
use ir::edit::ActionLog;
use ir::interp::{Host, HostError, Limits, Memories, NoHost};
use ir::mapping::Mapping;
use ir::module::ImportName;
use ir::{Func, Function, Inst, Module};
use osier::driver::{Format, NoObserver, Vigilance, derive, load};
use osr::{Level, VersionPair, synthesize};
use passes::Pipeline;
use std::collections::BTreeSet;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use verify::generate::{Weights, generate};
use verify::state_oracle::{FunctionPair, Oracle, OracleOptions, Policy, Report};
use wasm::wasi::Wasi;

/// Runs programs in two versions side by side and compares the state at every transition
#[derive(Debug, Parser)]
struct Args {
    /// A WebAssembly program and its arguments, with blanks between them; any number of times
    #[arg(long, value_name = "FILE ARGS")]
    wasm: Vec<String>,
    /// Generated programs
    #[arg(long, value_name = "N", default_value_t = 0)]
    generated: u64,
    /// The size of generated programs, in instructions of the main function
    #[arg(long, value_name = "N", default_value_t = 150)]
    size: u32,
    /// The seed of the first generated program; the others follow
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// What WebAssembly programs read from their standard input
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// The passes that make the other version; any number of times, generated programs take turns
    #[arg(long, value_name = "P", default_value = passes::registry::DEFAULT, value_parser = passes::parse)]
    pipeline: Vec<Pipeline>,
    /// Of WebAssembly programs: this many visits of each point are compared in any case
    #[arg(long, value_name = "N", default_value_t = 8)]
    first: u32,
    /// Of WebAssembly programs: of the gaps between anchors beyond that, one in this many is compared
    #[arg(long, value_name = "N", default_value_t = 1000)]
    one_in: u32,
    /// Instructions each version of a program may execute
    #[arg(long, value_name = "N", default_value_t = 1 << 32)]
    fuel: u64,
}

/// A WASI process that can be copied in the middle of its run, input read so far and all: the oracle goes
/// on in copies. What it prints is dropped; that it prints the same is seen in the trace of its calls.
#[derive(Clone)]
struct Process {
    args: Vec<String>,
    input: Cursor<Arc<[u8]>>,
}

impl Host for Process {
    fn call(
        &mut self,
        import: &ImportName,
        func: Func,
        args: &[u64],
        memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        let mut wasi = Wasi::new(self.args.clone(), &mut self.input, io::sink(), io::sink());
        wasi.call(import, func, args, memories, results)
    }
}

/// A version derived from another, and the mappings both ways.
struct Derived {
    func: Func,
    function: Function,
    anchors: BTreeSet<Inst>,
    forward: Mapping,
    backward: Mapping,
}

impl Derived {
    fn pair<'a>(&'a self, module: &'a Module) -> FunctionPair<'a> {
        let Derived { func, function, anchors, forward, backward } = self;
        let before = module.body(*func).expect("a function that was derived from");
        FunctionPair { func: *func, before, after: function, anchors, forward, backward }
    }
}

/// The figures of one kind of program.
#[derive(Default)]
struct Figures {
    programs: u64,
    pairs: u64,
    entries: u64,
    fired: u64,
    report: Report,
}

impl Figures {
    fn add(&mut self, other: &Figures) {
        self.programs += other.programs;
        self.pairs += other.pairs;
        self.entries += other.entries;
        self.fired += other.fired;
        self.report.add(&other.report);
    }

    fn json(&self) -> serde_json::Value {
        let total = self.report.total();
        let share = |part: u64, all: u64| (all > 0).then(|| part as f64 / all as f64);
        serde_json::json!({
            "programs": self.programs,
            "pairs": self.pairs,
            "entries": self.entries,
            "entries_fired": self.fired,
            "runs": self.report.runs,
            "trapped": self.report.trapped,
            "exhausted": self.report.exhausted,
            "transitions": total.transitions,
            "forward": self.report.forward.transitions,
            "backward": self.report.backward.transitions,
            "with_chi": share(total.with_code, total.transitions),
            "in_loops": share(total.in_loops, total.transitions),
            "compared": total.compared,
            "compared_mean": share(total.compared, total.transitions),
            "going_on": total.going_on,
            "going_on_exhausted": total.going_on_exhausted,
            "divergences": self.report.divergence_count,
        })
    }
}

/// Every function a pipeline changes, with the mappings both ways at `avail`.
fn derived(module: &Module, pipeline: &Pipeline) -> Vec<Derived> {
    let mut all = Vec::new();
    for (func, base) in module.defined() {
        let derived = derive(module, base, pipeline, Vigilance::On, &mut NoObserver);
        if !derived.log.is_empty() {
            all.push(mapped(func, base, derived.function, &derived.log));
        }
    }
    all
}

fn mapped(func: Func, base: &Function, function: Function, log: &ActionLog) -> Derived {
    let pair = VersionPair::new(base, &function, log).expect("the driver has replayed the log");
    let anchors = pair.bounding_anchors().collect();
    let synthesis = synthesize(&pair, Level::Avail);
    let (forward, backward) = (synthesis.forward.mapping, synthesis.backward.mapping);
    Derived { func, function, anchors, forward, backward }
}

/// Runs a function of a module, once with each list of arguments.
fn judge<H: Host + Clone>(
    module: &Module,
    pipeline: &Pipeline,
    options: OracleOptions,
    (func, arguments): (Func, &[Vec<u64>]),
    host: &H,
) -> Figures {
    let derived = derived(module, pipeline);
    let pairs: Vec<FunctionPair<'_>> = derived.iter().map(|d| d.pair(module)).collect();
    let mut oracle = Oracle::new(module, &pairs, options).expect("mappings between the versions they are given with");
    arguments.iter().for_each(|args| oracle.run(func, args, host));
    let (fired, entries) = oracle.coverage();
    Figures {
        programs: 1,
        pairs: pairs.len() as u64,
        entries: entries as u64,
        fired: fired as u64,
        report: oracle.report().clone(),
    }
}

/// One generated program, every visit.
fn generated(args: &Args, index: u64) -> Figures {
    let seed = args.seed + index;
    let program = generate(seed, args.size, &Weights::default());
    let pipeline = &args.pipeline[index as usize % args.pipeline.len()];
    let options = OracleOptions {
        limits: Limits { fuel: 2 * program.steps + 1000, ..Limits::default() },
        seed,
        ..OracleOptions::default()
    };
    let figures = judge(&program.module, pipeline, options, (program.main, &program.arguments), &NoHost);
    tell(&figures, &format!("generated program: --seed {seed} --size {} --generated 1, {pipeline:?}", args.size));
    figures
}

/// One WebAssembly program, a sample of its visits.
fn compiled(args: &Args, command: &str, pipeline: &Pipeline) -> Result<Figures, String> {
    let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    let path = words.first().ok_or("a program is FILE ARGS")?;
    let read = |path: &Path| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    let bytes = read(Path::new(path))?;
    let module = load(Format::Wasm, &bytes).map_err(|e| e.in_file(path))?;
    let start = module.lookup("_start").ok_or_else(|| format!("{path}: no _start"))?;
    let options = OracleOptions {
        policy: Policy::Sampled { first: args.first, one_in: args.one_in },
        limits: Limits { fuel: args.fuel, ..Limits::default() },
        seed: args.seed,
        ..OracleOptions::for_long_runs()
    };
    let input = args.stdin.as_deref().map_or(Ok(Vec::new()), read)?;
    let host = Process { args: words.clone(), input: Cursor::new(input.into()) };
    let figures = judge(&module, pipeline, options, (start, &[Vec::new()]), &host);
    tell(&figures, &format!("{command}, {pipeline:?}"));
    Ok(figures)
}

#[allow(clippy::print_stderr)] // this is a command
fn tell(figures: &Figures, what: &str) {
    for divergence in &figures.report.divergences {
        eprintln!("{what}:\n{divergence}");
    }
}

#[allow(clippy::print_stdout, clippy::print_stderr)] // this is a command
fn main() -> ExitCode {
    let args = Args::parse();
    let started = Instant::now();
    let (mut corpus, mut random) = (Figures::default(), Figures::default());
    for command in &args.wasm {
        for pipeline in &args.pipeline {
            match compiled(&args, command, pipeline) {
                Ok(figures) => corpus.add(&figures),
                Err(message) => {
                    eprintln!("{message}");
                    return ExitCode::from(2);
                }
            }
        }
    }
    (0..args.generated).for_each(|index| random.add(&generated(&args, index)));
    let mut all = Figures::default();
    all.add(&corpus);
    all.add(&random);
    let seconds = started.elapsed().as_secs_f64();
    let json = serde_json::json!({
        "schema": 1,
        "corpus": corpus.json(),
        "generated": random.json(),
        "all": all.json(),
        "seconds": seconds,
    });
    println!("{json:#}");
    ExitCode::from(u8::from(all.report.divergence_count > 0))
}
