//! Printed text reads back as the same module.

use crate::text::random::random_module;
use crate::text::{SAMPLE, check_any_text, parse};
use osier_ir::text::{
    FunctionText, parse_module, parse_module_with_lines, print_inst, print_module,
};
use osier_ir::{
    Block, Func, Function, FunctionBuilder, Global, Imm, Inst, Memory, Module, Opcode, Signature,
    TrapKind, Type, Value,
};
use proptest::prelude::*;

#[test]
fn sample_is_a_fixpoint() {
    let sample = SAMPLE.replace(r"\22\5c", r#"\"\\"#);
    let printed = print_module(&parse(&sample));
    assert_eq!(printed, sample);
    assert_eq!(print_module(&parse(SAMPLE)), sample, "other escapes read as the same bytes");
}

#[test]
fn expected_output_is_not_part_of_the_module() {
    let printed = print_module(&parse(SAMPLE));
    assert_eq!(print_module(&parse(&format!("{SAMPLE};= text\n{printed}"))), printed);
    assert_eq!(print_module(&parse(";= actions\na1 nonsense\n")), "");
    assert_eq!(print_module(&parse("\u{feff};= actions\na1 nonsense\n")), "");
    assert_eq!(print_module(&parse(&format!("; = no such line\n ;= nor this\n{SAMPLE}"))), printed);
}

/// The values of a function in the order of their definitions.
fn definitions(function: &Function) -> Vec<Value> {
    let of_block = |b| {
        let results = function.block_insts(b).flat_map(|i| function.inst(i).results.clone());
        function.block_params(b).iter().copied().chain(results).collect::<Vec<_>>()
    };
    function.blocks().flat_map(of_block).collect()
}

/// Asserts that two functions are equal except for ids and names.
fn assert_alike(first: &Function, second: &Function) {
    assert_eq!(first.signature(), second.signature());
    assert_eq!(first.block_count(), second.block_count());
    let types = |f: &Function| definitions(f).iter().map(|v| f.value_type(*v)).collect::<Vec<_>>();
    assert_eq!(types(first), types(second));
    let number = |f: &Function, v: &Value| definitions(f).iter().position(|d| d == v);
    let place = |f: &Function, b: &Block| f.blocks().position(|c| c == *b);
    for (a, b) in first.all_insts().zip(second.all_insts()) {
        let (a, b) = (first.inst(a), second.inst(b));
        assert_eq!((a.opcode, a.ty), (b.opcode, b.ty));
        if !matches!(a.imm, Imm::Indirect(..)) {
            assert_eq!(
                a.imm, b.imm,
                "ids of module entities are kept; those of signatures are not"
            );
        }
        let operands = |f: &Function, d: &osier_ir::InstData| {
            d.operands().map(|v| number(f, &v)).collect::<Vec<_>>()
        };
        assert_eq!(operands(first, a), operands(second, b));
        let targets = |f: &Function, d: &osier_ir::InstData| {
            d.targets.iter().map(|t| (place(f, &t.block), t.args.len())).collect::<Vec<_>>()
        };
        assert_eq!(targets(first, a), targets(second, b));
    }
}

/// Asserts that names survive printing and parsing. A unique name that is not a default name must
/// survive.
fn assert_names_kept(first: &Function, second: &Function) {
    let named = |f: &Function, v: Value| f.value_name(v).map(str::to_owned);
    let values = definitions(first);
    for (a, b) in values.iter().zip(definitions(second)) {
        let Some(name) = named(first, *a) else {
            continue;
        };
        let alone =
            values.iter().filter(|v| named(first, **v).as_ref() == Some(&name)).count() == 1;
        if alone && name != b.to_string() {
            assert_eq!(named(second, b), Some(name));
        }
    }
}

proptest! {
    #[test]
    fn modules_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..1500)) {
        let module = random_module(&bytes);
        let text = print_module(&module);
        let again = parse(&text);
        prop_assert_eq!(print_module(&again), text);
        for (func, body) in module.defined() {
            let other = again.body(func).expect("a body is read back under its id");
            assert_alike(body, other);
            assert_names_kept(body, other);
        }
        prop_assert_eq!(&again.exports, &module.exports);
        prop_assert_eq!(&again.data, &module.data);
        prop_assert_eq!(&again.elements, &module.elements);
        prop_assert_eq!(again.start, module.start);
    }

    #[test]
    fn texts_that_parse_print_as_a_fixpoint(
        edits in proptest::collection::vec((any::<u16>(), any::<u16>(), 0..6u8), 0..4),
    ) {
        let mut lines: Vec<&str> = SAMPLE.lines().collect();
        let mut words = String::new();
        for (from, to, kind) in &edits {
            let (from, to) = (*from as usize % lines.len(), *to as usize % lines.len());
            match kind {
                0 => lines.swap(from, to),
                1 => { lines.remove(from); }
                2 => lines.insert(to, lines[from]),
                _ => words.push_str(lines[from]),
            }
        }
        let text = lines.join("\n");
        check_any_text(&text);
        // Inserts a word of one line into another line.
        let piece: String = words.split_whitespace().nth(edits.len()).unwrap_or("").to_owned();
        check_any_text(&text.replacen("%a", &piece, edits.len()));
    }

    #[test]
    fn any_characters_are_refused_or_read(text in "[-%@a-z0-9.:,;(){}\\[\\]=+\"\\\\\u{e9} \n]{0,200}") {
        check_any_text(&text);
        check_any_text(&format!("func @f(%a: i32) {{\nb:\n{text}\n  return\n}}\n"));
    }
}

