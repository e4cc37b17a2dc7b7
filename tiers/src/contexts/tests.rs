//! Calls that the checker refuses.

use super::{ContextMaker, ContextRows, calls_in_context};
use crate::speculating::Speculations;
use crate::{Compiled, Observer};
use check::KnownCallFault;
use interp::{Limits, NoHost, Options};
use ir::text::parse_module;
use ir::{Func, Inst};
use jit::{Config, Engine, RunError, Tier, Tiering, VersionSpec, Vm};
use passes::Pipeline;
use std::sync::{Arc, Mutex, PoisonError};

/// `@f` does one of two things by its second argument, which each call fixes.
const CALLS: &str = "
func @main(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  %a = call @f(%n, %zero)
  %b = call @f(%a, %one)
  return %b
}
func @f(%x: i32, %k: i32) -> i32 {
entry:
  %three = const.i32 3
  br_if %k, first, other
first:
  %m = mul.i32 %x, %three
  return %m
other:
  %y = xor.i32 %x, %three
  return %y
}
";

/// The calls that the checker has refused.
#[derive(Clone, Default)]
struct Refused(Arc<Mutex<Vec<Inst>>>);

impl Refused {
    fn seen(&self) -> Vec<Inst> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Observer for Refused {
    fn step(&mut self, _step: Option<derive::driver::Step>) {}

    fn begin(&mut self) {}

    fn without_link(&mut self, _func: Func, call: Inst, _fault: KnownCallFault) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    fn compiled(&mut self, _made: Compiled) {}
}

/// Makes rows for the calls of `@main`, and then exchanges the rows of the two contexts, before it
/// links the calls of a second piece of code.
struct Exchanging {
    main: Func,
    exchanges: bool,
    refused: Refused,
}

impl Tiering for Exchanging {
    fn threshold(&self) -> Option<u32> {
        Some(1)
    }

    fn called(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        let module = Arc::clone(tier.module());
        let body = module.body(func).expect("it has a body");
        let calls = calls_in_context(&module, body);
        let (mut rows, pipeline) = (ContextRows::default(), Pipeline::default());
        let mut speculations = Speculations::default();
        for number in 0..if func == self.main { 2 } else { 1 } {
            let spec = VersionSpec::default().dispatching(calls.clone());
            let version = tier.engine().version(&module, func, body, spec);
            let version = version.map_err(RunError::Compile)?;
            tier.install(&version, Vec::new()).map_err(RunError::Link)?;
            if number == 1 && self.exchanges {
                let mut all = rows.rows.values_mut();
                let (first, second) = (all.next().expect("two"), all.next().expect("two"));
                std::mem::swap(first, second);
            }
            let observer = &mut self.refused;
            let (speculations, pipeline) = (&mut speculations, &pipeline);
            let mut maker = ContextMaker { speculations, pipeline, observer, left: 16 };
            rows.link(tier, &version, &mut maker)?;
        }
        Ok(())
    }
}

/// A call whose context has the row of another is refused by the checker, which the observer hears.
/// The call runs the installed version, with the right result.
#[test]
fn a_call_that_the_checker_refuses_runs_the_installed_version() {
    let module = Arc::new(parse_module(CALLS).expect("it is well-formed"));
    let main = module.func_named("main").expect("it has a main");
    for exchanges in [false, true] {
        let engine = Engine::new(Config::default()).expect("the tests run where native code does");
        let vm = Vm::new(&engine, &module, Limits::default(), Options::default());
        let mut vm = vm.expect("it is instantiated");
        let refused = Refused::default();
        vm.set_tiering(Box::new(Exchanging { main, exchanges, refused: refused.clone() }));
        for n in 0..5 {
            let ended = vm.invoke(main, &[n], &mut NoHost).expect("it runs");
            assert_eq!(ended.returned(), Some(&[3 * (n ^ 3)][..]), "{n}");
        }
        assert_eq!(refused.seen().len(), if exchanges { 2 } else { 0 });
    }
}
