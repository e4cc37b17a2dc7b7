//! Versions with OSR points, made by hand: the place of the code of points, and points that
//! instrumentation rejects.

use crate::common::{function, inst, value};
use interp::{Machine, NoHost, NoObserver, Outcome};
use ir::text::{parse_module, print_module};
use ir::verifier::verify_module;
use ir::{Function, Inst, Module, Point, Type, Value};
use osier_resume::{Condition, InstrumentError, Instrumented, PointSpec, Truth, instrument};
use transition::mapping::{Assign, Entry, Operand};

const SUM: &str = "\
memory @m 1
func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  jump head(%zero, %zero)
head(%i: i32, %sum: i32):
  %more = slt.i32 %i, %n
  br_if %more, body, done
body:
  %x = load.i32 @m[%i]
  %next = add.i32 %sum, %x
  %one = const.i32 1
  %j = add.i32 %i, %one
  jump head(%j, %next)
done:
  return %sum
}
";

fn spec(at: Inst, condition: Condition, values: &[Value]) -> PointSpec {
    PointSpec { at: Point::before(at), condition, values: values.to_vec() }
}

/// The module of a text with its function instrumented, checked by the verifier.
fn module(text: &str, instrumented: &Instrumented) -> Module {
    let mut module = parse_module(text).expect("the text is right");
    let func = module.lookup("f").expect("the function");
    module.define(func, instrumented.function.clone());
    let findings = verify_module(&module);
    assert!(findings.is_empty(), "{}\n{}", findings[0], print_module(&module));
    module
}

fn run(module: &Module, args: &[u64]) -> Outcome {
    let func = module.lookup("f").expect("the function");
    let mut machine = Machine::new(module, Default::default()).expect("the module instantiates");
    machine.invoke(func, args, &mut NoHost, &mut NoObserver)
}

fn left(outcome: &Outcome) -> (u32, &[u64]) {
    match outcome {
        Outcome::Left { point, values, .. } => (point.as_u32(), values),
        other => panic!("{other}"),
    }
}

#[test]
fn points_stand_before_their_instructions() {
    let f = function(SUM);
    let (i, sum, n) = (value(&f, "i"), value(&f, "sum"), value(&f, "n"));
    let body = f.inst_block(inst(&f, "x"));
    let points = [
        spec(f.terminator(body), Condition::Countdown(7), &[value(&f, "j")]),
        spec(inst(&f, "more"), Condition::Flag, &[i, sum, n]),
        spec(
            inst(&f, "next"),
            Condition::Guard { value: value(&f, "x"), when: Truth::NonZero },
            &[sum],
        ),
        spec(inst(&f, "next"), Condition::Guard { value: i, when: Truth::Zero }, &[]),
    ];
    let instrumented = instrument(&f, &points).expect("the values are available");
    let expected = "\
memory @m 1
func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  jump head(%zero, %zero)
head(%i: i32, %sum: i32):
  %v9 = osr_test 1
  br_if %v9, block9, block2
block2:
  %more = slt.i32 %i, %n
  br_if %more, body, done
body:
  %x = load.i32 @m[%i]
  br_if %x, block10, block4
block4:
  br_if %i, block5, block11
block5:
  %next = add.i32 %sum, %x
  %one = const.i32 1
  %j = add.i32 %i, %one
  %v14 = osr_test 0
  br_if %v14, block12, block6
block6:
  jump head(%j, %next)
done:
  return %sum
block9:
  osr_exit 1(%i, %sum, %n)
block10:
  osr_exit 2(%sum)
block11:
  osr_exit 3()
block12:
  osr_exit 0(%j)
}
";
    let printed = print_module(&module(SUM, &instrumented));
    let without_numbers = |text: &str| {
        let mut names: Vec<String> = Vec::new();
        let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
        let renamed = words.map(|word| {
            let stem = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let made = ["v", "block"].iter().find(|p| {
                stem.strip_prefix(**p)
                    .is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
            });
            let Some(prefix) = made else { return word.to_owned() };
            let number = names.iter().position(|n| n == stem).unwrap_or_else(|| {
                names.push(stem.to_owned());
                names.len() - 1
            });
            word.replacen(stem, &format!("{prefix}#{number}"), 1)
        });
        renamed.collect::<String>()
    };
    assert_eq!(without_numbers(&printed), without_numbers(expected), "{printed}");
    let types: Vec<&[Type]> = instrumented.points.iter().map(|p| p.types.as_slice()).collect();
    assert_eq!(types, [&[Type::I32][..], &[Type::I32; 3], &[Type::I32], &[]]);
    assert_eq!(instrumented.points[0].condition, Condition::Countdown(7));
    assert_eq!(instrumented.points[2].at, Point::before(inst(&f, "next")));
}

