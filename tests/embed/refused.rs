//! Versions, mappings and points that do not fit. The interface rejects each by name before a run.

use super::support::{Pair, SUM, engine, head, invoke, vm};
use osier::check::Checked;
use osier::interp::Outcome;
use osier::ir::{FunctionBuilder, Inst, Point};
use osier::jit::{
    Action, CompileError, Condition, Config, ContinueError, LinkError, PointSpec, RunError,
};
use std::sync::Arc;

#[test]
fn a_mapping_of_other_versions_is_refused() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let fast = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    let made =
        |source, entry| engine.continuation(source, entry, &fast).map(|_| ()).expect_err("refused");
    let function = "sum".to_owned();
    assert_eq!(
        made(&pair.opt, pair.loop_entry()),
        ContinueError::OtherSource { function: function.clone() }
    );
    let back = pair.backward.checked_entry(head(&pair.opt)).expect("an entry");
    assert_eq!(made(&pair.opt, back), ContinueError::OtherTarget { function });
}

#[test]
fn an_action_that_does_not_fit_is_refused() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let mut vm = vm(&engine, &pair.module);
    let fast = pair.at_head(&engine, true, Condition::Flag);
    let mut refused = |actions| vm.adopt(&fast, actions).expect_err("refused");
    assert_eq!(refused(vec![]), LinkError::Actions { points: 1, actions: 0 });
    let stale = Action::Interpret(Arc::clone(&pair.forward));
    assert_eq!(refused(vec![stale]), LinkError::OtherVersion { number: 0 });
    let empty = Arc::new(Checked::empty(&pair.opt, &pair.base));
    assert_eq!(refused(vec![Action::Interpret(empty)]), LinkError::NoEntry { number: 0 });
    let nowhere = Arc::new(Checked::empty(&pair.opt, &pair.opt));
    assert_eq!(refused(vec![Action::Interpret(nowhere)]), LinkError::NotToBase { number: 0 });
    let hand = Action::Hand(Arc::clone(&pair.backward), Arc::default());
    assert!(matches!(refused(vec![hand]), LinkError::NoState { number: 0, .. }));
    let into_itself = pair.leading(&engine, true, &fast);
    assert_eq!(refused(vec![into_itself]), LinkError::OtherVersion { number: 0 });
    assert_eq!(vm.relink(&fast, 0, Action::Ask), Err(LinkError::NotAdopted));
    assert_eq!(vm.relink(&fast, 1, Action::Ask), Err(LinkError::NoSuchPoint(1)));
    vm.adopt(&fast, vec![Action::Ask]).expect("it fits");
    assert_eq!(vm.adopt(&fast, vec![Action::Ask]), Err(LinkError::Claimed));
}

/// Versions of two functions with the same text have the same ids. Their names alone tell the keys
/// of the versions apart.
#[test]
fn a_mapping_of_a_function_with_equal_text_is_refused() {
    let (pair, twin) = (Pair::new(SUM), Pair::new(&SUM.replace("@sum(", "@twin(")));
    assert_eq!(head(&pair.opt), head(&twin.opt), "the same ids");
    let engine = engine(Config::default());
    let mut vm = vm(&engine, &pair.module);
    let fast = pair.at_head(&engine, true, Condition::Flag);
    let refused = vm.adopt(&fast, vec![Action::Interpret(Arc::clone(&twin.backward))]);
    assert_eq!(refused, Err(LinkError::OtherVersion { number: 0 }));
    let function = || "sum".to_owned();
    let made = engine.continuation(&pair.base, twin.loop_entry(), &fast).map(|_| ());
    assert_eq!(made, Err(ContinueError::OtherSource { function: function() }));
    let probed = engine.probe(pair.func, &pair.base, twin.loop_entry(), &fast).map(|_| ());
    assert_eq!(probed, Err(ContinueError::OtherSource { function: function() }));
    vm.adopt(&fast, vec![Action::Interpret(Arc::clone(&pair.backward))]).expect("its own");
}

#[test]
fn a_point_that_keeps_too_little_or_too_much_is_refused() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let mut vm = vm(&engine, &pair.module);
    let at = head(&pair.base);
    let required = pair.forward.entry(at).expect("an entry").requires.clone();
    let with = |values: Vec<_>| {
        let point = PointSpec { at, condition: Condition::Flag, values };
        engine.version(&pair.module, pair.func, &pair.base, &[point]).expect("compiled")
    };
    let fast = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    let into = pair.leading(&engine, true, &fast);
    let less = with(required[1..].to_vec());
    let missing = LinkError::Missing { number: 0, value: required[0] };
    assert_eq!(vm.adopt(&less, vec![into.clone()]), Err(missing));
    let turned = with(required.iter().rev().copied().collect());
    assert_eq!(vm.adopt(&turned, vec![into]), Err(LinkError::Order { number: 0 }));
}

