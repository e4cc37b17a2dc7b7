//! The costs of embedding: calls of imported functions, runs of a leaf, and programs of many
//! functions. The number of functions doubles from line to line, like in `code`.

use super::code::{module, timed};
use super::measure;
use super::{Arguments, Report};
use interp::{Host, HostError, Limits, Memories, Options, TraceLevel};
use ir::module::{FuncDecl, ImportName};
use ir::text::parse_module;
use ir::{Func, Function, Module};
use jit::{Callback, CallbackEnd, DirectFunction, Embedder, Engine, Vm};
use serde_json::json;
use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;

/// The functions of the first line, and the doublings.
const LEAST: usize = 1000;
const DOUBLINGS: u32 = 4;
/// The functions added, one at a time.
const ADDED: usize = 100;
/// The bodies supplied, fewer than the functions of the first line.
const SUPPLIED: usize = 100;
/// The bytes of a page of x86-64, where native code runs.
const PAGE: usize = 4096;

const CALLS: &str = r#"
import func @next "host" "next" (i64) -> i64
func @leaf(%x: i64) -> i64 {
entry:
  %one = const.i64 1
  %y = add.i64 %x, %one
  return %y
}
func @main(%n: i64) -> i64 {
entry:
  %zero = const.i64 0
  jump head(%n, %zero)
head(%left: i64, %x: i64):
  %y = call @next(%x)
  %one = const.i64 1
  %rest = sub.i64 %left, %one
  br_if %rest, head(%rest, %y), done
done:
  return %y
}
"#;

/// The bound function.
extern "C" fn next((): &(), x: u64) -> u64 {
    x.wrapping_add(1)
}

/// Both kinds of embedders: `next` adds one.
struct Next;

impl Embedder for Next {
    fn call(
        &mut self,
        _: &mut Callback<'_>,
        _: Func,
        args: &[u64],
        results: &mut [u64],
    ) -> Result<(), CallbackEnd> {
        results[0] = args[0].wrapping_add(1);
        Ok(())
    }
}

impl Host for Next {
    fn call(
        &mut self,
        _: &ImportName,
        _: Func,
        args: &[u64],
        _: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        results[0] = args[0].wrapping_add(1);
        Ok(())
    }
}

/// Nanoseconds of the fastest of some rounds, for one of `count` repetitions.
fn fastest<E>(
    rounds: usize,
    count: u64,
    mut work: impl FnMut(u64) -> Result<(), E>,
) -> Result<f64, E> {
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let (seconds, done) = measure::timed(|| work(count));
        done?;
        best = best.min(seconds * 1e9 / count as f64);
    }
    Ok(best)
}

/// A machine with native code for all functions.
fn machine(arguments: &Arguments, options: Options) -> Result<(Vm, Func, Func), Box<dyn Error>> {
    let engine = arguments.engine()?;
    let module = Arc::new(parse_module(CALLS).map_err(|errors| format!("{errors:?}"))?);
    let mut vm = Vm::new(&engine, &module, Limits::default(), options)?;
    for (func, body) in module.defined() {
        vm.install(&engine.version(&module, func, body, &[])?, Vec::new())?;
    }
    let named = |name: &str| module.func_named(name).ok_or(format!("no @{name}"));
    Ok((vm, named("leaf")?, named("main")?))
}

/// The names and the nanoseconds of calls and runs.
fn calls(arguments: &Arguments) -> Result<Vec<(String, f64)>, Box<dyn Error>> {
    let rounds = arguments.rounds.unwrap_or(20);
    let untraced = Options::default();
    let traced = Options { trace: TraceLevel::Digest, ..untraced };
    let mut made = Vec::new();
    for (options, suffix) in [(untraced, ""), (traced, ", with a trace")] {
        let (mut vm, leaf, main) = machine(arguments, options)?;
        let mut note = |name: &str, nanos: f64| made.push((format!("{name}{suffix}"), nanos));
        let many =
            |vm: &mut Vm| fastest(rounds, 100_000, |n| vm.run(main, &[n], &mut Next).map(drop));
        note("call of an Embedder", many(&mut vm)?);
        let host = fastest(rounds, 100_000, |n| vm.invoke(main, &[n], &mut Next).map(drop))?;
        note("call of a Host", host);
        let next = next as extern "C" fn(&(), u64) -> u64;
        let import = vm.module().func_named("next").ok_or("no @next")?;
        vm.bind(import, &DirectFunction::new(Arc::new(()), next, ir::DeclaredEffect::Pure))?;
        note("call of a bound function", many(&mut vm)?);
        vm.unbind(import)?;
        let runs = fastest(rounds, 20_000, |n| {
            (0..n).try_for_each(|x| vm.run(leaf, &[x], &mut Next).map(drop))
        })?;
        note("run of a leaf", runs);
    }
    Ok(made)
}

