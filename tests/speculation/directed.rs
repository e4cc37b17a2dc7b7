//! Assumptions of each kind: changes by passes, landing points of entries, and refusals.

use super::support::{Made, counts, exits, first, inst, parsed, value};
use ir::{Function, Inst, Opcode, Point, Type};
use osier::osr::VersionTree;
use osier::speculate::{Assumption, Expected, Pins, Plan, SpeculateError, speculate};
use passes::{Pipeline, parse};

/// A loop that stores where a rare condition says so. `%c` is 0 but where `%rare` divides `%j`.
const RARE: &str = "
memory @mem 1
export \"main\" @f
func @f(%n: i32, %rare: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %zero)
head(%i: i32, %sum: i32):
  %more = ult.i32 %i, %n
  br_if %more, body, done
body:
  %a = load.i32 @mem[%zero + 64]
  %j = add.i32 %i, %one
  %rest = urem.i32 %j, %rare
  %c = eqz.i32 %rest
  br_if %c, slow, next(%sum)
slow:
  store.i32 @mem[%zero + 64], %j
  %twice = add.i32 %sum, %sum
  jump next(%twice)
next(%s: i32):
  %b = load.i32 @mem[%zero + 64]
  %t = add.i32 %s, %b
  %u = add.i32 %t, %a
  jump head(%j, %u)
done:
  return %sum
}";

/// Inputs of [`RARE`]: `%c` is never 1, 1 at last, 1 at once, and never looked at; the last divides
/// by zero.
const RARE_INPUTS: [&[u64]; 5] = [&[50, 1000], &[50, 7], &[50, 1], &[0, 0], &[3, 0]];

fn at(f: &Function, before: &str, of: &str, bits: u64) -> Assumption {
    // Behind the definition of `before`.
    let next = f.next_inst(inst(f, before)).expect("a terminator follows");
    Assumption {
        at: Point::before(next),
        value: value(f, of),
        expected: Expected::Is(bits),
        reason: 7,
    }
}

#[test]
fn a_branch_never_taken_leaves_the_loop() {
    let module = parsed(RARE);
    let (_, base) = first(&module);
    let pipeline = parse("O1").expect("it is a pipeline");
    let made = Made::new(&module, base, &[at(base, "c", "c", 0)], &pipeline).expect("it is legal");
    assert_eq!(counts(&made), (1, 0, 0), "{:?}", made.last().dropped);
    assert!(made.function().inst_count() < base.inst_count(), "the slow side is gone");
    assert_eq!(exits(&module, &made, &RARE_INPUTS), [0, 1, 1, 0, 0]);
}

#[test]
fn a_value_never_zero_decides_its_branch() {
    // The condition is no truth value: `%rest` itself decides.
    let text = RARE.replace(
        "  %c = eqz.i32 %rest\n  br_if %c, slow, next(%sum)",
        "  br_if %rest, next(%sum), slow",
    );
    let module = parsed(&text);
    let (_, base) = first(&module);
    let never = Assumption { expected: Expected::IsNot(0), ..at(base, "rest", "rest", 0) };
    let pipeline = parse("O1").expect("it is a pipeline");
    let made = Made::new(&module, base, &[never], &pipeline).expect("it is legal");
    assert_eq!(counts(&made), (1, 0, 0), "{:?}", made.last().dropped);
    assert!(!made.function().all_insts().any(|i| made.function().inst(i).opcode == Opcode::Store));
    assert_eq!(exits(&module, &made, &RARE_INPUTS), [0, 1, 1, 0, 0]);
    let float = RARE.replace("  %rest =", "  %ratio = const.f32 1.0\n  %rest =");
    let module = parsed(&float);
    let (_, base) = first(&module);
    let differs = Assumption { expected: Expected::IsNot(0), ..at(base, "c", "ratio", 0) };
    let error = Made::new(&module, base, &[differs], &pipeline).map(|_| ()).expect_err("refused");
    assert_eq!(error, SpeculateError::NotComparable { assumption: 0, ty: Type::F32 });
}

