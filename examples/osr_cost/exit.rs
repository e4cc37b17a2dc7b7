//! The cost of an assumption that fails: the first time in a machine, and every time after that.
//! The run continues in the interpreter, or in native code compiled before.

use super::measure::timed;
use super::{Arguments, Report};
use interp::{Limits, NoHost, Options, Outcome};
use ir::{Func, Module, Point};
use jit::{Action, Continuation, Engine, Version, VersionSpec, Vm};
use osier::speculate::{Assumption, Expected, Plan, Speculative, speculate};
use osier::{Format, load};
use osr::VersionTree;
use passes::Pipeline;
use serde_json::json;
use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;

/// The numbers of values live at the exit.
const WIDTHS: [usize; 4] = [1, 4, 16, 64];
/// Calls of the function in a run that is timed as a whole.
const CALLS: u64 = 20_000;

/// Calls the function again and again.
const DRIVE: &str = "
func @drive(%count: i64, %n: i64) -> i64 {
entry:
  %zero = const.i64 0
  %one = const.i64 1
  jump head(%zero, %zero)
head(%i: i64, %sum: i64):
  %r = call @f(%i, %n)
  %s = add.i64 %sum, %r
  %j = add.i64 %i, %one
  %more = ult.i64 %j, %count
  br_if %more, head(%j, %s), done
done:
  return %s
}
";

/// A function with `width` values that are live where it will assume `%n` to be zero. A call with
/// another `%n` leaves once.
fn text(width: usize) -> String {
    let list = |item: &dyn Fn(usize) -> String| (0..width).map(item).collect::<Vec<_>>().join(", ");
    let mut text =
        String::from("func @f(%x: i64, %n: i64) -> i64 {\nentry:\n  %three = const.i64 3\n");
    for k in 0..width {
        writeln!(text, "  %k{k} = const.i64 {}\n  %v{k} = mul.i64 %x, %k{k}", 2 * k + 3)
            .expect("writing to a string cannot fail");
    }
    writeln!(text, "  jump rest({})", list(&|k| format!("%v{k}"))).expect("as above");
    writeln!(text, "rest({}):", list(&|k| format!("%p{k}: i64"))).expect("as above");
    writeln!(text, "  %z = eqz.i64 %n\n  %s0 = xor.i64 %p0, %three").expect("as above");
    for k in 1..width {
        writeln!(text, "  %s{k} = xor.i64 %s{}, %p{k}", k - 1).expect("as above");
    }
    writeln!(text, "  br_if %z, out, more\nout:\n  return %s{}\nmore:", width - 1)
        .expect("as above");
    writeln!(text, "  %t = mul.i64 %s{}, %three\n  return %t\n}}", width - 1).expect("as above");
    text
}

/// A function whose version assumes that the branch is taken.
struct Subject {
    engine: Engine,
    module: Arc<Module>,
    func: Func,
    drive: Func,
    tree: VersionTree,
    made: Speculative,
}

impl Subject {
    fn new(arguments: &Arguments, width: usize) -> Result<Subject, Box<dyn Error>> {
        let text = text(width) + DRIVE;
        let module = load(Format::Oir, text.as_bytes()).map_err(|e| e.in_file("exit"))?;
        let module = Arc::new(module);
        let [func, drive] = ["f", "drive"].map(|name| module.func_named(name));
        let (func, drive) = func.zip(drive).ok_or("the module has both")?;
        let base = module.body(func).ok_or("it is defined")?;
        // Before the first value behind the parameters: all of them are live there.
        let block = base.blocks().nth(1).ok_or("it has a second block")?;
        let at = Point::before(base.first_inst(block));
        let (value, expected) = (base.arguments()[1], Expected::Is(0));
        let zero = Assumption { at, value, expected, reason: 0 };
        let mut tree = VersionTree::new(base.clone());
        let pipeline = Pipeline::of(Vec::new());
        let plan = Plan::new(std::slice::from_ref(&zero), &pipeline);
        let made = speculate(&module, &mut tree, VersionTree::BASE, &plan)?;
        Ok(Subject { engine: arguments.engine()?, module, func, drive, tree, made })
    }

