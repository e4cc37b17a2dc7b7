//! Bytes of code with OSR points, and bytes of the stack maps beside the code.

use super::points::{Live, everywhere, headers};
use super::programs::{NAMES, module, no_program};
use super::{Arguments, Report};
use ir::{Func, Function, Module, Point};
use jit::{CompileError, Engine, Version};
use resume::Condition;
use serde_json::json;
use std::error::Error;
use std::sync::Arc;

/// A choice of places for points.
type Where = fn(&Function) -> Vec<Point>;

const PLACES: [(&str, Where); 2] = [("at headers", headers), ("everywhere", everywhere)];

/// The sizes of a program with points at some places.
#[derive(Default)]
struct Total {
    points: usize,
    code: usize,
    description: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let mut table = format!(
        "{:<10}{:<11}{:>7}{:>10}{:>10}{:>10}{:>9}{:>12}\n",
        "program", "points", "", "bytes", "more", "a point", "beside", "a point"
    );
    let mut rows = Vec::new();
    let engine = arguments.engine()?;
    for name in NAMES.into_iter().filter(|name| name.contains(&arguments.only)) {
        let Some(module) = module(arguments, name)? else { continue };
        let plain = total(&engine, &module, |_| Vec::new())?;
        table += &format!("{name:<10}{:<11}{:>7}{:>10}\n", "none", "", plain.code);
        for (places, points) in PLACES {
            let total = total(&engine, &module, points)?;
            let more = (total.code as f64 / plain.code as f64 - 1.0) * 100.0;
            let each = (total.code as f64 - plain.code as f64) / total.points as f64;
            let beside = total.description as f64 / total.points as f64;
            table += &format!(
                "{:<10}{places:<11}{:>7}{:>10}{more:>8.1} %{each:>10.1}{:>9}{beside:>12.1}\n",
                "", total.points, total.code, total.description
            );
            rows.push(json!({ "program": name, "places": places, "points": total.points, "bytes_without": plain.code, "bytes": total.code,
                "percent": more, "bytes_of_a_point": each, "bytes_beside": total.description }));
        }
    }
    if rows.is_empty() {
        return Err(no_program(arguments));
    }
    Ok(Report { table, json: json!(rows) })
}

fn total(engine: &Engine, module: &Arc<Module>, points: Where) -> Result<Total, Box<dyn Error>> {
    let mut total = Total::default();
    for (func, function) in module.defined() {
        let at = points(function);
        let version = version(engine, module, func, function, &at)?;
        total.points += at.len();
        total.code += version.code_size();
        total.description += version.described_size();
    }
    Ok(total)
}

fn version(
    engine: &Engine,
    module: &Arc<Module>,
    func: Func,
    function: &Function,
    at: &[Point],
) -> Result<Arc<Version>, CompileError> {
    let live = Live::new(function);
    let points: Vec<_> = at.iter().map(|at| live.point(*at, Condition::Flag)).collect();
    engine.version(module, func, function, &points)
}
