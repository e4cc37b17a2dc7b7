//! The costs from which the tiering policy derives its thresholds: of one instruction in each tier,
//! and of bringing it there.

use super::measure::{geometric_mean, timed};
use super::{Arguments, Report};
use interp::{Limits, Machine, Options, Outcome, Program, Run};
use ir::{Function, Module};
use jit::{Config, Effort, Engine, Quiet, Vm};
use osier::driver::{self, Derived, Vigilance, derive, prove_at};
use osier::{Format, load};
use osr::Level;
use passes::Pipeline;
use serde_json::json;
use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use transition::{Pair, Side};
use wasm::wasi::Wasi;

/// The kernels, with sizes of some ten million instructions by route m2r.
const KERNELS: [(&str, &str); 14] = [
    ("calls", "60000"),
    ("divide", "5000"),
    ("edit", "260"),
    ("hash", "40000"),
    ("mandel", "50"),
    ("matmul", "70"),
    ("mixed", "16000"),
    ("nbody", "8000"),
    ("queens", "8"),
    ("scan", "80000"),
    ("sieve", "70000"),
    ("sort", "10000"),
    ("stencil", "20"),
    ("vm", "2000"),
];

/// Picoseconds, each for one instruction.
#[derive(Default)]
struct Row {
    name: String,
    instructions: usize,
    /// Executed: by the interpreter, and natively by each way of compiling.
    interpreted: f64,
    native: [f64; 3],
    /// Brought there, summed over the functions.
    work: Work,
}

/// The seconds of making code for all functions of a module.
#[derive(Clone, Copy, Default)]
struct Work {
    least: f64,
    most: f64,
    passes: f64,
    /// One entry in each function with a loop, and the instructions of these functions.
    mapped: f64,
    /// The same, from the base to itself.
    same: f64,
    looping: usize,
}

/// The ways of compiling: quickly, with all effort, and after the passes.
const WAYS: [&str; 3] = ["least effort", "most effort", "after O2"];

pub(super) fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let mut rows = Vec::new();
    for (name, size) in KERNELS {
        for route in ["", ".o2"] {
            let named = format!("{name}{route}");
            if named.contains(&arguments.only) {
                let file = Path::new("tests/corpus").join(format!("{named}.wasm"));
                rows.push(measured(&named, &file, size)?);
            }
        }
    }
    if rows.is_empty() {
        return Err(format!("no kernel has {:?} in its name", arguments.only).into());
    }
    Ok(report(&rows))
}

fn measured(name: &str, file: &Path, size: &str) -> Result<Row, Box<dyn Error>> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let module = Arc::new(load(Format::Wasm, &bytes).map_err(|error| error.in_file(name))?);
    let least = Engine::new(Config { effort: Effort::Least, ..Config::default() })?;
    let most = Engine::new(Config::default())?;
    let optimized = |body: &Function| -> Derived {
        derive(&module, body, &Pipeline::default(), Vigilance::Off, &mut driver::NoObserver)
    };
    let mut work = Work::default();
    let (executed, seconds) = interpreted(&module, size)?;
    let mut native = [0.0; 3];
    for (way, engine) in [&least, &most, &most].into_iter().enumerate() {
        let mut vm = Vm::new(engine, &module, limits(), options())?;
        vm.set_tiering(Box::new(Quiet));
        for (func, body) in module.defined() {
            let derived = match way {
                2 => {
                    let (seconds, derived) = timed(|| optimized(body));
                    work.passes += seconds;
                    work.entries(&module, body, &derived);
                    derived.function
                }
                _ => body.clone(),
            };
            let (seconds, version) = timed(|| engine.version(&module, func, &derived, &[]));
            vm.install(&version?, Vec::new())?;
            match way {
                0 => work.least += seconds,
                1 => work.most += seconds,
                _ => {}
            }
        }
        let mut host = host(size);
        let start = module.lookup("_start").ok_or("it exports no _start")?;
        let (seconds, ended) = timed(|| vm.invoke(start, &[], &mut host));
        require_end(&ended?)?;
        native[way] = seconds / executed as f64 * 1e12;
    }
    Ok(Row {
        name: name.to_owned(),
        instructions: module.defined().map(|(_, body)| body.inst_count()).sum(),
        interpreted: seconds / executed as f64 * 1e12,
        native,
        work,
    })
}

