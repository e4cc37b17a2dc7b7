//! Storms of exits, measured: twenty programs in which 1 in 10,000 tests of assumptions fails at
//! random.
//!
//!     cargo run --release --example storms [RUNS [CALLS [ONE_IN [PROGRAM]]]]
//!
//! The programs are the kernels of the corpus, a loop over tagged values, a recursion, and a chain
//! of three activations. They assume that each side of a branch is not taken that the profile has
//! not seen. An assumption that fails by chance holds ([`Config::fails_one_in`]), so all ways
//! compute the same results. Ř is measured so (Flückiger et al., "Deoptless", PLDI 2022). A run has
//! a machine, an engine and a policy of its own, and makes CALLS calls. The ways of a run take
//! turns:
//!
//! - *calm*: landing tables. The first test of a machine fails, and no other by chance. Tests count
//!   down like the tests of *tables*.
//! - *tables*: an exit leads to a row of the landing table where it lands.
//! - *again*: an exit leads to the interpreter, and a version is made anew without an assumption
//!   that has failed too often ([`TableUse::Nowhere`]).
//! - *nothing*: no assumptions.
//!
//! The first figures are milliseconds of processor time of all calls, code included, the medians
//! of the runs. Then come, for all calls and for the second half of them, the quotient *again* /
//! *tables*, with its quartiles over the runs: above 1, tables are faster. The next three figures
//! count exits: of *tables* to native code, of *tables* to the interpreter, of *again* to the
//! interpreter, in the first run. The last figures are kilobytes of *tables* and of *again*, heap
//! behind the instantiation and machine code: the sum of the most of each, which may come at
//! different times, and the sum at the end.

use osier::interp::{Limits, NoHost, Options};
use osier::ir::{Func, Module, Type};
use osier::jit::{CodeObserver, Config, Engine, Piece, TransitionKind, Vm};
use osier::speculate::SuggestOptions;
use osier::tiers::{TableUse, Tiered};
use osier::{Format, load, passes};
use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write as _};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The visits after which a place is hot.
const HOT: u32 = 500;

