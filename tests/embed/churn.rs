//! Runs that replace their code all the time. Code is freed during the run, and never while a frame
//! returns to it.
//!
//! Freed code is filled with traps, so a return to it ends the process. An engine's limit on code
//! bounds the code that is kept: a run that keeps too much ends with an error.

use super::support::{Pair, SUM, engine, in_a_process_of_its_own, invoke, module, sum, vm};
use osier::interp::Outcome;
use osier::ir::{Func, Module};
use osier::jit::{
    Action, Callback, CallbackEnd, Condition, Config, Effort, Embedder, Engine, Onward, OpenPoint,
    RunError, Tier, Tiering, Version, live_code,
};
use osier::transition::VersionKey;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls of two functions in turn.
const TURNS: &str = "
func @main(%n: i64) -> i64 {
entry:
  %zero = const.i64 0
  jump head(%zero, %zero)
head(%i: i64, %acc: i64):
  %more = ult.i64 %i, %n
  br_if %more, body, done
body:
  %a = call @left(%acc)
  %b = call @right(%a)
  %one = const.i64 1
  %j = add.i64 %i, %one
  jump head(%j, %b)
done:
  return %acc
}
func @left(%x: i64) -> i64 {
entry:
  %one = const.i64 1
  %y = add.i64 %x, %one
  return %y
}
func @right(%x: i64) -> i64 {
entry:
  %two = const.i64 2
  %y = add.i64 %x, %two
  return %y
}
";

/// A recursion `rounds` times. Each activation calls `poke`, which has no code: at odd depths
/// beside the recursion, at even depths around it, so the interpreter enters native code anew.
const DEEP: &str = "
func @main(%rounds: i64, %depth: i64) -> i64 {
entry:
  %zero = const.i64 0
  jump head(%zero, %zero)
head(%i: i64, %acc: i64):
  %more = ult.i64 %i, %rounds
  br_if %more, body, done
body:
  %a = call @deep(%depth)
  %sum = add.i64 %acc, %a
  %one = const.i64 1
  %j = add.i64 %i, %one
  jump head(%j, %sum)
done:
  return %acc
}
func @deep(%n: i64) -> i64 {
entry:
  %one = const.i64 1
  %below = sub.i64 %n, %one
  %odd = and.i64 %n, %one
  %is_odd = eq.i64 %odd, %one
  %two = const.i64 2
  %last = ult.i64 %n, %two
  br_if %last, end, further
end:
  br_if %is_odd, further, done
further:
  br_if %is_odd, beside, around
beside:
  %none = const.i64 0
  %nothing = call @poke(%none)
  %a = call @deep(%below)
  jump join(%a)
around:
  %b = call @poke(%below)
  jump join(%b)
join(%r: i64):
  %t = add.i64 %r, %n
  return %t
done:
  %zero = const.i64 0
  return %zero
}
func @poke(%n: i64) -> i64 {
entry:
  %r = call @deep(%n)
  return %r
}
";

fn config(code_bytes: usize) -> Config {
    Config { effort: Effort::Least, code_bytes, ..Config::default() }
}

/// Compiles a function as it is.
fn fresh(engine: &Engine, module: &Arc<Module>, func: Func) -> Arc<Version> {
    let body = module.body(func).expect("it has a body");
    engine.version(module, func, body, &[]).expect("the code of earlier versions is gone")
}

/// Compiles each function at its call, and releases the function compiled before it.
#[derive(Default)]
struct InTurn {
    before: Option<Func>,
    compiled: Arc<AtomicUsize>,
}

impl Tiering for InTurn {
    fn called(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        let module = Arc::clone(tier.module());
        if module.funcs[func].name == "main" {
            return tier.install(&fresh(tier.engine(), &module, func), vec![]).map_err(link);
        }
        if let Some(version) = self.before.replace(func).and_then(|f| tier.installed(f).cloned()) {
            tier.release(&version);
        }
        self.compiled.fetch_add(1, Ordering::Relaxed);
        tier.install(&fresh(tier.engine(), &module, func), vec![]).map_err(link)
    }
}

fn link(error: osier::jit::LinkError) -> RunError {
    RunError::Link(error)
}

