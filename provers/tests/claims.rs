//! The claims, without a solver: no rule, width or operation is missing.

use ir::rules::{Guard, Pat, RULES, Reach, Rule, Term, reach};
use ir::{Opcode, Type};
use osier_provers::typing::{instances, typings};
use osier_provers::{Claim, ClaimSubject, claims, rule_claims};
use std::collections::BTreeSet;

fn of(subject: ClaimSubject, claims: &[Claim]) -> Vec<&Claim> {
    claims.iter().filter(|c| c.subject == subject).collect()
}

#[test]
fn every_rule_is_claimed_and_makes_sound_code() {
    for rule in RULES {
        let claims = rule_claims(rule);
        assert!(!claims.is_empty(), "{} fits no types: it is never applied", rule.name);
        assert!(
            claims.iter().all(|c| !c.is_ill_formed()),
            "{} makes code that is not well-formed",
            rule.name
        );
    }
}

/// A rule without a type restriction or an agreement between types is claimed at every width.
#[test]
fn rules_are_claimed_at_every_width() {
    let types = |name: &str| -> BTreeSet<Option<Type>> {
        let rule =
            RULES.iter().find(|r| r.name == name).unwrap_or_else(|| panic!("no rule {name}"));
        instances(rule).iter().map(|i| i.variables.x).collect()
    };
    let integers: BTreeSet<_> = [Type::I8, Type::I16, Type::I32, Type::I64].map(Some).into();
    for name in
        ["add-zero", "mul-mul", "sdiv-one", "not-slt", "eq-same", "and-known", "select-bool"]
    {
        assert_eq!(types(name), integers, "{name}");
    }
    assert_eq!(types("select-same"), Type::ALL.map(Some).into(), "a selection moves floats too");
    assert_eq!(types("bool-ne-zero"), [Some(Type::I32)].into(), "a truth value is an i32");
    let rule = RULES.iter().find(|r| r.name == "wrap-sextend").expect("wrap-sextend");
    assert_eq!(instances(rule).len(), 6, "8 bits to 16, 32, 64 and back, 16 to 32, 64, 32 to 64");
}

/// The passes match operands of commutative operations in either order, so both are claimed.
#[test]
fn both_orders_are_claimed() {
    let orders = |name: &str| {
        let rule =
            RULES.iter().find(|r| r.name == name).unwrap_or_else(|| panic!("no rule {name}"));
        instances(rule)[0].left.len()
    };
    assert_eq!(orders("sub-zero"), 1);
    assert_eq!(orders("add-zero"), 2);
    assert_eq!(orders("add-sub"), 2);
    assert_eq!(orders("add-add"), 4);
}

#[test]
fn every_operation_on_values_has_its_folding_claimed() {
    let all = claims(1, 10);
    let folding: BTreeSet<&str> =
        of(ClaimSubject::Folding, &all).iter().map(|c| c.name.as_str()).collect();
    let evaluated = || Opcode::ALL.iter().copied().filter(|o| ir::eval::is_evaluated(*o));
    assert_eq!(folding, evaluated().map(Opcode::name).collect());
    for opcode in evaluated() {
        let types: BTreeSet<Type> = typings(opcode).iter().map(|t| t.ty).collect();
        let allowed = Type::ALL.into_iter().filter(|t| opcode.allows_type(*t)).collect();
        assert_eq!(types, allowed, "the types of {}", opcode.name());
    }
}

#[test]
fn every_rule_about_masks_is_claimed() {
    let all = claims(1, 10);
    let claimed: BTreeSet<&str> =
        of(ClaimSubject::Masks, &all).iter().map(|c| c.name.as_str()).collect();
    for opcode in Opcode::ALL.iter().filter(|o| reach(**o) != Reach::Any) {
        assert!(claimed.contains(opcode.name()), "{} says which bits are possible", opcode.name());
    }
    // The amount of a shift is arbitrary; signed loads have no mask rule.
    assert!(claimed.contains("shl") && claimed.contains("uload8") && !claimed.contains("sload8"));
}

