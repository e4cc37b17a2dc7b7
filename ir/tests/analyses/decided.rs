//! Decided branches compared with a naive fixpoint, and the needs of runs compared with the
//! textbook definition.

use crate::analyses::graphs::{Rng, function_with_values, on_many_graphs};
use crate::analyses::liveness::{Sets, compare_local, compare_with, naive_needed};
use ir::decided::Decided;
use ir::eval::{eval, is_evaluated};
use ir::liveness::{CountedUses, Liveness};
use ir::text::parse_module;
use ir::{Block, Edge, Function, Inst, Opcode, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The known contents of values. A value without an entry has not been computed; `None` means that
/// its contents vary.
type Known = BTreeMap<Value, Option<u64>>;

/// The edges that may be taken, found by processing all reached code until nothing changes.
fn naive(function: &Function) -> BTreeSet<(Inst, u32)> {
    let mut known: Known = function.arguments().iter().map(|v| (*v, None)).collect();
    let mut taken = BTreeSet::new();
    loop {
        let before = (known.clone(), taken.clone());
        let entered = |block: Block| {
            let into = |e: &Edge| taken.contains(&(e.inst, e.index));
            block == function.entry() || function.predecessors(block).iter().any(into)
        };
        let blocks: Vec<Block> = function.blocks().filter(|b| entered(*b)).collect();
        for inst in blocks.iter().flat_map(|b| function.block_insts(*b)) {
            let data = function.inst(inst);
            if let Some(result) = data.result() {
                computed(function, inst, &known)
                    .into_iter()
                    .for_each(|c| meet(&mut known, result, c));
            }
            for index in targets(function, inst, &known) {
                taken.insert((inst, index));
                let target = &data.targets[index as usize];
                for (param, arg) in function.block_params(target.block).iter().zip(&target.args) {
                    known.get(arg).copied().into_iter().for_each(|c| meet(&mut known, *param, c));
                }
            }
        }
        if before == (known.clone(), taken.clone()) {
            return taken;
        }
    }
}

fn meet(known: &mut Known, value: Value, content: Option<u64>) {
    let slot = known.entry(value).or_insert(content);
    *slot = slot.filter(|bits| Some(*bits) == content);
}

fn computed(function: &Function, inst: Inst, known: &Known) -> Option<Option<u64>> {
    let data = function.inst(inst);
    if let Some(bits) = data.constant() {
        return Some(Some(bits));
    }
    let args: Vec<Option<u64>> =
        data.args.iter().map(|v| known.get(v).copied()).collect::<Option<_>>()?;
    let args: Option<Vec<u64>> = args.into_iter().collect();
    let args = args.filter(|_| is_evaluated(data.opcode));
    let ty =
        |args: &Vec<u64>| eval(data.opcode, data.ty, function.value_type(data.args[0]), args).ok();
    Some(args.and_then(|args| ty(&args)))
}

fn targets(function: &Function, inst: Inst, known: &Known) -> Vec<u32> {
    let data = function.inst(inst);
    let count = data.targets.len() as u32;
    if !matches!(data.opcode, Opcode::BrIf | Opcode::Switch) {
        return (0..count).collect();
    }
    match known.get(&data.args[0]) {
        None => Vec::new(),
        Some(None) => (0..count).collect(),
        Some(Some(bits)) if data.opcode == Opcode::BrIf => vec![u32::from(*bits == 0)],
        Some(Some(bits)) => vec![(*bits).min(u64::from(count) - 1) as u32],
    }
}

/// The blocks that a run may reach.
fn reached(function: &Function, taken: &BTreeSet<(Inst, u32)>) -> BTreeSet<Block> {
    let mut reached = BTreeSet::new();
    let mut work = vec![function.entry()];
    while let Some(block) = work.pop() {
        if reached.insert(block) {
            let end = function.terminator(block);
            let targets = (0..).zip(&function.inst(end).targets);
            work.extend(
                targets.filter(|(index, _)| taken.contains(&(end, *index))).map(|(_, t)| t.block),
            );
        }
    }
    reached
}

#[test]
fn branches_are_decided_as_a_naive_fixpoint_decides_them() {
    let (mut rng, mut never) = (Rng(11), 0);
    on_many_graphs(|graph| {
        let function = function_with_values(graph, &mut rng);
        let (decided, taken) = (Decided::new(&function), naive(&function));
        let reached = reached(&function, &taken);
        assert_eq!(decided.cfg().rpo().iter().copied().collect::<BTreeSet<_>>(), reached);
        for &block in &reached {
            let end = function.terminator(block);
            for index in 0..function.inst(end).targets.len() as u32 {
                let may = taken.contains(&(end, index));
                assert_eq!(
                    decided.may_take(Edge { inst: end, index }),
                    may,
                    "{end} to target {index}"
                );
                never += usize::from(!may);
            }
        }
    });
    assert!(never > 1000, "only {never} edges are never taken");
}

#[test]
fn liveness_of_runs_ignores_edges_that_no_run_takes() {
    let (mut rng, mut fewer) = (Rng(13), 0);
    on_many_graphs(|graph| {
        let function = function_with_values(graph, &mut rng);
        let decided = Decided::new(&function);
        let expected: Sets = naive_needed(&function, &BTreeMap::new(), |e| decided.may_take(e));
        let in_run = Liveness::of_run(&function, &decided, &BTreeMap::new());
        compare_with(&function, decided.cfg(), |e| decided.may_take(e), &expected, &in_run);
        let counted = CountedUses::InRun(&decided);
        compare_local(&function, decided.cfg(), counted, &BTreeMap::new(), &expected);
        let in_text =
            Liveness::of_needed(&function, &ir::cfg::Cfg::new(&function), &BTreeMap::new());
        let count =
            |l: &Liveness| decided.cfg().rpo().iter().map(|b| l.live_in(*b).len()).sum::<usize>();
        fewer += count(&in_text) - count(&in_run);
    });
    assert!(fewer > 100, "excluded edges remove only {fewer} live values");
}

fn decided(text: &str) -> (Function, Decided) {
    let module = parse_module(text).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let function = module.defined().next().expect("one function").1.clone();
    let decided = Decided::new(&function);
    (function, decided)
}

fn is_reached(function: &Function, decided: &Decided, name: &str) -> bool {
    let block = function.blocks().find(|b| function.block_name(*b) == Some(name)).expect("a block");
    decided.cfg().is_reachable(block)
}

/// The parameter is constant around the loop only because it decides the branch that guards its
/// change.
#[test]
fn a_parameter_is_constant_if_only_excluded_code_changes_it() {
    let made = decided(
        "func @f(%a: i32) -> i32 {
entry:
  %one = const.i32 1
  jump head(%one)
head(%p: i32):
  br_if %p, same, other
same:
  br_if %a, head(%p), out
other:
  %zero = const.i32 0
  jump head(%zero)
out:
  return %p
}",
    );
    assert!(
        is_reached(&made.0, &made.1, "same")
            && is_reached(&made.0, &made.1, "out")
            && !is_reached(&made.0, &made.1, "other")
    );
    assert!(!made.1.is_empty());
}

