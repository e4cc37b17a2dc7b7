//! The values that an entry has to provide: a missing one is found, in a run or without one.

use crate::oracles::case::{Case, LOOP, STRAIGHT, copies, copy, edited, late, sorted};
use ir::{Edge, Inst, Opcode, Point, Type};
use osier_verify::state_oracle::{Difference, EntryFault, OracleOptions};
use transition::Demand;
use transition::mapping::{Assign, Entry, Operand, Step};

/// The loop with a block on its back edge in the version after, and the point in that block.
fn split_back_edge() -> (Case, Point) {
    let case = edited(Case::new(LOOP), |editor| {
        let back = editor
            .func()
            .all_insts()
            .filter(|i| editor.func().inst(*i).opcode == Opcode::Jump)
            .last();
        editor.split_edge(Edge { inst: back.expect("the loop has a latch"), index: 0 });
    });
    let added =
        case.after.all_insts().find(|i| !case.before.has_inst(*i)).expect("the split added a jump");
    (case, Point::before(added))
}

#[test]
fn a_stale_parameter_is_found() {
    let (mut case, on_edge) = split_back_edge();
    let head = case.point_before(Opcode::BrIf);
    let [one, i, sum, next, more] = ["one", "i", "sum", "next", "more"].map(|n| case.value(n));
    // The jump gives the header parameters their next contents; their contents from the last round
    // are stale.
    let assigns = vec![
        copy(one),
        Assign { value: i, from: Operand::Source(next) },
        Assign { value: sum, from: Operand::Source(more) },
    ];
    let right = Entry { assigns: sorted(assigns), ..copies(head, &sorted(vec![one, next, more])) };
    case.backward.insert(on_edge, right);
    let report = case.run(&[&[3]]);
    assert_eq!(
        (report.divergence_count, report.backward.transitions),
        (0, 3),
        "{:?}",
        report.divergences
    );
    assert_eq!(report.backward.with_code, 3);

    case.backward.insert(on_edge, copies(head, &sorted(vec![one, i, sum])));
    assert!(matches!(case.difference(&[&[3]]), Difference::Value { .. }));
}

#[test]
fn a_value_that_is_not_provided_shows_when_the_run_continues() {
    let mut case = Case::new(STRAIGHT);
    let point = case.before_definition("low");
    case.forward.insert(point, copies(point, &[case.value("square")]));
    let report = case.run(&[&[3, 4], &[3, 4], &[3, 4], &[3, 4], &[3, 4]]);
    let found: Vec<&Difference> = report.divergences.iter().map(|d| &d.difference).collect();
    let [Difference::NotProvided { value }, Difference::GoingOn { expected, found }] = found[..]
    else {
        panic!("{report:#?}")
    };
    assert_eq!(*value, case.value("a"));
    assert_ne!(expected, found);
}

#[test]
fn a_value_that_is_not_provided_is_found_without_a_run() {
    let mut case = Case::new(LOOP);
    let point = case.before_definition("twice");
    let [one, sum] = ["one", "sum"].map(|n| case.value(n));
    let good = late(&case);
    case.forward.insert(point, good.clone());
    assert_eq!(case.run(&[]).divergence_count, 0);
    let mut entry = good;
    entry.assigns.retain(|a| a.value != sum);
    case.forward.insert(point, entry);
    // No run visits the point, and a run could not compare a value that is missing.
    let options = OracleOptions { going_on: 0, ..OracleOptions::default() };
    for args in [&[][..], &[&[0][..]][..], &[&[3][..]][..]] {
        let report = case.run_with(args, options);
        assert_eq!(report.divergence_count, 1, "{report:#?}");
        assert_eq!(report.divergences[0].difference, Difference::NotProvided { value: sum });
        assert!(report.divergences[0].input.is_empty());
    }
    let text = case.run(&[]).divergences[0].to_string();
    let target = case.before_definition("more");
    let expected = format!(
        "@f, forward, without a run:\n  from {}  %twice = add.i32 %i, %i\n  to   {}  %more = add.i32 %sum, %twice\n  \
         {sum} is live at the target point and not provided",
        point.inst(),
        target.inst()
    );
    assert_eq!(text, expected);
    // Every missing value counts; the first of each entry is kept.
    case.forward.insert(point, copies(target, &[one]));
    let report = case.run(&[]);
    assert_eq!((report.divergence_count, report.divergences.len()), (3, 1), "{report:#?}");
}

#[test]
fn a_value_kept_for_the_way_back_has_to_be_provided() {
    let mut case = Case::new(STRAIGHT);
    let [a, b, sum, square] = ["a", "b", "sum", "square"].map(|n| case.value(n));
    let (early, late) = (case.before_definition("square"), case.before_definition("low"));
    // The entry back lands above the multiplication, and requires the sum for it.
    let back = Entry { kept: vec![sum], ..copies(early, &sorted(vec![a, sum])) };
    case.anchors.clear();
    case.backward.insert(late, back);
    case.forward.insert(early, copies(early, &sorted(vec![a, sum])));
    assert_eq!(case.run(&[]).divergence_count, 0);
    case.forward.insert(late, copies(late, &sorted(vec![a, square])));
    let report = case.run(&[]);
    assert_eq!(report.divergence_count, 1, "{report:#?}");
    assert_eq!(report.divergences[0].difference, Difference::NotProvided { value: sum });
    case.forward.insert(late, copies(late, &sorted(vec![a, sum, square])));
    assert_eq!(case.run(&[]).divergence_count, 0);
    // A use counts even if the entry does not list it as kept.
    let hidden =
        Entry { requires: sorted(vec![a, b, sum]), ..copies(early, &sorted(vec![a, sum])) };
    case.backward.insert(late, hidden);
    let report = case.run(&[]);
    assert!(
        report.divergences.iter().all(|d| d.difference == Difference::NotProvided { value: b }),
        "{report:#?}"
    );
    assert_eq!(report.divergence_count, 2, "once for each entry that lands before the use");
}

