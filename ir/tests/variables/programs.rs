//! Random programs over random graphs, including irreducible graphs and unreachable blocks.

use crate::laws;
use ir::{
    Block, Function, FunctionBuilder, Global, Imm, InstSpec, Opcode, Signature, Target, Type, Value,
};
use std::collections::BTreeMap;

/// SplitMix64, a small generator with the same results on every platform.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

#[derive(Clone, Copy, Debug)]
enum Expr {
    Const(u64),
    Var(usize),
    /// The explicit parameter of the block; zero if it has none.
    Param,
    Add(usize, usize),
}

#[derive(Clone, Copy, Debug)]
enum Stmt {
    Set(usize, Expr),
    Emit(usize),
    /// Reads a variable and ignores the value.
    Drop(usize),
}

#[derive(Clone, Debug)]
enum Term {
    /// Selects a target by a variable. One target is a jump, two targets are a branch.
    Go(usize, Vec<usize>),
    Return(usize),
}

#[derive(Clone, Debug)]
struct Program {
    vars: usize,
    /// The blocks: whether the block has an explicit parameter (which receives variable 0), its
    /// statements, and its terminator.
    blocks: Vec<(bool, Vec<Stmt>, Term)>,
}

const ARGS: usize = 2;

fn random_program(random: &mut Random) -> Program {
    let (vars, blocks) = (ARGS + random.below(5), 1 + random.below(12));
    let expr = |random: &mut Random| match random.below(6) {
        0 => Expr::Const(random.below(3) as u64),
        1 => Expr::Param,
        2 => Expr::Add(random.below(vars), random.below(vars)),
        _ => Expr::Var(random.below(vars)),
    };
    let stmt = |random: &mut Random| match random.below(7) {
        0 => Stmt::Emit(random.below(vars)),
        1 => Stmt::Drop(random.below(vars)),
        _ => Stmt::Set(random.below(vars), expr(random)),
    };
    let block = |random: &mut Random, n: usize| {
        let stmts = (0..random.below(4)).map(|_| stmt(random)).collect();
        let targets = [1, 1, 2, 2, 2, 3, 4][random.below(7)];
        let term = match random.below(5) == 0 || blocks == 1 {
            true => Term::Return(random.below(vars)),
            false => {
                let targets = (0..targets).map(|_| 1 + random.below(blocks - 1)).collect();
                Term::Go(random.below(vars), targets)
            }
        };
        (n > 0 && random.below(4) == 0, stmts, term)
    };
    Program { vars, blocks: (0..blocks).map(|n| block(random, n)).collect() }
}

/// The observable behavior of a run: the emitted values, and the returned value if the run returned
/// within its fuel.
type Trace = (Vec<u64>, Option<u64>);

const FUEL: usize = 200;

fn run_program(program: &Program, args: [u64; ARGS]) -> Trace {
    let mut vars = vec![0u64; program.vars];
    vars[..ARGS].copy_from_slice(&args);
    let (mut at, mut param, mut trace) = (0, 0u64, Vec::new());
    for _ in 0..FUEL {
        let (has_param, stmts, term) = &program.blocks[at];
        for stmt in stmts {
            match *stmt {
                Stmt::Emit(v) => trace.push(vars[v]),
                Stmt::Drop(_) => {}
                Stmt::Set(v, expr) => {
                    vars[v] = match expr {
                        Expr::Const(bits) => bits,
                        Expr::Var(w) => vars[w],
                        Expr::Param => u64::from(*has_param) * param,
                        Expr::Add(a, b) => vars[a].wrapping_add(vars[b]) & Type::I32.mask(),
                    }
                }
            }
        }
        match term {
            Term::Return(v) => return (trace, Some(vars[*v])),
            Term::Go(v, targets) => {
                at = targets[choice(vars[*v], targets.len())];
                param = vars[0];
            }
        }
    }
    (trace, None)
}

/// The index of the target at which control continues.
fn choice(value: u64, targets: usize) -> usize {
    match targets {
        1 => 0,
        2 => usize::from(value == 0),
        n => (value as usize).min(n - 1),
    }
}

