//! Tests of the effect trace and its digest.

use super::support::{add_memory, define, i32_const, import, machine, returned, run, store};
use interp::{
    Effect, Host, HostError, Limits, Machine, Memories, NoObserver, Options, Program, TraceLevel,
};
use ir::module::ImportName;
use ir::{Func, Imm, InstSpec, Memory, Module, Opcode, TrapKind, Type, Value};

/// Returns its argument plus one; exits on 99.
struct Successor;

impl Host for Successor {
    fn call(
        &mut self,
        _import: &ImportName,
        _func: Func,
        args: &[u64],
        _memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        if args[0] == 99 {
            return Err(HostError::Exit(-1));
        }
        results[0] = args[0] + 1;
        Ok(())
    }
}

struct Program1 {
    module: Module,
    host: Func,
    inner: Func,
    outer: Func,
}

/// `outer(x)` calls `inner(x)`, which calls the host. It then grows memory 0 by 2 pages, and traps
/// if `x` is 0.
fn program() -> Program1 {
    let mut module = Module::new();
    let memory = add_memory(&mut module, "memory", 1, None);
    let host = import(&mut module, "successor", &[Type::I32], &[Type::I32]);
    let inner = define(&mut module, "inner", &[Type::I32], &[Type::I32], |b, args| {
        let value = b.insert_value(InstSpec::call(host, args, &[Type::I32]));
        b.ret(&[value]);
    });
    let outer = define(&mut module, "outer", &[Type::I32], &[Type::I32], |b, args| {
        let x = b.insert_value(InstSpec::call(inner, args, &[Type::I32]));
        let two = i32_const(b, 2);
        b.insert(InstSpec::new(Opcode::MemoryGrow, Type::I32, Imm::Memory(memory), &[two]));
        let quotient = b.op(Opcode::Udiv, Type::I32, &[x, args[0]]);
        b.ret(&[quotient]);
    });
    Program1 { module, host, inner, outer }
}

fn trace_of(program: &Program1, arg: u64) -> (Vec<Effect>, u64, u64) {
    let mut machine = machine(&program.module, Limits::default());
    machine.invoke(program.outer, &[arg], &mut Successor, &mut NoObserver);
    let trace = machine.trace();
    (
        trace.effects().iter().map(|(effect, _)| effect.clone()).collect(),
        trace.count(),
        trace.digest(),
    )
}

#[test]
fn effects_are_recorded_in_order() {
    let p = program();
    let begin = |x: u64| {
        vec![
            Effect::Call { func: p.inner, args: vec![x] },
            Effect::Call { func: p.host, args: vec![x] },
            Effect::Return { results: vec![x + 1] },
            Effect::Return { results: vec![x + 1] },
            Effect::Grow { memory: Memory::from_u32(0), pages: 2, result: 1 },
        ]
    };
    let mut expected = begin(1);
    expected.push(Effect::Return { results: vec![2] });
    let (effects, count, _) = trace_of(&p, 1);
    assert_eq!((effects, count), (expected, 6));

    let mut expected = begin(0);
    expected.push(Effect::Trap(TrapKind::DivisionByZero, None));
    assert_eq!(trace_of(&p, 0).0, expected);

    let mut expected = begin(99);
    expected.truncate(2);
    expected.push(Effect::Exit(-1));
    assert_eq!(trace_of(&p, 99).0, expected);
}

#[test]
fn digests_of_different_traces_differ() {
    let p = program();
    let mut digests: Vec<u64> = [0, 1, 2, 3, 99].into_iter().map(|x| trace_of(&p, x).2).collect();
    assert_eq!(digests[1], trace_of(&p, 1).2, "equal runs have equal digests");
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 5);
}

/// The digest does not depend on whether effects are kept. Without a trace it is 0.
#[test]
fn trace_levels() {
    let p = program();
    let program = Program::new(&p.module);
    let with = |trace| {
        let options = Options { trace, track_memory: true, poison: false };
        let mut machine =
            Machine::with_options(&program, Limits::default(), options).expect("it instantiates");
        assert_eq!(machine.invoke(p.outer, &[1], &mut Successor, &mut NoObserver), returned(&[2]));
        (machine.trace().count(), machine.trace().digest(), machine.trace().effects().len())
    };
    let (count, digest, kept) = with(TraceLevel::Full);
    assert_eq!((count, kept), (6, 6));
    assert_eq!(with(TraceLevel::Digest), (count, digest, 0));
    assert_eq!(with(TraceLevel::Off), (0, 0, 0));
}

/// Builds a function that stores before or after a call. Both make the same calls and leave the
/// same memory, but the callee sees different memory.
#[test]
fn a_store_that_moved_across_a_call_shows() {
    let build = |store_first: bool| {
        let mut module = Module::new();
        let memory = add_memory(&mut module, "memory", 1, None);
        let host = import(&mut module, "successor", &[Type::I32], &[Type::I32]);
        let func = define(&mut module, "f", &[Type::I32], &[], |b, args| {
            let spec = |at: Value| store(Opcode::Store, Type::I32, memory, 0, at, at);
            if store_first {
                b.insert(spec(args[0]));
            }
            b.insert(InstSpec::call(host, args, &[Type::I32]));
            if !store_first {
                b.insert(spec(args[0]));
            }
            b.ret(&[]);
        });
        let mut machine = machine(&module, Limits::default());
        assert_eq!(machine.invoke(func, &[8], &mut Successor, &mut NoObserver), returned(&[]));
        machine
    };
    let (first, second) = (build(true), build(false));
    assert!(first.same_memory(&second));
    assert_eq!(first.memory_digest(), second.memory_digest());
    let effects =
        |m: &Machine| m.trace().effects().iter().map(|(e, _)| e.clone()).collect::<Vec<_>>();
    assert_eq!(effects(&first), effects(&second));
    assert_ne!(first.trace().digest(), second.trace().digest());
}

/// The digest distinguishes zeros, the number of values, and their order.
#[test]
fn every_value_is_part_of_the_digest() {
    let digest = |results: &[u64]| {
        let mut module = Module::new();
        let types = vec![Type::I64; results.len()];
        let func = define(&mut module, "f", &[], &types, |b, _| {
            let values: Vec<Value> =
                results.iter().map(|bits| b.constant(Type::I64, *bits)).collect();
            b.ret(&values);
        });
        assert_eq!(run(&module, func, &[]), returned(results));
        let mut machine = machine(&module, Limits::default());
        machine.invoke(func, &[], &mut Successor, &mut NoObserver);
        machine.trace().digest()
    };
    let mut digests: Vec<u64> = [&[] as &[u64], &[0], &[0, 0], &[1], &[0, 1], &[1, 0], &[u64::MAX]]
        .into_iter()
        .map(digest)
        .collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 7);
}
