//! Functions with one assumption for each part: for `growth`, and for `benches/speculate.rs`.

use ir::text::parse_module;
use ir::{Function, Module, Opcode, Point, Value};
use osier::speculate::{Assumption, Expected};
use std::fmt::Write as _;

/// The parts of a function with many assumptions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// Blocks in a row: a load, a branch never taken, and a sum.
    Row,
    /// As [`Shape::Row`], in a loop.
    Loop,
    /// As [`Shape::Row`]; each load is from the address that the block before has computed.
    Chain,
    /// All branches test one value, so the first assumption settles the other branches.
    Same,
    /// Calls through a table.
    Calls,
    /// A branch in each of many loops, each with one more loop inside.
    Nests,
}

const HEADER: &str = "memory @mem 1
table @t 2 fixed
elem @t 0 [@g, @g]
export \"main\" @f
func @f(%p: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  %two = const.i32 2
  %first = load.i32 @mem[%p]
  jump b0(%zero, %p)
";

const FOOTER: &str = "func @g(%x: i32) -> i32 {\nentry:\n  return %x\n}\n";

/// One part: from block `b{n}` with a count and a sum to block `b{n + 1}`.
fn part(shape: Shape, n: usize) -> String {
    let next = n + 1;
    let branch = |at: &str, asked: &str| {
        format!(
            "  %a{n} = load.i32 @mem[{at} + {}]
  br_if {asked}, c{n}, d{n}
c{n}:
  store.i32 @mem[%p + {}], %s{n}
  %m{n} = mul.i32 %s{n}, %a{n}
  jump e{n}(%m{n})
d{n}:
  %t{n} = add.i32 %s{n}, %a{n}
  jump e{n}(%t{n})
e{n}(%r{n}: i32):
",
            4 * n,
            4 * n + 20_000
        )
    };
    let head = format!("b{n}(%k{n}: i32, %s{n}: i32):\n");
    let (own, onward) = (format!("%a{n}"), format!("  jump b{next}(%k{n}, %r{n})\n"));
    head + &match shape {
        Shape::Row | Shape::Loop => branch("%p", &own) + &onward,
        Shape::Chain => branch(&format!("%s{n}"), &own) + &onward,
        Shape::Same => branch("%p", "%first") + &onward,
        Shape::Calls => format!(
            "  %a{n} = load.i32 @mem[%p + {}]
  %r{n} = call_indirect @t (i32) -> i32 [%a{n}](%s{n})
  jump b{next}(%k{n}, %r{n})
",
            4 * n
        ),
        Shape::Nests => {
            branch("%p", &own)
                + &format!(
                    "  jump h{n}(%zero, %r{n})
h{n}(%i{n}: i32, %u{n}: i32):
  %v{n} = add.i32 %u{n}, %i{n}
  %j{n} = add.i32 %i{n}, %one
  %g{n} = ult.i32 %j{n}, %two
  br_if %g{n}, h{n}(%j{n}, %v{n}), l{n}
l{n}:
  %x{n} = add.i32 %k{n}, %one
  %y{n} = urem.i32 %x{n}, %two
  br_if %y{n}, b{n}(%x{n}, %v{n}), b{next}(%x{n}, %v{n})
"
                )
        }
    }
}

/// A function with `parts` parts.
pub(crate) fn module(shape: Shape, parts: usize) -> Module {
    let mut text = HEADER.to_owned();
    (0..parts).for_each(|n| text.push_str(&part(shape, n)));
    let end = match shape {
        Shape::Loop => {
            "  %k = add.i32 %n, %one\n  %more = ult.i32 %k, %two\n  br_if %more, b0(%k, %r), done\n"
        }
        _ => "  jump done\n",
    };
    write!(text, "b{parts}(%n: i32, %r: i32):\n{end}done:\n  return %r\n}}\n").expect("a string");
    parse_module(&(text + FOOTER)).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Each first operand of a branch in the blocks `b{n}` is zero, and so is each index.
pub(crate) fn assumptions(f: &Function) -> Vec<Assumption> {
    let is_rare = |value: Value| {
        let name = f.value_name(value).unwrap_or_default();
        name.starts_with('a') || name == "first"
    };
    let asked = f.all_insts().filter_map(|inst| {
        let data = f.inst(inst);
        let value = match data.opcode {
            Opcode::BrIf => data.args[0],
            Opcode::CallIndirect => *data.args.last()?,
            _ => return None,
        };
        let at = Point::before(inst);
        let assumption = Assumption { at, value, expected: Expected::Is(0), reason: 0 };
        is_rare(value).then_some(assumption)
    });
    asked.collect()
}
