//! Machines extended by several modules in turn. Existing state stays, and a module that does not
//! fit leaves the machine unchanged.

use super::support::{Pair, SUM, engine, in_a_process_of_its_own, invoke, module, sum, vm};
use osier::interp::{InstantiateError, Limits, Options, Outcome};
use osier::ir::module::{
    DataSegment, ElementSegment, External, FuncDecl, GlobalDecl, ImportName, MemoryDecl,
    MemoryKind, TableDecl,
};
use osier::ir::{
    ChunkedMap, Func, FunctionBuilder, Imm, InstSpec, Memory, Module, Opcode, Signature, Table,
    TrapKind, Type,
};
use osier::jit::{
    Action, Bounds, Condition, Config, Effort, Engine, Interruption, LinkError, RunError,
    TransitionKind, Version, Vm, VmError,
};
use osier::passes::Pipeline;
use osier::tiers::{Eager, NoObserver, Tiered};
use osier::wasm::{ImportLimits, Linker, import, import_linked};
use std::sync::Arc;

/// Calls the functions of a table, and counts the calls.
const CALLER: &str = r#"(module
    (memory (export "mem") 1 2) (table (export "table") 4 8 funcref)
    (global $count (export "count") (mut i32) (i32.const 0))
    (type $t (func (param i32) (result i32)))
    (func (export "call") (param $at i32) (param $x i32) (result i32)
        (global.set $count (i32.add (global.get $count) (i32.const 1)))
        (i32.store (i32.const 100) (local.get $x))
        (call_indirect (type $t) (local.get $x) (local.get $at)))
    (func $twice (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2)))
    (elem (i32.const 0) func $twice))"#;

/// Adds functions to that table, with a memory and a signature of its own.
const CALLEE: &str = r#"(module
    (import "first" "call" (func $call (param i32 i32) (result i32)))
    (import "first" "mem" (memory $shared 1)) (import "first" "table" (table $shared 4 funcref))
    (memory $own 1) (data (memory $own) (i32.const 8) "\07")
    (func $plus (param i32) (result i32)
        (i32.add (i32.load $shared (i32.const 100)) (i32.load8_u $own (i32.const 8))))
    (func $other (param i64) (result i32) (i32.wrap_i64 (local.get 0)))
    (func (export "back") (param i32) (result i32) (call $call (i32.const 0) (local.get 0)))
    (func (export "beyond") (result i32) (i32.load $own (i32.const 65536)))
    (elem (table $shared) (i32.const 1) func $plus $other))"#;

fn caller() -> Arc<Module> {
    let bytes = wat::parse_str(CALLER).expect("text of a module");
    Arc::new(import(&bytes, &ImportLimits::default()).expect("a module"))
}

/// A module linked to an earlier module, which it imports under the name `first`.
fn behind(earlier: &Module, text: &str) -> Arc<Module> {
    let bytes = wat::parse_str(text).expect("text of a module");
    let provided = |_: &str, field: &str| -> Option<External> {
        earlier.exports.iter().find(|export| export.name == field).map(|export| export.item)
    };
    let linker = Linker { modules: earlier, provided: &provided };
    Arc::new(import_linked(&bytes, &ImportLimits::default(), linker).expect("it can be linked"))
}

fn exported(module: &Module, name: &str) -> Func {
    module.lookup(name).expect("it is exported")
}

fn returned(value: u64) -> Result<Outcome, RunError> {
    Ok(Outcome::Returned(vec![value]))
}

/// Compiles a function and installs the version for its calls.
fn installed(vm: &mut Vm, engine: &Engine, module: &Arc<Module>, func: Func) -> Arc<Version> {
    let body = module.body(func).expect("it has a body");
    let version = engine.version(module, func, body, &[]).expect("compiled");
    vm.install(&version, vec![]).expect("it fits");
    version
}

/// A module that starts with the declarations of another, and is then changed.
fn changed(module: &Module, change: impl FnOnce(&mut Module)) -> Arc<Module> {
    let mut later = module.clone();
    change(&mut later);
    Arc::new(later)
}

fn a_memory(pages: u32) -> MemoryDecl {
    MemoryDecl {
        name: "later".to_owned(),
        min_pages: pages,
        max_pages: None,
        import: None,
        kind: MemoryKind::Linear,
    }
}

