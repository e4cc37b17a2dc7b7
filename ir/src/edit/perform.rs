//! Checks and performs one action.
//!
//! The editor and replay both call this module, so an action means the same to both. A fault is a
//! bug of a pass in the editor, and a bad log in replay.
//!
//! The checks are structural: entities exist or are new, types of replaced values agree, and
//! removed values are unused. They do not decide whether an edit is justified. They do not compute
//! dominance either. The verifier rejects versions with a definition that does not dominate a use.

use super::action::ActionKind;
use super::fault::Fault;
use super::inline::inline;
use super::redirect::onward;
use crate::entity::{Block, Func, Inst, Value};
use crate::function::Function;
use crate::inst::{Edge, Imm, InstData, Target};
use crate::mutate::InsertPosition;
use crate::opcode::Opcode;
use crate::types::Type;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

pub(super) type Check = Result<(), Fault>;

pub(super) fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(Fault(otherwise())) }
}

/// Checks one action against the function, performs it, and adds it to the history digest. On an
/// error the function is unchanged.
pub(super) fn perform(f: &mut Function, action: &ActionKind) -> Check {
    carry_out(f, action)?;
    f.history = history_after(f.history, action);
    Ok(())
}

/// As [`perform`], but does not update the history.
pub(super) fn carry_out(f: &mut Function, action: &ActionKind) -> Check {
    match action {
        ActionKind::Add { inst, data, result_types, before } => {
            add(f, *inst, data, result_types, *before)?
        }
        ActionKind::Delete { inst, next } => delete(f, *inst, *next)?,
        ActionKind::Hoist { inst, from, to } | ActionKind::Sink { inst, from, to } => {
            move_inst(f, *inst, *from, *to)?
        }
        ActionKind::ReplaceOperand { inst, index, before, after } => {
            replace_operand(f, *inst, *index as usize, *before, *after)?;
        }
        ActionKind::ReplaceAll { before, after } => replace_all(f, *before, *after)?,
        ActionKind::FoldBranch { inst, keep } => fold_branch(f, *inst, *keep)?,
        ActionKind::ResolveCall { inst, func } => resolve_call(f, *inst, *func)?,
        ActionKind::Inline { call, body } => inline(f, *call, body)?,
        ActionKind::SplitEdge { edge, block, jump } => split_edge(f, *edge, *block, *jump)?,
        ActionKind::JoinEdges { edges, block, params, jump } => {
            join_edges(f, edges, *block, params, *jump)?
        }
        ActionKind::Redirect { edge, past } => redirect_edge(f, *edge, *past)?,
        ActionKind::MergeBlocks { into, from, jump } => merge_blocks(f, *into, *from, *jump)?,
        ActionKind::RemoveUnreachable { blocks } => remove_unreachable(f, blocks)?,
        ActionKind::AddBlockParam { block, param, ty, args } => {
            add_block_param(f, *block, *param, *ty, args)?
        }
        ActionKind::RemoveBlockParam { block, param, index } => {
            remove_block_param(f, *block, *param, *index as usize)?;
        }
        ActionKind::RemoveDead { params, insts } => remove_dead(f, params, insts)?,
    }
    f.stamp += 1;
    Ok(())
}

/// The history digest after one more action. A claim made by an action may leave no trace in the
/// function itself: a later action may remove the users of a replaced value. The digest keeps that
/// trace.
fn history_after(history: u64, action: &ActionKind) -> u64 {
    let mut hasher = DefaultHasher::new();
    (history, action).hash(&mut hasher);
    hasher.finish()
}

/// Makes the history of a function a digest of its text, since no log leads to it. An id of the
/// family would not do: two families of one text draw equal ids
/// (`versions_without_a_log_are_told_apart`).
pub(super) fn leave_history(f: &mut Function) {
    f.start_history();
    let mut hasher = DefaultHasher::new();
    (f.history, "no log").hash(&mut hasher);
    f.history = hasher.finish();
}

pub(super) fn has_inst(f: &Function, inst: Inst) -> Check {
    require(f.has_inst(inst), || format!("{inst} does not exist"))
}

fn has_block(f: &Function, block: Block) -> Check {
    require(f.has_block(block), || format!("{block} does not exist"))
}

fn has_value(f: &Function, value: Value) -> Check {
    require(f.has_value(value), || format!("{value} does not exist"))
}

fn has_edge(f: &Function, edge: Edge) -> Check {
    has_inst(f, edge.inst)?;
    let targets = f.inst(edge.inst).targets.len();
    require((edge.index as usize) < targets, || {
        format!("{} has no target {}", edge.inst, edge.index)
    })
}

