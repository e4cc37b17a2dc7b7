//! Hundreds of inlined calls in a row: no instruction of the callees ends a path for long.

use super::{ALL, parsed};
use ir::edit::{Fuel, apply};
use ir::{Func, Module};
use osier::driver::NoObserver;
use osier::inlining::{CalleeLandings, InlinePlan, Inlined, NotInlined, inline};
use osier::transition::mapping::Entry;
use passes::{Callers, Inline, InlinePolicy, Pipeline};

const PURE: &str = "func @leaf(%a: i32, %b: i32) -> i32 {
entry:
  %x = add.i32 %a, %b
  %y = xor.i32 %x, %a
  return %y
}
";
const BLOCKS: &str = "func @leaf(%a: i32, %b: i32) -> i32 {
entry:
  %x = add.i32 %a, %b
  jump next
next:
  %y = xor.i32 %x, %a
  return %y
}
";
const BRANCH: &str = "func @leaf(%a: i32, %b: i32) -> i32 {
entry:
  br_if %a, some, none
some:
  %x = add.i32 %a, %b
  jump end(%x)
none:
  %y = sub.i32 %a, %b
  jump end(%y)
end(%r: i32):
  return %r
}
";
const TRAPS: &str = "func @leaf(%a: i32, %b: i32) -> i32 {
entry:
  %x = udiv.i32 %a, %b
  %y = xor.i32 %x, %a
  return %y
}
";
const NESTED: &str = "func @inner(%a: i32, %b: i32) -> i32 {
entry:
  %x = add.i32 %a, %b
  %y = xor.i32 %x, %a
  return %y
}
func @leaf(%a: i32, %b: i32) -> i32 {
entry:
  %x = call @inner(%a, %b)
  %y = sub.i32 %x, %b
  return %y
}
";

/// Both functions vanish: one returns its argument, the other always computes the same result.
const SAME: &str = "func @leaf(%a: i32, %b: i32) -> i32 {
entry:
  return %a
}
";
const AGAIN: &str = "func @leaf(%a: i32, %b: i32) -> i32 {
entry:
  %x = add.i32 %b, %b
  %y = xor.i32 %x, %a
  return %y
}
";

/// `@main` calls the leaf `calls` times, each time with the result of the call before.
fn chain(leaf: &str, calls: usize) -> (Module, Func) {
    let mut text = format!("{leaf}func @main(%a: i32, %b: i32) -> i32 {{\nentry:\n");
    let mut last = "%a".to_owned();
    for call in 0..calls {
        text += &format!("  %c{call} = call @leaf({last}, %b)\n");
        last = format!("%c{call}");
    }
    let module = parsed(&format!("{text}  return {last}\n}}\n"));
    let main = module.func_named("main").expect("the text has it");
    (module, main)
}

fn made(leaf: &str, calls: usize, plan: &InlinePlan) -> Inlined {
    let (module, main) = chain(leaf, calls);
    let landings = CalleeLandings::new(&module, plan);
    inline(&module, main, plan, &landings, &mut NoObserver).expect("calls are inlined")
}

/// Asserts that every reachable point has an entry, both ways.
fn has_all_entries(leaf: &str, calls: usize, plan: &InlinePlan) -> Inlined {
    let made = made(leaf, calls, plan);
    let [up, down] = &made.missing;
    assert!(up.is_empty(), "{calls} calls of {leaf}: up: {} lost, {:?}", up.len(), up[0]);
    assert!(down.is_empty(), "{calls} calls of {leaf}: down: {} lost, {:?}", down.len(), down[0]);
    made
}

/// Paths once passed the limits of 64 jumps and 256 blocks here. The first call was then unproved,
/// and everything behind it.
#[test]
fn calls_of_a_pure_leaf_in_a_row_lose_no_entry() {
    for calls in [200, 500, 2000] {
        for leaf in [PURE, BLOCKS, SAME, AGAIN] {
            has_all_entries(leaf, calls, &InlinePlan::o3());
        }
    }
}

/// The rows are defined by `passes::inline`: a call stays where 48 jumps would come in a row.
#[test]
fn a_call_stays_in_each_row_of_inlined_ones() {
    let passes = || Pipeline::of(Vec::new());
    let plan = InlinePlan::new(passes(), InlinePolicy { growth: 100_000, ..ALL }, passes());
    for (leaf, calls, inlined) in [(PURE, 24, 24), (PURE, 50, 48), (BLOCKS, 50, 48)] {
        let made = made(leaf, calls, &plan);
        assert_eq!(made.copies.claim().instances.len() - 1, inlined, "{calls} calls of {leaf}");
    }
    // A call that may trap ends a path itself.
    let made = made(TRAPS, 200, &plan);
    assert_eq!(made.copies.claim().instances.len() - 1, 200);
}