#[test]
fn functions_of_later_modules_are_called_through_tables() {
    for bounds in [Bounds::Guarded, Bounds::Checked] {
        let engine = engine(Config { bounds, ..Config::default() });
        let first = caller();
        let mut vm = vm(&engine, &first);
        let call = exported(&first, "call");
        // Compiled once, for the first module. The policy compiles the other functions.
        installed(&mut vm, &engine, &first, call);
        vm.set_tiering(Box::new(Eager::new(NoObserver)));
        assert_eq!(invoke(&mut vm, call, &[0, 21]), returned(42));
        let trap = |outcome: Result<Outcome, RunError>| outcome.expect("an outcome").trap();
        assert_eq!(trap(invoke(&mut vm, call, &[1, 5])), Some(TrapKind::NullFunction));
        let second = behind(&first, CALLEE);
        vm.extend(&second).expect("it begins like the first");
        assert!(Arc::ptr_eq(vm.module(), &second));
        assert_eq!(invoke(&mut vm, call, &[1, 5]), returned(12), "{bounds:?}: a memory of each");
        assert_eq!(trap(invoke(&mut vm, call, &[2, 5])), Some(TrapKind::SignatureMismatch));
        assert_eq!(trap(invoke(&mut vm, call, &[3, 5])), Some(TrapKind::NullFunction));
        assert_eq!(trap(invoke(&mut vm, call, &[4, 5])), Some(TrapKind::TableOutOfBounds));
        for name in ["back", "beyond"] {
            installed(&mut vm, &engine, &second, exported(&second, name));
        }
        assert_eq!(invoke(&mut vm, exported(&second, "back"), &[3]), returned(6));
        let ended = invoke(&mut vm, exported(&second, "beyond"), &[]);
        assert_eq!(trap(ended), Some(TrapKind::MemoryOutOfBounds), "{bounds:?}");
        assert_eq!(vm.machine().globals(), [7], "what was counted before and after");
        assert_eq!(vm.machine().memory_digest(), vm.machine().computed_memory_digest());
    }
}

#[test]
fn extending_keeps_the_targets_and_flags_of_points() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let mut vm = vm(&engine, &pair.module);
    let slow = pair.at_head(&engine, false, Condition::Flag);
    let fast = pair.at_head(&engine, true, Condition::Flag);
    vm.adopt(&fast, vec![Action::Ask]).expect("it fits");
    vm.install(&slow, vec![pair.leading(&engine, true, &fast)]).expect("it fits");
    slow.arm(0);
    assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), returned(sum(10, 7)));
    let later = changed(&pair.module, |module| _ = module.memories.push(a_memory(1)));
    vm.extend(&later).expect("it begins alike");
    assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), returned(sum(10, 7)));
    let made = vm.transitions();
    assert_eq!(
        made.iter().map(|made| (made.kind, made.count)).collect::<Vec<_>>(),
        [(TransitionKind::Across, 2)]
    );
    // The version compiled for the earlier module still fits. So does a version for this module.
    fast.arm(0);
    vm.relink(&fast, 0, Action::Interpret(Arc::clone(&pair.backward))).expect("it fits");
    assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), returned(sum(10, 7)));
    assert!(
        vm.transitions().iter().any(|made| made.kind == TransitionKind::Down),
        "{:?}",
        vm.transitions()
    );
    slow.disarm(0);
    let newer = engine.version(&later, pair.func, &pair.opt, &[]).expect("compiled");
    let older = engine.version(&pair.module, pair.func, &pair.base, &[]).expect("compiled");
    for version in [newer, older] {
        vm.install(&version, vec![]).expect("it fits");
        assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), returned(sum(10, 7)));
    }
    let other =
        engine.version(&changed(&later, |_| {}), pair.func, &pair.opt, &[]).expect("compiled");
    assert_eq!(
        vm.install(&other, vec![]),
        Err(LinkError::OtherProgram),
        "for a module that was not taken up"
    );
}

#[test]
fn an_interrupt_follows_the_machine() {
    let engine = engine(Config { interruption: Interruption::Signal, ..Config::default() });
    let pair = Pair::new(SUM);
    for native in [true, false] {
        let mut vm = vm(&engine, &pair.module);
        if native {
            installed(&mut vm, &engine, &pair.module, pair.func);
        }
        let interrupt = vm.interrupt();
        interrupt.ask();
        vm.extend(&changed(&pair.module, |module| _ = module.memories.push(a_memory(1))))
            .expect("it begins alike");
        assert_eq!(
            invoke(&mut vm, pair.func, &[10, 7]),
            Err(RunError::Interrupted),
            "asked before, native: {native}"
        );
        assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), returned(sum(10, 7)));
        interrupt.ask();
        assert_eq!(
            invoke(&mut vm, pair.func, &[10, 7]),
            Err(RunError::Interrupted),
            "asked behind, native: {native}"
        );
    }
}

