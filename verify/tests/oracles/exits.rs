//! Exits at assumptions, fired where they hold and where they fail.

use crate::oracles::case::{Case, copies, copy, edited, sorted};
use interp::NoHost;
use ir::{Inst, InstSpec, Opcode, Point, Type, Value};
use osier_verify::hops::{Edge, FunctionGraph, HopOptions, Hopper};
use osier_verify::state_oracle::{Difference, FunctionPair, Oracle, OracleOptions, SeenAssumption};
use smallvec::smallvec;
use transition::mapping::{Assign, Entry, Operand, Replay, Step};

/// In round `%k`, the sum grows. The sum is in memory after each round.
const ROUNDS: &str = "memory @mem 1
func @f(%n: i32, %k: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %zero)
head(%i: i32, %sum: i32):
  %more = ult.i32 %i, %n
  br_if %more, body, done
body:
  %c = eq.i32 %i, %k
  %s = add.i32 %sum, %c
  store.i32 @mem[%zero + 64], %s
  %j = add.i32 %i, %one
  jump head(%j, %s)
done:
  return %sum
}
";

/// The values that the base reads behind the assumption.
const LIVE: [&str; 7] = ["n", "k", "zero", "one", "i", "sum", "c"];

/// `ROUNDS`, and a version that assumes `%c` to be 0 and drops the addition, with the exit.
fn rounds() -> Case {
    let base = Case::new(ROUNDS);
    let [c, s, sum] = ["c", "s", "sum"].map(|name| base.value(name));
    let mut case = edited(base, |editor| {
        let add = editor.func().defining_inst(s).expect("an addition");
        editor.add(InstSpec::assume(Type::I32, c, 0, 7), add);
        editor.replace_all(s, sum);
        editor.delete(add);
    });
    let entry = copies(case.before_definition("s"), &values(&case, &LIVE));
    case.backward.insert(exit(&case), entry);
    case
}

fn values(case: &Case, names: &[&str]) -> Vec<Value> {
    sorted(names.iter().map(|name| case.value(name)).collect())
}

/// The point before the assumption.
fn exit(case: &Case) -> Point {
    Point::before(assumption(case))
}

fn assumption(case: &Case) -> Inst {
    let f = &case.after;
    f.all_insts().find(|i| f.inst(*i).opcode == Opcode::Assume).expect("an assumption")
}

/// Changes the exit.
fn change(case: &mut Case, change: impl FnOnce(&mut Entry)) {
    let point = exit(case);
    let mut entry = case.backward.entry(point).expect("an exit").clone();
    change(&mut entry);
    case.backward.insert(point, entry);
}

/// The assumption holds in each round of the first two runs. In the third it fails in round 2, and
/// in the fourth at once.
const INPUTS: [&[u64]; 4] = [&[5, 9], &[0, 0], &[5, 2], &[4, 0]];

#[test]
fn right_exits_are_followed_to_the_end() {
    let case = rounds();
    let func = case.module.lookup("f").expect("a function");
    let pair = FunctionPair {
        func,
        before: &case.before,
        after: &case.after,
        anchors: &case.anchors,
        forward: &case.forward,
        backward: &case.backward,
        copies: None,
    };
    let mut oracle = Oracle::new(&case.module, &[pair], OracleOptions::default()).expect("fits");
    oracle.run(func, &[5, 9], &NoHost);
    let seen = |failing| SeenAssumption { func, point: exit(&case), visited: true, failing };
    assert_eq!(oracle.assumptions(), [seen(false)]);
    INPUTS[1..].iter().for_each(|args| oracle.run(func, args, &NoHost));
    let report = oracle.report();
    assert_eq!(report.divergence_count, 0, "{report:#?}");
    // Rounds 0 to 4 of the first run, rounds 0 and 1 of the third; one failing exit in each of the
    // last two.
    assert_eq!((report.backward.holding, report.backward.failing), (7, 2));
    assert_eq!(oracle.assumptions(), [seen(true)]);
}

/// Case 1 of the design: right whenever the assumption holds.
#[test]
fn an_exit_that_gives_the_constant_is_found_where_the_assumption_fails() {
    let mut case = rounds();
    let c = case.value("c");
    change(&mut case, |entry| {
        let step = Step {
            opcode: Opcode::Const,
            ty: Type::I32,
            operand_ty: Type::I32,
            bits: 0,
            args: smallvec![],
        };
        entry.steps.push(step);
        let assign = entry.assigns.iter_mut().find(|a| a.value == c).expect("provided");
        assign.from = Operand::Step(0);
        entry.requires.retain(|v| *v != c);
    });
    assert_eq!(case.run(&INPUTS[..2]).divergence_count, 0, "holding visits are blind");
    let difference = case.difference(&INPUTS[2..]);
    assert_eq!(difference, Difference::Value { frame: 0, value: c, expected: 1, found: 0 });
}

