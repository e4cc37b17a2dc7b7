//! Programs whose assumptions are given, for bugs that hardly any assumption of a profile shows.

use super::programs::Subject;
use ir::{Function, Inst, Point, Value};
use osier::ir::text::parse_module;
use osier::passes;
use passes::{Assumption, Expected, PinnedAssumption};
use std::collections::BTreeMap;
use verify::generate::{Planted, Program};

/// The number of these programs.
pub(crate) const COUNT: usize = DIRECTED.len();

/// A program, whose function `main` assumes that the value of a name has these bits.
struct DirectedProgram {
    text: &'static str,
    value: &'static str,
    bits: u64,
    arguments: &'static [&'static [u64]],
}

/// The most instructions that a run executes.
const STEPS: u64 = 100;

/// A value differs from a constant, and a branch tests whether it differs from zero.
const DIFFERS: &str = "\
export \"main\" @main
func @main(%x: i32) -> i32 {
entry:
  %five = const.i32 5
  %c = ne.i32 %x, %five
  br_if %x, some, none
some:
  %a = add.i32 %x, %c
  return %a
none:
  return %five
}
";

/// A value is zero, and a branch tests whether it differs from zero.
const EQUALS: &str = "\
export \"main\" @main
func @main(%x: i32) -> i32 {
entry:
  %zero = const.i32 0
  %five = const.i32 5
  %c = eq.i32 %x, %zero
  br_if %x, some, none
some:
  %a = add.i32 %x, %c
  return %a
none:
  return %five
}
";

/// A call through a table that never changes, at an index behind which the functions differ in
/// effect or signature.
const CALLS: &str = "\
table @t 4 fixed
elem @t 0 [@double, @square, @other, null]
export \"main\" @main
func @main(%a: i32, %which: i32) -> i32 {
entry:
  %two = const.i32 2
  %index = add.i32 %which, %two
  %b = call_indirect @t (i32) -> i32 [%index](%a)
  %e = add.i32 %b, %b
  return %e
}
func @double(%a: i32) -> i32 {
entry:
  %b = add.i32 %a, %a
  return %b
}
func @square(%a: i32) -> i32 {
entry:
  %b = mul.i32 %a, %a
  return %b
}
func @other(%a: i64) -> i32 {
entry:
  %b = wrap.i32 %a
  return %b
}
";

/// The arguments of calls at the indices 0, 1, 2, 3 and 4.
const EACH: &[&[u64]] = &[&[5, 0xffff_fffe], &[5, 0xffff_ffff], &[5, 0], &[5, 1], &[5, 2]];

const DIRECTED: [DirectedProgram; 4] = [
    DirectedProgram { text: DIFFERS, value: "c", bits: 1, arguments: &[&[0], &[5], &[7]] },
    DirectedProgram { text: EQUALS, value: "c", bits: 0, arguments: &[&[0], &[3], &[1]] },
    DirectedProgram { text: CALLS, value: "index", bits: 0, arguments: EACH },
    DirectedProgram { text: CALLS, value: "index", bits: 2, arguments: EACH },
];

/// The program with this number, below [`COUNT`].
pub(crate) fn subject(number: usize) -> Subject {
    let directed = &DIRECTED[number];
    let module = parse_module(directed.text).expect("the text is right");
    let main = module.func_named("main").expect("the function");
    let body = module.body(main).expect("its body");
    let (at, value) = defined(body, directed.value);
    let expected = Expected::Is(directed.bits);
    let assumption = Assumption { at, value, expected, reason: 0 };
    let all = vec![PinnedAssumption { assumption, pins: Vec::new() }];
    let arguments = directed.arguments.iter().map(|args| args.to_vec()).collect();
    let program = Program { module, main, arguments, steps: STEPS, planted: Planted::default() };
    let steps = vec![passes::parse("O1").expect("a pipeline")];
    Subject { program, steps, assume: BTreeMap::from([(main, all)]) }
}

/// The result of this name, and the point behind its definition.
fn defined(f: &Function, name: &str) -> (Point, Value) {
    let results = |inst: Inst| f.inst(inst).results.iter().map(move |value| (inst, *value));
    let mut all = f.all_insts().flat_map(results);
    let is_it = |(_, value): &(Inst, Value)| f.value_name(*value) == Some(name);
    let (inst, value) = all.find(is_it).expect("a result");
    (Point::before(f.next_inst(inst).expect("a result is not a terminator's")), value)
}
