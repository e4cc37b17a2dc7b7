//! Bytes of code with OSR points, and bytes of the stack maps beside the code: of real programs,
//! and of one point by its number of live values.

use super::points::{Live, everywhere, headers};
use super::programs::{NAMES, module, no_program};
use super::{Arguments, Report};
use ir::{Func, Function, Module, Point};
use jit::{CompileError, Engine, Version};
use osier::{Format, load};
use resume::Condition;
use serde_json::json;
use std::error::Error;
use std::sync::Arc;

/// A choice of places for points.
type Where = fn(&Function) -> Vec<Point>;

const PLACES: [(&str, Where); 2] = [("at headers", headers), ("everywhere", everywhere)];
/// The numbers of live values of the points that are measured one by one.
const SHAPES: [usize; 3] = [4, 10, 16];
/// The points in the code whose size is compared with the size of code with one point.
const POINTS: usize = 33;

/// The sizes of a program with points at some places.
#[derive(Default)]
struct Total {
    points: usize,
    code: usize,
    description: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let shapes = shapes(arguments)?;
    let mut table = String::new();
    for (width, bytes) in &shapes {
        table += &format!("a flag with {width} live values, test and exit: {bytes:.1} bytes\n");
    }
    table += &format!(
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
    Ok(Report { table, json: json!({ "shapes": shapes, "programs": rows }) })
}

/// A function with `width` values, live at each of [`POINTS`] stores.
fn text(width: usize) -> String {
    let params: Vec<String> = (0..width).map(|k| format!("%v{k}: i64")).collect();
    let mut text = format!(
        "global @at: mut i64 = 0\nfunc @f({}) -> i64 {{\nentry:\n  jump first\nfirst:\n",
        params.join(", ")
    );
    for point in 0..POINTS {
        text += &format!("  global_set.i64 @at, %v{}\n", point % width);
    }
    let mut result = "%v0".to_owned();
    for k in 1..width {
        text += &format!("  %r{k} = xor.i64 {result}, %v{k}\n");
        result = format!("%r{k}");
    }
    text + &format!("  return {result}\n}}\n")
}

/// The bytes that each further point adds to code, for each number of live values. Its test and its
/// exit count.
fn shapes(arguments: &Arguments) -> Result<Vec<(usize, f64)>, Box<dyn Error>> {
    let engine = arguments.engine()?;
    let bytes = |width: usize| -> Result<f64, Box<dyn Error>> {
        let module = Arc::new(load(Format::Oir, text(width).as_bytes())?);
        let (func, function) = module.defined().next().ok_or("the text has a function")?;
        let first = function.blocks().nth(1).ok_or("the function has two blocks")?;
        let at: Vec<Point> = function.block_insts(first).take(POINTS).map(Point::before).collect();
        let size = |at: &[Point]| -> Result<f64, CompileError> {
            Ok(version(&engine, &module, func, function, at)?.code_size() as f64)
        };
        Ok((size(&at)? - size(&at[..1])?) / (POINTS - 1) as f64)
    };
    SHAPES.into_iter().map(|width| Ok((width, bytes(width)?))).collect()
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
