//! The cost of a transition: from version to version and back, through a policy that answers each
//! time, to the interpreter, and from it into native code.

use super::measure::{quantile, timed};
use super::points::{Live, headers};
use super::{Arguments, Report};
use check::Checked;
use interp::{Limits, NoHost, Options, Outcome};
use ir::{Func, Function, Module, Point};
use jit::{
    Action, Continuation, Engine, HotLoop, Onward, OpenPoint, Quiet, RunError, Tier, Tiering, Vm,
};
use osier::{Format, load};
use resume::Condition;
use serde_json::json;
use std::error::Error;
use std::sync::Arc;
use transition::mapping::Mapping;

/// The numbers of live values at the point, including the counter and the bound.
const WIDTHS: [usize; 4] = [4, 10, 16, 26];
/// Iterations of a run, each of which makes one transition.
const ITERATIONS: u64 = 1_000_000;
/// Iterations of a run in which a policy in Rust answers each transition.
const ASKED: u64 = 100_000;

/// A loop with `width` live values, each of which changes in every iteration.
fn text(width: usize) -> String {
    let values = width - 2;
    let list = |item: &dyn Fn(usize) -> String| -> String {
        (0..values).map(|k| format!(", {}", item(k))).collect()
    };
    let mut text = String::from("func @f(%n: i64) -> i64 {\nentry:\n  %zero = const.i64 0\n");
    text += &format!(
        "  jump head(%zero{})\nhead(%i: i64{}):\n",
        list(&|_| "%n".into()),
        list(&|k| format!("%v{k}: i64"))
    );
    for k in 0..values {
        text += &format!("  %t{k} = add.i64 %v{k}, %i\n");
    }
    text += "  %one = const.i64 1\n  %j = add.i64 %i, %one\n  %more = ult.i64 %j, %n\n";
    text += &format!("  br_if %more, head(%j{}), done\ndone:\n", list(&|k| format!("%t{k}")));
    let mut result = "%j".to_owned();
    for k in 0..values {
        text += &format!("  %r{k} = xor.i64 {result}, %t{k}\n");
        result = format!("%r{k}");
    }
    text + &format!("  return {result}\n}}\n")
}

struct Subject {
    engine: Engine,
    module: Arc<Module>,
    func: Func,
    at: Point,
}

impl Subject {
    fn new(arguments: &Arguments, width: usize) -> Result<Subject, Box<dyn Error>> {
        let module = Arc::new(
            load(Format::Oir, text(width).as_bytes()).map_err(|error| error.in_file("loop"))?,
        );
        let func = module.lookup("f").ok_or("the loop has it")?;
        let at = headers(module.body(func).ok_or("it is defined")?)[0];
        Ok(Subject { engine: arguments.engine()?, module, func, at })
    }

    fn function(&self) -> &Function {
        self.module.body(self.func).expect("it is defined")
    }

    fn mapping(&self) -> Checked<Mapping> {
        Live::new(self.function()).mapping([self.at])
    }

    fn vm(&self) -> Result<Vm, Box<dyn Error>> {
        let options = Options::default();
        let limits = Limits { fuel: u64::MAX, ..Limits::default() };
        Ok(Vm::new(&self.engine, &self.module, limits, options)?)
    }

    /// A version with a flag point at the loop header.
    fn version(&self) -> Result<Arc<jit::Version>, Box<dyn Error>> {
        let point = Live::new(self.function()).point(self.at, Condition::Flag);
        Ok(self.engine.version(&self.module, self.func, self.function(), &[point])?)
    }

    fn into(&self, target: &Arc<jit::Version>) -> Result<Arc<Continuation>, Box<dyn Error>> {
        let mapping = self.mapping();
        let entry = mapping.checked_entry(self.at).ok_or("the loop header has an entry")?;
        Ok(self.engine.continuation(self.function(), entry, target)?)
    }

    fn call(&self, vm: &mut Vm, n: u64) -> Result<(f64, u64), Box<dyn Error>> {
        let (seconds, outcome) = timed(|| vm.invoke(self.func, &[n], &mut NoHost));
        match outcome? {
            Outcome::Returned(values) => Ok((seconds, values[0])),
            other => Err(format!("the loop does not return: {other}").into()),
        }
    }
}

/// A policy that answers every open point with the same cached continuation.
struct Cached(Arc<Continuation>);

impl Tiering for Cached {
    fn open(&mut self, _tier: &mut Tier<'_>, _at: OpenPoint<'_>) -> Result<Onward, RunError> {
        Ok(Arc::clone(&self.0).into())
    }
}

/// A policy that enters the same continuation when a loop is hot.
struct Up(Arc<Continuation>);

impl Tiering for Up {
    fn threshold(&self) -> Option<u32> {
        Some(1)
    }

    fn hot(
        &mut self,
        _tier: &mut Tier<'_>,
        _at: HotLoop,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        Ok(Some(Arc::clone(&self.0)))
    }
}

