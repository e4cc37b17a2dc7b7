//! Branches to traps, and cold blocks with calls.

use crate::both::{Share, Twins, settings};
use interp::{Host, HostError, Limits, Memories, NoHost, Options, Outcome};
use ir::module::ImportName;
use ir::text::parse_module;
use ir::{Func, Module, TrapKind};
use jit::{Config, Engine, Interruption};
use std::sync::Arc;

/// `@tests` has the same test twice, before and after a store, with traps of other numbers. The
/// second test can fail only if the first one was taken for both. `@slow` goes through a cold block
/// that calls, with eight integers and a float that live across the call. `@deep` calls from cold
/// blocks again and again, and traps at the end. `@far` traps with large numbers, behind a branch
/// and behind a jump.
const TEXT: &str = r#"
import func @host "env" "host" (i64) -> i64
global @g: mut i64 = 5
func @tests(%a: i64, %b: i64) -> i64 {
entry:
  %ten = const.i64 10
  %in = ult.i64 %a, %ten
  br_if %in, first, out
first:
  global_set.i64 @g, %a
  %again = ult.i64 %b, %ten
  br_if %again, second, other
second:
  %odd = wrap.i32 %b
  br_if %odd, traps, fine
fine:
  %sum = add.i64 %a, %b
  return %sum
out:
  trap user7
other:
  trap user300
traps:
  trap unreachable
}
func @mix(%a: i64, %x: f64, %n: i32) -> (i64, f64) {
entry:
  %eight = const.i64 8
  %more = mul.i64 %a, %eight
  %y = fadd.f64 %x, %x
  global_set.i64 @g, %more
  %wide = uextend.i64 %n
  %z = add.i64 %more, %wide
  return %z, %y
}
func @slow(%a: i64, %x: f64, %n: i32) -> (i64, f64) {
entry:
  %g = global_get.i64 @g
  %one = const.i64 1
  %b = add.i64 %a, %one
  %c = add.i64 %b, %a
  %d = add.i64 %c, %b
  %e = mul.i64 %d, %c
  %f = xor.i64 %e, %d
  br_if %n, aside, on(%a, %x)
aside cold:
  %p, %q = call @mix(%b, %x, %n)
  jump on(%p, %q)
on(%h: i64, %y: f64):
  %s1 = add.i64 %b, %c
  %s2 = add.i64 %d, %e
  %s3 = add.i64 %f, %h
  %s4 = add.i64 %s1, %s2
  %s5 = add.i64 %s3, %s4
  %s6 = add.i64 %s5, %g
  %z = fadd.f64 %y, %x
  return %s6, %z
}
func @asks(%n: i64, %a: i32) -> i64 {
entry:
  %two = const.i64 2
  %m = mul.i64 %n, %two
  br_if %a, aside, on(%n)
aside cold:
  %r = call @host(%m)
  jump on(%r)
on(%s: i64):
  %t = add.i64 %s, %m
  return %t
}
func @deep(%n: i32, %a: i64) -> i64 {
entry:
  br_if %n, aside, last
aside cold:
  %one = const.i32 1
  %less = sub.i32 %n, %one
  %r = call @deep(%less, %a)
  %two = const.i64 2
  %s = mul.i64 %r, %two
  return %s
last:
  %low = wrap.i32 %a
  br_if %low, fine, bad
fine:
  return %a
bad:
  trap user9
}
func @far(%a: i32, %b: i32) -> i32 {
entry:
  %one = const.i64 1
  br_if %a, on, out
on:
  br_if %b, aside, fine
aside:
  global_set.i64 @g, %one
  jump end
fine:
  return %a
out:
  trap user70000
end:
  trap user80000
}
"#;

fn module() -> Arc<Module> {
    Arc::new(parse_module(TEXT).unwrap_or_else(|errors| panic!("{}", errors[0])))
}