#[test]
fn loops_of_later_modules_turn_hot() {
    let engine = engine(Config::default());
    let first = caller();
    let mut vm = vm(&engine, &first);
    vm.set_tiering(Box::new(Tiered::new(10, Pipeline::default())));
    let second = behind(
        &first,
        r#"(module (func (export "count") (param $n i32) (result i32) (local $i i32)
            (loop $again
                (local.set $i (i32.add (local.get $i) (i32.const 3)))
                (br_if $again (i32.lt_u (local.get $i) (local.get $n))))
            (local.get $i)))"#,
    );
    vm.extend(&second).expect("it begins like the first");
    assert_eq!(invoke(&mut vm, exported(&second, "count"), &[1000]), returned(1002));
    assert!(
        vm.transitions().iter().any(|made| made.kind == TransitionKind::Up),
        "{:?}",
        vm.transitions()
    );
}

#[test]
fn earlier_modules_are_freed() {
    let engine = engine(Config::default());
    let mut last = caller();
    let mut vm = vm(&engine, &last);
    let mut earlier = Vec::new();
    for _ in 0..3 {
        let next = changed(&last, |module| _ = module.memories.push(a_memory(0)));
        vm.extend(&next).expect("it begins alike");
        earlier.push(Arc::downgrade(&last));
        last = next;
    }
    assert!(earlier.iter().all(|module| module.upgrade().is_none()));
}

/// A machine grows by one function at a time. Each function calls the function before it, from
/// native code made for its own module. A module shares all functions except the last functions
/// with the next module, and functions without a version are gone.
#[test]
fn a_machine_grows_by_a_function_at_a_time() {
    const CALLS: &str = "func @f0(%x: i64) -> i64 {\nentry:\n  return %x\n}\n";
    let engine = engine(Config { effort: Effort::Least, ..Config::default() });
    let mut last = module(CALLS);
    let mut vm = vm(&engine, &last);
    let mut gone = Vec::new();
    for number in 1..400usize {
        let callee = Func::from_u32(number as u32 - 1);
        let next = changed(&last, |module| {
            let mut decl = module.funcs[callee].clone();
            decl.name = format!("f{number}");
            let signature = module.signature(callee).clone();
            let func = module.funcs.push(decl);
            let mut b = FunctionBuilder::new(&format!("f{number}"), signature);
            let entry = b.create_block();
            let x = b.append_param(entry, Type::I64);
            b.switch_to(entry);
            let y = b.insert_value(InstSpec::call(callee, &[x], &[Type::I64]));
            let one = b.insert_value(InstSpec::constant(Type::I64, 1));
            let sum = b.insert_value(InstSpec::new(Opcode::Add, Type::I64, Imm::None, &[y, one]));
            b.ret(&[sum]);
            module.define(func, b.finish().expect("it is whole").function);
        });
        vm.extend(&next).expect("it begins alike");
        assert!(next.shared_functions(&last) + 64 >= number, "{number}");
        let func = Func::from_u32(number as u32);
        if number % 3 == 0 {
            let version = engine.version(&next, func, next.body(func).expect("there"), &[]);
            vm.install(&version.expect("compiled"), vec![]).expect("it fits");
        } else {
            gone.push(Arc::downgrade(&next));
        }
        last = next;
        if number % 50 == 0 || number < 8 {
            let result = invoke(&mut vm, func, &[5]);
            assert_eq!(result, Ok(Outcome::Returned(vec![5 + number as u64])));
        }
    }
    gone.pop();
    assert!(gone.iter().all(|module| module.upgrade().is_none()));
}

