//! Calls of a function value in a hot loop: four integrators (`examples/feval/feval.c`) of a
//! function that they call through a pointer, beside the call of one function written by hand.
//!
//!     cargo run --release --example feval [STEPS]
//!
//! A row of the landing table at the loop assumes the function that the loop has called so far, so
//! the call becomes a direct one. The run enters the row in the middle of the loop. A later call
//! with another function leaves the row at its start, for a row of that function.
//!
//! Each figure is nanoseconds a step, the median of several machines in which all ways take turns.

use osier::interp::{Limits, NoHost, Options};
use osier::ir::{Func, Module, Point};
use osier::jit::{Config, Engine, Vm};
use osier::landing::LandingRow;
use osier::passes;
use osier::speculate::SuggestOptions;
use osier::tiers::{Compiled, Observer, Tiered};
use osier::{Format, load};
use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const NAMES: [&str; 4] = ["euler", "midpoint", "runge_kutta", "anneal"];

/// The steps of a call, unless the command line says otherwise.
const STEPS: u64 = 2_000_000;

/// The machines of each way.
const MACHINES: usize = 9;

/// The functions of the table that calls pass, in turns: the first call enters the loop in the
/// middle, and the third changes the function.
const FUNCTIONS: [u64; 4] = [0, 0, 1, 0];

/// Counts rows.
#[derive(Clone, Default)]
struct RowCount(Arc<AtomicUsize>);

impl Observer for RowCount {
    fn step(&mut self, _: Option<osier::driver::Step>) {}
    fn begin(&mut self) {}
    fn compiled(&mut self, _: Compiled) {}

    fn row(&mut self, _: Func, _: Point, _: &LandingRow) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// How the loop calls its function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Through the table.
    Generic,
    /// Through the table, and the code assumes which function it is.
    Assuming,
    /// Directly, as it is written.
    ByHand,
}

const WAYS: [Way; 3] = [Way::Generic, Way::Assuming, Way::ByHand];

/// Four calls in a new machine.
struct CallTimes {
    /// The nanoseconds a step of each call.
    times: [f64; 4],
    results: [u64; 4],
    /// The number of rows made.
    rows: usize,
}

fn run(
    engine: &Engine,
    module: &Arc<Module>,
    name: &str,
    way: Way,
    steps: u64,
) -> Result<CallTimes, Box<dyn Error>> {
    let name = if way == Way::ByHand { format!("direct_{name}") } else { name.to_owned() };
    let func = module.lookup(&name).ok_or("the module exports it")?;
    let mut vm = Vm::new(engine, module, Limits::default(), Options::default())?;
    let rows = RowCount::default();
    let tiered = Tiered::new_observed(500, passes::parse("O2")?, rows.clone());
    let options = SuggestOptions { visits: 100, ..SuggestOptions::default() };
    if way == Way::Assuming {
        vm.machine_mut().count();
        vm.set_tiering(Box::new(tiered.profiling(options)));
    } else {
        vm.set_tiering(Box::new(tiered));
    }
    let (mut times, mut results) = ([0.0; 4], [0; 4]);
    for (call, of) in FUNCTIONS.iter().enumerate() {
        let begun = Instant::now();
        let outcome = vm.invoke(func, &[*of, 2.0_f64.to_bits(), steps], &mut NoHost)?;
        times[call] = begun.elapsed().as_secs_f64() * 1e9 / steps as f64;
        results[call] = outcome.returned().ok_or("it returns")?[0];
    }
    Ok(CallTimes { times, results, rows: rows.0.load(Ordering::Relaxed) })
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let module = Arc::new(load(Format::Wasm, include_bytes!("feval/feval.wasm"))?);
    let engine = Engine::new(Config::default())?;
    let steps = std::env::args().nth(1).map_or(Ok(STEPS), |steps| steps.parse())?;
    let mut out = io::stdout();
    writeln!(out, "ns a step in call 1 (entered in the middle), 2, 3 (another function), 4")?;
    for name in NAMES {
        let mut times = [const { Vec::new() }; 3];
        let mut made = 0;
        for _ in 0..MACHINES {
            let mut generic = [0; 4];
            for (way, times) in WAYS.iter().zip(&mut times) {
                let took = run(&engine, &module, name, *way, steps)?;
                let (results, rows) = (took.results, took.rows);
                times.push(took.times);
                match way {
                    Way::Generic => generic = results,
                    Way::Assuming => assert_eq!(results, generic, "{name}"),
                    Way::ByHand => assert_eq!(results[0], generic[0], "{name}"),
                }
                made = made.max(rows);
            }
        }
        let of =
            |way: usize, call: usize| median(times[way].iter().map(|took| took[call]).collect());
        for (way, label) in ["generic", "assuming", "by hand"].iter().enumerate() {
            let [a, b, c, d] = [0, 1, 2, 3].map(|call| of(way, call));
            writeln!(out, "{name:12} {label:9} {a:6.2} {b:6.2} {c:6.2} {d:6.2}")?;
        }
        let gain = |call: usize| of(0, call) / of(1, call);
        let hand = |call: usize| of(2, call) / of(1, call);
        writeln!(
            out,
            "{name:12} generic / assuming {:.2} {:.2} {:.2} {:.2}; by hand / assuming {:.2} {:.2} \
             {:.2}; {made} rows",
            gain(0),
            gain(1),
            gain(2),
            gain(3),
            hand(0),
            hand(1),
            hand(3)
        )?;
    }
    Ok(())
}
