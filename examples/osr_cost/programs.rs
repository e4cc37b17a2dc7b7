//! The cost of points that never fire, at the loop headers of real programs.

use super::measure::{Times, timed};
use super::points::{Live, assuming, headers};
use super::{Arguments, Report};
use interp::{Control, Limits, Machine, Observer, Options, Outcome, Program, Scope, View};
use ir::edit::{Editor, Fuel, Pass, apply};
use ir::{Func, Function, Global, Imm, InstSpec, Module, Opcode, Type, Value};
use jit::{Action, Quiet, Vm};
use osier::speculate::{Assumption, Expected};
use osier::{Format, load};
use resume::{Condition, PointSpec, Truth};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;
use wasm::wasi::Wasi;

/// The real programs, built by both routes.
pub(crate) const NAMES: [&str; 8] = [
    "bzip2.m2r",
    "bzip2.o2",
    "zlib.m2r",
    "zlib.o2",
    "lua.m2r",
    "lua.o2",
    "sqlite.m2r",
    "sqlite.o2",
];
/// Sizes for which a native run takes some tenths of a second.
const SIZES: [(&str, &str); 4] =
    [("bzip2", "2000000"), ("zlib", "4000000"), ("lua", "600"), ("sqlite", "40000")];
/// Sizes for counting visits in the interpreter.
const SMALL: [(&str, &str); 4] =
    [("bzip2", "20000"), ("zlib", "20000"), ("lua", "4"), ("sqlite", "500")];
/// The number of functions with the most visited loops, which get countdowns and guards.
const HOT: usize = 5;
/// The number of code places at which each function of each variant is compiled.
const PLACES: usize = 8;

/// A program; `None` if it is not built.
pub(crate) fn module(
    arguments: &Arguments,
    name: &str,
) -> Result<Option<Arc<Module>>, Box<dyn Error>> {
    let file = arguments.programs.join(format!("{name}.wasm"));
    if !file.exists() {
        return Ok(None);
    }
    let bytes = std::fs::read(&file)?;
    Ok(Some(Arc::new(load(Format::Wasm, &bytes).map_err(|error| error.in_file(name))?)))
}

/// The error of a subcommand that finds none of the programs.
pub(crate) fn no_program(arguments: &Arguments) -> Box<dyn Error> {
    let folder = arguments.programs.display();
    format!("{folder}: no such program; `tests/corpus/build programs` makes them").into()
}

/// The size of a native run of a program.
pub(crate) fn size(name: &str) -> &'static str {
    sized(&SIZES, name)
}

fn sized<'s>(sizes: &[(&str, &'s str)], name: &str) -> &'s str {
    sizes.iter().find(|(known, _)| name.starts_with(known)).map_or("1", |(_, size)| size)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Variant {
    Plain,
    Again,
    /// A flag at every loop header of the program.
    Flags,
    /// A countdown at every loop header of the hottest functions.
    Countdowns,
    /// A guard at every loop header of the hottest functions: the first argument, a pointer, is not
    /// null.
    Guards,
    /// An assumption of the same condition in the place of each guard; no pass uses it.
    Assumptions,
}

const VARIANTS: [Variant; 6] = [
    Variant::Plain,
    Variant::Again,
    Variant::Flags,
    Variant::Countdowns,
    Variant::Guards,
    Variant::Assumptions,
];

/// The numbers of visits of loop headers, by function.
struct Visits(BTreeMap<Func, u64>);

impl Observer for Visits {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, _inst: ir::Inst) -> Control {
        *self.0.entry(view.func()).or_default() += 1;
        Control::Continue
    }
}

/// Counts visits of loop headers in the interpreter, by function.
fn visits(module: &Arc<Module>, args: Vec<String>) -> Result<BTreeMap<Func, u64>, Box<dyn Error>> {
    let program = Program::new(module);
    let limits = Limits { fuel: u64::MAX, ..Limits::default() };
    let options = Options::default();
    let mut machine = Machine::with_options(&program, limits, options)?;
    for (func, function) in module.defined() {
        let version = machine.current(func).ok_or("it is defined")?;
        machine.mark(version, headers(function).iter().map(|at| at.inst()));
    }
    let mut host = Wasi::new(args, std::io::empty(), std::io::sink(), std::io::sink());
    let mut visits = Visits(BTreeMap::new());
    match machine.invoke(start(module)?, &[], &mut host, &mut visits) {
        Outcome::Returned(_) | Outcome::Exited(0) => Ok(visits.0),
        other => Err(format!("the program does not end: {other}").into()),
    }
}

