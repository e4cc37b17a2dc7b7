//! Targets that read modules: WebAssembly, its text, the text form of the IR, and debug info.
//!
//! A module that is read goes through the whole library: its functions are optimized and proved,
//! and run with little fuel.

use super::input::InputBytes;
use interp::{Machine, NoHost, NoObserver};
use ir::Module;
use ir::text::{parse_module, print_module};
use osier::driver::{self, Vigilance, derive, prove};
use osier::{Format, Limits, load_with_source, load_within};
use osr::Level;
use passes::Pipeline;
use wasm::SourceMap;

/// The most bytes of an input. Longer inputs take long and show nothing more.
const MOST_BYTES: u64 = 1 << 16;
/// The most functions of a module that are optimized and run.
const FUNCTIONS: usize = 4;
/// The most instructions of a function that is optimized.
const INSTRUCTIONS: usize = 400;
/// The fuel of a run.
const FUEL: u64 = 20_000;

fn limits() -> Limits {
    Limits {
        input_bytes: MOST_BYTES,
        function_instructions: 1 << 14,
        run: run_limits(),
        ..Limits::default()
    }
}

fn run_limits() -> interp::Limits {
    interp::Limits { fuel: FUEL, memory_pages: 256, table_entries: 1 << 16, ..Default::default() }
}

/// Puts a module through the library.
///
/// # Panics
/// If a part of the library has a bug.
fn put_through(module: &Module) {
    let text = print_module(module).to_string();
    let again = parse_module(&text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    assert_eq!(print_module(&again).to_string(), text, "the text is not a fixpoint");
    let bodies = module.defined().filter(|(_, body)| body.inst_count() <= INSTRUCTIONS);
    for (_, base) in bodies.take(FUNCTIONS) {
        let pipeline = Pipeline::default();
        let derived = derive(module, base, &pipeline, Vigilance::On, &mut driver::NoObserver);
        let proved = prove(module, base, &derived, &[Level::Avail], &mut driver::NoObserver);
        // An entry that a certificate cannot justify is undecided. A refuted one is a wrong entry.
        let checked = proved.checked();
        assert_eq!(checked.refuted, 0, "@{}: {checked:?}\n{text}", base.name());
    }
    let Ok(mut machine) = Machine::new(module, run_limits()) else { return };
    for (func, _) in module.defined().take(FUNCTIONS) {
        let arguments = vec![3; module.signature(func).params.len()];
        machine.set_fuel(FUEL);
        drop(machine.invoke(func, &arguments, &mut NoHost, &mut NoObserver));
    }
}

/// A binary module, with its debug info.
pub(super) fn module_bytes(data: &[u8]) {
    if let Ok((module, _)) = load_with_source(Format::Wasm, data, &limits()) {
        put_through(&module);
    }
}

/// The text of WebAssembly.
pub(super) fn wat_text(data: &[u8]) {
    if let Ok(module) = load_within(Format::Wat, data, &limits()) {
        put_through(&module);
    }
}

/// The text form of the IR.
pub(super) fn oir_text(data: &[u8]) {
    if let Ok(module) = load_within(Format::Oir, data, &limits()) {
        put_through(&module);
    }
}

/// The names of the sections of [`debug_info`], in order.
const DEBUG_SECTIONS: [&str; 6] = [
    ".debug_abbrev",
    ".debug_info",
    ".debug_line",
    ".debug_str",
    ".debug_line_str",
    ".debug_ranges",
];

/// A module of one function without debug info: `(func (export "f") (param i32) (result i32)
/// (i32.add (i32.mul (local.get 0) (local.get 0)) (i32.const 7)))`.
const ONE_FUNCTION: [u8; 42] = [
    0, b'a', b's', b'm', 1, 0, 0, 0, // magic and version
    1, 6, 1, 0x60, 1, 0x7f, 1, 0x7f, // types
    3, 2, 1, 0, // functions
    7, 5, 1, 1, b'f', 0, 0, // exports
    10, 13, 1, 11, 0, 0x20, 0, 0x20, 0, 0x6c, 0x41, 7, 0x6a, 0x01, 0x0b, // code
];

/// An unsigned number in LEB128.
fn leb(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The sections of debug info of one module, each behind its length in two bytes. The frame of the
/// module is right, so the readers of the sections see all bytes.
pub(super) fn debug_info(data: &[u8]) {
    let (module, source) = with_debug_info(data);
    for (func, body) in module.defined() {
        let _ = (source.start_of(func), source.name_of(func));
        for inst in body.all_insts() {
            let _ = source.of(func, inst);
        }
    }
    assert!(source.notes().count() <= 16, "notes are bounded");
}

/// The module of one function with sections of debug info.
pub(super) fn with_debug_info(data: &[u8]) -> (Module, SourceMap) {
    let mut choices = InputBytes::new(data);
    let mut bytes = ONE_FUNCTION.to_vec();
    for name in DEBUG_SECTIONS {
        let length = usize::from(choices.word());
        let contents = choices.take(length);
        bytes.push(0);
        leb(&mut bytes, 1 + name.len() + contents.len());
        leb(&mut bytes, name.len());
        bytes.extend(name.as_bytes());
        bytes.extend(contents);
    }
    let limits = Limits { input_bytes: 1 << 20, ..limits() };
    let (module, source) =
        load_with_source(Format::Wasm, &bytes, &limits).expect("custom sections do no harm");
    (module, source.expect("it has a section `.debug_line`"))
}

/// Modules in the text of WebAssembly.
const WAT: [&str; 3] = [
    r#"(module (memory 1) (func (export "f") (param i32) (result i32) (local i32)
  (loop (local.set 1 (i32.add (local.get 1) (i32.load (local.get 0))))
    (i32.store offset=8 (local.get 0) (local.get 1))
    (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
  (local.get 1)))"#,
    r#"(module (type $t (func (param i64) (result i64))) (table 2 funcref) (global $g (mut i64) (i64.const 5))
  (elem (i32.const 0) $a $b)
  (func $a (type $t) (global.set $g (i64.mul (local.get 0) (global.get $g))) (global.get $g))
  (func $b (type $t) (i64.div_s (i64.const 9) (local.get 0)))
  (func (export "f") (param i32) (result i64) (call_indirect (type $t) (i64.const 3) (local.get 0))))"#,
    r#"(module (func (export "f") (param f64 i32) (result f64)
  (block (block (block (br_table 0 1 2 (local.get 1))) (return (f64.sqrt (local.get 0))))
    (unreachable)) (select (f64.const nan) (f64.neg (local.get 0)) (i32.eqz (local.get 1)))))"#,
];

