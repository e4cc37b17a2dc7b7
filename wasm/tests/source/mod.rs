//! Lines of the source and names of functions, from modules that clang made with debug info.
//! `source_programs/build` builds them.

mod damaged;
mod operators;

use ir::{Func, Module};
use std::path::Path;
use wasm::{ImportLimits, SourceMap};

const MODULES: [&str; 3] = ["spans.dwarf4", "spans.dwarf5", "shapes"];

fn bytes(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/source_programs");
    std::fs::read(folder.join(format!("{name}.wasm"))).expect("the module is in the repository")
}

fn imported(bytes: &[u8]) -> (Module, SourceMap) {
    let imported = wasm::import_with_offsets(bytes, &ImportLimits::default());
    let (module, offsets) = imported.expect("debug info does not matter to the import");
    (module, SourceMap::new(bytes, offsets))
}

fn func(module: &Module, name: &str) -> Func {
    module.lookup(name).unwrap_or_else(|| panic!("no function {name}"))
}

/// The instructions of a function, each with its line.
fn listing(module: &Module, map: &SourceMap, func: Func) -> String {
    let body = module.body(func).expect("the module defines it");
    let mut lines = String::new();
    for inst in body.blocks().flat_map(|block| body.block_insts(block)) {
        let line = map.of(func, inst).map_or("-".to_owned(), |line| line.to_string());
        lines += &format!("{line:<16} {}\n", body.inst(inst).opcode.name());
    }
    lines
}

#[test]
fn instructions_have_the_lines_that_clang_wrote() {
    let listings = ["spans.dwarf4", "spans.dwarf5"].map(|name| {
        let (module, map) = imported(&bytes(name));
        let listings = ["fill", "hidden", "spans"].map(|name| {
            let func = func(&module, name);
            let start = map.start_of(func).expect("clang names it").to_string();
            format!("@{name}, at {start}\n{}", listing(&module, &map, func))
        });
        assert_eq!(map.notes().next(), None);
        listings.join("\n")
    });
    assert_eq!(listings[0], listings[1], "DWARF 4 and 5 tell the same");
    insta::assert_snapshot!(listings[0]);
}

/// The bytes of a module without its sections of this name.
fn without(bytes: &[u8], section: &str) -> Vec<u8> {
    let (mut rest, mut at) = (bytes[..8].to_vec(), 8);
    for payload in wasmparser::Parser::new(0).parse_all(bytes) {
        let payload = payload.expect("a module");
        let Some((_, range)) = payload.as_section() else { continue };
        let is_it = matches!(
            &payload,
            wasmparser::Payload::CustomSection(custom) if custom.name() == section
        );
        let end = range.end as usize;
        if !is_it {
            rest.extend_from_slice(&bytes[at..end]);
        }
        at = end;
    }
    rest
}

#[test]
fn functions_without_names_have_those_of_the_source() {
    let names = |name: &str| {
        let (module, map) = imported(&without(&bytes(name), "name"));
        let pairs: Vec<String> = module
            .defined()
            .map(|(func, body)| format!("{} {}", body.name(), map.name_of(func).unwrap_or("-")))
            .collect();
        assert_eq!(map.notes().next(), None);
        pairs.join(", ")
    };
    insta::assert_snapshot!(names("spans.dwarf4"), @"func0 fill, func1 hidden, func2 spans");
    insta::assert_snapshot!(names("spans.dwarf5"), @"func0 fill, func1 hidden, func2 spans");
    // The definition of `area` stands outside of its class, which has the name.
    insta::assert_snapshot!(names("shapes"), @"func0 total, func1 area, func2 run");
}

#[test]
fn a_module_without_debug_info_has_no_lines() {
    let bytes = without(&bytes("spans.dwarf5"), ".debug_line");
    assert!(!SourceMap::has_lines(&bytes));
    let (module, map) = imported(&bytes);
    for (func, body) in module.defined() {
        assert!(body.all_insts().all(|inst| map.of(func, inst).is_none()));
        assert_eq!(map.start_of(func), None);
    }
    assert_eq!(map.notes().next(), None);
    assert!(SourceMap::has_lines(&self::bytes("shapes")));
    assert!(!SourceMap::has_lines(b"\0asm"));
    assert!(!SourceMap::has_lines(b"func @f() {}"));
}