/// A trapping operation has no result, so no branch on the result is decided.
#[test]
fn a_division_by_zero_decides_nothing() {
    let made = decided(
        "func @f(%a: i32) -> i32 {
entry:
  %one = const.i32 1
  %zero = const.i32 0
  %q = udiv.i32 %one, %zero
  br_if %q, left, right
left:
  return %a
right:
  return %q
}",
    );
    assert!(is_reached(&made.0, &made.1, "left") && is_reached(&made.0, &made.1, "right"));
    assert!(made.1.is_empty());
}

/// A switch takes its last target for every larger number.
#[test]
fn a_switch_on_a_large_number_takes_the_last_target() {
    let made = decided(
        "func @f(%a: i32) -> i32 {
entry:
  %many = const.i32 77
  switch %many, [first, second], default last
first:
  return %a
second:
  return %a
last:
  return %many
}",
    );
    assert_eq!(
        ["first", "second", "last"].map(|name| is_reached(&made.0, &made.1, name)),
        [false, false, true]
    );
}

/// The search learns each argument of the jump separately. It must not process the jump once per
/// argument.
#[test]
fn a_jump_with_many_arguments_is_looked_at_once() {
    let count = 60_000;
    let list = |name: &str, ty: &str| {
        (0..count).map(|n| format!("%{name}{n}{ty}")).collect::<Vec<_>>().join(", ")
    };
    let adds: String = (0..count).map(|n| format!("  %s{n} = add.i32 %one, %one\n")).collect();
    let made = decided(&format!(
        "func @f(%a: i32) -> i32 {{
entry:
  %one = const.i32 1
{adds}  jump next({})
next({}):
  br_if %p7, left, right
left:
  return %a
right:
  return %p8
}}",
        list("s", ""),
        list("p", ": i32")
    ));
    assert!(is_reached(&made.0, &made.1, "left") && !is_reached(&made.0, &made.1, "right"));
}
