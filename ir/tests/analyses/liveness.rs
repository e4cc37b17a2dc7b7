//! Liveness, compared with the textbook fixpoint over points.

use crate::analyses::graphs::{Rng, function_with_values, on_many_graphs};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::liveness::{CountedUses, Liveness, LocalLiveness};
use ir::{Block, Edge, Function, Inst, Point, Value};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Sets = BTreeMap<Inst, BTreeSet<Value>>;

/// Liveness by definition. A value is live at a point if its instruction uses it. It is also live
/// there if it is live at a following point, unless the instruction defines it. The function
/// computes the least solution, by iteration over all points.
fn naive(function: &Function, extra: &BTreeMap<Inst, Vec<Value>>) -> Sets {
    let mut live = Sets::new();
    loop {
        let mut changed = false;
        for inst in function.all_insts() {
            let data = function.inst(inst);
            let mut set: BTreeSet<Value> = BTreeSet::new();
            if let Some(next) = function.next_inst(inst) {
                set.extend(live.get(&next).into_iter().flatten());
            }
            for target in &data.targets {
                let first = function.first_inst(target.block);
                let params = function.block_params(target.block);
                set.extend(live.get(&first).into_iter().flatten().filter(|v| !params.contains(v)));
            }
            data.results.iter().for_each(|r| _ = set.remove(r));
            set.extend(data.operands());
            set.extend(extra.get(&inst).into_iter().flatten());
            changed |= live.insert(inst, set.clone()) != Some(set);
        }
        if !changed {
            return live;
        }
    }
}

/// Needed liveness by definition (Giegerich, Möncke, Wilhelm, "Invariance of approximate
/// semantics", 1981). The following uses count:
///
/// - uses by an instruction that has an effect, branches or may trap;
/// - uses by an instruction whose result is live after it;
/// - the use of a divisor that excludes a trap;
/// - an argument of a target, if the parameter is live there.
///
/// The function computes the least solution, by iteration over all points.
pub(crate) fn naive_needed(
    function: &Function,
    extra: &BTreeMap<Inst, Vec<Value>>,
    may_take: impl Fn(Edge) -> bool,
) -> Sets {
    let mut live = Sets::new();
    loop {
        let mut changed = false;
        for inst in function.all_insts() {
            let data = function.inst(inst);
            let mut set: BTreeSet<Value> = BTreeSet::new();
            if let Some(next) = function.next_inst(inst) {
                set.extend(live.get(&next).into_iter().flatten());
            }
            let targets = (0..)
                .zip(&data.targets)
                .filter(|(index, _)| may_take(Edge { inst, index: *index }));
            for (_, target) in targets {
                let there =
                    live.get(&function.first_inst(target.block)).cloned().unwrap_or_default();
                let params = function.block_params(target.block);
                let passed = target
                    .args
                    .iter()
                    .zip(params)
                    .filter(|(_, p)| there.contains(p))
                    .map(|(a, _)| *a);
                set.extend(passed);
                set.extend(there.iter().filter(|v| !params.contains(v)));
            }
            let root = !data.opcode.is_effect_free() || function.may_trap(inst);
            if root || data.results.iter().any(|r| set.contains(r)) {
                data.results.iter().for_each(|r| _ = set.remove(r));
                set.extend(&data.args);
            } else if data.opcode.can_trap() {
                set.insert(data.args[1]);
            }
            set.extend(extra.get(&inst).into_iter().flatten());
            changed |= live.insert(inst, set.clone()) != Some(set);
        }
        if !changed {
            return live;
        }
    }
}

fn compare(function: &Function, cfg: &Cfg, extra: &BTreeMap<Inst, Vec<Value>>) {
    let needed = Liveness::of_needed(function, cfg, extra);
    let expected = naive_needed(function, extra, |_| true);
    compare_with(function, cfg, |_| true, &expected, &needed);
    compare_local(function, cfg, CountedUses::Needed(cfg), extra, &expected);
    let all = Liveness::with_extra_uses(function, cfg, extra);
    let expected = naive(function, extra);
    compare_with(function, cfg, |_| true, &expected, &all);
    compare_local(function, cfg, CountedUses::All(cfg), extra, &expected);
}

/// Compares the liveness of single blocks, and of all blocks, with the sets expected.
pub(crate) fn compare_local(
    function: &Function,
    cfg: &Cfg,
    counted: CountedUses<'_>,
    extra: &BTreeMap<Inst, Vec<Value>>,
    expected: &Sets,
) {
    let dom = DomTree::new(function, &Cfg::new(function));
    let compare = |local: &LocalLiveness, block: Block| {
        let mut visited = 0;
        local.for_each_point(function, block, |point, live| {
            let members: Vec<Value> = expected[&point.inst()].iter().copied().collect();
            assert_eq!(live.as_slice(), members, "{point:?}");
            visited += 1;
        });
        assert_eq!(visited, function.block_insts(block).count());
    };
    for &block in cfg.rpo() {
        compare(&LocalLiveness::new(function, &dom, counted, extra, [block]), block);
    }
    let of_all = LocalLiveness::new(function, &dom, counted, extra, cfg.rpo().iter().copied());
    cfg.rpo().iter().for_each(|block| compare(&of_all, *block));
}

