//! Programs with inlined code, made or run with a bug.

use super::layers::Layer;
use super::matrix::Row;
use super::{Args, with};
use fuzz::{CampaignOptions, inlined_pair};
use interp::{Limits, Machine};
use ir::edit::{ActionLog, Fuel, apply, check_replay};
use ir::text::parse_module;
use ir::verifier::verify_function;
use ir::{Func, Function};
use mutants::table::Mutant;
use osier::driver::NoObserver;
use osier::inlining::{CalleeLandings, InlinePlan, Inlined, NotInlined, inline};
use osier::passes;
use osier::speculate::{Assumption, SpeculateError};
use passes::{Callers, Inline, InlinePolicy};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use verify::generate::{CountingHost, Planted, Program, Weights, generate};
use verify::state_oracle::{FunctionPair, Oracle, OracleOptions, Report};

/// The most programs for one bug.
const MOST: usize = 400;
/// The size of the generated programs, the same as the tests of inlining use.
const SIZE: u32 = 60;
/// The pipelines before and after inlining, which programs take in turn.
const PIPELINES: [&str; 4] = ["O2", "cfg_clean,cse,load_elim,dse,adce", "O1", "canonical"];
/// The number of programs with calls in one another, and of functions that call themselves. Each
/// has two pipelines.
const DIRECTED: usize = 4;
/// Everything, and recursion twice.
const ALL: InlinePolicy = InlinePolicy {
    size: 1000,
    single_size: 1000,
    hot_size: 1000,
    hot: 1,
    depth: 4,
    recursion: 2,
    growth: 1000,
    allowance: 2000,
};

/// Calls in one another, several results and returns, a switch, writes, a function that never
/// returns, and an external one, which no run calls. Generated programs have few of these.
const NESTED: &str = "\
import func @host \"env\" \"host\" (i32) -> i32
global @g: mut i32 = 0
export \"main\" @main
func @leaf(%a: i32, %b: i32) -> (i32, i32) {
entry:
  %c = ult.i32 %a, %b
  br_if %c, less, more
less:
  return %a, %b
more:
  %d = sub.i32 %a, %b
  return %d, %a
}
func @leaves(%a: i32, %b: i32) -> (i32, i32) {
entry:
  %d = sub.i32 %a, %b
  return %d, %d
}
func @note(%a: i32) {
entry:
  global_set.i32 @g, %a
  return
}
func @fail(%a: i32) {
entry:
  global_set.i32 @g, %a
  trap user1
}
func @choose(%a: i32) -> i32 {
entry:
  %k = const.i32 3
  %rare = const.i32 123456789
  %fails = eq.i32 %a, %rare
  br_if %fails, never, usual
never:
  call @fail(%a)
  return %a
usual:
  %r = urem.i32 %a, %k
  switch %r, [one, two], default three
one:
  return %a
two:
  return %r
three:
  call @note(%a)
  return %k
}
func @middle(%a: i32) -> i32 {
entry:
  %k = const.i32 2
  %x, %y = call @leaf(%a, %k)
  %z, %w = call @leaf(%x, %y)
  %c = call @choose(%a)
  %s = add.i32 %z, %c
  %t = mul.i32 %s, %w
  return %t
}
func @main(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %zero)
head(%i: i32, %sum: i32):
  %m = call @middle(%i)
  %t = add.i32 %sum, %m
  call @note(%t)
  %j = add.i32 %i, %one
  call @note(%j)
  %more = ult.i32 %j, %n
  br_if %more, head(%j, %t), done
done:
  %big = const.i32 1000
  %q = add.i32 %t, %n
  %v = call @middle(%q)
  %none = sub.i32 %q, %q
  %far = ult.i32 %big, %n
  br_if %far, outside, inside
outside:
  %h = call @host(%t)
  return %h
inside:
  %w = add.i32 %v, %none
  return %w
}
";

/// A function that calls itself between loads of one place. Passes replace the later loads by the
/// first. Entries up then require a value that is dead in the base.
const RECURSIVE: &str = "\
memory @m 1
memory @k 1
data @m 0 \"\\07\\01\\03\\09\\05\\02\\08\\01\\04\\06\\03\\02\\09\\01\\05\\07\\02\\03\"
export \"main\" @main
func @main(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  br_if %n, more, done
done:
  return %zero
more:
  %a = load.i32 @m[%n]
  store.i32 @k[%n], %a
  store.i32 @k[%n + 4], %n
  %b = load.i32 @m[%n]
  %p = sub.i32 %n, %one
  %x = call @main(%p)
  store.i32 @k[%n + 8], %x
  store.i32 @k[%n + 12], %b
  %c = load.i32 @m[%n]
  %s = add.i32 %b, %x
  %t = mul.i32 %s, %c
  return %t
}
";

