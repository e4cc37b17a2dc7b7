//! Memory SSA, compared with its definitions: merges at the iterated dominance frontier, and the
//! guarantees of a walk.

use crate::analyses::graphs::{Graph, Rng, on_many_graphs};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::memory_ssa::{Clobbers, Definition, MemorySsa};
use ir::{
    Block, Effects, Function, FunctionBuilder, Global, Imm, Inst, InstSpec, Memory, Opcode,
    Signature, Target, Type, Value,
};
use std::collections::BTreeSet;

/// A function with this control flow and random memory accesses. It reads and writes two globals
/// and three overlapping words, and grows the memory. Addresses are sums of the argument and
/// constants.
fn function(graph: &Graph, rng: &mut Rng) -> Function {
    let mut builder = FunctionBuilder::new("memory", Signature::new(&[Type::I32], &[]));
    let blocks: Vec<Block> = graph.iter().map(|_| builder.create_block()).collect();
    let x = builder.append_param(blocks[0], Type::I32);
    for (n, successors) in graph.iter().enumerate() {
        builder.switch_to(blocks[n]);
        for _ in 0..rng.below(4) {
            access(&mut builder, rng, x);
        }
        let targets: Vec<Target> =
            successors.iter().map(|s| Target::new(blocks[*s], &[])).collect();
        let (opcode, args) = match targets.len() {
            0 => (Opcode::Return, vec![]),
            1 => (Opcode::Jump, vec![]),
            2 => (Opcode::BrIf, vec![x]),
            _ => (Opcode::Switch, vec![x]),
        };
        builder.insert(InstSpec::terminator(opcode, &args, targets));
    }
    builder.finish().expect("every block is terminated").function
}

fn access(builder: &mut FunctionBuilder, rng: &mut Rng, x: Value) {
    let global = Imm::Global(Global::from_u32(rng.below(2) as u32));
    match rng.below(16) {
        0 => {
            builder.insert_value(InstSpec::new(
                Opcode::MemoryGrow,
                Type::I32,
                Imm::Memory(Memory::from_u32(0)),
                &[x],
            ));
        }
        1..4 => {
            builder.insert(InstSpec::new(Opcode::GlobalSet, Type::I32, global, &[x]));
        }
        4..7 => {
            builder.insert_value(InstSpec::new(Opcode::GlobalGet, Type::I32, global, &[]));
        }
        kind => {
            let offset = builder.constant(Type::I32, rng.below(3) as u64 * 3);
            let address = builder.op(Opcode::Add, Type::I32, &[x, offset]);
            let imm = Imm::Address(Memory::from_u32(0), rng.below(2) as u64 * 4);
            match kind {
                7..12 => {
                    _ = builder.insert(InstSpec::new(Opcode::Store, Type::I32, imm, &[address, x]))
                }
                _ => {
                    _ = builder.insert_value(InstSpec::new(
                        Opcode::Load,
                        Type::I32,
                        imm,
                        &[address],
                    ))
                }
            }
        }
    }
}

fn writes(function: &Function, inst: Inst) -> bool {
    function.inst(inst).opcode.effects().has(Effects::WRITES)
}

/// The frontier by definition: y is in the frontier of x if x dominates a predecessor of y and does
/// not strictly dominate y.
fn frontier(function: &Function, dom: &DomTree) -> BTreeSet<Block> {
    let reachable = dom.cfg().rpo();
    let mut defining: BTreeSet<Block> = reachable.iter().copied().collect();
    defining.retain(|b| function.block_insts(*b).any(|i| writes(function, i)));
    let mut found = BTreeSet::new();
    loop {
        let is_in_frontier = |y: &Block| {
            let preds = || function.predecessors(*y).iter().map(|e| function.inst_block(e.inst));
            defining.iter().any(|x| {
                preds().any(|p| dom.dominates(*x, p)) && (x == y || !dom.dominates(*x, *y))
            })
        };
        let next: BTreeSet<Block> = reachable.iter().copied().filter(is_in_frontier).collect();
        if next == found {
            return found;
        }
        defining.extend(&next);
        found = next;
    }
}