impl Work {
    /// Makes an entry at the first loop header of a function, to its optimized version and to
    /// itself.
    fn entries(&mut self, module: &Module, base: &Function, derived: &Derived) {
        let mut first = BTreeSet::new();
        let asked = |pair: &osr::VersionPair<'_>| {
            first.extend(pair.loop_headers(Side::Before).into_iter().next());
            Pair::new(first.clone(), BTreeSet::new())
        };
        let mut observer = driver::NoObserver;
        let (seconds, _) =
            timed(|| prove_at(module, base, derived, Level::Avail, asked, &mut observer));
        if first.is_empty() {
            return;
        }
        self.mapped += seconds;
        self.same += timed(|| check::stay(module, base, &first)).0;
        self.looping += base.inst_count();
    }
}

/// Runs a program in the interpreter, which counts visits. Returns the instructions executed, and
/// the seconds.
fn interpreted(module: &Arc<Module>, size: &str) -> Result<(u64, f64), Box<dyn Error>> {
    let mut machine = Machine::with_options(&Program::new(module), limits(), options())?;
    machine.count_visits();
    for (func, body) in module.defined() {
        let version = machine.current(func).ok_or("it has a body")?;
        let headers = super::points::headers(body).into_iter().map(|at| at.inst());
        machine.count_blocks(version, headers.map(|inst| (inst, u32::MAX)));
        machine.pause_after(version, body.first_inst(body.entry()), u32::MAX);
    }
    let start = module.lookup("_start").ok_or("it exports no _start")?;
    let nobody = AtomicU32::new(0);
    let mut host = host(size);
    machine.start(start, &[]);
    let (seconds, run) = timed(|| machine.run_to_visit(&mut host, [&nobody; 2]));
    match run {
        Run::Done(outcome) => require_end(&outcome)?,
        other => return Err(format!("the program does not end: {other:?}").into()),
    }
    Ok((u64::MAX - machine.fuel(), seconds))
}

fn limits() -> Limits {
    Limits { fuel: u64::MAX, ..Limits::default() }
}

fn options() -> Options {
    Options::default()
}

fn host(size: &str) -> Wasi<'static> {
    let args = vec!["program".to_owned(), size.to_owned()];
    Wasi::new(args, std::io::empty(), std::io::sink(), std::io::sink())
}

fn require_end(outcome: &Outcome) -> Result<(), Box<dyn Error>> {
    match outcome {
        Outcome::Returned(_) | Outcome::Exited(0) => Ok(()),
        other => Err(format!("the program does not end: {other}").into()),
    }
}

fn report(rows: &[Row]) -> Report {
    let mean = |of: &dyn Fn(&Row) -> f64| geometric_mean(&rows.iter().map(of).collect::<Vec<_>>());
    let total = |of: &dyn Fn(&Work) -> f64| rows.iter().map(|row| of(&row.work)).sum::<f64>();
    let instructions: usize = rows.iter().map(|row| row.instructions).sum();
    let looping: usize = rows.iter().map(|row| row.work.looping).sum();
    let each = |seconds: f64, of: usize| seconds / of.max(1) as f64 * 1e12;
    let executed = [
        ("interpreted", mean(&|row| row.interpreted)),
        (WAYS[0], mean(&|row| row.native[0])),
        (WAYS[1], mean(&|row| row.native[1])),
        (WAYS[2], mean(&|row| row.native[2])),
    ];
    let brought = [
        ("compiled, least effort", each(total(&|work| work.least), instructions)),
        ("compiled, most effort", each(total(&|work| work.most), instructions)),
        ("passes", each(total(&|work| work.passes), instructions)),
        ("mapped to O2", each(total(&|work| work.mapped), looping)),
        ("mapped to itself", each(total(&|work| work.same), looping)),
    ];
    let mut table = "one instruction, in picoseconds\n".to_owned();
    for (name, picoseconds) in executed.iter().chain(&brought) {
        table += &format!("  {name:<24} {picoseconds:>12.0}\n");
    }
    table += "\nexecuted          interpreted        least         most     after O2\n";
    for row in rows {
        let [least, most, opt] = row.native;
        let name = &row.name;
        table += &format!(
            "{name:<16} {:>12.0} {least:>12.0} {most:>12.0} {opt:>12.0}\n",
            row.interpreted
        );
    }
    let json = json!({
        "executed": executed.map(|(name, cost)| json!({ "name": name, "picoseconds": cost })),
        "brought": brought.map(|(name, cost)| json!({ "name": name, "picoseconds": cost })),
    });
    Report { table, json }
}
