//! The solvers on trial: every solver must refute wrong claims, and an undecided claim must not
//! count as proved. Needs a solver: `cargo test --release -p osier-provers --features solvers`.

use ir::rules::declared::{RuleFault, RuleTable, RuleVerdict};
use ir::rules::{Const, Guard, Pat, RULES, Reach, Rule, Term, reach};
use ir::{Opcode, TrapKind, Type};
use osier_provers::typing::typings;
use osier_provers::{
    Claim, ClaimSubject, FoldingCase, Solver, SolverLimits, SolverVerdict, Statement, claims,
    prove, rule_claims, solvers,
};
use std::path::Path;
use std::process::Command;

/// The solvers of this machine. Without any, the tests fail.
fn found() -> Vec<Solver> {
    let found = solvers();
    assert!(!found.is_empty(), "NO SOLVER: provers/install installs z3 and cvc5");
    found
}

/// The verdicts of all solvers.
fn verdicts(claim: &Claim) -> Vec<SolverVerdict> {
    found().iter().map(|solver| prove(solver, claim, SolverLimits::default())).collect()
}

/// Asserts that every solver refutes a claim. Returns the counterexamples.
fn refuted(claim: &Claim) -> Vec<String> {
    let verdicts = verdicts(claim).into_iter().map(|verdict| match verdict {
        SolverVerdict::Refuted(values) => values,
        other => panic!("{} ({}) is wrong, but the verdict is {other}", claim.name, claim.types),
    });
    verdicts.collect()
}

fn assert_proved(claim: &Claim) {
    for verdict in verdicts(claim) {
        assert_eq!(verdict, SolverVerdict::Proved, "{} ({})", claim.name, claim.types);
    }
}

fn rule(opcode: Opcode, operands: &'static [Pat], result: Term) -> Rule {
    Rule { name: "trial", opcode, ty: None, operands, guard: Guard::Always, result }
}

/// Asserts that a rule is refuted at every choice of types.
fn refuted_everywhere(rule: &Rule) {
    let claims = rule_claims(rule);
    assert!(!claims.is_empty(), "{rule:?} fits no types");
    claims.iter().for_each(|claim| drop(refuted(claim)));
}

const X0: &[Pat] = &[Pat::X, Pat::Zero];

#[test]
fn wrong_rules_are_refuted_at_every_width() {
    use Opcode::{Add, Sge, Sgt};
    use Opcode::{Eqz, Mul, Rotl, Sdiv, Select, Sextend, Shl, Slt, Srem, Sub, Ult, Ushr, Wrap};
    use Pat::{C, D, Ones, Op, X, Y, Zero};
    let constants: &[Pat] = &[Op(Ushr, &[X, C]), D];
    let wrong = [
        rule(Sub, &[Zero, X], Term::X),
        rule(Sub, &[X, Y], Term::Y),
        rule(Sdiv, &[X, X], Term::One),
        rule(Sdiv, &[X, Ones], Term::X),
        rule(Srem, &[X, Ones], Term::X),
        rule(Mul, &[X, X], Term::X),
        rule(Shl, &[X, Ones], Term::Zero),
        rule(Rotl, &[X, Pat::One], Term::X),
        rule(Eqz, &[Op(Slt, &[X, Y])], Term::Binary(Sgt)),
        rule(Eqz, &[Op(Ult, &[X, Y])], Term::Binary(Sge)),
        rule(Sub, &[Op(Sub, &[X, C]), D], Term::WithConstant(Sub, Const::CthenD(Sub))),
        // Shift amounts are taken modulo the width, so they do not add up.
        rule(Ushr, constants, Term::WithConstant(Ushr, Const::CthenD(Add))),
        rule(Select, &[X, Y, Zero], Term::Y),
        rule(Sextend, &[Op(Wrap, &[X])], Term::X),
    ];
    wrong.iter().for_each(refuted_everywhere);
}

/// Each rule is wrong only at the values for which the division traps.
#[test]
fn a_rule_that_loses_a_trap_is_refuted() {
    for (operands, result) in [(&[Pat::X, Pat::X], Term::One), (&[Pat::X, Pat::Zero], Term::Zero)] {
        refuted_everywhere(&rule(Opcode::Udiv, operands, result));
    }
    // True for all values except the values for which the division traps.
    let quotient = Pat::Op(Opcode::Udiv, &[Pat::Zero, Pat::X]);
    let operands: &'static [Pat] = Box::leak(Box::new([quotient, Pat::X]));
    refuted_everywhere(&rule(Opcode::Mul, operands, Term::Zero));
}

