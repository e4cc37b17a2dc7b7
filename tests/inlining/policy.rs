//! Which calls a policy inlines: callees with one caller, and the counts of a profile.

use super::{ALL, parsed};
use interp::{Limits, Machine, NoHost, NoObserver};
use ir::Module;
use ir::edit::{Fuel, apply};
use osier::driver::NoObserver as NoDriverObserver;
use osier::inlining::{CalleeLandings, InlinePlan, NotInlined, inline};
use osier::osr::copy_claim;
use osier::profile::Profile;
use passes::{Callers, Inline, InlinePolicy};
use transition::copy::CopyInstance;

/// The functions whose code a policy puts into a function, by name, each with its caller.
fn inlined_into(module: &Module, plan: &InlinePlan, name: &str) -> Vec<(String, String)> {
    let func = module.func_named(name).expect("the text has it");
    let base = module.body(func).expect("it has a body");
    let callers = Callers::new(module);
    let counts = plan.counts.as_deref();
    let pass = Inline { callers: &callers, func, policy: plan.policy, counts };
    let (_, log) = apply(base, &pass, &mut Fuel::UNLIMITED.clone()).into_parts();
    let claim = copy_claim(func, base, &log).expect("the log inlines alone");
    let name = |one: &CopyInstance| module.funcs[one.func].name.clone();
    let inlined = claim.instances.iter().filter_map(|one| {
        let caller = &claim.instances[one.caller?.0];
        Some((name(one), name(caller)))
    });
    inlined.collect()
}

fn names(inlined: &[(String, String)]) -> Vec<(&str, &str)> {
    inlined.iter().map(|(one, caller)| (one.as_str(), caller.as_str())).collect()
}

pub(super) fn plan(policy: InlinePolicy) -> InlinePlan {
    InlinePlan { policy, ..InlinePlan::o3() }
}

/// `@main` calls `@large` once, which calls `@inner` once; `@twice` is called twice.
const SINGLE: &str = "table @t 1
export \"main\" @main
func @main(%n: i32) -> i32 {
entry:
  %x = call @large(%n)
  %y = call @twice(%x)
  %z = call @twice(%y)
  return %z
}
func @large(%n: i32) -> i32 {
entry:
  %a = mul.i32 %n, %n
  %b = add.i32 %a, %n
  %c = xor.i32 %b, %n
  %d = call @inner(%c)
  return %d
}
func @inner(%n: i32) -> i32 {
entry:
  %a = mul.i32 %n, %n
  %b = add.i32 %a, %n
  %c = xor.i32 %b, %n
  return %c
}
func @twice(%n: i32) -> i32 {
entry:
  %a = call @leaf(%n)
  return %a
}
func @leaf(%n: i32) -> i32 {
entry:
  %a = mul.i32 %n, %n
  %b = add.i32 %a, %n
  %c = xor.i32 %b, %n
  return %c
}
";

#[test]
fn callees_with_one_caller_may_be_larger() {
    // Without room: their code moves, and does not count.
    let policy = InlinePolicy { size: 3, single_size: 5, growth: 0, allowance: 0, ..ALL };
    let found = |text: &str, policy: InlinePolicy, name: &str| {
        inlined_into(&parsed(text), &plan(policy), name)
    };
    let both = [("large", "main"), ("inner", "large")];
    assert_eq!(names(&found(SINGLE, policy, "main")), both);
    assert_eq!(names(&found(SINGLE, InlinePolicy { single_size: 4, ..policy }, "main")), []);
    // Each of these makes another way to call `@large`.
    let others = [
        "export \"large\" @large",
        "elem @t 0 [@large]",
        "global @g: funcref = @large",
        "func @other(%n: i32) -> i32 {\nentry:\n  %x = call @large(%n)\n  return %x\n}",
        "func @taken() -> funcref {\nentry:\n  %f = const.funcref @large\n  return %f\n}",
    ];
    for other in others {
        assert_eq!(names(&found(&format!("{SINGLE}{other}"), policy, "main")), [], "{other}");
    }
    let begun = "global @g: mut i32 = 0
func @main() {
entry:
  call @begin()
  return
}
func @begin() {
entry:
  %a = const.i32 1
  global_set.i32 @g, %a
  %b = const.i32 2
  global_set.i32 @g, %b
  return
}
";
    assert_eq!(names(&found(begun, policy, "main")), [("begin", "main")]);
    assert_eq!(names(&found(&format!("{begun}start @begin"), policy, "main")), []);
    // `@large` is a callee with one caller itself: `@inner` moves into the caller of both.
    assert_eq!(names(&found(SINGLE, policy, "large")), []);
    // `@leaf` has one caller. In its own code, the call stands alone. The copies of that code have
    // the call twice.
    assert_eq!(names(&found(SINGLE, policy, "twice")), [("leaf", "twice")]);
    let roomy = InlinePolicy { allowance: 100, single_size: 4, ..policy };
    let twice = [("twice", "main"), ("twice", "main")];
    assert_eq!(names(&found(SINGLE, roomy, "main")), twice);
}

