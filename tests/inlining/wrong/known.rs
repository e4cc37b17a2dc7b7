//! Forgeries of calls whose arguments are said to make assumptions of the callee true.

use super::Forgery;
use super::continuations::forgery;
use super::hand::parsed;
use osier::check;
use osier::ir::{Function, Inst, Module, Opcode};
use std::collections::BTreeSet;

/// The callee assumes something about its second parameter, and about a result.
const TEXT: &str = "\
func @f(%x: i32, %k: i32) -> i32 {
entry:
  %is = assume.i32 %k, 3, 0
  %y = mul.i32 %x, %is
  %even = assume.i32 %y, 6, 0
  return %even
}
func @g(%x: i32, %k: i32, %z: i32) -> i32 {
entry:
  return %z
}
func @main(%n: i32) -> i32 {
entry:
  %three = const.i32 3
  %six = const.i32 6
  %a = call @f(%n, %three)
  %b = call @f(%n, %six)
  %c = call @f(%six, %three)
  %d = call @g(%n, %three, %n)
  %e = add.i32 %n, %three
  return %a
}
";

fn body<'m>(module: &'m Module, name: &str) -> &'m Function {
    let func = module.func_named(name).expect("it has the function");
    module.body(func).expect("it has a body")
}

fn nth(f: &Function, opcode: Opcode, number: usize) -> Inst {
    let mut all = f.all_insts().filter(|inst| f.inst(*inst).opcode == opcode);
    all.nth(number).expect("it has as many")
}

/// The word of the checker on a call and an assumption of the callee, by their numbers.
fn judged(call: usize, assumption: usize) -> Option<String> {
    judged_as(Opcode::Call, call, Opcode::Assume, assumption)
}

/// The same of any instruction of the caller and any of the callee, by opcode and number.
fn judged_as(of: Opcode, call: usize, what: Opcode, assumption: usize) -> Option<String> {
    let module = parsed(TEXT);
    let [callee, caller] = ["f", "main"].map(|name| body(&module, name));
    let all = BTreeSet::from([nth(callee, what, assumption)]);
    let call = nth(caller, of, call);
    check::known_call(caller, call, callee, &all).err().map(|fault| fault.to_string())
}

fn right() {
    assert_eq!(judged(0, 0), None, "before the forgery");
}

pub(super) fn all() -> Vec<Forgery> {
    vec![
        forgery(
            "KnownCallOfAnyArgument",
            "a context that lies",
            "the call does not fix the bits",
            || {
                right();
                judged(1, 0)
            },
        ),
        forgery(
            "KnownCallOfAnyAssumption",
            "an assumption about a result",
            "the assumption",
            || {
                right();
                judged(2, 1)
            },
        ),
        forgery(
            "KnownCallOfNoCall",
            "a sum that is no call",
            "no call with these arguments",
            || {
                right();
                judged_as(Opcode::Add, 0, Opcode::Assume, 0)
            },
        ),
        forgery(
            "KnownCallOfOtherLength",
            "a call of a function with more parameters",
            "no call with these arguments",
            || {
                right();
                judged(3, 0)
            },
        ),
        forgery("KnownCallOfNoAssumption", "a product that holds", "no assumption", || {
            right();
            judged_as(Opcode::Call, 0, Opcode::Mul, 0)
        }),
    ]
}
