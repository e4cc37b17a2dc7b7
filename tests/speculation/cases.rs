//! Cases in which speculation is easily wrong, one in each test: runs on which an assumption holds,
//! and runs on which it fails, end as the base does.

use super::support::{Made, exits, first, inst, machine, parsed, value};
use interp::{Machine, NoHost, NoObserver, Program, Run};
use ir::{Function, Module, Opcode, Point};
use osier::osr::VersionTree;
use osier::speculate::{Assumption, Expected};
use passes::parse;
use transition::mapping::Operand;

/// The assumption that a value has some bits, behind its definition.
fn behind(f: &Function, name: &str, bits: u64) -> Assumption {
    let at = Point::before(f.next_inst(inst(f, name)).expect("a terminator follows"));
    Assumption { at, value: value(f, name), expected: Expected::Is(bits), reason: 3 }
}

/// Speculates on the last function of a module by a pipeline.
fn made(module: &Module, assume: &[Assumption], pipeline: &str) -> Made {
    let (_, base) = first(module);
    let pipeline = parse(pipeline).expect("it is a pipeline");
    let made = Made::new(module, base, assume, &pipeline).expect("it is legal");
    assert_eq!(made.last().exits.len(), assume.len(), "{:?}", made.last().dropped);
    made
}

/// Case 1: right whenever the assumption holds.
#[test]
fn an_exit_takes_the_value_from_the_run_and_not_from_the_assumption() {
    let module = parsed(
        "memory @mem 1
export \"main\" @f
func @f(%a: i32, %b: i32) -> i32 {
entry:
  %x = add.i32 %a, %b
  store.i32 @mem[%a], %x
  %y = mul.i32 %x, %a
  return %y
}",
    );
    let (_, base) = first(&module);
    // Behind the store, so that the exit cannot add again.
    let assumption = Assumption { at: Point::before(inst(base, "y")), ..behind(base, "x", 7) };
    let made = made(&module, &[assumption], "O1");
    let at = made.last().exits[0].inst;
    let (to, exit) = made.last().exit(at).expect("it has an exit");
    assert_eq!(to, VersionTree::BASE);
    let x = value(base, "x");
    let from = exit.entry().assigns.iter().find(|a| a.value == x).map(|a| a.from);
    assert_eq!(from, Some(Operand::Source(x)));
    assert_eq!(exits(&module, &made, &[&[3, 4], &[3, 5], &[0, 7], &[0, 0]]), [0, 1, 0, 1]);
}

/// Case 8: zeros of both signs, NaNs with other bits, and bits that a comparison of fewer would not
/// see.
#[test]
fn assumptions_compare_all_bits_of_every_type() {
    let cases: [(&str, &str, u64, &[u64]); 6] = [
        ("f32", "fadd.f32 %y, %y", 0, &[0x8000_0000, 1]),
        ("f64", "fadd.f64 %y, %y", 1 << 63, &[0, 1 << 62]),
        ("f64", "fmul.f64 %y, %y", 0x7ff8_0000_0000_0000, &[0x7ff8_0000_0000_0001, 0]),
        ("i64", "mul.i64 %y, %y", 5, &[5 | 1 << 32, 5 | 1 << 63]),
        ("i8", "mul.i8 %y, %y", 0x80, &[0, 0x81]),
        ("i16", "mul.i16 %y, %y", 0xffff, &[0xff, 0x7fff]),
    ];
    for (ty, op, bits, others) in cases {
        let zero = if ty.starts_with('f') { "0.0" } else { "0" };
        let module = parsed(&format!(
            "export \"main\" @f\nfunc @f(%x: {ty}, %c: i32) -> {ty} {{\nentry:\n\
             %z = const.{ty} {zero}\n%y = select.{ty} %c, %x, %z\n%r = {op}\nreturn %r\n}}"
        ));
        let (_, base) = first(&module);
        let made = made(&module, &[behind(base, "y", bits)], "O1");
        let is_op = |opcode: Opcode| matches!(opcode, Opcode::Fadd | Opcode::Fmul | Opcode::Mul);
        let f = made.function();
        let stays = f.all_insts().any(|i| is_op(f.inst(i).opcode));
        // The fold of a NaN is left to the run.
        assert!(!stays || ty.starts_with('f'), "{ty}: the operation folds");
        assert_eq!(exits(&module, &made, &[&[bits, 1]]), [0], "{ty} {bits:#x}");
        for other in others {
            assert_eq!(exits(&module, &made, &[&[*other, 1]]), [1], "{ty} {other:#x}");
        }
    }
}

