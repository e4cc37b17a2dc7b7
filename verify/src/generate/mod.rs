//! Random programs: valid by construction, always terminating, and rich in the patterns that passes
//! look for.
//!
//! A program is a module of a few functions, without recursion unless [`Weights::and_trees`] plants
//! trees of calls. A body is built region by region, and [`Feature`] lists the kinds of regions. A
//! region has one entry and one way on, so the values in scope are the values whose definitions
//! dominate. Cross edges, early exits, and cycles with two entries stay inside such regions.
//!
//! A loop runs at most four rounds, and nested loops at most 150 rounds together. A call is added
//! only if its caller stays short. So [`Program::steps`] bounds the length of every run.
//!
//! A seed, a size and a set of weights give one program, in every build of this version of the
//! crate.

mod body;
mod calls;
mod control;
mod facts;
mod feature;
mod loops;
mod memory;
mod ranges;
mod scope;
mod statistics;
mod straight;

pub use calls::CountingHost;
pub use feature::{FEATURES, Feature, Weights};
pub use statistics::{Planted, Statistics};

use crate::prng::Prng;
use body::{Callee, GeneratedBody, Surroundings, TOO_MANY_STEPS, edge_bits};
use calls::RECURSIVE_ACTIVATIONS;
use ir::init::{InitExpr, InitOp};
use ir::module::{
    DataSegment, ElementSegment, Export, External, FuncDecl, GlobalDecl, ImportName, MemoryDecl,
    MemoryKind, PAGE_BYTES, TableDecl,
};
use ir::{
    Block, Data, DeclaredEffect, Elem, Func, Inst, Memory, Module, Opcode, Signature, Type,
    reference,
};

/// The name of the function to run. The module exports it.
pub const MAIN: &str = "main";

/// A generated program, with the arguments to run it with.
#[derive(Clone, Debug)]
pub struct Program {
    /// The module. Its last function is [`MAIN`].
    pub module: Module,
    /// The function to run.
    pub main: Func,
    /// Argument lists to run it with, as bits. Later lists have more extreme values.
    pub arguments: Vec<Vec<u64>>,
    /// A bound on the instructions that a run executes, for all arguments.
    pub steps: u64,
    /// How often the generator planted each feature.
    pub planted: Planted,
}

/// The number of argument lists of a program.
const ARGUMENT_VECTORS: usize = 6;
/// The size of the memory in pages: at the start, and at most.
const PAGES: (u32, u32) = (1, 3);
/// The number of entries of the table.
const TABLE_SIZE: u32 = 4;

/// Makes a program.
///
/// `size` is roughly the number of instructions of the main function. Each other function has a
/// third of this size, or half of it in a tree of calls. The features of the program, and their
/// weights, are drawn from the seed around `weights` ([`Weights::swarm`]). Cost: near linear in
/// `size`.
pub fn generate(seed: u64, size: u32, weights: &Weights) -> Program {
    let prng = Prng::new(seed);
    // Each part has a stream of its own, so that a change in one part leaves the others as they
    // are.
    let weights = weights.swarm(&mut prng.fork(1));
    let mut module = Module::new();
    let mut planted = Planted::default();
    let mut around = declare(&mut module, &weights, &mut prng.fork(2));
    let mut shapes = prng.fork(3);
    // Helpers only where calls are allowed: an uncalled function never runs.
    let calls = weights.of(Feature::Call) > 0;
    let trees = weights.of(Feature::CallTree) > 0;
    let helpers = match trees {
        true => shapes.between(2, 5),
        false if calls => shapes.between(0, 3),
        false => 0,
    };
    let mut recursive = Recursive::default();
    for index in 0..=helpers {
        let is_main = index == helpers;
        let name = if is_main { MAIN.to_owned() } else { format!("helper{index}") };
        // Only the main function calls through the table. A helper in the table could else call
        // itself.
        around.may_call_indirect = is_main;
        if is_main {
            fill_table(&mut module, &mut around, &mut prng.fork(4));
        }
        let mut signature = random_signature(&mut shapes, is_main);
        if trees && !is_main {
            signature = signature_in_tree(&mut shapes, signature);
        }
        let wanted = if is_main { size } else { size / if trees { 2 } else { 3 } };
        let calls = if is_main || weights.of(Feature::Recursion) == 0 {
            None
        } else {
            recursive.next(&module, &mut signature, index + 1 < helpers, &mut shapes)
        };
        let prng = prng.fork(16 + u64::from(index));
        let weights = weights.clone();
        let plan = FunctionDraft { name, signature, calls, prng, weights, size: wanted };
        add_function(&mut module, &mut around, &mut planted, plan);
        recursive.made(&mut around.callees);
    }
    let main = around.callees.last().expect("the main function was added last").clone();
    module.exports.push(Export { name: MAIN.to_owned(), item: External::Func(main.func) });
    let arguments = arguments(seed, &main.signature.params, ARGUMENT_VECTORS);
    Program { module, main: main.func, arguments, steps: main.steps, planted }
}