#[test]
fn a_version_with_points_belongs_to_one_machine() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let (mut first, mut second) = (vm(&engine, &pair.module), vm(&engine, &pair.module));
    let fast = pair.at_head(&engine, true, Condition::Flag);
    first.adopt(&fast, vec![Action::Ask]).expect("it fits");
    assert_eq!(second.adopt(&fast, vec![Action::Ask]), Err(LinkError::Claimed));
    // Nor may the other machine enter the version through a continuation, since the actions of its
    // points belong to the first machine.
    let slow = pair.at_head(&engine, false, Condition::Countdown(1));
    assert_eq!(
        second.adopt(&slow, vec![pair.leading(&engine, true, &fast)]),
        Err(LinkError::NotAdopted)
    );
}

#[test]
fn mismatched_versions_machines_and_functions_are_rejected() {
    let (pair, same) = (Pair::new(SUM), Pair::new(SUM));
    let guarded = engine(Config::default());
    let checked = engine(Config { bounds: osier::jit::Bounds::Checked, ..Config::default() });
    let mut vm = vm(&checked, &pair.module);
    let version = |engine: &osier::jit::Engine, pair: &Pair| {
        engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled")
    };
    // The code of that engine relies on guard pages that the machine's memory does not have.
    assert_eq!(vm.install(&version(&guarded, &pair), vec![]), Err(LinkError::OtherProgram));
    assert_eq!(
        vm.install(&version(&checked, &same), vec![]),
        Err(LinkError::OtherProgram),
        "another module"
    );
    let slow = pair.at_head(&checked, false, Condition::Flag);
    let into = pair.leading(&guarded, true, &version(&guarded, &pair));
    assert_eq!(vm.adopt(&slow, vec![into]), Err(LinkError::NotAdopted));
    // A function with another signature.
    let other = super::support::module("func @f(%a: i32) -> i32 {\nentry:\n  return %a\n}\n");
    let (_, body) = other.defined().next().expect("a function");
    let made = checked.version(&pair.module, pair.func, body, &[]).map(|_| ());
    assert!(
        matches!(&made, Err(CompileError::Invalid { what, .. }) if what.contains("signature")),
        "{made:?}"
    );
    vm.install(&version(&checked, &pair), vec![]).expect("it fits");
}

#[test]
fn nonexistent_points_are_rejected() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let at = head(&pair.opt);
    let inner = Inst::from_u32(9999);
    let spec = |at, values| [PointSpec { at, condition: Condition::Flag, values }];
    let compiled = |points: &[PointSpec]| {
        engine.version(&pair.module, pair.func, &pair.opt, points).map(|_| ())
    };
    for (points, says) in [
        (spec(Point::before(inner), vec![]), "inst"),
        // A point that exists, as a control.
        (spec(at, pair.opt.block_params(pair.opt.inst_block(at.inst())).to_vec()), ""),
    ] {
        match compiled(&points) {
            Ok(()) => assert!(says.is_empty()),
            Err(CompileError::Point { function, what }) => {
                assert_eq!(function, "sum");
                assert!(!says.is_empty() && what.contains(says), "{what}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn code_beyond_its_limit_is_refused_and_nothing_of_it_stays() {
    let pair = Pair::new(SUM);
    let limit = 4096;
    let engine = engine(Config { code_bytes: limit, ..Config::default() });
    let mut held = Vec::new();
    let refused = loop {
        match engine.version(&pair.module, pair.func, &pair.base, &[]) {
            Ok(version) => held.push(version),
            Err(error) => break error,
        }
        assert!(held.len() < limit, "a version has more than a byte");
    };
    assert_eq!(refused, CompileError::OutOfMemory);
    // Freed space can be used again.
    held.pop().expect("one fits");
    engine.version(&pair.module, pair.func, &pair.base, &[]).expect("there is room again");
}

#[test]
fn more_values_than_native_code_passes_are_refused() {
    // More than the words of the buffer, and more than the arguments of a call.
    for count in [70_000, 9_000] {
        refused_with_values(count);
    }
}

fn refused_with_values(count: usize) {
    let signature = osier::ir::Signature::new(&vec![osier::ir::Type::I64; count], &[]);
    let mut builder = FunctionBuilder::new("wide", signature);
    let entry = builder.create_block();
    (0..count).for_each(|_| _ = builder.append_param(entry, osier::ir::Type::I64));
    builder.switch_to(entry);
    builder.ret(&[]);
    let function = builder.finish().expect("built").function;
    let pair = Pair::new(SUM);
    let point = PointSpec {
        at: Point::before(function.first_inst(function.entry())),
        condition: Condition::Always,
        values: function.arguments().to_vec(),
    };
    let made =
        engine(Config::default()).version(&pair.module, pair.func, &function, &[point]).map(|_| ());
    assert!(
        matches!(made, Err(CompileError::TooManyValues { needed, .. }) if needed == count),
        "{made:?}"
    );
}

#[test]
fn a_point_without_a_target_ends_the_run() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let mut vm = vm(&engine, &pair.module);
    let slow = pair.at_head(&engine, false, Condition::Countdown(3));
    vm.install(&slow, vec![Action::Ask]).expect("it fits");
    let stuck = RunError::Stuck { func: pair.func, point: 0 };
    assert_eq!(invoke(&mut vm, pair.func, &[10, 1]), Err(stuck));
    // The error has not damaged the machine.
    assert_eq!(invoke(&mut vm, pair.func, &[1, 1]), Ok(Outcome::Returned(vec![3])));
}