/// Each case changes a declaration that code of the earlier module relies on.
#[test]
fn another_beginning_is_refused() {
    let engine = engine(Config::default());
    let first = behind(&caller(), CALLEE);
    let imported = FuncDecl {
        name: "host".to_owned(),
        sig: osier::ir::Sig::from_u32(0),
        import: Some(ImportName { module: "env".to_owned(), field: "f".to_owned() }),
        effect: Default::default(),
    };
    let first = changed(&first, |module| {
        module.funcs.push(imported);
        module.data.push(DataSegment { active: None, bytes: vec![1, 2, 3] });
    });
    let mut vm = vm(&engine, &first);
    let call = first.funcs.keys().next().expect("there is one");
    let again = caller();
    type Change<'c> = Box<dyn Fn(&mut Module) + 'c>;
    let changes: Vec<(Change<'_>, &str)> = vec![
        (
            Box::new(|module| {
                module.sigs[osier::ir::Sig::from_u32(0)] = Signature::new(&[Type::F64], &[])
            }),
            "signature",
        ),
        (Box::new(|module| module.sigs.clear()), "signature"),
        (
            Box::new(|module| {
                module.define(call, again.body(call).expect("it is defined").clone())
            }),
            "function",
        ),
        (Box::new(|module| module.undefine(call)), "function"),
        (Box::new(|module| module.funcs[call].sig = osier::ir::Sig::from_u32(0)), "function"),
        (
            Box::new(|module| module.funcs.values_mut().for_each(|decl| decl.import = None)),
            "function",
        ),
        (Box::new(|module| module.funcs = ChunkedMap::new()), "function"),
        (
            Box::new(|module| module.globals.values_mut().for_each(|decl| decl.ty = Type::I64)),
            "global",
        ),
        (
            Box::new(|module| module.globals.values_mut().for_each(|decl| decl.mutable = false)),
            "global",
        ),
        (Box::new(|module| module.globals.clear()), "global"),
        (
            Box::new(|module| {
                module.memories.values_mut().for_each(|decl| decl.max_pages = Some(3))
            }),
            "memory",
        ),
        (Box::new(|module| module.memories.clear()), "memory"),
        (
            Box::new(|module| {
                module.tables.values_mut().for_each(|decl| decl.ty = Type::ExternRef)
            }),
            "table",
        ),
        (
            Box::new(|module| module.tables.values_mut().for_each(|decl| decl.max_size = None)),
            "table",
        ),
        (Box::new(|module| module.tables.clear()), "table"),
        (Box::new(|module| module.data[1].bytes[1] = 0), "data segment 1"),
        (Box::new(|module| module.data.clear()), "data segment 0"),
        (Box::new(|module| module.elements.truncate(1)), "element segment 1"),
    ];
    for (number, (change, named)) in changes.into_iter().enumerate() {
        match vm.extend(&changed(&first, change)) {
            Err(VmError::OtherBeginning { what }) => {
                assert!(what.starts_with(named), "change {number}: {what}")
            }
            other => panic!("change {number}: {other:?}"),
        }
    }
    // Versions for a module rely on the pages that it declares, and this memory has one.
    let more_pages = changed(&first, |module| {
        module.memories.values_mut().for_each(|decl| decl.min_pages = 2);
    });
    assert!(matches!(
        vm.extend(&more_pages),
        Err(VmError::Instantiate(InstantiateError::MemoryTooSmall { pages: 2, has: 1, .. }))
    ));
    // No attempt has changed the machine. Declarations that matter only at the start may differ.
    let other_start = changed(&first, |module| {
        module.memories.values_mut().for_each(|decl| decl.min_pages = 0);
        module.tables.values_mut().for_each(|decl| decl.size = 5);
        module.globals.values_mut().for_each(|decl| decl.init = 9.into());
        module.exports.clear();
    });
    vm.extend(&other_start).expect("it begins alike");
    assert_eq!(invoke(&mut vm, call, &[1, 5]), returned(12));
    assert_eq!(vm.machine().globals(), [1]);
}

/// Calls through a fixed table may have become calls of the functions there.
#[test]
fn a_module_that_changes_a_fixed_table_is_refused() {
    let engine = engine(Config::default());
    let text = "table @t 2 fixed\nelem @t 0 [@one]\n\
        func @one() -> i32 {\nentry:\n  %r = const.i32 1\n  return %r\n}\n";
    let first = super::support::module(text);
    let one = first.func_named("one").expect("the text has it");
    let table = Table::from_u32(0);
    let mut vm = vm(&engine, &first);
    type Change<'c> = Box<dyn Fn(&mut Module) + 'c>;
    let changes: Vec<(Change<'_>, &str)> = vec![
        (Box::new(|module| module.tables[table].fixed = false), "table @t"),
        (Box::new(|module| module.tables[table].size = 3), "table @t"),
        (
            Box::new(|module| {
                module.elements.push(ElementSegment::of_funcs(table, 1, &[Some(one)]))
            }),
            "element segment 1",
        ),
    ];
    for (change, named) in changes {
        match vm.extend(&changed(&first, change)) {
            Err(VmError::OtherBeginning { what }) => assert_eq!(what, named),
            other => panic!("{named}: {other:?}"),
        }
    }
    let own = changed(&first, |module| {
        let own = module.tables.push(TableDecl { fixed: true, ..TableDecl::of_funcs("own", 1) });
        module.elements.push(ElementSegment::of_funcs(own, 0, &[Some(one)]));
    });
    vm.extend(&own).expect("a further table may be fixed");
}

