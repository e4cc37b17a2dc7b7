//! Tests: the editor performs, records and rejects edits; replay detects actions that a log omits
//! or invents.

use super::*;
use crate::builder::FunctionBuilder;
use crate::inst::{Edge, Imm, InstSpec, Target};
use crate::{Block, Func, Function, Opcode, Signature, Type, Value};

/// `f(a, b)`: a loop that adds up `a * b` and a constant product, with a dead instruction.
fn sample() -> Function {
    let mut b = FunctionBuilder::new("f", Signature::new(&[Type::I32, Type::I32], &[Type::I32]));
    let entry = b.create_block();
    let (x, y) = (b.append_param(entry, Type::I32), b.append_param(entry, Type::I32));
    let header = b.create_block();
    let (i, sum) = (b.append_param(header, Type::I32), b.append_param(header, Type::I32));
    let (body, exit) = (b.create_block(), b.create_block());
    b.switch_to(entry);
    let zero = b.constant(Type::I32, 0);
    b.jump(header, &[x, zero]);
    b.switch_to(header);
    b.br_if(i, Target::new(body, &[]), Target::new(exit, &[]));
    b.switch_to(body);
    let one = b.constant(Type::I32, 1);
    let product = b.op(Opcode::Mul, Type::I32, &[x, y]);
    let again = b.op(Opcode::Mul, Type::I32, &[x, y]);
    let next_sum = b.op(Opcode::Add, Type::I32, &[sum, product]);
    let both = b.op(Opcode::Add, Type::I32, &[next_sum, again]);
    let next_i = b.op(Opcode::Sub, Type::I32, &[i, one]);
    b.jump(header, &[next_i, both]);
    b.switch_to(exit);
    b.ret(&[sum]);
    b.finish().expect("the sample is complete").function
}

/// A pass that uses every primitive at least once.
struct Everything;

impl Pass for Everything {
    fn name(&self) -> &'static str {
        "everything"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        assert!(ed.plan("all"));
        let blocks: Vec<Block> = ed.func().blocks().collect();
        let (entry, header, body) = (blocks[0], blocks[1], blocks[2]);
        let insts: Vec<_> = ed.func().block_insts(body).collect();
        let result =
            |ed: &Editor<'_>, i: usize| ed.func().inst(insts[i]).result().expect("one result");
        let (product, again) = (result(ed, 1), result(ed, 2));
        ed.replace_all(again, product);
        ed.delete(insts[2]);
        let preheader = ed.join_edges(&[Edge { inst: ed.func().terminator(entry), index: 0 }]);
        ed.hoist(insts[1], ed.func().terminator(preheader));
        let latch = ed.split_edge(Edge { inst: ed.func().terminator(body), index: 0 });
        ed.merge_blocks(body);
        assert!(!ed.func().has_block(latch));
        let back = Edge { inst: ed.func().terminator(body), index: 0 };
        let latch = ed.split_edge(back);
        ed.redirect(back);
        ed.remove_unreachable(&[latch]);
        let six = ed.add_value(InstSpec::constant(Type::I32, 6), insts[5]);
        let seven = ed
            .add_value(InstSpec::new(Opcode::Add, Type::I32, Imm::None, &[six, product]), insts[5]);
        let seven_inst = ed.func().defining_inst(seven).expect("an instruction");
        let edges: Vec<Edge> = ed.func().predecessors(header).to_vec();
        let args: Vec<(Edge, Value)> = edges
            .iter()
            .map(|e| (*e, if ed.func().inst_block(e.inst) == body { six } else { product }))
            .collect();
        let param = ed.add_block_param(header, Type::I32, &args);
        ed.replace_operand(insts[5], 0, ed.func().inst(insts[5]).args[0]);
        ed.remove_block_param(header, 2);
        assert!(!ed.func().has_value(param));
        let last = ed.func().terminator(body);
        ed.sink(seven_inst, last);
        let branch = ed.func().terminator(header);
        remove_a_dead_cycle(ed, header);
        ed.fold_branch(branch, 1);
        ed.remove_unreachable(&[body]);
    }
}

