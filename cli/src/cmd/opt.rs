//! `osier opt`: optimizes a module and prints the module, the actions of the passes, or the
//! mappings between the versions.

use super::failure::CommandFailure;
use super::input::{self, Loaded, Sourced};
use super::level;
use super::limits::InputLimits;
use super::output::Output;
use super::retry::RetryOption;
use super::select::Selection;
use clap::ValueEnum;
use ir::text::{AtName, print_function, print_module};
use ir::{Func, Function, Module};
use osier::dot;
use osier::driver::{GivenUp, NoObserver, Recipe, Secured, Vigilance, derive, derive_proved};
use osier::exchange::{self, WrittenCopy};
use osier::inlining::{CalleeLandings, InlinePlan, NotInlined, PassPlan, inline};
use osier::listing;
use osier::source::Lines;
use osr::{Level, VersionTree};
use passes::{Callers, Pipeline};
use std::collections::BTreeSet;
use std::path::PathBuf;
use transition::certificate::Certificate;

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
    /// The blocks and loops of both versions, and the entries between them, as a graph for dot
    Dot,
}

/// Output about versions with inlined code
#[derive(Clone, Copy, PartialEq, Eq)]
enum EmitInlined {
    Actions,
    Dot,
    Listing,
    Mapping,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The module
    file: PathBuf,
    /// A pipeline, or passes separated by commas; O3 inlines, and so does inline among the passes
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
    Output::check(&args.output)?;
    let limits = args.limits.limits();
    let lines = args.emit == Emit::Listing;
    let Sourced { loaded: Loaded { module, .. }, source } =
        input::load_parts(&args.file, &limits, lines)?;
    let lines = source.lines();
    let text = if args.emit == Emit::Oir && args.selection.is_everything() {
        print_module(&args.pipeline.optimize(&module, Vigilance::On, &mut NoObserver).module)
    } else {
        let selected = args.selection.of(&module)?;
        let count = selected.len();
        let pipeline = match &args.pipeline {
            PassPlan::Passes(pipeline) => pipeline,
            PassPlan::Inlining(plan) => {
                let text = inlined(&args, &module, lines, &selected, plan)?;
                source.tell_notes();
                return write(&args, &text);
            }
        };
        let functions =
            selected.into_iter().map(|(_, base)| emitted(&args, pipeline, &module, lines, base));
        let pipeline = args.pipeline.names().join(",");
        let header = (args.emit == Emit::Mapping)
            .then(|| exchange::header(&pipeline, args.level.name(), count));
        let header = header.map(|header| header + &exchange::least_sizes(&module));
        header.into_iter().chain(functions).collect()
    };
    source.tell_notes();
    write(&args, &text)
}

fn write(args: &Args, text: &str) -> Result<(), CommandFailure> {
    let output = Output::to(args.output.clone());
    match args.emit {
        // The labels of a listing stand behind the places of points.
        Emit::Listing => output.write_labeled(text, 4),
        Emit::Oir | Emit::Actions | Emit::Mapping | Emit::Dot => output.write(text),
    }
}

