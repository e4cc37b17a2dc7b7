//! Programs whose functions are decoded at their first use.

use super::support::{define, i32_const, returned};
use interp::{Limits, Machine, NoHost, NoObserver, Options, Program};
use ir::{Func, InstSpec, Module, Type};
use std::sync::Arc;

/// A function that returns 7, a caller of this function, and a function without callers.
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
    let (module, [leaf, caller, unused]) = module();
    let program = Program::on_demand(&module);
    let decoded = || {
        let is_decoded = |func| program.code(func).expect("it has a body").is_decoded();
        [leaf, caller, unused].map(is_decoded)
    };
    let mut one = machine(&program);
    assert_eq!(decoded(), [false; 3]);
    assert_eq!(one.invoke(caller, &[], &mut NoHost, &mut NoObserver), returned(&[7]));
    assert_eq!(decoded(), [true, true, false], "nobody calls the third function");
    // Machines share the code.
    let mut other = machine(&program);
    assert_eq!(other.invoke(caller, &[], &mut NoHost, &mut NoObserver), returned(&[7]));
    assert_eq!(decoded(), [true, true, false]);
    assert_eq!(other.invoke(unused, &[], &mut NoHost, &mut NoObserver), returned(&[7]));
    assert_eq!(decoded(), [true; 3]);
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

/// Two extensions of one program add different functions under the same id, decoded at their first
/// use: each has its own. Their common functions continue.
#[test]
fn two_extensions_of_a_program_have_their_own_functions() {
    let (module, [_, _, unused]) = module();
    let program = Program::on_demand(&module);
    let extended = |results: &[i32]| {
        let (mut larger, mut program) = ((*module).clone(), program.clone());
        let mut added = Vec::new();
        for (number, result) in results.iter().enumerate() {
            let name = format!("later{number}");
            added.push(define(&mut larger, &name, &[], &[Type::I32], |b, _| {
                let value = i32_const(b, *result);
                b.ret(&[value]);
            }));
            program = program.extended(&Arc::new(larger.clone()));
        }
        (program, added)
    };
    let (one, two) = (extended(&[1, 2]), extended(&[3, 4]));
    assert_eq!(one.1, two.1);
    for ((program, added), results) in [(one, [1, 2]), (two, [3, 4])] {
        let mut machine = machine(&program);
        for (func, result) in added.into_iter().zip(results) {
            let returned = returned(&[result]);
            assert_eq!(machine.invoke(func, &[], &mut NoHost, &mut NoObserver), returned);
        }
        assert_eq!(machine.invoke(unused, &[], &mut NoHost, &mut NoObserver), returned(&[7]));
    }
}