/// Versions call the functions of a fixed table without reading it. So its segments are written
/// even if an earlier segment is out of the bounds of its table.
#[test]
fn a_faulty_segment_keeps_none_of_a_fixed_table_away() {
    let engine = engine(Config::default());
    let first = super::support::module(
        "func @one() -> i32 {\nentry:\n  %r = const.i32 1\n  return %r\n}\n",
    );
    let one = first.func_named("one").expect("the text has it");
    let mut vm = vm(&engine, &first);
    let tables = [Table::from_u32(0), Table::from_u32(1)];
    let more = changed(&first, |module| {
        let import = Some(ImportName { module: "m".to_owned(), field: "t".to_owned() });
        module.tables.push(TableDecl { import, ..TableDecl::of_funcs("imported", 1) });
        module.tables.push(TableDecl { fixed: true, ..TableDecl::of_funcs("own", 1) });
        module.elements.push(ElementSegment::of_funcs(tables[0], 5, &[Some(one)]));
        module.elements.push(ElementSegment::of_funcs(tables[1], 0, &[Some(one)]));
    });
    assert!(vm.extend(&more).is_err(), "the first segment does not fit");
    let target = more.fixed_target(tables[1], 0);
    assert_eq!(vm.machine().table(tables[1]), [osier::ir::reference::of_func(target)]);
}

#[test]
fn a_module_beyond_the_limits_changes_nothing() {
    for bounds in [Bounds::Guarded, Bounds::Checked] {
        let engine = engine(Config { bounds, ..Config::default() });
        let first = caller();
        let limits = Limits { memory_pages: 3, table_entries: 8, ..Limits::default() };
        let mut vm =
            Vm::new(&engine, &first, limits, Options::traced()).expect("it can be instantiated");
        let call = exported(&first, "call");
        let version = installed(&mut vm, &engine, &first, call);
        let too_large = changed(&first, |module| {
            module.memories.push(a_memory(1));
            module.memories.push(a_memory(2));
        });
        let refused = InstantiateError::MemoryTooLarge { memory: "later".to_owned(), pages: 2 };
        assert_eq!(vm.extend(&too_large), Err(VmError::Instantiate(refused)));
        let too_large =
            changed(&first, |module| _ = module.tables.push(TableDecl::of_funcs("later", 5)));
        let refused = InstantiateError::TableTooLarge { table: "later".to_owned(), entries: 5 };
        assert_eq!(vm.extend(&too_large), Err(VmError::Instantiate(refused)));
        assert!(Arc::ptr_eq(vm.module(), &first));
        assert_eq!(invoke(&mut vm, call, &[0, 4]), returned(8));
        drop(version);
        let fits = behind(&first, CALLEE);
        vm.extend(&fits).expect("there is room for this");
        assert_eq!(invoke(&mut vm, call, &[1, 5]), returned(12), "{bounds:?}");
    }
}

