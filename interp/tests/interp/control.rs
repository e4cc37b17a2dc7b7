//! Tests of control flow and calls.

use super::support::{add, block, define, fib, i32_const, import, returned, run, sum};
use interp::{Host, HostError, Limits, Machine, Memories, NoHost, NoObserver, Outcome, Site};
use ir::module::{ElementSegment, Export, External, ImportName, TableDecl};
use ir::{Func, Imm, InstSpec, Module, Opcode, OsrPoint, Table, Target, TrapKind, Type};

#[test]
fn a_loop_sums() {
    let sum = sum();
    assert_eq!(run(&sum.module, sum.func, &[10]), returned(&[45]));
    assert_eq!(run(&sum.module, sum.func, &[0]), returned(&[0]));
}

#[test]
fn recursion_returns_to_each_caller() {
    let (module, fib) = fib();
    assert_eq!(run(&module, fib, &[20]), returned(&[6765]));
}

/// An edge reads all its arguments before it writes any parameter. The back edge has a cycle of two
/// moves and a chain, the exit edge a permutation of three.
#[test]
fn arguments_of_an_edge_are_assigned_at_once() {
    let mut module = Module::new();
    let params = [Type::I32; 4];
    let func = define(&mut module, "rotate", &params, &params, |b, args| {
        let (head, p) = block(b, &[Type::I32; 5]);
        let (exit, q) = block(b, &[Type::I32; 4]);
        b.jump(head, &[args[0], args[1], args[2], args[3], args[0]]);
        b.switch_to(head);
        let one = i32_const(b, 1);
        let left = b.op(Opcode::Sub, Type::I32, &[p[4], one]);
        let again = Target::new(head, &[p[1], p[0], p[3], p[2], left]);
        b.br_if(left, again, Target::new(exit, &[p[1], p[2], p[0], p[3]]));
        b.switch_to(exit);
        b.ret(&q);
    });
    assert_eq!(run(&module, func, &[1, 20, 30, 40]), returned(&[20, 30, 1, 40]));
    assert_eq!(run(&module, func, &[2, 20, 30, 40]), returned(&[2, 40, 20, 30]));
    assert_eq!(run(&module, func, &[3, 20, 30, 40]), returned(&[20, 30, 3, 40]));
}

/// Both edges of a branch may go to the same block with different arguments.
#[test]
fn two_edges_to_one_block() {
    let mut module = Module::new();
    let func = define(&mut module, "choose", &[Type::I64], &[Type::I32], |b, args| {
        let (join, p) = block(b, &[Type::I32]);
        let (x, y) = (i32_const(b, 10), i32_const(b, 20));
        b.br_if(args[0], Target::new(join, &[x]), Target::new(join, &[y]));
        b.switch_to(join);
        b.ret(&p);
    });
    assert_eq!(run(&module, func, &[1 << 63]), returned(&[10]));
    assert_eq!(run(&module, func, &[0]), returned(&[20]));
}

#[test]
fn a_switch_takes_the_last_target_when_its_operand_is_too_large() {
    let mut module = Module::new();
    let func = define(&mut module, "pick", &[Type::I32], &[Type::I32], |b, args| {
        let (join, p) = block(b, &[Type::I32]);
        let (plain, other) = (b.create_block(), b.create_block());
        let values = [i32_const(b, 100), i32_const(b, 101), i32_const(b, 102)];
        let targets = vec![
            Target::new(join, &[values[0]]),
            Target::new(plain, &[]),
            Target::new(join, &[values[1]]),
            Target::new(other, &[]),
        ];
        b.insert(InstSpec::terminator(Opcode::Switch, &[args[0]], targets));
        b.switch_to(join);
        b.ret(&p);
        b.switch_to(plain);
        b.ret(&[values[2]]);
        b.switch_to(other);
        b.ret(&args[..1]);
    });
    for (index, result) in
        [(0, 100), (1, 102), (2, 101), (3, 3), (4, 4), (0xffff_ffff, 0xffff_ffff)]
    {
        assert_eq!(run(&module, func, &[index]), returned(&[result]), "{index}");
    }
}

