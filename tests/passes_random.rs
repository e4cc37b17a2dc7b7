//! Every pass, alone and in random sequences, keeps the meaning of random programs.
//!
//! After each pass the tests check well-formedness, replay, and that the log is empty exactly if
//! the function is unchanged. After each sequence they compare results, traps, effects and memory
//! on every argument vector.

use interp::{Limits, Machine, NoHost, NoObserver, Options, Outcome, Program};
use ir::edit::{Fuel, Pass, apply, check_replay};
use ir::verifier::verify_function;
use ir::{Func, Function, Module};
use passes::registry::{PASSES, StaticPass, parse};
use std::collections::{BTreeMap, BTreeSet};
use verify::generate::{MAIN, Program as Generated, Weights, generate};
use verify::prng::Prng;

/// The observable behavior of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Observed {
    outcome: String,
    effects: Vec<(interp::Effect, u64)>,
    memory: u64,
}

/// Runs the main function on every argument vector.
fn observe(module: &Module, arguments: &[Vec<u64>]) -> Vec<Observed> {
    let program = Program::new(module);
    let run = |args: &Vec<u64>| {
        let machine = Machine::with_options(&program, Limits::default(), Options::checked());
        let mut machine = machine.expect("a generated module can be instantiated");
        let func = module.lookup(MAIN).expect("a generated module has a main function");
        let outcome = match machine.invoke(func, args, &mut NoHost, &mut NoObserver) {
            // The site of a trap may differ, since passes merge equal operations.
            Outcome::Trapped { kind, operand, .. } => format!("trapped: {kind} {operand:?}"),
            outcome => outcome.to_string(),
        };
        Observed {
            outcome,
            effects: machine.trace().effects().to_vec(),
            memory: machine.memory_digest(),
        }
    };
    arguments.iter().map(run).collect()
}

/// Runs a pass on every function and checks each result. Returns the number of actions.
fn run_pass(module: &mut Module, pass: &dyn Pass, fuel: &mut Fuel) -> usize {
    let funcs: Vec<Func> = module.defined().map(|(f, _)| f).collect();
    let mut actions = 0;
    for func in funcs {
        let before = module.body(func).expect("a defined function").clone();
        let (function, log) = apply(&before, pass, fuel).into_parts();
        check_replay(&before, &log, &function).unwrap_or_else(|e| panic!("{}: {e}", pass.name()));
        assert_eq!(
            log.is_empty(),
            function.same_as(&before).is_ok(),
            "{}: a log is empty if nothing changed",
            pass.name()
        );
        let findings = verify_function(module, &function);
        assert!(findings.is_empty(), "{} of {}: {}", pass.name(), function.name(), findings[0]);
        actions += log.len();
        module.define(func, function);
    }
    actions
}

fn program(seed: u64) -> Generated {
    generate(seed, 60 + (seed % 5) as u32 * 60, &Weights::default())
}

#[test]
fn each_pass_keeps_the_meaning() {
    let mut actions: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..80 {
        let program = program(seed);
        let expected = observe(&program.module, &program.arguments);
        for pass in PASSES {
            let mut module = program.module.clone();
            let done = run_pass(&mut module, *pass, &mut Fuel::UNLIMITED.clone());
            if done > 0 {
                assert_eq!(
                    observe(&module, &program.arguments),
                    expected,
                    "seed {seed}, pass {}",
                    pass.name()
                );
            }
            *actions.entry(pass.name()).or_default() += done;
        }
    }
    let idle: Vec<_> = actions.iter().filter(|(_, n)| **n < 20).collect();
    assert!(idle.is_empty(), "passes that found next to nothing to do: {idle:?}");
}

#[test]
fn sequences_of_passes_keep_the_meaning() {
    for seed in 1000..1150 {
        let program = program(seed);
        let expected = observe(&program.module, &program.arguments);
        let mut prng = Prng::new(seed);
        let passes: Vec<StaticPass> = match seed % 3 {
            0 => parse("O1").expect("a known pipeline").passes().to_vec(),
            _ => (0..8).map(|_| PASSES[prng.index(PASSES.len())]).collect(),
        };
        let names: Vec<&str> = passes.iter().map(|p| p.name()).collect();
        let mut module = program.module.clone();
        for pass in &passes {
            run_pass(&mut module, *pass, &mut Fuel::UNLIMITED.clone());
        }
        assert_eq!(observe(&module, &program.arguments), expected, "seed {seed}, passes {names:?}");
    }
}