fn clif(name: &str, config: Config) -> String {
    let module = module();
    let engine = Engine::new(config).expect("native code is supported where it is tested");
    let func = module.lookup(name).expect("it is there");
    engine.clif(&module, module.body(func).expect("a body"))
}

/// Tests whose failure traps end no block. Where blocks pay fuel, the trap is a block that pays.
#[test]
fn a_branch_to_a_trap_ends_no_block() {
    let text = clif("tests", Config::default());
    assert_eq!(text.matches("brif").count(), 0, "{text}");
    assert_eq!(text.matches("trapz").count() + text.matches("trapnz").count(), 3, "{text}");
    assert_eq!(text.matches("block").count(), 1, "{text}");
    let fueled = Config { interruption: Interruption::Fuel, ..Config::default() };
    assert_eq!(clif("tests", fueled).matches("brif").count(), 3);
}

/// The code generator places blocks that are cold for it behind the others.
#[test]
fn a_block_that_is_marked_is_cold_for_the_code_generator() {
    let text = clif("slow", Config::default());
    // The other cold block makes a NaN canonical.
    assert_eq!(text.matches("block1 cold:").count(), 1, "{text}");
    assert!(clif("deep", Config::default()).contains(" cold:"));
}

#[test]
fn a_trap_in_place_of_a_branch_has_its_number() {
    let module = module();
    for setting in settings() {
        let (limits, options) = (Limits::default(), Options::traced());
        let mut twins = Twins::new(&module, limits, options, setting, Share::All)
            .unwrap_or_else(|error| panic!("{error}"));
        let func = module.lookup("tests").expect("it is there");
        let mut kind = |args: [u64; 2]| {
            let end = twins.call(func, &args, [&mut NoHost, &mut NoHost]);
            match end.unwrap_or_else(|what| panic!("{args:?}: {what}")) {
                Outcome::Trapped { kind, .. } => Some(kind),
                _ => None,
            }
        };
        assert_eq!(kind([3, 0]), None);
        assert_eq!(kind([10, 4]), Some(TrapKind::User(7)));
        assert_eq!(kind([3, 10]), Some(TrapKind::User(300)));
        assert_eq!(kind([3, 5]), Some(TrapKind::Unreachable));
    }
}

/// Traps with numbers beyond those that a code of Cranelift holds, as targets of a branch and of a
/// jump.
#[test]
fn traps_with_large_numbers_are_targets() {
    let module = module();
    for setting in settings() {
        let (limits, options) = (Limits::default(), Options::traced());
        let mut twins = Twins::new(&module, limits, options, setting, Share::All)
            .unwrap_or_else(|error| panic!("{error}"));
        let func = module.lookup("far").expect("it is there");
        let cases = [([1, 0], None), ([0, 0], Some(70_000)), ([1, 1], Some(80_000))];
        for (args, number) in cases {
            let end = twins.call(func, &args, [&mut NoHost, &mut NoHost]);
            let kind = match end.unwrap_or_else(|what| panic!("{args:?}: {what}")) {
                Outcome::Trapped { kind, .. } => Some(kind),
                _ => None,
            };
            assert_eq!(kind, number.map(TrapKind::User), "{args:?}");
        }
    }
}

/// A call in a cold block goes through a stub that saves all registers, and other calls do not.
#[test]
fn calls_in_cold_blocks_have_a_convention_of_their_own() {
    for (name, count) in [("slow", 1), ("asks", 1), ("deep", 1), ("tests", 0)] {
        let text = clif(name, Config::default());
        assert_eq!(text.matches("preserve_all").count(), count, "{name}: {text}");
    }
    let module = parse_module(&TEXT.replace(" cold:", ":"));
    let module = module.unwrap_or_else(|errors| panic!("{}", errors[0]));
    let engine = Engine::new(Config::default()).expect("native code is supported here");
    for (_, body) in module.defined() {
        assert!(!engine.clif(&module, body).contains("preserve_all"));
    }
}

