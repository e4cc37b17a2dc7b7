//! Wrong entries and wrong versions are found, and reported by their kind.

use crate::oracles::case::{
    Case, LOOP, STRAIGHT, anchors, copies, copy, edited, identity, late, sorted,
};
use interp::NoHost;
use ir::{Function, InstSpec, Opcode, TrapKind, Type, Value};
use osier_verify::generate::{Weights, generate};
use osier_verify::prng::Prng;
use osier_verify::state_oracle::{
    Difference, FunctionPair, Oracle, OracleOptions, OracleSetupError,
};
use std::collections::BTreeSet;
use transition::Side;
use transition::mapping::{Assign, Entry, Mapping, Operand, Step};

#[test]
fn a_wrong_copy_is_found() {
    let mut case = Case::new(STRAIGHT);
    let point = case.before_definition("square");
    let [a, b, sum] = ["a", "b", "sum"].map(|n| case.value(n));
    let mut entry = copies(point, &sorted(vec![a, b, sum]));
    let wrong =
        entry.assigns.iter_mut().find(|x| x.value == sum).expect("the entry provides the sum");
    wrong.from = Operand::Source(a);
    case.backward.insert(point, entry);
    assert_eq!(
        case.difference(&[&[3, 4]]),
        Difference::Value { frame: 0, value: sum, expected: 7, found: 3 }
    );
    // For arguments that make both values equal, nothing is wrong.
    assert_eq!(case.run(&[&[3, 0]]).divergence_count, 0);
}

#[test]
fn a_wrong_copy_of_a_value_that_no_result_depends_on_is_found() {
    let mut case = Case::new(
        "func @f(%a: i32, %b: i32) -> i32 {
entry:
  %dead = add.i32 %a, %b
  %result = mul.i32 %a, %a
  return %result
}
",
    );
    let point = case.point_before(Opcode::Return);
    let [a, dead, result] = ["a", "dead", "result"].map(|n| case.value(n));
    let mut entry = copies(point, &sorted(vec![dead, result]));
    entry.assigns.iter_mut().find(|x| x.value == dead).expect("provided").from = Operand::Source(a);
    entry.requires = sorted(vec![a, result]);
    case.forward.insert(point, entry);
    assert_eq!(
        case.difference(&[&[2, 5]]),
        Difference::Value { frame: 0, value: dead, expected: 7, found: 2 }
    );
}

#[test]
fn a_dropped_step_is_found() {
    let mut case = Case::new(LOOP);
    let mut entry = late(&case);
    let next = case.value("next");
    entry.steps.pop();
    entry.assigns.iter_mut().find(|x| x.value == next).expect("provided").from = Operand::Step(0);
    case.forward.insert(case.before_definition("twice"), entry);
    let report = case.run(&[&[3]]);
    let expected = Difference::Value { frame: 0, value: next, expected: 2, found: 6 };
    assert_eq!(report.divergences.iter().map(|d| &d.difference).collect::<Vec<_>>(), [&expected]);
    // Kept once for the entry, and counted at every visit.
    assert_eq!(report.divergence_count, 3);
}

const STORE: &str = "memory @m 1
func @f(%a: i32, %v: i32) -> i32 {
entry:
  store.i32 @m[%a], %v
  %w = add.i32 %v, %v
  return %w
}
";

#[test]
fn a_target_across_an_effect_is_found() {
    let mut case = Case::new(STORE);
    let (store, behind) = (case.point_before(Opcode::Store), case.before_definition("w"));
    let v = case.value("v");
    case.forward.insert(store, copies(behind, &[v]));
    assert_eq!(case.difference(&[&[8, 5]]), Difference::NoPartner);
    case.forward.remove(store);
    case.forward.insert(behind, copies(store, &sorted(vec![case.value("a"), v])));
    assert_eq!(case.difference(&[&[8, 5]]), Difference::NoPartner);
}

#[test]
fn memory_that_differs_is_found() {
    let mut case = Case::new(STORE);
    // As if the store had moved: it is no anchor, so both its sides are in one gap.
    let store = case.point_before(Opcode::Store);
    case.anchors.remove(&store.inst());
    case.forward.insert(store, copies(case.before_definition("w"), &[case.value("v")]));
    assert_eq!(case.difference(&[&[8, 5]]), Difference::Memory);
    // Storing the old contents again changes nothing.
    assert_eq!(case.run(&[&[8, 0]]).divergence_count, 0);
}

