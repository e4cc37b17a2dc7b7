//! The memory of an import is bounded by its limits: here 64 bytes per byte of input, and 64 MiB.
//!
//! Each module here repeats one construct that is small in the input and large in memory. Whether
//! the module imports or is rejected, the peak stays below the bound. Nearly all modules of 10,000
//! bytes must import, which shows that the bound does not hold merely by rejecting everything. The
//! allocator counts memory for the whole process, so there is a single test.

use ir::Module;
use peak_alloc::PeakAlloc;
use wasm::{ErrorKind, ImportLimits};
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, CustomSection, DataSection, ElementSection, Elements,
    EntityType, ExportKind, ExportSection, Function, FunctionSection, GlobalSection, GlobalType,
    ImportSection, Instruction, MemorySection, MemoryType, NameMap, NameSection, RefType,
    TableSection, TableType, TypeSection, ValType,
};

extern crate osier_wasm as wasm;

mod damage;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The default has a higher base, which only the largest of these modules would exceed.
const LIMITS: ImportLimits =
    ImportLimits { bytes_per_input_byte: 64, base_bytes: 64 << 20, threads: 1 };

/// A program of the corpus.
const CALLS: &[u8] = include_bytes!("../../tests/corpus/calls.wasm");

/// A module with one function of type `() -> ()`, with these locals and this body.
fn one_function(locals: u32, body: impl FnOnce(&mut Function)) -> Vec<u8> {
    let mut function = Function::new([(locals, ValType::I32)]);
    body(&mut function);
    function.instruction(&Instruction::End);
    with_functions(&[function])
}

fn with_functions(functions: &[Function]) -> Vec<u8> {
    let mut module = wasm_encoder::Module::new();
    let mut types = TypeSection::new();
    types.ty().function([], []);
    module.section(&types);
    let (mut declared, mut code) = (FunctionSection::new(), CodeSection::new());
    for function in functions {
        declared.function(0);
        code.function(function);
    }
    module.section(&declared);
    module.section(&code);
    module.finish()
}

