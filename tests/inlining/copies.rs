//! Inlined versions of random and of real programs.

use super::{ALL, inlined, parsed};
use interp::{Limits, Machine, NoHost, NoObserver, Options, Outcome, Program, TraceLevel};
use ir::edit::check_replay;
use ir::verifier::verify_function;
use ir::{Func, Module, Opcode};
use osier::check;
use osier::osr::copy_claim;
use osier::{Format, load};
use passes::InlinePolicy;
use std::path::Path;
use verify::generate::{Weights, generate};

/// Inlines in every function of a module, and has the checker judge each version. Returns a machine
/// that runs these versions, and the number of calls inlined.
fn copied(module: &Module, policy: InlinePolicy, what: &str) -> (Machine, usize) {
    let limits = Limits { fuel: 1 << 22, ..Limits::default() };
    let options = Options { trace: TraceLevel::Off, poison: true, track_memory: false };
    let mut machine =
        Machine::with_options(&Program::new(module), limits, options).expect("instantiated");
    let mut calls = 0;
    for (func, base) in module.defined() {
        let (version, log) = inlined(module, func, policy);
        if log.is_empty() {
            continue;
        }
        calls += log.actions().len();
        let faults = verify_function(module, &version);
        assert!(faults.is_empty(), "{what}, {func}: {}", faults[0]);
        check_replay(base, &log, &version).unwrap_or_else(|e| panic!("{what}, {func}: {e}"));
        let claim = copy_claim(func, base, &log).expect("the log inlines alone");
        let original = |func, _| module.body(func);
        let copies = check::copy(&version, func, original, claim)
            .unwrap_or_else(|e| panic!("{what}, {func}: {e}"));
        assert_eq!(copies.instances().len(), 1 + log.actions().len());
        let id = machine.add_version(module, func, &version);
        machine.set_current(func, id);
    }
    (machine, calls)
}

/// The end of a run: the outcome without the place of a trap, and memory.
fn end(machine: &mut Machine, func: Func, args: &[u64]) -> Option<(String, u64)> {
    let outcome = machine.invoke(func, args, &mut NoHost, &mut NoObserver);
    let text = match &outcome {
        Outcome::Returned(values) => format!("{values:x?}"),
        Outcome::Trapped { kind, operand, .. } => format!("{kind} {operand:?}"),
        // An inlined run takes other fuel.
        Outcome::OutOfFuel(_) | Outcome::StackOverflow(_) => return None,
        other => other.to_string(),
    };
    Some((text, machine.computed_memory_digest()))
}

#[test]
fn inlined_programs_end_as_their_originals_do() {
    let (mut calls, mut runs, mut traps) = (0, 0, 0);
    for seed in 0..250 {
        let made = generate(seed, 80, &Weights::default());
        let module = &made.module;
        let policy = if seed % 4 < 3 { ALL } else { InlinePolicy::default() };
        for args in &made.arguments {
            let what = format!("program {seed} with {args:x?}");
            let (mut copy, count) = copied(module, policy, &what);
            let mut plain = Machine::new(module, Limits { fuel: 1 << 22, ..Limits::default() })
                .expect("instantiated");
            let ends = [end(&mut plain, made.main, args), end(&mut copy, made.main, args)];
            if let [Some(plain), Some(copy)] = ends {
                assert_eq!(copy, plain, "{what}");
                runs += usize::from(count > 0);
                traps += usize::from(!plain.0.starts_with('['));
            }
            calls += count;
        }
    }
    assert!(calls > 1_000 && runs > 500 && traps > 100, "{calls} calls, {runs} runs, {traps}");
}

#[test]
fn kernels_are_copies_too() {
    for name in ["calls", "sort", "words.o2", "mixed", "vm"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/corpus/{name}.wasm"));
        let bytes = std::fs::read(file).expect("it is in the repository");
        let module = load(Format::Wasm, &bytes).expect("it is imported");
        copied(&module, ALL, name);
    }
}

/// Calls in loops, in one another, with several returns and without results.
#[test]
fn inlined_calls_nest() {
    let module = parsed(
        "export \"main\" @main
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
func @nothing() {
entry:
  return
}
func @middle(%a: i32) -> i32 {
entry:
  call @nothing()
  %x, %y = call @leaf(%a, %a)
  %z, %w = call @leaf(%x, %y)
  %s = add.i32 %z, %w
  return %s
}
func @main(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %zero)
head(%i: i32, %sum: i32):
  %m = call @middle(%i)
  %t = add.i32 %sum, %m
  %j = add.i32 %i, %one
  %more = ult.i32 %j, %n
  br_if %more, head(%j, %t), done
done:
  %again = call @main(%zero)
  return %t
}",
    );
    let main = module.lookup("main").expect("the text has it");
    let (version, log) = inlined(&module, main, ALL);
    assert_eq!(log.actions().len(), 4, "the recursion stays");
    let calls = version.all_insts().filter(|inst| version.inst(*inst).opcode == Opcode::Call);
    assert_eq!(calls.count(), 1);
    let claim = copy_claim(main, module.body(main).expect("a body"), &log).expect("a claim");
    let copies =
        check::copy(&version, main, |func, _| module.body(func), claim).expect("it is a copy");
    let depths: Vec<usize> = (0..copies.instances().len())
        .map(|id| {
            let caller = |id: &usize| Some(copies.instances()[*id].caller?.0);
            std::iter::successors(Some(id), caller).count()
        })
        .collect();
    assert_eq!(depths, [1, 2, 3, 3, 3]);
}
