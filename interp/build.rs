//! Generates the tables of operations on values from the opcode table of the IR.
//!
//! Macros by example cannot join `Add` and `I32` to one name, so this script writes the rows. It
//! reads [`Opcode::ALL`] and queries [`accepts`] for the types of each opcode. A new opcode on
//! values thereby gets its codes in both tiers. The output is two macros; `src/op.rs` includes and
//! describes them.

use ir::eval::{accepts, eval, is_evaluated};
use ir::{Opcode, Shape, Type};
use std::io::{self, Write};
use std::path::Path;
use std::{env, fs};

/// Opcodes on values without codes of their own. Values keep their upper bits clear, so `uextend`
/// and `bitcast` are copies. `select` has three operands.
const APART: [Opcode; 3] = [Opcode::Uextend, Opcode::Bitcast, Opcode::Select];

fn main() -> io::Result<()> {
    let folder = env::var_os("OUT_DIR").expect("cargo names the output folder");
    let tables = format!("{}{}", value_table(), branch_table());
    fs::write(Path::new(&folder).join("value_ops.rs"), tables)?;
    writeln!(io::stdout(), "cargo::rerun-if-changed=build.rs")
}

/// The macro `with_value_ops`.
fn value_table() -> String {
    let rows = operations().map(|opcode| {
        let names = types(opcode).into_iter().map(|(ty, source)| match source {
            None => format!("{opcode:?}{ty:?}({ty:?})"),
            Some(source) => format!("{opcode:?}{ty:?}{source:?}({ty:?} {source:?})"),
        });
        (opcode, names.collect())
    });
    let groups = grouped(rows);
    format!(
        "macro_rules! with_value_ops {{ ($callback:ident) => {{ $callback! {{\n{groups}}} }} }}\n"
    )
}

/// The macro `with_branch_ops`. Branches execute comparisons and `and` at the wide types, because
/// programs rarely compare narrow integers.
fn branch_table() -> String {
    let is_compare =
        |opcode: &Opcode| matches!(opcode.shape(), Shape::IntCompare | Shape::FloatCompare);
    let tested = operations().filter(|opcode| is_compare(opcode) || *opcode == Opcode::And);
    let groups = grouped(tested.map(|opcode| {
        let wide = types(opcode).into_iter().map(|(ty, _)| ty).filter(|ty| ty.bits() >= 32);
        (opcode, wide.map(|ty| format!("Br{opcode:?}{ty:?}({ty:?})")).collect())
    }));
    // Loops end at a limit, not at an overflow. The flag of a difference has no mirror either.
    let overflows = [Opcode::SaddOverflows, Opcode::SsubOverflows, Opcode::SmulOverflows];
    let stepped = operations()
        .filter(|opcode| opcode.shape() == Shape::IntCompare && !overflows.contains(opcode));
    let steps: String = stepped
        .map(|opcode| {
            format!("{opcode:?}: Br{opcode:?}I32 Step{opcode:?} Step{:?};\n", mirrored(opcode))
        })
        .collect();
    format!(
        "macro_rules! with_branch_ops {{ ($callback:ident $($given:tt)*) => {{ $callback! {{\n\
        $($given)*\n{groups}[\n{steps}]\n}} }} }}\n"
    )
}

/// The opcodes on values that have codes of their own.
fn operations() -> impl Iterator<Item = Opcode> {
    Opcode::ALL.iter().copied().filter(|opcode| is_evaluated(*opcode) && !APART.contains(opcode))
}

/// The controlling types of an operation, each with the type of operand 0 where the result depends
/// on it.
fn types(opcode: Opcode) -> Vec<(Type, Option<Type>)> {
    let by_source = matches!(opcode.shape(), Shape::Extend | Shape::IntToFloat | Shape::FloatToInt);
    let mut found = Vec::new();
    for ty in Type::ALL {
        let accepted =
            |source: &Type| accepts(opcode, ty, &[*source]) || accepts(opcode, ty, &[*source; 2]);
        let mut sources = Type::ALL.into_iter().filter(accepted);
        if by_source {
            found.extend(sources.map(|source| (ty, Some(source))));
        } else if sources.next().is_some() {
            found.push((ty, None));
        }
    }
    assert!(!found.is_empty(), "{} is an operation on one or two values", opcode.name());
    found
}

/// Rows of opcodes and their codes, grouped by shape.
fn grouped(rows: impl Iterator<Item = (Opcode, Vec<String>)>) -> String {
    let mut groups: Vec<(Shape, String)> = Vec::new();
    for (opcode, codes) in rows {
        let row = format!("{opcode:?}: {};\n", codes.join(" "));
        match groups.iter_mut().find(|(shape, _)| *shape == opcode.shape()) {
            Some((_, rows)) => rows.push_str(&row),
            None => groups.push((opcode.shape(), row)),
        }
    }
    groups.iter().map(|(shape, rows)| format!("{shape:?} {{\n{rows}}}\n")).collect()
}

/// The comparison with the operands exchanged, found by its results: `slt` gives `sgt`.
fn mirrored(compare: Opcode) -> Opcode {
    // Signed and unsigned order differ on these numbers.
    let numbers = [0, 1, u64::from(u32::MAX)];
    let result = |opcode, x, y| eval(opcode, Type::I32, Type::I32, &[x, y]);
    let mut candidates = operations().filter(|opcode| opcode.shape() == compare.shape());
    candidates
        .find(|candidate| {
            let agrees = |x, y| result(*candidate, x, y) == result(compare, y, x);
            numbers.iter().all(|x| numbers.iter().all(|y| agrees(*x, *y)))
        })
        .unwrap_or_else(|| panic!("no comparison mirrors {}", compare.name()))
}
