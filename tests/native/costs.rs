//! The policy by costs: which code it makes, at the spot, so that programs alone decide.

use interp::{Limits, NoHost, NoObserver, Options, Outcome};
use jit::{Config, Engine, TransitionKind, Vm};
use osier::driver::Step;
use osier::tiers::{Compiled, CompiledKind, Costs, Observer, Tiered};
use osier::{Format, load};
use passes::Pipeline;
use std::sync::{Arc, Mutex};

/// The pieces of code that were made.
#[derive(Clone, Debug, Default)]
struct Pieces(Arc<Mutex<Vec<(CompiledKind, usize)>>>);

impl Observer for Pieces {
    fn step(&mut self, _step: Option<Step>) {}

    fn begin(&mut self) {}

    fn compiled(&mut self, made: Compiled) {
        self.0.lock().expect("nobody panics with it").push((made.kind, made.instructions));
    }
}

/// Native code of a function of n instructions saves its price in 50 n interpreted instructions.
const COSTS: Costs = Costs { interpreted: 11, native: 1, optimized: 1, compiled: 500, mapped: 0 };

/// The result of a program, the pieces of code made for it, and the transitions up and down. The
/// interpreter alone returns the same.
fn run(text: &str, args: &[u64]) -> (Outcome, Vec<(CompiledKind, usize)>, [u64; 2]) {
    let module = Arc::new(load(Format::Oir, text.as_bytes()).unwrap_or_else(|e| panic!("{e}")));
    let main = module.lookup("main").expect("the text has it");
    let mut machine = interp::Machine::new(&module, Limits::default()).expect("an instance");
    let expected = machine.invoke(main, args, &mut NoHost, &mut NoObserver);
    let engine = Engine::new(Config::default()).expect("native code runs here");
    let mut vm =
        Vm::new(&engine, &module, Limits::default(), Options::traced()).expect("a machine");
    let pieces = Pieces::default();
    vm.set_tiering(Box::new(Tiered::by_costs_observed(COSTS, Pipeline::default(), pieces.clone())));
    let outcome = vm.invoke(main, args, &mut NoHost).expect("it runs");
    assert_eq!(outcome, expected);
    let made = vm.transitions();
    let count = |kind| made.iter().filter(|m| m.kind == kind).map(|m| m.count).sum();
    let moved = [count(TransitionKind::Up), count(TransitionKind::Down)];
    let pieces = pieces.0.lock().expect("nobody panics with it").clone();
    (outcome, pieces, moved)
}

/// The first activation of @main calls itself in its first rounds, and makes `rounds` more.
const STAYS: &str = "
func @main(%rounds: i64) -> i64 {
entry:
  %zero = const.i64 0
  %one = const.i64 1
  jump head(%zero, %rounds)
head(%i: i64, %sum: i64):
  %calls = const.i64 100
  %early = ult.i64 %i, %calls
  %outer = ult.i64 %calls, %rounds
  %both = and.i32 %early, %outer
  br_if %both, call, next(%sum)
call:
  %few = call @main(%one)
  jump next(%few)
next(%t: i64):
  %u = add.i64 %t, %i
  %j = add.i64 %i, %one
  %more = ult.i64 %j, %rounds
  br_if %more, head(%j, %u), done
done:
  return %u
}
";

/// Calls of the function are native soon. The activation that stays in its loop has to execute as
/// much as the whole price of an entry from then on, since most runs enter by calls.
#[test]
fn a_loop_of_a_function_with_native_calls_waits_for_its_whole_price() {
    let (_, pieces, moved) = run(STAYS, &[130]);
    let versions = |pieces: &[(CompiledKind, usize)]| {
        pieces.iter().filter(|(kind, _)| *kind == CompiledKind::Version).count()
    };
    assert_eq!((versions(&pieces), pieces.len(), moved), (1, 1, [0, 0]), "{pieces:?}");
    let (_, pieces, moved) = run(STAYS, &[1_000]);
    assert_eq!((versions(&pieces), pieces.len(), moved), (1, 2, [1, 0]), "{pieces:?}");
}