/// A function that repeats the operators until its body has about `bytes` bytes.
fn repeated(bytes: usize, locals: u32, operators: &[Instruction<'_>]) -> Vec<u8> {
    one_function(locals, |function| {
        while function.byte_len() < bytes {
            for operator in operators {
                function.instruction(operator);
            }
        }
    })
}

fn unary_chain(bytes: usize) -> Vec<u8> {
    one_function(0, |function| {
        function.instruction(&Instruction::I32Const(1));
        while function.byte_len() < bytes {
            function.instruction(&Instruction::I32Eqz);
        }
        function.instruction(&Instruction::Drop);
    })
}

/// Nested structures. `close` ends each of them, with or without a branch before the end.
fn nested(bytes: usize, open: &[Instruction<'_>], close: &[Instruction<'_>]) -> Vec<u8> {
    one_function(1, |function| {
        let mut depth = 0;
        while function.byte_len() < bytes / 2 {
            for operator in open.iter() {
                function.instruction(operator);
            }
            depth += 1;
        }
        for _ in 0..depth {
            for operator in close.iter() {
                function.instruction(operator);
            }
        }
    })
}

/// `n` loops around `n` locals that the innermost loop sets and later code reads: `n * n`
/// parameters.
fn loops_around_locals(bytes: usize) -> Vec<u8> {
    let count = (bytes / 16) as u32;
    one_function(count.min(50_000), |function| {
        for _ in 0..count {
            function.instruction(&Instruction::Loop(BlockType::Empty));
        }
        for local in 0..count.min(50_000) {
            function
                .instruction(&Instruction::I32Const(1))
                .instruction(&Instruction::LocalSet(local));
        }
        for _ in 0..count {
            function.instruction(&Instruction::LocalGet(0)).instruction(&Instruction::BrIf(0));
            function.instruction(&Instruction::End);
        }
        for local in 0..count.min(50_000) {
            function.instruction(&Instruction::LocalGet(local)).instruction(&Instruction::Drop);
        }
    })
}

/// `n` loops that each carry `n` locals: as many arguments as parameters, and all are needed.
fn loops_carrying_locals(bytes: usize) -> Vec<u8> {
    let count = (bytes / 14).min(50_000) as u32;
    one_function(count, |function| {
        for _ in 0..count {
            function.instruction(&LOOP);
        }
        for local in 0..count {
            function.instruction(&Instruction::LocalGet(local)).instruction(&Instruction::I32Eqz);
            function.instruction(&Instruction::LocalSet(local));
        }
        for _ in 0..count {
            function.instruction(&GET).instruction(&Instruction::BrIf(0)).instruction(&END);
        }
    })
}

/// Conditionals that each set a local in their only arm. The end of the function reads all locals.
fn joins_of_locals(bytes: usize) -> Vec<u8> {
    let count = (bytes / 20) as u32;
    one_function(count.min(50_000), |function| {
        for local in 0..count {
            function.instruction(&Instruction::LocalGet(local % 50_000));
            function.instruction(&Instruction::If(BlockType::Empty));
            function
                .instruction(&Instruction::I32Const(1))
                .instruction(&Instruction::LocalSet(local % 50_000));
            function.instruction(&Instruction::End);
        }
        for local in 0..count.min(50_000) {
            function.instruction(&Instruction::LocalGet(local)).instruction(&Instruction::Drop);
        }
    })
}

/// One branch with `bytes` targets, which alternate between two blocks. With `result`, each edge
/// carries a value.
fn wide_branch(bytes: usize, result: bool) -> Vec<u8> {
    one_function(1, |function| {
        let ty = if result { BlockType::Result(ValType::I32) } else { BlockType::Empty };
        function.instruction(&Instruction::Block(ty)).instruction(&Instruction::Block(ty));
        for _ in 0..=u32::from(result) {
            function.instruction(&Instruction::LocalGet(0));
        }
        let targets: Vec<u32> = (0..bytes as u32).map(|n| n % 2).collect();
        function.instruction(&Instruction::BrTable(targets.into(), 0));
        for _ in 0..2 {
            function.instruction(&Instruction::End);
            if result {
                function.instruction(&Instruction::LocalTee(0));
            }
        }
        if result {
            function.instruction(&Instruction::Drop);
        }
    })
}

/// A branch with many targets to a block that has a parameter for every local.
fn wide_branch_of_locals(bytes: usize) -> Vec<u8> {
    let count = (bytes / 8).min(50_000) as u32;
    one_function(count, |function| {
        for half in 0..2 {
            function.instruction(&Instruction::Block(BlockType::Empty));
            for local in 0..count {
                function
                    .instruction(&Instruction::I32Const(half))
                    .instruction(&Instruction::LocalSet(local));
            }
            function.instruction(&Instruction::LocalGet(0));
            if half == 0 {
                function.instruction(&Instruction::BrIf(0));
            } else {
                function.instruction(&Instruction::BrTable(vec![0; count as usize].into(), 0));
            }
            function.instruction(&Instruction::End);
            for local in 0..count {
                function.instruction(&Instruction::LocalGet(local)).instruction(&Instruction::Drop);
            }
        }
    })
}

fn empty_functions(bytes: usize, locals: u32) -> Vec<u8> {
    let mut function = Function::new((locals > 0).then_some((locals, ValType::I64)));
    function.instruction(&Instruction::End);
    with_functions(&vec![function; bytes / if locals > 0 { 8 } else { 4 }])
}

/// A module that consists of declarations of one kind.
fn declarations(bytes: usize, what: &str) -> Vec<u8> {
    let mut module = wasm_encoder::Module::new();
    let mut types = TypeSection::new();
    if what == "types" {
        // All types differ: the digits of `n` in base 4 choose the types of the parameters.
        for n in 0..bytes / 14 {
            let digit = |at: u32| {
                [ValType::I32, ValType::I64, ValType::F32, ValType::F64][n >> (2 * at) & 3]
            };
            types.ty().function((0..10).map(digit), []);
        }
    } else {
        types.ty().function([], []);
    }
    module.section(&types);
    if what == "imports" {
        let mut imports = ImportSection::new();
        for _ in 0..bytes / 4 {
            imports.import("", "", EntityType::Function(0));
        }
        module.section(&imports);
    }
    module.section(FunctionSection::new().function(0));
    let table_type = TableType {
        element_type: RefType::FUNCREF,
        minimum: 0,
        maximum: None,
        table64: false,
        shared: false,
    };
    module.section(TableSection::new().table(table_type));
    let memory_type = MemoryType {
        minimum: 1,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    };
    module.section(MemorySection::new().memory(memory_type));
    if what == "globals" {
        let mut globals = GlobalSection::new();
        let ty = GlobalType { val_type: ValType::I32, mutable: false, shared: false };
        for _ in 0..bytes / 5 {
            globals.global(ty, &ConstExpr::i32_const(0));
        }
        module.section(&globals);
    }
    if what == "exports" {
        let mut exports = ExportSection::new();
        for n in 0..bytes / 8 {
            exports.export(&format!("{n:x}"), ExportKind::Func, 0);
        }
        module.section(&exports);
    }
    if what == "elements" {
        let mut elements = ElementSection::new();
        let funcs: Vec<u32> = vec![0; bytes];
        elements.active(None, &ConstExpr::i32_const(0), Elements::Functions(funcs.into()));
        module.section(&elements);
    }
    if what == "segments" {
        let mut elements = ElementSection::new();
        for _ in 0..(bytes / 12).min(100_000) {
            elements.active(
                None,
                &ConstExpr::i32_const(0),
                Elements::Functions([].as_slice().into()),
            );
        }
        module.section(&elements);
    }
    let mut function = Function::new([]);
    function.instruction(&Instruction::End);
    module.section(CodeSection::new().function(&function));
    if what == "data" {
        let mut data = DataSection::new();
        for _ in 0..(bytes / 8).min(100_000) {
            data.active(0, &ConstExpr::i32_const(0), []);
        }
        module.section(&data);
    }
    if what == "names" {
        let (mut names, mut map) = (NameSection::new(), NameMap::new());
        (0..bytes as u32 / 4).for_each(|n| map.append(n, "f"));
        names.functions(&map);
        names.globals(&map);
        module.section(&names);
    }
    if what == "custom" {
        module.section(&CustomSection { name: "x".into(), data: vec![0; bytes].into() });
    }
    module.finish()
}

/// Many functions with the same name.
fn equal_names(bytes: usize) -> Vec<u8> {
    let mut module = empty_functions(bytes / 2, 0);
    let (mut names, mut map) = (NameSection::new(), NameMap::new());
    (0..bytes as u32 / 8).for_each(|n| map.append(n, "f"));
    names.functions(&map);
    wasm_encoder::Section::append_to(&names, &mut module);
    module
}

const LOOP: Instruction<'static> = Instruction::Loop(BlockType::Empty);
const BLOCK: Instruction<'static> = Instruction::Block(BlockType::Empty);
const IF: Instruction<'static> = Instruction::If(BlockType::Empty);
const RESULT: Instruction<'static> = Instruction::Block(BlockType::Result(ValType::I32));
const GET: Instruction<'static> = Instruction::LocalGet(0);
const END: Instruction<'static> = Instruction::End;

fn module_of(what: &str, bytes: usize) -> Vec<u8> {
    use Instruction::{Br, BrIf, Drop, Else, I32Const, LocalSet, LocalTee, Return, Unreachable};
    match what {
        "unary chain" => unary_chain(bytes),
        "constants" => repeated(bytes, 0, &[I32Const(0), Drop]),
        "stack of constants" => one_function(0, |function| {
            while function.byte_len() < bytes {
                function.instruction(&I32Const(0));
            }
            function.instruction(&Unreachable);
        }),
        "locals" => repeated(bytes, 1, &[GET, LocalSet(0)]),
        "stack of locals" => one_function(1, |function| {
            while function.byte_len() < bytes {
                function.instruction(&GET);
            }
            function.instruction(&Unreachable);
        }),
        "conditional blocks" => repeated(bytes, 1, &[BLOCK, GET, BrIf(0), END]),
        "empty conditionals" => repeated(bytes, 1, &[GET, IF, END]),
        "two arms" => repeated(bytes, 1, &[GET, IF, GET, LocalSet(0), Else, END]),
        "loops" => repeated(bytes, 1, &[LOOP, GET, BrIf(0), END]),
        "dead code" => repeated(bytes, 1, &[BLOCK, Unreachable, LOOP, Br(0), END, END]),
        "exits" => repeated(bytes, 1, &[BLOCK, GET, BrIf(0), Return, END]),
        "tests" => repeated(bytes, 1, &[GET, Instruction::I32Eqz, LocalTee(0), Drop]),
        "nested blocks" => nested(bytes, &[BLOCK], &[END]),
        "nested blocks left" => nested(bytes, &[BLOCK, GET, BrIf(0)], &[END]),
        "nested results" => nested(bytes, &[RESULT, GET], &[GET, BrIf(0), END, Drop]),
        "nested loops" => nested(bytes, &[LOOP], &[GET, BrIf(0), END]),
        "nested dead loops" => nested(bytes, &[LOOP], &[END]),
        "nested conditionals" => nested(bytes, &[GET, IF], &[END]),
        "loops around locals" => loops_around_locals(bytes),
        "loops carrying locals" => loops_carrying_locals(bytes),
        "joins of locals" => joins_of_locals(bytes),
        "wide branch" => wide_branch(bytes, false),
        "wide branch with result" => wide_branch(bytes, true),
        "wide branch of locals" => wide_branch_of_locals(bytes),
        "empty functions" => empty_functions(bytes, 0),
        "functions of locals" => empty_functions(bytes, 40_000),
        "equal names" => equal_names(bytes),
        declared => declarations(bytes, declared),
    }
}

const MODULES: [&str; 37] = [
    "unary chain",
    "constants",
    "stack of constants",
    "locals",
    "stack of locals",
    "conditional blocks",
    "empty conditionals",
    "two arms",
    "loops",
    "dead code",
    "exits",
    "tests",
    "nested blocks",
    "nested blocks left",
    "nested results",
    "nested loops",
    "nested dead loops",
    "nested conditionals",
    "loops around locals",
    "loops carrying locals",
    "joins of locals",
    "wide branch",
    "wide branch with result",
    "wide branch of locals",
    "empty functions",
    "functions of locals",
    "equal names",
    "types",
    "imports",
    "globals",
    "exports",
    "elements",
    "segments",
    "data",
    "names",
    "custom",
    "nothing",
];

/// Imports a module, and also returns the peak of the memory in use.
fn measured(bytes: &[u8]) -> (Result<Module, wasm::ImportError>, usize) {
    peak_of(|| wasm::import(bytes, &LIMITS))
}

/// The result of some work, and the peak of the memory in use.
fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = work();
    (result, ALLOCATOR.peak_usage() - before)
}