#[test]
fn default_names_are_not_kept() {
    let module = parse("func @f(%v0: i32, %v7: i32) -> i32 {\nblock0:\n  return %v7\n}\n");
    let body = module.body(Func::from_u32(0)).expect("f has a body");
    assert_eq!(body.value_name(body.arguments()[0]), None, "it is what the id prints as");
    assert_eq!(body.value_name(body.arguments()[1]), Some("v7"), "v7 is another id");
    assert_eq!(body.block_name(body.entry()), None);
}

#[test]
fn name_clashes_get_the_first_free_suffix() {
    let mut builder = FunctionBuilder::new("f", Signature::new(&[Type::I32; 5], &[]));
    let block = builder.create_block();
    let values: Vec<Value> = (0..5).map(|_| builder.append_param(block, Type::I32)).collect();
    for (value, name) in values.iter().zip(["x", "x", "x.1", "v4"]) {
        builder.name_value(*value, name);
    }
    builder.switch_to(block);
    let inst = builder.ret(&values);
    let function = builder.finish().expect("one terminated block").function;
    assert_eq!(print_inst(&Module::new(), &function, inst), "return %x, %x.2, %x.1, %v4, %v4.1");
}

#[test]
fn a_hundred_thousand_equal_names_are_resolved() {
    // Trying every suffix for every name would take 10^10 steps.
    let mut builder = FunctionBuilder::new("f", Signature::default());
    let block = builder.create_block();
    builder.switch_to(block);
    for _ in 0..100_000 {
        let value = builder.constant(Type::I32, 1);
        builder.name_value(value, "x");
    }
    builder.ret(&[]);
    let function = builder.finish().expect("one terminated block").function;
    let module = Module::new();
    let text = FunctionText::new(&module, &function);
    assert_eq!(text.inst(Inst::from_u32(99_999)), "%x.99999 = const.i32 1");
    assert_eq!(text.inst_up_to(Inst::from_u32(99_999), 10), "%x.99999 =...");
}

#[test]
fn floats_print_shortest_and_read_back() {
    let cases: &[(&str, u64)] = &[
        ("0.1", 0.1f64.to_bits()),
        ("1e300", 1e300f64.to_bits()),
        ("5e-324", 1),
        ("-0.0", (-0.0f64).to_bits()),
        ("inf", f64::INFINITY.to_bits()),
        ("-inf", f64::NEG_INFINITY.to_bits()),
        ("nan:0xfff0000000000001", 0xfff0_0000_0000_0001),
        ("1.7976931348623157e308", f64::MAX.to_bits()),
    ];
    for (literal, bits) in cases {
        let text = format!("global @g: f64 = {literal}\n");
        let module = parse(&text);
        assert_eq!(module.globals[Global::from_u32(0)].init.known(), Some(*bits), "{literal}");
        assert_eq!(print_module(&module), text);
    }
    assert_eq!(
        parse("global @g: f32 = 3\n").globals[Global::from_u32(0)].init.known(),
        Some(u64::from(3f32.to_bits()))
    );
}