#[test]
fn effects_that_differ_are_found() {
    let mut case = Case::new(
        "memory @m 1 4
func @f(%a: i32) -> i32 {
entry:
  %zero = const.i32 0
  %size = memory_grow @m, %zero
  %w = add.i32 %a, %a
  return %w
}
",
    );
    let grow = case.point_before(Opcode::MemoryGrow);
    case.anchors.remove(&grow.inst());
    case.forward.insert(grow, copies(case.before_definition("w"), &[case.value("a")]));
    assert_eq!(case.difference(&[&[1]]), Difference::Effects);
}

#[test]
fn compensation_code_that_traps_is_found() {
    let mut case = Case::new(STRAIGHT);
    let [a, b, sum] = ["a", "b", "sum"].map(|n| case.value(n));
    let point = case.before_definition("square");
    let args = [Operand::Source(a), Operand::Source(b)].into();
    let divide = Step { opcode: Opcode::Udiv, ty: Type::I32, operand_ty: Type::I32, bits: 0, args };
    case.forward
        .insert(point, Entry { steps: vec![divide], ..copies(point, &sorted(vec![a, b, sum])) });
    assert_eq!(case.run(&[&[3, 4]]).divergence_count, 0);
    let kind = TrapKind::DivisionByZero;
    assert_eq!(case.difference(&[&[3, 0]]), Difference::Trap { step: 0, kind });
}

/// Arithmetic gives the canonical NaN, and operations that move bits keep them. So no other NaN
/// needs to be forgiven.
#[test]
fn a_nan_of_other_bits_is_found() {
    let text = "func @f(%a: f64) -> f64 {
entry:
  %q = fdiv.f64 %a, %a
  %r = fabs.f64 %q
  return %r
}
";
    let mut case = Case::new(text);
    let (point, q) = (case.before_definition("r"), case.value("q"));
    let entry = |bits| {
        let args = Default::default();
        let nan = Step { opcode: Opcode::Const, ty: Type::F64, operand_ty: Type::F64, bits, args };
        Entry {
            steps: vec![nan],
            assigns: vec![Assign { value: q, from: Operand::Step(0) }],
            ..copies(point, &[])
        }
    };
    let (canonical, other) = (0x7ff8_0000_0000_0000, 0x7ff8_0000_0000_0001);
    case.forward.insert(point, entry(canonical));
    let report = case.run(&[&[0]]);
    assert_eq!((report.divergence_count, report.forward.transitions), (0, 1), "{report:#?}");
    case.forward.insert(point, entry(other));
    assert_eq!(
        case.difference(&[&[0]]),
        Difference::Value { frame: 0, value: q, expected: canonical, found: other }
    );
}

#[test]
fn versions_that_differ_are_distinguished_from_wrong_mappings() {
    let branch = "func @f(%a: i32, %b: i32) -> i32 {
entry:
  br_if %a, yes, no
yes:
  return %a
no:
  return %b
}
";
    let swapped = edited(Case::new(branch), |editor| {
        let (entry, args) = (editor.func().entry(), editor.func().arguments().to_vec());
        editor.replace_operand(editor.func().terminator(entry), 0, args[1]);
    });
    assert!(matches!(swapped.difference(&[&[1, 0]]), Difference::Stops { .. }));
    assert_eq!(swapped.run(&[&[1, 1]]).divergence_count, 0);

    let result = edited(Case::new(branch), |editor| {
        let (blocks, args) =
            (editor.func().blocks().collect::<Vec<_>>(), editor.func().arguments().to_vec());
        editor.replace_operand(editor.func().terminator(blocks[1]), 0, args[1]);
    });
    assert!(matches!(result.difference(&[&[1, 0]]), Difference::Stops { .. }));

    let stored = edited(Case::new(STORE), |editor| {
        let (store, args) =
            (editor.func().first_inst(editor.func().entry()), editor.func().arguments().to_vec());
        editor.replace_operand(store, 1, args[0]);
    });
    // The return carries a digest of memory, so the effects differ first.
    assert_eq!(stored.difference(&[&[8, 5]]), Difference::LockstepEffects);
}

#[test]
fn a_point_visited_twice_between_anchors_is_found() {
    let mut case = Case::new(LOOP);
    case.anchors.clear();
    let point = case.before_definition("twice");
    case.forward
        .insert(point, copies(point, &sorted(["one", "i", "sum"].map(|n| case.value(n)).to_vec())));
    assert_eq!(case.run(&[&[1]]).divergence_count, 0);
    assert_eq!(case.difference(&[&[2]]), Difference::Ambiguous);
}

