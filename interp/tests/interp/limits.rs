//! Every resource of a program has a limit, and reaching each limit has its own outcome.

use super::support::{self, add_memory, block, define, fib, i32_const, returned, sum, sum_cost};
use interp::{InstantiateError, Limits, Machine, NoHost, NoObserver, Outcome, Program, Run};
use ir::module::{GlobalDecl, TableDecl};
use ir::{Func, Imm, InstSpec, Memory, Module, Opcode, Target, Type};

fn invoke(module: &Module, func: Func, args: &[u64], limits: Limits) -> (Outcome, u64) {
    let mut machine = Machine::new(module, limits).expect("it instantiates");
    let outcome = machine.invoke(func, args, &mut NoHost, &mut NoObserver);
    (outcome, machine.fuel())
}

#[test]
fn fuel_is_counted_per_instruction() {
    let sum = sum();
    let needed = sum_cost(10);
    for fuel in 0..=needed {
        let (outcome, left) =
            invoke(&sum.module, sum.func, &[10], Limits { fuel, ..Limits::default() });
        if fuel == needed {
            assert_eq!(outcome, returned(&[45]));
        } else {
            assert!(
                matches!(&outcome, Outcome::OutOfFuel(site) if site.function == "sum"),
                "{fuel}: {outcome}"
            );
        }
        assert_eq!(left, 0);
    }
}

/// The moves on the edges of a branch are not instructions. A run that stops at them reports the
/// next instruction as its site.
#[test]
fn moves_on_edges_cost_no_fuel() {
    let mut module = Module::new();
    let func =
        define(&mut module, "f", &[Type::I32, Type::I32], &[Type::I32, Type::I32], |b, args| {
            let (join, p) = block(b, &[Type::I32, Type::I32]);
            b.br_if(
                args[0],
                Target::new(join, &[args[1], args[0]]),
                Target::new(join, &[args[0], args[0]]),
            );
            b.switch_to(join);
            b.ret(&p);
        });
    let with = |fuel| invoke(&module, func, &[1, 2], Limits { fuel, ..Limits::default() });
    assert_eq!(with(3), (returned(&[2, 1]), 1));
    assert_eq!(with(2), (returned(&[2, 1]), 0));
    let (outcome, _) = with(1);
    let last = module.body(func).expect("it is defined").all_insts().last().expect("it returns");
    assert!(matches!(&outcome, Outcome::OutOfFuel(site) if site.inst == Some(last)), "{outcome}");
}

/// Fuel ends an infinite loop.
#[test]
fn an_endless_loop_runs_out_of_fuel() {
    let mut module = Module::new();
    let func = define(&mut module, "spin", &[], &[], |b, _| {
        let (head, _) = block(b, &[]);
        b.jump(head, &[]);
        b.switch_to(head);
        b.jump(head, &[]);
    });
    let (outcome, _) = invoke(&module, func, &[], Limits { fuel: 100_000, ..Limits::default() });
    let place = module.body(func).expect("it is defined").all_insts().last().expect("it jumps");
    assert_eq!(outcome.to_string(), format!("out of fuel in @spin at {place}"));
}

/// A function that calls itself without end, with `values` values in its frame.
fn endless_recursion(values: usize) -> (Module, Func) {
    let mut module = Module::new();
    let itself = Func::from_u32(0);
    define(&mut module, "down", &[], &[Type::I32], |b, _| {
        for number in 1..values {
            i32_const(b, number as i32);
        }
        let value = b.insert_value(InstSpec::call(itself, &[], &[Type::I32]));
        b.ret(&[value]);
    });
    (module, itself)
}

/// Calls do not recurse on the native stack: a million activations fit a thread with a stack of 256
/// KiB.
#[test]
fn endless_recursion_overflows_the_depth_and_nothing_else() {
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    let run = || {
        let (module, func) = endless_recursion(1);
        let limits = Limits { call_depth: 1_000_000, ..Limits::default() };
        invoke(&module, func, &[], limits).0.to_string()
    };
    let outcome = thread.spawn(run).expect("a thread starts").join().expect("it does not overflow");
    assert!(outcome.starts_with("stack overflow in @down at inst"), "{outcome}");
}