/// The function that runs a program.
pub(crate) fn start(module: &Arc<Module>) -> Result<Func, Box<dyn Error>> {
    module.lookup("_start").ok_or_else(|| "it exports no _start".into())
}

/// Adds stores of the stack pointer's own value at the start of a function, which moves the code
/// that follows.
struct Pad(usize);

impl Pass for Pad {
    fn name(&self) -> &'static str {
        "pad"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        let first = editor.func().first_inst(editor.func().entry());
        let global = Imm::Global(Global::from_u32(0));
        if self.0 == 0 || !editor.plan("pad") {
            return;
        }
        let pointer =
            editor.add_value(InstSpec::new(Opcode::GlobalGet, Type::I32, global, &[]), first);
        for _ in 0..self.0 {
            editor.add(InstSpec::new(Opcode::GlobalSet, Type::I32, global, &[pointer]), first);
        }
    }
}

/// The first argument, if it may be a pointer: an integer that was never 0.
fn pointer(function: &Function, dropped: &BTreeSet<String>) -> Option<Value> {
    let first = function.arguments().first().copied()?;
    let may_be = function.value_type(first).is_int() && !dropped.contains(function.name());
    may_be.then_some(first)
}

/// The assumptions of a function in a variant.
fn assumptions(
    function: &Function,
    variant: Variant,
    hot: bool,
    dropped: &BTreeSet<String>,
) -> Vec<Assumption> {
    let is_assuming = hot && variant == Variant::Assumptions;
    let Some(value) = pointer(function, dropped).filter(|_| is_assuming) else { return Vec::new() };
    let expected = Expected::IsNot(0);
    let of = |at| Assumption { at, value, expected, reason: 0 };
    headers(function).into_iter().map(of).collect()
}

/// The points of a function in a variant.
fn points(
    function: &Function,
    variant: Variant,
    hot: bool,
    dropped: &BTreeSet<String>,
) -> Vec<PointSpec> {
    let condition = match variant {
        Variant::Plain | Variant::Again | Variant::Assumptions => return Vec::new(),
        Variant::Flags => Condition::Flag,
        Variant::Countdowns if hot => Condition::Countdown(u64::MAX),
        Variant::Guards if hot => match pointer(function, dropped) {
            Some(value) => Condition::Guard { value, when: Truth::Zero },
            None => return Vec::new(),
        },
        Variant::Countdowns | Variant::Guards => return Vec::new(),
    };
    let live = Live::new(function);
    headers(function).into_iter().map(|at| live.point(at, condition)).collect()
}

struct Run {
    seconds: f64,
    printed: Vec<u8>,
    points: usize,
    /// Bytes of code, by function.
    bytes: BTreeMap<Func, usize>,
    fired: u64,
}

/// The settings of a run.
#[derive(Clone, Copy)]
struct Setup<'a> {
    arguments: &'a Arguments,
    name: &'a str,
    variant: Variant,
    hot: &'a BTreeSet<Func>,
    dropped: &'a BTreeSet<String>,
    armed: bool,
}