fn program(number: usize) -> Program {
    if number >= DIRECTED {
        let weights = if assumes(number) { Weights::with_facts() } else { Weights::default() };
        let weights = if has_trees(number) { weights.and_trees() } else { weights };
        return generate(number as u64, SIZE, &weights);
    }
    let text = if number < DIRECTED / 2 { NESTED } else { RECURSIVE };
    let module = parse_module(text).expect("the text is right");
    let main = module.func_named("main").expect("the function");
    let arguments = [0, 1, 3, 9].map(|n| vec![n]).to_vec();
    Program { module, main, arguments, steps: 2000, planted: Planted::default() }
}

/// Whether the functions of a program make assumptions.
fn assumes(number: usize) -> bool {
    number >= DIRECTED && number % 3 == 2
}

/// Whether the functions of a program are a tree of calls.
fn has_trees(number: usize) -> bool {
    number.is_multiple_of(2)
}

/// The assumptions about the functions of a program. Cost: one run.
fn assumptions(number: usize, program: &Program) -> BTreeMap<Func, Vec<Assumption>> {
    if !assumes(number) {
        return BTreeMap::new();
    }
    let (module, arguments) = (program.module.clone(), program.arguments.clone());
    let (options, fuel) = (CampaignOptions::default(), 2 * program.steps + 1000);
    let case = options.case(number as u64, module, program.main, arguments, fuel);
    fuzz::suggested(&case).expect("the program can be instantiated")
}

fn policy(number: usize) -> InlinePolicy {
    if number.is_multiple_of(2) || number < DIRECTED { ALL } else { InlinePolicy::default() }
}

/// The versions of a program's functions, and the mappings into them and out of them.
enum Made {
    /// A pass or a maker panicked.
    Panicked,
    /// The checker rejects a copy.
    NoCopy,
    Inlined(Vec<(Func, Inlined)>),
}

impl Made {
    fn new(number: usize, program: &Program) -> Made {
        let pipeline = passes::parse(PIPELINES[number % PIPELINES.len()]).expect("a pipeline");
        let policy = policy(number);
        let plan = InlinePlan::new(pipeline.clone(), policy, pipeline);
        let plan = plan.assuming(assumptions(number, program));
        let module = &program.module;
        let made = catch_unwind(AssertUnwindSafe(|| {
            let landings = CalleeLandings::new(module, &plan);
            let inlined = |(func, _)| {
                let made = inline(module, func, &plan, &landings, &mut NoObserver);
                match made {
                    Ok(made) => Some(Ok((func, made))),
                    Err(NotInlined::NoCall) => None,
                    // One made before the inlining has lost its exit for good.
                    Err(NotInlined::Refused {
                        error: SpeculateError::LosesExit { .. }, ..
                    }) => None,
                    Err(error) => Some(Err(error)),
                }
            };
            module.defined().filter_map(inlined).collect::<Result<Vec<_>, _>>()
        }));
        match made {
            Ok(Ok(all)) => Made::Inlined(all),
            Ok(Err(_)) => Made::NoCopy,
            Err(_) => Made::Panicked,
        }
    }

    fn inlined(&self) -> &[(Func, Inlined)] {
        match self {
            Made::Inlined(all) => all,
            _ => &[],
        }
    }

    /// The points without an entry, of both directions.
    fn lost(&self) -> usize {
        let lost = |one: &Inlined| one.missing.iter().map(|points| points.len()).sum::<usize>();
        self.inlined().iter().map(|(_, one)| lost(one)).sum()
    }

    fn is_same_as(&self, other: &Made) -> bool {
        let (Made::Inlined(a), Made::Inlined(b)) = (self, other) else { return false };
        let alike = |((a_func, a), (b_func, b)): (&(Func, Inlined), &(Func, Inlined))| {
            let same_code = [(a.copy, b.copy), (a.optimized, b.optimized)]
                .into_iter()
                .all(|(x, y)| a.tree.function(x).same_as(b.tree.function(y)).is_ok());
            a_func == b_func && same_code && (&a.up, &a.down) == (&b.up, &b.down)
        };
        a.len() == b.len() && a.iter().zip(b).all(alike)
    }

    /// The findings of the state oracle about the versions.
    fn run(&self, number: usize, program: &Program) -> Report {
        let inlined = self.inlined().iter();
        let pairs: Vec<FunctionPair<'_>> =
            inlined.map(|(func, made)| inlined_pair(*func, made)).collect();
        // Every fourth program has room for a single activation, enough for its inlined code.
        let usual = Limits { fuel: 4 * program.steps + 10_000, ..Limits::default() };
        let (limits, going_on_one_in) = match number % 4 {
            1 => (Limits { call_depth: 1, ..usual }, Some(1)),
            _ => (usual, Some(5)),
        };
        let (seed, going_on) = (number as u64, 20);
        let usual = OracleOptions::for_inlined_code();
        let options = OracleOptions { limits, seed, going_on_one_in, going_on, ..usual };
        let mut oracle = Oracle::new(&program.module, &pairs, options).expect("instantiated");
        let host = CountingHost::default();
        program.arguments.iter().for_each(|args| oracle.run(program.main, args, &host));
        oracle.report().clone()
    }

