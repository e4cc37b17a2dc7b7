//! The memory of many small programs in one process: each has a module, a machine and one compiled
//! function of 44 instructions, 6 of them branches that are never taken.
//!
//!     cargo run --release --example footprint -- [PROGRAMS]
//!
//! The example prints the bytes of each program: allocated by Rust, of machine code with its
//! padding, and resident in the process. One engine compiles all programs.
//!
//! - *plain*: the base is installed.
//! - *assuming*: a version is installed that assumes each branch not to be taken. A failed
//!   assumption leads to the base.
//! - *with its tree*: the same, and the versions stay, to speculate again.

use osier::interp::{Limits, NoHost, Options, Outcome};
use osier::ir::module::FuncDecl;
use osier::ir::{FunctionBuilder, Module, Opcode, Point, Signature, Target, Type};
use osier::jit::{Action, Config, Engine, Version, VersionSpec, Vm};
use osier::osr::VersionTree;
use osier::passes::Pipeline;
use osier::speculate::{Assumption, Expected, Plan, speculate};
use peak_alloc::PeakAlloc;
use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The branches of a program.
const BRANCHES: u64 = 6;
/// Programs made before the measurement, which fill caches and the lists of the process.
const BEFORE: usize = 100;
/// The bytes of a line of the instruction cache, to which pieces of code are padded.
const LINE: usize = 64;
/// The bytes of a page of x86-64, where native code runs.
const PAGE: usize = 4096;

/// A program: `BRANCHES` times a product, a branch that is never taken, and a sum. Like other
/// embedders, it names no values.
fn program() -> Result<Arc<Module>, Box<dyn Error>> {
    let signature = Signature::new(&[Type::I64], &[Type::I64]);
    let mut builder = FunctionBuilder::new("f", signature.clone());
    let entry = builder.create_block();
    let p = builder.append_param(entry, Type::I64);
    builder.switch_to(entry);
    let mut sum = p;
    for k in 0..BRANCHES {
        let factor = builder.constant(Type::I64, 2 * k + 3);
        let product = builder.op(Opcode::Mul, Type::I64, &[p, factor]);
        let is_less = builder.op(Opcode::Ult, Type::I64, &[product, p]);
        let [out, go, next] = [(); 3].map(|()| builder.create_block());
        builder.br_if(is_less, Target::new(out, &[]), Target::new(go, &[]));
        builder.switch_to(out);
        builder.ret(&[product]);
        builder.switch_to(go);
        let more = builder.op(Opcode::Add, Type::I64, &[sum, product]);
        builder.jump(next, &[more]);
        sum = builder.append_param(next, Type::I64);
        builder.switch_to(next);
    }
    let mixed = builder.op(Opcode::Xor, Type::I64, &[sum, p]);
    builder.ret(&[mixed]);
    let body = builder.finish().map_err(|error| error.to_string())?.function;
    let mut module = Module::new();
    let sig = module.sig(&signature);
    let decl = FuncDecl { name: "f".to_owned(), sig, import: None, effect: Default::default() };
    let func = module.funcs.push(decl);
    module.define(func, body);
    Ok(Arc::new(module))
}

/// The data that an embedder keeps of a program.
#[derive(Default)]
struct Kept {
    vm: Option<Vm>,
    _tree: Option<VersionTree>,
}

/// A module, a machine and code of a program.
fn plain(engine: &Engine) -> Result<Kept, Box<dyn Error>> {
    let module = program()?;
    let (func, body) = module.defined().next().ok_or("the program has a function")?;
    let version = engine.version(&module, func, body, &[])?;
    let vm = installed(engine, &module, &version, Vec::new())?;
    Ok(Kept { vm: Some(vm), _tree: None })
}

