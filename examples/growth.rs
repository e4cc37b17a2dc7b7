//! How time grows with the size of one function: a generated function is doubled again and again, and import,
//! optimizing and mapping are timed in one run.
//!
//!     cargo run --release --example growth -- --doublings 8
//!
//! Prints a line per size: instructions, seconds of each step, and by what factor each grew from the
//! size before. A factor near 2 is linear growth, one near 4 quadratic. Each step is run several times and
//! the fastest counts; the shortest times are still mostly noise.

use clap::Parser;
use ir::Module;
use osier::driver::{Format, NoObserver, Vigilance, derive, load};
use osr::{Certifier, Heading, Level, VersionPair, synthesize};
use passes::Pipeline;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Instant;
use verify::checker::relate;
use verify::state_oracle::Direction;
use verify::verdict::{Options, Verdict};

/// Times import, optimizing and mapping of a function doubled again and again
#[derive(Debug, Parser)]
struct Args {
    /// How often the function is doubled
    #[arg(long, value_name = "N", default_value_t = 8)]
    doublings: u32,
    /// Copies of the unit in the smallest function
    #[arg(long, value_name = "N", default_value_t = 4)]
    units: u32,
    /// Runs of each step, of which the fastest counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: u32,
}

/// One unit: a loop with an exit in its middle, over loads, stores and arithmetic that repeats itself, has
/// invariants and dead ends. Locals carry values from unit to unit.
const UNIT: &str = "
  (local.set 2 (i32.const 8))
  (block (loop
    (br_if 1 (i32.eqz (local.get 2)))
    (local.set 3 (i32.add (i32.mul (local.get 0) (i32.const 3)) (local.get 1)))
    (local.set 4 (i32.add (i32.mul (local.get 0) (i32.const 3)) (local.get 2)))
    (local.set 5 (i32.load offset=16 (i32.and (local.get 3) (i32.const 1020))))
    (if (i32.lt_s (local.get 5) (local.get 4))
      (then (local.set 1 (i32.add (local.get 1) (local.get 5)))
            (i32.store offset=64 (i32.and (local.get 4) (i32.const 1020)) (local.get 1)))
      (else (local.set 1 (i32.xor (local.get 1) (i32.add (local.get 4) (i32.const 7))))
            (local.set 6 (i32.add (local.get 6) (local.get 1)))))
    (br_if 1 (i32.gt_u (local.get 1) (i32.const 1000000)))
    (local.set 2 (i32.sub (local.get 2) (i32.const 1)))
    (br 0)))
  (local.set 0 (i32.add (local.get 0) (i32.const 1)))";

fn program(units: u32) -> Result<Vec<u8>, wat::Error> {
    let mut text = "(module (memory 1) (func (export \"f\") (param i32 i32) (result i32)".to_owned();
    text.push_str(" (local i32 i32 i32 i32 i32)");
    for _ in 0..units {
        text.push_str(UNIT);
    }
    text.push_str(" (i32.add (local.get 0) (local.get 1))))");
    wat::parse_str(text)
}

/// Seconds of each step for one size.
struct Sample {
    instructions: usize,
    seconds: [f64; 5],
}

const STEPS: [&str; 5] = ["import", "optimize", "map", "certify", "check"];

fn sample(bytes: &[u8], runs: u32) -> Result<Sample, String> {
    let mut best = Sample { instructions: 0, seconds: [f64::INFINITY; 5] };
    let mut take = |step: usize, begun: Instant| {
        best.seconds[step] = best.seconds[step].min(begun.elapsed().as_secs_f64());
    };
    let mut instructions = 0;
    for _ in 0..runs.max(1) {
        let begun = Instant::now();
        let module: Module = load(Format::Wasm, bytes).map_err(|e| e.in_file("the generated module"))?;
        take(0, begun);
        let (_, function) = module.defined().next().ok_or("the generated module has no function")?;
        instructions = function.inst_count();
        let begun = Instant::now();
        let derived = derive(&module, function, &Pipeline::default(), Vigilance::Off, &mut NoObserver);
        take(1, begun);
        let begun = Instant::now();
        let pair = VersionPair::new(function, &derived.function, &derived.log).map_err(|e| e.to_string())?;
        let synthesis = synthesize(&pair, Level::Avail);
        take(2, begun);
        let begun = Instant::now();
        let mut certifier = Certifier::new(&pair);
        let facts = certifier.facts(Heading::Forward, &synthesis.forward.mapping);
        let certificate = certifier.into_certificate();
        take(3, begun);
        let begun = Instant::now();
        let relation = relate(&module, [function, &derived.function], &certificate, Options::default());
        let relation = relation.map_err(|verdict| verdict.to_string())?;
        let (mapping, armed) = (&synthesis.forward.mapping, &synthesis.backward.mapping);
        let verdicts = relation.judge(Direction::Forward, mapping, &facts, &[armed]);
        take(4, begun);
        if mapping.is_empty() || !verdicts.iter().all(Verdict::holds) {
            return Err("the generated function has no entries, or some that are not proved".to_owned());
        }
    }
    best.instructions = instructions;
    Ok(best)
}

fn line(sample: &Sample, previous: Option<&Sample>) -> String {
    let mut line = format!("{:>12}", sample.instructions);
    for step in 0..STEPS.len() {
        let _ = write!(line, " {:>11.4}", sample.seconds[step]);
        match previous {
            Some(p) => {
                let _ = write!(line, " x{:<5.1}", sample.seconds[step] / p.seconds[step]);
            }
            None => line.push_str("       "),
        }
    }
    line
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
    let heads: String = STEPS.iter().map(|s| format!(" {s:>11}       ")).collect();
    say(format!("instructions{heads}  (seconds, factor)"))?;
    let mut previous: Option<Sample> = None;
    for doubling in 0..=args.doublings {
        let units = args.units.checked_shl(doubling).ok_or("too many doublings")?;
        let bytes = program(units).map_err(|e| e.to_string())?;
        let sample = sample(&bytes, args.runs)?;
        say(line(&sample, previous.as_ref()))?;
        previous = Some(sample);
    }
    Ok(())
}
