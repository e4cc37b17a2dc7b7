//! Contexts, measured: calls with constant arguments lead to rows of their callees, or all calls of
//! a function run one version.
//!
//!     cargo run --release --example contexts [RUNS [DIVISOR]]
//!
//! Runs the kernels of the corpus, and a program whose hot calls pass constants. In each run, both
//! policies take turns, each in new machines; a figure is the median of the runs. The sizes are
//! those of the corpus divided by DIVISOR.

use osier::interp::{Limits, NoHost, Options};
use osier::ir::{Func, Module, Type};
use osier::jit::{Config, Engine, Vm};
use osier::speculate::{Assumption, Speculative};
use osier::tiers::{Compiled, ContextUse, Observer, Tiered};
use osier::{Format, load, passes};
use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// An exported function of a kernel, and its arguments as numbers.
struct Kernel {
    module: &'static str,
    function: &'static str,
    args: &'static [f64],
}

const fn kernel(module: &'static str, function: &'static str, args: &'static [f64]) -> Kernel {
    Kernel { module, function, args }
}

const KERNELS: [Kernel; 17] = [
    kernel("calls", "calls", &[2e6, 1.0]),
    kernel("divide", "collatz", &[2e5]),
    kernel("divide", "gcds", &[1e5, 9.0]),
    kernel("edit", "edit", &[1200.0, 3.0]),
    kernel("hash", "hash", &[3e6, 5.0]),
    kernel("mandel", "mandel", &[200.0, 50.0]),
    kernel("matmul", "matmul", &[240.0]),
    kernel("mixed", "mixed", &[3e5, 2.0]),
    kernel("nbody", "nbody", &[3e5]),
    kernel("queens", "queens", &[10.0]),
    kernel("scan", "scan", &[2e6, 4.0]),
    kernel("sieve", "sieve", &[2e6]),
    kernel("sort", "heap", &[3e5, 6.0]),
    kernel("sort", "quick", &[3e5, 6.0]),
    kernel("stencil", "stencil", &[200.0, 12.5]),
    kernel("vm", "vm", &[1.0, 2e5]),
    kernel("words", "words", &[2e5, 8.0]),
];

/// A function with modes, called with constants: `step` pads, rounds or clamps.
const MODES: &str = r#"(module (memory (export "memory") 1)
  (func $step (param $x i32) (param $mode i32) (param $by i32) (result i32)
    (if (i32.eqz (local.get $mode)) (then
      (return (i32.add (local.get $x) (i32.rem_u (local.get $x) (local.get $by))))))
    (if (i32.eq (local.get $mode) (i32.const 1)) (then
      (return (i32.mul (i32.div_u (local.get $x) (local.get $by)) (local.get $by)))))
    (if (i32.eq (local.get $mode) (i32.const 2)) (then
      (return (select (local.get $x) (local.get $by)
        (i32.lt_u (local.get $x) (local.get $by))))))
    (i32.xor (local.get $x) (local.get $by)))
  (func $modes (export "modes") (param $n i32) (result i32) (local $sum i32)
    (loop $next
      (local.set $sum (i32.add (local.get $sum)
        (call $step (local.get $n) (i32.const 0) (i32.const 8))))
      (local.set $sum (i32.add (local.get $sum)
        (call $step (local.get $sum) (i32.const 1) (i32.const 16))))
      (local.set $sum (i32.add (local.get $sum)
        (call $step (local.get $sum) (i32.const 2) (i32.const 1000))))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))"#;

/// Counts rows for contexts.
#[derive(Clone, Default)]
struct Rows(Arc<AtomicUsize>);

impl Observer for Rows {
    fn step(&mut self, _step: Option<osier::driver::Step>) {}

    fn begin(&mut self) {}

    fn in_context(&mut self, _func: Func, _facts: &[Assumption], _made: &Speculative) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn compiled(&mut self, _made: Compiled) {}
}

/// The program, the function, and the arguments as bits.
struct Timed {
    name: String,
    module: Arc<Module>,
    func: Func,
    args: Vec<u64>,
}