#[test]
fn a_module_with_a_segment_out_of_bounds_is_taken_up() {
    let engine = engine(Config::default());
    let first = caller();
    let mut vm = vm(&engine, &first);
    let call = exported(&first, "call");
    installed(&mut vm, &engine, &first, call);
    let second = changed(&behind(&first, CALLEE), |module| {
        module.data.push(DataSegment::active(Memory::from_u32(0), 0, vec![9]));
        module.data.push(DataSegment::active(Memory::from_u32(1), 65_536, vec![1]));
        module.data.push(DataSegment::active(Memory::from_u32(0), 1, vec![9]));
    });
    match vm.extend(&second) {
        Err(VmError::Instantiate(error)) => assert!(error.is_of_segment(), "{error}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        vm.machine().memories().bytes(Memory::from_u32(0))[..2],
        [9, 0],
        "those before it are written"
    );
    assert!(Arc::ptr_eq(vm.module(), &second));
    assert_eq!(invoke(&mut vm, call, &[1, 5]), returned(12));
    // The next module may be extended in the same way.
    let third = changed(&second, |module| {
        module.globals.push(GlobalDecl {
            name: "g".to_owned(),
            ty: Type::I32,
            mutable: true,
            init: 4.into(),
            import: None,
        });
    });
    vm.extend(&third).expect("it begins alike");
    assert_eq!(vm.machine().globals(), [1, 4]);
}

#[test]
fn a_machine_changed_without_its_vm_is_not_extended() {
    let engine = engine(Config::default());
    let first = caller();
    let second = behind(&first, CALLEE);
    let (mut one, mut other) = (vm(&engine, &first), vm(&engine, &first));
    std::mem::swap(one.machine_mut(), other.machine_mut());
    assert_eq!(one.extend(&second), Err(VmError::Exchanged), "its memory is guarded elsewhere");
    std::mem::swap(one.machine_mut(), other.machine_mut());
    let program = one.machine().program().extended(&second);
    one.machine_mut().extend(&program).expect("it begins alike");
    assert_eq!(one.extend(&second), Err(VmError::Exchanged), "its memories are not all guarded");
    other.extend(&second).expect("it begins alike");
}

#[test]
fn without_address_space_nothing_changes() {
    // No other test may allocate address space meanwhile.
    in_a_process_of_its_own(
        "embed::extended::without_address_space_nothing_changes",
        until_no_address_space_is_left,
    );
}

fn until_no_address_space_is_left() {
    let engine = engine(Config::default());
    let first = caller();
    let mut vm = vm(&engine, &first);
    // 6 GiB each, of 128 TiB.
    let greedy =
        changed(&first, |module| (0..25_000).for_each(|_| _ = module.memories.push(a_memory(0))));
    assert_eq!(vm.extend(&greedy), Err(VmError::NoAddressSpace { memory: "later".to_owned() }));
    assert_eq!(vm.machine().memories().count(), 1);
    vm.extend(&behind(&first, CALLEE)).expect("there is room for this");
    assert_eq!(invoke(&mut vm, exported(&first, "call"), &[1, 5]), returned(12));
}

#[test]
fn a_machine_exchanged_or_extended_alone_is_reported() {
    let pair = Pair::new(SUM);
    for bounds in [Bounds::Guarded, Bounds::Checked] {
        let engine = engine(Config { bounds, ..Config::default() });
        let (mut one, mut other) = (vm(&engine, &pair.module), vm(&engine, &pair.module));
        let later = changed(&pair.module, |module| _ = module.memories.push(a_memory(1)));
        std::mem::swap(one.machine_mut(), other.machine_mut());
        assert_eq!(one.extend(&later), Err(VmError::Exchanged), "{bounds:?}");
        assert_eq!(invoke(&mut one, pair.func, &[10, 7]), Err(RunError::Exchanged), "{bounds:?}");
        std::mem::swap(one.machine_mut(), other.machine_mut());
        one.extend(&later).expect("it begins alike");
        // By a global alone, which the number of memories does not show.
        let further = changed(&later, |module| {
            let global = module.globals.values().next().expect("there is one").clone();
            module.globals.push(global);
        });
        let program = one.machine().program().extended(&further);
        one.machine_mut().extend(&program).expect("it begins alike");
        assert_eq!(one.extend(&further), Err(VmError::Exchanged), "{bounds:?}");
    }
}

/// Stubs come with the code that calls. Functions, code and modules may come in any order.
#[test]
fn a_call_of_a_function_without_code_finds_a_stub() {
    let (earlier, engine) = (caller(), engine(Config::default()));
    let mut vm = vm(&engine, &earlier);
    let call = exported(&earlier, "call");
    installed(&mut vm, &engine, &earlier, call);
    assert_eq!(invoke(&mut vm, call, &[0, 4]), returned(8));
    // The stub of the signature is there before this function is.
    let later = behind(&earlier, CALLEE);
    vm.extend(&later).expect("it begins alike");
    assert_eq!(invoke(&mut vm, call, &[1, 4]), returned(4 + 7));
    // The function that loses its code is there before the stub of its signature.
    vm.uninstall(call);
    let back = exported(&later, "back");
    installed(&mut vm, &engine, &later, back);
    assert_eq!(invoke(&mut vm, back, &[5]), returned(10));
}
