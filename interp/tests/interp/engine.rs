//! Tests of the interface for engines: raw access, operations handed back, the trace, and ends in
//! native code.

use super::support::returned;
use interp::{
    EarlyEnd, Effect, Host, HostError, Limits, Machine, Memories, NoHost, NoObserver, Options,
    Outcome, Program,
};
use ir::module::ImportName;
use ir::text::parse_module;
use ir::{Func, InstData, Memory, Module, Table, TrapKind, reference};

fn parse(text: &str) -> Module {
    parse_module(text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn func(module: &Module, name: &str) -> Func {
    module.lookup(name).expect("the text has it")
}

fn machine(module: &Module) -> Machine {
    Machine::with_options(&Program::new(module), Limits::default(), Options::checked())
        .expect("it instantiates")
}

const STORAGE: &str = r#"
memory @mem 2 9
memory @far 1
table @t 6 9
table @u 4
data @mem 10 "abcdefgh"
data "0123456789"
elem @t 1 [@itself, null, @itself]
elem [@itself, null, @itself]
func @itself() {
entry:
  return
}
"#;

/// Each operation as text, with the types of its operands and of its result.
const OPERATIONS: [(&str, &[&str], &str); 17] = [
    ("memory_size @mem", &[], "i32"),
    ("memory_grow @mem, ", &["i32"], "i32"),
    ("memory_grow @far, ", &["i32"], "i32"),
    ("memory_copy @mem @far, ", &["i32", "i32", "i32"], ""),
    ("memory_copy @mem @mem, ", &["i32", "i32", "i32"], ""),
    ("memory_fill @far, ", &["i32", "i32", "i32"], ""),
    ("memory_init @mem 1, ", &["i32", "i32", "i32"], ""),
    ("data_drop 1", &[], ""),
    ("table_get.funcref @t, ", &["i32"], "funcref"),
    ("table_set.funcref @t, ", &["i32", "funcref"], ""),
    ("table_size @u", &[], "i32"),
    ("table_grow.funcref @t, ", &["funcref", "i32"], "i32"),
    ("table_fill.funcref @t, ", &["i32", "funcref", "i32"], ""),
    ("table_copy @t @u, ", &["i32", "i32", "i32"], ""),
    ("table_copy @t @t, ", &["i32", "i32", "i32"], ""),
    ("table_init @t 1, ", &["i32", "i32", "i32"], ""),
    ("elem_drop 1", &[], ""),
];

/// A module with a function that executes one operation on its arguments; also returns the
/// operation.
fn one_operation(operation: &str, operands: &[&str], result: &str) -> (Module, Func, InstData) {
    let params: Vec<String> =
        operands.iter().enumerate().map(|(i, ty)| format!("%a{i}: {ty}")).collect();
    let args: Vec<String> = (0..operands.len()).map(|i| format!("%a{i}")).collect();
    let (params, args) = (params.join(", "), args.join(", "));
    let (returns, assigns, value) =
        if result.is_empty() { ("", "", "") } else { (" -> ", "%r = ", " %r") };
    let text = format!(
        "{STORAGE}func @f({params}){returns}{result} {{\nentry:\n  {assigns}{operation}{args}\n  return{value}\n}}\n"
    );
    let module = parse(&text);
    let f = func(&module, "f");
    let body = module.body(f).expect("it is defined");
    let inst = body.inst(body.first_inst(body.entry())).clone();
    (module, f, inst)
}

/// All lists of operands of these types, from a few interesting contents for each type.
fn arguments(operands: &[&str]) -> Vec<Vec<u64>> {
    let mut lists = vec![Vec::new()];
    for ty in operands {
        let choices: &[u64] = match *ty {
            "funcref" => &[reference::NULL, 1],
            _ => &[0, 1, 3, 5, 6, 0x1_0000, 0x1_0001, 0xffff_ffff],
        };
        let longer = |list: &Vec<u64>| {
            choices.iter().map(|bits| [list.as_slice(), &[*bits]].concat()).collect::<Vec<_>>()
        };
        lists = lists.iter().flat_map(longer).collect();
    }
    lists
}

/// `perform` agrees with the interpreter in results, traps, memory, fuel and trace.
#[test]
fn operations_handed_back_are_those_of_the_interpreter() {
    let (mut trapped, mut performed, mut charged) = (0, 0, 0);
    for (operation, operands, result) in OPERATIONS {
        let (module, f, inst) = one_operation(operation, operands, result);
        let start = machine(&module);
        for args in arguments(operands) {
            let (mut interpreted, mut native) = (start.clone(), start.clone());
            let outcome = interpreted.invoke(f, &args, &mut NoHost, &mut NoObserver);
            let charge = native.charge(&inst, &args);
            let what = format!("{operation}{args:x?}");
            let ended = match native.perform(&inst, &args) {
                Ok(bits) => {
                    performed += 1;
                    assert_eq!(bits.is_some(), !result.is_empty(), "{what}");
                    let bits: Vec<u64> = bits.into_iter().collect();
                    native.trace_return(&bits);
                    returned(&bits)
                }
                Err(kind) => {
                    trapped += 1;
                    let site = outcome.site().cloned().expect("the interpreter trapped too");
                    native.end_in_native(EarlyEnd::Trap { kind, operand: None }, site)
                }
            };
            assert_eq!(ended, outcome, "{what}");
            assert!(native.same_memory(&interpreted), "{what}");
            assert_eq!(native.memory_digest(), native.computed_memory_digest(), "{what}");
            assert_eq!(native.trace(), interpreted.trace(), "{what}");
            let instructions = if outcome.returned().is_some() { 2 } else { 1 };
            assert_eq!(start.fuel() - interpreted.fuel(), instructions + charge, "{what}");
            charged += charge;
        }
    }
    assert!(trapped > 500 && performed > 100 && charged > 1000, "{trapped} {performed} {charged}");
}

#[test]
#[should_panic(expected = "add is not an operation on memories, tables or segments")]
fn other_instructions_are_not_performed() {
    let module =
        parse("func @f(%x: i32) -> i32 {\nentry:\n  %y = add.i32 %x, %x\n  return %y\n}\n");
    let body = module.body(func(&module, "f")).expect("it is defined");
    let inst = body.inst(body.first_inst(body.entry())).clone();
    let result = machine(&module).perform(&inst, &[1, 1]);
    assert!(result.is_ok(), "not reached");
}

const STATE: &str = r#"
memory @mem 1
memory @far 1
table @t 2
global @g: mut i32 = 5
func @itself() {
entry:
  return
}
func @read() -> (i32, i32, i32) {
entry:
  %at = const.i32 8
  %x = load.i32 @mem[%at]
  %y = load.i32 @far[%at]
  %z = global_get.i32 @g
  return %x, %y, %z
}
"#;

#[test]
fn no_embedder_writes_a_fixed_table() {
    let text = "table @t 2 fixed\nelem @t 0 [@f]\n\
        func @f() -> i32 {\nentry:\n  %by = const.i32 1\n  %none = const.funcref null\n  \
        %size = table_grow.funcref @t, %none, %by\n  return %size\n}\n";
    let (module, table) = (parse(text), Table::from_u32(0));
    let mut machine = Machine::new(&module, Limits::default()).expect("instantiates");
    let before = machine.invoke(func(&module, "f"), &[], &mut NoHost, &mut NoObserver);
    assert_eq!(before, returned(&[2]));
    let set = [0, 1, 2, 3].map(|index| machine.set_table_entry(table, index, 1));
    assert_eq!(set, [false, false, true, false], "an entry by growth alone");
    assert_eq!(machine.table(table), [1, 0, 1]);
}

/// The interpreter reads the writes of native code, and recomputed digests cover them.
#[test]
fn raw_access_reaches_everything() {
    let module = parse(STATE);
    for options in [Options::checked(), Options::traced()] {
        let mut machine = Machine::with_options(&Program::new(&module), Limits::default(), options)
            .expect("instantiates");
        let mut digests = vec![machine.memory_digest()];
        machine.memory_bytes_mut(Memory::from_u32(0))[8..12].copy_from_slice(&7u32.to_le_bytes());
        machine.refresh_digests();
        digests.push(machine.memory_digest());
        machine.memory_bytes_mut(Memory::from_u32(1))[8..12].copy_from_slice(&9u32.to_le_bytes());
        machine.refresh_digests();
        digests.push(machine.memory_digest());
        machine.globals_mut()[0] = 11;
        machine.refresh_digests();
        digests.push(machine.memory_digest());
        machine.table_entries_mut(Table::from_u32(0))[1] =
            reference::of_func(Some(func(&module, "itself")));
        machine.refresh_digests();
        digests.push(machine.memory_digest());
        assert_eq!(machine.memory_digest(), machine.computed_memory_digest());
        assert_eq!(
            machine.invoke(func(&module, "read"), &[], &mut NoHost, &mut NoObserver),
            returned(&[7, 9, 11])
        );
        assert_eq!(machine.table(Table::from_u32(0)), [0, 1]);
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), 5, "each write shows");
    }
}