#[test]
fn a_run_that_compiles_anew_forever_keeps_little_code() {
    let module = module(TURNS);
    let main = module.func_named("main").expect("there");
    let mut vm = vm(&engine(config(4096)), &module);
    let policy = InTurn::default();
    let compiled = Arc::clone(&policy.compiled);
    vm.set_tiering(Box::new(policy));
    vm.demand(main).expect("compiled");
    assert_eq!(invoke(&mut vm, main, &[2000]), Ok(Outcome::Returned(vec![6000])));
    assert_eq!(compiled.load(Ordering::Relaxed), 4000, "each call compiles");
}

/// Leads each point into a version that is compiled anew, and releases the version before.
struct Alternates {
    pair: Arc<Pair>,
    made: Arc<AtomicUsize>,
}

impl Tiering for Alternates {
    fn open(&mut self, tier: &mut Tier<'_>, at: OpenPoint<'_>) -> Result<Onward, RunError> {
        let from_base = at.version.key() == VersionKey::of(&self.pair.base);
        let engine = tier.engine().clone();
        let target = self.pair.at_head(&engine, from_base, Condition::Countdown(5));
        tier.adopt(&target, vec![Action::Ask]).map_err(link)?;
        let Action::Continue(into) = self.pair.leading(&engine, from_base, &target) else {
            unreachable!("a continuation was made")
        };
        tier.release(at.version);
        self.made.fetch_add(1, Ordering::Relaxed);
        Ok(into.into())
    }
}

#[test]
fn a_loop_that_goes_from_version_to_version_keeps_little_code() {
    let pair = Arc::new(Pair::new(SUM));
    let engine = engine(config(8192));
    let mut vm = vm(&engine, &pair.module);
    let first = pair.at_head(&engine, false, Condition::Countdown(5));
    vm.install(&first, vec![Action::Ask]).expect("it fits");
    drop(first);
    let made = Arc::default();
    vm.set_tiering(Box::new(Alternates { pair: Arc::clone(&pair), made: Arc::clone(&made) }));
    let n = 5 * 1200;
    assert_eq!(invoke(&mut vm, pair.func, &[n, 7]), Ok(Outcome::Returned(vec![sum(n, 7)])));
    assert!(made.load(Ordering::Relaxed) >= 1000, "{made:?} transitions");
}

/// Replaces `deep` at each call of `poke`, which stays in the interpreter.
struct Replaces {
    deep: Func,
    /// A version that is installed at every third question, and held meanwhile.
    held: Option<Arc<Version>>,
    asked: Arc<AtomicUsize>,
    /// The most code that existed at a question.
    most: Arc<AtomicUsize>,
}

impl Replaces {
    fn new(module: &Module) -> Replaces {
        let deep = module.func_named("deep").expect("there");
        Replaces { deep, held: None, asked: Arc::default(), most: Arc::default() }
    }
}

impl Tiering for Replaces {
    fn called(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        let module = Arc::clone(tier.module());
        if module.funcs[func].name == "main" {
            return tier.install(&fresh(tier.engine(), &module, func), vec![]).map_err(link);
        }
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        self.most.fetch_max(live_code(), Ordering::Relaxed);
        let version = match &self.held {
            Some(held) if asked.is_multiple_of(3) => Arc::clone(held),
            _ => fresh(tier.engine(), &module, self.deep),
        };
        tier.install(&version, vec![]).map_err(link)
    }
}

/// The result of [`DEEP`].
fn deep(rounds: u64, depth: u64) -> u64 {
    rounds * (depth * (depth + 1) / 2)
}

#[test]
fn frames_keep_their_code_in_all_entries() {
    let module = module(DEEP);
    let main = module.func_named("main").expect("there");
    // The code of two rounds fits into the limit, the code of all rounds does not. Both ways to
    // allocate registers lay out frames of their own.
    for (effort, rounds) in [(Effort::Least, 30), (Effort::Most, 12)] {
        let mut vm = vm(&engine(Config { effort, ..config(200 << 10) }), &module);
        let policy = Replaces::new(&module);
        let asked = Arc::clone(&policy.asked);
        vm.set_tiering(Box::new(policy));
        vm.demand(main).expect("compiled");
        let ended = invoke(&mut vm, main, &[rounds, 150]);
        assert_eq!(ended, Ok(Outcome::Returned(vec![deep(rounds, 150)])));
        assert!(asked.load(Ordering::Relaxed) as u64 >= rounds * 150, "{asked:?}");
    }
}