    /// Whether the state oracle sees a difference, or panics.
    fn diverges(&self, number: usize, program: &Program) -> bool {
        let judge = || self.run(number, program).divergence_count > 0;
        catch_unwind(AssertUnwindSafe(judge)).unwrap_or(true)
    }
}

/// The copies of the bases alone, with the logs that lead to them. `None` if the editor refuses.
fn copies(number: usize, program: &Program) -> Option<Vec<(Func, Function, ActionLog)>> {
    let module = &program.module;
    let made = catch_unwind(AssertUnwindSafe(|| {
        let callers = Callers::new(module);
        let copy = |(func, base): (Func, &Function)| {
            let pass = Inline { callers: &callers, func, policy: policy(number), counts: None };
            let (copy, log) = apply(base, &pass, &mut Fuel::UNLIMITED.clone()).into_parts();
            (func, copy, log)
        };
        module.defined().map(copy).collect()
    }));
    made.ok()
}

/// The ends of all runs of a program whose functions are in these versions.
fn ends(program: &Program, versions: &[(Func, Function, ActionLog)]) -> Vec<Option<String>> {
    let limits = Limits { fuel: 4 * program.steps + 10_000, ..Limits::default() };
    let end = |args: &Vec<u64>| {
        let code = interp::Program::new(&program.module);
        let options = interp::Options { track_memory: true, ..interp::Options::traced() };
        let mut machine = Machine::with_options(&code, limits, options).expect("instantiated");
        for (func, version, _) in versions {
            let id = machine.add_version(&program.module, *func, version);
            machine.set_current(*func, id);
        }
        let outcome = machine.invoke(
            program.main,
            args,
            &mut CountingHost::default(),
            &mut interp::NoObserver,
        );
        // Inlined code takes other fuel and less room.
        let text = match outcome {
            interp::Outcome::Returned(values) => format!("{values:x?}"),
            interp::Outcome::Trapped { kind, operand, .. } => format!("{kind} {operand:?}"),
            _ => return None,
        };
        Some(format!("{text} {:x}", machine.memory_digest()))
    };
    program.arguments.iter().map(end).collect()
}

/// Tries a bug of versions with inlined code.
pub(super) fn try_bug(bug: &Mutant, args: &Args, row: &mut Row<'_>) {
    for number in 0..args.programs.min(MOST) {
        let oracles = row.killed(Layer::Frames) || row.killed(Layer::Output);
        if row.killed(Layer::Checker) && oracles {
            break;
        }
        row.programs += 1;
        // Built again each time, so that versions have the same ids.
        let subject = program(number);
        let clean = Made::new(number, &subject);
        assert!(matches!(clean, Made::Inlined(_)), "without a bug: program {number}");
        let subject = program(number);
        let made = with(Some(bug.id), || Made::new(number, &subject));
        if made.is_same_as(&clean) {
            continue;
        }
        row.reached += 1;
        row.note(Layer::Editor, number, matches!(made, Made::Panicked));
        let is_rejected = matches!(made, Made::NoCopy) || made.lost() > clean.lost();
        row.note(Layer::Checker, number, is_rejected);
        if !row.killed(Layer::Frames) {
            row.note(Layer::Frames, number, made.diverges(number, &subject));
        }
        try_copies(number, bug, row);
    }
}

/// Puts copies of the bases, made with a bug, to editor, verifier and runs.
fn try_copies(number: usize, bug: &Mutant, row: &mut Row<'_>) {
    let subject = program(number);
    let Some(made) = with(Some(bug.id), || copies(number, &subject)) else {
        row.note(Layer::Editor, number, true);
        return;
    };
    let module = &subject.module;
    let replays = |(func, copy, log): &(Func, Function, ActionLog)| {
        check_replay(module.body(*func).expect("a body"), log, copy).is_ok()
    };
    row.note(Layer::Editor, number, !made.iter().all(replays));
    let ill_formed = made.iter().any(|(_, copy, _)| !verify_function(module, copy).is_empty());
    row.note(Layer::Verifier, number, ill_formed);
    if !ill_formed && !row.killed(Layer::Output) {
        let pairs = ends(&subject, &[]).into_iter().zip(ends(&subject, &made));
        let mut both = pairs.filter_map(|(a, b)| Some((a?, b?)));
        row.note(Layer::Output, number, both.any(|(a, b)| a != b));
    }
}

/// Tries a bug of transitions into several activations.
pub(super) fn try_landing(bug: &Mutant, args: &Args, row: &mut Row<'_>) {
    for number in 0..args.programs.min(MOST) {
        if row.killed(Layer::Frames) {
            break;
        }
        row.programs += 1;
        row.reached += 1;
        let subject = program(number);
        let clean = Made::new(number, &subject);
        let report = clean.run(number, &subject);
        assert_eq!(report.divergence_count, 0, "without a bug: program {number}");
        let diverges = with(Some(bug.id), || clean.diverges(number, &subject));
        row.note(Layer::Frames, number, diverges);
    }
}
