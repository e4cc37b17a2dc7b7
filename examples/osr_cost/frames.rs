//! The cost of leaving inlined code: three activations at once, in one piece of native code, and in
//! the interpreter.

use super::measure::{quantile, timed};
use super::{Arguments, Report};
use interp::{Limits, NoHost, Options, Outcome};
use ir::{Func, Function, Module, Opcode, Point};
use jit::{Action, PointSpec, Quiet, VersionSpec, Vm};
use osier::driver::NoObserver;
use osier::inlining::{CalleeLandings, InlinePlan, Inlined, inline};
use osier::{Format, load};
use passes::InlinePolicy;
use resume::Condition;
use serde_json::json;
use std::error::Error;
use std::sync::Arc;

/// Calls in a run, each of which leaves once.
const CALLS: u64 = 1_000_000;
/// Calls in a run that continues in the interpreter.
const INTERPRETED: u64 = 100_000;
/// Code places: stores in front of the loop move it.
const PLACES: usize = 8;

/// A function that stores, calls the next function, computes with `width` values that are live
/// across the call, and stores again. The stores keep each activation where it is: transitions must
/// not execute a store twice.
fn level(name: &str, next: Option<&str>, width: usize) -> String {
    let mut text = format!("func @{name}(%a: i64, %p: i32) -> i64 {{\nentry:\n");
    text += "  store.i64 @m[%p + 8], %a\n";
    let mut last = "%a".to_owned();
    for k in 0..width {
        text += &format!("  %c{k} = const.i64 {}\n  %x{k} = mul.i64 {last}, %c{k}\n", 2 * k + 3);
        last = format!("%x{k}");
    }
    match next {
        Some(next) => text += &format!("  %r = call @{next}({last}, %p)\n"),
        None => text += &format!("  store.i64 @m[%p + 16], {last}\n  %r = load.i64 @m[%p + 16]\n"),
    }
    let mut sum = "%r".to_owned();
    for k in 0..width {
        text += &format!("  %s{k} = xor.i64 {sum}, %x{k}\n");
        sum = format!("%s{k}");
    }
    text + &format!("  store.i64 @m[%p + 24], {sum}\n  return {sum}\n}}\n")
}

fn text(width: usize, place: usize) -> String {
    let mut text = String::from("memory @m 1\nglobal @pad: mut i64 = 0\n");
    text += &level("inner", None, width);
    text += &level("middle", Some("inner"), width);
    text += &level("outer", Some("middle"), width);
    text += "func @main(%n: i64) -> i64 {\nentry:\n  %zero = const.i64 0\n  %p = const.i32 64\n";
    for _ in 0..place {
        text += "  global_set.i64 @pad, %zero\n";
    }
    text += "  jump head(%zero, %zero)\nhead(%i: i64, %sum: i64):\n";
    text += "  %r = call @outer(%i, %p)\n  %next = add.i64 %sum, %r\n  %one = const.i64 1\n";
    text += "  %j = add.i64 %i, %one\n  %more = ult.i64 %j, %n\n";
    text + "  br_if %more, head(%j, %next), done\ndone:\n  return %next\n}\n"
}

/// Nanoseconds of a transition at one place of the code.
struct Cost {
    values: usize,
    native: f64,
    interpreted: f64,
}

/// The version of `@outer` with both other functions inlined, and the last store of `@inner`.
fn inlined(module: &Module) -> Result<(Func, Inlined, Point), Box<dyn Error>> {
    let outer = module.func_named("outer").ok_or("the text has it")?;
    let policy = InlinePolicy {
        size: 400,
        depth: 4,
        growth: 900,
        allowance: 900,
        ..InlinePolicy::default()
    };
    let plan = InlinePlan { policy, ..InlinePlan::o3() };
    let landings = CalleeLandings::new(module, &plan);
    let made = inline(module, outer, &plan, &landings, &mut NoObserver)?;
    let version = made.tree.function(made.optimized);
    let is_store = |at: &Point| version.inst(at.inst()).opcode == Opcode::Store;
    let in_three = made.down.entries().filter(|(_, entry)| entry.activations() == 3);
    let at = in_three.map(|(at, _)| at).filter(is_store).max_by_key(|at| at.inst());
    Ok((outer, made, at.ok_or("an entry leads into three activations")?))
}

