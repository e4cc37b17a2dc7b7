//! Runs that do not return. Each end is a value, and the machine remains usable.

use super::support::{Calls, Pair, SUM, engine, head, invoke, module, states, sum, vm};
use osier::check::Checked;
use osier::interp::{
    HostError, Limits, Machine, NoHost, NoObserver as Unobserved, Options, Outcome,
};
use osier::ir::{FunctionBuilder, Opcode, Target, TrapKind, Type};
use osier::jit::{
    Action, CallbackEnd, Condition, Config, DeoptFrame, Embedder, Interruption, PointSpec,
    RunError, Slot, Tier, Tiering, Vm,
};
use osier::tiers::{Eager, NoObserver};
use osier::transition::VersionKey;
use osier::transition::mapping::{Mapping, Operand, Step};
use std::error::Error;
use std::mem::discriminant;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A handler that calls a closure.
struct With<F>(F);

impl<F: FnMut(&mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd>> Embedder for With<F> {
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        (self.0)(frame)
    }
}

/// An embedder without functions and without an interpreter.
struct Nobody;

impl Embedder for Nobody {}

/// A machine that leaves its loop for the embedder at the third iteration.
fn handing(pair: &Pair) -> Vm {
    let engine = engine(Config::default());
    let mut vm = vm(&engine, &pair.module);
    let fast = pair.at_head(&engine, true, Condition::Countdown(3));
    vm.install(&fast, vec![Action::Hand(Arc::clone(&pair.backward), states(pair))])
        .expect("it fits");
    vm
}

#[test]
fn a_handler_gets_typed_values_in_its_slots_and_gives_the_results() {
    let pair = Pair::new(SUM);
    let base = pair.base.clone();
    let backward = Arc::clone(&pair.backward);
    let opt_head = head(&pair.opt);
    let mut vm = handing(&pair);
    let mut embedder = With(move |frame: &mut DeoptFrame<'_>| {
        let [activation] = frame.activations else { panic!("one activation") };
        assert_eq!(activation.at, backward.entry(opt_head).expect("an entry").target);
        let loop_head = base.inst_block(activation.at.inst());
        let slot = |value: ir::Value| activation.slot(value.as_u32()).expect("live");
        let [i, acc] = [0, 1].map(|index| slot(base.block_params(loop_head)[index]));
        let [n, k] = [0, 1].map(|index| slot(base.arguments()[index]));
        assert_eq!([i, n].map(|slot| slot.ty), [Type::I64; 2]);
        assert_eq!((i.bits, acc.bits), (2, sum(2, k.bits)), "the third visit");
        Ok(vec![Slot { ty: Type::I64, bits: sum(n.bits, k.bits) }])
    });
    let ended = vm.run(pair.func, &[100, 7], &mut embedder);
    assert_eq!(ended, Ok(Outcome::Returned(vec![sum(100, 7)])));
}

