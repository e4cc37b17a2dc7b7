//! The interpreter on whole programs: control flow, calls, memory, limits, pausing and transfers.

use osier_ir as ir;

use ir::interp::{self, Limits, Machine, NoHost, NoObserver, Outcome};
use ir::{Func, FunctionBuilder, InstSpec, Module, Opcode, Signature, Target, Type};

/// Adds a function to a module; `build` makes its body.
fn define(module: &mut Module, name: &str, signature: Signature, build: impl FnOnce(&mut FunctionBuilder)) -> Func {
    let sig = module.sig(&signature);
    let func = module.funcs.push(ir::module::FuncDecl { name: name.to_owned(), sig, import: None });
    let mut builder = FunctionBuilder::new(name, signature);
    build(&mut builder);
    module.bodies[func] = Some(builder.finish().expect("the body is complete"));
    func
}

/// `sum(n) = 0 + 1 + .. + n - 1`, by a loop with two parameters.
fn sum_module() -> Module {
    let mut module = Module::new();
    define(&mut module, "sum", Signature::new(&[Type::I32], &[Type::I32]), |b| {
        let (entry, head, body, exit) = (b.create_block(), b.create_block(), b.create_block(), b.create_block());
        let n = b.append_param(entry, Type::I32);
        let (i, s) = (b.append_param(head, Type::I32), b.append_param(head, Type::I32));
        b.switch_to(entry);
        let zero = b.constant(Type::I32, 0);
        b.jump(head, &[zero, zero]);
        b.switch_to(head);
        let more = b.op(Opcode::Ult, Type::I32, &[i, n]);
        b.br_if(more, Target::new(body, &[]), Target::new(exit, &[]));
        b.switch_to(body);
        let s2 = b.op(Opcode::Add, Type::I32, &[s, i]);
        let one = b.constant(Type::I32, 1);
        let i2 = b.op(Opcode::Add, Type::I32, &[i, one]);
        b.jump(head, &[i2, s2]);
        b.switch_to(exit);
        b.ret(&[s]);
    });
    module
}

/// `fib(n)` by two recursive calls.
fn fib_module() -> Module {
    let mut module = Module::new();
    let itself = Func::from_u32(0);
    define(&mut module, "fib", Signature::new(&[Type::I32], &[Type::I32]), |b| {
        let (entry, base, step) = (b.create_block(), b.create_block(), b.create_block());
        let n = b.append_param(entry, Type::I32);
        b.switch_to(entry);
        let two = b.constant(Type::I32, 2);
        let small = b.op(Opcode::Ult, Type::I32, &[n, two]);
        b.br_if(small, Target::new(base, &[]), Target::new(step, &[]));
        b.switch_to(base);
        b.ret(&[n]);
        b.switch_to(step);
        let one = b.constant(Type::I32, 1);
        let n1 = b.op(Opcode::Sub, Type::I32, &[n, one]);
        let x = b.insert_value(InstSpec::call(itself, &[n1], &[Type::I32]));
        let n2 = b.op(Opcode::Sub, Type::I32, &[n, two]);
        let y = b.insert_value(InstSpec::call(itself, &[n2], &[Type::I32]));
        let sum = b.op(Opcode::Add, Type::I32, &[x, y]);
        b.ret(&[sum]);
    });
    module
}

#[test]
fn a_loop_sums() {
    assert_eq!(interp::run(&sum_module(), "sum", &[10]), Ok(Outcome::Returned(vec![45])));
    assert_eq!(interp::run(&sum_module(), "sum", &[0]), Ok(Outcome::Returned(vec![0])));
}

#[test]
fn recursion_returns_to_each_caller() {
    assert_eq!(interp::run(&fib_module(), "fib", &[20]), Ok(Outcome::Returned(vec![6765])));
}

#[test]
fn fuel_is_counted_per_instruction() {
    let module = sum_module();
    // entry 2, head 2 per test, body 4 per round, exit 1.
    let needed = 2 + 11 * 2 + 10 * 4 + 1;
    for fuel in 0..=needed {
        let mut machine = Machine::new(&module, Limits { fuel, ..Limits::default() }).expect("it instantiates");
        let outcome = machine.invoke(Func::from_u32(0), &[10], &mut NoHost, &mut NoObserver);
        if fuel == needed {
            assert_eq!(outcome, Outcome::Returned(vec![45]));
        } else {
            assert!(matches!(&outcome, Outcome::OutOfFuel(site) if site.function == "sum"), "{fuel}: {outcome}");
        }
        assert_eq!(machine.fuel(), 0);
    }
}