/// Builds the program. With `skip`, drops empty blocks except these.
fn build(program: &Program, skip: Option<&[usize]>) -> Function {
    let mut b = FunctionBuilder::new("f", Signature::new(&[Type::I32; ARGS], &[Type::I32]));
    let blocks: Vec<Block> = program.blocks.iter().map(|_| b.create_block()).collect();
    let args: Vec<Value> = (0..ARGS).map(|_| b.append_param(blocks[0], Type::I32)).collect();
    let vars: Vec<_> = (0..program.vars).map(|_| b.declare_var(Type::I32)).collect();
    let params: Vec<Option<Value>> = blocks
        .iter()
        .zip(&program.blocks)
        .map(|(id, (has, ..))| has.then(|| b.append_param(*id, Type::I32)))
        .collect();
    for (n, (_, stmts, term)) in program.blocks.iter().enumerate() {
        b.switch_to(blocks[n]);
        if n == 0 {
            for (var, arg) in vars.iter().zip(&args) {
                b.def_var(*var, *arg);
            }
        }
        for stmt in stmts {
            match *stmt {
                Stmt::Emit(v) => {
                    let value = b.use_var(vars[v]);
                    b.insert(InstSpec::new(
                        Opcode::GlobalSet,
                        Type::I32,
                        Imm::Global(Global::from_u32(0)),
                        &[value],
                    ));
                }
                Stmt::Drop(v) => {
                    b.use_var(vars[v]);
                }
                Stmt::Set(v, expr) => {
                    let value = match expr {
                        Expr::Const(bits) => b.constant(Type::I32, bits),
                        Expr::Var(w) => b.use_var(vars[w]),
                        Expr::Param => params[n].unwrap_or_else(|| b.constant(Type::I32, 0)),
                        Expr::Add(x, y) => {
                            let operands = [b.use_var(vars[x]), b.use_var(vars[y])];
                            b.op(Opcode::Add, Type::I32, &operands)
                        }
                    };
                    b.def_var(vars[v], value);
                }
            }
        }
        match term {
            Term::Return(v) => {
                let value = b.use_var(vars[*v]);
                b.ret(&[value]);
            }
            Term::Go(v, targets) => {
                let target = |b: &mut FunctionBuilder, t: usize| match params[t] {
                    Some(_) => Target::new(blocks[t], &[b.use_var(vars[0])]),
                    None => Target::new(blocks[t], &[]),
                };
                let targets: Vec<Target> = targets.iter().map(|t| target(&mut b, *t)).collect();
                // A jump reads no variable, so empty blocks stay empty.
                let selector = (targets.len() > 1).then(|| b.use_var(vars[*v]));
                let op = [Opcode::Jump, Opcode::BrIf, Opcode::Switch][targets.len().min(3) - 1];
                let args = selector.as_slice();
                b.insert(InstSpec::terminator(op, args, targets));
            }
        }
    }
    if let Some(keep) = skip {
        b.skip_empty_blocks(keep.iter().map(|n| blocks[*n]).collect());
    }
    b.finish().expect("complete")
}

/// Runs the few operations that [`build`] emits. Fails if an operation reads a value that was never
/// computed.
fn run_function(function: &Function, args: [u64; ARGS]) -> Trace {
    let mut values: BTreeMap<Value, u64> = function.arguments().iter().copied().zip(args).collect();
    let (mut block, mut trace) = (function.entry(), Vec::new());
    for _ in 0..FUEL {
        for inst in function.block_insts(block) {
            let data = function.inst(inst);
            let arg = |i: usize| values[&data.args[i]];
            let result = match data.opcode {
                Opcode::Const => data.constant(),
                Opcode::Add => Some(arg(0).wrapping_add(arg(1)) & Type::I32.mask()),
                Opcode::GlobalSet => {
                    trace.push(arg(0));
                    None
                }
                Opcode::Return => return (trace, Some(arg(0))),
                Opcode::Jump | Opcode::BrIf | Opcode::Switch => None,
                other => panic!("{} is not emitted", other.name()),
            };
            if let Some(bits) = result {
                values.insert(data.result().expect("one result"), bits);
            }
        }
        let data = function.inst(function.terminator(block));
        let selector = data.args.first().map_or(0, |v| values[v]);
        let target = &data.targets[choice(selector, data.targets.len())];
        let incoming: Vec<u64> = target.args.iter().map(|v| values[v]).collect();
        values.extend(function.block_params(target.block).iter().copied().zip(incoming));
        block = target.block;
    }
    (trace, None)
}

/// Checks that ids are dense and in layout order, and that every derived list agrees with the
/// instructions.
fn check_tables(function: &Function) {
    let (mut insts, mut values) = (0, 0);
    let mut users: BTreeMap<Value, Vec<ir::Inst>> = BTreeMap::new();
    let mut preds: BTreeMap<Block, Vec<ir::Edge>> = BTreeMap::new();
    let mut defined = |value: Value| {
        assert_eq!(value.as_u32(), values);
        values += 1;
    };
    for (n, block) in function.blocks().enumerate() {
        assert_eq!(block.as_u32(), n as u32);
        function.block_params(block).iter().copied().for_each(&mut defined);
        for inst in function.block_insts(block) {
            assert_eq!(inst.as_u32(), insts);
            insts += 1;
            let data = function.inst(inst);
            data.results.iter().copied().for_each(&mut defined);
            data.operands().for_each(|v| users.entry(v).or_default().push(inst));
            for (index, target) in data.targets.iter().enumerate() {
                assert_eq!(target.args.len(), function.block_params(target.block).len());
                preds.entry(target.block).or_default().push(ir::Edge { inst, index: index as u32 });
            }
        }
    }
    assert_eq!(function.inst_bound() as u32, insts);
    assert_eq!(function.value_bound() as u32, values);
    assert_eq!(function.block_bound(), function.block_count());
    for value in (0..values).map(Value::from_u32) {
        assert_eq!(function.users(value), users.remove(&value).unwrap_or_default());
    }
    for block in function.blocks() {
        assert_eq!(function.predecessors(block), preds.remove(&block).unwrap_or_default());
    }
}

