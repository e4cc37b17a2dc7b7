//! Runs and their embedder nest: functions of the embedder call functions of the program, natively
//! and in the interpreter, and exits below them continue in the embedder's interpreter.

use super::support::{Calls, Pair, engine, module, states, vm};
use osier::interp::{HostError, Limits, Machine, NoObserver, Options, Outcome};
use osier::ir::module::ImportName;
use osier::ir::{Func, Module, TrapKind, Type, Value};
use osier::jit::{
    Action, Callback, CallbackEnd, Condition, Config, DeoptFrame, Embedder, Engine, Slot, Version,
    Vm,
};
use osier::tiers::Eager;
use std::sync::Arc;

/// `@fold` calls the embedder, which calls `@step` again and again.
const FOLD: &str = "
import func @each \"env\" \"each\" (i64, i64) -> i64
global @sum: mut i64 = 0
func @step(%n: i64) -> i64 {
entry:
  %zero = const.i64 0
  jump head(%zero)
head(%i: i64):
  %one = const.i64 1
  %j = add.i64 %i, %one
  %more = ult.i64 %j, %n
  br_if %more, head(%j), done
done:
  %before = global_get.i64 @sum
  %after = add.i64 %before, %j
  global_set.i64 @sum, %after
  return %j
}
func @fold(%n: i64, %depth: i64) -> i64 {
entry:
  %one = const.i64 1
  %x = call @each(%n, %depth)
  %y = add.i64 %x, %one
  return %y
}
";

/// `each(n, depth)` is the sum of `step(1)` to `step(n)`, and of `fold(n, depth - 1)` if the depth
/// is not 0. Notes how deep the calls were.
struct Each {
    step: Func,
    /// The argument of `step`.
    argument: Value,
    fold: Func,
    deepest: usize,
    resumed: usize,
}

impl Each {
    fn new(module: &Module) -> Each {
        let named = |name| module.func_named(name).expect("the text has it");
        let (step, fold) = (named("step"), named("fold"));
        let argument = module.body(step).expect("a body").arguments()[0];
        Each { step, argument, fold, deepest: 0, resumed: 0 }
    }
}

impl Embedder for Each {
    fn call(
        &mut self,
        back: &mut Callback<'_>,
        _: Func,
        args: &[u64],
        results: &mut [u64],
    ) -> Result<(), CallbackEnd> {
        self.deepest = self.deepest.max(back.depth());
        let (step, fold) = (self.step, self.fold);
        back.demand(step)?;
        for n in 1..=args[0] {
            results[0] += back.call(self, step, &[n])?[0];
        }
        if args[1] > 0 {
            results[0] += back.call(self, fold, &[args[0], args[1] - 1])?[0];
        }
        Ok(())
    }

    /// As the loop of `step` does, from its counter on.
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        self.resumed += 1;
        let slot = self.argument.as_u32();
        let n = frame.activations[0].slot(slot).expect("the argument is live").bits;
        let (step, before) = (self.step, frame.back().globals()[0]);
        // One more run from within, which counts for nothing.
        let same = frame.back().call(self, step, &[1])?;
        assert_eq!((same, frame.back().globals()[0]), (vec![1], before + 1));
        Ok(vec![Slot { ty: Type::I64, bits: n }])
    }
}

/// The result of `fold(n, depth)` and the final sum, if `step` always finishes by itself.
fn expected(n: u64, depth: u64) -> (u64, u64) {
    let steps = n * (n + 1) / 2;
    ((depth + 1) * (steps + 1), (depth + 1) * steps)
}

fn machine(module: &Arc<Module>, engine: &Engine) -> Vm {
    Vm::new(engine, module, Limits::default(), Options::traced()).expect("instantiated")
}

#[test]
fn the_embedder_calls_the_program_to_any_depth() {
    let (module, engine) = (module(FOLD), engine(Config::default()));
    let fold = module.func_named("fold").expect("the text has it");
    // All in the interpreter; all native; one native.
    for natively in [&[][..], &["fold", "step"], &["fold"], &["step"]] {
        let mut vm = machine(&module, &engine);
        for name in natively {
            let func = module.func_named(name).expect("the text has it");
            let body = module.body(func).expect("a body");
            let version = engine.version(&module, func, body, &[]).expect("compiled");
            vm.install(&version, vec![]).expect("it fits");
        }
        let mut each = Each::new(&module);
        let (result, sum) = expected(4, 20);
        assert_eq!(vm.run(fold, &[4, 20], &mut each), Ok(Outcome::Returned(vec![result])));
        assert_eq!((each.deepest, vm.machine().globals()[0]), (21, sum), "{natively:?}");
    }
}

