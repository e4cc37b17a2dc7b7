//! Every instruction comes from an operator that makes such instructions.

use super::*;
use ir::Opcode;
use ir::text::print_module;
use wasmparser::{BinaryReader, FunctionBody, Parser, Payload};

/// The contents of the code section.
fn code(bytes: &[u8]) -> &[u8] {
    let payloads = Parser::new(0).parse_all(bytes).map(|payload| payload.expect("a module"));
    let range = payloads.filter_map(|payload| match payload {
        Payload::CodeSectionStart { unchecked_range, .. } => Some(unchecked_range),
        _ => None,
    });
    let range = { range }.next().expect("a code section");
    &bytes[range.start as usize..range.end as usize]
}

/// The name of the operator at an offset of the code section, such as `i32.const`.
fn operator_at(code: &[u8], offset: u32) -> String {
    let reader = BinaryReader::new(&code[offset as usize..], 0);
    let operator = wasmparser::OperatorsReader::new(reader).read().expect("an operator");
    let text = format!("{operator:?}");
    text.split([' ', '(']).next().expect("a name").to_owned()
}

/// Whether an instruction of this opcode may come from an operator.
fn may_come_from(opcode: Opcode, operator: &str) -> bool {
    let name = opcode.name();
    match opcode {
        Opcode::Const => {
            operator.ends_with("Const") || operator == "RefFunc" || operator == "RefNull"
        }
        Opcode::Jump => {
            ["Br", "Else", "End", "Loop"].contains(&operator)
                // The exit of a block that a conditional branch or a table left open.
                || ["BrIf", "BrTable"].contains(&operator)
        }
        Opcode::BrIf => ["If", "BrIf"].contains(&operator),
        Opcode::Switch => operator == "BrTable",
        Opcode::Return => ["Return", "Br", "End"].contains(&operator),
        Opcode::Trap => operator == "Unreachable",
        Opcode::Select => ["Select", "TypedSelect"].contains(&operator),
        _ if name.starts_with("load") => operator.contains("Load"),
        _ if name.starts_with("store") => operator.contains("Store"),
        _ if operator.starts_with(['I', 'F']) => {
            // `udiv` from `I32DivU`: the letters of the operation without sign and type.
            let operation = name.trim_start_matches(['s', 'u', 'f']);
            let operation = operation.get(..2).unwrap_or(operation);
            let differ =
                ["xtend", "wrap", "float_from", "bitcast", "promote", "demote", "int_from"];
            operator.to_lowercase().contains(operation)
                || differ.iter().any(|differ| name.contains(differ))
        }
        _ => operator.to_lowercase() == name.replace('_', ""),
    }
}

/// Whether a function has an operator at an offset.
fn operator_starts(body: FunctionBody<'_>) -> Vec<u64> {
    let mut reader = body.get_operators_reader().expect("operators");
    let mut starts = Vec::new();
    while !reader.eof() {
        starts.push(reader.read_with_offset().expect("an operator").1);
    }
    starts
}

#[test]
fn instructions_come_from_operators_that_make_them() {
    let (mut noted, mut all) = (0, 0);
    for (name, file) in crate::corpus::kernels() {
        let bytes = std::fs::read(&file).expect("a kernel");
        let (module, offsets) =
            wasm::import_with_offsets(&bytes, &ImportLimits::default()).expect("a kernel");
        let code = code(&bytes);
        for (func, body) in module.defined() {
            let range = offsets.body(func).expect("it has a body");
            let slice = &code[range.start as usize..range.end as usize];
            let body_reader = FunctionBody::new(BinaryReader::new(slice, u64::from(range.start)));
            let starts = operator_starts(body_reader);
            for inst in body.all_insts() {
                all += 1;
                let opcode = body.inst(inst).opcode;
                let Some(offset) = offsets.of(func, inst) else {
                    // A zero for locals that are not set on every path.
                    assert_eq!(opcode, Opcode::Const, "{name} @{} {inst}", body.name());
                    continue;
                };
                noted += 1;
                assert!(starts.binary_search(&offset.into()).is_ok(), "{name} {inst} at {offset}");
                let operator = operator_at(code, offset);
                let fits = may_come_from(opcode, &operator);
                assert!(fits, "{name} @{} {inst} {opcode:?}: {operator}", body.name());
            }
        }
    }
    assert!(noted > 20_000 && noted * 100 > all * 95, "{noted} of {all}");
}

/// The jump out of a block that a branch left open has the offset of that branch.
#[test]
fn a_jump_that_comes_later_has_the_operator_that_left() {
    let text = "(module (memory 1) (func (param i32) (result i32)
        (block $out
          (block $in
            (br_if $in (local.get 0))
            (i32.store (i32.const 0) (i32.const 5))
            (br $out))
          (i32.store (i32.const 4) (i32.const 6)))
        (i32.const 1)))";
    let bytes = wat(text);
    let (module, offsets) =
        wasm::import_with_offsets(&bytes, &ImportLimits::default()).expect("a module");
    let (func, body) = module.defined().next().expect("a function");
    let jumps = body.all_insts().filter(|inst| body.inst(*inst).opcode == Opcode::Jump);
    let operators: Vec<String> = jumps
        .map(|jump| operator_at(code(&bytes), offsets.of(func, jump).expect("noted")))
        .collect();
    insta::assert_snapshot!(operators.join(" "), @"Br End");
}

fn wat(text: &str) -> Vec<u8> {
    let buffer = wast::parser::ParseBuffer::new(text).expect("text");
    let mut wat = wast::parser::parse::<wast::Wat<'_>>(&buffer).expect("a module");
    wat.encode().expect("a module")
}

#[test]
fn noting_offsets_changes_nothing() {
    for (name, file) in crate::corpus::kernels() {
        let bytes = std::fs::read(&file).expect("a kernel");
        let plain = wasm::import(&bytes, &ImportLimits::default()).expect("a kernel");
        for threads in [1, 3] {
            let limits = ImportLimits { threads, ..ImportLimits::default() };
            let (noted, offsets) = wasm::import_with_offsets(&bytes, &limits).expect("a kernel");
            assert_eq!(print_module(&plain), print_module(&noted), "{name}");
            for (func, body) in plain.defined() {
                let history = noted.body(func).map(|body| body.history());
                assert_eq!(history, Some(body.history()), "{name} @{}", body.name());
            }
            assert_eq!(offsets.funcs().count(), plain.defined().count(), "{name}");
        }
    }
}