#[test]
fn every_kind_of_trap_is_reported() {
    for kind in [TrapKind::Unreachable, TrapKind::User(7), TrapKind::IntegerOverflow] {
        let mut module = Module::new();
        let func = define(&mut module, "stop", &[], &[], |b, _| {
            b.insert(InstSpec::new(Opcode::Trap, Type::I32, Imm::Trap(kind), &[]));
        });
        assert_eq!(run(&module, func, &[]).trap(), Some(kind));
    }
}

#[test]
fn calls_hand_over_several_values() {
    let mut module = Module::new();
    let two = [Type::I64, Type::F32];
    let swap = define(&mut module, "swap", &[Type::F32, Type::I64], &two, |b, args| {
        b.ret(&[args[1], args[0]]);
    });
    let nothing = define(&mut module, "nothing", &[], &[], |b, _| {
        b.ret(&[]);
    });
    let twice =
        define(&mut module, "twice", &two, &[Type::F32, Type::I64, Type::F32], |b, args| {
            let inst = b.insert(InstSpec::call(swap, &[args[1], args[0]], &two));
            let results = b.function().inst(inst).results.clone();
            b.insert(InstSpec::call(nothing, &[], &[]));
            b.ret(&[results[1], results[0], args[1]]);
        });
    assert_eq!(run(&module, twice, &[u64::MAX, 5]), returned(&[5, u64::MAX, 5]));
}

/// `apply(index, x)` calls entry `index` of a table with `x`. From entry 1 on, the table holds:
/// `double`, null, a function of another signature, an imported function.
fn indirect_module() -> (Module, Func) {
    let mut module = Module::new();
    let negate = import(&mut module, "negate", &[Type::I32], &[Type::I32]);
    let double = define(&mut module, "double", &[Type::I32], &[Type::I32], |b, args| {
        let sum = add(b, args[0], args[0]);
        b.ret(&[sum]);
    });
    let wide = define(&mut module, "wide", &[Type::I64], &[Type::I32], |b, _| {
        let zero = i32_const(b, 0);
        b.ret(&[zero]);
    });
    let table = module.tables.push(TableDecl::of_funcs("table", 5));
    let funcs = vec![Some(double), None, Some(wide), Some(negate)];
    module.elements.push(ElementSegment::of_funcs(table, 1, &funcs));
    let sig = module.funcs[double].sig;
    let apply = define(&mut module, "apply", &[Type::I32, Type::I32], &[Type::I32], |b, args| {
        let value =
            b.insert_value(InstSpec::call_indirect(sig, table, &[args[1], args[0]], &[Type::I32]));
        b.ret(&[value]);
    });
    (module, apply)
}

/// Records its calls and negates its argument. The arguments 1000, 1001 and 1002 make it exit, trap
/// and fail.
struct Negate {
    calls: Vec<(ImportName, Vec<u64>)>,
}

impl Host for Negate {
    fn call(
        &mut self,
        import: &ImportName,
        _func: Func,
        args: &[u64],
        _memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        self.calls.push((import.clone(), args.to_vec()));
        match args[0] {
            1000 => Err(HostError::Exit(3)),
            1001 => Err(HostError::Trap(TrapKind::User(9))),
            1002 => Err(HostError::failed("not today")),
            x => {
                // Negation sets bits above the type of the result. The interpreter must clear them.
                results[0] = x.wrapping_neg();
                Ok(())
            }
        }
    }
}

#[test]
fn indirect_calls_check_index_null_and_signature() {
    let (module, apply) = indirect_module();
    assert_eq!(run(&module, apply, &[1, 21]), returned(&[42]));
    assert_eq!(run(&module, apply, &[0, 21]).trap(), Some(TrapKind::NullFunction));
    assert_eq!(run(&module, apply, &[2, 21]).trap(), Some(TrapKind::NullFunction));
    assert_eq!(run(&module, apply, &[3, 21]).trap(), Some(TrapKind::SignatureMismatch));
    assert_eq!(run(&module, apply, &[5, 21]).trap(), Some(TrapKind::TableOutOfBounds));
    assert_eq!(run(&module, apply, &[0xffff_ffff, 21]).trap(), Some(TrapKind::TableOutOfBounds));
}

