//! Each limit of the search: the assumptions lost there, and the sentence that a user reads.

use super::*;
use crate::driver::{Missing, Why};
use ir::text::parse_module;
use ir::{FrameState, FrameStates, Function};

/// A function with 80 arguments.
fn function() -> Function {
    let params: Vec<String> = (0..80).map(|n| format!("%x{n}: i32")).collect();
    let text = format!("func @f({}) {{\nentry:\n  return\n}}", params.join(", "));
    let module = parse_module(&text).unwrap_or_else(|errors| panic!("{errors:?}"));
    module.defined().next().expect("it has a function").1.clone()
}

/// Assumptions about the first argument, told apart by their reasons.
fn assumptions(f: &Function, count: usize) -> Vec<Assumption> {
    let (at, value) = (Point::before(f.first_inst(f.entry())), f.arguments()[0]);
    let one = |reason| Assumption { at, value, expected: Expected::Is(7), reason };
    (0..count as u32).map(one).collect()
}

fn search(f: &Function, count: usize) -> SpeculationSearch {
    SpeculationSearch::new(f, &assumptions(f, count), Pins::OnDemand, Plan::WORK)
}

/// An assumption without an exit. With these values pinned, it would have an exit.
fn lacks(f: &Function, index: usize, to_keep: &[Value]) -> MissingExit {
    let point = Point::before(f.first_inst(f.entry()));
    MissingExit {
        missing: Missing { point, why: Why::Unproved(None) },
        index: Some(index),
        to_keep: to_keep.to_vec(),
        gone: to_keep.to_vec(),
    }
}

/// The reasons of the assumptions tried next, and of the dropped ones.
fn state(search: &SpeculationSearch) -> (Vec<u32>, Vec<(u32, Dropped)>) {
    let made = search.made.iter().map(|made| made.pinned.assumption.reason);
    let dropped = search.dropped.iter().map(|(assumption, why)| (assumption.reason, *why));
    (made.collect(), dropped.collect())
}

#[test]
fn assumptions_beyond_the_limit_are_left_out_by_name() {
    let f = function();
    let most = MAX_ASSUMPTIONS as u32;
    let (made, dropped) = state(&search(&f, MAX_ASSUMPTIONS + 2));
    assert_eq!(made, (0..most).collect::<Vec<_>>());
    assert_eq!(dropped, [(most, Dropped::TooMany), (most + 1, Dropped::TooMany)]);
    let text = "one version makes 4096 assumptions, and no more";
    assert_eq!((Dropped::TooMany.name(), &*Dropped::TooMany.to_string()), ("too_many", text));
}

#[test]
fn an_assumption_keeps_so_many_values_and_is_then_left_out_alone() {
    let f = function();
    let mut search = search(&f, 2);
    let values = f.arguments();
    for turn in [0, 1] {
        search.amend(&f, &[lacks(&f, 0, &values[..MAX_PINS])], turn).expect("it may be amended");
        let expected = if turn == 0 { vec![0, 1] } else { vec![1] };
        assert_eq!(state(&search).0, expected);
    }
    assert_eq!(state(&search).1, [(0, Dropped::NoExit(Why::Unproved(None)))], "nothing is missing");
    let mut search = self::search(&f, 2);
    for turn in [0, 1] {
        search.amend(&f, &[lacks(&f, 0, values)], turn).expect("it may be amended");
    }
    let why = Dropped::TooManyPins(Why::Unproved(None));
    assert_eq!(state(&search), (vec![1], vec![(0, why)]));
    let text = "no entry leads back from it: the checker did not accept the entry; it keeps 64 \
                values, and no more";
    assert_eq!((why.name(), &*why.to_string()), ("too_many_pins", text));
}

#[test]
fn an_assumption_without_an_exit_after_the_turns_that_pin_is_left_out_alone() {
    let f = function();
    let mut search = search(&f, 2);
    for turn in 0..=PIN_TURNS {
        assert_eq!(state(&search), (vec![0, 1], Vec::new()), "turn {turn}");
        let values = &f.arguments()[turn..=turn];
        search.amend(&f, &[lacks(&f, 0, values)], turn).expect("it may be amended");
    }
    let why = Dropped::NoPinTurnLeft(Why::Unproved(None));
    assert_eq!(state(&search), (vec![1], vec![(0, why)]));
    let text = "no entry leads back from it: the checker did not accept the entry; 3 turns pinned \
                values, and there are no more";
    assert_eq!((why.name(), &*why.to_string()), ("no_pin_turn_left", text));
}