#[test]
fn the_depth_that_is_allowed_can_be_used() {
    let (module, fib) = fib();
    // fib(10) has at most 10 activations at once.
    let with =
        |call_depth| invoke(&module, fib, &[10], Limits { call_depth, ..Limits::default() }).0;
    assert_eq!(with(10), returned(&[55]));
    assert!(matches!(with(9), Outcome::StackOverflow(_)));
    let Outcome::StackOverflow(site) = with(0) else { panic!("no activation is allowed") };
    assert_eq!((site.function.as_str(), site.inst), ("fib", None));
}

#[test]
fn large_frames_overflow_the_value_stack() {
    let (module, func) = endless_recursion(1000);
    let limits = Limits { stack_values: 10_000, ..Limits::default() };
    let (outcome, left) = invoke(&module, func, &[], limits);
    assert!(matches!(outcome, Outcome::StackOverflow(_)), "{outcome}");
    // A frame has 1000 values and one slot for moves. Nine frames fit, and each executes 999
    // constants and a call.
    assert_eq!(limits.fuel - left, 9 * 1000);
}

/// Ended activations release their slots: `fib(15)` makes thousands of activations, but at most 15
/// exist at once.
#[test]
fn values_of_ended_activations_are_free_again() {
    let (module, fib) = fib();
    // A frame has nine values and one slot for moves.
    let with =
        |stack_values| invoke(&module, fib, &[15], Limits { stack_values, ..Limits::default() }).0;
    assert_eq!(with(150), returned(&[610]));
    assert!(matches!(with(149), Outcome::StackOverflow(_)));
}

/// A machine is usable after a run that ended early.
#[test]
fn a_machine_survives_an_early_end() {
    let (module, fib) = fib();
    let mut machine =
        Machine::new(&module, Limits { fuel: 50, call_depth: 8, ..Limits::default() })
            .expect("it instantiates");
    let out = machine.invoke(fib, &[7], &mut NoHost, &mut NoObserver);
    assert!(matches!(out, Outcome::OutOfFuel(_)), "{out}");
    machine.set_fuel(1_000_000);
    let deep = machine.invoke(fib, &[20], &mut NoHost, &mut NoObserver);
    assert!(matches!(deep, Outcome::StackOverflow(_)), "{deep}");
    assert_eq!(machine.invoke(fib, &[7], &mut NoHost, &mut NoObserver), returned(&[13]));
    assert!(machine.view().is_none());
}

#[test]
fn a_memory_larger_than_the_limit_is_refused() {
    let mut module = Module::new();
    add_memory(&mut module, "small", 3, None);
    add_memory(&mut module, "large", 4, None);
    let with = |memory_pages| {
        Machine::new(&module, Limits { memory_pages, ..Limits::default() }).map(|_| ())
    };
    assert_eq!(with(7), Ok(()));
    let refused = InstantiateError::MemoryTooLarge { memory: "large".to_owned(), pages: 4 };
    assert_eq!(with(6), Err(refused.clone()));
    assert_eq!(
        refused.to_string(),
        "memory large has 4 initial pages, more than its maximum, the limit or its region allows"
    );
}

#[test]
fn a_memory_larger_than_its_own_maximum_is_refused() {
    let mut module = Module::new();
    add_memory(&mut module, "memory", 4, Some(3));
    assert!(matches!(
        Machine::new(&module, Limits::default()),
        Err(InstantiateError::MemoryTooLarge { .. })
    ));
}

/// Claimed memory costs neither bytes nor digest until it is touched.
#[test]
fn claiming_all_memory_is_cheap() {
    let mut module = Module::new();
    add_memory(&mut module, "memory", 65_536, None);
    let limits = Limits { memory_pages: 65_536, ..Limits::default() };
    let machine = super::support::machine(&module, limits);
    assert_eq!(machine.memories().pages(Memory::from_u32(0)), 65_536);
    assert_ne!(machine.memory_digest(), 0);
    assert!(matches!(
        Machine::new(&module, Limits::default()),
        Err(InstantiateError::MemoryTooLarge { .. })
    ));
}

