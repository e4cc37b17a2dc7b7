//! The cost of calls in native code, beside wasmtime: one row for each kind of call.
//!
//! Each row is a loop that does little besides the call. Both engines compile the same module, and
//! neither inlines. Every round compiles the code again, at another place; the engines take turns
//! in a round. wasmtime takes part twice, and the ratio of the two is the noise.

use crate::arguments::CallArguments;
use crate::speed::seconds_of_thread;
use interp::{Limits, NoHost, Options, Outcome};
use ir::{Func, Module};
use jit::{Config, Engine, Vm};
use osier::tiers::{Eager, NoObserver};
use osier::{Format, load};
use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;
use wasmtime::{Inlining, Instance, Store, TypedFunc};

/// The measured module, without the functions of [`MANY`].
const TEXT: &str = include_str!("calls.wat");

/// The number of functions that the export `many` calls.
const MANY: u32 = 64;

/// The number of places of the code. At each, other numbers of instructions stand before the loops.
const PLACES: u32 = 8;

/// The argument of `fib`, and the calls that it leads to.
const FIB: (u32, u32) = (31, 4_356_617);

/// A kind of call.
struct Kind {
    /// The name of the call in the row.
    name: &'static str,
    export: &'static str,
    /// Calls in each round of the loop; for the loop alone, the rounds themselves.
    calls: u32,
}

impl Kind {
    /// The argument of the export that makes about this many calls.
    fn argument(&self, calls: u32) -> u32 {
        if self.export == "fib" { FIB.0 } else { (calls / self.calls).max(1) }
    }

    /// The calls that [`Kind::argument`] leads to.
    fn made(&self, calls: u32) -> u32 {
        if self.export == "fib" { FIB.1 } else { self.argument(calls) * self.calls }
    }
}

const fn kind(name: &'static str, export: &'static str, calls: u32) -> Kind {
    Kind { name, export, calls }
}

const KINDS: &[Kind] = &[
    kind("no call: the loop alone", "loop", 1),
    kind("leaf", "leaf", 1),
    kind("leaf, loads and stores", "stores", 1),
    kind("leaf, changes a global", "counts", 1),
    kind("leaf, more values than registers", "wide", 1),
    kind("function that calls a leaf", "middle", 2),
    kind("chain of five", "chain", 5),
    kind("recursion (fib)", "fib", 1),
    kind("8 arguments, 3 results", "eight", 1),
    kind("1 argument, 6 results", "six", 1),
    kind("4 floats, 1 result", "floats", 1),
    kind("table, one target", "indirect", 1),
    kind("table, four targets in turn", "turns", 1),
    kind("64 leaves in turn", "many", MANY),
];

/// The seconds of one kind in every round.
#[derive(Default)]
struct Seconds {
    theirs: Vec<f64>,
    again: Vec<f64>,
    ours: Vec<f64>,
}

/// Measures every kind and prints a row for each. Returns `false` if the engines' results differ.
///
/// # Errors
/// If an engine rejects or ends a run.
pub fn run(arguments: &CallArguments, out: &mut (dyn Write + Send)) -> Result<bool, String> {
    let kinds: Vec<&Kind> =
        KINDS.iter().filter(|kind| kind.name.contains(&arguments.only)).collect();
    if kinds.is_empty() {
        return Err(format!("no kind of call has {:?} in its name", arguments.only));
    }
    let mut seconds: Vec<Seconds> = kinds.iter().map(|_| Seconds::default()).collect();
    for round in 0..arguments.rounds {
        let bytes = wat::parse_str(text(round % PLACES)).map_err(|e| e.to_string())?;
        let mut theirs = TheirCalls::new(&bytes)?;
        let mut ours = OurCalls::new(&bytes)?;
        let mut again = TheirCalls::new(&bytes)?;
        // Our engine compiles its trampolines at the first run.
        ours.run(kinds[0].export, 1, &mut Vec::new())?;
        for (kind, seconds) in kinds.iter().zip(&mut seconds) {
            let argument = kind.argument(arguments.calls);
            let results = [
                theirs.run(kind.export, argument, &mut seconds.theirs)?,
                ours.run(kind.export, argument, &mut seconds.ours)?,
                again.run(kind.export, argument, &mut seconds.again)?,
            ];
            if results.iter().any(|result| *result != results[0]) {
                let differ = format!("{}: the engines disagree: {results:x?}", kind.name);
                writeln!(out, "{differ}").map_err(|e| e.to_string())?;
                return Ok(false);
            }
        }
    }
    print(arguments, &kinds, &seconds, out).map_err(|e| e.to_string())?;
    Ok(true)
}