pub(crate) fn compare_with(
    function: &Function,
    cfg: &Cfg,
    may_take: impl Fn(Edge) -> bool,
    expected: &Sets,
    liveness: &Liveness,
) {
    for &block in cfg.rpo() {
        let mut visited = 0;
        liveness.for_each_point(function, block, |point, live| {
            let members: Vec<Value> = expected[&point.inst()].iter().copied().collect();
            assert_eq!(live.as_slice(), members, "{:?}", point);
            assert!(live.iter().all(|v| live.contains(v)));
            visited += 1;
        });
        assert_eq!(visited, function.block_insts(block).count());
        let params = function.block_params(block);
        let first = &expected[&function.first_inst(block)];
        let live_in: Vec<Value> = first.iter().copied().filter(|v| !params.contains(v)).collect();
        assert_eq!(liveness.live_in(block).as_slice(), live_in);
        let end = function.terminator(block);
        let edges = (0..)
            .zip(function.successors(block))
            .filter(|(index, _)| may_take(Edge { inst: end, index: *index }));
        let next = edges.flat_map(|(_, t)| liveness.live_in(t.block).iter());
        let live_out: BTreeSet<Value> = next.collect();
        assert_eq!(liveness.live_out(block).as_slice(), live_out.into_iter().collect::<Vec<_>>());
        let point = Point::before(function.first_inst(block));
        assert_eq!(
            liveness.live_before(function, point).as_slice(),
            first.iter().copied().collect::<Vec<_>>()
        );
    }
    assert!(
        liveness.live_in(function.entry()).is_empty(),
        "strict functions need nothing before the entry"
    );
}

#[test]
fn liveness_is_as_defined_over_points() {
    let mut rng = Rng(3);
    on_many_graphs(|graph| {
        let function = function_with_values(graph, &mut rng);
        compare(&function, &Cfg::new(&function), &BTreeMap::new());
    });
}

#[test]
fn extra_uses_count_like_uses_before_their_instruction() {
    let mut rng = Rng(5);
    let mut uses = 0;
    on_many_graphs(|graph| {
        let function = function_with_values(graph, &mut rng);
        let cfg = Cfg::new(&function);
        let dom = DomTree::new(&function, &cfg);
        let mut extra: BTreeMap<Inst, Vec<Value>> = BTreeMap::new();
        for inst in cfg.rpo().iter().flat_map(|b| function.block_insts(*b)) {
            let value = Value::from_u32(rng.below(function.value_bound()) as u32);
            if rng.below(3) == 0 && dom.available_at(&function, value, Point::before(inst)) {
                extra.entry(inst).or_default().push(value);
                uses += 1;
            }
        }
        compare(&function, &cfg, &extra);
    });
    assert!(uses > 1000, "only {uses} extra uses were tried");
}

#[test]
fn an_extra_use_that_is_not_dominated_is_live_into_the_entry() {
    let mut rng = Rng(1);
    let function = function_with_values(&vec![vec![1, 2], vec![2], vec![]], &mut rng);
    let value = |block: usize| {
        let block = function.blocks().nth(block).expect("three blocks");
        function.block_insts(block).find_map(|i| function.inst(i).result())
    };
    let last = function.blocks().last().map(|b| function.terminator(b)).expect("three blocks");
    let inner = value(1).expect("seed 1 defines a value in the middle block");
    let extra = BTreeMap::from([(last, vec![inner])]);
    let liveness = Liveness::with_extra_uses(&function, &Cfg::new(&function), &extra);
    assert_eq!(liveness.live_in(function.entry()).as_slice(), &[inner]);
}

/// A row of blocks is longer than the number of blocks that are searched one by one.
#[test]
fn local_liveness_of_many_blocks_is_that_of_all() {
    let row: Vec<Vec<usize>> = (0..80).map(|n| if n < 79 { vec![n + 1] } else { vec![] }).collect();
    let function = function_with_values(&row, &mut Rng(7));
    compare(&function, &Cfg::new(&function), &BTreeMap::new());
}

#[test]
#[should_panic(expected = "names a value that values lacks")]
fn an_extra_use_of_a_missing_value_is_refused() {
    let function = function_with_values(&vec![vec![]], &mut Rng(1));
    let ret = function.terminator(function.entry());
    let extra = BTreeMap::from([(ret, vec![Value::from_u32(900)])]);
    let _ = Liveness::with_extra_uses(&function, &Cfg::new(&function), &extra);
}