#[test]
fn calls_of_other_leaves_in_a_row_lose_no_entry() {
    for leaf in [BRANCH, TRAPS, NESTED] {
        has_all_entries(leaf, 2000, &InlinePlan::o3());
    }
}

/// The policy of this plan inlines all but the calls that end rows.
#[test]
fn the_size_of_entries_grows_with_the_calls_alone() {
    let passes: Pipeline = passes::parse("O2").expect("named pipelines are known");
    let policy = InlinePolicy { growth: 100_000, ..ALL };
    let plan = InlinePlan::new(passes.clone(), policy, passes);
    for leaf in [PURE, NESTED] {
        let words = |calls| {
            let made = has_all_entries(leaf, calls, &plan);
            let inlined = made.copies.claim().instances.len() - 1;
            assert!(inlined * 10 >= calls * 9, "{inlined} of {calls}");
            let up = made.up.entries().map(|(_, entry)| 1 + Entry::size(entry));
            let down = made.down.entries();
            let down = down.map(|(_, e)| e.activations() + e.steps.len() + e.size());
            up.chain(down).sum::<usize>()
        };
        let counts = [100, 200, 400].map(words);
        let [first, second, third] = counts;
        assert!(second * 10 <= first * 21 && third * 10 <= second * 21, "{counts:?} of {leaf}");
    }
}

/// `@mid` calls the host, and then a leaf of two calls in a row. The policy has room to inline
/// everything, since `@main` is long.
#[test]
fn a_row_in_a_callee_behind_an_effect_loses_no_entry() {
    let mut text = "import func @h \"host\" \"h\" (i32)
func @id(%a: i32) -> i32 {
entry:
  return %a
}
func @leaf(%a: i32) -> i32 {
entry:
  %x = call @id(%a)
  %y = call @id(%x)
  return %y
}
func @mid(%a: i32) -> i32 {
entry:
  call @h(%a)
"
    .to_owned();
    let mut last = "%a".to_owned();
    for call in 0..58 {
        text += &format!("  %c{call} = call @leaf({last})\n");
        last = format!("%c{call}");
    }
    text += &format!("  return {last}\n}}\nfunc @main(%a: i32) -> i32 {{\nentry:\n");
    (0..2500).for_each(|_| text += "  call @h(%a)\n");
    text += "  %m = call @mid(%a)\n";
    (0..2500).for_each(|_| text += "  call @h(%m)\n");
    let module = parsed(&(text + "  return %m\n}\n"));
    let main = module.func_named("main").expect("the text has it");
    let plan = InlinePlan::o3();
    let landings = CalleeLandings::new(&module, &plan);
    // The row in `@mid` is too long, so its call, the only call, stays.
    let made = inline(&module, main, &plan, &landings, &mut NoObserver);
    assert!(matches!(made, Err(NotInlined::NoCall)), "@mid is inlined with its row");
    // In `@mid` itself, calls of the row are inlined.
    let mid = module.func_named("mid").expect("the text has it");
    let made = inline(&module, mid, &plan, &landings, &mut NoObserver).expect("calls are inlined");
    assert!(made.missing.iter().all(|points| points.is_empty()), "{:?}", made.missing);
}

/// A tree of calls doubles its jumps at each depth, and recursion has no end.
#[test]
fn a_policy_without_a_depth_ends() {
    let mut text = "func @again(%a: i32) -> i32 {
entry:
  %x = call @again(%a)
  return %x
}
"
    .to_owned();
    for at in 0..70 {
        let next = at + 1;
        text += &format!("func @f{at}(%a: i32) -> i32 {{\nentry:\n  %x = call @f{next}(%a)\n");
        text += &format!("  %y = call @f{next}(%x)\n  return %y\n}}\n");
    }
    let module = parsed(&(text + "func @f70(%a: i32) -> i32 {\nentry:\n  return %a\n}\n"));
    let callers = Callers::new(&module);
    for (name, depth) in [("f0", 100), ("again", usize::MAX)] {
        let func = module.func_named(name).expect("the text has it");
        let policy = InlinePolicy { depth, growth: 30, allowance: 20, ..ALL };
        let pass = Inline { callers: &callers, func, policy, counts: None };
        let body = module.body(func).expect("it is defined");
        assert!(apply(body, &pass, &mut Fuel::UNLIMITED.clone()).log().is_empty(), "{name}");
    }
}