/// Two signature ids with equal signatures match in an indirect call.
#[test]
fn equal_signatures_with_different_ids_match() {
    let (mut module, apply) = indirect_module();
    let double = module.func_named("double").expect("it is defined");
    let copy = module.sigs[module.funcs[double].sig].clone();
    module.funcs[double].sig = module.sigs.push(copy);
    assert_eq!(run(&module, apply, &[1, 21]), returned(&[42]));
}

#[test]
fn host_calls_by_every_way() {
    let (mut module, apply) = indirect_module();
    let negate = module.func_named("negate").expect("it is imported");
    let direct = define(&mut module, "direct", &[Type::I32], &[Type::I32], |b, args| {
        let value = b.insert_value(InstSpec::call(negate, args, &[Type::I32]));
        b.ret(&[value]);
    });
    let mut host = Negate { calls: Vec::new() };
    let mut machine = Machine::new(&module, Limits::default()).expect("it instantiates");
    let minus_five = 0xffff_fffb;
    assert_eq!(machine.invoke(apply, &[4, 5], &mut host, &mut NoObserver), returned(&[minus_five]));
    assert_eq!(machine.invoke(direct, &[5], &mut host, &mut NoObserver), returned(&[minus_five]));
    assert_eq!(machine.invoke(negate, &[5], &mut host, &mut NoObserver), returned(&[minus_five]));
    let name = ImportName { module: "host".to_owned(), field: "negate".to_owned() };
    assert_eq!(host.calls, vec![(name, vec![5]); 3]);

    for func in [direct, negate] {
        assert_eq!(machine.invoke(func, &[1000], &mut host, &mut NoObserver), Outcome::Exited(3));
        let trap = machine.invoke(func, &[1001], &mut host, &mut NoObserver);
        assert_eq!(trap.trap(), Some(TrapKind::User(9)));
        let failed = machine.invoke(func, &[1002], &mut host, &mut NoObserver);
        assert!(failed.to_string().ends_with(": not today"), "{failed}");
    }
}

#[test]
fn a_missing_host_function_is_named() {
    let (module, apply) = indirect_module();
    let outcome = run(&module, apply, &[4, 5]);
    assert!(outcome.to_string().ends_with("no host function host.negate"), "{outcome}");
    assert!(outcome.to_string().starts_with("host call failed in @apply at inst"), "{outcome}");
}

#[test]
fn run_finds_exports_and_runs_the_start_function_first() {
    let mut module = Module::new();
    let global = module.globals.push(ir::module::GlobalDecl {
        name: "g".to_owned(),
        ty: Type::I32,
        mutable: true,
        init: 1.into(),
        import: None,
    });
    let start = define(&mut module, "init", &[], &[], |b, _| {
        let value = i32_const(b, 77);
        b.insert(InstSpec::new(Opcode::GlobalSet, Type::I32, Imm::Global(global), &[value]));
        b.ret(&[]);
    });
    let get = define(&mut module, "get", &[], &[Type::I32], |b, _| {
        let value =
            b.insert_value(InstSpec::new(Opcode::GlobalGet, Type::I32, Imm::Global(global), &[]));
        b.ret(&[value]);
    });
    module.exports.push(Export { name: "answer".to_owned(), item: External::Func(get) });
    assert_eq!(interp::run(&module, "answer", &[]), Ok(returned(&[1])));
    module.start = Some(start);
    assert_eq!(interp::run(&module, "answer", &[]), Ok(returned(&[77])));
}

#[test]
fn a_function_without_body_is_refused() {
    let mut module = Module::new();
    let sig = module.sig(&ir::Signature::default());
    module.funcs.push(ir::module::FuncDecl {
        name: "ghost".to_owned(),
        sig,
        import: None,
        effect: Default::default(),
    });
    let error = Machine::new(&module, Limits::default()).expect_err("it is refused");
    assert_eq!(error.to_string(), "function @ghost has no body and is not imported");
}

