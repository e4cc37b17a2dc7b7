//! Code that another thread makes during the run.

use super::support::{engine, vm};
use osier::driver::Step;
use osier::interp::{Host, HostError, Limits, Memories, Options, Outcome};
use osier::ir::module::ImportName;
use osier::ir::{Func, Module};
use osier::jit::{
    Config, Continuation, HotLoop, RunError, Tier, Tiering, TransitionKind, Vm, Wake,
};
use osier::passes::Pipeline;
use osier::tiers::{Compiled, Observer, OrderEnd, TierEvent, TierListener, Tiered};
use osier::{Format, load};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// Rounds of a loop, as long as the host says so. Returns their number.
const ROUNDS: &str = "
import func @more \"env\" \"more\" (i32) -> i32
func @rounds(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  jump head(%zero)
head(%i: i32):
  %one = const.i32 1
  %j = add.i32 %i, %one
  %more = call @more(%j)
  br_if %more, head(%j), done
done:
  return %j
}
func @outer(%n: i32) -> i32 {
entry:
  %r = call @rounds(%n)
  return %r
}
";

/// The rounds that a program has come to. Compiling waits for one of them.
#[derive(Clone)]
struct Gate {
    rounds: Arc<(Mutex<u64>, Condvar)>,
    opens: u64,
    /// Compiling then panics.
    panics: bool,
}

impl Gate {
    fn opening(opens: u64) -> Gate {
        Gate { rounds: Arc::default(), opens, panics: false }
    }

    fn pass(&self, round: u64) {
        *self.rounds.0.lock().expect("nobody panics with it") = round;
        self.rounds.1.notify_all();
    }
}

impl Observer for Gate {
    fn step(&mut self, _step: Option<Step>) {}

    fn begin(&mut self) {
        let (rounds, news) = &*self.rounds;
        let waits = |round: &mut u64| *round < self.opens;
        drop(news.wait_while(rounds.lock().expect("nobody panics with it"), waits));
        assert!(!self.panics, "a compiler that panics");
    }

    fn compiled(&mut self, _made: Compiled) {}
}

/// A policy that tells whether a loop was entered.
struct Telling {
    policy: Tiered<Gate>,
    entered: Arc<AtomicBool>,
}

impl Tiering for Telling {
    fn threshold(&self) -> Option<u32> {
        self.policy.threshold()
    }

    fn wake(&self) -> Option<Wake> {
        self.policy.wake()
    }

    fn woken(&mut self, tier: &mut Tier<'_>) -> Result<(), RunError> {
        self.policy.woken(tier)
    }

    fn called(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        self.policy.called(tier, func)
    }

    fn hot(
        &mut self,
        tier: &mut Tier<'_>,
        at: HotLoop,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let made = self.policy.hot(tier, at)?;
        self.entered.store(made.is_some(), Ordering::Relaxed);
        Ok(made)
    }
}

/// Ends the loop some rounds after it was entered.
struct Rounds {
    gate: Gate,
    entered: Arc<AtomicBool>,
    rounds: u64,
    left: u64,
    /// The rounds after which it ends in any case.
    most: u64,
}

impl Rounds {
    /// Far more rounds than a compiler needs.
    const MOST: u64 = 1 << 32;
}

impl Host for Rounds {
    fn call(
        &mut self,
        _import: &ImportName,
        _func: Func,
        args: &[u64],
        _memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        self.rounds += 1;
        assert_eq!(args, [self.rounds], "no round is lost, and none is repeated");
        self.gate.pass(self.rounds);
        self.left -= u64::from(self.entered.load(Ordering::Relaxed));
        results[0] = u64::from(self.left > 0 && self.rounds < self.most);
        Ok(())
    }
}

/// A machine that compiles in the background, and the host that ends its loop.
struct Program {
    module: Arc<Module>,
    vm: Vm,
    host: Rounds,
}

impl Program {
    fn new(config: Config, gate: Gate) -> Program {
        let module = Arc::new(load(Format::Oir, ROUNDS.as_bytes()).expect("well-formed"));
        let mut vm = vm(&engine(config), &module);
        let policy = Tiered::new_observed(10, Pipeline::default(), gate.clone()).in_background();
        let entered = Arc::new(AtomicBool::new(false));
        vm.set_tiering(Box::new(Telling { policy, entered: Arc::clone(&entered) }));
        Program {
            module,
            vm,
            host: Rounds { gate, entered, rounds: 0, left: 50, most: Rounds::MOST },
        }
    }

    fn call(&mut self, name: &str) -> Result<Outcome, RunError> {
        let func = self.module.func_named(name).expect("it is declared");
        self.vm.invoke(func, &[0], &mut self.host)
    }

