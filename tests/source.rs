//! Lines of the source in versions of a function. An instruction that passes moved keeps its line.
//! An added instruction has the line of the instruction that it replaced. Inlined code keeps the
//! lines of the callee.

use osier::driver::{NoObserver, Vigilance, derive};
use osier::inlining::{CalleeLandings, InlinePlan, inline};
use osier::ir::{Func, Function, Inst, Opcode};
use osier::osr::VersionTree;
use osier::passes::registry::parse;
use osier::source::{Line, Lines, VersionLines, line_of};
use osier::{Format, load, load_with_source};
use osier::{Limits, listing};

/// Each instruction has a line of its own, in a file named for its function.
#[derive(Debug)]
struct Numbered;

impl Lines for Numbered {
    fn line(&self, func: Func, inst: Inst) -> Option<Line> {
        let file = format!("f{}", func.as_u32());
        Some(Line { file, line: inst.as_u32() + 1, column: None })
            .filter(|_| inst.as_u32() < IMPORTED)
    }

    fn name(&self, _: Func) -> Option<String> {
        None
    }
}

/// The instructions of `SCALED`. Ids of instructions added by passes start here.
const IMPORTED: u32 = 11;

const SCALED: &str = "
func @scaled(%n: i32) -> i32 {
entry:
  %one = const.i32 1
  %two = const.i32 2
  %zero = const.i32 0
  jump head(%zero)
head(%i: i32):
  %square = mul.i32 %n, %n
  %near = add.i32 %square, %one
  %far = add.i32 %near, %two
  %sum = xor.i32 %i, %far
  %more = ult.i32 %sum, %n
  br_if %more, head(%sum), out
out:
  return %sum
}";

fn only(f: &Function, opcode: Opcode) -> Inst {
    let mut found = f.all_insts().filter(|inst| f.inst(*inst).opcode == opcode);
    let inst = found.next().unwrap_or_else(|| panic!("no {opcode:?}"));
    assert_eq!(found.next(), None, "one {opcode:?}");
    inst
}

#[test]
fn passes_keep_lines() {
    let module = load(Format::Oir, SCALED.as_bytes()).expect("a module");
    let (func, base) = module.defined().next().expect("a function");
    let pipeline = parse("simplify,licm,adce").expect("a pipeline");
    let derived = derive(&module, base, &pipeline, Vigilance::On, &mut NoObserver);
    let version = &derived.function;
    let lines = VersionLines::of_derived(&Numbered, func, [base, version], &derived.log);
    let line = |inst| lines.of(inst).map(|line| line.line);
    // `licm` has moved the square.
    let square = only(version, Opcode::Mul);
    assert_eq!(square, only(base, Opcode::Mul));
    assert_ne!(base.inst_block(square), version.inst_block(square));
    assert_eq!(line(square), Some(square.as_u32() + 1));
    // One addition of 3, which `simplify` added, stands for the second of two.
    let sum = only(version, Opcode::Add);
    assert!(!base.has_inst(sum) && base.inst_count() as u32 == IMPORTED);
    let replaced = base.all_insts().filter(|inst| base.inst(*inst).opcode == Opcode::Add).last();
    assert_eq!(line(sum), replaced.map(|inst| inst.as_u32() + 1));
    // The 3 stands for nothing.
    let added = |inst: &Inst| !base.has_inst(*inst) && version.inst(*inst).opcode == Opcode::Const;
    let bits = version.all_insts().find(added).expect("a constant");
    assert_eq!(line(bits), None);
    // The imported function itself.
    let of_base = VersionLines::of_base(&Numbered, func);
    assert_eq!(of_base.of(square), line_of(Some(&Numbered), func, square));
    assert_eq!(line_of(None, func, square), None);
}

#[test]
fn inlined_code_has_the_lines_of_its_function() {
    let text = "
func @callee(%a: i32) -> i32 {
entry:
  %b = xor.i32 %a, %a
  %c = mul.i32 %a, %a
  %d = sub.i32 %c, %b
  return %d
}
func @caller(%x: i32) -> i32 {
entry:
  %y = call.i32 @callee(%x)
  %z = add.i32 %y, %x
  return %z
}";
    let text = text.replace("call.i32 @callee", "call @callee");
    let module = load(Format::Oir, text.as_bytes()).expect("a module");
    let [callee, caller] = ["callee", "caller"].map(|name| module.lookup(name).expect("defined"));
    let plan = InlinePlan::o3();
    let landings = CalleeLandings::new(&module, &plan);
    let made = inline(&module, caller, &plan, &landings, &mut NoObserver);
    let made = made.expect("it inlines the call");
    let version = made.tree.function(made.optimized);
    let lines = VersionLines::of_inlined(&Numbered, caller, &made, made.optimized);
    let product = lines.of(only(version, Opcode::Mul)).expect("a line");
    let original = only(module.body(callee).expect("a body"), Opcode::Mul);
    assert_eq!(Some(product), line_of(Some(&Numbered), callee, original));
    let sum = only(version, Opcode::Add);
    assert_eq!(lines.of(sum), line_of(Some(&Numbered), caller, sum));
    let base = VersionLines::of_inlined(&Numbered, caller, &made, VersionTree::BASE);
    assert_eq!(base.of(sum), lines.of(sum));
    let listed = listing::frames(&module, &made, Some(&Numbered));
    assert!(
        listed.contains(&format!("mul.i32 %x, %x  at f0:{}", original.as_u32() + 1)),
        "{listed}"
    );
}

#[test]
fn a_module_loads_the_same_with_its_source() {
    let bytes = std::fs::read("wasm/tests/source_programs/spans.dwarf5.wasm").expect("a module");
    let plain = load(Format::Wasm, &bytes).expect("a module");
    let limits = Limits::default();
    let (module, source) = load_with_source(Format::Wasm, &bytes, &limits).expect("a module");
    assert_eq!(osier::ir::text::print_module(&module), osier::ir::text::print_module(&plain));
    let source = source.expect("it has debug info");
    let fill = module.lookup("fill").expect("a function");
    let lines: &dyn Lines = &source;
    assert_eq!(lines.name(fill).as_deref(), Some("fill"));
    let division = only(module.body(fill).expect("a body"), Opcode::Udiv);
    let line = line_of(Some(lines), fill, division).expect("a line");
    assert_eq!(line.to_string(), "spans.c:10:26");
    assert_eq!(Line { column: None, ..line }.to_string(), "spans.c:10");
    // Text has no debug info, and a module that is too large is refused as ever.
    let (_, none) = load_with_source(Format::Oir, SCALED.as_bytes(), &limits).expect("a module");
    assert!(none.is_none());
    let limits = Limits { input_bytes: 100, ..limits };
    let error = load_with_source(Format::Wasm, &bytes, &limits).expect_err("it is too large");
    assert!(error.to_string().contains("the limit is 100"), "{error}");
    let cut = load_with_source(Format::Wasm, &bytes[..300], &Limits::default());
    assert_eq!(cut.err(), load(Format::Wasm, &bytes[..300]).err());
}