/// `@main` calls `@often` in each round, `@rarely` in one round, and never `@never`.
const COUNTED: &str = "export \"main\" @main
func @main(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %zero)
head(%i: i32, %sum: i32):
  %seven = const.i32 7
  %is = eq.i32 %i, %seven
  br_if %is, rare, usual
rare:
  %x = call @rarely(%i)
  %huge = ugt.i32 %x, %n
  br_if %huge, next(%x), cold
cold:
  %y = call @never(%x)
  jump next(%y)
usual:
  %z = call @often(%i)
  jump next(%z)
next(%w: i32):
  %t = add.i32 %sum, %w
  %j = add.i32 %i, %one
  %more = ult.i32 %j, %n
  br_if %more, head(%j, %t), done
done:
  return %t
}
func @rarely(%i: i32) -> i32 {
entry:
  %k = const.i32 2000000
  return %k
}
func @never(%i: i32) -> i32 {
entry:
  return %i
}
func @often(%i: i32) -> i32 {
entry:
  %a = mul.i32 %i, %i
  %b = add.i32 %a, %i
  %c = xor.i32 %b, %i
  %d = call @deep(%c)
  %one = const.i32 1
  %odd = and.i32 %i, %one
  br_if %odd, second, end
second:
  %e = call @deep(%d)
  return %e
end:
  return %d
}
func @deep(%i: i32) -> i32 {
entry:
  %a = mul.i32 %i, %i
  return %a
}
";

fn profiled(module: &Module, rounds: u64) -> Profile {
    let mut machine = Machine::new(module, Limits::default()).expect("instantiated");
    machine.count();
    let main = module.func_named("main").expect("the function");
    machine.invoke(main, &[rounds], &mut NoHost, &mut NoObserver);
    Profile::collect(module, &machine)
}

#[test]
fn hot_calls_come_first_and_may_be_larger_and_cold_ones_stay() {
    let module = parsed(COUNTED);
    let policy = InlinePolicy { size: 5, single_size: 0, hot_size: 20, hot: 500, growth: 0, ..ALL };
    let found = |plan: &InlinePlan| inlined_into(&module, plan, "main");
    let [rarely, never, often] = ["rarely", "never", "often"].map(|name| (name, "main"));
    let all = plan(policy);
    // `@often` is too large, and a profile is no part of the usual plan.
    assert_eq!(names(&found(&all)), [rarely, never]);
    let profile = profiled(&module, 1000);
    let counted = all.clone().profiled(&module, &profile);
    // The call in each round comes before the one in each second.
    let deep = ("deep", "often");
    assert_eq!(names(&found(&counted)), [often, deep, deep, rarely]);
    // With room for one copy of `@deep`. The other callees have one caller.
    let tight = InlinePolicy { allowance: 2, ..policy };
    let tight = InlinePlan { policy: tight, ..counted.clone() };
    assert_eq!(names(&found(&tight)), [often, deep, rarely]);
    // Too few rounds to be hot.
    let few = plan(policy).profiled(&module, &profiled(&module, 100));
    assert_eq!(names(&found(&few)), [rarely]);
    // Never called: nothing to inline.
    let none = plan(policy).profiled(&module, &Profile::default());
    assert_eq!(names(&found(&none)), []);
    let landings = CalleeLandings::new(&module, &none);
    let main = module.func_named("main").expect("the function");
    let made = inline(&module, main, &none, &landings, &mut NoDriverObserver);
    assert_eq!(made.map(|_| ()), Err(NotInlined::NoCall));
}

/// Landings exist for all functions whose frames a plan needs, and for no others.
#[test]
fn landings_are_those_of_the_policy() {
    let (module, counted) = (parsed(SINGLE), parsed(COUNTED));
    let landed = |module: &Module, plan: &InlinePlan| {
        let landings = CalleeLandings::new(module, plan);
        let has = module.defined().filter(|(func, _)| landings.has(*func));
        has.map(|(_, base)| base.name().to_owned()).collect::<Vec<_>>()
    };
    let policy = InlinePolicy { size: 2, single_size: 0, hot_size: 20, hot: 500, ..ALL };
    assert_eq!(landed(&module, &plan(policy)), ["twice"]);
    let single = InlinePolicy { single_size: 5, ..policy };
    assert_eq!(landed(&module, &plan(single)), ["large", "inner", "twice", "leaf"]);
    let hot = plan(policy).profiled(&counted, &profiled(&counted, 1000));
    assert_eq!(landed(&counted, &plan(policy)), ["rarely", "never", "deep"]);
    assert_eq!(landed(&counted, &hot), ["rarely", "never", "often", "deep"]);
}
