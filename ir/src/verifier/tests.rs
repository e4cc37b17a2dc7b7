//! Tests: every rule reports the input that breaks it. They are in this crate because code outside
//! cannot create most malformed functions.

mod cases;

use super::{Entity, Finding, Rule, verify_function, verify_module};
use crate::effect::DeclaredEffect;
use crate::entity::{Block, Func, Global, Inst, Memory, Sig, Table, Value};
use crate::function::{Function, ValueData, ValueDef};
use crate::inst::{Edge, Imm, Target};
use crate::module::{
    DataSegment, ElementSegment, Export, External, FuncDecl, GlobalDecl, ImportName, Module,
};
use crate::opcode::Opcode;
use crate::text::parse_module;
use crate::types::{Signature, Type};
use cases::all_cases;
use cranelift_entity::EntityRef;
use proptest::collection::vec;
use proptest::prelude::Strategy;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::collections::BTreeSet;

/// A well-formed module that the cases damage. The comments give the ids in `f`.
const GOOD: &str = r#"
memory @m 1 2
table @t 4
global @g: i32 = 5
global @h: mut i64 = 5
export "f" @f
start @init
import func @host "env" "host" (i32) -> i32
func @init() -> () {
only:
  return
}
func @f(%a: i32, %b: i64) -> i32 {   ; v0 v1
entry:                               ; block0
  %c = const.i32 1                   ; inst0 v4
  %s = add.i32 %a, %c                ; inst1 v5
  br_if %s, left(%s), right          ; inst2
left(%x: i32):                       ; block1, v2
  %y = call @host(%x)                ; inst3 v6
  jump join(%y)                      ; inst4
right:                               ; block2
  %l = load.i32 @m[%a + 4]           ; inst5 v7
  %i = call_indirect @t (i32) -> i32 [%c](%l)  ; inst6 v8
  global_set.i64 @h, %b              ; inst7
  jump join(%i)                      ; inst8
join(%r: i32):                       ; block3, v3
  return %r                          ; inst9
}
elem @t 0 [@f, null]
data @m 0 "abc"
"#;

const ENTRY: u32 = 0;
const LEFT: u32 = 1;

fn block(index: u32) -> Block {
    Block::from_u32(index)
}

fn inst(index: u32) -> Inst {
    Inst::from_u32(index)
}

fn value(index: u32) -> Value {
    Value::from_u32(index)
}

fn parse(text: &str) -> Module {
    parse_module(text).unwrap_or_else(|errors| panic!("{}", errors[0]))
}

fn f(module: &mut Module) -> &mut Function {
    let id = module.func_named("f").expect("the module has f");
    module.damaged_body(id).expect("f has a body")
}

/// The rules with findings in a module.
fn rules(module: &Module) -> Vec<Rule> {
    let found: BTreeSet<Rule> = verify_module(module).iter().map(Finding::rule).collect();
    found.into_iter().collect()
}

