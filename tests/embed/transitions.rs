//! Transitions: every condition, and any number of transitions in constant stack space.

use super::support::{Pair, SUM, engine, head, invoke, sum, vm};
use osier::check::Checked;
use osier::interp::Outcome;
use osier::jit::{
    Action, Condition, Config, Continuation, Exits, LinkError, Onward, OpenPoint, RunError, Tier,
    Tiering, TransitionKind,
};
use std::sync::Arc;

fn returned(value: u64) -> Result<Outcome, RunError> {
    Ok(Outcome::Returned(vec![value]))
}

#[test]
fn a_countdown_fires_at_its_visit_in_every_activation() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let mut vm = vm(&engine, &pair.module);
    let fast = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    let slow = pair.at_head(&engine, false, Condition::Countdown(100));
    vm.install(&slow, vec![pair.leading(&engine, true, &fast)]).expect("it fits");
    assert_eq!(invoke(&mut vm, pair.func, &[50, 7]), returned(sum(50, 7)));
    assert!(vm.transitions().is_empty(), "50 visits are fewer than 100");
    for _ in 0..3 {
        assert_eq!(invoke(&mut vm, pair.func, &[1000, 7]), returned(sum(1000, 7)));
    }
    let made = vm.transitions();
    assert_eq!(made.len(), 1);
    assert_eq!(
        (made[0].count, made[0].kind, made[0].at),
        (3, TransitionKind::Across, head(&pair.base).inst())
    );
}

#[test]
fn a_flag_fires_while_it_is_set() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let mut vm = vm(&engine, &pair.module);
    let fast = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    let slow = pair.at_head(&engine, false, Condition::Flag);
    vm.install(&slow, vec![pair.leading(&engine, true, &fast)]).expect("it fits");
    for (armed, count) in [(false, 0), (true, 1), (false, 1), (true, 2)] {
        if armed {
            slow.arm(0);
        } else {
            slow.disarm(0);
        }
        assert_eq!(invoke(&mut vm, pair.func, &[1000, 7]), returned(sum(1000, 7)));
        assert_eq!(vm.transitions().iter().map(|made| made.count).sum::<u64>(), count);
    }
}

/// Runs a closure on a stack too small for one frame per transition.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run).expect("a thread");
    thread.join().expect("the run is right");
}

#[test]
fn a_million_transitions_use_no_stack() {
    on_a_small_stack(|| {
        [Exits::Stored, Exits::Described].into_iter().for_each(a_million_transitions)
    });
}

fn a_million_transitions(exits: Exits) {
    let (pair, engine) = (Pair::new(SUM), engine(Config { exits, ..Config::default() }));
    let mut vm = vm(&engine, &pair.module);
    // Each version exits at the third visit of its loop header, and starts counting when entered.
    let slow = pair.at_head(&engine, false, Condition::Countdown(3));
    let fast = pair.at_head(&engine, true, Condition::Countdown(3));
    vm.adopt(&fast, vec![Action::Ask]).expect("it fits");
    vm.install(&slow, vec![pair.leading(&engine, true, &fast)]).expect("it fits");
    vm.relink(&fast, 0, pair.leading(&engine, false, &slow)).expect("it fits");
    assert_eq!(invoke(&mut vm, pair.func, &[3_000_000, 7]), returned(sum(3_000_000, 7)));
    let count: u64 = vm.transitions().iter().map(|made| made.count).sum();
    assert!(count > 900_000, "{count} transitions");
}

/// A policy that enters the optimized version where a loop of the interpreter is hot.
struct Up {
    into: Arc<Continuation>,
}

impl Tiering for Up {
    fn threshold(&self) -> Option<u32> {
        Some(2)
    }

    fn hot(
        &mut self,
        _tier: &mut Tier<'_>,
        _at: osier::jit::HotLoop,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        Ok(Some(Arc::clone(&self.into)))
    }
}

#[test]
fn down_to_the_interpreter_and_up_again() {
    on_a_small_stack(|| {
        let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
        let mut vm = vm(&engine, &pair.module);
        let fast = pair.at_head(&engine, true, Condition::Countdown(5));
        vm.adopt(&fast, vec![Action::Interpret(Arc::clone(&pair.backward))]).expect("it fits");
        let Action::Continue(into) = pair.leading(&engine, true, &fast) else {
            unreachable!("a continuation was made")
        };
        vm.set_tiering(Box::new(Up { into }));
        assert_eq!(invoke(&mut vm, pair.func, &[1000, 7]), returned(sum(1000, 7)));
        let kinds: Vec<_> = vm.transitions().iter().map(|made| (made.kind, made.count)).collect();
        assert_eq!(
            kinds,
            [(TransitionKind::Up, 1), (TransitionKind::Down, 1)],
            "the loop is hot once"
        );
    });
}

