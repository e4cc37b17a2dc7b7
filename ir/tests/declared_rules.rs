//! Rules that an embedder declares: tables, verdicts, and the errors that name a rule.

use ir::Module;
use ir::rules::declared::{
    ModuleRules, RuleError, RuleFault, RuleTable, RuleVerdict, verdict_header, verdict_line,
};
use ir::text::parse_module;
use std::convert::Infallible;
use std::sync::Arc;

const MODULE: &str = r#"
import func @ask "host" "ask" (i64) -> i64
import func @box "host" "box" (i64) -> i64 effect(pure)
import func @unbox "host" "unbox" (i64) -> i64 effect(pure)
func @f(%x: i64) -> i64 {
entry:
  return %x
}
"#;

const TABLE: &str = "; What a language knows of its values.
func @box(i64) -> i64
func @unbox( i64 )->i64
rule high(x: i64): ushr.i64(shl.i64( x, 8), 8) => and.i64(x, 0xffffffffffffff) ; a mask
rule factor(x: i32,y: i32, z: i32): \
add.i32(mul.i32(x,y), mul.i32(x, z)) => mul.i32(x, add.i32(y, z))

axiom unbox-box(x: i64): @unbox(@box(x)) => x
";

fn module() -> Module {
    parse_module(MODULE).unwrap_or_else(|errors| panic!("{}", errors[0]))
}

fn table(text: &str) -> RuleTable {
    RuleTable::read(text).unwrap_or_else(|errors| panic!("{}", errors[0]))
}

/// The file of verdicts that says `verdict` about every rule of a table.
fn verdicts(table: &RuleTable, verdict: RuleVerdict) -> String {
    let rules = table.rules().iter().filter(|rule| !rule.is_axiom);
    let lines = rules.map(|rule| verdict_line(rule, verdict, "by hand"));
    let all: Vec<String> = [verdict_header().to_owned()].into_iter().chain(lines).collect();
    all.join("\n")
}

fn accepted(text: &str) -> ModuleRules {
    let table = table(text);
    let rules = table.accept(&verdicts(&table, RuleVerdict::Proved), &module());
    rules.unwrap_or_else(|errors| panic!("{}", errors[0]))
}

/// The errors of accepting a table with a file of verdicts.
fn errors(text: &str, verdicts: &str) -> Vec<RuleError> {
    table(text).accept(verdicts, &module()).expect_err("the rules are rejected")
}

#[test]
fn the_normal_form_of_a_table_reads_back() {
    let first = table(TABLE);
    let texts: Vec<&str> = first.rules().iter().map(|rule| rule.text()).collect();
    assert_eq!(
        texts,
        [
            "rule high(x: i64): ushr.i64(shl.i64(x, 8), 8) => and.i64(x, 72057594037927935)",
            "rule factor(x: i32, y: i32, z: i32): add.i32(mul.i32(x, y), mul.i32(x, z)) => \
             mul.i32(x, add.i32(y, z))",
            "axiom unbox-box(x: i64): @unbox(@box(x)) => x",
        ]
    );
    let functions = "func @box(i64) -> i64\nfunc @unbox(i64) -> i64\n";
    let again = table(&format!("{functions}{}", texts.join("\n")));
    let again: Vec<&str> = again.rules().iter().map(|rule| rule.text()).collect();
    assert_eq!(again, texts);
}

