//! A program and its embedder call each other: the imported function `each` calls `@step` of the
//! program again and again, natively as soon as `@step` is hot.

use osier::interp::{Limits, Options};
use osier::ir::Func;
use osier::jit::{Callback, CallbackEnd, Config, Embedder, Engine, Vm};
use osier::passes::Pipeline;
use osier::tiers::{Costs, Tiered};
use osier::{Format, load};
use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

const PROGRAM: &[u8] = br#"
import func @each "host" "each" (i64) -> i64
func @step(%n: i64) -> i64 {
entry:
  %zero = const.i64 0
  jump head(%zero, %zero)
head(%i: i64, %sum: i64):
  %one = const.i64 1
  %j = add.i64 %i, %one
  %next = add.i64 %sum, %j
  %more = ult.i64 %j, %n
  br_if %more, head(%j, %next), done
done:
  return %next
}
func @main(%n: i64) -> i64 {
entry:
  %r = call @each(%n)
  return %r
}
"#;

/// The embedder. Its state is at hand wherever a run calls it.
struct Language {
    step: Func,
    calls: u64,
}

impl Embedder for Language {
    fn call(
        &mut self,
        back: &mut Callback<'_>,
        _: Func,
        args: &[u64],
        results: &mut [u64],
    ) -> Result<(), CallbackEnd> {
        let step = self.step;
        for n in 1..=args[0] {
            self.calls += 1;
            results[0] += back.call(self, step, &[n])?[0];
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let module = Arc::new(load(Format::Oir, PROGRAM).map_err(|error| error.in_file("each.oir"))?);
    let named = |name: &str| module.func_named(name).ok_or(format!("no @{name}"));
    let engine = Engine::new(Config::default())?;
    let options = Options::default();
    let mut vm = Vm::new(&engine, &module, Limits::default(), options)?;
    let policy = Tiered::by_costs(Costs::MEASURED, Pipeline::default());
    vm.set_tiering(Box::new(policy));
    let mut language = Language { step: named("step")?, calls: 0 };
    let n = 1_000;
    let outcome = vm.run(named("main")?, &[n], &mut language)?;
    // The sum of the first n triangular numbers.
    assert_eq!(outcome.returned(), Some(&[n * (n + 1) * (n + 2) / 6][..]));
    let is_native = vm.installed(language.step).is_some();
    let calls = language.calls;
    Ok(writeln!(io::stdout(), "{outcome} after {calls} calls; @step is native: {is_native}")?)
}