#[test]
fn an_exit_that_lands_behind_the_fact_is_found() {
    // Behind the addition, with the sum for the result: the fact would give this entry.
    let mut case = rounds();
    let [s, sum] = ["s", "sum"].map(|name| case.value(name));
    let target = case.point_before(Opcode::Store);
    let names = ["n", "k", "zero", "one", "i"];
    let mut assigns: Vec<Assign> = values(&case, &names).into_iter().map(copy).collect();
    assigns.push(Assign { value: s, from: Operand::Source(sum) });
    let required = [&names[..], &["sum"]].concat();
    let requires = values(&case, &required);
    change(&mut case, |entry| {
        (entry.target, entry.assigns, entry.requires) = (target, sorted(assigns), requires);
    });
    assert_eq!(case.run(&INPUTS[..2]).divergence_count, 0, "holding visits are blind");
    let difference = case.difference(&INPUTS[2..3]);
    assert_eq!(difference, Difference::Value { frame: 0, value: s, expected: 1, found: 0 });
}

#[test]
fn an_exit_into_another_round_is_found() {
    let mut case = rounds();
    let [i, one] = ["i", "one"].map(|name| case.value(name));
    change(&mut case, |entry| {
        let add = Step {
            opcode: Opcode::Add,
            ty: Type::I32,
            operand_ty: Type::I32,
            bits: 0,
            args: smallvec![Operand::Source(i), Operand::Source(one)],
        };
        entry.steps.push(add);
        let assign = entry.assigns.iter_mut().find(|a| a.value == i).expect("provided");
        assign.from = Operand::Step(0);
    });
    assert!(matches!(case.difference(&INPUTS[3..]), Difference::Value { value, .. } if value == i));
}

#[test]
fn a_value_that_an_exit_lacks_is_found_without_a_run_and_in_one() {
    let mut case = rounds();
    let one = case.value("one");
    change(&mut case, |entry| entry.assigns.retain(|a| a.value != one));
    let report = case.run(&INPUTS[2..3]);
    let found = |wanted: fn(&Difference) -> bool| {
        report.divergences.iter().any(|d| wanted(&d.difference) && d.entry.is_some())
    };
    assert!(found(|d| matches!(d, Difference::NotProvided { .. })), "{report:#?}");
    // The run that left counts with garbage, and the exit is to blame.
    assert!(found(|d| !matches!(d, Difference::NotProvided { .. })), "{report:#?}");
}

#[test]
fn a_failing_assumption_without_an_exit_is_found() {
    let mut case = rounds();
    case.backward = transition::mapping::Mapping::new(&case.after, &case.before);
    assert_eq!(case.run(&INPUTS[..2]).divergence_count, 0);
    assert!(matches!(case.difference(&INPUTS[2..3]), Difference::Stops { .. }));
}

/// Case 2 of the design: the base comes to the second round by one in which the assumption would
/// have failed.
#[test]
fn an_entry_that_lands_behind_an_assumption_is_found() {
    let mut case = rounds();
    let names = ["n", "k", "zero", "one", "i", "sum"];
    let landing = case.before_definition("more");
    let entry = copies(landing, &values(&case, &names));
    case.forward.insert(landing, entry);
    assert_eq!(case.run(&INPUTS[..2]).divergence_count, 0, "it is right while the fact holds");
    let report = case.run(&INPUTS[2..3]);
    assert!(
        report.divergences.iter().any(|d| d.difference == Difference::NoPartner),
        "{report:#?}"
    );
    assert!(report.divergences.iter().all(|d| d.entry.is_some()), "{report:#?}");
}

/// Counts up in a loop whose only anchor is the branch.
const UNTIL: &str = "func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero)
head(%i: i32):
  %j = add.i32 %i, %one
  %more = ult.i32 %j, %n
  br_if %more, head(%j), done
done:
  return %j
}
";