pub(super) fn no_inst(f: &Function, inst: Inst) -> Check {
    require(!f.has_inst(inst), || format!("{inst} exists already"))
}

pub(super) fn no_block(f: &Function, block: Block) -> Check {
    require(!f.has_block(block), || format!("{block} exists already"))
}

pub(super) fn no_value(f: &Function, value: Value) -> Check {
    require(!f.has_value(value), || format!("{value} exists already"))
}

fn stands_before(f: &Function, inst: Inst, next: Inst) -> Check {
    has_inst(f, inst)?;
    require(f.next_inst(inst) == Some(next), || format!("{next} does not follow {inst}"))
}

fn add(
    f: &mut Function,
    inst: Inst,
    data: &InstData,
    result_types: &[Type],
    before: Inst,
) -> Check {
    no_inst(f, inst)?;
    has_inst(f, before)?;
    require(!data.opcode.is_terminator(), || {
        format!("{inst} is a terminator; every block already has one")
    })?;
    require(data.targets.is_empty(), || format!("{inst} has targets but is not a terminator"))?;
    require(data.results.len() == result_types.len(), || {
        format!("the numbers of results and result types of {inst} differ")
    })?;
    for (i, value) in data.results.iter().enumerate() {
        no_value(f, *value)?;
        require(!data.results[..i].contains(value), || {
            format!("{inst} lists the result {value} twice")
        })?;
    }
    data.args.iter().try_for_each(|v| has_value(f, *v))?;
    f.insert_inst(inst, data.clone(), result_types, InsertPosition::Before(before));
    Ok(())
}

fn delete(f: &mut Function, inst: Inst, next: Inst) -> Check {
    stands_before(f, inst, next)?;
    for value in &f.inst(inst).results {
        require(f.users(*value).is_empty(), || {
            format!("{value}, a result of {inst}, is still used")
        })?;
    }
    f.remove_inst(inst);
    Ok(())
}

fn move_inst(f: &mut Function, inst: Inst, from: Inst, to: Inst) -> Check {
    stands_before(f, inst, from)?;
    has_inst(f, to)?;
    require(to != inst && to != from, || format!("{inst} is moved to its own position"))?;
    f.move_inst(inst, to);
    Ok(())
}

fn replace_operand(
    f: &mut Function,
    inst: Inst,
    index: usize,
    before: Value,
    after: Value,
) -> Check {
    has_inst(f, inst)?;
    has_value(f, after)?;
    let is = f.inst(inst).operand(index);
    require(is == Some(before), || format!("operand {index} of {inst} is not {before}"))?;
    require(f.value_type(before) == f.value_type(after), || {
        format!("{before} and {after} have different types")
    })?;
    f.set_operand(inst, index, after);
    Ok(())
}

fn replace_all(f: &mut Function, before: Value, after: Value) -> Check {
    has_value(f, before)?;
    has_value(f, after)?;
    require(before != after, || format!("{before} is replaced by itself"))?;
    require(f.value_type(before) == f.value_type(after), || {
        format!("{before} and {after} have different types")
    })?;
    f.replace_uses(before, after);
    Ok(())
}

fn fold_branch(f: &mut Function, inst: Inst, keep: u32) -> Check {
    has_edge(f, Edge { inst, index: keep })?;
    let opcode = f.inst(inst).opcode;
    require(matches!(opcode, Opcode::BrIf | Opcode::Switch), || {
        format!("{inst} is neither a branch nor a switch")
    })?;
    f.rewrite_inst(inst, |data| {
        data.opcode = Opcode::Jump;
        data.args.clear();
        data.targets = vec![data.targets.swap_remove(keep as usize)];
    });
    Ok(())
}

fn resolve_call(f: &mut Function, inst: Inst, func: Func) -> Check {
    has_inst(f, inst)?;
    require(f.inst(inst).opcode == Opcode::CallIndirect, || {
        format!("{inst} is no call through a table")
    })?;
    f.rewrite_inst(inst, |data| {
        data.opcode = Opcode::Call;
        data.imm = Imm::Func(func);
        // The index is the last operand.
        data.args.pop();
    });
    Ok(())
}

fn split_edge(f: &mut Function, edge: Edge, block: Block, jump: Inst) -> Check {
    has_edge(f, edge)?;
    no_block(f, block)?;
    no_inst(f, jump)?;
    let target = f.target(edge).clone();
    f.insert_block_before(block, target.block);
    f.redirect_edge(edge, Target::new(block, &[]));
    f.insert_inst(jump, jump_data(target), &[], InsertPosition::End(block));
    Ok(())
}

