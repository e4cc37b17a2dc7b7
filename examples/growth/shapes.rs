//! The shapes of the generated functions.

use clap::ValueEnum;

/// A kind of function, of any size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Shape {
    /// Loops in a row, each with an exit in its middle, loads, stores and arithmetic
    Loops,
    /// Additions, each to the result of the addition before
    Chain,
    /// Additions of constants, which fold into one
    Sums,
    /// Blocks that are merged
    Merges,
    /// Branches that join again
    Joins,
    /// Loops within loops
    Nests,
    /// Loads and stores of neighboring places
    Memory,
    /// Divisions that may trap
    Traps,
    /// Stores with a branch after each, all to one block, which reads all places again and writes
    /// the values to a global
    Stairs,
    /// A loop around a switch, with many locals that the cases change: the shape of interpreters
    Interpreter,
}

/// The depth of a nest of loops: deeper ones say little about real code.
const MAX_DEPTH: u32 = 64;

impl Shape {
    /// A module with one function of this number of units.
    ///
    /// # Errors
    ///
    /// If the text is not WebAssembly, which is a bug.
    pub(crate) fn program(self, units: u32) -> Result<Vec<u8>, wat::Error> {
        let mut text =
            "(module (memory 1) (global $g (mut i32) (i32.const 0)) (func (export \"f\") (param i32 i32) (result i32)"
                .to_owned();
        text.push_str(" (local i32 i32 i32 i32 i32)");
        match self {
            Shape::Nests => nests(&mut text, units),
            Shape::Stairs => stairs(&mut text, units),
            Shape::Interpreter => interpreter(&mut text, units),
            _ => (0..units).for_each(|unit| text.push_str(&self.unit(unit))),
        }
        text.push_str(" (i32.add (local.get 0) (local.get 1))))");
        wat::parse_str(text)
    }

    fn unit(self, unit: u32) -> String {
        let fixed = match self {
            Shape::Loops | Shape::Nests | Shape::Stairs | Shape::Interpreter => LOOP,
            Shape::Chain => {
                "(local.set 0 (i32.add (i32.mul (local.get 0) (local.get 1)) (local.get 0)))"
            }
            Shape::Sums => "(local.set 0 (i32.add (local.get 0) (i32.const 3)))",
            Shape::Merges => {
                "(block (local.set 0 (i32.add (i32.mul (local.get 0) (local.get 1)) (local.get 0))) (br 0))"
            }
            Shape::Joins => {
                "(if (i32.and (local.get 0) (local.get 1))
                (then (local.set 0 (i32.mul (local.get 0) (local.get 1))))
                (else (local.set 1 (i32.xor (local.get 0) (local.get 1)))))"
            }
            Shape::Traps => {
                "(local.set 0 (i32.add (local.get 0) (i32.div_u (local.get 1) (local.get 0))))"
            }
            Shape::Memory => {
                let offset = 8 * (unit % 64);
                return format!(
                    "(i32.store offset={offset} (local.get 0) (i32.load offset={} (local.get 0)))
                     (local.set 1 (i32.add (local.get 1) (i32.load offset={offset} (local.get 0))))",
                    offset + 4
                );
            }
        };
        fixed.to_owned()
    }
}

/// Nests of loops, each as deep as [`MAX_DEPTH`] allows.
fn nests(text: &mut String, units: u32) {
    let mut left = units;
    while left > 0 {
        let depth = left.min(MAX_DEPTH);
        for _ in 0..depth {
            text.push_str(
                "(loop (local.set 0 (i32.add (local.get 0) (i32.mul (local.get 1) (local.get 1))))",
            );
        }
        for _ in 0..depth {
            text.push_str("(br_if 0 (i32.lt_u (local.get 0) (local.get 1))))");
        }
        left -= depth;
    }
}

/// The shape of code with `goto out`: the memory read at the end is a join of one edge for each
/// unit. The load at the start proves that the first of these reads do not trap, so that `dse` can
/// remove a write between them.
fn stairs(text: &mut String, units: u32) {
    text.push_str("(drop (i64.load (local.get 0))) (block");
    for unit in 0..units {
        let offset = 4 * u64::from(unit);
        text.push_str(&format!(
            "(i32.store offset={offset} (local.get 0) (local.get 1))
             (br_if 0 (i32.add (local.get 0) (local.get 1)))"
        ));
    }
    text.push(')');
    for unit in 0..units {
        let offset = 4 * u64::from(unit);
        text.push_str(&format!("(global.set $g (i32.load offset={offset} (local.get 0)))"));
    }
}

/// A loop around a switch with a case for each unit. The blocks are written without parentheses,
/// since the parser limits how deep these nest.
fn interpreter(text: &mut String, units: u32) {
    let locals = 32 + units / 16;
    text.push_str(" (local");
    (0..locals).for_each(|_| text.push_str(" i32"));
    text.push_str(") block loop (br_if 1 (i32.gt_u (local.get 2) (i32.const 100000))) block ");
    (0..units).for_each(|_| text.push_str("block "));
    text.push_str("(i32.load8_u (i32.and (local.get 2) (i32.const 1023))) br_table ");
    (0..units.max(1)).for_each(|unit| text.push_str(&format!("{unit} ")));
    for unit in 0..units {
        let local = |n: u32| 7 + (unit * 7 + n * 5) % locals;
        let [a, b, c] = [local(0), local(1), local(2)];
        let offset = 4 * (unit % 64);
        let next = units - 1 - unit;
        text.push_str(&format!(
            "end
            (local.set {a} (i32.add (local.get {b}) (i32.mul (local.get 0) (local.get 1))))
            (local.set 5 (i32.load offset={offset} (i32.and (local.get {c}) (i32.const 1020))))
            (if (i32.lt_s (local.get 5) (local.get {a}))
              (then (i32.store offset={offset}
                (i32.and (local.get {b}) (i32.const 1020)) (local.get 5)))
              (else (local.set {c}
                (i32.xor (local.get {c}) (i32.mul (local.get 0) (local.get 1))))))
            br {next} "
        ));
    }
    text.push_str("end (local.set 2 (i32.add (local.get 2) (i32.const 1))) br 0 end end");
    (0..locals).for_each(|n| {
        text.push_str(&format!(" (local.set 0 (i32.xor (local.get 0) (local.get {})))", 7 + n));
    });
}

/// A loop with an exit in its middle, over loads, stores and arithmetic with repeated, invariant
/// and dead operations. Locals carry values from unit to unit.
const LOOP: &str = "
  (local.set 2 (i32.const 8))
  (block (loop
    (br_if 1 (i32.eqz (local.get 2)))
    (local.set 3 (i32.add (i32.mul (local.get 0) (i32.const 3)) (local.get 1)))
    (local.set 4 (i32.add (i32.mul (local.get 0) (i32.const 3)) (local.get 2)))
    (local.set 5 (i32.load offset=16 (i32.and (local.get 3) (i32.const 1020))))
    (if (i32.lt_s (local.get 5) (local.get 4))
      (then (local.set 1 (i32.add (local.get 1) (local.get 5)))
            (i32.store offset=64 (i32.and (local.get 4) (i32.const 1020)) (local.get 1)))
      (else (local.set 1 (i32.xor (local.get 1) (i32.add (local.get 4) (i32.const 7))))
            (local.set 6 (i32.add (local.get 6) (local.get 1)))))
    (br_if 1 (i32.gt_u (local.get 1) (i32.const 1000000)))
    (local.set 2 (i32.sub (local.get 2) (i32.const 1)))
    (br 0)))
  (local.set 0 (i32.add (local.get 0) (i32.const 1)))";
