//! Programs whose functions are decoded at their first use.

use super::support::{define, i32_const, returned};
use interp::{Limits, Machine, NoHost, NoObserver, Options, PauseAtMarks, Program, Run};
use ir::{Func, Function, Inst, InstSpec, Module, Type};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    Machine::with_options(program, Limits::default(), Options::default()).expect("instantiable")
}

/// The number of functions whose marks were chosen.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);

fn first(function: &Function) -> Vec<Inst> {
    CHOSEN.fetch_add(1, Ordering::Relaxed);
    vec![function.first_inst(function.entry())]
}

#[test]
fn functions_are_decoded_and_marked_at_their_first_use() {
    let (module, functions) = module();
    let program = Program::on_demand(&module);
    let mut marked = machine(&program);
    for func in functions {
        let base = marked.current(func).expect("it has a body");
        marked.mark_chosen(base, module.body(func).expect("a body"), first);
    }
    let [leaf, caller, _] = functions;
    marked.start(caller, &[]);
    let mut stops = Vec::new();
    let outcome = loop {
        match marked.run(&mut NoHost, &mut PauseAtMarks) {
            Run::Paused => stops.push(marked.view().expect("it is paused").func()),
            Run::Done(outcome) => break outcome,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((outcome, stops), (returned(&[7]), vec![caller, leaf]));
    assert_eq!(CHOSEN.load(Ordering::Relaxed), 2, "nobody calls the third function");
    // Marks belong to one machine, though both have the code of one program.
    let mut other = machine(&program);
    other.start(caller, &[]);
    assert_eq!(other.run(&mut NoHost, &mut PauseAtMarks), Run::Done(returned(&[7])));
    // Code that is decoded already is marked at once.
    let base = other.current(leaf).expect("it has a body");
    other.mark_chosen(base, module.body(leaf).expect("a body"), first);
    assert_eq!(CHOSEN.load(Ordering::Relaxed), 3);
    other.start(caller, &[]);
    assert_eq!(other.run(&mut NoHost, &mut PauseAtMarks), Run::Paused);
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