#[test]
fn a_wrong_handler_ends_the_run_with_a_named_error() {
    let pair = Pair::new(SUM);
    let func = pair.func;
    type Answer = fn(&mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd>;
    let answers: [(Answer, &str); 4] = [
        (
            |_| Ok(vec![Slot { ty: Type::I32, bits: 1 }]),
            "returned 0x1 of type i32 as result 0 of type i64",
        ),
        (|_| Ok(vec![]), "returned 0 results instead of 1"),
        (|_| panic!("out of ideas"), "panicked: out of ideas"),
        (|_| Err(HostError::Trap(TrapKind::User(7)).into()), ""),
    ];
    for (answer, says) in answers {
        let mut vm = handing(&pair);
        match vm.run(func, &[100, 7], &mut With(answer)) {
            Ok(Outcome::Trapped { kind: TrapKind::User(7), .. }) => assert!(says.is_empty()),
            Err(error) => assert!(!says.is_empty() && error.to_string().contains(says), "{error}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(
            invoke(&mut vm, func, &[1, 7]),
            Ok(Outcome::Returned(vec![sum(1, 7)])),
            "used again"
        );
    }
}

/// An error of the embedder's own comes back as it is.
#[test]
fn an_error_of_a_handler_comes_back() {
    let pair = Pair::new(SUM);
    type Answer = fn(&mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd>;
    let overflow = || u8::try_from(300).expect_err("it has eight bits");
    let answers: [Answer; 2] = [
        |_| Err(HostError::failed(u8::try_from(300).expect_err("it has eight bits")).into()),
        |_| {
            let tried: Result<u8, Box<dyn Error + Send + Sync>> =
                u8::try_from(300).map_err(Box::from);
            Ok(vec![Slot { ty: Type::I64, bits: tried?.into() }])
        },
    ];
    for answer in answers {
        match handing(&pair).run(pair.func, &[100, 7], &mut With(answer)) {
            Ok(Outcome::HostFailed { error, .. }) => {
                assert_eq!(error.error().downcast_ref(), Some(&overflow()));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_handler_calls_functions_of_the_program() {
    let pair = Pair::new(SUM);
    let func = pair.func;
    let mut embedder = With(|frame: &mut DeoptFrame<'_>| {
        let results = frame.back().call(&mut Nobody, func, &[1, 1])?;
        Ok(vec![Slot { ty: Type::I64, bits: results[0] }])
    });
    let ended = handing(&pair).run(func, &[100, 7], &mut embedder);
    assert_eq!(ended, Ok(Outcome::Returned(vec![sum(1, 1)])));
}

#[test]
fn a_trap_in_compensation_code_is_a_trap() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let mut vm = vm(&engine, &pair.module);
    let fast = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    // No proved entry divides; one written by hand may.
    let at = head(&pair.base);
    let mut entry = pair.forward.entry(at).expect("an entry").clone();
    let i = pair.base.block_params(pair.base.inst_block(at.inst()))[0];
    let step = |opcode, bits, args: &[Operand]| Step {
        opcode,
        ty: Type::I64,
        operand_ty: Type::I64,
        bits,
        args: args.into(),
    };
    let zero = entry.steps.len() as u32;
    entry.steps.push(step(Opcode::Const, 0, &[]));
    entry.steps.push(step(Opcode::Udiv, 0, &[Operand::Source(i), Operand::Step(zero)]));
    entry.assigns[0].from = Operand::Step(zero + 1);
    let mut mapping = Mapping::between(VersionKey::of(&pair.base), VersionKey::of(&pair.opt));
    mapping.insert(at, entry);
    let mapping = Checked::unproved(mapping);
    let entry = mapping.checked_entry(at).expect("an entry");
    let into = engine.continuation(&pair.base, entry, &fast).expect("it fits");
    let point = PointSpec::of_entry(&mapping, at, Condition::Countdown(3)).expect("an entry");
    let slow = engine.version(&pair.module, pair.func, &pair.base, &[point]).expect("compiled");
    vm.install(&slow, vec![Action::Continue(into)]).expect("it fits");
    let ended = invoke(&mut vm, pair.func, &[100, 7]).expect("an outcome");
    assert_eq!(ended.trap(), Some(TrapKind::DivisionByZero));
    assert_eq!(
        invoke(&mut vm, pair.func, &[1, 7]),
        Ok(Outcome::Returned(vec![sum(1, 7)])),
        "used again"
    );
}

const RECURSION: &str = "
func @down(%n: i64) -> i64 {
entry:
  %one = const.i64 1
  %m = sub.i64 %n, %one
  br_if %n, deeper, end
deeper:
  %r = call @down(%m)
  %s = add.i64 %r, %one
  return %s
end:
  return %n
}
";

#[test]
fn recursion_to_the_limit_is_an_outcome() {
    let module = module(RECURSION);
    let func = module.func_named("down").expect("there");
    let mut vm = vm(&engine(Config::default()), &module);
    vm.set_tiering(Box::new(Eager::new(NoObserver)));
    vm.demand(func).expect("compiled");
    for _ in 0..3 {
        let ended = invoke(&mut vm, func, &[u64::MAX]);
        assert!(matches!(ended, Ok(Outcome::StackOverflow(_))), "{ended:?}");
        assert_eq!(invoke(&mut vm, func, &[1000]), Ok(Outcome::Returned(vec![1000])));
    }
}

/// An outer loop, and an infinite inner loop without memory accesses.
const ENDLESS: &str = "
func @spin(%n: i64) -> i64 {
entry:
  %one = const.i64 1
  jump outer(%n)
outer(%i: i64):
  jump inner(%i)
inner(%j: i64):
  %k = add.i64 %j, %one
  br_if %one, inner(%k), behind(%k)
behind(%l: i64):
  br_if %l, outer(%l), end
end:
  return %l
}
";

fn interruptible(native: bool) -> (Vm, osier::ir::Func) {
    let module = module(ENDLESS);
    let func = module.func_named("spin").expect("there");
    let mut vm =
        vm(&engine(Config { interruption: Interruption::Signal, ..Config::default() }), &module);
    vm.set_tiering(Box::new(Eager::new(NoObserver)));
    if native {
        vm.demand(func).expect("compiled");
    }
    (vm, func)
}

#[test]
fn an_inner_loop_reads_the_signals_anew() {
    for native in [true, false] {
        let (mut vm, func) = interruptible(native);
        for _ in 0..2 {
            let interrupt = vm.interrupt();
            let asks = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(20));
                interrupt.ask();
            });
            assert_eq!(invoke(&mut vm, func, &[1]), Err(RunError::Interrupted), "native: {native}");
            asks.join().expect("it asked");
        }
    }
}

/// A policy that interrupts its own compilation.
struct InterruptsItself(osier::jit::Interrupt, Eager<NoObserver>);

impl Tiering for InterruptsItself {
    fn called(&mut self, tier: &mut Tier<'_>, func: osier::ir::Func) -> Result<(), RunError> {
        self.0.ask();
        self.1.called(tier, func)
    }
}

#[test]
fn an_interrupt_during_compilation_ends_the_run_behind_it() {
    let text = format!(
        "{ENDLESS}\nfunc @main(%n: i64) -> i64 {{\nentry:\n  %r = call @spin(%n)\n  return %r\n}}\n"
    );
    let module = module(&text);
    let main = module.func_named("main").expect("there");
    let engine = engine(Config { interruption: Interruption::Signal, ..Config::default() });
    let mut vm = vm(&engine, &module);
    let body = module.body(main).expect("a body");
    vm.install(&engine.version(&module, main, body, &[]).expect("compiled"), vec![])
        .expect("it fits");
    vm.set_tiering(Box::new(InterruptsItself(vm.interrupt(), Eager::new(NoObserver))));
    assert_eq!(invoke(&mut vm, main, &[1]), Err(RunError::Interrupted));
}

const HOSTED: &str = r#"
import func @ask "env" "ask" () -> i64
func @main() -> i64 {
entry:
  %x = call @ask()
  %one = const.i64 1
  %y = add.i64 %x, %one
  return %y
}
"#;

#[test]
fn memories_that_were_exchanged_are_refused() {
    let pair = Pair::new(SUM);
    let engine = engine(Config::default());
    let (mut vm, mut other) = (vm(&engine, &pair.module), vm(&engine, &pair.module));
    let fast = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    vm.install(&fast, vec![]).expect("it fits");
    let exchange = |vm: &mut Vm, other: &mut Vm| {
        std::mem::swap(vm.machine_mut().memories_mut(), other.machine_mut().memories_mut());
    };
    exchange(&mut vm, &mut other);
    assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), Err(RunError::Exchanged));
    exchange(&mut vm, &mut other);
    assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), Ok(Outcome::Returned(vec![sum(10, 7)])));
    std::mem::swap(vm.machine_mut(), other.machine_mut());
    assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), Err(RunError::Exchanged));
}

