//! The growth of time with the size of one function. The program doubles a generated function again
//! and again, and times import, optimization, mapping, certification and checking in one process.
//!
//!     cargo run --release --example growth -- --doublings 8
//!     cargo run --release --example growth -- --shape chain
//!     cargo run --release --example growth -- --programs sqlite.m2r.wasm
//!     cargo run --release --example growth -- --shape interpreter --at
//!
//! With `--at` it maps one point alone, the header of the largest loop, like a tiered engine. The
//! last column is then the time of this entry, certificate and check included, as a share of the
//! time of the optimization.
//!
//! It prints a line per size, or with `--programs` a line per range of sizes of the functions of
//! real programs, summed up. A line has the instructions, the seconds of each step, and the factor
//! of growth from the size before. A factor near 2 is linear growth, one near 4 quadratic. Each
//! step runs several times and the fastest counts; the shortest times are still mostly noise.

mod shapes;

use certify::Certifier;
use check::relate;
use check::verdict::{Options, Verdict};
use clap::Parser;
use ir::loops::LoopForest;
use ir::{Function, Module, Point};
use osier::driver::{NoObserver, Vigilance, derive};
use osier::{Format, Limits, load, load_within};
use osr::{Level, Synthesis, VersionPair, synthesize, synthesize_at};
use passes::Pipeline;
use shapes::Shape;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use transition::{Pair, Side};

/// Times import, optimizing and mapping of a function doubled again and again
#[derive(Debug, Parser)]
struct Args {
    /// The shape of the function
    #[arg(long, value_name = "SHAPE", default_value = "loops")]
    shape: Shape,
    /// Take the functions of these programs instead, by size
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["shape", "doublings", "units"])]
    programs: Vec<PathBuf>,
    /// The number of doublings
    #[arg(long, value_name = "N", default_value_t = 8)]
    doublings: u32,
    /// Map the header of the largest loop alone
    #[arg(long)]
    at: bool,
    /// With --programs, functions of at least this many instructions
    #[arg(long, value_name = "N", default_value_t = 0, requires = "programs")]
    least: usize,
    /// Copies of the unit in the smallest function
    #[arg(long, value_name = "N", default_value_t = 4)]
    units: u32,
    /// Runs of each step; the fastest counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: u32,
}

/// Seconds of each step for functions of one size.
#[derive(Clone, Copy, Default)]
struct Sample {
    functions: usize,
    instructions: usize,
    seconds: [f64; STEPS.len()],
}

const STEPS: [&str; 6] = ["import", "optimize", "facts", "map", "certify", "check"];

impl Sample {
    /// Adds the times and sizes of further functions.
    fn add(&mut self, other: &Sample) {
        self.functions += other.functions;
        self.instructions += other.instructions;
        self.seconds.iter_mut().zip(other.seconds).for_each(|(sum, s)| *sum += s);
    }

    /// Keeps the smaller time of each step.
    fn keep_fastest(&mut self, other: &Sample) {
        self.seconds.iter_mut().zip(other.seconds).for_each(|(least, s)| *least = least.min(s));
    }
}

/// The header of the loop with the most blocks.
fn largest_loop(function: &Function) -> Option<Point> {
    let forest = LoopForest::of(function);
    let largest = forest.loops().max_by_key(|l| forest.blocks(*l).len())?;
    Some(Point::before(function.first_inst(forest.header(largest))))
}

/// The entries of all points, or of the header of the largest loop alone.
fn synthesis(pair: &VersionPair<'_>, function: &Function, at: bool) -> Synthesis {
    match at {
        true => {
            let asked = largest_loop(function).into_iter().collect();
            synthesize_at(pair, Level::Avail, &Pair::new(asked, BTreeSet::new()))
        }
        false => synthesize(pair, Level::Avail),
    }
}

/// All steps once, for a module with one function.
fn once(bytes: &[u8], at: bool) -> Result<Sample, String> {
    let begun = Instant::now();
    // Shapes of a million instructions need more than the default.
    let mut limits = Limits::default();
    limits.import.base_bytes = 4 << 30;
    let module: Module =
        load_within(Format::Wasm, bytes, &limits).map_err(|e| e.in_file("the generated module"))?;
    let import = begun.elapsed().as_secs_f64();
    let (_, function) = module.defined().next().ok_or("the generated module has no function")?;
    let mut sample = steps(&module, function, at)?;
    sample.seconds[0] = import;
    Ok(sample)
}