pub(super) fn jump_data(target: Target) -> InstData {
    InstData {
        opcode: Opcode::Jump,
        ty: Type::I32,
        imm: crate::inst::Imm::None,
        args: SmallVec::new(),
        results: SmallVec::new(),
        targets: vec![target],
    }
}

fn join_edges(
    f: &mut Function,
    edges: &[Edge],
    block: Block,
    params: &[Value],
    jump: Inst,
) -> Check {
    no_block(f, block)?;
    no_inst(f, jump)?;
    edges.iter().try_for_each(|e| has_edge(f, *e))?;
    let distinct: BTreeSet<Edge> = edges.iter().copied().collect();
    require(distinct.len() == edges.len(), || {
        "the list of edges contains an edge twice".to_owned()
    })?;
    let Some(first) = edges.first() else {
        return Err(Fault("the list of edges is empty".to_owned()));
    };
    let target = f.target(*first).block;
    require(edges.iter().all(|e| f.target(*e).block == target), || {
        "the edges lead to different blocks".to_owned()
    })?;
    let types: Vec<Type> = f.block_params(target).iter().map(|v| f.value_type(*v)).collect();
    require(types.len() == params.len(), || format!("{block} needs {} parameters", types.len()))?;
    for (i, param) in params.iter().enumerate() {
        no_value(f, *param)?;
        require(!params[..i].contains(param), || {
            format!("{block} lists the parameter {param} twice")
        })?;
    }
    f.insert_block_before(block, target);
    for (param, ty) in params.iter().zip(types) {
        f.append_param(block, *param, ty);
    }
    for edge in edges {
        let args = f.target(*edge).args.clone();
        f.redirect_edge(*edge, Target { block, args });
    }
    let handed_on = Target::new(target, params);
    f.insert_inst(jump, jump_data(handed_on), &[], InsertPosition::End(block));
    Ok(())
}

fn redirect_edge(f: &mut Function, edge: Edge, past: Block) -> Check {
    has_edge(f, edge)?;
    require(f.target(edge).block == past, || {
        format!("target {} of {} is not {past}", edge.index, edge.inst)
    })?;
    require(f.inst(f.terminator(past)).opcode == Opcode::Jump, || {
        format!("{past} does not end in a jump")
    })?;
    let target = onward(f, edge, 0)?;
    f.redirect_edge(edge, target);
    Ok(())
}

fn merge_blocks(f: &mut Function, into: Block, from: Block, jump: Inst) -> Check {
    has_block(f, into)?;
    has_block(f, from)?;
    require(into != from && from != f.entry(), || format!("{from} cannot be merged into {into}"))?;
    require(f.terminator(into) == jump, || format!("{jump} does not end {into}"))?;
    let data = f.inst(jump);
    let leads = data.opcode == Opcode::Jump && data.targets[0].block == from;
    require(leads, || format!("{into} does not jump to {from}"))?;
    require(f.predecessors(from).len() == 1, || format!("{from} has other predecessors"))?;
    require(f.block_params(from).is_empty(), || format!("{from} has parameters"))?;
    f.remove_inst(jump);
    f.splice_block(into, from);
    Ok(())
}

fn remove_unreachable(f: &mut Function, blocks: &[Block]) -> Check {
    blocks.iter().try_for_each(|b| has_block(f, *b))?;
    let region: BTreeSet<Block> = blocks.iter().copied().collect();
    require(region.len() == blocks.len() && !region.is_empty(), || {
        "the list of blocks is empty or contains a block twice".to_owned()
    })?;
    require(!region.contains(&f.entry()), || "the entry is reachable".to_owned())?;
    for &block in blocks {
        let entered =
            f.predecessors(block).iter().find(|e| !region.contains(&f.inst_block(e.inst)));
        require(entered.is_none(), || format!("an edge from outside leads to {block}"))?;
        let results = f.block_insts(block).flat_map(|i| f.inst(i).results.iter().copied());
        for value in f.block_params(block).iter().copied().chain(results) {
            let escapes = f.users(value).iter().find(|u| !region.contains(&f.inst_block(**u)));
            require(escapes.is_none(), || format!("{value} is used outside the removed blocks"))?;
        }
    }
    drop_region(f, blocks);
    Ok(())
}

/// Removes a region whose values have no uses outside. Every instruction loses its operands first,
/// so the instructions can then be removed in any order.
fn drop_region(f: &mut Function, blocks: &[Block]) {
    let insts: Vec<Inst> = blocks.iter().flat_map(|b| f.block_insts(*b)).collect();
    for &inst in &insts {
        f.rewrite_inst(inst, |data| {
            data.args.clear();
            data.targets.clear();
        });
    }
    for inst in insts {
        f.remove_inst(inst);
    }
    for &block in blocks {
        for index in (0..f.block_params(block).len()).rev() {
            f.remove_param(block, index);
        }
    }
    f.drop_empty_blocks(blocks);
}

