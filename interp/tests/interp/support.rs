//! Programs and helpers that the tests share.

use interp::{Limits, Machine, NoHost, NoObserver, Options, Outcome, Program};
use ir::module::{FuncDecl, ImportName, MemoryDecl, MemoryKind};
use ir::{
    Block, Func, FunctionBuilder, Imm, InstSpec, Memory, Module, Opcode, Point, Signature, Target,
    Type, Value,
};
use transition::mapping::{Assign, Entry, Operand};

/// Adds a function to a module. `body` receives a builder at the entry block and the arguments.
pub(crate) fn define(
    module: &mut Module,
    name: &str,
    params: &[Type],
    results: &[Type],
    body: impl FnOnce(&mut FunctionBuilder, &[Value]),
) -> Func {
    let signature = Signature::new(params, results);
    let sig = module.sig(&signature);
    let func = module.funcs.push(FuncDecl {
        name: name.to_owned(),
        sig,
        import: None,
        effect: Default::default(),
    });
    let mut builder = FunctionBuilder::new(name, signature);
    let entry = builder.create_block();
    let args: Vec<Value> = params.iter().map(|ty| builder.append_param(entry, *ty)).collect();
    builder.switch_to(entry);
    body(&mut builder, &args);
    module.define(func, builder.finish().expect("the body is complete").function);
    func
}

/// Adds an imported function `host.NAME`.
pub(crate) fn import(module: &mut Module, name: &str, params: &[Type], results: &[Type]) -> Func {
    let sig = module.sig(&Signature::new(params, results));
    let import = Some(ImportName { module: "host".to_owned(), field: name.to_owned() });
    module.funcs.push(FuncDecl { name: name.to_owned(), sig, import, effect: Default::default() })
}

pub(crate) fn add_memory(
    module: &mut Module,
    name: &str,
    min_pages: u32,
    max_pages: Option<u32>,
) -> Memory {
    module.memories.push(MemoryDecl {
        name: name.to_owned(),
        min_pages,
        max_pages,
        import: None,
        kind: MemoryKind::Linear,
    })
}

pub(crate) fn i32_const(b: &mut FunctionBuilder, number: i32) -> Value {
    b.constant(Type::I32, number as u32 as u64)
}

pub(crate) fn add(b: &mut FunctionBuilder, x: Value, y: Value) -> Value {
    b.op(Opcode::Add, Type::I32, &[x, y])
}

pub(crate) fn load(opcode: Opcode, ty: Type, memory: Memory, offset: u64, at: Value) -> InstSpec {
    InstSpec::new(opcode, ty, Imm::Address(memory, offset), &[at])
}

pub(crate) fn store(
    opcode: Opcode,
    ty: Type,
    memory: Memory,
    offset: u64,
    at: Value,
    value: Value,
) -> InstSpec {
    InstSpec::new(opcode, ty, Imm::Address(memory, offset), &[at, value])
}

/// Creates a block with parameters of these types.
pub(crate) fn block(b: &mut FunctionBuilder, params: &[Type]) -> (Block, Vec<Value>) {
    let block = b.create_block();
    (block, params.iter().map(|ty| b.append_param(block, *ty)).collect())
}

/// The function `sum` with the values that tests read.
pub(crate) struct Sum {
    pub(crate) module: Module,
    pub(crate) func: Func,
    pub(crate) n: Value,
    pub(crate) i: Value,
    pub(crate) s: Value,
    /// `s + i`, the first instruction of the loop body.
    pub(crate) s2: Value,
    pub(crate) i2: Value,
}

/// `sum(n) = 0 + 1 + .. + n - 1`, computed by a loop with two parameters.
pub(crate) fn sum() -> Sum {
    let mut module = Module::new();
    let mut values = Vec::new();
    let func = define(&mut module, "sum", &[Type::I32], &[Type::I32], |b, args| {
        let (head, params) = block(b, &[Type::I32, Type::I32]);
        let (body, exit) = (b.create_block(), b.create_block());
        let (i, s) = (params[0], params[1]);
        let zero = i32_const(b, 0);
        b.jump(head, &[zero, zero]);
        b.switch_to(head);
        let more = b.op(Opcode::Ult, Type::I32, &[i, args[0]]);
        b.br_if(more, Target::new(body, &[]), Target::new(exit, &[]));
        b.switch_to(body);
        let s2 = add(b, s, i);
        let one = i32_const(b, 1);
        let i2 = add(b, i, one);
        b.jump(head, &[i2, s2]);
        b.switch_to(exit);
        b.ret(&[s]);
        values = vec![args[0], i, s, s2, i2];
    });
    Sum { module, func, n: values[0], i: values[1], s: values[2], s2: values[3], i2: values[4] }
}

/// The number of instructions that `sum(n)` executes: 2 in the entry, 2 per test, 4 per round, 1 at
/// the end.
pub(crate) fn sum_cost(n: u64) -> u64 {
    2 + 2 * (n + 1) + 4 * n + 1
}

/// `fib(n)`, computed by two recursive calls.
pub(crate) fn fib() -> (Module, Func) {
    let mut module = Module::new();
    let itself = Func::from_u32(0);
    define(&mut module, "fib", &[Type::I32], &[Type::I32], |b, args| {
        let (base, step) = (b.create_block(), b.create_block());
        let n = args[0];
        let two = i32_const(b, 2);
        let small = b.op(Opcode::Ult, Type::I32, &[n, two]);
        b.br_if(small, Target::new(base, &[]), Target::new(step, &[]));
        b.switch_to(base);
        b.ret(&[n]);
        b.switch_to(step);
        let one = i32_const(b, 1);
        let n1 = b.op(Opcode::Sub, Type::I32, &[n, one]);
        let x = b.insert_value(InstSpec::call(itself, &[n1], &[Type::I32]));
        let n2 = b.op(Opcode::Sub, Type::I32, &[n, two]);
        let y = b.insert_value(InstSpec::call(itself, &[n2], &[Type::I32]));
        let sum = add(b, x, y);
        b.ret(&[sum]);
    });
    (module, itself)
}

/// An entry without steps that lands at a point with its own contents in each of these values.
pub(crate) fn landing(target: Point, values: &[Value]) -> Entry {
    let assigns = values.iter().map(|v| Assign { value: *v, from: Operand::Source(*v) }).collect();
    let (steps, replays, requires, kept) = (Vec::new(), Vec::new(), values.to_vec(), Vec::new());
    Entry { target, steps, replays, assigns, requires, kept, inner: Box::default() }
}

/// A machine with all checks on.
pub(crate) fn machine(module: &Module, limits: Limits) -> Machine {
    Machine::with_options(&Program::new(module), limits, Options::checked())
        .expect("the module instantiates")
}

/// Runs a function in a new machine with all checks on.
pub(crate) fn run(module: &Module, func: Func, args: &[u64]) -> Outcome {
    machine(module, Limits::default()).invoke(func, args, &mut NoHost, &mut NoObserver)
}

pub(crate) fn returned(values: &[u64]) -> Outcome {
    Outcome::Returned(values.to_vec())
}
