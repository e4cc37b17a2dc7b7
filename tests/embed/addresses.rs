//! Code that calls functions of the embedder at their addresses: continuations, cold blocks, and
//! code of runs that panicked.

use super::direct::{CALLS, calling, double, named, plain};
use super::sessions::Asked;
use super::support::{Calls, Pair, engine, invoke, module};
use osier::interp::{Limits, Options, Outcome};
use osier::ir::{Func, Module};
use osier::jit::{
    Action, BindError, BoundFunctions, Callback, Condition, Config, Continuation, LinkError,
    Onward, OpenPoint, RunError, Tier, Tiering, VersionSpec, Vm,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A machine that may run code that calls functions at their addresses: it records no calls.
pub(super) fn untraced(module: &Arc<Module>) -> Vm {
    let engine = engine(Config::default());
    Vm::new(&engine, module, Limits::default(), Options::default()).expect("instantiated")
}

/// Answers each open point with a continuation.
struct Leads(Arc<Continuation>);

impl Tiering for Leads {
    fn open(&mut self, _tier: &mut Tier<'_>, _at: OpenPoint<'_>) -> Result<Onward, RunError> {
        Ok(Arc::clone(&self.0).into())
    }
}

fn continuation(action: &Action) -> &Arc<Continuation> {
    let Action::Continue(continuation) = action else { panic!("{action:?}") };
    continuation
}

/// A continuation into a version calls what the version calls. It is refused like the version.
#[test]
fn continuations_call_bound_functions_at_their_addresses() {
    let pair = Pair::new(CALLS);
    let mut vm = untraced(&pair.module);
    let engine = vm.engine().clone();
    let count = named(&pair.module, "count");
    vm.bind(count, &plain(double)).expect("it fits");
    let leading = |bound: &BoundFunctions| {
        let spec = VersionSpec::default().calling(bound);
        let fast = engine.version(&pair.module, pair.func, &pair.opt, spec).expect("compiled");
        pair.leading(&engine, true, &fast)
    };
    let (action, shim) = (leading(&vm.bound()), leading(&BoundFunctions::default()));
    let sizes = [&action, &shim].map(|action| continuation(action).code_size());
    assert_ne!(sizes[0], sizes[1], "the continuation has no shim's call");

    let slow = pair.at_head(&engine, false, Condition::Flag);
    vm.install(&slow, vec![action.clone()]).expect("it fits");
    slow.arm(0);
    assert_eq!(invoke(&mut vm, pair.func, &[4]), Ok(Outcome::Returned(vec![20])));
    assert_eq!(vm.transitions()[0].count, 1, "the continuation ran");
    assert_eq!(vm.unbind(count), Err(BindError::InUse(count)));
    vm.relink(&slow, 0, Action::Ask).expect("it fits");
    vm.unbind(count).expect("no code calls it");

    let refused = LinkError::NotBound(count);
    assert_eq!(vm.relink(&slow, 0, action.clone()), Err(refused.clone()));
    vm.set_tiering(Box::new(Leads(Arc::clone(continuation(&action)))));
    slow.arm(0);
    let mut host = Calls(|| Ok(1));
    assert_eq!(vm.invoke(pair.func, &[4], &mut host), Err(RunError::Link(refused)));
}

/// `@f` calls `@both` in hot and cold code; `@g` calls `@rare` in its cold code instead.
const HOT_AND_COLD: &str = "
import func @first \"env\" \"first\" (i64) -> i64
import func @both \"env\" \"both\" (i64) -> i64
import func @rare \"env\" \"rare\" (i64) -> i64
func @f(%x: i64) -> i64 {
entry:
  %y = call @both(%x)
  br_if %x, done(%y), seldom
seldom cold:
  %z = call @both(%y)
  jump done(%z)
done(%r: i64):
  return %r
}
func @g(%x: i64) -> i64 {
entry:
  %y = call @both(%x)
  br_if %x, done(%y), seldom
seldom cold:
  %z = call @rare(%y)
  jump done(%z)
done(%r: i64):
  return %r
}
";

extern "C" fn next(x: u64) -> u64 {
    x + 1
}

#[test]
fn cold_blocks_call_no_function_at_its_address() {
    let module = module(HOT_AND_COLD);
    let mut vm = untraced(&module);
    let (rare, often) = (named(&module, "rare"), named(&module, "both"));
    vm.bind(rare, &plain(double)).expect("it fits");
    let rare_alone = calling(&vm, "g", &vm.bound());
    let shims = calling(&vm, "g", &BoundFunctions::default());
    assert_eq!(rare_alone.code_size(), shims.code_size(), "the call goes through the cold stub");
    vm.bind(often, &plain(next)).expect("it fits");
    let version = calling(&vm, "g", &vm.bound());
    vm.install(&version, Vec::new()).expect("it fits");
    assert_eq!(invoke(&mut vm, version.func(), &[0]), Ok(Outcome::Returned(vec![2])));
    assert_eq!(invoke(&mut vm, version.func(), &[4]), Ok(Outcome::Returned(vec![5])));
    assert_eq!(vm.unbind(often), Err(BindError::InUse(often)));
    vm.bind(rare, &plain(next)).expect("no code calls it at its address");
    assert_eq!(invoke(&mut vm, version.func(), &[0]), Ok(Outcome::Returned(vec![2])));
}

/// The call of a function at its address in hot code does not bring that call into cold code.
#[test]
fn cold_blocks_use_the_stub_for_functions_that_hot_code_calls() {
    let module = module(HOT_AND_COLD);
    let mut vm = untraced(&module);
    vm.bind(named(&module, "both"), &plain(double)).expect("it fits");
    let [f, g] = ["f", "g"].map(|name| calling(&vm, name, &vm.bound()));
    assert_eq!(f.code_size(), g.code_size(), "both cold calls go through the stub");
    let shims = calling(&vm, "f", &BoundFunctions::default());
    assert_ne!(f.code_size(), shims.code_size(), "the hot call goes to the address");
    vm.install(&f, Vec::new()).expect("it fits");
    assert_eq!(invoke(&mut vm, f.func(), &[4]), Ok(Outcome::Returned(vec![8])));
    assert_eq!(invoke(&mut vm, f.func(), &[0]), Ok(Outcome::Returned(vec![0])));
}

/// Calls `@bound`, and then the embedder.
const BOTH: &str = "
import func @bound \"env\" \"bound\" (i64) -> i64
import func @ask \"env\" \"ask\" (i64) -> i64
func @f(%x: i64) -> i64 {
entry:
  %y = call @bound(%x)
  %z = call @ask(%y)
  return %z
}
";

/// A panic ends a run whose code is no longer installed. The code keeps no function bound.
#[test]
fn code_of_a_run_that_panicked_keeps_no_function() {
    let module = module(BOTH);
    let (bound, f): (Func, Func) = (named(&module, "bound"), named(&module, "f"));
    for unbinds in [true, false] {
        let mut vm = untraced(&module);
        vm.bind(bound, &plain(double)).expect("it fits");
        let version = calling(&vm, "f", &vm.bound());
        vm.install(&version, Vec::new()).expect("it fits");
        let other = calling(&vm, "f", &BoundFunctions::default());
        let mut embedder = Asked(|back: &mut Callback<'_>, _| {
            back.tier().install(&other, Vec::new()).expect("it fits");
            panic!("asked for nothing")
        });
        let run = AssertUnwindSafe(|| vm.run(f, &[1], &mut embedder));
        catch_unwind(run).expect_err("the panic passes");
        let freed = if unbinds { vm.unbind(bound) } else { vm.bind(bound, &plain(next)) };
        assert_eq!(freed, Ok(()), "no code calls it");
    }
}
