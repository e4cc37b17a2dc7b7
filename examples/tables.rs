//! Landing tables, measured: a loop over tagged values, whose tags come in phases or differ now and
//! then, and a loop that is entered in the middle.
//!
//!     cargo run --release --example tables
//!
//! Each figure is nanoseconds an element, the median of several runs in which all policies take
//! turns. With *tables*, a run continues in a row where an assumption fails. *Recompiled* leaves to
//! the interpreter, and makes the version anew without an assumption that fails too often.
//! *Nothing* assumes nothing.

use osier::interp::{Limits, NoHost, Options};
use osier::ir::{Func, Module};
use osier::jit::{Config, Engine, Vm};
use osier::passes;
use osier::speculate::SuggestOptions;
use osier::tiers::{TableUse, Tiered};
use osier::{Format, load};
use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Instant;

/// The sum of `n` tagged values from address `p` on: a tag of 4 bytes, and at 8 the bits of an
/// integer (0), of a float (1), or the address of a boxed integer (2). The sum is tagged as well; a
/// float makes it a float. `again` goes over an array of integers many times in one call.
const SUM: &str = r#"(module (memory (export "memory") 16)
  (func $sum (export "sum") (param $n i32) (param $p i32) (result i64)
    (local $acc i32) (local $bits i64) (local $tag i32) (local $v i64)
    (loop $next
      (local.set $tag (i32.load (local.get $p)))
      (local.set $v (i64.load offset=8 (local.get $p)))
      (if (i32.eq (local.get $tag) (i32.const 1))
        (then
          (if (i32.eq (local.get $acc) (i32.const 1))
            (then (local.set $bits (i64.reinterpret_f64 (f64.add
              (f64.reinterpret_i64 (local.get $bits)) (f64.reinterpret_i64 (local.get $v))))))
            (else
              (local.set $acc (i32.const 1))
              (local.set $bits (i64.reinterpret_f64 (f64.add
                (f64.convert_i64_s (local.get $bits)) (f64.reinterpret_i64 (local.get $v))))))))
        (else
          (if (i32.eq (local.get $tag) (i32.const 2))
            (then (local.set $v (i64.load (i32.wrap_i64 (local.get $v))))))
          (if (i32.eq (local.get $acc) (i32.const 0))
            (then (local.set $bits (i64.add (local.get $bits) (local.get $v))))
            (else (local.set $bits (i64.reinterpret_f64 (f64.add
              (f64.reinterpret_i64 (local.get $bits)) (f64.convert_i64_s (local.get $v)))))))))
      (local.set $p (i32.add (local.get $p) (i32.const 16)))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $bits))
  (func $again (export "again") (param $n i32) (param $times i32) (result i32)
    (local $i i32) (local $p i32) (local $sum i32) (local $scale i32)
    (local.set $scale (i32.load offset=8 (i32.const 0)))
    (loop $outer
      (local.set $i (local.get $n))
      (local.set $p (i32.const 0))
      (loop $next
        (if (i32.load (local.get $p))
          (then (local.set $sum (call $odd (local.get $sum) (local.get $p))))
          (else (local.set $sum (i32.add (local.get $sum)
            (i32.mul (local.get $scale) (i32.load offset=8 (local.get $p)))))))
        (local.set $p (i32.add (local.get $p) (i32.const 16)))
        (br_if $next (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
      (br_if $outer (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))
    (local.get $sum))
  (func $odd (param $sum i32) (param $p i32) (result i32)
    (i32.store (i32.const 1000000) (local.get $p))
    (i32.xor (local.get $sum) (local.get $p))))"#;

/// The elements of an array.
const COUNT: u32 = 10_000;

/// The address of the boxed integer.
const BOX: u32 = 16 * COUNT + 64;

/// The calls of a phase.
const CALLS: usize = 200;

/// The passes over the array of the one long call.
const TIMES: u64 = 20_000;

/// The runs of each policy.
const RUNS: usize = 7;

/// What an array holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Ints,
    Floats,
    Boxes,
    /// Integers, and a float at the end.
    OneFloat,
}

/// The assumptions of a policy, and the place where its runs continue when one fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Policy {
    Tables,
    Recompiled,
    Nothing,
}

impl Policy {
    const ALL: [Policy; 3] = [Policy::Tables, Policy::Recompiled, Policy::Nothing];
}

/// A machine under a policy.
fn machine(engine: &Engine, module: &Arc<Module>, policy: Policy) -> Result<Vm, Box<dyn Error>> {
    let mut vm = Vm::new(engine, module, Limits::default(), Options::default())?;
    let tiered = Tiered::new(500, passes::parse("O2")?);
    let options = SuggestOptions { visits: 100, ..SuggestOptions::default() };
    let tiered = match policy {
        Policy::Nothing => tiered,
        Policy::Tables => tiered.profiling(options),
        Policy::Recompiled => tiered.entering(TableUse::Nowhere).profiling(options),
    };
    if policy != Policy::Nothing {
        vm.machine_mut().count();
    }
    vm.set_tiering(Box::new(tiered));
    Ok(vm)
}

/// Fills the array of a machine.
fn fill(vm: &mut Vm, module: &Module, kind: Kind) {
    let memory = module.memories.keys().next().expect("it has a memory");
    let bytes = vm.machine_mut().memory_bytes_mut(memory);
    let mut set = |at: u32, tag: u32, word: u64| {
        let at = at as usize;
        bytes[at..at + 4].copy_from_slice(&tag.to_le_bytes());
        bytes[at + 8..at + 16].copy_from_slice(&word.to_le_bytes());
    };
    for index in 0..COUNT {
        let (tag, word) = match kind {
            Kind::Floats => (1, f64::from(index).to_bits()),
            Kind::Boxes => (2, u64::from(BOX + 8)),
            Kind::OneFloat if index == COUNT - 1 => (1, 0.5_f64.to_bits()),
            Kind::Ints | Kind::OneFloat => (0, u64::from(index)),
        };
        set(16 * index, tag, word);
    }
    set(BOX, 0, 7);
}

/// Calls a function, and returns the nanoseconds that it takes.
fn timed(vm: &mut Vm, func: Func, args: &[u64]) -> Result<f64, Box<dyn Error>> {
    let begun = Instant::now();
    let outcome = vm.invoke(func, args, &mut NoHost)?;
    let seconds = begun.elapsed().as_secs_f64();
    outcome.returned().ok_or("the program trapped")?;
    Ok(seconds * 1e9)
}

/// The phases of a run, with the nanoseconds an element in each: of the whole phase, and of its
/// second half.
fn phases(
    engine: &Engine,
    module: &Arc<Module>,
    policy: Policy,
    kinds: &[Kind],
) -> Result<Vec<[f64; 2]>, Box<dyn Error>> {
    let sum = module.func_named("sum").ok_or("no sum")?;
    let mut vm = machine(engine, module, policy)?;
    let mut all = Vec::new();
    for kind in kinds {
        fill(&mut vm, module, *kind);
        let mut times = Vec::new();
        for _ in 0..CALLS {
            times.push(timed(&mut vm, sum, &[COUNT.into(), 0])?);
        }
        let mean =
            |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64 / f64::from(COUNT);
        all.push([mean(&times), mean(&times[CALLS / 2..])]);
    }
    Ok(all)
}

/// One long call, whose loop is entered in the middle, and the next call, which enters at the
/// start.
fn entered(
    engine: &Engine,
    module: &Arc<Module>,
    policy: Policy,
) -> Result<Vec<[f64; 2]>, Box<dyn Error>> {
    let again = module.func_named("again").ok_or("no again")?;
    let mut vm = machine(engine, module, policy)?;
    fill(&mut vm, module, Kind::Ints);
    let args = [100, TIMES * u64::from(COUNT) / 100];
    let [first, second] = [timed(&mut vm, again, &args)?, timed(&mut vm, again, &args)?];
    let an_element = |time: f64| time / (TIMES * u64::from(COUNT)) as f64;
    Ok(vec![[an_element(first), an_element(second)]])
}

/// The medians of the runs of each policy, by policy, phase and figure.
fn medians(
    mut run: impl FnMut(Policy) -> Result<Vec<[f64; 2]>, Box<dyn Error>>,
) -> Result<Vec<Vec<[f64; 2]>>, Box<dyn Error>> {
    let mut runs: Vec<Vec<Vec<[f64; 2]>>> = vec![Vec::new(); Policy::ALL.len()];
    for _ in 0..RUNS {
        for (policy, of) in Policy::ALL.into_iter().zip(&mut runs) {
            of.push(run(policy)?);
        }
    }
    let median = |of: &Vec<Vec<[f64; 2]>>, phase: usize, figure: usize| {
        let mut all: Vec<f64> = of.iter().map(|run| run[phase][figure]).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let all = runs.iter().map(|of| {
        (0..of[0].len()).map(|phase| [0, 1].map(|figure| median(of, phase, figure))).collect()
    });
    Ok(all.collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    let module = Arc::new(load(Format::Wasm, &wat::parse_str(SUM)?)?);
    let engine = Engine::new(Config::default())?;
    let kinds = [Kind::Ints, Kind::Floats, Kind::Boxes, Kind::Ints];
    let rare = [Kind::Ints, Kind::OneFloat];
    writeln!(out, "ns an element, of a whole phase and of its second half\n")?;
    for (title, kinds) in [("in phases", &kinds[..]), ("1 in 10,000 fails", &rare[..])] {
        write!(out, "{title:20}")?;
        kinds.iter().try_for_each(|kind| write!(out, "{:>17}", format!("{kind:?}")))?;
        writeln!(out)?;
        let all = medians(|policy| phases(&engine, &module, policy, kinds))?;
        for (policy, phases) in Policy::ALL.into_iter().zip(all) {
            write!(out, "  {:18}", format!("{policy:?}"))?;
            phases.iter().try_for_each(|[whole, half]| write!(out, "{whole:9.2} {half:7.2}"))?;
            writeln!(out)?;
        }
        writeln!(out)?;
    }
    writeln!(out, "one long call, entered in its loop; the next call, entered at its start")?;
    let all = medians(|policy| entered(&engine, &module, policy))?;
    for (policy, calls) in Policy::ALL.into_iter().zip(all) {
        let [first, second] = calls[0];
        writeln!(out, "  {:18}{first:9.2} {second:7.2}", format!("{policy:?}"))?;
    }
    Ok(())
}