fn add_block_param(
    f: &mut Function,
    block: Block,
    param: Value,
    ty: Type,
    args: &[(Edge, Value)],
) -> Check {
    has_block(f, block)?;
    no_value(f, param)?;
    require(block != f.entry(), || {
        "the entry's parameters are the function's arguments".to_owned()
    })?;
    let given: BTreeSet<Edge> = args.iter().map(|(e, _)| *e).collect();
    let needed: BTreeSet<Edge> = f.predecessors(block).iter().copied().collect();
    let covered = given == needed && given.len() == args.len();
    require(covered, || format!("the arguments do not match the edges to {block}"))?;
    for (_, value) in args {
        // The new parameter may be its own argument on a back edge. The function does not have it
        // yet.
        if *value != param {
            has_value(f, *value)?;
            require(f.value_type(*value) == ty, || format!("{value} does not have type {ty}"))?;
        }
    }
    f.append_param(block, param, ty);
    for (edge, value) in args {
        f.push_edge_arg(*edge, *value);
    }
    Ok(())
}

fn remove_block_param(f: &mut Function, block: Block, param: Value, index: usize) -> Check {
    has_block(f, block)?;
    require(block != f.entry(), || {
        "the entry's parameters are the function's arguments".to_owned()
    })?;
    require(f.block_params(block).get(index) == Some(&param), || {
        format!("{param} is not parameter {index} of {block}")
    })?;
    let edges: SmallVec<[Edge; 4]> = f.predecessors(block).into();
    // The removal also deletes uses of the parameter as its own argument on these edges.
    let own = edges.iter().filter(|e| f.target(**e).args[index] == param).count();
    require(f.users(param).len() == own, || format!("{param} is still used"))?;
    for edge in edges {
        f.remove_edge_arg(edge, index);
    }
    f.remove_param(block, index);
    Ok(())
}

fn remove_dead(f: &mut Function, params: &[(Block, Value)], insts: &[Inst]) -> Check {
    let dead_params: BTreeSet<(Block, Value)> = params.iter().copied().collect();
    let dead_insts: BTreeSet<Inst> = insts.iter().copied().collect();
    let distinct = dead_params.len() == params.len() && dead_insts.len() == insts.len();
    require(distinct && !(params.is_empty() && insts.is_empty()), || {
        "the lists of parameters and instructions are empty or contain an entry twice".to_owned()
    })?;
    for (block, param) in params {
        has_block(f, *block)?;
        require(*block != f.entry(), || {
            "the entry's parameters are the function's arguments".to_owned()
        })?;
        require(f.block_params(*block).contains(param), || {
            format!("{param} is not a parameter of {block}")
        })?;
    }
    for inst in insts {
        has_inst(f, *inst)?;
        require(!f.inst(*inst).opcode.is_terminator(), || format!("{inst} is a terminator"))?;
    }
    let results = insts.iter().flat_map(|i| f.inst(*i).results.iter().copied());
    for value in params.iter().map(|(_, param)| *param).chain(results) {
        let alive = f
            .users(value)
            .iter()
            .find(|u| !dead_insts.contains(u) && needs(f, **u, value, &dead_params));
        require(alive.is_none(), || format!("{value} is still used"))?;
    }
    drop_dead(f, params, insts);
    Ok(())
}

/// Whether an instruction uses a value in any other way than as an argument for one of these
/// parameters.
fn needs(f: &Function, inst: Inst, value: Value, params: &BTreeSet<(Block, Value)>) -> bool {
    let data = f.inst(inst);
    let passes_on = |t: &Target| {
        let received = t.args.iter().zip(f.block_params(t.block));
        received
            .filter(|(arg, _)| **arg == value)
            .all(|(_, param)| params.contains(&(t.block, *param)))
    };
    data.args.contains(&value) || !data.targets.iter().all(passes_on)
}

/// Removes dead parameters and instructions. All uses go first, so the order of the removals does
/// not matter.
fn drop_dead(f: &mut Function, params: &[(Block, Value)], insts: &[Inst]) {
    for inst in insts {
        f.rewrite_inst(*inst, |data| data.args.clear());
    }
    for (block, param) in params {
        let index = f.block_params(*block).iter().position(|p| p == param).expect("checked");
        let edges: SmallVec<[Edge; 4]> = f.predecessors(*block).into();
        for edge in edges {
            f.remove_edge_arg(edge, index);
        }
        f.remove_param(*block, index);
    }
    for inst in insts {
        f.remove_inst(*inst);
    }
}