#[test]
fn a_counterexample_is_one() {
    for claim in rule_claims(&rule(Opcode::Sub, &[Pat::Zero, Pat::X], Term::X)) {
        for values in refuted(&claim) {
            let value = |name: &str| {
                let found =
                    values.split(", ").find_map(|v| v.strip_prefix(name)?.strip_prefix(" = 0x"));
                u64::from_str_radix(found.unwrap_or_else(|| panic!("no {name} in {values}")), 16)
                    .expect("hexadecimal")
            };
            let ty =
                Type::ALL.into_iter().find(|t| claim.types.ends_with(t.name())).expect("a type");
            let left = ir::eval::eval(Opcode::Sub, ty, ty, &[0, value("X")]);
            assert_eq!(left, Ok(value("left")), "{values}");
            assert_eq!(value("right"), value("X"), "{values}");
            assert_ne!(value("left"), value("right"), "{values}");
        }
    }
}

/// Another right side, which makes the rule wrong.
fn damaged(term: Term) -> Term {
    match term {
        Term::X | Term::Y | Term::Operand(_) | Term::One | Term::Ones => Term::Zero,
        Term::Zero => Term::One,
        Term::Unary(Opcode::Eqz) => Term::Zero,
        Term::Unary(Opcode::Sext8) => Term::Unary(Opcode::Clz),
        Term::Unary(_) => Term::Unary(Opcode::Sext8),
        Term::Binary(Opcode::Eq) => Term::Binary(Opcode::Ule),
        Term::Binary(_) => Term::Binary(Opcode::Eq),
        Term::Made(Const::CthenD(Opcode::And)) => Term::Made(Const::CthenD(Opcode::Or)),
        Term::Made(_) => Term::Made(Const::CthenD(Opcode::And)),
        Term::WithConstant(opcode, Const::Bits(bits)) => {
            Term::WithConstant(opcode, Const::Bits(bits >> 1))
        }
        Term::WithConstant(Opcode::Sub, constant) => Term::WithConstant(Opcode::Add, constant),
        Term::WithConstant(_, constant) => Term::WithConstant(Opcode::Sub, constant),
    }
}

/// Every rule of the table is refuted with another right side, at every choice of types. So the
/// proofs depend on the whole right side.
#[test]
fn every_rule_is_refuted_when_damaged() {
    for original in RULES {
        let result = damaged(original.result);
        refuted_everywhere(&Rule { result, ..*original });
    }
}

/// Every guarded rule is wrong somewhere without its guard.
#[test]
fn guards_are_needed() {
    let guarded = RULES.iter().filter(|r| r.guard != Guard::Always);
    let mut count = 0;
    for original in guarded {
        count += 1;
        let claims = rule_claims(&Rule { guard: Guard::Always, ..*original });
        let wrong =
            |claim: &Claim| verdicts(claim).iter().all(|v| matches!(v, SolverVerdict::Refuted(_)));
        assert!(claims.iter().any(wrong), "{} needs no guard", original.name);
    }
    assert!(count > 5, "{count} guarded rules");
}

/// A rule on floats can be stated. Most that look right are wrong: NaN payloads, zeros, rounding.
#[test]
fn floating_point_rules_are_judged() {
    use Opcode::*;
    use Pat::{Bits, Op, X, Y, Zero};
    let one = Bits(0x3f80_0000);
    let one: &'static [Pat] = Box::leak(Box::new([X, one]));
    let minus_zero: &'static [Pat] = Box::leak(Box::new([X, Bits(0x8000_0000)]));
    let f32 = |rule: Rule| Rule { ty: Some(Type::F32), ..rule };
    let wrong = [
        rule(Fadd, &[X, Zero], Term::X),
        f32(rule(Fadd, minus_zero, Term::X)),
        f32(rule(Fmul, one, Term::X)),
        rule(Fsub, &[X, X], Term::Zero),
        rule(Feq, &[X, X], Term::One),
        rule(Eqz, &[Op(Flt, &[X, Y])], Term::Binary(Fge)),
    ];
    wrong.iter().for_each(refuted_everywhere);
    let right = [
        rule(Fneg, &[Op(Fneg, &[X])], Term::X),
        rule(Fabs, &[Op(Fneg, &[X])], Term::Unary(Fabs)),
        rule(Eqz, &[Op(Feq, &[X, Y])], Term::Binary(Fne)),
    ];
    for rule in &right {
        let claims = rule_claims(rule);
        assert_eq!(claims.len(), 2, "{rule:?}");
        claims.iter().for_each(assert_proved);
    }
}

fn claim(body: Statement) -> Claim {
    Claim { subject: ClaimSubject::Folding, name: "trial".to_owned(), types: String::new(), body }
}