#[test]
fn guards_exit_and_tests_do_not() {
    let text = &format!("{SUM}data @m 0 \"\\00\\00\\00\\00\\00\\00\\05\"\n");
    let f = function(text);
    let [i, sum, x, n] = ["i", "sum", "x", "n"].map(|name| value(&f, name));
    let nonzero = Condition::Guard { value: x, when: Truth::NonZero };
    let points = [spec(inst(&f, "next"), nonzero, &[x, i, sum, i])];
    let guarded = module(text, &instrument(&f, &points).expect("the values are available"));
    assert_eq!(run(&guarded, &[3]), Outcome::Returned(vec![0]));
    assert_eq!(left(&run(&guarded, &[5])), (0, &[5 << 24, 3, 0, 3][..]));
    let zero = Condition::Guard { value: i, when: Truth::Zero };
    let done = f.blocks().last().expect("it has blocks");
    let points =
        [spec(f.terminator(done), Condition::Flag, &[]), spec(f.terminator(done), zero, &[n])];
    let guarded = module(text, &instrument(&f, &points).expect("the values are available"));
    assert_eq!(left(&run(&guarded, &[0])), (1, &[0][..]));
    assert_eq!(run(&guarded, &[1]), Outcome::Returned(vec![0]));
}

#[test]
fn code_behind_a_point_that_always_exits_is_left_out() {
    let f = function(SUM);
    let points = [
        spec(inst(&f, "one"), Condition::Always, &[value(&f, "next")]),
        spec(inst(&f, "j"), Condition::Flag, &[value(&f, "one")]),
        spec(inst(&f, "more"), Condition::Flag, &[]),
    ];
    let instrumented = instrument(&f, &points).expect("the values are available");
    let module = module(SUM, &instrumented);
    assert!(!print_module(&module).contains("osr_test 1"), "{}", print_module(&module));
    assert_eq!(instrumented.copy_of(inst(&f, "j")), None);
    assert_eq!(instrumented.copy_of_value(value(&f, "j")), None);
    assert_eq!(instrumented.points.len(), 3);
    assert_eq!(left(&run(&module, &[1])), (0, &[0][..]));
    assert_eq!(run(&module, &[0]), Outcome::Returned(vec![0]));
    let entry = f.first_inst(f.entry());
    let instrumented =
        instrument(&f, &[spec(entry, Condition::Always, &[value(&f, "n")])]).expect("available");
    assert_eq!((instrumented.function.block_count(), instrumented.function.inst_count()), (2, 2));
    assert_eq!(left(&run(&self::module(SUM, &instrumented), &[9])), (0, &[9][..]));
}

#[test]
fn copies_have_their_origins() {
    let f = function(SUM);
    let points: Vec<PointSpec> = f.all_insts().map(|i| spec(i, Condition::Flag, &[])).collect();
    let Instrumented { function: g, origins, .. } =
        &instrument(&f, &points).expect("there are no values");
    let of_insts: Vec<Inst> = g.all_insts().filter_map(|i| origins.inst(i)).collect();
    assert!(of_insts.iter().copied().eq(f.all_insts()), "each instruction has one copy, in order");
    for copy in g.all_insts() {
        match origins.inst(copy) {
            Some(of) => {
                let (a, b) = (g.inst(copy), f.inst(of));
                assert_eq!((a.opcode, a.ty, a.imm), (b.opcode, b.ty, b.imm));
                let operands: Vec<Option<Value>> = a.operands().map(|v| origins.value(v)).collect();
                assert!(operands.into_iter().eq(b.operands().map(Some)));
                assert!(
                    a.results
                        .iter()
                        .map(|v| origins.value(*v))
                        .eq(b.results.iter().map(|v| Some(*v)))
                );
            }
            None => {
                assert!(matches!(g.inst(copy).opcode.name(), "osr_test" | "br_if" | "osr_exit"))
            }
        }
    }
    assert_eq!(g.all_insts().filter(|i| origins.inst(*i).is_none()).count(), 3 * f.inst_count());
    let params =
        |f: &Function| f.blocks().flat_map(|b| f.block_params(b).to_vec()).collect::<Vec<_>>();
    assert!(params(g).iter().map(|v| origins.value(*v)).eq(params(&f).into_iter().map(Some)));
}

