//! A minimal JIT with this library: a loop becomes hot and continues in optimized code, an
//! assumption fails and the run returns to the base, all within one call.
//!
//!     cargo run --release --example embed
//!
//! The example needs only the facade. It loads and optimizes a module, makes the mappings, runs,
//! and fires an entry in each direction.

use osier::driver::{self, Recipe, derive_proved};
use osier::interp::{Machine, NoHost, PauseAtMarks, Run};
use osier::ir::loops::LoopForest;
use osier::ir::{Module, Point};
use osier::osr::Level;
use osier::passes::Pipeline;
use osier::{Format, load};
use std::error::Error;
use std::io::{self, Write as _};

/// Sums `x[i] / d * (d * d)`. The product does not change from one iteration to the next.
const PROGRAM: &[u8] = br#"
memory @mem 1
func @sum(%n: i32, %d: i32) -> i32 {
entry:
  %zero = const.i32 0
  jump head(%zero, %zero)
head(%i: i32, %acc: i32):
  %more = slt.i32 %i, %n
  br_if %more, body, done
body:
  %two = const.i32 2
  %address = shl.i32 %i, %two
  %x = load.i32 @mem[%address]
  %q = sdiv.i32 %x, %d
  %square = mul.i32 %d, %d
  %term = mul.i32 %q, %square
  %next = add.i32 %acc, %term
  %one = const.i32 1
  %j = add.i32 %i, %one
  jump head(%j, %next)
done:
  return %acc
}
"#;
const ARGS: [u64; 2] = [1000, 7];

fn main() -> Result<(), Box<dyn Error>> {
    let module = load(Format::Oir, PROGRAM).map_err(|error| error.in_file("sum.oir"))?;
    let (func, base) = module.defined().next().ok_or("the module defines no function")?;

    // The version, and the mappings in both directions: at most one entry for each point. The
    // driver returns the proved entries. Where the checker does not accept one, the driver gives
    // up the rewrite to blame; `retried` names these.
    let (pipeline, levels) = (Pipeline::default(), [Level::Avail]);
    let recipe = Recipe::new(&pipeline, &levels);
    let made = derive_proved(&module, base, &recipe, &mut driver::NoObserver);
    let (optimized, proved) = (&made.derived, &made.proved);
    let maps = proved.highest();
    for (way, maps) in [("base to opt", &maps.before), ("opt to base", &maps.after)] {
        let (entries, points) = (maps.mapping.len(), maps.points - maps.unreachable);
        writeln!(io::stdout(), "{way}: {entries} of {points} points have an entry")?;
    }

    // Moves a paused run into another version. The run then has only the values that the
    // compensation code assigns.
    let fire = |machine: &mut Machine, to, entry| -> Result<Point, Box<dyn Error>> {
        let source = here(machine)?;
        let target = machine.fire(to, entry)?;
        let (steps, values) = (entry.entry().steps.len(), entry.entry().assigns.len());
        let (from, to) = (source.inst(), target.inst());
        writeln!(io::stdout(), "{from} -> {to}: {steps} steps, {values} values")?;
        Ok(target)
    };

    let mut machine = instance(&module)?;
    let slow = machine.current(func).ok_or("an imported function has no version")?;
    let fast = machine.add_version(&module, func, &optimized.function);

    // A JIT counts at loop headers. The 100th visit makes this loop hot.
    let forest = LoopForest::of(base);
    let header = forest.header(forest.loops().next().ok_or("the function has no loop")?);
    machine.mark(slow, [base.first_inst(header)]);
    machine.start(func, &ARGS);
    pause(&mut machine, 100)?;
    let up = maps.before.mapping.checked_entry(here(&machine)?);
    let landed = fire(&mut machine, fast, up.ok_or("no entry leads up here")?)?;

    // In the optimized code, assume that a speculation fails 500 iterations later.
    machine.mark(fast, [landed.inst()]);
    pause(&mut machine, 500)?;
    let down = maps.after.mapping.checked_entry(here(&machine)?);
    fire(&mut machine, slow, down.ok_or("no entry leads down here")?)?;

    // The rest runs in the base again, and the result must equal the result of a run without
    // transitions.
    machine.unmark(slow, [base.first_inst(header)]);
    let Run::Done(outcome) = machine.run(&mut NoHost, &mut PauseAtMarks) else {
        return Err("paused again".into());
    };
    let expected = instance(&module)?.invoke(func, &ARGS, &mut NoHost, &mut PauseAtMarks);
    writeln!(io::stdout(), "{outcome}; without transitions: {expected}")?;
    if outcome == expected { Ok(()) } else { Err("the results differ".into()) }
}

/// An instance of the module with numbers in its memory.
fn instance(module: &Module) -> Result<Machine, Box<dyn Error>> {
    let mut machine = Machine::new(module, Default::default())?;
    let memory = module.memories.keys().next().ok_or("the module has no memory")?;
    for i in 0..ARGS[0] {
        let written = machine.memories_mut().write(memory, 4 * i, &(i as u32).to_le_bytes());
        written.map_err(|_| "the memory is too small")?;
    }
    Ok(machine)
}

/// Runs until the marked instructions have been visited this many times.
fn pause(machine: &mut Machine, times: u32) -> Result<(), Box<dyn Error>> {
    for _ in 0..times {
        if let Run::Done(outcome) = machine.run(&mut NoHost, &mut PauseAtMarks) {
            return Err(format!("the run ended early: {outcome}").into());
        }
    }
    Ok(())
}

/// The point at which the run is paused.
fn here(machine: &Machine) -> Result<Point, Box<dyn Error>> {
    Ok(Point::before(machine.view().ok_or("no run is paused")?.inst()))
}