#[test]
fn wrong_masks_are_refuted() {
    let wrong = |opcode| match reach(opcode) {
        Reach::Bits(bits) => Reach::Bits(bits >> 1),
        Reach::Of(_) | Reach::Left | Reach::Right | Reach::Any => Reach::Bits(1),
        Reach::Both(..) => Reach::Bits(2),
        Reach::Either(first, second) => Reach::Both(first, second),
    };
    let mut count = 0;
    for opcode in Opcode::ALL.iter().filter(|o| reach(**o) != Reach::Any) {
        for typing in typings(*opcode) {
            refuted(&claim(Statement::Masks(typing, wrong(*opcode))));
            count += 1;
        }
    }
    assert!(count > 50, "{count} masks");
    // A sign extension sets bits that its operand lacks.
    let signed =
        typings(Opcode::Sextend).into_iter().map(|t| claim(Statement::Masks(t, Reach::Of(0))));
    signed.for_each(|c| drop(refuted(&c)));
}

#[test]
fn operations_that_do_not_commute_are_refuted() {
    for opcode in [
        Opcode::Sub,
        Opcode::Shl,
        Opcode::Slt,
        Opcode::Udiv,
        Opcode::Fsub,
        Opcode::Flt,
        Opcode::Fcopysign,
    ] {
        typings(opcode).into_iter().for_each(|t| drop(refuted(&claim(Statement::Swap(t)))));
    }
}

#[test]
fn divisors_that_trap_are_refuted() {
    for typing in typings(Opcode::Sdiv) {
        for divisor in [0, typing.ty.mask()] {
            let bodies = Statement::Divisors(typing.clone(), vec![1, 2, divisor]);
            let expected = format!("sdiv by {divisor:#x}");
            assert!(refuted(&claim(bodies)).iter().all(|values| values.contains(&expected)));
        }
    }
}

/// One wrong constant among many is found and named.
#[test]
fn wrong_folding_is_refuted() {
    let mut damaged = 0;
    for original in claims(7, 20)
        .into_iter()
        .filter(|c| c.subject == ClaimSubject::Folding && c.types.len() < 12)
    {
        let Statement::Cases(typing, mut cases) = original.body else {
            panic!("{} has no cases", original.name)
        };
        let at = cases.len() / 3;
        let case: &mut FoldingCase = &mut cases[at];
        case.gives = case.gives.map(|bits| bits ^ 1).or(Ok(0));
        let operands: Vec<String> = case.operands.iter().map(|bits| format!("{bits:#x}")).collect();
        let expected = format!("{} of {}: computed", typing.opcode.name(), operands.join(", "));
        let found = refuted(&claim(Statement::Cases(typing, cases)));
        assert!(found.iter().all(|values| values.contains(&expected)), "{found:?}");
        damaged += 1;
    }
    assert!(damaged > 50, "{damaged} operations");
}

#[test]
fn single_slips_of_folding_are_refuted() {
    let wrong = |opcode, ty, operands: &[u64], gives| {
        let typing = typings(opcode).into_iter().find(|t| t.ty == ty).expect("a typing");
        refuted(&claim(Statement::Cases(
            typing,
            vec![FoldingCase { operands: operands.to_vec(), gives }],
        )));
    };
    let (nan, minus_zero) = (0x7fc0_0000, 0x8000_0000);
    // A NaN that is not canonical, the sign of zero, ties, another kind of trap, a missing trap,
    // and a needless trap.
    wrong(Opcode::Fadd, Type::F32, &[nan | 1, 0], Ok(nan | 1));
    wrong(Opcode::Fsub, Type::F32, &[0x7f80_0000, 0x7f80_0000], Ok(nan | minus_zero));
    wrong(Opcode::Fmin, Type::F32, &[0, minus_zero], Ok(0));
    wrong(Opcode::Fmax, Type::F32, &[minus_zero, 0], Ok(minus_zero));
    wrong(Opcode::Fnearest, Type::F32, &[0x4020_0000], Ok(0x4040_0000));
    wrong(Opcode::Sdiv, Type::I32, &[1, 0], Err(TrapKind::IntegerOverflow));
    wrong(Opcode::Sdiv, Type::I8, &[0x80, 0xff], Ok(0x80));
    wrong(Opcode::Srem, Type::I8, &[0x80, 0xff], Err(TrapKind::IntegerOverflow));
    wrong(Opcode::Add, Type::I8, &[1, 1], Err(TrapKind::DivisionByZero));
    wrong(Opcode::SintFromFloat, Type::I32, &[nan], Err(TrapKind::IntegerOverflow));
}

