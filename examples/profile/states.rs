//! Executed instructions with frame states that keep values on demand, and with frame states that
//! keep all values they name.

use super::{ProfiledPrograms, host, pins, program};
use interp::NoObserver;
use interp::{Machine, Outcome, Run};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Fuel, apply};
use ir::liveness::Liveness;
use ir::loops::LoopForest;
use ir::{
    FrameState, FrameStates, Func, Function, Local, LocalContent, Module, Opcode, Point, Value,
};
use osier::driver::{
    NoObserver as Unobserved, Recipe, SecuredStates, StatePoints, Vigilance, derive_with_states,
};
use osr::Level;
use passes::Pipeline;
use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, Write as _};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    profiled: ProfiledPrograms,
}

/// The kinds of versions.
#[derive(Clone, Copy)]
enum Kept {
    /// No state is told to anybody.
    Nothing,
    /// The values that exits lack ([`derive_with_states`]).
    OnDemand,
    /// All values that the states name.
    All,
}

/// The figures of one kind of versions.
#[derive(Default)]
struct Figures {
    instructions: u64,
    size: usize,
    /// The values that count as used although no code uses them.
    kept: usize,
    /// The exits with an entry, and the exits without.
    exits: [usize; 2],
}

pub(super) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let (input, pipeline) = (args.profiled.input()?, args.profiled.pipeline());
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{:>44}   {:>23}   {:>15}",
        "executed instructions", "size of code", "values kept"
    )?;
    writeln!(
        out,
        "{:>14} {:>14} {:>14}   {:>7} {:>7} {:>7}   {:>7} {:>7} {:>7} {:>6}  program",
        "no states",
        "on demand",
        "all named",
        "none",
        "demand",
        "all",
        "demand",
        "all",
        "exits",
        "lost"
    )?;
    for text in &args.profiled.programs {
        let (module, arguments) = program(text)?;
        let of = |kept| measure(&module, &pipeline, kept, &arguments, &input);
        let [none, demand, all] = [of(Kept::Nothing)?, of(Kept::OnDemand)?, of(Kept::All)?];
        let [exits, lost] = demand.exits;
        writeln!(
            out,
            "{:14} {:14} {:14}   {:7} {:7} {:7}   {:7} {:7} {:7} {:6}  {text}",
            none.instructions,
            demand.instructions,
            all.instructions,
            none.size,
            demand.size,
            all.size,
            demand.kept,
            all.kept,
            exits,
            lost
        )?;
        out.flush()?;
    }
    Ok(())
}

/// Runs the program with one kind of versions.
fn measure(
    module: &Module,
    pipeline: &Pipeline,
    kept: Kept,
    arguments: &[String],
    input: &[u8],
) -> Result<Figures, Box<dyn Error>> {
    let (mut figures, mut machine) = (Figures::default(), pins::machine(module)?);
    for (func, base) in module.defined() {
        let function = version(module, func, base, pipeline, kept, &mut figures)?;
        figures.size += function.inst_count();
        let version = machine.add_version(module, func, &function);
        machine.set_current(func, version);
    }
    figures.instructions = finish(&mut machine, module, arguments, input)?;
    Ok(figures)
}

/// The version of a function, of one kind.
fn version(
    module: &Module,
    func: Func,
    base: &Function,
    pipeline: &Pipeline,
    kept: Kept,
    figures: &mut Figures,
) -> Result<Function, Box<dyn Error>> {
    let states = states(func, base);
    let named: BTreeSet<Value> = states.iter().flat_map(|(_, state)| state.all_values()).collect();
    let keeping = match kept {
        Kept::Nothing => BTreeSet::new(),
        Kept::All => named,
        Kept::OnDemand => {
            let made = secured(module, base, &states, pipeline)?;
            figures.kept += made.retried.kept.len();
            figures.exits[0] += made.down().mapping.len();
            figures.exits[1] += made.down().missing.len();
            return Ok(made.derived.function);
        }
    };
    let (mut function, mut fuel) = (base.clone(), Fuel::UNLIMITED.keeping(keeping.clone()));
    for pass in pipeline.passes() {
        function = apply(&function, *pass, &mut fuel).into_parts().0;
    }
    let unused = |value: &&Value| function.has_value(**value) && function.users(**value).is_empty();
    figures.kept += keeping.iter().filter(unused).count();
    Ok(function)
}

fn secured(
    module: &Module,
    base: &Function,
    states: &FrameStates,
    pipeline: &Pipeline,
) -> Result<SecuredStates, Box<dyn Error>> {
    let exits = states.iter().map(|(at, _)| at).collect();
    let points = StatePoints { states, entrances: &BTreeSet::new(), exits: &exits };
    let levels = [Level::Avail];
    let recipe = Recipe { vigilance: Vigilance::Off, ..Recipe::new(pipeline, &levels) };
    Ok(derive_with_states(module, base, points, &recipe, &mut Unobserved)?)
}

/// States at loop headers and in front of calls. They name the registers of an interpreter:
/// the values live there, and the block parameters available there, which are the locals.
fn states(func: Func, base: &Function) -> FrameStates {
    let cfg = Cfg::new(base);
    let (dom, live) = (DomTree::new(base, &cfg), Liveness::new(base, &cfg));
    let forest = LoopForest::new(base, &cfg);
    // The first effect or branch: passes move other instructions, and the exit with them.
    let header = |block| base.block_insts(block).find(|i| !base.inst(*i).opcode.is_effect_free());
    let headers = forest.loops().filter_map(|id| header(forest.header(id)));
    let is_call = |opcode: Opcode| opcode.is_call() && !opcode.is_effect_free();
    let reachable = cfg.rpo().iter().flat_map(|block| base.block_insts(*block));
    let calls = reachable.filter(|inst| is_call(base.inst(*inst).opcode));
    let params: Vec<Value> =
        base.blocks().flat_map(|block| base.block_params(block).iter().copied()).collect();
    let mut states = FrameStates::new();
    for at in headers.chain(calls).map(Point::before) {
        let mut named: BTreeSet<Value> = live.live_before(base, at).iter().collect();
        named.extend(params.iter().filter(|param| dom.available_at(base, **param, at)));
        let local = |value: Value| Local {
            slot: value.as_u32(),
            content: LocalContent::Value(value),
            representation: 0,
        };
        let locals = named.into_iter().map(local).collect();
        states.set(at, FrameState::new(func.as_u32(), at.inst().as_u32(), locals));
    }
    states
}

/// Runs a program to its end. Returns the executed instructions.
fn finish(
    machine: &mut Machine,
    module: &Module,
    arguments: &[String],
    input: &[u8],
) -> Result<u64, Box<dyn Error>> {
    let entry = module.lookup("_start").ok_or("the program has no _start")?;
    let mut host = host(arguments.to_vec(), input);
    let fuel = machine.fuel();
    machine.start(entry, &[]);
    match machine.run(&mut host, &mut NoObserver) {
        Run::Done(Outcome::Returned(_) | Outcome::Exited(0)) => Ok(fuel - machine.fuel()),
        other => Err(format!("the program ended early: {other:?}").into()),
    }
}