/// A module, a machine and code that assumes each branch not to be taken.
fn assuming(engine: &Engine) -> Result<Kept, Box<dyn Error>> {
    let module = program()?;
    let (func, body) = module.defined().next().ok_or("the program has a function")?;
    let branches = body.all_insts().filter(|inst| body.inst(*inst).opcode == Opcode::BrIf);
    let assumptions = branches.zip(0..).map(|(inst, reason)| Assumption {
        at: Point::before(inst),
        value: body.inst(inst).args[0],
        expected: Expected::Is(0),
        reason,
    });
    let assumptions: Vec<Assumption> = assumptions.collect();
    let pipeline = Pipeline::default();
    let mut tree = VersionTree::new(body.clone());
    let plan = Plan::new(&assumptions, &pipeline);
    let mut made = speculate(&module, &mut tree, VersionTree::BASE, &plan)?;
    let back = made.backward.remove(&VersionTree::BASE).ok_or("there is a way to the base")?;
    let (back, optimized) = (Arc::new(back), tree.function(made.optimized));
    let exits = VersionSpec::leaving(optimized, |_| Some(&**back))?;
    let version = engine.version(&module, func, optimized, exits)?;
    let actions = vec![Action::Interpret(back); version.points().len()];
    let vm = installed(engine, &module, &version, actions)?;
    Ok(Kept { vm: Some(vm), _tree: Some(tree) })
}

/// A machine that has run its function once.
fn installed(
    engine: &Engine,
    module: &Arc<Module>,
    version: &Arc<Version>,
    actions: Vec<Action>,
) -> Result<Vm, Box<dyn Error>> {
    let mut vm = Vm::new(engine, module, Limits::default(), Options::default())?;
    vm.install(version, actions)?;
    match vm.invoke(version.func(), &[1], &mut NoHost)? {
        Outcome::Returned(_) => Ok(vm),
        other => Err(other.to_string().into()),
    }
}

/// The bytes allocated now.
fn allocated() -> i64 {
    ALLOCATOR.current_usage() as i64
}

/// The resident bytes of this process.
fn resident() -> Result<i64, Box<dyn Error>> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: i64 = pages.split(' ').nth(1).ok_or("no resident pages")?.parse()?;
    Ok(pages * PAGE as i64)
}

/// The mean bytes of a program: allocated, of code, and resident.
fn measure(
    programs: usize,
    make: impl Fn(&Engine) -> Result<Kept, Box<dyn Error>>,
) -> Result<[f64; 3], Box<dyn Error>> {
    let engine = Engine::new(Config::default())?;
    let many = |count: usize| -> Result<Vec<Kept>, Box<dyn Error>> {
        let mut kept = Vec::with_capacity(count);
        for _ in 0..count {
            kept.push(make(&engine)?);
        }
        Ok(kept)
    };
    let _before = many(BEFORE)?;
    let before = (allocated(), resident()?);
    let kept = many(programs)?;
    let (bytes, pages) = (allocated() - before.0, resident()? - before.1);
    let code: usize = kept
        .iter()
        .filter_map(|kept| kept.vm.as_ref())
        .filter_map(|vm| vm.installed(vm.module().defined().next()?.0))
        .map(|version| version.code_size().next_multiple_of(LINE))
        .sum();
    Ok([bytes as f64, code as f64, pages as f64].map(|sum| sum / programs as f64))
}

fn main() -> Result<(), Box<dyn Error>> {
    let programs = std::env::args().nth(1).map_or(Ok(1000), |count| count.parse())?;
    let mut out = io::stdout().lock();
    writeln!(out, "bytes for each of {programs} programs   allocated      code  resident")?;
    let without_tree = |engine: &Engine| assuming(engine).map(|kept| Kept { _tree: None, ..kept });
    for (name, figures) in [
        ("plain", measure(programs, plain)?),
        ("assuming", measure(programs, without_tree)?),
        ("with its tree", measure(programs, assuming)?),
    ] {
        write!(out, "{name:<33}")?;
        figures.iter().try_for_each(|figure| write!(out, "{figure:>10.0}"))?;
        writeln!(out)?;
    }
    Ok(())
}
