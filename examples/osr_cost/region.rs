//! The cost of compiling one loop by itself, beside the whole function and the rest of the
//! function.

use super::measure::{geometric_mean, quantile, timed};
use super::programs::{NAMES, module, no_program};
use super::{Arguments, Report};
use ir::loops::LoopForest;
use ir::{Func, Function, Module, Point};
use jit::RegionExits;
use osier::driver::{NoObserver, Vigilance, derive, prove_regions};
use osr::Level;
use serde_json::json;
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;

/// The functions of each program, the largest.
const FUNCTIONS: usize = 5;
/// The most loops of a function.
const LOOPS: usize = 24;

/// The times of one function.
struct FunctionTimes {
    function: f64,
    /// Of each loop: the share of the function's instructions, of its time, and of the time of the
    /// rest of the function behind the header.
    loops: Vec<[f64; 3]>,
    /// The loop headers of the base.
    headers: usize,
}

/// The points before the loop headers.
fn headers(base: &Function) -> BTreeSet<Point> {
    let forest = LoopForest::of(base);
    forest.loops().map(|l| Point::before(base.first_inst(forest.header(l)))).collect()
}

fn measure(
    arguments: &Arguments,
    module: &Arc<Module>,
    func: Func,
    base: &Function,
    rounds: usize,
) -> Result<FunctionTimes, Box<dyn Error>> {
    let pipeline = passes::parse("O2").map_err(|error| format!("{error:?}"))?;
    let derived = derive(module, base, &pipeline, Vigilance::Off, &mut NoObserver);
    let all = headers(base);
    let count = all.len();
    let observer = &mut NoObserver;
    let (made, regions) = prove_regions(module, base, &derived, Level::Avail, all, observer);
    let version = &derived.function;
    let engine = arguments.engine()?;
    let (mut function, mut target) = (f64::INFINITY, None);
    for _ in 0..rounds {
        let (seconds, one) = timed(|| engine.version(module, func, version, &[]));
        (function, target) = (function.min(seconds), Some(one?));
    }
    let target = target.ok_or("at least one round")?;
    let (up, down) = (&made.highest().before.mapping, &made.highest().after.mapping);
    let mut loops = Vec::new();
    let step = regions.len().div_ceil(LOOPS).max(1);
    for (at, one) in regions.iter().step_by(step) {
        let entry = up.checked_entry(*at).ok_or("a region has an entry")?;
        let (mut region, mut rest, mut instructions) = (f64::INFINITY, f64::INFINITY, 0);
        for _ in 0..rounds {
            let exits = RegionExits { back: down, points: &one.cut };
            let made = || engine.region(module, func, base, version, entry, exits);
            let (seconds, made) = timed(made);
            (region, instructions) = (region.min(seconds), made?.instructions());
            let (seconds, made) = timed(|| engine.continuation(base, entry, &target));
            rest = rest.min(seconds);
            made?;
        }
        let share = instructions as f64 / version.inst_count() as f64;
        loops.push([share, region / function, region / rest]);
    }
    Ok(FunctionTimes { function, loops, headers: count })
}

pub(crate) fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let rounds = arguments.rounds.unwrap_or(2);
    let mut table = format!(
        "{:<11}{:<26}{:>7}{:>6}{:>8}{:>10}{:>9}{:>9}{:>9}{:>9}\n",
        "program",
        "function",
        "insts",
        "loops",
        "regions",
        "func ms",
        "mean",
        "median",
        "worst",
        "rest"
    );
    let mut rows = Vec::new();
    for name in NAMES.into_iter().filter(|name| name.contains(&arguments.only)) {
        let Some(module) = module(arguments, name)? else { continue };
        let mut functions: Vec<(Func, &Function)> = module.defined().collect();
        functions.sort_by_key(|(_, base)| std::cmp::Reverse(base.inst_count()));
        for (func, base) in functions.into_iter().take(FUNCTIONS) {
            let FunctionTimes { function, loops, headers } =
                measure(arguments, &module, func, base, rounds)?;
            if loops.is_empty() {
                continue;
            }
            let mut shares: Vec<f64> = loops.iter().map(|one| one[1]).collect();
            let rests: Vec<f64> = loops.iter().map(|one| one[2]).collect();
            let (mean, median) = (geometric_mean(&shares), quantile(&mut shares, 0.5));
            let (worst, rest) = (quantile(&mut shares, 1.0), geometric_mean(&rests));
            let short: String = base.name().chars().take(25).collect();
            table += &format!(
                "{name:<11}{short:<26}{:>7}{headers:>6}{:>8}{:>10.1}{mean:>9.3}{median:>9.3}\
                 {worst:>9.3}{rest:>9.3}\n",
                base.inst_count(),
                loops.len(),
                function * 1e3
            );
            rows.push(json!({ "program": name, "function": base.name(),
                "instructions": base.inst_count(), "loop_headers": headers,
                "function_ms": function * 1e3, "regions": loops }));
        }
    }
    if rows.is_empty() {
        return Err(no_program(arguments));
    }
    Ok(Report { table, json: json!(rows) })
}
