//! Continuations of versions with OSR points.

use super::{
    DECIDED, NESTED, block, continuation, continuation_with_points, identity, shown, with,
};
use crate::common::{function, inst, value};
use interp::{Limits, Machine, NoHost, NoObserver};
use ir::text::print_module;
use ir::{Function, Inst, Point, Value};
use osier_resume::{Condition, ContinuationError, PointSpec, instrument};
use transition::mapping::{Assign, Entry, Operand};

/// Points of the target version keep their numbers in a continuation. A continuation can be
/// instrumented in turn.
#[test]
fn points_keep_their_numbers() {
    let f = function(NESTED);
    let (t, again, more) = (inst(&f, "t"), inst(&f, "again"), inst(&f, "more"));
    let spec = |at: Inst, condition, values: &[&str]| PointSpec {
        at: Point::before(at),
        condition,
        values: values.iter().map(|n| value(&f, n)).collect(),
    };
    let points =
        [spec(t, Condition::Flag, &["i"]), spec(again, Condition::Always, &["limit", "t", "n"])];
    let armed = instrument(&f, &points).expect("the values are available");
    let landing = identity(&f, more);
    let entry = armed.entry(&Entry { assigns: all_at(&f, more), ..landing }).expect("it is copied");
    let requires: Vec<Value> =
        entry.assigns.iter().filter_map(|a| armed.origins.value(a.value)).collect();
    let mut entry = Entry { requires, ..entry };
    entry.requires.sort_unstable();
    let made = continuation("rest", &f, &armed.function, &entry).unwrap_or_else(|e| panic!("{e}"));
    let (module, func) = with(NESTED, &made.function);
    let text = print_module(&module);
    assert!(
        text.contains("osr_test 0") && text.contains("osr_exit 0(") && text.contains("osr_exit 1("),
        "{text}"
    );
    let values: Vec<u64> =
        entry.requires.iter().map(|v| 10 + u64::from(*v == value(&f, "limit"))).collect();
    let mut machine = Machine::new(&module, Limits::default()).expect("it instantiates");
    let outcome = machine.invoke(func, &values, &mut NoHost, &mut NoObserver);
    assert!(shown(&outcome).starts_with("left at osr1 with [11, "), "{outcome}");
    let landed = Point::before(made.function.first_inst(made.function.entry()));
    let twice = instrument(
        &made.function,
        &[PointSpec { at: landed, condition: Condition::Always, values: Vec::new() }],
    );
    assert_eq!(twice.expect("no values").function.block_count(), 2);
}

/// Behind a point that always exits, fewer blocks are reachable, and constants decide more branches
/// there than in the version without points. A run that lands behind such a point may take these
/// branches, so only decisions of the version without points count.
#[test]
fn points_do_not_decide_branches() {
    let f = function(DECIDED);
    let (head, on) = (f.first_inst(block(&f, "head")), f.terminator(block(&f, "on")));
    let values = vec![value(&f, "j")];
    let always = PointSpec { at: Point::before(on), condition: Condition::Always, values };
    let armed = instrument(&f, &[always]).expect("the value is available");
    let entry = identity(&f, head);
    // Plain `continuation` must not decide branches in code with points, and so misses `%x`.
    let missing =
        continuation("rest", &f, &armed.function, &armed.entry(&entry).expect("it is copied"));
    let copy = armed.copy_of_value(value(&f, "x")).expect("it is copied");
    assert_eq!(missing.err(), Some(ContinuationError::NotProvided(copy)));
    let made =
        continuation_with_points("rest", &f, &f, &armed, &entry).unwrap_or_else(|e| panic!("{e}"));
    let (module, func) = with(DECIDED, &made.function);
    let mut machine = Machine::new(&module, Limits::default()).expect("it instantiates");
    let args: Vec<u64> =
        entry.requires.iter().map(|v| if *v == value(&f, "i") { 5 } else { 0 }).collect();
    assert_eq!(
        shown(&machine.invoke(func, &args, &mut NoHost, &mut NoObserver)),
        "left at osr0 with [4]"
    );
    let behind = identity(&f, f.terminator(block(&f, "done")));
    let error =
        continuation_with_points("rest", &f, &f, &armed, &behind).expect_err("it was left out");
    assert_eq!(error, ContinuationError::NoSuchPoint(behind.target));
    let late = PointSpec {
        at: Point::before(head),
        condition: Condition::Flag,
        values: vec![value(&f, "x")],
    };
    let armed = instrument(&f, &[late]).expect("the value is available");
    let error =
        continuation_with_points("rest", &f, &f, &armed, &entry).expect_err("the point reads it");
    assert_eq!(error, ContinuationError::NotProvided(value(&f, "x")));
}

/// Assigns every value that is available at an instruction to its own id.
fn all_at(f: &Function, at: Inst) -> Vec<Assign> {
    let dom = ir::dom::DomTree::new(f, &ir::cfg::Cfg::new(f));
    let params = f.blocks().flat_map(|b| f.block_params(b).to_vec());
    let results = f.all_insts().flat_map(|i| f.inst(i).results.to_vec());
    let mut values: Vec<Value> =
        params.chain(results).filter(|v| dom.available_at(f, *v, Point::before(at))).collect();
    values.sort_unstable();
    values.iter().map(|v| Assign { value: *v, from: Operand::Source(*v) }).collect()
}

/// Copies of a cold block are cold, both parts of a landing block among them. The entry is not.
#[test]
fn cold_blocks_stay_cold() {
    let f = function(&NESTED.replace("):\n  %t", ") cold:\n  %t"));
    let cold = f.inst_block(inst(&f, "t"));
    assert!(f.is_cold(cold));
    for name in ["t", "more", "limit"] {
        let made = super::rest(&f, &identity(&f, inst(&f, name)));
        let g = &made.function;
        let marked = g.blocks().filter(|block| g.is_cold(*block)).count();
        let landed = f.inst_block(inst(&f, name)) == cold;
        let is_split = landed && f.first_inst(cold) != inst(&f, name);
        assert_eq!(marked, if is_split { 2 } else { 1 }, "{name}: {g}");
        assert!(!g.is_cold(g.entry()));
    }
}