/// The sizes of modules, in bytes. Without optimization, the largest would take three quarters of
/// the time; the long judge `laws` has them.
fn sizes() -> &'static [usize] {
    let all = &[10_000, 300_000, 1_000_000, 3_500_000];
    if cfg!(debug_assertions) { &all[..3] } else { all }
}

#[test]
fn import_memory_is_bounded_by_the_input() {
    for what in MODULES {
        for &size in sizes() {
            let bytes = module_of(what, size);
            let (result, peak) = measured(&bytes);
            let bound = 64 * bytes.len() + (64 << 20);
            assert!(peak <= bound, "{what}: {} bytes took {peak}, more than {bound}", bytes.len());
            match result {
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::TooLarge, "{what}: {error}");
                    let quadratic = what == "loops carrying locals";
                    assert!(
                        quadratic || size > 10_000,
                        "{what}: refused at {} bytes: {error}",
                        bytes.len()
                    );
                }
            }
        }
    }
    offsets_are_within_the_bound();
    debug_info_costs_memory_in_proportion();
    false_counts_cost_nothing();
    long_functions_import();
    damage_costs_no_memory();
}

/// The offsets of instructions count as all memory of an import does.
fn offsets_are_within_the_bound() {
    for what in MODULES {
        for size in [10_000, 300_000] {
            let bytes = module_of(what, size);
            let (result, peak) = peak_of(|| wasm::import_with_offsets(&bytes, &LIMITS));
            let bound = 64 * bytes.len() + (64 << 20);
            assert!(peak <= bound, "{what}: {} bytes took {peak}, more than {bound}", bytes.len());
            if let Err(error) = result {
                assert_eq!(error.kind(), ErrorKind::TooLarge, "{what}: {error}");
            }
        }
    }
}