/// Adds a dead counter to the loop and removes it.
fn remove_a_dead_cycle(ed: &mut Editor<'_>, header: Block) {
    let entry = ed.func().terminator(ed.func().entry());
    let one = ed.add_value(InstSpec::constant(Type::I32, 1), entry);
    let edges: Vec<Edge> = ed.func().predecessors(header).to_vec();
    let args: Vec<(Edge, Value)> = edges.iter().map(|e| (*e, one)).collect();
    let counter = ed.add_block_param(header, Type::I32, &args);
    let back = edges.iter().map(|e| e.inst).max().expect("a loop");
    let count =
        ed.add_value(InstSpec::new(Opcode::Add, Type::I32, Imm::None, &[counter, one]), back);
    let at = ed.func().inst(back).operand_count() - 1;
    ed.replace_operand(back, at, count);
    let count = ed.func().defining_inst(count).expect("an instruction");
    ed.remove_dead(&[(header, counter)], &[count]);
}

fn applied(pass: &dyn Pass) -> (Function, Applied) {
    let before = sample();
    let applied = apply(&before, pass, &mut Fuel::UNLIMITED.clone());
    (before, applied)
}

#[test]
fn replay_of_every_primitive_gives_an_equal_version() {
    let (before, applied) = applied(&Everything);
    let (function, log) = applied.into_parts();
    assert_eq!(check_replay(&before, &log, &function), Ok(()));
    let names: std::collections::BTreeSet<&str> =
        log.actions().iter().map(|a| a.kind().name()).collect();
    assert_eq!(names.len(), 15, "every primitive is used: {names:?}");
}

#[test]
fn replay_notices_a_dropped_action() {
    let (before, applied) = applied(&Everything);
    let (function, log) = applied.into_parts();
    for index in 0..log.len() {
        let mut damaged = log.clone();
        damaged.actions_mut().remove(index);
        assert!(check_replay(&before, &damaged, &function).is_err(), "without action {index}");
    }
}

#[test]
fn replay_notices_two_swapped_actions() {
    let (before, applied) = applied(&Everything);
    let (function, log) = applied.into_parts();
    for index in 1..log.len() {
        let mut damaged = log.clone();
        damaged.actions_mut().swap(index - 1, index);
        assert!(
            check_replay(&before, &damaged, &function).is_err(),
            "actions {} and {index} swapped",
            index - 1
        );
    }
}

/// Every change of one field of an action to another value of the same kind.
fn edits(kind: &ActionKind, function: &Function) -> Vec<ActionKind> {
    let inst = function.first_inst(function.entry());
    let value = function.arguments()[0];
    let mut edits = Vec::new();
    match kind.clone() {
        ActionKind::Add { inst: id, data, result_types, before } => {
            let mut other = data.clone();
            other.imm = Imm::Bits(77);
            edits.push(ActionKind::Add {
                inst: id,
                data: other,
                result_types: result_types.clone(),
                before,
            });
            edits.push(ActionKind::Add { inst: id, data, result_types, before: inst });
        }
        ActionKind::Delete { inst: id, .. } => {
            edits.push(ActionKind::Delete { inst: id, next: inst })
        }
        ActionKind::Hoist { inst: id, from, .. } => {
            edits.push(ActionKind::Hoist { inst: id, from, to: inst })
        }
        ActionKind::Sink { inst: id, from, .. } => {
            edits.push(ActionKind::Sink { inst: id, from, to: inst })
        }
        ActionKind::ReplaceOperand { inst: id, index, before, after } => {
            edits.push(ActionKind::ReplaceOperand { inst: id, index, before: value, after });
            edits.push(ActionKind::ReplaceOperand { inst: id, index: index + 1, before, after });
        }
        ActionKind::ReplaceAll { before, .. } => {
            edits.push(ActionKind::ReplaceAll { before, after: value })
        }
        ActionKind::FoldBranch { inst, keep } => {
            edits.push(ActionKind::FoldBranch { inst, keep: keep ^ 1 })
        }
        ActionKind::ResolveCall { inst, func } => {
            let func = Func::from_u32(func.as_u32() + 1);
            edits.push(ActionKind::ResolveCall { inst, func });
        }
        ActionKind::Inline { call, body } => {
            let mut other = body.clone();
            other.blocks.swap(0, 1);
            edits.push(ActionKind::Inline { call, body: other });
            edits.push(ActionKind::Inline { call: inst, body });
        }
        ActionKind::SplitEdge { edge, block, .. } => {
            edits.push(ActionKind::SplitEdge { edge, block, jump: inst })
        }
        ActionKind::JoinEdges { edges, block, jump, .. } => {
            let params = Default::default();
            edits.push(ActionKind::JoinEdges { edges, block, params, jump });
        }
        ActionKind::Redirect { edge, past } => {
            edits.push(ActionKind::Redirect { edge: Edge { index: edge.index + 1, ..edge }, past });
            edits.push(ActionKind::Redirect { edge, past: function.entry() });
        }
        ActionKind::MergeBlocks { into, from, .. } => {
            edits.push(ActionKind::MergeBlocks { into, from, jump: inst })
        }
        ActionKind::RemoveUnreachable { .. } => {
            edits.push(ActionKind::RemoveUnreachable { blocks: vec![] })
        }
        ActionKind::AddBlockParam { block, param, args, .. } => {
            edits.push(ActionKind::AddBlockParam { block, param, ty: Type::I64, args });
        }
        ActionKind::RemoveBlockParam { block, param, index } => {
            edits.push(ActionKind::RemoveBlockParam { block, param, index: index + 1 });
        }
        ActionKind::RemoveDead { params, insts } => {
            edits.push(ActionKind::RemoveDead { params, insts: vec![] });
            edits.push(ActionKind::RemoveDead { params: vec![], insts });
        }
    }
    edits
}