#[test]
fn the_demand_decides_which_values_are_missing() {
    let mut case = Case::new(
        "func @f(%a: i32, %b: i32) -> i32 {
entry:
  %result = mul.i32 %a, %a
  %dead = add.i32 %a, %b
  return %result
}
",
    );
    let point = case.before_definition("dead");
    let [a, b, result] = ["a", "b", "result"].map(|n| case.value(n));
    case.forward.insert(point, copies(point, &[result]));
    assert_eq!(
        case.run(&[&[2, 5]]).divergence_count,
        0,
        "operands of dead code alone are not needed"
    );
    let live = OracleOptions { demand: Demand::Live, ..OracleOptions::default() };
    let report = case.run_with(&[&[2, 5]], live);
    assert_eq!(report.divergence_count, 2, "{report:#?}");
    assert_eq!(report.divergences[0].difference, Difference::NotProvided { value: a });
    case.forward.insert(point, copies(point, &sorted(vec![a, b, result])));
    assert_eq!(case.run_with(&[&[2, 5]], live).divergence_count, 0);
}

#[test]
fn faulty_entries_are_found_when_visited() {
    let mut case = Case::new(STRAIGHT);
    let [a, b, sum, square] = ["a", "b", "sum", "square"].map(|n| case.value(n));
    let point = case.before_definition("square");
    let good = copies(point, &sorted(vec![a, b, sum]));
    let step = |opcode, args: &[Operand]| Step {
        opcode,
        ty: Type::I32,
        operand_ty: Type::I32,
        bits: 0,
        args: args.iter().copied().collect(),
    };
    let nowhere = Point::before(Inst::from_u32(1000));
    let unavailable = Entry { requires: vec![square], ..good.clone() };
    let poison = Entry { requires: sorted(vec![a, b]), ..good.clone() };
    let with_square =
        [good.assigns.clone(), vec![Assign { value: square, from: Operand::Source(a) }]].concat();
    let early = Entry { assigns: with_square, ..good.clone() };
    let unknown = Entry { target: nowhere, ..good.clone() };
    let later = Entry {
        steps: vec![step(Opcode::Add, &[Operand::Source(a), Operand::Step(0)])],
        ..good.clone()
    };
    let load = Entry { steps: vec![step(Opcode::Load, &[Operand::Source(a)])], ..good.clone() };
    let unary = Entry { steps: vec![step(Opcode::Add, &[Operand::Source(a)])], ..good.clone() };
    let float = Entry { steps: vec![step(Opcode::Fneg, &[Operand::Source(a)])], ..good.clone() };
    for (entry, fault) in [
        (unavailable, EntryFault::RequiredUnavailable { value: square }),
        (poison, EntryFault::NotRequired { value: sum }),
        (early, EntryFault::ProvidedUnavailable { value: square }),
        (unknown, EntryFault::NoSuchPoint { point: nowhere }),
        (later, EntryFault::NoSuchStep { step: 0 }),
        (load, EntryFault::MalformedStep { step: 0 }),
        (unary, EntryFault::MalformedStep { step: 0 }),
        (float, EntryFault::MalformedStep { step: 0 }),
    ] {
        case.forward.insert(point, entry);
        assert_eq!(case.difference(&[&[3, 4]]), Difference::Entry(fault));
    }
    case.forward.insert(point, good);
    assert_eq!(case.run(&[&[3, 4]]).divergence_count, 0);
}

/// A function whose branch a constant may decide. Its arms read different values.
fn decided(condition: &str) -> Case {
    Case::new(&format!(
        "func @f(%a: i32, %b: i32) -> i32 {{
entry:
  %one = const.i32 1
  %first = add.i32 %a, %a
  br_if %{condition}, left(%a), right
left(%p: i32):
  %sum = add.i32 %p, %one
  return %sum
right:
  %result = mul.i32 %b, %b
  jump left(%result)
}}
"
    ))
}

#[test]
fn values_read_only_in_excluded_code_need_not_be_provided() {
    let mut case = decided("one");
    let point = case.before_definition("first");
    let [a, b, one] = ["a", "b", "one"].map(|n| case.value(n));
    case.forward.insert(point, copies(point, &sorted(vec![a, one])));
    let report = case.run(&[&[2, 5], &[0, 3]]);
    assert_eq!((report.divergence_count, report.total().transitions), (0, 2), "{report:#?}");
    // For a debugger, all live values count.
    let live = OracleOptions { demand: Demand::Live, ..OracleOptions::default() };
    assert!(case.run_with(&[], live).divergence_count > 0);
    // The condition of a decided branch is read.
    case.forward.insert(point, copies(point, &[a]));
    let report = case.run(&[]);
    assert_eq!(report.divergences[0].difference, Difference::NotProvided { value: one });
    let mut case = decided("first");
    case.forward.insert(point, copies(point, &sorted(vec![a, one])));
    let report = case.run(&[]);
    assert_eq!(report.divergences[0].difference, Difference::NotProvided { value: b });
}

/// No run visits such a target point, so the argument for leaving out excluded code does not hold.
#[test]
fn an_entry_into_excluded_code_provides_the_values_read_there() {
    let mut case = decided("one");
    let (point, astray) = (case.before_definition("first"), case.before_definition("result"));
    case.forward.insert(point, copies(astray, &[case.value("one")]));
    let report = case.run(&[]);
    assert_eq!(
        report.divergences[0].difference,
        Difference::NotProvided { value: case.value("b") },
        "{report:#?}"
    );
}