fn call(vm: &mut Vm, main: Func, n: u64) -> Result<(f64, u64), Box<dyn Error>> {
    let (seconds, outcome) = timed(|| vm.invoke(main, &[n], &mut NoHost));
    match outcome? {
        Outcome::Returned(values) => Ok((seconds, values[0])),
        other => Err(format!("the loop does not return: {other}").into()),
    }
}

fn measure(arguments: &Arguments, width: usize, place: usize) -> Result<Cost, Box<dyn Error>> {
    let source = text(width, place);
    let module =
        Arc::new(load(Format::Oir, source.as_bytes()).map_err(|error| error.in_file("frames"))?);
    let main = module.func_named("main").ok_or("the text has it")?;
    let (outer, made, at) = inlined(&module)?;
    let (engine, version) = (arguments.engine()?, made.tree.function(made.optimized));
    let entry = made.down.checked_entry(at).ok_or("an entry starts there")?;
    let bases: Option<Vec<&Function>> =
        entry.landings(outer).map(|landing| module.body(landing.func)).collect();
    let bases = bases.ok_or("frames are in bases")?;
    let native = engine.lone_continuation(&module, outer, version, entry, &bases)?;
    let down = Arc::new(made.down.clone());
    let point =
        PointSpec { at, condition: Condition::Flag, values: entry.entry().requires.clone() };
    let mut nanoseconds = [0.0; 2];
    let ways = [(Action::Continue(native), CALLS), (Action::Interpret(down), INTERPRETED)];
    for ((action, calls), cost) in ways.into_iter().zip(&mut nanoseconds) {
        let options = Options::default();
        let limits = Limits { fuel: u64::MAX, ..Limits::default() };
        let mut vm = Vm::new(&engine, &module, limits, options)?;
        vm.set_tiering(Box::new(Quiet));
        let sites = Arc::new(made.copies.sites());
        let spec = VersionSpec::from(std::slice::from_ref(&point)).with_sites(sites);
        let left = engine.version(&module, outer, version, spec)?;
        vm.install(&left, vec![action])?;
        let body = module.body(main).ok_or("it is defined")?;
        vm.install(&engine.version(&module, main, body, &[])?, Vec::new())?;
        let (mut staying, mut leaving) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..arguments.rounds.unwrap_or(5) {
            left.disarm(0);
            let (seconds, expected) = call(&mut vm, main, calls)?;
            staying = staying.min(seconds);
            left.arm(0);
            let (seconds, found) = call(&mut vm, main, calls)?;
            leaving = leaving.min(seconds);
            if found != expected {
                return Err("runs that leave return something else".into());
            }
        }
        let fired: u64 = vm.transitions().iter().map(|made| made.count).sum();
        if fired != calls * arguments.rounds.unwrap_or(5) as u64 {
            return Err("not each call has left".into());
        }
        *cost = (leaving - staying) * 1e9 / calls as f64;
    }
    let [native, interpreted] = nanoseconds;
    Ok(Cost { values: entry.entry().requires.len(), native, interpreted })
}

pub(crate) fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let mut table = format!(
        "{:>8}{:>14}{:>10}{:>10}{:>18}\n",
        "values", "to native, ns", "median", "worst", "to interpreter, ns"
    );
    let mut rows = Vec::new();
    for width in [2, 5, 8] {
        let costs: Vec<Cost> =
            (0..PLACES).map(|place| measure(arguments, width, place)).collect::<Result<_, _>>()?;
        let mut native: Vec<f64> = costs.iter().map(|cost| cost.native).collect();
        let (least, median, worst) =
            (quantile(&mut native, 0.0), quantile(&mut native, 0.5), quantile(&mut native, 1.0));
        let interpreted = costs.iter().map(|cost| cost.interpreted).fold(f64::INFINITY, f64::min);
        let values = costs[0].values;
        table +=
            &format!("{values:>8}{least:>14.1}{median:>10.1}{worst:>10.1}{interpreted:>18.0}\n");
        rows.push(json!({ "values": values, "native": least, "median": median, "worst": worst,
            "interpreted": interpreted }));
    }
    table += "a transition into three activations: a call that leaves, less one that stays; over 8 places of the code\n";
    Ok(Report { table, json: json!(rows) })
}