/// Code is compiled and installed while the embedder is called.
#[test]
fn functions_below_the_embedder_are_compiled() {
    let (module, engine) = (module(FOLD), engine(Config::default()));
    let fold = module.func_named("fold").expect("the text has it");
    let mut vm = machine(&module, &engine);
    vm.set_tiering(Box::new(Eager::new(osier::tiers::NoObserver)));
    vm.demand(fold).expect("compiled");
    let mut each = Each::new(&module);
    let (result, _) = expected(3, 5);
    assert_eq!(vm.run(fold, &[3, 5], &mut each), Ok(Outcome::Returned(vec![result])));
    // The embedder has requested code of `step`, in the middle of the run.
    assert!(vm.installed(each.step).is_some());
}

/// The trace of a run with an embedder equals the trace that the interpreter alone records, for a
/// host that calls nothing.
#[test]
fn calls_of_the_embedder_are_in_the_trace() {
    struct Plain;
    impl Embedder for Plain {
        fn call(
            &mut self,
            _: &mut Callback<'_>,
            _: Func,
            args: &[u64],
            results: &mut [u64],
        ) -> Result<(), CallbackEnd> {
            results[0] = args[0] * 3;
            Ok(())
        }
    }
    impl osier::interp::Host for Plain {
        fn call(
            &mut self,
            _: &ImportName,
            _: Func,
            args: &[u64],
            _: &mut osier::interp::Memories,
            results: &mut [u64],
        ) -> Result<(), HostError> {
            results[0] = args[0] * 3;
            Ok(())
        }
    }
    let (module, engine) = (module(FOLD), engine(Config { trace: true, ..Config::default() }));
    let fold = module.func_named("fold").expect("the text has it");
    let mut alone = Machine::new(&module, Limits::default()).expect("instantiated");
    let ended = alone.invoke(fold, &[5, 0], &mut Plain, &mut NoObserver);
    assert_eq!(ended, Outcome::Returned(vec![16]));
    for is_native in [false, true] {
        let mut vm = machine(&module, &engine);
        if is_native {
            let body = module.body(fold).expect("a body");
            let version = engine.version(&module, fold, body, &[]).expect("compiled");
            vm.install(&version, vec![]).expect("it fits");
        }
        assert_eq!(vm.run(fold, &[5, 0], &mut Plain), Ok(ended.clone()));
        let (found, wanted) = (vm.machine().trace(), alone.trace());
        assert_eq!(found.digest(), wanted.digest(), "natively: {is_native}");
        assert_eq!(found.count(), wanted.count(), "natively: {is_native}");
    }
}

/// A version of `step` that leaves its loop at the second visit, for the embedder.
fn leaving(pair: &Pair, engine: &Engine) -> (Arc<Version>, Action) {
    let version = pair.at_head(engine, true, Condition::Countdown(2));
    (version, Action::Hand(Arc::clone(&pair.backward), states(pair)))
}

/// Exits to the embedder fire in functions that the embedder has called, to any depth.
#[test]
fn handlers_nest() {
    let pair = Pair::new(FOLD);
    let engine = engine(Config::default());
    let mut vm = vm(&engine, &pair.module);
    let (version, action) = leaving(&pair, &engine);
    vm.install(&version, vec![action]).expect("it fits");
    let mut each = Each::new(&pair.module);
    let fold = each.fold;
    let (result, _) = expected(4, 6);
    assert_eq!(vm.run(fold, &[4, 6], &mut each), Ok(Outcome::Returned(vec![result])));
    // `step(1)` has one visit of the loop; the other three leave, at each of seven depths.
    assert_eq!(each.resumed, 21);
}