    /// The transitions from the interpreter into native code.
    fn up(&mut self) -> u64 {
        let made = self.vm.transitions().into_iter();
        made.filter(|made| made.kind == TransitionKind::Up).map(|made| made.count).sum()
    }
}

/// The compiler waits for a round that the run comes to only if it does not wait for the compiler.
#[test]
fn a_run_takes_up_code_that_another_thread_has_made() {
    for (name, opens) in [("rounds", 11), ("rounds", 5_000), ("outer", 50)] {
        let mut program = Program::new(Config::default(), Gate::opening(opens));
        let outcome = program.call(name);
        let rounds = program.host.rounds;
        assert_eq!(outcome, Ok(Outcome::Returned(vec![rounds])), "{name} from {opens} on");
        assert!(rounds >= opens + 49, "{name} from {opens} on");
        assert_eq!(program.up(), 1, "{name} from {opens} on");
        // The next call runs the version.
        (program.host.rounds, program.host.left) = (0, 500);
        assert_eq!(program.call("rounds"), Ok(Outcome::Returned(vec![500])));
        assert_eq!(program.up(), 1, "{name} from {opens} on");
    }
}

/// A compiler that panics is a bug. Without this, the run would stay in the interpreter.
#[test]
fn a_panic_of_the_compiler_is_one_of_the_run() {
    let mut program = Program::new(Config::default(), Gate { panics: true, ..Gate::opening(20) });
    let ended = catch_unwind(AssertUnwindSafe(|| program.call("rounds")));
    let payload = ended.expect_err("the run panics");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"a compiler that panics"));
}

/// The code of an engine has a limit. A run that reaches it continues in the interpreter.
#[test]
fn a_run_goes_on_where_there_is_no_memory_for_code() {
    let module = Arc::new(load(Format::Oir, ROUNDS.as_bytes()).expect("well-formed"));
    let made = |code_bytes| Config { code_bytes, ..Config::default() };
    let fits = |config: &Config| {
        let engine = engine(*config);
        Vm::new(&engine, &module, Limits::default(), Options::traced()).is_ok()
    };
    // Enough for stubs alone.
    let config = (0..64).map(|words| made(64 * words)).find(fits).expect("stubs are small");
    let mut program = Program::new(config, Gate::opening(20));
    program.host.most = 10_000;
    assert_eq!(program.call("rounds"), Ok(Outcome::Returned(vec![10_000])));
    assert_eq!(program.up(), 0);
}

/// The dropped orders, and the number of orders for which code was made.
type Orders = Arc<Mutex<(Vec<OrderEnd>, u64)>>;

fn listener(orders: &Orders) -> TierListener {
    let orders = Arc::clone(orders);
    Arc::new(move |event| {
        let mut orders = orders.lock().expect("nobody panics with it");
        match event {
            TierEvent::Dropped(_, why) => orders.0.push(why),
            TierEvent::Begun(_) => orders.1 += 1,
            _ => {}
        }
    })
}

/// Without room from the start, nothing is ordered. With little room, the code of the first order
/// is the last code.
#[test]
fn a_policy_orders_no_code_beyond_its_limit() {
    for (room, begun) in [(0, 0), (1, 1)] {
        let module = Arc::new(load(Format::Oir, ROUNDS.as_bytes()).expect("well-formed"));
        let mut vm = vm(&engine(Config::default()), &module);
        let orders = Orders::default();
        let policy =
            Tiered::new(10, Pipeline::default()).listening(listener(&orders)).with_code_limit(room);
        vm.set_tiering(Box::new(policy));
        let gate = Gate::opening(0);
        let entered = Arc::new(AtomicBool::new(false));
        for call in 1..=30 {
            let entered = Arc::clone(&entered);
            let mut host = Rounds { gate: gate.clone(), entered, rounds: 0, left: 9, most: 9 };
            let outer = module.func_named("outer").expect("it is declared");
            assert_eq!(vm.invoke(outer, &[0], &mut host), Ok(Outcome::Returned(vec![9])), "{call}");
        }
        let orders = orders.lock().expect("nobody panics with it");
        assert_eq!(orders.1, begun, "{room} bytes: {:?}", orders.0);
        let is_full = |why: &OrderEnd| *why == OrderEnd::CodeFull;
        assert!(!orders.0.is_empty() && orders.0.iter().all(is_full), "{:?}", orders.0);
    }
}

/// The thread keeps the observer as long as it lives.
#[test]
fn the_thread_ends_after_the_machine() {
    let gate = Gate::opening(20);
    let mut program = Program::new(Config::default(), gate.clone());
    program.call("rounds").expect("it runs");
    drop(program);
    while Arc::strong_count(&gate.rounds) > 1 {
        std::thread::yield_now();
    }
}
