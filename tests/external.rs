//! Functions that run outside the interpreter. The tests answer external calls by nested runs of
//! the interpreter. The effects equal the effects of a plain run, in both tiers and with any amount
//! of fuel.

use interp::{
    EarlyEnd, Host, Limits, Machine, NoHost, NoObserver, Options, Outcome, PauseAlways, Program,
    Resumed, Run, TraceLevel,
};
use ir::{Func, Module};
use osier::{Format, load};
use std::path::Path;
use verify::generate::{Weights, generate};
use verify::prng::Prng;
use wasm::wasi::Wasi;

/// The end of a run, with the fuel, memory and effects it left.
#[derive(PartialEq, Debug)]
struct End {
    outcome: Outcome,
    fuel: u64,
    memory: u64,
    effects: (u64, u64),
}

/// The exact tier, with and without a digest of memory at every effect, and the fast tier.
fn options() -> [Options; 3] {
    let digest = Options { trace: TraceLevel::Digest, ..Options::traced() };
    [
        Options { poison: true, track_memory: true, ..digest },
        digest,
        Options { trace: TraceLevel::Off, ..digest },
    ]
}

fn machine(program: &Program, fuel: u64, options: Options) -> Machine {
    let limits = Limits { fuel, ..Limits::default() };
    Machine::with_options(program, limits, options).expect("it is instantiated")
}

fn end(machine: &Machine, outcome: Outcome) -> End {
    assert_eq!(machine.memory_digest(), machine.computed_memory_digest());
    let effects = (machine.trace().count(), machine.trace().digest());
    End { outcome, fuel: machine.fuel(), memory: machine.memory_digest(), effects }
}

/// Continues a run to its end, and answers every call of an external function by a nested run of
/// that function. Each time the run continues, `watched` says whether an observer watches it.
/// Returns the outcome and the number of calls.
fn drive(
    machine: &mut Machine,
    host: &mut dyn Host,
    watched: &mut dyn FnMut() -> bool,
) -> (Outcome, u64) {
    let (mut below, mut calls) = (Vec::new(), 0);
    let outcome = 'run: loop {
        let run = if watched() {
            machine.run(host, &mut PauseAlways)
        } else {
            machine.run(host, &mut NoObserver)
        };
        match run {
            Run::Paused => {}
            Run::Failed { reason } => break machine.fail(reason),
            Run::Called { func, args } => {
                calls += 1;
                match machine.begin_nested(func, &args) {
                    Ok(nested) => below.push(nested),
                    Err(_) => {
                        let (_, site) = machine.awaited().expect("it waits");
                        break machine.end_in_native(EarlyEnd::StackOverflow, site);
                    }
                }
            }
            Run::Done(Outcome::Returned(mut values)) => loop {
                let Some(nested) = below.pop() else { break 'run Outcome::Returned(values) };
                machine.end_nested(nested);
                match machine.return_from_call(&values) {
                    Resumed::InCaller => break,
                    Resumed::Ended(results) => values = results,
                }
            },
            Run::Done(outcome) => break outcome,
        }
    };
    for nested in below.into_iter().rev() {
        machine.end_nested(nested);
        machine.abandon();
    }
    (outcome, calls)
}

/// Runs a program by itself and with these functions external, and asserts that both end alike.
/// Returns that end, and the number of calls answered.
fn both(
    program: &Program,
    func: Func,
    args: &[u64],
    external: &[Func],
    fuel: u64,
    what: &str,
) -> (End, u64) {
    let [first, .., last] = options().map(|options| {
        let host = |out| {
            Wasi::new(vec!["program".to_owned(), "3".to_owned()], &[][..], out, std::io::sink())
        };
        let (mut plain, mut out) = (machine(program, fuel, options), Vec::new());
        let outcome = plain.invoke(func, args, &mut host(&mut out), &mut NoObserver);
        let plain = end(&plain, outcome);
        let (mut engine, mut engine_out) = (machine(program, fuel, options), Vec::new());
        external.iter().for_each(|func| engine.set_external(*func, true));
        engine.start(func, args);
        let (outcome, calls) = drive(&mut engine, &mut host(&mut engine_out), &mut || false);
        assert_eq!(
            end(&engine, outcome),
            plain,
            "{what} with fuel {fuel}, {external:?} external, {options:?}"
        );
        assert!(
            out == engine_out,
            "{what} with fuel {fuel}, {external:?} external, {options:?}: other output"
        );
        (plain, calls)
    });
    assert_eq!(
        (&first.0.outcome, first.0.fuel, first.1),
        (&last.0.outcome, last.0.fuel, last.1),
        "{what}"
    );
    first
}

