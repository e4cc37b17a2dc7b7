//! A test that every operation has a meaning. It needs no solver.

use super::{SmtValue, has_meaning, meaning};
use crate::encoder::SmtTerms;
use crate::typing::typings;
use easy_smt::{ContextBuilder, SExpr};
use ir::Opcode;
use std::collections::BTreeSet;

/// Writes the meaning of every operation at all types, which panics for a missing one.
#[test]
fn every_operation_on_values_has_a_meaning() {
    let context = ContextBuilder::new().build().expect("a context without a solver");
    let t = SmtTerms::new(&context);
    let mut written = 0;
    for opcode in Opcode::ALL.iter().copied().filter(|o| has_meaning(*o)) {
        let typings = typings(opcode);
        assert!(!typings.is_empty(), "{} has no types", opcode.name());
        for typing in typings {
            let operands: Vec<SExpr> =
                ["a", "b", "c"].iter().take(typing.operands.len()).map(|n| t.atom(n)).collect();
            let meaning = meaning(t, &typing, &operands);
            assert_eq!(
                opcode.can_trap() && ir::eval::is_evaluated(opcode),
                !meaning.traps.is_empty(),
                "{typing:?}"
            );
            match meaning.value {
                SmtValue::Bits(_) => {}
                SmtValue::Number(_) => assert!(typing.result.is_float(), "{typing:?}"),
            }
            written += 1;
        }
    }
    assert!(written > 200, "{written} meanings");
}

/// Two operations with one meaning would be the same, so a copied row left unchanged fails here.
#[test]
fn meanings_differ() {
    let context = ContextBuilder::new().build().expect("a context without a solver");
    let t = SmtTerms::new(&context);
    let mut seen = BTreeSet::new();
    let mut count = 0;
    for opcode in Opcode::ALL.iter().copied().filter(|o| has_meaning(*o)) {
        // The widest types, at which the fewest operations agree.
        let Some(typing) = typings(opcode).pop() else { continue };
        let operands: Vec<SExpr> =
            ["a", "b", "c"].iter().take(typing.operands.len()).map(|n| t.atom(n)).collect();
        let (SmtValue::Bits(term) | SmtValue::Number(term)) = meaning(t, &typing, &operands).value;
        let loads = matches!(opcode.shape(), ir::Shape::Load(_));
        let traps = opcode.can_trap();
        let is_new =
            seen.insert((typing.operands, loads, traps, context.display(term).to_string()));
        assert!(is_new, "{} has the meaning of another operation", opcode.name());
        count += 1;
    }
    assert!(count > 60, "{count} operations");
}