#[test]
fn replay_notices_an_edited_action() {
    let (before, applied) = applied(&Everything);
    let (function, log) = applied.into_parts();
    let mut tried = 0;
    for (index, action) in log.actions().iter().enumerate() {
        for kind in edits(action.kind(), &before) {
            assert_ne!(&kind, action.kind());
            let mut damaged = log.clone();
            damaged.actions_mut()[index].kind = kind.clone();
            assert!(
                check_replay(&before, &damaged, &function).is_err(),
                "{} became {kind}",
                action.kind()
            );
            tried += 1;
        }
    }
    assert!(tried >= log.len());
}

/// Deletes the first instruction of the loop body, whose result is used.
struct DeletesAUsedInstruction;

impl Pass for DeletesAUsedInstruction {
    fn name(&self) -> &'static str {
        "deletes_a_used_instruction"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        assert!(ed.plan("wrong"));
        let body = ed.func().blocks().nth(2).expect("a body");
        ed.delete(ed.func().first_inst(body));
    }
}

#[test]
#[should_panic(
    expected = "pass deletes_a_used_instruction, rule wrong, action 0 of f: delete inst3 before inst4: v5, a result of inst3, is still used"
)]
fn an_illegal_edit_names_pass_rule_action_and_entity() {
    applied(&DeletesAUsedInstruction);
}

/// Adds three constants, each as one rewrite.
struct OneAtATime;

impl Pass for OneAtATime {
    fn name(&self) -> &'static str {
        "one_at_a_time"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let body = ed.func().blocks().nth(2).expect("a body");
        for _ in 0..3 {
            if !ed.plan("add") {
                return;
            }
            let first = ed.func().first_inst(body);
            ed.add(InstSpec::constant(Type::I32, 1), first);
        }
    }
}

#[test]
fn fuel_stops_a_pass_between_rewrites() {
    let before = sample();
    for rewrites in 0..5 {
        let mut fuel = Fuel::rewrites(rewrites);
        let applied = apply(&before, &OneAtATime, &mut fuel);
        assert_eq!(applied.log().len() as u64, rewrites.min(3));
    }
}

#[test]
fn a_rewrite_left_out_keeps_its_number_and_the_next_follows() {
    let before = sample();
    let applied = |fuel: &mut Fuel| apply(&before, &EachOnItsOwn, fuel).log().len();
    let mut fuel = Fuel::UNLIMITED.without(Some(1..2));
    assert_eq!((applied(&mut fuel), fuel.planned()), (2, 3));
    // The fuel of a pipeline continues to count: the numbers of this run are 3 to 5.
    assert_eq!((applied(&mut fuel), fuel.planned()), (3, 6));
    let mut fuel = Fuel::rewrites(2).without(Some(1..2));
    assert_eq!((applied(&mut fuel), fuel.planned(), fuel.left()), (1, 2, 0));
    // Ranges in any order, empty, and one inside another.
    let ranges = [5..u64::MAX, 2..2, 0..4, 1..3, 4..4];
    let mut fuel = Fuel::UNLIMITED.without(ranges);
    assert_eq!((applied(&mut fuel), applied(&mut fuel), fuel.planned()), (0, 1, 6));
}

/// Adds three constants; a refused one does not stop it.
struct EachOnItsOwn;