/// A policy that sends an open point alternately to either version.
struct Alternate {
    to_fast: Arc<Continuation>,
    to_slow: Arc<Continuation>,
    asked: Arc<std::sync::atomic::AtomicU64>,
}

impl Tiering for Alternate {
    fn open(&mut self, _tier: &mut Tier<'_>, at: OpenPoint<'_>) -> Result<Onward, RunError> {
        self.asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let to_fast = self.to_fast.source().0 == at.version.key();
        Ok(Arc::clone(if to_fast { &self.to_fast } else { &self.to_slow }).into())
    }
}

#[test]
fn an_open_point_is_asked_each_time_it_fires() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let mut vm = vm(&engine, &pair.module);
    let slow = pair.at_head(&engine, false, Condition::Countdown(10));
    let fast = pair.at_head(&engine, true, Condition::Countdown(10));
    vm.adopt(&fast, vec![Action::Ask]).expect("it fits");
    vm.install(&slow, vec![Action::Ask]).expect("it fits");
    let made = |from_base, target| match pair.leading(&engine, from_base, target) {
        Action::Continue(made) => made,
        _ => unreachable!("a continuation was made"),
    };
    let asked = Arc::default();
    let tiering = Alternate {
        to_fast: made(true, &fast),
        to_slow: made(false, &slow),
        asked: Arc::clone(&asked),
    };
    vm.set_tiering(Box::new(tiering));
    assert_eq!(invoke(&mut vm, pair.func, &[1000, 7]), returned(sum(1000, 7)));
    let asked = asked.load(std::sync::atomic::Ordering::Relaxed);
    assert!(asked >= 100, "asked {asked} times");
    assert_eq!(vm.transitions().iter().map(|made| made.count).sum::<u64>(), asked);
}

/// A policy whose open points continue by this action, and that counts the questions.
struct Taking(Action, Arc<std::sync::atomic::AtomicU64>);

impl Tiering for Taking {
    fn open(&mut self, _tier: &mut Tier<'_>, _at: OpenPoint<'_>) -> Result<Onward, RunError> {
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(Onward::Take(self.0.clone()))
    }
}

/// Code for an open point is not ready yet: the run continues in the interpreter, this time.
#[test]
fn an_open_point_may_say_not_yet() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let mut vm = vm(&engine, &pair.module);
    let fast = pair.at_head(&engine, true, Condition::Countdown(5));
    vm.install(&fast, vec![Action::Ask]).expect("it fits");
    let asked = Arc::default();
    let down = Action::Interpret(Arc::clone(&pair.backward));
    vm.set_tiering(Box::new(Taking(down, Arc::clone(&asked))));
    for calls in 1..=3 {
        assert_eq!(invoke(&mut vm, pair.func, &[1000, 7]), returned(sum(1000, 7)));
        assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), calls);
    }
    // An answer is checked as a link is.
    vm.set_tiering(Box::new(Taking(Action::Ask, Arc::default())));
    let stuck = RunError::Stuck { func: pair.func, point: 0 };
    assert_eq!(invoke(&mut vm, pair.func, &[1000, 7]), Err(stuck));
    let up = Action::Interpret(Arc::clone(&pair.forward));
    vm.set_tiering(Box::new(Taking(up, Arc::default())));
    let refused = RunError::Link(LinkError::OtherVersion { number: 0 });
    assert_eq!(invoke(&mut vm, pair.func, &[1000, 7]), Err(refused));
}

#[test]
fn always_leaves_at_the_first_visit() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let mut vm = vm(&engine, &pair.module);
    let slow = pair.at_head(&engine, false, Condition::Always);
    let fast = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    vm.install(&slow, vec![pair.leading(&engine, true, &fast)]).expect("it fits");
    assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), returned(sum(10, 7)));
    assert_eq!(vm.transitions().iter().map(|made| made.count).sum::<u64>(), 1);
}

/// A mapping has an entry at most points. The machine keeps those that a version can take.
#[test]
fn a_machine_keeps_the_entries_at_the_points_of_a_version() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let mut vm = vm(&engine, &pair.module);
    let fast = pair.at_head(&engine, true, Condition::Countdown(4));
    let whole = Arc::new(Checked::clone(&pair.backward));
    assert!(whole.len() > fast.points().len());
    let left = Arc::downgrade(&whole);
    vm.install(&fast, vec![Action::Interpret(whole)]).expect("it fits");
    assert!(left.upgrade().is_none(), "the machine keeps {} entries", pair.backward.len());
    assert_eq!(invoke(&mut vm, pair.func, &[100, 7]), Ok(Outcome::Returned(vec![sum(100, 7)])));
    assert_eq!(vm.transitions().len(), 1);
}