impl Timed {
    fn of(kernel: &Kernel, divisor: f64) -> Result<Timed, Box<dyn Error>> {
        let path = format!("tests/corpus/{}.wasm", kernel.module);
        let module = load(Format::Wasm, &std::fs::read(&path)?)?;
        let func = module.lookup(kernel.function).ok_or("no such kernel")?;
        let params = module.signature(func).params.clone();
        // The first argument of most is a size.
        let scaled = |(at, arg): (usize, &f64)| match at {
            0 if *arg > 300.0 => (arg / divisor).max(1.0),
            _ if kernel.module == "vm" && at == 1 => (arg / divisor).max(1.0),
            _ => *arg,
        };
        let bits = |(value, ty): (f64, &Type)| match ty {
            Type::F64 => value.to_bits(),
            Type::F32 => u64::from((value as f32).to_bits()),
            _ => value as u64,
        };
        let values: Vec<f64> = kernel.args.iter().enumerate().map(scaled).collect();
        let args = values.into_iter().zip(&params).map(bits).collect();
        let name = format!("{} {}", kernel.module, kernel.function);
        Ok(Timed { name, module: Arc::new(module), func, args })
    }

    /// The seconds of the second of two calls in a new machine, and the rows made.
    fn run(&self, engine: &Engine, contexts: ContextUse) -> Result<(f64, usize), Box<dyn Error>> {
        let mut vm = Vm::new(engine, &self.module, Limits::default(), Options::default())?;
        let rows = Rows::default();
        let policy = Tiered::new_observed(100, passes::parse("O2")?, rows.clone());
        vm.set_tiering(Box::new(policy.in_contexts(contexts)));
        let mut seconds = 0.0;
        for _ in 0..2 {
            let begun = Instant::now();
            let outcome = vm.invoke(self.func, &self.args, &mut NoHost)?;
            seconds = begun.elapsed().as_secs_f64();
            outcome.returned().ok_or("the program trapped")?;
        }
        Ok((seconds, rows.0.load(Ordering::Relaxed)))
    }
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse::<f64>());
    let runs = numbers.next().transpose()?.unwrap_or(11.0) as usize;
    let divisor = numbers.next().transpose()?.unwrap_or(4.0);
    let mut all: Vec<Timed> =
        KERNELS.iter().map(|kernel| Timed::of(kernel, divisor)).collect::<Result<_, _>>()?;
    let module = load(Format::Wasm, &wat::parse_str(MODES)?)?;
    let func = module.lookup("modes").ok_or("no modes")?;
    let args = vec![(4e7 / divisor) as u64];
    all.push(Timed { name: "modes".to_owned(), module: Arc::new(module), func, args });
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{:16}{:>6}{:>12}{:>12}{:>8}{:>16}",
        "", "rows", "off ms", "on ms", "off/on", "quartiles"
    )?;
    for timed in &all {
        let (mut off, mut on, mut ratios, mut rows) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for run in 0..runs {
            // Each run has an engine of its own, so code has other addresses.
            let engine = Engine::new(Config::default())?;
            let order = [ContextUse::Off, ContextUse::On];
            let mut seconds = [0.0; 2];
            for at in 0..2 {
                let which = (at + run) % 2;
                let (time, made) = timed.run(&engine, order[which])?;
                seconds[which] = time;
                rows = rows.max(made);
            }
            off.push(seconds[0] * 1e3);
            on.push(seconds[1] * 1e3);
            ratios.push(seconds[0] / seconds[1]);
        }
        ratios.sort_by(f64::total_cmp);
        let quartiles = [ratios[ratios.len() / 4], ratios[ratios.len() * 3 / 4]];
        let (name, [low, high]) = (&timed.name, quartiles);
        let (off, on, ratio) = (median(off), median(on), median(ratios));
        writeln!(out, "{name:16}{rows:6}{off:12.2}{on:12.2}{ratio:8.3}{low:8.3}{high:8.3}")?;
        out.flush()?;
    }
    Ok(())
}
