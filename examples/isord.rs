//! A version specialized while its loop runs. The loop tests whether an array is sorted by a
//! comparator that is only known at run time.
//!
//!     cargo run --release --example isord
//!
//! The loop calls its comparator through a table. It runs natively, and exits after 1000 iterations
//! through an *open* OSR point. The embedder reads the current comparator, adds a guard on it, and
//! calls it directly after the guard. The run continues in the new version, in the middle of the
//! loop. A later call with another comparator fails the guard, and continues in the interpreter at
//! the same iteration.

use osier::driver::{self, Format, Vigilance, certify, derive, load};
use osier::interp::{Limits, NoHost, Options};
use osier::ir::edit::{Editor, Fuel, Pass, apply};
use osier::ir::{Func, Function, Imm, Inst, InstSpec, Opcode, Point, Type};
use osier::jit::{
    Action, Condition, Config, Continuation, Engine, OpenPoint, PointSpec, RunError, Tier, Tiering,
    Vm,
};
use osier::osr::{Level, Truth};
use osier::passes::Pipeline;
use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;

const PROGRAM: &[u8] = br#"
memory @mem 4
table @comparators 2
elem @comparators 0 [@up, @down]
func @up(%a: i32, %b: i32) -> i32 {
entry:
  %fine = sle.i32 %a, %b
  return %fine
}
func @down(%a: i32, %b: i32) -> i32 {
entry:
  %fine = sge.i32 %a, %b
  return %fine
}
func @isord(%n: i32, %comparator: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  %two = const.i32 2
  %four = const.i32 4
  jump head(%one)
head(%i: i32):
  %more = slt.i32 %i, %n
  br_if %more, body, yes
body:
  %at = shl.i32 %i, %two
  %before = sub.i32 %at, %four
  %a = load.i32 @mem[%before]
  %b = load.i32 @mem[%at]
  %fine = call_indirect @comparators (i32, i32) -> i32 [%comparator](%a, %b)
  %j = add.i32 %i, %one
  br_if %fine, head(%j), no
yes:
  return %one
no:
  return %zero
}
"#;
const LENGTH: u64 = 50_000;

/// Computes, before the indirect call, whether the comparator is still the expected one.
struct Compare(u64);

impl Pass for Compare {
    fn name(&self) -> &'static str {
        "compare"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        let call = indirect_call(editor.func());
        let comparator = editor.func().arguments()[1];
        assert!(editor.plan("guard"));
        let seen = editor.add_value(InstSpec::constant(Type::I32, self.0), call);
        editor.add(InstSpec::new(Opcode::Eq, Type::I32, Imm::None, &[comparator, seen]), call);
    }
}

/// Calls the expected comparator directly after the guard.
struct CallDirectly(Func);

impl Pass for CallDirectly {
    fn name(&self) -> &'static str {
        "call_directly"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        let call = indirect_call(editor.func());
        let data = editor.func().inst(call).clone();
        assert!(editor.plan("direct"));
        let result = editor.add_value(InstSpec::call(self.0, &data.args[..2], &[Type::I32]), call);
        editor.replace_all(data.results[0], result);
        editor.delete(call);
    }
}

fn indirect_call(function: &Function) -> Inst {
    function
        .all_insts()
        .find(|inst| function.inst(*inst).opcode == Opcode::CallIndirect)
        .expect("isord has one")
}

/// A policy that specializes the loop when the open point fires.
struct Specialize;

impl Tiering for Specialize {
    fn open(
        &mut self,
        tier: &mut Tier<'_>,
        at: OpenPoint<'_>,
    ) -> Result<Arc<Continuation>, RunError> {
        let (module, func) = (Arc::clone(tier.module()), at.version.func());
        let base = at.version.function().clone();
        let seen = at.value(base.arguments()[1]).expect("arguments are kept");
        let mut derived =
            derive(&module, &base, &Pipeline::default(), Vigilance::On, &mut driver::NoObserver);
        let (function, log) =
            apply(&derived.function, &Compare(seen), &mut Fuel::UNLIMITED.clone()).into_parts();
        derived.log.extend(log);
        derived.function = function;
        // Proved mappings in both directions: into the loop from live values, and out of it at the
        // call from all available values.
        let maps = certify(
            &module,
            &base,
            &derived,
            &[Level::LiveE, Level::Avail],
            &mut driver::NoObserver,
        );
        let (into, back) =
            (&maps.levels[0].forward.mapping, Arc::new(maps.levels[1].backward.mapping.clone()));
        let call = indirect_call(&derived.function);
        let comparison =
            derived.function.prev_inst(call).and_then(|inst| derived.function.inst(inst).result());
        let guard = Condition::Guard {
            value: comparison.expect("it stands before the call"),
            when: Truth::Zero,
        };
        let point = PointSpec::of_entry(&back, Point::before(call), guard)
            .expect("there is a way back at the call");
        let callee = module.func_named(["up", "down"][seen as usize]).expect("a comparator");
        let direct =
            |code| apply(&code, &CallDirectly(callee), &mut Fuel::UNLIMITED.clone()).into_parts().0;
        let version =
            tier.engine().version_with(&module, func, &derived.function, &[point], direct);
        let version = version.map_err(RunError::Compile)?;
        let source = at.version.points()[at.number].at;
        tier.install(&version, vec![Action::Interpret(back)]).map_err(RunError::Link)?;
        tier.engine()
            .continuation(&base, into, source, &version, |code| code)
            .map_err(RunError::Continue)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let module = Arc::new(load(Format::Oir, PROGRAM).map_err(|error| error.in_file("isord.oir"))?);
    let func = module.func_named("isord").ok_or("the program has isord")?;
    let base = module.body(func).ok_or("isord has a body")?;
    let engine = Engine::new(Config::default())?;
    let mut vm = Vm::new(&engine, &module, Limits::default(), Options::default())?;
    let memory = module.memories.keys().next().ok_or("the program has a memory")?;
    for i in 0..LENGTH {
        vm.machine_mut().memories_mut().write(memory, 4 * i, &(i as u32).to_le_bytes())?;
    }
    let head = Point::before(base.first_inst(base.blocks().nth(1).ok_or("isord has a loop")?));
    let open = PointSpec::of_live(base, head, Condition::Countdown(1000));
    vm.install(&engine.version(&module, func, base, &[open])?, vec![Action::Ask])?;
    vm.set_tiering(Box::new(Specialize));
    for (comparator, expected) in [(0, 1), (0, 1), (1, 0)] {
        let outcome = vm.invoke(func, &[LENGTH, comparator], &mut NoHost)?;
        writeln!(io::stdout(), "isord by comparator {comparator}: {outcome}")?;
        assert_eq!(
            outcome.returned(),
            Some([expected].as_slice()),
            "numbers that grow are sorted upwards alone"
        );
    }
    let made = vm.transitions().into_iter();
    let made = made.map(|made| format!("{} {:?} from before {}", made.count, made.kind, made.at));
    Ok(writeln!(io::stdout(), "transitions: {}", made.collect::<Vec<_>>().join(", "))?)
}
