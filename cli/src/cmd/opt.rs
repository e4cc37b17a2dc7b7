//! `osier opt`: optimizes a module and prints the module, the actions of the passes, or the
//! mappings between the versions.

use super::failure::CommandFailure;
use super::input;
use super::level;
use super::limits::InputLimits;
use super::output::Output;
use super::retry::RetryOption;
use super::select::Selection;
use clap::ValueEnum;
use ir::text::{print_function, print_module};
use ir::{Func, Function, Module};
use osier::driver::{GivenUp, NoObserver, Recipe, Secured, Vigilance, derive, derive_certified};
use osier::inlining::{CalleeLandings, InlinePlan, PassPlan, inline};
use osier::{export, listing};
use osr::Level;
use passes::Pipeline;
use std::path::PathBuf;

/// Output to print
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Emit {
    /// The optimized module
    Oir,
    /// The log of the passes, action by action
    Actions,
    /// The mappings in both directions between each function and its optimized version, for people
    Listing,
    /// The mappings with their certificates, for `osier check --mapping` and other programs
    Mapping,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The module
    file: PathBuf,
    /// A pipeline, or passes separated by commas; O3, and inline among the passes, with --emit oir
    /// and listing
    #[arg(long, value_name = "P", default_value = passes::registry::DEFAULT, value_parser = PassPlan::parse)]
    pipeline: PassPlan,
    #[command(flatten)]
    selection: Selection,
    /// Output to print
    #[arg(long, value_enum, default_value_t = Emit::Oir)]
    emit: Emit,
    /// The level of the mappings
    #[arg(long, value_name = "L", default_value = level::DEFAULT, value_parser = level::parser())]
    level: Level,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    retry: RetryOption,
    #[command(flatten)]
    limits: InputLimits,
}

/// Optimizes a module and prints the selected output.
///
/// # Errors
/// If an input cannot be read, no function is selected, or the output cannot be written.
pub(super) fn opt(args: Args) -> Result<(), CommandFailure> {
    let module = input::load(&args.file, &args.limits.limits())?.module;
    let text = if args.emit == Emit::Oir && args.selection.is_everything() {
        print_module(&args.pipeline.optimize(&module, Vigilance::On, &mut NoObserver).module)
    } else {
        let selected = args.selection.of(&module)?;
        let count = selected.len();
        let pipeline = match &args.pipeline {
            PassPlan::Passes(pipeline) => pipeline,
            PassPlan::Inlining(plan) if args.emit == Emit::Oir => {
                let version = |one| plan.version(&module, one, Vigilance::On, &mut NoObserver);
                let texts =
                    selected.into_iter().map(|one| print_function(&module, &version(one).0));
                return Output::to(args.output).write(&texts.collect::<String>());
            }
            PassPlan::Inlining(plan) if args.emit == Emit::Listing => {
                let text = listed(&module, &selected, plan);
                return Output::to(args.output).write(&text);
            }
            PassPlan::Inlining(_) => {
                return Err(CommandFailure::input(
                    "--pipeline with inline: --emit oir or listing, as yet",
                ));
            }
        };
        let functions =
            selected.into_iter().map(|(_, base)| emitted(&args, pipeline, &module, base));
        let pipeline = args.pipeline.names().join(",");
        let header = (args.emit == Emit::Mapping)
            .then(|| export::header(&pipeline, args.level.name(), count));
        header.into_iter().chain(functions).collect()
    };
    Output::to(args.output).write(&text)
}

/// The entries of each function with inlined code.
fn listed(module: &Module, selected: &[(Func, &Function)], plan: &InlinePlan) -> String {
    let landings = CalleeLandings::new(module, plan.policy.size);
    let mut text = String::new();
    for (func, base) in selected {
        match inline(module, *func, plan, &landings, &mut NoObserver) {
            Ok(made) => text += &listing::frames(module, &made),
            Err(why) => text += &format!("func @{}: {why}\n", base.name()),
        }
    }
    text
}

/// The selected output for one function. A module is printed as the whole pipeline makes it. All
/// other output is about the version with entries, as in `osier report` and `osier explain`.
fn emitted(args: &Args, pipeline: &Pipeline, module: &Module, base: &Function) -> String {
    if args.emit == Emit::Oir {
        let derived = derive(module, base, pipeline, Vigilance::On, &mut NoObserver);
        return print_function(module, &derived.function);
    }
    let levels = [args.level];
    let recipe = Recipe::new(pipeline, &levels);
    let recipe = Recipe { retry: args.retry.bounds(), ..recipe };
    let Secured { derived, certified, retried } =
        derive_certified(module, base, &recipe, &mut NoObserver);
    match args.emit {
        Emit::Oir | Emit::Actions => listing::actions(base.name(), &derived.log),
        Emit::Listing => listing::mappings(module, base, &derived, &certified),
        Emit::Mapping => {
            let mut text = String::new();
            let left_out: Vec<_> = retried.given_up.iter().map(GivenUp::numbers).collect();
            for made in &certified.levels {
                let mappings = [&made.forward, &made.backward].map(|m| (&*m.mapping, &m.facts));
                let versions = [base, &derived.function];
                export::write(&mut text, versions, &left_out, &certified.certificate, mappings);
            }
            text
        }
    }
}
