//! Threads: machines move between them, and code is shared and compiled by several.

use super::support::{Pair, SUM, engine, invoke, sum, vm};
use osier::interp::Outcome;
use osier::jit::{
    Action, Condition, Config, Continuation, Engine, Interrupt, MachineCode, Onward, OpenPoint,
    RunError, Tier, Tiering, Version, Vm,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

#[test]
fn handles_are_send_and_sync() {
    fn sent<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    sent::<Vm>();
    shared::<Engine>();
    shared::<Version>();
    shared::<Continuation>();
    shared::<MachineCode>();
    shared::<Interrupt>();
}

#[test]
fn a_machine_moves_between_threads_between_runs() {
    let (pair, engine) = (Arc::new(Pair::new(SUM)), engine(Config::default()));
    let mut machine = vm(&engine, &pair.module);
    let slow = pair.at_head(&engine, false, Condition::Countdown(10));
    let fast = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    machine.install(&slow, vec![pair.leading(&engine, true, &fast)]).expect("it fits");
    for round in 0..8 {
        let pair = Arc::clone(&pair);
        machine = std::thread::spawn(move || {
            let expected = Ok(Outcome::Returned(vec![sum(1000, round)]));
            assert_eq!(invoke(&mut machine, pair.func, &[1000, round]), expected);
            machine
        })
        .join()
        .expect("the run is right");
    }
    assert_eq!(machine.transitions().iter().map(|made| made.count).sum::<u64>(), 8);
}

#[test]
fn threads_compile_and_run_side_by_side() {
    let (pair, engine) = (Arc::new(Pair::new(SUM)), engine(Config::default()));
    // Any number of machines may run code without points at once.
    let common = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let (pair, engine, common) = (Arc::clone(&pair), engine.clone(), Arc::clone(&common));
            std::thread::spawn(move || {
                for round in 0..20 {
                    let mut vm = vm(&engine, &pair.module);
                    let slow = pair.at_head(&engine, false, Condition::Countdown(10 + round));
                    vm.install(&slow, vec![pair.leading(&engine, true, &common)]).expect("it fits");
                    let (n, k) = (1000 + thread, round);
                    assert_eq!(
                        invoke(&mut vm, pair.func, &[n, k]),
                        Ok(Outcome::Returned(vec![sum(n, k)]))
                    );
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("all runs are right"));
}

/// A policy whose continuation another thread compiles. Until it arrives, the run continues in the
/// loop of its current version.
struct Background {
    made: mpsc::Receiver<Arc<Continuation>>,
    again: Arc<Continuation>,
    /// The number of further questions after which the run waits for the other thread.
    patience: u64,
    arrived: Arc<AtomicBool>,
}

impl Tiering for Background {
    fn open(&mut self, _tier: &mut Tier<'_>, _at: OpenPoint<'_>) -> Result<Onward, RunError> {
        let made = match self.made.try_recv() {
            Err(mpsc::TryRecvError::Empty) if self.patience > 0 => {
                self.patience -= 1;
                std::thread::yield_now();
                return Ok(Arc::clone(&self.again).into());
            }
            Err(_) => self.made.recv().expect("the thread sends a continuation"),
            Ok(made) => made,
        };
        self.arrived.store(true, Ordering::Relaxed);
        Ok(made.into())
    }
}

#[test]
fn code_is_compiled_in_the_background_while_the_loop_runs() {
    let (pair, engine) = (Arc::new(Pair::new(SUM)), engine(Config::default()));
    let mut vm = vm(&engine, &pair.module);
    let slow = pair.at_head(&engine, false, Condition::Countdown(1000));
    vm.install(&slow, vec![Action::Ask]).expect("it fits");
    // From the base into the base: an entry that changes nothing and needs only the values of the
    // point.
    let stay = pair.stay(&engine, &slow);
    let (sender, made) = mpsc::channel();
    let compiles = {
        let (pair, engine) = (Arc::clone(&pair), engine.clone());
        std::thread::spawn(move || {
            let fast = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
            let Action::Continue(into) = pair.leading(&engine, true, &fast) else {
                unreachable!("a continuation was made")
            };
            sender.send(into).expect("somebody waits");
        })
    };
    // The point fires 200,000 times, so the run waits before its loop ends.
    let (patience, arrived) = (100_000, Arc::new(AtomicBool::new(false)));
    let tiering = Background { made, again: stay, patience, arrived: Arc::clone(&arrived) };
    vm.set_tiering(Box::new(tiering));
    let n = 200_000_000;
    assert_eq!(closed_form(1000, 7), sum(1000, 7));
    assert_eq!(invoke(&mut vm, pair.func, &[n, 7]), Ok(Outcome::Returned(vec![closed_form(n, 7)])));
    compiles.join().expect("it was compiled");
    assert!(arrived.load(Ordering::Relaxed), "the run entered the compiled code");
    assert!(vm.transitions().iter().map(|made| made.count).sum::<u64>() >= 1);
}

/// Nothing else ends this loop.
#[test]
fn a_flag_that_another_thread_sets_ends_a_loop() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let mut vm = vm(&engine, &pair.module);
    let slow = pair.at_head(&engine, false, Condition::Flag);
    vm.install(&slow, vec![Action::Ask]).expect("it fits");
    let ended = std::thread::scope(|scope| {
        let (begins, begun) = mpsc::channel();
        let slow = &slow;
        scope.spawn(move || {
            begun.recv().expect("the run begins");
            // Most likely, the loop runs by now.
            std::thread::sleep(Duration::from_millis(5));
            slow.arm(0);
        });
        begins.send(()).expect("somebody waits");
        invoke(&mut vm, pair.func, &[u64::MAX, 7])
    });
    assert_eq!(ended, Err(RunError::Stuck { func: pair.func, point: 0 }));
}

/// The result of [`sum`] in closed form.
fn closed_form(n: u64, k: u64) -> u64 {
    let total = u128::from(k) * (u128::from(n) * (u128::from(n) - 1) / 2 + 3 * u128::from(n));
    total as u64
}
