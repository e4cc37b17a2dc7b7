//! The lifetime of code. The tests count all code of the process, so they form one test.

use super::support::{Calls, Pair, SUM, engine, in_a_process_of_its_own, invoke, module, sum, vm};
use osier::interp::Outcome;
use osier::jit::{
    Action, Condition, Config, Continuation, Onward, OpenPoint, RunError, Tier, Tiering, Version,
    live_code,
};
use osier::tiers::{Eager, NoObserver};
use std::sync::Arc;

#[test]
fn code_lives_as_long_as_it_is_needed_and_no_longer() {
    // No other test may compile meanwhile.
    in_a_process_of_its_own(
        "embed::lifetime::code_lives_as_long_as_it_is_needed_and_no_longer",
        || {
            nothing_is_left();
            code_outlives_the_run_that_is_in_it();
            no_memory_is_writable_and_executable();
            super::misuse::a_panic_below_a_handler_keeps_no_code();
        },
    );
}

fn nothing_is_left() {
    let before = live_code();
    {
        let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
        let mut vm = vm(&engine, &pair.module);
        let fast = pair.at_head(&engine, true, Condition::Countdown(5));
        let slow = pair.at_head(&engine, false, Condition::Countdown(5));
        // Each version leads into the other version, so a cycle of reference counts would keep
        // both.
        vm.adopt(&fast, vec![Action::Ask]).expect("it fits");
        vm.install(&slow, vec![pair.leading(&engine, true, &fast)]).expect("it fits");
        vm.relink(&fast, 0, pair.leading(&engine, false, &slow)).expect("it fits");
        assert_eq!(invoke(&mut vm, pair.func, &[100, 7]), Ok(Outcome::Returned(vec![sum(100, 7)])));
        assert!(live_code() >= before + 4, "two versions, two continuations");
        let many = live_code();
        vm.release(&slow);
        vm.release(&fast);
        drop((slow, fast));
        assert!(live_code() + 4 <= many, "{} of {many} are left", live_code());
        // The interpreter runs the function again.
        assert_eq!(invoke(&mut vm, pair.func, &[100, 7]), Ok(Outcome::Returned(vec![sum(100, 7)])));
        refused_code_is_not_kept(&pair);
    }
    assert_eq!(live_code(), before, "pieces of code");
}

fn refused_code_is_not_kept(pair: &Pair) {
    let small = engine(Config { code_bytes: 16, ..Config::default() });
    let before = live_code();
    engine_refuses(&small, pair);
    assert_eq!(live_code(), before, "the rejected code is gone");
}

fn engine_refuses(small: &osier::jit::Engine, pair: &Pair) {
    assert!(
        small.version(&pair.module, pair.func, &pair.base, &[]).is_err(),
        "16 bytes are too few"
    );
}

/// Releases the source version in the middle of its run, and drops its last handle.
struct LetsGo {
    leaving: Option<Arc<Version>>,
    into: Option<Arc<Continuation>>,
    counted: Arc<std::sync::atomic::AtomicUsize>,
}

impl Tiering for LetsGo {
    fn open(&mut self, tier: &mut Tier<'_>, _at: OpenPoint<'_>) -> Result<Onward, RunError> {
        let leaving = self.leaving.take().expect("asked once");
        tier.release(&leaving);
        drop(leaving);
        self.counted.store(live_code(), std::sync::atomic::Ordering::SeqCst);
        Ok(self.into.take().expect("asked once").into())
    }
}

fn code_outlives_the_run_that_is_in_it() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let mut vm = vm(&engine, &pair.module);
    let slow = pair.at_head(&engine, false, Condition::Countdown(5));
    let fast = engine.version(&pair.module, pair.func, &pair.opt, &[]).expect("compiled");
    let Action::Continue(into) = pair.leading(&engine, true, &fast) else {
        unreachable!("a continuation was made")
    };
    vm.install(&slow, vec![Action::Ask]).expect("it fits");
    // This run creates the code that the machine itself needs, before the count.
    assert_eq!(invoke(&mut vm, pair.func, &[1, 7]), Ok(Outcome::Returned(vec![sum(1, 7)])));
    let before = live_code();
    let counted = Arc::default();
    vm.set_tiering(Box::new(LetsGo {
        leaving: Some(slow),
        into: Some(into),
        counted: Arc::clone(&counted),
    }));
    drop(fast);
    assert_eq!(
        invoke(&mut vm, pair.func, &[100_000, 7]),
        Ok(Outcome::Returned(vec![sum(100_000, 7)]))
    );
    let during = counted.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(during, before, "a frame may be in the version that was let go");
    assert!(live_code() < before, "the run has ended: {} of {before}", live_code());
}

/// The lines of the process's memory map for pages that are both writable and executable.
fn writable_and_executable() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the system tells its maps");
    let both = |line: &&str| {
        line.split_whitespace()
            .nth(1)
            .is_some_and(|access| access.contains('w') && access.contains('x'))
    };
    assert!(maps.lines().any(|line| line.contains("r-xp")), "the map is readable");
    maps.lines().filter(both).map(str::to_owned).collect()
}

fn no_memory_is_writable_and_executable() {
    let text = "import func @ask \"env\" \"ask\" () -> i64\nfunc @main() -> i64 {\nentry:\n  %x = call @ask()\n  return %x\n}\n";
    let module = module(text);
    let main = module.func_named("main").expect("there");
    let mut vm = vm(&engine(Config::default()), &module);
    vm.set_tiering(Box::new(Eager::new(NoObserver)));
    vm.demand(main).expect("compiled");
    assert_eq!(writable_and_executable(), Vec::<String>::new(), "before");
    let mut during = None;
    let ended = vm.invoke(
        main,
        &[],
        &mut Calls(|| {
            during = Some(writable_and_executable());
            Ok(1)
        }),
    );
    assert_eq!(ended, Ok(Outcome::Returned(vec![1])));
    assert_eq!(during, Some(Vec::new()), "while native code runs");
    assert_eq!(writable_and_executable(), Vec::<String>::new(), "afterwards");
}
