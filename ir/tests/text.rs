//! The laws of the text form, and located errors for texts that are none.

use osier_ir::module::{
    DataSegment, ElementSegment, Export, External, FuncDecl, GlobalDecl, ImportName, MemoryDecl, TableDecl,
};
use osier_ir::text::{
    FunctionText, MAX_ERRORS, ParseError, parse_module, parse_module_with_lines, print_inst, print_module,
};
use osier_ir::verifier::verify_module;
use osier_ir::{
    Block, Data, Elem, Func, Function, FunctionBuilder, Global, Imm, Inst, InstSpec, Memory, Module, Opcode, Shape,
    Signature, Table, Target, TrapKind, Type, Value,
};
use proptest::prelude::*;

/// A module that has every kind of item and of operand syntax, as the printer writes it.
const SAMPLE: &str = r#"memory @mem 1 16
memory @"weird name\u{1b}" 0
table @t 10
global @g: mut i32 = 5
global @pi: f64 = 3.141592653589793
export "run \"me\"" @main
start @init
import func @fd_write "wasi_snapshot_preview1" "fd_write" (i32, i32) -> i32
func @init() -> () {
block0:
  return
}
func @main(%a: i32, %b: i64) -> (i32, i64) {
entry:
  %x = const.i32 -5
  %f = const.f64 1.5
  %nan = const.f32 nan:0x7fc00001
  %inf = const.f32 -inf
  %zero = const.f64 -0.0
  %sum = add.i32 %a, %x
  %wide = sextend.i64 %sum
  %v = load.i32 @mem[%a + 8]
  %w = uload8.i64 @mem[%a]
  store8.i32 @mem[%a + 3], %v
  %size = memory_size @mem
  %before = memory_grow @mem, %size
  %g = global_get.i32 @g
  global_set.i32 @g, %v
  %r = call @fd_write(%a, %x)
  %p, %q = call @main(%a, %b)
  call @init()
  %i = call_indirect @t (i32) -> i32 [%a](%x)
  call_indirect @t () -> () [%a]()
  %s = select.i32 %a, %x, %later
  br_if %s, then(%a), "1 odd"
then(%c: i32):
  switch %c, [then(%a), other], default done(%c, %b)
other:
  switch %a, [], default done(%a, %b)
"1 odd":
  %later = const.i32 7
  jump last
done(%m: i32, %n: i64):
  return %m, %n
last:
  trap user7
}
elem @t 1 [@main, null]
data @mem 1024 "escaped\00\ffbytes\22\5c"
"#;

fn parse(text: &str) -> Module {
    parse_module(text).unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]))
}

fn errors(text: &str) -> Vec<ParseError> {
    match parse_module(text) {
        Ok(_) => panic!("parses: {text}"),
        Err(errors) => errors,
    }
}

#[test]
fn sample_is_a_fixpoint() {
    let sample = SAMPLE.replace(r"\22\5c", r#"\"\\"#);
    let printed = print_module(&parse(&sample));
    assert_eq!(printed, sample);
    assert_eq!(print_module(&parse(SAMPLE)), sample, "other escapes read as the same bytes");
}

// ---- what is printed ----

/// Numbers drawn from bytes; zero when they run out. Proptest shrinks the bytes.
struct Draw<'a> {
    bytes: &'a [u8],
}

impl Draw<'_> {
    fn below(&mut self, bound: usize) -> usize {
        let Some((first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        *first as usize % bound
    }

    fn of<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }

    fn ty(&mut self) -> Type {
        *self.of(&Type::ALL)
    }

    fn bits(&mut self, ty: Type) -> u64 {
        let whole = (0..8).fold(0, |bits, _| bits << 8 | self.below(256) as u64);
        let special = [0, 1, u64::MAX, 1 << 63, 1 << 31, 0x7ff0_0000_0000_0000, 0x7f80_0000, 0x7fc0_0000, whole, whole];
        self.of(&special) & ty.mask()
    }
}