    fn vm(&self) -> Result<Vm, Box<dyn Error>> {
        let options = Options::default();
        let limits = Limits { fuel: u64::MAX, ..Limits::default() };
        let mut vm = Vm::new(&self.engine, &self.module, limits, options)?;
        let drive = self.module.body(self.drive).ok_or("it is defined")?;
        let version = self.engine.version(&self.module, self.drive, drive, &[])?;
        vm.install(&version, Vec::new())?;
        Ok(vm)
    }

    fn version(&self) -> Result<Arc<Version>, Box<dyn Error>> {
        let back = &self.made.backward[&VersionTree::BASE];
        let optimized = self.tree.function(self.made.optimized);
        let spec = VersionSpec::leaving(optimized, |_| Some(back))?;
        Ok(self.engine.version(&self.module, self.func, optimized, spec)?)
    }

    /// A machine in which the run continues in the interpreter.
    fn interpreting(&self) -> Result<Vm, Box<dyn Error>> {
        let mut vm = self.vm()?;
        let back = Arc::new(self.made.backward[&VersionTree::BASE].clone());
        vm.install(&self.version()?, vec![Action::Interpret(back)])?;
        Ok(vm)
    }

    /// A machine in which the run continues in native code of the base.
    fn native(&self) -> Result<(Vm, f64), Box<dyn Error>> {
        let mut vm = self.vm()?;
        let optimized = self.tree.function(self.made.optimized);
        let target = self.engine.version(
            &self.module,
            self.func,
            self.tree.function(VersionTree::BASE),
            &[],
        )?;
        vm.adopt(&target, Vec::new())?;
        let exit = self.made.exits[0].inst;
        let (_, entry) = self.made.exit(exit).ok_or("the assumption has an exit")?;
        let (seconds, rest) = timed(|| self.engine.continuation(optimized, entry, &target));
        let rest: Arc<Continuation> = rest?;
        vm.install(&self.version()?, vec![Action::Continue(rest)])?;
        Ok((vm, seconds))
    }

    /// Seconds of a run with this many calls.
    fn call(&self, vm: &mut Vm, count: u64, n: u64) -> Result<f64, Box<dyn Error>> {
        let (seconds, outcome) = timed(|| vm.invoke(self.drive, &[count, n], &mut NoHost));
        match outcome? {
            Outcome::Returned(_) => Ok(seconds),
            other => Err(format!("the function does not return: {other}").into()),
        }
    }

    /// Nanoseconds that a failing call takes longer than a holding one, at best.
    fn steady(&self, vm: &mut Vm, rounds: usize) -> Result<f64, Box<dyn Error>> {
        let mut least = [f64::INFINITY; 2];
        for _ in 0..rounds {
            for n in 0..2 {
                let least = &mut least[n as usize];
                *least = least.min(self.call(vm, CALLS, n)?);
            }
        }
        Ok((least[1] - least[0]) / CALLS as f64 * 1e9)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let rounds = arguments.rounds.unwrap_or(30);
    let mut table = format!(
        "{:>6}{:>16}{:>16}{:>16}{:>18}{:>14}\n",
        "values", "first, us", "interpreter, ns", "native, ns", "compile exit, us", "prove, us"
    );
    let mut rows = Vec::new();
    for width in WIDTHS {
        let subject = Subject::new(arguments, width)?;
        // The first failing exit of a machine, over a holding call.
        let mut first = Vec::new();
        for _ in 0..rounds {
            let mut vm = subject.interpreting()?;
            let holding = subject.call(&mut vm, 1, 0)?.min(subject.call(&mut vm, 1, 0)?);
            first.push(subject.call(&mut vm, 1, 1)? - holding);
        }
        first.sort_by(f64::total_cmp);
        let median = first[first.len() / 2] * 1e6;
        let interpreter = subject.steady(&mut subject.interpreting()?, rounds)?;
        let (mut vm, compile) = subject.native()?;
        let native = subject.steady(&mut vm, rounds)?;
        let (prove, made) = timed(|| Subject::new(arguments, width));
        made?;
        let (compile, prove) = (compile * 1e6, prove * 1e6);
        table += &format!(
            "{width:>6}{median:>16.1}{interpreter:>16.0}{native:>16.1}{compile:>18.0}{prove:>14.0}\n"
        );
        rows.push(json!({ "values": width, "first_us": median, "interpreter_ns": interpreter,
            "native_ns": native, "compile_us": compile, "prove_us": prove }));
    }
    table += "first: a failing call over a holding one, the first in its machine; median\n";
    Ok(Report { table, json: json!({ "exits": rows }) })
}
