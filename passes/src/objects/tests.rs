//! Which objects go.

use super::{ObjectPlaces, ObjectPlan, RemoveObjects};
use ir::edit::{Fuel, apply};
use ir::text::parse_module;
use ir::{Function, Module, Opcode};
use std::collections::{BTreeMap, BTreeSet};

/// Declarations, and the start of a function that makes an object of 24 bytes.
const START: &str = "memory @heap 1
import func @new \"env\" \"new\" (i32, i64) -> ref effect(allocates)
import func @show \"env\" \"show\" (i64) -> ()
import func @give \"env\" \"give\" (ref) -> ()
func @main(%a: i64, %x: f64, %c: i32) -> i64 {
entry:
  %size = const.i32 24
  %tag = const.i64 0xfffa000000000000
  %p = call @new(%size, %tag)
  %word = ref_bits %p
  %at = wrap.i32 %word
";

fn module(rest: &str) -> Module {
    let parsed = parse_module(&format!("{START}{rest}}}\n"));
    parsed.unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn main(module: &Module) -> &Function {
    module.defined().next().expect("the text has one").1
}

/// The calls of `@new` that stay.
fn stay(rest: &str) -> usize {
    let module = module(rest);
    let f = main(&module);
    let plan = ObjectPlan::new(&module, f, &ObjectPlaces::default());
    let made = apply(f, &RemoveObjects { plan: &plan }, &mut Fuel::UNLIMITED.clone());
    let f = made.function();
    let is_new =
        |inst: &ir::Inst| f.inst(*inst).opcode == Opcode::Call && f.inst(*inst).result().is_some();
    f.all_insts().filter(is_new).count()
}

#[test]
fn an_object_that_its_accesses_alone_need_goes() {
    assert_eq!(stay("  store.i64 @heap[%at], %a\n  %b = load.i64 @heap[%at]\n  return %b\n"), 0);
    // The last store counts, and other bytes stay.
    let twice = "  store.i64 @heap[%at], %a\n  store.i64 @heap[%at + 8], %tag\n  \
                 store.i64 @heap[%at], %tag\n  %b = load.i64 @heap[%at]\n  return %b\n";
    assert_eq!(stay(twice), 0);
}

#[test]
fn the_upper_half_of_the_word_decides_tests() {
    let test = |by: u32| {
        format!("  %by = const.i64 {by}\n  %high = ushr.i64 %word, %by\n  return %high\n")
    };
    assert_eq!([stay(&test(48)), stay(&test(32)), stay(&test(31))], [0, 0, 1]);
    let compare = |bits: &str| {
        format!(
            "  %k = const.i64 {bits}\n  %is = ult.i64 %word, %k\n  %w = uextend.i64 %is\n  \
             return %w\n"
        )
    };
    // Below all words, above all words, and among them.
    let bits = ["0xfff9000000000000", "0xfffa000100000000", "0xfffa000000000001"];
    assert_eq!(bits.map(|bits| stay(&compare(bits))), [0, 0, 1]);
}

#[test]
fn an_object_that_other_code_needs_stays() {
    let uses = [
        "  call @give(%p)\n  return %a\n",
        "  store.i64 @heap[%at], %word\n  return %a\n",
        "  return %word\n",
        // Beyond its bytes, of another width, and never written.
        "  store.i64 @heap[%at + 20], %a\n  return %a\n",
        "  store.i64 @heap[%at], %a\n  %b = load.i32 @heap[%at]\n  %w = uextend.i64 %b\n  \
         return %w\n",
        "  %b = load.i64 @heap[%at]\n  return %b\n",
        // A store over a part of another field.
        "  store.i64 @heap[%at], %a\n  store.i32 @heap[%at + 4], %c\n  return %a\n",
    ];
    uses.iter().for_each(|rest| assert_eq!(stay(rest), 1, "{rest}"));
}

#[test]
fn a_field_is_unknown_behind_a_call_that_may_move_what_it_refers_to() {
    let field = |value: &str| {
        format!(
            "  %bits = bitcast.i64 %x\n  store.i64 @heap[%at], {value}\n  call @show(%a)\n  \
             %b = load.i64 @heap[%at]\n  return %b\n"
        )
    };
    assert_eq!(["%a", "%bits", "%tag"].map(|value| stay(&field(value))), [1, 0, 0]);
}

#[test]
fn paths_that_store_different_values_make_a_field_unknown() {
    let paths = |value: &str| {
        format!(
            "  store.i64 @heap[%at], %a\n  br_if %c, one, two\none:\n  \
             store.i64 @heap[%at], {value}\n  jump end\ntwo:\n  jump end\nend:\n  \
             %b = load.i64 @heap[%at]\n  return %b\n"
        )
    };
    assert_eq!(["%a", "%tag"].map(|value| stay(&paths(value))), [0, 1]);
}

#[test]
fn runs_that_enter_or_leave_need_what_they_need() {
    let module =
        module("  store.i64 @heap[%at], %a\n  jump next\nnext:\n  call @show(%a)\n  trap user0\n");
    let f = main(&module);
    let next = f.blocks().nth(1).expect("it has two");
    let (first, trap) = (f.first_inst(next), f.terminator(next));
    let made = f.all_insts().find(|inst| f.inst(*inst).opcode == Opcode::Call).expect("a call");
    let p = f.inst(made).results[0];
    let plan = |entered: &[ir::Inst], taken: &[ir::Inst]| {
        let taken = taken.iter().map(|inst| (*inst, BTreeSet::from([p])));
        let entered = entered.iter().copied().collect();
        let places = ObjectPlaces { entered, taken: taken.collect::<BTreeMap<_, _>>() };
        ObjectPlan::new(&module, f, &places).is_empty()
    };
    // Nothing behind reads the object, unless the run takes it along. `%a` may be a word that the
    // call changes in the object.
    assert_eq!(
        [plan(&[], &[]), plan(&[first], &[]), plan(&[first], &[first])],
        [false, false, true]
    );
    assert_eq!([plan(&[], &[first]), plan(&[], &[trap])], [false, true]);
}
