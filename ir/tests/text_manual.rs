//! The manual `docs/oir.md` must agree with the sources. `OIR_BLESS=1` rewrites its generated
//! tables.

use osier_ir::text::{parse_module, print_module};
use osier_ir::verifier::{MAX_TABLE_ENTRIES, Rule, verify_module};
use osier_ir::{Effects, Opcode, Shape, TrapKind, Type};
use std::fmt::Write;
use std::path::PathBuf;

fn manual_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/oir.md")
}

fn manual() -> String {
    std::fs::read_to_string(manual_path()).expect("docs/oir.md is part of the sources")
}

/// The operands and results of a shape, and the syntax after the mnemonic.
fn type_rule(shape: Shape) -> (&'static str, &'static str) {
    match shape {
        Shape::Const => ("() -> T", "literal"),
        Shape::IntUnary | Shape::FloatUnary => ("(T) -> T", "%a"),
        Shape::IntBinary | Shape::FloatBinary => ("(T, T) -> T", "%a, %b"),
        Shape::IntTest => ("(T) -> i32", "%a"),
        Shape::IntCompare | Shape::FloatCompare => ("(T, T) -> i32", "%a, %b"),
        Shape::Extend => ("(S) -> T, S a narrower integer", "%a"),
        Shape::Wrap => ("(S) -> T, S a wider integer", "%a"),
        Shape::IntToFloat => ("(S) -> T, S i32 or i64", "%a"),
        Shape::FloatToInt => ("(S) -> T, S a float", "%a"),
        Shape::Promote => ("(f32) -> T", "%a"),
        Shape::Demote => ("(f64) -> T", "%a"),
        Shape::Bitcast => ("(S) -> T, S of the other kind, as wide", "%a"),
        Shape::Select => ("(S, T, T) -> T, S an integer", "%c, %a, %b"),
        Shape::Load(_) => ("(A) -> T, A i32 or i64", "@mem[%address + offset]"),
        Shape::Store(_) => ("(A, T) -> (), A i32 or i64", "@mem[%address + offset], %a"),
        Shape::MemorySize => ("() -> i32", "@mem"),
        Shape::MemoryGrow => ("(i32) -> i32", "@mem, %pages"),
        Shape::MemoryCopy => ("(i32, i32, i32) -> ()", "@to @from, %to, %from, %count"),
        Shape::MemoryFill => ("(i32, i32, i32) -> ()", "@mem, %at, %byte, %count"),
        Shape::MemoryInit => ("(i32, i32, i32) -> ()", "@mem segment, %to, %from, %count"),
        Shape::DataDrop | Shape::ElemDrop => ("() -> ()", "segment"),
        Shape::RefTest => ("(T) -> i32", "%a"),
        Shape::RefCompare => ("(ref, ref) -> i32", "%a, %b"),
        Shape::RefBits => ("(ref) -> i64", "%a"),
        Shape::RefOf => ("(i64) -> ref", "%a"),
        Shape::TableGet => ("(i32) -> T, that of the table", "@table, %index"),
        Shape::TableSet => ("(i32, T) -> (), that of the table", "@table, %index, %a"),
        Shape::TableSize => ("() -> i32", "@table"),
        Shape::TableGrow => ("(T, i32) -> i32, that of the table", "@table, %a, %count"),
        Shape::TableFill => ("(i32, T, i32) -> (), that of the table", "@table, %at, %a, %count"),
        Shape::TableCopy => ("(i32, i32, i32) -> ()", "@to @from, %to, %from, %count"),
        Shape::TableInit => ("(i32, i32, i32) -> ()", "@table segment, %to, %from, %count"),
        Shape::GlobalGet => ("() -> T, that of the global", "@global"),
        Shape::GlobalSet => ("(T) -> (), that of the global", "@global, %a"),
        Shape::Call => ("as the function", "@f(%a, ...)"),
        Shape::CallValue => ("as the function, T its result", "@f(%a, ...)"),
        Shape::CallIndirect => {
            ("as the signature, and an i32", "@table signature [%index](%a, ...)")
        }
        Shape::Jump => ("()", "target"),
        Shape::BrIf => ("(S), S an integer", "%c, target, target"),
        Shape::Switch => ("(i32)", "%i, [target, ...], default target"),
        Shape::Return => ("the function's results", "%a, ..."),
        Shape::Trap => ("() or (S), S i32 or i64", "kind, %a"),
        Shape::OsrTest => ("() -> i32", "point"),
        Shape::OsrExit => ("any", "point(%a, ...)"),
        Shape::Assume => ("(T, ..) -> T", "%a, literal, reason, ..."),
    }
}

fn effects(opcode: Opcode) -> String {
    let names = [
        (Effects::TRAP, "traps"),
        (Effects::READS, "reads"),
        (Effects::WRITES, "writes"),
        (Effects::TRACED, "traced"),
        (Effects::TERMINATOR, "ends"),
        (Effects::LEAVES, "leaves"),
    ];
    let has: Vec<&str> =
        names.iter().filter(|(e, _)| opcode.effects().has(*e)).map(|(_, n)| *n).collect();
    if has.is_empty() { "pure".to_owned() } else { has.join(", ") }
}