/// All steps but import, for one function.
fn steps(module: &Module, function: &Function, at: bool) -> Result<Sample, String> {
    let mut sample =
        Sample { functions: 1, instructions: function.inst_count(), ..Sample::default() };
    let mut begun = Instant::now();
    let mut take = |step: usize| {
        sample.seconds[step] = begun.elapsed().as_secs_f64();
        begun = Instant::now();
    };
    let derived = derive(module, function, &Pipeline::default(), Vigilance::Off, &mut NoObserver);
    take(1);
    let pair =
        VersionPair::new(function, &derived.function, &derived.log).map_err(|e| e.to_string())?;
    take(2);
    let synthesis = synthesis(&pair, function, at);
    take(3);
    let common = pair.correspondence();
    let mut certifier = Certifier::new(&common);
    let facts = certifier.facts(Side::Before, &synthesis.forward.mapping);
    let certificate = certifier.into_certificate();
    take(4);
    let relation =
        relate(module, Pair::new(function, &derived.function), &certificate, Options::default());
    let relation = relation.map_err(|verdict| verdict.to_string())?;
    let (mapping, armed) = (&synthesis.forward.mapping, &synthesis.backward.mapping);
    let verdicts = relation.judge(Side::Before, mapping, &facts, &[armed]);
    take(5);
    if verdicts.iter().any(Verdict::is_refuted) {
        return Err(format!("@{} has entries that are refuted", function.name()));
    }
    Ok(sample)
}

fn line(sample: &Sample, previous: Option<&Sample>) -> String {
    let mut line = format!("{:>9} {:>9}", sample.functions, sample.instructions);
    for step in 0..STEPS.len() {
        let _ = write!(line, " {:>9.4}", sample.seconds[step]);
        match previous {
            Some(p) => {
                let _ = write!(line, " x{:<4.1}", sample.seconds[step] / p.seconds[step]);
            }
            None => line.push_str("      "),
        }
    }
    let made: f64 = sample.seconds[2..].iter().sum();
    let _ = write!(line, " {:>6.2}", made / sample.seconds[1]);
    line
}

/// Prints the times of generated functions.
fn doubled(args: &Args, say: &mut impl FnMut(String) -> Result<(), String>) -> Result<(), String> {
    let mut previous: Option<Sample> = None;
    for doubling in 0..=args.doublings {
        let units = args.units.checked_shl(doubling).ok_or("too many doublings")?;
        let bytes = args.shape.program(units).map_err(|e| e.to_string())?;
        let mut sample = once(&bytes, args.at)?;
        for _ in 1..args.runs {
            sample.keep_fastest(&once(&bytes, args.at)?);
        }
        say(line(&sample, previous.as_ref()))?;
        previous = Some(sample);
    }
    Ok(())
}

/// Prints the times of the functions of programs, summed by size. Each line has the functions of up
/// to twice the size of the line before. The last column is microseconds per instruction, over all
/// steps.
fn by_size(args: &Args, say: &mut impl FnMut(String) -> Result<(), String>) -> Result<(), String> {
    let mut sizes: BTreeMap<u32, Sample> = BTreeMap::new();
    for path in &args.programs {
        let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let module =
            load(Format::Wasm, &bytes).map_err(|e| e.in_file(&path.display().to_string()))?;
        let large = |f: &Function| f.inst_count() >= args.least;
        for (_, function) in module.defined().filter(|(_, f)| large(f)) {
            let mut sample = steps(&module, function, args.at)?;
            for _ in 1..args.runs {
                sample.keep_fastest(&steps(&module, function, args.at)?);
            }
            sizes.entry(sample.instructions.max(1).ilog2()).or_default().add(&sample);
        }
    }
    for sample in sizes.values() {
        let each = 1e6 * sample.seconds.iter().sum::<f64>() / sample.instructions as f64;
        say(format!("{} {each:>8.1} us each", line(sample, None)))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(io::stderr(), "growth: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    let mut out = io::stdout().lock();
    let mut say = |text: String| writeln!(out, "{text}").map_err(|e| e.to_string());
    let heads: String = STEPS.iter().map(|s| format!(" {s:>9}      ")).collect();
    say(format!(
        "functions     insts{heads} share (seconds, factor; all but import and optimize, by optimize)"
    ))?;
    if args.programs.is_empty() { doubled(args, &mut say) } else { by_size(args, &mut say) }
}