#[test]
fn every_error_of_a_table_is_located_and_named() {
    let wrong = [
        ("rules a(x: i64): x => x", "a line begins with"),
        ("rule (x: i64): eqz.i64(x) => 1", "is not a name of the rule"),
        ("rule a(x: i65): eqz.i64(x) => 1", "`i65` is no type"),
        ("rule a(x: i64, x: i64): eqz.i64(x) => 1", "each with its own name"),
        ("rule a(x: i64): x => x", "the left side is no operation"),
        ("rule a(x: i64): eqz.i64(x) = 1", "`=>` is missing"),
        ("rule a(x: i64): eqz.i64(x) => 1 1", "`1` is too much"),
        ("rule a(x: i64): eqz.i64(y) => 1", "`y` is no variable and no literal of i64"),
        ("rule a(x: i64): and.i64(x, 1) => 0x1ffffffffffffffff", "no literal of i64"),
        ("rule a(x: i64): no.i64(x) => x", "`no` is no operation"),
        ("rule a(x: i64): eqz(x) => 1", "`eqz` has a wrong type"),
        ("rule a(x: i64): sdiv.i64(x, 1) => x", "`sdiv` is an operation that may trap"),
        ("rule a(x: i32): load.i32(x) => x", "`load` is an operation"),
        ("rule a(x: f64): fadd.f64(x, 0.0) => x", "no operation on integers"),
        ("rule a(x: i64): call_pure.i64(x) => x", "a call is written"),
        ("rule a(x: i64): add.i32(x, 0) => 1", "takes no operands (i64, i32)"),
        ("rule a(x: i64): eqz.i64(x) => x", "has type i32, the right i64"),
        ("axiom a(x: i64): @box(x) => x", "no earlier line declares @box"),
        ("axiom a(x: i64): eqz.i64(x) => 1", "an axiom is about functions"),
        ("rule a(x: i64, y: i64): eqz.i64(x) => 1", "the left side does not contain `y`"),
        ("rule a(x: i64): shl.i64(x, 1) => add.i64(x, x)", "`x` occurs more often on the right"),
        ("rule a(x: i64, y: i64): add.i64(x, y) => add.i64(y, x)", "not smaller than the left"),
        ("func @box(ref) -> i64", "takes no `ref`"),
        ("rule a(1: i64): and.i64(1, 1) => 1", "`1` is no name of a variable"),
        ("rule a(null: i64): and.i64(null, null) => null", "`null` is no name"),
    ];
    let deep = format!("rule a(x: i64): {}x{} => x", "bswap.i64(".repeat(9), ")".repeat(9));
    let wrong = wrong.into_iter().chain([(deep.as_str(), "at most 8 operations")]);
    for (line, message) in wrong {
        let text = format!("; first\nrule fine(x: i64): sub.i64(x, 0) => x\n{line}");
        let errors = RuleTable::read(&text).expect_err(line);
        assert_eq!(errors.len(), 1, "{line}: {errors:?}");
        let said = errors[0].to_string();
        assert!(errors[0].line == 3 && said.contains(message), "{line}: {said}");
    }
    let twice = "rule a(x: i64): sub.i64(x, 0) => x\nrule a(x: i64): add.i64(x, 0) => x\nno";
    let errors = RuleTable::read(twice).expect_err("two errors");
    let lines: Vec<u32> = errors.iter().map(|error| error.line).collect();
    assert_eq!(lines, [2, 3], "{errors:?}");
}

/// The recursion of the reader does not follow the text without bound.
#[test]
fn a_deep_term_is_an_error() {
    let text = format!("rule a(x: i64): {}", "eqz.i32(".repeat(1_000_000));
    let errors = RuleTable::read(&text).expect_err("too deep");
    assert!(errors[0].to_string().contains("at most 8 operations"), "{}", errors[0]);
}

#[test]
fn a_rule_without_the_verdict_proved_is_rejected_by_name() {
    let read = table(TABLE);
    let proved = verdicts(&read, RuleVerdict::Proved);
    let without = proved.lines().filter(|line| !line.contains("rule high"));
    let without = without.collect::<Vec<&str>>().join("\n");
    let found = errors(TABLE, &without);
    assert_eq!((found.len(), &*found[0].name), (1, "high"));
    assert_eq!(found[0].fault, RuleFault::Unproved);
    for verdict in [RuleVerdict::Refuted, RuleVerdict::Undecided] {
        let found = errors(TABLE, &verdicts(&read, verdict));
        let named: Vec<(&str, &RuleFault)> =
            found.iter().map(|error| (error.name.as_str(), &error.fault)).collect();
        let fault = RuleFault::NotProved(verdict);
        assert_eq!(named, [("high", &fault), ("factor", &fault)]);
    }
    // Without any verdicts, axioms alone are accepted.
    assert_eq!(errors(TABLE, "").len(), 2);
    let axioms: Vec<&str> = TABLE.lines().filter(|line| !line.starts_with("rule")).collect();
    let accepted = table(&axioms.join("\n")).accept("", &module());
    assert_eq!(accepted.map(|rules| rules.rules().len()), Ok(1));
}

/// A table that changed behind the proof.
#[test]
fn a_verdict_holds_for_its_own_claim_alone() {
    let proved = verdicts(&table(TABLE), RuleVerdict::Proved);
    for (from, to) in [("shl.i64( x, 8)", "shl.i64(x, 9)"), ("(x: i32,y: i32", "(y: i32,x: i32")] {
        let found = errors(&TABLE.replace(from, to), &proved);
        assert!(matches!(found[..], [RuleError { fault: RuleFault::Changed(_), .. }]), "{found:?}");
    }
}