/// Trace entries that native code adds carry the digest of its earlier writes.
#[test]
fn trace_digests_cover_writes_of_native_code() {
    let module = parse(STATE);
    let itself = func(&module, "itself");
    let mut machine = machine(&module);
    let at_start = machine.memory_digest();
    assert!(machine.is_tracing());
    machine.trace_call(itself, &[]);
    machine.memory_bytes_mut(Memory::from_u32(0))[0] = 1;
    machine.trace_return(&[]);
    machine.globals_mut()[0] = 6;
    let site = machine.site(itself, None);
    let (kind, operand) = (TrapKind::Unreachable, Some(1 << 40));
    let outcome = machine.end_in_native(EarlyEnd::Trap { kind, operand }, site.clone());
    assert_eq!(outcome, Outcome::Trapped { kind, operand, site });
    let effects: Vec<Effect> =
        machine.trace().effects().iter().map(|(effect, _)| effect.clone()).collect();
    let call = Effect::Call { func: itself, args: vec![] };
    assert_eq!(effects, [call, Effect::Return { results: vec![] }, Effect::Trap(kind, operand)]);
    let mut digests: Vec<u64> =
        machine.trace().effects().iter().map(|(_, digest)| *digest).collect();
    assert_eq!((digests[0], digests[2]), (at_start, machine.computed_memory_digest()));
    digests.dedup();
    assert_eq!(digests.len(), 3);
}

