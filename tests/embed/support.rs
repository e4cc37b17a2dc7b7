//! A loop, two versions of its function, and the mappings between them.

use osier::check::{Checked, CheckedEntry};
use osier::driver::{self, Vigilance, derive, prove};
use osier::interp::{Host, HostError, Limits, Memories, NoHost, Options, Outcome};
use osier::ir::loops::LoopForest;
use osier::ir::module::ImportName;
use osier::ir::{FrameStates, Func, Function, Module, Point};
use osier::jit::{
    Action, Condition, Config, Continuation, Engine, PointSpec, RunError, Version, Vm,
};
use osier::osr::Level;
use osier::passes::Pipeline;
use osier::transition::VersionKey;
use osier::transition::mapping::{Assign, Entry, Mapping, Operand};
use osier::{Format, load};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

/// Sums `k * (i + 3)` for all i below n. The optimizer moves `k * 3` out of the loop.
pub(crate) const SUM: &str = "
memory @mem 1
global @steps : mut i64 = 0
func @sum(%n: i64, %k: i64) -> i64 {
entry:
  %zero = const.i64 0
  jump head(%zero, %zero)
head(%i: i64, %acc: i64):
  %more = ult.i64 %i, %n
  br_if %more, body, done
body:
  %three = const.i64 3
  %offset = mul.i64 %k, %three
  %scaled = mul.i64 %k, %i
  %term = add.i64 %scaled, %offset
  %next = add.i64 %acc, %term
  %one = const.i64 1
  %j = add.i64 %i, %one
  jump head(%j, %next)
done:
  return %acc
}
";

/// The result of [`SUM`].
pub(crate) fn sum(n: u64, k: u64) -> u64 {
    (0..n)
        .fold(0, |acc: u64, i| acc.wrapping_add(k.wrapping_mul(i).wrapping_add(k.wrapping_mul(3))))
}

pub(crate) fn module(text: &str) -> Arc<Module> {
    Arc::new(load(Format::Oir, text.as_bytes()).expect("well-formed"))
}

pub(crate) fn engine(config: Config) -> Engine {
    Engine::new(config).expect("the tests run where native code does")
}

pub(crate) fn vm(engine: &Engine, module: &Arc<Module>) -> Vm {
    Vm::new(engine, module, Limits::default(), Options::traced()).expect("it can be instantiated")
}

pub(crate) fn invoke(vm: &mut Vm, func: Func, args: &[u64]) -> Result<Outcome, RunError> {
    vm.invoke(func, args, &mut NoHost)
}

/// The first function of a module, its version after `O1`, and the proved mappings in both
/// directions.
pub(crate) struct Pair {
    pub(crate) module: Arc<Module>,
    pub(crate) func: Func,
    pub(crate) base: Function,
    pub(crate) opt: Function,
    pub(crate) forward: Arc<Checked<Mapping>>,
    pub(crate) backward: Arc<Checked<Mapping>>,
}

impl Pair {
    pub(crate) fn new(text: &str) -> Pair {
        let module = module(text);
        let (func, base) = module.defined().next().expect("there is a function");
        let base = base.clone();
        let derived =
            derive(&module, &base, &Pipeline::default(), Vigilance::On, &mut driver::NoObserver);
        let maps = prove(&module, &base, &derived, &[Level::Avail], &mut driver::NoObserver);
        let maps = maps.into_highest();
        let (forward, backward) = (Arc::new(maps.before.mapping), Arc::new(maps.after.mapping));
        Pair { func, base, opt: derived.function, forward, backward, module }
    }

    /// The base or the optimized function as a version with one point, at the header of the first
    /// loop.
    pub(crate) fn at_head(
        &self,
        engine: &Engine,
        optimized: bool,
        condition: Condition,
    ) -> Arc<Version> {
        let (function, mapping) =
            if optimized { (&self.opt, &self.backward) } else { (&self.base, &self.forward) };
        let point = PointSpec::of_entry(mapping, head(function), condition)
            .expect("the loop's head has an entry");
        engine.version(&self.module, self.func, function, &[point]).expect("it can be compiled")
    }

    /// The action that leads the point of a version into another version.
    pub(crate) fn leading(
        &self,
        engine: &Engine,
        from_base: bool,
        target: &Arc<Version>,
    ) -> Action {
        let (source, mapping) =
            if from_base { (&self.base, &self.forward) } else { (&self.opt, &self.backward) };
        let entry = mapping.checked_entry(head(source)).expect("the loop's head has an entry");
        Action::Continue(engine.continuation(source, entry, target).expect("it can be compiled"))
    }

    /// The entry up at the header of the loop.
    pub(crate) fn loop_entry(&self) -> CheckedEntry<'_> {
        self.forward.checked_entry(head(&self.base)).expect("the loop's head has an entry")
    }

    /// A continuation from the header of the base's loop to itself, which changes nothing.
    pub(crate) fn stay(&self, engine: &Engine, slow: &Arc<Version>) -> Arc<Continuation> {
        let at = head(&self.base);
        let requires = self.forward.entry(at).expect("an entry").requires.clone();
        let assigns = requires
            .iter()
            .map(|value| Assign { value: *value, from: Operand::Source(*value) })
            .collect();
        let entry = Entry {
            target: at,
            steps: vec![],
            replays: vec![],
            assigns,
            requires,
            kept: vec![],
            inner: Box::default(),
        };
        let key = VersionKey::of(&self.base);
        let entry = CheckedEntry::unproved(key, key, at, &entry);
        engine.continuation(&self.base, entry, slow).expect("it fits")
    }
}

/// The environment variable set in a process that runs the body of a single test.
const ALONE: &str = "OSIER_TEST_ALONE";

/// Runs the body of the test with this name in a separate process without other tests.
pub(crate) fn in_a_process_of_its_own(test: &str, body: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return body();
    }
    let this = std::env::current_exe().expect("the test has a file");
    let ended = Command::new(this)
        .args([test, "--exact", "--test-threads=1"])
        .env(ALONE, "1")
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&ended.stderr)
    );
}

/// The frame states of the base of a pair: each live value in the slot of its number.
pub(crate) fn states(pair: &Pair) -> Arc<BTreeMap<Func, Arc<FrameStates>>> {
    let states = FrameStates::of_live(0, &pair.base, |value| Some(value.as_u32()));
    Arc::new(BTreeMap::from([(pair.func, Arc::new(states))]))
}

/// The first point of the header of the first loop.
pub(crate) fn head(function: &Function) -> Point {
    let forest = LoopForest::of(function);
    Point::before(
        function.first_inst(forest.header(forest.loops().next().expect("there is a loop"))),
    )
}

/// A host that calls a closure for every call.
pub(crate) struct Calls<F>(pub(crate) F);

impl<F: FnMut() -> Result<u64, HostError>> Host for Calls<F> {
    fn call(
        &mut self,
        _import: &ImportName,
        _func: Func,
        _args: &[u64],
        _memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        let answer = (self.0)()?;
        results.iter_mut().for_each(|result| *result = answer);
        Ok(())
    }
}