/// The types that may follow the mnemonic, with names for common sets of types.
fn controlling_types(opcode: Opcode) -> String {
    if !opcode.has_type_suffix() {
        return String::new();
    }
    let allowed: Vec<Type> = Type::ALL.into_iter().filter(|ty| opcode.allows_type(*ty)).collect();
    match allowed.len() {
        9 => "any".to_owned(),
        6 if allowed.iter().all(|ty| ty.is_number()) => "any number".to_owned(),
        _ => allowed.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(" "),
    }
}

fn operations_table() -> String {
    let mut table = String::from(
        "| operation | T | written | types | effects | meaning |\n|---|---|---|---|---|---|\n",
    );
    for opcode in Opcode::ALL {
        let (types, written) = type_rule(opcode.shape());
        let (ty, effects, summary) =
            (controlling_types(*opcode), effects(*opcode), opcode.summary().trim());
        let suffix = if ty.is_empty() { "" } else { ".T" };
        let name = opcode.name();
        writeln!(
            table,
            "| `{name}{suffix}` | {ty} | `{written}` | {types} | {effects} | {summary} |"
        )
        .expect("writing to a string cannot fail");
    }
    table
}

fn rules_table() -> String {
    let mut table = String::from("| rule | requirement |\n|---|---|\n");
    for rule in Rule::ALL {
        writeln!(table, "| `{}` | {} |", rule.id(), rule.meaning())
            .expect("writing to a string cannot fail");
    }
    table
}

/// The manual with the part between two marks replaced.
fn with_generated(manual: &str, what: &str, table: &str) -> String {
    let (begin, end) = (
        format!("<!-- begin generated: {what} -->\n"),
        format!("<!-- end generated: {what} -->\n"),
    );
    let (before, rest) =
        manual.split_once(&begin).unwrap_or_else(|| panic!("docs/oir.md lacks {begin}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("docs/oir.md lacks {end}"));
    format!("{before}{begin}{table}{end}{after}")
}

#[test]
fn generated_tables_are_fresh() {
    let manual = manual();
    let fresh = with_generated(&manual, "operations", &operations_table());
    let fresh = with_generated(&fresh, "rules", &rules_table());
    if std::env::var_os("OIR_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(manual_path(), &fresh).expect("docs/oir.md can be written");
        return;
    }
    let stale = manual.lines().zip(fresh.lines()).find(|(a, b)| a != b);
    assert!(
        fresh == manual,
        "docs/oir.md is stale, run with OIR_BLESS=1; first difference: {stale:?}"
    );
}

#[test]
fn examples_are_well_formed() {
    let manual = manual();
    let examples: Vec<&str> =
        manual.split("```oir\n").skip(1).filter_map(|e| e.split("```").next()).collect();
    assert!(!examples.is_empty(), "the manual has examples");
    for example in examples {
        let module = parse_module(example).unwrap_or_else(|errors| panic!("{}", errors[0]));
        let findings = verify_module(&module);
        assert!(findings.is_empty(), "{}", findings[0]);
        let without_comments: String =
            example.lines().filter(|l| !l.starts_with(';')).map(|l| format!("{l}\n")).collect();
        assert_eq!(
            print_module(&module),
            without_comments,
            "examples are written as the printer writes them"
        );
    }
}

/// The kind after this kind. The match is complete, so a new kind cannot be forgotten here.
fn next_kind(kind: TrapKind) -> Option<TrapKind> {
    match kind {
        TrapKind::Unreachable => Some(TrapKind::DivisionByZero),
        TrapKind::DivisionByZero => Some(TrapKind::IntegerOverflow),
        TrapKind::IntegerOverflow => Some(TrapKind::InvalidConversion),
        TrapKind::InvalidConversion => Some(TrapKind::MemoryOutOfBounds),
        TrapKind::MemoryOutOfBounds => Some(TrapKind::TableOutOfBounds),
        TrapKind::TableOutOfBounds => Some(TrapKind::NullFunction),
        TrapKind::NullFunction => Some(TrapKind::SignatureMismatch),
        TrapKind::SignatureMismatch => Some(TrapKind::User(0)),
        TrapKind::User(_) => None,
    }
}

#[test]
fn traps_and_limits_are_in_the_manual() {
    let manual = manual();
    let kinds = std::iter::successors(Some(TrapKind::Unreachable), |k| next_kind(*k));
    for kind in kinds {
        let name = if kind == TrapKind::User(0) { "userN".to_owned() } else { kind.to_string() };
        assert!(manual.contains(&format!("\n| `{name}` | ")), "the table of traps lacks {name}");
    }
    assert!(manual.contains(&format!("| entries of a table | {MAX_TABLE_ENTRIES} |")));
}