/// The selected output of a pipeline that inlines.
///
/// # Errors
/// If such versions have no mappings at the selected level.
fn inlined(
    args: &Args,
    module: &Module,
    lines: Option<&dyn Lines>,
    selected: &[(Func, &Function)],
    plan: &InlinePlan,
) -> Result<String, CommandFailure> {
    let emit = match args.emit {
        Emit::Oir => {
            let callers = Callers::new(module);
            let version =
                |(func, base)| plan.version(&callers, func, base, Vigilance::On, &mut NoObserver).0;
            return Ok(selected.iter().map(|one| print_function(module, &version(*one))).collect());
        }
        Emit::Dot => EmitInlined::Dot,
        Emit::Listing => EmitInlined::Listing,
        Emit::Actions => EmitInlined::Actions,
        Emit::Mapping => EmitInlined::Mapping,
    };
    level::of_inlined(args.level)?;
    let plan = &plan.clone().with_retry(args.retry.bounds());
    let landings = CalleeLandings::new(module, plan);
    let (mut text, mut landed) = (String::new(), BTreeSet::new());
    for (func, base) in selected {
        // Call this first, so that a file has the ids that `osier check` draws.
        let is_plain = !plan.inlines(landings.callers(), *func, &mut NoObserver);
        if is_plain && emit != EmitInlined::Listing {
            // The version is that of the passes before the inlining.
            text += &emitted(args, &plan.first, module, lines, base);
            continue;
        }
        let made = inline(module, *func, plan, &landings, &mut NoObserver);
        let made = match made {
            Ok(made) => made,
            Err(why @ NotInlined::NoCall) => {
                text += &format!("func {}: {why}\n", AtName(base.name()));
                continue;
            }
            // A copy that the checker rejects is a bug of ours, not a property of the program.
            Err(error) => panic!("@{}: {error}", base.name()),
        };
        match emit {
            EmitInlined::Listing => text += &listing::frames(module, &made, lines),
            EmitInlined::Dot => text += &dot::inlined(module, &made),
            EmitInlined::Actions => {
                let log = made.tree.log(VersionTree::BASE, made.optimized);
                text += &listing::actions(base.name(), &log.expect("derived from the base"));
            }
            EmitInlined::Mapping => {
                // Frames of the function itself have the proof of its own pair.
                let inlined = made.copies.instances()[1..].iter().map(|one| one.func);
                landed.extend(inlined.filter(|callee| callee != func));
                exchange::write_copy(&mut text, module, &WrittenCopy::of(*func, &made));
            }
        }
    }
    match emit {
        EmitInlined::Mapping => {
            Ok(with_landings(args, module, selected.len(), &landings, &landed, &text))
        }
        EmitInlined::Listing | EmitInlined::Actions | EmitInlined::Dot => Ok(text),
    }
}

/// The file of some functions: its header, the landings of frames, and the functions.
fn with_landings(
    args: &Args,
    module: &Module,
    count: usize,
    landings: &CalleeLandings<'_>,
    landed: &BTreeSet<Func>,
    functions: &str,
) -> String {
    let mut file = exchange::header(&args.pipeline.names().join(","), args.level.name(), count);
    let bases = landed.iter().filter(|func| landings.has(**func));
    let bases = bases.filter_map(|func| {
        let base = module.body(*func)?;
        Some((*func, base, CalleeLandings::certificate(base)?))
    });
    let bases: Vec<(Func, &Function, Certificate)> = bases.collect();
    file += &exchange::landings_header(bases.len());
    file += &exchange::least_sizes(module);
    for (func, base, certificate) in &bases {
        exchange::landing(&mut file, *func, base, certificate);
    }
    file + functions
}

/// The selected output for one function. For a module, the function as the whole pipeline makes it.
/// All other output describes the version with entries, like `osier report` and `osier explain`.
fn emitted(
    args: &Args,
    pipeline: &Pipeline,
    module: &Module,
    lines: Option<&dyn Lines>,
    base: &Function,
) -> String {
    if args.emit == Emit::Oir {
        let derived = derive(module, base, pipeline, Vigilance::On, &mut NoObserver);
        return print_function(module, &derived.function);
    }
    let levels = [args.level];
    let recipe = Recipe::new(pipeline, &levels);
    let recipe = Recipe { retry: args.retry.bounds(), ..recipe };
    let Secured { derived, proved, retried } =
        derive_proved(module, base, &recipe, &mut NoObserver);
    match args.emit {
        Emit::Oir | Emit::Actions => listing::actions(base.name(), &derived.log),
        Emit::Listing => listing::mappings(module, base, &derived, &proved, lines),
        Emit::Dot => dot::versions(module, base, &derived, &proved),
        Emit::Mapping => {
            let mut text = String::new();
            let left_out: Vec<_> = retried.given_up.iter().map(GivenUp::numbers).collect();
            for (_, made) in &proved.levels {
                let mappings = [&made.before, &made.after].map(|m| (&*m.mapping, &m.facts));
                let versions = [base, &derived.function];
                exchange::write(&mut text, versions, &left_out, &proved.certificate, mappings);
            }
            text
        }
    }
}