impl Program {
    /// Counts of the contents of the program.
    pub fn statistics(&self) -> Statistics {
        Statistics::of(&self.module, &self.planted)
    }
}

/// Recursion of one function, or mutual recursion of two consecutive functions.
#[derive(Default)]
struct Recursive {
    /// The signature of both functions, while the second is to be made.
    second: Option<Signature>,
    /// The number of functions in the recursion: 1 or 2; 0 for a function without recursion.
    members: usize,
    /// The steps of the longest activation of these functions.
    steps: u64,
}

impl Recursive {
    /// The function that the next function calls recursively: itself, its predecessor or its
    /// successor. `None` if the next function is not recursive.
    fn next(
        &mut self,
        module: &Module,
        signature: &mut Signature,
        has_next: bool,
        prng: &mut Prng,
    ) -> Option<Func> {
        let func = module.funcs.next_key();
        if let Some(of_both) = self.second.take() {
            (*signature, self.members) = (of_both, 2);
            return Some(Func::from_u32(func.as_u32() - 1));
        }
        self.members = 0;
        if !prng.chance(40) {
            return None;
        }
        let params: Vec<Type> = [Type::I32].iter().chain(&signature.params).copied().collect();
        *signature = Signature::new(&params, &signature.results);
        self.members = 1;
        if has_next && prng.chance(40) {
            self.second = Some(signature.clone());
            return Some(Func::from_u32(func.as_u32() + 1));
        }
        Some(func)
    }

    /// Counts the steps of all activations within one call of the functions made last.
    fn made(&mut self, callees: &mut [Callee]) {
        let Some(last) = callees.last_mut().filter(|_| self.members > 0) else { return };
        self.steps = self.steps.max(last.steps);
        if self.second.is_some() {
            // A call from the other function would not count down to an end.
            last.steps = TOO_MANY_STEPS;
            return;
        }
        let first = callees.len() - self.members;
        let steps = RECURSIVE_ACTIVATIONS * std::mem::take(&mut self.steps);
        callees[first..].iter_mut().for_each(|one| one.steps = steps);
    }
}

/// Declares memory, table, globals and data, and returns their ids for the bodies.
fn declare(module: &mut Module, weights: &Weights, prng: &mut Prng) -> Surroundings {
    let memory = module.memories.push(MemoryDecl {
        name: "memory".to_owned(),
        min_pages: PAGES.0,
        max_pages: Some(PAGES.1),
        import: None,
        kind: MemoryKind::Linear,
    });
    let hosts = if weights.hosted() > 0 { declare_host_memories(module) } else { Vec::new() };
    let bytes = (0..64).map(|_| prng.below(256) as u8).collect();
    module.data.push(DataSegment::active(memory, 0, bytes));
    let table = module.tables.push(TableDecl::of_funcs("table", TABLE_SIZE));
    let base = declare_base(module);
    let mut globals = Vec::new();
    for (name, ty, mutable) in [
        ("count", Type::I32, true),
        ("sum", Type::I64, true),
        ("ratio", Type::F64, true),
        ("fixed", Type::I32, false),
    ] {
        let bits = edge_bits(prng, ty);
        // As globals of a dynamic library: known when the module is instantiated.
        let init = match mutable {
            true => bits.into(),
            false => {
                InitExpr::Computed([InitOp::Global(base), InitOp::Bits(bits), InitOp::Add].into())
            }
        };
        let global = module.globals.push(GlobalDecl {
            name: name.to_owned(),
            ty,
            mutable,
            init,
            import: None,
        });
        globals.push((global, ty, mutable));
    }
    let references = TableDecl {
        max_size: Some(2 * TABLE_SIZE),
        ..TableDecl::of_funcs("references", TABLE_SIZE)
    };
    let references = module.tables.push(references);
    module.data.push(DataSegment { active: None, bytes: (0..16).map(|n| 200 + n).collect() });
    module.elements.push(ElementSegment::passive(Type::FuncRef, vec![0; 3]));
    let segments = (Data::from_u32(1), Elem::from_u32(0));
    let (entries, callees) = (Vec::new(), Vec::new());
    let host = (weights.of(Feature::HostCall) > 0).then(|| declare_host(module, prng));
    Surroundings {
        memory,
        hosts,
        table,
        entries,
        references,
        segments,
        globals,
        callees,
        host,
        declared: if weights.declared() > 0 { declare_effects(module) } else { Vec::new() },
        may_call_indirect: false,
    }
}

