//! Executed instructions with assumptions that keep values on demand, and with assumptions that
//! keep all live values.

use super::{ProfiledPrograms, host, program};
use interp::{Limits, Machine, NoObserver, Options, Outcome, Program, Run, VersionId};
use ir::{Func, Function, Module};
use osier::driver::{NoObserver as Unobserved, Vigilance, derive};
use osier::profile::Profile;
use osier::speculate::{Pins, Plan, Speculative, SuggestOptions, Suggester, speculate};
use osr::VersionTree;
use passes::Pipeline;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write as _};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    profiled: ProfiledPrograms,
}

/// Every assumption at a place visited 1,000 times.
pub(super) const EVERY: SuggestOptions =
    SuggestOptions { visits: 1000, most: 4096, by_worth: false };

/// The version that calls of a function run.
enum Chosen {
    Plain(Box<Function>),
    Assuming(VersionTree, Box<Speculative>),
}

impl Chosen {
    fn function(&self) -> &Function {
        match self {
            Chosen::Plain(function) => function,
            Chosen::Assuming(tree, made) => tree.function(made.optimized),
        }
    }
}

/// A program, and the suggestions of a first run for it.
struct Subject<'a> {
    module: &'a Module,
    suggester: Suggester<'a>,
    pipeline: &'a Pipeline,
    arguments: &'a [String],
    input: &'a [u8],
}

/// The figures of one kind of versions.
#[derive(Default)]
struct Figures {
    instructions: u64,
    /// Instructions of the functions with suggestions.
    size: usize,
    exits: usize,
    pinned: usize,
    failed: u64,
}

pub(super) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let (input, pipeline) = (args.profiled.input()?, args.profiled.pipeline());
    let mut out = io::stdout().lock();
    writeln!(out, "{:>44}   {:>23}", "executed instructions", "size of assuming code")?;
    writeln!(
        out,
        "{:>14} {:>14} {:>14}   {:>7} {:>7} {:>7} {:>6} {:>6} {:>6}  program",
        "plain", "on demand", "all live", "plain", "demand", "live", "exits", "pinned", "failed"
    )?;
    for text in &args.profiled.programs {
        let (module, arguments) = program(text)?;
        let profile = profile(&module, &arguments, &input)?;
        let suggester = Suggester::new(&module, &profile, EVERY);
        let (module, arguments, pipeline) = (&module, &arguments[..], &pipeline);
        let subject = Subject { module, suggester, pipeline, arguments, input: &input };
        let plain = subject.measure(None)?;
        let demand = subject.measure(Some(Pins::OnDemand))?;
        let live = subject.measure(Some(Pins::Live))?;
        writeln!(
            out,
            "{:14} {:14} {:14}   {:7} {:7} {:7} {:6} {:6} {:6}  {text}",
            plain.instructions,
            demand.instructions,
            live.instructions,
            plain.size,
            demand.size,
            live.size,
            demand.exits,
            demand.pinned,
            demand.failed
        )?;
        out.flush()?;
    }
    Ok(())
}

impl Subject<'_> {
    /// Runs the program with one kind of versions; `None` for versions without assumptions.
    fn measure(&self, pins: Option<Pins>) -> Result<Figures, Box<dyn Error>> {
        let (mut versions, mut figures) = (BTreeMap::new(), Figures::default());
        for (func, base) in self.module.defined() {
            let suggested = self.suggester.of(func);
            let chosen =
                self.chosen(base, suggested.iter().map(|s| s.assumption).collect(), pins)?;
            if !suggested.is_empty() {
                figures.size += chosen.function().inst_count();
            }
            if let Chosen::Assuming(_, made) = &chosen {
                figures.exits += made.exits.len();
                figures.pinned += made.exits.iter().filter(|e| !e.pins.is_empty()).count();
            }
            versions.insert(func, chosen);
        }
        let mut machine = machine(self.module)?;
        let fuel = machine.fuel();
        figures.failed = drive(&mut machine, self.module, &versions, self.arguments, self.input)?;
        figures.instructions = fuel - machine.fuel();
        Ok(figures)
    }

    fn chosen(
        &self,
        base: &Function,
        assume: Vec<osier::speculate::Assumption>,
        pins: Option<Pins>,
    ) -> Result<Chosen, Box<dyn Error>> {
        let Some(pins) = pins.filter(|_| !assume.is_empty()) else {
            let made = derive(self.module, base, self.pipeline, Vigilance::Off, &mut Unobserved);
            return Ok(Chosen::Plain(Box::new(made.function)));
        };
        let mut tree = VersionTree::new(base.clone());
        let plan = Plan { pins, ..Plan::new(&assume, self.pipeline) };
        let made = speculate(self.module, &mut tree, VersionTree::BASE, &plan)?;
        Ok(Chosen::Assuming(tree, Box::new(made)))
    }
}

/// The profile of a run of the program.
pub(super) fn profile(
    module: &Module,
    arguments: &[String],
    input: &[u8],
) -> Result<Profile, Box<dyn Error>> {
    let mut counted = machine(module)?;
    counted.count();
    drive(&mut counted, module, &BTreeMap::new(), arguments, input)?;
    Ok(Profile::collect(module, &counted))
}

pub(super) fn machine(module: &Module) -> Result<Machine, Box<dyn Error>> {
    let options = Options::default();
    let limits = Limits { fuel: u64::MAX, ..Limits::default() };
    Ok(Machine::with_options(&Program::new(module), limits, options)?)
}

/// Runs a program with these versions, and leaves failed assumptions. Returns how often they
/// failed.
fn drive(
    machine: &mut Machine,
    module: &Module,
    versions: &BTreeMap<Func, Chosen>,
    arguments: &[String],
    input: &[u8],
) -> Result<u64, Box<dyn Error>> {
    let mut bases: BTreeMap<VersionId, (VersionId, &Speculative)> = BTreeMap::new();
    for (func, chosen) in versions {
        let base = machine.current(*func).ok_or("a defined function has a version")?;
        let version = machine.add_version(module, *func, chosen.function());
        machine.set_current(*func, version);
        if let Chosen::Assuming(_, made) = chosen {
            bases.insert(version, (base, made));
        }
    }
    let entry = module.lookup("_start").ok_or("the program has no _start")?;
    let mut host = host(arguments.to_vec(), input);
    machine.start(entry, &[]);
    let mut failed = 0;
    loop {
        match machine.run(&mut host, &mut NoObserver) {
            Run::Done(Outcome::Returned(_) | Outcome::Exited(0)) => return Ok(failed),
            Run::Done(other) => return Err(format!("the program ended early: {other}").into()),
            Run::Failed { .. } => {
                failed += 1;
                let view = machine.view().ok_or("a failed run is paused")?;
                let (base, made) = bases[&view.version()];
                let (_, exit) = made.exit(view.inst()).ok_or("each assumption has an exit")?;
                machine.fire(base, exit)?;
            }
            Run::Paused | Run::Called { .. } => return Err("nobody pauses the run".into()),
        }
    }
}