#[test]
fn an_edited_line_of_verdicts_is_noticed() {
    let read = table(TABLE);
    let refuted = verdicts(&read, RuleVerdict::Refuted);
    let proved = verdicts(&read, RuleVerdict::Proved);
    let edited = [
        refuted.replace("refuted", "proved"),
        proved.replace("shl.i64(x, 8)", "shl.i64(x, 7)"),
        proved.replace("osier-verdicts 1", "osier-verdicts 2"),
        format!("{proved}\n{}", proved.lines().last().expect("a line")),
        format!("{proved}\nproved"),
    ];
    for text in edited {
        let found = errors(TABLE, &text);
        assert!(matches!(found[..], [RuleError { fault: RuleFault::Verdicts(_), .. }]), "{text}");
    }
}

/// Somebody computes the digest, too: the evaluation finds most wrong rules.
#[test]
fn a_false_rule_is_rejected_whatever_the_verdict() {
    let wrong = [
        "rule a(x: i64): sub.i64(x, 1) => x",
        "rule a(x: i64): ushr.i64(shl.i64(x, 8), 8) => and.i64(x, 0x7fffffffffffff)",
        "rule a(x: i32, y: i32): slt.i32(sub.i32(x, y), 0) => slt.i32(x, y)",
        "rule a(x: i64, y: i64, z: i64): or.i64(and.i64(x, y), and.i64(x, z)) => or.i64(x, y)",
        "rule a(x: i32): eq.i32(x, 0x12345678) => 0",
    ];
    for text in wrong {
        let read = table(text);
        let found = errors(text, &verdicts(&read, RuleVerdict::Proved));
        assert!(matches!(found[..], [RuleError { fault: RuleFault::False(_), .. }]), "{text}");
    }
}

#[test]
fn the_module_declares_the_functions_of_axioms() {
    let rejects = |from: &str, to: &str, wanted: &str| {
        let text = MODULE.replace(from, to);
        let module = parse_module(&text).unwrap_or_else(|errors| panic!("{}", errors[0]));
        let read = table(TABLE);
        let found = read.accept(&verdicts(&read, RuleVerdict::Proved), &module).expect_err(wanted);
        let said = found[0].to_string();
        assert!(said.contains("@box") && said.contains(wanted), "{said}");
    };
    rejects("@box ", "@bax ", "no such function");
    rejects(
        "(i64) -> i64 effect(pure)\nimport func @unbox",
        "(i64) -> i64 effect(reads)\nimport func @unbox",
        "`pure`",
    );
    rejects("\"box\" (i64)", "\"box\" (i32)", "declares it as (i32) -> i64");
}

#[test]
fn a_module_with_other_functions_takes_no_rules() {
    let rules = Arc::new(accepted(TABLE));
    let mut same = module();
    assert_eq!(same.use_rules(&rules), Ok(()));
    let other = MODULE.replace("import func @ask \"host\" \"ask\" (i64) -> i64\n", "");
    let mut other = parse_module(&other).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let error = other.use_rules(&rules).expect_err("the numbers differ");
    assert!(error.contains("@box: the module has another function"), "{error}");
    assert!(other.defined().all(|(_, body)| body.rules().is_none()));
}

/// The key of a version has its rules in it.
#[test]
fn versions_are_told_apart_by_their_rules() {
    let base = module().defined().next().expect("a function").1.clone();
    let with = |text: &str| {
        base.clone().with_rules(&Arc::new(accepted(text))).expect("the function is a base")
    };
    let (one, same) = (with(TABLE), with(TABLE));
    let other =
        with(&TABLE.replace("unbox-box(x: i64): @unbox(@box(x)) => x", "a(x: i64): @box(x) => 0"));
    assert!(one.history() == same.history() && one.same_as(&same).is_ok());
    assert!(one.history() != base.history() && one.history() != other.history());
    assert!(one.same_as(&other).is_err() && one.same_as(&base).is_err());
}

#[test]
fn a_false_axiom_is_named() {
    let rules = accepted(&format!("{TABLE}axiom even(x: i64): and.i64(@box(x), 1) => 0"));
    let call = |func: ir::Func, args: &[u64]| {
        // `@box` is function 1: it doubles, so `@unbox` loses the highest bit.
        let is_box = func.as_u32() == 1;
        Ok::<u64, Infallible>(if is_box { args[0] << 1 } else { args[0] >> 1 })
    };
    let Ok(found) = rules.test_axioms(&[], call);
    let failure = found.expect_err("a value with the highest bit");
    assert_eq!((failure.name.as_str(), failure.values[0] >> 63), ("unbox-box", 1), "{failure}");
    let call = |func: ir::Func, args: &[u64]| {
        Ok::<u64, Infallible>(args[0].rotate_left(if func.as_u32() == 1 { 1 } else { 63 }))
    };
    let Ok(found) = rules.test_axioms(&[], call);
    assert_eq!(found.expect_err("an odd box").name, "even");
}