/// A module of the corpus, an exported function, and its arguments as numbers.
struct Kernel(&'static str, &'static str, &'static [f64]);

const KERNELS: [Kernel; 17] = [
    Kernel("calls", "calls", &[5e5, 1.0]),
    Kernel("divide", "collatz", &[5e4]),
    Kernel("divide", "gcds", &[3e4, 9.0]),
    Kernel("edit", "edit", &[1200.0, 3.0]),
    Kernel("hash", "hash", &[5e5, 5.0]),
    Kernel("mandel", "mandel", &[100.0, 50.0]),
    Kernel("matmul", "matmul", &[160.0]),
    Kernel("mixed", "mixed", &[5e4, 2.0]),
    Kernel("nbody", "nbody", &[5e4]),
    Kernel("queens", "queens", &[8.0]),
    Kernel("scan", "scan", &[5e5, 4.0]),
    Kernel("sieve", "sieve", &[1e6]),
    Kernel("sort", "heap", &[8e4, 6.0]),
    Kernel("sort", "quick", &[8e4, 6.0]),
    Kernel("stencil", "stencil", &[60.0, 12.5]),
    Kernel("vm", "vm", &[1.0, 5e4]),
    Kernel("words", "words", &[5e4, 8.0]),
];

/// Programs with assumptions that are worth much. `tagged` adds values whose tags are all 0.
/// `count` walks a tree by recursion. `outer` calls `middle`, which calls `inner`: each of these
/// functions assumes in its loop. The tags, the mode and the scale are words of memory, always 0,
/// 0 and 3 here.
const WRITTEN: &str = r#"(module (memory (export "memory") 4)
  (data (i32.const 8) "\03\00\00\00")
  (func $slow (param $x i32) (result i32)
    (i32.store (i32.const 16) (local.get $x))
    (i32.rem_u (local.get $x) (i32.const 11)))
  (func $tagged (export "tagged") (param $n i32) (param $times i32) (result i32)
    (local $i i32) (local $p i32) (local $sum i32)
    (loop $outer
      (local.set $i (local.get $n))
      (local.set $p (i32.const 1024))
      (loop $next
        (if (i32.load (local.get $p))
          (then (local.set $sum (call $slow (local.get $sum))))
          (else (local.set $sum (i32.add (local.get $sum)
            (i32.div_u (i32.load offset=4 (local.get $p)) (i32.load (i32.const 8)))))))
        (local.set $p (i32.add (local.get $p) (i32.const 8)))
        (br_if $next (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
      (br_if $outer (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))
    (local.get $sum))
  (func $count (export "count") (param $n i32) (result i32)
    (if (result i32) (i32.lt_u (local.get $n) (i32.const 2))
      (then (i32.const 1))
      (else
        (if (i32.load (i32.const 4)) (then (return (call $slow (local.get $n)))))
        (i32.add
          (i32.rem_u (i32.add (call $count (i32.sub (local.get $n) (i32.const 1)))
            (call $count (i32.sub (local.get $n) (i32.const 2)))) (i32.load (i32.const 8)))
          (i32.const 1)))))
  (func $inner (param $n i32) (result i32) (local $sum i32)
    (loop $next
      (if (i32.load (i32.const 4)) (then (return (call $slow (local.get $n)))))
      (local.set $sum (i32.add (local.get $sum)
        (i32.div_u (local.get $n) (i32.load (i32.const 8)))))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))
  (func $middle (param $n i32) (result i32) (local $sum i32)
    (loop $next
      (if (i32.load (i32.const 4)) (then (return (call $slow (local.get $n)))))
      (local.set $sum (i32.rem_u
        (i32.add (local.get $sum) (call $inner (local.get $n))) (i32.const 1000003)))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))
  (func $outer (export "outer") (param $n i32) (param $times i32) (result i32) (local $sum i32)
    (loop $next
      (if (i32.load (i32.const 4)) (then (return (call $slow (local.get $n)))))
      (local.set $sum (i32.xor (local.get $sum) (call $middle (local.get $n))))
      (br_if $next (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))
    (local.get $sum)))"#;

/// The functions of [`WRITTEN`], and their arguments.
const OWN: [Kernel; 3] = [
    Kernel("tagged", "tagged", &[10_000.0, 400.0]),
    Kernel("recursion", "count", &[27.0]),
    Kernel("three frames", "outer", &[50.0, 2000.0]),
];

/// What a run assumes, and where it continues when an assumption fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Calm,
    Tables,
    Again,
    Nothing,
}

impl Way {
    const ALL: [Way; 4] = [Way::Calm, Way::Tables, Way::Again, Way::Nothing];
}

/// The bytes of machine code that an engine has, by address, and the most at one time.
#[derive(Default)]
struct CodeBytes(Mutex<(BTreeMap<usize, usize>, usize)>);

impl CodeBytes {
    /// The bytes now, and at the highest.
    fn get(&self) -> [usize; 2] {
        let (pieces, most) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner);
        [pieces.values().sum(), *most]
    }
}

impl CodeObserver for CodeBytes {
    fn added(&self, piece: &Piece<'_>) {
        let (pieces, most) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pieces.insert(piece.address, piece.bytes.len());
        *most = (*most).max(pieces.values().sum());
    }

    fn freed(&self, address: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.remove(&address);
    }
}

/// The program, the function, and the arguments as bits.
struct Timed {
    name: String,
    module: Arc<Module>,
    func: Func,
    args: Vec<u64>,
}

/// The figures of a run.
#[derive(Clone, Copy)]
struct Figures {
    /// The seconds of all calls, and of the second half.
    seconds: [f64; 2],
    /// The bytes at the highest, and at the end.
    bytes: [usize; 2],
    /// The exits taken to native code, and to the interpreter.
    exits: [u64; 2],
    /// The results of all calls, folded.
    result: u64,
}

impl Timed {
    fn of(name: &str, module: &Arc<Module>, kernel: &Kernel) -> Result<Timed, Box<dyn Error>> {
        let func = module.lookup(kernel.1).ok_or("no such function")?;
        let bits = |(value, ty): (&f64, &Type)| match ty {
            Type::F64 => value.to_bits(),
            Type::F32 => u64::from((*value as f32).to_bits()),
            _ => *value as u64,
        };
        let args = kernel.2.iter().zip(&module.signature(func).params).map(bits).collect();
        Ok(Timed { name: name.to_owned(), module: Arc::clone(module), func, args })
    }

    /// Makes a machine, and all calls of a run.
    fn run(&self, way: Way, calls: usize, one_in: u32) -> Result<Figures, Box<dyn Error>> {
        let one_in = if way == Way::Calm { u32::MAX } else { one_in };
        let config = Config { fails_one_in: NonZeroU32::new(one_in), ..Config::default() };
        let code = Arc::new(CodeBytes::default());
        let engine = Engine::observed(config, vec![Arc::clone(&code) as Arc<dyn CodeObserver>])?;
        let mut vm = Vm::new(&engine, &self.module, Limits::default(), Options::default())?;
        let tiered = Tiered::new(HOT, passes::parse("O2")?);
        let options = SuggestOptions { visits: 100, by_worth: false, ..SuggestOptions::default() };
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        // The counters belong to the costs of assuming.
        if way != Way::Nothing {
            vm.machine_mut().count();
        }
        vm.set_tiering(Box::new(match way {
            Way::Nothing => tiered,
            Way::Again => tiered.entering(TableUse::Nowhere).profiling(options),
            Way::Tables | Way::Calm => tiered.profiling(options),
        }));
        let (mut seconds, mut result) = ([0.0; 2], 0_u64);
        for call in 0..calls {
            let begun = processor_seconds();
            let outcome = vm.invoke(self.func, &self.args, &mut NoHost)?;
            let took = processor_seconds() - begun;
            let found = outcome.returned().ok_or("the program trapped")?.first().copied();
            result = result.rotate_left(7) ^ found.unwrap_or_default();
            seconds[0] += took;
            seconds[1] += if call >= calls / 2 { took } else { 0.0 };
        }
        let heap = [ALLOCATOR.peak_usage(), ALLOCATOR.current_usage()];
        let [code_now, code_most] = code.get();
        let bytes = [heap[0] - before + code_most, heap[1].saturating_sub(before) + code_now];
        let made = vm.transitions();
        let count = |kind| made.iter().filter(|of| of.kind == kind).map(|of| of.count).sum();
        let exits = [count(TransitionKind::Across), count(TransitionKind::Down)];
        Ok(Figures { seconds, bytes, exits, result })
    }
}

/// The processor time of this thread, in seconds. Other work of the machine does not count.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn programs() -> Result<Vec<Timed>, Box<dyn Error>> {
    let mut all = Vec::new();
    for kernel in &KERNELS {
        let path = format!("tests/corpus/{}.wasm", kernel.0);
        let module = Arc::new(load(Format::Wasm, &std::fs::read(&path)?)?);
        all.push(Timed::of(&format!("{} {}", kernel.0, kernel.1), &module, kernel)?);
    }
    let module = Arc::new(load(Format::Wasm, &wat::parse_str(WRITTEN)?)?);
    for kernel in &OWN {
        all.push(Timed::of(kernel.0, &module, kernel)?);
    }
    Ok(all)
}

/// The lower quartile, the median and the upper quartile.
fn quartiles(all: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut all: Vec<f64> = all.collect();
    all.sort_by(f64::total_cmp);
    [1, 2, 3].map(|part| all[(all.len() * part / 4).min(all.len() - 1)])
}

/// Measures a program, prints its row, and returns its two quotients of time and its two of memory.
fn row(
    out: &mut impl io::Write,
    timed: &Timed,
    [runs, calls]: [usize; 2],
    one_in: u32,
) -> Result<[f64; 4], Box<dyn Error>> {
    let mut all: Vec<Vec<Figures>> = vec![Vec::new(); Way::ALL.len()];
    for run in 0..runs {
        for turn in 0..Way::ALL.len() {
            let which = (turn + run) % Way::ALL.len();
            all[which].push(timed.run(Way::ALL[which], calls, one_in)?);
        }
    }
    let results: Vec<u64> = all.iter().flatten().map(|of| of.result).collect();
    if results.iter().any(|of| *of != results[0]) {
        return Err(format!("{}: the results differ", timed.name).into());
    }
    write!(out, "{:15}", timed.name)?;
    for of in &all {
        let [_, median, _] = quartiles(of.iter().map(|run| run.seconds[0] * 1e3));
        write!(out, "{median:9.1}")?;
    }
    let (tables, again) = (&all[Way::Tables as usize], &all[Way::Again as usize]);
    let mut figures = [0.0; 4];
    for half in 0..2 {
        let pairs = tables.iter().zip(again);
        let quotients = pairs.map(|(tables, again)| again.seconds[half] / tables.seconds[half]);
        let [low, median, high] = quartiles(quotients);
        write!(out, "  {median:6.3} {low:6.3} {high:6.3}")?;
        figures[half] = median;
    }
    let [across, down] = tables[0].exits;
    write!(out, "  {across:8} {down:6} {:6}", again[0].exits[1])?;
    for part in 0..2 {
        let [own, other] =
            [tables, again].map(|of| quartiles(of.iter().map(|run| run.bytes[part] as f64))[1]);
        write!(out, "  {:7.0} {:7.0}", own / 1e3, other / 1e3)?;
        figures[2 + part] = own / other;
    }
    writeln!(out)?;
    out.flush()?;
    Ok(figures)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut number = |default: usize| args.next().map_or(Ok(default), |arg| arg.parse());
    let (runs, calls, one_in) = (number(5)?, number(16)?, number(10_000)?);
    let only = args.next();
    let one_in = u32::try_from(one_in)?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{:15}{:>9}{:>9}{:>9}{:>9}  {:^20}  {:^20}  {:^22}  {:^15}  {:^15}",
        format!("one in {one_in}"),
        "calm",
        "tables",
        "again",
        "nothing",
        "again/tables",
        "second half",
        "exits: rows,down,again",
        "most kB",
        "last kB",
    )?;
    let mut figures = Vec::new();
    for timed in programs()?.iter().filter(|of| only.as_ref().is_none_or(|o| of.name.contains(o))) {
        figures.push(row(&mut out, timed, [runs, calls], one_in)?);
    }
    for (name, part) in [("all calls", 0), ("second half", 1)] {
        let [low, median, high] = quartiles(figures.iter().map(|of| of[part]));
        let slower = figures.iter().filter(|of| of[part] < 0.98).count();
        let count = figures.len();
        writeln!(
            out,
            "{name}: median {median:.3} ({low:.3} to {high:.3}), slower by 2 %: {slower} of {count}"
        )?;
    }
    for (name, part) in [("most bytes", 2), ("last bytes", 3)] {
        let [low, median, high] = quartiles(figures.iter().map(|of| of[part]));
        writeln!(out, "{name}, tables / again: median {median:.3} ({low:.3} to {high:.3})")?;
    }
    Ok(())
}
