//! Forgeries about rules that the embedder declares.

use super::draft::{Draft, Wrong};
use check::verdict::Check;
use ir::rules::RULES;
use ir::rules::declared::{ModuleRules, RuleTable, RuleVerdict, verdict_header, verdict_line};
use ir::{Function, Module};
use std::sync::Arc;
use transition::Side::{After, Before};
use transition::certificate::{By, NO_TERM, TermId};

/// Rules 0 to 4. The solvers would prove the rules; the embedder answers for the axioms.
const TABLE: &str = "
func @one(i32) -> i32
func @other(i32) -> i32
axiom undo(a: i32): @other(@one(a)) => a
axiom twice(a: i32): @one(@one(a)) => @other(a)
rule high(a: i32): shl.i32(ushr.i32(a, 8), 8) => and.i32(a, -256)
rule factor(a: i32, b: i32, c: i32): \
add.i32(mul.i32(a, b), mul.i32(a, c)) => mul.i32(a, add.i32(b, c))
rule shift(a: i32, b: i32): sub.i32(shl.i32(a, b), shl.i32(a, b)) => 0
";

/// The rules of a table, as if the solvers had proved all of them.
pub(crate) fn declared(table: &str, module: &Module) -> Arc<ModuleRules> {
    let table = RuleTable::read(table).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let line = |rule| verdict_line(rule, RuleVerdict::Proved, "");
    let mut lines = vec![verdict_header().to_owned()];
    lines.extend(table.rules().iter().filter(|rule| !rule.is_axiom).map(line));
    let rules = table.accept(&lines.join("\n"), module);
    Arc::new(rules.unwrap_or_else(|errors| panic!("{}", errors[0])))
}

/// Two versions with the rules of the table.
fn draft(before: &str, after: &str) -> Draft {
    let mut draft = super::draft(before, after);
    let rules = declared(TABLE, &draft.module);
    let with = |version: Function| version.with_rules(&rules).expect("both versions are bases");
    draft.versions = draft.versions.map(with);
    draft
}

/// A copy of a term that belongs to a class by a declared rule.
struct Reason<'r> {
    rule: u32,
    swapped: u8,
    inner: &'r [TermId],
    result: TermId,
}

impl Reason<'_> {
    fn add(&self, draft: &mut Draft, of: TermId, class: TermId) -> TermId {
        let (kind, ty) = (draft.terms[of as usize].kind.clone(), draft.terms[of as usize].ty);
        let Reason { rule, swapped, inner, result } = *self;
        let by = By::Rule { rule: RULES.len() as u32 + rule, swapped, inner: inner.into(), result };
        draft.add(kind, ty, Some(class), by)
    }
}

fn plain(rule: u32, inner: &[TermId]) -> Reason<'_> {
    Reason { rule, swapped: 0, inner, result: NO_TERM }
}

/// A body that calls two functions in turn.
fn calls(first: &str, second: &str) -> String {
    format!("%a = call_pure.i32 @{first}(%x)\n%b = call_pure.i32 @{second}(%a)\nreturn %b\n")
}

/// The first version returns an argument, the second `second(first(x))`, by a reason for it.
fn undone(first: &str, second: &str, result: &str, rule: u32) -> Draft {
    let before = format!("%p = const.i32 0\n%q = const.i32 0\nreturn %{result}\n");
    let mut draft = draft(&before, &calls(first, second));
    let class = draft.term(Before, result);
    let (a, b) = (draft.term(After, "a"), draft.term(After, "b"));
    let b = plain(rule, &[a]).add(&mut draft, b, class);
    draft.is(After, "b", b);
    draft
}

/// A right pair: `other(one(x))` is `x`.
pub(crate) fn right() -> Wrong {
    undone("one", "other", "x", 0).done(Check::RulePattern, "nothing is wrong")
}