/// A guard that no value satisfies would prove anything, so the claim must stay undecided.
#[test]
fn a_claim_about_no_values_is_not_proved() {
    let empty = Rule { guard: Guard::CCoversX, ..rule(Opcode::Add, X0, Term::Zero) };
    for claim in rule_claims(&empty) {
        for verdict in verdicts(&claim) {
            assert_eq!(verdict, SolverVerdict::Undecided("no values satisfy the guard".to_owned()));
        }
    }
}

/// `x % d` is `x - d * (x / d)`, here with `d = y | 1`. These solvers do not prove it at 64 bits,
/// and must give up within the time limit.
#[test]
fn a_solver_that_gives_up_proves_nothing() {
    use Opcode::{Eq, Mul, Or, Sub, Udiv, Urem};
    use Pat::{One, X, Y};
    const D: Pat = Pat::Op(Or, &[Y, One]);
    let operands =
        &[Pat::Op(Urem, &[X, D]), Pat::Op(Sub, &[X, Pat::Op(Mul, &[D, Pat::Op(Udiv, &[X, D])])])];
    let claims = rule_claims(&rule(Eq, operands, Term::One));
    let hard = claims.iter().find(|c| c.types.starts_with("X: i64")).expect("at 64 bits");
    for solver in found() {
        let verdict = prove(&solver, hard, SolverLimits { seconds: 1, ..SolverLimits::default() });
        assert!(matches!(verdict, SolverVerdict::Undecided(_)), "{} says {verdict}", solver.name);
    }
    // The rule holds, and at 8 bits the solvers prove it.
    assert_proved(claims.iter().find(|c| c.types.starts_with("X: i8")).expect("at 8 bits"));
}

#[test]
fn a_solver_without_memory_proves_nothing() {
    let claim = &rule_claims(&RULES[0])[0];
    for solver in found() {
        let verdict =
            prove(&solver, claim, SolverLimits { megabytes: 4, ..SolverLimits::default() });
        assert!(matches!(verdict, SolverVerdict::Undecided(_)), "{} says {verdict}", solver.name);
    }
}

/// A table, the file of verdicts that the command writes for it, and the rules that a module takes
/// over: a rule that the solvers refute is named, and a table with an error writes no file.
#[test]
fn the_command_proves_the_table_of_an_embedder() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("declared");
    std::fs::create_dir_all(&folder).expect("the folder of temporary files");
    let [table, verdicts] = ["table", "verdicts"].map(|name| folder.join(name));
    let run = |text: &str| {
        std::fs::write(&table, text).expect("written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_osier-provers"));
        command.arg("rules").arg(&table).arg("--verdicts").arg(&verdicts);
        let output = command.output().expect("the command starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said, std::fs::read_to_string(&verdicts).unwrap_or_default())
    };
    let good = "func @f(i64) -> i64\n\
         rule unrotate(x: i64): rotr.i64(rotl.i64(x, 8), 8) => x\n\
         rule half(x: i8, y: i8): sub.i8(or.i8(x, y), and.i8(x, y)) => xor.i8(x, y)\n\
         rule moved(c: i32, x: f64, y: f64): select.f64(c, x, select.f64(c, y, x)) => x\n\
         rule null(x: externref): xor.i32(ref_is_null.externref(x), ref_is_null.externref(x)) => 0\n\
         axiom twice(x: i64): @f(@f(x)) => @f(x)\n";
    let module = "import func @f \"host\" \"f\" (i64) -> i64 effect(pure)\n";
    let module = ir::text::parse_module(module).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let accept = |text: &str, verdicts: &str| {
        let table = RuleTable::read(text).unwrap_or_else(|errors| panic!("{}", errors[0]));
        table.accept(verdicts, &module)
    };
    let (code, said, first) = run(good);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(accept(good, &first).map(|rules| rules.rules().len()), Ok(5));
    // Only one pair of operands in 2^64 refutes the rule, which no evaluation would find.
    let wrong =
        format!("{good}rule rare(x: i32, y: i32): eq.i32(sub.i32(mul.i32(x, 77), y), 91) => 0");
    let (code, said, second) = run(&wrong);
    assert_eq!((code, said.as_str()), (Some(1), ""));
    let errors = accept(&wrong, &second).expect_err("a rule is refuted");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].name, "rare");
    assert_eq!(errors[0].fault, RuleFault::NotProved(RuleVerdict::Refuted));
    assert!(second.lines().last().is_some_and(|line| line.contains(" ; z3: ")), "{second}");
    // The file stays as it was.
    let (code, said, third) = run(&format!("{good}rule rare(x: i32): nothing.i32(x) => 0"));
    assert_eq!(code, Some(2));
    assert!(said.contains("line 7: rare: `nothing` is no operation"), "{said}");
    assert_eq!(third, second);
}