#[test]
fn tables_larger_than_the_limit_are_refused() {
    let mut module = Module::new();
    module.tables.push(TableDecl::of_funcs("a", 10));
    module.tables.push(TableDecl::of_funcs("b", 11));
    let with = |table_entries| {
        Machine::new(&module, Limits { table_entries, ..Limits::default() }).map(|_| ())
    };
    assert_eq!(with(21), Ok(()));
    let error = with(20).expect_err("it is refused");
    assert_eq!(error.to_string(), "table b has 11 entries, more than the limit allows");
    module.tables[ir::Table::from_u32(1)].size = u32::MAX;
    assert!(Machine::new(&module, Limits::default()).is_err());
}

/// A rejected module leaves a machine unchanged, including its current run. The machine accepts a
/// module that fits afterwards.
#[test]
fn an_extension_without_room_changes_nothing() {
    let limits = Limits { memory_pages: 4, table_entries: 10, ..Limits::default() };
    let sum = sum();
    let mut machine = support::machine(&sum.module, limits);
    let unchanged = machine.clone();
    machine.start(sum.func, &[10]);
    let with = |pages: &[u32], entries: u32, function: bool| {
        let mut module = sum.module.clone();
        pages.iter().for_each(|pages| _ = add_memory(&mut module, "mem", *pages, None));
        module.tables.push(TableDecl::of_funcs("table", entries));
        module.globals.push(GlobalDecl {
            name: "g".to_owned(),
            ty: Type::I64,
            mutable: true,
            init: 7.into(),
            import: None,
        });
        let body = define(&mut module, "f", &[], &[], |b, _| _ = b.ret(&[]));
        if !function {
            module.undefine(body);
        }
        Program::new(&module)
    };
    let memory = |pages| Err(InstantiateError::MemoryTooLarge { memory: "mem".to_owned(), pages });
    let table = Err(InstantiateError::TableTooLarge { table: "table".to_owned(), entries: 11 });
    let no_body = Err(InstantiateError::NoBody { function: "f".to_owned() });
    for (program, refusal) in [
        (with(&[3, 2], 1, true), memory(2)),
        (with(&[4], 11, true), table),
        (with(&[4], 10, false), no_body),
    ] {
        assert_eq!(machine.extend(&program), refusal);
        assert!(machine.same_memory(&unchanged), "after {refusal:?}");
        assert_eq!(machine.memory_digest(), unchanged.memory_digest(), "after {refusal:?}");
        assert_eq!(machine.declarations().funcs.len(), 1);
    }
    assert_eq!(machine.run(&mut NoHost, &mut NoObserver), Run::Done(returned(&[45])));
    assert_eq!(machine.extend(&with(&[3, 1], 10, true)), Ok(()));
    assert_eq!(machine.memory_digest(), machine.computed_memory_digest());
    assert_eq!(machine.invoke(Func::from_u32(1), &[], &mut NoHost, &mut NoObserver), returned(&[]));
}

/// Versions for a module rely on the sizes that it declares: an access below them never traps. A
/// memory that has grown may be declared with its size.
#[test]
fn a_module_that_declares_more_pages_than_a_memory_has_is_rejected() {
    let mut module = Module::new();
    let id = add_memory(&mut module, "mem", 1, None);
    let grow = define(&mut module, "grow", &[Type::I32], &[], |b, args| {
        b.insert(InstSpec::new(Opcode::MemoryGrow, Type::I32, Imm::Memory(id), args));
        b.ret(&[]);
    });
    let mut machine = support::machine(&module, Limits::default());
    let declared = |pages| {
        let mut later = module.clone();
        later.memories[id].min_pages = pages;
        Program::new(&later)
    };
    let error = machine.extend(&declared(2)).expect_err("it has one page");
    let small =
        |pages, has| InstantiateError::MemoryTooSmall { memory: "mem".to_owned(), pages, has };
    assert_eq!(error, small(2, 1));
    assert_eq!(error.to_string(), "memory mem is declared with 2 pages at least, and has 1");
    assert_eq!(machine.declarations().memories[id].min_pages, 1, "the machine is unchanged");
    assert_eq!(machine.extend(&declared(0)), Ok(()));
    assert_eq!(machine.invoke(grow, &[2], &mut NoHost, &mut NoObserver), returned(&[]));
    assert_eq!(machine.extend(&declared(3)), Ok(()));
    assert_eq!(machine.extend(&declared(4)), Err(small(4, 3)));
}
