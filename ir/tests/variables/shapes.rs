//! Large, deep and irreducible shapes whose cost must not be variables times blocks, and edge
//! cases.

use crate::variables::laws;
use ir::{
    Block, BuildError, Edge, Function, FunctionBuilder, Opcode, Signature, Target, Type, Variable,
};

fn start(params: usize) -> (FunctionBuilder, Vec<Variable>) {
    let mut b = FunctionBuilder::new("f", Signature::new(&vec![Type::I32; params], &[Type::I32]));
    let entry = b.create_block();
    let args: Vec<_> = (0..params).map(|_| b.append_param(entry, Type::I32)).collect();
    b.switch_to(entry);
    let vars = args.iter().map(|arg| {
        let var = b.declare_var(Type::I32);
        b.def_var(var, *arg);
        var
    });
    let vars = vars.collect();
    (b, vars)
}

fn return_var(b: &mut FunctionBuilder, var: Variable) {
    let value = b.use_var(var);
    b.ret(&[value]);
}

fn made_params(function: &Function) -> usize {
    function
        .blocks()
        .filter(|b| *b != function.entry())
        .map(|b| function.block_params(b).len())
        .sum()
}

fn lawful(function: &Function) {
    let found = laws::violations(function, |b| {
        if b == function.entry() { function.arguments().len() } else { 0 }
    });
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_long_chain_is_walked_without_recursion() {
    let (mut b, vars) = start(1);
    for _ in 0..100_000 {
        let next = b.create_block();
        b.jump(next, &[]);
        b.switch_to(next);
    }
    return_var(&mut b, vars[0]);
    let function = b.finish().expect("complete").function;
    assert_eq!(made_params(&function), 0);
    assert_eq!(
        function.inst(function.all_insts().last().expect("ret")).args[0],
        function.arguments()[0]
    );
}

/// Each variable of the chain is a copy of the previous one, in a separate block.
#[test]
fn a_long_chain_of_copies_is_resolved_without_recursion() {
    let (mut b, vars) = start(1);
    let mut from = vars[0];
    for _ in 0..100_000 {
        let next = b.create_block();
        b.jump(next, &[]);
        b.switch_to(next);
        let (to, value) = (b.declare_var(Type::I32), b.use_var(from));
        b.def_var(to, value);
        from = to;
    }
    return_var(&mut b, from);
    let function = b.finish().expect("complete").function;
    assert_eq!(
        function.inst(function.all_insts().last().expect("ret")).args[0],
        function.arguments()[0]
    );
}

/// The largest functions compiled from C have about this number of variables. All are set before
/// thousands of joins and read after them. A parameter per variable and join would give 25 million
/// parameters.
#[test]
fn variables_that_live_across_many_joins_cost_their_uses() {
    let (mut b, mut vars) = start(1);
    for n in 0..5_000 {
        let var = b.declare_var(Type::I32);
        let value = b.constant(Type::I32, n);
        b.def_var(var, value);
        vars.push(var);
    }
    for n in 0..5_000 {
        let (then, join) = (b.create_block(), b.create_block());
        let value = b.use_var(vars[n]);
        b.br_if(value, Target::new(then, &[]), Target::new(join, &[]));
        b.switch_to(then);
        let one = b.constant(Type::I32, 1);
        b.def_var(vars[n], one);
        b.jump(join, &[]);
        b.switch_to(join);
    }
    let mut sum = b.constant(Type::I32, 0);
    for var in &vars {
        let value = b.use_var(*var);
        sum = b.op(Opcode::Add, Type::I32, &[sum, value]);
    }
    b.ret(&[sum]);
    let function = b.finish().expect("complete").function;
    assert_eq!(made_params(&function), 5_000);
}

/// Nested loops, each with its entry at the top and its back edge at the bottom. The innermost loop
/// sets the variables.
fn nested_loops(depth: usize, limit: usize, vars: usize) -> Result<Function, BuildError> {
    let (mut b, vars) = start(vars);
    b.limit_args(limit);
    let mut heads: Vec<Block> = Vec::new();
    for _ in 0..depth {
        let head = b.create_block();
        b.jump(head, &[]);
        b.switch_to(head);
        heads.push(head);
    }
    for var in &vars {
        let value = b.use_var(*var);
        let next = b.op(Opcode::Add, Type::I32, &[value, value]);
        b.def_var(*var, next);
    }
    for head in heads.into_iter().rev() {
        let after = b.create_block();
        let condition = b.use_var(vars[0]);
        b.br_if(condition, Target::new(head, &[]), Target::new(after, &[]));
        b.switch_to(after);
    }
    return_var(&mut b, vars[0]);
    b.finish().map(|finished| finished.function)
}

#[test]
fn a_deep_ladder_costs_near_linear_time() {
    let function = nested_loops(100_000, usize::MAX, 1).expect("complete");
    assert_eq!(made_params(&function), 100_000);
}

/// There are as many variables as loops. The innermost loop sets each variable once, and code after
/// all loops reads it. No read observes any of the 25 million joins of definitions.
#[test]
fn variables_set_once_in_deep_loops_cost_their_uses() {
    let (mut b, vars) = start(1);
    let locals: Vec<Variable> = (0..5_000).map(|_| b.declare_var(Type::I32)).collect();
    let mut heads: Vec<Block> = Vec::new();
    for _ in 0..5_000 {
        let head = b.create_block();
        b.jump(head, &[]);
        b.switch_to(head);
        heads.push(head);
    }
    for local in &locals {
        let value = b.constant(Type::I32, 1);
        b.def_var(*local, value);
    }
    for head in heads.into_iter().rev() {
        let after = b.create_block();
        let condition = b.use_var(vars[0]);
        b.br_if(condition, Target::new(head, &[]), Target::new(after, &[]));
        b.switch_to(after);
    }
    for local in &locals {
        let value = b.use_var(*local);
        b.op(Opcode::Eqz, Type::I32, &[value]);
    }
    return_var(&mut b, vars[0]);
    let function = b.finish().expect("complete").function;
    assert_eq!(made_params(&function), 0);
}

/// A chain of conditional exits to one block. Every link of the chain is a predecessor of that
/// block.
#[test]
fn many_exits_to_one_block_cost_near_linear_time() {
    let (mut b, vars) = start(1);
    let exit = b.reserve_block();
    for n in 0..100_000 {
        let next = b.create_block();
        let value = b.use_var(vars[0]);
        b.br_if(value, Target::new(exit, &[]), Target::new(next, &[]));
        b.switch_to(next);
        let value = b.constant(Type::I32, n);
        b.def_var(vars[0], value);
    }
    b.jump(exit, &[]);
    b.place_block(exit);
    b.switch_to(exit);
    return_var(&mut b, vars[0]);
    let function = b.finish().expect("complete").function;
    assert_eq!(made_params(&function), 1);
}

#[test]
fn the_limit_rejects_arguments_for_variables_times_loops() {
    assert_eq!(nested_loops(1_000, 100_000, 1_000).err(), Some(BuildError::TooLarge));
    assert!(nested_loops(10, 100_000, 10).is_ok());
}

/// A cycle with entries from outside at two blocks. No single parameter is trivially redundant, yet
/// all of them hold the argument.
#[test]
fn an_irreducible_cycle_of_redundant_parameters_goes() {
    let (mut b, vars) = start(2);
    let blocks: Vec<Block> = (0..3).map(|_| b.create_block()).collect();
    let out = b.create_block();
    let condition = b.use_var(vars[1]);
    b.br_if(condition, Target::new(blocks[0], &[]), Target::new(blocks[1], &[]));
    for (n, block) in blocks.iter().enumerate() {
        b.switch_to(*block);
        // Setting the variable to its own value makes every block a definition.
        let value = b.use_var(vars[0]);
        b.def_var(vars[0], value);
        let targets = [blocks[(n + 1) % 3], blocks[(n + 2) % 3], out].map(|t| Target::new(t, &[]));
        b.insert(ir::InstSpec::terminator(Opcode::Switch, &[condition], targets.to_vec()));
    }
    b.switch_to(out);
    return_var(&mut b, vars[0]);
    let function = b.finish().expect("complete").function;
    assert_eq!(made_params(&function), 0);
}

/// One arm sets the variable, and the value read in the loop is unused. The parameters of the loop
/// would only feed each other.
#[test]
fn parameters_that_only_feed_each_other_go() {
    let (mut b, vars) = start(2);
    let (head, then, latch, out) =
        (b.create_block(), b.create_block(), b.create_block(), b.create_block());
    b.jump(head, &[]);
    b.switch_to(head);
    let condition = b.use_var(vars[1]);
    b.br_if(condition, Target::new(then, &[]), Target::new(latch, &[]));
    b.switch_to(then);
    let value = b.constant(Type::I32, 7);
    b.def_var(vars[0], value);
    b.jump(latch, &[]);
    b.switch_to(latch);
    let _never_used = b.use_var(vars[0]);
    b.br_if(condition, Target::new(head, &[]), Target::new(out, &[]));
    b.switch_to(out);
    b.ret(&[condition]);
    let function = b.finish().expect("complete").function;
    assert_eq!(made_params(&function), 0);
    lawful(&function);
}

#[test]
fn a_variable_never_set_is_zero() {
    let (mut b, vars) = start(1);
    let (then, join) = (b.create_block(), b.create_block());
    let unset = b.declare_var(Type::I32);
    let condition = b.use_var(vars[0]);
    b.br_if(condition, Target::new(then, &[]), Target::new(join, &[]));
    b.switch_to(then);
    let one = b.constant(Type::I32, 1);
    b.def_var(unset, one);
    b.jump(join, &[]);
    b.switch_to(join);
    return_var(&mut b, unset);
    let function = b.finish().expect("complete").function;
    let zero = function.inst(function.first_inst(function.entry()));
    assert_eq!(zero.constant(), Some(0));
    assert_eq!(made_params(&function), 1);
    lawful(&function);
}

/// In an unreachable block, a read must still refer to a definition in that block.
#[test]
fn unreachable_blocks_read_zeros_of_their_own() {
    let (mut b, vars) = start(1);
    let (dead, out) = (b.create_block(), b.create_block());
    b.jump(out, &[]);
    b.switch_to(dead);
    let value = b.use_var(vars[0]);
    b.op(Opcode::Add, Type::I32, &[value, value]);
    b.jump(out, &[]);
    b.switch_to(out);
    return_var(&mut b, vars[0]);
    let function = b.finish().expect("complete").function;
    let dead = function.blocks().nth(1).expect("three blocks");
    assert_eq!(function.inst(function.first_inst(dead)).constant(), Some(0));
    assert_eq!(made_params(&function), 0);
}

#[test]
fn reserved_blocks_stand_where_they_are_placed_or_are_dropped() {
    let (mut b, vars) = start(1);
    let (join, unused, other) = (b.reserve_block(), b.reserve_block(), b.create_block());
    let condition = b.use_var(vars[0]);
    let branch = b.br_if(condition, Target::new(other, &[]), Target::new(unused, &[]));
    b.redirect(Edge { inst: branch, index: 1 }, join);
    b.switch_to(other);
    b.jump(join, &[]);
    b.place_block(join);
    b.switch_to(join);
    return_var(&mut b, vars[0]);
    let function = b.finish().expect("complete").function;
    assert_eq!(function.block_count(), 3);
    assert_eq!(function.block_bound(), 3);
    let blocks: Vec<Block> = function.blocks().collect();
    let branch = function.successors(blocks[0]).iter().map(|t| t.block).collect::<Vec<_>>();
    assert_eq!(branch, [blocks[1], blocks[2]]);
}

#[test]
fn functions_that_cannot_be_finished_are_errors() {
    let (mut b, vars) = start(1);
    let reserved = b.reserve_block();
    b.jump(reserved, &[]);
    assert_eq!(b.finish().err(), Some(BuildError::Unplaced(reserved)));

    let (mut b, _) = start(1);
    let entry = b.current().expect("open");
    b.jump(entry, &[]);
    assert_eq!(b.finish().err(), Some(BuildError::EdgeToEntry));

    let (mut b, _) = start(1);
    let entry = b.current().expect("open");
    b.use_var(vars[0]);
    assert_eq!(b.finish().err(), Some(BuildError::Unterminated(entry)));
}

/// Clients without variables keep their ids, in any order of construction.
#[test]
fn without_variables_ids_stay() {
    let mut b = FunctionBuilder::new("f", Signature::new(&[], &[Type::I32]));
    let (entry, last) = (b.create_block(), b.create_block());
    b.switch_to(last);
    let value = b.constant(Type::I32, 1);
    b.ret(&[value]);
    b.switch_to(entry);
    b.jump(last, &[]);
    let function = b.finish().expect("complete").function;
    assert_eq!(function.value_block(value), last);
    assert_eq!(function.first_inst(entry).as_u32(), 2);
}