/// Imports the global that the initial value of another depends on.
fn declare_base(module: &mut Module) -> ir::Global {
    let import = ImportName { module: "env".to_owned(), field: "base".to_owned() };
    let (name, ty, init) = ("base".to_owned(), Type::I32, InitExpr::Bits(0));
    module.globals.push(GlobalDecl { name, ty, mutable: false, init, import: Some(import) })
}

/// Declares two host memories, and returns them with the middle of their accesses. In the first,
/// accesses lie on both sides of 2^32.
fn declare_host_memories(module: &mut Module) -> Vec<(Memory, u64)> {
    let mut declare = |name: &str, middle: u64| {
        let kind = MemoryKind::HostFrom(middle - PAGE_BYTES);
        let name = name.to_owned();
        let decl = MemoryDecl { name, min_pages: 2, max_pages: None, import: None, kind };
        (module.memories.push(decl), middle)
    };
    vec![declare("header", 1 << 32), declare("fields", 1 << 48)]
}

/// Imports a function.
fn declare_host(module: &mut Module, prng: &mut Prng) -> (Func, Signature) {
    let results: &[Type] = if prng.chance(70) { &[Type::I32] } else { &[] };
    let signature = Signature::new(&[Type::I32, Type::I64], results);
    let sig = module.sig(&signature);
    let import = Some(ImportName { module: "env".to_owned(), field: "host".to_owned() });
    let (name, effect) = ("host".to_owned(), DeclaredEffect::Any);
    (module.funcs.push(FuncDecl { name, sig, import, effect }), signature)
}

/// Imports functions with declared effects, of several signatures.
fn declare_effects(module: &mut Module) -> Vec<(Func, Signature, DeclaredEffect)> {
    let signatures = [
        (DeclaredEffect::Pure, &[Type::I32][..], &[Type::I32][..]),
        (DeclaredEffect::Pure, &[Type::I64, Type::F64], &[Type::I64]),
        (DeclaredEffect::Pure, &[Type::F32, Type::I8], &[Type::F32]),
        (DeclaredEffect::Reads, &[Type::I32], &[Type::I64]),
        (DeclaredEffect::Reads, &[], &[Type::I32]),
        (DeclaredEffect::Outside, &[Type::I32], &[Type::I32]),
        (DeclaredEffect::Outside, &[Type::I64], &[]),
    ];
    let mut declare =
        |(number, (effect, params, results)): (usize, (DeclaredEffect, &[Type], _))| {
            let signature = Signature::new(params, results);
            let (name, sig) = (format!("{effect}{number}"), module.sig(&signature));
            let import =
                Some(ImportName { module: "env".to_owned(), field: effect.name().to_owned() });
            (module.funcs.push(FuncDecl { name, sig, import, effect }), signature, effect)
        };
    signatures.into_iter().enumerate().map(&mut declare).collect()
}

/// Fills the table with the functions made so far, and with null entries.
fn fill_table(module: &mut Module, around: &mut Surroundings, prng: &mut Prng) {
    let callees = around.callees.len();
    around.entries = (0..TABLE_SIZE)
        .map(|_| (callees > 0 && prng.chance(80)).then(|| prng.index(callees)))
        .collect();
    let funcs: Vec<_> = around.entries.iter().map(|e| e.map(|c| around.callees[c].func)).collect();
    module.elements.push(ElementSegment::of_funcs(around.table, 0, &funcs));
    module.elements[around.segments.1.as_u32() as usize].entries.fill(reference::of_func(funcs[0]));
}

