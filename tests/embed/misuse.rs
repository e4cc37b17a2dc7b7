//! Mistakes of an embedder, which the interface reports or rejects before native code runs.

use super::support::{Pair, SUM, engine, invoke, module, states, sum, vm};
use osier::check::Checked;
use osier::interp::{Limits, NoHost, Options, Outcome, TraceLevel};
use osier::ir::{Func, Opcode, Point, Type};
use osier::jit::{
    Action, Bounds, Callback, CallbackEnd, CompileError, Condition, Config, Continuation,
    ContinueError, DeoptFrame, Embedder, HotLoop, LinkError, Nans, PointSpec, RunError, Slot, Tier,
    Tiering, Version, Vm, live_code,
};
use osier::transition::mapping::{Assign, Entry, Mapping, Operand, Step};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

#[test]
fn a_continuation_is_made_by_the_engine_of_its_target() {
    let pair = Pair::new(SUM);
    let [guarded, checked] = [Bounds::Guarded, Bounds::Checked]
        .map(|bounds| engine(Config { bounds, ..Config::default() }));
    let target = checked.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    let made = guarded.continuation(&pair.base, pair.loop_entry(), &target);
    assert!(
        matches!(made, Err(ContinueError::OtherEngine { .. })),
        "it would rely on guards that are not there"
    );
    let made = guarded.probe(pair.func, &pair.base, pair.loop_entry(), &target);
    assert!(matches!(made, Err(ContinueError::OtherEngine { .. })), "likewise");
}

#[test]
fn too_few_arguments_are_a_panic() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let mut vm = vm(&engine, &pair.module);
    let version = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    vm.install(&version, vec![]).expect("it fits");
    for args in [&[][..], &[1], &[1, 2, 3]] {
        let ended = catch_unwind(AssertUnwindSafe(|| vm.invoke(pair.func, args, &mut NoHost)));
        assert!(ended.is_err(), "{} arguments: {ended:?}", args.len());
    }
    assert_eq!(
        invoke(&mut vm, pair.func, &[10, 7]),
        Ok(Outcome::Returned(vec![sum(10, 7)])),
        "used again"
    );
}

#[test]
fn an_assumed_nan_needs_canonical_nans() {
    let module = module(
        "func @f(%x: f64) -> i64 {\nentry:\n  %y = assume.f64 %x, nan:0x7ff8000000000000, 0\n  \
         %b = bitcast.i64 %y\n  return %b\n}\n",
    );
    let func = module.lookup("f").expect("it is there");
    let version = |nans| {
        let engine = engine(Config { nans, ..Config::default() });
        engine.version(&module, func, module.body(func).expect("a body"), &[])
    };
    assert!(version(Nans::Canonical).is_ok(), "its bits are determined");
    let made = version(Nans::Platform);
    assert!(
        matches!(&made, Err(CompileError::Invalid { what, .. }) if what.contains("of a NaN")),
        "{made:?}"
    );
}

#[test]
fn an_imported_function_has_no_versions() {
    let module = module(
        "import func @ask \"env\" \"ask\" () -> i64\n\
         func @seven() -> i64 {\nentry:\n  %x = const.i64 7\n  return %x\n}\n",
    );
    let [ask, seven] = ["ask", "seven"].map(|name| module.lookup(name).expect("it is there"));
    let made =
        engine(Config::default()).version(&module, ask, module.body(seven).expect("a body"), &[]);
    assert!(
        matches!(&made, Err(CompileError::Invalid { what, .. }) if what.contains("imported")),
        "{made:?}"
    );
}

/// A policy that answers every hot loop with the same continuation.
struct Always(Arc<Continuation>);

impl Tiering for Always {
    fn threshold(&self) -> Option<u32> {
        Some(2)
    }

    fn hot(
        &mut self,
        _tier: &mut Tier<'_>,
        _at: HotLoop,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        Ok(Some(Arc::clone(&self.0)))
    }
}

