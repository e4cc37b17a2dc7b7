//! Cost of an instruction in the interpreter: a hot loop, a loop over memory, and calls. The
//! throughput is in IR instructions; its inverse is the figure to compare.

use divan::Bencher;
use divan::counter::ItemsCount;
use osier_interp as interp;
use std::hint::black_box;

use interp::{
    Control, Limits, Machine, NoHost, NoObserver, Observer, Options, Program, Scope, View,
};
use ir::{
    Func, FunctionBuilder, Imm, Inst, InstSpec, Memory, Module, Opcode, Signature, Target, Type,
    Value,
};

fn define(module: &mut Module, name: &str, build: impl FnOnce(&mut FunctionBuilder)) -> Func {
    let signature = Signature::new(&[Type::I32], &[Type::I32]);
    let sig = module.sig(&signature);
    let func = module.funcs.push(ir::module::FuncDecl {
        name: name.to_owned(),
        sig,
        import: None,
        effect: Default::default(),
    });
    let mut builder = FunctionBuilder::new(name, signature);
    build(&mut builder);
    module.define(func, builder.finish().expect("the body is complete").function);
    func
}

/// A loop that counts up to its argument and carries an accumulator. `body` computes the next
/// accumulator from the accumulator and the counter.
fn counted_loop(
    module: &mut Module,
    name: &str,
    body: impl FnOnce(&mut FunctionBuilder, Value, Value) -> Value,
) {
    define(module, name, |b| {
        let (entry, head, exit) = (b.create_block(), b.create_block(), b.create_block());
        let n = b.append_param(entry, Type::I32);
        let (i, s) = (b.append_param(head, Type::I32), b.append_param(head, Type::I32));
        b.switch_to(entry);
        let zero = b.constant(Type::I32, 0);
        let one = b.constant(Type::I32, 1);
        b.jump(head, &[zero, zero]);
        b.switch_to(head);
        let s2 = body(b, s, i);
        let i2 = b.op(Opcode::Add, Type::I32, &[i, one]);
        let more = b.op(Opcode::Ult, Type::I32, &[i2, n]);
        b.br_if(more, Target::new(head, &[i2, s2]), Target::new(exit, &[]));
        b.switch_to(exit);
        b.ret(&[s2]);
    });
}

fn module() -> Module {
    let mut module = Module::new();
    let decl = ir::module::MemoryDecl {
        name: "memory".to_owned(),
        min_pages: 1,
        max_pages: None,
        import: None,
        kind: Default::default(),
    };
    let memory: Memory = module.memories.push(decl);
    counted_loop(&mut module, "arithmetic", |b, s, i| {
        let x = b.op(Opcode::Mul, Type::I32, &[s, i]);
        let y = b.op(Opcode::Xor, Type::I32, &[x, s]);
        let z = b.op(Opcode::Add, Type::I32, &[y, i]);
        let t = b.op(Opcode::Shl, Type::I32, &[z, i]);
        b.op(Opcode::Sub, Type::I32, &[t, x])
    });
    counted_loop(&mut module, "memory", |b, s, i| {
        let mask = b.constant(Type::I32, 0xfffc);
        let at = b.op(Opcode::And, Type::I32, &[i, mask]);
        let x =
            b.insert_value(InstSpec::new(Opcode::Load, Type::I32, Imm::Address(memory, 0), &[at]));
        let y = b.op(Opcode::Add, Type::I32, &[x, s]);
        b.insert(InstSpec::new(Opcode::Store, Type::I32, Imm::Address(memory, 0), &[at, y]));
        y
    });
    let fib = Func::from_u32(2);
    define(&mut module, "fib", |b| {
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
        let x = b.insert_value(InstSpec::call(fib, &[n1], &[Type::I32]));
        let n2 = b.op(Opcode::Sub, Type::I32, &[n, two]);
        let y = b.insert_value(InstSpec::call(fib, &[n2], &[Type::I32]));
        let sum = b.op(Opcode::Add, Type::I32, &[x, y]);
        b.ret(&[sum]);
    });
    module
}

/// An observer that is called and does nothing, to measure the cost of the calls.
struct Idle;

impl Observer for Idle {
    const SCOPE: Scope = Scope::Everything;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        black_box((view.depth(), inst));
        Control::Continue
    }
}

/// Benchmarks repeated runs of one function, and counts instructions.
fn measure<O: Observer>(bencher: Bencher<'_, '_>, name: &str, options: Options, mut observer: O) {
    let module = module();
    let limits = Limits { fuel: u64::MAX, ..Limits::default() };
    let mut machine =
        Machine::with_options(&Program::new(&module), limits, options).expect("it instantiates");
    let func = module.lookup(name).expect("it is defined above");
    let arg = if name == "fib" { 20 } else { 100_000 };
    machine.invoke(func, &[arg], &mut NoHost, &mut NoObserver);
    let instructions = u64::MAX - machine.fuel();
    bencher.counter(ItemsCount::new(instructions)).bench_local(|| {
        machine.set_fuel(u64::MAX);
        machine.invoke(func, &[arg], &mut NoHost, &mut observer)
    });
}

const PROGRAMS: [&str; 3] = ["arithmetic", "memory", "fib"];

/// The baseline tier: no trace, no digests, no observer.
#[divan::bench(args = PROGRAMS)]
fn plain(bencher: Bencher<'_, '_>, name: &str) {
    measure(bencher, name, Options::default(), NoObserver);
}

/// With digests of trace and memory, as checkers use the interpreter.
#[divan::bench(args = PROGRAMS)]
fn tracked(bencher: Bencher<'_, '_>, name: &str) {
    measure(bencher, name, Options { track_memory: true, ..Options::traced() }, NoObserver);
}

/// With an observer before every instruction.
#[divan::bench(args = PROGRAMS)]
fn observed(bencher: Bencher<'_, '_>, name: &str) {
    measure(bencher, name, Options::default(), Idle);
}

fn main() {
    divan::main();
}