/// `@many` has so many parameters that a stub would probe the stack in a loop. `@main` calls it
/// from a cold block, with more values live across the call than registers.
#[test]
fn a_call_with_very_many_arguments_keeps_all_values() {
    let params: Vec<String> = (0..2600).map(|at| format!("%p{at}: i64")).collect();
    let args: Vec<String> = (0..2600).map(|at| format!("%v{}", at % 20)).collect();
    let (mut values, mut sums) = (String::new(), String::new());
    for at in 1..20 {
        let before = at - 1;
        values += &format!("  %m{at} = mul.i64 %v{before}, %a\n  %v{at} = add.i64 %m{at}, %v0\n");
        sums += &format!("  %s{at} = xor.i64 %s{before}, %v{at}\n");
    }
    let text = format!(
        "func @many({}) -> i64 {{\nentry:\n  %s = sub.i64 %p7, %p2599\n  return %s\n}}\n\
         func @main(%a: i64, %n: i32) -> i64 {{\nentry:\n  %v0 = add.i64 %a, %a\n{values}  \
         br_if %n, aside, on(%a)\naside cold:\n  %r = call @many({})\n  jump on(%r)\n\
         on(%s0: i64):\n{sums}  return %s19\n}}\n",
        params.join(", "),
        args.join(", ")
    );
    let module = Arc::new(parse_module(&text).unwrap_or_else(|errors| panic!("{}", errors[0])));
    let func = module.lookup("main").expect("it is there");
    for setting in settings() {
        let (limits, options) = (Limits::default(), Options::traced());
        let mut twins = Twins::new(&module, limits, options, setting, Share::All)
            .unwrap_or_else(|error| panic!("{error}"));
        for args in [[3, 0], [3, 1], [u64::MAX / 5, 1]] {
            twins
                .call(func, &args, [&mut NoHost, &mut NoHost])
                .unwrap_or_else(|what| panic!("{args:?}: {what}"));
        }
    }
}

/// A host that answers small numbers, and traps otherwise.
struct Picky;

impl Host for Picky {
    fn call(
        &mut self,
        _import: &ImportName,
        _func: Func,
        args: &[u64],
        _memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        results[0] = args[0] + 1;
        if args[0] < 100 { Ok(()) } else { Err(HostError::Trap(TrapKind::User(3))) }
    }
}

/// A function of the host called from a cold block, and the place of its trap, which is the call.
#[test]
fn hosts_are_called_from_cold_blocks() {
    let module = module();
    for setting in settings() {
        let (limits, options) = (Limits::default(), Options::traced());
        let mut twins = Twins::new(&module, limits, options, setting, Share::All)
            .unwrap_or_else(|error| panic!("{error}"));
        let func = module.lookup("asks").expect("it is there");
        for args in [[4, 1], [4, 0], [70, 1], [5, 1]] {
            twins
                .call(func, &args, [&mut Picky, &mut Picky])
                .unwrap_or_else(|what| panic!("{args:?}: {what}"));
        }
    }
}

/// Values of hot code keep their contents across a call in a cold block, whether the callee has
/// code or not; a trap below such calls leaves all of them.
#[test]
fn calls_in_cold_blocks_keep_all_values() {
    let module = module();
    for (setting, share) in
        settings().iter().flat_map(|setting| Share::EVERY.map(|share| (setting, share)))
    {
        let (limits, options) = (Limits::default(), Options::traced());
        let mut twins = Twins::new(&module, limits, options, setting, share)
            .unwrap_or_else(|error| panic!("{error}"));
        let mut call = |name: &str, args: &[u64]| {
            let func = module.lookup(name).expect("it is there");
            twins
                .call(func, args, [&mut NoHost, &mut NoHost])
                .unwrap_or_else(|what| panic!("{name} {args:?}: {what}"));
        };
        for n in [0, 1, 7, 0] {
            call("slow", &[n + 3, 2.5_f64.to_bits(), n]);
            call("deep", &[n, 1]);
            call("deep", &[n * 3, 0]);
        }
    }
}
