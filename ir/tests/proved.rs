//! The rules against the rules that `proof/` proves in Coq.

use ir::rules::{Const, Guard, Pat, RULES, Rule, Term};
use std::fmt::Write;

fn pattern(pat: &Pat) -> String {
    match pat {
        Pat::X => "x".into(),
        Pat::Y => "y".into(),
        Pat::Zero => "zero".into(),
        Pat::One => "one".into(),
        Pat::Ones => "ones".into(),
        Pat::NonZero => "nonzero".into(),
        Pat::Bits(bits) => bits.to_string(),
        Pat::C => "c".into(),
        Pat::D => "d".into(),
        Pat::Op(opcode, pats) => applied(opcode.name(), pats),
    }
}

fn applied(name: &str, pats: &[Pat]) -> String {
    let operands: Vec<String> = pats.iter().map(pattern).collect();
    format!("{name}({})", operands.join(","))
}

fn constant(constant: Const) -> String {
    match constant {
        Const::Bits(bits) => bits.to_string(),
        Const::C => "c".into(),
        Const::CthenD(opcode) => format!("{}(c,d)", opcode.name()),
        Const::DthenC(opcode) => format!("{}(d,c)", opcode.name()),
    }
}

fn result(term: Term) -> String {
    match term {
        Term::X => "x".into(),
        Term::Y => "y".into(),
        Term::Operand(index) => format!("operand{index}"),
        Term::Zero => "zero".into(),
        Term::One => "one".into(),
        Term::Ones => "ones".into(),
        Term::Unary(opcode) => format!("{}(x)", opcode.name()),
        Term::Binary(opcode) => format!("{}(x,y)", opcode.name()),
        Term::WithConstant(opcode, made) => format!("{}(x,{})", opcode.name(), constant(made)),
        Term::Made(made) => constant(made),
    }
}

fn guard(guard: Guard) -> String {
    match guard {
        Guard::Always => "always".into(),
        Guard::XIsBool => "x-is-bool".into(),
        Guard::CCoversX => "c-covers-x".into(),
        Guard::CAboveX => "c-above-x".into(),
        Guard::XMissesD => "x-misses-d".into(),
        Guard::XBelowD => "x-below-d".into(),
        Guard::XWithin(bits) => format!("x-within-{bits}"),
        Guard::CWithin(bits) => format!("c-within-{bits}"),
        Guard::CCovers(bits) => format!("c-covers-{bits}"),
    }
}

fn text(rules: &[Rule]) -> String {
    let mut text = String::new();
    for rule in rules {
        let ty = rule.ty.map_or("any", |ty| ty.name());
        let left = applied(rule.opcode.name(), rule.operands);
        let right = (result(rule.result), guard(rule.guard));
        writeln!(text, "{}: {ty} {left} -> {}, {}", rule.name, right.0, right.1)
            .expect("a string grows");
    }
    text
}

/// `proof/build` compares the same file with the rows that Coq proves.
#[test]
fn every_rule_is_a_row_that_coq_proves() {
    let proved = include_str!("../../proof/rules.txt");
    for (ours, theirs) in text(RULES).lines().zip(proved.lines()) {
        assert_eq!(ours, theirs, "proof/theories/Rules.v has another row");
    }
    assert_eq!(text(RULES).lines().count(), proved.lines().count());
    assert!(RULES.len() >= 98, "{}", RULES.len());
}

/// The comparison sees an operand, a constant and a guard.
#[test]
fn another_row_has_another_text() {
    let row = |name: &str| *RULES.iter().find(|r| r.name == name).expect("the rule exists");
    let known = row("and-known");
    let changed = [
        Rule { guard: Guard::XMissesD, ..known },
        Rule { operands: &[Pat::X, Pat::D], ..known },
        Rule { result: Term::Zero, ..known },
        Rule { ty: Some(ir::Type::I32), ..known },
        Rule { opcode: ir::Opcode::Or, ..known },
    ];
    for other in changed {
        assert_ne!(text(&[other]), text(&[known]));
    }
}
