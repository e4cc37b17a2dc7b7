//! Edges that the lowering leads past their target, since their constants decide the branch there.

use crate::both::{Share, Twins, settings};
use interp::{Limits, NoHost, Options};
use ir::text::parse_module;
use ir::{Func, Module};
use jit::{Config, Engine, Interruption};
use std::sync::Arc;

/// `a && b || c`, as a compiler without optimization makes it: each join receives a constant over
/// one edge, and passes a value on. `@count` has such a join in a loop, and the header itself is
/// one that a constant decides at first. `@either` asserts `a || b`: an edge leads past its join,
/// to a block that has no other edge in the IR, and to which a conditional trap leads.
const TEXT: &str = "
func @both(%a: i32, %b: i32, %c: i32) -> i32 {
entry:
  %no = const.i32 0
  %one = const.i32 1
  br_if %a, second, first(%no, %b)
second:
  %truth = ne.i32 %b, %no
  jump first(%truth, %c)
first(%and: i32, %kept: i32):
  %low = and.i32 %and, %one
  br_if %low, done(%one), third(%kept)
third(%given: i32):
  jump done(%given)
done(%result: i32):
  return %result
}
func @count(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %one)
head(%i: i32, %more: i32):
  br_if %more, body, done
body:
  %j = add.i32 %i, %one
  %odd = and.i32 %j, %one
  br_if %odd, join(%zero), join(%j)
join(%skip: i32):
  br_if %skip, three, last
three:
  %k = add.i32 %j, %one
  jump last2(%k)
last:
  jump last2(%j)
last2(%next: i32):
  %less = ult.i32 %next, %n
  jump head(%next, %less)
done:
  return %i
}
func @either(%a: i32, %b: i32) -> i32 {
entry:
  %one = const.i32 1
  br_if %a, x, q(%b)
x:
  jump q(%one)
q(%c: i32):
  br_if %c, t, out
t:
  return %a
out:
  trap user1
}
func @neither(%a: i32, %b: i32) -> i32 {
entry:
  %zero = const.i32 0
  br_if %a, q(%b), x
x:
  jump q(%zero)
q(%c: i32):
  br_if %c, out, t
t:
  return %a
out:
  trap user70000
}
";

fn module() -> Arc<Module> {
    Arc::new(parse_module(TEXT).unwrap_or_else(|errors| panic!("{}", errors[0])))
}

fn func(module: &Module, name: &str) -> Func {
    module.lookup(name).expect("it is there")
}

/// The number of edges that pass a constant, in the code before Cranelift's passes.
fn constant_edges(module: &Module, config: Config) -> usize {
    let engine = Engine::new(config).expect("native code is supported where it is tested");
    let body = module.body(func(module, "both")).expect("a body");
    let clif = engine.clif(module, body);
    let constant = |line: &str| {
        let (name, rest) = line.trim().split_once(" = ")?;
        // A place in the source may stand before the name.
        (rest == "iconst.i32 0").then(|| name.rsplit(' ').next().unwrap_or(name).to_owned())
    };
    let zero = clif.lines().find_map(constant).expect("the constant 0");
    let passes = |line: &&str| line.contains("block") && line.contains(&format!("({zero}"));
    clif.lines().filter(passes).count()
}

#[test]
fn a_decided_edge_leads_past_its_target() {
    let module = module();
    assert_eq!(constant_edges(&module, Config::default()), 0, "the edge leads to the third block");
    let fueled = Config { interruption: Interruption::Fuel, ..Config::default() };
    assert_eq!(constant_edges(&module, fueled), 1, "a passed block would not pay");
}

#[test]
fn code_with_passed_blocks_does_the_same() {
    let module = module();
    for setting in settings() {
        let (limits, options) = (Limits::default(), Options::traced());
        let mut twins = Twins::new(&module, limits, options, setting, Share::All)
            .unwrap_or_else(|error| panic!("{error}"));
        let words = [0, 1, 2, 7];
        for a in words {
            for b in words {
                for c in words {
                    let args = [a, b, c];
                    twins
                        .call(func(&module, "both"), &args, [&mut NoHost, &mut NoHost])
                        .unwrap_or_else(|what| panic!("{args:?}: {what}"));
                }
            }
            twins
                .call(func(&module, "count"), &[a], [&mut NoHost, &mut NoHost])
                .unwrap_or_else(|what| panic!("{a}: {what}"));
        }
    }
}

#[test]
fn a_block_behind_a_passed_one_is_a_block_of_its_own() {
    let module = module();
    for setting in settings() {
        let (limits, options) = (Limits::default(), Options::traced());
        let mut twins = Twins::new(&module, limits, options, setting, Share::All)
            .unwrap_or_else(|error| panic!("{error}"));
        for name in ["either", "neither"] {
            for args in [[0, 0], [0, 7], [7, 0], [7, 7]] {
                twins
                    .call(func(&module, name), &args, [&mut NoHost, &mut NoHost])
                    .unwrap_or_else(|what| panic!("{name} of {args:?}: {what}"));
            }
        }
    }
}