#[test]
fn a_divergence_names_entry_and_difference() {
    let mut case = Case::new(STRAIGHT);
    let (point, [a, sum]) = (case.before_definition("square"), ["a", "sum"].map(|n| case.value(n)));
    let wrong = vec![copy(a), Assign { value: sum, from: Operand::Source(a) }];
    case.forward.insert(point, Entry { assigns: wrong, ..copies(point, &[a]) });
    let report = case.run(&[&[3, 4]]);
    let text = report.divergences[0].to_string();
    let expected = format!(
        "@f, forward, visit 1:\n  from {0}  %square = mul.i32 %sum, %sum\n  to   {0}  %square = mul.i32 %sum, %sum\n  \
         {sum} is 0x7 in the target version, and 0x3 after the transition\n  on input (0x3, 0x4)",
        point.inst()
    );
    assert_eq!(text, expected);
    let blamed = report.divergences[0].entry.as_ref().expect("an entry is to blame");
    assert_eq!((blamed.direction, blamed.visit), (Side::Before, Some(1)));
}

#[test]
fn pairs_that_do_not_fit_are_refused() {
    let case = edited(Case::new(STRAIGHT), |editor| {
        let first = editor.func().first_inst(editor.func().entry());
        editor.add_value(InstSpec::constant(Type::I32, 1), first);
    });
    let func = case.module.lookup("f").expect("the module has an f");
    let pair = FunctionPair {
        func,
        before: &case.before,
        after: &case.after,
        anchors: &case.anchors,
        forward: &case.forward,
        backward: &case.backward,
        copies: None,
    };
    let refused = |pairs: &[FunctionPair<'_>]| {
        Oracle::new(&case.module, pairs, OracleOptions::default()).err()
    };
    let function = || "f".to_owned();
    let direction = Side::After;
    let wrong = FunctionPair { backward: &case.forward, ..pair };
    assert_eq!(
        refused(&[wrong]),
        Some(OracleSetupError::OtherVersions { function: function(), direction })
    );
    let only_after = case.after.first_inst(case.after.entry());
    let anchors = BTreeSet::from([only_after]);
    let wrong = FunctionPair { anchors: &anchors, ..pair };
    assert_eq!(
        refused(&[wrong]),
        Some(OracleSetupError::NotAnAnchor { function: function(), inst: only_after })
    );
    assert_eq!(refused(&[pair, pair]), Some(OracleSetupError::TwoPairs { function: function() }));
    assert_eq!(refused(&[pair]), None);
}

/// The share of damage that the oracle finds, for a copy from another value of the same type, at a
/// point that runs visit.
#[test]
fn most_wrong_copies_in_generated_programs_are_found() {
    let (mut damaged, mut found) = (0u32, 0u32);
    for seed in 0..1000 {
        let program = generate(seed, 30, &Weights::default());
        let body = program.module.body(program.main).expect("the main function has a body");
        let (good, bounding) = (identity(body, body), anchors(body, body));
        let mut prng = Prng::new(seed);
        let at = prng.index(good.len());
        let (point, entry) = good.entries().nth(at).expect("every program has a point");
        let Some(wrong) = with_wrong_copy(body, entry, &mut prng) else { continue };
        let mut forward = Mapping::new(body, body);
        let backward = Mapping::new(body, body);
        let run = |forward: &Mapping| {
            let anchors = &bounding;
            let pair = FunctionPair {
                func: program.main,
                before: body,
                after: body,
                anchors,
                forward,
                backward: &backward,
                copies: None,
            };
            let mut oracle = Oracle::new(&program.module, &[pair], OracleOptions::default())
                .expect("the pair fits");
            program
                .arguments
                .iter()
                .for_each(|arguments| oracle.run(program.main, arguments, &NoHost));
            oracle.report().clone()
        };
        forward.insert(point, entry.clone());
        let sound = run(&forward);
        assert_eq!(sound.divergence_count, 0, "seed {seed}");
        if sound.forward.transitions == 0 {
            continue;
        }
        forward.insert(point, wrong);
        damaged += 1;
        found += u32::from(run(&forward).divergence_count > 0);
    }
    assert!(damaged >= 50, "{damaged} damaged entries were visited");
    assert!(100 * found >= 85 * damaged, "{found} of {damaged} wrong copies found");
}

/// The entry with one value copied from another value of its type.
fn with_wrong_copy(function: &Function, entry: &Entry, prng: &mut Prng) -> Option<Entry> {
    let at = prng.index(entry.assigns.len());
    let value = entry.assigns.get(at)?.value;
    let ty = function.value_type(value);
    let same_type =
        entry.requires.iter().copied().filter(|v| *v != value && function.value_type(*v) == ty);
    let others: Vec<Value> = same_type.collect();
    let from = Operand::Source(*others.get(prng.index(others.len()))?);
    let mut wrong = entry.clone();
    wrong.assigns[at].from = from;
    Some(wrong)
}