/// Names that clash, look like defaults or like syntax, or cannot stand bare.
const NAMES: &[&str] = &[
    "x",
    "x",
    "x.1",
    "v0",
    "v1",
    "v3",
    "v03",
    "v4294967295",
    "block0",
    "block2",
    "",
    " ",
    "a b",
    "jump",
    "inf",
    "-inf",
    "7up",
    "-",
    "a-",
    "a->b",
    "%",
    "\"",
    "\\",
    ";",
    "\n",
    "\u{0}",
    "\u{202e}rtl",
    "é",
    "日本",
    "i32",
    "}",
    "func",
    "default",
    "\u{301}",
];

fn types(draw: &mut Draw<'_>) -> Vec<Type> {
    (0..draw.below(4)).map(|_| draw.ty()).collect()
}

/// A module from bytes: structure that holds, types that need not.
fn random_module(bytes: &[u8]) -> Module {
    let draw = &mut Draw { bytes };
    let mut module = Module::new();
    let mut names: Vec<&str> = NAMES.to_vec();
    names.dedup();
    for name in names.iter().take(1 + draw.below(6)) {
        let max_pages = if draw.below(2) == 0 { None } else { Some(9) };
        let import = |draw: &mut Draw<'_>| {
            let (module, field) = ((*draw.of(NAMES)).to_owned(), (*draw.of(NAMES)).to_owned());
            (draw.below(3) == 0).then_some(ImportName { module, field })
        };
        let memory =
            module.memories.push(MemoryDecl { name: (*name).into(), min_pages: 1, max_pages, import: import(draw) });
        let ty = *draw.of(&[Type::FuncRef, Type::ExternRef]);
        let table = TableDecl { ty, max_size: max_pages, import: import(draw), ..TableDecl::of_funcs(*name, 100) };
        let table = module.tables.push(table);
        let (ty, mutable, import) = (draw.ty(), draw.below(2) == 0, import(draw));
        // An imported global is not written with what it starts with.
        let init = if import.is_some() { 0 } else { draw.bits(ty) };
        let global = module.globals.push(GlobalDecl { name: (*name).into(), ty, mutable, init, import });
        for item in [External::Memory(memory), External::Table(table), External::Global(global)] {
            module.exports.push(Export { name: (*name).into(), item });
        }
    }
    let signatures: Vec<Signature> = (0..4).map(|_| Signature::new(&types(draw), &types(draw))).collect();
    let offset = draw.below(names.len());
    for index in 0..1 + draw.below(6) {
        let sig = module.sig(draw.of(&signatures));
        let name = names[(offset + index) % names.len()].to_owned();
        let field = (*draw.of(NAMES)).to_owned();
        let import = (draw.below(2) == 0).then(|| ImportName { module: name.clone(), field });
        module.funcs.push(FuncDecl { name, sig, import });
    }
    for func in module.funcs.keys() {
        if module.funcs[func].import.is_none() {
            module.bodies[func] = Some(random_function(&module, func, draw));
        }
        module.exports.push(Export { name: func.to_string(), item: External::Func(func) });
    }
    let bytes = (0..draw.below(20)).map(|_| draw.below(256) as u8).collect();
    module.data.push(DataSegment::active(Memory::from_u32(0), draw.bits(Type::I64), bytes));
    module.data.push(DataSegment { active: None, bytes: vec![7] });
    let funcs = vec![Some(Func::from_u32(0)), None];
    module.elements.push(ElementSegment::of_funcs(Table::from_u32(0), 3, &funcs));
    module.elements.push(ElementSegment { active: None, ..module.elements[0].clone() });
    let entries = vec![0, draw.bits(Type::ExternRef)];
    module.elements.push(ElementSegment { ty: Type::ExternRef, active: None, entries });
    module.start = Some(Func::from_u32(0));
    module
}

fn random_function(module: &Module, func: Func, draw: &mut Draw<'_>) -> Function {
    let signature = module.signature(func).clone();
    let mut builder = FunctionBuilder::new(&module.funcs[func].name, signature.clone());
    let mut values = Vec::new();
    let blocks: Vec<Block> = (0..1 + draw.below(4)).map(|_| builder.create_block()).collect();
    for (index, block) in blocks.iter().enumerate() {
        let params = if index == 0 { signature.params.to_vec() } else { types(draw) };
        values.extend(params.iter().map(|ty| builder.append_param(*block, *ty)));
    }
    for block in &blocks {
        builder.switch_to(*block);
        for _ in 0..draw.below(6) {
            let spec = random_inst(module, &values, draw, |op| !op.is_terminator(), &[]);
            let inst = builder.insert(spec);
            values.extend(builder.function().inst(inst).results.iter().copied());
        }
        let spec = random_inst(module, &values, draw, Opcode::is_terminator, &blocks);
        builder.insert(spec);
    }
    for value in values {
        if draw.below(2) == 0 {
            let name: &&str = draw.of(NAMES);
            builder.name_value(value, name);
        }
    }
    for block in blocks {
        if draw.below(2) == 0 {
            let name: &&str = draw.of(NAMES);
            builder.name_block(block, name);
        }
    }
    builder.finish().expect("every block is terminated")
}