impl Pass for EachOnItsOwn {
    fn name(&self) -> &'static str {
        "each_on_its_own"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let body = ed.func().blocks().nth(2).expect("a body");
        for bits in 0..3 {
            if ed.plan("add") {
                let first = ed.func().first_inst(body);
                ed.add(InstSpec::constant(Type::I32, bits), first);
            }
        }
    }
}

#[test]
fn a_fork_leaves_no_gap_in_the_ids() {
    let before = sample();
    let trial = apply(&before.fork(), &OneAtATime, &mut Fuel::UNLIMITED.clone()).into_parts().0;
    let version = apply(&before, &OneAtATime, &mut Fuel::UNLIMITED.clone()).into_parts().0;
    assert_eq!(trial.same_as(&version), Ok(()));
    assert!(!trial.family().same_as(version.family()) && trial.history() == version.history());
}

#[test]
fn versions_derived_independently_share_no_new_id() {
    let before = sample();
    let first = apply(&before, &OneAtATime, &mut Fuel::UNLIMITED.clone()).into_parts().0;
    let second = apply(&before, &OneAtATime, &mut Fuel::UNLIMITED.clone()).into_parts().0;
    let shared: Vec<_> =
        first.all_insts().filter(|i| second.has_inst(*i) && !before.has_inst(*i)).collect();
    assert!(shared.is_empty(), "{shared:?}");
}

#[test]
fn logs_of_a_pipeline_compose() {
    let base = sample();
    let mut fuel = Fuel::UNLIMITED;
    let middle = apply(&base, &OneAtATime, &mut fuel);
    let last = apply(middle.function(), &SplitsAnEdge, &mut fuel);
    let mut log = middle.into_parts().1;
    log.extend(last.log().clone());
    assert_eq!(check_replay(&base, &log, last.function()), Ok(()));
}

/// Merges the second block with its successor, which is cold.
struct MergesAColdBlock;

impl Pass for MergesAColdBlock {
    fn name(&self) -> &'static str {
        "merges_a_cold_block"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        assert!(ed.plan("merge"));
        let into = ed.func().blocks().nth(1).expect("a block");
        ed.merge_blocks(into);
    }
}

/// The merged block goes where the cold one was, and replay finds out if its mark is lost.
#[test]
fn a_merged_block_keeps_the_mark() {
    let mut b = FunctionBuilder::new("f", Signature::new(&[Type::I32], &[]));
    let entry = b.create_block();
    let test = b.append_param(entry, Type::I32);
    let [aside, cold, end] = [(); 3].map(|()| b.create_block());
    b.switch_to(entry);
    b.br_if(test, aside, end);
    b.switch_to(aside);
    b.jump(cold, &[]);
    for block in [cold, end] {
        b.switch_to(block);
        b.ret(&[]);
    }
    b.mark_cold(cold);
    let before = b.finish().expect("complete").function;
    let applied = apply(&before, &MergesAColdBlock, &mut Fuel::UNLIMITED.clone());
    let (mut after, log) = applied.into_parts();
    assert!(after.is_cold(aside) && !after.has_block(cold));
    assert_eq!(check_replay(&before, &log, &after), Ok(()));
    after.cold.clear();
    let difference = format!("{aside} is marked as cold in one version only");
    assert_eq!(check_replay(&before, &log, &after), Err(ReplayError::Result(difference)));
}

/// Splits an edge, to produce a second log.
struct SplitsAnEdge;

impl Pass for SplitsAnEdge {
    fn name(&self) -> &'static str {
        "split"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        assert!(ed.plan("split"));
        ed.split_edge(Edge { inst: ed.func().terminator(ed.func().entry()), index: 0 });
    }
}

/// Claims that the sum in the loop is dead, although it is used.
struct RemovesAUsedParameter;

impl Pass for RemovesAUsedParameter {
    fn name(&self) -> &'static str {
        "removes_a_used_parameter"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        assert!(ed.plan("wrong"));
        let header = ed.func().blocks().nth(1).expect("a header");
        let sum = ed.func().block_params(header)[1];
        let adds: Vec<_> = ed.func().users(sum).to_vec();
        let adds: Vec<_> =
            adds.into_iter().filter(|i| !ed.func().inst(*i).opcode.is_terminator()).collect();
        ed.remove_dead(&[(header, sum)], &adds);
    }
}

#[test]
#[should_panic(expected = "v3 is still used")]
fn a_value_used_outside_the_set_is_not_dead() {
    applied(&RemovesAUsedParameter);
}
