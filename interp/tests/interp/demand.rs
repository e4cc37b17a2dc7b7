//! Programs whose functions are decoded at their first use.

use super::support::{define, i32_const, returned};
use interp::{Limits, Machine, NoHost, NoObserver, Options, Program};
use ir::{Func, InstSpec, Module, Type};
use std::sync::Arc;

/// A function that returns 7, one that calls it, and one that nobody calls.
fn module() -> (Arc<Module>, [Func; 3]) {
    let mut module = Module::new();
    let seven = |b: &mut ir::FunctionBuilder| {
        let value = i32_const(b, 7);
        b.ret(&[value]);
    };
    let leaf = define(&mut module, "leaf", &[], &[Type::I32], |b, _| seven(b));
    let caller = define(&mut module, "caller", &[], &[Type::I32], |b, _| {
        let call = b.insert(InstSpec::call(leaf, &[], &[Type::I32]));
        let result = b.function().inst(call).results[0];
        b.ret(&[result]);
    });
    let unused = define(&mut module, "unused", &[], &[Type::I32], |b, _| seven(b));
    (Arc::new(module), [leaf, caller, unused])
}

fn machine(program: &Program) -> Machine {
    Machine::with_options(program, Limits::default(), Options::traced()).expect("instantiable")
}

#[test]
fn functions_are_decoded_at_their_first_use() {
    let (module, [_, caller, unused]) = module();
    let program = Program::on_demand(&module);
    let mut one = machine(&program);
    // Each function that is still to be decoded holds the module.
    let held = || Arc::strong_count(&module);
    let before = held();
    assert_eq!(one.invoke(caller, &[], &mut NoHost, &mut NoObserver), returned(&[7]));
    assert_eq!(held(), before - 2, "nobody calls the third function");
    // Machines share the code.
    let mut other = machine(&program);
    assert_eq!(other.invoke(caller, &[], &mut NoHost, &mut NoObserver), returned(&[7]));
    assert_eq!(held(), before - 2);
    assert_eq!(other.invoke(unused, &[], &mut NoHost, &mut NoObserver), returned(&[7]));
    assert_eq!(held(), before - 3);
}

#[test]
fn an_extension_shares_code_that_is_not_decoded_yet() {
    let (module, [_, caller, unused]) = module();
    let program = Program::on_demand(&module);
    let mut one = machine(&program);
    let mut larger = (*module).clone();
    let twice = define(&mut larger, "twice", &[], &[Type::I32], |b, _| {
        let call = b.insert(InstSpec::call(caller, &[], &[Type::I32]));
        let result = b.function().inst(call).results[0];
        b.ret(&[result]);
    });
    one.extend(&program.extended(&Arc::new(larger))).expect("it begins alike");
    for func in [twice, unused] {
        assert_eq!(one.invoke(func, &[], &mut NoHost, &mut NoObserver), returned(&[7]));
    }
}