fn random_inst(
    module: &Module,
    values: &[Value],
    draw: &mut Draw<'_>,
    wanted: impl Fn(Opcode) -> bool,
    blocks: &[Block],
) -> InstSpec {
    let opcodes: Vec<Opcode> = Opcode::ALL.iter().copied().filter(|op| wanted(*op)).collect();
    let mut opcode = *draw.of(&opcodes);
    let mut list = |draw: &mut Draw<'_>, count: usize| -> Vec<Value> {
        if values.is_empty() { Vec::new() } else { (0..count).map(|_| *draw.of(values)).collect() }
    };
    let ty = if opcode.has_type_suffix() { draw.ty() } else { Type::I32 };
    let memory = Memory::from_u32(draw.below(module.memories.len()) as u32);
    let global = Global::from_u32(draw.below(module.globals.len()) as u32);
    let table = Table::from_u32(draw.below(module.tables.len()) as u32);
    let (imm, count) = match opcode.shape() {
        Shape::Const => (Imm::Bits(draw.bits(ty)), 0),
        Shape::Load(_) => (Imm::Address(memory, draw.bits(Type::I64)), 1),
        Shape::Store(_) => (Imm::Address(memory, draw.below(2) as u64), 2),
        Shape::MemorySize => (Imm::Memory(memory), 0),
        Shape::MemoryGrow => (Imm::Memory(memory), 1),
        Shape::MemoryCopy => (Imm::Memories(memory, Memory::from_u32(0)), 3),
        Shape::MemoryFill => (Imm::Memory(memory), 3),
        Shape::MemoryInit => (Imm::MemoryData(memory, Data::from_u32(draw.below(256) as u32)), 3),
        Shape::DataDrop => (Imm::Data(Data::from_u32(1)), 0),
        Shape::TableSize => (Imm::Table(table), 0),
        Shape::TableGet => (Imm::Table(table), 1),
        Shape::TableSet | Shape::TableGrow => (Imm::Table(table), 2),
        Shape::TableFill => (Imm::Table(table), 3),
        Shape::TableCopy => (Imm::Tables(Table::from_u32(0), table), 3),
        Shape::TableInit => (Imm::TableElem(table, Elem::from_u32(draw.below(256) as u32)), 3),
        Shape::ElemDrop => (Imm::Elem(Elem::from_u32(1)), 0),
        Shape::GlobalGet => (Imm::Global(global), 0),
        Shape::GlobalSet => (Imm::Global(global), 1),
        Shape::Trap => (Imm::Trap(*draw.of(&[TrapKind::Unreachable, TrapKind::User(65535)])), 0),
        Shape::BrIf | Shape::Switch => (Imm::None, 1),
        Shape::Jump => (Imm::None, 0),
        Shape::Call | Shape::CallIndirect => return random_call(module, opcode, table, &mut list, draw),
        _ => (Imm::None, draw.below(4)),
    };
    let args = list(draw, count);
    let fixed = !matches!(opcode.shape(), Shape::Return) && (imm != Imm::None || opcode.is_terminator());
    if fixed && args.len() != count {
        // There is no value yet to use.
        opcode = if opcode.is_terminator() { Opcode::Return } else { Opcode::Add };
        return InstSpec::new(opcode, Type::I32, Imm::None, &[]);
    }
    let target_count = match opcode.shape() {
        Shape::Jump => 1,
        Shape::BrIf => 2,
        Shape::Switch => 1 + draw.below(4),
        _ => 0,
    };
    let mut spec = InstSpec::new(opcode, ty, imm, &args);
    for _ in 0..target_count {
        let count = draw.below(3);
        spec.targets.push(Target::new(*draw.of(blocks), &list(draw, count)));
    }
    spec
}