/// A side that an assumption excludes has effects that would keep windows open: the load behind the
/// join may trap there, and the store before the branch may be seen. In the versions that assume,
/// no run takes that side.
#[test]
fn a_side_that_an_assumption_excludes_opens_no_window() {
    let text = "
memory @mem 1
import func @see \"host\" \"see\" (i32) -> i32
export \"main\" @f
func @f(%n: i32, %rare: i32, %p: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %zero)
head(%i: i32, %sum: i32):
  %j = add.i32 %i, %one
  %c = eq.i32 %j, %rare
  br_if %c, slow, fast
slow:
  %seen = call @see(%j)
  jump join
fast:
  store.i32 @mem[%p], %j
  jump join
join:
  %b = load.i32 @mem[%p]
  %s = add.i32 %sum, %b
  store.i32 @mem[%p], %s
  %more = ult.i32 %j, %n
  br_if %more, head(%j, %s), done
done:
  return %s
}";
    let module = parsed(text);
    let (_, base) = first(&module);
    let never = at(base, "c", "c", 0);
    let made = Made::new(&module, base, &[never], &Pipeline::default()).expect("it is legal");
    assert_eq!(counts(&made), (1, 0, 0), "{:?}", made.last().dropped);
    assert!(made.last().exits[0].pins.is_empty(), "nothing is missing");
    let loads = |f: &Function| f.all_insts().filter(|i| f.inst(*i).opcode == Opcode::Load).count();
    assert_eq!((loads(base), loads(made.function())), (1, 0));
}

/// Calls through a fixed table whose index is assumed become calls of the function there.
#[test]
fn an_assumed_index_resolves_the_call() {
    let text = "
table @ops 2 fixed
elem @ops 0 [@inc, @dec]
func @apply(%x: i32, %op: i32) -> i32 {
entry:
  %r = call_indirect @ops (i32) -> i32 [%op](%x)
  %s = add.i32 %r, %r
  return %s
}
func @inc(%x: i32) -> i32 {
entry:
  %one = const.i32 1
  %y = add.i32 %x, %one
  return %y
}
func @dec(%x: i32) -> i32 {
entry:
  %one = const.i32 1
  %y = sub.i32 %x, %one
  return %y
}";
    let module = parsed(text);
    let (_, base) = first(&module);
    let at = Point::before(base.first_inst(base.entry()));
    let expected = Expected::Is(1);
    let down = Assumption { at, value: base.arguments()[1], expected, reason: 7 };
    let made = Made::new(&module, base, &[down], &Pipeline::default()).expect("it is legal");
    assert_eq!(counts(&made), (1, 0, 0), "{:?}", made.last().dropped);
    let opcodes: Vec<Opcode> =
        made.function().all_insts().map(|i| made.function().inst(i).opcode).collect();
    assert!(opcodes.contains(&Opcode::Call) && !opcodes.contains(&Opcode::CallIndirect));
    let points = made.function().inst_count();
    assert_eq!(made.last().backward[&VersionTree::BASE].len(), points, "an exit at every point");
    assert_eq!(exits(&module, &made, &[&[5, 1], &[5, 0], &[5, 2]]), [0, 1, 1]);
    let module = parsed(&text.replace(" fixed", ""));
    let (_, base) = first(&module);
    let made = Made::new(&module, base, &[down], &Pipeline::default()).expect("it is legal");
    let is_call = |i: Inst| made.function().inst(i).opcode == Opcode::Call;
    assert!(!made.function().all_insts().any(is_call), "code may write the table");
}

