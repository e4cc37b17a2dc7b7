//! Random programs over random graphs, including irreducible graphs and unreachable blocks.

use crate::variables::laws;
use ir::{
    Block, Function, FunctionBuilder, Global, Imm, InstSpec, Opcode, Signature, Target, Type, Value,
};
use proptest::bool::weighted;
use proptest::collection;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
enum Expr {
    Const(u64),
    Var(usize),
    /// The explicit parameter of the block; zero in a block without explicit parameters.
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

fn expr(vars: usize) -> impl Strategy<Value = Expr> {
    prop_oneof![
        1 => (0..3u64).prop_map(Expr::Const),
        1 => Just(Expr::Param),
        1 => (0..vars, 0..vars).prop_map(|(a, b)| Expr::Add(a, b)),
        3 => (0..vars).prop_map(Expr::Var),
    ]
}

fn stmt(vars: usize) -> impl Strategy<Value = Stmt> {
    prop_oneof![
        1 => (0..vars).prop_map(Stmt::Emit),
        1 => (0..vars).prop_map(Stmt::Drop),
        5 => (0..vars, expr(vars)).prop_map(|(var, expr)| Stmt::Set(var, expr)),
    ]
}

fn term(vars: usize, blocks: usize) -> BoxedStrategy<Term> {
    let ends = (0..vars).prop_map(Term::Return);
    if blocks == 1 {
        return ends.boxed();
    }
    let count = select(vec![1, 1, 2, 2, 2, 3, 4usize]);
    let targets = count.prop_flat_map(move |count| collection::vec(1..blocks, count));
    let goes = (0..vars, targets).prop_map(|(var, targets)| Term::Go(var, targets));
    prop_oneof![1 => ends, 4 => goes].boxed()
}

fn program() -> impl Strategy<Value = Program> {
    (ARGS..ARGS + 5, 1..13usize).prop_flat_map(|(vars, blocks)| {
        let stmts = collection::vec(stmt(vars), 0..4);
        let block = (weighted(0.25), stmts, term(vars, blocks));
        collection::vec(block, blocks).prop_map(move |mut blocks| {
            // The entry has the arguments of the function for parameters, and no other.
            blocks[0].0 = false;
            Program { vars, blocks }
        })
    })
}

/// Runs a property on 20,000 values of a strategy.
/// Judges many random programs, and returns their number: `OSIER_IR_PROGRAMS`, or 4,000.
fn on_many<S: Strategy>(
    strategy: &S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) -> u32 {
    let asked = std::env::var("OSIER_IR_PROGRAMS").ok();
    let cases = asked.map_or(4000, |asked| asked.parse().expect("a number of programs"));
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let made = TestRunner::new(config).run(strategy, property);
    made.unwrap_or_else(|failure| panic!("{failure}"));
    cases
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
    b.finish().expect("complete").function
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
    let counts = Cell::new((0, 0, 0));
    let cases = on_many(&program(), |program| {
        let function = build(&program, None);
        check_tables(&function);
        let explicit = |b: Block| match b == function.entry() {
            true => ARGS,
            false => usize::from(program.blocks[b.as_u32() as usize].0),
        };
        prop_assert_eq!(laws::violations(&function, explicit), Vec::<String>::new());
        let params: usize =
            function.blocks().map(|b| function.block_params(b).len() - explicit(b)).sum();
        let joins = function.blocks().filter(|b| function.predecessors(*b).len() > 1).count();
        let (made, redundant, mut returned) = counts.get();
        for args in [[0, 0], [1, 0], [0, 2], [3, 1]] {
            let expected = run_program(&program, args);
            returned += usize::from(expected.1.is_some());
            prop_assert_eq!(run_function(&function, args), expected, "arguments {:?}", args);
        }
        let redundant = redundant + (joins * program.vars).saturating_sub(params);
        counts.set((made + params, redundant, returned));
        Ok(())
    });
    // The strategy must produce enough cases that the law is about.
    let (made, redundant, returned) = counts.get();
    let cases = cases as usize;
    assert!(
        made > cases / 2 && redundant > cases * 5 && returned > cases,
        "{made} {redundant} {returned}"
    );
}

#[test]
fn dropping_empty_blocks_keeps_the_meaning() {
    // Whether each block is emptied and whether it is kept: there are enough empty blocks to form
    // chains and cycles.
    let choices = collection::vec((weighted(0.5), weighted(0.25)), 12);
    let counts = Cell::new((0, 0));
    let cases = on_many(&(program(), choices), |(mut program, choices)| {
        for (n, (has_param, stmts, _)) in program.blocks.iter_mut().enumerate() {
            *has_param = false;
            if n > 0 && choices[n].0 {
                stmts.clear();
            }
        }
        let keep: Vec<usize> = (0..program.blocks.len()).filter(|n| choices[*n].1).collect();
        let function = build(&program, Some(&keep));
        check_tables(&function);
        let explicit = |b: Block| if b == function.entry() { ARGS } else { 0 };
        prop_assert_eq!(laws::violations(&function, explicit), Vec::<String>::new());
        let (dropped, kept) = counts.get();
        counts.set((
            dropped + program.blocks.len() - function.block_count(),
            kept + function.block_count(),
        ));
        for args in [[0, 0], [1, 0], [0, 2], [3, 1]] {
            let (expected, got) = (run_program(&program, args), run_function(&function, args));
            // Fuel counts blocks. A run that did not return may get further when there are fewer
            // blocks.
            let length = if expected.1.is_some() { got.0.len() } else { expected.0.len() };
            prop_assert_eq!(&got.0[..length], &*expected.0, "arguments {:?}", args);
            prop_assert!(expected.1.is_none() || got.1 == expected.1, "arguments {:?}", args);
        }
        Ok(())
    });
    let ((dropped, kept), cases) = (counts.get(), cases as usize);
    assert!(dropped > cases / 4 && kept > cases * 5 / 2, "{dropped} {kept}");
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
    let function = b.finish().expect("complete").function;
    let explicit = |b: Block| usize::from(b == function.entry());
    let found = laws::violations(&function, explicit).join("; ");
    assert!(found.contains("v2 is dead"), "{found}");
    assert!(found.contains("v1 and others receive only v0"), "{found}");
}
