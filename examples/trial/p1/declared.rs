//! Programs with rules that an embedder declares. The tests of `tests/rules.rs` use them, too.

use ir::Module;
use ir::rules::declared::{ModuleRules, RuleTable, RuleVerdict, verdict_header, verdict_line};
use std::sync::Arc;
use verify::prng::Prng;

/// The rules of a table, as if the solvers had proved all of them.
pub(crate) fn accepted(table: &str, module: &Module) -> Arc<ModuleRules> {
    let table = RuleTable::read(table).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let mut verdicts = vec![verdict_header().to_owned()];
    for rule in table.rules().iter().filter(|rule| !rule.is_axiom) {
        verdicts.push(verdict_line(rule, RuleVerdict::Proved, ""));
    }
    let rules = table.accept(&verdicts.join("\n"), module);
    Arc::new(rules.unwrap_or_else(|errors| panic!("{}", errors[0])))
}

/// Identities that `ir::rules::RULES` lacks: left sides of one to three operations, right sides of
/// none to two, operations that commute and others.
pub(crate) const IDENTITIES: &str = "
rule absorb(x: i32, y: i32): or.i32(and.i32(x, y), x) => x
rule absorb2(x: i32, y: i32): and.i32(or.i32(x, y), x) => x
rule bridge(x: i32, y: i32, z: i32): add.i32(sub.i32(x, y), sub.i32(y, z)) => sub.i32(x, z)
rule back(x: i32, y: i32): sub.i32(x, sub.i32(x, y)) => y
rule zero(x: i32, y: i32): eqz.i32(sub.i32(x, y)) => eq.i32(x, y)
rule negative(x: i32): mul.i32(x, -1) => sub.i32(0, x)
rule factor(x: i32, y: i32, z: i32): \
add.i32(mul.i32(x, y), mul.i32(x, z)) => mul.i32(x, add.i32(y, z))
rule carry(x: i32, y: i32): add.i32(xor.i32(x, y), shl.i32(and.i32(x, y), 1)) => add.i32(x, y)
rule half(x: i32, y: i32): sub.i32(or.i32(x, y), and.i32(x, y)) => xor.i32(x, y)
";

/// A loop whose body has random operations, of which many match the left sides.
pub(crate) fn program(seed: u64) -> String {
    let mut prng = Prng::new(seed);
    let mut text = String::from(
        "memory @m 1\nfunc @f(%a: i32, %b: i32) -> i32 {\nentry:\n  %n = const.i32 6\n  \
         %one = const.i32 1\n  %ones = const.i32 -1\n  %zero = const.i32 0\n  \
         jump head(%zero, %a, %b)\nhead(%i: i32, %p: i32, %q: i32):\n",
    );
    let mut values: Vec<String> = ["a", "b", "p", "q", "i"].map(str::to_owned).to_vec();
    for number in 0..24 {
        // Few distinct operands, and recent values, so that patterns are frequent.
        let mut pick = || values[values.len() - 1 - prng.index(values.len().min(7))].clone();
        let (x, y) = (pick(), pick());
        let name = format!("v{number}");
        let operation = match prng.index(12) {
            // Of the rules, or another one.
            0 => format!("mul.i32 %{x}, %{}", ["ones", "n"][prng.index(2)]),
            1 => format!("shl.i32 %{x}, %{}", ["one", "n"][prng.index(2)]),
            2 | 3 => format!("and.i32 %{x}, %{y}"),
            4 | 5 => format!("or.i32 %{x}, %{y}"),
            6 | 7 => format!("sub.i32 %{x}, %{y}"),
            8 | 9 => format!("add.i32 %{x}, %{y}"),
            10 => format!("eqz.i32 %{x}"),
            _ => format!("mul.i32 %{x}, %{y}"),
        };
        text.push_str(&format!("  %{name} = {operation}\n"));
        values.push(name);
        if prng.chance(15) {
            let value = &values[values.len() - 1];
            text.push_str(&format!("  store.i32 @m[%zero + {}], %{value}\n", 4 * number));
        }
    }
    let [p, q] = [1, 4].map(|back| values[values.len() - back].clone());
    text.push_str(&format!(
        "  %j = add.i32 %i, %one\n  %goes = slt.i32 %j, %n\n  \
         br_if %goes, head(%j, %{p}, %{q}), done\ndone:\n  %r = xor.i32 %{p}, %{q}\n  \
         return %r\n}}\n"
    ));
    text
}