/// A line table of DWARF 5 without directories. Each file is a byte, and each row three.
fn wide_line_table(files: usize, rows: usize) -> Vec<u8> {
    let mut header = vec![1, 1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1];
    header.extend([1, 1, 0x0f, 0]); // directories: a path, which is a number; none
    header.extend([1, 1, 0x0f]);
    header.extend([files as u8 | 0x80, (files >> 7) as u8 | 0x80, (files >> 14) as u8 & 0x7f]);
    header.resize(header.len() + files, 0);
    // From the first body on, a byte further and a line further each time.
    let mut program = vec![0, 5, 2, 3, 0, 0, 0];
    program.extend([2, 0, 1].repeat(rows));
    program.extend([0, 1, 1]);
    let mut table = (8 + header.len() as u32 + program.len() as u32).to_le_bytes().to_vec();
    table.extend([5, 0, 4, 0]);
    table.extend((header.len() as u32).to_le_bytes());
    table.extend(header);
    table.extend(program);
    table
}

/// Few bytes of debug info claim many files, rows and tables.
fn debug_info_costs_memory_in_proportion() {
    for (files, rows) in [(500_000, 10), (100, 1_000_000)] {
        let table = wide_line_table(files, rows);
        let mut function = Function::new([]);
        function.instruction(&Instruction::End);
        let mut bytes = with_functions(&[function]);
        bytes.push(0);
        let custom = CustomSection { name: ".debug_line".into(), data: (&table).into() };
        wasm_encoder::Encode::encode(&custom, &mut bytes);
        let (module, offsets) = wasm::import_with_offsets(&bytes, &LIMITS).expect("a module");
        let (func, _) = module.defined().next().expect("a function");
        let (map, peak) = peak_of(|| {
            let map = wasm::SourceMap::new(&bytes, offsets);
            assert_eq!(map.start_of(func), None);
            map
        });
        assert!(map.notes().next().is_some(), "{files} files, {rows} rows");
        assert!(peak < 256 * bytes.len(), "{files} files, {rows} rows: {peak}");
    }
}