#[test]
fn merges_stand_at_the_iterated_dominance_frontier() {
    let (mut rng, mut merges) = (Rng(7), 0);
    on_many_graphs(|graph| {
        let function = function(graph, &mut rng);
        let dom = DomTree::new(&function, &Cfg::new(&function));
        let ssa = MemorySsa::new(&function, &dom);
        let expected = frontier(&function, &dom);
        assert_eq!(ssa.merges().iter().copied().collect::<BTreeSet<_>>(), expected);
        merges += expected.len();
        for &block in dom.cfg().rpo() {
            // The start of a block is a merge, or equals the end of every predecessor.
            let start = ssa.at_start(block).expect("reachable");
            if start == Definition::Merge(block) {
                continue;
            }
            for edge in function.predecessors(block) {
                let end = ssa.at_end(function.inst_block(edge.inst));
                assert!(
                    end.is_none_or(|end| end == start),
                    "{block} starts with {start:?}, an edge brings {end:?}"
                );
            }
        }
    });
    assert!(merges > 1000, "only {merges} merges");
}

/// The location that an access touches: a global, or bytes counted from the argument. `None` means
/// any location.
fn touched(function: &Function, inst: Inst) -> Option<(Option<Global>, std::ops::Range<u64>)> {
    let data = function.inst(inst);
    match data.imm {
        Imm::Global(global) => Some((Some(global), 0..1)),
        Imm::Address(_, offset) => {
            let sum = function.inst(function.defining_inst(data.args[0]).expect("a sum"));
            let from = offset + function.constant(sum.args[1]).expect("of a constant");
            Some((None, from..from + 4))
        }
        _ => None,
    }
}

fn may_write(function: &Function, write: Inst, read: Inst) -> bool {
    let (Some((global, bytes)), Some((other, others))) =
        (touched(function, write), touched(function, read))
    else {
        return true;
    };
    global == other && bytes.start < others.end && others.start < bytes.end
}

/// Walks every path upward from a read to the definition found, and checks every instruction on the
/// way.
fn check_walk(function: &Function, read: Inst, found: Definition) {
    let mut seen = BTreeSet::new();
    let mut work = vec![(function.inst_block(read), Some(read))];
    while let Some((block, below)) = work.pop() {
        let insts: Vec<Inst> =
            function.block_insts(block).take_while(|i| Some(*i) != below).collect();
        let written = insts.iter().rev().copied().find(|i| {
            found == Definition::Write(*i)
                || (writes(function, *i) && may_write(function, *i, read))
        });
        if let Some(write) = written {
            assert_eq!(found, Definition::Write(write), "{read} is said to see {found:?}");
            continue;
        }
        if found == Definition::Merge(block) {
            continue;
        }
        assert!(
            block != function.entry() || found == Definition::Entry,
            "{read} does not pass {found:?}"
        );
        for edge in function.predecessors(block) {
            let from = function.inst_block(edge.inst);
            if seen.insert(from) {
                work.push((from, None));
            }
        }
    }
}

/// Walks also go far enough: they pass every disjoint write. No walk in these graphs reaches the
/// step limit.
#[test]
fn walks_end_at_definitions_that_may_change_the_place() {
    let (mut rng, mut walked, mut past_merges) = (Rng(11), 0, 0);
    on_many_graphs(|graph| {
        let function = function(graph, &mut rng);
        let dom = DomTree::new(&function, &Cfg::new(&function));
        let ssa = MemorySsa::new(&function, &dom);
        let mut clobbers = Clobbers::new(&function, &dom, &ssa);
        for inst in
            dom.cfg().rpo().iter().flat_map(|b| function.block_insts(*b)).collect::<Vec<_>>()
        {
            let Some(found) = clobbers.of_read(inst) else { continue };
            let from = ssa.before(inst).expect("a read in a reachable block");
            assert_eq!(
                clobbers.of_fixed_read(inst, |_| false),
                Some(found),
                "the memo changes nothing"
            );
            // `check_walk` also follows unreachable predecessors, which are on no path. It
            // therefore applies only to functions without unreachable blocks. The random graphs
            // have few such blocks.
            let reached = function.blocks().all(|b| dom.cfg().is_reachable(b));
            if reached {
                check_walk(&function, inst, found);
            }
            if let Definition::Write(write) = found {
                assert!(
                    may_write(&function, write, inst),
                    "{inst} stops at {write}, which is apart"
                );
            }
            walked += usize::from(found != from);
            past_merges += usize::from(found != from && matches!(from, Definition::Merge(_)));
        }
    });
    assert!(walked > 1000 && past_merges > 200, "{walked} walks, {past_merges} past merges");
}