/// A run that ends in native code has the same outcomes as one that ends in the interpreter.
#[test]
fn ends_in_native_code() {
    let module = parse(STATE);
    let mut machine = machine(&module);
    let site = machine.site(func(&module, "read"), None);
    let HostError::Failed(error) = HostError::failed("no") else { panic!("it failed") };
    let ends = [
        (EarlyEnd::OutOfFuel, Outcome::OutOfFuel(site.clone())),
        (EarlyEnd::StackOverflow, Outcome::StackOverflow(site.clone())),
        (EarlyEnd::Host(HostError::Exit(3)), Outcome::Exited(3)),
        (
            EarlyEnd::Host(HostError::Trap(TrapKind::User(1))),
            Outcome::Trapped { kind: TrapKind::User(1), operand: None, site: site.clone() },
        ),
        (
            EarlyEnd::Host(HostError::Failed(error.clone())),
            Outcome::HostFailed { error, site: site.clone() },
        ),
    ];
    for (end, outcome) in ends {
        assert_eq!(machine.end_in_native(end, site.clone()), outcome);
    }
    let effects: Vec<Effect> =
        machine.trace().effects().iter().map(|(effect, _)| effect.clone()).collect();
    assert_eq!(effects, [Effect::Exit(3), Effect::Trap(TrapKind::User(1), None)]);
}

/// Writes a byte at the address of its argument, and returns twice the argument with a bit outside
/// its type. Exits on 99.
struct Doubling;

impl Host for Doubling {
    fn call(
        &mut self,
        _import: &ImportName,
        _func: Func,
        args: &[u64],
        memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        if args[0] == 99 {
            return Err(HostError::Exit(1));
        }
        memories.write(Memory::from_u32(0), args[0], &[7]).expect("it lies within");
        results[0] = (2 * args[0]) | (1 << 40);
        Ok(())
    }
}

#[test]
fn host_calls_of_native_code() {
    let module = parse(
        "memory @mem 1\nimport func @double \"host\" \"double\" (i32) -> i32\n\
         func @f(%x: i32) -> i32 {\nentry:\n  %y = call @double(%x)\n  return %y\n}\n",
    );
    let (double, f) = (func(&module, "double"), func(&module, "f"));
    for arg in [4, 99] {
        let (mut interpreted, mut native) = (machine(&module), machine(&module));
        let outcome = interpreted.invoke(f, &[arg], &mut Doubling, &mut NoObserver);
        let mut results = [0];
        let ended = match native.call_imported(double, &[arg], &mut Doubling, &mut results) {
            Ok(()) => {
                native.trace_return(&results);
                returned(&results)
            }
            Err(error) => native.end_in_native(EarlyEnd::Host(error), native.site(f, None)),
        };
        assert_eq!(ended, outcome);
        assert_eq!(native.trace(), interpreted.trace());
        assert!(native.same_memory(&interpreted));
        assert_eq!(native.memory_digest(), interpreted.memory_digest());
    }
}

#[test]
fn callees_of_indirect_calls() {
    let text = format!("{STORAGE}func @other(%x: i32) {{\nentry:\n  return\n}}\n");
    let module = parse(&text);
    let machine = machine(&module);
    let (itself, other) = (func(&module, "itself"), func(&module, "other"));
    let (sig, another) = (module.funcs[itself].sig, module.funcs[other].sig);
    let callee = |sig, index| machine.indirect_callee(sig, Table::from_u32(0), index);
    assert_eq!(callee(sig, 1), Ok(itself));
    assert_eq!(callee(sig, 2), Err(TrapKind::NullFunction));
    assert_eq!(callee(sig, 6), Err(TrapKind::TableOutOfBounds));
    assert_eq!(callee(another, 1), Err(TrapKind::SignatureMismatch));
}