/// The resident bytes of this process.
fn resident() -> Result<usize, Box<dyn Error>> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: usize = pages.split(' ').nth(1).ok_or("no resident pages")?.parse()?;
    Ok(pages * PAGE)
}

/// A program of `functions` functions. The row has the milliseconds to make a machine, the
/// microseconds to make a module with one more function, to take it up, and to supply one body, and
/// the bytes of code and of memory for each compiled function.
fn growing(arguments: &Arguments, functions: usize) -> Result<[f64; 6], Box<dyn Error>> {
    let engine = arguments.engine()?;
    let module = module(functions)?;
    let [code, bytes] = memory(&engine, &module)?;
    let (vm, start) = timed(|| Vm::new(&engine, &module, Limits::default(), Options::default()));
    let [cloning, extending] = extending(&mut vm?, &module)?;
    let supplying = supplying(&engine, &module)?;
    Ok([start * 1e3, cloning * 1e6, extending * 1e6, supplying * 1e6, code, bytes])
}

/// The bytes of code, and all bytes, for each compiled function.
fn memory(engine: &Engine, module: &Arc<Module>) -> Result<[f64; 2], Box<dyn Error>> {
    let functions = module.funcs.len() as f64;
    let compiled = || -> Result<Vec<_>, _> {
        module.defined().map(|(func, body)| engine.version(module, func, body, &[])).collect()
    };
    // These versions fill the memory that was freed before, so all later versions take new pages.
    let _first = compiled()?;
    let before = resident()?;
    let versions = compiled()?;
    let bytes = resident()?.saturating_sub(before);
    let code: usize = versions.iter().map(|version| version.code_size()).sum();
    Ok([code as f64 / functions, bytes as f64 / functions])
}

/// The seconds to supply one body, in a program of functions whose bodies come later: the mean of a
/// hundred.
fn supplying(engine: &Engine, module: &Module) -> Result<f64, Box<dyn Error>> {
    let mut later = module.clone();
    let bodies: Vec<(Func, Function)> =
        module.defined().map(|(func, body)| (func, body.clone())).take(SUPPLIED).collect();
    module.defined().for_each(|(func, _)| later.define_later(func));
    let mut vm = Vm::new(engine, &Arc::new(later), Limits::default(), Options::default())?;
    let (supplied, seconds) =
        timed(|| bodies.into_iter().try_for_each(|(func, body)| vm.supply(func, body)));
    supplied?;
    Ok(seconds / SUPPLIED as f64)
}

/// The seconds to make a module with one more function, and to take it up: the means of a hundred.
fn extending(vm: &mut Vm, module: &Arc<Module>) -> Result<[f64; 2], Box<dyn Error>> {
    let (mut cloning, mut extending) = (0.0, 0.0);
    let mut module = Arc::clone(module);
    for _ in 0..ADDED {
        let (larger, seconds) = timed(|| larger(&module));
        module = larger?;
        cloning += seconds;
        let (extended, seconds) = timed(|| vm.extend(&module));
        extended?;
        extending += seconds;
    }
    Ok([cloning / ADDED as f64, extending / ADDED as f64])
}

/// The module with one more function.
fn larger(module: &Arc<Module>) -> Result<Arc<Module>, Box<dyn Error>> {
    let mut larger = Module::clone(module);
    let (_, like) = module.defined().next().ok_or("the module has no function")?;
    let first = module.funcs.keys().next().ok_or("the module has no function")?;
    let decl =
        FuncDecl { name: format!("more{}", larger.funcs.len()), ..larger.funcs[first].clone() };
    let func = larger.funcs.push(decl);
    larger.define(func, like.clone());
    Ok(Arc::new(larger))
}

pub(super) fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let calls = calls(arguments)?;
    let mut table = String::new();
    for (name, nanos) in &calls {
        writeln!(table, "{name:>40}{nanos:>10.1} ns")?;
    }
    table.push_str(
        "\n  functions  start ms  clone us extend us supply us code bytes memory bytes, each function\n",
    );
    let mut lines = Vec::new();
    for doubling in 0..=DOUBLINGS {
        let functions = LEAST << doubling;
        let figures = growing(arguments, functions)?;
        write!(table, "{functions:>11}")?;
        figures.iter().try_for_each(|figure| write!(table, "{figure:>10.2}"))?;
        table.push('\n');
        lines.push(json!({ "functions": functions, "figures": figures }));
    }
    let calls: Vec<_> =
        calls.iter().map(|(name, nanos)| json!({ "name": name, "nanoseconds": nanos })).collect();
    Ok(Report { table, json: json!({ "calls": calls, "growing": lines }) })
}