/// Compiles everything and runs the program.
///
/// # Panics
/// If native code cannot run on this host, or the program traps.
fn execute(module: &Arc<Module>, setup: Setup<'_>) -> Result<Run, jit::RunError> {
    let engine = setup.arguments.engine().expect("native code runs on this host");
    let options = Options::default();
    let mut vm =
        Vm::new(&engine, module, Limits::default(), options).expect("it was instantiated before");
    vm.set_tiering(Box::new(Quiet));
    let (mut count, mut bytes) = (0, BTreeMap::new());
    for (func, function) in module.defined() {
        let hot = setup.hot.contains(&func);
        let assumptions = assumptions(function, setup.variant, hot, setup.dropped);
        if !assumptions.is_empty() {
            let made = assuming(&engine, module, func, &assumptions);
            let (version, actions) = made.expect("the values are available");
            count += actions.len();
            bytes.insert(func, version.code_size());
            vm.install(&version, actions).map_err(jit::RunError::Link)?;
            continue;
        }
        let points = points(function, setup.variant, hot, setup.dropped);
        let version =
            engine.version(module, func, function, &points).map_err(jit::RunError::Compile)?;
        let mut actions = Vec::new();
        if setup.armed && !points.is_empty() {
            let target =
                engine.version(module, func, function, &[]).map_err(jit::RunError::Compile)?;
            vm.adopt(&target, Vec::new()).map_err(jit::RunError::Link)?;
            let mapping = Live::new(function).mapping(points.iter().map(|point| point.at));
            for point in &points {
                let entry = mapping.checked_entry(point.at).expect("each point has an entry");
                let rest = engine.continuation(function, entry, &target);
                actions.push(Action::Continue(rest.map_err(jit::RunError::Continue)?));
            }
        } else {
            actions.resize(points.len(), Action::Ask);
        }
        count += points.len();
        bytes.insert(func, version.code_size());
        vm.install(&version, actions).map_err(jit::RunError::Link)?;
        if setup.armed {
            (0..points.len()).for_each(|number| version.arm(number));
        }
    }
    let mut printed = Vec::new();
    let args = vec![setup.name.to_owned(), size(setup.name).to_owned()];
    let (seconds, outcome) = {
        let mut host = Wasi::new(args, std::io::empty(), &mut printed, std::io::sink());
        let start = start(module).expect("it was found before");
        timed(|| vm.invoke(start, &[], &mut host))
    };
    let ended = outcome?;
    let is_complete = matches!(ended, Outcome::Returned(_) | Outcome::Exited(0));
    assert!(is_complete, "{} does not end as it should: {ended}", setup.name);
    let fired = vm.transitions().iter().map(|made| made.count).sum();
    Ok(Run { seconds, printed, points: count, bytes, fired })
}

pub(crate) fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let rounds = arguments.rounds.unwrap_or(2);
    let mut table = format!(
        "{:<12}{:>10}{:>14}{:>8}{:>26}{:>26}{:>26}{:>26}{:>14}\n",
        "program",
        "plain, s",
        "visits*",
        "again",
        "flags: n, ratio",
        "countdowns",
        "guards",
        "assumptions",
        "fired armed"
    );
    let mut rows = Vec::new();
    for name in NAMES.into_iter().filter(|name| name.contains(&arguments.only)) {
        let Some(module) = module(arguments, name)? else { continue };
        let row = measure(arguments, &module, name, rounds)?;
        table += &format!(
            "{name:<12}{:>10.4}{:>14}{:>8.3}",
            row.times[0].best(),
            row.visits,
            row.ratio(1)
        );
        for index in 2..VARIANTS.len() {
            table += &format!(
                "{:>8}{:>6.3}{:>6.3}{:>6.2}",
                row.points[index],
                row.ratio(index),
                row.mean_ratio(index),
                row.growth(index)
            );
        }
        table += &format!("{:>14}\n", row.fired);
        let variants: serde_json::Map<_, _> = VARIANTS
            .iter()
            .enumerate()
            .map(|(index, variant)| {
                let row = json!({ "points": row.points[index], "seconds": row.times[index].best(), "ratio": row.ratio(index),
                    "mean_ratio": row.mean_ratio(index), "bytes": row.bytes[index].values().sum::<usize>(),
                    "growth": row.growth(index) });
                (format!("{variant:?}"), row)
            })
            .collect();
        rows.push(json!({ "program": name, "visits_of_small_run": row.visits, "fired_armed": row.fired, "variants": variants }));
    }
    table += "* of loop headers, in a small run in the interpreter; ratios: of the fastest at the best place, of the means over places, of the code of the functions changed\n";
    if rows.is_empty() {
        return Err(no_program(arguments));
    }
    Ok(Report { table, json: json!(rows) })
}