/// `@main` calls the embedder; `@traps` divides by zero.
const ENDS: &str = "
import func @leave \"env\" \"leave\" (i64) -> i64
func @traps(%n: i64) -> i64 {
entry:
  %zero = const.i64 0
  %x = udiv.i64 %n, %zero
  return %x
}
func @main(%n: i64) -> i64 {
entry:
  %x = call @leave(%n)
  return %x
}
";

/// An embedder that calls a function, or ends the run itself.
struct Ends(Func, bool);
impl Embedder for Ends {
    fn call(
        &mut self,
        back: &mut Callback<'_>,
        _: Func,
        args: &[u64],
        _: &mut [u64],
    ) -> Result<(), CallbackEnd> {
        match self.1 {
            true => {
                let traps = self.0;
                back.call(self, traps, args).map(|_| ())
            }
            false => Err(HostError::Exit(7).into()),
        }
    }
}

fn with_code(module: &Arc<Module>, engine: &Engine, natively: &[Func]) -> Vm {
    let mut vm = machine(module, engine);
    for func in natively {
        let body = module.body(*func).expect("a body");
        let version = engine.version(module, *func, body, &[]).expect("compiled");
        vm.install(&version, vec![]).expect("it fits");
    }
    vm
}

/// `@main` calls the embedder from a cold block, and `@aside` calls `@leaf` from one.
const COLD: &str = "
import func @ask \"env\" \"ask\" (i64) -> i64
func @leaf(%n: i64) -> i64 {
entry:
  return %n
}
func @aside(%n: i64) -> i64 {
entry:
  %low = wrap.i32 %n
  br_if %low, slow, on(%n)
slow cold:
  %r = call @leaf(%n)
  jump on(%r)
on(%s: i64):
  return %s
}
func @main(%n: i64) -> i64 {
entry:
  %low = wrap.i32 %n
  br_if %low, slow, on(%n)
slow cold:
  %r = call @ask(%n)
  jump on(%r)
on(%s: i64):
  return %s
}
";