/// Before, the last turn left out all.
#[test]
fn turns_behind_the_last_leave_out_the_second_half() {
    let f = function();
    let mut search = search(&f, 12);
    let mut left = Vec::new();
    for turn in 0.. {
        if search.made.is_empty() {
            break;
        }
        search.amend(&f, &[lacks(&f, 0, &[])], turn).expect("it may be amended");
        left.push(search.made.len());
    }
    // One in each turn, and from the seventh on half of the others.
    assert_eq!(left, [11, 10, 9, 8, 7, 6, 2, 0]);
    let (_, dropped) = state(&search);
    let half = [(9, Dropped::NoTurnLeft), (10, Dropped::NoTurnLeft), (11, Dropped::NoTurnLeft)];
    assert_eq!(dropped[7..10], half, "the first ones stay");
    let text = "assumptions still lost their exits after the last turn";
    let why = Dropped::NoTurnLeft;
    assert_eq!((why.name(), &*why.to_string()), ("no_turn_left", text));
    let mut search = self::search(&f, MAX_ASSUMPTIONS);
    let turns = (0..).take_while(|turn| {
        search.amend(&f, &[lacks(&f, 0, &[])], *turn).expect("it may be amended");
        !search.made.is_empty()
    });
    assert_eq!(turns.count() + 2, 18, "the turns of `speculate`, with the last one");
}

#[test]
fn a_turn_that_exceeds_the_work_is_not_begun() {
    let f = function();
    let mut search = SpeculationSearch::new(&f, &assumptions(&f, 2), Pins::OnDemand, 100);
    search.afford(50);
    search.spend(50);
    search.afford(50);
    assert_eq!(state(&search), (vec![0, 1], Vec::new()), "it fits");
    search.spend(1);
    search.afford(50);
    let why = Dropped::NoWorkLeft;
    assert_eq!(state(&search), (Vec::new(), vec![(0, why), (1, why)]));
    let text = "the next turn would exceed the work that the plan grants";
    assert_eq!((why.name(), &*why.to_string()), ("no_work_left", text));
}

/// The register is doubled in front of the second state, and the guess is about its value before.
#[test]
fn a_guess_about_the_value_before_is_refused_by_name() {
    let text = "func @f(%x: i32) -> i32 {\nentry:\n  %y = add.i32 %x, %x\n  %z = add.i32 %y, %y\n  \
                return %z\n}";
    let module = parse_module(text).unwrap_or_else(|errors| panic!("{errors:?}"));
    let f = module.defined().next().expect("it has a function").1;
    let insts: Vec<Inst> = f.all_insts().collect();
    let (x, y) = (f.arguments()[0], f.inst(insts[0]).results[0]);
    let mut states = FrameStates::new();
    for (pc, value) in [(0, x), (1, y)] {
        let state = FrameState::of_values(0, pc as u32, [(0, value)]);
        states.set(Point::before(insts[pc]), state);
    }
    let pipeline = Pipeline::default();
    let at = Point::before(insts[1]);
    let made = |value, states| {
        let assume = [Assumption { at, value, expected: Expected::Is(7), reason: 0 }];
        let plan = Plan { states, ..Plan::new(&assume, &pipeline) };
        let mut tree = VersionTree::new(f.clone());
        speculate(&module, &mut tree, VersionTree::BASE, &plan).map(|made| made.exits.len())
    };
    assert_eq!([made(y, Some(&states)), made(x, None)], [Ok(1), Ok(1)]);
    let error = made(x, Some(&states)).expect_err("no register has it");
    assert_eq!(error, SpeculateError::NotNamed { assumption: 0, value: x, state: at });
    assert_eq!(error.to_string(), "assumption 0: no slot of the state at inst1 has v0");
}
