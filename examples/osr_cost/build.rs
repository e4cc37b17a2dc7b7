//! The cost of building a continuation: in IR, per instruction built, and in Cranelift.

use super::measure::timed;
use super::points::{Live, everywhere};
use super::programs::{NAMES, module, no_program};
use super::{Arguments, Report};
use resume::Condition;
use serde_json::json;
use std::error::Error;

/// The number of continuations built for each function.
const POINTS: usize = 6;
/// Functions with fewer instructions are left out.
const LEAST: usize = 20;

pub(crate) fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let rounds = arguments.rounds.unwrap_or(5);
    let mut table = format!(
        "{:<12}{:>14}{:>14}{:>14}{:>14}{:>14}{:>16}\n",
        "program",
        "continuations",
        "instructions",
        "IR, us each",
        "ns/inst",
        "points ns/inst",
        "native us/inst"
    );
    let mut rows = Vec::new();
    for name in NAMES.into_iter().filter(|name| name.contains(&arguments.only)) {
        let Some(module) = module(arguments, name)? else { continue };
        let engine = arguments.engine()?;
        let (mut made, mut instructions, mut ir, mut native, mut put, mut copied) =
            (0u64, 0u64, 0.0, 0.0, 0.0, 0u64);
        for (func, function) in
            module.defined().filter(|(_, function)| function.inst_count() >= LEAST)
        {
            let live = Live::new(function);
            let all = everywhere(function);
            let chosen: Vec<_> = all.iter().step_by(all.len().div_ceil(POINTS)).copied().collect();
            let target = engine.version(&module, func, function, &[])?;
            for &at in &chosen {
                let mapping = live.mapping([at]);
                let entry = mapping.checked_entry(at).ok_or("the mapping has one entry")?;
                let mut best = f64::INFINITY;
                for _ in 0..rounds {
                    let (seconds, rest) =
                        timed(|| resume::continuation("rest", function, &[function], entry));
                    best = best.min(seconds);
                    rest?;
                }
                let (seconds, rest) = timed(|| engine.continuation(function, entry, &target));
                made += 1;
                instructions += rest?.instructions() as u64;
                ir += best;
                native += seconds - best;
            }
            let points: Vec<_> = chosen.iter().map(|at| live.point(*at, Condition::Flag)).collect();
            let mut best = f64::INFINITY;
            for _ in 0..rounds {
                let (seconds, made) = timed(|| resume::instrument(function, &points));
                best = best.min(seconds);
                made?;
            }
            put += best;
            copied += function.inst_count() as u64;
        }
        let (each, per, points) =
            (ir * 1e6 / made as f64, ir * 1e9 / instructions as f64, put * 1e9 / copied as f64);
        let cranelift = native * 1e6 / instructions as f64;
        table += &format!(
            "{name:<12}{made:>14}{instructions:>14}{each:>14.1}{per:>14.1}{points:>14.1}{cranelift:>16.2}\n"
        );
        rows.push(json!({ "program": name, "continuations": made, "instructions": instructions, "ir_us_each": each,
            "ir_ns_per_instruction": per, "points_ns_per_instruction": points, "cranelift_us_per_instruction": cranelift }));
    }
    if rows.is_empty() {
        return Err(no_program(arguments));
    }
    Ok(Report { table, json: json!(rows) })
}