#[test]
fn a_panic_of_the_host_passes_through_native_code() {
    let module = module(HOSTED);
    let main = module.func_named("main").expect("there");
    let mut vm = vm(&engine(Config::default()), &module);
    vm.set_tiering(Box::new(Eager::new(NoObserver)));
    vm.demand(main).expect("compiled");
    for _ in 0..3 {
        let mut panics = Calls(|| panic!("the host is gone"));
        let passed = catch_unwind(AssertUnwindSafe(|| vm.invoke(main, &[], &mut panics)));
        assert_eq!(
            passed.expect_err("it panicked").downcast_ref::<&str>(),
            Some(&"the host is gone")
        );
        assert_eq!(vm.invoke(main, &[], &mut Calls(|| Ok(41))), Ok(Outcome::Returned(vec![42])));
        let fails = vm.invoke(main, &[], &mut Calls(|| Err(HostError::Exit(3))));
        assert_eq!(fails, Ok(Outcome::Exited(3)));
    }
    assert!(matches!(vm.invoke(main, &[], &mut NoHost), Ok(Outcome::HostFailed { .. })));
}

#[test]
fn a_trap_before_the_first_instruction_has_its_place() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let mut builder = FunctionBuilder::new("late", pair.base.signature().clone());
    let [entry, bad] = [builder.create_block(), builder.create_block()];
    let x = builder.append_param(entry, Type::I64);
    builder.append_param(entry, Type::I64);
    let good = builder.create_block();
    // The first instruction of the function, and thus before the entry's.
    builder.switch_to(bad);
    builder.trap(TrapKind::User(7));
    builder.switch_to(entry);
    builder.br_if(x, Target::new(bad, &[]), Target::new(good, &[]));
    builder.switch_to(good);
    builder.ret(&[x]);
    let late = builder.finish().expect("well-formed").function;
    let mut vm = vm(&engine, &pair.module);
    vm.install(&engine.version(&pair.module, pair.func, &late, &[]).expect("compiled"), vec![])
        .expect("it fits");
    let ended = invoke(&mut vm, pair.func, &[1, 0]).expect("an outcome");
    assert_eq!(ended.trap(), Some(TrapKind::User(7)));
    assert_eq!(ended.site().and_then(|site| site.inst), Some(late.first_inst(bad)));
}

