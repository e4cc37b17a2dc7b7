//! Points that fire when an assumption fails.

use crate::common::{function, inst, value};
use interp::{Machine, NoHost, NoObserver, Outcome};
use ir::text::parse_module;
use ir::verifier::verify_module;
use ir::{Function, Module, Opcode, Point, Value};
use osier_resume::{Condition, InstrumentError, Instrumented, PointSpec, instrument};
use transition::mapping::Entry;

/// A function that assumes about its argument and returns the result of the assumption.
fn text(ty: &str, literal: &str) -> String {
    format!(
        "func @f(%x: {ty}, %c: i32) -> {ty} {{\nentry:\n  %z = const.i32 0\n  %t = ne.i32 %c, %z\n  \
         %y = assume.{ty} %x, {literal}, 7, %c\n  return %y\n}}\n"
    )
}

fn failing(f: &Function, values: &[Value]) -> Instrumented {
    let at = Point::before(inst(f, "y"));
    let point = PointSpec { at, condition: Condition::Failing, values: values.to_vec() };
    instrument(f, &[point]).expect("it fits")
}

fn run(text: &str, made: &Instrumented, args: &[u64]) -> Outcome {
    let mut module: Module = parse_module(text).expect("the text is right");
    let func = module.lookup("f").expect("the function");
    module.define(func, made.function.clone());
    let findings = verify_module(&module);
    assert!(findings.is_empty(), "{}", findings[0]);
    let mut machine = Machine::new(&module, Default::default()).expect("it instantiates");
    machine.invoke(func, args, &mut NoHost, &mut NoObserver)
}

/// Of each type: bits that hold, and bits that look alike and fail.
#[test]
fn assumptions_compare_bits() {
    let cases = [
        ("i8", "-1", 0xff, 0x7f),
        ("i32", "7", 7, 8),
        ("i32", "0", 0, 1 << 31),
        ("i32", "1", 1, 2),
        ("i64", "4294967296", 1 << 32, 0),
        ("f32", "0.0", 0, 1 << 31),
        ("f64", "-0.0", 1 << 63, 0),
        ("f64", "nan:0x7ff8000000000000", 0x7ff8 << 48, 0x7ff8 << 48 | 1),
        ("funcref", "null", 0, 1),
    ];
    for (ty, literal, holds, fails) in cases {
        let text = text(ty, literal);
        let f = function(&text);
        let made = failing(&f, f.arguments());
        assert!(!made.function.all_insts().any(|i| made.function.inst(i).opcode == Opcode::Assume));
        let args = |x: u64| [x, 3];
        assert_eq!(run(&text, &made, &args(holds)), Outcome::Returned(vec![holds]), "{ty}");
        match run(&text, &made, &args(fails)) {
            Outcome::Left { point, values, .. } => {
                assert_eq!((point.as_u32(), values), (0, args(fails).to_vec()), "{ty}");
            }
            other => panic!("{ty} {literal}: {other}"),
        }
    }
}

/// A truth value decides by itself: nothing is compared.
#[test]
fn a_truth_value_needs_no_comparison() {
    for (literal, holds) in [("1", 5), ("0", 0)] {
        let text = text("i32", literal).replace("assume.i32 %x", "assume.i32 %t");
        let f = function(&text);
        let made = failing(&f, &[]);
        assert_eq!(made.function.inst_count(), f.inst_count() + 2, "a branch and the exit");
        let outcome = run(&text, &made, &[9, holds]);
        assert_eq!(outcome, Outcome::Returned(vec![u64::from(holds != 0)]));
        assert!(matches!(run(&text, &made, &[9, 5 - holds]), Outcome::Left { .. }));
    }
}

/// A float whose bits are 0 or 1 is no truth value: a branch takes integers.
#[test]
fn a_float_of_one_bit_is_compared() {
    let text = "func @f(%x: f32, %c: i32) -> f32 {\nentry:\n  %k = const.f32 1e-45\n  %t = \
                select.f32 %c, %k, %k\n  %y = assume.f32 %t, 1e-45, 7, %c\n  return %y\n}\n";
    let f = function(text);
    let made = failing(&f, &[]);
    assert_eq!(run(text, &made, &[9, 3]), Outcome::Returned(vec![1]));
}

#[test]
fn an_entry_that_lands_at_an_assumption_is_tested() {
    let text = text("i32", "7");
    let f = function(&text);
    let made = failing(&f, &[]);
    let target = Point::before(inst(&f, "y"));
    let entry = Entry {
        target,
        steps: Vec::new(),
        replays: Vec::new(),
        assigns: Vec::new(),
        requires: Vec::new(),
        kept: Vec::new(),
        inner: Box::default(),
    };
    let moved = made.entry(&entry).expect("its instruction has a copy").target.inst();
    let g = &made.function;
    let stands_before_test = g.inst_block(moved) == g.entry()
        && g.stands_before(moved, g.terminator(g.entry()))
        && g.inst(g.terminator(g.entry())).opcode == Opcode::BrIf;
    assert!(stands_before_test, "the run has not passed the test");
    assert_eq!(made.origins.inst(moved), Some(inst(&f, "y")));
}

#[test]
fn each_assumption_gets_a_point() {
    let text = text("i32", "7");
    let f = function(&text);
    let y = inst(&f, "y");
    assert_eq!(PointSpec::of_assumptions(&f, |_| None), Err(y));
    let points = PointSpec::of_assumptions(&f, |inst| (inst == y).then_some(f.arguments()));
    let points = points.expect("it has an exit");
    let at = Point::before(y);
    let values = f.arguments().to_vec();
    assert_eq!(points, [PointSpec { at, condition: Condition::Failing, values }]);
}

#[test]
fn errors_name_the_assumption() {
    let refused = |f: &Function, name: &str| {
        let at = Point::before(inst(f, name));
        let point = PointSpec { at, condition: Condition::Failing, values: Vec::new() };
        instrument(f, &[point]).expect_err("it does not fit")
    };
    let f = function(&text("i32", "7"));
    let error = refused(&f, "t");
    assert_eq!(error, InstrumentError::NotAnAssumption { point: 0, inst: inst(&f, "t") });
    assert_eq!(
        error.to_string(),
        format!("point 0: {} is no assumption that could fail", inst(&f, "t"))
    );
    let f = function(&text("funcref", "@f"));
    let error = refused(&f, "y");
    assert_eq!(error, InstrumentError::NotComparable { point: 0, value: value(&f, "x") });
}
