//! `wicker integrators [STEPS]`: four integrators of a function that they call as a value
//! (`programs/integrators.wk`). *Generic* code calls any function through the interpreter. *Direct*
//! code compares the callee with the functions called so far, and calls them; *inlined*, it has
//! their code instead. *Assuming*, rows of landing tables assume which of these it is, in addition.
//! *By hand*, the program names the function.

use crate::bench::quartiles;
use osier::tiers::TableUse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use wicker::Machine;
use wicker::native::{CallUse, Counts, RowEvents, Tuning};

const TEXT: &str = include_str!("../programs/integrators.wk");
/// The first line behind the integrators.
const END: &str = "# The last part.";
const NAMES: [&str; 4] = ["euler", "midpoint", "runge_kutta", "anneal"];
/// The functions of the calls in turns: the first call enters the loop in the middle, the second
/// makes the code for calls, and the fourth and the fifth change the function.
const FUNCTIONS: [&str; 6] = ["decay", "decay", "decay", "wave", "decay", "decay"];
/// The calls in which all code is made: before the function has changed, and behind that.
const STEADY: [usize; 2] = [2, 5];
/// How often these are made. The fastest counts: a neighbor slows some of them down by half.
const TIMES: usize = 7;
/// The machines of each way.
const MACHINES: usize = 7;
/// The steps of a call, unless the command line says otherwise.
pub(crate) const STEPS: u64 = 300_000;

/// A way to call the function.
struct Way {
    label: &'static str,
    callees: CallUse,
    tables: Option<TableUse>,
    is_by_hand: bool,
}

const ALL: Option<TableUse> = Some(TableUse::Everywhere);
const WAYS: [Way; 5] = [
    Way { label: "direct", callees: CallUse::Direct, tables: None, is_by_hand: false },
    Way { label: "inlined", callees: CallUse::Inlined, tables: None, is_by_hand: false },
    Way { label: "assuming", callees: CallUse::Inlined, tables: ALL, is_by_hand: false },
    Way { label: "by hand", callees: CallUse::Inlined, tables: ALL, is_by_hand: true },
    // It takes longest, so it comes last: the speed of the processor changes with time.
    Way { label: "generic", callees: CallUse::Any, tables: ALL, is_by_hand: false },
];

/// The way whose gain beside others is printed.
const ASSUMING: usize = 2;

/// The calls of one machine.
struct Calls {
    /// The nanoseconds a step of each call.
    times: Vec<f64>,
    /// The last result of each call.
    results: BTreeMap<Call, String>,
    counts: Counts,
}

/// A call of a machine.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    number: usize,
    /// By hand, calls have one function, whatever the others have.
    function: &'static str,
}

/// Measures, and prints the nanoseconds a step of each call, and how many times as fast the code
/// that assumes is: the medians of several rounds, in which all ways take turns.
///
/// # Errors
/// If two ways compute different results, or the output cannot be written.
pub(crate) fn run(steps: u64) -> Result<(), String> {
    let print = |line: String| writeln!(io::stdout(), "{line}").map_err(|e| e.to_string());
    print(format!(
        "ns a step of calls with {}; medians of {MACHINES} machines; of calls 3 and 6 the fastest \
         of {TIMES}",
        FUNCTIONS.join(", ")
    ))?;
    for name in NAMES {
        let mut times = [const { Vec::new() }; WAYS.len()];
        let mut counts = [const { None }; WAYS.len()];
        for _ in 0..MACHINES {
            let mut results: BTreeMap<Call, String> = BTreeMap::new();
            for (index, way) in WAYS.iter().enumerate() {
                let calls = once(name, way, steps)?;
                for (call, result) in calls.results {
                    let first = results.entry(call).or_insert_with(|| result.clone());
                    if *first != result {
                        return Err(format!("{name}, {}: {result}, not {first}", way.label));
                    }
                }
                let Counts { inlined, rows, .. } = &calls.counts;
                if index == ASSUMING && (rows.made == 0 || *inlined == 0) {
                    return Err(format!("{name}: nothing is assumed, or nothing inlined"));
                }
                times[index].push(calls.times);
                counts[index] = Some(calls.counts);
            }
        }
        let of = |way: usize, call: usize| {
            quartiles(times[way].iter().map(|run| run[call]).collect())[1]
        };
        for (index, way) in WAYS.iter().enumerate() {
            let mut line = format!("{name:12} {:9}", way.label);
            (0..FUNCTIONS.len()).for_each(|call| _ = write!(line, " {:7.2}", of(index, call)));
            let Counts { entered, exits, rows: RowEvents { made, linked, .. }, .. } =
                counts[index].take().ok_or("no machine")?;
            print(format!(
                "{line}  {entered} entered, {exits} exits, {made} rows, {linked} exits to rows"
            ))?;
        }
        let mut line = format!("{name:12} times as fast as");
        for other in [4, 0, 1, 3] {
            let _ = write!(line, " {}", WAYS[other].label);
            for call in STEADY {
                let rounds = times[other].iter().zip(&times[ASSUMING]);
                let gains = rounds.map(|(other, own)| other[call] / own[call]).collect();
                let [_, gain, _] = quartiles(gains);
                let _ = write!(line, " {gain:.2}");
            }
        }
        print(format!("{line}, in calls 3 and 6"))?;
    }
    Ok(())
}

/// The calls of an integrator in a new machine.
fn once(name: &str, way: &Way, steps: u64) -> Result<Calls, String> {
    let (functions, _) = TEXT.split_once(END).ok_or("the program has its last part")?;
    let mut text = format!("{functions}var begun = 0; var y = 0; var took = 0; var least = 0;\n");
    let called = FUNCTIONS.map(|function| if way.is_by_hand { FUNCTIONS[0] } else { function });
    let prefix = if way.is_by_hand { "direct_" } else { "" };
    for (call, function) in called.iter().enumerate() {
        let times = if STEADY.contains(&call) { TIMES } else { 1 };
        let _ = writeln!(
            text,
            "least = 1e9; for i in 0..{times} {{ \
                 begun = clock(); y = {prefix}{name}({function}, 2.5, {steps}); \
                 took = (clock() - begun) / {steps}; if took < least {{ least = took; }} \
             }} print(least, y);"
        );
    }
    let mut machine = Machine::new(&text).map_err(|error| error.to_string())?;
    let Way { callees, tables, .. } = *way;
    let counts = machine.run_native(Tuning { tables, callees, ..Tuning::default() });
    let counts = counts.map_err(|error| error.to_string())?;
    let output = String::from_utf8_lossy(&machine.take_output()).into_owned();
    let (mut times, mut results) = (Vec::new(), BTreeMap::new());
    for ((number, function), line) in called.into_iter().enumerate().zip(output.lines()) {
        let (time, result) = line.split_once(' ').ok_or("a line has two figures")?;
        times.push(time.parse().map_err(|error| format!("{time}: {error}"))?);
        results.insert(Call { number, function }, result.to_owned());
    }
    match times.len() == FUNCTIONS.len() {
        true => Ok(Calls { times, results, counts }),
        false => Err(format!("no figures: {output}")),
    }
}