fn random_signature(prng: &mut Prng, is_main: bool) -> Signature {
    let types =
        [Type::I32, Type::I32, Type::I32, Type::I64, Type::I64, Type::F64, Type::I8, Type::F32];
    let mut list = |low, high| -> Vec<Type> {
        (0..prng.between(low, high)).map(|_| prng.pick(&types)).collect()
    };
    let params = if is_main { list(2, 4) } else { list(0, 3) };
    let results = if is_main { list(1, 2) } else { list(0, 2) };
    Signature::new(&params, &results)
}

/// A signature with two or three results, mostly of one type: a permutation of them shows.
fn signature_in_tree(prng: &mut Prng, signature: Signature) -> Signature {
    let mut results = signature.results.to_vec();
    if prng.chance(70) {
        let first = results.first().copied().unwrap_or(Type::I32);
        let second = if prng.chance(75) { first } else { Type::I64 };
        results = [first, second, first][..prng.between(2, 3) as usize].to_vec();
    }
    Signature::new(&signature.params, &results)
}

/// A function to generate.
struct FunctionDraft {
    name: String,
    signature: Signature,
    /// The function that it calls to recur, if it does.
    calls: Option<Func>,
    prng: Prng,
    weights: Weights,
    size: u32,
}

fn add_function(
    module: &mut Module,
    around: &mut Surroundings,
    planted: &mut Planted,
    plan: FunctionDraft,
) {
    let FunctionDraft { name, signature, calls, prng, weights, size } = plan;
    let mut body = GeneratedBody::new(&name, &signature, prng, weights, around, planted, size);
    if around.may_call_indirect {
        body.call_helpers();
        if body.plants_facts() {
            body.breaking_calls();
        }
    }
    if let Some(func) = calls {
        body.recurse(func, &signature);
    }
    if !body.around.may_call_indirect && body.weight(Feature::CallTree) > 0 {
        body.call_tree();
        for feature in [Feature::Returns, Feature::CalleeTrap] {
            if body.wants(feature) {
                body.region_of(feature, 1);
            }
        }
    }
    body.generate();
    mark_cold_blocks(&mut body);
    let steps = body.steps;
    let function =
        body.builder.finish().expect("every block of a generated function ends").function;
    let sig = module.sig(&signature);
    let func = module.funcs.push(FuncDecl { name, sig, import: None, effect: Default::default() });
    module.define(func, function);
    around.callees.push(Callee { func, sig, signature, steps });
}

/// One block in so many is marked as cold, and of the few blocks with calls, for which native code
/// uses stubs then, one in so many.
const COLD_ONE_IN: u32 = 8;
const COLD_CALLS_ONE_IN: u32 = 2;

/// Marks some blocks as cold, drawn after the program: the mark changes nothing that a run does.
fn mark_cold_blocks(body: &mut GeneratedBody<'_>) {
    let blocks: Vec<Block> = body.builder.function().blocks().collect();
    for block in blocks {
        let function = body.builder.function();
        let is_call = |inst: Inst| function.inst(inst).opcode == Opcode::Call;
        let calls = function.block_insts(block).any(is_call);
        if body.prng.below(if calls { COLD_CALLS_ONE_IN } else { COLD_ONE_IN }) == 0 {
            body.builder.mark_cold(block);
        }
    }
}

/// Argument lists for the program of a seed. In each round of six, two lists have small values,
/// three have values at the edges of their types, and the last has random bits. A shorter request
/// gives a prefix of a longer one, and [`Program::arguments`] is such a prefix. Cost: linear in the
/// result.
pub fn arguments(seed: u64, params: &[Type], count: usize) -> Vec<Vec<u64>> {
    let mut prng = Prng::new(seed).fork(5);
    let mut vectors = Vec::new();
    for index in 0..count {
        let mut argument = |ty: &Type| match index % ARGUMENT_VECTORS {
            0 | 1 => small_bits(&mut prng, *ty),
            5 => prng.next_u64() & ty.mask(),
            _ => edge_bits(&mut prng, *ty),
        };
        vectors.push(params.iter().map(&mut argument).collect());
    }
    vectors
}

fn small_bits(prng: &mut Prng, ty: Type) -> u64 {
    let small = prng.between(1, 9);
    match ty {
        Type::F32 => u64::from((small as f32).to_bits()),
        Type::F64 => f64::from(small).to_bits(),
        _ => u64::from(small),
    }
}