/// Case 11: the fact about memory ends at the store.
#[test]
fn a_fact_about_memory_does_not_hold_behind_a_store() {
    let module = parsed(
        "memory @mem 1
export \"main\" @f
func @f(%at: i32, %x: i32) -> i32 {
entry:
  %zero = const.i32 0
  %a = load.i32 @mem[%zero + 64]
  %b = load.i32 @mem[%zero + 64]
  store.i32 @mem[%at], %x
  %c = load.i32 @mem[%zero + 64]
  %s = add.i32 %a, %b
  %r = add.i32 %s, %c
  return %r
}",
    );
    let (_, base) = first(&module);
    for pipeline in ["O1", "O2", "canonical,load_elim,sccp,adce"] {
        let holds = made(&module, &[behind(base, "a", 0)], pipeline);
        assert_eq!(exits(&module, &holds, &[&[64, 5], &[0, 5], &[62, 9]]), [0, 0, 0]);
        let fails = made(&module, &[behind(base, "a", 1)], pipeline);
        assert_eq!(exits(&module, &fails, &[&[64, 5], &[0, 5], &[62, 9]]), [1, 1, 1]);
    }
}

/// Case 18: the table is written between the assumption and the next read.
#[test]
fn a_fact_about_a_table_does_not_hold_behind_a_write() {
    let module = parsed(
        "table @t 2
elem @t 0 [@f, null]
export \"main\" @f
func @f(%at: i32, %x: i32) -> i32 {
entry:
  %zero = const.i32 0
  %null = const.funcref null
  %a = table_get.funcref @t, %zero
  %n = ref_is_null.funcref %a
  table_set.funcref @t, %at, %null
  %b = table_get.funcref @t, %zero
  %m = ref_is_null.funcref %b
  %two = const.i32 2
  %k = mul.i32 %n, %two
  %r = add.i32 %k, %m
  return %r
}",
    );
    let (func, base) = first(&module);
    let bits = ir::reference::of_func(Some(func));
    let holds = made(&module, &[behind(base, "a", bits)], "O2");
    assert_eq!(exits(&module, &holds, &[&[0, 0], &[1, 0], &[2, 0]]), [0, 0, 0]);
    let fails = made(&module, &[behind(base, "a", ir::reference::of_func(None))], "O2");
    assert_eq!(exits(&module, &fails, &[&[0, 0], &[1, 0], &[2, 0]]), [1, 1, 1]);
}

/// Case 25: a function with the same code has versions with the same keys. An exit of one function
/// does not lead into the other function.
#[test]
fn an_exit_leads_into_no_other_function() {
    let body = "(%a: i32, %b: i32) -> i32 {\nentry:\n  %x = add.i32 %a, %b\n\
                %y = mul.i32 %x, %a\n  return %y\n}\n";
    let module = parsed(&format!("export \"main\" @f\nfunc @f{body}func @g{body}"));
    let (func, base) = first(&module);
    let other = module.func_named("g").expect("the other");
    let made = made(&module, &[behind(base, "x", 7)], "O1");
    let program = Program::new(&module);
    let mut machine: Machine = machine(&program);
    let stranger = machine.current(other).expect("it is not imported");
    let version = machine.add_version(&module, func, made.function());
    machine.set_current(func, version);
    machine.start(func, &[1, 1]);
    assert!(matches!(machine.run(&mut NoHost, &mut NoObserver), Run::Failed { reason: 3 }));
    let at = machine.view().expect("it is paused").inst();
    let (_, exit) = made.last().exit(at).expect("it has an exit");
    assert!(machine.fire(stranger, exit).is_err());
    let own = machine.add_version(&module, func, base);
    machine.fire(own, exit).expect("the run is still where it was");
}
