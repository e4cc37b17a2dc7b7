//! Lines of the source and names of functions, from modules that clang made with debug info.
//! `source_programs/build` builds them.

mod damaged;
mod operators;

use ir::text::ModuleText;
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