#[test]
fn element_segments_must_lie_within_their_table() {
    let (mut module, _) = indirect_module();
    module.elements.push(ElementSegment::of_funcs(Table::from_u32(0), 5, &[]));
    assert!(Machine::new(&module, Limits::default()).is_ok());
    for offset in [4, 5, u64::MAX] {
        module.elements[1] = ElementSegment::of_funcs(Table::from_u32(0), offset, &[None, None]);
        let error = Machine::new(&module, Limits::default()).expect_err("it is refused");
        assert_eq!(error.to_string(), "element segment 1 is out of bounds of table table");
    }
}

#[test]
fn versions_of_a_function_are_chosen_for_new_activations() {
    let (module, fib) = fib();
    // A function of another family with the same signature serves as a version that returns its
    // argument.
    let mut other = Module::new();
    define(&mut other, "identity", &[Type::I32], &[Type::I32], |b, args| {
        b.ret(args);
    });
    let identity = other.body(Func::from_u32(0)).expect("it is defined");
    let mut machine = Machine::new(&module, Limits::default()).expect("it instantiates");
    let base = machine.current(fib).expect("it is not imported");
    let version = machine.add_version(&module, fib, identity);
    assert_eq!(machine.invoke(fib, &[10], &mut NoHost, &mut NoObserver), returned(&[55]));
    machine.set_current(fib, version);
    assert_eq!(machine.invoke(fib, &[10], &mut NoHost, &mut NoObserver), returned(&[10]));
    machine.set_current(fib, base);
    assert_eq!(machine.invoke(fib, &[10], &mut NoHost, &mut NoObserver), returned(&[55]));
}

/// An `osr_exit` in a callee also ends the runs of its callers. Tests of OSR points leave no entry
/// in the trace.
#[test]
fn an_exit_ends_the_whole_run() {
    let mut module = Module::new();
    let point = OsrPoint::from_u32(9);
    let leaves = define(&mut module, "leaves", &[Type::I32, Type::F64], &[Type::I32], |b, args| {
        let fire = b.insert_value(InstSpec::new(Opcode::OsrTest, Type::I32, Imm::Exit(point), &[]));
        let values = [args[1], fire, args[0], args[1]];
        b.insert(InstSpec {
            imm: Imm::Exit(point),
            ..InstSpec::terminator(Opcode::OsrExit, &values, Vec::new())
        });
    });
    let caller = define(&mut module, "caller", &[Type::I32], &[Type::I32], |b, args| {
        let half = b.constant(Type::F64, 0.5f64.to_bits());
        let call = b.insert(InstSpec::call(leaves, &[args[0], half], &[Type::I32]));
        let results = b.function().inst(call).results.clone();
        b.ret(&results);
    });
    let exit = module.body(leaves).map(|f| f.terminator(f.entry()));
    let values = vec![0.5f64.to_bits(), 0, 7, 0.5f64.to_bits()];
    let site = Site { func: leaves, function: "leaves".to_owned(), inst: exit };
    let outcome = Outcome::Left { point, values, site };
    assert_eq!(run(&module, caller, &[7]), outcome);
    assert_eq!(
        outcome.to_string(),
        "left at osr9 in @leaves at inst1 with 4602678819172646912 0 7 4602678819172646912"
    );
    let mut machine = Machine::new(&module, Limits::default()).expect("the module instantiates");
    for _ in 0..2 {
        assert_eq!(
            machine.invoke(caller, &[7], &mut NoHost, &mut NoObserver),
            outcome,
            "in the fast tier"
        );
        assert!(machine.view().is_none(), "no run is under way");
    }
    let mut machine = super::support::machine(&module, Limits::default());
    machine.invoke(leaves, &[7, 0], &mut NoHost, &mut NoObserver);
    assert_eq!(machine.trace().count(), 0);
}