/// Every second function with a body, the remaining functions, and all functions.
fn choices(module: &Module) -> [Vec<Func>; 3] {
    let all: Vec<Func> = module.defined().map(|(func, _)| func).collect();
    let some = |rest| {
        all.iter()
            .copied()
            .enumerate()
            .filter(|(i, _)| i % 2 == rest)
            .map(|(_, func)| func)
            .collect()
    };
    [some(0), some(1), all.clone()]
}

#[test]
fn generated_programs_end_alike() {
    let (mut answered, mut short) = (0, 0);
    for seed in 0..60 {
        let made = generate(seed, 100, &Weights::default());
        let program = Program::new(&made.module);
        let mut prng = Prng::new(seed);
        for external in choices(&made.module) {
            for args in &made.arguments {
                let what = format!("program {seed} with {args:x?}");
                let (whole, calls) = both(&program, made.main, args, &external, 1 << 20, &what);
                answered += calls;
                for _ in 0..5 {
                    let fuel = prng.next_u64() % ((1 << 20) - whole.fuel + 1);
                    let (end, _) = both(&program, made.main, args, &external, fuel, &what);
                    short += u64::from(matches!(end.outcome, Outcome::OutOfFuel(_)));
                }
            }
        }
    }
    assert!(answered > 1_000 && short > 1_000, "{answered} calls answered, {short} runs cut short");
}

#[test]
fn kernels_end_alike() {
    let mut answered = 0;
    for name in ["vm", "calls", "sort", "queens", "words.o2", "mixed"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/corpus/{name}.wasm"));
        let bytes = std::fs::read(file).expect("it is in the repository");
        let module = load(Format::Wasm, &bytes).expect("it is imported");
        let entry = module.lookup("_start").expect("it is exported");
        let program = Program::new(&module);
        for external in choices(&module) {
            let (whole, calls) = both(&program, entry, &[], &external, u64::MAX, name);
            answered += calls;
            let used = u64::MAX - whole.fuel;
            both(&program, entry, &[], &external, used - 1, name);
            both(&program, entry, &[], &external, used / 2, name);
        }
    }
    assert!(answered > 1_000, "{answered} calls answered");
}

/// An observer watches the runs after some calls and not after others. Each tier must find the
/// values that the other tier has left.
#[test]
fn runs_change_tiers_at_calls() {
    let mut answered = 0;
    for seed in 0..60 {
        let made = generate(seed, 100, &Weights::default());
        let program = Program::new(&made.module);
        let [_, _, external] = choices(&made.module);
        let mut prng = Prng::new(seed);
        let off = Options::default();
        for args in &made.arguments {
            let mut plain = machine(&program, 1 << 20, off);
            let outcome = plain.invoke(made.main, args, &mut NoHost, &mut NoObserver);
            let mut engine = machine(&program, 1 << 20, off);
            external.iter().for_each(|func| engine.set_external(*func, true));
            engine.start(made.main, args);
            let (ended, calls) =
                drive(&mut engine, &mut NoHost, &mut || prng.next_u64().is_multiple_of(3));
            assert_eq!(end(&engine, ended), end(&plain, outcome), "program {seed} with {args:x?}");
            answered += calls;
        }
    }
    assert!(answered > 300, "{answered} calls answered");
}
