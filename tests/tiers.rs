//! The two tiers of the interpreter: runs that nobody watches are run by another loop than the others, and must end alike,
//! with any amount of fuel.

use ir::interp::{Limits, Machine, NoObserver, Options, Outcome, PauseAtMarks, Program, Run, TraceLevel};
use ir::{Func, Module};
use osier::driver::{Format, load};
use std::path::Path;
use verify::generate::{Weights, generate};
use verify::prng::Prng;
use wasm::wasi::Wasi;

/// How a run ended, with everything it left behind.
#[derive(PartialEq, Debug)]
struct End {
    outcome: Outcome,
    fuel: u64,
    memory: u64,
    computed: u64,
}

/// With a trace the exact tier runs, without the fast one.
const TIERS: [TraceLevel; 2] = [TraceLevel::Digest, TraceLevel::Off];

fn machine(program: &Program, fuel: u64, trace: TraceLevel) -> Machine {
    let limits = Limits { fuel, ..Limits::default() };
    Machine::with_options(program, limits, Options { trace, ..Options::default() }).expect("it is instantiated")
}

fn end(machine: &Machine, outcome: Outcome) -> End {
    End { outcome, fuel: machine.fuel(), memory: machine.memory_digest(), computed: machine.computed_memory_digest() }
}

/// Runs a function in both tiers and returns what both ended with.
fn both(program: &Program, func: Func, args: &[u64], fuel: u64, what: &str) -> End {
    let ends = TIERS.map(|trace| {
        let mut machine = machine(program, fuel, trace);
        let mut out = Vec::new();
        let mut wasi = Wasi::new(vec!["program".to_owned(), "3".to_owned()], &[][..], &mut out, std::io::sink());
        let outcome = machine.invoke(func, args, &mut wasi, &mut NoObserver);
        drop(wasi);
        (end(&machine, outcome), out)
    });
    let [exact, fast] = ends;
    assert_eq!(exact, fast, "{what} with fuel {fuel}");
    fast.0
}

/// Programs that exercise everything the generator makes, with arguments.
fn programs() -> impl Iterator<Item = (u64, Module, Func, Vec<Vec<u64>>)> {
    (0..150).map(|seed| {
        let made = generate(seed, 100, &Weights::default());
        (seed, made.module, made.main, made.arguments)
    })
}

#[test]
fn generated_programs_end_alike() {
    let (mut compared, mut short) = (0, 0);
    for (seed, module, entry, arguments) in programs() {
        let program = Program::new(&module);
        let mut prng = Prng::new(seed);
        for args in arguments {
            let what = format!("program {seed} with {args:x?}");
            let used = (1 << 20) - both(&program, entry, &args, 1 << 20, &what).fuel;
            compared += 1;
            for _ in 0..20 {
                let fuel = prng.next_u64() % (used + 1);
                let end = both(&program, entry, &args, fuel, &what);
                short += u64::from(matches!(end.outcome, Outcome::OutOfFuel(_)));
            }
        }
    }
    assert!(compared > 500 && short > 5_000, "{compared} runs, {short} cut short");
}

#[test]
fn kernels_end_alike_with_any_fuel() {
    for name in ["vm", "calls", "sort", "nbody.o2", "scan", "words.o2", "mixed"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/corpus/{name}.wasm"));
        let bytes = std::fs::read(file).expect("it is in the repository");
        let module = load(Format::Wasm, &bytes).expect("it is imported");
        let entry = module.lookup("_start").expect("it is exported");
        let program = Program::new(&module);
        let used = u64::MAX - both(&program, entry, &[], u64::MAX, name).fuel;
        // Each amount once near the start and near the end, where a group of instructions is cut everywhere.
        for fuel in (0..300).chain(used.saturating_sub(60)..=used + 1) {
            both(&program, entry, &[], fuel, name);
        }
    }
}

/// A run that is watched for a while and then no more.
#[test]
fn a_run_may_change_tiers() {
    let mut resumed = 0;
    for (seed, module, entry, arguments) in programs() {
        let program = Program::new(&module);
        for args in arguments {
            let whole = both(&program, entry, &args, 1 << 20, "whole");
            let mut machine = machine(&program, 1 << 20, TraceLevel::Off);
            let version = machine.current(entry).expect("it has a body");
            let body = module.body(entry).expect("it has a body");
            let insts: Vec<_> = body.all_insts().collect();
            machine.mark(version, [insts[seed as usize % insts.len()]]);
            machine.start(entry, &args);
            let mut host = ir::interp::NoHost;
            let outcome = match machine.run(&mut host, &mut PauseAtMarks) {
                Run::Done(outcome) => outcome,
                Run::Paused => {
                    resumed += 1;
                    match machine.run(&mut host, &mut NoObserver) {
                        Run::Done(outcome) => outcome,
                        Run::Paused => panic!("nobody pauses it"),
                    }
                }
            };
            assert_eq!(end(&machine, outcome), whole, "program {seed} with {args:x?}");
        }
    }
    assert!(resumed > 100, "{resumed} runs went on in the other tier");
}