#[test]
fn entries_land_behind_the_points() {
    let f = function(SUM);
    let more = inst(&f, "more");
    let instrumented =
        instrument(&f, &[spec(more, Condition::Flag, &[])]).expect("there are no values");
    let from =
        |name: &str| Assign { value: value(&f, name), from: Operand::Source(value(&f, "n")) };
    let mut assigns = vec![from("i"), from("n"), from("sum")];
    assigns.sort_unstable();
    let (target, requires) = (Point::before(more), vec![value(&f, "n")]);
    let entry = Entry {
        target,
        steps: Vec::new(),
        replays: Vec::new(),
        assigns,
        requires,
        kept: Vec::new(),
        inner: Box::default(),
    };
    let moved = instrumented.entry(&entry).expect("its instruction was copied");
    assert_eq!(instrumented.origins.inst(moved.target.inst()), Some(more));
    assert!(moved.provides().is_sorted());
    let mut provided: Vec<_> =
        moved.provides().filter_map(|v| instrumented.origins.value(v)).collect();
    provided.sort_unstable();
    assert!(entry.provides().eq(provided));
}

#[test]
fn errors_name_point_and_value() {
    let f = function(SUM);
    let (more, next, x) = (inst(&f, "more"), value(&f, "next"), value(&f, "x"));
    let refused = |spec: PointSpec| instrument(&f, &[spec]).expect_err("it does not fit");
    let stray = Value::from_u32(1000);
    let error = refused(spec(more, Condition::Flag, &[value(&f, "i"), next]));
    assert_eq!(error, InstrumentError::NotAvailable { point: 0, value: next });
    assert_eq!(
        refused(spec(more, Condition::Flag, &[stray])),
        InstrumentError::NotAvailable { point: 0, value: stray }
    );
    let guard = Condition::Guard { value: x, when: Truth::Zero };
    assert_eq!(
        refused(spec(inst(&f, "x"), guard, &[])),
        InstrumentError::NotAvailable { point: 0, value: x }
    );
    let inst = Inst::from_u32(99);
    assert_eq!(
        refused(spec(inst, Condition::Flag, &[])),
        InstrumentError::NoSuchPoint { point: 0, inst }
    );
    let floats = function("func @f(%a: f64) -> f64 {\nentry:\n  return %a\n}\n");
    let value = floats.arguments()[0];
    let points = [spec(
        floats.terminator(floats.entry()),
        Condition::Guard { value, when: Truth::Zero },
        &[],
    )];
    let error = instrument(&floats, &points).expect_err("a float is no guard");
    assert_eq!(error, InstrumentError::NotAnInteger { point: 0, value, ty: Type::F64 });
    assert_eq!(error.to_string(), "point 0: the guard v0 is f64, not an integer");
}

/// In unreachable code, definitions need not dominate uses. Instrumentation leaves it out, with its
/// points.
#[test]
fn unreachable_blocks_are_left_out() {
    let text = "func @f() -> i32 {\nentry:\n  %one = const.i32 1\n  return %one\ndead:\n  %a = add.i32 %b, %b\n  \
                jump more\nmore:\n  %b = add.i32 %a, %a\n  jump dead\n}\n";
    let f = function(text);
    let instrumented = instrument(&f, &[spec(inst(&f, "a"), Condition::Always, &[value(&f, "b")])])
        .expect("it fits");
    assert_eq!(instrumented.function.block_count(), 1);
    assert_eq!(instrumented.points[0].types, [Type::I32]);
    assert_eq!(run(&module(text, &instrumented), &[]), Outcome::Returned(vec![1]));
}

/// The parts that points split a cold block into are cold, and its exits are as they were.
#[test]
fn cold_blocks_stay_cold() {
    let text = SUM.replace("body:", "body cold:");
    let f = function(&text);
    let n = value(&f, "n");
    let points = ["x", "next"].map(|name| spec(inst(&f, name), Condition::Countdown(7), &[n]));
    let made = instrument(&f, &points).expect("the values are available");
    let cold: Vec<Inst> = f.block_insts(f.inst_block(inst(&f, "x"))).collect();
    for inst in made.function.all_insts() {
        if let Some(origin) = made.origins.inst(inst) {
            let is_cold = made.function.is_cold(made.function.inst_block(inst));
            assert_eq!(is_cold, cold.contains(&origin), "{origin}");
        }
    }
    assert!(made.function.block_count() > f.block_count() + 2, "the block is split");
    module(&text, &made);
}
