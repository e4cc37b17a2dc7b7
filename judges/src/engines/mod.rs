//! Osier beside the engines people use: V8 (in node), wasmtime with Cranelift and with Winch, and
//! wasmi. Each engine is a process of its own, with its start, the loading of the module, and its
//! tiers.
//!
//! [`programs`] lists the programs. In each round the engines take turns at each program, and
//! ratios are of one round. [`crate::figures::statistics`] defines the intervals. All
//! engines must print the same.

mod contender;
mod cores;
mod measuring;
pub mod programs;
mod report;
mod samples;

pub use contender::Contender;
pub use samples::Measure;

use crate::arguments::{EnginesArguments, TableFormat};
use contender::Commands;
use measuring::{Campaign, measure};
use programs::{LARGE, PROGRAMS};
use samples::Samples;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

/// Takes the samples that are missing, and prints the tables. Returns `false` if outputs of engines
/// differ.
///
/// # Errors
/// If a process cannot be run, or the file of samples cannot be read or written.
pub fn run(arguments: &EnginesArguments, out: &mut dyn Write) -> Result<bool, String> {
    let commands = commands(arguments)?;
    let samples = match &arguments.samples {
        Some(file) => Samples::read(file)?,
        None => Samples::default(),
    };
    let measured = measure(arguments, &commands, samples)?;
    let tables = report::tables(&measured.samples, &large(arguments));
    let text = match arguments.format {
        TableFormat::Json => {
            serde_json::to_string_pretty(&tables).map_err(|error| error.to_string())? + "\n"
        }
        TableFormat::Text => {
            let tables: Vec<String> = tables.iter().map(ToString::to_string).collect();
            tables.join("\n") + &remarks(&measured)
        }
    };
    out.write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    Ok(measured.unlike.is_empty())
}

/// The remarks below the tables.
fn remarks(measured: &Campaign) -> String {
    let mut text = String::new();
    for name in &measured.missing {
        text += &format!("\n{name}: not built (tests/corpus/build programs, large)");
    }
    if measured.left > 0 {
        text += &format!("\n{} blocks are not measured yet: run again", measured.left);
    }
    for difference in &measured.unlike {
        text += &format!("\n{difference}");
    }
    text + "\n"
}

/// The labels of the programs whose modules are large.
fn large(arguments: &EnginesArguments) -> BTreeSet<String> {
    let is_large = |program: &&programs::Program| {
        let file = arguments.corpus().module(program.module, program.route);
        std::fs::metadata(file).is_ok_and(|file| file.len() > LARGE)
    };
    PROGRAMS.iter().filter(is_large).map(|program| program.label()).collect()
}

/// The files that processes are started from.
///
/// # Errors
/// If one of them does not exist.
fn commands(arguments: &EnginesArguments) -> Result<Commands, String> {
    let judges = std::env::current_exe().map_err(|error| error.to_string())?;
    let beside = || judges.with_file_name("osier");
    let osier = arguments.osier.clone().unwrap_or_else(beside);
    let script = arguments.kernels.join("runners/run_node.mjs");
    for file in [&osier, &script] {
        if !file.exists() {
            let shown = file.display();
            return Err(format!("no {shown} (cargo build --release builds the command osier)"));
        }
    }
    Ok(Commands { osier, judges, node: PathBuf::from("node"), script })
}
