//! Correct mappings are accepted, and their transitions are counted, for every end of a run.

use crate::oracles::case::{Case, LOOP, anchors, copies, copy, edited, identity, late, sorted};
use interp::{Limits, NoHost};
use ir::{Opcode, Type};
use osier_verify::generate::{Weights, generate};
use osier_verify::state_oracle::{Difference, FunctionPair, Oracle, OracleOptions, Policy, Report};
use transition::mapping::{Assign, Entry, Operand, Step};

#[test]
fn the_identity_of_generated_programs_holds_everywhere() {
    let mut total = Report::default();
    let (mut fired, mut all) = (0, 0);
    for seed in 0..300 {
        let program = generate(seed, 30, &Weights::default());
        let bodies: Vec<_> = program.module.defined().collect();
        let mappings: Vec<_> =
            bodies.iter().map(|(_, f)| (identity(f, f), anchors(f, f))).collect();
        let pairs: Vec<FunctionPair<'_>> = bodies
            .iter()
            .zip(&mappings)
            .map(|((func, body), (mapping, anchors))| FunctionPair {
                func: *func,
                before: body,
                after: body,
                anchors,
                forward: mapping,
                backward: mapping,
                copies: None,
            })
            .collect();
        let mut oracle =
            Oracle::new(&program.module, &pairs, OracleOptions::default()).expect("the pairs fit");
        for arguments in &program.arguments {
            oracle.run(program.main, arguments, &NoHost);
        }
        let report = oracle.report();
        assert_eq!(report.divergence_count, 0, "seed {seed}: {}", report.divergences[0]);
        total.add(report);
        let coverage = oracle.coverage();
        (fired, all) = (fired + coverage.0, all + coverage.1);
    }
    assert_eq!(total.exhausted, 0);
    assert_eq!(total.forward.transitions, total.backward.transitions);
    assert!(total.forward.transitions > 100_000, "{total:?}");
    assert!(total.forward.in_loops > total.forward.transitions / 10, "{total:?}");
    assert!(total.forward.compared > 5 * total.forward.transitions, "{total:?}");
    assert!(total.forward.going_on > 500 && total.backward.going_on > 500, "{total:?}");
    assert!(total.trapped > 10 && total.trapped < total.runs / 2, "{total:?}");
    assert_eq!(total.forward.with_code, 0, "copies of a value to itself are no code");
    assert!(fired > all / 2, "{fired} of {all} entries fired");
}

#[test]
fn a_mapping_with_code_in_a_loop_is_counted() {
    let mut case = Case::new(LOOP);
    case.forward.insert(case.before_definition("twice"), late(&case));
    let report = case.run(&[&[3]]);
    assert_eq!(report.divergence_count, 0, "{:?}", report.divergences);
    let forward = report.forward;
    assert_eq!(
        (forward.transitions, forward.with_code, forward.in_loops),
        (3, 3, 3),
        "{forward:?}"
    );
    assert_eq!(forward.compared, 3 * 4);
    assert_eq!(report.backward.transitions, 0);
}

#[test]
fn exhausted_runs_end_quietly_and_are_counted() {
    let mut case = Case::new(LOOP);
    let point = case.before_definition("twice");
    case.forward
        .insert(point, copies(point, &sorted(["one", "i", "sum"].map(|n| case.value(n)).to_vec())));
    let limits = Limits { fuel: 100, ..Limits::default() };
    let report =
        case.run_with(&[&[1_000_000], &[2]], OracleOptions { limits, ..OracleOptions::default() });
    assert_eq!((report.runs, report.exhausted, report.divergence_count), (2, 1, 0));
    assert!(report.forward.transitions > 10);
    assert!(report.forward.going_on_exhausted > 0, "{report:?}");
}

#[test]
fn a_trap_ends_both_versions_alike() {
    let mut case = Case::new(
        "func @f(%a: i32, %b: i32) -> i32 {
entry:
  %sum = add.i32 %a, %b
  %q = udiv.i32 %sum, %b
  return %q
}
",
    );
    let point = case.before_definition("q");
    case.forward
        .insert(point, copies(point, &sorted(["sum", "b"].map(|n| case.value(n)).to_vec())));
    let report = case.run(&[&[3, 0], &[3, 1]]);
    assert_eq!((report.runs, report.trapped, report.divergence_count), (2, 1, 0));
    assert_eq!(report.forward.transitions, 2);
}

/// A division after a jump, hoisted above the jump in the version after.
fn hoisted_trap() -> Case {
    let text = "func @f(%a: i32, %b: i32) -> i32 {
entry:
  %sum = add.i32 %a, %b
  jump next
next:
  %twice = add.i32 %sum, %sum
  %q = udiv.i32 %sum, %b
  return %q
}
";
    let case = edited(Case::new(text), |editor| {
        let blocks: Vec<_> = editor.func().blocks().collect();
        let divide = editor.func().block_insts(blocks[1]).nth(1).expect("the block divides");
        editor.hoist(divide, editor.func().terminator(blocks[0]));
    });
    let divide = case.before_definition("q").inst();
    let anchors = case.anchors.iter().copied().filter(|i| *i != divide).collect();
    Case { anchors, ..case }
}

#[test]
fn a_trap_that_moved_up_ends_both_versions_alike() {
    let mut case = hoisted_trap();
    let point = case.before_definition("sum");
    case.forward.insert(point, copies(point, &sorted(vec![case.value("a"), case.value("b")])));
    let report = case.run(&[&[3, 0], &[3, 1]]);
    assert_eq!((report.trapped, report.divergence_count), (1, 0), "{:?}", report.divergences);
    assert_eq!(report.forward.transitions, 2);
}