/// Calls a function without code, which loops, and then traps or returns.
const LOOPS: &str = "
func @caller(%n: i64, %way: i64) -> i64 {
entry:
  %r = call @callee(%n, %way)
  return %r
}
func @callee(%n: i64, %way: i64) -> i64 {
entry:
  %zero = const.i64 0
  %one = const.i64 1
  jump head(%zero)
head(%i: i64):
  %j = add.i64 %i, %one
  %more = ult.i64 %j, %n
  br_if %more, head(%j), done
done:
  br_if %way, traps, returns
traps:
  %q = udiv.i64 %j, %zero
  return %q
returns:
  return %j
}
";

/// The instructions that an interpreted function executes are paid for, even when it ends the run
/// below native code that has the fuel in its context.
#[test]
fn fuel_used_below_a_helper_stays_used() {
    let module = module(LOOPS);
    let caller = module.lookup("caller").expect("it is there");
    let engine = engine(Config { interruption: Interruption::Fuel, ..Config::default() });
    let limits = Limits { fuel: 10_000, ..Limits::default() };
    let mut vm = Vm::new(&engine, &module, limits, Options::traced()).expect("instantiated");
    let body = module.body(caller).expect("a body");
    let version = engine.version(&module, caller, body, &[]).expect("compiled");
    vm.install(&version, vec![]).expect("it fits");
    let mut interpreter = Machine::new(&module, limits).expect("instantiated");
    for (n, way) in [(u64::MAX, 0), (1000, 1)] {
        interpreter.set_fuel(limits.fuel);
        vm.machine_mut().set_fuel(limits.fuel);
        let expected = interpreter.invoke(caller, &[n, way], &mut NoHost, &mut Unobserved);
        let ended = invoke(&mut vm, caller, &[n, way]).expect("an outcome");
        assert_eq!(discriminant(&ended), discriminant(&expected), "{ended}, not {expected}");
        let (left, fuel) = (vm.machine().fuel(), interpreter.fuel());
        // The caller has paid for its whole block, which ends with a return.
        assert!(left == fuel || left + 1 == fuel, "{left}, not {fuel}, after {ended}");
    }
}

/// A native caller and an interpreted callee write the first and the last of ten globals. Native
/// code holds the first globals apart from the machine, and the callee returns or ends the run.
#[test]
fn globals_set_below_a_helper_stay_set() {
    let globals: String = (0..10).map(|n| format!("global @g{n}: mut i64 = {n}\n")).collect();
    let module = module(&format!(
        "{globals}func @caller(%n: i64, %ends: i32) -> i64 {{\nentry:\n  \
         global_set.i64 @g0, %n\n  global_set.i64 @g9, %n\n  call @callee(%ends)\n  %a = global_get.i64 @g0\n  \
         %b = global_get.i64 @g9\n  %s = add.i64 %a, %b\n  global_set.i64 @g1, %s\n  return %s\n}}\n\
         func @callee(%ends: i32) -> () {{\nentry:\n  %x = global_get.i64 @g0\n  \
         %y = mul.i64 %x, %x\n  global_set.i64 @g0, %y\n  global_set.i64 @g9, %y\n  \
         br_if %ends, bad, good\nbad:\n  trap unreachable\ngood:\n  return\n}}\n"
    ));
    let caller = module.lookup("caller").expect("it is there");
    let (engine, limits) = (engine(Config::default()), Limits::default());
    let mut vm = Vm::new(&engine, &module, limits, Options::traced()).expect("instantiated");
    let body = module.body(caller).expect("a body");
    let version = engine.version(&module, caller, body, &[]).expect("compiled");
    vm.install(&version, vec![]).expect("it fits");
    let mut interpreter = Machine::new(&module, limits).expect("instantiated");
    for args in [[3, 0], [5, 1], [7, 0]] {
        let expected = interpreter.invoke(caller, &args, &mut NoHost, &mut Unobserved);
        let ended = invoke(&mut vm, caller, &args).expect("an outcome");
        assert_eq!(discriminant(&ended), discriminant(&expected), "{ended}, not {expected}");
        assert_eq!(vm.machine().globals(), interpreter.globals(), "after {args:?}");
    }
}