#[test]
fn no_entry_lands_in_the_next_round_of_a_loop_that_assumes() {
    // Case 2 of the design: from the second round on, a run in the base may have come by the slow
    // side. Behind the assumption is the whole loop, but not the code before it.
    let module = parsed(RARE);
    let (_, base) = first(&module);
    let made = Made::new(&module, base, &[at(base, "c", "c", 0)], &Pipeline::default())
        .expect("it is legal");
    let f = made.function();
    let entry = f.entry();
    let landings: Vec<_> = made.last().forward.entries().map(|(_, e)| e.target.inst()).collect();
    assert!(!landings.is_empty(), "entries from the base land before the loop");
    assert!(landings.iter().all(|inst| f.inst_block(*inst) == entry), "and nowhere else");
}

#[test]
fn wrong_assumptions_are_refused_by_name() {
    let module = parsed(RARE);
    let (_, base) = first(&module);
    let fine = at(base, "c", "c", 0);
    let refused = |a: Assumption| {
        Made::new(&module, base, &[fine, a], &Pipeline::default())
            .map(|_| ())
            .expect_err("it is refused")
    };
    let early = Assumption { at: Point::before(base.first_inst(base.entry())), ..fine };
    let error = SpeculateError::NotAvailable { assumption: 1, value: fine.value };
    assert_eq!(refused(early), error);
    let wide = Assumption { expected: Expected::Is(1 << 32), ..fine };
    assert!(matches!(refused(wide), SpeculateError::DoesNotFit { assumption: 1, .. }));
    let lost = Inst::from_u32(10_000);
    let nowhere = Assumption { at: Point::before(lost), ..fine };
    let error = SpeculateError::NoSuchPoint { assumption: 1, inst: lost };
    assert_eq!(refused(nowhere), error);
    let module = parsed("func @f(%r: funcref, %x: externref) {\nentry:\n  return\n}");
    let (_, base) = first(&module);
    let at = Point::before(base.first_inst(base.entry()));
    let of_ref = |index: usize, bits| {
        let value = base.arguments()[index];
        let assumption = Assumption { at, value, expected: Expected::Is(bits), reason: 0 };
        Made::new(&module, base, &[assumption], &Pipeline::default()).map(|_| ())
    };
    // Function 0 is the only function, and references of the host are no constants.
    for (index, bits, ty) in
        [(0, 2, Type::FuncRef), (0, u64::MAX, Type::FuncRef), (1, 1, Type::ExternRef)]
    {
        let error = SpeculateError::DoesNotFit { assumption: 0, bits, ty };
        assert_eq!(of_ref(index, bits), Err(error));
    }
    assert_eq!([of_ref(0, 0), of_ref(0, 1), of_ref(1, 0)], [Ok(()), Ok(()), Ok(())]);
}

/// A pass takes the exit of an assumption that the base itself makes, and nothing may be pinned.
/// The version then assumes no more than the base.
#[test]
fn a_base_that_assumes_keeps_its_exits() {
    let text = "
global @g: mut i32 = 3
func @f(%x: i32, %q: i32) -> i32 {
entry:
  %a = global_get.i32 @g
  global_set.i32 @g, %x
  %seven = const.i32 7
  %y = assume.i32 %x, 7, 1
  %c = eq.i32 %y, %seven
  br_if %c, one, two
one:
  %d = eq.i32 %q, %seven
  return %d
two:
  return %a
}";
    let module = parsed(text);
    let (_, base) = first(&module);
    let pipeline = parse("O1").expect("it is a pipeline");
    for pins in [Pins::Never, Pins::OnDemand, Pins::Live] {
        for assume in [&[at(base, "d", "d", 0)][..], &[]] {
            let mut tree = VersionTree::new(base.clone());
            let plan = Plan { pins, ..Plan::new(assume, &pipeline) };
            let made = speculate(&module, &mut tree, VersionTree::BASE, &plan);
            let made = made.unwrap_or_else(|error| panic!("{pins:?}: {error}"));
            let f = tree.function(made.optimized);
            let mut makes = f.all_insts().filter(|i| f.inst(*i).opcode == Opcode::Assume);
            assert!(makes.all(|inst| made.exit(inst).is_some()), "{pins:?}: each has an exit");
        }
    }
}