/// A damaged module and the rules it breaks.
type Case = (&'static [Rule], Module);

/// The good module, damaged.
fn damaged(rules: &'static [Rule], damage: impl FnOnce(&mut Module)) -> Case {
    let mut module = parse(GOOD);
    damage(&mut module);
    (rules, module)
}

/// The body `f` of the good module, damaged.
fn broken(rules: &'static [Rule], damage: impl FnOnce(&mut Function)) -> Case {
    damaged(rules, |module| damage(f(module)))
}

/// The body `f` after a change to the operands or targets of one instruction, with exact derived
/// lists.
fn changed(
    rules: &'static [Rule],
    id: u32,
    change: impl FnOnce(&mut crate::inst::InstData),
) -> Case {
    broken(rules, |f| f.rewrite_inst(inst(id), change))
}

/// A module of its own text.
fn written(rules: &'static [Rule], text: &str) -> Case {
    (rules, parse(text))
}

#[test]
fn the_good_module_is_good() {
    let findings = verify_module(&parse(GOOD));
    assert!(findings.is_empty(), "{}", findings[0]);
}

#[test]
fn each_case_breaks_its_rules_and_no_other() {
    let mut wrong = Vec::new();
    for (index, (expected, module)) in all_cases().iter().enumerate() {
        let expected: BTreeSet<Rule> = expected.iter().copied().collect();
        let findings = verify_module(module);
        let found: BTreeSet<Rule> = findings.iter().map(Finding::rule).collect();
        if found != expected {
            let findings: Vec<String> = findings.iter().map(|f| f.to_string()).collect();
            wrong.push(format!("case {index}, for {expected:?}:\n{}", findings.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_rule_has_a_case_and_a_line_in_the_header() {
    let header = include_str!("mod.rs");
    let covered: BTreeSet<Rule> =
        all_cases().iter().flat_map(|(rules, _)| rules.iter().copied()).collect();
    let mut ids = BTreeSet::new();
    for rule in Rule::ALL {
        assert!(covered.contains(rule), "{rule} has no failing input");
        let line = format!("//! | {} | {} |\n", rule.id(), rule.meaning());
        assert!(header.contains(&line), "the header lacks {line}");
        assert!(ids.insert(rule.id()), "{rule} has the id of another rule");
    }
    assert_eq!(
        header.matches("\n//! | ").count(),
        Rule::ALL.len() + 1,
        "the header has a line for no rule"
    );
}

#[test]
fn findings_are_sorted_and_show_their_instruction() {
    let mut module = parse(GOOD);
    f(&mut module).rewrite_inst(inst(9), |i| i.args[0] = value(6));
    f(&mut module).rewrite_inst(inst(1), |i| i.args[0] = value(1));
    let findings = verify_module(&module);
    let shown: Vec<String> = findings.iter().map(|f| f.to_string()).collect();
    let expected = [
        "TYPE-OPERAND-2 in @f at inst1: %b has type i64 instead of i32\n    %s = add.i32 %b, %c",
        "SSA-DOM-1 in @f at inst9: the definition of %y does not dominate this use\n    return %y",
    ];
    assert_eq!(shown, expected);
    assert_eq!(findings[0].entity(), Entity::Inst(inst(1)));
    assert_eq!(findings[0].function(), Some("f"));
    assert_eq!(verify_module(&module), findings, "the order does not vary");
}

#[test]
fn unreachable_code_keeps_every_rule_but_dominance() {
    let text = "func @f(%a: i32) -> i32 {\nentry:\n  return %a\nlost:\n  %x = add.i32 %y, %a\n  jump more\n\
                more:\n  %y = const.i32 1\n  jump lost\n}\n";
    assert_eq!(rules(&parse(text)), []);
    let used = text.replace("return %a", "return %y");
    assert_eq!(
        rules(&parse(&used)),
        [Rule::SsaDom1],
        "unreachable code defines nothing for reachable code"
    );
    let mistyped = text.replace("%y = const.i32", "%y = const.i64");
    assert_eq!(rules(&parse(&mistyped)), [Rule::TypeOperand2]);
}

/// Damages random instructions of the good module, up to three at a time. The verifier must not
/// panic on any combination.
#[test]
fn no_damage_makes_the_verifier_panic() {
    let found = Cell::new(0);
    let config = Config { cases: 3000, failure_persistence: None, ..Config::default() };
    let made = TestRunner::new(config).run(&vec(damage(), 1..=3usize), |damages| {
        let mut module = parse(GOOD);
        damages.into_iter().for_each(|damage| damage.apply(&mut module));
        found.set(found.get() + usize::from(!verify_module(&module).is_empty()));
        Ok(())
    });
    made.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(found.get() > 2500, "most damage is found: {found:?} of 3000");
}

/// A change of one part of the good module, which `part` selects. The other fields are its new
/// contents.
#[derive(Clone, Debug)]
struct RandomDamage {
    part: u32,
    opcode: Opcode,
    ty: Type,
    imm: Imm,
    id: Inst,
    other: Inst,
    target: Block,
    operand: Value,
    index: u32,
}

fn damage() -> impl Strategy<Value = RandomDamage> {
    let imms = [
        Imm::None,
        Imm::Bits(u64::MAX),
        Imm::Address(Memory::new(3), 1),
        Imm::Memory(Memory::new(0)),
        Imm::Global(Global::new(2)),
        Imm::Func(Func::new(7)),
        Imm::Indirect(Sig::new(9), Table::new(0)),
    ];
    let contents = (select(Opcode::ALL), select(&Type::ALL[..6]), select(imms.to_vec()));
    let ids = (0..10u32, 0..12u32, 0..6u32, 0..12u32, 0..9u32);
    (0..12u32, contents, ids).prop_map(
        |(part, (opcode, ty, imm), (id, other, target, operand, index))| RandomDamage {
            part,
            opcode,
            ty,
            imm,
            id: inst(id),
            other: inst(other),
            target: block(target),
            operand: value(operand),
            index,
        },
    )
}

impl RandomDamage {
    fn apply(self, module: &mut Module) {
        let RandomDamage { part, opcode, ty, imm, id, other, target, operand, index } = self;
        if part == 11 {
            module.funcs.push(FuncDecl {
                name: "stray".into(),
                sig: Sig::new(9),
                import: None,
                effect: Default::default(),
            });
        }
        let f = f(module);
        match part {
            0 => f.inst_mut(id).opcode = opcode,
            1 => f.inst_mut(id).ty = ty,
            2 => f.inst_mut(id).imm = imm,
            3 => f.inst_mut(id).args.push(operand),
            4 => f.inst_mut(id).results.push(operand),
            5 => f.inst_mut(id).targets.push(Target::new(target, &[operand])),
            6 => f.inst_mut(id).targets.clear(),
            7 => f.node_mut(id).next = other.into(),
            8 => f.node_mut(id).block = target,
            9 => {
                let mut blocks: Vec<Block> = f.blocks().collect();
                blocks.swap(0, index as usize % 4);
                f.layout = blocks.into_iter().collect();
            }
            10 => {
                f.values.remove(value(index));
            }
            _ => {}
        }
    }
}

#[test]
fn large_functions_take_near_linear_time() {
    // Quadratic work on any of these would take minutes.
    let count = 100_000;
    let params: Vec<String> = (0..count).map(|i| format!("%p{i}: i32")).collect();
    let args: Vec<String> = (0..count).map(|i| format!("%p{i}")).collect();
    let targets = vec!["exit(%p0)"; count].join(", ");
    let wide = format!(
        "func @wide({}) -> i32 {{\nentry:\n  jump wide({})\nwide({}):\n  switch %p1, [{targets}], default exit(%p0)\n\
         exit(%x: i32):\n  return %x\n}}\n",
        params.join(", "),
        args.join(", "),
        params.join(", ").replace("%p", "%q"),
    );
    let module = parse(&wide);
    assert_eq!(rules(&module), []);
    let mut long = String::from("func @long(%v: i32) -> i32 {\nentry:\n  %x0 = add.i32 %v, %v\n");
    for i in 1..count {
        long += &format!("  %x{i} = add.i32 %x{}, %x0\n", i - 1);
    }
    long += &format!("  return %x{}\n}}\n", count - 1);
    assert_eq!(rules(&parse(&long)), []);
    // Every target of the switch is wrong, which gives a finding for each. No finding prints the
    // whole instruction.
    let mut wrong = module;
    let body = wrong.damaged_body(Func::new(0)).expect("wide has a body");
    let switch = body.terminator(block(1));
    body.rewrite_inst(switch, |i| i.targets.iter_mut().for_each(|t| t.args.clear()));
    let findings = verify_function(&wrong, wrong.body(Func::new(0)).expect("wide has a body"));
    assert_eq!(findings.len(), count + 1);
    assert!(findings.iter().all(|f| f.printed_inst().is_some_and(|i| i.len() < 220)));
}

#[test]
fn a_long_name_is_not_repeated_whole() {
    // With whole names the messages would take 10^10 bytes.
    let name = "x".repeat(100_000);
    let targets = vec!["exit(%y)"; 100_000].join(", ");
    let text = format!(
        "func @{name}(%y: i64) {{\nentry:\n  %i = const.i32 1\n  switch %i, [{targets}], default exit(%y)\n\
         exit(%{name}: i32):\n  return\n}}\n"
    );
    let findings = verify_module(&parse(&text));
    assert_eq!(findings.len(), 100_001);
    assert!(findings.iter().all(|f| f.rule() == Rule::CfgArgs2 && f.message().len() < 200));
}
