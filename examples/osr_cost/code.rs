//! The cost of keeping many pieces of code: to make and register each, to install it, to replace
//! it, and to free it. The number of functions doubles from line to line; costs for each function
//! shall stay the same.

use super::{Arguments, Report};
use interp::{Limits, Options};
use ir::Module;
use ir::text::parse_module;
use jit::{Version, Vm};
use serde_json::json;
use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

/// The functions of the first line, and the doublings.
const LEAST: usize = 1000;
const DOUBLINGS: u32 = 6;

/// A module with this number of small functions.
pub(super) fn module(functions: usize) -> Result<Arc<Module>, Box<dyn Error>> {
    let mut text = String::new();
    for number in 0..functions {
        write!(
            text,
            "func @f{number}(%x: i64) -> i64 {{\nentry:\n  %k = const.i64 {number}\n  \
             %y = mul.i64 %x, %k\n  return %y\n}}\n"
        )?;
    }
    Ok(Arc::new(parse_module(&text).map_err(|errors| format!("{errors:?}"))?))
}

/// Seconds of a step.
pub(super) fn timed<T>(step: impl FnOnce() -> T) -> (T, f64) {
    let begun = Instant::now();
    let made = step();
    (made, begun.elapsed().as_secs_f64())
}

/// Seconds to make, install, replace and free the code of `functions` functions.
fn measure(arguments: &Arguments, functions: usize) -> Result<[f64; 4], Box<dyn Error>> {
    let engine = arguments.engine()?;
    let module = module(functions)?;
    let mut vm = Vm::new(&engine, &module, Limits::default(), Options::default())?;
    let make = || -> Result<Vec<Arc<Version>>, jit::CompileError> {
        module.defined().map(|(func, body)| engine.version(&module, func, body, &[])).collect()
    };
    let (made, making) = timed(make);
    let (made, again) = (made?, make()?);
    let mut install = |versions: Vec<Arc<Version>>| {
        versions.into_iter().try_for_each(|version| vm.install(&version, Vec::new()))
    };
    let (done, installing) = timed(|| install(made));
    done?;
    // Replaces each version, whose code is freed.
    let (done, replacing) = timed(|| install(again));
    done?;
    let funcs: Vec<ir::Func> = module.defined().map(|(func, _)| func).collect();
    let ((), freeing) = timed(|| funcs.iter().for_each(|func| vm.uninstall(*func)));
    Ok([making, installing, replacing, freeing])
}

pub(super) fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let mut table = String::from(
        "microseconds for each function\n  functions      make   install   replace      free\n",
    );
    let mut lines = Vec::new();
    for doubling in 0..=DOUBLINGS {
        let functions = LEAST << doubling;
        let seconds = measure(arguments, functions)?;
        let micros = seconds.map(|seconds| seconds * 1e6 / functions as f64);
        write!(table, "{functions:>11}")?;
        for figure in micros {
            write!(table, "{figure:>10.2}")?;
        }
        table.push('\n');
        let [make, install, replace, free] = micros;
        lines.push(json!({
            "functions": functions, "make": make, "install": install, "replace": replace,
            "free": free,
        }));
    }
    Ok(Report { table, json: json!(lines) })
}