#[test]
fn random_programs_keep_their_meaning_and_get_no_needless_parameter() {
    let (mut made, mut redundant_joins, mut returned) = (0, 0, 0);
    for seed in 0..20_000 {
        let program = random_program(&mut Random(seed));
        let function = build(&program, None);
        check_tables(&function);
        let explicit = |b: Block| match b == function.entry() {
            true => ARGS,
            false => usize::from(program.blocks[b.as_u32() as usize].0),
        };
        let found = laws::violations(&function, explicit);
        assert!(found.is_empty(), "seed {seed}: {found:?}");
        let params: usize =
            function.blocks().map(|b| function.block_params(b).len() - explicit(b)).sum();
        let joins = function.blocks().filter(|b| function.predecessors(*b).len() > 1).count();
        made += params;
        redundant_joins += (joins * program.vars).saturating_sub(params);
        for args in [[0, 0], [1, 0], [0, 2], [3, 1]] {
            let expected = run_program(&program, args);
            returned += usize::from(expected.1.is_some());
            assert_eq!(
                run_function(&function, args),
                expected,
                "seed {seed}, arguments {args:?}: {program:?}"
            );
        }
    }
    // The generator must produce enough cases that the law is about.
    assert!(
        made > 10_000 && redundant_joins > 100_000 && returned > 20_000,
        "{made} {redundant_joins} {returned}"
    );
}

#[test]
fn dropping_empty_blocks_keeps_the_meaning() {
    let (mut dropped, mut kept) = (0, 0);
    for seed in 0..20_000 {
        let mut random = Random(seed);
        let mut program = random_program(&mut random);
        for (n, (has_param, stmts, _)) in program.blocks.iter_mut().enumerate() {
            *has_param = false;
            // There are enough empty blocks to form chains and cycles.
            if n > 0 && random.below(2) == 0 {
                stmts.clear();
            }
        }
        let keep: Vec<usize> = (0..program.blocks.len()).filter(|_| random.below(4) == 0).collect();
        let function = build(&program, Some(&keep));
        check_tables(&function);
        let found = laws::violations(&function, |b| if b == function.entry() { ARGS } else { 0 });
        assert!(found.is_empty(), "seed {seed}: {found:?}");
        dropped += program.blocks.len() - function.block_count();
        kept += function.block_count();
        for args in [[0, 0], [1, 0], [0, 2], [3, 1]] {
            let (expected, got) = (run_program(&program, args), run_function(&function, args));
            // Fuel counts blocks. A run that did not return may get further when there are fewer
            // blocks.
            let length = if expected.1.is_some() { got.0.len() } else { expected.0.len() };
            assert_eq!(got.0[..length], expected.0, "seed {seed}, arguments {args:?}: {program:?}");
            assert!(
                expected.1.is_none() || got.1 == expected.1,
                "seed {seed}, arguments {args:?}: {program:?}"
            );
        }
    }
    assert!(dropped > 5_000 && kept > 50_000, "{dropped} {kept}");
}

/// A test of the law's checker. It must detect the dead and redundant parameters of a construction
/// that makes a parameter for every variable in every block.
#[test]
fn the_law_sees_dead_and_redundant_parameters() {
    let mut b = FunctionBuilder::new("f", Signature::new(&[Type::I32], &[Type::I32]));
    let (entry, head, body) = (b.create_block(), b.create_block(), b.create_block());
    let arg = b.append_param(entry, Type::I32);
    let [x, y] = [b.append_param(head, Type::I32), b.append_param(head, Type::I32)];
    let z = b.append_param(body, Type::I32);
    b.switch_to(entry);
    let one = b.constant(Type::I32, 1);
    b.jump(head, &[arg, one]);
    b.switch_to(head);
    b.br_if(x, Target::new(body, &[x]), Target::new(body, &[x]));
    b.switch_to(body);
    let two = b.op(Opcode::Add, Type::I32, &[z, z]);
    b.br_if(two, Target::new(head, &[z, y]), Target::new(head, &[z, two]));
    let function = b.finish().expect("complete");
    let explicit = |b: Block| usize::from(b == function.entry());
    let found = laws::violations(&function, explicit).join("; ");
    assert!(found.contains("v2 is dead"), "{found}");
    assert!(found.contains("v1 and others receive only v0"), "{found}");
}