/// The site of a host's trap is the call of the host, although a nested run has made a call in a
/// cold block since.
#[test]
fn a_cold_call_below_the_embedder_moves_no_site() {
    struct Traps(Func);
    impl Embedder for Traps {
        fn call(
            &mut self,
            back: &mut Callback<'_>,
            _: Func,
            args: &[u64],
            _: &mut [u64],
        ) -> Result<(), CallbackEnd> {
            let aside = self.0;
            assert_eq!(back.call(self, aside, args)?, args);
            Err(HostError::Trap(TrapKind::User(5)).into())
        }
    }
    let (module, engine) = (module(COLD), engine(Config::default()));
    let [leaf, aside, main] =
        ["leaf", "aside", "main"].map(|name| module.func_named(name).expect("the text has it"));
    let main_body = module.body(main).expect("a body");
    let call = main_body.all_insts().find(|inst| main_body.inst(*inst).opcode.is_call());
    for natively in [&[][..], &[main], &[main, aside], &[main, aside, leaf]] {
        let mut vm = with_code(&module, &engine, natively);
        for _ in 0..2 {
            match vm.run(main, &[3], &mut Traps(aside)) {
                Ok(Outcome::Trapped { kind: TrapKind::User(5), site, .. }) => {
                    assert_eq!((site.func, site.inst), (main, call), "{natively:?}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// An end below the embedder ends the whole run, and the machine remains usable.
#[test]
fn an_end_below_the_embedder_ends_the_run() {
    let (module, engine) = (module(ENDS), engine(Config::default()));
    let [main, traps] =
        ["main", "traps"].map(|name| module.func_named(name).expect("the text has it"));
    for natively in [&[][..], &[main], &[traps], &[main, traps]] {
        let mut vm = with_code(&module, &engine, natively);
        match vm.run(main, &[3], &mut Ends(traps, true)) {
            Ok(Outcome::Trapped { site, .. }) => {
                assert_eq!((site.func, site.inst.is_some()), (traps, true), "{natively:?}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(vm.run(main, &[3], &mut Ends(traps, false)), Ok(Outcome::Exited(7)));
        match vm.run(main, &[3], &mut Nobody) {
            Ok(Outcome::HostFailed { error, site }) => {
                assert_eq!(error.to_string(), "no host function env.leave");
                assert_eq!((site.func, site.inst.is_some()), (main, true), "{natively:?}");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// An embedder that ignores the end of a nested run, and calls on, ends the run nevertheless: no
/// frame is left that could continue.
#[test]
fn an_end_below_the_embedder_cannot_be_ignored() {
    struct Ignores(usize);
    impl Embedder for Ignores {
        fn call(
            &mut self,
            back: &mut Callback<'_>,
            _: Func,
            args: &[u64],
            _: &mut [u64],
        ) -> Result<(), CallbackEnd> {
            let named = |name| back.module().func_named(name).expect("the text has it");
            let (traps, main) = (named("traps"), named("main"));
            if args[0] > 0 {
                assert!(back.call(self, main, &[args[0] - 1]).is_err());
            }
            assert!(back.call(self, traps, args).is_err());
            assert!(back.call(self, main, args).is_err(), "the run has ended");
            self.0 += 1;
            Ok(())
        }
    }
    let (module, engine) = (module(ENDS), engine(Config::default()));
    let [main, traps] =
        ["main", "traps"].map(|name| module.func_named(name).expect("the text has it"));
    for natively in [&[][..], &[main], &[traps], &[main, traps]] {
        let mut vm = with_code(&module, &engine, natively);
        let mut ignores = Ignores(0);
        let ended = vm.run(main, &[3], &mut ignores);
        assert!(matches!(ended, Ok(Outcome::Trapped { .. })), "{natively:?}: {ended:?}");
        assert_eq!(ignores.0, 4, "each embedder went on");
        assert_eq!(vm.run(main, &[3], &mut Ends(traps, false)), Ok(Outcome::Exited(7)));
    }
}

/// A run that the owner starts on the machine itself has a host.
#[test]
fn the_machine_itself_calls_its_host_after_a_run_with_an_embedder() {
    let (module, engine) = (module(FOLD), engine(Config::default()));
    let fold = module.func_named("fold").expect("the text has it");
    let mut vm = machine(&module, &engine);
    let mut each = Each::new(&module);
    assert_eq!(vm.run(fold, &[2, 0], &mut each), Ok(Outcome::Returned(vec![expected(2, 0).0])));
    let ended = vm.machine_mut().invoke(fold, &[2, 0], &mut Calls(|| Ok(6)), &mut NoObserver);
    assert_eq!(ended, Outcome::Returned(vec![7]));
}

/// An embedder without functions and without an interpreter.
struct Nobody;

impl Embedder for Nobody {}

/// The embedder and the program call each other without end: natively, and in the interpreter,
/// which compares the stack with no limit itself.
#[test]
fn the_embedder_recurses_until_the_stack_ends() {
    struct Forever(usize);
    impl Embedder for Forever {
        fn call(
            &mut self,
            back: &mut Callback<'_>,
            _: Func,
            args: &[u64],
            results: &mut [u64],
        ) -> Result<(), CallbackEnd> {
            self.0 = self.0.max(back.depth());
            let fold = back.module().func_named("fold").expect("the text has it");
            results[0] = back.call(self, fold, args)?[0];
            Ok(())
        }
    }
    let (module, engine) = (module(FOLD), engine(Config::default()));
    let fold = module.func_named("fold").expect("the text has it");
    for is_native in [false, true] {
        let limits = Limits { call_depth: 1 << 20, ..Limits::default() };
        let options = Options::default();
        let mut vm = Vm::new(&engine, &module, limits, options).expect("instantiated");
        if is_native {
            let body = module.body(fold).expect("a body");
            let version = engine.version(&module, fold, body, &[]).expect("compiled");
            vm.install(&version, vec![]).expect("it fits");
        }
        let mut forever = Forever(0);
        let ended = vm.run(fold, &[1, 1], &mut forever);
        assert!(matches!(ended, Ok(Outcome::StackOverflow(_))), "{ended:?}");
        assert!(forever.0 > 50, "natively: {is_native}, {} deep", forever.0);
        let again = vm.run(fold, &[2, 0], &mut Each::new(&module));
        assert_eq!(again, Ok(Outcome::Returned(vec![expected(2, 0).0])), "used again");
    }
}