fn patterns() -> [Wrong; 5] {
    let before = "%p = const.i32 0\n%q = const.i32 0\nreturn %x\n";
    let after = "%a = call_pure.i32 @one(%x)\n%b = call_pure.i32 @other(%y)\nreturn %b\n";
    let mut inner = draft(before, after);
    let x = inner.term(Before, "x");
    let (a, b) = (inner.term(After, "a"), inner.term(After, "b"));
    let b = plain(0, &[a]).add(&mut inner, b, x);
    inner.is(After, "b", b);

    let mut constant = draft(
        "%e = const.i32 8\n%n = const.i32 9\n%m = const.i32 -256\n\
         %r = and.i32 %x, %m\nreturn %r\n",
        "%e = const.i32 8\n%n = const.i32 9\n%a = ushr.i32 %x, %n\n\
         %b = shl.i32 %a, %e\nreturn %b\n",
    );
    let result = constant.term(Before, "r");
    let (a, b) = (constant.term(After, "a"), constant.term(After, "b"));
    let reason = Reason { rule: 2, swapped: 0, inner: &[a], result };
    let b = reason.add(&mut constant, b, result);
    constant.is(After, "b", b);

    let mut swapped = draft(
        "%p = const.i32 0\n%q = const.i32 0\n%c = const.i32 0\nreturn %c\n",
        "%a = shl.i32 %x, %y\n%b = shl.i32 %y, %x\n%c = sub.i32 %a, %b\nreturn %c\n",
    );
    let zero = swapped.term(Before, "c");
    let [a, b, c] = ["a", "b", "c"].map(|name| swapped.term(After, name));
    let reason = Reason { rule: 4, swapped: 0b100, inner: &[a, b], result: NO_TERM };
    let c = reason.add(&mut swapped, c, zero);
    swapped.is(After, "c", c);

    [
        undone("one", "one", "x", 0).done(Check::RulePattern, "a call of another function"),
        undone("one", "other", "x", 5).done(Check::RulePattern, "a rule behind the end"),
        inner.done(Check::RulePattern, "an inner call of another operand"),
        constant.done(Check::RulePattern, "a shift by another constant"),
        swapped.done(Check::RulePattern, "swapped operands of a shift, which does not commute"),
    ]
}

fn results() -> [Wrong; 3] {
    let mut product = draft(
        "%p = const.i32 0\n%s = add.i32 %x, %y\n%r = mul.i32 %y, %s\nreturn %r\n",
        "%a = mul.i32 %x, %x\n%b = mul.i32 %x, %y\n%c = add.i32 %a, %b\nreturn %c\n",
    );
    let (sum, result) = (product.term(Before, "s"), product.term(Before, "r"));
    let [a, b, c] = ["a", "b", "c"].map(|name| product.term(After, name));
    let reason = Reason { rule: 3, swapped: 0, inner: &[a, b, sum], result };
    let c = reason.add(&mut product, c, result);
    product.is(After, "c", c);

    let before = "%p = const.i32 0\n%r = call_pure.i32 @one(%x)\nreturn %r\n";
    let mut call = draft(before, &calls("one", "one"));
    let result = call.term(Before, "r");
    let b = call.term(After, "b");
    let reason = Reason { rule: 1, swapped: 0, inner: &[result], result };
    let b = reason.add(&mut call, b, result);
    call.is(After, "b", b);
    [
        undone("one", "other", "y", 0).done(Check::RuleResult, "x unboxed to y"),
        product.done(Check::RuleResult, "a common factor that is another one"),
        call.done(Check::RuleResult, "a call of another function on the right side"),
    ]
}

/// The second version has no rules, so no rule of the first version may serve the pair.
fn versions() -> Wrong {
    let mut lone = undone("one", "other", "x", 0);
    let text = calls("one", "other");
    lone.versions.after = super::draft(&text, &text).versions.after;
    lone.done(Check::Versions, "rules of one version alone")
}

pub(super) fn all() -> Vec<Wrong> {
    patterns().into_iter().chain(results()).chain([versions()]).collect()
}