/// Nanoseconds of each kind of transition with this number of live values, and the number of
/// transitions.
struct Row {
    width: usize,
    /// Nanoseconds of an iteration without a transition.
    iteration: f64,
    resolved: f64,
    made: u64,
    open: f64,
    down: f64,
    up: f64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let rounds = arguments.rounds.unwrap_or(20);
    let mut table = format!(
        "{:<8}{:>14}{:>14}{:>14}{:>12}{:>12}{:>12}\n",
        "values", "iteration, ns", "resolved, ns", "transitions", "open, ns", "down, ns", "up, ns"
    );
    let mut rows = Vec::new();
    for width in WIDTHS {
        let subject = Subject::new(arguments, width)?;
        let (iteration, resolved, made) = alternate(&subject, rounds)?;
        let open = open(&subject, rounds)?;
        let (down, up) = (down(&subject, rounds)?, up(&subject)?);
        let row = Row { width, iteration, resolved, made, open, down, up };
        table += &format!(
            "{:<8}{:>14.3}{:>14.3}{:>14}{:>12.1}{:>12.0}{:>12.0}\n",
            row.width, row.iteration, row.resolved, row.made, row.open, row.down, row.up
        );
        rows.push(json!({ "values": row.width, "iteration_ns": row.iteration, "resolved_ns": row.resolved, "resolved_made": row.made,
            "open_ns": row.open, "down_ns": row.down, "up_ns": row.up }));
    }
    Ok(Report { table, json: json!(rows) })
}

/// The number of transitions that a machine has made.
///
/// # Errors
/// If it has made no transition: the times then measure nothing.
fn made(vm: &mut Vm) -> Result<u64, Box<dyn Error>> {
    let count: u64 = vm.transitions().iter().map(|made| made.count).sum();
    if count == 0 {
        return Err("the run made no transition".into());
    }
    Ok(count)
}

/// Two versions that lead to each other in every iteration. Returns the nanoseconds of an iteration
/// without transitions, the nanoseconds that a transition adds, and the number of transitions.
fn alternate(subject: &Subject, rounds: usize) -> Result<(f64, f64, u64), Box<dyn Error>> {
    let mut vm = subject.vm()?;
    vm.set_tiering(Box::new(Quiet));
    let (first, second) = (subject.version()?, subject.version()?);
    vm.install(&first, vec![Action::Ask])?;
    vm.adopt(&second, vec![Action::Ask])?;
    vm.relink(&first, 0, Action::Continue(subject.into(&second)?))?;
    vm.relink(&second, 0, Action::Continue(subject.into(&first)?))?;
    let (mut without, mut with) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..rounds {
        let (seconds, expected) = subject.call(&mut vm, ITERATIONS)?;
        without = without.min(seconds);
        [&first, &second].into_iter().for_each(|version| version.arm(0));
        let (seconds, result) = subject.call(&mut vm, ITERATIONS)?;
        with = with.min(seconds);
        [&first, &second].into_iter().for_each(|version| version.disarm(0));
        if result != expected {
            return Err(
                format!("with transitions the result is {result}, and {expected} without").into()
            );
        }
    }
    let made = made(&mut vm)?;
    let scale = 1e9 / ITERATIONS as f64;
    Ok((without * scale, (with - without) * scale, made))
}

/// The nanoseconds of a transition for which a policy returns a cached continuation each time.
fn open(subject: &Subject, rounds: usize) -> Result<f64, Box<dyn Error>> {
    let mut vm = subject.vm()?;
    let version = subject.version()?;
    vm.install(&version, vec![Action::Ask])?;
    vm.set_tiering(Box::new(Cached(subject.into(&version)?)));
    let (mut without, mut with) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..rounds {
        without = without.min(subject.call(&mut vm, ASKED)?.0);
        version.arm(0);
        with = with.min(subject.call(&mut vm, ASKED)?.0);
        version.disarm(0);
    }
    made(&mut vm)?;
    Ok((with - without) * 1e9 / ASKED as f64)
}

/// The nanoseconds of a transition into the interpreter, with the last iteration and the return
/// there.
fn down(subject: &Subject, rounds: usize) -> Result<f64, Box<dyn Error>> {
    let mut vm = subject.vm()?;
    vm.set_tiering(Box::new(Quiet));
    let version = subject.version()?;
    vm.install(&version, vec![Action::Interpret(Arc::new(subject.mapping()))])?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..rounds * 500 {
        without.push(subject.call(&mut vm, 1)?.0);
        version.arm(0);
        with.push(subject.call(&mut vm, 1)?.0);
        version.disarm(0);
    }
    made(&mut vm)?;
    Ok((quantile(&mut with, 0.1) - quantile(&mut without, 0.1)) * 1e9)
}

/// The nanoseconds of a transition from the interpreter into native code, with the last iteration,
/// the return there, and the question to the policy.
fn up(subject: &Subject) -> Result<f64, Box<dyn Error>> {
    let target = subject.engine.version(&subject.module, subject.func, subject.function(), &[])?;
    let rest = subject.into(&target)?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..300 {
        let mut vm = subject.vm()?;
        vm.set_tiering(Box::new(Quiet));
        // The first run of a machine is slower than later runs.
        subject.call(&mut vm, 1)?;
        without.push(subject.call(&mut vm, 1)?.0);
        vm.set_tiering(Box::new(Up(Arc::clone(&rest))));
        with.push(subject.call(&mut vm, 1)?.0);
        made(&mut vm)?;
    }
    Ok((quantile(&mut with, 0.5) - quantile(&mut without, 0.5)) * 1e9)
}