fn random_call(
    module: &Module,
    opcode: Opcode,
    table: Table,
    list: &mut impl FnMut(&mut Draw<'_>, usize) -> Vec<Value>,
    draw: &mut Draw<'_>,
) -> InstSpec {
    let func = Func::from_u32(draw.below(module.funcs.len()) as u32);
    let results = &module.signature(func).results;
    let args = list(draw, 2);
    match (opcode, args.is_empty()) {
        (Opcode::CallIndirect, false) => InstSpec::call_indirect(module.funcs[func].sig, table, &args, results),
        _ => InstSpec::call(func, &args, results),
    }
}

/// The values of a function in the order of their definitions.
fn definitions(function: &Function) -> Vec<Value> {
    let of_block = |b| {
        let results = function.block_insts(b).flat_map(|i| function.inst(i).results.clone());
        function.block_params(b).iter().copied().chain(results).collect::<Vec<_>>()
    };
    function.blocks().flat_map(of_block).collect()
}

/// Whether two functions are alike but for ids and names.
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
            assert_eq!(a.imm, b.imm, "ids of module entities are kept; those of signatures are not");
        }
        let operands = |f: &Function, d: &osier_ir::InstData| d.operands().map(|v| number(f, &v)).collect::<Vec<_>>();
        assert_eq!(operands(first, a), operands(second, b));
        let targets = |f: &Function, d: &osier_ir::InstData| {
            d.targets.iter().map(|t| (place(f, &t.block), t.args.len())).collect::<Vec<_>>()
        };
        assert_eq!(targets(first, a), targets(second, b));
    }
}