#[test]
fn a_mapping_of_another_function_leads_nowhere() {
    let (pair, other) = (
        Pair::new(SUM),
        Pair::new("func @f(%a: f64) -> f64 {\nentry:\n  %b = fadd.f64 %a, %a\n  return %b\n}\n"),
    );
    let engine = engine(Config::default());
    let mut vm = vm(&engine, &pair.module);
    let at = Point::before(pair.base.first_inst(pair.base.entry()));
    let point =
        PointSpec { at, condition: Condition::Flag, values: pair.base.arguments().to_vec() };
    let version = engine.version(&pair.module, pair.func, &pair.base, &[point]).expect("compiled");
    // The two bases have the same ids for their first instructions and values.
    let landing = Point::before(other.base.first_inst(other.base.entry()));
    let value = other.base.arguments()[0];
    let assigns = vec![Assign { value, from: Operand::Step(0) }];
    let step = Step {
        opcode: Opcode::Const,
        ty: Type::F64,
        operand_ty: Type::F64,
        bits: 0,
        args: Default::default(),
    };
    let entry = Entry {
        target: landing,
        steps: vec![step],
        replays: vec![],
        assigns,
        requires: vec![],
        kept: vec![],
        inner: Box::default(),
    };
    let mut mapping = Mapping::new(&other.base, &other.base);
    mapping.insert(at, entry);
    let refused =
        vm.install(&version, vec![Action::Interpret(Arc::new(Checked::unproved(mapping)))]);
    assert_eq!(
        refused,
        Err(LinkError::OtherVersion { number: 0 }),
        "it gives a float to an integer"
    );
}

#[test]
fn a_loop_continues_in_its_own_function_alone() {
    let twice = format!(
        "{SUM}{}",
        SUM.split_once("func").expect("a function").1.replacen(" @sum", "func @other", 1)
    );
    let pair = Pair::new(&twice);
    let engine = engine(Config::default());
    let mut vm = vm(&engine, &pair.module);
    let other = pair.module.lookup("other").expect("it is there");
    let target = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    let into = engine.continuation(&pair.base, pair.loop_entry(), &target);
    vm.set_tiering(Box::new(Always(into.expect("it fits"))));
    let ended = invoke(&mut vm, other, &[10, 7]);
    assert!(
        matches!(ended, Err(RunError::Continue(ContinueError::OtherSource { .. }))),
        "{ended:?}"
    );
    assert_eq!(
        invoke(&mut vm, pair.func, &[10, 7]),
        Ok(Outcome::Returned(vec![sum(10, 7)])),
        "its own"
    );
}

/// The fast loop of the interpreter executes a run without a trace, and loses dead values. The
/// exact loop has them.
#[test]
fn a_loop_that_lost_dead_values_is_not_entered_with_them() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let target = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    let live = pair.loop_entry();
    let mut entry = live.entry().clone();
    entry.kept = entry.requires.clone();
    let mut mapping = Mapping::new(&pair.base, &pair.opt);
    mapping.insert(live.point(), entry);
    let claimed = Checked::unproved(mapping);
    let entry = claimed.checked_entry(live.point()).expect("it was put there");
    let into = engine.continuation(&pair.base, entry, &target).expect("it fits");
    assert!(into.keeps_values());
    let run = |trace| {
        let options = Options { trace, ..Options::traced() };
        let made = Vm::new(&engine, &pair.module, Limits::default(), options);
        let mut vm = made.expect("it can be instantiated");
        vm.set_tiering(Box::new(Always(Arc::clone(&into))));
        invoke(&mut vm, pair.func, &[10, 7])
    };
    assert_eq!(run(TraceLevel::Digest), Ok(Outcome::Returned(vec![sum(10, 7)])));
    let refused = run(TraceLevel::Off);
    assert!(
        matches!(refused, Err(RunError::Continue(ContinueError::NotKept { .. }))),
        "{refused:?}"
    );
}

/// A run of another version of the function pauses at the same instruction. The continuation was
/// compiled for the base version, so it is refused.
#[test]
fn a_loop_of_another_version_is_refused() {
    let pair = Pair::new(SUM);
    let engine = engine(Config::default());
    let mut vm = vm(&engine, &pair.module);
    let target = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    let into = engine.continuation(&pair.base, pair.loop_entry(), &target).expect("it fits");
    let at = into.source().1.inst();
    vm.set_tiering(Box::new(Always(into)));
    let other = vm.machine_mut().add_version(&pair.module, pair.func, &pair.opt);
    vm.machine_mut().set_current(pair.func, other);
    vm.machine_mut().count_blocks(other, [(at, 2)]);
    let ended = invoke(&mut vm, pair.func, &[10, 7]);
    assert!(
        matches!(ended, Err(RunError::Continue(ContinueError::OtherSource { .. }))),
        "{ended:?}"
    );
}