/// The second speculation takes the only use of `%a`, which the exit of the first speculation
/// needs. The first assumption is made once more, with `%a` to keep.
#[test]
fn an_assumption_repeated_for_its_pins_is_none_of_the_plan() {
    let module = parsed(
        "export \"main\" @f
func @f(%x: i32, %y: i32, %c: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %one)
head(%i: i32, %a: i32):
  %more = ult.i32 %i, %x
  br_if %more, body, done
body:
  %j = add.i32 %i, %one
  %b = mul.i32 %a, %y
  jump head(%j, %b)
done:
  %p = add.i32 %y, %x
  br_if %c, some, none
some:
  %r = add.i32 %a, %p
  return %r
none:
  return %p
}",
    );
    let (_, base) = first(&module);
    let pipeline = parse("O1").expect("it is a pipeline");
    let fact = |before: Inst, name: &str, bits: u64| Assumption {
        at: Point::before(before),
        value: value(base, name),
        expected: Expected::Is(bits),
        reason: 0,
    };
    let branch = base.next_inst(inst(base, "p")).expect("a terminator follows");
    let is_seven = fact(inst(base, "p"), "y", 7);
    let mut made = Made::new(&module, base, &[is_seven], &pipeline).expect("it is legal");
    assert_eq!(counts(&made), (1, 0, 0), "the plain exit needs no pin");
    let is_zero = fact(branch, "c", 0);
    made.again(&module, &Plan::new(&[is_zero], &pipeline)).expect("it is legal");
    let assumptions: Vec<_> = made.last().exits.iter().map(|exit| exit.assumption).collect();
    assert_eq!(assumptions, [None, Some(is_zero)]);
    assert_eq!(made.last().exits[0].pins, [value(base, "a")]);
    assert_eq!((&made.last().dropped, &made.last().settled), (&Vec::new(), &Vec::new()));
    let inputs: [&[u64]; 4] = [&[3, 7, 0], &[3, 7, 1], &[3, 8, 0], &[3, 8, 1]];
    assert_eq!(exits(&module, &made, &inputs), [0, 1, 2, 2]);
}

/// The loop carries `%i` to `%j`, which the fast tier would compute in the slot of `%i`. The exit
/// reads `%i` behind its last use. (`runs_that_leave_at_any_assumption_end_as_the_base_does` has
/// sums and comparisons that the fast tier would not store.)
#[test]
fn runs_that_leave_keep_values_in_both_tiers() {
    let module = parsed(
        "memory @mem 1
export \"main\" @f
func @f(%n: i32, %rare: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %zero)
head(%i: i32, %sum: i32):
  %at = add.i32 %i, %rare
  %a = uload8.i32 @mem[%at + 64]
  %j = add.i32 %i, %one
  %c = eq.i32 %j, %rare
  br_if %c, slow, next(%sum)
slow:
  %far = mul.i32 %i, %at
  jump next(%far)
next(%s: i32):
  %t = add.i32 %s, %a
  %more = ult.i32 %j, %n
  br_if %more, head(%j, %t), done
done:
  return %t
}",
    );
    let (_, base) = first(&module);
    let never = at(base, "c", "c", 0);
    for pipeline in ["O1", "canonical"] {
        let pipeline = parse(pipeline).expect("it is a pipeline");
        let made = Made::new(&module, base, &[never], &pipeline).expect("it is legal");
        assert_eq!(counts(&made), (1, 0, 0));
        let kept = made.last().exit(made.last().exits[0].inst).expect("it has an exit").1;
        let inputs: [&[u64]; 4] = [&[9, 100], &[9, 7], &[9, 1], &[1, 1]];
        assert_eq!(exits(&module, &made, &inputs), [0, 1, 1, 1], "{:?}", kept.entry());
    }
}