pub(super) fn wat_seeds() -> Vec<Vec<u8>> {
    WAT.iter().map(|text| text.as_bytes().to_vec()).collect()
}

pub(super) fn oir_seeds() -> Vec<Vec<u8>> {
    let modules = WAT.iter().map(|text| load_within(Format::Wat, text.as_bytes(), &limits()));
    modules
        .map(|module| print_module(&module.expect("a module")).to_string().into_bytes())
        .collect()
}

pub(super) fn module_seeds() -> Vec<Vec<u8>> {
    vec![ONE_FUNCTION.to_vec()]
}

/// One line of a line table of DWARF 4, in the form of [`debug_info`].
pub(super) fn debug_info_seeds() -> Vec<Vec<u8>> {
    let header = [
        1, 1, 1, 0xfb, 14, 13, // lengths of operations, and of rows
        0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, // operands of standard operations
        0, b'a', b'.', b'c', 0, 0, 0, 0, 0, // no folder, one file
    ];
    let rows = [0, 5, 2, 3, 0, 0, 0, 0x14, 0x4b, 2, 6, 0, 1, 1];
    let mut table = vec![4, 0];
    table.extend((header.len() as u32).to_le_bytes());
    table.extend(header);
    table.extend(rows);
    let mut line = (table.len() as u32).to_le_bytes().to_vec();
    line.extend(table);
    let mut seed = vec![0, 0, 0, 0];
    seed.extend((line.len() as u16).to_le_bytes());
    seed.extend(line);
    vec![seed]
}

pub(super) fn module_words() -> Vec<Vec<u8>> {
    let names = ["memory", "_start", "name", "producers", "wasi_snapshot_preview1"];
    let sections = DEBUG_SECTIONS.iter().chain(&names).map(|name| name.as_bytes().to_vec());
    let numbers: [&[u8]; 4] =
        [b"\0asm\x01\0\0\0", &[0xff, 0xff, 0xff, 0xff, 0x0f], &[0x80, 0x80, 0x04], &[0xfc, 0x0a]];
    sections.chain(numbers.map(<[u8]>::to_vec)).collect()
}

pub(super) fn wat_words() -> Vec<Vec<u8>> {
    let words = "(module (func (param (result (local (memory (table (global (elem (data (type \
                 (import (export (block (loop (if (then (else br br_if br_table call call_indirect \
                 return unreachable select drop i32 i64 f32 f64 funcref externref mut offset= nan \
                 inf i32.const i64.const f64.const local.get local.set local.tee global.get \
                 i32.load i64.store8 memory.grow memory.copy table.set ref.null i32.rem_s \
                 i64.div_u i32.trunc_sat_f64_u f32.min 0x7fffffff -1";
    words.split_whitespace().map(|word| word.as_bytes().to_vec()).collect()
}