#[test]
fn traps_are_among_the_cases() {
    let all = claims(1, 10);
    let traps = |name: &str| -> usize {
        let folding = of(ClaimSubject::Folding, &all).into_iter().filter(|c| c.name == name);
        folding.map(|c| c.cases().iter().filter(|case| case.gives.is_err()).count()).sum()
    };
    for name in ["sdiv", "udiv", "srem", "urem", "sint_from_float", "uint_from_float"] {
        assert!(traps(name) > 10, "{name} traps in {} cases", traps(name));
    }
    assert_eq!(traps("sint_from_float_sat"), 0);
}

/// One seed gives the same random constants in every execution.
#[test]
fn a_seed_decides_the_cases() {
    let cases = |seed| claims(seed, 10).iter().flat_map(|c| c.cases().to_vec()).collect::<Vec<_>>();
    assert_eq!(cases(1), cases(1));
    assert_ne!(cases(1), cases(2));
}

/// A rule is ill-formed if its sides have different types, or if a constant does not fit its type.
#[test]
fn ill_formed_rules_are_noticed() {
    let rule = |opcode, operands, result| Rule {
        name: "wrong",
        opcode,
        ty: None,
        operands,
        guard: Guard::Always,
        result,
    };
    let compare = rule_claims(&rule(Opcode::Add, &[Pat::X, Pat::Zero], Term::Unary(Opcode::Eqz)));
    assert!(compare.iter().any(Claim::is_ill_formed));
    let float = rule_claims(&rule(Opcode::Add, &[Pat::X, Pat::Zero], Term::Unary(Opcode::Fneg)));
    assert!(!float.is_empty() && float.iter().all(Claim::is_ill_formed));
    let constant = Term::WithConstant(Opcode::And, ir::rules::Const::Bits(0x100));
    let narrow = rule_claims(&rule(Opcode::Sub, &[Pat::X, Pat::Zero], constant));
    assert_eq!(
        narrow.iter().map(Claim::is_ill_formed).collect::<Vec<_>>(),
        [true, false, false, false]
    );
}

/// The pass compares constants as bits, so a variable at two places might match constants of two
/// types. The claims assume one type.
#[test]
fn a_constant_of_a_rule_stands_at_one_place() {
    fn count(pats: &[Pat], which: fn(&Pat) -> bool) -> usize {
        let of = |pat: &Pat| match pat {
            Pat::Op(_, pats) => count(pats, which),
            other => usize::from(which(other)),
        };
        pats.iter().map(of).sum()
    }
    for rule in RULES {
        assert!(count(rule.operands, |p| matches!(p, Pat::C)) <= 1, "C in {}", rule.name);
        assert!(count(rule.operands, |p| matches!(p, Pat::D)) <= 1, "D in {}", rule.name);
    }
}

/// The table of claims in `docs/testing.md`.
fn figures() -> String {
    let all = claims(1, 200);
    let lists: usize = of(ClaimSubject::Folding, &all).iter().map(|c| c.size()).sum();
    let rows = [
        ("rules", ClaimSubject::Rule, format!(", of {} rules", RULES.len())),
        ("masks", ClaimSubject::Masks, String::new()),
        ("commutativity", ClaimSubject::Commutativity, String::new()),
        ("division", ClaimSubject::Division, String::new()),
        ("folding", ClaimSubject::Folding, format!(", on {lists} lists of operands")),
    ];
    let mut table = "| claims | number |\n|---|---|\n".to_owned();
    for (name, subject, more) in rows {
        table += &format!("| {name} | {}{more} |\n", of(subject, &all).len());
    }
    table + &format!("| all | {} |\n", all.len())
}

/// `docs/testing.md` states the numbers of claims and rules. `OIR_BLESS=1` writes them.
#[test]
fn the_manual_has_the_figures() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/testing.md");
    let manual = std::fs::read_to_string(&path).expect("docs/testing.md");
    let [begin, end] = ["begin", "end"].map(|word| format!("<!-- {word} generated: claims -->\n"));
    let (before, rest) = manual.split_once(&begin).expect("the beginning of the table");
    let (table, after) = rest.split_once(&end).expect("the end of the table");
    let fresh = figures();
    if std::env::var_os("OIR_BLESS").is_some_and(|value| value == "1") {
        let written = format!("{before}{begin}{fresh}{end}{after}");
        std::fs::write(&path, written).expect("docs/testing.md can be written");
        return;
    }
    assert_eq!(table, fresh, "docs/testing.md is stale, run with OIR_BLESS=1");
}