/// A name that no other value has, and that is no default, is printed as it is and read back.
fn assert_names_kept(first: &Function, second: &Function) {
    let named = |f: &Function, v: Value| f.value_name(v).map(str::to_owned);
    let values = definitions(first);
    for (a, b) in values.iter().zip(definitions(second)) {
        let Some(name) = named(first, *a) else {
            continue;
        };
        let alone = values.iter().filter(|v| named(first, **v).as_ref() == Some(&name)).count() == 1;
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
    fn what_parses_prints_as_a_fixpoint(edits in proptest::collection::vec((any::<u16>(), any::<u16>(), 0..6u8), 0..4)) {
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
        // A word of one line put into another.
        let piece: String = words.split_whitespace().nth(edits.len()).unwrap_or("").to_owned();
        check_any_text(&text.replacen("%a", &piece, edits.len()));
    }

    #[test]
    fn any_characters_are_refused_or_read(text in "[-%@a-z0-9.:,;(){}\\[\\]=+\"\\\\\u{e9} \n]{0,200}") {
        check_any_text(&text);
        check_any_text(&format!("func @f(%a: i32) {{\nb:\n{text}\n  return\n}}\n"));
    }
}

/// What holds for every text: errors are in it, and what parses prints as a fixpoint and can be verified.
fn check_any_text(text: &str) {
    match parse_module(text) {
        Ok(module) => {
            let printed = print_module(&module);
            assert_eq!(print_module(&parse(&printed)), printed);
            // Ill-typed or not: it must not panic.
            verify_module(&module);
        }
        Err(errors) => check_places(text, &errors),
    }
}

fn check_places(text: &str, errors: &[ParseError]) {
    assert!(!errors.is_empty() && errors.len() <= MAX_ERRORS);
    let places: Vec<(u32, u32)> = errors.iter().map(|e| (e.line(), e.column())).collect();
    assert!(places.is_sorted(), "errors come in the order of the text");
    let lines: Vec<&str> = text.strip_prefix('\u{feff}').unwrap_or(text).split('\n').collect();
    for error in errors {
        let line = lines[error.line() as usize - 1];
        assert!(error.column() as usize <= line.chars().count() + 1, "{error}");
        let shown = error.to_string();
        assert_eq!(shown.lines().count(), 3, "{shown}");
        assert!(shown.len() < 2000, "an error fits a screen");
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
    let function = builder.finish().expect("one terminated block");
    assert_eq!(print_inst(&Module::new(), &function, inst), "return %x, %x.2, %x.1, %v4, %v4.1");
}

#[test]
fn a_hundred_thousand_equal_names_are_resolved() {
    // Trying every suffix for every name would be 10^10 steps.
    let mut builder = FunctionBuilder::new("f", Signature::default());
    let block = builder.create_block();
    builder.switch_to(block);
    for _ in 0..100_000 {
        let value = builder.constant(Type::I32, 1);
        builder.name_value(value, "x");
    }
    builder.ret(&[]);
    let function = builder.finish().expect("one terminated block");
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
        assert_eq!(module.globals[Global::from_u32(0)].init, *bits, "{literal}");
        assert_eq!(print_module(&module), text);
    }
    assert_eq!(parse("global @g: f32 = 3\n").globals[Global::from_u32(0)].init, u64::from(3f32.to_bits()));
}

#[test]
fn integers_of_both_signs_and_bases_are_read() {
    let cases =
        [("i8", "255", 0xff), ("i8", "-128", 0x80), ("i64", "-1", u64::MAX), ("i64", "0xffffffffffffffff", u64::MAX)];
    for (ty, literal, bits) in cases {
        let module = parse(&format!("global @g: {ty} = {literal}"));
        assert_eq!(module.globals[Global::from_u32(0)].init, bits, "{literal}");
    }
}

#[test]
fn lines_of_instructions_are_known() {
    let text = "; a comment\r\nfunc @f() {\r\n\r\nb:\r\n  %c = const.i32 1 ; one\r\n  return\r\n}\r\n";
    let (_, lines) = parse_module_with_lines(text).expect("a good text");
    let line = |i| lines.line(Func::from_u32(0), Inst::from_u32(i));
    assert_eq!([line(0), line(1), line(2)], [Some(5), Some(6), None]);
}

// ---- what is refused ----

/// The text is refused, with these messages (in part) at these places and no other.
fn refused(text: &str, expected: &[(u32, u32, &str)]) {
    let errors = errors(text);
    check_places(text, &errors);
    let found: Vec<String> = errors.iter().map(|e| e.to_string()).collect();
    assert_eq!(errors.len(), expected.len(), "{text}: {found:#?}");
    for (error, (line, column, message)) in errors.iter().zip(expected) {
        assert_eq!((error.line(), error.column()), (*line, *column), "{error}");
        assert!(error.message().contains(message), "{error}\nlacks {message}");
    }
}

/// A function with this body, its first line being line 2.
fn body(lines: &str) -> String {
    format!("func @f(%a: i32) -> i32 {{\n{lines}\n}}\n")
}

#[test]
fn errors_are_located_and_several_at_a_time() {
    let text = "func @f(%a: i32) -> i32 {\nb:\n  %c = bogus.i32 %a\n  %d = add.i32 %c, 5\n  return %a\n}\n\
                export \"x\" @nosuch\nfunc @g() -> () {\nb:\n  jump away\n}\n";
    refused(text, &[(3, 8, "found `bogus.i32`"), (4, 20, "a value"), (7, 12, "@nosuch"), (10, 8, "`away`")]);
    let shown = errors(text)[2].to_string();
    assert_eq!(shown, "7:12: function `@nosuch` is not defined\n7 | export \"x\" @nosuch\n  |            ^");
    let many = "bogus\n".repeat(1000);
    assert_eq!(errors(&many).len(), MAX_ERRORS);
}

#[test]
fn carets_count_characters() {
    refused("export \"日本\" @nosuch", &[(1, 13, "@nosuch")]);
    let shown = errors("\texport \"é\" @nosuch")[0].to_string();
    assert!(shown.ends_with("1 |  export \"é\" @nosuch\n  |             ^"), "{shown}");
}

#[test]
fn names_are_defined_once_and_used_defined() {
    refused(&body("b:\n  return %nosuch"), &[(3, 10, "value `%nosuch` is not defined")]);
    refused(&body("b:\n  %a = const.i32 1\n  return %a"), &[(3, 3, "`%a` is already defined on line 1")]);
    refused(
        &body("b:\n  jump b2\nb2:\n  return %a\nb2:\n  return %a"),
        &[(6, 1, "block `b2` is already defined on line 4")],
    );
    refused(
        &body("b:\n  jump b2(%a)\nb2(%x: i32, %x: i32):\n  return %x"),
        &[(4, 13, "`%x` is already defined on line 4")],
    );
    let twice = "memory @x 1\nglobal @x: i32 = 1\ntable @x 1\nmemory @x 1\nglobal @x: i32 = 1\ntable @x 1\n";
    refused(twice, &[(4, 8, "memory"), (5, 8, "global"), (6, 7, "table")]);
    refused("import func @f \"a\" \"b\" ()\nfunc @f() {\nb:\n  return\n}", &[(2, 6, "function `@f`")]);
    let uses = "b:\n  %x = load.i32 @m[%a]\n  return %x";
    refused(&body(uses), &[(3, 17, "memory `@m` is not defined")]);
    refused(
        "start @a\nstart @b\nelem @t 0 []\ndata @m 0 \"\"",
        &[(1, 7, "function `@a`"), (2, 7, "function `@b`"), (3, 6, "table `@t`"), (4, 6, "memory `@m`")],
    );
    refused("import func @f \"\" \"\" ()\nstart @f\nstart @f", &[(3, 7, "start function already")]);
}

#[test]
fn use_before_definition_is_for_the_verifier() {
    let module = parse(&body("b:\n  %x = add.i32 %y, %a\n  %y = add.i32 %x, %a\n  return %y"));
    let found: Vec<&str> = verify_module(&module).iter().map(|f| f.rule().id()).collect();
    assert_eq!(found, ["SSA-DOM-1"]);
}

#[test]
fn blocks_begin_with_a_label_and_end_with_a_terminator() {
    refused(&body("  return %a"), &[(2, 3, "label of the first block")]);
    refused(&body("b:"), &[(2, 1, "does not end in a terminator")]);
    refused(&body("b:\n  return %a\n  return %a"), &[(4, 3, "after the terminator")]);
    refused(&body(""), &[(1, 6, "no block")]);
    refused(&body("b(%x: i32):\n  return %a"), &[(2, 2, "parameters of the first block")]);
    refused("func @f() {\nb:\n  return\n", &[(1, 6, "not closed")]);
    refused("func @f() {\nb:\n  return\nfunc @g() {\nb:\n  return\n}\nstart @f", &[(1, 6, "not closed")]);
    refused("}", &[(1, 1, "expected `memory`")]);
}

#[test]
fn results_are_named_one_by_one() {
    refused(&body("b:\n  add.i32 %a, %a\n  return %a"), &[(3, 3, "1 result, but 0")]);
    refused(&body("b:\n  %x, %y = call @f(%a)\n  return %a"), &[(3, 3, "1 result, but 2")]);
    refused(&body("b:\n  %x = return %a"), &[(3, 3, "0 results, but 1")]);
    refused(&body("b:\n  %x, %x = call @f(%a)\n  return %x"), &[(3, 3, "1 result, but 2")]);
}

#[test]
fn mnemonics_have_the_right_suffix() {
    refused(&body("b:\n  %x = add %a, %a\n  return %x"), &[(3, 8, "needs a type")]);
    refused(&body("b:\n  %x = add.i33 %a, %a\n  return %x"), &[(3, 8, "`add.` and a type")]);
    refused(&body("b:\n  return.i32 %a"), &[(3, 3, "takes no type")]);
    refused(&body("b:\n  trap nosuch"), &[(3, 8, "kind of trap")]);
    refused(&body("b:\n  trap user65536"), &[(3, 8, "kind of trap")]);
    refused(&body("b:\n  switch %a, [b]"), &[(3, 17, "expected `,`, found the end")]);
    refused(&body("b:\n  br_if %a, b"), &[(3, 14, "expected `,`")]);
}

#[test]
fn numbers_must_fit() {
    for (ty, literal) in [
        ("i8", "256"),
        ("i8", "-129"),
        ("i32", "4294967296"),
        ("i64", "18446744073709551616"),
        ("i64", "-9223372036854775809"),
        ("i64", "340282366920938463463374607431768211456"),
        ("i64", "0x"),
        ("i64", "1.5"),
        ("i64", "0x+1"),
        ("i64", "-0x-1"),
        ("i64", "12ab"),
        ("i32", "1_000"),
        ("f64", "1e309"),
        ("f32", "1e39"),
        ("f64", "1e"),
        ("f64", "--1"),
        ("f64", "0x10"),
        ("f64", "1.5.2"),
    ] {
        refused(&format!("global @g: {ty} = {literal}"), &[(1, 15 + ty.len() as u32, &format!("that fits {ty}"))]);
    }
    refused("global @g: f64 = nan:0x7ff0000000000000", &[(1, 18, "is not a NaN of f64")]);
    refused("global @g: f32 = nan:0x7ff8000000000001", &[(1, 22, "at most 4294967295")]);
    refused("global @g: i32 = inf", &[(1, 18, "an integer")]);
    refused("memory @m 4294967296", &[(1, 11, "at most 4294967295")]);
    refused("memory @m -1", &[(1, 11, "at most 4294967295")]);
    refused("data @m 18446744073709551616 \"\"", &[(1, 9, "at most 18446744073709551615")]);
}

#[test]
fn strings_are_closed_and_escapes_known() {
    refused("export \"a", &[(1, 8, "does not end")]);
    refused("export \"a\\", &[(1, 10, "escape")]);
    refused("export \"\\q\" @f", &[(1, 9, "escape")]);
    refused("export \"\\0\" @f", &[(1, 9, "escape")]);
    refused("export \"\\u{110000}\" @f", &[(1, 9, "hexadecimal")]);
    refused("export \"\\u{d800}\" @f", &[(1, 9, "hexadecimal")]);
    refused("export \"\\u{41\" @f", &[(1, 9, "hexadecimal")]);
    refused("export \"\\ff\" @f", &[(1, 8, "UTF-8")]);
    refused("memory @\"\\ff\" 1", &[(1, 9, "UTF-8")]);
    refused("memory @ 1", &[(1, 8, "a name after `@`")]);
}

#[test]
fn odd_bytes_are_located() {
    refused("memory @m 1\n\0", &[(2, 1, "unexpected character `\\0`")]);
    refused("memory @m\u{a0}1", &[(1, 10, "unexpected character")]);
    refused("memory @m 1\rmemory @n 1", &[(1, 12, "unexpected character `\\r`")]);
    let with_mark = format!("\u{feff}{}", SAMPLE.replace('\n', "\r\n"));
    assert_eq!(print_module(&parse(&with_mark)), print_module(&parse(SAMPLE)));
    refused("\u{feff}bogus", &[(1, 1, "found `bogus`")]);
}

#[test]
fn a_sample_cut_anywhere_is_read_or_refused() {
    let ends = (0..=SAMPLE.len()).filter(|i| SAMPLE.is_char_boundary(*i));
    ends.for_each(|end| check_any_text(&SAMPLE[..end]));
}

#[test]
fn a_sample_with_any_bit_flipped_is_read_or_refused() {
    for at in 0..SAMPLE.len() {
        for bit in 0..8 {
            let mut bytes = SAMPLE.as_bytes().to_vec();
            bytes[at] ^= 1 << bit;
            if let Ok(text) = std::str::from_utf8(&bytes) {
                check_any_text(text);
            }
        }
    }
}

#[test]
fn large_bad_texts_are_refused_in_bounded_time_and_space() {
    let million = 1_000_000;
    refused(&"(".repeat(million), &[(1, 1, "found `(`")]);
    refused(&body(&format!("b:\n  jump b{}", "(".repeat(million))), &[(3, 10, "a value")]);
    refused(&body(&format!("b:\n  %x = const.i32 {}", "9".repeat(million))), &[(3, 18, "fits i32")]);
    refused(&"x".repeat(million), &[(1, 1, "found `xxx")]);
    refused(&format!("export \"{}", "\\41".repeat(million)), &[(1, 8, "does not end")]);
    let at_the_end = format!("export \"{}\" @nosuch", "é".repeat(million));
    refused(&at_the_end, &[(1, million as u32 + 11, "@nosuch")]);
    // Claims of size are not believed.
    let claims = parse("memory @m 4294967295\ntable @t 4294967295\ndata @m 18446744073709551615 \"\"\n");
    assert!(!verify_module(&claims).is_empty());
    let labels: String = (0..100_000).map(|i| format!("b{i}:\n  jump b{i}\n")).collect();
    assert_eq!(parse(&body(&labels)).body(Func::from_u32(0)).expect("f has a body").block_count(), 100_000);
}
