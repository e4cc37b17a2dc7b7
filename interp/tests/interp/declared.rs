//! Declared effects of imported functions: the tests of the machine, and its records.

use super::support::machine;
use interp::{
    Effect, Host, HostError, Limits, Machine, Memories, NoObserver, Options, Outcome, Program,
    TraceLevel,
};
use ir::module::ImportName;
use ir::text::parse_module;
use ir::{Func, Memory, Module, TrapKind};

/// Each function calls one import with its argument, by the opcode that assumes the most.
const EACH: &str = "
import func @pure \"env\" \"pure\" (i32) -> i32 effect(pure)
import func @reads \"env\" \"reads\" (i32) -> i32 effect(reads)
import func @outside \"env\" \"outside\" (i32) -> i32 effect(outside)
import func @any \"env\" \"any\" (i32) -> i32
memory @m 1
func @call_pure(%x: i32) -> i32 {
entry:
  %r = call_pure.i32 @pure(%x)
  return %r
}
func @call_reads(%x: i32) -> i32 {
entry:
  %r = call_reads.i32 @reads(%x)
  return %r
}
func @call_outside(%x: i32) -> i32 {
entry:
  %r = call_outside @outside(%x)
  return %r
}
func @call_any(%x: i32) -> i32 {
entry:
  %r = call @any(%x)
  return %r
}
func @plain(%x: i32) -> i32 {
entry:
  %r = call @pure(%x)
  return %r
}
";

fn each() -> Module {
    parse_module(EACH).expect("well-formed")
}

fn named(module: &Module, name: &str) -> Func {
    module.func_named(name).expect("the text has it")
}

/// The act of a function, beside returning the number of calls so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Act {
    Nothing,
    Count,
    Write,
    Trap,
    Exit,
}

struct Acting {
    act: Act,
    calls: u32,
}

impl Host for Acting {
    fn call(
        &mut self,
        _import: &ImportName,
        _func: Func,
        args: &[u64],
        memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        self.calls += 1;
        results[0] = args[0];
        match self.act {
            Act::Nothing => {}
            Act::Count => results[0] = u64::from(self.calls),
            Act::Write => memories.write(Memory::from_u32(0), 4, &[7]).expect("in bounds"),
            Act::Trap => return Err(HostError::Trap(TrapKind::User(2))),
            Act::Exit => return Err(HostError::Exit(1)),
        }
        Ok(())
    }
}

fn run_in(machine: &mut Machine, name: &str, act: Act) -> (Outcome, u32) {
    let func = named(machine.declarations(), name);
    let mut host = Acting { act, calls: 0 };
    (machine.invoke(func, &[5], &mut host, &mut NoObserver), host.calls)
}

/// A breach that a checked machine sees ends the run with the name of the function, its effect and
/// the breach.
#[test]
fn an_effect_declared_too_small_is_named() {
    let module = each();
    let breach = |effect: &str, what: &str| format!("@{effect} is declared `{effect}`, but {what}");
    let differ = "two calls with equal arguments gave different results";
    for (act, without_effect, outside) in [
        (Act::Nothing, None, None),
        (Act::Count, Some(differ), None),
        (Act::Write, Some("it wrote memory"), Some("it wrote memory")),
        (Act::Trap, Some("it traps: user2"), None),
        (Act::Exit, Some("it exits"), None),
    ] {
        for (name, effect, expected) in [
            ("call_pure", "pure", without_effect),
            ("call_reads", "reads", without_effect),
            ("plain", "pure", without_effect),
            ("call_outside", "outside", outside),
            ("call_any", "any", None),
        ] {
            let (outcome, _) = run_in(&mut machine(&module, Limits::default()), name, act);
            let said = match &outcome {
                Outcome::HostFailed { error, .. } => Some(error.to_string()),
                _ => None,
            };
            assert_eq!(said, expected.map(|what| breach(effect, what)), "{name} {act:?}");
        }
    }
}

/// Without tracked memory, each call is one call. A trap is a breach all the same.
#[test]
fn an_unchecked_machine_calls_once() {
    let program = Program::new(&each());
    for (name, calls) in [("call_pure", 1), ("call_reads", 1), ("call_outside", 1)] {
        let options = Options::default();
        let mut machine =
            Machine::with_options(&program, Limits::default(), options).expect("it instantiates");
        assert_eq!(run_in(&mut machine, name, Act::Count), (Outcome::Returned(vec![1]), calls));
        let (outcome, _) = run_in(&mut machine, name, Act::Trap);
        let is_breach = matches!(outcome, Outcome::HostFailed { .. });
        assert_eq!(is_breach, name != "call_outside", "{outcome}");
    }
}

/// Versions may differ in calls of functions without effect, so traces omit these calls.
#[test]
fn traces_lack_calls_without_effect() {
    let program = Program::new(&each());
    let calls_in = |name: &str| {
        let options = Options { trace: TraceLevel::Full, ..Options::default() };
        let mut machine =
            Machine::with_options(&program, Limits::default(), options).expect("it instantiates");
        run_in(&mut machine, name, Act::Nothing);
        let effects = machine.trace().effects().iter();
        effects.filter(|(effect, _)| matches!(effect, Effect::Call { .. })).count()
    };
    let names = ["call_pure", "call_reads", "plain", "call_outside", "call_any"];
    assert_eq!(names.map(calls_in), [0, 0, 0, 1, 1]);
}

/// A message about a function without a version gives the reason.
#[test]
fn messages_tell_imported_functions_from_those_to_come() {
    let text = "import func @host \"env\" \"host\" () -> ()\nlater func @later () -> ()\n";
    let module = parse_module(text).expect("well-formed");
    let said = |act: &dyn Fn(&mut Machine)| {
        let mut machine = machine(&module, Limits::default());
        let act = std::panic::AssertUnwindSafe(|| act(&mut machine));
        let payload = std::panic::catch_unwind(act).expect_err("it panics");
        payload.downcast_ref::<String>().expect("a message").clone()
    };
    let [host, later] = [0, 1].map(Func::from_u32);
    for (func, why) in [(host, "is imported"), (later, "awaits its body")] {
        let start = format!("interp: {func} {why} and cannot be started");
        assert_eq!(said(&|machine| machine.start(func, &[])), start);
        assert_eq!(said(&|machine| drop(machine.begin_nested(func, &[]))), start);
        let external = said(&|machine| machine.set_external(func, true));
        assert_eq!(external, format!("interp: {func} {why}"));
    }
}
