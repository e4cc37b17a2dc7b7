//! Bytes of code with OSR points in it.

use super::points::{Live, everywhere, headers};
use super::programs::{NAMES, module};
use super::{Arguments, Report};
use ir::{Func, Function, Module, Point};
use jit::{Config, Engine};
use osr::Condition;
use serde_json::json;
use std::error::Error;
use std::sync::Arc;

pub(crate) fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let mut table = format!(
        "{:<12}{:>12}{:>12}{:>10}{:>9}{:>12}{:>10}{:>9}{:>12}\n",
        "program", "bytes", "at headers", "points", "more", "everywhere", "points", "more", "a point"
    );
    let mut rows = Vec::new();
    for name in NAMES.into_iter().filter(|name| name.contains(&arguments.only)) {
        let Some(module) = module(arguments, name)? else { continue };
        let engine = Engine::new(Config::default())?;
        let (mut sizes, mut points) = ([0usize; 3], [0usize; 3]);
        for (func, function) in module.defined() {
            for (index, at) in [Vec::new(), headers(function), everywhere(function)].into_iter().enumerate() {
                points[index] += at.len();
                sizes[index] += size(&engine, &module, func, function, &at)?;
            }
        }
        let more = |index: usize| (sizes[index] as f64 / sizes[0] as f64 - 1.0) * 100.0;
        let each = (sizes[2] - sizes[0]) as f64 / points[2] as f64;
        table += &format!(
            "{name:<12}{:>12}{:>12}{:>10}{:>7.1} %{:>12}{:>10}{:>7.0} %{each:>12.1}\n",
            sizes[0],
            sizes[1],
            points[1],
            more(1),
            sizes[2],
            points[2],
            more(2)
        );
        rows.push(json!({ "program": name, "bytes": sizes[0], "bytes_at_headers": sizes[1], "headers": points[1], "headers_percent": more(1),
            "bytes_everywhere": sizes[2], "points": points[2], "everywhere_percent": more(2), "bytes_of_a_point": each }));
    }
    Ok(Report { table, json: json!(rows) })
}

fn size(
    engine: &Engine,
    module: &Arc<Module>,
    func: Func,
    function: &Function,
    at: &[Point],
) -> Result<usize, Box<dyn Error>> {
    let live = Live::new(function);
    let points: Vec<_> = at.iter().map(|at| live.point(*at, Condition::Flag)).collect();
    Ok(engine.version(module, func, function, &points)?.code_size())
}