/// A policy that panics at the first call.
struct PanicsOnce(bool);

impl Tiering for PanicsOnce {
    fn called(&mut self, _tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        if !std::mem::replace(&mut self.0, true) {
            panic!("once");
        }
        Err(RunError::Stuck { func, point: 0 })
    }
}

#[test]
fn a_tiering_that_panicked_is_asked_again() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let mut vm = vm(&engine, &pair.module);
    vm.set_tiering(Box::new(PanicsOnce(false)));
    assert!(catch_unwind(AssertUnwindSafe(|| vm.demand(pair.func))).is_err());
    assert_eq!(vm.demand(pair.func), Err(RunError::Stuck { func: pair.func, point: 0 }));
}

const ASKS: &str = "
import func @ask \"env\" \"ask\" () -> i64
func @sum(%n: i64) -> i64 {
entry:
  %zero = const.i64 0
  jump head(%zero)
head(%i: i64):
  %one = const.i64 1
  %j = add.i64 %i, %one
  %more = ult.i64 %j, %n
  br_if %more, head(%j), done
done:
  return %j
}
func @asks() -> i64 {
entry:
  %x = call @ask()
  return %x
}
";

/// An embedder whose interpreter calls a function of the program and returns its result. Its
/// function `ask` answers with the closure.
struct CallsOn<F>(Func, Vec<u64>, F);

impl<F: FnMut() -> u64> Embedder for CallsOn<F> {
    fn call(
        &mut self,
        _: &mut Callback<'_>,
        _: Func,
        _: &[u64],
        results: &mut [u64],
    ) -> Result<(), CallbackEnd> {
        results[0] = (self.2)();
        Ok(())
    }

    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        let (func, args) = (self.0, self.1.clone());
        let results = frame.back().call(self, func, &args)?;
        Ok(vec![Slot { ty: Type::I64, bits: results[0] }])
    }
}

/// A machine that hands the loop of [`ASKS`] to its embedder at the third iteration.
fn handing(pair: &Pair) -> (Vm, Arc<Version>) {
    let engine = engine(Config::default());
    let mut vm = vm(&engine, &pair.module);
    let version = pair.at_head(&engine, true, Condition::Countdown(3));
    vm.install(&version, vec![Action::Hand(Arc::clone(&pair.backward), states(pair))])
        .expect("it fits");
    (vm, version)
}

#[test]
fn a_panic_below_a_handler_leaves_nothing_behind() {
    let pair = Pair::new(ASKS);
    let asks = pair.module.lookup("asks").expect("it is there");
    let (mut vm, _) = handing(&pair);
    for _ in 0..3 {
        let mut embedder = CallsOn(asks, vec![], || panic!("of the host"));
        let ended = vm.run(pair.func, &[100], &mut embedder);
        assert!(
            matches!(&ended, Err(RunError::HandlerPanicked { what, .. }) if what == "of the host"),
            "{ended:?}"
        );
    }
    let ended = vm.run(pair.func, &[100], &mut CallsOn(asks, vec![], || 5));
    assert_eq!(ended, Ok(Outcome::Returned(vec![5])), "used again");
}

/// Asserts that code dropped after a panic is freed, so the panic has left no run registered.
pub(crate) fn a_panic_below_a_handler_keeps_no_code() {
    let pair = Pair::new(ASKS);
    let asks = pair.module.lookup("asks").expect("it is there");
    let (mut vm, version) = handing(&pair);
    let mut embedder = CallsOn(asks, vec![], || panic!("of the host"));
    let ended = vm.run(pair.func, &[100], &mut embedder);
    assert!(matches!(ended, Err(RunError::HandlerPanicked { .. })), "{ended:?}");
    let many = live_code();
    vm.release(&version);
    drop(version);
    assert_eq!(live_code() + 1, many, "the version's code is gone");
}
