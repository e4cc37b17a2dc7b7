//! Calls that make assumptions of their callee true: what the checker demands of them.

use check::{KnownCallFault, known_call};
use ir::text::parse_module;
use ir::{Function, Inst, Module, Opcode};
use std::collections::BTreeSet;

/// The caller passes 3 as the second argument; the version of the callee assumes it.
const TEXT: &str = "
func @f(%x: i32, %k: i32) -> i32 {
entry:
  %is = assume.i32 %k, 3, 0
  %two = const.i32 2
  %y = mul.i32 %x, %two
  %even = assume.i32 %y, 6, 0
  return %even
}
func @g(%n: i32) -> i32 {
entry:
  %three = const.i32 3
  %four = const.i32 4
  %a = call @f(%n, %three)
  %b = call @f(%n, %four)
  %c = call @f(%n, %n)
  %d = call @g(%n)
  return %a
}
";

struct Forged {
    module: Module,
}

impl Forged {
    fn new() -> Forged {
        let module = parse_module(TEXT).unwrap_or_else(|errors| panic!("{}", errors[0]));
        Forged { module }
    }

    fn body(&self, name: &str) -> &Function {
        let func = self.module.func_named(name).expect("it has the function");
        self.module.body(func).expect("it has a body")
    }

    fn call(&self, number: usize) -> Inst {
        nth(self.body("g"), Opcode::Call, number)
    }

    fn assumption(&self, number: usize) -> Inst {
        nth(self.body("f"), Opcode::Assume, number)
    }

    fn fault(&self, call: Inst, assumption: Inst) -> Option<KnownCallFault> {
        let all = BTreeSet::from([assumption]);
        known_call(self.body("g"), call, self.body("f"), &all).err()
    }
}

fn nth(f: &Function, opcode: Opcode, number: usize) -> Inst {
    let mut all = f.all_insts().filter(|inst| f.inst(*inst).opcode == opcode);
    all.nth(number).expect("it has as many")
}

#[test]
fn a_call_with_the_expected_constant_is_known() {
    let forged = Forged::new();
    let all = BTreeSet::from([forged.assumption(0)]);
    let known = known_call(forged.body("g"), forged.call(0), forged.body("f"), &all);
    let known = known.expect("the argument is 3");
    assert_eq!((known.call(), known.holds()), (forged.call(0), &all));
}

/// A context that lies: the call passes 4, or a value that may be anything.
#[test]
fn a_call_with_another_argument_is_refused() {
    let forged = Forged::new();
    let of = forged.assumption(0);
    for number in [1, 2] {
        let fault = forged.fault(forged.call(number), of);
        assert_eq!(fault, Some(KnownCallFault::NotKnown(of)), "call {number}");
    }
}

/// What a callee computes is not an argument, though the caller might know it.
#[test]
fn an_assumption_about_a_result_is_refused() {
    let forged = Forged::new();
    let of = forged.assumption(1);
    assert_eq!(forged.fault(forged.call(0), of), Some(KnownCallFault::NoParameter(of)));
}

#[test]
fn instructions_that_are_no_call_and_no_assumption_are_refused() {
    let forged = Forged::new();
    let of = forged.assumption(0);
    let other = nth(forged.body("f"), Opcode::Mul, 0);
    let fault = forged.fault(forged.call(0), other);
    assert_eq!(fault, Some(KnownCallFault::NoAssumption(other)));
    let constant = nth(forged.body("g"), Opcode::Const, 0);
    assert_eq!(forged.fault(constant, of), Some(KnownCallFault::NoCall(constant)));
    // It calls a function with fewer parameters.
    let short = forged.call(3);
    assert_eq!(forged.fault(short, of), Some(KnownCallFault::NoCall(short)));
}