#[test]
fn code_with_a_handle_is_installed_again() {
    let module = module(DEEP);
    let main = module.func_named("main").expect("there");
    let engine = engine(config(200 << 10));
    let mut vm = vm(&engine, &module);
    let mut policy = Replaces::new(&module);
    let held = fresh(&engine, &module, policy.deep);
    policy.held = Some(Arc::clone(&held));
    vm.set_tiering(Box::new(policy));
    vm.demand(main).expect("compiled");
    let ended = invoke(&mut vm, main, &[10, 100]);
    assert_eq!(ended, Ok(Outcome::Returned(vec![deep(10, 100)])));
    // The run has freed the version many times, as far as the machine is concerned.
    vm.install(&held, vec![]).expect("it fits");
    let ended = invoke(&mut vm, held.func(), &[1]);
    assert_eq!(ended, Ok(Outcome::Returned(vec![1])));
}

/// The executable mappings of this process that belong to no file.
fn code_mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the system tells its maps");
    let is_code = |line: &&str| line.contains(" r-xp ") && line.split_whitespace().count() == 5;
    maps.lines().filter(is_code).count()
}

#[test]
fn freed_code_is_unmapped_while_the_run_goes_on() {
    // No other test may compile meanwhile.
    in_a_process_of_its_own("embed::churn::freed_code_is_unmapped_while_the_run_goes_on", || {
        let module = module(DEEP);
        let main = module.func_named("main").expect("there");
        let mut vm = vm(&engine(config(1 << 20)), &module);
        let policy = Replaces::new(&module);
        let (asked, most) = (Arc::clone(&policy.asked), Arc::clone(&policy.most));
        vm.set_tiering(Box::new(policy));
        vm.demand(main).expect("compiled");
        assert!(code_mappings() > 0, "the code of main");
        let before = live_code();
        let ended = invoke(&mut vm, main, &[40, 100]);
        assert_eq!(ended, Ok(Outcome::Returned(vec![deep(40, 100)])));
        let (asked, most) = (asked.load(Ordering::Relaxed), most.load(Ordering::Relaxed));
        assert!(asked >= 4000, "{asked} pieces of code");
        assert!(most >= before + 50, "the frames of one round keep theirs: {most}");
        assert!(most <= before + 250, "those of other rounds are gone: {most}");
        assert!(code_mappings() <= before + 20, "{} mappings", code_mappings());
    });
}

/// One function whose code calls `@f` and `@g` in turn. Later code takes addresses of freed code.
const IMPORTS: &str = "
import func @f \"env\" \"f\" (i64) -> i64
import func @g \"env\" \"g\" (i64) -> i64
func @main(%x: i64) -> i64 {
entry:
  %y = call @f(%x)
  return %y
}
func @other(%x: i64) -> i64 {
entry:
  %y = call @g(%x)
  return %y
}
func @idle() {
entry:
  return
}
";

/// Answers with the number of the function that is called.
struct Number;

impl Embedder for Number {
    fn call(
        &mut self,
        _: &mut Callback<'_>,
        func: Func,
        _: &[u64],
        results: &mut [u64],
    ) -> Result<(), CallbackEnd> {
        results[0] = func.as_u32().into();
        Ok(())
    }
}

/// A machine remembers the callee of the last call site, by its address.
#[test]
fn code_at_the_address_of_freed_code_calls_its_own_functions() {
    // Too little for all versions, so later code takes the place of freed code.
    let engine = engine(config(16 << 10));
    let module = module(IMPORTS);
    let named = |name: &str| module.func_named(name).expect("the text has it");
    let mut vm = vm(&engine, &module);
    for round in 0..400 {
        let (body, callee) = [("main", "f"), ("other", "g")][round % 2];
        let body = module.body(named(body)).expect("it has a body");
        let version = engine.version(&module, named("main"), body, &[]).expect("it compiles");
        vm.install(&version, Vec::new()).expect("it fits");
        let ended = vm.run(named("main"), &[0], &mut Number);
        assert_eq!(ended, Ok(Outcome::Returned(vec![named(callee).as_u32().into()])), "{round}");
        // The code is freed, and the next takes its place.
        vm.uninstall(named("main"));
        drop(version);
        vm.run(named("idle"), &[], &mut Number).expect("it ends");
    }
}
