//! `wicker phases`: a hash whose elements come in phases of one kind. With *tables*, code assumes
//! the kind of numbers, and continues in rows where that fails. *Made anew*, it leaves to the
//! interpreter, and is made without an assumption that fails too often. With *doubles*, code
//! computes with doubles once both kinds were seen.

use crate::bench::quartiles;
use osier::tiers::TableUse;
use std::io::{self, Write};
use wicker::Machine;
use wicker::native::{Counts, RowEvents, Tuning};

/// Rounds; in each, every way runs the program once.
const ROUNDS: usize = 7;

/// The phases, by name.
const PHASES: [&str; 4] = ["int32", "doubles", "objects", "int32 again"];

/// Prints the nanoseconds an element of the fastest calls of each phase, and of the whole phase.
const TEXT: &str = "
func hash(a, boxed) {
    var s = 0;
    for i in 0..len(a) {
        var x = a[i];
        if boxed { x = x.v; }
        s = (s * 31 + x) % 8191;
    }
    return s;
}
var kinds = [[], [], []];
for i in 0..1000 { push(kinds[0], i); push(kinds[1], i + 0.5); push(kinds[2], {v: i}); }
func calls(kind, count) {
    var s = 0;
    var begun = clock();
    for i in 0..count { s = hash(kinds[kind], kind == 2); }
    return (clock() - begun) / (count * 1000);
}
for phase in 0..4 {
    var all = 0;
    var least = 1000000;
    for part in 0..40 {
        var time = calls(phase % 3, 100);
        all = all + time;
        if time < least { least = time; }
    }
    print(least, all / 40);
}
";

/// Measures, and prints a line for each way.
///
/// # Errors
/// If the program fails, or its output cannot be written.
pub(crate) fn run() -> Result<(), String> {
    let print = |line: String| writeln!(io::stdout(), "{line}").map_err(|e| e.to_string());
    let ways = [
        ("tables", Some(TableUse::Everywhere)),
        ("made anew", Some(TableUse::Nowhere)),
        ("doubles", None),
    ];
    let mut times = [const { Vec::new() }; 3];
    let mut counts = [const { None }; 3];
    for _ in 0..ROUNDS {
        for (way, (_, tables)) in ways.iter().enumerate() {
            let (output, counted) = once(*tables)?;
            times[way].push(output);
            counts[way] = Some(counted);
        }
    }
    print(format!(
        "ns an element: {}, the fastest of 40 parts (the whole phase)",
        PHASES.join(", ")
    ))?;
    for ((name, _), (times, counts)) in ways.iter().zip(times.iter().zip(&counts)) {
        let mut line = format!("{name:10}");
        for phase in 0..PHASES.len() {
            let [least, whole] = [0, 1]
                .map(|part| quartiles(times.iter().map(|run| run[2 * phase + part]).collect())[1]);
            line += &format!(" {least:7.2} ({whole:.2})");
        }
        let counts: &Option<Counts> = counts;
        let counts = counts.as_ref().ok_or("no round")?;
        let Counts { compiled, exits, rows: RowEvents { made, linked, .. }, .. } = counts;
        line += &format!("  {compiled} compiled, {exits} exits, {made} rows, {linked} linked");
        print(line)?;
    }
    Ok(())
}

/// The figures of one run, and its events.
fn once(tables: Option<TableUse>) -> Result<(Vec<f64>, Counts), String> {
    let mut machine = Machine::new(TEXT).map_err(|error| error.to_string())?;
    let counts = machine.run_native(Tuning { tables, ..Tuning::default() });
    let counts = counts.map_err(|error| error.to_string())?;
    let output = String::from_utf8_lossy(&machine.take_output()).into_owned();
    let figures: Vec<f64> = output.split_whitespace().flat_map(str::parse).collect();
    match figures.len() == 2 * PHASES.len() {
        true => Ok((figures, counts)),
        false => Err(format!("no figures: {output}")),
    }
}