/// With any amount of fuel, a pass performs a correct prefix of its rewrites.
#[test]
fn every_amount_of_fuel_keeps_the_meaning() {
    let mut stopped = 0;
    for seed in 2000..2012 {
        let program = generate(seed, 60, &Weights::default());
        let expected = observe(&program.module, &program.arguments);
        for pass in PASSES {
            for rewrites in 0..40 {
                let mut fuel = Fuel::rewrites(rewrites);
                let mut module = program.module.clone();
                let done = run_pass(&mut module, *pass, &mut fuel);
                assert!(rewrites > 0 || done == 0, "{} acted without fuel", pass.name());
                assert_eq!(
                    observe(&module, &program.arguments),
                    expected,
                    "seed {seed}, {} with fuel {rewrites}",
                    pass.name()
                );
                if fuel.left() > 0 {
                    break;
                }
                stopped += 1;
            }
        }
    }
    assert!(stopped > 200, "only {stopped} runs were stopped by their fuel");
}

/// Any rewrites may be left out: later rewrites are right without them, and the pass ends.
#[test]
fn leaving_out_any_rewrites_keeps_the_meaning() {
    let mut left_out: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 2100..2116 {
        let program = generate(seed, 60, &Weights::default());
        let expected = observe(&program.module, &program.arguments);
        let mut prng = Prng::new(seed);
        for pass in PASSES {
            // Some passes find their rewrites behind others.
            let mut start = program.module.clone();
            if seed % 2 == 1 {
                for other in (0..3).map(|_| PASSES[prng.index(PASSES.len())]) {
                    run_pass(&mut start, other, &mut Fuel::UNLIMITED.clone());
                }
            }
            let mut whole = Fuel::UNLIMITED;
            run_pass(&mut start.clone(), *pass, &mut whole);
            let planned = whole.planned();
            let singles = (0..planned.min(30)).map(|one| BTreeSet::from([one]));
            let several = (0..4).map(|_| (0..planned).filter(|_| prng.index(3) == 0).collect());
            for numbers in singles.chain(several).collect::<Vec<BTreeSet<u64>>>() {
                let mut module = start.clone();
                let ranges = numbers.iter().map(|number| *number..number + 1);
                run_pass(&mut module, *pass, &mut Fuel::UNLIMITED.without(ranges));
                assert_eq!(
                    observe(&module, &program.arguments),
                    expected,
                    "seed {seed}, {} without {numbers:?}",
                    pass.name()
                );
                *left_out.entry(pass.name()).or_default() += numbers.len() as u64;
            }
        }
    }
    let idle: Vec<_> = PASSES.iter().filter(|p| left_out.get(p.name()) < Some(&10)).collect();
    let idle: Vec<_> = idle.into_iter().map(|p| p.name()).collect();
    assert!(idle.is_empty(), "passes without rewrites to leave out: {idle:?} of {left_out:?}");
}

/// Each of these passes finds no further work after its first execution.
#[test]
fn these_passes_finish_in_one_run() {
    for seed in 3000..3060 {
        let program = program(seed);
        for name in ["adce", "cfg_clean", "licm", "loop_canon", "preheaders", "sccp"] {
            let pass = parse(name).expect("a known pass").passes()[0];
            let mut module = program.module.clone();
            run_pass(&mut module, pass, &mut Fuel::UNLIMITED.clone());
            let once: Vec<Function> = module.defined().map(|(_, f)| f.clone()).collect();
            let again = run_pass(&mut module, pass, &mut Fuel::UNLIMITED.clone());
            let text =
                || once.iter().map(|f| ir::text::print_function(&module, f)).collect::<String>();
            assert_eq!(again, 0, "{name} on seed {seed} found more to do:\n{}", text());
        }
    }
}