struct Row {
    times: Vec<Times>,
    points: Vec<usize>,
    bytes: Vec<BTreeMap<Func, usize>>,
    visits: u64,
    fired: u64,
}

impl Row {
    fn ratio(&self, variant: usize) -> f64 {
        self.times[variant].best() / self.times[0].best()
    }

    /// The size of the functions whose code a variant changes, as a ratio.
    fn growth(&self, variant: usize) -> f64 {
        let (plain, other) = (&self.bytes[0], &self.bytes[variant]);
        let changed = || plain.keys().filter(|func| plain[*func] != other[*func]);
        let sum = |of: &BTreeMap<Func, usize>| changed().map(|func| of[func]).sum::<usize>();
        if changed().next().is_none() { 1.0 } else { sum(other) as f64 / sum(plain) as f64 }
    }

    fn mean_ratio(&self, variant: usize) -> f64 {
        self.times[variant].mean() / self.times[0].mean()
    }
}

fn measure(
    arguments: &Arguments,
    module: &Arc<Module>,
    name: &str,
    rounds: usize,
) -> Result<Row, Box<dyn Error>> {
    let visits = visits(module, vec![name.to_owned(), sized(&SMALL, name).to_owned()])?;
    let mut ranked: Vec<(u64, Func)> = visits.iter().map(|(func, count)| (*count, *func)).collect();
    ranked.sort_unstable_by(|a, b| b.cmp(a));
    let hot: BTreeSet<Func> = ranked.iter().take(HOT).map(|(_, func)| *func).collect();
    let mut dropped = BTreeSet::new();
    let plain = Setup {
        arguments,
        name,
        variant: Variant::Plain,
        hot: &hot,
        dropped: &dropped,
        armed: false,
    };
    let expected = execute(module, plain)?.printed;
    // A guard that fires is no guard: the first argument is not always a pointer.
    loop {
        match execute(
            module,
            Setup {
                arguments,
                name,
                variant: Variant::Guards,
                hot: &hot,
                dropped: &dropped,
                armed: false,
            },
        ) {
            Err(jit::RunError::Stuck { func, .. }) => {
                dropped.insert(module.funcs[func].name.clone());
            }
            Err(error) => return Err(error.into()),
            Ok(_) => break,
        }
    }
    let armed = execute(
        module,
        Setup {
            arguments,
            name,
            variant: Variant::Flags,
            hot: &hot,
            dropped: &dropped,
            armed: true,
        },
    )?;
    if armed.printed != expected || armed.fired == 0 {
        return Err(
            format!("{name}: with {} transitions it prints something else", armed.fired).into()
        );
    }
    let modules: Vec<Arc<Module>> = (0..PLACES).map(|places| padded(module, places)).collect();
    let mut row = Row {
        times: vec![Times::new(PLACES); VARIANTS.len()],
        points: vec![0; VARIANTS.len()],
        bytes: vec![BTreeMap::new(); VARIANTS.len()],
        visits: visits.values().sum(),
        fired: armed.fired,
    };
    for _ in 0..rounds {
        for (place, module) in modules.iter().enumerate() {
            for (index, variant) in VARIANTS.into_iter().enumerate() {
                let run = execute(
                    module,
                    Setup { arguments, name, variant, hot: &hot, dropped: &dropped, armed: false },
                )?;
                if run.printed != expected {
                    return Err(format!("{name} prints something else with {variant:?}").into());
                }
                row.times[index].note(place, run.seconds);
                (row.points[index], row.bytes[index]) = (run.points, run.bytes);
            }
        }
    }
    Ok(row)
}

/// The module with every function moved by some bytes.
pub(crate) fn padded(module: &Arc<Module>, by: usize) -> Arc<Module> {
    let mut made = Module::clone(module);
    for (func, function) in module.defined() {
        let (padded, _) = apply(function, &Pad(by), &mut Fuel::UNLIMITED.clone()).into_parts();
        made.define(func, padded);
    }
    Arc::new(made)
}