#[test]
fn landing_behind_a_trap_that_has_not_happened_is_found() {
    let mut case = hoisted_trap();
    let [b, sum] = ["b", "sum"].map(|n| case.value(n));
    let source = case.before_definition("twice");
    let args = [Operand::Source(sum), Operand::Source(b)].into();
    let divide = Step { opcode: Opcode::Udiv, ty: Type::I32, operand_ty: Type::I32, bits: 0, args };
    let entry = Entry {
        steps: vec![divide],
        assigns: sorted(vec![copy(sum), Assign { value: case.value("q"), from: Operand::Step(0) }]),
        requires: sorted(vec![b, sum]),
        ..copies(source, &[])
    };
    case.forward.insert(source, entry);
    assert_eq!(case.run(&[&[3, 1]]).divergence_count, 0);
    assert_eq!(case.difference(&[&[3, 0]]), Difference::NoPartner);
}

#[test]
fn a_trap_of_one_version_alone_blames_no_mapping() {
    let text = "func @f(%a: i32, %b: i32) -> i32 {
entry:
  %zero = const.i32 0
  %q = udiv.i32 %a, %b
  jump next
next:
  return %a
}
";
    let case = edited(Case::new(text), |editor| {
        let insts: Vec<_> = editor.func().all_insts().collect();
        let zero = editor.func().inst(insts[0]).result().expect("a constant");
        editor.replace_operand(insts[1], 1, zero);
    });
    assert!(matches!(case.difference(&[&[3, 1]]), Difference::Stops { .. }));
    assert_eq!(case.run(&[&[3, 0]]).divergence_count, 0);
}

#[test]
fn sampling_compares_the_first_visits_and_some_of_the_rest() {
    let mut case = Case::new(LOOP);
    let point = case.before_definition("twice");
    case.forward
        .insert(point, copies(point, &sorted(["one", "i", "sum"].map(|n| case.value(n)).to_vec())));
    case.backward = case.forward.clone();
    let sampled = |one_in| OracleOptions {
        policy: Policy::Sampled { first: 8, one_in },
        going_on: 0,
        ..OracleOptions::default()
    };
    let report = case.run_with(&[&[5000]], sampled(u32::MAX));
    assert_eq!((report.forward.transitions, report.backward.transitions), (8, 8));
    let report = case.run_with(&[&[5000]], sampled(50));
    assert!((50..200).contains(&report.forward.transitions), "{report:?}");
    assert_eq!(report.forward.transitions, report.backward.transitions);
    assert_eq!(report, case.run_with(&[&[5000]], sampled(50)), "the seed decides the samples");

    // The first visits count over all runs, and a wrong entry among them is found.
    assert_eq!(case.run_with(&[&[5], &[5]], sampled(u32::MAX)).forward.transitions, 8);
    case.forward.insert(point, copies(case.point_before(Opcode::Return), &[case.value("sum")]));
    assert_eq!(case.run_with(&[&[5000]], sampled(u32::MAX)).divergence_count, 8);
}

#[test]
fn the_budget_of_transitions_holds() {
    let mut case = Case::new(LOOP);
    let point = case.before_definition("twice");
    case.forward
        .insert(point, copies(point, &sorted(["one", "i", "sum"].map(|n| case.value(n)).to_vec())));
    let report =
        case.run_with(&[&[1000]], OracleOptions { transitions: 100, ..OracleOptions::default() });
    assert_eq!(
        (report.forward.transitions, report.exhausted, report.divergence_count),
        (100, 0, 0)
    );
}

/// A recursive function with a pair, and one without a pair that calls it back.
#[test]
fn activations_of_the_same_function_are_distinguished() {
    let mut case = Case::new(
        "func @f(%n: i32) -> i32 {
entry:
  %twice = add.i32 %n, %n
  br_if %n, more, done
more:
  %one = const.i32 1
  %less = sub.i32 %n, %one
  %below = call @through(%less)
  %sum = add.i32 %below, %twice
  return %sum
done:
  return %n
}
func @through(%n: i32) -> i32 {
entry:
  %r = call @f(%n)
  return %r
}
",
    );
    case.forward = identity(&case.before, &case.after);
    case.backward = identity(&case.after, &case.before);
    let report = case.run(&[&[6]]);
    assert_eq!(report.divergence_count, 0, "{}", report.divergences[0]);
    // Seven activations: the last visits 3 points, each other one 7.
    assert_eq!(report.forward.transitions, 6 * 7 + 3);
    assert!(report.forward.going_on > 0);
}

#[test]
fn a_start_function_runs_first() {
    let mut case = Case::new(
        "global @g: mut i32 = 1
start @init
func @init() -> () {
entry:
  %seven = const.i32 7
  global_set.i32 @g, %seven
  return
}
func @f() -> i32 {
entry:
  %g = global_get.i32 @g
  %h = add.i32 %g, %g
  return %h
}
",
    );
    let point = case.before_definition("h");
    let g = case.value("g");
    let seven = Step {
        opcode: Opcode::Const,
        ty: Type::I32,
        operand_ty: Type::I32,
        bits: 7,
        args: Default::default(),
    };
    let assigns = vec![Assign { value: g, from: Operand::Step(0) }];
    let entry = Entry { steps: vec![seven], assigns, ..copies(point, &[]) };
    case.forward.insert(point, entry);
    let report = case.run(&[&[]]);
    assert_eq!(
        (report.divergence_count, report.forward.transitions),
        (0, 1),
        "{:?}",
        report.divergences
    );
}