/// The version after assumes a single round, and has no loop. Behind the exit, the version before
/// goes around without an anchor that both share.
#[test]
fn a_loop_that_is_cut_goes_on_behind_an_exit() {
    let base = Case::new(UNTIL);
    let [more, i, zero] = ["more", "i", "zero"].map(|name| base.value(name));
    let mut case = edited(base, |editor| {
        let head = editor.func().value_block(more);
        let branch = editor.func().terminator(head);
        editor.add(InstSpec::assume(Type::I32, more, 0, 7), branch);
        editor.fold_branch(branch, 1);
        editor.replace_all(i, zero);
        editor.remove_block_param(head, 0);
        editor.merge_blocks(head);
        editor.merge_blocks(editor.func().entry());
    });
    let at = exit(&case);
    let entry = copies(case.point_before(Opcode::BrIf), &values(&case, &["n", "one", "j", "more"]));
    case.backward.insert(at, entry);
    let entry = copies(case.before_definition("j"), &values(&case, &["n", "zero", "one"]));
    let first = Assign { value: i, from: Operand::Source(zero) };
    let first = Entry { assigns: sorted([&entry.assigns[..], &[first]].concat()), ..entry };
    let source = Point::before(case.after.defining_inst(case.value("j")).expect("the addition"));
    case.backward.insert(source, first);
    let report = case.run(&[&[1], &[0], &[2], &[7]]);
    assert_eq!(report.divergence_count, 0, "{report:#?}");
    assert!(report.backward.failing == 2 && report.backward.holding == 2, "{report:#?}");
}

/// A store that another covers behind the assumption is deleted, and the exit executes it.
const STORES: &str = "memory @mem 1
func @f(%x: i32) -> i32 {
entry:
  %zero = const.i32 0
  %old = load.i32 @mem[%zero + 64]
  store.i32 @mem[%zero + 64], %x
  %y = assume.i32 %x, 7, 3
  store.i32 @mem[%zero + 64], %y
  return %old
}
";

/// Both versions assume; the second lacks the first store. With the replay or without.
fn stores(replays: bool) -> Case {
    let base = Case::new(STORES);
    let f = &base.before;
    let store = f.all_insts().find(|i| f.inst(*i).opcode == Opcode::Store).expect("a store");
    let data = f.inst(store).clone();
    let mut case = edited(base, |editor| {
        editor.delete(store);
    });
    let mut entry = copies(exit(&case), &values(&case, &["zero", "old", "x"]));
    if replays {
        entry.replays.push(Replay {
            inst: store,
            opcode: data.opcode,
            ty: data.ty,
            imm: data.imm,
            args: data.args.iter().map(|value| Operand::Source(*value)).collect(),
        });
    }
    case.backward.insert(exit(&case), entry);
    case
}

#[test]
fn memory_at_a_common_assumption_is_compared_after_replays() {
    let inputs: [&[u64]; 2] = [&[7], &[8]];
    let report = stores(true).run(&inputs);
    assert_eq!(report.divergence_count, 0, "{report:#?}");
    assert_eq!((report.backward.holding, report.backward.failing), (1, 1));
    // Without the replay, holding and failing visits show the difference.
    for args in inputs {
        let report = stores(false).run(&[args]);
        assert_eq!(report.divergences[0].difference, Difference::Memory, "{report:#?}");
    }
    // Without an entry, nothing says how memory would be made right, and the ends agree.
    let mut case = stores(true);
    case.backward = transition::mapping::Mapping::new(&case.after, &case.before);
    assert_eq!(case.run(&inputs).divergence_count, 0);
}

#[test]
fn memory_at_the_end_of_a_chain_is_compared_after_replays() {
    let case = stores(true);
    let mut forward = transition::mapping::Mapping::new(&case.before, &case.after);
    let start = Point::before(case.before.first_inst(case.before.entry()));
    forward.insert(start, copies(start, &values(&case, &["x"])));
    let versions = [&case.before, &case.after];
    let edges = [
        Edge { from: 0, to: 1, mapping: &forward },
        Edge { from: 1, to: 0, mapping: &case.backward },
    ];
    let func = case.module.lookup("f").expect("a function");
    let graph = FunctionGraph { func, versions: &versions, edges: &edges };
    let options = HopOptions { chains: 8, ..HopOptions::default() };
    let mut hopper = Hopper::new(&case.module, &[graph], options).expect("fits");
    hopper.run(func, &[8], &NoHost);
    let report = hopper.report();
    assert!(report.hops > 0 && report.divergence_count == 0, "{report:#?}");
}