#[test]
fn integers_of_both_signs_and_bases_are_read() {
    let cases = [
        ("i8", "255", 0xff),
        ("i8", "-128", 0x80),
        ("i64", "-1", u64::MAX),
        ("i64", "0xffffffffffffffff", u64::MAX),
    ];
    for (ty, literal, bits) in cases {
        let module = parse(&format!("global @g: {ty} = {literal}"));
        assert_eq!(module.globals[Global::from_u32(0)].init.known(), Some(bits), "{literal}");
    }
}

#[test]
fn lines_of_instructions_are_known() {
    let text =
        "; a comment\r\nfunc @f() {\r\n\r\nb:\r\n  %c = const.i32 1 ; one\r\n  return\r\n}\r\n";
    let (_, lines) = parse_module_with_lines(text).expect("a good text");
    let line = |i| lines.line(Func::from_u32(0), Inst::from_u32(i));
    assert_eq!([line(0), line(1), line(2)], [Some(5), Some(6), None]);
}

/// The calls of the builder for instructions with an immediate, and the text of a function without
/// its module.
#[test]
fn a_function_prints_without_its_module() {
    let signature = Signature::new(&[Type::I32, Type::I64], &[Type::I64]);
    let mut b = FunctionBuilder::new("f", signature);
    let (entry, end) = (b.create_block(), b.create_block());
    let [at, address] = [Type::I32, Type::I64].map(|ty| b.append_param(entry, ty));
    b.switch_to(entry);
    let (memory, host) = (Memory::from_u32(0), Memory::from_u32(1));
    let low = b.load(Opcode::Uload8, Type::I64, memory, at, 0);
    let word = b.load(Opcode::Load, Type::F64, host, address, 8);
    b.store(Opcode::Store16, memory, at, 2, low);
    b.store(Opcode::Store, host, address, 16, word);
    let results = b.call(Func::from_u32(3), &[low], &[Type::I64, Type::I32]).to_vec();
    b.br_if(results[1], end, end);
    b.switch_to(end);
    b.trap(TrapKind::User(u32::MAX));
    let function = b.finish().expect("complete").function;
    let text = "func @f(%v0: i32, %v1: i64) -> i64 {
block0:
  %v2 = uload8.i64 @memory0[%v0]
  %v3 = load.f64 @memory1[%v1 + 8]
  store16.i64 @memory0[%v0 + 2], %v2
  store.f64 @memory1[%v1 + 16], %v3
  %v4, %v5 = call @func3(%v2)
  br_if %v5, block1, block1
block1:
  trap user4294967295
}
";
    assert_eq!(function.to_string(), text);
}

/// Marks of cold blocks stay, with parameters or without. A block may be named `cold`, and the
/// entry takes no mark.
#[test]
fn cold_blocks_round_trip() {
    let text = "func @f(%a: i32) -> () {\nentry:\n  br_if %a, aside, cold(%a)\naside cold:\n  \
                jump cold(%a)\ncold(%b: i32) cold:\n  return\n}\n";
    let module = parse(text);
    assert_eq!(print_module(&module), text);
    let function = module.body(Func::from_u32(0)).expect("a body");
    let marked = function.blocks().map(|block| function.is_cold(block));
    assert_eq!(marked.collect::<Vec<bool>>(), [false, true, true]);
    assert!(parse_module("func @f() {\nentry cold:\n  return\n}\n").is_err());
}

/// A mark of the entry would not parse, and every run goes through the entry.
#[test]
fn the_entry_is_never_cold() {
    let mut b = FunctionBuilder::new("f", Signature::new(&[], &[]));
    let entry = b.create_block();
    b.switch_to(entry);
    b.mark_cold(entry);
    b.ret(&[]);
    let text = "func @f() -> () {\nblock0:\n  return\n}\n";
    assert_eq!(b.function().to_string(), text);
    let function = b.finish().expect("complete").function;
    assert!(!function.is_cold(entry));
    assert_eq!(function.to_string(), text);
}