/// A function of straight code, as from an unrolled loop of a compiler: 2.5 bytes for each
/// instruction. With tables that double, 200,000 instructions exceeded the limit.
fn long_functions_import() {
    let mut before = None;
    for count in [50_000, 100_000, 200_000, 400_000, 800_000] {
        let bytes = one_function(8, |function| {
            for n in 0..count / 5 {
                function.instruction(&Instruction::LocalGet(n % 8));
                function
                    .instruction(&Instruction::I32Const(0x1234))
                    .instruction(&Instruction::I32Xor);
                function.instruction(&Instruction::I32Const(7)).instruction(&Instruction::I32ShrU);
                function.instruction(&Instruction::LocalTee((n + 1) % 8));
                function.instruction(&Instruction::I32Eqz).instruction(&Instruction::Drop);
            }
        });
        let (result, peak) = measured(&bytes);
        result.unwrap_or_else(|error| panic!("{count} instructions: {error}"));
        let bound = 64 * bytes.len() + (64 << 20);
        assert!(peak <= bound, "{count} instructions took {peak}, more than {bound}");
        assert!(peak <= count as usize * 260, "{count} instructions took {peak}");
        if let Some(before) = before.replace(peak) {
            assert!(10 * peak <= 23 * before, "{count} instructions took {peak}, half {before}");
        }
    }
}

/// Damaged modules claim sizes of every kind. Their import keeps the bound.
fn damage_costs_no_memory() {
    let modules: Vec<Vec<u8>> =
        MODULES.iter().map(|what| module_of(what, 2_000)).chain([CALLS.to_vec()]).collect();
    let mut random = damage::Random::new(1);
    let (mut accepted, mut refused) = (0, 0);
    for module in &modules {
        for _ in 0..300 {
            let other = &modules[random.below(modules.len())];
            let bytes = damage::damaged(module, other, &mut random);
            let (result, peak) = measured(&bytes);
            let bound = 64 * bytes.len() + (8 << 20);
            assert!(peak <= bound, "{} bytes took {peak}", bytes.len());
            match result {
                Ok(_) => accepted += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(accepted > 500 && refused > 500, "{accepted} accepted, {refused} refused");
}

/// Sections that claim the most items for which the validator allocates memory, but are empty.
fn false_counts_cost_nothing() {
    for section in (1..=12).filter(|id| *id != 8) {
        let mut bytes = wasm_encoder::Module::HEADER.to_vec();
        bytes.extend([section, 3, 0xc0, 0x84, 0x3d]); // a million
        let (result, peak) = measured(&bytes);
        assert!(result.is_err(), "section {section}");
        assert!(peak < 100_000, "section {section}: {peak} bytes");
    }
}