/// The text of the module: [`TEXT`] with the functions of `many`, at a place of the code.
fn text(place: u32) -> String {
    let (body, _) = TEXT.trim_end().rsplit_once(')').expect("the text ends with the module");
    let pad: String = (0..place).fold(String::new(), |mut pad, at| {
        let _ = writeln!(pad, "(global.set $pad (i32.const {at}))");
        pad
    });
    let mut text = body.replace(";; pad\n", &pad);
    for at in 0..MANY {
        let _ = writeln!(
            text,
            "(func $many{at} (type $unary)
               (i32.add (i32.mul (local.get 0) (i32.const 1664525)) (i32.const {at})))"
        );
    }
    text += "(func (export \"many\") (param $n i32) (result i32) (local $v i32) (loop $again\n";
    for at in 0..MANY {
        let _ = writeln!(text, "(local.set $v (call $many{at} (local.get $v)))");
    }
    text + "(br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) (local.get $v)))"
}

/// An instance in our engine, with all functions compiled.
struct OurCalls {
    module: Arc<Module>,
    vm: Vm,
}

impl OurCalls {
    fn new(bytes: &[u8]) -> Result<OurCalls, String> {
        let module = Arc::new(load(Format::Wasm, bytes).map_err(|e| e.in_file("calls.wat"))?);
        let engine = Engine::new(Config::default()).map_err(|e| e.to_string())?;
        let options = Options::default();
        let mut vm =
            Vm::new(&engine, &module, Limits::default(), options).map_err(|e| e.to_string())?;
        vm.set_tiering(Box::new(Eager::new(NoObserver)));
        for (func, _) in module.defined() {
            vm.demand(func).map_err(|e| e.to_string())?;
        }
        Ok(OurCalls { module, vm })
    }

    fn run(&mut self, name: &str, argument: u32, seconds: &mut Vec<f64>) -> Result<u32, String> {
        let named = self.module.exports.iter().filter(|export| export.name == name);
        let func: Option<Func> = named.filter_map(ir::module::Export::func).next();
        let func = func.ok_or_else(|| format!("the module exports no {name}"))?;
        let begun = seconds_of_thread();
        let outcome = self.vm.invoke(func, &[u64::from(argument)], &mut NoHost);
        seconds.push(seconds_of_thread() - begun);
        match outcome {
            Ok(Outcome::Returned(values)) => Ok(values[0] as u32),
            Ok(other) => Err(format!("ours: {name}: {other}")),
            Err(error) => Err(format!("ours: {name}: {error}")),
        }
    }
}

/// An instance in wasmtime, which does not inline.
struct TheirCalls {
    store: Store<()>,
    instance: Instance,
}

impl TheirCalls {
    fn new(bytes: &[u8]) -> Result<TheirCalls, String> {
        let text = |error: wasmtime::Error| format!("wasmtime: {error:?}");
        let mut config = wasmtime::Config::new();
        config.parallel_compilation(false).compiler_inlining(Inlining::No);
        let engine = wasmtime::Engine::new(&config).map_err(text)?;
        let module = wasmtime::Module::new(&engine, bytes).map_err(text)?;
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).map_err(text)?;
        Ok(TheirCalls { store, instance })
    }

    fn run(&mut self, name: &str, argument: u32, seconds: &mut Vec<f64>) -> Result<u32, String> {
        let func: Result<TypedFunc<u32, u32>, _> =
            self.instance.get_typed_func(&mut self.store, name);
        let func = func.map_err(|error| format!("wasmtime: {name}: {error:?}"))?;
        let begun = seconds_of_thread();
        let result = func.call(&mut self.store, argument);
        seconds.push(seconds_of_thread() - begun);
        result.map_err(|error| format!("wasmtime: {name}: {error:?}"))
    }
}

fn best(seconds: &[f64]) -> f64 {
    seconds.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The middle of the numbers; of two, the greater.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// The median of the ratios within the rounds.
fn median_ratio(of: &[f64], to: &[f64]) -> f64 {
    median(of.iter().zip(to).map(|(of, to)| of / to).collect())
}

fn print(
    arguments: &CallArguments,
    kinds: &[&Kind],
    seconds: &[Seconds],
    out: &mut dyn Write,
) -> std::io::Result<()> {
    writeln!(
        out,
        "{:<34}{:>11}{:>9}{:>8}{:>8}{:>8}",
        "kind of call", "theirs, ns", "ours, ns", "ratio", "best", "again"
    )?;
    for (kind, Seconds { theirs, again, ours }) in kinds.iter().zip(seconds) {
        let made = f64::from(kind.made(arguments.calls));
        writeln!(
            out,
            "{:<34}{:>11.3}{:>9.3}{:>8.3}{:>8.3}{:>8.3}",
            kind.name,
            median(theirs.clone()) / made * 1e9,
            median(ours.clone()) / made * 1e9,
            median_ratio(ours, theirs),
            best(ours) / best(theirs),
            median_ratio(again, theirs),
        )?;
    }
    let all: Vec<f64> = seconds.iter().map(|s| median_ratio(&s.ours, &s.theirs)).collect();
    let mean = (all.iter().map(|ratio| ratio.ln()).sum::<f64>() / all.len() as f64).exp();
    writeln!(
        out,
        "medians of {} rounds; best: of the fastest rounds; again: wasmtime with itself\n\
         geometric mean of the ratios {mean:.3}, highest {:.3}",
        arguments.rounds,
        all.iter().copied().fold(0.0, f64::max)
    )
}
